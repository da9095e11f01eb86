"""The rules about boxes on their own, with numbers worked out by hand from their definitions.

Most lengths are eighths, so that every step of the hand calculation is exact in float32 too.
"""

import math

import numpy as np
import pytest

from roiops.kernels import geometry
from roiops.kernels.geometry import Axis, Grid
from roiops.kernels.rules import Pooling
from roiops.operators.roi.dialects import named

F, D = np.float32, np.float64


def axis_of(start, length, bins, ratio=0, extent=6, moved=None):
    return Axis(start, length, bins, ratio, extent, type(start)(0) if moved is None else moved)


def rules(name):
    return named()[name].rules


CAFFE, CHAINER, MMCV = (rules(f"ROIPooling/{name}") for name in ("mxnet", "chainer", "mmcv"))
ALIGN, ALIGNED = rules("ROIAlign/mmcv"), rules("ROIAlign/mmcv/aligned")
MAX_ALIGN = rules("ROIAlign/mxnet/max")
RFCN_POOL, RFCN_ALIGN = rules("PSROIPooling/mxnet"), rules("PSROIAlign/rfcn")
TORCH_PS, RELEASED_PS = rules("PSROIPooling/torchvision"), rules("PSROIPooling/torchvision/as_released")
CHAINER_PS = rules("PSROIPooling/chainer")
DEFORMABLE = rules("contrib.DeformablePSROIPooling")

# Start and length of the boxes 2.5 .. 12.5 and 10 .. 2 (reversed) at scale 1/2.
FRAMES = [
    (CAFFE, (1, 6), (5, 1)),  # rounds 1.25 and 6.25, then 5 and 1; at least 1
    (rules("ROIPooling/torchvision"), (1, 6), (5, 1)),
    (CHAINER, (1, 5), (5, 1)),  # the end is exclusive
    (TORCH_PS, (1, 5), (5, 1)),
    (MMCV, (1.25, 5.5), (5, -3.5)),  # up to 13.5 / 2, and to 3 / 2
    (RFCN_POOL, (1.5, 5.5), (5, 0.1)),  # rounds 2.5 to 3 and 12.5 to 13, then up to 14 / 2
    (CHAINER_PS, (1.25, 5), (5, 0.1)),
    (ALIGN, (1.25, 5), (5, 1)),
    (ALIGNED, (0.75, 5), (4.5, -4)),
    (rules("ROIAlign/chainer"), (1.25, 5), (5, 1)),
    (MAX_ALIGN, (1.25, 6), (5, -3)),
    (rules("contrib.ROIAlign"), (1.25, 5), (5, 1)),
    (rules("contrib.ROIAlign/position_sensitive/aligned"), (0.75, 5), (4.5, -4)),
    (RFCN_ALIGN, (1.25, 5.5), (5, 0.1)),
    (rules("PSROIAlign/torchvision"), (0.75, 5), (4.5, -4)),
    (rules("PSROIAlign/chainer"), (1.25, 5), (5, 0.1)),
    (DEFORMABLE, (1, 5.5), (4.5, 0.1)),
]


@pytest.mark.parametrize("dtype", [F, D])
@pytest.mark.parametrize(("row", "ordinary", "reversed_box"), FRAMES)
def test_frame(row, ordinary, reversed_box, dtype):
    for (low, high), (start, length) in (((2.5, 12.5), ordinary), ((10, 2), reversed_box)):
        found = geometry.frame(row, dtype(low), dtype(high), dtype(0.5))
        assert found == (dtype(start), dtype(length))


@pytest.mark.parametrize(
    ("row", "low", "high", "found"),
    [
        (CAFFE, -1, 5, (-1, 5)),  # -0.5 goes to -1 and 2.5 to 3
        (CAFFE, 1, 1, (1, 1)),
        (RFCN_POOL, -0.5, 2.5, (-0.5, 2.5)),  # to -1 and 3: -1 / 2 .. 4 / 2
        (RFCN_POOL, 0.49999997, 2, (0, 1.5)),  # just below a half goes to 0
    ],
)
def test_halves_round_away_from_zero(row, low, high, found):
    assert geometry.frame(row, F(low), F(high), F(0.5)) == found


@pytest.mark.parametrize("row", [row.rules for row in named().values()], ids=list(named()))
def test_a_frame_of_finite_coordinates_is_finite(row):
    for low, high in ((-3e38, 3e38), (3e38, -3e38), (3e38, 3e38)):
        assert all(map(math.isfinite, geometry.frame(row, F(low), F(high), F(1))))


def test_single_scale_is_stored_as_float32():
    assert geometry.scale_of(CAFFE, 0.1, D) == D(F(0.1)) != 0.1
    assert geometry.scale_of(ALIGN, 0.1, D) == 0.1


@pytest.mark.parametrize(
    ("row", "start", "length", "spans"),
    [
        # 1 + [0, 1.5), [1.5, 3), [3, 4.5), [4.5, 6), outwards to integers; the map ends at 6
        (CAFFE, 1, 6, [(1, 3), (2, 4), (4, 6), (5, 6)]),
        (TORCH_PS, 1, 6, [(1, 3), (2, 4), (4, 6), (5, 6)]),
        (RELEASED_PS, 1, 6, [(1, 3), (2, 4), (4, 5), (0, 0)]),  # and at 5 as released
        (CAFFE, -3, 4, [(0, 0), (0, 0), (0, 0), (0, 1)]),
        (CAFFE, 8, 4, [(0, 0)] * 4),
        # [1.25, 4), [4, 6.75) outwards
        (RFCN_POOL, 1.25, 5.5, [(1, 4), (4, 6)]),
        (MMCV, 1.25, 5.5, [(1, 4), (4, 6)]),
        (MMCV, 3, -2, [(0, 0), (0, 0)]),
        (RFCN_POOL, 2.5, 0.0625, [(2, 3), (2, 3)]),  # a fraction of a pixel is one pixel
    ],
)
def test_integer_bins(row, start, length, spans):
    for dtype in (F, D):
        axis = axis_of(dtype(start), dtype(length), len(spans))
        found = [geometry.bin_span(row, axis, i) for i in range(len(spans))]
        assert found == spans


def test_last_bin_of_57_pixels_in_7_depends_on_the_precision():
    """7 * float32(57 / 7) is greater than 57."""
    assert geometry.bin_span(CAFFE, axis_of(F(0), F(57), 7, extent=100), 6) == (48, 58)
    assert geometry.bin_span(CAFFE, axis_of(D(0), D(57), 7, extent=100), 6) == (48, 57)


@pytest.mark.parametrize(
    ("row", "start", "length", "i", "ratio", "moved", "positions"),
    [
        (ALIGN, 1, 4, 1, 2, 0, [3.5, 4.5]),  # centres of the halves of [3, 5)
        (ALIGN, 1, 4, 1, 0, 0, [3.5, 4.5]),  # two pixels long: two
        (ALIGN, 0.5, 3, 0, 0, 0, [0.875, 1.625]),  # 1.5 pixels long: two, of [0.5, 2)
        (ALIGNED, 1, 0, 0, 0, 0, []),
        (ALIGNED, 1, 0, 0, 2, 0, [1, 1]),
        (ALIGNED, 4, -4, 0, 2, 0, [3.5, 2.5]),  # mirrored
        (DEFORMABLE, 1, 4, 1, 2, 0, [3, 4]),  # left edges of the halves of [3, 5)
        (DEFORMABLE, 1, 4, 1, 2, 0.25, [3.25, 4.25]),
        (RFCN_ALIGN, 1, 6, 0, 2, 0, [2, 3]),  # the points that divide [1, 4) in three
        (RFCN_ALIGN, 0, 6, 1, 2, 0, [4, math.nan]),  # 5 is the clipped end of [3, 5)
        (RFCN_ALIGN, 1, 6, 1, 2, 0, [math.nan, math.nan]),  # of [4, 5): 5 and 6
        (MAX_ALIGN, 1.25, 6, 0, 0, 0, [1.25, 2.25, 3.25]),  # steps of one from 1.25, before 4.25
        (MAX_ALIGN, 1.25, 6, 1, 0, 0, [4.25, 5.25]),  # from 4.25, before the end of the map
        (MAX_ALIGN, -2.5, 6, 0, 0, 0, [0]),  # [-2.5, 0.5) begins at 0
        (MAX_ALIGN, 3, -3, 0, 0, 0, []),
    ],
)
def test_positions_of_samples(row, start, length, i, ratio, moved, positions):
    """Two bins on a map of six pixels."""
    for dtype in (F, D):
        start, length, moved = dtype(start), dtype(length), dtype(moved)
        axis = axis_of(start, length, 2, ratio, moved=moved)
        first, stop, count = geometry.bin_grid(row, axis, i)
        assert count == len(positions)
        found = [geometry.position(row, axis, i, k, count) for k in range(first, stop)]
        np.testing.assert_array_equal(found, positions)


def test_samples_that_need_no_visit_are_invalid():
    """A thousand samples a pixel apart, from -499.5 on; the map has six pixels."""
    first, stop, count = geometry.bin_grid(ALIGN, axis_of(F(-500), F(1000), 1), 0)
    assert count == 1000
    # -0.5 is sample 499, 5.5 is sample 505
    assert first <= 499 < 505 < stop
    assert stop - first < 30
    # Displaced by infinity: none.
    assert geometry.bin_grid(DEFORMABLE, axis_of(F(0), F(4), 1, 2, moved=F(np.inf)), 0)[:2] == (0, 0)


@pytest.mark.parametrize(
    ("row", "extent", "p", "expected"),
    [
        (CAFFE, 6, 3, {3: 1}),
        (ALIGN, 6, 2.25, {2: 0.75, 3: 0.25}),
        (ALIGN, 6, 2, {2: 1}),
        (ALIGN, 6, -1, {0: 1}),
        (ALIGN, 6, -1.0001, None),
        (ALIGN, 6, 5.5, {5: 1}),
        (ALIGN, 6, 6, {5: 1}),
        (ALIGN, 6, 6.0001, None),
        (ALIGN, 1, 0.5, {0: 1}),
        (ALIGN, 0, 0, None),
        (ALIGN, 6, math.nan, None),
        (DEFORMABLE, 6, -0.5, {0: 1}),
        (DEFORMABLE, 6, -0.5001, None),
        (DEFORMABLE, 6, 5.5, {5: 1}),
        (DEFORMABLE, 6, 5.5001, None),
        (DEFORMABLE, 6, 4.25, {4: 0.75, 5: 0.25}),
        (MAX_ALIGN, 6, -0.25, {0: 0.75}),  # the pixel before the first counts as zero
        (MAX_ALIGN, 6, 5.75, {5: 0.25}),
        (MAX_ALIGN, 6, 7, {}),
        (MAX_ALIGN, 6, math.nan, None),
    ],
)
def test_border(row, extent, p, expected):
    """What a position reads; None where it is invalid."""
    for dtype in (F, D):
        valid, pixel0, weight0, pixel1, weight1 = geometry.taps(row, dtype(p), extent)
        if expected is None:
            assert not valid
        else:
            assert valid
            pairs = ((pixel0, weight0), (pixel1, weight1))
            assert {pixel: weight for pixel, weight in pairs if weight} == expected


def mean(row, start, length, bins, i, ratio, extent, function=geometry.bin_taps, moved=0):
    pixel, weight = np.full(32, -1), np.zeros(32, F)
    axis = axis_of(F(start), F(length), bins, ratio, extent, F(moved))
    count = function(row, axis, i, pixel, weight, 0)
    assert list(pixel[:count]) == sorted(set(pixel[:count]))
    assert count <= geometry.taps_bound(row, axis)
    return dict(zip(pixel[:count].tolist(), weight[:count].tolist(), strict=True))


@pytest.mark.parametrize(
    ("row", "start", "length", "bins", "i", "ratio", "expected"),
    [
        (ALIGN, 0, 4, 1, 0, 2, {1: 0.5, 3: 0.5}),
        # At 0.5, 1.5, 2.5, 3.5, a quarter each: neighbours share pixels.
        (ALIGN, 0, 4, 1, 0, 0, {0: 0.125, 1: 0.25, 2: 0.25, 3: 0.25, 4: 0.125}),
        (ALIGN, -4, 4, 1, 0, 2, {0: 0.5}),  # at -3 and -1: the invalid one counts
        (DEFORMABLE, -2, 4, 1, 0, 2, {0: 1}),  # at -2 and 0: here it does not
        (DEFORMABLE, -9, 4, 1, 0, 2, {}),
        (RFCN_ALIGN, 0, 6, 2, 1, 2, {4: 0.5}),  # the dropped one counts
        (RFCN_POOL, 1, 2, 1, 0, 0, {1: 0.5, 2: 0.5}),
        (ALIGNED, 4, -4, 1, 0, 2, {1: 0.5, 3: 0.5}),  # mirrored, in ascending order all the same
    ],
)
def test_means(row, start, length, bins, i, ratio, expected):
    assert mean(row, start, length, bins, i, ratio, 6) == expected


@pytest.mark.parametrize(
    ("start", "moved", "expected"),
    [
        (0.25, 0, {0: -0.5, 1: 0.5, 2: -0.5, 3: 0.5}),  # at 0.25 and 2.25
        (0, 0.25, {0: -0.5, 1: 0.5, 2: -0.5, 3: 0.5}),
        (0, 0, {}),  # at whole pixels
        (-0.25, 0, {1: -0.5, 2: 0.5}),  # at -0.25, clamped, and 1.75
        (-1.25, 0, {0: -1, 1: 1}),  # at -1.25, invalid, and 0.75
    ],
)
def test_slopes(start, moved, expected):
    assert mean(DEFORMABLE, start, 4, 1, 0, 2, 6, geometry.bin_slopes, moved) == expected


def test_channels():
    assert geometry.channel_groups(Pooling(ALIGN, 1.0, groups=7), 2, 3) == (1, 1)
    assert geometry.channel_groups(Pooling(RFCN_POOL, 1.0, groups=7), 2, 3) == (7, 7)
    assert geometry.channel_groups(Pooling(TORCH_PS, 1.0, groups=7), 2, 3) == (2, 3)
    assert geometry.channel_of(5, 1, 0, 2, 2) == 22  # (5 * 2 + 1) * 2 + 0
    assert geometry.channel_of(4, 1, 2, 2, 3) == 29  # (4 * 2 + 1) * 3 + 2
    assert geometry.channel_of(9, 0, 0, 1, 1) == 9
    assert [geometry.group_of(i, 3, 2) for i in range(3)] == [0, 0, 1]
    assert [geometry.bins_of(group, 3, 2) for group in range(2)] == [(0, 2), (2, 3)]
    # 23 bins in 23 groups: bin 7 has group 7, where float32 gives 6
    assert geometry.group_of(7, 23, 23) == 7
    assert geometry.bins_of(7, 23, 23) == (7, 8)


@pytest.mark.parametrize(
    ("index", "image"),
    [(0, 0), (1, 1), (1.9, 1), (-0.5, 0), (-1, -1), (2, -1), (math.nan, -1), (math.inf, -1), (1e30, -1)],
)
def test_image_of_a_box(index, image):
    assert geometry.image_of(np.array([[index, 0, 0, 4, 4]], F), 0, 2) == image


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_boxes_that_are_not_finite_are_ignored(bad):
    for column in range(1, 5):
        rois = np.array([[0, 0, 0, 4, 4]], F)
        rois[0, column] = bad
        assert geometry.image_of(rois, 0, 2) == -1


def test_numbers_of_samples():
    assert geometry.flat_sample(3, 2, Grid(0, 5, 5), Grid(0, 7, 7)) == 23
    assert geometry.unflat_sample(23, Grid(0, 5, 5), Grid(0, 7, 7)) == (3, 2)
    # A grid of 2**62 samples, of which five a row from (9, 18) on are visited: one row and two further.
    tall, wide = Grid(9, 20, 2**31), Grid(18, 23, 2**31)
    assert geometry.flat_sample(10, 20, tall, wide) == 7
    assert geometry.unflat_sample(7, tall, wide) == (10, 20)
    assert geometry.flat_sample(2**40, 0, Grid(0, 2**41, 2**41), Grid(0, 2**20, 2**31)) == -1


def test_displacements():
    assert geometry.moved_by(D(0.5), D(0.25), D(6)) == 0.75


def test_turned_boxes():
    turned = rules("contrib.RROIAlign")
    assert geometry.turned_frame(turned, F(5), F(6), F(0.5)) == (2.5, -1.5, 3)
    assert geometry.turned_frame(turned, F(5), F(1), F(0.5)) == (2.5, -0.5, 1)  # at least one pixel long
    # A quarter turn counter-clockwise takes "right" to "up", where y is less.
    cosine, sine = geometry.turn(turned, D(90))
    setting = geometry.Setting(D(1), 1, 4, 6, 1, 1, 1, 1)
    box = geometry.turned(turned, np.array([[0, 10, 20, 4, 2, 90]], D), 0, setting)
    assert (box.cosine, box.sine) == (cosine, sine)
    np.testing.assert_allclose(geometry.turned_position(box, D(0), D(2)), (18, 10), atol=1e-12)
    np.testing.assert_allclose(geometry.turned_position(box, D(3), D(0)), (20, 13), atol=1e-12)
    # A map of 4 rows and 6 columns counts from -1 to 4 and to 6; turned by 90 degrees, v runs along x.
    reach = geometry.turned_reach(cosine, sine, D(2), D(1), 4, 6)
    np.testing.assert_allclose(reach, (-3, 4, -3, 2), atol=1e-12)
