"""mx.image beside what MXNet's own gives."""

import io
import json
import random
from pathlib import Path

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx
from roiops.models.pictures import read_image

Image = pytest.importorskip("PIL.Image", reason="Pillow reads the images")


@pytest.fixture(scope="module")
def golden():
    with np.load(GOLDEN / "image.npz") as file:
        return {key: file[key] for key in file.files if key != "meta"}


AUGMENTERS = {
    "resize": lambda: mx.image.ResizeAug(9, 1),
    "force": lambda: mx.image.ForceResizeAug((11, 12), 1),
    "crop": lambda: mx.image.RandomCropAug((8, 6), 1),
    "sized": lambda: mx.image.RandomSizedCropAug((8, 6), (0.2, 0.8), (0.5, 2), 1),
    "centre": lambda: mx.image.CenterCropAug((8, 6), 1),
    "brightness": lambda: mx.image.BrightnessJitterAug(0.4),
    "contrast": lambda: mx.image.ContrastJitterAug(0.4),
    "saturation": lambda: mx.image.SaturationJitterAug(0.4),
    "hue": lambda: mx.image.HueJitterAug(0.4),
    "colour": lambda: mx.image.ColorJitterAug(0.4, 0.3, 0.2),
    "lighting": lambda: mx.image.LightingAug(
        0.5, np.array([55.46, 4.794, 1.148]), np.arange(9).reshape(3, 3) / 9
    ),
    "grey": lambda: mx.image.RandomGrayAug(0.9),
    "flip": lambda: mx.image.HorizontalFlipAug(0.9),
}


def seed(number):
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002  (what scripts of MXNet's time seed)


@pytest.mark.parametrize("name", AUGMENTERS)
def test_augmenters_after_the_same_seeds(golden, picture, name):
    seed(5)
    augmenter = AUGMENTERS[name]()
    found = augmenter(picture.astype("float32")).asnumpy()
    np.testing.assert_allclose(found, golden["augment_" + name], rtol=0, atol=2e-4 * 255)
    assert json.dumps(augmenter.dumps()) == str(golden["dumps_" + name])


ND_IMAGE = {
    "brightness": lambda x: mx.nd.image.random_brightness(x, 1.5, 1.5),
    "contrast": lambda x: mx.nd.image.random_contrast(x, 1.5, max_factor=1.5),
    "hue": lambda x: mx.nd.image.random_hue(x, 1.2, 1.2),
    "light": lambda x: mx.nd.image.adjust_lighting(x, (0.1, 0.2, -0.3)),
    "resize": lambda x: mx.nd.image.resize(x, (9, 5)),
    "resize_square": lambda x: mx.nd.image.resize(x, 9, interp=2),
    "resize_shorter": lambda x: mx.nd.image.resize(x, 9, True),
    "resize_batch": lambda x: mx.nd.image.resize(mx.nd.stack(x, x).swapaxes(1, 2), 9, True),
}


@pytest.mark.parametrize("dtype", ["uint8", "float32"])
@pytest.mark.parametrize("name", ND_IMAGE)
def test_nd_image(golden, picture, name, dtype):
    data = picture.astype(dtype)
    found = ND_IMAGE[name](data).asnumpy()
    assert found.dtype == dtype
    # Bytes are cut, not rounded, after a hue is turned.
    room = 1 if name == "hue" and dtype == "uint8" else 2e-4 * 255 * (dtype == "float32")
    np.testing.assert_allclose(found.astype(float), golden[f"nd_{name}_{dtype}"], rtol=0, atol=room)
    np.testing.assert_array_equal(data.asnumpy(), picture.asnumpy())
    target = mx.nd.zeros(found.shape, dtype=dtype)
    if name == "resize":
        assert mx.nd.image.resize(data, (9, 5), True, out=target) is target  # which two lengths decide
        np.testing.assert_array_equal(target.asnumpy(), found)


def test_nd_image_by_chance(picture):
    image, source = mx.nd.image, picture.asnumpy()
    grey = source.mean(2, keepdims=True).astype(np.uint8)
    mx.random.seed(3)
    made = [image.random_flip_left_right(picture).asnumpy() for _ in range(40)]
    mirrored = [np.array_equal(each, source[:, ::-1]) for each in made]
    assert 5 < sum(mirrored) < 35
    assert all(each or np.array_equal(m, source) for each, m in zip(mirrored, made, strict=True))
    made = [image.random_flip_top_bottom(picture).asnumpy() for _ in range(40)]
    assert 5 < sum(np.array_equal(each, source[::-1]) for each in made) < 35
    half = image.random_saturation(picture.astype("float32"), 0.5, 0.5).asnumpy()
    shade = (source * np.float32([0.299, 0.587, 0.114])).sum(2, keepdims=True)
    np.testing.assert_allclose(half, source / 2 + shade / 2, rtol=1e-5)
    np.testing.assert_array_equal(image.random_color_jitter(picture, 0, 0, 0, 0).asnumpy(), source)
    states = mx.random.get_state()
    one = image.random_color_jitter(picture, 0.4, 0.4, 0.4, 0.4).asnumpy()
    mx.random.set_state(states)
    np.testing.assert_array_equal(image.random_color_jitter(picture, 0.4, 0.4, 0.4, 0.4).asnumpy(), one)
    assert (one != source).any()
    np.testing.assert_array_equal(image.random_lighting(picture, 0.0).asnumpy(), source)
    for change in (image.random_saturation, image.random_hue):
        np.testing.assert_array_equal(change(mx.nd.array(grey, dtype="uint8"), 1.4, 1.4).asnumpy(), grey)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: mx.nd.image.resize(x), r"image.resize: size must be one or two numbers, .*got \(\)"),
        (lambda x: mx.nd.image.resize(x, (3, 0)), r"image.resize: size must be .* 1 or more, got \(3, 0\)"),
        (
            lambda x: mx.nd.image.random_brightness(x, -1, 1),
            r"image.random_brightness: min_factor must be 0 or more, got -1",
        ),
        (
            lambda x: mx.nd.image.random_hue(mx.nd.stack(x, x), 1, 1),
            r"image.random_hue: data must be \(height, ",
        ),
        (lambda x: mx.sym.image.resize(mx.sym.var("x"), 3), "'image.resize' is not registered: pictures are"),
    ],
)
def test_errors_of_nd_image(picture, call, text):
    with pytest.raises(mx.MXNetError, match=text):
        call(picture)


def test_rotation(golden, picture):
    first = mx.nd.transpose(picture.astype("float32"), (2, 0, 1))
    both = mx.nd.stack(first, first * 0.5)
    found = {"rotated": mx.image.imrotate(first, 20)}
    for zoom in ("zoom_in", "zoom_out"):
        found["rotated_" + zoom] = mx.image.imrotate(both, mx.nd.array([15, -40]), **{zoom: True})
    seed(5)
    found["rotated_at_random"] = mx.image.random_rotate(both, (-30, 30))
    blocks = mx.gluon.data.vision.transforms
    found["rotated_block"] = blocks.Rotate(-25, zoom_out=True)(both)
    maybe = blocks.RandomRotation((-30, 30), zoom_in=True, rotate_with_proba=0.6)
    for number in range(4):
        found[f"rotated_block_at_random_{number}"] = maybe(first)
    assert {found[f"rotated_block_at_random_{number}"] is first for number in range(4)} == {True, False}
    for name, image in found.items():
        np.testing.assert_allclose(image.asnumpy(), golden[name], rtol=0, atol=2e-5 * 255, err_msg=name)
    with pytest.raises(ValueError, match="cannot be both True"):
        mx.image.imrotate(first, 20, zoom_in=True, zoom_out=True)
    with pytest.raises(TypeError, match=r"only supports float32\. Consider calling it after ToTensor"):
        blocks.Rotate(20)(picture)
    with pytest.raises(ValueError, match="`angle_limits` must be an ordered tuple"):
        blocks.RandomRotation((10, -10))
    with pytest.raises(ValueError, match="Probability of rotating the image should be between 0 and 1"):
        blocks.RandomRotation((-10, 10), rotate_with_proba=1.1)


@pytest.fixture
def files(golden, tmp_path):
    """A folder of five files, and their names."""
    for number in range(5):
        (tmp_path / f"{number}.png").write_bytes(golden["file"].tobytes())
    return tmp_path


@pytest.mark.parametrize("kind", ["imglist", "path_imglist"])
@pytest.mark.parametrize(
    ("last", "labels"),
    [
        ("pad", [[0, 1], [2, 3], [4, 0]]),
        ("discard", [[0, 1], [2, 3]]),
        ("roll_over", [[0, 1], [2, 3]]),
    ],
)
def test_batches_of_files(files, golden, kind, last, labels):
    given = {"imglist": [[i, f"{i}.png"] for i in range(5)]}
    if kind == "path_imglist":
        lines = [f"{7 * i}\t{i}\t{i}.png\n" for i in range(5)]
        (files / "all.lst").write_text("".join(lines))
        given = {"path_imglist": files / "all.lst"}
    height, width = golden["rgb"].shape[:2]
    batches = mx.image.ImageIter(
        2, (3, height, width), path_root=files, last_batch_handle=last, mean=np.array([1.0]), **given
    )
    assert batches.provide_data == [("data", (2, 3, height, width))]
    found = list(batches)
    assert [batch.label[0].asnumpy().tolist() for batch in found] == labels
    expected = golden["rgb"].transpose(2, 0, 1).astype(np.float32) - 1
    np.testing.assert_array_equal(found[0].data[0].asnumpy(), np.stack([expected] * 2))
    batches.reset()
    first = next(batches).label[0].asnumpy().tolist()
    assert first == ([4, 0] if last == "roll_over" else [0, 1])


def test_batches_for_training_after_the_same_seed(files, golden, caplog):
    """Order, places, mirrors and every number are those of MXNet."""
    random.seed(7)
    with caplog.at_level("INFO"):
        batches = mx.image.ImageIter(
            2,
            (3, 10, 9),
            path_root=files,
            imglist=[[number, f"{number}.png"] for number in range(5)],
            shuffle=True,
            aug_list=mx.image.CreateAugmenter(
                (3, 10, 9), resize=12, rand_crop=True, rand_mirror=True, mean=True, std=True
            ),
        )
    assert caplog.messages == ["ImageIter: loading image list..."]
    for epoch in range(2):
        found = list(batches)
        assert len(found) == 3
        for number, batch in enumerate(found):
            for kind, (array,) in (("data", batch.data), ("label", batch.label)):
                name = f"batch_{epoch}_{number}_{kind}"
                np.testing.assert_array_equal(array.asnumpy(), golden[name], err_msg=name)
        batches.reset()


@pytest.fixture
def records(files, tmp_path):
    """The five pictures of ``files`` in a record file with an index, under keys from 10 on."""
    paths = str(tmp_path / "a.idx"), str(tmp_path / "a.rec")
    writer = mx.recordio.MXIndexedRecordIO(*paths, "w")
    for number in range(5):
        header = mx.recordio.IRHeader(0, float(number), number, 0)
        writer.write_idx(10 + number, mx.recordio.pack(header, (files / f"{number}.png").read_bytes()))
    writer.close()
    return paths


@pytest.mark.parametrize("last", ["pad", "discard", "roll_over"])
@pytest.mark.parametrize("indexed", [True, False])
def test_batches_of_record_files_are_those_of_the_files(files, records, last, indexed):
    index, path = records
    more = {"last_batch_handle": last, "aug_list": [mx.image.ForceResizeAug((9, 10), 1)]}
    listed = [[number, f"{number}.png"] for number in range(5)]
    expected = mx.image.ImageIter(2, (3, 10, 9), imglist=listed, path_root=files, **more)
    found = mx.image.ImageIter(
        2, (3, 10, 9), path_imgrec=path, path_imgidx=index if indexed else None, **more
    )
    for _ in range(3):
        for one, other in zip(found, expected, strict=True):
            assert one.pad == other.pad
            assert one.label[0].asnumpy().tolist() == other.label[0].asnumpy().tolist()
            np.testing.assert_array_equal(one.data[0].asnumpy(), other.data[0].asnumpy())
        found.reset()
        expected.reset()


def test_record_files_in_parts_shuffled_and_with_labels_of_a_list(files, records, tmp_path):
    index, path = records
    more = {"path_imgrec": path, "path_imgidx": index, "aug_list": [mx.image.ForceResizeAug((9, 10), 1)]}
    part = mx.image.ImageIter(1, (3, 10, 9), part_index=1, num_parts=2, **more)
    assert [batch.label[0].asscalar() for batch in part] == [2, 3]
    shuffled = mx.image.ImageIter(1, (3, 10, 9), shuffle=True, **more)
    assert sorted(batch.label[0].asscalar() for batch in shuffled) == [0, 1, 2, 3, 4]
    lines = [f"{10 + number}\t{number + 0.5}\tunused.png\n" for number in range(5)]
    (tmp_path / "a.lst").write_text("".join(lines))
    labelled = mx.image.ImageIter(1, (3, 10, 9), path_imglist=str(tmp_path / "a.lst"), **more)
    assert [batch.label[0].asscalar() for batch in labelled] == [0.5, 1.5, 2.5, 3.5, 4.5]
    several = [[number, 7, f"{number}.png"] for number in range(2)]
    wide = mx.image.ImageIter(
        2, (3, 10, 9), label_width=2, imglist=several, path_root=files, aug_list=more["aug_list"]
    )
    assert next(wide).label[0].asnumpy().tolist() == [[0, 7], [1, 7]]


def test_iterators_say_what_they_need(files):
    with pytest.raises(mx.MXNetError, match="path_imgrec, path_imglist or imglist must be given"):
        mx.image.ImageIter(2, (3, 4, 4))
    with pytest.raises(mx.MXNetError, match="path_imgidx must be given to shuffle record files"):
        mx.image.ImageIter(2, (3, 4, 4), path_imgrec="a.rec", shuffle=True)
    with pytest.raises(
        mx.MXNetError, match=r"ImageIter: batch_size must be a whole number above 0, got 1\.5"
    ):
        mx.image.ImageIter(1.5, (3, 4, 4), imglist=[[0, "bad.png"]])
    (files / "bad.png").write_bytes(b"nothing")
    broken = mx.image.ImageIter(1, (3, 4, 4), imglist=[[0, "bad.png"]], path_root=files)
    with pytest.raises(mx.MXNetError, match=r"ImageIter: bad.png: imdecode, 7 bytes: not an image"):
        next(broken)


def test_lanczos(golden, picture):
    keys = [key for key in golden if key.startswith("lanczos_")]
    assert len(keys) == 6
    for key in keys:
        width, height = map(int, key.removeprefix("lanczos_").split("x"))
        found = mx.image.imresize(picture.astype("float32"), width, height, 4).asnumpy()
        np.testing.assert_allclose(found, golden[key], rtol=0, atol=1e-3, err_msg=key)


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
    grey = mx.image.imdecode(golden["file"].tobytes(), flag=0)
    np.testing.assert_array_equal(grey.asnumpy(), golden["grey"], strict=True)
    photograph = Path(__file__).parents[2] / "docs" / "images" / "photograph.jpg"
    part = mx.image.imread(photograph, flag=0)[100:130, 200:240]
    np.testing.assert_array_equal(part.asnumpy(), golden["grey_jpeg"], strict=True)
    file = io.BytesIO()
    Image.fromarray(golden["rgb"]).save(file, "bmp")
    grey = mx.image.imdecode(file.getvalue(), flag=0)
    np.testing.assert_array_equal(grey.asnumpy(), golden["grey_bmp"], strict=True)


def test_resizing(golden, picture):
    keys = [key for key in golden if key.startswith(("size_", "float_"))]
    assert len(keys) == 54
    for key in keys:
        source = picture.astype("float32") if key.startswith("float") else picture
        got = mx.image.imresize(source, *sizes(key))
        assert (got.dtype, got.shape) == (golden[key].dtype, golden[key].shape), key
        # Bytes agree to the last one: what a network is trained on does not depend on who resized it.
        tolerance = 0 if key.startswith("size") else 2e-3
        np.testing.assert_allclose(got.asnumpy(), golden[key], rtol=0, atol=tolerance, err_msg=key)


def test_crops(golden, picture):
    for key in (key for key in golden if key.startswith("fixed_")):
        width, height, interp = sizes(key)
        got = mx.image.fixed_crop(picture, 1, 2, 12, 10, (width, height), interp).asnumpy()
        np.testing.assert_array_equal(got, golden[key], err_msg=key)
    for size in ((7, 5), (20, 10)):
        part, place = mx.image.center_crop(picture, size)
        name = "{}x{}".format(*size)
        assert list(place) == golden[f"place_{name}"].tolist()
        np.testing.assert_array_equal(part.asnumpy(), golden[f"crop_{name}"], err_msg=name)
    np.testing.assert_array_equal(mx.image.resize_short(picture, 10).asnumpy(), golden["short"])
    for proportions in (1 / 9, 9):  # a part of all of the area is too high, or too wide
        part, place = mx.image.random_size_crop(picture, (7, 5), 1.0, (proportions, proportions))
        assert list(place) == golden["place_7x5"].tolist()
        np.testing.assert_array_equal(part.asnumpy(), golden["crop_7x5"])


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
    with pytest.raises(mx.MXNetError, match="imdecode, 3 bytes: not an image that Pillow can read"):
        mx.image.imdecode(b"abc")
    with pytest.raises(mx.MXNetError, match="imresize: w and h must be 1 or more, got 0 and 3"):
        mx.image.imresize(picture, 0, 3)
    with pytest.raises(mx.MXNetError, match="interp must be 0, 1, 2, 3, 4, 9 or 10, got 5"):
        mx.image.imresize(picture, 4, 4, 5)
    for name, more in (("resize_short", (2,)), ("fixed_crop", (0, 0, 1, 1)), ("center_crop", ((2, 2),))):
        words = f"{name}: src must be an NDArray of height, width and channels, got shape"
        with pytest.raises(mx.MXNetError, match=words):
            getattr(mx.image, name)(mx.nd.ones((3, 4)), *more)
    for x, width in ((-1, 2), (4, 5), (0, 0)):
        with pytest.raises(mx.MXNetError, match=rf"fixed_crop: nothing of {width} x 2 at \({x}, 1\) lies on"):
            mx.image.fixed_crop(mx.nd.ones((3, 4, 3)), x, 1, width, 2)
    for kind in (FileNotFoundError, mx.MXNetError):
        with pytest.raises(kind, match=r"none\.png: No such file"):
            mx.image.imread("none.png")
    with pytest.raises(mx.MXNetError, match=r"mean must be True or an array of 1 or 3 numbers, got \[1\]"):
        mx.image.CreateAugmenter((3, 4, 4), mean=[1])
    with pytest.raises(mx.MXNetError, match="copyMakeBorder: type must be 0 to 4, got 5"):
        mx.image.copyMakeBorder(picture, 1, 1, 1, 1, type=5)


def test_damaged_images_are_refused_by_name(tmp_path):
    """Pillow raises a ValueError and a DecompressionBombError here."""
    for damaged in (b"P6 *5 1 255 ", b"P6 999999 999999 255 "):
        path = tmp_path / "a.png"
        path.write_bytes(damaged)
        with pytest.raises(mx.MXNetError, match=r"a\.png: imdecode, \d+ bytes: a damaged image"):
            mx.image.imread(path)
        with pytest.raises(mx.MXNetError, match=r"a\.png: a damaged image"):
            read_image(path)


def test_borders(picture):
    pixels = picture.asnumpy()
    for kind, mode in enumerate(("constant", "edge", "symmetric", "wrap", "reflect")):
        made = mx.image.copyMakeBorder(picture, 1, 2, 3, 4, type=kind)
        np.testing.assert_array_equal(made.asnumpy(), np.pad(pixels, ((1, 2), (3, 4), (0, 0)), mode))
    out = mx.nd.zeros((pixels.shape[0] + 2, pixels.shape[1], 3), dtype="uint8")
    assert mx.image.copyMakeBorder(picture, 1, 1, 0, 0, values=[1, 2, 3], out=out) is out
    assert out.asnumpy()[0, 0].tolist() == out.asnumpy()[-1, -1].tolist() == [1, 2, 3]

    def outside(image, **fill):
        return mx.image.copyMakeBorder(image, 1, 0, 0, 0, **fill).asnumpy()[0, 0].tolist()

    # As OpenCV does: values that no byte holds become the nearest, a fourth channel without a value is 0.
    assert outside(picture, values=(-3, 300, 2.5, 7)) == [0, 255, 2]
    assert outside(mx.nd.ones((2, 2, 4)), value=9.5) == [9.5, 9.5, 9.5, 0]
    with pytest.raises(mx.MXNetError, match=r"values must be one for each channel, 3, got \(1, 2\)"):
        outside(picture, values=(1, 2))
    with pytest.raises(
        mx.MXNetError, match=r"copyMakeBorder: a border must be 0 or more, got \(0, -1, 0, 0\)"
    ):
        mx.image.copyMakeBorder(picture, 0, -1, 0, 0)
    small = mx.nd.zeros((4, 5, 3), dtype="uint8")
    assert mx.image.imresize(picture, 5, 4, out=small) is small
    np.testing.assert_array_equal(small.asnumpy(), mx.image.imresize(picture, 5, 4).asnumpy())


@pytest.mark.parametrize("line", ["abc", "x\t1\ta.png", "0\tone\ta.png", "0\ta.png", "0\t1\t\udcff.png"])
def test_a_line_of_a_list_that_is_none_is_named(tmp_path, line):
    path = tmp_path / "train.lst"
    path.write_text(f"0\t1\ta.png\n{line}\n", "utf-8", "surrogateescape")
    with pytest.raises(
        mx.MXNetError, match=r"train.lst, line 2: not a number, labels and a file parted by tabs"
    ):
        mx.image.ImageIter(1, (3, 4, 4), path_imglist=str(path), path_root=str(tmp_path))
