"""Images as MXNet's mx.image reads, resizes and crops them: tests/golden/image.npz."""

import json
import random as python_random
import struct
import tempfile
import zlib
from pathlib import Path

import mxnet as mx
import numpy as np

from golden_format import GOLDEN, write_npz

PHOTOGRAPH = GOLDEN.parent.parent / "docs" / "images" / "photograph.jpg"
SIZES = ((23, 31), (7, 5), (13, 16), (40, 12), (9, 11), (18, 20))


def png(pixels):
    """The bytes of a PNG file; the peer's environment has nothing that writes one."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    head = chunk(b"IHDR", struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(lines)) + chunk(b"IEND", b"")


def bmp(pixels):
    """The bytes of a BMP file."""
    height, width, _ = pixels.shape
    lines = np.zeros((height, -(-3 * width // 4) * 4), np.uint8)
    lines[:, : 3 * width] = pixels[::-1, :, ::-1].reshape(height, -1)
    head = struct.pack("<I2i2H6I", 40, width, height, 1, 24, 0, lines.size, 0, 0, 0, 0)
    return b"BM" + struct.pack("<3I", 54 + lines.size, 0, 54) + head + lines.tobytes()


def augmented(image):
    """What each augmenter makes of an image, every one after the same seeds."""
    image = image.astype("float32")
    chosen = {
        "resize": mx.image.ResizeAug(9, 1),
        "force": mx.image.ForceResizeAug((11, 12), 1),
        "crop": mx.image.RandomCropAug((8, 6), 1),
        "sized": mx.image.RandomSizedCropAug((8, 6), (0.2, 0.8), (0.5, 2), 1),
        "centre": mx.image.CenterCropAug((8, 6), 1),
        "brightness": mx.image.BrightnessJitterAug(0.4),
        "contrast": mx.image.ContrastJitterAug(0.4),
        "saturation": mx.image.SaturationJitterAug(0.4),
        "hue": mx.image.HueJitterAug(0.4),
        "colour": mx.image.ColorJitterAug(0.4, 0.3, 0.2),
        "lighting": mx.image.LightingAug(
            0.5, np.array([55.46, 4.794, 1.148]), np.arange(9).reshape(3, 3) / 9
        ),
        "grey": mx.image.RandomGrayAug(0.9),
        "flip": mx.image.HorizontalFlipAug(0.9),
    }
    found = {}
    for name, augmenter in chosen.items():
        python_random.seed(5)
        np.random.seed(5)  # noqa: NPY002
        found["augment_" + name] = augmenter(image.copy())
        found["dumps_" + name] = np.array(json.dumps(augmenter.dumps()))
    first = mx.nd.transpose(image, (2, 0, 1))
    both = mx.nd.stack(first, first * 0.5)
    found["rotated"] = mx.image.imrotate(first, 20)
    for zoom in ("zoom_in", "zoom_out"):
        found["rotated_" + zoom] = mx.image.imrotate(both, mx.nd.array([15, -40]), **{zoom: True})
    np.random.seed(5)  # noqa: NPY002
    found["rotated_at_random"] = mx.image.random_rotate(both, (-30, 30))
    blocks = mx.gluon.data.vision.transforms
    found["rotated_block"] = blocks.Rotate(-25, zoom_out=True)(both)
    maybe = blocks.RandomRotation((-30, 30), zoom_in=True, rotate_with_proba=0.6)
    for number in range(4):
        found[f"rotated_block_at_random_{number}"] = maybe(first)
    return found


def batch(file):
    """The first batches of an iterator that cuts and mirrors at random, from five files of one picture."""
    with tempfile.TemporaryDirectory() as folder:
        for number in range(5):
            (Path(folder) / f"{number}.png").write_bytes(file)
        python_random.seed(7)
        batches = mx.image.ImageIter(
            2,
            (3, 10, 9),
            path_root=folder,
            imglist=[[number, f"{number}.png"] for number in range(5)],
            shuffle=True,
            aug_list=mx.image.CreateAugmenter(
                (3, 10, 9), resize=12, rand_crop=True, rand_mirror=True, mean=True, std=True
            ),
        )
        found = {}
        for epoch in range(2):
            for number, each in enumerate(batches):
                found[f"batch_{epoch}_{number}_data"] = each.data[0]
                found[f"batch_{epoch}_{number}_label"] = each.label[0]
            batches.reset()
    return found


def of_nd_image(image):
    """What ``nd.image`` makes of a picture; factors whose limits are one number leave nothing to chance."""
    ops, found = mx.nd.image, {}
    for kind in ("uint8", "float32"):
        data = image.astype(kind)
        made = {
            "brightness": ops.random_brightness(data, 1.5, 1.5),
            "contrast": ops.random_contrast(data, 1.5, 1.5),
            "hue": ops.random_hue(data, 1.2, 1.2),
            "light": ops.adjust_lighting(data, (0.1, 0.2, -0.3)),
            "resize": ops.resize(data, (9, 5)),
            "resize_square": ops.resize(data, 9, interp=2),
            "resize_shorter": ops.resize(data, 9, True),
            "resize_batch": ops.resize(mx.nd.stack(data, data).swapaxes(1, 2), 9, True),
        }
        found.update({f"nd_{name}_{kind}": each for name, each in made.items()})
    return found


def main():
    random = np.random.RandomState(0)
    pixels = random.randint(0, 256, (5, 7, 3)).repeat(3, 0).repeat(2, 1)
    pixels = np.clip(pixels + random.randint(-20, 20, pixels.shape), 0, 255).astype(np.uint8)
    file = png(pixels)
    image = mx.image.imdecode(file)
    meta = {"peer": "mxnet", "version": mx.__version__, "script": "make_image.py"}
    arrays = {
        "meta": np.array(json.dumps(meta)),
        "file": np.frombuffer(file, np.uint8),
        "rgb": image,
        "bgr": mx.image.imdecode(file, to_rgb=False),
        "grey": mx.image.imdecode(file, flag=0),
        "grey_bmp": mx.image.imdecode(bmp(pixels), flag=0),
        "grey_jpeg": mx.image.imread(str(PHOTOGRAPH), flag=0)[100:130, 200:240],
        "short": mx.image.resize_short(image, 10),
    }
    for width, height in SIZES:
        for interp in (0, 1, 2, 3, 4, 9):
            key = f"{width}x{height}_{interp}"
            if interp < 9:
                arrays["size_" + key] = mx.image.imresize(image, width, height, interp)
            if interp < 4:
                arrays["float_" + key] = mx.image.imresize(image.astype("float32"), width, height, interp)
            arrays["fixed_" + key] = mx.image.fixed_crop(image, 1, 2, 12, 10, (width, height), interp)
        lanczos = mx.image.imresize(image.astype("float32"), width, height, 4)
        arrays[f"lanczos_{width}x{height}"] = lanczos
    for width, height in ((7, 5), (20, 10)):
        part, place = mx.image.center_crop(image, (width, height))
        arrays[f"crop_{width}x{height}"] = part
        arrays[f"place_{width}x{height}"] = np.array(place)
    mean, std = mx.nd.array([123.0, 117.0, 104.0]), mx.nd.array([58.0, 57.0, 59.0])
    arrays["normal"] = mx.image.color_normalize(image.astype("float32"), mean, std)
    arrays.update(augmented(image))
    arrays.update(batch(file))
    arrays.update(of_nd_image(image))
    write_npz(
        GOLDEN / "image.npz",
        {key: a.asnumpy() if isinstance(a, mx.nd.NDArray) else a for key, a in arrays.items()},
    )


if __name__ == "__main__":
    main()
