"""A graph as a program: steps in order, the values they read and write, and where gradients go.

A value is named by ``(id(node), output)``; the gradient of a value by ``("grad", value)``. Everything is
decided here from names, shapes and types; no array is touched.
"""

from collections import Counter
from dataclasses import dataclass, field

from ..errors import GraphError
from .plan import Step

__all__ = ["BackwardStep", "ForwardStep", "Program", "build", "grad_of"]


def grad_of(value) -> tuple:
    """The name of the gradient of a value."""
    return ("grad", value)


@dataclass
class ForwardStep:
    """One operator of the forward pass. A value of None is an output that nobody reads."""

    prop: object
    name: str
    inputs: list
    aux: list
    outputs: list
    #: Work of following operators that this step does as well: ``(Following, further input values)``.
    fused: list = field(default_factory=list)
    #: Work of earlier operators that this step does to its first input, in the same form.
    before: list = field(default_factory=list)
    #: Whether this step does the ReLU after it as well, forward and backward.
    with_relu: bool = False

    @property
    def reads(self) -> list:
        """All values that the step reads."""
        others = [value for _, values in (*self.before, *self.fused) for value in values]
        return [*self.inputs, *self.aux, *others]


@dataclass
class BackwardStep:
    """The backward pass of one forward step."""

    forward: ForwardStep
    out_grads: list
    in_grads: list
    reqs: list


@dataclass
class Program:
    forward: list[ForwardStep]
    backward: list[BackwardStep]
    #: Values whose gradient the caller of backward gives.
    head_grads: list
    #: Gradients that are all zeros: outputs of an operator that nothing after it depends on.
    zeros: set
    #: Arguments that no gradient reaches although one was asked for.
    unreached: list[str]
    #: The names of the arguments that ask for a gradient, by their values.
    wanted: dict = field(default_factory=dict)
    #: Where values lie in memory, once that is planned.
    layout: tuple | None = None

    def finished_gradients(self) -> list[list[str]]:
        """For each step of backward, the arguments whose gradients no later step writes."""
        last = {value: i for i, step in enumerate(self.backward) for value in step.in_grads}
        finished = [[] for _ in self.backward]
        for value, name in self.wanted.items():
            if grad_of(value) in last:
                finished[last[grad_of(value)]].append(name)
        return finished

    def plan_steps(self) -> list[Step]:
        """The program as the memory plan sees it."""
        steps = []
        for step in self.forward:
            prop = step.prop
            takeover = {
                step.outputs[o]: step.inputs[i]
                for o, i in prop.inplace.items()
                if o < len(step.outputs) and step.outputs[o] is not None and i < len(step.inputs)
            }
            takeover.update((step.outputs[0], values[0]) for work, values in step.fused if work.kind == "add")
            writes = [value for value in step.outputs if value is not None]
            steps.append(Step(step.reads, writes, takeover))
        for step in self.backward:
            needs, reads = step.forward.prop.backward_needs, [*step.forward.aux]
            if "out_grad" in needs:
                reads += [value for value in step.out_grads if value is not None]
            if "in_data" in needs:
                reads += step.forward.inputs
            if "out_data" in needs:
                reads += [value for value in step.forward.outputs if value is not None]
            writes = [value for value in step.in_grads if value is not None]
            takeover = {
                step.in_grads[i]: step.out_grads[o]
                for i, o in step.forward.prop.inplace_grad.items()
                if i < len(step.in_grads)
                and step.in_grads[i] is not None
                and writes.count(step.in_grads[i]) == 1
                and step.reqs[i] == "write"
                and step.out_grads[o] is not None
                and step.out_grads[o] not in self.zeros
            }
            steps.append(Step(reads, writes, takeover))
        return steps


def build(order, heads, grad_req: dict[str, str], device, merged: bool = False) -> Program:
    """The program of a graph, whose nodes are in order, inputs before users.

    An operator that cannot run on ``device`` is an error here. If ``merged``, operators that can do the ReLU
    after them as well, forward and backward.
    """
    forward = _forward(order, heads, device)
    if merged:
        forward = _with_relus(forward, {(id(node), index) for node, index in heads})
    return _with_backward(forward, order, heads, grad_req)


def _forward(order, heads, device) -> list[ForwardStep]:
    read = {(id(node), index) for node, index in heads}
    for node in order:
        read.update((id(child), index) for child, index in node.inputs)
    steps = []
    for node in order:
        if node.is_variable:
            continue
        prop = node.require_prop()
        prop.check_device(device)
        values = [(id(child), index) for child, index in node.inputs]
        count = len(prop.list_arguments())
        outputs = [(id(node), i) for i in range(len(prop.list_outputs()))]
        for i in range(prop.num_visible_outputs, len(outputs)):
            if outputs[i] not in read:
                outputs[i] = None
        steps.append(ForwardStep(prop, node.name, values[:count], values[count:], outputs))
    return steps


def _with_relus(forward, heads) -> list[ForwardStep]:
    """The steps, each ReLU a part of the one that makes what it alone reads, where that one can do it."""
    readers = Counter(value for step in forward for value in step.reads)
    makers, steps = {}, []
    for step in forward:
        maker = makers.get(step.inputs[0]) if len(step.inputs) == 1 else None
        work = maker and step.prop.follows([])
        if work and (work.kind, work.details) == ("act", {"floor": 0}):
            maker.outputs[0], maker.with_relu = step.outputs[0], True
            continue
        steps.append(step)
        value = step.outputs[0] if step.outputs else None
        if step.prop.trains_with_relu and readers[value] == 1 and value not in heads:
            makers[value] = step
            # Outputs are named by their operator: those that backward reads besides, too.
            step.outputs[1:] = [(value[0], i) for i in range(1, len(step.outputs))]
    return steps


def _with_backward(forward, order, heads, grad_req) -> Program:
    wanted = {
        (id(node), 0): node.name
        for node in order
        if node.is_variable and grad_req.get(node.name, "null") != "null"
    }
    # The values whose gradients lead to one that is asked for. Nothing reads those of a loss's outputs, so
    # what follows a loss, such as a Reshape of it, has no part in backward and needs no head gradient.
    needs = set(wanted)
    differentiable = []  # for each step, the inputs to which a gradient goes
    for step in forward:
        names, zero = step.prop.list_arguments(), step.prop.list_zero_gradients()
        into = [value in needs and name not in zero for name, value in zip(names, step.inputs, strict=True)]
        differentiable.append(into)
        if any(into):
            visible = step.prop.num_visible_outputs
            if not step.prop.is_loss:
                needs.update(step.outputs[:visible])
            # Backward may read what it hid in forward.
            node_id = next(value for value in step.outputs if value is not None)[0]
            for i in range(visible, len(step.outputs)):
                step.outputs[i] = step.outputs[i] or (node_id, i)
    head_values = [(id(node), index) for node, index in heads]
    head_grads = [v for v in dict.fromkeys(head_values) if v in needs]
    have = set(head_grads)
    backward, zeros = [], set()
    for step, into in zip(reversed(forward), reversed(differentiable), strict=True):
        if not any(into):
            continue
        visible = step.prop.num_visible_outputs
        received = [value in have for value in step.outputs[:visible]]
        if not (any(received) or step.prop.is_loss or step.prop.backward_always):
            continue
        if not step.prop.differentiable:
            raise GraphError(
                f"bind: {step.prop.label} has no gradient; set grad_req to 'null' for what it reads, or put "
                "BlockGrad after it"
            )
        out_grads = [grad_of(value) for value in step.outputs[:visible]]
        if step.prop.is_loss:
            out_grads = [None] * visible
        else:
            zeros.update(g for g, got in zip(out_grads, received, strict=True) if not got)
        out_grads += [None] * (len(step.outputs) - visible)
        in_grads, reqs = [], []
        for value, wants in zip(step.inputs, into, strict=True):
            if not wants:
                in_grads.append(None)
                reqs.append("null")
                continue
            first = grad_req[wanted[value]] if value in wanted else "write"
            in_grads.append(grad_of(value))
            reqs.append("add" if value in have else first)
            have.add(value)
        backward.append(BackwardStep(step, out_grads, in_grads, reqs))
    # A variable that is itself a head receives the head gradient directly.
    unreached = [name for value, name in wanted.items() if value not in have]
    return Program(forward, backward, head_grads, zeros, unreached, wanted)


def parse_grad_req(grad_req, names: list[str]) -> dict[str, str]:
    """``grad_req`` as a string, list or dict, for every argument."""
    if isinstance(grad_req, str):
        result = dict.fromkeys(names, grad_req)
    elif isinstance(grad_req, dict):
        # Names that are no arguments are passed over, as in MXNet: scripts have one dict for many networks.
        result = {name: grad_req.get(name, "null") for name in names}
    else:
        grad_req = list(grad_req)
        if len(grad_req) != len(names):
            raise GraphError(f"bind: grad_req has {len(grad_req)} entries for {len(names)} arguments")
        result = dict(zip(names, grad_req, strict=True))
    for name, req in result.items():
        if req not in ("write", "add", "null"):
            raise GraphError(f"bind: grad_req of {name} must be 'write', 'add' or 'null', got {req!r}")
    return result
