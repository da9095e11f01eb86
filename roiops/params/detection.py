"""Parameters of the detection operators: anchors, proposals, suppression, box codes, deformable taps."""

from ..errors import ParamError
from .field import Field, enum, floats, optional, shape
from .parameter import Parameter

__all__ = [
    "BipartiteMatchingParam",
    "BoxDecodeParam",
    "BoxIoUParam",
    "BoxNMSParam",
    "DeformableConvolutionParam",
    "MRCNNMaskTargetParam",
    "ModulatedDeformableConvolutionParam",
    "MultiBoxDetectionParam",
    "MultiBoxPriorParam",
    "MultiBoxTargetParam",
    "ProposalParam",
]

_BOX_FORMAT = enum("corner", "center", codes={0: "corner", "0": "corner", 1: "center", "1": "center"})


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


class BoxNMSParam(Parameter):
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
    out_format = Field(_BOX_FORMAT, "corner", doc="coordinates of the output, likewise")


class BoxIoUParam(Parameter):
    format = Field(
        _BOX_FORMAT, "corner", doc="what the coordinates are: xmin ymin xmax ymax, or x y width height"
    )


class BipartiteMatchingParam(Parameter):
    is_ascend = Field(bool, False, doc="whether lower scores are better")
    threshold = Field(float, doc="pairs with a score that is no better than this are not matched")
    topk = Field(int, -1, doc="a bound on the matches; -1: none. As in MXNet, k lets k + 1 of them through")


class BoxDecodeParam(Parameter):
    std0 = Field(float, 1.0, doc="factor of the first encoded value")
    std1 = Field(float, 1.0, doc="factor of the second encoded value")
    std2 = Field(float, 1.0, doc="factor of the third encoded value")
    std3 = Field(float, 1.0, doc="factor of the fourth encoded value")
    clip = Field(float, -1.0, doc="upper bound of the logarithmic sizes; 0 or less: none")
    format = Field(
        _BOX_FORMAT, "center", doc="coordinates of the anchors: xmin ymin xmax ymax, or x y width height"
    )


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
    minimum_negative_samples = Field(
        int, 0, doc="how many negatives are mined at least (MXNet 1.9.1 takes the number, and ignores it)"
    )
    variances = Field(floats(4), (0.1, 0.1, 0.2, 0.2), doc="divisors of the four regression targets")

    def validate(self, operator):
        if self.negative_mining_ratio > 0 and not self.negative_mining_thresh > 0:
            raise ParamError(
                f"{operator}: negative_mining_thresh must be above 0 where negatives are mined, "
                f"got {self.negative_mining_thresh}"
            )


class MultiBoxDetectionParam(Parameter):
    clip = Field(bool, True, doc="whether boxes are cut off at the image border")
    threshold = Field(float, 0.01, doc="least probability of a detection")
    background_id = Field(
        int, 0, doc="read from old files; as in MXNet, class 0 is the background all the same"
    )
    nms_threshold = Field(float, 0.5, doc="a box is dropped if it overlaps a better one by this IoU or more")
    force_suppress = Field(bool, False, doc="whether boxes of different classes suppress each other")
    variances = Field(floats(4), (0.1, 0.1, 0.2, 0.2), doc="factors of the four predicted numbers of a box")
    nms_topk = Field(int, -1, doc="how many boxes of highest score enter suppression; 0 or less: all")


class DeformableConvolutionParam(Parameter):
    kernel = Field(shape(2), above=0, doc="kernel size (height, width)")
    stride = Field(shape((0, 2)), (1, 1), above=0, doc="distance of the windows in y and x")
    dilate = Field(shape((0, 2)), (1, 1), above=0, doc="distance of a window's undisplaced taps in y and x")
    pad = Field(shape((0, 2)), (0, 0), range=(0, None), doc="how far windows reach beyond the map in y and x")
    num_filter = Field(int, range=(1, None), doc="output channels")
    num_group = Field(int, 1, above=0, doc="groups of channels that are convolved apart from each other")
    num_deformable_group = Field(
        int, 1, above=0, doc="groups of input channels with displacements of their own"
    )
    workspace = Field(int, 1024, range=(0, None), doc="read from old files; scratch memory is bounded anyway")
    no_bias = Field(bool, False, doc="whether there is no bias input")
    layout = Field(optional(enum("NCHW")), None, doc="order of the axes")


class ModulatedDeformableConvolutionParam(DeformableConvolutionParam):
    im2col_step = Field(int, 64, above=0, doc="read from old files; images are taken one by one anyway")


class MRCNNMaskTargetParam(Parameter):
    num_rois = Field(int, range=(0, None), doc="boxes an image has")
    num_classes = Field(int, above=0, doc="classes, the background not counted")
    mask_size = Field(shape(2), above=0, doc="size (height, width) of the sampled masks")
    sample_ratio = Field(int, 2, doc="samples a bin and axis; 0 or less: as many as the bin has pixels")
    aligned = Field(bool, False, doc="whether coordinates are moved by half a pixel")
