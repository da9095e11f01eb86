"""Two checkouts of roiops side by side: the same bits, and how long each takes.

    git worktree add --detach /tmp/before 14b274b
    python benchmarks/compare_trees.py /tmp/before . --bits             # random and hostile boxes
    python benchmarks/compare_trees.py /tmp/before . --only boxes       # ROI operators on the workloads
    python benchmarks/compare_trees.py /tmp/before . --only networks --rounds 9
    python benchmarks/compare_trees.py --report benchmarks/results/trees.md

Each checkout runs in a process of its own, with one thread; the two take turns, one call each, so that what
else the machine does weighs on both. Where a process finds its memory decides, too: the same code in two
processes can differ by a quarter (compare a checkout with itself), so all rows are timed in several pairs of
processes, one pair after the other. ``--bits`` compares outputs and gradients of all ROI operators bit for
bit. Timings are kept as JSON, row by row: rows that are timed again replace the earlier ones, and
``--report`` writes the table. What a checkout does not have yet is left out.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from machine import RESULTS, processor
from network import NETWORKS
from roi_workloads import WORKLOADS, operators

HERE = Path(__file__).resolve().parent
#: Height and width of the pictures that networks get.
PICTURE = (300, 400)
#: Networks that are left out: they want objects to train on. benchmarks/network.py has them.
DETECTORS_IN_TRAINING = {"ssd_vgg16_training", "faster_rcnn_vgg16_training", "faster_rcnn_resnet50_training"}
#: Operators that both trees know, with the name of what decides the samples of a bin.
RATIOS = {
    "ROIPooling": None,
    "ROIAlign": "sampling_ratio",
    "_contrib_ROIAlign": "sample_ratio",
    "PSROIPooling": None,
    "PSROIAlign": "sampling_ratio",
    "_contrib_DeformablePSROIPooling": None,
    "_contrib_RROIAlign": "sampling_ratio",
}


# -- in the process of one checkout ----------------------------------------------------------------------


def bind_boxes(workload, operator):
    """The calls of one operator of the benchmark on one workload, forward and backward."""
    from roiops.operators.imperative import Invocation
    from roiops.registry import get

    work, operator = WORKLOADS[workload], operators(workload)[operator]
    inputs = operator.our_inputs(work)
    call = Invocation(get(operator.name).create(operator.arguments(work)), list(inputs.values()))
    head = np.random.default_rng(1).standard_normal(call.outputs[0].shape, dtype=np.float32)
    grads = [np.zeros_like(array) for array in inputs.values()]
    requests = ["null" if name == "rois" else "write" for name in inputs]
    return {"forward": call.forward, "backward": lambda: call.backward([head], requests, grads)}


def bind_network(name):
    """A network's forward pass, and the backward pass where it is for training."""
    import roiops as mx

    net, training = NETWORKS[name](mx), name.endswith("_training")
    shapes = {"data": (1, 3, *PICTURE)}
    if "im_info" in net.list_arguments():
        shapes["im_info"] = (1, 3)
    requests = {each: "write" if training and each not in shapes else "null" for each in net.list_arguments()}
    executor = net.simple_bind(mx.cpu(), grad_req=requests, **shapes)
    rng = np.random.default_rng(0)
    for each, array in sorted({**executor.arg_dict, **executor.aux_dict}.items()):
        value = rng.standard_normal(array.shape, dtype=np.float32)
        if each.endswith("weight"):
            value *= np.float32(np.sqrt(2 / np.prod(array.shape[1:])))
        elif each != "data":
            value = np.abs(value) + np.float32(0.5)
        array[:] = np.float32([[*PICTURE, 1]]) if each == "im_info" else value

    def run():
        executor.forward(is_train=training)
        if training:
            executor.backward([executor.outputs[0].copy()])

    return {"forward and backward" if training else "forward": run}


def hostile_and_random(random, images, height, width, scale):
    """Boxes inside, across and outside the map; reversed, empty, huge, not finite, to be ignored."""
    centre = random.uniform(-0.3, 1.3, (60, 2)) * (width, height)
    size = np.exp(random.uniform(np.log(0.3), np.log(2.5 * max(height, width)), (60, 2)))
    size *= random.choice([1, 1, 1, -1, 0], (60, 1))
    boxes = np.concatenate([centre - size / 2, centre + size / 2], axis=1)
    boxes[20:40] = np.round(boxes[20:40] * 2) / 2
    boxes = np.concatenate([random.integers(0, images, (60, 1)), boxes / scale], axis=1)
    inf, nan = np.inf, np.nan
    odd = [
        *([-1, 0, 0, 9, 9], [0, nan, 0, 9, 9], [1, 0, -inf, 9, inf], [0, 0, 0, 0, 0], [1, 9, 9, 0, 0]),
        *([0, -1e30, -1e30, 1e30, 1e30], [1, 1e6, 1e6, 2e6, 2e6], [0.9, -3.5, 2.5, 7.5, 40]),
    ]
    return np.concatenate([boxes, odd])


def bits(name, params, dtype, ratio):
    """All outputs, and the gradients written and added, of one row of the table of dialects."""
    from roiops.operators.imperative import Invocation
    from roiops.registry import get

    random = np.random.default_rng(7)
    pooled, groups, channels, scale = (3, 3), 3, 19, 0.25
    given = {**params, "pooled_size": pooled, "spatial_scale": scale}
    per = 1
    if RATIOS[name]:
        given[RATIOS[name]] = ratio
    if name.startswith("PSROI"):
        given["output_dim"] = channels
        per = groups**2
    elif params.get("position_sensitive"):
        per = groups**2
    elif name == "_contrib_DeformablePSROIPooling":
        given |= {"output_dim": channels, "group_size": groups, "part_size": 3, "sample_per_part": 2}
        given |= {"trans_std": 0.2, "pooled_size": 3}
        per = groups**2
    data = random.standard_normal((2, channels * per, 13, 17)).astype(dtype)
    rois = hostile_and_random(random, 2, 13, 17, scale)
    if name == "_contrib_RROIAlign":
        middle, sides = (rois[:, 1:3] + rois[:, 3:]) / 2, rois[:, 3:] - rois[:, 1:3]
        rois = np.concatenate([rois[:, :1], middle, sides, random.uniform(-200, 200, (len(rois), 1))], 1)
    inputs = [data, rois.astype(np.float32 if dtype == "float16" else dtype)]
    if name == "_contrib_DeformablePSROIPooling":
        inputs.append(random.uniform(-1, 1, (len(rois), 2, 3, 3)).astype(dtype))
    call = Invocation(get(name).create(given), inputs)
    call.forward()
    found = {f"out{i}": out for i, out in enumerate(call.outputs)}
    head = random.standard_normal(call.outputs[0].shape).astype(dtype)
    for request in ("write", "add"):
        grads = [np.full_like(each, 0.5) for each in inputs]
        call.backward([head], [request, "null", request][: len(inputs)], grads)
        found |= {f"{request}{i}": grad for i, grad in enumerate(grads) if i != 1}
    return found


def every_case():
    """The operators and parameters of the table of dialects, of this checkout."""
    from roiops.operators.roi.dialects import TABLE

    for row in TABLE.values():
        name = row.operator.replace("contrib.", "_contrib_")
        for dtype in ("float16", "float32", "float64") if name in RATIOS else ():
            for ratio in (0, 2) if RATIOS[name] else (0,):
                yield name, row.parameters, dtype, ratio


def answer(request):
    """What a worker replies to one request."""
    kind, *arguments = request
    if kind == "cases":
        return list(every_case())
    if kind == "bits":
        *case, file = arguments
        from roiops.errors import MXNetError

        try:
            found = bits(*case)
        except MXNetError as error:  # no such dialect in this checkout
            return str(error)
        np.savez(file, **found)
        return None
    raise ValueError(kind)


def serve():
    """Reply to requests, a line of JSON each, until the input ends."""
    calls = {}
    for line in sys.stdin:
        kind, *arguments = json.loads(line)
        if kind == "bind":
            from roiops.errors import MXNetError

            try:
                calls = (bind_boxes if len(arguments) == 2 else bind_network)(*arguments)
                for call in calls.values():
                    call()
                reply = list(calls)
            except MXNetError as error:
                reply = str(error)
        elif kind == "time":
            start = time.process_time()
            calls[arguments[0]]()
            reply = time.process_time() - start
        else:
            reply = answer([kind, *arguments])
        print(json.dumps(reply), flush=True)


# -- both checkouts --------------------------------------------------------------------------------------


class Checkout:
    """A process that runs one checkout's code."""

    def __init__(self, root):
        environment = dict(os.environ, PYTHONPATH=os.pathsep.join([str(Path(root).resolve()), str(HERE)]))
        for variable in ("OMP_NUM_THREADS", "NUMBA_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
            environment[variable] = "1"
        command = [sys.executable, "-W", "ignore", __file__, "--worker"]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
        self._process = subprocess.Popen(command, env=environment, **pipes)

    def __call__(self, *request):
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise SystemExit(f"a worker ended at {request}")
        return json.loads(line)

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def compare_bits(old, new, match) -> int:
    """Compare every case; gives the number of those that differ."""
    different = compared = 0
    with tempfile.TemporaryDirectory() as folder:
        for case in new("cases"):
            if match not in " ".join(map(str, case)):
                continue
            replies = []
            for side, checkout in (("old", old), ("new", new)):
                replies.append(checkout("bits", *case, f"{folder}/{side}.npz"))
            if replies != [None, None]:
                continue
            compared += 1
            with np.load(f"{folder}/old.npz") as a, np.load(f"{folder}/new.npz") as b:
                wrong = [k for k in a.files if k not in b.files or a[k].tobytes() != b[k].tobytes()]
            if wrong or set(a.files) != set(b.files):
                different += 1
                print("differs:", *case, *wrong)
    print(f"{compared} cases that both have, {different} of them differ in a bit")
    return different


def rows(only):
    """What is timed: the arguments of a worker's ``bind``."""
    if only != "networks":
        for workload in WORKLOADS:
            for operator in operators(workload):
                yield workload, operator
    if only != "boxes":
        for name in NETWORKS:
            if name not in DETECTORS_IN_TRAINING:
                yield (name,)


def time_pair(old, new, rounds, seconds, row):
    """``{pass: [(old, new), ...]}`` of one row in one pair of processes; {} where one does not have it."""
    bound = old("bind", *row), new("bind", *row)
    if not all(isinstance(each, list) for each in bound):
        return {}
    found = {}
    for call in bound[1]:
        pairs, stop = [], time.monotonic() + seconds
        while len(pairs) < rounds and (len(pairs) < 3 or time.monotonic() < stop):
            sides = [old, new] if len(pairs) % 2 else [new, old]
            times = {side: side("time", call) for side in sides}
            pairs.append((times[old], times[new]))
        found[call] = pairs
    return found


def summary(runs) -> dict:
    """What is kept of one pass, from the rounds of each pair of processes."""
    least = [(min(a for a, _ in pairs), min(b for _, b in pairs)) for pairs in runs]
    return {
        "old_s": statistics.median(a for a, _ in least),
        "new_s": statistics.median(b for _, b in least),
        "ratio_of_least": statistics.median(b / a for a, b in least),
        "ratio": statistics.median(statistics.median(b / a for a, b in pairs) for pairs in runs),
        "rounds": sum(map(len, runs)),
        "starts": len(runs),
    }


def measure(options) -> None:
    """Time all rows that are wanted in each pair of processes, and keep what is known after each."""
    held = json.loads(options.results.read_text()) if options.results.exists() else {"rows": {}}
    held["machine"] = processor()
    names = {", ".join(row): row for row in rows(options.only)}
    wanted = {
        name: row
        for name, row in names.items()
        if options.match in name and not (options.missing and name in held["rows"])
    }
    runs = {}
    for _ in range(options.starts):
        old, new = Checkout(options.old), Checkout(options.new)
        for name, row in wanted.items():
            for call, pairs in time_pair(old, new, options.rounds, options.seconds, row).items():
                runs.setdefault(name, {}).setdefault(call, []).append(pairs)
            if name in runs:
                held["rows"][name] = {call: summary(each) for call, each in runs[name].items()}
                options.results.write_text(json.dumps(held, indent=1) + "\n")
                found = held["rows"][name]
                ratios = {call: round(found[call]["ratio_of_least"], 3) for call in found}
                print(name, ratios, flush=True)
        old.close()
        new.close()


def markdown(result) -> str:
    lines = [
        "# Two checkouts side by side",
        "",
        f"`python benchmarks/compare_trees.py`, {result['machine']}, one thread. The checkouts take turns, "
        "one call each, in several pairs of processes, since where a process finds its memory changes times, "
        "too. Times are the processor's: of each pair the least, of the pairs the median. The ratio is new "
        "to old, the median of the pairs: by the least of each, and in brackets by the median of its rounds.",
        "",
        "| row | pass | old | new | ratio | rounds | pairs |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, calls in result["rows"].items():
        for call, row in calls.items():
            least = row.get("ratio_of_least", row["new_s"] / row["old_s"])  # rows of one pair do not hold it
            ratio = f"{least:.3f} ({row['ratio']:.3f})"
            times = f"{row['old_s'] * 1e3:.2f} ms | {row['new_s'] * 1e3:.2f} ms"
            counts = f"{row['rounds']} | {row.get('starts', 1)}"
            lines.append(f"| {name} | {call} | {times} | {ratio} | {counts} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("old", nargs="?")
    parser.add_argument("new", nargs="?")
    parser.add_argument("--bits", action="store_true", help="compare results instead of times")
    parser.add_argument("--only", choices=("boxes", "networks"))
    parser.add_argument("--match", default="", help="only rows or cases that hold this")
    parser.add_argument("--missing", action="store_true", help="only rows that the results do not hold")
    parser.add_argument("--starts", type=int, default=3, help="pairs of processes, one after the other")
    parser.add_argument("--rounds", type=int, default=25, help="in each pair of processes")
    parser.add_argument("--seconds", type=float, default=1.0, help="for each row, pass and pair, at most")
    parser.add_argument("--results", type=Path, default=RESULTS / "trees.json")
    parser.add_argument("--report", type=Path, help="write the table of all results")
    parser.add_argument("--worker", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        serve()
        return
    if options.report:
        options.report.write_text(markdown(json.loads(options.results.read_text())))
        return
    if options.bits:
        old, new = Checkout(options.old), Checkout(options.new)
        different = compare_bits(old, new, options.match)
        old.close()
        new.close()
        sys.exit(different > 0)
    measure(options)


if __name__ == "__main__":
    main()
