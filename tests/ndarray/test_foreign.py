"""Arrays of other libraries: a made-up one that has nothing but DLPack stands for PyTorch, CuPy and JAX."""

import sys
import types

import numpy as np
import pytest

from roiops import nd
from roiops.errors import DTypeError, MXNetError


class Tensor:
    """An array of the library ``made_up``."""

    __module__ = "made_up.arrays"

    def __init__(self, array):
        self.array = np.asarray(array)

    def __dlpack__(self, **options):
        return self.array.__dlpack__(**options)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


@pytest.fixture(autouse=True)
def library(monkeypatch):
    made_up = types.ModuleType("made_up")
    made_up.from_dlpack = lambda source: Tensor(np.from_dlpack(source))
    monkeypatch.setitem(sys.modules, "made_up", made_up)


DATA = np.arange(72, dtype=np.float32).reshape(1, 2, 6, 6)
ROIS = np.float32([[0, 1, 1, 4, 4], [0, 0, 2, 5, 5]])
PARAMS = {"pooled_size": (2, 2), "spatial_scale": 1.0}
EXPECTED = nd.ROIAlign(DATA, ROIS, **PARAMS).asnumpy()


def test_an_operator_gives_back_the_kind_it_got():
    out = nd.ROIAlign(Tensor(DATA), Tensor(ROIS), **PARAMS)
    assert type(out) is Tensor
    np.testing.assert_array_equal(out.array, EXPECTED)
    assert type(nd.ROIAlign(Tensor(DATA), ROIS, **PARAMS)) is Tensor
    assert type(nd.ROIAlign(DATA, Tensor(ROIS), **PARAMS)) is Tensor
    parts = nd.split(Tensor(DATA), num_outputs=2, axis=1)
    assert [type(part) for part in parts] == [Tensor, Tensor]


def test_an_ndarray_among_the_inputs_makes_ndarrays():
    assert type(nd.ROIAlign(nd.array(DATA), Tensor(ROIS), **PARAMS)) is nd.NDArray
    assert type(nd.ROIAlign(DATA, ROIS, **PARAMS)) is nd.NDArray
    assert type(nd.array(DATA) + Tensor(DATA)) is nd.NDArray


def test_functions_on_two_arrays():
    total = nd.add(Tensor(DATA), Tensor(DATA))
    assert type(total) is Tensor
    np.testing.assert_array_equal(total.array, 2 * DATA)
    assert type(nd.add(Tensor(DATA), 1)) is Tensor


def test_a_library_that_takes_nothing_gets_ndarrays():
    class Own:  # not derived from Tensor, whose library does
        __module__ = "no_such_library"
        __init__, __dlpack__, __dlpack_device__ = Tensor.__init__, Tensor.__dlpack__, Tensor.__dlpack_device__

    assert type(nd.exp(Own(DATA))) is nd.NDArray


def test_the_array_api_s_namespace_comes_first():
    class Namespaced(Tensor):
        def __array_namespace__(self):
            return types.SimpleNamespace(from_dlpack=lambda source: ("namespaced", np.from_dlpack(source)))

    kind, out = nd.exp(Namespaced(np.zeros(2)))
    assert kind == "namespaced"
    assert out.tolist() == [1, 1]


def test_out_of_another_library_is_written_in_place():
    target = Tensor(np.full_like(EXPECTED, 9))
    for data in (Tensor(DATA), DATA, nd.array(DATA)):
        target.array[:] = 9
        assert nd.ROIAlign(data, ROIS, **PARAMS, out=target) is target
        np.testing.assert_array_equal(target.array, EXPECTED)


def test_out_that_may_not_be_written():
    target = np.full_like(EXPECTED, 9)
    target.flags.writeable = False
    with pytest.raises(MXNetError, match=r"ROIAlign: out is read-only"):
        nd.ROIAlign(DATA, ROIS, **PARAMS, out=target)
    assert (target == 9).all()


def test_memory_is_shared_and_outlives_the_call():
    source = np.zeros(1000)
    out = nd.exp(Tensor(source))
    del source
    assert (out.array == 1).all()


def test_bfloat16_on_the_cpu_is_refused_by_name():
    class Coarse(Tensor):
        dtype = "made_up.bfloat16"

    with pytest.raises(
        DTypeError, match=r"ROIAlign: data is bfloat16, which NumPy has not; give float32 or float16"
    ):
        nd.ROIAlign(Coarse(DATA), ROIS, **PARAMS)
