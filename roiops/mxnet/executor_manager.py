"""``mxnet.executor_manager``: how a batch is divided among devices."""

from ..errors import without
from ..training.module.executor_group import split_batch as _split_input_slice

__all__ = ["_split_input_slice"]

_MANAGERS = ("DataParallelExecutorGroup", "DataParallelExecutorManager")
__getattr__ = without("executor_manager", dict.fromkeys(_MANAGERS, "mx.mod.Module trains on several devices"))
