"""Random data, and arrays that agree within tolerances."""

import numbers

import numpy as np

from .. import random
from ..context import Context, current_context, num_gpus
from ..ndarray import NDArray, array

__all__ = [
    "almost_equal",
    "assert_allclose",
    "assert_almost_equal",
    "assert_exception",
    "default_context",
    "default_dtype",
    "get_atol",
    "get_rtol",
    "list_gpus",
    "rand_ndarray",
    "rand_shape_2d",
    "rand_shape_3d",
    "rand_shape_nd",
    "random_arrays",
    "same",
    "set_default_context",
]

#: For each dtype: relative and absolute tolerance of a comparison.
_TOLERANCES = {
    np.dtype(np.float16): (1e-2, 1e-1),
    np.dtype(np.float32): (1e-4, 1e-3),
    np.dtype(np.float64): (1e-5, 1e-20),
}


# -- defaults and random data ----------------------------------------------------------------------------


def default_context() -> Context:
    """The context that checks run on unless they are given one: the current one."""
    return current_context()


def set_default_context(ctx: Context) -> None:
    """Make ``ctx`` the current context from here on."""
    Context(ctx).__enter__()


def default_dtype() -> type:
    """float32."""
    return np.float32


def get_rtol(rtol=None, dtype=np.float64):
    """``rtol``, or the default relative tolerance for a dtype."""
    return _TOLERANCES.get(np.dtype(dtype), (0, 0))[0] if rtol is None else rtol


def get_atol(atol=None, dtype=np.float64):
    """``atol``, or the default absolute tolerance for a dtype."""
    return _TOLERANCES.get(np.dtype(dtype), (0, 0))[1] if atol is None else atol


def random_arrays(*shapes):
    """Standard normal float32 NumPy arrays; one array for one shape, else a list."""
    arrays = [np.asarray(random.generator().standard_normal(shape), np.float32) for shape in shapes]
    return arrays[0] if len(arrays) == 1 else arrays


def rand_ndarray(shape, stype: str = "default", density=None, dtype=None, ctx=None) -> NDArray:
    """A standard normal NDArray. Only dense ones exist: ``stype`` must be ``"default"``."""
    if stype != "default":
        raise ValueError(f"rand_ndarray: stype must be 'default', got {stype!r}")
    return array(random_arrays(tuple(shape)), ctx or default_context(), dtype)


def rand_shape_nd(num_dim: int, dim: int = 10, allow_zero_size: bool = False) -> tuple[int, ...]:
    """A random shape of ``num_dim`` dimensions, each at most ``dim``."""
    low = 0 if allow_zero_size else 1
    return tuple(int(n) for n in random.generator().integers(low, dim + 1, num_dim))


def rand_shape_2d(dim0: int = 10, dim1: int = 10, allow_zero_size: bool = False) -> tuple[int, int]:
    """A random shape of two dimensions, at most ``dim0`` and ``dim1``."""
    return tuple(rand_shape_nd(1, dim, allow_zero_size)[0] for dim in (dim0, dim1))


def rand_shape_3d(dim0: int = 10, dim1: int = 10, dim2: int = 10, allow_zero_size: bool = False):
    """A random shape of three dimensions, at most ``dim0``, ``dim1`` and ``dim2``."""
    return tuple(rand_shape_nd(1, dim, allow_zero_size)[0] for dim in (dim0, dim1, dim2))


def list_gpus() -> range:
    """The numbers of the CUDA devices that can be used."""
    return range(num_gpus())


# -- comparing arrays ------------------------------------------------------------------------------------


def same(a, b) -> bool:
    """Whether two arrays are equal in shape and every element."""
    return np.array_equal(a, b)


def almost_equal(a, b, rtol=None, atol=None, equal_nan: bool = False, use_broadcast: bool = True) -> bool:
    """Whether two arrays agree within tolerances."""
    try:
        assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan, use_broadcast=use_broadcast)
    except AssertionError:
        return False
    return True


def assert_almost_equal(
    a,
    b,
    rtol=None,
    atol=None,
    names=("a", "b"),
    equal_nan: bool = False,
    use_broadcast: bool = True,
    mismatches=(10, 10),
) -> None:
    """Raise ``AssertionError`` unless ``|a - b| <= atol + rtol * |b|`` everywhere.

    Parameters
    ----------
    a, b : NDArray, numpy.ndarray or number
        What to compare.
    rtol, atol : float or dict of dtype to float, optional
        Tolerances; by default those of the less exact of the two dtypes.
    names : (str, str)
        What the error calls the two.
    equal_nan : bool
        Whether NaN equals NaN.
    use_broadcast : bool
        Whether shapes that broadcast may be compared.
    mismatches : (int, int)
        How many elements the error lists at most; the second number is accepted for MXNet's sake.
    """
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape and not (use_broadcast and _broadcasts(a.shape, b.shape)):
        raise AssertionError(f"{names[0]} has shape {a.shape}, {names[1]} has shape {b.shape}")
    a, b = np.broadcast_arrays(a, b)
    rtol = max(tolerance_for(rtol, x.dtype, get_rtol) for x in (a, b))
    atol = max(tolerance_for(atol, x.dtype, get_atol) for x in (a, b))
    excess = _excess(a, b, rtol, atol, equal_nan)
    bad = np.argwhere(excess > 1)
    if not len(bad):
        return
    order = np.argsort(-excess[tuple(bad.T)], kind="stable")
    lines = [
        f"{names[0]} and {names[1]} differ at {len(bad)} of {a.size} elements (rtol={rtol}, atol={atol})"
    ]
    for rank, index in enumerate(tuple(int(n) for n in bad[i]) for i in order[: max(mismatches[0], 1)]):
        x, y = a[index].item(), b[index].item()
        times = f", {excess[index]:.3g} times what is allowed" if np.isfinite(excess[index]) else ""
        start = "worst at" if rank == 0 else "      at"
        gap = abs(x - y)
        lines.append(
            f"  {start} {index}: {names[0]}={x:.9g}, {names[1]}={y:.9g}, difference {gap:.3g}{times}"
        )
    if len(bad) > mismatches[0]:
        lines.append(f"  and {len(bad) - mismatches[0]} more")
    raise AssertionError("\n".join(lines))


def _broadcasts(one, other) -> bool:
    try:
        np.broadcast_shapes(one, other)
    except ValueError:
        return False
    return True


def tolerance_for(given, dtype, default):
    if given is None or isinstance(given, numbers.Number):
        return default(given, dtype)
    return given.get(dtype, given.get(dtype.type, default(None, dtype)))


def _excess(a, b, rtol, atol, equal_nan) -> np.ndarray:
    """How many times what is allowed each element is off by: 0 where allowed, infinite where incomparable."""
    agree = a == b
    if equal_nan:
        agree |= np.isnan(a) & np.isnan(b)
    if rtol == atol == 0:
        return np.where(agree, 0, np.inf)
    wide = np.float64 if a.dtype.kind in "fbiu" and b.dtype.kind in "fbiu" else np.complex128
    x, y = a.astype(wide), b.astype(wide)
    with np.errstate(all="ignore"):
        gap = np.abs(x - y)
        allowed = atol + rtol * np.abs(y)
        excess = np.where(gap <= allowed, 0, gap / np.where(allowed == 0, np.finfo(float).tiny, allowed))
    excess = np.where(np.isfinite(x) & np.isfinite(y), excess, np.inf)
    return np.where(agree, 0, excess)


def assert_allclose(a, b, rtol=1e-07, atol=0, equal_nan: bool = True) -> None:
    """As :func:`assert_almost_equal`, with NumPy's defaults."""
    assert_almost_equal(a, b, rtol, atol, equal_nan=equal_nan)


def assert_exception(f, exception_type, *args, **kwargs) -> None:
    """Raise ``AssertionError`` unless ``f(*args, **kwargs)`` raises ``exception_type``."""
    try:
        f(*args, **kwargs)
    except exception_type:
        return
    raise AssertionError(f"{getattr(f, '__name__', f)} did not raise {exception_type.__name__}")
