"""A block of simulated threads that runs one thread at a time, which is both quick and strict.

numba's simulator polls its threads, and those of a block run as the interpreter happens to switch. Here each
thread runs until it waits for the others or ends, then hands over to the next; the order is reversed with
every block. Results that depend on the order, because a ``syncthreads`` is missing, then differ. All threads
of a block must come to the same barriers, by line, one after the other: on a GPU others need not wait.
"""

import sys
import threading

import numpy as np
from numba.cuda.simulator import kernel as simulator

__all__ = ["Block", "install"]


class _Thread(simulator.BlockThread):
    def __init__(self, target, block, block_index, thread_index):
        super().__init__(target, block, block_index, thread_index, False)
        self.turn = threading.Lock()  # free where it is this thread's turn
        self.turn.acquire()
        self.block = block
        self.barriers = 0  # that this thread has come to

    def run(self):
        self.turn.acquire()
        if not self.abort:
            super().run()
        self.block.ended(self)

    def syncthreads(self):
        self.block.meet(self, _lines())
        self.block.next_after(self)
        self.turn.acquire()
        if self.abort:
            raise RuntimeError("another thread of the block has failed")


def _lines():
    """Where the kernel is: the lines of it and of its device functions."""
    frame, lines = sys._getframe(3), []  # past this, the thread's ``syncthreads`` and the module's
    while frame.f_code.co_name != "target":
        lines.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    return lines


class Block:
    """What the simulator calls a block manager."""

    backwards = False

    def __init__(self, function, grid_dim, block_dim, debug):
        self._function, self._block_dim = function, block_dim
        self._finished = threading.Event()
        self._alive, self._barriers = [], []

    def run(self, grid_point, *args):
        def target():
            with np.errstate(all="ignore"):
                self._function(*args)

        self._alive = [_Thread(target, self, grid_point, at) for at in np.ndindex(*self._block_dim)]
        Block.backwards = not Block.backwards
        if Block.backwards:
            self._alive.reverse()
        threads = list(self._alive)
        for thread in threads:
            thread.start()
        threads[0].turn.release()
        self._finished.wait()
        for thread in threads:
            thread.join()
        for thread in threads:
            if thread.exception and not thread.abort:
                raise thread.exception[0].with_traceback(thread.exception[1])
        for thread in threads:
            if thread.barriers < len(self._barriers):
                raise RuntimeError(f"a thread has not come to {self._barriers[thread.barriers]}")

    def meet(self, thread, lines):
        """See that a thread comes to the barrier that the others came to."""
        if thread.barriers == len(self._barriers):
            self._barriers.append(lines)
        elif self._barriers[thread.barriers] != lines:
            raise RuntimeError(
                f"a barrier at {lines}, where others were at {self._barriers[thread.barriers]}"
            )
        thread.barriers += 1

    def next_after(self, thread):
        """Hand over to the next thread; from the last, all go on past the barrier, the first one first."""
        self._alive[(self._alive.index(thread) + 1) % len(self._alive)].turn.release()

    def ended(self, thread):
        at = self._alive.index(thread)
        self._alive.remove(thread)
        if not self._alive:
            self._finished.set()
            return
        if thread.exception:
            for other in self._alive:
                other.abort = True
        self._alive[at % len(self._alive)].turn.release()


def install():
    """Have the simulator use :class:`Block`."""
    simulator.BlockManager = Block
