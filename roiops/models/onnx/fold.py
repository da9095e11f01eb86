"""BatchNorm merged into the convolution or matrix product before it."""

import numpy as np

__all__ = ["fold_batch_norms"]

#: Where the output channels stand in the weight.
_CHANNELS = {"Conv": 0, "Gemm": 0, "ConvTranspose": 1}


def fold_batch_norms(conversion) -> int:
    """Fold what can be folded; returns how many nodes that were."""
    graph = conversion.graph
    users: dict[int, int] = {}
    for value in (*conversion.outputs, *(x for node in graph.nodes for x in node.inputs if x is not None)):
        users[id(value)] = users.get(id(value), 0) + 1
    folded = [node for node in graph.nodes if _fold(graph, node, users)]
    gone = {id(node) for node in folded}
    graph.nodes = [node for node in graph.nodes if id(node) not in gone]
    return len(folded)


def _fold(graph, norm, users) -> bool:
    if norm.op != "BatchNormalization" or norm.function:
        return False
    source, *statistics = norm.inputs
    layer = source.node
    if layer is None or layer.op not in _CHANNELS or users[id(source)] != 1:
        return False
    if layer.op == "ConvTranspose" and layer.attributes.get("group", 1) != 1:
        return False
    weight, bias = layer.inputs[1], layer.inputs[2] if len(layer.inputs) > 2 else None
    arrays = [weight, *statistics, *([] if bias is None else [bias])]
    if any(x.constant is None for x in arrays) or users[id(weight)] != 1:
        return False
    gamma, beta, mean, variance = (x.constant.astype(np.float64) for x in statistics)
    scale = gamma / np.sqrt(variance + norm.attributes["epsilon"])
    shape = [1] * weight.constant.ndim
    shape[_CHANNELS[layer.op]] = -1
    kind = weight.dtype
    merged = (weight.constant * scale.reshape(shape)).astype(kind)
    before = 0 if bias is None else bias.constant.astype(np.float64)
    shift = ((before - mean) * scale + beta).astype(kind)
    layer.inputs[1:] = [
        graph.parameter(weight, merged),
        graph.parameter(statistics[1] if bias is None else bias, shift),
    ]
    users.update({id(each): 1 for each in layer.inputs[1:]})
    # What read the norm reads the layer, under the norm's name.
    output = norm.outputs[0]
    layer.outputs = [output]
    output.node = layer
    return True
