"""Show what a bug report needs: versions, processor, threads, BLAS, GPU, caches, settings; and try a kernel.

  roiops doctor

The exit code is 1 where something that ought to work does not.
"""

import importlib.metadata
import os
import platform
import shutil
import subprocess
import sys
import time

from .common import table

SUMMARY = "versions, threads, BLAS, GPU and caches, and whether a kernel compiles and runs"

_PACKAGES = ("numpy", "numba", "llvmlite", "pyyaml")
_OPTIONAL = ("cupy-cuda12x", "cupy-cuda13x", "numba-cuda", "torch", "pillow", "matplotlib", "graphviz", "tbb")
_SETTINGS = ("ROIOPS_", "NUMBA_", "OMP_", "MKL_", "OPENBLAS_", "CUDA_", "KMP_")


def configure(parser) -> None:
    parser.add_argument("--quick", action="store_true", help="leave out the trial of a kernel")


def execute(args) -> int:
    failures: list[str] = []
    sections = [
        ("Python and packages", _versions()),
        ("Processor", _processor()),
        ("Threads", _threads(failures)),
        ("BLAS of NumPy", _blas()),
        ("GPU", _gpu()),
        ("Caches of compiled kernels", _caches(failures)),
        ("Ways, of which ROIOPS_WAY forces some", _ways(failures)),
        ("Settings", _settings()),
    ]
    if not args.quick:
        sections.append(("Trial", _trial(failures)))
    for title, rows in sections:
        print(title)
        print(table(rows, indent="  "))
        print()
    print(
        "Something does not work: " + "; ".join(failures) if failures else "Everything that was tried works."
    )
    return 1 if failures else 0


def _versions():
    from .._version import __version__

    yield "roiops", __version__
    yield "Python", f"{platform.python_version()} ({platform.python_implementation()}, {sys.platform})"
    for name in (*_PACKAGES, *_OPTIONAL):
        try:
            yield name, importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            if name in _PACKAGES:
                yield name, "missing"


def _processor():
    model, flags = platform.processor() or platform.machine(), set()
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            for line in file:
                key, _, value = line.partition(":")
                if key.strip() == "model name":
                    model = value.strip()
                elif key.strip() == "flags":
                    flags = set(value.split())
    except OSError:  # not Linux
        pass
    from ..processors import usable

    yield "model", model
    yield "cores", f"{os.cpu_count()}, of which this process may use {usable()}"
    vectors = [flag for flag in ("avx", "avx2", "fma", "avx512f") if flag in flags]
    if vectors:
        yield "vectors", ", ".join(vectors)


def _threads(failures):
    import numba

    from ..errors import MXNetError
    from ..kernels.jit import num_threads
    from ..processors import share

    threads, reason = share()
    yield "kernels use", f"{threads}, because of {reason}"
    yield "layer asked for", numba.config.THREADING_LAYER
    available = []
    for layer, module in (("tbb", "tbbpool"), ("omp", "omppool"), ("workqueue", "workqueue")):
        try:
            __import__(f"numba.np.ufunc.{module}")
            available.append(layer)
        except ImportError:
            continue
    yield "layers available", ", ".join(available) or "none"
    try:
        num_threads()  # starts them
    except MXNetError as error:
        failures.append(str(error))


def _blas():
    import numpy as np

    try:
        blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    except (KeyError, TypeError):
        yield "name", "unknown"
        return
    yield "name", f"{blas.get('name', 'unknown')} {blas.get('version', '')}".strip()
    if blas.get("openblas configuration"):
        yield "built as", blas["openblas configuration"]


def _gpu():
    program = shutil.which("nvidia-smi")
    if program is None:
        yield "driver", "no nvidia-smi, so no NVIDIA driver"
        return
    query = [program, "--query-gpu=name,driver_version,memory.total,compute_cap", "--format=csv,noheader"]
    try:
        asked = subprocess.run(query, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired) as error:
        yield "driver", f"nvidia-smi does not answer: {error}"
        return
    for number, line in enumerate(asked.stdout.splitlines()):
        yield f"gpu({number})", line
    if asked.returncode:
        yield "driver", (asked.stderr or asked.stdout).strip()


def _caches(failures):
    import numba

    from ..kernels import jit
    from ..kernels.numba_insides.cache import cache_folders_at_home

    if os.environ.get("ROIOPS_CACHE", "1") == "0":
        yield "used", "no, ROIOPS_CACHE=0"
        return
    kernels = os.path.dirname(jit.__file__)
    asked = numba.config.CACHE_DIR
    used = jit.cache_folder()
    as_asked = asked and used is not None and used.startswith(os.path.abspath(asked))
    folders = [asked] if as_asked else [kernels, *cache_folders_at_home(kernels)]
    if asked and not as_asked:
        yield "", f"NUMBA_CACHE_DIR={asked} cannot be written"
    if used is None:
        failures.append("no folder for compiled kernels can be written: every process compiles anew")
    yield "new ones go to", used or "nowhere"
    kept = [
        os.path.join(root, name)
        for folder in folders
        for root, _, names in os.walk(folder)
        for name in names
        if name.endswith((".nbi", ".nbc"))
    ]
    yield "holds", f"{len(kept)} files, {sum(map(os.path.getsize, kept)) / 2**20:.1f} MiB"
    for folder in sorted({os.path.dirname(each) for each in kept}):
        yield "in", f"{folder}: {sum(os.path.dirname(each) == folder for each in kept)} files"


def _ways(failures):
    from ..errors import MXNetError
    from ..kernels import ways
    from ..kernels.cpu.product import caches
    from ..kernels.cpu.product.machine import HERE

    yield "vectors of", f"{HERE.lanes} float32 numbers, {HERE.units} multiply-adds of them in a cycle"
    if os.environ.get("NUMBA_CPU_NAME") and not os.environ.get("NUMBA_CPU_FEATURES"):
        yield "", "NUMBA_CPU_NAME alone keeps this processor's features; set NUMBA_CPU_FEATURES, too"
    second, last, source = caches.HERE
    yield "caches", f"second {second >> 10} KiB of a core, last {last >> 10} KiB, {source}"
    if second != HERE.block_cache:
        yield "", f"blocks are made for {HERE.block_cache >> 10} KiB of the second"
    by_kind = {}
    for way in ways.declared():
        by_kind.setdefault(way.computes, []).append(way.name)
    for computes, names in by_kind.items():
        yield computes, ", ".join(names)
    try:
        forced = ways.asked()
    except MXNetError as error:
        failures.append(str(error))
    else:
        yield "taken", f"{', '.join(forced)}, where they can" if forced else "the cheapest for each call"


def _settings():
    found = [(key, value) for key, value in sorted(os.environ.items()) if key.startswith(_SETTINGS)]
    return found or [("none", "")]


def _trial(failures):
    import numpy as np

    from .. import nd

    data = np.arange(64, dtype=np.float32).reshape(1, 1, 8, 8)
    rois = np.array([[0, 0, 0, 7, 7]], np.float32)
    for label in ("ROIPooling, first call", "ROIPooling, second call"):
        start = time.perf_counter()
        try:
            pooled = nd.ROIPooling(data, rois, pooled_size=(1, 1), spatial_scale=1.0).asnumpy()
        except Exception as error:
            failures.append(f"ROIPooling raised {type(error).__name__}: {error}")
            yield label, "failed"
            return
        yield label, f"{(time.perf_counter() - start) * 1e3:.2f} ms"
    if pooled.ravel()[0] != 63:
        failures.append(f"ROIPooling gave {pooled.ravel()[0]} instead of 63")
    ones = np.ones((64, 64), np.float32)
    is_right = (nd.dot(ones, ones).asnumpy() == 64).all()
    yield "matrix product", "right" if is_right else "wrong"
    if not is_right:
        failures.append("the matrix product is wrong")
