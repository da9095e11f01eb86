"""ROI operators under ``torch.func``: ``grad``, ``vjp``, ``jacrev``, ``vmap`` and what is built on them.

Of an operator that is not PyTorch's own, these want an autograd function that says apart from computing what
its gradient needs (``setup_context``), and what to do with a batch (``vmap``): here, one call for each of it.
"""

import torch

from ..errors import MXNetError
from .library import no_second_derivative

__all__ = ["call", "gradients"]


def call(definition, tensors, params: dict):
    """The output for ``tensors`` of an operator, given by what :mod:`library` tells PyTorch of it."""
    return _Forward.apply(definition, definition.values(params, len(tensors)), *tensors)[0]


def gradients(definition, values, grad_out, read, shapes, hidden, wanted) -> list:
    """The gradients that are ``wanted``; the arguments are those of the operator's own gradient."""
    if not any(wanted):
        return []
    return list(_Backward.apply(definition, values, shapes, wanted, grad_out, hidden, *read))


def _for_each(function, info, in_dims, *given):
    """The rule of ``vmap``: the results for each of a batch, stacked."""
    every = []
    for number in range(info.batch_size):
        one = (
            x.select(axis, number) if isinstance(x, torch.Tensor) and axis is not None else x
            for x, axis in zip(given, in_dims, strict=True)
        )
        every.append(function.apply(*one))
    results = tuple(torch.stack(each) for each in zip(*every, strict=True))
    return results, (0,) * len(results)


class _Forward(torch.autograd.Function):
    """The operator: its output, and what only the gradient needs."""

    @staticmethod
    def forward(definition, values, *tensors):
        return definition.forward(*definition.arguments(tensors, values))

    @staticmethod
    def setup_context(ctx, inputs, output):
        definition, values, *tensors = inputs
        ctx.definition = definition
        ctx.mark_non_differentiable(output[1])
        definition.keep(ctx, definition.arguments(tensors, values), output)

    @staticmethod
    def backward(ctx, grad_out, _):
        *read, hidden = ctx.saved_tensors
        wanted = ctx.operator.wanted(ctx.needs_input_grad[2:])
        found = iter(gradients(ctx.definition, ctx.values, grad_out, read, ctx.shapes, hidden, wanted))
        return None, None, *(next(found) if wants else None for wants in wanted)

    @staticmethod
    def jvp(ctx, *tangents):
        raise MXNetError(
            f"{ctx.definition.prop_class.label}: gradients in the forward direction (jvp, jacfwd) are not "
            "implemented; take them backward (vjp, grad, jacrev)"
        )

    @staticmethod
    def vmap(info, in_dims, *given):
        return _for_each(_Forward, info, in_dims, *given)


class _Backward(torch.autograd.Function):
    """Its gradients, which have none themselves."""

    @staticmethod
    def forward(definition, values, shapes, wanted, grad_out, hidden, *read):
        return tuple(definition.backward(grad_out, list(read), shapes, hidden, wanted, *values))

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.definition = inputs[0]

    @staticmethod
    def backward(ctx, *grads):
        raise no_second_derivative(ctx.definition.prop_class.label)

    jvp = backward

    @staticmethod
    def vmap(info, in_dims, *given):
        return _for_each(_Backward, info, in_dims, *given)
