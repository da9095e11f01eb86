"""How the items of a loop are divided among threads: what a kernel of ``jit.parallel`` does of them.

Its first argument is a *share*: the number of its part, how many parts there are, and the address of what is
claimed of their items, 0 where each part does its own alone.
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from .jit import inner
from .numba_insides.launch import STATE


@inner
def within(share, count):
    """The numbers below ``count`` that belong to a share."""
    index, parts, _ = share
    return range(index * count // parts, (index + 1) * count // parts)


@inner
def rows_within(share, planes, height):
    """The rows that belong to a share, of planes whose rows are counted one after the other: ``first, stop``.

    ``for plane in planes_of(rows, height)``, the rows of a plane are ``rows_of(plane, rows, height)``. Planes
    alone are too few for many threads.
    """
    index, parts, _ = share
    return index * planes * height // parts, (index + 1) * planes * height // parts


@inner
def planes_of(rows, height):
    first, stop = rows
    return range(first // max(1, height), (stop + height - 1) // max(1, height))


@inner
def rows_of(plane, rows, height):
    first, stop = rows
    return max(0, first - plane * height), min(height, stop - plane * height)


#: Bytes from the state of a part to that of the next, and how many bits of a claim are those from the front.
_STATE_BYTES, _FRONT = 8 * STATE, 32


@intrinsic
def _exchange(typing, address, old, new):
    """Store ``new`` at an address if ``old`` is there, in one step; whether it was."""

    def generate(context, builder, signature, values):
        address, old, new = values
        at = builder.inttoptr(address, old.type.as_pointer())
        return builder.extract_value(builder.cmpxchg(at, old, new, "monotonic", "monotonic"), 1)

    return types.boolean(types.int64, types.int64, types.int64), generate


@intrinsic
def _number_at(typing, address):
    """The 64-bit number at an address, which other threads may write."""

    def generate(context, builder, signature, values):
        (address,) = values
        at = builder.inttoptr(address, address.type.as_pointer())
        return builder.load_atomic(at, "monotonic", 8)

    return types.int64(types.int64), generate


@inner(makes_arrays=False)
def _claim(claims, worker, length, done, least, own):
    """The next items of a worker, counted from its first, that nobody else does: the first and the end.

    A claim is a quarter of what is left, its ``own`` from the front, another's from the back. Where nothing
    is claimed, all that is not ``done`` is its own.
    """
    if claims == 0:
        return done, length
    address = claims + worker * _STATE_BYTES
    while True:
        claimed = _number_at(address)
        front, back = claimed & ((1 << _FRONT) - 1), claimed >> _FRONT
        left = length - front - back
        size = min(left, max(least, left // 4))
        if left <= 0:
            return np.int64(0), np.int64(0)
        if own and _exchange(address, claimed, claimed + size):
            return front, front + size
        if not own and _exchange(address, claimed, claimed + (size << _FRONT)):
            return length - back - size, length - back


@inner(makes_arrays=False)
def pieces(share, begins, worker, least):
    """The items that a worker does, piece by piece, each a first one and an end; a kernel asks for them once.

    Worker ``w`` begins with those from ``begins[w]`` to ``begins[w + 1]``, and goes on with some of those
    that others have not begun: on most machines some processors are faster than others, always or for a
    while. At least so many are taken at once; with ``least`` of 0 each worker does its own alone.
    """
    claims, workers = share[2] if least > 0 else np.int64(0), begins.shape[0] - 1
    for k in range(workers if claims != 0 else 1):
        of = (worker + k) % workers
        begin, length = begins[of], begins[of + 1] - begins[of]
        first, stop = _claim(claims, of, length, np.int64(0), least, k == 0)
        while first < stop:
            yield begin + first, begin + stop
            first, stop = _claim(claims, of, length, stop, least, k == 0)


@inner(makes_arrays=False)
def taken(share, count):
    """The numbers below ``count``: those of :func:`within`, and some that others have not begun.

    A kernel asks for them once: ``for i in taken(share, count)``, where an i takes as long as a plane of
    pixels. Each costs some nanoseconds, which a short row of numbers would feel.
    """
    part, parts, claims = share
    for k in range(parts if claims != 0 else 1):
        of = (part + k) % parts
        begin = of * count // parts
        length = (of + 1) * count // parts - begin
        first, stop = _claim(claims, of, length, np.int64(0), np.int64(1), k == 0)
        while first < stop:
            for number in range(begin + first, begin + stop):  # noqa: UP028 (numba has no `yield from`)
                yield number
            first, stop = _claim(claims, of, length, stop, np.int64(1), k == 0)
