"""Record files: the bytes of the format, what is written is read, and damage that is told."""

import os
import pickle
import struct

import numpy as np
import pytest

import roiops as mx
from roiops import recordio
from roiops.errors import FormatError, MXNetError

MAGIC = struct.pack("<I", 0xCED7230A)


def test_bytes_of_records(tmp_path):
    """As dmlc-core's recordio.h says: magic, kind and length in one word, data, zeros up to four."""
    path = tmp_path / "a.rec"
    file = recordio.MXRecordIO(path, "w")
    file.write(b"hello")
    file.write(b"abcd" + MAGIC + b"ef")
    file.close()
    whole = MAGIC + struct.pack("<I", 5) + b"hello\0\0\0"
    first = MAGIC + struct.pack("<I", 1 << 29 | 4) + b"abcd"
    last = MAGIC + struct.pack("<I", 3 << 29 | 2) + b"ef\0\0"
    assert path.read_bytes() == whole + first + last


@pytest.mark.parametrize(
    "data", [b"", b"x", MAGIC, MAGIC * 3, b"12345" + MAGIC, b"1234" + MAGIC + b"123" + MAGIC, b"abc" * 99]
)
def test_what_is_written_is_read(tmp_path, data):
    path = tmp_path / "a.rec"
    file = recordio.MXRecordIO(path, "w")
    for part in (data, b"next"):
        file.write(part)
    file.close()
    file = recordio.MXRecordIO(path, "r")
    assert [file.read(), file.read(), file.read()] == [data, b"next", None]
    file.reset()
    assert file.read() == data


def test_records_by_key(tmp_path):
    names = tmp_path / "a.idx", tmp_path / "a.rec"
    file = recordio.MXIndexedRecordIO(*names, "w")
    for i in range(5):
        file.write_idx(i * 10, b"record %d" % i)
    file.close()
    file = recordio.MXIndexedRecordIO(*names, "r")
    assert file.keys == [0, 10, 20, 30, 40]
    assert [file.read_idx(key) for key in (30, 0, 30)] == [b"record 3", b"record 0", b"record 3"]
    assert pickle.loads(pickle.dumps(file)).read_idx(20) == b"record 2"
    with pytest.raises(MXNetError, match=r"a\.idx has no key 7"):
        file.read_idx(7)


def test_headers_and_pictures():
    header = recordio.IRHeader(0, 4.0, 2574, 0)
    got, data = recordio.unpack(recordio.pack(header, b"data"))
    assert (got, data) == (header, b"data")
    got, data = recordio.unpack(recordio.pack((0, [1, 2.5, 3], 7, 1), b"data"))
    assert (got.flag, got.label.tolist(), got.id, got.id2, data) == (3, [1, 2.5, 3], 7, 1, b"data")
    pytest.importorskip("PIL")
    picture = np.random.default_rng(0).integers(0, 256, (5, 7, 3), np.uint8)
    got, pixels = recordio.unpack_img(recordio.pack_img(header, picture, quality=9, img_fmt=".png"))
    assert got == header
    np.testing.assert_array_equal(pixels, picture)


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"no record", "no record begins at byte 0; the file is damaged"),
        (MAGIC + struct.pack("<I", 9) + b"abc", "the record at byte 0 has 9 bytes, the file ends before"),
        (MAGIC + struct.pack("<I", 2 << 29 | 4) + b"abcd", "the record at byte 0 lacks a part"),
        (MAGIC + struct.pack("<I", 1 << 29 | 4) + b"abcd", "no record begins at byte 12"),
    ],
)
def test_damaged_files(tmp_path, content, text):
    path = tmp_path / "a.rec"
    path.write_bytes(content)
    with pytest.raises(FormatError, match=text):
        recordio.MXRecordIO(path, "r").read()


def test_files_that_are_used_wrongly(tmp_path):
    path = tmp_path / "a.rec"
    with pytest.raises(MXNetError, match=r"recordio: .*a\.rec: No such file"):
        recordio.MXRecordIO(path, "r")
    with pytest.raises(ValueError, match="Invalid flag a"):
        recordio.MXRecordIO(path, "a")
    file = recordio.MXRecordIO(path, "w")
    with pytest.raises(MXNetError, match="is open to be written"):
        file.read()
    with pytest.raises(MXNetError, match="is being written and cannot go to another process"):
        pickle.dumps(file)
    file.close()
    with pytest.raises(MXNetError, match="is closed"):
        file.write(b"x")
    (tmp_path / "a.idx").write_text("1 2\n")
    with pytest.raises(FormatError, match=r"a\.idx: lines must be key<TAB>byte"):
        recordio.MXIndexedRecordIO(tmp_path / "a.idx", path, "r")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_pictures_of_a_record_file_by_workers(tmp_path):
    pytest.importorskip("PIL")
    file = recordio.MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w")
    for i in range(12):
        picture = np.full((4, 4, 3), i, np.uint8)
        file.write_idx(i, recordio.pack_img((0, i, i, 0), picture, quality=9, img_fmt=".png"))
    file.close()
    dataset = mx.gluon.data.vision.ImageRecordDataset(str(tmp_path / "a.rec"))
    assert len(dataset) == 12
    for options in ({}, {"num_workers": 2}, {"num_workers": 3, "thread_pool": True}):
        loader = mx.gluon.data.DataLoader(dataset, batch_size=4, **options)
        seen = [(x.asnumpy().reshape(4, -1), y.asnumpy()) for x, y in loader]
        np.testing.assert_array_equal(np.concatenate([y for _, y in seen]), np.arange(12))
        np.testing.assert_array_equal(np.concatenate([x[:, 5] for x, _ in seen]), np.arange(12))


def test_an_index_that_does_not_fit_is_refused(tmp_path):
    file = recordio.MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "w")
    file.write_idx(0, b"abcd")
    file.close()
    for place in (-5, 12, 10**30):
        (tmp_path / "a.idx").write_text(f"0\t{place}\n")
        file = recordio.MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "r")
        with pytest.raises(FormatError, match=rf"a\.rec: no record begins at byte {place}; the file has 12"):
            file.read_idx(0)
    (tmp_path / "a.idx").write_bytes(b"0\t\xff\n")
    with pytest.raises(FormatError, match=r"a\.idx: lines must be key<TAB>byte"):
        recordio.MXIndexedRecordIO(tmp_path / "a.idx", tmp_path / "a.rec", "r")
