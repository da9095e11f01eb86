# ruff: noqa: E501 (a question is one string)
"""What MXNet's Symbol answers to small questions: names, lists, attributes, inference, JSON text.

tests/golden/graphs/behaviour.json holds a list of
    {"topic": ..., "setup": statements, "ask": {expression: answer}}
where both run with `mx` bound to the library and within a fresh NameManager. Tuples are lists in an
answer, types are their names, and an exception is {"raises": its class name}. Left out are questions
on which MXNet fails where it need not.
"""

import json
import warnings
from pathlib import Path

import mxnet as mx
import numpy as np

from golden_format import GOLDEN

QUESTIONS = []


def ask(topic, setup, *expressions):
    QUESTIONS.append((topic, setup, expressions))


def split(text):
    """The expressions of a block of text, one a line or divided by bars."""
    return [item.strip() for line in text.strip().splitlines() for item in line.split(" | ")]


def plain(value):
    """An answer in JSON's terms."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, (type, np.dtype)):
        return np.dtype(value).name
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, (str, int, float, bool)):
        return value
    raise TypeError(f"no plain form of {value!r}")


AB = "a = mx.sym.Variable('a'); b = mx.sym.Variable('b')"
OPERATOR = "json.loads({}.tojson())['nodes'][-1]"

ARITHMETIC = """
a + b | a - b | a * b | a / b | a % b | a ** b | a + 1 | 1 + a | a - 1 | 1 - a | a * 2 | 2 * a | a / 2 | 2 / a
a % 2 | 2 % a | a ** 2 | 2 ** a | -a | a > b | a >= b | a < b | a <= b | a == b | a != b | a > 1 | a >= 1 | a < 1
a <= 1 | a == 1 | a != 1 | 1 > a | 1 >= a | 1 < a | 1 <= a | 1 == a | 1 != a | a + 0.5 | a * 1e-5 | a * 1e20
a + 1e-7 | a + (1 / 3)
"""
ask(
    "operator overloading",
    "import json; " + AB,
    *[
        f"({text}){question}"
        for text in split(ARITHMETIC)
        for question in (".name", ".list_outputs()", ".list_arguments()", ".list_attr()")
    ],
    *[OPERATOR.format(f"({text})") for text in split(ARITHMETIC)],
)
ask("operator overloading", AB, "a + 'x'", "a + None", "bool(a)", "len(a + b)")

MODULE_FUNCTIONS = """
mx.sym.maximum(a, b) | mx.sym.maximum(a, 1) | mx.sym.maximum(1, a) | mx.sym.minimum(a, b) | mx.sym.minimum(a, 2)
mx.sym.hypot(a, b) | mx.sym.hypot(a, 3) | mx.sym.pow(a, 2) | mx.sym.pow(2, a) | mx.sym.power(a, b)
mx.sym.zeros((2, 3)) | mx.sym.ones((2, 3)) | mx.sym.arange(0, 4) | mx.sym.full((2, 2), 3)
"""
ask(
    "functions of the module",
    "import json; " + AB,
    *[
        f"{text}{question}"
        for text in split(MODULE_FUNCTIONS)
        for question in (".list_outputs()", ".list_attr()")
    ],
    *[OPERATOR.format(text) for text in split(MODULE_FUNCTIONS)],
    "mx.sym.maximum(1, 2)",
    "mx.sym.pow(2, 3)",
)

CALLS = """
mx.sym.Activation(a, act_type='relu')
mx.sym.BatchNorm(a)
mx.sym.BatchNorm(a, output_mean_var=True)
mx.sym.BlockGrad(a)
mx.sym.Cast(a, dtype='float16')
mx.sym.Concat(a, b)
mx.sym.Concat(a, b, dim=2, name='cat')
mx.sym.concat(a, b, dim=0)
mx.sym.Convolution(a, kernel=(3, 3), num_filter=4)
mx.sym.Convolution(a, kernel=[3, 3], num_filter=4, no_bias=True, stride=(2, 2))
mx.sym.Crop(a, b)
mx.sym.Crop(a, h_w=(2, 2), num_args=1)
mx.sym.Deconvolution(a, kernel=(2, 2), num_filter=4)
mx.sym.Dropout(a)
mx.sym.ElementWiseSum(a, b)
mx.sym.add_n(a, b, a)
mx.sym.Embedding(a, input_dim=5, output_dim=3)
mx.sym.Flatten(a)
mx.sym.flatten(a)
mx.sym.FullyConnected(a, num_hidden=3)
mx.sym.FullyConnected(a, num_hidden=3, no_bias=True, flatten=False)
mx.sym.FullyConnected(data=a, weight=b, num_hidden=3)
mx.sym.InstanceNorm(a)
mx.sym.L2Normalization(a)
mx.sym.LRN(a, nsize=3)
mx.sym.LeakyReLU(a)
mx.sym.LeakyReLU(a, act_type='prelu')
mx.sym.LinearRegressionOutput(a)
mx.sym.LogisticRegressionOutput(a, b)
mx.sym.MakeLoss(a)
mx.sym.make_loss(a)
mx.sym.Pad(a, mode='constant', pad_width=(0, 0, 0, 0, 1, 1, 1, 1))
mx.sym.Pooling(a, kernel=(2, 2), pool_type='max')
mx.sym.Reshape(a, shape=(0, -1))
mx.sym.reshape(a, (2, 3))
mx.sym.ROIPooling(a, b, pooled_size=(7, 7), spatial_scale=0.0625)
mx.sym.SliceChannel(a, num_outputs=3)
mx.sym.split(a, num_outputs=2, axis=0)
mx.sym.SoftmaxActivation(a)
mx.sym.SoftmaxOutput(a)
mx.sym.SoftmaxOutput(a, name='softmax')
mx.sym.Softmax(a, name='softmax')
mx.sym.softmax(a)
mx.sym.log_softmax(a)
mx.sym.SwapAxis(a, dim1=0, dim2=1)
mx.sym.swapaxes(a, dim1=0, dim2=1)
mx.sym.UpSampling(a, scale=2, sample_type='nearest')
mx.sym.UpSampling(a, scale=2, sample_type='bilinear', num_filter=3)
mx.sym.argmax(a)
mx.sym.argsort(a)
mx.sym.batch_dot(a, b)
mx.sym.broadcast_add(a, b)
mx.sym.broadcast_plus(a, b)
mx.sym.broadcast_to(a, shape=(2, 2))
mx.sym.clip(a, 0, 1)
mx.sym.clip(a, a_min=0, a_max=6)
mx.sym.dot(a, b)
mx.sym.elemwise_add(a, b)
mx.sym.exp(a)
mx.sym.expand_dims(a, axis=0)
mx.sym.gather_nd(a, b)
mx.sym.identity(a)
mx.sym.max(a, axis=1)
mx.sym.max_axis(a, axis=1)
mx.sym.mean(a)
mx.sym.norm(a)
mx.sym.one_hot(a, 5)
mx.sym.ones_like(a)
mx.sym.pick(a, b)
mx.sym.relu(a)
mx.sym.repeat(a, repeats=2)
mx.sym.reverse(a, axis=0)
mx.sym.flip(a, axis=0)
mx.sym.scatter_nd(a, b, shape=(2, 2))
mx.sym.sigmoid(a)
mx.sym.slice(a, begin=(0, None), end=(1, 2))
mx.sym.slice_axis(a, axis=0, begin=0, end=None)
mx.sym.slice_like(a, b)
mx.sym.smooth_l1(a, scalar=3.0)
mx.sym.softmax_cross_entropy(a, b)
mx.sym.sort(a)
mx.sym.squeeze(a)
mx.sym.stack(a, b)
mx.sym.stop_gradient(a)
mx.sym.sum(a, axis=(1, 2))
mx.sym.sum(a, axis=1, keepdims=True)
mx.sym.sum_axis(a, axis=0)
mx.sym.take(a, b)
mx.sym.tanh(a)
mx.sym.tile(a, reps=(2, 2))
mx.sym.topk(a)
mx.sym.topk(a, ret_typ='both', k=2)
mx.sym.transpose(a)
mx.sym.where(a, b, b)
mx.sym.zeros_like(a)
mx.sym.contrib.AdaptiveAvgPooling2D(a)
mx.sym.contrib.BilinearResize2D(a, height=4, width=4)
mx.sym.contrib.DeformableConvolution(a, b, kernel=(3, 3), num_filter=4)
mx.sym.contrib.DeformablePSROIPooling(a, b, spatial_scale=1, output_dim=1, group_size=2, pooled_size=2)
mx.sym.contrib.DeformablePSROIPooling(a, b, spatial_scale=1, output_dim=1, group_size=2, pooled_size=2, no_trans=True)
mx.sym.contrib.MultiBoxDetection(a, b)
mx.sym.contrib.MultiBoxPrior(a)
mx.sym.contrib.MultiBoxPrior(a, sizes=(0.2, 0.3), ratios=(1, 2), clip=False)
mx.sym.contrib.MultiBoxTarget(a, b)
mx.sym.contrib.MultiProposal(a, b)
mx.sym.contrib.PSROIPooling(a, b, spatial_scale=0.0625, output_dim=2, pooled_size=7)
mx.sym.contrib.Proposal(a, b)
mx.sym.contrib.Proposal(a, b, output_score=True, scales=(8, 16, 32), ratios=(0.5, 1, 2))
mx.sym.contrib.ROIAlign(a, b, pooled_size=(7, 7), spatial_scale=0.0625)
mx.sym.contrib.RROIAlign(a, b, pooled_size=(7, 7), spatial_scale=0.5)
mx.sym.contrib.bipartite_matching(a, threshold=0.5)
mx.sym.contrib.box_decode(a, b)
mx.sym.contrib.box_encode(a, b, a, b, a, b)
mx.sym.contrib.box_iou(a, b)
mx.sym.contrib.box_nms(a)
mx.sym.contrib.box_non_maximum_suppression(a)
"""
ask(
    "automatic names and lists",
    AB,
    *[
        f"{text}.{question}"
        for text in split(CALLS)
        for question in (
            "list_arguments()",
            "list_auxiliary_states()",
            "list_outputs()",
            "get_internals().list_outputs()",
            "list_attr()",
        )
    ],
)

METHODS = """
a.reshape((2, 3)) | a.reshape(shape=(2, 3)) | a.transpose() | a.transpose((1, 0)) | a.sum() | a.sum(axis=1)
a.mean(axis=0) | a.max(axis=(0, 1)) | a.min() | a.flatten() | a.expand_dims(axis=1) | a.astype('float16') | a.exp()
a.slice_axis(axis=0, begin=0, end=1) | a.log() | a.sqrt() | a.square() | a.abs() | a.relu() | a.sigmoid() | a.tanh()
a.softmax() | a.log_softmax() | a.clip(0, 1) | a.broadcast_to((2, 2)) | a.swapaxes(0, 1) | a.split(num_outputs=2, axis=1)
a.squeeze() | a.tile((2,)) | a.repeat(2) | a.take(b) | a.one_hot(3) | a.topk() | a.argmax(axis=1) | a.sort() | a.argsort()
a.norm() | a.flip(axis=0) | a.zeros_like() | a.ones_like() | a.broadcast_like(b) | a.slice_like(b) | a.pick(b)
a.pad(mode='edge', pad_width=(0, 0, 0, 0, 1, 1, 1, 1)) | a.reshape_like(b) | a.broadcast_axes(axis=0, size=2)
"""
ask(
    "methods of a symbol",
    AB,
    *[f"{text}.{question}" for text in split(METHODS) for question in ("list_outputs()", "list_attr()")],
)

ask(
    "counting of names",
    AB,
    "[(a + b).name for _ in range(3)]",
    "[mx.sym.Convolution(a, kernel=(1, 1), num_filter=1).name for _ in range(2)]",
    "mx.sym.Pooling(a, kernel=(1, 1)).name",
    "(a + b + a).get_internals().list_outputs()",
    "((a + 1) * 2 - (3 - b)).get_internals().list_outputs()",
)
NET = (
    AB
    + "; net = mx.sym.FullyConnected(a, num_hidden=3, name='fc'); net = mx.sym.Activation(net, act_type='relu', name='act')"
)
ask(
    "prefixes",
    AB + "\nwith mx.name.Prefix('net_'):\n"
    "    unnamed = mx.sym.FullyConnected(a, num_hidden=3)\n"
    "    named = mx.sym.FullyConnected(a, num_hidden=3, name='fc')\n"
    "    total = a + b\n"
    "    inner = mx.sym.Variable('inner')\n"
    "    with mx.name.Prefix('deep_'):\n"
    "        deep = mx.sym.exp(a)\n"
    "    with mx.name.NameManager():\n"
    "        fresh = mx.sym.exp(a)\n",
    "unnamed.list_arguments()",
    "named.list_arguments()",
    "named.name",
    "total.name",
    "inner.name",
    "deep.name",
    "fresh.name",
)
ask(
    "a name manager of one's own",
    "class Loud(mx.name.NameManager):\n"
    "    def get(self, name, hint):\n"
    "        return name or hint.upper()\n" + AB + "\nwith Loud():\n    net = mx.sym.exp(a + b)\n",
    "net.get_internals().list_outputs()",
)
ask(
    "variables",
    "import numpy as np",
    "mx.sym.Variable('x').name",
    "mx.sym.var('x').list_outputs()",
    "mx.sym.Variable(3)",
    "mx.sym.Variable('x', shape=(2, 3), dtype='float16', lr_mult=0.1, wd_mult=2, init=mx.init.Xavier()).attr_dict()",
    "mx.sym.Variable('x', init='zeros').attr_dict()",
    "mx.sym.Variable('x', init=mx.init.Normal(0.5)).attr_dict()",
    "mx.sym.Variable('x', init=mx.init.Constant(3)).attr_dict()",
    "mx.sym.Variable('x', init=mx.init.Bilinear()).attr_dict()",
    "mx.sym.Variable('x', attr={'a': 'b'}).attr_dict()",
    "mx.sym.Variable('x', attr={'a': 1})",
    "mx.sym.Variable('x', __thing__='1').attr_dict()",
    "mx.sym.Variable('x', thing='1').attr_dict()",
    "mx.sym.Variable('x', stype='row_sparse').attr_dict()",
    "mx.sym.Variable('x', shape=(2, 3)).infer_shape()",
    "mx.sym.Variable('x', dtype='float64').infer_type()",
    "mx.sym.Variable('x', dtype='float64').list_attr()",
    "mx.sym.Variable('x', dtype=np.float16).list_attr()",
    "repr(mx.sym.Variable('x'))",
    "str(mx.sym.Variable('x'))",
)
ATTRIBUTES = (
    AB + "\nwith mx.AttrScope(ctx_group='g1', __mood__='good'):\n"
    "    with mx.AttrScope(ctx_group='g2', lr_mult='3'):\n"
    "        inner = mx.sym.Variable('inner')\n"
    "    fc = mx.sym.FullyConnected(inner, num_hidden=2, name='fc', lr_mult=0.5, attr={'__own__': 'yes'})\n"
    "act = mx.sym.Activation(fc, act_type='relu', name='act')"
)
ask(
    "attributes",
    ATTRIBUTES,
    "inner.list_attr()",
    "fc.list_attr()",
    "fc.attr('__own__')",
    "fc.attr('missing')",
    "fc.attr('num_hidden')",
    "fc.attr('lr_mult')",
    "fc.attr('__lr_mult__')",
    "act.attr_dict()",
    "mx.sym.load_json(act.tojson()).attr_dict()",
    "mx.AttrScope(ctx_group=1)",
)
ask(
    "attributes set later",
    NET + "; net._set_attr(__mood__='fine', __lr_mult__='2')",
    "net.attr_dict()",
    "net.attr('__mood__')",
    "net._set_attr(mood='fine')",
    "net._set_attr(mood=1)",
)
ask(
    "attributes of an operator",
    "import numpy as np; " + AB,
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter=1, lr_mult=2.0, name='c').attr_dict()",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter=1, attr={'lr_mult': '2'}, name='c').attr_dict()",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter=1, attr={'__lr_mult__': '2'}, name='c').attr_dict()",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter=1, attr={'ctx_group': 'dev1'}, name='c').attr_dict()",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter=1, ctx_group='dev1', name='c').attr_dict()",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter=1, attr={'__ctx_group__': 'dev1'}, name='c').attr_dict()",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter=1, attr={'force_mirroring': 'True'}, name='c').attr_dict()",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter=1, attr={'stray': '1'}, name='c')",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter=1, stray=1, name='c')",
    "mx.sym.Convolution(a, kernel=(1, 1), name='c')",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter=0, name='c')",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter='3', name='c').list_attr()",
    "mx.sym.Convolution(a, kernel='(1,1)', num_filter=3, no_bias=1, name='c').list_attr()",
    "mx.sym.Convolution(a, kernel=(1, 1), num_filter='x', name='c')",
    "mx.sym.Pooling(a, kernel=(2, 2), pool_type='median', name='p')",
    "mx.sym.ROIPooling(a, b, pooled_size=(7, 7), spatial_scale=1.5)",
    "mx.sym.ROIPooling(a, b, pooled_size=(7, 7), spatial_scale=1 / 16).list_attr()",
    "mx.sym.ROIPooling(a, b, pooled_size=(0, 7), spatial_scale=0.5)",
    "mx.sym.ROIPooling(a, b, pooled_size=(7,), spatial_scale=0.5).infer_shape(a=(1, 3, 8, 8), b=(2, 5))",
    "mx.sym.sum(a, axis=1, keepdims=1).list_attr()",
    "mx.sym.sum(a, axis=None).list_attr()",
    "mx.sym.sum(a, axis=()).list_attr()",
    "mx.sym.sum(a, axis=[1, 2]).list_attr()",
    "mx.sym.Cast(a, dtype=np.float32).list_attr()",
    "mx.sym.clip(a, 0, 1).list_attr()",
    "mx.sym.clip(a, 1e-8, 1 / 3).list_attr()",
    "mx.sym.Dropout(a, p=0.3).list_attr()",
    "mx.sym.contrib.MultiBoxPrior(a, sizes=[0.2, 0.272], ratios=(1, 2, 0.5)).list_attr()",
)
ask(
    "composition",
    AB,
    "mx.sym.FullyConnected(a, b, num_hidden=3, name='fc').list_arguments()",
    "mx.sym.FullyConnected(a, bias=b, num_hidden=3, name='fc').list_arguments()",
    "mx.sym.FullyConnected(num_hidden=3, name='fc').list_arguments()",
    "mx.sym.FullyConnected(weight=a, num_hidden=3, name='fc').list_arguments()",
    "mx.sym.Activation(act_type='relu').list_arguments()",
    "mx.sym.Activation(act_type='relu', name='act').list_arguments()",
    "mx.sym.elemwise_add(lhs=a, rhs=b).list_arguments()",
    "mx.sym.elemwise_add(a).list_arguments()",
    "mx.sym.elemwise_add(rhs=a, name='s').list_arguments()",
    "mx.sym.Concat(a, b, a).list_arguments()",
    "mx.sym.Concat(a, b, num_args=2).list_attr()",
    "mx.sym.Concat(*[a, b], dim=1, name='c').list_attr()",
    "mx.sym.exp(3)",
    "mx.sym.exp('a')",
    "mx.sym.exp(wrong=a)",
    "mx.sym.Group([a, b]).list_outputs()",
    "mx.sym.Group([a + b, mx.sym.Group([a, b])]).list_outputs()",
    "mx.sym.Group([])",
    "mx.sym.Group([a, 1])",
    "mx.sym.Group([a, b]).name",
    "mx.sym.exp(mx.sym.Group([a, b]))",
    "mx.sym.exp(mx.sym.SliceChannel(a, num_outputs=2))",
    "mx.sym.batch_dot(a, a).list_arguments()",
    "(a + mx.sym.Variable('a')).list_arguments()",
)
ask(
    "composition by calling",
    NET + "; other = mx.sym.Variable('other')",
    "net(a=other).list_arguments()",
    "net(a=other).list_outputs()",
    "net(a=other, name='again').list_outputs()",
    "net(a=other, name='again').get_internals().list_outputs()",
    "net.list_arguments()",
    "net(missing=other).list_arguments()",
    "net(a=other, fc_weight=b).list_arguments()",
    "net(other, a=other)",
)
ask(
    "indexing",
    NET + "; group = mx.sym.Group([net, a, mx.sym.SliceChannel(b, num_outputs=2, name='two')]); "
    "inside = net.get_internals()",
    "len(net)",
    "len(group)",
    "group.list_outputs()",
    "group[0].list_outputs()",
    "group[1].name",
    "group[3].list_outputs()",
    "group[3].name",
    "group[4]",
    "group[1:3].list_outputs()",
    "group[:].list_outputs()",
    "group['act_output'].name",
    "group['a'].name",
    "group['two_output1'].list_outputs()",
    "group['act']",
    "group[1.0]",
    "net[0].name",
    "net[1]",
    "[s.name for s in group]",
    "inside.list_outputs()",
    "inside['fc_output'].list_arguments()",
    "inside['fc_output'].name",
    "inside['fc_weight'].list_outputs()",
    "inside[1].name",
    "inside.name",
    "inside['nothing']",
    "net.get_children().list_outputs()",
    "net.get_children()[0].get_children().list_outputs()",
    "a.get_children()",
    "group.get_children().list_outputs()",
    "group.get_internals().list_outputs()",
    "repr(net)",
    "repr(group)",
    "str(net)",
)
ask(
    "hidden outputs",
    AB + "; bn = mx.sym.BatchNorm(a, name='bn'); top = mx.sym.topk(a, ret_typ='both', name='top'); "
    "roi = mx.sym.ROIPooling(a, b, pooled_size=(2, 2), spatial_scale=1.0, name='roi'); "
    "drop = mx.sym.Dropout(a, name='drop'); prop = mx.sym.contrib.Proposal(a, b, name='prop')",
    "bn.list_outputs()",
    "len(bn)",
    "bn.get_internals().list_outputs()",
    "bn[1]",
    "top.list_outputs()",
    "roi.list_outputs()",
    "roi.get_internals().list_outputs()",
    "drop.get_internals().list_outputs()",
    "prop.get_internals().list_outputs()",
    "mx.sym.exp(roi).get_internals().list_outputs()",
)

INFER = (
    AB + "; fc = mx.sym.FullyConnected(a, num_hidden=3, name='fc'); "
    "conv = mx.sym.Convolution(a, kernel=(3, 3), num_filter=4, name='conv'); total = a + b; "
    "bn = mx.sym.BatchNorm(a, name='bn'); soft = mx.sym.SoftmaxOutput(fc, name='softmax'); "
    "cat = mx.sym.Concat(a, b, dim=1); flat = mx.sym.Flatten(a); roi = mx.sym.ROIPooling(a, b, (2, 3), 0.5)"
)
ask(
    "shape inference",
    INFER,
    "fc.infer_shape(a=(4, 5))",
    "fc.infer_shape(a=(4, 5, 6))",
    "fc.infer_shape(fc_weight=(3, 7))",
    "fc.infer_shape_partial(fc_weight=(3, 7))",
    "fc.infer_shape_partial()",
    "fc.infer_shape()",
    "fc.infer_shape(a=(0, 5))",
    "fc.infer_shape_partial(a=(0, 5))",
    "fc.infer_shape(a=(4, 5), fc_weight=(2, 5))",
    "fc.infer_shape(a=(4, 5), nothing=(2, 5))",
    "fc.infer_shape(a=4)",
    "fc.infer_shape((4, 5), fc_bias=(3,))",
    "conv.infer_shape(a=(2, 3, 8, 9))",
    "conv.infer_shape_partial(a=(0, 3, 8, 9))",
    "conv.infer_shape_partial(a=(2, 3, 0, 9))",
    "conv.infer_shape_partial(conv_weight=(4, 3, 3, 3))",
    "conv.infer_shape(a=(2, 3, 2, 9))",
    "conv.infer_shape(a=(2, 3, 8))",
    "total.infer_shape(a=(2, 3))",
    "total.infer_shape(b=(2, 3))",
    "total.infer_shape(a=(2, 0), b=(0, 3))",
    "total.infer_shape_partial(a=(2, 0))",
    "total.infer_shape(a=(2, 3), b=(2, 4))",
    "total.infer_shape(a=(2, 3), b=(2, 3, 1))",
    "total.infer_shape(a=(2, -1), b=(2, 3))",
    "bn.infer_shape(a=(2, 3, 4, 4))",
    "bn.infer_shape_partial(bn_gamma=(3,))",
    "soft.infer_shape(a=(4, 5))",
    "soft.infer_shape(a=(4, 5), softmax_label=(4,))",
    "soft.infer_shape(a=(4, 5), softmax_label=(4, 3))",
    "soft.infer_shape(a=(4, 5), softmax_label=(5,))",
    "cat.infer_shape(a=(2, 3), b=(2, 4))",
    "cat.infer_shape_partial(a=(2, 3))",
    "cat.infer_shape_partial(a=(2, 3), b=(0, 4))",
    "cat.infer_shape(a=(2, 3), b=(3, 4))",
    "flat.infer_shape(a=(2, 3, 4))",
    "flat.infer_shape_partial(a=(0, 3, 4))",
    "flat.infer_shape(a=(2,))",
    "roi.infer_shape(a=(1, 3, 8, 8), b=(4, 5))",
    "roi.infer_shape(a=(1, 3, 8, 8), b=(4, 4))",
    "roi.infer_shape(a=(1, 3, 8), b=(4, 5))",
    "mx.sym.exp(a).infer_shape(a=())",
    "(a + b).get_internals().infer_shape(a=(2, 2))",
    "mx.sym.Group([fc, total]).infer_shape(a=(4, 5))",
    "mx.sym.elemwise_add(mx.sym.Reshape(a, shape=(-1, 2)), b).infer_shape_partial(b=(3, 2))",
    "mx.sym.elemwise_add(mx.sym.exp(a), b).infer_shape(b=(3, 2))",
    "mx.sym.elemwise_add(mx.sym.expand_dims(a, axis=0), b).infer_shape_partial(b=(1, 2))",
    "mx.sym.broadcast_add(a, b).infer_shape_partial(b=(1, 2))",
    "mx.sym.broadcast_add(a, b).infer_shape(a=(3, 1), b=(1, 2))",
    "mx.sym.broadcast_add(a, b).infer_shape(a=(3, 4), b=(3, 2))",
    "mx.sym.broadcast_add(a, b).infer_shape(a=(3, 4), b=(4,))",
    "mx.sym.dot(a, b).infer_shape(a=(3, 4), b=(4, 5))",
    "mx.sym.dot(a, b).infer_shape(a=(3, 4), b=(5, 5))",
    "mx.sym.dot(a, b).infer_shape(a=(3,), b=(3,))",
    "mx.sym.sum(a).infer_shape(a=(3, 4))",
    "mx.sym.Pooling(a, kernel=(3, 3), stride=(2, 2), pool_type='max').infer_shape(a=(1, 1, 8, 8))",
    "mx.sym.Pooling(a, kernel=(3, 3), stride=(2, 2), pool_type='max', pooling_convention='full').infer_shape(a=(1, 1, 8, 8))",
    "mx.sym.Pooling(a, kernel=(3, 3), stride=(2, 2), pool_type='max', pooling_convention='same').infer_shape(a=(1, 1, 8))",
)
ask(
    "shapes by Reshape's codes",
    "a = mx.sym.Variable('a')\n"
    "def reshape(codes, reverse=False):\n"
    "    return mx.sym.Reshape(a, shape=codes, reverse=reverse).infer_shape(a=(2, 3, 4, 5))[1][0]\n",
    *[
        f"reshape({codes})"
        for codes in (
            (0, 0, -1), (-1,), (0, -1), (-2,), (0, -2), (-3, 0, 0), (0, -3, 0), (0, 0, -3), (-3, -3), (-4, 1, 2, -2),
            (-4, -1, 2, -2), (0, 0, -4, 2, -1, 0), (0, 0, 0, 0), (6, 4, 5), (-1, 0), (0, -1, 5), (24, 5), (4, 30, 1),
            (-1, -1), (-2, 1), (1, -2), (0, -3, -2), (-3, -2), (120,), (0, 3, 20), (-4, 2, 2, -2), (0, 0, 0, 0, 0), (-5,),
        )
    ],
    *[f"reshape({codes}, True)" for codes in ((-1, 0), (0, -1), (0, 0, -1), (-3, 0), (8, 0, 5), (-1, 0, 0))],
)  # fmt: skip
ask(
    "type inference",
    INFER,
    "fc.infer_type(a='float32')",
    "fc.infer_type(a='float16')",
    "fc.infer_type()",
    "fc.infer_type_partial()",
    "fc.infer_type(fc_weight='float64')",
    "fc.infer_type(a='float32', fc_weight='float64')",
    "total.infer_type(a='int32')",
    "total.infer_type(b='float64')",
    "total.infer_type(a='float32', b='float64')",
    "bn.infer_type(a='float16')",
    "bn.infer_type(a='float64')",
    "soft.infer_type(a='float16')",
    "soft.infer_type(a='float32', softmax_label='int32')",
    "roi.infer_type(a='float16', b='float16')",
    "mx.sym.Cast(a, dtype='float64').infer_type(a='float32')",
    "mx.sym.Cast(a, dtype='int8').infer_type()",
    "(a > b).infer_type(a='float64')",
    "mx.sym.argmax(a, axis=0).infer_type(a='float64')",
    "mx.sym.topk(a, ret_typ='both').infer_type(a='float32')",
    "mx.sym.topk(a, dtype='int32').infer_type(a='float32')",
    "mx.sym.one_hot(a, 3).infer_type(a='int32')",
    "mx.sym.one_hot(a, 3, dtype='float64').infer_type(a='int32')",
    "mx.sym.take(a, b).infer_type(a='float32', b='int32')",
    "mx.sym.Embedding(a, input_dim=3, output_dim=2, name='e').infer_type(a='int32')",
    "mx.sym.zeros((2,), dtype='int32').infer_type()",
    "mx.sym.where(a, b, b).infer_type(a='int32', b='float64')",
    "mx.sym.contrib.ROIAlign(a, b, (2, 2), 0.5).infer_type(a='float16', b='float16')",
)
ask(
    "JSON text",
    NET + "; group = mx.sym.Group([net, a + b])",
    "a.tojson()",
    "(a + b).tojson()",
    "(a + 1).tojson()",
    "net.tojson()",
    "group.tojson()",
    "mx.sym.BatchNorm(a, name='bn').tojson()",
    "mx.sym.SliceChannel(a, num_outputs=2, name='s')[1].tojson()",
    "mx.sym.Concat(a, a, b, name='c').tojson()",
    "mx.sym.ROIPooling(a, b, pooled_size=(7, 7), spatial_scale=1 / 16, name='r').tojson()",
    "mx.sym.Variable('q', attr={'quote': '\"', 'slash': '\\\\', 'line': '\\n', 'tab': '\\t', 'text': 'é'}).tojson()",
    "mx.sym.load_json(net.tojson()).tojson() == net.tojson()",
    "mx.sym.load_json(net.tojson()).list_arguments()",
    "mx.sym.load_json('{}')",
    "mx.sym.load_json('not json')",
)
ask(
    "copies",
    "import copy, pickle; " + NET + "; twin = copy.deepcopy(net); twin._set_attr(__mood__='blue')",
    "net.list_attr()",
    "twin.list_attr()",
    "copy.copy(net).list_outputs()",
    "pickle.loads(pickle.dumps(net)).tojson() == net.tojson()",
)
EXECUTOR = (
    AB + "; total = mx.sym.elemwise_mul(a, b, name='total'); ones = mx.nd.ones((2,)); twos = ones * 2; "
    "exe = total.bind(mx.cpu(), {'a': ones, 'b': twos}, args_grad={'a': mx.nd.zeros((2,))}, "
    "grad_req={'a': 'write', 'b': 'null'}); "
    "simple = total.simple_bind(mx.cpu(), a=(2,), grad_req='add')"
)
ask(
    "executors",
    EXECUTOR,
    "[o.shape for o in exe.outputs]",
    "sorted(exe.arg_dict)",
    "sorted(exe.grad_dict)",
    "exe.grad_dict['b'] is None",
    "sorted(exe.output_dict)",
    "sorted(exe.aux_dict)",
    "[o.asnumpy().tolist() for o in exe.forward()]",
    "[o.asnumpy().tolist() for o in exe.forward(a=twos)]",
    "exe.arg_dict['a'].asnumpy().tolist()",
    "ones.asnumpy().tolist()",
    "exe.forward(nothing=twos)",
    "exe.forward(a=mx.nd.ones((3,)))",
    "(exe.forward(is_train=True), exe.backward(mx.nd.ones((2,))), exe.grad_dict['a'].asnumpy().tolist())[2]",
    "[g is not None and g.asnumpy().tolist() for g in exe.grad_arrays]",
    "sorted(simple.grad_dict)",
    "[g.asnumpy().tolist() for g in simple.grad_arrays]",
    "exe.copy_params_from({'a': ones, 'c': ones})",
    "exe.copy_params_from({'a': ones, 'c': ones}, allow_extra_params=True)",
    "total.bind(mx.cpu(), {'a': ones})",
    "total.bind(mx.cpu(), [ones])",
    "total.bind(mx.cpu(), [ones, mx.nd.ones((3,))])",
    "total.bind(mx.cpu(), [ones, twos], grad_req='sometimes')",
    "[o.shape for o in total.bind(mx.cpu(), [ones, twos]).forward()]",
    "[o.asnumpy().tolist() for o in total.eval(ctx=mx.cpu(), a=ones, b=twos)]",
    "[o.shape for o in exe.reshape(a=(3,), b=(3,), allow_up_sizing=True).outputs]",
    "exe.reshape(a=(3,), b=(3,))",
)
ask(
    "NDArrays",
    "import numpy as np; x = mx.nd.array([[1, 2, 3], [4, 5, 6]]); y = mx.nd.array([2.5], dtype='float64')",
    "x.dtype",
    "mx.nd.array([1, 2]).dtype",
    "mx.nd.array(np.array([1, 2])).dtype",
    "mx.nd.array(np.array([1, 2], 'int8')).dtype",
    "mx.nd.array(np.array([1.0], 'float64')).dtype",
    "y.dtype",
    "x.shape",
    "x.size",
    "x.ndim",
    "str(x.context)",
    "x.stype",
    "repr(x)",
    "str(x)",
    "repr(mx.nd.array([1.5]))",
    "len(x)",
    "x[0].asnumpy().tolist()",
    "x[-1].asnumpy().tolist()",
    "x[0:1].shape",
    "x[:, 1].asnumpy().tolist()",
    "x[:, 1:].asnumpy().tolist()",
    "x[0, 2].asnumpy().tolist()",
    "x[0, 2].shape",
    "x[1, 1].asscalar()",
    "x[2]",
    "x[:, ::2].asnumpy().tolist()",
    "x[mx.nd.array([1, 0])].asnumpy().tolist()",
    "x[None].shape",
    "x[..., 0].asnumpy().tolist()",
    "y.asscalar()",
    "x.asscalar()",
    "bool(y)",
    "bool(x)",
    "x.reshape((3, 2)).asnumpy().tolist()",
    "x.reshape(3, -1).shape",
    "x.reshape((0, -1)).shape",
    "x.T.asnumpy().tolist()",
    "(x + 1).asnumpy().tolist()",
    "(1 - x).asnumpy().tolist()",
    "(x / 2).asnumpy().tolist()",
    "(2 / x).dtype",
    "(x ** 2).asnumpy().tolist()",
    "(x % 2).asnumpy().tolist()",
    "(-x).asnumpy().tolist()",
    "(x > 2).asnumpy().tolist()",
    "(x > 2).dtype",
    "(x == x).asnumpy().tolist()",
    "(x != 2).asnumpy().tolist()",
    "(x + x[0:1]).asnumpy().tolist()",
    "(x + mx.nd.array([1, 2, 3])).asnumpy().tolist()",
    "(x + y).dtype",
    "x.sum().asnumpy().tolist()",
    "x.mean(axis=1).asnumpy().tolist()",
    "x.max().shape",
    "x.argmax(axis=1).asnumpy().tolist()",
    "x.astype('int32').dtype",
    "x.astype('float32') is x",
    "x.astype('float32', copy=False) is x",
    "x.copyto(mx.nd.zeros((2, 3))).asnumpy().tolist()",
    "x.copyto(mx.nd.zeros((3, 2)))",
    "x.copyto(mx.cpu()).shape",
    "x.as_in_context(mx.cpu()) is x",
    "x.slice_axis(axis=1, begin=1, end=None).asnumpy().tolist()",
    "x.expand_dims(0).shape",
    "mx.nd.zeros((2, 3)).asnumpy().tolist()",
    "mx.nd.zeros(3).shape",
    "mx.nd.ones((2,), dtype='int32').dtype",
    "mx.nd.full((2,), 3).asnumpy().tolist()",
    "mx.nd.arange(0, 3).asnumpy().tolist()",
    "mx.nd.arange(3).dtype",
    "mx.nd.array([[1, 2], [3]])",
    "mx.nd.concat(x, x, dim=0).shape",
    "mx.nd.stack(x, x).shape",
    "mx.nd.dot(x, x.T).asnumpy().tolist()",
    "mx.nd.add_n(x, x, x).asnumpy().tolist()",
    "mx.nd.sum(x, axis=0).asnumpy().tolist()",
    "mx.nd.exp(x, x).shape",
    "[o.shape for o in mx.nd.split(x, num_outputs=3, axis=1)]",
    "mx.nd.concatenate([x, x]).shape",
    "mx.nd.maximum(x, 3).asnumpy().tolist()",
    "mx.nd.exp(1)",
)
ask(
    "writing into NDArrays",
    "x = mx.nd.zeros((2, 3)); x[0] = 1; x[1, 2] = 5; view = x[0:1]; view[:] = 7; row = x[1]; row += 2; "
    "flat = x.reshape((6,)); flat[5] = 9; columns = x[:, 0]; columns[:] = 100; before = x; x *= 2; "
    "out = mx.nd.zeros((2, 3)); same = mx.nd.exp(mx.nd.zeros((2, 3)), out=out)",
    "x.asnumpy().tolist()",
    "view.asnumpy().tolist()",
    "before is x",
    "same is out",
    "out.asnumpy().tolist()",
    "mx.nd.exp(mx.nd.zeros((2, 3)), out=mx.nd.zeros((3, 3)))",
)
ask(
    "contexts",
    "",
    "str(mx.cpu())",
    "repr(mx.cpu(1))",
    "str(mx.gpu(2))",
    "mx.cpu() == mx.cpu(0)",
    "mx.cpu() == mx.cpu(1)",
    "mx.cpu() == mx.gpu()",
    "hash(mx.cpu()) == hash(mx.cpu(0))",
    "mx.cpu().device_type",
    "mx.gpu(3).device_id",
    "mx.gpu(3).device_typeid",
    "str(mx.current_context())",
    "mx.Context('gpu', 1).device_type",
    "mx.Context(mx.gpu(1)).device_id",
    "mx.Context('tpu')",
    "isinstance(mx.base.MXNetError('x'), RuntimeError)",
)


def answer(expression, names):
    try:
        return plain(eval(expression, names))
    except Exception as error:
        return {"raises": type(error).__name__}


def main():
    table = []
    for topic, setup, expressions in QUESTIONS:
        answers = {}
        for expression in expressions:
            with mx.name.NameManager(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                names = {"mx": mx}
                exec(setup, names)
                answers[expression] = answer(expression, names)
        table.append({"topic": topic, "setup": setup, "ask": answers})
    text = {"peer": "mxnet", "version": mx.__version__, "script": Path(__file__).name, "questions": table}
    path = GOLDEN / "graphs" / "behaviour.json"
    path.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n")
    count = sum(len(entry["ask"]) for entry in table)
    print(f"{path.name}: {count} answers, {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
