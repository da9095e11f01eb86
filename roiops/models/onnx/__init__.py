"""Saved models as ONNX, in standard operators only.

    model = to_onnx(symbol, arg_params, aux_params, shapes={"data": ("N", 3, "H", "W")}, path="model.onnx")

Importing this needs no onnx package; writing does: ``pip install onnx onnxruntime``.
"""

import json

import numpy as np

from ... import ndarray as nd
from ...dtypes import number_type
from ...errors import GraphError
from ...graph import nodes as symbol_graph
from ...graph.symbol import load_json
from ..archive import ArchivedModel, load
from . import write
from .convert import NEWEST, OLDEST, Conversion, convert
from .fold import fold_batch_norms

__all__ = ["NEWEST", "OLDEST", "Conversion", "convert", "prepare", "to_onnx"]


def to_onnx(
    symbol,
    arg_params,
    aux_params=None,
    *,
    shapes: dict,
    path=None,
    force: bool = False,
    outputs=None,
    opset: int | None = None,
    dtype=None,
    fold: bool = False,
    functions: bool = False,
):
    """A symbol and its parameters as an ``onnx.ModelProto``, for inference.

    Dropout is gone, losses are what they compute in inference, and labels are no inputs. Names of inputs,
    outputs and weights stay. What was left out or changed stands in the model's ``doc_string``.

    Parameters
    ----------
    symbol : Symbol or str or path
        The graph, or its file.
    arg_params, aux_params : dict of arrays
        The parameters; or, as ``arg_params`` alone, their file or the epoch.
    shapes : dict of str to tuple
        The shape of each input. A string in place of a length leaves it open, under that name, where the
        graph allows it: ``{"data": ("N", 3, "H", "W")}``.
    path : str or path, optional
        Where to write the model, too. Arrays of more than 2 GB go to a second file, ``.data``, beside it.
    force : bool
        Whether to overwrite a file.
    outputs : str or list of str, optional
        Outputs to compute instead of the graph's own, by the names in ``symbol.get_internals()``.
    opset : int, optional
        The version of ONNX's operators, 17 to 22; 17 unless the graph needs a later one.
    dtype : optional
        Convert parameters and inputs to this, such as ``"float16"``.
    fold : bool
        Whether to merge BatchNorm into the convolution or product before it.
    functions : bool
        Whether compositions are functions of the model, each under its operator's name, instead of being
        written out. A viewer shows one node for each then; OpenVINO, for one, does not read such a file.
    """
    if isinstance(arg_params, dict):
        held = {**arg_params, **(aux_params or {})}
        arg_params = {
            n: a if isinstance(a, nd.NDArray) else nd.array(a, dtype=a.dtype) for n, a in held.items()
        }
    model = load(symbol, arg_params, outputs=outputs)
    conversion = prepare(model, shapes, opset=opset, dtype=dtype, fold=fold, functions=functions)
    made = write.proto(conversion)
    if path is not None:
        write.save(made, path, force=force)
    return made


def prepare(
    model: ArchivedModel, shapes: dict, *, opset=None, dtype=None, fold=False, functions=False
) -> Conversion:
    """What :func:`to_onnx` writes, before it is written."""
    if dtype is not None:
        model = _cast(model, number_type(f"{model.source}: dtype", dtype))
    conversion = convert(model, shapes, opset, dtype or np.float32, functions)
    if fold:
        count = fold_batch_norms(conversion)
        conversion.notes.append(f"BatchNorm nodes merged into what stands before them: {count}")
    return conversion


#: Operators that are told the dtype of what they make, such as the first state of a recurrent layer.
_TOLD = ("_zeros", "_ones", "_full", "_arange", "_eye", "_linspace", "Embedding", "one_hot", "Cast")
#: How variables declare float32, float64 and float16: by their numbers in MXNet, or by name.
_DECLARED_FLOATS = ("0", "1", "2", "float32", "float64", "float16")


def _cast(model, dtype):
    """The model with its numbers in another dtype; what an operator wants in its own stays in that."""
    if dtype not in (np.float16, np.float32, np.float64):
        raise GraphError(f"{model.source}: dtype must be float16, float32 or float64, got {dtype}")
    symbol = _without_own_dtypes(model.symbol, dtype)
    order = symbol_graph.topological_order(symbol.heads)
    whole = {n: a.dtype for n, a in model.params.items() if np.dtype(a.dtype).kind != "f"}
    types = symbol_graph.infer_types(order, whole, dtype)
    params = {
        node.name: model.params[node.name].astype(types[id(node)][0])
        for node in order
        if node.is_variable and node.name in model.params
    }
    return ArchivedModel(symbol, params, model.source)


def _without_own_dtypes(symbol, dtype):
    """The symbol; where it says itself that an array is of floating point, it is of this dtype.

    Indices and lengths that are given are float32 at least: float16 counts to 2048.
    """
    graph, counted = json.loads(symbol.tojson(remove_amp_cast=False)), _counted(symbol)
    for node in graph["nodes"]:
        attributes = node.setdefault("attrs", {})
        if node["op"] == "null" and attributes.get("__dtype__", "float32") in _DECLARED_FLOATS:
            attributes.pop("__dtype__", None)  # then it is what the operators that read it want
            if node["name"] in counted:
                attributes["__dtype__"] = np.result_type(dtype, np.float32).name
        elif node["op"] in _TOLD and attributes.get("dtype", "float32").startswith("float"):
            attributes["dtype"] = dtype.name
    return load_json(json.dumps(graph))


def _counted(symbol) -> set:
    """Names of the variables that operators read as indices, lengths and the like, and as nothing else."""
    nodes = [node for node in symbol_graph.topological_order(symbol.heads) if not node.is_variable]
    reads = [
        (child.name, name in node.prop.own_types)
        for node in nodes
        for (child, _), name in zip(node.inputs, node.input_names(), strict=True)
        if child.is_variable
    ]
    return {name for name, own in reads if own} - {name for name, own in reads if not own}
