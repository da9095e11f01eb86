"""What `roiops explain` says and draws, against boxes worked out by hand."""

import subprocess
import sys

import numpy as np
import pytest

from roiops import cli, explain
from roiops.errors import DataError, MXNetError, ParamError
from roiops.operators.roi.dialects import TABLE

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
    assert set(names) == {row.name for row in TABLE.values()}
    box = {"roi": (1.2, 2.4, 5.6, 5.3), "shape": (3, 4), "spatial_scale": 0.5, "angle": 20}
    assert len(explain.table(**box).splitlines()) == len(names) + 1
    figure = explain.draw(**box, names=names)
    assert [panel.get_title() for panel in figure.axes[: len(names)]] == names


def test_turned_box():
    # A box 4 wide and 2 high about (3, 3), a quarter turn counter-clockwise: its left end points down.
    box = explain.reading("ROIAlignRotated/mmcv", (3, 3, 4, 2, 90), (7, 9), pooled_size=(1, 2))
    assert np.allclose(box.frame, [(2, 5), (2, 1), (4, 1), (4, 5)])
    corners, points = box.bins[0, 0]
    assert np.allclose(corners, [(2, 5), (2, 3), (4, 3), (4, 5)])
    assert np.allclose(sorted(points), [(2.5, 3.5, 1), (2.5, 4.5, 1), (3.5, 3.5, 1), (3.5, 4.5, 1)])
    clockwise = explain.reading("ROIAlignRotated/mmcv/clockwise", (3, 3, 4, 2, 90), (7, 9))
    assert np.allclose(clockwise.frame, [(4, 1), (4, 5), (2, 5), (2, 1)])


def test_unit_of_an_angle_is_the_dialects_own():
    first, second = (
        explain.reading(name, (3, 3, 4, 2, 30), (7, 9))
        for name in ("ROIAlignRotated/mmcv/aligned", "ROIAlignRotated/detectron2")
    )
    assert np.allclose(first.frame, second.frame)


def test_samples_of_a_turned_box_outside_are_marked():
    box = explain.reading(
        "ROIAlignRotated/mmcv", (0, 0, 6, 6, 0), (5, 5), pooled_size=(2, 2), sampling_ratio=1
    )
    counts = {bin: point[0][2] for bin, (_, point) in box.bins.items()}
    assert counts == {(0, 0): False, (0, 1): False, (1, 0): False, (1, 1): True}


def test_four_numbers_are_turned_about_their_centre():
    box = explain.reading("contrib.RROIAlign", (2, 3, 6, 5), (7, 9), angle=90)
    assert box.frame == explain.reading("contrib.RROIAlign", (4, 4, 4, 2, 90), (7, 9)).frame


def test_crop_of_normalised_boxes_and_of_pixels():
    # From end to end of the box: 0 and 1 are the centres of the first and the last pixel.
    box = explain.reading("CropAndResize", (0.5, 0.25, 1.0, 1.5), (7, 9), pooled_size=(3, 2), normalised=True)
    points = {bin: point[0] for bin, (_, point) in box.bins.items()}
    assert points[0, 0] == (2, 3, True)
    assert points[1, 0] == (2, 4.5, True)
    assert points[2, 1] == (12, 6, False)
    assert all(not corners for corners, _ in box.bins.values())
    pixels = explain.reading("CropAndResize", (4, 6, 24, 12), (7, 9), 0.5, (3, 2))
    assert {bin: point[0] for bin, (_, point) in pixels.bins.items()} == points


def test_precise_bins_touch_the_pixels_whose_surface_they_cover():
    axis = explain.axis("PrROIPooling", low=1.5, high=3.5, scale=1.0, bins=1, extent=8)
    assert axis.samples == [[(1, True), (2, True), (3, True), (4, True)]]


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
        ({"roi": (0, 0, 1)}, DataError, "roi must be four finite numbers .*, or five"),
        (
            {"roi": (3, 3, 2, 2, 9), "names": ["ROIAlign"]},
            ParamError,
            "ROIAlign/mmcv does not turn boxes; give x1, y1, x2, y2",
        ),
        (
            {"normalised": True, "names": ["ROIAlign"]},
            ParamError,
            "ROIAlign/mmcv has boxes in image pixels, not normalised ones",
        ),
        ({"shape": (0, 3)}, ParamError, r"shape must be \(height, width\), each 1 to 200, got \(0, 3\)"),
        ({"pooled_size": (2, 0)}, ParamError, r"pooled_size must be \(height, width\), each 1 to 32"),
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


def test_command_line_takes_turned_and_normalised_boxes(capsys):
    assert cli.main(["explain", "--roi", "9,7,12,6,30", "--shape", "7x9", "--scale", "0.5"]) == 0
    said = capsys.readouterr().out
    assert "ROIAlignRotated/detectron2" in said
    assert "ROIPooling" not in said
    box = ["--roi", "0.1,0.1,0.8,0.7", "--normalised", "--shape", "7x9"]
    assert cli.main(["explain", *box]) == 0
    names = [line.split()[0] for line in capsys.readouterr().out.splitlines()[1:]]
    assert names == ["CropAndResize", "CropAndResize/nearest"]


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


@pytest.mark.parametrize("names", [["ROIPooling/mxnet"], None])
def test_the_legend_is_within_the_picture_and_little_is_white(names):
    pytest.importorskip("matplotlib", reason="drawing needs matplotlib")
    figure = explain.draw((3.2, 2.4, 14.6, 11.3), (6, 8), spatial_scale=0.5, names=names)
    figure.set_dpi(50)
    figure.canvas.draw()
    (legend,) = figure.legends
    box = legend.get_window_extent()
    assert box.x0 >= 0
    assert box.y0 >= 0
    assert box.x1 <= figure.bbox.x1
    panels = sum(axes.get_window_extent().height for axes in figure.axes[:: 3 if names is None else 1])
    assert panels > 0.45 * figure.bbox.y1
