"""Each item of a loop is done once, by whichever thread: ``kernels/shares.py``."""

import numba
import numpy as np
import pytest

from roiops.kernels.jit import parallel, pretend_threads, use_threads
from roiops.kernels.shares import pieces, taken, within


def test_the_shares_of_a_loop_are_all_of_it():
    plainly = getattr(within, "py_func", within)
    for count in (0, 1, 5, 16):
        for parts in (1, 2, 7):
            found = [i for part in range(parts) for i in plainly((part, parts, 0), count)]
            assert found == [*range(count)]


@parallel
def count_taken(share, counts, who):
    for i in taken(share, counts.size):
        counts[i] += 1
        who[i] = share[0]


@parallel
def count_items(share, begins, least, counts, who):
    for w in within(share, begins.size - 1):
        for first, stop in pieces(share, begins, w, least):
            counts[first:stop] += 1
            who[first:stop] = w


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="there is one share")
@pytest.mark.parametrize("claims", [False, True])
@pytest.mark.parametrize("workers", [2, 3, 7])
@pytest.mark.parametrize("count", [0, 1, 2, 50, 1000])
def test_who_comes_first_does_what_others_have_not_begun(count, workers, claims):
    def backwards(part, parts):
        for i in reversed(range(parts)):
            part(i)

    begins = np.arange(workers + 1) ** 2 * count // workers**2
    for least in (0, 1, 4):
        counts, who = np.zeros((2, count), np.int64)
        with pretend_threads(workers, backwards, claims=claims):
            count_items.by(workers)(begins, least, counts, who)
        assert (counts == 1).all()
        alone = np.repeat(np.arange(workers), np.diff(begins))
        np.testing.assert_array_equal(who, workers - 1 if claims and least else alone)
    counts, who = np.zeros((2, count), np.int64)
    with pretend_threads(workers, backwards, claims=claims):
        count_taken.by(workers)(counts, who)
    assert (counts == 1).all()
    assert not claims or (who == workers - 1).all()


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_threads_do_each_item_once(workers):
    counts, who = np.zeros((2, 3001), np.int64)
    begins = np.linspace(0, counts.size, workers + 1).astype(np.int64)
    with use_threads(workers):
        for _ in range(300):
            count_taken.by(workers)(counts, who)
            count_items.by(workers)(begins, 2, counts, who)
    assert (counts == 600).all()
