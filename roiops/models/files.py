"""The files of a saved model: which they are, what they hold, and whether they fit each other.

The command line, :func:`roiops.models.load` and :func:`roiops.models.inspect_model` find and read them here.
"""

import dataclasses
import glob
import os
from pathlib import Path

from ..errors import MissingFileError, nearest
from ..graph import json_format
from ..graph import nodes as graph
from ..graph.symbol import Symbol, read_text
from ..ndarray.files import load_model
from ..ndarray.parameters import without_prefixes

__all__ = ["Differences", "compare", "find_files", "read_params", "read_symbol"]


def find_files(symbol, params=None) -> tuple[str, str | dict | None]:
    """The file of the graph and that of the parameters, which is None where there is none to be found.

    Parameters
    ----------
    symbol : str or path
        The graph's file, or what its name begins with: ``"vgg"`` for ``vgg-symbol.json``.
    params : int, str, path or dict, optional
        The parameters' file, or their epoch: 12 for ``vgg-0012.params``; or what they are, which comes back.
        Unless given, the last epoch that lies beside the graph.
    """
    name = os.fspath(symbol)
    named_in_full = name.endswith(".json") or os.path.isfile(name)
    graph_file = name if named_in_full else f"{name}-symbol.json"
    if not os.path.isfile(graph_file):
        raise MissingFileError(_why_not(name, graph_file))
    prefix = graph_file.removesuffix(".json").removesuffix("-symbol")
    if params is None:
        folder = Path(prefix).parent
        pattern = f"{glob.escape(Path(prefix).name)}-" + "[0-9]" * 4 + "*.params"
        epochs = [p for p in folder.glob(pattern) if _epoch(p).isdecimal()]
        return graph_file, str(max(epochs, key=lambda p: int(_epoch(p)))) if epochs else None
    if isinstance(params, dict):
        return graph_file, params
    if isinstance(params, int) or (str(params).isdecimal() and not os.path.isfile(params)):
        params = f"{prefix}-{int(params):04d}.params"
    return graph_file, os.fspath(params)


def _epoch(path: Path) -> str:
    return path.stem.rpartition("-")[2]


def _why_not(name: str, graph_file: str) -> str:
    """What to say where a graph's file is not there."""
    if os.path.isdir(name):
        held = sorted(path.name for path in Path(name).glob("*-symbol.json"))
        told = f"it holds {', '.join(held[:5])}" if held else "it holds no file ...-symbol.json"
        return f"{name}: is a folder; a model is named by its graph's file, and {told}"
    if name == graph_file:
        return f"{name}: No such file or directory"
    return (
        f"{name}: no such file, and no {graph_file}; a model is named by its graph's file or by what comes "
        "before -symbol.json"
    )


def read_symbol(path, problems: list[str] | None = None) -> tuple[Symbol, str | None]:
    """The symbol in a file, and which MXNet saved it if the file says so.

    ``problems`` collects what does not stop the rest from being looked at.
    """
    text = read_text(path)
    return Symbol(json_format.parse(text, str(path), problems)), json_format.saved_by(text)


def read_params(path) -> tuple[dict, dict]:
    """Arguments and auxiliary states in a .params file. Names without ``arg:`` or ``aux:`` are arguments."""
    return without_prefixes(load_model(str(path)), str(path))


def all_params(path) -> dict:
    """The same, all by name."""
    arg, aux = read_params(path)
    return {**arg, **aux}


@dataclasses.dataclass
class Differences:
    """How parameters differ from those that a graph needs; shapes are ``(name, has, needed)``."""

    missing: list[str]
    surplus: list[str]
    shapes: list[tuple[str, tuple, tuple]]

    def missing_text(self) -> str:
        """The parameters that are missing, with near names among those left over."""
        return _listed("lacks", "parameter", " of the graph", self.missing, self.surplus)

    def surplus_text(self) -> str:
        """Those left over, with near names among those missing."""
        return _listed("has", "array", " that the graph does not", self.surplus, self.missing)

    def shapes_text(self) -> list[str]:
        """A sentence for each parameter of the wrong shape."""
        return [
            f"{name} has shape {graph.format_shape(has)} in the file, the graph needs "
            f"{graph.format_shape(needed)}"
            for name, has, needed in self.shapes
        ]


def _listed(verb, noun, rest, names, others) -> str:
    """``the file lacks 2 parameters of the graph:``, and a line for each; a single one in the same line."""
    told = [f"{name}{nearest(name, others)}" for name in names]
    if len(told) == 1:
        return f"the file {verb} 1 {noun}{rest}: {told[0]}"
    return "\n  ".join([f"the file {verb} {len(names)} {noun}s{rest}:", *told])


def compare(order, shapes, held: dict, free, every=None) -> Differences:
    """How parameters differ from what a graph needs, which is in topological order.

    ``shapes`` were inferred, by ``id`` of the node; ``free`` names the variables that are no parameters, and
    ``every`` those that are no surplus, the graph's own unless given.
    """
    variables = {node.name: node for node in order if node.is_variable}
    known = set(variables if every is None else every)
    wrong = []
    for name, node in variables.items():
        needed = shapes.get(id(node), [None])[0]
        if name in held and needed is not None and not _fits(needed, tuple(held[name].shape)):
            wrong.append((name, tuple(held[name].shape), needed))
    return Differences(
        missing=[name for name in variables if name not in held and name not in set(free)],
        surplus=[name for name in held if name not in known],
        shapes=wrong,
    )


def _fits(needed, has) -> bool:
    return len(needed) == len(has) and all(n in (-1, h) for n, h in zip(needed, has, strict=True))
