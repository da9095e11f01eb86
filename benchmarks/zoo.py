"""The model zoo's speed and memory against real MXNet 1.9.1 (oneDNN), with one and with two threads.

    python benchmarks/zoo.py                       # all models; what MXNet exports is kept in .peers/zoo
    python benchmarks/zoo.py --only ssd yolo       # those whose names contain one of these
    python benchmarks/zoo.py --resume --minutes 20 # a piece at a time
    python benchmarks/zoo.py --again 0.1           # models of at most 0.1 s once more
    python benchmarks/zoo.py --avx2 --every 4      # both held to AVX2, every 4th model; results in zoo_avx2
    BENCHMARK_RESULTS=zen5 python benchmarks/zoo.py  # of another processor, in results/zen5
    python benchmarks/zoo.py --table               # writes the tables anew from the results

The models are those of verify/check_model_zoo.py, which compares their outputs. MXNet builds each once,
with random weights, and saves it to a folder. Then, for each number of threads, both libraries load the
files in a fresh process each, make two passes, and take turns. Threads of either library stay awake for a
moment after a pass and would slow the other, so a turn begins with a rest. Then come, of fast models, one
pass that does not count and several that do, as in a program that goes on detecting. A ratio is MXNet's
time by ours in two turns, and the median of these is what the table shows. Fast models take more passes
and turns than slow ones, so that each takes about the same time (``--seconds``). Peak memory is that of
the whole process. Of a model that was measured again, the run counts in which both libraries together took
less time: the one that was disturbed less, whoever was ahead in it. A model that fails in either library is a
row with what was said. ``--avx2`` takes AVX-512 from numba and from oneDNN. Results go to
benchmarks/results/zoo.{json,md} or zoo_avx2; verify/peers.py sets up MXNet.
"""

import argparse
import datetime
import json
import math
import os
import platform
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from statistics import geometric_mean

import numpy as np
from machine import RESULTS, processor

ROOT = Path(__file__).resolve().parent.parent
ZOO = ROOT / "verify" / "zoo"
sys.path[:0] = [str(ZOO), str(ROOT / "verify")]

import peers  # noqa: E402
from catalogue import models  # noqa: E402
from check_model_zoo import held_results, keep_results, prepare  # noqa: E402

#: The least and the most turns of a model, and about how many seconds all of them take.
LEAST, MOST, SECONDS = 3, 7, 4.0
#: Seconds of rest before a turn and of the passes that count in it, and how many these are at most. A pass of
#: more than ``SLOW`` seconds is no quicker after another.
REST, TURN, MOST_PASSES, SLOW = 0.25, 0.2, 10, 0.5
#: How a ratio was formed.
RATIO_WORDS = (
    "*Times as fast* is the median over turns of MXNet's time by ours, each the median of the passes of a "
    "turn; that of the two medians in milliseconds may differ where the machine was busy."
)
#: Seconds after which a model is given up.
PATIENCE = 600
#: The environment of ``verify/peers.py`` that has a library.
PEERS = {"mxnet": "gluoncv", "onnxruntime": "engines", "openvino": "engines"}
#: What holds numba and MXNet's oneDNN to AVX2. The name of the processor alone would leave numba AVX-512.
AVX2 = {
    "NUMBA_CPU_NAME": "haswell",
    "NUMBA_CPU_FEATURES": "+avx2,+fma,+f16c,+bmi,+bmi2",
    "DNNL_MAX_CPU_ISA": "AVX2",
}


def environment(library, threads):
    found = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
    found["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ZOO)] if library == "roiops" else [str(ZOO)])
    for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
        found[variable] = str(threads)
    return found


def export(name, folder):
    """Have MXNet build a model and save it to ``folder``, unless it is there; what went wrong, or None."""
    return prepare(name, folder, os.cpu_count(), PATIENCE).get("error")


class Side:
    """One library with one model, a folder or an ONNX file, in a process of its own."""

    def __init__(self, library, folder, threads):
        python = sys.executable if library == "roiops" else str(peers.interpreter(PEERS[library]))
        self.library = library
        self.said = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed by `kill`)
        self.process = subprocess.Popen(
            [python, "-W", "ignore", str(ROOT / "benchmarks" / "zoo_side.py"), library, str(folder)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            text=True,
            env=environment(library, threads),
        )

    def await_ready(self):
        for line in self.process.stdout:
            if line.strip() == "ready":
                return
        self._fail()

    def measure(self, passes, uncounted=1):
        """Wall and CPU seconds of a pass, the median of so many that come after uncounted ones."""
        time.sleep(REST)
        try:
            self.process.stdin.write(f"{uncounted + passes}\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            self._fail()
        return [statistics.median(values) for values in zip(*self._answer()[uncounted:], strict=True)]

    def close(self):
        """Let the process end; its peak memory in bytes."""
        self.process.stdin.close()
        peak = self._answer()
        self.process.wait()
        return peak

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.said.close()

    def _answer(self):
        line = self.process.stdout.readline()
        return json.loads(line) if line else self._fail()

    def _fail(self):
        self.said.seek(0)
        last = (self.said.read().strip().splitlines() or [f"ended with {self.process.wait()}"])[-1]
        raise RuntimeError(f"{self.library}: {last}")


def passes_of_a_turn(one):
    """How many passes count in a turn of a model of which one takes so many seconds."""
    return max(1, min(MOST_PASSES, round(TURN / one)))


def turns(first, seconds):
    """How many turns each library takes of a model of which the first turns took ``first`` seconds."""
    return max(LEAST, min(MOST, round(seconds / first)))


def measure(folder, threads, seconds, peer="mxnet", file=None):
    """One row of the table: roiops and a peer, which may run an ONNX file, in turn; or what went wrong."""
    sides = {peer: Side(peer, file or folder, threads), "roiops": Side("roiops", folder, threads)}
    late = threading.Timer(PATIENCE, lambda: [side.process.kill() for side in sides.values()])
    late.start()
    try:
        for side in sides.values():
            side.await_ready()
        one = {library: side.measure(1, 0)[0] for library, side in sides.items()}
        passes = passes_of_a_turn(max(one.values()))
        uncounted = int(max(one.values()) < SLOW)
        rounds = turns(sum(REST + (uncounted + passes) * first for first in one.values()), seconds)
        times = {library: [] for library in sides}
        for _ in range(rounds):
            for library, side in sides.items():
                times[library].append(side.measure(passes, uncounted))
        peak = {library: side.close() for library, side in sides.items()}
    except RuntimeError as error:
        late_words = "" if late.is_alive() else f"took longer than {PATIENCE} s; "
        return {"error": f"{late_words}{error}"}
    finally:
        late.cancel()
        for side in sides.values():
            side.kill()
    wall = {library: [time for time, _ in pairs] for library, pairs in times.items()}
    cpu = {library: statistics.median(time for _, time in pairs) for library, pairs in times.items()}
    return {
        "turns": rounds,
        "passes": passes,
        "roiops_s": statistics.median(wall["roiops"]),
        f"{peer}_s": statistics.median(wall[peer]),
        "ratio": statistics.median(b / a for a, b in zip(wall["roiops"], wall[peer], strict=True)),
        "roiops_cpu_s": cpu["roiops"],
        f"{peer}_cpu_s": cpu[peer],
        "roiops_bytes": peak["roiops"],
        f"{peer}_bytes": peak[peer],
        "load": os.getloadavg()[0],
    }


def calmer(row, other):
    """Of two runs of a model the one in which both libraries together took less time."""
    if "ratio" not in row or "ratio" not in other:
        return other if "ratio" in other else row
    best = min(row, other, key=lambda each: each["roiops_s"] + each["mxnet_s"])
    return {**best, "runs": row.get("runs", 1) + other.get("runs", 1)}


def groups(result):
    """``(group, threads, rows by model)``, in the catalogue's order; a last group has all."""
    found = {}
    for model in models():
        for threads, row in result["models"].get(model.name, {}).items():
            if "ratio" in row:
                for group in (model.family, "all"):
                    found.setdefault((group, int(threads)), {})[model.name] = row
    order = [*dict.fromkeys(model.family for model in models()), "all"]
    for group in order:
        for threads in sorted(t for g, t in found if g == group):
            yield group, threads, found[group, threads]


def summary(result):
    """The table by group, with the worst model of each."""
    lines = [
        "| group | threads | models | times as fast as MXNet | least | model of the least |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for group, threads, rows in groups(result):
        worst = min(rows, key=lambda name: rows[name]["ratio"])
        lines.append(
            f"| {group} | {threads} | {len(rows)} | {geometric_mean(r['ratio'] for r in rows.values()):.2f} "
            f"| {rows[worst]['ratio']:.2f} | {worst} |"
        )
    return lines


def bars(result):
    """How the zoo stands to what it is held to."""
    lines = []
    every = [(threads, rows) for group, threads, rows in groups(result) if group == "all"]
    failed = [name for name, rows in result["models"].items() if any("error" in r for r in rows.values())]
    if failed:
        lines.append(f"- Not measured, because one of the libraries failed: {', '.join(failed)}.")
    for threads, rows in every:
        ratios = [row["ratio"] for row in rows.values()]
        ahead = sum(ratio >= 1 for ratio in ratios) / len(ratios)
        lean = sum(row["roiops_bytes"] <= row["mxnet_bytes"] for row in rows.values()) / len(rows)
        lines.append(
            f"- {threads} thread{'s' * (threads > 1)}: geometric mean {geometric_mean(ratios):.2f}, "
            f"{ahead:.0%} of {len(ratios)} models at 1.0 or above, least {min(ratios):.2f}; peak memory at "
            f"most MXNet's in {lean:.0%}."
        )
    return lines


def words(result) -> str:
    """What was run where."""
    about = result["about"]
    return f"`python benchmarks/zoo.py{about.get('options', '')}`, {about['date']}, {about['machine']}."


def words_of_runs(result) -> str:
    """A sentence about the models that were measured more than once."""
    count = sum(row.get("runs", 1) > 1 for rows in result["models"].values() for row in rows.values())
    if not count:
        return ""
    return f"Of {count} fast models the calmer of two runs counts: both libraries together took less time. "


def markdown(result):
    about = result["about"]
    loads = [row["load"] for rows in result["models"].values() for row in rows.values() if "load" in row]
    lines = [
        "# The model zoo against MXNet 1.9.1 with oneDNN",
        "",
        f"{words(result)} {about['versions']}. {RATIO_WORDS} "
        "Of a group it is the geometric mean. *Memory* is our process's peak by MXNet's; below 1, ours is "
        f"smaller. {words_of_runs(result)}"
        f"Load average of the last minute {min(loads, default=0):.1f} to "
        f"{max(loads, default=0):.1f} while it ran.",
        "",
        *bars(result),
        "",
        *summary(result),
        "",
        "| model | threads | roiops | MXNet | times as fast | memory |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for model in models():
        for threads, row in sorted(result["models"].get(model.name, {}).items()):
            if "error" in row:
                lines.append(f"| {model.name} | {threads} | {row['error'].replace('|', '/')} | | | |")
                continue
            ours, theirs = (f"{row[key] * 1e3:.1f} ms" for key in ("roiops_s", "mxnet_s"))
            memory = row["roiops_bytes"] / row["mxnet_bytes"]
            lines.append(
                f"| {model.name} | {threads} | {ours} | {theirs} | {row['ratio']:.2f} | {memory:.2f} |"
            )
    return "\n".join(lines) + "\n"


def record(result, name):
    """Write results and table; a run that is cut leaves those of the models before."""
    keep_results(RESULTS / f"{name}.json", result)
    (RESULTS / f"{name}.md").write_text(markdown(result), encoding="utf-8")


def versions():
    import numba

    return f"NumPy {np.__version__}, numba {numba.__version__}, Python {platform.python_version()}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--models", type=Path, default=peers.ROOT / "zoo", help="the exported models' folder")
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="names that contain one of these"
    )
    parser.add_argument("--every", type=int, default=1, metavar="N", help="every Nth model only")
    parser.add_argument("--avx2", action="store_true", help="hold both libraries to AVX2")
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument(
        "--seconds", type=float, default=SECONDS, help="about how long all turns of a model take"
    )
    parser.add_argument("--minutes", type=float, help="start no more models after this long")
    parser.add_argument("--resume", action="store_true", help="leave out what the results hold already")
    parser.add_argument("--again", type=float, metavar="S", help="models of at most S seconds a second time")
    parser.add_argument("--exported", action="store_true", help="only models that are exported already")
    parser.add_argument("--table", action="store_true", help="measure nothing, write the table")
    options = parser.parse_args()
    if options.avx2:
        os.environ.update(AVX2)
    results = "zoo_avx2" if options.avx2 else "zoo"
    path = RESULTS / f"{results}.json"
    result = held_results(path)
    if options.table:
        record(result, results)
        return
    if not options.resume and not options.again and options.only == [""]:
        result = {"models": {}}
    began = time.monotonic()
    for model in models()[:: options.every]:
        if not any(text in model.name for text in options.only):
            continue
        if options.minutes is not None and time.monotonic() - began > options.minutes * 60:
            print("the rest is left for --resume")
            break
        folder = options.models / model.name.replace(":", "_")
        rows = result["models"].setdefault(model.name, {})
        wanted = [n for n in options.threads if not (options.resume and "ratio" in rows.get(str(n), {}))]
        if options.again:
            wanted = [n for n in wanted if rows.get(str(n), {}).get("roiops_s", math.inf) <= options.again]
        if not wanted or (options.exported and not (folder / "made.json").exists()):
            continue
        error = export(model.name, folder)
        for threads in wanted:
            row = {"error": f"MXNet: {error}"} if error else measure(folder, threads, options.seconds)
            rows[str(threads)] = calmer(rows[str(threads)], row) if options.again else row
            shown = row.get("error") or f"{row['roiops_s'] * 1e3:.1f} ms, {row['ratio']:.2f} times as fast"
            print(f"{model.name}, {threads} threads: {shown}", flush=True)
        result["about"] = {
            "date": datetime.date.today().isoformat(),
            "machine": f"{processor()}, {os.cpu_count()} cores",
            "options": " --avx2" * options.avx2 + f" --every {options.every}" * (options.every > 1),
            "versions": versions(),
        }
        record(result, results)


if __name__ == "__main__":
    main()
