"""Gluon models on the command line: ``MODULE:FUNCTION`` names the Python that makes the network."""

import ast
import importlib
import inspect
import os
import re
import sys

from ..errors import GraphError, MXNetError, nearest
from ..graph.functions import Group, var
from ..mxnet import as_mxnet

__all__ = ["graph_and_params", "import_module", "is_block", "make_block"]

_NAME = re.compile(r"(.*[/\\][^\W\d]\w*\.py|[^\W\d][\w.]*):[^\W\d]\w*")


def is_block(name: str) -> bool:
    """Whether a model's name is ``module:function`` or ``file.py:function``, and no file."""
    return bool(_NAME.fullmatch(name)) and not os.path.exists(name)


def _value(text: str):
    """The value of ``--with NAME=VALUE``: a Python literal, true, false or none, or else the text itself."""
    words = {"true": True, "false": False, "none": None}
    if text.lower() in words:
        return words[text.lower()]
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError):
        return text


def import_module(name: str, told: str):
    """A module, or a file of the current folder or of one that is named. Errors call it what is ``told``."""
    folder, name = os.path.split(name.removesuffix(".py"))
    if os.path.abspath(folder) not in sys.path:
        sys.path.insert(0, os.path.abspath(folder))
    try:
        return importlib.import_module(name)
    except (Exception, SystemExit) as error:  # whatever the user's module does
        lacking = error.name if isinstance(error, ModuleNotFoundError) else None
        if lacking and f"{name}.".startswith(f"{lacking}."):
            raise MXNetError(
                f"{told}: there is no module {lacking!r} in {folder or 'the current folder'} or among the "
                "installed packages"
            ) from None
        raise MXNetError(
            f"{told}: module {name!r} cannot be imported: {type(error).__name__}: {error}"
        ) from error


def make_block(name: str, options: dict[str, str]):
    """The HybridBlock that ``module:function`` returns for these arguments.

    Modules that import mxnet get roiops, and find the names that NumPy had in MXNet's time.
    """
    from ..gluon import HybridBlock

    as_mxnet.install()
    as_mxnet.restore_former_names()
    module_name, _, function_name = name.partition(":")
    module = import_module(module_name, name)
    function = getattr(module, function_name, None)
    if not callable(function):
        functions = [each for each, value in vars(module).items() if callable(value)]
        raise MXNetError(
            f"{name}: module {module.__name__!r} has no function {function_name!r}"
            f"{nearest(function_name, functions)}"
        )
    try:
        block = function(**{key: _value(text) for key, text in options.items()})
    except Exception as error:  # whatever the user's function does
        raise MXNetError(f"{name}: the function failed: {type(error).__name__}: {error}") from error
    if not isinstance(block, HybridBlock):
        raise MXNetError(
            f"{name}: the function must return a Gluon HybridBlock, got {type(block).__name__}; "
            "only a HybridBlock has a graph"
        )
    return block


def graph_and_params(name: str, options, params_file=None) -> tuple:
    """The symbol of the block ``module:function``, and its parameters by name.

    The parameters are those of the file, or else those that the function has set. Where it has not set all
    of them there are none: None.
    """
    from ..gluon.block import flatten

    block = make_block(name, options)
    if params_file is not None:
        try:
            block.load_parameters(str(params_file), cast_dtype=True, dtype_source="saved")
        except (AssertionError, ValueError) as error:  # what Gluon raises for a file that does not fit
            raise GraphError(f"{name}: {error}") from error
    count = _input_count(block)
    inputs = [var(f"data{i}") for i in range(count)] if count > 1 else [var("data")]
    try:
        outputs = block(*inputs)
    except Exception as error:  # a forward pass that needs arrays, such as one that asks for their shape
        raise GraphError(
            f"{name}: the block cannot be called with symbols, so it has no graph: "
            f"{type(error).__name__}: {error}"
        ) from error
    symbol = Group([each for each in flatten(outputs, "output")[0] if each is not None])
    every = block.collect_params()
    held = {each: every[each] for each in symbol.list_inputs() if each in every}
    if any(each._data is None for each in held.values()):
        return symbol, None
    return symbol, {each: parameter._reduce() for each, parameter in held.items()}


def _input_count(block) -> int:
    """How many inputs a block needs: the arguments of its forward pass without default or parameter."""
    from ..gluon import HybridBlock

    own = type(block).forward is not HybridBlock.forward
    arguments = list(inspect.signature(block.forward if own else block.hybrid_forward).parameters.values())
    return sum(
        each.default is each.empty
        and each.kind is each.POSITIONAL_OR_KEYWORD
        and each.name not in block._reg_params
        for each in (arguments if own else arguments[1:])  # F comes first
    )
