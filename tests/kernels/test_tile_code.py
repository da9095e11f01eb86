"""What LLVM makes of the inner loop of products, for processors that are not at hand."""

import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "verify" / "tile_code.py"


@pytest.mark.skipif(not SCRIPT.exists(), reason="verify/ is not there")
def test_sums_stay_in_registers_and_arm_takes_factors_from_elements():
    done = subprocess.run([sys.executable, str(SCRIPT)], capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr[-3000:]
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in done.stdout.splitlines()[2:]]
    assert len(rows) == 10
    for processor, factor, _, products, loads, repeating, _, spilled in rows:
        assert spilled == "0", (processor, factor)
        if processor.startswith(("neoverse", "apple")):
            count = int(products.split()[0])
            assert products == f"{count} ({count})", (processor, factor)
            assert (repeating, count / int(loads)) == ("0", 4), (processor, factor)
