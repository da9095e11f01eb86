"""Plain-loop definitions of the ROI operators and of what networks take most of their time with.

They are written from descriptions and from no kernel. Every ROI operator is put together from a choice of
coordinates (K), bins (B), samples (S), interpolation (I), reduction and channel map (M), as `docs/dialects.md`
names them. Each number is computed in the type of the data, one operation after another, so that the edges of
integer bins are those of float32. Slow on purpose.
"""

import itertools
import math
from dataclasses import dataclass, field

import numpy as np


def half_away(v):
    """C's round."""
    size = math.floor(abs(float(v)) + 0.5)  # exact: a float32 half is a float64
    return type(v)(math.copysign(size, v))


# Coordinates: the two edges of a box on one axis -> start and length


def k1(low, high, scale, one):
    start, stop = half_away(low * scale), half_away(high * scale)
    return start, max(stop - start + one, one)


def k2(low, high, scale, one):
    start, stop = half_away(low * scale), half_away(high * scale)
    return start, max(stop - start, one)


def k3(shift):
    def coordinates(low, high, scale, one):
        start = half_away(low) * scale - type(one)(shift)
        stop = (half_away(high) + one) * scale - type(one)(shift)
        return start, max(stop - start, type(one)(0.1))

    return coordinates


def k4(shift, least=None):
    def coordinates(low, high, scale, one):
        start, stop = low * scale - type(one)(shift), high * scale - type(one)(shift)
        length = stop - start
        return start, length if least is None else max(length, type(one)(least))

    return coordinates


def k5(low, high, scale, one):
    return low * scale, max((high + one) * scale - low * scale, type(one)(0.1))


def k6(low, high, scale, one):
    return low * scale, high * scale - low * scale + one


def mmcv_pool(low, high, scale, one):
    return low * scale, (high + one) * scale - low * scale


# Bins and samples: bin i of an axis -> positions, and how many samples its grid has


def integer_positions(low, high, extent):
    low, high = min(max(int(low), 0), extent), min(max(int(high), 0), extent)
    return list(range(low, high)), max(high - low, 0)


def b1(start, length, bins, i, extent, ratio):
    size = length / type(start)(bins)
    low = start + math.floor(type(start)(i) * size)
    return integer_positions(low, start + math.ceil(type(start)(i + 1) * size), extent)


def b1_released(start, length, bins, i, extent, ratio):
    return b1(start, length, bins, i, extent - 1, ratio)


def b2(start, length, bins, i, extent, ratio):
    if length <= 0:
        return [], 0
    size = length / type(start)(bins)
    low = math.floor(type(start)(i) * size + start)
    return integer_positions(low, math.ceil(type(start)(i + 1) * size + start), extent)


def centres(start, length, bins, i, extent, ratio):
    size = length / type(start)(bins)
    grid = ratio if ratio > 0 else max(math.ceil(size), 0)
    half = type(start)(0.5)
    positions = [
        (start + type(start)(i) * size) + ((type(start)(k) + half) * size) / type(start)(grid)
        for k in range(grid)
    ]
    return positions, grid


def left_edges(start, length, bins, i, extent, ratio):
    size = length / type(start)(bins)
    step = size / type(start)(ratio)
    return [(start + type(start)(i) * size) + type(start)(k) * step for k in range(ratio)], ratio


def clipped(start, length, bins, i, end):
    size = length / type(start)(bins)
    zero, end = type(start)(0), type(start)(end)
    low = min(max(type(start)(i) * size + start, zero), end)
    return low, min(max(type(start)(i + 1) * size + start, zero), end), size


def inner(start, length, bins, i, extent, ratio):
    low, high, size = clipped(start, length, bins, i, extent - 1)
    step = size / type(start)(ratio + 1)
    return [p for k in range(1, ratio + 1) if (p := low + type(start)(k) * step) < high], ratio


def unit_steps(start, length, bins, i, extent, ratio):
    low, high, _ = clipped(start, length, bins, i, extent)
    count = 0
    while low + type(start)(count) < high:
        count += 1
    return [low + type(start)(k) for k in range(count)], count


# Interpolation: a position -> (pixel, weight) pairs, or None where it is invalid


def i0(p, extent):
    return [(p, 1)]


def i1(p, extent):
    if not -1 <= p <= extent:
        return None
    p = max(p, type(p)(0))
    low = math.floor(p)
    if low >= extent - 1:
        return [(extent - 1, 1)]
    return [(low, 1 - (p - low)), (low + 1, p - low)]


def i2(p, extent):
    if not -0.5 <= p <= extent - 0.5:
        return None
    p = min(max(p, type(p)(0)), type(p)(extent - 1))
    low, high = math.floor(p), math.ceil(p)
    return [(low, 1 - (p - low)), (high, p - low)]


def i3(p, extent):
    low = math.floor(p)
    return [(q, w) for q, w in ((low, 1 - (p - low)), (low + 1, p - low)) if 0 <= q < extent]


# Channel maps


def m0(c, i, j, pooled, groups):
    return c


def m1(c, i, j, pooled, groups):
    return (c * groups + i * groups // pooled[0]) * groups + j * groups // pooled[1]


def m2(c, i, j, pooled, groups):
    return (c * pooled[0] + i) * pooled[1] + j


@dataclass(frozen=True)
class Definition:
    coordinates: object
    samples: object
    interpolation: object
    #: "mean of all", "mean of valid", "max, invalid is 0", "max of valid", "max of corners"
    reduction: str
    channels: object = m0
    empty: float = 0.0


_POOL = Definition(k1, b1, i0, "max of valid")
_CHAINER_POOL = Definition(k2, b1, i0, "max of valid", empty=-math.inf)
_MEAN, _VALID, _ZERO = "mean of all", "max of valid", "max, invalid is 0"
_INF = math.inf

DEFINITIONS = {
    "ROIPooling/mxnet": _POOL,
    "ROIPooling/torchvision": _POOL,
    "ROIPooling/mmcv": Definition(mmcv_pool, b2, i0, _VALID),
    "ROIPooling/chainer": _CHAINER_POOL,
    "ROIPooling/chainer/avg": Definition(k2, b1, i0, _MEAN),
    "ROIAlign/mmcv": Definition(k4(0, 1), centres, i1, _MEAN),
    "ROIAlign/mmcv/aligned": Definition(k4(0.5), centres, i1, _MEAN),
    "ROIAlign/mmcv/max": Definition(k4(0, 1), centres, i1, _ZERO),
    "ROIAlign/mmcv/max/aligned": Definition(k4(0.5), centres, i1, _ZERO),
    "ROIAlign/chainer": Definition(k4(0, 1), centres, i1, _MEAN),
    "ROIAlign/chainer/max": Definition(k4(0, 1), centres, i1, _VALID, empty=-_INF),
    "ROIAlign/onnx": Definition(k4(0, 1), centres, i1, _MEAN),
    "ROIAlign/onnx/aligned": Definition(k4(0.5), centres, i1, _MEAN),
    "ROIAlign/onnx/max": Definition(k4(0, 1), centres, i1, "max of corners"),
    "ROIAlign/onnx/max/aligned": Definition(k4(0.5), centres, i1, "max of corners"),
    "ROIAlign/mxnet/max": Definition(k6, unit_steps, i3, _VALID),
    "contrib.ROIAlign": Definition(k4(0, 1), centres, i1, _MEAN),
    "contrib.ROIAlign/aligned": Definition(k4(0.5), centres, i1, _MEAN),
    "contrib.ROIAlign/position_sensitive": Definition(k4(0, 1), centres, i1, _MEAN, m2),
    "contrib.ROIAlign/position_sensitive/aligned": Definition(k4(0.5), centres, i1, _MEAN, m2),
    "PSROIPooling/mxnet": Definition(k3(0), b2, i0, _MEAN, m1),
    "PSROIPooling/torchvision": Definition(k2, b1, i0, _MEAN, m2),
    "PSROIPooling/torchvision/as_released": Definition(k2, b1_released, i0, _MEAN, m2),
    "PSROIPooling/chainer": Definition(k4(0, 0.1), b2, i0, _MEAN, m1),
    "PSROIPooling/chainer/max": Definition(k4(0, 0.1), b2, i0, _VALID, m1, -_INF),
    "PSROIAlign/rfcn": Definition(k5, inner, i1, _MEAN, m1),
    "PSROIAlign/torchvision": Definition(k4(0.5), centres, i1, _MEAN, m2),
    "PSROIAlign/chainer": Definition(k4(0, 0.1), centres, i1, _MEAN, m1),
    "PSROIAlign/chainer/max": Definition(k4(0, 0.1), centres, i1, _VALID, m1, -_INF),
    "PSROIPooling/paddle": Definition(k3(0), b2, i0, _MEAN, m2),
    "DeformROIPooling": Definition(k4(0.5), centres, i1, _MEAN),
    "contrib.DeformablePSROIPooling": Definition(k3(0.5), left_edges, i2, "mean of valid", m1),
}


@dataclass
class Result:
    """The output and what its gradient needs: for each element, the pixels it is the weighted sum of."""

    out: np.ndarray
    argmax: np.ndarray
    shape: tuple
    sources: list = field(default_factory=list)  # (element, ((n, c, y, x), weight))

    def gradient(self, grad_out):
        """The gradient of the data, added up in float64."""
        total = np.zeros(self.shape)
        for element, pixel, weight in self.sources:
            total[pixel] += weight * float(grad_out[element])
        return total


def is_ignored(roi):
    return int(roi[0]) < 0 or not np.isfinite(roi[1:]).all()


def separable(name, data, rois, pooled, scale, ratio=(0, 0), groups=1, trans=None, trans_std=0.0):
    """Any operator but the rotated one. Negative or broken rows give zeros; image numbers are valid."""
    definition, T = DEFINITIONS[name], data.dtype.type
    _, channels, height, width = data.shape
    one, scale = T(1), T(scale)
    bins = pooled[0] * pooled[1]
    per = {m0: 1, m1: groups * groups, m2: bins}[definition.channels]
    shape = (len(rois), channels // per, *pooled)
    result = Result(np.zeros(shape, data.dtype), np.full(shape, -1), data.shape)
    rois = rois.astype(data.dtype)
    for r, roi in enumerate(rois):
        if is_ignored(roi):
            continue
        n = int(roi[0])
        start_x, length_x = definition.coordinates(roi[1], roi[3], scale, one)
        start_y, length_y = definition.coordinates(roi[2], roi[4], scale, one)
        for c, i, j in np.ndindex(shape[1:]):
            moved_x = moved_y = T(0)
            if trans is not None:
                classes = trans.shape[1] // 2
                k = c // (shape[1] // classes)
                y, x = i * trans.shape[2] // pooled[0], j * trans.shape[3] // pooled[1]
                moved_x = trans[r, 2 * k, y, x] * T(trans_std) * length_x
                moved_y = trans[r, 2 * k + 1, y, x] * T(trans_std) * length_y
            ys, grid_y = definition.samples(start_y, length_y, pooled[0], i, height, ratio[0])
            xs, grid_x = definition.samples(start_x, length_x, pooled[1], j, width, ratio[1])
            if definition.interpolation is not i0:
                ys, xs = [p + moved_y for p in ys], [p + moved_x for p in xs]
            plane = data[n, definition.channels(c, i, j, pooled, groups)]
            where = n, definition.channels(c, i, j, pooled, groups)
            _reduce(definition, plane, where, ys, grid_y, xs, grid_x, result, (r, c, i, j))
    return result


def _reduce(definition, plane, where, ys, grid_y, xs, grid_x, result, element):
    if definition.reduction == "max of corners":
        _reduce_corners(definition, plane, where, ys, grid_y, xs, grid_x, result, element)
        return
    samples = []  # (place in the grid, value, [(pixel, weight)]), value None where it is invalid
    for ky, y in enumerate(ys):
        for kx, x in enumerate(xs):
            on_y, on_x = definition.interpolation(y, len(plane)), definition.interpolation(x, plane.shape[1])
            # An integer bin is known by its pixel, the others by the sample.
            place = y * plane.shape[1] + x if definition.interpolation is i0 else ky * grid_x + kx
            if on_y is None or on_x is None:
                samples.append((place, None, []))
                continue
            taps = [((q, p), v * w) for q, v in on_y for p, w in on_x if v * w != 0]
            samples.append((place, sum(float(plane[pixel]) * float(w) for pixel, w in taps), taps))
    valid = [sample for sample in samples if sample[1] is not None]
    if definition.reduction.startswith("mean"):
        count = len(valid) if definition.reduction == "mean of valid" else grid_y * grid_x
        result.out[element] = sum(sample[1] for sample in valid) / max(count, 1)
        taps = [(pixel, float(w) / count) for sample in valid for pixel, w in sample[2]]
    else:
        if definition.reduction == "max, invalid is 0":
            valid = [(-1, 0.0, []) if sample[1] is None else sample for sample in samples]
        if not valid:
            result.out[element] = definition.empty
            return
        least = -math.inf if definition.empty else float(np.finfo(plane.dtype).min)
        place, best, taps = -1, least, []
        for sample in valid:
            if sample[1] > best:
                place, best, taps = sample
        result.out[element], result.argmax[element] = best, place
    result.sources += [(element, (*where, *pixel), w) for pixel, w in taps]


def _reduce_corners(definition, plane, where, ys, grid_y, xs, grid_x, result, element):
    """ONNX's maximum: of each weighted pixel on its own, the samples in a grid twice as fine."""
    if not grid_y or not grid_x:
        result.out[element] = definition.empty
        return
    place, best, tap = -1, float(np.finfo(plane.dtype).min), None
    for ky in range(2 * grid_y):
        for kx in range(2 * grid_x):
            y, x = ys[ky // 2], xs[kx // 2]
            on_y, on_x = definition.interpolation(y, len(plane)), definition.interpolation(x, plane.shape[1])
            value, here, taps = 0.0, -1, None
            if on_y is not None and on_x is not None:
                # A pixel beyond the border has no weight.
                (q, v), (p, w) = [*on_y, (0, 0)][ky % 2], [*on_x, (0, 0)][kx % 2]
                here = ky * 2 * grid_x + kx
                if v * w != 0:
                    value, taps = float(plane[q, p]) * float(v * w), ((q, p), float(v * w))
            if value > best:
                place, best, tap = here, value, taps
    result.out[element], result.argmax[element] = best, place
    if tap:
        result.sources.append((element, (*where, *tap[0]), tap[1]))


def rotated(data, rois, pooled, scale, ratio=(0, 0), shift=0.0, least=1.0, unit="degrees"):
    """ROIAlign of boxes (image, centre x, centre y, width, height, angle).

    ``unit`` is "degrees", "radians" or "radians clockwise".
    """
    T = data.dtype.type
    _, channels, height, width = data.shape
    shape = (len(rois), channels, *pooled)
    result = Result(np.zeros(shape, data.dtype), np.full(shape, -1), data.shape)
    rois = rois.astype(data.dtype)
    for r, roi in enumerate(rois):
        if is_ignored(roi):
            continue
        centre_x, centre_y = roi[1] * T(scale) - T(shift), roi[2] * T(scale) - T(shift)
        wide, high = roi[3] * T(scale), roi[4] * T(scale)
        if least is not None:
            wide, high = max(wide, T(least)), max(high, T(least))
        angle = T(float(roi[5]) * math.pi / 180) if unit == "degrees" else roi[5]
        angle = -angle if unit == "radians clockwise" else angle
        cosine, sine = T(math.cos(angle)), T(math.sin(angle))
        for c, i, j in np.ndindex(shape[1:]):
            vs, grid_v = centres(-high / T(2), high, pooled[0], i, height, ratio[0])
            us, grid_u = centres(-wide / T(2), wide, pooled[1], j, width, ratio[1])
            for v in vs:
                for u in us:
                    on_y = i1(v * cosine - u * sine + centre_y, height)
                    on_x = i1(u * cosine + v * sine + centre_x, width)
                    for q, wy in on_y or ():
                        for p, wx in on_x or ():
                            weight = float(wy) * float(wx) / (grid_v * grid_u)
                            if weight:
                                result.out[r, c, i, j] += weight * data[int(roi[0]), c, q, p]
                                result.sources.append(((r, c, i, j), (int(roi[0]), c, q, p), weight))
    return result


def surface(plane, y, x):
    """A map between its pixels, bilinear, and zero from one pixel beyond them on."""
    low_y, low_x = math.floor(y), math.floor(x)
    total = 0.0
    for q in (low_y, low_y + 1):
        for p in (low_x, low_x + 1):
            if 0 <= q < plane.shape[0] and 0 <= p < plane.shape[1]:
                total += float(plane[q, p]) * (1 - abs(y - q)) * (1 - abs(x - p))
    return total


def precise(data, rois, pooled, scale):
    """The integral of the surface over each bin, by Gauss's rule in every cell of the map: exact, in float64."""
    nodes, weights = np.polynomial.legendre.leggauss(3)

    def points(low, high):
        cuts = [low, *range(math.floor(low) + 1, math.ceil(high)), high]
        for a, b in itertools.pairwise(cuts):
            for node, weight in zip(nodes, weights, strict=True):
                yield (a + b) / 2 + (b - a) / 2 * node, weight * (b - a) / 2

    out = np.zeros((len(rois), data.shape[1], *pooled))
    for r, roi in enumerate(np.asarray(rois, np.float64)):
        if is_ignored(roi):
            continue
        x1, y1, x2, y2 = roi[1:] * scale
        tall, wide = max(y2 - y1, 0) / pooled[0], max(x2 - x1, 0) / pooled[1]
        if not tall * wide:
            continue
        for c, i, j in np.ndindex(out.shape[1:]):
            plane = data[int(roi[0]), c]
            total = 0.0
            for y, wy in points(y1 + i * tall, y1 + (i + 1) * tall):
                for x, wx in points(x1 + j * wide, x1 + (j + 1) * wide):
                    total += wy * wx * surface(plane, y, x)
            out[r, c, i, j] = total / (tall * wide)
    return out


def crop_and_resize(data, rois, pooled, mode, outside):
    """Points from end to end of boxes (image, y1, x1, y2, x2) that are normalised; forward only."""
    T = data.dtype.type
    height, width = data.shape[2:]
    out = np.zeros((len(rois), data.shape[1], *pooled), data.dtype)

    def point(low, high, i, bins, extent):
        if bins == 1:
            return T(0.5 * float(low + high) * (extent - 1))
        return low * T(extent - 1) + T(i) * ((high - low) * T(extent - 1) / T(bins - 1))

    for r, roi in enumerate(rois.astype(data.dtype)):
        if is_ignored(roi):
            continue
        for c, i, j in np.ndindex(out.shape[1:]):
            y = point(roi[1], roi[3], i, pooled[0], height)
            x = point(roi[2], roi[4], j, pooled[1], width)
            if not (0 <= y <= height - 1 and 0 <= x <= width - 1):
                out[r, c, i, j] = outside
            elif mode == "nearest":
                out[r, c, i, j] = data[int(roi[0]), c, int(half_away(y)), int(half_away(x))]
            else:
                out[r, c, i, j] = surface(data[int(roi[0]), c], float(y), float(x))
    return out


def orientations(pooled, rois, count):
    """Turn the ``count`` orientation channels of each box by its angle, in radians."""
    out = np.zeros_like(pooled)
    for r, roi in enumerate(rois):
        if is_ignored(roi):
            continue
        turns = float(roi[5]) * count / (2 * math.pi)
        whole = math.floor(turns)
        for c in range(pooled.shape[1]):
            first, o = c // count * count, c % count
            near, far = pooled[r, first + (o - whole) % count], pooled[r, first + (o - whole + 1) % count]
            out[r, c] = (1 - (turns - whole)) * near + (turns - whole) * far
    return out


def level_of(roi, levels, canonical_size, canonical_level=None):
    """Which of ``levels`` maps a box (image, x1, y1, x2, y2) reads, the finest being 0.

    The map of a box whose side is ``canonical_size`` is ``canonical_level``, counted as in feature pyramids,
    from the image on, so that the finest map is 1 (torchvision, Detectron2); or, where there is none, the
    finest map reads boxes up to that size (mmdet). Each next map reads boxes of twice the size.
    """
    if levels == 1:
        return 0
    side = math.sqrt((roi[3] - roi[1]) * (roi[4] - roi[2]))
    level = math.log2(max(side / canonical_size, 1e-30))
    if canonical_level is not None:
        level += canonical_level - 1
    return min(max(math.floor(level + 1e-6), 0), levels - 1)


# -- networks ----------------------------------------------------------------------------------------------


def convolution(data, weight, stride=(1, 1), pad=(0, 0), dilate=(1, 1), groups=1):
    """``out[n, f, y, x]``: the sum over the window of ``weight[f]`` times what lies under it; zero outside."""
    batch, _, height, width = data.shape
    filters, per_group, kernel_h, kernel_w = weight.shape
    out_h = (height + 2 * pad[0] - dilate[0] * (kernel_h - 1) - 1) // stride[0] + 1
    out_w = (width + 2 * pad[1] - dilate[1] * (kernel_w - 1) - 1) // stride[1] + 1
    out = np.zeros((batch, filters, out_h, out_w))
    for n, f, y, x in np.ndindex(out.shape):
        first = f // (filters // groups) * per_group
        for c, i, j in np.ndindex(per_group, kernel_h, kernel_w):
            row, column = y * stride[0] + i * dilate[0] - pad[0], x * stride[1] + j * dilate[1] - pad[1]
            if 0 <= row < height and 0 <= column < width:
                out[n, f, y, x] += float(weight[f, c, i, j]) * float(data[n, first + c, row, column])
    return out


def pooling(data, kernel, stride=(1, 1), pad=(0, 0), mode="max"):
    """The maximum of each window, or its sum by the size of the window; what lies outside is not there."""
    batch, channels, height, width = data.shape
    out_h = (height + 2 * pad[0] - kernel[0]) // stride[0] + 1
    out_w = (width + 2 * pad[1] - kernel[1]) // stride[1] + 1
    out = np.zeros((batch, channels, out_h, out_w))
    for n, c, y, x in np.ndindex(out.shape):
        seen = []
        for i, j in np.ndindex(*kernel):
            row, column = y * stride[0] + i - pad[0], x * stride[1] + j - pad[1]
            if 0 <= row < height and 0 <= column < width:
                seen.append(float(data[n, c, row, column]))
        out[n, c, y, x] = max(seen) if mode == "max" else sum(seen) / (kernel[0] * kernel[1])
    return out


def product(left, right):
    """The product of two matrices."""
    out = np.zeros((left.shape[0], right.shape[1]))
    for i, j in np.ndindex(out.shape):
        out[i, j] = math.fsum(float(left[i, k]) * float(right[k, j]) for k in range(left.shape[1]))
    return out


def softmax(data):
    """``exp(x) / sum(exp(x))`` of each row, by the differences from its largest number."""
    out = np.zeros(data.shape)
    for n, row in enumerate(data):
        terms = [math.exp(float(x) - float(max(row))) for x in row]
        out[n] = [term / math.fsum(terms) for term in terms]
    return out


def batch_norm(data, gamma, beta, eps):
    """``gamma * (x - mean) / sqrt(variance + eps) + beta``, with the mean and variance of each channel."""
    out = np.zeros(data.shape)
    for c in range(data.shape[1]):
        values = [float(x) for x in data[:, c].flat]
        mean = math.fsum(values) / len(values)
        variance = math.fsum((x - mean) ** 2 for x in values) / len(values)
        for n, y, x in np.ndindex(data.shape[0], *data.shape[2:]):
            centred = float(data[n, c, y, x]) - mean
            out[n, c, y, x] = float(gamma[c]) * centred / math.sqrt(variance + eps) + float(beta[c])
    return out


def resize(data, height, width, align_corners):
    """Bilinear, between pixels whose centres lie on those of the corners, or whose edges are the image's."""

    def position(i, size, out_size):
        if align_corners:
            return i * (size - 1) / (out_size - 1) if out_size > 1 else 0
        return min(max((i + 0.5) * size / out_size - 0.5, 0), size - 1)

    out = np.zeros((*data.shape[:2], height, width))
    for n, c, i, j in np.ndindex(out.shape):
        y, x = position(i, data.shape[2], height), position(j, data.shape[3], width)
        out[n, c, i, j] = surface(data[n, c], y, x)
    return out


def _sigmoid(x):
    return 1 / (1 + math.exp(-x))


def recurrent(mode, data, weights, state, cell=None):
    """The states of one layer after each step, of data (steps, batch, features), and the last cell.

    ``weights`` are those of the input and of the state, and the biases of both; of an LSTM in the order input,
    forget, candidate, output, of a GRU reset, update, candidate.
    """
    from_input, from_state, input_bias, state_bias = weights
    hidden = state.shape[1]
    out = np.zeros((len(data), *state.shape))
    state, cell = np.float64(state), None if cell is None else np.float64(cell)

    def gate(matrix, bias, values, index, h):
        row = index * hidden + h
        return math.fsum(float(w) * float(v) for w, v in zip(matrix[row], values, strict=True)) + float(
            bias[row]
        )

    for t, n, h in np.ndindex(out.shape):
        x = [gate(from_input, input_bias, data[t, n], k, h) for k in range(len(from_input) // hidden)]
        before = out[t - 1] if t else state
        s = [gate(from_state, state_bias, before[n], k, h) for k in range(len(from_input) // hidden)]
        if mode == "lstm":
            enter, forget, leave = (_sigmoid(x[k] + s[k]) for k in (0, 1, 3))
            cell[n, h] = forget * cell[n, h] + enter * math.tanh(x[2] + s[2])
            out[t, n, h] = leave * math.tanh(cell[n, h])
        elif mode == "gru":
            reset, update = (_sigmoid(x[k] + s[k]) for k in (0, 1))
            candidate = math.tanh(x[2] + reset * s[2])
            out[t, n, h] = (1 - update) * candidate + update * before[n, h]
        else:
            out[t, n, h] = math.tanh(x[0] + s[0]) if mode == "rnn_tanh" else max(x[0] + s[0], 0)
    return out, cell
