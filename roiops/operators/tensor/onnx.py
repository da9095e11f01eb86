"""The tensor operators in ONNX."""

import math

import numpy as np

from ..lowering import lowers
from .arithmetic import ROWS as ARITHMETIC
from .unary import ROWS as UNARY

END = np.iinfo(np.int64).max

# -- functions of one array ------------------------------------------------------------------------------


def _declare_unary(row):
    write = row.onnx if callable(row.onnx) else lambda g, x: getattr(g, row.onnx)(x)

    @lowers(row.names)
    def lower(g, node, data):
        if row.rounds and data.dtype.kind != "f":
            return data
        return write(g, node.params, data) if row.fields else write(g, data)


for _row in UNARY:
    if _row.onnx:
        _declare_unary(_row)


@lowers("_identity_with_attr_like_rhs", unused=("rhs",))
def identity_like(g, node, lhs):
    return lhs


# -- functions of two arrays, or of an array and a number ------------------------------------------------


def _declare_binary(row):
    names = [each.split()[0] for each in (row.elemwise, row.broadcast, row.scalar, row.reflected) if each]
    elemwise, broadcast, scalar, *reflected = names
    function = row.onnx

    @lowers(elemwise, broadcast)
    def arrays(g, node, lhs, rhs):
        return function(g, lhs, rhs)

    def number(g, node, x):
        return g.constant(np.asarray(node.params.scalar).astype(x.dtype))

    @lowers(scalar)
    def with_scalar(g, node, data):
        x = g.cast(data, node.dtypes[0])
        return function(g, x, number(g, node, x))

    if reflected:

        @lowers(*reflected)
        def with_scalar_first(g, node, data):
            x = g.cast(data, node.dtypes[0])
            return function(g, number(g, node, x), x)


for _row in ARITHMETIC:
    _declare_binary(_row)


# -- arrays from nothing, other dtypes -------------------------------------------------------------------


@lowers("_zeros", "_ones", "_full")
def filled(g, node):
    return g.full(node.lengths(g), node.prop.op(node.params).number, node.dtypes[0])


@lowers("zeros_like", "ones_like", shape_only=("data",))
def filled_like(g, node, data):
    number = node.prop.op.number
    return g.full(g.Shape(data) if -1 in data.shape else data.shape, number, data.dtype)


@lowers("_arange")
def arange(g, node):
    p, dtype = node.params, node.dtypes[0]
    start = 0.0 if p.stop is None and not p.infer_range else p.start
    (count,) = node.lengths(g)
    return _numbers(g, count, start, p.step, p.repeat, dtype)


def _numbers(g, count, start, step, repeat, dtype):
    index = g.range(count)
    if repeat > 1:
        index = index / np.int64(repeat)
    return g.cast(index, dtype) * dtype.type(step) + dtype.type(start)


@lowers("_contrib_arange_like", shape_only=("data",))
def arange_like(g, node, data):
    p = node.params
    if p.axis is None:
        count = math.prod(node.fixed(data))
        return node.reshape(g, _numbers(g, count, p.start, p.step, p.repeat, node.dtypes[0]))
    return _numbers(g, g.dim(data, p.axis), p.start, p.step, p.repeat, node.dtypes[0])


@lowers("_eye", "_linspace")
def fixed_numbers(g, node):
    numbers = node.prop.op.numbers(node.params, np.empty(node.shapes[0]))
    return g.constant(numbers.astype(node.dtypes[0]))


@lowers("shape_array", shape_only=("data",))
def shape_array(g, node, data):
    return g.Shape(data)


@lowers("size_array", shape_only=("data",))
def size_array(g, node, data):
    return g.unsqueeze(g.Size(data), 0)


# -- shapes ----------------------------------------------------------------------------------------------


@lowers("squeeze")
def squeeze(g, node, data):
    axis = node.params.axis
    axes = [a for a, n in enumerate(data.shape) if n == 1] if axis is None else [a % data.ndim for a in axis]
    if len(axes) == data.ndim:
        return g.reshape(data, 1)
    return g.squeeze(data, *axes) if axes else data


@lowers("reshape_like", shape_only=("rhs",))
def reshape_like(g, node, lhs, rhs):
    p = node.params
    if -1 not in node.shapes[0]:
        return g.reshape(lhs, *node.shapes[0])
    mine = node.prop.axes_between("lhs", lhs.shape, p.lhs_begin, p.lhs_end)
    its = node.prop.axes_between("rhs", rhs.shape, p.rhs_begin, p.rhs_end)
    lengths = [
        *(g.dim(lhs, a) for a in range(mine.start)),
        *(g.dim(rhs, a) for a in range(its.start, its.stop)),
        *(g.dim(lhs, a) for a in range(mine.stop, lhs.ndim)),
    ]
    return g.reshape(lhs, *lengths)


# -- joining and cutting ---------------------------------------------------------------------------------


@lowers("Concat", "_rnn_param_concat")
def concat(g, node, *inputs):
    return inputs[0] if len(inputs) == 1 else g.Concat(*inputs, axis=node.params.dim % inputs[0].ndim)


@lowers("stack")
def stack(g, node, *inputs):
    axis = node.params.axis % (inputs[0].ndim + 1)
    return g.Concat(*(g.unsqueeze(x, axis) for x in inputs), axis=axis)


@lowers("slice_axis")
def slice_axis(g, node, data):
    p = node.params
    return g.slice(data, p.axis % data.ndim, p.begin, END if p.end is None else p.end)


@lowers("slice")
def slice_(g, node, data):
    p = node.params
    steps = [s or 1 for s in (p.step or (None,) * len(p.begin))]
    starts = [(0 if s > 0 else END) if b is None else b for b, s in zip(p.begin, steps, strict=True)]
    stops = [(END if s > 0 else -END) if e is None else e for e, s in zip(p.end, steps, strict=True)]
    return g.Slice(data, g.ints(*starts), g.ints(*stops), g.ints(*range(len(starts))), g.ints(*steps))


@lowers("slice_like", shape_only=("shape_like",))
def slice_like(g, node, data, shape_like):
    axes = node.params.axes or range(data.ndim)
    pairs = [(a % data.ndim, a % shape_like.ndim) for a in axes]
    cut = [
        (mine, g.dim(shape_like, its)) for mine, its in pairs if not _same_length(data, mine, shape_like, its)
    ]
    if not cut:
        return data
    axes, stops = zip(*cut, strict=True)
    return g.Slice(data, g.ints(*(0,) * len(axes)), g.shape_of(*stops), g.ints(*axes))


def _same_length(x, axis, other, its):
    return [s[axis] for s in x.sizes] == [s[its] for s in other.sizes]


@lowers("Crop", shape_only=("arg1",))
def crop(g, node, data, like=None):
    p = node.params
    if p.center_crop:
        offset = [(n - s) // 2 for n, s in zip(node.fixed(data, 2, 3), node.shapes[0][2:], strict=True)]
    else:
        offset = p.offset
    if like is None:
        stops = [o + s for o, s in zip(offset, p.h_w, strict=True)]
        return g.Slice(data, g.ints(*offset), g.ints(*stops), g.ints(2, 3))
    if not any(offset) and all(_same_length(data, a, like, a) for a in (2, 3)):
        return data
    stops = [g.dim(like, 2 + axis) + g.length(offset[axis]) for axis in range(2)]
    return g.Slice(data, g.ints(*offset), g.shape_of(*stops), g.ints(2, 3))


def _reversed(g, x, *axes):
    each = [g.ints(*(n,) * len(axes)) for n in (-1, -END)]
    return g.Slice(x, *each, g.ints(*axes), g.ints(*(-1,) * len(axes)))


@lowers("SliceChannel")
def slice_channel(g, node, data):
    p = node.params
    axis = p.axis % data.ndim
    if data.shape[axis] != -1:
        pieces = g.split(data, axis, [data.shape[axis] // p.num_outputs] * p.num_outputs)
    else:
        count = {"num_outputs": p.num_outputs} if g.opset >= 18 else {}
        pieces = g.Split(data, axis=axis, outputs=p.num_outputs, **count)
        pieces = pieces if isinstance(pieces, tuple) else (pieces,)
    return [g.squeeze(x, axis) for x in pieces] if p.squeeze_axis else pieces


@lowers("_split_v2")
def split_v2(g, node, data):
    node.fixed(data, node.params.axis % data.ndim)
    axis, bounds = node.prop.bounds(data.shape)
    first = bounds[0][0]
    x = g.slice(data, axis, first) if first else data
    pieces = g.split(x, axis, [end - begin for begin, end in bounds])
    return [g.squeeze(x, axis) for x in pieces] if node.params.squeeze_axis else pieces


@lowers("_slice_assign", "_slice_assign_scalar")
def slice_assign(g, node, data, value=None):
    """``data`` with a slice of it replaced; done by numbering its entries, so its shape must be known."""
    from .slices import as_key, slice_ranges

    shape = node.fixed(data)
    numbers = np.arange(math.prod(shape)).reshape(shape)[as_key(slice_ranges(node.prop, node.params, shape))]
    if value is None:
        value = g.constant(np.full(numbers.size, node.params.scalar, data.dtype))
    flat = g.ScatterElements(g.reshape(data, -1), g.constant(numbers.ravel()), g.reshape(value, -1), axis=0)
    return g.reshape(flat, *shape)


# -- repeats ---------------------------------------------------------------------------------------------


@lowers("broadcast_to", "broadcast_axis")
def broadcast_to(g, node, data):
    # An axis of length 1 is repeated; a length of 1 leaves an axis as it is.
    return g.Expand(data, g.shape_of(*(1 if n == -1 else n for n in node.shapes[0])))


@lowers("broadcast_like", shape_only=("rhs",))
def broadcast_like(g, node, lhs, rhs):
    p = node.params
    if p.lhs_axes is None:
        pairs = [(a, a) for a in range(rhs.ndim)]
    else:
        pairs = [(a % lhs.ndim, b % rhs.ndim) for a, b in zip(p.lhs_axes, p.rhs_axes, strict=True)]
    lengths = [1] * lhs.ndim
    for mine, its in pairs:
        lengths[mine] = g.dim(rhs, its)
    return g.Expand(lhs, g.shape_of(*lengths))


@lowers("tile")
def tile(g, node, data):
    reps = node.params.reps
    missing = len(reps) - data.ndim
    x = g.unsqueeze(data, *range(missing)) if missing > 0 else data
    reps = (1,) * -missing + tuple(reps)
    return g.Tile(x, g.ints(*reps)) if any(n != 1 for n in reps) else x


@lowers("repeat")
def repeat(g, node, data):
    times = node.params.repeats
    if node.params.axis is None:
        return g.reshape(g.Tile(g.reshape(data, -1, 1), g.ints(1, times)), -1)
    axis = node.params.axis % data.ndim
    reps = [times if a == axis + 1 else 1 for a in range(data.ndim + 1)]
    many = g.Tile(g.unsqueeze(data, axis + 1), g.ints(*reps))
    lengths = [g.dim(data, a) for a in range(data.ndim)]
    lengths[axis] = lengths[axis] * g.length(times)
    return g.reshape(many, *lengths)


@lowers("Pad")
def pad(g, node, data):
    p = node.params
    widths = (*p.pad_width[::2], *p.pad_width[1::2])
    value = np.array(p.constant_value, data.dtype) if p.mode == "constant" and p.constant_value else None
    return g.Pad(data, g.ints(*widths), value, mode=p.mode)


# -- products and sums -----------------------------------------------------------------------------------


def _turned(g, x, turn):
    """``x`` with its last two axes exchanged."""
    if not turn:
        return x
    return g.Transpose(x, perm=[*range(x.ndim - 2), x.ndim - 1, x.ndim - 2])


@lowers("batch_dot")
def batch_dot(g, node, lhs, rhs):
    p = node.params
    return g.MatMul(_turned(g, lhs, p.transpose_a), _turned(g, rhs, p.transpose_b))


@lowers("dot")
def dot(g, node, lhs, rhs):
    p = node.params
    left = _rolled(g, lhs, -1) if p.transpose_a and lhs.ndim > 1 else lhs
    right = _rolled(g, rhs, 1) if p.transpose_b and rhs.ndim > 1 else rhs
    # What is summed over is last in left and first in right.
    inner_first = rhs.ndim > 2 or lhs.ndim > 2
    if not inner_first:
        y = g.MatMul(left, right)
        return g.reshape(y, 1) if lhs.ndim == rhs.ndim == 1 else y
    (inner,) = node.fixed(lhs, 0 if p.transpose_a else lhs.ndim - 1)
    y = g.MatMul(g.reshape(left, -1, inner), g.reshape(right, inner, -1))
    return g.reshape(y, *node.lengths(g, 0, lhs, rhs))


def _rolled(g, x, by):
    """``x`` with its axes turned around by one place: the first becomes the last for -1."""
    axes = list(range(x.ndim))
    return g.Transpose(x, perm=[*axes[1:], 0] if by < 0 else [axes[-1], *axes[:-1]])


def _reduced(g, node, kind, data):
    axes = node.prop.axes(data.ndim)
    y = g.reduce(kind, data, axes, node.params.keepdims) if axes else data
    return g.reshape(y, 1) if not node.params.keepdims and len(axes) == data.ndim else y


@lowers("sum", "mean", "prod", "max", "min", "nansum", "nanprod")
def reduction(g, node, data):
    kind, *instead_of_nan = node.prop.onnx
    if instead_of_nan:
        shape = data.shape
        data = g.Where(g.IsNaN(data), np.array(instead_of_nan[0], data.dtype), data)
        data.shape = shape
    return _reduced(g, node, kind, data)


@lowers("norm")
def norm(g, node, data):
    x = g.cast(data, node.dtypes[0])
    return _reduced(g, node, "L1" if node.params.ord == 1 else "L2", x)


@lowers("moments")
def moments(g, node, data):
    p = node.params
    axes = node.prop.axes(data.ndim)
    mean = g.reduce("Mean", data, axes, keepdims=True)
    centred = data - mean
    variance = g.reduce("Mean", centred * centred, axes, keepdims=True)
    if p.keepdims:
        return mean, variance
    if len(axes) == data.ndim:
        return g.reshape(mean, 1), g.reshape(variance, 1)
    return g.squeeze(mean, *axes), g.squeeze(variance, *axes)


@lowers("_np_cumsum")
def cumsum(g, node, a):
    x, axis = (g.reshape(a, -1), 0) if node.params.axis is None else (a, node.params.axis)
    return g.CumSum(g.cast(x, node.dtypes[0]), np.int64(axis))


# -- order and extremes ----------------------------------------------------------------------------------


def _along(g, data, axis):
    """``(data, axis, its length)``, flattened where the axis is None."""
    if axis is None:
        x = g.reshape(data, -1)
        return x, 0, (math.prod(data.shape) if -1 not in data.shape else g.unsqueeze(g.Size(data), 0))
    axis %= data.ndim
    return data, axis, g.dim(data, axis)


def _top(g, x, axis, count, ascending):
    return g.TopK(x, g.shape_of(count), axis=axis, largest=0 if ascending else 1, sorted=1, outputs=2)


def _sorted(g, node, data):
    """Values and indices, all of them in order."""
    return _top(g, *_along(g, data, node.params.axis), node.params.is_ascend)


@lowers("topk")
def topk(g, node, data):
    p = node.params
    x, axis, length = _along(g, data, p.axis)
    values, indices = _top(g, x, axis, p.k or length, p.is_ascend)
    if p.ret_typ == "indices":
        return g.cast(indices, node.dtypes[0])
    if p.ret_typ != "mask":
        return values, g.cast(indices, node.dtypes[1])
    none, ones = g.full(g.Shape(x), 0, data.dtype), g.full(g.Shape(indices), 1, data.dtype)
    mask = g.ScatterElements(none, indices, ones, axis=axis)
    return mask if p.axis is not None else g.Reshape(mask, g.Shape(data))


def _extreme(g, data, op, axis, keepdims=False):
    x, along, _ = _along(g, data, axis)
    found = g.cast(g.add(op, (x,), 1, {"axis": along, "keepdims": int(keepdims)}), data.dtype)
    if axis is None or (data.ndim == 1 and not keepdims):
        return g.reshape(found, *((1,) * data.ndim if keepdims else (1,)))
    return found


# -- indices ---------------------------------------------------------------------------------------------


def _bounded(g, index, length, mode):
    """Indices within an axis: moved to its ends, or wrapped around."""
    whole, count = g.cast(index, np.int64), g.length(length)
    if mode == "wrap":
        return g.Mod(whole, count)
    if mode == "raise":
        return whole
    return g.Max(g.Min(whole, count - np.int64(1)), np.int64(0))


@lowers("take")
def take(g, node, a, indices):
    axis = node.params.axis % a.ndim
    return g.Gather(a, _bounded(g, indices, g.dim(a, axis), node.params.mode), axis=axis)


@lowers("pick", "batch_take")
def pick(g, node, data, index):
    p = node.params
    axis = p.axis % data.ndim
    whole = _bounded(g, index, g.dim(data, axis), p.mode)
    if index.ndim != data.ndim:
        whole = g.unsqueeze(whole, axis)
    found = g.GatherElements(data, whole, axis=axis)
    if p.keepdims:
        return found
    return g.squeeze(found, axis) if data.ndim > 1 else found


@lowers("one_hot")
def one_hot(g, node, indices):
    p, dtype = node.params, node.dtypes[0]
    hit = g.unsqueeze(g.cast(indices, np.int64), indices.ndim).equals(np.arange(p.depth, dtype=np.int64))
    on, off = (np.asarray(v).astype(dtype) for v in (p.on_value, p.off_value))
    return g.Where(hit, on, off)


@lowers("fill_element_0index")
def fill_element(g, node, lhs, mhs, rhs):
    values = g.unsqueeze(g.cast(mhs, lhs.dtype), 1)
    return g.ScatterElements(lhs, g.unsqueeze(g.cast(rhs, np.int64), 1), values, axis=1)


def _coordinates(g, indices):
    """Indices with the coordinates of a place last."""
    return g.Transpose(g.cast(indices, np.int64), perm=[*range(1, indices.ndim), 0])


@lowers("gather_nd")
def gather_nd(g, node, data, indices):
    found = g.GatherND(data, _coordinates(g, indices))
    return g.reshape(found, 1) if node.shapes[0] == (1,) and indices.ndim == 1 else found


@lowers("where")
def where(g, node, condition, x, y):
    chosen = ~condition.equals(0)
    if condition.ndim == 1 and x.ndim > 1:
        chosen = g.unsqueeze(chosen, *range(1, x.ndim))
    return g.Where(chosen, x, y)


# -- sequences -------------------------------------------------------------------------------------------


def _past_end(g, data, lengths, axis):
    """Where time is past a sequence's end, for (time, batch, 1, ...), or (batch, time, ...) with axis 1."""
    steps = g.unsqueeze(g.range(g.dim(data, axis)), 1 - axis)
    past = steps >= g.unsqueeze(g.cast(lengths, np.int64), axis)
    return g.unsqueeze(past, *range(2, data.ndim)) if data.ndim > 2 else past


@lowers("SequenceMask")
def sequence_mask(g, node, data, sequence_length=None):
    if sequence_length is None:
        return data
    past = _past_end(g, data, sequence_length, node.params.axis)
    return g.Where(past, np.asarray(node.params.value).astype(data.dtype), data)


@lowers("SequenceLast")
def sequence_last(g, node, data, sequence_length=None):
    axis = node.params.axis
    if sequence_length is None:
        return g.Gather(data, np.int64(-1), axis=axis)
    batch_first = data if axis == 1 else g.Transpose(data, perm=[1, 0, *range(2, data.ndim)])
    last = g.cast(sequence_length, np.int64) - np.int64(1)
    return g.GatherND(batch_first, g.unsqueeze(last, 1), batch_dims=1)


@lowers("SequenceReverse")
def sequence_reverse(g, node, data, sequence_length=None):
    if sequence_length is None:
        return _reversed(g, data, 0)
    return g.ReverseSequence(data, g.cast(sequence_length, np.int64), batch_axis=1, time_axis=0)


# -- linear algebra and pictures -------------------------------------------------------------------------


def _matrices(g, x, axis, turn):
    """``x`` with the axis of its rows moved before the last one, or after it."""
    order = [i for i in range(x.ndim - 1) if i != axis % x.ndim]
    order += [x.ndim - 1, axis % x.ndim] if turn else [axis % x.ndim, x.ndim - 1]
    return x if order == [*range(x.ndim)] else g.Transpose(x, perm=order)


@lowers("_linalg_gemm", "_linalg_gemm2")
def linalg_gemm(g, node, a, b, c=None):
    p = node.params
    y = g.MatMul(_matrices(g, a, p.axis, p.transpose_a), _matrices(g, b, p.axis, p.transpose_b))
    last = a.ndim - 2
    if p.axis % a.ndim != last:
        order = [*range(last)]
        order.insert(p.axis % a.ndim, last)
        y = g.Transpose(y, perm=[*order, last + 1])
    y = y if p.alpha == 1 else y * p.alpha
    return y if c is None else y + (c if p.beta == 1 else c * p.beta)


@lowers("_linalg_syrk")
def linalg_syrk(g, node, a):
    p = node.params
    y = g.MatMul(_turned(g, a, p.transpose), _turned(g, a, not p.transpose))
    return y if p.alpha == 1 else y * p.alpha


@lowers("_linalg_det")
def linalg_det(g, node, a):
    y = g.Det(a)
    return g.reshape(y, 1) if a.ndim == 2 else y


@lowers("_image_to_tensor")
def image_to_tensor(g, node, data):
    front = [*range(data.ndim - 3)]
    y = g.Transpose(data, perm=[*front, data.ndim - 1, data.ndim - 3, data.ndim - 2])
    return g.cast(y, np.float32) / 255


@lowers("_image_normalize")
def image_normalize(g, node, data):
    mean, std = (np.array(n, data.dtype)[:, None, None] for n in (node.params.mean, node.params.std))
    return (data - mean) / std


@lowers("_image_crop")
def image_crop(g, node, data):
    p = node.params
    y = g.slice(data, data.ndim - 3, p.y, p.y + p.height)
    return g.slice(y, data.ndim - 2, p.x, p.x + p.width)


# -- operators that are one expression -------------------------------------------------------------------

for _names, _expression in {
    "_copy BlockGrad _contrib_gradientmultiplier cast_storage": lambda g, node, data: data,
    "_contrib_div_sqrt_dim": lambda g, node, data: data / math.sqrt(node.fixed(data, data.ndim - 1)[0]),
    "add_n": lambda g, node, *inputs: inputs[0] if len(inputs) == 1 else g.Sum(*inputs),
    "Cast amp_cast": lambda g, node, data: g.cast(data, node.dtypes[0]),
    "amp_multicast": lambda g, node, *inputs: list(map(g.cast, inputs, node.dtypes)),
    "Reshape": lambda g, node, data: node.reshape(g, data),
    "Flatten": lambda g, node, data: g.Flatten(data, axis=1) if data.shape else g.reshape(data, 1, 1),
    "expand_dims": lambda g, node, data: g.unsqueeze(data, node.params.axis % (data.ndim + 1)),
    "transpose SwapAxis": lambda g, node, data: g.Transpose(data, perm=node.prop.axes(data.ndim)),
    "depth_to_space": lambda g, node, data: g.DepthToSpace(
        data, blocksize=node.params.block_size, mode="DCR"
    ),
    "space_to_depth": lambda g, node, data: g.SpaceToDepth(data, blocksize=node.params.block_size),
    "reverse": lambda g, node, data: _reversed(g, data, *sorted({a % data.ndim for a in node.params.axis})),
    "_image_flip_left_right _image_flip_top_bottom": (
        lambda g, node, data: _reversed(g, data, data.ndim + node.prop.axis)
    ),
    "sort": _sorted,
    "argsort": lambda g, node, data: g.cast(_sorted(g, node, data)[1], node.dtypes[0]),
    "argmax": lambda g, node, data: _extreme(g, data, "ArgMax", node.params.axis, node.params.keepdims),
    "argmin": lambda g, node, data: _extreme(g, data, "ArgMin", node.params.axis, node.params.keepdims),
    "argmax_channel": lambda g, node, data: _extreme(g, data, "ArgMax", min(1, data.ndim - 1)),
    "Embedding": lambda g, node, data, weight: g.Gather(
        weight, _bounded(g, data, node.params.input_dim, "clip"), axis=0
    ),
    "scatter_nd": lambda g, node, data, indices: g.ScatterND(
        g.full(node.params.shape, 0, data.dtype), _coordinates(g, indices), data
    ),
    "_contrib_index_copy": lambda g, node, old, index, new: g.ScatterND(
        old, g.unsqueeze(g.cast(index, np.int64), 1), new
    ),
}.items():
    lowers(*_names.split())(_expression)
