"""How good detections are: average precision as PASCAL VOC counts it, and COCO's result files."""

import numpy as np

from . import boxes

__all__ = ["average_precision", "coco_results", "least_score", "mean_average_precision", "right"]


def average_precision(recall, precision, eleven_points=False) -> float:
    """The area under the curve of the best precision at each recall or beyond.

    Parameters
    ----------
    recall, precision : arrays
        After each detection, best first.
    eleven_points : bool
        Whether to take the mean at recalls 0, 0.1, ..., 1, as VOC did until 2007.
    """
    if eleven_points:
        best = [precision[recall >= level].max(initial=0) for level in np.linspace(0, 1, 11)]
        return float(np.mean(best))
    recall = np.concatenate([[0], recall, [1]])
    precision = np.concatenate([[0], precision, [0]])
    envelope = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(recall) * envelope[1:]))


def mean_average_precision(records, detections, classes, threshold=0.5, eleven_points=False):
    """The mean over classes, and the average precision of each class by name.

    Parameters
    ----------
    records : list of Record
        The truth.
    detections : list of lists of Detection
        What was found in each record's picture.
    classes : list of str
        Names of the classes, without the background.
    threshold : float
        Least overlap of a detection with the object it finds.
    """
    each = {}
    for number, label in enumerate(classes, start=1):
        each[label] = _class_precision(records, detections, number, label, threshold, eleven_points)
    known = [value for value in each.values() if not np.isnan(value)]
    return (float(np.mean(known)) if known else float("nan")), each


def _class_precision(records, detections, number, label, threshold, eleven_points) -> float:
    """Average precision of one class; NaN where there is no object of it."""
    found = [
        (detection.score, i, detection.box)
        for i, of_image in enumerate(detections)
        for detection in of_image
        if detection.label == label
    ]
    found.sort(key=lambda each: -each[0])
    truth = [record.boxes[record.classes == number] for record in records]
    difficult = [record.difficult[record.classes == number] for record in records]
    total = sum(int((~hard).sum()) for hard in difficult)
    if not total:
        return float("nan")
    taken = [np.zeros(len(each), bool) for each in truth]
    hits = np.zeros(len(found))
    misses = np.zeros(len(found))
    for rank, (_, i, box) in enumerate(found):
        overlap = boxes.iou(np.array([box]), truth[i])[0] if len(truth[i]) else np.zeros(0)
        best = int(overlap.argmax()) if len(overlap) else -1
        if best < 0 or overlap[best] < threshold:
            misses[rank] = 1
        elif not difficult[i][best]:
            (misses if taken[i][best] else hits)[rank] = 1
            taken[i][best] = True
    hits, misses = np.cumsum(hits), np.cumsum(misses)
    precision = hits / np.maximum(hits + misses, 1)
    return average_precision(hits / total, precision, eleven_points)


def right(detections, classes, truth, labels, threshold=0.5) -> list[bool]:
    """Which detections, best first, find an object of their class that no better one found.

    Parameters
    ----------
    classes : list of str
        Names of the classes, without the background.
    truth, labels : arrays
        The objects' boxes, and the numbers of their classes, from 1 on.
    """
    taken = np.zeros(len(truth), bool)
    result = []
    for each in detections:
        overlap = boxes.iou(np.array([each.box]), truth.reshape(-1, 4))[0]
        fits = (overlap >= threshold) & (labels == classes.index(each.label) + 1) & ~taken
        result.append(bool(fits.any()))
        if fits.any():
            taken[np.where(fits, overlap, -1).argmax()] = True
    return result


def least_score(records, detections, classes, precision=0.95) -> tuple[float, float]:
    """The least score above which this part of the detections is right, and the part of objects they find.

    Infinite, and 0, where no score will do.
    """
    scored = []
    for record, found in zip(records, detections, strict=True):
        is_right = right(found, classes, record.boxes, record.classes)
        scored += [(each.score, hit) for each, hit in zip(found, is_right, strict=True)]
    scored.sort(key=lambda each: -each[0])
    hits = np.cumsum([hit for _, hit in scored])
    good = np.flatnonzero(hits >= precision * np.arange(1, len(scored) + 1))
    if not len(good):
        return float("inf"), 0.0
    return scored[good[-1]][0], float(hits[good[-1]] / sum(len(record.boxes) for record in records))


def coco_results(records, detections, categories: dict[str, int]) -> list[dict]:
    """Detections as COCO's tools read them; ``categories`` are the data set's own numbers."""
    return [
        {
            "image_id": int(record.name) if record.name.isdigit() else record.name,
            "category_id": categories[each.label],
            "bbox": [each.box[0], each.box[1], each.box[2] - each.box[0] + 1, each.box[3] - each.box[1] + 1],
            "score": each.score,
        }
        for record, of_image in zip(records, detections, strict=True)
        for each in of_image
    ]
