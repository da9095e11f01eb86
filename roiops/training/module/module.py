"""Module: one symbol, one device."""

import logging
import warnings
from collections import OrderedDict, namedtuple

import numpy as np

from ...context import Context, current_context
from ...errors import DataError, DeviceError, GraphError, ParamError, ShapeError, nearest
from .. import checkpoint
from .. import kvstore as kvstores
from .. import optimizer as optimizers
from ..initializer import InitDesc, Uniform
from ..io import DataDesc
from .base_module import BaseModule, as_list

__all__ = ["Module"]

#: Executors for earlier input shapes are kept up to this number and to these bytes of their own memory.
_MOST_EXECUTORS = 8
_MOST_BYTES = 2**30

#: What all executors of a module share: everything but the memory between the operators.
_Arrays = namedtuple("_Arrays", "arg_dict grad_dict aux_dict")


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
    context : Context
        Where it runs; a list may hold one.
    work_load_list, group2ctxs, compression_params
        MXNet's options for several devices. Groups may name the one device; compression is an error.
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
        contexts = as_list(context) or [current_context()]
        self._context = Context(contexts[0])
        groups = [each for group in as_list(group2ctxs) for to in group.values() for each in as_list(to)]
        elsewhere = any(Context(each) != self._context for each in groups)
        if len(contexts) > 1 or elsewhere or compression_params:
            raise DeviceError(
                f"Module: runs on one device, got context={context}, group2ctxs={group2ctxs}, "
                f"compression_params={compression_params}. One can take the batch of several as a whole: "
                "context=mx.cpu() uses all processor cores"
            )
        self._symbol = symbol
        self._data_names, self._label_names = list(data_names or ()), list(label_names or ())
        self._state_names, self._fixed = list(state_names or ()), set(fixed_param_names or ())
        arguments = symbol.list_arguments()
        for kind, names, needed in (
            ("data_names", self._data_names, True),
            ("label_names", self._label_names, False),
            ("state_names", self._state_names, True),
            ("fixed_param_names", self._fixed, True),
        ):
            _check_names(kind, names, arguments, needed)
        self._label_names = [name for name in self._label_names if name in arguments]
        inputs = {*self._data_names, *self._label_names, *self._state_names}
        self._param_names = [name for name in arguments if name not in inputs]
        self._aux_names = symbol.list_auxiliary_states()
        self._loaded = None  # parameters that wait for bind
        self._preload_opt_states = None
        self._optimizer = self._updater = None
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
        with open(fname, "wb") as file:
            file.write(self._updater.get_states())

    def load_optimizer_states(self, fname: str) -> None:
        """Read what :meth:`save_optimizer_states` wrote."""
        self._require("load_optimizer_states", optimizer=True)
        with open(fname, "rb") as file:
            self._updater.set_states(file.read())

    # -- what it is -----------------------------------------------------------------------------------

    @property
    def data_names(self) -> list:
        """Names of the inputs."""
        return self._data_names

    @property
    def label_names(self) -> list:
        """Names of the labels."""
        return self._label_names

    @property
    def output_names(self) -> list:
        """Names of the outputs."""
        return self._symbol.list_outputs()

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
        return [(name, out.shape) for name, out in self._executor.output_dict.items()]

    @property
    def _exec_group(self) -> "_ExecutorGroup":
        """MXNet's name for the executors, which published inference scripts reach through."""
        return _ExecutorGroup(self)

    # -- binding --------------------------------------------------------------------------------------

    def _reset_bind(self) -> None:
        self.binded = False
        self._executor = self._arrays = None
        self._executors: OrderedDict = OrderedDict()
        self._data_shapes = self._label_shapes = None

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
        if inputs_need_grad and not for_training:
            raise GraphError("Module.bind: inputs_need_grad needs for_training")
        kept = self.get_params() if self.params_initialized else None
        ranked, self._ranked = self._ranked, None
        self._reset_bind()
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self._grad_req = self._gradient_requests(grad_req)
        lender = None
        if shared_module is not None:
            shared_module._require("bind(shared_module)")
            lender = shared_module._arrays
        self._use_shapes(*self._described(data_shapes, label_shapes), lender)
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
        """Both lists as descriptions, checked against the names."""

        def describe(shapes, names, what):
            descs = [each if isinstance(each, DataDesc) else DataDesc(*each) for each in shapes or ()]
            given = sorted(desc.name for desc in descs)
            if given != sorted(names) and (what == "data" or descs):
                problem = f"Module: {what}_shapes are of {given}, {what}_names are {sorted(names)}"
                if what == "data":
                    raise GraphError(problem)
                warnings.warn(problem, stacklevel=4)
                descs = [desc for desc in descs if desc.name in names]
            return descs

        return (
            describe(data_shapes, self._data_names, "data"),
            describe(label_shapes, self._label_names, "label") or None,
        )

    def _gradient_requests(self, grad_req) -> dict:
        """``write``, ``add`` or ``null`` for each argument."""
        arguments = self._symbol.list_arguments()
        if isinstance(grad_req, list | tuple):
            if len(grad_req) != len(arguments):
                raise GraphError(
                    f"Module.bind: grad_req has {len(grad_req)} entries for {len(arguments)} arguments"
                )
            grad_req = dict(zip(arguments, grad_req, strict=True))
        default = grad_req if isinstance(grad_req, str) else "write"
        requests = {}
        for name in arguments:
            trained = name in self._param_names and name not in self._fixed
            wanted = trained or (self.inputs_need_grad and name in self._data_names)
            requests[name] = default if wanted else "null"
        if not isinstance(grad_req, str):
            requests.update(grad_req)
        return requests if self.for_training else dict.fromkeys(arguments, "null")

    def _use_shapes(self, data_shapes, label_shapes, lender=None) -> None:
        """Switch to an executor for these shapes, made now or before."""
        descs = [*data_shapes, *(label_shapes or ())]
        key = tuple((desc.name, tuple(desc.shape)) for desc in descs)
        if key not in self._executors:
            lender = lender or self._arrays
            self._make_room()
            executor = self._symbol.simple_bind(
                self._context,
                grad_req=self._grad_req,
                type_dict={desc.name: desc.dtype for desc in descs},
                shared_exec=lender,
                **dict(key),
            )
            if lender is not None:
                self._check_shared(executor, lender)
            if self._monitor is not None:
                self._monitor.install(executor)
            if self._ranked is not None:
                self._ranked.watch(executor)
            self._executors[key] = executor
        self._executors.move_to_end(key)
        self._executor = executor = self._executors[key]
        self._arrays = _Arrays(executor.arg_dict, executor.grad_dict, executor.aux_dict)
        self._data_shapes, self._label_shapes = data_shapes, label_shapes

    def _make_room(self) -> None:
        """Forget executors, the one in use longest ago first, before another one takes memory."""
        self._executor = None
        held = self._executors
        while len(held) >= _MOST_EXECUTORS or sum(e.internal_bytes for e in held.values()) > _MOST_BYTES:
            held.popitem(last=False)

    def _check_shared(self, executor, lender) -> None:
        """A parameter must not depend on the inputs' shapes, or it would be lost."""
        for names, ours, theirs in (
            (self._param_names, executor.arg_dict, lender.arg_dict),
            (self._aux_names, executor.aux_dict, lender.aux_dict),
        ):
            for name in names:
                if name in theirs and ours[name] is not theirs[name]:
                    raise ShapeError(
                        f"Module: with these inputs {name} would have shape {tuple(ours[name].shape)}, "
                        f"it has {tuple(theirs[name].shape)}"
                    )

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
            {name: self._arrays.arg_dict[name].copy() for name in self._param_names},
            {name: self._arrays.aux_dict[name].copy() for name in self._aux_names},
        )

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
            Whether names that the network does not have are passed over instead of an error.
        """
        if self.params_initialized and not force_init:
            warnings.warn(
                "Module: parameters are initialized and force_init is False; call ignored", stacklevel=2
            )
            return
        self._require("init_params", params=False)
        attributes = self._symbol.attr_dict()
        groups = (
            ("arg_params", arg_params, self._param_names, self._arrays.arg_dict),
            ("aux_params", aux_params, self._aux_names, self._arrays.aux_dict),
        )
        for what, given, names, _ in groups:
            _check_given(what, given, names, allow_missing, allow_extra)
        for what, given, names, arrays in groups:
            for name in sorted(names):
                if given is not None and name in given:
                    _copy_in(what, name, given[name], arrays[name])
                elif initializer is not None:
                    initializer(InitDesc(name, attributes.get(name), initializer), arrays[name])
                elif given is None:
                    raise ParamError(f"Module.init_params: neither {what} nor an initializer given")
        self.params_initialized = True
        if self._ranked is not None:
            self._ranked.take_from_first()

    # -- training -------------------------------------------------------------------------------------

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
            ``"dist_sync"`` adds up the gradients of all processes that ``mpiexec`` started, and gives all the
            parameters of the first. With one device the other types have nothing to do.
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
        if isinstance(kvstore, str) and "dist" in kvstore:
            kvstore = kvstores.create(kvstore)
        first = self._data_shapes[0]
        batch_size = first.shape[max(0, DataDesc.get_batch_axis(first.layout))]
        if isinstance(kvstore, kvstores.KVStoreBase):
            batch_size *= kvstore.num_workers
        rescale_grad = 1.0 / batch_size
        names = dict(enumerate(self._param_names))
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
        self._optimizer, self._updater = optimizer, optimizers.get_updater(optimizer)
        self.optimizer_initialized = True
        if isinstance(kvstore, kvstores.KVStore) and kvstore.type.startswith("dist"):
            self._join(kvstore)
        if self._preload_opt_states is not None:
            self.load_optimizer_states(self._preload_opt_states)
            self._preload_opt_states = None

    def _join(self, store) -> None:
        """Train in step with the other processes of a distributed store."""
        from ..mpi import RankedModule

        weights, _, auxiliary = self._arrays
        order = [name for name in self._executor.gradient_order if name in self._param_names]
        adds = any(self._grad_req[name] == "add" for name in order)
        self._ranked = RankedModule(
            store, {name: weights[name] for name in self._param_names}, auxiliary, order, not adds
        )
        # Bind anew, with the gradients in the memory that travels.
        self._arrays = self._arrays._replace(grad_dict={**self._arrays.grad_dict, **self._ranked.gradients})
        self._executors.clear()
        self._use_shapes(self._data_shapes, self._label_shapes)

    def borrow_optimizer(self, shared_module) -> None:
        """Share the optimizer of another module, states and all."""
        shared_module._require("borrow_optimizer", optimizer=True)
        self._optimizer, self._updater = shared_module._optimizer, shared_module._updater
        self._ranked = shared_module._ranked
        self.optimizer_initialized = True

    def forward(self, data_batch, is_train=None) -> None:
        """Run the network on a batch.

        Parameters
        ----------
        data_batch : DataBatch
            Inputs and labels, in the order of ``data_names`` and ``label_names``. Any object with ``data``
            will do, such as a ``namedtuple("Batch", ["data"])``.
        is_train : bool, optional
            Whether operators behave as in training; as bound unless given.
        """
        self._require("forward")
        provide_data, label, provide_label = (
            getattr(data_batch, name, None) for name in ("provide_data", "label", "provide_label")
        )
        if len(data_batch.data) != len(self._data_names):
            raise DataError(
                f"Module.forward: {len(data_batch.data)} inputs for data_names {self._data_names}"
            )
        data_shapes = self._batch_shapes(self._data_shapes, data_batch.data, provide_data)
        labels = list(label or ()) if self._label_names else []
        label_shapes = self._label_shapes
        if labels and label_shapes:
            label_shapes = self._batch_shapes(label_shapes, labels, provide_label)
        elif data_shapes is not self._data_shapes:
            label_shapes = None  # they follow from the inputs
        bound = (self._data_shapes, self._label_shapes)
        if self._executor is None or data_shapes is not bound[0] or label_shapes is not bound[1]:
            self._use_shapes(data_shapes, label_shapes)
        feeds = dict(zip([desc.name for desc in data_shapes], data_batch.data, strict=True))
        if label_shapes:
            feeds.update(zip([desc.name for desc in label_shapes], labels, strict=False))
        self._executor.forward(self.for_training if is_train is None else is_train, **feeds)

    @staticmethod
    def _batch_shapes(bound, arrays, provided):
        """The descriptions for a batch: those bound, or new ones where a shape differs."""
        if provided:
            bound_now = [each if isinstance(each, DataDesc) else DataDesc(*each) for each in provided]
            if [(d.name, tuple(d.shape)) for d in bound_now] != [(d.name, tuple(d.shape)) for d in bound]:
                return bound_now
            return bound
        if all(tuple(desc.shape) == tuple(np.shape(a)) for desc, a in zip(bound, arrays, strict=False)):
            return bound
        return [
            DataDesc(desc.name, np.shape(a), desc.dtype, desc.layout)
            for desc, a in zip(bound, arrays, strict=True)
        ]

    def _current(self, what: str):
        """The executor of the last batch."""
        self._require(what)
        if self._executor is None:
            raise GraphError(f"Module.{what}: the last forward() failed")
        return self._executor

    def backward(self, out_grads=None) -> None:
        """Compute gradients; ``out_grads`` are those of outputs that are not losses."""
        executor = self._current("backward")
        if self._ranked is not None:
            self._ranked.begin()
        executor.backward(out_grads)

    def update(self) -> None:
        """Let the optimizer change the parameters by their gradients."""
        self._require("update", optimizer=True)
        if self._ranked is not None:
            self._ranked.finish()
        weights, gradients, _ = self._arrays
        for index, name in enumerate(self._param_names):
            if gradients.get(name) is not None:
                self._updater(index, gradients[name], weights[name])
        if self._ranked is not None:
            self._ranked.updated()

    def get_outputs(self, merge_multi_context=True) -> list:
        """The outputs of the last forward; the next one overwrites them."""
        return list(self._current("get_outputs").outputs)

    def get_input_grads(self, merge_multi_context=True) -> list:
        """The gradients of the inputs, in the order of ``data_names``."""
        self._require("get_input_grads")
        if not self.inputs_need_grad:
            raise GraphError("Module.get_input_grads: bind with inputs_need_grad=True")
        return [self._arrays.grad_dict[name] for name in self._data_names]

    def get_states(self, merge_multi_context=True) -> list:
        """The arrays of ``state_names``."""
        self._require("get_states")
        return [self._arrays.arg_dict[name] for name in self._state_names]

    def set_states(self, states=None, value=None) -> None:
        """Set the arrays of ``state_names`` from ``states``, or all to one ``value``."""
        self._require("set_states")
        for i, array in enumerate(self.get_states()):
            array[:] = value if states is None else states[i]

    def update_metric(self, eval_metric, labels, pre_sliced=False) -> None:
        """Let a metric take in the outputs and ``labels``."""
        outputs = self._current("update_metric").output_dict
        names = [desc.name for desc in self._label_shapes or ()] or self._label_names
        eval_metric.update_dict(OrderedDict(zip(names, labels or (), strict=False)), OrderedDict(outputs))

    def install_monitor(self, mon) -> None:
        """Let a Monitor look at the arrays of every forward."""
        self._require("install_monitor", params=False)
        self._monitor = mon
        for executor in self._executors.values():
            mon.install(executor)


class _ExecutorGroup:
    """A module's executor as a group of one. MXNet's has many names; these are those that scripts use."""

    def __init__(self, module: Module):
        self._module = module

    @property
    def execs(self) -> list:
        return [self._module._current("_exec_group")]

    @property
    def data_arrays(self) -> list:
        return self._slices(self._module.data_shapes)

    @property
    def label_arrays(self) -> list:
        return self._slices(self._module.label_shapes or [])

    def _slices(self, descriptions) -> list:
        """For each input the rows that a device computes, and where it reads them."""
        (executor,) = self.execs
        return [[(slice(0, each.shape[0]), executor.arg_dict[each.name])] for each in descriptions]

    def reshape(self, data_shapes, label_shapes=None) -> None:
        self._module.reshape(data_shapes, label_shapes)


def _check_names(kind, names, arguments, needed) -> None:
    parameters = ("_weight", "_bias", "_gamma", "_beta")
    for name in names:
        if name in arguments:
            continue
        others = [each for each in arguments if not each.endswith(parameters)] or arguments
        text = f"Module: {name!r} of {kind} is not an argument of the symbol ({', '.join(others)})"
        if needed:
            raise GraphError(text + nearest(name, arguments))
        warnings.warn(text, stacklevel=3)


def _check_given(what, given, names, allow_missing, allow_extra) -> None:
    """All names that are missing or surplus, at once."""
    if given is None:
        return
    missing = [] if allow_missing else [name for name in names if name not in given]
    extra = [] if allow_extra else [name for name in given if name not in names]
    if missing or extra:
        parts = [f"lacks {name}{nearest(name, extra)}" for name in missing]
        parts += [f"has {name}, which the network does not{nearest(name, missing)}" for name in extra]
        raise ParamError(f"Module.init_params: {what} {'; '.join(parts)}")


def _copy_in(what, name, value, target) -> None:
    if tuple(value.shape) != tuple(target.shape):
        raise ShapeError(
            f"Module.init_params: {name} of {what} must have shape {tuple(target.shape)}, "
            f"got {tuple(value.shape)}"
        )
    target[:] = value
