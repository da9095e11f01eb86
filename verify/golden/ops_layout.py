"""Calls of operators that move, cut, join, pick and order elements."""

import numpy as np

from ops_harness import call, golden


@golden
def reshape(draw):
    codes = (
        (0, -1), (-2,), (0, -3, 0), (-4, 1, 2, -2), (0, 0, -4, -1, 2, 0), (-3, -3), (-1, 5), (6, 20),
        (0, 0, -1), (-1,), (0, -2), (2, 3, 2, 2, 5),
    )  # fmt: skip
    for shape in codes:
        yield call("Reshape", draw.normal(2, 3, 4, 5), shape=shape)
    for shape in ((-1, 0), (0, 0, -1), (-3, 0)):
        yield call("reshape", draw.normal(2, 3, 4), shape=shape, reverse=True)
    yield call("Reshape", draw.normal(2, 3, 4), target_shape=(0, 12))
    yield call("Reshape", draw.normal(2, 3, 4), target_shape=(4, 6))


@golden
def flatten(draw):
    yield call("Flatten", draw.normal(2, 3, 4))
    yield call("flatten", draw.normal(3))
    yield call("Flatten", draw.normal(2, 3))


@golden
def transpose(draw):
    yield call("transpose", draw.normal(2, 3, 4))
    yield call("transpose", draw.normal(2, 3, 4), axes=(1, 0, 2))
    yield call("transpose", draw.normal(2, 3, 4, 2), axes=(0, 2, 3, 1))
    yield call("transpose", draw.normal(2, 3).astype(np.float64))


@golden
def swapaxis(draw):
    yield call("SwapAxis", draw.normal(2, 3, 4), dim1=0, dim2=2)
    yield call("swapaxes", draw.normal(2, 3), dim1=0, dim2=1)
    yield call("SwapAxis", draw.normal(2, 3, 2, 2), dim1=1, dim2=3)


@golden
def expand_dims(draw):
    for axis in (0, 1, -1, 2):
        yield call("expand_dims", draw.normal(2, 3), axis=axis)


@golden
def squeeze(draw):
    yield call("squeeze", draw.normal(1, 3, 1, 2))
    yield call("squeeze", draw.normal(1, 3, 1, 2), axis=0)
    yield call("squeeze", draw.normal(1, 3, 1, 2), axis=(0, -2))


@golden
def concat(draw):
    for dim, op in ((1, "Concat"), (0, "concat"), (2, "Concat"), (-1, "concat")):
        shapes = [[2, 3, 4], [2, 3, 4], [2, 3, 4]]
        for index, shape in enumerate(shapes):
            shape[dim] += index
        yield call(op, [draw.normal(*shape) for shape in shapes], dim=dim)
    yield call("Concat", [draw.normal(2, 3)], dim=1)
    yield call("Concat", [draw.normal(2), draw.normal(3)], dim=0)


@golden
def stack(draw):
    for axis in (0, 1, -1):
        yield call("stack", [draw.normal(2, 3) for _ in range(3)], axis=axis)


@golden
def slice_channel(draw):
    yield call("SliceChannel", draw.normal(2, 6, 3), num_outputs=3)
    yield call("SliceChannel", draw.normal(2, 6, 3), num_outputs=2, axis=1)
    yield call("split", draw.normal(4, 2), num_outputs=2, axis=0)
    yield call("split", draw.normal(2, 3), num_outputs=3, axis=1, squeeze_axis=True)
    yield call("split", draw.normal(2, 3), num_outputs=1, axis=1)
    yield call("split", draw.normal(2, 3, 4), num_outputs=2, axis=-1)
    yield call("_split_v2", draw.normal(2, 7), indices=(0, 2, 5), axis=1)
    yield call("_split_v2", draw.normal(2, 6), indices=(), sections=3, axis=1)
    yield call("_split_v2", draw.normal(2, 3), indices=(), sections=3, axis=1, squeeze_axis=True)


@golden
def slice_axis(draw):
    x = draw.normal(3, 5, 4)
    for axis, begin, end in ((0, 1, 3), (1, 0, None), (1, -3, -1), (-1, 1, None), (2, -2, None)):
        yield call("slice_axis", x, axis=axis, begin=begin, end=end)


@golden
def slice_(draw):
    x = draw.normal(4, 5, 3)
    yield call("slice", x, begin=(1,), end=(3,))
    yield call("slice", x, begin=(0, 1), end=(2, 4))
    yield call("slice", x, begin=(None, 1, -2), end=(None, None, None))
    yield call("slice", x, begin=(-3, 0), end=(-1, 5))
    yield call("slice", x, begin=(0, 0), end=(4, 5), step=(2, 3))
    yield call("slice", x, begin=(3, None), end=(None, None), step=(-1, -2))
    yield call("crop", x, begin=(0, 2), end=(1, 4))
    inputs = {"lhs": draw.normal(3, 4), "rhs": draw.normal(2, 2)}
    yield call("_slice_assign", inputs, begin=(0, 1), end=(2, 3), backward=False)
    inputs = draw.normal(3, 4)
    yield call("_slice_assign_scalar", inputs, begin=(0, 1), end=(2, 3), scalar=2.5, backward=False)


@golden
def slice_like(draw):
    inputs = {"data": draw.normal(4, 5, 3), "shape_like": draw.normal(2, 3, 2)}
    yield call("slice_like", inputs)
    yield call("slice_like", inputs, axes=(0, 1))
    yield call("slice_like", inputs, axes=(-1,))


@golden
def reverse(draw):
    yield call("reverse", draw.normal(3, 4), axis=0)
    yield call("flip", draw.normal(3, 4, 2), axis=(0, 2))


@golden
def tile(draw):
    for reps in ((2,), (2, 3), (1, 2, 2), (2, 1, 1, 2)):
        yield call("tile", draw.normal(2, 3), reps=reps)
    yield call("tile", draw.normal(2, 2, 2), reps=(2,))


@golden
def repeat(draw):
    yield call("repeat", draw.normal(2, 3), repeats=2)
    yield call("repeat", draw.normal(2, 3), repeats=3, axis=1)
    yield call("repeat", draw.normal(2, 3, 2), repeats=2, axis=-2)


@golden
def pad(draw):
    x = draw.normal(2, 3, 4, 5)
    width = (0, 0, 0, 0, 1, 2, 3, 1)
    for mode in ("constant", "edge", "reflect"):
        yield call("Pad", x, mode=mode, pad_width=width)
    yield call("pad", x, mode="constant", pad_width=width, constant_value=1.5)
    volume = draw.normal(1, 2, 3, 3, 3)
    for mode in ("constant", "edge", "reflect"):
        yield call("Pad", volume, mode=mode, pad_width=(0, 0, 0, 0, 1, 1, 0, 2, 2, 1))


@golden
def crop_layer(draw):
    x = draw.normal(2, 2, 6, 7)
    yield call("Crop", [x], num_args=1, h_w=(3, 4))
    yield call("Crop", [x], num_args=1, h_w=(3, 4), offset=(1, 2))
    yield call("Crop", [x], num_args=1, h_w=(3, 4), center_crop=True)
    yield call("Crop", [x, draw.normal(2, 5, 4, 3)], num_args=2)
    yield call("Crop", [x, draw.normal(2, 5, 4, 3)], num_args=2, offset=(2, 1))
    yield call("Crop", [x, draw.normal(2, 5, 4, 4)], num_args=2, center_crop=True)


@golden
def space(draw):
    yield call("space_to_depth", draw.normal(1, 2, 4, 6), block_size=2)
    yield call("depth_to_space", draw.normal(1, 8, 2, 3), block_size=2)


@golden
def diag(draw):
    yield call("diag", draw.normal(3, 4))
    yield call("diag", draw.normal(3, 4), k=1)
    yield call("diag", draw.normal(3))


@golden
def take(draw):
    a = draw.normal(4, 3, 2)
    inside = {"a": a, "indices": draw.integers(3, 2, 2)}
    yield call("take", inside, hold=("indices",))
    for axis in (0, 1, -1):
        inputs = {"a": a, "indices": np.array([[-3, 0, 1], [5, 2, -1]], np.float32)}
        for mode in ("clip", "wrap"):
            yield call("take", inputs, axis=axis, mode=mode, hold=("indices",))
    inputs = {"a": a, "indices": np.array([0, 2, 2], np.int32)}
    yield call("take", inputs, axis=0, hold=("indices",), label="int32 indices, one twice")


@golden
def embedding(draw):
    inputs = {"data": draw.integers(5, 2, 3), "weight": draw.normal(5, 4)}
    yield call("Embedding", inputs, input_dim=5, output_dim=4, hold=("data",))
    inputs = {"data": np.array([-2, 0, 1.6, 4, 9], np.float32), "weight": draw.normal(5, 2)}
    label = "indices out of range, and a fraction"
    yield call("Embedding", inputs, input_dim=5, output_dim=2, hold=("data",), label=label)


@golden
def pick(draw):
    x = draw.normal(3, 4, 2)
    yield call("pick", {"data": x, "index": draw.integers(2, 3, 4)}, hold=("index",))
    yield call("pick", {"data": x, "index": draw.integers(4, 3, 2)}, axis=1, hold=("index",))
    yield call(
        "pick", {"data": x, "index": draw.integers(4, 3, 1, 2)}, axis=1, keepdims=True, hold=("index",)
    )
    index = np.array([[-3, 7], [0, 5], [2, -1]], np.float32)
    for mode in ("clip", "wrap"):
        yield call("pick", {"data": x, "index": index}, axis=1, mode=mode, hold=("index",))
    yield call("pick", {"data": draw.normal(3, 4), "index": draw.integers(4, 3)}, axis=1, hold=("index",))
    old = {"data": draw.normal(3, 4), "index": draw.integers(4, 3)}
    yield call("choose_element_0index", old, backward=False)
    yield call(
        "batch_take",
        {"a": draw.normal(3, 4), "indices": draw.integers(4, 3).astype(np.int32)},
        backward=False,
    )


@golden
def boolean_mask(draw):
    chosen = np.array([0, 1, 0, 2, -1, np.nan], np.float32)
    for name, data in (
        ("rows", draw.normal(6, 3)),
        ("numbers", draw.normal(6)),
        ("4d", draw.normal(6, 2, 1, 3)),
    ):
        yield call("_contrib_boolean_mask", {"data": data, "index": chosen}, hold=("index",), label=name)
    index = np.array([1, 0, 1], np.int32)
    data = draw.normal(3, 2).astype(np.float64)
    yield call(
        "_contrib_boolean_mask", {"data": data, "index": index}, hold=("index",), label="whole numbers"
    )


@golden
def one_hot(draw):
    some = {"indices": draw.integers(4, 2, 3)}
    yield call("one_hot", some, depth=4, backward=False)
    yield call("one_hot", some, depth=5, on_value=2.5, off_value=-1, backward=False)
    yield call("one_hot", some, depth=3, dtype="int32", backward=False)
    outside = {"indices": np.array([-1, 0, 3, 7, 1.5], np.float32)}
    yield call("one_hot", outside, depth=4, backward=False, label="indices out of range, and a fraction")


@golden
def gather_nd(draw):
    x = draw.normal(3, 4, 2)
    yield call("gather_nd", {"data": x, "indices": draw.integers(2, 3, 5)}, hold=("indices",))
    yield call("gather_nd", {"data": x, "indices": draw.integers(3, 2, 4)}, hold=("indices",))
    yield call("gather_nd", {"data": x, "indices": draw.integers(3, 1, 2, 2)}, hold=("indices",))
    indices = np.array([[1, 1, 0], [2, 2, 3]], np.float32)
    yield call("gather_nd", {"data": x, "indices": indices}, hold=("indices",), label="one twice")


@golden
def scatter_nd(draw):
    indices = np.array([[0, 2, 1], [1, 0, 3]], np.float32)
    yield call("scatter_nd", {"data": draw.normal(3), "indices": indices}, shape=(3, 4), hold=("indices",))
    yield call(
        "scatter_nd", {"data": draw.normal(3, 2), "indices": indices}, shape=(3, 4, 2), hold=("indices",)
    )
    yield call(
        "scatter_nd", {"data": draw.normal(2, 4), "indices": indices[:1, 1:]}, shape=(4, 4), hold=("indices",)
    )


@golden
def index_copy(draw):
    inputs = {"old_tensor": draw.normal(4, 2), "index_vector": np.array([2, 0], np.float32)}
    inputs["new_tensor"] = draw.normal(2, 2)
    yield call("_contrib_index_copy", inputs, hold=("index_vector",))
    yield call("_contrib_index_array", draw.normal(2, 3), backward=False)


@golden
def topk(draw):
    x = draw.distinct(2, 3, 5)
    for kind in ("value", "indices", "mask", "both"):
        differentiable = kind in ("value", "both")
        yield call("topk", x, ret_typ=kind, k=2, backward=differentiable)
        yield call("topk", x, ret_typ=kind, k=2, axis=1, is_ascend=True, backward=differentiable)
    yield call("topk", x, backward=False)
    yield call("topk", x, k=0, ret_typ="value")
    yield call("topk", x, k=3, axis=None, backward=False)
    yield call("topk", x, k=2, dtype="int32", backward=False)
    yield call("topk", x, k=2, axis=0, ret_typ="both", dtype="int64")
    tied = np.array([[2, 1, 2, 1, 3, 3]], np.float32)
    for ascending in (False, True):
        yield call("topk", tied, k=4, is_ascend=ascending, ret_typ="value", label="ties")


@golden
def sort(draw):
    x = draw.distinct(2, 3, 4)
    for axis in (-1, 0, 1, None):
        yield call("sort", x, axis=axis)
        yield call("argsort", x, axis=axis, backward=False)
    yield call("sort", x, is_ascend=False, axis=-1)
    yield call("argsort", x, is_ascend=False, axis=1, dtype="int32", backward=False)


@golden
def sequence(draw):
    x = draw.normal(4, 3, 2)
    lengths = np.array([1, 4, 2], np.float32)
    inputs = {"data": x, "sequence_length": lengths}
    yield call("SequenceMask", inputs, use_sequence_length=True, value=-1, hold=("sequence_length",))
    yield call("SequenceLast", inputs, use_sequence_length=True, hold=("sequence_length",))
    yield call("SequenceReverse", inputs, use_sequence_length=True, hold=("sequence_length",))
    yield call("SequenceLast", x)
    turned = {"data": draw.normal(3, 4, 2), "sequence_length": lengths}
    yield call("SequenceMask", turned, use_sequence_length=True, axis=1, hold=("sequence_length",))


@golden
def cumsum(draw):
    yield call("cumsum", {"a": draw.normal(2, 3)}, axis=1)
    yield call("cumsum", {"a": draw.normal(2, 3)})


@golden
def khatri_rao(draw):
    """Without gradients, which MXNet does not have."""
    yield call("khatri_rao", [draw.normal(2, 4)], num_args=1, backward=False)
    yield call("khatri_rao", [draw.normal(3, 2), draw.normal(4, 2)], num_args=2, backward=False)
    factors = [draw.normal(3, 2), draw.normal(1, 2), draw.normal(2, 2)]
    yield call("khatri_rao", factors, num_args=3, backward=False)
