"""Samplers: in which order the samples of a dataset are read."""

import numpy as np

__all__ = ["BatchSampler", "FilterSampler", "RandomSampler", "Sampler", "SequentialSampler"]


class Sampler:
    """Base of samplers: iterable, with a length."""

    def __iter__(self):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError


class _Listed(Sampler):
    """A sampler whose numbers are known beforehand."""

    def __init__(self, indices):
        self._indices = indices

    def __iter__(self):
        return iter(self._indices)

    def __len__(self):
        return len(self._indices)


class SequentialSampler(_Listed):
    """The numbers from ``start`` on, in order."""

    def __init__(self, length, start=0):
        super().__init__(range(start, start + length))


class RandomSampler(_Listed):
    """The numbers below ``length``, in another order each time."""

    def __init__(self, length):
        super().__init__(range(length))

    def __iter__(self):
        order = np.arange(len(self))
        np.random.shuffle(order)  # noqa: NPY002 - scripts seed this one
        return iter(order.tolist())


class FilterSampler(_Listed):
    """The numbers of the samples for which ``fn(sample)`` is true."""

    def __init__(self, fn, dataset):
        super().__init__([i for i in range(len(dataset)) if fn(dataset[i])])


class BatchSampler(Sampler):
    """Lists of ``batch_size`` numbers of a sampler.

    Those that do not fill a list are kept, discarded, or with ``last_batch="rollover"`` come next time.
    """

    def __init__(self, sampler, batch_size, last_batch="keep"):
        if last_batch not in ("keep", "discard", "rollover"):
            raise ValueError(
                f"last_batch must be one of 'keep', 'discard', or 'rollover', but got {last_batch}"
            )
        if batch_size < 1:
            raise ValueError(f"batch_size must be at least 1, but got {batch_size}")
        self._sampler, self._batch_size, self._last_batch = sampler, batch_size, last_batch
        self._left = []

    def __iter__(self):
        batch, self._left = self._left, []
        for i in self._sampler:
            batch.append(i)
            if len(batch) == self._batch_size:
                yield batch
                batch = []
        if batch and self._last_batch == "keep":
            yield batch
        elif self._last_batch == "rollover":
            self._left = batch

    def __len__(self):
        count = len(self._sampler) + len(self._left)  # of which only rollover leaves any
        return -(-count // self._batch_size) if self._last_batch == "keep" else count // self._batch_size
