"""``nd.contrib``: the operators whose names start with ``_contrib_``, and functions made of operators."""

import functools

from ..errors import DataError, InputError, ParamError, ShapeError
from . import random
from .creation import zeros
from .functions import function_for, namespace
from .ndarray import NDArray

__getattr__, _operators = namespace(__name__, "_contrib_")


def rand_zipfian(true_classes: NDArray, num_sampled: int, range_max: int, ctx=None) -> list[NDArray]:
    """Classes drawn by the log-uniform distribution, and how often each is to be expected.

    Returns
    -------
    list of NDArray
        The drawn classes; how often each of ``true_classes`` is expected among them; the same for the drawn.
    """
    uniform = functools.partial(random.uniform, ctx=ctx or true_classes.context)
    return random.draw_zipfian(uniform, true_classes, num_sampled, range_max)


def foreach(body, data, init_states) -> tuple:
    """``out, states = body(row, states)`` for each row of ``data``, an array or a list of them.

    Gives the outputs of all steps stacked, nested as those of one are, and the last states.
    """
    arrays, states, outputs = data if isinstance(data, list | tuple) else [data], init_states, []
    _check_arrays("foreach: data", arrays)
    for i in range(len(arrays[0]) if arrays else 0):
        rows = [each[i] for each in arrays]
        out, states = body(rows if isinstance(data, list | tuple) else rows[0], states)
        outputs.append(out)
    if not outputs:
        raise ShapeError("contrib.foreach: data has no rows, so nobody knows what the outputs are like")
    return _stacked("foreach", outputs, 0), states


def while_loop(cond, func, loop_vars, max_iterations=None) -> tuple:
    """``out, loop_vars = func(*loop_vars)``, as long as ``cond(*loop_vars)`` is true.

    Gives the outputs of all steps stacked, with zeros up to ``max_iterations`` rows, and the last variables.
    """
    if max_iterations is None:
        raise ParamError("contrib.while_loop: max_iterations must be given")
    single, outputs = isinstance(loop_vars, NDArray), []
    values = [loop_vars] if single else list(loop_vars)
    if not values:
        raise ParamError("contrib.while_loop: loop_vars must hold at least one NDArray")
    while len(outputs) < int(max_iterations) and _is_true("while_loop: what cond gives", cond(*values)):
        out, new = func(*values)
        new = [new] if isinstance(new, NDArray) else list(new or ())
        if len(new) != len(values):
            raise DataError(f"contrib.while_loop: func gave {len(new)} loop_vars, it took {len(values)}")
        values = new
        outputs.append([] if out is None else out)
    made = _stacked("while_loop", outputs, int(max_iterations) - len(outputs)) if outputs else []
    return made, values[0] if single else values


def cond(pred, then_func, else_func):
    """``then_func()`` if the one number of ``pred`` is not 0, else ``else_func()``."""
    return then_func() if _is_true("cond: pred", pred) else else_func()


def _is_true(what: str, value) -> bool:
    if getattr(value, "size", 1) != 1:
        raise ShapeError(f"contrib.{what} must hold one number, got shape {value.shape}")
    return bool(value.asscalar() if isinstance(value, NDArray) else value)


def _check_arrays(what: str, values) -> None:
    for each in values:
        if not isinstance(each, NDArray):
            raise InputError(
                f"contrib.{what} must be an NDArray or a list of them, got {type(each).__name__}"
            )


def _stacked(name: str, steps, short: int):
    """What all steps gave, stacked, lists item by item, with ``short`` more rows of zeros."""
    first = steps[0]
    if isinstance(first, list | tuple):
        if any(not isinstance(each, list | tuple) or len(each) != len(first) for each in steps):
            raise DataError(f"contrib.{name}: the steps gave unequally many outputs")
        return [_stacked(name, each, short) for each in zip(*steps, strict=True)]
    _check_arrays(f"{name}: an output", steps)
    padding = [zeros(first.shape, first.context, first.dtype)] * short
    return function_for("stack")(*steps, *padding)


def __dir__():
    return sorted({*_operators(), "cond", "foreach", "rand_zipfian", "while_loop"})
