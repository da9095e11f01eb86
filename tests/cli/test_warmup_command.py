"""``roiops warmup``, and what is said while kernels are compiled."""

import contextlib
import functools
import io
import time

import numba
import pytest

import roiops as mx
from roiops import cli
from roiops.cli.compiling import Claims, Progress, compile_in_processes, compile_share
from roiops.warmup import compile_kinds, kinds_of_steps


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
    assert cli.main([*arguments, "--share", "1", "2", str(tmp_path)]) == 0
    assert capsys.readouterr().out == ""
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
        compile_in_processes(kinds_of_steps(executor), [], jobs=1)
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


def test_the_first_kernel_that_is_not_on_disk_is_heard_of_as_its_compiling_begins():
    said = []
    kernel = numba.njit(lambda x: x + 1)

    def call():
        kernel(1)
        kernel(1.0)
        said.append("ran")

    kinds = [("on disk", [lambda: said.append("nothing to do")]), ("new", [call])]
    compile_kinds(kinds, said.append, lambda: said.append("compiling"))
    assert said == ["nothing to do", "on disk", "compiling", "ran", "new"]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_other_processes_help_only_where_something_has_to_be_compiled(monkeypatch):
    helpers = []

    class Recorded:
        def __init__(self, arguments, count, folder):
            helpers.append((arguments, count))

        def end(self):
            helpers.append("ended")

    monkeypatch.setattr("roiops.cli.compiling._Helpers", Recorded)
    compile_in_processes([("a", [lambda: None]), ("b", [lambda: None])], ["net"], jobs=2)
    assert helpers == []
    kernel = numba.njit(lambda x: x + 1)
    twice = [("a", [lambda: kernel(1)]), ("b", [lambda: kernel(1.0)])]
    compile_in_processes(twice, ["net"], jobs=2)
    assert helpers == [(["net"], 2), "ended"]
    assert len(kernel.signatures) == 2


def test_each_process_begins_with_its_share_and_goes_on_with_the_others_from_their_ends(tmp_path):
    done = []
    kinds = [(name, [functools.partial(done.append, f"{name}{i}")]) for name in "ab" for i in range(3)]
    for part in range(2):
        alone = tmp_path / str(part)
        alone.mkdir()
        assert compile_share(kinds, part, 2, Claims(alone)) == []
    assert done == ["a0", "a1", "a2", "b2", "b1", "b0", "b0", "b1", "b2", "a2", "a1", "a0"]


def test_no_two_processes_compile_the_same(tmp_path):
    done = []

    def other():  # comes to its turn while the first process compiles a0
        if not done:
            done.append("a0")
            assert compile_share(kinds, 1, 2, Claims(tmp_path)) == [0]

    kinds = [("a", [other]), ("a", [lambda: done.append("a1")]), ("b", [lambda: done.append("b0")])]
    assert compile_share(kinds, 0, 2, Claims(tmp_path)) == [1, 2]
    assert done == ["a0", "b0", "a1"]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_what_another_process_claimed_and_did_not_finish_is_compiled_all_the_same(monkeypatch):
    done = []

    class Killed:
        """A process that takes what it can and ends."""

        def __init__(self, arguments, count, folder):
            assert Claims(folder).take(1)

        def running(self):
            done.append("looked")
            return len(done) < 3

        def end(self):
            done.append("ended")

    monkeypatch.setattr("roiops.cli.compiling._Helpers", Killed)
    kernel = numba.njit(lambda x: x + 1)
    kinds = [("a", [lambda: kernel(1)]), ("b", [lambda: done.append("b")])]
    compile_in_processes(kinds, [], jobs=2)
    assert done == ["looked", "looked", "looked", "b", "ended"]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_what_another_process_compiled_is_not_run_here_as_well(monkeypatch):
    done = []

    class Other:
        """A process that compiles the second kind."""

        def __init__(self, arguments, count, folder):
            claims = Claims(folder)
            assert claims.take(1)
            claims.finish(1)

        def end(self):
            done.append("ended")

    monkeypatch.setattr("roiops.cli.compiling._Helpers", Other)
    kernel = numba.njit(lambda x: x + 1)
    kinds = [("a", [lambda: kernel(1)]), ("b", [lambda: done.append("b")])]
    compile_in_processes(kinds, [], jobs=2)
    assert done == ["ended"]
    assert len(kernel.signatures) == 1
