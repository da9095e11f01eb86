"""Functions that NumPy lacks: the error function, its inverse, gamma and its relatives.

They take and give one-dimensional float64 arrays, so each compiles once.
"""

import math

import numpy as np

from ...jit import inner, njit


@njit
def erf(x):
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = math.erf(x[i])
    return out


@inner
def _inverse(v):
    """A rational start value, then Newton's steps with Halley's correction on erf(y) = v."""
    if not -1.0 <= v <= 1.0:
        return np.nan
    if abs(v) == 1.0:
        return math.copysign(np.inf, v)
    a = 0.147
    log = math.log1p(-v * v)
    t = 2.0 / (math.pi * a) + log / 2.0
    y = math.copysign(math.sqrt(math.sqrt(t * t - log / a) - t), v)
    for _ in range(4):
        if abs(v) < 0.5:
            miss = math.erf(y) - v
        else:  # erfc keeps the digits of the tails, where erf is 1 to rounding
            miss = math.copysign(1.0, v) * (1.0 - abs(v) - math.erfc(abs(y)))
        step = miss * math.sqrt(math.pi) / 2.0 * math.exp(y * y)
        y -= step / (1.0 + y * step)
    return y


@njit
def erfinv(x):
    out = np.empty(x.size)
    for i in range(x.size):
        out[i] = _inverse(x[i])
    return out


@njit
def gamma(x):
    out = np.empty(x.size)
    for i in range(x.size):
        v = x[i]
        if v == 0.0:
            out[i] = math.copysign(np.inf, v)
        elif v < 0.0 and v == math.floor(v):
            out[i] = np.nan
        else:
            out[i] = math.gamma(v)
    return out


@njit
def gammaln(x):
    out = np.empty(x.size)
    for i in range(x.size):
        v = x[i]
        out[i] = np.inf if v <= 0.0 and v == math.floor(v) else math.lgamma(v)
    return out


@njit
def digamma(x):
    """Reflection for negative arguments, recurrence up to 10, then the asymptotic series."""
    out = np.empty(x.size)
    for i in range(x.size):
        v = x[i]
        if not math.isfinite(v) or (v <= 0.0 and v == math.floor(v)):
            out[i] = np.nan if v != v else np.inf  # at its poles, too, as in MXNet
            continue
        total = 0.0
        if v < 0.0:
            total -= math.pi / math.tan(math.pi * v)
            v = 1.0 - v
        while v < 10.0:
            total -= 1.0 / v
            v += 1.0
        s = 1.0 / (v * v)
        series = s * (
            1 / 12 - s * (1 / 120 - s * (1 / 252 - s * (1 / 240 - s * (1 / 132 - s * 691 / 32760))))
        )
        out[i] = total + math.log(v) - 0.5 / v - series
    return out
