"""Find objects in pictures: a picture with boxes, labels and scores for each, and one JSON for all."""

import argparse
import json
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from PIL import Image

import roiops as mx
from rcnn.config import ConfigError
from rcnn.data.image import open_image
from rcnn.detector import Detector, least_score
from rcnn.draw import draw_detections, worth_drawing

PICTURES = {ending for ending, kind in Image.registered_extensions().items() if kind in Image.OPEN}


def pictures_of(paths) -> list[Path]:
    """The files named, and the pictures in the folders named."""
    found = []
    for path in map(Path, paths):
        if path.is_dir():
            found += sorted(each for each in path.iterdir() if each.suffix.lower() in PICTURES)
        else:
            found.append(path)
    return found


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("images", nargs="+", help="pictures, or folders of pictures, of any size")
    parser.add_argument(
        "--model",
        default=str(Path(__file__).parent / "model"),
        help="a folder that train.py wrote (default: the committed one, which knows shapes and digits)",
    )
    parser.add_argument("--out", default="detections", help="the folder to write to (default: %(default)s)")
    parser.add_argument(
        "--score", type=float, help="least score to draw (default: the one that test.py found, or 0.5)"
    )
    parser.add_argument("--count", type=int, metavar="N", help="only the first N pictures")
    parser.add_argument("--gpu", type=int, metavar="N", help="run on this GPU rather than on the CPU")
    options = parser.parse_args(arguments)
    out = Path(options.out)
    found = {}
    try:
        context = mx.cpu() if options.gpu is None else mx.gpu(options.gpu)
        detector = Detector.load(options.model, context)
        score = least_score(options.model) if options.score is None else options.score
        paths = pictures_of(options.images)[: options.count]
        if not paths:
            print(f"demo.py: no pictures in {', '.join(options.images)}", file=sys.stderr)
            return 1
        for path in paths:
            image = open_image(path)
            start = time.perf_counter()
            detections = detector.detect(image)
            took = time.perf_counter() - start
            shown = worth_drawing(detections, score)
            drawn = draw_detections(image, shown, detector.config.data.classes)
            target = out / f"{path.stem}.png"
            out.mkdir(parents=True, exist_ok=True)  # not before there is something to put there
            drawn.save(target)
            print(f"{path.name}: {len(shown)} objects in {1000 * took:.0f} ms -> {target}")
            found[path.name] = [
                {"label": d.label, "score": round(d.score, 4), "box": [round(v, 2) for v in d.box]}
                for d in detections
            ]
    except (ConfigError, OSError, mx.MXNetError) as error:
        print(f"demo.py: {error}", file=sys.stderr)
        return 1
    (out / "detections.json").write_text(json.dumps(found, indent=1) + "\n")
    print(f"all boxes: {out / 'detections.json'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
