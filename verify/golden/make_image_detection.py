"""Images and boxes as MXNet's ImageDetIter changes and batches them: tests/golden/image_detection.npz."""

import json
import random as python_random
import tempfile
from pathlib import Path

import mxnet as mx
import numpy as np

from golden_format import GOLDEN, write_npz
from make_image import png

#: Heights and widths of the pictures, and how many objects are in each.
PICTURES = ((40, 56, 1), (33, 29, 3), (48, 48, 2), (26, 60, 4), (37, 41, 2))

#: What the augmenters of one iterator each are made with.
AUGMENTERS = {
    "plain": {},
    "crop": {"rand_crop": 0.8, "min_object_covered": [0.1, 0.5, 0.9], "area_range": (0.1, 1.0)},
    "pad": {"rand_pad": 0.8, "area_range": (0.1, 3.0), "pad_val": (127, 100.5, 20), "rand_mirror": True},
    "all": {
        "resize": 44,
        "rand_crop": 0.5,
        "rand_pad": 0.5,
        "rand_mirror": True,
        "mean": True,
        "std": True,
        "brightness": 0.1,
        "contrast": 0.1,
        "saturation": 0.1,
        "hue": 0.1,
        "pca_noise": 0.1,
        "rand_gray": 0.3,
        "inter_method": 1,
        "area_range": (0.1, 4.0),
        "min_eject_coverage": 0.5,
        "aspect_ratio_range": (0.2, 5),
        "min_object_covered": 0.5,
    },
}


def labels(random):
    """For each picture its label: 2 numbers of a header of 3, one more, and objects of 6 numbers."""
    found = []
    for _, _, count in PICTURES:
        objects = np.empty((count, 6))
        objects[:, 0] = random.randint(0, 5, count)
        objects[:, 1:3] = random.uniform(0, 0.5, (count, 2))
        objects[:, 3:5] = objects[:, 1:3] + random.uniform(0.1, 0.5, (count, 2))
        objects[:, 5] = random.randint(0, 2, count)
        found.append([3.0, 6.0, 0.5, *objects.ravel().tolist()])
    found[1][3 + 6 + 3] = 0.0  # the second object of the second picture has no area
    return found


def batches(folder, listed, last, options):
    """What three epochs of an iterator give."""
    python_random.seed(11)
    np.random.seed(11)  # noqa: NPY002
    iterator = mx.image.ImageDetIter(
        2,
        (3, 16, 20),
        path_root=folder,
        imglist=[[*label, f"{number}.png"] for number, label in enumerate(listed)],
        shuffle=True,
        last_batch_handle=last,
        **options,
    )
    found = {"shape": np.array(iterator.label_shape)}
    for epoch in range(3):
        count = 0
        for count, each in enumerate(iterator, 1):
            found[f"{epoch}_{count - 1}_data"] = each.data[0].asnumpy()
            found[f"{epoch}_{count - 1}_label"] = each.label[0].asnumpy()
            found[f"{epoch}_{count - 1}_pad"] = np.array(each.pad)
        found[f"{epoch}_count"] = np.array(count)
        iterator.reset()
    return found


def main():
    random = np.random.RandomState(3)
    listed = labels(random)
    meta = {"peer": "mxnet", "version": mx.__version__, "script": "make_image_detection.py"}
    arrays = {"meta": np.array(json.dumps(meta))}
    with tempfile.TemporaryDirectory() as folder:
        for number, (height, width, _) in enumerate(PICTURES):
            coarse = random.randint(0, 256, (height // 6 + 1, width // 6 + 1, 3))
            pixels = coarse.repeat(6, 0).repeat(6, 1)[:height, :width].astype(np.uint8)
            file = png(pixels)
            (Path(folder) / f"{number}.png").write_bytes(file)
            arrays[f"file_{number}"] = np.frombuffer(file, np.uint8)
            arrays[f"label_{number}"] = np.array(listed[number])
        for name, options in AUGMENTERS.items():
            last = "roll_over" if name == "crop" else "discard" if name == "plain" else "pad"
            arrays[f"options_{name}"] = np.array(json.dumps({"last_batch_handle": last, **options}))
            dumps = [each.dumps() for each in mx.image.CreateDetAugmenter((3, 16, 20), **options)]
            arrays[f"dumps_{name}"] = np.array(json.dumps(dumps))
            for key, value in batches(folder, listed, last, options).items():
                arrays[f"{name}_{key}"] = value
    write_npz(GOLDEN / "image_detection.npz", arrays)


if __name__ == "__main__":
    main()
