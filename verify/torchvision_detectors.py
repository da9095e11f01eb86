"""torchvision's Faster R-CNN and Mask R-CNN with our poolers in the place of theirs, step by step.

    python verify/torchvision_detectors.py              # compares, then times; needs torch and torchvision
    python verify/torchvision_detectors.py --no-timing

Each detector is built twice with the same random weights, and ``roiops.torch.replace_poolers`` is called on one of
the two. Losses and the gradients of all parameters of the first step are compared, then the losses of the training
steps and the weights after them, in float64, where a difference is the operator's and not that of the order of
sums. The last column is for comparison: how far apart torchvision is from itself when its images are moved by
1e-7 of their brightness. Timing is in float32: steps of the two detectors in turn, medians.
"""

import argparse
import copy
import statistics
import sys
import time
import warnings
from pathlib import Path

import torch
import torchvision

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from roiops.torch import replace_poolers  # noqa: E402

DETECTORS = {
    "Faster R-CNN": torchvision.models.detection.fasterrcnn_resnet50_fpn,
    "Mask R-CNN": torchvision.models.detection.maskrcnn_resnet50_fpn,
}
CLASSES, SIZE, STEPS, TOLERANCE = 4, 128, 10, 1e-5


def pictures(dtype, masks):
    """Two small images, each with two objects: bright rectangles on noise."""
    random = torch.Generator().manual_seed(1)
    images, targets = [], []
    for height, width in ((SIZE, SIZE), (SIZE - 16, SIZE)):
        image = torch.rand((3, height, width), generator=random, dtype=torch.float64)
        boxes = torch.tensor([[10.0, 12, 50, 60], [40, 30, 110, 100]], dtype=torch.float64)
        shapes = torch.zeros(2, height, width, dtype=torch.uint8)
        for i, (x1, y1, x2, y2) in enumerate(boxes.int().tolist()):
            image[i, y1:y2, x1:x2] += 1
            shapes[i, y1:y2, x1:x2] = 1
        target = {"boxes": boxes.to(dtype), "labels": torch.tensor([1, 2])}
        images.append(image.to(dtype))
        targets.append({**target, "masks": shapes} if masks else target)
    return images, targets


def build(name, dtype):
    """The detector with random weights, the same each time."""
    torch.manual_seed(0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the arguments' defaults
        model = DETECTORS[name](
            weights=None, weights_backbone=None, num_classes=CLASSES, min_size=SIZE, max_size=SIZE
        )
    return model.to(dtype).train()


class Trainer:
    """A detector that learns the same pictures again and again."""

    def __init__(self, name, model, dtype, shift=0.0):
        self.model = model
        images, self.targets = pictures(dtype, masks="Mask" in name)
        self.images = [image * (1 + shift) for image in images]
        self.optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)

    def backward(self) -> dict:
        """The losses of the next step, whose gradients the parameters then have."""
        torch.manual_seed(2)  # of the boxes and anchors that the losses are taken of
        self.optimizer.zero_grad()
        losses = self.model(self.images, copy.deepcopy(self.targets))
        sum(losses.values()).backward()
        return {name: loss.item() for name, loss in losses.items()}

    def step(self) -> dict:
        losses = self.backward()
        self.optimizer.step()
        return losses


def relative(one, other) -> float:
    """The largest difference of two tensors by the largest number in them."""
    size = max(one.abs().max().item(), other.abs().max().item())
    return (one - other).abs().max().item() / size if size else 0.0


def compare(name, steps) -> dict[str, tuple[float, float]]:
    """Differences of ours, and of torchvision with moved images, from torchvision."""
    theirs, ours, moved = (Trainer(name, build(name, torch.float64), torch.float64, s) for s in (0, 0, 1e-7))
    replaced = replace_poolers(ours.model)
    print(f"{name}: {replaced} pooler{'s' if replaced > 1 else ''} replaced")
    found = {"losses": [0.0, 0.0], "gradients": [0.0, 0.0], f"losses of {steps} steps": [0.0, 0.0]}
    found["weights after them"] = [0.0, 0.0]
    expected = theirs.backward()
    for i, other in enumerate((ours, moved)):
        losses = other.backward()
        found["losses"][i] = max(abs(losses[k] - expected[k]) / abs(expected[k]) for k in expected)
        pairs = zip(theirs.model.parameters(), other.model.parameters(), strict=True)
        found["gradients"][i] = max(relative(a.grad, b.grad) for a, b in pairs if a.grad is not None)
    for _ in range(steps):
        expected = theirs.step()
        for i, other in enumerate((ours, moved)):
            losses = other.step()
            worst = max(abs(losses[k] - expected[k]) / abs(expected[k]) for k in expected)
            found[f"losses of {steps} steps"][i] = max(found[f"losses of {steps} steps"][i], worst)
    for i, other in enumerate((ours, moved)):
        pairs = zip(theirs.model.parameters(), other.model.parameters(), strict=True)
        found["weights after them"][i] = max(relative(a.detach(), b.detach()) for a, b in pairs)
    return {what: tuple(values) for what, values in found.items()}


def milliseconds(name, rounds) -> dict[str, float]:
    """Medians of a training step of each detector, taken in turn."""
    trainers = {"torchvision": Trainer(name, build(name, torch.float32), torch.float32)}
    trainers["roiops"] = Trainer(name, build(name, torch.float32), torch.float32)
    replace_poolers(trainers["roiops"].model)
    times = {which: [] for which in trainers}
    for number in range(rounds + 1):
        for which, trainer in trainers.items():
            start = time.perf_counter()
            trainer.step()
            if number:  # the first compiles
                times[which].append(1e3 * (time.perf_counter() - start))
    return {which: statistics.median(each) for which, each in times.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--threads", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--no-timing", action="store_true")
    args = parser.parse_args()
    worst = 0.0
    for name in DETECTORS:
        for what, (ours, moved) in compare(name, args.steps).items():
            worst = max(worst, ours)
            print(f"  {what:22} {ours:8.1e}   (images moved by 1e-7: {moved:.1e})", flush=True)
    if not args.no_timing:
        for threads in args.threads:
            torch.set_num_threads(threads)
            for name in DETECTORS:
                found = milliseconds(name, args.rounds)
                print(
                    f"{name}, {threads} thread{'s' if threads > 1 else ''}: a training step takes "
                    f"{found['torchvision']:.0f} ms with torchvision's poolers, {found['roiops']:.0f} ms with ours",
                    flush=True,
                )
    if not worst <= TOLERANCE:
        raise SystemExit(f"a difference of {worst:.1e} is more than {TOLERANCE:.0e}")


if __name__ == "__main__":
    main()
