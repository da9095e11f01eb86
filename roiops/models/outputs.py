"""What a network's outputs say about each picture: objects, classes, or a class for each pixel."""

import dataclasses
import json
import math

import numpy as np

from ..errors import SettingsError
from ..ndarray.html import table
from .detections import Detection, best_detections, class_count, find_detections
from .labels import BACKGROUND, class_name, fitting, suggestion
from .pictures import Placement, finite_numbers

__all__ = ["ClassScores", "Reading", "Settings", "read_outputs"]


@dataclasses.dataclass
class Settings:
    """How outputs are read.

    Attributes
    ----------
    classes : list of str
        Names of the classes, without the background.
    threshold : float
        The least score of a detection.
    box_stds : 4 floats
        What an R-CNN's box deltas are multiplied with.
    top : int
        How many of the best classes are told.
    softmax : bool
        Whether scores that are no distribution are logits: a softmax makes one of them.
    """

    classes: list[str] = dataclasses.field(default_factory=list)
    threshold: float = 0.5
    box_stds: tuple[float, ...] = (1.0, 1.0, 1.0, 1.0)
    top: int = 5
    softmax: bool = False

    def __post_init__(self):
        for name, count in (("threshold", 1), ("box_stds", 4)):
            setattr(self, name, finite_numbers(name, getattr(self, name), (count,)))
        (self.threshold,) = self.threshold


@dataclasses.dataclass
class ClassScores:
    """The best entries of one output, for one picture.

    ``kind`` is ``"probabilities"`` where the output is a distribution, ``"softmax"`` where a softmax was
    applied to make it one, and ``"values"`` for numbers that are neither: logits, or no classes at all.
    """

    output: str
    kind: str
    count: int
    best: list[tuple[int, float]]
    names: list[str]

    def to_dicts(self) -> list[dict]:
        """An entry for each class, fit for JSON."""
        return [_entry(number, self.names, score=score) for number, score in self.best]

    @property
    def remark(self) -> str | None:
        """What a reader of the numbers should know about them."""
        if self.kind == "softmax":
            return f"softmax was applied to {self.output}"
        if self.kind == "values":
            return (
                f"{self.output} is no distribution: logits, which --softmax makes into one, or something else"
            )
        if self.names[:1] == [BACKGROUND]:
            return f"{self.output}: the first of its {self.count} classes is taken for the background"
        if not self.names and (known := suggestion(self.count)):
            return f"{self.output} has {self.count} classes: --classes {known} names those of that data set"
        return None


@dataclasses.dataclass
class Reading:
    """What the outputs say about one picture; what a network does not give is None.

    Attributes
    ----------
    detections : list of Detection, or None
        Objects, best first, with boxes in pixels of the picture.
    best_below : Detection or None
        The best of those whose score is below the threshold, where there is none above.
    scores : list of ClassScores, or None
        The best classes.
    segmentation : array of int, or None
        The class of each pixel of the network's input.
    names : list of str
        The names of the classes of detections and segmentation.
    not_numbers : list of str
        The outputs that hold NaN: whatever else is read from them means nothing.
    """

    detections: list[Detection] | None = None
    best_below: Detection | None = None
    scores: list[ClassScores] | None = None
    segmentation: np.ndarray | None = None
    names: list[str] = dataclasses.field(default_factory=list)
    not_numbers: list[str] = dataclasses.field(default_factory=list)

    def rows(self, digits: int) -> list[tuple[str, ...]]:
        """Detections, or the parts of a segmentation, as a table of texts, whose head comes first."""
        if self.detections is not None:
            found = [("class", "score", "x1", "y1", "x2", "y2")]
            for each in self.detections:
                score, box = f"{each.score:.{digits}f}", (f"{v:.1f}" for v in each.box)
                found.append((class_name(each.class_id, self.names), score, *box))
            return found
        if self.segmentation is not None:
            parts = ((class_name(n, self.names), f"{100 * part:.1f} %") for n, part in self.parts())
            return [("class", "part of the picture"), *parts]
        return []

    def _repr_html_(self):
        """A table for notebooks."""
        best = (
            (each.output, class_name(number, each.names), f"{score:.4g}")
            for each in self.scores or ()
            for number, score in each.best
        )
        head, *rows = self.rows(3) or [("output", "class", "score"), *best]
        return table(rows, head)

    def to_dict(self) -> dict:
        """The same, fit for JSON; of a segmentation, the part of the pixels that each class has."""
        result: dict = {"not_numbers": self.not_numbers} if self.not_numbers else {}
        if self.detections is not None:
            result["detections"] = [_as_dict(each, self.names) for each in self.detections]
        if self.best_below is not None:
            result["best_below_threshold"] = _as_dict(self.best_below, self.names)
        if self.scores is not None:
            result["best"] = [
                {**({"output": each.output} if len(self.scores) > 1 else {}), **entry}
                for each in self.scores
                for entry in each.to_dicts()
            ]
            if any(each.kind == "softmax" for each in self.scores):
                result["softmax_applied"] = True
        if self.segmentation is not None:
            result["segmentation"] = [_entry(number, self.names, part=part) for number, part in self.parts()]
        return result

    def parts(self) -> list[tuple[int, float]]:
        """The classes of a segmentation, with the part of the pixels that each has, largest first."""
        numbers, counts = np.unique(self.segmentation, return_counts=True)
        order = np.argsort(-counts, kind="stable")
        return [(int(numbers[i]), float(counts[i] / self.segmentation.size)) for i in order]


def _entry(class_id: int, names, **told) -> dict:
    return {"class_id": class_id, "class": class_name(class_id, names), **told}


def _as_dict(each: Detection, names) -> dict:
    return _entry(each.class_id, names, score=each.score, box=[float(value) for value in each.box])


def read_outputs(
    outputs: dict[str, np.ndarray], places: list[Placement], settings: Settings | None = None
) -> list[Reading]:
    """A reading for each picture of a batch.

    ``outputs`` are by name, in the graph's order; ``places`` are where each picture lies in the network's
    input.
    """
    readings = _read(outputs, places, settings or Settings())
    for row, reading in enumerate(readings):
        own = {n: a[row] if a.ndim and len(a) == len(places) else a for n, a in outputs.items()}
        reading.not_numbers = [
            n for n, a in own.items() if a.size and a.dtype.kind == "f" and np.isnan(a.min())
        ]
    return readings


def _read(outputs, places, settings) -> list[Reading]:
    height, width = places[0].height, places[0].width
    how = {"box_stds": settings.box_stds}
    found = find_detections(outputs, height, width, threshold=settings.threshold, **how)
    if found is not None:
        _check_classes(outputs, found, settings.classes)
        readings = [Reading(detections=[], names=settings.classes) for _ in places]
        for each in found:
            if each.image < len(places):
                readings[each.image].detections.append(_placed(each, places[each.image]))
        if not all(reading.detections for reading in readings):
            for each in best_detections(outputs, height, width, **how):
                if each.image < len(places) and not readings[each.image].detections:
                    readings[each.image].best_below = _placed(each, places[each.image])
        return readings
    maps = _segmentation(outputs, height, width, len(places))
    if maps is not None:
        count, labels = maps
        names = fitting(settings.classes, count, "the segmentation")
        return [Reading(segmentation=each, names=names) for each in labels]
    return [Reading(scores=_scores(outputs, row, len(places), settings)) for row in range(len(places))]


def _placed(each: Detection, place: Placement) -> Detection:
    return dataclasses.replace(each, box=place.to_picture(each.box))


def _check_classes(outputs, found, names) -> None:
    count = class_count(outputs)
    if names and count is not None and count != len(names):
        raise SettingsError(
            f"classes: {len(names)} names do not fit the detector, "
            f"which has {count} classes and the background"
        )
    most = max((each.class_id for each in found), default=-1)
    if names and most >= len(names):
        raise SettingsError(f"classes: {len(names)} names do not fit the detections, which have class {most}")


def _segmentation(outputs, height, width, pictures):
    """``(number of classes, class of each pixel)``, where an output has scores for all pixels."""
    for array in outputs.values():
        if array.ndim == 4 and array.shape[0] == pictures and array.shape[2:] == (height, width):
            if array.shape[1] == 1:  # one class and its background: logits, or probabilities
                probabilities = array.min() >= 0 and array.max() <= 1
                return 2, (array[:, 0] > (0.5 if probabilities else 0)).astype(np.int64)
            return array.shape[1], array.argmax(axis=1)
    return None


def _scores(outputs, row, pictures, settings) -> list[ClassScores] | None:
    """The best entries of the outputs that are distributions; where there are none, of all tables."""
    tables = {}
    for name, array in outputs.items():
        flat = array.reshape(array.shape[0], -1) if array.ndim >= 2 else array[:0]
        wide = flat.ndim == 2 and flat.shape[1] > 1 and flat.shape[1] == max(array.shape[1:], default=0)
        if wide and flat.shape[0] == pictures:
            tables[name] = flat
    chosen = {name: table for name, table in tables.items() if _is_distribution(table)} or tables
    if settings.classes and chosen:
        count = len(settings.classes)
        fits = {name: t for name, t in chosen.items() if t.shape[1] in (count, count + 1)}
        if not fits:
            widths = ", ".join(f"{name} ({table.shape[1]})" for name, table in chosen.items())
            raise SettingsError(f"classes: {count} names fit none of the outputs: {widths}")
        chosen = fits
    return [_best(name, table, row, settings) for name, table in chosen.items()] or None


def _is_distribution(table) -> bool:
    return bool((table >= 0).all() and np.allclose(table.sum(axis=1, dtype=np.float64), 1, atol=1e-2))


def _best(name, table, row, settings) -> ClassScores:
    values, kind = table[row].astype(np.float64), "probabilities"
    if not _is_distribution(table):
        kind = "softmax" if settings.softmax else "values"
        if settings.softmax:
            values = np.exp(values - values.max())
            values /= values.sum()
    names = fitting(settings.classes, len(values), name)
    order = np.argsort(-values, kind="stable")[: settings.top]
    return ClassScores(name, kind, len(values), [(int(i), float(values[i])) for i in order], names)


def json_text(content, **options) -> str:
    """Results as JSON, which has no NaN and no infinity: both are null."""

    def plain(value):
        if isinstance(value, float):
            return value if math.isfinite(value) else None
        if isinstance(value, dict):
            return {name: plain(each) for name, each in value.items()}
        return [plain(each) for each in value] if isinstance(value, list | tuple) else value

    return json.dumps(plain(content), allow_nan=False, **options)
