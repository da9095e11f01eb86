"""The functions and modules that torchvision has: its numbers, and every kind of tensor that it is called with."""

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")

import roiops.torch as rt  # noqa: E402
from roiops.errors import DataError, DTypeError, InputError, MXNetError, ShapeError  # noqa: E402

NAMES = ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool")
SIZE, SCALE = (3, 2), 0.5


def features(dtype=torch.float32, shape=(2, 12, 9, 11), **options):
    return torch.randn(shape, generator=torch.Generator().manual_seed(16)).to(dtype).requires_grad_(**options)


def boxes(count=9, dtype=torch.float32):
    """Boxes inside and across the border of maps of 9 x 11 at ``SCALE``, on two images."""
    random = torch.Generator().manual_seed(17)
    corner = torch.rand((count, 2), generator=random) * torch.tensor([18.0, 14.0]) - 2
    size = torch.rand((count, 2), generator=random) * 9 + 0.5
    image = torch.randint(0, 2, (count, 1), generator=random)
    return torch.cat([image, corner, corner + size], 1).to(dtype)


def as_list(rois):
    return [rois[rois[:, 0] == image, 1:] for image in range(2)]


def both(name, data, rois, **options):
    """The function's output and the gradient of its data for a fixed head, ours."""
    out = getattr(rt, name)(data, rois, SIZE, SCALE, **options)
    head = torch.randn(out.shape, generator=torch.Generator().manual_seed(18)).to(out.dtype)
    return out.detach(), torch.autograd.grad(out, data, head)[0]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("form", ["tensor", "list"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_torchvisions_numbers(name, form, dtype):
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    data, rois = features(dtype), boxes(dtype=dtype)
    given = rois if form == "tensor" else as_list(rois)
    choices = {"roi_align": [(), (2,), (2, True), (-1, True)], "ps_roi_align": [(), (3,)]}.get(name, [()])
    for more in choices:
        for size in (SIZE, 2):
            ours, theirs = (getattr(each, name)(data, given, size, SCALE, *more) for each in (rt, ops))
            head = torch.randn(ours.shape, dtype=dtype)
            grads = [torch.autograd.grad(each, data, head)[0] for each in (ours, theirs)]
            near = 2e-6 if dtype is torch.float32 else 1e-12
            torch.testing.assert_close(ours, theirs, atol=near, rtol=near)
            torch.testing.assert_close(*grads, atol=near, rtol=near)


@pytest.mark.parametrize("name", ["roi_align", "roi_pool"])
def test_outputs_and_gradients_of_more_than_eight_mebibytes(name):
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    data, rois = features(torch.float64, (2, 24, 150, 160)), boxes(1000, torch.float64)
    ours, theirs = (getattr(each, name)(data, rois, 8, SCALE) for each in (rt, ops))
    assert ours.nbytes > 8 << 20
    assert data.nbytes > 8 << 20
    head = torch.randn(ours.shape, dtype=torch.float64, generator=torch.Generator().manual_seed(18))
    grads = [torch.autograd.grad(each, data, head)[0] for each in (ours, theirs)]
    torch.testing.assert_close(ours, theirs, atol=1e-12, rtol=1e-12)
    torch.testing.assert_close(*grads, atol=1e-12, rtol=1e-12)


def test_a_number_of_numpy_is_a_size():
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    data, rois = features(), boxes()
    size, ratio = np.int64(11), np.int64(3)  # which no other test gives as Python's numbers
    found = rt.roi_align(data, rois, size, SCALE, ratio)
    torch.testing.assert_close(found, ops.roi_align(data, rois, 11, SCALE, 3), atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scale", [1.0, 2.0])
def test_a_map_larger_than_the_image(name, scale):
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    data, rois = features(), boxes()
    rois[:, 1:] /= 4 * scale
    ours, theirs = (getattr(each, name)(data, rois, SIZE, scale) for each in (rt, ops))
    grads = [torch.autograd.grad(each, data, torch.ones_like(each))[0] for each in (ours, theirs)]
    torch.testing.assert_close(ours, theirs, atol=2e-6, rtol=2e-6)
    torch.testing.assert_close(*grads, atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize("shape", [(2, 12, 9, 11), (2, 192, 9, 11)], ids=["few channels", "many"])
@pytest.mark.parametrize("name", NAMES)
def test_the_same_bits_from_any_memory(name, shape):
    """Small calls on plain memory take a way of their own; others take the kernels' usual one."""
    data, rois = features(shape=shape), boxes()
    expected = both(name, data, rois)
    strided = data.detach().transpose(2, 3).contiguous().transpose(2, 3).requires_grad_()
    negated = torch._neg_view(-data.detach()).requires_grad_()
    for other, given in ((strided, rois), (negated, rois), (data, rois.t().contiguous().t())):
        for one, same in zip(expected, both(name, other, given), strict=True):
            assert torch.equal(one, same)
    bad = rois.clone()
    bad[3, 0] = 2
    with pytest.raises(DataError, match=r"row 3 has batch index 2\.0, but data has 2 images"):
        getattr(rt, name)(data, bad, SIZE, SCALE)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("autocast", [False, True])
def test_float16_as_torchvision(name, autocast):
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    data, rois = features(torch.float16), boxes(dtype=torch.float16)
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        ours, theirs = (getattr(each, name)(data, rois, SIZE, SCALE) for each in (rt, ops))
    assert ours.dtype == theirs.dtype == torch.float16
    # torchvision rounds box coordinates to float16 where autocast does not have it compute in float32.
    wide = getattr(rt, name)(data.float(), rois.float(), SIZE, SCALE)
    torch.testing.assert_close(ours, wide.half(), atol=0, rtol=0)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("autocast", [False, True])
def test_half_precision_is_computed_in_float32(name, dtype, autocast):
    data, rois = features(dtype), boxes()
    with torch.autocast("cpu", dtype=torch.bfloat16, enabled=autocast):
        out, grad = both(name, data, rois)
    wide = data.detach().float().requires_grad_()
    expected, expected_grad = both(name, wide, rois)
    assert (out.dtype, grad.dtype) == (dtype, dtype)
    assert torch.equal(out, expected.to(dtype))
    near = {torch.float16: 2e-3, torch.bfloat16: 2e-2}[dtype]  # the head is rounded too
    torch.testing.assert_close(grad.float(), expected_grad, atol=near, rtol=near)
    # As for the boxes: coarse, but exact where their coordinates are.
    halves = (rois * 2).round() / 2
    assert torch.equal(both(name, data, halves.to(dtype))[0], both(name, data, halves)[0])


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(
    "view",
    [
        lambda t: t.to(memory_format=torch.channels_last),
        lambda t: torch.cat([t, t], 1)[:, : t.shape[1]],
        lambda t: t.flip(2).contiguous().flip(2),
        lambda t: t.transpose(2, 3).contiguous().transpose(2, 3),
    ],
    ids=["channels_last", "some of the channels", "a copy by flip", "transposed"],
)
def test_strides_do_not_matter(name, view):
    data, rois = features(), boxes()
    out, grad = both(name, data, rois)
    again, grad_again = both(name, view(data.detach()).requires_grad_(), rois.t().contiguous().t())
    assert torch.equal(out, again)
    torch.testing.assert_close(grad, grad_again, atol=2e-6, rtol=2e-6)


@pytest.mark.parametrize("name", NAMES)
def test_head_gradients_of_any_strides(name):
    data, rois = features(), boxes()
    out = getattr(rt, name)(data, rois, SIZE, SCALE)
    ones = torch.autograd.grad(out, data, torch.ones_like(out), retain_graph=True)[0]
    assert torch.equal(torch.autograd.grad(out.sum(), data)[0], ones)  # the head is one number, expanded


@pytest.mark.parametrize("name", NAMES)
def test_nothing_to_pool(name):
    data = features()
    none = getattr(rt, name)(data, data.new_zeros((0, 5)), SIZE, SCALE)
    assert none.shape == (0, 12 if name in ("roi_align", "roi_pool") else 2, *SIZE)
    assert torch.equal(torch.autograd.grad(none.sum(), data)[0], torch.zeros_like(data))
    assert getattr(rt, name)(data, [data.new_zeros((0, 4))] * 2, SIZE, SCALE).shape == none.shape
    no_images = features(shape=(0, 12, 9, 11))
    assert getattr(rt, name)(no_images, [], SIZE, SCALE).shape == none.shape


@pytest.mark.parametrize("name", NAMES)
def test_boxes_that_require_a_gradient_get_none(name):
    data, rois = features(), boxes().requires_grad_()
    getattr(rt, name)(data, rois, SIZE, SCALE).sum().backward()
    assert data.grad is not None
    assert rois.grad is None
    out = getattr(rt, name)(data.detach(), [each.requires_grad_() for each in as_list(boxes())], SIZE, SCALE)
    out.sum().backward()  # as with torchvision, this is no error


@pytest.mark.parametrize("name", NAMES)
def test_hostile_boxes(name):
    data = features()
    nan, inf = float("nan"), float("inf")
    rois = torch.tensor([[0, nan, 1, 2, 3], [1, 0, 0, inf, 5], [-1, 0, 0, 9, 9], [0, 1e30, 1e30, 2e30, 2e30]])
    out, grad = both(name, data, rois)
    assert not out[:3].any()
    assert torch.isfinite(grad).all()
    with pytest.raises(DataError, match=r"rois row 1 has batch index 2\.0, but data has 2 images"):
        getattr(rt, name)(data, torch.tensor([[0, 0, 0, 4, 4], [2, 0, 0, 4, 4.0]]), SIZE, SCALE)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.uint8], ids=str)
def test_boxes_of_more_images_than_their_dtype_counts_to(dtype):
    data = torch.arange(300.0).reshape(300, 1, 1, 1).expand(300, 1, 2, 2)
    lists = [torch.tensor([[0, 0, 1, 1]], dtype=dtype)] * 300
    for function in (rt.roi_align, torch.jit.script(rt.roi_align)):
        assert torch.equal(function(data, lists, [1, 1])[:, 0, 0, 0], torch.arange(300.0))


def test_errors_say_what_was_wrong():
    data, rois = features(), boxes()
    with pytest.raises(
        ShapeError, match=r"roi_align: boxes must be a Tensor\[K, 5\] or a list .*got shape \(9, 4\)"
    ):
        rt.roi_align(data, rois[:, 1:], SIZE)
    with pytest.raises(
        ShapeError, match=r"roi_pool: boxes\[1\] must be a Tensor\[L, 4\], got shape \(9, 5\)"
    ):
        rt.roi_pool(data, [rois[:, 1:], rois], SIZE)
    for wrong in (None, 5, np.zeros((0, 5))):
        kind = type(wrong).__name__
        with pytest.raises(
            InputError, match=rf"roi_align: boxes must be a Tensor\[K, 5\] or .*, got {kind};"
        ):
            rt.roi_align(data, wrong, SIZE)
    with pytest.raises(DTypeError, match="ROIAlign: data must be float16, float32 or float64, got int64"):
        rt.roi_align(data.detach().long(), rois, SIZE)
    with pytest.raises(MXNetError, match=r"ROIAlign: spatial_scale must be float, 0 or more, got -1"):
        rt.roi_align(data, rois, SIZE, -1)
    with pytest.raises(
        ShapeError, match=r"PSROIAlign: data must have output_dim \* bins = 2 \* 5 = 10 channels, got 12"
    ):
        rt.ps_roi_align(data, rois, (5, 1))


def test_other_dialects_are_those_of_the_operators_on_arrays():
    import roiops as mx

    data, rois = features(), boxes()
    for name, operator, dialect in (
        ("roi_align", "ROIAlign", "mxnet"),
        ("roi_align", "ROIAlign", "chainer"),
        ("roi_pool", "ROIPooling", "mmcv"),
        ("roi_pool", "ROIPooling", "chainer"),
    ):
        params = {"mode": "max"} if operator == "ROIAlign" else {}
        ours = getattr(rt, name)(data, rois, SIZE, SCALE, dialect=dialect, **params)
        on_arrays = getattr(mx.nd, operator)(
            data.detach(), rois, pooled_size=SIZE, spatial_scale=SCALE, dialect=dialect, **params
        )
        assert torch.equal(ours.detach(), on_arrays)
    usual = rt.roi_align(data, rois, SIZE, SCALE, 2, True)
    for dialect in ("detectron2", "mmcv", "torchvision"):
        assert torch.equal(rt.roi_align(data, rois, SIZE, SCALE, 2, True, dialect=dialect), usual)
    largest = rt.roi_align(data, rois, SIZE, SCALE, 2, mode="max", dialect="mmcv")
    assert (largest >= rt.roi_align(data, rois, SIZE, SCALE, 2)).all()


def test_ps_roi_pool_without_torchvisions_defect_has_the_gradient_of_its_output():
    data, rois = features(torch.float64), boxes(dtype=torch.float64)
    assert torch.autograd.gradcheck(
        lambda x: rt.ps_roi_pool(x, rois, SIZE, SCALE, as_released=False), data, fast_mode=True
    )


def test_modules():
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    data, rois = features(), boxes()
    for name, arguments in (
        ("RoIAlign", (SIZE, SCALE, 2)),
        ("RoIAlign", (3, SCALE, -1, True)),
        ("RoIPool", (SIZE, SCALE)),
        ("PSRoIAlign", (2, SCALE, 2)),
        ("PSRoIPool", (SIZE, SCALE)),
    ):
        ours, theirs = (getattr(each, name)(*arguments) for each in (rt, ops))
        assert repr(ours) == repr(theirs)
        assert ours.state_dict() == theirs.state_dict() == {}
        assert (ours.output_size, ours.spatial_scale) == (theirs.output_size, theirs.spatial_scale)
        torch.testing.assert_close(ours(data, rois), theirs(data, rois), atol=2e-6, rtol=2e-6)
    assert (
        repr(rt.RoIPool(7, 0.5, dialect="mmcv")) == "RoIPool(output_size=7, spatial_scale=0.5, dialect=mmcv)"
    )


def test_replace_poolers():
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")

    class Head(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.pool = ops.RoIAlign(SIZE, SCALE, 2, aligned=True)
            self.more = torch.nn.ModuleDict(
                {
                    "levels": ops.MultiScaleRoIAlign(["0", "1"], 5, 2, canonical_level=3),
                    "max": ops.RoIPool(4, SCALE),
                }
            )
            self.score = torch.nn.Linear(2, 2)

        def forward(self, data, rois):
            levels = {"0": data, "1": torch.nn.functional.avg_pool2d(data, 2)}
            pyramid = self.more["levels"](levels, as_list(rois), [(18, 22)] * 2)
            return self.pool(data, rois).sum((1, 2, 3)) + self.more["max"](data, rois).sum() + pyramid.sum()

    head = Head()
    expected, names = head(features(), boxes()), list(head.state_dict())
    before = repr(head)
    assert rt.replace_poolers(head) == 3
    assert (repr(head), list(head.state_dict())) == (before, names)
    assert type(head.pool) is rt.RoIAlign
    torch.testing.assert_close(head(features(), boxes()), expected, atol=1e-4, rtol=1e-5)
    assert rt.replace_poolers(head) == 0


def test_pictures_and_boxes_of_torchvisions_own_tensors():
    ops = pytest.importorskip("torchvision.ops", reason="torchvision is not installed")
    from torchvision import tv_tensors

    image = tv_tensors.Image(torch.rand(1, 8, 18, 22, generator=torch.Generator().manual_seed(6)))
    shapes = torch.tensor([[1.0, 2, 15, 17], [4, 0, 9, 30]])
    boxes = [tv_tensors.BoundingBoxes(shapes, format="XYXY", canvas_size=(18, 22))]
    for name in ("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool"):
        expected = getattr(ops, name)(image, boxes, (2, 4), SCALE)
        found = getattr(rt, name)(image, boxes, (2, 4), SCALE)
        assert type(found) is type(expected) is torch.Tensor
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-5)
