"""Train detectors by GluonCV's own scripts, unchanged, under MXNet and under roiops, and compare the losses.

    python verify/peers.py gluoncv gluoncv-now            # once
    git clone https://github.com/dmlc/gluon-cv            # for its scripts
    python verify/check_gluoncv_training.py gluon-cv      # train_ssd.py and train_faster_rcnn.py
    python verify/check_gluoncv_training.py gluon-cv --only ssd

A small set of pictures is made in the layout of PASCAL VOC. Both sides begin with the same parameters, which
MXNet made; pictures are shuffled and changed at random by NumPy, with the script's seed. Faster R-CNN draws
its samples by random numbers of the framework, in whose place both sides get the same ones, and its pictures
are made smaller than 600 pixels. Both networks use no statistics of the batch: with those of a few pixels of
a few pictures, a random network multiplies rounding errors until no two programs agree. Accuracies may
differ by two of 128 samples: of 2,100 proposals, two whose scores are equal but for rounding may change
places, and then other samples are drawn.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import peers

ROOT = Path(__file__).resolve().parent.parent
WORKER = ROOT / "verify" / "zoo" / "training_worker.py"
TOLERANCE, OF_ACCURACY = 2e-3, 2 / 128  # logs have three decimals

#: The script, its arguments, and how many pictures each of two sets has.
SCRIPTS = {
    "ssd": (
        "scripts/detection/ssd/train_ssd.py",
        ("--network", "vgg16_atrous", "--data-shape", "300", "--batch-size", "1"),
        2,
    ),
    "faster_rcnn": (
        "scripts/detection/faster_rcnn/train_faster_rcnn.py",
        ("--network", "resnet50_v1b", "--batch-size", "1", "--kv-store", "local", "--val-interval", "9"),
        1,
    ),
}
_COMMON = ("--dataset", "voc", "--gpus", "", "--epochs", "1", "--log-interval", "1", "-j", "0")


def make_voc(folder: Path, pictures: int) -> None:
    """Pictures with rectangles of one colour, and where they are, as VOC has them."""
    from PIL import Image

    rng = np.random.default_rng(0)
    for year, split, count in (
        ("2007", "trainval", pictures),
        ("2012", "trainval", pictures),
        ("2007", "test", 2),
    ):
        base = folder / f"VOC{year}"
        for part in ("JPEGImages", "Annotations", "ImageSets/Main"):
            (base / part).mkdir(parents=True, exist_ok=True)
        names = []
        for i in range(count):
            name = f"{year}_{split}_{i}"
            names.append(name)
            pixels, objects = rng.integers(0, 60, (160, 220, 3)).astype(np.uint8), ""
            for _ in range(2):
                x, y = rng.integers(5, 100, 2)
                w, h = rng.integers(30, 55, 2)
                pixels[y : y + h, x : x + w] = rng.integers(100, 256, 3)
                corners = zip(("xmin", "ymin", "xmax", "ymax"), (x, y, x + w, y + h), strict=True)
                box = "".join(f"<{key}>{value}</{key}>" for key, value in corners)
                kind = rng.choice(["cat", "dog", "bird"])
                objects += (
                    f"<object><name>{kind}</name><difficult>0</difficult><bndbox>{box}</bndbox></object>"
                )
            Image.fromarray(pixels).save(base / "JPEGImages" / f"{name}.jpg", "PNG")  # without loss
            size = "<size><width>220</width><height>160</height><depth>3</depth></size>"
            text = f"<annotation>{size}{objects}</annotation>"
            (base / "Annotations" / f"{name}.xml").write_text(text)
        (base / "ImageSets" / "Main" / f"{split}.txt").write_text("".join(f"{name}\n" for name in names))


def run(side: str, script: Path, arguments, home: Path) -> list[dict]:
    """The losses that the script logs for each step."""
    python = peers.interpreter("gluoncv" if side == "mxnet" else "gluoncv-now")
    options = [] if side == "mxnet" else ["-m", "roiops.as_mxnet"]
    work = home / side
    work.mkdir(exist_ok=True)
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    environment.update(HOME=str(home), PYTHONPATH="" if side == "mxnet" else str(ROOT))
    environment["MXNET_SUBGRAPH_BACKEND"] = "NONE"  # fused, MXNet gets some networks wrong
    command = [str(python), *options, str(WORKER), str(script), *arguments]
    ended = subprocess.run(command, cwd=work, env=environment, capture_output=True, text=True)
    lines = [line for line in ended.stderr.splitlines() if re.search(r"\[Batch \d+\]", line)]
    if ended.returncode or not lines:
        print(ended.stdout[-2000:], ended.stderr[-4000:], sep="\n", file=sys.stderr)
        raise SystemExit(f"{side}: {script.name} ended with {ended.returncode}, {len(lines)} steps logged")
    pairs = [re.findall(r"(\w+)=([-\d.naif]+)", line.partition("samples/sec")[2]) for line in lines]
    return [{name: float(value) for name, value in each} for each in pairs]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="GluonCV's sources, for its scripts")
    parser.add_argument("--only", choices=SCRIPTS, help="one of the two")
    args = parser.parse_args()
    differ = False
    for name, (path, options, pictures) in SCRIPTS.items():
        if args.only not in (None, name):
            continue
        with tempfile.TemporaryDirectory() as folder:
            home, script = Path(folder), (args.checkout / path).resolve()
            make_voc(home / ".mxnet" / "datasets" / "voc", pictures)
            arguments = (*options, *_COMMON, "--resume", str(home / "begin.params"))
            sides = [run(side, script, arguments, home) for side in ("mxnet", "roiops")]
        for step, (expected, got) in enumerate(zip(*sides, strict=True)):
            for key, value in expected.items():
                most = OF_ACCURACY if key.endswith("Acc") else TOLERANCE * max(1, abs(value))
                differ |= not abs(got[key] - value) <= most
            print(f"{script.name}, step {step}: MXNet {expected}, roiops {got}")
    print("losses differ" if differ else "losses agree")
    return int(differ)


if __name__ == "__main__":
    sys.exit(main())
