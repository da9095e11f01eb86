"""Training in several processes at once, on MPI through mpi4py.

Each process, a rank, computes the gradients of its own pictures. :class:`GradientExchange` adds them up over
the ranks, in buckets, while backward still computes the rest. Every rank then does the same step with the
same sums, so that the weights stay the same, bit for bit.

A sum is made in two parts that together move as many bytes as a ring all-reduce. First each rank gets its
share of the bucket from every other rank (``Ialltoall``) and adds them up **in the order of the ranks**; then
the shares are handed round (``Iallgather``). MPI's own all-reduce may add in another order when ranks are
placed differently; this one cannot, so that the numbers depend on nothing but the number of ranks.
"""

import hashlib
import itertools
import os
import sys
import time
from collections import deque

import numpy as np

from ..errors import DeviceError, GraphError, MXNetError
from ..ndarray import NDArray
from ..ndarray import device as devices
from .stores import KVStore, total_of

__all__ = ["DistributedKVStore", "GradientExchange", "RankedModule", "load_mpi"]

# A rank that waits asks MPI again and again for the first of these seconds, and lets other processes go first
# each time. After that it sleeps in between, for the second. Ranks that sleep answer each other late.
_ASKING, _SLEEP = 20e-3, 1e-4
_let_others_go_first = getattr(os, "sched_yield", lambda: time.sleep(0))


def bucket_bytes_for(nbytes: int) -> int:
    """The size of the pieces in which so many bytes of gradients travel.

    Large enough for bandwidth, small enough that the first start early: an eighth, within these bounds.
    """
    return max(256 << 10, min(4 << 20, nbytes // 8))


def load_mpi():
    """``mpi4py.MPI``, which starts MPI in this process."""
    try:
        from mpi4py import MPI
    except ImportError as error:
        raise DeviceError(
            f"kvstore 'dist_sync' needs mpi4py and an MPI library: pip install mpi4py mpich ({error})"
        ) from None
    return MPI


class DistributedKVStore(KVStore):
    """A store whose sums go over all processes that ``mpiexec`` started. Made by ``kvstore.create``.

    Every process calls the same methods in the same order.

    Attributes
    ----------
    comm : mpi4py.MPI.Comm
        The ranks, for what a script has to tell between them.
    check_every : int
        A module that trains with this store compares its weights on all ranks every so many updates; 0 never.
    """

    check_every = 100

    def __init__(self, type: str = "dist_sync", on_device: bool = False):
        super().__init__(type, on_device)
        self._mpi = load_mpi()
        self.comm = self._mpi.COMM_WORLD.Dup()
        _end_all_on_errors(self._mpi)
        self._parts = _two_parts(self.comm)

    @property
    def rank(self) -> int:
        return self.comm.Get_rank()

    @property
    def num_workers(self) -> int:
        return self.comm.Get_size()

    def row_sparse_pull(self, key, out=None, priority: int = 0, row_ids=None) -> None:
        """Refused: processes exchange whole arrays."""
        raise MXNetError(
            f"KVStore.row_sparse_pull: a {self.type!r} store exchanges whole arrays; use pull(), or a "
            "'local' store"
        )

    def barrier(self) -> None:
        self.comm.Barrier()

    def _share_first_values(self, key, array) -> None:
        every = self.comm.allgather((key, array.shape, np.dtype(array.dtype).name))
        if len(set(every)) > 1:
            listed = "; ".join(f"rank {rank}: {each}" for rank, each in enumerate(every))
            raise MXNetError(f"KVStore.init: the ranks do not initialize the same array: {listed}")
        self.take_from_first(array)

    def take_from_first(self, array: NDArray) -> None:
        """Make ``array`` on every rank what it is on rank 0."""
        host = np.ascontiguousarray(devices.to_host(array.data))
        self.comm.Bcast([host, self._mpi.BYTE], root=0)
        if host is not array.data:
            array[:] = host

    def _summed(self, values, context) -> NDArray:
        total = total_of(values, context)
        if self.num_workers == 1:
            return total
        host = np.array(devices.to_host(total.data), order="C")
        exchange = GradientExchange(self.comm, [("sum", host.shape, host.dtype)], parts=self._parts)
        exchange.arrays["sum"][...] = host
        exchange.start()
        exchange.finish()
        return NDArray(exchange.arrays["sum"]).as_in_context(context)

    def check_equal(self, arrays: dict) -> None:
        """Raise unless every rank has the same names and bits in these arrays; the error names the array."""
        digests = {name: _digest(array) for name, array in arrays.items()}
        whole = hashlib.blake2b("".join(f"{n}{d}" for n, d in digests.items()).encode()).hexdigest()
        if len(set(self.comm.allgather(whole))) == 1:
            return
        every = self.comm.allgather(digests)
        for name in digests:
            seen = [of_rank.get(name) for of_rank in every]
            if len(set(seen)) > 1:
                odd = [rank for rank, digest in enumerate(seen) if digest != seen[0]]
                raise RanksDifferError(
                    f"the ranks no longer agree: {name} differs from rank 0's on rank "
                    f"{', '.join(map(str, odd))} of {len(seen)}"
                )
        raise RanksDifferError("the ranks no longer agree: they hold arrays of different names")


class RanksDifferError(MXNetError):
    """Arrays that should be the same on all ranks are not. Raised on all ranks."""


_ends_all = False


def _end_all_on_errors(mpi) -> None:
    """From here on an error that nobody catches ends all ranks, which would wait for this one for ever."""
    global _ends_all
    if _ends_all or mpi.COMM_WORLD.Get_size() == 1:
        return
    _ends_all, show = True, sys.excepthook

    def hook(kind, error, trace):
        if isinstance(error, RanksDifferError) and mpi.COMM_WORLD.Get_rank() > 0:
            time.sleep(10)  # rank 0 says it and ends all; a rank that is gone before would end it unheard
        else:
            show(kind, error, trace)
        sys.stdout.flush()
        sys.stderr.flush()
        time.sleep(1)  # mpiexec passes on what was printed a little later, and stops when it hears of the end
        mpi.COMM_WORLD.Abort(1)

    sys.excepthook = hook


def _digest(array) -> str:
    host = np.ascontiguousarray(devices.to_host(array.data))
    return hashlib.blake2b(memoryview(host.reshape(-1)).cast("B"), digest_size=16).hexdigest()


def _two_parts(comm) -> tuple:
    """Communicators for the two parts of a sum.

    MPI matches collectives by their order on a communicator, and the ranks do not all start the second part
    of one bucket and the first part of another in the same order.
    """
    return comm.Dup(), comm.Dup()


class _Bucket:
    """A run of the flat gradients that travels as one: a share for each rank, and room for what comes in."""

    def __init__(self, values: np.ndarray, received: np.ndarray, last: int):
        self.values, self.received = values, received
        #: The number of the array, in the order of readiness, after which the bucket is complete.
        self.last = last
        self.request = None


class GradientExchange:
    """Adds up arrays over all ranks, piece by piece, while later arrays are still being computed.

    The arrays lie one after the other in one block of memory, in the order in which they become ready; the
    executor writes its gradients there, and pieces of the block are sent as they are. A second block of the
    same size receives.

    ``arrays`` are triples of name, shape and dtype. About ``bucket_bytes`` travel at once. ``parts`` are
    copies of ``comm`` for the two parts of a sum; exchanges that are never under way together may share them.

    Attributes
    ----------
    arrays : dict of numpy.ndarray
        The arrays by name. They are zero at first, and hold the sums after :meth:`finish`.
    started : bool
        Whether a round is under way.
    waited : float
        Seconds that :meth:`finish` has waited in all, which is the communication that nothing hides.
    """

    def __init__(self, comm, arrays, bucket_bytes: int | None = None, parts=None):
        self._mpi = load_mpi()
        self._ranks, self._rank = comm.Get_size(), comm.Get_rank()
        self._first_part, self._second_part = parts or _two_parts(comm)
        self.arrays: dict = {}
        self._numbers = {name: number for number, (name, _, _) in enumerate(arrays)}
        self._buckets: list[_Bucket] = []
        total = sum(int(np.prod(shape)) * np.dtype(dtype).itemsize for _, shape, dtype in arrays)
        self._lay_out(arrays, bucket_bytes or bucket_bytes_for(total))
        self.nbytes = sum(bucket.values.nbytes for bucket in self._buckets)
        self.waited = 0.0
        self._reset()

    def _lay_out(self, arrays, bucket_bytes) -> None:
        """Give every array its place, and cut the whole into buckets. A change of dtype ends a block."""
        start = 0
        for dtype, of_dtype in itertools.groupby(arrays, key=lambda each: np.dtype(each[2])):
            block = list(of_dtype)
            self._lay_out_block(block, start, dtype, bucket_bytes)
            start += len(block)

    def _lay_out_block(self, arrays, first_number, dtype, bucket_bytes) -> None:
        ranks = self._ranks
        share = max(1, bucket_bytes // dtype.itemsize // ranks)
        sizes = [int(np.prod(shape, dtype=np.int64)) for _, shape, _ in arrays]
        ends = np.cumsum(sizes)
        total = -(-int(ends[-1]) // ranks) * ranks  # the last bucket is padded to equal shares
        block, received = np.zeros(total, dtype), np.empty(total, dtype)
        for (name, shape, _), size, end in zip(arrays, sizes, ends, strict=True):
            self.arrays[name] = block[end - size : end].reshape(shape)
        for begin in range(0, total, share * ranks):
            end = min(begin + share * ranks, total)
            last = first_number + int(np.searchsorted(ends, min(end, int(ends[-1]))))
            self._buckets.append(
                _Bucket(block[begin:end].reshape(ranks, -1), received[begin:end].reshape(ranks, -1), last)
            )

    def _reset(self) -> None:
        self.started = False
        self._done = set()
        self._complete = 0  # arrays before this number are ready
        self._posted = 0  # buckets before this number are on their way
        self._scattering, self._gathering = deque(), deque()

    # -- a round --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin a round; one that was never finished is finished first."""
        if self.started:
            self.finish()
        self.started = True

    def ready(self, names) -> None:
        """These arrays are final in this round; what can travel now does. Other names are passed over."""
        if not self.started:
            return
        self._done.update(self._numbers[name] for name in names if name in self._numbers)
        while self._complete in self._done:
            self._complete += 1
        while self._posted < len(self._buckets) and self._buckets[self._posted].last < self._complete:
            self._post(self._buckets[self._posted])
            self._posted += 1
        self.poll()

    def _post(self, bucket) -> None:
        if self._ranks > 1:
            byte = self._mpi.BYTE
            bucket.request = self._first_part.Ialltoall([bucket.values, byte], [bucket.received, byte])
            self._scattering.append(bucket)

    def poll(self) -> bool:
        """Let MPI do what it can now, which moves no data while nobody calls it. True if data arrived."""
        before = len(self._scattering), len(self._gathering)
        while self._scattering and self._scattering[0].request.Test():
            self._add_up(self._scattering.popleft())
        while self._gathering and self._gathering[0].request.Test():
            self._gathering.popleft()
        return before != (len(self._scattering), len(self._gathering))

    def _add_up(self, bucket) -> None:
        """Sum this rank's share in the order of the ranks, and start to hand it round."""
        own, received = bucket.values[self._rank], bucket.received
        if own.dtype == np.float16:
            own[...] = received.astype(np.float32).sum(axis=0)
        else:
            np.add(received[0], received[1], out=own)
            for other in received[2:]:
                own += other
        byte = self._mpi.BYTE
        bucket.request = self._second_part.Iallgather(self._mpi.IN_PLACE, [bucket.values, byte])
        self._gathering.append(bucket)

    def finish(self) -> None:
        """Send what has not been sent, and wait until every array is the sum over all ranks."""
        begin = last = time.perf_counter()
        self.ready(self._numbers)
        while self._scattering or self._gathering:
            # MPI's own wait keeps the processor, which another rank may need to catch up.
            if self.poll():
                last = time.perf_counter()
            elif time.perf_counter() - last < _ASKING:
                _let_others_go_first()
            else:
                time.sleep(_SLEEP)
        self._reset()
        self.waited += time.perf_counter() - begin


class RankedModule:
    """What a module does to train in step with the other ranks.

    Its gradients are added up while backward runs. Its auxiliary states, such as the running means of
    BatchNorm, take the mean of the ranks' changes, so that they are the same on all ranks, too.

    Weights and auxiliary states, by name, become those of rank 0. ``trained`` lists the parameters that get a
    gradient in the order in which backward finishes them; executors write into ``gradients``. They travel
    ``during_backward`` unless several backwards add up in them.
    """

    def __init__(self, store: DistributedKVStore, weights, auxiliary, trained, during_backward=True):
        self.store, self._weights, self._auxiliary = store, weights, auxiliary
        self._during_backward = during_backward
        self._changes = {name: f"change of {name}" for name in auxiliary}
        arrays = [(name, weights[name].shape, weights[name].dtype) for name in trained]
        arrays += [(self._changes[name], array.shape, array.dtype) for name, array in auxiliary.items()]
        self.exchange = GradientExchange(store.comm, arrays)
        self.gradients = {name: NDArray(self.exchange.arrays[name]) for name in trained}
        self._updates = 0
        self.take_from_first()

    def take_from_first(self) -> None:
        """Make weights and auxiliary states what they are on rank 0."""
        for each in (*self._weights.values(), *self._auxiliary.values()):
            self.store.take_from_first(each)
        self._before = {name: array.asnumpy() for name, array in self._auxiliary.items()}

    def check(self, gradients: dict, names) -> None:
        """Raise unless a network with these parameters trains the same ones as the first.

        The ranks may be at different networks in a step; all must add up and update the same arrays.
        """
        trained = {name for name in names if gradients.get(name) is not None}
        for name in sorted(trained ^ set(self.gradients)):
            one, other = ("first", "other") if name in self.gradients else ("other", "first")
            raise GraphError(
                f"Module: networks that share an optimizer in several processes must train the same "
                f"parameters: the {one} network has {name}, the {other} has not"
            )
        for name in trained:
            if gradients[name] is not self.gradients[name]:
                raise GraphError(f"Module: the gradient of {name} is not that of the first network")

    def watch(self, executor) -> None:
        """Let the gradients of this executor travel as soon as they are final."""
        executor.set_gradient_callback(self.exchange.ready if self._during_backward else None)

    def begin(self) -> None:
        """A backward is about to start."""
        if self._during_backward:
            self.exchange.start()

    def finish(self) -> None:
        """Wait for the sums of the gradients, and bring the auxiliary states together."""
        if not self._during_backward:
            self.exchange.start()
        if not self.exchange.started:
            raise GraphError("Module.update: needs a backward() first; the gradients are added up already")
        arrays, ranks = self.exchange.arrays, self.store.num_workers
        if ranks == 1:
            return
        for name, array in self._auxiliary.items():
            np.subtract(array.data, self._before[name], out=arrays[self._changes[name]])
        self.exchange.finish()
        for name, array in self._auxiliary.items():
            before, change = self._before[name], arrays[self._changes[name]]
            change /= ranks
            before += change
            array.data[...] = before

    def updated(self) -> None:
        """An update is done; now and then compare the weights."""
        self._updates += 1
        if self.store.check_every and self._updates % self.store.check_every == 0:
            self.store.check_equal({**self._weights, **self._auxiliary})
