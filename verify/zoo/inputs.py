"""Inputs and weights with sensible statistics, the same from every run, and a worker's loop. NumPy only."""

import json
import re
import sys
import traceback
import zlib

import numpy as np

#: Operators that select boxes, and those whose inputs are a detector's raw heads.
_SELECTING = {
    "_contrib_box_nms",
    "_contrib_Proposal",
    "_contrib_MultiProposal",
    "_contrib_MultiBoxDetection",
    "_contrib_MultiBoxTarget",
    "Custom",
    "topk",
}
_DECODING = _SELECTING - {"_contrib_box_nms", "topk"} | {"_contrib_box_decode"}


_FEW = 64


def serve(answer):
    """Reply to requests, one in JSON a line, until they end; what else is printed goes to standard error."""
    answers, sys.stdout = sys.stdout, sys.stderr  # GluonCV prints
    for line in sys.stdin:
        try:
            reply = answer(**json.loads(line))
        except Exception as error:
            traceback.print_exc()
            reply = {"error": f"{type(error).__name__}: {error}"}
        answers.write(json.dumps(reply) + "\n")
        answers.flush()


def generator(name):
    return np.random.RandomState(zlib.crc32(name.encode()) & 0x7FFFFFFF)


def make_inputs(model, shapes):
    """An array for each input: a smooth random picture, and what goes with it."""
    height, width = model.image
    made = {}
    for name, shape in shapes.items():
        random = generator(model.name + "/" + name)
        if name == "data":
            made[name] = _picture(random, shape)
            if model.family == "ArcFace":
                made[name] = np.clip(made[name] * 50 + 128, 0, 255).round()
        elif name == "im_info":
            made[name] = np.array([[height, width, 1.0]])
        elif name == "gt_boxes":
            corner = random.uniform(0, 0.6, (shape[1], 2)) * (width, height)
            size = random.uniform(0.15, 0.4, (shape[1], 2)) * (width, height)
            kinds = random.randint(1, 20, (shape[1], 1))
            made[name] = np.concatenate([corner, corner + size, kinds], 1).reshape(shape)
        elif name == "label" and len(shape) == 3:  # SSD: class and corners as fractions, -1 where unused
            corner = random.uniform(0, 0.6, (*shape[:2], 2))
            size = random.uniform(0.15, 0.4, (*shape[:2], 2))
            kinds = random.randint(0, 20, (*shape[:2], 1))
            made[name] = np.concatenate([kinds, corner, corner + size, np.zeros_like(kinds)], 2)
            made[name][:, 3:] = -1
        elif name == "label":
            made[name] = random.choice([-1, 0, 1], size=shape, p=[0.8, 0.15, 0.05])
        else:
            made[name] = random.normal(0, 0.5, shape)
    return {name: np.ascontiguousarray(value, np.float32) for name, value in made.items()}


def _picture(random, shape):
    """Noise of several grain sizes, of mean 0 and deviation 1; a film is a picture for each moment."""
    total = np.zeros(shape)
    for grain in (2, 8, 32):
        small = random.normal(size=shape[:-2] + tuple(-(-d // grain) + 1 for d in shape[-2:]))
        total += np.kron(small, np.ones((grain, grain)))[..., : shape[-2], : shape[-1]]
    total += 0.3 * random.normal(size=shape)
    return np.round((total - total.mean()) / total.std() * 32) / 32  # fewer digits make smaller files


#: Layers with these names give coordinates or offsets, which ought to be small.
_SMALL = re.compile(
    r"offset|bbox|box_pred|loc_pred|_landmark|conv4_2|conv5_2|conv6_[23]|rpn\d+_(?:rpnhead\d+_)?conv2"
)
#: One of these is not calibrated, as the levels of a pyramid share it: GluonCV's offsets of proposals.
_SHARED = re.compile(r"rpnhead\d+_conv2_weight")
_LINEAR = {
    "Convolution",
    "Deconvolution",
    "FullyConnected",
    "_contrib_DeformableConvolution",
    "_contrib_ModulatedDeformableConvolution",
}


def make_weights(symbol_json, shapes, seed):
    """Values by name for the variables in ``shapes``, such that activations are of order 1."""
    graph = json.loads(symbol_json)
    roles, added = _roles(graph), _added(graph)
    values = {}
    for name, shape in shapes.items():
        random = generator(seed + "/" + name)
        op, position, node = roles.get(name, ("", 1, None))
        if op == "LeakyReLU":
            value = random.uniform(0.1, 0.4, shape)
        elif op in ("BatchNorm", "_contrib_SyncBatchNorm"):
            # ReLUs that are mostly on: half off, a deep random network multiplies rounding errors.
            low_high = {1: (0.7, 1.3), 2: (0.6, 1.4), 3: (0, 0), 4: (1, 1)}[position]
            value = random.uniform(*low_high, size=shape)
            if position == 1 and node["name"] in added:
                value *= 0.4  # trained residual branches are smaller than what they are added to
        elif len(shape) == 1:
            value = random.normal(0, 0.05, shape)
        else:
            fan_in = np.prod(shape[1:])
            if op == "Deconvolution":
                attrs = node.get("attrs", {})
                stride = [int(s) for s in re.findall(r"\d+", attrs.get("stride", "(1, 1)"))]
                fan_in = shape[0] * np.prod(shape[2:]) / np.prod(stride) / int(attrs.get("num_group", 1))
            # A quarter of He's variance: of a rectifier that is mostly on, the mean square is about 2.
            value = random.normal(0, (0.5 / max(1.0, fan_in)) ** 0.5, shape)
            if _SHARED.search(name):
                value *= 0.2
        values[name] = np.ascontiguousarray(value, np.float32)
    return values


def _added(graph):
    """Names of the nodes whose output an addition takes."""
    additions = ("elemwise_add", "_Plus", "_plus", "broadcast_add", "ElementWiseSum", "add_n")
    nodes = graph["nodes"]
    return {nodes[e[0]]["name"] for node in nodes if node["op"] in additions for e in node["inputs"]}


def _roles(graph):
    """For each variable: the operator that takes it, at which position, and that node."""
    roles = {}
    for node in graph["nodes"]:
        for position, entry in enumerate(node["inputs"]):
            source = graph["nodes"][entry[0]]
            if source["op"] == "null":
                roles.setdefault(source["name"], (node["op"], position, node))
    return roles


def calibration_graph(symbol_json, positions):
    """The graph to run once in training mode so that :func:`calibrate` knows what sizes things have.

    Batch norms take the batch's statistics at once, dropout is off, and each linear layer that no batch norm
    follows gets one. Where a channel has but a few numbers their statistics mean nothing, and layers are left
    as they are: ``positions`` says how many by node name. Returns the JSON and, for each new batch norm,
    ``(its name, the layer's weight, the layer's node, whether a rectifier follows)``.
    """
    graph = json.loads(symbol_json)
    nodes = graph["nodes"]
    users, uses = {}, {}
    for node in nodes:
        for entry in node["inputs"]:
            users.setdefault(entry[0], []).append(node["op"])
            uses[nodes[entry[0]]["name"]] = uses.get(nodes[entry[0]]["name"], 0) + 1
    made, place, added = [], {}, []

    def add(node):
        made.append(node)
        return len(made) - 1

    for number, node in enumerate(nodes):
        attrs = node.setdefault("attrs", {})
        node["inputs"] = [[place[entry[0]], *entry[1:]] for entry in node["inputs"]]
        if node["op"] in ("BatchNorm", "_contrib_SyncBatchNorm"):
            node["op"] = "BatchNorm"
            for key in ("key", "ndev"):
                attrs.pop(key, None)
            attrs.update(momentum="0", use_global_stats=str(positions[node["name"]] < _FEW))
        elif node["op"] == "Dropout":
            attrs["p"] = "0"
        place[number] = add(node)
        weight = made[node["inputs"][_weight_position(node)][0]]["name"] if node["op"] in _LINEAR else None
        alone = weight and uses[weight] == 1 and "BatchNorm" not in users.get(number, ())
        if alone and positions[node["name"]] >= _FEW:
            name = node["name"] + "_calibration"
            variables = [
                [add({"op": "null", "name": name + part, "inputs": []}), 0, 0]
                for part in ("_gamma", "_beta", "_moving_mean", "_moving_var")
            ]
            norm = {"op": "BatchNorm", "name": name, "attrs": {"momentum": "0", "eps": "1e-10"}}
            place[number] = add({**norm, "inputs": [[place[number], 0, 0], *variables]})
            rectified = bool({"Activation", "LeakyReLU", "relu"} & set(users.get(number, ())))
            added.append((name, weight, node, rectified))
    graph["nodes"] = made
    graph["heads"] = [[place[entry[0]], *entry[1:]] for entry in graph["heads"]]
    graph["arg_nodes"] = [i for i, node in enumerate(made) if node["op"] == "null"]
    graph.pop("node_row_ptr", None)
    return json.dumps(graph), added


def _weight_position(node):
    return {"_contrib_DeformableConvolution": 2, "_contrib_ModulatedDeformableConvolution": 3}.get(
        node["op"], 1
    )


def statistics(array):
    """Mean and variance of each channel, the latter large enough not to blow up rounding errors."""
    array = array.astype(np.float64)
    axes = (0, *range(2, array.ndim))
    mean, square = array.mean(axis=axes), (array**2).mean(axis=axes)
    variance = square - mean**2
    return mean, np.maximum.reduce(
        [variance, 0.25 * square, np.full_like(square, 0.25 * variance.mean() + 1e-6)]
    )


def calibrate(added, values, states):
    """Scale each linear layer so that it puts out numbers of mean 0 and deviation 1, or 0.2 for offsets.

    ``states`` holds the moving averages of the batch norms after one pass. Returns what each weight was
    multiplied with.
    """
    factors = {}
    for name, weight, node, rectified in added:
        mean, scale = states[name + "_moving_mean"], states[name + "_moving_var"] ** -0.5
        if _SMALL.search(weight):
            scale *= 0.2
        axis = 0
        if node["op"] == "Deconvolution":
            grouped = int(node["attrs"].get("num_group", 1)) > 1  # only as many groups as channels occur
            axis = 0 if grouped else 1
        shape = [1] * values[weight].ndim
        shape[axis] = -1
        factors[weight] = scale.reshape(shape).astype(np.float32)
        values[weight] = values[weight] * factors[weight]
        bias = weight[: -len("weight")] + "bias"
        if bias in values and node["attrs"].get("no_bias", "False") not in ("True", "1"):
            values[bias] = ((values[bias] - mean) * scale + rectified).astype(np.float32)
    return factors


def masked_graph(symbol_json):
    """The graph with zeros where ROIAlign's batch index is negative, as MXNet documents it.

    MXNet's kernel for the CPU reads what lies before the features in memory instead, and a pyramid, where
    each level leaves out the boxes of the others in this way, gives something else in each run.
    """
    graph = json.loads(symbol_json)
    nodes, place = [], {}

    def add(op, name, inputs, **attrs):
        nodes.append({"op": op, "name": name, "attrs": attrs, "inputs": [[i, 0, 0] for i in inputs]})
        return len(nodes) - 1

    for number, node in enumerate(graph["nodes"]):
        node["inputs"] = [[place[entry[0]], *entry[1:]] for entry in node["inputs"]]
        name = node["name"] + "_mask_"
        if node["op"] == "_contrib_ROIAlign":
            rois = node["inputs"][1]
            index = add("slice_axis", name + "index", [rois[0]], axis="1", begin="0", end="1")
            corners = add("slice_axis", name + "corners", [rois[0]], axis="1", begin="1", end="5")
            nodes[index]["inputs"] = nodes[corners]["inputs"] = [rois]
            image = add("_maximum_scalar", name + "image", [index], scalar="0")
            safe = add("Concat", name + "rois", [image, corners], num_args="2", dim="1")
            node["inputs"][1] = [safe, 0, 0]
        nodes.append(node)
        place[number] = len(nodes) - 1
        if node["op"] == "_contrib_ROIAlign":
            kept = add("_greater_equal_scalar", name + "kept", [index], scalar="0")
            flat = add("Reshape", name + "flat", [kept], shape="(-1,)")
            zeros = add("zeros_like", name + "zeros", [place[number]])
            place[number] = add("where", name + "where", [flat, place[number], zeros])
    graph["nodes"] = nodes
    graph["heads"] = [[place[entry[0]], *entry[1:]] for entry in graph["heads"]]
    graph["arg_nodes"] = [i for i, node in enumerate(nodes) if node["op"] == "null"]
    graph.pop("node_row_ptr", None)
    return json.dumps(graph)


def raw_heads(symbol_json):
    """A detector's raw heads, as :func:`head_of` gives them; none where the graph selects no boxes.

    They are what goes into the operators that decode and select boxes, and the last linear layers.
    """
    graph = json.loads(symbol_json)
    nodes = graph["nodes"]
    if not any(node["op"] in _SELECTING for node in nodes):
        return []
    found, feeds_linear = [], set()
    for number in range(len(nodes) - 1, -1, -1):
        node = nodes[number]
        if node["op"] in _LINEAR and number not in feeds_linear:
            found.append((number, 0))
        if node["op"] in _LINEAR or number in feeds_linear:
            feeds_linear.update(entry[0] for entry in node["inputs"])
        if node["op"] in _DECODING:
            found += [tuple(entry[:2]) for entry in node["inputs"] if nodes[entry[0]]["op"] != "null"]
    return [head_of(nodes, entry) for entry in sorted(set(found))]


def chosen_from(symbol_json):
    """What the operators that select boxes select them from, as :func:`head_of` gives it."""
    nodes = json.loads(symbol_json)["nodes"]
    entries = {tuple(entry[:2]) for _, _, entry in _choices(nodes)}
    return [head_of(nodes, entry) for entry in sorted(entries)]


def given_choices(symbol_json, heads):
    """The graph in which the operators that select boxes take variables ``choice/0``, ... for ``heads``.

    All else takes what the graph itself computes. What it computes in place of the variables follows its
    outputs.
    """
    graph = json.loads(symbol_json)
    nodes = graph["nodes"]
    numbers = {tuple(head): number for number, head in enumerate(heads)}
    wired = [
        (node, position, entry, numbers[head_of(nodes, entry)]) for node, position, entry in _choices(nodes)
    ]
    replaced = {number: entry for _, _, entry, number in wired}
    graph["heads"] += [[*replaced[number][:2], 0] for number in range(len(heads))]
    for entries in [graph["heads"], *(node["inputs"] for node in nodes)]:
        for entry in entries:
            entry[0] += len(heads)
    for node, position, _, number in wired:
        node["inputs"][position] = [number, 0, 0]
    variables = [{"op": "null", "name": "choice/%d" % i, "inputs": []} for i in range(len(heads))]
    graph["nodes"] = variables + nodes
    graph["arg_nodes"] = [i for i, node in enumerate(graph["nodes"]) if node["op"] == "null"]
    graph.pop("node_row_ptr", None)
    return json.dumps(graph)


def _choices(nodes):
    """Each computed input of an operator that selects boxes: the node, the input's position, the entry."""
    return [
        (node, position, entry)
        for node in nodes
        if node["op"] in _SELECTING
        for position, entry in enumerate(node["inputs"])
        if nodes[entry[0]]["op"] != "null"
    ]


def head_of(nodes, entry):
    """An entry ``[node number, output number]`` as node name, output number, and which node of that name.

    Gluon repeats names where it shares a layer.
    """
    name = nodes[entry[0]]["name"]
    return name, entry[1], sum(node["name"] == name for node in nodes[: entry[0]])


def internal_number(names, head):
    """The place of a head in the names of all internal outputs."""
    node, index, which = head
    places = [i for i, name in enumerate(names) if name in (node, node + "_output")]
    if not places:  # several outputs: node_output0, node_mean, ...
        places = [i for i, name in enumerate(names) if name.rsplit("_", 1)[0] == node]
        count = len({names[i] for i in places})
        return places[which * count + index]
    return places[which]
