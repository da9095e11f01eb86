"""The Ray example on a local cluster: an actor and a node end in the middle, and no picture is lost or doubled."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("ray", reason="needs Ray: pip install 'ray[data]'")
pytest.importorskip("PIL", reason="pictures are read with Pillow")

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_every_picture_has_one_row_whatever_dies(tmp_path):
    words = ["--pictures", "1500", "--nodes", "3", "--after", "4", "--speed", "0"]
    done = subprocess.run(
        [
            sys.executable,
            str(ROOT / "verify" / "ray_faults.py"),
            *words,
            "--json",
            str(tmp_path / "found.json"),
        ],
        capture_output=True,
        text=True,
        timeout=900,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    found = json.loads((tmp_path / "found.json").read_text())
    assert found["faults"][-2:] == ["an actor was killed", "a node was removed"]
    assert found["differences"] == {
        "rows": 1500, "missing": 0, "twice": 0, "strangers": 0, "unequal": 0, "errors": 7
    }  # fmt: skip
