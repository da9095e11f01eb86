"""Golden files of small models of the kinds that the zoo's have no small one of; for the tests of ONNX.

Runs in MXNet's interpreter: ``.peers/mxnet/bin/python verify/golden/make_converted.py``. Graph, parameters,
inputs and outputs of each go to ``tests/golden/converted/<name>.npz``.
"""

import json
import os
from pathlib import Path

import mxnet as mx
import numpy as np

OUT = Path(__file__).resolve().parents[2] / "tests" / "golden" / "converted"
sym = mx.sym


def _conv(x, name, filters, kernel=3, stride=1, act=True):
    pad = (kernel // 2, kernel // 2)
    x = sym.Convolution(
        x, num_filter=filters, kernel=(kernel, kernel), stride=(stride, stride), pad=pad, name=name
    )
    return sym.Activation(x, act_type="relu", name=name + "_relu") if act else x


def _proposals(x, info, stride, name="rois"):
    """An RPN with three anchors."""
    scores = sym.Reshape(_conv(x, name + "_score", 6, 1, act=False), shape=(0, 2, -1, 0))
    chance = sym.Reshape(sym.softmax(scores, axis=1), shape=(0, 6, -1, 0))
    deltas = _conv(x, name + "_delta", 12, 1, act=False) * 0.3
    return sym.contrib.MultiProposal(
        chance, deltas, info, feature_stride=stride, scales=(2, 4, 6), ratios=(1,), rpn_min_size=4,
        rpn_pre_nms_top_n=200, rpn_post_nms_top_n=30, threshold=0.6, name=name,
    )  # fmt: skip


def rfcn(deformable):
    """R-FCN, its score maps pooled by position, its bins moved by what an offset branch learned."""
    data, info = sym.Variable("data"), sym.Variable("im_info")
    x = _conv(_conv(data, "conv1", 8, stride=2), "conv2", 16, stride=4)
    rois = _proposals(x, info, 8)
    outputs = [sym.BlockGrad(rois, name="regions")]
    for name, width in (("cls", 4), ("bbox", 8)):
        maps = _conv(x, name + "_maps", 9 * width, 1, act=False)
        if deformable:
            more = {
                "group_size": 3,
                "pooled_size": 3,
                "part_size": 3,
                "sample_per_part": 4,
                "spatial_scale": 0.125,
            }
            offsets = _conv(x, name + "_offset", 18, 1, act=False)
            moves = sym.contrib.DeformablePSROIPooling(offsets, rois, no_trans=True, output_dim=2, **more)[0]
            pooled = sym.contrib.DeformablePSROIPooling(
                maps, rois, moves, trans_std=0.1, output_dim=width, **more
            )[0]
        else:
            pooled = sym.contrib.PSROIPooling(
                maps, rois, spatial_scale=0.125, output_dim=width, pooled_size=3
            )
        mean = sym.Flatten(sym.Pooling(pooled, global_pool=True, kernel=(3, 3), pool_type="avg"))
        outputs.append(sym.softmax(mean, name=name) if name == "cls" else sym.identity(mean, name=name))
    return sym.Group(outputs), {"data": (2, 3, 64, 96), "im_info": (2, 3)}


def mask_pyramid(safe=False):
    """Mask R-CNN on two levels of a pyramid: each ROI aligned on one of them, negative indices on the other.

    For those MXNet promises zeros, but its CPU kernel reads what lies before the features; ``safe`` is the
    graph that gives the zeros.
    """
    data, info = sym.Variable("data"), sym.Variable("im_info")
    fine = _conv(_conv(data, "conv1", 8, stride=2), "conv2", 12, stride=2)
    coarse = _conv(fine, "conv3", 12, stride=2)
    top = _conv(coarse, "top", 12, 1, act=False)
    bottom = sym.UpSampling(top, scale=2, sample_type="nearest") + _conv(fine, "lateral", 12, 1, act=False)
    rois = _proposals(coarse, info, 8)
    index, x1, y1, x2, y2 = (sym.slice_axis(rois, axis=1, begin=i, end=i + 1) for i in range(5))
    large = (x2 - x1 + 1) * (y2 - y1 + 1) > 800
    pooled = []
    for level, scale, chosen in ((bottom, 0.25, 1 - large), (top, 0.125, large)):
        here = index if safe else sym.where(chosen, index, sym.ones_like(index) * -1)
        boxes = sym.concat(here, x1, y1, x2, y2, dim=1)
        found = sym.contrib.ROIAlign(level, boxes, pooled_size=(4, 4), spatial_scale=scale, sample_ratio=2)
        pooled.append(sym.broadcast_mul(found, sym.Reshape(chosen, shape=(-1, 1, 1, 1))) if safe else found)
    features = pooled[0] + pooled[1]
    classes = sym.softmax(sym.FullyConnected(features, num_hidden=5, name="classes"), name="cls")
    mask = sym.Deconvolution(features, num_filter=6, kernel=(2, 2), stride=(2, 2), name="deconv")
    mask = sym.sigmoid(_conv(sym.Activation(mask, act_type="relu"), "masks", 4, 1, act=False), name="mask")
    return sym.Group([sym.BlockGrad(rois, name="regions"), classes, mask]), {
        "data": (2, 3, 64, 96),
        "im_info": (2, 3),
    }


def text_recogniser():
    """Columns of features through two bidirectional LSTM layers (Shi et al., 2015)."""
    x = _conv(sym.Variable("data"), "conv1", 6)
    x = sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max")
    x = sym.Pooling(
        _conv(x, "conv2", 8), kernel=(2, 2), stride=(2, 1), pool_type="max", pooling_convention="full"
    )
    x = sym.transpose(sym.Reshape(x, shape=(0, -3, 0)), axes=(2, 0, 1))
    zeros = [sym.zeros((4, 2, 7)), sym.zeros((4, 2, 7))]
    more = {"state_size": 7, "num_layers": 2, "mode": "lstm", "bidirectional": True}
    x = sym.RNN(x, sym.Variable("lstm_parameters"), *zeros, name="lstm", **more)
    letters = sym.FullyConnected(x, num_hidden=11, flatten=False, name="letters")
    return sym.softmax(letters, name="prob"), {"data": (2, 1, 16, 40)}


MODELS = {
    "rfcn": lambda: rfcn(False),
    "rfcn_deformable": lambda: rfcn(True),
    "mask_rcnn_pyramid": mask_pyramid,
    "text_recogniser": text_recogniser,
}


def values(name, shape, random):
    """Parameters and inputs, of few digits so that the files are small."""
    if name == "im_info":
        return np.array([[64, 96, 1], [56, 80, 1]], np.float32)
    size = 1.0 if name == "data" else 0.3 if len(shape) == 1 else (1.5 / max(1, np.prod(shape[1:]))) ** 0.5
    return (np.round(random.normal(size=shape) * 16) / 16 * size).astype(np.float32)


def main():
    os.environ["MXNET_SUBGRAPH_BACKEND"] = "NONE"
    OUT.mkdir(parents=True, exist_ok=True)
    for number, (name, build) in enumerate(MODELS.items()):
        symbol, shapes = build()
        random = np.random.RandomState(number)
        sizes, _, _ = symbol.infer_shape(**shapes)
        arrays = {n: values(n, s, random) for n, s in zip(symbol.list_arguments(), sizes)}
        runs = mask_pyramid(safe=True)[0] if name == "mask_rcnn_pyramid" else symbol
        executor = runs.bind(mx.cpu(), {n: mx.nd.array(a) for n, a in arrays.items()}, grad_req="null")
        found = [each.asnumpy() for each in executor.forward(is_train=False)]
        meta = {"peer": "mxnet", "version": mx.__version__, "script": "verify/golden/make_converted.py"}
        held = {("input/" if n in shapes else "param/") + n: a for n, a in arrays.items()}
        held.update(("output/" + n, a) for n, a in zip(symbol.list_outputs(), found))
        path = OUT / (name + ".npz")
        text = np.frombuffer(symbol.tojson().encode(), np.uint8)
        np.savez_compressed(path, meta=json.dumps(meta), symbol=text, **held)
        print(
            path.name,
            path.stat().st_size // 1024,
            "KiB",
            {n: a.shape for n, a in held.items() if "output" in n},
        )


if __name__ == "__main__":
    main()
