"""What outputs say about pictures: objects, classes, a class for each pixel; and drawings of it."""

import json

import numpy as np
import pytest

import roiops as mx
from roiops.errors import SettingsError
from roiops.models.detections import Detection, best_detections, find_detections
from roiops.models.drawing import colours, draw, save
from roiops.models.labels import SETS, class_name, fitting, read_labels
from roiops.models.outputs import Reading, Settings, json_text, read_outputs
from roiops.models.pictures import Placement

PIL = pytest.importorskip("PIL.Image", reason="images need Pillow")

# -- detections ------------------------------------------------------------------------------------------


def test_detections_of_gluon():
    outputs = {
        "ids": np.array([[[2], [0], [-1]]]),
        "scores": np.array([[[0.9], [0.4], [-1]]]),
        "boxes": np.array([[[1, 2, 30, 40], [5, 6, 7, 8], [-1] * 4]]),
    }
    assert find_detections(outputs, 50, 50) == [Detection(0, 2, 0.9, (1, 2, 30, 40))]
    assert len(find_detections(outputs, 50, 50, threshold=0.1)) == 2


def test_boxes_are_fractions_or_pixels_of_each_image_by_itself():
    rows = np.full((3, 4, 6), -1.0)
    rows[0, :2] = [[0, 0.9, 0.1, 0.1, 0.5, 0.5], [1, 0.8, 0.2, 0.2, 0.6, 0.6]]
    rows[1, :3] = [[0, 0.9, 0.1, 0.1, 0.5, 0.5], [0, 0.1, 0.1, 0.2, 0.7, 0.9], [0, 0.6, -0.1, 0.1, 0.5, 2.2]]
    rows[2, :2] = [[0, 0.9, 1, 1, 2, 2], [1, 0.1, 3, 4, 50, 60]]
    for threshold in (0.05, 0.5, 0.85):
        found = find_detections({"rows": rows}, 300, 300, threshold=threshold)
        best = {each.image: each.box for each in found if each.score == 0.9}
        assert best == {0: (30, 30, 150, 150), 1: (30, 30, 150, 150), 2: (1, 1, 2, 2)}


def test_detections_of_an_rcnn():
    # Two overlapping boxes of class 1, the lesser of which is suppressed, and one of class 2.
    rois = np.array([[0, 10, 10, 19, 19], [0, 10, 10, 20, 20], [0, 50, 50, 69, 69]], float)
    probabilities = np.array([[[0.1, 0.8, 0.1], [0.3, 0.6, 0.1], [0.2, 0.1, 0.7]]])
    deltas = np.zeros((1, 3, 12))
    deltas[0, 2, 8:] = [0.05, 0, np.log(2), 0]  # class 2: one pixel to the right, twice as wide
    found = find_detections({"rois": rois, "p": probabilities, "d": deltas}, 100, 100)
    assert [(d.class_id, d.score) for d in found] == [(0, 0.8), (1, 0.7)]
    assert found[0].box == (10, 10, 19, 19)
    assert found[1].box == pytest.approx((41, 50, 80, 69))


def test_other_outputs_are_no_detections():
    assert find_detections({"p": np.ones((1, 6))}, 10, 10) is None
    assert find_detections({"a": np.ones((1, 2, 3)), "b": np.ones((1, 2, 3))}, 10, 10) is None


def test_detections_of_centernet():
    outputs = {
        "ids": np.array([[3.0, 1.0]]),
        "scores": np.array([[0.9, 0.6]]),
        "boxes": np.array([[[1, 2, 30, 40], [5, 6, 70, 80]]], float),
    }
    assert find_detections(outputs, 128, 128) == [
        Detection(0, 3, 0.9, (1, 2, 30, 40)),
        Detection(0, 1, 0.6, (5, 6, 70, 80)),
    ]


def test_masks_go_with_their_boxes():
    outputs = {
        "ids": np.array([[[1.0], [0.0]]]),
        "scores": np.array([[[0.6], [0.8]]]),
        "boxes": np.array([[[0, 0, 8, 8], [4, 4, 9, 9]]], float),
        "masks": np.stack([np.zeros((4, 4)), np.ones((4, 4))])[None],
    }
    found = find_detections(outputs, 16, 16)
    assert [d.class_id for d in found] == [0, 1]
    assert [d.mask.mean() for d in found] == [1, 0]
    assert "mask" not in found[0].to_dict()


def test_the_best_below_the_threshold():
    rows = np.array([[[0, 0.2, 0, 0, 9, 9], [2, 0.4, 0, 0, 9, 9]], [[1, 0.9, 0, 0, 9, 9], [-1] * 6]])
    assert [(d.image, d.class_id, d.score) for d in best_detections({"rows": rows}, 20, 20)] == [
        (0, 2, 0.4),
        (1, 1, 0.9),
    ]
    first, second = read_outputs({"rows": rows}, [Placement(20, 20)] * 2, Settings(classes=["a", "b", "c"]))
    assert (first.detections, first.best_below.class_id) == ([], 2)
    assert (len(second.detections), second.best_below) == (1, None)
    assert first.to_dict()["best_below_threshold"]["class"] == "c"


# -- readings --------------------------------------------------------------------------------------------


def test_boxes_are_in_pixels_of_the_picture():
    rows = np.array([[[0, 0.9, 10, 10, 20, 30]]], float)
    (reading,) = read_outputs({"rows": rows}, [Placement(50, 60, (0.5, 2.0), (10, 4))])
    assert reading.detections[0].box == (7, 40, 12, 80)


#: What MTCNN's last network gives: landmarks first, then boxes, then whether there is a face.
MTCNN = {
    "landmarks": np.linspace(0.3, 0.7, 20).reshape(2, 10),
    "boxes": np.array([[0.1, -0.1, 0.2, 0.0], [0.4, 0.3, 0.2, 0.1]]),
    "prob1": np.array([[0.1, 0.9], [0.75, 0.25]]),
}


def test_classes_come_from_the_output_that_is_a_distribution():
    first, second = read_outputs(MTCNN, [Placement(48, 48)] * 2)
    assert [(s.output, s.kind, s.best) for s in first.scores] == [
        ("prob1", "probabilities", [(1, 0.9), (0, 0.1)])
    ]
    assert second.to_dict() == {
        "best": [
            {"class_id": 0, "class": "class 0", "score": 0.75},
            {"class_id": 1, "class": "class 1", "score": 0.25},
        ]
    }


def test_a_softmax_is_applied_where_it_is_asked_for_and_said():
    logits = {"fc": np.log(np.array([[1.0, 2, 5]]))}
    (plain,) = read_outputs(logits, [Placement(9, 9)])
    assert plain.scores[0].kind == "values"
    assert "--softmax" in plain.scores[0].remark
    (reading,) = read_outputs(logits, [Placement(9, 9)], Settings(softmax=True, top=2))
    assert [n for n, _ in reading.scores[0].best] == [2, 1]
    assert [s for _, s in reading.scores[0].best] == pytest.approx([0.625, 0.25])
    assert reading.scores[0].remark == "softmax was applied to fc"
    assert reading.to_dict()["softmax_applied"] is True
    (unchanged,) = read_outputs({"p": np.array([[0.2, 0.8]])}, [Placement(9, 9)], Settings(softmax=True))
    assert unchanged.scores[0].kind == "probabilities"


def test_names_that_do_not_fit_are_refused():
    with pytest.raises(mx.MXNetError, match=r"classes: 4 names fit none of the outputs: prob1 \(2\)"):
        read_outputs(MTCNN, [Placement(48, 48)] * 2, Settings(classes=list("abcd")))
    rows = np.array([[[5, 0.9, 0, 0, 9, 9]]], float)
    with pytest.raises(mx.MXNetError, match="2 names do not fit the detections, which have class 5"):
        read_outputs({"rows": rows}, [Placement(20, 20)], Settings(classes=["cat", "dog"]))
    two = {"rois": np.zeros((1, 5)), "prob": np.array([[0.8, 0.1, 0.1]]), "deltas": np.zeros((1, 12))}
    for names in (["cat"], ["background", "cat", "dog"]):
        words = f"{len(names)} names do not fit the detector, which has 2 classes and the background"
        with pytest.raises(mx.MXNetError, match=words):
            read_outputs(two, [Placement(20, 20)], Settings(classes=names))
    read_outputs(two, [Placement(20, 20)], Settings(classes=["cat", "dog"]))
    (reading,) = read_outputs(
        {"p": np.array([[0.1, 0.2, 0.7]])}, [Placement(9, 9)], Settings(classes=["cat", "dog"])
    )
    assert reading.scores[0].names == ["background", "cat", "dog"]


def test_a_segmentation_is_the_class_of_each_pixel():
    scores = np.zeros((1, 3, 4, 6))
    scores[0, 1, :, :3] = 1
    scores[0, 2, 0, :] = 2
    (reading,) = read_outputs({"features": scores[:, :, ::2, ::2], "map": scores}, [Placement(4, 6)])
    assert reading.segmentation.tolist() == [[2] * 6] + [[1] * 3 + [0] * 3] * 3
    assert reading.parts() == [(0, 0.375), (1, 0.375), (2, 0.25)]
    (binary,) = read_outputs({"map": scores[:, 1:2]}, [Placement(4, 6)])
    assert binary.segmentation.tolist() == [[1] * 3 + [0] * 3] * 4


def test_outputs_of_another_kind_say_nothing():
    (reading,) = read_outputs({"features": np.zeros((1, 3, 5, 5))}, [Placement(9, 9)])
    assert reading.to_dict() == {}


def test_built_in_label_sets():
    for name, count in SETS.items():
        assert len(read_labels(name)) == count
    assert read_labels("imagenet")[281] == "tabby"
    assert (read_labels("voc")[14], read_labels("coco")[0]) == ("person", "person")
    assert read_labels("a, b") == ["a", "b"]
    assert class_name(3, ["a"]) == "class 3"
    assert fitting(["a"], 2, "x") == ["background", "a"]


@pytest.mark.parametrize("content", [b"cat\ndog", b"\xef\xbb\xbfcat\r\n\r\ndog\r\n", b"  cat  \ndog\n\n"])
def test_files_of_class_names_as_editors_write_them(tmp_path, content):
    (tmp_path / "names.txt").write_bytes(content)
    assert read_labels(tmp_path / "names.txt") == ["cat", "dog"]


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"", "holds no names"), (b"\n \n", "holds no names"), (b"K\xe4se\n", "byte 1 is not UTF-8 text")],
)
def test_a_file_without_class_names_is_refused(tmp_path, content, problem):
    (tmp_path / "names.txt").write_bytes(content)
    with pytest.raises(SettingsError, match=rf"classes: .*names.txt:? {problem}"):
        read_labels(tmp_path / "names.txt")


# -- drawings --------------------------------------------------------------------------------------------


def test_colours_do_not_repeat_within_a_picture():
    for numbers in (range(12), [0, 8, 16, 24, 32], range(0, 80, 5), range(60)):
        found = colours(numbers)
        assert len(set(found.values())) == len(list(numbers))
    assert colours([7])[7] == colours([7, 3])[7]


def test_boxes_are_drawn_in_their_colours():
    image = PIL.new("RGB", (600, 400))
    found = [Detection(0, 1, 0.9, (100, 100, 300, 300)), Detection(0, 2, 0.8, (-50, 350, 900, 390))]
    pixels = np.asarray(draw(image, Reading(detections=found, names=["a", "b", "c"])))
    chosen = colours([1, 2])
    assert pixels.shape == (400, 600, 3)
    assert tuple(pixels[200, 100]) == chosen[1]
    assert tuple(pixels[350, 500]) == chosen[2]
    assert not pixels[200, 200].any()


def test_a_mask_covers_its_part_of_the_box():
    image = PIL.new("RGB", (600, 400))
    mask = np.zeros((4, 4))
    mask[:, :2] = 1
    found = [Detection(0, 1, 0.9, (100, 100, 300, 300), mask)]
    pixels = np.asarray(draw(image, Reading(detections=found)))
    assert pixels[200, 150].any()
    assert not pixels[200, 250].any()


def test_a_segmentation_is_laid_over_the_part_that_the_network_saw():
    image = PIL.new("RGB", (600, 600), (100, 100, 100))
    labels = np.ones((4, 4), np.int64)
    labels[:2] = 0
    reading = Reading(segmentation=labels, names=["background", "cat"])
    place = Placement(4, 4, (0.01, 0.01), (1, 1))  # the middle 400 of 600 pixels
    pixels = np.asarray(draw(image, reading, place)).astype(int)
    assert pixels[450, 300].tolist() != [100, 100, 100], "a cat"
    assert pixels[150, 300].tolist() == [100, 100, 100], "background"
    assert pixels[595, 300].tolist() == [100, 100, 100], "not seen by the network"


@pytest.mark.parametrize("side", [200, 1200])
def test_a_legend_has_a_whole_line_for_each_class(side):
    labels = np.repeat(np.arange(4), 6).reshape(4, 6)
    names = ["cow", "gypsy", "ox", "Éclair"]
    pixels = np.asarray(draw(PIL.new("RGB", (side, side)), Reading(segmentation=labels, names=names)))
    column, chosen = pixels[:, 1], colours(range(4))
    lines = [np.flatnonzero((column == chosen[number]).all(axis=1)) for number in range(4)]
    heights = {len(line) for line in lines}
    assert len(heights) == 1, "each line is whole"
    assert min(heights) >= 13
    for number, line in enumerate(lines):
        assert (line == np.arange(len(line)) + number * len(line)).all(), "no line covers another"


def test_a_drawing_needs_an_ending_that_pillow_knows(tmp_path):
    with pytest.raises(mx.MXNetError, match=r"Pillow cannot write this kind of picture; use .png or .jpg"):
        save(PIL.new("RGB", (2, 2)), tmp_path / "picture.xyz")


def test_outputs_that_hold_nan_are_named_for_the_pictures_that_they_are_of():
    scores = np.array([[0.1, 0.9], [np.nan, 0.2]], np.float32)
    first, second = read_outputs({"prob_output": scores}, [Placement(9, 9)] * 2)
    assert (first.not_numbers, second.not_numbers) == ([], ["prob_output"])
    assert "not_numbers" not in first.to_dict()
    assert second.to_dict()["not_numbers"] == ["prob_output"]


def test_json_has_no_nan():
    content = {"a": [1.5, float("nan"), {"b": (float("inf"), 2)}], "c": "NaN", "d": None}
    assert json.loads(json_text(content)) == {"a": [1.5, None, {"b": [None, 2]}], "c": "NaN", "d": None}


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"threshold": "x"}, "threshold must be 1 finite number, got 'x'"),
        ({"threshold": float("nan")}, "threshold must be 1 finite number, got nan"),
        ({"box_stds": (1, 2)}, r"box_stds must be 4 finite numbers, got \(1, 2\)"),
    ],
)
def test_settings_that_are_no_numbers(given, text):
    with pytest.raises(SettingsError, match=text):
        Settings(**given)


def test_classes_are_a_list_or_a_file(tmp_path):
    with pytest.raises(SettingsError, match="classes must be a list of names, or a file of them, got 3"):
        read_labels(3)
    with pytest.raises(SettingsError, match="is a folder; give a file with a name in each line"):
        read_labels(tmp_path)
