"""Run MXNet 1.9.1's own unit tests on roiops, and write a table of what passed and why the rest did not.

    git clone --branch 1.9.1 https://github.com/apache/mxnet
    pip install pytest scipy opencv-python-headless   # what the tests import, besides what roiops needs
    python verify/mxnet_unittests.py mxnet            # all files; writes docs/mxnet_unittests.md
    python verify/mxnet_unittests.py mxnet symbol ndarray -k save
    python verify/mxnet_unittests.py --table          # only the table, of the results that are recorded

The tests find roiops under MXNet's name, and MXNet's own ``test_utils``; ``mxnet_stand_ins.py`` has the rest.
Each file runs in a process of its own. What a test of an earlier run gave stays recorded until it runs again.
The exit code is 1 where a test failed for which no reason is written down here.
"""

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
RESULTS = HERE / "mxnet_unittests"
PAGE = ROOT / "docs" / "mxnet_unittests.md"

#: The files whose subject roiops has: dense arrays and the symbolic API.
FILES = (
    *("attr", "autograd", "base", "contrib_krprod", "contrib_operator", "dlpack", "engine"),
    *("exc_handling", "executor", "gluon", "gluon_data", "gluon_model_zoo", "gluon_rnn", "gluon_trainer"),
    *("image", "infer_shape", "infer_type", "init", "io", "kvstore", "loss", "metric", "model_parallel"),
    *("module", "multi_device_exec", "ndarray", "operator", "optimizer", "random", "rnn", "symbol"),
    *("test_utils", "viz"),
)

#: Why tests fail that reach for an absent part of MXNet, by the beginning of its name.
_ABSENT = {
    "contrib.autograd": "needs the autograd of MXNet before 1.0",
    "np": "needs MXNet's NumPy interface",
    "npx": "needs MXNet's NumPy interface",
    "util.use_np": "needs MXNet's NumPy interface",
    "symbol.numpy": "needs MXNet's NumPy interface",
    "rnn": "needs the recurrent cells of mx.rnn",
    "base": "calls MXNet's C library",
}

#: Why tests fail with an error of this text.
_TEXTS = {
    "name 'requests' is not defined": "downloads data",
    "nothing is downloaded here": "downloads data",
    "TookTooLong": "not run to its end yet: stopped on a busy machine",
    "operator '_square_sum'": "_square_sum, an operator of sparse arrays only, is not offered",
    "LibSVMIter is not here": "files of LibSVM's format are not read",
    "contrib.SparseEmbedding": "contrib.SparseEmbedding, an operator of sparse weights, is not offered",
    "create_graph=True": "gradients of gradients are not offered",
    "'_fresh_grad'": "reads a private attribute of MXNet's NDArray",
    "gradients are dense here": "sparse parameters and gradients are not offered",
    "mx.gluon.contrib.rnn is not offered": "the cells of gluon.contrib.rnn are not there",
    "'default_ctx'": "asks for Context.default_ctx, which MXNet calls deprecated; current_context() is there",
    "sparse_grad=True is not offered": "sparse parameters and gradients are not offered",
    "numpy interface": "needs MXNet's NumPy interface",
    "'CachedOp'": "CachedOp, which Gluon is made of, is not offered",
}

#: Why single tests fail, where the above does not say it.
_TESTS = {
    **dict.fromkeys(
        ("io.test_Cifar10Rec", "io.test_image_iter_exception", "io.test_ImageRecordIter_seed_augmentation"),
        "downloads a RecordIO file",
    ),
    "autograd.test_sparse_dot_grad": "sparse parameters and gradients are not offered",
    "gluon_data.test_dataloader_context": "asks for pinned memory, which is that of the CPU here",
    "gluon.test_np_shape_parameters": "needs shapes of NumPy, where 0 is a length, before the first batch",
    "gluon.test_inline": "counts the nodes that MXNet's inline_limit leaves in a graph; here it is one",
    "gluon.test_sparse_symbol_block": "sparse parameters and gradients are not offered",
    "loss.test_sample_weight_loss": "gives NDArrayIter fewer samples than labels, which is an error here",
    "module.test_module_initializer": "reads a private attribute of MXNet's Module, for its storage type",
    "exc_handling.test_np_random_incorrect_named_arguments": "needs MXNet's NumPy interface",
}


def run(checkout: Path, names, select: str | None, seconds: int) -> None:
    """Run files and record what each test gave."""
    tests = checkout.resolve() / "tests" / "python" / "unittest"
    RESULTS.mkdir(exist_ok=True)
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(ROOT), str(HERE)]),
        "MXNET_CHECKOUT": str(checkout.resolve()),
        "MXNET_TEST_SECONDS": str(seconds),
    }
    for name in names:
        fresh = RESULTS / f"{name}.{os.getpid()}.new"  # files may be run in parts at once
        fresh.unlink(missing_ok=True)
        environment["MXNET_RESULTS"] = str(fresh)
        options = [
            "-p",
            "mxnet_stand_ins",
            "-p",
            "no:cacheprovider",
            "-c",
            os.devnull,
            "--rootdir",
            str(tests),
        ]
        chosen = ["-k", select] if select else []
        command = [
            sys.executable,
            "-m",
            "pytest",
            *options,
            "-q",
            "-W",
            "default",
            "--disable-warnings",
            "--tb=no",
            "--assert=plain",
        ]
        subprocess.run([*command, f"test_{name}.py", *chosen], cwd=tests, env=environment, check=False)
        _merge(RESULTS / f"{name}.jsonl", fresh, whole=not select)


def _merge(recorded: Path, fresh: Path, *, whole: bool) -> None:
    """Put new results in the place of the recorded ones."""
    results = {} if whole else {each["test"]: each for each in _read(recorded)}
    results.update((each["test"], each) for each in _read(fresh))
    lines = [json.dumps(each, sort_keys=True) for each in results.values()]
    recorded.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    fresh.unlink(missing_ok=True)


def _read(path: Path) -> list[dict]:
    if not path.exists():
        return []
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def reason(name: str, result: dict) -> str | None:
    """Why a test failed, in words; None where nobody has said it yet."""
    told = _TESTS.get(f"{name}.{result['test']}")
    if told:
        return told
    absent = result.get("absent", "")
    parts = absent.split(".")
    for length in range(len(parts), 0, -1):
        if ".".join(parts[:length]) in _ABSENT:
            return _ABSENT[".".join(parts[:length])]
    why = result.get("why") or absent
    return next((words for text, words in _TEXTS.items() if text in why), None)


def table() -> tuple[str, int]:
    """The page, and how many failures have no reason."""
    rows, lines, unexplained = [], [], 0
    totals = {"passed": 0, "failed": 0, "skipped": 0}
    for name in FILES:
        results = _read(RESULTS / f"{name}.jsonl")
        if not results:
            continue
        counts = {kind: sum(each["outcome"] == kind for each in results) for kind in totals}
        totals = {kind: totals[kind] + counts[kind] for kind in totals}
        rows.append(f"| `test_{name}.py` | {counts['passed']} | {counts['failed']} | {counts['skipped']} |")
        for each in results:
            if each["outcome"] == "failed":
                told = reason(name, each)
                unexplained += told is None
                error = (each.get("why") or f"absent: {each.get('absent')}").replace("|", "\\|")
                lines.append(f"| `{name}` | `{each['test']}` | {told or f'`{error[:150]}`'} |")
    rows.append(f"| all | {totals['passed']} | {totals['failed']} | {totals['skipped']} |")
    page = [_PREFACE, "| file | passed | failed | skipped |", "|---|---:|---:|---:|", *rows]
    page += ["", "## What failed, and why", "", "| file | test | reason |", "|---|---|---|", *lines]
    return "\n".join(page) + "\n", unexplained


_PREFACE = """# MXNet's unit tests

MXNet 1.9.1's own tests (`tests/python/unittest` of its repository) run on roiops, which they find under
MXNet's name; what they check with is MXNet's own `test_utils.py`. Stand-ins give them `nose` and `distutils`,
which have left Python, indices and numbers that NumPy took then, and names for what roiops does not offer;
those fail when they are used. roiops raises an error at the call, MXNet's engine when a result is read, and
some tests expect no error before; `verify/mxnet_waits.py` keeps roiops' errors until then.
`python verify/mxnet_unittests.py CHECKOUT` runs them and writes this page; a test skipped is one that its
own decorator skips, or that misses a locale of the system. `test_image.py` and MNIST's test download their
pictures; they get made ones in their place. All files were run on 2026-11-27,
four of them again on 2026-11-29, on a busy machine, with one thread.
"""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkout", type=Path, nargs="?", help="MXNet's sources, tag 1.9.1")
    parser.add_argument("files", nargs="*", help="files without test_ and .py; all unless given")
    parser.add_argument("-k", dest="select", help="only tests that match, as pytest's -k")
    parser.add_argument("--seconds", type=int, default=300, help="a test is stopped after so long")
    parser.add_argument("--table", action="store_true", help="run nothing, write the table only")
    options = parser.parse_args()
    if not options.table:
        if options.checkout is None:
            parser.error("a checkout of MXNet is needed")
        run(options.checkout, options.files or FILES, options.select, options.seconds)
    if options.table:
        for left in sorted(RESULTS.glob("*.new")):  # of runs that were ended before they were through
            _merge(RESULTS / f"{left.name.split('.')[0]}.jsonl", left, whole=False)
    page, unexplained = table()
    PAGE.write_text(page, encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)} written; {unexplained} failures have no reason yet")
    raise SystemExit(unexplained > 0)


if __name__ == "__main__":
    main()
