"""Readers of both formats, what they refuse, and the generator."""

import json
import logging
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from rcnn.config import Data
from rcnn.data import DataError, TrainLoader, read_dataset
from rcnn.data.image import open_image, prepare, stack
from rcnn.data.shapes import CLASSES, draw_scene, write_dataset

CAT_AND_DOG = ["cat", "dog"]


def test_both_formats_say_the_same(shapes):
    pairs = [
        read_dataset(Data(format=name, root=str(shapes), classes=list(CLASSES)), "train")
        for name in ("voc", "coco")
    ]
    assert len(pairs[0]) == 10
    for voc, coco in zip(*pairs, strict=True):
        assert voc.image.resolve() == coco.image.resolve()
        assert (voc.width, voc.height) == (coco.width, coco.height) == (96, 64)
        np.testing.assert_array_equal(voc.boxes, coco.boxes)
        np.testing.assert_array_equal(voc.classes, coco.classes)
    assert sum(len(record.boxes) for record in pairs[0]) > 10


def test_pictures_follow_from_the_seed(tmp_path):
    first, objects = draw_scene(np.random.default_rng([1, 2]))
    again, same = draw_scene(np.random.default_rng([1, 2]))
    assert objects == same
    assert np.array_equal(np.asarray(first), np.asarray(again))
    for folder in ("a", "b"):
        write_dataset(tmp_path / folder, {"train": 2}, seed=3)
    contents = [
        {each.name: each.read_bytes() for each in (tmp_path / folder).rglob("*.*") if each.is_file()}
        for folder in ("a", "b")
    ]
    assert contents[0] == contents[1]
    assert len(contents[0]) == 6


def test_boxes_lie_in_the_picture_and_are_not_tiny():
    for seed in range(6):
        _, objects = draw_scene(np.random.default_rng(seed))
        for _, (x1, y1, x2, y2) in objects:
            assert 0 <= x1 <= x2 < 128
            assert 0 <= y1 <= y2 < 128
            assert min(x2 - x1, y2 - y1) >= 9


def voc_folder(root: Path, objects="", size="<width>20</width><height>10</height>") -> Path:
    for folder in ("JPEGImages", "Annotations", "ImageSets/Main"):
        (root / folder).mkdir(parents=True, exist_ok=True)
    Image.new("RGB", (20, 10)).save(root / "JPEGImages" / "a.png")
    (root / "ImageSets" / "Main" / "train.txt").write_text("a\n")
    text = f"<annotation><size>{size}</size>{objects}</annotation>"
    (root / "Annotations" / "a.xml").write_text(text)
    return root


def voc_object(name="cat", box=(1, 2, 5, 6), extra=""):
    sides = zip(("xmin", "ymin", "xmax", "ymax"), box, strict=True)
    inner = "".join(f"<{side}>{value}</{side}>" for side, value in sides)
    return f"<object><name>{name}</name>{extra}<bndbox>{inner}</bndbox></object>"


def read_voc(root):
    return read_dataset(Data(format="voc", root=str(root), classes=CAT_AND_DOG), "train")


def test_voc_counts_from_one_and_knows_difficult_objects(tmp_path):
    objects = voc_object() + voc_object("dog", (3, 3, 20, 10), "<difficult>1</difficult>")
    record = read_voc(voc_folder(tmp_path, objects))[0]
    assert record.boxes.tolist() == [[0, 1, 4, 5], [2, 2, 19, 9]]
    assert record.classes.tolist() == [1, 2]
    assert record.difficult.tolist() == [False, True]


def test_an_image_without_objects(tmp_path):
    record = read_voc(voc_folder(tmp_path))[0]
    assert record.boxes.shape == (0, 4)
    assert record.classes.shape == (0,)


def test_boxes_that_leave_the_image_are_cut_and_empty_ones_dropped(tmp_path, caplog):
    boxes = ((-3, -3, 5, 5), (15, 5, 99, 99), (30, 1, 40, 9))
    objects = "".join(voc_object(box=box) for box in boxes)
    with caplog.at_level(logging.WARNING):
        record = read_voc(voc_folder(tmp_path, objects))[0]
    assert record.boxes.tolist() == [[0, 0, 4, 4], [14, 4, 19, 9]]
    assert "a.xml: object 2 of a has no area inside the image and is left out" in caplog.text


@pytest.mark.parametrize(
    ("objects", "size", "message"),
    [
        (voc_object("bird"), None, r"a.xml: object\[0\]/name 'bird' is none of the classes: cat, dog"),
        (voc_object() + "<object/>", None, r"a.xml: object\[1\]/name is missing"),
        (voc_object(box=(1, 2, "x", 6)), None, r"object\[0\]/bndbox/xmax must be a number, got 'x'"),
        (voc_object(box=(1, 2, "nan", 6)), None, r"object\[0\]/bndbox/xmax must be a number, got 'nan'"),
        (voc_object(box=(9, 2, 3, 6)), None, r"bndbox has its maximum before its minimum: \[9.0, 2.0, 3.0"),
        ("", "<width>20</width>", r"a.xml: size/height is missing"),
        ("", "<width>20</width><height>0</height>", r"the size of a must be at least 1 x 1, got 20 x 0"),
        ("<object>", None, r"a.xml: not XML"),
    ],
)
def test_broken_voc_annotations(tmp_path, objects, size, message):
    root = voc_folder(tmp_path, objects, size or "<width>20</width><height>10</height>")
    with pytest.raises(DataError, match=message):
        read_voc(root)


def test_missing_voc_files(tmp_path):
    with pytest.raises(DataError, match=r"train.txt: there is no such file"):
        read_voc(tmp_path)
    root = voc_folder(tmp_path)
    (root / "JPEGImages" / "a.png").unlink()
    with pytest.raises(DataError, match=r"a.xml: its image .*a.jpg \(or .png\) is missing"):
        read_voc(root)
    (root / "Annotations" / "a.xml").unlink()
    with pytest.raises(DataError, match=r"a.xml: there is no such file, though the split lists it"):
        read_voc(root)


def coco_folder(root: Path, **changes) -> Path:
    (root / "annotations").mkdir(parents=True, exist_ok=True)
    (root / "images").mkdir(exist_ok=True)
    Image.new("RGB", (20, 10)).save(root / "images" / "a.png")
    content = {
        "images": [{"id": 7, "file_name": "a.png", "width": 20, "height": 10}],
        "categories": [{"id": 3, "name": "dog"}, {"id": 9, "name": "cat"}, {"id": 4, "name": "tree"}],
        "annotations": [
            {"id": 1, "image_id": 7, "category_id": 9, "bbox": [0, 1, 5, 5]},
            {"id": 2, "image_id": 7, "category_id": 3, "bbox": [15.5, 4, 99, 99], "iscrowd": 1},
            {"id": 3, "image_id": 7, "category_id": 4, "bbox": [0, 0, 5, 5]},
            {"id": 4, "image_id": 7, "category_id": 9, "bbox": [3, 3, 0, 5]},
        ],
    }
    content.update(changes)
    (root / "annotations" / "train.json").write_text(json.dumps(content))
    return root


def read_coco(root):
    return read_dataset(Data(format="coco", root=str(root), classes=CAT_AND_DOG), "train")


def test_coco(tmp_path, caplog):
    """Categories by name, others passed over, sizes to last pixels, boxes of no size dropped."""
    record = read_coco(coco_folder(tmp_path))[0]
    assert record.name == "7"
    assert record.boxes.tolist() == [[0, 1, 4, 5], [15.5, 4, 19, 9]]
    assert record.classes.tolist() == [1, 2]
    assert record.difficult.tolist() == [False, True]
    assert "has no area inside the image and is left out" in caplog.text


def annotation(**changes):
    return {"annotations": [{"id": 1, "image_id": 7, "category_id": 9, "bbox": [0, 1, 5, 5], **changes}]}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (annotation(bbox=[1, 2, 3]), r"annotations\[0\]/bbox must be four numbers .*, got \[1, 2, 3\]"),
        (annotation(bbox="x"), r"annotations\[0\]/bbox has a wrong value: 'x'"),
        (annotation(bbox=[0, 0, -1, 5]), r"annotations\[0\]/bbox has a negative size"),
        (annotation(image_id=8), r"annotations\[0\]/image_id 8 is no image of the file"),
        (annotation(category_id=5), r"annotations\[0\]/category_id 5 is no category of the file"),
        ({"annotations": [{}]}, r"annotations\[0\]/image_id is missing"),
        ({"images": [{"id": 7, "width": 20, "height": 10}]}, r"images\[0\]/file_name is missing"),
        (
            {"images": [{"id": 7, "file_name": "b.png", "width": 20, "height": 10}]},
            r"images\[0\]/file_name .*b.png is missing",
        ),
        ({"categories": [{"id": 9, "name": "cat"}]}, r"train.json: categories lack dog"),
        ({"images": 3}, r"train.json: images has a wrong value: 3"),
    ],
)
def test_broken_coco_annotations(tmp_path, changes, message):
    with pytest.raises(DataError, match=message):
        read_coco(coco_folder(tmp_path, **changes))


def test_broken_coco_files(tmp_path):
    with pytest.raises(DataError, match=r"train.json: there is no such file"):
        read_coco(tmp_path)
    root = coco_folder(tmp_path)
    (root / "annotations" / "train.json").write_text('{"images": [')
    with pytest.raises(DataError, match=r"train.json: not JSON"):
        read_coco(root)


@pytest.mark.parametrize("mode", ["RGB", "L", "RGBA", "P", "CMYK", "1", "LA", "I;16"])
def test_pictures_of_every_kind(tmp_path, mode):
    path = tmp_path / ("a.jpg" if mode == "CMYK" else "a.png")
    Image.new(mode, (33, 21)).save(path)
    image = open_image(path)
    assert (image.mode, image.size) == ("RGB", (33, 21))


def test_sizes_and_padding():
    data = Data(short_side=64, long_side=100, mean=[0.0, 0.0, 0.0], scale=255.0, classes=["a"])
    pixels, factor = prepare(Image.new("RGB", (32, 16), "white"), data)
    assert pixels.shape == (3, 50, 100)  # the long side decides
    assert factor == 100 / 32
    assert pixels.max() == 1
    batch = stack([pixels, pixels[:, :20, :20]], 16)
    assert batch.shape == (2, 3, 64, 112)
    assert batch[0, :, 50:].max() == 0
    tiny, _ = prepare(Image.new("RGB", (4000, 1)), data)
    assert tiny.shape == (3, 1, 100)


def test_loader_order_depends_on_seed_and_epoch_alone(load_config):
    config = load_config()
    records = read_dataset(config.data, "train")

    def batches(*where):
        loader = TrainLoader(records, config, 8, lambda height, width: (height // 8, width // 8))
        loader.start(*where)
        return list(loader)

    epoch, rest = batches(1), batches(1, 3)
    assert (len(epoch), len(rest)) == (5, 2)
    for one, other in zip(epoch[3:], rest, strict=True):
        for a, b in zip(one.data + one.label, other.data + other.label, strict=True):
            np.testing.assert_array_equal(a, b)
    assert not np.array_equal(batches(0)[0].data[0], epoch[0].data[0])


def test_mirrored_pictures_carry_their_boxes(load_config):
    config = load_config("shapes_faster_rcnn", "data.flip=true")
    records = read_dataset(config.data, "train")
    loader = TrainLoader(records, config, 8, lambda height, width: (height // 8, width // 8))
    seen = set()
    for epoch in range(6):
        loader.start(epoch)
        for batch in loader:
            for pixels, truth in zip(batch.data[0], batch.data[2], strict=True):
                for x1, y1, x2, y2, number in truth:
                    if number:
                        seen.add((round(float(pixels.sum())), float(x1), float(y1), float(x2), float(y2)))
    # Each object is seen at one place or at the mirrored one, and some at both.
    places = {(x1, y1) for _, x1, y1, x2, y2 in seen}
    mirrored = {(95 - x2, y1) for _, x1, y1, x2, y2 in seen}
    assert len(places & mirrored) > 4
