"""The table of dialects: what is read from it, and that a new row is all that a new dialect takes."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from roiops.errors import ParamError
from roiops.operators.roi.dialects import TABLE, dialects_of, find, modes_of, named, rows

ROOT = Path(__file__).parents[3]


def test_a_row_that_is_not_there():
    text = r"ROIAlign: there is no dialect ROIAlign/mxnet/avg \(there are: ROIAlign/mmcv, ROIAlign/mmcv/aligned, "
    with pytest.raises(ParamError, match=text):
        find("ROIAlign", "mxnet", "avg")


def test_names_are_unique_and_say_the_mode_where_it_is_not_the_usual_one():
    assert len(named()) == len(TABLE)
    assert find("ROIPooling", "chainer", "avg").name == "ROIPooling/chainer/avg"
    assert find("ROIPooling", "chainer", "max").name == "ROIPooling/chainer"
    assert find("contrib.ROIAlign", "", "avg", ("aligned", "position_sensitive")).name == (
        "contrib.ROIAlign/position_sensitive/aligned"
    )
    assert dialects_of("ROIPooling") == ["mxnet", "torchvision", "mmcv", "chainer"]
    assert modes_of("ROIAlign", "mxnet") == ["max"]


def test_the_page_has_every_row():
    page = (ROOT / "docs" / "dialects.md").read_text()
    sys.path.insert(0, str(ROOT / "verify"))
    try:
        import dialects
    finally:
        sys.path.remove(str(ROOT / "verify"))
    assert dialects.put(page, "rules", dialects.rules_table()) == page
    for row in TABLE.values():
        assert f"{dialects.call_of(row)}" in page, row.name


NEW_ROW = """
_row(
    "ROIAlign", "newcomer", "avg", "", _ALIGN,
    whose=("Newcomer roi_align",), golden=("newcomer_roi_align",),
)
"""


def test_one_row_and_one_golden_file_make_a_dialect(tmp_path):
    """In a copy: help, the error for a wrong dialect, explain, warm-up, the page's table, the tests' cases."""
    for folder in ("roiops", "tests/operators", "verify"):
        shutil.copytree(
            ROOT / folder, tmp_path / folder, ignore=shutil.ignore_patterns("__pycache__", "*.nb*")
        )
    golden = tmp_path / "tests" / "golden" / "roi"
    golden.mkdir(parents=True)
    for name in ("golden_files.py", "reference.py"):
        shutil.copy(ROOT / "tests" / name, tmp_path / "tests")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.pytest.ini_options]\npythonpath = ["tests", "tests/operators"]\n'
    )
    # The golden file: one case of another peer's, as a stand-in for the newcomer's.
    with np.load(ROOT / "tests" / "golden" / "roi" / "torchvision_roi_align_unaligned.npz") as file:
        meta = json.loads(str(file["meta"]))
        meta["cases"] = meta["cases"][:1]
        arrays = {name: file[name] for name in file.files if name.startswith("0/")}
        np.savez(golden / "newcomer_roi_align.npz", meta=np.array(json.dumps(meta)), **arrays)
    table = tmp_path / "roiops" / "operators" / "roi" / "dialects.py"
    source = table.read_text()
    table.write_text(source.replace("\n# -- the rules in words", NEW_ROW + "\n\n# -- the rules in words", 1))
    assert table.read_text() != source
    script = """
import roiops as mx
from roiops import explain
from roiops.errors import ParamError
from roiops.registry import get
told = " ".join(mx.nd.ROIAlign.__doc__.split())
assert "'newcomer'" in told and "Newcomer roi_align" in told
try:
    get("ROIAlign").create({"pooled_size": 1, "spatial_scale": 1, "dialect": "newcommer"})
except ParamError as error:
    assert "'newcomer'" in str(error), error
else:
    raise AssertionError("no error")
assert "ROIAlign/newcomer" in explain.table((0, 0, 3, 3), (4, 4))
"""
    # Not compiled: the kernels are the same, and compiling them again would take a minute.
    environment = {**os.environ, "PYTHONPATH": str(tmp_path), "NUMBA_DISABLE_JIT": "1"}

    def run(*command):
        ran = subprocess.run(
            [sys.executable, *command], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert ran.returncode == 0, ran.stdout[-3000:] + ran.stderr[-3000:]
        return ran.stdout

    run("-c", script)
    assert "| ROIAlign/newcomer | `σ x1` |" in run("verify/dialects.py", "--rules")
    pytest_ = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")
    assert "1 passed" in run(*pytest_, "tests/operators/roi/test_golden.py", "-k", "newcomer")
    listed = run(*pytest_, "--collect-only", "tests/operators/roi/test_hostile.py", "-k", "newcomer")
    assert "test_ignored_rows[ROIAlign/newcomer]" in listed


def test_usual_modes():
    for operator in {row.operator for row in TABLE.values()}:
        assert rows(operator)[0].mode == modes_of(operator, rows(operator)[0].dialect)[0]
