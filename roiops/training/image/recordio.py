"""``mxnet.recordio``: record files, which hold many pieces of bytes in one, and pictures with labels in them.

A record is a magic number, a length, the bytes, and zeros up to a multiple of four. Where the bytes hold the
magic number themselves, at a multiple of four, it is left out and the record is cut in parts there.
"""

import collections
import io
import os
import struct
import threading
from pathlib import Path

import numpy as np

from ...errors import FormatError, MXNetError, ParamError
from .reading import imdecode, pillow

__all__ = ["IRHeader", "MXIndexedRecordIO", "MXRecordIO", "pack", "pack_img", "unpack", "unpack_img"]

_MAGIC = struct.pack("<I", 0xCED7230A)
_LENGTH_BITS = 29
_WHOLE, _FIRST, _MIDDLE, _LAST = range(4)


class MXRecordIO:
    """A record file, read or written from its start to its end.

    Parameters
    ----------
    uri : str
        The file.
    flag : str
        ``"r"`` to read, ``"w"`` to write.
    """

    def __init__(self, uri, flag):
        if flag not in ("r", "w"):
            raise ValueError(f"Invalid flag {flag}: it must be 'r' or 'w'")
        self.uri, self.flag, self.writable = os.fspath(uri), flag, flag == "w"
        self.is_open, self.pid = False, None
        self._turn = threading.Lock()
        self.open()

    def open(self) -> None:
        """Open the file, at its start."""
        try:
            self._file = open(self.uri, self.flag + "b")  # noqa: SIM115 - closed by close()
        except OSError as error:
            raise MXNetError(f"recordio: {self.uri}: {error.strerror}") from error
        self.is_open, self.pid = True, os.getpid()

    def close(self) -> None:
        """Close the file."""
        if self.is_open:
            self._file.close()
            self.is_open, self.pid = False, None

    def reset(self) -> None:
        """Go back to the start; a file that is written is emptied."""
        self.close()
        self.open()

    def __del__(self):
        if getattr(self, "is_open", False):
            self.close()

    def __getstate__(self):
        if self.is_open and self.writable:
            raise MXNetError(f"recordio: {self.uri} is being written and cannot go to another process")
        return {key: value for key, value in vars(self).items() if key not in ("_file", "_turn")}

    def __setstate__(self, state):
        vars(self).update(state)
        self._turn = threading.Lock()
        if self.is_open:
            self.open()

    def _ready(self, *, writing: bool) -> None:
        if self.writable != writing:
            raise MXNetError(f"recordio: {self.uri} is open to be {'written' if self.writable else 'read'}")
        if not self.is_open:
            raise MXNetError(f"recordio: {self.uri} is closed")
        # A forked process has its place in the file in common with its parent, until it opens it anew.
        if not writing and self.pid != os.getpid():
            self.reset()

    def tell(self) -> int:
        """Where the next record begins."""
        return self._file.tell()

    def write(self, buf: bytes) -> None:
        """Write one record."""
        self._ready(writing=True)
        if len(buf) >> _LENGTH_BITS:
            raise ParamError(f"recordio: {self.uri}: a record has at most 2**29 - 1 bytes, got {len(buf)}")
        cuts, at = [], buf.find(_MAGIC)
        while at >= 0:
            aligned = at % 4 == 0
            if aligned:
                cuts.append(at)
            at = buf.find(_MAGIC, at + (4 if aligned else 1))
        begins, ends = [0, *(cut + 4 for cut in cuts)], [*cuts, len(buf)]
        for i, (begin, end) in enumerate(zip(begins, ends, strict=True)):
            kind = _WHOLE if not cuts else _FIRST if i == 0 else _LAST if i == len(cuts) else _MIDDLE
            length = end - begin
            self._file.write(_MAGIC + struct.pack("<I", kind << _LENGTH_BITS | length))
            self._file.write(buf[begin:end] + bytes(-length % 4))

    def read(self) -> bytes | None:
        """The next record; None at the end."""
        self._ready(writing=False)
        parts = []
        while True:
            at, head = self._file.tell(), self._file.read(8)
            if not head and not parts:
                return None
            kind, length = _kind_and_length(self.uri, at, head)
            if kind > _LAST or (kind in (_WHOLE, _FIRST)) != (not parts):
                raise FormatError(f"recordio: {self.uri}: the record at byte {at} lacks a part")
            parts.append(self._file.read(length))
            padding = self._file.read(-length % 4)
            if len(parts[-1]) + len(padding) < length + -length % 4:
                raise FormatError(
                    f"recordio: {self.uri}: the record at byte {at} has {length} bytes, the file ends before"
                )
            if kind in (_WHOLE, _LAST):
                return _MAGIC.join(parts)

    def _go_to(self, place: int) -> None:
        self._ready(writing=False)
        size = os.fstat(self._file.fileno()).st_size
        if not 0 <= place < size:
            raise FormatError(f"recordio: {self.uri}: no record begins at byte {place}; the file has {size}")
        self._file.seek(place)

    def read_at(self, place: int) -> bytes:
        """The record that begins at this byte."""
        with self._turn:
            self._go_to(place)
            return self.read()


def _kind_and_length(uri, at: int, head: bytes) -> tuple[int, int]:
    """What the 8 bytes at ``at`` say of the record, or part of one, that they begin."""
    if len(head) < 8 or head[:4] != _MAGIC:
        raise FormatError(f"recordio: {uri}: no record begins at byte {at}; the file is damaged")
    (word,) = struct.unpack("<I", head[4:])
    return word >> _LENGTH_BITS, word & ((1 << _LENGTH_BITS) - 1)


def record_places(uri) -> list[int]:
    """The byte at which each record of a file begins."""
    places, at = [], 0
    with open(uri, "rb") as file:
        while head := file.read(8):
            kind, length = _kind_and_length(uri, at, head)
            if kind in (_WHOLE, _FIRST):
                places.append(at)
            at += 8 + length + -length % 4
            file.seek(at)
    return places


class MXIndexedRecordIO(MXRecordIO):
    """A record file with an index, a file of lines ``key<TAB>byte``, so that records are read in any order.

    Parameters
    ----------
    idx_path : str
        The index.
    key_type : type
        What makes keys of the text in the index.

    The others are those of :class:`MXRecordIO`.
    """

    def __init__(self, idx_path, uri, flag, key_type=int):
        self.idx_path, self.key_type = os.fspath(idx_path), key_type
        self.idx, self.keys = {}, []
        super().__init__(uri, flag)

    def open(self):
        super().open()
        if self.writable:
            self.idx, self.keys = {}, []
            return
        try:
            lines = Path(self.idx_path).read_text(encoding="utf-8").splitlines()
            pairs = [line.split("\t") for line in lines if line.strip()]
            self.idx = {self.key_type(pair[0]): int(pair[1]) for pair in pairs}
        except OSError as error:
            raise MXNetError(f"recordio: {self.idx_path}: {error.strerror}") from error
        except (ValueError, IndexError):
            raise FormatError(f"recordio: {self.idx_path}: lines must be key<TAB>byte") from None
        self.keys = list(self.idx)

    def close(self):
        if self.is_open and self.writable:
            text = "".join(f"{key}\t{self.idx[key]}\n" for key in self.keys)
            Path(self.idx_path).write_text(text, encoding="utf-8")
        super().close()

    def seek(self, idx) -> None:
        """Have :meth:`read` give the record of a key next."""
        if idx not in self.idx:
            raise MXNetError(f"recordio: {self.idx_path} has no key {idx!r}")
        self._go_to(self.idx[idx])

    def read_idx(self, idx) -> bytes:
        """The record of a key."""
        with self._turn:  # threads of a DataLoader share the file
            self.seek(idx)
            return self.read()

    def write_idx(self, idx, buf: bytes) -> None:
        """Write one record under a key."""
        key, begins = self.key_type(idx), self.tell()
        self.write(buf)
        self.idx[key] = begins
        self.keys.append(key)


#: What stands before a picture in its record: how many labels follow, or 0; the label; two numbers.
IRHeader = collections.namedtuple("HEADER", ["flag", "label", "id", "id2"])
_HEADER = struct.Struct("<IfQQ")


def pack(header: IRHeader, s: bytes) -> bytes:
    """A record of a header and bytes; the label is a number or an array of them."""
    header = IRHeader(*header)
    if isinstance(header.label, int | float | np.number):
        return _HEADER.pack(0, header.label, header.id, header.id2) + s
    label = np.asarray(header.label, dtype=np.float32)
    return _HEADER.pack(label.size, 0, header.id, header.id2) + label.tobytes() + s


def unpack(s: bytes) -> tuple[IRHeader, bytes]:
    """The header and the bytes of a record of :func:`pack`."""
    if len(s) < _HEADER.size:
        raise FormatError(f"recordio.unpack: a record has {_HEADER.size} bytes or more, got {len(s)}")
    header, rest = IRHeader(*_HEADER.unpack(s[: _HEADER.size])), s[_HEADER.size :]
    if header.flag == 0:
        return header, rest
    if len(rest) < 4 * header.flag:
        raise FormatError(f"recordio.unpack: the record ends within its {header.flag} labels")
    label = np.frombuffer(rest, np.float32, header.flag)
    return header._replace(label=label), rest[4 * header.flag :]


def unpack_img(s: bytes, iscolor: int = -1) -> tuple[IRHeader, np.ndarray]:
    """The header and the picture of a record: blue, green, red; or grey, with ``iscolor=0``."""
    header, picture = unpack(s)
    decoded = imdecode(picture, 0 if iscolor == 0 else 1, to_rgb=False).asnumpy()
    return header, decoded[:, :, 0] if iscolor == 0 else decoded


def pack_img(header: IRHeader, img: np.ndarray, quality: int = 95, img_fmt: str = ".jpg") -> bytes:
    """A record of a header and a picture: blue, green, red; or grey.

    Parameters
    ----------
    quality : int
        1 to 100 for JPEG, 1 to 9 for PNG.
    img_fmt : str
        ``".jpg"`` or ``".png"``.
    """
    jpeg = "JPEG", "quality", 100
    kinds = {".jpg": jpeg, ".jpeg": jpeg, ".png": ("PNG", "compress_level", 9)}
    if img_fmt.lower() not in kinds:
        raise ParamError(f"recordio.pack_img: img_fmt must be .jpg or .png, got {img_fmt!r}")
    kind, option, most = kinds[img_fmt.lower()]
    img = np.asarray(img)
    pixels = img[:, :, ::-1] if img.ndim == 3 and img.shape[2] == 3 else img.reshape(img.shape[:2])
    buffer = io.BytesIO()
    pillow().Image.fromarray(np.ascontiguousarray(pixels)).save(buffer, kind, **{option: min(quality, most)})
    return pack(header, buffer.getvalue())
