"""Batches of data: what they are called, and iterators that make them."""

import gzip
import importlib
import math
import numbers
import zlib
from collections import deque, namedtuple
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from ..errors import DataError, ParamError, ShapeError
from ..ndarray import NDArray, array, sparse
from ..ndarray.files import open_file

__all__ = [
    "CSVIter",
    "DataBatch",
    "DataDesc",
    "DataIter",
    "MNISTIter",
    "MXDataIter",
    "NDArrayIter",
    "PrefetchingIter",
    "ResizeIter",
]


class DataDesc(namedtuple("DataDesc", ["name", "shape"])):
    """Name and shape of an input, with its dtype and layout as attributes.

    Parameters
    ----------
    name : str
        The name of the variable it feeds.
    shape : tuple of int
        The shape of a batch.
    dtype : dtype
        The type of its numbers.
    layout : str
        One letter a dimension; ``N`` is the batch.
    """

    def __new__(cls, name, shape, dtype=np.float32, layout="NCHW"):
        self = super().__new__(cls, name, tuple(shape))
        self.dtype, self.layout = dtype, layout
        return self

    def __repr__(self):
        return f"DataDesc[{self.name},{self.shape},{self.dtype},{self.layout}]"

    @staticmethod
    def get_batch_axis(layout) -> int:
        """Which dimension is the batch."""
        return 0 if layout is None else layout.find("N")

    @staticmethod
    def get_list(shapes, types=None) -> list:
        """Descriptions from pairs (name, shape) and pairs (name, dtype)."""
        types = dict(types or ())
        return [DataDesc(name, shape, types.get(name, np.float32)) for name, shape in shapes]


def descriptions(shapes) -> list[DataDesc]:
    """``shapes``, descriptions or tuples of what describes one, as descriptions; none for None."""
    try:
        if not any(isinstance(each, str) for each in shapes or ()):
            return [each if isinstance(each, DataDesc) else DataDesc(*each) for each in shapes or ()]
    except TypeError:
        pass
    raise DataError(f"shapes must be a list of (name, shape) or of DataDesc, got {shapes!r}")


class DataBatch:
    """One batch: lists of arrays.

    Parameters
    ----------
    data, label : list of NDArray
        The inputs and the labels.
    pad : int, optional
        How many samples at the end only fill up the batch.
    index : numpy.ndarray, optional
        Which samples these are.
    bucket_key : optional
        Which network of a BucketingModule takes it.
    provide_data, provide_label : list of DataDesc, optional
        Descriptions, where they differ from the iterator's.
    """

    def __init__(
        self, data, label=None, pad=None, index=None, bucket_key=None, provide_data=None, provide_label=None
    ):
        for name, arrays in (("data", data), ("label", label)):
            if arrays is not None and not isinstance(arrays, list | tuple):
                raise DataError(f"DataBatch: {name} must be a list of arrays, got {type(arrays).__name__}")
        self.data, self.label = data, label
        self.pad, self.index = pad, index
        self.bucket_key = bucket_key
        self.provide_data, self.provide_label = provide_data, provide_label

    def __str__(self):
        labels = [x.shape for x in self.label] if self.label else None
        return f"{type(self).__name__}: data shapes: {[x.shape for x in self.data]} label shapes: {labels}"


class DataIter:
    """An iterator of batches that can be started anew.

    A subclass overrides :meth:`next`, or the methods from :meth:`iter_next` on; and has the attributes or
    properties ``provide_data`` and ``provide_label``, lists of :class:`DataDesc`.
    """

    def __init__(self, batch_size=0):
        self.batch_size = batch_size

    def __iter__(self):
        return self

    def __next__(self):
        return self.next()

    def reset(self) -> None:
        """Start from the first batch."""

    def next(self) -> DataBatch:
        """The next batch; StopIteration after the last."""
        if not self.iter_next():
            raise StopIteration
        return DataBatch(self.getdata(), self.getlabel(), self.getpad(), self.getindex())

    def iter_next(self) -> bool:
        """Move on to the next batch, if there is one."""
        return False

    def getdata(self):
        """The inputs of the current batch."""

    def getlabel(self):
        """The labels of the current batch."""

    def getindex(self):
        """Which samples are in the current batch, where that is known."""

    def getpad(self):
        """How many samples of the current batch only fill it up."""
        return 0


class BatchIter(DataIter):
    """An iterator of what :meth:`_next_batch` gives, which can be asked for the parts of that, too."""

    current_batch = None

    def next(self) -> DataBatch:
        self.current_batch = None
        self.current_batch = self._next_batch()
        return self.current_batch

    def iter_next(self):
        return next(self, None) is not None

    def _current(self) -> DataBatch:
        if self.current_batch is None:
            raise DataError(f"{type(self).__name__}: there is no batch before next or iter_next gives one")
        return self.current_batch

    def getdata(self):
        return self._current().data

    def getlabel(self):
        return self._current().label

    def getindex(self):
        return self._current().index

    def getpad(self):
        return self._current().pad


class MXDataIter(DataIter):
    """An iterator that reads files, by which scripts know those of MXNet that are not written in Python.

    A subclass names it before the iterator whose input and label it gives without the list around them.
    """

    def getdata(self):
        """The input of the current batch, which is one array."""
        return super().getdata()[0]

    def getlabel(self):
        """The label of the current batch, which is one array."""
        return super().getlabel()[0]


def _named_arrays(data, default_name: str) -> list:
    """``data`` as pairs (name, NDArray): an array, a list of arrays, or a dict of them."""
    if data is None:
        return []
    if isinstance(data, np.ndarray | NDArray) or _is_csr(data):
        data = [data]
    if isinstance(data, list | tuple):
        many = len(data) > 1
        data = {f"_{i}_{default_name}" if many else default_name: each for i, each in enumerate(data)}
    if not isinstance(data, dict):
        raise DataError(
            f"NDArrayIter: {default_name} must be an array, a list or a dict, got {type(data).__name__}"
        )
    # As in MXNet, they are sorted by name, and NumPy arrays become float32 unless they are NDArrays already.
    return [
        (name, (sparse.csr_matrix if _is_csr(each) else array)(each))
        for name, each in sorted(data.items(), key=lambda pair: pair[0])
    ]


def _is_csr(value) -> bool:
    """Whether this is a CSR matrix, or any of SciPy's sparse ones."""
    return getattr(value, "stype", "") == "csr" or hasattr(value, "tocsr")


def check_batch_size(iterator: str, batch_size) -> None:
    """Raise unless it is a whole number above 0, which what a script divides need not be."""
    if not isinstance(batch_size, numbers.Integral) or batch_size < 1:
        raise ParamError(f"{iterator}: batch_size must be a whole number above 0, got {batch_size!r}")


class NDArrayIter(DataIter):
    """Batches of arrays that are in memory.

    Parameters
    ----------
    data, label : array, list of arrays, or dict of arrays
        Inputs and labels; their first dimension (or that of ``N`` in ``layout``) counts the samples.
    batch_size : int
        Samples in a batch.
    shuffle : bool
        Whether each epoch has another order, drawn from ``numpy.random`` as in MXNet: scripts seed that.
    last_batch_handle : str
        What becomes of samples that do not fill a batch: ``"pad"`` fills up with the first ones,
        ``"discard"`` drops them, ``"roll_over"`` starts the next epoch with them.
    data_name, label_name : str
        Names where the arrays have none.
    layout : str
        Which dimension is the batch.
    """

    def __init__(
        self,
        data,
        label=None,
        batch_size=1,
        shuffle=False,
        last_batch_handle="pad",
        data_name="data",
        label_name="softmax_label",
        layout="NCHW",
    ):
        check_batch_size("NDArrayIter", batch_size)
        super().__init__(batch_size)
        named = _named_arrays(data, data_name), _named_arrays(label, label_name)
        self._csr = {name for pairs in named for name, each in pairs if each.stype == "csr"}
        if self._csr and last_batch_handle != "discard":
            raise NotImplementedError(
                "NDArrayIter: last_batch_handle must be 'discard' with CSR matrices, "
                f"got {last_batch_handle!r}"
            )
        self._data, self._label = ([(name, each.asnumpy()) for name, each in pairs] for pairs in named)
        #: The same arrays as NDArrays.
        as_arrays = [[(name, NDArray(each)) for name, each in a] for a in (self._data, self._label)]
        self.data, self.label = as_arrays
        self.layout, self._axis = layout, layout.find("N")
        if not self.data:
            raise DataError("NDArrayIter: data must hold at least one array")
        counts = {name: each.shape[self._axis] for name, each in (*self._data, *self._label)}
        self.num_data = next(iter(counts.values()))
        if len(set(counts.values())) > 1:
            raise ShapeError(f"NDArrayIter: the arrays must have equally many samples, got {counts}")
        if last_batch_handle not in ("pad", "discard", "roll_over"):
            raise ParamError(
                f"NDArrayIter: last_batch_handle must be pad, discard or roll_over, got {last_batch_handle!r}"
            )
        self.shuffle, self.last_batch_handle = shuffle, last_batch_handle
        self.idx = np.arange(self.num_data)
        self._order = self.idx.copy()  # what all shuffles so far make of the samples
        self._left_over = self.idx[:0]
        self.hard_reset()

    @property
    def provide_data(self):
        """Descriptions of the data arrays of a batch."""
        return [self._describe(*pair) for pair in self._data]

    @property
    def provide_label(self):
        """Descriptions of the label arrays of a batch."""
        return [self._describe(*pair) for pair in self._label]

    def _describe(self, name, each):
        shape = list(each.shape)
        shape[self._axis] = self.batch_size
        return DataDesc(name, tuple(shape), each.dtype.type, self.layout)

    def hard_reset(self):
        """Start anew, and forget what would have rolled over."""
        self._left_over = self._left_over[:0]
        self._start()

    def reset(self):
        self._start()

    def _start(self):
        if self.shuffle:
            np.random.shuffle(self.idx)  # noqa: NPY002  (scripts seed it; MXNet shuffles so, too)
            self._order = self._order[self.idx]
        self._queue = np.concatenate([self._left_over, self._order])
        self._rolled = len(self._left_over)
        self._left_over = self._left_over[:0]
        self.cursor = -self.batch_size

    def iter_next(self):
        self.cursor += self.batch_size
        rest = len(self._queue) - self.cursor
        if 0 < rest < self.batch_size and self.last_batch_handle != "pad":
            if self.last_batch_handle == "roll_over":
                self._left_over = self._queue[self.cursor :]
            return False
        return rest > 0

    def getindex(self):
        """Which samples are in the current batch."""
        chosen = self._queue[self.cursor : self.cursor + self.batch_size]
        return np.concatenate([chosen, np.resize(self._order, self._short())])

    def _short(self) -> int:
        return max(0, self.cursor + self.batch_size - len(self._queue))

    def getdata(self):
        return self._gather(self._data)

    def getlabel(self):
        return self._gather(self._label)

    def _gather(self, named):
        index = self.getindex()
        batch = [(name, array(each.take(index, self._axis), dtype=each.dtype)) for name, each in named]
        return [each.tostype("csr") if name in self._csr else each for name, each in batch]

    def getpad(self):
        if self.cursor == 0 and self._rolled:  # MXNet counts the samples that rolled over as padding
            return self._rolled
        return self._short()


class ResizeIter(BatchIter):
    """Another iterator with ``size`` batches an epoch, started anew in between where it is shorter.

    Parameters
    ----------
    data_iter : DataIter
        The iterator.
    size : int
        Batches in an epoch.
    reset_internal : bool
        Whether a reset starts the other iterator anew, too.
    """

    def __init__(self, data_iter, size, reset_internal=True):
        super().__init__(data_iter.batch_size)
        self.data_iter, self.size, self.reset_internal = data_iter, size, reset_internal
        self.provide_data, self.provide_label = data_iter.provide_data, data_iter.provide_label
        if hasattr(data_iter, "default_bucket_key"):
            self.default_bucket_key = data_iter.default_bucket_key
        self.cur = 0

    def reset(self):
        self.cur = 0
        if self.reset_internal:
            self.data_iter.reset()

    def _next_batch(self):
        if self.cur == self.size:
            raise StopIteration
        self.cur += 1
        try:
            return self.data_iter.next()
        except StopIteration:
            self.data_iter.reset()
            return self.data_iter.next()


class PrefetchingIter(BatchIter):
    """Make the batches of one or several iterators in a thread, ahead of their use.

    An exception in the thread is raised by :meth:`next`.

    Parameters
    ----------
    iters : DataIter or list of DataIter
        Where batches come from; those of several are joined.
    rename_data, rename_label : list of dict, optional
        Other names for the inputs, one dict an iterator.
    depth : int
        How many batches may lie ready.
    """

    def __init__(self, iters, rename_data=None, rename_label=None, depth=2):
        self.iters = list(iters) if isinstance(iters, list | tuple) else [iters]
        if not self.iters:
            raise ParamError("PrefetchingIter: needs at least one iterator")
        self.rename_data, self.rename_label = rename_data, rename_label
        super().__init__(self.iters[0].batch_size)
        self._depth = depth
        self._launch()

    @property
    def provide_data(self):
        """Descriptions of the data arrays of a batch."""
        return self._described("provide_data", self.rename_data)

    @property
    def provide_label(self):
        """Descriptions of the label arrays of a batch."""
        return self._described("provide_label", self.rename_label)

    def _described(self, attribute, renames):
        result = []
        for i, each in enumerate(self.iters):
            for desc in descriptions(getattr(each, attribute)):
                name = renames[i].get(desc.name, desc.name) if renames else desc.name
                result.append(DataDesc(name, desc.shape, desc.dtype, desc.layout))
        return result

    def _launch(self):
        self._thread, self._coming = ThreadPoolExecutor(1), deque()
        self._source = _together(self.iters)
        for _ in range(max(1, self._depth)):
            self._ask_for_another()

    def _ask_for_another(self):
        self._coming.append(self._thread.submit(next, self._source, None))

    def close(self):
        """Stop the thread."""
        self._coming.clear()
        self._thread.shutdown(cancel_futures=True)

    def reset(self):
        self.close()
        for each in self.iters:
            each.reset()
        self._launch()

    def _next_batch(self):
        batches = self._coming.popleft().result() if self._coming else None
        if batches is None:
            raise StopIteration
        self._ask_for_another()
        first = batches[0]
        data = [each for batch in batches for each in batch.data]
        label = [each for batch in batches for each in batch.label or ()]
        single = len(batches) == 1
        return DataBatch(
            data,
            label,
            first.pad,
            first.index,
            bucket_key=first.bucket_key,
            provide_data=first.provide_data if single and not self.rename_data else None,
            provide_label=first.provide_label if single and not self.rename_label else None,
        )


def _together(iters):
    """The batches of several iterators, one of each at a time. After their end or an error nothing comes."""
    while True:
        batches = [next(each, None) for each in iters]
        if all(batch is None for batch in batches):
            return
        if any(batch is None or batch.pad != batches[0].pad for batch in batches):
            raise DataError("PrefetchingIter: the iterators have unequally many samples")
        yield batches


class _FileIter(MXDataIter, NDArrayIter):
    """Batches from files that are read at once."""

    def next(self) -> DataBatch:
        if not self.iter_next():
            raise StopIteration
        return DataBatch([self.getdata()], [self.getlabel()], self.getpad(), self.getindex())


class CSVIter(_FileIter):
    """Batches from comma-separated files, one sample a line.

    Parameters
    ----------
    data_csv : str
        The file of the inputs.
    data_shape : tuple of int
        The shape of one sample.
    label_csv : str, optional
        The file of the labels; zeros unless given.
    label_shape : tuple of int
        The shape of one label.
    batch_size : int
        Samples in a batch.
    round_batch : bool
        Whether the samples that fill up the last batch are left out of the next epoch.
    dtype : str
        The dtype of inputs and labels.
    prefetch_buffer, ctx
        Accepted for MXNet's sake.
    """

    def __init__(
        self,
        data_csv,
        data_shape,
        label_csv=None,
        label_shape=(1,),
        batch_size=1,
        round_batch=True,
        data_name="data",
        label_name="softmax_label",
        dtype="float32",
        prefetch_buffer=4,
        ctx="gpu",
    ):
        data = _read_csv(data_csv, data_shape, dtype)
        if label_csv is None:
            label = np.zeros((len(data), 1), dtype)
        else:
            label = _read_csv(label_csv, label_shape, dtype)
        if label.shape[1:] == (1,):
            label = label.reshape(-1)
        data, label = (array(each, dtype=dtype) for each in (data, label))
        self._rounds = round_batch
        super().__init__(data, label, batch_size, data_name=data_name, label_name=label_name)

    def reset(self):
        at_end = self.cursor + self.batch_size >= len(self._queue)
        used = -len(self._queue) % self.batch_size if self._rounds and at_end else 0
        super().reset()
        self._queue = self._queue[used % self.num_data :]


def _read_csv(path, shape, dtype):
    with open_file(path) as file:
        lines = [line for line in file if line.strip()]
    if not lines:
        raise DataError(f"{path}: holds no numbers")
    try:
        values = np.loadtxt(lines, dtype, comments=None, delimiter=",", ndmin=2, encoding="utf-8-sig")
    except ValueError as error:
        raise DataError(f"{path}: {error}") from None
    if values.shape[1] != np.prod(shape):
        raise ShapeError(
            f"{path}: a line must hold {np.prod(shape)} numbers for shape {shape}, got {values.shape[1]}"
        )
    return values.reshape(-1, *np.ravel(shape))


class MNISTIter(_FileIter):
    """Batches from the two files of MNIST, or of data stored like it; what fills no batch is left out.

    Parameters
    ----------
    image : str
        The file of the pictures. Their values come divided by 256.
    label : str
        The file of the labels.
    batch_size : int
        Samples in a batch.
    shuffle : bool
        Whether the samples are put in another order, once; not MXNet's order.
    flat : bool
        Whether a picture is a row of numbers, in place of one channel with rows and columns.
    seed : int
        What the order follows from.
    silent : bool
        Whether nothing is printed; roiops prints nothing.
    num_parts, part_index : int
        Into how many parts the samples are cut, and which of them is read.
    """

    def __init__(
        self,
        image="./train-images-idx3-ubyte",
        label="./train-labels-idx1-ubyte",
        batch_size=128,
        shuffle=True,
        flat=False,
        seed=0,
        silent=False,
        num_parts=1,
        part_index=0,
        data_name="data",
        label_name="softmax_label",
        **unused,
    ):
        if not 0 <= part_index < num_parts:
            raise ParamError(f"MNISTIter: part_index must be 0 to {num_parts - 1}, got {part_index}")
        data, labels = _read_idx(image, 3), _read_idx(label, 1)
        if len(data) != len(labels):
            raise DataError(f"MNISTIter: {image} has {len(data)} pictures, {label} {len(labels)} labels")
        start, end = (int(len(data) / num_parts * part) for part in (part_index, part_index + 1))
        data, labels = data[start:end], labels[start:end]
        if shuffle:
            order = np.random.default_rng(seed % 2**64).permutation(len(data))
            data, labels = data[order], labels[order]
        data = data.reshape((len(data), -1) if flat else (len(data), 1, *data.shape[1:]))
        super().__init__(
            array(data.astype(np.float32) / np.float32(256)),
            array(labels, dtype=np.float32),
            batch_size,
            last_batch_handle="discard",
            data_name=data_name,
            label_name=label_name,
        )


def _read_idx(path, dimensions: int) -> np.ndarray:
    """The bytes of a file of MNIST: a number that tells the kind, the sizes, and the values."""
    with open_file(path) as file:
        content = file.read()
    if str(path).endswith(".gz"):
        try:
            content = gzip.decompress(content)
        except (OSError, EOFError, zlib.error) as error:
            raise DataError(f"{path}: {error}") from None
    head = 4 * (1 + dimensions)
    shape = tuple(int.from_bytes(content[i : i + 4], "big") for i in range(4, head, 4))
    values, count = np.frombuffer(content, np.uint8)[head:], math.prod(shape)
    if len(content) < head or content[:4] != bytes([0, 0, 8, dimensions]):
        raise DataError(f"{path}: is no file of bytes of {dimensions} dimensions, as MNIST's are")
    if values.size < count:
        raise DataError(f"{path}: ends after {values.size} of the {count} values of shape {shape}")
    return values[:count].reshape(shape)


#: What reads record files of pictures is in modules that import this one.
_OF_RECORDS = {
    "ImageDetRecordIter": "record_det_iter",
    **dict.fromkeys(("ImageRecordInt8Iter", "ImageRecordIter", "ImageRecordUInt8Iter"), "record_iter"),
}


def __getattr__(name):
    known = name.removesuffix("_v1")
    if known in _OF_RECORDS:
        return getattr(importlib.import_module(f".image.{_OF_RECORDS[known]}", __package__), known)
    if name.endswith(("Iter", "Iter_v1")):
        raise AttributeError(
            f"io.{name} is not here: record files are read by mx.io.ImageRecordIter and "
            "mx.io.ImageDetRecordIter, folders of pictures by mx.image.ImageIter, arrays by "
            "mx.io.NDArrayIter; or write a subclass of mx.io.DataIter"
        )
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
