"""Statistics of every array inside a network, while it runs."""

import logging
import math
import re

import numpy as np

from ..ndarray import NDArray, array

__all__ = ["Monitor"]


def _mean_size(x):
    """The root mean square, as an array of one element."""
    return array([math.sqrt(np.mean(np.square(x.asnumpy(), dtype=np.float64))) if x.size else math.nan])


class Monitor:
    """Gathers a statistic of outputs, weights and gradients every ``interval`` batches.

    Parameters
    ----------
    interval : int
        Batches between two looks.
    stat_func : callable, optional
        From an NDArray to the statistic; the root mean square unless given.
    pattern : str
        A regular expression that the start of a name must match.
    sort : bool
        Whether results come by name.
    monitor_all : bool
        Whether operators' inputs are looked at, too.
    """

    def __init__(self, interval, stat_func=None, pattern=".*", sort=False, monitor_all=False):
        self.interval, self.sort, self.monitor_all = interval, sort, monitor_all
        self.stat_func = stat_func or _mean_size
        self.re_prog = re.compile(pattern)
        self.queue, self.exes = [], []
        self.step, self.activated = 0, False

    def install(self, exe, monitor_all=None) -> None:
        """Look at an executor."""
        exe.set_monitor_callback(self._note, self.monitor_all if monitor_all is None else monitor_all)
        self.exes.append(exe)

    def move(self, exe, other) -> None:
        """Look at another executor in the place of one."""
        self.exes = [other if each is exe else each for each in self.exes]

    def _note(self, name, value) -> None:
        if self.activated and self.re_prog.match(name):
            self.queue.append((self.step, name, self.stat_func(value)))

    def tic(self) -> None:
        """Before a forward pass: look at this batch if its turn has come."""
        if self.step % self.interval == 0:
            self.queue = []
            self.activated = True
        self.step += 1

    def toc(self) -> list:
        """After the batch: ``(batch, name, text)`` of everything seen."""
        if not self.activated:
            return []
        for exe in self.exes:
            for held in (exe.arg_dict, exe.aux_dict):
                for name, value in held.items():
                    self._note(name, value)
        self.activated = False
        seen = sorted(self.queue, key=lambda each: each[1]) if self.sort else self.queue
        self.queue = []
        return [(step, name, _text(stat)) for step, name, stat in seen]

    def toc_print(self) -> None:
        """:meth:`toc`, logged."""
        for step, name, text in self.toc():
            logging.info("Batch: %7d %-30s %s", step, name, text)


def _text(stat) -> str:
    each = stat if isinstance(stat, list | tuple) else [stat]
    return "".join(f"{_number(x) if isinstance(x, NDArray) else x}\t" for x in each)


def _number(x) -> str:
    return str(x.asnumpy().reshape(-1)[0] if x.shape in ((), (1,)) else x.asnumpy())
