"""mx.image's iterator and augmenters for detection beside MXNet's own."""

import json
import random

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx

pytest.importorskip("PIL", reason="Pillow reads the images")

NAMES = ("plain", "crop", "pad", "all")


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDEN / "image_detection.npz") as file:
        return {key: file[key] for key in file.files if key != "meta"}


@pytest.fixture
def listed(golden, tmp_path):
    """What an iterator is made with: a folder of files and their labels."""
    count = sum(key.startswith("file_") for key in golden)
    for number in range(count):
        (tmp_path / f"{number}.png").write_bytes(golden[f"file_{number}"].tobytes())
    labels = [[*golden[f"label_{number}"].tolist(), f"{number}.png"] for number in range(count)]
    return {"path_root": tmp_path, "imglist": labels}


def options(golden, name):
    given = json.loads(str(golden[f"options_{name}"]))
    return {key: tuple(value) if key.endswith("range") else value for key, value in given.items()}


@pytest.mark.parametrize("name", NAMES)
def test_batches_after_the_same_seeds(golden, listed, name):
    """Order, parts, borders, boxes and pixels of three epochs."""
    random.seed(11)
    np.random.seed(11)  # noqa: NPY002
    batches = mx.image.ImageDetIter(2, (3, 16, 20), shuffle=True, **listed, **options(golden, name))
    assert batches.label_shape == tuple(golden[f"{name}_shape"])
    assert batches.provide_label == [("label", (2, *batches.label_shape))]
    for epoch in range(3):
        found = list(batches)
        assert len(found) == golden[f"{name}_{epoch}_count"]
        for number, batch in enumerate(found):
            key = f"{name}_{epoch}_{number}"
            assert batch.pad == golden[f"{key}_pad"], key
            np.testing.assert_array_equal(batch.label[0].asnumpy(), golden[f"{key}_label"], err_msg=key)
            np.testing.assert_allclose(
                batch.data[0].asnumpy(), golden[f"{key}_data"], rtol=0, atol=2e-4, err_msg=key
            )
        batches.reset()


@pytest.mark.parametrize("name", NAMES)
def test_augmenters_describe_themselves(golden, name):
    given = options(golden, name)
    given.pop("last_batch_handle")
    found = [each.dumps() for each in mx.image.CreateDetAugmenter((3, 16, 20), **given)]
    assert json.dumps(found) == str(golden[f"dumps_{name}"])


def test_two_iterators_take_the_larger_label_shape(listed):
    large = mx.image.ImageDetIter(2, (3, 16, 20), **listed)
    small = mx.image.ImageDetIter(
        2, (3, 16, 20), path_root=listed["path_root"], imglist=listed["imglist"][:1]
    )
    assert (large.label_shape, small.label_shape) == ((4, 6), (1, 6))
    assert large.sync_label_shape(small) is small
    assert small.label_shape == (4, 6)
    assert next(small).label[0].shape == (2, 4, 6)
    small.reshape(data_shape=(3, 10, 8))
    small.auglist = mx.image.CreateDetAugmenter((3, 10, 8))
    small.reset()
    assert next(small).data[0].shape == (2, 3, 10, 8)
    assert small.data_shape == (3, 10, 8)
    with pytest.raises(ValueError, match="reduce label count from 4 to 2"):
        small.reshape(label_shape=(2, 6))
    with pytest.raises(ValueError, match="object width inconsistent: 6 vs 5"):
        small.reshape(label_shape=(4, 5))
    with pytest.raises(ValueError, match="label_shape should have length 2"):
        small.reshape(label_shape=(4, 6, 1))


def test_images_with_their_boxes_drawn(listed):
    batches = mx.image.ImageDetIter(2, (3, 16, 20), mean=True, **listed)
    pictures = list(batches.draw_next(color=(255, 0, 0), thickness=1, mean=True, id2labels={0: "a"}))
    assert len(pictures) == 5
    assert all(picture.shape == (16, 20, 3) and picture.dtype == np.uint8 for picture in pictures)
    left, top = (int(share * size) for share, size in zip(listed["imglist"][0][4:6], (20, 16), strict=True))
    assert pictures[0][top, left].tolist() == [0, 0, 255]  # blue first


def test_labels_that_are_none(listed):
    folder, (first, *_) = listed["path_root"], listed["imglist"]
    with pytest.raises(RuntimeError, match=r"inconsistent with annotation width 6"):
        mx.image.ImageDetIter(1, (3, 8, 8), path_root=folder, imglist=[[*first[:-1], 1.0, first[-1]]])
    for damaged in (float("nan"), -6.0):
        with pytest.raises(RuntimeError, match="inconsistent with annotation width"):
            mx.image.ImageDetIter(1, (3, 8, 8), path_root=folder, imglist=[[damaged, *first[1:]]])
    with pytest.raises(RuntimeError, match="Label shape is invalid"):
        mx.image.ImageDetIter(1, (3, 8, 8), path_root=folder, imglist=[[2, 5, 0, "0.png"]])
    with pytest.raises(RuntimeError, match="no valid label"):
        mx.image.ImageDetIter(1, (3, 8, 8), path_root=folder, imglist=[[2, 5, 0, 0.5, 0.1, 0.5, 1, "0.png"]])


def test_ranges_without_effect_warn_and_do_nothing(listed):
    with pytest.warns(UserWarning, match=r"Skip DetRandomPadAug due to invalid area_range: \(1.0, 1.0\)"):
        pad = mx.image.DetRandomPadAug(area_range=(1.0, 1.0))
    with pytest.warns(UserWarning, match="Skip DetRandomCropAug due to invalid aspect_ratio_range"):
        crop = mx.image.detection.DetRandomCropAug(aspect_ratio_range=(2, 1))
    image, label = mx.nd.ones((4, 6, 3)), np.array([[0, 0.1, 0.1, 0.9, 0.9]], np.float32)
    for augmenter in (pad, crop):
        found = augmenter(image, label)
        assert found[0] is image
        assert found[1] is label


@pytest.mark.parametrize("colour", [0, 7, (7, 8, 9)])
def test_what_is_padded_has_one_colour(colour):
    pad = mx.image.DetRandomPadAug(area_range=(3.0, 4.0), pad_val=colour)
    image, label = mx.nd.ones((40, 60, 3)), np.array([[0, 0, 0, 1, 1]], np.float32)
    random.seed(0)
    larger, ((_, left, top, *_),) = pad(image, label)
    pixels = larger.asnumpy()
    y, x = round(top * pixels.shape[0]), round(left * pixels.shape[1])
    assert (pixels[y : y + 40, x : x + 60] == 1).all()
    pixels[y : y + 40, x : x + 60] = colour
    assert (pixels == colour).all()


def test_augmenters_refuse_what_they_cannot_hold():
    with pytest.raises(TypeError, match="Borrowing from invalid Augmenter"):
        mx.image.DetBorrowAug(3)
    with pytest.raises(ValueError, match="Allow DetAugmenter in list only"):
        mx.image.DetRandomSelectAug([mx.image.CastAug()])
    with pytest.raises(ValueError, match=r"lists must have equal lengths, got \[2, 3, 1, 1, 1\]"):
        mx.image.CreateMultiRandCropAugmenter([0.1, 0.2], [(1, 2)] * 3)
