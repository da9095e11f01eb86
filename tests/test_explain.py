"""What `roiops explain` says and draws, against boxes worked out by hand."""

import subprocess
import sys

import numpy as np
import pytest

from roiops import cli, explain
from roiops.errors import DataError, MXNetError, ParamError
from roiops.kernels.rules import CORNERS_XY
from roiops.operators.roi.dialects import named

BOX = {"low": 3.2, "high": 14.6, "scale": 0.5, "bins": 2, "extent": 9}


def test_rounded_box_in_whole_pixels():
    axis = explain.axis("ROIPooling/mxnet", **BOX)
    assert axis.integer
    assert (axis.start, axis.length) == (2, 6)  # round(1.6) = 2 to round(7.3) = 7, both included
    assert axis.bins == [(2, 5), (5, 8)]
    assert axis.samples == [[(2, True), (3, True), (4, True)], [(5, True), (6, True), (7, True)]]
    assert axis.visible_frame == (1.5, 7.5)


def test_unrounded_box_with_and_without_the_half_pixel():
    plain = explain.axis("ROIAlign/mmcv", ratio=2, **BOX)
    aligned = explain.axis("ROIAlign/mmcv/aligned", ratio=2, **BOX)
    assert plain.start == pytest.approx(1.6)
    assert plain.length == pytest.approx(5.7)
    positions = [p for each in plain.samples for p, _ in each]
    assert positions == pytest.approx([1.6 + 5.7 * (k + 0.5) / 4 for k in range(4)], abs=1e-6)
    moved = [p for each in aligned.samples for p, _ in each]
    assert moved == pytest.approx([p - 0.5 for p in positions], abs=1e-6)


def test_samples_outside_are_marked():
    axis = explain.axis("ROIAlign/mmcv", low=-8, high=2, scale=1.0, bins=2, extent=5, ratio=2)
    assert [valid for each in axis.samples for _, valid in each] == [False, False, False, True]


def test_every_dialect_can_be_drawn_and_told():
    names = explain.dialects()
    assert set(names) == {name for name, row in named().items() if row.rules.boxes == CORNERS_XY}
    text = explain.table((3.2, 2.4, 14.6, 11.3), (7, 9), 0.5)
    assert len(text.splitlines()) == len(names) + 1
    figure = explain.draw((3.2, 2.4, 14.6, 11.3), (7, 9), 0.5, names=names)
    assert [panel.get_title() for panel in figure.axes[: len(names)]] == names


def test_dialects_that_read_the_same_share_a_panel():
    groups = explain.distinct()
    members = [name for first, others in groups.items() for name in (first, *others)]
    assert sorted(members) == sorted(explain.dialects())
    assert "contrib.ROIAlign" in groups["ROIAlign/mmcv"]
    assert "PSROIAlign/torchvision" in groups["ROIAlign/mmcv/aligned"]


@pytest.mark.parametrize(
    ("options", "error", "text"),
    [
        ({"roi": (0, 0, np.nan, 1)}, DataError, "roi must be four finite numbers"),
        ({"roi": (0, 0, 1)}, DataError, "roi must be four finite numbers"),
        ({"shape": (0, 3)}, ParamError, r"shape must be \(height, width\), each 1 to 200, got \(0, 3\)"),
        ({"pooled_size": (2, 0)}, ParamError, r"pooled_size must be \(height, width\), each 1 or more"),
        ({"names": ["ROIAlign/mmvc"]}, ParamError, "unknown dialect 'ROIAlign/mmvc'; did you mean"),
    ],
)
def test_refused(options, error, text):
    given = {"roi": (0, 0, 3, 3), "shape": (4, 4), **options}
    with pytest.raises(error, match=text):
        explain.table(**given)


def test_command_line(tmp_path, capsys):
    target = tmp_path / "dialects.png"
    box = ["--roi", "3.2,2.4,14.6,11.3", "--shape", "7x9", "--scale", "0.5"]
    assert cli.main(["explain", *box, "--dialect", "ROIPooling/mxnet", "--out", str(target)]) == 0
    said = capsys.readouterr().out
    assert "ROIPooling/mxnet" in said
    assert "2.000    6.000" in said
    assert target.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("roi", ["1,2,3", "a,b,c,d"])
def test_command_line_refuses_a_box_that_is_none(roi, capsys):
    with pytest.raises(SystemExit) as caught:
        cli.main(["explain", "--roi", roi, "--shape", "7x9"])
    assert caught.value.code == 2
    assert "numbers with commas between" in capsys.readouterr().err


def test_drawing_says_what_it_needs():
    code = """
import sys
sys.modules["matplotlib"] = sys.modules["matplotlib.figure"] = None
from roiops import explain
from roiops.errors import MXNetError
try:
    explain.draw((0, 0, 3, 3), (4, 4))
except MXNetError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "explain: drawing needs matplotlib (pip install matplotlib)"
    assert issubclass(DataError, MXNetError)
