"""ROI operators in ``torch.onnx.export``: what ``roiops convert`` writes, for both exporters of PyTorch.

That is ONNX's own ``RoiAlign`` or ``MaxRoiPool`` where these give the same numbers, else standard operators
around them. Heights, widths and the numbers of boxes and images stay open.
"""

import inspect

import numpy as np
import torch

from ..errors import GraphError, MXNetError
from ..graph.symbol import Symbol, Variable, invoke
from ..models.archive import ArchivedModel
from ..models.onnx import convert
from ..models.onnx.write import used_nodes
from .plans import NUMPY_DTYPES, bind

__all__ = ["symbolic", "translation_table"]

#: The oldest opset that PyTorch's newer exporter writes. What stands here is the same in later ones.
_TRANSLATED = 18


def translation_table(definitions) -> dict:
    """For each operator of the dispatcher what the newer exporter calls, given what PyTorch is told of it."""
    return {
        getattr(torch.ops.roiops, definition.name).default: _translation(definition)
        for definition in definitions
    }


def _translation(definition):
    """What the newer exporter calls for an operator, with values of onnxscript."""

    def translate(*args, **kwargs):
        from onnxscript import ir, opset18

        def add(op, inputs, attributes, count):
            made = {n: ir.tensor(a) if isinstance(a, np.ndarray) else a for n, a in attributes.items()}
            found = getattr(opset18, op)(*inputs, **made)
            return [found] if count == 1 else found

        def constant(array):
            return opset18.Constant(value=ir.tensor(array))

        tensors, params = _split(definition, args, kwargs)
        shapes = [[n if isinstance(n, int) else None for n in x.shape] for x in tensors]
        dtypes = [x.dtype.numpy() for x in tensors]
        conversion = _conversion(definition, params, shapes, dtypes, _TRANSLATED)
        return _written(conversion, tensors, constant, add), constant(np.zeros(0, np.int32))

    translate.__name__ = definition.name
    translate.__signature__ = inspect.Signature()  # else the exporter warns that it has no annotations
    return translate


def symbolic(definition, g, *args):
    """What the older exporter calls for an operator, with values of its graph."""

    def add(op, inputs, attributes, count):
        if op == "Shape" and attributes:  # this exporter takes a part of a shape for all of it, and crashes
            bounds = (constant(np.array([attributes[each]], np.int64)) for each in ("start", "end"))
            return [g.op("Slice", g.op("Shape", *inputs), *bounds)]
        made = {f"{name}{_suffix(value)}": _plain(value) for name, value in attributes.items()}
        found = g.op(op, *inputs, outputs=count, **made)
        return [found] if count == 1 else found

    def constant(array):
        return g.op("Constant", value_t=torch.from_numpy(array))

    inputs = [None if x.node().mustBeNone() else x for x in args[: definition.inputs]]
    if definition.prop_class.variadic:
        inputs = [list(inputs[0].node().inputs())]
    values = [_held(value) for value in args[definition.inputs :]]
    tensors, params = _split(definition, [*inputs, *values])
    shapes = [x.type().varyingSizes() for x in tensors]
    if None in shapes:
        raise MXNetError(f"{definition.prop_class.label}: the number of axes must be known to write ONNX")
    dtypes = [NUMPY_DTYPES[torch.onnx.JitScalarType.from_value(x).dtype()] for x in tensors]
    conversion = _conversion(definition, params, shapes, dtypes, g.opset)
    output = _written(conversion, tensors, constant, add)
    sizes = [None if n == -1 else n for n in conversion.outputs[0].shape]
    output.setType(tensors[0].type().with_sizes(sizes))
    return output, constant(np.zeros(0, np.int32))


def _split(definition, args, kwargs=None):
    """The tensors among the arguments of an operator of the dispatcher, and its parameters."""
    given = dict(zip(definition.argument_names, args, strict=False)) | (kwargs or {})
    given = {name: value for name, value in given.items() if value is not None}
    params = {field.name: given[field.name] for field in definition.fields if field.name in given}
    if definition.prop_class.variadic:
        return list(given["inputs"]), params
    return [given[name] for name in definition.prop_class.arguments if name in given], params


def _conversion(definition, params, shapes, dtypes, opset):
    """The operator in ONNX, for inputs of these shapes, with None for lengths that are not known."""
    prop_class = definition.prop_class
    names = [f"data{i}" for i in range(len(shapes) - 1)] + ["rois"]
    if not prop_class.variadic:
        names = prop_class.arguments[: len(shapes)]
    shapes = [
        (None, prop_class.roi_columns) if name == "rois" else shape
        for name, shape in zip(names, shapes, strict=True)
    ]
    if any(None in shape[1:] for name, shape in zip(names, shapes, strict=True) if name == "offset"):
        # Of zeros that `deform_roi_pool` has made, the older exporter knows no lengths; the operator does.
        known, _ = bind(prop_class, params).prop.infer_shape([(-1, -1, -1, -1), (-1, 5), None])
        shapes[2] = (None, *known[2][1:])
    channels = 3 if params.get("layout") == "NHWC" else 1
    maps = [name for name in names if name.startswith("data")]
    # The maps of a pyramid are of the same images: where one of them says how many, it says so for all.
    images = next((shape[0] for shape in shapes[: len(maps)] if shape[0] is not None), None)
    given, known = {}, {}
    for name, shape in zip(names, shapes, strict=True):
        fixed = (channels,) if name in maps else range(1, len(shape))
        for axis in fixed:
            if shape[axis] is None:
                raise MXNetError(
                    f"{prop_class.label}: ONNX needs axis {axis} of {name} to be known, got {shape}"
                )
        first = "data_0" if name in maps else "rois_0"  # the others have a row for each box
        letters = [first, *(f"{name}_{axis}" for axis in range(1, len(shape)))]
        lengths = (images, *shape[1:]) if name in maps else shape
        given[name] = tuple(n if axis in fixed else letters[axis] for axis, n in enumerate(shape))
        known[name] = tuple(n or letter for n, letter in zip(lengths, letters, strict=True))
    variables = [Variable(name, dtype=dtype) for name, dtype in zip(names, dtypes, strict=True)]
    symbol = invoke(prop_class, variables, {**params, "name": definition.name})
    model = ArchivedModel(Symbol(symbol.heads[:1]), {}, prop_class.label)
    try:
        return convert(model, given, opset)
    except GraphError:  # an operator of the user's, which needs more
        return convert(model, known, opset)


def _written(conversion, tensors, constant, add):
    """A conversion's output; ``constant(array)`` and ``add(op, inputs, attributes, outputs)`` make it."""
    made = {id(value): tensor for value, tensor in zip(conversion.inputs, tensors, strict=True)}

    def find(value):
        if value is not None and id(value) not in made:
            made[id(value)] = constant(value.constant)
        return None if value is None else made[id(value)]

    for node in used_nodes(conversion.graph.nodes, conversion.outputs):
        attributes = dict(node.attributes)
        if "to" in attributes:  # ONNX's number of a dtype
            dtype = torch.from_numpy(np.empty(0, attributes["to"])).dtype
            attributes["to"] = int(torch.onnx.JitScalarType.from_dtype(dtype).onnx_type())
        results = add(node.op, [find(value) for value in node.inputs], attributes, len(node.outputs))
        made.update(zip(map(id, node.outputs), results, strict=True))
    return find(conversion.outputs[0])


# -- the older exporter's values -------------------------------------------------------------------------


def _held(value):
    """The number, list or text, or None, that a value of the older exporter's graph stands for."""
    node = value.node()
    if node.mustBeNone():
        return None
    if node.kind() == "prim::ListConstruct":
        return [_held(each) for each in node.inputs()]
    if node.kind() not in ("onnx::Constant", "prim::Constant"):
        raise MXNetError(f"an ROI operator in ONNX needs parameters that are known, got {node.kind()}")
    held = getattr(node, node.kindOf("value"))("value")
    return held.tolist() if isinstance(held, torch.Tensor) else held


def _suffix(value) -> str:
    """What the name of an attribute ends in, by which the older exporter tells its kind."""
    first = value[0] if isinstance(value, (list, tuple)) else value
    if isinstance(first, np.ndarray):
        return "_t"
    return "_s" if isinstance(first, str) else "_f" if isinstance(first, (float, np.floating)) else "_i"


def _plain(value):
    """An attribute as the older exporter takes it."""
    return torch.from_numpy(value) if isinstance(value, np.ndarray) else value
