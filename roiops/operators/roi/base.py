"""What the operators on regions of interest share: their inputs, and the checks of them."""

import numpy as np

from ...context import cpu
from ...dtypes import BFLOAT16
from ...errors import DataError, DTypeError, ShapeError
from ...kernels.rules import Pooling, is_maximum
from .. import checks
from ..base import Operator, OperatorProperty, assign, kernels


class ROIOperator(Operator):
    """Takes care of requests; subclasses override :meth:`compute` and :meth:`gradient`."""

    shareable = True
    #: Whether the CPU's kernels look whether each row names an image themselves.
    finds_strays = False

    def data_and_rois(self, in_data):
        """A feature map and the boxes among the inputs."""
        return in_data[:2]

    def compute(self, ctx, in_data, out_data) -> None:
        """Write every element of every output that is not None."""
        raise NotImplementedError

    def forward(self, ctx, in_data, req, out_data, aux):
        data, rois = self.data_and_rois(in_data)
        if not ctx.device.is_gpu:
            if not self.finds_strays:
                check_images(ctx.label, rois, data.shape[0])
        elif checks.on():  # else nobody waits for the device
            check_images(ctx.label, kernels("runtime", ctx.device).to_host(rois), data.shape[0])
        results = [None if r == "null" else a for a, r in zip(out_data, req, strict=True)]
        if results[0] is None:
            return
        if req[0] == "add":
            results[0] = out_data[0].copy()
        self.compute(ctx, in_data, results)
        assign(out_data[0], req[0], results[0])

    def gradient(self, ctx, number, head, in_data, out_data, add, target) -> None:
        """Write, or ``add``, the gradient of the input of this number to ``target``."""
        raise NotImplementedError

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        for number, (how, target) in enumerate(zip(req, in_grad, strict=True)):
            if how != "null":
                self.gradient(ctx, number, out_grad[0], in_data, out_data, how == "add", target)


def check_images(label, rois, images) -> None:
    """Raise unless each row names an image, or is to be ignored."""
    refuse_stray(label, rois, images, kernels("roi.images", cpu()).find_stray(rois, images))


def refuse_stray(label, rois, images, row) -> None:
    """Raise for a row that names no image; -1 is none."""
    if row >= 0:
        raise DataError(
            f"{label}: rois row {row} has batch index {float(rois[row, 0])}, but data has {images} "
            f"image{'' if images == 1 else 's'}; the index must be below that, negative to ignore the row"
        )


class ROIProperty(OperatorProperty):
    """An operator on ``data`` (N, C, H, W) and ``rois`` (R, 5 or more columns)."""

    zero_grad = ("rois",)
    backward_needs = ("out_grad", "in_data")
    devices = ("cpu", "gpu")
    arguments = {
        "data": "feature map (N, C, H, W)",
        "rois": "boxes (num_rois, 5): image index, x1, y1, x2, y2 in image pixels. A row with a negative "
        "index or a coordinate that is not finite is ignored: it gives zeros, and no gradient",
    }
    list_advice = {
        "rois": "it is one array of rows [image index, x1, y1, x2, y2], which np.array(rois) makes of a list "
        "of such rows; the boxes of each image in a list become one by "
        "np.concatenate([np.insert(boxes, 0, i, axis=1) for i, boxes in enumerate(rois)])"
    }
    roi_columns = 5
    typed_by_output = True

    @property
    def pooled_size(self) -> tuple[int, int]:
        """Height and width of the output grid."""
        return self.params.pooled_size

    def out_channels(self, channels: int) -> int:
        """Channels of the output for ``channels`` of the data, which are checked."""
        return channels

    def infer_shape(self, in_shapes):
        data, rois = in_shapes[:2]
        self.check_ndim("data", data, 4)
        if rois is None:
            rois = (-1, self.roi_columns)
        rois = self.check_shape("rois", rois, ("num_rois", self.roi_columns))
        out = (rois[0], self.out_channels(data[1]), *self.pooled_size)
        return [data, rois], [out] * len(self.list_outputs())

    #: How many feature maps come first among the inputs.
    maps = 1

    def example_shapes(self, data, count):
        others = len(self.list_arguments()) - self.maps - 1
        return [*[data] * self.maps, (count, self.roi_columns), *[None] * others]

    def infer_type(self, in_types):
        maps, rest = in_types[: self.maps], in_types[self.maps :]
        data = next((given for given in maps if given is not None), None)
        if data is not None and data not in (np.float16, np.float32, np.float64, BFLOAT16):
            raise DTypeError(f"{self.label}: data must be float16, float32 or float64, got {data}")
        names = self.list_arguments()
        for name, given in zip(names, maps, strict=False):
            if given not in (None, data):
                raise DTypeError(f"{self.label}: {name} must be {data} like the other maps, got {given}")
        usual = np.dtype(np.float32) if data == BFLOAT16 else data
        rest = [usual if given is None else given for given in rest]
        for name, given in zip(names[self.maps :], rest, strict=True):
            if given == BFLOAT16:
                raise DTypeError(
                    f"{self.label}: {name} must not be bfloat16, too coarse for it; give float32"
                )
            if given is not None and given.kind not in "fiu":
                raise DTypeError(f"{self.label}: {name} must hold numbers, got {given}")
        places = np.dtype(np.int32)
        outputs = [data, *[data and places] * (len(self.list_outputs()) - 1)]
        return [*[data] * len(maps), *rest], outputs, []

    def check_channels(self, channels: int, need: int, words: str) -> None:
        """Raise unless the data has the channels it needs; ``words`` say how that number comes about."""
        if channels != need:
            raise ShapeError(f"{self.label}: data must have {words} = {need} channels, got {channels}")

    def check_plane(self, data) -> None:
        """Raise where a place in a channel's plane does not fit the argmax output."""
        pixels = data[2] * data[3]
        # The question itself would bound a length that is a symbol, as while PyTorch exports.
        if isinstance(pixels, int) and pixels >= 2**31:
            raise ShapeError(
                f"{self.label}: data must have fewer than 2**31 pixels a channel, got shape {data}"
            )


class SeparableOp(ROIOperator):
    """Boxes that are pooled axis by axis, to means or to maxima as their row of the table says."""

    finds_strays = True

    def __init__(self, params):
        super().__init__(params)
        row = params.row
        self.rules, self.maximum = row.rules, is_maximum(row.rules)
        self.how = Pooling(row.rules, params.spatial_scale, params.ratio, params.groups)
        self.backward_how = self.how._replace(rules=row.backward_rules or row.rules)

    def kernels(self, ctx):
        """The kernel module."""
        return kernels("roi.maximum" if self.maximum else "roi.average", ctx.device)

    def compute(self, ctx, in_data, out_data):
        data, rois = in_data
        lowest = self._lowest(data.dtype)
        stray = self.kernels(ctx).forward(data, rois, self.how, *lowest, *out_data)
        if not ctx.device.is_gpu:
            refuse_stray(ctx.label, rois, data.shape[0], stray)

    def _lowest(self, dtype) -> tuple:
        """Of maxima, what a bin of nothing but NaN gives: nothing is greater than the start."""
        return (self.rules.empty or _least(dtype),) if self.maximum else ()

    def at_addresses(self, ctx, in_shapes, out_shape, dtype):
        """A small call on the CPU as functions of addresses, or None: see the kernels' function."""
        return self.kernels(ctx).at_addresses(
            *in_shapes, out_shape, dtype, self.how, self.backward_how, *self._lowest(dtype)
        )

    def argmax_dtype(self, ctx, data_shape) -> np.dtype:
        """The dtype of the fewest bits in which the CPU's kernels take the second output."""
        return self.kernels(ctx).argmax_dtype(self.rules, data_shape)

    def gradient(self, ctx, number, head, in_data, out_data, add, target):
        argmax = out_data[1:] if self.maximum else ()
        self.kernels(ctx).backward(head, *argmax, in_data[1], self.backward_how, add, target)


def _least(dtype) -> float:
    """The least finite number of a dtype; uint16 are the bits of bfloat16."""
    return float(np.finfo(dtype).min) if dtype.kind == "f" else -float.fromhex("0x1.fep127")


class SeparableProp(ROIProperty):
    """Has a second output where it takes the maximum: which pixel or sample of the bin it was."""

    op = SeparableOp
    visible_outputs = 1

    @property
    def takes_maximum(self) -> bool:
        """Whether a bin gives its maximum."""
        return is_maximum(self.params.row.rules)

    def list_outputs(self):
        return ("output", "argmax") if self.takes_maximum else ("output",)

    @property
    def backward_needs(self):
        return ("out_grad", "in_data", *(("out_data",) if self.takes_maximum else ()))

    def infer_shape(self, in_shapes):
        if self.takes_maximum and in_shapes[0] is not None and len(in_shapes[0]) == 4:
            self.check_plane(in_shapes[0])
        return super().infer_shape(in_shapes)
