"""Scripts in Python 2 under as_mxnet: what to do is said."""

import sys

import pytest

from roiops.mxnet import as_mxnet


@pytest.mark.parametrize(
    "line",
    ["print 'epoch', 3", "exec code", "raise ValueError, 'no'", "if a <> b: pass", "x = 0777", "x = `y`"],
)
def test_a_script_in_python_2_is_told_what_to_do(tmp_path, line):
    script = tmp_path / "old.py"
    script.write_text(f"import mxnet as mx\n{line}\n")
    with pytest.raises(SystemExit) as raised:
        as_mxnet._run([str(script)], False)
    text = str(raised.value)
    assert text.startswith(f"as_mxnet: {script}, line 2: ")
    assert f"python -m fissix -w -n {tmp_path}" in text


@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Python 3.14 takes it, for two errors")
def test_an_except_of_python_2(tmp_path):
    script = tmp_path / "old.py"
    script.write_text("try:\n    pass\nexcept IOError, error:\n    pass\n")
    with pytest.raises(SystemExit, match="This looks like Python 2"):
        as_mxnet._run([str(script)], False)


def test_another_mistake_stays_what_it_is(tmp_path):
    script = tmp_path / "wrong.py"
    script.write_text("print('a'\nx = 3\n")
    with pytest.raises(SyntaxError):
        as_mxnet._run([str(script)], False)
