"""Checks for operators and graphs, your own included (MXNet's ``test_utils``).

:func:`check_numeric_gradient` compares backward with finite differences of forward, for ``write``, ``add``
and ``null`` over buffers full of noise; :func:`check_symbolic_forward` and :func:`check_symbolic_backward`
compare with values known otherwise; :func:`check_consistency` compares devices and dtypes with one another.
:func:`check_operator_gradient` does the first for a single operator, without a graph. Each raises an
``AssertionError`` that says where the numbers disagree and by how much. All of them hold operators to what
they declare: outputs that forward leaves unwritten are an error, and what a backward does not declare is NaN.
"""

from .checks import (
    check_consistency,
    check_numeric_gradient,
    check_operator_gradient,
    check_symbolic_backward,
    check_symbolic_forward,
    simple_forward,
)
from .comparing import (
    almost_equal,
    assert_allclose,
    assert_almost_equal,
    assert_exception,
    default_context,
    default_dtype,
    get_atol,
    get_rtol,
    list_gpus,
    rand_ndarray,
    rand_shape_2d,
    rand_shape_3d,
    rand_shape_nd,
    random_arrays,
    same,
    set_default_context,
)

__all__ = [
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_exception",
    "check_consistency",
    "check_numeric_gradient",
    "check_operator_gradient",
    "check_symbolic_backward",
    "check_symbolic_forward",
    "default_context",
    "default_dtype",
    "get_atol",
    "get_rtol",
    "list_gpus",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "random_arrays",
    "same",
    "set_default_context",
    "simple_forward",
]
