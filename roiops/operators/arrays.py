"""What operators compute with NumPy alone: formulas block by block, gradients of broadcasting, reductions.

NumPy's own loops are vectorised, ``exp`` and its kin more so than what numba compiles, so a formula of
several steps is computed block by block: each step finds the block in the cache, and temporaries stay
small whatever the size of the arrays.
"""

import functools
import math

import numpy as np

from ..dtypes import wide

BLOCK = 32768
#: Numbers of a strided array that are worth a kernel made for one copy.
_LARGE = 1 << 17
#: Bytes of a row that are copied as one item, at most.
_RUN = 64

_ARITHMETIC = np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.absolute, np.negative, np.square
_COMPARISONS = np.equal, np.not_equal, np.greater, np.greater_equal, np.less, np.less_equal
_LOGIC = np.logical_and, np.logical_or, np.logical_xor, np.logical_not
#: What NumPy computes on integers in their own dtype with MXNet's result.
_INTEGER_LOOPS = {*_ARITHMETIC, *_COMPARISONS, *_LOGIC}

_FLAGS = ["external_loop", "buffered", "zerosize_ok"]


def nothing():
    """The bound call of an operator whose output already is its input's memory."""


def bind(function, inputs, out, req="write", exact=False):
    """A call without arguments for ``out = function(*inputs)``; a lone ufunc is called directly.

    ``exact`` is for functions that only choose among their inputs: no dtype changes on the way.
    """
    if req == "null":
        return nothing
    if function is np.true_divide and inputs[0].dtype == np.int64:
        function, exact = quotient, True  # float64 has no place for all digits
    dtype = None if exact else _compute_dtype(function, inputs[0].dtype)
    if dtype is None and req != "add" and isinstance(function, np.ufunc):
        if function in (np.maximum, np.minimum):  # NumPy deprecates their third positional argument
            return functools.partial(function, *inputs, out=out)
        return functools.partial(function, *inputs, out)  # a keyword would cost 0.1 us a call
    return functools.partial(_blockwise, function, inputs, out, req == "add", dtype)


def evaluate(function, inputs, out, req="write", exact=False):
    """``out = function(*inputs)`` (or ``+=``) entry by entry; ``function`` None copies the one input.

    Inputs broadcast to the shape of ``out`` and may be that very array.
    """
    if req == "null":
        return
    if function is None:
        (value,) = inputs
        if req == "add":
            if out.dtype.kind in "iu" and value.dtype.kind == "f":
                value = value.astype(out.dtype)  # whole numbers are added, as in MXNet
            np.add(out, value, out=out, casting="unsafe")
        elif value is not out:
            _copy(value, out)
        return
    bind(function, inputs, out, req, exact)()


def _copy(value, target):
    large = target.size >= _LARGE and isinstance(value, np.ndarray)
    if not large or (value.flags.c_contiguous and target.flags.c_contiguous):
        np.copyto(target, value, casting="unsafe")
        return
    from ..kernels.cpu.tensor import copies  # brings numba: not before it is needed

    copies.copy(value, target)


def copy_each(values, targets, req):
    """Copy each value to its target, as its request says."""
    for value, target, how in zip(values, targets, req, strict=True):
        evaluate(None, [value], target, how)


def bind_copies(values, targets, req):
    """A call of :func:`copy_each`, again and again."""
    calls = [_bind_copy(*each) for each in zip(values, targets, req, strict=True)]
    return calls[0] if len(calls) == 1 else functools.partial(_call_each, calls)


def _call_each(calls):
    for call in calls:
        call()


def _bind_copy(value, target, how):
    if how in ("write", "inplace") and isinstance(value, np.ndarray):
        if target.size >= BLOCK:
            from ..kernels.cpu.tensor import copies  # brings numba: not before it is needed

            call = copies.bind(value, target)
            if call is not None:
                return call
        value, target = _in_runs(value, target)
    return functools.partial(evaluate, None, [value], target, how)


def _in_runs(value, target):
    """The numbers of a short last axis as one item, of both: NumPy copies few numbers in a row one by one."""
    one = value.dtype
    fit = one == target.dtype and value.shape == target.shape and value.ndim
    if not fit or not one.itemsize < value.shape[-1] * one.itemsize <= _RUN:
        return value, target
    if value.strides[-1] != one.itemsize or target.strides[-1] != one.itemsize:
        return value, target
    run = f"V{value.shape[-1] * one.itemsize}"
    return value.view(run), target.view(run)


def _compute_dtype(function, dtype):
    """The dtype in which ``function`` is evaluated on data of ``dtype``; None means that very dtype."""
    if isinstance(function, np.ufunc) and (dtype.kind == "f" or function in _INTEGER_LOOPS):
        return None
    if dtype.kind != "f":
        return np.dtype(np.float64)
    return np.dtype(np.float32) if dtype.itemsize == 2 else None


def quotient(l, r):
    """That of int64, cut off towards zero."""
    below = l // r
    return np.where(r == 0, np.iinfo(np.int64).min, below + ((below < 0) & (below * r != l)))


def _blockwise(function, inputs, out, add, dtype):
    operands = [*inputs, out]
    modes = [["readonly"]] * len(inputs) + [["readwrite" if add else "writeonly"]]
    dtypes = None if dtype is None else [dtype] * len(operands)
    with np.nditer(operands, _FLAGS, modes, dtypes, casting="unsafe", buffersize=BLOCK) as blocks:
        for *values, target in blocks:
            if add:
                result = function(*values)
                whole = out.dtype.kind in "iu" and result.dtype.kind == "f"
                target += np.trunc(result) if whole else result
            else:
                target[...] = function(*values)


def broadcast_axes(small, large) -> tuple:
    """The axes of shape ``large`` along which shape ``small`` is repeated to reach it."""
    lead = len(large) - len(small)
    return tuple(range(lead)) + tuple(
        lead + i for i, n in enumerate(small) if n == 1 and large[lead + i] != 1
    )


def add_up(data, axes, keepdims, dtype, **kwargs):
    """``np.add.reduce``; of more than a few numbers in float64 where NumPy adds them one after the other.

    That is along all axes but the last ones: 3 million times 0.1 in float32 would be 290 774.
    """
    last = tuple(range(data.ndim - len(axes), data.ndim))
    if dtype == np.float32 and (axes != last or kwargs) and math.prod(data.shape[a] for a in axes) > 16:
        dtype = np.float64
    return np.add.reduce(data, axis=axes, keepdims=keepdims, dtype=dtype, **kwargs)


def sum_by_channel(images):
    """What a bias has as its gradient; in float64 where NumPy adds one image after the other."""
    return images.sum(axis=tuple(range(2, images.ndim))).sum(axis=0, dtype=np.float64)


def sum_to(value, target, req):
    """``target = value`` summed over the axes along which ``target`` broadcasts to it."""
    total = add_up(value, broadcast_axes(target.shape, value.shape), True, wide(target.dtype))
    evaluate(None, [total.reshape(target.shape)], target, req)


def _without_axes(out, data, axes, keepdims):
    """``out`` as NumPy's reductions want it: a full one has no axes there, and one of length 1 here."""
    return out.reshape(()) if not keepdims and len(axes) == data.ndim else out


def reduce(ufunc, data, axes, keepdims, out):
    """``ufunc.reduce`` over ``axes`` into ``out``, float16 in float32, integers in their own dtype."""
    out = _without_axes(out, data, axes, keepdims)
    if ufunc is np.add and data.dtype.kind == "f":
        np.copyto(out, add_up(data, axes, keepdims, wide(data.dtype)), casting="unsafe")
    elif data.dtype == np.float16 and ufunc is np.multiply:
        np.copyto(out, ufunc.reduce(data, axis=axes, keepdims=keepdims, dtype=np.float32), casting="unsafe")
    elif 0 in data.shape and ufunc.identity is None:
        out[...] = -np.inf if ufunc is np.maximum else np.inf
    else:
        ufunc.reduce(data, axis=axes, keepdims=keepdims, out=out, dtype=data.dtype)


def average(data, axes, keepdims, dtype):
    """``np.mean``, without its warning where there is nothing."""
    total = add_up(data, axes, keepdims, dtype)
    return (total / np.intp(math.prod(data.shape[a] for a in axes))).astype(dtype)


def mean(data, axes, keepdims, out):
    """Mean over ``axes``; that of integers is cut off to an integer."""
    if data.dtype.kind == "f":
        result = average(data, axes, keepdims, wide(data.dtype))
    else:
        total = np.add.reduce(data, axis=axes, keepdims=keepdims, dtype=np.int64)
        result = quotient(total, np.int64(math.prod(data.shape[a] for a in axes)))
    np.copyto(_without_axes(out, data, axes, keepdims), result, casting="unsafe")


def skip_nan(ufunc, data, axes, keepdims, out):
    """``ufunc.reduce`` over ``axes`` of the entries that are not NaN."""
    out = _without_axes(out, data, axes, keepdims)
    add = add_up if ufunc is np.add else ufunc.reduce
    result = add(data, axes, keepdims=keepdims, dtype=wide(data.dtype), where=data == data)
    np.copyto(out, result, casting="unsafe")


def norm(data, order, axes, keepdims, out, scratch):
    """The L1 or L2 norm over ``axes``; ``scratch`` is of the shape of the data."""
    if order == 1:
        np.abs(data, out=scratch, dtype=scratch.dtype)
        result = add_up(scratch, axes, keepdims, scratch.dtype)
    else:
        np.square(data, out=scratch, dtype=scratch.dtype)
        result = np.sqrt(add_up(scratch, axes, keepdims, scratch.dtype))
        limits = np.finfo(scratch.dtype)
        if not ((result > np.sqrt(limits.tiny / limits.eps)) & (result < np.inf)).all():
            result = _scaled_norm(result, data, axes, scratch)
    np.copyto(_without_axes(out, data, axes, keepdims), result, casting="unsafe")


def _scaled_norm(plain, data, axes, scratch):
    """The L2 norm of numbers whose squares are too large or too small for their dtype."""
    np.abs(data, out=scratch, dtype=scratch.dtype)
    largest = np.max(scratch, axis=axes, keepdims=True, initial=0)
    scratch /= largest
    np.square(scratch, out=scratch)
    scaled = np.sqrt(add_up(scratch, axes, True, scratch.dtype)) * largest
    usable = (largest > 0) & (largest < np.inf)
    return np.where(usable.reshape(plain.shape), scaled.reshape(plain.shape), plain)


def matmul(a, b, out, req):
    """``out = a @ b`` (or ``+=``) for arrays of two or more dimensions; float16 in float32."""
    if req == "null":
        return
    if a.shape[-1] == 0:
        result = 0
    elif a.dtype == np.float16:
        result = np.matmul(a, b, dtype=np.float32)
    else:
        from ..kernels.cpu.product.matmul import matmul as multiply  # brings numba: not before it is needed

        result = np.empty_like(out) if req == "add" else out
        multiply(a, b, result)
        if req != "add":
            return
    if req == "add":
        np.add(out, result, out=out, casting="unsafe")
    else:
        np.copyto(out, result, casting="unsafe")


def put_along_axis(target, index, value, axis, req):
    """The gradient of an array of which entries along an axis were chosen: ``value`` there, else 0."""
    if req == "add":
        value = value + np.take_along_axis(target, index, axis)
    else:
        target[...] = 0
    np.put_along_axis(target, index, value, axis)


def fill(target, req, compute):
    """``compute(array)`` writes ``target``, through scratch where that is not C-contiguous or added to.

    Kernels that give the result another shape need contiguous memory.
    """
    if req == "null":
        return
    if req == "add" or not target.flags.c_contiguous:
        scratch = np.empty(target.shape, target.dtype)
        compute(scratch)
        evaluate(None, [scratch], target, req)
    else:
        compute(target)


def store_matmul(a, b, out, req):
    """The product of two matrices, stored in ``out``, which has as many entries under any shape."""
    shape = (a.shape[0], b.shape[1])
    if req == "add" and out.flags.c_contiguous:
        matmul(a, b, out.reshape(shape), "add")
    else:
        fill(out, req, lambda target: matmul(a, b, target.reshape(shape), "write"))
