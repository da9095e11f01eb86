"""DataLoader: batches of a dataset, made by worker processes or threads."""

import multiprocessing
from collections import deque
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures import TimeoutError as FutureTimeout

import numpy as np

from ... import random
from ...ndarray import NDArray, array, stack
from .sampler import BatchSampler, RandomSampler, SequentialSampler

__all__ = ["DataLoader", "default_batchify_fn", "default_mp_batchify_fn"]


def default_batchify_fn(data):
    """Samples as one batch: arrays stacked, tuples entry by entry."""
    if isinstance(data[0], NDArray):
        return stack(*data, num_args=len(data))
    if isinstance(data[0], tuple):
        return [default_batchify_fn(list(each)) for each in zip(*data, strict=True)]
    stacked = np.asarray(data)
    return array(stacked, dtype=stacked.dtype)


default_mp_batchify_fn = default_batchify_fn


class _MultiWorkerIter:
    """A name that GluonCV imports, for a loader of its own that its networks do not use."""

    def __init__(self, *args, **kwargs):
        raise NotImplementedError(
            "_MultiWorkerIter is not here; DataLoader(..., num_workers=n) makes batches in workers"
        )


#: The dataset of a worker process.
_dataset = None


def _begin(dataset, workers) -> None:
    """In a worker: keep its dataset, and draw other random numbers than the ``workers`` that began before."""
    global _dataset
    _dataset = dataset
    with workers.get_lock():
        random.set_state(random.generator().bit_generator.jumped(workers.value).state)
        workers.value += 1


def _make(dataset, indices, batchify_fn):
    dataset = _dataset if dataset is None else dataset
    return batchify_fn([dataset[i] for i in indices])


class DataLoader:
    """Batches of a dataset.

    The arguments are MXNet's: ``batchify_fn`` makes a batch of a list of samples; ``num_workers`` processes,
    or with ``thread_pool`` threads, make ``prefetch`` batches ahead, each within ``timeout`` seconds.
    ``pin_memory``, ``pin_device_id``, ``try_nopython`` and ``auto_reload`` do nothing.
    """

    def __init__(
        self,
        dataset,
        batch_size=None,
        shuffle=False,
        sampler=None,
        last_batch=None,
        batch_sampler=None,
        batchify_fn=None,
        num_workers=0,
        pin_memory=False,
        pin_device_id=0,
        prefetch=None,
        thread_pool=False,
        timeout=120,
        try_nopython=None,
        auto_reload=False,
    ):
        if batch_sampler is None:
            if batch_size is None:
                raise ValueError("batch_size must be specified unless batch_sampler is specified")
            if sampler is not None and shuffle:
                raise ValueError("shuffle must not be specified if sampler is specified")
            if sampler is None:
                sampler = (RandomSampler if shuffle else SequentialSampler)(len(dataset))
            batch_sampler = BatchSampler(sampler, batch_size, last_batch or "keep")
        elif batch_size is not None or shuffle or sampler is not None or last_batch is not None:
            raise ValueError(
                "batch_size, shuffle, sampler and last_batch must not be specified if batch_sampler is "
                "specified."
            )
        self._dataset, self._batch_sampler, self._timeout = dataset, batch_sampler, timeout
        self._batchify_fn = batchify_fn or default_batchify_fn
        self._num_workers = max(0, num_workers)
        self._prefetch = max(0, 2 * self._num_workers if prefetch is None else int(prefetch))
        self._threads, self._pool = thread_pool, None
        if self._num_workers and thread_pool:
            self._pool = ThreadPoolExecutor(self._num_workers)
        elif self._num_workers:
            forks = "fork" in multiprocessing.get_all_start_methods()
            context = multiprocessing.get_context("fork" if forks else None)
            given = dataset, context.Value("i", 0)
            self._pool = ProcessPoolExecutor(self._num_workers, context, _begin, given)

    def __iter__(self):
        if self._pool is None:
            for indices in self._batch_sampler:
                yield _make(self._dataset, indices, self._batchify_fn)
            return
        dataset, coming = self._dataset if self._threads else None, deque()
        for batch in self._batch_sampler:
            coming.append(self._pool.submit(_make, dataset, batch, self._batchify_fn))
            if len(coming) > self._prefetch:
                yield self._result(coming.popleft())
        while coming:
            yield self._result(coming.popleft())

    def _result(self, batch):
        try:
            return batch.result(self._timeout)
        except FutureTimeout:
            if batch.done():  # the dataset's own error
                raise
            raise multiprocessing.TimeoutError(
                f"a batch took longer than {self._timeout} s; where the dataset or a transform is slow, give "
                "DataLoader a larger timeout or more workers"
            ) from None

    def __len__(self):
        return len(self._batch_sampler)

    def __del__(self):
        if getattr(self, "_pool", None) is not None:
            self._pool.shutdown(wait=False, cancel_futures=True)
