"""Convolution: the choice of a way to compute it, the general way, and gradients.

One, two and three spatial axes are all handled as three (depth, height, width), the missing ones of
length 1. ``window`` is ``(kernel, stride, dilate, pad)``, each a tuple of three. Arrays are C-contiguous
float32 or float64: data ``(N, C, D, H, W)``, weight ``(F, C / groups, kd, kh, kw)``.

The general way unrolls images into columns and multiplies matrices. The columns of a whole image are never
held: output rows are taken in blocks of about ``AT_ONCE`` bytes.

``tests/reference.py`` has the same in plain loops: ``convolution``.
"""

import functools
import math

import numpy as np

from ...jit import Calls, inner, parallel, within
from ..network import norm
from ..product.emitter import ROWS, activation
from ..product.matmul import bind_few_rows, matmul
from ..product.turn import turn
from ..scratch import Repeated
from ..vector import BLOCK, MACHINE_LANES
from . import cost as conv_cost
from . import depthwise as conv_depthwise
from . import weight as conv_weight
from . import weight_winograd as conv_weight_winograd
from .dilated import Dilated
from .filters import ByFilters
from .phases import Phases
from .pointwise import Pointwise
from .shifted import Shifted
from .taps import ByTaps
from .transposed import Transposed
from .winograd import Winograd

_IDENTITY = activation()
#: Bytes of unrolled columns held at once.
AT_ONCE = 4 << 20
#: Of fewer tiles or pixels, the gradient of a weight is a product of matrices.
FEW_TILES, FEW_PIXELS = 4, 400


class Forward:
    """``out = act(scale * convolution(entry(data)) + shift + other)``.

    One is kept for each convolution, with the workspace of its way. Single precision on one or two
    axes takes the fast ways, which finish the results while they are at hand.
    """

    def __init__(self, window, groups: int):
        self._window, self._groups = window, groups
        self._key = None

    @staticmethod
    def finishes(data) -> bool:
        """Whether ``data`` takes a fast way, and so ``scale``, ``other`` and ``act`` may be given."""
        return data.dtype == np.float32 and data.shape[2] == 1

    def __call__(self, data, weight, bias, out, **how):
        """Compute once what :meth:`bind` describes."""
        self.bind(data, weight, bias, out, **how)()

    def bind(self, data, weight, bias, out, *, finish=None, other=None, act=_IDENTITY, entry=None):
        """A call that computes into ``out``, again and again. ``bias`` may be None.

        ``finish``: gamma, beta, mean, variance and eps of a batch normalisation of the results. ``other`` may
        be ``out``. ``entry`` is an :class:`~..product.tiles.Entry` as a plain tuple, where
        :meth:`enters` says that it may be given.
        """
        if out.size == 0:
            return lambda: None
        flat = weight.shape[2] == 1 and self._window[3][0] == 0
        if not (flat and self.finishes(data)):
            return functools.partial(forward, data, weight, bias, self._window, self._groups, out)
        key = data.shape, weight.shape, entry is not None
        if key != self._key:
            self._key = key
            self._taps, window = self._taps_in_use(data.shape, out.shape)
            used = weight if self._taps is None else weight[self._taps]
            self._way = Forward(window, self._groups)._choose(data.shape, used.shape, out.shape, *key[2:])
        way, taps = self._way, self._taps
        scale, shift = np.ones((2, len(weight) + max(ROWS, MACHINE_LANES)), np.float32)
        images = data[:, :, 0], None if other is None else other[:, :, 0], out[:, :, 0]

        def bind_way(weight):
            weight = weight if taps is None else np.ascontiguousarray(weight[taps])
            arrays = images[0], weight[:, :, 0], scale, shift, act, *images[1:]
            if entry is not None:
                return way.bind(*arrays, entry)
            return way.bind(*arrays) if hasattr(way, "bind") else functools.partial(way, *arrays)

        if taps is not None:  # they are copied anew in each call

            def run():
                bind_way(weight)()
        else:
            run = bind_way(weight)
        results = scale[: len(weight)], shift[: len(weight)]
        if finish is not None:
            return _fold_before(run, (*finish, bias, *results))
        if bias is None:
            results[1][:] = 0
            return run
        return _Sequence(functools.partial(np.copyto, results[1], bias), run)

    def enters(self, data_shape, weight_shape, out_shape) -> bool:
        """Whether the way for weights of these shapes takes an ``entry``."""
        if 0 in out_shape or weight_shape[2] > 1 or self._window[3][0] > 0:
            return False
        if self._taps_in_use(data_shape, out_shape)[0] is not None:
            return False
        return getattr(self._choose(data_shape, weight_shape, out_shape, True), "enters", False)

    def _taps_in_use(self, data_shape, out_shape):
        """Where the taps that see a pixel anywhere lie in a weight, or None where all do, and their window.

        Taps that lie so far apart that some see nothing but the zeros around an image are common in pyramids
        of dilated convolutions.
        """
        slices, axes = [slice(None)] * 3, [tuple(values[0] for values in self._window)]
        for kernel, stride, dilate, pad, size, count in zip(
            *(values[1:] for values in self._window), data_shape[3:], out_shape[3:], strict=True
        ):
            starts = [place * stride - pad for place in range(count)]
            sees = [k for k in range(kernel) if any(0 <= s + k * dilate < size for s in starts)]
            if self._groups > 1 or not sees:
                sees = range(kernel)
            slices.append(slice(sees[0], sees[-1] + 1))
            axes.append((sees[-1] + 1 - sees[0], stride, dilate, pad - sees[0] * dilate))
        window = tuple(zip(*axes, strict=True))
        return None if window == self._window else tuple(slices), window

    def _choose(self, data_shape, weight_shape, out_shape, entered=False):
        """The cheapest way. With ``entered`` the data are to be normalised before, or on the way."""
        kernel, stride, dilate, pad = (values[1:] for values in self._window)
        if self._groups == data_shape[1] > 1:
            return _Depthwise(*self._window)
        whole = out_shape[3:] == (1, 1) and kernel == data_shape[3:] and pad == (0, 0)
        if whole and self._groups == 1 and data_shape[0] < ROWS:  # more images fill a tile
            return _OnePixel()
        window = kernel, stride, dilate, pad
        layer = out_shape[0], data_shape[1], weight_shape[0]
        groups, size = self._groups, out_shape[3:]
        costs = {ByFilters(*window, groups): conv_cost.by_filters(*layer, groups, size, kernel, stride, pad)}
        # Of a window without the taps that see nothing, results may lie beyond the image, where all is zero.
        inside = all((n - 1) * s < d for n, s, d in zip(size, stride, data_shape[3:], strict=True))
        if (kernel, pad) == ((1, 1), (0, 0)) and inside and (stride != (1, 1) or size == data_shape[3:]):
            costs[Pointwise(stride, groups)] = conv_cost.pointwise(*layer, groups, size)
        else:
            costs[Shifted(*window, groups)] = conv_cost.shifted(*layer, groups, size, *window)
        if (kernel, stride, dilate) == ((3, 3), (1, 1), (1, 1)) and min(pad) >= 0 and max(pad) <= 3:
            costs[Winograd(pad, groups)] = conv_cost.winograd(*layer, groups, size)
        elif (kernel, stride) == ((3, 3), (1, 1)):
            costs[Dilated(dilate, pad, groups)] = conv_cost.dilated(*layer, groups, size, dilate)
        if stride == (1, 1) and dilate != (1, 1) and groups == 1:
            way = ByTaps(kernel, dilate, pad)
            costs[way] = conv_cost.by_taps(*layer, size, kernel, dilate, pad, data_shape[3:])
        if entered:
            apart = conv_cost.normalised(*data_shape[:2], data_shape[3:])
            costs = {
                way: cost + (0 if getattr(way, "enters", False) else apart) for way, cost in costs.items()
            }
        return min(costs, key=costs.get)


class _Sequence:
    """Two calls, one after the other."""

    __slots__ = ("first", "second")

    def __init__(self, first, second):
        self.first, self.second = first, second

    def __call__(self):
        self.first()
        self.second()


class _Depthwise:
    def __init__(self, *window):
        self._window = window
        self._call = Calls()

    def __call__(self, *arrays):
        self.bind(*arrays)()

    def bind(self, data, weight, scale, shift, act, other, out):
        now = act if other is None else _IDENTITY
        run = conv_depthwise.bind(
            self._call, data[:, :, None], weight[:, :, None], self._window, scale, shift, now, out[:, :, None]
        )
        if other is None:
            return run

        def run_and_add():
            added = other.copy() if np.shares_memory(other, out) else other
            run()
            np.add(out, added, out=out)
            _activate(out, act)

        return run_and_add


class _OnePixel:
    """A window as large as the image: each image's result is one pixel, and the weight is read once."""

    def __init__(self):
        self._call = Calls()

    def __call__(self, *arrays):
        self.bind(*arrays)()

    def bind(self, data, weight, scale, shift, act, other, out):
        filters = len(weight)
        other, results = (None if each is None else each.reshape(-1, filters) for each in (other, out))
        data, weight, zeros = data.reshape(len(data), -1), weight.reshape(filters, -1), np.zeros_like(shift)
        scale, shift = scale[:filters], shift[:filters]
        multiply = bind_few_rows(data, weight, zeros, results, self._call)

        def run():
            added = None if other is None else other.copy()  # it may be the memory of the results
            multiply()
            np.multiply(results, scale, results)
            np.add(results, shift, results)
            if added is not None:
                np.add(results, added, results)
            _activate(results, act)

        return run


def _activate(values, act):
    """Take ``values`` through an :func:`activation`, in place."""
    floor, ceiling, slope = act
    np.multiply(values, slope, out=values, where=values < 0)
    np.minimum(np.maximum(values, floor, out=values), ceiling, out=values)


def _fold_before(run, arrays):
    """``run`` after :func:`~.norm.fold`."""
    fold = norm.fold, 1, *arrays
    if isinstance(run, Repeated):
        run.first.append(fold)
        return run
    return _Sequence(Repeated(Calls(), 0, lambda _: [fold]), run)


def forward(data, weight, bias, window, groups, out):
    """``out[n, f] = bias[f] + sum over the window of weight[f] * data[n]``; ``bias`` may be None."""
    if out.size == 0:
        return
    if conv_depthwise.is_depthwise(data, groups):
        ones, zeros = np.ones(len(weight), data.dtype), np.zeros(len(weight), data.dtype)
        conv_depthwise.forward(data, weight, window, ones, zeros, activation(dtype=data.dtype), out)
    else:
        _forward_unrolled(data, weight, window, groups, out)
    if bias is not None:
        out += bias.reshape(-1, 1, 1, 1)


def _forward_unrolled(data, weight, window, groups, out):
    filters, per_group = len(weight) // groups, weight.shape[1]
    matrix = weight.reshape(groups, filters, -1)
    for image, result in zip(data, out, strict=True):
        for g in range(groups):
            group = image[g * per_group : (g + 1) * per_group]
            target = result[g * filters : (g + 1) * filters].reshape(filters, -1)
            for start, stop, columns in _blocks(group, window, out.shape[2:]):
                matmul(matrix[g], columns, target[:, start:stop])


def _blocks(image, window, out_size, load=True):
    """The columns of an image block by block: ``(first position, last, columns)``."""
    kernel, stride, dilate, pad = window
    if kernel == stride == (1, 1, 1) and pad == (0, 0, 0):
        yield 0, image[0].size, image.reshape(len(image), -1)
        return
    depth, height, width = out_size
    taps = len(image) * int(np.prod(kernel))
    rows = depth * height
    step = max(1, min(rows, AT_ONCE // max(1, taps * width * image.itemsize)))
    buffer = np.empty((taps, step * width), image.dtype)
    for first in range(0, rows, step):
        last = min(first + step, rows)
        columns = buffer[:, : (last - first) * width]
        if load:
            unroll(image, kernel, stride, dilate, pad, height, width, first, columns)
        yield first * width, last * width, columns


@inner
def _span(offset, stride, size, length):
    """The output positions ``[start, stop)`` for which ``offset + stride * position`` is in ``[0, size)``."""
    start = 0 if offset >= 0 else (-offset + stride - 1) // stride
    stop = (size - offset + stride - 1) // stride if size > offset else 0
    start = min(start, length)
    return start, max(start, min(stop, length))


@parallel
def unroll(share, image, kernel, stride, dilate, pad, height, width, first, columns):
    """Columns of the output rows from ``first`` on, as many as ``columns`` holds (im2col)."""
    _, in_depth, in_height, in_width = image.shape
    area = kernel[1] * kernel[2]
    count = columns.shape[1] // max(width, 1)
    for tap in within(share, columns.shape[0]):
        c, rest = divmod(tap, kernel[0] * area)
        kd, rest = divmod(rest, area)
        kh, kw = divmod(rest, kernel[2])
        left = kw * dilate[2] - pad[2]
        start, stop = _span(left, stride[2], in_width, width)
        for row in range(count):
            od, oh = divmod(first + row, height)
            z = od * stride[0] + kd * dilate[0] - pad[0]
            y = oh * stride[1] + kh * dilate[1] - pad[1]
            target = columns[tap, row * width : (row + 1) * width]
            if z < 0 or z >= in_depth or y < 0 or y >= in_height:
                target[:] = 0
                continue
            source = image[c, z, y]
            target[:start] = 0
            target[stop:] = 0
            if stride[2] == 1:
                target[start:stop] = source[left + start : left + stop]
            else:
                for x in range(start, stop):
                    target[x] = source[left + x * stride[2]]


@parallel
def roll(share, columns, kernel, stride, dilate, pad, height, width, first, image):
    """Add columns back to the pixels that :func:`unroll` takes them from (col2im)."""
    channels, in_depth, in_height, in_width = image.shape
    taps = kernel[0] * kernel[1] * kernel[2]
    area = kernel[1] * kernel[2]
    count = columns.shape[1] // max(width, 1)
    for channel in within(share, channels):
        c = np.int64(channel)
        for tap in range(taps):
            kd, rest = divmod(tap, area)
            kh, kw = divmod(rest, kernel[2])
            left = kw * dilate[2] - pad[2]
            start, stop = _span(left, stride[2], in_width, width)
            for row in range(count):
                od, oh = divmod(first + row, height)
                z = od * stride[0] + kd * dilate[0] - pad[0]
                y = oh * stride[1] + kh * dilate[1] - pad[1]
                if z < 0 or z >= in_depth or y < 0 or y >= in_height:
                    continue
                source = columns[c * taps + tap, row * width : (row + 1) * width]
                target = image[c, z, y]
                if stride[2] == 1:
                    for x in range(start, stop):
                        target[left + x] += source[x]
                else:
                    for x in range(start, stop):
                        target[left + x * stride[2]] += source[x]


class BackwardData:
    """The transpose of a convolution: of ``grad_out``, the gradient of the data, written to ``grad_data``.

    One is kept for each convolution or deconvolution, as :class:`Forward` is.
    """

    def __init__(self, window, groups: int):
        self._window, self._groups = window, groups
        kernel, stride, dilate, pad = window
        rest = tuple(d * (k - 1) - p for k, d, p in zip(kernel, dilate, pad, strict=True))
        self._again = self._phases = self._transposed = None
        if groups == 1 and stride == (1, 1, 1) and min(rest) >= 0:
            # With steps of 1 it is a convolution again, by the filters turned round.
            self._again = Forward((kernel, stride, dilate, rest), 1)
        elif groups == 1 and kernel[0] == stride[0] == 1 and pad[0] == 0:
            self._phases = Phases(window, lambda part: Forward(part, 1))
            self._transposed = Transposed(window)

    def __call__(self, grad_out, weight, grad_data, bias=None, *, steady=False, **finish):
        """``steady``: the weight is likely to be the same in the next call.

        ``finish`` and ``act`` are for float32 without groups.
        """
        if Forward.finishes(grad_out) and grad_out.size and grad_data.size:
            if self._again is not None:
                self._again(grad_out, turn(weight), bias, grad_data, **finish)
                return
            if self._transposed is not None and Transposed.suits(grad_out.shape, weight.shape):
                self._transposed(grad_out, weight, bias, grad_data, **finish)
                return
            if self._phases is not None:
                self._phases(grad_out, weight, bias, grad_data, steady=steady, **finish)
                return
        backward_data(grad_out, weight, self._window, self._groups, grad_data)
        if bias is not None:
            grad_data += bias.reshape(-1, 1, 1, 1)


def backward_data(grad_out, weight, window, groups, grad_data):
    """Write the gradient of the data (the transposed convolution of ``grad_out``) in the general way."""
    if conv_depthwise.is_depthwise(grad_data, groups):
        conv_depthwise.backward_data(grad_out, weight, window, grad_data)
        return
    kernel, stride, dilate, pad = window
    filters, per_group = len(weight) // groups, weight.shape[1]
    matrix = weight.reshape(groups, filters, -1).transpose(0, 2, 1)
    direct = kernel == stride == (1, 1, 1) and pad == (0, 0, 0)
    if not direct:
        grad_data[...] = 0
    _, _, _, height, width = grad_out.shape
    for head, target in zip(grad_out, grad_data, strict=True):
        for g in range(groups):
            pixels = target[g * per_group : (g + 1) * per_group]
            rows = head[g * filters : (g + 1) * filters].reshape(filters, -1)
            for start, stop, columns in _blocks(pixels, window, grad_out.shape[2:], load=False):
                matmul(matrix[g], rows[:, start:stop], columns)
                if not direct:
                    roll(columns, kernel, stride, dilate, pad, height, width, start // width, pixels)


def backward_weight(grad_out, data, window, groups, grad_weight):
    """Write the gradient of the weight."""
    if conv_depthwise.is_depthwise(data, groups):
        conv_depthwise.backward_weight(grad_out, data, window, grad_weight)
        return
    kernel, stride, dilate, pad = window
    flat = kernel[0] == 1 and pad[0] == 0 and Forward.finishes(data)
    # Products of matrices are faster where nothing is to be unrolled, or tiles would be half empty.
    unrolled = kernel != (1, 1, 1) and stride == (1, 1, 1) and groups == 1
    if flat and unrolled and data.shape[1] >= ROWS:
        arrays = grad_out[:, :, 0], data[:, :, 0]
        # Tiles of BLOCK channels are transformed at a time, and lose some of the last digits.
        square = kernel[1:] == (3, 3) and dilate[1:] == (1, 1) and data.shape[1] >= BLOCK
        if square and conv_weight_winograd.count_tiles(grad_out.shape) >= FEW_TILES:
            conv_weight_winograd.three_by_three(*arrays, pad[1:], grad_weight[:, :, 0])
            return
        if len(grad_out) * math.prod(grad_out.shape[2:]) >= FEW_PIXELS:
            conv_weight.steps_of_one(*arrays, kernel[1:], dilate[1:], pad[1:], grad_weight[:, :, 0])
            return
    filters, per_group = len(grad_weight) // groups, grad_weight.shape[1]
    matrix = grad_weight.reshape(groups, filters, -1)
    for g in range(groups):
        first = True
        for head, image in zip(grad_out, data, strict=True):
            group = image[g * per_group : (g + 1) * per_group]
            rows = head[g * filters : (g + 1) * filters].reshape(filters, -1)
            for start, stop, columns in _blocks(group, window, grad_out.shape[2:]):
                matmul(rows[:, start:stop], columns.T, matrix[g], add=not first)
                first = False
        if first:
            matrix[g] = 0
