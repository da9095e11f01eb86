"""Steps of optimizers in one pass over the weight, on flat arrays of float32 or float64."""

import numpy as np

from ...jit import num_threads, parallel, within

#: Numbers that a thread takes at a time.
_BLOCK = 16384


def momentum_step(weight, grad, mom, *, lr, momentum, wd, rescale_grad, clip_gradient):
    """``ndarray.updates.sgd_mom_update`` in place, to the bit; the settings are of the arrays' dtype."""
    one, no_limit = weight.dtype.type(1), weight.dtype.type(np.inf)
    if clip_gradient >= 0:
        factors = rescale_grad, clip_gradient, lr
    else:
        factors = lr * rescale_grad, no_limit, one
    flat = (each.reshape(-1) for each in (weight, grad, mom))
    _momentum_step.by(num_threads(weight.size))(*flat, momentum, lr * wd, *factors)


@parallel
def _momentum_step(share, weight, grad, mom, momentum, decay, before, limit, after):
    for block in within(share, (weight.size + _BLOCK - 1) // _BLOCK):
        start = np.int64(block) * _BLOCK
        stop = start + _BLOCK
        weights, gradients, moments = weight[start:stop], grad[start:stop], mom[start:stop]
        for i in range(weights.size):
            g = gradients[i] * before
            g = -limit if g < -limit else g
            g = limit if g > limit else g
            moments[i] = momentum * moments[i] - decay * weights[i] - after * g
            weights[i] += moments[i]
