"""Random numbers: one generator for operators, initializers and ``nd.random``, which ``seed`` resets."""

import importlib

import numpy as np

__all__ = ["generator", "get_state", "seed", "set_state"]

# A fixed seed to start with, as in MXNet: a program that sets none gives the same numbers each time.
_generator = np.random.Generator(np.random.PCG64(0))


def seed(seed_state: int, ctx="all") -> None:
    """Make all random numbers from here on reproducible, on every device, whatever ``ctx`` says."""
    _generator.bit_generator.state = np.random.PCG64(int(seed_state) % 2**64).state


def generator() -> np.random.Generator:
    """The generator that everything draws from. It stays the same object when it is seeded."""
    return _generator


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
