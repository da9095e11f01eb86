"""Run MXNet's own example/rcnn, unchanged, on roiops and on MXNet, and compare what they print.

    python verify/peers.py mxnet                               # MXNet 1.9.1
    pip install opencv-python-headless tqdm                    # what the scripts import, on both sides
    python verify/mxnet_rcnn.py MXNET_CHECKOUT                 # a checkout of MXNet at its tag 1.9.1
    python verify/mxnet_rcnn.py MXNET_CHECKOUT --networks vgg16 --keep runs   # goes on where it was ended

For each network: a VOC data set of generated pictures and a file of random weights are made;
``train.py --resume`` takes ten steps on either side from the same weights; ``test.py`` and ``demo.py`` use
what MXNet's training saved; ``train.py --pretrained`` starts on roiops as a user would. The losses of every
step must agree to 1e-4, and all printed lines to the same, speeds and times apart.

Rounding grows from step to step, in MXNet as here: a ReLU whose input is 0 but for rounding lets the gradient
pass or not, and the training chooses boxes by comparing numbers. So each step of roiops starts from the
weights that MXNet had before that step (about 6 GB of temporary files with VGG), and what it changes in them
is measured as well. Beside it stands by how much MXNet's own steps differ when they start from weights
changed by a millionth, which is what two ways to compute the same convolutions differ by. In the same way
MXNet says how far ten steps alone may lead.
Both sides seed NumPy before each step, and MXNet finishes a step before it reads the next picture: its engine
would otherwise draw boxes and shuffle pictures at once, from the same random numbers, in either order.
VGG's Dropout is off on both sides: the two libraries draw other masks.
"""

import argparse
import contextlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = 1e-4
NETWORKS = ("vgg16", "resnet50", "resnet101")
_CLASSES = ("bird", "car", "dog")
_COLOURS = ((40, 60, 220), (60, 200, 60), (220, 120, 40))
_PICTURES, _STEPS = 5, 10  # each picture is seen as it is and mirrored
#: Small pictures and few boxes, so that a step takes about a second.
_SIZE = ("--img-short-side", "144", "--img-long-side", "208", "--rpn-post-nms-topk", "100")
_TRAINING = (*_SIZE, "--rcnn-batch-rois", "8")

#: What the child process runs: seeds, then the script as it stands in the checkout. VGG's Dropout hands its
#: input on: the masks come from each library's own random numbers, and the two could not be compared.
#: With a folder for steps, "record" writes the weights there after each step. "follow" and "nudge" compare
#: what each step changes with what it changed there, and start the next step from the recorded weights.
_LAUNCH = """
import os, sys, runpy
import numpy as np

kind, mode, steps, *sys.argv = sys.argv[1:]
sys.path.insert(0, sys.argv[0].rpartition("/")[0])
if kind == "roiops":
    import roiops as mx
    from roiops.mxnet import as_mxnet
else:
    import mxnet as mx
mx.symbol.Dropout = lambda data, p=0.5, name=None: mx.symbol.identity(data, name=name)
np.random.seed(7)
nudges = np.random.RandomState(3)
Module, done, before, recorded = mx.mod.Module, [], {}, {}
forward_backward, update = Module.forward_backward, Module.update


def nudged(module):
    arg, aux = module.get_params()
    moved = {}
    for name, value in arg.items():
        start = value.asnumpy()
        moved[name] = mx.nd.array(start * (1 + 1e-6 * nudges.choice([-1, 1], start.shape)))
    module.set_params(moved, aux)


def compared(module):
    after = module.get_params()[0]
    wanted = mx.nd.load(f"{steps}/{len(done)}.params")
    apart = size = 0.0
    for name, start in recorded.items():
        change = wanted["arg:" + name].asnumpy() - start
        apart += np.square(after[name].asnumpy() - before[name] - change).sum(dtype=float)
        size += np.square(change).sum(dtype=float)
    print("STEP", len(done), np.sqrt(apart / size), file=sys.stderr)
    module.set_params(
        {name[4:]: value for name, value in wanted.items() if name.startswith("arg:")},
        {name[4:]: value for name, value in wanted.items() if name.startswith("aux:")},
    )


def weights_of(module):
    return {name: value.asnumpy().copy() for name, value in module.get_params()[0].items()}


def seeded_step(module, batch):
    np.random.seed(100 + len(done))
    if mode in ("follow", "nudge"):
        recorded.update(weights_of(module))
        if mode == "nudge":
            nudged(module)
        before.update(weights_of(module))
    forward_backward(module, batch)


def recorded_update(module):
    update(module)
    mx.nd.waitall()
    if mode == "record":
        arg, aux = module.get_params()
        named = {"arg:" + name: value for name, value in arg.items()}
        named.update({"aux:" + name: value for name, value in aux.items()})
        mx.nd.save(f"{steps}/{len(done)}.params", named)
    elif mode in ("follow", "nudge"):
        compared(module)
    done.append(1)


Module.forward_backward, Module.update = seeded_step, recorded_update
if kind == "roiops":
    as_mxnet.main(sys.argv)
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""


# -- data and weights ------------------------------------------------------------------------------------


def make_data(folder: Path) -> None:
    """The folders of PASCAL VOC 2007 with a few pictures of coloured boxes on noise."""
    import cv2

    rng = np.random.default_rng(0)
    voc = folder / "data" / "VOCdevkit" / "VOC2007"
    for name in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (voc / name).mkdir(parents=True)
    names = [f"{number:06d}" for number in range(_PICTURES)]
    for name in names:
        height, width = int(rng.integers(180, 240)), int(rng.integers(260, 330))
        picture = rng.integers(90, 166, (height, width, 3)).astype(np.uint8)
        objects = []
        for _ in range(int(rng.integers(1, 4))):
            kind = int(rng.integers(len(_CLASSES)))
            w, h = rng.integers(60, 130, 2)
            x, y = int(rng.integers(0, width - w)), int(rng.integers(0, height - h))
            picture[y : y + h, x : x + w] = _COLOURS[kind]
            objects.append((_CLASSES[kind], x + 1, y + 1, x + int(w), y + int(h)))
        cv2.imwrite(str(voc / "JPEGImages" / f"{name}.jpg"), picture)
        (voc / "Annotations" / f"{name}.xml").write_text(_annotation(width, height, objects))
    for split in ("trainval", "test"):
        (voc / "ImageSets" / "Main" / f"{split}.txt").write_text("".join(f"{name}\n" for name in names))
    (folder / "model").mkdir()


def _annotation(width, height, objects) -> str:
    boxes = "".join(
        f"<object><name>{name}</name><difficult>0</difficult><bndbox><xmin>{x1}</xmin><ymin>{y1}</ymin>"
        f"<xmax>{x2}</xmax><ymax>{y2}</ymax></bndbox></object>"
        for name, x1, y1, x2, y2 in objects
    )
    return f"<annotation><size><width>{width}</width><height>{height}</height></size>{boxes}</annotation>"


#: Makes ``full.params`` with all weights of a network's training graph, and ``base.params`` without the
#: heads, as a pretrained classifier would have them. Runs beside the checkout's own symbols.
_WEIGHTS = """
import sys
import numpy as np
import roiops
from roiops.mxnet import as_mxnet

as_mxnet.install()
as_mxnet.restore_former_names()
scripts, network, folder = sys.argv[1:]
sys.path.insert(0, scripts)
import train

sys.argv = ["train.py", "--network", network]
arguments = train.parse_args()
symbol = train.get_network(network, arguments)
shapes, _, aux_shapes = symbol.infer_shape(data=(1, 3, 240, 240), im_info=(1, 3), gt_boxes=(1, 100, 5))
rng = np.random.default_rng(1)
inputs = {"data", "im_info", "gt_boxes", "label", "bbox_target", "bbox_weight"}
params = {}
for name, shape in zip(symbol.list_arguments(), shapes):
    if name in inputs:
        continue
    if name.endswith("_gamma"):
        value = np.ones(shape)
    elif name.endswith(("_bias", "_beta")):
        value = np.zeros(shape)
    else:
        spread = 0.01 if name.startswith(("rpn_", "cls_score", "bbox_pred")) else np.prod(shape[1:]) ** -0.5
        # Residual branches add up; with half the size they do so without growing out of bounds.
        spread *= 0.5 if network != "vgg16" and "unit" in name else 1
        value = rng.standard_normal(shape, np.float32) * spread
    params["arg:" + name] = roiops.nd.array(value)
for name, shape in zip(symbol.list_auxiliary_states(), aux_shapes):
    value = np.ones(shape) if name.endswith("var") else np.zeros(shape)
    if name.startswith("bn_data"):  # the pictures' own mean and variance
        value = value * 3600 if name.endswith("var") else value + 128
    params["aux:" + name] = roiops.nd.array(value)
heads = ("rpn_", "cls_score", "bbox_pred")
base = {name: value for name, value in params.items() if not name[4:].startswith(heads)}
roiops.nd.save(folder + "/full.params", params)
nudged = {}
for name, value in params.items():
    nudge = 1 + 1e-6 * rng.choice(np.array([-1, 1]), value.shape)
    nudged[name] = roiops.nd.array(value.asnumpy() * nudge)
roiops.nd.save(folder + "/nudged.params", nudged)
roiops.nd.save(folder + "/base.params", base)
"""


# -- running ---------------------------------------------------------------------------------------------


class Side:
    """One of the two libraries: its interpreter, and a folder of its own with the same data."""

    def __init__(self, kind: str, python: str, path: str, folder: Path):
        self.kind, self.python, self.folder = kind, python, folder
        self.environment = {**os.environ, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}
        if not folder.exists():
            folder.mkdir(parents=True)
            make_data(folder)

    def log(self, name: str) -> Path:
        """What a run has printed; the file is there once the run has ended well."""
        return self.folder / f"{name}.log"

    def run(self, name: str, script: Path, *arguments: str, mode: str = "alone", steps="") -> list[str]:
        """What the script prints, with the logger's lines; of a run that is in the folder, its lines."""
        if not self.log(name).exists():
            print(f"{self.kind}: {name}", file=sys.stderr, flush=True)
            command = [self.python, "-c", _LAUNCH, self.kind, mode, str(steps), str(script), *arguments]
            done = subprocess.run(
                command, cwd=self.folder, env=self.environment, capture_output=True, text=True, check=False
            )
            if done.returncode:
                told = done.stderr[-3000:]
                raise SystemExit(f"{self.kind}: {script.name} {' '.join(arguments)} failed:\n{told}")
            # The order of the two streams among each other is the operating system's.
            self.log(name).write_text(done.stdout + done.stderr)
        return [line for line in self.log(name).read_text().splitlines() if line.strip()]


_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])")
_MEASURED = re.compile(r"Speed: [\d.]+ samples/sec|Time cost=[\d.]+|\d+%.*(?:it/s|s/it)\]|\d+/\d+ \[.*\]")


def comparable(lines: list[str]) -> list[str]:
    """The lines that a library is answerable for: no times, no messages of the engine, no progress bar."""
    kept = []
    for line in lines:
        if line.startswith("STEP"):
            continue
        line = _MEASURED.sub("", re.sub(r"'/[^']*/(roiops|mxnet|weights-\w+)/", "'", line)).strip("\r")
        if line.startswith("[") or "it/s" in line or "?it" in line or not line.strip():
            continue  # MXNet's C++ engine, and tqdm
        kept.append(line)
    return kept


def difference(ours: list[str], theirs: list[str]) -> str | None:
    """The first lines that differ by more than the tolerance, or None."""
    if len(ours) != len(theirs):
        return f"{len(ours)} lines, MXNet {len(theirs)}"
    for one, other in zip(ours, theirs, strict=True):
        if _NUMBER.sub("#", one) != _NUMBER.sub("#", other):
            return f"{one!r}, MXNet {other!r}"
        numbers = [np.array([float(n) for n in _NUMBER.findall(line)]) for line in (one, other)]
        if not np.allclose(*numbers, rtol=TOLERANCE, atol=TOLERANCE):
            return f"{one!r}, MXNet {other!r}"
    return None


def losses(lines: list[str]) -> dict[str, np.ndarray]:
    """Each metric at each step, from the running means that the speedometer prints."""
    means: dict[str, list[float]] = {}
    for line in lines:
        if "Batch [" in line:
            for name, value in re.findall(r"(\w+)=(-?[\d.]+|nan)", line):
                means.setdefault(name, []).append(float(value))
    return {name: np.array(values) for name, values in means.items()}


def apart(ours: list[str], theirs: list[str]) -> float:
    """The largest difference between the losses that two runs print."""
    one, other = losses(ours), losses(theirs)
    return max(float(np.max(np.abs(one[name] - other[name]))) for name in other)


def changes(lines: list[str]) -> float:
    """The largest difference between what a step changed in the weights and what it should have changed."""
    return max(float(line.split()[2]) for line in lines if line.startswith("STEP"))


def check(network: str, scripts: Path, ours: Side, theirs: Side) -> list[str]:
    """Compare all scripts for one network; gives the rows of the report."""
    weights = ours.folder / f"weights-{network}"
    if not (weights / "base.params").exists():
        weights.mkdir(exist_ok=True)
        subprocess.run(
            [ours.python, "-c", _WEIGHTS, str(scripts), network, str(weights)],
            env=ours.environment, cwd=ours.folder, check=True,
        )  # fmt: skip
    steps = ours.folder / f"steps-{network}"
    steps.mkdir(exist_ok=True)
    rows = []
    train = ("--network", network, *_TRAINING, "--epochs", "1", "--log-interval", "1")
    resume = (*train, "--resume", str(weights / "full.params"))

    def training(side, mode, *arguments):
        kept = "" if mode in ("record", "follow") else "-not-kept"  # the script prints the prefix
        prefix = ("--save-prefix", f"model/{network}{kept}")
        return side.run(
            f"{network}-{mode}", scripts / "train.py", *arguments, *prefix, mode=mode, steps=steps
        )

    other = training(theirs, "record", *resume)
    one = training(ours, "follow", *resume)
    change, bound = changes(one), changes(training(theirs, "nudge", *resume))
    shutil.rmtree(steps)
    printed = [comparable(lines) for lines in (one, other)]
    worst = apart(*printed)
    # The speedometer is silent after the first batch, so nine lines tell of ten steps.
    row = "train.py --resume, each step from equal weights"
    rows.append(_row(network, row, worst <= TOLERANCE, f"losses of each step to {worst:.1e}"))
    words = f"to {change:.1e} of itself; MXNet beside itself, from weights changed by 1e-6: {bound:.1e}"
    rows.append(f"| {network} | `train.py, what a step changes in the weights` | measured | {words} |")
    text = difference(*printed)
    rows.append(_row(network, "train.py, all lines", text is None, text or f"{len(printed[0])} lines"))

    alone = apart(comparable(training(ours, "alone", *resume)), printed[1])
    nudged = (*train, "--resume", str(weights / "nudged.params"))
    itself = apart(comparable(training(theirs, "nudged", *nudged)), printed[1])
    words = f"losses to {alone:.1e}; MXNet beside itself, from weights changed by 1e-6: {itself:.1e}"
    good = alone <= max(TOLERANCE, itself)
    rows.append(_row(network, "train.py --resume, ten steps alone", good, words))

    start = (*train, "--pretrained", str(weights / "base.params"))
    fresh = losses(training(ours, "pretrained", *start))
    finite = all(np.isfinite(values).all() for values in fresh.values())
    words = "runs; weights are drawn anew"
    rows.append(_row(network, "train.py --pretrained", finite and bool(fresh), words))

    saved = str(theirs.folder / "model" / f"{network}-0001.params")
    test = ("--network", network, *_SIZE, "--params", saved)
    picture = str(theirs.folder / "data" / "VOCdevkit" / "VOC2007" / "JPEGImages" / "000000.jpg")
    demo = (*test, "--image", picture, "--vis-thresh", "0.045")
    for script, arguments in (("test.py", test), ("demo.py", demo)):
        name = f"{network}-{script.removesuffix('.py')}"
        printed = [comparable(side.run(name, scripts / script, *arguments)) for side in (ours, theirs)]
        text = difference(*printed)
        rows.append(_row(network, script, text is None, text or f"{len(printed[0])} lines"))
    return rows


def _row(network, what, good, text) -> str:
    return f"| {network} | `{what}` | {'agrees' if good else 'DIFFERS'} | {text} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkout", type=Path, help="MXNet's sources, tag 1.9.1")
    parser.add_argument("--networks", nargs="+", choices=NETWORKS, default=NETWORKS)
    parser.add_argument("--mxnet-python", help="interpreter with MXNet, by default that of verify/peers.py")
    parser.add_argument("--mxnet-path", default="", help="folder with further packages for it (cv2, tqdm)")
    parser.add_argument("--keep", type=Path, help="a folder for what the scripts write and print")
    parser.add_argument("--markdown", type=Path, help="write the table here")
    options = parser.parse_args()
    scripts = options.checkout.resolve() / "example" / "rcnn"
    python = options.mxnet_python or _peer()
    rows = ["| network | script | | |", "|---|---|---|---|"]
    with contextlib.ExitStack() as stack:
        folder = options.keep or stack.enter_context(tempfile.TemporaryDirectory())
        ours = Side("roiops", sys.executable, str(ROOT), Path(folder) / "roiops")
        theirs = Side("mxnet", python, options.mxnet_path, Path(folder) / "mxnet")
        for network in options.networks:
            rows += check(network, scripts, ours, theirs)
            print("\n".join(rows[-7:]), flush=True)
    if options.markdown:
        options.markdown.write_text("\n".join(rows) + "\n", encoding="utf-8")
    if any("DIFFERS" in row for row in rows):
        raise SystemExit(1)


def _peer() -> str:
    command = [sys.executable, str(ROOT / "verify" / "peers.py"), "--python", "mxnet"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    main()
