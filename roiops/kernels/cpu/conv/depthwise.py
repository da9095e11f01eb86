"""Convolution with as many groups as channels: each filter sees one channel.

A channel is copied to a frame with zeros around it, its columns sorted by their remainder to the stride: then
what ``FIXED_LANES`` neighbouring results need of one tap lies side by side, whatever the stride.
"""

import math
from typing import NamedTuple

import numpy as np

from ...jit import Calls, inner, num_threads, parallel
from ...shares import planes_of, rows_of, rows_within, within
from ..product.emitter import IDENTITY, activate, activation, activation_of
from ..scratch import Repeated
from ..vector import (
    FIXED_LANES,
    MACHINE_LANES,
    flat_of,
    greater,
    load,
    multiply_add,
    pick,
    pointer_to,
    scaled,
    select,
    splat,
    store,
    sum_lanes,
)
from . import masked
from .columns import span
from .phases import phases_of, spread
from .way import Way


def is_depthwise(data, groups) -> bool:
    return groups == data.shape[1] and groups > 1


def forward(data, weight, window, out):
    """``out = convolution``"""
    plain = np.ones(len(weight), out.dtype), np.zeros(len(weight), out.dtype), activation(dtype=out.dtype)
    bind(Calls(), data, weight, window, plain, out)()


def bind(calls, data, weight, window, epilogue, out):
    """A call of ``out = act(scale * convolution + shift)``, again and again.

    ``epilogue`` is ``(scale, shift, act)``; scale and shift hold a number for each filter.
    """
    if masked.convolves(data, window):
        kernel, arguments, results = masked.convolution(data, weight, window, epilogue, out)
    else:
        kernel, arguments, results = _forward, (data, weight, tuple(window), epilogue), out
    rows = max(1, math.prod(out.shape[:-1]))

    def prepare(threads):
        return [(kernel, min(threads, rows), *arguments, results)]

    return Repeated(calls, _work(window, out.shape), prepare)


class Depthwise(Way):
    """A group for each channel."""

    name = "depthwise"

    @staticmethod
    def suits(layer, machine):
        return layer.groups == layer.channels > 1

    @staticmethod
    def cost(layer, machine):
        return -math.inf  # taken wherever it suits: the others leave tiles empty

    def bind(self, arrays):
        data, weight, scale, shift, act, other, out, _ = arrays
        layer = self.layer
        window = (1, *layer.kernel), (1, *layer.stride), (1, *layer.dilate), (0, *layer.pad)
        epilogue = scale, shift, act if other is None else IDENTITY
        run = bind(self.calls, data[:, :, None], weight[:, :, None], window, epilogue, out[:, :, None])
        if other is None:
            return run

        def run_and_add():
            added = other.copy() if np.shares_memory(other, out) else other
            run()
            np.add(out, added, out=out)
            activate(out, act)

        return run_and_add


def _work(window, out_shape) -> int:
    """Cycles, about: each row of pixels is loaded once, and goes into the results of all its windows."""
    kernel, stride = window[:2]
    batch, filters, depth, height, width = out_shape
    rows = depth * kernel[0] * (height * stride[1] + kernel[1])
    return batch * filters * rows * -(-width // MACHINE_LANES) * (kernel[1] * kernel[2] + 8)


def backward_data(grad_out, weight, window, grad_data):
    """Write the gradient of the data: a convolution with steps of 1, by the filters turned round.

    Where the layer has larger steps, it is one for each remainder of the results' places (``phases.py``).
    """
    kernel, stride, dilate, pad = window
    channels, dtype = grad_data.shape[1], weight.dtype
    multiplier = len(weight) // channels
    for k in range(multiplier):
        head = np.ascontiguousarray(grad_out[:, k::multiplier])
        if stride[0] > 1:
            depth = grad_data.shape[2] + 2 * pad[0] - dilate[0] * (kernel[0] - 1)
            wide = np.zeros((*head.shape[:2], depth, *head.shape[3:]), dtype)
            wide[:, :, : (head.shape[2] - 1) * stride[0] + 1 : stride[0]] = head
            head = wide
        result = grad_data if k == 0 else np.empty_like(grad_data)
        _transposed(head, weight[k::multiplier], (kernel, (1, *stride[1:]), dilate, pad), result)
        if k > 0:
            grad_data += result


def _transposed(head, weight, window, out):
    (phases, gaps, closer), step = phases_of(*window), window[1]
    size = out.shape[2], *(-(-n // s) for n, s in zip(out.shape[3:], step[1:], strict=True))
    results = np.empty((len(phases), *out.shape[:2], *size), out.dtype) if len(phases) > 1 else out[None]
    for result, phase in zip(results, phases, strict=True):
        if not all(phase.counts):
            result[...] = 0
            continue
        taps = (slice(first, None, gap) for first, gap in zip(phase.firsts, gaps, strict=True))
        part = np.ascontiguousarray(weight[(..., *taps)][..., ::-1, ::-1, ::-1])
        forward(head, part, (phase.counts, (1, 1, 1), closer, phase.pads), result)
    if len(phases) > 1:
        planes = math.prod(out.shape[1:3])
        flat, results = out.reshape(len(out), planes, *out.shape[3:]), results.reshape(-1, *size[1:])
        planes = planes, planes * len(out)
        spread.by(num_threads(out.size))(results, planes, step[1:], IDENTITY, flat, 0, flat)


def backward_weight(grad_out, data, window, grad_weight):
    """Write the gradient of the weight."""
    threads = max(1, min(num_threads(), len(grad_weight)))
    _backward_weight.by(threads)(grad_out, data, tuple(window), grad_weight)


class Frame(NamedTuple):
    """The layout of an output plane's frame."""

    #: Rows of each depth, their length, and that of the part of each remainder.
    rows: int
    length: int
    part: int
    #: Where the pixels of each tap begin.
    at: np.ndarray


@inner
def _layout(window, height, width) -> Frame:
    kernel, stride, dilate, _ = window
    part = -(-width // FIXED_LANES) * FIXED_LANES + (kernel[2] - 1) * dilate[2] // stride[2] + 1
    rows, length = (height - 1) * stride[1] + (kernel[1] - 1) * dilate[1] + 1, part * stride[2]
    at = np.empty(kernel[0] * kernel[1] * kernel[2], np.int64)
    for tap in range(at.size):
        rest, kw = divmod(tap, kernel[2])
        kd, kh = divmod(rest, kernel[1])
        column = kw * dilate[2]
        at[tap] = (kd * rows + kh * dilate[1]) * length + column % stride[2] * part + column // stride[2]
    return Frame(rows, length, part, at)


@inner
def _memory(frame, depths, dtype):
    """Zeros for a frame of so many depths; vectors may reach beyond its end."""
    return np.zeros(depths * frame.rows * frame.length + FIXED_LANES, dtype)


@inner
def _copy(source, start, step, count, target, at):
    """``target[at + i] = source[start + i * step]``, both flat; what follows in ``target`` may become 0."""
    if step == 1 and start + count + FIXED_LANES <= source.shape[0]:
        for i in range(0, count, FIXED_LANES):
            store(pointer_to(target), at + i, load(pointer_to(source), start + i))
        store(pointer_to(target), at + count, splat(target.dtype.type(0)))
    else:
        pick(step, source[start:], target[at : at + count])


@inner
def _fill(volume, first, lines, window, frame, pixels):
    """Copy what the ``lines`` of the output plane ``first`` need into its frame; around them stay zeros."""
    (kernel, stride, dilate, pad), (rows, length, part, _) = window, frame
    depth, height, width = volume.shape
    flat = flat_of(volume)
    begin = max(pad[1], lines[0] * stride[1])
    end = min(height + pad[1], (lines[1] - 1) * stride[1] + (kernel[1] - 1) * dilate[1] + 1)
    for kd in range(kernel[0]):
        z = first * stride[0] + kd * dilate[0] - pad[0]
        if kernel[0] > 1 or pad[0] > 0:
            pixels[kd * rows * length : (kd + 1) * rows * length] = 0
        if z < 0 or z >= depth:
            continue
        for phase in range(stride[2]):
            start, stop = span(phase - pad[2], stride[2], width, part)
            if stop <= start:
                continue
            column = start * stride[2] + phase - pad[2]
            for row in range(begin, end):
                source = (z * height + row - pad[1]) * width + column
                target = (kd * rows + row) * length + phase * part + start
                _copy(flat, source, stride[2], stop - start, pixels, target)


@inner
def _three(taps, first, pixels, x, at, total):
    total = multiply_add(taps[first], load(pointer_to(pixels), x + at[first]), total)
    total = multiply_add(taps[first + 1], load(pointer_to(pixels), x + at[first + 1]), total)
    return multiply_add(taps[first + 2], load(pointer_to(pixels), x + at[first + 2]), total)


@inner
def _sum_window(taps, pixels, base, at, total):
    """The sum of a window's products, for neighbouring results from ``base`` on."""
    if taps.size == 9:  # nearly all there are: written out, their weights stay at hand
        total = _three(taps, 0, pixels, base, at, total)
        total = _three(taps, 3, pixels, base, at, total)
        return _three(taps, 6, pixels, base, at, total)
    for tap in range(taps.size):
        total = multiply_add(taps[tap], load(pointer_to(pixels), base + at[tap]), total)
    return total


@inner
def _finish_rows(taps, pixels, at, step, epilogue, od, lines, shape, lanes, target):
    """The rows ``lines`` of the output plane ``od``. ``step``: the frame's, from row to row."""
    scale, shift, act = epilogue
    zero, low, high, slope = splat(target.dtype.type(0)), splat(act[0]), splat(act[1]), act[2]
    last, (height, width) = splat(shift), shape
    end = (od * height + lines[1]) * width
    for oh in range(lines[0], lines[1]):
        to = (od * height + oh) * width
        for x in range(0, width, FIXED_LANES):
            total = _sum_window(taps, pixels, oh * step + x, at, zero)
            total = multiply_add(scale, total, last)
            total = select(greater(zero, total), scaled(slope, total), total)
            total = select(greater(low, total), low, total)
            total = select(greater(total, high), high, total)
            # Beyond a row's end comes the next one, which is written after it.
            if x + FIXED_LANES <= width or to + x + FIXED_LANES <= end:
                store(pointer_to(target), to + x, total)
            else:
                store(pointer_to(lanes), 0, total)
                for i in range(width - x):
                    target[to + x + i] = lanes[i]


@parallel
def _forward(share, data, weight, window, epilogue, out):
    scale, shift, act = epilogue
    batch, filters, depth, height, width = out.shape
    planes, multiplier = batch * filters, filters // data.shape[1]
    frame = _layout(window, height, width)
    pixels = _memory(frame, window[0][0], out.dtype)
    lanes = np.empty(FIXED_LANES, out.dtype)
    mine = rows_within(share, planes * depth, height)
    for plane in planes_of(mine, height):
        rest, od = divmod(plane, depth)
        n, f = divmod(rest, filters)
        taps, target = flat_of(weight[f]), flat_of(out[n, f])
        lines, of_filter = rows_of(plane, mine, height), (scale[f], shift[f], activation_of(act, f))
        _fill(data[n, f // multiplier], od, lines, window, frame, pixels)
        step, shape = window[1][1] * frame.length, (height, width)
        _finish_rows(taps, pixels, frame.at, step, of_filter, od, lines, shape, lanes, target)


@inner
def _add_taps(heads, pixels, at, height, wide, step, sums):
    """Add what each tap's pixels and the gradient make."""
    if at.size == 9:
        _nine_sums(heads, pixels, at, height, wide, step, sums)
        return
    for tap in range(at.size):
        total = splat(pixels.dtype.type(0))
        for oh in range(height):
            base = oh * step + at[tap]
            for x in range(0, wide, FIXED_LANES):
                head = load(pointer_to(heads), oh * wide + x)
                total = multiply_add(head, load(pointer_to(pixels), base + x), total)
        sums[tap] += sum_lanes(total)


@parallel
def _backward_weight(share, grad_out, data, window, grad_weight):
    batch, filters, depth, height, width = grad_out.shape
    multiplier = filters // data.shape[1]
    frame = _layout(window, height, width)
    pixels, step = _memory(frame, window[0][0], data.dtype), window[1][1] * frame.length
    wide = -(-width // FIXED_LANES) * FIXED_LANES
    # The gradient's rows, with zeros up to whole vectors.
    heads = np.zeros(height * wide + FIXED_LANES, data.dtype)
    for f in within(share, filters):
        sums = flat_of(grad_weight[f])
        sums[:] = 0
        for n in range(batch):
            flat = flat_of(grad_out[n, f])
            for od in range(depth):
                _fill(data[n, f // multiplier], od, (0, height), window, frame, pixels)
                for row in range(height):
                    _copy(flat, (od * height + row) * width, 1, width, heads, row * wide)
                _add_taps(heads, pixels, frame.at, height, wide, step, sums)


@inner
def _nine_sums(heads, pixels, at, height, wide, step, sums):
    """The sums of nine taps side by side: none waits for itself, and the gradient is read once."""
    a = b = c = d = e = f = g = h = i = splat(pixels.dtype.type(0))
    for row in range(height):
        for x in range(0, wide, FIXED_LANES):
            head, base = load(pointer_to(heads), row * wide + x), row * step + x
            a = multiply_add(head, load(pointer_to(pixels), base + at[0]), a)
            b = multiply_add(head, load(pointer_to(pixels), base + at[1]), b)
            c = multiply_add(head, load(pointer_to(pixels), base + at[2]), c)
            d = multiply_add(head, load(pointer_to(pixels), base + at[3]), d)
            e = multiply_add(head, load(pointer_to(pixels), base + at[4]), e)
            f = multiply_add(head, load(pointer_to(pixels), base + at[5]), f)
            g = multiply_add(head, load(pointer_to(pixels), base + at[6]), g)
            h = multiply_add(head, load(pointer_to(pixels), base + at[7]), h)
            i = multiply_add(head, load(pointer_to(pixels), base + at[8]), i)
    for tap, total in enumerate((a, b, c, d, e, f, g, h, i)):
        sums[tap] += sum_lanes(total)
