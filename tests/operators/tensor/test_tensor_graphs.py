"""Random graphs: the executor, which shares memory, against one operator after the other in fresh arrays."""

import numpy as np
import pytest

import roiops
from roiops.operators.imperative import Invocation
from roiops.registry import get

SHAPE = (2, 3)
UNARY = [
    ("tanh", {}),
    ("sigmoid", {}),
    ("relu", {}),
    ("square", {}),
    ("exp", {}),
    ("_copy", {}),
    ("BlockGrad", {}),
    ("_mul_scalar", {"scalar": 0.7}),
    ("_rminus_scalar", {"scalar": 0.3}),
    ("_greater_scalar", {"scalar": 0.1}),
    ("clip", {"a_min": -0.5, "a_max": 0.5}),
    ("softmax", {"axis": 1}),
    ("Reshape", {"shape": (-1, 3)}),
    ("reverse", {"axis": 1}),
    ("zeros_like", {}),
]
BINARY = [
    "elemwise_add",
    "elemwise_sub",
    "elemwise_mul",
    "_maximum",
    "broadcast_add",
    "broadcast_mul",
    "_hypot",
]


def double(array):
    return roiops.nd.array(array, dtype="float64")


def random_graph(rng, size):
    """Nodes as (operator, parameters, numbers of earlier values); the values 0 and 1 are the variables."""
    nodes = []
    for count in range(2, size + 2):
        # Recent values are likelier, so that chains form, in which memory is taken over.
        one, other = np.maximum(count - rng.geometric(0.4, 2), 0).tolist()
        if rng.random() < 0.5:
            name, params = UNARY[rng.integers(len(UNARY))]
            nodes.append((name, params, [one]))
        else:
            nodes.append((BINARY[rng.integers(len(BINARY))], {}, [one, other]))
    return nodes


def apart(nodes, variables, heads, head):
    """Values of ``heads`` and gradients of the variables, without any sharing of memory."""
    values, runs = list(variables), []
    for name, params, sources in nodes:
        run = Invocation(get(name).create(params), [values[s].copy() for s in sources])
        runs.append(run)
        values.append(run.forward()[0].copy())
    grads = [None] * len(values)

    def add(number, grad):
        grads[number] = grad if grads[number] is None else grads[number] + grad

    for h in heads:
        add(h, head)
    for number in reversed(range(len(nodes))):
        run, grad = runs[number], grads[number + 2]
        if grad is None:  # a gradient of 0 is not the same: 0 times infinity would be NaN
            continue
        names = run.prop.list_arguments()
        for source, name, part in zip(nodes[number][2], names, run.backward([grad.copy()]), strict=True):
            if name not in run.prop.list_zero_gradients():
                add(source, part)
    return [values[h] for h in heads], [0 if g is None else g for g in grads[:2]]


@pytest.mark.parametrize("seed", range(40))
def test_random_graph(seed):
    rng = np.random.default_rng(seed)
    nodes = random_graph(rng, 30)
    variables = [rng.uniform(-1, 1, SHAPE) for _ in range(2)]
    head = rng.uniform(-1, 1, SHAPE)
    heads = [len(nodes) + 1, int(rng.integers(2, len(nodes)))]
    symbols = [roiops.sym.Variable("a"), roiops.sym.Variable("b")]
    for i, (name, params, sources) in enumerate(nodes):
        function = getattr(roiops.sym, name, None) or getattr(roiops.sym._internal, name)
        symbols.append(function(*(symbols[s] for s in sources), name=f"n{i}", **params))
    # Every variable takes part, and the heads are two nodes of the graph, one of which others read.
    graph = roiops.sym.Group([symbols[h] for h in heads] + [symbols[0] + symbols[1]])
    expected, gradients = apart(nodes, variables, heads, head)
    for train in (False, True):
        executor = graph.bind(
            roiops.cpu(),
            {name: double(value) for name, value in zip("ab", variables, strict=True)},
            args_grad={name: double(np.full(SHAPE, np.nan)) for name in "ab"},
            grad_req="write" if train else "null",
        )
        for _ in range(2):
            outputs = executor.forward(is_train=train)
            for ours, value in zip(outputs, expected, strict=False):
                np.testing.assert_allclose(ours.asnumpy(), value, rtol=1e-12, atol=1e-13)
        if train:
            executor.backward([double(head)] * 3)
            for name, grad in zip("ab", gradients, strict=True):
                wanted = grad + head  # the third head, a + b
                np.testing.assert_allclose(executor.grad_dict[name].asnumpy(), wanted, rtol=1e-10, atol=1e-12)
