"""Convolution: the choice of a way to compute it, the general way, and gradients.

One, two and three spatial axes are all handled as three (depth, height, width), the missing ones of
length 1. ``window`` is ``(kernel, stride, dilate, pad)``, each a tuple of three. Arrays are C-contiguous
float32 or float64: data ``(N, C, D, H, W)``, weight ``(F, C / groups, kd, kh, kw)``.

Volumes of float32 become images with more channels (``conv/volumes.py``). The general way unrolls images into
columns (``conv/columns.py``) and multiplies matrices.
"""

import functools
import math

import numpy as np

from ... import memory, ways
from ...jit import Calls, in_turn
from ..network import norm
from ..product.emitter import IDENTITY, ROWS, activate
from ..product.emitter import activation as activation  # operators have it from here
from ..product.machine import HERE, Machine
from ..product.matmul import matmul
from ..product.turn import turn
from ..scratch import Repeated
from ..tensor import copies
from ..vector import BLOCK
from . import depthwise as conv_depthwise
from . import volumes
from . import weight as conv_weight
from . import weight_winograd as conv_weight_winograd
from .columns import blocks, move
from .depthwise import Depthwise
from .dilated import Dilated
from .filters import ByFilters
from .one_pixel import OnePixel
from .phases import Phases
from .pointwise import Pointwise
from .shifted import Shifted
from .taps import ByTaps
from .way import ROOM, Arrays, Layer, Way, ceil_div
from .winograd import Winograd

#: Of fewer tiles or pixels, the gradient of a weight is a product of matrices.
FEW_TILES, FEW_PIXELS = 4, 400
#: So many filters take as long to be sorted by phases as a row of pixels takes to be added to the results.
ROW_SORTED = 60


#: All ways of a forward convolution of float32 images on one or two axes.
WAYS = (Depthwise, OnePixel, ByFilters, Pointwise, Shifted, Winograd, Dilated, ByTaps)


for _way in WAYS:
    ways.declare(_way.name, "convolutions", "layers that it suits", "where it costs least")


def costs(layer: Layer, machine: Machine = HERE, *, normalised=False) -> dict[type[Way], float]:
    """What each way that suits costs. With ``normalised`` data are normalised before, or on the way."""
    found = {}
    for way in WAYS:
        if way.suits(layer, machine):
            apart = normalised and not way.takes_prologue(layer)
            found[way] = way.cost(layer, machine) + (_pass_over(layer, machine) if apart else 0)
    return found


def choose(layer: Layer, machine: Machine = HERE, *, normalised=False) -> type[Way]:
    """The cheapest way; the first of ``ROIOPS_WAY`` that can compute the layer, where there is one."""
    for name in ways.asked():
        for way in WAYS:
            if way.name == name and way.suits(layer, machine):
                return way
    return _cheapest(layer, machine, normalised)


@functools.lru_cache(4096)  # an operator called by itself asks in each call
def _cheapest(layer, machine, normalised):
    found = costs(layer, machine, normalised=normalised)
    return min(found, key=found.get)


def _pass_over(layer, machine) -> float:
    """Batch norm of the data in a pass of its own; from a cache that is not the nearest, and back to it."""
    return 20 * ceil_div(layer.batch * math.prod(layer.in_size), machine.lanes) * layer.channels


class Forward:
    """``out = act(scale * convolution(prologue(data)) + shift + other)``.

    One is kept for each convolution, with the workspace of its way. Single precision on one or two
    axes takes the fast ways, which finish the results while they are at hand.
    """

    def __init__(self, window, groups: int):
        self._window, self._groups = window, groups
        self._key = None

    @staticmethod
    def finishes(data) -> bool:
        """Whether ``data`` takes a fast way, and so ``batch_norm``, ``other`` and ``act`` may be given."""
        return data.dtype == np.float32 and data.shape[2] == 1

    def __call__(self, data, weight, bias, out, **how):
        """Compute once what :meth:`bind` describes."""
        self.bind(data, weight, bias, out, **how)()

    def bind(self, data, weight, bias, out, *, batch_norm=None, other=None, act=IDENTITY, prologue=None):
        """A call that computes into ``out``, again and again. ``bias`` may be None.

        ``batch_norm``: gamma, beta, mean, variance and eps of a batch normalisation of the results. ``other``
        may be ``out``. The slopes of ``act`` may be one for all filters. ``prologue`` is a
        :class:`~..product.tiles.Prologue` as a plain tuple, where :meth:`takes_prologue` says that it may be
        given.
        """
        if out.size == 0:
            return lambda: None
        flat = weight.shape[2] == 1 and self._window[3][0] == 0
        if not (flat and self.finishes(data)):
            return functools.partial(forward, data, weight, bias, self._window, self._groups, out)
        key = data.shape, weight.shape, prologue is not None, *ways.asked()
        if key != self._key:
            self._key = key
            self._taps, layer = _layer(self._window, self._groups, data.shape, weight.shape, out.shape)
            self._way = choose(layer, normalised=prologue is not None)(layer)
        way, taps = self._way, self._taps
        scale, shift, slope = np.ones((3, len(weight) + ROOM), np.float32)
        *bounds, slopes = act
        if slopes.size:
            act = *bounds, slope
        added = None if other is None else other[:, :, 0]

        seen = weight if taps is None else np.empty_like(weight[taps], order="C")
        given = data[:, :, 0], seen[:, :, 0], scale, shift, act, added, out[:, :, 0], prologue
        run = way.bind(Arrays(*given))
        if taps is not None:
            run = in_turn(functools.partial(np.copyto, seen, weight[taps]), run)
        results = scale[: len(weight)], shift[: len(weight)]
        if batch_norm is not None:
            run = _fold_before(run, (*batch_norm, bias, *results))
        elif bias is None:
            results[1][:] = 0
        else:
            run = in_turn(functools.partial(np.copyto, results[1], bias), run)
        if slopes.size:
            return in_turn(functools.partial(np.copyto, slope[: len(weight)], slopes), run)
        return run

    def cost(self, data_shape, weight_shape, out_shape) -> float:
        """What the cheapest way for arrays of these shapes costs."""
        return min(costs(_layer(self._window, self._groups, data_shape, weight_shape, out_shape)[1]).values())

    def takes_prologue(self, data_shape, weight_shape, out_shape) -> bool:
        """Whether the way for weights of these shapes takes a ``prologue``."""
        if 0 in out_shape or weight_shape[2] > 1 or self._window[3][0] > 0:
            return False
        taps, layer = _layer(self._window, self._groups, data_shape, weight_shape, out_shape)
        return taps is None and choose(layer, normalised=True).takes_prologue(layer)


@functools.lru_cache(4096)  # an operator called by itself asks in each call
def _layer(window, groups, data_shape, weight_shape, out_shape):
    """Where the taps that see a pixel lie in a weight, or None where all do; and the layer of those taps.

    Taps that lie so far apart that some see nothing but the zeros around an image are common in pyramids
    of dilated convolutions. All taps are computed where to copy those that see pixels would take longer.
    """
    slices, axes = [slice(None)] * 3, []
    for kernel, stride, dilate, pad, size, count in zip(
        *(values[1:] for values in window), data_shape[3:], out_shape[3:], strict=True
    ):
        starts = [place * stride - pad for place in range(count)]
        sees = [k for k in range(kernel) if any(0 <= s + k * dilate < size for s in starts)]
        if groups > 1 or not sees:
            sees = range(kernel)
        slices.append(slice(sees[0], sees[-1] + 1))
        axes.append((sees[-1] + 1 - sees[0], stride, dilate, pad - sees[0] * dilate))
    numbers = (
        out_shape[0],
        data_shape[1],
        weight_shape[0],
        groups,
        tuple(data_shape[3:]),
        tuple(out_shape[3:]),
    )
    whole = Layer(*numbers, *(values[1:] for values in window))
    seen = Layer(*numbers, *zip(*axes, strict=True))
    copied = HERE.single * seen.filters * seen.terms
    if seen == whole or min(costs(whole).values()) <= min(costs(seen).values()) + copied:
        return None, whole
    return tuple(slices), seen


def _fold_before(run, arrays):
    """``run`` after :func:`~.norm.fold`."""
    fold = norm.fold, 1, *arrays
    if isinstance(run, Repeated):
        run.first.append(fold)
        return run
    return in_turn(Repeated(Calls(), 0, lambda _: [fold]), run)


def forward(data, weight, bias, window, groups, out):
    """``out[n, f] = bias[f] + sum over the window of weight[f] * data[n]``; ``bias`` may be None."""
    if out.size == 0:
        return
    if conv_depthwise.is_depthwise(data, groups):
        conv_depthwise.forward(data, weight, window, out)
    elif _are_volumes(data, window, groups):
        _forward_volumes(data, weight, window, out)
    else:
        _forward_unrolled(data, weight, window, groups, out)
    if bias is not None:
        out += bias.reshape(-1, 1, 1, 1)


def _are_volumes(data, window, groups) -> bool:
    """Whether :mod:`volumes` makes images of them; single pixels need no unrolling."""
    several = groups == 1 and data.dtype == np.float32 and data.shape[2] > 1
    return several and window[:2] != ((1, 1, 1), (1, 1, 1))


def _of_images(window, weight):
    """The window and the weight of what :mod:`volumes` makes images of."""
    one = ((1, *values[1:]) for values in window[:3])
    filters, channels, taps, *kernel = weight.shape
    return (*one, (0, *window[3][1:])), weight.reshape(filters, channels * taps, 1, *kernel)


def _as_images(images):
    count, channels, taps, *size = images.shape
    return images.reshape(count, channels * taps, 1, *size)


def _forward_volumes(data, weight, window, out):
    flat, filters = _of_images(window, weight)
    convolution = Forward(flat, 1)
    for n, first, images in volumes.parts(data, window, out.shape[2]):
        volumes.stack(data[n], window, first, images)
        results = memory.empty((len(images), len(weight), 1, *out.shape[3:]), out.dtype)
        convolution(_as_images(images), filters, None, results)
        copies.copy(results[:, :, 0].transpose(1, 0, 2, 3), out[n, :, first : first + len(images)])


def _heads_of_images(grad_out, n, first, count):
    """The gradient of what some images give."""
    heads = memory.empty((count, grad_out.shape[1], 1, *grad_out.shape[3:]), grad_out.dtype)
    copies.copy(grad_out[n, :, first : first + count].transpose(1, 0, 2, 3), heads[:, :, 0])
    return heads


def _backward_volumes(grad_out, weight, window, grad_data):
    flat, filters = _of_images(window, weight)
    transpose = BackwardData(flat, 1)
    grad_data[...] = 0
    for n, first, images in volumes.parts(grad_data, window, grad_out.shape[2]):
        transpose(_heads_of_images(grad_out, n, first, len(images)), filters, _as_images(images))
        volumes.add_back(images, window, first, grad_data[n])


def _weight_of_volumes(grad_out, data, window, grad_weight):
    flat, target = _of_images(window, grad_weight)
    part = np.empty_like(target)
    grad_weight[...] = 0
    for n, first, images in volumes.parts(data, window, grad_out.shape[2]):
        volumes.stack(data[n], window, first, images)
        heads = _heads_of_images(grad_out, n, first, len(images))
        backward_weight(heads, _as_images(images), flat, 1, part)
        target += part


def _of_groups(data, results, groups):
    """Image by image, each group's number, its channels of ``data``, and its results as a row a filter."""
    images = data.reshape(len(data), groups, data.shape[1] // groups, *data.shape[2:])
    rows = results.reshape(len(results), groups, results.shape[1] // groups, math.prod(results.shape[2:]))
    for n, g in np.ndindex(len(data), groups):
        yield g, images[n, g], rows[n, g]


def _forward_unrolled(data, weight, window, groups, out):
    matrix = weight.reshape(groups, len(weight) // groups, -1)
    for g, image, target in _of_groups(data, out, groups):
        for start, stop, columns in blocks(image, window, out.shape[2:]):
            matmul(matrix[g], columns, target[:, start:stop])


class BackwardData:
    """The transpose of a convolution: of ``grad_out``, the gradient of the data, written to ``grad_data``.

    One is kept for each convolution or deconvolution, as :class:`Forward` is.
    """

    def __init__(self, window, groups: int):
        self._window, self._groups = window, groups
        kernel, stride, dilate, pad = window
        rest = tuple(d * (k - 1) - p for k, d, p in zip(kernel, dilate, pad, strict=True))
        self._again = self._phases = None
        if groups == 1 and stride == (1, 1, 1) and min(rest) >= 0:
            # With steps of 1 it is a convolution again, by the filters turned round.
            self._again = Forward((kernel, stride, dilate, rest), 1)
        elif groups == 1 and kernel[0] == stride[0] == 1 and pad[0] == 0:
            self._phases = Phases(window, lambda part: Forward(part, 1))

    def __call__(self, grad_out, weight, grad_data, bias=None, *, steady=False, **following):
        """``steady``: the weight is likely to be the same in the next call.

        ``batch_norm`` and ``act`` are for float32 without groups.
        """
        product = _sees_all(self._window, self._groups, grad_data, grad_out)
        if not product and Forward.finishes(grad_out) and grad_out.size and grad_data.size:
            if self._again is not None:
                self._again(grad_out, turn(weight), bias, grad_data, **following)
                return
            if self._phases is not None and ROW_SORTED * len(grad_out) * grad_out.shape[3] > len(weight):
                self._phases(grad_out, weight, bias, grad_data, steady=steady, **following)
                return
        backward_data(grad_out, weight, self._window, self._groups, grad_data)
        if following.get("batch_norm"):
            scale, shift = np.empty((2, *bias.shape), np.float32)
            norm.fold.by(1)(*following["batch_norm"], bias, scale, shift)
            grad_data *= scale.reshape(-1, 1, 1, 1)
            bias = shift
        if bias is not None:
            grad_data += bias.reshape(-1, 1, 1, 1)
        if following.get("act"):
            activate(grad_data, following["act"])


def _sees_all(window, groups, data, out) -> bool:
    """Whether a result is of all pixels of an image; gradients are then those of a fully connected layer."""
    return groups == 1 and window[0] == data.shape[2:] and out.shape[2:] == (1, 1, 1) and max(window[3]) == 0


def _flat(array):
    return array.reshape(len(array), math.prod(array.shape[1:]))


def backward_data(grad_out, weight, window, groups, grad_data):
    """Write the gradient of the data (the transposed convolution of ``grad_out``) in the general way."""
    if grad_out.size == 0 or grad_data.size == 0:
        grad_data[...] = 0
        return
    if _sees_all(window, groups, grad_data, grad_out):
        matmul(_flat(grad_out), _flat(weight), _flat(grad_data))
        return
    if conv_depthwise.is_depthwise(grad_data, groups):
        conv_depthwise.backward_data(grad_out, weight, window, grad_data)
        return
    if _are_volumes(grad_data, window, groups):
        _backward_volumes(grad_out, weight, window, grad_data)
        return
    kernel, stride, _, pad = window
    matrix = weight.reshape(groups, len(weight) // groups, -1).transpose(0, 2, 1)
    direct = kernel == stride == (1, 1, 1) and pad == (0, 0, 0)
    if not direct:
        grad_data[...] = 0
    shape = grad_out.shape[3:]
    for g, pixels, rows in _of_groups(grad_data, grad_out, groups):
        for start, stop, columns in blocks(pixels, window, grad_out.shape[2:], load=False):
            matmul(matrix[g], rows[:, start:stop], columns)
            if not direct:
                move(pixels, tuple(window), shape, start // shape[1], columns, True)


def backward_weight(grad_out, data, window, groups, grad_weight):
    """Write the gradient of the weight."""
    if grad_out.size == 0 or data.size == 0:
        grad_weight[...] = 0
        return
    if _sees_all(window, groups, data, grad_out):
        matmul(_flat(grad_out).T, _flat(data), _flat(grad_weight))
        return
    if conv_depthwise.is_depthwise(data, groups):
        conv_depthwise.backward_weight(grad_out, data, window, grad_weight)
        return
    if _are_volumes(data, window, groups):
        _weight_of_volumes(grad_out, data, window, grad_weight)
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
    weight_unrolled(grad_out, data, window, groups, grad_weight)


def weight_unrolled(grad_out, data, window, groups, grad_weight):
    """:func:`backward_weight` in the general way."""
    matrix = grad_weight.reshape(groups, len(grad_weight) // groups, -1)
    begun = [False] * groups
    for g, image, rows in _of_groups(data, grad_out, groups):
        for start, stop, columns in blocks(image, window, grad_out.shape[2:]):
            matmul(rows[:, start:stop], columns.T, matrix[g], add=begun[g])
            begun[g] = True
    if not all(begun):  # no images, or no results
        grad_weight[...] = 0
