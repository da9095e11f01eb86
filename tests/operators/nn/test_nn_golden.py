"""Every golden case of the network operators, and what each operator promises to the executor."""

import golden_harness
import operator_contract
import pytest

CASES = golden_harness.family("nn")


def _tolerance(case):
    """Sums over a whole image or row, in another order: rounding is relative to the largest terms."""
    long_sums = case.op in ("Convolution", "Deconvolution", "LayerNorm")
    return (2e-5, 5e-6) if long_sums and case["data"].dtype == "float32" else None


def _wrong_gradient_in_mxnet(case):
    """MXNet's gradient of selu scales the output once too often; test_nn_gradients.py has the right one."""
    return case.params.get("act_type") == "selu"


@pytest.mark.parametrize("case", CASES)
def test_golden(case):
    golden_harness.check(case, tolerance=_tolerance(case), gradients=not _wrong_gradient_in_mxnet(case))


@pytest.mark.parametrize("promise", operator_contract.PROMISES, ids=lambda p: p.__name__)
@pytest.mark.parametrize("case", CASES)
def test_promise(case, promise):
    promise(case)
