"""The committed detector on pictures it has never seen: says where the result is. `make demo` runs this."""

import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from rcnn.data.shapes import draw_scene
from rcnn.detector import Detector
from rcnn.draw import draw_detections, montage, worth_drawing

PICTURES = 8


def main() -> int:
    start = time.perf_counter()
    detector = Detector.load(Path(__file__).parent / "rcnn" / "model")
    tiles, times, found, wanted = [], [], 0, 0
    for i in range(PICTURES):
        image, objects = draw_scene(np.random.default_rng([2024, i]))
        began = time.perf_counter()
        shown = worth_drawing(detector.detect(image))
        times.append(time.perf_counter() - began)
        found, wanted = found + len(shown), wanted + len(objects)
        tiles.append(draw_detections(image, shown, detector.config.data.classes, least_side=384))
    target = Path.cwd() / "build" / "demo.png"
    target.parent.mkdir(exist_ok=True)
    montage(tiles, columns=4).save(target)
    print(f"A Faster R-CNN looked at {PICTURES} generated pictures with {wanted} objects and marked {found}.")
    print(
        f"{1000 * np.median(times):.0f} ms a picture; the first took {max(times):.1f} s to compile kernels."
    )
    print(f"picture: {target}")
    print(f"{time.perf_counter() - start:.1f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
