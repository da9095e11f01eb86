"""BucketingModule: networks that share parameters, one for each kind of batch."""

import logging

import numpy as np

from ...errors import GraphError
from ...graph.symbol import load as load_symbol
from ...ndarray import array, files
from .. import checkpoint
from .base_module import CompositeModule
from .module import Module

__all__ = ["BucketingModule"]


class BucketingModule(CompositeModule):
    """Chooses a network by each batch's ``bucket_key``.

    Parameters
    ----------
    sym_gen : callable
        From a key to ``(symbol, data_names, label_names)``.
    default_bucket_key
        The key whose network has all parameters; it is bound first.
    logger, context, work_load_list, fixed_param_names, state_names, group2ctxs, compression_params
        As for :class:`Module`.
    """

    def __init__(
        self,
        sym_gen,
        default_bucket_key=None,
        logger=logging,
        context=None,
        work_load_list=None,
        fixed_param_names=None,
        state_names=None,
        group2ctxs=None,
        compression_params=None,
    ):
        super().__init__(logger)
        if default_bucket_key is None:
            raise GraphError("BucketingModule: default_bucket_key must be given")
        self._sym_gen, self._default_bucket_key = sym_gen, default_bucket_key
        self._options = {
            "logger": logger,
            "context": context,
            "work_load_list": work_load_list,
            "fixed_param_names": fixed_param_names,
            "state_names": state_names,
            "group2ctxs": group2ctxs,
            "compression_params": compression_params,
        }
        self._buckets: dict = {}
        self._loaded_symbols: dict = {}
        self._curr_module = self._make(default_bucket_key)
        self._curr_bucket_key = default_bucket_key

    def _make(self, key) -> Module:
        symbol, data_names, label_names = self._sym_gen(key)
        return Module(self._loaded_symbols.get(key, symbol), data_names, label_names, **self._options)

    @staticmethod
    def load(prefix, epoch, sym_gen=None, default_bucket_key=None, **kwargs) -> "BucketingModule":
        """What :meth:`save_checkpoint` wrote, to be bound; ``kwargs`` are those of the class.

        ``sym_gen`` is asked for the names of inputs and labels, and for keys that had no network yet.
        """
        keys = files.load(f"{prefix}.buckets")[0].asnumpy().astype(np.int64).tolist()
        symbols = {key: load_symbol(f"{prefix}-{key}-symbol.json") for key in keys}
        arg_params, aux_params = checkpoint.load_params(prefix, epoch)
        return BucketingModule.load_dict(
            symbols, sym_gen, default_bucket_key, arg_params, aux_params, **kwargs
        )

    @staticmethod
    def load_dict(
        sym_dict=None, sym_gen=None, default_bucket_key=None, arg_params=None, aux_params=None, **kwargs
    ) -> "BucketingModule":
        """The same from networks by key and parameters by name."""
        given = {
            "sym_dict": sym_dict,
            "sym_gen": sym_gen,
            "default_bucket_key": default_bucket_key,
            "arg_params": arg_params,
            "aux_params": aux_params,
        }
        for name, value in given.items():
            if value is None:
                raise GraphError(f"BucketingModule: {name} must be given to load a module")
        module = BucketingModule(sym_gen, default_bucket_key, **kwargs)
        module._loaded_symbols = dict(sym_dict)
        default = module._curr_module = module._make(default_bucket_key)
        default._loaded = (arg_params, aux_params)
        default.params_initialized = module.params_initialized = True
        return module

    def save_checkpoint(self, prefix, epoch, remove_amp_cast=False) -> None:
        """Write ``<prefix>-<epoch>.params``, each key's network, and the keys: whole numbers."""
        self._require("save_checkpoint")
        wrong = [key for key in self._buckets if not isinstance(key, int | np.integer)]
        if wrong:
            raise GraphError(f"BucketingModule.save_checkpoint: keys must be whole numbers, got {wrong[0]!r}")
        self.save_params(f"{prefix}-{epoch:04d}.params")
        for key, module in self._buckets.items():
            module.symbol.save(f"{prefix}-{key}-symbol.json", remove_amp_cast=remove_amp_cast)
        files.save(f"{prefix}.buckets", array(list(self._buckets), dtype="int32"))

    @property
    def symbol(self):
        """The network of the current key; names and shapes are those of this network, too."""
        return self._curr_module.symbol

    @property
    def _first(self) -> Module:
        return self._curr_module

    _label_shapes = property(lambda self: self._first.label_shapes)

    def _bind(
        self, data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req
    ):
        """Bind the network of the default key."""
        if shared_module is not None:
            raise GraphError("BucketingModule.bind: shared_module is not supported")
        default = self._buckets.get(self._default_bucket_key, self._curr_module)
        default.bind(
            data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, grad_req=grad_req
        )
        self._buckets = {self._default_bucket_key: default}
        self._curr_module, self._curr_bucket_key = default, self._default_bucket_key
        self._grad_req = grad_req

    def switch_bucket(self, bucket_key, data_shapes, label_shapes=None) -> None:
        """Make the network of a key the current one, bound to these shapes."""
        self._require("switch_bucket", params=False)
        if bucket_key not in self._buckets:
            module = self._make(bucket_key)
            module.bind(
                data_shapes,
                label_shapes,
                self.for_training,
                self.inputs_need_grad,
                shared_module=self._buckets[self._default_bucket_key],
                grad_req=self._grad_req,
            )
            if self._monitor is not None:
                module.install_monitor(self._monitor)
            self._buckets[bucket_key] = module
        self._curr_module, self._curr_bucket_key = self._buckets[bucket_key], bucket_key

    _monitor = None

    def _init_params(self, initializer, arg_params, aux_params, allow_missing, force_init, allow_extra):
        """Give the parameters of the default network their first values; the others share them."""
        default = self._buckets[self._default_bucket_key]
        default.init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)

    def get_params(self):
        return self._buckets[self._default_bucket_key].get_params()

    def _init_optimizer(self, kvstore, optimizer, optimizer_params, force_init):
        default = self._buckets[self._default_bucket_key]
        default.init_optimizer(kvstore, optimizer, optimizer_params, force_init)
        for module in self._buckets.values():
            if module is not default:
                module.borrow_optimizer(default)

    def forward(self, data_batch, is_train=None) -> None:
        """Run the network of the batch's ``bucket_key``."""
        self._require("forward")
        if data_batch.bucket_key is not None:
            self.switch_bucket(data_batch.bucket_key, data_batch.provide_data, data_batch.provide_label)
        self._curr_module.forward(data_batch, is_train)

    def backward(self, out_grads=None) -> None:
        self._curr_module.backward(out_grads)

    def update(self) -> None:
        """Update the parameters that the current network has."""
        self._require("update", optimizer=True)
        # The default network's numbering holds for all: a key may lack parameters or order them otherwise.
        self._curr_module._update_as(self._buckets[self._default_bucket_key])

    def get_states(self, merge_multi_context=True) -> list:
        """The arrays of ``state_names`` in the current network."""
        return self._curr_module.get_states(merge_multi_context)

    def set_states(self, states=None, value=None) -> None:
        """Set them, as :meth:`Module.set_states` does."""
        self._curr_module.set_states(states, value)

    def update_metric(self, eval_metric, labels, pre_sliced=False) -> None:
        self._curr_module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon) -> None:
        self._require("install_monitor", params=False)
        self._monitor = mon
        for module in self._buckets.values():
            module.install_monitor(mon)
