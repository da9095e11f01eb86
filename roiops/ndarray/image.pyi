"""Written by tools/make_stubs.py from the operators' declarations; do not edit."""
from collections.abc import Sequence
from typing import Any

from roiops.ndarray import Array, NDArray

def adjust_lighting(data: Any, alpha: Any) -> Any: """Light added along the three axes on which ImageNet's colours vary."""
def random_brightness(data: Any, min_factor: Any, max_factor: Any) -> Any: """A picture whose brightness is changed by a factor between the two."""
def random_color_jitter(data: Any, brightness: Any, contrast: Any, saturation: Any, hue: Any) -> Any: """Brightness, contrast, saturation and hue changed by up to these shares, in random order."""
def random_contrast(data: Any, min_factor: Any, max_factor: Any) -> Any: """A picture whose contrast is changed by a factor between the two."""
def random_flip_left_right(data: Any, out: Any = ...) -> Any: """Every second picture as ``flip_left_right`` makes it."""
def random_flip_top_bottom(data: Any, out: Any = ...) -> Any: """Every second picture as ``flip_top_bottom`` makes it."""
def random_hue(data: Any, min_factor: Any, max_factor: Any) -> Any: """A picture whose hue is changed by a factor between the two."""
def random_lighting(data: Any, alpha_std: Any = ...) -> Any: """The same by three normal numbers of standard deviation ``alpha_std``."""
def random_saturation(data: Any, min_factor: Any, max_factor: Any) -> Any: """A picture whose saturation is changed by a factor between the two."""
def resize(data: Any, size: Any = ..., keep_ratio: Any = ..., interp: Any = ..., out: Any = ...) -> Any: """A picture, or each of a batch, of another size by :func:`roiops.image.imresize`."""
def crop(data: Array | None = ..., x: int = ..., y: int = ..., width: int = ..., height: int = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """A rectangle of each picture."""
def flip_left_right(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Each picture with left and right changed."""
def flip_top_bottom(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Each picture with top and bottom changed."""
def normalize(data: Array | None = ..., mean: float | Sequence[float] = ..., std: float | Sequence[float] = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """``(data - mean) / std``, channel by channel."""
def to_tensor(data: Array | None = ..., *, out: Any = ..., name: str | None = ...) -> NDArray: """Pictures with the channels last and numbers up to 255 as float32, channels first, numbers up to 1."""
