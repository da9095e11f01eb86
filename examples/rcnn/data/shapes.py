"""Pictures of textured shapes and digits on cluttered backgrounds, drawn from a seed."""

import json
import math
from pathlib import Path
from xml.sax.saxutils import escape

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

__all__ = ["CLASSES", "draw_scene", "write_dataset"]

CLASSES = ("disc", "square", "triangle", "star", "cross", "two", "four", "seven")

#: Strokes of the digits within a unit square, x to the right and y down.
_DIGITS = {
    "two": [(0.1, 0.28), (0.25, 0.06), (0.7, 0.04), (0.88, 0.28), (0.7, 0.5), (0.1, 0.94), (0.92, 0.94)],
    "four": [(0.72, 0.97), (0.72, 0.03), (0.06, 0.66), (0.96, 0.66)],
    "seven": [(0.06, 0.06), (0.92, 0.06), (0.36, 0.97)],
}
_SUPERSAMPLING = 4


def draw_scene(generator: np.random.Generator, size=(128, 128), most_objects=5):
    """A picture and what is on it.

    Parameters
    ----------
    generator : numpy.random.Generator
        Decides everything.
    size : (int, int)
        Width and height.
    most_objects : int
        At most so many objects; now and then there is none.

    Returns
    -------
    image : PIL.Image
    objects : list of (class name, (x1, y1, x2, y2))
        Boxes hold all pixels of the object that are at least half covered; the last pixel is inside.
    """
    width, height = size
    canvas = _background(generator, width, height)
    objects = []
    count = 0 if generator.random() < 0.03 else int(generator.integers(1, most_objects + 1))
    for _ in range(count):
        name = CLASSES[generator.integers(len(CLASSES))]
        for _attempt in range(20):
            side = int(np.exp(generator.uniform(math.log(20), math.log(60))))
            mask = _mask(generator, name, side)
            x = int(generator.integers(-side // 8, max(1, width - mask.shape[1] + side // 8)))
            y = int(generator.integers(-side // 8, max(1, height - mask.shape[0] + side // 8)))
            placed = np.zeros((height, width), np.float32)
            _paste(placed, mask, x, y)
            rows, columns = np.flatnonzero((placed >= 0.5).any(1)), np.flatnonzero((placed >= 0.5).any(0))
            if len(rows) < 12 or len(columns) < 12:
                continue
            box = (int(columns[0]), int(rows[0]), int(columns[-1]), int(rows[-1]))
            if all(_overlap(box, other) < 0.1 for _, other in objects):
                texture = _texture(generator, width, height, canvas[placed > 0.5].mean(0))
                canvas = canvas * (1 - placed[..., None]) + texture * placed[..., None]
                objects.append((name, box))
                break
    canvas += generator.normal(0, generator.uniform(2, 9), canvas.shape)
    image = Image.fromarray(np.clip(canvas, 0, 255).astype(np.uint8))
    if generator.random() < 0.3:
        image = image.filter(ImageFilter.GaussianBlur(generator.uniform(0.3, 0.8)))
    return image, objects


def _overlap(one, other):
    """The part of the smaller box that the two share."""
    width = min(one[2], other[2]) - max(one[0], other[0]) + 1
    height = min(one[3], other[3]) - max(one[1], other[1]) + 1
    areas = [(box[2] - box[0] + 1) * (box[3] - box[1] + 1) for box in (one, other)]
    return max(width, 0) * max(height, 0) / min(areas)


def _paste(target, mask, x, y):
    """Copy ``mask`` into ``target`` where the two meet."""
    top, left = max(0, y), max(0, x)
    bottom, right = min(target.shape[0], y + mask.shape[0]), min(target.shape[1], x + mask.shape[1])
    if top < bottom and left < right:
        target[top:bottom, left:right] = mask[top - y : bottom - y, left - x : right - x]


def _smooth(generator, width, height, cells):
    """Noise whose blobs are an image's side over ``cells`` wide, between 0 and 1."""
    small = generator.random((cells, cells)).astype(np.float32)
    return np.asarray(Image.fromarray(small).resize((width, height), Image.Resampling.BICUBIC))


def _background(generator, width, height):
    """Blobs of colour, with lines and scraps that look like pieces of objects."""
    low, high = (generator.uniform(20, 235, 3) for _ in range(2))
    blend = _smooth(generator, width, height, int(generator.integers(3, 9)))[..., None]
    canvas = low + (high - low) * blend
    canvas += (_smooth(generator, width, height, 24)[..., None] - 0.5) * generator.uniform(10, 70)
    image = Image.fromarray(np.clip(canvas, 0, 255).astype(np.uint8))
    draw = ImageDraw.Draw(image)
    for _ in range(int(generator.integers(4, 16))):
        x, y = generator.uniform(0, (width, height))
        dx, dy = generator.normal(0, 14, 2)
        colour = tuple(int(v) for v in generator.uniform(0, 255, 3))
        kind = generator.integers(3)
        if kind == 0:
            draw.line([(x, y), (x + 2 * dx, y + 2 * dy)], fill=colour, width=int(generator.integers(1, 4)))
        elif kind == 1:
            box = [x - abs(dx) / 2, y - abs(dy) / 2, x + abs(dx) / 2, y + abs(dy) / 2]
            draw.arc(box, *sorted(generator.uniform(0, 360, 2)), fill=colour, width=2)
        else:
            radius = generator.uniform(1, 4)
            draw.ellipse([x - radius, y - radius, x + radius, y + radius], fill=colour)
    return np.asarray(image).astype(np.float32)


def _texture(generator, width, height, behind):
    """Stripes, checks, noise or a gradient in two colours that stand out from what is behind."""
    while True:
        first = generator.uniform(0, 255, 3)
        if np.abs(first - behind).mean() > 55:
            break
    second = np.clip(first + generator.uniform(-60, 60, 3), 0, 255)
    y, x = np.mgrid[:height, :width].astype(np.float32)
    angle, period = generator.uniform(0, math.pi), generator.uniform(5, 12)
    along = x * math.cos(angle) + y * math.sin(angle)
    across = y * math.cos(angle) - x * math.sin(angle)
    kind = generator.integers(4)
    if kind == 0:
        blend = 0.5 + 0.5 * np.sin(along * 2 * math.pi / period)
    elif kind == 1:
        blend = ((np.floor(along / period) + np.floor(across / period)) % 2).astype(np.float32)
    elif kind == 2:
        blend = _smooth(generator, width, height, 20)
    else:
        blend = (along - along.min()) / np.ptp(along)
    return (first + (second - first) * blend[..., None]).astype(np.float32)


def _mask(generator, name, side):
    """The outline of an object as coverage between 0 and 1, turned at random, smooth at its edge."""
    space = int(side * 1.5) * _SUPERSAMPLING
    image = Image.new("L", (space, space))
    draw = ImageDraw.Draw(image)
    stretch = generator.uniform(0.8, 1.25)
    half = side * _SUPERSAMPLING / 2 * np.array([math.sqrt(stretch), 1 / math.sqrt(stretch)])
    digit = name in _DIGITS
    angle = generator.uniform(-0.3, 0.3) if digit else generator.uniform(0, 2 * math.pi)
    turn = np.array([[math.cos(angle), -math.sin(angle)], [math.sin(angle), math.cos(angle)]])

    def place(points):
        points = np.asarray(points) * half
        return [tuple(p) for p in points @ turn.T + space / 2]

    def circle(count, radii):
        phase = np.arange(count) * 2 * math.pi / count
        return np.stack([np.sin(phase), -np.cos(phase)], 1) * np.resize(radii, count)[:, None]

    if digit:
        points = place((np.array(_DIGITS[name]) - 0.5) * (1.4, 1.8))
        thick = max(2, int(side * _SUPERSAMPLING * generator.uniform(0.15, 0.22)))
        draw.line(points, fill=255, width=thick, joint="curve")
        for px, py in points:
            draw.ellipse([px - thick / 2, py - thick / 2, px + thick / 2, py + thick / 2], fill=255)
    elif name == "cross":
        arm = generator.uniform(0.28, 0.4)
        quarter = [(-arm, -1), (arm, -1), (arm, -arm), (1, -arm), (1, arm), (arm, arm)]
        draw.polygon(place(quarter + [(-a, -b) for a, b in quarter]), fill=255)
    else:
        outline = {
            "disc": circle(64, [0.95]),
            "square": circle(4, [1.15]),
            "triangle": circle(3, [1.15]),
            "star": circle(10, [1.1, 0.45]),
        }[name]
        draw.polygon(place(outline), fill=255)
    small = image.resize((space // _SUPERSAMPLING,) * 2, Image.Resampling.BOX)
    coverage = np.asarray(small, np.float32) / 255
    rows, columns = np.flatnonzero(coverage.any(1)), np.flatnonzero(coverage.any(0))
    return coverage[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def write_dataset(root, splits: dict[str, int], seed=0, size=(128, 128)) -> None:
    """Write pictures and their annotations, as a PASCAL VOC folder and as COCO JSON beside it.

    Parameters
    ----------
    root : str or Path
        The folder to make.
    splits : dict of str to int
        How many pictures each split has.
    seed : int
        Decides all pictures.
    """
    root = Path(root)
    for folder in ("JPEGImages", "Annotations", "ImageSets/Main", "annotations"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    # COCO's readers look for images here; both formats share the files.
    images = root / "images"
    if not images.exists():
        images.symlink_to("JPEGImages", target_is_directory=True)
    for number, (split, count) in enumerate(splits.items()):
        names, coco = [], {"images": [], "annotations": [], "categories": []}
        coco["categories"] = [{"id": i, "name": name} for i, name in enumerate(CLASSES, start=1)]
        for index in range(count):
            image, objects = draw_scene(np.random.default_rng([seed, number, index]), size)
            name = f"{split}_{index:05d}"
            image.save(root / "JPEGImages" / f"{name}.jpg", quality=92)
            (root / "Annotations" / f"{name}.xml").write_text(_voc_xml(name, size, objects), encoding="utf-8")
            names.append(name)
            coco["images"].append(
                {"id": index, "file_name": f"{name}.jpg", "width": size[0], "height": size[1]}
            )
            for label, (x1, y1, x2, y2) in objects:
                width, height = x2 - x1 + 1, y2 - y1 + 1
                coco["annotations"].append(
                    {
                        "id": len(coco["annotations"]) + 1,
                        "image_id": index,
                        "category_id": CLASSES.index(label) + 1,
                        "bbox": [x1, y1, width, height],
                        "area": width * height,
                        "iscrowd": 0,
                    }
                )
        (root / "ImageSets" / "Main" / f"{split}.txt").write_text("\n".join(names) + "\n")
        (root / "annotations" / f"{split}.json").write_text(json.dumps(coco))


def _voc_xml(name, size, objects) -> str:
    """One picture's annotation; VOC counts pixels from 1."""
    parts = [
        f"<annotation>\n  <filename>{escape(name)}.jpg</filename>",
        f"  <size><width>{size[0]}</width><height>{size[1]}</height><depth>3</depth></size>",
    ]
    for label, box in objects:
        corners = zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
        bounds = "".join(f"<{side}>{value + 1}</{side}>" for side, value in corners)
        parts.append(
            f"  <object><name>{escape(label)}</name><difficult>0</difficult>"
            f"<bndbox>{bounds}</bndbox></object>"
        )
    return "\n".join([*parts, "</annotation>\n"])
