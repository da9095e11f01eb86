"""Detection operators against their peers, and their promises to the executor on the same inputs."""

import golden_harness
import operator_contract
import pytest

CASES = golden_harness.family("detection")


@pytest.mark.parametrize("case", CASES)
def test_as_the_peer(case):
    golden_harness.check(case)


@pytest.mark.parametrize("promise", operator_contract.PROMISES, ids=lambda promise: promise.__name__)
@pytest.mark.parametrize("case", CASES)
def test_promises(case, promise):
    promise(case)
