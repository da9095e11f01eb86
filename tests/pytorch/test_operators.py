"""Each registered ROI operator on tensors is the operator on arrays, and a proper operator of PyTorch."""

import numpy as np
import pytest
from torch_cases import CASES, ONE_EACH, place_of_boxes

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")

from torch.autograd.gradcheck import GradcheckError  # noqa: E402

import roiops.torch  # noqa: E402
from roiops import registry  # noqa: E402
from roiops.operators.imperative import Invocation  # noqa: E402
from roiops.registry import get, list_operators  # noqa: E402
from roiops.torch import library, op  # noqa: E402


def function(name):
    """The function of ``roiops.torch.op`` for a registered operator."""
    return getattr(op.contrib, name.removeprefix("_contrib_")) if "_contrib_" in name else getattr(op, name)


def tensors(case, dtype=torch.float32):
    """The inputs as tensors, which require a gradient where the operator has one of them."""
    name, arrays, params = case
    found = [torch.tensor(each, dtype=dtype).requires_grad_() for each in arrays]
    # Of the nearest pixel, boxes get the gradient of the bilinear crop, which is not that of the output.
    no_slope = "rois" in get(name).zero_grad or params.get("mode") == "nearest"
    found[place_of_boxes(name)].requires_grad_(not no_slope)
    return found


def dispatched(name, inputs, params):
    """The output of the operator of ``torch.ops.roiops``."""
    given = [list(inputs)] if get(name).variadic else inputs
    return library.OPERATORS[get(name).name].forward(*given, **params)[0]


def test_every_roi_operator_is_registered_and_has_a_case():
    registered = {name for name in list_operators() if name in library.OPERATORS}
    assert registered == {get(name).name for name, _, _ in CASES.values()}
    assert set(dir(op)) >= {"ROIAlign", "ROIPooling", "PSROIAlign", "PSROIPooling", "contrib"}
    assert set(dir(op.contrib)) >= {"ROIAlign", "RROIAlign", "DeformablePSROIPooling"}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_tensors_give_what_arrays_give(case):
    name, arrays, params = case
    inputs = tensors((name, arrays, params))
    count = {get(name).variadic: len(inputs)} if get(name).variadic else {}
    prop = get(name).create({**params, **count})
    invocation = Invocation(prop, [t.detach().numpy() for t in inputs])
    invocation.forward()
    out = function(name)(*inputs, **params)
    np.testing.assert_array_equal(out.detach().numpy(), invocation.outputs[0])
    head = np.random.default_rng(1).standard_normal(out.shape).astype(np.float32)
    expected = invocation.backward([head], "write")
    out.backward(torch.from_numpy(head))
    for tensor, grad in zip(inputs, expected, strict=True):
        if tensor.requires_grad:
            np.testing.assert_array_equal(tensor.grad.numpy(), grad)


@pytest.mark.parametrize("case", ONE_EACH.values(), ids=ONE_EACH)
def test_the_dispatchers_operator_is_the_eager_one(case):
    name, arrays, params = case
    inputs = tensors((name, arrays, params))
    eager, registered = function(name)(*inputs, **params), dispatched(name, inputs, params)
    assert torch.equal(eager, registered)
    head = torch.randn(eager.shape)
    wanted = [t for t in inputs if t.requires_grad]
    for one, other in zip(
        torch.autograd.grad(eager, wanted, head), torch.autograd.grad(registered, wanted, head), strict=True
    ):
        assert torch.equal(one, other)


# PyTorch's own check looks at the gradients of copies, and does not always get to hide what is said of that.
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
@pytest.mark.parametrize("case", ONE_EACH.values(), ids=ONE_EACH)
def test_opcheck(case):
    name, arrays, params = case
    inputs = tensors((name, arrays, params))
    inputs = (inputs,) if get(name).variadic else inputs
    torch.library.opcheck(library.OPERATORS[get(name).name].forward, inputs, params)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_gradcheck(case):
    name, arrays, params = case
    if params.get("as_released"):
        pytest.skip("torchvision's gradient is not that of its output")

    def finite(*given):  # Chainer's maximum of an empty bin is -inf
        out = function(name)(*given, **params)
        return torch.where(out.isfinite(), out, 0)

    assert torch.autograd.gradcheck(finite, tensors((name, arrays, params), torch.float64), fast_mode=True)


@pytest.mark.parametrize("case", ONE_EACH.values(), ids=ONE_EACH)
def test_a_second_derivative_is_refused_by_name(case):
    name, arrays, params = case
    data, *rest = tensors((name, arrays, params))
    for out in (function(name)(data, *rest, **params), dispatched(name, (data, *rest), params)):
        (grad,) = torch.autograd.grad((out**2).sum(), data, create_graph=True)
        label = get(name).label
        with pytest.raises(
            roiops.MXNetError, match=f"{label}: the gradient of its gradient is not implemented"
        ):
            grad.sum().backward()


def test_a_wrong_gradient_fails_gradcheck(monkeypatch):
    from roiops.torch.plans import Plan

    right = Plan.gradient_of_map
    monkeypatch.setattr(Plan, "gradient_of_map", lambda *given: right(*given) * 1.01)
    name, arrays, params = CASES["ROIAlign/mmcv"]
    with pytest.raises(GradcheckError, match="Jacobian mismatch"):
        torch.autograd.gradcheck(
            lambda *given: function(name)(*given, **params),
            tensors((name, arrays, params), torch.float64),
            fast_mode=True,
        )


def test_operators_that_come_later_are_there_too():
    from roiops.operators.roi.base import ROIProperty
    from roiops.registry import register

    class LaterProp(ROIProperty):
        """Nothing but shapes."""

        op = registry.get("ROIPooling").op
        pooled_size = (1, 1)

    register("_test_later_roi_operator")(LaterProp)
    try:
        assert op._test_later_roi_operator.__doc__.startswith("Nothing but shapes.")
        assert hasattr(torch.ops.roiops, "_test_later_roi_operator")
    finally:
        del registry._properties["_test_later_roi_operator"]
        del library.OPERATORS["_test_later_roi_operator"]


def test_an_unknown_operator_is_an_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'roiops\.torch\.op' has no attribute 'Convolution'"):
        op.Convolution  # noqa: B018
