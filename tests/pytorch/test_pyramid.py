"""ROIAlign from a feature pyramid: torchvision's numbers, and a loop over the boxes."""

import math

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")

import roiops.torch as rt  # noqa: E402
from roiops.errors import MXNetError, ParamError, ShapeError  # noqa: E402

IMAGES = [(128, 160), (120, 128)]


def pyramid(dtype=torch.float32, levels=4):
    random = torch.Generator().manual_seed(19)
    return {
        str(i): torch.randn((2, 5, 32 >> i, 40 >> i), generator=random).to(dtype).requires_grad_()
        for i in range(levels)
    }


def boxes(dtype=torch.float32):
    """Boxes of all sizes, some of just the size of a level, and one that has no size."""
    random = torch.Generator().manual_seed(20)
    sides = 2 ** (torch.rand((60, 1), generator=random) * 7 + 1.5) * (
        1 + torch.rand((60, 2), generator=random)
    )
    corner = torch.rand((60, 2), generator=random) * 100
    exact = torch.tensor([[0, 0, 112, 112], [0, 0, 224, 224], [3, 3, 59, 59], [10, 10, 10, 10.0]])
    every = torch.cat([torch.cat([corner, corner + sides], 1), exact]).to(dtype)
    return [every[::2], every[1::2]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_torchvisions_numbers(dtype):
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    features = pyramid(dtype)
    features["unused"] = torch.randn(2, 5, 3, 3)
    for arguments, keywords in (
        ((list("0123"), 7, 2), {}),
        ((list("123"), (3, 5), -1), {"canonical_level": 5, "canonical_scale": 160}),
    ):
        ours, theirs = (each.MultiScaleRoIAlign(*arguments, **keywords) for each in (rt, ops))
        assert repr(ours) == repr(theirs)
        results = [each(features, boxes(dtype), IMAGES) for each in (ours, theirs)]
        assert ours.scales == theirs.scales
        near = 2e-6 if dtype is torch.float32 else 1e-12
        torch.testing.assert_close(*results, atol=near, rtol=near)
        maps = [features[name] for name in arguments[0]]
        head = torch.randn_like(results[0])
        for one, other in zip(*(torch.autograd.grad(each, maps, head) for each in results), strict=True):
            torch.testing.assert_close(one, other, atol=near, rtol=near)


def test_a_loop_over_the_boxes():
    features, given = list(pyramid().values()), boxes()
    scales = rt.pyramid_scales(features, IMAGES)
    assert scales == [1 / 4, 1 / 8, 1 / 16, 1 / 32]
    found = rt.multi_scale_roi_align(features, given, (3, 2), scales, 2)
    place = 0
    for image, some in enumerate(given):
        for box in some:
            side = math.sqrt((box[2] - box[0]) * (box[3] - box[1]))
            level = 2 if side == 0 else math.floor(4 + math.log2(side / 224) + 1e-6)
            level = min(max(level, 2), 5) - 2
            row = torch.cat([torch.tensor([float(image)]), box])[None]
            expected = rt.roi_align(features[level], row, (3, 2), scales[level], 2)
            torch.testing.assert_close(found[place : place + 1], expected, atol=0, rtol=0)
            place += 1
    assert place == len(found)


@pytest.mark.parametrize("dialect", ["torchvision", "mmdet"])
def test_gradient(dialect):
    features = [each.detach()[:, :2].double().requires_grad_() for each in pyramid().values()]
    given = [each[:4] for each in boxes(torch.float64)]

    def pooled(*maps):
        return rt.multi_scale_roi_align(maps, given, 2, [1 / 4, 1 / 8, 1 / 16, 1 / 32], 2, dialect=dialect)

    assert torch.autograd.gradcheck(pooled, features, fast_mode=True)
    (grad,) = torch.autograd.grad(pooled(*features).square().sum(), features[0], create_graph=True)
    with pytest.raises(
        MXNetError, match="MultiScaleROIAlign: the gradient of its gradient is not implemented"
    ):
        grad.sum().backward()


def test_half_precision_and_mixed_levels():
    features, given = list(pyramid().values()), boxes()
    scales = [1 / 4, 1 / 8, 1 / 16, 1 / 32]
    mixed = [each.bfloat16() if i % 2 else each for i, each in enumerate(features)]
    expected = rt.multi_scale_roi_align([each.float() for each in mixed], given, 3, scales)
    out = rt.multi_scale_roi_align(mixed, given, 3, scales)
    assert out.dtype == torch.float32  # that of the first level, as in torchvision
    torch.testing.assert_close(out, expected, atol=2e-2, rtol=2e-2)
    out.sum().backward()


def test_frozen_levels_and_no_boxes():
    features, none = list(pyramid().values()), [torch.zeros(0, 4)] * 2
    scales = rt.pyramid_scales(features, IMAGES)
    features[1] = features[1].detach()
    rt.multi_scale_roi_align(features, boxes(), 3, scales).sum().backward()
    assert [each.grad is None for each in features] == [False, True, False, False]
    assert rt.multi_scale_roi_align(features, none, 3, scales).shape == (0, 5, 3, 3)
    assert rt.multi_scale_roi_align(features[:1], boxes(), 3, scales[:1]).shape == (64, 5, 3, 3)


def test_boxes_that_are_no_boxes_give_zeros():
    features, nan = list(pyramid().values()), float("nan")
    given = [torch.tensor([[nan, 0, 5, 5], [0, 0, float("inf"), 9]]), torch.tensor([[9, 9, 2, 20.0]])]
    out = rt.multi_scale_roi_align(features, given, 2, rt.pyramid_scales(features, IMAGES))
    assert not out[:2].any()
    assert torch.isfinite(out).all()


def test_another_rule_for_the_level():
    """mmdet's first level has boxes up to 56; Detectron2 has torchvision's levels, and pixels' centres."""
    features, given = list(pyramid().values()), [torch.tensor([[8.0, 8, 72, 72]]), torch.zeros(0, 4)]
    scales = rt.pyramid_scales(features, IMAGES)
    row = torch.tensor([[0.0, 8, 8, 72, 72]])
    for dialect, size, level, aligned in (
        ("mmdet", 56, 0, True),
        ("mmdet", 28, 1, False),
        ("detectron2", 224, 0, True),
        ("detectron2", 56, 2, True),
    ):
        found = rt.multi_scale_roi_align(
            features, given, 2, scales, 2, aligned, canonical_scale=size, dialect=dialect
        )
        expected = rt.roi_align(features[level], row, 2, scales[level], 2, aligned)
        torch.testing.assert_close(found, expected, atol=0, rtol=0)
    with pytest.raises(ParamError, match="aligned must be False under dialect 'torchvision'"):
        rt.multi_scale_roi_align(features, given, 2, scales, 2, True)


def test_image_shapes_are_needed():
    with pytest.raises(ShapeError, match="multi_scale_roi_align: image_shapes must not be empty"):
        rt.MultiScaleRoIAlign(["0"], 2, 2)(pyramid(), boxes(), [])
