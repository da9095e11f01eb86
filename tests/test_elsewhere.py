"""roiops on systems that are not Linux: each thing that only Linux has is hidden, and roiops does without it.

What is hidden here is what macOS or Windows lack. Nothing of it is looked for when modules are imported, and
operators, graphs, workers and commands run without it.
"""

import os
import subprocess
import sys
import textwrap

import pytest

#: Name -> what takes it away, before roiops is imported.
HIDDEN = {
    "affinity": "del os.sched_getaffinity, os.sched_setaffinity",
    "forks": "del os.fork, os.register_at_fork",
    "statvfs": "del os.statvfs",
    "/sys, /proc and /dev/shm": """
        import io, pathlib
        def gone(path):
            return str(path).startswith(("/sys/", "/proc/", "/dev/shm"))
        def hide(module, name):
            plain = getattr(module, name)
            def hiding(path, *args, **kwargs):
                if isinstance(path, (str, os.PathLike)) and gone(path):
                    raise FileNotFoundError(2, "hidden", str(path))
                return plain(path, *args, **kwargs)
            setattr(module, name, hiding)
        for name in ("open", "stat", "listdir", "scandir", "statvfs"):
            hide(os, name)
        hide(io, "open"), hide(__import__("builtins"), "open")
        exists = os.path.exists
        os.path.exists = lambda path: not gone(path) and exists(path)
        """,
    "modules of Unix": """
        for name in ("fcntl", "resource", "pwd", "grp", "termios"):
            sys.modules[name] = None
        """,
    "the C library by name": """
        import ctypes
        class CDLL(ctypes.CDLL):
            def __init__(self, name, *args, **kwargs):
                if name is None or str(name).startswith(("libc.", "libgomp.")):
                    raise OSError(f"{name} is hidden")
                super().__init__(name, *args, **kwargs)
        ctypes.CDLL = CDLL
        """,
}

PROGRAM = """
import importlib, pkgutil
import numpy as np
import roiops as mx

absent = ("cuda", "torch", "roiops.__main__", "roiops.as_mxnet", "mpi")
for module in pkgutil.walk_packages(mx.__path__, "roiops."):
    if not any(word in module.name for word in absent):
        importlib.import_module(module.name)

from roiops.cli import main
from roiops.kernels.jit import use_threads
from roiops.models.workers import SharedModel

x = np.random.default_rng(0).normal(size=(1, 4, 40, 40)).astype(np.float32)
data = mx.sym.Variable("data")
net = mx.sym.ROIAlign(data, mx.sym.Variable("rois"), pooled_size=(2, 2), spatial_scale=1.0, name="align")
executor = net.simple_bind(mx.cpu(), data=x.shape, rois=(2, 5))
boxes = np.array([[0, 1, 1, 20, 20], [0, 3, 3, 30, 9]], np.float32)
with use_threads(2):
    out = executor.forward(is_train=True, data=x, rois=boxes)[0]
    executor.backward(mx.nd.ones(out.shape))
    mx.nd.Convolution(x, np.ones((8, 4, 3, 3), np.float32), kernel=(3, 3), num_filter=8, no_bias=True)
with SharedModel({"weights": x}) as shared:
    assert (shared.open()["weights"] == x).all()
assert main(["doctor"]) == 0
print("done")
"""


@pytest.mark.parametrize("name", HIDDEN)
def test_roiops_does_without(name):
    script = "import os, sys\n" + textwrap.dedent(HIDDEN[name]) + PROGRAM
    environment = {**os.environ, "NUMBA_NUM_THREADS": "2"}
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.endswith("done\n")
