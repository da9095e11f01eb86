"""The MXNet side of ``verify/check_model_zoo.py``: one JSON request a line in, one answer a line out."""

import json
import os
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402

import custom_ops  # noqa: E402
import inputs  # noqa: E402
from catalogue import find  # noqa: E402

custom_ops.register(mx)
_bound = {}


def flat(outputs):
    """Nested outputs as one list."""
    if not isinstance(outputs, (list, tuple)):
        return [] if outputs is None else [outputs]
    return [one for each in outputs for one in flat(each)]


def build_net(model):
    """A network of the Gluon zoo or of GluonCV, its parameters not loaded."""
    source, name = model.name.split(":")
    if source == "gluon":
        return mx.gluon.model_zoo.vision.get_model(name)
    from gluoncv import model_zoo

    options = dict(model.options)
    proposals = options.pop("proposals", None)
    net = model_zoo.get_model(name, pretrained=False, **options)
    if proposals:  # a thousand, each through a ResNet's last stage, take minutes
        net.rpn._test_post_nms = net._rpn_test_post_nms = net._rcnn_max_dets = proposals
    return net


def build(model):
    """``(the network or None, its graph)``."""
    if model.build:
        module, function, arguments = model.build
        return None, getattr(__import__(module), function)(mx, *arguments)
    net = build_net(model)
    net.initialize()
    outputs = flat(net(*[mx.sym.var(name) for name in model.inputs]))
    return net, mx.sym.Group(outputs) if len(outputs) > 1 else outputs[0]


def graph(name, path):
    """Write a network's graph; returns its parameters: for each name in files, its own name and its shape."""
    model = find(name)
    with mx.name.NameManager():
        net, symbol = build(model)
    Path(path).write_text(symbol.tojson())
    shapes, _, aux_shapes = symbol.infer_shape(**model.inputs)
    known = dict(zip(symbol.list_arguments(), shapes))
    known.update(zip(symbol.list_auxiliary_states(), aux_shapes))
    params = net._collect_params_with_prefix()
    return {
        "params": {
            key: [value.name, list(known.get(value.name) or value.shape or ())]
            for key, value in params.items()
        }
    }


def _constants(net):
    """The arrays that a network does not learn, by name."""
    every = {} if net is None else net.collect_params()
    return {key: every[key].data().asnumpy() for key in every if isinstance(every[key], mx.gluon.Constant)}


def _save_net(net, values, folder):
    """Write the network's parameters as its users do; those that its graph leaves out may have no shape."""
    for name, parameter in net.collect_params().items():
        if name in values:
            parameter.shape = values[name].shape
            parameter.initialize(ctx=mx.cpu(), force_reinit=True)
            parameter.set_data(mx.nd.array(values[name]))
    net.save_parameters(str(folder / "net.params"))


def prepare(name, folder):
    """Build a model, give it weights, run it, and leave everything in ``folder``."""
    _bound.clear()
    model, folder = find(name), Path(folder)
    net, symbol = build(model)
    constants = _constants(net)
    text = symbol.tojson()
    arg_shapes, _, aux_shapes = symbol.infer_shape(**model.inputs)
    shapes = dict(zip(symbol.list_arguments(), arg_shapes))
    shapes.update(zip(symbol.list_auxiliary_states(), aux_shapes))
    free = {key: shape for key, shape in shapes.items() if key in model.inputs or _is_label(key)}
    data = inputs.make_inputs(model, free)
    wanted = {key: shape for key, shape in shapes.items() if key not in free and key not in constants}
    values = {**inputs.make_weights(text, wanted, name), **constants, **data}
    masked_text = inputs.masked_graph(text)
    masked = mx.sym.load_json(masked_text)
    _calibrate(masked_text, masked, values)
    _save(folder, symbol, values, data)
    if net is not None:
        _save_net(net, values, folder)
    heads = _numbered("head", inputs.raw_heads(text))
    choices = _numbered("choice", inputs.chosen_from(text))
    np.savez(folder / "expected.npz", **_outputs(masked, symbol.list_outputs(), heads, values))
    _bound.update(
        graph=masked_text, outputs=symbol.list_outputs(), heads=heads, choices=choices, values=values
    )
    ops = sorted({node["op"] for node in json.loads(text)["nodes"]} - {"null"})
    return {"operators": ops, "heads": heads, "choices": choices, "outputs": symbol.list_outputs()}


def choose(folder):
    """Run the prepared model again; the operators that select boxes get what they got in roiops."""
    folder, heads, choices = Path(folder), _bound["heads"], _bound["choices"]
    text = inputs.given_choices(_bound["graph"], list(choices.values()))
    nodes = json.loads(text)["nodes"]
    # An operator in Python is the same in both.
    kept = {nodes[entry[0]]["name"] for node in nodes if node["op"] == "Custom" for entry in node["inputs"]}
    with np.load(folder / "got.npz") as file:
        given = {name: file[name] if name in kept else _without_ties(file[name]) for name in choices}
    names = [*_bound["outputs"], *choices]
    values = {**_bound["values"], **given}
    np.savez(folder / "expected.npz", **_outputs(mx.sym.load_json(text), names, heads, values))
    return {}


def _without_ties(scores):
    """Scores of which equal ones differ in their last bits, the first of them the largest.

    MXNet's topk gives equal scores in no order of its own making; roiops gives the first one first.
    """
    flat = scores.ravel().copy()
    order = np.argsort(-flat, kind="stable")
    for before, at in zip(order[:-1], order[1:]):
        if flat[at] <= 0:  # marks of what is left out
            break
        if flat[at] >= flat[before]:
            flat[at] = np.nextafter(flat[before], np.float32(-1))
    return flat.reshape(scores.shape)


def _numbered(kind, heads):
    return {"%s/%d" % (kind, i): head for i, head in enumerate(heads)}


def _is_label(name):
    return name in ("label", "bbox_target", "bbox_weight") or name.endswith("_label")


def _bind(symbol, values):
    """An executor in which oneDNN does not put several operators into one, as it does by default."""
    os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
    arguments = {name: mx.nd.array(values[name]) for name in symbol.list_arguments()}
    states = {name: mx.nd.array(values[name]) for name in symbol.list_auxiliary_states()}
    return symbol.bind(mx.cpu(), arguments, grad_req="null", aux_states=states)


def golden(name, path, size):
    """Write a small model with what it gives: graph, inputs, outputs, and its weights as seed and factors."""
    model = find(name)
    model.inputs = {**model.inputs, "data": tuple(size)}
    net, symbol = build(model)
    constants = _constants(net)
    text = symbol.tojson()
    arg_shapes, _, aux_shapes = symbol.infer_shape(**model.inputs)
    shapes = dict(zip(symbol.list_arguments(), arg_shapes))
    shapes.update(zip(symbol.list_auxiliary_states(), aux_shapes))
    data = inputs.make_inputs(model, {key: shape for key, shape in shapes.items() if key in model.inputs})
    labels = {key: np.zeros(shape, np.float32) for key, shape in shapes.items() if _is_label(key)}
    wanted = {key: shape for key, shape in shapes.items() if not {key} & {*data, *labels, *constants}}
    values = {**inputs.make_weights(text, wanted, name), **constants, **data, **labels}
    factors = _calibrate(text, symbol, values)
    heads = inputs.raw_heads(text)
    arrays = {"factor/" + key: factor for key, factor in factors.items()}
    # Long constants are anchors on a grid far larger than the input's; they compress well.
    arrays.update({"array/" + key: values[key] for key in wanted if values[key].ndim == 1})
    arrays.update({"array/" + key: value for key, value in constants.items()})
    arrays.update({"input/" + key: value for key, value in data.items()})
    steps = {}
    found = _outputs(symbol, symbol.list_outputs(), _numbered("head", heads), values)
    for key, value in found.items():
        # Of long outputs that hold no boxes a sample is enough.
        steps[key] = 1 if value.shape[-1] in (1, 4, 6) else -(-value.size // 8192)
        arrays["out/" + key] = value if steps[key] == 1 else value.reshape(-1)[:: steps[key]]
    meta = {
        "peer": "mxnet",
        "version": mx.__version__,
        "script": "verify/check_model_zoo.py --golden",
        "model": name,
        "heads": heads,
        "steps": steps,
        "weights": {key: wanted[key] for key in wanted if values[key].ndim > 1},
    }
    np.savez_compressed(path, meta=json.dumps(meta), symbol=np.frombuffer(text.encode(), np.uint8), **arrays)
    return {}


def _outputs(symbol, names, heads, values):
    """The outputs, under these names, and the internal ``heads``, under theirs."""
    results = dict(zip(names, _run(symbol, values)))
    if heads:
        internals = symbol.get_internals()
        names = internals.list_outputs()
        wanted = [internals[inputs.internal_number(names, head)] for head in heads.values()]
        results.update(zip(heads, _run(mx.sym.Group(wanted), values)))
    return results


def _run(symbol, values):
    """The outputs, operator by operator: fused, MXNet gets some graphs wrong (cifar_resnet56_v2 by 13 %)."""
    executor = _bind(symbol, values)
    return [value.asnumpy() for value in executor.forward(is_train=False)]


def _calibrate(text, symbol, values):
    """Fit moving averages and linear layers to one pass, so that activations keep their size."""
    internals = symbol.get_internals()
    _, internal_shapes, _ = internals.infer_shape(**{name: value.shape for name, value in values.items()})
    positions = {
        name[: -len("_output")]: int(np.prod(shape)) // max(1, shape[1]) if len(shape) > 1 else 0
        for name, shape in zip(internals.list_outputs(), internal_shapes)
        if name.endswith("_output")
    }
    text, added = inputs.calibration_graph(text, positions)
    graph = mx.sym.load_json(text)
    shapes, _, state_shapes = graph.infer_shape(**{name: value.shape for name, value in values.items()})
    given = dict(values)
    ones = {name + "_beta" for name, _, _, rectified in added if rectified}
    for name, shape in zip(graph.list_arguments() + graph.list_auxiliary_states(), shapes + state_shapes):
        if name not in given:
            given[name] = np.full(shape, float(name in ones or name.endswith(("_gamma", "_var"))), np.float32)
    # MXNet brings moving averages up to date in the backward pass only, so the statistics are taken here.
    norms = [
        node
        for node in json.loads(text)["nodes"]
        if node["op"] == "BatchNorm" and node["attrs"].get("use_global_stats") != "True"
    ]
    if not norms:
        return {}
    nodes, internals = json.loads(text)["nodes"], graph.get_internals()
    names = internals.list_outputs()
    normed = [
        internals[inputs.internal_number(names, inputs.head_of(nodes, node["inputs"][0]))] for node in norms
    ]
    executor = _bind(mx.sym.Group(normed), given)
    states = {}
    for node, value in zip(norms, executor.forward(is_train=True)):
        mean, variance = inputs.statistics(value.asnumpy())
        states[nodes[node["inputs"][3][0]]["name"]] = mean
        states[nodes[node["inputs"][4][0]]["name"]] = variance
    factors = inputs.calibrate(added, values, states)
    kept = set(symbol.list_auxiliary_states()) & set(states)
    values.update({name: states[name].astype(np.float32) for name in kept})
    return factors


def _save(folder, symbol, values, data):
    symbol.save(str(folder / "model-symbol.json"))
    states = set(symbol.list_auxiliary_states())
    arrays = {
        ("aux:" if name in states else "arg:") + name: mx.nd.array(value)
        for name, value in values.items()
        if name not in data
    }
    mx.nd.save(str(folder / "model-0000.params"), arrays)
    # A softmax's own label is left out: inference must not ask for it.
    np.savez(folder / "inputs.npz", **{name: a for name, a in data.items() if not name.endswith("_label")})


def names():
    """The networks that GluonCV lists."""
    from gluoncv.model_zoo import get_model_list

    return {"names": list(get_model_list())}


def answer(do, **request):
    """What is asked for, by the name of a function."""
    known = {"prepare": prepare, "choose": choose, "golden": golden, "graph": graph, "names": names}
    return known[do](**request)


if __name__ == "__main__":
    inputs.serve(answer)
