"""The published configurations take real training steps at their real image sizes."""

import re
import subprocess
import sys

import pytest
from conftest import EXAMPLES

SCRIPT = EXAMPLES.parent / "verify" / "full_size_step.py"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("config", "size", "trained", "most_memory"),
    [
        ("voc_vgg16", "1x3x608x800", 32, 6),
        ("voc_rfcn_resnet50", "1x3x608x800", 54, 4),
        ("coco_resnet101", "1x3x800x1072", 103, 8),
    ],
)
def test_steps_at_full_size(config, size, trained, most_memory):
    command = [sys.executable, str(SCRIPT), config, "--steps", "2"]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.startswith(f"{config}: {size}, {trained} arrays trained; ")
    assert float(re.search(r"peak ([\d.]+) GiB", said)[1]) < most_memory
