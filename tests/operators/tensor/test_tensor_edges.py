"""What golden files and gradients do not reach: nothing at all, NaN, integers, hostile indices, inference."""

import math

import numpy as np
import pytest

import roiops
import roiops as mx
from roiops.errors import MXNetError, ShapeError
from roiops.operators import arrays
from roiops.operators.imperative import Invocation
from roiops.registry import get


def invoke(name, *arrays, **params):
    return Invocation(get(name).create(params), [np.asarray(a) for a in arrays])


def run(name, *arrays, **params):
    outputs = invoke(name, *arrays, **params).forward()
    return outputs[0] if len(outputs) == 1 else outputs


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("threads", [1, 2])
def test_gradients_of_long_rows_are_added_in_the_order_of_the_indices(dtype, threads):
    random = np.random.default_rng(2)
    table, head = (
        random.standard_normal((5, 20_003)).astype(dtype),
        random.standard_normal((40, 20_003)).astype(dtype),
    )
    index = random.integers(0, 5, 40)
    invocation = invoke("take", table, index)
    invocation.forward()
    with mx.kernels.jit.use_threads(threads):
        gradient = invocation.backward([head])[0]
    expected = np.zeros(table.shape, np.float32 if dtype == np.float16 else dtype)
    np.add.at(expected, index, head)
    assert np.array_equal(gradient, expected.astype(dtype))


# -- values worked by hand -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("round", [-3.0, -1.0, 1.0, 3.0, 0.0]),
        ("rint", [-3.0, -1.0, 0.0, 2.0, 0.0]),
        ("fix", [-2.0, 0.0, 0.0, 2.0, 0.0]),
        ("ceil", [-2.0, 0.0, 1.0, 3.0, 1.0]),
        ("floor", [-3.0, -1.0, 0.0, 2.0, 0.0]),
    ],
)
def test_rounding(name, values):
    below_half = np.nextafter(np.float32(0.5), np.float32(0))
    assert run(name, np.float32([-2.5, -0.5, 0.5, 2.5, below_half])).tolist() == values


def test_remainder_has_the_sign_of_the_divisor():
    lhs, rhs = np.float32([-3, 3, -5, 5.5, 5]), np.float32([2, -2, 3, -3, 0])
    assert run("_mod", lhs, rhs).tolist() == [1, -1, 1, -0.5, 0]
    assert run("_mod", lhs.astype(np.int32), rhs.astype(np.int32)).tolist() == [1, -1, 1, -1, 0]
    assert run("_rmod_scalar", np.float32([-3, 0, 2]), scalar=5).tolist() == [-1, 0, 1]


def test_special_functions():
    x = np.array([0.5, 1.0, 4.0, -0.5, 0.0, -2.0])
    root = np.sqrt(np.pi)
    np.testing.assert_allclose(run("gamma", x), [root, 1, 6, -2 * root, np.inf, np.nan], rtol=1e-14)
    expected = [np.log(root), 0, np.log(6), np.log(2 * root), np.inf, np.inf]
    np.testing.assert_allclose(run("gammaln", x), expected, rtol=1e-14, atol=1e-15)
    y = np.array([-0.999999999, -0.9, 0.0, 1e-9, 0.4999, 0.5, 0.999])
    np.testing.assert_allclose(run("erf", run("erfinv", y)), y, rtol=1e-13)
    assert run("erfinv", np.array([1.0, -1.0, 1.5])).tolist()[:2] == [np.inf, -np.inf]


def test_nan_and_infinity_pass_without_a_warning():
    x = np.float32([np.nan, np.inf, -np.inf, -1, 0])
    assert np.isnan(run("relu", x)[0])
    assert np.isnan(run("clip", x, a_min=-1, a_max=1)[0])
    assert run("reciprocal", x).tolist()[1:] == [0, 0, -1, np.inf]
    assert np.isnan(run("log", x)[3])
    assert run("sigmoid", x).tolist()[1:3] == [1, 0]
    assert np.isnan(run("max", x)[0])
    assert run("exp", np.float32([1000])).tolist() == [np.inf]


def test_sigmoid_keeps_small_probabilities():
    np.testing.assert_allclose(run("sigmoid", np.float32([-20, -80])), np.exp([-20.0, -80.0]), rtol=1e-6)
    found = run("Activation", np.float32([-20, -80]), act_type="sigmoid")
    np.testing.assert_allclose(found, np.exp([-20.0, -80.0]), rtol=1e-6)


@pytest.mark.parametrize("limits", [(0, 2), (-2, 0), (0, np.inf)])
def test_clip_leaves_the_sign_of_zero(limits):
    (low, high), data = limits, np.array([-0.0, 0.0, -0.0, np.nan], np.float32)
    np.testing.assert_array_equal(np.signbit(run("clip", data, a_min=low, a_max=high)[:3]), [1, 0, 1])


def test_the_gradient_of_expm1_keeps_small_numbers():
    data = mx.nd.array([-80, -20, -10, 0])
    data.attach_grad()
    with mx.autograd.record():
        out = mx.nd.expm1(data)
    out.backward()
    np.testing.assert_allclose(data.grad.asnumpy(), np.exp([-80.0, -20, -10, 0]), rtol=1e-6)


def test_norms_of_numbers_whose_squares_do_not_fit():
    data = np.float32([[3e20, 4e20], [3e-30, 4e-30], [0, 0], [3, 4], [np.inf, 1], [np.nan, 1]])
    expected = np.array([5e20, 5e-30, 0, 5, np.inf, np.nan])
    np.testing.assert_allclose(run("norm", data, axis=1), expected, rtol=1e-6)
    np.testing.assert_allclose(run("norm", data[:4], keepdims=True), [[5e20]], rtol=1e-6)
    data = mx.nd.array(data[1:3])
    data.attach_grad()
    with mx.autograd.record():
        out = mx.nd.norm(data, axis=1)
    out.backward()
    np.testing.assert_allclose(data.grad.asnumpy(), [[0.6, 0.8], [0, 0]], rtol=1e-6)


def test_int64_divides_to_the_last_digit():
    data = np.int64([2**53 + 1, -(2**53) - 1, 7, -7, 2**62 + 1])
    for number in (2, 3, -2, -3):
        expected = [int(x) // number if (x < 0) == (number < 0) else -(-int(x) // number) for x in data]
        assert run("_div_scalar", data, scalar=number).tolist() == expected
        assert run("broadcast_div", data, np.int64([number])).tolist() == expected
    assert run("mean", data[:1]).tolist() == [2**53 + 1]
    assert run("mean", data[:4]).tolist() == [0]


def test_the_gradient_of_the_mean_of_more_numbers_than_float16_has():
    data = mx.nd.ones((100_000, 1), dtype="float16")
    data.attach_grad()
    with mx.autograd.record():
        out = mx.nd.mean(data, axis=0)
    out.backward(mx.nd.array([1000], dtype="float16"))
    assert set(data.grad.asnumpy().ravel()) == {np.float16(0.01)}


@pytest.mark.parametrize("rows", [1, 3, 4])
def test_products_of_millions_of_terms_keep_their_digits(rows):
    data, weight = mx.nd.full((1, 1_000_001), 0.1), mx.nd.full((rows, 1_000_001), 0.1)
    found = mx.nd.FullyConnected(data, weight, num_hidden=rows, no_bias=True)
    np.testing.assert_allclose(found.asnumpy(), 10_000.01, rtol=3e-5)


def test_the_gradient_of_a_bias_over_many_images_keeps_its_digits():
    data, weight, bias = mx.nd.ones((300_000, 2, 1, 1)), mx.nd.ones((2, 2, 1, 1)), mx.nd.zeros(2)
    bias.attach_grad()
    for layer in (mx.nd.Convolution, mx.nd.Deconvolution):
        with mx.autograd.record():
            out = layer(data, weight, bias, kernel=(1, 1), num_filter=2, no_bias=False)
        out.backward(mx.nd.full(out.shape, 0.1))
        np.testing.assert_allclose(bias.grad.asnumpy(), 30_000, rtol=1e-6)


def test_global_means_of_large_images_keep_their_digits():
    data = mx.nd.full((1, 2, 2000, 1500), 0.1)
    for kind, expected in (("avg", 0.1), ("sum", 300_000), ("max", 0.1)):
        found = mx.nd.Pooling(data, pool_type=kind, global_pool=True, kernel=(1, 1))
        np.testing.assert_allclose(found.asnumpy().ravel(), expected, rtol=2e-5)


def test_the_gradient_of_a_matrix_over_many_pixels_keeps_its_digits():
    matrix = mx.nd.array([[1, 0, 0, 0, 1, 0]])
    matrix.attach_grad()
    with mx.autograd.record():
        out = mx.nd.GridGenerator(matrix, transform_type="affine", target_shape=(1000, 1000))
    out.backward(mx.nd.full(out.shape, 0.1))
    np.testing.assert_allclose(matrix.grad.asnumpy()[0, 2::3], 100_000, rtol=1e-6)


def test_integers_keep_their_dtype_and_large_values():
    big = np.int64(2**60 + 1)
    assert run("elemwise_add", [big], [big]).tolist() == [2 * (2**60 + 1)]
    assert run("_mul_scalar", np.array([big]), scalar=3).dtype == np.int64
    assert run("_plus_scalar", np.int32([1, 2]), scalar=1.9).tolist() == [2, 3]
    assert run("_div_scalar", np.int32([5, -5]), scalar=2).tolist() == [2, -2]
    assert run("_div_scalar", np.int32([5]), scalar=2.5, is_int=False).dtype == np.float64
    assert run("exp", np.int32([1, 2])).tolist() == [2, 7]
    assert run("sum", np.uint8([200, 100])).dtype == np.uint8
    assert run("mean", np.int32([-1, -2, 0])).tolist() == [-1]
    assert run("where", [1, 0], [big, big], [big + 2, big + 2]).tolist() == [big, big + 2]


@pytest.mark.parametrize("axis", [0, (0, 2), (0, 1)])
def test_many_numbers_along_leading_axes_are_summed_without_loss(axis):
    data = mx.nd.full((200_000, 2, 3), 0.1)
    count = 600_000 if axis == (0, 2) else 400_000 if axis == (0, 1) else 200_000
    for found, expected in (
        (mx.nd.sum(data, axis=axis), count * 0.1),
        (mx.nd.nansum(data, axis=axis), count * 0.1),
        (mx.nd.mean(data, axis=axis), 0.1),
        (mx.nd.norm(data, ord=1, axis=axis), count * 0.1),
        (mx.nd.norm(data, axis=axis), (count * 0.01) ** 0.5),
    ):
        np.testing.assert_allclose(found.asnumpy(), expected, rtol=1e-6)


def test_gradients_of_what_many_rows_share_are_summed_without_loss():
    shared = mx.nd.zeros((1, 2))
    weight, bias = mx.nd.ones((2, 2)), mx.nd.zeros(2)
    for each in (shared, bias):
        each.attach_grad()
    rows = mx.nd.ones((200_000, 2))
    with mx.autograd.record():
        out = mx.nd.FullyConnected(mx.nd.broadcast_add(rows, shared), weight, bias, num_hidden=2)
    out.backward(mx.nd.full(out.shape, 0.1))
    np.testing.assert_allclose(bias.grad.asnumpy(), 20_000, rtol=1e-6)
    np.testing.assert_allclose(shared.grad.asnumpy(), 40_000, rtol=1e-6)


def test_float16_is_summed_in_float32():
    ones = np.full((1, 4096), 1 + 2**-10, np.float16)
    assert run("sum", ones).tolist() == [np.float16(4096 * (1 + 2**-10))]
    assert run("dot", ones, ones.T).tolist() == [[np.float16(4096 * (1 + 2**-10) ** 2)]]
    invocation = invoke("take", np.zeros((1, 1), np.float16), np.zeros(4096, np.int32))
    invocation.forward()
    grad, _ = invocation.backward([np.full((4096, 1), 2**-4, np.float16)])
    assert grad.tolist() == [[256]]


# -- nothing at all --------------------------------------------------------------------------------------

NOTHING = [
    ("exp", [(0, 3)], {}, (0, 3)),
    ("elemwise_add", [(0, 3), (0, 3)], {}, (0, 3)),
    ("broadcast_mul", [(0, 3), (1, 3)], {}, (0, 3)),
    ("sum", [(0, 3)], {"axis": 0}, (3,)),
    ("sum", [(0, 3)], {}, (1,)),
    ("mean", [(2, 0)], {"axis": 0}, (0,)),
    ("dot", [(2, 0), (0, 3)], {}, (2, 3)),
    ("dot", [(0, 2), (2, 3)], {}, (0, 3)),
    ("batch_dot", [(0, 2, 3), (0, 3, 1)], {}, (0, 2, 1)),
    ("Reshape", [(0, 6)], {"shape": (0, 2, 3)}, (0, 2, 3)),
    ("Flatten", [(0, 2, 3)], {}, (0, 6)),
    ("transpose", [(0, 3)], {}, (3, 0)),
    ("slice", [(3, 2)], {"begin": 2, "end": 2}, (0, 2)),
    ("Concat", [(0, 2), (3, 2)], {"dim": 0, "num_args": 2}, (3, 2)),
    ("SliceChannel", [(0, 4)], {"num_outputs": 2}, (0, 2)),
    ("take", [(3, 2), (0,)], {}, (0, 2)),
    ("Embedding", [(0,), (3, 2)], {"input_dim": 3, "output_dim": 2}, (0, 2)),
    ("pick", [(0, 3), (0,)], {}, (0,)),
    ("one_hot", [(0,)], {"depth": 3}, (0, 3)),
    ("gather_nd", [(3, 2), (1, 0)], {}, (0, 2)),
    ("scatter_nd", [(0, 2), (1, 0)], {"shape": (3, 2)}, (3, 2)),
    ("where", [(0, 2), (0, 2), (0, 2)], {}, (0, 2)),
    ("sort", [(0, 3)], {}, (0, 3)),
    ("argsort", [(0, 3)], {}, (0, 3)),
    ("topk", [(0, 3)], {"k": 2, "ret_typ": "value"}, (0, 2)),
    ("tile", [(0, 2)], {"reps": (2, 2)}, (0, 4)),
    ("repeat", [(0, 2)], {"repeats": 2, "axis": 1}, (0, 4)),
    ("repeat", [(3, 2)], {"repeats": 0, "axis": 1}, (3, 0)),
    ("Pad", [(0, 1, 2, 2)], {"mode": "edge", "pad_width": (0, 0, 0, 0, 1, 1, 1, 1)}, (0, 1, 4, 4)),
    ("cumsum", [(0, 2)], {"axis": 0}, (0, 2)),
    ("norm", [(0, 2)], {"axis": 0}, (2,)),
    ("broadcast_to", [(1, 2)], {"shape": (1, 2)}, (1, 2)),
    ("depth_to_space", [(0, 4, 2, 2)], {"block_size": 2}, (0, 1, 4, 4)),
    ("SequenceMask", [(0, 2)], {}, (0, 2)),
]


@pytest.mark.parametrize(("name", "shapes", "params", "expected"), NOTHING, ids=lambda v: str(v)[:40])
def test_nothing(name, shapes, params, expected):
    invocation = invoke(name, *(np.zeros(s, np.float32) for s in shapes), **params)
    outputs = invocation.forward()
    assert outputs[0].shape == expected
    for req in ("write", "add"):
        grads = invocation.backward([np.ones_like(o) for o in outputs], req)
        assert [g.shape for g in grads] == shapes
        assert all(np.isfinite(g).all() for g in grads)


def test_sums_of_nothing_are_zero():
    assert run("sum", np.zeros((0, 3), np.float32)).tolist() == [0]
    assert run("prod", np.zeros((0, 3), np.float32)).tolist() == [1]
    assert run("dot", np.zeros((1, 0)), np.zeros((0, 2))).tolist() == [[0, 0]]


# -- hostile indices -------------------------------------------------------------------------------------

HOSTILE = np.float32([np.nan, np.inf, -np.inf, 1e30, -1e30, 2.9, -0.9])


def test_hostile_indices_are_clipped_or_wrapped():
    data = np.float32([10, 20, 30])
    assert run("take", data, HOSTILE).tolist() == [10, 30, 10, 30, 10, 30, 10]
    assert set(run("take", data, HOSTILE, mode="wrap").tolist()) <= {10, 20, 30}
    rows = np.tile(data, (len(HOSTILE), 1))
    assert run("pick", rows, HOSTILE).tolist() == [10, 30, 10, 30, 10, 30, 10]
    table = data[:, None]
    assert run("Embedding", HOSTILE, table, input_dim=3, output_dim=1)[:, 0].tolist() == [
        10, 30, 10, 30, 10, 30, 10,
    ]  # fmt: skip
    assert run("one_hot", HOSTILE, depth=3).sum(axis=1).tolist() == [0, 0, 0, 0, 0, 1, 1]  # as in MXNet


def test_gradients_of_repeated_indices_add_up_in_order():
    invocation = invoke("take", np.zeros((3, 2), np.float32), np.int32([1, 1, 0, 1]))
    invocation.forward()
    grad, of_index = invocation.backward([np.float32([[1, 2], [3, 4], [5, 6], [7, 8]])])
    assert grad.tolist() == [[5, 6], [11, 14], [0, 0]]
    assert not of_index.any()


def test_negative_indices_count_from_the_end_with_their_gradient():
    """MXNet reads them so, but its gradient lands elsewhere and its scatter_nd leaves the array."""
    data = np.arange(12, dtype=np.float32).reshape(3, 4)
    invocation = invoke("gather_nd", data, np.float32([[-1, 1], [0, -2]]))
    assert invocation.forward()[0].tolist() == [8, 6]
    grad, _ = invocation.backward([np.float32([1, 2])])
    assert np.argwhere(grad).tolist() == [[1, 2], [2, 0]]
    out = run("scatter_nd", np.float32([5]), np.float32([[-1], [0]]), shape=(2, 2))
    assert out.tolist() == [[0, 0], [5, 0]]


def test_scatter_keeps_the_last_of_equal_indices():
    assert run("scatter_nd", np.float32([1, 2, 3]), [[0, 0, 1]], shape=(3,)).tolist() == [2, 3, 0]


# -- orders ----------------------------------------------------------------------------------------------


def test_equal_entries_keep_their_order():
    data = np.float32([[1, 3, 3, 2, 3, 1]])
    assert run("topk", data, k=4).tolist() == [[1, 2, 4, 3]]
    assert run("topk", data, k=4, is_ascend=True).tolist() == [[0, 5, 3, 1]]
    assert run("argsort", data, is_ascend=False).tolist() == [[1, 2, 4, 3, 0, 5]]
    assert run("topk", data, k=2, ret_typ="mask").tolist() == [[0, 1, 1, 0, 0, 0]]
    values, indices = run("topk", data, k=2, ret_typ="both", dtype="int32")
    assert (values.tolist(), indices.tolist(), indices.dtype) == ([[3, 3]], [[1, 2]], np.int32)
    assert run("argmax", data, axis=1).tolist() == [1]


@pytest.mark.parametrize("ascending", [False, True])
@pytest.mark.parametrize("what", ["all different", "equal ones", "NaN"])
@pytest.mark.parametrize(("shape", "axis"), [((50, 90), 1), ((3, 70, 25), 1), ((5000,), None), ((64, 65), 0)])
def test_the_first_of_many_entries(shape, axis, what, ascending):
    data = np.random.default_rng(0).permutation(math.prod(shape)).reshape(shape).astype(np.float32)
    if what == "equal ones":
        data = data % 7
    if what == "NaN":
        data[data % 11 == 0] = np.nan
    flat = data.reshape(-1) if axis is None else data
    place = axis or 0
    # NaN are the last in ascending order, and the first in descending.
    key = flat if ascending else np.where(np.isnan(flat), -np.inf, -flat)
    order = np.argsort(key, axis=place, kind="stable")
    expected = np.take(order, range(7), place)
    found = run("topk", data, k=7, axis=axis, is_ascend=ascending, dtype="int32")
    np.testing.assert_array_equal(found, expected)


def test_sorting_smallest_integers():
    data = np.array([np.iinfo(np.int64).min, 0, 5])
    assert run("sort", data, is_ascend=False).tolist() == data[::-1].tolist()


# -- one array in two places -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["elemwise_add", "elemwise_sub", "elemwise_mul", "_maximum", "broadcast_div"]
)
def test_one_gradient_buffer_for_both_operands(name):
    """A graph that feeds one array to both inputs asks for write, then add, into one buffer."""
    rng = np.random.default_rng(0)
    x, head = rng.uniform(1, 2, (2, 3)), rng.uniform(1, 2, (2, 3))
    apart = invoke(name, x, x)
    apart.forward()
    expected = np.add(*apart.backward([head]))
    shared = np.full_like(x, np.nan)
    together = invoke(name, x, x)
    together.forward()
    together.backward([head], ["write", "add"], [shared, shared])
    np.testing.assert_allclose(shared, expected, rtol=1e-12)


# -- inference -------------------------------------------------------------------------------------------


def test_reshape_codes():
    reshape = get("Reshape")

    def shape_of(codes, data=(2, 3, 4), reverse=False):
        prop = reshape.create({"shape": codes, "reverse": reverse})
        return prop.infer_shape([data])[1][0]

    assert shape_of((4, 0, 2)) == (4, 3, 2)
    assert shape_of((2, 0, 0)) == (2, 3, 4)
    assert shape_of((6, 1, -1)) == (6, 1, 4)
    assert shape_of((3, -1, 8)) == (3, 1, 8)
    assert shape_of((-1,)) == (24,)
    assert shape_of((-2,)) == (2, 3, 4)
    assert shape_of((2, -2)) == (2, 3, 4)
    assert shape_of((-2, 1, 1)) == (2, 3, 4, 1, 1)
    assert shape_of((-3, 4)) == (6, 4)
    assert shape_of((-3, -3), (2, 3, 4, 5)) == (6, 20)
    assert shape_of((0, -3)) == (2, 12)
    assert shape_of((-3, -2)) == (6, 4)
    assert shape_of((-4, 1, 2, -2)) == (1, 2, 3, 4)
    assert shape_of((2, -4, -1, 3, -2)) == (2, 1, 3, 4)
    assert shape_of((-1, 0), (10, 5, 4)) == (40, 5)
    assert shape_of((-1, 0), (10, 5, 4), reverse=True) == (50, 4)
    assert shape_of((0, 2, -1, -4), (3, 8), reverse=True) == (3, 2, 4)  # codes are read from the right
    assert shape_of((-2, -1, 16, -4), (1, 2, 3, 64), reverse=True) == (1, 2, 3, 4, 16)
    assert shape_of((0, -1), (-1, 3, 4)) == (-1, -1)
    assert shape_of((0, 0, -1), (-1, 3, 4)) == (-1, 3, -1)


def test_shapes_flow_back_from_outputs():
    def back(name, given, out, **params):
        return get(name).create(params).infer_shape_from_outputs(given, [out])

    assert back("exp", [None], (2, 3)) == [(2, 3)]
    assert back("elemwise_add", [(2, -1), None], (-1, 3)) == [(2, 3), (2, 3)]
    assert back("Reshape", [(-1, 4)], (2, 6), shape=(-1, 6)) == [(3, 4)]
    assert back("transpose", [None], (2, 3, 4), axes=(2, 0, 1)) == [(3, 4, 2)]
    assert back("Concat", [(2, 3), None], (2, 8), num_args=2) == [(2, 3), (2, 5)]
    assert back("expand_dims", [None], (2, 1, 3), axis=1) == [(2, 3)]
    split = get("SliceChannel").create({"num_outputs": 2})
    assert split.infer_shape_from_outputs([None], [(2, 3), None]) == [(2, 6)]
    squeezed = get("SliceChannel").create({"num_outputs": 2, "squeeze_axis": True})
    assert squeezed.infer_shape_from_outputs([None], [None, (2, 3)]) == [(2, 2, 3)]


def test_weights_of_an_embedding_follow_from_its_parameters():
    prop = get("Embedding").create({"input_dim": 7, "output_dim": 3, "dtype": "float64"})
    assert prop.infer_shape([(2, 5), None]) == ([(2, 5), (7, 3)], [(2, 5, 3)])
    assert prop.infer_type([np.dtype(np.int32), None])[1] == [np.dtype(np.float64)]


def test_multicast():
    half, single = np.float16([1]), np.float32([2])
    kinds = [np.float16, np.float32]
    for narrow, kind in zip((True, False), kinds, strict=True):
        outputs = run("amp_multicast", half, single, num_outputs=2, cast_narrow=narrow)
        assert [o.dtype for o in outputs] == [kind, kind]


def test_creation():
    assert run("_arange", start=5, stop=1, step=-1.5, dtype="int32").tolist() == [5, 4, 3]
    assert run("_arange", start=2, stop=4, repeat=2).tolist() == [2, 2, 3, 3]
    assert run("_full", shape=(2,), value=2.5, dtype="int32").tolist() == [2, 2]
    assert run("_eye", N=2, M=3, k=1).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert run("_unravel_index", [5, 7], shape=(3, 4)).tolist() == [[1, 1], [1, 3]]
    assert run("_ravel_multi_index", [[1, 1], [1, 3]], shape=(3, 4)).tolist() == [5, 7]
    assert run("fill_element_0index", np.zeros((2, 3)), [5.0, 6.0], [0, 2]).tolist() == [[5, 0, 0], [0, 0, 6]]


# -- in a graph ------------------------------------------------------------------------------------------


def test_reshapes_cost_no_memory_and_the_gradient_arrives():
    data = roiops.sym.Variable("data")
    out = roiops.sym.Flatten(roiops.sym.expand_dims(roiops.sym.Reshape(data, shape=(0, -1)), axis=1)) * 2
    executor = out.simple_bind(roiops.cpu(), data=(2, 3, 4))
    executor.arg_dict["data"][:] = np.arange(24).reshape(2, 3, 4)
    executor.forward(is_train=True)
    np.testing.assert_array_equal(executor.outputs[0].asnumpy(), 2 * np.arange(24).reshape(2, 12))
    executor.backward(roiops.nd.ones((2, 12)))
    np.testing.assert_array_equal(executor.grad_dict["data"].asnumpy(), np.full((2, 3, 4), 2))


def test_stopped_gradients():
    a = roiops.sym.Variable("a")
    out = a * roiops.sym.BlockGrad(a)
    executor = out.simple_bind(roiops.cpu(), a=(2,))
    executor.arg_dict["a"][:] = [2, 3]
    executor.forward(is_train=True)
    executor.backward(roiops.nd.ones((2,)))
    assert executor.grad_dict["a"].asnumpy().tolist() == [2, 3]


def test_one_array_three_times_in_a_sum():
    """The sum takes over no memory that it still has to read."""
    a = roiops.sym.Variable("a")
    doubled = a * 2
    tripled = roiops.sym.add_n(doubled, doubled, doubled) + 1
    executor = tripled.simple_bind(roiops.cpu(), a=(3,), grad_req="null")
    executor.arg_dict["a"][:] = [1, 2, 3]
    for _ in range(2):
        assert executor.forward()[0].asnumpy().tolist() == [7, 13, 19]


@pytest.mark.parametrize(
    ("name", "params", "gradient"),
    [("sort", {}, [2, 3, 1]), ("topk", {"k": 2, "ret_typ": "value"}, [1, 0, 2])],
)
def test_hidden_indices_reach_backward(name, params, gradient):
    a = roiops.sym.Variable("a")
    executor = getattr(roiops.sym, name)(a, **params).simple_bind(roiops.cpu(), a=(3,))
    executor.arg_dict["a"][:] = [5, 1, 3] if name == "topk" else [5, 7, 3]
    executor.forward(is_train=True)
    executor.backward(roiops.nd.array([1, 2, 3][: len(executor.outputs[0])]))
    assert executor.grad_dict["a"].asnumpy().tolist() == gradient


# -- answers of MXNet 1.9.1 ------------------------------------------------------------------------------


def test_the_remainder_of_whole_numbers_has_no_gradient():
    node = invoke("_mod", np.array([5, 5], np.int32), np.array([3, 0], np.int32))
    assert node.forward()[0].tolist() == [2, 0]
    assert [g.tolist() for g in node.backward([np.ones(2, np.int32)])] == [[0, 0], [0, 0]]


def test_a_leading_length_that_only_the_indices_tell():
    assert run("ravel_multi_index", np.array([[1, 2], [0, 1]]), shape=(-1, 4)).tolist() == [4, 9]
    assert run("unravel_index", np.array([7, 9]), shape=(-1, 4)).tolist() == [[1, 2], [3, 1]]
    with pytest.raises(
        MXNetError, match=r"shape must be of lengths of 1 or more, or -1 for the first, got \(4, -1\)"
    ):
        run("unravel_index", np.array([7]), shape=(4, -1))


@pytest.mark.parametrize(
    ("data", "k"), [(np.ones((2, 5)), 1), (np.ones((5, 2)), -1), ([1, 2], 1), ([1, 2], -2)]
)
def test_a_diagonal_beside_the_main_one(data, k):
    data = np.cumsum(data, axis=0)
    np.testing.assert_array_equal(run("diag", data, k=k), np.diag(data, k))


def test_a_diagonal_beyond_the_matrix():
    assert run("diag", np.ones((3, 3)), k=3).shape == (0,)
    with pytest.raises(MXNetError, match="diag: matrices of 2 x 3 have no diagonal -3"):
        run("diag", np.ones((2, 3)), k=-3)


def test_broadcast_like_with_no_axis_named():
    with pytest.raises(MXNetError, match="lhs_axes and rhs_axes must name an axis, or be left out"):
        run("broadcast_like", np.ones((1, 2)), np.ones((3, 2)), lhs_axes=(), rhs_axes=())


def test_an_index_out_of_bounds_is_an_index_error():
    with pytest.raises(IndexError, match=r"gather_nd: indices must be in \[-3, 2\] .*, got 5 at \(0,\)"):
        run("gather_nd", np.ones((3, 3)), np.array([[5], [0]]))


def test_what_kind_of_number():
    data = np.array([1, np.nan, np.inf, -np.inf], np.float32)
    assert run("_contrib_isnan", data).tolist() == [0, 1, 0, 0]
    assert run("_contrib_isinf", data).tolist() == [0, 0, 1, 1]
    assert run("_contrib_isfinite", data).tolist() == [1, 0, 0, 0]


@pytest.mark.parametrize(
    ("name", "params", "shapes", "out"),
    [
        ("Embedding", {"input_dim": 100, "output_dim": 10}, [(-1, 5), (100, 10)], (-1, 5, 10)),
        ("pick", {"axis": 1}, [(-1, 3, 3), (-1, 3)], (-1, 3)),
        ("slice", {"begin": (2, 3), "end": (None, 10), "step": (3, 3)}, [(-1, 20)], (-1, 3)),
        ("slice_axis", {"axis": 0, "begin": 0, "end": 5}, [(10, -1)], (5, -1)),
        ("slice_axis", {"axis": 1, "begin": 0, "end": 5}, [(10, -1)], (10, -1)),
    ],
)
def test_shapes_known_in_part(name, params, shapes, out):
    assert get(name).create(params).infer_shape(shapes)[1] == [out]


def test_the_gradient_of_relu_at_nan_is_nan():
    """As in MXNet; that of ``Activation`` is 0 there."""
    executor = mx.sym.relu(mx.sym.Variable("x")).simple_bind(mx.cpu(), x=(3,))
    executor.forward(is_train=True, x=mx.nd.array([np.nan, 1, -1]))
    executor.backward(mx.nd.ones((3,)) * 2)
    np.testing.assert_array_equal(executor.grad_dict["x"].asnumpy(), [np.nan, 2, 0])


@pytest.mark.parametrize("name", ["max", "min"])
def test_nothing_has_no_largest_or_smallest_entry(name):
    with pytest.raises(ShapeError, match=rf"{name}: data has no entries, its shape is \(5, 0\)"):
        run(name, np.zeros((5, 0), np.float32))


def test_pictures_without_pixels_are_not_rearranged():
    with pytest.raises(ShapeError, match=r"data has no channels or pixels, its shape is \(1, 4, 0, 2\)"):
        run("depth_to_space", np.zeros((1, 4, 0, 2), np.float32), block_size=2)


def test_arrays_without_dimensions_and_without_entries():
    one = np.float32(4)
    assert run("slice_like", one, one).shape == run("_contrib_div_sqrt_dim", one).shape == ()
    assert run("stack", one, num_args=1).tolist() == [4]
    assert run("_random_generalized_negative_binomial_like", one).shape == ()
    assert run("_sample_multinomial", np.zeros((0, 3), np.float32), shape=2).shape == (0, 2)
    mean, variance = run("moments", np.zeros((2, 0), np.float32), axes=1)
    assert np.isnan([*mean, *variance, *run("mean", np.zeros((2, 0), np.float32), axis=1)]).all()


@pytest.mark.parametrize(
    "width", [(0, 0, 0, 0, 1, 0, 1, 0), (0, 0, 0, 0, 0, 2, 3, 1), (0, 0, 0, 0, 0, 0, 0, 0)]
)
@pytest.mark.parametrize("size", [(0, 2), (3, 1), (5, 40)])
def test_bound_padding(width, size):
    data = np.random.default_rng(0).standard_normal((2, 3, *size), dtype=np.float32)
    pad = mx.sym.Pad(mx.sym.var("data"), mode="constant", pad_width=width, constant_value=-1.5)
    found = pad.bind(mx.cpu(), {"data": mx.nd.array(data)}).forward()[0].asnumpy()
    pairs = list(zip(width[::2], width[1::2], strict=True))
    np.testing.assert_array_equal(found, np.pad(data, pairs, constant_values=np.float32(-1.5)))


@pytest.mark.parametrize(
    ("name", "params", "part"),
    [
        ("slice", {"begin": (None, None, 1, 1), "end": (None,) * 4}, np.s_[:, :, 1:, 1:]),
        ("slice", {"begin": (0, 0, 5, 2), "end": (2, 15, 75, 12)}, np.s_[:, :, 5:75, 2:12]),
        ("slice", {"begin": (None,) * 4, "end": (None,) * 4, "step": (1, 1, -1, 1)}, np.s_[:, :, ::-1]),
        ("slice", {"begin": (0, 1, 3, 0), "end": (2, 14, 80, 90)}, np.s_[:, 1:14, 3:]),
        ("slice_axis", {"axis": 3, "begin": -85, "end": None}, np.s_[..., -85:]),
        ("Crop", {"num_args": 1, "h_w": (70, 81), "center_crop": True}, np.s_[:, :, 5:75, 4:85]),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_bound_slices_of_many_numbers(name, params, part, dtype):
    data = np.random.default_rng(0).standard_normal((2, 15, 80, 90)).astype(dtype)
    symbol = getattr(mx.sym, name)(mx.sym.var("data", dtype=dtype), **params)
    found = symbol.bind(mx.cpu(), {"data": mx.nd.array(data, dtype=dtype)}).forward()[0].asnumpy()
    np.testing.assert_array_equal(found, data[part])


@pytest.mark.parametrize(
    ("shape", "axes"),
    [
        ((2, 40, 61, 57), (0, 2, 3, 1)),
        ((2, 61, 57, 40), (0, 3, 1, 2)),
        ((301, 511), (1, 0)),
        ((2, 17, 33, 130), (0, 1, 3, 2)),
        ((2, 3, 200, 130), (0, 2, 3, 1)),
        ((9, 40, 12, 64), (2, 0, 3, 1)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_axes_of_many_numbers_that_change_places(shape, axes, dtype):
    data = mx.nd.array(np.random.default_rng(0).standard_normal(shape), dtype=dtype)
    symbol = mx.sym.transpose(mx.sym.var("data", dtype=dtype), axes=axes)
    expected = data.asnumpy().transpose(axes)
    bound = symbol.bind(mx.cpu(), {"data": data}, {"data": mx.nd.zeros(shape, dtype=dtype)})
    np.testing.assert_array_equal(bound.forward()[0].asnumpy(), expected)
    bound.backward(mx.nd.array(expected, dtype=dtype))
    np.testing.assert_array_equal(bound.grad_arrays[0].asnumpy(), data.asnumpy())
    np.testing.assert_array_equal(mx.nd.transpose(data, axes=axes).asnumpy(), expected)


def test_axes_that_change_places_in_their_own_memory():
    data = np.random.default_rng(0).standard_normal((400, 400), dtype=np.float32)
    turned = data.T.copy()
    arrays.evaluate(None, [data.T], data)
    np.testing.assert_array_equal(data, turned)


@pytest.mark.parametrize("shape", [(1, 2, 64, 31, 33), (3, 250, 200), (2, 3, 20_000), (1, 1, 40_000)])
def test_sums_of_a_few_large_arrays(shape):
    data = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    axis = 0 if shape[0] == 3 else 1
    summed = mx.sym.sum(mx.sym.var("data"), axis=axis).bind(mx.cpu(), {"data": mx.nd.array(data)})
    np.testing.assert_array_equal(summed.forward()[0].asnumpy(), np.add.reduce(data, axis=axis))


def test_negative_zeros_of_large_arrays_add_up_to_zero():
    data = mx.nd.array(np.full((2, 40_000), -0.0))
    summed = mx.sym.sum(mx.sym.var("data"), axis=0).bind(mx.cpu(), {"data": data})
    assert not np.signbit(summed.forward()[0].asnumpy()).any()


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8"])
def test_short_rows_that_are_joined_and_cut(dtype):
    rng = np.random.default_rng(0)
    parts = [rng.integers(-9, 9, (2, 50, width)).astype(dtype) for width in (1, 4, 2, 17, 0)]
    names = [f"x{i}" for i in range(len(parts))]
    joined = mx.sym.concat(*(mx.sym.var(name, dtype=dtype) for name in names), dim=-1)
    graph = mx.sym.Group(
        [joined, *mx.sym.split_v2(joined, (1, 5, 7), axis=-1), mx.sym.slice_axis(joined, 2, 3, 7)]
    )
    arrays = {name: mx.nd.array(part, dtype=dtype) for name, part in zip(names, parts, strict=True)}
    found = [each.asnumpy() for each in graph.bind(mx.cpu(), arrays).forward()]
    whole = np.concatenate(parts, axis=-1)
    for got, wanted in zip(found, [whole, *np.split(whole, (1, 5, 7), -1), whole[..., 3:7]], strict=True):
        np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("size", [1, 37, 20_000])
def test_bound_relu(size):
    data = np.resize(np.float32([1.5, -2, 0.0, np.nan, np.inf, -np.inf, 3]), size)
    relu = mx.sym.Activation(mx.sym.var("data"), act_type="relu")
    found = relu.bind(mx.cpu(), {"data": mx.nd.array(data)}).forward()[0].asnumpy()
    np.testing.assert_array_equal(found, np.maximum(data, 0))
