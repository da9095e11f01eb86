"""Operator names to properties, and the functions generated from the declarations.

    @register("ROIPooling", "_npx_roi_pooling")
    class ROIPoolingProp(OperatorProperty): ...

The first name is the operator's own; the others are aliases. A name taken twice is an error.
"""

import inspect
import re
import textwrap
from typing import NamedTuple

from .errors import InputError, MXNetError, ParamError, RegistryError, nearest, without
from .params import REQUIRED

__all__ = [
    "NAMESPACES",
    "FrontEnd",
    "alias",
    "aliases_of",
    "bind_inputs",
    "docstring",
    "find",
    "get",
    "list_operators",
    "make_function",
    "name_in_namespace",
    "namespace",
    "node_label",
    "public_name",
    "register",
    "signature",
    "split_arguments",
]

_properties: dict[str, type] = {}

#: Operators of MXNet's that are not offered, as patterns of their names, and what to do instead.
_NOT_OFFERED = {
    "_(contrib_)?(foreach|while_loop|cond)": "loops and branches are for arrays: mx.nd.contrib has them, "
    "for blocks that are not hybridised",
    "_image_(resize|adjust_lighting|random_.*)": "pictures are changed as arrays: mx.nd.image has it",
    ".*_update(_phase[12])?|multi_lars|multi_sum_sq|reset_arrays": "mx.optimizer updates weights, "
    "mx.nd.sgd_update and its kin arrays",
    "_contrib_SparseEmbedding": "gradients are dense here; use Embedding",
    "_square_sum|retain": "arrays in a graph are dense here; use square and sum, or take",
    "_contrib_BatchNormWithReLU": "use BatchNorm and relu, or gluon.nn.BatchNormReLU",
    "_contrib_(fft|ifft|count_sketch|hawkesll|getnnz|edge_id|dgl_.*)": "compute it with NumPy, "
    "or write an mx.operator.CustomOp",
    "IdentityAttachKLSparseReg": "add the penalty to the loss",
    "_?(cv)?im(read|decode|resize)|_cvcopyMakeBorder": "mx.image reads, resizes and pads pictures",
    "_copyto|_set_value|_onehot_encode|_scatter_.*": "x[:] = value, x[i] = value, x.copyto(y) write arrays",
    "_?CachedOp.*": "hybridize() makes a bound graph of a block, bind() of a symbol",
    ".*quantize.*|_contrib_calibrate_entropy|_sg_mkldnn_.*": "quantisation is not offered; "
    "run the network that was quantised in float32 or float16",
}


def register(name: str, *aliases: str):
    """Class decorator: file a property under ``name`` and ``aliases``."""

    def decorate(prop):
        prop.name, prop.label = name, public_name(name)
        prop.check_declaration()
        for each in (name, *aliases):
            _file(each, prop)
        return prop

    return decorate


def alias(name: str, *aliases: str) -> None:
    """More names for a registered operator."""
    for each in aliases:
        _file(each, get(name))


def _file(name: str, prop: type) -> None:
    if name in _properties:
        raise RegistryError(f"operator {name!r} is already registered, by {_properties[name].__module__}")
    _properties[name] = prop


def find(name: str) -> type | None:
    """The property called ``name``, or None."""
    return _properties.get(name)


def get(name: str) -> type:
    """The property called ``name``; an unknown name is an error with what to do, or near matches."""
    try:
        return _properties[name]
    except KeyError:
        text = f"operator {public_name(name)!r} is not registered{advice_for(name)}"
        raise RegistryError(text) from None


def advice_for(name: str) -> str:
    """What errors say after the name of an operator that is not here: what to do instead, or near names."""
    for pattern, instead in _NOT_OFFERED.items():
        if re.fullmatch(pattern, name):
            return f": {instead}"
    return nearest(public_name(name), map(public_name, _properties), lambda each: each.split(".")[-1])


def list_operators(*, aliases: bool = False) -> list[str]:
    """Names of all operators, sorted; with ``aliases``, the other names too."""
    return sorted(name for name, prop in _properties.items() if aliases or prop.name == name)


def aliases_of(prop: type) -> list[str]:
    """The other names of an operator, sorted."""
    return sorted(name for name, each in _properties.items() if each is prop and name != prop.name)


#: What the namespaces of ``sym`` and ``nd`` are called.
NAMESPACES = ("contrib", "image", "linalg")

_PREFIX = re.compile(f"^_({'|'.join(NAMESPACES)})_")


def public_name(name: str) -> str:
    """How users write it: ``contrib.ROIAlign`` for ``_contrib_ROIAlign``."""
    return _PREFIX.sub(r"\1.", name)


def name_in_namespace(name: str) -> str:
    """The name of an operator within its namespace: ``ROIAlign`` for ``_contrib_ROIAlign``."""
    return _PREFIX.sub("", name)


def node_label(name: str, node: str) -> str:
    """How errors name a node of the operator ``name``: ``contrib.ROIAlign(roi_align5)``."""
    return f"{public_name(name)}({node})"


# -- generated functions ---------------------------------------------------------------------------------


class FrontEnd(NamedTuple):
    """How operators are called, as their generated functions tell it."""

    inputs: str
    result: str
    #: Keywords of every call: name, type, description.
    keywords: tuple[tuple[str, str, str], ...]


_EITHER = FrontEnd(
    "Symbol or NDArray",
    "the kind that the inputs are",
    (
        ("name", "str, optional", "name of the node, when called on symbols"),
        ("out", "NDArray, optional", "where the result goes, when called on arrays"),
    ),
)


def signature(prop: type, front: FrontEnd = _EITHER) -> inspect.Signature:
    """The signature of the generated function: inputs, then parameters, then what every call takes."""
    positional, keyword = inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY
    if prop.variadic:
        parameters = [inspect.Parameter("data", inspect.Parameter.VAR_POSITIONAL)]
        positional = keyword
    else:
        names = (*prop.arguments, *prop.aux)
        parameters = [inspect.Parameter(name, positional, default=None) for name in names]
    for name, field in prop.param.fields.items():
        if name == prop.variadic or not name.isidentifier():
            continue
        default = inspect.Parameter.empty if field.required and positional is keyword else field.default
        parameters.append(inspect.Parameter(name, positional, default=default))
    taken = {p.name for p in parameters}
    names = (name for name, _, _ in front.keywords if name not in taken)
    return inspect.Signature([*parameters, *(inspect.Parameter(n, keyword, default=None) for n in names)])


def docstring(prop: type, front: FrontEnd = _EITHER) -> str:
    """A numpydoc page for an operator, from its declarations."""
    summary = inspect.cleandoc(vars(prop).get("__doc__") or f"The operator {public_name(prop.name)}.")
    lines = [summary, "", "Parameters", "----------"]
    if prop.variadic:
        lines += [f"*data : {front.inputs}", "    Any number of inputs."]
    for name in () if prop.variadic else prop.arguments:
        lines += [f"{name} : {front.inputs}", *_indent(prop.argument_docs.get(name, ""))]
    for name in prop.aux:
        lines += [f"{name} : {front.inputs}", *_indent(prop.argument_docs.get(name, "auxiliary state"))]
    for name, field in prop.param.fields.items():
        if name == prop.variadic:
            continue
        default = "required" if field.default is REQUIRED else f"default {field.default!r}"
        lines += [f"{name} : {field.need}, {default}", *_indent(field.doc)]
    for name, kind, text in front.keywords:
        if name not in prop.param.fields:
            lines += [f"{name} : {kind}", *_indent(text)]
    seen = prop.outputs[: prop.visible_outputs] if prop.visible_outputs else prop.outputs
    lines += ["", "Returns", "-------", f"{', '.join(seen)} : {front.result}"]
    if others := [name for name in map(public_name, aliases_of(prop)) if not name.startswith("_")]:
        lines += [
            "",
            "Notes",
            "-----",
            *textwrap.wrap(f"Also called {', '.join(others)}.", 90),
        ]
    return "\n".join(lines)


def _indent(text: str) -> list[str]:
    if not text:
        return []
    text = text[:1].upper() + text[1:]
    text += "" if text.endswith((".", "?", "!")) else "."
    return textwrap.wrap(text, 90, initial_indent="    ", subsequent_indent="    ")


def make_function(name: str, invoke, module: str, front: FrontEnd):
    """The public function of an operator: ``invoke(prop_class, args, kwargs)`` under its own name and doc."""
    prop = get(name)

    def function(*args, **kwargs):
        return invoke(prop, args, kwargs)

    function.__name__ = function.__qualname__ = name_in_namespace(name)
    function.__module__ = module
    function.__doc__ = docstring(prop, front)
    function.__signature__ = signature(prop, front)
    return function


def namespace(module: str, prefix: str, function_for):
    """``__getattr__`` and ``__dir__`` of a module that holds the operators called ``prefix`` and more.

    ``function_for(name)`` gives the function of an operator.
    """

    def getattr_(name):
        if name == "__all__" and prefix:
            return dir_()
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        return function_for(prefix + name)  # an unknown name is an AttributeError with near names

    def dir_():
        names = (
            name.removeprefix(prefix) for name in list_operators(aliases=True) if name.startswith(prefix)
        )
        return sorted(name for name in names if prefix or not name.startswith("_"))

    return getattr_, dir_


# -- what a function was called with ---------------------------------------------------------------------


def split_arguments(prop: type, args: tuple, kwargs: dict, is_input, kind: str, *, inputs_needed=False):
    """Sort what a generated function was called with.

    Returns ``(positional inputs, inputs by name, parameters)``. Positional arguments are the inputs in
    order (None for one left out), then the parameters in order, as in MXNet. An operator of any number of
    inputs takes them as one list, too.

    Parameters
    ----------
    is_input : callable
        Whether a value is a tensor or symbol rather than a parameter.
    kind : str
        What such a value is, for errors: ``"a Symbol"``.
    inputs_needed : bool
        Whether the first positional argument must be an input, because none is made for one left out.
    """
    if prop.variadic and len(args) == 1 and isinstance(args[0], list | tuple):
        args = args[0]
    positional, rest = [], list(args)
    inputs_needed = inputs_needed and bool(rest) and bool(prop.arguments) and not prop.variadic
    if inputs_needed and not (rest[0] is None or is_input(rest[0])):
        raise _not_a_tensor(prop, prop.arguments[0], kind, rest[0], is_input)
    # None is an input left out only where inputs stand; after them it is a parameter's value.
    most = len(args) if prop.variadic or not prop.arguments else len(prop.arguments) + len(prop.aux)
    while rest and len(positional) < most and (rest[0] is None or is_input(rest[0])):
        positional.append(rest.pop(0))
    if rest and len(positional) < most and not prop.variadic and _holds_tensors(rest[0], is_input):
        raise _not_a_tensor(prop, prop.arguments[len(positional)], kind, rest[0], is_input)
    inputs, params, fields = {}, {}, prop.param.fields
    if rest:
        names = [n for n in fields if n != prop.variadic]
        if len(rest) > len(names):
            most = len(prop.arguments) + len(prop.aux) + len(names)
            raise ParamError(f"{prop.label}: too many positional arguments: {len(args)}, it takes {most}")
        params = dict(zip(names[: len(rest)], rest, strict=True))
    for name, value in kwargs.items():
        if is_input(value):
            (params if name in fields else inputs)[name] = value  # a parameter may be an array
        elif name not in fields and (name in prop.arguments or name in prop.aux):
            if value is not None:
                raise _not_a_tensor(prop, name, kind, value, is_input)
            inputs[name] = value
        elif name in params:
            if len(positional) < len(prop.arguments):  # more likely an input that is not one
                wanted = prop.arguments[len(positional)]
                raise _not_a_tensor(prop, wanted, kind, rest[0], is_input, name)
            if is_input(params[name]):
                known, count = ", ".join((*prop.arguments, *prop.aux)), sum(map(is_input, args))
                raise ParamError(f"{prop.label}: takes at most {most} inputs ({known}), got {count}")
            raise ParamError(f"{prop.label}: parameter {name} is given twice")
        else:
            params[name] = value
    return positional, inputs, params


def bind_inputs(label: str, names, positional: list, named: dict, error=MXNetError) -> dict:
    """The inputs of a call by name, in the order of ``names``, without those left out.

    Parameters
    ----------
    names : sequence of str
        The inputs that there are.
    positional, named
        What :func:`split_arguments` found.
    error : type of MXNetError
        What to raise.
    """
    # An input that the parameters rule out may be named as None: Convolution(x, w, None, no_bias=True).
    while len(positional) > len(names) and positional[-1] is None:
        positional = positional[:-1]
    if len(positional) > len(names):
        raise error(f"{label}: takes at most {len(names)} inputs ({', '.join(names)}), got {len(positional)}")
    given = dict(zip(names, positional, strict=False))
    for name, value in named.items():
        if name not in names and value is not None:
            raise error(f"{label}: has no input {name!r}{nearest(name, names)} ({', '.join(names)})")
        if given.get(name) is not None:
            raise error(f"{label}: input {name} is given twice")
        given[name] = value
    return {name: given[name] for name in names if given.get(name) is not None}


def _holds_tensors(value, is_input) -> bool:
    """Whether a value is a list of rows or of arrays, which no parameter is."""
    return (
        isinstance(value, list | tuple)
        and bool(value)
        and all(isinstance(each, list | tuple) or is_input(each) for each in value)
    )


def _not_a_tensor(prop, name: str, kind: str, value, is_input, twice: str = "") -> InputError:
    """The error for an input that is something else, with advice for lists of rows or of arrays."""
    advice = f"; taken as a parameter, it would be {twice}, which is given too" if twice else ""
    if _holds_tensors(value, is_input):
        advice = f"; {prop.list_advice.get(name, 'np.array(...) makes an array of a list')}"
    return InputError(f"{prop.label}: {name} must be {kind}, got {type(value).__name__}{advice}")


_MAKERS = ("get_alias_func", "get_create_func", "get_register_func", "get_registry")
__getattr__ = without("registry", dict.fromkeys(_MAKERS, "a dict of classes by name does what they do"))
