"""The committed reference is what the registry says."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def test_the_reference_is_up_to_date():
    # In a process of its own: tests register operators of theirs.
    ended = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "make_reference.py"), "--check"], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")
