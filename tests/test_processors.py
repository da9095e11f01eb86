"""The threads that kernels use, this process's share of the machine; and the machine's caches."""

import os
import platform
import subprocess
import sys

import numba
import pytest

from roiops import compiling, processors
from roiops.errors import ParamError
from roiops.kernels.cpu.product import caches


def found(monkeypatch, root, processors_shown=64, **environment):
    """What ``share`` says on a machine that shows so many processors, with the control groups under root."""
    for name in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(numba.config, "NUMBA_NUM_THREADS", processors_shown)
    return processors.share.__wrapped__(root)


def write(root, **files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


VERSION_2 = {"proc/self/cgroup": "0::/kube/pod\n"}
VERSION_1 = {"proc/self/cgroup": "12:cpuset:/\n4:cpu,cpuacct:/docker/abc\n0::/\n"}
CPU = "sys/fs/cgroup/cpu,cpuacct"


@pytest.mark.parametrize(
    ("files", "threads"),
    [
        ({}, 64),
        (VERSION_2, 64),
        ({**VERSION_2, "sys/fs/cgroup/kube/pod/cpu.max": "max 100000\n"}, 64),
        ({**VERSION_2, "sys/fs/cgroup/kube/pod/cpu.max": "200000 100000\n"}, 2),
        ({**VERSION_2, "sys/fs/cgroup/kube/pod/cpu.max": "150000 100000\n"}, 2),
        ({**VERSION_2, "sys/fs/cgroup/kube/pod/cpu.max": "5000 100000\n"}, 1),
        # A group above has less.
        (
            {
                **VERSION_2,
                "sys/fs/cgroup/kube/cpu.max": "300000 100000\n",
                "sys/fs/cgroup/kube/pod/cpu.max": "max 100000\n",
            },
            3,
        ),
        # A container that does not see the groups above: its own is the root.
        ({**VERSION_2, "sys/fs/cgroup/cpu.max": "400000 100000\n"}, 4),
        ({**VERSION_2, "sys/fs/cgroup/kube/pod/cpu.max": "in other words\n"}, 64),
        (
            {
                **VERSION_1,
                f"{CPU}/docker/abc/cpu.cfs_quota_us": "250000\n",
                f"{CPU}/docker/abc/cpu.cfs_period_us": "100000\n",
            },
            3,
        ),
        ({**VERSION_1, f"{CPU}/cpu.cfs_quota_us": "200000", f"{CPU}/cpu.cfs_period_us": "100000"}, 2),
        ({**VERSION_1, f"{CPU}/cpu.cfs_quota_us": "-1", f"{CPU}/cpu.cfs_period_us": "100000"}, 64),
        ({"proc/self/cgroup": "1:cpu:/\n", "sys/fs/cgroup/cpu/cpu.cfs_quota_us": "100000"}, 64),
    ],
)
def test_a_container_gets_its_share(tmp_path, monkeypatch, files, threads):
    assert found(monkeypatch, write(tmp_path, **files)).threads == threads


def test_what_the_user_asks_for_is_kept(tmp_path, monkeypatch):
    write(tmp_path, **VERSION_2, **{"sys/fs/cgroup/cpu.max": "400000 100000\n"})
    assert found(monkeypatch, tmp_path) == (4, "the container's quota of 4 processors")
    assert found(monkeypatch, tmp_path, OMP_NUM_THREADS="3") == (3, "OMP_NUM_THREADS")
    assert found(monkeypatch, tmp_path, OMP_NUM_THREADS="2,1") == (2, "OMP_NUM_THREADS")
    for none in ("0", "²"):
        assert found(monkeypatch, tmp_path, OMP_NUM_THREADS=none)[1] != "OMP_NUM_THREADS"
    assert found(monkeypatch, tmp_path, OMP_NUM_THREADS="some") == (
        4,
        "the container's quota of 4 processors",
    )
    asked = found(monkeypatch, tmp_path, 8, NUMBA_NUM_THREADS="8", OMP_NUM_THREADS="3")
    assert asked == (8, "NUMBA_NUM_THREADS")


@pytest.mark.parametrize("asked", ["0", "-2", "two", "²"])
def test_a_setting_that_is_no_number_is_named(tmp_path, monkeypatch, asked):
    with pytest.raises(ParamError, match=f"NUMBA_NUM_THREADS must be a whole number above 0, got '{asked}'"):
        found(monkeypatch, tmp_path, NUMBA_NUM_THREADS=asked)
    monkeypatch.setenv("ROIOPS_JOBS", asked)
    with pytest.raises(ParamError, match=f"ROIOPS_JOBS must be a whole number above 0, got '{asked}'"):
        compiling.jobs()


@pytest.mark.skipif(processors.usable() < 2, reason="needs two processors")
@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ({"NUMBA_NUM_THREADS": "0"}, "error: NUMBA_NUM_THREADS must be a whole number above 0, got '0'"),
        (
            {"NUMBA_THREADING_LAYER": "foo"},
            "does not work: NUMBA_THREADING_LAYER is foo: The threading layer",
        ),
    ],
)
def test_the_doctor_names_the_setting_that_stops_numba(setting, told):
    command = [sys.executable, "-m", "roiops", "doctor", "--quick"]
    done = subprocess.run(command, env={**os.environ, **setting}, capture_output=True, text=True)
    assert done.returncode == 1
    assert told in done.stdout + done.stderr


def test_fewer_processors_than_the_quota(tmp_path, monkeypatch):
    write(tmp_path, **VERSION_2, **{"sys/fs/cgroup/cpu.max": "400000 100000\n"})
    assert found(monkeypatch, tmp_path, 2) == (2, "the processors that this process may use")


THREADS = """
import sys
from roiops.kernels import jit
with jit.use_threads(int(sys.argv[1])) if len(sys.argv) > 1 else __import__("contextlib").nullcontext():
    print(jit.num_threads())
"""


def threads(*args, **environment):
    inherited = {k: v for k, v in os.environ.items() if k not in ("NUMBA_NUM_THREADS", "OMP_NUM_THREADS")}
    command = [sys.executable, "-c", THREADS, *args]
    return int(subprocess.check_output(command, env={**inherited, **environment}, text=True))


@pytest.mark.skipif(processors.usable() < 2, reason="needs two processors")
def test_kernels_use_the_share():
    everything = processors.share.__wrapped__().threads
    assert threads() == everything
    assert threads(OMP_NUM_THREADS="1") == 1
    assert threads("2", OMP_NUM_THREADS="1") == 2  # asked for within the program
    assert threads(NUMBA_NUM_THREADS="5") == 5
    assert threads("3", NUMBA_NUM_THREADS="5") == 3


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or processors.usable() < 2, reason="needs affinity")
def test_affinity_counts():
    mine = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(mine)})
    try:
        assert threads() == 1
    finally:
        os.sched_setaffinity(0, mine)


def cache_of_linux(root, **levels):
    for name, (level, kind, size) in levels.items():
        folder = f"sys/devices/system/cpu/cpu0/cache/{name}"
        write(
            root, **{f"{folder}/level": f"{level}\n", f"{folder}/type": kind, f"{folder}/size": f"{size}\n"}
        )
    return root


def test_caches_are_those_that_linux_tells(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    root = cache_of_linux(
        tmp_path,
        index0=(1, "Data", "48K"),
        index1=(1, "Instruction", "32K"),
        index2=(2, "Unified", "2048K"),
        index3=(3, "Unified", "36608K"),
    )
    assert caches.find(root) == (2 << 20, 36608 << 10, "as the system says")
    assert caches.find(cache_of_linux(tmp_path / "no third", index2=(2, "Unified", "1024K")))[:2] == (
        1 << 20,
        1 << 20,
    )


@pytest.mark.parametrize("words", ["in other words", None])
def test_caches_that_linux_hides_are_assumed(words, tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "platform", "linux")
    root = cache_of_linux(tmp_path, index2=(2, "Unified", words)) if words else tmp_path
    for machine, second in (("x86_64", 512 << 10), ("aarch64", 1 << 20)):
        monkeypatch.setattr(platform, "machine", lambda machine=machine: machine)
        assert caches.find(root) == (second, 8 << 20, "assumed, as the system does not say")


APPLE = "hw.perflevel0.l2cachesize: 16777216\nhw.perflevel0.cpusperl2: 4\nhw.l2cachesize: 4194304\n"
INTEL = "hw.l2cachesize: 262144\nhw.l3cachesize: 6291456\n"


@pytest.mark.parametrize(
    ("told", "second", "last"),
    [(APPLE, 4 << 20, 16 << 20), (INTEL, 256 << 10, 6 << 20), ("", 1 << 20, 8 << 20)],
    ids=["Apple", "Intel", "nothing"],
)
def test_caches_are_those_that_macos_tells(told, second, last, tmp_path, monkeypatch):
    program = tmp_path / "sysctl"
    program.write_text(f"#!/bin/sh\nprintf '{told}'\necho unknown >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "machine", lambda: "arm64")
    assert caches.find()[:2] == (second, last)
