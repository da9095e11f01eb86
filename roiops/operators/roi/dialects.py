"""Every dialect of every ROI operator, a row each: the only place that knows which there are.

A row is found by operator, dialect, mode and variant. The choices that an operator offers, its help, its
errors, ``roiops explain``, ``roiops.warmup``, the tables of docs/dialects.md and the cases of the tests are
all read from here, so that a new dialect is one row and the golden files that it must agree with.
"""

import functools
from dataclasses import dataclass, field

from ...errors import ParamError
from ...kernels import rules as r
from ...kernels.rules import Rules

__all__ = ["TABLE", "Dialect", "dialects_of", "find", "flags_of", "modes_of", "named", "rows"]

_INF = float("inf")


@dataclass(frozen=True)
class Dialect:
    """One row: what an operator computes under one choice of its parameters."""

    operator: str  #: the public name, such as ``contrib.ROIAlign``
    dialect: str  #: the value of the parameter ``dialect``; empty for an operator without it
    mode: str  #: the value of ``mode``, or what takes its place; empty for an operator with one only
    variant: tuple[str, ...]  #: the parameters that must be true
    rules: Rules
    whose: tuple[str, ...] = ()  #: functions elsewhere that give these numbers, for the documentation
    golden: tuple[str, ...] = ()  #: files of tests/golden/roi that it must agree with
    remark: str = ""  #: what to know about it, in a few words
    #: Rules of the backward pass, where they are others: some libraries' are not those of their forward pass.
    backward_rules: Rules | None = None
    key: tuple = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self):
        object.__setattr__(self, "key", (self.operator, self.dialect, self.mode, self.variant))

    @property
    def name(self) -> str:
        """``ROIAlign/mmcv/max/aligned``: without the mode where it is the operator's usual one."""
        mode = "" if self.mode == rows(self.operator)[0].mode else self.mode
        return "/".join(filter(None, (self.operator, self.dialect, mode, *self.variant)))

    @property
    def parameters(self) -> dict:
        """The parameters that choose this row, each of them said."""
        chosen = {flag: flag in self.variant for flag in flags_of(self.operator, self.dialect)}
        if self.dialect:
            chosen["dialect"] = self.dialect
        if len({row.mode for row in rows(self.operator)}) > 1:
            chosen["mode"] = self.mode
        return chosen


TABLE: dict[tuple, Dialect] = {}


def _row(operator, dialect, mode, variant, rules, **words):
    row = Dialect(operator, dialect, mode, tuple(variant.split()), rules, **words)
    if row.key in TABLE:
        raise ValueError(f"there are two rows {row.key}")
    TABLE[row.key] = row


# -- lookups ---------------------------------------------------------------------------------------------


@functools.cache
def rows(operator: str) -> tuple[Dialect, ...]:
    """The rows of one operator, its usual one first."""
    return tuple(row for row in TABLE.values() if row.operator == operator)


def dialects_of(operator: str) -> list[str]:
    """The dialects of an operator, its usual one first."""
    return list(dict.fromkeys(row.dialect for row in rows(operator)))


def modes_of(operator: str, dialect: str) -> list[str]:
    """The modes of an operator's dialect, the usual one first."""
    return list(dict.fromkeys(row.mode for row in rows(operator) if row.dialect == dialect))


def flags_of(operator: str, dialect: str) -> list[str]:
    """The parameters that choose among the variants of an operator's dialect."""
    found = (flag for row in rows(operator) if row.dialect == dialect for flag in row.variant)
    return list(dict.fromkeys(found))


def find(operator: str, dialect: str, mode: str, variant: tuple[str, ...] = (), label: str = "") -> Dialect:
    """The row for these choices; an error that lists the operator's rows if there is none."""
    row = TABLE.get((operator, dialect, mode, tuple(variant)))
    if row is None:
        asked = "/".join(filter(None, (operator, dialect, mode, *variant)))
        known = ", ".join(each.name for each in rows(operator))
        raise ParamError(f"{label or operator}: there is no dialect {asked} (there are: {known or 'none'})")
    return row


@functools.cache
def named() -> dict[str, Dialect]:
    """All rows by their names."""
    return {row.name: row for row in TABLE.values()}


# -- the rows --------------------------------------------------------------------------------------------

_CAFFE_POOL = Rules(
    r.ROUNDED_AFTER_SCALING,
    r.PLUS_FEATURE_PIXEL,
    least=1.0,
    bins=r.INTEGER_OFFSET,
    samples=r.PIXELS,
    border=r.EXACT_PIXEL,
    reduction=r.MAX_OF_VALID,
    single_scale=True,
)
_CHAINER_POOL = _CAFFE_POOL._replace(end=r.OPEN_END, empty=-_INF, single_scale=False)
_ALIGN = Rules(least=1.0)
_HALF_PIXEL = {"shift": 0.5, "least": -_INF}
_ALIGNED = _ALIGN._replace(**_HALF_PIXEL)
_MAX = {"reduction": r.MAX_INVALID_IS_ZERO}
_CHAINER_MAX = {"reduction": r.MAX_OF_VALID, "empty": -_INF}
_MXNET_PS = Rules(
    r.ROUNDED_BEFORE_SCALING,
    r.PLUS_IMAGE_PIXEL,
    least=0.1,
    bins=r.INTEGER_EDGES,
    samples=r.PIXELS,
    border=r.EXACT_PIXEL,
    channels=r.GROUPED,
    single_scale=True,
)
_TORCHVISION_PS = _CAFFE_POOL._replace(
    end=r.OPEN_END, reduction=r.MEAN_OF_ALL, channels=r.ONE_PER_BIN, single_scale=False
)
_CHAINER_PS = _MXNET_PS._replace(rounding=r.NOT_ROUNDED, end=r.OPEN_END, single_scale=False)

# max or mean over integer bins
_row(
    "ROIPooling", "mxnet", "max", "", _CAFFE_POOL,
    whose=("MXNet ROIPooling", "Caffe ROIPooling", "ONNX MaxRoiPool"),
    golden=("mxnet_ROIPooling", "onnxruntime_MaxRoiPool"),
)  # fmt: skip
_row(
    "ROIPooling", "torchvision", "max", "", _CAFFE_POOL._replace(single_scale=False),
    whose=("torchvision roi_pool", "Chainer roi_pooling_2d"),
    golden=("torchvision_roi_pool", "chainer_roi_pooling_2d"),
    remark="as mxnet, but the scale keeps its last bits with float64",
)  # fmt: skip
_row(
    "ROIPooling", "mmcv", "max", "",
    _CAFFE_POOL._replace(rounding=r.NOT_ROUNDED, end=r.PLUS_IMAGE_PIXEL, least=-_INF,
                         bins=r.INTEGER_EDGES, single_scale=False),
    whose=("mmcv roi_pool",),
)  # fmt: skip
_row(
    "ROIPooling", "chainer", "max", "", _CHAINER_POOL,
    whose=("Chainer roi_max_pooling_2d",), golden=("chainer_roi_max_pooling_2d",),
)  # fmt: skip
_row(
    "ROIPooling", "chainer", "avg", "", _CHAINER_POOL._replace(reduction=r.MEAN_OF_ALL, empty=0.0),
    whose=("Chainer roi_average_pooling_2d",), golden=("chainer_roi_average_pooling_2d",),
)  # fmt: skip

# bilinear samples
_row(
    "ROIAlign", "mmcv", "avg", "", _ALIGN,
    whose=("mmcv roi_align", "torchvision roi_align", "Detectron ROIAlign"),
    golden=("torchvision_roi_align_unaligned",),
)  # fmt: skip
_row(
    "ROIAlign", "mmcv", "avg", "aligned", _ALIGNED,
    whose=("mmcv roi_align", "torchvision roi_align", "Detectron2 ROIAlign"),
    golden=("torchvision_roi_align_aligned",),
)  # fmt: skip
_row("ROIAlign", "mmcv", "max", "", _ALIGN._replace(**_MAX), whose=("mmcv roi_align",))
_row("ROIAlign", "mmcv", "max", "aligned", _ALIGNED._replace(**_MAX), whose=("mmcv roi_align",))
_row(
    "ROIAlign", "chainer", "avg", "", _ALIGN,
    whose=("Chainer roi_average_align_2d",), golden=("chainer_roi_average_align_2d",),
)  # fmt: skip
_row(
    "ROIAlign", "chainer", "max", "", _ALIGN._replace(**_CHAINER_MAX),
    whose=("Chainer roi_max_align_2d",), golden=("chainer_roi_max_align_2d",),
)  # fmt: skip
_row(
    "ROIAlign", "mxnet", "max", "",
    Rules(end=r.PLUS_FEATURE_PIXEL, bins=r.REAL_CLIPPED, samples=r.UNIT_STEPS, border=r.ZERO_PADDED,
          reduction=r.MAX_OF_VALID, single_scale=True),
    whose=("the early Caffe and MXNet ROIAlign",),
    remark="unit steps from the edge of each bin",
)  # fmt: skip
_row(
    "ROIAlign", "onnx", "avg", "", _ALIGN,
    whose=("ONNX RoiAlign, output_half_pixel",),
    golden=("onnxruntime_RoiAlign_output_half_pixel", "onnxruntime_RoiAlign_opset10"),
)  # fmt: skip
_row(
    "ROIAlign", "onnx", "avg", "aligned", _ALIGNED,
    whose=("ONNX RoiAlign, half_pixel",), golden=("onnxruntime_RoiAlign_half_pixel",),
)  # fmt: skip
_row(
    "ROIAlign", "onnx", "max", "", _ALIGN._replace(samples=r.CORNERS, **_MAX),
    whose=("ONNX RoiAlign, output_half_pixel",),
    remark="the greatest of the weighted pixels, which are not added up first",
)  # fmt: skip
_row(
    "ROIAlign", "onnx", "max", "aligned", _ALIGNED._replace(samples=r.CORNERS, **_MAX),
    whose=("ONNX RoiAlign, half_pixel",),
)  # fmt: skip
_row(
    "contrib.ROIAlign", "", "avg", "", _ALIGN._replace(single_scale=True),
    whose=("MXNet contrib.ROIAlign",), golden=("mxnet_contrib_ROIAlign_plain",),
)  # fmt: skip
_row(
    "contrib.ROIAlign", "", "avg", "aligned", _ALIGNED._replace(single_scale=True),
    whose=("MXNet contrib.ROIAlign",), golden=("mxnet_contrib_ROIAlign_aligned",),
)  # fmt: skip
_row(
    "contrib.ROIAlign", "", "avg", "position_sensitive",
    _ALIGN._replace(single_scale=True, channels=r.ONE_PER_BIN),
    whose=("MXNet contrib.ROIAlign",), golden=("mxnet_contrib_ROIAlign_position_sensitive",),
)  # fmt: skip
_row(
    "contrib.ROIAlign", "", "avg", "position_sensitive aligned",
    _ALIGNED._replace(single_scale=True, channels=r.ONE_PER_BIN),
    whose=("MXNet contrib.ROIAlign",),
)  # fmt: skip

# position-sensitive pooling
_row(
    "PSROIPooling", "mxnet", "avg", "", _MXNET_PS,
    whose=("MXNet contrib.PSROIPooling", "R-FCN PSROIPooling"), golden=("mxnet_contrib_PSROIPooling",),
)  # fmt: skip
_row(
    "PSROIPooling", "torchvision", "avg", "", _TORCHVISION_PS,
    whose=("torchvision ps_roi_pool",), golden=("torchvision_ps_roi_pool",),
    remark="with the last row and column of the map",
)  # fmt: skip
_row(
    "PSROIPooling", "torchvision", "avg", "as_released", _TORCHVISION_PS._replace(clip=1),
    backward_rules=_TORCHVISION_PS,
    whose=("torchvision ps_roi_pool",), golden=("torchvision_ps_roi_pool_border",),
    remark="as released: without the last row and column in the forward pass",
)  # fmt: skip
_row(
    "PSROIPooling", "chainer", "avg", "", _CHAINER_PS, whose=("ChainerCV ps_roi_average_pooling_2d",),
)  # fmt: skip
_row(
    "PSROIPooling", "chainer", "max", "", _CHAINER_PS._replace(**_CHAINER_MAX),
    whose=("ChainerCV ps_roi_max_pooling_2d",),
)  # fmt: skip

# position-sensitive bilinear samples
_row(
    "PSROIAlign", "rfcn", "avg", "",
    Rules(end=r.PLUS_IMAGE_PIXEL, least=0.1, bins=r.REAL_CLIPPED, clip=1, samples=r.INNER,
          channels=r.GROUPED),
    whose=("R-FCN PSROIAlign",),
)  # fmt: skip
_row(
    "PSROIAlign", "torchvision", "avg", "", _ALIGNED._replace(channels=r.ONE_PER_BIN),
    whose=("torchvision ps_roi_align",), golden=("torchvision_ps_roi_align",),
    remark="torchvision's sampling_ratio is 0 unless given",
)  # fmt: skip
_row(
    "PSROIAlign", "chainer", "avg", "", _ALIGN._replace(channels=r.GROUPED, least=0.1),
    whose=("ChainerCV ps_roi_average_align_2d",),
)  # fmt: skip
_row(
    "PSROIAlign", "chainer", "max", "", _ALIGN._replace(channels=r.GROUPED, least=0.1, **_CHAINER_MAX),
    whose=("ChainerCV ps_roi_max_align_2d",),
)  # fmt: skip

# bins that move
_row(
    "contrib.DeformablePSROIPooling", "", "avg", "",
    Rules(r.ROUNDED_BEFORE_SCALING, r.PLUS_IMAGE_PIXEL, 0.5, 0.1, samples=r.LEFT_EDGES,
          border=r.CLAMPED_HALF_PIXEL, reduction=r.MEAN_OF_VALID, channels=r.GROUPED, single_scale=True,
          displaced=True),
    whose=("MXNet contrib.DeformablePSROIPooling",), golden=("mxnet_contrib_DeformablePSROIPooling",),
)  # fmt: skip

# boxes that turn
_row(
    "contrib.RROIAlign", "", "avg", "", _ALIGN._replace(single_scale=True, boxes=r.TURNED_DEGREES),
    whose=("MXNet contrib.RROIAlign",), golden=("mxnet_contrib_RROIAlign",),
)  # fmt: skip
