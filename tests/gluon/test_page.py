"""What docs/gluon.md shows runs as it stands there."""

import re
import subprocess
import sys
from pathlib import Path

from roiops import gluon, nd

PAGE = Path(__file__).parents[2] / "docs" / "gluon.md"


def test_from_parameters_alone_to_onnx(tmp_path):
    command, script = re.findall(r"```\w*\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    net = gluon.model_zoo.vision.get_model("mobilenet0.25", classes=10)
    net.initialize()
    net(nd.zeros((1, 3, 64, 64)))
    net.save_parameters(str(tmp_path / "x.params"))
    words = command.replace("\\\n", "").split()
    assert words[0] == "roiops"
    for arguments in (["-c", script], ["-m", *words]):
        ended = subprocess.run(
            [sys.executable, *arguments], cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "model.onnx").stat().st_size > 100_000
    assert (tmp_path / "model-symbol.json").exists()
