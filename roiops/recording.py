"""Whether calls of operators are recorded, and made as in training; each thread has its own answer."""

import threading

__all__ = ["Mode", "current"]


class _Current(threading.local):
    #: Whether operators compute as in training.
    training = False
    #: What calls are recorded on: an object of :mod:`roiops.autograd`, or None.
    tape = None


current = _Current()


class Mode:
    """Another mode within a ``with`` block; what is not given stays as it is."""

    def __init__(self, **modes):
        self._modes = modes
        self._before = []

    def __enter__(self):
        self._before.append({name: getattr(current, name) for name in self._modes})
        vars(current).update(self._modes)
        return self

    def __exit__(self, *error):
        vars(current).update(self._before.pop())
