"""ROIAlign for boxes that are turned."""

from ...errors import ShapeError
from ...kernels.rules import Pooling
from ...params import Field
from ...registry import register
from ..base import kernels
from .base import ROIOperator, ROIProperty
from .fields import DialectParam, dialect_field, pooled_size_field, samples_field, scale_field


def _boxes(angle):
    return (
        "boxes (num_rois, 6): image index, centre x, centre y, width, height in image pixels, and the angle "
        f"{angle}. A row with a negative index or a number that is not finite is ignored"
    )


class TurnedOp(ROIOperator):
    """Means in the bins of turned boxes."""

    def __init__(self, params):
        super().__init__(params)
        self.how = Pooling(params.row.rules, params.spatial_scale, params.sampling_ratio)

    def compute(self, ctx, in_data, out_data):
        kernels("roi.rotated", ctx.device).forward(*in_data, self.how, *out_data)

    def gradient(self, ctx, number, head, in_data, out_data, add, target):
        kernels("roi.rotated", ctx.device).backward(head, in_data[1], self.how, add, target)


class TurnedProp(ROIProperty):
    """Base of those on turned boxes."""

    op = TurnedOp
    roi_columns = 6


class RROIAlignParam(DialectParam):
    table = "contrib.RROIAlign"
    pooled_size = pooled_size_field()
    spatial_scale = scale_field()
    sampling_ratio = samples_field(-1, "sample_num", "sample_ratio")


@register("_contrib_RROIAlign")
class RROIAlignProp(TurnedProp):
    """Mean of bilinear samples in the bins of rotated boxes. Unlike MXNet's, it has a gradient."""

    param = RROIAlignParam
    arguments = {**ROIProperty.argument_docs, "rois": _boxes("in degrees")}


class ROIAlignRotatedParam(DialectParam):
    table = "ROIAlignRotated"
    pooled_size = pooled_size_field()
    spatial_scale = scale_field(high=None)
    sampling_ratio = samples_field(0, "sample_num", "sample_ratio")
    aligned = Field(bool, True, doc="pixel centres at half-integers, and no least size of a box; mmcv only")
    clockwise = Field(bool, False, doc="whether angles turn clockwise, under mmcv")
    dialect = dialect_field(table)


@register("ROIAlignRotated", "_contrib_ROIAlignRotated")
class ROIAlignRotatedProp(TurnedProp):
    """Mean of bilinear samples in the bins of rotated (oriented) boxes, as mmcv and Detectron2 take it."""

    param = ROIAlignRotatedParam
    arguments = {
        **ROIProperty.argument_docs,
        "rois": _boxes("in radians, under detectron2 in degrees"),
    }


class RiROIAlignParam(DialectParam):
    table = "RiROIAlign"
    pooled_size = pooled_size_field()
    spatial_scale = scale_field(high=None)
    sampling_ratio = samples_field(0, "num_samples", "sample_num")
    num_orientations = Field(int, 8, range=(1, None), doc="neighbouring channels that are one, seen turned")
    clockwise = Field(bool, False, doc="whether angles turn clockwise")


class RiROIAlignOp(TurnedOp):
    """Pools as the others do, then turns the orientation channels of each box by its angle.

    Both steps are linear and separate: the turn is between two neighbouring orientations, the same for all
    bins of a box.
    """

    def compute(self, ctx, in_data, out_data):
        super().compute(ctx, in_data, out_data)
        kernels("roi.orientation", ctx.device).turn(
            in_data[1], self.params.num_orientations, False, out_data[0]
        )

    def gradient(self, ctx, number, head, in_data, out_data, add, target):
        head = head.copy()
        kernels("roi.orientation", ctx.device).turn(in_data[1], self.params.num_orientations, True, head)
        super().gradient(ctx, number, head, in_data, out_data, add, target)


@register("RiROIAlign", "_contrib_RiROIAlign")
class RiROIAlignProp(TurnedProp):
    """Rotation-equivariant ROIAlign: orientation channels turn with the rotated box (ReDet, 2021)."""

    param, op = RiROIAlignParam, RiROIAlignOp
    example_params = {"num_orientations": 1}
    arguments = {**ROIProperty.argument_docs, "rois": _boxes("in radians")}

    def out_channels(self, channels):
        if channels != -1 and channels % self.params.num_orientations:
            raise ShapeError(
                f"{self.label}: data must have a multiple of num_orientations = "
                f"{self.params.num_orientations} channels, got {channels}"
            )
        return channels
