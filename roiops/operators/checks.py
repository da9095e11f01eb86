"""What an operator's code is held to: write every output, and read in backward only what was declared.

Undeclared arrays are never handed to a backward, since their memory may have been used again. Whether forward
wrote all of its outputs is looked at where :func:`enforced` says so, or with ``ROIOPS_CHECK=1``.
"""

import contextlib
import os

import numpy as np

from ..errors import MXNetError

__all__ = ["SOURCES", "Undeclared", "declared_only", "enforced", "on", "spoil", "writing_all"]

#: What a backward may read; ``backward_needs`` of a property names some of them.
SOURCES = ("out_grad", "in_data", "out_data")

_asked = os.environ.get("ROIOPS_CHECK", "0") not in ("", "0")
_depth = 0


def on() -> bool:
    """Whether checks that cost time are made: by ``ROIOPS_CHECK=1`` on import, or :func:`enforced`."""
    return _asked or _depth > 0


@contextlib.contextmanager
def enforced():
    """Make the checks that cost time, in graphs bound within and in calls made within."""
    global _depth
    _depth += 1
    try:
        yield
    finally:
        _depth -= 1


# -- what backward reads -----------------------------------------------------------------------------------


class Undeclared:
    """Stands for an array that backward may not read. It has a shape and a dtype; all else is an error."""

    def __init__(self, message: str, like):
        self._message = message
        self.shape, self.dtype = tuple(like.shape), like.dtype
        self.ndim, self.size = like.ndim, like.size

    def _refuse(self, *_args, **_kwargs):
        raise MXNetError(self._message)

    @property
    def _numba_type_(self):
        """For numba, which only asks at first whether there is one: what it reads of it is refused."""
        return self

    def __getattr__(self, name):
        self._refuse()

    def __repr__(self):
        return f"<Undeclared: {self._message}>"


_COMPARISONS = {f"__{name}__" for name in ("lt", "le", "eq", "ne", "gt", "ge")}
for _name in _COMPARISONS | (set(dir(np.ndarray)) - set(dir(object))):
    if _name.startswith("__") and callable(getattr(np.ndarray, _name)):
        setattr(Undeclared, _name, Undeclared._refuse)


def declared_only(prop, label: str, out_grad, in_data, out_data) -> list:
    """The three lists for a backward, with :class:`Undeclared` for what ``backward_needs`` leaves out."""
    needs = prop.backward_needs
    lists = []
    for source, arrays in zip(SOURCES, (out_grad, in_data, out_data), strict=True):
        if source not in needs:
            arrays = [
                each if each is None else Undeclared(_refusal(label, f"{source}[{number}]", needs), each)
                for number, each in enumerate(arrays)
            ]
        lists.append(arrays)
    return lists


def _refusal(label: str, what: str, needs) -> str:
    return (
        f"{label}: backward reads {what}, but backward_needs (declare_backward_dependency of a CustomOpProp) "
        f"names {', '.join(needs) or 'nothing'}; what it does not name may be overwritten before"
    )


def spoil(arrays, kept=()) -> None:
    """Fill floating-point arrays with NaN, but none that shares memory with one that is ``kept``."""
    kept = [array for array in kept if isinstance(array, np.ndarray)]
    for array in arrays:
        if not isinstance(array, np.ndarray) or array.dtype.kind != "f":
            continue
        if not any(np.may_share_memory(array, each) for each in kept):
            array.fill(np.nan)


# -- what forward writes -----------------------------------------------------------------------------------

#: What no operator writes by chance: for each size of number, an odd pattern, for floats a NaN.
_PATTERNS = {2: np.uint16(0x7E5D), 4: np.uint32(0x7FE5A3C9), 8: np.uint64(0x7FFC5A3C9E1B4D27)}


def writing_all(call, label: str, req, in_data, out_data):
    """``call``, which computes the outputs, with an error after it where an element was not written."""

    def checked():
        filled = _fill(req, in_data, out_data)
        call()
        for number, pattern in filled.items():
            array = out_data[number]
            left = int(np.count_nonzero(array.view(pattern.dtype) == pattern))
            if left:
                part = "" if left == array.size else f"{left} of {array.size} elements of "
                raise MXNetError(
                    f"{label} left {part}out_data[{number}] unwritten; assign(out_data[{number}], "
                    f"req[{number}], value) writes it"
                )

    return checked


def _fill(req, in_data, out_data) -> dict:
    """Fill the outputs with a pattern, to see what is left of it: the pattern by the output's number."""
    filled = {}
    for number, (each, array) in enumerate(zip(req, out_data, strict=True)):
        if each != "write" or not isinstance(array, np.ndarray) or not array.flags.c_contiguous:
            continue
        pattern = _PATTERNS.get(array.dtype.itemsize)
        by_chance = array.dtype.itemsize < 4 and array.dtype.kind != "f"
        shared = any(each is not None and np.may_share_memory(array, each) for each in in_data)
        if pattern is not None and array.size and not by_chance and not shared:
            array.view(pattern.dtype).fill(pattern)
            filled[number] = pattern
    return filled
