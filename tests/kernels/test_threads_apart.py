"""The helpers of a Python thread leave its processor to it."""

import os
import subprocess
import sys
import textwrap

import pytest

pytestmark = pytest.mark.skipif(
    not hasattr(os, "sched_getaffinity") or len(os.sched_getaffinity(0)) < 2,
    reason="needs Linux and two processors",
)


def run(script):
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        env={**os.environ, "NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


START = """
    import os, threading
    from roiops.kernels import jit, threads_apart

    def team():
        assert jit.num_threads() == 2
        if jit._layer != "omp":
            print("another layer")
            raise SystemExit
        return threads_apart._team

    everywhere = os.sched_getaffinity(0)
"""


def test_a_helper_may_run_on_all_processors_but_the_callers():
    out = run(
        START
        + """
    found = team()
    helper, = found.helpers
    assert helper != threading.get_native_id() and os.path.exists(f"/proc/self/task/{helper}")
    assert os.sched_getaffinity(helper) == everywhere - {found.processor}
    assert os.sched_getaffinity(0) == everywhere
    first = {helper}

    def other():
        first.update(team().helpers)

    thread = threading.Thread(target=other)
    thread.start()
    thread.join()
    assert len(first) == 2, "each Python thread has helpers of its own"
    print("apart")
    """
    )
    assert out in ("apart\n", "another layer\n")


def test_where_there_are_fewer_processors_than_threads_all_stay_as_they_are():
    out = run(
        START
        + """
    one = {min(everywhere)}
    os.sched_setaffinity(0, one)
    assert not team().helpers and os.sched_getaffinity(0) == one
    print("together")
    """
    )
    assert out in ("together\n", "another layer\n")
