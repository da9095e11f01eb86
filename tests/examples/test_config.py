"""Configuration files: what is refused, and how it is said."""

import dataclasses

import pytest
from conftest import EXAMPLES
from rcnn import config

COMMITTED = sorted((EXAMPLES / "rcnn" / "configs").glob("*.yaml"))


@pytest.mark.parametrize("path", COMMITTED, ids=lambda path: path.stem)
def test_committed_files_are_valid_and_come_back(path, tmp_path):
    loaded = config.load(path)
    config.save(loaded, tmp_path / "again.yaml")
    assert config.load(tmp_path / "again.yaml") == loaded


def test_a_number_in_any_notation_is_a_number():
    loaded = config.load(COMMITTED[0], ["training.learning_rate=1e-3", "training.weight_decay=5E-4"])
    assert (loaded.training.learning_rate, loaded.training.weight_decay) == (0.001, 0.0005)
    with pytest.raises(config.ConfigError, match="learning_rate must be of type float, got 'small'"):
        config.load(COMMITTED[0], ["training.learning_rate=small"])


def write(tmp_path, text):
    path = tmp_path / "net.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("trainig: {}", r"net.yaml: unknown key 'trainig'; did you mean 'training'\?"),
        ("training: {epoch: 3}", r"net.yaml: training: unknown key 'epoch'; did you mean 'epochs'\?"),
        ("training: {zzz: 3}", r"training: unknown key 'zzz'; known: batch_images, epochs"),
        ("training: {epochs: many}", r"training: epochs must be of type int, got 'many'"),
        ("training: {epochs: true}", r"training: epochs must be of type int, got True"),
        ("training: {epochs: 2.5}", r"training: epochs must be of type int, got 2.5"),
        ("data: {classes: [a]}\ntraining: {epochs: 0}", r"training: epochs must be at least 1, got 0"),
        ("training: [1]", r"net.yaml: training: must be a section of keys, got \[1\]"),
        ("anchors: {scales: 8}", r"anchors: scales must be a list, got 8"),
        ("anchors: {scales: [8, x]}", r"anchors: scales\[1\] must be of type float, got 'x'"),
        ("network: {backbone: vgg}", r"backbone must be one of small, vgg16, resnet50, resnet101, got 'vgg'"),
        (
            "network: {detector: rfcn, pooling: ROIAlign}",
            r"pooling of rfcn must be PSROIAlign or PSROIPooling, got ROIAlign",
        ),
        ("data: {classes: []}", r"data: classes must name at least one class"),
        ("data: {classes: [a, b, a]}", r"data: classes must all differ"),
        ("data: {classes: [a]}\ntraining: {pretrained: x.params}", r"pretrained must be empty for the small"),
        ("a: [", r"net.yaml: while parsing"),
    ],
)
def test_mistakes_name_the_key(tmp_path, text, message):
    with pytest.raises(config.ConfigError, match=message):
        config.load(write(tmp_path, text))


def test_overrides(tmp_path):
    path = write(tmp_path, "data: {classes: [a]}")
    loaded = config.load(path, ["training.epochs=3", "anchors.scales=[1, 2.5]", "network.pooled_size=6"])
    assert loaded.training.epochs == 3
    assert loaded.anchors.scales == [1.0, 2.5]
    assert loaded.class_names == ["background", "a"]
    for text, message in (
        ("training.epochs", r"override 'training.epochs' must be of the form section.key=value"),
        ("epochs=3", r"override 'epochs=3' must be of the form"),
        ("training.epochs=x", r"training: epochs must be of type int, got 'x'"),
    ):
        with pytest.raises(config.ConfigError, match=message):
            config.load(path, [text])


def test_every_key_is_documented_by_type():
    for section in dataclasses.fields(config.Config):
        assert section.type.__doc__
