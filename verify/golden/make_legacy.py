"""Graphs as older MXNets wrote them, written by hand, loaded and run by MXNet 1.9.1.

What differs between the eras:
  0.5 to 0.8   operator settings in `param`, every default spelled out, no blanks in tuples; other
               attributes in `attr`, without underscores (lr_mult, weight_lr_mult, ctx_group); auxiliary
               states are no nodes; `backward_source_id`; inputs and heads are [node, output]
  0.9 to 0.12  one dictionary `attr`; auxiliary states are inputs; inputs and heads are
               [node, output, version]; `node_row_ptr`; the version of MXNet in the graph's own `attrs`
  1.x          the dictionary is called `attrs`; from 1.6 on the graph's own may hold `is_np_shape`
The files are tests/golden/legacy/<name>.json and .npz, in the format of tests/golden/graphs.
"""

import json

import mxnet as mx

from golden_format import GOLDEN
from make_graphs import record

SETTINGS = {
    "Activation": {"act_type": "relu"},
    "BatchNorm": {"eps": "0.001", "fix_gamma": "True", "momentum": "0.9", "use_global_stats": "False"},
    "Concat": {"dim": "1", "num_args": "2"},
    "FullyConnected": {"no_bias": "False", "num_hidden": "3"},
    "LeakyReLU": {"act_type": "leaky", "lower_bound": "0.125", "slope": "0.1", "upper_bound": "0.334"},
    "SoftmaxOutput": {
        "grad_scale": "1",
        "ignore_label": "-1",
        "multi_output": "False",
        "normalization": "null",
        "out_grad": "False",
        "preserve_shape": "False",
        "use_ignore": "False",
    },
}
SETTINGS["Softmax"] = {key: SETTINGS["SoftmaxOutput"][key] for key in ("grad_scale", "multi_output")}
CONVOLUTION = {
    "cudnn_off": "False",
    "cudnn_tune": "off",
    "dilate": "(1,1)",
    "kernel": "(3,3)",
    "no_bias": "False",
    "num_filter": "4",
    "num_group": "1",
    "pad": "(1,1)",
    "stride": "(1,1)",
    "workspace": "1024",
}
POOLING = {"global_pool": "False", "kernel": "(2,2)", "pad": "(0,0)", "pool_type": "max", "stride": "(2,2)"}


class Writer:
    """Collects nodes and writes them as one era did."""

    def __init__(self, era, version=None):
        self.era, self.version, self.nodes, self.index = era, version, [], {}

    def add(self, op, name, inputs=(), settings=None, attributes=None):
        entry = 3 if self.era != "param" else 2
        node = {"op": op, "name": name, "inputs": [self.entry(key)[:entry] for key in inputs]}
        settings = SETTINGS.get(op, {}) if settings is None else settings
        if self.era == "param":
            node["param"] = settings
            node["backward_source_id"] = -1
            if attributes:
                node["attr"] = attributes
        elif settings or attributes:
            node[self.era] = dict(settings, **(attributes or {}))
        self.index[name] = len(self.nodes)
        self.nodes.append(node)

    def variables(self, *names, attributes=None):
        for name in names:
            self.add("null", name, settings={}, attributes=attributes)

    def entry(self, key):
        name, _, output = key.partition(":")
        return [self.index[name], int(output or 0), 0]

    def text(self, *heads):
        entry = 3 if self.era != "param" else 2
        graph = {
            "nodes": self.nodes,
            "arg_nodes": [i for i, node in enumerate(self.nodes) if node["op"] == "null"],
        }
        if self.era != "param":
            graph["node_row_ptr"] = list(range(len(self.nodes) + 1))
        graph["heads"] = [self.entry(key)[:entry] for key in heads]
        if self.version is not None:
            graph["attrs"] = {"mxnet_version": ["int", self.version]}
            if self.version >= 10600:
                graph["attrs"]["is_np_shape"] = ["int", 1]
        return json.dumps(graph, indent=2)


def convnet(writer):
    """Convolution, batch normalisation, pooling, a classifier."""
    writer.variables("data", "conv_weight", "conv_bias")
    writer.add("Convolution", "conv", ["data", "conv_weight", "conv_bias"], CONVOLUTION)
    writer.variables("bn_gamma", "bn_beta")
    states = []
    if writer.era != "param":
        states = ["bn_moving_mean", "bn_moving_var"]
        writer.variables(*states)
    writer.add("BatchNorm", "bn", ["conv", "bn_gamma", "bn_beta", *states])
    writer.add("Activation", "relu", ["bn"])
    writer.add("Pooling", "pool", ["relu"], POOLING)
    writer.add("Flatten", "flatten", ["pool"])
    writer.variables("fc_weight", "fc_bias")
    writer.add("FullyConnected", "fc", ["flatten", "fc_weight", "fc_bias"])
    writer.variables("softmax_label")
    writer.add("SoftmaxOutput", "softmax", ["fc", "softmax_label"])
    return writer.text("softmax")


def attributes_0_8():
    """Multipliers on the layer that belong to its weights, and device groups, all without underscores."""
    writer = Writer("param")
    writer.variables("data", attributes={"ctx_group": "stage1", "lr_mult": "0.2"})
    layer = {"ctx_group": "stage1", "wd_mult": "0.3", "weight_lr_mult": "1.2"}
    writer.variables("fc_weight", "fc_bias", attributes=layer)
    writer.add("FullyConnected", "fc", ["data", "fc_weight", "fc_bias"], attributes=layer)
    writer.add("Activation", "act", ["fc"], {"act_type": "tanh"}, {"ctx_group": "stage2"})
    return writer.text("act")


def old_names_0_8():
    """Operators under the names they had."""
    writer = Writer("param")
    writer.variables("a", "b")
    binary = ("_Plus", "_Minus", "_Mul", "_Div", "_Power", "_Maximum", "_Minimum")
    for op in binary:
        writer.add(op, op.lower(), ["a", "b"])
    scalar = (
        "_PlusScalar", "_MinusScalar", "_RMinusScalar", "_MulScalar", "_DivScalar", "_RDivScalar",
        "_PowerScalar", "_RPowerScalar", "_MaximumScalar", "_MinimumScalar",
    )  # fmt: skip
    for op in scalar:
        writer.add(op, op.lower(), ["a"], {"scalar": "1.5"})
    parts = [op.lower() for op in binary + scalar]
    writer.add("ElementWiseSum", "total", parts, {"num_args": str(len(parts))})
    return writer.text("total")


def several_outputs_0_8():
    writer = Writer("param")
    writer.variables("data")
    settings = {"axis": "1", "num_outputs": "3", "squeeze_axis": "False"}
    writer.add("SliceChannel", "slice", ["data"], settings)
    writer.add("Concat", "concat", ["slice:2", "slice:0"])
    writer.add("LeakyReLU", "leaky", ["concat"])
    writer.add("SwapAxis", "swap", ["leaky"], {"dim1": "1", "dim2": "2"})
    writer.add("BlockGrad", "held", ["slice:1"])
    writer.add("sum_axis", "summed", ["swap"], {"axis": "2", "keepdims": "False"})
    writer.add("broadcast_plus", "wide", ["swap", "swap"])
    return writer.text("summed", "slice:1", "wide", "held")


def detector_0_8():
    """The operators of an R-CNN graph of the time, tuples written by Python 2 among them."""
    writer = Writer("param")
    writer.variables("data", "rois", "conv_weight", "conv_bias")
    settings = dict(CONVOLUTION, kernel="(3L, 3L)", pad="(1L, 1L)", num_filter="4")
    writer.add("Convolution", "conv", ["data", "conv_weight", "conv_bias"], settings)
    writer.add("Pooling", "pool", ["conv"], dict(POOLING, pooling_convention="full"))
    writer.add("ROIPooling", "roi_pool", ["pool", "rois"], {"pooled_size": "(3,2)", "spatial_scale": "0.5"})
    reshape = {"keep_highest": "False", "reverse": "False", "shape": "(0,2,-1,0)", "target_shape": "(0,0)"}
    writer.add("Reshape", "pairs", ["roi_pool"], reshape)
    writer.add("SoftmaxActivation", "prob", ["pairs"], {"mode": "channel"})
    old = {"keep_highest": "False", "reverse": "False", "shape": "()", "target_shape": "(0,12)"}
    writer.add("Reshape", "old_reshape", ["prob"], old)
    writer.add("Dropout", "drop", ["old_reshape"], {"p": "0"})
    writer.add("smooth_l1", "loss_", ["drop"], {"scalar": "3"})
    writer.add("MakeLoss", "loss", ["loss_"], {"grad_scale": "0.25"})
    return writer.text("loss", "prob")


def upsampling_0_8():
    """The layers of a segmentation network of the time."""
    writer = Writer("param")
    writer.variables("data", "deconv_weight")
    settings = {
        "adj": "(0,0)", "kernel": "(4,4)", "no_bias": "True", "num_filter": "2", "num_group": "2",
        "pad": "(1,1)", "stride": "(2,2)", "target_shape": "(0,0)", "workspace": "512",
    }  # fmt: skip
    writer.add("Deconvolution", "deconv", ["data", "deconv_weight"], settings)
    crop = {"center_crop": "False", "h_w": "(0,0)", "num_args": "2", "offset": "(1,2)"}
    writer.add("Crop", "crop", ["deconv", "data"], crop)
    up = {"multi_input_mode": "concat", "num_args": "1", "num_filter": "0", "sample_type": "nearest"}
    writer.add("UpSampling", "up", ["crop"], dict(up, scale="2", workspace="512"))
    writer.add("L2Normalization", "norm", ["up"], {"eps": "1e-10", "mode": "channel"})
    return writer.text("norm")


def softmax_0_5():
    """`Softmax` was the loss that is now `SoftmaxOutput`."""
    writer = Writer("param")
    writer.variables("data", "fc_weight", "fc_bias")
    writer.add("FullyConnected", "fc", ["data", "fc_weight", "fc_bias"])
    writer.variables("softmax_label")
    writer.add("Softmax", "softmax", ["fc", "softmax_label"])
    return writer.text("softmax")


def argmax_0_9():
    """In 0.9.4 an argmax over everything said axis -1, which means the last axis today."""
    writer = Writer("attr", 904)
    writer.variables("data")
    writer.add("argmax", "argmax", ["data"], {"axis": "-1", "keepdims": "False"})
    writer.add("argmax", "rows", ["data"], {"axis": "1", "keepdims": "False"})
    return writer.text("argmax", "rows")


def attributes_0_12():
    """Attributes with underscores from a file whose dictionary is still called `attr`."""
    writer = Writer("attr", 1200)
    writer.variables("data", attributes={"__shape__": "(2, 4)", "__dtype__": "0"})
    writer.variables("w", attributes={"__lr_mult__": "0.5", "__init__": '["zero", {}]'})
    settings = {"no_bias": "True", "num_hidden": "3"}
    writer.add("FullyConnected", "fc", ["data", "w"], settings, {"__ctx_group__": "g"})
    writer.add("_mul_scalar", "twice", ["fc"], {"scalar": "2.0"})
    return writer.text("twice")


IMAGE = {"data": (2, 3, 6, 6), "softmax_label": (2,)}
LABEL = {"softmax_label": 3}
FILES = {
    "convnet_0_8": (lambda: convnet(Writer("param")), IMAGE, LABEL),
    "convnet_0_9": (lambda: convnet(Writer("attr", 905)), IMAGE, LABEL),
    "convnet_0_12": (lambda: convnet(Writer("attr", 1200)), IMAGE, LABEL),
    "convnet_1_0": (lambda: convnet(Writer("attrs", 10000)), IMAGE, LABEL),
    "convnet_1_6": (lambda: convnet(Writer("attrs", 10600)), IMAGE, LABEL),
    "convnet_2_0": (lambda: convnet(Writer("attrs", 20000)), IMAGE, LABEL),
    "attributes_0_8": (attributes_0_8, {"data": (2, 4)}, {}),
    "attributes_0_12": (attributes_0_12, {"data": (2, 4)}, {}),
    "old_names_0_8": (old_names_0_8, {"a": (2, 3), "b": (2, 3)}, {}),
    "several_outputs_0_8": (several_outputs_0_8, {"data": (2, 6, 3)}, {}),
    "detector_0_8": (detector_0_8, {"data": (2, 3, 9, 8), "rois": (4, 5)}, {}),
    "upsampling_0_8": (upsampling_0_8, {"data": (1, 2, 4, 5)}, {}),
    "softmax_0_5": (softmax_0_5, {"data": (2, 4), "softmax_label": (2,)}, LABEL),
    "argmax_0_9": (argmax_0_9, {"data": (3, 4)}, {}),
}


def main():
    for name, (write, shapes, integer) in FILES.items():
        text = write()
        spec = {
            "shapes": shapes,
            "integer": integer,
            "dtype": "float32",
            "is_train": True,
            "grad_req": "write",
            "positive": ("a", "b"),
            "backward": not name.startswith("argmax"),
        }
        record(name, mx.sym.load_json(text), text, spec, folder="legacy", script=__file__)
    size = sum(path.stat().st_size for path in (GOLDEN / "legacy").iterdir())
    print(f"legacy: {len(FILES)} graphs, {size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
