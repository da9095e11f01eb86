"""The operators on regions of interest in ONNX.

``MaxRoiPool`` and ``RoiAlign`` are what they stand on. Where a dialect has bins of its own, or score maps for
each bin, every bin becomes a box of one bin, and every group of score maps an image.
"""

import numpy as np

from ..lowering import lowers

#: Operators that never give a row that is to be ignored.
_SOUND = {"_contrib_Proposal", "_contrib_MultiProposal"}


def _on_sound_rows(g, node, rois, channels, size, pool):
    """``pool(rows)`` for the rows that name an image and are finite, zeros for the others."""
    if node.sources[1] in _SOUND:
        return pool(rois)
    # A sum of magnitudes is finite where all of them are, short of overflow.
    extent = g.reduce("Sum", g.Abs(g.slice(rois, 1, 1)), [1])
    sound = (g.column(rois, 0, axis=1) > -1) & (extent < np.array(np.inf, rois.dtype))
    places = g.Transpose(g.NonZero(sound), perm=[1, 0])
    found = pool(g.GatherND(rois, places))
    zeros = g.ConstantOfShape(
        g.Concat(g.slice(g.Shape(rois), 0, 0, 1), g.ints(channels, *size), axis=0), value=np.zeros(1, found.dtype)
    )
    return g.ScatterND(zeros, places, found)


def _align(g, data, rows, size, ratio, scale, half_pixel):
    """``RoiAlign`` of rows (image, x1, y1, x2, y2)."""
    image = g.cast(g.column(rows, 0, axis=1), np.int64)
    boxes = g.cast(g.slice(rows, 1, 1, 5), data.dtype)
    return g.RoiAlign(
        data,
        boxes,
        image,
        output_height=size[0],
        output_width=size[1],
        sampling_ratio=max(ratio, 0),
        spatial_scale=float(scale),
        mode="avg",
        coordinate_transformation_mode="half_pixel" if half_pixel else "output_half_pixel",
    )


@lowers("_contrib_ROIAlign", as_function=True)
def contrib_roi_align(g, node, data, rois):
    p = node.params
    (channels,) = node.fixed(data, 1)
    if p.position_sensitive:
        node.cannot("position_sensitive")
    if p.ratio[0] != p.ratio[1]:
        node.cannot(f"ONNX's RoiAlign has one sampling ratio for both axes, got {p.ratio}")
    return _on_sound_rows(
        g, node, rois, channels, p.pooled_size,
        lambda rows: _align(g, data, rows, p.pooled_size, p.ratio[0], np.float32(p.spatial_scale), p.aligned),
    )  # fmt: skip


@lowers("ROIPooling", as_function=True)
def roi_pooling(g, node, data, rois):
    p = node.params
    (channels,) = node.fixed(data, 1)
    return _on_sound_rows(
        g, node, rois, channels, p.pooled_size,
        lambda rows: g.MaxRoiPool(
            data, g.cast(rows, data.dtype), pooled_shape=p.pooled_size, spatial_scale=float(np.float32(p.spatial_scale))
        ),
    )  # fmt: skip
