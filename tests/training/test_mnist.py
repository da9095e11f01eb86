"""Files of MNIST in batches, and what stands in their place."""

import gzip
from pathlib import Path

import numpy as np
import pytest

import roiops as mx
from roiops.errors import DataError, MXNetError


def write(path, values):
    """A file of MNIST: two zeros, 8 for bytes, the number of dimensions, the sizes, the values."""
    head = np.array([2048 + values.ndim, *values.shape], ">i4").tobytes()
    path.write_bytes(head + values.astype(np.uint8).tobytes())
    return str(path)


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    pictures, labels = rng.integers(0, 256, (11, 4, 5)), np.arange(11)
    return write(tmp_path / "pictures", pictures), write(tmp_path / "labels", labels), pictures


def labels_of(iterator):
    return [batch.label[0].asnumpy().tolist() for batch in iterator]


def test_pictures_are_divided_by_256_and_what_fills_no_batch_is_left_out(files):
    image, label, pictures = files
    batches = list(mx.io.MNISTIter(image=image, label=label, batch_size=3, shuffle=False))
    assert [batch.data[0].shape for batch in batches] == [(3, 1, 4, 5)] * 3
    assert np.array_equal(batches[1].data[0].asnumpy()[:, 0] * 256, pictures[3:6])
    assert [batch.label[0].asnumpy().tolist() for batch in batches] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_shapes_and_names_are_those_of_mxnet(files):
    image, label, _ = files
    for flat, shape in ((False, (3, 1, 4, 5)), (True, (3, 20))):
        iterator = mx.io.MNISTIter(image=image, label=label, batch_size=3, flat=flat, input_shape=(1, 4, 5))
        assert [tuple(each) for each in iterator.provide_data] == [("data", shape)]
        assert [tuple(each) for each in iterator.provide_label] == [("softmax_label", (3,))]


def test_parts_are_cut_where_mxnet_cuts_them(files):
    image, label, _ = files
    parts = [
        labels_of(mx.io.MNISTIter(image, label, batch_size=1, shuffle=False, num_parts=3, part_index=part))
        for part in range(3)
    ]
    # 11 / 3 of the samples each: MXNet 1.9.1 gives 3, 4 and 4.
    assert [[each[0] for each in part] for part in parts] == [[0, 1, 2], [3, 4, 5, 6], [7, 8, 9, 10]]
    with pytest.raises(MXNetError, match="part_index must be 0 to 2, got 3"):
        mx.io.MNISTIter(image, label, num_parts=3, part_index=3)


def test_an_order_follows_from_the_seed_and_stays(files):
    image, label, _ = files
    first, again, other = (
        mx.io.MNISTIter(image, label, batch_size=1, shuffle=True, seed=seed) for seed in (-1, -1, 2)
    )
    order = labels_of(first)
    first.reset()
    assert labels_of(first) == order == labels_of(again)
    assert order != labels_of(other)
    assert sorted(order) == [[float(i)] for i in range(11)]


def test_damaged_files_say_what_is_wrong(files, tmp_path):
    image, label, pictures = files
    with pytest.raises(DataError, match="labels: is no file of bytes of 3 dimensions"):
        mx.io.MNISTIter(label, label)
    cut = tmp_path / "cut"
    cut.write_bytes(Path(image).read_bytes()[:-7])
    with pytest.raises(DataError, match="cut: ends after 213 of the 220 values of shape"):
        mx.io.MNISTIter(str(cut), label)
    huge = tmp_path / "huge"  # 2**64 values and more: 0 in 64 bits
    huge.write_bytes(b"\0\0\x08\3\0\0\1\0" + b"\xff\0\0\0" * 2 + bytes(9))
    with pytest.raises(DataError, match="huge: ends after 9 of the"):
        mx.io.MNISTIter(str(huge), label)
    packed = gzip.compress(Path(image).read_bytes())
    for damaged in (packed[:-9], packed[:20] + b"\xff" * 40 + packed[60:], b"abc"):
        (tmp_path / "cut.gz").write_bytes(damaged)
        with pytest.raises(DataError, match=r"cut\.gz: "):
            mx.io.MNISTIter(str(tmp_path / "cut.gz"), label)
    few = write(tmp_path / "few", pictures[:5])
    with pytest.raises(DataError, match=r"few has 5 pictures, .*labels 11 labels"):
        mx.io.MNISTIter(few, label)


def test_scripts_find_the_four_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data").mkdir()
    pictures = np.arange(6 * 28 * 28).reshape(6, 28, 28) % 256
    for start in ("train", "t10k"):
        for name, values in (("images-idx3", pictures), ("labels-idx1", np.arange(6))):
            content = Path(write(tmp_path / "data" / f"{start}-{name}-ubyte", values)).read_bytes()
            (tmp_path / f"{start}-{name}-ubyte.gz").write_bytes(gzip.compress(content))
    found = mx.test_utils.get_mnist()
    assert np.array_equal(found["test_data"], pictures[:, np.newaxis].astype(np.float32) / 255)
    assert found["train_data"].dtype == np.float32
    assert found["train_label"].dtype == np.int8
    assert found["train_label"].tolist() == list(range(6))
    for iterator in mx.test_utils.get_mnist_iterator(batch_size=2, input_shape=(784,)):
        assert [batch.data[0].shape for batch in iterator] == [(2, 784)] * 3
    (tmp_path / "data" / "t10k-labels-idx1-ubyte").unlink()
    with pytest.raises(RuntimeError, match="by other means, as data/t10k-labels-idx1-ubyte"):
        mx.test_utils.get_mnist_ubyte()


def test_what_is_there_needs_no_download(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("a")
    url = "http://data.mxnet.io/a.txt"
    assert mx.test_utils.download(url) == mx.gluon.utils.download(url) == "a.txt"
    for found in (
        mx.test_utils.download(url, dirname=str(tmp_path)),
        mx.gluon.utils.download(url, str(tmp_path)),
    ):
        assert found == str(tmp_path / "a.txt")
    for refused in ({"sha1_hash": "0"}, {"overwrite": True}, {"path": "b.txt"}):
        with pytest.raises(RuntimeError, match=f"nothing is downloaded here; fetch {url} by other means"):
            mx.gluon.utils.download(url, **refused)
