"""``nd.contrib.foreach``, ``while_loop`` and ``cond``: the numbers and nesting that MXNet 1.9.1 gives."""

import numpy as np
import pytest

import roiops as mx

foreach, while_loop, cond = mx.nd.contrib.foreach, mx.nd.contrib.while_loop, mx.nd.contrib.cond
X = np.arange(6, dtype=np.float32).reshape(3, 2)


def plain(value):
    return [plain(each) for each in value] if isinstance(value, list | tuple) else value.asnumpy().tolist()


def test_foreach_and_its_gradient():
    x, start = mx.nd.array(X), mx.nd.ones((2,))
    x.attach_grad()
    start.attach_grad()
    with mx.autograd.record():
        outputs, states = foreach(lambda row, s: (row * s[0], [s[0] * row + 1]), x, [start])
        total = outputs.sum() + states[0].sum()
    total.backward()
    assert plain(outputs) == [[0, 1], [2, 6], [12, 35]]
    assert plain(states) == [[13, 36]]
    assert plain(x.grad) == [[19, 34], [9, 22], [6, 14]]
    assert plain(start.grad) == [0, 34]


def test_foreach_of_several_arrays():
    x = mx.nd.array(X)

    def body(rows, state):
        return (rows[0], [rows[1], rows[0] + rows[1]]), state + rows[0]

    outputs, state = foreach(body, [x, x * 2], mx.nd.ones((2,)))
    assert plain(outputs) == [X.tolist(), [(2 * X).tolist(), (3 * X).tolist()]]
    assert plain(state) == [7, 10]
    assert foreach(lambda row, state: ([], state), x, [])[0] == []


def test_while_loop():
    start = (mx.nd.array([0], dtype="int64"), mx.nd.array([1], dtype="int64"))
    outputs, variables = while_loop(
        lambda i, s: i <= 5, lambda i, s: ([i + s], [i + 1, s + i]), start, max_iterations=8
    )
    assert plain(outputs) == [[[1], [2], [4], [7], [11], [16], [0], [0]]]  # MXNet leaves the last rows unset
    assert outputs[0].dtype == np.int64
    assert plain(variables) == [[6], [16]]


def test_while_loop_of_one_variable():
    start = mx.nd.array([0])
    assert plain(while_loop(lambda i: i < 3, lambda i: (i * 2, i + 1), start, 3)) == [[[0], [2], [4]], [3]]
    assert plain(while_loop(lambda i: i < 3, lambda i: (None, i + 1), start, 9)) == [[], [3]]
    assert plain(while_loop(lambda i: i < 0, lambda i: (i, i + 1), start, 9)) == [[], [0]]


def test_cond():
    a, b = mx.nd.array([1]), mx.nd.array([2])
    branches = (lambda: (a + 5) * (b + 5)), (lambda: [a - 5, b - 5])
    assert plain(cond(a * b < 5, *branches)) == [42]
    assert plain(cond(a * b > 5, *branches)) == [[-4], [-3]]


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: foreach(None, 3, x), "foreach: data must be an NDArray or a list of them, got int"),
        (lambda x: foreach(lambda row, s: (1, s), x, x), "foreach: an output must be an NDArray .* got int"),
        (lambda x: foreach(None, [], x), "foreach: data has no rows"),
        (lambda x: while_loop(None, None, x), "while_loop: max_iterations must be given"),
        (lambda x: while_loop(None, None, [], 1), "while_loop: loop_vars must hold at least one"),
        (lambda x: while_loop(lambda i: 1, lambda i: (i, [i, i]), x, 1), "func gave 2 loop_vars, it took 1"),
        (lambda x: while_loop(lambda i: i, None, x, 1), r"what cond gives must hold one number, got shape"),
        (lambda x: cond(x, None, None), r"cond: pred must hold one number, got shape \(3, 2\)"),
    ],
)
def test_errors(call, text):
    with pytest.raises(mx.MXNetError, match=rf"^contrib\..*{text}"):
        call(mx.nd.array(X))


@pytest.mark.parametrize("name", ["foreach", "while_loop", "cond"])
def test_a_graph_has_none(name):
    with pytest.raises(AttributeError, match=rf"'contrib.{name}' is not registered: loops and branches"):
        getattr(mx.sym.contrib, name)
