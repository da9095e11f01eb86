"""mx.image beside what MXNet's own gives."""

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx

pytest.importorskip("PIL", reason="Pillow reads the images")


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDEN / "image.npz") as file:
        return {key: file[key] for key in file.files if key != "meta"}


@pytest.fixture
def picture(golden):
    return mx.nd.array(golden["rgb"], dtype="uint8")


def sizes(key):
    """``(width, height, interp)`` from ``size_23x31_2``."""
    size, interp = key.split("_")[1:]
    return (*map(int, size.split("x")), int(interp))


def test_a_file_is_read(golden, tmp_path):
    raw = golden["file"].tobytes()
    (tmp_path / "picture.png").write_bytes(raw)
    read = mx.image.imread(tmp_path / "picture.png")
    assert (read.dtype, read.shape) == (np.uint8, golden["rgb"].shape)
    assert (read.asnumpy() == golden["rgb"]).all()
    assert (mx.image.imdecode(mx.nd.array(golden["file"], dtype="uint8")).asnumpy() == golden["rgb"]).all()
    assert (mx.image.imdecode(raw, to_rgb=False).asnumpy() == golden["bgr"]).all()


def test_grey_is_one_channel(golden):
    grey = mx.image.imdecode(golden["file"].tobytes(), flag=0).asnumpy()
    assert grey.shape == golden["grey"].shape
    # Pillow and OpenCV round the weighted sum differently.
    assert np.abs(grey.astype(int) - golden["grey"]).max() <= 1


def test_resizing(golden, picture):
    keys = [key for key in golden if key.startswith(("size_", "float_"))]
    assert len(keys) == 32
    for key in keys:
        source = picture.astype("float32") if key.startswith("float") else picture
        got = mx.image.imresize(source, *sizes(key))
        assert (got.dtype, got.shape) == (golden[key].dtype, golden[key].shape), key
        difference = np.abs(got.asnumpy().astype(float) - golden[key]).max()
        # OpenCV's cubic interpolation of bytes, in fixed point, rounds otherwise.
        assert difference <= {"size_2": 1, "size_3": 1}.get(
            key[:5] + key[-1], 0 if key[0] == "s" else 2e-3
        ), key


def test_crops(golden, picture):
    for key in (key for key in golden if key.startswith("fixed_")):
        width, height, interp = sizes(key)
        got = mx.image.fixed_crop(picture, 1, 2, 12, 10, (width, height), interp).asnumpy()
        assert np.abs(got.astype(int) - golden[key]).max() <= 1, key
    for size in ((7, 5), (20, 10)):
        part, place = mx.image.center_crop(picture, size)
        name = "{}x{}".format(*size)
        assert list(place) == golden[f"place_{name}"].tolist()
        assert np.abs(part.asnumpy().astype(int) - golden[f"crop_{name}"]).max() <= 1
    short = mx.image.resize_short(picture, 10).asnumpy()
    assert np.abs(short.astype(int) - golden["short"]).max() <= 1


def test_sizes_that_fit_by_hand():
    assert mx.image.scale_down((100, 50), (40, 40)) == (40, 40)
    assert mx.image.scale_down((100, 50), (200, 100)) == (100, 50)
    assert mx.image.scale_down((30, 50), (60, 60)) == (30, 30)


def test_colours_are_normalized_in_place(golden, picture):
    source = picture.astype("float32")
    got = mx.image.color_normalize(
        source, mx.nd.array([123.0, 117.0, 104.0]), mx.nd.array([58.0, 57.0, 59.0])
    )
    np.testing.assert_allclose(got.asnumpy(), golden["normal"], rtol=1e-6, atol=1e-6)
    assert got is source


def test_errors(picture):
    with pytest.raises(mx.MXNetError, match="imdecode: the 3 bytes are no image that can be read"):
        mx.image.imdecode(b"abc")
    with pytest.raises(mx.MXNetError, match="imresize: w and h must be 1 or more, got 0 and 3"):
        mx.image.imresize(picture, 0, 3)
    with pytest.raises(mx.MXNetError, match="interp must be 0, 1, 2, 3 or 9, got 4"):
        mx.image.imresize(picture, 4, 4, 4)
    with pytest.raises(
        mx.MXNetError, match="src must be an NDArray of height, width and channels, got shape"
    ):
        mx.image.resize_short(mx.nd.ones((3, 4)), 2)
    with pytest.raises(FileNotFoundError):
        mx.image.imread("none.png")
