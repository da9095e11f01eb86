"""How far two sets of outputs are apart, and whether two lists of boxes are the same."""

import numpy as np

TOLERANCE = 1e-4
#: Two scores nearer than this may change places.
TIE = 1e-6


def relative_difference(expected, got):
    """The largest difference, relative to the largest magnitude expected."""
    expected, got = np.asarray(expected, np.float64), np.asarray(got, np.float64)
    if expected.shape != got.shape:
        return np.inf
    if not expected.size:
        return 0.0
    finite = np.isfinite(expected)
    if not np.array_equal(finite, np.isfinite(got)):
        return np.inf
    difference = np.abs(expected[finite] - got[finite]).max(initial=0)
    return float(difference / max(np.abs(expected[finite]).max(initial=0), 1e-30))


def split_boxes(outputs):
    """``(boxes, rest)``: detections as rows of class, score and four coordinates, (images, boxes, 6).

    They are one output, or the first three of all.
    """
    names, arrays = list(outputs), list(outputs.values())
    shapes = [a.shape for a in arrays]
    for name, array in outputs.items():
        if _are_rows(array):
            return array, {other: a for other, a in outputs.items() if other != name}
    if len(arrays) >= 3 and len(shapes[0]) == 3 and shapes[0][2] == 1 and shapes[2] == (*shapes[0][:2], 4):
        return np.concatenate(arrays[:3], axis=2), dict(zip(names[3:], arrays[3:], strict=True))
    return None, outputs


def _are_rows(array):
    """Whether these are detections: rows of six, of which the first is a class, or -1."""
    if array.ndim != 3 or array.shape[2] != 6:
        return False
    classes = array[..., 0]
    return bool(np.all((classes >= -1) & (classes == np.round(classes))))


def compare_boxes(expected, got, size):
    """``(number of boxes, how many differ, worst relative difference)``; the same order but for ties.

    Coordinates are relative to the image's larger side, scores to 1.
    """
    if expected.shape != got.shape:
        return 0, expected.shape[1], np.inf
    in_pixels = np.abs(expected[..., 2:][expected[..., 0] >= 0]).max(initial=0) > 2
    normal = max(size) if in_pixels else 1.0
    count, wrong, worst = 0, 0, 0.0
    for one, other in zip(expected.astype(np.float64), got.astype(np.float64), strict=True):
        one, other = one[one[:, 0] >= 0], other[other[:, 0] >= 0]
        count += len(one)
        wrong += abs(len(one) - len(other))
        shared = min(len(one), len(other))
        in_place = _distances(one[:shared], other[:shared], normal)
        worst = max(worst, in_place[in_place <= TOLERANCE].max(initial=0))
        moved = np.flatnonzero(in_place > TOLERANCE)
        more_wrong, more_worst = _match(one[moved], other[moved], normal)
        wrong, worst = wrong + more_wrong, max(worst, more_worst)
    return count, wrong, worst


def _distances(rows, others, normal):
    """How far boxes are from boxes; infinite where the classes differ."""
    far = np.abs(rows[..., 2:] - others[..., 2:]).max(axis=-1, initial=0) / normal
    scores = np.abs(rows[..., 1] - others[..., 1])
    return np.where(rows[..., 0] == others[..., 0], np.maximum(far, scores), np.inf)


def _match(one, other, normal):
    """``(how many are wrong, worst difference)`` of boxes that are not in the same place in both lists."""
    wrong, worst, left = 0, 0.0, list(range(len(other)))
    for row in one:
        distances = _distances(row[None], other[left], normal)
        best = int(np.argmin(distances))
        if distances[best] > TOLERANCE:
            wrong += 1
            left.pop(0)
            continue
        # Out of order is wrong, unless everything that was passed over ties with it, in either's numbers.
        passed, score = other[left[:best], 1], other[left[best], 1]
        if np.minimum(np.abs(passed - row[1]), np.abs(passed - score)).max(initial=0) >= TIE:
            wrong += 1
        worst = max(worst, float(distances[best]))
        left.pop(best)
    return wrong, worst
