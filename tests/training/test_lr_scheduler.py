"""Learning rate schedules against MXNet's sequences."""

import json

import numpy as np
import pytest
from golden_files import GOLDEN

from roiops import lr_scheduler
from roiops.errors import ParamError

TABLE = json.loads((GOLDEN / "optimizer" / "schedules.json").read_text())["schedules"]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['scheduler']}-{len(row['arguments'])}")
def test_the_sequence_is_mxnets(row):
    schedule = getattr(lr_scheduler, row["scheduler"])(**row["arguments"])
    assert [schedule(n) for n in range(len(row["rates"]))] == pytest.approx(row["rates"], rel=1e-12)


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['scheduler']}-{len(row['arguments'])}")
def test_resuming_in_the_middle_gives_the_same_rate(row):
    schedule = getattr(lr_scheduler, row["scheduler"])(**row["arguments"])
    half = len(row["rates"]) // 2
    assert [schedule(n) for n in range(half, len(row["rates"]))] == pytest.approx(row["rates"][half:])


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (
            lambda: lr_scheduler.FactorScheduler(0),
            "step must be a number of at least 1, got 0",
        ),
        (lambda: lr_scheduler.FactorScheduler(2, factor=1.5), "FactorScheduler: factor must be at most 1"),
        (lambda: lr_scheduler.FactorScheduler("2"), "step must be a number of at least 1, got '2'"),
        (lambda: lr_scheduler.MultiFactorScheduler([3, 3]), "step must be a rising list of numbers"),
        (lambda: lr_scheduler.MultiFactorScheduler([]), "step must be a rising list of numbers"),
        (lambda: lr_scheduler.MultiFactorScheduler([0, 3]), "step must be a number of at least 1, got 0"),
        (lambda: lr_scheduler.MultiFactorScheduler([3], 1.5), "MultiFactorScheduler: factor must be at most"),
        (lambda: lr_scheduler.PolyScheduler(1.5), "PolyScheduler: max_update must be a whole number"),
        (
            lambda: lr_scheduler.CosineScheduler(5, warmup_steps=5),
            "CosineScheduler: max_update 5 leaves no updates after 5 of warm-up",
        ),
        (
            lambda: lr_scheduler.FactorScheduler(2, warmup_mode="slow"),
            "'linear' or 'constant', got 'slow'",
        ),
        (
            lambda: lr_scheduler.FactorScheduler(2, warmup_begin_lr=1),
            "warmup_begin_lr must be at most base_lr",
        ),
    ],
)
def test_bad_parameters(make, text):
    with pytest.raises(ParamError, match=text):
        make()


def test_the_warm_up_may_be_given_in_order():
    for schedule, rates in (
        (lr_scheduler.FactorScheduler(5, 0.5, 1e-3, 0.2, 4, 0.1, "linear"), [0.1, 0.15, 0.2]),
        (lr_scheduler.MultiFactorScheduler([3], 0.5, 0.2, 4, 0.1, "constant"), [0.1, 0.1, 0.1]),
        (lr_scheduler.PolyScheduler(9, 0.2, 2, 0, 4, 0.1), [0.1, 0.15, 0.2]),
        (lr_scheduler.CosineScheduler(9, 0.2, 0, 4, 0.1), [0.1, 0.15, 0.2]),
    ):
        assert [schedule(n) for n in (0, 2, 4)] == pytest.approx(rates)


def test_steps_are_any_numbers():
    """Scripts multiply epochs by samples / batch size; the rates are MXNet's."""
    schedule = lr_scheduler.FactorScheduler(2.5, 0.5, base_lr=8.0)
    assert [schedule(n) for n in range(1, 9)] == [8, 8, 4, 4, 4, 2, 2, 1]
    schedule = lr_scheduler.MultiFactorScheduler([np.float64(2.5), np.int64(5)], 0.5, base_lr=8.0)
    assert [schedule(n) for n in range(1, 7)] == [8, 8, 4, 4, 4, 2]


def test_a_scheduler_of_ones_own():
    class Step(lr_scheduler.LRScheduler):
        def after_warmup(self, num_update):
            return 1 / num_update

    schedule = Step(base_lr=2.0, warmup_steps=2)
    assert [schedule(n) for n in range(4)] == [0, 1, 0.5, 1 / 3]
    with pytest.raises(NotImplementedError, match="LRScheduler must override"):
        lr_scheduler.LRScheduler()(1)
