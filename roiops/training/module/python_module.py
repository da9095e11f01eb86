"""Modules whose computation is Python, without parameters."""

import logging

import numpy as np

from ... import ndarray
from ...errors import ParamError
from .base_module import BaseModule, as_list

__all__ = ["PythonLossModule", "PythonModule"]


class PythonModule(BaseModule):
    """Base of modules without parameters: a subclass computes in ``forward`` and ``backward``.

    A subclass also says in ``_compute_output_shapes`` what its outputs' shapes are.

    Parameters
    ----------
    data_names, label_names, output_names : list of str
        Their names.
    """

    def __init__(self, data_names, label_names, output_names, logger=logging):
        super().__init__(logger)
        self._data_names, self._output_names = list(data_names), list(output_names)
        self._label_names = None if label_names is None else list(label_names)
        self._data_shapes = self._label_shapes = self._output_shapes = None

    @property
    def label_names(self) -> list[str] | None:
        """Names of the labels."""
        return self._label_names

    # As in MXNet, None before it is bound.
    data_shapes = property(lambda self: self._data_shapes)
    label_shapes = property(lambda self: self._label_shapes)
    output_shapes = property(lambda self: self._output_shapes)

    def _bind(
        self, data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req
    ):
        """Remember the shapes; there are no executors."""
        if grad_req != "write":
            raise ParamError(f"Python module only support write gradient, got grad_req {grad_req!r}")
        names = [description[0] for description in data_shapes]
        if names != self._data_names:
            raise ParamError(f"{type(self).__name__}.bind: data must be {self._data_names}, got {names}")
        self._data_shapes = data_shapes
        self._label_shapes = label_shapes if self._label_names is not None else None
        self._output_shapes = self._compute_output_shapes()

    def _compute_output_shapes(self):
        raise NotImplementedError()

    def init_params(
        self,
        initializer=None,
        arg_params=None,
        aux_params=None,
        allow_missing=False,
        force_init=False,
        allow_extra=False,
    ) -> None:
        """Nothing: there are no parameters."""
        self.params_initialized = True

    def get_params(self):
        return {}, {}

    def init_optimizer(
        self,
        kvstore="local",
        optimizer="sgd",
        optimizer_params=(("learning_rate", 0.01),),
        force_init=False,
    ) -> None:
        """Nothing: there are no parameters."""
        self.optimizer_initialized = True

    def update(self) -> None:
        """Nothing: there are no parameters."""

    def update_metric(self, eval_metric, labels, pre_sliced=False) -> None:
        if self._label_shapes is None:
            return  # outputs are not compared with labels
        if pre_sliced:
            raise RuntimeError("PythonModule does not support presliced labels")
        eval_metric.update(labels, self.get_outputs())

    def install_monitor(self, mon) -> None:
        """Nothing: there are no executors."""


class PythonLossModule(PythonModule):
    """A loss whose outputs are its data, and whose gradient is a function in Python.

    Parameters
    ----------
    name : str
        What the name of the output begins with.
    grad_func : callable
        ``grad_func(scores, labels)`` gives the gradient of the scores, as an array.
    """

    def __init__(
        self,
        name="pyloss",
        data_names=("data",),
        label_names=("softmax_label",),
        logger=logging,
        grad_func=None,
    ):
        super().__init__(data_names, label_names, [f"{name}_output"], logger)
        if len(self._data_names) != 1 or len(self._label_names) != 1:
            raise ParamError("PythonLossModule: it takes one data and one label")
        if grad_func is not None and not callable(grad_func):
            raise ParamError("PythonLossModule: grad_func must be callable")
        self._name, self._grad_func = name, grad_func
        self._scores = self._labels = self._scores_grad = None

    def _compute_output_shapes(self):
        return [(f"{self._name}_output", self._data_shapes[0][1])]

    def forward(self, data_batch, is_train=None) -> None:
        self._scores = data_batch.data[0]
        if self.for_training if is_train is None else is_train:
            self._labels = data_batch.label[0]

    def get_outputs(self, merge_multi_context=True) -> list:
        return [self._scores]

    def backward(self, out_grads=None) -> None:
        if as_list(out_grads):
            raise ParamError("For a loss module, out_grads should be None")
        self._backward_impl()

    def _backward_impl(self) -> None:
        """The gradient of the scores; a subclass without ``grad_func`` has its own."""
        if self._grad_func is None:
            raise NotImplementedError()
        grad = self._grad_func(self._scores, self._labels)
        self._scores_grad = grad if isinstance(grad, ndarray.NDArray) else ndarray.array(np.asarray(grad))

    def get_input_grads(self, merge_multi_context=True) -> list:
        return [self._scores_grad]
