"""Small windows on float32 planes, step 1 or 2: depthwise convolution, maxima and sums.

Masked loads read nothing where a window hangs over the image's side, so no plane is copied to a frame. The
weights of a convolution stay in registers. ``conv_depthwise`` and ``pool`` have every other case, and say the
same in plainer words.
"""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...jit import njit, num_threads, parallel, prange
from ..vector import MACHINE_LANES
from .emitter import ACTIVATION, Emitter

__all__ = ["convolve", "convolves", "pool", "pools"]


def _takes(data, sizes, kernel, stride, pad):
    # Masked loads want a machine that has them.
    small = kernel in sizes and stride in ((1, 1, 1), (1, 2, 2)) and pad[0] == 0
    return MACHINE_LANES >= 8 and small and data.dtype == np.float32 and data.shape[-3] == 1


def convolves(data, window) -> bool:
    """Whether :func:`convolve` computes this."""
    kernel, stride, dilate, pad = window
    return dilate == (1, 1, 1) and _takes(data, ((1, 3, 3), (1, 5, 5)), kernel, stride, pad)


def pools(data, kernel, stride, pad) -> bool:
    """Whether :func:`pool` computes this."""
    return _takes(data, ((1, 2, 2), (1, 3, 3)), kernel, stride, pad)


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


def _generator(size, step, empty, combine, finish):
    """The code of an intrinsic: ``MACHINE_LANES`` results of one row, from column ``x`` on.

    Its arguments begin with the data, where the plane starts, its height and width, y and x, and end with the
    output, where the row goes and how many columns are left. ``empty`` is what nothing makes,
    ``combine(emit, tap, pixels, total, args)`` takes in a tap, ``finish(emit, total, args)`` is last.
    """

    def generate(context, builder, signature, args):
        emit, kinds = Emitter(context, builder), signature.args
        at, height, width, y, x = args[1:6]
        word = ir.IntType(32)
        lanes = ir.Constant(ir.VectorType(word, MACHINE_LANES), list(range(MACHINE_LANES)))
        vector = ir.VectorType(ir.FloatType(), MACHINE_LANES)
        bits = ir.VectorType(ir.IntType(1), MACHINE_LANES)
        nothing = ir.Constant(vector, [empty] * MACHINE_LANES)

        def splat(number):
            empty = ir.Constant(lanes.type, ir.Undefined)
            short = builder.trunc(number, word)
            first = builder.insert_element(empty, short, ir.Constant(word, 0))
            return builder.shuffle_vector(first, empty, ir.Constant(lanes.type, [0] * MACHINE_LANES))

        def inside(start, limit):
            """Which of the lanes from position ``start`` on are in ``[0, limit)``."""
            # As unsigned numbers, negative ones are beyond any limit.
            return builder.icmp_unsigned("<", builder.add(lanes, splat(start)), splat(limit))

        load_kind = ir.FunctionType(vector, [vector.as_pointer(), word, bits, vector])
        name = f"llvm.masked.load.v{MACHINE_LANES}f32.p0"
        masked_load = cgutils.get_or_insert_function(builder.module, load_kind, name)
        store_kind = ir.FunctionType(ir.VoidType(), [vector, vector.as_pointer(), word, bits])
        name = f"llvm.masked.store.v{MACHINE_LANES}f32.p0"
        masked_store = cgutils.get_or_insert_function(builder.module, store_kind, name)
        four = ir.Constant(word, 4)

        def load(start, position, there):
            mask = builder.and_(inside(position, width), there)
            pointer = builder.bitcast(emit.pointer(kinds[0], args[0], start), vector.as_pointer())
            return builder.call(masked_load, [pointer, four, mask, nothing])

        total = nothing
        evens = [2 * i for i in range(MACHINE_LANES)]
        for ky in range(size):
            line = builder.add(y, emit.number(ky))
            valid = builder.icmp_unsigned("<", line, height)
            there = builder.select(
                valid, ir.Constant(bits, [1] * MACHINE_LANES), ir.Constant(bits, [0] * MACHINE_LANES)
            )
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
                        shifted = builder.add(position, emit.number(part * MACHINE_LANES))
                        read[first].append(load(builder.add(begin, shifted), shifted, there))
                pixels = read[first][0]
                if step == 2:
                    order = ir.Constant(lanes.type, [i + kx % 2 for i in evens])
                    pixels = builder.shuffle_vector(*read[first], order)
                total = combine(emit, ky * size + kx, pixels, total, args)
        total = finish(emit, total, args)
        target = builder.bitcast(emit.pointer(kinds[-3], *args[-3:-1]), vector.as_pointer())
        builder.call(masked_store, [total, target, four, inside(emit.number(0), args[-1])])
        return context.get_dummy_value()

    return generate


def _convolution(size, step):
    def combine(emit, tap, pixels, total, args):
        return emit.fma(emit.splat(cgutils.unpack_tuple(emit.builder, args[6])[tap]), pixels, total)

    def finish(emit, total, args):
        total = emit.fma(emit.splat(args[7]), total, emit.splat(args[8]))
        return emit.activate(total, emit.activation(args[9]))

    generate = _generator(size, step, 0.0, combine, finish)

    @intrinsic
    def row(typing, data, at, height, width, y, x, weights, scale, shift, act, out, out_at, columns):
        i, real = types.int64, types.float32
        return types.void(data, i, i, i, i, i, weights, real, real, ACTIVATION, out, i, i), generate

    return row


def _pooling(size, step, maximum):
    def combine(emit, tap, pixels, total, args):
        builder = emit.builder
        if maximum:  # a NaN is passed over
            return builder.select(builder.fcmp_ordered(">", pixels, total), pixels, total)
        return builder.fadd(total, pixels)

    empty = float(np.finfo(np.float32).min) if maximum else 0.0
    generate = _generator(size, step, empty, combine, lambda emit, total, args: total)

    @intrinsic
    def row(typing, data, at, height, width, y, x, out, out_at, columns):
        i = types.int64
        return types.void(data, i, i, i, i, i, out, i, i), generate

    return row


_nine, _twenty_five = _numbers(9), _numbers(25)
_three_by_one, _three_by_two = _convolution(3, 1), _convolution(3, 2)
_five_by_one, _five_by_two = _convolution(5, 1), _convolution(5, 2)


@njit
def _plane(
    data, at, in_height, in_width, weight, f, size, step, pad, scale, shift, act, out, to, height, width
):
    if size == 3:
        nine = _nine(weight, f * 9)
        for x in range(0, width, MACHINE_LANES):
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
        for x in range(0, width, MACHINE_LANES):
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
def _convolve(data, weight, size, step, pad, scale, shift, act, workers, out):
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


def convolve(data, weight, window, scale, shift, act, out):
    """Depthwise ``out = act(scale * convolution + shift)``, where :func:`convolves` says so."""
    kernel, stride, _, pad = window
    workers = min(
        num_threads(out.size * (kernel[1] * kernel[2] + 8) / MACHINE_LANES), max(1, len(out) * len(weight))
    )
    _convolve.by(workers)(
        data[:, :, 0], weight, kernel[1], stride[1], pad[1:], scale, shift, act, workers, out[:, :, 0]
    )


_largest_3_1, _largest_3_2, _largest_2_1, _largest_2_2 = (
    _pooling(size, step, True) for size in (3, 2) for step in (1, 2)
)
_sum_3_1, _sum_3_2, _sum_2_1, _sum_2_2 = (_pooling(size, step, False) for size in (3, 2) for step in (1, 2))


@parallel
def _pool(data, size, step, pad, maximum, workers, out):
    planes, in_height, in_width = data.shape
    _, height, width = out.shape
    flat, results = data.reshape(-1), out.reshape(-1)
    way = 4 * maximum + 2 * (size == 2) + (step == 2)
    for worker in prange(workers):
        w = np.int64(worker)
        for plane in range(w * planes // workers, (w + 1) * planes // workers):
            at = plane * in_height * in_width
            for oh in range(height):
                for ow in range(0, width, MACHINE_LANES):
                    y, x, left = oh * step - pad[0], ow * step - pad[1], width - ow
                    to = (plane * height + oh) * width + ow
                    if way == 0:
                        _sum_3_1(flat, at, in_height, in_width, y, x, results, to, left)
                    elif way == 1:
                        _sum_3_2(flat, at, in_height, in_width, y, x, results, to, left)
                    elif way == 2:
                        _sum_2_1(flat, at, in_height, in_width, y, x, results, to, left)
                    elif way == 3:
                        _sum_2_2(flat, at, in_height, in_width, y, x, results, to, left)
                    elif way == 4:
                        _largest_3_1(flat, at, in_height, in_width, y, x, results, to, left)
                    elif way == 5:
                        _largest_3_2(flat, at, in_height, in_width, y, x, results, to, left)
                    elif way == 6:
                        _largest_2_1(flat, at, in_height, in_width, y, x, results, to, left)
                    else:
                        _largest_2_2(flat, at, in_height, in_width, y, x, results, to, left)


def pool(data, kernel, stride, pad, maximum, out):
    """The maximum or the sum of each window, where :func:`pools` says so; of none, the least number or 0."""
    workers = max(1, min(num_threads(out.size * (kernel[1] * kernel[2] + 4) / MACHINE_LANES), len(data)))
    _pool.by(workers)(data[:, 0], kernel[1], stride[1], pad[1:], int(maximum), workers, out[:, 0])
