"""The checked mode: ``NUMBA_BOUNDSCHECK=1`` compares every access of a CPU kernel to memory with an extent.

numba compares the indices that are written in Python with the shape of the array, and :func:`check_access`
what our own instructions load and store. Without the variable, nothing is added to a kernel.
"""

import linecache

import numba
from llvmlite import ir
from numba import types

#: Whether accesses are compared. Kernels that are kept on disk are kept apart from the others.
CHECKED = bool(numba.config.BOUNDSCHECK) and not numba.config.DISABLE_JIT

_PACKAGE = __file__.rpartition("kernels")[0]


class OutsideError(IndexError):
    """A kernel would have loaded or stored beyond an array."""

    def __init__(self, place, index, count, size):
        super().__init__(f"{place}: {count} from index {index} on, of an array of {size}")


class AlignmentError(ValueError):
    """A kernel would have loaded or stored where an instruction cannot."""

    def __init__(self, place, index, alignment):
        super().__init__(f"{place}: index {index} is not at a multiple of {alignment} bytes")


def place_of(loc, action: str) -> str:
    """Where an access is written, in words: file and line of a kernel, and what stands there.

    ``loc`` is what numba gives to ``generate(context, builder, signature, args, loc=None)`` of an intrinsic.
    """
    if loc is None:
        return action
    file = loc.filename.removeprefix(_PACKAGE)
    line = linecache.getline(loc.filename, loc.line).strip()
    return f"{action} by {loc._raw_function_name()} ({file}:{loc.line}: {line})"


def check_access(context, builder, place, index, count, size, *, pointer=None, alignment=1):
    """Raise unless ``count`` numbers from ``index`` on are within ``size``; nothing for no numbers.

    ``index``, ``count`` and ``size`` are numbers or LLVM's 64-bit values; ``place`` says what is accessed,
    and where it is written. If ``pointer`` is given, it must be a multiple of ``alignment`` bytes.
    """
    if not CHECKED:
        return
    number = ir.IntType(64)
    index, count, size = (
        each if isinstance(each, ir.Value) else number(each) for each in (index, count, size)
    )
    accesses = builder.icmp_signed(">", count, number(0))
    before = builder.icmp_signed("<", index, number(0))
    beyond = builder.icmp_signed(">", index, builder.sub(size, count))
    outside = builder.and_(accesses, builder.or_(before, beyond))
    with builder.if_then(outside, likely=False):
        _raise(context, builder, OutsideError, place, index, count, size)
    if pointer is not None and alignment > 1:
        rest = builder.and_(builder.ptrtoint(pointer, number), number(alignment - 1))
        crooked = builder.icmp_unsigned("!=", rest, number(0))
        with builder.if_then(builder.and_(accesses, crooked), likely=False):
            _raise(context, builder, AlignmentError, place, index, number(alignment))


def _raise(context, builder, error, place, *numbers):
    """Return from the function that is being compiled, with an error about numbers that are known then."""
    kinds = (None, *[types.int64] * len(numbers))
    context.call_conv.return_dynamic_user_exc(builder, error, (place, *numbers), kinds)
