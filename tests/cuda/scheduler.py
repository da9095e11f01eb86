"""A block of simulated threads that runs one thread at a time, which is both quick and strict.

numba's simulator polls its threads, and those of a block run as the interpreter happens to switch. Here each
thread runs until it waits for the others or ends, then hands over to the next; the order is reversed with
every block. Results that depend on the order, because a ``syncthreads`` is missing, then differ.
"""

import threading

import numpy as np
from numba.cuda.simulator import kernel as simulator

__all__ = ["Block", "install"]


class _Thread(simulator.BlockThread):
    def __init__(self, target, block, block_index, thread_index):
        super().__init__(target, block, block_index, thread_index, False)
        self.turn = threading.Semaphore(0)
        self.block = block

    def run(self):
        self.turn.acquire()
        if not self.abort:
            super().run()
        self.block.ended(self)

    def syncthreads(self):
        self.block.next_after(self)
        self.turn.acquire()
        if self.abort:
            raise RuntimeError("another thread of the block has failed")


class Block:
    """What the simulator calls a block manager."""

    backwards = False

    def __init__(self, function, grid_dim, block_dim, debug):
        self._function, self._block_dim = function, block_dim
        self._finished = threading.Event()
        self._alive = []

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
