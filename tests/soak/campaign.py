"""Many cases in child processes, so that a crash, a hang or a runaway is counted and the campaign goes on.

A *part* is a function ``make(seed) -> case``; ``case(number)`` runs one case, which depends on nothing but
the seed and the number, and returns a word that says how it ended (``"accepted"``, ``"refused"``). An
exception that it lets through is a failure.
"""

import importlib
import json
import mmap
import os
import resource
import signal
import struct
import subprocess
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

_TESTS = Path(__file__).resolve().parent.parent
#: Where a child finds the parts, and the package when it is not installed.
PATHS = [str(_TESTS), str(_TESTS / "operators"), str(_TESTS.parent)]

#: A part that has failed so often has said what it has to say.
MOST_FAILURES = 10

_STATE = struct.Struct("<qd")  # number of the case in progress, when it began


@dataclass
class Report:
    """What a part did."""

    name: str
    cases: int = 0
    seconds: float = 0.0
    endings: Counter = field(default_factory=Counter)
    #: Each: what happened, and the number of the case.
    failures: list[str] = field(default_factory=list)
    note: str = ""

    def line(self) -> str:
        """A row of the table."""
        ends = ", ".join(f"{count:,} {word}" for word, count in sorted(self.endings.items())) or "done"
        found = f"{len(self.failures)} failures" if self.failures else "nothing"
        return (
            f"| {self.name} | {self.cases:,} | {self.seconds:.0f} s | {ends}"
            f"{'; ' + self.note if self.note else ''} | {found} |"
        )


def run(
    part: str,
    *,
    cases: int,
    seconds: float,
    seed: int = 0,
    workers: int = 1,
    memory: int | None = 2 << 30,
    case_seconds: float = 20.0,
    environment: dict[str, str] | None = None,
    first: int = 0,
) -> Report:
    """Run cases ``first`` to ``first + cases - 1`` of a part, or as many as the time allows.

    Parameters
    ----------
    part : str
        ``"module:function"`` of the part.
    memory : int, optional
        How many bytes of address space a child may take on top of what it has when the first case begins.
    case_seconds : float
        A case that takes longer is killed and counted as a hang.
    """
    report = Report(part.partition(":")[2])
    started = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        children = [
            _Child(Path(folder), part, seed, first + k, first + cases, workers, seconds, memory, environment)
            for k in range(min(workers, cases))
        ]
        while children:
            time.sleep(0.02)
            for child in list(children):
                problem = child.check(case_seconds, started + seconds)
                if problem:
                    report.failures.append(problem)
                if child.done or len(report.failures) >= MOST_FAILURES:
                    child.stop()
                    child.collect(report)
                    children.remove(child)
    report.seconds = time.monotonic() - started
    return report


class _Child:
    """One process that works through every ``step``-th case, and is started again after a crash."""

    def __init__(self, folder, part, seed, first, end, step, seconds, memory, environment):
        self.part, self.seed, self.end, self.step, self.memory = part, seed, end, step, memory
        self.deadline = time.monotonic() + seconds
        self.environment = {**os.environ, **(environment or {})}
        self.results = folder / f"{first}.jsonl"
        self.errors = folder / f"{first}.stderr"
        self.state_path = folder / f"{first}.state"
        self.state_path.write_bytes(_STATE.pack(-1, 0.0))
        self.done = False
        self._start(first)

    def _start(self, first: int) -> None:
        if first >= self.end:
            self.done = True
            return
        paths = [*PATHS, *filter(None, [self.environment.get("PYTHONPATH")])]
        self.state_path.write_bytes(_STATE.pack(-1, time.time()))
        self.first = first
        with open(self.errors, "w") as errors:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    "-c",
                    "import sys; from soak import campaign; campaign.child(*sys.argv[1:])",
                    self.part,
                    str(self.seed),
                    str(first),
                    str(self.end),
                    str(self.step),
                    str(self.deadline),
                    str(self.memory or 0),
                    str(self.results),
                    str(self.state_path),
                ],
                stderr=errors,
                stdout=subprocess.DEVNULL,
                env={**self.environment, "PYTHONPATH": os.pathsep.join(paths)},
            )

    def check(self, case_seconds: float, deadline: float) -> str | None:
        """Look after the process; what went wrong with it, if something did."""
        if self.done:
            return None
        code = self.process.poll()
        number, since = self._progress()
        if code is None:
            if number >= 0 and time.time() - since > case_seconds:
                self.process.kill()
                self.process.wait()
                self._start(number + self.step)
                return f"case {number}: still running after {case_seconds:g} s"
            if time.monotonic() > deadline + case_seconds + 60:
                self.process.kill()
                self.process.wait()
                self.done = True
                return f"case {number}: the child did not end in time"
            return None
        if code == 0:
            self.done = True
            return None
        tail = self.errors.read_text(errors="replace").strip().splitlines()[-3:]
        what = signal.Signals(-code).name if code < 0 else f"exit code {code}"
        if number < 0:
            self.done = True
            return f"the child did not start: {what}: {' / '.join(tail)}"
        self._start(number + self.step)
        return f"case {number}: crash: {what} {' / '.join(tail)}".rstrip()

    def _progress(self) -> tuple[int, float]:
        while True:  # the child may be writing
            one, two = self.state_path.read_bytes(), self.state_path.read_bytes()
            if one == two and _STATE.unpack(one)[1]:
                return _STATE.unpack(one)

    def stop(self) -> None:
        if not self.done:
            self.process.kill()
            self.process.wait()

    def collect(self, report: Report) -> None:
        if not self.results.exists():
            return
        for line in self.results.read_text().splitlines():
            record = json.loads(line)
            if "failure" in record:
                report.failures.append(record["failure"])
            else:
                report.endings.update(record["endings"])
                report.cases += record["cases"]


# -- in the child ----------------------------------------------------------------------------------------


def load(part: str, seed: int):
    """The function that runs one case."""
    module, _, function = part.partition(":")
    return getattr(importlib.import_module(module), function)(seed)


def limit_memory(extra: int) -> None:
    """Let this process take ``extra`` bytes of address space more than it has now."""
    with open("/proc/self/statm") as stream:
        have = int(stream.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (have + extra, resource.RLIM_INFINITY))


def child(part, seed, first, end, step, deadline, memory, results, state) -> None:
    """The body of a child process."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    case = load(part, int(seed))
    with open(state, "r+b") as stream, open(results, "a") as out:
        shared = mmap.mmap(stream.fileno(), _STATE.size)
        if int(memory):
            limit_memory(int(memory))
        endings, cases, reported, failures = Counter(), 0, time.monotonic(), 0

        def tell() -> None:
            nonlocal endings, cases, reported
            out.write(json.dumps({"cases": cases, "endings": endings}) + "\n")
            out.flush()
            endings, cases, reported = Counter(), 0, time.monotonic()

        for number in range(int(first), int(end), int(step)):
            if time.monotonic() > float(deadline) or failures == MOST_FAILURES:
                break
            _STATE.pack_into(shared, 0, number, time.time())
            try:
                endings[case(number)] += 1
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                out.write(
                    json.dumps(
                        {
                            "failure": f"case {number}: {type(error).__name__}: {' '.join(str(error).split())[:300]} "
                            f"({Path(where.filename).name}:{where.lineno})"
                        }
                    )
                    + "\n"
                )
                endings["failed"] += 1
                failures += 1
            cases += 1
            if time.monotonic() - reported > 0.5:
                tell()
        tell()
