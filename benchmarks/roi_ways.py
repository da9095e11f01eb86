"""What each way to compute means of ROIs costs on the workloads: the chosen one beside each forced one.

    python benchmarks/roi_ways.py --match "C4 head"
    NUMBA_CPU_NAME=haswell NUMBA_CPU_FEATURES=+avx2,+fma,+f16c,+bmi,+bmi2 python benchmarks/roi_ways.py

One thread; the ways take turns, and the least time of each counts. Small calls come last, and they alone are
timed with ``scalars``, which takes 10 to 20 times as long in the others. What ``--record`` keeps, report.py
shows in docs/performance.md.
"""

import argparse
import os
import time

import ways as table_of_ways

os.environ.setdefault("NUMBA_NUM_THREADS", "1")

from compare_trees import bind_boxes
from machine import processor
from roi_workloads import WORKLOADS, Operator, Workload, operators

from roiops.kernels import ways
from roiops.kernels.cpu.roi import average
from roiops.kernels.cpu.vector import MACHINE_LANES

#: Calls that the table of workloads does not have: small ones.
SMALL = {
    "1 box, 1 channel": Workload((1, 1, 16, 16), 1, (4, 16), 2, 1.0),
    "16 boxes, 4 channels": Workload((1, 4, 32, 32), 16, (4, 32), 7, 1.0),
    "300 boxes, 3 channels": Workload((1, 3, 200, 200), 300, (10, 100), 14, 1.0),
}


def chosen_and_forced(workload, operator, rounds):
    """``{way: least seconds}`` of the forward and of the backward pass; "" is the way that is chosen."""
    taken, names = {}, ["", *(way.name for way in ways.declared())]
    if workload not in SMALL:
        names.remove("scalars")
    real = average.way_of

    def noted(*args, **how):
        taken[way] = real(*args, **how)
        return taken[way]

    average.way_of = noted
    found = {}
    for way in names:
        os.environ["ROIOPS_WAY"] = way
        for name, call in bind_boxes(workload, operator).items():
            taken.clear()
            call()
            if not way or taken.get(way) == way:
                found.setdefault(name, {})[way] = (call, [])
                if not way:
                    found[name]["is"] = taken.get("")
        if not any(times["is"] for times in found.values()):
            break  # these are no means, or have one way
    for _ in range(rounds):
        for times in found.values():
            for way, pair in times.items():
                if way == "is":
                    continue
                os.environ["ROIOPS_WAY"] = way
                start = time.process_time()
                pair[0]()
                pair[1].append(time.process_time() - start)
    average.way_of = real
    os.environ.pop("ROIOPS_WAY")
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--match", default="", help="only rows that hold this")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--record", action="store_true", help="keep what is measured for the docs")
    options = parser.parse_args()
    print(f"{processor()}, registers of {MACHINE_LANES} float32 numbers, one thread\n")
    print("| row | pass | taken | time | without it |\n|---|---|---|---|---|")
    align = {"ROIAlign avg, 2": Operator("align", "ROIAlign", {"aligned": False, "sampling_ratio": 2})}
    rows = {name: operators(name) for name in WORKLOADS} | dict.fromkeys(SMALL, align)
    WORKLOADS.update(SMALL)
    speeds = {"forward": [], "backward": []}
    for workload, all_operators in rows.items():
        for operator, what in all_operators.items():
            if what.params.get("mode") == "max" or options.match not in f"{workload}, {operator}":
                continue
            for name, times in chosen_and_forced(workload, operator, options.rounds).items():
                least = {way: min(pair[1]) for way, pair in times.items() if way != "is"}
                others = {way: least[way] for way in least if way not in ("", times["is"])}
                if others:
                    speeds[name].append({times["is"]: 1 / least[""], **{w: 1 / t for w, t in others.items()}})
                    words = ", ".join(f"{way} {t / least['']:.2f}" for way, t in others.items())
                    took = f"{times['is']} | {least[''] * 1e3:.3f} ms"
                    print(f"| {workload}, {operator} | {name} | {took} | {words} |", flush=True)
    means = {f"means of boxes, {name}": rows for name, rows in speeds.items() if rows}
    print("\n" + table_of_ways.table(means))
    if options.record:
        table_of_ways.record(MACHINE_LANES, means)


if __name__ == "__main__":
    main()
