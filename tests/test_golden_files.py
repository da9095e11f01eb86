"""The golden files themselves: readable, named after their makers, and small."""

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from golden_files import GOLDEN, load, names

ROOT = Path(__file__).parent.parent
SCRIPTS = ROOT / "verify" / "golden"
CASE_FILES = [*names("roi"), *names("ops"), *names("optimizer")]


def test_every_file_says_which_peer_and_script_made_it():
    for path in GOLDEN.rglob("*.npz"):
        with np.load(path) as file:
            meta = json.loads(str(file["meta"]))
        assert meta["peer"], path
        assert meta["version"], path
        script = meta["script"].split()[0]  # further words are its arguments
        assert (SCRIPTS / script).is_file() or (ROOT / script).is_file(), path


@pytest.mark.parametrize("name", CASE_FILES)
def test_cases_hold_the_arrays_they_list(name):
    cases = load(name)
    assert cases
    for case in cases:
        assert case.arrays, case
        if case.op == "arrays":  # what other cases of the file start from
            assert {"weight", "gradients"} <= set(case.arrays), case
        else:
            assert any(key.startswith(("out", "after", "step1_", "weights")) for key in case.arrays), case


def test_a_case_names_itself():
    case = load("roi/mxnet_ROIPooling")[0]
    assert str(case) == "mxnet_ROIPooling-0-ROIPooling-common_vector"
    assert (case.peer, case.version) == ("mxnet", "1.9.1")
    assert "data" in case
    assert "nothing" not in case
    assert case["out"].shape == (4, 4, 2, 2)


def test_at_least_thirty_cases_an_roi_operator_and_dialect():
    few = {name.removeprefix("roi/") for name in names("roi") if len(load(name)) < 30}
    # Opset 10 has one coordinate mode, which output_half_pixel covers with 33 cases. The others are variants of
    # one function of their peer, which the next test counts together.
    assert few == {
        "mmcv_roi_align_avg_aligned",
        "mmcv_roi_align_avg_unaligned",
        "mmcv_roi_align_max_aligned",
        "mmcv_roi_align_max_unaligned",
        "mmcv_roi_align_rotated",
        "mmcv_roi_align_rotated_aligned",
        "mmcv_roi_align_rotated_aligned_clockwise",
        "mmcv_roi_align_rotated_clockwise",
        "onnxruntime_RoiAlign_opset10",
        "paddle_psroi_pool",
        "paddle_roi_align_aligned",
        "paddle_roi_align_unaligned",
        "paddle_roi_pool",
        "torchvision_MultiScaleRoIAlign",
        "torchvision_ps_roi_pool_border",
    }


def test_at_least_thirty_cases_of_each_operator_of_a_peer():
    counts = Counter((case.peer, case.op) for name in names("roi") for case in load(name))
    few = {key: count for key, count in counts.items() if count < 30}
    # A case of MultiScaleRoIAlign is a whole pyramid; Paddle has no modes, and one rule for the bins.
    assert few == {
        ("torchvision", "MultiScaleRoIAlign"): 12,
        ("paddle", "roi_pool"): 25,
        ("paddle", "psroi_pool"): 24,
    }


def test_they_stay_small():
    assert sum(path.stat().st_size for path in GOLDEN.rglob("*") if path.is_file()) < 8e6
