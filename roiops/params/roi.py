"""Parameters of the operators on regions of interest."""

from ..errors import ParamError
from .field import Field, enum, optional, shape
from .parameter import Parameter

__all__ = [
    "ContribROIAlignParam",
    "DeformablePSROIPoolingParam",
    "PSROIAlignParam",
    "PSROIPoolingParam",
    "ROIAlignParam",
    "ROIPoolingParam",
    "RROIAlignParam",
]

# A bin of more samples than this is a mistake, and would take its time to find out.
_MOST_SAMPLES = 1024


class _Pair(shape):
    """Two ints for height and width, or one that stands for both. None is another way to write 0."""

    def __init__(self):
        super().__init__(2, repeat=True, none_items=True)
        self.text = "int or tuple of 2 ints"

    def parse(self, value):
        if value is None or value == "None":
            value = 0
        return tuple(item or 0 for item in super().parse(value))

    def format(self, value):
        return str(value[0]) if value[0] == value[1] else super().format(value)


def _pooled(kind, **options):
    return Field(kind, range=(1, None), doc="output grid (height, width)", **options)


def _scale(high=1):
    return Field(float, range=(0, high), doc="feature-map pixels per image pixel")


def _samples(default, *aliases):
    return Field(
        _Pair(),
        default,
        range=(None, _MOST_SAMPLES),
        aliases=aliases,
        doc="samples of a bin on each axis; 0 or less: one a feature-map pixel, rounded up",
    )


def _caffe_names(given: dict, operator: str) -> dict:
    """Caffe's ``pooled_h`` and ``pooled_w`` as ``pooled_size``, with Caffe's default scale."""
    names = [name for name in ("pooled_h", "pooled_w") if name in given]
    if not names:
        return given
    if "pooled_size" in given:
        raise ParamError(f"{operator}: {names[0]} is another name for part of pooled_size; give one of them")
    if len(names) == 1:
        raise ParamError(f"{operator}: pooled_h and pooled_w go together, got only {names[0]}")
    rest = {name: value for name, value in given.items() if name not in names}
    return {"spatial_scale": 1.0, **rest, "pooled_size": (given["pooled_h"], given["pooled_w"])}


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
    pooled_size = _pooled(shape(2))
    spatial_scale = _scale()
    dialect = Field(
        enum("mxnet", "torchvision", "mmcv", "chainer"),
        "mxnet",
        doc="whose rule for the bins: mxnet is also Caffe's and ONNX's",
    )
    mode = Field(enum("max", "avg"), "max", doc="what a bin gives; avg under chainer only")

    @classmethod
    def translate(cls, given, operator):
        return _caffe_names(given, operator)

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


class ROIAlignParam(_Dialect):
    pooled_size = _pooled(shape(2))
    spatial_scale = _scale(high=None)
    sampling_ratio = _samples(0, "sample_num", "sample_ratio")
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
        return _caffe_names(given, operator)

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


class ContribROIAlignParam(_Separable):
    pooled_size = _pooled(shape(2))
    spatial_scale = _scale()
    sample_ratio = _samples(-1, "sampling_ratio")
    position_sensitive = Field(bool, False, doc="whether each bin reads channels of its own")
    aligned = Field(bool, False, doc="pixel centres at half-integers, and no least size of a box")

    @classmethod
    def translate(cls, given, operator):
        return _caffe_names(given, operator)

    @property
    def ratio(self) -> tuple[int, int]:
        """Samples of a bin on each axis."""
        return self.sample_ratio

    @property
    def rules(self) -> str:
        """The row of the table of dialects."""
        row = "contrib.ROIAlign" + ("/position_sensitive" if self.position_sensitive else "")
        return row + ("/aligned" if self.aligned else "")


class _PositionSensitive(_Dialect):
    """Score maps: ``output_dim`` for each of ``group_size`` x ``group_size`` groups of bins."""

    @classmethod
    def translate(cls, given, operator):
        given = _caffe_names(given, operator)
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


_PS_DOCS = {
    "output_dim": "channels of the output",
    "group_size": "groups of bins on each axis, each with score maps of its own; 0: as many as bins",
}


class PSROIPoolingParam(_PositionSensitive):
    spatial_scale = _scale()
    output_dim = Field(int, range=(1, None), doc=_PS_DOCS["output_dim"])
    pooled_size = _pooled(_Pair())
    group_size = Field(int, 0, range=(0, None), doc=_PS_DOCS["group_size"])
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


class PSROIAlignParam(_PositionSensitive):
    spatial_scale = _scale(high=None)
    output_dim = Field(int, range=(1, None), doc=_PS_DOCS["output_dim"])
    pooled_size = _pooled(_Pair())
    group_size = Field(int, 0, range=(0, None), doc=_PS_DOCS["group_size"])
    sampling_ratio = _samples(2, "sample_num", "sample_ratio")
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


class DeformablePSROIPoolingParam(Parameter):
    spatial_scale = _scale()
    output_dim = Field(int, range=(1, None), doc=_PS_DOCS["output_dim"])
    group_size = Field(int, range=(1, None), doc="groups of bins on each axis, each with its own score maps")
    pooled_size = Field(int, range=(1, None), doc="height and width of the output grid")
    part_size = Field(
        int, 0, range=(0, None), doc="parts of a box on each axis, each displaced alike; 0: one for each bin"
    )
    sample_per_part = Field(int, 1, range=(1, _MOST_SAMPLES), doc="samples of a bin on each axis")
    trans_std = Field(float, 0.0, range=(0, 1), doc="factor of the displacements, which are in box sizes")
    no_trans = Field(bool, False, doc="whether there are no displacements")

    @property
    def parts(self) -> int:
        """How many parts of a box, on each axis, are displaced."""
        return self.part_size or self.pooled_size


class RROIAlignParam(Parameter):
    pooled_size = _pooled(shape(2))
    spatial_scale = _scale()
    sampling_ratio = _samples(-1, "sample_num", "sample_ratio")

    @classmethod
    def translate(cls, given, operator):
        return _caffe_names(given, operator)
