"""Gradients of the tensor operators against finite differences in float64."""

import numpy as np
import pytest

from roiops.operators.tensor import unary
from roiops.testing import check_operator_gradient

RNG = np.random.default_rng(7)


def uniform(*shape, low=-2.0, high=2.0):
    return RNG.uniform(low, high, shape)


def distinct(*shape):
    """Entries at least 0.1 apart, so that a finite difference does not change their order."""
    size = int(np.prod(shape))
    return (RNG.permutation(size).reshape(shape) - size / 2 + 0.25) * 0.1


UNARY = [
    *(
        (row.names, *row.domain)
        for row in unary.ROWS
        if row.smooth and not row.names.endswith(("_ste", "clip"))
    ),
    *((name, -1.3, 1.3) for name in ("_copy", "Flatten")),
    ("_contrib_div_sqrt_dim", 0.4, 4),
    *((name, -2.9, -2.1) for name in ("gamma", "gammaln")),
]


@pytest.mark.parametrize(("name", "low", "high"), UNARY)
def test_unary(name, low, high):
    data = uniform(3, 4, low=low, high=high)
    data[np.abs(data) < 0.1] = 0.5 * (low + high) or 0.3  # away from the kinks and poles at 0
    check_operator_gradient(name, [data])


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("clip", {"a_min": -1, "a_max": 0.5}),
        ("smooth_l1", {"scalar": 2}),
        ("hard_sigmoid", {"alpha": 0.4, "beta": 0.3}),
        ("_contrib_quadratic", {"a": 2, "b": -3, "c": 1}),
    ],
)
def test_unary_with_parameters(name, params):
    check_operator_gradient(name, [distinct(4, 5)], params)


BINARY = "add sub mul div power maximum minimum hypot mod"


@pytest.mark.parametrize("name", BINARY.split())
def test_binary(name):
    low = 0.3 if name == "power" else -2
    lhs = uniform(3, 4, low=low)
    rhs = uniform(3, 4, low=0.6, high=2) if name == "mod" else lhs + np.where(distinct(3, 4) > 0, 0.7, -0.2)
    elementwise = {"add": "elemwise_add", "sub": "elemwise_sub", "mul": "elemwise_mul", "div": "elemwise_div"}
    check_operator_gradient(elementwise.get(name, f"_{name}"), [lhs, rhs])


@pytest.mark.parametrize("name", BINARY.split())
@pytest.mark.parametrize("shapes", [((2, 3, 4), (1, 3, 1)), ((2, 1, 4), (3, 1)), ((1,), (2, 3))], ids=str)
def test_broadcasting(name, shapes):
    low = 0.3 if name == "power" else 0.5
    both = distinct(sum(int(np.prod(s)) for s in shapes))
    both = low + (both - both.min()) / np.ptp(both)
    split = int(np.prod(shapes[0]))
    check_operator_gradient(
        f"broadcast_{name}", [both[:split].reshape(shapes[0]) + 0.013, both[split:].reshape(shapes[1])]
    )


SCALAR = "plus minus rminus mul div rdiv power rpower maximum minimum hypot mod rmod"


@pytest.mark.parametrize("name", SCALAR.split())
def test_scalar(name):
    check_operator_gradient(f"_{name}_scalar", [uniform(3, 4, low=0.3, high=1.2)], {"scalar": 1.37})


@pytest.mark.parametrize("name", ["sum", "mean", "prod", "nansum", "nanprod", "max", "min", "norm"])
@pytest.mark.parametrize("params", [{}, {"axis": 1}, {"axis": (0, 2), "keepdims": True}], ids=str)
def test_reduction(name, params):
    check_operator_gradient(name, [distinct(2, 3, 4)], params)


def test_norm_of_absolute_values():
    check_operator_gradient("norm", [distinct(3, 4)], {"ord": 1, "axis": 1})


def test_moments():
    check_operator_gradient("moments", [uniform(3, 4, 2)], {"axes": (0, 2)})


@pytest.mark.parametrize("transpose_b", [False, True])
@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("name", ["dot", "batch_dot"])
def test_products(name, transpose_a, transpose_b):
    lead = (2,) if name == "batch_dot" else ()
    lhs = uniform(*lead, *((5, 3) if transpose_a else (3, 5)))
    rhs = uniform(*lead, *((4, 5) if transpose_b else (5, 4)))
    check_operator_gradient(name, [lhs, rhs], {"transpose_a": transpose_a, "transpose_b": transpose_b})


@pytest.mark.parametrize(("lhs", "rhs"), [((5,), (5,)), ((2, 3, 5), (5, 4)), ((5,), (5, 2)), ((3, 5), (5,))])
def test_dot_of_other_dimensions(lhs, rhs):
    check_operator_gradient("dot", [uniform(*lhs), uniform(*rhs)])


INDEX = np.array([[0, 2], [1, 2]])


@pytest.mark.parametrize(
    ("name", "params", "location"),
    [
        ("Reshape", {"shape": (0, -4, -1, 3, -2)}, [uniform(2, 3, 4)]),
        ("transpose", {"axes": (2, 0, 1)}, [uniform(2, 3, 4)]),
        ("SwapAxis", {"dim1": 0, "dim2": 2}, [uniform(2, 3, 4)]),
        ("expand_dims", {"axis": 1}, [uniform(2, 3)]),
        ("squeeze", {}, [uniform(2, 1, 3)]),
        ("reshape_like", {}, [uniform(2, 3), uniform(3, 2)]),
        ("slice", {"begin": (2, None), "end": (None, 0), "step": (-1, 2)}, [uniform(4, 3)]),
        ("slice_axis", {"axis": 1, "begin": 1, "end": None}, [uniform(2, 3)]),
        ("slice_like", {}, [uniform(3, 4), uniform(2, 2)]),
        ("Crop", {"num_args": 2, "offset": (1, 0)}, [uniform(1, 2, 4, 3), uniform(1, 1, 2, 2)]),
        ("reverse", {"axis": (0, 1)}, [uniform(2, 3)]),
        ("SliceChannel", {"num_outputs": 2}, [uniform(2, 4)]),
        ("_split_v2", {"indices": (0, 1), "axis": 1}, [uniform(2, 4)]),
        ("_split_v2", {"indices": (1, 3), "axis": 1}, [uniform(2, 4)]),
        ("_slice_assign", {"begin": (1,), "end": (3,)}, [uniform(4, 2), uniform(2, 2)]),
        ("_slice_assign_scalar", {"begin": (1,), "end": (3,), "scalar": 2}, [uniform(4, 2)]),
        ("Concat", {"num_args": 3, "dim": 1}, [uniform(2, 1), uniform(2, 2), uniform(2, 3)]),
        ("stack", {"num_args": 2, "axis": 1}, [uniform(2, 3), uniform(2, 3)]),
        ("add_n", {"num_args": 3}, [uniform(2, 3), uniform(2, 3), uniform(2, 3)]),
        ("broadcast_to", {"shape": (2, 3)}, [uniform(2, 1)]),
        ("broadcast_axis", {"axis": 0, "size": 3}, [uniform(1, 2)]),
        ("broadcast_like", {}, [uniform(1, 2), uniform(3, 2)]),
        ("tile", {"reps": (2, 1, 2)}, [uniform(2, 3)]),
        ("repeat", {"repeats": 2, "axis": 1}, [uniform(2, 3)]),
        ("repeat", {"repeats": 3}, [uniform(2, 2)]),
        ("Pad", {"mode": "edge", "pad_width": (0, 0, 0, 0, 2, 1, 0, 3)}, [uniform(1, 2, 3, 2)]),
        ("Pad", {"mode": "reflect", "pad_width": (0, 0, 0, 0, 2, 1, 1, 2)}, [uniform(1, 1, 3, 4)]),
        ("Pad", {"mode": "constant", "pad_width": (0, 0, 0, 0, 1, 1, 1, 0)}, [uniform(1, 1, 2, 2)]),
        ("depth_to_space", {"block_size": 2}, [uniform(1, 8, 2, 3)]),
        ("space_to_depth", {"block_size": 2}, [uniform(1, 2, 4, 6)]),
        ("diag", {"k": -1}, [uniform(4, 3)]),
        ("diag", {"k": 1, "axis1": 0, "axis2": 2}, [uniform(3, 2, 4)]),
        ("diag", {}, [uniform(3)]),
        ("cumsum", {"axis": 1}, [uniform(2, 4)]),
        ("cumsum", {}, [uniform(2, 2)]),
        ("take", {"axis": 1}, [uniform(2, 3, 2), INDEX]),
        ("take", {"axis": 0, "mode": "wrap"}, [uniform(2, 3), INDEX - 4]),
        ("Embedding", {"input_dim": 3, "output_dim": 2}, [INDEX, uniform(3, 2)]),
        ("pick", {"axis": 1}, [uniform(2, 3), np.array([2, 0])]),
        ("gather_nd", {}, [uniform(3, 3, 2), INDEX]),
        ("scatter_nd", {"shape": (3, 3)}, [uniform(2), INDEX]),
        ("_contrib_index_copy", {}, [uniform(4, 2), np.array([3, 1]), uniform(2, 2)]),
        ("where", {}, [np.array([[1, 0], [0, 2]]), uniform(2, 2), uniform(2, 2)]),
        ("where", {}, [np.array([1, 0]), uniform(2, 2), uniform(2, 2)]),
        ("sort", {"axis": 0, "is_ascend": False}, [distinct(4, 3)]),
        ("topk", {"k": 2, "axis": 1, "ret_typ": "value"}, [distinct(3, 4)]),
        ("SequenceMask", {"use_sequence_length": True}, [uniform(4, 2), np.array([1, 3])]),
        ("SequenceLast", {"use_sequence_length": True, "axis": 1}, [uniform(2, 4, 2), np.array([1, 3])]),
        ("SequenceReverse", {"use_sequence_length": True}, [uniform(4, 2), np.array([2, 3])]),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_moves(name, params, location):
    check_operator_gradient(name, location, params)
