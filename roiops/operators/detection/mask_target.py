"""What the mask head of Mask R-CNN trains towards."""

import numpy as np

from ...errors import DataError
from ...kernels.rules import Pooling
from ...params import Field, shape
from ...registry import register
from ..base import GradientFree, kernels
from ..dense import WholeOperator, WholeProperty
from ..roi.dialects import find


class MRCNNMaskTargetOp(GradientFree, WholeOperator):
    def run(self, ctx, inputs, results):
        p, (rois, masks, matches, classes) = self.params, inputs
        images, count = matches.shape
        rules = find("contrib.ROIAlign", "", "avg", ("aligned",) if p.aligned else ()).rules
        sampled = np.empty((images * count, 1, *p.mask_size), masks.dtype)
        kernels("roi.average", ctx.device).forward(
            masks.reshape(images * masks.shape[1], 1, *masks.shape[2:]),
            self._boxes(ctx, rois, matches, masks.shape[1]),
            Pooling(rules, 1.0, (p.sample_ratio, p.sample_ratio)),
            sampled,
        )
        results[0][...] = sampled.reshape(images, count, 1, *p.mask_size)  # the same for each class
        chosen = classes[..., None] == np.arange(p.num_classes)
        results[1][...] = chosen[..., None, None]

    def _boxes(self, ctx, rois, matches, masks):
        """Rows ``[mask, x1, y1, x2, y2]``, with the masks of all images counted through."""
        bad = ~(matches < masks)
        if bad.any():
            image, row = np.argwhere(bad)[0]
            raise DataError(
                f"{ctx.label}: matches[{image}, {row}] must be a mask, 0 to {masks - 1}, "
                f"or negative for none, got {matches[image, row]:g}"
            )
        mask = np.where(matches < 0, -1, np.trunc(matches) + masks * np.arange(len(matches))[:, None])
        return np.concatenate([mask[..., None], rois], axis=-1).reshape(-1, 5)


@register("_contrib_mrcnn_mask_target")
class MRCNNMaskTargetProp(WholeProperty):
    """The part of its matching mask that each box covers, for every class, and a mask of its own class."""

    num_rois = Field(int, range=(0, None), doc="boxes an image has")
    num_classes = Field(int, above=0, doc="classes, the background not counted")
    mask_size = Field(shape(2), above=0, doc="size (height, width) of the sampled masks")
    sample_ratio = Field(int, 2, doc="samples a bin and axis; 0 or less: as many as the bin has pixels")
    aligned = Field(bool, False, doc="whether coordinates are moved by half a pixel")

    op = MRCNNMaskTargetOp
    arguments = {
        "rois": "corners (images, rois, 4)",
        "gt_masks": "masks of the size of the image (images, masks, height, width)",
        "matches": "(images, rois): the mask of each box, negative for none, which gives zeros",
        "cls_targets": "(images, rois): the class of each box, the background not counted",
    }
    outputs = ("output0", "output1")
    partial_shapes = True

    def infer_shape(self, in_shapes):
        p = self.params
        masks = self.check_shape("gt_masks", in_shapes[1], ("images", "masks", "height", "width"))
        rois = self.check_shape("rois", in_shapes[0], (masks[0], p.num_rois, 4))
        pair = rois[:2]
        for name, given in zip(self.arguments[2:], in_shapes[2:], strict=True):
            pair = self.check_shape(name, given, pair)
        masks = (pair[0], *masks[1:])
        out = (*pair, p.num_classes, *p.mask_size)
        return [(*pair, 4), masks, pair, pair], [out, out]

    def infer_type(self, in_types):
        dtype = in_types[1]
        self.check_float(dtype, "gt_masks")
        return [given or dtype for given in in_types], [dtype, dtype], []
