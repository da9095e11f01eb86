"""The store in which devices and processes add up their gradients, by MXNet's names.

``create("local")`` and ``create("device")`` are for the devices of one process. ``create("dist_sync")`` and
``create("dist_device_sync")`` are for the processes that ``mpiexec`` started: see :mod:`roiops.training.mpi`.
"""

from ..errors import DeviceError, ParamError, nearest, without
from .mpi import DistributedKVStore
from .stores import KVStore, KVStoreBase

__all__ = ["KVStore", "KVStoreBase", "create"]

#: The types of store for one process, with whether arrays stay on the device they came from.
_LOCAL = {
    "local": False,
    "local_update_cpu": False,
    "local_allreduce_cpu": False,
    "local_allreduce_device": True,
    "device": True,
}
#: The types of store for many processes, likewise.
_DISTRIBUTED = {"dist": False, "dist_sync": False, "dist_device_sync": True, "dist_sync_device": True}
_REFUSED = {
    "dist_async": "updates that do not wait for each other give other numbers in every run; "
    "use 'dist_sync', in which all processes step together",
    "nccl": "use 'device' for the devices of one process, 'dist_sync' for many processes",
    "horovod": "use 'dist_sync', which adds up gradients by MPI",
    "byteps": "use 'dist_sync', which adds up gradients by MPI",
}
_REFUSED["dist_async_device"] = _REFUSED["dist_device_async"] = _REFUSED["dist_async"]


def create(name: str = "local") -> KVStoreBase:
    """A new store.

    Parameters
    ----------
    name : str
        ``"local"`` or ``"device"``: for the devices of one process; sums are made on the CPU or on the
        device. ``"dist_sync"`` or ``"dist_device_sync"``: for the processes that ``mpiexec`` started, which
        step together. Or the name of a class that is registered with :meth:`KVStoreBase.register`.
    """
    if not isinstance(name, str):
        raise TypeError(f"kvstore.create: name must be a string, got {name!r}")
    name = name.lower()
    if name in KVStoreBase.kv_registry:
        return KVStoreBase.kv_registry[name]()
    if name in _LOCAL:
        return KVStore(name, _LOCAL[name])
    if name in _DISTRIBUTED:
        return DistributedKVStore(name, _DISTRIBUTED[name])
    if name in _REFUSED:
        raise DeviceError(f"kvstore.create: there is no {name!r} store: {_REFUSED[name]}")
    known = [*_LOCAL, *_DISTRIBUTED, *KVStoreBase.kv_registry]
    raise ParamError(f"kvstore.create: unknown type {name!r}{nearest(name, known)}")


__getattr__ = without("kvstore", {"KVStoreServer": "processes are equals here; mpiexec starts them"})
