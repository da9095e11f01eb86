"""SSD's operators: default boxes, training targets, detections."""

import numpy as np

from ...errors import ParamError
from ...params import Field, Parameter, floats
from ...registry import register
from ..base import GradientFree, OperatorProperty, kernels
from ..dense import Result, WholeOperator, WholeProperty, computing


class MultiBoxPriorParam(Parameter):
    sizes = Field(floats(), (1.0,), doc="box sizes, as fractions of the image height")
    ratios = Field(
        floats(), (1.0,), above=0, doc="box shapes, width to height; the first goes with every size"
    )
    clip = Field(bool, False, doc="whether boxes are cut off at the image border")
    steps = Field(
        floats(2), (-1.0, -1.0), doc="distance of the box centres in y and x; -1: one cell of the feature map"
    )
    offsets = Field(floats(2), (0.5, 0.5), range=(0, 1), doc="where in its cell the centre lies, in y and x")

    def validate(self, operator):
        if not self.sizes or not self.ratios:
            raise ParamError(f"{operator}: sizes and ratios must each hold at least one number")
        if self.steps[0] * self.steps[1] < 0:
            raise ParamError(
                f"{operator}: steps must give both step_y and step_x, or neither, got {self.steps}"
            )


class MultiBoxPriorOp(GradientFree):
    def forward(self, ctx, in_data, req, out_data, aux):
        p = self.params
        height, width = in_data[0].shape[2:4]
        out = Result(out_data[0], req[0], out_data[0].shape, computing(out_data[0].dtype))
        kernels("detection.multibox", ctx.device).prior(
            height, width, p.sizes, p.ratios, p.steps, p.offsets, p.clip, out.array
        )
        out.store()


@register("_contrib_MultiBoxPrior", "MultiBoxPrior", "_npx_multibox_prior")
class MultiBoxPriorProp(OperatorProperty):
    """The default boxes of a feature map, as corners in fractions of the image (SSD, 2016).

    Only the shape of ``data`` matters. Each cell has one box for every size with the first ratio, then one
    for every further ratio with the first size.
    """

    param, op, floating = MultiBoxPriorParam, MultiBoxPriorOp, True
    arguments = {"data": "the feature map (images, channels, height, width)"}
    monitored_as_data = True

    def out_shapes(self, data):
        if len(data) < 4 or data[2] < 1 or data[3] < 1:
            raise self.shape_error(
                f"data must have shape (images, channels, height, width) with height and width "
                f"above 0, got {data}"
            )
        boxes = len(self.params.sizes) + len(self.params.ratios) - 1
        return [(1, data[2] * data[3] * boxes, 4)]


class MultiBoxTargetParam(Parameter):
    overlap_threshold = Field(
        float, 0.5, doc="anchors that overlap an object by more than this IoU belong to it"
    )
    ignore_label = Field(float, -1.0, doc="class target of anchors that take no part in the loss")
    negative_mining_ratio = Field(
        float,
        -1.0,
        doc="how many negatives there are to one positive; 0 or less: no mining, all are negatives",
    )
    negative_mining_thresh = Field(float, 0.5, doc="only anchors of a lower IoU can be mined as negatives")
    minimum_negative_samples = Field(int, 0, doc="without effect: MXNet takes the number, and ignores it")
    variances = Field(floats(4), (0.1, 0.1, 0.2, 0.2), doc="divisors of the four regression targets")

    def validate(self, operator):
        if self.negative_mining_ratio > 0 and not self.negative_mining_thresh > 0:
            raise ParamError(
                f"{operator}: negative_mining_thresh must be above 0 where negatives are mined, "
                f"got {self.negative_mining_thresh}"
            )


class MultiBoxTargetOp(GradientFree, WholeOperator):
    def run(self, ctx, inputs, results):
        p, (anchors, labels, scores) = self.params, inputs
        kernel = kernels("detection.multibox", ctx.device)
        assignment = kernel.Assignment(
            threshold=np.float32(p.overlap_threshold),
            ignore=p.ignore_label,
            mining_ratio=p.negative_mining_ratio,
            mining_below=np.float32(p.negative_mining_thresh),
            variances=np.asarray(p.variances, np.float32),
        )
        kernel.target(anchors[0], labels, scores, assignment, *results)


@register("_contrib_MultiBoxTarget", "MultiBoxTarget", "_npx_multibox_target")
class MultiBoxTargetProp(WholeProperty):
    """What SSD trains its boxes and classes towards.

    Each object is given the free anchor that overlaps it most, and further anchors go to the object they
    overlap by more than ``overlap_threshold``. The others are negatives (class 0), or only the hardest of
    them where ``negative_mining_ratio`` is set, and the rest is ignored.
    """

    param, op = MultiBoxTargetParam, MultiBoxTargetOp
    arguments = {
        "anchor": "corners (1, anchors, 4)",
        "label": "rows (class, corners, ...) for each image, ended by a row of -1",
        "cls_pred": "class scores (images, classes, anchors), the background first",
    }
    outputs = ("loc_target", "loc_mask", "cls_target")
    partial_shapes = True

    def infer_shape(self, in_shapes):
        anchor = self.check_shape("anchor", in_shapes[0], (1, "anchors", 4))
        scores = self.check_shape("cls_pred", in_shapes[2], ("images", "classes", anchor[1]))
        label = self.check_shape("label", in_shapes[1], (scores[0], "objects", "5 or more"))
        if -1 < label[2] < 5:
            raise self.shape_error(f"label must have 5 columns or more, got shape {label}")
        anchor, scores = (1, scores[2], 4), (label[0], *scores[1:])
        boxes = anchor[1]
        flat = (label[0], 4 * boxes if boxes >= 0 else -1)
        return [anchor, label, scores], [flat, flat, (label[0], boxes)]


class MultiBoxDetectionOp(GradientFree, WholeOperator):
    def run(self, ctx, inputs, results):
        p, (scores, codes, anchors) = self.params, inputs
        kernels("detection.multibox", ctx.device).detection(
            scores,
            codes,
            anchors[0],
            np.float32(p.threshold),
            p.clip,
            np.asarray(p.variances, np.float32),
            np.float32(p.nms_threshold),
            p.force_suppress,
            p.nms_topk,
            *results,
        )


@register("_contrib_MultiBoxDetection", "MultiBoxDetection", "_npx_multibox_detection")
class MultiBoxDetectionProp(WholeProperty):
    """Detections of SSD: rows (class, probability, xmin, ymin, xmax, ymax), best first.

    Rows of class -1 are no detections: suppressed boxes, and what is left of the output.
    """

    clip = Field(bool, True, doc="whether boxes are cut off at the image border; NaN stays")
    threshold = Field(float, 0.01, doc="least probability of a detection")
    background_id = Field(
        int, 0, doc="read from old files; as in MXNet, class 0 is the background all the same"
    )
    nms_threshold = Field(float, 0.5, doc="a box is dropped if it overlaps a better one by this IoU or more")
    force_suppress = Field(bool, False, doc="whether boxes of different classes suppress each other")
    variances = Field(floats(4), (0.1, 0.1, 0.2, 0.2), doc="factors of the four predicted numbers of a box")
    nms_topk = Field(int, -1, doc="how many boxes of highest score enter suppression; 0 or less: all")

    op = MultiBoxDetectionOp
    arguments = {
        "cls_prob": "class probabilities (images, classes, anchors), the background first",
        "loc_pred": "box predictions (images, 4 * anchors)",
        "anchor": "corners (1, anchors, 4)",
    }
    partial_shapes = True

    def infer_shape(self, in_shapes):
        anchor = self.check_shape("anchor", in_shapes[2], (1, "anchors", 4))
        scores = self.check_shape("cls_prob", in_shapes[0], ("images", "classes", anchor[1]))
        boxes = scores[2]
        codes = self.check_shape(
            "loc_pred", in_shapes[1], (scores[0], 4 * boxes if boxes >= 0 else "4 anchors")
        )
        scores = (codes[0], *scores[1:])
        return [scores, codes, (1, boxes, 4)], [(codes[0], boxes, 6)]
