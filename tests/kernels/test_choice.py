"""The choice of a way is arithmetic on numbers: it can be asked for any machine, and overruled."""

import itertools

import numpy as np
import pytest

import roiops as mx
from roiops.kernels.cpu.conv import convolution, winograd
from roiops.kernels.cpu.conv.dilated import Dilated
from roiops.kernels.cpu.conv.way import Layer
from roiops.kernels.cpu.product import machine as at_hand
from roiops.kernels.cpu.product.machine import HERE, Machine

AVX512 = Machine(16, 32, 1 << 20, 32 << 20, units=1)
TWO_UNITS = Machine(16, 32, 512 << 10, 32 << 20)
AVX2 = Machine(8, 16, 512 << 10, 32 << 20)
SSE = Machine(4, 16, 256 << 10, 8 << 20)


def layer(channels=64, size=28, filters=64, kernel=3, stride=1, dilate=1, groups=1, batch=1):
    pad = dilate * (kernel // 2)
    out = (size + 2 * pad - dilate * (kernel - 1) - 1) // stride + 1
    return Layer(
        batch, channels, filters, groups, *((n, n) for n in (size, out, kernel, stride, dilate, pad))
    )


@pytest.mark.parametrize("machine", [AVX512, AVX2, SSE, HERE], ids=str)
def test_large_3x3_layers_take_winograds_way_and_channels_of_their_own_depthwise(machine):
    assert convolution.choose(layer(), machine).name == "winograd"
    assert convolution.choose(layer(groups=64), machine).name == "depthwise"
    assert convolution.choose(layer(dilate=2, channels=256, filters=256), machine).name == "dilated"
    assert convolution.choose(
        layer(size=7, kernel=7)._replace(out_size=(1, 1), pad=(0, 0)), machine
    ).name == ("one_pixel")


@pytest.mark.parametrize(
    ("machine", "shape", "fastest"),
    [
        (AVX512, {"channels": 16, "size": 1, "filters": 64, "kernel": 1, "batch": 3}, "by_filters"),
        (AVX512, {"channels": 256, "size": 1, "filters": 256, "kernel": 1}, "one_pixel"),
        (AVX2, {"channels": 256, "size": 35, "filters": 64, "kernel": 1}, "pointwise"),
        (AVX2, {"channels": 512, "size": 13, "filters": 64, "kernel": 1}, "pointwise"),
        (AVX2, {"channels": 64, "size": 30, "filters": 8, "kernel": 1}, "pointwise"),
        (AVX2, {"channels": 512, "size": 7, "filters": 512}, "by_filters"),
        (AVX2, {"channels": 64, "size": 112, "filters": 64, "stride": 2}, "by_filters"),
        (AVX2, {"channels": 16, "size": 112, "filters": 32, "stride": 2}, "by_filters"),
        (AVX2, {"channels": 3, "size": 224, "filters": 16, "stride": 2}, "by_filters"),
        (AVX2, {"channels": 32, "size": 28, "filters": 32}, "winograd"),
        (AVX2, {"channels": 18, "size": 56, "filters": 18}, "winograd"),
        (TWO_UNITS, {"channels": 24, "size": 56, "filters": 24}, "winograd"),
        (AVX512, {"channels": 72, "size": 56, "filters": 12, "kernel": 1}, "pointwise"),
        (AVX512, {"channels": 512, "size": 7, "filters": 2048, "kernel": 1}, "by_filters"),
        (AVX512, {"channels": 256, "size": 3, "filters": 256}, "by_filters"),
        (AVX512, {"channels": 512, "size": 4, "filters": 84}, "by_filters"),
        (TWO_UNITS, {"channels": 256, "size": 56, "filters": 64, "kernel": 1}, "pointwise"),
        (TWO_UNITS, {"channels": 256, "size": 56, "filters": 512, "kernel": 1, "stride": 2}, "pointwise"),
        (TWO_UNITS, {"channels": 512, "size": 14, "filters": 128, "kernel": 1, "stride": 2}, "by_filters"),
        (TWO_UNITS, {"channels": 24, "size": 14, "filters": 128}, "by_filters"),
    ],
    ids=str,
)
def test_layers_take_the_way_that_was_more_than_a_tenth_faster_when_measured(machine, shape, fastest):
    """Of ``benchmarks/convolution.py`` on an AMD EPYC (Zen 4), with AVX-512 and held to AVX2.

    Those of two units for vectors of 16 were measured on an Intel Xeon (Emerald Rapids), so
    were the 3x3 layers that take Winograd's way, in chains of six equal ones.
    """
    assert convolution.choose(layer(**shape), machine).name == fastest


@pytest.mark.parametrize(
    ("name", "lanes", "units"),
    [("znver4", 16, 1), ("znver5", 16, 2), ("emeraldrapids", 16, 2), ("znver4", 8, 2), ("tigerlake", 16, 1)],
)
def test_a_processor_that_halves_vectors_of_16_has_one_unit_for_them(monkeypatch, name, lanes, units):
    monkeypatch.setattr(at_hand, "MACHINE_LANES", lanes)
    monkeypatch.setattr(at_hand.numba.config, "CPU_NAME", name)
    assert at_hand._here().units == units


@pytest.mark.parametrize(("told", "counted"), [(256, 256), (1024, 1024), (2048, 512)])
def test_blocks_fill_a_part_of_a_large_second_cache(monkeypatch, told, counted):
    monkeypatch.setattr(at_hand, "SECOND_CACHE", told << 10)
    assert at_hand._here().block_cache == counted << 10


def test_taps_that_see_only_zeros_are_left_out_where_copying_the_others_is_worth_it():
    """A result of one pixel reads each number of the weight once; to copy a part of it takes longer."""

    def seen(channels, size, filters, stride, dilate):
        window = ((1, 3, 3), (1, stride, stride), (1, dilate, dilate), (0, dilate, dilate))
        out = (1, filters, 1, *((size - 1) // stride + 1,) * 2)
        shapes = (1, channels, 1, size, size), (filters, channels, 1, 3, 3), out
        return convolution._layer(window, 1, *shapes)[1].kernel

    assert seen(256, 2, 256, stride=2, dilate=1) == (3, 3)
    assert seen(64, 12, 32, stride=1, dilate=12) == (1, 1)


def test_every_way_suits_some_layer_and_costs_something_finite():
    layers = [layer(), layer(kernel=1), layer(dilate=3), layer(groups=64), layer(size=5, stride=2)]
    layers.append(layer(size=1, kernel=1))
    found = [convolution.costs(each, machine) for each in layers for machine in (AVX512, AVX2, SSE)]
    assert set().union(*found) == set(convolution.WAYS)
    assert all(cost < 1e12 for costs in found for cost in costs.values())


def test_a_normalisation_before_the_layer_counts_where_the_way_cannot_do_it_on_the_way_in():
    plain, normalised = (convolution.costs(layer(), AVX2, normalised=flag) for flag in (False, True))
    for way in plain:
        assert (normalised[way] > plain[way]) == (not way.takes_prologue(layer()))


def test_winograd_takes_no_single_channel():
    """Of which a worker would write into the filters of another: now and then, results were wrong."""
    assert winograd.Winograd.suits(layer(channels=2), HERE)
    assert not winograd.Winograd.suits(layer(channels=1, filters=32), HERE)
    assert not winograd.Winograd.suits(layer(channels=4, filters=64, groups=4), HERE)


def test_winograd_divides_channels_alike_for_any_number_of_workers():
    """Sums of parts are rounded apart, so that results would depend on the number of threads."""
    for machine, channels, size in itertools.product((AVX512, AVX2, SSE), (64, 260, 700, 2000), (8, 20, 60)):
        plans = [
            winograd.Winograd.plan(layer(channels, size), machine._replace(workers=workers))
            for workers in (1, 2, 5, 16)
        ]
        assert all(plan.parts == plans[0].parts for plan in plans), (machine, channels, size)


def test_dilated_layers_of_one_channel_in_a_group_are_not_winograds():
    assert not Dilated.suits(layer(channels=4, groups=4, dilate=2), AVX512)
    assert Dilated.suits(layer(channels=8, groups=4, dilate=2), AVX512)


def test_a_way_can_be_forced(monkeypatch):
    for way in ("shifted", "by_filters", "winograd"):
        monkeypatch.setenv("ROIOPS_WAY", way)
        assert convolution.choose(layer()).name == way
        # What it cannot compute takes the cheapest way as ever.
        expected = "by_filters" if way == "by_filters" else "pointwise"
        assert convolution.choose(layer(size=56, kernel=1), AVX2).name == expected


def test_of_several_ways_the_first_that_suits_is_taken(monkeypatch):
    monkeypatch.setenv("ROIOPS_WAY", "lanes,winograd,by_filters")
    assert convolution.choose(layer()).name == "winograd"
    assert convolution.choose(layer(kernel=5)).name == "by_filters"


def test_a_way_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setenv("ROIOPS_WAY", "wingorad")
    data = mx.nd.array(np.ones((1, 2, 5, 5)))
    with pytest.raises(mx.MXNetError, match=r"ROIOPS_WAY must be one of .*depthwise, .*, got 'wingorad'"):
        mx.nd.Convolution(data, mx.nd.array(np.ones((3, 2, 3, 3))), no_bias=True, kernel=(3, 3), num_filter=3)


@pytest.mark.parametrize("workers", [2, 3, 5, 8, 16, 64])
@pytest.mark.parametrize(
    "shape",
    [(64, 56, 64), (32, 112, 64), (128, 56, 32), (64, 300, 64), (256, 14, 256), (18, 56, 18), (1024, 32, 84)],
    ids=str,
)
def test_workers_of_winograds_way_have_nearly_as_much_to_do(shape, workers):
    """Each multiplies as many vectors as the others, but for one product of a row tile and a panel."""
    channels, size, filters = shape
    machine, made = AVX512._replace(workers=workers), layer(channels, size, filters)
    plan = winograd.Winograd.plan(made, machine)
    vectors, row_tiles = -(-winograd.count_tiles(made) // machine.lanes), -(-filters // machine.rows)
    of_panels = np.diff(np.arange(plan.panels + 1) * vectors // plan.panels)
    if plan.alone:
        ends = np.arange(workers + 1) * plan.panels // workers
        shares = np.diff(np.append(0, np.cumsum(of_panels))[ends])
        assert shares.max() <= 1.15 * shares.mean()  # what they would fetch from each other takes longer
        return
    for begin in range(0, plan.panels, plan.together):
        some = of_panels[begin : begin + plan.together]
        items, ends = np.tile(some, row_tiles), winograd._deal_row_tiles(row_tiles, len(some), workers)
        shares = np.diff(np.append(0, np.cumsum(items))[ends])
        assert ends[0] == 0
        assert ends[-1] == len(items)
        assert shares.max() <= 1.05 * shares.mean() + items.max()


@pytest.mark.parametrize(("channels", "panels", "workers"), [(64, 5, 16), (3, 4, 8), (32, 6, 64), (48, 1, 5)])
def test_workers_of_winograds_way_transform_each_channel_once(channels, panels, workers):
    ends = winograd._deal_channels(channels, panels, workers)
    assert ends.shape == (panels, workers + 1)
    assert (ends[:, 0] == 0).all()
    assert (ends[:, -1] == channels).all()
    assert (np.diff(ends) >= 0).all()
    shares = np.diff(ends).sum(axis=0)
    assert shares.max() <= 1.05 * shares.mean() + 1
