"""Varied graphs as MXNet saves them, with what MXNet infers, computes and differentiates.

Each graph is tests/golden/graphs/<name>.json (MXNet's own text) and <name>.npz (everything else).
"""

import json
import zlib
from pathlib import Path

import mxnet as mx
import numpy as np

from golden_format import GOLDEN, write_npz

sym = mx.sym
GRAPHS = {}


def graph(
    dtype="float32", is_train=True, grad_req="write", positive=(), integer=None, backward=True, **shapes
):
    """Register a function that builds a graph; the shapes are those of the inputs it is bound with."""

    def register(build):
        GRAPHS[build.__name__] = {
            "build": build,
            "shapes": shapes,
            "dtype": dtype,
            "is_train": is_train,
            "grad_req": grad_req,
            "positive": positive,
            "integer": integer or {},
            "backward": backward,
        }
        return build

    return register


def variables(names):
    return [sym.Variable(name) for name in names.split()]


@graph(a=(3, 4), b=(3, 4), c=(3, 4), positive=("a", "b"))
def elementwise():
    a, b, c = variables("a b c")
    total = (a + b) * c - a / b
    return total + a**b + sym.maximum(a, c) * sym.minimum(b, c) - sym.hypot(a, c) + (-c)


@graph(a=(2, 5), b=(2, 5), positive=("a", "b"))
def scalars():
    a, b = variables("a b")
    left = (2 * a + 1) * (1 - b) + 3 / a - b / 4
    right = a**2 + 0.5**b + sym.maximum(a, 0.75) - sym.minimum(1.25, b)
    return left * right + a % 0.7 - (7 % b)


@graph(a=(3, 1, 4), b=(1, 2, 4), c=(3, 2, 1), positive=("a", "b", "c"))
def broadcasting():
    a, b, c = variables("a b c")
    total = sym.broadcast_add(a, b, name="total")
    ratio = sym.broadcast_div(sym.broadcast_mul(total, c), sym.broadcast_sub(c, 5 * b))
    extremes = sym.broadcast_maximum(a, c) - sym.broadcast_minimum(b, c)
    powers = sym.broadcast_power(a, b) + sym.broadcast_hypot(a, b)
    wide = sym.broadcast_to(c, shape=(3, 2, 4)) + sym.broadcast_axis(c, axis=2, size=4)
    return ratio + extremes + powers + wide


@graph(x=(4, 3), positive=("x",))
def unary():
    x = sym.Variable("x")
    bounded = sym.relu(x - 0.5) + sym.sigmoid(x) + sym.tanh(x, name="squash")
    return sym.exp(bounded) * sym.log(x) + sym.sqrt(x) - sym.square(x) + sym.abs(sym.negative(x) + 0.3)


@graph(x=(2, 3, 4))
def reductions():
    x = sym.Variable("x")
    parts = [
        sym.sum(x, axis=1),
        sym.mean(x, axis=(1,)),
        sym.max(x, axis=-2),
        sym.min(x, axis=(0, 2), exclude=True),
    ]
    kept = sym.broadcast_mul(sym.sum(x, axis=(0, 2), keepdims=True), sym.mean(x, axis=2, keepdims=True))
    return sym.Group([sym.add_n(*parts, name="parts"), kept])


# Not in the graph above: there x would feed nine nodes, and MXNet, as it is set by default, then adds up its
# gradient wrongly (it is not the sum of the gradients that MXNet itself gives head by head).
@graph(x=(2, 3, 4))
def reductions_to_one_number():
    x = sym.Variable("x")
    whole = sym.broadcast_add(sym.Reshape(sym.sum(x), shape=(1, 1)), sym.Reshape(sym.max(x), shape=(1, 1)))
    return sym.Group([whole, sym.sum_axis(x, axis=0)])


@graph(a=(3, 4), b=(4, 2), c=(5, 3, 4), d=(5, 4, 2), e=(5, 2, 4))
def products():
    a, b, c, d, e = variables("a b c d e")
    flat = sym.dot(a, b) + sym.dot(b, a, transpose_a=True, transpose_b=True).transpose()
    return sym.Group([flat, sym.batch_dot(c, d), sym.batch_dot(c, e, transpose_b=True), sym.dot(c, b)])


@graph(x=(2, 3, 4, 5))
def reshape_codes():
    x = sym.Variable("x")
    return sym.Group(
        [
            sym.Reshape(x, shape=(0, -1), name="rest"),
            sym.Reshape(x, shape=(-2,)),
            sym.Reshape(x, shape=(0, -3, 0)),
            sym.Reshape(x, shape=(-4, 1, 2, -2)),
            sym.Reshape(x, shape=(0, 0, -4, -1, 2, 0)),
            sym.Reshape(x, shape=(-3, -3)),
            sym.reshape(x, shape=(-1, 0), reverse=True),
            sym.reshape(x, shape=(6, 20)),
            sym.reshape_like(x, sym.Reshape(x, shape=(4, 30))),
        ]
    )


@graph(x=(2, 6, 3))
def layout():
    x = sym.Variable("x")
    pieces = sym.SliceChannel(x, num_outputs=3, axis=1, name="pieces")
    joined = sym.Concat(pieces[2], pieces[0], sym.slice_axis(x, axis=1, begin=1, end=4), dim=1, name="joined")
    turned = sym.transpose(joined, axes=(2, 0, 1)) * 2 + sym.transpose(sym.transpose(joined)).transpose(
        (2, 0, 1)
    )
    columns = sym.split(x, num_outputs=3, axis=2, squeeze_axis=True)
    stacked = sym.Concat(*[sym.expand_dims(c, axis=1) for c in columns], dim=1)
    ends = sym.slice_axis(x, axis=-1, begin=-2, end=None)
    return sym.Group([sym.Flatten(turned), sym.expand_dims(stacked, axis=0), sym.flatten(ends)])


@graph(x=(3, 3), y=(3, 3))
def blocked():
    x, y = variables("x y")
    held = sym.BlockGrad(x * y, name="held")
    ones = sym.ones_like(x) + sym.zeros_like(y)
    return sym.identity(held + x) * sym.stop_gradient(y) + ones * x


@graph(x=(4, 3))
def casts():
    x = sym.Variable("x")
    narrow = sym.Cast(sym.Cast(x, dtype="float16"), dtype="float32", name="widened")
    wide = sym.cast(sym.square(sym.Cast(x, dtype="float64")), dtype="float32")
    return sym.Group([narrow * wide, sym.Cast(x * 4, dtype="int32")])


@graph(a=(2, 4), b=(2, 4), c=(1, 4))
def comparisons():
    a, b, c = variables("a b c")
    picked = (a > b) * a + (a <= b) * b + (a > 0.2) * b - (a != b) + (b >= 0) * 3 + (a == a) + (b < 0.1)
    return picked + sym.broadcast_greater(a, c) * a - sym.broadcast_lesser_equal(a, c) * b


@graph(data=(2, 3))
def shared_variables():
    data, weight, bias = variables("data shared_weight shared_bias")
    hidden = data
    for step in range(3):
        hidden = sym.FullyConnected(hidden, weight, bias, num_hidden=3, name=f"step{step}")
        hidden = sym.Activation(hidden, act_type="tanh") + data
    return hidden * hidden


@graph(data=(2, 6, 4, 4), backward=True)
def multiple_outputs():
    data = sym.Variable("data")
    parts = sym.SliceChannel(data, num_outputs=3, name="parts")
    product = sym.elemwise_mul(parts[0], parts[2], name="product")
    pooled = sym.Pooling(product, kernel=(2, 2), stride=(2, 2), pool_type="avg", name="pooled")
    return sym.Group([pooled, parts[2], product, parts[0] + parts[0]])


@graph(data=(2, 4))
def attributes():
    with mx.AttrScope(ctx_group="first", lr_mult="0.5"):
        data = sym.Variable("data", shape=(2, 4), dtype="float32")
        weight = sym.Variable("weight", lr_mult=2.0, wd_mult=0.0, init=mx.init.Constant(0.25))
        hidden = sym.FullyConnected(data, weight, num_hidden=5, name="hidden", attr={"__note__": "a (b) 'c'"})
    with mx.AttrScope(ctx_group="second"):
        other = sym.Variable("other", shape=(0, 5), attr={"mood": "so so"})
        return sym.elemwise_add(hidden, other, name="sum")


@graph(data=(2, 3, 8, 8), softmax_label=(2,), integer={"softmax_label": 5})
def small_convnet():
    net = sym.Variable("data")
    net = sym.Convolution(net, kernel=(3, 3), pad=(1, 1), num_filter=4, no_bias=True, name="conv")
    net = sym.BatchNorm(net, fix_gamma=False, eps=1e-3, momentum=0.9, name="bn")
    net = sym.Activation(net, act_type="relu", name="relu")
    net = sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    net = sym.FullyConnected(net, num_hidden=5, name="fc")
    return sym.SoftmaxOutput(net, name="softmax")


@graph(data=(2, 3, 7, 6), is_train=False, backward=False)
def small_convnet_inference():
    net = sym.Variable("data")
    net = sym.Convolution(net, kernel=(3, 2), stride=(2, 1), num_filter=4, name="conv")
    net = sym.BatchNorm(net, name="bn")
    net = sym.Activation(net, act_type="relu")
    net = sym.Pooling(net, global_pool=True, kernel=(1, 1), pool_type="avg", name="pool")
    net = sym.FullyConnected(sym.Flatten(net), num_hidden=3, name="fc")
    return sym.SoftmaxOutput(net, name="softmax")


@graph(data=(1, 4, 9, 9))
def residual_block():
    data = sym.Variable("data")
    left = sym.Convolution(
        data, kernel=(3, 3), dilate=(2, 2), pad=(2, 2), num_group=2, num_filter=6, name="left"
    )
    left = sym.BatchNorm(left, fix_gamma=True, use_global_stats=True, name="left_bn")
    left = sym.Activation(left, act_type="relu", name="left_relu")
    right = sym.Convolution(data, kernel=(1, 1), num_filter=6, no_bias=True, name="right")
    both = sym.Activation(left + right, act_type="softrelu")
    return sym.Pooling(
        both, kernel=(3, 3), stride=(2, 2), pooling_convention="full", pool_type="max", name="down"
    )


@graph(data=(2, 3, 8, 9), softmax_label=(4,), integer={"softmax_label": 3})
def roi_pooling_head():
    rois = sym.Variable("rois", shape=(4, 5), dtype="float32")
    net = sym.Convolution(sym.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=4, name="conv")
    net = sym.ROIPooling(net, rois, pooled_size=(3, 2), spatial_scale=0.5, name="roi_pool")
    net = sym.FullyConnected(sym.Flatten(net, name="flat"), num_hidden=3, name="cls_score")
    return sym.SoftmaxOutput(net, normalization="batch", name="softmax")


@graph(data=(2, 4, 8, 9), rois=(4, 5))
def roi_align_head():
    data, rois = variables("data rois")
    plain = sym.contrib.ROIAlign(data, rois, pooled_size=(2, 2), spatial_scale=0.5, sample_ratio=2)
    sensitive = sym.contrib.ROIAlign(
        data, rois, pooled_size=(2, 2), spatial_scale=0.5, position_sensitive=True, name="sensitive"
    )
    return sym.broadcast_mul(plain, sensitive)


@graph(data=(2, 8, 8, 9), rois=(4, 5), trans=(4, 2, 2, 2))
def position_sensitive_heads():
    data, rois, trans = variables("data rois trans")
    pooled = sym.contrib.PSROIPooling(data, rois, spatial_scale=0.5, output_dim=2, pooled_size=2, name="ps")
    settings = {"output_dim": 2, "group_size": 2, "pooled_size": 2, "sample_per_part": 2}
    moved = sym.contrib.DeformablePSROIPooling(
        data, rois, trans, spatial_scale=0.5, trans_std=0.1, **settings
    )
    still = sym.contrib.DeformablePSROIPooling(data, rois, spatial_scale=0.5, no_trans=True, **settings)
    return pooled + moved * still


@graph(data=(2, 3, 6, 6), softmaxoutput0_label=(2,), integer={"softmaxoutput0_label": 4})
def default_names():
    net = sym.Variable("data")
    for filters in (3, 4):
        net = sym.Convolution(net, kernel=(3, 3), num_filter=filters)
        net = sym.Activation(sym.BatchNorm(net), act_type="relu")
    net = sym.FullyConnected(sym.Pooling(net, kernel=(2, 2), pool_type="max"), num_hidden=4)
    return sym.SoftmaxOutput(net)


@graph(a=(3, 2), b=(3, 2), weight=(4, 2), grad_req={"a": "add", "b": "write", "weight": "add"})
def gradients_added():
    a, b, weight = variables("a b weight")
    product = a * b + sym.square(a)
    return sym.FullyConnected(product, weight, num_hidden=4, no_bias=True, name="fc")


@graph(a=(2, 3), b=(2, 3), c=(2, 3), grad_req={"a": "null", "b": "write", "c": "null"})
def gradients_partly():
    a, b, c = variables("a b c")
    return (a + b) * c * b


@graph(data=(2, 8, 3, 4), label=(2, 24), target=(2, 16, 3, 4), weight=(2, 16, 3, 4), integer={"label": 3})
def region_proposal_losses():
    data, label, target, weight = variables("data label target weight")
    score = sym.Convolution(data, kernel=(1, 1), num_filter=4, name="rpn_cls_score")
    score = sym.Reshape(score, shape=(0, 2, -1, 0), name="rpn_cls_score_reshape")
    score = sym.Reshape(score, shape=(0, 2, -1), name="flat_score")
    # Labels are 0, 1 and 2; 2 plays the ignored one.
    settings = {"multi_output": True, "normalization": "valid", "use_ignore": True, "ignore_label": 2}
    cls_prob = sym.SoftmaxOutput(score, label, name="rpn_cls_prob", **settings)
    offset = sym.Convolution(data, kernel=(1, 1), num_filter=16, name="rpn_bbox_pred")
    loss = weight * sym.smooth_l1(offset - target, scalar=3.0, name="rpn_bbox_loss_")
    loss = sym.MakeLoss(loss, grad_scale=1 / 64, name="rpn_bbox_loss")
    return sym.Group([cls_prob, loss, sym.BlockGrad(label, name="label_out")])


@graph(image=(1, 3, 6, 6))
def composed_by_calling():
    inner = sym.Convolution(sym.Variable("data"), kernel=(3, 3), num_filter=2, name="conv")
    inner = sym.Activation(inner, act_type="sigmoid", name="act")
    outer = sym.Variable("image") * 2
    margins = sym.slice_axis(sym.sum(outer, axis=(1, 2), keepdims=True), axis=3, begin=0, end=4)
    return sym.broadcast_add(inner(data=outer, name="net"), margins)


@graph(x=(1,), y=(1,))
def long_chain():
    x, y = variables("x y")
    for step in range(60):
        x = x + y if step % 3 else x * 0.5
    return x


@graph(a=(3, 4), b=(4,), dtype="float64")
def double_precision():
    a, b = variables("a b")
    rows = sym.mean(a, axis=1, keepdims=True).broadcast_to((3, 4))
    return sym.tanh(sym.broadcast_mul(a, sym.Reshape(b, shape=(1, -1)))) / 3 + rows


@graph(a=(3, 4), dtype="float16")
def half_precision():
    a = sym.Variable("a")
    return sym.sigmoid(a) * a + 0.1


def draw(name, shape, spec, rng, dtype):
    if name in spec["integer"]:
        value = rng.randint(spec["integer"][name], size=shape)
    elif name == "rois":
        value = np.zeros(shape)
        value[:, 0] = rng.randint(2, size=shape[0])
        value[:, 1:3] = rng.uniform(-2, 8, (shape[0], 2))
        value[:, 3:] = value[:, 1:3] + rng.uniform(1, 9, (shape[0], 2))
    elif name in spec["positive"] or name.endswith(("_var", "gamma")):
        value = rng.uniform(0.3, 1.7, shape)
    else:
        value = rng.normal(size=shape)
    return np.asarray(value, dtype)


def type_names(types):
    return [np.dtype(t).name for t in types]


def record(name, symbol, text, spec, folder="graphs", script=__file__):
    """Store a graph's text, and everything that MXNet infers and computes of it."""
    rng = np.random.RandomState(zlib.crc32(name.encode()) % 2**31)
    arg_names, aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
    given = {key: shape for key, shape in spec["shapes"].items() if key in arg_names}
    arg_shapes, out_shapes, aux_shapes = symbol.infer_shape(**given)
    arg_types, out_types, aux_types = symbol.infer_type(**dict.fromkeys(given, spec["dtype"]))
    arrays, nd = {}, {}
    for key, shape, dtype in zip(arg_names + aux_names, arg_shapes + aux_shapes, arg_types + aux_types):
        kind = "arg" if key in arg_names else "aux"
        value = arrays[f"{kind}/{key}"] = draw(key, shape, spec, rng, dtype)
        nd[key] = mx.nd.array(value, dtype=dtype)
    requests = spec["grad_req"]
    if isinstance(requests, str):
        requests = dict.fromkeys(arg_names, requests)
    # MXNet's loss heads leave the gradient of a label as it was.
    requests.update(dict.fromkeys(spec["integer"], "null"))
    wanted = [key for key in arg_names if requests[key] != "null"] if spec["backward"] else []
    grads = {}
    for key in wanted:
        before = arrays["grad_before/" + key] = rng.normal(size=nd[key].shape).astype(nd[key].dtype)
        grads[key] = mx.nd.array(before, dtype=before.dtype)
    executor = symbol.bind(
        mx.cpu(),
        {key: nd[key] for key in arg_names},
        args_grad=grads,
        grad_req={key: requests[key] if key in grads else "null" for key in arg_names},
        aux_states={key: nd[key] for key in aux_names},
    )
    outputs = executor.forward(is_train=spec["is_train"])
    for index, output in enumerate(outputs):
        arrays[f"out/{index}"] = output.asnumpy()
    if spec["backward"]:
        heads = [rng.normal(size=o.shape).astype(o.dtype) for o in outputs]
        executor.backward([mx.nd.array(h, dtype=h.dtype) for h in heads])
        mx.nd.waitall()
        arrays.update({f"head/{index}": head for index, head in enumerate(heads)})
        arrays.update({f"grad/{key}": value.asnumpy() for key, value in grads.items()})
        for key in grads:
            if np.array_equal(arrays["grad/" + key], arrays["grad_before/" + key]):
                raise ValueError(f"{name}: MXNet wrote no gradient of {key}")
    arrays.update({f"aux_after/{key}": nd[key].asnumpy() for key in aux_names})
    meta = {
        "peer": "mxnet",
        "version": mx.__version__,
        "script": Path(script).name,
        "arguments": arg_names,
        "outputs": symbol.list_outputs(),
        "auxiliary_states": aux_names,
        "internals": symbol.get_internals().list_outputs(),
        "attr_dict": symbol.attr_dict(),
        "given_shapes": given,
        "arg_shapes": arg_shapes,
        "out_shapes": out_shapes,
        "aux_shapes": aux_shapes,
        "arg_types": type_names(arg_types),
        "out_types": type_names(out_types),
        "aux_types": type_names(aux_types),
        "is_train": spec["is_train"],
        "backward": spec["backward"],
        "grad_req": requests,
    }
    if text != symbol.tojson():
        meta["upgraded"] = symbol.tojson()
    write_npz(GOLDEN / folder / (name + ".npz"), {"meta": np.array(json.dumps(meta)), **arrays})
    (GOLDEN / folder / (name + ".json")).write_text(text)


def main():
    for name, spec in GRAPHS.items():
        with mx.name.NameManager():
            symbol = spec["build"]()
        record(name, symbol, symbol.tojson(), spec)
    print(
        f"graphs: {len(GRAPHS)}, {sum(p.stat().st_size for p in (GOLDEN / 'graphs').iterdir()) / 1e3:.0f} kB"
    )


if __name__ == "__main__":
    main()
