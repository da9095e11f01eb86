"""Run tests on AArch64, emulated by qemu: on a machine without an Arm processor.

    python verify/aarch64.py                                # kernels, operators, graph and models: hours
    python verify/aarch64.py tests/kernels -k product       # what pytest is told
    python verify/aarch64.py --processor neoverse-v1 ...    # with SVE; the default, neoverse-n1, has none
    python verify/aarch64.py --resume --minutes 60          # a piece at a time: what has not passed yet

qemu and an Arm Python come from Debian's unstable suite, NumPy and numba as wheels for Arm, all into
``.peers/aarch64``; nothing is installed on the machine. Emulated times mean nothing: this says whether
results are right. It needs apt and a Debian or Ubuntu.
"""

import argparse
import os
import subprocess
import sys

from peers import ROOT
from pythons import CHECKOUT, PACKAGES, interpreter, unpack

VERSION = "3.14"
FOLDER = ROOT.resolve() / "aarch64"
QEMU = FOLDER / "qemu" / "root/usr/bin/qemu-aarch64"
SITE = FOLDER / "site-packages"
WHEELS = ("numpy", "numba", "pyyaml", "pytest", "pillow", "onnx")
PLATFORMS = (
    "manylinux_2_28_aarch64",
    "manylinux_2_27_aarch64",
    "manylinux_2_17_aarch64",
    "manylinux2014_aarch64",
)
TESTS = ("tests/kernels", "tests/operators", "tests/graph", "tests/models")

#: What tests start as ``sys.executable``: the system cannot run a program for another processor by itself.
STARTER = """#!/bin/sh
export PYTHONPATH="${{PYTHONPATH:+$PYTHONPATH:}}{site}"
exec "{qemu}" -L "{root}" "{python}" "$@"
"""


def set_up() -> None:
    if not SITE.exists():
        _unpack_all()
    starter = FOLDER / "python"
    python = interpreter(FOLDER, VERSION)
    starter.write_text(STARTER.format(site=SITE, qemu=QEMU, root=FOLDER / "root", python=python))
    starter.chmod(0o755)
    (SITE / "sitecustomize.py").write_text(f"import sys\n\nsys.executable = {str(starter)!r}\n")


def _unpack_all() -> None:
    unpack(FOLDER / "qemu", ["qemu-user"])
    unpack(FOLDER, [name.format(VERSION) for name in PACKAGES], "arm64")
    (FOLDER / "root" / "lib").symlink_to("usr/lib")  # programs name their loader there
    wheels = [f"--platform={name}" for name in PLATFORMS]
    pip = [sys.executable, "-m", "pip", "install", "-q", "--disable-pip-version-check", "--only-binary=:all:"]
    into = ["--target", SITE, "--python-version", VERSION, "--implementation", "cp"]
    subprocess.run([*pip, *into, *wheels, *WHEELS], check=True)


def environment(processor: str, minutes: float) -> dict:
    return {
        **os.environ,
        "QEMU_CPU": processor,
        "PYTHONPATH": os.pathsep.join([str(CHECKOUT), str(CHECKOUT / "verify")]),
        "ROIOPS_PASSED": str(FOLDER / f"passed-{processor}.txt"),
        "ROIOPS_MINUTES": str(minutes),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(FOLDER / f"numba-{processor}"),
    }


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--processor", default="neoverse-n1", help="one that qemu knows")
    parser.add_argument("--resume", action="store_true", help="leave out tests that passed before")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="start no more tests after this")
    parser.add_argument("--run", action="store_true", help="run Python with what follows, not pytest")
    args, told = parser.parse_known_args()
    set_up()
    if not (args.resume or args.run):
        (FOLDER / f"passed-{args.processor}.txt").unlink(missing_ok=True)
    command = [FOLDER / "python"]
    if not args.run:
        command += ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--durations=0", "--durations-min=60"]
        command += ["-p", "resumed"]
        told = told if any(not each.startswith("-") for each in told) else [*TESTS, *told]
    print("AArch64, emulated:", args.processor, flush=True)
    settings = environment(args.processor, args.minutes)
    return subprocess.run([*command, *told], cwd=CHECKOUT, env=settings).returncode


if __name__ == "__main__":
    raise SystemExit(main())
