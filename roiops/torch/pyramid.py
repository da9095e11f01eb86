"""Pooling from a feature pyramid, each box from the level that fits its size (Lin et al., 2017)."""

import math

import torch

from ..errors import ShapeError
from .operators import call, differentiable_once, is_plain
from .plans import bind

__all__ = ["levels_of", "pool_levels", "scales_of"]


def scales_of(features, image_shapes) -> list[float]:
    """The scale of each feature map, a power of two, from its height and that of the largest image."""
    if not image_shapes:
        raise ShapeError("multi_scale_roi_align: image_shapes must not be empty")
    height = max(shape[0] for shape in image_shapes)
    return [2.0 ** round(math.log2(feature.shape[-2] / height)) for feature in features]


def levels_of(rois, scales, canonical_scale, canonical_level):
    """The number of the feature map that each row of ``rois`` is pooled from."""
    lowest, highest = (int(-math.log2(scale)) for scale in (scales[0], scales[-1]))
    corners = rois[:, 1:] if rois.dtype in (torch.float32, torch.float64) else rois[:, 1:].float()
    size = torch.sqrt((corners[:, 2] - corners[:, 0]) * (corners[:, 3] - corners[:, 1]))
    # torchvision adds 1e-6 too, so that a box of just the size of a level belongs to it.
    level = torch.floor(canonical_level + torch.log2(size / canonical_scale) + 1e-6)
    # A box whose size is not a number gives zeros on any level.
    return level.clamp(lowest, highest).nan_to_num(lowest).to(torch.int64) - lowest


def pool_levels(prop_class, features, rois, levels, params: list):
    """An operator on each feature map, with its own parameters, for those ``rois`` that belong to it."""
    rows = [torch.where(levels == level)[0] for level in range(len(features))]
    inputs = [(feature, rois[row]) for feature, row in zip(features, rows, strict=True)]
    if torch.compiler.is_compiling() or not is_plain([*features, rois]):
        results = [call(prop_class, each, given) for each, given in zip(inputs, params, strict=True)]
        result = torch.cat([each.to(features[0].dtype) for each in results])
        return torch.empty_like(result).index_copy(0, torch.cat(rows), result)
    plans = [bind(prop_class, given).plan(each) for each, given in zip(inputs, params, strict=True)]
    return _Levels.apply(plans, rows, [each[1] for each in inputs], *features)


class _Levels(torch.autograd.Function):
    """The outputs of some plans, each in its rows of one tensor, without PyTorch's copies in between."""

    @staticmethod
    def forward(ctx, plans, rows, rois, *features):
        ctx.plans, ctx.rows, hidden, result = plans, rows, [], None
        for plan, row, boxes, feature in zip(plans, rows, rois, features, strict=True):
            output, *more = plan.forward((feature, boxes), keep_hidden=True)
            if result is None:
                result = output.new_empty((sum(map(len, rows)), *output.shape[1:]))
            result.index_copy_(0, row, output.to(result.dtype))
            hidden += more
        ctx.save_for_backward(*rois, *hidden)
        return result

    @staticmethod
    def backward(ctx, grad_out):
        count = len(ctx.plans)
        rois, hidden = ctx.saved_tensors[:count], ctx.saved_tensors[count:]
        each_has = len(hidden) // count
        grads = []
        for i, (plan, row, needed) in enumerate(
            zip(ctx.plans, ctx.rows, ctx.needs_input_grad[3:], strict=True)
        ):
            if needed:
                head = grad_out.index_select(0, row).to(plan.dtype)
                own = hidden[i * each_has : (i + 1) * each_has]
                grads.append(plan.backward(head, (None, rois[i]), own, (True, False))[0])
            else:
                grads.append(None)
        label = ctx.plans[0].operator.prop.label
        return None, None, None, *differentiable_once(label, grad_out, grads)
