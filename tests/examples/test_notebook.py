"""The notebook runs from top to bottom, and its cells show what is kept in it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import roiops as mx
from roiops.models.detections import Detection
from roiops.models.outputs import Reading

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_notebook_runs_and_shows_what_it_holds():
    pytest.importorskip("matplotlib", reason="the notebook draws dialects")
    pytest.importorskip("PIL", reason="the notebook shows pictures")
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "make_notebook.py", "--check"],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


def test_its_pictures_and_tables_are_inside():
    cells = json.loads((ROOT / "examples" / "first_hour.ipynb").read_text())["cells"]
    shown = [kind for cell in cells for out in cell.get("outputs", []) for kind in out.get("data", ())]
    assert shown.count("image/png") == 2
    assert shown.count("text/html") >= 4


def test_arrays_show_themselves_as_tables():
    assert mx.nd.array([[1, 2.5]])._repr_html_() == (
        "<table><caption>NDArray 1 x 2, float32, cpu(0)</caption><tr><td>1</td><td>2.5</td></tr></table>"
    )
    many = mx.nd.zeros((3, 2, 40, 5))._repr_html_()
    assert "3 x 2 x 40 x 5, float32, cpu(0), [0, 0] of it, the first 20 x 5 shown" in many
    assert many.count("<tr>") == 20
    for shape in ((0, 5), (2, 0, 3), (1,)):
        assert mx.nd.array(np.zeros(shape))._repr_html_().startswith("<table>")


def test_symbols_and_readings_show_themselves_as_tables():
    net = mx.sym.Activation(mx.sym.Variable("x<y"), act_type="relu", name="relu")
    assert "<tr><td>relu</td><td>Activation</td><td>x&lt;y</td></tr>" in net._repr_html_()
    reading = Reading(detections=[Detection(0, 1, 0.75, (1, 2, 3, 4))], names=["cat", "dog"])
    assert "<td>dog</td><td>0.750</td><td>1.0</td>" in reading._repr_html_()
