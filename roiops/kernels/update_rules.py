"""The rules of optimizers: one step on a weight, in MXNet's order of operations.

A rule is a function on arrays: ``out``, which may be the weight itself, the weight, its gradient and the
states, which it changes. The settings after them are scalars of the arrays' dtype, so that float16, too, is
rounded as in MXNet.

A rule whose first argument is ``i`` is compiled for large weights. It is written for one element of each
array; NumPy takes it with ``...``, which is all elements. Numbers in it have the arrays' dtype.
"""

import numpy as np


def _clipped(values, bound):
    """``values`` within ``bound`` of 0 if that is 0 or more."""
    return np.minimum(np.maximum(values, -bound), bound) if bound >= 0 else values


def _decayed(weight, grad, wd, rescale_grad, clip_gradient):
    """The gradient of rules that clip it together with the weight decay's part."""
    return _clipped(grad * rescale_grad + weight * wd, clip_gradient)


def _times(factor, grad, rescale_grad, clip_gradient):
    """``factor`` times the gradient, whose scales MXNet multiplies first where nothing is clipped."""
    if clip_gradient >= 0:
        return factor * _clipped(rescale_grad * grad, clip_gradient)
    return (factor * rescale_grad) * grad


#: What compiled rules call.
PARTS = _clipped, _decayed, _times


def _sign(values):
    """-1, 0 or 1; 0 for NaN."""
    return (values > 0).astype(values.dtype) - (values < 0).astype(values.dtype)


def sgd_update(i, out, weight, grad, lr, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """Stochastic gradient descent."""
    one = weight.dtype.type(1)
    out[i] = (one - lr * wd) * weight[i] - _times(lr, grad[i], rescale_grad, clip_gradient)


def sgd_mom_update(i, out, weight, grad, mom, lr, momentum=0.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """Stochastic gradient descent with momentum."""
    mom[i] = momentum * mom[i] - lr * wd * weight[i] - _times(lr, grad[i], rescale_grad, clip_gradient)
    out[i] = weight[i] + mom[i]


def sgd_without_momentum(i, out, weight, grad, lr, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """Stochastic gradient descent, rounded as ``multi_sgd_update`` and the optimizer have it."""
    zero = weight.dtype.type(0)
    step = zero - lr * wd * weight[i] - _times(lr, grad[i], rescale_grad, clip_gradient)
    out[i] = weight[i] + step


def nag_mom_update(i, out, weight, grad, mom, lr, momentum=0.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """Nesterov's accelerated gradient.

    As in MXNet, what is left of the momentum counts the weight decay of ``out``, which may be the weight.
    """
    one = weight.dtype.type(1)
    kept, g = momentum * mom[i], _clipped(rescale_grad * grad[i], clip_gradient)
    out[i] = weight[i] - kept + (momentum + one) * (kept - lr * (g + wd * weight[i]))
    mom[i] = kept - lr * (g + wd * weight[i])


def signsgd_update(out, weight, grad, *, lr, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0):
    """A step of ``lr`` against the gradient's sign."""
    out[...] = (1 - lr * wd) * weight - lr * _sign(grad)


def signum_update(
    out, weight, grad, mom, *, lr, momentum=0.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0, wd_lh=0.0
):
    """The same with momentum; ``wd_lh`` is a decay beside the gradient."""
    new = 1 - momentum
    mom[...] = momentum * mom - new * wd * weight - _times(new, grad, rescale_grad, clip_gradient)
    out[...] = (1 - lr * wd_lh) * weight + lr * _sign(mom)


def adam_update(
    i,
    out,
    weight,
    grad,
    mean,
    var,
    lr,
    beta1=0.9,
    beta2=0.999,
    epsilon=1e-8,
    wd=0.0,
    rescale_grad=1.0,
    clip_gradient=-1.0,
):
    """Adam, without its correction of the first steps, which is the learning rate's."""
    one = weight.dtype.type(1)
    g = _decayed(weight[i], grad[i], wd, rescale_grad, clip_gradient)
    mean[i] = beta1 * mean[i] + (one - beta1) * g
    var[i] = beta2 * var[i] + (one - beta2) * g * g
    out[i] = weight[i] - lr * mean[i] / (np.sqrt(var[i]) + epsilon)


def rmsprop_update(
    i,
    out,
    weight,
    grad,
    n,
    lr,
    gamma1=0.95,
    epsilon=1e-8,
    wd=0.0,
    rescale_grad=1.0,
    clip_gradient=-1.0,
    clip_weights=-1.0,
):
    """RMSProp as Tieleman and Hinton have it."""
    one = weight.dtype.type(1)
    g = _decayed(weight[i], grad[i], wd, rescale_grad, clip_gradient)
    n[i] = (one - gamma1) * (g * g) + gamma1 * n[i]
    out[i] = _clipped(weight[i] - lr * (g / np.sqrt(n[i] + epsilon)), clip_weights)


def rmspropalex_update(
    i,
    out,
    weight,
    grad,
    n,
    g,
    delta,
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
    one = weight.dtype.type(1)
    now = _decayed(weight[i], grad[i], wd, rescale_grad, clip_gradient)
    n[i] = (one - gamma1) * now * now + gamma1 * n[i]
    g[i] = (one - gamma1) * now + gamma1 * g[i]
    delta[i] = gamma2 * delta[i] - lr * now / np.sqrt(n[i] - g[i] * g[i] + epsilon)
    out[i] = _clipped(weight[i] + delta[i], clip_weights)


def ftrl_update(
    out, weight, grad, z, n, *, lr, lamda1=0.01, beta=1.0, wd=0.0, rescale_grad=1.0, clip_gradient=-1.0
):
    """Follow the regularised leader (McMahan et al., 2013)."""
    g = _clipped(grad * rescale_grad, clip_gradient)
    more = n + g * g
    root = np.sqrt(more)
    z[...] = z + (g - (root - np.sqrt(n)) * weight / lr)
    n[...] = more
    moved = (_sign(z) * lamda1 - z) / ((beta + root) / lr + wd)
    out[...] = moved * (np.abs(z) > lamda1)


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
