"""Run one operator on arrays, without a graph. NDArray functions and tests of operators use this."""

import numpy as np

from ..errors import DTypeError, MXNetError, ShapeError
from .base import OpContext, OperatorProperty, known

__all__ = ["Invocation", "infer"]


def infer(prop: OperatorProperty, in_shapes, in_types):
    """Shapes and dtypes of all outputs (hidden ones too) and auxiliary states, from complete inputs.

    Returns ``(out_shapes, out_types, aux_shapes, aux_types)``.
    """
    names = prop.list_arguments()
    if len(in_shapes) != len(names):
        raise MXNetError(
            f"{prop.label}: takes {len(names)} inputs ({', '.join(names)}), got {len(in_shapes)}"
        )
    shaped = prop.infer_shape(list(in_shapes))
    for name, given, need in zip(names, in_shapes, shaped[0], strict=True):
        if need is not None and tuple(need) != tuple(given):
            raise ShapeError(f"{prop.label}: {name} must have shape {tuple(need)}, got {tuple(given)}")
    typed = prop.infer_type(list(in_types))
    for name, given, need in zip(names, in_types, typed[0], strict=True):
        if need is not None and need != given:
            raise DTypeError(f"{prop.label}: {name} must have dtype {need}, got {given}")
    out_shapes, out_types = list(shaped[1]), list(typed[1])
    for name, shape, dtype in zip(prop.list_outputs(), out_shapes, out_types, strict=True):
        if not known(shape) or dtype is None:
            raise ShapeError(f"{prop.label}: the shape or dtype of {name} does not follow from the inputs")
    count = len(prop.list_auxiliary_states())
    aux_shapes = list(shaped[2]) if len(shaped) > 2 else [None] * count
    aux_types = list(typed[2]) if len(typed) > 2 else [None] * count
    return out_shapes, out_types, aux_shapes, aux_types


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
        empty=np.empty,
    ):
        self.prop = prop
        self.ctx = ctx or OpContext(label=prop.label)
        self.in_data = list(in_data)
        self.aux = list(aux)
        shapes = [tuple(a.shape) for a in self.in_data]
        types = [np.dtype(a.dtype) for a in self.in_data]
        out_shapes, out_types, _, _ = infer(prop, shapes, types)
        self.outputs = list(out or [])
        for name, array, shape, dtype in zip(
            prop.list_outputs(), self.outputs, out_shapes, out_types, strict=False
        ):
            if tuple(array.shape) != tuple(shape) or array.dtype != dtype:
                raise ShapeError(
                    f"{prop.label}: out for {name} must have shape {tuple(shape)} and dtype {dtype}, "
                    f"got {tuple(array.shape)} and {array.dtype}"
                )
        for shape, dtype in list(zip(out_shapes, out_types, strict=True))[len(self.outputs) :]:
            self.outputs.append(empty(shape, dtype))
        self.op = prop.create_operator(self.ctx, shapes, types)

    @np.errstate(all="ignore")
    def forward(self) -> list:
        """Compute; gives the visible outputs."""
        self.op.forward(self.ctx, self.in_data, ["write"] * len(self.outputs), self.outputs, self.aux)
        return self.outputs[: self.prop.num_visible_outputs]

    @np.errstate(all="ignore")
    def backward(self, out_grad, req="write", in_grad=None) -> list:
        """Gradients of the inputs; zero where the operator has none. ``out_grad``: of the visible outputs."""
        reqs = [req] * len(self.in_data) if isinstance(req, str) else list(req)
        if in_grad is None:
            in_grad = [np.zeros_like(a) for a in self.in_data]
        hidden = self.outputs[self.prop.num_visible_outputs :]
        out_grad = [*out_grad, *[None] * len(hidden)]
        inner = list(reqs)
        for i, name in enumerate(self.prop.list_arguments()):
            if name in self.prop.zero_grad:
                inner[i] = "null"
                if reqs[i] == "write":
                    in_grad[i][...] = 0
        self.op.backward(self.ctx, out_grad, self.in_data, self.outputs, inner, in_grad, self.aux)
        return in_grad
