"""Tensors on a GPU, which is the processor: see ``verify/gpu_torch.py``."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PEERS = Path(os.environ.get("ROIOPS_PEERS", ROOT / ".peers"))
MISSING = [name for name in ("cuda", "torch") if not (PEERS / name / ".complete").exists()]


@pytest.mark.skipif(
    bool(MISSING), reason=f"python verify/peers.py {' '.join(MISSING)} installs what it needs"
)
def test_tensors_on_a_gpu():
    command = [sys.executable, str(ROOT / "verify" / "gpu_torch.py")]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    assert "31 calls, " in ran.stdout
