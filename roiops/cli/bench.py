"""Time a saved model, or the ROI operators, on this machine.

  roiops bench model-symbol.json --params model-0000.params --shape data=1,3,600,800 --operators
  roiops bench networks.py:make_ssd --with classes=20 --shape data=1,3,512,512
  roiops bench
  roiops bench --match ROIAlign --rois 1000

Without a model the ROI operators run on a feature map of 256 channels. Each figure is the median of the calls
that fit into --seconds, after one that compiles; the quartiles show how quiet the machine was. Without
--params a model gets random numbers, which take as long. NUMBA_NUM_THREADS sets the number of threads.
"""

import json
import statistics
import time
from collections import Counter

import numpy as np

from ..errors import MXNetError
from ..graph.nodes import topological_order
from .common import (
    add_device,
    add_model,
    add_shapes,
    bind,
    dtype_name,
    open_model,
    positive,
    refuse,
    table,
)

SUMMARY = "time a saved model layer by layer, or the ROI operators"


#: To be asked after each operator, an executor computes each by itself.
_APART = "operators one by one, none merged with the next"


def configure(parser) -> None:
    add_model(parser, nargs="?")
    parser.add_argument("--params", metavar="PARAMS", help="its parameters, or their epoch")
    parser.add_argument("--dtype", type=dtype_name, metavar="TYPE", help="convert them, as to float32")
    add_shapes(parser)
    parser.add_argument(
        "--operators", action="store_true", help="also the time of each operator of the model"
    )
    parser.add_argument(
        "--seconds", type=positive(float), default=2.0, metavar="S", help="time for each figure (default 2)"
    )
    parser.add_argument("--rois", type=positive(int), default=300, metavar="N", help="ROIs (default 300)")
    parser.add_argument(
        "--match", default="", metavar="TEXT", help="only ROI operators whose name holds this"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")
    add_device(parser)


def execute(args) -> None:
    from ..kernels.jit import num_threads

    if args.symbol:
        refuse(args, "is for the ROI operators, without a model", "match", "rois")
        rows = _model(args)
    else:
        refuse(args, "is for a model", "params", "dtype", "operators", "shape", "with")
        rows = _roi_operators(args)
    if not rows:
        raise MXNetError(f"--match: no ROI operator that is timed has {args.match!r} in its name")
    threads = num_threads()
    if args.json:
        print(json.dumps({"threads": threads, "results": rows}, indent=2))
        return
    print(f"threads: {threads}")
    print(
        table(
            [("what", "median ms", "quartiles", "calls")]
            + [(r["name"], f"{r['median_ms']:.3f}", _span(r), r["calls"]) for r in rows]
        )
    )


def _span(row) -> str:
    return "" if row["quartiles_ms"] is None else "{:.3f} to {:.3f}".format(*row["quartiles_ms"])


def _time(name: str, call, seconds: float) -> dict:
    """Median and quartiles of ``call``, which has run once before."""
    taken, end = [], time.perf_counter() + seconds
    while len(taken) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        call()
        taken.append((time.perf_counter() - start) * 1e3)
    lower, _, upper = statistics.quantiles(taken, n=4)
    return _row(name, statistics.median(taken), len(taken), [lower, upper])


def _row(name: str, median: float, calls: int, quartiles=None) -> dict:
    return {"name": name, "median_ms": median, "quartiles_ms": quartiles, "calls": calls}


def _model(args) -> list[dict]:
    from ..models import archive

    symbol, params = open_model(args, args.symbol, args.params)
    if params is not None:
        model = archive.load(symbol, params, source=args.symbol, dtype=args.dtype)
        symbol, executor = model.symbol, model.bind(args.device, **args.shape)
    else:
        refuse(args, "converts parameters; give them with --params", "dtype")
        symbol, executor = bind(args, symbol, args.device)
        _fill(executor)
    forward = lambda: executor.forward(is_train=False)[0].wait_to_read()  # noqa: E731
    forward()
    rows = [_time("forward", forward, args.seconds)]
    if args.operators:
        operators = _by_operator(symbol, executor, forward, args.seconds)
        together = sum(row["median_ms"] for row in operators)
        calls = max((row["calls"] for row in operators), default=0)
        rows.append(_row(_APART, together, calls))
        rows += operators
    return rows


def _fill(executor) -> None:
    """Numbers that keep activations of the order of 1."""
    random = np.random.default_rng(0)
    for name, array in {**executor.arg_dict, **executor.aux_dict}.items():
        if name.endswith(("_gamma", "_var")):
            array[:] = 1
        else:
            fan_in = max(1, int(np.prod(array.shape[1:])))
            array[:] = random.normal(0, (2 / fan_in) ** 0.5, array.shape).astype(array.dtype)


def _by_operator(symbol, executor, forward, seconds) -> list[dict]:
    """Time from one operator's end to the next one's, summed over the nodes of each operator."""
    nodes = [node for node in topological_order(symbol.heads) if not node.is_variable]
    kinds = {node.output_name(i): node.op for node in nodes for i in range(node.num_outputs)}
    sums = {node.op: [] for node in nodes}
    end = time.perf_counter() + seconds
    state = {}

    def after(name, _):
        now, kind = time.perf_counter(), kinds[name]
        state["sums"][kind] = state["sums"].get(kind, 0.0) + now - state["last"]
        state["last"] = now

    executor.set_monitor_callback(after)
    passes = 0
    while passes < 3 or time.perf_counter() < end:
        state.update(sums={}, last=time.perf_counter())
        forward()
        for kind, value in state["sums"].items():
            sums[kind].append(value * 1e3)
        passes += 1
    counts = Counter(node.op for node in nodes)
    measured = ((kind, times) for kind, times in sums.items() if times)
    rows = [_row(f"  {kind} x{counts[kind]}", statistics.median(t), len(t)) for kind, t in measured]
    return sorted(rows, key=lambda row: -row["median_ms"])


_GRID = 7
#: Operator, parameters, channels of the map.
_ROI_OPERATORS = (
    ("ROIPooling", {"pooled_size": (_GRID, _GRID)}, 256),
    ("ROIAlign", {"pooled_size": (_GRID, _GRID), "sampling_ratio": 2}, 256),
    ("_contrib_ROIAlign", {"pooled_size": (_GRID, _GRID), "sample_ratio": 2}, 256),
    ("PSROIPooling", {"pooled_size": _GRID, "output_dim": 21}, 21 * _GRID**2),
    ("PSROIAlign", {"pooled_size": _GRID, "output_dim": 21}, 21 * _GRID**2),
)


def _roi_operators(args) -> list[dict]:
    from .. import registry, sym
    from ..graph.symbol import invoke

    random = np.random.default_rng(0)
    height, width, stride = 50, 68, 16
    corner = random.uniform(0, 0.7, (args.rois, 2)) * (width * stride, height * stride)
    size = random.uniform(0.05, 0.5, (args.rois, 2)) * (width * stride, height * stride)
    rois = np.concatenate([np.zeros((args.rois, 1)), corner, corner + size], 1).astype(np.float32)
    rows = []
    for name, params, channels in _ROI_OPERATORS:
        label = registry.public_name(name)
        if args.match.lower() not in label.lower():
            continue
        node = invoke(
            registry.get(name),
            (sym.Variable("data"), sym.Variable("rois")),
            {**params, "spatial_scale": 1 / stride},
        )
        shape = (1, channels, height, width)
        executor = node.simple_bind(
            args.device, grad_req={"data": "write", "rois": "null"}, data=shape, rois=rois.shape
        )
        executor.arg_dict["data"][:] = random.normal(size=shape).astype(np.float32)
        executor.arg_dict["rois"][:] = rois
        head = executor.forward(is_train=True)[0].copy()
        executor.backward([head])

        def forward(executor=executor):
            executor.forward(is_train=True)[0].wait_to_read()

        def both(executor=executor, head=head):
            executor.forward(is_train=True)
            executor.backward([head])
            executor.grad_dict["data"].wait_to_read()

        rows.append(_time(f"{label} forward", forward, args.seconds))
        rows.append(_time(f"{label} forward and backward", both, args.seconds))
    return rows
