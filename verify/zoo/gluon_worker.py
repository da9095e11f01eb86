"""The roiops side of ``verify/check_gluon.py``: a script for MXNet, run by ``python -m roiops.as_mxnet``.

GluonCV's own code builds the network, as it does under MXNet; it loads the file that MXNet's
``save_parameters`` wrote, and runs as a hybridised block.
"""

import json
from pathlib import Path

import mxnet as mx
import numpy as np
import roiops

import inputs
from catalogue import find
from mxnet_worker import build, flat, graph

assert mx.nd is roiops.nd, "run me with python -m roiops.as_mxnet"


def _nodes(text):
    """What a graph computes: the nodes by name, with operator, parameters and inputs."""
    graph = json.loads(text)
    nodes = graph["nodes"]
    found = {}
    for node in nodes:
        attrs = {k: v for k, v in (node.get("attrs") or {}).items() if not k.startswith("__")}
        given = [(nodes[entry[0]]["name"], entry[1]) for entry in node["inputs"]]
        found[node["name"]] = (node["op"], attrs if node["op"] != "null" else {}, given)
    return found, [(nodes[entry[0]]["name"], entry[1]) for entry in graph["heads"]]


def _difference(expected, got):
    """The first thing in which two graphs differ, in words; an empty text where they are the same."""
    (one, one_heads), (other, other_heads) = _nodes(expected), _nodes(got)
    for name in one:
        if name not in other:
            return f"has no node {name}"
        (op, attrs, given), (own_op, own_attrs, own_given) = one[name], other[name]
        if (op, given) != (own_op, own_given):
            return f"{name} is {own_op} of {own_given}, MXNet's {op} of {given}"
        prop = roiops.registry.get(op).create(attrs) if op != "null" else None
        own = roiops.registry.get(op).create(own_attrs) if op != "null" else None
        if prop is not None and prop.params != own.params:
            return f"{name} has {own_attrs}, MXNet's {attrs}"
    more = [name for name in other if name not in one]
    if more:
        return f"has a node {more[0]} more"
    return "" if one_heads == other_heads else f"gives {other_heads}, MXNet's {one_heads}"


def load(name, folder, heads):
    folder = Path(folder)
    with np.load(folder / "inputs.npz") as file:
        data = {key: mx.nd.array(value) for key, value in file.items()}
    net, symbol = build(find(name))
    different = _difference((folder / "model-symbol.json").read_text(), symbol.tojson())
    net.load_parameters(str(folder / "net.params"))
    net.hybridize()
    outputs = [each.asnumpy() for each in flat(net(*data.values()))]
    results = dict(zip(symbol.list_outputs(), outputs, strict=True))
    if heads and not different:
        internals = symbol.get_internals()
        names = internals.list_outputs()
        group = mx.sym.Group([internals[inputs.internal_number(names, head)] for head in heads.values()])
        params = {key: value.data() for key, value in net.collect_params().items() if value._data is not None}
        states = set(group.list_auxiliary_states())
        given = {**params, **data}
        executor = group.bind(
            mx.cpu(),
            {key: given[key] for key in group.list_arguments()},
            grad_req="null",
            aux_states={key: given[key] for key in states},
        )
        results.update((head, a.asnumpy()) for head, a in zip(heads, executor.forward(), strict=True))
    np.savez(folder / "got.npz", **results)
    return {"graph": different}


def answer(do, name, **request):
    """What is asked for: the difference of a graph from MXNet's, or a network that is run."""
    if do == "load":
        return load(name, **request)
    found = graph(name, request["path"])
    expected = Path(request["expected"]).read_text()
    return {**found, "graph": _difference(expected, Path(request["path"]).read_text())}


if __name__ == "__main__":
    inputs.serve(answer)
