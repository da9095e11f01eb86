"""PASCAL VOC folders and COCO JSON files as lists of records."""

import json
import logging
import math
import xml.etree.ElementTree as ElementTree
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..config import Data

__all__ = ["DataError", "Record", "read_coco", "read_dataset", "read_voc"]


class DataError(ValueError):
    """An annotation is broken; the text names the file and the field."""


@dataclass(frozen=True)
class Record:
    """One image and its objects.

    ``boxes`` are rows ``x1, y1, x2, y2`` in pixels from 0, with the last pixel inside; ``classes`` are
    numbers from 1; ``difficult`` objects neither count as found nor as missed.
    """

    name: str
    image: Path
    width: int
    height: int
    boxes: np.ndarray
    classes: np.ndarray
    difficult: np.ndarray


_HINT = "data.root must be the folder of a data set (generate.py makes that of shapes)"


def read_dataset(data: Data, split: str) -> list[Record]:
    """The records of a split, in the order that the data set lists them."""
    return {"voc": read_voc, "coco": read_coco}[data.format](Path(data.root), split, data.classes)


def read_voc(root: Path, split: str, classes: list[str]) -> list[Record]:
    """``ImageSets/Main/<split>.txt`` names the images, ``Annotations/<name>.xml`` describes them."""
    listing = root / "ImageSets" / "Main" / f"{split}.txt"
    if not listing.is_file():
        raise DataError(f"{listing}: there is no such file; {_HINT}")
    names = [line.split()[0] for line in listing.read_text().splitlines() if line.strip()]
    return [_read_voc_image(root, name, classes) for name in names]


def _read_voc_image(root: Path, name: str, classes: list[str]) -> Record:
    path = root / "Annotations" / f"{name}.xml"
    try:
        tree = ElementTree.parse(path).getroot()
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file, though the split lists it") from None
    except ElementTree.ParseError as error:
        raise DataError(f"{path}: not XML: {error}") from None

    def text(parent, field, where):
        found = parent.find(field)
        if found is None or not (found.text or "").strip():
            raise DataError(f"{path}: {where}{field} is missing")
        return found.text.strip()

    def number(parent, field, where):
        value = text(parent, field, where)
        try:
            result = float(value)
        except ValueError:
            result = math.nan
        if not math.isfinite(result):
            raise DataError(f"{path}: {where}{field} must be a number, got {value!r}")
        return result

    width, height = (int(number(tree, f"size/{side}", "")) for side in ("width", "height"))
    objects = []
    for i, each in enumerate(tree.findall("object")):
        where = f"object[{i}]/"
        label = text(each, "name", where)
        if label not in classes:
            raise DataError(f"{path}: {where}name {label!r} is none of the classes: {', '.join(classes)}")
        box = [number(each, f"bndbox/{side}", where) - 1 for side in ("xmin", "ymin", "xmax", "ymax")]
        if box[2] < box[0] or box[3] < box[1]:
            raise DataError(
                f"{path}: {where}bndbox has its maximum before its minimum: {[v + 1 for v in box]}"
            )
        difficult = each.find("difficult")
        hard = difficult is not None and (difficult.text or "").strip() == "1"
        objects.append((box, classes.index(label) + 1, hard))
    return _record(name, _image_file(root / "JPEGImages", name, path), width, height, objects, path)


def _image_file(folder: Path, name: str, annotation: Path) -> Path:
    for suffix in (".jpg", ".jpeg", ".png", ".JPEG", ".JPG", ".PNG"):
        if (folder / f"{name}{suffix}").is_file():
            return folder / f"{name}{suffix}"
    raise DataError(f"{annotation}: its image {folder / name}.jpg (or .png) is missing")


def read_coco(root: Path, split: str, classes: list[str]) -> list[Record]:
    """``annotations/<split>.json`` describes the images of the folder ``<split>`` or ``images``."""
    path = root / "annotations" / f"{split}.json"
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise DataError(f"{path}: there is no such file; {_HINT}") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not JSON: {error}") from None

    def get(item, field, kind, where):
        if not isinstance(item, dict) or field not in item:
            raise DataError(f"{path}: {where}{field} is missing")
        if not isinstance(item[field], kind) or isinstance(item[field], bool):
            raise DataError(f"{path}: {where}{field} has a wrong value: {item[field]!r}")
        return item[field]

    numbers = {}
    for i, each in enumerate(get(content, "categories", list, "")):
        label = get(each, "name", str, f"categories[{i}]/")
        if label in classes:
            numbers[get(each, "id", int, f"categories[{i}]/")] = classes.index(label) + 1
    absent = set(range(1, len(classes) + 1)) - set(numbers.values())
    if absent:
        raise DataError(f"{path}: categories lack {', '.join(classes[i - 1] for i in sorted(absent))}")
    others = {get(each, "id", int, "categories/") for each in content["categories"]} - set(numbers)
    images = get(content, "images", list, "")
    objects = {get(each, "id", int, f"images[{i}]/"): [] for i, each in enumerate(images)}
    for i, each in enumerate(get(content, "annotations", list, "")):
        where = f"annotations[{i}]/"
        image, category = get(each, "image_id", int, where), get(each, "category_id", int, where)
        if image not in objects:
            raise DataError(f"{path}: {where}image_id {image} is no image of the file")
        if category in others:
            continue
        if category not in numbers:
            raise DataError(f"{path}: {where}category_id {category} is no category of the file")
        box = get(each, "bbox", list, where)
        if len(box) != 4 or not all(isinstance(v, int | float) and math.isfinite(v) for v in box):
            raise DataError(f"{path}: {where}bbox must be four numbers x, y, width, height, got {box}")
        x, y, width, height = box
        if width < 0 or height < 0:
            raise DataError(f"{path}: {where}bbox has a negative size: {box}")
        crowd = bool(each.get("iscrowd", 0))
        # Pixels are counted from 0 and the last one is inside; one of no size stays of no size.
        objects[image].append(([x, y, x + width - 1, y + height - 1], numbers[category], crowd))
    folder = root / split if (root / split).is_dir() else root / "images"
    records = []
    for i, each in enumerate(images):
        where = f"images[{i}]/"
        file = folder / get(each, "file_name", str, where)
        if not file.is_file():
            raise DataError(f"{path}: {where}file_name {file} is missing")
        width, height = get(each, "width", int, where), get(each, "height", int, where)
        records.append(_record(str(each["id"]), file, width, height, objects[each["id"]], path))
    return records


def _record(name, image, width, height, objects, path) -> Record:
    """A record with its boxes cut to the image; what is left of no area is dropped and said."""
    if width < 1 or height < 1:
        raise DataError(f"{path}: the size of {name} must be at least 1 x 1, got {width} x {height}")
    boxes = np.array([box for box, _, _ in objects], np.float32).reshape(-1, 4)
    boxes[:, 0::2] = np.clip(boxes[:, 0::2], -1, width)
    boxes[:, 1::2] = np.clip(boxes[:, 1::2], -1, height)
    # A box beside the image ends at -1 or begins at its width; one of no size ends before it begins.
    good = (boxes[:, 2] >= np.maximum(boxes[:, 0], 0)) & (boxes[:, 3] >= np.maximum(boxes[:, 1], 0))
    good &= (boxes[:, 0] < width) & (boxes[:, 1] < height)
    for i in np.flatnonzero(~good):
        logging.warning("%s: object %d of %s has no area inside the image and is left out", path, i, name)
    boxes = boxes[good]
    boxes[:, 0::2] = np.clip(boxes[:, 0::2], 0, width - 1)
    boxes[:, 1::2] = np.clip(boxes[:, 1::2], 0, height - 1)
    classes = np.array([number for _, number, _ in objects], np.int64)[good]
    difficult = np.array([hard for _, _, hard in objects], bool)[good]
    return Record(name, image, width, height, boxes, classes, difficult)
