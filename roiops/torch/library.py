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
from ..operators import lowering
from ..operators.roi.base import ROIProperty
from ..params import REQUIRED, enum, floats, optional, shape
from .plans import BoundOperator, Plan, bind

__all__ = ["OPERATORS", "Definition", "no_second_derivative", "nothing_hidden", "register_all"]


#: What PyTorch was told of each operator, by its name in the registry.
OPERATORS: dict[str, "Definition"] = {}


def register_all() -> None:
    """Define the operators on regions of interest that the registry has and PyTorch has not yet."""
    for name in registry.list_operators():
        prop_class = registry.get(name)
        if issubclass(prop_class, ROIProperty) and name not in OPERATORS:
            OPERATORS[name] = Definition(prop_class)


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


class Definition:
    """What PyTorch is told of a registered operator: ``forward`` and ``backward`` are its operators.

    PyTorch gives all arguments by position, in the order of the schema: the inputs, of which those beside
    data and rois may be None (displacements under ``no_trans``), or a list of them, then the parameters, the
    required ones first. It leaves out the last of those that have their default.
    """

    def __init__(self, prop_class):
        self.prop_class = prop_class
        fields = [field for name, field in prop_class.param.fields.items() if name != prop_class.variadic]
        self.fields = sorted(fields, key=lambda field: not field.required)
        #: The name in ``torch.ops.roiops``.
        self.name = registry.public_name(prop_class.name).replace(".", "_")
        names = ["inputs"] if prop_class.variadic else prop_class.arguments
        self.argument_names = [*names, *(field.name for field in self.fields)]
        if prop_class.variadic:
            self.inputs = 1
            inputs = ["Tensor[] inputs"]
        else:
            self.inputs = len(prop_class.arguments)
            data, rois, *others = prop_class.arguments
            inputs = [f"Tensor {data}", f"Tensor {rois}", *(f"Tensor? {each}" for each in others)]
        params = [f"{_schema_type(f.kind)} {f.name}{_schema_default(f.default)}" for f in self.fields]
        self.forward = self._define(
            "", self._forward, self._fake_forward, [*inputs, *params], "(Tensor, Tensor)"
        )
        # Inputs are None that are not read; of those come the shapes, one after the other.
        heads = ["Tensor grad_out", "Tensor?[] inputs", "SymInt[] shapes", "Tensor hidden", "bool[] wanted"]
        self.backward = self._define(
            "_backward", self._backward, self._fake_backward, [*heads, *params], "Tensor[]"
        )
        self.forward.register_autograd(self._differentiate, setup_context=self.keep)
        self.backward.register_autograd(self._differentiate_again)
        torch.onnx.register_custom_op_symbolic(f"roiops::{self.name}", self._symbolic, lowering.OLDEST)

    def _define(self, suffix, kernel, fake, arguments, result):
        schema = f"({', '.join(arguments)}) -> {result}"
        name, devices = f"roiops::{self.name}{suffix}", ("cpu", "cuda")
        operator = torch.library.custom_op(name, kernel, mutates_args=(), device_types=devices, schema=schema)
        operator.register_fake(fake)
        return operator

    def values(self, params: dict, count: int) -> list:
        """The parameters' values for ``count`` inputs, in the order of the schema."""
        if self.prop_class.variadic:
            params = {**params, self.prop_class.variadic: count}
        return self.values_of(bind(self.prop_class, params).prop)

    def values_of(self, prop) -> list:
        """The values of the parameters that ``prop`` was made with."""
        return [getattr(prop.params, field.name) for field in self.fields]

    def arguments(self, tensors, values) -> list:
        """The inputs and the parameters' values as the operators take them."""
        if self.prop_class.variadic:
            return [list(tensors), *values]
        return [*tensors, *[None] * (self.inputs - len(tensors)), *values]

    def _bind(self, values, count) -> BoundOperator:
        params = {field.name: value for field, value in zip(self.fields, values, strict=False)}
        if self.prop_class.variadic:
            params[self.prop_class.variadic] = count
        return bind(self.prop_class, params)

    def _split(self, arguments):
        """The operator, its inputs, and the parameters' values."""
        inputs, values = arguments[: self.inputs], arguments[self.inputs :]
        tensors = inputs[0] if self.prop_class.variadic else [each for each in inputs if each is not None]
        return self._bind(values, len(tensors)), tensors, values

    # -- forward -----------------------------------------------------------------------------------------

    def _forward(self, *arguments):
        operator, tensors, _ = self._split(arguments)
        output, *hidden = operator.plan(tensors).forward(tensors, keep_hidden=True)
        return output, hidden[0] if hidden else nothing_hidden(output)

    def _fake_forward(self, *arguments):
        operator, tensors, _ = self._split(arguments)
        shapes, dtypes, devices = zip(*((t.shape, t.dtype, t.device) for t in tensors), strict=True)
        output, *hidden = Plan(operator, shapes, dtypes, devices).empty_outputs()
        return output.to(dtypes[0]), hidden[0] if hidden else nothing_hidden(output)

    def _symbolic(self, *arguments):
        from .onnx import symbolic  # which reads much that only an export needs

        return symbolic(self, *arguments)

    # -- backward ----------------------------------------------------------------------------------------

    def keep(self, ctx, inputs, output):
        """Keep what the gradient needs, given the arguments and both results."""
        ctx.operator, tensors, ctx.values = self._split(inputs)
        read = ctx.operator.read_by_backward(tensors)
        ctx.shapes = [n for each, kept in zip(tensors, read, strict=True) if kept is None for n in each.shape]
        ctx.save_for_backward(*read, output[1])

    def _differentiate(self, ctx, grad_out, _):
        needed = ctx.needs_input_grad[0] if self.prop_class.variadic else ctx.needs_input_grad
        wanted = ctx.operator.wanted(needed)
        *read, hidden = ctx.saved_tensors
        found = iter(self.backward(grad_out, read, ctx.shapes, hidden, wanted, *ctx.values))
        grads = [next(found) if wants else None for wants in wanted]
        if self.prop_class.variadic:
            return (grads, *(None for _ in ctx.needs_input_grad[1:]))
        absent = [None] * (self.inputs - len(grads))
        return (*grads, *absent, *(None for _ in self.fields))

    def _backward_plan(self, make, grad_out, inputs, shapes, values):
        every, left = [], list(shapes)
        for each in inputs:
            every.append(left[:4] if each is None else each.shape)
            left = left[4:] if each is None else left
        like = [grad_out if each is None else each for each in inputs]
        operator = self._bind(values, len(inputs))
        return make(operator, every, [each.dtype for each in like], [each.device for each in like])

    def _backward(self, grad_out, inputs, shapes, hidden, wanted, *values):
        plan = self._backward_plan(BoundOperator.plan_for, grad_out, inputs, shapes, values)
        hidden = [hidden] if plan.operator.has_hidden else []
        return [each for each in plan.backward(grad_out, inputs, hidden, wanted) if each is not None]

    def _fake_backward(self, grad_out, inputs, shapes, hidden, wanted, *values):
        plan = self._backward_plan(Plan, grad_out, inputs, shapes, values)
        dtypes = [grad_out.dtype if each is None else each.dtype for each in inputs]
        grads = zip(plan.empty_gradients(wanted), dtypes, strict=True)
        return [each.to(dtype) for each, dtype in grads if each is not None]

    def _differentiate_again(self, ctx, *_):
        raise no_second_derivative(self.prop_class.label)


def nothing_hidden(tensor):
    """The second result of an operator whose gradient needs nothing of the forward pass."""
    return tensor.new_empty(0, dtype=torch.int32)
