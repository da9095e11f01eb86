"""Written by tools/make_stubs.py from the operators' declarations; do not edit."""
from collections.abc import Sequence
from typing import Any, Literal

from numpy.typing import DTypeLike

from roiops.graph import random as random
from roiops.graph.naming import AttrScope as AttrScope
from roiops.graph.naming import NameManager as NameManager
from roiops.graph.naming import Prefix as Prefix
from roiops.graph.symbol import Group as Group
from roiops.graph.symbol import Symbol as Symbol
from roiops.graph.symbol import Variable as Variable
from roiops.graph.symbol import Variable as var
from roiops.graph.symbol import arange as arange
from roiops.graph.symbol import eye as eye
from roiops.graph.symbol import full as full
from roiops.graph.symbol import histogram as histogram
from roiops.graph.symbol import hypot as hypot
from roiops.graph.symbol import linspace as linspace
from roiops.graph.symbol import load as load
from roiops.graph.symbol import load_json as load_json
from roiops.graph.symbol import ones as ones
from roiops.graph.symbol import pow as pow
from roiops.graph.symbol import pow as power
from roiops.graph.symbol import split_v2 as split_v2
from roiops.graph.symbol import zeros as zeros

__all__ = ['AttrScope', 'Group', 'NameManager', 'Prefix', 'Symbol', 'Variable', 'arange', 'eye', 'full', 'histogram', 'hypot', 'linspace', 'load', 'load_json', 'ones', 'pow', 'power', 'random', 'split_v2', 'var', 'zeros']

def maximum(left: Any, right: Any) -> Any: """``max`` of two symbols, or of a symbol and a number."""
def minimum(left: Any, right: Any) -> Any: """``min`` of two symbols, or of a symbol and a number."""
def Activation(data: Symbol | None = ..., act_type: Literal['relu', 'sigmoid', 'tanh', 'softrelu', 'softsign'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Apply a function to each element."""
def BatchNorm(data: Symbol | None = ..., gamma: Symbol | None = ..., beta: Symbol | None = ..., moving_mean: Symbol | None = ..., moving_var: Symbol | None = ..., eps: float = ..., momentum: float = ..., fix_gamma: bool = ..., use_global_stats: bool = ..., output_mean_var: bool = ..., axis: int = ..., cudnn_off: bool = ..., min_calib_range: float | None = ..., max_calib_range: float | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Normalise each channel by its batch's mean and variance when training, by moving ones otherwise."""
def BilinearSampler(data: Symbol | None = ..., grid: Symbol | None = ..., cudnn_off: bool | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Sample images at given positions by bilinear interpolation; outside there is 0."""
def BlockGrad(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The data as it is; no gradient passes."""
def CTCLoss(data: Symbol | None = ..., label: Symbol | None = ..., data_lengths: Symbol | None = ..., label_lengths: Symbol | None = ..., use_data_lengths: bool = ..., use_label_lengths: bool = ..., blank_label: Literal['first', 'last'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The negative logarithm of the probability of each label sequence, summed over all alignments."""
def Cast(data: Symbol | None = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The data in another dtype."""
def Concat(*data: Symbol | Sequence[Symbol], num_args: int = ..., dim: int = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The inputs one after another along an axis."""
def Convolution(data: Symbol | None = ..., weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., num_filter: int = ..., num_group: int = ..., workspace: int = ..., no_bias: bool = ..., cudnn_tune: Literal['off', 'limited_workspace', 'fastest'] | None = ..., cudnn_off: bool = ..., layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Slide a window over one to three spatial axes and take the weighted sum of what it covers."""
def Correlation(data1: Symbol | None = ..., data2: Symbol | None = ..., kernel_size: int = ..., max_displacement: int = ..., stride1: int = ..., stride2: int = ..., pad_size: int = ..., is_multiply: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """How like each other the patches of two maps are, at each displacement up to ``max_displacement``."""
def Crop(*data: Symbol | Sequence[Symbol], num_args: int = ..., offset: int | Sequence[int] = ..., h_w: int | Sequence[int] = ..., center_crop: bool = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """A part of a picture: of a given size, or of the size of a second input."""
def CropAndResize(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int | None] = ..., mode: Literal['bilinear', 'nearest'] = ..., extrapolation_value: float = ..., layout: Literal['NCHW', 'NHWC'] = ..., *, crop_size: int | Sequence[int | None] = ..., method: Literal['bilinear', 'nearest'] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Crop boxes out of an image and resize them (TensorFlow's crop_and_resize), with a gradient of both."""
def Custom(*data: Symbol | Sequence[Symbol], op_type: str = ..., name: str | None = ..., attr: dict[str, Any] | None = ..., **parameters: Any) -> Symbol: """An operator written in Python by the user; see :mod:`roiops.operator`."""
def Deconvolution(data: Symbol | None = ..., weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., num_filter: int = ..., num_group: int = ..., workspace: int = ..., no_bias: bool = ..., cudnn_tune: Literal['off', 'limited_workspace', 'fastest'] | None = ..., cudnn_off: bool = ..., layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = ..., adj: int | Sequence[int] = ..., target_shape: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The transpose of a convolution: each input pixel adds a weighted window to the output."""
def DeformROIPooling(data: Symbol | None = ..., rois: Symbol | None = ..., offset: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., gamma: float = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """ROIAlign whose bins ``offset`` displaces, all channels alike (Deformable ConvNets, as in mmcv)."""
def DeformableConvolution(data: Symbol | None = ..., offset: Symbol | None = ..., weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., num_filter: int = ..., num_group: int = ..., num_deformable_group: int = ..., workspace: int = ..., no_bias: bool = ..., layout: Literal['NCHW'] | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Convolution whose taps read the map at displaced positions, bilinearly (Deformable ConvNets, 2017)."""
def Dropout(data: Symbol | None = ..., p: float = ..., mode: Literal['training', 'always'] = ..., axes: int | Sequence[int] = ..., cudnn_off: bool | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Set a random part of the elements to 0 and scale the others up; the identity at inference."""
def ElementWiseSum(*data: Symbol | Sequence[Symbol], num_args: int = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The sum of all inputs, which are of one shape."""
def Embedding(data: Symbol | None = ..., weight: Symbol | None = ..., input_dim: int = ..., output_dim: int = ..., dtype: DTypeLike = ..., sparse_grad: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The rows of a table that the data tells; an index outside takes the first or last row."""
def Flatten(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """All axes but the first made one."""
def FullyConnected(data: Symbol | None = ..., weight: Symbol | None = ..., bias: Symbol | None = ..., num_hidden: int = ..., no_bias: bool = ..., flatten: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """A linear map of the features: ``data @ weight.T + bias``."""
def GridGenerator(data: Symbol | None = ..., transform_type: Literal['affine', 'warp'] = ..., target_shape: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Sampling positions for BilinearSampler, from an affine matrix or an optical flow."""
def GroupNorm(data: Symbol | None = ..., gamma: Symbol | None = ..., beta: Symbol | None = ..., num_groups: int = ..., eps: float = ..., output_mean_var: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Normalise groups of channels of each sample, then scale and shift by group, as MXNet 1.9 does."""
def InstanceNorm(data: Symbol | None = ..., gamma: Symbol | None = ..., beta: Symbol | None = ..., eps: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Normalise each channel of each sample over its image, then scale and shift by channel."""
def L2Normalization(data: Symbol | None = ..., eps: float = ..., mode: Literal['instance', 'channel', 'spatial'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Divide by the L2 norm, over each sample, each pixel's channels or each channel's image."""
def LRN(data: Symbol | None = ..., alpha: float = ..., beta: float = ..., knorm: float = ..., nsize: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Local response normalisation across neighbouring channels."""
def LayerNorm(data: Symbol | None = ..., gamma: Symbol | None = ..., beta: Symbol | None = ..., axis: int = ..., eps: float = ..., output_mean_var: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Normalise over one axis, then scale and shift along it."""
def LeakyReLU(data: Symbol | None = ..., gamma: Symbol | None = ..., act_type: Literal['leaky', 'prelu', 'elu', 'selu', 'gelu', 'rrelu'] = ..., slope: float = ..., lower_bound: float = ..., upper_bound: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Rectifiers that let something through below 0."""
def LinearRegressionOutput(data: Symbol | None = ..., label: Symbol | None = ..., grad_scale: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The data as it is; backward is the gradient of half the squared error."""
def LogisticRegressionOutput(data: Symbol | None = ..., label: Symbol | None = ..., grad_scale: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """sigmoid(data); backward is the gradient of the binary cross-entropy."""
def MAERegressionOutput(data: Symbol | None = ..., label: Symbol | None = ..., grad_scale: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The data as it is; backward is the gradient of the absolute error."""
def MakeLoss(data: Symbol | None = ..., grad_scale: float = ..., valid_thresh: float = ..., normalization: Literal['null', 'batch', 'valid'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Makes a loss of any array: the data as it is, whose gradient is ``grad_scale``."""
def ModulatedDeformableConvolution(data: Symbol | None = ..., offset: Symbol | None = ..., mask: Symbol | None = ..., weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., num_filter: int = ..., num_group: int = ..., num_deformable_group: int = ..., workspace: int = ..., no_bias: bool = ..., layout: Literal['NCHW'] | None = ..., im2col_step: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Deformable convolution whose taps are each scaled by a mask as well (Deformable ConvNets v2, 2018)."""
def MultiBoxDetection(cls_prob: Symbol | None = ..., loc_pred: Symbol | None = ..., anchor: Symbol | None = ..., clip: bool = ..., threshold: float = ..., background_id: int = ..., nms_threshold: float = ..., force_suppress: bool = ..., variances: float | Sequence[float] = ..., nms_topk: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Detections of SSD: rows (class, probability, xmin, ymin, xmax, ymax), best first."""
def MultiBoxPrior(data: Symbol | None = ..., sizes: float | Sequence[float] = ..., ratios: float | Sequence[float] = ..., clip: bool = ..., steps: float | Sequence[float] = ..., offsets: float | Sequence[float] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The default boxes of a feature map, as corners in fractions of the image (SSD, 2016)."""
def MultiBoxTarget(anchor: Symbol | None = ..., label: Symbol | None = ..., cls_pred: Symbol | None = ..., overlap_threshold: float = ..., ignore_label: float = ..., negative_mining_ratio: float = ..., negative_mining_thresh: float = ..., minimum_negative_samples: int = ..., variances: float | Sequence[float] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """What SSD trains its boxes and classes towards."""
def MultiProposal(cls_prob: Symbol | None = ..., bbox_pred: Symbol | None = ..., im_info: Symbol | None = ..., rpn_pre_nms_top_n: int = ..., rpn_post_nms_top_n: int = ..., threshold: float = ..., rpn_min_size: int = ..., scales: float | Sequence[float] = ..., ratios: float | Sequence[float] = ..., feature_stride: int = ..., output_score: bool = ..., iou_loss: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Turn the scores and box displacements of an RPN head into regions of interest (Faster R-CNN, 2015)."""
def MultiScaleROIAlign(*data: Symbol | Sequence[Symbol], num_args: int = ..., pooled_size: int | Sequence[int] = ..., spatial_scales: float | Sequence[float] = ..., sampling_ratio: int | Sequence[int | None] = ..., aligned: bool = ..., canonical_size: float = ..., canonical_level: int = ..., dialect: Literal['torchvision', 'detectron2', 'mmdet'] = ..., sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """ROIAlign on a feature pyramid: the size of a box says which map it reads (FPN, 2017)."""
def PSROIAlign(data: Symbol | None = ..., rois: Symbol | None = ..., spatial_scale: float = ..., output_dim: int = ..., pooled_size: int | Sequence[int | None] = ..., group_size: int = ..., sampling_ratio: int | Sequence[int | None] = ..., dialect: Literal['rfcn', 'torchvision', 'chainer'] = ..., mode: Literal['avg', 'max'] = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Mean of bilinear samples in bins that each read their own score maps."""
def PSROIPooling(data: Symbol | None = ..., rois: Symbol | None = ..., spatial_scale: float = ..., output_dim: int = ..., pooled_size: int | Sequence[int | None] = ..., group_size: int = ..., dialect: Literal['mxnet', 'paddle', 'torchvision', 'chainer'] = ..., mode: Literal['avg', 'max'] = ..., as_released: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Mean over integer bins, each of which reads its own score maps (R-FCN, 2016)."""
def Pad(data: Symbol | None = ..., mode: Literal['constant', 'edge', 'reflect'] = ..., pad_width: int | Sequence[int] = ..., constant_value: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entries added around the data, along all axes but the first two."""
def Pooling(data: Symbol | None = ..., kernel: int | Sequence[int] = ..., pool_type: Literal['max', 'avg', 'sum', 'lp'] = ..., global_pool: bool = ..., cudnn_off: bool = ..., pooling_convention: Literal['valid', 'full', 'same'] = ..., stride: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., p_value: int | None = ..., count_include_pad: bool | None = ..., layout: Literal['NCW', 'NCHW', 'NCDHW', 'NWC', 'NHWC', 'NDHWC'] | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Reduce a window that slides over one to three spatial axes to its maximum, mean, sum or p-norm."""
def Pooling_v1(data: Symbol | None = ..., kernel: int | Sequence[int] = ..., pool_type: Literal['max', 'avg', 'sum'] = ..., global_pool: bool = ..., pooling_convention: Literal['valid', 'full'] = ..., stride: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """MXNet's first pooling: zeros in the padding compete in a maximum, and all equal maxima get gradient."""
def PrROIPooling(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Precise mean over each bin, without samples, differentiable in the boxes too (IoU-Net, 2018)."""
def Proposal(cls_prob: Symbol | None = ..., bbox_pred: Symbol | None = ..., im_info: Symbol | None = ..., rpn_pre_nms_top_n: int = ..., rpn_post_nms_top_n: int = ..., threshold: float = ..., rpn_min_size: int = ..., scales: float | Sequence[float] = ..., ratios: float | Sequence[float] = ..., feature_stride: int = ..., output_score: bool = ..., iou_loss: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Turn the scores and box displacements of an RPN head into regions of interest, for one image."""
def RNN(data: Symbol | None = ..., parameters: Symbol | None = ..., state: Symbol | None = ..., state_cell: Symbol | None = ..., state_size: int = ..., num_layers: int = ..., bidirectional: bool = ..., mode: Literal['rnn_relu', 'rnn_tanh', 'lstm', 'gru'] = ..., p: float = ..., state_outputs: bool = ..., projection_size: int | None = ..., lstm_state_clip_min: float | None = ..., lstm_state_clip_max: float | None = ..., lstm_state_clip_nan: bool = ..., use_sequence_length: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Recurrent layers one on another (LSTM, GRU, or a plain one), over a whole sequence."""
def ROIAlign(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., mode: Literal['avg', 'max'] | None = ..., aligned: bool = ..., dialect: Literal['mmcv', 'chainer', 'mxnet', 'onnx'] = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Pool bilinear samples of each region of interest to a fixed grid (Mask R-CNN, 2017)."""
def ROIAlignRotated(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., aligned: bool = ..., clockwise: bool = ..., dialect: Literal['mmcv', 'detectron2'] = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Mean of bilinear samples in the bins of rotated (oriented) boxes, as mmcv and Detectron2 take it."""
def ROIPooling(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., dialect: Literal['mxnet', 'torchvision', 'mmcv', 'chainer'] = ..., mode: Literal['max', 'avg'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Max-pool each region of interest to a fixed grid of integer bins (Fast R-CNN, 2015)."""
def Reshape(data: Symbol | None = ..., shape: int | Sequence[int] = ..., reverse: bool = ..., target_shape: int | Sequence[int] = ..., keep_highest: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The same entries under another shape, which may be given in codes."""
def RiROIAlign(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., num_orientations: int = ..., clockwise: bool = ..., *, num_samples: int | Sequence[int | None] = ..., sample_num: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Rotation-equivariant ROIAlign: orientation channels turn with the rotated box (ReDet, 2021)."""
def SVMOutput(data: Symbol | None = ..., label: Symbol | None = ..., margin: float = ..., regularization_coefficient: float = ..., use_linear: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The data as it is; backward is the gradient of a support vector machine's hinge loss."""
def SequenceLast(data: Symbol | None = ..., sequence_length: Symbol | None = ..., use_sequence_length: bool = ..., axis: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The last entry of each sequence."""
def SequenceMask(data: Symbol | None = ..., sequence_length: Symbol | None = ..., use_sequence_length: bool = ..., axis: int = ..., value: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entries after the end of each sequence set to a number."""
def SequenceReverse(data: Symbol | None = ..., sequence_length: Symbol | None = ..., use_sequence_length: bool = ..., axis: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Each sequence backwards, what is after its end left in place."""
def SliceChannel(data: Symbol | None = ..., num_outputs: int = ..., axis: int = ..., squeeze_axis: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Cut into equal pieces along an axis."""
def Softmax(data: Symbol | None = ..., label: Symbol | None = ..., grad_scale: float = ..., ignore_label: float = ..., multi_output: bool = ..., use_ignore: bool = ..., preserve_shape: bool = ..., normalization: Literal['null', 'batch', 'valid'] = ..., out_grad: bool = ..., smooth_alpha: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Softmax, whose backward is the gradient of the cross-entropy with the labels."""
def SoftmaxActivation(data: Symbol | None = ..., mode: Literal['channel', 'instance'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Softmax along axis 1 (``mode="channel"``) or the last axis (``"instance"``)."""
def SpatialTransformer(data: Symbol | None = ..., loc: Symbol | None = ..., target_shape: int | Sequence[int] = ..., transform_type: Literal['affine'] = ..., sampler_type: Literal['bilinear'] = ..., cudnn_off: bool | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Sample images at the positions that an affine matrix gives."""
def SwapAxis(data: Symbol | None = ..., dim1: int = ..., dim2: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Two axes exchanged."""
def UpSampling(*data: Symbol | Sequence[Symbol], scale: int = ..., num_filter: int = ..., sample_type: Literal['nearest', 'bilinear'] = ..., multi_input_mode: Literal['concat', 'sum'] = ..., num_args: int = ..., workspace: int = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Enlarge images by a whole factor, by repeating pixels or by a bilinear deconvolution."""
def _Div(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, lhs / rhs."""
def _DivScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, data / scalar."""
def _Equal(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs == rhs, else 0."""
def _EqualScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where data == scalar, else 0."""
def _Greater(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs > rhs, else 0."""
def _GreaterEqualScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where data >= scalar, else 0."""
def _GreaterScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where data > scalar, else 0."""
def _Greater_Equal(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs >= rhs, else 0."""
def _Hypot(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the hypotenuse of lhs and rhs."""
def _HypotScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the hypotenuse of data and scalar."""
def _Lesser(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs < rhs, else 0."""
def _LesserEqualScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where data <= scalar, else 0."""
def _LesserScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where data < scalar, else 0."""
def _Lesser_Equal(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs <= rhs, else 0."""
def _LogicalAndScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where neither data nor scalar is 0, else 0."""
def _LogicalOrScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 0 where both data and scalar are 0, else 1."""
def _LogicalXorScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where just one of data and scalar is 0, else 0."""
def _Logical_And(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where neither lhs nor rhs is 0, else 0."""
def _Logical_Or(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 0 where both lhs and rhs are 0, else 1."""
def _Logical_Xor(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where just one of lhs and rhs is 0, else 0."""
def _Maximum(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the larger of lhs and rhs."""
def _MaximumScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the larger of data and scalar."""
def _Minimum(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the smaller of lhs and rhs."""
def _MinimumScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the smaller of data and scalar."""
def _Minus(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, lhs - rhs."""
def _MinusScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, data - scalar."""
def _Mod(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the remainder of lhs / rhs, with the sign of the divisor and 0 for a zero divisor."""
def _ModScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the remainder of data / scalar, with the sign of the divisor and 0 for a zero divisor."""
def _Mul(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, lhs * rhs."""
def _MulScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, data * scalar."""
def _NotEqualScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where data != scalar, else 0."""
def _Not_Equal(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs != rhs, else 0."""
def _Plus(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, lhs + rhs."""
def _PlusScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, data + scalar."""
def _Power(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, lhs to the power rhs."""
def _PowerScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, data to the power scalar."""
def _RDivScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, scalar / data."""
def _RMinusScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, scalar - data."""
def _RModScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the remainder of scalar / data, with the sign of the divisor and 0 for a zero divisor."""
def _RPowerScalar(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, scalar to the power data."""
def _arange(start: float = ..., stop: float | None = ..., step: float = ..., repeat: int = ..., infer_range: bool = ..., ctx: Any = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Numbers at equal distances: start, start + step, ... up to but without stop."""
def _copy(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The data as it is."""
def _crop_assign(lhs: Symbol | None = ..., rhs: Symbol | None = ..., begin: int | Sequence[int | None] = ..., end: int | Sequence[int | None] = ..., step: int | Sequence[int | None] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """lhs with a slice of it replaced by rhs."""
def _crop_assign_scalar(data: Symbol | None = ..., begin: int | Sequence[int | None] = ..., end: int | Sequence[int | None] = ..., step: int | Sequence[int | None] = ..., scalar: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The data with a slice of it set to a number."""
def _eye(N: int = ..., M: int = ..., k: int = ..., ctx: Any = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Ones on a diagonal, zeros elsewhere."""
def _full(shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike = ..., value: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """An array of one number."""
def _histogram(data: Symbol | None = ..., bins: Symbol | None = ..., bin_cnt: int | None = ..., range: float | Sequence[float] | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """How many entries fall into each bin, and the edges of the bins. The last bin holds its upper edge."""
def _identity_with_attr_like_rhs(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """lhs as it is; rhs only tells its shape."""
def _linspace(start: float = ..., stop: float = ..., num: int = ..., endpoint: bool = ..., ctx: Any = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """So many numbers at equal distances between two."""
def _np_cumsum(a: Symbol | None = ..., axis: int | None = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Running sums along an axis."""
def _npx_bipartite_matching(data: Symbol | None = ..., is_ascend: bool = ..., threshold: float = ..., topk: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Match rows and columns of a score matrix one to one, taking the best remaining pair each time."""
def _npx_box_decode(data: Symbol | None = ..., anchors: Symbol | None = ..., std0: float = ..., std1: float = ..., std2: float = ..., std3: float = ..., clip: float = ..., format: Literal['corner', 'center'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Boxes, as corners, from predicted displacements of anchors."""
def _npx_box_encode(samples: Symbol | None = ..., matches: Symbol | None = ..., anchors: Symbol | None = ..., refs: Symbol | None = ..., means: Symbol | None = ..., stds: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Regression targets of anchors to the boxes they match, and a mask of those that have one."""
def _npx_box_iou(lhs: Symbol | None = ..., rhs: Symbol | None = ..., format: Literal['corner', 'center'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Intersection over union of every box of ``lhs`` with every box of ``rhs``."""
def _npx_box_nms(data: Symbol | None = ..., overlap_thresh: float = ..., valid_thresh: float = ..., topk: int = ..., coord_start: int = ..., score_index: int = ..., id_index: int = ..., background_id: int = ..., force_suppress: bool = ..., in_format: Literal['corner', 'center'] = ..., out_format: Literal['corner', 'center'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Drop boxes that overlap better ones (greedy non-maximum suppression)."""
def _npx_roi_align(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sample_ratio: int | Sequence[int | None] = ..., position_sensitive: bool = ..., aligned: bool = ..., *, sampling_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """MXNet's own ROIAlign: the mean of bilinear samples, position-sensitive if asked."""
def _ones(shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """An array of ones."""
def _random_exponential(lam: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Exponential numbers."""
def _random_exponential_like(data: Symbol | None = ..., lam: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Exponential numbers. There are as many as the data has entries."""
def _random_gamma(alpha: float = ..., beta: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Gamma numbers."""
def _random_gamma_like(data: Symbol | None = ..., alpha: float = ..., beta: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Gamma numbers. There are as many as the data has entries."""
def _random_generalized_negative_binomial(mu: float = ..., alpha: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Poisson numbers whose rate is a gamma number of mean mu and variance alpha * mu**2."""
def _random_generalized_negative_binomial_like(data: Symbol | None = ..., mu: float = ..., alpha: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Poisson numbers whose rate is a gamma number of mean mu and variance alpha * mu**2. There are as many as the data has entries."""
def _random_negative_binomial(k: int = ..., p: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """How many failures come before k successes of probability p."""
def _random_negative_binomial_like(data: Symbol | None = ..., k: int = ..., p: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """How many failures come before k successes of probability p. There are as many as the data has entries."""
def _random_normal(loc: float = ..., scale: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Normal numbers."""
def _random_normal_like(data: Symbol | None = ..., loc: float = ..., scale: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Normal numbers. There are as many as the data has entries."""
def _random_pdf_dirichlet(sample: Symbol | None = ..., alpha: Symbol | None = ..., is_log: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The probability density of samples of Dirichlet distributions."""
def _random_pdf_exponential(sample: Symbol | None = ..., lam: Symbol | None = ..., is_log: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The probability density of samples of exponential distributions."""
def _random_pdf_gamma(sample: Symbol | None = ..., alpha: Symbol | None = ..., beta: Symbol | None = ..., is_log: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The probability density of samples of gamma distributions."""
def _random_pdf_generalized_negative_binomial(sample: Symbol | None = ..., mu: Symbol | None = ..., alpha: Symbol | None = ..., is_log: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The probability density of samples of negative binomial distributions, given by mean and dispersion."""
def _random_pdf_negative_binomial(sample: Symbol | None = ..., k: Symbol | None = ..., p: Symbol | None = ..., is_log: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The probability density of samples of negative binomial distributions."""
def _random_pdf_normal(sample: Symbol | None = ..., mu: Symbol | None = ..., sigma: Symbol | None = ..., is_log: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The probability density of samples of normal distributions."""
def _random_pdf_poisson(sample: Symbol | None = ..., lam: Symbol | None = ..., is_log: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The probability density of samples of Poisson distributions."""
def _random_pdf_uniform(sample: Symbol | None = ..., low: Symbol | None = ..., high: Symbol | None = ..., is_log: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The probability density of samples of uniform distributions."""
def _random_poisson(lam: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Poisson numbers."""
def _random_poisson_like(data: Symbol | None = ..., lam: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Poisson numbers. There are as many as the data has entries."""
def _random_randint(low: int = ..., high: int = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Whole numbers in [low, high)."""
def _random_uniform(low: float = ..., high: float = ..., shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Numbers spread evenly over [low, high)."""
def _random_uniform_like(data: Symbol | None = ..., low: float = ..., high: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Numbers spread evenly over [low, high). There are as many as the data has entries."""
def _ravel_multi_index(data: Symbol | None = ..., shape: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Numbers of entries in an array of a shape, from coordinates."""
def _rnn_param_concat(*data: Symbol | Sequence[Symbol], num_args: int = ..., dim: int = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The parameters of recurrent layers one after another, for the operator ``RNN``."""
def _sample_exponential(lam: Symbol | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Exponential numbers. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_gamma(alpha: Symbol | None = ..., beta: Symbol | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Gamma numbers. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_generalized_negative_binomial(mu: Symbol | None = ..., alpha: Symbol | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Poisson numbers whose rate is a gamma number of mean mu and variance alpha * mu**2. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_multinomial(data: Symbol | None = ..., shape: int | Sequence[int] = ..., get_prob: bool = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Indices drawn by the probabilities in the last axis, which need not add up to 1."""
def _sample_negative_binomial(k: Symbol | None = ..., p: Symbol | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """How many failures come before k successes of probability p. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_normal(mu: Symbol | None = ..., sigma: Symbol | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Normal numbers. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_poisson(lam: Symbol | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Poisson numbers. The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_uniform(low: Symbol | None = ..., high: Symbol | None = ..., shape: int | Sequence[int] = ..., dtype: DTypeLike | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Numbers spread evenly over [low, high). The parameters are arrays; each of their entries gets numbers of its own."""
def _sample_unique_zipfian(range_max: int = ..., shape: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Classes drawn without repetition by the log-uniform distribution, and how many draws that took."""
def _shuffle(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The rows of the data, which are its entries along the first axis, in a random order."""
def _split_v2(data: Symbol | None = ..., indices: int | Sequence[int] = ..., axis: int = ..., squeeze_axis: bool = ..., sections: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Cut along an axis, into equal pieces or at given indices."""
def _unravel_index(data: Symbol | None = ..., shape: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Coordinates in an array of a shape, one row for each axis, from numbers of its entries."""
def _zeros(shape: int | Sequence[int] = ..., ctx: Any = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """An array of zeros."""
def abs(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Absolute value."""
def all_finite(data: Symbol | None = ..., init_output: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 where every number is finite, else 0."""
def amp_cast(data: Symbol | None = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """float16 and float32 data in another floating-point dtype, as mixed-precision graphs have it; data of other dtypes as it is."""
def amp_multicast(*data: Symbol | Sequence[Symbol], num_outputs: int = ..., cast_narrow: bool = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The float16 and float32 inputs in the wider of their dtypes, or the narrower; the others as they are."""
def arccos(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Inverse cosine."""
def arccosh(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Inverse hyperbolic cosine."""
def arcsin(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Inverse sine."""
def arcsinh(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Inverse hyperbolic sine."""
def arctan(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Inverse tangent."""
def arctanh(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Inverse hyperbolic tangent."""
def argmax(data: Symbol | None = ..., axis: int | None = ..., keepdims: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Index of the first largest entry along an axis."""
def argmax_channel(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Index of the largest entry along axis 1."""
def argmin(data: Symbol | None = ..., axis: int | None = ..., keepdims: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Index of the first smallest entry along an axis."""
def argsort(data: Symbol | None = ..., axis: int | None = ..., is_ascend: bool = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The indices that would put the entries along an axis in order."""
def batch_dot(lhs: Symbol | None = ..., rhs: Symbol | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., forward_stype: Literal['csr', 'default', 'row_sparse'] | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The products of the matrices in the last two axes; the axes before them count the matrices."""
def batch_take(a: Symbol | None = ..., indices: Symbol | None = ..., axis: int = ..., keepdims: bool = ..., mode: Literal['clip', 'wrap'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """One entry of each row of a matrix. As in MXNet it has no gradient; pick has one."""
def broadcast_add(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, lhs + rhs, broadcasting."""
def broadcast_axes(data: Symbol | None = ..., axis: int | Sequence[int] = ..., size: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Repeat some axes of length 1."""
def broadcast_div(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, lhs / rhs, broadcasting."""
def broadcast_equal(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs == rhs, else 0, broadcasting."""
def broadcast_greater(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs > rhs, else 0, broadcasting."""
def broadcast_greater_equal(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs >= rhs, else 0, broadcasting."""
def broadcast_hypot(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the hypotenuse of lhs and rhs, broadcasting."""
def broadcast_lesser(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs < rhs, else 0, broadcasting."""
def broadcast_lesser_equal(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs <= rhs, else 0, broadcasting."""
def broadcast_like(lhs: Symbol | None = ..., rhs: Symbol | None = ..., lhs_axes: int | Sequence[int] | None = ..., rhs_axes: int | Sequence[int] | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Repeat axes of length 1 of lhs until they are as long as those of rhs."""
def broadcast_logical_and(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where neither lhs nor rhs is 0, else 0, broadcasting."""
def broadcast_logical_or(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 0 where both lhs and rhs are 0, else 1, broadcasting."""
def broadcast_logical_xor(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where just one of lhs and rhs is 0, else 0, broadcasting."""
def broadcast_maximum(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the larger of lhs and rhs, broadcasting."""
def broadcast_minimum(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the smaller of lhs and rhs, broadcasting."""
def broadcast_minus(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, lhs - rhs, broadcasting."""
def broadcast_mod(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, the remainder of lhs / rhs, with the sign of the divisor and 0 for a zero divisor, broadcasting."""
def broadcast_mul(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, lhs * rhs, broadcasting."""
def broadcast_not_equal(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, 1 where lhs != rhs, else 0, broadcasting."""
def broadcast_power(lhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Entry by entry, lhs to the power rhs, broadcasting."""
def broadcast_to(data: Symbol | None = ..., shape: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Repeat axes of length 1 until a shape is reached."""
def cast_storage(data: Symbol | None = ..., stype: Literal['default', 'row_sparse', 'csr'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The data as it is: MXNet's change of storage. Graphs compute with dense arrays."""
def cbrt(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Cube root."""
def ceil(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Smallest whole number not below."""
def choose_element_0index(data: Symbol | None = ..., index: Symbol | None = ..., axis: int = ..., keepdims: bool = ..., mode: Literal['clip', 'wrap'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """One entry of each row along an axis, the one that the index tells."""
def clip(data: Symbol | None = ..., a_min: float = ..., a_max: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Limit each entry to ``[a_min, a_max]``; the gradient is 0 outside."""
def col2im(data: Symbol | None = ..., output_size: int | Sequence[int] = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Columns, as ``im2col`` gives them, added up in pictures of ``output_size``."""
def cos(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Cosine."""
def cosh(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Hyperbolic cosine."""
def crop(data: Symbol | None = ..., begin: int | Sequence[int | None] = ..., end: int | Sequence[int | None] = ..., step: int | Sequence[int | None] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Ranges of indices along the leading axes, with steps, counted as Python counts them."""
def degrees(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Radians to degrees."""
def depth_to_space(data: Symbol | None = ..., block_size: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Channels to square blocks of pixels."""
def diag(data: Symbol | None = ..., k: int = ..., axis1: int = ..., axis2: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The diagonal of a matrix, or a matrix of a diagonal."""
def dot(lhs: Symbol | None = ..., rhs: Symbol | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., forward_stype: Literal['csr', 'default', 'row_sparse'] | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The product of two matrices, or the sum over the last axis of lhs and the first of rhs."""
def erf(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Error function."""
def erfinv(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Inverse error function."""
def exp(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """e to the power of the entry."""
def expand_dims(data: Symbol | None = ..., axis: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """A new axis of length 1."""
def expm1(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """exp(data) - 1, exact near 0."""
def fill_element_0index(lhs: Symbol | None = ..., mhs: Symbol | None = ..., rhs: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """lhs with one entry of each row replaced: that of column rhs by mhs."""
def fix(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Nearest whole number towards zero."""
def flip(data: Symbol | None = ..., axis: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The entries along some axes in reverse order."""
def floor(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Largest whole number not above."""
def gamma(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Gamma function."""
def gammaln(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Logarithm of the absolute value of the gamma function."""
def gather_nd(data: Symbol | None = ..., indices: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The slices of data at the places whose coordinates are the columns of indices."""
def hard_sigmoid(data: Symbol | None = ..., alpha: float = ..., beta: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """A straight line between 0 and 1: ``clip(alpha * data + beta, 0, 1)``."""
def im2col(data: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The windows of a convolution as columns: (batch, channels * window, number of windows)."""
def khatri_rao(*data: Symbol | Sequence[Symbol], num_args: int = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Matrices of as many columns multiplied column by column, by the Kronecker product."""
def linalg_det(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The determinant of each matrix. That of a singular matrix has no gradient."""
def linalg_extractdiag(A: Symbol | None = ..., offset: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """One diagonal of each square matrix."""
def linalg_extracttrian(A: Symbol | None = ..., offset: int = ..., lower: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """One triangle of each square matrix: a lower one row by row, an upper one column by column."""
def linalg_gelqf(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``A = L @ Q``: lower triangular L, and Q with orthonormal rows. A has no more rows than columns."""
def linalg_gemm(A: Symbol | None = ..., B: Symbol | None = ..., C: Symbol | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., beta: float = ..., axis: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``alpha * A @ B + beta * C`` for each matrix."""
def linalg_gemm2(A: Symbol | None = ..., B: Symbol | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., axis: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``alpha * A @ B`` for each matrix."""
def linalg_inverse(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The inverse of each matrix."""
def linalg_makediag(A: Symbol | None = ..., offset: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Square matrices of zeros but for one diagonal, which is given."""
def linalg_maketrian(A: Symbol | None = ..., offset: int = ..., lower: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Square matrices of zeros but for one triangle, which is given as ``extracttrian`` gives it."""
def linalg_potrf(A: Symbol | None = ..., lower: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The Cholesky factor L of positive-definite matrices: ``A = L @ L.T``, or ``A = U.T @ U``."""
def linalg_potri(A: Symbol | None = ..., lower: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The inverses of the matrices whose Cholesky factors are given."""
def linalg_slogdet(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The sign of each matrix's determinant, and the logarithm of its size. The sign has no gradient."""
def linalg_sumlogdiag(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The sum of the logarithms of each matrix's diagonal."""
def linalg_syevd(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``A = U.T @ diag(L) @ U`` of symmetric matrices: U has eigenvectors as rows, L ascends."""
def linalg_syrk(A: Symbol | None = ..., transpose: bool = ..., alpha: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``alpha * A @ A.T`` for each matrix, or ``alpha * A.T @ A``."""
def linalg_trmm(A: Symbol | None = ..., B: Symbol | None = ..., transpose: bool = ..., rightside: bool = ..., lower: bool = ..., alpha: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``alpha * A @ B`` with triangular A."""
def linalg_trsm(A: Symbol | None = ..., B: Symbol | None = ..., transpose: bool = ..., rightside: bool = ..., lower: bool = ..., alpha: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The X of ``A @ X = alpha * B`` with triangular A."""
def log(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Natural logarithm."""
def log10(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Logarithm to base 10."""
def log1p(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """log(1 + data), exact near 0."""
def log2(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Logarithm to base 2."""
def log_softmax(data: Symbol | None = ..., length: Symbol | None = ..., axis: int = ..., temperature: float | None = ..., dtype: DTypeLike | None = ..., use_length: bool | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The logarithm of softmax, without overflow."""
def logical_not(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 where the entry is 0, else 0."""
def make_loss(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Makes a loss of any array: the data as it is, whose gradient is 1."""
def max(data: Symbol | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Largest entry over axes."""
def mean(data: Symbol | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Mean over axes."""
def min(data: Symbol | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Smallest entry over axes."""
def moments(data: Symbol | None = ..., axes: int | Sequence[int] | None = ..., keepdims: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Mean and variance over axes."""
def multi_all_finite(*data: Symbol | Sequence[Symbol], init_output: bool = ..., num_arrays: int = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 where every number of all arrays is finite, else 0."""
def nanprod(data: Symbol | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Product over axes, NaN counting as 1."""
def nansum(data: Symbol | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Sum over axes, NaN counting as 0."""
def negative(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The entry with its sign changed."""
def norm(data: Symbol | None = ..., ord: int = ..., axis: int | Sequence[int] | None = ..., out_dtype: DTypeLike | None = ..., keepdims: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Sum of absolute values (``ord=1``) or Euclidean norm (``ord=2``) over axes."""
def one_hot(indices: Symbol | None = ..., depth: int = ..., on_value: float = ..., off_value: float = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """A new last axis, with one number at the index and another elsewhere."""
def ones_like(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Ones of the shape and dtype of the data."""
def prod(data: Symbol | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Product over axes."""
def radians(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Degrees to radians."""
def rcbrt(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 / cbrt(data)."""
def reciprocal(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 / data."""
def relu(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """max(data, 0)."""
def repeat(data: Symbol | None = ..., repeats: int = ..., axis: int | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Each entry several times in a row."""
def reshape_like(lhs: Symbol | None = ..., rhs: Symbol | None = ..., lhs_begin: int | None = ..., lhs_end: int | None = ..., rhs_begin: int | None = ..., rhs_end: int | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """lhs under the shape of rhs; or some of its axes under the shape of some axes of rhs."""
def rint(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Nearest whole number, halves down."""
def round(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Nearest whole number, halves away from zero."""
def rsqrt(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 / sqrt(data)."""
def scatter_nd(data: Symbol | None = ..., indices: Symbol | None = ..., shape: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Zeros, with data at the places whose coordinates are the columns of indices; the last one stays."""
def shape_array(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The shape of the data, as a one-dimensional int64 array."""
def sigmoid(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 / (1 + exp(-data))."""
def sign(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """-1, 0 or 1, by the sign; that of NaN is 0."""
def sin(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Sine."""
def sinh(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Hyperbolic sine."""
def size_array(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The number of entries of the data, as an int64 array of shape (1,)."""
def slice_axis(data: Symbol | None = ..., axis: int = ..., begin: int = ..., end: int | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """A range of indices along one axis."""
def slice_like(data: Symbol | None = ..., shape_like: Symbol | None = ..., axes: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The leading part of the data, as long along each axis as another array."""
def smooth_l1(data: Symbol | None = ..., scalar: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The smooth L1 loss of R-CNN: ``|x| - 0.5 / scalar**2`` where ``|x| > 1 / scalar**2``, ``0.5 * (scalar * x)**2`` elsewhere."""
def softmax(data: Symbol | None = ..., length: Symbol | None = ..., axis: int = ..., temperature: float | None = ..., dtype: DTypeLike | None = ..., use_length: bool | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """exp(data), scaled so that the entries along an axis sum to 1."""
def softmax_cross_entropy(data: Symbol | None = ..., label: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The cross-entropy of softmax(data) with class labels, summed over the batch."""
def softmin(data: Symbol | None = ..., length: Symbol | None = ..., axis: int = ..., temperature: float | None = ..., dtype: DTypeLike | None = ..., use_length: bool | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """softmax(-data)."""
def softsign(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """data / (1 + |data|)."""
def sort(data: Symbol | None = ..., axis: int | None = ..., is_ascend: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The entries along an axis in order."""
def space_to_depth(data: Symbol | None = ..., block_size: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Square blocks of pixels to channels."""
def sqrt(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Square root."""
def square(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """data * data."""
def squeeze(data: Symbol | None = ..., axis: int | Sequence[int] | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Without the axes of length 1, or without those given."""
def stack(*data: Symbol | Sequence[Symbol], axis: int = ..., num_args: int = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The inputs, all of one shape, along a new axis."""
def sum(data: Symbol | None = ..., axis: int | Sequence[int] | None = ..., keepdims: bool = ..., exclude: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Sum over axes."""
def take(a: Symbol | None = ..., indices: Symbol | None = ..., axis: int = ..., mode: Literal['clip', 'wrap', 'raise'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The slices along an axis that the indices tell."""
def tan(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Tangent."""
def tanh(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Hyperbolic tangent."""
def tile(data: Symbol | None = ..., reps: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The whole array several times along each axis."""
def topk(data: Symbol | None = ..., axis: int | None = ..., k: int = ..., ret_typ: Literal['indices', 'value', 'both', 'mask'] = ..., is_ascend: bool = ..., dtype: DTypeLike = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The largest (or smallest) entries along an axis, in order, or where they are."""
def transpose(data: Symbol | None = ..., axes: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The axes in another order."""
def trunc(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Nearest whole number towards zero."""
def where(condition: Symbol | None = ..., x: Symbol | None = ..., y: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """x where the condition is not 0, y elsewhere."""
def zeros_like(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Zeros of the shape and dtype of the data."""
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
normal = _random_normal
pad = Pad
pick = choose_element_0index
random_exponential = _random_exponential
random_exponential_like = _random_exponential_like
random_gamma = _random_gamma
random_gamma_like = _random_gamma_like
random_generalized_negative_binomial = _random_generalized_negative_binomial
random_generalized_negative_binomial_like = _random_generalized_negative_binomial_like
random_negative_binomial = _random_negative_binomial
random_negative_binomial_like = _random_negative_binomial_like
random_normal = _random_normal
random_normal_like = _random_normal_like
random_pdf_dirichlet = _random_pdf_dirichlet
random_pdf_exponential = _random_pdf_exponential
random_pdf_gamma = _random_pdf_gamma
random_pdf_generalized_negative_binomial = _random_pdf_generalized_negative_binomial
random_pdf_negative_binomial = _random_pdf_negative_binomial
random_pdf_normal = _random_pdf_normal
random_pdf_poisson = _random_pdf_poisson
random_pdf_uniform = _random_pdf_uniform
random_poisson = _random_poisson
random_poisson_like = _random_poisson_like
random_randint = _random_randint
random_uniform = _random_uniform
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
uniform = _random_uniform
unravel_index = _unravel_index
class _Contrib:
    @staticmethod
    def AdaptiveAvgPooling2D(data: Symbol | None = ..., output_size: int | Sequence[int] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Mean over a grid of near-equal windows, whatever the input's size."""
    @staticmethod
    def BilinearResize2D(data: Symbol | None = ..., like: Symbol | None = ..., height: int = ..., width: int = ..., scale_height: float | None = ..., scale_width: float | None = ..., mode: Literal['size', 'odd_scale', 'like', 'to_even_down', 'to_even_up', 'to_odd_down', 'to_odd_up'] = ..., align_corners: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Resize images by bilinear interpolation."""
    @staticmethod
    def CTCLoss(data: Symbol | None = ..., label: Symbol | None = ..., data_lengths: Symbol | None = ..., label_lengths: Symbol | None = ..., use_data_lengths: bool = ..., use_label_lengths: bool = ..., blank_label: Literal['first', 'last'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The negative logarithm of the probability of each label sequence, summed over all alignments."""
    @staticmethod
    def CropAndResize(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int | None] = ..., mode: Literal['bilinear', 'nearest'] = ..., extrapolation_value: float = ..., layout: Literal['NCHW', 'NHWC'] = ..., *, crop_size: int | Sequence[int | None] = ..., method: Literal['bilinear', 'nearest'] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Crop boxes out of an image and resize them (TensorFlow's crop_and_resize), with a gradient of both."""
    @staticmethod
    def DeformROIPooling(data: Symbol | None = ..., rois: Symbol | None = ..., offset: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., gamma: float = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """ROIAlign whose bins ``offset`` displaces, all channels alike (Deformable ConvNets, as in mmcv)."""
    @staticmethod
    def DeformableConvolution(data: Symbol | None = ..., offset: Symbol | None = ..., weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., num_filter: int = ..., num_group: int = ..., num_deformable_group: int = ..., workspace: int = ..., no_bias: bool = ..., layout: Literal['NCHW'] | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Convolution whose taps read the map at displaced positions, bilinearly (Deformable ConvNets, 2017)."""
    @staticmethod
    def DeformablePSROIPooling(data: Symbol | None = ..., rois: Symbol | None = ..., trans: Symbol | None = ..., spatial_scale: float = ..., output_dim: int = ..., group_size: int = ..., pooled_size: int = ..., part_size: int = ..., sample_per_part: int = ..., trans_std: float = ..., no_trans: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Mean of bilinear samples in bins that ``trans`` displaces (Deformable ConvNets, 2017)."""
    @staticmethod
    def ModulatedDeformableConvolution(data: Symbol | None = ..., offset: Symbol | None = ..., mask: Symbol | None = ..., weight: Symbol | None = ..., bias: Symbol | None = ..., kernel: int | Sequence[int] = ..., stride: int | Sequence[int] = ..., dilate: int | Sequence[int] = ..., pad: int | Sequence[int] = ..., num_filter: int = ..., num_group: int = ..., num_deformable_group: int = ..., workspace: int = ..., no_bias: bool = ..., layout: Literal['NCHW'] | None = ..., im2col_step: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Deformable convolution whose taps are each scaled by a mask as well (Deformable ConvNets v2, 2018)."""
    @staticmethod
    def MultiBoxDetection(cls_prob: Symbol | None = ..., loc_pred: Symbol | None = ..., anchor: Symbol | None = ..., clip: bool = ..., threshold: float = ..., background_id: int = ..., nms_threshold: float = ..., force_suppress: bool = ..., variances: float | Sequence[float] = ..., nms_topk: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Detections of SSD: rows (class, probability, xmin, ymin, xmax, ymax), best first."""
    @staticmethod
    def MultiBoxPrior(data: Symbol | None = ..., sizes: float | Sequence[float] = ..., ratios: float | Sequence[float] = ..., clip: bool = ..., steps: float | Sequence[float] = ..., offsets: float | Sequence[float] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The default boxes of a feature map, as corners in fractions of the image (SSD, 2016)."""
    @staticmethod
    def MultiBoxTarget(anchor: Symbol | None = ..., label: Symbol | None = ..., cls_pred: Symbol | None = ..., overlap_threshold: float = ..., ignore_label: float = ..., negative_mining_ratio: float = ..., negative_mining_thresh: float = ..., minimum_negative_samples: int = ..., variances: float | Sequence[float] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """What SSD trains its boxes and classes towards."""
    @staticmethod
    def MultiProposal(cls_prob: Symbol | None = ..., bbox_pred: Symbol | None = ..., im_info: Symbol | None = ..., rpn_pre_nms_top_n: int = ..., rpn_post_nms_top_n: int = ..., threshold: float = ..., rpn_min_size: int = ..., scales: float | Sequence[float] = ..., ratios: float | Sequence[float] = ..., feature_stride: int = ..., output_score: bool = ..., iou_loss: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Turn the scores and box displacements of an RPN head into regions of interest (Faster R-CNN, 2015)."""
    @staticmethod
    def MultiScaleROIAlign(*data: Symbol | Sequence[Symbol], num_args: int = ..., pooled_size: int | Sequence[int] = ..., spatial_scales: float | Sequence[float] = ..., sampling_ratio: int | Sequence[int | None] = ..., aligned: bool = ..., canonical_size: float = ..., canonical_level: int = ..., dialect: Literal['torchvision', 'detectron2', 'mmdet'] = ..., sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """ROIAlign on a feature pyramid: the size of a box says which map it reads (FPN, 2017)."""
    @staticmethod
    def PSROIPooling(data: Symbol | None = ..., rois: Symbol | None = ..., spatial_scale: float = ..., output_dim: int = ..., pooled_size: int | Sequence[int | None] = ..., group_size: int = ..., dialect: Literal['mxnet', 'paddle', 'torchvision', 'chainer'] = ..., mode: Literal['avg', 'max'] = ..., as_released: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Mean over integer bins, each of which reads its own score maps (R-FCN, 2016)."""
    @staticmethod
    def PrROIPooling(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Precise mean over each bin, without samples, differentiable in the boxes too (IoU-Net, 2018)."""
    @staticmethod
    def Proposal(cls_prob: Symbol | None = ..., bbox_pred: Symbol | None = ..., im_info: Symbol | None = ..., rpn_pre_nms_top_n: int = ..., rpn_post_nms_top_n: int = ..., threshold: float = ..., rpn_min_size: int = ..., scales: float | Sequence[float] = ..., ratios: float | Sequence[float] = ..., feature_stride: int = ..., output_score: bool = ..., iou_loss: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Turn the scores and box displacements of an RPN head into regions of interest, for one image."""
    @staticmethod
    def ROIAlign(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sample_ratio: int | Sequence[int | None] = ..., position_sensitive: bool = ..., aligned: bool = ..., *, sampling_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """MXNet's own ROIAlign: the mean of bilinear samples, position-sensitive if asked."""
    @staticmethod
    def ROIAlignRotated(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., aligned: bool = ..., clockwise: bool = ..., dialect: Literal['mmcv', 'detectron2'] = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Mean of bilinear samples in the bins of rotated (oriented) boxes, as mmcv and Detectron2 take it."""
    @staticmethod
    def RROIAlign(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., *, sample_num: int | Sequence[int | None] = ..., sample_ratio: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Mean of bilinear samples in the bins of rotated boxes. Unlike MXNet's, it has a gradient."""
    @staticmethod
    def RiROIAlign(data: Symbol | None = ..., rois: Symbol | None = ..., pooled_size: int | Sequence[int] = ..., spatial_scale: float = ..., sampling_ratio: int | Sequence[int | None] = ..., num_orientations: int = ..., clockwise: bool = ..., *, num_samples: int | Sequence[int | None] = ..., sample_num: int | Sequence[int | None] = ..., name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Rotation-equivariant ROIAlign: orientation channels turn with the rotated box (ReDet, 2021)."""
    @staticmethod
    def SyncBatchNorm(data: Symbol | None = ..., gamma: Symbol | None = ..., beta: Symbol | None = ..., moving_mean: Symbol | None = ..., moving_var: Symbol | None = ..., eps: float = ..., momentum: float = ..., fix_gamma: bool = ..., use_global_stats: bool = ..., output_mean_var: bool = ..., axis: int = ..., cudnn_off: bool = ..., min_calib_range: float | None = ..., max_calib_range: float | None = ..., ndev: int = ..., key: str = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """BatchNorm under the name of its many-device form; here there is one device."""
    @staticmethod
    def allclose(a: Symbol | None = ..., b: Symbol | None = ..., rtol: float = ..., atol: float = ..., equal_nan: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 where every entry of a and b agrees within ``atol + rtol * |b|``, else 0."""
    @staticmethod
    def arange_like(data: Symbol | None = ..., start: float = ..., step: float = ..., repeat: int = ..., ctx: Any = ..., axis: int | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Numbers at equal distances, as many as the data has entries, or as an axis of it is long."""
    @staticmethod
    def bipartite_matching(data: Symbol | None = ..., is_ascend: bool = ..., threshold: float = ..., topk: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Match rows and columns of a score matrix one to one, taking the best remaining pair each time."""
    @staticmethod
    def boolean_mask(data: Symbol | None = ..., index: Symbol | None = ..., axis: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The rows of data whose entry of index is not 0. Not for graphs: its shape depends on numbers."""
    @staticmethod
    def box_decode(data: Symbol | None = ..., anchors: Symbol | None = ..., std0: float = ..., std1: float = ..., std2: float = ..., std3: float = ..., clip: float = ..., format: Literal['corner', 'center'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Boxes, as corners, from predicted displacements of anchors."""
    @staticmethod
    def box_encode(samples: Symbol | None = ..., matches: Symbol | None = ..., anchors: Symbol | None = ..., refs: Symbol | None = ..., means: Symbol | None = ..., stds: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Regression targets of anchors to the boxes they match, and a mask of those that have one."""
    @staticmethod
    def box_iou(lhs: Symbol | None = ..., rhs: Symbol | None = ..., format: Literal['corner', 'center'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Intersection over union of every box of ``lhs`` with every box of ``rhs``."""
    @staticmethod
    def box_nms(data: Symbol | None = ..., overlap_thresh: float = ..., valid_thresh: float = ..., topk: int = ..., coord_start: int = ..., score_index: int = ..., id_index: int = ..., background_id: int = ..., force_suppress: bool = ..., in_format: Literal['corner', 'center'] = ..., out_format: Literal['corner', 'center'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Drop boxes that overlap better ones (greedy non-maximum suppression)."""
    @staticmethod
    def dequantize(data: Symbol | None = ..., min_range: Symbol | None = ..., max_range: Symbol | None = ..., out_type: Literal['float32'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The numbers that int8 or uint8 stand for, with the range that quantizing gave."""
    @staticmethod
    def div_sqrt_dim(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The data divided by the square root of the length of its last axis."""
    @staticmethod
    def gradientmultiplier(data: Symbol | None = ..., scalar: float = ..., is_int: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The data as it is; the gradient is multiplied by ``scalar``."""
    @staticmethod
    def index_array(data: Symbol | None = ..., axes: int | Sequence[int] | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """For each entry its own index: int64, with a new last axis that holds the coordinates."""
    @staticmethod
    def index_copy(old_tensor: Symbol | None = ..., index_vector: Symbol | None = ..., new_tensor: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """old_tensor with the rows at index_vector replaced by those of new_tensor."""
    @staticmethod
    def interleaved_matmul_encdec_qk(queries: Symbol | None = ..., keys_values: Symbol | None = ..., heads: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The scores of attention to another sequence: (batch * heads, length of queries, length of keys)."""
    @staticmethod
    def interleaved_matmul_encdec_valatt(keys_values: Symbol | None = ..., attention: Symbol | None = ..., heads: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The values of another sequence, weighted: (length of queries, batch, heads * depth)."""
    @staticmethod
    def interleaved_matmul_selfatt_qk(queries_keys_values: Symbol | None = ..., heads: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The scores of self-attention: queries times keys over the root of the depth, (batch * heads, L, L)."""
    @staticmethod
    def interleaved_matmul_selfatt_valatt(queries_keys_values: Symbol | None = ..., attention: Symbol | None = ..., heads: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The values of self-attention, weighted: (length, batch, heads * depth)."""
    @staticmethod
    def isfinite(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 where the entry is a finite number, else 0."""
    @staticmethod
    def isinf(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 where the entry is infinite, else 0."""
    @staticmethod
    def isnan(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """1 where the entry is not a number, else 0."""
    @staticmethod
    def mrcnn_mask_target(rois: Symbol | None = ..., gt_masks: Symbol | None = ..., matches: Symbol | None = ..., cls_targets: Symbol | None = ..., num_rois: int = ..., num_classes: int = ..., mask_size: int | Sequence[int] = ..., sample_ratio: int = ..., aligned: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The part of its matching mask that each box covers, for every class, and a mask of its own class."""
    @staticmethod
    def quadratic(data: Symbol | None = ..., a: float = ..., b: float = ..., c: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``a * data**2 + b * data + c``."""
    @staticmethod
    def quantize(data: Symbol | None = ..., min_range: Symbol | None = ..., max_range: Symbol | None = ..., out_type: Literal['int8', 'uint8'] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Numbers in eight bits, and the range that those stand for, as MXNet's library for CPUs has it."""
    @staticmethod
    def round_ste(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Rounding, with a gradient that passes through."""
    @staticmethod
    def sign_ste(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Sign, with a gradient that passes through."""
    box_non_maximum_suppression = box_nms
    ctc_loss = CTCLoss
contrib: _Contrib
class _Image:
    @staticmethod
    def crop(data: Symbol | None = ..., x: int = ..., y: int = ..., width: int = ..., height: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """A rectangle of each picture."""
    @staticmethod
    def flip_left_right(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Each picture with left and right changed."""
    @staticmethod
    def flip_top_bottom(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Each picture with top and bottom changed."""
    @staticmethod
    def normalize(data: Symbol | None = ..., mean: float | Sequence[float] = ..., std: float | Sequence[float] = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``(data - mean) / std``, channel by channel."""
    @staticmethod
    def to_tensor(data: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Pictures with the channels last and numbers up to 255 as float32, channels first, numbers up to 1."""
image: _Image
class _Linalg:
    @staticmethod
    def det(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The determinant of each matrix. That of a singular matrix has no gradient."""
    @staticmethod
    def extractdiag(A: Symbol | None = ..., offset: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """One diagonal of each square matrix."""
    @staticmethod
    def extracttrian(A: Symbol | None = ..., offset: int = ..., lower: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """One triangle of each square matrix: a lower one row by row, an upper one column by column."""
    @staticmethod
    def gelqf(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``A = L @ Q``: lower triangular L, and Q with orthonormal rows. A has no more rows than columns."""
    @staticmethod
    def gemm(A: Symbol | None = ..., B: Symbol | None = ..., C: Symbol | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., beta: float = ..., axis: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``alpha * A @ B + beta * C`` for each matrix."""
    @staticmethod
    def gemm2(A: Symbol | None = ..., B: Symbol | None = ..., transpose_a: bool = ..., transpose_b: bool = ..., alpha: float = ..., axis: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``alpha * A @ B`` for each matrix."""
    @staticmethod
    def inverse(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The inverse of each matrix."""
    @staticmethod
    def makediag(A: Symbol | None = ..., offset: int = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Square matrices of zeros but for one diagonal, which is given."""
    @staticmethod
    def maketrian(A: Symbol | None = ..., offset: int = ..., lower: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """Square matrices of zeros but for one triangle, which is given as ``extracttrian`` gives it."""
    @staticmethod
    def potrf(A: Symbol | None = ..., lower: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The Cholesky factor L of positive-definite matrices: ``A = L @ L.T``, or ``A = U.T @ U``."""
    @staticmethod
    def potri(A: Symbol | None = ..., lower: bool = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The inverses of the matrices whose Cholesky factors are given."""
    @staticmethod
    def slogdet(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The sign of each matrix's determinant, and the logarithm of its size. The sign has no gradient."""
    @staticmethod
    def sumlogdiag(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The sum of the logarithms of each matrix's diagonal."""
    @staticmethod
    def syevd(A: Symbol | None = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``A = U.T @ diag(L) @ U`` of symmetric matrices: U has eigenvectors as rows, L ascends."""
    @staticmethod
    def syrk(A: Symbol | None = ..., transpose: bool = ..., alpha: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``alpha * A @ A.T`` for each matrix, or ``alpha * A.T @ A``."""
    @staticmethod
    def trmm(A: Symbol | None = ..., B: Symbol | None = ..., transpose: bool = ..., rightside: bool = ..., lower: bool = ..., alpha: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """``alpha * A @ B`` with triangular A."""
    @staticmethod
    def trsm(A: Symbol | None = ..., B: Symbol | None = ..., transpose: bool = ..., rightside: bool = ..., lower: bool = ..., alpha: float = ..., *, name: str | None = ..., attr: dict[str, Any] | None = ...) -> Symbol: """The X of ``A @ X = alpha * B`` with triangular A."""
linalg: _Linalg
op: Any
_internal: Any
sparse: Any
