"""Infix operators of NDArray, and MXNet's functions that take arrays or numbers on either side."""

import operator

import numpy as np

from .foreign import asked_kind, give_back
from .ndarray import SCALARS, NDArray, apply

__all__ = ["FUNCTIONS", "binary"]

# Function, Python's name of the infix operator, Python's function on two numbers, what it is with the sides
# exchanged where that is another one, and its names in MXNet's operators for two arrays and for array and
# number, where they are not the function's.
_TABLE = (
    ("add", "add", operator.add, None, ("add", "plus")),
    ("subtract", "sub", operator.sub, "rminus", ("sub", "minus")),
    ("multiply", "mul", operator.mul, None, ("mul", "mul")),
    ("divide", "truediv", operator.truediv, "rdiv", ("div", "div")),
    ("modulo", "mod", operator.mod, "rmod", ("mod", "mod")),
    ("power", "pow", operator.pow, "rpower", None),
    ("maximum", None, max, None, None),
    ("minimum", None, min, None, None),
    ("equal", "eq", operator.eq, None, None),
    ("not_equal", "ne", operator.ne, None, None),
    ("greater", "gt", operator.gt, "lesser", None),
    ("greater_equal", "ge", operator.ge, "lesser_equal", None),
    ("lesser", "lt", operator.lt, "greater", None),
    ("lesser_equal", "le", operator.le, "greater_equal", None),
    ("logical_and", None, np.logical_and, None, None),
    ("logical_or", None, np.logical_or, None, None),
    ("logical_xor", None, np.logical_xor, None, None),
)


def binary(left, right, name: str, scalar: str, reflected: str | None = None, out=None) -> NDArray:
    """The operator ``name`` on two arrays, or ``scalar`` with a number right, ``reflected`` with one left."""
    if isinstance(right, SCALARS):
        return apply(scalar, left, scalar=float(right), out=out)
    if isinstance(left, SCALARS):
        return apply(reflected or scalar, right, scalar=float(left), out=out)
    return apply(name, _beside(left, right), _beside(right, left), out=out)


def _beside(operand, other):
    """An array operand; a NumPy one takes the dtype of a floating-point NDArray, as numbers do."""
    if isinstance(operand, np.ndarray) and isinstance(other, NDArray) and other.data.dtype.kind == "f":
        return operand.astype(other.data.dtype, copy=False)
    if isinstance(operand, NDArray | np.ndarray) or hasattr(operand, "__dlpack__"):
        return operand
    raise TypeError(
        f"an NDArray goes with an NDArray, a NumPy array or a number, got {type(operand).__name__}"
    )


def _function(word, on_numbers, name, scalar, reflected):
    def function(lhs, rhs):
        if isinstance(lhs, SCALARS) and isinstance(rhs, SCALARS):
            return on_numbers(lhs, rhs)
        result = binary(lhs, rhs, name, scalar, reflected)
        if type(lhs) is NDArray or type(rhs) is NDArray:
            return result
        like = asked_kind((lhs, rhs))
        return result if like is None else give_back([result], like)[0]

    function.__name__ = function.__qualname__ = word
    function.__doc__ = f"The operator ``{name}`` of two arrays, or of an array and a number on either side."
    return function


def _add_method(name, method) -> None:
    method.__name__ = name
    method.__qualname__ = f"NDArray.{name}"
    setattr(NDArray, name, method)


def _add_infix(infix, comparison, name, scalar, reflected) -> None:
    _add_method(f"__{infix}__", lambda x, y: binary(x, y, name, scalar, reflected))
    if not comparison:  # Python reflects comparisons by itself
        _add_method(f"__r{infix}__", lambda x, y: binary(y, x, name, scalar, reflected))
        if infix != "pow":  # in MXNet, ``x **= y`` makes a new array
            _add_method(f"__i{infix}__", lambda x, y: binary(x, y, name, scalar, reflected, out=x))


#: ``nd.add(lhs, rhs)`` and its like, by name.
FUNCTIONS = {}
for _word, _infix, _on_numbers, _exchanged, _begins in _TABLE:
    _two, _one = _begins or (_word, _word)
    _names = f"broadcast_{_two}", f"_{_one}_scalar", _exchanged and f"_{_exchanged}_scalar"
    FUNCTIONS[_word] = _function(_word, _on_numbers, *_names)
    if _infix:
        _add_infix(_infix, _infix in ("eq", "ne", "gt", "ge", "lt", "le"), *_names)
FUNCTIONS["true_divide"] = FUNCTIONS["divide"]
