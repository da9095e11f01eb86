"""MXNet's update operators: one step of an optimizer on one weight, ``nd.sgd_mom_update`` and its kin.

Each takes the weight, its gradient and the optimizer's states, which it changes, and writes the new weight
to ``out``. ``lr`` is the learning rate and ``wd`` the weight decay; the gradient is multiplied by
``rescale_grad`` and, with ``clip_gradient`` of 0 or more, kept within that of 0. :mod:`roiops.optimizer` has
whole optimizers.

A rule stands once, in :mod:`roiops.kernels.update_rules`, for the operator and for the optimizer.
"""

import functools
import inspect

import numpy as np

from ..context import cpu
from ..errors import ParamError, ShapeError
from ..kernels import update_rules as rules
from ..operators.base import kernels
from .sparse import rows_of

#: Elements updated at once: a rule's temporaries stay in a cache, and are few calls of NumPy.
BLOCK = 131072


def in_blocks(rule, *arrays) -> None:
    """Call an element-wise rule on arrays of one shape, block by block."""
    with np.errstate(all="ignore"):
        at_once = arrays[0].size <= BLOCK or not isinstance(arrays[0], np.ndarray)
        if at_once or not all(each.flags.c_contiguous for each in arrays):
            rule(*arrays)
            return
        flat = [each.reshape(-1) for each in arrays]
        for start in range(0, flat[0].size, BLOCK):
            rule(*(each[start : start + BLOCK] for each in flat))


def on_rows(rows, update, weight, grad, *states) -> None:
    """``update(weight, grad, *states)`` in place on these rows of all arrays."""
    parts = [each[rows] for each in (weight, *states)]
    update(parts[0], grad[rows], *parts[1:])
    for each, part in zip((weight, *states), parts, strict=True):
        each[rows] = part


def check_shapes(name, weight, others: dict) -> None:
    """Raise unless these arrays, which NumPy would repeat, have the weight's shape."""
    for argument, each in others.items():
        if each.shape != weight.shape:
            raise ShapeError(
                f"{name}: {argument} must have the weight's shape {weight.shape}, got {each.shape}"
            )


class UpdateOperator:
    """A rule as a function on NDArrays, and :meth:`on_arrays` for optimizers.

    It takes so many ``states``. With ``by_rows``, unless ``lazy_update`` is False, a row-sparse gradient
    changes only the rows that it has. ``doubles`` are the settings that do not go through float32.
    """

    def __init__(self, rule, states: int, by_rows: bool = False, doubles=()):
        functools.update_wrapper(self, rule)
        self.__module__ = __name__
        self.rule, self.states, self.by_rows, self.doubles = rule, states, by_rows, doubles
        parameters = list(inspect.signature(rule).parameters.values())
        #: Whether large weights take the rule in one pass.
        self.compiles = parameters[0].name == "i"
        taken = parameters[2 if self.compiles else 1 :]  # without the place and ``out``
        self.__signature__ = inspect.Signature(taken)
        arrays, settings = taken[: 2 + states], taken[2 + states :]
        self._arrays = [each.name for each in arrays]
        #: The names of its settings.
        self.settings = tuple(each.name for each in settings)
        # A weight of a few numbers is updated sooner than a signature is bound.
        self._defaults = {each.name: each.default for each in settings if each.default is not each.empty}

    def __call__(self, *args, out=None, lazy_update=True, **named):
        """The operator: gives ``out``, or a new array."""
        try:
            settings = self.__signature__.bind(*args, **named).arguments
        except TypeError as error:
            raise ParamError(f"{self.__name__}: {error}") from None
        arrays = {name: settings.pop(name) for name in self._arrays}
        weight = arrays["weight"]
        out = weight.copy() if out is None else out
        check_shapes(self.__name__, weight, {**arrays, "out": out})
        _, *others = (each.data for each in arrays.values())
        if self.by_rows and lazy_update and rows_of(arrays["grad"]) is not None:
            out[:] = weight
            step = functools.partial(self.in_place, settings)
            on_rows(rows_of(arrays["grad"]), step, out.data, *others)
        else:
            self.on_arrays(settings, out.data, weight.data, *others)
        return out

    def in_place(self, settings: dict, weight, grad, *states) -> None:
        """One step on raw arrays, whose result is the weight."""
        self.on_arrays(settings, weight, weight, grad, *states)

    def on_arrays(self, settings: dict, out, weight, grad, *states) -> None:
        """One step on raw arrays. Settings go through float32, as in MXNet, to the weight's dtype."""
        given = {**self._defaults, **settings}
        kind = weight.dtype.type
        with np.errstate(all="ignore"):
            scalars = {
                name: kind(given[name] if name in self.doubles else np.float32(given[name]))
                for name in self.settings
            }
        arrays = weight, grad, *states
        # One pass is worth its compiling where the arrays do not stay in a cache.
        if self.compiles and out is weight and weight.size > BLOCK and _fit_one_pass(*arrays):
            kernels("training.update", cpu()).one_pass(self.rule, arrays, tuple(scalars.values()))
        else:
            all_elements = (...,) if self.compiles else ()
            in_blocks(functools.partial(self.rule, *all_elements, **scalars), out, *arrays)


def _fit_one_pass(*arrays) -> bool:
    dtype = arrays[0].dtype
    return dtype.char in "fd" and all(
        isinstance(each, np.ndarray) and each.dtype == dtype and each.flags.c_contiguous for each in arrays
    )


sgd_update = UpdateOperator(rules.sgd_update, 0, by_rows=True)
sgd_mom_update = UpdateOperator(rules.sgd_mom_update, 1, by_rows=True)
sgd_without_momentum = UpdateOperator(rules.sgd_without_momentum, 0)
nag_mom_update = UpdateOperator(rules.nag_mom_update, 1)
signsgd_update = UpdateOperator(rules.signsgd_update, 0)
signum_update = UpdateOperator(rules.signum_update, 1)
adam_update = UpdateOperator(rules.adam_update, 2, by_rows=True)
rmsprop_update = UpdateOperator(rules.rmsprop_update, 1)
rmspropalex_update = UpdateOperator(rules.rmspropalex_update, 3)
ftrl_update = UpdateOperator(rules.ftrl_update, 2)
ftml_update = UpdateOperator(rules.ftml_update, 3, doubles=("epsilon",))
lamb_update_phase1 = UpdateOperator(rules.lamb_update_phase1, 2)


def lamb_update_phase2(weight, g, r1, r2, *, lr, lower_bound=-1.0, upper_bound=-1.0, out=None):
    """LAMB's new weight, from the step ``g`` and the norms ``r1`` of the weight and ``r2`` of the step."""
    rate = lr * lamb_ratio(r1.asscalar(), r2.asscalar(), lower_bound, upper_bound)
    return sgd_update(weight, g, lr=rate, out=out)


def lamb_ratio(size: float, step_size: float, lower_bound: float, upper_bound: float) -> float:
    """What LAMB multiplies the learning rate by: the weight's norm, within its bounds, over the step's."""
    size = max(size, lower_bound) if lower_bound >= 0 else size
    size = min(size, upper_bound) if upper_bound >= 0 else size
    return size / step_size if size and step_size else 1.0


# -- float16 weights with a float32 copy, and several weights in a call --------------------------------------


def _with_copy(name: str, operator: UpdateOperator):
    """``operator`` on the float32 copy of a weight, which comes after the states."""

    def update(weight, grad, *states, out=None, lazy_update=True, **settings):
        *states, copy = states
        operator(copy, grad.astype(np.float32), *states, out=copy, lazy_update=lazy_update, **settings)
        return copy.astype(weight.dtype) if out is None else copy.copyto(out)

    return _named(update, name, f"{operator.__doc__} The last array is the weight's float32 copy.")


def _of_many(name: str, operator, arrays: int):
    """``operator`` on several weights, each followed by its gradient and its states."""

    def update(*data, lrs, wds, num_weights=1, out=None, **settings):
        if len(data) != arrays * num_weights:
            raise TypeError(
                f"{name} takes {arrays} arrays for each of {num_weights} weights, got {len(data)}"
            )
        groups = [data[i : i + arrays] for i in range(0, len(data), arrays)]
        outs = out if isinstance(out, list | tuple) else [out] * num_weights
        each = zip(groups, lrs, wds, outs, strict=True)
        new = [operator(*group, lr=lr, wd=wd, out=target, **settings) for group, lr, wd, target in each]
        return new if num_weights > 1 else new[0]

    return _named(update, name, f"{operator.__doc__} Several weights, each followed by what belongs to it.")


def _named(function, name, doc):
    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


mp_sgd_update = _with_copy("mp_sgd_update", sgd_update)
mp_sgd_mom_update = _with_copy("mp_sgd_mom_update", sgd_mom_update)
mp_nag_mom_update = _with_copy("mp_nag_mom_update", nag_mom_update)
multi_sgd_update = _of_many("multi_sgd_update", sgd_without_momentum, 2)
multi_sgd_mom_update = _of_many("multi_sgd_mom_update", sgd_mom_update, 3)
multi_mp_sgd_update = _of_many("multi_mp_sgd_update", _with_copy("", sgd_without_momentum), 3)
multi_mp_sgd_mom_update = _of_many("multi_mp_sgd_mom_update", mp_sgd_mom_update, 4)

__all__ = [name for name in globals() if name.endswith(("_update", "_phase1", "_phase2"))]
