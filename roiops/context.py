"""Devices: ``cpu()``, ``gpu(i)`` and the current one."""

import threading

from .errors import DeviceError, without

__all__ = ["Context", "cpu", "cpu_pinned", "current_context", "gpu", "num_gpus"]

_TYPE_IDS = {"cpu": 1, "gpu": 2, "cpu_pinned": 3, "cpu_shared": 5}


class _Entered(threading.local):
    """The contexts whose ``with`` statements a thread is in."""

    def __init__(self):
        self.contexts = []


_entered = _Entered()
#: Types of devices that the CPU stands in for.
_replaced: set[str] = set()
#: What counts the CUDA devices; arrays, which lie on them, put it here.
_counters: list = []


class _ContextType(type):
    @property
    def default_ctx(cls) -> "Context":
        """The current context, which old scripts set here."""
        return current_context()

    @default_ctx.setter
    def default_ctx(cls, ctx) -> None:
        _entered.contexts[-1:] = [Context(ctx)]  # as in MXNet, a with statement around it ends it


class Context(metaclass=_ContextType):
    """A device. Used as a context manager it becomes the current one.

    Parameters
    ----------
    device_type : str or Context
        ``"cpu"`` or ``"gpu"``; ``"cpu_pinned"`` and ``"cpu_shared"`` are accepted and are the CPU.
    device_id : int
        Which of the devices of that type.
    """

    __slots__ = ("device_id", "device_type")
    devstr2type = _TYPE_IDS
    devtype2str = {number: name for name, number in _TYPE_IDS.items()}

    def __init__(self, device_type, device_id: int = 0):
        if isinstance(device_type, Context):
            device_type, device_id = device_type.device_type, device_type.device_id
        if device_type not in _TYPE_IDS:
            raise DeviceError(f"Context: device_type must be one of {sorted(_TYPE_IDS)}, got {device_type!r}")
        if int(device_id) != device_id:
            raise DeviceError(f"Context: device_id must be a whole number, got {device_id!r}")
        self.device_type: str = "cpu" if device_type in _replaced else device_type
        self.device_id = 0 if device_type in _replaced else int(device_id)

    @property
    def device_typeid(self) -> int:
        """MXNet's number for the type of device."""
        return _TYPE_IDS[self.device_type]

    @property
    def is_gpu(self) -> bool:
        """Whether arrays here are in the memory of a CUDA device."""
        return self.device_type == "gpu"

    def empty_cache(self) -> None:
        """Nothing: no memory is kept for arrays to come."""

    def __eq__(self, other):
        if not isinstance(other, Context):
            return NotImplemented
        return (self.device_type, self.device_id) == (other.device_type, other.device_id)

    def __hash__(self):
        return self.device_id

    def __repr__(self):
        return f"{self.device_type}({self.device_id})"

    def __enter__(self):
        _entered.contexts.append(self)
        return self

    def __exit__(self, *exc):
        _entered.contexts.pop()


_CPU = Context("cpu", 0)


def cpu(device_id: int = 0) -> Context:
    """The CPU."""
    return Context("cpu", device_id)


def cpu_pinned(device_id: int = 0) -> Context:
    """MXNet's page-locked host memory; here the same as the CPU."""
    return Context("cpu_pinned", device_id)


def gpu(device_id: int = 0) -> Context:
    """The CUDA device number ``device_id``. Nothing is touched until an array is placed on it."""
    return Context("gpu", device_id)


def replace_gpus() -> None:
    """From here on every ``gpu(i)`` is the CPU, for scripts that ask for a GPU without being asked."""
    _replaced.add("gpu")


def current_context() -> Context:
    """The context of the innermost ``with`` statement of this thread, or ``cpu(0)``."""
    return _entered.contexts[-1] if _entered.contexts else _CPU


def num_gpus() -> int:
    """How many CUDA devices can be used; 0 where there is no driver or no CUDA package,
    and where CPUs stand for them."""
    return _counters[-1]() if _counters and "gpu" not in _replaced else 0


__getattr__ = without("context", {"gpu_memory_info": "nvidia-smi tells how much memory GPUs have left"})
