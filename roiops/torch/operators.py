"""The registry's operators on regions of interest as functions of tensors, with their gradients.

An eager call runs through a :class:`torch.autograd.Function`, which costs microseconds. A call that PyTorch
looks on at, because it compiles, exports, traces, fakes or profiles, goes to the same operator as
:mod:`library` registers it with the dispatcher, which costs a tenth of a millisecond; one that ``torch.func``
transforms goes to :mod:`transforms`.
"""

import torch
from torch.autograd import forward_ad as _forward_ad

from . import library, transforms
from .plans import bind, bind_choices

__all__ = ["call", "call_with", "differentiable_once", "is_plain"]


def call(prop_class, tensors, params: dict):
    """The output of a registered operator for ``tensors``, its inputs in order."""
    if torch.compiler.is_compiling() or not is_plain(tensors):
        return _watched(prop_class, tensors, params)
    if prop_class.variadic:
        params = {**params, prop_class.variadic: len(tensors)}
    return _run(bind(prop_class, params).plan(tensors), tensors)


def call_with(prop_class, tensors, make_params, *choices):
    """:func:`call` with the parameters that ``make_params`` makes of the ``choices``."""
    if torch.compiler.is_compiling() or not is_plain(tensors):
        return _watched(prop_class, tensors, make_params(*choices))
    try:
        operator = bind_choices(prop_class, make_params, choices)
    except TypeError:  # a list is not hashable
        operator = bind(prop_class, make_params(*choices))
    return _run(operator.plan(tensors), tensors)


def _watched(prop_class, tensors, params):
    definition = library.OPERATORS[prop_class.name]
    if not torch.compiler.is_compiling() and _is_transformed():
        return transforms.call(definition, tensors, params)
    inputs = [list(tensors)] if prop_class.variadic else tensors
    return definition.forward(*inputs, **params)[0]


def _run(plan, tensors):
    if torch.is_grad_enabled():
        for tensor in tensors:
            if tensor.requires_grad:
                return (_apply_small if plan.is_small else _apply)(plan, *tensors)
    return plan.forward(tensors)[0]


# To look these up in PyTorch's modules would take half as long again as to call them.
_Tensor, _Parameter = torch.Tensor, torch.nn.Parameter
_dispatch_modes, _transform = torch._C._len_torch_dispatch_stack, torch._C._functorch.peek_interpreter_stack
_tracing_state, _profiling = torch._C._get_tracing_state, torch.autograd._profiler_enabled


def is_plain(tensors) -> bool:
    """Whether the numbers of these tensors are all that is asked for."""
    for tensor in tensors:
        kind = type(tensor)
        if not (kind is _Tensor or kind is _Parameter) or not (tensor.is_cpu or tensor.is_cuda):
            return False
    return not (_dispatch_modes() or _is_transformed() or _tracing_state() is not None or _profiling())


def _is_transformed() -> bool:
    """Whether ``torch.func`` has a transform under way, or gradients are taken in the forward direction."""
    return _transform() is not None or _forward_ad._current_level >= 0


def _gradients(plan, grad_out, read, hidden, wanted) -> list:
    """The gradients of the inputs, also of a batch: ``torch.vmap`` of ``torch.autograd.grad``."""
    if _transform() is None:
        return plan.backward(grad_out, read, hidden, wanted)
    prop = plan.operator.prop
    definition = library.OPERATORS[prop.name]
    hidden = hidden[0] if hidden else library.nothing_hidden(grad_out)
    values = definition.values_of(prop)
    found = iter(transforms.gradients(definition, values, grad_out, read, plan.unread_shapes, hidden, wanted))
    return [next(found) if wants else None for wants in wanted]


class _Differentiable(torch.autograd.Function):
    """The output of a plan, with the gradients of its inputs."""

    @staticmethod
    def forward(ctx, plan, *inputs):
        outputs = plan.forward(inputs, keep_hidden=True, short=True)
        ctx.plan = plan
        ctx.save_for_backward(*plan.operator.read_by_backward(inputs), *outputs[1:])
        return outputs[0]

    @staticmethod
    def backward(ctx, grad_out):
        plan, saved, needed = ctx.plan, ctx.saved_tensors, ctx.needs_input_grad[1:]
        count = len(needed)
        grads = _gradients(plan, grad_out, saved[:count], saved[count:], plan.operator.wanted(needed))
        return None, *differentiable_once(plan.operator.prop.label, grad_out, grads)


class _DifferentiableSmall(torch.autograd.Function):
    """The same for a call in which the kernels take less time than the lists above.

    Its inputs are a map and boxes, of which the map has a gradient and the boxes are read.
    """

    @staticmethod
    def forward(ctx, plan, data, rois):
        output, *hidden = plan.forward((data, rois), keep_hidden=True)
        ctx.plan = plan
        ctx.save_for_backward(rois, *hidden)
        return output

    @staticmethod
    def backward(ctx, grad_out):
        rois, *hidden = ctx.saved_tensors
        if _transform() is None:
            grad = ctx.plan.gradient_of_map(grad_out, rois, hidden)
        else:
            grad, _ = _gradients(ctx.plan, grad_out, [None, rois], hidden, [True, False])
        if torch.is_grad_enabled():
            (grad,) = differentiable_once(ctx.plan.operator.prop.label, grad_out, [grad])
        return None, grad, None


# What `Function.apply` comes to where no function transform is under way, which `is_plain` has made sure of.
# PyTorch's own looks for them in each input, which takes as long as all that stands above.
_apply = super(torch.autograd.Function, _Differentiable).apply
_apply_small = super(torch.autograd.Function, _DifferentiableSmall).apply
# Nor is there anything to choose from when PyTorch comes to the gradient.
_DifferentiableSmall._backward_cls.apply = _DifferentiableSmall.backward


def differentiable_once(label: str, grad_out, grads):
    """The gradients themselves, whose own gradient is an error."""
    return _Gradients.apply(label, grad_out, *grads) if torch.is_grad_enabled() else grads


class _Gradients(torch.autograd.Function):
    """Gradients that are part of a graph, because ``create_graph`` was asked for."""

    @staticmethod
    def forward(ctx, label, grad_out, *grads):
        ctx.label = label
        return grads

    @staticmethod
    def backward(ctx, *grads):
        raise library.no_second_derivative(ctx.label)
