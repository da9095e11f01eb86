"""The kernels' tests on vectors of 16, 8 and 4 numbers, whatever the machine has.

Tiles, edges and workspaces differ with the width. LLVM makes longer vectors of what the processor has, so
that every width gives its results on every machine; only the time says nothing.
"""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from roiops.kernels.cpu.vector import MACHINE_LANES

TESTS = Path(__file__).parent
VECTORS = "operators/roi/test_vectors.py::test_vector"
#: Products, one mean and one maximum over boxes: the others compile for twice as long as these.
SAMPLE = (
    "kernels/test_network_product.py",
    "operators/tensor/test_tensor_edges.py::test_products_of_millions_of_terms_keep_their_digits",
    f"{VECTORS}[ROIAlign sampling 2]",
    f"{VECTORS}[ROIPooling]",
)
OTHERS = [lanes for lanes in (16, 8, 4) if lanes != MACHINE_LANES]


def run(lanes, *tests):
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider"]
    environment = {**os.environ, "ROIOPS_LANES": str(lanes)}
    done = subprocess.run(
        [*command, *tests], cwd=TESTS.parent, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, (done.stdout + done.stderr)[-5000:]


@pytest.mark.parametrize("lanes", OTHERS)
def test_a_sample(lanes):
    run(lanes, *(str(TESTS / each) for each in SAMPLE))


@pytest.mark.slow
@pytest.mark.parametrize("lanes", OTHERS)
def test_all_kernels(lanes):
    run(lanes, str(TESTS / "kernels"), str(TESTS / "operators"))


def test_a_width_that_no_machine_has_is_refused():
    environment = {**os.environ, "ROIOPS_LANES": "5"}
    command = [sys.executable, "-c", "import roiops.kernels.cpu.vector"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert "ROIOPS_LANES must be 4, 8 or 16, got '5'" in done.stderr
