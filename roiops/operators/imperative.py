"""Run one operator on arrays, without a graph. NDArray functions and tests of operators use this."""

import functools
import weakref

import numpy as np

from ..dtypes import stored
from ..errors import DTypeError, MXNetError, ShapeError
from ..kernels.memory import address, empty, unheld
from . import checks
from .base import OpContext, Operator, OperatorProperty, ResultShapeError, known


def infer(prop: OperatorProperty, in_shapes, in_types, in_data=None):
    """Shapes and dtypes of all outputs (hidden ones too) and auxiliary states, from complete inputs.

    ``in_data`` are the inputs themselves, for an operator whose shapes depend on their numbers.
    Returns ``(out_shapes, out_types, aux_shapes, aux_types)``.
    """
    names = prop.list_arguments()
    if len(in_shapes) != len(names):
        raise MXNetError(
            f"{prop.label}: takes {len(names)} inputs ({', '.join(names)}), got {len(in_shapes)}"
        )
    shaped = prop.inferred(in_shapes)
    for name, given, need in zip(names, in_shapes, shaped[0], strict=True):
        if need is not None and tuple(need) != tuple(given):
            raise prop.shape_error(f"{name} must have shape {tuple(need)}, got {tuple(given)}")
    typed = prop.infer_type(list(in_types))
    for name, given, need in zip(names, in_types, typed[0], strict=True):
        if need is not None and need != given:
            raise DTypeError(f"{prop.label}: {name} must have dtype {need}, got {given}")
    out_shapes, out_types = shaped[1], list(typed[1])
    if in_data is not None and not all(map(known, out_shapes)):
        out_shapes = prop.output_shapes(in_data) or out_shapes
    for name, shape, dtype in zip(prop.list_outputs(), out_shapes, out_types, strict=True):
        if not known(shape) or dtype is None:
            raise prop.shape_error(f"the shape or dtype of {name} does not follow from the inputs")
    count = len(prop.list_auxiliary_states())
    aux_types = list(typed[2]) if len(typed) > 2 else [None] * count
    return out_shapes, out_types, shaped[2], aux_types


#: For each weight that is there, by its id: a reference to it, and the plan and the Op of the last call.
_of_weights: dict = {}


class Plan:
    """An operator for inputs of given shapes and dtypes: what its outputs are, and how they are computed.

    Everything that runs a single operator goes through here; a plan may serve any number of calls.
    """

    __slots__ = ("_op", "aux_shapes", "in_shapes", "in_types", "outputs", "prop")

    def __init__(self, prop: OperatorProperty, in_shapes, in_types, in_data=None):
        self.prop, self.in_shapes, self.in_types = prop, in_shapes, in_types
        shapes, types, self.aux_shapes, _ = infer(prop, in_shapes, in_types, in_data)
        #: Shapes and dtypes of all outputs, the hidden ones too.
        self.outputs = [(tuple(s), stored(t)) for s, t in zip(shapes, types, strict=True)]
        self._op = None

    def operator(self, ctx: OpContext, weight=None) -> Operator:
        """An Op for one call: the same for all calls where it may be, or that of the last call with a weight.

        One of a weight is the caller's alone until :meth:`keep` has it back.
        """
        if self._op is not None:
            return self._op
        _, plan, op = _of_weights.pop(id(weight), (None, None, None))
        if plan is self:
            return op
        op = self.prop.create_operator(ctx, self.in_shapes, self.in_types)
        if op.shareable:
            self._op = op
        return op

    def keep(self, op: Operator, weight: np.ndarray) -> None:
        """Keep an Op for the next call with this weight, as long as that is there."""
        op.forget()
        place = id(weight)
        _of_weights[place] = weakref.ref(weight, lambda _: _of_weights.pop(place, None)), self, op

    def check_targets(self, targets) -> None:
        """Raise unless these arrays can hold the first outputs."""
        label = self.prop.label
        for target, (shape, dtype) in zip(targets, self.outputs, strict=False):
            if tuple(target.shape) != shape:
                raise ShapeError(f"{label}: out must have shape {shape}, got {tuple(target.shape)}")
            if target.dtype != dtype:
                raise DTypeError(f"{label}: out must have dtype {dtype}, got {target.dtype}")

    @staticmethod
    @np.errstate(all="ignore")  # 1 / 0 is inf here, as in MXNet, and no warning
    def forward(op: Operator, ctx: OpContext, in_data, out_data, aux) -> None:
        """Compute the outputs for which there is an array."""
        req = ["null" if out is None else "write" for out in out_data]
        if "write" not in req:
            return
        try:
            if checks.on():
                call = functools.partial(op.forward, ctx, in_data, req, out_data, aux)
                checks.writing_all(call, f"{ctx.label}: forward", req, in_data, out_data)()
            else:
                op.forward(ctx, in_data, req, out_data, aux)
        except ResultShapeError as error:
            raise error.named(f"{ctx.label}: forward") from None


class Followed:
    """The operator of a plan, in inference, with others after it that it does on the way.

    ``arrays`` are those of each operator, for the first one all but the data. The data and the output of a
    call have the plan's shapes. Calls are made one at a time.
    """

    def __init__(self, plan: Plan, followings: list, arrays: list, ctx: OpContext):
        self._plan, self._followings, self._arrays, self._ctx = plan, followings, arrays, ctx
        self._op = plan.prop.create_operator(ctx, plan.in_shapes, plan.in_types)
        #: How many operators are done at once, and what becomes of the data.
        self.count, self.output = 1 + len(followings), plan.outputs[0]
        self._places = self._run = None

    @np.errstate(all="ignore")
    def __call__(self, data, out) -> None:
        # Memory that is given back is soon taken again: a layer finds data and output where they were.
        places = address(data), address(out)
        if places != self._places:
            self._places, self._run = places, None
            self._bind(data, out)()
            return
        if self._run is None:
            self._run = self._bind(unheld(data), unheld(out))
        self._run()

    def _bind(self, data, out):
        (learned, *others), count = self._arrays, len(self._plan.in_shapes) - 1
        work = list(zip(self._followings, others, strict=True))
        return self._op.bind_followed(self._ctx, [data, *learned[:count]], learned[count:], out, work, [])


class Invocation:
    """One operator with its inputs, its outputs and what backward needs.

    ``outputs`` holds all outputs, hidden ones too; give ``out`` to write visible ones into your arrays.
    """

    def __init__(
        self,
        prop: OperatorProperty,
        in_data,
        aux=(),
        *,
        ctx: OpContext | None = None,
        out=None,
        empty=empty,
    ):
        self.prop = prop
        self.ctx = ctx or OpContext(label=prop.label)
        self.in_data = list(in_data)
        self.aux = list(aux)
        shapes = [tuple(a.shape) for a in self.in_data]
        types = [np.dtype(a.dtype) for a in self.in_data]
        plan = Plan(prop, shapes, types, self.in_data)
        self.outputs = list(out or [])
        plan.check_targets(self.outputs)
        self.outputs += [empty(*each) for each in plan.outputs[len(self.outputs) :]]
        self.op = plan.operator(self.ctx)

    def forward(self) -> list:
        """Compute; gives the visible outputs."""
        Plan.forward(self.op, self.ctx, self.in_data, self.outputs, self.aux)
        return self.outputs[: self.prop.num_visible_outputs]

    def spoil_undeclared(self) -> None:
        """Fill the inputs and outputs that no backward declares with NaN, for checks of what it reads."""
        needs = self.prop.backward_needs
        lists = {"in_data": self.in_data, "out_data": self.outputs}
        kept = [array for source in needs for array in lists.get(source, ())]
        checks.spoil((a for source, arrays in lists.items() if source not in needs for a in arrays), kept)

    @np.errstate(all="ignore")
    def backward(self, out_grad, req="write", in_grad=None) -> list:
        """Gradients of the inputs; zero where the operator has none. ``out_grad``: of the visible outputs."""
        reqs = [req] * len(self.in_data) if isinstance(req, str) else list(req)
        if in_grad is None:
            in_grad = [np.zeros_like(a) for a in self.in_data]
        hidden = self.outputs[self.prop.num_visible_outputs :]
        out_grad = [*out_grad, *[None] * len(hidden)]
        inner = list(reqs)
        zero = self.prop.list_zero_gradients()
        for i, name in enumerate(self.prop.list_arguments()):
            if name in zero:
                inner[i] = "null"
                if reqs[i] == "write":
                    in_grad[i][...] = 0
        if set(inner) != {"null"}:
            given = checks.declared_only(self.prop, self.ctx.label, out_grad, self.in_data, self.outputs)
            try:
                self.op.backward(self.ctx, *given, inner, in_grad, self.aux)
            except ResultShapeError as error:
                raise error.named(f"{self.ctx.label}: backward") from None
        return in_grad
