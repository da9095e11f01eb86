"""Modules one after the other: the outputs of each are the data of the next."""

import copy
import logging

from ...errors import GraphError, ParamError
from .base_module import BaseModule, CompositeModule

__all__ = ["SequentialModule"]


class SequentialModule(CompositeModule):
    """Modules one after the other: the outputs of each are the data of the next."""

    META_TAKE_LABELS = "take_labels"
    META_AUTO_WIRING = "auto_wiring"

    def __init__(self, logger=logging):
        super().__init__(logger)
        self._modules: list[BaseModule] = []
        self._metas: list[dict] = []
        self._label_shapes = None

    def add(self, module, **kwargs) -> "SequentialModule":
        """Put a module at the end.

        Parameters
        ----------
        take_labels : bool
            Whether it gets the labels of a batch, and its outputs are measured.
        auto_wiring : bool
            Whether the outputs before it take the names of its data, in order.
        """
        known = self.META_TAKE_LABELS, self.META_AUTO_WIRING
        for key in kwargs:
            if key not in known:
                raise ParamError(f'Unknown meta "{key}", a typo?')
        self._modules.append(module)
        self._metas.append(kwargs)
        self.binded = self.params_initialized = self.optimizer_initialized = False
        return self

    def _takes_labels(self, meta) -> bool:
        return bool(meta.get(self.META_TAKE_LABELS))

    @property
    def _first(self) -> BaseModule:
        return self._modules[0] if self._modules else BaseModule()

    @property
    def _last(self) -> BaseModule:
        return self._modules[-1] if self._modules else BaseModule()

    def _bind(
        self, data_shapes, label_shapes, for_training, inputs_need_grad, force_rebind, shared_module, grad_req
    ):
        """Bind every module; all but the first get the shapes of the outputs before them."""
        if shared_module is not None:
            raise ParamError("SequentialModule.bind: modules do not share memory with others; leave it None")
        if not self._modules:
            raise GraphError("SequentialModule.bind: there is no module yet; add() some")
        for number, (module, meta) in enumerate(zip(self._modules, self._metas, strict=True)):
            if meta.get(self.META_AUTO_WIRING):
                shapes = [tuple(shape)[1] for shape in data_shapes]
                if len(module.data_names) != len(shapes):
                    raise GraphError(
                        f"SequentialModule.bind: module {number} has {len(module.data_names)} data, "
                        f"{len(shapes)} outputs stand before it"
                    )
                data_shapes = list(zip(module.data_names, shapes, strict=True))
            module.bind(
                data_shapes=data_shapes,
                label_shapes=label_shapes if self._takes_labels(meta) else None,
                for_training=for_training,
                inputs_need_grad=inputs_need_grad or (for_training and number > 0),
                force_rebind=force_rebind,
                grad_req=grad_req,
            )
            data_shapes = module.output_shapes
        self._label_shapes = label_shapes if any(map(self._takes_labels, self._metas)) else None

    def _init_params(self, initializer, arg_params, aux_params, allow_missing, force_init, allow_extra):
        """Fill the parameters of every module; no two may have one of the same name."""
        owners: dict[str, int] = {}
        for number, module in enumerate(self._modules):
            module.init_params(initializer, arg_params, aux_params, allow_missing, force_init, allow_extra)
            for names in module.get_params():
                for name in names:
                    if owners.setdefault(name, number) != number:
                        raise GraphError(
                            f'Duplicated parameter names: name "{name}" in layer {number} is already used in '
                            f"layer {owners[name]}."
                        )

    def get_params(self):
        self._require("get_params")
        arguments, states = {}, {}
        for module in self._modules:
            own_arguments, own_states = module.get_params()
            arguments.update(own_arguments)
            states.update(own_states)
        return arguments, states

    def _init_optimizer(self, kvstore, optimizer, optimizer_params, force_init):
        for module in self._modules:
            module.init_optimizer(kvstore, optimizer, optimizer_params, force_init)

    def forward(self, data_batch, is_train=None) -> None:
        self._require("forward")
        batch = copy.copy(data_batch)
        for module in self._modules:
            module.forward(batch, is_train=is_train)
            if module is not self._modules[-1]:
                batch.data = module.get_outputs()
                batch.provide_data = None  # the outputs come in the order of the data

    def backward(self, out_grads=None) -> None:
        self._require("backward")
        for module in reversed(self._modules):
            module.backward(out_grads=out_grads)
            if module is not self._modules[0]:
                out_grads = module.get_input_grads()

    def update(self) -> None:
        self._require("update", optimizer=True)
        for module in self._modules:
            module.update()

    def update_metric(self, eval_metric, labels, pre_sliced=False) -> None:
        """Let a metric look at the outputs of the modules that take labels."""
        self._require("update_metric")
        for module, meta in zip(self._modules, self._metas, strict=True):
            if self._takes_labels(meta):
                module.update_metric(eval_metric, labels, pre_sliced)

    def install_monitor(self, mon) -> None:
        self._require("install_monitor", params=False)
        for module in self._modules:
            module.install_monitor(mon)
