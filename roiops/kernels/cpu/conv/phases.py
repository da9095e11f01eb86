"""The transpose of a convolution with steps, as several convolutions without.

With a step of 2 the result's even rows take part in some taps of the kernel only, and its odd rows in the
others; columns likewise. So each of the four phases of the result is a convolution by its own part of the
kernel: a kernel of 4x4 becomes four of 2x2, and nothing is multiplied by the zeros between the pixels.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np

from ...jit import inner, num_threads, parallel
from ...shares import taken
from ..product.emitter import IDENTITY, activated, activation_of
from ..product.fingerprint import fingerprint
from ..product.turn import turn
from ..vector import LINE


@inner(forceinline=True)
def _part_filter(weight, f, channels, tap, count, gaps, parts, at, steps):
    """The taps of a phase of one filter, of the channels from the first to before the last."""
    tall, wide = count
    for i in range(tall):
        ky = tap[0] + (tall - 1 - i) * gaps[0]
        for j in range(wide):
            kx, to = tap[1] + (wide - 1 - j) * gaps[1], at + i * steps[1] + j
            for c in range(channels[0], channels[1]):
                parts[to + c * steps[0]] = weight[f, c, ky, kx]


@parallel
def _part_filters(share, weight, firsts, counts, gaps, places, windows, parts):
    """The part of each phase's kernel, channels first and taps in reverse order, one after the other.

    It begins at its place, in filters of a window that may be larger. Channels are taken some at a time,
    whose taps lie in the same cache lines.
    """
    filters, channels, _, _ = weight.shape
    for block in taken(share, (channels + LINE - 1) // LINE):
        first = np.int64(block) * LINE
        last = min(first + LINE, channels)
        for phase in range(firsts.shape[0]):
            count, tap = (counts[phase, 0], counts[phase, 1]), firsts[phase]
            taps, row = windows[phase, 0] * windows[phase, 1], windows[phase, 1]
            for f in range(filters):
                at = places[phase] + f * taps
                _part_filter(weight, f, (first, last), tap, count, gaps, parts, at, (filters * taps, row))


@inner
def _put_phase(source, first, step, act, other, add_other, target):
    """A row of one phase's results to every ``step``-th column; ``other`` may be the target."""
    for j in range((target.shape[0] - first + step - 1) // step):
        x = first + j * step
        target[x] = activated(source[j] + other[x], act) if add_other else source[j]


@parallel
def spread(share, results, planes, step, act, other, add_other, out):
    """Put the results of all phases to their places; with ``add_other`` as ``act(results + other)``.

    ``planes``: how many of the results' planes lie from an image to the next, and from a phase to the next.
    """
    batch, channels, height, width = out.shape
    for plane in taken(share, batch * channels):
        n, c = divmod(plane, channels)
        for y in range(height):
            i, row = divmod(y, step[0])
            at, target = n * planes[0] + row * step[1] * planes[1] + c, out[n, c, y]
            if step[1] == 2 and not add_other:  # pairs, which become vectors
                even, odd = results[at, i], results[at + planes[1], i]
                for x in range(width // 2):
                    target[2 * x] = even[x]
                    target[2 * x + 1] = odd[x]
                if width % 2:
                    target[width - 1] = even[width // 2]
                continue
            for k in range(step[1]):
                source = results[at + k * planes[1], i]
                _put_phase(source, k, step[1], activation_of(act, c), other[n, c, y], add_other, target)


class Phase(NamedTuple):
    """The taps of the kernel that one of the convolutions has, on each axis: evenly spaced, or none."""

    firsts: tuple[int, ...]
    counts: tuple[int, ...]
    pads: tuple[int, ...]


def _taps(remainder, kernel, stride, dilate, pad):
    """``(first, count, pad)`` of a phase on one axis."""
    taps = [k for k in range(kernel) if (remainder + pad - k * dilate) % stride == 0]
    if not taps:
        return 0, 0, 0
    # The first tap sees the pixel ``ahead``, and the last one the first of those that a result takes part in.
    ahead = (remainder + pad - taps[0] * dilate) // stride
    return taps[0], len(taps), (len(taps) - 1) * (dilate // math.gcd(stride, dilate)) - ahead


def phases_of(kernel, stride, dilate, pad) -> tuple[list[Phase], tuple, tuple]:
    """All phases; how far their taps lie apart on each axis, in the kernel and in the data."""
    sides = list(zip(kernel, stride, dilate, pad, strict=True))
    axes = [[_taps(remainder, *side) for remainder in range(side[1])] for side in sides]
    phases = [Phase(*zip(*on_axes, strict=True)) for on_axes in itertools.product(*axes)]
    common = [math.gcd(s, d) for _, s, d, _ in sides]
    gaps, closer = (tuple(n // c for n, c in zip(each, common, strict=True)) for each in (stride, dilate))
    return phases, gaps, closer


def _common(phases):
    """The taps of a window that holds those of all phases, and its pads."""
    counts, pads = [], []
    for axis in range(len(phases[0].counts)):
        sides = [(phase.counts[axis], phase.pads[axis]) for phase in phases if phase.counts[axis]]
        pads.append(max(pad for _, pad in sides))
        counts.append(pads[-1] + max(count - pad for count, pad in sides))
    return tuple(counts), tuple(pads)


class Phases:
    """The transposed convolution of images of one depth, without groups. Parts of a steady kernel are kept.

    Where it costs less, the phases are one convolution, of the filters of all, each with zeros around its
    taps. A kernel of 4x4 with a step of 2 is four times as many of 3x3 so, which Winograd's way is for.

    ``make_forward(window)`` makes the convolution of a phase, or of all.
    """

    def __init__(self, window, make_forward):
        self._window = window
        self._make_forward = make_forward
        self._key = None

    def __call__(self, data, weight, bias, out, *, batch_norm=None, act=None, steady=False):
        """As a convolution's ``Forward``; ``weight`` is that of the convolution whose transpose this is."""
        key = data.shape, weight.shape, out.shape
        if key != self._key:
            self._key = key
            self._plan(*key)
        self._prepare(weight, steady)
        more = {} if act is None else {"act": act}
        step, (batch, channels) = self._window[1][1:], out.shape[:2]
        calls, at_once = len(self._convolutions), math.prod(step) // len(self._convolutions)
        if at_once > 1:
            bias, *norm = (np.tile(a, at_once) if np.ndim(a) else a for a in (bias, *(batch_norm or ())))
            batch_norm = tuple(norm) or None
        results = np.empty((calls, batch, at_once * channels, 1, *self._size), np.float32)
        for result, (forward, part) in zip(results, self._convolutions, strict=True):
            if part.size == 0 and bias is None:
                result[...] = 0
                continue
            part = part if part.size else self._nothing
            forward(data, part, bias, result, batch_norm=batch_norm, **more)
        planes, flat = (at_once * channels, channels * (batch if at_once == 1 else 1)), out[:, :, 0]
        results = results.reshape(-1, *self._size)
        spread.by(num_threads(out.size))(results, planes, step, IDENTITY, flat, 0, flat)

    def _plan(self, data_shape, weight_shape, out_shape):
        kernel, stride, dilate, pad = (values[1:] for values in self._window)
        filters, channels = weight_shape[:2]
        self._size = tuple(-(-n // s) for n, s in zip(out_shape[3:], stride, strict=True))
        phases, gaps, closer = phases_of(kernel, stride, dilate, pad)
        self._gaps = np.array(gaps)
        self._firsts = np.array([phase.firsts for phase in phases])
        self._counts = np.array([phase.counts for phase in phases])
        self._windows, self._places = self._counts, np.zeros(len(phases), np.int64)
        self._nothing, self._print = np.zeros((channels, filters, 1, 1, 1), np.float32), None

        def convolution(taps, border, at_once=1):
            """One of some phases, the shape of its weight, and what it costs."""
            seen = taps if all(taps) else (1, 1)
            window = (1, *seen), (1, 1, 1), (1, *closer), (0, *(border if all(taps) else (0, 0)))
            forward, rows = self._make_forward(window), at_once * channels
            shapes = (rows, filters, 1, *seen), (out_shape[0], rows, 1, *self._size)
            return forward, (rows, filters, 1, *taps), forward.cost(data_shape, *shapes) * all(taps)

        made = [convolution(phase.counts, phase.pads) for phase in phases]
        common, border = _common(phases)
        together = convolution(common, border, len(phases))
        if closer == (1, 1) and together[2] < sum(cost for _, _, cost in made):
            made, self._windows = [together], np.full_like(self._counts, common)
            before = np.subtract(border, [phase.pads for phase in phases])
            self._places += before @ (common[1], 1)
        sizes = self._windows.prod(axis=1) * filters * channels
        begins = np.cumsum(sizes) - sizes
        self._places += begins
        self._parts = np.zeros(sizes.sum(), np.float32)
        self._convolutions = [
            (forward, self._parts[at:][: math.prod(shape)].reshape(shape))
            for (forward, shape, _), at in zip(made, begins, strict=False)
        ]

    def _prepare(self, weight, steady):
        bits = fingerprint(weight) if steady else None
        if bits is None or bits != self._print:
            self._print = bits
            if self._parts.size == len(weight) * weight.shape[1]:
                turn(weight, self._parts)
                return
            places = self._gaps, self._places, self._windows
            _part_filters.by(num_threads(weight.size))(
                weight[:, :, 0], self._firsts, self._counts, *places, self._parts
            )
