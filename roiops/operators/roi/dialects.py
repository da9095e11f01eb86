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
    #: What is added to the size of a box, and to its level, where it chooses among the maps of a pyramid.
    level_slack: tuple[float, float] = (0.0, 0.0)
    key: tuple = field(init=False, repr=False, compare=False, default=())

    def __post_init__(self):
        object.__setattr__(self, "key", _key(self.operator, self.dialect, self.mode, self.variant))

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


def _key(operator, dialect, mode, variant):
    return operator, dialect, mode, frozenset(variant)


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
    row = TABLE.get(_key(operator, dialect, mode, variant))
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

# A table, whose rows are as long as what they have to say.
# fmt: off

# max or mean over integer bins
_row(
    "ROIPooling", "mxnet", "max", "", _CAFFE_POOL,
    whose=("MXNet ROIPooling", "Caffe ROIPooling", "ONNX MaxRoiPool"),
    golden=("mxnet_ROIPooling", "onnxruntime_MaxRoiPool"),
)
_row(
    "ROIPooling", "torchvision", "max", "", _CAFFE_POOL._replace(single_scale=False),
    whose=("torchvision roi_pool", "Chainer roi_pooling_2d", "Paddle roi_pool"),
    golden=("torchvision_roi_pool", "chainer_roi_pooling_2d", "paddle_roi_pool"),
    remark="as mxnet, but the scale keeps its last bits with float64",
)
_row(
    "ROIPooling", "mmcv", "max", "",
    _CAFFE_POOL._replace(rounding=r.NOT_ROUNDED, end=r.PLUS_IMAGE_PIXEL, least=-_INF,
                         bins=r.INTEGER_EDGES, single_scale=False),
    whose=("mmcv roi_pool",),
)
_row(
    "ROIPooling", "chainer", "max", "", _CHAINER_POOL,
    whose=("Chainer roi_max_pooling_2d",), golden=("chainer_roi_max_pooling_2d",),
)
_row(
    "ROIPooling", "chainer", "avg", "", _CHAINER_POOL._replace(reduction=r.MEAN_OF_ALL, empty=0.0),
    whose=("Chainer roi_average_pooling_2d",), golden=("chainer_roi_average_pooling_2d",),
)

# bilinear samples
_row(
    "ROIAlign", "mmcv", "avg", "", _ALIGN,
    whose=("mmcv roi_align", "torchvision roi_align", "Paddle roi_align", "Detectron ROIAlign"),
    golden=("mmcv_roi_align_avg_unaligned", "torchvision_roi_align_unaligned", "paddle_roi_align_unaligned"),
)
_row(
    "ROIAlign", "mmcv", "avg", "aligned", _ALIGNED,
    whose=("mmcv roi_align", "torchvision roi_align", "Paddle roi_align", "Detectron2 ROIAlign"),
    golden=("mmcv_roi_align_avg_aligned", "torchvision_roi_align_aligned", "paddle_roi_align_aligned"),
)
_row(
    "ROIAlign", "mmcv", "max", "", _ALIGN._replace(**_MAX),
    whose=("mmcv roi_align",), golden=("mmcv_roi_align_max_unaligned",),
)
_row(
    "ROIAlign", "mmcv", "max", "aligned", _ALIGNED._replace(**_MAX),
    whose=("mmcv roi_align",), golden=("mmcv_roi_align_max_aligned",),
)
_row(
    "ROIAlign", "chainer", "avg", "", _ALIGN,
    whose=("Chainer roi_average_align_2d",), golden=("chainer_roi_average_align_2d",),
)
_row(
    "ROIAlign", "chainer", "max", "", _ALIGN._replace(**_CHAINER_MAX),
    whose=("Chainer roi_max_align_2d",), golden=("chainer_roi_max_align_2d",),
)
_row(
    "ROIAlign", "mxnet", "max", "",
    Rules(end=r.PLUS_FEATURE_PIXEL, bins=r.REAL_CLIPPED, samples=r.UNIT_STEPS, border=r.ZERO_PADDED,
          reduction=r.MAX_OF_VALID, single_scale=True),
    whose=("Caffe and MXNet ROIAlign, early",),
    remark="unit steps from the edge of each bin",
)
_row(
    "ROIAlign", "onnx", "avg", "", _ALIGN._replace(single_scale=True),
    whose=("ONNX RoiAlign, output_half_pixel",),
    golden=("onnxruntime_RoiAlign_output_half_pixel", "onnxruntime_RoiAlign_opset10"),
)
_row(
    "ROIAlign", "onnx", "avg", "aligned", _ALIGNED._replace(single_scale=True),
    whose=("ONNX RoiAlign, half_pixel",), golden=("onnxruntime_RoiAlign_half_pixel",),
)
_row(
    "ROIAlign", "onnx", "max", "", _ALIGN._replace(samples=r.CORNERS, single_scale=True, **_MAX),
    whose=("ONNX RoiAlign, output_half_pixel",), golden=("onnxruntime_RoiAlign_max_output_half_pixel",),
    remark="the greatest of the weighted pixels, which are not added up first",
)
_row(
    "ROIAlign", "onnx", "max", "aligned", _ALIGNED._replace(samples=r.CORNERS, single_scale=True, **_MAX),
    whose=("ONNX RoiAlign, half_pixel",), golden=("onnxruntime_RoiAlign_max_half_pixel",),
)
_row(
    "contrib.ROIAlign", "", "avg", "", _ALIGN._replace(single_scale=True),
    whose=("MXNet contrib.ROIAlign",), golden=("mxnet_contrib_ROIAlign_plain",),
)
_row(
    "contrib.ROIAlign", "", "avg", "aligned", _ALIGNED._replace(single_scale=True),
    whose=("MXNet contrib.ROIAlign",), golden=("mxnet_contrib_ROIAlign_aligned",),
)
_row(
    "contrib.ROIAlign", "", "avg", "position_sensitive",
    _ALIGN._replace(single_scale=True, channels=r.ONE_PER_BIN),
    whose=("MXNet contrib.ROIAlign",), golden=("mxnet_contrib_ROIAlign_position_sensitive",),
)
_row(
    "contrib.ROIAlign", "", "avg", "position_sensitive aligned",
    _ALIGNED._replace(single_scale=True, channels=r.ONE_PER_BIN),
    whose=("MXNet contrib.ROIAlign",),
)

# position-sensitive pooling
_row(
    "PSROIPooling", "mxnet", "avg", "", _MXNET_PS,
    whose=("MXNet contrib.PSROIPooling", "R-FCN PSROIPooling"), golden=("mxnet_contrib_PSROIPooling",),
)
_row(
    "PSROIPooling", "paddle", "avg", "", _MXNET_PS._replace(channels=r.ONE_PER_BIN),
    whose=("Paddle psroi_pool",), golden=("paddle_psroi_pool",),
)
_row(
    "PSROIPooling", "torchvision", "avg", "", _TORCHVISION_PS,
    whose=("torchvision ps_roi_pool",), golden=("torchvision_ps_roi_pool",),
    remark="with the last row and column of the map",
)
_row(
    "PSROIPooling", "torchvision", "avg", "as_released", _TORCHVISION_PS._replace(clip=1),
    backward_rules=_TORCHVISION_PS,
    whose=("torchvision ps_roi_pool",), golden=("torchvision_ps_roi_pool_border",),
    remark="as released: without the last row and column in the forward pass",
)
_row(
    "PSROIPooling", "chainer", "avg", "", _CHAINER_PS, whose=("ChainerCV ps_roi_average_pooling_2d",),
)
_row(
    "PSROIPooling", "chainer", "max", "", _CHAINER_PS._replace(**_CHAINER_MAX),
    whose=("ChainerCV ps_roi_max_pooling_2d",),
)

# position-sensitive bilinear samples
_row(
    "PSROIAlign", "rfcn", "avg", "",
    Rules(end=r.PLUS_IMAGE_PIXEL, least=0.1, bins=r.REAL_CLIPPED, clip=1, samples=r.INNER,
          channels=r.GROUPED),
    whose=("R-FCN PSROIAlign",),
)
_row(
    "PSROIAlign", "torchvision", "avg", "", _ALIGNED._replace(channels=r.ONE_PER_BIN),
    whose=("torchvision ps_roi_align",), golden=("torchvision_ps_roi_align",),
    remark="torchvision's sampling_ratio is 0 unless given",
)
_row(
    "PSROIAlign", "chainer", "avg", "", _ALIGN._replace(channels=r.GROUPED, least=0.1),
    whose=("ChainerCV ps_roi_average_align_2d",),
)
_row(
    "PSROIAlign", "chainer", "max", "", _ALIGN._replace(channels=r.GROUPED, least=0.1, **_CHAINER_MAX),
    whose=("ChainerCV ps_roi_max_align_2d",),
)

# bins that move
_row(
    "contrib.DeformablePSROIPooling", "", "avg", "",
    Rules(r.ROUNDED_BEFORE_SCALING, r.PLUS_IMAGE_PIXEL, 0.5, 0.1, samples=r.LEFT_EDGES,
          border=r.CLAMPED_HALF_PIXEL, reduction=r.MEAN_OF_VALID, channels=r.GROUPED, single_scale=True,
          displaced=True),
    whose=("MXNet contrib.DeformablePSROIPooling",), golden=("mxnet_contrib_DeformablePSROIPooling",),
)

# boxes that turn
_row(
    "contrib.RROIAlign", "", "avg", "", _ALIGN._replace(single_scale=True, boxes=r.TURNED_DEGREES),
    whose=("MXNet contrib.RROIAlign",), golden=("mxnet_contrib_RROIAlign",),
)
_TURNED = _ALIGN._replace(boxes=r.TURNED_RADIANS)
for _variant in ("", "aligned", "clockwise", "aligned clockwise"):
    _row(
        "ROIAlignRotated", "mmcv", "avg", _variant,
        _TURNED._replace(
            boxes=r.TURNED_RADIANS_CLOCKWISE if "clockwise" in _variant else r.TURNED_RADIANS,
            **(_HALF_PIXEL if "aligned" in _variant else {}),
        ),
        whose=("mmcv roi_align_rotated",),
        golden=("_".join(["mmcv_roi_align_rotated", *_variant.split()]),),
        remark="the angle in radians",
    )
_row(
    "ROIAlignRotated", "detectron2", "avg", "", _ALIGNED._replace(boxes=r.TURNED_DEGREES),
    whose=("Detectron2 ROIAlignRotated",), remark="the angle in degrees",
)
for _variant in ("", "clockwise"):
    _row(
        "RiROIAlign", "", "avg", _variant,
        _TURNED._replace(boxes=r.TURNED_RADIANS_CLOCKWISE if _variant else r.TURNED_RADIANS),
        whose=("mmcv riroi_align_rotated",), remark="channels turn with the box",
    )

# bins that move, of every channel
_row(
    "DeformROIPooling", "", "avg", "", _ALIGNED._replace(displaced=True), whose=("mmcv deform_roi_pool",),
)

# several maps
_row(
    "MultiScaleROIAlign", "torchvision", "avg", "", _ALIGN, level_slack=(0.0, 1e-6),
    whose=("torchvision MultiScaleRoIAlign",), golden=("torchvision_MultiScaleRoIAlign",),
)
for _dialect, _slack, _whose in (
    ("detectron2", (1e-8, 0.0), "Detectron2 ROIPooler"),
    ("mmdet", (1e-6, 0.0), "mmdet SingleRoIExtractor"),
):
    for _variant in ("aligned", ""):
        _row(
            "MultiScaleROIAlign", _dialect, "avg", _variant, _ALIGNED if _variant else _ALIGN,
            level_slack=_slack, whose=(_whose,),
        )

# boxes with a gradient
_row(
    "CropAndResize", "", "bilinear", "",
    Rules(boxes=r.CORNERS_YX_NORMALISED, samples=r.END_TO_END, border=r.INSIDE),
    whose=("TensorFlow crop_and_resize",), golden=("tensorflow_crop_and_resize_bilinear",),
)
_row(
    "CropAndResize", "", "nearest", "",
    Rules(boxes=r.CORNERS_YX_NORMALISED, samples=r.END_TO_END, border=r.INSIDE_NEAREST),
    whose=("TensorFlow crop_and_resize",), golden=("tensorflow_crop_and_resize_nearest",),
)
_row(
    "PrROIPooling", "", "avg", "", Rules(least=0.0, samples=r.INTEGRAL),
    whose=("mmcv prroi_pool", "PreciseRoIPooling prroi_pool2d"),
)
# fmt: on


# -- the rules in words ----------------------------------------------------------------------------------


def _coordinate(rules, name) -> str:
    if rules.rounding == r.ROUNDED_BEFORE_SCALING:
        return f"rnd({name})"
    return name


def _words_of_frame(rules) -> tuple[str, str]:
    """Start and length of a box."""
    shift = " - ½" if rules.shift else ""
    least = "none" if rules.least == -_INF else f"{rules.least:g}"
    if rules.boxes == r.CORNERS_YX_NORMALISED:
        return "`x1 (D - 1)`", "`(x2 - x1) (D - 1)` (none)"
    if rules.boxes != r.CORNERS_XY:
        return f"centre `σ cx{shift}`, turned", f"`σ w` ({least})"
    near, far = _coordinate(rules, "x1"), _coordinate(rules, "x2")
    far = f"({far} + 1)" if rules.end == r.PLUS_IMAGE_PIXEL else far
    start, stop = f"σ {near}", f"σ {far}"
    if rules.rounding == r.ROUNDED_AFTER_SCALING:
        start, stop = f"rnd({start})", f"rnd({stop})"
    more = " + 1" if rules.end == r.PLUS_FEATURE_PIXEL else ""
    return f"`{start}{shift}`", f"`{stop} - {start}{more}` ({least})"


_BINS = {
    r.INTEGER_OFFSET: "`[s + ⌊iβ⌋, s + ⌈(i+1)β⌉)`, clipped to `[0, {end})`",
    r.INTEGER_EDGES: "`[⌊iβ + s⌋, ⌈(i+1)β + s⌉)`, clipped to `[0, {end})`",
    r.REAL: "real, not clipped",
    r.REAL_CLIPPED: "real, clipped to `[0, {end}]`",
}
_SAMPLES = {
    r.PIXELS: "every pixel",
    r.CENTRES: "centres of g parts",
    r.LEFT_EDGES: "left edges of g parts",
    r.INNER: "g inner points of the unclipped bin",
    r.UNIT_STEPS: "start of the bin, then steps of 1",
    r.CORNERS: "the pixels about the centres of g parts, each weighted on its own",
    r.INTEGRAL: "every point",
    r.END_TO_END: "one point, from end to end of the box",
}
_BORDER = {
    r.EXACT_PIXEL: "",
    r.CLAMPED_ONE_PIXEL: "one pixel",
    r.CLAMPED_HALF_PIXEL: "half a pixel",
    r.ZERO_PADDED: "zero padding",
    r.INSIDE: "none",
    r.INSIDE_NEAREST: "none; the nearest pixel",
}
_GIVES = {
    r.MEAN_OF_ALL: "mean",
    r.MEAN_OF_VALID: "mean of what is inside",
    r.MAX_INVALID_IS_ZERO: "maximum, the outside as 0",
    r.MAX_OF_VALID: "maximum of what is inside",
}
_CHANNELS = {
    r.SAME_CHANNEL: "as they are",
    r.GROUPED: "G x G groups",
    r.ONE_PER_BIN: "one set a bin",
}


def words(rules: Rules) -> dict[str, str]:
    """What the rules say, in the notation of docs/dialects.md."""
    start, length = _words_of_frame(rules)
    bins = _BINS[rules.bins].format(end=f"D - {rules.clip}" if rules.clip else "D")
    return {
        "start": start,
        "length": length,
        "bins": bins + (", moved" if rules.displaced else ""),
        "samples": _SAMPLES[rules.samples],
        "border": "zero padding" if rules.samples == r.INTEGRAL else _BORDER[rules.border],
        "gives": _GIVES[rules.reduction],
        "channels": _CHANNELS[rules.channels],
        "empty": f"{rules.empty:g}",
    }
