"""A short form of each part of the soak run; ``make soak`` runs them at length."""

import sys

import pytest

from soak import campaign

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc and limits memory as Linux does")


def short(part, cases, **options):
    report = campaign.run(part, cases=cases, seconds=options.pop("seconds", 120), **options)
    assert not report.failures, "\n".join(report.failures)
    assert report.cases > 0
    return report


def test_damaged_symbol_files():
    assert short("soak.files:symbol_files", 1500).endings["refused"] > 500


def test_damaged_params_files():
    assert short("soak.files:params_files", 2000).endings["refused"] > 500


def test_damaged_graphs_run():
    assert short("soak.graphs:executions", 800, case_seconds=100).endings["run"] > 50


def test_hostile_boxes():
    report = short(
        "soak.boxes:on_cpu", 140, case_seconds=200, seconds=240, environment={"SOAK_DTYPES": "float32"}
    )
    assert report.endings["accepted"] > 40


def test_random_convolutions():
    report = short("soak.layers:convolutions", 60, case_seconds=100, environment={"NUMBA_NUM_THREADS": "4"})
    assert report.endings["right"] > 20


@pytest.mark.parametrize("layer", ["default", "workqueue"])
def test_python_threads(layer):
    environment = {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "4"}
    short("soak.concurrency:threads", 2, case_seconds=200, environment=environment)


def test_forked_and_spawned_workers():
    report = short("soak.concurrency:processes", 2, case_seconds=400, environment={"NUMBA_NUM_THREADS": "2"})
    assert set(report.endings) == {"fork", "spawn"}


def test_interrupt():
    assert short("soak.surroundings:interrupts", 1, case_seconds=200).endings["interrupted"] == 1


def test_memory_runs_out():
    assert short("soak.surroundings:memory", 5, memory=1 << 30).endings["refused"] >= 3


def test_cache_folder_that_cannot_be_used():
    """Disk full, or files truncated: two of the cases of the part."""
    short("soak.surroundings:cache_folders", 2, first=1, case_seconds=240)


def test_a_crash_a_hang_and_a_failure_are_counted():
    """The campaign itself: a child that dies does not end it, nor go unseen."""
    report = campaign.run("soak.planted:case", cases=8, seconds=60, case_seconds=1.0)
    text = "\n".join(report.failures)
    assert "case 2: crash: SIGSEGV" in text
    assert "case 4: still running after 1 s" in text
    assert "case 5: ZeroDivisionError" in text
    assert "case 6: MemoryError" in text
    assert len(report.failures) == 4
    assert report.endings["accepted"] >= 1  # what a child had not yet told when it died is not counted
