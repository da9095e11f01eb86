"""The CUDA kernels against the CPU's, and what is said of them: layouts, dtypes, requests, determinism."""

import os

import numpy as np
import pytest
from calls import agree, answers_of_the_cpu, bits_of, channels_last, from_bits, invoke, random_cases, results

from roiops.errors import DataError, DeviceError, DTypeError
from roiops.kernels.cuda import number, runtime
from roiops.kernels.cuda.roi import average as roi_average
from roiops.kernels.cuda.roi import maximum as roi_max
from roiops.kernels.cuda.roi import tiles
from roiops.kernels.rules import Pooling
from roiops.operators.checks import enforced
from roiops.operators.roi.dialects import named

CASES = random_cases()


@pytest.fixture(scope="session")
def answers():
    """What the CPU computed before; without such a file, what it computes now, slowly and not compiled."""
    path = os.environ.get("ROIOPS_TEST_ANSWERS")
    return np.load(path) if path else answers_of_the_cpu()


@pytest.mark.parametrize("label", CASES)
def test_agrees_with_the_cpu(label, answers):
    name, params, arrays, head = CASES[label]
    for key, value in results(invoke(name, params, arrays), head).items():
        agree(value, answers[f"{label}/{key}"], f"{label}: {key}")


def test_every_dialect_is_compared():
    compared = {label.rsplit(" ", 1)[0] for label in CASES}
    assert set(named()) <= compared


FEW = [
    "ROIPooling/mxnet small", "ROIAlign/mmcv adaptive", "ROIAlign/mmcv/max small", "PSROIAlign/rfcn small",
    "deformable two classes", "rotated 2",
]  # fmt: skip


@pytest.mark.parametrize("label", FEW)
def test_repeats_to_the_last_bit(label):
    name, params, arrays, head = CASES[label]
    once, again = (results(invoke(name, params, arrays), head) for _ in range(2))
    for key, value in once.items():
        np.testing.assert_array_equal(value, again[key])


@pytest.mark.parametrize("label", FEW)
@pytest.mark.parametrize("tile", [(3, 2), (1, 1)])
def test_the_cut_of_the_work_does_not_matter(label, tile, monkeypatch):
    name, params, arrays, head = CASES[label]
    expected = results(invoke(name, params, arrays), head)
    monkeypatch.setattr(runtime, "MOST_BLOCKS", 1)
    sizes = tiles.Sizes(
        tile_h=tile[0],
        tile_w=tile[1],
        side=tile[1],
        channels=3,
        max_tile=tile[0],
        max_channels=2,
        max_parts=2,
        max_entries=4,
        bins=min(tile),
        each=1,
        table=tile[0] * tile[1],  # or fewer than there are bins
        threads=2,
        unit_threads=2,
        turns=1,
        blocks=1,
    )
    monkeypatch.setattr(tiles, "SIZES", sizes)
    monkeypatch.setattr(roi_average, "_TABLE_BYTES", 1)  # one ROI at a time
    for key, value in results(invoke(name, params, arrays), head).items():
        agree(value, expected[key], key)


@pytest.mark.parametrize("label", FEW)
def test_gradients_add_up(label):
    name, params, arrays, head = CASES[label]
    invocation = invoke(name, params, arrays)
    written = results(invocation, head)
    before = [np.full_like(a, 3) for a in arrays]
    invocation.backward([head], req="add", in_grad=before)
    agree(before[0], written["grad_data"] + 3, label)
    untouched = [np.full_like(a, 5) for a in arrays]
    invocation.backward([head], req="null", in_grad=untouched)
    assert all((a == 5).all() for a in untouched)


@pytest.mark.parametrize("label", FEW)
@pytest.mark.parametrize("dtype", ["float16", "float64"])
def test_dtypes(label, dtype):
    name, params, arrays, head = CASES[label]
    data = arrays[0].astype(dtype)
    found = results(invoke(name, params, [data, *arrays[1:]]), head.astype(dtype))
    wide = np.float64 if dtype == "float64" else np.float32
    expected = results(
        invoke(name, params, [data.astype(wide), *arrays[1:]]), head.astype(dtype).astype(wide)
    )
    assert found["out0"].dtype == dtype
    for key, value in found.items():
        # float16 is computed with as float32 and rounded once.
        agree(value, expected[key].astype(value.dtype), key)


@pytest.mark.parametrize("dialect", ["ROIAlign/mmcv", "ROIPooling/mxnet"])
def test_bfloat16(dialect):
    _, params, (data, rois), head = CASES[f"{dialect} small"]
    how = Pooling(named()[dialect].rules, params["spatial_scale"], (2, 2))
    maximum = dialect.startswith("ROIPooling")
    module = roi_max if maximum else roi_average
    bits, heads = bits_of(data), bits_of(head)
    lowest = [-3e38] if maximum else []
    found = {}
    for stored, grads, kind in ((bits, heads, "bits"), (from_bits(bits), from_bits(heads), "wide")):
        out, grad = np.zeros(head.shape, stored.dtype), np.zeros(data.shape, stored.dtype)
        argmax = [np.zeros(head.shape, np.int32)] if maximum else []
        module.forward(stored, rois, how, *lowest, out, *argmax)
        module.backward(grads, *argmax, rois, how, False, grad)
        found[kind] = out, grad
    for one, other in zip(found["bits"], found["wide"], strict=True):
        np.testing.assert_array_equal(one, bits_of(other))


def test_bfloat16_of_nan():
    assert number._to_bits(np.float32(np.nan)) == 0x7FC0
    assert number._to_bits(np.float32(-np.inf)) == 0xFF80


def every_other(array):
    wide = np.full((*array.shape[:-1], 2 * array.shape[-1]), 9, array.dtype)
    wide[..., ::2] = array
    return wide[..., ::2]


@pytest.mark.parametrize("label", FEW)
@pytest.mark.parametrize("layout", [channels_last, every_other])
def test_layouts(label, layout):
    name, params, arrays, head = CASES[label]
    expected = results(invoke(name, params, arrays), head)
    found = results(
        invoke(name, params, [layout(arrays[0]), every_other(arrays[1]), *arrays[2:]]), every_other(head)
    )
    for key, value in found.items():
        np.testing.assert_array_equal(value, expected[key], err_msg=key)


def test_outputs_in_any_layout():
    name, params, arrays, head = CASES["ROIAlign/mmcv small"]
    invocation = invoke(name, params, arrays)
    expected = results(invocation, head)
    invocation.outputs = [every_other(np.zeros_like(expected["out0"]))]
    grads = [channels_last(np.full_like(arrays[0], 2)), None]
    invocation.forward()
    invocation.backward([head], req=["add", "null"], in_grad=grads)
    np.testing.assert_array_equal(invocation.outputs[0], expected["out0"])
    agree(grads[0], expected["grad_data"] + 2, "gradient")


@pytest.mark.parametrize("label", FEW)
def test_no_rois_and_no_images(label):
    name, params, arrays, head = CASES[label]
    found = results(invoke(name, params, [arrays[0], *(a[:0] for a in arrays[1:])]), head[:0])
    assert found["out0"].shape == (0, *head.shape[1:])
    assert not found["grad_data"].any()
    found = results(invoke(name, params, [arrays[0][:0], *arrays[1:]]), head)
    assert not found["out0"].any()


def test_a_bad_image_gives_zeros():
    name, params, (data, rois), head = CASES["ROIAlign/mmcv small"]
    rois = rois.copy()
    rois[:3, 0] = [2, np.nan, np.inf]
    found = results(invoke(name, params, [data, rois]), head)
    assert not found["out0"][:3].any()
    alone = results(invoke(name, params, [data, rois[3:]]), head[3:])
    np.testing.assert_array_equal(found["grad_data"], alone["grad_data"])


def test_a_bad_image_raises_where_asked():
    name, params, (data, rois), _ = CASES["ROIAlign/mmcv small"]
    rois = rois.copy()
    rois[1, 0] = 2
    with (
        enforced(),
        pytest.raises(DataError, match=r"ROIAlign: rois row 1 has batch index 2.0, but data has 2"),
    ):
        invoke(name, params, [data, rois]).forward()


@pytest.mark.parametrize("axes", range(6))
def test_copies_of_any_axes(axes):
    array = np.arange(np.prod((3, 2, 10, 2, 3)[:axes]), dtype=np.float32).reshape((3, 2, 10, 2, 3)[:axes])
    for order in range(axes), reversed(range(axes)), np.roll(range(axes), 1):
        turned = runtime.to_device(array).transpose(*order)
        target = runtime.empty(turned.shape, np.float64)
        runtime.copy(turned, target)
        np.testing.assert_array_equal(target, turned)


def test_a_dtype_without_kernels():
    with pytest.raises(
        DTypeError, match=r"data on a GPU must be float16, bfloat16, float32 or float64, got int32"
    ):
        number.kind_of(np.dtype(np.int32))


@pytest.mark.parametrize(("width", "pooled"), [(1 << 26, 2), (8, 1 << 14)])
def test_gradients_of_maxima_beyond_32_bits(width, pooled):
    grad, head = (
        np.broadcast_to(np.float32(0), shape) for shape in ((1, 1, 2, width), (1, 1, pooled, pooled))
    )
    how = Pooling(named()["ROIPooling/mxnet"].rules, 1.0)
    with pytest.raises(DeviceError, match=f"{pooled} x {pooled} bins, of a map {width} wide"):
        roi_max.backward(head, head, np.zeros((1, 5), np.float32), how, False, grad)
