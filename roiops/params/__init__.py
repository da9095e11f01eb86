"""Parameter structs: declared once, parsed from Python or from MXNet's strings, checked, printed back."""

from .field import REQUIRED, Field, dtype, enum, floats, optional, shape
from .parameter import Parameter

__all__ = ["REQUIRED", "Field", "Parameter", "dtype", "enum", "floats", "optional", "shape"]
