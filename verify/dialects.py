"""Compare every dialect with what its peers computed, and write the tables of docs/dialects.md.

    python verify/dialects.py            # writes both tables
    python verify/dialects.py --check    # compares, and fails where the page is not what it would write

The peers' numbers are the golden files; ``verify/golden/make.py`` records them. Rows without a peer that runs
here are compared with the plain loops of ``tests/reference.py``. Nothing here is timed.
"""

import argparse
import sys
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
for folder in (ROOT, ROOT / "tests", ROOT / "tests" / "operators"):
    sys.path.insert(0, str(folder))

import golden_files  # noqa: E402
import peer_calls  # noqa: E402
import reference  # noqa: E402
from roi_cases import (  # noqa: E402
    call,
    gradient,
    internal_name,
    is_separable,
    other_case,
    random_rois,
)
from roi_definitions import expected_of, separable_case  # noqa: E402

from roiops.operators.roi.dialects import TABLE, words  # noqa: E402

PAGE = ROOT / "docs" / "dialects.md"
TABLES = "compared", "rules"
COLUMNS = {
    "start": "start",
    "length": "length (least)",
    "bins": "bins",
    "samples": "samples",
    "border": "border",
    "gives": "a bin gives",
    "channels": "channels",
    "empty": "nothing pooled",
}
NAMES = {
    "mxnet": "MXNet",
    "torchvision": "torchvision",
    "chainer": "Chainer",
    "onnxruntime": "ONNX",
    "mmcv": "mmcv",
    "paddle": "Paddle",
    "tensorflow": "TensorFlow",
}


def call_of(row) -> str:
    """The call that gives a row's numbers."""
    given = ", ".join(f"{name}={value!r}" for name, value in row.parameters.items())
    return f"`{row.operator}(..., {given})`" if given else f"`{row.operator}(...)`"


def _difference(found, expected) -> float:
    """The largest difference, in parts of the largest number expected, or of 1 if that is greater."""
    finite = np.isfinite(expected)
    if not (found == expected)[~finite].all():
        return float("inf")
    largest = max(1.0, float(np.abs(expected[finite]).max(initial=0)))
    return float(np.abs(found[finite].astype(np.float64) - expected[finite]).max(initial=0)) / largest


def compared(row, file) -> tuple[set, int, dict]:
    """The peer and its functions, how many cases, and the largest difference of each result."""
    functions, largest = set(), {}
    cases = golden_files.load("roi/" + file)
    for case in cases:
        functions.add((NAMES.get(case.peer, case.peer), case.version, case.op.rpartition(".")[2]))
        name, given, inputs = peer_calls.translate(row, case)
        invocation = call(name, *inputs, **given)
        results = {"out": invocation.outputs[0]}
        if "grad_out" in case:
            names = invocation.prop.list_arguments()
            grads = gradient(invocation, case["grad_out"])
            results |= {f"grad_{name}": grad for name, grad in zip(names, grads, strict=True)}
        for key, found in results.items():
            if key in case:
                largest[key] = max(largest.get(key, 0.0), _difference(found, case[key]))
    return functions, len(cases), largest


def _plain_case(row, seed):
    """``(name, params, inputs, expected)`` of a row by the plain loops of ``tests/reference.py``."""
    name = internal_name(row.operator)
    if row.name in reference.DEFINITIONS and is_separable(row):
        params, data, rois, expected = separable_case(row.name, name, row.parameters, seed, np.float32)
        return name, params, [data, rois], expected.out
    random = np.random.default_rng(seed)
    rois = random_rois(random, 6, 2, 8, 7, 0.5)
    if row.operator == "PrROIPooling":
        data = random.normal(size=(2, 3, 8, 7)).astype(np.float32)
        expected = reference.precise(data, rois, (2, 3), 0.5)
        return name, {"pooled_size": (2, 3), "spatial_scale": 0.5}, [data, rois], expected
    name, params, inputs = other_case(row, random, rois, ratio=seed % 2 * 2)
    return name, params, inputs, expected_of(row, params, inputs)


def by_definition(row, count=6) -> tuple[int, float]:
    """How many cases of six boxes were compared, and the largest difference."""
    largest = 0.0
    for seed in range(count):
        name, params, inputs, expected = _plain_case(row, seed)
        largest = max(largest, _difference(call(name, *inputs, **params).outputs[0], expected))
    return count, largest


def comparison_table() -> str:
    """A line for every function of a peer that a row agrees with, by golden files or by its definition."""
    lines = [
        "| function | version | call here | cases | largest difference, forward | of gradients |",
        "|---|---|---|---|---|---|",
    ]
    for row in TABLE.values():
        seen = set()
        for file in row.golden:
            functions, count, largest = compared(row, file)
            forward = largest.pop("out")
            backward = f"{max(largest.values()):.1e}" if largest else "none to compare"
            for peer, version, function in sorted(functions):
                function = function.replace("_contrib_", "contrib.")
                seen.add(f"{peer} {function}")
                called = call_of(row) + (f"; {row.remark}" if row.remark else "")
                columns = f"{peer} `{function}`", version, called, count, f"{forward:.1e}", backward
                lines.append("| " + " | ".join(map(str, columns)) + " |")
        others = [whose for whose in row.whose if not any(whose.startswith(each) for each in seen)]
        if others:
            count, largest = by_definition(row)
            found = f"{count} | {largest:.1e} | by differences"
            lines += [f"| {whose} | by its definition | {call_of(row)} | {found} |" for whose in others]
    return "\n".join(lines)


def rules_table() -> str:
    """What each row does, from the rules themselves."""
    lines = ["| dialect | " + " | ".join(COLUMNS.values()) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for row in TABLE.values():
        said = words(row.rules)
        lines.append(f"| {row.name} | " + " | ".join(said[column] for column in COLUMNS) + " |")
    return "\n".join(lines)


def markers(table) -> tuple[str, str]:
    return f"<!-- table {table}: verify/dialects.py -->", f"<!-- end of table {table} -->"


def put(page, table, text) -> str:
    """The page with the text between the markers of a table."""
    begin, end = markers(table)
    head, tail = page[: page.index(begin) + len(begin)], page[page.index(end) :]
    return f"{head}\n{text}\n{tail}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing, fail where the page differs")
    parser.add_argument("--rules", action="store_true", help="only print the table of rules")
    args = parser.parse_args()
    if args.rules:
        print(rules_table())
        return
    page = PAGE.read_text()
    made = put(put(page, "rules", rules_table()), "compared", comparison_table())
    if args.check and made != page:
        sys.exit("verify/dialects.py: docs/dialects.md is not what this would write")
    if not args.check:
        PAGE.write_text(made)
    print(f"verify/dialects.py: {len(TABLE)} rows")


if __name__ == "__main__":
    main()
