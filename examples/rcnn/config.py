"""The configuration of a detector: a YAML file, checked key by key."""

import contextlib
import dataclasses
import difflib
from dataclasses import dataclass, field
from pathlib import Path

import yaml

__all__ = ["Config", "ConfigError", "load", "save"]


class ConfigError(ValueError):
    """A configuration file has an unknown key or a value of the wrong kind."""


def choice(*values, default=None):
    return field(default=values[0] if default is None else default, metadata={"choices": values})


@dataclass(frozen=True)
class Network:
    """What the graph is made of."""

    detector: str = choice("faster_rcnn", "rfcn")
    backbone: str = choice("small", "vgg16", "resnet50", "resnet101")
    #: The operator that pools regions: ROIPooling or ROIAlign; PSROIPooling or PSROIAlign for R-FCN.
    pooling: str = choice("ROIAlign", "ROIPooling", "PSROIAlign", "PSROIPooling")
    #: Cells of the pooled grid, along each side.
    pooled_size: int = 7
    #: Samples of a cell along each side, for the two Align operators.
    sampling_ratio: int = 2
    #: Whether R-FCN learns one box for all classes.
    class_agnostic: bool = False
    #: Parameters whose names these regular expressions match from the start are not trained.
    fixed: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Anchors:
    """Boxes that proposals start from, in every cell of the feature map."""

    scales: list[float] = field(default_factory=lambda: [8.0, 16.0, 32.0])
    ratios: list[float] = field(default_factory=lambda: [0.5, 1.0, 2.0])
    #: How far an anchor may leave the image and still be trained, in pixels.
    allowed_border: float = 0.0


@dataclass(frozen=True)
class Proposals:
    """From anchors to regions."""

    train_before_nms: int = 2000
    train_after_nms: int = 300
    test_before_nms: int = 1000
    test_after_nms: int = 300
    nms: float = 0.7
    min_size: int = 4


@dataclass(frozen=True)
class Targets:
    """Which anchors and regions are trained, and towards what."""

    anchors_per_image: int = 256
    anchor_foreground: float = 0.5
    anchor_positive_iou: float = 0.7
    anchor_negative_iou: float = 0.3
    rois_per_image: int = 128
    roi_foreground: float = 0.25
    roi_positive_iou: float = 0.5
    box_stds: list[float] = field(default_factory=lambda: [0.1, 0.1, 0.2, 0.2])


@dataclass(frozen=True)
class Data:
    """Where images come from, and in what size they are fed."""

    format: str = choice("voc", "coco")
    root: str = "data"
    train_split: str = "train"
    test_split: str = "test"
    #: Names of the classes, without the background.
    classes: list[str] = field(default_factory=list)
    short_side: int = 600
    long_side: int = 1000
    #: Subtracted from the red, green and blue of every pixel, before division by `scale`.
    mean: list[float] = field(default_factory=lambda: [123.68, 116.78, 103.94])
    scale: float = 1.0
    #: Whether images are mirrored at random. Not for things that have a left and a right.
    flip: bool = True
    #: Boxes an image may have in training; further ones are left out.
    max_boxes: int = 50


@dataclass(frozen=True)
class Training:
    """How long and how fast it learns."""

    batch_images: int = 1
    epochs: int = 10
    optimizer: str = choice("sgd", "adam")
    learning_rate: float = 0.001
    #: ``factor``: times 0.1 at `decay_epochs`; ``cosine``: down to a hundredth over the whole training.
    schedule: str = choice("factor", "cosine")
    decay_epochs: list[int] = field(default_factory=list)
    warmup_steps: int = 0
    weight_decay: float = 0.0005
    clip_gradient: float = 0.0
    seed: int = 0
    #: Files of ImageNet weights, ``<prefix>-<epoch>.params``; empty starts from random weights.
    pretrained: str = ""


@dataclass(frozen=True)
class Testing:
    """Which detections count."""

    score: float = 0.05
    nms: float = 0.3
    max_detections: int = 100


@dataclass(frozen=True)
class Config:
    """All of it."""

    network: Network = field(default_factory=Network)
    anchors: Anchors = field(default_factory=Anchors)
    proposals: Proposals = field(default_factory=Proposals)
    targets: Targets = field(default_factory=Targets)
    data: Data = field(default_factory=Data)
    training: Training = field(default_factory=Training)
    testing: Testing = field(default_factory=Testing)

    @property
    def num_classes(self) -> int:
        """Classes with the background, which is number 0."""
        return len(self.data.classes) + 1

    @property
    def class_names(self) -> list[str]:
        return ["background", *self.data.classes]


def load(path, overrides=()) -> Config:
    """Read a file, with ``section.key=value`` strings on top.

    Parameters
    ----------
    path : str or Path
        The YAML file.
    overrides : list of str
        Changes, whose values are YAML too: ``training.epochs=3``.
    """
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except yaml.YAMLError as error:
        raise ConfigError(f"{path}: {error}") from None
    for text in overrides:
        key, found, value = text.partition("=")
        section, _, name = key.partition(".")
        if not found or not name:
            raise ConfigError(f"override {text!r} must be of the form section.key=value")
        if not isinstance(content.setdefault(section, {}), dict):
            raise ConfigError(f"{path}: {section} must be a section of keys, got {content[section]!r}")
        content[section][name] = yaml.safe_load(value)
    config = build(Config, content, str(path))
    check(config, str(path))
    return config


def save(config: Config, path) -> None:
    """Write a configuration as :func:`load` reads it."""
    text = yaml.safe_dump(dataclasses.asdict(config), sort_keys=False)
    Path(path).write_text(text, encoding="utf-8")


def build(kind, content, where: str):
    """A dataclass from a dict; every key must be a field and every value of the field's type."""
    if not isinstance(content, dict):
        raise ConfigError(f"{where}: must be a section of keys, got {content!r}")
    fields = {each.name: each for each in dataclasses.fields(kind)}
    for key in content:
        if key not in fields:
            near = difflib.get_close_matches(str(key), fields, 1)
            hint = f"; did you mean {near[0]!r}?" if near else f"; known: {', '.join(fields)}"
            raise ConfigError(f"{where}: unknown key {key!r}{hint}")
    values = {}
    for key, value in content.items():
        at = f"{where}: {key}"
        if dataclasses.is_dataclass(fields[key].type):
            values[key] = build(fields[key].type, value, at)
        else:
            values[key] = convert(value, fields[key].type, at)
        choices = fields[key].metadata.get("choices")
        if choices and value not in choices:
            raise ConfigError(f"{at} must be one of {', '.join(choices)}, got {value!r}")
    return kind(**values)


def convert(value, kind, at: str):
    """``value`` if it is of type ``kind``; whole numbers pass for floats, and so does 1e-3, text to YAML."""
    if getattr(kind, "__origin__", None) is list:
        if not isinstance(value, list):
            raise ConfigError(f"{at} must be a list, got {value!r}")
        return [convert(each, kind.__args__[0], f"{at}[{i}]") for i, each in enumerate(value)]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if kind is float and isinstance(value, str):
        with contextlib.suppress(ValueError):
            return float(value)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ConfigError(f"{at} must be of type {kind.__name__}, got {value!r}")
    return value


def check(config: Config, where: str) -> None:
    """What no single key shows."""
    pooling = config.network.pooling
    if pooling.startswith("PS") != (config.network.detector == "rfcn"):
        need = "PSROIAlign or PSROIPooling" if config.network.detector == "rfcn" else "ROIAlign or ROIPooling"
        raise ConfigError(
            f"{where}: network: pooling of {config.network.detector} must be {need}, got {pooling}"
        )
    if not config.data.classes:
        raise ConfigError(f"{where}: data: classes must name at least one class")
    if len(set(config.data.classes)) < len(config.data.classes):
        raise ConfigError(f"{where}: data: classes must all differ, got {config.data.classes}")
    for section, name in (
        ("network", "pooled_size"),
        ("training", "batch_images"),
        ("training", "epochs"),
        ("targets", "rois_per_image"),
        ("proposals", "train_after_nms"),
        ("proposals", "test_after_nms"),
        ("data", "short_side"),
        ("data", "max_boxes"),
    ):
        value = getattr(getattr(config, section), name)
        if value < 1:
            raise ConfigError(f"{where}: {section}: {name} must be at least 1, got {value}")
    if config.network.backbone == "small" and config.training.pretrained:
        raise ConfigError(f"{where}: training: pretrained must be empty for the small backbone")
