"""Trainer: an optimizer on the parameters of blocks, with a KVStore for several devices or hosts."""

from ..training import optimizer as opt
from ..training.module.module import create_kvstore
from .parameter import Parameter

__all__ = ["Trainer"]


class Trainer:
    """Updates parameters after each backward.

    The arguments are MXNet's: ``kvstore`` sums gradients over devices and hosts, ``"device"``,
    ``"dist_sync"`` or a store; ``update_on_kvstore`` says whether it updates the parameters, too.
    """

    def __init__(
        self,
        params,
        optimizer,
        optimizer_params=None,
        kvstore="device",
        compression_params=None,
        update_on_kvstore=None,
    ):
        if isinstance(params, dict):
            params = [params[name] for name in sorted(params)]
        if not isinstance(params, list | tuple):
            raise ValueError(f"First argument must be a list or dict of Parameters, got {type(params)}.")
        for each in params:
            if not isinstance(each, Parameter):
                raise ValueError(
                    f"First argument must be a list or dict of Parameters, got list of {type(each)}."
                )
            each._trainer = self
        self._params = list(params)
        self._compression_params = compression_params
        self._contexts = self._check_contexts()
        by_number = dict(enumerate(self._params))
        if isinstance(optimizer, opt.Optimizer):
            if optimizer_params:
                raise AssertionError(
                    "optimizer_params must be None if optimizer is an instance of Optimizer instead of str"
                )
            self._optimizer = optimizer
            self._optimizer.param_dict = by_number
        else:
            self._optimizer = opt.create(optimizer, param_dict=by_number, **(optimizer_params or {}))
        self._updaters = [opt.get_updater(self._optimizer) for _ in self._contexts]
        self._count_from_the_optimizer()
        self._scale = self._optimizer.rescale_grad
        self._asked_store, self._asked_update = kvstore, update_on_kvstore
        self._reset_kvstore()

    def _count_from_the_optimizer(self) -> None:
        #: How often each parameter was updated, on each device: one optimizer serves all of them.
        self._counts = [dict(self._optimizer._index_update_count) for _ in self._contexts]

    def _check_contexts(self):
        contexts = self._params[0].list_ctx() if self._params else []
        for each in self._params:
            if contexts != each.list_ctx():
                raise AssertionError(
                    "All Parameters must be initialized on the same set of contexts, but Parameter "
                    f"{each.name} is initialized on {each.list_ctx()} while previous Parameters are "
                    f"initialized on {contexts}."
                )
        return contexts

    # -- the store -----------------------------------------------------------------------------------

    def _reset_kvstore(self) -> None:
        if getattr(self, "_kvstore", None) and "dist" in self._kvstore.type:
            raise RuntimeError("Cannot reset distributed KVStore.")
        self._kv_initialized, self._kvstore = False, None
        self._distributed = self._update_on_kvstore = None
        self._params_to_init = list(self._params)

    def _forget_store_of(self, parameter) -> None:
        """A parameter was set by hand: a store that keeps the values is to take them anew."""
        if self._update_on_kvstore and parameter not in self._params_to_init:
            self._reset_kvstore()

    def _init_kvstore(self) -> None:
        asked = self._asked_update
        arrays = {each.name: each.data(self._contexts[0]) for each in self._params}
        store, on_store = create_kvstore(self._asked_store, len(self._contexts), arrays)
        if store is not None:
            self._distributed = "dist" in store.type
            on_store = on_store if asked is None else asked
            if on_store and not store.is_capable("optimizer"):
                raise ValueError(f"Please set update_on_kvstore=False when training with {type(store)}")
            if self._compression_params:
                store.set_gradient_compression(self._compression_params)
            if on_store:
                store.set_optimizer(self._optimizer)
            self._kvstore, self._update_on_kvstore = store, on_store
        self._kv_initialized = True

    def _make_ready(self) -> None:
        if not self._kv_initialized:
            self._init_kvstore()
        waiting = []
        for i, each in enumerate(self._params):
            if each not in self._params_to_init:
                continue
            if each._deferred_init:
                waiting.append(each)
            elif self._kvstore:
                self._kvstore.broadcast(i, each.list_data()[0], each.list_data())
        self._params_to_init = waiting

    # -- the optimizer -------------------------------------------------------------------------------

    @property
    def optimizer(self):
        """The optimizer."""
        return self._optimizer

    @property
    def learning_rate(self) -> float:
        """The learning rate now."""
        return self._optimizer.learning_rate

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate."""
        self._optimizer.set_learning_rate(lr)

    def _rescale(self, scale) -> None:
        if self._update_on_kvstore and self._distributed and self._optimizer.rescale_grad != scale:
            raise UserWarning(
                "Possible change in the `batch_size` from previous `step` detected. Optimizer gradient "
                "normalizing factor will not change w.r.t new batch_size when update_on_kvstore=True and "
                "when distributed kvstore is used."
            )
        self._optimizer.rescale_grad = scale

    def step(self, batch_size, ignore_stale_grad=False) -> None:
        """Sum gradients over devices, divide them by ``batch_size`` and update the parameters.

        A parameter without a new gradient is an error, or is passed over with ``ignore_stale_grad``.
        """
        self._rescale(self._scale / batch_size)
        self._make_ready()
        self._allreduce_grads()
        self._update(ignore_stale_grad)

    def _not_on_store(self, what) -> None:
        self._make_ready()
        if self._update_on_kvstore:
            raise AssertionError(
                f"{what}() when parameters are updated on kvstore is not supported. Try setting "
                "`update_on_kvstore` to False when creating trainer."
            )

    def allreduce_grads(self) -> None:
        """Sum gradients over devices; :meth:`update` then is the other half of :meth:`step`."""
        self._not_on_store("allreduce_grads")
        self._allreduce_grads()

    def update(self, batch_size, ignore_stale_grad=False) -> None:
        """Update the parameters by their gradients as they are."""
        self._not_on_store("update")
        self._rescale(self._scale / batch_size)
        self._update(ignore_stale_grad)

    def _allreduce_grads(self) -> None:
        for i, each in enumerate(self._params if self._kvstore else ()):
            if each.grad_req != "null":
                out = {"out": each.list_data()} if self._update_on_kvstore else {}
                self._kvstore.pushpull(i, each.list_grad(), priority=-i, **out)

    def _update(self, ignore_stale_grad) -> None:
        trained = [(i, each) for i, each in enumerate(self._params) if each.grad_req != "null"]
        for _, each in trained:
            for array in each.list_data():
                if not ignore_stale_grad and not array._fresh_grad:
                    raise UserWarning(
                        f"Gradient of Parameter `{each.name}` on context {array.context} has not been "
                        "updated by backward since last `step`. This could mean a bug in your model that "
                        "made it only use a subset of the Parameters (Blocks) for this iteration. If you "
                        "are intentionally only using a subset, call step with ignore_stale_grad=True to "
                        "suppress this warning and skip updating of Parameters with stale gradient"
                    )
        if self._update_on_kvstore:
            return
        for device, (counts, updater) in enumerate(zip(self._counts, self._updaters, strict=True)):
            updater.optimizer._index_update_count = counts
            for i, each in trained:
                array = each.list_data()[device]
                if array._fresh_grad:
                    updater(i, each.list_grad()[device], array)
                    array._fresh_grad = False

    # -- files ---------------------------------------------------------------------------------------

    def save_states(self, fname) -> None:
        """Write the optimizer's states to a file."""
        self._make_ready()
        holder = self._kvstore if self._update_on_kvstore else self._updaters[0]
        holder.save_optimizer_states(fname, dump_optimizer=True)

    def load_states(self, fname) -> None:
        """Read the optimizer's states from a file."""
        self._make_ready()
        for holder in [self._kvstore] if self._update_on_kvstore else self._updaters:
            holder.load_optimizer_states(fname)
        self._count_from_the_optimizer()
