"""Pooling on C-contiguous float32 or float64 planes (planes, depth, height, width).

Fewer spatial axes than three are of length 1. ``pad`` may let windows hang over the image; what lies outside
takes no part, except in the divisor of a mean that counts padding.

``tests/reference.py`` has the same in plain loops: ``pooling``.
"""

import functools

import numpy as np

from ...jit import Calls, in_turn, inner, num_threads, parallel
from ...pooling_modes import INSIDE, MAXIMUM, MEAN, NORM, PADDED, SUM
from ...shares import rows_within, taken
from ..conv import masked
from ..scratch import Repeated
from ..vector import (
    FIXED_LANES,
    by_known_step,
    flat_of,
    greater,
    load,
    multiply_add,
    pick,
    pointer_to,
    select,
    splat,
    store,
)

#: Pixels of a plane that are summed before their sum is added to those before.
_TOGETHER = 1 << 14


@inner
def _clip(position, stride, pad, kernel, size):
    """The pixels ``[start, stop)`` of a window, and how long it is with its padding."""
    start = position * stride - pad
    stop = min(start + kernel, size + pad)
    padded = stop - start
    return max(start, 0), min(stop, size), padded


@inner
def _covered(row, height, window, shape):
    """Which row of windows ``row`` is, of which depth, and what it covers on these axes, as :func:`_clip`."""
    kernel, stride, pad = window
    od, oh = divmod(row, height)
    return (od, oh), (
        _clip(od, stride[0], pad[0], kernel[0], shape[1]),
        _clip(oh, stride[1], pad[1], kernel[1], shape[2]),
    )


@inner
def _power(x, p):
    return x * x if p == 2 else (x * x * x if p == 3 else x)


@inner
def _root(x, p):
    return np.sqrt(x) if p == 2 else (np.cbrt(x) if p == 3 else x)


@inner(forceinline=True)
def _combine(source, start, mode, p, line, at, count):
    """Take ``source[start + i]`` into ``line[at + i]``, by maximum or sum, for ``count`` neighbours.

    What follows in ``line``, less than a vector, is spoiled.
    """
    last = min(count, source.shape[0] - start - FIXED_LANES + 1) if mode != NORM else 0
    i = 0
    while i < last:
        v, r = load(pointer_to(source), start + i), load(pointer_to(line), at + i)
        if mode == MAXIMUM:
            store(pointer_to(line), at + i, select(greater(v, r), v, r))
        else:
            store(pointer_to(line), at + i, multiply_add(line.dtype.type(1), v, r))
        i += FIXED_LANES
    while i < count:
        v, r = source[start + i], line[at + i]
        if mode == MAXIMUM:
            line[at + i] = v if v > r else r
        else:
            line[at + i] = r + (_power(v, p) if mode == NORM else v)
        i += 1


#: The calls of arrays of each dtype: they are C-contiguous, so that their types follow from that.
_calls: dict = {}


def forward(data, *how_and_out):
    """Compute once what :func:`bind` describes."""
    bind(data, *how_and_out)()


def bind(data, *how_and_out):
    """A call of the maximum, mean, sum or p-norm of each window.

    After the data come the kernel, the stride and the padding, the mode, the norm's p, the divisor of
    means, whether padding competes in a maximum as 0, and the results.
    """
    work, (function, *arguments), results, divide = _plan(data, *how_and_out)

    def prepare(threads):
        return [(function, max(1, min(threads, _rows(results))), *arguments, results)]

    run = Repeated(_calls.setdefault(data.dtype, Calls()), work, prepare)
    return run if divide is None else in_turn(run, divide)


def _rows(results) -> int:
    """What is divided among threads."""
    return results.size // results.shape[-1] if results.ndim > 1 and results.size else results.size


def _plan(data, kernel, stride, pad, mode, p, divisor, pad_with_zero, out):
    """The work, the kernel with its arguments, its results, and what makes means of sums then, or None."""
    window = kernel, stride, pad
    if out.shape[1:] == (1, 1, 1) and kernel == data.shape[1:] and pad == (0, 0, 0) and mode != NORM:
        # Each pixel is read once: what takes time is that others than its reader may have written it.
        return data.size, (_whole_planes, data.reshape(-1), mode), out.reshape(-1), None
    divide = None
    if mode == MEAN:
        divide = functools.partial(np.divide, out, _counts(data.shape, *window, divisor, out), out)
    if mode != NORM and not pad_with_zero and masked.pools(data, kernel, stride, pad):
        return *masked.pooling(data, *window, mode == MAXIMUM, out), divide
    work = data.size * (kernel[1] + kernel[2]) / 4
    return work, (_windows, data, window, mode, p, pad_with_zero), out, divide


def _counts(shape, kernel, stride, pad, divisor, out):
    """What the sum of each window is divided by for its mean."""
    counts = []
    for axis in (1, 2, 3):
        start = np.arange(out.shape[axis]) * stride[axis - 1] - pad[axis - 1]
        stop = np.minimum(start + kernel[axis - 1], shape[axis] + pad[axis - 1])
        inside = np.maximum(np.minimum(stop, shape[axis]) - np.maximum(start, 0), 0)
        counts.append(
            inside if divisor == INSIDE else stop - start if divisor == PADDED else kernel[axis - 1]
        )
    depth, height, width = np.ix_(*map(np.atleast_1d, counts))
    # The last window of the 'full' convention may be past the image: its sum stays 0.
    return np.maximum(depth * height * width, 1).astype(out.dtype)


@parallel
def _whole_planes(share, data, mode, out):
    """The maximum, mean or sum of each plane; ``data`` and ``out`` are flat."""
    planes = out.shape[0]
    size = data.shape[0] // max(1, planes)
    whole = size // FIXED_LANES * FIXED_LANES
    lowest = np.finfo(data.dtype).min if mode == MAXIMUM else data.dtype.type(0)
    lanes = np.empty(FIXED_LANES, data.dtype)
    for plane in taken(share, planes):
        rest, total = data.dtype.type(lowest), data.dtype.type(lowest)
        last, end = plane * size + whole, (plane + 1) * size
        for start in range(plane * size, last, _TOGETHER):
            best = splat(data.dtype.type(lowest))
            for i in range(start, min(start + _TOGETHER, last), FIXED_LANES):
                some = load(pointer_to(data), i)
                if mode == MAXIMUM:
                    best = select(greater(some, best), some, best)
                else:
                    best = multiply_add(data.dtype.type(1), some, best)
            store(pointer_to(lanes), 0, best)
            if mode == MAXIMUM:
                for i in range(FIXED_LANES):
                    total = lanes[i] if lanes[i] > total else total
                continue
            for i in range(4):  # four sums that do not wait for each other
                lanes[i] += lanes[i + 4] + (lanes[i + 8] + lanes[i + 12])
            total += (lanes[0] + lanes[1]) + (lanes[2] + lanes[3])
        if mode == MAXIMUM:
            for i in range(last, end):
                rest = data[i] if data[i] > rest else rest
            total = rest if rest > total else total
        else:
            for i in range(last, end):
                rest += data[i]
            total += rest
        out[plane] = total / data.dtype.type(size) if mode == MEAN else total


@inner(forceinline=True)
def _combine_rows(image, rows, size, mode, p, line, at):
    """Take the rows of an image that a row of windows covers into ``line``, from ``at`` on."""
    (z0, z1, _), (y0, y1, _) = rows
    height, width = size
    for z in range(z0, z1):
        for y in range(y0, y1):
            _combine(image, (z * height + y) * width, mode, p, line, at, width)


@inner(forceinline=True)
def _finish_row(target, rows, window, size, mode, p):
    """What the sums of powers, or the maxima, of a row of windows become: padding competes as 0."""
    kernel, stride, pad = window
    (z0, z1, pad_z), (y0, y1, pad_y) = rows
    for ow in range(target.shape[0]):
        x0, x1, pad_x = _clip(ow, stride[2], pad[2], kernel[2], size)
        inside = max(z1 - z0, 0) * max(y1 - y0, 0) * max(x1 - x0, 0)
        if mode == NORM:
            target[ow] = _root(target[ow], p)
        elif inside < pad_z * pad_y * pad_x and target[ow] < 0:
            target[ow] = target.dtype.type(0)


@parallel
def _windows(share, data, window, mode, p, pad_with_zero, out):
    """Maxima, sums or norms. Rows are combined first, pixel by pixel, then the pixels of that one row."""
    kernel, stride, pad = window
    planes, _, in_height, in_width = data.shape
    _, depth, height, width = out.shape
    nothing = np.finfo(data.dtype).min if mode == MAXIMUM else data.dtype.type(0)
    length = max((width - 1) * stride[2] + kernel[2], pad[2] + in_width)
    steps = (width - 1) * stride[2] + 1
    # The row with its padding, and what each place and its right neighbours make together.
    line = np.empty(length + 2 * FIXED_LANES, data.dtype)
    sums = np.empty(steps + FIXED_LANES, data.dtype)
    first, stop = rows_within(share, planes * depth, height)
    for k in range(first, stop):
        plane, row = divmod(k, depth * height)
        (od, oh), rows = _covered(row, height, window, data.shape)
        line[:] = nothing
        _combine_rows(flat_of(data[plane]), rows, (in_height, in_width), mode, p, line, pad[2])
        line[pad[2] + in_width :] = nothing
        sums[:] = nothing
        for tap in range(kernel[2]):
            _combine(line, tap, SUM if mode == NORM else mode, 1, sums, 0, steps)
        target = out[plane, od, oh]
        pick(stride[2], sums, target)
        if mode == NORM or (mode == MAXIMUM and pad_with_zero):
            _finish_row(target, rows, window, in_width, mode, p)


def backward(grad_out, data, out, window, mode, p, divisor, all_maxima, grad_data):
    """Write the gradient of the data; ``window`` is ``(kernel, stride, pad)``.

    A maximum's goes to the first pixel that has it, or with ``all_maxima`` to each one.
    """
    if mode == MAXIMUM and not all_maxima:
        _backward_of_first(grad_out, data, window, grad_data)
        return
    if mode == MEAN:
        grad_out = grad_out / _counts(data.shape, *window, divisor, grad_out)
    if mode in (MEAN, SUM):
        _backward_of_sums(grad_out, window, grad_data)
    else:
        _backward(grad_out, data, out, window, mode, p, grad_data)


@by_known_step
def _spread(step, numbers, line):
    """Add to every ``step``-th number of ``line``."""
    for i in range(numbers.size):
        line[i * step] += numbers[i]


@inner(forceinline=True)
def _add_to_rows(line, rows, size, target):
    """Add a row to each of an image's that a row of windows covers."""
    (z0, z1, _), (y0, y1, _) = rows
    height, width = size
    for z in range(z0, z1):
        for y in range(y0, y1):
            row = target[(z * height + y) * width :]
            for x in range(np.uint64(width)):
                row[x] += line[x]


@parallel
def _backward_of_sums(share, grad_out, window, grad_data):
    """That of sums: all rows of pixels under a row of windows get the same."""
    kernel, stride, pad = window
    _, depth, height, width = grad_out.shape
    planes, _, in_height, in_width = grad_data.shape
    line = np.empty(max((width - 1) * stride[2] + kernel[2], pad[2] + in_width), grad_out.dtype)
    for plane in taken(share, planes):
        grad_data[plane] = 0
        for row in range(depth * height):
            (od, oh), rows = _covered(row, height, window, grad_data.shape)
            line[:] = 0
            for tap in range(kernel[2] - 1, -1, -1):  # windows from left to right
                _spread(stride[2], grad_out[plane, od, oh], line[tap:])
            _add_to_rows(line[pad[2] :], rows, (in_height, in_width), flat_of(grad_data[plane]))


@parallel
def _backward_of_first(share, grad_out, data, window, grad_data):
    """That of a maximum, to the first pixel that has it: the windows of a row are searched side by side."""
    kernel, stride, pad = window
    planes, _, in_height, in_width = data.shape
    _, depth, height, width = grad_out.shape
    lowest = np.finfo(data.dtype).min
    best, chosen = np.empty(width, data.dtype), np.empty(width, np.int32)
    away = np.empty(kernel[0] * kernel[1] * kernel[2], np.int64)
    for k in range(away.size):  # how far each tap lies from a window's first
        rest, kx = divmod(k, kernel[2])
        kz, ky = divmod(rest, kernel[1])
        away[k] = (kz * in_height + ky) * in_width + kx
    for plane in taken(share, planes):
        pixels, target = flat_of(data[plane]), flat_of(grad_data[plane])
        target[:] = 0
        for row in range(depth * height):
            (od, oh), rows = _covered(row, height, window, data.shape)
            best[:] = lowest
            chosen[:] = -1
            z, y = od * stride[0] - pad[0], oh * stride[1] - pad[1]
            first = (z * in_height + y) * in_width - pad[2]
            _search_rows(pixels, rows, (z, y), first, window, in_width, away, best, chosen)
            for ow in range(width):
                if chosen[ow] >= 0:
                    target[first + away[chosen[ow]] + ow * stride[2]] += grad_out[plane, od, oh, ow]


@inner(forceinline=True)
def _search_rows(pixels, rows, corner, first, window, size, away, best, chosen):
    """Search a row of windows, the first of which begins at ``corner``, which is pixel ``first``."""
    kernel, stride, pad = window
    (z0, z1, _), (y0, y1, _) = rows
    z, y = corner
    for kz in range(z0 - z, z1 - z):
        for ky in range(y0 - y, y1 - y):
            for kx in range(kernel[2]):
                left = kx - pad[2]
                # The windows that have this tap inside the image.
                begin = max(0, -(left // stride[2]))
                end = max(begin, min(best.size, (size - 1 - left) // stride[2] + 1))
                k = (kz * kernel[1] + ky) * kernel[2] + kx
                at = first + away[k] + begin * stride[2]
                _search(stride[2], pixels[at:], np.int32(k), best[begin:end], chosen[begin:end])


@by_known_step
def _search(step, pixels, tap, best, chosen):
    """Keep every ``step``-th of the pixels, and its ``tap``, if it is more than ``best``."""
    for i in range(best.size):
        more = pixels[i * step] > best[i]
        best[i] = pixels[i * step] if more else best[i]
        chosen[i] = tap if more else chosen[i]


@inner(forceinline=True)
def _due(pixel, mode, p, result, g):
    """What a pixel of a window gets of the gradient of the result."""
    if mode == MAXIMUM:
        return g if pixel == result else type(g)(0)
    return g * _power(pixel / result, p - 1) if p > 1 else g


@inner(forceinline=True)
def _give(pixels, target, rows, columns, mode, p, result, g):
    """Add to each pixel of a window what is its due."""
    (z0, z1, _), (y0, y1, _), (x0, x1, _) = rows[0], rows[1], columns
    if mode == NORM and p > 1 and result == 0:
        return
    for z in range(z0, z1):
        for y in range(y0, y1):
            for x in range(x0, x1):
                target[z, y, x] += _due(pixels[z, y, x], mode, p, result, g)


@parallel
def _backward(share, grad_out, data, out, window, mode, p, grad_data):
    """That of maxima, each to all pixels that have it, and of norms."""
    kernel, stride, pad = window
    _, depth, height, width = out.shape
    for plane in taken(share, data.shape[0]):
        grad_data[plane] = 0
        for row in range(depth * height):
            (od, oh), rows = _covered(row, height, window, data.shape)
            for ow in range(width):
                columns = _clip(ow, stride[2], pad[2], kernel[2], data.shape[3])
                result, g = out[plane, od, oh, ow], grad_out[plane, od, oh, ow]
                _give(data[plane], grad_data[plane], rows, columns, mode, p, result, g)


def _cells(count, size):
    """The pixels of each of ``count`` cells, from ``floor(i * size / count)`` on, and past the last."""
    i = np.arange(count)
    return i * size // count, -((i + 1) * size // -count)


def bind_adaptive(data, out):
    """A call of the mean over a grid of windows."""
    sizes = list(zip(out.shape[1:], data.shape[1:], strict=True))
    if all(size % count == 0 for count, size in sizes):
        kernel = (1, *(size // count for count, size in sizes))
        how = kernel, kernel, (0, 0, 0), MEAN, 1, INSIDE, False
        return bind(data[:, None], *how, out[:, None])
    rows, columns = (_cells(*each) for each in sizes)

    def call():
        _adaptive_forward.by(num_threads(data.size))(data, rows, columns, out)

    return call


@parallel
def _adaptive_forward(share, data, rows, columns, out):
    planes, height, width = out.shape
    for plane in taken(share, planes):
        source = data[plane]
        for cell in range(height * width):
            i, k = divmod(cell, width)
            total = 0.0
            for y in range(rows[0][i], rows[1][i]):
                for x in range(columns[0][k], columns[1][k]):
                    total += source[y, x]
            pixels = (rows[1][i] - rows[0][i]) * (columns[1][k] - columns[0][k])
            out[plane, i, k] = total / pixels


def adaptive_backward(grad_out, grad_data):
    rows, columns = (_cells(*sizes) for sizes in zip(grad_out.shape[1:], grad_data.shape[1:], strict=True))
    _adaptive_backward.by(num_threads(grad_data.size))(grad_out, rows, columns, grad_data)


@parallel
def _adaptive_backward(share, grad_out, rows, columns, grad_data):
    planes, height, width = grad_out.shape
    for plane in taken(share, planes):
        target = grad_data[plane]
        target[:] = 0
        for cell in range(height * width):
            i, k = divmod(cell, width)
            pixels = (rows[1][i] - rows[0][i]) * (columns[1][k] - columns[0][k])
            of_each = grad_out[plane, i, k] / grad_out.dtype.type(pixels)
            for y in range(rows[0][i], rows[1][i]):
                for x in range(columns[0][k], columns[1][k]):
                    target[y, x] += of_each
