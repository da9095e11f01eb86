"""Operators whose bins give the mean or the maximum of pixels or samples, each bin where the box puts it."""

import numpy as np

from ...errors import ParamError, ShapeError
from ...params import Field, Parameter, enum, optional, shape
from ...registry import register
from ..base import kernels
from .base import ROIOperator, ROIProperty, rules_of
from .fields import POSITION_SENSITIVE_DOCS, Pair, caffe_names, pooled_size_field, samples_field, scale_field

__all__ = [
    "AverageOp",
    "ContribROIAlignProp",
    "MaxOp",
    "PSROIAlignProp",
    "PSROIPoolingProp",
    "ROIAlignProp",
    "ROIPoolingProp",
]


class _SeparableOp(ROIOperator):
    """What the kernels need to know of the parameters."""

    def __init__(self, params):
        super().__init__(params)
        self.rules, self.backward_rules = rules_of(params.forward_rules), rules_of(params.rules)
        self.numbers = params.spatial_scale, params.ratio, params.groups


class AverageOp(_SeparableOp):
    def compute(self, ctx, in_data, out_data):
        kernels("roi.average", ctx.device).forward(*in_data, *self.numbers, self.rules, *out_data)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        if req[0] != "null":
            kernels("roi.average", ctx.device).backward(
                out_grad[0], in_data[1], *self.numbers, self.backward_rules, req[0] == "add", in_grad[0]
            )


def _least(dtype) -> float:
    """The least finite number of a dtype; uint16 are the bits of bfloat16."""
    return float(np.finfo(dtype).min) if dtype.kind == "f" else -float.fromhex("0x1.fep127")


class MaxOp(_SeparableOp):
    def compute(self, ctx, in_data, out_data):
        # What a bin of nothing but NaN gives: nothing is greater than the start.
        lowest = self.rules.empty if self.rules.empty else _least(in_data[0].dtype)
        kernels("roi.maximum", ctx.device).forward(*in_data, *self.numbers, self.rules, lowest, *out_data)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        if req[0] != "null":
            kernels("roi.maximum", ctx.device).backward(
                out_grad[0],
                out_data[1],
                in_data[1],
                *self.numbers,
                self.rules,
                req[0] == "add",
                in_grad[0],
            )


class _SeparableProp(ROIProperty):
    """Has a second output where it takes the maximum: which pixel or sample of the bin it was."""

    visible_outputs = 1

    @property
    def takes_maximum(self) -> bool:
        """Whether a bin gives its maximum."""
        return self.params.takes_maximum

    def list_outputs(self):
        return ("output", "argmax") if self.takes_maximum else ("output",)

    @property
    def backward_needs(self):
        return ("out_grad", "in_data", *(("out_data",) if self.takes_maximum else ()))

    def infer_shape(self, in_shapes):
        if self.takes_maximum and in_shapes[0] is not None and len(in_shapes[0]) == 4:
            self.check_plane(in_shapes[0])
        return super().infer_shape(in_shapes)

    def create_operator(self, ctx, in_shapes, in_types):
        return (MaxOp if self.takes_maximum else AverageOp)(self.params)


class _Separable(Parameter):
    """What the kernels that take a box axis by axis are told; most operators have only some of it."""

    #: Samples of a bin on each axis.
    ratio = (0, 0)
    #: Groups of bins on each axis.
    groups = 1
    #: Whether a bin gives its maximum.
    takes_maximum = False

    @property
    def rules(self) -> str:
        """The row of the table of dialects."""
        raise NotImplementedError

    @property
    def forward_rules(self) -> str:
        """The row for the forward pass, where that is another."""
        return self.rules


class _Dialect(_Separable):
    """An operator with dialects, some of which have something of their own to choose."""

    def check_choice(self, operator, name, allowed):
        """Raise where ``name`` has a value that the dialect does not know; ``allowed`` by dialect."""
        value = getattr(self, name)
        words = allowed.get(self.dialect, ())
        if value is not None and value not in words:
            need = " or ".join(repr(word) for word in words) or "left out"
            raise ParamError(
                f"{operator}: {name} must be {need} under dialect {self.dialect!r}, got {value!r}"
            )


class ROIPoolingParam(_Dialect):
    pooled_size = pooled_size_field(shape(2))
    spatial_scale = scale_field()
    dialect = Field(
        enum("mxnet", "torchvision", "mmcv", "chainer"),
        "mxnet",
        doc="whose rule for the bins: mxnet is also Caffe's and ONNX's",
    )
    mode = Field(enum("max", "avg"), "max", doc="what a bin gives; avg under chainer only")

    @classmethod
    def translate(cls, given, operator):
        return caffe_names(given, operator)

    def validate(self, operator):
        self.check_choice(
            operator,
            "mode",
            {"mxnet": ["max"], "torchvision": ["max"], "mmcv": ["max"], "chainer": ["max", "avg"]},
        )

    @property
    def takes_maximum(self) -> bool:
        """Whether a bin gives its maximum."""
        return self.mode == "max"

    @property
    def rules(self) -> str:
        """The row of the table of dialects."""
        return f"ROIPooling/{self.dialect}" + ("/avg" if self.mode == "avg" else "")


@register("ROIPooling", "_npx_roi_pooling")
class ROIPoolingProp(_SeparableProp):
    """Max-pool each region of interest to a fixed grid of integer bins (Fast R-CNN, 2015)."""

    param = ROIPoolingParam
    outputs = ("output", "argmax")


class ROIAlignParam(_Dialect):
    pooled_size = pooled_size_field(shape(2))
    spatial_scale = scale_field(high=None)
    sampling_ratio = samples_field(0, "sample_num", "sample_ratio")
    mode = Field(
        optional(enum("avg", "max")),
        None,
        doc="what a bin gives: avg unless the dialect is mxnet, which has max",
    )
    aligned = Field(
        bool, True, doc="pixel centres at half-integers, and no least size of a box; under mmcv only"
    )
    dialect = Field(
        enum("mmcv", "mxnet", "chainer"),
        "mmcv",
        doc="whose rules: mmcv is also torchvision's, Detectron2's and ONNX's; mxnet has unit steps",
    )

    @classmethod
    def translate(cls, given, operator):
        return caffe_names(given, operator)

    def validate(self, operator):
        self.check_choice(
            operator, "mode", {"mmcv": ["avg", "max"], "chainer": ["avg", "max"], "mxnet": ["max"]}
        )

    def to_strings(self, *, defaults=False):
        # Always with the dialect: a graph file without one comes from MXNet, and means its own.
        return {**super().to_strings(defaults=defaults), "dialect": self.dialect}

    @property
    def takes_maximum(self) -> bool:
        """Whether a bin gives its maximum."""
        return (self.mode or ("max" if self.dialect == "mxnet" else "avg")) == "max"

    @property
    def ratio(self) -> tuple[int, int]:
        """Samples of a bin on each axis."""
        return self.sampling_ratio

    @property
    def rules(self) -> str:
        """The row of the table of dialects."""
        row = f"ROIAlign/{self.dialect}" + ("/max" if self.takes_maximum else "")
        return row + ("/aligned" if self.dialect == "mmcv" and self.aligned else "")


@register("ROIAlign")
class ROIAlignProp(_SeparableProp):
    """Pool bilinear samples of each region of interest to a fixed grid (Mask R-CNN, 2017)."""

    param = ROIAlignParam


class ContribROIAlignParam(_Separable):
    pooled_size = pooled_size_field(shape(2))
    spatial_scale = scale_field()
    sample_ratio = samples_field(-1, "sampling_ratio")
    position_sensitive = Field(bool, False, doc="whether each bin reads channels of its own")
    aligned = Field(bool, False, doc="pixel centres at half-integers, and no least size of a box")

    @classmethod
    def translate(cls, given, operator):
        return caffe_names(given, operator)

    @property
    def ratio(self) -> tuple[int, int]:
        """Samples of a bin on each axis."""
        return self.sample_ratio

    @property
    def rules(self) -> str:
        """The row of the table of dialects."""
        row = "contrib.ROIAlign" + ("/position_sensitive" if self.position_sensitive else "")
        return row + ("/aligned" if self.aligned else "")


@register("_contrib_ROIAlign", "_npx_roi_align")
class ContribROIAlignProp(_SeparableProp):
    """MXNet's own ROIAlign: the mean of bilinear samples, position-sensitive if asked."""

    param = ContribROIAlignParam

    def out_channels(self, channels):
        if not self.params.position_sensitive:
            return channels
        bins = self.params.pooled_size[0] * self.params.pooled_size[1]
        if channels % bins:
            raise ShapeError(
                f"{self.label}: data must have a multiple of {bins} channels, one a bin, got {channels}"
            )
        return channels // bins


class _PositionSensitiveProp(_SeparableProp):
    def out_channels(self, channels):
        p = self.params
        if p.dialect == "torchvision":
            height, width = p.pooled_size
            need, words = (
                p.output_dim * height * width,
                f"output_dim * bins = {p.output_dim} * {height * width}",
            )
        else:
            need = p.output_dim * p.groups**2
            words = f"output_dim * group_size * group_size = {p.output_dim} * {p.groups} * {p.groups}"
        self.check_channels(channels, need, words)
        return p.output_dim


class _PositionSensitive(_Dialect):
    """Score maps: ``output_dim`` for each of ``group_size`` x ``group_size`` groups of bins."""

    @classmethod
    def translate(cls, given, operator):
        given = caffe_names(given, operator)
        if "pooled_size" not in given and given.get("group_size"):
            given = {**given, "pooled_size": given["group_size"]}  # R-FCN has one number for both
        return given

    def validate(self, operator):
        modes = {"mxnet": ["avg"], "rfcn": ["avg"], "torchvision": ["avg"], "chainer": ["avg", "max"]}
        self.check_choice(operator, "mode", modes)
        height, width = self.pooled_size
        if self.dialect == "torchvision":
            if self.group_size and (self.group_size, self.group_size) != self.pooled_size:
                raise ParamError(
                    f"{operator}: group_size must be left out under dialect 'torchvision', which has one "
                    f"group a bin, got {self.group_size}"
                )
        elif not self.group_size and height != width:
            raise ParamError(
                f"{operator}: group_size is required when pooled_size is not square, {height, width}"
            )

    @property
    def groups(self) -> int:
        """How many groups of bins there are on each axis."""
        return self.group_size or self.pooled_size[0]

    @property
    def takes_maximum(self) -> bool:
        """Whether a bin gives its maximum."""
        return self.mode == "max"


class PSROIPoolingParam(_PositionSensitive):
    spatial_scale = scale_field()
    output_dim = Field(int, range=(1, None), doc=POSITION_SENSITIVE_DOCS["output_dim"])
    pooled_size = pooled_size_field(Pair())
    group_size = Field(int, 0, range=(0, None), doc=POSITION_SENSITIVE_DOCS["group_size"])
    dialect = Field(
        enum("mxnet", "torchvision", "chainer"), "mxnet", doc="whose rules: mxnet is also R-FCN's"
    )
    mode = Field(enum("avg", "max"), "avg", doc="what a bin gives; max under chainer only")
    as_released = Field(
        bool,
        False,
        doc="leave the last row and column of the map out of the forward pass, as torchvision does",
    )

    def validate(self, operator):
        super().validate(operator)
        if self.as_released and self.dialect != "torchvision":
            raise ParamError(f"{operator}: as_released is for dialect 'torchvision', got {self.dialect!r}")

    @property
    def rules(self) -> str:
        """The row of the table of dialects."""
        return f"PSROIPooling/{self.dialect}" + ("/max" if self.mode == "max" else "")

    @property
    def forward_rules(self) -> str:
        """As :attr:`rules`, and as torchvision's forward pass was released."""
        return self.rules + ("/as_released" if self.as_released else "")


@register("_contrib_PSROIPooling", "PSROIPooling")
class PSROIPoolingProp(_PositionSensitiveProp):
    """Mean over integer bins, each of which reads its own score maps (R-FCN, 2016)."""

    param = PSROIPoolingParam


class PSROIAlignParam(_PositionSensitive):
    spatial_scale = scale_field(high=None)
    output_dim = Field(int, range=(1, None), doc=POSITION_SENSITIVE_DOCS["output_dim"])
    pooled_size = pooled_size_field(Pair())
    group_size = Field(int, 0, range=(0, None), doc=POSITION_SENSITIVE_DOCS["group_size"])
    sampling_ratio = samples_field(2, "sample_num", "sample_ratio")
    dialect = Field(enum("rfcn", "torchvision", "chainer"), "rfcn", doc="whose rules")
    mode = Field(enum("avg", "max"), "avg", doc="what a bin gives; max under chainer only")

    def validate(self, operator):
        super().validate(operator)
        if self.dialect == "rfcn" and min(self.sampling_ratio) < 1:
            raise ParamError(
                f"{operator}: sampling_ratio must be 1 or more under dialect 'rfcn', "
                f"got {self.sampling_ratio}"
            )

    @property
    def ratio(self) -> tuple[int, int]:
        """Samples of a bin on each axis."""
        return self.sampling_ratio

    @property
    def rules(self) -> str:
        """The row of the table of dialects."""
        return f"PSROIAlign/{self.dialect}" + ("/max" if self.mode == "max" else "")


@register("PSROIAlign")
class PSROIAlignProp(_PositionSensitiveProp):
    """Mean of bilinear samples in bins that each read their own score maps."""

    param = PSROIAlignParam
