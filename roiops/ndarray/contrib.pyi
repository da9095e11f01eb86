"""Written by tools/make_stubs.py from the operators' declarations; do not edit."""

from collections.abc import Sequence
from typing import Any, Literal

from roiops.ndarray import Array, NDArray

def AdaptiveAvgPooling2D(
    data: Array | None = ...,
    output_size: int | Sequence[int] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Mean over a grid of near-equal windows, whatever the input's size."""

def BilinearResize2D(
    data: Array | None = ...,
    like: Array | None = ...,
    height: int = ...,
    width: int = ...,
    scale_height: float | None = ...,
    scale_width: float | None = ...,
    mode: Literal[
        "size", "odd_scale", "like", "to_even_down", "to_even_up", "to_odd_down", "to_odd_up"
    ] = ...,
    align_corners: bool = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Resize images by bilinear interpolation."""

def CTCLoss(
    data: Array | None = ...,
    label: Array | None = ...,
    data_lengths: Array | None = ...,
    label_lengths: Array | None = ...,
    use_data_lengths: bool = ...,
    use_label_lengths: bool = ...,
    blank_label: Literal["first", "last"] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """The negative logarithm of the probability of each label sequence, summed over all alignments."""

def CropAndResize(
    data: Array | None = ...,
    rois: Array | None = ...,
    pooled_size: int | Sequence[int | None] = ...,
    mode: Literal["bilinear", "nearest"] = ...,
    extrapolation_value: float = ...,
    layout: Literal["NCHW", "NHWC"] = ...,
    *,
    crop_size: int | Sequence[int | None] = ...,
    method: Literal["bilinear", "nearest"] = ...,
    out: Any = ...,
    name: str | None = ...,
) -> Any:
    """Crop boxes out of an image and resize them (TensorFlow's crop_and_resize), with a gradient of both."""

def DeformROIPooling(
    data: Array | None = ...,
    rois: Array | None = ...,
    offset: Array | None = ...,
    pooled_size: int | Sequence[int] = ...,
    spatial_scale: float = ...,
    sampling_ratio: int | Sequence[int | None] = ...,
    gamma: float = ...,
    *,
    sample_num: int | Sequence[int | None] = ...,
    sample_ratio: int | Sequence[int | None] = ...,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """ROIAlign whose bins ``offset`` displaces, all channels alike (Deformable ConvNets, as in mmcv)."""

def DeformableConvolution(
    data: Array | None = ...,
    offset: Array | None = ...,
    weight: Array | None = ...,
    bias: Array | None = ...,
    kernel: int | Sequence[int] = ...,
    stride: int | Sequence[int] = ...,
    dilate: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    num_filter: int = ...,
    num_group: int = ...,
    num_deformable_group: int = ...,
    workspace: int = ...,
    no_bias: bool = ...,
    layout: Literal["NCHW"] | None = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Convolution whose taps read the map at displaced positions, bilinearly (Deformable ConvNets, 2017)."""

def DeformablePSROIPooling(
    data: Array | None = ...,
    rois: Array | None = ...,
    trans: Array | None = ...,
    spatial_scale: float = ...,
    output_dim: int = ...,
    group_size: int = ...,
    pooled_size: int = ...,
    part_size: int = ...,
    sample_per_part: int = ...,
    trans_std: float = ...,
    no_trans: bool = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Mean of bilinear samples in bins that ``trans`` displaces (Deformable ConvNets, 2017)."""

def ModulatedDeformableConvolution(
    data: Array | None = ...,
    offset: Array | None = ...,
    mask: Array | None = ...,
    weight: Array | None = ...,
    bias: Array | None = ...,
    kernel: int | Sequence[int] = ...,
    stride: int | Sequence[int] = ...,
    dilate: int | Sequence[int] = ...,
    pad: int | Sequence[int] = ...,
    num_filter: int = ...,
    num_group: int = ...,
    num_deformable_group: int = ...,
    workspace: int = ...,
    no_bias: bool = ...,
    layout: Literal["NCHW"] | None = ...,
    im2col_step: int = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Deformable convolution whose taps are each scaled by a mask as well (Deformable ConvNets v2, 2018)."""

def MultiBoxDetection(
    cls_prob: Array | None = ...,
    loc_pred: Array | None = ...,
    anchor: Array | None = ...,
    clip: bool = ...,
    threshold: float = ...,
    background_id: int = ...,
    nms_threshold: float = ...,
    force_suppress: bool = ...,
    variances: float | Sequence[float] = ...,
    nms_topk: int = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Detections of SSD: rows (class, probability, xmin, ymin, xmax, ymax), best first."""

def MultiBoxPrior(
    data: Array | None = ...,
    sizes: float | Sequence[float] = ...,
    ratios: float | Sequence[float] = ...,
    clip: bool = ...,
    steps: float | Sequence[float] = ...,
    offsets: float | Sequence[float] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """The default boxes of a feature map, as corners in fractions of the image (SSD, 2016)."""

def MultiBoxTarget(
    anchor: Array | None = ...,
    label: Array | None = ...,
    cls_pred: Array | None = ...,
    overlap_threshold: float = ...,
    ignore_label: float = ...,
    negative_mining_ratio: float = ...,
    negative_mining_thresh: float = ...,
    minimum_negative_samples: int = ...,
    variances: float | Sequence[float] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> list[NDArray]:
    """What SSD trains its boxes and classes towards."""

def MultiProposal(
    cls_prob: Array | None = ...,
    bbox_pred: Array | None = ...,
    im_info: Array | None = ...,
    rpn_pre_nms_top_n: int = ...,
    rpn_post_nms_top_n: int = ...,
    threshold: float = ...,
    rpn_min_size: int = ...,
    scales: float | Sequence[float] = ...,
    ratios: float | Sequence[float] = ...,
    feature_stride: int = ...,
    output_score: bool = ...,
    iou_loss: bool = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> list[NDArray]:
    """Turn the scores and box displacements of an RPN head into regions of interest (Faster R-CNN, 2015)."""

def MultiScaleROIAlign(
    *data: Array | Sequence[Array],
    num_args: int = ...,
    pooled_size: int | Sequence[int] = ...,
    spatial_scales: float | Sequence[float] = ...,
    sampling_ratio: int | Sequence[int | None] = ...,
    aligned: bool = ...,
    canonical_size: float = ...,
    canonical_level: int = ...,
    dialect: Literal["torchvision", "detectron2", "mmdet"] = ...,
    sample_num: int | Sequence[int | None] = ...,
    sample_ratio: int | Sequence[int | None] = ...,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """ROIAlign on a feature pyramid: the size of a box says which map it reads (FPN, 2017)."""

def PSROIPooling(
    data: Array | None = ...,
    rois: Array | None = ...,
    spatial_scale: float = ...,
    output_dim: int = ...,
    pooled_size: int | Sequence[int | None] = ...,
    group_size: int = ...,
    dialect: Literal["mxnet", "paddle", "torchvision", "chainer"] = ...,
    mode: Literal["avg", "max"] = ...,
    as_released: bool = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> Any:
    """Mean over integer bins, each of which reads its own score maps (R-FCN, 2016)."""

def PrROIPooling(
    data: Array | None = ...,
    rois: Array | None = ...,
    pooled_size: int | Sequence[int] = ...,
    spatial_scale: float = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> Any:
    """Precise mean over each bin, without samples, differentiable in the boxes too (IoU-Net, 2018)."""

def Proposal(
    cls_prob: Array | None = ...,
    bbox_pred: Array | None = ...,
    im_info: Array | None = ...,
    rpn_pre_nms_top_n: int = ...,
    rpn_post_nms_top_n: int = ...,
    threshold: float = ...,
    rpn_min_size: int = ...,
    scales: float | Sequence[float] = ...,
    ratios: float | Sequence[float] = ...,
    feature_stride: int = ...,
    output_score: bool = ...,
    iou_loss: bool = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> list[NDArray]:
    """Turn the scores and box displacements of an RPN head into regions of interest, for one image."""

def ROIAlign(
    data: Array | None = ...,
    rois: Array | None = ...,
    pooled_size: int | Sequence[int] = ...,
    spatial_scale: float = ...,
    sample_ratio: int | Sequence[int | None] = ...,
    position_sensitive: bool = ...,
    aligned: bool = ...,
    *,
    sampling_ratio: int | Sequence[int | None] = ...,
    out: Any = ...,
    name: str | None = ...,
) -> Any:
    """MXNet's own ROIAlign: the mean of bilinear samples, position-sensitive if asked."""

def ROIAlignRotated(
    data: Array | None = ...,
    rois: Array | None = ...,
    pooled_size: int | Sequence[int] = ...,
    spatial_scale: float = ...,
    sampling_ratio: int | Sequence[int | None] = ...,
    aligned: bool = ...,
    clockwise: bool = ...,
    dialect: Literal["mmcv", "detectron2"] = ...,
    *,
    sample_num: int | Sequence[int | None] = ...,
    sample_ratio: int | Sequence[int | None] = ...,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Mean of bilinear samples in the bins of rotated (oriented) boxes, as mmcv and Detectron2 take it."""

def RROIAlign(
    data: Array | None = ...,
    rois: Array | None = ...,
    pooled_size: int | Sequence[int] = ...,
    spatial_scale: float = ...,
    sampling_ratio: int | Sequence[int | None] = ...,
    *,
    sample_num: int | Sequence[int | None] = ...,
    sample_ratio: int | Sequence[int | None] = ...,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Mean of bilinear samples in the bins of rotated boxes. Unlike MXNet's, it has a gradient."""

def RiROIAlign(
    data: Array | None = ...,
    rois: Array | None = ...,
    pooled_size: int | Sequence[int] = ...,
    spatial_scale: float = ...,
    sampling_ratio: int | Sequence[int | None] = ...,
    num_orientations: int = ...,
    clockwise: bool = ...,
    *,
    num_samples: int | Sequence[int | None] = ...,
    sample_num: int | Sequence[int | None] = ...,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Rotation-equivariant ROIAlign: orientation channels turn with the rotated box (ReDet, 2021)."""

def SyncBatchNorm(
    data: Array | None = ...,
    gamma: Array | None = ...,
    beta: Array | None = ...,
    moving_mean: Array | None = ...,
    moving_var: Array | None = ...,
    eps: float = ...,
    momentum: float = ...,
    fix_gamma: bool = ...,
    use_global_stats: bool = ...,
    output_mean_var: bool = ...,
    axis: int = ...,
    cudnn_off: bool = ...,
    min_calib_range: float | None = ...,
    max_calib_range: float | None = ...,
    ndev: int = ...,
    key: str = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> list[NDArray]:
    """BatchNorm under the name of its many-device form; here there is one device."""

def allclose(
    a: Array | None = ...,
    b: Array | None = ...,
    rtol: float = ...,
    atol: float = ...,
    equal_nan: bool = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """1 where every entry of a and b agrees within ``atol + rtol * |b|``, else 0."""

def arange_like(
    data: Array | None = ...,
    start: float = ...,
    step: float = ...,
    repeat: int = ...,
    ctx: str = ...,
    axis: int | None = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Numbers at equal distances, as many as the data has entries, or as an axis of it is long."""

def bipartite_matching(
    data: Array | None = ...,
    is_ascend: bool = ...,
    threshold: float = ...,
    topk: int = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> list[NDArray]:
    """Match rows and columns of a score matrix one to one, taking the best remaining pair each time."""

def boolean_mask(
    data: Array | None = ...,
    index: Array | None = ...,
    axis: int = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """The rows of data whose entry of index is not 0. Not for graphs: its shape depends on numbers."""

def box_decode(
    data: Array | None = ...,
    anchors: Array | None = ...,
    std0: float = ...,
    std1: float = ...,
    std2: float = ...,
    std3: float = ...,
    clip: float = ...,
    format: Literal["corner", "center"] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Boxes, as corners, from predicted displacements of anchors."""

def box_encode(
    samples: Array | None = ...,
    matches: Array | None = ...,
    anchors: Array | None = ...,
    refs: Array | None = ...,
    means: Array | None = ...,
    stds: Array | None = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> list[NDArray]:
    """Regression targets of anchors to the boxes they match, and a mask of those that have one."""

def box_iou(
    lhs: Array | None = ...,
    rhs: Array | None = ...,
    format: Literal["corner", "center"] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Intersection over union of every box of ``lhs`` with every box of ``rhs``."""

def box_nms(
    data: Array | None = ...,
    overlap_thresh: float = ...,
    valid_thresh: float = ...,
    topk: int = ...,
    coord_start: int = ...,
    score_index: int = ...,
    id_index: int = ...,
    background_id: int = ...,
    force_suppress: bool = ...,
    in_format: Literal["corner", "center"] = ...,
    out_format: Literal["corner", "center"] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Drop boxes that overlap better ones (greedy non-maximum suppression)."""

def box_non_maximum_suppression(
    data: Array | None = ...,
    overlap_thresh: float = ...,
    valid_thresh: float = ...,
    topk: int = ...,
    coord_start: int = ...,
    score_index: int = ...,
    id_index: int = ...,
    background_id: int = ...,
    force_suppress: bool = ...,
    in_format: Literal["corner", "center"] = ...,
    out_format: Literal["corner", "center"] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """Drop boxes that overlap better ones (greedy non-maximum suppression)."""

def ctc_loss(
    data: Array | None = ...,
    label: Array | None = ...,
    data_lengths: Array | None = ...,
    label_lengths: Array | None = ...,
    use_data_lengths: bool = ...,
    use_label_lengths: bool = ...,
    blank_label: Literal["first", "last"] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """The negative logarithm of the probability of each label sequence, summed over all alignments."""

def dequantize(
    data: Array | None = ...,
    min_range: Array | None = ...,
    max_range: Array | None = ...,
    out_type: Literal["float32"] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """The numbers that int8 or uint8 stand for, with the range that quantizing gave."""

def div_sqrt_dim(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray:
    """The data divided by the square root of the length of its last axis."""

def gradientmultiplier(
    data: Array | None = ...,
    scalar: float = ...,
    is_int: bool = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """The data as it is; the gradient is multiplied by ``scalar``."""

def index_array(
    data: Array | None = ...,
    axes: int | Sequence[int] | None = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """For each entry its own index: int64, with a new last axis that holds the coordinates."""

def index_copy(
    old_tensor: Array | None = ...,
    index_vector: Array | None = ...,
    new_tensor: Array | None = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """old_tensor with the rows at index_vector replaced by those of new_tensor."""

def interleaved_matmul_encdec_qk(
    queries: Array | None = ...,
    keys_values: Array | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """The scores of attention to another sequence: (batch * heads, length of queries, length of keys)."""

def interleaved_matmul_encdec_valatt(
    keys_values: Array | None = ...,
    attention: Array | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """The values of another sequence, weighted: (length of queries, batch, heads * depth)."""

def interleaved_matmul_selfatt_qk(
    queries_keys_values: Array | None = ..., heads: int = ..., *, out: Any = ..., name: str | None = ...
) -> NDArray:
    """The scores of self-attention: queries times keys over the root of the depth, (batch * heads, L, L)."""

def interleaved_matmul_selfatt_valatt(
    queries_keys_values: Array | None = ...,
    attention: Array | None = ...,
    heads: int = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """The values of self-attention, weighted: (length, batch, heads * depth)."""

def isfinite(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray:
    """1 where the entry is a finite number, else 0."""

def isinf(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray:
    """1 where the entry is infinite, else 0."""

def isnan(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray:
    """1 where the entry is not a number, else 0."""

def mrcnn_mask_target(
    rois: Array | None = ...,
    gt_masks: Array | None = ...,
    matches: Array | None = ...,
    cls_targets: Array | None = ...,
    num_rois: int = ...,
    num_classes: int = ...,
    mask_size: int | Sequence[int] = ...,
    sample_ratio: int = ...,
    aligned: bool = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> list[NDArray]:
    """The part of its matching mask that each box covers, for every class, and a mask of its own class."""

def quadratic(
    data: Array | None = ...,
    a: float = ...,
    b: float = ...,
    c: float = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> NDArray:
    """``a * data**2 + b * data + c``."""

def quantize(
    data: Array | None = ...,
    min_range: Array | None = ...,
    max_range: Array | None = ...,
    out_type: Literal["int8", "uint8"] = ...,
    *,
    out: Any = ...,
    name: str | None = ...,
) -> list[NDArray]:
    """Numbers in eight bits, and the range that those stand for, as MXNet's library for CPUs has it."""

def round_ste(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray:
    """Rounding, with a gradient that passes through."""

def sign_ste(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray:
    """Sign, with a gradient that passes through."""
