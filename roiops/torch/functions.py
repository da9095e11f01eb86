"""ROI operators under the names and with the arguments that torchvision has for them.

Each is one of the registry's operators. ``dialect`` says whose numbers are wanted where not torchvision's.
The gradient goes to the features only, as in torchvision.

The source of what ``torch.jit.script`` compiles keeps to TorchScript's part of Python: annotated, and with
what is not for it in an ``else`` of ``torch.jit.is_scripting()``.
"""

import functools
import math
import warnings

import torch
from torch import Tensor
from torch.jit.annotations import BroadcastingList2
from torch.overrides import handle_torch_function, has_torch_function

from .. import registry
from ..errors import InputError, ParamError, ShapeError
from .operators import call, call_with

__all__ = [
    "deform_roi_pool",
    "multi_scale_roi_align",
    "ps_roi_align",
    "ps_roi_pool",
    "pyramid_scales",
    "roi_align",
    "roi_align_rotated",
    "roi_pool",
]

_ALIGN, _POOL = registry.get("ROIAlign"), registry.get("ROIPooling")
_ROTATED, _DEFORMED = registry.get("ROIAlignRotated"), registry.get("DeformROIPooling")
_PYRAMID = registry.get("MultiScaleROIAlign")
_PS_ALIGN, _PS_POOL = registry.get("PSROIAlign"), registry.get("_contrib_PSROIPooling")

# Frameworks whose ROIAlign is another's.
_ALIGN_DIALECTS = {"torchvision": "mmcv", "detectron2": "mmcv"}


def one_node(function):
    """``function``; given what stands for a tensor, as ``torch.fx`` does to trace, it is one node of a graph.

    A subclass of Tensor is a tensor: operators that ``function`` calls hand over to it.
    """

    # TorchScript compiles the source of `function`, with the names of the module of `call`: this one.
    @functools.wraps(function)
    def call(*args, **kwargs):
        if not torch.compiler.is_compiling():
            given = _no_tensors((*args, *kwargs.values()))
            if has_torch_function(given):
                return handle_torch_function(call, given, *args, **kwargs)
        return function(*args, **kwargs)

    return call


# What most arguments are, beside lists of them.
_USUAL = {Tensor, torch.nn.Parameter, int, float, bool, str, type(None)}


def _no_tensors(values) -> list:
    """Those of the values, and of lists and dicts among them, that are neither a tensor nor a number."""
    found = []
    for each in values:
        if type(each) in _USUAL or isinstance(each, Tensor):
            continue
        if isinstance(each, (list, tuple)):
            found += _no_tensors(each)
        elif isinstance(each, dict):
            found += _no_tensors(each.values())
        else:
            found.append(each)
    return found


@one_node
def roi_align(
    input: Tensor,
    boxes: Tensor | list[Tensor],
    output_size: BroadcastingList2[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    aligned: bool = False,
    mode: str = "avg",
    dialect: str = "torchvision",
) -> Tensor:
    """Pool bilinear samples of each region of interest to a fixed grid (Mask R-CNN, 2017).

    Parameters
    ----------
    input : Tensor[N, C, H, W]
        Feature map.
    boxes : Tensor[K, 5] or list of Tensor[L, 4]
        ``(image, x1, y1, x2, y2)``, or for each image its ``(x1, y1, x2, y2)``, in image pixels.
    output_size : int or (int, int)
        Height and width of the grid.
    spatial_scale : float
        Feature-map pixels per image pixel.
    sampling_ratio : int
        Samples of a bin on each axis; 0 or less: one a feature-map pixel, rounded up.
    aligned : bool
        Pixel centres at half-integers, and no least size of a box.
    mode : {"avg", "max"}
        What a bin gives.
    dialect : {"torchvision", "detectron2", "mmcv", "mxnet", "chainer"}
        Whose rules. The first three are one.

    Returns
    -------
    Tensor[K, C, height, width]
    """
    if torch.jit.is_scripting():
        rois = as_rois(boxes, input, "roi_align")
        if dialect == "torchvision" or dialect == "detectron2":
            dialect = "mmcv"
        ratio = [sampling_ratio, sampling_ratio]
        return torch.ops.roiops.ROIAlign(
            input, rois, output_size, spatial_scale, ratio, mode, aligned, dialect
        )[0]
    else:
        choices = output_size, spatial_scale, sampling_ratio, aligned, mode, dialect
        return call_with(_ALIGN, (input, as_rois(boxes, input, "roi_align")), _align_params, *choices)


@one_node
def roi_pool(
    input: Tensor,
    boxes: Tensor | list[Tensor],
    output_size: BroadcastingList2[int],
    spatial_scale: float = 1.0,
    dialect: str = "torchvision",
) -> Tensor:
    """Max-pool each region of interest to a fixed grid of integer bins (Fast R-CNN, 2015).

    ``dialect`` is one of ``"torchvision"``, ``"mxnet"``, ``"mmcv"``, ``"chainer"``; the other arguments are
    those of :func:`roi_align`.
    """
    if torch.jit.is_scripting():
        rois = as_rois(boxes, input, "roi_pool")
        return torch.ops.roiops.ROIPooling(input, rois, output_size, spatial_scale, dialect)[0]
    else:
        choices = output_size, spatial_scale, dialect
        return call_with(_POOL, (input, as_rois(boxes, input, "roi_pool")), _pool_params, *choices)


@one_node
def ps_roi_align(
    input: Tensor,
    boxes: Tensor | list[Tensor],
    output_size: BroadcastingList2[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = -1,
    dialect: str = "torchvision",
) -> Tensor:
    """Mean of bilinear samples in bins that each read channels of their own (Light-Head R-CNN, 2017).

    ``dialect`` is one of ``"torchvision"``, ``"rfcn"``, ``"chainer"``; the other arguments are those of
    :func:`roi_align`. The output has ``C / (height * width)`` channels.
    """
    if torch.jit.is_scripting():
        rois = as_rois(boxes, input, "ps_roi_align")
        dim = max(1, input.size(1) // (output_size[0] * output_size[1]))
        ratio = [sampling_ratio, sampling_ratio]
        return torch.ops.roiops.PSROIAlign(input, rois, spatial_scale, dim, output_size, 0, ratio, dialect)[0]
    else:
        choices = _channels(input), output_size, spatial_scale, sampling_ratio, dialect
        inputs = input, as_rois(boxes, input, "ps_roi_align")
        return call_with(_PS_ALIGN, inputs, _ps_align_params, *choices)


@one_node
def ps_roi_pool(
    input: Tensor,
    boxes: Tensor | list[Tensor],
    output_size: BroadcastingList2[int],
    spatial_scale: float = 1.0,
    dialect: str = "torchvision",
    as_released: bool | None = None,
) -> Tensor:
    """Mean over integer bins that each read channels of their own (R-FCN, 2016).

    ``dialect`` is one of ``"torchvision"``, ``"mxnet"`` (R-FCN's), ``"chainer"``; the other arguments are
    those of :func:`roi_align`. The output has ``C / (height * width)`` channels.

    torchvision leaves the last row and column of the map out of the forward pass, but not out of the
    gradient. So does this, unless ``as_released`` is False: then the gradient is that of the output.
    """
    if torch.jit.is_scripting():
        rois = as_rois(boxes, input, "ps_roi_pool")
        dim = max(1, input.size(1) // (output_size[0] * output_size[1]))
        released = dialect == "torchvision" if as_released is None else as_released
        return torch.ops.roiops.contrib_PSROIPooling(
            input, rois, spatial_scale, dim, output_size, 0, dialect, "avg", released
        )[0]
    else:
        if as_released is None:
            as_released = dialect == "torchvision"
        choices = _channels(input), output_size, spatial_scale, dialect, as_released
        return call_with(_PS_POOL, (input, as_rois(boxes, input, "ps_roi_pool")), _ps_pool_params, *choices)


@one_node
def roi_align_rotated(
    input: Tensor,
    rois: Tensor,
    output_size: BroadcastingList2[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    aligned: bool = True,
    clockwise: bool = False,
    dialect: str = "mmcv",
) -> Tensor:
    """Mean of bilinear samples in the bins of rotated boxes, with mmcv's arguments.

    ``rois`` are a Tensor[K, 6]: image, centre x, centre y, width, height in image pixels, and the angle, in
    radians; under ``dialect="detectron2"`` in degrees. The other arguments are those of :func:`roi_align`.
    """
    if torch.jit.is_scripting():
        ratio = [sampling_ratio, sampling_ratio]
        return torch.ops.roiops.ROIAlignRotated(
            input, rois, output_size, spatial_scale, ratio, aligned, clockwise, dialect
        )[0]
    else:
        params = {
            "pooled_size": _pair(output_size),
            "spatial_scale": spatial_scale,
            "sampling_ratio": _pair(sampling_ratio),
            "aligned": aligned,
            "clockwise": clockwise,
            "dialect": dialect,
        }
        return call(_ROTATED, (input, rois), params)


@one_node
def deform_roi_pool(
    input: Tensor,
    rois: Tensor,
    offset: Tensor | None,
    output_size: BroadcastingList2[int],
    spatial_scale: float = 1.0,
    sampling_ratio: int = 0,
    gamma: float = 0.1,
) -> Tensor:
    """ROIAlign whose bins ``offset`` displaces, with mmcv's arguments (Deformable ConvNets, 2017).

    ``offset`` is a Tensor[K, 2, height, width], x before y, in box sizes, of which ``gamma`` is taken; it has
    a gradient too. None displaces nothing. The other arguments are those of :func:`roi_align`.
    """
    if torch.jit.is_scripting():
        if offset is None or not offset.numel():
            offset = input.new_zeros([rois.size(0), 2, output_size[0], output_size[1]])
        ratio = [sampling_ratio, sampling_ratio]
        return torch.ops.roiops.DeformROIPooling(
            input, rois, offset, output_size, spatial_scale, ratio, gamma
        )[0]
    else:
        height, width = _pair(output_size)
        if offset is None or not offset.numel():
            offset = input.new_zeros((rois.shape[0], 2, height, width))
        params = {
            "pooled_size": (height, width),
            "spatial_scale": spatial_scale,
            "sampling_ratio": _pair(sampling_ratio),
            "gamma": gamma,
        }
        return call(_DEFORMED, (input, rois, offset), params)


@one_node
def multi_scale_roi_align(
    features: list[Tensor],
    boxes: Tensor | list[Tensor],
    output_size: BroadcastingList2[int],
    scales: list[float],
    sampling_ratio: int = -1,
    aligned: bool = False,
    canonical_scale: float = 224.0,
    canonical_level: int = 4,
    dialect: str = "torchvision",
) -> Tensor:
    """:func:`roi_align` of each box on the level of a feature pyramid that fits its size.

    Parameters
    ----------
    features : list of Tensor[N, C, H, W]
        Feature maps, from the finest to the coarsest, each half the size of the one before.
    boxes : Tensor[K, 5] or list of Tensor[L, 4]
        ``(image, x1, y1, x2, y2)``, or for each image its ``(x1, y1, x2, y2)``, in image pixels.
    output_size : int or (int, int)
        Height and width of the grid.
    scales : list of float
        Feature-map pixels per image pixel, for each feature map; :func:`pyramid_scales` finds them.
    sampling_ratio : int
        Samples of a bin on each axis; 0 or less: one a feature-map pixel, rounded up.
    aligned : bool
        Pixel centres at half-integers; not under ``dialect="torchvision"``.
    canonical_scale, canonical_level : int
        A box of ``canonical_scale`` x ``canonical_scale`` is pooled on level ``canonical_level``, where level
        ``k`` has the scale ``2 ** -k``.
    dialect : {"torchvision", "detectron2", "mmdet"}
        Whose rule for the level of a box; under ``"mmdet"`` ``canonical_scale`` is the largest size of the
        finest level, its ``finest_scale``, and ``canonical_level`` is not used.

    Returns
    -------
    Tensor[K, C, height, width]
        In the order of the boxes, and of the dtype of the first feature map.
    """
    if torch.jit.is_scripting():
        rois = as_rois(boxes, features[0], "multi_scale_roi_align")
        inputs = [feature.to(features[0].dtype) for feature in features]
        inputs.append(rois)
        ratio = [sampling_ratio, sampling_ratio]
        return torch.ops.roiops.MultiScaleROIAlign(
            inputs, output_size, scales, ratio, aligned, canonical_scale, canonical_level, dialect
        )[0]
    else:
        if aligned and dialect == "torchvision":
            raise ParamError(
                "multi_scale_roi_align: aligned must be False under dialect 'torchvision', which has no such "
                "choice; dialect='detectron2' has it"
            )
        rois = as_rois(boxes, features[0], "multi_scale_roi_align")
        maps = [feature.to(features[0].dtype) for feature in features]
        params = {
            "pooled_size": _pair(output_size),
            "spatial_scales": tuple(scales),
            "sampling_ratio": _pair(sampling_ratio),
            "aligned": aligned,
            "canonical_size": canonical_scale,
            "canonical_level": canonical_level,
            "dialect": dialect,
        }
        return call(_PYRAMID, (*maps, rois), params)


def pyramid_scales(features: list[Tensor], image_shapes: list[tuple[int, int]]) -> list[float]:
    """The scale of each feature map, a power of two, from its height and that of the largest image."""
    if len(image_shapes) == 0:
        raise ShapeError("multi_scale_roi_align: image_shapes must not be empty")
    height = max([shape[0] for shape in image_shapes])
    heights = [feature.size(-2) for feature in features]
    if not torch.jit.is_scripting() and torch.jit.is_tracing():
        height, *heights = [_traced_number(each) for each in (height, *heights)]
    return [2.0 ** math.floor(math.log(each / height) / math.log(2.0) + 0.5) for each in heights]


@one_node
def pool_levels(
    x: dict[str, Tensor],
    boxes: list[Tensor],
    image_shapes: list[tuple[int, int]],
    names: list[str],
    scales: list[float] | None,
    output_size: BroadcastingList2[int],
    sampling_ratio: int,
    aligned: bool,
    canonical_scale: float,
    canonical_level: int,
    dialect: str,
) -> Tensor:
    """:func:`multi_scale_roi_align` of those maps of a dict that have these names: ``MultiScaleRoIAlign``."""
    features: list[Tensor] = []
    for name, feature in x.items():
        if name in names:
            features.append(feature)
    if scales is None:
        scales = pyramid_scales(features, image_shapes)
    return multi_scale_roi_align(
        features, boxes, output_size, scales, sampling_ratio, aligned,
        canonical_scale=canonical_scale, canonical_level=canonical_level, dialect=dialect,
    )  # fmt: skip


def _align_params(output_size, spatial_scale, sampling_ratio, aligned, mode, dialect) -> dict:
    return {
        "pooled_size": _pair(output_size),
        "spatial_scale": spatial_scale,
        "sampling_ratio": _pair(sampling_ratio),
        "mode": mode,
        "aligned": aligned,
        "dialect": _ALIGN_DIALECTS.get(dialect, dialect),
    }


def _pool_params(output_size, spatial_scale, dialect) -> dict:
    return {"pooled_size": _pair(output_size), "spatial_scale": spatial_scale, "dialect": dialect}


def _channels(input):
    return _traced_number(input.shape[1]) if torch.jit.is_tracing() else input.shape[1]


@torch.jit.unused
def _traced_number(size) -> int:
    """A size that is the same for every input of a model, while ``torch.jit.trace`` has sizes as tensors."""
    with warnings.catch_warnings():  # that it could be another one
        warnings.simplefilter("ignore", torch.jit.TracerWarning)
        return int(size)


def _score_maps(channels, output_size, spatial_scale, dialect) -> dict:
    pooled_size = _pair(output_size)
    return {
        "spatial_scale": spatial_scale,
        "output_dim": max(1, channels // max(1, math.prod(pooled_size))),
        "pooled_size": pooled_size,
        "dialect": dialect,
    }


def _ps_align_params(channels, output_size, spatial_scale, sampling_ratio, dialect) -> dict:
    params = _score_maps(channels, output_size, spatial_scale, dialect)
    return {**params, "sampling_ratio": _pair(sampling_ratio)}


def _ps_pool_params(channels, output_size, spatial_scale, dialect, as_released) -> dict:
    return {**_score_maps(channels, output_size, spatial_scale, dialect), "as_released": as_released}


def _pair(size) -> tuple:
    if isinstance(size, (int, float)):
        return size, size
    try:
        return tuple(size)
    except TypeError:  # one number of another kind, as lengths are while PyTorch exports or traces
        return size, size


def as_rois(boxes: Tensor | list[Tensor], input: Tensor, name: str) -> Tensor:
    """Boxes in either of torchvision's forms as rows ``(image, x1, y1, x2, y2)``."""
    if not torch.jit.is_scripting():
        _check_boxes(boxes, name)
    if isinstance(boxes, Tensor):
        return boxes
    if len(boxes) == 0:
        return input.new_zeros((0, 5))
    # bfloat16 counts to 256, uint8 to 255
    images = [torch.full_like(each[:, :1], image, dtype=torch.float32) for image, each in enumerate(boxes)]
    return torch.cat([torch.cat(images), torch.cat(boxes)], dim=1)


def _check_boxes(boxes, name):
    if torch.jit.is_tracing():  # which would warn of the checks
        return
    if isinstance(boxes, Tensor):
        if boxes.dim() != 2 or boxes.shape[1] != 5:
            raise ShapeError(
                f"{name}: boxes must be a Tensor[K, 5] or a list of Tensor[L, 4], "
                f"got shape {tuple(boxes.shape)}"
            )
        return
    for image, each in enumerate(boxes if isinstance(boxes, (list, tuple)) else [boxes]):
        if not isinstance(each, Tensor):
            raise InputError(
                f"{name}: boxes must be a Tensor[K, 5] or a list of Tensor[L, 4], "
                f"got {type(boxes).__name__}; torch.as_tensor(...) makes a tensor of an array"
            )
        if each.dim() != 2 or each.shape[1] != 4:
            raise ShapeError(f"{name}: boxes[{image}] must be a Tensor[L, 4], got shape {tuple(each.shape)}")
