"""Region proposals."""

import numpy as np

from ...errors import DataError, ParamError
from ...params import Field, Parameter, floats
from ...registry import register
from ..base import GradientFree, kernels
from ..dense import WholeOperator, WholeProperty


class ProposalParam(Parameter):
    rpn_pre_nms_top_n = Field(
        int, 6000, doc="boxes of highest score that enter suppression; 0 or less: all of them"
    )
    rpn_post_nms_top_n = Field(int, 300, above=0, doc="rows an image has in the output")
    threshold = Field(float, 0.7, doc="a box is dropped if it overlaps a better one by more than this IoU")
    rpn_min_size = Field(int, 16, doc="least side of a box, in pixels of the unscaled image")
    scales = Field(floats(), (4.0, 8.0, 16.0, 32.0), doc="anchor sizes, in units of feature_stride")
    ratios = Field(floats(), (0.5, 1.0, 2.0), above=0, doc="anchor shapes, height to width")
    feature_stride = Field(int, 16, above=0, doc="image pixels from one cell of the score map to the next")
    output_score = Field(bool, False, doc="whether the scores are a second output")
    iou_loss = Field(
        bool, False, doc="whether bbox_pred moves the corners, instead of the centre and the logarithmic size"
    )

    def validate(self, operator):
        if not self.scales or not self.ratios:
            raise ParamError(f"{operator}: scales and ratios must each hold at least one number")


class ProposalOp(GradientFree, WholeOperator):
    def run(self, ctx, inputs, results):
        p, (cls_prob, bbox_pred, im_info) = self.params, inputs
        kernel = kernels("detection.proposal", ctx.device)
        self._check_images(ctx, kernel.cells_of(im_info, p.feature_stride), cls_prob.shape[2:])
        selection = kernel.Selection(
            anchors=kernel.base_anchors(p.scales, p.ratios, p.feature_stride),
            stride=p.feature_stride,
            before=p.rpn_pre_nms_top_n,
            after=p.rpn_post_nms_top_n,
            threshold=np.float32(p.threshold),
            min_size=p.rpn_min_size,
            corner_deltas=p.iou_loss,
        )
        kernel.forward(cls_prob, bbox_pred, im_info, selection, *results)

    def _check_images(self, ctx, cells, available):
        for image, need in enumerate(cells):
            if not (np.isfinite(need).all() and (need <= available).all()):
                raise DataError(
                    f"{ctx.label}: im_info says that image {image} covers {need[0]:g} x {need[1]:g} cells "
                    f"of feature_stride {self.params.feature_stride}, but cls_prob has "
                    f"{available[0]} x {available[1]}"
                )


@register("_contrib_MultiProposal", "MultiProposal")
class MultiProposalProp(WholeProperty):
    """Turn the scores and box displacements of an RPN head into regions of interest (Faster R-CNN, 2015).

    The best boxes of every image, after suppression, as rows ``[image, x1, y1, x2, y2]``. An image with fewer
    of them than ``rpn_post_nms_top_n`` has its rows repeated.
    """

    param, op = ProposalParam, ProposalOp
    arguments = {
        "cls_prob": "probabilities (images, 2 * anchors, height, width), those of the background first",
        "bbox_pred": "displacements (images, 4 * anchors, height, width)",
        "im_info": "a row (height, width, scale) for each image",
    }
    outputs, more_visible_with = ("output", "score"), "output_score"

    def infer_shape(self, in_shapes):
        data = in_shapes[0]
        self.check_ndim("cls_prob", data, 4)
        anchors = len(self.params.scales) * len(self.params.ratios)
        self.check_shape("cls_prob", data, ("images", 2 * anchors, "height", "width"))
        bbox_pred = self.check_shape("bbox_pred", in_shapes[1], (data[0], 4 * anchors, data[2], data[3]))
        im_info = self.check_shape("im_info", in_shapes[2], (data[0], 3))
        rows = data[0] * self.params.rpn_post_nms_top_n
        return [data, bbox_pred, im_info], [(rows, 5), (rows, 1)]


@register("_contrib_Proposal", "Proposal")
class ProposalProp(MultiProposalProp):
    """Turn the scores and box displacements of an RPN head into regions of interest, for one image.

    The best boxes after suppression, as rows ``[0, x1, y1, x2, y2]``. Where there are fewer of them than
    ``rpn_post_nms_top_n``, the rows are repeated.
    """

    def infer_shape(self, in_shapes):
        self.check_ndim("cls_prob", in_shapes[0], 4)
        if in_shapes[0][0] != 1:
            raise self.shape_error(
                f"cls_prob must hold one image, got {in_shapes[0][0]}; _contrib_MultiProposal takes several"
            )
        return super().infer_shape(in_shapes)
