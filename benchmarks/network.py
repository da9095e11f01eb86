"""Networks at 1x3x600x800, and steps of training at half that size, against real MXNet 1.9.1 (oneDNN).

    python benchmarks/network.py                          # all networks, with 1 and with 2 threads
    python benchmarks/network.py --networks vgg16 --threads 1

Both sides run the same symbol code in processes of their own, with the same weights and as many threads, and
take turns, one pass each: forward, or a step of training, which is forward, backward to the gradients of all
weights that are trained, and their update with momentum. Results and gradients must agree before anything is
timed. verify/peers.py sets up MXNet. The result is written to benchmarks/results/network.{json,md}.
"""

import argparse
import datetime
import importlib
import json
import os
import platform
import re
import statistics
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
from machine import RESULTS, processor

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "verify" / "zoo"
PEER = ROOT / ".peers" / "mxnet" / "bin" / "python"
HEIGHT, WIDTH = 600, 800
ROUNDS = 15
#: Worst difference of an output, relative to its largest entry.
AGREEMENT = 1e-4


# -- the networks, in the words that both libraries understand -----------------------------------------------


def vgg16_features(mx):
    x = mx.sym.Variable("data")
    for block, (count, filters) in enumerate([(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)], 1):
        for i in range(1, count + 1):
            name = f"{block}_{i}"
            x = mx.sym.Convolution(x, kernel=(3, 3), pad=(1, 1), num_filter=filters, name="conv" + name)
            x = mx.sym.Activation(x, act_type="relu", name="relu" + name)
        if block < 5:
            x = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", name=f"pool{block}")
    return x


def vgg16(mx):
    return vgg16_features(mx)


def _stages(mx, x, first, last, fixed=False):
    """Stages of ResNet-50."""

    def unit(x, filters, kernel, stride, name, relu=True):
        pad = (kernel // 2, kernel // 2)
        x = mx.sym.Convolution(
            x,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=pad,
            num_filter=filters,
            no_bias=True,
            name=name,
        )
        x = mx.sym.BatchNorm(x, fix_gamma=False, eps=2e-5, use_global_stats=fixed, name=name + "_bn")
        return mx.sym.Activation(x, act_type="relu", name=name + "_relu") if relu else x

    if first == 0:
        x = unit(x, 64, 7, 2, "conv0")
        x = mx.sym.Pooling(x, kernel=(3, 3), stride=(2, 2), pad=(1, 1), pool_type="max", name="pool0")
    for stage, (count, filters) in enumerate([(3, 64), (4, 128), (6, 256), (3, 512)], 1):
        for i in range(count if first <= stage <= last else 0):
            name = f"stage{stage}_{i}_"
            stride = 2 if stage > 1 and i == 0 else 1
            y = unit(x, filters, 1, stride, name + "a")
            y = unit(y, filters, 3, 1, name + "b")
            y = unit(y, 4 * filters, 1, 1, name + "c", relu=False)
            short = unit(x, 4 * filters, 1, stride, name + "short", relu=False) if i == 0 else x
            x = mx.sym.Activation(y + short, act_type="relu", name=name + "relu")
    return x


def resnet50(mx, fixed=False):
    """With ``fixed`` statistics in the batch normalisation, as in the training of detectors."""
    return _stages(mx, mx.sym.Variable("data"), 0, 4, fixed)


def mobilenet(mx):
    """MobileNet 1.0 up to its classifier: 13 pairs of a depthwise and a pointwise convolution."""

    def unit(x, filters, kernel, stride, groups, name):
        x = mx.sym.Convolution(
            x,
            kernel=(kernel, kernel),
            stride=(stride, stride),
            pad=(kernel // 2, kernel // 2),
            num_filter=filters,
            num_group=groups,
            no_bias=True,
            name=name,
        )
        x = mx.sym.BatchNorm(x, fix_gamma=False, name=name + "_bn")
        return mx.sym.Activation(x, act_type="relu", name=name + "_relu")

    x = unit(mx.sym.Variable("data"), 32, 3, 2, 1, "conv0")
    channels = 32
    filters = [64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024]
    for i, count in enumerate(filters):
        x = unit(x, channels, 3, 2 if i in (1, 3, 5, 11) else 1, channels, f"depthwise{i}")
        x = unit(x, count, 1, 1, 1, f"pointwise{i}")
        channels = count
    return x


def _proposals(mx, features, channels):
    """Scores and boxes of the anchors, and the 300 best as ROIs."""
    rpn = mx.sym.Convolution(features, kernel=(3, 3), pad=(1, 1), num_filter=channels, name="rpn_conv_3x3")
    rpn = mx.sym.Activation(rpn, act_type="relu", name="rpn_relu")
    score = mx.sym.Convolution(rpn, kernel=(1, 1), num_filter=18, name="rpn_cls_score")
    boxes = mx.sym.Convolution(rpn, kernel=(1, 1), num_filter=36, name="rpn_bbox_pred")
    rows = mx.sym.Reshape(score, shape=(0, 2, -1, 0), name="rpn_cls_score_reshape")
    prob = mx.sym.SoftmaxActivation(rows, mode="channel", name="rpn_cls_prob")
    prob = mx.sym.Reshape(prob, shape=(0, 18, -1, 0), name="rpn_cls_prob_reshape")
    rois = mx.sym.contrib.Proposal(
        prob, boxes, mx.sym.Variable("im_info"), feature_stride=16, scales=(8, 16, 32), ratios=(0.5, 1, 2),
        rpn_pre_nms_top_n=6000, rpn_post_nms_top_n=300, threshold=0.7, rpn_min_size=16, name="rois",
    )  # fmt: skip
    return score, boxes, rois


def faster_rcnn_vgg16(mx):
    """The test graph: 300 proposals, ROIPooling, two large fully connected layers."""
    features = vgg16_features(mx)
    score, boxes, rois = _proposals(mx, features, 512)
    x = mx.sym.ROIPooling(features, rois, pooled_size=(7, 7), spatial_scale=1 / 16, name="roi_pool5")
    for i in (6, 7):
        x = mx.sym.FullyConnected(x, num_hidden=4096, name=f"fc{i}")
        x = mx.sym.Activation(x, act_type="relu", name=f"relu{i}")
    classes = mx.sym.softmax(mx.sym.FullyConnected(x, num_hidden=21, name="cls_score"), name="cls_prob")
    deltas = mx.sym.FullyConnected(x, num_hidden=84, name="bbox_pred")
    return mx.sym.Group([score, boxes, rois, classes, deltas])


def faster_rcnn_resnet50(mx):
    """The C4 test graph: three stages of ResNet-50, 300 proposals, the fourth stage on each of them."""
    features = _stages(mx, mx.sym.Variable("data"), 0, 3)
    score, boxes, rois = _proposals(mx, features, 512)
    x = mx.sym.ROIPooling(features, rois, pooled_size=(14, 14), spatial_scale=1 / 16, name="roi_pool")
    x = mx.sym.Pooling(_stages(mx, x, 4, 4), kernel=(7, 7), global_pool=True, pool_type="avg", name="pool1")
    classes = mx.sym.softmax(mx.sym.FullyConnected(x, num_hidden=21, name="cls_score"), name="cls_prob")
    deltas = mx.sym.FullyConnected(x, num_hidden=84, name="bbox_pred")
    return mx.sym.Group([score, boxes, rois, classes, deltas])


def vgg16_training(mx):
    return vgg16_features(mx)


def resnet50_training(mx):
    return resnet50(mx, fixed=True)


def mobilenet_training(mx):
    return mobilenet(mx)


def ssd_vgg16_training(mx):
    """The training graph of MXNet's example/ssd, with its targets, losses and detections."""
    return importlib.import_module("ssd").ssd(mx, "vgg16", 300, train=True)


def faster_rcnn_vgg16_training(mx):
    """The end-to-end training graph of MXNet's example/rcnn; a Custom operator chooses its 128 regions."""
    return importlib.import_module("rcnn").faster_rcnn(mx, "vgg16", "1.x", train=True)


def faster_rcnn_resnet50_training(mx):
    return importlib.import_module("rcnn").faster_rcnn(mx, "resnet50", "1.x", train=True)


NETWORKS = {
    f.__name__: f
    for f in (
        vgg16,
        resnet50,
        mobilenet,
        faster_rcnn_vgg16,
        faster_rcnn_resnet50,
        vgg16_training,
        resnet50_training,
        mobilenet_training,
        ssd_vgg16_training,
        faster_rcnn_vgg16_training,
        faster_rcnn_resnet50_training,
    )
}
#: The weights that the examples do not train, by the beginnings of their names; of detectors with losses.
FROZEN = {
    "ssd_vgg16_training": "conv[12]_",
    "faster_rcnn_vgg16_training": "conv[12]_",
    "faster_rcnn_resnet50_training": "conv0|stage1|.*gamma|.*beta",
}
#: Outputs before any sorting; what comes after may differ where two scores are within rounding.
COMPARED = {
    "faster_rcnn_vgg16": 2,
    "faster_rcnn_resnet50": 2,
    "ssd_vgg16_training": 3,
    "faster_rcnn_vgg16_training": 2,
    "faster_rcnn_resnet50_training": 2,
}
#: Of training, gradients are compared as well: of the last convolution's weight, as earlier ones depend on
#: which of two entries within rounding a pooling window takes, and on which side of 0 one is; of detectors,
#: where the gradients of several losses come together, and in the layers behind the regions.
GRADIENTS = {
    "vgg16_training": ["conv5_3_weight"],
    "resnet50_training": ["stage4_2_c_weight"],
    "mobilenet_training": ["pointwise12_weight"],
    "ssd_vgg16_training": ["fc7_weight"],
    "faster_rcnn_vgg16_training": ["rpn_conv_3x3_weight", "cls_score_weight", "bbox_pred_weight"],
    "faster_rcnn_resnet50_training": ["rpn_conv_3x3_weight", "cls_score_weight"],
}


# -- one side, in a process of its own -----------------------------------------------------------------------


def bind(mx, net, name):
    """The network on arrays of its own, with weights and inputs that follow from their names' order."""
    training = name.endswith("_training")
    part = 2 if training else 1
    image = (300, 300) if name.startswith("ssd") else (HEIGHT // part, WIDTH // part)
    shapes = {"data": (1, 3, *image)}
    arguments = net.list_arguments()
    if "im_info" in arguments:
        shapes["im_info"] = (1, 3)
    if "gt_boxes" in arguments:
        shapes["gt_boxes"] = (1, 4, 5)
    if name.startswith("ssd"):
        shapes["label"] = (1, 5, 6)
    inputs = [*shapes, "label", "bbox_target", "bbox_weight"]
    frozen = FROZEN.get(name, "$")
    trained = [each for each in arguments if each not in inputs and not re.match(frozen, each)]
    requests = {each: "write" if training and each in trained else "null" for each in arguments}
    executor = net.simple_bind(mx.cpu(), grad_req=requests, **shapes)
    arrays = {**executor.arg_dict, **executor.aux_dict}
    all_shapes = {each: array.shape for each, array in arrays.items()}
    for array_name, value in values_of(net, name, all_shapes, inputs, set(executor.aux_dict), image).items():
        arrays[array_name][:] = value
    return executor


def values_of(net, name, shapes, inputs, aux, image):
    """A value for each array.

    Detectors that are trained have those of verify/zoo, where scores spread, and so has MobileNet: by the
    batch's own statistics, a deep network whose rectifiers are half off multiplies rounding errors.
    """
    if name in FROZEN or name == "mobilenet_training":
        zoo = importlib.import_module("inputs")
        picture = types.SimpleNamespace(name=name, image=image, family="")
        values = zoo.make_weights(net.tojson(), {k: v for k, v in shapes.items() if k not in inputs}, name)
        given = {each: shapes[each] for each in inputs if each in shapes}
        return {**values, **zoo.make_inputs(picture, given)}
    rng = np.random.RandomState(0)
    values = {}
    for array_name in sorted(set(shapes) - aux):
        value = rng.standard_normal(shapes[array_name]).astype(np.float32)
        if array_name.endswith("weight"):
            value *= np.sqrt(2 / np.prod(shapes[array_name][1:])).astype(np.float32)
        elif array_name != "data":
            value *= np.float32(0.1)
        if array_name.endswith("gamma"):
            value += np.float32(0.5)
        values[array_name] = np.float32([[*image, 1]]) if array_name == "im_info" else value
    for array_name in sorted(aux):
        values[array_name] = rng.uniform(0.5, 1.5, shapes[array_name]).astype(np.float32)
    return values


class Pass:
    """A forward of a network, or a step of its training. The results are what is compared."""

    def __init__(self, mx, net, name):
        self.mx, self.executor = mx, bind(mx, net, name)
        self.outputs = COMPARED.get(name, 1)
        self.training, self.has_losses = name.endswith("_training"), name in FROZEN
        self.trained = [each for each, array in self.executor.grad_dict.items() if array is not None]
        self.compared = [self.executor.grad_dict[each] for each in GRADIENTS.get(name, [])]
        # A rate so small that the steps do not change what they compute.
        rule = mx.optimizer.SGD(learning_rate=1e-9, momentum=0.9, wd=5e-4, clip_gradient=5)
        self.update = mx.optimizer.get_updater(rule)

    def __call__(self):
        executor = self.executor
        executor.forward(is_train=self.training)
        if self.training:
            # The gradient of half the sum of squares: it is 0 where rounding decides whether ReLU passes it.
            executor.backward(None if self.has_losses else [executor.outputs[0].copy()])
            gradients = [executor.grad_dict[each] for each in self.trained]
            weights = [executor.arg_dict[each] for each in self.trained]
            self.update(list(range(len(weights))), gradients, weights)
        self.mx.nd.waitall()
        return [each.asnumpy() for each in (*executor.outputs[: self.outputs], *self.compared)]


def work(library, name, folder):
    """Bind, write the results to ``folder``, then time one pass for each line of input."""
    sys.path.append(str(ZOO))
    mx = importlib.import_module(library)
    if name.startswith("faster_rcnn") and name.endswith("_training"):
        importlib.import_module("custom_ops").register(mx)
    net = NETWORKS[name](mx)
    if '"op": "Dropout"' in net.tojson():  # each library draws other numbers; what is compared is without it
        certain = re.sub(r'"p": "[0-9.]+"', '"p": "0"', net.tojson())
        results = Pass(mx, mx.sym.load_json(certain), name)()
        run = Pass(mx, net, name)
    else:
        run = Pass(mx, net, name)
        results = run()
    np.savez(Path(folder) / (library + ".npz"), *results)
    for _ in range(2):
        run()
    print("ready", flush=True)
    for _ in sys.stdin:
        start, cpu = time.perf_counter(), time.process_time()
        run()
        print(time.perf_counter() - start, time.process_time() - cpu, flush=True)


# -- both sides in turn --------------------------------------------------------------------------------------


def start(python, library, name, threads, folder):
    environment = dict(os.environ, PYTHONPATH=str(ROOT) if library == "roiops" else "")
    for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        environment[variable] = str(threads)
    command = [str(python), "-W", "ignore", __file__, "--worker", library, name, str(folder)]
    return subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment,
    )


def ask(process):
    process.stdin.write("go\n")
    process.stdin.flush()
    return tuple(map(float, process.stdout.readline().split()))


def await_ready(process):
    for line in process.stdout:
        if line.strip() == "ready":
            return
    raise SystemExit("a worker failed:\n" + process.stderr.read())


def disagreement(folder, name):
    """The worst relative difference of the outputs that are compared."""
    with np.load(folder / "roiops.npz") as ours, np.load(folder / "mxnet.npz") as theirs:
        worst = 0.0
        for key in theirs.files:
            a, b = ours[key], theirs[key]
            assert a.shape == b.shape, (name, key, a.shape, b.shape)
            worst = max(worst, float(np.abs(a - b).max() / np.abs(b).max()))
        return worst


def measure(name, threads, rounds, folder):
    processes = {
        "roiops": start(sys.executable, "roiops", name, threads, folder),
        "mxnet": start(PEER, "mxnet", name, threads, folder),
    }
    try:
        for process in processes.values():
            await_ready(process)
        difference = disagreement(folder, name)
        if difference > AGREEMENT:
            raise SystemExit(f"{name}: outputs differ by {difference:.1e} relative; nothing was timed")
        times = {library: [] for library in processes}
        for _ in range(rounds):
            for library, process in processes.items():
                times[library].append(ask(process))
    finally:
        for process in processes.values():
            process.kill()
            process.wait()
    wall = {library: [time for time, _ in pairs] for library, pairs in times.items()}
    cpu = {library: statistics.median(time for _, time in pairs) for library, pairs in times.items()}
    return {
        "network": name,
        "threads": threads,
        "difference": difference,
        "roiops_s": statistics.median(wall["roiops"]),
        "mxnet_s": statistics.median(wall["mxnet"]),
        # Of two passes in turn, so that what else the machine does weighs on both.
        "ratio": statistics.median(b / a for a, b in zip(wall["roiops"], wall["mxnet"], strict=True)),
        "roiops_cpu_s": cpu["roiops"],
        "mxnet_cpu_s": cpu["mxnet"],
        "cpu_ratio": cpu["mxnet"] / cpu["roiops"],
    }


def markdown(result):
    lines = [
        f"# Networks at 1x3x{HEIGHT}x{WIDTH} against MXNet 1.9.1 with oneDNN",
        "",
        "`python benchmarks/network.py`, {date}, {machine}, {versions}; forward, and for training a step "
        "(forward, backward, the update with momentum) at half the height and width, SSD at 300x300; median "
        "of {rounds} rounds that take turns. The ratio is the median over rounds of MXNet's time by ours; "
        "CPU time is that of all threads, waiting ones included. The difference is the worst of the outputs "
        "before any sorting, and of gradients of weights, relative to the largest entry. Load average of the "
        "machine during the run: {load:.1f}.".format(**result),
        "",
        "| network | threads | roiops | MXNet | ratio | roiops CPU | MXNet CPU | ratio | difference |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for row in result["rows"]:
        times = [f"{row[key] * 1e3:.0f} ms" for key in ("roiops_s", "mxnet_s", "roiops_cpu_s", "mxnet_cpu_s")]
        cells = [row["network"], str(row["threads"]), *times[:2], f"{row['ratio']:.2f}"]
        cells += [*times[2:], f"{row['cpu_ratio']:.2f}", f"{row['difference']:.1e}"]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=list(NETWORKS))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--worker", nargs=3, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(*options.worker)
        return
    if not PEER.exists():
        raise SystemExit("MXNet is not there; verify/peers.py sets it up")
    import tempfile

    import numba

    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for threads in options.threads:
            for name in options.networks:
                rows.append(measure(name, threads, options.rounds, Path(folder)))
                print({k: v if isinstance(v, str) else round(v, 7) for k, v in rows[-1].items()}, flush=True)
    result = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "versions": f"Python {platform.python_version()}, NumPy {np.__version__}, numba {numba.__version__}",
        "rounds": options.rounds,
        "load": os.getloadavg()[1],
        "rows": rows,
    }
    options.out.mkdir(exist_ok=True, parents=True)
    (options.out / "network.json").write_text(json.dumps(result, indent=1) + "\n")
    (options.out / "network.md").write_text(markdown(result))


if __name__ == "__main__":
    main()
