"""The CUDA kernels against what MXNet, torchvision, Chainer and onnxruntime computed."""

import os

import golden_files
import numpy as np
import peer_calls
import pytest
from calls import agree, invoke, results

from roiops.operators.roi.dialects import TABLE

# Chainer says 0 where nothing was pooled, and its gradient is left out: see verify/golden/README.md.
NO_ARGMAX = ("chainer_roi_pooling_2d",)

#: Of a file's cases, in even steps: the simulator is slow. The slow tests take all of them.
MOST = int(os.environ.get("ROIOPS_TEST_GOLDEN", "2"))

FILES = [(row, file) for row in TABLE.values() for file in row.golden]


@pytest.mark.parametrize(("row", "file"), FILES, ids=[f"{row.name}-{file}" for row, file in FILES])
def test_golden(row, file):
    cases = golden_files.load("roi/" + file)
    cases = cases[:: -(-len(cases) // MOST)]
    assert cases
    for case in cases:
        operator, params, arrays = peer_calls.translate(row, case)
        head = case.arrays.get("grad_out")
        found = results(invoke(operator, params, arrays), head)
        agree(found["out0"], case["out"], f"{case}: output")
        if "argmax" in case and case.file not in NO_ARGMAX:
            np.testing.assert_array_equal(found["out1"], case["argmax"], err_msg=f"{case}: argmax")
        for grad in found:
            if grad.startswith("grad_") and grad in case:
                # Peers add up in float32 too: where terms cancel, their own error is that of the terms.
                agree(
                    found[grad],
                    case[grad],
                    f"{case}: {grad}",
                    lambda: abs(results(invoke(operator, params, arrays), abs(head))[grad]),  # noqa: B023
                )
