"""Copies of arrays with any strides (kernels/cpu/tensor/copies.py)."""

import itertools

import numpy as np
import pytest

from roiops.kernels.cpu.tensor import copies


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32])
@pytest.mark.parametrize("source_axes", list(itertools.permutations(range(3))), ids=str)
@pytest.mark.parametrize("target_axes", [(0, 1, 2), (2, 0, 1)], ids=str)
def test_any_axes_and_gaps(dtype, source_axes, target_axes):
    values = np.random.default_rng(3).standard_normal((19, 53, 37)).astype(dtype)

    def placed(axes):
        """An array of the same shape whose axes lie in this order, with numbers between its rows."""
        sizes = [values.shape[axis] for axis in axes]
        whole = np.full((sizes[0], sizes[1], sizes[2] + 3), 7, dtype)
        return whole, whole[..., : sizes[2]].transpose(np.argsort(axes))

    _, source = placed(source_axes)
    whole, target = placed(target_axes)
    source[...] = values
    copies.copy(source, target)
    np.testing.assert_array_equal(target, values)
    assert (whole[..., -3:] == 7).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("size", [(2, 16, 1040), (1, 33, 1009)], ids=str)
def test_maps_with_the_channels_last_are_turned_by_a_kernel(dtype, size):
    pixels_first = np.random.default_rng(4).standard_normal(size).astype(dtype).transpose(0, 2, 1)
    dense = np.zeros(pixels_first.shape, dtype)
    copies.bind(pixels_first, dense)()
    np.testing.assert_array_equal(dense, pixels_first)
    back = np.zeros(size, dtype).transpose(0, 2, 1)
    copies.bind(dense, back)()
    np.testing.assert_array_equal(back, dense)


def test_overlapping_arrays_are_copied_as_by_numpy():
    whole = np.arange(400 * 200, dtype=np.float64).reshape(400, 200)
    expected = whole[:200].T.copy()
    copies.copy(whole[:200].T, whole[:200])
    np.testing.assert_array_equal(whole[:200], expected)
