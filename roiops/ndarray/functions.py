"""Operators as functions on NDArrays, generated from the registry."""

import functools
import re
from types import MethodType

import numpy as np

from .. import registry
from ..context import Context, current_context
from ..dtypes import BFLOAT16
from ..errors import DataError, DeviceError, DTypeError, nearest
from ..operators.roi.base import ROIProperty
from .device import is_writable
from .foreign import Borrowed, asked_kind, borrow, give_back, is_foreign, on_stream_of
from .ndarray import NDArray, compute, from_any

__all__ = ["call", "function_for", "namespace"]


_KIND = "an NDArray or a NumPy array"
_FRONT = registry.FrontEnd(
    "NDArray or numpy.ndarray",
    "NDArray",
    (("out", "NDArray, optional", "where the result goes; a new array unless given"),),
)


def call(prop, args: tuple, kwargs: dict):
    """What the function of an operator does: inputs first, then parameters, in MXNet's order."""
    out = kwargs.pop("out", None)
    every = len(prop.arguments) + len(prop.aux) + len(prop.param.fields)
    if out is None and prop.arguments and not prop.variadic and len(args) == every + 1:
        *args, out = args  # MXNet's functions end with out
    if "name" not in prop.param.fields:
        kwargs.pop("name", None)  # a node's name, which scripts give here too
    inputs, given = _bind(prop, args, kwargs)
    targets = None if out is None else list(out) if isinstance(out, list | tuple) else [out]
    foreign = [v for v in (*inputs.values(), *(targets or ())) if type(v) is not NDArray and is_foreign(v)]
    if not foreign:
        results = _compute(prop, inputs, given, targets)
    else:
        with on_stream_of(foreign[0]):
            results = _compute_with_foreign(prop, inputs, given, targets)
    if out is not None:
        return out
    return results[0] if len(results) == 1 else results


def _compute(prop, inputs, given, targets, types=None) -> list:
    """The outputs of an operator as NDArrays, in ``targets`` where that is given."""
    ctx = _context(prop, inputs, given, targets)
    arrays = [
        value if type(value) is NDArray else from_any(value, f"{prop.label}: {name}", ctx)
        for name, value in inputs.items()
    ]
    names = None if prop.variadic else tuple(inputs)
    out = None if targets is None else [_writable(each, prop.label) for each in targets]
    return compute(prop, given, arrays, ctx, out, names, types)


def _writable(target, label):
    target = from_any(target, f"{label}: out")
    read_only = target.read_only if isinstance(target, Borrowed) else not is_writable(target.data)
    if read_only:
        raise DataError(f"{label}: out is read-only")
    return target


def _compute_with_foreign(prop, inputs, given, targets) -> list:
    """The same with arrays of other libraries among the inputs and targets, and outputs of their kind."""
    like = asked_kind(inputs.values())
    for name, value in inputs.items():
        if getattr(value, "requires_grad", False):
            raise _wants_gradient(prop, name)
    inputs = {name: _borrowed(value, f"{prop.label}: {name}") for name, value in inputs.items()}
    targets = targets and [_borrowed(each, f"{prop.label}: out") for each in targets]
    bfloat16 = any(_holds_bfloat16(value) for value in inputs.values())
    for each in targets or ():
        if _holds_bfloat16(each) != bfloat16:
            raise DTypeError(f"{prop.label}: one of out and the data is bfloat16, and the other is not")
    types = None
    if bfloat16:
        types = [v.element_type if isinstance(v, Borrowed) else np.dtype(v.dtype) for v in inputs.values()]
    results = _compute(prop, inputs, given, targets, types)
    return results if like is None or targets else give_back(results, like, bfloat16=bfloat16)


#: PyTorch's names for the operators that :mod:`roiops.torch` has under names of other libraries.
_IN_TORCH = {
    "ROIAlign": "roi_align",
    "ROIPooling": "roi_pool",
    "PSROIAlign": "ps_roi_align",
    "_contrib_PSROIPooling": "ps_roi_pool",
}


def _wants_gradient(prop, name) -> DataError:
    """The error for a tensor that requires a gradient, which these functions would not give it."""
    hint = "detach() it"
    if issubclass(prop, ROIProperty):
        function = _IN_TORCH.get(prop.name, f"op.{prop.label}")
        hint = f"call roiops.torch.{function}, which gives it one, or detach() it"
    return DataError(f"{prop.label}: {name} requires a gradient; {hint}")


def _borrowed(value, what):
    return borrow(value, what) if is_foreign(value) else value


def _holds_bfloat16(value) -> bool:
    return isinstance(value, Borrowed) and value.element_type == BFLOAT16


def _bind(prop, args, kwargs) -> tuple[dict, dict]:
    """The inputs of a call, by name and in the operator's order, and its parameters."""
    positional, named, given = registry.split_arguments(
        prop, args, kwargs, _is_array, _KIND, inputs_needed=True
    )
    if prop.variadic:
        values = [value for value in (*positional, *named.values()) if value is not None]
        given.setdefault(prop.variadic, len(values))
        return {f"arg{i}": value for i, value in enumerate(values)}, given
    names = (*prop.arguments, *prop.aux)
    if not names and (positional or named):  # the parameters decide what the inputs are
        made = prop.create(given)
        names = (*made.list_arguments(), *made.list_auxiliary_states())
    return registry.bind_inputs(prop.label, names, positional, named), given


#: The types of most parameters: an operator called by itself asks of each whether it is an array.
_PLAIN = frozenset((bool, int, float, str, tuple, list, type(None)))


def _is_array(value) -> bool:
    kind = type(value)
    return kind is NDArray or (
        kind not in _PLAIN and (isinstance(value, NDArray | np.ndarray) or is_foreign(value))
    )


def _context(prop, inputs, given, targets) -> Context:
    """The device of a call: that of its inputs, or of ``out``, or what ``ctx=`` says, or the current one."""
    asked = given.get("ctx")
    if isinstance(asked, Context):
        given["ctx"] = str(asked)
        if "ctx" not in prop.param.fields:
            del given["ctx"]
    found = None
    for value in inputs.values():
        if isinstance(value, NDArray):
            if found is not None and value._context is not found and value._context != found:
                raise DeviceError(f"{prop.label}: the inputs are on {found} and on {value._context}")
            found = value._context
    if found is None and targets and isinstance(targets[0], NDArray):
        found = targets[0]._context
    if found is None and asked:
        found = asked if isinstance(asked, Context) else _parse_context(asked)
    return found or current_context()


def _parse_context(text: str) -> Context:
    """A context from MXNet's string for it, ``"gpu(1)"``."""
    match = re.fullmatch(r"\s*(\w+)\s*(?:\(\s*(\d+)\s*\))?\s*", text)
    if match is None:
        raise DeviceError(f"ctx must be a context such as 'cpu(0)', got {text!r}")
    return Context(match[1], int(match[2] or 0))


@functools.cache
def _function(prop, name: str):
    return registry.make_function(name, call, "roiops.ndarray", _FRONT)


def function_for(name: str):
    """The function of the operator called ``name``."""
    return _function(registry.get(name), name)


def namespace(module: str, prefix: str = ""):
    """``__getattr__`` and ``__dir__`` of a module of operators: see :func:`roiops.registry.namespace`."""
    return registry.namespace(module, prefix, function_for)


#: Attributes of MXNet's arrays and symbols that are not here, and what to do instead.
OF_MXNET = {
    "as_np_ndarray": "MXNet's NumPy interface is not offered; asnumpy() makes an array of NumPy's",
    "handle": "there is no C library that it could be a pointer of",
}


# -- every operator as a method of NDArray -----------------------------------------------------------------


def _method(name: str):
    """The operator that ``x.name`` calls, if there is one: public, in lower case, and taking an array."""
    if name.startswith("_") or not name.islower():
        return None
    prop = registry.find(name)
    return prop if prop is not None and (prop.arguments or prop.variadic) else None


def _get_method(array: NDArray, name: str):
    prop = _method(name)
    if prop is None:
        near = "" if name.startswith("_") else nearest(name, dir(array))
        advice = f": {OF_MXNET[name]}" if name in OF_MXNET else near
        raise AttributeError(f"'NDArray' object has no attribute {name!r}{advice}")
    return MethodType(function_for(name), array)


def _list_methods(array: NDArray) -> list[str]:
    return sorted({*object.__dir__(array), *filter(_method, registry.list_operators(aliases=True))})


# They are put there from here, so that an array need not know of functions that take it.
NDArray.__getattr__ = _get_method
NDArray.__dir__ = _list_methods
