"""MXNet's update operators: one step of an optimizer on one weight, ``nd.sgd_mom_update`` and its kin.

Each takes the weight, its gradient and the optimizer's states, which it changes, and writes the new weight
to ``out``. ``lr`` is the learning rate and ``wd`` the weight decay; the gradient is multiplied by
``rescale_grad`` and, with ``clip_gradient`` of 0 or more, kept within that of 0. :mod:`roiops.optimizer` has
whole optimizers.

A rule stands here once, for the operator and for the optimizer: a function on raw arrays whose settings are
scalars of the arrays' dtype, in MXNet's order of operations, so that float16, too, is rounded as there.
"""

import functools

import numpy as np

from ..context import cpu
from ..operators.base import kernels
from .sparse import rows_of

__all__ = [
    "adam_update",
    "ftml_update",
    "ftrl_update",
    "lamb_update_phase1",
    "lamb_update_phase2",
    "mp_nag_mom_update",
    "mp_sgd_mom_update",
    "mp_sgd_update",
    "multi_mp_sgd_mom_update",
    "multi_mp_sgd_update",
    "multi_sgd_mom_update",
    "multi_sgd_update",
    "nag_mom_update",
    "rmsprop_update",
    "rmspropalex_update",
    "sgd_mom_update",
    "sgd_update",
    "signsgd_update",
    "signum_update",
]

#: Elements updated at once: a rule's temporaries stay in a cache, and are few calls of NumPy.
BLOCK = 131072


def in_blocks(rule, *arrays) -> None:
    """Call an element-wise rule on arrays of one shape, block by block."""
    with np.errstate(all="ignore"):
        if not all(each.flags["C_CONTIGUOUS"] for each in arrays):
            rule(*arrays)
            return
        flat = [each.reshape(-1) for each in arrays]
        block = BLOCK if isinstance(arrays[0], np.ndarray) else max(1, flat[0].size)
        for start in range(0, flat[0].size, block):
            rule(*(each[start : start + block] for each in flat))


def on_rows(rows, update, weight, grad, *states) -> None:
    """``update(weight, grad, *states)`` in place on these rows of all arrays."""
    parts = [each[rows] for each in (weight, *states)]
    update(parts[0], grad[rows], *parts[1:])
    for each, part in zip((weight, *states), parts, strict=True):
        each[rows] = part


class UpdateOperator:
    """A rule as a function on NDArrays, and :meth:`on_arrays` for optimizers.

    Parameters
    ----------
    rule : callable
        ``rule(out, weight, grad, *states, **settings)`` on raw arrays; ``out`` may be the weight itself.
    states : int
        How many states the operator takes.
    by_rows : bool
        Whether, unless ``lazy_update`` is False, a row-sparse gradient changes only the rows that it has.
    doubles : sequence of str
        The settings that do not go through float32.
    """

    def __init__(self, rule, states: int, by_rows: bool = False, doubles=()):
        functools.update_wrapper(self, rule)
        self.rule, self.states, self.by_rows, self.doubles = rule, states, by_rows, doubles

    def __call__(self, weight, grad, *states, out=None, lazy_update=True, **settings):
        """The operator: gives ``out``, or a new array."""
        if len(states) != self.states:
            raise TypeError(f"{self.__name__} takes a weight, a gradient and {self.states} states")
        out = weight.copy() if out is None else out
        others = [each.data for each in (grad, *states)]
        if self.by_rows and lazy_update and rows_of(grad) is not None:
            out[:] = weight
            on_rows(rows_of(grad), functools.partial(self.in_place, settings), out.data, *others)
        else:
            self.on_arrays(settings, out.data, weight.data, *others)
        return out

    def in_place(self, settings: dict, weight, grad, *states) -> None:
        """One step on raw arrays, whose result is the weight."""
        self.on_arrays(settings, weight, weight, grad, *states)

    def on_arrays(self, settings: dict, out, weight, grad, *states) -> None:
        """One step on raw arrays. Settings go through float32, as in MXNet, to the weight's dtype."""
        singles = {**self.rule.__kwdefaults__, **settings}
        doubles = {name: settings[name] for name in self.doubles if name in settings}
        with np.errstate(all="ignore"):
            settings = {name: np.float32(value) for name, value in singles.items()} | doubles
            scalars = {name: weight.dtype.type(value) for name, value in settings.items()}
        self._apply(scalars, out, weight, grad, *states)

    def _apply(self, scalars, *arrays):
        in_blocks(functools.partial(self.rule, **scalars), *arrays)


class _Momentum(UpdateOperator):
    """The rule that a large weight takes in one pass, on the kernels' threads, with the same bits."""

    def _apply(self, scalars, out, *arrays):
        weight = arrays[0]
        # One pass is worth its compiling where the arrays do not stay in a cache.
        if (
            out is weight
            and weight.size > BLOCK
            and weight.dtype.char in "fd"
            and all(
                isinstance(each, np.ndarray) and each.dtype == weight.dtype and each.flags.c_contiguous
                for each in arrays
            )
        ):
            kernels("training.update", cpu()).momentum_step(*arrays, **scalars)
        else:
            super()._apply(scalars, out, *arrays)


def _operator(states: int, kind=UpdateOperator, **more):
    return functools.partial(kind, states=states, **more)


def _clipped(values, bound):
    """``values``, which are written over, within ``bound`` of 0 if that is 0 or more."""
    return np.clip(values, -bound, bound, out=values) if bound >= 0 else values


def _decayed(weight, grad, wd, rescale_grad, clip_gradient):
    """The gradient of rules that clip it together with the weight decay's part."""
    return _clipped(grad * rescale_grad + weight * wd, clip_gradient)


def _times(factor, grad, rescale_grad, clip_gradient):
    """``factor`` times the gradient, whose scales MXNet multiplies first where nothing is clipped."""
    if clip_gradient >= 0:
        return factor * _clipped(rescale_grad * grad, clip_gradient)
    return (factor * rescale_grad) * grad


def _sign(values):
    """-1, 0 or 1; 0 for NaN."""
    return (values > 0).astype(values.dtype) - (values < 0).astype(values.dtype)


@_operator(0, by_rows=True)
def sgd_update(out, weight, grad, *, lr, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """Stochastic gradient descent."""
    out[...] = (1 - lr * wd) * weight - _times(lr, grad, rescale_grad, clip_gradient)


@_operator(1, _Momentum, by_rows=True)
def sgd_mom_update(
    out, weight, grad, mom=None, *, lr, momentum=0.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0
):
    """Stochastic gradient descent with momentum."""
    step = 0 if mom is None else momentum * mom
    step = step - lr * wd * weight - _times(lr, grad, rescale_grad, clip_gradient)
    if mom is not None:
        mom[...] = step
    out[...] = weight + step


#: The same rule without momentum, as ``multi_sgd_update`` and the optimizer have it; ``sgd_update`` rounds
#: otherwise.
sgd_without_momentum = _operator(0)(sgd_mom_update.rule)


@_operator(1)
def nag_mom_update(out, weight, grad, mom, *, lr, momentum=0.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """Nesterov's accelerated gradient.

    As in MXNet, what is left of the momentum counts the weight decay of ``out``, which may be the weight.
    """
    mom[...] = momentum * mom
    g = _clipped(rescale_grad * grad, clip_gradient)
    out[...] = weight - mom + (momentum + 1) * (mom - lr * (g + wd * weight))
    mom[...] = mom - lr * (g + wd * weight)


@_operator(0)
def signsgd_update(out, weight, grad, *, lr, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """A step of ``lr`` against the gradient's sign."""
    out[...] = (1 - lr * wd) * weight - lr * _sign(grad)


@_operator(1)
def signum_update(
    out, weight, grad, mom, *, lr, momentum=0.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0, wd_lh=0.0
):
    """The same with momentum; ``wd_lh`` is a decay beside the gradient."""
    new = 1 - momentum
    mom[...] = momentum * mom - new * wd * weight - _times(new, grad, rescale_grad, clip_gradient)
    out[...] = (1 - lr * wd_lh) * weight + lr * _sign(mom)


@_operator(2, by_rows=True)
def adam_update(
    out,
    weight,
    grad,
    mean,
    var,
    *,
    lr,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    wd=0.0,
    rescale_grad=1.0,
    clip_gradient=-1.0,
):
    """Adam, without its correction of the first steps, which is the learning rate's."""
    g = _decayed(weight, grad, wd, rescale_grad, clip_gradient)
    mean[...] = beta1 * mean + (1 - beta1) * g
    var[...] = beta2 * var + (1 - beta2) * g * g
    out[...] = weight - lr * mean / (np.sqrt(var) + epsilon)


@_operator(1)
def rmsprop_update(
    out,
    weight,
    grad,
    n,
    *,
    lr,
    gamma1=0.95,
    epsilon=1e-8,
    wd=0.0,
    rescale_grad=1.0,
    clip_gradient=-1.0,
    clip_weights=-1.0,
):
    """RMSProp as Tieleman and Hinton have it."""
    g = _decayed(weight, grad, wd, rescale_grad, clip_gradient)
    n[...] = (1 - gamma1) * (g * g) + gamma1 * n
    out[...] = _clipped(weight - lr * (g / np.sqrt(n + epsilon)), clip_weights)


@_operator(3)
def rmspropalex_update(
    out,
    weight,
    grad,
    n,
    g,
    delta,
    *,
    lr,
    gamma1=0.95,
    gamma2=0.9,
    epsilon=1e-8,
    wd=0.0,
    rescale_grad=1.0,
    clip_gradient=-1.0,
    clip_weights=-1.0,
):
    """RMSProp as Graves has it."""
    grad = _decayed(weight, grad, wd, rescale_grad, clip_gradient)
    n[...] = (1 - gamma1) * grad * grad + gamma1 * n
    g[...] = (1 - gamma1) * grad + gamma1 * g
    delta[...] = gamma2 * delta - lr * grad / np.sqrt(n - g * g + epsilon)
    out[...] = _clipped(weight + delta, clip_weights)


@_operator(2)
def ftrl_update(
    out, weight, grad, z, n, *, lr, lamda1=0.01, beta=1.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0
):
    """Follow the regularised leader (McMahan et al., 2013)."""
    g = _clipped(grad * rescale_grad, clip_gradient)
    z[...] = z + (g - (np.sqrt(n + g * g) - np.sqrt(n)) * weight / lr)
    n[...] = n + g * g
    moved = (_sign(z) * lamda1 - z) / ((beta + np.sqrt(n)) / lr + wd)
    out[...] = moved * (np.abs(z) > lamda1)


@_operator(3, doubles=("epsilon",))
def ftml_update(
    out,
    weight,
    grad,
    d,
    v,
    z,
    *,
    lr,
    t,
    beta1=0.6,
    beta2=0.999,
    epsilon=1e-8,
    wd=0.0,
    rescale_grad=1.0,
    clip_grad=-1.0,
):
    """Follow the moving leader (Zheng and Kwok, 2017)."""
    g = _decayed(weight, grad, wd, rescale_grad, clip_grad)
    v[...] = beta2 * v + (1 - beta2) * (g * g)
    new = (1 - beta1**t) / lr * (np.sqrt(v / (1 - beta2**t)) + epsilon)
    z[...] = beta1 * z + (1 - beta1) * g - (new - beta1 * d) * weight
    d[...] = new
    out[...] = -z / new


@_operator(2)
def lamb_update_phase1(
    out,
    weight,
    grad,
    mean,
    var,
    *,
    t,
    wd,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-6,
    bias_correction=True,
    rescale_grad=1.0,
    clip_gradient=-1.0,
):
    """The step of LAMB before it is scaled to the weight's norm (You et al., 2019)."""
    g = _clipped(grad * rescale_grad, clip_gradient)
    mean[...] = beta1 * mean + (1 - beta1) * g
    var[...] = beta2 * var + (1 - beta2) * g * g
    mean_left, var_left = (1 - beta1**t, 1 - beta2**t) if bias_correction else (1, 1)
    out[...] = mean / mean_left / (np.sqrt(var / var_left) + epsilon) + wd * weight


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
        return [operator(*group, lr=lr, wd=wd, out=target, **settings) for group, lr, wd, target in each]

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
