"""The code blocks of pages about PyTorch run, and the tables of docs/pytorch.md name functions that there are."""

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")

import roiops.torch as rt  # noqa: E402

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "pytorch.md").read_text()


def test_blocks_run():
    blocks = re.findall(r"^```py\n(.*?)^```", PAGE, re.M | re.S)
    assert len(blocks) == 2
    exec("\n".join(blocks), {})


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the older exporter, by itself
def test_an_operator_of_ones_own_from_the_first_line_of_its_page_to_tensors(tmp_path, monkeypatch):
    blocks = re.findall(r"^```python\n(.*?)^```", (DOCS / "add_an_operator.md").read_text(), re.M | re.S)
    assert any("from roiops.torch import op" in block for block in blocks)
    (tmp_path / "page.py").write_text("\n".join(blocks))
    monkeypatch.syspath_prepend(tmp_path)
    page = importlib.import_module("page")  # a file: kernels are compiled from their source
    options = {"dynamo": False, "opset_version": 17, "input_names": ["features"]}
    pool = type("Pool", (torch.nn.Module,), {"forward": lambda self, x: page.pool(x)})()
    features = page.features.detach()
    torch.onnx.export(pool, (features,), str(tmp_path / "page.onnx"), **options)
    session = pytest.importorskip("onnxruntime").InferenceSession(str(tmp_path / "page.onnx"))
    (found,) = session.run(None, {"features": features.numpy()})
    assert abs(torch.from_numpy(found) - pool(features)).max() < 1e-9


def test_the_benchmark_of_the_page_starts():
    pytest.importorskip("torchvision", reason="torchvision is not installed")
    ran = subprocess.run(
        [sys.executable, str(DOCS.parent / "benchmarks" / "pytorch.py"), "--help"],
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stderr[-2000:]
    for option in re.findall(r"python benchmarks/pytorch\.py (--[a-z]+)", PAGE):
        assert option in ran.stdout


def rows():
    """What the tables say to write here, without imports."""
    cells = [line.split("|")[2] for line in PAGE.splitlines() if line.startswith("| `")]
    return [code for cell in cells for code in re.findall(r"`([A-Za-z_]+\(.*?\))`", cell)]


@pytest.mark.parametrize("call", rows())
def test_calls_of_the_tables_run(call):
    x = torch.randn(1, 98, 40, 60)
    rois = torch.tensor([[0.0, 10, 20, 200, 300]])
    turned = torch.tensor([[0.0, 200, 300, 80, 40, 0.5]])
    names = {
        **vars(rt),
        "x": x,
        "rois": rois,
        "boxes": [rois[:, 1:]],
        "turned": turned,
        "offset": torch.zeros(1, 2, 7, 7),
        "layer": rt.RoIAlign((7, 7), 1 / 16, 0),
    }
    rois = turned if "Rotated(" in call else rois
    result = eval(call, names)
    if isinstance(result, torch.nn.Module):
        given = ({"0": x, "1": x}, [rois[:, 1:]], [(640, 960)]) if "Scale" in call else (x, rois)
        result = result(*given)
    assert result.shape[2:] == (7, 7)
