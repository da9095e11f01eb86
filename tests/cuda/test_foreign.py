"""Another library's arrays on the (simulated) GPU: streams, bfloat16, strides, and the kind given back."""

import sys
import types

import numpy as np
import pytest
from calls import bits_of, from_bits

import roiops as mx
from roiops.dtypes import BFLOAT16
from roiops.errors import DTypeError, MXNetError
from roiops.kernels.cuda import dlpack, runtime

DATA = np.random.default_rng(2).standard_normal((2, 4, 6, 6)).astype(np.float32)
ROIS = np.float32([[0, 1, 1, 4, 4], [1, 0, 2, 5, 5]])
PARAMS = {"pooled_size": (2, 2), "spatial_scale": 1.0, "sampling_ratio": 2}


class Tensor:
    """An array of the library ``made_up``, on its GPU 0. It may be of bfloat16, which ``array`` has as bits."""

    __module__ = "made_up"
    device = "gpu:0"
    streams = []

    def __init__(self, array, bfloat16=False):
        self.array, self.bfloat16 = array, bfloat16

    def __dlpack__(self, *, stream, **options):
        Tensor.streams.append(stream)
        capsule = self.array.__dlpack__(**options)
        if self.bfloat16:
            dlpack.label_bfloat16(capsule)
        return capsule

    def __dlpack_device__(self):
        return 2, 0


def take(source):
    memory = dlpack.read(source.__dlpack__())
    return Tensor(runtime._over(memory.interface, memory.owner), memory.dtype == BFLOAT16)


@pytest.fixture(autouse=True)
def library(monkeypatch):
    made_up = types.ModuleType("made_up")
    made_up.from_dlpack = take
    made_up.cuda = types.SimpleNamespace(
        current_stream=lambda device: types.SimpleNamespace(cuda_stream={"gpu:0": 77}[device])
    )
    monkeypatch.setitem(sys.modules, "made_up", made_up)
    Tensor.streams.clear()
    return made_up


def on_the_gpu(array):
    return mx.nd.array(array, ctx=mx.gpu(0))


def align(data, rois=ROIS, **more):
    return mx.nd.ROIAlign(data, rois, **PARAMS, **more)


EXPECTED = mx.nd.ROIAlign(DATA, ROIS, **PARAMS).asnumpy()


def test_the_kind_comes_back():
    out = align(Tensor(DATA), Tensor(ROIS))
    assert type(out) is Tensor
    np.testing.assert_allclose(out.array, EXPECTED, rtol=1e-6, atol=1e-6)


def test_an_ndarray_comes_back_for_an_ndarray_and_from_no_library(library):
    assert align(on_the_gpu(DATA), Tensor(ROIS)).context == mx.gpu(0)
    del library.from_dlpack
    assert align(Tensor(DATA), Tensor(ROIS)).context == mx.gpu(0)


def test_work_is_on_the_stream_of_the_caller(library, monkeypatch):
    queued = []
    launch = runtime.launch
    monkeypatch.setattr(
        "roiops.kernels.cuda.roi.average.launch",
        lambda *args: (queued.append(runtime.stream_pointer()), launch(*args)),
    )
    align(Tensor(DATA), Tensor(ROIS))
    assert queued == [77]
    assert Tensor.streams == [77, 77]
    assert runtime.stream_pointer() == 0
    del library.cuda  # it does not say
    Tensor.streams.clear()
    align(Tensor(DATA), Tensor(ROIS))
    assert Tensor.streams == [1, 1]


def test_memory_is_of_the_library_of_the_caller(library, monkeypatch):
    made = []

    def new_empty(self, count, dtype):
        made.append(np.empty(count, dtype))
        return types.SimpleNamespace(data_ptr=lambda array=made[-1]: array.ctypes.data, memory=made[-1])

    library.uint8 = np.uint8
    monkeypatch.setattr(Tensor, "new_empty", new_empty, raising=False)
    out = align(Tensor(DATA), Tensor(ROIS))
    assert any(np.may_share_memory(out.array, each) for each in made)
    np.testing.assert_allclose(out.array, EXPECTED, rtol=1e-6, atol=1e-6)
    made.clear()
    runtime.empty((3,), np.float32)  # which no call of that library asks for
    assert not made


def test_the_stream_is_left_after_an_error():
    with pytest.raises(MXNetError):
        align(Tensor(DATA), Tensor(ROIS[0]))
    assert runtime.stream_pointer() == 0


def test_out_is_written_in_place():
    target = Tensor(np.zeros_like(EXPECTED))
    assert align(on_the_gpu(DATA), on_the_gpu(ROIS), out=target) is target
    np.testing.assert_allclose(target.array, EXPECTED, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("mode", ["avg", "max"])
def test_bfloat16(mode):
    bits = bits_of(DATA)
    expected = align(on_the_gpu(from_bits(bits)), on_the_gpu(ROIS), mode=mode).asnumpy()
    out = align(Tensor(bits, bfloat16=True), Tensor(ROIS), mode=mode)
    assert (type(out), out.bfloat16) == (Tensor, True)
    np.testing.assert_array_equal(out.array, bits_of(expected))
    target = Tensor(np.zeros_like(bits_of(EXPECTED)), bfloat16=True)
    align(Tensor(bits, bfloat16=True), Tensor(ROIS), mode=mode, out=target)
    np.testing.assert_array_equal(target.array, bits_of(expected))


def test_bfloat16_maps_of_a_pyramid():
    bits, half = bits_of(DATA), bits_of(DATA[:, :, ::2, ::2].copy())
    params = {
        "pooled_size": (2, 2),
        "spatial_scales": (1.0, 0.5),
        "canonical_size": 4.0,
        "canonical_level": 0,
    }
    wide = [on_the_gpu(from_bits(each)) for each in (bits, half)]
    expected = mx.nd.MultiScaleROIAlign(*wide, on_the_gpu(ROIS), **params).asnumpy()
    narrow = [Tensor(each, bfloat16=True) for each in (bits, half)]
    out = mx.nd.MultiScaleROIAlign(*narrow, Tensor(ROIS), **params)
    assert (type(out), out.bfloat16) == (Tensor, True)
    np.testing.assert_array_equal(out.array, bits_of(expected))
    with pytest.raises(
        DTypeError, match=r"MultiScaleROIAlign: data1 must be .*bfloat16.* like the other maps"
    ):
        mx.nd.MultiScaleROIAlign(narrow[0], Tensor(from_bits(half)), Tensor(ROIS), **params)


def test_bfloat16_where_it_cannot_be():
    bits = Tensor(bits_of(DATA), bfloat16=True)
    with pytest.raises(
        DTypeError, match=r"ROIAlign: one of out and the data is bfloat16, and the other is not"
    ):
        align(bits, Tensor(ROIS), out=Tensor(np.zeros(EXPECTED.shape, np.uint16)))
    with pytest.raises(
        DTypeError, match=r"ROIAlign: rois must not be bfloat16, too coarse for it; give float32"
    ):
        align(Tensor(DATA), Tensor(bits_of(ROIS), bfloat16=True))
    with pytest.raises(
        TypeError, match=r"from_dlpack: NumPy has no bfloat16, so no NDArray has; give float16"
    ):
        mx.nd.from_dlpack(bits)
    with pytest.raises(DTypeError, match=r"data must be float16, float32 or float64, got uint16"):
        align(Tensor(bits_of(DATA)), Tensor(ROIS))


def test_uint16_is_not_taken_for_bfloat16():
    boxes = ROIS.astype(np.uint16)
    np.testing.assert_array_equal(
        align(Tensor(DATA), Tensor(boxes)).array, align(Tensor(DATA), ROIS_GPU).array
    )


ROIS_GPU = Tensor(ROIS)


@pytest.mark.parametrize(
    "view",
    [
        lambda a: np.ascontiguousarray(a.transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2),
        lambda a: np.concatenate([a, a + 1, a], axis=1)[:, :4],
        lambda a: np.repeat(a, 2, axis=3)[..., ::2],
        lambda a: np.pad(a, ((0, 0), (0, 0), (2, 1), (3, 0)))[:, :, 2:-1, 3:],
        lambda a: np.ascontiguousarray(a[:, ::-1])[:, ::-1],
    ],
    ids=["channels last", "some channels", "every other column", "a crop", "backwards"],
)
def test_strided_arrays(view):
    data = view(DATA)
    assert not data.flags["C_CONTIGUOUS"]
    out = align(Tensor(data), Tensor(ROIS[:, ::-1].copy()[:, ::-1]))
    np.testing.assert_allclose(out.array, EXPECTED, rtol=1e-6, atol=1e-6)
    target = Tensor(np.repeat(np.zeros_like(EXPECTED), 2, axis=3)[..., ::2])
    align(Tensor(data), Tensor(ROIS), out=target)
    np.testing.assert_allclose(target.array, EXPECTED, rtol=1e-6, atol=1e-6)


def test_only_arrays_that_run_backwards_are_copied(monkeypatch):
    copied = []
    monkeypatch.setattr(runtime, "copy", lambda source, target: copied.append(source.shape))
    for array in (
        DATA[:, 1:3],
        DATA[..., ::2],
        DATA.transpose(0, 3, 1, 2),
        np.broadcast_to(DATA[:1], (3, 4, 6, 6)),
    ):
        runtime.flat_view(array)
    assert copied == []
    runtime.flat_view(DATA[:, ::-1])
    assert copied == [DATA.shape]


def test_the_cuda_array_interface_alone():
    class Bare:
        def __init__(self, array):
            self.__cuda_array_interface__ = {**array.__array_interface__, "version": 3, "stream": 1}

    out = align(Bare(DATA), Bare(ROIS))
    assert out.context == mx.gpu(0)
    np.testing.assert_allclose(out.asnumpy(), EXPECTED, rtol=1e-6, atol=1e-6)


def test_an_array_without_elements():
    out = align(Tensor(DATA), Tensor(ROIS[:0]))
    assert out.array.shape == (0, 4, 2, 2)


def test_a_capsule_is_read_as_numpy_reads_it():
    for array in (DATA, DATA[:, ::2], np.array(3.0), np.arange(3, dtype=np.int8), np.array([True, False])):
        for options in ({}, {"max_version": (1, 0)}):
            memory = dlpack.read(array.__dlpack__(**options))
            assert (memory.address, memory.shape) == (array.ctypes.data, array.shape)
            assert (memory.strides, memory.dtype) == (array.strides, array.dtype)
    with pytest.raises(DTypeError, match="type code 5 with 128 bits and 1 lanes are not known"):
        dlpack.read(np.zeros(2, np.complex128).__dlpack__())
