"""What a second thread gives each model of the zoo, beside what the machine has to give.

    python benchmarks/two_threads.py                  # models that take over 20 ms with one thread
    python benchmarks/two_threads.py --only ssd yolo  # those whose names contain one of these

Three processes have loaded a model: two with one thread, one with two. They take turns: one thread alone,
two processes of one thread each at the same time, and two threads. The *gain* is the time of one thread by
that of two. The *limit* is how many passes two processes make in the time in which one alone makes one:
they share nothing but the processors' clock, the caches and the memory, so that threads, which must wait
for each other as well, seldom do better. Each ratio is the median over the turns. Results go to
benchmarks/results/two_threads.{json,md}.
"""

import argparse
import datetime
import json
import os
import statistics
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import geometric_mean

from machine import processor
from zoo import RESULTS, Side, models, passes_of_a_turn, peers, versions

TURNS = 5
#: Milliseconds with one thread from which a model counts.
LEAST_MS = 20


def measure(folder):
    """Times of a model: one thread, what two threads gain and what two processes do; None if it is fast."""
    alone, second, both = sides = [Side("roiops", folder, threads) for threads in (1, 1, 2)]
    try:
        for side in sides:
            side.await_ready()
        passes = passes_of_a_turn(alone.measure(2, 1)[0])
        times = []
        with ThreadPoolExecutor(2) as pool:
            for _ in range(TURNS):
                one = alone.measure(passes)[0]
                beside = [each[0] for each in pool.map(lambda side: side.measure(passes), (alone, second))]
                times.append((one, beside, both.measure(passes)[0]))
    finally:
        for side in sides:
            side.kill()
    one_s = statistics.median(one for one, _, _ in times)
    if one_s * 1e3 < LEAST_MS:
        return None
    return {
        "one_s": one_s,
        "gain": statistics.median(one / two for one, _, two in times),
        "limit": statistics.median(sum(one / each for each in beside) for one, beside, _ in times),
    }


def markdown(result):
    rows = result["models"]
    gains, limits = ([row[key] for row in rows.values()] for key in ("gain", "limit"))
    lines = [
        "# Two threads beside one",
        "",
        f"`python benchmarks/two_threads.py`, {result['date']}, {result['machine']}, {result['versions']}; "
        f"models that take over {LEAST_MS} ms with one thread, medians of {TURNS} turns. *Gain*: the time of "
        "one thread by that of two. *Limit*: passes that two processes of one thread each make in the time "
        "in which one alone makes one.",
        "",
        f"- Geometric mean of the gains of {len(rows)} models {geometric_mean(gains):.2f}, of the limits "
        f"{geometric_mean(limits):.2f}; {sum(gain >= 1.7 for gain in gains)} gain 1.7, "
        f"{sum(limit >= 1.7 for limit in limits)} could by the limit; "
        f"{sum(gain >= 0.95 * limit for gain, limit in zip(gains, limits, strict=True))} come within a "
        "twentieth of it.",
        "",
        "| model | one thread | gain | limit |",
        "|---|---:|---:|---:|",
    ]
    for name, row in rows.items():
        lines.append(f"| {name} | {row['one_s'] * 1e3:.1f} ms | {row['gain']:.2f} | {row['limit']:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "--models", type=Path, default=peers.ROOT / "zoo", help="where benchmarks/zoo.py put them"
    )
    parser.add_argument(
        "--only", nargs="+", default=[""], metavar="TEXT", help="names that contain one of these"
    )
    options = parser.parse_args()
    result = {
        "date": datetime.date.today().isoformat(),
        "machine": f"{processor()}, {os.cpu_count()} cores",
        "versions": versions(),
        "models": {},
    }
    for model in models():
        folder = options.models / model.name.replace(":", "_")
        if not any(text in model.name for text in options.only) or not (folder / "made.json").exists():
            continue
        row = measure(folder)
        if row is not None:
            result["models"][model.name] = row
            print(
                f"{model.name}: {row['one_s'] * 1e3:.1f} ms, gain {row['gain']:.2f}, limit {row['limit']:.2f}"
            )
            (RESULTS / "two_threads.json").write_text(json.dumps(result, indent=1) + "\n")
            (RESULTS / "two_threads.md").write_text(markdown(result), encoding="utf-8")


if __name__ == "__main__":
    main()
