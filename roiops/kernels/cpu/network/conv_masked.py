"""Depthwise convolution of float32 images by kernels of 3x3 and 5x5, step 1 or 2, straight from the image.

Masked loads read zeros where a window hangs over the image's side, so nothing is copied to a frame. A plane's
weights stay in registers. ``conv_depthwise`` has every other case, and says the same in plainer words.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...jit import njit, num_threads, parallel, prange
from .blas_vector import ACTIVATION, LANES, Emitter

__all__ = ["forward", "takes"]


def takes(data, weight, window) -> bool:
    """Whether :func:`forward` computes this; masked loads want a machine that has them."""
    kernel, stride, dilate, _ = window
    return (
        LANES >= 8
        and data.dtype == np.float32
        and kernel in ((1, 3, 3), (1, 5, 5))
        and stride in ((1, 1, 1), (1, 2, 2))
        and dilate == (1, 1, 1)
        and data.shape[2] == 1
        and window[3][0] == 0
    )


def _numbers(count):
    @intrinsic
    def numbers(typing, array, at):
        signature = types.UniTuple(types.float32, count)(array, types.int64)

        def generate(context, builder, signature, args):
            emit = Emitter(context, builder)
            start = emit.pointer(signature.args[0], args[0], args[1])
            loaded = [builder.load(emit.move(start, i)) for i in range(count)]
            return context.make_tuple(builder, signature.return_type, loaded)

        return signature, generate

    return numbers


def _row(size, step):
    """An intrinsic: ``LANES`` results of one row, from column ``x`` on."""

    @intrinsic
    def row(typing, data, at, height, width, y, x, weights, scale, shift, act, out, out_at, columns):
        i, real = types.int64, types.float32
        signature = types.void(data, i, i, i, i, i, weights, real, real, ACTIVATION, out, i, i)

        def generate(context, builder, signature, args):
            emit, kinds = Emitter(context, builder), signature.args
            at, height, width, y, x = args[1:6]
            word = ir.IntType(32)
            lanes = ir.Constant(ir.VectorType(word, LANES), list(range(LANES)))
            vector = ir.VectorType(ir.FloatType(), LANES)
            bits = ir.VectorType(ir.IntType(1), LANES)
            zeros = ir.Constant(vector, [0.0] * LANES)

            def splat(number):
                empty = ir.Constant(lanes.type, ir.Undefined)
                short = builder.trunc(number, word)
                first = builder.insert_element(empty, short, ir.Constant(word, 0))
                return builder.shuffle_vector(first, empty, ir.Constant(lanes.type, [0] * LANES))

            def inside(start, limit):
                """Which of the lanes from position ``start`` on are in ``[0, limit)``."""
                # As unsigned numbers, negative ones are beyond any limit.
                return builder.icmp_unsigned("<", builder.add(lanes, splat(start)), splat(limit))

            load_kind = ir.FunctionType(vector, [vector.as_pointer(), word, bits, vector])
            name = f"llvm.masked.load.v{LANES}f32.p0"
            masked_load = cgutils.get_or_insert_function(builder.module, load_kind, name)
            store_kind = ir.FunctionType(ir.VoidType(), [vector, vector.as_pointer(), word, bits])
            name = f"llvm.masked.store.v{LANES}f32.p0"
            masked_store = cgutils.get_or_insert_function(builder.module, store_kind, name)
            four = ir.Constant(word, 4)

            def load(start, position, there):
                mask = builder.and_(inside(position, width), there)
                pointer = builder.bitcast(emit.pointer(kinds[0], args[0], start), vector.as_pointer())
                return builder.call(masked_load, [pointer, four, mask, zeros])

            taps = cgutils.unpack_tuple(builder, args[6])
            total = emit.constant(0)
            evens = [2 * i for i in range(LANES)]
            for ky in range(size):
                line = builder.add(y, emit.number(ky))
                valid = builder.icmp_unsigned("<", line, height)
                there = builder.select(valid, ir.Constant(bits, [1] * LANES), ir.Constant(bits, [0] * LANES))
                line = builder.select(valid, line, emit.number(0))
                begin = builder.add(at, builder.mul(line, width))
                read = {}
                for kx in range(size):
                    # With steps of 2, one pair of loads serves the taps kx and kx + 1.
                    first = kx - kx % step
                    if first not in read:
                        position = builder.add(x, emit.number(first))
                        read[first] = []
                        for part in range(step):
                            shifted = builder.add(position, emit.number(part * LANES))
                            read[first].append(load(builder.add(begin, shifted), shifted, there))
                    pixels = read[first][0]
                    if step == 2:
                        order = ir.Constant(lanes.type, [i + kx % 2 for i in evens])
                        pixels = builder.shuffle_vector(*read[first], order)
                    total = emit.fma(emit.splat(taps[ky * size + kx]), pixels, total)
            total = emit.fma(emit.splat(args[7]), total, emit.splat(args[8]))
            total = emit.activate(total, emit.activation(args[9]))
            target = builder.bitcast(emit.pointer(kinds[10], args[10], args[11]), vector.as_pointer())
            builder.call(masked_store, [total, target, four, inside(emit.number(0), args[12])])
            return context.get_dummy_value()

        return signature, generate

    return row


_nine, _twenty_five = _numbers(9), _numbers(25)
_three_by_one, _three_by_two, _five_by_one, _five_by_two = _row(3, 1), _row(3, 2), _row(5, 1), _row(5, 2)


@njit
def _plane(
    data, at, in_height, in_width, weight, f, size, step, pad, scale, shift, act, out, to, height, width
):
    if size == 3:
        nine = _nine(weight, f * 9)
        for x in range(0, width, LANES):
            for y in range(height):
                top, left, place = y * step - pad[0], x * step - pad[1], to + y * width + x
                if step == 1:
                    _three_by_one(
                        data,
                        at,
                        in_height,
                        in_width,
                        top,
                        left,
                        nine,
                        scale,
                        shift,
                        act,
                        out,
                        place,
                        width - x,
                    )
                else:
                    _three_by_two(
                        data,
                        at,
                        in_height,
                        in_width,
                        top,
                        left,
                        nine,
                        scale,
                        shift,
                        act,
                        out,
                        place,
                        width - x,
                    )
    else:
        more = _twenty_five(weight, f * 25)
        for x in range(0, width, LANES):
            for y in range(height):
                top, left, place = y * step - pad[0], x * step - pad[1], to + y * width + x
                if step == 1:
                    _five_by_one(
                        data,
                        at,
                        in_height,
                        in_width,
                        top,
                        left,
                        more,
                        scale,
                        shift,
                        act,
                        out,
                        place,
                        width - x,
                    )
                else:
                    _five_by_two(
                        data,
                        at,
                        in_height,
                        in_width,
                        top,
                        left,
                        more,
                        scale,
                        shift,
                        act,
                        out,
                        place,
                        width - x,
                    )


@parallel
def _forward(data, weight, size, step, pad, scale, shift, act, workers, out):
    batch, filters, height, width = out.shape
    channels, in_height, in_width = data.shape[1:]
    multiplier, planes = filters // channels, batch * filters
    flat, flat_weight, flat_out = data.reshape(-1), weight.reshape(-1), out.reshape(-1)
    for worker in prange(workers):
        w = np.int64(worker)
        for plane in range(w * planes // workers, (w + 1) * planes // workers):
            n, f = divmod(plane, filters)
            at = (n * channels + f // multiplier) * in_height * in_width
            _plane(
                flat, at, in_height, in_width, flat_weight, f, size, step, pad, scale[f], shift[f], act,
                flat_out, plane * height * width, height, width,
            )  # fmt: skip


def forward(data, weight, window, scale, shift, act, out):
    """``out = act(scale * convolution + shift)``, where :func:`takes` says so."""
    kernel, stride, _, pad = window
    workers = min(num_threads(out.size * (kernel[1] * kernel[2] + 8) / LANES), max(1, len(out) * len(weight)))
    _forward.by(workers)(
        data[:, :, 0], weight, kernel[1], stride[1], pad[1:], scale, shift, act, workers, out[:, :, 0]
    )
