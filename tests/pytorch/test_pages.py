"""The code blocks of docs/pytorch.md run, and its tables name functions that there are."""

import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="PyTorch is not installed; make test-torch installs it")

import roiops.torch as rt  # noqa: E402

PAGE = (Path(__file__).parents[2] / "docs" / "pytorch.md").read_text()


def test_blocks_run():
    blocks = re.findall(r"^```py\n(.*?)^```", PAGE, re.M | re.S)
    assert len(blocks) == 2
    exec("\n".join(blocks), {})


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
