"""Damaged graphs that the soak run found to end in another error than the library's own."""

import json
import re

import pytest

import roiops as mx
from roiops.errors import FormatError, GraphError, MXNetError, ParamError
from roiops.models import inspection


def graph(*nodes, heads=None) -> str:
    document = {"nodes": list(nodes)}
    if heads is not None:
        document["heads"] = heads
    return json.dumps(document)


def variable(name="x", **attrs):
    return {"op": "null", "name": name, "attrs": attrs, "inputs": []}


def node(op, *inputs, **attrs):
    return {"op": op, "name": "node", "attrs": attrs, "inputs": list(inputs)}


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        (graph(variable(), heads=5), FormatError, "symbol JSON: heads: must be a list of entries, got 5"),
        (graph(variable(), heads=[[0, 1]]), FormatError, "heads: reads output 1 of 'x', which has 1"),
        (
            graph(variable(), {"op": "exp", "name": "e", "inputs": True}),
            FormatError,
            "node 'e': must be a list of entries, got True",
        ),
        (
            graph(variable(), node("exp", [0, 2**64])),
            FormatError,
            "node 'node': reads output 18446744073709551616 of 'x', which has 1",
        ),
        (graph(variable(), node("", [0, 0])), FormatError, "node 1: has no operator name"),
        (
            graph(variable(), node("SliceChannel", [0, 0], num_outputs="1000000000")),
            ParamError,
            "SliceChannel(node): num_outputs must be int in [1, 65536], got '1000000000'",
        ),
        (
            graph(variable(), node("Concat", [0, 0], num_args="1000000000")),
            ParamError,
            "Concat(node): num_args must be int in [1, 65536], got '1000000000'",
        ),
        (
            graph(variable(), node("Cast", [0, 0], dtype="(7")),
            ParamError,
            "Cast(node): dtype must be ",
        ),
    ],
)
def test_damage_is_refused_by_name(text, error, message):
    with pytest.raises(error, match=re.escape(message)):
        mx.sym.load_json(text)


@pytest.mark.parametrize("shape", ["complex128", "1e400", "(:5)"])
def test_shape_of_a_variable_that_is_none(shape):
    symbol = mx.sym.load_json(graph(variable(__shape__=shape)))
    with pytest.raises(GraphError, match=r"variable 'x': __shape__ must be a shape such as .*, got"):
        symbol.infer_shape_partial()


@pytest.mark.parametrize("dtype", ["true", "(0, 0)", "f4,", "²", "--5", "9" * 5000])
def test_dtype_of_a_variable_that_is_none(dtype):
    symbol = mx.sym.load_json(graph(variable(__dtype__=dtype, __shape__="(2,)"), node("exp", [0, 0])))
    with pytest.raises(GraphError, match="variable 'x': __dtype__ must be one of float32, "):
        symbol.infer_type()
    assert any("__dtype__ must be" in problem for problem in inspection.inspect_model(symbol).problems)


@pytest.mark.parametrize(
    ("op", "inputs", "known"),
    [("broadcast_like", ("lhs", "rhs"), {"lhs": (1, 3)}), ("_contrib_index_copy", "abc", {"a": (4, 2)})],
)
def test_inference_waits_for_inputs_that_are_not_known(op, inputs, known):
    text = graph(*map(variable, inputs), node(op, *[[i, 0] for i in range(len(inputs))]))
    assert len(mx.sym.load_json(text).infer_shape_partial(**known)[0]) == len(inputs)


def test_concat_of_shapes_of_different_length():
    text = graph(*map(variable, "ab"), node("Concat", [0, 0], [1, 0], dim="1", num_args="2"))
    with pytest.raises(
        MXNetError, match=r"Concat\(node\): arg1 must have the shape of arg0, \(7, 2\), but for axis"
    ):
        mx.sym.load_json(text).infer_shape(a=(7, 2), b=(0,))


def test_infinite_shape_is_an_error_of_the_library():
    with pytest.raises(MXNetError, match="'x'"):
        mx.sym.load_json(graph(variable(__shape__="(inf, 2)"))).infer_shape_partial()
