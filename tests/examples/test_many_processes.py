"""The example's training and testing under ``mpiexec``: the same numbers, other numbers of ranks, and faults."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from conftest import EXAMPLES

import roiops as mx

pytest.importorskip("mpi4py", reason="needs mpi4py and an MPI library: pip install mpi4py mpich")
MPIEXEC = Path(sys.executable).parent / "mpiexec"
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not MPIEXEC.exists(), reason="needs the mpiexec of the mpich package beside python"),
]

#: A rank that can write no file larger than this, as on a full disk. MPI starts before, with files of its own.
FULL_DISK = """
import resource, sys
import roiops
roiops.kv.create("dist_sync")
resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))
from rcnn import train
sys.exit(train.main(sys.argv[1:]))
"""


@pytest.fixture
def command(shapes, tmp_path):
    """What starts training on so many ranks, in a folder of ``tmp_path``."""

    def make(ranks, folder, *more, script=(str(EXAMPLES / "rcnn" / "train.py"),)):
        settings = {
            "data.root": shapes,
            "data.short_side": 64,
            "training.batch_images": 1,
            "training.epochs": 2,
            "training.warmup_steps": 2,
            "proposals.train_after_nms": 20,
            "proposals.test_after_nms": 20,
            "targets.rois_per_image": 8,
        }
        changes = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
        config = str(EXAMPLES / "rcnn" / "configs" / "shapes_faster_rcnn.yaml")
        out = ("--out", str(tmp_path / folder), "--kvstore", "dist_sync", "--print-every", "1")
        return [str(MPIEXEC), "-n", str(ranks), sys.executable, *script, config, *changes, *out, *more]

    return make


@pytest.fixture
def environment():
    path = os.pathsep.join([str(Path(mx.__file__).parents[1]), str(EXAMPLES)])
    return {**os.environ, "PYTHONPATH": path, "NUMBA_NUM_THREADS": "1"}


@pytest.fixture
def run(environment):
    def start(words):
        return subprocess.run(words, env=environment, capture_output=True, text=True, timeout=600)

    return start


def progress(folder):
    return json.loads((folder / "checkpoint" / "progress.json").read_text())


def test_the_same_bits_run_after_run_and_one_log(command, run, tmp_path):
    for folder in ("one", "two"):
        done = run(command(2, folder))
        assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len([line for line in lines if "step 3/10" in line]) == 1  # ten pictures, two a step, two epochs
    assert lines[-1].startswith("model: ")
    one, two = ((tmp_path / folder / "model.params").read_bytes() for folder in ("one", "two"))
    assert one == two
    assert progress(tmp_path / "one")["history"] == progress(tmp_path / "two")["history"]


def test_going_on_with_another_number_of_ranks(command, run, tmp_path):
    assert run(command(2, "run", "--set", "training.epochs=1")).returncode == 0
    assert progress(tmp_path / "run")["updates"] == 5
    done = run(command(3, "run", "--resume"))
    assert done.returncode == 0, done.stderr
    assert "resuming after step 3 of 6" in done.stdout
    done = run(command(1, "run", "--resume", "--set", "training.epochs=3"))
    assert "resuming after step 20 of 30" in done.stdout
    assert progress(tmp_path / "run")["updates"] == 5 + 3 + 10


def test_ctrl_c_ends_all_ranks_with_a_checkpoint(command, run, environment, tmp_path):
    process = subprocess.Popen(
        command(2, "run", "--set", "training.epochs=200"),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    for line in process.stdout:
        if "step 7/" in line:
            break
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    stopped = re.findall(r"stopped after step (\d+); --resume goes on from there", out)
    assert len(stopped) == 1
    done = run(command(2, "run", "--resume", "--set", "training.epochs=3"))
    assert f"resuming after step {stopped[0]} of 15" in done.stdout
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("rank", [0, 1])
def test_a_rank_that_is_killed_ends_all_and_the_last_checkpoint_loads(
    command, run, environment, tmp_path, rank
):
    process = subprocess.Popen(
        command(2, "run", "--set", "training.epochs=200"),
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    for line in process.stdout:
        if "step 7/" in line:
            break
    os.kill(ranks_below(process.pid)[rank], signal.SIGKILL)
    began = time.monotonic()
    process.communicate(timeout=60)
    assert process.returncode != 0
    print(f"all ended {time.monotonic() - began:.1f} s after rank {rank} was killed")
    done = run(command(2, "run", "--resume", "--set", "training.epochs=3"))
    assert done.returncode == 0, done.stderr
    assert "resuming after step " in done.stdout


def ranks_below(pid: int) -> list[int]:
    """The processes that ``mpiexec`` started through its helper, in the order of their ranks."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue
            parents[int(entry.name)] = int(fields[1])
    below = {pid}
    for _ in range(4):
        below |= {child for child, parent in parents.items() if parent in below}
    python = Path(sys.executable).resolve()
    return sorted(each for each in below if Path(f"/proc/{each}/exe").resolve() == python)


def test_a_full_disk_ends_all_with_one_message(command, run, tmp_path):
    done = run(command(2, "run", script=("-c", FULL_DISK)))
    assert done.returncode == 1
    assert done.stderr.count("File too large") == 1
    assert not (tmp_path / "run" / "checkpoint").exists()


def test_a_mistake_is_told_once(command, run):
    done = run(command(2, "run", "--set", "data.root=/nowhere"))
    assert done.returncode == 1
    assert done.stderr.count("train.py: /nowhere") == 1
    done = run(command(2, "run", "--resume"))
    assert done.stderr.count("train.py: nothing to resume in ") == 1


def test_testing_shares_the_pictures(run, shapes, tmp_path):
    measures = []
    for ranks in (1, 3):
        path = tmp_path / f"{ranks}.json"
        words = [str(EXAMPLES / "rcnn" / "test.py"), str(EXAMPLES / "rcnn" / "model")]
        words += ["--set", f"data.root={shapes}", "--kvstore", "dist_sync", "--json", str(path)]
        done = run([str(MPIEXEC), "-n", str(ranks), sys.executable, *words])
        assert done.returncode == 0, done.stderr
        assert len([line for line in done.stdout.splitlines() if line.startswith("mean ")]) == 1
        measures.append(json.loads(path.read_text()))
    assert measures[0] == measures[1]
    assert np.isfinite(measures[0]["mAP@0.5"])
