"""How the forward kernels take four channels at a time, and what may be loaded as one quad."""

import numpy as np
import pytest
from calls import invoke, results
from roi_cases import random_rois

from roiops.kernels.cuda import lanes, runtime
from roiops.kernels.cuda.lanes import Layout

#: Operators whose channels are all read alike, which is what quads need.
ALIKE = {
    "mean": ("ROIAlign", {"pooled_size": (3, 2), "sampling_ratio": 2}),
    "mean of large bins": ("ROIAlign", {"pooled_size": (1, 1), "sampling_ratio": 0}),
    "maximum of pixels": ("ROIPooling", {"pooled_size": (2, 3)}),
    "maximum of samples": ("ROIAlign", {"pooled_size": (2, 2), "dialect": "mmcv", "mode": "max"}),
    "displaced": (
        "_contrib_DeformablePSROIPooling",
        {"output_dim": 8, "group_size": 1, "pooled_size": 3, "part_size": 3, "trans_std": 0.2},
    ),
    "rotated": ("_contrib_RROIAlign", {"pooled_size": (2, 2)}),
}


def arrays_of(name, channels, dtype):
    random = np.random.default_rng(3)
    height, width = 30, 6  # more rows than a table of the tests has room for
    data = random.standard_normal((2, channels, height, width)).astype(dtype)
    rois = random_rois(random, 4, 2, height, width, 0.5)
    rois[3] = [0, -3, -5, 14, 64]
    if "RROI" in name:
        rois[:, 3:] /= 4
        return [data, np.column_stack([rois, [0, 30, 45, 90]]).astype(np.float32)]
    trans = [random.standard_normal((4, 4, 3, 3)).astype(np.float32)] if "Deformable" in name else []
    return [data, rois, *trans]


def in_memory(data, channels=slice(None), room=0):
    """The same features, channels last, ``room`` elements apart from those of the next pixel."""
    images, count, height, width = data.shape
    wide = np.full((images, height, width, count + room), np.nan, data.dtype)
    wide[..., channels] = data.transpose(0, 2, 3, 1)
    return wide[..., channels].transpose(0, 3, 1, 2)


def layouts_taken(monkeypatch):
    taken = []
    before = lanes.lanes_for

    def lanes_for(name, layout):
        taken.append(layout)
        return before(name, layout)

    for stem in ("roi_average", "roi_max", "roi_deformable", "roi_rotated"):
        module = runtime.importlib.import_module(f"roiops.kernels.cuda.{stem}")
        monkeypatch.setattr(module, "lanes_for", lanes_for)
        module.forward_kernel.cache_clear()
    return taken


@pytest.mark.parametrize(
    ("label", "dtype"), [*((label, "float32") for label in ALIKE), ("mean", "float16"), ("mean", "float64")]
)
def test_quads_give_what_planes_give(label, dtype, monkeypatch):
    name, params = ALIKE[label]
    params = {"spatial_scale": 0.5, **params}
    arrays = arrays_of(name, 8, dtype)
    taken = layouts_taken(monkeypatch)
    expected = results(invoke(name, params, arrays))
    found = results(invoke(name, params, [in_memory(arrays[0]), *arrays[1:]]))
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
    name, params = ALIKE["mean"]
    params = {"spatial_scale": 0.5, **params}
    data, rois = arrays_of(name, channels, "float32")
    taken = layouts_taken(monkeypatch)
    expected = results(invoke(name, params, [data, rois]))
    found = results(invoke(name, params, [in_memory(data, where, room), rois]))
    assert taken == [Layout.PLANES, Layout.CHANNELS_LAST]
    np.testing.assert_array_equal(found["out0"], expected["out0"])


def test_classes_that_are_no_quads(monkeypatch):
    name, params = ALIKE["displaced"]
    params = {"spatial_scale": 0.5, **params, "output_dim": 12}
    arrays = arrays_of(name, 12, "float32")  # two classes of six channels
    taken = layouts_taken(monkeypatch)
    expected = results(invoke(name, params, arrays))
    found = results(invoke(name, params, [in_memory(arrays[0]), *arrays[1:]]))
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
