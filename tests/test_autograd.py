"""mx.autograd: gradients of recorded calls are those of the same graph bound, by every way to record one."""

import gc
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import roiops as mx
from roiops import autograd, nd
from roiops.errors import MXNetError, ParamError, ShapeError


def marked(values, req="write"):
    array = nd.array(values)
    array.attach_grad(req)
    return array


@pytest.fixture
def x():
    return marked([1, 2, 3])


def test_modes_nest_and_end():
    assert (autograd.is_recording(), autograd.is_training()) == (False, False)
    with autograd.record():
        assert (autograd.is_recording(), autograd.is_training()) == (True, True)
        with autograd.predict_mode():
            assert (autograd.is_recording(), autograd.is_training()) == (True, False)
        with autograd.pause():
            assert (autograd.is_recording(), autograd.is_training()) == (False, False)
            with autograd.train_mode():
                assert (autograd.is_recording(), autograd.is_training()) == (False, True)
    with pytest.raises(ShapeError), autograd.record(train_mode=False):
        nd.ones(2) + nd.ones(3)
    assert (autograd.is_recording(), autograd.is_training()) == (False, False)


@pytest.mark.parametrize(
    ("function", "gradient"),
    [
        (lambda x: x * x, [2, 4, 6]),
        (lambda x: 2 / x, [-2, -0.5, -2 / 9]),
        (lambda x: x[1:] * nd.array([5, 7]), [0, 5, 7]),
        (lambda x: x[1] * 4, [0, 4, 0]),
        (lambda x: x[::-2] * nd.array([5, 7]), [7, 0, 5]),
        (lambda x: x[None, :, None] * 2, [2, 2, 2]),
        (lambda x: x[nd.array([0, 2, 0])] * nd.array([1, 10, 100]), [101, 0, 10]),
        (lambda x: x[np.array([True, False, True])] * 3, [3, 0, 3]),
        (lambda x: x.reshape((3, 1)) * 3, [3, 3, 3]),
        (lambda x: x.astype("float64") * 3, [3, 3, 3]),
        (lambda x: nd.array(x) * 3, [3, 3, 3]),
        (lambda x: x.copy() * 3 + x.as_in_context(mx.cpu(1)).as_in_context(mx.cpu()), [4, 4, 4]),
        (lambda x: x.T * 3, [3, 3, 3]),
        (lambda x: x * x.detach(), [1, 2, 3]),
        (lambda x: nd.split(x, num_outputs=3, axis=0)[1] * 5, [0, 5, 0]),
        (lambda x: x.expand_dims(0, inplace=True).squeeze() * 2, [2, 2, 2]),
        (lambda x: nd.BlockGrad(x) * 2, [0, 0, 0]),
    ],
)
def test_a_gradient_by_every_way_to_record(x, function, gradient):
    with autograd.record():
        y = function(x)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), gradient, rtol=1e-6)


@pytest.mark.parametrize(
    "key",
    [np.s_[1:], np.s_[..., 1], np.s_[0, ::-1], -1, np.s_[:, None, 0], np.s_[1:1], np.s_[5:0:-2, 1], True],
)
def test_the_gradient_of_a_part(key):
    x, expected = marked(np.ones((2, 3))), np.zeros((2, 3))
    expected[key] = 4
    with autograd.record():
        y = x[key] * 4
    y.backward()
    np.testing.assert_array_equal(x.grad.asnumpy(), expected)


def test_a_slice_that_is_recorded_shares_memory(x):
    with autograd.record():
        part = x[1:]
    assert np.shares_memory(part.data, x.data)


def test_writes_of_whole_arrays_are_recorded(x):
    by_assignment, by_out = nd.zeros(3), nd.zeros(3)
    with autograd.record():
        by_assignment[:] = x * 5
        nd.broadcast_mul(x, x, out=by_out)
        y = by_assignment * 2 + by_out
    y.backward()
    assert x.grad.asnumpy().tolist() == [12, 14, 16]


@pytest.mark.parametrize("req", ["write", "add", "null"])
def test_what_is_done_with_the_gradient(req):
    x, w = marked([1, 2], req), marked([3, 4])
    x.grad[:] = 10
    for _ in range(2):
        with autograd.record():
            y = x * w + x
        y.backward()
    once = np.array([4, 5])
    assert (
        x.grad.asnumpy().tolist()
        == {"write": once, "add": 10 + 2 * once, "null": once * 0 + 10}[req].tolist()
    )
    assert w.grad.asnumpy().tolist() == [1, 2]


def test_several_heads_of_which_one_lies_between(x):
    with autograd.record():
        y = x * 2
        z = y * y
    autograd.backward([y, z], [nd.ones(3) * 10, None])
    assert x.grad.asnumpy().tolist() == [28, 36, 44]


def test_a_head_that_is_a_variable(x):
    x.backward(nd.array([4, 5, 6]))
    assert x.grad.asnumpy().tolist() == [4, 5, 6]


def test_marking_a_result_begins_a_new_graph(x):
    with autograd.record():
        y = x * 2
        y.attach_grad()
        z = y * y
    z.backward()
    assert x.grad.asnumpy().tolist() == [0, 0, 0]
    assert y.grad.asnumpy().tolist() == [4, 8, 12]


def test_a_graph_is_gone_after_backward_unless_kept(x):
    with autograd.record():
        y = x * x
        z = y * 2
    z.backward(retain_graph=True)
    z.backward()
    assert x.grad.asnumpy().tolist() == [4, 8, 12]
    for head in (z, y):
        with pytest.raises(MXNetError, match=r"not in a computational graph.*retain_graph=True"):
            head.backward()


def test_grad_leaves_the_arrays_gradient(x):
    w = marked([3, 4, 5], "null")
    with autograd.record():
        y = x * w
    first, second = autograd.grad(y, [x, w], retain_graph=True)
    assert first.asnumpy().tolist() == [3, 4, 5]
    assert second.asnumpy().tolist() == [1, 2, 3]
    assert x.grad.asnumpy().tolist() == [0, 0, 0]
    (found,) = autograd.grad([y], x, [nd.ones(3) * 2])  # a list of one, as MXNet's
    assert found.asnumpy().tolist() == [6, 8, 10]


def test_errors(x):
    unmarked, constant, other = nd.ones(3), nd.ones(3), marked([1, 2, 3])
    with autograd.record():
        y, z = x * constant, unmarked * 2
    with pytest.raises(MXNetError, match="not in a computational graph"):
        z.backward()
    for each in (unmarked, constant):
        with pytest.raises(MXNetError, match="the 1-th variable because it does not require gradient"):
            autograd.grad(y, [each])
    with pytest.raises(MXNetError, match="the 2-th variable because it is unreachable"):
        autograd.grad(y, [x, other])
    with pytest.raises(MXNetError, match="create_graph=True asks for gradients of gradients"):
        autograd.grad(y, [x], create_graph=True)
    with pytest.raises(MXNetError, match="must be of one length, got 1 and 2"):
        autograd.backward(y, [None, None])
    with pytest.raises(ShapeError, match=r"gradient of heads\[0\] must have shape \(3,\), got \(2,\)"):
        y.backward(nd.ones(2))
    with pytest.raises(ParamError, match="grad_req must be 'write', 'add' or 'null', got 'foo'"):
        x.attach_grad("foo")
    with pytest.raises(ParamError, match="gradients are dense here, got 'row_sparse'"):
        x.attach_grad(stype="row_sparse")
    null = marked([1, 2, 3], "null")
    with autograd.record():
        y = null * 2
    with pytest.raises(MXNetError, match="no inputs in computation graph that require gradients"):
        y.backward()


@pytest.mark.parametrize("of", ["marked", "constant", "result"])
def test_the_tapes_arrays_are_not_written_to(x, of):
    constant = nd.ones(3)
    with autograd.record():
        y = x * constant
        held = {"marked": x, "constant": constant, "result": y}[of]
        with pytest.raises(MXNetError, match="already in a computational graph"):
            held += 1
        with pytest.raises(MXNetError, match="already in a computational graph"):
            held[:] = 3
        with pytest.raises(MXNetError, match=r"Inplace operations .* are not supported when recording"):
            held[1:] = 3
        with pytest.raises(MXNetError, match="already in a computational graph"):
            nd.ones(3).copyto(held)
    y.backward()
    assert x.grad.asnumpy().tolist() == [1, 1, 1]
    held[:] = 3


def test_a_part_written_from_the_graph_is_an_error(x):
    target = nd.zeros(3)
    with autograd.record(), pytest.raises(MXNetError, match="Inplace operations"):
        target[0:2] = x[0:2]


def test_dropout_goes_back_through_the_mask_it_drew():
    x = marked(np.ones(1000))
    with autograd.record():
        y = nd.Dropout(x, p=0.5)
    nd.Dropout(x, p=0.5, mode="always")
    y.backward()
    assert 300 < int((y.asnumpy() == 0).sum()) < 700
    np.testing.assert_array_equal(x.grad.asnumpy(), y.asnumpy())
    assert (nd.Dropout(x, p=0.5).asnumpy() == 1).all()


def test_nothing_is_computed_twice(x, monkeypatch):
    with autograd.record():
        y = nd.tanh(nd.FullyConnected(x.reshape((1, 3)), nd.ones((2, 3)), num_hidden=2, no_bias=True))
    from roiops.operators.base import Operator

    def fail(self, *args):
        raise AssertionError(f"{type(self).__name__} computed forward again")

    for kind in {type(call.operator()) for call in _calls(y)}:
        assert issubclass(kind, Operator)
        monkeypatch.setattr(kind, "forward", fail)
    y.backward()
    np.testing.assert_allclose(x.grad.asnumpy(), 0, atol=1e-4)
    assert np.abs(x.grad.asnumpy()).min() > 0


def _calls(array):
    from roiops.graph.nodes import topological_order

    return [node for node in topological_order([array._entry]) if not node.is_variable]


def test_the_gradients_of_a_network_are_those_of_its_symbol():
    data = mx.sym.Variable("data")
    body = mx.sym.Convolution(data, kernel=(3, 3), num_filter=4, pad=(1, 1), name="c")
    body = mx.sym.BatchNorm(body, fix_gamma=False, name="bn")
    body = mx.sym.Activation(body, act_type="relu")
    body = mx.sym.Pooling(
        mx.sym.broadcast_add(body, body.sum(axis=1, keepdims=True) * 0.1), kernel=(2, 2), stride=(2, 2)
    )
    net = mx.sym.FullyConnected(body, num_hidden=3, name="fc")
    executor = net.simple_bind(mx.cpu(), data=(2, 3, 8, 8))
    rng = np.random.default_rng(0)
    for array in executor.arg_arrays:
        array[:] = rng.normal(size=array.shape)
    executor.forward(is_train=True)
    head = nd.array(rng.normal(size=(2, 3)))
    executor.backward(head)

    given = {name: array.copy() for name, array in executor.arg_dict.items()}
    for array in given.values():
        array.attach_grad()
    with autograd.record():
        y = nd.Convolution(
            given["data"], given["c_weight"], given["c_bias"], kernel=(3, 3), num_filter=4, pad=(1, 1)
        )
        states = nd.zeros(4), nd.ones(4)
        y = nd.BatchNorm(y, given["bn_gamma"], given["bn_beta"], *states, fix_gamma=False)
        y = nd.relu(y)
        y = nd.Pooling(y + y.sum(axis=1, keepdims=True) * 0.1, kernel=(2, 2), stride=(2, 2))
        y = nd.FullyConnected(y, given["fc_weight"], given["fc_bias"], num_hidden=3)
    y.backward(head)
    np.testing.assert_allclose(y.asnumpy(), executor.outputs[0].asnumpy(), rtol=1e-4, atol=1e-4)
    for name, array in given.items():
        np.testing.assert_allclose(
            array.grad.asnumpy(), executor.grad_dict[name].asnumpy(), rtol=1e-3, atol=1e-3, err_msg=name
        )


class Sigmoid(autograd.Function):
    def forward(self, x):
        assert not autograd.is_recording()
        y = 1 / (1 + nd.exp(-x))
        self.save_for_backward(y)
        return y

    def backward(self, dy):
        (y,) = self.saved_tensors
        return dy * y * (1 - y)


def test_a_function_with_a_gradient_of_its_own(x):
    function = Sigmoid()
    with autograd.record():
        y = function(x / 4) * 3
    y.backward()
    s = 1 / (1 + np.exp(-np.arange(1, 4) / 4))
    np.testing.assert_allclose(x.grad.asnumpy(), 0.75 * s * (1 - s), rtol=1e-5)
    with pytest.raises(MXNetError, match="can only be called once"):
        function(x)


@pytest.mark.parametrize("training", [True, False])
def test_a_function_goes_back_in_the_mode_of_its_call(x, training):
    class Mode(autograd.Function):
        def forward(self, a):
            return a * 1

        def backward(self, da):
            assert not autograd.is_recording()
            return da * autograd.is_training()

    with autograd.record(train_mode=training):
        y = Mode()(x)
    y.backward()
    assert x.grad.asnumpy().tolist() == [training] * 3


def test_a_function_gives_as_many_gradients_as_it_takes_inputs(x):
    class Two(autograd.Function):
        def forward(self, a, b):
            return a, b

        def backward(self, da, db):
            return da

    with autograd.record():
        a, b = Two()(x, x)
        y = a + b
    with pytest.raises(MXNetError, match=r"Two.backward must return exactly.*Expecting 2 got 1"):
        y.backward()


def test_the_graph_as_a_symbol(x):
    w = marked([4, 5, 6])
    with autograd.record():
        y = nd.exp(x * 2) + w
    symbol = autograd.get_symbol(y)
    first, second = symbol.list_arguments()
    values = symbol.eval(**{first: x.detach(), second: w.detach()})[0].asnumpy()
    np.testing.assert_allclose(values, y.asnumpy(), rtol=1e-6)
    again = mx.sym.load_json(symbol.tojson())
    assert again.list_arguments() == [first, second]
    y.backward()
    for outside in (y, nd.ones(2)):
        with pytest.raises(MXNetError, match="not in a computational graph"):
            autograd.get_symbol(outside)


def test_operators_of_users_are_recorded():
    class Twice(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            assert is_train
            assert not autograd.is_recording()
            self.assign(out_data[0], req[0], in_data[0] * 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], out_grad[0] * 2)

    @mx.operator.register("test_autograd_twice")
    class TwiceProp(mx.operator.CustomOpProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Twice()

    x = marked([1, 2])
    with autograd.record():
        y = nd.Custom(x, op_type="test_autograd_twice") * x
    y.backward()
    assert x.grad.asnumpy().tolist() == [4, 8]


@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_rows_read_by_an_array_that_changes_later(dtype):
    x, rows = nd.array([[1, 2], [3, 4], [5, 6]]), nd.array([0, -1, 0], dtype=dtype)
    x.attach_grad()
    with autograd.record():
        y = x[rows] * nd.array([[1, 10], [2, 20], [3, 30]])
    rows[:] = 1
    y.backward()
    assert x.grad.asnumpy().tolist() == [[4, 40], [0, 0], [2, 20]]


def test_graphs_that_look_alike_share_a_program_and_no_arrays():
    autograd._replays.clear()
    held = []
    for factor, req in ((1, "write"), (2, "write"), (3, "add"), (4, "add")):
        a = nd.array([1, 2, 3]) * factor
        a.attach_grad(req)
        with autograd.record():
            y = (a * a).sum()
        y.backward(retain_graph=factor == 4)
        np.testing.assert_array_equal(a.grad.asnumpy(), 2 * a.asnumpy())
        if factor == 4:
            y.backward()
            np.testing.assert_array_equal(a.grad.asnumpy(), 4 * a.asnumpy())
        held += [weakref.ref(each.data) for each in (a, a.grad, y)]
        del a, y
    gc.collect()
    assert len(autograd._replays) == 2  # one for each request
    assert [ref() for ref in held] == [None] * len(held)


def test_a_backward_within_a_backward_of_a_graph_that_looks_the_same():
    class Cube(autograd.Function):
        def forward(self, x):
            self.save_for_backward(x)
            return x**3

        def backward(self, gradient):
            (x,) = self.saved_tensors
            if self.deeper:
                x = x.copy()
                np.testing.assert_array_equal(slope(x, False).asnumpy(), 3 * x.asnumpy() ** 2)
            return 3 * x**2 * gradient

    def slope(x, deeper):
        x.attach_grad()
        cube = Cube()
        cube.deeper = deeper
        with autograd.record():
            y = cube(x)
        y.backward()
        return x.grad

    for x in (nd.array([1, 2]), nd.array([3, 4])):
        np.testing.assert_array_equal(slope(x, True).asnumpy(), 3 * x.asnumpy() ** 2)


def test_threads_that_record_graphs_which_look_the_same():
    def steps(start):
        for k in range(50):
            a = nd.array([start + k, 2])
            a.attach_grad()
            with autograd.record():
                y = (a * a).sum()
            y.backward()
            np.testing.assert_array_equal(a.grad.asnumpy(), [2 * (start + k), 4])
        return True

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(steps, range(0, 400, 100)))
