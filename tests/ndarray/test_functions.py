"""Operators as functions on arrays: how arguments are read, what comes back, what errors say."""

import gc
import threading
import weakref

import golden_files
import numpy as np
import pytest

import roiops as mx
from roiops import nd, registry
from roiops.errors import DeviceError, DTypeError, MXNetError, ParamError, ShapeError
from roiops.ndarray import invoke
from roiops.operators import imperative
from roiops.operators.base import Operator, OperatorProperty
from roiops.operators.imperative import Invocation
from roiops.params import Field, Parameter


def values(array):
    return array.asnumpy().tolist()


@pytest.fixture
def own_registry(monkeypatch):
    """A registry that forgets what a test registers."""
    monkeypatch.setattr(registry, "_properties", dict(registry._properties))


# -- namespaces ------------------------------------------------------------------------------------------


def test_operators_are_functions_with_a_page_and_a_signature():
    assert nd.FullyConnected.__name__ == "FullyConnected"
    assert list(nd.FullyConnected.__signature__.parameters)[:4] == ["data", "weight", "bias", "num_hidden"]
    assert "num_hidden : int" in nd.FullyConnected.__doc__
    assert nd.exp is nd.exp
    assert nd.op.exp(nd.zeros((1,))).asscalar() == 1


def test_namespaces_list_operators():
    assert {"FullyConnected", "exp", "zeros", "save"} <= set(dir(nd))
    assert "_plus_scalar" not in dir(nd)
    assert "_plus_scalar" in registry.list_operators(aliases=True)
    assert "box_nms" in dir(nd.contrib)
    assert nd.contrib.box_nms.__name__ == "box_nms"
    assert values(nd._internal._plus_scalar(nd.ones((2,)), scalar=2)) == [3, 3]


@pytest.mark.parametrize("space", [nd, nd.contrib, nd.op, nd._internal])
def test_unknown_operator_is_an_attribute_error(space):
    with pytest.raises(AttributeError, match=r"operator '(contrib\.)?no_such_operator' is not registered"):
        _ = space.no_such_operator


def test_errors_name_an_operator_as_users_write_it():
    data, rois = np.zeros((1, 3, 8, 8), np.float32), np.zeros((2, 4), np.float32)
    size = {"pooled_size": (2, 2), "spatial_scale": 1}
    text = r"^contrib\.ROIAlign: rois must have shape \(num_rois, 5\), got \(2, 4\)$"
    with pytest.raises(MXNetError, match=text):
        nd.contrib.ROIAlign(data, rois, **size)
    with pytest.raises(MXNetError, match=r"^contrib\.ROIAlign: unknown parameter 'pooled'; did you mean"):
        nd.contrib.ROIAlign(data, rois, pooled=(2, 2))
    with pytest.raises(MXNetError, match=r"^contrib\.ROIAlign: the inputs .* are data, rois; rois missing"):
        nd.contrib.ROIAlign(data, **size)
    with pytest.raises(TypeError, match=r"^contrib\.ROIAlign: data must be an NDArray or a NumPy array"):
        nd.contrib.ROIAlign([[1.0]], rois, **size)


class ScaleParam(Parameter):
    factor = Field(float, 2.0, doc="what to multiply by")


class ScaleOp(Operator):
    def forward(self, ctx, in_data, req, out_data, aux):
        np.multiply(in_data[0], self.params.factor, out=out_data[0])


class ScaleProp(OperatorProperty):
    """Multiply by a number."""

    param, op = ScaleParam, ScaleOp


def test_operator_of_a_users_module_is_a_function_and_a_method(own_registry):
    registry.register("test_scale", "_contrib_test_scale")(ScaleProp)
    assert values(nd.test_scale(nd.ones((2,)), 3)) == [3, 3]
    assert values(nd.contrib.test_scale(nd.ones((2,)))) == [2, 2]
    assert values(nd.ones((2,)).test_scale(factor=4)) == [4, 4]
    assert "test_scale" in dir(nd)
    assert "what to multiply by" in nd.test_scale.__doc__.lower()


# -- arguments -------------------------------------------------------------------------------------------


def test_inputs_come_first_then_parameters_in_order():
    x, w, b = nd.ones((1, 2)), nd.ones((3, 2)), nd.array([1, 2, 3])
    expected = [[3, 4, 5]]
    assert values(nd.FullyConnected(x, w, b, 3)) == expected
    assert values(nd.FullyConnected(x, w, b, num_hidden=3)) == expected
    assert values(nd.FullyConnected(data=x, bias=b, weight=w, num_hidden=3)) == expected
    assert values(nd.FullyConnected(x, w, None, 3, True)) == [[2, 2, 2]]
    assert values(nd.sum(nd.ones((2, 3)), None, True)) == [[6]]


def test_parameters_may_be_mxnets_strings():
    assert nd.sum(nd.ones((2, 3)), axis="(1,)", keepdims="True").shape == (2, 1)


def test_numpy_arrays_are_inputs_and_keep_their_dtype():
    result = nd.exp(np.zeros(2))
    assert isinstance(result, nd.NDArray)
    assert result.dtype is np.float64
    mixed = nd.broadcast_add(nd.ones((2,)), np.ones(2, np.float32))
    assert values(mixed) == [2, 2]


def test_any_number_of_inputs():
    a, b = nd.ones((1, 2)), nd.zeros((1, 2))
    assert values(nd.concat(a, b, dim=0)) == [[1, 1], [0, 0]]
    assert values(nd.concat(a, b, num_args=2, dim=1)) == [[1, 1, 0, 0]]
    assert values(nd.concat([a, b], dim=0)) == [[1, 1], [0, 0]]
    assert values(nd.concatenate([a, b], axis=0)) == [[1, 1], [0, 0]]
    assert values(nd.add_n(a, a, a)) == [[3, 3]]


def test_auxiliary_states_are_inputs():
    x = nd.array([[1.0], [3.0]])
    result = nd.BatchNorm(
        x, nd.ones((1,)), nd.ones((1,)), nd.array([1]), nd.array([4]), fix_gamma=False, eps=1e-3
    )
    np.testing.assert_allclose(result.asnumpy(), [[1], [1 + 2 / np.sqrt(4.001)]], rtol=1e-6)


def test_ctx_places_what_has_no_inputs():
    for ctx in (mx.cpu(1), "cpu(1)"):
        assert nd._internal._zeros(shape=(2,), ctx=ctx).context == mx.cpu(1)
    assert nd._internal._zeros((2,)).context == mx.cpu(0)
    assert nd._internal._zeros(shape=(2,), ctx="cpu").context == mx.cpu(0)
    with pytest.raises(DeviceError, match="ctx must be a context such as 'cpu\\(0\\)', got 'cpu 0'"):
        nd._internal._zeros(shape=(2,), ctx="cpu 0")


def test_name_is_accepted_and_has_no_meaning():
    assert values(nd.exp(nd.zeros((1,)), name="foo")) == [1]


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: nd.exp([1.0]), TypeError, "exp: data must be an NDArray or a NumPy array, got list"),
        (lambda x: nd.exp(data=[1.0]), MXNetError, "exp: data must be an NDArray or a NumPy array, got list"),
        (lambda x: nd.exp(), MXNetError, "exp: the inputs with these parameters are data; data missing"),
        (lambda x: nd.exp(x, x, x), ParamError, "exp: too many positional arguments: 3, it takes 1"),
        (
            lambda x: nd.FullyConnected(x, x, x, num_hidden=2, no_bias=True),
            MXNetError,
            "the inputs with these parameters are data, weight; bias not among them",
        ),
        (
            lambda x: nd.FullyConnected(x, x, num_hidden=2),
            MXNetError,
            "the inputs with these parameters are data, weight, bias; bias missing",
        ),
        (
            lambda x: nd.FullyConnected(x, x, num_hiden=2),
            ParamError,
            "FullyConnected: unknown parameter 'num_hiden'; did you mean 'num_hidden'",
        ),
        (
            lambda x: nd.FullyConnected(x, data=x, num_hidden=2),
            MXNetError,
            "FullyConnected: input data is given twice",
        ),
        (
            lambda x: nd.FullyConnected(x, x, x, 2, num_hidden=2),
            ParamError,
            "FullyConnected: parameter num_hidden is given twice",
        ),
        (
            lambda x: nd.FullyConnected(x, nd.ones((2, 5)), num_hidden=2, no_bias=True),
            ShapeError,
            r"FullyConnected: weight must have shape \(2, 3\), got \(2, 5\)",
        ),
        (
            lambda x: nd.broadcast_add(x, x.astype("float64")),
            DTypeError,
            "broadcast_add: rhs must have the dtype of lhs, float32, got float64",
        ),
        (
            lambda x: nd.broadcast_add(x, x.as_in_context(mx.cpu(1))),
            DeviceError,
            r"broadcast_add: the inputs are on cpu\(0\) and on cpu\(1\)",
        ),
        (lambda x: nd.concat(x, x, num_args=1), MXNetError, r"Concat: takes 1 inputs \(arg0\), got 2"),
        (lambda x: nd.sum(x, axis=0, ctx=mx.cpu(), foo=1), ParamError, "sum: unknown parameter 'foo'"),
    ],
)
def test_errors_name_operator_and_argument(call, error, text):
    with pytest.raises(error, match=text):
        call(nd.ones((2, 3)))


# -- outputs ---------------------------------------------------------------------------------------------


def test_out_receives_the_result_and_is_returned():
    x, out = nd.zeros((2,)), nd.ones((2,))
    assert nd.exp(x, out=out) is out
    assert values(out) == [1, 1]
    row = nd.zeros((2, 2))
    nd.exp(x, out=row[1])
    assert values(row) == [[0, 0], [1, 1]]


def test_out_may_be_numpy_or_a_list():
    host = np.zeros(2, np.float32)
    assert nd.exp(nd.zeros((2,)), out=host) is host
    assert host.tolist() == [1, 1]
    parts = [nd.zeros((1, 1)), nd.zeros((1, 1))]
    assert nd.split(nd.array([[5, 6]]), num_outputs=2, out=parts) is parts
    assert [values(p) for p in parts] == [[[5]], [[6]]]


def test_out_may_be_an_input():
    x = nd.array([[1, 2], [3, 4]])
    nd.exp(x, out=x)
    np.testing.assert_allclose(x.asnumpy(), np.exp([[1, 2], [3, 4]]), rtol=1e-6)
    y = nd.array([[1, 2], [3, 4]])
    nd.transpose(y, out=y)  # cannot be done in place: goes through other memory
    assert values(y) == [[1, 3], [2, 4]]
    z = nd.array([[1, 2], [3, 4]])
    nd.dot(z, z, out=z)
    assert values(z) == [[7, 10], [15, 22]]


@pytest.mark.parametrize(
    ("out", "error", "text"),
    [
        (lambda: nd.zeros((3,)), ShapeError, r"exp: out must have shape \(2,\), got \(3,\)"),
        (
            lambda: nd.zeros((2,), dtype="float64"),
            DTypeError,
            "exp: out must have dtype float32, got float64",
        ),
        (lambda: [nd.zeros((2,))] * 2, ShapeError, "exp: has 1 outputs, got 2 arrays in out"),
        (lambda: 3, TypeError, "exp: out must be an NDArray or a NumPy array, got int"),
    ],
)
def test_wrong_out(out, error, text):
    with pytest.raises(error, match=text):
        nd.exp(nd.zeros((2,)), out=out())


def test_hidden_outputs_are_neither_computed_nor_returned(own_registry):
    seen = []

    class TwoOp(Operator):
        def forward(self, ctx, in_data, req, out_data, aux):
            seen.append((list(req), out_data[1]))
            out_data[0][...] = in_data[0]

    @registry.register("test_two")
    class TwoProp(OperatorProperty):
        op, outputs, visible_outputs = TwoOp, ("output", "mask"), 1

    assert values(nd.test_two(nd.ones((1,)))) == [1]
    assert seen == [(["write", "null"], None)]


def first_cases():
    """A recorded call of each built-in operator that has outputs only backward reads."""
    hiding = {name for name in registry.list_operators() if registry.get(name).visible_outputs is not None}
    found = {}
    for file in golden_files.names("ops"):
        for case in golden_files.load(file):
            if case.op in hiding:
                found.setdefault(case.op, case)
    return [pytest.param(case, id=op) for op, case in found.items()]


@pytest.mark.parametrize("case", first_cases())
def test_leaving_out_hidden_outputs_leaves_the_visible_ones(case):
    prop = registry.get(case.op).create(dict(case.params))
    names = (*prop.list_arguments(), *(f"aux_{name}" for name in prop.list_auxiliary_states()))
    inputs = [case[name] for name in names]
    count = len(prop.list_arguments())
    expected = Invocation(prop, inputs[:count], [each.copy() for each in inputs[count:]]).forward()
    found = getattr(nd.op, case.op)(*inputs, **case.params)
    for one, other in zip(found if isinstance(found, list) else [found], expected, strict=True):
        np.testing.assert_array_equal(one.asnumpy(), other)


def test_an_operator_without_a_gpu_kernel_says_so():
    with pytest.raises(DeviceError, match=r"exp: has no kernel for gpu\(0\); it runs on cpu"):
        invoke.run(registry.get("exp"), {}, [np.ones(1)], mx.gpu(0))


# -- remembered calls ------------------------------------------------------------------------------------


def test_equal_parameters_of_other_kinds_are_not_mixed_up():
    x = nd.array([1.0])
    assert np.signbit((x * 0.0).asscalar()) == np.False_
    assert np.signbit((x * -0.0).asscalar()) == np.True_
    with pytest.raises(ParamError, match="keepdims must be bool"):
        nd.sum(x, keepdims=2)


def test_remembered_plans_are_bounded(monkeypatch):
    monkeypatch.setattr(invoke, "_MOST_PLANS", 8)
    monkeypatch.setattr(invoke, "_plans", {})
    x = nd.ones((1,))
    for i in range(40):
        assert (x + i).asscalar() == 1 + i
        assert len(invoke._plans) <= 8


def test_threads_call_operators_at_once():
    x = nd.array(np.arange(50000, dtype=np.float32))
    wrong = []

    def work(k):
        for _ in range(20):
            if not np.array_equal((x * k + 1).asnumpy(), x.data * k + 1):
                wrong.append(k)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# -- what is kept beside a weight --------------------------------------------------------------------------


def _convolve(data, weight):
    return nd.Convolution(data, weight, num_filter=weight.shape[0], kernel=(3, 3), pad=(1, 1), no_bias=True)


@pytest.fixture
def wide_layer(monkeypatch):
    """Data and weight of a convolution that keeps its filters transformed."""
    monkeypatch.setenv("ROIOPS_WAY", "winograd")
    draw = np.random.default_rng(5).standard_normal
    return nd.array(draw((1, 4096, 5, 5))), nd.array(draw((10, 4096, 3, 3)))


def test_a_weight_changed_in_place_is_seen(wide_layer):
    data, weight = wide_layer
    _convolve(data, weight)
    (_, _, op) = imperative._of_weights[id(weight.data)]
    (forward,) = op._kernels.values()
    assert forward._way._kept.size > weight.size  # there is something that could be stale

    def add():
        nd.elemwise_add(weight, weight, out=weight)

    def assign():
        weight[3, 5] = 7

    def write_below():
        weight.data[9, 2, 0, 0] += 1

    def copy_over():
        nd.array(weight.asnumpy()[::-1]).copyto(weight)

    for change in (add, assign, write_below, copy_over):
        before = _convolve(data, weight).asnumpy()
        change()
        after, anew = _convolve(data, weight).asnumpy(), _convolve(data, weight.copy()).asnumpy()
        np.testing.assert_array_equal(after, anew)
        assert not np.array_equal(after, before)
        assert imperative._of_weights[id(weight.data)][2] is op


def test_an_op_goes_with_its_weight(wide_layer):
    data, weight = (each.copy() for each in wide_layer)
    place = id(weight.data)
    _convolve(data, weight)
    first = weakref.ref(imperative._of_weights[place][2])
    _convolve(nd.concat(data, data, dim=0), weight)  # for other shapes, another one, in its place
    second = weakref.ref(imperative._of_weights[place][2])
    gc.collect()
    assert first() is None
    assert second() is not None
    del weight
    gc.collect()
    assert second() is None


@pytest.mark.parametrize("record", [False, True])
def test_training_keeps_nothing_beside_a_weight(wide_layer, record):
    data, weight = wide_layer
    weight.attach_grad()
    with mx.autograd.record() if record else mx.autograd.train_mode():
        _convolve(data, weight)
    assert id(weight.data) not in imperative._of_weights


def test_memory_of_one_call_is_not_kept(wide_layer):
    data, weight = (each.astype("float16") for each in wide_layer)
    _convolve(data, weight)
    assert not imperative._of_weights[id(weight.data)][2]._scratch


def test_threads_may_call_with_one_weight(wide_layer):
    data, weight = wide_layer
    expected, wrong = _convolve(data, weight).asnumpy(), []

    def work():
        for _ in range(20):
            if not np.array_equal(_convolve(data, weight).asnumpy(), expected):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


# -- functions written in terms of operators -------------------------------------------------------------


def test_moveaxis():
    x = np.arange(24).reshape(2, 3, 4)
    for source, destination in ((0, 1), (0, 2), (-1, 0), ([0, 1], [1, 0]), ((0, 2), (2, 1))):
        moved = nd.moveaxis(nd.array(x), source, destination)
        np.testing.assert_array_equal(moved.asnumpy(), np.moveaxis(x, source, destination))


def test_split_v2():
    x = nd.array([[1, 2, 3, 4]])
    assert [values(p) for p in nd.split_v2(x, 2, axis=1)] == [[[1, 2]], [[3, 4]]]
    assert [values(p) for p in nd.split_v2(x, (1,), axis=1)] == [[[1]], [[2, 3, 4]]]
    assert [values(p) for p in x.split_v2((1,), axis=1)] == [[[1]], [[2, 3, 4]]]
    assert values(nd.split_v2(x, 1)) == values(x)  # no list, as in MXNet
    with pytest.raises(ValueError, match="array split does not result in an equal division"):
        nd.split_v2(x, 3, axis=1)
    with pytest.raises(ValueError, match="indices_or_sections must either int or tuple of ints"):
        nd.split_v2(x, [1], axis=1)


def test_concatenate_of_one_array():
    x = nd.ones((2,))
    assert nd.concatenate([x], always_copy=False) is x
    assert nd.concatenate([x]) is not x
