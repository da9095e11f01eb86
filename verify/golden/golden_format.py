"""How a golden file is written: one .npz of cases, each with parameters and arrays.

Runs under every peer's interpreter (Python 3.9 and NumPy 1.23 upwards). The reader is
``tests/golden_files.py``; ``README.md`` beside this file describes the layout.
"""

import json
import os
import zipfile
from pathlib import Path

import numpy as np

GOLDEN = Path(os.environ.get("ROIOPS_GOLDEN", Path(__file__).resolve().parents[2] / "tests" / "golden"))


class CaseFile:
    """Collects cases and writes them to ``tests/golden/<name>.npz``."""

    def __init__(self, name, peer, version, script):
        self.path = GOLDEN / (name + ".npz")
        self.meta = {"peer": peer, "version": version, "script": Path(script).name, "cases": []}
        self.arrays = {}

    def add(self, op, label, params, arrays, **more):
        index = len(self.meta["cases"])
        arrays = {name: np.asarray(value) for name, value in arrays.items() if value is not None}
        self.meta["cases"].append(
            {"op": op, "label": label, "params": params, "arrays": list(arrays), **more}
        )
        self.arrays.update({f"{index}/{name}": value for name, value in arrays.items()})

    def save(self, quiet=False):
        write_npz(self.path, {"meta": np.array(json.dumps(self.meta)), **self.arrays})
        if not quiet:
            print(
                f"{self.path.name}: {len(self.meta['cases'])} cases, {self.path.stat().st_size / 1e3:.0f} kB"
            )


def write_npz(path, arrays):
    """As numpy.savez_compressed, but with fixed time stamps: the same arrays give the same bytes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, value in arrays.items():
            entry = zipfile.ZipInfo(name + ".npy")
            entry.compress_type = zipfile.ZIP_DEFLATED
            with archive.open(entry, "w") as file:
                np.lib.format.write_array(file, np.asanyarray(value), allow_pickle=False)
