"""Checkpoints of recurrent cells, and the batches that language models take."""

import bisect
import functools
import random

import numpy as np

from ...errors import MXNetError
from ...ndarray import array
from ...training.callback import every
from ...training.checkpoint import load_checkpoint, save_checkpoint
from ...training.io import DataBatch, DataDesc, DataIter
from .cells import BaseRNNCell

__all__ = [
    "BucketSentenceIter",
    "do_rnn_checkpoint",
    "encode_sentences",
    "load_rnn_checkpoint",
    "save_rnn_checkpoint",
]


def _cells(cells) -> list:
    return [cells] if isinstance(cells, BaseRNNCell) else list(cells)


def save_rnn_checkpoint(cells, prefix, epoch, symbol, arg_params, aux_params) -> None:
    """``save_checkpoint`` with the weights of these cells cut into gates."""
    for cell in _cells(cells):
        arg_params = cell.unpack_weights(arg_params)
    save_checkpoint(prefix, epoch, symbol, arg_params, aux_params)


def load_rnn_checkpoint(cells, prefix, epoch):
    """What :func:`save_rnn_checkpoint` wrote: ``(symbol, arg_params, aux_params)``."""
    symbol, arg_params, aux_params = load_checkpoint(prefix, epoch)
    for cell in _cells(cells):
        arg_params = cell.pack_weights(arg_params)
    return symbol, arg_params, aux_params


def do_rnn_checkpoint(cells, prefix, period=1):
    """A callback that saves every ``period`` epochs."""
    return every(period, functools.partial(save_rnn_checkpoint, cells, prefix))


def encode_sentences(
    sentences, vocab=None, invalid_label=-1, invalid_key="\n", start_label=0, unknown_token=None
):
    """Words as numbers: ``(coded sentences, vocabulary)``; a vocabulary that is given does not grow."""
    grows = vocab is None
    vocab = {invalid_key: invalid_label} if grows else vocab
    number, coded = start_label, []
    for sentence in sentences:
        row = []
        for word in sentence:
            if word not in vocab:
                if not (grows or unknown_token):
                    raise MXNetError(f"encode_sentences: the word {word!r} is not in vocab")
                number += number == invalid_label
                word = unknown_token or word
                vocab[word] = number
                number += 1
            row.append(vocab[word])
        coded.append(row)
    return coded, vocab


class BucketSentenceIter(DataIter):
    """Batches of coded sentences of like length; the label of each word is the next one.

    Parameters
    ----------
    sentences : list of list of int
        The sentences.
    buckets : list of int, optional
        The lengths that sentences are padded to; those that fill a batch unless given.
    invalid_label : int
        What they are padded with.
    layout : str
        ``"NT"``, or ``"TN"`` with time first.
    """

    def __init__(
        self,
        sentences,
        batch_size,
        buckets=None,
        invalid_label=-1,
        data_name="data",
        label_name="softmax_label",
        dtype="float32",
        layout="NT",
    ):
        super().__init__(batch_size)
        if sorted(layout) != ["N", "T"]:
            raise ValueError(f"BucketSentenceIter: layout must be 'NT' or 'TN', got {layout!r}")
        if not buckets:
            counts = np.bincount([len(sentence) for sentence in sentences])
            buckets = [length for length, count in enumerate(counts) if count >= batch_size]
        rows: dict[int, list] = {length: [] for length in sorted(buckets)}
        lengths = list(rows)
        discarded = 0
        for sentence in sentences:
            at = bisect.bisect_left(lengths, len(sentence))
            if at == len(lengths):
                discarded += 1
                continue
            row = np.full(lengths[at], invalid_label, dtype)
            row[: len(sentence)] = sentence
            rows[lengths[at]].append(row)
        # MXNet's words, and like there on standard output.
        print(f"WARNING: discarded {discarded} sentences longer than the largest bucket.")
        self.buckets = [length for length, kept in rows.items() if kept]
        self.data = [np.asarray(rows[length], dtype) for length in self.buckets]
        self.data_name, self.label_name = data_name, label_name
        self.dtype, self.invalid_label, self.layout = dtype, invalid_label, layout
        self.default_bucket_key = max(self.buckets)
        self.provide_data = self._described(data_name, self.default_bucket_key)
        self.provide_label = self._described(label_name, self.default_bucket_key)
        self.idx = [
            (i, start)
            for i, kept in enumerate(self.data)
            for start in range(0, len(kept) - batch_size + 1, batch_size)
        ]
        self.reset()

    def _described(self, name, length) -> list:
        shape = (self.batch_size, length)
        return [DataDesc(name, shape if self.layout == "NT" else shape[::-1], layout=self.layout)]

    def reset(self):
        self.curr_idx = 0
        random.shuffle(self.idx)
        for kept in self.data:
            np.random.shuffle(kept)  # noqa: NPY002  (scripts seed NumPy's old generator)

    def next(self):
        if self.curr_idx == len(self.idx):
            raise StopIteration
        i, start = self.idx[self.curr_idx]
        self.curr_idx += 1
        data = self.data[i][start : start + self.batch_size]
        label = np.full_like(data, self.invalid_label)
        label[:, :-1] = data[:, 1:]
        arrays = [array(each if self.layout == "NT" else each.T, dtype=self.dtype) for each in (data, label)]
        length = self.buckets[i]
        return DataBatch(
            arrays[:1],
            arrays[1:],
            pad=0,
            bucket_key=length,
            provide_data=self._described(self.data_name, length),
            provide_label=self._described(self.label_name, length),
        )
