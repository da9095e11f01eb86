"""MXNet's update operators: one step of an optimizer on one weight, ``nd.sgd_mom_update`` and its kin.

Each takes the weight, its gradient and the optimizer's states, which it changes, and writes the new weight
to ``out``. ``lr`` is the learning rate and ``wd`` the weight decay; the gradient is multiplied by
``rescale_grad`` and, with ``clip_gradient`` of 0 or more, kept within that of 0. :mod:`roiops.optimizer` has
whole optimizers.
"""

import functools

import numpy as np

from ..context import cpu
from ..operators.base import kernels
from .ndarray import NDArray
from .sparse import rows_of

__all__ = [
    "adam_update",
    "ftml_update",
    "ftrl_update",
    "nag_mom_update",
    "rmsprop_update",
    "rmspropalex_update",
    "sgd_mom_update",
    "sgd_update",
    "signsgd_update",
    "signum_update",
]


def takes_one_pass(*arrays) -> bool:
    """Whether :func:`momentum_step` can have these arrays."""
    first = arrays[0]
    return first.dtype.char in "fd" and all(
        isinstance(each, np.ndarray) and each.dtype == first.dtype and each.flags.c_contiguous
        for each in arrays
    )


def momentum_step(weight, grad, momentum, lr, wd, keep, rescale, limit):
    """Stochastic gradient descent with momentum, in place and on the kernels' threads."""
    flat = (each.reshape(-1) for each in (weight, grad, momentum))
    kernels("training.update", cpu()).momentum_step(*flat, lr, wd, keep, rescale, limit)


def _clipped(array, bound):
    return array if bound is None or bound < 0 else np.clip(array, -bound, bound)


def _on_arrays(states: int, by_rows: bool = False):
    """Decorator: the function gets NumPy arrays, and gives the new weight and the new states.

    With ``by_rows`` and ``lazy_update`` a row-sparse gradient changes only the rows that it has.
    """

    def decorate(function):
        @functools.wraps(function)
        def update(weight, grad, *arrays, out=None, lazy_update=True, **settings):
            arrays, rest = arrays[:states], arrays[states:]
            if rest or len(arrays) < states:
                raise TypeError(f"{function.__name__} takes a weight, a gradient and {states} states")
            hosts = [each.asnumpy() for each in (weight, grad, *arrays)]
            rows = rows_of(grad) if by_rows and lazy_update else None
            if rows is None:
                new, *new_states = function(*hosts, **settings)
            else:
                results = function(*(each[rows] for each in hosts), **settings)
                new, *new_states = (hosts[0], *hosts[2:])
                for each, changed in zip((new, *new_states), results, strict=True):
                    each[rows] = changed
            for target, value in zip(arrays, new_states, strict=True):
                target[:] = value
            if out is None:
                return NDArray(np.asarray(new, weight.dtype), weight.context)
            out[:] = new
            return out

        return update

    return decorate


@_on_arrays(0, by_rows=True)
def sgd_update(weight, grad, *, lr, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """Stochastic gradient descent."""
    return ((1 - lr * wd) * weight - lr * _clipped(rescale_grad * grad, clip_gradient),)


@_on_arrays(1, by_rows=True)
def sgd_mom_update(weight, grad, mom, *, lr, momentum=0.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """Stochastic gradient descent with momentum."""
    mom = momentum * mom - lr * wd * weight - lr * _clipped(rescale_grad * grad, clip_gradient)
    return weight + mom, mom


@_on_arrays(1)
def nag_mom_update(weight, grad, mom, *, lr, momentum=0.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """Nesterov's accelerated gradient."""
    step = lr * (_clipped(rescale_grad * grad, clip_gradient) + wd * weight)
    mom = momentum * mom
    return weight - mom + (momentum + 1) * (mom - step), mom - step


@_on_arrays(0)
def signsgd_update(weight, grad, *, lr, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """A step of ``lr`` against the gradient's sign."""
    return ((1 - lr * wd) * weight - lr * np.sign(grad),)


@_on_arrays(1)
def signum_update(
    weight, grad, mom, *, lr, momentum=0.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0, wd_lh=0.0
):
    """The same with momentum; ``wd_lh`` is a decay beside the gradient."""
    step = wd * weight + _clipped(rescale_grad * grad, clip_gradient)
    mom = momentum * mom - (1 - momentum) * step
    return (1 - lr * wd_lh) * weight + lr * np.sign(mom), mom


@_on_arrays(2, by_rows=True)
def adam_update(
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
    grad = _clipped(rescale_grad * grad + wd * weight, clip_gradient)
    mean, var = beta1 * mean + (1 - beta1) * grad, beta2 * var + (1 - beta2) * grad**2
    return weight - lr * mean / (np.sqrt(var) + epsilon), mean, var


@_on_arrays(1)
def rmsprop_update(
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
    grad = _clipped(rescale_grad * grad + wd * weight, clip_gradient)
    n = (1 - gamma1) * grad**2 + gamma1 * n
    return _clipped(weight - lr * grad / np.sqrt(n + epsilon), clip_weights), n


@_on_arrays(3)
def rmspropalex_update(
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
    grad = _clipped(rescale_grad * grad + wd * weight, clip_gradient)
    n, g = (1 - gamma1) * grad**2 + gamma1 * n, (1 - gamma1) * grad + gamma1 * g
    delta = gamma2 * delta - lr * grad / np.sqrt(n - g * g + epsilon)
    return _clipped(weight + delta, clip_weights), n, g, delta


@_on_arrays(2)
def ftrl_update(
    weight, grad, z, n, *, lr, lamda1=0.01, beta=1.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0
):
    """Follow the regularised leader (McMahan et al., 2013)."""
    grad = _clipped(rescale_grad * grad, clip_gradient)
    z = z + grad - (np.sqrt(n + grad**2) - np.sqrt(n)) * weight / lr
    n = n + grad**2
    moved = (np.sign(z) * lamda1 - z) / ((beta + np.sqrt(n)) / lr + wd)
    return np.where(np.abs(z) > lamda1, moved, 0), z, n


@_on_arrays(3)
def ftml_update(
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
    grad = _clipped(rescale_grad * grad + wd * weight, clip_grad)
    v = beta2 * v + (1 - beta2) * grad**2
    new = (1 - beta1**t) / lr * (np.sqrt(v / (1 - beta2**t)) + epsilon)
    z = beta1 * z + (1 - beta1) * grad - (new - beta1 * d) * weight
    return -z / new, new, v, z
