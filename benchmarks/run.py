"""All benchmarks, one after another: sets up the peers, measures, writes results, draws the plots.

    python benchmarks/run.py                  # some hours; the machine should have nothing else to do
    python benchmarks/run.py --only roi       # one of those in PEERS below
    python benchmarks/run.py --report         # only the page, its plots and README's table, from the results

Each benchmark takes turns with its peers and writes JSON and Markdown to benchmarks/results. ROI operators
and networks are compared with the peers' outputs before they are timed.
"""

import argparse
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PEERS = {
    "executor": ["mxnet"],
    "scaling": [],
    "roi": ["torch", "mxnet", "onnx", "mmcv", "paddle", "tf"],
    "roi_start": [],
    "network": ["mxnet"],
    "operators": ["mxnet"],
    "zoo": ["gluoncv"],
    "zoo_engines": ["gluoncv", "engines"],
    "ranks": [],
}


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", action="append", choices=list(PEERS))
    parser.add_argument("--report", action="store_true", help="measure nothing")
    args = parser.parse_args()
    chosen = [] if args.report else args.only or list(PEERS)
    peers = list(dict.fromkeys(name for each in chosen for name in PEERS[each]))
    if peers:
        subprocess.run([sys.executable, ROOT / "verify" / "peers.py", *peers], check=True)
    for name in chosen:
        subprocess.run([sys.executable, ROOT / "benchmarks" / f"{name}.py"], check=True)
    subprocess.run([sys.executable, ROOT / "benchmarks" / "report.py"], check=True)


if __name__ == "__main__":
    main()
