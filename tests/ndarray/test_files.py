"""MXNet's array files: all layouts against files that MXNet read, round trips, and files meant to do harm."""

import json
import os
import struct
import tracemalloc

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx
from roiops import nd
from roiops.errors import DTypeError, FormatError
from roiops.ndarray import files

PARAMS = sorted(path.stem for path in (GOLDEN / "params").glob("*.params"))


def float_file(*arrays, names=(), magic=b"\xc9\xfa\x93\xf9\x00\x00\x00\x00"):
    """A file of float32 arrays, put together by hand."""
    data = struct.pack("<QQQ", 0x112, 0, len(arrays))
    for array in arrays:
        array = np.asarray(array, np.float32)
        data += (
            magic + struct.pack(f"<i{array.ndim}qiii", array.ndim, *array.shape, 1, 0, 0) + array.tobytes()
        )
    data += struct.pack("<Q", len(names))
    for name in names:
        data += struct.pack("<Q", len(name)) + name
    return data


#: Files with numbers and empty arrays that MXNet saved under np_shape.
NUMPY_SHAPES = ("layout_v3", "numpy_shapes")


# -- what MXNet wrote and read ---------------------------------------------------------------------------


@pytest.mark.parametrize("stem", PARAMS)
def test_golden_file_loads_as_in_mxnet(stem):
    folder = GOLDEN / "params"
    with mx.np_shape(stem in NUMPY_SHAPES):
        loaded = nd.load(folder / f"{stem}.params")
    with np.load(folder / f"{stem}.npz") as file:
        meta = json.loads(str(file["meta"]))
        expected = [file[str(i)] for i in range(len(file.files) - 1)]
    if meta["names"]:
        assert list(loaded) == meta["names"]
        loaded = list(loaded.values())
    assert isinstance(loaded, list)
    assert len(loaded) == len(expected)
    for array, value in zip(loaded, expected, strict=True):
        assert array.dtype == value.dtype
        np.testing.assert_array_equal(array.asnumpy(), value)


@pytest.mark.parametrize("stem", NUMPY_SHAPES)
def test_shapes_of_the_other_convention_are_refused(stem, tmp_path):
    """As in MXNet, but only where the shapes in a file mean something else in it."""
    with pytest.raises(
        FormatError, match=r"was saved under np_shape: load it within `with np_shape\(True\)`"
    ):
        nd.load(GOLDEN / "params" / f"{stem}.params")
    nd.save(tmp_path / "a", [nd.array(np.zeros((2, 0)))])
    assert nd.load(tmp_path / "a")[0].shape == (2, 0)
    with mx.np_shape():
        with pytest.raises(FormatError, match=r"was not saved under np_shape"):
            nd.load(tmp_path / "a")
        nd.save(tmp_path / "a", [nd.full((), 1), nd.array(np.zeros((2, 0))), nd.ones((2,))])
        assert [array.shape for array in nd.load(tmp_path / "a")] == [(), (2, 0), (2,)]
        nd.save(tmp_path / "a", [nd.ones((2,))])
    assert nd.load(tmp_path / "a")[0].shape == (2,)


def test_golden_files_are_there():
    assert len(PARAMS) >= 10


@pytest.mark.parametrize("stem", ["named", "types", "gluon", "checkpoint", "unnamed", "empty"])
def test_saving_gives_the_bytes_that_mxnet_wrote(stem, tmp_path):
    golden = GOLDEN / "params" / f"{stem}.params"
    nd.save(tmp_path / "again.params", nd.load(golden))
    assert (tmp_path / "again.params").read_bytes() == golden.read_bytes()


# -- round trips -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "dtype",
    [np.dtype(code).name for code in "efd?bilB"],
)
def test_every_dtype_comes_back(dtype, tmp_path):
    values = np.array([[0, 1, 2], [3, 4, 250]]).astype(dtype)
    nd.save(tmp_path / "x.params", {"x": values})
    loaded = nd.load(tmp_path / "x.params")["x"]
    assert loaded.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(loaded.asnumpy(), values)


def test_single_array_and_list_come_back_as_lists(tmp_path):
    nd.save(tmp_path / "one", nd.ones((2,)))
    nd.save(tmp_path / "two", [nd.ones((2,)), nd.zeros((1, 3))])
    assert [a.shape for a in nd.load(tmp_path / "one")] == [(2,)]
    assert [a.shape for a in nd.load(tmp_path / "two")] == [(2,), (1, 3)]


def test_strided_arrays_are_saved_by_value(tmp_path):
    base = np.arange(12, dtype=np.float32).reshape(3, 4)
    nd.save(tmp_path / "x", [base.T, base[:, ::2], base[::-1]])
    for loaded, value in zip(nd.load(tmp_path / "x"), (base.T, base[:, ::2], base[::-1]), strict=True):
        np.testing.assert_array_equal(loaded.asnumpy(), value)


def test_an_array_without_dimensions_is_saved_as_mxnet_can_read_it(tmp_path):
    nd.save(tmp_path / "x", [nd.array(5.0)])
    assert nd.load(tmp_path / "x")[0].shape == (1,)


def test_loaded_arrays_are_writable_aligned_and_outlive_the_file(tmp_path):
    path = tmp_path / "x.params"
    nd.save(path, {"a": np.ones(3, np.int8), "b": np.ones(3, np.float64)})  # b is not aligned in the file
    loaded = nd.load(path)
    nd.save(path, {"a": np.zeros(3)})
    loaded["b"][:] = 2
    assert loaded["b"].data.flags.aligned
    assert loaded["b"].asnumpy().tolist() == [2, 2, 2]
    assert loaded["a"].asnumpy().tolist() == [1, 1, 1]


def test_load_frombuffer_reads_the_bytes_of_a_file():
    loaded = nd.load_frombuffer(float_file([1, 2], names=[b"w"]))
    assert loaded["w"].asnumpy().tolist() == [1, 2]
    with pytest.raises(TypeError, match="buf must be bytes, got str"):
        nd.load_frombuffer("text")


def with_dtype(code, stored):
    """A file of one array of two elements, of any dtype code."""
    data = float_file([0, 0])
    return data[:44] + struct.pack("<iii", 1, 0, code) + stored + data[-8:]


@pytest.mark.parametrize(("code", "dtype"), [(8, "int16"), (9, "uint16"), (10, "uint32"), (11, "uint64")])
def test_dtypes_of_mxnet_2_are_read_but_not_written_for_1_9_cannot_read_them(code, dtype, tmp_path):
    values = np.array([1, 200], dtype)
    loaded = nd.load_frombuffer(with_dtype(code, values.tobytes()))[0]
    assert loaded.dtype == values.dtype
    np.testing.assert_array_equal(loaded.asnumpy(), values)
    with pytest.raises(DTypeError, match=f"save: 'x' has dtype {dtype}, which MXNet 1.9 cannot read"):
        nd.save(tmp_path / "x", {"x": loaded})


def test_bfloat16_becomes_float32():
    stored = (np.array([1.5, -2.0], np.float32).view(np.uint32) >> 16).astype("<u2").tobytes()
    loaded = nd.load_frombuffer(with_dtype(12, stored))
    assert loaded[0].dtype == np.float32
    assert loaded[0].asnumpy().tolist() == [1.5, -2.0]


def test_storage_type_may_be_left_out_after_the_second_magic():
    without = float_file([1, 2], [[3]], names=[b"a", b"b"], magic=b"\xc9\xfa\x93\xf9")
    loaded = nd.load_frombuffer(without)
    assert loaded["a"].asnumpy().tolist() == [1, 2]
    assert loaded["b"].asnumpy().tolist() == [[3]]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ({1: np.ones(2)}, "save only accept dict str->NDArray or list of NDArray"),
        ({"a": [1, 2]}, r"save: 'a' must be an NDArray or a NumPy array, got list"),
        (["x"], r"save: array 0 must be an NDArray or a NumPy array, got str"),
    ],
)
def test_save_refuses_what_is_not_arrays(data, text, tmp_path):
    with pytest.raises(TypeError, match=text):
        nd.save(tmp_path / "x", data)
    assert not (tmp_path / "x").exists()


def test_save_refuses_complex_numbers(tmp_path):
    with pytest.raises(DTypeError, match=r"dtype must be one of float32, .*, got complex128"):
        nd.save(tmp_path / "x", [np.ones(2, complex)])


# -- memory ----------------------------------------------------------------------------------------------


def test_loading_takes_little_more_memory_than_the_file(tmp_path):
    path = tmp_path / "big.params"
    nd.save(path, {f"w{i}": np.full((512, 2048), i, np.float32) for i in range(8)})
    nd.load(path)
    tracemalloc.start()
    try:
        loaded = nd.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak <= 1.05 * path.stat().st_size
    assert loaded["w7"].asnumpy().min() == 7


# -- damaged and forged files ----------------------------------------------------------------------------


def patched(data, offset, layout, *values):
    new = struct.pack("<" + layout, *values)
    return data[:offset] + new + data[offset + len(new) :]


GOOD = float_file([[1, 2], [3, 4]], [5], names=[b"arg:w", b"arg:b"])
# Offsets in GOOD: 24 magic, 28 storage, 32 ndim, 36 shape, 52 device, 60 dtype, 64 data, 80 the second array.
HARMFUL = {
    "empty file": (b"", r"x\.params, offset 0: the file ends within the head of the file"),
    "other file": (b"\x89PNG" + bytes(40), r"not an NDArray file: it begins with b'\\x89PNG"),
    "web page": (b"<!DOCTYPE html>\n<p>404", "not an NDArray file: it begins with b'<!DOCTYP'"),
    "many arrays": (patched(GOOD, 16, "Q", 1 << 60), r"1152921504606846976 arrays are promised"),
    "huge dims": (patched(GOOD, 36, "qq", 1 << 40, 1 << 40), r"entry 0, offset 32: the shape is too large"),
    "terabytes": (
        patched(GOOD, 36, "qq", 1 << 20, 1 << 20),
        r"entry 0, offset 64: an array of shape \(1048576, 1048576\) and dtype float32 needs 4398046511104 "
        r"bytes, \d+ are left in the file",
    ),
    "negative dim": (patched(GOOD, 36, "q", -2), r"entry 0, offset 32: the shape has a negative dimension"),
    "many dims": (
        patched(GOOD, 32, "i", 1 << 30),
        r"entry 0, offset 32: the shape has 1073741824 dimensions",
    ),
    "dtype": (patched(GOOD, 60, "i", 99), r"entry 0, offset 60: the dtype code is 99"),
    "storage": (patched(GOOD, 28, "i", 7), r"entry 0, offset 32: the storage type is 7"),
    "second array": (patched(GOOD, 92, "q", 1 << 33), r"entry 1, offset 112: .* needs 34359738368 bytes"),
    "names": (patched(GOOD, 116, "Q", 3), r"offset 124: 3 names for 2 arrays"),
    "long name": (
        patched(GOOD, 124, "Q", 1 << 50),
        r"entry 0, offset 132: the name is 1125899906842624 bytes",
    ),
    "not utf-8": (
        float_file([1], names=[b"arg:\xff\xfe"]),
        r"entry 0, offset \d+: the name is not UTF-8: b'arg:\\xff\\xfe'",
    ),
    "same name twice": (
        float_file([1], [2], names=[b"w", b"w"]),
        r"entry 1, offset \d+: the name 'w' is also that of entry 0",
    ),
    "more after the end": (GOOD + b"\0" * 5, r"5 bytes follow the end of the last name"),
}


@pytest.mark.parametrize("case", HARMFUL)
def test_harmful_file_is_refused_with_its_place(case, tmp_path):
    data, text = HARMFUL[case]
    path = tmp_path / "x.params"
    path.write_bytes(data)
    tracemalloc.start()
    try:
        with pytest.raises(FormatError, match=text) as caught:
            nd.load(path)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert str(path) in str(caught.value)
    assert peak < 1 << 20


def test_hand_made_file_is_good():
    loaded = nd.load_frombuffer(GOOD)
    assert {name: array.asnumpy().tolist() for name, array in loaded.items()} == {
        "arg:w": [[1, 2], [3, 4]],
        "arg:b": [5],
    }


@pytest.mark.parametrize("length", range(0, len(GOOD), 3))
def test_truncated_file_is_refused(length):
    with pytest.raises(FormatError, match=r"^buffer.*offset \d+: "):
        nd.load_frombuffer(GOOD[:length])


def sparse_file(storage, shape, values, *indices):
    values = np.asarray(values, np.float32)
    indices = [np.asarray(each, np.int64) for each in indices]

    def packed(dims):
        return struct.pack(f"<i{len(dims)}q", len(dims), *dims)

    data = struct.pack("<QQQ", 0x112, 0, 1) + struct.pack("<Ii", 0xF993FAC9, storage)
    data += packed(values.shape) + packed(shape) + struct.pack("<iii", 1, 0, 0)
    for each in indices:
        data += struct.pack("<i", 6) + packed(each.shape)
    return data + b"".join(each.tobytes() for each in (values, *indices)) + struct.pack("<Q", 0)


def test_hand_made_sparse_arrays_become_dense():
    rows = nd.load_frombuffer(sparse_file(1, (4, 2), [[1, 2], [3, 4]], [0, 2]))[0]
    assert rows.asnumpy().tolist() == [[1, 2], [0, 0], [3, 4], [0, 0]]
    csr = nd.load_frombuffer(sparse_file(2, (2, 3), [7, 8, 9], [0, 1, 3], [2, 0, 1]))[0]
    assert csr.asnumpy().tolist() == [[0, 0, 7], [8, 9, 0]]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (sparse_file(1, (4, 2), [[1, 2]], [4]), "a sparse index is outside 0 to 3"),
        (sparse_file(1, (4, 2), [[1, 2]], [-1]), "a sparse index is outside 0 to 3"),
        (sparse_file(2, (2, 3), [7, 8], [0, 1, 2], [0, 3]), "a sparse index is outside 0 to 2"),
        (sparse_file(2, (2, 3), [7, 8], [0, 5, 2], [0, 1]), "the row starts of the csr array do not rise"),
        (sparse_file(2, (2, 3), [7, 8], [0, 1, 1], [0, 1]), "the row starts of the csr array do not rise"),
        (sparse_file(1, (4, 3), [[1, 2]], [0]), "does not go with values of shape"),
        (sparse_file(2, (2, 3), [7, 8], [0, 2], [0, 1]), "does not go with values of shape"),
        (sparse_file(1, (1 << 40, 2), [[1, 2]], [0]), "out of all proportion to the"),
    ],
)
def test_harmful_sparse_array_is_refused(data, text):
    with pytest.raises(FormatError, match=rf"buffer, entry 0, offset 24: .*{text}"):
        nd.load_frombuffer(data)


def test_sparse_arrays_are_bounded_together():
    one = sparse_file(1, (1 << 25, 2), [[1, 2]], [0])  # 256 MiB when dense, which one file may take
    both = one[:16] + struct.pack("<Q", 2) + 2 * one[24:-8] + one[-8:]
    with pytest.raises(
        FormatError, match=r"buffer, entry 1, offset .* the sparse arrays would take 536870912"
    ):
        nd.load_frombuffer(both)


@pytest.mark.parametrize("seed", range(4))
def test_fuzzed_files_load_or_are_refused_within_bounds(seed):
    """Random damage either leaves a readable file or is a FormatError; no other error, no runaway memory."""
    rng = np.random.default_rng(seed)
    sources = [(GOLDEN / "params" / f"{stem}.params").read_bytes() for stem in PARAMS] + [GOOD]
    refused = 0
    tracemalloc.start()
    try:
        for _ in range(400):
            data = bytearray(sources[rng.integers(len(sources))])
            for _ in range(rng.integers(1, 4)):
                place = int(rng.integers(len(data)))
                if rng.random() < 0.5:
                    data[place] = rng.integers(256)
                else:
                    data[place : place + 8] = rng.choice([0, 255, 127], 8).astype(np.uint8).tobytes()
            if rng.random() < 0.2:
                del data[rng.integers(len(data)) :]
            try:
                nd.load_frombuffer(bytes(data))
            except FormatError as error:
                refused += str(error).startswith("buffer")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert 100 < refused < 400
    assert peak < 1 << 29


def test_a_file_stays_until_the_new_one_is_written(tmp_path, monkeypatch):
    path = tmp_path / "a.params"
    mx.nd.save(str(path), [mx.nd.ones(3)])
    before, mode = path.read_bytes(), 0o640
    path.chmod(mode)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(TypeError), files.replacing(path) as file:
        file.writelines([b"half", "no bytes"])
    assert (sorted(os.listdir(tmp_path)), path.read_bytes()) == (["a.params", "link"], before)
    mx.nd.save(str(tmp_path / "link"), [mx.nd.zeros(3)])
    assert (mx.nd.load(str(path))[0].asnumpy() == 0).all()
    assert path.stat().st_mode & 0o777 == mode
    mx.nd.save(os.devnull, [mx.nd.ones(3)])
    with pytest.raises(FileNotFoundError) as error:
        mx.nd.save(str(tmp_path / "no" / "a.params"), [mx.nd.ones(3)])
    assert error.value.filename == str(tmp_path / "no" / "a.params")
