"""``mxnet.base``: the names that scripts import from there."""

import ctypes
import os

import numpy as np

from ..errors import GraphError, MXNetError

__all__ = [
    "MXNetError",
    "NDArrayHandle",
    "NotImplementedForSymbol",
    "data_dir",
    "integer_types",
    "mx_real_t",
    "numeric_types",
    "py_str",
    "string_types",
]

#: The dtype of arrays for which none is given.
mx_real_t = np.float32
string_types = (str,)
integer_types = (int, np.int32, np.int64)
numeric_types = (float, int, np.generic)

#: What ``ctypes.cast(array, NDArrayHandle)`` gives, as monitors have it; NDArray makes an array of it again.
NDArrayHandle = ctypes.c_void_p

#: What asking a symbol for a value raises.
NotImplementedForSymbol = GraphError


def py_str(text) -> str:
    """Text as a string, from bytes or a string."""
    return text.decode() if isinstance(text, bytes) else str(text)


def data_dir() -> str:
    """The folder for files that MXNet downloads: ``$MXNET_HOME``, or ``.mxnet`` in the user's folder."""
    return os.environ.get("MXNET_HOME") or os.path.join(os.path.expanduser("~"), ".mxnet")
