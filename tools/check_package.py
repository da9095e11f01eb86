"""Build the wheel and the sdist, install each into an empty environment, use it from outside the checkout.

    python tools/check_package.py

Fails if either brings anything but the declared dependencies, holds compiled files, or does not work. Then
installs a clone as developers do, and imports it from within and from the folder above it.
"""

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
EXPECTED = {"llvmlite", "numba", "numpy", "pip", "pyyaml", "roiops", "setuptools"}

SMOKE = """
import numpy as np
import roiops as mx

data, rois = mx.sym.Variable("data"), mx.sym.Variable("rois")
net = mx.sym.ROIAlign(data, rois, pooled_size=(2, 2), spatial_scale=1.0, sampling_ratio=2)
executor = net.simple_bind(mx.cpu(), data=(1, 1, 4, 4), rois=(1, 5))
executor.arg_dict["data"][:] = np.arange(1, 17).reshape(1, 1, 4, 4)
executor.arg_dict["rois"][:] = np.array([[0, 0.25, 0.25, 3, 3]])
executor.forward(is_train=True)
np.testing.assert_allclose(executor.outputs[0].asnumpy().ravel(), [3.1875, 4.5625, 8.6875, 10.0625])
executor.backward([mx.nd.ones((1, 1, 2, 2))])
assert abs(executor.grad_dict["data"].asnumpy().sum() - 4) < 1e-5
assert "site-packages" in mx.__file__, mx.__file__
print("roiops", mx.__version__, "works")
"""


def run(*command, cwd=None) -> str:
    done = subprocess.run([str(c) for c in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def build(folder: Path) -> list[Path]:
    """The wheel and the sdist."""
    run(sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, ROOT)
    run(sys.executable, "setup.py", "--quiet", "sdist", "--dist-dir", folder, cwd=ROOT)
    (wheel,), (sdist,) = folder.glob("*.whl"), folder.glob("*.tar.gz")
    if "py3-none-any" not in wheel.name:
        sys.exit(f"{wheel.name} is not a pure-Python wheel")
    compiled = [n for n in zipfile.ZipFile(wheel).namelist() if n.endswith((".so", ".pyd", ".nbi", ".nbc"))]
    if compiled:
        sys.exit(f"{wheel.name} holds compiled files: {compiled}")
    return [wheel, sdist]


def check(package: Path, folder: Path) -> None:
    run(sys.executable, "-m", "venv", folder)
    python = folder / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", package, cwd=folder)
    listed = run(python, "-m", "pip", "list", "--format=freeze", cwd=folder)
    installed = {line.split("==")[0].lower() for line in listed.splitlines() if "==" in line}
    if installed - EXPECTED:
        sys.exit(f"{package.name} brings {sorted(installed - EXPECTED)} with it")
    print(f"{package.name}: {run(python, '-W', 'error', '-c', SMOKE, cwd=folder).strip()}")
    print(run(folder / "bin" / "roiops", "--version", cwd=folder).strip())


def check_editable(folder: Path) -> None:
    """An editable install of a clone called ``roiops``, as they usually are: found wherever Python starts."""
    run("git", "clone", "--quiet", ROOT, folder / "roiops")
    run(sys.executable, "-m", "venv", folder / "environment")
    python = folder / "environment" / "bin" / "python"
    run(python, "-m", "pip", "install", "--quiet", "-e", folder / "roiops")
    for place in (folder / "roiops", folder, folder.parent):
        found = run(python, "-c", "import roiops; print(roiops.sym and roiops.__file__)", cwd=place).strip()
        if Path(found) != folder / "roiops" / "roiops" / "__init__.py":
            sys.exit(f"an editable install, imported in {place}, is {found}")
    print("an editable install is found in the clone, above it and elsewhere")


def main() -> None:
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for i, package in enumerate(build(folder / "dist")):
            check(package, folder / f"environment{i}")
        check_editable(folder / "clones")


if __name__ == "__main__":
    main()
