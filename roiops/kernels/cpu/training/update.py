"""Steps of optimizers in one pass over the weight, on flat arrays of float32 or float64."""

import numpy as np

from ...jit import num_threads, parallel, within

#: Numbers that a thread takes at a time.
_BLOCK = 16384


def momentum_step(weight, grad, momentum, lr, wd, keep, rescale, limit):
    """``momentum = keep * momentum - lr * g; weight += momentum``.

    ``g`` is the gradient times ``rescale``, within ``limit`` of 0, plus ``wd * weight``; ``limit`` is None
    where nothing is clipped.
    """
    limit = np.inf if limit is None else limit
    numbers = (weight.dtype.type(each) for each in (lr, wd, keep, rescale, limit))
    _momentum_step.by(num_threads(weight.size))(weight, grad, momentum, *numbers)


@parallel
def _momentum_step(share, weight, grad, momentum, lr, wd, keep, rescale, limit):
    for block in within(share, (weight.size + _BLOCK - 1) // _BLOCK):
        start = np.int64(block) * _BLOCK
        stop = start + _BLOCK
        weights, gradients, moments = weight[start:stop], grad[start:stop], momentum[start:stop]
        for i in range(weights.size):
            g = gradients[i] * rescale
            g = -limit if g < -limit else g
            g = limit if g > limit else g
            if wd != 0:
                g += wd * weights[i]
            moments[i] = keep * moments[i] - lr * g
            weights[i] += moments[i]
