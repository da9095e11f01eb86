"""MXNet's NDArray files (``.params``), read and written.

A file is: the number 0x112, a reserved number, a count and that many arrays, a count and that many names
(none, or one an array). Everything is little-endian. An array begins with one of four words:

========================  =====================================================================
0xF993FAC8                the shape follows, in 64-bit numbers (MXNet 0.9 to 0.11)
0xF993FAC9                a storage type follows, then the shape (MXNet 0.12 to 1.9); files
                          without the storage type are read, too
0xF993FACA                the same with NumPy's shapes, where () and 0 mean themselves
anything else             is the number of dimensions of a shape in 32-bit numbers (up to 0.8)
========================  =====================================================================

Reading goes over the file twice: first over the structure, skipping the contents, so that a damaged file is
refused before memory is taken for what it promises; then over the contents, each straight into its array.
"""

import contextlib
import io
import math
import os
import shutil
import struct
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from .. import dtypes
from ..errors import DTypeError, FormatError, MissingFileError, nearest
from ..shapes import is_np_shape
from . import device
from .ndarray import NDArray, from_any

__all__ = ["load", "load_frombuffer", "open_file", "replacing", "save"]

_FILE_MAGIC = 0x112
#: What every file begins with.
MAGIC = struct.pack("<QQ", _FILE_MAGIC, 0)
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_DENSE, _ROW_SPARSE, _CSR = 0, 1, 2
_NUM_AUX = {_DENSE: 0, _ROW_SPARSE: 1, _CSR: 2}
_DTYPES = (*map(np.dtype, dtypes.NAMES), dtypes.BFLOAT16)
# What MXNet 1.9 reads.
_WRITTEN = {np.dtype(name): code for code, name in enumerate(dtypes.NAMES[: dtypes.NUM_BEFORE_2])}
_MOST_DIMENSIONS = 32
_MOST_ELEMENTS = 2**48
_CPU = 1

# A sparse array may hold few values of a huge shape. Those of a file may together take this much memory when
# dense, or this many times the bytes of the file: more than any real model's, and a bound on what a forged
# file can ask for.
_DENSE_BYTES, _DENSE_TIMES = 1 << 28, 256


@dataclass(slots=True)
class _Block:
    """Where in the file the elements of an array stand."""

    dtype: np.dtype
    shape: tuple
    offset: int = 0

    @property
    def stored(self) -> np.dtype:
        return dtypes.stored(self.dtype).newbyteorder("<")

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.stored.itemsize


@dataclass(slots=True)
class _Entry:
    """One array of a file: its shape and the blocks that hold its elements and its sparse indices."""

    index: int
    offset: int
    name: str | None = None
    storage: int = _DENSE
    shape: tuple = ()
    blocks: list = field(default_factory=list)
    numpy_shape: bool = False  # whether () and 0 in its shape mean themselves


class _Reader:
    """Reads numbers and knows where it is, for the errors."""

    def __init__(self, stream, size: int, label: str):
        self.stream = stream
        self.size = size
        self.label = label
        self.entry = None
        self.dense_bytes = 0  # of the sparse arrays so far

    def fail(self, problem: str, offset: int | None = None):
        where = ""
        if self.entry is not None:
            name = "" if self.entry.name is None else f" ({self.entry.name})"
            where = f", entry {self.entry.index}{name}"
        offset = self.stream.tell() if offset is None else offset
        return FormatError(f"{self.label}{where}, offset {offset}: {problem}")

    def numbers(self, layout: str, what: str) -> tuple:
        count = struct.calcsize("<" + layout)
        offset = self.stream.tell()
        data = self.stream.read(count)
        if len(data) < count:
            raise self.fail(f"the file ends within {what}", offset)
        return struct.unpack("<" + layout, data)

    def number(self, layout: str, what: str) -> int:
        return self.numbers(layout, what)[0]

    def left(self) -> int:
        return self.size - self.stream.tell()

    def shape(self, what: str, *, ndim: int | None = None, layout: str = "q") -> tuple[int, ...]:
        offset = self.stream.tell()
        if ndim is None:
            ndim = self.number("i", f"the number of dimensions of {what}")
        if not 0 <= ndim <= _MOST_DIMENSIONS:
            raise self.fail(
                f"{what} has {ndim} dimensions, which is not between 0 and {_MOST_DIMENSIONS}", offset
            )
        dims = self.numbers(f"{ndim}{layout}", what)
        if any(n < 0 for n in dims):
            raise self.fail(f"{what} has a negative dimension: {dims}", offset)
        if math.prod(n for n in dims if n) > _MOST_ELEMENTS:
            raise self.fail(f"{what} is too large: {dims}", offset)
        return dims

    def dtype(self, what: str) -> np.dtype:
        offset = self.stream.tell()
        code = self.number("i", what)
        if not 0 <= code < len(_DTYPES):
            raise self.fail(
                f"{what} is {code}, which is not one of the codes 0 to {len(_DTYPES) - 1}", offset
            )
        return _DTYPES[code]

    def skip(self, block: _Block) -> None:
        block.offset = self.stream.tell()
        if block.nbytes > self.left():
            raise self.fail(
                f"an array of shape {block.shape} and dtype {dtypes.name_of(block.dtype)} needs "
                f"{block.nbytes} bytes, {self.left()} are left in the file"
            )
        self.stream.seek(block.nbytes, io.SEEK_CUR)


# -- the structure ---------------------------------------------------------------------------------------


def _scan(reader: _Reader, has_storage: bool) -> list[_Entry]:
    """All entries, without their contents. ``has_storage``: whether a storage type follows 0xF993FAC9."""
    reader.stream.seek(0)
    reader.entry = None
    reader.dense_bytes = 0
    if reader.stream.read(1) == b"{":
        raise reader.fail("not an NDArray file, but what looks like JSON: a symbol's file, perhaps", 0)
    reader.stream.seek(0)
    magic, _ = reader.numbers("QQ", "the head of the file")
    if magic != _FILE_MAGIC:
        raise reader.fail(f"not an NDArray file: it begins with {struct.pack('<Q', magic)}", 0)
    count = reader.number("Q", "the number of arrays")
    if count * 4 > reader.left():
        raise reader.fail(f"{count} arrays are promised, {reader.left()} bytes are left in the file")
    entries = []
    for index in range(count):
        reader.entry = _Entry(index, reader.stream.tell())
        _scan_entry(reader, reader.entry, has_storage)
        entries.append(reader.entry)
    reader.entry = None
    _scan_names(reader, entries)
    if reader.left():
        raise reader.fail(f"{reader.left()} bytes follow the end of the last name")
    return entries


def _scan_entry(reader: _Reader, entry: _Entry, has_storage: bool) -> None:
    magic = reader.number("I", "the first word of the array")
    entry.numpy_shape = magic == _V3
    storage_shape = None
    if magic == _V3 or (magic == _V2 and has_storage):
        entry.storage = reader.number("i", "the storage type")
        if entry.storage not in _NUM_AUX:
            raise reader.fail(
                f"the storage type is {entry.storage}, which is not 0 (dense), 1 (row_sparse) or 2 (csr)"
            )
        if _NUM_AUX[entry.storage]:
            storage_shape = reader.shape("the shape of the stored values")
    if magic in (_V1, _V2, _V3):
        entry.shape = reader.shape("the shape")
    else:
        entry.shape = reader.shape("the shape", ndim=magic, layout="I")
    if not entry.shape and magic != _V3:
        entry.shape = (0,)  # an NDArray without contents: nothing more is stored of it
        return
    reader.numbers("ii", "the device")
    dtype = reader.dtype("the dtype code")
    entry.blocks = [_Block(dtype, entry.shape if storage_shape is None else storage_shape)]
    for _ in range(_NUM_AUX[entry.storage]):
        aux = reader.dtype("the dtype code of the sparse indices")
        entry.blocks.append(_Block(aux, reader.shape("the shape of the sparse indices")))
    for block in entry.blocks:
        reader.skip(block)
    if storage_shape is not None:
        _check_sparse(reader, entry)


def _check_sparse(reader: _Reader, entry: _Entry) -> None:
    shape, values = entry.shape, entry.blocks[0].shape
    indices = [block.shape for block in entry.blocks[1:]]
    if entry.storage == _ROW_SPARSE:
        fits = len(values) == len(shape) and values[1:] == shape[1:] and indices == [values[:1]]
    else:
        fits = len(shape) == 2 and len(values) == 1 and indices == [(shape[0] + 1,), values]
    if not values or 0 in values:  # nothing is stored: MXNet leaves shapes of any kind behind
        fits = True
    if not fits or any(block.dtype not in (np.int64, np.int32) for block in entry.blocks[1:]):
        raise reader.fail(
            f"a sparse array of shape {shape} does not go with values of shape {values} "
            f"and indices of shapes {indices}",
            entry.offset,
        )
    reader.dense_bytes += math.prod(shape) * entry.blocks[0].stored.itemsize
    if reader.dense_bytes > max(_DENSE_BYTES, _DENSE_TIMES * reader.size):
        raise reader.fail(
            f"with this one of shape {shape} the sparse arrays would take {reader.dense_bytes} bytes when "
            f"dense, out of all proportion to the {reader.size} bytes of the file",
            entry.offset,
        )


def _scan_names(reader: _Reader, entries: list[_Entry]) -> None:
    count = reader.number("Q", "the number of names")
    if count not in (0, len(entries)):
        raise reader.fail(f"{count} names for {len(entries)} arrays")
    seen = {}
    for entry in entries[:count]:
        reader.entry = entry
        length = reader.number("Q", "the length of the name")
        offset = reader.stream.tell()
        if length > reader.left():
            raise reader.fail(f"the name is {length} bytes long, {reader.left()} are left in the file")
        data = reader.stream.read(length)
        try:
            name = data.decode()
        except UnicodeDecodeError:
            raise reader.fail(f"the name is not UTF-8: {data[:40]!r}", offset) from None
        if name in seen:
            raise reader.fail(f"the name {name!r} is also that of entry {seen[name]}", offset)
        seen[name] = entry.index
        entry.name = name
    reader.entry = None


# -- the contents ----------------------------------------------------------------------------------------


def _read_block(reader: _Reader, block: _Block) -> np.ndarray:
    array = np.empty(block.shape, block.stored)
    reader.stream.seek(block.offset)
    if array.size and reader.stream.readinto(memoryview(array.reshape(-1)).cast("B")) != array.nbytes:
        raise reader.fail("the file has become shorter while it was read", block.offset)
    if block.dtype == dtypes.BFLOAT16:  # NumPy has none; its 16 bits are the upper half of a float32
        return (array.astype(np.uint32) << 16).view(np.float32)
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _read_entry(reader: _Reader, entry: _Entry) -> NDArray:
    reader.entry = entry
    if not entry.blocks:
        return NDArray(np.empty(entry.shape, np.float32))
    values, *indices = [_read_block(reader, block) for block in entry.blocks]
    if entry.storage == _DENSE:
        return NDArray(values)
    dense = np.zeros(entry.shape, values.dtype)
    if values.size:
        if entry.storage == _ROW_SPARSE:
            _check_indices(reader, entry, indices[0], entry.shape[0])
            dense[indices[0]] = values
        else:
            starts, columns = indices
            _check_indices(reader, entry, columns, entry.shape[1])
            if starts[0] != 0 or starts[-1] != len(values) or (np.diff(starts) < 0).any():
                raise reader.fail(
                    "the row starts of the csr array do not rise from 0 to its end", entry.offset
                )
            dense[np.repeat(np.arange(entry.shape[0]), np.diff(starts)), columns] = values
    return NDArray(dense)


def _check_indices(reader: _Reader, entry: _Entry, indices, bound: int) -> None:
    if indices.size and (indices.min() < 0 or indices.max() >= bound):
        raise reader.fail(
            f"a sparse index is outside 0 to {bound - 1}: the indices run from "
            f"{indices.min()} to {indices.max()}",
            entry.offset,
        )


def _check_convention(reader: _Reader, entries: list[_Entry]) -> None:
    """Refuse shapes that do not mean to the reader what they meant to the writer."""
    for entry in entries:
        if (not entry.shape or 0 in entry.shape) and entry.numpy_shape != is_np_shape():
            reader.entry = entry
            how = "saved under np_shape" if entry.numpy_shape else "not saved under np_shape"
            raise reader.fail(
                f"the shape is {entry.shape}, and was {how}: load it within "
                f"`with np_shape({entry.numpy_shape})`",
                entry.offset,
            )


def _load(stream, size: int, label: str, either_convention: bool = False):
    reader = _Reader(stream, size, label)
    try:
        entries = _scan(reader, has_storage=True)
    except FormatError as error:
        try:
            entries = _scan(reader, has_storage=False)
        except FormatError:
            raise error from None
    if not either_convention:
        _check_convention(reader, entries)
    arrays = [_read_entry(reader, entry) for entry in entries]
    if any(entry.name is not None for entry in entries):
        return {entry.name: array for entry, array in zip(entries, arrays, strict=True)}
    return arrays


def load(fname) -> dict[str, NDArray] | list[NDArray]:
    """The arrays of an NDArray file: a dict where it holds names, else a list.

    All of MXNet's layouts are read, and its sparse arrays become dense. Arrays are on the CPU, wherever they
    were when saved. A damaged file raises :class:`roiops.errors.FormatError`, which says where; so does an
    empty array or a single number that was saved in the other of MXNet's two conventions of shapes.

    Parameters
    ----------
    fname : str or path
        The file.
    """
    with open_file(fname) as stream:
        return _load(stream, os.fstat(stream.fileno()).st_size, os.fspath(fname))


def load_model(fname) -> dict[str, NDArray] | list[NDArray]:
    """As :func:`load`, whichever convention of shapes the file is in."""
    with open_file(fname) as stream:
        return _load(stream, os.fstat(stream.fileno()).st_size, os.fspath(fname), either_convention=True)


def open_file(fname):
    """A file to read bytes from; one that is not there is an error of ours, with near names of its folder."""
    try:
        return open(fname, "rb")
    except FileNotFoundError:
        folder, name = os.path.split(os.fspath(fname))
        beside = os.listdir(folder or ".") if os.path.isdir(folder or ".") else []
        raise MissingFileError(f"{fname}: No such file or directory{nearest(name, beside)}") from None
    except IsADirectoryError:
        raise MissingFileError(f"{fname}: is a folder, not a file") from None


def load_frombuffer(buf) -> dict[str, NDArray] | list[NDArray]:
    """As :func:`load`, from the bytes of a file."""
    if not isinstance(buf, bytes | bytearray | memoryview):
        raise TypeError(f"load_frombuffer: buf must be bytes, got {type(buf).__name__}")
    return _load(io.BytesIO(buf), len(buf), "buffer")


def _set_state(array: NDArray, state: dict) -> None:
    """Fill an array from what MXNet pickles of one: the bytes that it has in a file. It is on the CPU."""
    head = struct.pack("<QQQ", _FILE_MAGIC, 0, 1)
    data = head + bytes(state["handle"]) + struct.pack("<Q", 0)
    (loaded,) = _load(io.BytesIO(data), len(data), "a pickled NDArray", either_convention=True)
    array.data, array._context = loaded.data, loaded._context


# It is put there from here, so that an array need not know of files.
NDArray.__setstate__ = _set_state


# -- writing ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def replacing(path):
    """A file open for bytes that takes the place of ``path`` when all is written; not after an error."""
    path = os.path.realpath(path)
    there = os.path.exists(path)
    if there and not os.path.isfile(path):  # a device or a pipe
        with open(path, "wb") as file:
            yield file
        return
    part = f"{path}.{os.getpid()}-{threading.get_ident()}.part"
    try:
        file = open(part, "wb")  # noqa: SIM115  (closed below)
    except OSError as error:
        raise type(error)(error.errno, error.strerror, path) from None
    try:
        with file:
            yield file
        if there:
            shutil.copymode(path, part)
        os.replace(part, path)
    except BaseException:
        os.unlink(part)
        raise


def save(fname, data) -> None:
    """Write arrays to a file that MXNet 1.9 and this library read, in the convention of shapes in force.

    Parameters
    ----------
    fname : str or path
        The file.
    data : NDArray, list of NDArray, or dict of str to NDArray
        What to write. NumPy arrays are taken, too.
    """
    if isinstance(data, Mapping):
        if any(not isinstance(name, str) for name in data):
            raise TypeError("save only accept dict str->NDArray or list of NDArray")
        names, arrays = list(data), list(data.values())
    elif isinstance(data, list | tuple):
        names, arrays = [], list(data)
    else:
        names, arrays = [], [data]
    hosts = []
    for i, array in enumerate(arrays):
        label = f"save: {names[i]!r}" if names else f"save: array {i}"
        host = np.asarray(device.to_host(from_any(array, label).data), order="C")
        host = host if host.ndim or is_np_shape() else host.reshape(1)  # () is the shape of nothing there
        if host.dtype not in _WRITTEN:
            raise DTypeError(f"{label} has dtype {host.dtype}, which MXNet 1.9 cannot read; convert it")
        hosts.append(host)
    magic = _V3 if is_np_shape() else _V2
    with replacing(fname) as stream:
        stream.write(struct.pack("<QQQ", _FILE_MAGIC, 0, len(hosts)))
        for host in hosts:
            code = _WRITTEN[host.dtype]
            stream.write(struct.pack("<Iii", magic, _DENSE, host.ndim))
            stream.write(struct.pack(f"<{host.ndim}qiii", *host.shape, _CPU, 0, code))
            stream.write(
                memoryview(host.astype(host.dtype.newbyteorder("<"), copy=False).reshape(-1)).cast("B")
            )
        stream.write(struct.pack("<Q", len(names)))
        for name in names:
            encoded = name.encode()
            stream.write(struct.pack("<Q", len(encoded)) + encoded)
