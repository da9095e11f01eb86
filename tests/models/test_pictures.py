"""Pictures to arrays, as the published families feed them, and the files that folders and patterns stand for."""

import numpy as np
import pytest

import roiops as mx
from roiops.errors import SettingsError
from roiops.models.pictures import PRESETS, Preprocessing, find_pictures, read_image

PIL = pytest.importorskip("PIL.Image", reason="images need Pillow")


def test_preprocessing_by_hand():
    image = PIL.new("RGB", (4, 2), (100, 50, 0))
    how = Preprocessing(color="bgr", scale=0.5, mean=(0.0, 5.0, 10.0), std=(1.0, 2.0, 4.0))
    array = how.apply(image)
    assert array.shape == (1, 3, 2, 4)
    assert array[0, :, 0, 0].tolist() == [0, 10, 10]
    assert Preprocessing(layout="nhwc").apply(image).shape == (1, 2, 4, 3)


@pytest.mark.parametrize(
    ("settings", "size"),
    [
        ({}, (100, 300)),
        ({"resize": (7, 9)}, (7, 9)),
        ({"short_side": 50}, (50, 150)),
        ({"short_side": 50, "max_side": 120}, (40, 120)),
        ({"short_side": 33, "rounding": "down"}, (33, 99)),
        ({"short_side": 256, "crop": (224, 224)}, (224, 224)),
    ],
)
def test_sizes_that_the_network_sees(settings, size):
    how = Preprocessing(**settings)
    place = how.place(100, 300)
    assert (place.height, place.width) == size
    assert how.apply(PIL.new("RGB", (300, 100))).shape == (1, 3, *size)


def test_a_box_goes_there_and_back():
    place = Preprocessing(short_side=256, crop=(224, 224), rounding="down").place(512, 1024)
    assert (place.scale, place.offset) == ((0.5, 0.5), (16, 144))
    assert place.to_picture((0, 0, 224, 224)) == (288, 32, 736, 480)


def test_a_preset_resizes_as_its_framework_does():
    """GluonCV's transform_eval: short side 256, the middle 224, values 0 to 1, normalised."""
    pixels = np.random.default_rng(0).integers(0, 256, (300, 500, 3)).astype(np.uint8)
    resized = mx.image.resize_short(mx.nd.array(pixels, dtype=np.uint8), 256, interp=1)
    middle, _ = mx.image.center_crop(resized, (224, 224))
    expected = (middle.asnumpy() / 255 - (0.485, 0.456, 0.406)) / (0.229, 0.224, 0.225)
    array = Preprocessing.of("gluon").apply(read_image(pixels))
    np.testing.assert_allclose(array[0].transpose(1, 2, 0), expected, atol=1e-5)


def test_a_size_of_ones_own_takes_the_place_of_the_preset_s():
    assert Preprocessing.of("gluon", resize=(64, 64)).place(300, 500).height == 64
    assert Preprocessing.of("rcnn", short_side=300).size(300, 600) == (300, 600)
    with pytest.raises(mx.MXNetError, match="preset must be one of raw, imagenet"):
        Preprocessing.of("none")
    for name in PRESETS:
        assert Preprocessing.of(name).apply(PIL.new("RGB", (640, 480))).dtype == np.float32


def test_a_picture_too_small_for_the_crop():
    message = "cannot crop 224x224 from a picture of 100x100 that was resized to 100x100"
    with pytest.raises(mx.MXNetError, match=message):
        Preprocessing(crop=(224, 224)).place(100, 100)


def test_what_a_picture_may_be(tmp_path):
    grey = np.full((3, 5), 7, np.uint8)
    assert read_image(grey).size == (5, 3)
    assert read_image(np.dstack([grey] * 3).astype(float)).getpixel((0, 0)) == (7, 7, 7)
    assert read_image(PIL.new("L", (5, 3))).mode == "RGB"
    with pytest.raises(mx.MXNetError, match=r"must have shape \(height, width, 3\), got \(3, 5, 4\)"):
        read_image(np.zeros((3, 5, 4), np.uint8))
    with pytest.raises(mx.MXNetError, match="must have values from 0 to 255"):
        read_image(np.full((3, 5), 256.0))


def test_a_picture_is_upright_as_its_camera_noted(tmp_path):
    image = PIL.new("RGB", (40, 20))
    exif = image.getexif()
    exif[0x0112] = 6  # turned by a quarter
    image.save(tmp_path / "turned.jpg", exif=exif)
    assert read_image(tmp_path / "turned.jpg").size == (20, 40)


def test_of_16_bits_the_upper_8_are_taken_as_opencv_does(tmp_path):
    values = np.array([[0, 255, 256], [18888, 43020, 65535]], np.uint16)
    PIL.fromarray(values).save(tmp_path / "deep.png")
    upper = [[0, 0, 1], [73, 168, 255]]
    assert np.asarray(read_image(tmp_path / "deep.png"))[..., 0].tolist() == upper
    assert mx.image.imread(tmp_path / "deep.png").asnumpy()[..., 2].tolist() == upper
    assert mx.image.imread(tmp_path / "deep.png", flag=0).asnumpy()[..., 0].tolist() == upper


@pytest.mark.parametrize(("values", "span"), [([[0.5, 300.0]], "0.5 to 300"), ([[-1.0, 3.0]], "-1 to 3")])
def test_numbers_that_are_no_colours_are_refused(tmp_path, values, span):
    path = tmp_path / "measured.tif"
    PIL.fromarray(np.array(values, np.float32)).save(path)
    with pytest.raises(
        mx.MXNetError, match=f"measured.tif: a picture's values must be from 0 to 255, got {span}"
    ):
        read_image(path)


@pytest.mark.parametrize("name", ["cut.png", "cut.jpg"])
def test_a_damaged_picture_is_an_error_of_ours(tmp_path, name):
    path = tmp_path / name
    PIL.fromarray(np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)).save(path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(mx.MXNetError, match=f"{name}: a damaged image"):
        read_image(path)
    path.write_bytes(b"not a picture")
    with pytest.raises(mx.MXNetError, match=f"{name}: not an image that Pillow can read"):
        read_image(path)


def test_folders_and_patterns_stand_for_their_pictures(tmp_path):
    for name in ("b.jpg", "a.PNG", "notes.txt", "deep/c.jpeg"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    names = [str(tmp_path / name) for name in ("a.PNG", "b.jpg", "deep/c.jpeg")]
    assert find_pictures([tmp_path]) == names
    assert find_pictures([f"{tmp_path}/*.jpg", names[1], tmp_path / "deep"]) == names[1:]
    assert find_pictures(["missing.jpg"]) == ["missing.jpg"], "reported when it is read"
    (tmp_path / "empty").mkdir()
    with pytest.raises(mx.MXNetError, match="empty: holds no pictures"):
        find_pictures([tmp_path / "empty"])
    with pytest.raises(mx.MXNetError, match=r"\*.gif: no file has a name like that"):
        find_pictures([f"{tmp_path}/*.gif"])


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"std": 0}, "std must be above 0, got 0"),
        ({"mean": "a"}, "mean must be 1 or 3 finite numbers, got 'a'"),
        ({"mean": (1, 2)}, r"mean must be 1 or 3 finite numbers, got \(1, 2\)"),
        ({"scale": float("nan")}, "scale must be 1 or 3 finite numbers, got nan"),
        ({"resize": "24x24"}, r"resize \(height, width\) must be 2 finite numbers, got '24x24'"),
        ({"resize": (24.7, 24)}, r"resize must be whole numbers above 0, got \(24.7, 24\)"),
        ({"crop": (0, 24)}, r"crop must be whole numbers above 0, got \(0, 24\)"),
        (
            {"resize": (24, 24), "short_side": 9},
            "resize is the whole size: give it, or short_side and max_side",
        ),
        ({"crop": 24}, r"crop \(height, width\) must be 2 finite numbers, got 24"),
    ],
)
def test_preprocessing_that_fits_no_picture(given, text):
    with pytest.raises(SettingsError, match=text):
        Preprocessing.of(**given)


def test_a_folder_named_like_a_picture_is_none(tmp_path):
    (tmp_path / "a.png").mkdir()
    (tmp_path / "a.png" / "b.png").write_bytes(b"")
    assert find_pictures([tmp_path]) == [str(tmp_path / "a.png" / "b.png")]
