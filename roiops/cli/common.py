"""What several sub-commands share: arguments and how their values are written."""

import argparse
import functools
import json
import os
import re
import sys
from pathlib import Path

import numpy as np

from ..context import Context
from ..errors import FormatError
from ..ndarray.files import open_file
from ..params.field import dtype
from .blocks import graph_and_params, is_block

_NAMED = re.compile(r"^([^=]+)=(.+)$", re.DOTALL)


#: Endings of the files that hold arrays.
ARRAYS = (".npy", ".npz")


def named(text: str) -> tuple[str, str]:
    """``NAME=VALUE`` as a pair."""
    match = _NAMED.match(text)
    if not match:
        raise argparse.ArgumentTypeError(f"must be NAME=VALUE, got {text!r}")
    return match.group(1), match.group(2)


def _shape(text: str, example: str, names: bool) -> tuple[str, tuple]:
    """``data=1,3,600,800`` as a name and a shape; with ``names`` also ``data=N,3,H,W``."""
    name, value = named(text)
    items = [item.strip() for item in value.strip("()[] ").split(",") if item.strip()]
    if not all(int(each) if each.isdecimal() else names and each.isidentifier() for each in items):
        raise argparse.ArgumentTypeError(f"must be like {example}, each above 0, got {text!r}")
    return name, tuple(int(each) if each.isdecimal() else each for each in items)


def numbers(text: str) -> tuple[float, ...]:
    """``103.9,116.8,123.7`` as floats."""
    try:
        return tuple(float(item) for item in text.split(","))
    except ValueError:
        raise argparse.ArgumentTypeError(f"must be numbers with commas between, got {text!r}") from None


def size(text: str) -> tuple[int, int]:
    """``480x640`` as a height and a width: how sizes are written everywhere on the command line."""
    sides = text.lower().split("x")
    if len(sides) != 2 or not all(side.isdecimal() and int(side) for side in sides):
        raise argparse.ArgumentTypeError(f"must be HEIGHTxWIDTH, such as 480x640, got {text!r}")
    return int(sides[0]), int(sides[1])


def positive(kind):
    """A type of argument: numbers of this kind above 0."""

    def read(text: str):
        try:
            value = kind(text)
        except ValueError:
            value = 0
        if not 0 < value < float("inf"):
            what = "whole number" if kind is int else "number"
            raise argparse.ArgumentTypeError(f"must be a {what} above 0, got {text!r}")
        return value

    return read


def dtype_name(text: str) -> str:
    """The name of a dtype that arrays may have."""
    try:
        return dtype.parse(text).name
    except (TypeError, ValueError):
        raise argparse.ArgumentTypeError(f"must be a dtype such as float32, got {text!r}") from None


def device(text: str) -> Context:
    """``cpu``, ``gpu`` or ``gpu(1)`` as a context."""
    match = re.fullmatch(r"(cpu|gpu)(?:[(:]?(\d+)\)?)?", text)
    if not match:
        raise argparse.ArgumentTypeError(f"must be cpu, gpu or gpu(1), got {text!r}")
    return Context(match.group(1), int(match.group(2) or 0))


def add_device(parser) -> None:
    parser.add_argument("--device", type=device, default=Context("cpu"), help="cpu (default), gpu or gpu(1)")


class _Named(argparse.Action):
    """Pairs of a name and a value, of an argument that may be repeated, as a dict. No name comes twice."""

    def __call__(self, parser, namespace, values, option_string=None):
        name, value = values
        held = getattr(namespace, self.dest)
        if name in held:
            raise argparse.ArgumentError(self, f"{name} is given twice")
        setattr(namespace, self.dest, {**held, name: value})


def refuse(args, why: str, *names: str) -> None:
    """End where one of these options is given: it would have no effect."""
    for name in names:
        if getattr(args, name) != args.parser.get_default(name):
            args.parser.error(f"--{name.replace('_', '-')} {why}")


def add_model(parser, **how) -> None:
    """The model, the arguments of a Gluon model's function, and modules that the model needs."""
    told = "the graph's file, what its name begins with, or MODULE:FUNCTION"
    parser.add_argument("symbol", metavar="MODEL", help=told, **how)
    add_with(parser)
    add_import(parser)


def add_import(parser) -> None:
    parser.add_argument(
        "--import",
        dest="imports",
        action="append",
        default=[],
        metavar="MODULE",
        help="import a module of yours first, so that the Custom operators it registers are known",
    )


def add_shapes(parser, names: bool = False) -> None:
    example = "data=1,3,600,800" + (" or data=N,3,H,W" if names else "")
    parser.add_argument(
        "--shape",
        action=_Named,
        default={},
        type=functools.partial(_shape, example=example, names=names),
        metavar="NAME=N,...",
        help=f"shape of an input, such as {example}; repeat for each input",
    )


def add_outputs(parser) -> None:
    parser.add_argument(
        "--outputs", type=_names, metavar="NAMES", help="outputs to compute instead, with commas between"
    )


def _names(text: str) -> list[str]:
    found = [name.strip() for name in text.split(",") if name.strip()]
    if not found:
        raise argparse.ArgumentTypeError(f"must name outputs, with commas between, got {text!r}")
    return found


def add_inputs(parser, text: str, once: bool = False) -> None:
    how = {"action": _Named, "default": {}} if once else {"action": "append", "default": []}
    parser.add_argument("--input", **how, type=named, metavar="NAME=FILE", help=text)


def add_with(parser) -> None:
    parser.add_argument(
        "--with",
        action=_Named,
        default={},
        type=named,
        metavar="NAME=VALUE",
        help="a keyword argument of a Gluon model's MODULE:FUNCTION: a number, true, false, none, a list in "
        "brackets, or text; repeat for each",
    )


def open_model(args, name: str, params=None, search: bool = False) -> tuple:
    """A saved model's files, or the symbol and the parameters of a Gluon model; these are None if unknown.

    With ``search`` a saved model's parameters may be those that lie beside it.
    """
    from ..models.files import find_files

    if is_block(name):
        return graph_and_params(name, getattr(args, "with"), params)
    refuse(args, f"is for Gluon models, MODULE:FUNCTION, got {name}", "with")
    symbol, found = find_files(name, params)
    return symbol, found if search or params is not None else None


def find_model(args, params) -> tuple:
    """The graph and its parameters; which file these are in is told where ``params`` is None."""
    symbol, found = open_model(args, args.symbol, params, search=True)
    gluon = not isinstance(symbol, str)
    if found is None:
        without = f"{args.symbol} sets none itself" if gluon else f"no parameters lie beside {symbol}"
        args.parser.error(f"PARAMS is needed: {without}")
    if params is None and not gluon:
        note(f"the parameters are those of {found}")
    return symbol, found


def bind(args, symbol, device="cpu") -> tuple:
    """The symbol, and an executor of it for the shapes given, whatever its parameters are."""
    from ..models.files import read_symbol
    from ..models.inspection import inspect_model

    if not args.shape:
        inputs = inspect_model(symbol).inputs
        args.parser.error(f"--shape is needed for {', '.join(value.name for value in inputs)}")
    if isinstance(symbol, str):
        symbol, _ = read_symbol(symbol)
    return symbol, symbol.simple_bind(device, grad_req="null", **args.shape)


def given_array(args, name: str, value: str) -> np.ndarray | None:
    """The array of ``--input NAME=VALUE``, from JSON or from a file; None where the value is a picture."""
    if value.lstrip().startswith("["):
        try:
            return np.asarray(json.loads(value), np.float32)
        except ValueError:
            args.parser.error(f"--input {name}: not JSON values, or not in rows of one length: {value}")
    if Path(value).suffix.lower() in ARRAYS:
        return read_array(value, name)
    if re.fullmatch(r"[-+.,\d\s]+", value) and not os.path.exists(value):
        args.parser.error(f"--input {name}: values are JSON, in brackets: '{name}=[[{value}]]'")
    return None


def read_array(path: str, name: str) -> np.ndarray:
    """The array of that name in a file, or the one that is in it."""
    held = read_arrays(path)
    if name not in held and len(held) != 1:
        raise FormatError(f"{path}: holds {', '.join(held) or 'nothing'}, but no {name}")
    return of_numbers(path, held[name] if name in held else next(iter(held.values())))


def of_numbers(path: str, array: np.ndarray) -> np.ndarray:
    """The array, which must hold numbers."""
    if array.dtype.kind not in "biuf":
        raise FormatError(f"{path}: holds {array.dtype}, which are no numbers that a model takes")
    return array


def read_arrays(path: str) -> dict[str, np.ndarray]:
    """The arrays of an .npz file by name, or the one of an .npy file under the name ``""``."""
    with open_file(path) as file:
        try:
            loaded = np.load(file, allow_pickle=False)
            held = {"": loaded} if isinstance(loaded, np.ndarray) else dict(loaded)
        except Exception as error:  # of a damaged file: NumPy and zipfile raise many kinds
            raise FormatError(f"{path}: not an array that NumPy can read without pickle: {error}") from None
    return held


def note(text: str) -> None:
    """A remark that does not belong to the result."""
    print(f"roiops: {text}", file=sys.stderr)


def table(rows, indent: str = "") -> str:
    """Rows of strings as lines with aligned columns."""
    rows = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows if i < len(row)) for i in range(max(map(len, rows), default=0))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)) for row in rows)
    return "\n".join(indent + line.rstrip() for line in lines)
