"""Two ranks of one thread against one, and what to plan for more: the example's detector and ResNet-50.

  python benchmarks/ranks.py            # some ten minutes on a quiet machine of two cores

Writes benchmarks/results/ranks.md. Needs mpi4py, mpich and Pillow.
"""

import os
import subprocess
import sys
from pathlib import Path

from machine import RESULTS, processor

ROOT = Path(__file__).resolve().parents[1]
PLAN = ROOT / "examples" / "scale" / "plan_training.py"
CONFIGS = ROOT / "examples" / "rcnn" / "configs"
CASES = {
    "The example's detector, four pictures of 128 x 128 a rank": (
        CONFIGS / "shapes_faster_rcnn.yaml",
        ["--steps", "10", "--rounds", "12"],
    ),
    "Faster R-CNN with ResNet-50, one picture of 600 x 600 a rank": (
        CONFIGS / "voc_vgg16.yaml",
        ["--set", "network.backbone=resnet50", "--steps", "2", "--warm", "1", "--rounds", "5"],
    ),
}


def main() -> None:
    parts = ["# Ranks\n", f"{processor()}, {os.cpu_count()} cores; ranks of one thread.\n"]
    for title, (config, options) in CASES.items():
        command = [sys.executable, str(PLAN), str(config), "--measure", "2", *options]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
        print(f"{title}\n{done.stdout}", flush=True)
        parts.append(f"## {title}\n\n```\n{done.stdout.strip()}\n```\n")
    (RESULTS / "ranks.md").write_text("\n".join(parts))


if __name__ == "__main__":
    main()
