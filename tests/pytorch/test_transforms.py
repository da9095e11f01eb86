"""``torch.func`` transforms, and two processes that share a batch."""

import pytest
from torch_cases import ONE_EACH, TORCHSCRIPT_IS_DEPRECATED

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")

import roiops.torch as rt  # noqa: E402
from roiops.errors import MXNetError  # noqa: E402
from roiops.registry import get  # noqa: E402
from roiops.torch import op  # noqa: E402

ROIS = torch.tensor([[0.0, 1, 2, 20, 30], [1, 3, 4, 30, 20], [0, 5, 5, 9, 31]])


def features(*batch):
    return torch.randn(*batch, 2, 8, 16, 20, generator=torch.Generator().manual_seed(3))


def pooled(data, rois=ROIS):
    """Two operators, one of which keeps something for its gradient."""
    return rt.roi_align(data, rois, 2, 0.5, 2) * rt.roi_pool(data, rois, 2, 0.5)


def gradient(function, *inputs):
    """The gradients that autograd gives of the sum of squares."""
    leaves = [each.clone().requires_grad_() for each in inputs]
    return torch.autograd.grad(function(*leaves).square().sum(), leaves)


@pytest.mark.parametrize("case", ONE_EACH.values(), ids=ONE_EACH)
def test_grad_of_every_operator(case):
    name, arrays, params = case
    function = getattr(op.contrib if "_contrib_" in name else op, name.removeprefix("_contrib_"))
    inputs = [torch.tensor(each, dtype=torch.float32) for each in arrays]
    fixed = get(name).zero_grad
    names = [f"data{i}" for i in range(len(inputs) - 1)] + ["rois"]
    if not get(name).variadic:
        names = get(name).arguments[: len(inputs)]
    sloped = [i for i, each in enumerate(names) if each not in fixed]

    def of_sloped(*given):
        every = list(inputs)
        for i, each in zip(sloped, given, strict=True):
            every[i] = each
        return function(*every, **params)

    given = [inputs[i] for i in sloped]
    found = torch.func.grad(lambda *x: of_sloped(*x).square().sum(), argnums=tuple(range(len(given))))(*given)
    for one, other in zip(found, gradient(of_sloped, *given), strict=True):
        assert torch.equal(one, other)


def test_jacobians():
    data = features()[:, :, :6, :6].contiguous()
    rois = ROIS / 4
    expected = torch.autograd.functional.jacobian(lambda x: pooled(x, rois), data)
    assert torch.equal(torch.func.jacrev(lambda x: pooled(x, rois))(data), expected)
    # the gradient of a call outside, for each of a batch of heads
    leaf = data.clone().requires_grad_()
    out = pooled(leaf, rois)
    heads = torch.eye(out.numel()).reshape(-1, *out.shape)
    rows = torch.func.vmap(lambda head: torch.autograd.grad(out, leaf, head, retain_graph=True)[0])(heads)
    torch.testing.assert_close(rows.reshape(expected.shape), expected)


def test_vmap_alone_and_of_grad():
    data, rois = features(3), torch.stack([ROIS, ROIS.flip(0), ROIS * 0.5])
    found = torch.func.vmap(pooled)(data, rois)
    assert torch.equal(found, torch.stack([pooled(*each) for each in zip(data, rois, strict=True)]))
    found = torch.func.vmap(torch.func.grad(lambda x, r: pooled(x, r).square().sum()))(data, rois)
    for grad, x, r in zip(found, data, rois, strict=True):
        assert torch.equal(grad, gradient(lambda x, r=r: pooled(x, r), x)[0])
    # boxes that are the same for each, and features that lie along another axis
    found = torch.func.vmap(pooled, in_dims=(2, None))(data.movedim(0, 2), ROIS)
    assert torch.equal(found, torch.stack([pooled(x) for x in data]))


@pytest.mark.filterwarnings(TORCHSCRIPT_IS_DEPRECATED)
def test_what_has_no_gradient_says_so():
    data = features()
    with pytest.raises(MXNetError, match=r"ROIAlign: gradients in the forward direction \(jvp, jacfwd\)"):
        torch.func.jvp(pooled, (data,), (data,))
    with (
        torch.autograd.forward_ad.dual_level(),
        pytest.raises(MXNetError, match="ROIAlign: gradients in the forward direction"),
    ):
        pooled(torch.autograd.forward_ad.make_dual(data, data))
    with pytest.raises(MXNetError, match="the gradient of its gradient is not implemented"):
        torch.func.grad(lambda y: torch.func.grad(lambda x: pooled(x).square().sum())(y).sum())(data)


class Head(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.pool = torch.nn.Conv2d(8, 8, 1), rt.RoIAlign(2, 0.5, 2)
        self.score = torch.nn.Linear(32, 4)

    def forward(self, data, rois):
        return self.score(self.pool(self.before(data), rois).flatten(1))


def head():
    torch.manual_seed(5)
    return Head()


def test_functional_call_and_its_gradient():
    model, data = head(), features()
    params = dict(model.named_parameters())

    def loss(params):
        return torch.func.functional_call(model, params, (data, ROIS)).square().sum()

    found = torch.func.grad(loss)({name: each.detach() for name, each in params.items()})
    model(data, ROIS).square().sum().backward()
    for name, each in params.items():
        torch.testing.assert_close(found[name], each.grad)


def one_of_two(rank, folder):
    """One process of :func:`test_two_processes`: its half of the batch, and its gradients to a file."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/store", rank=rank, world_size=2
    )
    model = torch.nn.parallel.DistributedDataParallel(head())
    model(features(2)[rank], ROIS).square().sum().backward()
    if rank == 0:
        torch.save([each.grad for each in model.parameters()], f"{folder}/gradients")
    torch.distributed.destroy_process_group()


def test_two_processes(tmp_path):
    torch.multiprocessing.spawn(one_of_two, (str(tmp_path),), nprocs=2)
    model = head()
    for data in features(2):
        (model(data, ROIS).square().sum() / 2).backward()
    found = torch.load(tmp_path / "gradients")
    for each, other in zip(model.parameters(), found, strict=True):
        torch.testing.assert_close(each.grad, other)
