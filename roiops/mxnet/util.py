"""``mxnet.util``: the names that scripts import from there."""

import os

from ..context import num_gpus
from ..errors import without
from ..shapes import is_np_shape, np_shape, set_np_shape, use_np_shape

__all__ = [
    "get_gpu_count",
    "getenv",
    "is_np_array",
    "is_np_shape",
    "np_shape",
    "set_np_shape",
    "setenv",
    "use_np_shape",
]


def is_np_array() -> bool:
    """False: arrays are those of ``mxnet.nd``, whatever the convention of shapes."""
    return False


def get_gpu_count() -> int:
    """How many GPUs can be used."""
    return num_gpus()


def getenv(name: str) -> str | None:
    """The value of an environment variable, or None."""
    return os.environ.get(name)


def setenv(name: str, value: str | None) -> None:
    """Set an environment variable, or with None remove it."""
    if value is None:
        os.environ.pop(name, None)
    else:
        os.environ[name] = value


_NUMPY = ("np_array", "np_ufunc_legal_option", "reset_np", "set_np", "use_np", "use_np_array")
_GPU = ("get_cuda_compute_capability", "get_gpu_memory")
__getattr__ = without(
    "util",
    {
        **dict.fromkeys(_NUMPY, "MXNet's NumPy interface is not here; arrays are those of mx.nd"),
        **dict.fromkeys(_GPU, "`roiops doctor` and nvidia-smi describe GPUs"),
    },
)
