"""The GPU without a GPU: what is said where it cannot be used, and the kernels in numba's simulator."""

import ast
import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import roiops
from roiops.errors import DeviceError

HERE = Path(__file__).parent
CUDA = Path(roiops.__file__).parent / "kernels" / "cuda"


@pytest.mark.skipif(importlib.util.find_spec("numba_cuda") is not None, reason="numba-cuda is installed")
def test_a_gpu_without_the_package():
    with pytest.raises(DeviceError, match=r"numba-cuda is missing; pip install 'numba-cuda\[cu13\]' or"):
        roiops.nd.zeros((2,), ctx=roiops.gpu(0))


def in_another_process(code, **environment):
    return subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, **environment}, capture_output=True, text=True
    )


def test_a_backend_that_is_not_there():
    code = "import roiops; roiops.nd.zeros((2,), ctx=roiops.gpu(0))"
    told = in_another_process(code, ROIOPS_CUDA_BACKEND="no_such_backend").stderr
    assert "the CUDA backend 'no_such_backend' cannot be imported" in told
    assert "pip install 'numba-cuda[cu13]'" in told


def imports_of_backend(path):
    """Lines that import a CUDA backend."""
    for node in ast.walk(ast.parse(path.read_text())):
        names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        if any(name.startswith(("numba.cuda", "numba_cuda", "cupy", "cuda.")) for name in names):
            yield node.lineno


def test_only_the_runtime_imports_the_backend():
    found = {
        str(path.relative_to(CUDA)): lines
        for path in CUDA.parent.parent.rglob("*.py")
        if path != CUDA / "runtime.py" and (lines := list(imports_of_backend(path)))
    }
    assert found == {}


def test_kernels_call_no_min_or_max():
    """Some CUDA backends refuse them with two arguments."""
    for path in CUDA.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if not isinstance(node, ast.FunctionDef):
                continue
            decorators = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
            if decorators & {"cuda.jit", "kernel", "device", "njit"}:
                called = {ast.unparse(call.func) for call in ast.walk(node) if isinstance(call, ast.Call)}
                assert not called & {"min", "max"}, f"{path.name}: {node.name}"


def test_kernels_in_the_simulator(tmp_path):
    """Runs ``tests/cuda`` in a session of its own, with the CPU's answers from this one."""
    sys.path.insert(0, str(HERE / "cuda"))
    try:
        import calls
    finally:
        sys.path.remove(str(HERE / "cuda"))
    answers = tmp_path / "answers.npz"
    np.savez(answers, **calls.answers_of_the_cpu())
    in_the_simulator(HERE / "cuda", ROIOPS_TEST_ANSWERS=str(answers))


@pytest.mark.slow
def test_every_golden_case_in_the_simulator():
    in_the_simulator(HERE / "cuda" / "test_golden_cases.py", ROIOPS_TEST_GOLDEN="1000")


def in_the_simulator(tests, **environment):
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1", "NUMBA_DISABLE_JIT": "1", **environment}
    command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "2", "-p", "no:cacheprovider", str(tests)]
    ran = subprocess.run(command, cwd=HERE.parent, env=environment, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-8000:] + ran.stderr[-2000:]
    assert " passed" in ran.stdout


COMPILERS = Path(os.environ.get("ROIOPS_PEERS", HERE.parent / ".peers")) / "cuda" / ".complete"


@pytest.mark.skipif(not COMPILERS.exists(), reason="python verify/peers.py cuda installs numba-cuda")
def test_compiled_kernels_on_this_processor():
    """The mistakes planted in ``verify/gpu_planted.py``, and one operator as numba-cuda compiles it."""
    command = [sys.executable, str(HERE.parent / "verify" / "gpu_compiled.py"), "--short"]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-4000:]
    assert "1 cases, 6 kernels\ngpu_compiled: 0 failures" in ran.stdout


@pytest.mark.skipif(not COMPILERS.exists(), reason="python verify/peers.py cuda installs numba-cuda")
def test_kernels_are_not_optimised_as_they_are_linked():
    """CUDA's compiler would contract products and sums there, whatever it was told before."""
    code = (
        "import numpy as np; from roiops.kernels.cuda import runtime; "
        "print([runtime.kernel(real)(lambda x: None).targetoptions['lto'] for real in (None, np.float32)])"
    )
    python = COMPILERS.parent / "bin" / "python"
    ran = subprocess.run([python, "-c", code], cwd=HERE.parent, capture_output=True, text=True)
    assert ran.stdout == "[False, False]\n", ran.stderr
