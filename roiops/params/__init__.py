"""Parameter structs: declared once, parsed from Python or from MXNet's strings, checked, printed back."""

from .field import MOST_ARRAYS, REQUIRED, Field, device, dtype, enum, floats, optional, shape
from .parameter import Parameter

__all__ = [
    "MOST_ARRAYS",
    "REQUIRED",
    "Field",
    "Parameter",
    "device",
    "dtype",
    "enum",
    "floats",
    "optional",
    "shape",
]
