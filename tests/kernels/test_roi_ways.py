"""Every way to compute means of ROIs gives what the plain loops give, forced, on any number of threads.

The checked mode, in which each vector access is compared with the bounds of its array, needs processes of its own:
``python tests/kernels/test_roi_ways.py`` runs all ways in the process at hand.
"""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import roiops as mx
from roiops.kernels import ways
from roiops.kernels.jit import num_threads, use_threads

ROOT = Path(__file__).resolve().parents[2]
NAMES = [way.name for way in ways.declared() if way.computes == "means of ROIs"]
CALLS = {
    "sampled": ("ROIAlign", {"pooled_size": (7, 5), "spatial_scale": 0.5}, 19, 40),
    "groups": ("PSROIAlign", {"pooled_size": 3, "output_dim": 5, "spatial_scale": 0.5}, 45, 40),
    "pixels": ("PSROIPooling", {"pooled_size": 2, "output_dim": 3, "spatial_scale": 0.5}, 12, 40),
    "channels last": ("CropAndResize", {"pooled_size": (6, 14), "layout": "NHWC"}, 21, 90),
    "points past the caches": ("CropAndResize", {"pooled_size": (14, 14)}, 17, 1400),
    "pixels past the caches": ("CropAndResize", {"pooled_size": (14, 14), "mode": "nearest"}, 17, 1400),
}
#: The calls that a way computes, for which there are others as well.
FITS = {"channels_last": ["channels last"]}


def inputs_of(case, dtype):
    operator, params, channels, count = CALLS[case]
    random = np.random.default_rng(3)
    data = random.standard_normal((2, channels, 23, 37)).astype(dtype)
    corner, sides = random.uniform(-10, 60, (count, 2)), random.uniform(-2, 70, (count, 2))
    if operator == "CropAndResize":
        corner, sides = random.uniform(-0.2, 1, (count, 2)), random.uniform(-0.1, 0.6, (count, 2))
        if params.get("layout") == "NHWC":
            data = np.ascontiguousarray(np.moveaxis(data, 1, -1))
    boxes = np.concatenate([random.integers(-1, 2, (count, 1)), corner, corner + sides], 1).astype(dtype)
    return data, boxes


def results(case, dtype):
    """The output and the gradient of the map."""
    operator, params, *_ = CALLS[case]
    data, boxes = inputs_of(case, dtype)
    symbol = getattr(mx.sym, operator)(mx.sym.Variable("data"), mx.sym.Variable("rois"), **params)
    gradient = np.full_like(data, 0.5)
    request = {"data": "add", "rois": "null"}
    executor = symbol.bind(mx.cpu(), {"data": data, "rois": boxes}, {"data": gradient}, request)
    out = executor.forward(is_train=True)[0].asnumpy()
    executor.backward(mx.nd.array(np.random.default_rng(4).standard_normal(out.shape).astype(dtype)))
    return out, executor.grad_dict["data"].asnumpy()


def compare(way, case, dtype, threads):
    """Compare a forced way with the one that is chosen: the same bits forward, nearly the same backward."""
    os.environ.pop("ROIOPS_WAY", None)
    with use_threads(1):
        chosen = results(case, dtype)
    os.environ["ROIOPS_WAY"] = way
    try:
        with use_threads(threads):
            forced = results(case, dtype)
    finally:
        del os.environ["ROIOPS_WAY"]
    assert forced[0].tobytes() == chosen[0].tobytes()
    tolerance = 1e-4 if dtype == np.float32 else 1e-11
    np.testing.assert_allclose(forced[1], chosen[1], rtol=tolerance, atol=tolerance)


def cases():
    for way in NAMES:
        for case in FITS.get(way, CALLS):
            yield way, case


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize(("way", "case"), list(cases()))
def test_a_forced_way(way, case, threads):
    compare(way, case, np.float32, threads)


@pytest.mark.parametrize("way", ["scalars", "lanes"])
def test_a_forced_way_in_double_precision(way):
    compare(way, "sampled", np.float64, 2)


def test_an_unknown_way_is_named(monkeypatch):
    monkeypatch.setenv("ROIOPS_WAY", "lanes,sideways")
    with pytest.raises(
        mx.MXNetError, match=r"ROIOPS_WAY must be one of .*lanes, .*scalars.*, got 'sideways'"
    ):
        ways.forced("lanes")


def test_a_way_that_does_not_apply_is_not_taken(monkeypatch):
    monkeypatch.setenv("ROIOPS_WAY", "channels_last")
    assert ways.forced("scalars", "lanes") is None
    assert ways.forced("lanes", "channels_last") == "channels_last"


@pytest.mark.slow
def test_every_way_in_checked_mode_on_five_threads():
    environment = {**os.environ, "NUMBA_BOUNDSCHECK": "1", "NUMBA_NUM_THREADS": "5", "ROIOPS_CACHE": "0"}
    subprocess.run([sys.executable, __file__], check=True, cwd=ROOT, env=environment, timeout=3000)


if __name__ == "__main__":
    for each in cases():
        for count in (1, 2, 5):
            with use_threads(count):
                assert num_threads() == count
            compare(*each, np.float32, count)
