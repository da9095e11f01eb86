"""Call an operator on raw arrays, remembering what depends only on its parameters and their shapes."""

import numpy as np

from ..context import Context
from ..errors import MXNetError, ShapeError
from ..operators.base import OpContext, OperatorProperty
from ..operators.imperative import Followed, Plan
from ..recording import current
from . import device

__all__ = ["followed", "plan_for", "run"]


def _plan(prop: OperatorProperty, arrays, types, given_names) -> Plan:
    aux_names = prop.list_auxiliary_states()
    if given_names is not None:
        _check_names(prop, given_names)
    # Counted from the end: Plan refuses inputs that are too many.
    count = len(arrays) - len(aux_names)
    inputs, aux = arrays[:count], arrays[count:]
    types = (types or [a.dtype for a in arrays])[:count]
    plan = Plan(prop, [tuple(a.shape) for a in inputs], types, inputs)
    for name, need, array in zip(aux_names, plan.aux_shapes, aux, strict=True):
        if need is not None and tuple(need) != tuple(array.shape):
            raise ShapeError(f"{prop.label}: {name} must have shape {tuple(need)}, got {array.shape}")
    return plan


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


def plan_for(prop_class, given: dict, arrays, names=None, types=None) -> Plan:
    """How an operator is computed with these parameters and inputs, remembered where that may be."""
    if not (prop_class.reusable and _PLAIN.issuperset(map(type, given.values()))):
        return _plan(prop_class.create(given), arrays, types, names)
    # repr, because 1, 1.0 and True, or 0.0 and -0.0, are equal but not the same parameter.
    key = prop_class, names, repr(given), types and tuple(types), *[(a.shape, a.dtype) for a in arrays]
    found = _plans.get(key)
    if found is None:
        if len(_plans) >= _MOST_PLANS:
            _plans.clear()
        found = _plans[key] = _plan(prop_class.create(given), arrays, types, names)
    return found


def run(
    prop_class, given: dict, arrays: list, ctx: Context, out=None, names=None, types=None, kept=None
) -> list:
    """The visible outputs of an operator.

    ``arrays`` are the inputs, then the auxiliary states, in order; ``names`` are theirs as the caller gave
    them, to be checked, or None. ``out`` holds arrays to write the visible outputs into. ``types`` are the
    dtypes of the arrays where they are not what the arrays say: bfloat16, which is stored as its bits.
    ``kept``, an empty list, gets what backward needs: property, Op, its context, and outputs, the hidden
    ones too.
    """
    plan = plan_for(prop_class, given, arrays, names, types)
    prop = plan.prop
    prop.check_device(ctx)
    count = len(plan.in_shapes)
    inputs, aux = arrays[:count], arrays[count:]
    visible = prop.num_visible_outputs
    if out is None:
        outputs = [device.empty(shape, dtype, ctx) for shape, dtype in plan.outputs[:visible]]
    else:
        outputs = _targets(plan, visible, inputs, ctx, out)
    # Outputs that only backward reads are computed where there will be one.
    hidden = [None if kept is None else device.empty(*each, ctx) for each in plan.outputs[visible:]]
    op_context = OpContext(ctx, prop.label, current.training)
    weight = inputs[1] if prop.op.keeps_weight and kept is None and not op_context.is_train else None
    op = plan.operator(op_context, weight)
    every = [*outputs, *hidden]
    plan.forward(op, op_context, inputs, every, aux)
    if weight is not None:
        plan.keep(op, weight)
    if kept is not None:
        kept += prop, op, op_context, every
    for target, result in zip(out or (), outputs, strict=False):
        if target is not result:
            device.copy_into(target, result)
    return outputs


def followed(operators: list, arrays: list, ctx: Context) -> Followed | None:
    """The first of some operators with those after it that it does on the way; None where there are none.

    ``operators`` are property classes with parameters. ``arrays`` are those of each; for all after the first
    without the first array, which is the output of the one before.
    """
    if operators[0][0].takes_over is OperatorProperty.takes_over:  # it never takes any over
        return None
    plan, followings = plan_for(*operators[0], arrays[0]), []
    out = device.empty(*plan.outputs[0], ctx)
    for operator, more in zip(operators[1:], arrays[1:], strict=True):
        following = plan_for(*operator, [out, *more]).prop.follows([each.shape for each in (out, *more)])
        done = [each.kind for each in followings]
        if following is None or not plan.prop.takes_over(following, done, plan.in_shapes):
            break
        followings.append(following)
    if not followings:
        return None
    arrays = [arrays[0][1:], *arrays[1 : 1 + len(followings)]]
    return Followed(plan, followings, arrays, OpContext(ctx, plan.prop.label, False))


def _targets(plan: Plan, visible: int, inputs, ctx, out) -> list:
    """Where to compute: ``out`` itself, or other memory where writing there would disturb an input."""
    prop = plan.prop
    if len(out) != visible:
        raise ShapeError(f"{prop.label}: has {visible} outputs, got {len(out)} arrays in out")
    plan.check_targets(out)
    targets = []
    for i, target in enumerate(out):
        taken_over = prop.inplace.get(i)
        disturbs = any(
            device.overlap(target, each) and not (j == taken_over and device.same_memory(target, each))
            for j, each in enumerate(inputs)
        )
        targets.append(device.empty(*plan.outputs[i], ctx) if disturbs else target)
    return targets
