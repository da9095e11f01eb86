"""Softmax and losses against MXNet 1.9.1, and their promises to the executor on the same inputs."""

import golden_harness
import operator_contract
import pytest

CASES = golden_harness.family("loss")


def _half_precision_inside(case):
    """MXNet computes float16 softmax in float16 even where a float32 result is asked for."""
    return case.op == "softmax" and case["data"].dtype == "float16"


@pytest.mark.parametrize("case", CASES)
def test_as_mxnet(case):
    golden_harness.check(case, tolerance=(2e-3, 1e-3) if _half_precision_inside(case) else None)


@pytest.mark.parametrize("promise", operator_contract.PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("case", CASES)
def test_promises(case, promise):
    promise(case)
