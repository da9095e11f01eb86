"""NDArray against the behaviour of MXNet 1.9.1; expected values were read off MXNet or worked by hand."""

import copy
import ctypes
import json
import pickle

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx
from roiops import nd
from roiops.errors import DTypeError, MXNetError, ShapeError


@pytest.fixture
def x():
    return nd.array([[0, 1, 2], [3, 4, 5]])


def values(array):
    return array.asnumpy().tolist()


# -- making arrays ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (lambda: nd.zeros((2, 1)), [[0], [0]]),
        (lambda: nd.ones(3), [1, 1, 1]),
        (lambda: nd.full((2,), 3), [3, 3]),
        (lambda: nd.arange(5), [0, 1, 2, 3, 4]),
        (lambda: nd.arange(1, 7, 2), [1, 3, 5]),
        (lambda: nd.arange(0, 3, repeat=2), [0, 0, 1, 1, 2, 2]),
        (lambda: nd.linspace(0, 1, 5), [0, 0.25, 0.5, 0.75, 1]),
        (lambda: nd.linspace(0, 1, 4, endpoint=False), [0, 0.25, 0.5, 0.75]),
        (lambda: nd.linspace(5, -5, 4, dtype="int32").astype("float32"), [5, 1, -1, -5]),
        (lambda: nd.eye(2), [[1, 0], [0, 1]]),
        (lambda: nd.eye(2, 3, 1), [[0, 1, 0], [0, 0, 1]]),
        (lambda: nd.array([]), []),
    ],
)
def test_creation(array, expected):
    array = array()
    assert values(array) == expected
    assert array.dtype is np.float32
    assert array.context == mx.cpu(0)


def test_array_is_float32_unless_told_or_copied_from_an_ndarray():
    assert nd.array(np.arange(3, dtype=np.int32)).dtype is np.float32
    assert nd.array(np.ones(3)).dtype is np.float32
    assert nd.array([1, 2], dtype="int64").dtype is np.int64
    assert nd.array(nd.array([1], dtype="int8")).dtype is np.int8


def test_array_copies():
    source = np.ones(3, np.float32)
    array = nd.array(source)
    source[:] = 2
    assert values(array) == [1, 1, 1]


def test_default_context_is_the_current_one():
    with mx.cpu(1):
        assert nd.zeros((1,)).context == mx.cpu(1)
    assert nd.zeros((1,)).context == mx.cpu(0)


@pytest.mark.parametrize(
    ("make", "error", "text"),
    [
        (lambda: nd.array([[1, 2], [3]]), TypeError, "source_array must be array like object"),
        (lambda: nd.array(["a"]), TypeError, "source_array must be array like object"),
        (lambda: nd.zeros("2,3"), ShapeError, "shape must be a whole number or some of them, got '2,3'"),
        (
            lambda: nd.full((2.5, 3), 1),
            ShapeError,
            r"shape must be a whole number or some of them, got \(2.5, 3\)",
        ),
        (lambda: nd.empty(None), ShapeError, "shape must be a whole number or some of them, got None"),
        (lambda: nd.zeros((2, -1)), ShapeError, r"every entry of shape must be 0 or more, got \(2, -1\)"),
        (
            lambda: nd.zeros((2,), dtype="complex64"),
            DTypeError,
            "dtype must be one of float32, .*, got complex64",
        ),
        (lambda: nd.NDArray(np.array(["a"])), DTypeError, "dtype must be one of float32, .*, got <U1"),
    ],
)
def test_creation_errors(make, error, text):
    with pytest.raises(error, match=text):
        make()


def test_from_numpy_shares_memory_or_copies():
    source = np.zeros((2, 2), np.float32)
    shared, copied = nd.from_numpy(source), nd.from_numpy(source, zero_copy=False)
    shared[1, 1] = 8
    assert values(shared) == source.tolist() == [[0, 0], [0, 8]]
    with pytest.raises(ValueError, match="read-only"):
        source[0, 0] = 7
    nd.from_numpy(source)[0, 0] = 9
    assert values(shared) == [[9, 0], [0, 8]]
    assert values(copied) == [[0, 0], [0, 0]]
    with pytest.raises(ValueError, match="zero_copy needs a C-contiguous"):
        nd.from_numpy(np.zeros((2, 3)).T)


def test_swapped_or_misaligned_bytes_are_put_right():
    swapped = np.array([1, 2], ">f4")
    misaligned = np.zeros(9, np.uint8)[1:].view(np.float32)
    for source in (swapped, misaligned):
        array = nd.NDArray(source)
        assert array.data.dtype.isnative
        assert array.data.flags.aligned
        assert values(array) == source.tolist()


# -- what it is ------------------------------------------------------------------------------------------


def test_attributes(x):
    assert (x.shape, x.size, x.ndim, x.dtype) == ((2, 3), 6, 2, np.float32)
    assert (x.stype, x.context, x.ctx, x.grad) == ("default", mx.cpu(0), mx.cpu(0), None)
    assert len(x) == 2
    assert values(x.T) == [[0, 3], [1, 4], [2, 5]]
    row = x[0]
    assert row.T is row  # as in MXNet
    assert row[:] is row


def test_prints_as_in_mxnet(x):
    assert repr(x) == str(x) == "\n[[0. 1. 2.]\n [3. 4. 5.]]\n<NDArray 2x3 @cpu(0)>"
    assert repr(nd.array([])) == "\n[]\n<NDArray 0 @cpu(0)>"
    assert repr(nd.array(5.0)) == "\n5.0\n<NDArray  @cpu(0)>"


def test_truth_value(x):
    assert nd.array([2])
    assert not nd.array([0])
    assert not nd.array([])
    with pytest.raises(ValueError, match="truth value of an NDArray with multiple elements is ambiguous"):
        bool(x)


def test_scalars(x):
    assert x[1, 1].asscalar() == np.float32(4)
    assert isinstance(x[1, 1].asscalar(), np.float32)
    assert (float(x[1, 2]), int(x[1, 2])) == (5.0, 5)
    with pytest.raises(ValueError, match="The current array is not a scalar"):
        x.asscalar()
    with pytest.raises(TypeError, match="len\\(\\) of an NDArray without dimensions"):
        len(nd.array(5.0))


def test_iteration_and_membership(x):
    assert [values(row) for row in x] == [[0, 1, 2], [3, 4, 5]]
    assert 2 in nd.array([1, 2, 3])


def test_hash_is_by_identity(x):
    assert {x: 1}[x] == 1
    assert hash(x) != hash(x.copy())


def test_unknown_attribute(x):
    with pytest.raises(AttributeError, match="'NDArray' object has no attribute 'foo'"):
        _ = x.foo


# -- copies and conversions ------------------------------------------------------------------------------


def test_asnumpy_copies_and_asarray_does_not(x):
    x.asnumpy()[0, 0] = 9
    assert values(x)[0][0] == 0
    np.asarray(x)[0, 0] = 9
    assert values(x)[0][0] == 9
    assert np.asarray(x, dtype=np.float64).dtype == np.float64
    assert np.exp(nd.zeros((2,))).tolist() == [1, 1]


def test_array_protocol_refuses_a_conversion_without_a_copy(x):
    with pytest.raises(ValueError, match="float32 NDArray cannot be seen as float64 without a copy"):
        x.__array__(np.float64, copy=False)
    assert x.__array__(copy=True) is not x.data


def test_copyto(x):
    target = nd.zeros((2, 3), dtype="int32")
    assert x.copyto(target) is target
    assert values(target) == values(x)
    copied = x.copyto(mx.cpu(1))
    copied[:] = 0
    assert copied.context == mx.cpu(1)
    assert values(x) == [[0, 1, 2], [3, 4, 5]]
    with pytest.raises(ShapeError, match=r"NDArray.copyto: other must have shape \(2, 3\), got \(3, 2\)"):
        x.copyto(nd.zeros((3, 2)))
    with pytest.raises(TypeError, match="needs an NDArray or a Context, got str"):
        x.copyto("cpu")
    with pytest.warns(RuntimeWarning, match="copied to itself"):
        assert x.copyto(x) is False


def test_contexts(x):
    assert x.as_in_context(mx.cpu(0)) is x
    assert x.as_in_ctx(mx.cpu(1)).context == mx.cpu(1)


def test_astype(x):
    assert x.astype("int32").dtype is np.int32
    assert x.astype(np.float32) is not x
    assert x.astype(np.float32, copy=False) is x
    with pytest.raises(DTypeError, match=r"^NDArray.astype: dtype must be one of float32, .*, got 'floot'$"):
        x.astype("floot")


def test_copy_deepcopy_and_pickle(x):
    for other in (x.copy(), copy.copy(x), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert values(other) == values(x)
        assert other.context == x.context
        other[:] = 0
    assert values(x) == [[0, 1, 2], [3, 4, 5]]


@pytest.mark.parametrize(
    ("state", "dtype", "expected"),
    [  # what pickle.dumps of MXNet 1.9.1 holds
        (
            b"\xc9\xfa\x93\xf9\0\0\0\0\2\0\0\0\2\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\2\0\0\0"
            b"\0<\0A\0B\0D",
            np.float16,
            [[1, 2.5], [3, 4]],
        ),
        (
            b"\xca\xfa\x93\xf9\0\0\0\0\2\0\0\0\0\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\1\0\0\0\0\0\0\0\0\0\0\0",
            np.float32,
            np.zeros((0, 2)),
        ),
    ],
)
def test_arrays_that_mxnet_pickled(state, dtype, expected):
    pickled = b"croiops.ndarray\nNDArray\n(NtR(dS'handle'\nc__builtin__\nbytearray\n(c_codecs\nencode\n(V"
    pickled += state.decode("latin-1").encode("raw_unicode_escape").replace(b"\0", b"\\u0000")
    array = pickle.loads(pickled + b"\nVlatin1\ntRtRsb.")
    assert array.dtype is dtype
    assert array.context == mx.cpu()
    np.testing.assert_array_equal(array.asnumpy(), expected)
    with pytest.raises(MXNetError, match=r"a pickled NDArray.*the file ends within"):
        array.__setstate__({"handle": state[:-3]})


def test_a_handle_as_monitors_have_it_gives_the_array(x):
    handle = ctypes.cast(x, mx.base.NDArrayHandle)
    assert values(nd.NDArray(handle, writable=False)) == values(x)
    del x
    unknown = mx.base.NDArrayHandle(12)
    with pytest.raises(MXNetError, match="the handle is that of no NDArray"):
        nd.NDArray(unknown)


def test_detach_shares_memory(x):
    x.detach()[0, 0] = 9
    assert values(x)[0][0] == 9


def test_tostype(x):
    assert x.tostype("default") is x
    sparse = x.tostype("csr")
    assert sparse.stype == "csr"
    np.testing.assert_array_equal(sparse.asnumpy(), x.asnumpy())
    with pytest.raises(MXNetError, match="stype must be default, row_sparse or csr, got 'coo'"):
        x.tostype("coo")


def test_waiting_is_nothing_on_the_cpu(x):
    x.wait_to_read()
    nd.waitall()


def test_only_gpu_arrays_have_a_cuda_interface(x):
    assert not hasattr(x, "__cuda_array_interface__")


# -- DLPack ----------------------------------------------------------------------------------------------


class OldProducer:
    """An object with the DLPack protocol of before version 1.0, whose capsules cannot say read-only."""

    def __init__(self, array):
        self.array = array

    def __dlpack__(self, stream=None):
        return self.array.__dlpack__()

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.mark.parametrize("wrap", [lambda a: a, OldProducer, lambda a: a.__dlpack__()])
def test_from_dlpack_shares_writable_memory(wrap):
    source = np.zeros((2, 2), np.float32)
    array = nd.from_dlpack(wrap(source))
    array[0, 1] = 5
    assert source.tolist() == [[0, 5], [0, 0]]


def test_from_dlpack_keeps_a_declared_read_only():
    source = np.zeros(2)
    source.flags.writeable = False
    # NumPy before 2.1 cannot say that an array is read-only, and hands none over.
    with pytest.raises((ValueError, DTypeError), match=r"read-only|from_dlpack: .* readonly"):
        nd.from_dlpack(source)[:] = 1


@pytest.mark.parametrize("source", [np.array(["a"]), np.zeros(2, ">f4")], ids=["strings", "byte order"])
def test_from_dlpack_says_what_its_producer_refuses(source):
    with pytest.raises(DTypeError, match="from_dlpack: NumPy cannot take the array: DLPack only supports"):
        nd.from_dlpack(source)


def test_to_dlpack_shares_memory(x):
    np.from_dlpack(x)  # accepts the protocol
    capsule = x.to_dlpack_for_write()
    nd.from_dlpack(capsule)[0, 0] = 9
    assert values(x)[0][0] == 9
    assert x.__dlpack_device__() == (1, 0)
    assert values(nd.from_dlpack(nd.to_dlpack_for_read(x))) == values(x)


def test_memory_outlives_its_producer():
    array = nd.from_dlpack(OldProducer(np.full(1000, 3.0)))
    assert array.asnumpy().sum() == 3000


def test_from_dlpack_errors():
    with pytest.raises(TypeError, match="from_dlpack: needs an object with __dlpack__, got list"):
        nd.from_dlpack([1, 2])

    class Elsewhere(OldProducer):
        def __dlpack_device__(self):
            return (8, 0)

    with pytest.raises(mx.errors.DeviceError, match="DLPack device type 8, neither CPU nor CUDA"):
        nd.from_dlpack(Elsewhere(np.ones(1)))


# -- parts -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (1, [3, 4, 5]),
        (-1, [3, 4, 5]),
        ((0, 0), [0]),
        ((slice(None), 1), [1, 4]),
        (slice(0, 0), []),
        ((Ellipsis, 0), [0, 3]),
        (None, [[[0, 1, 2], [3, 4, 5]]]),
        (slice(None, None, -1), [[3, 4, 5], [0, 1, 2]]),
        ((slice(None), slice(None, None, 2)), [[0, 2], [3, 5]]),
        ([1, 0], [[3, 4, 5], [0, 1, 2]]),
        (([0, 1], [1, 2]), [1, 5]),
        (np.array([True, False]), [[0, 1, 2]]),
        ([], []),
    ],
)
def test_getitem(x, key, expected):
    assert values(x[key]) == expected


def test_getitem_by_ndarrays(x):
    assert values(x[nd.array([1, 0])]) == [[3, 4, 5], [0, 1, 2]]
    assert values(x[nd.array([0, 1]), nd.array([0, 2])]) == [0, 5]


def test_contiguous_parts_share_memory_and_others_do_not(x):
    row, block, element = x[1], x[0:1], x[0, 2]
    column, rows, backwards = x[:, 1], x[[0, 1]], x[::-1]
    row[:] = 7
    block[:] = 8
    element[:] = 9
    column[:] = rows[:] = backwards[:] = -1
    assert values(x) == [[8, 8, 9], [7, 7, 7]]


def test_swapping_columns_needs_no_copy(x):
    """As in MXNet a column is a copy, so this idiom of its scripts works."""
    first = x[:, 0]
    x[:, 0] = x[:, 2]
    x[:, 2] = first
    assert values(x) == [[2, 1, 0], [5, 4, 3]]


def test_setitem(x):
    x[0, 1] = nd.array([40])
    x[1] = [6, 7, 8]
    assert values(x) == [[0, 40, 2], [6, 7, 8]]
    x[:, 0] = np.array([9, 10])
    x[nd.array([0, 1]), nd.array([1, 2])] = -1
    assert values(x) == [[9, -1, 2], [10, 7, -1]]
    x[:] = np.arange(3)
    assert values(x) == [[0, 1, 2], [0, 1, 2]]
    x[...] = 5
    assert values(x) == [[5, 5, 5], [5, 5, 5]]


INDEXING = json.loads((GOLDEN / "ndarray" / "indexing.json").read_text())["programs"]


def decoded(index):
    if index[0] == "rows":
        return index[1:]
    parts = [slice(*p[1:]) if isinstance(p, list) else Ellipsis if p == "..." else p for p in index]
    return tuple(parts) if len(parts) > 1 else parts[0]


@pytest.mark.parametrize("number", range(len(INDEXING)))
def test_indexing_is_as_in_mxnet(number):
    """What was recorded from MXNet shows, step by step, values, shapes, and which parts share memory."""
    program = INDEXING[number]
    array = nd.array(np.arange(np.prod(program["shape"])).reshape(program["shape"]))
    for action, index, value, part_shape, after in program["steps"]:
        if action == "assign":
            array[decoded(index)] = value
        else:
            part = array[decoded(index)]
            assert list(part.shape) == part_shape
            if action == "write":
                part[:] = value
            else:
                part += value
        assert array.asnumpy().ravel().tolist() == after


def test_at_and_slice_share_memory(x):
    x._at(0)[:] = 1
    x._slice(1, 2)[:] = 2
    assert values(x) == [[1, 1, 1], [2, 2, 2]]


@pytest.mark.parametrize("key", [1.5, "a", {}])
def test_getitem_refuses_other_keys(x, key):
    with pytest.raises(ValueError, match="NDArray does not support slicing with key"):
        x[key]


def test_index_out_of_bounds(x):
    with pytest.raises(IndexError, match="index 5 is out of bounds for axis 0 with size 2"):
        x[5]
    with pytest.raises(IndexError, match="index 7 is out of bounds for axis 0 with size 2"):
        x[nd.array([0, 7])]
    with pytest.raises(IndexError, match="an index is NaN"):
        x[nd.array([0, np.nan])]


@pytest.mark.parametrize(
    ("args", "options", "shape"),
    [
        ((3, 2), {}, (3, 2)),
        (((-1,),), {}, (6,)),
        (((0, -4, 3, -1),), {}, (2, 3, 1)),
        ((-3,), {}, (6,)),
        ((0, -2), {}, (2, 3)),
        ((), {"shape": (6, 1)}, (6, 1)),
        (((-1, 0),), {"reverse": True}, (2, 3)),
    ],
)
def test_reshape_shares_memory(x, args, options, shape):
    shaped = x.reshape(*args, **options)
    assert shaped.shape == shape
    shaped[:] = 1
    assert values(x) == [[1, 1, 1], [1, 1, 1]]


def test_reshape_to_another_size(x):
    with pytest.raises(ShapeError, match=r"NDArray.reshape.*\(4, 2\).*\(2, 3\)"):
        x.reshape((4, 2))


# -- arithmetic ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda x: x + x, [0, 2, 4]),
        (lambda x: x + 1, [1, 2, 3]),
        (lambda x: 1 - x, [1, 0, -1]),
        (lambda x: x - 1, [-1, 0, 1]),
        (lambda x: 3 * x, [0, 3, 6]),
        (lambda x: x / 2, [0, 0.5, 1]),
        (lambda x: 2 / (x + 1), [2, 1, np.float32(2 / 3)]),
        (lambda x: x % 2, [0, 1, 0]),
        (lambda x: 7 % (x + 2), [1, 1, 3]),
        (lambda x: x**2, [0, 1, 4]),
        (lambda x: 2**x, [1, 2, 4]),
        (lambda x: -x, [0, -1, -2]),
        (lambda x: abs(x - 1), [1, 0, 1]),
        (lambda x: x > 1, [0, 0, 1]),
        (lambda x: x >= 1, [0, 1, 1]),
        (lambda x: x < x + 1, [1, 1, 1]),
        (lambda x: x <= 1, [1, 1, 0]),
        (lambda x: x == 1, [0, 1, 0]),
        (lambda x: x != 1, [1, 0, 1]),
        (lambda x: x + np.float64(1), [1, 2, 3]),
        (lambda x: x + True, [1, 2, 3]),
        (lambda x: x + np.ones(3), [1, 2, 3]),
        (lambda x: np.ones(3) - x, [1, 0, -1]),
        (lambda x: nd.maximum(x, 1), [1, 1, 2]),
        (lambda x: nd.minimum(1, x), [0, 1, 1]),
        (lambda x: nd.subtract(5, x), [5, 4, 3]),
        (lambda x: nd.true_divide(x, 2), [0, 0.5, 1]),
        (lambda x: nd.power(2, x), [1, 2, 4]),
        (lambda x: nd.greater(1, x), [1, 0, 0]),
        (lambda x: nd.logical_and(x, 1), [0, 1, 1]),
    ],
)
def test_arithmetic(compute, expected):
    result = compute(nd.array([0, 1, 2]))
    assert values(result) == expected
    assert result.dtype is np.float32


def test_functions_on_two_numbers_are_pythons():
    assert (nd.maximum(2, 3), nd.add(2, 3), nd.greater(2, 3)) == (3, 5, False)


def test_arithmetic_broadcasts(x):
    assert values(x + nd.array([[10], [20]])) == [[10, 11, 12], [23, 24, 25]]


def test_integers_stay_integers():
    i = nd.array([1, 2, 3], dtype="int32")
    for result, expected in (
        (i + 1.5, [2, 3, 4]),
        (i / 2, [0, 1, 1]),
        (i * 2, [2, 4, 6]),
        (i == 2, [0, 1, 0]),
    ):
        assert values(result) == expected
        assert result.dtype is np.int32


@pytest.mark.parametrize(
    ("dtype", "number", "expected"),
    [  # what MXNet 1.9.1 makes of them
        ("int32", np.nan, -(2**31)),
        ("int32", 1e10, -(2**31)),
        ("int32", -(2**40), -(2**31)),
        ("int64", np.float32(-np.inf), -(2**63)),
        ("int8", -1e10, 0),
        ("uint8", np.inf, 0),
        ("uint8", -1.7, 255),
        ("uint8", 300, 44),
    ],
)
def test_numbers_that_do_not_fit_are_cast(dtype, number, expected):
    array = nd.zeros((1,), dtype=dtype)
    assert values(array + number) == values(nd.full((1,), number, dtype=dtype)) == [expected]
    assert values(array > number) == [expected < 0]
    array[:] = number
    assert values(array) == [expected]


def test_bools_with_a_number_are_int64():
    b = nd.array([True, False], dtype="bool")
    for result, expected in (
        (b * 255, [255, 0]),
        (1 - b, [0, 1]),
        (-b, [-1, 0]),
        (b == 2.5, [0, 0]),
        (b > 0, [1, 0]),
        (nd.logical_and(b, 3), [1, 0]),
    ):
        assert values(result) == expected
        assert result.dtype is np.int64
    graph = (mx.sym.Variable("b") + 1) * 2
    assert values(graph.bind(mx.cpu(), {"b": b}).forward()[0]) == [4, 2]
    with pytest.raises(DTypeError, match="bool"):
        b += 1


def test_in_place_arithmetic_writes_into_the_array(x):
    row, same = x[0], x
    x += 1
    x *= nd.array([1, 2, 3])
    x -= np.ones(3)
    x /= 2
    assert x is same
    assert values(x) == [[0, 1.5, 4], [1.5, 4.5, 8.5]]
    assert values(row) == [0, 1.5, 4]
    row **= 2  # a new array, as in MXNet
    assert values(row) == [0, 2.25, 16]
    assert values(x)[0] == [0, 1.5, 4]


def test_in_place_arithmetic_with_an_overlapping_part(x):
    x[0] += x[1]
    assert values(x) == [[3, 5, 7], [3, 4, 5]]
    flat = nd.array([1, 2, 3, 4])
    ahead = flat[1:]
    ahead += flat[:-1]
    assert values(flat) == [1, 3, 5, 7]


def test_division_by_zero_is_inf_without_a_warning():
    assert values(1 / nd.array([0])) == [np.inf]


@pytest.mark.parametrize("other", [None, "a", 1j, [1, 2]])
def test_arithmetic_refuses_other_types(x, other):
    with pytest.raises(TypeError, match="goes with an NDArray, a NumPy array or a number, got"):
        x + other
    with pytest.raises(TypeError, match="goes with an NDArray, a NumPy array or a number, got"):
        _ = x == other


def test_arithmetic_across_devices_is_an_error(x):
    with pytest.raises(mx.errors.DeviceError, match=r"the inputs are on cpu\(0\) and on cpu\(1\)"):
        x + x.as_in_context(mx.cpu(1))


# -- operators as methods --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("compute", "expected"),
    [
        (lambda x: x.sum(), [15]),
        (lambda x: x.sum(axis=0), [3, 5, 7]),
        (lambda x: x.mean(1), [1, 4]),
        (lambda x: x.max(axis=1, keepdims=True), [[2], [5]]),
        (lambda x: x.transpose((1, 0)), [[0, 3], [1, 4], [2, 5]]),
        (lambda x: x.expand_dims(0), [[[0, 1, 2], [3, 4, 5]]]),
        (lambda x: x.flatten(), [[0, 1, 2], [3, 4, 5]]),
        (lambda x: x.slice_axis(axis=1, begin=0, end=2), [[0, 1], [3, 4]]),
        (lambda x: x.clip(1, 3), [[1, 1, 2], [3, 3, 3]]),
        (lambda x: x.square(), [[0, 1, 4], [9, 16, 25]]),
        (lambda x: x.zeros_like(), [[0, 0, 0], [0, 0, 0]]),
    ],
)
def test_operators_are_methods(x, compute, expected):
    assert values(compute(x)) == expected


def test_a_range_is_a_list_of_indices():
    x = nd.arange(4)
    assert values(x[range(1, 3)]) == [1, 2]
    x[range(2)] = 9
    assert values(x) == [9, 9, 2, 3]


def test_a_histogram_without_a_range_is_numpys_in_float32():
    for dtype in ("uint8", "float64", "float32"):
        counts, edges = nd.histogram(nd.array([1, 2, 3, 7], dtype=dtype), 4)
        assert (counts.dtype, edges.dtype) == (np.float32, np.float32)
        assert (values(counts), values(edges)) == ([2, 1, 0, 1], [1, 2.5, 4, 5.5, 7])
    assert nd.histogram(nd.array([1, 2]), 2, (0, 2))[0].dtype is np.int64
    assert [values(each) for each in nd.histogram(nd.array([]), 2)] == [[0, 0], [0, 0.5, 1]]


def test_broadcast_to_may_add_dimensions(x):
    assert x.broadcast_to((2, 2, 3)).asnumpy().tolist() == [[[0, 1, 2], [3, 4, 5]]] * 2
    assert values(nd.array([4]).broadcast_to(3)) == [4, 4, 4]
    assert nd.array([4]).broadcast_like(nd.zeros((2, 3))).asnumpy().tolist() == [[4, 4, 4]] * 2


def test_operators_with_several_outputs_return_a_list(x):
    parts = x.split(3, axis=1)
    assert [values(part) for part in parts] == [[[0], [3]], [[1], [4]], [[2], [5]]]


def test_methods_are_listed_and_documented(x):
    assert {"sum", "expand_dims", "reshape", "asnumpy"} <= set(dir(x))
    assert "_plus_scalar" not in dir(x)
    assert "axis" in x.sum.__doc__


def test_flatten_copies(x):
    x.flatten()[:] = 9
    assert values(x) == [[0, 1, 2], [3, 4, 5]]


def test_numpy_reductions_call_the_methods(x):
    assert values(np.sum(x)) == [15]
    assert values(np.max(x, axis=0)) == [3, 4, 5]


@pytest.mark.parametrize(
    ("method", "arguments", "shape"),
    [
        ("flatten", (), (2, 6)),
        ("squeeze", (1,), (2, 6)),
        ("squeeze", (), (2, 6)),
        ("expand_dims", (1,), (2, 1, 1, 6)),
    ],
)
def test_shapes_changed_in_place_share_memory(method, arguments, shape):
    array = mx.nd.zeros((2, 1, 6))
    copy = getattr(array, method)(*arguments)
    view = getattr(array, method)(*arguments, inplace=True)
    assert copy.shape == view.shape == shape
    array[:] = 3
    assert (view.asnumpy() == 3).all()
    assert (copy.asnumpy() == 0).all()


def test_random_numbers_under_their_older_names():
    assert mx.nd.random_uniform(0, 1, shape=(2, 3)).shape == mx.nd.normal(0, 1, shape=(2, 3)).shape == (2, 3)


def test_arrays_on_a_device_by_name_and_of_no_dtype():
    assert nd.array([1], ctx="cpu").context == nd.empty((1,), ctx="cpu").context == mx.cpu()
    with pytest.raises(DTypeError, match=r"dtype must be one of float32, .*, got 'float31'"):
        nd.array([1], dtype="float31")
