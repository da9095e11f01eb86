"""Call an operator on raw arrays, remembering what depends only on its parameters and their shapes."""

import numpy as np

from ..context import Context
from ..dtypes import stored
from ..errors import DTypeError, MXNetError, ShapeError
from ..operators.base import OpContext, OperatorProperty
from ..operators.imperative import infer
from . import device

__all__ = ["run"]


class _Plan:
    """What of a call follows from the operator, its parameters and the inputs' shapes and dtypes."""

    __slots__ = ("in_shapes", "in_types", "outputs", "prop", "reqs")

    def __init__(self, prop: OperatorProperty, arrays, types, given_names):
        names = prop.list_arguments()
        if given_names is not None:
            _check_names(prop, given_names)
        inputs, aux = arrays[: len(names)], arrays[len(names) :]
        self.prop = prop
        self.in_shapes = [tuple(a.shape) for a in inputs]
        self.in_types = (types or [a.dtype for a in arrays])[: len(names)]
        shapes, types, aux_shapes, _ = infer(prop, self.in_shapes, self.in_types)
        for name, need, array in zip(prop.list_auxiliary_states(), aux_shapes, aux, strict=True):
            if need is not None and tuple(need) != tuple(array.shape):
                raise ShapeError(f"{prop.label}: {name} must have shape {tuple(need)}, got {array.shape}")
        visible = prop.num_visible_outputs
        self.outputs = [(tuple(s), stored(t)) for s, t in zip(shapes, types, strict=True)][:visible]
        # Outputs that only backward reads are not computed: there is no backward here.
        self.reqs = ["write"] * visible + ["null"] * (len(shapes) - visible)


def _check_names(prop, given_names) -> None:
    names = (*prop.list_arguments(), *prop.list_auxiliary_states())
    missing = [name for name in names if name not in given_names]
    surplus = [name for name in given_names if name not in names]
    if missing or surplus:
        problem = f"{', '.join(missing)} missing" if missing else f"{', '.join(surplus)} not among them"
        raise MXNetError(
            f"{prop.label}: the inputs with these parameters are {', '.join(names) or 'none'}; {problem}"
        )


_plans: dict = {}
_MOST_PLANS = 4096
_PLAIN = frozenset((bool, int, float, str, type(None), tuple, list, np.dtype, type))


def _plan_for(prop_class, given: dict, arrays, names, types) -> _Plan:
    key = None
    if prop_class.reusable and all(type(value) in _PLAIN for value in given.values()):
        # repr, because 1, 1.0 and True, or 0.0 and -0.0, are equal but not the same parameter.
        key = (
            prop_class,
            names,
            *((name, repr(value)) for name, value in given.items()),
            *((a.shape, a.dtype) for a in arrays),
        )
        if types is not None:
            key = (*key, *types)
        plan = _plans.get(key)
        if plan is not None:
            return plan
    plan = _Plan(prop_class.create(given), arrays, types, names)
    if key is not None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        _plans[key] = plan
    return plan


def run(prop_class, given: dict, arrays: list, ctx: Context, out=None, names=None, types=None) -> list:
    """The visible outputs of an operator.

    ``arrays`` are the inputs, then the auxiliary states, in order; ``names`` are theirs as the caller gave
    them, to be checked, or None. ``out`` holds arrays to write the visible outputs into. ``types`` are the
    dtypes of the arrays where they are not what the arrays say: bfloat16, which is stored as its bits.
    """
    plan = _plan_for(prop_class, given, arrays, names, types)
    prop = plan.prop
    prop.check_device(ctx)
    count = len(plan.in_shapes)
    inputs, aux = arrays[:count], arrays[count:]
    outputs = [None] * len(plan.reqs)
    if out is None:
        for i, (shape, dtype) in enumerate(plan.outputs):
            outputs[i] = device.empty(shape, dtype, ctx)
    else:
        outputs[: len(out)] = _targets(plan, inputs, ctx, out)
    op_context = OpContext(ctx, prop.label)
    op = prop.create_operator(op_context, plan.in_shapes, plan.in_types)
    with np.errstate(all="ignore"):  # 1 / 0 is inf here, as in MXNet, and no warning
        op.forward(op_context, inputs, plan.reqs, outputs, aux)
    for target, result in zip(out or (), outputs, strict=False):
        if target is not result:
            device.copy_into(target, result)
    return outputs[: len(plan.outputs)]


def _targets(plan: _Plan, inputs, ctx, out) -> list:
    """Where to compute: ``out`` itself, or other memory where writing there would disturb an input."""
    prop = plan.prop
    if len(out) != len(plan.outputs):
        raise ShapeError(f"{prop.label}: has {len(plan.outputs)} outputs, got {len(out)} arrays in out")
    targets = []
    for i, (target, (shape, dtype)) in enumerate(zip(out, plan.outputs, strict=True)):
        if tuple(target.shape) != shape:
            raise ShapeError(f"{prop.label}: out must have shape {shape}, got {tuple(target.shape)}")
        if target.dtype != dtype:
            raise DTypeError(f"{prop.label}: out must have dtype {dtype}, got {target.dtype}")
        taken_over = prop.inplace.get(i)
        disturbs = any(
            device.overlap(target, each) and not (j == taken_over and device.same_memory(target, each))
            for j, each in enumerate(inputs)
        )
        targets.append(device.empty(shape, dtype, ctx) if disturbs else target)
    return targets
