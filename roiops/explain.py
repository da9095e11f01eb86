"""Draw what each dialect of an ROI operator reads: its frame, its bins and its samples over the pixels.

The numbers come from ``kernels/geometry.py`` itself, so the picture cannot disagree with the operators.
"""

from dataclasses import dataclass

import numpy as np

from .errors import DataError, MXNetError, ParamError, nearest
from .kernels.rules import CORNERS_XY, INNER, PIXELS
from .operators.roi.dialects import named

__all__ = ["Axis", "axis", "dialects", "distinct", "draw", "table"]


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


def dialects() -> list[str]:
    """Names of all dialects that can be drawn."""
    return [name for name, row in named().items() if row.rules.boxes == CORNERS_XY]


def distinct() -> dict[str, list[str]]:
    """One dialect of each geometry, with the others that read the very same samples.

    Those differ in what they do with the samples: mean or maximum, and which channel a bin reads.
    """
    groups: dict[tuple, list[str]] = {}
    for name in dialects():
        rules = named()[name].rules
        where = rules._replace(reduction=0, channels=0, empty=0.0, single_scale=False, displaced=False)
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
        A name of :func:`dialects`.
    low, high : float
        The edges, in image pixels.
    scale : float
        Feature pixels per image pixel.
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
    integer = rules.samples == PIXELS
    if rules.samples == INNER and ratio <= 0:
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
            if np.isfinite(p):
                found.append((float(p), bool(geometry.sample(rules, box, i, k, count)[0])))
        samples.append(list(dict.fromkeys(found)))
    return Axis(float(box.start), float(box.length), edges, samples, integer)


def _box(roi, scale, pooled, shape, ratio, dialect) -> tuple[Axis, Axis]:
    x1, y1, x2, y2 = roi
    return (
        axis(dialect, y1, y2, scale, pooled[0], shape[0], ratio),
        axis(dialect, x1, x2, scale, pooled[1], shape[1], ratio),
    )


def _checked(roi, shape, pooled):
    roi = [float(v) for v in roi]
    if len(roi) != 4 or not np.isfinite(roi).all():
        raise DataError(f"explain: roi must be four finite numbers (x1, y1, x2, y2), got {roi}")
    if len(shape) != 2 or min(shape) < 1 or max(shape) > 200:
        raise ParamError(f"explain: shape must be (height, width), each 1 to 200, got {tuple(shape)}")
    if len(pooled) != 2 or min(pooled) < 1:
        raise ParamError(f"explain: pooled_size must be (height, width), each 1 or more, got {tuple(pooled)}")
    return roi


def chosen(names) -> list[str]:
    """The dialects that these names stand for: an operator's name stands for all that it has."""
    found: list[str] = []
    for name in names:
        of_operator = [each for each in dialects() if each == name or each.startswith(f"{name}/")]
        if not of_operator:
            operators = {each.partition("/")[0] for each in dialects()}
            raise ParamError(f"explain: unknown dialect {name!r}{nearest(name, [*dialects(), *operators])}")
        found += [name] if name in of_operator and "/" in name else of_operator
    return list(dict.fromkeys(found))


def table(roi, shape, spatial_scale=1.0, pooled_size=(2, 2), sampling_ratio=0, names=None) -> str:
    """The same in words: frame, bins and numbers of samples of each dialect, a line each."""
    roi = _checked(roi, shape, pooled_size)
    names = chosen(names) if names else dialects()
    lines = [
        f"{'dialect':<44} {'y start':>8} {'height':>8} {'x start':>8} {'width':>8}  samples in the first bin"
    ]
    for name in names:
        y, x = _box(roi, spatial_scale, pooled_size, shape, sampling_ratio, name)
        count = f"{len(y.samples[0])} x {len(x.samples[0])}" + (" pixels" if y.integer else "")
        lines.append(f"{name:<44} {y.start:>8.3f} {y.length:>8.3f} {x.start:>8.3f} {x.length:>8.3f}  {count}")
    return "\n".join(lines)


def draw(
    roi,
    shape,
    spatial_scale: float = 1.0,
    pooled_size: tuple[int, int] = (2, 2),
    sampling_ratio: int = 0,
    names=None,
    columns: int = 3,
):
    """A matplotlib figure with one panel for each dialect.

    Parameters
    ----------
    roi : sequence of four floats
        The box ``(x1, y1, x2, y2)`` in image pixels.
    shape : (int, int)
        Height and width of the feature map.
    spatial_scale : float
        Feature pixels per image pixel.
    pooled_size : (int, int)
        The output grid.
    sampling_ratio : int
        Samples a bin on each axis; 0 for one a feature pixel.
    names : list of str, optional
        Which dialects; one of each geometry (:func:`distinct`) unless given.
    columns : int
        Panels a row.

    Returns
    -------
    matplotlib.figure.Figure
        Save it with ``figure.savefig("dialects.png")``.
    """
    try:
        from matplotlib.figure import Figure
    except ImportError:
        raise MXNetError("explain: drawing needs matplotlib (pip install matplotlib)") from None

    roi = _checked(roi, shape, pooled_size)
    same = {} if names else distinct()
    names = chosen(names) if names else list(same)
    boxes = [_box(roi, spatial_scale, pooled_size, shape, sampling_ratio, name) for name in names]
    # All panels show the same part of the plane: the map, and as much around it as any frame needs.
    reach_y = [edge for y, _ in boxes for edge in y.visible_frame]
    reach_x = [edge for _, x in boxes for edge in x.visible_frame]
    limits_y = max(-3.0, min(-0.5, *reach_y)) - 0.4, min(shape[0] + 2.0, max(shape[0] - 0.5, *reach_y)) + 0.4
    limits_x = max(-3.0, min(-0.5, *reach_x)) - 0.4, min(shape[1] + 2.0, max(shape[1] - 0.5, *reach_x)) + 0.4

    columns = min(columns, len(names))
    rows = -(-len(names) // columns)
    panel = 3.6
    aspect = (limits_y[1] - limits_y[0]) / (limits_x[1] - limits_x[0])
    captions = 0.13 * max((len(same.get(name, ())) for name in names), default=0)
    height = rows * (panel * 0.92 * aspect + 0.45 + captions) + 0.45
    figure = Figure(figsize=(columns * panel, height), layout="constrained")
    panels = figure.subplots(rows, columns, squeeze=False)
    for panel_axes, name, (y, x) in zip(panels.flat, names, boxes, strict=False):
        _panel(panel_axes, y, x, shape, limits_y, limits_x)
        panel_axes.set_title(name, fontsize=9)
        if same.get(name):
            panel_axes.set_xlabel("also " + ",\n".join(same[name]), fontsize=6.5)
    for panel_axes in panels.flat[len(names) :]:
        panel_axes.set_axis_off()
    figure.legend(handles=_legend(), loc="outside lower center", ncols=5, frameon=False, fontsize=8)
    return figure


_BINS = ("#4c78a8", "#e45756", "#54a24b", "#b279a2")
_FRAME = "#222222"


def _panel(axes, y: Axis, x: Axis, shape, limits_y, limits_x) -> None:
    from matplotlib.patches import Rectangle

    for row in range(shape[0]):
        for column in range(shape[1]):
            shade = "#f4f4f4" if (row + column) % 2 else "#ebebeb"
            axes.add_patch(
                Rectangle((column - 0.5, row - 0.5), 1, 1, facecolor=shade, edgecolor="#d5d5d5", lw=0.5)
            )
    half = 0.5 if y.integer else 0.0
    for i, (top, bottom) in enumerate(y.bins):
        for j, (left, right) in enumerate(x.bins):
            colour = _BINS[(i % 2) * 2 + j % 2]
            if bottom <= top or right <= left:
                continue
            # Bins may overlap: a little inset, different for each, keeps every outline visible.
            inset = 0.06 * ((i + j) % 2) if y.integer else 0.0
            corner = (left - half + inset, top - half + inset)
            size = (right - left - 2 * inset, bottom - top - 2 * inset)
            axes.add_patch(Rectangle(corner, *size, facecolor=colour, alpha=0.16, edgecolor="none"))
            axes.add_patch(Rectangle(corner, *size, facecolor="none", edgecolor=colour, lw=1.3))
            for py, valid_y in y.samples[i]:
                for px, valid_x in x.samples[j]:
                    if valid_y and valid_x:
                        axes.plot(px, py, "o", color=colour, markersize=3.4, markeredgewidth=0)
                    else:
                        axes.plot(px, py, "x", color=colour, markersize=4.0, markeredgewidth=1.0)
    (top, bottom), (left, right) = y.visible_frame, x.visible_frame
    axes.add_patch(
        Rectangle(
            (left, top),
            right - left,
            bottom - top,
            facecolor="none",
            edgecolor=_FRAME,
            lw=1.1,
            ls=(0, (4, 2)),
        )
    )
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
