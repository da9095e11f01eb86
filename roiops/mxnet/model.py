"""``mxnet.model``: checkpoints, and the class that came before Module."""

import numpy as np

from ..graph.nodes import topological_order
from ..models.inspection import label_variables
from ..ndarray import NDArray
from ..training.checkpoint import BatchEndParam, load_checkpoint, load_params, save_checkpoint
from ..training.io import DataIter, NDArrayIter
from ..training.metric import create as create_metric
from ..training.module import Module
from ..training.module.base_module import as_list
from ..training.module.module import check_given

__all__ = ["BatchEndParam", "FeedForward", "load_checkpoint", "load_params", "save_checkpoint"]


class FeedForward:
    """A network with its parameters, as scripts older than :class:`~roiops.module.Module` run one.

    It runs, scores and saves; to train, use ``Module.fit``.

    Parameters
    ----------
    symbol : Symbol
        The network.
    ctx : Context or list of Context, optional
        Where it runs; of a list, the first.
    numpy_batch_size : int
        How many rows of an array are computed at once.
    arg_params, aux_params : dict of NDArray, optional
        Parameters and auxiliary states by name.
    allow_extra_params : bool
        Whether parameters may be given that the network does not have.
    begin_epoch : int
        The number under which :meth:`save` writes.
    **kwargs
        What only training reads.
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
        self.ctx = list(ctx) if isinstance(ctx, list | tuple) else [ctx]
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
        epoch = self.begin_epoch if epoch is None else epoch
        save_checkpoint(prefix, epoch, self.symbol, self.arg_params, self.aux_params, remove_amp_cast)

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
            rows = batches.batch_size - batch.pad
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
        return tuple(joined) if return_data else joined[0]

    def score(self, X, eval_metric="acc", num_batch=None, batch_end_callback=None, reset=True):
        """The value of a metric over the batches of ``X``, whose labels it compares with."""
        metric, batches = create_metric(eval_metric), self._iterator(X)
        if reset:
            batches.reset()
        for number, batch in enumerate(batches):
            if number == num_batch:
                break
            metric.update(batch.label, self._forward(batches, batch))
            for call in as_list(batch_end_callback):
                call(BatchEndParam(0, number, metric, locals()))
        return metric.get()[1]

    def _iterator(self, data) -> DataIter:
        if isinstance(data, DataIter):
            return data
        if not isinstance(data, np.ndarray | NDArray):
            raise TypeError(
                f"FeedForward: X must be DataIter, NDArray or numpy.ndarray, got {type(data).__name__}"
            )
        return NDArrayIter(data, np.zeros(len(data)), min(len(data), self.numpy_batch_size))

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
