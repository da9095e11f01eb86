"""The executors of a module, one a device, each on its slice of the batch."""

import logging
from collections import OrderedDict, namedtuple

import numpy as np

from ... import ndarray
from ...context import Context
from ...errors import DataError, GraphError, ShapeError
from ...graph.program import parse_grad_req
from ...ndarray.parameters import mean_of
from ..io import DataDesc, descriptions

__all__ = ["Arrays", "DataParallelExecutorGroup", "gradient_requests", "means_of_devices", "split_batch"]

#: What executors of one device share: everything but the memory between the operators.
Arrays = namedtuple("Arrays", "arg_dict grad_dict aux_dict")


def split_batch(batch_size: int, workload) -> list[slice]:
    """The rows of a batch that each device computes, in proportion to its load."""
    total = sum(workload)
    counts = [round(load * batch_size / total) for load in workload]
    counts[-1] += max(0, batch_size - sum(counts))
    ends = np.minimum(np.cumsum(counts), batch_size).tolist()
    slices = [slice(begin, end) for begin, end in zip([0, *ends], ends, strict=False)]
    if any(each.start >= each.stop for each in slices):
        raise DataError(
            f"Module: a batch of {batch_size} is too small for {len(slices)} devices; some would get nothing"
        )
    return slices


def gradient_requests(symbol, grad_req, trained, inputs, for_training=True) -> dict[str, str]:
    """``write``, ``add`` or ``null`` for each argument of a module, by what the user asks for.

    Arguments that are neither ``trained`` nor ``inputs`` whose gradient is wanted get ``null``.
    """
    arguments = symbol.list_arguments()
    if not for_training:
        return dict.fromkeys(arguments, "null")
    if isinstance(grad_req, list | tuple):
        return parse_grad_req(grad_req, arguments)
    default = grad_req if isinstance(grad_req, str) else "write"
    requests = {name: default if name in trained or name in inputs else "null" for name in arguments}
    if not isinstance(grad_req, str):
        requests.update(grad_req)
    return requests


def _groups_of_devices(group2ctxs, count: int) -> list:
    """For each device of the batch, where the nodes of each ``ctx_group`` go."""
    if group2ctxs is None:
        return [None] * count
    if isinstance(group2ctxs, dict):
        spread = [{} for _ in range(count)]
        for group, contexts in group2ctxs.items():
            contexts = list(contexts) if isinstance(contexts, list | tuple) else [contexts]
            if len(contexts) not in (1, count):
                raise GraphError(f"Module: group2ctxs[{group!r}] has {len(contexts)} contexts for {count}")
            for i, each in enumerate(spread):
                each[group] = contexts[i % len(contexts)]
        return spread
    group2ctxs = list(group2ctxs)
    if len(group2ctxs) != count:
        raise GraphError(f"Module: group2ctxs has {len(group2ctxs)} entries for {count} contexts")
    return group2ctxs


class DataParallelExecutorGroup:
    """Executors of one symbol, each on its device and its slice of the batch.

    The parameters are those of :class:`Module` and of its ``bind``. ``shared_group``, another group, or
    ``shared``, a group's ``arrays``, lend theirs where names, shapes and types agree. ``execs`` has an
    executor for each device, ``slices`` the rows of the batch that it computes.
    """

    def __init__(
        self,
        symbol,
        contexts,
        workload,
        data_shapes,
        label_shapes,
        param_names,
        for_training,
        inputs_need_grad,
        shared_group=None,
        logger=logging,
        fixed_param_names=None,
        grad_req="write",
        state_names=None,
        group2ctxs=None,
        shared=None,
    ):
        self.symbol, self.contexts = symbol, [Context(each) for each in contexts]
        self.param_names, self.state_names = list(param_names), list(state_names or ())
        self.fixed_param_names = list(fixed_param_names or ())
        self.arg_names, self.aux_names = symbol.list_arguments(), symbol.list_auxiliary_states()
        self.output_names = symbol.list_outputs()
        self.for_training, self.inputs_need_grad = for_training, inputs_need_grad
        self.logger = logger
        self.workload = list(workload or [1] * len(self.contexts))
        if len(self.workload) != len(self.contexts):
            raise DataError(
                f"Module: {len(self.workload)} entries of work_load_list for {len(self.contexts)} contexts"
            )
        self.group2ctxs = _groups_of_devices(group2ctxs, len(self.contexts))
        trained = set(self.param_names) - set(self.fixed_param_names)
        inputs = {each.name for each in descriptions(data_shapes)} if inputs_need_grad else ()
        self.grad_req = gradient_requests(symbol, grad_req, trained, inputs, for_training)
        self.output_layouts = [
            DataDesc.get_batch_axis(symbol[i].attr("__layout__")) for i in range(len(self.output_names))
        ]
        if shared_group is not None:
            shared = shared_group.arrays
        self.shared_data_arrays = (
            [{} for _ in self.contexts] if shared_group is None else shared_group.shared_data_arrays
        )
        self._bind(descriptions(data_shapes), label_shapes and descriptions(label_shapes), shared)

    # -- binding --------------------------------------------------------------------------------------

    def _bind(self, data_shapes, label_shapes, shared) -> None:
        self.data_shapes, self.label_shapes = data_shapes, label_shapes
        self.data_names = [each.name for each in data_shapes]
        self.label_names = [each.name for each in label_shapes] if label_shapes else None
        inputs = [*data_shapes, *(label_shapes or ())]
        self._axes = {each.name: DataDesc.get_batch_axis(each.layout) for each in inputs}
        self._decide_slices(inputs)
        self.execs = [
            self._bind_one(i, inputs, None if shared is None else shared[i])
            for i in range(len(self.contexts))
        ]
        for held, executor in zip(self.shared_data_arrays, self.execs, strict=False):
            held.update((n, a) for n, a in executor.arg_dict.items() if n not in self.param_names)

    def _decide_slices(self, descriptions) -> None:
        """Which rows each device computes; inputs without a batch axis go to all of them whole."""
        sizes = {
            each.name: each.shape[self._axes[each.name]]
            for each in descriptions
            if self._axes[each.name] >= 0
        }
        self.batch_size = next(iter(sizes.values()), None)
        if len(self.contexts) == 1 or self.batch_size is None:
            self.slices = [slice(0, self.batch_size)] * len(self.contexts)
            return
        for name, size in sizes.items():
            if size != self.batch_size:
                raise ShapeError(
                    f"Module: on several devices all inputs must have one batch size: {name} has {size}, "
                    f"{next(iter(sizes))} has {self.batch_size}"
                )
        self.slices = split_batch(self.batch_size, self.workload)

    def _bind_one(self, i: int, descriptions, shared):
        """The executor of a device, which borrows what arrays it can from the executor ``shared``."""
        shapes = {}
        for each in descriptions:
            shape = list(each.shape)
            if self._axes[each.name] >= 0 and len(self.contexts) > 1:
                shape[self._axes[each.name]] = self.slices[i].stop - self.slices[i].start
            shapes[each.name] = tuple(shape)
        executor = self.symbol.simple_bind(
            self.contexts[i],
            grad_req=self.grad_req,
            type_dict={each.name: each.dtype for each in descriptions},
            group2ctx=self.group2ctxs[i],
            shared_exec=shared,
            shared_arg_names=None if shared is None else list(shared.arg_dict),
            shared_buffer={},
            **shapes,
        )
        if shared is not None:
            self._check_shared(executor, shared)
        return executor

    def _check_shared(self, executor, shared) -> None:
        """A parameter must not depend on the inputs' shapes, or it would be lost."""
        for names, ours, theirs in (
            (self.param_names, executor.arg_dict, shared.arg_dict),
            (self.aux_names, executor.aux_dict, shared.aux_dict),
        ):
            for name in names:
                if name in theirs and ours[name] is not theirs[name]:
                    raise ShapeError(
                        f"Module: with these inputs {name} would have shape {tuple(ours[name].shape)}, "
                        f"it has {tuple(theirs[name].shape)}"
                    )

    def reshape(self, data_shapes, label_shapes=None) -> None:
        """Bind anew for inputs of other shapes, with the same parameters."""
        before = self.execs
        self._bind(descriptions(data_shapes), label_shapes and descriptions(label_shapes), self.arrays)
        for old, new in zip(before, self.execs, strict=True):
            new.keep_monitor_of(old)

    # -- what it holds --------------------------------------------------------------------------------

    @property
    def arrays(self) -> list[Arrays]:
        """The arrays of each device, by name."""
        return [Arrays(each.arg_dict, each.grad_dict, each.aux_dict) for each in self.execs]

    @property
    def internal_bytes(self) -> int:
        """The memory between the operators, of all devices."""
        return sum(each.internal_bytes for each in self.execs)

    def _fed(self, descriptions) -> list:
        return [
            [(rows, each.arg_dict[name]) for rows, each in zip(self.slices, self.execs, strict=True)]
            for name, _ in descriptions
        ]

    @property
    def data_arrays(self) -> list:
        """For each input the rows that a device computes, and where it reads them."""
        return self._fed(self.data_shapes)

    @property
    def label_arrays(self) -> list:
        """The same of the labels."""
        return self._fed(self.label_shapes or [])

    def _of_all(self, kind: str, names) -> list:
        return [[getattr(each, kind).get(name) for each in self.execs] for name in names]

    @property
    def param_arrays(self) -> list:
        """For each parameter its array on each device."""
        return self._of_all("arg_dict", self.param_names)

    @property
    def grad_arrays(self) -> list | None:
        """For each parameter its gradient on each device; None where it has none."""
        return self._of_all("grad_dict", self.param_names) if self.for_training else None

    @property
    def aux_arrays(self) -> list:
        """For each auxiliary state its array on each device."""
        return self._of_all("aux_dict", self.aux_names)

    @property
    def state_arrays(self) -> list:
        """For each of ``state_names`` its array on each device."""
        return self._of_all("arg_dict", self.state_names)

    @property
    def input_grad_arrays(self) -> list | None:
        """For each input its gradient on each device."""
        return self._of_all("grad_dict", self.data_names) if self.inputs_need_grad else None

    def set_params(self, arg_params, aux_params, allow_extra=False) -> None:
        """Copy parameters and auxiliary states to all devices."""
        for each in self.execs:
            each.copy_params_from(arg_params, aux_params, allow_extra_params=allow_extra)

    def get_params(self, arg_params, aux_params) -> None:
        """Copy parameters and auxiliary states from the devices, their means where there are several."""
        for targets, means in (
            (arg_params, means_of_devices(self.arrays, "arg_dict", self.param_names)),
            (aux_params, means_of_devices(self.arrays, "aux_dict", self.aux_names)),
        ):
            for name, mean in means.items():
                targets[name][:] = mean

    # -- running --------------------------------------------------------------------------------------

    def forward(self, data_batch, is_train=None) -> None:
        """Run all devices, each on its rows; a list of batches goes to the devices one by one."""
        is_train = self.for_training if is_train is None else is_train
        if isinstance(data_batch, list):
            if len(data_batch) != len(self.execs):
                raise DataError(f"Module.forward: {len(data_batch)} batches for {len(self.execs)} contexts")
            feeds = [self._named(batch) for batch in data_batch]
        else:
            whole = self._named(data_batch)
            feeds = [
                {name: self._rows(name, value, rows) for name, value in whole.items()} for rows in self.slices
            ]
        for executor, feed in zip(self.execs, feeds, strict=True):
            executor.forward(is_train, **feed)

    def _named(self, batch) -> dict:
        """The arrays of a batch by the names that they feed."""
        feed = dict(zip(self.data_names, batch.data, strict=True))
        if self.label_names and (labels := getattr(batch, "label", None)):
            feed.update(zip(self.label_names, labels, strict=False))
        return feed

    def _rows(self, name, value, rows):
        return value if len(self.execs) == 1 else _part(value, self._axes[name], rows)

    def backward(self, out_grads=None) -> None:
        """Compute the gradients on all devices; ``out_grads`` are those of the merged outputs."""
        if not self.for_training:
            raise GraphError("Module.backward: bind with for_training=True")
        if len(self.execs) == 1:
            self.execs[0].backward(out_grads)
            return
        if out_grads is not None and not isinstance(out_grads, list | tuple):
            out_grads = [out_grads]
        for executor, rows in zip(self.execs, self.slices, strict=True):
            given = zip(out_grads or (), self.output_layouts, strict=False)
            parts = [None if grad is None else _part(grad, axis, rows) for grad, axis in given]
            executor.backward(parts or None)

    def _merged(self, blocks, axes) -> list:
        """What the devices hold of each array, joined along its batch axis."""
        if len(self.execs) == 1:
            return [block[0] for block in blocks]
        merged = []
        for block, axis in zip(blocks, axes, strict=True):
            if axis < 0:  # the same on all of them
                merged.append(block[0])
                continue
            block = [each.as_in_context(block[0].context) for each in block]
            merged.append(ndarray.concatenate(block, axis))
        return merged

    def get_outputs(self, merge_multi_context=True, begin=0, end=None) -> list:
        """The outputs of the last forward: merged, or for each output a list of those of the devices."""
        blocks = [[each.outputs[i] for each in self.execs] for i in range(len(self.output_names))][begin:end]
        return self._merged(blocks, self.output_layouts[begin:end]) if merge_multi_context else blocks

    def get_output_shapes(self) -> list:
        """Pairs (name, shape) of the merged outputs."""
        shapes = []
        for name, out, axis in zip(
            self.output_names, self.execs[0].outputs, self.output_layouts, strict=True
        ):
            shape = list(out.shape)
            if axis >= 0 and len(self.execs) > 1:
                shape[axis] = self.batch_size
            shapes.append((name, tuple(shape)))
        return shapes

    def get_input_grads(self, merge_multi_context=True) -> list:
        """The gradients of the inputs: merged, or for each input a list of those of the devices."""
        blocks = self.input_grad_arrays
        axes = [self._axes[name] for name in self.data_names]
        return self._merged(blocks, axes) if merge_multi_context else blocks

    def get_states(self, merge_multi_context=True) -> list:
        """The arrays of ``state_names``; of several devices a list for each."""
        if merge_multi_context and len(self.execs) > 1:
            raise GraphError("Module.get_states: on several devices it needs merge_multi_context=False")
        return [block[0] for block in self.state_arrays] if merge_multi_context else self.state_arrays

    def set_states(self, states=None, value=None) -> None:
        """Set the states from ``states``, an array or a list of one a device each, or all to ``value``."""
        if (states is None) == (value is None):
            raise GraphError("Module.set_states: give either states or value")
        for i, block in enumerate(self.state_arrays):
            for j, target in enumerate(block):
                if states is None:
                    target[:] = value
                else:
                    target[:] = states[i][j] if isinstance(states[i], list | tuple) else states[i]

    def update_metric(self, eval_metric, labels, pre_sliced=False) -> None:
        """Let a metric take in the outputs of each device beside its rows of the labels."""
        names = self.label_names or []
        for i, (executor, rows) in enumerate(zip(self.execs, self.slices, strict=True)):
            mine = labels[i] if pre_sliced else labels or ()
            fed = zip(names, mine, strict=False)
            if not pre_sliced:
                fed = ((name, self._rows(name, label, rows)) for name, label in fed)
            eval_metric.update_dict(OrderedDict(fed), OrderedDict(executor.output_dict))

    def install_monitor(self, mon) -> None:
        """Let a Monitor look at the arrays of every forward."""
        for each in self.execs:
            mon.install(each)


def _part(value, axis: int, rows: slice):
    """Rows of an array along its batch axis."""
    if axis < 0:
        return value
    return value[(slice(None),) * axis + (rows,)]


def means_of_devices(devices, kind: str, names) -> dict:
    """Of the arrays of each device, those of a kind: the means by name, as new arrays on the CPU."""
    return {name: mean_of([getattr(each, kind)[name] for each in devices]) for name in names}
