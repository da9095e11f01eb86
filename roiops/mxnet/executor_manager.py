"""``mxnet.executor_manager``: how a batch is divided among devices."""

from ..training.module.executor_group import split_batch as _split_input_slice

__all__ = ["_split_input_slice"]
