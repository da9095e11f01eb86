"""``roiops warmup``, and what is said while kernels are compiled."""

import contextlib
import io
import time

import numba
import pytest

import roiops as mx
from roiops import cli
from roiops.cli.compiling import Progress, compile_in_processes
from roiops.warmup import kinds_of_steps


@pytest.fixture
def symbol():
    x = mx.sym.Variable("data")
    for i in range(3):
        x = mx.sym.Activation(x, act_type="relu", name=f"relu{i}")
    return mx.sym.Flatten(x, name="flat")


def test_steps_that_share_kernels_are_one_kind(symbol):
    kinds = kinds_of_steps(symbol.simple_bind(mx.cpu(), grad_req="null", data=(1, 2, 3, 4)))
    assert [(name, len(calls)) for name, calls in kinds] == [("Activation", 3), ("Flatten", 1)]


def test_a_model_is_warmed_up_from_its_graph_alone(symbol, tmp_path, capsys):
    symbol.save(str(tmp_path / "net-symbol.json"))
    arguments = ["warmup", str(tmp_path / "net"), "--shape", "data=1,2,3,4"]
    assert cli.main([*arguments, "--jobs", "1"]) == 0
    assert capsys.readouterr().out == "2 kinds of operators are compiled\n"
    assert cli.main(arguments[:2]) == 1
    assert "warmup: --shape is needed for data" in capsys.readouterr().err


def _refuse():
    raise mx.MXNetError("not zeros")


@pytest.mark.parametrize("refusal", [False, True])
def test_a_step_that_fails_does_not_end_the_warmup(symbol, refusal):
    """That an operator refuses zeros is expected; what nobody expects is shown."""
    executor = symbol.simple_bind(mx.cpu(), grad_req="null", data=(1, 2, 3, 4))
    (_, calls), *_ = kinds_of_steps(executor)
    fails = _refuse if refusal else lambda: 1 / 0
    broken = [(mx.registry.get("relu").create({}), fails), *executor.ready_steps()]
    executor.ready_steps = lambda: broken
    shown = contextlib.nullcontext()
    if not refusal:
        shown = pytest.warns(
            RuntimeWarning, match=r"^relu, tried on zeros: ZeroDivisionError: division by zero$"
        )
    with shown:
        compile_in_processes(kinds_of_steps(executor), None)
    assert len(calls) == 3


class _Terminal(io.StringIO):
    def isatty(self):
        return True


def _wait_for(stream, text):
    """Until a timer has written ``text``."""
    for _ in range(500):
        if text in stream.getvalue():
            return
        time.sleep(0.01)
    pytest.fail(f"nothing about {text!r} in {stream.getvalue()!r}")


@pytest.mark.parametrize(
    ("stream", "said"),
    [
        (io.StringIO(), "compiling kernels, 2 of 3 kinds of operators left; kept on disk\n"),
        (_Terminal(), "compiling kernels: 1 of 3, last a"),
    ],
    ids=["a file", "a terminal"],
)
def test_whoever_waits_is_told_what_for(stream, said, monkeypatch):
    monkeypatch.setattr("roiops.cli.compiling._PATIENCE", 0.0)
    progress = Progress(3, stream)
    progress("a")
    assert stream.getvalue() == ""
    progress.begin()
    _wait_for(stream, said)
    before = stream.getvalue()
    progress("b")
    assert stream.isatty() == (stream.getvalue() != before), "one line where nothing can be written over"
    progress.close()
    ended = stream.getvalue()
    progress("c")
    assert stream.getvalue() == ended


def test_nothing_is_said_of_what_is_on_disk_or_quick(monkeypatch):
    stream = io.StringIO()
    progress = Progress(2, stream)
    progress.begin()
    progress("a")
    progress.close()
    monkeypatch.setattr("roiops.cli.compiling._PATIENCE", 0.0)
    Progress(2, stream)("a")
    assert stream.getvalue() == ""


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_other_processes_help_only_where_something_has_to_be_compiled(monkeypatch):
    started = []
    monkeypatch.setattr("roiops.compiling.start", lambda *told: started.append(told))
    compile_in_processes([("a", [lambda: None]), ("b", [lambda: None])], {"of": "two"}, jobs=2)
    assert started == []
    kernel = numba.njit(lambda x: x + 1)
    twice = [("a", [lambda: kernel(1)]), ("b", [lambda: kernel(1.0)])]
    compile_in_processes(twice, {"of": "two"}, jobs=5)
    assert started == [({"of": "two"}, 1)], "no more than there are kinds, this process among them"
    assert len(kernel.signatures) == 2
