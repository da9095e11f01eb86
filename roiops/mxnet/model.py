"""``mxnet.model``: checkpoints, and the class that came before Module."""

import logging
import time

import numpy as np

from ..context import current_context
from ..errors import ParamError
from ..graph.nodes import topological_order
from ..models.inspection import label_variables
from ..ndarray import NDArray
from ..training.callback import LogValidationMetricsCallback
from ..training.checkpoint import BatchEndParam, load_checkpoint, load_params, save_checkpoint
from ..training.initializer import Uniform
from ..training.io import DataIter, NDArrayIter
from ..training.metric import create as create_metric
from ..training.module import Module
from ..training.module.base_module import as_list
from ..training.module.module import check_given, create_kvstore, update_params, update_params_on_kvstore

__all__ = ["BatchEndParam", "FeedForward", "load_checkpoint", "load_params", "save_checkpoint"]

_LOG_VALIDATION = LogValidationMetricsCallback()


class FeedForward:
    """A network with its parameters, as scripts older than :class:`~roiops.module.Module` run one.

    Parameters
    ----------
    symbol : Symbol
        The network.
    ctx : Context or list of Context, optional
        Where it is trained; it predicts on the first.
    num_epoch, epoch_size : int, optional
        The epoch to stop before, and how many batches one has; all of the data unless given.
    optimizer : str or Optimizer
        What trains it.
    initializer : Initializer, optional
        What fills parameters that are not given; ``Uniform(0.01)`` unless given.
    numpy_batch_size : int
        How many rows of an array are computed at once.
    arg_params, aux_params : dict of NDArray, optional
        Parameters and auxiliary states by name.
    allow_extra_params : bool
        Whether parameters may be given that the network does not have.
    begin_epoch : int
        The first epoch.
    **kwargs
        The optimizer's.
    """

    def __init__(
        self,
        symbol,
        ctx=None,
        num_epoch=None,
        epoch_size=None,
        optimizer="sgd",
        initializer=None,
        numpy_batch_size=128,
        arg_params=None,
        aux_params=None,
        allow_extra_params=False,
        begin_epoch=0,
        **kwargs,
    ):
        self.symbol = symbol
        contexts = list(ctx) if isinstance(ctx, list | tuple) else [ctx]
        self.ctx = [current_context() if each is None else each for each in contexts]
        self.num_epoch, self.epoch_size = num_epoch, epoch_size
        self.optimizer, self.initializer = optimizer, initializer or Uniform(0.01)
        self.kwargs = kwargs
        self.numpy_batch_size = numpy_batch_size
        self.arg_params, self.aux_params = arg_params or {}, aux_params or {}
        self.allow_extra_params = allow_extra_params
        self.begin_epoch = begin_epoch
        self._module = None

    @staticmethod
    def load(prefix, epoch, ctx=None, **kwargs) -> "FeedForward":
        """The network in ``<prefix>-symbol.json`` with ``<prefix>-<epoch>.params``."""
        network, arg_params, aux_params = load_checkpoint(prefix, epoch)
        return FeedForward(
            network, ctx, arg_params=arg_params, aux_params=aux_params, begin_epoch=epoch, **kwargs
        )

    def save(self, prefix, epoch=None, remove_amp_cast=True) -> None:
        """Write what :meth:`load` reads."""
        epoch = self.num_epoch if epoch is None else epoch
        if epoch is None:
            raise ParamError("FeedForward.save: epoch must be given, as num_epoch was not")
        save_checkpoint(prefix, epoch, self.symbol, self.arg_params, self.aux_params, remove_amp_cast)

    @staticmethod
    def create(
        symbol,
        X,
        y=None,
        ctx=None,
        num_epoch=None,
        epoch_size=None,
        optimizer="sgd",
        initializer=None,
        eval_data=None,
        eval_metric="acc",
        epoch_end_callback=None,
        batch_end_callback=None,
        kvstore="local",
        logger=None,
        work_load_list=None,
        eval_end_callback=_LOG_VALIDATION,
        eval_batch_end_callback=None,
        **kwargs,
    ) -> "FeedForward":
        """A network, trained: the class and :meth:`fit` in one call."""
        model = FeedForward(symbol, ctx, num_epoch, epoch_size, optimizer, initializer, **kwargs)
        model.fit(
            X,
            y,
            eval_data=eval_data,
            eval_metric=eval_metric,
            epoch_end_callback=epoch_end_callback,
            batch_end_callback=batch_end_callback,
            kvstore=kvstore,
            logger=logger,
            work_load_list=work_load_list,
            eval_end_callback=eval_end_callback,
            eval_batch_end_callback=eval_batch_end_callback,
        )
        return model

    def fit(
        self,
        X,
        y=None,
        eval_data=None,
        eval_metric="acc",
        epoch_end_callback=None,
        batch_end_callback=None,
        kvstore="local",
        logger=None,
        work_load_list=None,
        monitor=None,
        eval_end_callback=_LOG_VALIDATION,
        eval_batch_end_callback=None,
    ) -> None:
        """Train from ``begin_epoch`` to ``num_epoch``.

        Parameters
        ----------
        X : array or DataIter
            The data; of an array, rows are shuffled.
        y : array, optional
            The labels, where ``X`` is an array.
        eval_data : DataIter or (array, array), optional
            Data and labels to measure with after each epoch.
        eval_metric : str, EvalMetric or callable
            What is measured.
        epoch_end_callback, batch_end_callback, eval_end_callback, eval_batch_end_callback : callable or list
            Called as their names say; batches are counted from 1.
        kvstore, work_load_list, monitor
            As those of :class:`~roiops.module.Module`.
        """
        if self.num_epoch is None:
            raise ParamError("FeedForward.fit: num_epoch must be given")
        logger = logger or logging
        batches = self._iterator(X, y, is_train=True)
        evaluated = self._evaluated(eval_data)
        metric = create_metric(eval_metric)
        names = [
            [description[0] for description in each] for each in (batches.provide_data, batches.provide_label)
        ]
        module = Module(self.symbol, *names, logger, self.ctx, work_load_list)
        module.bind(batches.provide_data, batches.provide_label)
        module.init_params(self.initializer, self.arg_params, self.aux_params, allow_missing=True)
        options = self.kwargs
        module.init_optimizer(kvstore, self.optimizer, options if isinstance(self.optimizer, str) else ())
        logger.info("Start training with %s", self.ctx)
        if monitor is not None:
            module.install_monitor(monitor)
        batches.reset()
        for epoch in range(self.begin_epoch, self.num_epoch):
            start = time.perf_counter()
            metric.reset()
            self._fit_epoch(module, batches, metric, epoch, as_list(batch_end_callback), monitor, logger)
            logger.info("Epoch[%d] Time cost=%.3f", epoch, time.perf_counter() - start)
            if epoch_end_callback is not None or epoch + 1 == self.num_epoch:
                self.arg_params, self.aux_params = module.get_params()
                self._module = None  # what predicts has former parameters
            for call in as_list(epoch_end_callback):
                call(epoch, self.symbol, self.arg_params, self.aux_params)
            if evaluated is not None:
                module.score(
                    evaluated,
                    metric,
                    score_end_callback=eval_end_callback,
                    batch_end_callback=eval_batch_end_callback,
                    epoch=epoch,
                )
                evaluated.reset()

    def _fit_epoch(self, module, batches, metric, epoch, callbacks, monitor, logger) -> None:
        """The batches of the data; with ``epoch_size`` so many, from wherever the last epoch ended."""
        number = 0
        while True:
            for batch in batches:
                if monitor is not None:
                    monitor.tic()
                module.forward_backward(batch)
                module.update()
                if monitor is not None:
                    monitor.toc_print()
                module.update_metric(metric, batch.label)
                number += 1
                for call in callbacks:
                    call(BatchEndParam(epoch, number, metric, locals()))
                if number == self.epoch_size:
                    return
            logger.info("Epoch[%d] Resetting Data Iterator", epoch)
            batches.reset()
            if self.epoch_size is None or number >= self.epoch_size:
                return

    def predict(self, X, num_batch=None, return_data=False, reset=True):
        """The outputs for all rows of ``X``: a NumPy array, or a list of them where there are several.

        Parameters
        ----------
        X : array or DataIter
            The data.
        num_batch : int, optional
            How many batches to take; all by default.
        return_data : bool
            Whether to return ``(outputs, data, labels)``.
        reset : bool
            Whether to start the iterator anew.
        """
        batches = self._iterator(X)
        if reset:
            batches.reset()
        taken: list[tuple] = []
        for batch in batches:
            rows = batches.batch_size - (batch.pad or 0)
            kinds = (self._forward(batches, batch), batch.data or [], batch.label or [])
            kept = kinds if return_data else kinds[:1]
            # asnumpy copies: the next batch overwrites the outputs
            taken.append(tuple([array[:rows].asnumpy() for array in arrays] for arrays in kept))
            if len(taken) == num_batch:
                break
        joined = []
        for parts in zip(*taken, strict=True):
            arrays = [np.concatenate(each) for each in zip(*parts, strict=True)]
            joined.append(arrays[0] if len(arrays) == 1 else arrays)
        return tuple(joined) if return_data or not joined else joined[0]

    def score(self, X, eval_metric="acc", num_batch=None, batch_end_callback=None, reset=True):
        """The value of a metric over the batches of ``X``, whose labels it compares with."""
        metric, batches = create_metric(eval_metric), self._iterator(X)
        for number, batch in Module._batches(batches, num_batch, reset):
            metric.update(batch.label, self._forward(batches, batch))
            for call in as_list(batch_end_callback):
                call(BatchEndParam(0, number, metric, locals()))
        return metric.get()[1]

    def _iterator(self, data, labels=None, is_train=False) -> DataIter:
        """Batches of an array and its labels, or the iterator given."""
        if isinstance(data, DataIter):
            return data
        if not isinstance(data, np.ndarray | NDArray):
            raise TypeError(
                f"FeedForward: X must be DataIter, NDArray or numpy.ndarray, got {type(data).__name__}"
            )
        if labels is None and is_train:
            raise ParamError("FeedForward: y must be specified when X is numpy.ndarray")
        labels = np.zeros(len(data)) if labels is None else labels
        if not isinstance(labels, np.ndarray | NDArray):
            raise TypeError("FeedForward: y must be ndarray when X is numpy.ndarray")
        if len(data) != len(labels):
            raise ParamError("FeedForward: The numbers of data points and labels not equal")
        if len(labels.shape) == 2 and labels.shape[1] == 1:
            labels = labels.reshape((-1,))
        if len(labels.shape) != 1:
            raise ParamError("FeedForward: Label must be 1D or 2D (with 2nd dimension being 1)")
        size = min(len(data), self.numpy_batch_size)
        last = "roll_over" if is_train else "pad"
        return NDArrayIter(data, labels, size, shuffle=is_train, last_batch_handle=last)

    def _evaluated(self, given) -> DataIter | None:
        """What ``eval_data`` stands for."""
        if not (isinstance(given, list | tuple) and len(given) == 2):
            if given is not None and not isinstance(given, DataIter):
                raise TypeError(
                    "FeedForward: Eval data must be DataIter, or NDArray/numpy.ndarray/list pair "
                    f"(i.e. tuple/list of length 2), got {type(given).__name__}"
                )
            return given
        data, labels = (np.array(each) if isinstance(each, list) else each for each in given)
        if data is None:
            raise ParamError("FeedForward: Eval data is NONE")
        return self._iterator(data, labels, is_train=True)

    def _forward(self, batches, batch) -> list:
        names = [description[0] for description in batches.provide_data]
        if self._module is None or self._module.data_names != names:
            labels = [node.name for node in label_variables(topological_order(self.symbol.heads))]
            module = Module(self.symbol, names, labels, context=self.ctx[0])
            module.bind(batches.provide_data, for_training=False)
            arguments = {name: value for name, value in self.arg_params.items() if name not in labels}
            module.set_params(arguments, self.aux_params)
            if not self.allow_extra_params:
                check_given("FeedForward", "arg_params", arguments, self.symbol.list_arguments(), True, True)
                states = self.symbol.list_auxiliary_states()
                check_given("FeedForward", "aux_params", self.aux_params, states, True, True)
            self._module = module
        self._module.forward(batch, is_train=False)
        return self._module.get_outputs()


# -- what modules of scripts' own import, by MXNet's names --------------------------------------------------

_create_kvstore = create_kvstore
_update_params, _update_params_on_kvstore = update_params, update_params_on_kvstore


def _initialize_kvstore(kvstore, param_arrays, arg_params, param_names, update_on_kvstore) -> None:
    """Put the parameters into a store; with ``update_on_kvstore`` the devices take its arrays."""
    for name, arrays in zip(param_names, param_arrays, strict=True):
        kvstore.init(name, arg_params[name])
        if update_on_kvstore:
            kvstore.pull(name, out=arrays)
