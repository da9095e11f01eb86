"""Parameters of the tensor operators."""

from .field import MOST_ARRAYS, Field, dtype, enum, optional
from .field import shape as ints
from .parameter import Parameter


class ScalarParam(Parameter):
    scalar = Field(float, 1.0, doc="the other operand")
    is_int = Field(bool, True, doc="whether integer data stays integer; if not, it becomes float64")


class HardSigmoidParam(Parameter):
    alpha = Field(float, 0.2, doc="slope of the line")
    beta = Field(float, 0.5, doc="height of the line at 0")


class SmoothL1Param(Parameter):
    scalar = Field(float, 1.0, doc="sigma: the parabola ends at 1 / scalar**2")


class QuadraticParam(Parameter):
    a = Field(float, 0.0, doc="factor of the square")
    b = Field(float, 0.0, doc="factor of the entry")
    c = Field(float, 0.0, doc="what is added")


class ClipParam(Parameter):
    a_min = Field(float, doc="lower limit")
    a_max = Field(float, doc="upper limit")


class GradientMultiplierParam(Parameter):
    scalar = Field(float, 1.0, doc="factor of the gradient")
    is_int = Field(bool, True, doc="whether the factor was given as a whole number")


class ReduceParam(Parameter):
    axis = Field(optional(ints()), None, doc="axes to reduce; none or an empty tuple means all")
    keepdims = Field(bool, False, doc="whether reduced axes stay, with length 1")
    exclude = Field(bool, False, doc="whether to reduce all axes but those in axis")


class NormParam(Parameter):
    ord = Field(int, 2, range=(1, 2), doc="1 for the sum of absolute values, 2 for the Euclidean norm")
    axis = Field(optional(ints()), None, doc="axes to reduce; none means all")
    out_dtype = Field(optional(dtype), None, doc="dtype of the result; that of the data if none")
    keepdims = Field(bool, False, doc="whether reduced axes stay, with length 1")


class MomentsParam(Parameter):
    axes = Field(optional(ints()), None, doc="axes to reduce; none means all")
    keepdims = Field(bool, False, doc="whether reduced axes stay, with length 1")


class ArgReduceParam(Parameter):
    axis = Field(optional(int), None, doc="axis to search; none means the flattened array")
    keepdims = Field(bool, False, doc="whether the axis stays, with length 1")


class DotParam(Parameter):
    transpose_a = Field(bool, False, doc="whether lhs is transposed first")
    transpose_b = Field(bool, False, doc="whether rhs is transposed first")
    forward_stype = Field(
        optional(enum("csr", "default", "row_sparse")), None, doc="accepted, without effect: arrays are dense"
    )


class ReshapeParam(Parameter):
    shape = Field(
        ints(),
        (),
        doc="new shape; 0 keeps the axis, -1 infers it, -2 keeps all further axes, -3 joins two, "
        "-4 splits one into the two numbers that follow",
    )
    reverse = Field(bool, False, doc="whether the codes are read from the last axis")
    target_shape = Field(ints(), (), doc="old name of shape, in which 0 infers the axis")
    keep_highest = Field(bool, False, doc="whether target_shape keeps the first axis")


class TransposeParam(Parameter):
    axes = Field(ints(), (), doc="the new order of the axes; reversed if empty")


class SqueezeParam(Parameter):
    axis = Field(optional(ints()), None, doc="axes to drop; none means all of length 1")


class SwapAxisParam(Parameter):
    dim1 = Field(int, 0, doc="one axis")
    dim2 = Field(int, 0, doc="the other axis")


class ReshapeLikeParam(Parameter):
    lhs_begin = Field(optional(int), None, doc="first axis of lhs to replace; none means 0")
    lhs_end = Field(optional(int), None, doc="axis of lhs after the last to replace; none means all")
    rhs_begin = Field(optional(int), None, doc="first axis of rhs to take; none means 0")
    rhs_end = Field(optional(int), None, doc="axis of rhs after the last to take; none means all")


class ExpandDimsParam(Parameter):
    axis = Field(int, doc="where the new axis of length 1 goes")


class SliceAxisParam(Parameter):
    axis = Field(int, doc="axis to cut")
    begin = Field(int, doc="first index; negative counts from the end")
    end = Field(optional(int), doc="index after the last; none means the end")


class ConcatParam(Parameter):
    num_args = Field(int, range=(1, MOST_ARRAYS), doc="number of inputs")
    dim = Field(int, 1, doc="axis along which they are joined")


class StackParam(Parameter):
    axis = Field(int, 0, doc="where the new axis goes")
    num_args = Field(int, range=(1, MOST_ARRAYS), doc="number of inputs")


class AddNParam(Parameter):
    num_args = Field(int, range=(1, MOST_ARRAYS), doc="number of inputs")


class SplitParam(Parameter):
    num_outputs = Field(int, range=(1, MOST_ARRAYS), doc="number of equal pieces")
    axis = Field(int, 1, doc="axis to cut")
    squeeze_axis = Field(bool, False, doc="whether pieces of length 1 lose the axis")


class CastParam(Parameter):
    dtype = Field(dtype, doc="dtype of the result")


class CreateParam(Parameter):
    shape = Field(ints(), (), doc="shape of the result")
    ctx = Field(str, "", doc="device, for imperative calls")
    dtype = Field(dtype, "float32", doc="dtype of the result")


class FullParam(CreateParam):
    value = Field(float, doc="what every entry is")


class ArangeParam(Parameter):
    start = Field(float, doc="first number; the end, if stop is none")
    stop = Field(optional(float), None, doc="end, not reached")
    step = Field(float, 1.0, nonzero=True, doc="difference of neighbours")
    repeat = Field(int, 1, range=(1, None), doc="how often each number comes")
    infer_range = Field(bool, False, doc="whether the length follows from the use of the result")
    ctx = Field(str, "", doc="device, for imperative calls")
    dtype = Field(dtype, "float32", doc="dtype of the result")


class EyeParam(Parameter):
    N = Field(int, range=(0, None), doc="number of rows")
    M = Field(int, 0, range=(0, None), doc="number of columns; 0 for as many as rows")
    k = Field(int, 0, doc="which diagonal: 0 the main one, positive above it")
    ctx = Field(str, "", doc="device, for imperative calls")
    dtype = Field(dtype, "float32", doc="dtype of the result")


class ArangeLikeParam(Parameter):
    start = Field(float, 0.0, doc="first number")
    step = Field(float, 1.0, doc="difference of neighbours")
    repeat = Field(int, 1, range=(1, None), doc="how often each number comes")
    ctx = Field(str, "", doc="device, for imperative calls")
    axis = Field(optional(int), None, doc="axis whose length is taken; none means all entries")


class LinspaceParam(Parameter):
    start = Field(float, doc="first number")
    stop = Field(float, doc="last number, unless endpoint is false")
    num = Field(int, range=(0, None), doc="how many numbers")
    endpoint = Field(bool, True, doc="whether stop is among them")
    ctx = Field(str, "", doc="device, for imperative calls")
    dtype = Field(dtype, "float32", doc="dtype of the result")


class SliceParam(Parameter):
    begin = Field(ints(none_items=True), doc="first index for each leading axis; none means from the start")
    end = Field(ints(none_items=True), doc="index after the last for each axis; none means to the end")
    step = Field(ints(none_items=True), (), doc="step for each axis; negative goes backwards, none means 1")


class SliceAssignScalarParam(SliceParam):
    scalar = Field(float, 0.0, doc="what the slice is set to")


class SliceLikeParam(Parameter):
    axes = Field(ints(), (), doc="axes to cut; all if empty")


class CropParam(Parameter):
    num_args = Field(int, range=(1, 2), doc="1, or 2 where a second input tells the size")
    offset = Field(ints(2), (0, 0), doc="first row and column to keep")
    h_w = Field(ints(2), (0, 0), doc="height and width to keep, with one input")
    center_crop = Field(bool, False, doc="whether the middle is kept instead of what is at offset")


class ReverseParam(Parameter):
    axis = Field(ints(), doc="axes to reverse")


class SplitV2Param(Parameter):
    indices = Field(ints(), (), doc="where each piece begins")
    axis = Field(int, 1, doc="axis to cut")
    squeeze_axis = Field(bool, False, doc="whether pieces of length 1 lose the axis")
    sections = Field(int, 0, range=(0, None), doc="number of equal pieces; 0 where indices are given")


class BroadcastToParam(Parameter):
    shape = Field(ints(), (), doc="shape to reach; 0 keeps an axis")


class BroadcastAxisParam(Parameter):
    axis = Field(ints(), (), doc="axes of length 1 to repeat")
    size = Field(ints(), (), doc="length of each of them afterwards")


class BroadcastLikeParam(Parameter):
    lhs_axes = Field(optional(ints()), None, doc="axes of lhs to repeat; none means all")
    rhs_axes = Field(optional(ints()), None, doc="axes of rhs whose lengths they take")


class TileParam(Parameter):
    reps = Field(ints(), range=(1, None), doc="how often the array comes along each axis, last axes last")


class RepeatParam(Parameter):
    repeats = Field(int, range=(0, None), doc="how often each entry comes")
    axis = Field(
        optional(int), None, doc="axis along which entries are repeated; none means the flattened array"
    )


class PadParam(Parameter):
    mode = Field(
        enum("constant", "edge", "reflect"), doc="a number, the edge again, or a mirror at the edge entry"
    )
    pad_width = Field(ints(), range=(0, None), doc="entries before and after, for each axis")
    constant_value = Field(float, 0.0, doc="the number of mode constant")


class BlockParam(Parameter):
    block_size = Field(int, range=(1, None), doc="side of the square block of pixels that makes channels")


class DiagParam(Parameter):
    k = Field(int, 0, doc="which diagonal: 0 the main one, positive above it")
    axis1 = Field(int, 0, doc="rows")
    axis2 = Field(int, 1, doc="columns")


class CumsumParam(Parameter):
    axis = Field(optional(int), None, doc="axis to sum along; none means the flattened array")
    dtype = Field(optional(dtype), None, doc="dtype of the result; that of the data if none")


class TakeParam(Parameter):
    axis = Field(int, 0, doc="axis the indices count along")
    mode = Field(
        enum("clip", "wrap", "raise"),
        "clip",
        doc="indices outside are moved to the edge, wrapped around, or an error",
    )


class EmbeddingParam(Parameter):
    input_dim = Field(int, range=(1, None), doc="number of rows of weight")
    output_dim = Field(int, range=(1, None), doc="length of each row")
    dtype = Field(dtype, "float32", doc="dtype of weight")
    sparse_grad = Field(bool, False, doc="accepted, without effect: gradients are dense")


class PickParam(Parameter):
    axis = Field(int, -1, doc="axis the indices count along")
    keepdims = Field(bool, False, doc="whether the axis stays, with length 1")
    mode = Field(enum("clip", "wrap"), "clip", doc="indices outside are moved to the edge, or wrapped around")


class OneHotParam(Parameter):
    depth = Field(int, range=(0, None), doc="length of the new last axis")
    on_value = Field(float, 1.0, doc="entry at the index")
    off_value = Field(float, 0.0, doc="entry elsewhere")
    dtype = Field(dtype, "float32", doc="dtype of the result")


class ScatterParam(Parameter):
    shape = Field(ints(), doc="shape of the result")


class IndexArrayParam(Parameter):
    axes = Field(optional(ints()), None, doc="axes whose index is given; none means all")


class RavelParam(Parameter):
    shape = Field(ints(), (), doc="shape of the array that is indexed")


class SortParam(Parameter):
    axis = Field(optional(int), -1, doc="axis to sort along; none means the flattened array")
    is_ascend = Field(bool, True, doc="whether the smallest comes first")


class ArgsortParam(SortParam):
    dtype = Field(dtype, "float32", doc="dtype of the indices")


class TopkParam(Parameter):
    axis = Field(optional(int), -1, doc="axis to search; none means the flattened array")
    k = Field(int, 1, range=(0, None), doc="how many; 0 means all")
    ret_typ = Field(
        enum("indices", "value", "both", "mask"),
        "indices",
        doc="where they are, what they are, both, or 1 at them and 0 elsewhere",
    )
    is_ascend = Field(bool, False, doc="whether the smallest are wanted")
    dtype = Field(dtype, "float32", doc="dtype of the indices")


class SequenceParam(Parameter):
    use_sequence_length = Field(bool, False, doc="whether sequences have lengths of their own")
    axis = Field(int, 0, range=(0, 1), doc="axis of time; the other of the first two counts the sequences")


class SequenceMaskParam(SequenceParam):
    value = Field(float, 0.0, doc="what entries after the end become")


class MulticastParam(Parameter):
    num_outputs = Field(int, range=(1, MOST_ARRAYS), doc="number of inputs and outputs")
    cast_narrow = Field(bool, False, doc="whether the narrowest dtype is taken instead of the widest")
