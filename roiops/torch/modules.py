"""The functions as modules, with torchvision's arguments, attributes and ``repr``. None has a state."""

import inspect

import torch
from torch import Tensor, nn

from . import functions

__all__ = [
    "DeformRoIPool",
    "MultiScaleRoIAlign",
    "PSRoIAlign",
    "PSRoIPool",
    "RoIAlign",
    "RoIAlignRotated",
    "RoIPool",
    "replace_poolers",
]


class _Module(nn.Module):
    """A function's arguments, as attributes; ``keywords`` are those that torchvision has not, by default."""

    keywords = {}

    def __init__(self, given: dict, **arguments):
        super().__init__()
        for name in given:
            if name not in self.keywords:
                raise TypeError(f"{type(self).__name__}() got an unexpected keyword argument {name!r}")
        self._shown = [*arguments, *given]
        for name, value in {**arguments, **self.keywords, **given}.items():
            setattr(self, name, value)

    def __repr__(self):
        return f"{type(self).__name__}({', '.join(f'{n}={getattr(self, n)}' for n in self._shown)})"


class RoIAlign(_Module):
    """See :func:`roi_align`, whose ``mode`` and ``dialect`` are taken too."""

    keywords = {"mode": "avg", "dialect": "torchvision"}

    def __init__(self, output_size, spatial_scale, sampling_ratio, aligned=False, **keywords):
        super().__init__(
            keywords,
            output_size=output_size,
            spatial_scale=spatial_scale,
            sampling_ratio=sampling_ratio,
            aligned=aligned,
        )

    def forward(self, input: Tensor, rois: Tensor | list[Tensor]) -> Tensor:
        return functions.roi_align(
            input,
            rois,
            self.output_size,
            self.spatial_scale,
            self.sampling_ratio,
            self.aligned,
            mode=self.mode,
            dialect=self.dialect,
        )


class RoIPool(_Module):
    """See :func:`roi_pool`, whose ``dialect`` is taken too."""

    keywords = {"dialect": "torchvision"}

    def __init__(self, output_size, spatial_scale, **keywords):
        super().__init__(keywords, output_size=output_size, spatial_scale=spatial_scale)

    def forward(self, input: Tensor, rois: Tensor | list[Tensor]) -> Tensor:
        return functions.roi_pool(input, rois, self.output_size, self.spatial_scale, dialect=self.dialect)


class PSRoIAlign(_Module):
    """See :func:`ps_roi_align`, whose ``dialect`` is taken too."""

    keywords = {"dialect": "torchvision"}

    def __init__(self, output_size, spatial_scale, sampling_ratio, **keywords):
        super().__init__(
            keywords, output_size=output_size, spatial_scale=spatial_scale, sampling_ratio=sampling_ratio
        )

    def forward(self, input: Tensor, rois: Tensor | list[Tensor]) -> Tensor:
        return functions.ps_roi_align(
            input, rois, self.output_size, self.spatial_scale, self.sampling_ratio, dialect=self.dialect
        )


class PSRoIPool(_Module):
    """See :func:`ps_roi_pool`, whose ``dialect`` and ``as_released`` are taken too."""

    as_released: bool | None
    keywords = {"dialect": "torchvision", "as_released": None}

    def __init__(self, output_size, spatial_scale, **keywords):
        super().__init__(keywords, output_size=output_size, spatial_scale=spatial_scale)

    def forward(self, input: Tensor, rois: Tensor | list[Tensor]) -> Tensor:
        return functions.ps_roi_pool(
            input,
            rois,
            self.output_size,
            self.spatial_scale,
            dialect=self.dialect,
            as_released=self.as_released,
        )


class RoIAlignRotated(_Module):
    """See :func:`roi_align_rotated`, whose ``dialect`` is taken too. The arguments are mmcv's."""

    keywords = {"dialect": "mmcv"}

    def __init__(
        self, output_size, spatial_scale, sampling_ratio=0, aligned=True, clockwise=False, **keywords
    ):
        super().__init__(
            keywords,
            output_size=output_size,
            spatial_scale=spatial_scale,
            sampling_ratio=sampling_ratio,
            aligned=aligned,
            clockwise=clockwise,
        )

    def forward(self, input: Tensor, rois: Tensor) -> Tensor:
        return functions.roi_align_rotated(
            input,
            rois,
            self.output_size,
            self.spatial_scale,
            self.sampling_ratio,
            self.aligned,
            self.clockwise,
            dialect=self.dialect,
        )


class DeformRoIPool(_Module):
    """See :func:`deform_roi_pool`. The arguments are mmcv's."""

    def __init__(self, output_size, spatial_scale=1.0, sampling_ratio=0, gamma=0.1):
        super().__init__(
            {},
            output_size=output_size,
            spatial_scale=spatial_scale,
            sampling_ratio=sampling_ratio,
            gamma=gamma,
        )

    def forward(self, input: Tensor, rois: Tensor, offset: Tensor | None = None) -> Tensor:
        return functions.deform_roi_pool(
            input, rois, offset, self.output_size, self.spatial_scale, self.sampling_ratio, self.gamma
        )


class MultiScaleRoIAlign(_Module):
    """ROIAlign on the level of a feature pyramid that fits each box: see :func:`multi_scale_roi_align`.

    The scales are found at the first call, from the sizes of the features and images, as powers of two.
    ``aligned`` and ``dialect`` are taken too.

    Parameters
    ----------
    featmap_names : list of str
        Which of the feature maps are pooled, from the finest to the coarsest.
    output_size : int or (int, int)
        Height and width of the grid.
    sampling_ratio : int
        Samples of a bin on each axis; 0 or less: one a feature-map pixel, rounded up.
    canonical_scale, canonical_level : int
        A box of ``canonical_scale`` x ``canonical_scale`` is pooled on level ``canonical_level``.
    """

    scales: list[float] | None
    keywords = {"aligned": False, "dialect": "torchvision"}

    def __init__(
        self,
        featmap_names,
        output_size,
        sampling_ratio,
        *,
        canonical_scale=224,
        canonical_level=4,
        **keywords,
    ):
        super().__init__(
            keywords,
            featmap_names=featmap_names,
            output_size=(output_size, output_size) if isinstance(output_size, int) else tuple(output_size),
            sampling_ratio=sampling_ratio,
        )
        self.canonical_scale, self.canonical_level = float(canonical_scale), canonical_level
        self.scales = None

    def forward(
        self, x: dict[str, Tensor], boxes: list[Tensor], image_shapes: list[tuple[int, int]]
    ) -> Tensor:
        """Pool ``boxes``, a list of Tensor[L, 4], from ``x``, a dict of feature maps.

        ``image_shapes`` are the heights and widths of the images that the boxes are in.
        """
        if not torch.jit.is_scripting():
            self._find_scales(x, image_shapes)
        return functions.pool_levels(
            x,
            boxes,
            image_shapes,
            self.featmap_names,
            self.scales,
            self.output_size,
            self.sampling_ratio,
            self.aligned,
            self.canonical_scale,
            self.canonical_level,
            self.dialect,
        )

    @torch.jit.unused
    def _find_scales(self, x, image_shapes):
        if self.scales is None and isinstance(x, dict) and isinstance(image_shapes, (list, tuple)):
            features = [feature for name, feature in x.items() if name in self.featmap_names]
            if all(isinstance(feature, Tensor) for feature in features):  # and not what traces them
                self.scales = functions.pyramid_scales(features, image_shapes)


def replace_poolers(model: nn.Module) -> int:
    """Put our modules in the place of torchvision's in ``model``; how many there were.

    They compute the same and have no state, so that checkpoints fit as before.
    """
    kinds = RoIAlign, RoIPool, PSRoIAlign, PSRoIPool, MultiScaleRoIAlign
    ours = {kind.__name__: kind for kind in kinds}
    replaced = 0
    for parent in list(model.modules()):
        for name, child in list(parent.named_children()):
            kind = ours.get(type(child).__name__)
            if kind is not None and type(child).__module__.startswith("torchvision.ops."):
                arguments = [each for each in inspect.signature(kind).parameters if each != "keywords"]
                setattr(parent, name, kind(**{each: getattr(child, each) for each in arguments}))
                replaced += 1
    return replaced
