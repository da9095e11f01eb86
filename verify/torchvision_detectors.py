"""torchvision's Faster R-CNN and Mask R-CNN with our poolers in the place of theirs, step by step.

    python verify/torchvision_detectors.py              # compares, then times; needs torch and torchvision
    python verify/torchvision_detectors.py --no-timing
    python verify/torchvision_detectors.py --times-only 2       # a step of each with two threads

Each detector (ResNet-18 with a feature pyramid, random weights) is built twice alike, and one of the two is
given to ``roiops.torch.replace_poolers``. Losses and the gradients of all parameters are compared, then the
losses of ten training steps and the weights after them. That is done in float64, where a difference is the
operator's and not that of the order of sums. Timing is in float32, of one picture of 600 x 800, 512 boxes:
steps of both in turn, medians. With more than one thread it is done twice: with our kernels in PyTorch's own
threads, as is usual, and with threads of their own (numba's layer "workqueue"), which wait beside PyTorch's.
"""

import argparse
import copy
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

import torch
from torchvision.models.detection import FasterRCNN, MaskRCNN
from torchvision.models.detection.backbone_utils import resnet_fpn_backbone

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from roiops.torch import replace_poolers

DETECTORS = {"Faster R-CNN": FasterRCNN, "Mask R-CNN": MaskRCNN}
CLASSES, STEPS, TOLERANCE = 4, 10, 1e-5
#: Heights and widths of the pictures: small ones to compare, one of a usual size to time.
SMALL, USUAL = ((64, 64), (48, 64)), ((600, 800),)


def pictures(sizes, dtype, masks):
    """Images with two objects each: bright rectangles on noise."""
    random = torch.Generator().manual_seed(1)
    images, targets = [], []
    for height, width in sizes:
        image = torch.rand((3, height, width), generator=random, dtype=torch.float64)
        boxes = torch.tensor([[4, 6, 28, 34], [25, 20, 60, 46]]) * (height // 48)
        shapes = torch.zeros(2, height, width, dtype=torch.uint8)
        for i, (x1, y1, x2, y2) in enumerate(boxes.tolist()):
            image[i, y1:y2, x1:x2] += 1
            shapes[i, y1:y2, x1:x2] = 1
        target = {"boxes": boxes.to(dtype), "labels": torch.tensor([1, 2])}
        images.append(image.to(dtype))
        targets.append({**target, "masks": shapes} if masks else target)
    return images, targets


def build(name, sizes, dtype, boxes):
    """The detector with random weights, the same each time; its heads see ``boxes`` boxes of an image."""
    torch.manual_seed(0)
    backbone = resnet_fpn_backbone(backbone_name="resnet18", weights=None, trainable_layers=5)
    sides = [side for size in sizes for side in size]
    model = DETECTORS[name](
        backbone, CLASSES, min_size=min(sizes[0]), max_size=max(sides), box_batch_size_per_image=boxes,
        rpn_pre_nms_top_n_train=4 * boxes, rpn_post_nms_top_n_train=2 * boxes,
    )  # fmt: skip
    return model.to(dtype).train()


class Trainer:
    """A detector that learns the same pictures again and again."""

    def __init__(self, name, sizes, dtype, boxes):
        self.model = build(name, sizes, dtype, boxes)
        self.images, self.targets = pictures(sizes, dtype, masks="Mask" in name)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3, momentum=0.9)

    def backward(self) -> dict:
        """The losses, whose gradients the parameters then have."""
        torch.manual_seed(2)  # which boxes and anchors the losses are taken of
        self.optimizer.zero_grad()
        losses = self.model(self.images, copy.deepcopy(self.targets))
        sum(losses.values()).backward()
        return {name: loss.item() for name, loss in losses.items()}

    def step(self) -> dict:
        losses = self.backward()
        self.optimizer.step()
        return losses


def apart(one, other) -> float:
    """The largest difference of two tensors, by the largest number in them."""
    size = max(one.abs().max().item(), other.abs().max().item())
    return (one - other).abs().max().item() / size if size else 0.0


def losses_apart(one, other) -> float:
    return max(abs(one[name] - other[name]) / abs(one[name]) for name in one)


def compare(name, steps) -> dict[str, float]:
    """How far the detector with our poolers is from the one with torchvision's."""
    theirs, ours = (Trainer(name, SMALL, torch.float64, 32) for _ in range(2))
    count = replace_poolers(ours.model)
    print(f"{name}: {count} of torchvision's modules replaced", flush=True)
    found = {"losses": losses_apart(theirs.backward(), ours.backward())}
    pairs = list(zip(theirs.model.parameters(), ours.model.parameters(), strict=True))
    found["gradients"] = max(apart(a.grad, b.grad) for a, b in pairs if a.grad is not None)
    found[f"losses of {steps} steps"] = max(losses_apart(theirs.step(), ours.step()) for _ in range(steps))
    found["weights after them"] = max(apart(a.detach(), b.detach()) for a, b in pairs)
    return found


def milliseconds(name, rounds) -> dict[str, float]:
    """Medians of a training step of each detector, taken in turn."""
    trainers = {which: Trainer(name, USUAL, torch.float32, 512) for which in ("torchvision", "roiops")}
    replace_poolers(trainers["roiops"].model)
    times = {which: [] for which in trainers}
    for number in range(rounds + 1):
        for which, trainer in trainers.items():
            start = time.perf_counter()
            trainer.step()
            if number:  # the first compiles
                times[which].append(1e3 * (time.perf_counter() - start))
    return {which: statistics.median(each) for which, each in times.items()}


def print_times(threads, rounds) -> None:
    """Print what a training step of each detector takes."""
    torch.set_num_threads(threads)
    for name in DETECTORS:
        found = milliseconds(name, rounds)
        print(
            f"  {name}: {found['torchvision']:.0f} ms with torchvision's poolers, "
            f"{found['roiops']:.0f} ms with ours",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--no-timing", action="store_true")
    parser.add_argument("--times-only", type=int, metavar="THREADS", help="times in this process")
    args = parser.parse_args()
    if args.times_only:
        print_times(args.times_only, args.rounds)
        return
    worst = 0.0
    for name in DETECTORS:
        for what, difference in compare(name, args.steps).items():
            worst = max(worst, difference)
            print(f"  {what:20} {difference:.1e}", flush=True)
    if not args.no_timing:
        for threads in args.threads:
            for layer in ("omp", "workqueue") if threads > 1 else ("omp",):
                whose = {"omp": "PyTorch's threads", "workqueue": "threads of its own"}[layer]
                words = f"{threads} threads, roiops in {whose}" if threads > 1 else "1 thread"
                print(f"A training step, one picture of 600 x 800, {words}:", flush=True)
                command = [sys.executable, __file__, "--times-only", str(threads)]
                environment = {**os.environ, "NUMBA_THREADING_LAYER": layer}
                subprocess.run(
                    [*command, "--rounds", str(args.rounds)], check=True, env=environment
                )  # fmt: skip
    if not worst <= TOLERANCE:
        raise SystemExit(f"a difference of {worst:.1e} is more than {TOLERANCE:.0e}")


if __name__ == "__main__":
    main()
