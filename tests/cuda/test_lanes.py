"""How the forward kernels take four channels at a time, and what may be loaded as one quad."""

import numpy as np
import pytest
from calls import ALIKE, alike, channels_last, invoke, results

from roiops.kernels.cuda import lanes, runtime
from roiops.kernels.cuda.lanes import Layout


def layouts_taken(monkeypatch):
    taken = []
    before = lanes.lanes_for

    def lanes_for(name, layout):
        taken.append(layout)
        return before(name, layout)

    for stem in ("average", "maximum", "deformable", "rotated"):
        module = runtime.importlib.import_module(f"roiops.kernels.cuda.roi.{stem}")
        monkeypatch.setattr(module, "lanes_for", lanes_for)
        module.forward_kernel.cache_clear()
    return taken


@pytest.mark.parametrize(
    ("label", "dtype"), [*((label, "float32") for label in ALIKE), ("mean", "float16"), ("mean", "float64")]
)
def test_quads_give_what_planes_give(label, dtype, monkeypatch):
    name, params, arrays = alike(label, 8, dtype)
    taken = layouts_taken(monkeypatch)
    expected = results(invoke(name, params, arrays))
    found = results(invoke(name, params, [channels_last(arrays[0]), *arrays[1:]]))
    assert taken == [Layout.PLANES, Layout.QUADS]
    assert np.abs(expected["out0"]).max() > 0
    for key, value in found.items():
        np.testing.assert_array_equal(value, expected[key], err_msg=key)


@pytest.mark.parametrize(
    ("channels", "where", "room"),
    [
        pytest.param(7, slice(None), 0, id="no whole number of quads"),
        pytest.param(4, slice(1, 5), 4, id="begins between quads"),
        pytest.param(4, slice(4), 1, id="pixels are no quads apart"),
        pytest.param(4, slice(0, 8, 2), 4, id="every other channel"),
    ],
)
def test_what_is_no_quad_is_loaded_one_by_one(channels, where, room, monkeypatch):
    name, params, (data, rois) = alike("mean", channels, "float32")
    taken = layouts_taken(monkeypatch)
    expected = results(invoke(name, params, [data, rois]))
    found = results(invoke(name, params, [channels_last(data, where, room), rois]))
    assert taken == [Layout.PLANES, Layout.CHANNELS_LAST]
    np.testing.assert_array_equal(found["out0"], expected["out0"])


def test_classes_that_are_no_quads(monkeypatch):
    name, params, arrays = alike("displaced", 12, "float32")  # two classes of six channels
    taken = layouts_taken(monkeypatch)
    expected = results(invoke(name, params, arrays))
    found = results(invoke(name, params, [channels_last(arrays[0]), *arrays[1:]]))
    assert taken == [Layout.PLANES, Layout.CHANNELS_LAST]
    np.testing.assert_array_equal(found["out0"], expected["out0"])


def test_channels_of_groups_are_not_neighbours():
    elements = np.zeros(64, np.float32)
    strides = (32, 1, 16, 8)
    assert lanes.layout_of(elements, strides, 8) is Layout.QUADS
    assert lanes.layout_of(elements, strides, 8, groups=4) is Layout.CHANNELS_LAST


@pytest.mark.parametrize(("dtype", "bytes"), [("uint16", 8), ("float16", 8), ("int32", 16), ("float64", 16)])
def test_the_simulator_refuses_what_a_gpu_would(dtype, bytes):
    memory = np.zeros(64, np.uint8)
    memory = memory[-memory.ctypes.data % 16 :][:48]
    array = memory.view(dtype)
    size = array.itemsize
    assert runtime.quad_alignment(array.dtype) == bytes
    assert runtime.quad_at(array, bytes // size) == (0, 0, 0, 0)
    with pytest.raises(IndexError, match="the quad at 1 is not aligned"):
        runtime.quad_at(array, 1)
    last = array.size - runtime.QUAD + bytes // size
    with pytest.raises(IndexError, match=f"the quad at {last} reaches out of an array of {array.size}"):
        runtime.quad_at(array, last)


def test_crops_in_either_layout():
    random = np.random.default_rng(5)
    data = random.standard_normal((2, 6, 7, 9)).astype(np.float32)
    edges = random.uniform(-0.2, 1.2, (5, 4))
    rois = np.column_stack([[0, 1, -1, 1, 0], edges]).astype(np.float32)
    params = {"pooled_size": (3, 2), "extrapolation_value": 2.0}
    head = random.standard_normal((5, 6, 3, 2)).astype(np.float32)

    def last(array):
        return np.ascontiguousarray(np.moveaxis(array, 1, -1))

    expected = results(invoke("CropAndResize", params, [data, rois]), head)
    found = results(invoke("CropAndResize", {**params, "layout": "NHWC"}, [last(data), rois]), last(head))
    np.testing.assert_array_equal(found["out0"], last(expected["out0"]))
    np.testing.assert_array_equal(found["grad_data"], last(expected["grad_data"]))
    np.testing.assert_allclose(found["grad_rois"], expected["grad_rois"], rtol=1e-4, atol=1e-5)
