"""What all modules do alike: fit, score and predict, from forward, backward and update."""

import logging
import time
import warnings

import numpy as np

from ... import ndarray
from ...errors import DataError, GraphError, nearest
from .. import checkpoint
from .. import metric as metrics
from ..initializer import Uniform
from ..io import DataBatch, DataIter, descriptions

__all__ = ["BaseModule"]


def as_list(value) -> list:
    """``value`` as a list: none, itself, or its elements."""
    if value is None:
        return []
    return list(value) if isinstance(value, list | tuple) else [value]


# By these names of MXNet's own, modules that scripts derive from BaseModule import what they need.
_as_list = as_list


def _check_input_names(symbol, names, typename: str, throw: bool) -> None:
    """Raise, or warn, where an input that is named is not among those of ``symbol``."""
    arguments = symbol.list_arguments()
    parameters = ("_weight", "_bias", "_gamma", "_beta")
    for name in names:
        if name in arguments:
            continue
        others = [each for each in arguments if not each.endswith(parameters)] or arguments
        text = f"Module: {name!r} of {typename}_names is not an argument of the symbol ({', '.join(others)})"
        if throw:
            raise GraphError(text + nearest(name, arguments))
        warnings.warn(text, stacklevel=3)


def _parse_data_desc(data_names, label_names, data_shapes, label_shapes) -> tuple:
    """Shapes of inputs and labels as descriptions, whose names must be those that are given."""
    described = descriptions(data_shapes), descriptions(label_shapes)
    for what, names, descs in zip(("data", "label"), (data_names, label_names), described, strict=True):
        given = sorted(desc.name for desc in descs)
        if given != sorted(names):
            problem = f"Module: {what}_shapes are of {given}, {what}_names are {sorted(names)}"
            if what == "data":
                raise GraphError(problem)
            warnings.warn(problem, stacklevel=4)
    return described[0], None if label_shapes is None else described[1]


class BaseModule:
    """A network with its parameters, its optimizer and the memory it runs in.

    Attributes
    ----------
    binded, params_initialized, optimizer_initialized : bool
        Which of ``bind``, ``init_params`` and ``init_optimizer`` have been called.
    for_training, inputs_need_grad : bool
        What it was bound for.
    """

    def __init__(self, logger=logging):
        self.logger = logger
        self.binded = self.for_training = self.inputs_need_grad = False
        self.params_initialized = self.optimizer_initialized = False
        self._symbol = None
        self._data_names, self._output_names = [], []

    @property
    def symbol(self):
        """The network."""
        return self._symbol

    @property
    def data_names(self) -> list[str]:
        """Names of the inputs."""
        return self._data_names

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs."""
        return self._output_names

    @property
    def data_shapes(self) -> list:
        """Descriptions of the inputs as they are bound now."""
        self._require("data_shapes", params=False)
        return self._data_shapes

    @property
    def label_shapes(self) -> list | None:
        """Descriptions of the labels as they are bound now, or None."""
        self._require("label_shapes", params=False)
        return self._label_shapes

    @property
    def output_shapes(self) -> list:
        """Pairs (name, shape)."""
        self._require("output_shapes", params=False)
        return self._output_shapes

    def _require(self, what: str, *, params=True, optimizer=False) -> None:
        """Raise unless what ``what`` builds on has been done."""
        for done, call in (
            (self.binded, "bind"),
            (self.params_initialized or not params, "init_params"),
            (self.optimizer_initialized or not optimizer, "init_optimizer"),
        ):
            if not done:
                raise GraphError(f"{type(self).__name__}.{what}: call {call}() first")

    # -- whole jobs -----------------------------------------------------------------------------------

    def forward_backward(self, data_batch) -> None:
        """One pass forward and back, for training."""
        self.forward(data_batch, is_train=True)
        self.backward()

    def fit(
        self,
        train_data,
        eval_data=None,
        eval_metric="acc",
        epoch_end_callback=None,
        batch_end_callback=None,
        kvstore="local",
        optimizer="sgd",
        optimizer_params=(("learning_rate", 0.01),),
        eval_end_callback=None,
        eval_batch_end_callback=None,
        initializer=None,
        arg_params=None,
        aux_params=None,
        allow_missing=False,
        force_rebind=False,
        force_init=False,
        begin_epoch=0,
        num_epoch=None,
        validation_metric=None,
        monitor=None,
        sparse_row_id_fn=None,
    ) -> None:
        """Train from ``begin_epoch`` to ``num_epoch``.

        Parameters
        ----------
        train_data, eval_data : DataIter
            Batches to learn from, and to measure with after each epoch.
        eval_metric, validation_metric : str, EvalMetric or callable
            What is measured in training, and with ``eval_data`` (the same unless given).
        epoch_end_callback, batch_end_callback, eval_end_callback, eval_batch_end_callback : callable or list
            Called as their names say; see :mod:`roiops.callback`.
        kvstore : str, KVStore or None
            As for :meth:`init_optimizer`.
        optimizer, optimizer_params
            See :meth:`init_optimizer`.
        initializer, arg_params, aux_params, allow_missing, force_init
            See :meth:`init_params`.
        force_rebind : bool
            Whether to bind anew where the module is bound already.
        begin_epoch, num_epoch : int
            The first epoch, and the one to stop before.
        monitor : Monitor, optional
            Looks at arrays inside the network.
        sparse_row_id_fn
            Accepted for MXNet's sake.
        """
        if num_epoch is None:
            raise DataError("fit: num_epoch must be given")
        if not hasattr(train_data, "provide_data"):
            raise DataError(
                f"fit: train_data must be a DataIter, got {type(train_data).__name__}; "
                "mx.io.NDArrayIter(data, label, batch_size=...) makes one of arrays"
            )
        labels = getattr(self, "label_names", None)
        if labels and not train_data.provide_label:
            warnings.warn(
                f"fit: train_data gives no labels for {', '.join(labels)}, which stay 0", stacklevel=2
            )
        self.bind(
            train_data.provide_data, train_data.provide_label, for_training=True, force_rebind=force_rebind
        )
        if monitor is not None:
            self.install_monitor(monitor)
        if not self.params_initialized or force_init:
            self.init_params(initializer or Uniform(0.01), arg_params, aux_params, allow_missing, force_init)
        self.init_optimizer(kvstore, optimizer, optimizer_params)
        eval_metric = metrics.create(eval_metric)
        validation_metric = eval_metric if validation_metric is None else validation_metric
        for epoch in range(begin_epoch, num_epoch):
            start = time.perf_counter()
            callbacks = as_list(batch_end_callback)
            for name, value in self._fit_epoch(train_data, eval_metric, epoch, callbacks, monitor):
                self.logger.info("Epoch[%d] Train-%s=%f", epoch, name, value)
            self.logger.info("Epoch[%d] Time cost=%.3f", epoch, time.perf_counter() - start)
            arg_params, aux_params = self.get_params()
            self.set_params(arg_params, aux_params)  # auxiliary states are from now on alike on all devices
            for callback in as_list(epoch_end_callback):
                callback(epoch, self.symbol, arg_params, aux_params)
            if eval_data is not None:
                for name, value in self.score(
                    eval_data,
                    validation_metric,
                    score_end_callback=eval_end_callback,
                    batch_end_callback=eval_batch_end_callback,
                    epoch=epoch,
                ):
                    self.logger.info("Epoch[%d] Validation-%s=%f", epoch, name, value)
            train_data.reset()

    def _fit_epoch(self, train_data, eval_metric, epoch, callbacks, monitor) -> list:
        """Train on all batches; what the metric says at the end, before a callback may reset it."""
        eval_metric.reset()
        found = eval_metric.get_global_name_value()
        batches = iter(train_data)
        upcoming, nbatch = next(batches, None), -1
        while upcoming is not None:
            data_batch, nbatch = upcoming, nbatch + 1
            if monitor is not None:
                monitor.tic()
            self.forward_backward(data_batch)
            self.update()
            self.update_metric(eval_metric, data_batch.label)
            upcoming = next(batches, None)
            if monitor is not None:
                monitor.toc_print()
            if upcoming is None:
                found = eval_metric.get_global_name_value()
            for callback in callbacks:
                callback(checkpoint.BatchEndParam(epoch, nbatch, eval_metric, locals()))
        return found

    def score(
        self,
        eval_data,
        eval_metric,
        num_batch=None,
        batch_end_callback=None,
        score_end_callback=None,
        reset=True,
        epoch=0,
        sparse_row_id_fn=None,
    ) -> list:
        """Measure on ``eval_data``; pairs (name, value).

        Parameters
        ----------
        num_batch : int, optional
            At most so many batches.
        reset : bool
            Whether to start ``eval_data`` anew first.
        """
        self._require("score")
        eval_metric = metrics.create(eval_metric)
        eval_metric.reset()
        count = 0
        for nbatch, eval_batch in self._batches(eval_data, num_batch, reset):
            self.forward(eval_batch, is_train=False)
            self.update_metric(eval_metric, eval_batch.label)
            for callback in as_list(batch_end_callback):
                callback(checkpoint.BatchEndParam(epoch, nbatch, eval_metric, locals()))
            count += 1
        for callback in as_list(score_end_callback):
            callback(checkpoint.BatchEndParam(epoch, count, eval_metric, locals()))
        return eval_metric.get_name_value()

    @staticmethod
    def _batches(data, num_batch, reset):
        if reset:
            data.reset()
        for nbatch, batch in enumerate(data):
            if nbatch == num_batch:
                return
            yield nbatch, batch

    def iter_predict(self, eval_data, num_batch=None, reset=True, sparse_row_id_fn=None):
        """Yield ``(outputs, batch number, batch)``, outputs without their padding.

        The outputs share the network's memory: the next batch overwrites them.
        """
        self._require("iter_predict")
        for nbatch, batch in self._batches(eval_data, num_batch, reset):
            self.forward(batch, is_train=False)
            pad = batch.pad or 0
            yield [out[: out.shape[0] - pad] for out in self.get_outputs()], nbatch, batch

    def predict(
        self,
        eval_data,
        num_batch=None,
        merge_batches=True,
        reset=True,
        always_output_list=False,
        sparse_row_id_fn=None,
    ):
        """The outputs for all of ``eval_data``.

        Parameters
        ----------
        eval_data : DataIter, NDArray or numpy.ndarray
            An array is one batch of the only input.
        merge_batches : bool
            Whether to join the batches; otherwise a list of lists of outputs comes back.
        always_output_list : bool
            Whether a single output comes in a list, too.
        """
        self._require("predict")
        if isinstance(eval_data, ndarray.NDArray | np.ndarray):
            self.forward(DataBatch([eval_data]), is_train=False)
            return self.get_outputs()[0].copy()
        if not isinstance(eval_data, DataIter):
            raise DataError(
                f"predict: eval_data must be a DataIter or an array, got {type(eval_data).__name__}"
            )
        every = [
            [out.copy() for out in outputs]
            for outputs, _, _ in self.iter_predict(eval_data, num_batch, reset)
        ]
        if not merge_batches:
            return every
        if len({len(outputs) for outputs in every}) > 1:
            raise DataError("predict: batches have unequally many outputs; use merge_batches=False")
        merged = [ndarray.concatenate(list(parts)) for parts in zip(*every, strict=True)]
        return merged[0] if len(merged) == 1 and not always_output_list else merged

    # -- getting ready --------------------------------------------------------------------------------

    def bind(
        self,
        data_shapes,
        label_shapes=None,
        for_training=True,
        inputs_need_grad=False,
        force_rebind=False,
        shared_module=None,
        grad_req="write",
    ) -> None:
        """Allocate memory for inputs of these shapes.

        Parameters
        ----------
        data_shapes, label_shapes : list of DataDesc or of (name, shape)
            What the iterator's ``provide_data`` and ``provide_label`` say.
        for_training : bool
            Whether gradients are wanted.
        inputs_need_grad : bool
            Whether those of the inputs are, too; see :meth:`get_input_grads`.
        force_rebind : bool
            Whether to bind anew where the module is bound already. Parameters stay.
        shared_module : Module, optional
            Another module whose arrays are used where names, shapes and types agree.
        grad_req : str, list or dict
            As for ``Symbol.bind``.
        """
        if self.binded and not force_rebind:
            self.logger.warning("Already bound, ignoring bind()")
            return
        self._bind(
            data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req
        )
        self.binded, self.for_training, self.inputs_need_grad = True, for_training, inputs_need_grad

    def init_params(
        self,
        initializer=Uniform(0.01),  # noqa: B008  (an initializer does not change)
        arg_params=None,
        aux_params=None,
        allow_missing=False,
        force_init=False,
        allow_extra=False,
    ) -> None:
        """Give the parameters their first values.

        Parameters
        ----------
        initializer : Initializer
            Fills what is not given.
        arg_params, aux_params : dict of NDArray, optional
            Values; what they lack is an error unless ``allow_missing``.
        allow_missing : bool
            Whether the initializer fills what ``arg_params`` lacks.
        force_init : bool
            Whether to do so again where it was done.
        allow_extra : bool
            Names that the network does not have are passed over, as in MXNet: those of another network's
            head, say. Without an initializer and with ``allow_missing`` they are an error, unless this is
            true.
        """
        if self.params_initialized and not force_init:
            warnings.warn(
                "Module: parameters are initialized and force_init is False; call ignored", stacklevel=2
            )
            return
        self._require("init_params", params=False)
        self._init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)
        self.params_initialized = True

    def init_optimizer(
        self,
        kvstore="local",
        optimizer="sgd",
        optimizer_params=(("learning_rate", 0.01),),
        force_init=False,
    ) -> None:
        """Choose how parameters are updated.

        Parameters
        ----------
        kvstore : str, KVStore or None
            Where the gradients of several devices are added up, and the optimizer runs: ``"local"`` or
            ``"device"``. ``"dist_sync"`` adds up those of all processes that ``mpiexec`` started, and gives
            all the parameters of the first. With None, each of several devices goes its own way. The name of
            a store has no effect with one device in one process.
        optimizer : str or Optimizer
            The rule. Made by name it gets ``rescale_grad`` of 1 / batch size unless that is given.
        optimizer_params : dict or pairs
            Its parameters.
        force_init : bool
            Whether to do so again where it was done.
        """
        self._require("init_optimizer")
        if self.optimizer_initialized and not force_init:
            self.logger.warning("optimizer already initialized, ignoring...")
            return
        self._init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        self.optimizer_initialized = True

    # -- parameters -----------------------------------------------------------------------------------

    def set_params(
        self, arg_params, aux_params, allow_missing=False, force_init=True, allow_extra=False
    ) -> None:
        """Take parameters and auxiliary states from dicts of arrays.

        Parameters
        ----------
        allow_missing : bool
            Whether those that are not given stay as they are, instead of an error.
        force_init : bool
            Whether parameters that are there already are replaced.
        allow_extra : bool
            Whether names that the network does not have are passed over where ``allow_missing`` is true;
            otherwise they always are, as in MXNet.
        """
        self.init_params(None, arg_params, aux_params, allow_missing, force_init, allow_extra)

    def save_params(self, fname: str) -> None:
        """Write all parameters and auxiliary states to a file."""
        ndarray.save(fname, checkpoint.with_prefixes(*self.get_params()))

    def load_params(self, fname: str) -> None:
        """Read what :meth:`save_params` wrote."""
        self.set_params(*checkpoint.split_params(ndarray.load(fname), fname))

    def prepare(self, data_batch, sparse_row_id_fn=None) -> None:
        """Get ready for a batch that comes next."""

    # -- what a kind of module must have --------------------------------------------------------------

    def _bind(
        self, data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req
    ) -> None:
        """:meth:`bind`, where there is something to do; so the next two."""
        raise NotImplementedError

    def _init_params(
        self, initializer, arg_params, aux_params, allow_missing, force_init, allow_extra
    ) -> None:
        raise NotImplementedError

    def _init_optimizer(self, kvstore, optimizer, optimizer_params, force_init) -> None:
        raise NotImplementedError

    def get_params(self):
        """``(arg_params, aux_params)``: copies on the CPU, by name."""
        raise NotImplementedError

    def forward(self, data_batch, is_train=None):
        """One pass over a batch."""
        raise NotImplementedError

    def backward(self, out_grads=None):
        """The gradients of the last forward."""
        raise NotImplementedError

    def update(self):
        """One step of the optimizer with the gradients of the last backward."""
        raise NotImplementedError

    def get_outputs(self, merge_multi_context=True):
        """The outputs of the last forward."""
        raise NotImplementedError

    def get_input_grads(self, merge_multi_context=True):
        """The gradients of the inputs, from the last backward."""
        raise NotImplementedError

    def update_metric(self, eval_metric, labels, pre_sliced=False):
        """Let a metric look at the outputs of the last forward and these labels."""
        raise NotImplementedError

    def install_monitor(self, mon):
        """Let a :class:`~roiops.monitor.Monitor` watch the executors."""
        raise NotImplementedError


class CompositeModule(BaseModule):
    """A module made of others: the first of them takes the data, the last gives the outputs."""

    @property
    def _first(self) -> BaseModule:
        raise NotImplementedError

    @property
    def _last(self) -> BaseModule:
        return self._first

    @property
    def data_names(self) -> list[str]:
        return self._first.data_names

    @property
    def output_names(self) -> list[str]:
        return self._last.output_names

    _data_shapes = property(lambda self: self._first.data_shapes)
    _output_shapes = property(lambda self: self._last.output_shapes)

    def get_outputs(self, merge_multi_context=True) -> list:
        self._require("get_outputs")
        return self._last.get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context=True) -> list:
        self._require("get_input_grads")
        return self._first.get_input_grads(merge_multi_context)
