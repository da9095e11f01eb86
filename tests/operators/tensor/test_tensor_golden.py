"""Tensor operators against MXNet 1.9.1, and their promises to the executor on the same inputs."""

import golden_harness
import operator_contract
import pytest

CASES = golden_harness.family("tensor")


@pytest.mark.parametrize("case", CASES)
def test_as_mxnet(case):
    golden_harness.check(case)


@pytest.mark.parametrize("promise", operator_contract.PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("case", CASES)
def test_promises(case, promise):
    promise(case)
