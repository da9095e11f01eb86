"""Compiling ahead, and that importing compiles nothing."""

import importlib
import os
import subprocess
import sys

import numpy as np
import pytest

import roiops
from roiops.errors import MXNetError, ParamError, RegistryError
from roiops.operators.base import Operator, OperatorProperty, assign
from roiops.operators.roi.dialects import TABLE
from roiops.params import Field, Parameter, enum, shape
from roiops.registry import get, list_operators, register

warmup = importlib.import_module("roiops.warmup")  # the function has the same name


def test_names_and_seconds():
    took = roiops.warmup("contrib.RROIAlign", dtypes=["float32"])
    assert list(took) == ["contrib.RROIAlign"]
    assert took["contrib.RROIAlign"] >= 0


def test_every_roi_operator_is_known():
    """By the table of dialects; each of them is compiled by the command, not here, where it takes minutes."""
    assert set(warmup.names()) == {row.operator for row in TABLE.values()}
    pooled = {
        (get(name).name, getattr(get(name).create(params), "takes_maximum", False))
        for name, every in warmup._examples().items()
        for params in every
    }
    assert {("ROIAlign", True), ("ROIAlign", False), ("ROIPooling", True)} <= pooled


def test_an_operator_goes_by_all_its_names():
    for name in ("PSROIPooling", "contrib.PSROIPooling", "_contrib_PSROIPooling"):
        assert list(roiops.warmup(name)) == ["PSROIPooling"]


def test_other_operators():
    with pytest.raises(ParamError, match="warmup: 'Convolution' is not an ROI operator"):
        roiops.warmup("Convolution")
    with pytest.raises(RegistryError, match="'ROIAlgn' is not registered; did you mean"):
        roiops.warmup("ROIAlgn")


class PlainParam(Parameter):
    scale = Field(float, above=0, doc="a factor")
    count = Field(int, range=(3, None), doc="of something")
    size = Field(shape(2), range=(2, None), doc="of something")
    kind = Field(enum("first", "second"), doc="of something")


class PlainOp(Operator):
    """``data * scale + bias``, which notes the calls."""

    calls: list = []

    def forward(self, ctx, in_data, req, out_data, aux):
        self.calls.append(("forward", [(a.shape, a.dtype) for a in in_data], req))
        assign(out_data[0], req[0], in_data[0] * self.params.scale + in_data[1])

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        self.calls.append(("backward", [(a.shape, a.dtype) for a in in_grad], req))


@register("_test_plain")
class PlainProp(OperatorProperty):
    """It says nothing about small calls."""

    param, op = PlainParam, PlainOp
    arguments = ("data", "bias")

    def infer_shape(self, in_shapes):
        self.check_ndim("data", in_shapes[0], 2)
        return super().infer_shape(in_shapes)


def test_an_example_of_an_operator_that_says_nothing_about_it():
    """Its parameters follow from its fields, and the inputs from its infer_shape."""
    PlainOp.calls.clear()
    params = warmup.example("_test_plain", {})
    assert params == {"scale": 1.0, "count": 3, "size": (2, 2), "kind": "first"}
    warmup.run_example("_test_plain", params, 1, np.dtype("float64"), roiops.cpu(), "add")
    inputs = [((2, 2), np.float64)] * 2
    assert PlainOp.calls == [("forward", inputs, ["write"]), ("backward", inputs, ["add", "add"])]


@pytest.mark.parametrize("name", ["_zeros", "BatchNorm", "Concat", "argmax", "_equal"])
def test_examples_of_operators_of_many_kinds(name):
    """Without inputs, with states, with any number of inputs, without a gradient."""
    warmup.run_example(name, warmup.example(name, {}), 1, np.dtype("float32"), roiops.cpu())


def test_an_operator_that_takes_none_of_the_usual_shapes():
    with pytest.raises(
        MXNetError, match=r"box_iou: its example_shapes\(\) are of no call that it takes: .*lhs"
    ):
        warmup.run_example("_contrib_box_iou", {}, 1, np.dtype("float32"), roiops.cpu())


def test_operators_with_gpu_kernels_have_an_example():
    for name in list_operators():
        if "gpu" in get(name).devices and name != "Custom":  # which knows nothing without a script's class
            prop = get(name).create(warmup.example(name, {}))
            assert warmup.small_inputs(prop, 1, np.dtype("float32"))


@pytest.mark.parametrize(
    "name", ["contrib.ROIAlign", "PSROIPooling", "PSROIAlign", "CropAndResize", "PrROIPooling"]
)
def test_means_are_warmed_up_in_the_ways_of_one_channel_and_of_several(name, monkeypatch):
    from roiops.kernels.cpu.roi import average

    taken, choose = set(), average.way_of

    def way_of(*args, gradient=False):
        way = choose(*args, gradient=gradient)
        taken.add((way, gradient))
        return way

    monkeypatch.setattr(average, "way_of", way_of)
    roiops.warmup(name)
    ways = average.SCALARS, average.LANES
    assert {(way, gradient) for way in ways for gradient in (False, True)} <= taken


def test_kernels_are_compiled_once_for_one_thread_and_for_more():
    script = """
import roiops
from roiops.kernels.cpu.roi import rotated
roiops.warmup("contrib.RROIAlign")
for compiled in rotated._build.compiled, rotated._run_forward._compiled, rotated._run_backward._compiled:
    print(len(compiled.overloads))
"""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, env=environment)
    assert done.stdout.split() == [b"1"] * 3


def test_importing_compiles_nothing_and_makes_no_function_of_numba_for_parts_of_kernels():
    script = """
import roiops
from roiops.kernels.cpu.roi import average, deformable, maximum, rotated, tables
from numba.core.registry import CPUDispatcher
modules = average, deformable, maximum, rotated, tables
for module in modules:
    for name, value in vars(module).items():
        assert not (isinstance(value, CPUDispatcher) and value.overloads), name
        assert not {"dispatcher", "compiled"} & set(getattr(value, "__dict__", ())), name
"""
    subprocess.run([sys.executable, "-c", script], check=True)


def test_dtypes_are_one_or_several():
    assert list(roiops.warmup("contrib.RROIAlign", dtypes="float32")) == ["contrib.RROIAlign"]
    with pytest.raises(roiops.MXNetError, match="dtypes must be float16, float32 or float64, got int32"):
        roiops.warmup("contrib.RROIAlign", dtypes=("int32",))
