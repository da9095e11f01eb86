"""Many pictures through one model, in several processes of a machine.

:func:`predict_many` hands pictures to worker processes and yields predictions as they are done. The weights
are written once to a file that all workers map into their memory. Each worker has a pipe of its own, so that
the process that hands out knows which pictures a worker has; when a worker dies, another is started and gets
them again, one at a time, so that a picture that ends its worker is found out and reported, not tried for
ever.

:class:`ResultsFile` keeps predictions as lines of JSON, and knows which pictures it has.
"""

import contextlib
import hashlib
import json
import mmap
import multiprocessing
import os
import pickle
import queue
import signal
import tempfile
import threading
from collections import deque
from multiprocessing import connection
from pathlib import Path

import numpy as np

from ..errors import FormatError, MXNetError, SettingsError
from ..ndarray.files import replacing
from ..processors import share
from .outputs import json_text
from .predict import PictureModel, Prediction, name_of

__all__ = ["ResultsFile", "SharedModel", "predict_many"]

#: How often a picture may be alone with a worker that dies, or a worker may die before it is ready.
_MOST_DEATHS = 2
#: Arrays begin at multiples of this in the shared file.
_ALIGNMENT = 64


class SharedModel(contextlib.AbstractContextManager):
    """A model whose weights lie in a file that any number of processes of this machine map.

    It pickles to a few kilobytes. Use it as a context manager, or call :meth:`close`, to remove the file. On
    Linux the file has no name, so that nothing of it stays even where this process is killed.

    ``model`` is any object that pickles; its NumPy arrays are shared. The file goes to ``folder``: unless
    given, ``/dev/shm`` where there is one with room, else the folder for temporary files.
    """

    def __init__(self, model, folder=None):
        buffers: list = []
        self._head = pickle.dumps(model, protocol=5, buffer_callback=buffers.append)
        views = [each.raw() for each in buffers]
        self._places, end = [], 0
        for view in views:
            start = -(-end // _ALIGNMENT) * _ALIGNMENT
            end = start + view.nbytes
            self._places.append((start, end))
        number, self._path = tempfile.mkstemp(".roiops-weights", dir=folder or _shared_folder(end))
        self._owner, self._file = os.getpid(), open(number, "wb")  # noqa: SIM115  (closed by close)
        try:
            if os.path.exists(f"/proc/{self._owner}/fd/{number}"):
                os.unlink(self._path)
                self._path = f"/proc/{self._owner}/fd/{number}"  # as long as this process has it open
            self._file.truncate(end)
            for (start, _), view in zip(self._places, views, strict=True):
                self._file.seek(start)
                self._file.write(view)
            self._file.flush()
        except BaseException:
            self.close()
            raise

    def __getstate__(self):
        return {**self.__dict__, "_file": None}

    def open(self):
        """The model, its arrays in the shared memory. What is written there stays in this process."""
        if self._places and self._places[-1][1]:
            with open(self._path, "rb") as file:
                mapped = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_COPY)
            buffers = [memoryview(mapped)[start:end] for start, end in self._places]
        else:
            buffers = [bytearray() for _ in self._places]
        return pickle.loads(self._head, buffers=buffers)

    def close(self) -> None:
        """Remove the file; processes that have it open keep it until they end."""
        if self._file is None or os.getpid() != self._owner:
            return
        self._file.close()
        with contextlib.suppress(OSError):
            os.unlink(self._path)

    def __exit__(self, *exc):
        self.close()


def _shared_folder(nbytes: int) -> str | None:
    """Memory as a folder, where it has space for twice this."""
    try:
        space = os.statvfs("/dev/shm")
    except (OSError, AttributeError):
        return None
    return "/dev/shm" if space.f_bavail * space.f_frsize > 2 * nbytes else None


# -- the process that hands out --------------------------------------------------------------------------


def predict_many(model: PictureModel, pictures, workers: int = 2, *, after=None, threads: int | None = None):
    """Yield ``(key, Prediction)`` for each of ``pictures``, each exactly once, in their order.

    Pictures and ``after`` are as for :meth:`PictureModel.stream`, and must pickle; ``after`` runs in the
    workers. Pictures are read as far as there is work to hand out. ``threads`` are those of each worker's
    network: the processors divided by the workers unless given.
    """
    if workers < 1:
        raise MXNetError(f"predict_many: workers must be at least 1, got {workers}")
    threads = threads or max(1, share().threads // workers)
    with SharedModel(model) as shared:
        pool = _Pool(shared, iter(pictures), workers, 4 * model.batch + 8, (after, threads))
        try:
            yield from pool.run()
        finally:
            pool.stop()


class _Worker:
    """A process, its pipe, and the pictures that it has and has not answered."""

    def __init__(self, start, shared, how):
        self.pipe, theirs = start.Pipe()
        self.process = start.Process(target=_work, args=(shared, theirs, *how), daemon=True)
        self.process.start()
        theirs.close()
        self.has: dict = {}
        self.ready = False


class _Pool:
    def __init__(self, shared, pictures, workers, most, how):
        self.shared, self.pictures, self.most, self.how = shared, pictures, most, how
        # A fresh interpreter: a fork would take over threads and locks in whatever state they are.
        self.start = multiprocessing.get_context("spawn")
        #: Pictures that a worker which died had: tried again one at a time.
        self.suspects: deque = deque()
        #: How often each suspect was alone with a worker that died.
        self.deaths: dict = {}
        #: How many pictures were taken, and of how many the predictions are out.
        self.number = self.yielded = 0
        #: Predictions that wait for those of earlier pictures.
        self.done: dict = {}
        self.ended = False
        #: Workers that died one after the other before they were ready.
        self.failed_starts = 0
        self.workers = [_Worker(self.start, shared, how) for _ in range(workers)]

    def run(self):
        while True:
            for worker in self.workers:
                self._feed(worker)
            if self.ended and not self.suspects and not any(worker.has for worker in self.workers):
                return
            readable = connection.wait([worker.pipe for worker in self.workers])
            for worker in [each for each in self.workers if each.pipe in readable]:
                self._receive(worker)
            while self.yielded in self.done:
                yield self.done.pop(self.yielded)
                self.yielded += 1

    def _feed(self, worker) -> None:
        """Give a worker as much as it may have. A suspect goes to a worker that has nothing else."""
        if self.suspects and not worker.has:
            self._send(worker, *self.suspects.popleft())
            return
        has_suspect = any(number in self.deaths for number in worker.has)
        ahead = self.yielded + 2 * len(self.workers) * self.most
        while not self.ended and not has_suspect and len(worker.has) < self.most and self.number < ahead:
            try:
                key, picture = next(self.pictures)
            except StopIteration:
                self.ended = True
                return
            self._send(worker, self.number, key, picture)
            self.number += 1

    def _send(self, worker, number, key, picture) -> None:
        worker.has[number] = (key, picture)
        with contextlib.suppress(OSError):  # it has died, which _receive finds out
            worker.pipe.send((number, picture))

    def _receive(self, worker):
        try:
            number, answer = worker.pipe.recv()
        except (EOFError, OSError):
            self._replace(worker)
            return
        if number is None:
            if answer is not None:
                raise MXNetError(answer)
            worker.ready, self.failed_starts = True, 0
            return
        key, _ = worker.has.pop(number)
        self.deaths.pop(number, None)
        self.done[number] = (key, answer)

    def _replace(self, worker):
        """Start another worker in the place of one that died, and see to the pictures that it had."""
        worker.process.join()
        worker.pipe.close()
        ended = _ended(worker.process.exitcode)
        if not worker.ready:
            self.failed_starts += 1
            if self.failed_starts >= _MOST_DEATHS:
                raise MXNetError(f"workers end before they are ready: {ended}")
        for number, (key, picture) in worker.has.items():
            died = self.deaths.get(number, 0) + (worker.ready and len(worker.has) == 1)
            if died < _MOST_DEATHS:
                self.deaths[number] = died
                self.suspects.append((number, key, picture))
                continue
            del self.deaths[number]
            error = f"a worker died over it {died} times: {ended}"
            self.done[number] = (key, Prediction(name_of(key, picture), error=error))
        self.workers[self.workers.index(worker)] = _Worker(self.start, self.shared, self.how)

    def stop(self) -> None:
        """End the workers, at once if they have work."""
        for worker in self.workers:
            if worker.has:
                worker.process.terminate()
            worker.pipe.close()  # for a worker without work, the end
        for worker in self.workers:
            worker.process.join(5)
            if worker.process.is_alive():
                worker.process.kill()
                worker.process.join()


def _ended(code) -> str:
    if code is not None and code < 0:
        with contextlib.suppress(ValueError):
            return f"killed by {signal.Signals(-code).name}"
    return f"exit code {code}"


# -- a worker --------------------------------------------------------------------------------------------


def _work(shared: SharedModel, pipe, after, threads) -> None:
    """Answer pictures until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that hands out
    os.environ["NUMBA_NUM_THREADS"] = str(threads)  # numba is not loaded yet
    try:
        model, problem = shared.open(), None
    except Exception as error:
        model, problem = None, f"a worker could not open the model: {type(error).__name__}: {error}"
    try:
        pipe.send((None, problem))
    except OSError:  # all work was done before this worker had started
        return
    if problem:
        return
    # Always being read, so that neither side waits for the other to take what it sends.
    arrived: queue.SimpleQueue = queue.SimpleQueue()
    threading.Thread(target=_receive_all, args=(pipe, arrived), daemon=True).start()

    def following(may_wait):
        try:
            pair = arrived.get(may_wait)
        except queue.Empty:
            return None
        if pair is None:
            raise StopIteration
        return pair

    with contextlib.suppress(BrokenPipeError, ConnectionError):
        try:
            for answer in model.stream(following, after):
                pipe.send(answer)
        except SettingsError as error:
            pipe.send((None, str(error)))


def _receive_all(pipe, arrived) -> None:
    with contextlib.suppress(EOFError, OSError):
        while True:
            arrived.put(pipe.recv())
    arrived.put(None)


# -- results in a file -----------------------------------------------------------------------------------


class ResultsFile(contextlib.AbstractContextManager):
    """Predictions as lines of JSON, each written whole as soon as it is there.

    A file that is there is an error, unless ``resume`` says to go on with it. Then a last line that was cut
    short is removed, and so are lines that tell an error, so that their pictures can be tried again.

    ``count`` says how many lines there are, ``errors`` how many of them tell an error, and ``removed`` how
    many lines of errors were removed.
    """

    def __init__(self, path, resume: bool = False):
        self.path = Path(path)
        self.count = self.errors = self.removed = 0
        self._known = _NameSet()
        if self.path.exists() and not self.path.is_file():
            raise MXNetError(f"{path}: is no file; give another name")
        if resume and self.path.exists():
            self._read()
        elif self.path.exists():
            raise MXNetError(
                f"{path}: is there already; --resume (resume=True) goes on with it, or give another name"
            )
        # Unbuffered: a line is in the system's hands as soon as it is written, whatever becomes of us.
        self._file = open(self.path, "ab", buffering=0)  # noqa: SIM115  (closed by close)

    def _read(self) -> None:
        with replacing(self.path) as target, open(self.path, "rb") as file:
            for number, line in enumerate(file, start=1):
                if not line.endswith(b"\n"):
                    break  # cut short
                try:
                    content = json.loads(line)
                    name, failed = content["picture"], "error" in content
                except (ValueError, KeyError, TypeError):
                    raise FormatError(
                        f"{self.path}, line {number}: not a line of results, {line[:60]!r}"
                    ) from None
                if failed:
                    self.removed += 1
                    continue
                self._known.add(name)
                self.count += 1
                target.write(line)
        self._known.freeze()

    def __contains__(self, picture) -> bool:
        """Whether the file had a line with a result for this picture when it was opened."""
        return os.fspath(picture) in self._known

    def write(self, prediction: Prediction, **further) -> None:
        """Add a line."""
        content = {**prediction.to_dict(), **further}
        try:
            line = json_text(content, ensure_ascii=False).encode()
        except UnicodeEncodeError:  # a file name whose bytes are no UTF-8: JSON's escapes keep it
            line = json_text(content).encode()
        data = memoryview(line + b"\n")
        while data:
            data = data[self._file.write(data) :]
        self.count += 1
        self.errors += prediction.error is not None

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def __exit__(self, *exc):
        self.close()


class _NameSet:
    """Names in 16 bytes each, so that those of many millions of pictures fit in memory."""

    def __init__(self):
        self._added = bytearray()
        self._sorted = np.empty(0, "S16")

    @staticmethod
    def _digest(name: str) -> bytes:
        return hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=16).digest()

    def add(self, name: str) -> None:
        self._added += self._digest(name)

    def freeze(self) -> None:
        """Sort what was added; from here on names can be looked up."""
        self._sorted = np.sort(np.frombuffer(self._added, "S16"))
        self._added = bytearray()

    def __contains__(self, name: str) -> bool:
        digest = self._digest(name)
        place = np.searchsorted(self._sorted, digest)
        return digest in self._sorted[place : place + 1]
