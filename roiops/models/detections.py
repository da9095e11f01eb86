"""Boxes from the outputs of a detector, whichever of the published conventions they follow."""

import dataclasses

import numpy as np

from .. import ndarray as nd

__all__ = ["Detection", "best_detections", "decode_boxes", "find_detections"]


@dataclasses.dataclass
class Detection:
    """One object: number of its image, class, score, and box in pixels of the network's input.

    ``mask``, where the network gives one, holds for each part of the box how sure it is that the object
    covers it.
    """

    image: int
    class_id: int
    score: float
    box: tuple[float, float, float, float]
    mask: np.ndarray | None = dataclasses.field(default=None, repr=False, compare=False)

    def to_dict(self) -> dict:
        """The same as numbers and strings, fit for JSON. Masks are left out."""
        return {"image": self.image, "class_id": self.class_id, "score": self.score, "box": self.box}


def find_detections(
    outputs: dict[str, np.ndarray],
    height: int,
    width: int,
    *,
    threshold: float = 0.5,
    box_stds=(1.0, 1.0, 1.0, 1.0),
    nms: float = 0.3,
) -> list[Detection] | None:
    """The objects in a detector's outputs, best first in each image; None if they are not detections.

    Known are one output of rows ``[class, score, x1, y1, x2, y2]`` (MultiBoxDetection, box_nms), the
    three outputs classes, scores and boxes (GluonCV, CenterNet among it), to which Mask R-CNN adds a fourth
    with masks, and the outputs rois, class probabilities and box deltas of the R-CNN family, which are
    decoded here.

    Parameters
    ----------
    outputs : dict of numpy.ndarray
        The outputs by name, in the graph's order.
    height, width : int
        Size of the network's input.
    threshold : float
        The least score.
    box_stds : sequence of 4 floats
        What the deltas of an R-CNN are multiplied with.
    nms : float
        Overlap above which the lesser of two boxes of an R-CNN is dropped.
    """
    arrays, of_gluon = _arrays(outputs)
    shapes = [a.shape for a in arrays]
    rows = masks = None
    if of_gluon:
        boxes = arrays[2]
        columns = (each.reshape(*boxes.shape[:2], 1) for each in arrays[:2])
        rows = np.concatenate([*columns, boxes], axis=2)
        if len(arrays) > 3 and len(shapes[3]) == 4 and shapes[3][:2] == boxes.shape[:2]:
            masks = arrays[3]
    elif len(arrays) == 1 and len(shapes[0]) == 3 and shapes[0][2] == 6:
        rows = arrays[0]
    if rows is not None:
        return _from_rows(rows, height, width, threshold, masks)
    rois = _rois_first(arrays)
    if rois is None:
        return None
    return _from_rcnn(*rois, height, width, threshold, box_stds, nms)


def best_detections(
    outputs: dict[str, np.ndarray], height: int, width: int, *, box_stds=(1.0, 1.0, 1.0, 1.0)
) -> list[Detection]:
    """The best detection of each image, whatever its score: what to say where none reaches the threshold."""
    every = find_detections(outputs, height, width, threshold=0.0, box_stds=box_stds, nms=1.0) or []
    best: dict[int, Detection] = {}
    for each in every:
        if each.image not in best or each.score > best[each.image].score:
            best[each.image] = each
    return list(best.values())


def class_count(outputs: dict[str, np.ndarray]) -> int | None:
    """How many classes a detector tells apart, background not counted, where its outputs show it.

    Those of the R-CNN family do: they have a score for each class. Rows of the best classes do not.
    """
    arrays, of_gluon = _arrays(outputs)
    found = None if of_gluon else _rois_first(arrays)
    return None if found is None else found[1].shape[1] - 1


def _arrays(outputs) -> tuple[list[np.ndarray], bool]:
    """The outputs as float64, and whether they are GluonCV's classes, scores and boxes."""
    arrays = [np.asarray(a, dtype=np.float64) for a in outputs.values()]
    if len(arrays) < 3:
        return arrays, False
    ids, scores, boxes = (a.shape for a in arrays[:3])
    return arrays, boxes[2:] == (4,) and ids == scores and ids in (boxes[:2], (*boxes[:2], 1))


def _from_rows(rows, height, width, threshold, masks=None) -> list[Detection]:
    found = []
    for image, each in enumerate(rows):
        boxes = each[:, 2:6] * _scale(each[each[:, 0] >= 0, 2:6], height, width)
        kept = np.flatnonzero((each[:, 0] >= 0) & (each[:, 1] >= threshold))
        for number in kept[np.argsort(-each[kept, 1], kind="stable")]:
            box = tuple(float(v) for v in boxes[number])
            mask = None if masks is None else masks[image, number]
            found.append(Detection(image, int(each[number, 0]), float(each[number, 1]), box, mask))
    return found


def _scale(boxes, height, width):
    """What makes pixels of an image's boxes: MultiBoxDetection gives fractions of its size."""
    # Of all boxes, good ones or not, most decide: a single fraction may be far outside the image.
    fractions = len(boxes) > 0 and np.median(np.abs(boxes).max(axis=1)) <= 2
    return (width, height, width, height) if fractions else 1


def _rois_first(arrays):
    """``(rois, probabilities, deltas)`` where the outputs are those of an R-CNN, in any order."""
    flat = [a.reshape(-1, a.shape[-1]) if a.ndim in (2, 3) else None for a in arrays]
    rois = [a for a in flat if a is not None and a.shape[1] == 5]
    if len(arrays) < 3 or not rois:
        return None
    count = len(rois[0])
    others = [a for a in flat if a is not None and a is not rois[0] and len(a) == count]
    for probabilities in others:
        for deltas in others:
            classes = probabilities.shape[1]
            fits = deltas is not probabilities and deltas.shape[1] in (4 * classes, 8) and classes > 1
            if fits and np.allclose(probabilities.sum(axis=1), 1, atol=1e-2):
                return rois[0], probabilities, deltas
    return None


def _from_rcnn(rois, probabilities, deltas, height, width, threshold, box_stds, nms) -> list[Detection]:
    classes = probabilities.shape[1]
    agnostic = deltas.shape[1] == 8 and classes != 2
    found = []
    for class_id in range(1, classes):
        column = 1 if agnostic else class_id
        boxes = decode_boxes(rois[:, 1:5], deltas[:, 4 * column : 4 * column + 4] * box_stds)
        boxes = np.clip(boxes, 0, (width - 1, height - 1) * 2)
        scores = probabilities[:, [class_id]]
        rows = np.concatenate([np.full_like(scores, class_id - 1), scores, boxes], 1)
        for image in np.unique(rois[:, 0]).astype(int):
            chosen = rows[(rois[:, 0] == image) & (scores[:, 0] >= threshold)]
            if not len(chosen):
                continue
            kept = nd.contrib.box_nms(chosen[None], overlap_thresh=nms, coord_start=2, score_index=1)
            for row in kept.asnumpy()[0]:
                if row[1] >= 0:
                    found.append(
                        Detection(int(image), class_id - 1, float(row[1]), tuple(float(v) for v in row[2:6]))
                    )
    return sorted(found, key=lambda d: (d.image, -d.score))


def decode_boxes(boxes, deltas) -> np.ndarray:
    """The boxes to which an R-CNN's ``deltas`` lead, in the convention that sizes count both ends.

    Parameters
    ----------
    boxes : numpy.ndarray
        Rows ``[x1, y1, x2, y2]``.
    deltas : numpy.ndarray
        For each box, four numbers or four for each of several classes: the shift of the centre in parts of
        the size, and the logarithm of the growth.

    Returns
    -------
    numpy.ndarray
        Rows of as many boxes, of the shape of ``deltas``.
    """
    deltas = deltas.reshape(len(boxes), -1, 2, 2)
    sizes = (boxes[:, 2:4] - boxes[:, :2] + 1)[:, None]
    centres = boxes[:, None, :2] + 0.5 * (sizes - 1) + deltas[:, :, 0] * sizes
    # The exp of an untrained network's output must not overflow.
    half = 0.5 * (sizes * np.exp(np.minimum(deltas[:, :, 1], 20)) - 1)
    return np.concatenate([centres - half, centres + half], 2).reshape(len(boxes), -1)
