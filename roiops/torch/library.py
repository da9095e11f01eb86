"""The registry's operators on regions of interest as operators of PyTorch's dispatcher, ``torch.ops.roiops``.

    output, _ = torch.ops.roiops.ROIAlign(data, rois, pooled_size=(7, 7), spatial_scale=0.25)

A schema follows from an operator's inputs and declared parameters. The second result is what the gradient
needs of the forward pass beside the inputs: where each maximum was. With the operator stand its gradient
(``ROIAlign_backward``), and for both of them the shapes of the results, for PyTorch's compiler. There is no
rule for autocast, and none is needed: float16 and bfloat16 are computed in float32 whether it is on or not.
"""

import torch

from .. import registry
from ..errors import MXNetError
from ..operators.roi.base import ROIProperty
from ..params import REQUIRED, enum, floats, optional, shape
from .plans import BoundOperator, Plan, bind

__all__ = ["OPERATORS", "no_second_derivative", "register_all"]


#: Operators of ``torch.ops.roiops`` by their name in the registry.
OPERATORS = {}


def register_all() -> None:
    """Define the operators on regions of interest that the registry has and PyTorch has not yet."""
    for name in registry.list_operators():
        prop_class = registry.get(name)
        if issubclass(prop_class, ROIProperty) and name not in OPERATORS:
            OPERATORS[name] = _Definition(prop_class).forward


def no_second_derivative(label: str) -> MXNetError:
    """The error of a gradient of the gradient."""
    return MXNetError(
        f"{label}: the gradient of its gradient is not implemented; call backward() without create_graph=True"
    )


def _schema_type(kind) -> str:
    """How PyTorch's schemas call the values of a parameter of this kind."""
    if isinstance(kind, optional):
        return _schema_type(kind.kind) + "?"
    if isinstance(kind, shape):
        length = kind.ndims[0] if kind.ndims and len(kind.ndims) == 1 else ""
        return f"{'float' if isinstance(kind, floats) else 'int'}[{length}]"
    return "str" if isinstance(kind, enum) else kind.text


def _schema_default(value) -> str:
    if value is REQUIRED:
        return ""
    if isinstance(value, str):
        return f'="{value}"'
    return f"={list(value) if isinstance(value, tuple) else value}"


class _Definition:
    """What PyTorch is told of a registered operator.

    PyTorch gives all arguments by position, in the order of the schema: the inputs, of which those beside
    data and rois may be None (displacements under ``no_trans``), then the parameters, the required ones
    first. It leaves out the last of those that have their default.
    """

    def __init__(self, prop_class):
        self.prop_class = prop_class
        self.fields = sorted(prop_class.param.fields.values(), key=lambda field: not field.required)
        _, rois, *others = prop_class.arguments
        rest = [f"Tensor {rois}", *(f"Tensor? {each}" for each in others)]
        params = [f"{_schema_type(f.kind)} {f.name}{_schema_default(f.default)}" for f in self.fields]
        self.forward = self._define(
            "", self._forward, self._fake_forward, ["Tensor data", *rest, *params], "(Tensor, Tensor)"
        )
        heads = ["Tensor grad_out", "Tensor? data"]
        others = ["Tensor hidden", "SymInt[] data_shape", "bool[] wanted"]
        self.backward = self._define(
            "_backward", self._backward, self._fake_backward, [*heads, *rest, *others, *params], "Tensor[]"
        )
        self.forward.register_autograd(self._differentiate, setup_context=self._keep)
        self.backward.register_autograd(self._differentiate_again)

    def _define(self, suffix, kernel, fake, arguments, result):
        name = registry.public_name(self.prop_class.name).replace(".", "_")
        schema = f"({', '.join(arguments)}) -> {result}"
        operator = torch.library.custom_op(
            f"roiops::{name}{suffix}", kernel, mutates_args=(), device_types=("cpu", "cuda"), schema=schema
        )
        operator.register_fake(fake)
        return operator

    def _inputs_and_rest(self, arguments):
        count = len(self.prop_class.arguments)
        return list(arguments[:count]), arguments[count:]

    def _bind(self, values) -> BoundOperator:
        return bind(self.prop_class, {f.name: value for f, value in zip(self.fields, values, strict=False)})

    # -- forward -----------------------------------------------------------------------------------------

    def _forward(self, *arguments):
        inputs, values = self._inputs_and_rest(arguments)
        tensors = [each for each in inputs if each is not None]
        output, *hidden = self._bind(values).plan(tensors).forward(tensors, keep_hidden=True)
        return output, hidden[0] if hidden else _nothing(output)

    def _fake_forward(self, *arguments):
        inputs, values = self._inputs_and_rest(arguments)
        tensors = [each for each in inputs if each is not None]
        shapes, dtypes = [each.shape for each in tensors], [each.dtype for each in tensors]
        plan = Plan(self._bind(values), shapes, dtypes, [each.device for each in tensors])
        output, *hidden = plan.empty_outputs(keep_hidden=True)
        return output.to(dtypes[0]), hidden[0] if hidden else _nothing(output)

    # -- backward ----------------------------------------------------------------------------------------

    def _keep(self, ctx, inputs, output):
        (data, *rest), ctx.values = self._inputs_and_rest(inputs)
        ctx.data_shape = data.shape
        ctx.save_for_backward(data if self.prop_class.backward_reads_data else None, *rest, output[1])

    def _differentiate(self, ctx, grad_out, _):
        names = self.prop_class.arguments
        wanted = [
            needed and name not in self.prop_class.zero_grad
            for needed, name in zip(ctx.needs_input_grad, names, strict=False)
        ]
        found = iter(self.backward(grad_out, *ctx.saved_tensors, ctx.data_shape, wanted, *ctx.values))
        grads = [next(found) if wants else None for wants in wanted]
        return (*grads, *(None for _ in self.fields))

    def _backward_plan(self, make, arguments):
        grad_out, *arguments = arguments
        inputs, (hidden, data_shape, wanted, *values) = self._inputs_and_rest(arguments)
        rest = [each for each in inputs[1:] if each is not None]
        operator = self._bind(values)
        shapes = [data_shape, *(each.shape for each in rest)]
        dtypes = [each.dtype for each in (grad_out, *rest)]
        plan = make(operator, shapes, dtypes, [each.device for each in (grad_out, *rest)])
        wanted = wanted[: 1 + len(rest)]
        return plan, grad_out, [inputs[0], *rest], [hidden] if operator.has_hidden else [], wanted

    def _backward(self, *arguments):
        plan, *arguments = self._backward_plan(BoundOperator.plan_for, arguments)
        return [each for each in plan.backward(*arguments) if each is not None]

    def _fake_backward(self, *arguments):
        plan, grad_out, *_, wanted = self._backward_plan(Plan, arguments)
        return [
            each.to(grad_out.dtype) if i == 0 else each
            for i, each in enumerate(plan.empty_gradients(wanted))
            if each is not None
        ]

    def _differentiate_again(self, ctx, *_):
        raise no_second_derivative(self.prop_class.label)


def _nothing(tensor):
    """The second result of an operator whose gradient needs nothing of the forward pass."""
    return tensor.new_empty(0, dtype=torch.int32)
