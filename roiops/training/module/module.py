"""Module: one symbol, on one device or on several that share each batch."""

import logging
import os
import warnings
from collections import OrderedDict

import numpy as np

from ...context import Context, current_context
from ...errors import DataError, DeviceError, GraphError, InputError, ParamError, ShapeError, nearest
from ...graph.memory import drop_oldest
from .. import checkpoint
from .. import kvstore as kvstores
from .. import optimizer as optimizers
from ..initializer import InitDesc
from ..io import DataDesc, descriptions
from ..monitor import Monitor
from .base_module import BaseModule, _check_input_names, _parse_data_desc, as_list
from .executor_group import DataParallelExecutorGroup, means_of_devices

__all__ = ["Module"]

#: A store that was asked for as "local" updates arrays itself unless one of them is larger; as in MXNet.
_MOST_UPDATED_IN_STORE = 1024 * 1024 * 16


class Module(BaseModule):
    """Trains and runs a symbol.

    Inputs may change their shapes from batch to batch: the module binds itself anew, keeps its parameters,
    and comes back to earlier shapes without binding again.

    Parameters
    ----------
    symbol : Symbol
        The network.
    data_names, label_names : list of str or None
        Which of its arguments are inputs, and which are labels. All others are parameters.
    logger : Logger
        Where messages go.
    context : Context or list of Context
        Where it runs. Several devices take a part of each batch each and hold the parameters each; their
        outputs are joined and their gradients added up.
    work_load_list : list of float, optional
        How much of a batch each device takes, in proportion; alike unless given.
    group2ctxs : dict or list of dict, optional
        Where the nodes of each ``ctx_group`` go, for all devices or for each.
    compression_params
        Refused: gradients are added up as they are.
    fixed_param_names : list of str, optional
        Parameters that are not trained.
    state_names : list of str, optional
        Arguments that :meth:`set_states` sets, neither fed nor trained.
    """

    def __init__(
        self,
        symbol,
        data_names=("data",),
        label_names=("softmax_label",),
        logger=logging,
        context=None,
        work_load_list=None,
        fixed_param_names=None,
        state_names=None,
        group2ctxs=None,
        compression_params=None,
    ):
        super().__init__(logger)
        self._contexts = [Context(each) for each in as_list(context) or [current_context()]]
        if compression_params:
            raise DeviceError(
                f"Module: gradients are not compressed, got compression_params={compression_params}"
            )
        self._work_load_list, self._group2ctxs = work_load_list, group2ctxs
        self._symbol = symbol
        self._data_names, self._label_names = list(data_names or ()), list(label_names or ())
        self._state_names, self._fixed_param_names = list(state_names or ()), list(fixed_param_names or ())
        arguments = symbol.list_arguments()
        for kind, names, needed in (
            ("data", self._data_names, True),
            ("label", self._label_names, False),
            ("state", self._state_names, True),
            ("fixed_param", self._fixed_param_names, True),
        ):
            _check_input_names(symbol, names, kind, needed)
        self._label_names = [name for name in self._label_names if name in arguments]
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in arguments if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._output_names = symbol.list_outputs()
        self._loaded = None  # parameters that wait for bind
        self._preload_opt_states = None
        self._optimizer = self._updater = self._kvstore = None
        self._update_on_kvstore = False
        self._ranked = None  # what keeps it in step with other processes
        self._monitor = None
        self._reset_bind()

    # -- checkpoints ----------------------------------------------------------------------------------

    @staticmethod
    def load(prefix, epoch, load_optimizer_states=False, **kwargs) -> "Module":
        """A module from a checkpoint; ``kwargs`` are those of :class:`Module`.

        Parameters
        ----------
        load_optimizer_states : bool
            Whether :meth:`init_optimizer` reads the optimizer's states, too.
        """
        symbol, arg_params, aux_params = checkpoint.load_checkpoint(prefix, epoch)
        module = Module(symbol, **kwargs)
        module._loaded = (arg_params, aux_params)
        module.params_initialized = True
        if load_optimizer_states:
            module._preload_opt_states = f"{prefix}-{epoch:04d}.states"
        return module

    def save_checkpoint(self, prefix, epoch, save_optimizer_states=False, remove_amp_cast=True) -> None:
        """Write ``<prefix>-symbol.json`` and ``<prefix>-<epoch>.params``.

        Parameters
        ----------
        save_optimizer_states : bool
            Whether to write ``<prefix>-<epoch>.states`` for :meth:`load`, too.
        """
        checkpoint.save_checkpoint(prefix, epoch, self._symbol, *self.get_params(), remove_amp_cast)
        if save_optimizer_states:
            self.save_optimizer_states(f"{prefix}-{epoch:04d}.states")

    def save_optimizer_states(self, fname: str) -> None:
        """Write what the optimizer needs to go on exactly: its arrays and its counts of updates."""
        self._require("save_optimizer_states", optimizer=True)
        (self._kvstore if self._update_on_kvstore else self._updater).save_optimizer_states(fname)

    def load_optimizer_states(self, fname: str) -> None:
        """Read what :meth:`save_optimizer_states` wrote."""
        self._require("load_optimizer_states", optimizer=True)
        (self._kvstore if self._update_on_kvstore else self._updater).load_optimizer_states(fname)

    # -- what it is -----------------------------------------------------------------------------------

    @property
    def label_names(self) -> list[str]:
        """Names of the labels."""
        return self._label_names

    @property
    def _output_shapes(self) -> list:
        return self._current("output_shapes", params=False).get_output_shapes()

    @property
    def _exec_group(self) -> DataParallelExecutorGroup:
        """MXNet's name for the executors, which published scripts reach through."""
        return self._current("_exec_group", params=False)

    # MXNet's own names, which classes that scripts derive from Module read
    _context = property(lambda self: self._contexts)
    _arg_params = property(lambda self: self.get_params()[0] if self.params_initialized else None)
    _aux_params = property(lambda self: self.get_params()[1] if self.params_initialized else None)

    @property
    def _executor(self):
        """The executor of the last batch, on the first device."""
        return None if self._group is None else self._group.execs[0]

    # -- binding --------------------------------------------------------------------------------------

    def _reset_bind(self) -> None:
        self.binded = False
        self._group = self._arrays = None
        self._groups: OrderedDict = OrderedDict()
        self._data_shapes = self._label_shapes = None

    def _bind(
        self, data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req
    ):
        if inputs_need_grad and not for_training:
            raise GraphError("Module.bind: inputs_need_grad needs for_training")
        kept = self.get_params() if self.params_initialized else None
        ranked, self._ranked = self._ranked, None
        self._reset_bind()
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._grad_req = grad_req
        shared = None
        if shared_module is not None:
            shared_module._require("bind(shared_module)")
            shared = shared_module._arrays
        self._use_shapes(*self._described(data_shapes, label_shapes), shared)
        self.binded = True
        if shared_module is not None:
            self.params_initialized = True
            if shared_module.optimizer_initialized:
                self.borrow_optimizer(shared_module)
        elif kept is not None:
            self._loaded = None
            self.set_params(*kept, allow_extra=True)
        if ranked is not None:
            self._join(ranked.store)

    def _described(self, data_shapes, label_shapes):
        """Both lists as descriptions, checked against the names; labels may be left out."""
        names = self._label_names if label_shapes else ()
        data, labels = _parse_data_desc(self._data_names, names, data_shapes, label_shapes)
        return data, [desc for desc in labels or () if desc.name in names] or None

    def _use_shapes(self, data_shapes, label_shapes, shared=None) -> None:
        """Switch to executors for these shapes, made now or before."""
        key = (*data_shapes, *(label_shapes or ()))
        watched = self._group
        if key not in self._groups:
            shared = shared or self._arrays
            self._group = None
            drop_oldest(self._groups, lambda group: group.internal_bytes)
            group = DataParallelExecutorGroup(
                self._symbol,
                self._contexts,
                self._work_load_list,
                data_shapes,
                label_shapes,
                self._param_names,
                self.for_training,
                self.inputs_need_grad,
                logger=self.logger,
                fixed_param_names=self._fixed_param_names,
                grad_req=self._grad_req,
                state_names=self._state_names,
                group2ctxs=self._group2ctxs,
                shared=shared,
            )
            if self._monitor is not None and watched is None:
                group.install_monitor(self._monitor)
            if self._ranked is not None:
                self._ranked.watch(group.execs[0])
            self._groups[key] = group
        self._groups.move_to_end(key)
        self._group = self._groups[key]
        if watched is not None and watched is not self._group:  # who watches one is shown the next
            for old, new in zip(watched.execs, self._group.execs, strict=True):
                new.keep_monitor_of(old)
                if isinstance(self._monitor, Monitor):
                    self._monitor.move(old, new)
        self._arrays = self._group.arrays
        self._data_shapes, self._label_shapes = data_shapes, label_shapes

    def reshape(self, data_shapes, label_shapes=None) -> None:
        """Go on with inputs of other shapes. :meth:`forward` does so by itself."""
        self._require("reshape", params=False)
        self._use_shapes(*self._described(data_shapes, label_shapes))

    # -- parameters -----------------------------------------------------------------------------------

    def get_params(self):
        """``(arg_params, aux_params)``: dicts of copies."""
        if not self.params_initialized:
            raise GraphError("Module.get_params: call init_params() first")
        if not self.binded:
            return self._loaded
        return (
            means_of_devices(self._arrays, "arg_dict", self._param_names),
            means_of_devices(self._arrays, "aux_dict", self._aux_names),
        )

    def _init_params(self, initializer, arg_params, aux_params, allow_missing, force_init, allow_extra):
        if not (initializer is None or callable(initializer)):
            raise InputError(
                f"Module.init_params: initializer must be one such as mx.init.Xavier(), got {initializer!r}"
            )
        attributes = self._symbol.attr_dict()
        groups = (
            ("arg_params", arg_params, self._param_names, [each.arg_dict for each in self._arrays]),
            ("aux_params", aux_params, self._aux_names, [each.aux_dict for each in self._arrays]),
        )
        surplus_is_wrong = initializer is None and allow_missing and not allow_extra
        for what, given, names, _ in groups:
            check_given("Module.init_params", what, given, names, allow_missing, surplus_is_wrong)
        for what, given, names, (first, *others) in groups:
            for name in sorted(names):
                if given is not None and name in given:
                    _copy_in(what, name, given[name], first[name])
                elif initializer is not None:
                    initializer(InitDesc(name, attributes.get(name), initializer), first[name])
                elif given is None:
                    raise ParamError(f"Module.init_params: neither {what} nor an initializer given")
                for arrays in others:
                    arrays[name][:] = first[name]
        if self._ranked is not None:
            self._ranked.take_from_first()

    # -- training -------------------------------------------------------------------------------------

    def _init_optimizer(self, kvstore, optimizer, optimizer_params, force_init):
        weights = {name: self._arrays[0].arg_dict[name] for name in self._param_names}
        store, in_store = create_kvstore(kvstore, len(self._contexts), weights)
        ranked = isinstance(store, kvstores.KVStore) and store.type.startswith("dist")
        if ranked and len(self._contexts) > 1:
            raise DeviceError(f"Module.init_optimizer: with {store.type!r} each process has one device")
        if ranked and self._contexts[0].is_gpu:
            raise DeviceError(
                f"Module.init_optimizer: {store.type!r} adds up gradients in the CPU's memory, "
                f"got context={self._contexts[0]}"
            )
        first = self._data_shapes[0]
        batch_size = first.shape[max(0, DataDesc.get_batch_axis(first.layout))]
        if store is not None:
            batch_size *= store.num_workers
        rescale_grad = 1.0 / batch_size
        self._update_on_kvstore = in_store and not ranked
        count = 1 if self._update_on_kvstore else len(self._contexts)
        names = {i * count + k: name for i, name in enumerate(self._param_names) for k in range(count)}
        if isinstance(optimizer, str):
            given = {"rescale_grad": rescale_grad, **dict(optimizer_params)}
            optimizer = optimizers.create(optimizer, sym=self._symbol, param_idx2name=names, **given)
        else:
            if optimizer.rescale_grad != rescale_grad:
                warnings.warn(
                    f"Module.init_optimizer: the optimizer has rescale_grad {optimizer.rescale_grad}, "
                    f"1 / batch size is {rescale_grad}",
                    stacklevel=2,
                )
            if not optimizer.idx2name:
                optimizer.idx2name = names
        self._optimizer, self._kvstore = optimizer, None if ranked else store
        self._updater = None if self._update_on_kvstore else optimizers.get_updater(optimizer)
        self.optimizer_initialized = True
        if ranked:
            self._join(store)
        elif store is not None:
            self._fill(store)
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _fill(self, store) -> None:
        """Give a store the parameters, and the optimizer where it is to run there."""
        if self._update_on_kvstore:
            store.set_optimizer(self._optimizer)
        for name in self._param_names:
            block = [each.arg_dict[name] for each in self._arrays]
            store.broadcast(name, block[0], out=block)

    def _join(self, store) -> None:
        """Train in step with the other processes of a distributed store."""
        from ..mpi import RankedModule

        weights, _, auxiliary = self._arrays[0]
        order = [name for name in self._executor.gradient_order if name in self._param_names]
        adds = any(self._group.grad_req[name] == "add" for name in order)
        self._ranked = RankedModule(
            store, {name: weights[name] for name in self._param_names}, auxiliary, order, not adds
        )
        # Bind anew, with the gradients in the memory that travels.
        (held,) = self._arrays
        self._arrays = [held._replace(grad_dict={**held.grad_dict, **self._ranked.gradients})]
        self._groups.clear()
        self._use_shapes(self._data_shapes, self._label_shapes)

    def borrow_optimizer(self, shared_module) -> None:
        """Share the optimizer of another module, states and all."""
        shared_module._require("borrow_optimizer", optimizer=True)
        self._optimizer, self._updater = shared_module._optimizer, shared_module._updater
        self._kvstore, self._update_on_kvstore = shared_module._kvstore, shared_module._update_on_kvstore
        self._ranked = shared_module._ranked
        if self._ranked is not None:
            self._ranked.check(self._arrays[0].grad_dict, self._param_names)
            for group in self._groups.values():
                self._ranked.watch(group.execs[0])
        self.optimizer_initialized = True

    def forward(self, data_batch, is_train=None) -> None:
        """Run the network on a batch.

        Parameters
        ----------
        data_batch : DataBatch or list of DataBatch
            Inputs and labels, in the order of ``data_names`` and ``label_names``. Any object with ``data``
            will do, such as a ``namedtuple("Batch", ["data"])``. A list has a batch for each device.
        is_train : bool, optional
            Whether operators behave as in training; as bound unless given.
        """
        self._require("forward")
        batches = data_batch if isinstance(data_batch, list) else [data_batch]
        for batch in batches:
            arrays = getattr(batch, "data", None)
            if not isinstance(arrays, list | tuple):
                raise InputError(
                    "Module.forward: data_batch must be a batch such as mx.io.DataBatch([mx.nd.array(x)]), "
                    f"got {type(batch).__name__}"
                )
            if len(arrays) != len(self._data_names):
                raise DataError(f"Module.forward: {len(arrays)} inputs for data_names {self._data_names}")
        data_shapes, label_shapes = self._shapes_of(batches[0], len(batches))
        bound = (self._data_shapes, self._label_shapes)
        if self._group is None or data_shapes is not bound[0] or label_shapes is not bound[1]:
            self._use_shapes(data_shapes, label_shapes)
        self._group.forward(data_batch, is_train)

    def _shapes_of(self, batch, count: int):
        """The descriptions of the inputs and labels, those bound where nothing has changed."""
        provide_data, label, provide_label = (
            getattr(batch, name, None) for name in ("provide_data", "label", "provide_label")
        )
        if count > 1:  # one batch a device: together they are the batch
            whole = [[_repeated(each, count) for each in arrays or ()] for arrays in (batch.data, label)]
            (data, label), provide_data, provide_label = whole, None, None
        else:
            data = batch.data
        data_shapes = self._batch_shapes(self._data_shapes, data, provide_data)
        labels = list(label or ()) if self._label_names else []
        label_shapes = self._label_shapes
        if labels and label_shapes:
            label_shapes = self._batch_shapes(label_shapes, labels, provide_label)
        elif data_shapes is not self._data_shapes:
            label_shapes = None  # they follow from the inputs
        return data_shapes, label_shapes

    @staticmethod
    def _batch_shapes(bound, arrays, provided):
        """The descriptions for a batch: those bound, or new ones where a shape differs."""
        if provided:
            bound_now = descriptions(provided)
            return bound if bound_now == bound else bound_now
        if all(desc.shape == np.shape(a) for desc, a in zip(bound, arrays, strict=False)):
            return bound
        return [
            DataDesc(desc.name, np.shape(a), desc.dtype, desc.layout)
            for desc, a in zip(bound, arrays, strict=True)
        ]

    def _current(self, what: str, *, params=True) -> DataParallelExecutorGroup:
        """The executors of the last batch."""
        self._require(what, params=params)
        if self._group is None:
            raise GraphError(f"Module.{what}: the last forward() failed")
        return self._group

    def backward(self, out_grads=None) -> None:
        """Compute gradients; ``out_grads`` are those of outputs that are not losses."""
        group = self._current("backward")
        if self._ranked is not None:
            self._ranked.begin()
        group.backward(out_grads)

    def update(self) -> None:
        """Let the optimizer change the parameters by their gradients, those of all devices together."""
        self._require("update", optimizer=True)
        self._update_as(self)

    def _update_as(self, numbering: "Module") -> None:
        """Update under the numbers that another module's parameters have, whose optimizer this one shares."""
        if self._ranked is not None:
            self._ranked.finish()
        names = numbering._param_names
        weights = [[each.arg_dict.get(name) for each in self._arrays] for name in names]
        gradients = [[each.grad_dict.get(name) for each in self._arrays] for name in names]
        if self._update_on_kvstore:
            update_params_on_kvstore(weights, gradients, self._kvstore, names)
        else:
            update_params(weights, gradients, self._updater, len(self._arrays), self._kvstore, names)
        if self._ranked is not None:
            self._ranked.updated()

    def get_outputs(self, merge_multi_context=True) -> list:
        """The outputs of the last forward; the next one overwrites them.

        Parameters
        ----------
        merge_multi_context : bool
            Whether those of several devices are joined; otherwise each output is a list, one a device.
        """
        return self._current("get_outputs").get_outputs(merge_multi_context)

    def get_input_grads(self, merge_multi_context=True) -> list:
        """The gradients of the inputs, in the order of ``data_shapes``; merged as :meth:`get_outputs`."""
        group = self._current("get_input_grads")
        if not self.inputs_need_grad:
            raise GraphError("Module.get_input_grads: bind with inputs_need_grad=True")
        return group.get_input_grads(merge_multi_context)

    def get_states(self, merge_multi_context=True) -> list:
        """The arrays of ``state_names``."""
        return self._current("get_states").get_states(merge_multi_context)

    def set_states(self, states=None, value=None) -> None:
        """Set the arrays of ``state_names`` from ``states``, or all to one ``value``."""
        self._current("set_states").set_states(states, value)

    def update_metric(self, eval_metric, labels, pre_sliced=False) -> None:
        """Let a metric take in the outputs and ``labels``: a list for each device if ``pre_sliced``."""
        self._current("update_metric").update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon) -> None:
        """Let a Monitor look at the arrays of every forward."""
        self._require("install_monitor", params=False)
        self._monitor = mon
        self._group.install_monitor(mon)


def _repeated(array, count: int) -> np.ndarray:
    """An array of no memory of its own with the shape of ``count`` such arrays, one after the other."""
    shape = np.shape(array)
    return np.broadcast_to(np.float32(0), (count * shape[0], *shape[1:]))


def create_kvstore(kvstore, num_device: int, arg_params) -> tuple:
    """The store that a training asks for, None where it has nothing to do, and whether it runs the optimizer.

    ``kvstore`` is a store or a name, ``arg_params`` has the parameters by name.
    """
    store = kvstore
    if isinstance(kvstore, str):
        alone = num_device == 1 and "dist" not in kvstore
        store = None if alone else kvstores.create(kvstore)
    if store is None:
        return None, False
    if not isinstance(store, kvstores.KVStoreBase):
        raise TypeError(f"kvstore must be KVStore, str or None, got {type(kvstore).__name__}")
    largest = max((each.size for each in arg_params.values()), default=0)
    if kvstore == "local" and largest > _MOST_UPDATED_IN_STORE:
        return store, False
    wanted = os.environ.get("MXNET_UPDATE_ON_KVSTORE", "1") != "0"
    return store, wanted and store.is_capable(kvstores.KVStoreBase.OPTIMIZER)


def update_params_on_kvstore(param_arrays, grad_arrays, kvstore, param_names) -> None:
    """One step of the optimizer that a store runs."""
    for index, (weights, gradients) in enumerate(zip(param_arrays, grad_arrays, strict=True)):
        if gradients[0] is not None:
            kvstore.pushpull(param_names[index], gradients, out=weights, priority=-index)


def update_params(param_arrays, grad_arrays, updater, num_device, kvstore=None, param_names=None) -> None:
    """One step of ``updater`` on each device, by gradients that a store adds up if there is one."""
    for index, (weights, gradients) in enumerate(zip(param_arrays, grad_arrays, strict=True)):
        if gradients[0] is None:
            continue
        if kvstore is not None:
            kvstore.pushpull(param_names[index], gradients, priority=-index)
        for device, (weight, gradient) in enumerate(zip(weights, gradients, strict=True)):
            updater(index * num_device + device, gradient, weight)


def check_given(caller, what, given, names, allow_missing, surplus_is_wrong) -> None:
    """Raise for all names that are missing in ``given``, with those that are surplus, at once."""
    if given is None:
        return
    missing = [] if allow_missing else [name for name in names if name not in given]
    extra = [name for name in given if name not in names]
    if missing or (extra and surplus_is_wrong):
        parts = [f"lacks {name}{nearest(name, extra)}" for name in missing]
        parts += [f"has {name}, which the network does not{nearest(name, missing)}" for name in extra]
        raise ParamError(f"{caller}: {what} {'; '.join(parts)}")


def _copy_in(what, name, value, target) -> None:
    if tuple(value.shape) != tuple(target.shape):
        raise ShapeError(
            f"Module.init_params: {name} of {what} must have shape {tuple(target.shape)}, "
            f"got {tuple(value.shape)}"
        )
    target[:] = value
