"""``exp`` of float32 as plain arithmetic, so that a loop around it runs in vector registers.

A call of the C library's ``expf`` in a loop takes one number at a time.
"""

import math

import numpy as np

from ...jit import njit

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
_ZERO, _ONE, _BITS_OF_ONE = np.float32(0), np.float32(1), np.float32(1).view(np.int32)


@njit(fastmath={"contract"})
def exp_below_zero(x):
    """``exp(x)`` of a float32 up to 0, to one unit in the last place.

    Results below 1.2e-38 are 0. NaN stays NaN.
    """
    near = _LOWEST if x < _LOWEST else x
    rounded = near * _TO_BASE_TWO + _ROUND
    n = rounded - _ROUND
    r = near - n * _LOG2_HIGH
    r = r - n * _LOG2_LOW
    p = ((((_P0 * r + _P1) * r + _P2) * r + _P3) * r + _P4) * r + _P5
    p = p * (r * r) + r + _ONE
    exponent = np.float32(rounded).view(np.int32) << np.int32(23)
    power = np.int32(exponent + _BITS_OF_ONE).view(np.float32)
    return _ZERO if x < _LOWEST else p * power
