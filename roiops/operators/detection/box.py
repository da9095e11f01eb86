"""Overlaps, suppression, matching and codes of boxes."""

import math

import numpy as np

from ...errors import DataError, ParamError
from ...params import Field, enum
from ...registry import register
from ..base import GradientFree, kernels
from ..dense import Result, WholeOperator, WholeProperty

_BOX_FORMAT = enum("corner", "center", codes={0: "corner", "0": "corner", 1: "center", "1": "center"})


class BoxNMSOp(WholeOperator):
    def run(self, ctx, inputs, results):
        p, (data,), (out, record) = self.params, inputs, results
        rows, width = data.shape[-2:]
        batches = math.prod(data.shape[:-2])
        kernel = kernels("detection.box", ctx.device)
        suppression = kernel.Suppression(
            threshold=np.float32(p.overlap_thresh),
            least_score=np.float32(p.valid_thresh),
            most=p.topk,
            coord=p.coord_start,
            score=p.score_index,
            class_column=p.id_index,
            background=p.background_id,
            force=p.force_suppress,
            centre=p.in_format == "center",
            out_centre=p.out_format == "center",
        )
        kernel.nms(
            data.reshape(batches, rows, width),
            suppression,
            out.reshape(batches, rows, width),
            record.reshape(batches, rows),
        )

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        grad = Result(in_grad[0], req[0], in_grad[0].shape, in_grad[0].dtype)
        rows, width = grad.array.shape[-2:]
        batches = math.prod(grad.array.shape[:-2])
        kernels("detection.box", ctx.device).nms_backward(
            out_grad[0].reshape(batches, rows, width),
            out_data[1].reshape(batches, rows),
            grad.array.reshape(batches, rows, width),
        )
        grad.store()


@register("_contrib_box_nms", "_contrib_box_non_maximum_suppression", "_npx_box_nms")
class BoxNMSProp(WholeProperty):
    """Drop boxes that overlap better ones (greedy non-maximum suppression).

    Every row holds a score, a box and perhaps a class. The surviving rows of each batch come first, best
    score first; what is left of the output is -1. A row's gradient goes back to the row it came from. Rows
    of float16 are compared in float32.
    """

    overlap_thresh = Field(
        float, 0.5, doc="a box is dropped if it overlaps a better one by more than this IoU"
    )
    valid_thresh = Field(float, 0.0, doc="only boxes of a higher score take part")
    topk = Field(
        int, -1, doc="how many boxes of highest score take part; -1: all; 0: the input is returned as it is"
    )
    coord_start = Field(int, 2, range=(0, None), doc="column of the first of the four coordinates")
    score_index = Field(int, 1, range=(0, None), doc="column of the score")
    id_index = Field(int, -1, doc="column of the class; -1: there is none")
    background_id = Field(int, -1, doc="boxes of this class are dropped, where there is a class column")
    force_suppress = Field(bool, False, doc="whether boxes of different classes suppress each other")
    in_format = Field(
        _BOX_FORMAT, "corner", doc="coordinates of the input: xmin ymin xmax ymax, or x y width height"
    )
    out_format = Field(
        _BOX_FORMAT,
        "corner",
        doc="coordinates of the output, likewise; where they are others than the input's, boxes whose first "
        "coordinate is below 0 are left as they are, as in MXNet",
    )

    op = BoxNMSOp
    out_types = (0, np.dtype(np.int64))
    arguments = {"data": "rows (..., boxes, width), in any number of batches"}
    outputs, visible_outputs = ("output0", "output1"), 1
    backward_needs = ("out_grad", "out_data")

    def infer_shape(self, in_shapes):
        data = in_shapes[0]
        self.check_ndim("data", data, least=2)
        self._check_columns(data[-1])
        return [data], [data, (*data[:-1], 1)]

    def _check_columns(self, width):
        p = self.params
        box = range(p.coord_start, p.coord_start + 4)
        columns = {"score_index": p.score_index}
        if p.id_index >= 0:
            columns["id_index"] = p.id_index
        if box.stop > width:
            raise self.shape_error(
                f"data must have at least {box.stop} columns for coord_start {p.coord_start}, got {width}"
            )
        for name, column in columns.items():
            if column >= width:
                raise self.shape_error(f"data must have more than {column} columns ({name}), got {width}")
            if column in box:
                raise ParamError(
                    f"{self.label}: {name} {column} is one of the coordinates, "
                    f"columns {box.start} to {box.stop - 1}"
                )
        if len(set(columns.values())) < len(columns):
            raise ParamError(
                f"{self.label}: score_index and id_index must differ, got {p.score_index} for both"
            )


class BoxIoUOp(GradientFree, WholeOperator):
    def run(self, ctx, inputs, results):
        lhs, rhs = (boxes.reshape(-1, 4) for boxes in inputs)
        kernels("detection.box", ctx.device).iou(
            lhs, rhs, self.params.format == "center", results[0].reshape(len(lhs), len(rhs))
        )


@register("_contrib_box_iou", "_npx_box_iou")
class BoxIoUProp(WholeProperty):
    """Intersection over union of every box of ``lhs`` with every box of ``rhs``."""

    format = Field(
        _BOX_FORMAT, "corner", doc="what the coordinates are: xmin ymin xmax ymax, or x y width height"
    )

    op = BoxIoUOp
    arguments = {"lhs": "boxes (..., 4)", "rhs": "boxes (..., 4)"}
    partial_shapes = True

    def infer_shape(self, in_shapes):
        for name, shape in zip(self.arguments, in_shapes, strict=True):
            if shape is not None and (len(shape) < 2 or shape[-1] not in (4, -1)):
                raise self.shape_error(f"{name} must have shape (..., 4), got {shape}")
        if None in in_shapes:
            return in_shapes, [None]
        return in_shapes, [(*in_shapes[0][:-1], *in_shapes[1][:-1])]


class BipartiteMatchingOp(GradientFree, WholeOperator):
    def run(self, ctx, inputs, results):
        (data,), (row, column) = inputs, results
        rows, columns = data.shape[-2:]
        batches = math.prod(data.shape[:-2])
        kernels("detection.box", ctx.device).bipartite_matching(
            data.reshape(batches, rows, columns),
            np.float32(self.params.threshold),
            self.params.is_ascend,
            self.params.topk,
            row.reshape(batches, rows),
            column.reshape(batches, columns),
        )


@register("_contrib_bipartite_matching", "_npx_bipartite_matching")
class BipartiteMatchingProp(WholeProperty):
    """Match rows and columns of a score matrix one to one, taking the best remaining pair each time.

    The outputs hold the column of each row and the row of each column, -1 for those without a match.
    """

    is_ascend = Field(bool, False, doc="whether lower scores are better")
    threshold = Field(float, doc="pairs with a score that is no better than this are not matched")
    topk = Field(int, -1, doc="a bound on the matches; -1: none. As in MXNet, k lets k + 1 of them through")

    op = BipartiteMatchingOp
    arguments = {"data": "score matrices (..., rows, columns)"}
    outputs = ("output0", "output1")

    def out_shapes(self, data):
        self.check_ndim("data", data, least=2)
        return [data[:-1], (*data[:-2], data[-1])]


class BoxEncodeOp(GradientFree, WholeOperator):
    def run(self, ctx, inputs, results):
        bad = kernels("detection.box", ctx.device).encode(*inputs, *results)
        if bad >= 0:
            _, matches, anchors, refs, *_ = inputs
            batch, row = divmod(bad, anchors.shape[1])
            raise DataError(
                f"{ctx.label}: matches[{batch}, {row}] must be a row of refs, 0 to {refs.shape[1] - 1}, "
                f"got {matches[batch, row]:g}"
            )


@register("_contrib_box_encode", "_npx_box_encode")
class BoxEncodeProp(WholeProperty):
    """Regression targets of anchors to the boxes they match, and a mask of those that have one."""

    op = BoxEncodeOp
    arguments = {
        "samples": "(batches, anchors): 1 for a positive anchor, 0 or -1 for others",
        "matches": "(batches, anchors): the row of refs that a positive anchor matches",
        "anchors": "corners (batches, anchors, 4)",
        "refs": "corners (batches, refs, 4)",
        "means": "(4,): taken off the targets",
        "stds": "(4,): what the targets are then divided by",
    }
    outputs = ("output0", "output1")
    partial_shapes = True

    def infer_shape(self, in_shapes):
        samples, matches, anchors, refs, means, stds = in_shapes
        anchors = self.check_shape("anchors", anchors, ("batches", "anchors", 4))
        samples = self.check_shape("samples", samples, ("batches", "anchors"))
        for name, shape in (("samples", samples), ("matches", matches)):
            anchors = (*self.check_shape(name, shape, anchors[:2]), 4)
        pair = anchors[:2]
        refs = self.check_shape("refs", refs, (pair[0], "refs", 4))
        means, stds = self.check_shape("means", means, (4,)), self.check_shape("stds", stds, (4,))
        return [pair, pair, anchors, refs, means, stds], [anchors, anchors]


class BoxDecodeOp(GradientFree, WholeOperator):
    def run(self, ctx, inputs, results):
        p = self.params
        stds = (p.std0, p.std1, p.std2, p.std3)
        kernels("detection.box", ctx.device).decode(*inputs, stds, p.clip, p.format == "corner", *results)


@register("_contrib_box_decode", "_npx_box_decode")
class BoxDecodeProp(WholeProperty):
    """Boxes, as corners, from predicted displacements of anchors."""

    std0 = Field(float, 1.0, doc="factor of the first encoded value")
    std1 = Field(float, 1.0, doc="factor of the second encoded value")
    std2 = Field(float, 1.0, doc="factor of the third encoded value")
    std3 = Field(float, 1.0, doc="factor of the fourth encoded value")
    clip = Field(float, -1.0, doc="upper bound of the logarithmic sizes; 0 or less: none")
    format = Field(
        _BOX_FORMAT, "center", doc="coordinates of the anchors: xmin ymin xmax ymax, or x y width height"
    )

    op = BoxDecodeOp
    arguments = {"data": "predictions (batches, anchors, 4)", "anchors": "boxes (1, anchors, 4)"}
    partial_shapes = True

    def infer_shape(self, in_shapes):
        data = self.check_shape("data", in_shapes[0], ("batches", "anchors", 4))
        anchors = self.check_shape("anchors", in_shapes[1], (1, data[1], 4))
        data = (data[0], anchors[1], 4)
        return [data, anchors], [data]
