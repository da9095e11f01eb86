"""Datasets of files that everybody has, in files made here."""

import gzip
import pickle
import time

import numpy as np
import pytest

import roiops as mx
from roiops.errors import DataError
from roiops.gluon.data import vision


def test_the_folder_is_under_that_of_mxnet(tmp_path, monkeypatch):
    monkeypatch.setenv("MXNET_HOME", str(tmp_path))
    (tmp_path / "datasets" / "cifar10").mkdir(parents=True)
    (tmp_path / "datasets" / "cifar10" / "test_batch.bin").write_bytes(bytes([3]) + bytes(3072))
    assert vision.CIFAR10(train=False)[0][1] == 3


@pytest.mark.parametrize("zipped", [False, True])
def test_mnist(tmp_path, zipped):
    pictures = np.random.default_rng(0).integers(0, 256, (3, 28, 28), np.uint8)
    labels = np.array([7, 0, 9], np.uint8)
    files = {
        "t10k-images-idx3-ubyte": np.array([0x803, 3, 28, 28], ">i4").tobytes() + pictures.tobytes(),
        "t10k-labels-idx1-ubyte": np.array([0x801, 3], ">i4").tobytes() + labels.tobytes(),
    }
    for name, content in files.items():
        path = tmp_path / (name + (".gz" if zipped else ""))
        path.write_bytes(gzip.compress(content) if zipped else content)
    data = vision.MNIST(tmp_path, train=False)
    assert len(data) == 3
    picture, label = data[2]
    assert (picture.shape, picture.dtype, label) == ((28, 28, 1), np.uint8, 9)
    np.testing.assert_array_equal(picture.asnumpy()[..., 0], pictures[2])
    with pytest.raises(DataError, match=r"MNIST: there is no .*train-images-idx3-ubyte.gz; nothing is downl"):
        vision.MNIST(tmp_path)


def test_cifar(tmp_path):
    pictures = np.random.default_rng(0).integers(0, 256, (4, 3, 32, 32), np.uint8)
    rows = [np.concatenate([[i, 10 + i], each.ravel()]).astype(np.uint8) for i, each in enumerate(pictures)]
    (tmp_path / "train.bin").write_bytes(np.concatenate(rows).tobytes())
    (tmp_path / "test_batch.bin").write_bytes(np.concatenate([row[1:] for row in rows]).tobytes())
    for data, label in (
        (vision.CIFAR100(tmp_path), 3),
        (vision.CIFAR100(tmp_path, fine_label=True), 13),
        (vision.CIFAR10(tmp_path, train=False), 13),
        (vision.CIFAR10(tmp_path, train=False, transform=lambda x, y: (x.astype("float32"), y)), 13),
    ):
        picture, got = data[3]
        assert (len(data), got) == (4, label)
        np.testing.assert_array_equal(picture.asnumpy(), pictures[3].transpose(1, 2, 0))
    (tmp_path / "test_batch.bin").write_bytes(b"123")
    with pytest.raises(DataError, match=r"CIFAR10: test_batch.bin has 3 bytes, no multiple of 3073"):
        vision.CIFAR10(tmp_path, train=False)


@pytest.mark.parametrize(
    "change",
    [
        vision.transforms.RandomBrightness(0.4),
        vision.transforms.RandomContrast(0.4),
        vision.transforms.RandomSaturation(0.4),
        vision.transforms.RandomHue(0.4),
        vision.transforms.RandomColorJitter(0.4, 0.4, 0.4, 0.4),
        vision.transforms.RandomLighting(0.4),
    ],
)
def test_colours_of_a_copy_change_whatever_the_dtype(change):
    for dtype in ("uint8", "float32"):
        picture = mx.nd.array(np.arange(100, 112).reshape(2, 2, 3) * 2, dtype=dtype)
        before = picture.asnumpy()
        results = [change(picture).asnumpy() for _ in range(20)]
        assert {each.dtype for each in results} == {np.dtype(dtype)}
        assert len({each.tobytes() for each in results}) > 1
        assert all(each.min() >= 20 for each in results)  # not black
        np.testing.assert_array_equal(picture.asnumpy(), before)


@pytest.mark.parametrize(
    ("turn", "colours"),  # of MXNet 1.9.1, by nd.image.random_hue(min_factor=turn, max_factor=turn)
    [
        (1.0, [[100, 60, 20], [10, 200, 30], [7, 9, 250], [90, 90, 90]]),
        (1.1, [[92, 100, 20], [10, 200, 144], [150.8, 7, 250], [90, 90, 90]]),
        (0.7, [[76, 20, 100], [200, 68, 10], [7, 250, 53.6], [90, 90, 90]]),
        (1.5, [[20, 60, 100], [200, 10, 180], [250, 248, 7], [90, 90, 90]]),
    ],
)
def test_hues_are_turned_as_in_mxnet(monkeypatch, turn, colours):
    drawn = []

    class Drawing:
        permutation = staticmethod(list)

        def uniform(self, least, most):
            drawn.append((least, most))
            return turn if least > 0 else turn - 1  # around 1 or around 0

    monkeypatch.setattr("roiops.training.image.by_chance.generator", Drawing)
    picture = mx.nd.array([[[100, 60, 20], [10, 200, 30], [7, 9, 250], [90, 90, 90]]])
    for change in (vision.transforms.RandomHue(0.6), vision.transforms.RandomColorJitter(hue=0.6)):
        np.testing.assert_allclose(change(picture).asnumpy()[0], colours, atol=1e-3)
    assert drawn == [(0.4, 1.6), (-0.6, 0.6)]


def test_random_transforms_draw_from_the_generator_that_mx_random_seeds():
    picture = mx.nd.array(np.arange(48).reshape(4, 4, 3), dtype="uint8")
    changes = [vision.transforms.RandomFlipLeftRight(), vision.transforms.RandomContrast(0.5)]
    drawn = []
    for _ in range(2):
        mx.random.seed(7)
        drawn.append([change(picture).asnumpy().tolist() for change in changes for _ in range(8)])
    assert drawn[0] == drawn[1]
    assert len({str(each) for each in drawn[0]}) > 4


def test_a_crop_takes_the_nearest_pixels_where_that_is_asked_for():
    picture = mx.nd.array(np.arange(48).reshape(4, 4, 3), dtype="uint8")
    crop = vision.transforms.CropResize(0, 0, 4, 4, size=(2, 2), interpolation=0)
    for each in (crop, pickle.loads(pickle.dumps(crop))):  # a worker may get a copy
        assert each(picture).asnumpy()[..., 0].tolist() == [[0, 6], [24, 30]]


@pytest.mark.parametrize("interpolation", [0, 1])
def test_a_batch_is_resized_picture_by_picture(interpolation):
    batch = mx.nd.array(np.arange(192).reshape(2, 4, 8, 3), dtype="uint8")
    for change in (
        vision.transforms.Resize((5, 3), interpolation=interpolation),
        vision.transforms.Resize(3, keep_ratio=True, interpolation=interpolation),
        vision.transforms.CropResize(1, 1, 4, 3, size=5, interpolation=interpolation),
    ):
        for one, each in zip(change(batch), batch, strict=True):
            np.testing.assert_array_equal(one.asnumpy(), change(each).asnumpy())


def test_batches_hold_something():
    with pytest.raises(ValueError, match="batch_size must be at least 1, but got 0"):
        mx.gluon.data.DataLoader(mx.gluon.data.ArrayDataset(np.ones((3, 2))), batch_size=0)


class Drawn(mx.gluon.data.Dataset):
    def __len__(self):
        return 12

    def __getitem__(self, idx):
        time.sleep(0.05)  # so that one worker does not do it all
        return mx.nd.random.uniform(shape=(1,)).asscalar()


def test_workers_draw_numbers_of_their_own():
    loader = mx.gluon.data.DataLoader(Drawn(), batch_size=1, num_workers=3)
    numbers = [batch.asscalar() for batch in loader]
    assert len(set(numbers)) == len(numbers)
