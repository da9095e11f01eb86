"""The transpose of a convolution with steps, as several convolutions without.

With a step of 2 the result's even rows take part in some taps of the kernel only, and its odd rows in the
others; columns likewise. So each of the four phases of the result is a convolution by its own part of the
kernel: a kernel of 4x4 becomes four of 2x2, and nothing is multiplied by the zeros between the pixels.

``tests/reference.py`` has the convolution in plain loops: ``convolution``.
"""

import itertools
import math

import numpy as np

from ...jit import inner, num_threads, parallel, within
from ..product.emitter import activated, activation
from ..product.fingerprint import fingerprint
from ..product.turn import turn
from ..vector import LINE

_IDENTITY = activation()


@inner(forceinline=True)
def _part_filter(weight, f, channels, tap, count, gaps, parts, at, step):
    """The taps of a phase of one filter, of the channels from the first to before the last."""
    tall, wide = count
    for i in range(tall):
        ky = tap[0] + (tall - 1 - i) * gaps[0]
        for j in range(wide):
            kx, to = tap[1] + (wide - 1 - j) * gaps[1], at + (f * tall + i) * wide + j
            for c in range(channels[0], channels[1]):
                parts[to + c * step] = weight[f, c, ky, kx]


@parallel
def _part_filters(share, weight, firsts, counts, gaps, places, parts):
    """The part of each phase's kernel, channels first and taps in reverse order, one after the other.

    Channels are taken some at a time, whose taps lie in the same cache lines.
    """
    filters, channels, _, _ = weight.shape
    for block in within(share, (channels + LINE - 1) // LINE):
        first = np.int64(block) * LINE
        last = min(first + LINE, channels)
        for phase in range(firsts.shape[0]):
            count, tap = (counts[phase, 0], counts[phase, 1]), firsts[phase]
            for f in range(filters):
                step = filters * count[0] * count[1]
                _part_filter(weight, f, (first, last), tap, count, gaps, parts, places[phase], step)


@inner
def _put_phase(source, first, step, act, other, add_other, target):
    """A row of one phase's results to every ``step``-th column; ``other`` may be the target."""
    for j in range((target.shape[0] - first + step - 1) // step):
        x = first + j * step
        target[x] = activated(source[j] + other[x], act) if add_other else source[j]


@parallel
def spread(share, results, first, step, act, other, add_other, out):
    """Put the phases of the rows ``first``, ``first + step[0]``, ... to their places, one phase a column.

    With ``add_other`` they become ``act(results + other)``.
    """
    batch, channels, height, width = out.shape
    rows = (height - first + step[0] - 1) // step[0]
    for plane in within(share, batch * channels):
        n, c = divmod(plane, channels)
        for i in range(rows):
            y = first + i * step[0]
            target = out[n, c, y]
            if step[1] == 2 and not add_other:  # pairs, which become vectors
                even, odd = results[0, n, c, i], results[1, n, c, i]
                for x in range(width // 2):
                    target[2 * x] = even[x]
                    target[2 * x + 1] = odd[x]
                if width % 2:
                    target[width - 1] = even[width // 2]
                continue
            for k in range(step[1]):
                _put_phase(results[k, n, c, i], k, step[1], act, other[n, c, y], add_other, target)


def _taps(remainder, kernel, stride, dilate, pad):
    """``(first, count, pad)`` of a phase on one axis; its taps are evenly spaced."""
    taps = [k for k in range(kernel) if (remainder + pad - k * dilate) % stride == 0]
    if not taps:
        return 0, 0, 0
    # The first tap sees the pixel ``ahead``, and the last one the first of those that a result takes part in.
    ahead = (remainder + pad - taps[0] * dilate) // stride
    return taps[0], len(taps), (len(taps) - 1) * (dilate // math.gcd(stride, dilate)) - ahead


class Phases:
    """The transposed convolution of images of one depth, without groups. Parts of a steady kernel are kept.

    ``make_forward(window)`` makes the convolution of a phase.
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
        step = self._window[1][1:]
        results = np.empty((step[1], *out.shape[:3], *self._size), np.float32)
        for first in range(min(step[0], out.shape[3])):
            for column in range(min(step[1], out.shape[4])):
                forward, part = self._phases[first * step[1] + column]
                if part is None and bias is None and batch_norm is None:
                    results[column] = 0
                    continue
                part = self._nothing if part is None else part
                forward(data, part, bias, results[column], batch_norm=batch_norm, **more)
            flat, threads = out[:, :, 0], num_threads(out.size / step[0])
            spread.by(threads)(results[:, :, :, 0], first, step, _IDENTITY, flat, 0, flat)

    def _plan(self, data_shape, weight_shape, out_shape):
        kernel, stride, dilate, pad = (values[1:] for values in self._window)
        filters, channels = weight_shape[:2]
        self._size = tuple(-(-n // s) for n, s in zip(out_shape[3:], stride, strict=True))
        gaps = [math.gcd(s, d) for s, d in zip(stride, dilate, strict=True)]
        self._gaps = np.array([s // g for s, g in zip(stride, gaps, strict=True)])
        closer = tuple(d // g for d, g in zip(dilate, gaps, strict=True))
        axes = [
            [_taps(remainder, *values) for remainder in range(values[1])]
            for values in zip(kernel, stride, dilate, pad, strict=True)
        ]
        phases = [tuple(zip(*pair, strict=True)) for pair in itertools.product(*axes)]
        self._firsts = np.array([first for first, _, _ in phases])
        self._counts = np.array([count for _, count, _ in phases])
        sizes = self._counts.prod(axis=1) * filters * channels
        self._places = np.cumsum(sizes) - sizes
        self._parts = np.empty(sizes.sum(), np.float32)
        self._nothing = np.zeros((channels, filters, 1, 1, 1), np.float32)
        self._phases = []
        for (_, count, border), at, size in zip(phases, self._places, sizes, strict=True):
            part = self._parts[at : at + size].reshape(channels, filters, 1, *count) if size else None
            taken = count if size else (1, 1)
            window = (1, *taken), (1, 1, 1), (1, *closer), (0, *(border if size else (0, 0)))
            self._phases.append((self._make_forward(window), part))
        self._print = None

    def _prepare(self, weight, steady):
        bits = fingerprint(weight) if steady else None
        if bits is None or bits != self._print:
            self._print = bits
            if self._parts.size == len(weight) * weight.shape[1]:
                turn(weight, self._parts)
                return
            _part_filters.by(num_threads(weight.size))(
                weight[:, :, 0], self._firsts, self._counts, self._gaps, self._places, self._parts
            )
