"""Written by tools/make_stubs.py from the operators' declarations; do not edit."""
from collections.abc import Sequence
from typing import Any

from roiops.ndarray import Array, NDArray

def crop(data: Array | None = ..., x: int = ..., y: int = ..., width: int = ..., height: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """A rectangle of each picture."""
def flip_left_right(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Each picture with left and right changed."""
def flip_top_bottom(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Each picture with top and bottom changed."""
def normalize(data: Array | None = ..., mean: float | Sequence[float] = ..., std: float | Sequence[float] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """``(data - mean) / std``, channel by channel."""
def to_tensor(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Pictures with the channels last and numbers up to 255 as float32, channels first, numbers up to 1."""
