"""Small .params files in every layout that MXNet ever wrote, each read back by MXNet 1.9.1.

The layout (little-endian):
  file     uint64 0x112, uint64 0, uint64 count, the arrays, uint64 count of names (0 or as many),
           each name a uint64 length and its bytes
  array    1. 0xF993FACA  int32 storage, shape, context, type, data: written under NumPy shape semantics,
                          where () is a scalar and an extent may be 0
           2. 0xF993FAC9  the same, but a shape of no axes means "no array", and nothing follows
           3. 0xF993FAC8  shape, context, type, data
           4. no magic    the same, but the first uint32 is the number of axes, and extents are uint32
  shape    uint32 number of axes, int64 extents
  context  int32 device type (1 CPU, 2 GPU), int32 device number
  type     int32: 0 float32, 1 float64, 2 float16, 3 uint8, 4 int32, 5 int8, 6 int64, 7 bool
  sparse   storage 1 (row_sparse) or 2 (csr) puts the shape of the stored values before the shape, and after
           the type a type and a shape for each index array; the index arrays follow the values
           (row_sparse: row numbers; csr: row starts, then column numbers)

<name>.npz beside <name>.params holds `meta` (JSON: who wrote the file, the names in order or null, storage
types by position) and the arrays, dense, under their position: 0, 1, ...
"""

import json
import struct
from pathlib import Path

import mxnet as mx
import numpy as np

from golden_format import GOLDEN, write_npz

FOLDER = GOLDEN / "params"
TYPES = ["float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool"]
RNG = np.random.RandomState(6)


def pack_shape(shape, extent="q"):
    return struct.pack(f"<I{len(shape)}{extent}", len(shape), *shape)


def pack_tail(value, context=(1, 0)):
    """Context, type and data."""
    return struct.pack("<3i", *context, TYPES.index(value.dtype.name)) + value.tobytes()


def plain_layout(value, context=(1, 0)):
    return pack_shape(value.shape, "I") + pack_tail(value, context)


def v1_layout(value, context=(1, 0)):
    return struct.pack("<I", 0xF993FAC8) + pack_shape(value.shape) + pack_tail(value, context)


def v2_layout(value, context=(1, 0)):
    return struct.pack("<Ii", 0xF993FAC9, 0) + pack_shape(value.shape) + pack_tail(value, context)


def v3_layout(value):
    return struct.pack("<Ii", 0xF993FACA, 0) + pack_shape(value.shape) + pack_tail(value)


def v2_row_sparse(values, rows, shape):
    head = struct.pack("<Ii", 0xF993FAC9, 1) + pack_shape(values.shape) + pack_shape(shape)
    head += struct.pack("<3i", 1, 0, TYPES.index(values.dtype.name))
    head += struct.pack("<i", TYPES.index(rows.dtype.name)) + pack_shape(rows.shape)
    return head + values.tobytes() + rows.tobytes()


def pack_file(arrays, names):
    encoded = [name.encode() for name in names]
    text = struct.pack("<3Q", 0x112, 0, len(arrays)) + b"".join(arrays) + struct.pack("<Q", len(names))
    return text + b"".join(struct.pack("<Q", len(name)) + name for name in encoded)


def dense(array):
    return array.tostype("default").asnumpy()


def record(name, expected=None, written_by="MXNet", np_shape=False):
    """Read a file with MXNet, hold it against what was meant, and store what was read."""
    with mx.util.np_shape(np_shape):
        read = mx.nd.load(str(FOLDER / (name + ".params")))
        names = list(read) if isinstance(read, dict) else None
        values = list(read.values()) if isinstance(read, dict) else read
        arrays = [dense(value) for value in values]
    for got, want in zip(arrays, arrays if expected is None else expected):
        if got.dtype != want.dtype or got.shape != want.shape or got.tobytes() != want.tobytes():
            raise ValueError(f"{name}: MXNet read {got}, not {want}")
    meta = {
        "peer": "mxnet",
        "version": mx.__version__,
        "script": Path(__file__).name,
        "written_by": written_by,
        "names": names,
        "storage": [value.stype for value in values],
    }
    numbered = {str(index): value for index, value in enumerate(arrays)}
    write_npz(FOLDER / (name + ".npz"), {"meta": np.array(json.dumps(meta)), **numbered})


def by_mxnet(name, data, np_shape=False):
    with mx.util.np_shape(np_shape):
        mx.nd.save(str(FOLDER / (name + ".params")), data)
    record(name, np_shape=np_shape)


def by_hand(name, layouts, arrays, names=(), np_shape=False):
    (FOLDER / (name + ".params")).write_bytes(pack_file(layouts, names))
    record(name, arrays, "hand", np_shape)


def normal(*shape, dtype="float32"):
    return mx.nd.array(RNG.normal(size=shape), dtype=dtype)


def saved_by_mxnet():
    by_mxnet("named", {"weight": normal(2, 3), "bias": normal(3), "one": normal(1)})
    by_mxnet("unnamed", [normal(2, 2), normal(4, 1, 2)])
    by_mxnet("single", normal(3, 2))
    by_mxnet("empty", {})
    by_mxnet("empty_list", [])
    by_mxnet(
        "checkpoint",
        {
            "arg:conv_weight": normal(2, 1, 3, 3),
            "arg:conv_bias": normal(2),
            "arg:bn_gamma": normal(2),
            "arg:bn_beta": normal(2),
            "aux:bn_moving_mean": normal(2),
            "aux:bn_moving_var": mx.nd.ones((2,)),
        },
    )
    by_mxnet("gluon", {"features.0.weight": normal(2, 3), "net0_conv0_bias": normal(2), "größe": normal(1)})
    integers = np.array([[0, 1, 2], [3, 100, 5]])
    by_mxnet("types", {name: mx.nd.array(integers.astype(name), dtype=name) for name in TYPES})
    by_mxnet(
        "special_values", [mx.nd.array([np.nan, np.inf, -np.inf, -0.0, 1e-45]), normal(2, dtype="float16")]
    )
    sparse = np.array([[0, 0, 0], [1, 0, 2], [0, 0, 0], [0, 3, 0]], np.float32)
    by_mxnet(
        "sparse",
        {
            "rows": mx.nd.array(sparse).tostype("row_sparse"),
            "csr": mx.nd.array(sparse).tostype("csr"),
            "dense": mx.nd.array(sparse),
            "no_rows": mx.nd.zeros((3, 2), stype="row_sparse"),
            "double": mx.nd.array(sparse, dtype="float64").tostype("csr"),
        },
    )
    with mx.util.np_shape(True):
        by_mxnet("numpy_shapes", {"none": mx.nd.zeros((0, 3)), "plain": normal(2, 2)}, np_shape=True)


def written_by_hand():
    weight = RNG.normal(size=(2, 3)).astype(np.float32)
    bias = RNG.normal(size=3).astype(np.float32)
    half = RNG.normal(size=(1, 2, 2)).astype(np.float16)
    count = np.array([1, -2, 3], np.int32)
    arrays, names = [weight, bias, half, count], ["arg:weight", "arg:bias", "aux:half", "count"]
    by_hand("layout_plain", [plain_layout(a) for a in arrays], arrays, names)
    by_hand("layout_plain_unnamed", [plain_layout(a) for a in arrays], arrays)
    by_hand("layout_v1", [v1_layout(a) for a in arrays], arrays, names)
    by_hand("layout_v2", [v2_layout(a) for a in arrays], arrays, names)
    numpy_arrays = [*arrays, np.array(2.5, np.float32), np.zeros((2, 0), np.float32)]
    numpy_names = [*names, "scalar", "nothing"]
    by_hand("layout_v3", [v3_layout(a) for a in numpy_arrays], numpy_arrays, numpy_names, np_shape=True)
    rows = np.array([1, 3], np.int64)
    full = np.zeros((4, 3), np.float32)
    full[rows] = weight
    by_hand(
        "layout_v2_row_sparse",
        [v2_row_sparse(weight, rows, (4, 3)), v2_layout(bias)],
        [full, bias],
        ["a", "b"],
    )
    mixed = [plain_layout(weight), v1_layout(bias), v2_layout(half), v2_layout(count)]
    by_hand("layouts_mixed", mixed, arrays, names)
    on_gpu = [plain_layout(weight, (2, 3)), v1_layout(bias, (2, 0)), v2_layout(half, (2, 7))]
    by_hand("saved_from_gpu", on_gpu, arrays[:3], names[:3])


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    saved_by_mxnet()
    written_by_hand()
    files = list(FOLDER.iterdir())
    print(f"params: {len(files) // 2} files, {sum(path.stat().st_size for path in files) / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
