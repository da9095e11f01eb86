"""``exp`` of float32 and what is made of it, as plain arithmetic, so that a loop around it runs in vectors.

A call of the C library's ``expf`` or ``erff`` in a loop takes one number at a time. All are right to a few
units in the last place, and NaN stays NaN.
"""

import math

import numpy as np

from ...jit import inner, njit

#: Added to a small number it rounds it to an integer, which its last bits then hold.
_ROUND = np.float32(1.5 * 2**23)
# Cody and Waite's two parts of log(2): the first has so few bits that n times it is exact.
_LOG2_HIGH, _LOG2_LOW = np.float32(0.693359375), np.float32(-2.12194440e-4)
_TO_BASE_TWO = np.float32(1 / math.log(2))
#: Below this a result would not be a normal number.
_LOWEST = np.float32(-87.3)
# The polynomial of Cephes for (exp(r) - 1 - r) / r**2 where |r| <= log(2) / 2.
_P0, _P1, _P2 = np.float32(1.9875691500e-4), np.float32(1.3981999507e-3), np.float32(8.3334519073e-3)
_P3, _P4, _P5 = np.float32(4.1665795894e-2), np.float32(1.6666665459e-1), np.float32(5.0000001201e-1)
_ZERO, _ONE, _TWO = (np.float32(number) for number in (0, 1, 2))
_BITS_OF_ONE = _ONE.view(np.int32)
# Polynomials of least relative error: of log(1 + e) / s by s * s, where s = e / (2 + e) and e is from 0 to 1;
# of erf(x) / x by x * x, where |x| < 1; of erfc(x) * exp(x * x) / t by t, where t = 1 / (1 + x) and x >= 1.
_L0, _L1, _L2, _L3, _L4 = (np.float32(c) for c in (2.0, 0.66666317, 0.4002491, 0.27960604, 0.28178325))
_E0, _E1, _E2, _E3 = (np.float32(c) for c in (1.1283791, -0.37612626, 0.112835854, -0.026853811))
_E4, _E5, _E6 = (np.float32(c) for c in (5.1883277e-3, -8.0101925e-4, 7.853858e-5))
_C0, _C1, _C2, _C3 = (np.float32(c) for c in (0.5641803, 0.56454945, 0.27644715, -0.23733903))
_C4, _C5, _C6, _C7 = (np.float32(c) for c in (-0.8761147, -0.06295447, 3.5213645, -4.756087))
_C8 = np.float32(2.080714)
#: The first bits of a float32: squared, they are exact.
_FIRST_BITS = np.int32(-(1 << 12))


@njit(fastmath={"contract"})
def _split(x):
    """``r, power`` with ``exp(x) = exp(r) * power`` and a small r, for x from the lowest up to 0."""
    rounded = x * _TO_BASE_TWO + _ROUND
    n = rounded - _ROUND
    r = x - n * _LOG2_HIGH
    exponent = np.float32(rounded).view(np.int32) << np.int32(23)
    return r - n * _LOG2_LOW, np.int32(exponent + _BITS_OF_ONE).view(np.float32)


@njit(fastmath={"contract"})
def _expm1_of_small(r):
    p = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
    return p * (r * r) + r


@njit(fastmath={"contract"})
def exp_below_zero(x):
    """``exp(x)`` of a float32 up to 0, to one unit in the last place; below 1.2e-38 it is 0."""
    r, power = _split(_LOWEST if x < _LOWEST else x)
    return _ZERO if x < _LOWEST else (_expm1_of_small(r) + _ONE) * power


@njit(fastmath={"contract"})
def expm1_below_zero(x):
    """``exp(x) - 1`` of a float32 up to 0."""
    r, power = _split(_LOWEST if x < _LOWEST else x)
    return _expm1_of_small(r) * power + (power - _ONE)


@inner(makes_arrays=False)
def sigmoid(x):
    """``1 / (1 + exp(-x))`` of a float32."""
    e = exp_below_zero(-abs(x))
    return (_ONE if x > _ZERO else e) / (_ONE + e)


@njit(fastmath={"contract"})
def softplus(x):
    """``log(1 + exp(x))``."""
    e = exp_below_zero(-abs(x))
    s = e / (_TWO + e)
    z = s * s
    log = s * ((((_L4 * z + _L3) * z + _L2) * z + _L1) * z + _L0)
    return x + log if x > _ZERO else log


@njit(fastmath={"contract"})
def erf_and_rest(x):
    """The error function of a number that is not negative, and 1 less it, which keeps its digits."""
    z = x * x
    near = x * ((((((_E6 * z + _E5) * z + _E4) * z + _E3) * z + _E2) * z + _E1) * z + _E0)
    first = np.int32(np.float32(x).view(np.int32) & _FIRST_BITS).view(np.float32)
    square = first * first  # without rounding: exp of a rounded one would lose digits
    r, power = _split(_LOWEST if -square < _LOWEST else -square)
    power *= _expm1_of_small(r - (x - first) * (x + first)) + _ONE
    t = _ONE / (_ONE + x)
    far = (((_C8 * t + _C7) * t + _C6) * t + _C5) * t + _C4
    far = ((((far * t + _C3) * t + _C2) * t + _C1) * t + _C0) * (t * power)
    far = _ZERO if -square < _LOWEST else far
    return near if x < _ONE else _ONE - far, _ONE - near if x < _ONE else far
