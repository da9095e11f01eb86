"""Training runs: they learn, stop, resume exactly, and their models detect; the scripts end to end."""

import json
import os
import re
import signal
import subprocess
import sys

import numpy as np
import pytest
from conftest import EXAMPLES
from PIL import Image
from rcnn.data import read_dataset
from rcnn.detector import Detector
from rcnn.trainer import Trainer

import roiops as mx

POOLINGS = [
    ("shapes_faster_rcnn", "ROIAlign"),
    ("shapes_faster_rcnn", "ROIPooling"),
    ("shapes_rfcn", "PSROIAlign"),
    ("shapes_rfcn", "PSROIPooling"),
]


def trainer(config, folder):
    return Trainer(config, read_dataset(config.data, "train"), folder)


def parameters(run):
    args, aux = run.module.get_params()
    return {name: each.asnumpy() for name, each in {**args, **aux}.items()}


@pytest.mark.parametrize(("name", "pooling"), POOLINGS)
def test_every_detector_learns_and_detects(load_config, tmp_path, name, pooling):
    """Twelve epochs on ten pictures do not make a good detector, but the loss falls.

    To 0.45 to 0.63 of what it was, with any of five seeds; another BLAS is like another seed.
    """
    config = load_config(name, f"network.pooling={pooling}", "training.epochs=12", "testing.score=0.01")
    run = trainer(config, tmp_path)
    assert run.run()
    total = np.sum(run.history, axis=1)
    assert total[-5:].mean() < 0.75 * total[:5].mean()
    found = Detector.load(tmp_path).detect(Image.new("RGB", (120, 70), "gray"))
    for each in found:
        assert each.label in config.data.classes
        assert 0 <= each.box[0] <= each.box[2] <= 119
        assert 0 <= each.box[1] <= each.box[3] <= 69


@pytest.mark.parametrize("stop_after", [3, 5, 7])
def test_resuming_gives_the_bits_of_the_uninterrupted_run(load_config, tmp_path, stop_after):
    """Ten steps at once, and a run that Ctrl-C stops within or between epochs and that then goes on."""
    config = load_config()
    straight = trainer(config, tmp_path / "straight")
    assert straight.run()
    first = trainer(config, tmp_path / "stopped")

    def press_ctrl_c(run):
        if run.step == stop_after:
            os.kill(os.getpid(), signal.SIGINT)

    assert not first.run(press_ctrl_c)
    assert first.step == stop_after
    mx.random.generator().random(7)  # whatever else happened in between
    second = trainer(config, tmp_path / "stopped")
    second.resume()
    assert second.step == stop_after
    assert second.run()
    assert second.history == straight.history
    for (name, one), other in zip(parameters(straight).items(), parameters(second).values(), strict=True):
        np.testing.assert_array_equal(one, other, err_msg=name)
    files = [(tmp_path / folder / "model.params").read_bytes() for folder in ("straight", "stopped")]
    assert files[0] == files[1]


def test_a_checkpoint_is_whole_or_the_old_one_stays(load_config, tmp_path):
    run = trainer(load_config(), tmp_path)
    run.train_step()
    run.save_checkpoint()
    # As if the process had died between the two renames of the next save.
    (tmp_path / "checkpoint").rename(tmp_path / "checkpoint.old")
    again = trainer(load_config(), tmp_path)
    again.resume()
    assert again.step == 1


def test_fixed_layers_stay(load_config, tmp_path):
    run = trainer(load_config("shapes_faster_rcnn", "network.fixed=[conv1, res1_conv1_bn_gamma]"), tmp_path)
    before = parameters(run)
    run.train_step()
    after = parameters(run)
    same = [n for n in before if n.endswith(("weight", "gamma")) and np.array_equal(before[n], after[n])]
    assert same == ["conv1_weight", "conv1_bn_gamma", "res1_conv1_bn_gamma"]


def test_pretrained_weights_are_taken_where_names_fit(load_config, tmp_path):
    """The head of another data set is passed over; what the file lacks starts at random."""
    names = {"arg:conv0_weight": mx.nd.full((64, 3, 7, 7), 0.01), "arg:fc1_bias": mx.nd.zeros((1000,))}
    mx.nd.save(str(tmp_path / "resnet.params"), names)
    config = load_config(
        "shapes_faster_rcnn",
        "network.backbone=resnet50",
        "network.pooled_size=2",
        f"training.pretrained={tmp_path / 'resnet.params'}",
    )
    after = parameters(trainer(config, tmp_path))
    assert np.all(after["conv0_weight"] == np.float32(0.01))
    assert after["stage1_unit1_conv1_weight"].std() > 0


def test_a_loss_that_is_not_a_number_stops_with_a_hint(load_config, tmp_path):
    run = trainer(load_config(), tmp_path)
    run.module._executor.arg_dict["conv1_weight"][:] = np.nan
    with pytest.raises(FloatingPointError, match=r"step 0: the loss is .*a lower learning rate"):
        run.train_step()


def script(name, *arguments, code=0):
    command = [sys.executable, str(EXAMPLES / "rcnn" / name), *map(str, arguments)]
    threads = dict.fromkeys(("NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")
    environment = {**os.environ, **threads, "PYTHONWARNINGS": "error"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    assert "Traceback" not in done.stderr
    return done.stdout + done.stderr


def test_the_scripts_end_to_end(shapes, load_config, tmp_path):
    """Train by one script, measure by the next, on VOC and COCO, and draw by the third."""
    from rcnn import config

    config.save(load_config(), tmp_path / "net.yaml")
    out = tmp_path / "run"
    said = script("train.py", tmp_path / "net.yaml", "--out", out, "--print-every", 4, "--plot")
    assert "epoch 1/2 step 4/10: rpn_cls " in said
    assert "images/s | " in said
    assert "s left" in said
    assert "model.params, trained in" in said
    model = (out / "model.params").read_bytes()
    said = script("train.py", tmp_path / "net.yaml", "--out", out, code=1)
    assert said.startswith(
        f"train.py: {out / 'checkpoint'} is there already: --resume goes on with that run, --out "
    )
    assert (out / "model.params").read_bytes() == model
    with Image.open(out / "loss.png") as picture:
        assert picture.size == (960, 540)
    said = script("test.py", out, "--json", tmp_path / "voc.json", "--results", tmp_path / "found.json")
    assert said.splitlines()[0].split() == ["class", "AP@0.5", "AP@0.75"]
    assert json.loads((tmp_path / "voc.json").read_text())["images"] == 4
    assert isinstance(json.loads((tmp_path / "found.json").read_text()), list)
    script("test.py", out, "--set", "data.format=coco", "--json", tmp_path / "coco.json")
    measures = [json.loads((tmp_path / f"{kind}.json").read_text()) for kind in ("voc", "coco")]
    assert measures[0]["mAP@0.5"] == pytest.approx(measures[1]["mAP@0.5"], nan_ok=True)
    pictures = tmp_path / "pictures"
    pictures.mkdir()
    Image.new("RGB", (300, 40), "red").save(pictures / "wide.png")
    Image.new("L", (31, 77)).save(pictures / "gray.jpg")
    (pictures / "notes.txt").write_text("not a picture")
    said = script("demo.py", pictures, "--model", out, "--out", tmp_path / "drawn", "--score", 0.01)
    assert sorted(p.name for p in (tmp_path / "drawn").iterdir()) == [
        "detections.json",
        "gray.png",
        "wide.png",
    ]
    assert set(json.loads((tmp_path / "drawn" / "detections.json").read_text())) == {"gray.jpg", "wide.png"}
    assert "gray.jpg: " in said
    script("demo.py", pictures, "--model", out, "--out", tmp_path / "one", "--count", 1)
    assert sorted(p.name for p in (tmp_path / "one").iterdir()) == ["detections.json", "gray.png"]


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("train.py", ["nowhere.yaml"], "train.py: .*nowhere.yaml"),
        ("test.py", ["nowhere"], "test.py: .*nowhere"),
        ("demo.py", ["nowhere.png"], "demo.py: .*nowhere.png"),
        ("demo.py", ["x.png", "--model", "nowhere"], "demo.py: .*nowhere"),
    ],
)
def test_mistakes_are_said_in_one_line(name, arguments, message):
    said = script(name, *arguments, code=1).strip()
    assert len(said.splitlines()) == 1
    assert re.search(message, said)
