"""Processes that compile together: who compiles what, what helpers are told, and that they are a help."""

import importlib
import json
import os
import subprocess
import sys

import numba
import numpy as np
import pytest

import roiops as mx
from roiops import compiling
from roiops.kernels import claims

warmup = importlib.import_module("roiops.warmup")  # the function has the same name

pytestmark = pytest.mark.skipif(
    numba.config.DISABLE_JIT or not claims.CAN_SHARE, reason="nothing is compiled, or by each process alone"
)

HOLD = """
import sys, time
from roiops.kernels import claims
assert not claims.take(sys.argv[1], "kernel")
print("taken", flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that compiles "kernel" in this folder until it is killed or told to end."""
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout.readline() == "taken\n"
        yield process
        process.kill()


@pytest.mark.parametrize("ending", ["ends", "is killed"])
def test_a_process_waits_for_the_one_that_compiles(holder, tmp_path, ending, monkeypatch):
    looked = []

    def look(seconds):
        looked.append(seconds)
        if len(looked) == 3:
            holder.kill() if ending == "is killed" else holder.communicate("")
            holder.wait()

    monkeypatch.setattr(claims.time, "sleep", look)
    assert not claims.take(str(tmp_path), "another kernel")
    assert looked == []
    assert claims.take(str(tmp_path), "kernel"), "it may be on disk now"
    assert len(looked) == 3
    claims.give_back(str(tmp_path), "kernel")


FAILS = """
import sys
from roiops.kernels import claims, jit

@jit.njit
def kernel(x):
    return x.no_such_thing

try:
    kernel(1)
except Exception as error:
    print(type(error).__name__, claims._held, flush=True)
"""


def test_a_kernel_that_fails_to_compile_is_claimed_no_more(tmp_path):
    """Else others would wait for it, as they would after Ctrl-C in a notebook that stays open."""
    script = tmp_path / "fails.py"
    script.write_text(FAILS)
    ran = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert ran.stdout == "TypingError set()\n"


def test_a_helper_does_something_else_meanwhile(holder, tmp_path, monkeypatch):
    monkeypatch.setattr(claims._Here, "waits", False)
    with pytest.raises(claims.KernelBusy):
        claims.take(str(tmp_path), "kernel")


def test_nobody_waits_for_ever(holder, tmp_path, monkeypatch):
    monkeypatch.setattr(claims, "_PATIENCE", 0.0)
    assert not claims.take(str(tmp_path), "kernel")


def test_where_there_are_no_locks_every_process_compiles(tmp_path, monkeypatch):
    monkeypatch.setattr(claims.fcntl, "lockf", _raises(OSError("no locks on this drive")))
    assert not claims.take(str(tmp_path), "kernel")
    claims.give_back(str(tmp_path), "kernel")
    monkeypatch.setattr(claims.os, "open", _raises(PermissionError("another user's file")))
    assert not claims.take(str(tmp_path / "another folder"), "kernel")
    claims.give_back(str(tmp_path / "another folder"), "kernel")
    monkeypatch.setattr(claims, "CAN_SHARE", False)
    assert not claims.take(str(tmp_path), "kernel")


NETWORK = """
import sys
import numpy as np
import roiops as mx
from roiops import compiling

net = mx.sym.Variable("data")
net = mx.sym.Activation(net, act_type="relu")
net = mx.sym.sum(mx.sym.softmax(net * 2))
executor = net.simple_bind(mx.cpu(), grad_req=sys.argv[1], data=(2, 3))
out = executor.forward(is_train=sys.argv[1] == "write", data=np.ones((2, 3), np.float32))
if sys.argv[1] == "write":
    executor.backward([mx.nd.ones(out[0].shape)])
print(out[0].asnumpy().sum(), len(compiling._running))
for each in compiling._running:
    print(each.wait(timeout=120))
"""


@pytest.mark.parametrize("request_", ["null", "write"])
def test_the_first_forward_of_a_graph_is_helped(tmp_path, request_):
    """Cold, a helper goes through the same graph and ends well; with all on disk there is none."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "ROIOPS_JOBS": "2"}
    for helpers in 1, 0:
        command = [sys.executable, "-c", NETWORK, request_]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        value, count, *codes = ran.stdout.split()
        assert (float(value), int(count), codes) == (2.0, helpers, ["0"] * helpers)


ONE_OPERATOR = """
import numpy as np
import roiops as mx
from roiops import compiling

rois = mx.nd.array([[0, 0, 0, 1, 1]])
out = mx.nd.ROIPooling(mx.nd.ones((1, 1, 2, 2)), rois, pooled_size=(2, 2), spatial_scale=1)
print(out.asnumpy().sum(), len(compiling._running))
for each in compiling._running:
    print(each.wait(timeout=120))
"""


def test_a_call_of_one_operator_is_helped(tmp_path):
    """Its kernel and what it calls by an address are two processes' work, and one file each."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "ROIOPS_JOBS": "2"}
    for helpers in 1, 0:
        command = [sys.executable, "-c", ONE_OPERATOR]
        ran = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        value, count, *codes = ran.stdout.split()
        assert (float(value), int(count), codes) == (4.0, helpers, ["0"] * helpers)
    assert len(list(tmp_path.rglob("tables.build-*.nbc"))) == 1


def _raises(error):
    def call(*args, **options):
        raise error

    return call


def _executor(**options):
    net = mx.sym.Activation(mx.sym.Variable("data"), act_type="relu", name="relu")
    return net.simple_bind(mx.cpu(), data=(2, 3), **options)


def test_what_a_helper_is_told_makes_the_same_graph():
    task = json.loads(
        json.dumps(_executor(grad_req="write", type_dict={"data": "float64"}).compile_task(True))
    )
    assert task["shapes"] == {"data": [2, 3]}
    assert task["types"] == {"data": "float64"}
    assert task["imports"] == []
    forward, backward = warmup.calls_of(task)
    assert warmup._is_done(forward)
    assert warmup._is_done(backward)
    assert len(warmup.calls_of({**task, "training": False})) == 1


def test_a_helper_tries_again_what_another_process_compiles():
    assert not warmup._is_done(_raises(claims.KernelBusy("kernel")))
    assert warmup._is_done(_raises(mx.MXNetError("not zeros")))


def test_how_many_processes_compile(monkeypatch):
    for name in "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "ROIOPS_CACHE":
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("ROIOPS_JOBS", "4")
    assert compiling.helpers_for(0) == 3
    with compiling.at_most(2):
        assert compiling.helpers_for(0) == 1
    assert compiling.helpers_for(1 << 29) == 2, "all helpers together take a gigabyte at most"
    assert compiling.helpers_for(1 << 31) == 0
    for program, attribute in ("/usr/bin/uwsgi", "argv"), ("/usr/bin/python3", "frozen"), (None, "argv"):
        with monkeypatch.context() as patched:
            patched.setattr(sys, "executable", program)
            patched.setattr(sys, attribute, ["app"], raising=False)
            assert compiling.helpers_for(0) == 0, "a program with Python in it would start itself"
    for name, value in ("PMI_SIZE", "2"), ("ROIOPS_CACHE", "0"), ("ROIOPS_JOBS", "1"):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            assert compiling.helpers_for(0) == 0


def test_steps_of_training_run_by_themselves():
    data, rois = mx.sym.Variable("data"), mx.sym.Variable("rois")
    net = mx.sym.ROIPooling(
        mx.sym.Activation(data, act_type="relu"), rois, pooled_size=(2, 2), spatial_scale=1
    )
    executor = net.simple_bind(mx.cpu(), data=(1, 2, 6, 6), rois=(3, 5))
    executor.forward(is_train=True, data=np.ones((1, 2, 6, 6), np.float32))
    steps = executor.ready_steps(training=True)
    assert len(steps) == 4
    for _, call in reversed(steps):
        call()
    bound = executor._plain
    assert (bound.is_train, {ctx.is_train for ctx in bound.contexts}) == (True, {True})


def test_what_python_recorded_is_compiled_here_alone(monkeypatch):
    """Another process has no graph of it; and nobody listens for compiling in each backward."""
    monkeypatch.setattr(compiling, "as_soon_as_compiling", lambda call: pytest.fail("somebody listens"))
    x = mx.nd.ones((2, 3))
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.sum(mx.nd.softmax(x * 2))
    y.backward()


def test_a_graph_that_no_other_process_can_be_told_of_runs_all_the_same(monkeypatch):
    started = []
    monkeypatch.setattr(compiling, "start", lambda *told: started.append(told))
    monkeypatch.setattr(compiling, "helpers_for", lambda size: 3)
    for error in None, mx.MXNetError("no JSON"), TypeError("no JSON"):
        executor = _executor(grad_req="write")
        if error is not None:
            monkeypatch.setattr(executor, "compile_task", _raises(error))
        executor._ask_for_help(executor._bind_plain())
    assert [count for _, count in started] == [1], "no more than there are calls, this process among them"
    gpu = _executor(grad_req="null")
    monkeypatch.setattr(gpu, "_device", mx.gpu())
    assert gpu.compile_task() is None
