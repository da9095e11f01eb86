"""The network operators in ONNX."""

import math

import numpy as np

from ...kernels.cpu.network import recurrent
from ..lowering import lowers
from .convolution import border
from .resize import pixels

# -- layouts ---------------------------------------------------------------------------------------------


def _channels_second(g, node, x):
    """``x`` with its channels second, whatever the node's layout."""
    return g.Transpose(x, perm=[0, x.ndim - 1, *range(1, x.ndim - 1)]) if node.params.channels_last else x


def _as_laid_out(g, node, y):
    ndim = len(node.shapes[0])
    return g.Transpose(y, perm=[0, *range(2, ndim), 1]) if node.params.channels_last else y


def _spatial(node, shape):
    return shape[1:-1] if node.params.channels_last else shape[2:]


# -- convolution -----------------------------------------------------------------------------------------


def _convolved(g, node, write, data, weight, bias, pads, **more):
    """What ``write``, ONNX's convolution or its transpose, makes of the window."""
    p = node.params
    images = _channels_second(g, node, data), _channels_second(g, node, weight)
    window = {"kernel_shape": p.kernel, "strides": p.strides, "dilations": p.dilations, "pads": pads * 2}
    return _as_laid_out(g, node, write(*images, bias, **window, **more, group=p.num_group))


@lowers("Convolution")
def convolution(g, node, data, weight, bias=None):
    return _convolved(g, node, g.Conv, data, weight, bias, node.params.pads)


@lowers("Deconvolution")
def deconvolution(g, node, data, weight, bias=None):
    p = node.params
    sizes = node.fixed(data, *_spatial(node, range(data.ndim))) if any(p.target_shape) else ()
    pads, adjs = border(p, sizes)
    more = {"output_padding": adjs if any(adjs) else None}
    return _convolved(g, node, g.ConvTranspose, data, weight, bias, pads, **more)


@lowers("FullyConnected")
def fully_connected(g, node, data, weight, bias=None):
    if not node.params.flatten and data.ndim != 2:
        y = g.MatMul(data, g.Transpose(weight, perm=[1, 0]))
        return y if bias is None else y + bias
    flat = data if data.ndim == 2 else g.Flatten(data, axis=1)
    return g.Gemm(flat, weight, bias, transB=1)


# -- pooling ---------------------------------------------------------------------------------------------


@lowers("Pooling", "Pooling_v1")
def pooling(g, node, data):
    x = _channels_second(g, node, data)
    y = _global(g, node, x, data.ndim) if node.params.global_pool else _windows(g, node, data, x)
    return _as_laid_out(g, node, y)


def _windows(g, node, data, x):
    """The windows of ``x``, which is the data with the channels second."""
    p = node.params
    zeros_count = node.prop.op.pad_with_zero  # whether the padding takes part
    kernel, stride, pad = p.kernel, p.strides, p.pads
    sizes, outs = _spatial(node, data.shape), _spatial(node, node.shapes[0])
    past_end = p.pooling_convention != "valid"  # whether windows may begin inside and end beyond the padding
    window = {"kernel_shape": kernel, "strides": stride}
    if past_end and -1 in sizes:
        if p.pooling_convention == "same" or any(
            k < s + b for k, s, b in zip(kernel, stride, pad, strict=True)
        ):
            node.fixed(data)
        window.update(pads=pad * 2, ceil_mode=1)
        ends = None
    elif past_end:
        ends = tuple(
            max((out - 1) * s + k - size - b, 0)
            for out, s, k, size, b in zip(outs, stride, kernel, sizes, pad, strict=True)
        )
        if any(e >= k for e, k in zip(ends, kernel, strict=True)):
            node.cannot("a window lies wholly in the padding")
        window["pads"] = pad + ends
    else:
        ends = pad
        window["pads"] = pad * 2
    if p.pool_type == "max":
        y = g.MaxPool(x, **window)
        if zeros_count and any(window["pads"]):
            if ends is None:
                node.fixed(data)
            y = g.Max(y, _zeros_of_padding(kernel, stride, pad, sizes, outs).astype(x.dtype)[None, None])
        return y
    if p.pool_type == "lp":
        _check_power(node)
        if zeros_count or not any(window["pads"]):
            y = g.LpPool(x, p=p.p_value, **window)
        elif ends is None:
            node.fixed(data)
        else:
            window["pads"] = (0,) * (2 * len(kernel))
            y = g.LpPool(_padded(g, x, pad, ends), p=p.p_value, **window)
        return y
    inside = not zeros_count and p.count_include_pad is False
    if p.pool_type == "avg" and (inside or (ends is None and not zeros_count and not any(pad))):
        return g.AveragePool(x, count_include_pad=0, **window)
    if ends is None:
        node.fixed(data)
    y = g.AveragePool(x, count_include_pad=1, **window)
    area = math.prod(kernel)
    if p.pool_type == "sum":
        y = y * float(area)
    elif not zeros_count and ends != pad:
        factors = _divisors(kernel, stride, pad, sizes, outs)
        if not np.all(factors == 1):
            y = y * factors.astype(x.dtype)[None, None]
    return y


def _padded(g, x, begins, ends):
    return g.Pad(x, g.ints(0, 0, *begins, 0, 0, *ends))


def _zeros_of_padding(kernel, stride, pad, sizes, outs):
    """0 where a window reaches into the padding, minus infinity elsewhere."""
    inside = np.ones((), bool)
    for k, s, b, size, out in zip(kernel, stride, pad, sizes, outs, strict=True):
        starts = np.arange(out) * s - b
        inside = np.logical_and.outer(inside, (starts >= 0) & (np.minimum(starts + k, size + b) <= size))
    return np.where(inside, -np.inf, 0)


def _divisors(kernel, stride, pad, sizes, outs):
    """What means over whole kernels are multiplied by: MXNet's windows end with the padding."""
    factors = np.ones(())
    for k, s, b, size, out in zip(kernel, stride, pad, sizes, outs, strict=True):
        starts = np.arange(out) * s - b
        factors = np.multiply.outer(factors, k / (np.minimum(starts + k, size + b) - starts))
    return factors


def _check_power(node) -> None:
    if node.params.p_value % 2:
        node.cannot(f"ONNX takes entries without their sign, which p_value={node.params.p_value} keeps")


def _global(g, node, x, ndim):
    kind = node.params.pool_type
    if kind == "max":
        return g.GlobalMaxPool(x)
    if kind == "avg":
        return g.GlobalAveragePool(x)
    if kind == "lp":
        _check_power(node)
        return g.GlobalLpPool(x, p=node.params.p_value)
    return g.reduce("Sum", x, range(2, ndim), keepdims=True)


@lowers("_contrib_AdaptiveAvgPooling2D")
def adaptive_average_pooling(g, node, data):
    outs = node.shapes[0][2:]
    if outs == (1, 1):
        return g.GlobalAveragePool(data)
    sizes = node.fixed(data, 2, 3)
    if all(size % out == 0 for size, out in zip(sizes, outs, strict=True)):
        window = [size // out for size, out in zip(sizes, outs, strict=True)]
        return g.AveragePool(data, kernel_shape=window, strides=window)
    rows, columns = (_means(size, out).astype(data.dtype) for size, out in zip(sizes, outs, strict=True))
    return g.MatMul(g.MatMul(g.constant(rows), data), g.constant(columns.T))


def _means(size, out):
    """The matrix that takes the mean over ``out`` near-equal windows of ``size`` pixels."""
    matrix = np.zeros((out, size))
    for i in range(out):
        low, high = i * size // out, -(-(i + 1) * size // out)
        matrix[i, low:high] = 1 / (high - low)
    return matrix


# -- normalisation ---------------------------------------------------------------------------------------


@lowers("BatchNorm", "_contrib_SyncBatchNorm")
def batch_norm(g, node, data, gamma, beta, mean, variance):
    p, axis = node.params, node.params.axis % data.ndim
    if p.fix_gamma:
        ones = np.ones(gamma.shape, gamma.dtype)
        gamma = g.parameter(gamma, ones) if gamma.constant is not None else g.constant(ones)
    first, *others = (i for i in range(data.ndim) if i != axis)
    order = [first, axis, *others]
    x = data if axis == 1 else g.Transpose(data, perm=order)
    y = g.BatchNormalization(x, gamma, beta, mean, variance, epsilon=p.eps)
    y = y if axis == 1 else g.Transpose(y, perm=[order.index(i) for i in range(data.ndim)])
    if not p.output_mean_var:
        return y
    return y, g.Identity(mean), g.Reciprocal(g.Sqrt(variance + p.eps))


def _normalized(g, x, axes, eps):
    """``x`` without its mean and divided by its deviation, the mean, and the deviation."""
    mean = g.reduce("Mean", x, axes, keepdims=True)
    centred = x - mean
    deviation = g.Sqrt(g.reduce("Mean", centred * centred, axes, keepdims=True) + eps)
    return centred / deviation, mean, deviation


@lowers("LayerNorm")
def layer_norm(g, node, data, gamma, beta):
    p, axis = node.params, node.params.axis % data.ndim
    if axis == data.ndim - 1 and not p.output_mean_var:
        return g.LayerNormalization(data, gamma, beta, axis=-1, epsilon=p.eps)
    y, mean, deviation = _normalized(g, data, [axis], p.eps)
    lengths = [-1 if i == axis else 1 for i in range(data.ndim)]
    return y * g.reshape(gamma, *lengths) + g.reshape(beta, *lengths), mean, deviation


@lowers("InstanceNorm")
def instance_norm(g, node, data, gamma, beta):
    return g.InstanceNormalization(data, gamma, beta, epsilon=node.params.eps)


@lowers("GroupNorm")
def group_norm(g, node, data, gamma, beta):
    p = node.params
    if p.output_mean_var:
        node.cannot("output_mean_var has no counterpart")
    groups = g.reshape(data, 0, p.num_groups, -1)
    return node.reshape_like(g, g.InstanceNormalization(groups, gamma, beta, epsilon=p.eps), data)


@lowers("L2Normalization")
def l2_normalization(g, node, data):
    first = {"instance": 1, "channel": 1, "spatial": 2}[node.params.mode]
    axes = [1] if node.params.mode == "channel" else range(first, data.ndim)
    return data / g.Sqrt(g.reduce("Sum", data * data, axes, keepdims=True) + node.params.eps)


@lowers("LRN")
def lrn(g, node, data):
    p = node.params
    return g.LRN(data, alpha=p.alpha, beta=p.beta, bias=p.knorm, size=p.nsize)


# -- activation ------------------------------------------------------------------------------------------

_ACTIVATIONS = {
    "relu": "Relu",
    "sigmoid": "Sigmoid",
    "tanh": "Tanh",
    "softrelu": "Softplus",
    "softsign": "Softsign",
}


@lowers("Activation")
def activation(g, node, data):
    return g.add(_ACTIVATIONS[node.params.act_type], (data,))


@lowers("LeakyReLU")
def leaky_relu(g, node, data, gamma=None):
    p = node.params
    if p.act_type == "prelu":
        slopes = (
            gamma if gamma.shape == (1,) or data.ndim < 3 else g.reshape(gamma, -1, *(1,) * (data.ndim - 2))
        )
        return g.PRelu(data, slopes)
    if p.act_type == "elu":
        return g.Elu(data, alpha=p.slope)
    if p.act_type == "selu":
        return g.Selu(data)
    if p.act_type == "gelu":
        return data * 0.5 * (g.Erf(data / math.sqrt(2)) + 1.0)
    if p.act_type == "leaky":
        return g.LeakyRelu(data, alpha=p.slope)
    mean = (p.lower_bound + p.upper_bound) / 2
    return g.LeakyRelu(data, alpha=mean), g.full(g.Shape(data), mean, data.dtype)


@lowers("Dropout")
def dropout(g, node, data):
    if node.params.mode == "always" and node.params.p > 0:
        node.cannot("mode='always' drops at random in inference too")
    return data


# -- resizing and sampling -------------------------------------------------------------------------------


@lowers("UpSampling")
def up_sampling(g, node, *inputs):
    p = node.params
    if p.sample_type == "bilinear":
        data, weight = inputs
        pad = p.scale // 2
        kernel = 2 * p.scale - p.scale % 2
        (channels,) = node.fixed(data, 1)
        return g.ConvTranspose(
            data, weight, kernel_shape=[kernel] * 2, strides=[p.scale] * 2, pads=[pad] * 4, group=channels
        )
    parts = []
    for x in inputs:
        factors = {
            (after[0][a] // before[a])
            for before, after in zip(x.sizes, node.sizes, strict=True)
            for a in (2, 3)
        }
        if len(factors) > 1:
            node.cannot(f"{x.name} is not enlarged by one whole factor")
        scales = np.array([1, 1, *(next(iter(factors)),) * 2], np.float32)
        nearest = {"coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
        parts.append(g.Resize(x, None, scales, mode="nearest", **nearest))
    if len(parts) == 1:
        return parts[0]
    return g.Sum(*parts) if p.multi_input_mode == "sum" else g.Concat(*parts, axis=1)


@lowers("_contrib_BilinearResize2D", shape_only=("like",))
def bilinear_resize(g, node, data, like=None):
    p, outs = node.params, node.shapes[0][2:]
    lengths = []
    for axis, out in zip((2, 3), outs, strict=True):
        scale = (p.scale_height, p.scale_width)[axis - 2]
        if out != -1:
            lengths.append(out)
        elif like is not None:
            lengths.append(g.dim(like, axis))
        elif p.mode == "size" and scale is not None:
            size = g.cast(g.dim(data, axis), np.float32) * np.float32(scale)
            lengths.append(g.cast(g.Floor(size), np.int64))
        else:
            node.fixed(data)
    return resize_bilinear(g, data, lengths, p.align_corners, 1 in outs)


def resize_bilinear(g, data, lengths, corners, single):
    """``data`` in another height and width; ``single`` where one of them is a single pixel."""
    mode = "align_corners" if corners else "pytorch_half_pixel" if single else "half_pixel"
    sizes = g.shape_of(g.dim(data, 0), g.dim(data, 1), *lengths)
    return g.Resize(data, None, None, sizes, mode="linear", coordinate_transformation_mode=mode)


@lowers("BilinearSampler")
def bilinear_sampler(g, node, data, grid):
    return g.GridSample(data, g.Transpose(grid, perm=[0, 2, 3, 1]), align_corners=1, padding_mode="zeros")


def _affine(g, loc, height, width):
    """x and y of an affine grid, (batch, 2, height * width)."""
    return g.MatMul(g.reshape(loc, -1, 2, 3), g.constant(pixels(height, width, loc.dtype)))


@lowers("GridGenerator")
def grid_generator(g, node, data):
    height, width = node.shapes[0][2:]
    if -1 in (height, width):
        node.fixed(data)
    if node.params.transform_type == "affine":
        return g.reshape(_affine(g, data, height, width), -1, 2, height, width)
    base = np.stack(np.meshgrid(np.arange(width), np.arange(height)))[None].astype(data.dtype)
    size = np.array([max(width - 1, 1) / 2, max(height - 1, 1) / 2], data.dtype).reshape(1, 2, 1, 1)
    return (data + base) / size - 1.0


@lowers("SpatialTransformer")
def spatial_transformer(g, node, data, loc):
    height, width = node.params.target_shape
    return bilinear_sampler(g, node, data, g.reshape(_affine(g, loc, height, width), -1, 2, height, width))


# -- recurrent layers ------------------------------------------------------------------------------------

#: ONNX's operator, its activation, and where its gates are among MXNet's.
_RECURRENT = {
    "rnn_relu": ("RNN", "Relu", [0]),
    "rnn_tanh": ("RNN", "Tanh", [0]),
    "lstm": ("LSTM", None, [0, 3, 1, 2]),
    "gru": ("GRU", None, [1, 0, 2]),
}


@lowers("RNN")
def rnn(g, node, data, parameters, state, cell=None):
    p = node.params
    op, function, gates = _RECURRENT[p.mode]
    if parameters.constant is None:
        node.cannot("its parameters are not constants")
    sizes = node.fixed(data, 2)[0], p.state_size, p.num_layers, p.directions
    weights = recurrent.split(parameters.constant, p.mode, *sizes)

    def ordered(rows):
        """A matrix or a bias gate by gate, in ONNX's order."""
        return rows.reshape(len(gates), p.state_size, -1)[gates].reshape(rows.shape)

    x, states, cells = data, [], []
    for first in range(0, len(weights), p.directions):
        parts = weights[first : first + p.directions]
        w, r = (np.stack([ordered(part[k]) for part in parts]) for k in range(2))
        b = np.stack([np.concatenate([ordered(part[k]) for k in (2, 3)]) for part in parts])
        start = [g.slice(s, 0, first, first + p.directions) for s in (state, cell) if s is not None]
        y, *last = g.add(
            op,
            (x, w, r, b, None, *start),
            3 if op == "LSTM" else 2,
            {
                "hidden_size": p.state_size,
                "direction": "bidirectional" if p.bidirectional else "forward",
                "activations": [function] * p.directions if function else None,
                "linear_before_reset": 1 if op == "GRU" else None,
            },
        )
        x = g.reshape(g.Transpose(y, perm=[0, 2, 1, 3]), 0, 0, p.directions * p.state_size)
        states.append(last[0])
        cells += last[1:]
    results = [x]
    if p.state_outputs:
        for each in (states, cells):
            if each:
                results.append(each[0] if len(each) == 1 else g.Concat(*each, axis=0))
    return results


# -- attention and correlation ---------------------------------------------------------------------------


def _attention_part(g, node, projection, count, index):
    """One part of an interleaved projection, (batch * heads, length, depth), and its depth."""
    (width,) = node.fixed(projection, 2)
    depth = width // (node.params.heads * count)
    split = g.reshape(projection, g.dim(projection, 0), -1, count, depth)
    return g.Transpose(g.column(split, index, axis=2), perm=[1, 0, 2]), depth


@lowers("_contrib_interleaved_matmul_selfatt_qk", "_contrib_interleaved_matmul_encdec_qk")
def attention_scores(g, node, queries, keys=None):
    if keys is None:
        parts, keys = (3, 3), queries
    else:
        parts = 1, 2
    queries, depth = _attention_part(g, node, queries, parts[0], 0)
    keys, _ = _attention_part(g, node, keys, parts[1], parts[1] - 2)
    return g.MatMul(queries / math.sqrt(depth), g.Transpose(keys, perm=[0, 2, 1]))


@lowers("_contrib_interleaved_matmul_selfatt_valatt", "_contrib_interleaved_matmul_encdec_valatt")
def attention_values(g, node, projection, attention):
    count = node.prop.op.parts
    values, depth = _attention_part(g, node, projection, count, count - 1)
    mixed = g.Transpose(g.MatMul(attention, values), perm=[1, 0, 2])
    return g.reshape(mixed, g.dim(attention, 1), -1, node.params.heads * depth)


@lowers("Correlation")
def correlation(g, node, data1, data2):
    p = node.params
    widths = g.ints(0, 0, p.pad_size, p.pad_size, 0, 0, p.pad_size, p.pad_size)
    reach = p.max_displacement

    def displaced(padded, by):
        for axis, step in zip((2, 3), by, strict=True):
            end = step - reach
            padded = g.slice(padded, axis, reach + step, *([end] if end else []))
        return padded

    here, there = (g.Pad(data, widths) for data in (data1, data2))
    here = displaced(here, (0, 0))
    channels = []
    for by in p.displacements:
        other = displaced(there, by)
        pixels = here * other if p.is_multiply else g.Abs(here - other)
        channels.append(g.reduce("Mean", pixels, [1], keepdims=True))
    found = g.Concat(*channels, axis=1)
    return g.AveragePool(found, kernel_shape=(p.kernel_size,) * 2, strides=(p.stride1,) * 2)
