"""What the executor costs beside the arithmetic, and the memory of a long chain.

    python benchmarks/executor.py            # with real MXNet, if verify/peers.py has set it up
    python benchmarks/executor.py --no-peer
    NUMBA_NUM_THREADS=1 python benchmarks/executor.py --gluon resnet50_v1    # prints, and writes nothing

A graph of 1,000 additions of arrays of one element is run forward and its result read back, in turn with
real MXNet 1.9.1 on the same graph and with a bare loop of ``np.add(a, b, out=c)``. One thread. The result
is written to benchmarks/results/executor.{json,md}. ``--gluon`` has a network of Gluon at 224x224
instead: operator by operator, hybridised, and its symbol bound.
"""

import argparse
import datetime
import json
import platform
import statistics
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
from machine import RESULTS, processor

ROOT = Path(__file__).resolve().parent.parent
NODES = 1000
RUNS = 15

PEER = """
import sys, time
import mxnet as mx
x, b = mx.sym.Variable("x"), mx.sym.Variable("b")
for _ in range(NODES):
    x = x + b
e = x.bind(mx.cpu(), {"x": mx.nd.zeros((1,)), "b": mx.nd.ones((1,))}, grad_req="null")
e.forward()[0].asnumpy()
for line in sys.stdin:
    start = time.perf_counter()
    for _ in range(10):
        e.forward()[0].asnumpy()
    print((time.perf_counter() - start) / 10, flush=True)
""".replace("NODES", str(NODES))


def start_peer():
    python = ROOT / ".peers" / "mxnet" / "bin" / "python"
    if not python.exists():
        return None
    environment = {"OMP_NUM_THREADS": "1", "PATH": "/usr/bin:/bin"}
    return subprocess.Popen(
        [python, "-W", "ignore", "-c", PEER],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=environment,
    )


def ours():
    import roiops as mx

    x, b = mx.sym.Variable("x"), mx.sym.Variable("b")
    for _ in range(NODES):
        x = x + b
    executor = x.bind(mx.cpu(), {"x": mx.nd.zeros((1,)), "b": mx.nd.ones((1,))}, grad_req="null")

    def run():
        executor.forward()[0].asnumpy()

    assert executor.forward()[0].asscalar() == NODES
    return run


def bare():
    a, b, c = (np.ones(1, np.float32) for _ in range(3))

    def run():
        for _ in range(NODES):
            np.add(a, b, out=c)

    return run


def clock(run) -> float:
    start = time.perf_counter()
    for _ in range(10):
        run()
    return (time.perf_counter() - start) / 10


def chain_memory() -> dict[int, int]:
    import roiops as mx

    sizes = {}
    for layers in (2, 100):
        x = mx.sym.Variable("x")
        for _ in range(layers):
            x = mx.sym.FullyConnected(x, num_hidden=1024, no_bias=True)
        executor = x.simple_bind(mx.cpu(), grad_req="null", x=(256, 1024))
        sizes[layers] = executor.internal_bytes
    return sizes


def gluon(name) -> None:
    import roiops as mx

    data, nets = mx.nd.random.uniform(shape=(1, 3, 224, 224)), []
    for _ in range(2):
        mx.random.seed(0)
        net = mx.gluon.model_zoo.vision.get_model(name, prefix="")
        net.initialize(mx.init.Xavier())
        net(data)
        nets.append(net)
    nets[1].hybridize()
    executor = nets[1](mx.sym.var("data")).simple_bind(mx.cpu(), grad_req="null", data=data.shape)
    values = {key: parameter.data() for key, parameter in nets[1].collect_params().items()}
    executor.copy_params_from(values, values, allow_extra_params=True)
    runs = {
        "not hybridised": lambda: nets[0](data).asnumpy(),
        "hybridised": lambda: nets[1](data).asnumpy(),
        "bound": lambda: executor.forward(data=data)[0].asnumpy(),
    }
    plain, *others = (run() for run in runs.values())
    for other in others:
        np.testing.assert_allclose(other, plain, rtol=0, atol=1e-5 * np.abs(plain).max())
    rounds = {key: [] for key in runs}
    for _ in range(RUNS):
        for key, run in runs.items():
            rounds[key].append(clock(run))
    for key, times in rounds.items():
        ratio = statistics.median(a / b for a, b in zip(times, rounds["bound"], strict=True))
        print(f"{name}, {key}: {statistics.median(times) * 1e3:.1f} ms, {ratio:.3f} of the bound symbol's")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--no-peer", action="store_true", help="leave MXNet out")
    parser.add_argument("--gluon", metavar="NETWORK", help="a network of Gluon's zoo instead")
    args = parser.parse_args()
    if args.gluon:
        gluon(args.gluon)
        return
    peer = None if args.no_peer else start_peer()
    rounds = {"roiops": [], "np.add": []}
    runs = {"roiops": ours(), "np.add": bare()}
    for _ in range(RUNS):
        for name, run in runs.items():
            rounds[name].append(clock(run) / NODES * 1e6)
        if peer:
            peer.stdin.write("\n")
            peer.stdin.flush()
            rounds.setdefault("MXNet 1.9.1", []).append(float(peer.stdout.readline()) / NODES * 1e6)
    if peer:
        peer.stdin.close()
        peer.wait()
    medians = {name: statistics.median(values) for name, values in rounds.items()}
    memory = chain_memory()
    record = {
        "date": datetime.date.today().isoformat(),
        "command": "python benchmarks/executor.py",
        "machine": f"{processor()}, Python {platform.python_version()}, NumPy {np.__version__}",
        "nodes": NODES,
        "microseconds_a_node": {name: round(value, 3) for name, value in medians.items()},
        "chain_internal_bytes": {str(layers): size for layers, size in memory.items()},
    }
    (RESULTS / "executor.json").write_text(json.dumps(record, indent=2) + "\n")
    lines = [
        "# Executor overhead",
        "",
        f"`{record['command']}`, {record['date']}, {record['machine']}, one thread, median of {RUNS} rounds "
        "that take turns.",
        "",
        f"| {NODES} additions of `(1,)` arrays | microseconds a node |",
        "|---|---|",
        *[f"| {name} | {value:.2f} |" for name, value in medians.items()],
        "",
        "| chain of fully connected layers, inference | internal buffers |",
        "|---|---|",
        *[f"| {layers} layers | {size:,} bytes |" for layers, size in memory.items()],
    ]
    (RESULTS / "executor.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    sys.exit(main())
