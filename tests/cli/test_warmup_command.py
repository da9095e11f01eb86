"""``roiops warmup``: what it compiles, and what it says."""

import contextlib
import sys
from types import SimpleNamespace

import numba
import pytest

import roiops as mx
from roiops import cli, compiling
from roiops.kernels import claims
from roiops.warmup import names as names_of_all
from roiops.warmup import run_once


@pytest.fixture
def model(tmp_path):
    """A saved graph of three activations."""
    x = mx.sym.Variable("data")
    for i in range(3):
        x = mx.sym.Activation(x, act_type="relu", name=f"relu{i}")
    mx.sym.Flatten(x, name="flat").save(str(tmp_path / "net-symbol.json"))
    return str(tmp_path / "net")


def test_a_model_is_warmed_up_from_its_graph_alone(model, capsys):
    assert cli.main(["warmup", model, "--shape", "data=1,2,3,4", "--jobs", "1"]) == 0
    assert capsys.readouterr().out == "the kernels of 4 operators are compiled\n"
    with pytest.raises(SystemExit, match="2"):
        cli.main(["warmup", model])
    assert "roiops warmup: error: --shape is needed for data (" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        cli.main(["warmup", model, "--dtype", "float32"])
    assert "--dtype is for operators; a model has its own" in capsys.readouterr().err
    with pytest.raises(SystemExit, match="2"):
        cli.main(["warmup", model, "ROIPooling"])
    assert f"one model, or operators, at a time: {model} is a model" in capsys.readouterr().err
    assert cli.main(["warmup", model, "--shape", "dta=1,2,3,4"]) == 1
    assert "'dta' is not an input of the graph; did you mean 'data'?" in capsys.readouterr().err


def test_operators_are_warmed_up_by_name(capsys, monkeypatch):
    asked = []
    monkeypatch.setattr(
        sys.modules["roiops.warmup"], "warmup", lambda name, dtypes: asked.append((name, dtypes))
    )
    command = ["warmup", "--jobs", "1", "_contrib_RROIAlign", "PSROIPooling"]
    assert cli.main([*command, "--dtype", "float64"]) == 0
    assert cli.main(command) == 0
    names = "contrib.RROIAlign", "PSROIPooling"
    assert asked == [(name, [dtype]) for dtype in ("float64", "float32") for name in names]
    assert capsys.readouterr().out == "the kernels of 2 operators are compiled\n" * 2
    asked.clear()
    monkeypatch.setattr("roiops.kernels.jit.cache_folder", lambda: None)
    assert cli.main(command[:3]) == 1
    assert [name for name, _ in asked] == names_of_all()
    words = f"the kernels of {len(asked)} operators compile, but none are kept: ROIOPS_CACHE=0, or no folder"
    assert words in capsys.readouterr().err


def _refuse():
    raise mx.MXNetError("not zeros")


@pytest.mark.parametrize("refusal", [False, True])
def test_a_step_that_fails_does_not_end_the_warmup(refusal):
    """That an operator refuses zeros is expected; what nobody expects is shown."""
    done, shown = [], contextlib.nullcontext()
    if not refusal:
        words = r"^relu, tried on zeros: ZeroDivisionError: division by zero$"
        shown = pytest.warns(RuntimeWarning, match=words)
    with shown:
        run_once([("relu", _refuse if refusal else lambda: 1 / 0), ("flat", lambda: done.append("flat"))])
    assert done == ["flat"]


@pytest.mark.skipif(numba.config.DISABLE_JIT or not claims.CAN_SHARE, reason="this process compiles alone")
def test_other_processes_help_only_where_something_has_to_be_compiled(model, monkeypatch):
    started, kernel = [], numba.njit(lambda x: x + 1)
    monkeypatch.setattr("roiops.compiling.start", lambda task, count: started.append((task["shapes"], count)))
    command = ["warmup", model, "--shape", "data=1,2,3,4", "--jobs"]
    assert cli.main([*command, "1"]) == 0  # on disk from here on
    assert started == [] or started == [({"data": (1, 2, 3, 4)}, 0)]
    started.clear()
    assert cli.main([*command, "9"]) == 0
    assert started == []
    monkeypatch.setattr("roiops.cli.warmup.run_once", lambda calls: kernel(1))
    assert cli.main([*command, "9"]) == 0
    assert started == [({"data": (1, 2, 3, 4)}, 3)], (
        "no more than there are operators, this process among them"
    )
    monkeypatch.setattr("roiops.cli.warmup.run_once", lambda calls: compiling.start_one({"shapes": None}))
    monkeypatch.setattr(compiling, "_running", [])
    for jobs, asked in ("1", []), ("2", [(None, 1)]):
        started.clear()
        assert cli.main([*command, jobs]) == 0
        assert started == asked, "for what a kernel calls by an address"
    started.clear()
    monkeypatch.setattr(compiling, "_running", [SimpleNamespace(poll=lambda: None)])
    assert cli.main([*command, "2"]) == 0
    assert started == [], "there is one that runs"
