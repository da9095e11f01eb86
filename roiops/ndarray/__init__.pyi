"""Written by tools/make_stubs.py from the operators' declarations; do not edit."""
from collections.abc import Sequence
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import DTypeLike

from roiops.ndarray import _random_exponential as random_exponential
from roiops.ndarray import contrib as contrib
from roiops.ndarray import files as files
from roiops.ndarray import image as image
from roiops.ndarray import linalg as linalg
from roiops.ndarray import op as _internal
from roiops.ndarray import op as op
from roiops.ndarray import random as random
from roiops.ndarray import sparse as sparse
from roiops.ndarray.creation import arange as arange
from roiops.ndarray.creation import array as array
from roiops.ndarray.creation import empty as empty
from roiops.ndarray.creation import eye as eye
from roiops.ndarray.creation import from_numpy as from_numpy
from roiops.ndarray.creation import full as full
from roiops.ndarray.creation import linspace as linspace
from roiops.ndarray.creation import ones as ones
from roiops.ndarray.creation import reset_arrays as reset_arrays
from roiops.ndarray.creation import zeros as zeros
from roiops.ndarray.files import load as load
from roiops.ndarray.files import load_frombuffer as load_frombuffer
from roiops.ndarray.files import save as save
from roiops.ndarray.ndarray import NDArray as NDArray
from roiops.ndarray.ndarray import from_dlpack as from_dlpack
from roiops.ndarray.ndarray import waitall as waitall
from roiops.ndarray.random import gamma as random_gamma
from roiops.ndarray.random import negative_binomial as random_negative_binomial
from roiops.ndarray.random import normal as normal
from roiops.ndarray.random import normal as random_normal
from roiops.ndarray.random import poisson as random_poisson
from roiops.ndarray.random import randint as random_randint
from roiops.ndarray.random import uniform as random_uniform
from roiops.ndarray.random import uniform as uniform
from roiops.ndarray.shaping import concatenate as concatenate
from roiops.ndarray.shaping import histogram as histogram
from roiops.ndarray.shaping import moveaxis as moveaxis
from roiops.ndarray.shaping import onehot_encode as onehot_encode
from roiops.ndarray.shaping import split_v2 as split_v2
from roiops.ndarray.sparse import cast_storage as cast_storage
from roiops.ndarray.updates import adam_update as adam_update
from roiops.ndarray.updates import ftml_update as ftml_update
from roiops.ndarray.updates import ftrl_update as ftrl_update
from roiops.ndarray.updates import lamb_update_phase1 as lamb_update_phase1
from roiops.ndarray.updates import lamb_update_phase2 as lamb_update_phase2
from roiops.ndarray.updates import mp_nag_mom_update as mp_nag_mom_update
from roiops.ndarray.updates import mp_sgd_mom_update as mp_sgd_mom_update
from roiops.ndarray.updates import mp_sgd_update as mp_sgd_update
from roiops.ndarray.updates import multi_mp_sgd_mom_update as multi_mp_sgd_mom_update
from roiops.ndarray.updates import multi_mp_sgd_update as multi_mp_sgd_update
from roiops.ndarray.updates import multi_sgd_mom_update as multi_sgd_mom_update
from roiops.ndarray.updates import multi_sgd_update as multi_sgd_update
from roiops.ndarray.updates import nag_mom_update as nag_mom_update
from roiops.ndarray.updates import rmsprop_update as rmsprop_update
from roiops.ndarray.updates import rmspropalex_update as rmspropalex_update
from roiops.ndarray.updates import sgd_mom_update as sgd_mom_update
from roiops.ndarray.updates import sgd_update as sgd_update
from roiops.ndarray.updates import signsgd_update as signsgd_update
from roiops.ndarray.updates import signum_update as signum_update

__all__ = ['NDArray', '_internal', 'adam_update', 'arange', 'array', 'cast_storage', 'concatenate', 'contrib', 'empty', 'eye', 'files', 'from_dlpack', 'from_numpy', 'ftml_update', 'ftrl_update', 'full', 'histogram', 'image', 'lamb_update_phase1', 'lamb_update_phase2', 'linalg', 'linspace', 'load', 'load_frombuffer', 'moveaxis', 'mp_nag_mom_update', 'mp_sgd_mom_update', 'mp_sgd_update', 'multi_mp_sgd_mom_update', 'multi_mp_sgd_update', 'multi_sgd_mom_update', 'multi_sgd_update', 'nag_mom_update', 'normal', 'onehot_encode', 'ones', 'op', 'random', 'random_exponential', 'random_gamma', 'random_negative_binomial', 'random_normal', 'random_poisson', 'random_randint', 'random_uniform', 'reset_arrays', 'rmsprop_update', 'rmspropalex_update', 'save', 'sgd_mom_update', 'sgd_update', 'signsgd_update', 'signum_update', 'sparse', 'split_v2', 'uniform', 'waitall', 'zeros']

class _SupportsDLPack(Protocol):
    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

#: What the functions take. They give NDArrays; for arrays of another library, arrays of that library.
Array = NDArray | np.ndarray | _SupportsDLPack

def to_dlpack_for_read(self: Any) -> Any: """A DLPack capsule that shares memory with this array."""
def to_dlpack_for_write(self: Any) -> Any: """A DLPack capsule that shares memory with this array."""
def add(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_add`` of two arrays, or of an array and a number on either side."""
def divide(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_div`` of two arrays, or of an array and a number on either side."""
def equal(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_equal`` of two arrays, or of an array and a number on either side."""
def greater(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_greater`` of two arrays, or of an array and a number on either side."""
def greater_equal(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_greater_equal`` of two arrays, or of an array and a number on either side."""
def lesser(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_lesser`` of two arrays, or of an array and a number on either side."""
def lesser_equal(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_lesser_equal`` of two arrays, or of an array and a number on either side."""
def logical_and(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_logical_and`` of two arrays, or of an array and a number on either side."""
def logical_or(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_logical_or`` of two arrays, or of an array and a number on either side."""
def logical_xor(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_logical_xor`` of two arrays, or of an array and a number on either side."""
def maximum(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_maximum`` of two arrays, or of an array and a number on either side."""
def minimum(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_minimum`` of two arrays, or of an array and a number on either side."""
def modulo(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_mod`` of two arrays, or of an array and a number on either side."""
def multiply(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_mul`` of two arrays, or of an array and a number on either side."""
def not_equal(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_not_equal`` of two arrays, or of an array and a number on either side."""
def power(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_power`` of two arrays, or of an array and a number on either side."""
def subtract(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_sub`` of two arrays, or of an array and a number on either side."""
def true_divide(lhs: Any, rhs: Any) -> Any: """The operator ``broadcast_div`` of two arrays, or of an array and a number on either side."""
def Activation(data: Array | None = ..., act_type: Literal['relu', 'sigmoid', 'tanh', 'softrelu', 'softsign'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Apply a function to each element."""
def BatchNorm(data: Array | None = ..., gamma: Array | None = ..., beta: Array | None = ..., moving_mean: Array | None = ..., moving_var: Array | None = ..., eps: float = ..., momentum: float = ..., fix_gamma: bool = ..., use_global_stats: bool = ..., output_mean_var: bool = ..., axis: int = ..., cudnn_off: bool = ..., min_calib_range: float | None = ..., max_calib_range: float | None = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """Normalise each channel by its batch's mean and variance when training, by moving ones otherwise."""
def BilinearSampler(data: Array | None = ..., grid: Array | None = ..., cudnn_off: bool | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Sample images at given positions by bilinear interpolation; outside there is 0."""
def BlockGrad(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The data as it is; no gradient passes."""
def CTCLoss(data: Array | None = ..., label: Array | None = ..., data_lengths: Array | None = ..., label_lengths: Array | None = ..., use_data_lengths: bool = ..., use_label_lengths: bool = ..., blank_label: Literal['first', 'last'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The negative logarithm of the probability of each label sequence, summed over all alignments."""
def Cast(data: Array | None = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The data in another dtype."""
def Concat(*data: Array | Sequence[Array], num_args: int = ..., dim: int = ..., out: Any = ..., name: str | None = ...) -> NDArray: """The inputs one after another along an axis."""
def Convolution(data: Array | None = ..., weight: Array | None = ..., bias: Array | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., num_filter: int = ..., num_group: int = ..., workspace: int = ..., no_bias: bool = ..., cudnn_tune: Literal['off', 'limited_workspace', 'fastest'] | None = ..., cudnn_off: bool = ..., layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Slide a window over one to three spatial axes and take the weighted sum of what it covers."""
def Correlation(data1: Array | None = ..., data2: Array | None = ..., kernel_size: int = ..., max_displacement: int = ..., stride1: int = ..., stride2: int = ..., pad_size: int = ..., is_multiply: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """How like each other the patches of two maps are, at each displacement up to ``max_displacement``."""
def Crop(*data: Array | Sequence[Array], num_args: int = ..., offset: int | Sequence[int] = ..., h_w: int | Sequence[int] = ..., center_crop: bool = ..., out: Any = ..., name: str | None = ...) -> NDArray: """A part of a picture: of a given size, or of the size of a second input."""
def CropAndResize(data: Array | None = ..., rois: Array | None = ..., pooled_size: int | Sequence[int | None] = ..., mode: Literal['bilinear', 'nearest'] = ..., extrapolation_value: float = ..., layout: Literal['NCHW', 'NHWC'] = ..., *, crop_size: int | Sequence[int | None] = ..., method: Literal['bilinear', 'nearest'] = ..., out: Any = ..., name: str | None = ...) -> Any: """Crop boxes out of an image and resize them (TensorFlow's crop_and_resize), with a gradient of both."""
def Custom(*data: Array | Sequence[Array], op_type: str = ..., out: Any = ..., name: str | None = ..., **parameters: Any) -> Any: """An operator written in Python by the user; see :mod:`roiops.operator`."""
def Deconvolution(data: Array | None = ..., weight: Array | None = ..., bias: Array | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., num_filter: int = ..., num_group: int = ..., workspace: int = ..., no_bias: bool = ..., cudnn_tune: Literal['off', 'limited_workspace', 'fastest'] | None = ..., cudnn_off: bool = ..., layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = ..., adj: int | Sequence[int] = ..., target_shape: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The transpose of a convolution: each input pixel adds a weighted window to the output."""
def DeformROIPooling(data: Array | None = ..., rois: Array | None = ..., offset: Array | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., gamma: float = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., out: Any = ..., name: str | None = ...) -> NDArray: """ROIAlign whose bins ``offset`` displaces, all channels alike (Deformable ConvNets, as in mmcv)."""
def DeformableConvolution(data: Array | None = ..., offset: Array | None = ..., weight: Array | None = ..., bias: Array | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., num_filter: int = ..., num_group: int = ..., num_deformable_group: int = ..., workspace: int = ..., no_bias: bool = ..., layout: Literal['NCHW'] | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Convolution whose taps read the map at displaced positions, bilinearly (Deformable ConvNets, 2017)."""
def Dropout(data: Array | None = ..., p: float = ..., mode: Literal['training', 'always'] = ..., axes: int | Sequence[int] = ..., cudnn_off: bool | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Set a random part of the elements to 0 and scale the others up; the identity at inference."""
def ElementWiseSum(*data: Array | Sequence[Array], num_args: int = ..., out: Any = ..., name: str | None = ...) -> NDArray: """The sum of all inputs, which are of one shape."""
def Embedding(data: Array | None = ..., weight: Array | None = ..., input_dim: int = ..., output_dim: int = ..., dtype: DTypeLike = ..., sparse_grad: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The rows of a table that the data tells; an index outside takes the first or last row."""
def Flatten(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """All axes but the first made one."""
def FullyConnected(data: Array | None = ..., weight: Array | None = ..., bias: Array | None = ..., num_hidden: int = ..., no_bias: bool = ..., flatten: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """A linear map of the features: ``data @ weight.T + bias``."""
def GridGenerator(data: Array | None = ..., transform_type: Literal['affine', 'warp'] = ..., target_shape: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Sampling positions for BilinearSampler, from an affine matrix or an optical flow."""
def GroupNorm(data: Array | None = ..., gamma: Array | None = ..., beta: Array | None = ..., num_groups: int = ..., eps: float = ..., output_mean_var: bool = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """Normalise groups of channels of each sample, then scale and shift by group, as MXNet 1.9 does."""
def InstanceNorm(data: Array | None = ..., gamma: Array | None = ..., beta: Array | None = ..., eps: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Normalise each channel of each sample over its image, then scale and shift by channel."""
def L2Normalization(data: Array | None = ..., eps: float = ..., mode: Literal['instance', 'channel', 'spatial'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Divide by the L2 norm, over each sample, each pixel's channels or each channel's image."""
def LRN(data: Array | None = ..., alpha: float = ..., beta: float = ..., knorm: float = ..., nsize: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Local response normalisation across neighbouring channels."""
def LayerNorm(data: Array | None = ..., gamma: Array | None = ..., beta: Array | None = ..., axis: int = ..., eps: float = ..., output_mean_var: bool = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """Normalise over one axis, then scale and shift along it."""
def LeakyReLU(data: Array | None = ..., gamma: Array | None = ..., act_type: Literal['leaky', 'prelu', 'elu', 'selu', 'gelu', 'rrelu'] = ..., slope: float = ..., lower_bound: float = ..., upper_bound: float = ..., *, out: Any = ..., name: str | None = ...) -> Any: """Rectifiers that let something through below 0."""
def LinearRegressionOutput(data: Array | None = ..., label: Array | None = ..., grad_scale: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The data as it is; backward is the gradient of half the squared error."""
def LogisticRegressionOutput(data: Array | None = ..., label: Array | None = ..., grad_scale: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """sigmoid(data); backward is the gradient of the binary cross-entropy."""
def MAERegressionOutput(data: Array | None = ..., label: Array | None = ..., grad_scale: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The data as it is; backward is the gradient of the absolute error."""
def MakeLoss(data: Array | None = ..., grad_scale: float = ..., valid_thresh: float = ..., normalization: Literal['null', 'batch', 'valid'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Makes a loss of any array: the data as it is, whose gradient is ``grad_scale``."""
def ModulatedDeformableConvolution(data: Array | None = ..., offset: Array | None = ..., mask: Array | None = ..., weight: Array | None = ..., bias: Array | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., num_filter: int = ..., num_group: int = ..., num_deformable_group: int = ..., workspace: int = ..., no_bias: bool = ..., layout: Literal['NCHW'] | None = ..., im2col_step: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Deformable convolution whose taps are each scaled by a mask as well (Deformable ConvNets v2, 2018)."""
def MultiBoxDetection(cls_prob: Array | None = ..., loc_pred: Array | None = ..., anchor: Array | None = ..., clip: bool = ..., threshold: float = ..., background_id: int = ..., nms_threshold: float = ..., force_suppress: bool = ..., variances: float | Sequence[float] = ..., nms_topk: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Detections of SSD: rows (class, probability, xmin, ymin, xmax, ymax), best first."""
def MultiBoxPrior(data: Array | None = ..., sizes: float | Sequence[float] = ..., ratios: float | Sequence[float] = ..., clip: bool = ..., steps: float | Sequence[float] = ..., offsets: float | Sequence[float] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The default boxes of a feature map, as corners in fractions of the image (SSD, 2016)."""
def MultiBoxTarget(anchor: Array | None = ..., label: Array | None = ..., cls_pred: Array | None = ..., overlap_threshold: float = ..., ignore_label: float = ..., negative_mining_ratio: float = ..., negative_mining_thresh: float = ..., minimum_negative_samples: int = ..., variances: float | Sequence[float] = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """What SSD trains its boxes and classes towards."""
def MultiProposal(cls_prob: Array | None = ..., bbox_pred: Array | None = ..., im_info: Array | None = ..., rpn_pre_nms_top_n: int = ..., rpn_post_nms_top_n: int = ..., threshold: float = ..., rpn_min_size: int = ..., scales: float | Sequence[float] = ..., ratios: float | Sequence[float] = ..., feature_stride: int = ..., output_score: bool = ..., iou_loss: bool = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """Turn the scores and box displacements of an RPN head into regions of interest (Faster R-CNN, 2015)."""
def MultiScaleROIAlign(*data: Array | Sequence[Array], num_args: int = ..., pooled_size: int | Sequence[int] = ..., spatial_scales: float | Sequence[float] = ..., sampling_ratio: int | Sequence[int | None] = ..., aligned: bool = ..., canonical_size: float = ..., canonical_level: int = ..., dialect: Literal['torchvision', 'detectron2', 'mmdet'] = ..., sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., out: Any = ..., name: str | None = ...) -> NDArray: """ROIAlign on a feature pyramid: the size of a box says which map it reads (FPN, 2017)."""
def PSROIAlign(data: Array | None = ..., rois: Array | None = ..., spatial_scale: float = ..., output_dim: int = ..., pooled_size: int | Sequence[int | None] = ..., group_size: int = ..., sampling_ratio: int | Sequence[int | None] = ..., dialect: Literal['rfcn', 'torchvision', 'chainer'] = ..., mode: Literal['avg', 'max'] = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., out: Any = ..., name: str | None = ...) -> Any: """Mean of bilinear samples in bins that each read their own score maps."""
def PSROIPooling(data: Array | None = ..., rois: Array | None = ..., spatial_scale: float = ..., output_dim: int = ..., pooled_size: int | Sequence[int | None] = ..., group_size: int = ..., dialect: Literal['mxnet', 'paddle', 'torchvision', 'chainer'] = ..., mode: Literal['avg', 'max'] = ..., as_released: bool = ..., *, out: Any = ..., name: str | None = ...) -> Any: """Mean over integer bins, each of which reads its own score maps (R-FCN, 2016)."""
def Pad(data: Array | None = ..., mode: Literal['constant', 'edge', 'reflect'] = ..., pad_width: int | Sequence[int] = ..., constant_value: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entries added around the data, along all axes but the first two."""
def Pooling(data: Array | None = ..., kernel: int | Sequence[int] = ..., pool_type: Literal['max', 'avg', 'sum', 'lp'] = ..., global_pool: bool = ..., cudnn_off: bool = ..., pooling_convention: Literal['valid', 'full', 'same'] = ..., stride: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., p_value: int | None = ..., count_include_pad: bool | None = ..., layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Reduce a window that slides over one to three spatial axes to its maximum, mean, sum or p-norm."""
def Pooling_v1(data: Array | None = ..., kernel: int | Sequence[int] = ..., pool_type: Literal['max', 'avg', 'sum'] = ..., global_pool: bool = ..., pooling_convention: Literal['valid', 'full'] = ..., stride: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """MXNet's first pooling: zeros in the padding compete in a maximum, and all equal maxima get gradient."""
def PrROIPooling(data: Array | None = ..., rois: Array | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., *, out: Any = ..., name: str | None = ...) -> Any: """Precise mean over each bin, without samples, differentiable in the boxes too (IoU-Net, 2018)."""
def Proposal(cls_prob: Array | None = ..., bbox_pred: Array | None = ..., im_info: Array | None = ..., rpn_pre_nms_top_n: int = ..., rpn_post_nms_top_n: int = ..., threshold: float = ..., rpn_min_size: int = ..., scales: float | Sequence[float] = ..., ratios: float | Sequence[float] = ..., feature_stride: int = ..., output_score: bool = ..., iou_loss: bool = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """Turn the scores and box displacements of an RPN head into regions of interest, for one image."""
def RNN(data: Array | None = ..., parameters: Array | None = ..., state: Array | None = ..., state_cell: Array | None = ..., state_size: int = ..., num_layers: int = ..., bidirectional: bool = ..., mode: Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = ..., p: float = ..., state_outputs: bool = ..., projection_size: int | None = ..., lstm_state_clip_min: float | None = ..., lstm_state_clip_max: float | None = ..., lstm_state_clip_nan: bool = ..., use_sequence_length: bool = ..., *, out: Any = ..., name: str | None = ...) -> Any: """Recurrent layers one on another (LSTM, GRU, or a plain one), over a whole sequence."""
def ROIAlign(data: Array | None = ..., rois: Array | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., mode: Literal['avg', 'max'] | None = ..., aligned: bool = ..., dialect: Literal['mmcv', 'chainer', 'mxnet', 'onnx'] = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., out: Any = ..., name: str | None = ...) -> Any: """Pool bilinear samples of each region of interest to a fixed grid (Mask R-CNN, 2017)."""
def ROIAlignRotated(data: Array | None = ..., rois: Array | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., aligned: bool = ..., clockwise: bool = ..., dialect: Literal['mmcv', 'detectron2'] = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., out: Any = ..., name: str | None = ...) -> NDArray: """Mean of bilinear samples in the bins of rotated (oriented) boxes, as mmcv and Detectron2 take it."""
def ROIPooling(data: Array | None = ..., rois: Array | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., dialect: Literal['mxnet', 'torchvision', 'mmcv', 'chainer'] = ..., mode: Literal['max', 'avg'] = ..., *, out: Any = ..., name: str | None = ...) -> Any: """Max-pool each region of interest to a fixed grid of integer bins (Fast R-CNN, 2015)."""
def Reshape(data: Array | None = ..., shape: int | Sequence[int] = ..., reverse: bool = ..., target_shape: int | Sequence[int] = ..., keep_highest: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The same entries under another shape, which may be given in codes."""
def RiROIAlign(data: Array | None = ..., rois: Array | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., num_orientations: int = ..., clockwise: bool = ..., *, num_samples: int | Sequence[int | None] = ..., sample_num: int | Sequence[int | None] = ..., out: Any = ..., name: str | None = ...) -> NDArray: """Rotation-equivariant ROIAlign: orientation channels turn with the rotated box (ReDet, 2021)."""
def SVMOutput(data: Array | None = ..., label: Array | None = ..., margin: float = ..., regularization_coefficient: float = ..., use_linear: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The data as it is; backward is the gradient of a support vector machine's hinge loss."""
def SequenceLast(data: Array | None = ..., sequence_length: Array | None = ..., use_sequence_length: bool = ..., axis: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The last entry of each sequence."""
def SequenceMask(data: Array | None = ..., sequence_length: Array | None = ..., use_sequence_length: bool = ..., axis: int = ..., value: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entries after the end of each sequence set to a number."""
def SequenceReverse(data: Array | None = ..., sequence_length: Array | None = ..., use_sequence_length: bool = ..., axis: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Each sequence backwards, what is after its end left in place."""
def SliceChannel(data: Array | None = ..., num_outputs: int = ..., axis: int = ..., squeeze_axis: bool = ..., *, out: Any = ..., name: str | None = ...) -> Any: """Cut into equal pieces along an axis."""
def Softmax(data: Array | None = ..., label: Array | None = ..., grad_scale: float = ..., ignore_label: float = ..., multi_output: bool = ..., use_ignore: bool = ..., preserve_shape: bool = ..., normalization: Literal['null', 'batch', 'valid'] = ..., out_grad: bool = ..., smooth_alpha: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Softmax, whose backward is the gradient of the cross-entropy with the labels."""
def SoftmaxActivation(data: Array | None = ..., mode: Literal['channel', 'instance'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Softmax along axis 1 (``mode="channel"``) or the last axis (``"instance"``)."""
def SpatialTransformer(data: Array | None = ..., loc: Array | None = ..., target_shape: int | Sequence[int] = ..., transform_type: Literal['affine'] = ..., sampler_type: Literal['bilinear'] = ..., cudnn_off: bool | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Sample images at the positions that an affine matrix gives."""
def SwapAxis(data: Array | None = ..., dim1: int = ..., dim2: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Two axes exchanged."""
def UpSampling(*data: Array | Sequence[Array], scale: int = ..., num_filter: int = ..., sample_type: Literal['nearest', 'bilinear'] = ..., multi_input_mode: Literal['concat', 'sum'] = ..., num_args: int = ..., workspace: int = ..., out: Any = ..., name: str | None = ...) -> NDArray: """Enlarge images by a whole factor, by repeating pixels or by a bilinear deconvolution."""
def _Div(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, lhs / rhs."""
def _DivScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, data / scalar."""
def _Equal(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs == rhs, else 0."""
def _EqualScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where data == scalar, else 0."""
def _Greater(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs > rhs, else 0."""
def _GreaterEqualScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where data >= scalar, else 0."""
def _GreaterScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where data > scalar, else 0."""
def _Greater_Equal(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs >= rhs, else 0."""
def _Hypot(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the hypotenuse of lhs and rhs."""
def _HypotScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the hypotenuse of data and scalar."""
def _Lesser(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs < rhs, else 0."""
def _LesserEqualScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where data <= scalar, else 0."""
def _LesserScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where data < scalar, else 0."""
def _Lesser_Equal(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs <= rhs, else 0."""
def _LogicalAndScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where neither data nor scalar is 0, else 0."""
def _LogicalOrScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 0 where both data and scalar are 0, else 1."""
def _LogicalXorScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where just one of data and scalar is 0, else 0."""
def _Logical_And(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where neither lhs nor rhs is 0, else 0."""
def _Logical_Or(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 0 where both lhs and rhs are 0, else 1."""
def _Logical_Xor(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where just one of lhs and rhs is 0, else 0."""
def _Maximum(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the larger of lhs and rhs."""
def _MaximumScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the larger of data and scalar."""
def _Minimum(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the smaller of lhs and rhs."""
def _MinimumScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the smaller of data and scalar."""
def _Minus(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, lhs - rhs."""
def _MinusScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, data - scalar."""
def _Mod(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the remainder of lhs / rhs, with the sign of the divisor and 0 for a zero divisor."""
def _ModScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the remainder of data / scalar, with the sign of the divisor and 0 for a zero divisor."""
def _Mul(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, lhs * rhs."""
def _MulScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, data * scalar."""
def _NotEqualScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where data != scalar, else 0."""
def _Not_Equal(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs != rhs, else 0."""
def _Plus(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, lhs + rhs."""
def _PlusScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, data + scalar."""
def _Power(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, lhs to the power rhs."""
def _PowerScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, data to the power scalar."""
def _RDivScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, scalar / data."""
def _RMinusScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, scalar - data."""
def _RModScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the remainder of scalar / data, with the sign of the divisor and 0 for a zero divisor."""
def _RPowerScalar(data: Array | None = ..., scalar: float = ..., is_int: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, scalar to the power data."""
def _arange(start: float = ..., stop: float | None = ..., step: float = ..., repeat: int = ..., infer_range: bool = ..., ctx: Any = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Numbers at equal distances: start, start + step, ... up to but without stop."""
def _copy(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The data as it is."""
def _crop_assign(lhs: Array | None = ..., rhs: Array | None = ..., begin: int | Sequence[int | None] = ..., end: int | Sequence[int | None] = ..., step: int | Sequence[int | None] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """lhs with a slice of it replaced by rhs."""
def _crop_assign_scalar(data: Array | None = ..., begin: int | Sequence[int | None] = ..., end: int | Sequence[int | None] = ..., step: int | Sequence[int | None] = ..., scalar: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The data with a slice of it set to a number."""
def _eye(N: int = ..., M: int = ..., k: int = ..., ctx: Any = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Ones on a diagonal, zeros elsewhere."""
def _full(shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike = ..., value: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """An array of one number."""
def _histogram(data: Array | None = ..., bins: Array | None = ..., bin_cnt: int | None = ..., range: float | Sequence[float] | None = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """How many entries fall into each bin, and the edges of the bins. The last bin holds its upper edge."""
def _identity_with_attr_like_rhs(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """lhs as it is; rhs only tells its shape."""
def _linspace(start: float = ..., stop: float = ..., num: int = ..., endpoint: bool = ..., ctx: Any = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """So many numbers at equal distances between two."""
def _np_cumsum(a: Array | None = ..., axis: int | None = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Running sums along an axis."""
def _npx_bipartite_matching(data: Array | None = ..., is_ascend: bool = ..., threshold: float = ..., topk: int = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """Match rows and columns of a score matrix one to one, taking the best remaining pair each time."""
def _npx_box_decode(data: Array | None = ..., anchors: Array | None = ..., std0: float = ..., std1: float = ..., std2: float = ..., std3: float = ..., clip: float = ..., format: Literal['corner', 'center'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Boxes, as corners, from predicted displacements of anchors."""
def _npx_box_encode(samples: Array | None = ..., matches: Array | None = ..., anchors: Array | None = ..., refs: Array | None = ..., means: Array | None = ..., stds: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """Regression targets of anchors to the boxes they match, and a mask of those that have one."""
def _npx_box_iou(lhs: Array | None = ..., rhs: Array | None = ..., format: Literal['corner', 'center'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Intersection over union of every box of ``lhs`` with every box of ``rhs``."""
def _npx_box_nms(data: Array | None = ..., overlap_thresh: float = ..., valid_thresh: float = ..., topk: int = ..., coord_start: int = ..., score_index: int = ..., id_index: int = ..., background_id: int = ..., force_suppress: bool = ..., in_format: Literal['corner', 'center'] = ..., out_format: Literal['corner', 'center'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Drop boxes that overlap better ones (greedy non-maximum suppression)."""
def _npx_roi_align(data: Array | None = ..., rois: Array | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sample_ratio: int | Sequence[int | None] = ..., position_sensitive: bool = ..., aligned: bool = ..., *, sampling_ratio: int | Sequence[int | None] = ..., out: Any = ..., name: str | None = ...) -> Any: """MXNet's own ROIAlign: the mean of bilinear samples, position-sensitive if asked."""
def _ones(shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """An array of ones."""
def _random_exponential(lam: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Exponential numbers."""
def _random_exponential_like(data: Array | None = ..., lam: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Exponential numbers. There are as many as the data has entries."""
def _random_gamma(alpha: float = ..., beta: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Gamma numbers."""
def _random_gamma_like(data: Array | None = ..., alpha: float = ..., beta: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Gamma numbers. There are as many as the data has entries."""
def _random_generalized_negative_binomial(mu: float = ..., alpha: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Poisson numbers whose rate is a gamma number of mean mu and variance alpha * mu**2."""
def _random_generalized_negative_binomial_like(data: Array | None = ..., mu: float = ..., alpha: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Poisson numbers whose rate is a gamma number of mean mu and variance alpha * mu**2. There are as many as the data has entries."""
def _random_negative_binomial(k: int = ..., p: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """How many failures come before k successes of probability p."""
def _random_negative_binomial_like(data: Array | None = ..., k: int = ..., p: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """How many failures come before k successes of probability p. There are as many as the data has entries."""
def _random_normal(loc: float = ..., scale: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Normal numbers."""
def _random_normal_like(data: Array | None = ..., loc: float = ..., scale: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Normal numbers. There are as many as the data has entries."""
def _random_pdf_dirichlet(sample: Array | None = ..., alpha: Array | None = ..., is_log: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The probability density of samples of Dirichlet distributions."""
def _random_pdf_exponential(sample: Array | None = ..., lam: Array | None = ..., is_log: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The probability density of samples of exponential distributions."""
def _random_pdf_gamma(sample: Array | None = ..., alpha: Array | None = ..., beta: Array | None = ..., is_log: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The probability density of samples of gamma distributions."""
def _random_pdf_generalized_negative_binomial(sample: Array | None = ..., mu: Array | None = ..., alpha: Array | None = ..., is_log: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The probability density of samples of negative binomial distributions, given by mean and dispersion."""
def _random_pdf_negative_binomial(sample: Array | None = ..., k: Array | None = ..., p: Array | None = ..., is_log: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The probability density of samples of negative binomial distributions."""
def _random_pdf_normal(sample: Array | None = ..., mu: Array | None = ..., sigma: Array | None = ..., is_log: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The probability density of samples of normal distributions."""
def _random_pdf_poisson(sample: Array | None = ..., lam: Array | None = ..., is_log: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The probability density of samples of Poisson distributions."""
def _random_pdf_uniform(sample: Array | None = ..., low: Array | None = ..., high: Array | None = ..., is_log: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The probability density of samples of uniform distributions."""
def _random_poisson(lam: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Poisson numbers."""
def _random_poisson_like(data: Array | None = ..., lam: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Poisson numbers. There are as many as the data has entries."""
def _random_randint(low: int = ..., high: int = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Whole numbers in [low, high)."""
def _random_uniform(low: float = ..., high: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Numbers spread evenly over [low, high)."""
def _random_uniform_like(data: Array | None = ..., low: float = ..., high: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Numbers spread evenly over [low, high). There are as many as the data has entries."""
def _ravel_multi_index(data: Array | None = ..., shape: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Numbers of entries in an array of a shape, from coordinates."""
def _rnn_param_concat(*data: Array | Sequence[Array], num_args: int = ..., dim: int = ..., out: Any = ..., name: str | None = ...) -> NDArray: """The parameters of recurrent layers one after another, for the operator ``RNN``."""
def _sample_exponential(lam: Array | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Exponential numbers. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_gamma(alpha: Array | None = ..., beta: Array | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Gamma numbers. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_generalized_negative_binomial(mu: Array | None = ..., alpha: Array | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Poisson numbers whose rate is a gamma number of mean mu and variance alpha * mu**2. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_multinomial(data: Array | None = ..., shape: int | Sequence[int] = ..., get_prob: bool = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> Any: """Indices drawn by the probabilities in the last axis, which need not add up to 1."""
def _sample_negative_binomial(k: Array | None = ..., p: Array | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """How many failures come before k successes of probability p. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_normal(mu: Array | None = ..., sigma: Array | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Normal numbers. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_poisson(lam: Array | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Poisson numbers. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_uniform(low: Array | None = ..., high: Array | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Numbers spread evenly over [low, high). The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_unique_zipfian(range_max: int = ..., shape: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """Classes drawn without repetition by the log-uniform distribution, and how many draws that took."""
def _shuffle(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The rows of the data, which are its entries along the first axis, in a random order."""
def _split_v2(data: Array | None = ..., indices: int | Sequence[int] = ..., axis: int = ..., squeeze_axis: bool = ..., sections: int = ..., *, out: Any = ..., name: str | None = ...) -> Any: """Cut along an axis, into equal pieces or at given indices."""
def _unravel_index(data: Array | None = ..., shape: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Coordinates in an array of a shape, one row for each axis, from numbers of its entries."""
def _zeros(shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """An array of zeros."""
def abs(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Absolute value."""
def all_finite(data: Array | None = ..., init_output: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """1 where every number is finite, else 0."""
def amp_cast(data: Array | None = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """float16 and float32 data in another floating-point dtype, as mixed-precision graphs have it; data of other dtypes as it is."""
def amp_multicast(*data: Array | Sequence[Array], num_outputs: int = ..., cast_narrow: bool = ..., out: Any = ..., name: str | None = ...) -> Any: """The float16 and float32 inputs in the wider of their dtypes, or the narrower; the others as they are."""
def arccos(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Inverse cosine."""
def arccosh(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Inverse hyperbolic cosine."""
def arcsin(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Inverse sine."""
def arcsinh(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Inverse hyperbolic sine."""
def arctan(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Inverse tangent."""
def arctanh(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Inverse hyperbolic tangent."""
def argmax(data: Array | None = ..., axis: int | None = ..., keepdims: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Index of the first largest entry along an axis."""
def argmax_channel(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Index of the largest entry along axis 1."""
def argmin(data: Array | None = ..., axis: int | None = ..., keepdims: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Index of the first smallest entry along an axis."""
def argsort(data: Array | None = ..., axis: int | None = ..., is_ascend: bool = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The indices that would put the entries along an axis in order."""
def batch_dot(lhs: Array | None = ..., rhs: Array | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., forward_stype: Literal['csr', 'default', 'row_sparse'] | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The products of the matrices in the last two axes; the axes before them count the matrices."""
def batch_take(a: Array | None = ..., indices: Array | None = ..., axis: int = ..., keepdims: bool = ..., mode: Literal['clip', 'wrap'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """One entry of each row of a matrix. As in MXNet it has no gradient; pick has one."""
def broadcast_add(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, lhs + rhs, broadcasting."""
def broadcast_axes(data: Array | None = ..., axis: int | Sequence[int] = ..., size: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Repeat some axes of length 1."""
def broadcast_div(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, lhs / rhs, broadcasting."""
def broadcast_equal(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs == rhs, else 0, broadcasting."""
def broadcast_greater(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs > rhs, else 0, broadcasting."""
def broadcast_greater_equal(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs >= rhs, else 0, broadcasting."""
def broadcast_hypot(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the hypotenuse of lhs and rhs, broadcasting."""
def broadcast_lesser(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs < rhs, else 0, broadcasting."""
def broadcast_lesser_equal(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs <= rhs, else 0, broadcasting."""
def broadcast_like(lhs: Array | None = ..., rhs: Array | None = ..., lhs_axes: int | Sequence[int] | None = ..., rhs_axes: int | Sequence[int] | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Repeat axes of length 1 of lhs until they are as long as those of rhs."""
def broadcast_logical_and(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where neither lhs nor rhs is 0, else 0, broadcasting."""
def broadcast_logical_or(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 0 where both lhs and rhs are 0, else 1, broadcasting."""
def broadcast_logical_xor(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where just one of lhs and rhs is 0, else 0, broadcasting."""
def broadcast_maximum(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the larger of lhs and rhs, broadcasting."""
def broadcast_minimum(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the smaller of lhs and rhs, broadcasting."""
def broadcast_minus(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, lhs - rhs, broadcasting."""
def broadcast_mod(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, the remainder of lhs / rhs, with the sign of the divisor and 0 for a zero divisor, broadcasting."""
def broadcast_mul(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, lhs * rhs, broadcasting."""
def broadcast_not_equal(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, 1 where lhs != rhs, else 0, broadcasting."""
def broadcast_power(lhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Entry by entry, lhs to the power rhs, broadcasting."""
def broadcast_to(data: Array | None = ..., shape: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Repeat axes of length 1 until a shape is reached."""
def cbrt(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Cube root."""
def ceil(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Smallest whole number not below."""
def choose_element_0index(data: Array | None = ..., index: Array | None = ..., axis: int = ..., keepdims: bool = ..., mode: Literal['clip', 'wrap'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """One entry of each row along an axis, the one that the index tells."""
def clip(data: Array | None = ..., a_min: float = ..., a_max: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Limit each entry to ``[a_min, a_max]``; the gradient is 0 outside."""
def col2im(data: Array | None = ..., output_size: int | Sequence[int] = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Columns, as ``im2col`` gives them, added up in pictures of ``output_size``."""
def cos(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Cosine."""
def cosh(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Hyperbolic cosine."""
def crop(data: Array | None = ..., begin: int | Sequence[int | None] = ..., end: int | Sequence[int | None] = ..., step: int | Sequence[int | None] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Ranges of indices along the leading axes, with steps, counted as Python counts them."""
def degrees(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Radians to degrees."""
def depth_to_space(data: Array | None = ..., block_size: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Channels to square blocks of pixels."""
def diag(data: Array | None = ..., k: int = ..., axis1: int = ..., axis2: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The diagonal of a matrix, or a matrix of a diagonal."""
def dot(lhs: Array | None = ..., rhs: Array | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., forward_stype: Literal['csr', 'default', 'row_sparse'] | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The product of two matrices, or the sum over the last axis of lhs and the first of rhs."""
def erf(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Error function."""
def erfinv(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Inverse error function."""
def exp(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """e to the power of the entry."""
def expand_dims(data: Array | None = ..., axis: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """A new axis of length 1."""
def expm1(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """exp(data) - 1, exact near 0."""
def fill_element_0index(lhs: Array | None = ..., mhs: Array | None = ..., rhs: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """lhs with one entry of each row replaced: that of column rhs by mhs."""
def fix(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Nearest whole number towards zero."""
def flip(data: Array | None = ..., axis: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The entries along some axes in reverse order."""
def floor(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Largest whole number not above."""
def gamma(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Gamma function."""
def gammaln(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Logarithm of the absolute value of the gamma function."""
def gather_nd(data: Array | None = ..., indices: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The slices of data at the places whose coordinates are the columns of indices."""
def hard_sigmoid(data: Array | None = ..., alpha: float = ..., beta: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """A straight line between 0 and 1: ``clip(alpha * data + beta, 0, 1)``."""
def im2col(data: Array | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The windows of a convolution as columns: (batch, channels * window, number of windows)."""
def khatri_rao(*data: Array | Sequence[Array], num_args: int = ..., out: Any = ..., name: str | None = ...) -> NDArray: """Matrices of as many columns multiplied column by column, by the Kronecker product."""
def linalg_det(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The determinant of each matrix. That of a singular matrix has no gradient."""
def linalg_extractdiag(A: Array | None = ..., offset: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """One diagonal of each square matrix."""
def linalg_extracttrian(A: Array | None = ..., offset: int = ..., lower: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """One triangle of each square matrix: a lower one row by row, an upper one column by column."""
def linalg_gelqf(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """``A = L @ Q``: lower triangular L, and Q with orthonormal rows. A has no more rows than columns."""
def linalg_gemm(A: Array | None = ..., B: Array | None = ..., C: Array | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., beta: float = ..., axis: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """``alpha * A @ B + beta * C`` for each matrix."""
def linalg_gemm2(A: Array | None = ..., B: Array | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., axis: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """``alpha * A @ B`` for each matrix."""
def linalg_inverse(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The inverse of each matrix."""
def linalg_makediag(A: Array | None = ..., offset: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Square matrices of zeros but for one diagonal, which is given."""
def linalg_maketrian(A: Array | None = ..., offset: int = ..., lower: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Square matrices of zeros but for one triangle, which is given as ``extracttrian`` gives it."""
def linalg_potrf(A: Array | None = ..., lower: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The Cholesky factor L of positive-definite matrices: ``A = L @ L.T``, or ``A = U.T @ U``."""
def linalg_potri(A: Array | None = ..., lower: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The inverses of the matrices whose Cholesky factors are given."""
def linalg_slogdet(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """The sign of each matrix's determinant, and the logarithm of its size. The sign has no gradient."""
def linalg_sumlogdiag(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The sum of the logarithms of each matrix's diagonal."""
def linalg_syevd(A: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """``A = U.T @ diag(L) @ U`` of symmetric matrices: U has eigenvectors as rows, L ascends."""
def linalg_syrk(A: Array | None = ..., transpose: bool = ..., alpha: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """``alpha * A @ A.T`` for each matrix, or ``alpha * A.T @ A``."""
def linalg_trmm(A: Array | None = ..., B: Array | None = ..., transpose: bool = ..., rightside: bool = ..., lower: bool = ..., alpha: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """``alpha * A @ B`` with triangular A."""
def linalg_trsm(A: Array | None = ..., B: Array | None = ..., transpose: bool = ..., rightside: bool = ..., lower: bool = ..., alpha: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The X of ``A @ X = alpha * B`` with triangular A."""
def log(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Natural logarithm."""
def log10(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Logarithm to base 10."""
def log1p(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """log(1 + data), exact near 0."""
def log2(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Logarithm to base 2."""
def log_softmax(data: Array | None = ..., length: Array | None = ..., axis: int = ..., temperature: float | None = ..., dtype: DTypeLike | None = ..., use_length: bool | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The logarithm of softmax, without overflow."""
def logical_not(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """1 where the entry is 0, else 0."""
def make_loss(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Makes a loss of any array: the data as it is, whose gradient is 1."""
def max(data: Array | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Largest entry over axes."""
def mean(data: Array | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Mean over axes."""
def min(data: Array | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Smallest entry over axes."""
def moments(data: Array | None = ..., axes: int | Sequence[int] | None = ..., keepdims: bool = ..., *, out: Any = ..., name: str | None = ...) -> list[NDArray]: """Mean and variance over axes."""
def multi_all_finite(*data: Array | Sequence[Array], init_output: bool = ..., num_arrays: int = ..., out: Any = ..., name: str | None = ...) -> NDArray: """1 where every number of all arrays is finite, else 0."""
def nanprod(data: Array | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Product over axes, NaN counting as 1."""
def nansum(data: Array | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Sum over axes, NaN counting as 0."""
def negative(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The entry with its sign changed."""
def norm(data: Array | None = ..., ord: int = ..., axis: int | Sequence[int] | None = ..., out_dtype: DTypeLike | None = ..., keepdims: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Sum of absolute values (``ord=1``) or Euclidean norm (``ord=2``) over axes."""
def one_hot(indices: Array | None = ..., depth: int = ..., on_value: float = ..., off_value: float = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """A new last axis, with one number at the index and another elsewhere."""
def ones_like(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Ones of the shape and dtype of the data."""
def prod(data: Array | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Product over axes."""
def radians(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Degrees to radians."""
def rcbrt(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """1 / cbrt(data)."""
def reciprocal(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """1 / data."""
def relu(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """max(data, 0)."""
def repeat(data: Array | None = ..., repeats: int = ..., axis: int | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Each entry several times in a row."""
def reshape_like(lhs: Array | None = ..., rhs: Array | None = ..., lhs_begin: int | None = ..., lhs_end: int | None = ..., rhs_begin: int | None = ..., rhs_end: int | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """lhs under the shape of rhs; or some of its axes under the shape of some axes of rhs."""
def rint(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Nearest whole number, halves down."""
def round(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Nearest whole number, halves away from zero."""
def rsqrt(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """1 / sqrt(data)."""
def scatter_nd(data: Array | None = ..., indices: Array | None = ..., shape: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Zeros, with data at the places whose coordinates are the columns of indices; the last one stays."""
def shape_array(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The shape of the data, as a one-dimensional int64 array."""
def sigmoid(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """1 / (1 + exp(-data))."""
def sign(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """-1, 0 or 1, by the sign; that of NaN is 0."""
def sin(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Sine."""
def sinh(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Hyperbolic sine."""
def size_array(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The number of entries of the data, as an int64 array of shape (1,)."""
def slice_axis(data: Array | None = ..., axis: int = ..., begin: int = ..., end: int | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """A range of indices along one axis."""
def slice_like(data: Array | None = ..., shape_like: Array | None = ..., axes: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The leading part of the data, as long along each axis as another array."""
def smooth_l1(data: Array | None = ..., scalar: float = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The smooth L1 loss of R-CNN: ``|x| - 0.5 / scalar**2`` where ``|x| > 1 / scalar**2``, ``0.5 * (scalar * x)**2`` elsewhere."""
def softmax(data: Array | None = ..., length: Array | None = ..., axis: int = ..., temperature: float | None = ..., dtype: DTypeLike | None = ..., use_length: bool | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """exp(data), scaled so that the entries along an axis sum to 1."""
def softmax_cross_entropy(data: Array | None = ..., label: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The cross-entropy of softmax(data) with class labels, summed over the batch."""
def softmin(data: Array | None = ..., length: Array | None = ..., axis: int = ..., temperature: float | None = ..., dtype: DTypeLike | None = ..., use_length: bool | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """softmax(-data)."""
def softsign(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """data / (1 + |data|)."""
def sort(data: Array | None = ..., axis: int | None = ..., is_ascend: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The entries along an axis in order."""
def space_to_depth(data: Array | None = ..., block_size: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Square blocks of pixels to channels."""
def sqrt(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Square root."""
def square(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """data * data."""
def squeeze(data: Array | None = ..., axis: int | Sequence[int] | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Without the axes of length 1, or without those given."""
def stack(*data: Array | Sequence[Array], axis: int = ..., num_args: int = ..., out: Any = ..., name: str | None = ...) -> NDArray: """The inputs, all of one shape, along a new axis."""
def sum(data: Array | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Sum over axes."""
def take(a: Array | None = ..., indices: Array | None = ..., axis: int = ..., mode: Literal['clip', 'wrap', 'raise'] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The slices along an axis that the indices tell."""
def tan(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Tangent."""
def tanh(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Hyperbolic tangent."""
def tile(data: Array | None = ..., reps: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The whole array several times along each axis."""
def topk(data: Array | None = ..., axis: int | None = ..., k: int = ..., ret_typ: Literal['indices', 'value', 'both', 'mask'] = ..., is_ascend: bool = ..., dtype: DTypeLike = ..., *, out: Any = ..., name: str | None = ...) -> Any: """The largest (or smallest) entries along an axis, in order, or where they are."""
def transpose(data: Array | None = ..., axes: int | Sequence[int] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """The axes in another order."""
def trunc(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Nearest whole number towards zero."""
def where(condition: Array | None = ..., x: Array | None = ..., y: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """x where the condition is not 0, y elsewhere."""
def zeros_like(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Zeros of the shape and dtype of the data."""
BatchNorm_v1 = BatchNorm
Convolution_v1 = Convolution
CuDNNBatchNorm = BatchNorm
SoftmaxOutput = Softmax
_add = _Plus
_div = _Div
_div_scalar = _DivScalar
_equal = _Equal
_equal_scalar = _EqualScalar
_grad_add = _Plus
_greater = _Greater
_greater_equal = _Greater_Equal
_greater_equal_scalar = _GreaterEqualScalar
_greater_scalar = _GreaterScalar
_hypot = _Hypot
_hypot_scalar = _HypotScalar
_lesser = _Lesser
_lesser_equal = _Lesser_Equal
_lesser_equal_scalar = _LesserEqualScalar
_lesser_scalar = _LesserScalar
_logical_and = _Logical_And
_logical_and_scalar = _LogicalAndScalar
_logical_or = _Logical_Or
_logical_or_scalar = _LogicalOrScalar
_logical_xor = _Logical_Xor
_logical_xor_scalar = _LogicalXorScalar
_maximum = _Maximum
_maximum_scalar = _MaximumScalar
_minimum = _Minimum
_minimum_scalar = _MinimumScalar
_minus = _Minus
_minus_scalar = _MinusScalar
_mod = _Mod
_mod_scalar = _ModScalar
_mul = _Mul
_mul_scalar = _MulScalar
_not_equal = _Not_Equal
_not_equal_scalar = _NotEqualScalar
_npx_activation = Activation
_npx_batch_norm = BatchNorm
_npx_convolution = Convolution
_npx_deconvolution = Deconvolution
_npx_deformable_convolution = DeformableConvolution
_npx_dropout = Dropout
_npx_fully_connected = FullyConnected
_npx_layer_norm = LayerNorm
_npx_modulated_deformable_convolution = ModulatedDeformableConvolution
_npx_multibox_detection = MultiBoxDetection
_npx_multibox_prior = MultiBoxPrior
_npx_multibox_target = MultiBoxTarget
_npx_pooling = Pooling
_npx_rnn = RNN
_npx_roi_pooling = ROIPooling
_plus = _Plus
_plus_scalar = _PlusScalar
_power = _Power
_power_scalar = _PowerScalar
_rdiv_scalar = _RDivScalar
_rminus_scalar = _RMinusScalar
_rmod_scalar = _RModScalar
_rpower_scalar = _RPowerScalar
_slice_assign = _crop_assign
_slice_assign_scalar = _crop_assign_scalar
_sub = _Minus
_sum = ElementWiseSum
add_n = ElementWiseSum
broadcast_axis = broadcast_axes
broadcast_plus = broadcast_add
broadcast_sub = broadcast_minus
cast = Cast
concat = Concat
ctc_loss = CTCLoss
cumsum = _np_cumsum
elemwise_add = _Plus
elemwise_div = _Div
elemwise_mul = _Mul
elemwise_sub = _Minus
flatten = Flatten
identity = _copy
max_axis = max
min_axis = min
pad = Pad
pick = choose_element_0index
random_exponential_like = _random_exponential_like
random_gamma_like = _random_gamma_like
random_generalized_negative_binomial = _random_generalized_negative_binomial
random_generalized_negative_binomial_like = _random_generalized_negative_binomial_like
random_negative_binomial_like = _random_negative_binomial_like
random_normal_like = _random_normal_like
random_pdf_dirichlet = _random_pdf_dirichlet
random_pdf_exponential = _random_pdf_exponential
random_pdf_gamma = _random_pdf_gamma
random_pdf_generalized_negative_binomial = _random_pdf_generalized_negative_binomial
random_pdf_negative_binomial = _random_pdf_negative_binomial
random_pdf_normal = _random_pdf_normal
random_pdf_poisson = _random_pdf_poisson
random_pdf_uniform = _random_pdf_uniform
random_poisson_like = _random_poisson_like
random_uniform_like = _random_uniform_like
ravel_multi_index = _ravel_multi_index
reshape = Reshape
reverse = flip
sample_exponential = _sample_exponential
sample_gamma = _sample_gamma
sample_generalized_negative_binomial = _sample_generalized_negative_binomial
sample_multinomial = _sample_multinomial
sample_negative_binomial = _sample_negative_binomial
sample_normal = _sample_normal
sample_poisson = _sample_poisson
sample_uniform = _sample_uniform
shuffle = _shuffle
slice = crop
split = SliceChannel
stop_gradient = BlockGrad
sum_axis = sum
swapaxes = SwapAxis
unravel_index = _unravel_index
