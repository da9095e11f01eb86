"""How the work of the ROI kernels is divided among threads."""

import itertools

import numpy as np
import pytest

from roiops.kernels.cpu.roi import items
from roiops.kernels.cpu.roi.addresses import Shapes


def _shapes(images, channels, size=20):
    return Shapes(images, channels, size, size, 0, 5, channels, 7, 7, 1, size * size, 1, 49)


def _image_at(rois, ignored):
    return np.cumsum([ignored, *rois])


@pytest.mark.parametrize("parts", [1, 2, 3, 16, 64])
@pytest.mark.parametrize(
    ("rois", "channels"), [([300], 16), ([400, 112], 256), ([0, 5, 0, 90], 33), ([0, 0], 7)]
)
def test_threads_have_equally_many_rois_and_all_of_them_once(rois, channels, parts):
    shapes, image_at = _shapes(len(rois), channels), _image_at(rois, ignored=3)
    blocks, done, shares = -(-channels // 16), [], []
    for part in range(parts):
        begin, end = items._work_of((part, parts, 0), shapes, image_at)
        shares.append(end - begin)
        while begin < end:
            number, (first, stop) = items._item_at(begin, end, shapes, image_at)
            done += itertools.product([number], range(first, stop))
            begin += stop - first
    assert done == [
        (image * blocks + block, place)
        for image in range(len(rois))
        for block in range(blocks)
        for place in range(image_at[image], image_at[image + 1])
    ]
    assert max(shares) - min(shares) <= 1


@pytest.mark.parametrize("parts", [1, 2, 3, 16, 64])
@pytest.mark.parametrize("rois", [[300], [400, 112], [0, 5, 0, 90], [0, 0], []])
def test_units_of_images_with_more_rois_are_shared_by_more_threads(rois, parts):
    units, shapes, image_at = 16, _shapes(len(rois), 256), _image_at(rois, ignored=1)
    ends = [items.first_unit(part, parts, units, shapes, image_at) for part in range(parts + 1)]
    assert (ends[0], ends[-1]) == (0, units * len(rois))
    assert ends == sorted(ends)
    more = 1 + 400 // (4 * 49)
    weights = np.repeat(rois, units) + more
    shares = [weights[a:b].sum() for a, b in itertools.pairwise(ends)]
    assert max(shares) <= weights.sum() / parts + max(weights, default=0)


def test_a_map_of_few_channels_keeps_several_threads_busy():
    busy = [items._work_of((part, 8, 0), _shapes(1, 16), _image_at([300], 0)) for part in range(8)]
    assert [end - begin for begin, end in busy] == [37, 38, 37, 38, 37, 38, 37, 38]
