"""Draw docs/images/photograph.jpg: what an archived MXNet model sees in a photograph.

    git clone https://github.com/1996scarlet/faster-mobile-retinaface
    pip download --no-deps scikit-image && unzip scikit_image-*.whl skimage/data/astronaut.png
    python tools/make_photograph.py faster-mobile-retinaface/weights/16and32 skimage/data/astronaut.png

The model is a RetinaFace of 353 thousand numbers that MXNet 1.5.1 saved, with its own weights; it is under
the GPL v3, and nothing of it is in this repository. The photograph is NASA's portrait of Eileen Collins, in
the public domain, as scikit-image carries it.
"""

import argparse
from pathlib import Path

import numpy as np
from PIL import Image

import roiops as mx
from roiops.models.detections import Detection
from roiops.models.drawing import draw
from roiops.models.outputs import Reading

TARGET = Path(__file__).resolve().parent.parent / "docs" / "images" / "photograph.jpg"
#: Sides of a cell's two anchors, by the pixels between cells; their centre is 7.5 from the cell's corner.
ANCHORS = {32: (512, 256), 16: (128, 64)}


def faces(model, pixels, least=0.6):
    """Rows (score, x1, y1, x2, y2), best first, of a picture of RGB values."""
    found = []
    outputs = model(pixels.transpose(2, 0, 1)[None].astype(np.float32))
    for (stride, sides), probability, delta in zip(ANCHORS.items(), outputs[::2], outputs[1::2], strict=True):
        score = probability.asnumpy()[0, 2:]  # background of both anchors, then face of both
        dx, dy, dw, dh = delta.asnumpy()[0].reshape(2, 4, *score.shape[1:]).transpose(1, 0, 2, 3)
        side = np.array(sides, np.float32)[:, None, None]
        y, x = np.indices(score.shape[1:]) * stride + 7.5
        x, y, width, height = x + dx * side, y + dy * side, np.exp(dw) * side - 1, np.exp(dh) * side - 1
        corners = x - width / 2, y - height / 2, x + width / 2, y + height / 2
        found.append(np.stack([score, *corners], -1).reshape(-1, 5))
    rows = mx.nd.array(np.concatenate(found))
    kept = mx.nd.contrib.box_nms(
        rows, overlap_thresh=0.4, valid_thresh=least, coord_start=1, score_index=0, id_index=-1
    ).asnumpy()
    return kept[kept[:, 0] > 0]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", help="what the names of the model's files begin with")
    parser.add_argument("photograph", help="astronaut.png")
    options = parser.parse_args()
    image = Image.open(options.photograph).convert("RGB")
    rows = faces(mx.models.load(options.model), np.asarray(image))
    for score, *box in rows:
        print(f"face {score:.3f}: {', '.join(f'{v:.1f}' for v in box)}")
    found = [Detection(0, 0, float(score), tuple(map(float, box))) for score, *box in rows]
    draw(image, Reading(detections=found, names=["face"])).save(TARGET, quality=90)
    print(f"{TARGET}: {TARGET.stat().st_size >> 10} KiB")


if __name__ == "__main__":
    main()
