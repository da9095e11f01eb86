"""Compiling ahead, and that importing compiles nothing."""

import importlib
import os
import subprocess
import sys

import pytest

import roiops
from roiops.errors import ParamError, RegistryError
from roiops.operators.roi.dialects import TABLE


def test_names_and_seconds():
    took = roiops.warmup("contrib.RROIAlign", dtypes=["float32"])
    assert list(took) == ["contrib.RROIAlign"]
    assert took["contrib.RROIAlign"] >= 0


def test_every_roi_operator_is_known():
    """By the table of dialects; each of them is compiled by the command, not here, where it takes minutes."""
    assert set(importlib.import_module("roiops.warmup").names()) == {row.operator for row in TABLE.values()}


def test_an_operator_goes_by_all_its_names():
    for name in ("PSROIPooling", "contrib.PSROIPooling", "_contrib_PSROIPooling"):
        assert list(roiops.warmup(name)) == ["PSROIPooling"]


def test_other_operators():
    with pytest.raises(ParamError, match="warmup: 'Convolution' is not an ROI operator"):
        roiops.warmup("Convolution")
    with pytest.raises(RegistryError, match="'ROIAlgn' is not registered; did you mean"):
        roiops.warmup("ROIAlgn")


def test_kernels_are_compiled_once_for_one_thread_and_for_more():
    script = """
import roiops
from roiops.kernels.cpu.roi import rotated
roiops.warmup("contrib.RROIAlign")
for kernel in rotated._build, rotated._forward, rotated._backward:
    print(len(kernel.compiled.overloads))
"""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, env=environment)
    assert done.stdout.split() == [b"1"] * 3


def test_importing_compiles_nothing():
    script = """
import roiops
from roiops.kernels.cpu.roi import average, deformable, maximum, rotated, tables
from numba.core.registry import CPUDispatcher
modules = average, deformable, maximum, rotated, tables
for module in modules:
    for name, value in vars(module).items():
        assert not (isinstance(value, CPUDispatcher) and value.overloads), name
"""
    subprocess.run([sys.executable, "-c", script], check=True)
