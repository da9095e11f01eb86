"""Set up the peers that roiops is compared with, each in a virtual environment of its own.

    python verify/peers.py mxnet torch onnx      # into .peers/<name>, reused when complete
    python verify/peers.py mmcv                  # its sources, and the environment that compiles them
    python verify/peers.py --python mxnet        # print that environment's interpreter

roiops never depends on them: golden files and benchmark results are committed.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(os.environ.get("ROIOPS_PEERS", Path(__file__).resolve().parent.parent / ".peers"))

# name -> (interpreter versions that work, steps of pip arguments)
PEERS = {
    "mxnet": (
        ["3.9", "3.8"],
        [
            ["numpy==1.23.5", "mxnet==1.9.1", "setuptools<60", "wheel"],
            ["--no-build-isolation", "chainer==7.8.1", "numpy==1.23.5"],
        ],
    ),
    "gluoncv": (
        ["3.9", "3.8"],
        [["numpy==1.23.5", "mxnet==1.9.1", "gluoncv==0.10.5", "setuptools<60"]],
    ),
    # GluonCV without MXNet, on a current NumPy: verify/check_gluon.py runs it on roiops.
    "gluoncv-now": (
        ["3.11", "3.12", "3.10"],
        [
            ["numpy==2.4.6", "numba==0.68.1", "pyyaml", "scipy", "pillow", "matplotlib", "pandas"],
            ["opencv-python-headless", "requests", "tqdm", "portalocker", "yacs"],
            ["--no-deps", "gluoncv==0.10.5", "autocfg==0.0.8"],
        ],
    ),
    "torch": (
        ["3.11", "3.12", "3.10"],
        # The last three compile the sources of mmcv.
        [["torch==2.9.1", "torchvision==0.24.1", "numpy==2.3.5", "setuptools<80", "wheel", "ninja"]],
    ),
    "onnx": (["3.11", "3.12", "3.10"], [["onnxruntime", "onnx", "numpy==2.3.5"]]),
    # What verify/check_engines.py runs ONNX files in.
    "engines": (
        ["3.11", "3.12", "3.10"],
        [["onnxruntime", "onnx", "openvino==2026.4.1", "opencv-python-headless==5.0.0.93", "numpy==2.4.6"]],
    ),
    "tf": (["3.11", "3.12", "3.10"], [["tensorflow-cpu==2.21.0", "numpy==2.4.6"]]),
    "paddle": (["3.11", "3.12", "3.10"], [["paddlepaddle==3.3.1", "numpy==2.4.6", "setuptools"]]),
    # No peer, but the CUDA compilers that verify/ptx_check.py uses; they need neither GPU nor driver.
    "cuda": (
        ["3.11", "3.12", "3.10"],
        [
            [
                "numba-cuda[cu13]==0.30.4",
                "nvidia-cuda-nvcc==13.5.37",
                "numba==0.68.1",
                "numpy==2.4.6",
                "pyyaml",
            ]
        ],
    ),
}

# Peers that publish no package for a current Python: name -> (the environment that compiles the sources, what
# to download). The sources lie in <root>/<name>-source.
SOURCES = {"mmcv": ("torch", "mmcv==2.2.0")}


def find_python(versions: list[str]) -> str:
    """An interpreter of one of ``versions``, from PATH or from pyenv."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv")) / "versions"
    for version in versions:
        candidates = [shutil.which(f"python{version}")]
        candidates += sorted(str(p) for p in pyenv.glob(f"{version}.*/bin/python"))
        for candidate in filter(None, candidates):
            asked = subprocess.run([candidate, "--version"], capture_output=True, text=True)
            if asked.returncode == 0 and f" {version}." in asked.stdout:
                return candidate
    raise SystemExit(f"peers: needs Python {' or '.join(versions)}, and none was found")


def interpreter(name: str) -> Path:
    environment, _ = SOURCES.get(name, (name, None))
    return ROOT / environment / "bin" / "python"


def source(name: str) -> Path:
    """The folder with the sources of a peer that is compiled here."""
    return ROOT / f"{name}-source"


def set_up(name: str) -> None:
    if name in SOURCES:
        set_up_source(name)
        return
    done = ROOT / name / ".complete"
    if done.exists():
        return
    versions, steps = PEERS[name]
    subprocess.run([find_python(versions), "-m", "venv", "--clear", ROOT / name], check=True)
    for step in steps:
        subprocess.run([interpreter(name), "-m", "pip", "install", "-q", *step], check=True)
    done.touch()


def enter(name: str, *folders: str) -> None:
    """Go on in the environment of ``name``, if this is another; modules are found in ``folders`` too."""
    python = interpreter(name)
    if Path(sys.executable).absolute() == python.absolute():
        return
    set_up(name)
    root = Path(__file__).resolve().parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(str(root / each) for each in ("", *folders))}
    for of_the_simulator in "NUMBA_ENABLE_CUDASIM", "NUMBA_DISABLE_JIT":
        environment.pop(of_the_simulator, None)
    sys.exit(subprocess.run([python, *sys.argv], env=environment).returncode)


def set_up_source(name: str) -> None:
    environment, requirement = SOURCES[name]
    set_up(environment)
    if source(name).exists():
        return
    with tempfile.TemporaryDirectory() as folder:
        options = ["--no-deps", "--no-build-isolation", "--no-binary", name, "--dest", folder]
        subprocess.run([interpreter(name), "-m", "pip", "download", "-q", *options, requirement], check=True)
        (archive,) = Path(folder).glob("*.tar.gz")
        shutil.unpack_archive(archive, folder, filter="data")
        shutil.move(archive.with_suffix("").with_suffix(""), source(name))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("names", nargs="+", choices=sorted([*PEERS, *SOURCES]))
    parser.add_argument("--python", action="store_true", help="print the interpreters only")
    args = parser.parse_args()
    for name in args.names:
        if args.python:
            print(interpreter(name))
        else:
            set_up(name)
            print(f"peers: {name} is ready at {interpreter(name)}", file=sys.stderr)


if __name__ == "__main__":
    main()
