"""The reliability run: hostile boxes, damaged files, threads, forks, caches, Ctrl-C, memory. Prints a table.

    python verify/soak.py                      all parts, in at most 30 minutes
    python verify/soak.py --minutes 5          the same in less
    python verify/soak.py --only large         the opt-in part: an array of more than 2**31 elements (18 GiB)
    python verify/soak.py --only boxes --case 1234    one case again, in this process, with its traceback
    python verify/soak.py --write docs/reliability.md  puts the table into that page

Exits with 1 if anything was found. A part runs in child processes, so that a crash is counted; a case depends
on nothing but its number.
"""

import argparse
import datetime
import os
import platform
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests"), str(ROOT / "tests" / "operators")]

from soak import campaign  # noqa: E402

BEGIN, END = "<!-- begin: table of the last run -->", "<!-- end: table of the last run -->"
GIB = 1 << 30


@dataclass
class Part:
    """What to run, and its share of the time."""

    name: str
    what: str
    part: str
    cases: int
    share: float
    workers: int = 2
    memory: int | None = 3 * GIB
    case_seconds: float = 120.0
    environment: dict[str, str] = field(default_factory=dict)


def layer(name: str) -> dict[str, str]:
    return {"NUMBA_THREADING_LAYER": name, "NUMBA_NUM_THREADS": "4"}


PARTS = [
    Part(
        "symbols", "damaged symbol JSON", "soak.files:symbol_files", 200_000, 4, memory=GIB, case_seconds=20
    ),
    Part(
        "params", "damaged .params files", "soak.files:params_files", 200_000, 2, memory=GIB, case_seconds=20
    ),
    Part("graphs", "damaged graphs, run forward and backward", "soak.graphs:executions", 300_000, 3),
    Part("boxes", "hostile boxes, every operator, dialect and dtype", "soak.boxes:on_cpu", 40_000, 6),
    Part(
        "boxes-checked",
        "the same with numba's bounds checking",
        "soak.boxes:on_cpu",
        2_000,
        3,
        environment={"NUMBA_BOUNDSCHECK": "1", "ROIOPS_CACHE": "0", "SOAK_DTYPES": "float32"},
        case_seconds=240,
    ),
    Part(
        "boxes-gpu",
        "the same through the CUDA kernels, simulated",
        "soak.boxes:on_simulated_gpu",
        2_000,
        3,
        case_seconds=400,
        memory=16 * GIB,  # of address space: the simulator has a stack for each thread of a block
        environment={"NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1"},
    ),
    Part(
        "convolutions",
        "random convolutions on 1 to 4 threads, beside float64",
        "soak.layers:convolutions",
        10_000,
        3,
        environment=layer("default"),
    ),
    Part(
        "guard-pages",
        "calls of all families between guard pages, in memory that held 0 and NaN",
        "soak.guarded:calls",
        20_000,
        4,
        environment=layer("default"),
        case_seconds=240,
    ),
    Part(
        "threads",
        "8 Python threads, OpenMP",
        "soak.concurrency:threads",
        400,
        1,
        1,
        environment=layer("default"),
    ),
    Part(
        "workqueue",
        "8 Python threads, workqueue",
        "soak.concurrency:threads",
        400,
        1,
        1,
        environment=layer("workqueue"),
    ),
    Part(
        "processes",
        "forked and spawned workers, OpenMP",
        "soak.concurrency:processes",
        100,
        1,
        1,
        environment=layer("default"),
        case_seconds=400,
    ),
    Part(
        "processes-workqueue",
        "the same, workqueue",
        "soak.concurrency:processes",
        100,
        1,
        1,
        environment=layer("workqueue"),
        case_seconds=400,
    ),
    Part(
        "cache",
        "cache read-only, cut short, shared, off; disk full",
        "soak.surroundings:cache_folders",
        10,
        3,
        1,
        memory=None,
        case_seconds=500,
    ),
    Part("interrupt", "Ctrl-C in a long forward", "soak.surroundings:interrupts", 30, 1, 1, memory=None),
    Part(
        "memory", "more memory asked for than there is", "soak.surroundings:memory", 2_000, 1, memory=2 * GIB
    ),
]
OPT_IN = [
    Part(
        "large",
        "an array of more than 2**31 elements",
        "soak.surroundings:large",
        2,
        10,
        1,
        memory=None,
        case_seconds=500,
    ),
]


def table(reports) -> str:
    lines = ["| part | cases | time | how they ended | found |", "|---|---:|---:|---|---|"]
    for part, report in reports:
        report.name = part.what
        lines.append(report.line())
    return "\n".join(lines)


def machine() -> str:
    import numba
    import numpy

    today = datetime.date.today().isoformat()
    return (
        f"{today}, {platform.machine()}, {os.cpu_count()} cores, Python {platform.python_version()}, "
        f"NumPy {numpy.__version__}, numba {numba.__version__}"
    )


def write(page: Path, text: str) -> None:
    old = page.read_text()
    before, _, rest = old.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}\n{text}\n{END}{after}")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    every = [*PARTS, *OPT_IN]
    names = [part.name for part in every]
    parser.add_argument("--only", action="append", choices=names, metavar="PART", help=", ".join(names))
    parser.add_argument("--minutes", type=float, default=26.0, help="for all parts together (default 26)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", type=int, help="run this one case of the part named with --only, here")
    parser.add_argument("--write", type=Path, metavar="PAGE", help="put the table into this page")
    args = parser.parse_args()

    chosen = [part for part in every if part.name in args.only] if args.only else PARTS
    if args.case is not None:
        if len(chosen) != 1:
            parser.error("--case needs --only with one part")
        for name, value in chosen[0].environment.items():
            if os.environ.get(name) != value:  # numba reads these when it is imported
                os.environ.update(chosen[0].environment)
                os.execv(sys.executable, [sys.executable, *sys.argv])
        print(campaign.load(chosen[0].part, args.seed)(args.case))
        return 0

    shares = sum(part.share for part in chosen)
    reports = []
    started = time.monotonic()
    for part in chosen:
        seconds = args.minutes * 60 * part.share / shares
        print(f"{part.name}: {part.what}, at most {seconds:.0f} s ...", flush=True)
        report = campaign.run(
            part.part,
            cases=part.cases,
            seconds=seconds,
            seed=args.seed,
            workers=part.workers,
            memory=part.memory,
            case_seconds=part.case_seconds,
            environment=part.environment,
        )
        for failure in report.failures:
            print(f"  {failure}", flush=True)
        reports.append((part, report))
    text = f"{machine()}; {(time.monotonic() - started) / 60:.0f} minutes.\n\n{table(reports)}"
    print(text)
    if args.write:
        write(args.write, text)
    return 1 if any(report.failures for _, report in reports) else 0


if __name__ == "__main__":
    sys.exit(main())
