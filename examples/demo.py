"""The committed detector on pictures it has never seen: says where the result is. `make demo` runs this.

It draws a box around each object whose score is high enough. The least score is chosen so that, of all boxes
on the held-out pictures, 95% were right. A box that is wrong all the same says so.
"""

import subprocess
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

import numpy as np
from rcnn.data.shapes import CLASSES, draw_scene
from rcnn.detector import Detector, least_score
from rcnn.draw import draw_detections, montage, worth_drawing
from rcnn.evaluate import right

MODEL = Path(__file__).parent / "rcnn" / "model"
#: The same network as a saved graph.
GRAPH = Path(__file__).parent / "archived" / "shapes-symbol.json"
PICTURES = 8


def compile_kernels() -> None:
    """Compile what the detector needs in a process for each core; what is on disk already is only read."""
    shapes = ["--shape", "data=1,3,128,128", "--shape", "im_info=1,3"]
    subprocess.run([sys.executable, "-m", "roiops", "warmup", str(GRAPH), *shapes], check=True)


def main() -> int:
    start = time.perf_counter()
    compile_kernels()
    compiled = time.perf_counter() - start
    detector, score = Detector.load(MODEL), least_score(MODEL)
    tiles, times, hits, wanted = [], [], [], 0
    for i in range(PICTURES):
        image, objects = draw_scene(np.random.default_rng([2024, i]))
        began = time.perf_counter()
        shown = worth_drawing(detector.detect(image), score)
        times.append(time.perf_counter() - began)
        labels = np.array([CLASSES.index(label) + 1 for label, _ in objects], int)
        is_right = right(shown, CLASSES, np.array([box for _, box in objects], float), labels)
        hits, wanted = hits + is_right, wanted + len(objects)
        notes = ["" if hit else "wrong" for hit in is_right]
        tiles.append(draw_detections(image, shown, CLASSES, least_side=384, notes=notes))
    target = Path.cwd() / "build" / "demo.png"
    target.parent.mkdir(exist_ok=True)
    montage(tiles, columns=4).save(target)
    print(f"A Faster R-CNN looked at {PICTURES} generated pictures with {wanted} objects.")
    print(
        f"With a score of {score:.2f} or more it found {len(hits)}: {sum(hits)} right, "
        f"{len(hits) - sum(hits)} wrong; it missed {wanted - sum(hits)}."
    )
    print(f"{1000 * np.median(times):.0f} ms a picture; compiling the kernels took {compiled:.1f} s before.")
    print(f"picture: {target}")
    print(f"{time.perf_counter() - start:.1f} s in all")
    return 0


if __name__ == "__main__":
    sys.exit(main())
