"""Draw what each dialect of an ROI operator reads: its frame, its bins and its samples over the pixels.

The numbers come from ``kernels/geometry.py`` itself, so the picture cannot disagree with the operators.
"""

import math
from dataclasses import dataclass

import numpy as np

from .errors import DataError, MXNetError, ParamError, nearest
from .kernels import rules as r
from .operators.roi.dialects import named

__all__ = ["Axis", "Reading", "axis", "dialects", "distinct", "draw", "reading", "table"]


@dataclass(frozen=True)
class Axis:
    """One axis of a box under one dialect, in feature pixels; pixel centres are at whole numbers."""

    start: float
    length: float
    #: Ends of each bin. Integer bins hold the pixels ``low`` to ``high - 1``; both are equal if it is empty.
    bins: list[tuple[float, float]]
    #: Positions of each bin's samples, and for each whether it counts.
    samples: list[list[tuple[float, bool]]]
    integer: bool

    @property
    def visible_frame(self) -> tuple[float, float]:
        """Ends of the frame in drawing coordinates, where a pixel reaches half a pixel to each side."""
        half = 0.5 if self.integer else 0.0
        return self.start - half, self.start + self.length - half


@dataclass(frozen=True)
class Reading:
    """What a dialect makes of a box: corners are ``(x, y)``, in feature pixels."""

    start: tuple[float, float]  # (y, x), of a turned box before it is turned
    size: tuple[float, float]  # (height, width)
    frame: list[tuple[float, float]]
    #: For each bin ``(i, j)``: its corners (none if it has no area), and ``(x, y, counts)`` of its samples.
    bins: dict[tuple[int, int], tuple[list, list]]
    #: Samples, or pixels, of the first bin on either axis.
    first: tuple[int, int]
    integer: bool
    turned: bool


def dialects() -> list[str]:
    """Names of all dialects."""
    return list(named())


def _turned(name: str) -> bool:
    return _rules(name).boxes in (r.TURNED_DEGREES, r.TURNED_RADIANS, r.TURNED_RADIANS_CLOCKWISE)


def distinct() -> dict[str, list[str]]:
    """One dialect of each geometry, with the others that read the very same samples.

    Those differ in what they do with the samples, in the channel or the map that a bin reads, in the unit of
    an angle, or because displacements, which are not drawn, move their bins.
    """
    groups: dict[tuple, list[str]] = {}
    for name in dialects():
        rules = named()[name].rules
        where = rules._replace(reduction=0, channels=0, empty=0.0, single_scale=False, displaced=False)
        if rules.boxes == r.TURNED_DEGREES:
            where = where._replace(boxes=r.TURNED_RADIANS)
        if rules.border == r.INSIDE_NEAREST:
            where = where._replace(border=r.INSIDE)
        if rules.samples == r.CORNERS:
            where = where._replace(samples=r.CENTRES)
        groups.setdefault(where, []).append(name)
    return {names[0]: names[1:] for names in groups.values()}


def _rules(name: str):
    if name not in dialects():
        raise ParamError(f"explain: unknown dialect {name!r}{nearest(name, dialects())}")
    return named()[name].rules


def axis(dialect: str, low: float, high: float, scale: float, bins: int, extent: int, ratio: int = 0) -> Axis:
    """What a dialect makes of a box's edges on one axis.

    Parameters
    ----------
    dialect : str
        A name of :func:`dialects`, of a dialect whose boxes do not turn.
    low, high : float
        The edges, in image pixels; under ``CropAndResize`` normalised, as it takes them.
    scale : float
        Feature pixels per image pixel; ``CropAndResize`` has none.
    bins : int
        Bins on this axis.
    extent : int
        Pixels of the feature map on this axis.
    ratio : int
        Samples a bin asked for; 0 for one a feature pixel, where the dialect has that.
    """
    from .kernels import geometry

    rules = _rules(dialect)
    number = np.float32
    integer = rules.samples == r.PIXELS
    if rules.samples == r.INNER and ratio <= 0:
        ratio = 2
    scale = geometry.scale_of(rules, scale, number)
    box = geometry.axis_of(rules, number(low), number(high), scale, bins, ratio, extent)
    box = geometry.Axis(number(box.start), number(box.length), bins, ratio, extent, number(0))
    edges: list[tuple[float, float]] = []
    samples = []
    for i in range(bins):
        first, stop, count = geometry.bin_grid(rules, box, i)
        low_edge, high_edge = geometry.bin_span(rules, box, i) if integer else geometry._edges(rules, box, i)
        edges.append((float(low_edge), float(high_edge)))
        found = []
        for k in range(first, stop):
            p = geometry.position(rules, box, i, k, count)
            valid, _, weight, _, _ = geometry.sample(rules, box, i, k, count)
            untouched = rules.samples == r.INTEGRAL and weight == 0
            if np.isfinite(p) and not untouched:
                found.append((float(p), bool(valid)))
        samples.append(list(dict.fromkeys(found)))
    start = float(box.start)
    if rules.samples == r.END_TO_END:  # single points, without an area around them
        edges = [(points[0][0], points[0][0]) for points in samples]
        start = float(low) * (extent - 1)
    return Axis(start, float(box.length), edges, samples, integer)


def _corners(left, top, right, bottom) -> list[tuple[float, float]]:
    return [(left, top), (right, top), (right, bottom), (left, bottom)]


def _upright(roi, scale, pooled, shape, ratio, dialect) -> Reading:
    x1, y1, x2, y2 = roi
    y = axis(dialect, y1, y2, scale, pooled[0], shape[0], ratio)
    x = axis(dialect, x1, x2, scale, pooled[1], shape[1], ratio)
    half = 0.5 if y.integer else 0.0
    bins = {}
    for i, (top, bottom) in enumerate(y.bins):
        for j, (left, right) in enumerate(x.bins):
            # Integer bins may overlap: a little inset, different for each, keeps every outline visible.
            inset = 0.06 * ((i + j) % 2) if y.integer else 0.0
            sides = left - half + inset, top - half + inset, right - half - inset, bottom - half - inset
            corners = _corners(*sides) if bottom > top and right > left else []
            points = [(px, py, in_y and in_x) for py, in_y in y.samples[i] for px, in_x in x.samples[j]]
            bins[i, j] = corners, points
    (top, bottom), (left, right) = y.visible_frame, x.visible_frame
    first = len(y.samples[0]), len(x.samples[0])
    return Reading(
        (y.start, x.start),
        (y.length, x.length),
        _corners(left, top, right, bottom),
        bins,
        first,
        y.integer,
        False,
    )


def _rotated(roi, scale, pooled, shape, ratio, dialect) -> Reading:
    """``roi`` is centre x, centre y, width, height and the angle in degrees."""
    from .kernels import geometry

    rules = _rules(dialect)
    angle = roi[4] if rules.boxes == r.TURNED_DEGREES else math.radians(roi[4])
    rois = np.array([[0, *roi[:4], angle]], np.float32)
    how = r.Pooling(rules, scale, (ratio, ratio))
    setting = geometry.setting_of(how, np.float32, (1, 1, *shape), pooled)
    box = geometry.turned(rules, rois, 0, setting)

    def on_map(v, u):
        y, x = geometry.turned_position(box, np.float32(v), np.float32(u))
        return float(x), float(y)

    def points_of(along, i):
        count = geometry.grid_of(along.length, along.bins, ratio)
        return [geometry.position(rules, along, i, k, count) for k in range(min(count, max(shape) * 4))]

    def ends(along, i):
        size = along.length / along.bins
        return along.start + i * size, along.start + (i + 1) * size

    bins = {}
    for i in range(pooled[0]):
        for j in range(pooled[1]):
            (top, bottom), (left, right) = ends(box.v, i), ends(box.u, j)
            corners = [on_map(v, u) for u, v in _corners(left, top, right, bottom)]
            points = []
            for v in points_of(box.v, i):
                for u in points_of(box.u, j):
                    x, y = on_map(v, u)
                    inside = [
                        geometry.taps(rules, np.float32(p), extent)[0]
                        for p, extent in ((y, shape[0]), (x, shape[1]))
                    ]
                    points.append((x, y, all(inside)))
            bins[i, j] = (corners if bottom > top and right > left else []), points
    start = float(box.centre_y + box.v.start), float(box.centre_x + box.u.start)
    size = float(box.v.length), float(box.u.length)
    v, u = box.v.start, box.u.start
    frame = [on_map(y, x) for x, y in _corners(u, v, u + box.u.length, v + box.v.length)]
    return Reading(
        start, size, frame, bins, (len(points_of(box.v, 0)), len(points_of(box.u, 0))), False, True
    )


def reading(
    dialect: str,
    roi,
    shape,
    spatial_scale: float = 1.0,
    pooled_size=(2, 2),
    sampling_ratio: int = 0,
    angle: float = 0.0,
    normalised: bool = False,
) -> Reading:
    """What a dialect makes of a box; the arguments are those of :func:`draw`."""
    roi = _checked(roi, shape, spatial_scale, pooled_size, sampling_ratio, angle)
    turned = _turned(dialect)
    if len(roi) == 5 and not turned:
        raise ParamError(f"explain: {dialect} does not turn boxes; give x1, y1, x2, y2")
    takes_normalised = _rules(dialect).boxes == r.CORNERS_YX_NORMALISED
    if normalised and not takes_normalised:
        raise ParamError(f"explain: {dialect} has boxes in image pixels, not normalised ones")
    if turned:
        if len(roi) == 4:
            x1, y1, x2, y2 = roi
            roi = [(x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1, angle]
        return _rotated(roi, spatial_scale, pooled_size, shape, sampling_ratio, dialect)
    if normalised:
        y1, x1, y2, x2 = roi
        roi = [x1, y1, x2, y2]
    elif takes_normalised:
        last = [max(1, shape[1] - 1), max(1, shape[0] - 1)] * 2
        roi = [edge * spatial_scale / span for edge, span in zip(roi, last, strict=True)]
    return _upright(roi, spatial_scale, pooled_size, shape, sampling_ratio, dialect)


def _checked(roi, shape, scale, pooled, ratio, angle):
    roi = [float(v) for v in roi]
    if len(roi) not in (4, 5) or not np.isfinite(roi).all():
        raise DataError(
            "explain: roi must be four finite numbers (x1, y1, x2, y2), or five "
            f"(centre x, centre y, width, height, angle in degrees), got {roi}"
        )
    if len(shape) != 2 or min(shape) < 1 or max(shape) > 200:
        raise ParamError(f"explain: shape must be (height, width), each 1 to 200, got {tuple(shape)}")
    if not 0 < scale < np.inf:
        raise ParamError(f"explain: spatial_scale must be a number above 0, got {scale}")
    if len(pooled) != 2 or min(pooled) < 1 or max(pooled) > 32:
        raise ParamError(f"explain: pooled_size must be (height, width), each 1 to 32, got {tuple(pooled)}")
    if ratio > 32:
        raise ParamError(f"explain: sampling_ratio must be 32 or less, got {ratio}")
    if not math.isfinite(angle):
        raise ParamError(f"explain: angle must be a finite number of degrees, got {angle}")
    return roi


def chosen(names) -> list[str]:
    """The dialects that these names stand for: an operator's name stands for all that it has."""
    found: list[str] = []
    for name in names:
        of_operator = [each for each in dialects() if each == name or each.startswith(f"{name}/")]
        if not of_operator:
            operators = sorted({each.partition("/")[0] for each in dialects()})
            near = nearest(name, [*dialects(), *operators])
            raise ParamError(
                f"explain: unknown dialect {name!r}{near or '; there are those of ' + ', '.join(operators)}"
            )
        found += [name] if name in of_operator and "/" in name else of_operator
    return list(dict.fromkeys(found))


def _fitting(names, roi, normalised) -> list[str]:
    """Those of ``names`` that take a box like this: turned, normalised, or any that has four edges."""
    if normalised:
        return [name for name in names if _rules(name).boxes == r.CORNERS_YX_NORMALISED]
    return [name for name in names if _turned(name)] if len(roi) == 5 else list(names)


def table(
    roi,
    shape,
    spatial_scale=1.0,
    pooled_size=(2, 2),
    sampling_ratio=0,
    names=None,
    angle=0.0,
    normalised=False,
) -> str:
    """The same in words: frame, bins and numbers of samples of each dialect, a line each."""
    roi = _checked(roi, shape, spatial_scale, pooled_size, sampling_ratio, angle)
    names = chosen(names) if names else _fitting(dialects(), roi, normalised)
    lines = [
        f"{'dialect':<44} {'y start':>8} {'height':>8} {'x start':>8} {'width':>8}  samples in the first bin"
    ]
    for name in names:
        box = reading(name, roi, shape, spatial_scale, pooled_size, sampling_ratio, angle, normalised)
        count = f"{box.first[0]} x {box.first[1]}" + (" pixels" if box.integer else "")
        count += ", turned" if box.turned else ""
        (y, x), (height, width) = box.start, box.size
        lines.append(f"{name:<44} {y:>8.3f} {height:>8.3f} {x:>8.3f} {width:>8.3f}  {count}")
    return "\n".join(lines)


def draw(
    roi,
    shape,
    spatial_scale: float = 1.0,
    pooled_size: tuple[int, int] = (2, 2),
    sampling_ratio: int = 0,
    names=None,
    columns: int = 3,
    angle: float = 0.0,
    normalised: bool = False,
):
    """A matplotlib figure with one panel for each dialect.

    Parameters
    ----------
    roi : sequence of four or five floats
        The box ``(x1, y1, x2, y2)`` in image pixels; or, for the dialects whose boxes turn,
        ``(centre x, centre y, width, height, angle in degrees)``.
    shape : (int, int)
        Height and width of the feature map.
    spatial_scale : float
        Feature pixels per image pixel.
    pooled_size : (int, int)
        The output grid.
    sampling_ratio : int
        Samples a bin on each axis; 0 for one a feature pixel.
    names : list of str, optional
        Which dialects; one of each geometry (:func:`distinct`) that takes such a box unless given.
    columns : int
        Panels a row.
    angle : float
        By how many degrees a box of four numbers is turned, about its centre, where a dialect turns boxes.
    normalised : bool
        The box is ``(y1, x1, y2, x2)`` as ``CropAndResize`` takes it, where 1 is the centre of the last
        pixel. Otherwise that operator is drawn for the box in image pixels.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with ``figure.savefig("dialects.png")``.
    """
    try:
        from matplotlib.figure import Figure
        from matplotlib.layout_engine import ConstrainedLayoutEngine
    except ImportError:
        raise MXNetError("explain: drawing needs matplotlib (pip install matplotlib)") from None

    roi = _checked(roi, shape, spatial_scale, pooled_size, sampling_ratio, angle)
    same = {} if names else distinct()
    names = chosen(names) if names else _fitting(same, roi, normalised)
    boxes = [
        reading(name, roi, shape, spatial_scale, pooled_size, sampling_ratio, angle, normalised)
        for name in names
    ]
    # All panels show the same part of the plane: the map, and as much around it as any frame needs.
    reach_x, reach_y = zip(*(corner for box in boxes for corner in box.frame), strict=True)
    limits_y = max(-3.0, min(-0.5, *reach_y)) - 0.4, min(shape[0] + 2.0, max(shape[0] - 0.5, *reach_y)) + 0.4
    limits_x = max(-3.0, min(-0.5, *reach_x)) - 0.4, min(shape[1] + 2.0, max(shape[1] - 0.5, *reach_x)) + 0.4

    columns = min(columns, len(names))
    rows = -(-len(names) // columns)
    panel = 3.6
    aspect = (limits_y[1] - limits_y[0]) / (limits_x[1] - limits_x[0])
    lines = [len(same.get(name, ())) for name in names]
    # A row is as high as its panels with their title, and the longest of the captions below them.
    heights = [
        panel * 0.92 * aspect + 0.6 + 0.16 * max(lines[row * columns : (row + 1) * columns])
        for row in range(rows)
    ]
    in_a_row = min(5, max(1, int(columns * panel / 1.9)))  # of the legend's five entries
    height = sum(heights) + 0.25 + 0.2 * -(-5 // in_a_row)
    figure = Figure(figsize=(columns * panel, height), layout=ConstrainedLayoutEngine(h_pad=0.1))
    panels = figure.subplots(rows, columns, squeeze=False, height_ratios=heights)
    for panel_axes, name, box in zip(panels.flat, names, boxes, strict=False):
        _panel(panel_axes, box, shape, limits_y, limits_x)
        panel_axes.set_title(name, fontsize=10)
        if same.get(name):
            panel_axes.set_xlabel("also " + ",\n".join(same[name]), fontsize=8)
    for panel_axes in panels.flat[len(names) :]:
        panel_axes.set_axis_off()
    figure.legend(handles=_legend(), loc="outside lower center", ncols=in_a_row, frameon=False, fontsize=8)
    return figure


_BINS = ("#4c78a8", "#e45756", "#54a24b", "#b279a2")
_FRAME = "#222222"


def _panel(axes, box: Reading, shape, limits_y, limits_x) -> None:
    from matplotlib.patches import Polygon, Rectangle

    for row in range(shape[0]):
        for column in range(shape[1]):
            shade = "#f4f4f4" if (row + column) % 2 else "#ebebeb"
            axes.add_patch(
                Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=shade, edgecolor="#d5d5d5", lw=0.5)
            )
    for (i, j), (corners, points) in box.bins.items():
        colour = _BINS[(i % 2) * 2 + j % 2]
        if corners:
            axes.add_patch(Polygon(corners, facecolor=colour, alpha=0.16, edgecolor="none"))
            axes.add_patch(Polygon(corners, facecolor="none", edgecolor=colour, lw=1.3))
        size = 4.0 if corners else 7.0  # points without an area around them
        for marker, width, here in (
            ("o", 0.0, [point for point in points if point[2]]),
            ("x", 1.0, [point for point in points if not point[2]]),
        ):
            if here:
                x, y, _ = zip(*here, strict=True)
                axes.plot(x, y, marker, color=colour, markersize=size, markeredgewidth=width)
    axes.add_patch(Polygon(box.frame, facecolor="none", edgecolor=_FRAME, lw=1.1, ls=(0, (4, 2))))
    axes.set_xlim(*limits_x)
    axes.set_ylim(limits_y[1], limits_y[0])
    axes.set_aspect("equal")
    axes.set_xticks(range(0, shape[1], max(1, shape[1] // 8)))
    axes.set_yticks(range(0, shape[0], max(1, shape[0] // 8)))
    axes.tick_params(labelsize=7, length=0)
    for side in axes.spines.values():
        side.set_visible(False)


def _legend():
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    return [
        Line2D([], [], color=_FRAME, ls=(0, (4, 2)), lw=1.1, label="frame"),
        Patch(facecolor="#4c78a833", edgecolor="#4c78a8", label="bin"),
        Line2D([], [], color="#4c78a8", marker="o", ls="", markersize=4, label="pixel or sample that counts"),
        Line2D([], [], color="#4c78a8", marker="x", ls="", markersize=4, label="sample outside"),
        Patch(facecolor="#ebebeb", edgecolor="#d5d5d5", label="pixel of the map"),
    ]
