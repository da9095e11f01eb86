"""A cache folder that cannot be written, a full disk, damaged cache files, Ctrl-C, memory that runs out."""

import ctypes
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import roiops as mx
from roiops import registry
from roiops.errors import MXNetError
from roiops.operators.imperative import Invocation

PACKAGE = Path(mx.__file__).parent

ONE_CALL = """
import roiops as mx
out = mx.nd.Pooling(mx.nd.ones((1, 2, 4, 4)), kernel=(2, 2), stride=(2, 2), pool_type="max")
assert (out.asnumpy() == 1).all()
print("right")
"""


def _python(
    code: str, *, environment=None, before=None, folder=None, seconds=240
) -> subprocess.CompletedProcess:
    """Run ``code``; what lies in ``folder`` is what it imports first."""
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        env={**os.environ, **(environment or {})},
        preexec_fn=before,
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=seconds,
    )


def _expect(done, text: str, what: str) -> None:
    if done.returncode or text not in done.stdout:
        raise AssertionError(f"{what}: exit code {done.returncode}: {done.stderr.strip()[-300:]}")


def _unwritable_copy(folder: Path) -> dict[str, str]:
    """A copy of the package in a folder that cannot be written, and a home that is not there."""
    shutil.copytree(PACKAGE, folder / "roiops", ignore=shutil.ignore_patterns("__pycache__"))
    for path in (*folder.rglob("*"), folder):
        os.chmod(path, 0o555 if path.is_dir() else 0o444)
    home = str(folder / "home")
    return {"HOME": home, "XDG_CACHE_HOME": f"{home}/cache"}


def _obey_permissions() -> None:
    """Root may write anywhere: take that right from the program that is started next."""
    drop_from_bounding_set, override, read_and_search = 24, 1, 2
    if os.getuid() == 0:
        for right in (override, read_and_search):
            if ctypes.CDLL(None).prctl(drop_from_bounding_set, right, 0, 0, 0):
                raise PermissionError("cannot give up root's rights")


def _no_room_on_disk() -> None:
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))


def cache_folders(seed: int):
    """Kernels compile and run whatever becomes of their cache."""

    def read_only(folder: Path) -> None:
        environment = _unwritable_copy(folder)
        code = ONE_CALL + "print(mx.__file__)"
        done = _python(code, environment=environment, before=_obey_permissions, folder=folder)
        _expect(done, f"right\n{folder}", "read-only folder")
        if list(folder.rglob("*.nb?")):
            raise AssertionError("a folder that cannot be written was written to")

    def full_disk(folder: Path) -> None:
        done = _python(ONE_CALL, environment={"NUMBA_CACHE_DIR": str(folder)}, before=_no_room_on_disk)
        _expect(done, "right", "full disk")

    def damaged(folder: Path) -> None:
        rng = np.random.default_rng(seed)
        environment = {"NUMBA_CACHE_DIR": str(folder)}
        _expect(_python(ONE_CALL, environment=environment), "right", "fresh cache")
        for path in [*folder.rglob("*.nbi"), *folder.rglob("*.nbc")]:
            data = path.read_bytes()
            path.write_bytes(data[: int(rng.integers(len(data)))])
        _expect(_python(ONE_CALL, environment=environment), "right", "truncated cache files")

    def together(folder: Path) -> None:
        workers = [
            subprocess.Popen(
                [sys.executable, "-c", ONE_CALL],
                env={**os.environ, "NUMBA_CACHE_DIR": str(folder)},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
            )
            for _ in range(3)
        ]
        for worker in workers:
            out, err = worker.communicate(timeout=240)
            if b"right" not in out:
                raise AssertionError(f"processes that fill one cache: {err.decode()[-300:]}")

    def switched_off(folder: Path) -> None:
        environment = {"NUMBA_CACHE_DIR": str(folder), "ROIOPS_CACHE": "0"}
        _expect(_python(ONE_CALL, environment=environment), "right", "ROIOPS_CACHE=0")
        if list(folder.rglob("*.nb?")):
            raise AssertionError("ROIOPS_CACHE=0 wrote cache files")

    kinds = [read_only, full_disk, damaged, together, switched_off]

    def case(number: int) -> str:
        kind = kinds[number % len(kinds)]
        with tempfile.TemporaryDirectory() as folder:
            kind(Path(folder))
        return kind.__name__.replace("_", " ")

    return case


LONG_FORWARD = """
import signal, sys
import numpy as np, roiops as mx
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs start without it
net = mx.sym.Variable("x")
for i in range(400):
    net = mx.sym.Convolution(net, num_filter=16, kernel=(3, 3), pad=(1, 1), no_bias=True, name=f"c{i}")
executor = net.simple_bind(mx.cpu(), grad_req="null", x=(1, 16, 64, 64))
executor.forward()
print("begun", flush=True)
try:
    while True:
        executor.forward()
except KeyboardInterrupt:
    pass
executor.arg_dict["x"][:] = 1
for name, array in executor.arg_dict.items():
    if name != "x":
        array[:] = 0
executor.forward()
assert (executor.outputs[0].asnumpy() == 0).all()
print("usable", flush=True)
sys.exit(130)
"""


def interrupts(seed: int):
    """Ctrl-C in the middle of a long forward: it ends soon, and the executor can be used again."""

    def case(number: int) -> str:
        rng = np.random.default_rng([seed, number])
        worker = subprocess.Popen(
            [sys.executable, "-c", LONG_FORWARD], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        if worker.stdout.readline().strip() != "begun":
            worker.kill()
            raise AssertionError(f"did not begin: {worker.communicate()[1][-300:]}")
        time.sleep(float(rng.uniform(0.01, 0.4)))
        worker.send_signal(signal.SIGINT)
        try:
            out, err = worker.communicate(timeout=30)
        except subprocess.TimeoutExpired:
            worker.kill()
            raise AssertionError("Ctrl-C was not heard within 30 s") from None
        if worker.returncode != 130 or "usable" not in out:
            raise AssertionError(f"ended with {worker.returncode}: {err[-300:]}")
        return "interrupted"

    return case


def memory(seed: int):
    """More memory asked for than there is: an error that says what for, and all that was there stays usable."""
    data, rois = mx.sym.Variable("data"), mx.sym.Variable("rois")
    small = mx.sym.ROIPooling(data, rois, pooled_size=(2, 2), spatial_scale=1.0)
    working = small.simple_bind(mx.cpu(), data=(1, 1, 4, 4), rois=(1, 5))
    working.forward()

    def bind(rng):
        # Each array alone would fit or not, as it happens; together they do not.
        size = int(rng.choice([2**14, 2**16, 2**20]))
        mx.sym.exp(mx.sym.exp(mx.sym.Variable("x"))).simple_bind(mx.cpu(), x=(size, 2**17))

    def array(rng):
        mx.nd.zeros((2**20, 2 ** int(rng.integers(12, 30))))

    def imperative(rng):
        one = mx.nd.zeros((2**13, 1))
        mx.nd.broadcast_add(one, mx.nd.zeros((1, 2**19)))

    def output(rng):
        mx.nd.ROIAlign(
            mx.nd.zeros((1, 2**12, 4, 4)),
            mx.nd.zeros((2**10, 5)),
            pooled_size=(2 ** int(rng.integers(6, 15)), 2**6),
            spatial_scale=1.0,
        )

    def scratch(rng):
        """Bound, but what the operator needs inside does not fit."""
        x = mx.nd.zeros((1, 8, 2**10, 2**9))
        mx.nd.Convolution(x, mx.nd.zeros((2**12, 8, 7, 7)), kernel=(7, 7), num_filter=2**12, no_bias=True)

    kinds = [bind, array, imperative, output, scratch]

    def case(number: int) -> str:
        kind = kinds[number % len(kinds)]
        try:
            kind(np.random.default_rng([seed, number]))
        except (MXNetError, MemoryError) as error:
            if not str(error):
                raise AssertionError(f"{kind.__name__}: an error without a word") from None
            ending = "refused"
        else:
            ending = "fitted"
        if working.forward()[0].shape != (1, 1, 2, 2):
            raise AssertionError("what was bound before is no longer usable")
        return ending

    return case


def large(seed: int):
    """More than 2**31 elements in one array: its last channel is read, and its gradient written, where it is."""
    channels, size = 2**13 + 8, 2**9
    box = np.array([[0, size - 4, size - 4, size - 1, size - 1]], np.float32)
    place = (0, channels - 1, slice(size - 4, size), slice(size - 4, size))

    def call(name: str, **params):
        data = np.zeros((1, channels, size, size), np.float32)
        data[place] = np.arange(1, 17).reshape(4, 4)
        prop = registry.get(name).create({"pooled_size": (2, 2), "spatial_scale": 1.0, **params})
        invocation = Invocation(prop, [data, box])
        output = invocation.forward()[0]
        if np.any(output[:, :-1]):
            raise AssertionError(f"{name}: channels of zeros gave something else")
        gradient = np.zeros_like(output)
        gradient[0, -1] = 1
        invocation.in_data[0] = data = np.empty_like(data)  # its contents are not needed any more
        grad = invocation.backward([gradient], ["write", "null"], [data, None])[0]
        return output[0, -1].ravel().tolist(), grad[place].copy(), int(np.count_nonzero(grad))

    def pooling():
        values, grad, touched = call("ROIPooling")
        if values != [6, 8, 14, 16] or touched != 4 or grad[1::2, 1::2].tolist() != [[1, 1], [1, 1]]:
            raise AssertionError(f"ROIPooling gave {values}, gradient {grad.tolist()} ({touched} entries)")

    def align():
        values, grad, touched = call("ROIAlign", sampling_ratio=2, aligned=False)
        if values != [4.75, 6.25, 10.75, 12.25] or touched > 16 or abs(grad.sum() - 4) > 1e-5:
            raise AssertionError(f"ROIAlign gave {values}, gradient {grad.tolist()} ({touched} entries)")

    kinds = [pooling, align]

    def case(number: int) -> str:
        kinds[number % 2]()
        return "right"

    return case
