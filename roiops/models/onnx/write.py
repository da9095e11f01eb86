"""From a finished graph to an ONNX file. Only here and in the check is the onnx package needed."""

import os
import shutil
import tempfile
from pathlib import Path

import numpy as np

from ..._version import __version__
from ...errors import GraphError, MXNetError

__all__ = ["DOMAIN", "import_onnx", "proto", "save", "used_nodes"]

#: The domain of a model's own functions.
DOMAIN = "roiops"
#: Protocol buffers hold less than 2 GiB; what is larger keeps its arrays in a second file.
_MOST_BYTES = (1 << 31) - (1 << 24)


def import_onnx():
    """The onnx package, or an error that says how to get it."""
    try:
        import onnx
    except ImportError:
        raise MXNetError("writing ONNX needs the onnx package: pip install onnx") from None
    return onnx


class _Names:
    """A name of its own for every value of one graph; those asked for first are kept as they are."""

    def __init__(self):
        self.taken, self.of = set(), {}

    def __call__(self, value) -> str:
        if value is None:
            return ""
        if id(value) not in self.of:
            name, number = value.name, 2
            while name in self.taken:
                name = f"{value.name}_{number}"
                number += 1
            self.taken.add(name)
            self.of[id(value)] = name
        return self.of[id(value)]


def used_nodes(nodes, outputs) -> list:
    """The nodes that some output needs, in order."""
    wanted = {id(value) for value in outputs}
    kept = []
    for node in reversed(nodes):
        if any(id(value) in wanted for value in node.outputs):
            kept.append(node)
            wanted.update(id(value) for value in node.inputs if value is not None)
    return kept[::-1]


def _attributes(onnx, attributes) -> dict:
    made = {}
    for name, value in attributes.items():
        if name == "to":
            value = onnx.helper.np_dtype_to_tensor_dtype(np.dtype(value))
        elif isinstance(value, np.ndarray):
            value = onnx.numpy_helper.from_array(value)
        elif isinstance(value, tuple | list):
            value = [v.item() if isinstance(v, np.generic) else v for v in value]
        elif isinstance(value, np.generic | bool):
            value = int(value) if isinstance(value, bool) else value.item()
        made[name] = value
    return made


def _node(onnx, node, names):
    return onnx.helper.make_node(
        node.op,
        [names(value) for value in node.inputs],
        [names(value) for value in node.outputs],
        name=node.name,
        domain=DOMAIN if node.function else "",
        **_attributes(onnx, node.attributes),
    )


def _check_dtypes(onnx, nodes, opset) -> None:
    """Raise for inputs of a dtype that ONNX's operators do not take, such as whole numbers for roots."""
    wrong = []
    for node in nodes:
        formal = () if node.function else onnx.defs.get_schema(node.op, opset).inputs
        for i, value in enumerate(node.inputs if formal else ()):
            if value is None or value.dtype is None:
                continue
            kind = onnx.helper.np_dtype_to_tensor_dtype(value.dtype)
            name = onnx.TensorProto.DataType.Name(kind).lower()
            if f"tensor({name})" not in formal[min(i, len(formal) - 1)].types:
                wrong.append(f"  {node.name}: ONNX has no {node.op} of {value.dtype}")
    if wrong:
        raise GraphError("what cannot be written as ONNX:\n" + "\n".join(dict.fromkeys(wrong)))


def _function(onnx, function, opset):
    names, nodes = _Names(), []
    for value in (*function.inputs, *function.outputs):
        names(value)
    kept = used_nodes(function.graph.nodes, function.outputs)
    _check_dtypes(onnx, kept, opset)
    read = {id(value) for node in kept for value in node.inputs}
    for value in function.graph.constants.values():
        if id(value) in read:
            nodes.append(
                onnx.helper.make_node(
                    "Constant", [], [names(value)], value=onnx.numpy_helper.from_array(value.constant)
                )
            )
    nodes += [_node(onnx, node, names) for node in kept]
    return onnx.helper.make_function(
        DOMAIN,
        function.name,
        [names(value) for value in function.inputs],
        [names(value) for value in function.outputs],
        nodes,
        [onnx.helper.make_opsetid("", opset)],
        doc_string=function.doc,
    )


def _information(onnx, value, name, open_lengths=None):
    shape = value.shape
    lengths = open_lengths or (None,) * len(shape)
    dims = [
        (letter or f"{name}_{i}") if d == -1 else d
        for i, (d, letter) in enumerate(zip(shape, lengths, strict=True))
    ]
    return onnx.helper.make_tensor_value_info(name, onnx.helper.np_dtype_to_tensor_dtype(value.dtype), dims)


def proto(conversion, name: str = "model"):
    """The ``onnx.ModelProto`` of a conversion."""
    onnx = import_onnx()
    graph, names = conversion.graph, _Names()
    for value in (*conversion.inputs, *conversion.outputs):
        names(value)
    kept = used_nodes(graph.nodes, conversion.outputs)
    _check_dtypes(onnx, kept, graph.opset)
    initializers = {}
    for node in kept:
        for value in node.inputs:
            if value is not None and value.node is None and value.constant is not None:
                initializers.setdefault(id(value), value)
    named = [(names(value), value.constant) for value in initializers.values()]
    called = {id(node.function): node.function for node in kept if node.function}
    nodes = [_node(onnx, node, names) for node in kept]
    opsets = [onnx.helper.make_opsetid("", graph.opset)]
    if called:
        opsets.append(onnx.helper.make_opsetid(DOMAIN, 1))
    model = onnx.helper.make_model(
        onnx.helper.make_graph(
            nodes,
            name,
            [_information(onnx, v, v.name, conversion.open_lengths.get(v.name)) for v in conversion.inputs],
            [_information(onnx, v, names(v)) for v in conversion.outputs],
            doc_string="\n".join(conversion.notes),
        ),
        opset_imports=opsets,
        functions=[_function(onnx, function, graph.opset) for function in called.values()],
        producer_name="roiops",
        producer_version=__version__,
        ir_version={17: 8, 18: 8, 19: 9, 20: 9}.get(graph.opset, 10),
        doc_string="\n".join(conversion.notes),
    )
    for tensor_name, array in named:  # one by one: both functions above copy what they are given
        model.graph.initializer.append(onnx.numpy_helper.from_array(array, tensor_name))
    return model


def save(model, path, *, force: bool = False) -> list[Path]:
    """Write a model whole or not at all: the file, and beside it ``.data`` where it would pass 2 GB.

    An existing file stays unless ``force``. The files are complete before they take their names.
    """
    onnx, path = import_onnx(), Path(path)
    data = path.with_name(path.name + ".data")
    size = sum(len(t.raw_data) for t in model.graph.initializer)
    external = size > _MOST_BYTES
    if path.is_dir():
        raise GraphError(f"{path} is a folder; the name of a file is needed")
    for each in (path, data) if external else (path,):
        if each.exists() and not force:
            raise GraphError(f"{each} exists already; --force (force=True) overwrites it")
    if not path.parent.is_dir():
        raise GraphError(f"{path.parent}: no such folder")
    try:
        scratch = Path(tempfile.mkdtemp(prefix=".onnx-", dir=path.parent))
    except OSError as error:
        raise type(error)(error.errno, error.strerror, str(path)) from None
    try:
        onnx.save_model(
            model,
            str(scratch / path.name),
            save_as_external_data=external,
            all_tensors_to_one_file=True,
            location=data.name,
            size_threshold=1024,
        )
        onnx.checker.check_model(str(scratch / path.name), full_check=True)
        written = [each for each in (data, path) if (scratch / each.name).exists()]
        for each in written:
            os.replace(scratch / each.name, each)
        if external:  # saving took the arrays out of the model
            onnx.external_data_helper.load_external_data_for_model(model, str(path.parent))
    finally:
        shutil.rmtree(scratch)
    return written[::-1]
