"""Pictures of record files as MXNet's ImageRecordIter and ImageDetRecordIter give them."""

import json
import tempfile
from pathlib import Path

import mxnet as mx
import numpy as np

from golden_format import GOLDEN, write_npz
from make_image import png

#: Heights and widths of the pictures.
PICTURES = ((20, 31), (27, 22), (24, 24), (33, 18), (19, 40))
SHAPE = (3, 12, 14)
#: What iterators are made with, where nothing depends on chance.
EXACT = {
    "middle": {},
    "enlarged": {"data_shape": (3, 36, 29)},
    "grey": {"data_shape": (1, 12, 14), "scale": 0.5},
    "mirror": {"mirror": True, "mean_r": 10.0, "mean_g": 20.5, "mean_b": 33.0, "std_g": 3.0, "scale": 0.25},
    "bytes": {"dtype": "uint8"},
    "signed": {"dtype": "int8", "mean_r": 100.5, "mean_g": 120.4, "mean_b": -3.5},
    "pad": {"pad": 9, "fill_value": 3, "data_shape": (3, 34, 34)},
    "crop": {"min_crop_size": 15, "max_crop_size": 15, "inter_method": 2},
    "smaller": {"max_random_scale": 0.8, "min_random_scale": 0.8},
    "stretched": {"max_aspect_ratio": 1.4, "min_aspect_ratio": 1.4},
    "limited": {"max_img_size": 16.0},
    "turned": {"rotate": 33, "fill_value": 7},
    "enlarged one way": {"data_shape": (3, 30, 14), "inter_method": 9},
    "filled by more than white": {"rotate": 33, "fill_value": 300},
    "filled by less than black": {"pad": 9, "fill_value": -4, "data_shape": (3, 34, 34)},
    **{f"resize {method}": {"resize": 17, "inter_method": method} for method in (0, 1, 2, 3, 4, 9)},
}
#: Colours changed by chance, by one kind of change each.
BY_CHANCE = {
    "hue": {"random_h": 36},
    "saturation": {"random_s": 50},
    "lightness": {"random_l": 50},
    "contrast": {"contrast": 0.4},
}
DETECTION = {
    "force": {},
    "shrink": {"resize_mode": "shrink"},
    "fit": {"resize_mode": "fit", "mean_r": 3.0, "mean_g": 4.0, "mean_b": 5.0, "std_r": 2.0, "scale": 0.5},
    "mirror": {"rand_mirror_prob": 1.0, "label_pad_width": 40, "label_pad_value": -7.0, "resize": 30},
}


def record_file(folder, name, random, label):
    """A record file and its index; the labels are those of a function of the number."""
    path = str(Path(folder, name))
    file = mx.recordio.MXIndexedRecordIO(path + ".idx", path + ".rec", "w")
    for number, (height, width) in enumerate(PICTURES):
        coarse = random.randint(0, 256, (5, 5, 3)).astype(np.uint8)
        pixels = mx.image.imresize(mx.nd.array(coarse, dtype="uint8"), width, height, 2).asnumpy()
        file.write_idx(number, mx.recordio.pack((0, label(number), number, 0), png(pixels)))
    file.close()
    return path


def boxes(number):
    objects = [[k, 0.1 + 0.1 * k, 0.2, 0.5 + 0.1 * k, 0.8] for k in range(1 + number % 3)]
    return np.concatenate([[2, 5], *objects])


def main():
    random = np.random.RandomState(5)
    arrays = {}
    with tempfile.TemporaryDirectory() as folder:
        path = record_file(folder, "labels", random, float)
        of_boxes = record_file(folder, "boxes", random, boxes)
        for name, file in (("labels", path), ("boxes", of_boxes)):
            for suffix in ("rec", "idx"):
                arrays[f"{name}.{suffix}"] = np.frombuffer(Path(f"{file}.{suffix}").read_bytes(), np.uint8)
        common = {"batch_size": len(PICTURES), "verbose": False, "data_shape": SHAPE, "preprocess_threads": 1}
        for name, options in {**EXACT, **BY_CHANCE}.items():
            batches = mx.io.ImageRecordIter(**{**common, "path_imgrec": path + ".rec", **options})
            data = next(batches).data[0].asnumpy()
            whole = data.dtype == np.float32 and (data == data.astype(np.uint8)).all()
            arrays[name] = data.astype(np.uint8) if whole else data
        for name, options in DETECTION.items():
            batches = mx.io.ImageDetRecordIter(**{**common, "path_imgrec": of_boxes + ".rec", **options})
            batch = next(batches)
            arrays["boxes " + name] = batch.data[0].asnumpy()
            arrays["label " + name] = batch.label[0].asnumpy()
        # Three epochs of batches of two: the labels of each batch, and how many fill it up.
        order = []
        batches = mx.io.ImageRecordIter(**{**common, "path_imgrec": path + ".rec", "batch_size": 2})
        for _ in range(3):
            order.append([(batch.label[0].asnumpy().tolist(), batch.pad) for batch in batches])
            batches.reset()
    known = {"exact": EXACT, "by chance": BY_CHANCE, "detection": DETECTION}
    meta = {
        "peer": "mxnet",
        "version": mx.__version__,
        "script": Path(__file__).name,
        "shape": SHAPE,
        **known,
    }
    arrays["meta"] = np.array(json.dumps({**meta, "order": order}))
    write_npz(GOLDEN / "records.npz", arrays)


if __name__ == "__main__":
    main()
