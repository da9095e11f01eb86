"""Random numbers: one generator for operators, initializers and ``nd.random``, which ``seed`` resets."""

import contextlib
import importlib
import os
import threading

import numpy as np

__all__ = ["generator", "get_state", "repeated_from", "seed", "set_state"]


def _begun_at(state: dict | None = None) -> np.random.Generator:
    made = np.random.Generator(np.random.PCG64(0))
    if state is not None:
        made.bit_generator.state = state
    return made


# A fixed seed to start with, as in MXNet: a program that sets none gives the same numbers each time.
_generator = _begun_at()


_at_fork: dict | None = None  # where the sequence stood when this process was forked


def _before_fork() -> None:
    global _at_fork
    _at_fork = get_state()


def _after_fork() -> None:
    """Another object of the same state: a thread that is not here may have held the lock of this one."""
    global _generator
    _generator = _begun_at(_at_fork)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before_fork, after_in_child=_after_fork)


class _Here(threading.local):
    generator = None  # what this thread draws from now, if not from the one of all


_here = _Here()


def seed(seed_state: int, ctx="all") -> None:
    """Make all random numbers from here on reproducible, on every device, whatever ``ctx`` says."""
    _generator.bit_generator.state = np.random.PCG64(int(seed_state) % 2**64).state


def generator() -> np.random.Generator:
    """The generator that everything draws from now; not to be kept."""
    return _here.generator or _generator


@contextlib.contextmanager
def repeated_from(state: dict):
    """Within the ``with`` statement, this thread draws once more what was drawn from a state on."""
    _here.generator = _begun_at(state)
    try:
        yield
    finally:
        _here.generator = None


def get_state() -> dict:
    """Where the sequence stands: numbers and strings, fit for JSON."""
    return _generator.bit_generator.state


def set_state(state: dict) -> None:
    """Go on from where :func:`get_state` was called."""
    _generator.bit_generator.state = state


def __getattr__(name):  # the drawing functions, as mx.random has them; they need NDArray, which stands above
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("..ndarray.random", __name__), name)
