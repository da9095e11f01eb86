"""Training in two processes, started with mpiexec as a user would."""

import os
import subprocess
import sys
from pathlib import Path

import mpi_ranks
import numpy as np
import pytest

import roiops as mx

pytest.importorskip("mpi4py", reason="needs mpi4py and an MPI library: pip install mpi4py mpich")

MPIEXEC = Path(sys.executable).parent / "mpiexec"
if not MPIEXEC.exists():
    pytest.skip("needs the mpiexec of the mpich package beside python", allow_module_level=True)


def mpiexec(ranks, folder, *cases):
    """Run cases of mpi_ranks.py; the finished process."""
    root = Path(mx.__file__).parents[1]
    return subprocess.run(
        [MPIEXEC, "-n", str(ranks), sys.executable, mpi_ranks.__file__, str(folder), *cases],
        env={**os.environ, "PYTHONPATH": str(root)},
        capture_output=True,
        text=True,
        timeout=300,
    )


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory):
    """The folder with what two ranks have computed."""
    folder = tmp_path_factory.mktemp("ranks")
    done = mpiexec(2, folder, "store", "exchange", "bucketing", "training")
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == "done with store exchange bucketing training"
    return folder


def load(folder, name, rank, case="training"):
    with np.load(folder / f"{case}-{name}-{rank}.npz") as file:
        return dict(file)


@pytest.mark.parametrize("optimizer", ["sgd", "adam", "add"])
def test_the_ranks_keep_the_same_weights_bit_for_bit(two_ranks, optimizer):
    first, second = (load(two_ranks, optimizer, rank) for rank in range(2))
    assert set(first) == {"conv_weight", "conv_bias", "fc_weight", "fc_bias"} | {
        f"bn_{name}" for name in ("gamma", "beta", "moving_mean", "moving_var")
    }
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)


@pytest.mark.parametrize("optimizer", mpi_ranks.OPTIMIZERS)
def test_two_ranks_with_one_picture_each_are_one_with_two(two_ranks, optimizer):
    """Ten steps. The sums of two ranks are those of a batch of two but for the order of the additions."""
    alone = mpi_ranks.values(mpi_ranks.train(optimizer, mpi_ranks.OPTIMIZERS[optimizer], "local", 0, 1))
    together = load(two_ranks, optimizer, 0)
    start = mpi_ranks.values(
        mpi_ranks.train(optimizer, mpi_ranks.OPTIMIZERS[optimizer], "local", 0, 1, steps=0)
    )
    assert not np.allclose(start["fc_weight"], alone["fc_weight"], atol=1e-3)
    for name, value in alone.items():
        np.testing.assert_allclose(together[name], value, rtol=2e-5, atol=2e-6, err_msg=name)


def test_gradients_that_add_up_travel_once(two_ranks):
    alone = mpi_ranks.train("sgd", mpi_ranks.OPTIMIZERS["sgd"], "local", 0, 1, grad_req="add", steps=3)
    together = load(two_ranks, "add", 0)
    for name, value in mpi_ranks.values(alone).items():
        np.testing.assert_allclose(together[name], value, rtol=2e-5, atol=2e-6, err_msg=name)


def test_networks_of_several_lengths(two_ranks):
    first, second = (load(two_ranks, "weights", rank, "bucketing") for rank in range(2))
    assert np.isfinite(first["fc_weight"]).all()
    for name in first:
        np.testing.assert_array_equal(first[name], second[name], err_msg=name)


def test_a_weight_that_differs_ends_the_run_with_its_name(tmp_path):
    done = mpiexec(2, tmp_path, "differ")
    assert done.returncode != 0
    text = "the ranks no longer agree: fc_weight differs from rank 0's on rank 1 of 2"
    assert done.stderr.count(text) == 1
    assert "done with" not in done.stdout


def test_an_error_on_one_rank_ends_all(tmp_path):
    done = mpiexec(2, tmp_path, "dies")
    assert done.returncode != 0
    assert done.stderr.count("RuntimeError: planted") == 1
