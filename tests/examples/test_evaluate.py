"""Average precision on cases worked by hand."""

from pathlib import Path

import numpy as np
import pytest
from rcnn.data import Record
from rcnn.detector import Detection
from rcnn.evaluate import average_precision, coco_results, least_score, mean_average_precision, right

BOX = (0.0, 0.0, 9.0, 9.0)
AWAY = (50.0, 50.0, 59.0, 59.0)


def record(*objects, name="1"):
    rows = [(box, number, hard) for box, number, hard in objects]
    return Record(
        name,
        Path("a.png"),
        100,
        100,
        np.array([r[0] for r in rows], np.float32).reshape(-1, 4),
        np.array([r[1] for r in rows], np.int64),
        np.array([r[2] for r in rows], bool),
    )


def test_area_under_the_envelope():
    recall, precision = np.array([0.5, 0.5, 1.0]), np.array([1.0, 0.5, 2 / 3])
    assert average_precision(recall, precision) == pytest.approx(0.5 + 0.5 * 2 / 3)
    assert average_precision(recall, precision, True) == pytest.approx((6 + 5 * 2 / 3) / 11)
    assert average_precision(np.zeros(0), np.zeros(0)) == 0


def measure(records, detections, threshold=0.5):
    return mean_average_precision(records, detections, ["cat", "dog"], threshold)


def test_hits_misses_and_doubles():
    records = [record((BOX, 1, False), (AWAY, 1, False)), record((BOX, 2, False))]
    found = [
        [Detection("cat", 0.9, BOX), Detection("cat", 0.8, BOX), Detection("cat", 0.7, AWAY)],
        [Detection("dog", 0.6, BOX), Detection("cat", 0.95, BOX)],
    ]
    mean, each = measure(records, found)
    # cat: a false one first, then a hit, its double, and the other hit: precision 1/2 up to 1/2, and 2/4.
    assert each == pytest.approx({"cat": 0.5, "dog": 1.0})
    assert mean == pytest.approx(0.75)


def test_the_threshold_is_inclusive():
    records, half = [record((BOX, 1, False))], (0.0, 0.0, 9.0, 4.0)
    found = [[Detection("cat", 0.9, half)]]
    assert measure(records, found, 0.5)[1]["cat"] == 1
    assert measure(records, found, 0.51)[1]["cat"] == 0


def test_difficult_objects_do_not_count():
    records = [record((BOX, 1, True), (AWAY, 1, False))]
    mean, each = measure(records, [[Detection("cat", 0.9, BOX), Detection("cat", 0.8, AWAY)]])
    assert each["cat"] == 1
    assert np.isnan(each["dog"])  # none to be found: the class is left out of the mean
    assert mean == 1


def test_nothing_found():
    mean, each = measure([record((BOX, 1, False))], [[]])
    assert each["cat"] == 0
    assert mean == 0


def test_coco_results():
    results = coco_results([record(name="12")], [[Detection("dog", 0.5, (1.0, 2.0, 3.0, 5.0))]], {"dog": 18})
    assert results == [{"image_id": 12, "category_id": 18, "bbox": [1.0, 2.0, 3.0, 4.0], "score": 0.5}]


def test_what_a_picture_shows_is_right_or_wrong():
    shown = [
        Detection("cat", 0.9, BOX),
        Detection("dog", 0.8, AWAY),  # of another class
        Detection("cat", 0.7, BOX),  # found already
        Detection("cat", 0.6, AWAY),
    ]
    truth, labels = np.array([BOX, AWAY]), np.array([1, 1])
    assert right(shown, ["cat", "dog"], truth, labels) == [True, False, False, True]
    assert right(shown, ["cat", "dog"], np.zeros((0, 4)), np.zeros(0)) == [False] * 4


def test_the_least_score_that_is_right_often_enough():
    records = [record((BOX, 1, False), (AWAY, 1, False)), record((BOX, 2, False))]
    found = [
        [Detection("cat", 0.9, BOX), Detection("cat", 0.7, AWAY)],
        [Detection("cat", 0.8, BOX), Detection("dog", 0.6, AWAY)],
    ]
    # Of scores from 0.9, 0.8, 0.7 and 0.6 on, 1/1, 1/2, 2/3 and 2/4 are right.
    assert least_score(records, found, ["cat", "dog"], 0.95) == pytest.approx((0.9, 1 / 3))
    assert least_score(records, found, ["cat", "dog"], 0.6) == pytest.approx((0.7, 2 / 3))
    wrong = [[Detection("dog", 0.9, BOX)]]
    assert least_score(records[:1], wrong, ["cat", "dog"], 0.95) == (float("inf"), 0.0)
