"""mmcv's roi_align and roi_align_rotated for the CPU, compiled from its sources without the package.

mmcv publishes no wheel for a current PyTorch. ``python verify/peers.py mmcv`` fetches the sources; the
interpreter of the peer ``torch`` compiles and runs this, on its first call.
"""

import os
import re
import sys
from pathlib import Path

import peers
from torch.utils.cpp_extension import load

SOURCE = peers.source("mmcv")
CSRC = SOURCE / "mmcv" / "ops" / "csrc"
# The functions as mmcv declares them, for Python.
BINDING = """
#include <torch/extension.h>
using at::Tensor;
void roi_align_forward(Tensor, Tensor, Tensor, Tensor, Tensor, int, int, float, int, int, bool);
void roi_align_backward(Tensor, Tensor, Tensor, Tensor, Tensor, int, int, float, int, int, bool);
void roi_align_rotated_forward(Tensor, Tensor, Tensor, int, int, float, int, bool, bool);
void roi_align_rotated_backward(Tensor, Tensor, Tensor, int, int, float, int, bool, bool);
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("roi_align_forward", &roi_align_forward);
  m.def("roi_align_backward", &roi_align_backward);
  m.def("roi_align_rotated_forward", &roi_align_rotated_forward);
  m.def("roi_align_rotated_backward", &roi_align_rotated_backward);
}
"""


def compiled():
    """The module with mmcv's four functions."""
    if not CSRC.is_dir():
        raise SystemExit("mmcv_source.py: there are no sources; python verify/peers.py mmcv fetches them")
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"  # for ninja
    build = SOURCE / "build"
    build.mkdir(exist_ok=True)
    binding = build / "binding.cpp"
    _write(binding, BINDING)
    names = ("roi_align.cpp", "roi_align_rotated.cpp")
    sources = []
    for folder in (CSRC / "pytorch", CSRC / "pytorch" / "cpu"):
        for name in names:  # the same in both folders, which the loader does not allow
            sources.append(build / f"{folder.name}_{name}")
            _write(sources[-1], (folder / name).read_text())
    return load(
        "mmcv_roi",
        [str(path) for path in (binding, *sources)],
        extra_include_paths=[str(CSRC / "common")],
        extra_cflags=["-O3"],
        build_directory=str(build),
    )


def _write(path, text) -> None:
    """Write what is new: a newer file would be compiled again."""
    if not path.exists() or path.read_text() != text:
        path.write_text(text)


def version() -> str:
    return re.search(r"__version__ = '([^']+)'", (SOURCE / "mmcv" / "version.py").read_text())[1]
