"""Checkpoint files."""

import pytest

import roiops as mx
from roiops.errors import FormatError


def test_both_kinds_of_parameters_come_back(tmp_path):
    prefix = str(tmp_path / "net")
    mx.model.save_checkpoint(prefix, 7, None, {"a": mx.nd.array([1.0])}, {"b": mx.nd.array([2.0])})
    assert [p.name for p in tmp_path.iterdir()] == ["net-0007.params"]
    args, aux = mx.model.load_params(prefix, 7)
    assert (list(args), args["a"].asscalar(), list(aux), aux["b"].asscalar()) == (["a"], 1.0, ["b"], 2.0)


def test_files_that_hold_something_else(tmp_path, caplog):
    prefix = str(tmp_path / "net")
    mx.nd.save(f"{prefix}-0001.params", [mx.nd.array([1.0])])
    with pytest.raises(FormatError, match=r"net-0001.params: .*1 arrays"):
        mx.model.load_params(prefix, 1)
    mx.nd.save(f"{prefix}-0002.params", {"weight": mx.nd.array([1.0])})
    with pytest.raises(FormatError, match="names must start with 'arg:' or 'aux:', got 'weight'"):
        mx.model.load_params(prefix, 2)
    mx.nd.save(f"{prefix}-0003.params", {})
    assert mx.model.load_params(prefix, 3) == ({}, {})
    assert "is empty" in caplog.text
