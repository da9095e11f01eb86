"""What is said on a terminal while kernels compile."""

import os
import subprocess
import sys
import textwrap

import pytest

SCRIPT = textwrap.dedent(
    """
    import time
    from roiops.kernels import jit, patience

    patience._SECONDS = 0.3

    def compile_for(seconds):
        with patience.compiling(), patience.compiling():
            time.sleep(seconds)

    for i in range({count}):
        compile_for(0.2)
    {more}
    """
)


def on_a_terminal(count, more="", **environment):
    """What the script writes to a terminal, and to a pipe."""
    pty = pytest.importorskip("pty", reason="no terminals of this kind here")
    script, told = SCRIPT.format(count=count, more=more), []
    environment = {**os.environ, "ROIOPS_QUIET": "0", **environment}
    ours, theirs = pty.openpty()
    for stream in (theirs, subprocess.PIPE):
        done = subprocess.run([sys.executable, "-c", script], stderr=stream, env=environment, timeout=120)
        assert done.returncode == 0
        told.append(done.stderr)
    os.write(theirs, b"end")
    return os.read(ours, 4096).decode(), told[1].decode()


def test_a_long_compilation_is_told_of_once_and_on_a_terminal_only():
    terminal, pipe = on_a_terminal(5)
    assert terminal.startswith("roiops: compiling kernels for a first call; they are kept on disk")
    assert terminal.count("compiling") == 1
    assert pipe == ""


def test_a_short_one_is_not():
    assert on_a_terminal(1) == ("end", "")


def test_nor_where_nothing_is_to_be_said():
    assert on_a_terminal(5, ROIOPS_QUIET="1") == ("end", "")


def test_a_kernel_that_is_compiled_is_one():
    count = "0"
    more = "patience._SECONDS = 0\njit.njit(lambda x: x + 1)(1)"
    assert on_a_terminal(count, more, ROIOPS_CACHE="0")[0].startswith("roiops: compiling kernels")
