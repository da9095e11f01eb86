"""Checks for operators and graphs, your own included (MXNet's ``test_utils``).

:func:`check_numeric_gradient` compares backward with finite differences of forward, for ``write``, ``add``
and ``null`` over buffers full of noise; :func:`check_symbolic_forward` and :func:`check_symbolic_backward`
compare with values known otherwise; :func:`check_consistency` compares devices and dtypes with one another.
:func:`check_operator_gradient` does the first for a single operator, without a graph. Each raises an
``AssertionError`` that says where the numbers disagree and by how much. All of them hold operators to what
they declare: outputs that forward leaves unwritten are an error, and what a backward does not declare is NaN.
"""

from ..errors import NotOfferedError
from . import checks, comparing, files
from .checks import *  # noqa: F403
from .comparing import *  # noqa: F403
from .files import *  # noqa: F403

__all__ = [*checks.__all__, *comparing.__all__, *files.__all__]


def __getattr__(name):
    raise NotOfferedError(
        f"test_utils.{name} is not here; MXNet's own test_utils.py, put beside a script, runs with "
        "`python -m roiops.as_mxnet`"
    )
