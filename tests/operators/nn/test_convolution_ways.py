"""The fast ways of convolution against the general one in float64, and what fusing adds."""

import itertools
import sys

import numba
import numpy as np
import pytest
from soak.layers import spoil_scratch

import roiops as mx
from roiops.kernels.cpu.conv import convolution as conv
from roiops.kernels.cpu.conv import dilated as conv_dilated
from roiops.kernels.cpu.conv import filters as conv_filters
from roiops.kernels.cpu.conv import pointwise as conv_pointwise
from roiops.kernels.cpu.conv import shifted as conv_shifted
from roiops.kernels.cpu.conv import taps as conv_taps
from roiops.kernels.cpu.conv import weight_winograd as conv_weight_winograd
from roiops.kernels.cpu.conv import winograd as conv_winograd
from roiops.kernels.cpu.conv.one_pixel import OnePixel
from roiops.kernels.cpu.conv.way import ROOM, Arrays, Layer
from roiops.kernels.cpu.product import fc
from roiops.kernels.cpu.product.machine import HERE
from roiops.kernels.cpu.product.matmul import times_transposed
from roiops.kernels.cpu.product.panels import deal
from roiops.kernels.cpu.product.tiles import ACROSS
from roiops.kernels.jit import use_threads

RNG = np.random.default_rng(5)


@pytest.fixture(autouse=True)
def same_numbers_whichever_tests_ran_before(monkeypatch):
    monkeypatch.setitem(globals(), "RNG", np.random.default_rng(5))


#: The window of a 3x3 convolution.
THREE = (3, 3), (1, 1), (1, 1), (1, 1)
#: batch, channels, height, width, filters, kernel, stride, dilate, pad, groups
SHAPES = [
    (2, 5, 9, 11, 7, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (1, 16, 13, 50, 16, (1, 1), (1, 1), (1, 1), (0, 0), 1),
    (2, 64, 20, 21, 24, (1, 1), (2, 2), (1, 1), (0, 0), 1),
    (1, 12, 13, 50, 20, (3, 3), (2, 2), (1, 1), (1, 1), 2),
    (1, 3, 40, 60, 64, (7, 7), (2, 2), (1, 1), (3, 3), 1),
    (1, 8, 20, 21, 9, (3, 3), (1, 1), (2, 2), (2, 2), 1),
    (1, 4, 17, 19, 8, (5, 2), (3, 3), (1, 2), (2, 0), 1),
    (1, 8, 1, 1, 9, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (1, 2, 1, 130, 3, (1, 5), (1, 2), (1, 1), (0, 2), 1),
    # several images in one panel
    (61, 9, 1, 1, 10, (1, 1), (1, 1), (1, 1), (0, 0), 1),
    (9, 20, 7, 7, 17, (1, 1), (1, 1), (1, 1), (0, 0), 1),
    (9, 6, 14, 14, 8, (3, 3), (2, 2), (1, 1), (1, 1), 2),
    (7, 5, 7, 7, 9, (3, 3), (1, 1), (2, 2), (2, 2), 1),
    (3, 4, 5, 17, 8, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (4, 3, 3, 40, 8, (3, 3), (1, 3), (2, 1), (2, 1), 1),
]
WINOGRAD = [
    (1, 8, 8, 8, 8, (1, 1)),
    (2, 5, 9, 11, 7, (1, 1)),
    (1, 12, 13, 50, 20, (2, 0)),
    (1, 3, 1, 1, 9, (1, 1)),
    (3, 64, 37, 50, 24, (1, 1)),
    (1, 16, 101, 203, 16, (1, 1)),
    (1, 300, 75, 60, 33, (0, 0)),
    (31, 9, 7, 7, 10, (1, 1)),
    (5, 8, 14, 15, 16, (1, 2)),
    (50, 3, 3, 2, 9, (1, 1)),
    (3, 260, 9, 41, 8, (0, 1)),
]


def expected(data, weight, window, groups):
    """The convolution in float64, the general way."""
    kernel, stride, dilate, pad = ((0 if i == 3 else 1, *values) for i, values in enumerate(window))
    sizes = [
        (n + 2 * p - d * (k - 1) - 1) // s + 1
        for n, k, s, d, p in zip(data.shape[2:], kernel[1:], stride[1:], dilate[1:], pad[1:], strict=True)
    ]
    out = np.empty((len(data), len(weight), 1, *sizes))
    wide = [np.float64(a)[:, :, None] for a in (data, weight)]
    conv.forward(*wide, None, (kernel, stride, dilate, pad), groups, out)
    return out[:, :, 0]


def layer_of(data, weight, window, groups, out_size):
    counts = len(data), data.shape[1], len(weight), groups
    return Layer(*counts, data.shape[2:], tuple(out_size), *window)


def run_way(way, *arrays):
    way.bind(Arrays(*arrays))()


def check_finished(make, data, weight, window, groups, plain, relative):
    """``plain`` by itself, and with scale, shift, addition and activations, in place of what is added."""
    filters, room = len(weight), ROOM
    way = make(layer_of(data, weight, window, groups, plain.shape[2:]))
    ones, zeros = np.ones(filters + room, np.float32), np.zeros(filters + room, np.float32)
    out = np.full(plain.shape, np.nan, np.float32)
    spoil_scratch()
    run_way(way, data, weight, ones, zeros, conv.activation(), None, out)
    limit = relative * max(np.abs(plain).max(), 1)
    np.testing.assert_allclose(out, plain, rtol=0, atol=limit)
    scale, shift, slopes = (RNG.normal(size=filters + room).astype(np.float32) for _ in range(3))
    both = np.float32(RNG.normal(size=plain.shape))
    affine = plain * scale[:filters, None, None] + shift[:filters, None, None] + both
    beside = both.copy()
    spoil_scratch()
    run_way(way, data, weight, scale, shift, conv.activation(floor=0), both, both)
    np.testing.assert_allclose(both, np.maximum(affine, 0), rtol=0, atol=4 * limit)
    for other, before in ((None, affine - beside), (beside, affine)):
        spoil_scratch()
        run_way(way, data, weight, scale, shift, conv.activation(-1, 2, slopes), other, out)
        right = np.clip(np.where(before < 0, slopes[:filters, None, None] * before, before), -1, 2)
        np.testing.assert_allclose(out, right, rtol=0, atol=4 * limit)


def arrays(batch, channels, height, width, filters, kernel, groups):
    data = np.float32(RNG.normal(size=(batch, channels, height, width)))
    return data, np.float32(RNG.normal(size=(filters, channels // groups, *kernel)))


#: Few filters, one vector of them and many; 1 to 8 pixels beyond whole tiles.
FILTERS = [
    (1, 70, 7, 7, 100, (1, 1), (1, 1), (1, 1), (0, 0), 1),
    (2, 33, 6, 9, 16, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (3, 10, 8, 8, 130, (2, 2), (2, 2), (1, 1), (0, 0), 2),
    (1, 131, 3, 1, 33, (1, 1), (2, 1), (1, 1), (0, 0), 1),
]


#: Rows of results that are whole vectors on every machine, in tiles that span rows, or images.
WHOLE_ROWS = [
    (1, 5, 7, 16, 16, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (2, 4, 3, 32, 13, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (3, 6, 2, 32, 16, (3, 3), (2, 2), (1, 1), (1, 1), 2),
    (1, 3, 1, 16, 16, (1, 3), (1, 1), (1, 1), (0, 1), 1),
    (1, 2, 9, 52, 8, (3, 3), (1, 1), (2, 2), (0, 0), 1),
    # rows that end with a vector which overlaps the one before; tiles of 8, 4 and fewer filters
    (2, 24, 9, 57, 24, (3, 3), (1, 1), (1, 1), (1, 1), 3),
    (1, 16, 11, 28, 16, (3, 3), (2, 1), (1, 1), (1, 1), 4),
    (1, 6, 7, 30, 9, (3, 3), (1, 1), (1, 1), (1, 1), 3),
]


#: More filters than terms.
MANY_FILTERS = [
    (2, 1, 41, 101, 33, (3, 3), (1, 1), (1, 1), (1, 1), 1),
    (1, 3, 90, 203, 36, (3, 3), (2, 2), (1, 1), (0, 0), 1),
    (1, 2, 70, 151, 20, (3, 1), (1, 1), (1, 1), (0, 0), 2),
]


@pytest.mark.parametrize("shape", SHAPES + FILTERS + WHOLE_ROWS + MANY_FILTERS, ids=str)
@pytest.mark.parametrize("way", [conv_shifted.Shifted, conv_filters.ByFilters])
def test_any_window(way, shape):
    batch, channels, height, width, filters, kernel, stride, dilate, pad, groups = shape
    data, weight = arrays(batch, channels, height, width, filters, kernel, groups)
    window = kernel, stride, dilate, pad
    check_finished(way, data, weight, window, groups, expected(data, weight, window, groups), 1e-6)


@pytest.fixture
def planned(monkeypatch):
    """``planned(way, name, value)``: a way's plans are made with another function of its module."""
    ways = []

    def clear():
        for way in ways:
            way.plan.cache_clear()
            way.division.cache_clear()

    def plan_with(way, name, function):
        ways.append(way)
        monkeypatch.setattr(sys.modules[way.__module__], name, function)
        clear()

    yield plan_with
    clear()


@pytest.mark.parametrize("shape", SHAPES + WHOLE_ROWS + MANY_FILTERS, ids=str)
def test_rows_apart(shape, planned):
    """As in images that leave the caches: the last vector of a row overlaps with the one before."""
    planned(conv_shifted.Shifted, "joins_rows", lambda layer, machine: False)
    test_any_window(conv_shifted.Shifted, shape)


@pytest.mark.parametrize("shape", SHAPES + WHOLE_ROWS + MANY_FILTERS, ids=str)
def test_wide_tiles(shape, planned):
    """As of results that leave the caches; the last parts of a tile hold fewer vectors."""
    planned(conv_shifted.Shifted, "across", lambda layer, machine: ACROSS)
    test_any_window(conv_shifted.Shifted, shape)
    planned(conv_shifted.Shifted, "joins_rows", lambda layer, machine: False)
    test_any_window(conv_shifted.Shifted, shape)


ENTERED = [
    (way, shape)
    for way in (conv_shifted.Shifted, conv_filters.ByFilters)
    for shape in SHAPES + FILTERS + WHOLE_ROWS + MANY_FILTERS
    if way.takes_prologue(Layer(*[0] * 4, None, None, *shape[5:9]))
]


@pytest.mark.parametrize(("way", "shape"), ENTERED, ids=str)
def test_data_are_normalised_on_the_way(way, shape):
    """The zeros around an image stay zeros, and NaN stays NaN."""
    batch, channels, height, width, filters, kernel, *_, groups = shape
    data, weight = arrays(batch, channels, height, width, filters, kernel, groups)
    mean, scale, shift = np.float32(RNG.normal(size=(3, channels)))
    data[0, 0, 0, -1] = np.nan
    columns = [numbers[:, None, None] for numbers in (mean, scale, shift)]
    normal = np.maximum((data - columns[0]) * columns[1] + columns[2], np.float32(0))
    right = expected(normal, weight, shape[5:9], groups)
    ones, zeros = np.ones(filters + 16, np.float32), np.zeros(filters + 16, np.float32)
    out = np.empty(right.shape, np.float32)
    prologue = mean, scale, shift, np.float32(0), 1
    way = way(layer_of(data, weight, shape[5:9], groups, out.shape[2:]))
    run_way(way, data, weight, ones, zeros, conv.activation(), None, out, prologue)
    limit = 1e-5 * np.abs(right[np.isfinite(right)]).max(initial=1)
    np.testing.assert_allclose(out, right, rtol=0, atol=limit)


@pytest.mark.parametrize("shape", [s for s in FILTERS + WHOLE_ROWS if s[0] == s[-1] == 1], ids=str)
def test_channels_that_are_summed_part_by_part(shape, monkeypatch):
    channels = shape[1]
    ends = sorted({0, 1, channels // 2 + 1, channels})
    parts = list(itertools.pairwise(ends))
    monkeypatch.setattr(conv_filters.ByFilters, "parts", staticmethod(lambda layer, machine: parts))
    test_any_window(conv_filters.ByFilters, shape)
    if (conv_filters.ByFilters, shape) in ENTERED:
        test_data_are_normalised_on_the_way(conv_filters.ByFilters, shape)


@pytest.mark.parametrize("cache", [256 << 10, 1 << 20])
@pytest.mark.parametrize(("channels", "kernel"), [(512, 3), (2048, 1), (700, 5), (3, 40)])
def test_parts_hold_all_channels_and_packed_weights_fit_the_cache(channels, kernel, cache):
    layer = Layer(1, channels, 64, 1, (60, 60), (7, 7), (kernel, kernel), (8, 8), (1, 1), (0, 0))
    parts = conv_filters.ByFilters.parts(layer, HERE._replace(second_cache=cache))
    assert [c for first, end in parts for c in range(first, end)] == list(range(channels))
    most = max(end - first for first, end in parts)
    assert most == 1 or 4 * conv_filters.WIDTH * kernel**2 * most <= cache
    assert conv_filters.ByFilters.parts(layer._replace(batch=2), HERE) == [(0, channels)]


#: The zeros that end a plane or a channel of the frame are those in front of the next one.
SHARED_ZEROS = [
    (2, 8, 23, 68, 9, (2, 3), (2, 1), (1, 2), (2, 3), 1),
    (3, 8, 28, 33, 18, (4, 4), (1, 3), (1, 1), (2, 2), 1),
    (3, 56, 8, 59, 64, (3, 4), (1, 1), (2, 1), (1, 0), 8),
    (3, 14, 39, 28, 28, (4, 4), (2, 3), (1, 2), (0, 3), 2),
]


@pytest.mark.parametrize("shape", SHARED_ZEROS, ids=str)
@pytest.mark.parametrize("way", [conv_shifted.Shifted, conv_filters.ByFilters])
def test_workers_that_copy_a_part_of_the_images(way, shape):
    with use_threads(min(2, numba.config.NUMBA_NUM_THREADS)):
        test_any_window(way, shape)


def test_a_low_tile_at_the_end_of_what_a_worker_copies():
    """It takes a vector more, which is another worker's: both write the same."""
    batch, channels, height, width, filters, window = 1, 512, 4, 22, 4, ((1, 7), (1, 1), (1, 1), (0, 0))
    data, weight = arrays(batch, channels, height, width, filters, window[0], 1)
    right = expected(data, weight, window, 1)
    ones, zeros, out = np.ones(20, np.float32), np.zeros(20, np.float32), np.empty(right.shape, np.float32)
    with use_threads(min(2, numba.config.NUMBA_NUM_THREADS)):
        way = conv_shifted.Shifted(layer_of(data, weight, window, 1, out.shape[2:]))
        run = way.bind(Arrays(data, weight, ones, zeros, conv.activation(), None, out))
        for _ in range(50):  # the last to write differs from time to time
            spoil_scratch()
            run()
            np.testing.assert_allclose(out, right, rtol=0, atol=1e-5 * np.abs(right).max())


POINTWISE = [
    (1, 16, 13, 50, 16, (1, 1), 1),
    (2, 64, 20, 21, 24, (2, 2), 1),
    (2, 12, 20, 21, 27, (3, 1), 3),
    (61, 9, 1, 1, 10, (1, 1), 1),
    (9, 20, 7, 7, 17, (1, 1), 1),
    (1, 3, 70, 151, 36, (1, 1), 1),
    (2, 4, 61, 59, 52, (1, 1), 2),
]


@pytest.mark.parametrize("shape", POINTWISE, ids=str)
def test_pointwise(shape):
    batch, channels, height, width, filters, stride, groups = shape
    data, weight = arrays(batch, channels, height, width, filters, (1, 1), groups)
    window = (1, 1), stride, (1, 1), (0, 0)
    right = expected(data, weight, window, groups)
    check_finished(conv_pointwise.Pointwise, data, weight, window, groups, right, 1e-6)


@pytest.mark.parametrize("shape", POINTWISE, ids=str)
def test_pointwise_in_wide_tiles(shape, planned):
    planned(conv_pointwise.Pointwise, "across", lambda layer, machine: ACROSS)
    test_pointwise(shape)


@pytest.mark.parametrize("shape", WINOGRAD, ids=str)
def test_winograd(shape):
    batch, channels, height, width, filters, pad = shape
    data, weight = arrays(batch, channels, height, width, filters, (3, 3), 1)
    window = (3, 3), (1, 1), (1, 1), pad
    plain = expected(data, weight, window, 1)
    check_finished(conv_winograd.Winograd, data, weight, window, 1, plain, 1e-5)


@pytest.mark.parametrize(
    "shape", [(1, 24, 32, 33, 40, 2), (2, 36, 14, 14, 27, 3), (3, 8, 9, 70, 34, 2)], ids=str
)
def test_winograd_of_groups(shape):
    batch, channels, height, width, filters, groups = shape
    data, weight = arrays(batch, channels, height, width, filters, (3, 3), groups)
    plain = expected(data, weight, THREE, groups)
    check_finished(conv_winograd.Winograd, data, weight, THREE, groups, plain, 1e-5)


@pytest.mark.parametrize("most", [1, 5, 16])
@pytest.mark.parametrize(
    "shape", [(1, 17, 60, 61, 40, 1), (2, 36, 40, 31, 27, 3), (3, 20, 41, 70, 34, 2)], ids=str
)
def test_winograd_of_many_channels(shape, most, monkeypatch):
    """They are summed up part by part, with filters made anew for each."""
    monkeypatch.setattr(conv_winograd, "most_channels", lambda _: most)
    monkeypatch.setattr(conv_winograd, "MOST_KEPT_BYTES", 0)
    monkeypatch.setattr(conv_winograd, "_panels_alone", lambda *_: 0)
    batch, channels, height, width, filters, groups = shape
    data, weight = arrays(batch, channels, height, width, filters, (3, 3), groups)
    plain = expected(data, weight, THREE, groups)
    check_finished(conv_winograd.Winograd, data, weight, THREE, groups, plain, 1e-5)
    layer = layer_of(data, weight, THREE, groups, plain.shape[2:])
    plan = conv_winograd.Winograd.plan(layer, HERE)
    assert len(plan.parts) == -(-channels // groups // most)
    assert not plan.keeps


#: batch, channels, height, width, filters, dilate, pad, groups
DILATED = [
    (1, 16, 30, 30, 24, (2, 2), (2, 2), 1),
    (2, 12, 15, 22, 10, (4, 3), (4, 3), 2),
    (1, 5, 13, 12, 9, (2, 1), (1, 0), 1),
    (2, 9, 11, 10, 8, (12, 5), (12, 7), 1),
]


@pytest.mark.parametrize("shape", DILATED, ids=str)
def test_dilated(shape):
    batch, channels, height, width, filters, dilate, pad, groups = shape
    data, weight = arrays(batch, channels, height, width, filters, (3, 3), groups)
    window = (3, 3), (1, 1), dilate, pad
    plain = expected(data, weight, window, groups)
    check_finished(conv_dilated.Dilated, data, weight, window, groups, plain, 1e-5)
    if groups == 1:
        check_finished(conv_taps.ByTaps, data, weight, window, groups, plain, 2e-6)


@pytest.mark.parametrize("shape", [(3, 20, 1, 1), (1, 37, 3, 2), (2, 1, 1, 5)], ids=str)
def test_a_window_as_large_as_the_image(shape):
    data, weight = arrays(*shape, 21, shape[2:], 1)
    window = shape[2:], (1, 1), (1, 1), (0, 0)
    plain = expected(data, weight, window, 1)
    check_finished(OnePixel, data, weight, window, 1, plain, 1e-6)
    head = np.float32(RNG.normal(size=plain.shape))[:, :, None]
    found, right = [[np.full(a.shape, np.nan, np.float32) for a in (data, weight)] for _ in range(2)]
    window = tuple((0 if i == 3 else 1, *v) for i, v in enumerate(window))
    conv.BackwardData(window, 1)(head, weight[:, :, None], found[0][:, :, None])
    conv.backward_weight(head, data[:, :, None], window, 1, found[1][:, :, None])
    head, data, weight, *flat = (a.reshape(len(a), -1) for a in (head, data, weight, *right))
    fc.backward(head, data, weight, *flat, None)
    for one, other in zip(found, right, strict=True):
        np.testing.assert_array_equal(one, other)


WEIGHT_GRADIENTS = [
    (9, 9, 7, 9, 10, (3, 3), (1, 1), (1, 1)),
    (1, 16, 40, 61, 65, (3, 3), (1, 1), (1, 1)),
    (3, 8, 5, 40, 49, (1, 5), (1, 2), (2, 0)),
    (3, 17, 12, 11, 16, (4, 3), (2, 3), (3, 5)),
    (2, 8, 3, 2000, 8, (2, 2), (1, 1), (0, 1)),
    (40, 24, 7, 7, 100, (3, 3), (1, 1), (1, 1)),
    (1, 130, 11, 70, 33, (3, 3), (1, 1), (2, 0)),
    (3, 8, 1, 3, 1, (3, 3), (1, 1), (1, 2)),
    (5, 60, 6, 5, 17, (3, 3), (1, 1), (0, 0)),
]


@pytest.mark.parametrize("shape", WEIGHT_GRADIENTS, ids=str)
def test_the_gradient_of_the_weight(shape):
    batch, channels, height, width, filters, kernel, dilate, pad = shape
    data, weight = arrays(batch, channels, height, width, filters, kernel, 1)
    window = tuple((0 if i == 3 else 1, *v) for i, v in enumerate((kernel, (1, 1), dilate, pad)))
    head = np.float32(RNG.normal(size=expected(data, weight, (kernel, (1, 1), dilate, pad), 1).shape))
    out, right = np.full(weight[:, :, None].shape, np.nan, np.float32), np.empty(weight[:, :, None].shape)
    conv.backward_weight(head[:, :, None], data[:, :, None], window, 1, out)
    conv.backward_weight(np.float64(head)[:, :, None], np.float64(data)[:, :, None], window, 1, right)
    np.testing.assert_allclose(out, right, rtol=0, atol=1e-5 * np.abs(right).max())


def three_by_three(head, data):
    out = np.full((head.shape[1], data.shape[1], 3, 3), np.nan, np.float32)
    conv_weight_winograd.three_by_three(head, data, (1, 1), out)
    return out


def test_the_gradient_of_the_weight_is_the_same_however_channels_and_threads_are_divided(monkeypatch):
    head = np.float32(RNG.normal(size=(2, 21, 45, 39)))
    data = np.float32(RNG.normal(size=(2, 170, 45, 39)))
    right = three_by_three(head, data)
    for threads in (1, 2, numba.get_num_threads()):
        with use_threads(threads):
            np.testing.assert_array_equal(three_by_three(head, data), right)
    monkeypatch.setattr(conv_weight_winograd, "SUMS", 0)  # one panel of channels at a time
    np.testing.assert_array_equal(three_by_three(head, data), right)


def test_the_gradient_of_the_weight_passes_nan_on():
    head, data = np.float32(RNG.normal(size=(1, 20, 16, 16))), np.float32(RNG.normal(size=(1, 30, 16, 16)))
    right = three_by_three(head, data)
    data[0, 7, 5, 9] = np.nan
    out = three_by_three(head, data)
    assert np.isnan(out[:, 7]).all()
    np.testing.assert_array_equal(np.delete(out, 7, 1), np.delete(right, 7, 1))


@pytest.mark.parametrize("images", [(3, 64, 7, 7), (2, 260, 20, 45), (30, 16, 19, 40)], ids=str)
def test_the_number_of_threads_does_not_show(images):
    data, weight = arrays(*images, 24, (3, 3), 1)
    ones, zeros = np.ones(40, np.float32), np.zeros(40, np.float32)
    before = numba.get_num_threads()
    layer = layer_of(data, weight, THREE, 1, images[2:])
    for make in (conv_winograd.Winograd, conv_shifted.Shifted, conv_filters.ByFilters):
        results = []
        try:
            for threads in {1, before}:
                numba.set_num_threads(threads)
                out = np.empty((len(data), 24, *data.shape[2:]), np.float32)
                run_way(make(layer), data, weight, ones, zeros, conv.activation(), None, out)
                results.append(out)
        finally:
            numba.set_num_threads(before)
        np.testing.assert_array_equal(results[0], results[-1])


def test_winograd_sees_every_change_of_the_weight():
    data, weight = arrays(1, 8, 12, 12, 8, (3, 3), 1)
    ones, zeros, out = (np.full(shape, n, np.float32) for n, shape in ((1, 24), (0, 24), (0, (1, 8, 12, 12))))
    layer = layer_of(data, weight, THREE, 1, (12, 12))
    way = conv_winograd.Winograd(layer)
    run_way(way, data, weight, ones, zeros, conv.activation(), None, out)
    weight[7, 7, 2, 2] = np.nextafter(weight[7, 7, 2, 2], np.float32(9))
    weight[0, 3, 1, 1] *= -1
    run_way(way, data, weight, ones, zeros, conv.activation(), None, out)
    fresh = np.empty_like(out)
    run_way(conv_winograd.Winograd(layer), data, weight, ones, zeros, conv.activation(), None, fresh)
    np.testing.assert_array_equal(out, fresh)


@pytest.mark.parametrize("shape", [(300, 1000, 77), (49, 1700, 8), (24, 3, 1)], ids=str)
def test_times_transposed(shape):
    rows, terms, features = shape
    data, weight = np.float32(RNG.normal(size=(rows, terms))), np.float32(RNG.normal(size=(features, terms)))
    bias, out = np.float32(RNG.normal(size=features)), np.empty((rows, features), np.float32)
    times_transposed(data, weight, bias, out)
    wide = data.astype(np.float64) @ weight.T + bias
    np.testing.assert_allclose(out, wide, rtol=0, atol=3e-6 * np.abs(wide).max())


def test_times_transposed_sums_a_hundred_thousand_terms_as_exactly_as_blas_does():
    random = np.random.default_rng(5)
    data = np.float32(random.normal(size=(30, 100_352)).clip(0))
    weight = np.float32(random.normal(size=(8, 100_352)))
    out = np.empty((30, 8), np.float32)
    times_transposed(data, weight, 0, out)
    magnitude = data.astype(np.float64) @ np.abs(weight.T)
    error = np.abs(out - data.astype(np.float64) @ weight.T) / magnitude
    assert error.max() < 5e-8


# -- merged operators ----------------------------------------------------------------------------------------


def small_residual_net():
    """Two units with shortcuts; what follows each convolution is merged into it at inference."""
    x = mx.sym.Variable("data")
    for i, (filters, stride) in enumerate([(8, 1), (12, 2)]):
        name = f"unit{i}"
        y = mx.sym.Convolution(
            x,
            kernel=(3, 3),
            pad=(1, 1),
            stride=(stride, stride),
            num_filter=filters,
            no_bias=True,
            name=name + "_a",
        )
        y = mx.sym.BatchNorm(y, fix_gamma=i == 0, eps=2e-5, name=name + "_bn_a")
        y = mx.sym.Activation(y, act_type="relu", name=name + "_relu_a")
        y = mx.sym.Convolution(y, kernel=(3, 3), pad=(1, 1), num_filter=filters, name=name + "_b")
        y = mx.sym.BatchNorm(y, fix_gamma=False, name=name + "_bn_b")
        short = mx.sym.Convolution(
            x, kernel=(1, 1), stride=(stride, stride), num_filter=filters, name=name + "_short"
        )
        x = mx.sym.Activation(y + short, act_type="relu", name=name + "_relu")
    pre = mx.sym.BatchNorm(x, fix_gamma=False, name="pre_bn")
    return mx.sym.Activation(pre, act_type="relu", name="pre_relu")


def bound(net, grad_req, **shapes):
    executor = net.simple_bind(mx.cpu(), grad_req=grad_req, **shapes)
    rng = np.random.default_rng(2)
    for name, array in {**executor.arg_dict, **executor.aux_dict}.items():
        array[:] = np.float32(
            rng.normal(size=array.shape) * 0.3 + (1 if name.endswith(("var", "gamma")) else 0)
        )
    return executor


@pytest.mark.parametrize("size", [(2, 6, 9, 11), (1, 6, 40, 50)], ids=str)
def test_merged_operators_give_the_same_numbers(size):
    net = small_residual_net()
    merged, watched = bound(net, "null", data=size), bound(net, "null", data=size)
    seen = []
    watched.set_monitor_callback(lambda name, array: seen.append(name))
    plain = watched.forward(is_train=False)[0].asnumpy()
    np.testing.assert_allclose(merged.forward(is_train=False)[0].asnumpy(), plain, rtol=1e-4, atol=1e-5)
    assert len(seen) == 18
    assert len(merged._inference.program.forward) == 7


def test_merged_operators_see_new_parameters():
    net = small_residual_net()
    merged, fresh = bound(net, "null", data=(1, 6, 8, 8)), bound(net, "null", data=(1, 6, 8, 8))
    merged.forward(is_train=False)
    for executor in (merged, fresh):
        executor.aux_dict["unit0_bn_a_moving_mean"][:] = 0.5
        executor.arg_dict["unit1_bn_b_gamma"][:] = -1
        executor.arg_dict["unit0_b_weight"][:] = 0.25
    out = merged.forward(is_train=False)[0].asnumpy()
    np.testing.assert_array_equal(out, fresh.forward(is_train=False)[0].asnumpy())


def pre_activation_net(after):
    """Batch norm before convolutions, with and without ReLU, and shortcuts from before it.

    ``after``: an operator that reads what the ReLU gives, too, or None.
    """

    def pointwise(data, name, **how):
        return mx.sym.Convolution(data, kernel=(1, 1), num_filter=24, name=name, **how)

    x = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), pad=(1, 1), num_filter=24, name="first")
    y = mx.sym.Activation(mx.sym.BatchNorm(x, fix_gamma=False, name="bn"), act_type="relu", name="relu")
    total = pointwise(y, "one") + x
    normal = mx.sym.BatchNorm(total, name="other_bn")
    outputs = [total, pointwise(y, "two", stride=(2, 2), num_group=3), pointwise(normal, "three")]
    # With this stride, all ways that it may take on some machine normalise.
    outputs.append(mx.sym.Convolution(y, kernel=(3, 3), stride=(2, 1), pad=(1, 1), num_filter=9, name="four"))
    return mx.sym.Group([*outputs, *([after(y)] if after else [])])


@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize(("after", "steps"), [(None, 5), (mx.sym.tanh, 7)], ids=["alone", "with a reader"])
def test_batch_norm_is_merged_into_what_reads_it(after, steps, batch):
    """Where all that read it are convolutions in ways that normalise on the way in; NaN stays NaN."""
    net, size = pre_activation_net(after), (batch, 5, 51, 53)
    merged, watched = bound(net, "null", data=size), bound(net, "null", data=size)
    watched.set_monitor_callback(lambda name, array: None)
    for executor in (merged, watched):
        executor.arg_dict["data"][0, 0, 20, 30] = np.nan
    plain = [out.asnumpy() for out in watched.forward(is_train=False)]
    for out, single in zip(merged.forward(is_train=False), plain, strict=True):
        assert np.isnan(single).any()
        np.testing.assert_allclose(out.asnumpy(), single, rtol=1e-5, atol=1e-5)
    assert len(merged._inference.program.forward) == steps


def test_a_batch_norm_that_is_merged_sees_new_parameters():
    merged, fresh = (bound(pre_activation_net(None), "null", data=(1, 5, 51, 53)) for _ in range(2))
    merged.forward(is_train=False)
    for executor in (merged, fresh):
        executor.aux_dict["bn_moving_mean"][:] = 0.5
        executor.aux_dict["bn_moving_var"][:] = 2
        executor.arg_dict["bn_gamma"][:] = -1
    outs = [[out.asnumpy() for out in executor.forward(is_train=False)] for executor in (merged, fresh)]
    for out, expected in zip(*outs, strict=True):
        np.testing.assert_array_equal(out, expected)


def _prelu(shape):
    gamma = mx.sym.Variable("gamma", shape=shape)
    return lambda x: mx.sym.LeakyReLU(x, gamma, act_type="prelu", name="act")


#: Activations that a convolution does itself, and some that it does not.
ACTIVATIONS = {
    "relu": lambda x: mx.sym.relu(x),
    "relu6": lambda x: mx.sym.clip(x, 0, 6),
    "clip": lambda x: mx.sym.clip(x, -0.5, 0.75),
    "leaky": lambda x: mx.sym.LeakyReLU(x, act_type="leaky", slope=0.1),
    "steep": lambda x: mx.sym.LeakyReLU(x, act_type="leaky", slope=-2),
    "prelu": _prelu((8,)),
    "prelu of one": _prelu((1,)),
}
NOT_MERGED = {
    "prelu of images": _prelu((1, 8)),
    "empty clip": lambda x: mx.sym.clip(x, 1, -1),
    "elu": lambda x: mx.sym.LeakyReLU(x, act_type="elu", slope=0.1),
    "sigmoid": lambda x: mx.sym.Activation(x, act_type="sigmoid"),
}


@pytest.mark.parametrize("kind", [*ACTIVATIONS, *NOT_MERGED])
@pytest.mark.parametrize(("kernel", "groups"), [(1, 1), (3, 1), (3, 8), (5, 1)])
def test_activations_are_merged_exactly(kernel, groups, kind):
    """The same bits as a convolution and then the operator, whose input has NaN, infinities and zeros."""
    data = mx.sym.Variable("data")
    plain = mx.sym.Convolution(
        data, kernel=(kernel, kernel), pad=(1, 1), num_filter=8, num_group=groups, name="conv"
    )
    act = {**ACTIVATIONS, **NOT_MERGED}[kind]
    merged, apart = act(plain), mx.sym.Group([act(plain), plain])
    image = np.float32(np.random.default_rng(0).normal(size=(1, 8, 12, 40)))
    image[0, 0, 5, 5:9] = np.nan, np.inf, -np.inf, 1e38
    results = []
    for net in (merged, apart):
        executor = bound(net, "null", data=image.shape)
        results.append(executor.forward(is_train=False, data=image)[0].asnumpy())
        steps = len(executor._inference.program.forward)
        assert steps == (2 if net is apart or kind in NOT_MERGED else 1)
    assert np.isnan(results[0]).any()
    np.testing.assert_array_equal(*results)


def test_a_value_that_others_read_is_not_merged_away():
    conv_out = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    net = mx.sym.Group([mx.sym.Activation(conv_out, act_type="relu", name="relu"), conv_out])
    relu, raw = bound(net, "null", data=(1, 3, 6, 6)).forward(is_train=False)
    assert raw.asnumpy().min() < 0
    np.testing.assert_array_equal(relu.asnumpy(), np.maximum(raw.asnumpy(), 0))


def test_training_and_inference_alternate_on_one_executor():
    net = small_residual_net()
    both, only = bound(net, "write", data=(2, 6, 8, 8)), bound(net, "write", data=(2, 6, 8, 8))
    inference = bound(net, "null", data=(2, 6, 8, 8)).forward(is_train=False)[0].asnumpy()
    for _ in range(2):
        np.testing.assert_array_equal(both.forward(is_train=False)[0].asnumpy(), inference)
        for executor in (both, only):
            out = executor.forward(is_train=True)[0]
            executor.backward(mx.nd.ones(out.shape))
        for name, gradient in both.grad_dict.items():
            np.testing.assert_array_equal(gradient.asnumpy(), only.grad_dict[name].asnumpy(), err_msg=name)
        inference = both.forward(is_train=False)[0].asnumpy()


@pytest.mark.parametrize(
    ("size", "dilate", "kernel", "stride"),
    [
        ((6, 7), (6, 7), (3, 3), (1, 1)),
        ((5, 9), (7, 2), (3, 3), (1, 1)),
        ((9, 4), (4, 9), (3, 5), (2, 1)),
        ((1, 23), (3, 1), (2, 1), (2, 3)),  # one tap is left, and some results see nothing at all
    ],
)
def test_taps_that_see_no_pixel_are_left_out(size, dilate, kernel, stride):
    pad = tuple(d * (k // 2) for d, k in zip(dilate, kernel, strict=True))
    window = kernel, stride, dilate, pad
    data = RNG.standard_normal((2, 5, *size), dtype=np.float32)
    weight = RNG.standard_normal((9, 5, *kernel), dtype=np.float32)
    plain = expected(data, weight, window, 1)
    out = np.full(plain.shape, np.nan, np.float32)
    whole = tuple((0 if i == 3 else 1, *values) for i, values in enumerate(window))
    conv.Forward(whole, 1)(data[:, :, None], weight[:, :, None], None, out[:, :, None])
    np.testing.assert_allclose(out, plain, rtol=0, atol=2e-6 * np.abs(plain).max())


@pytest.mark.parametrize(("groups", "panels", "vectors"), [(1, 3, 8), (1, 1, 2), (3, 7, 20), (2, 2, 5)])
def test_each_worker_multiplies_as_many_vectors(groups, panels, vectors):
    tiles, widths = 28, [(p + 1) * vectors // panels - p * vectors // panels for p in range(panels)]
    for workers in (1, 2, 3, 5):
        first = deal(np.array(widths), np.ones(tiles, int), groups, workers)
        assert first[0] == 0
        assert first[-1] == groups * panels * tiles
        taken = [
            sum(widths[item // tiles % panels] for item in range(begin, end))
            for begin, end in itertools.pairwise(first)
        ]
        assert max(taken) - min(taken) <= 2 * max(widths)
