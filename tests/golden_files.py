"""Read the golden files under tests/golden: what other libraries computed, with their inputs.

``verify/golden/README.md`` describes the files and how they were made.
"""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np

GOLDEN = Path(__file__).parent / "golden"


@dataclass(frozen=True)
class Case:
    """One call of one operator of a peer; ``str(case)`` names it in a test report."""

    file: str
    index: int
    peer: str
    version: str
    op: str
    label: str
    params: dict
    arrays: dict
    is_train: bool = True

    def __getitem__(self, name):
        return self.arrays[name]

    def __contains__(self, name):
        return name in self.arrays

    def __str__(self):
        return f"{self.file}-{self.index}-{self.op}-{self.label}".replace(" ", "_")


def load(path) -> list[Case]:
    """The cases of one file, named relative to ``tests/golden``, with or without ``.npz``."""
    path = (GOLDEN / path).with_suffix(".npz")
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files}
    meta = json.loads(str(arrays.pop("meta")))
    return [
        Case(
            path.stem,
            index,
            meta["peer"],
            meta["version"],
            case["op"],
            case["label"],
            case["params"],
            {name: arrays[f"{index}/{name}"] for name in case["arrays"]},
            case.get("is_train", True),
        )
        for index, case in enumerate(meta["cases"])
    ]


def names(folder) -> list[str]:
    """The files of one folder of ``tests/golden``, as ``load`` takes them."""
    return sorted(f"{folder}/{path.stem}" for path in (GOLDEN / folder).glob("*.npz"))
