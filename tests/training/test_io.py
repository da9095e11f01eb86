"""Data iterators: what comes in which batch, padding, order, prefetching, CSV files."""

import threading
import time

import numpy as np
import pytest

import roiops as mx
from roiops.errors import DataError, MissingFileError, ParamError, ShapeError


def seen(iterator):
    """The first number of every sample, batch by batch."""
    return [batch.data[0].asnumpy().reshape(batch.data[0].shape[0], -1)[:, 0].tolist() for batch in iterator]


def numbers(count, **options):
    return mx.io.NDArrayIter(np.arange(count), np.arange(count) * 10, **options)


# What MXNet 1.9.1 gives for seven samples in batches of three, epoch by epoch, with the padding.
HANDLES = {
    "pad": ([[[0, 1, 2], [3, 4, 5], [6, 0, 1]]] * 2, [[0, 0, 2]] * 2),
    "discard": ([[[0, 1, 2], [3, 4, 5]]] * 2, [[0, 0]] * 2),
    "roll_over": ([[[0, 1, 2], [3, 4, 5]], [[6, 0, 1], [2, 3, 4]]], [[0, 0], [1, 0]]),
}


@pytest.mark.parametrize("handle", HANDLES)
def test_the_last_batch(handle):
    iterator = numbers(7, batch_size=3, last_batch_handle=handle)
    for epoch, pads in zip(*HANDLES[handle], strict=True):
        batches = list(iterator)
        assert [b.data[0].asnumpy().tolist() for b in batches] == epoch
        assert [b.label[0].asnumpy().tolist() for b in batches] == [[10 * i for i in b] for b in epoch]
        assert [b.pad for b in batches] == pads
        assert [b.index.tolist() for b in batches] == epoch
        iterator.reset()


def test_padding_larger_than_the_data_repeats_it():
    assert seen(numbers(2, batch_size=7)) == [[0, 1, 0, 1, 0, 1, 0]]


def test_hard_reset_forgets_what_would_roll_over():
    iterator = numbers(4, batch_size=3, last_batch_handle="roll_over")
    assert seen(iterator) == [[0, 1, 2]]
    iterator.hard_reset()
    assert seen(iterator) == [[0, 1, 2]]


def test_shuffling_is_seeded_and_keeps_pairs_together():
    def epochs():
        np.random.seed(3)  # noqa: NPY002  (as in MXNet)
        iterator = numbers(10, batch_size=5, shuffle=True)
        result = []
        for _ in range(2):
            for batch in iterator:
                assert np.array_equal(batch.data[0].asnumpy() * 10, batch.label[0].asnumpy())
                result += batch.data[0].asnumpy().tolist()
            iterator.reset()
        return result

    order = epochs()
    assert epochs() == order
    assert sorted(order[:10]) == sorted(order[10:]) == list(range(10))
    assert order[:10] != order[10:]


def test_names_shapes_and_dtypes():
    images = mx.nd.array(np.zeros((4, 3, 5, 5)), dtype="uint8")
    iterator = mx.io.NDArrayIter({"image": images, "info": np.ones((4, 3))}, [np.zeros(4), np.ones(4)], 2)
    assert [(d.name, d.shape, d.dtype) for d in iterator.provide_data] == [
        ("image", (2, 3, 5, 5), np.uint8),
        ("info", (2, 3), np.float32),
    ]
    assert [d.name for d in iterator.provide_label] == ["_0_softmax_label", "_1_softmax_label"]
    assert iterator.next().data[0].dtype == np.uint8
    assert str(iterator.next()) == "DataBatch: data shapes: [(2, 3, 5, 5), (2, 3)] label shapes: [(2,), (2,)]"


def test_another_batch_axis():
    iterator = mx.io.NDArrayIter(np.arange(12).reshape(2, 6), batch_size=4, layout="TN")
    assert iterator.provide_data[0].shape == (2, 4)
    assert mx.io.DataDesc.get_batch_axis("TN") == 1
    assert [b.data[0].asnumpy().tolist() for b in iterator][1] == [[4, 5, 0, 1], [10, 11, 6, 7]]


def test_descriptions():
    desc = mx.io.DataDesc("data", (2, 3))
    assert tuple(desc) == ("data", (2, 3))
    assert repr(desc) == "DataDesc[data,(2, 3),<class 'numpy.float32'>,NCHW]"
    assert mx.io.DataDesc.get_list([("a", (1,)), ("b", (2,))], [("b", np.int32)])[1].dtype == np.int32


def test_resize_goes_round():
    iterator = mx.io.ResizeIter(numbers(4, batch_size=2), 3)
    assert seen(iterator) == [[0, 1], [2, 3], [0, 1]]
    iterator.reset()
    assert seen(iterator) == [[0, 1], [2, 3], [0, 1]]
    going_on = mx.io.ResizeIter(numbers(4, batch_size=2), 1, reset_internal=False)
    assert seen(going_on) == [[0, 1]]
    going_on.reset()
    assert seen(going_on) == [[2, 3]]


def test_prefetching_gives_the_same_batches():
    iterator = mx.io.PrefetchingIter(numbers(7, batch_size=3))
    for _ in range(2):
        batches = list(iterator)
        assert [b.data[0].asnumpy().tolist() for b in batches] == HANDLES["pad"][0][0]
        assert [b.pad for b in batches] == [0, 0, 2]
        with pytest.raises(StopIteration):
            iterator.next()
        iterator.reset()
    iterator.close()


def test_prefetching_joins_and_renames():
    iterator = mx.io.PrefetchingIter(
        [numbers(4, batch_size=2), mx.io.NDArrayIter(np.arange(4) + 100, batch_size=2)],
        rename_data=[{"data": "left"}, {"data": "right"}],
    )
    assert [d.name for d in iterator.provide_data] == ["left", "right"]
    batch = iterator.next()
    assert [x.asnumpy().tolist() for x in batch.data] == [[0, 1], [100, 101]]
    assert len(batch.label) == 1
    iterator.close()
    uneven = mx.io.PrefetchingIter([numbers(4, batch_size=2), numbers(2, batch_size=2)])
    uneven.next()
    with pytest.raises(DataError, match="PrefetchingIter: the iterators have unequally many samples"):
        uneven.next()


def test_an_error_in_the_thread_reaches_the_caller():
    class Broken(mx.io.DataIter):
        provide_data, provide_label = [], []

        def next(self):
            raise DataError("broken on purpose")

    iterator = mx.io.PrefetchingIter(Broken())
    with pytest.raises(DataError, match="broken on purpose"):
        iterator.next()
    with pytest.raises(StopIteration):
        iterator.next()


def test_a_forgotten_prefetcher_ends_its_thread():
    threads = set(threading.enumerate())
    iterator = mx.io.PrefetchingIter(mx.io.ResizeIter(numbers(4, batch_size=2), 10**9))
    iterator.next()
    (thread,) = set(threading.enumerate()) - threads
    del iterator
    thread.join(10)
    assert not thread.is_alive()


def test_prefetching_works_ahead():
    made = []

    class Slow(mx.io.DataIter):
        provide_data, provide_label = [], []

        def next(self):
            made.append(len(made))
            if len(made) > 5:
                raise StopIteration
            return mx.io.DataBatch([mx.nd.array([len(made)])], [], 0)

    iterator = mx.io.PrefetchingIter(Slow(), depth=2)
    deadline = time.monotonic() + 10
    while len(made) < 2 and time.monotonic() < deadline:
        time.sleep(0.01)
    assert len(made) == 2
    assert len(list(iterator)) == 5


def test_csv(tmp_path):
    data, label = tmp_path / "data.csv", tmp_path / "label.csv"
    data.write_text("1,2,3,4\n5,6,7,8\n9,10,11,12\n")
    label.write_text("0\n1\n2\n")
    iterator = mx.io.CSVIter(str(data), (2, 2), str(label), batch_size=2)
    assert iterator.provide_data[0] == ("data", (2, 2, 2))
    assert iterator.provide_label[0] == ("softmax_label", (2,))
    batches = list(iterator)
    assert batches[0].data[0].asnumpy().tolist() == [[[1, 2], [3, 4]], [[5, 6], [7, 8]]]
    assert batches[1].label[0].asnumpy().tolist() == [2, 0]
    assert batches[1].pad == 1
    assert len(list(mx.io.CSVIter(str(data), (4,), batch_size=2, round_batch=False, prefetch_buffer=1))) == 2
    with pytest.raises(ShapeError, match=r"data.csv: a line must hold .* shape \(3,\), got 4"):
        mx.io.CSVIter(str(data), (3,))
    label.write_text("0\nx\n")
    with pytest.raises(DataError, match=r"label.csv: .*could not convert"):
        mx.io.CSVIter(str(data), (4,), str(label))


def test_errors():
    with pytest.raises(ShapeError, match=r"the arrays must have equally many samples, got .*'data': 3"):
        mx.io.NDArrayIter(np.zeros((3, 2)), np.zeros(4))
    with pytest.raises(DataError, match="NDArrayIter: data must be an array, a list or a dict, got"):
        mx.io.NDArrayIter(3)
    with pytest.raises(DataError, match="NDArrayIter: data must hold at least one array"):
        mx.io.NDArrayIter([])
    with pytest.raises(ParamError, match="last_batch_handle must be pad, discard or roll_over, got 'drop'"):
        numbers(3, last_batch_handle="drop")
    for wrong in (0, -1, 1.5, 3 / 1, "1", None):
        with pytest.raises(ParamError, match="NDArrayIter: batch_size must be a whole number above 0, got"):
            numbers(3, batch_size=wrong)
    assert len(list(numbers(3, batch_size=np.int64(2)))) == 2
    with pytest.raises(DataError, match="DataBatch: data must be a list of arrays, got NDArray"):
        mx.io.DataBatch(mx.nd.zeros((1,)))
    with pytest.raises(ParamError, match="PrefetchingIter: needs at least one iterator"):
        mx.io.PrefetchingIter([])


@pytest.mark.parametrize(
    ("rounds", "epochs"),
    [
        (True, [["0 1 2", "3 4 0"], ["1 2 3", "4 0 1"], ["2 3 4"], ["0 1 2", "3 4 0"]]),
        (False, [["0 1 2", "3 4 0"]] * 3),
    ],
)
def test_epochs_of_a_csv_file_begin_after_the_samples_that_filled_a_batch(tmp_path, rounds, epochs):
    (tmp_path / "data.csv").write_text("0\n1\n2\n3\n4\n")
    iterator = mx.io.CSVIter(str(tmp_path / "data.csv"), (1,), batch_size=3, round_batch=rounds)
    assert [each.name for each in iterator.provide_label] == ["softmax_label"]
    for expected in epochs:
        batches = [" ".join(f"{n:.0f}" for n in batch.data[0].asnumpy().ravel()) for batch in iterator]
        assert batches == expected
        iterator.reset()


def test_named_arrays_come_sorted():
    iterator = mx.io.NDArrayIter({"b": np.zeros((2, 1)), "a": np.ones((2, 3))}, batch_size=2)
    assert [each.name for each in iterator.provide_data] == ["a", "b"]
    assert next(iterator).data[0].shape == (2, 3)


def test_batches_larger_than_all_samples():
    """As in MXNet."""
    iterator = mx.io.NDArrayIter(np.arange(2.0), batch_size=3, last_batch_handle="roll_over")
    for expected in ([], [([0, 1, 0], 2)], [([1, 0, 1], 1)]):
        assert [(batch.data[0].asnumpy().tolist(), batch.pad) for batch in iterator] == expected
        iterator.reset()
    assert list(mx.io.NDArrayIter(np.arange(2.0), batch_size=3, last_batch_handle="discard")) == []


def test_the_arrays_of_an_iterator_are_ndarrays():
    batches = mx.io.NDArrayIter({"b": np.ones((4, 2)), "a": np.zeros((4, 3))}, np.arange(4.0), 2)
    assert [(name, each.shape) for name, each in batches.data] == [("a", (4, 3)), ("b", (4, 2))]
    assert batches.label[0][1].asnumpy().tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize("make", [lambda inner: mx.io.ResizeIter(inner, 2), mx.io.PrefetchingIter])
def test_batches_can_be_asked_for_part_by_part(make):
    batches = make(mx.io.NDArrayIter(np.arange(3), np.arange(3) + 10, batch_size=2))
    seen = []
    while batches.iter_next():
        (data,), (label,) = batches.getdata(), batches.getlabel()
        assert batches.getindex().tolist() == data.asnumpy().tolist()
        seen.append((data.asnumpy().tolist(), label.asnumpy().tolist(), batches.getpad()))
    assert seen == [([0, 1], [10, 11], 0), ([2, 0], [12, 10], 1)]


def test_a_csv_file_that_is_none(tmp_path):
    path = tmp_path / "a.csv"
    with pytest.raises(MissingFileError, match=r"a\.cvs: No such file or directory"):
        mx.io.CSVIter(str(tmp_path / "a.cvs"), (2,))
    for content, message in (
        ("", "holds no numbers"),
        ("\n\n", "holds no numbers"),
        ("#1,2\n3,4\n", "could not convert string '#1'"),  # left out, it would be of another label
    ):
        path.write_text(content)
        with pytest.raises(DataError, match=rf"a\.csv: {message}"):
            mx.io.CSVIter(str(path), (2,))
    path.write_text("1,2\n\n3,4")
    (batch,) = mx.io.CSVIter(str(path), data_shape=2, batch_size=2)  # (2) is no tuple; MXNet takes it
    assert batch.data[0].asnumpy().tolist() == [[1, 2], [3, 4]]


def test_a_byte_order_mark_is_no_part_of_a_csv_file(tmp_path):
    """As in MXNet: spreadsheets write one."""
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf1,2\r\n3,4\r\n")
    (batch,) = mx.io.CSVIter(str(tmp_path / "a.csv"), (2,), batch_size=2)
    assert batch.data[0].asnumpy().tolist() == [[1, 2], [3, 4]]
