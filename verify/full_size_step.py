"""Training steps of the published configurations at their real image sizes, on generated pictures.

    python verify/full_size_step.py                       # all three, each in a process of its own
    python verify/full_size_step.py voc_vgg16 --steps 3

Weights start at random, as no pretrained ones are at hand; a ResNet, whose batch normalisation is fixed, gets
the statistics of the pixels and small branches, or its activations would double with every unit. Losses must
be finite and all parameters that are trained must change. A line for each configuration: the images' size,
processor seconds of a step after the first, peak memory.
"""

import argparse
import json
import math
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

import numpy as np  # noqa: E402
from rcnn.config import load  # noqa: E402
from rcnn.data import read_dataset, shapes  # noqa: E402
from rcnn.trainer import LOSSES, Trainer  # noqa: E402

CONFIGS = ("voc_vgg16", "voc_rfcn_resnet50", "coco_resnet101")
#: Widths and heights that most pictures of these data sets have.
SIZES = {"voc": (500, 375), "coco": (640, 480)}


def write_pictures(root: Path, data, split: str, count: int) -> None:
    """Generated shapes under the names of the data set's first classes."""
    shapes.write_dataset(root, {split: count}, size=SIZES[data.format])
    names = dict(zip(shapes.CLASSES, data.classes, strict=False))
    for path in (root / "Annotations").glob("*.xml"):
        text = path.read_text()
        for shape, name in names.items():
            text = text.replace(f"<name>{shape}</name>", f"<name>{name}</name>")
        path.write_text(text)
    path = root / "annotations" / f"{split}.json"
    coco = json.loads(path.read_text())
    coco["categories"] = [{"id": i, "name": name} for i, name in enumerate(data.classes, start=1)]
    path.write_text(json.dumps(coco))


def calm(module) -> dict:
    """Make a ResNet's activations keep their size; the arguments that training starts from."""
    args, aux = module.get_params()
    for name, array in args.items():
        if name.endswith("conv3_weight"):
            array *= 0.1
    if "bn_data_moving_mean" in aux:
        aux["bn_data_moving_mean"][:], aux["bn_data_moving_var"][:] = 118, 60**2
    module.set_params(args, aux)
    return {name: array.asnumpy() for name, array in args.items()}


def fixed(config, name: str) -> bool:
    return any(re.match(pattern, name) for pattern in config.network.fixed)


def run(name: str, steps: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder) / "data"
        config = load(ROOT / "examples" / "rcnn" / "configs" / f"{name}.yaml", [f"data.root={root}"])
        write_pictures(root, config.data, config.data.train_split, steps)
        records = read_dataset(config.data, config.data.train_split)
        trainer = Trainer(config, records, Path(folder) / "run")
        before = calm(trainer.module)
        seconds = []
        for _ in range(steps):
            start = time.process_time()
            trainer.train_step()
            seconds.append(time.process_time() - start)
        after = trainer.module.get_params()[0]
        trained = [key for key in before if not fixed(config, key)]
        still = [key for key in trained if np.array_equal(before[key], after[key].asnumpy())]
        shape = trainer.module.data_shapes[0].shape
        parts = ", ".join(
            f"{part} {value:.3f}" for part, value in zip(LOSSES, trainer.history[-1], strict=True)
        )
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{name}: {'x'.join(map(str, shape))}, {len(trained)} arrays trained; {parts}; "
            f"{statistics.median(seconds[1:]):.1f} s of one core a step, peak {peak:.1f} GiB",
            flush=True,
        )
        if not all(map(math.isfinite, np.ravel(trainer.history))):
            raise SystemExit(f"{name}: a loss is not finite")
        if still:
            raise SystemExit(f"{name}: these did not change: {', '.join(still)}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "configs", nargs="*", metavar="config", help=f"of {', '.join(CONFIGS)} (default: all)"
    )
    parser.add_argument("--steps", type=int, default=3, help="training steps (default: %(default)s)")
    options = parser.parse_args()
    names = options.configs or list(CONFIGS)
    if len(names) == 1:
        run(names[0], options.steps)
        return 0
    for name in names:  # the peak of memory is that of a process
        subprocess.run([sys.executable, __file__, name, "--steps", str(options.steps)], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
