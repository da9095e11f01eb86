"""mx.io.ImageRecordIter and ImageDetRecordIter beside what MXNet's give."""

import json
import logging

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx

pytest.importorskip("PIL", reason="Pillow reads the images")

with np.load(GOLDEN / "records.npz") as _file:
    GIVEN = {name: _file[name] for name in _file.files}
META = json.loads(str(GIVEN.pop("meta")))


@pytest.fixture
def files(tmp_path):
    for name in ("labels.rec", "labels.idx", "boxes.rec", "boxes.idx"):
        (tmp_path / name).write_bytes(GIVEN[name].tobytes())
    return tmp_path


def pictures_of(files, **options):
    options = {"batch_size": 5, "data_shape": META["shape"], "verbose": False, **options}
    return mx.io.ImageRecordIter(path_imgrec=files / "labels.rec", **options)


def boxes_of(files, **options):
    options = {"batch_size": 5, "data_shape": META["shape"], "verbose": False, **options}
    return mx.io.ImageDetRecordIter(path_imgrec=files / "boxes.rec", **options)


@pytest.mark.parametrize("name", META["exact"])
def test_what_does_not_depend_on_chance(files, name):
    batch = next(pictures_of(files, **META["exact"][name]))
    np.testing.assert_array_equal(batch.data[0].asnumpy(), GIVEN[name])
    np.testing.assert_array_equal(batch.label[0].asnumpy(), np.arange(5))


@pytest.mark.parametrize("name", META["detection"])
def test_boxes(files, name):
    batch = next(boxes_of(files, **META["detection"][name]))
    label = batch.label[0].asnumpy()
    np.testing.assert_array_equal(label, GIVEN["label " + name])
    for found, expected, (_, height, width) in zip(
        batch.data[0].asnumpy(), GIVEN["boxes " + name], label[:, :3].astype(int), strict=True
    ):
        # What is beyond a picture that is smaller, MXNet leaves as it was.
        np.testing.assert_array_equal(found[:, :height, :width], expected[:, :height, :width])


@pytest.mark.parametrize("name", META["by chance"])
def test_colours_change_as_in_mxnet_by_an_amount_of_its_own(files, name):
    """Some amount within the limits gives MXNet's picture to the last bit, or to one for a share."""
    from roiops.training.image.opencv import shift_hsl

    amounts, limit = np.linspace(0.6, 1.4, 4001), META["by chance"][name][next(iter(META["by chance"][name]))]
    if name != "contrast":
        amounts = range(-limit, limit + 1)
    place = ["hue", "saturation", "lightness", "contrast"].index(name)
    for before, after in zip(GIVEN["middle"], GIVEN[name], strict=True):
        before, after = (np.moveaxis(picture, 0, 2).astype(np.uint8) for picture in (before, after))
        if name == "contrast":
            tried = (mx.io.ImageRecordIter._jittered(before, 1, amount) for amount in amounts)
        else:
            tried = (shift_hsl(before, *(amount * (i == place) for i in range(3))) for amount in amounts)
        least = min(np.abs(each.astype(int) - after).max() for each in tried)
        assert least <= (name == "contrast")


CHANCES = {
    "rand_mirror": {"rand_mirror": True},
    "rand_crop": {"rand_crop": True},
    "rand_crop of any size": {"rand_crop": True, "min_crop_size": 13, "max_crop_size": 17},
    "random_resized_crop": {"random_resized_crop": True, "min_random_area": 0.3, "max_aspect_ratio": 0.25},
    "turned": {"max_rotate_angle": 20, "max_shear_ratio": 0.2, "max_aspect_ratio": 0.2, "rotate_list": (5,)},
    "scaled": {"max_random_scale": 1.5, "min_random_scale": 0.9, "inter_method": 10},
    "colours": {"brightness": 0.3, "saturation": 0.3, "random_h": 9, "random_l": 9, "pca_noise": 0.1},
    "light": {"max_random_illumination": 20.0, "max_random_contrast": 0.2},
}


@pytest.mark.parametrize("name", CHANCES)
def test_chance_follows_from_the_seed_alone(files, name):
    def data(seed, threads=1):
        batches = pictures_of(files, seed_aug=seed, preprocess_threads=threads, **CHANCES[name])
        return next(batches).data[0].asnumpy()

    first, plain = data(3), GIVEN["middle"]
    np.testing.assert_array_equal(first, data(3, threads=4))
    assert (first != data(4)).any()
    assert (first != plain).any()
    assert first.shape == plain.shape


@pytest.mark.parametrize("seeds", [{"seed_aug": 3}, {"seed_aug": -3}, {"seed": 3}, {"seed": -3}])
def test_a_picture_is_changed_alike_in_each_epoch_with_seed_aug_only(files, seeds):
    iterator = pictures_of(files, rand_crop=True, rand_mirror=True, brightness=0.4, shuffle=True, **seeds)
    epochs = []
    for _ in range(2):
        pictures = [each for batch in iterator for each in batch.data[0].asnumpy()[: 5 - batch.pad]]
        epochs.append({each.tobytes() for each in pictures})
        iterator.reset()
    assert (epochs[0] == epochs[1]) == ("seed_aug" in seeds)


def test_chances_of_detection(files):
    options = {
        "rand_mirror_prob": 0.5, "rand_pad_prob": 0.5, "max_pad_scale": 3.0, "rand_crop_prob": 0.7,
        "num_crop_sampler": 2, "min_crop_scales": (0.3, 0.5), "min_crop_overlaps": (0.1, 0.3),
        "max_crop_overlaps": 0.99, "random_hue_prob": 0.5, "max_random_hue": 20,
        "random_contrast_prob": 0.5, "max_random_contrast": 0.3, "max_crop_trials": 10,
    }  # fmt: skip
    batches, moved = boxes_of(files, seed=8, **options), 0
    for _ in range(6):
        batch = next(batches)
        batches.reset()
        for label, before in zip(batch.label[0].asnumpy(), GIVEN["label force"], strict=True):
            count = int(label[3])
            assert label[:3].tolist() == META["shape"]
            objects = label[6 : 4 + count].reshape(-1, 5)
            assert len(objects) >= 1
            assert ((objects[:, 1:] >= 0) & (objects[:, 1:] <= 1)).all()
            assert (objects[:, 3:] > objects[:, 1:3]).all()
            assert (label[4 + count :] == -1).all()
            moved += (label != before).any()
    assert moved > 10


@pytest.mark.parametrize(
    ("limits", "shown"),
    [
        ({}, True),
        ({"min_crop_overlaps": 0.25}, True),
        ({"min_crop_overlaps": 0.26}, False),
        ({"max_crop_overlaps": 0.25}, False),
        ({"min_crop_sample_coverages": 0.34, "max_crop_sample_coverages": 0.35}, True),
        ({"min_crop_sample_coverages": 0.35}, False),
        ({"min_crop_object_coverages": 0.48}, True),
        ({"min_crop_object_coverages": 0.5}, False),
        ({"min_crop_object_coverages": 0.48, "min_crop_overlaps": 0.26}, False),
    ],
)
def test_each_limit_of_crops_counts_by_itself(files, limits, shown):
    """A part of 0.6 x 0.6 shows 0.35 x 0.35 of a box of 0.5 x 0.5: it is 0.1225 of 0.4875, 0.36 and 0.25."""
    batches = boxes_of(files, rand_crop_prob=1.0, **limits)
    box = np.array([[1, 0.25, 0.25, 0.75, 0.75]], np.float32)
    sampler, part = batches._samplers[0], (0.0, 0.4, 0.6, 0.6)
    assert (batches._kept(box, sampler, *part) is not None) == shown
    assert batches._kept(box - np.float32([0, 0, 0.2, 0, 0.2]), sampler, *part) is None, "its centre is above"
    assert batches._kept(box[:0], sampler, *part) is not None, "any part will do where there are no boxes"


def test_boxes_of_a_part_and_of_a_larger_picture():
    from roiops.training.image.record_det_iter import _within

    boxes = np.array([[1, 0.25, 0.25, 0.75, 0.75]], np.float32)
    np.testing.assert_allclose(_within(boxes, 0.5, 0.0, 0.5, 1.0), [[1, 0, 0.25, 0.5, 0.75]])
    np.testing.assert_allclose(_within(boxes, -0.5, -1.0, 2.0, 2.0), [[1, 0.375, 0.625, 0.625, 0.875]])


@pytest.mark.parametrize("index", [None, "labels.idx"])
def test_the_order_of_three_epochs(files, index):
    options = {"path_imgidx": files / index} if index else {}
    batches = pictures_of(files, batch_size=2, **options)
    for epoch in META["order"]:
        assert [[batch.label[0].asnumpy().tolist(), batch.pad] for batch in batches] == epoch
        batches.reset()


@pytest.mark.parametrize("made", [pictures_of, boxes_of])
def test_batches_by_iter_next_and_getters(files, made):
    """As MXNet gives them after a reset: data and label are arrays, not lists."""
    expected = [
        (each.data[0].asnumpy(), each.label[0].asnumpy(), each.pad) for each in made(files, batch_size=3)
    ]
    batches = made(files, batch_size=3)
    with pytest.raises(mx.MXNetError, match="no batch before next"):
        batches.getdata()
    for data, label, pad in expected:
        assert batches.iter_next()
        np.testing.assert_array_equal(batches.getdata().asnumpy(), data)
        np.testing.assert_array_equal(batches.getlabel().asnumpy(), label)
        assert batches.getpad() == pad
    assert not batches.iter_next()
    batches.reset()
    assert batches.next().index.tolist() == batches.getindex().tolist()


def test_scripts_know_iterators_of_files_by_their_class(files):
    assert isinstance(pictures_of(files), mx.io.MXDataIter)
    assert isinstance(boxes_of(files), mx.io.MXDataIter)
    assert issubclass(mx.io.MNISTIter, mx.io.MXDataIter)
    assert issubclass(mx.io.CSVIter, mx.io.MXDataIter)
    assert not issubclass(mx.io.NDArrayIter, mx.io.MXDataIter)


def test_parameters_as_strings_are_those_that_they_stand_for(files):
    """MXNet's front end makes strings of all parameters, so that scripts may give strings."""
    plain = next(pictures_of(files)).data[0].asnumpy()
    strings = {
        "data_shape": str(META["shape"]), "batch_size": "5", "mirror": "0", "rand_mirror": "False",
        "shuffle": "false", "rand_crop": 0, "pad": "0", "resize": "-1", "num_parts": "1", "label_width": "1",
        "dtype": "None", "seed_aug": "None", "min_aspect_ratio": "None", "round_batch": "True",
        "preprocess_threads": "2", "scale": "1", "path_imgidx": None,
    }  # fmt: skip
    batch = next(pictures_of(files, **strings))
    np.testing.assert_array_equal(batch.data[0].asnumpy(), plain)
    assert batch.label[0].asnumpy().tolist() == [0, 1, 2, 3, 4]
    mirrored = next(pictures_of(files, mirror="true")).data[0].asnumpy()
    np.testing.assert_array_equal(mirrored, plain[..., ::-1])
    shifted = next(pictures_of(files, mean_r="3", scale="0.5")).data[0].asnumpy()
    np.testing.assert_array_equal(shifted[:, 0], (plain[:, 0] - 3) / 2)
    turned = next(pictures_of(files, rotate_list="90")).data[0].asnumpy()
    np.testing.assert_array_equal(turned, next(pictures_of(files, rotate=90)).data[0].asnumpy())
    *_, last = pictures_of(files, batch_size=2, round_batch="0")
    assert last.index.tolist() == [4]


def test_parameters_of_detection_as_strings(files):
    plain = next(boxes_of(files)).label[0].asnumpy()
    strings = {"label_pad_width": "40", "num_crop_sampler": "2", "min_crop_scales": "(0.1, 0.2)"}
    batch = next(boxes_of(files, **strings, max_crop_trials="[25, 25]", rand_mirror_prob="0"))
    assert batch.label[0].shape == (5, 44)
    np.testing.assert_array_equal(batch.label[0].asnumpy()[:, : plain.shape[1]], plain)
    with pytest.raises(mx.MXNetError, match="resize_mode must be"):
        boxes_of(files, resize_mode="stretch")


def test_without_round_batch_zeros_fill_the_last_batch(files):
    batches = pictures_of(files, batch_size=2, round_batch=False)
    for _ in range(2):
        *_, last = batches
        assert last.pad == 1
        assert last.index.tolist() == [4]
        assert last.label[0].asnumpy().tolist() == [4, 0]
        assert not last.data[0].asnumpy()[1].any()
        batches.reset()


def test_shuffled_epochs_have_all_pictures_in_another_order(files):
    batches = pictures_of(files, shuffle=True, seed=2)
    epochs = []
    for _ in range(3):
        epochs.append(next(batches).label[0].asnumpy().tolist())
        batches.reset()
    assert all(sorted(each) == [0, 1, 2, 3, 4] for each in epochs)
    assert len({tuple(each) for each in epochs}) > 1
    assert epochs[0] == next(pictures_of(files, shuffle=True, seed=2)).label[0].asnumpy().tolist()


def test_parts_are_all_of_it(files):
    for options in ({}, {"path_imgidx": files / "labels.idx"}):
        found = []
        for part in range(3):
            batches = pictures_of(files, batch_size=1, num_parts=3, part_index=part, **options)
            found += [batch.label[0].asscalar() for batch in batches]
        assert found == [0, 1, 2, 3, 4]


def test_labels_of_a_list(files):
    lines = "".join(f"{number}\t{10 + number}\t{20 + number}\tx.png\n" for number in range(5))
    (files / "a.lst").write_text(lines)
    batches = pictures_of(files, path_imglist=files / "a.lst", label_width=2)
    assert batches.provide_label[0].shape == (5, 2)
    assert next(batches).label[0].asnumpy().tolist() == [[10 + n, 20 + n] for n in range(5)]
    first = next(pictures_of(files, path_imglist=files / "a.lst"))  # as in MXNet, where it is 1
    assert first.label[0].asnumpy().tolist() == [10, 11, 12, 13, 14]
    with pytest.raises(mx.MXNetError, match="has 2 labels, label_width is 3"):
        next(pictures_of(files, path_imglist=files / "a.lst", label_width=3))
    (files / "a.lst").write_text(lines[: lines.index("\n") + 1])
    with pytest.raises(mx.MXNetError, match=r"a\.lst has no line for picture 1"):
        next(pictures_of(files, path_imglist=files / "a.lst", label_width=2))


def test_a_mean_picture_is_computed_once_and_kept(files):
    path = files / "mean.nd"
    first = next(pictures_of(files, mean_img=str(path))).data[0].asnumpy()
    np.testing.assert_allclose(
        mx.nd.load(str(path))["mean_img"].asnumpy(), GIVEN["middle"].mean(0), rtol=1e-6
    )
    np.testing.assert_allclose(first, GIVEN["middle"] - GIVEN["middle"].mean(0), atol=1e-4)
    again = next(pictures_of(files, mean_img=str(path))).data[0].asnumpy()
    np.testing.assert_array_equal(first, again)
    with pytest.raises(mx.MXNetError, match="holds shape"):
        pictures_of(files, mean_img=str(path), data_shape=(3, 8, 8))


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_a_mean_picture_is_mirrored_with_the_picture(files, dtype):
    """MXNet subtracts first: in its mirrored pictures each number is one of those that are not mirrored."""
    mean = mx.nd.arange(np.prod(META["shape"])).reshape(META["shape"]) % 100
    mx.nd.save(str(files / "mean.nd"), {"mean_img": mean})
    options = {"mean_img": files / "mean.nd", "dtype": dtype}
    plain = next(pictures_of(files, **options)).data[0].asnumpy()
    mirrored = next(pictures_of(files, mirror=True, **options)).data[0].asnumpy()
    np.testing.assert_array_equal(mirrored, plain[..., ::-1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"dtype": "float64"}, "dtype must be float32 or uint8 or int8"),
        ({"data_shape": (4, 8, 8)}, "data_shape must be 1 or 3 channels"),
        ({"data_shape": (3, 0, 8)}, "data_shape must be 1 or 3 channels"),
        ({"data_shape": "wide"}, "data_shape must be tuple of int, got 'wide'"),
        ({"mirror": "yes"}, "mirror must be bool, got 'yes'"),
        ({"resize": None}, "resize must be int, got None"),
        ({"part_index": 3}, "part_index must be 0 to 0"),
        ({"label_width": 2}, "has 1 labels, label_width is 2"),
        ({"batch_size": 0}, "batch_size must be int, 1 or more, got 0"),
        ({"batch_size": 12}, "5 pictures in this part"),
        ({"random_resized_crop": True, "rand_crop": True}, "random_resized_crop goes without"),
        ({"max_crop_size": 40, "min_crop_size": 3}, "crops of 3 to 40 pixels"),
        ({"inter_method": 7, "resize": 20}, "interp must be"),
    ],
)
def test_what_cannot_be(files, options, message):
    with pytest.raises(mx.MXNetError, match=message):
        next(pictures_of(files, **options))


def test_a_name_that_is_no_parameter_is_told(files, caplog):
    with caplog.at_level(logging.WARNING):
        pictures_of(files, rand_miror=True)
    assert "no parameter 'rand_miror'" in caplog.text
    assert "rand_mirror" in caplog.text


def test_a_damaged_picture_is_named(files):
    raw = (files / "labels.rec").read_bytes()
    (files / "labels.rec").write_bytes(raw.replace(b"IHDR", b"IXXX"))
    with pytest.raises(mx.MXNetError, match=r"labels\.rec, picture 0"):
        next(pictures_of(files))


def test_a_file_without_pictures_is_told(files):
    """Otherwise a training loop would end at once and say nothing. MXNet refuses it, too."""
    (files / "labels.rec").write_bytes(b"")
    with pytest.raises(mx.MXNetError, match=r"labels\.rec has no pictures"):
        pictures_of(files)


def test_limits_of_chance_in_either_order(files):
    """As in MXNet, where the other limit of a scale or a ratio stands at its default."""
    middle = GIVEN["middle"]
    for options in ({"min_random_scale": 1.5}, {"max_random_scale": 0.7}, {"min_aspect_ratio": 0.8}):
        found = next(pictures_of(files, **options)).data[0].asnumpy()
        assert (found != middle).any()


def test_labels_without_boxes_are_told(files):
    with pytest.raises(mx.MXNetError, match="holds no boxes"):
        next(mx.io.ImageDetRecordIter(path_imgrec=files / "labels.rec", data_shape=(3, 8, 8), batch_size=2))
    with pytest.raises(mx.MXNetError, match="label_pad_width is 5, a label has 17 numbers"):
        boxes_of(files, label_pad_width=5)


def test_other_names(files):
    made = mx.io.ImageRecordUInt8Iter(path_imgrec=files / "labels.rec", data_shape=(3, 8, 8), batch_size=2)
    assert next(made).data[0].dtype == np.uint8
    assert mx.io.ImageRecordIter_v1 is mx.io.ImageRecordIter
    assert (
        next(mx.io.ImageRecordInt8Iter(path_imgrec=files / "labels.rec", data_shape=(3, 8, 8), batch_size=2))
        .data[0]
        .dtype
        == np.int8
    )


def test_a_module_trains_on_it(files):
    batches = pictures_of(files, scale=1 / 255, rand_mirror=True, shuffle=True)
    net = mx.sym.FullyConnected(mx.sym.Flatten(mx.sym.Variable("data")), num_hidden=5)
    module = mx.mod.Module(mx.sym.SoftmaxOutput(net, name="softmax"))
    mx.random.seed(1)
    metric = mx.metric.Accuracy()
    module.fit(batches, eval_metric=metric, num_epoch=30, optimizer_params={"learning_rate": 0.05})
    batches.reset()
    assert module.score(batches, "acc")[0][1] == 1.0
