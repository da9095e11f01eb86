"""Bind a graph to arrays and run it, forward and backward."""

from .executor import Executor, bind, simple_bind

__all__ = ["Executor", "bind", "simple_bind"]
