"""Make the golden files again: run each script with the interpreter of the peer it records.

    python verify/golden/make.py                 # all; sets up missing peers first
    python verify/golden/make.py roi_chainer     # make_roi_chainer.py only

With the same peers the same bytes come out, so `git diff --stat tests/golden` shows what changed.
"""

import argparse
import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
PEERS = HERE.parent / "peers.py"

# script -> the peer environment of verify/peers.py that runs it
SCRIPTS = {
    "roi_mxnet": "mxnet",
    "roi_torchvision": "torch",
    "deform_torchvision": "torch",
    "roi_chainer": "mxnet",
    "roi_onnx": "onnx",
    "roi_mmcv": "mmcv",
    "roi_paddle": "paddle",
    "roi_tensorflow": "tf",
    "roi_pyramid": "torch",
    "graphs": "mxnet",
    "behaviour": "mxnet",
    "legacy": "mxnet",
    "params": "mxnet",
    "ndarray": "mxnet",
    "image": "mxnet",
    "image_detection": "mxnet",
    "records": "mxnet",
    "training": "mxnet",
    "gluon": "mxnet",
    "recurrent_convolutions": "mxnet",
    "sparse": "mxnet",
    "ops": "mxnet",
    "optimizer": "mxnet",
    "update_operators": "mxnet",
    "monitor_names": "mxnet",
    "converted": "mxnet",
    "operators": "mxnet",  # after the others: it looks up what they hold
}

# One thread and MXNet's plain engine: sums are then made in one order on every machine. The cap: where
# an array feeds more than eight nodes, MXNet adds up its gradient in place, and gets it wrong at times.
ENVIRONMENT = {
    "OMP_NUM_THREADS": "1",
    "MXNET_ENGINE_TYPE": "NaiveEngine",
    "MXNET_EXEC_INPLACE_GRAD_SUM_CAP": "1000",
    "MXNET_SUBGRAPH_BACKEND": "NONE",
    "PYTHONWARNINGS": "ignore",
    "PYTHONDONTWRITEBYTECODE": "1",
}

ANNOUNCED = ("MXNET_SUBGRAPH_BACKEND", "NaiveEngine")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("scripts", nargs="*", metavar="script", help="one of " + ", ".join(SCRIPTS))
    wanted = parser.parse_args().scripts or list(SCRIPTS)
    unknown = sorted(set(wanted) - set(SCRIPTS))
    if unknown:
        parser.error(f"unknown script {', '.join(unknown)}; there are {', '.join(SCRIPTS)}")
    for script in wanted:
        peer = SCRIPTS[script]
        subprocess.run([sys.executable, PEERS, peer], check=True)
        asked = [sys.executable, PEERS, "--python", peer]
        python = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
        command, environment = [python, HERE / f"make_{script}.py"], os.environ | ENVIRONMENT
        made = subprocess.run(command, env=environment, stderr=subprocess.PIPE, text=True)
        # MXNet announces both settings, one of them on every bind.
        lines = [line for line in made.stderr.splitlines() if not any(key in line for key in ANNOUNCED)]
        print("\n".join(lines), end="\n" if lines else "", file=sys.stderr)
        made.check_returncode()


if __name__ == "__main__":
    main()
