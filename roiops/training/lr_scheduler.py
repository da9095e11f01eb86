"""Learning rates that change with the number of updates."""

import itertools
import logging
import math
import numbers

from ..errors import ParamError

__all__ = ["CosineScheduler", "FactorScheduler", "LRScheduler", "MultiFactorScheduler", "PolyScheduler"]


class LRScheduler:
    """Calling it with the number of updates so far gives the learning rate.

    A scheduler of your own overrides ``__call__``, or ``after_warmup`` to keep the warm-up.

    Parameters
    ----------
    base_lr : float
        The learning rate to start from.
    warmup_steps : int
        How many updates the warm-up takes.
    warmup_begin_lr : float
        The learning rate in the first update of the warm-up.
    warmup_mode : str
        ``"linear"`` rises evenly to ``base_lr``, ``"constant"`` stays at ``warmup_begin_lr``.
    """

    def __init__(self, base_lr=0.01, warmup_steps=0, warmup_begin_lr=0, warmup_mode="linear"):
        name = type(self).__name__
        _whole(name, "warmup_steps", warmup_steps, 0)
        if warmup_begin_lr > base_lr:
            raise ParamError(
                f"{name}: warmup_begin_lr must be at most base_lr {base_lr}, got {warmup_begin_lr}"
            )
        if warmup_mode not in ("linear", "constant"):
            raise ParamError(f"{name}: warmup_mode must be 'linear' or 'constant', got {warmup_mode!r}")
        self.base_lr = self.warmup_final_lr = base_lr
        self.warmup_steps = warmup_steps
        self.warmup_begin_lr = warmup_begin_lr
        self.warmup_mode = warmup_mode

    def get_warmup_lr(self, num_update: int) -> float:
        """The learning rate at an update of the warm-up."""
        if self.warmup_mode == "constant":
            return self.warmup_begin_lr
        rise = self.warmup_final_lr - self.warmup_begin_lr
        return self.warmup_begin_lr + rise * num_update / self.warmup_steps

    def __call__(self, num_update: int) -> float:
        if num_update < self.warmup_steps:
            return self.get_warmup_lr(num_update)
        return self.after_warmup(num_update)

    def after_warmup(self, num_update: int) -> float:
        """The learning rate at an update after the warm-up."""
        raise NotImplementedError(f"{type(self).__name__} must override after_warmup or __call__")


def _whole(name, argument, value, least) -> None:
    if isinstance(value, bool) or not isinstance(value, int) or value < least:
        raise ParamError(f"{name}: {argument} must be a whole number of at least {least}, got {value!r}")


def _check_step(name, step) -> None:
    if not isinstance(step, numbers.Real) or step < 1:  # scripts divide: epochs * samples / batch size
        raise ParamError(f"{name}: step must be a number of at least 1, got {step!r}")


def _check_factor(name, factor) -> None:
    if factor > 1:
        raise ParamError(f"{name}: factor must be at most 1, so that the learning rate falls, got {factor}")


class FactorScheduler(LRScheduler):
    """Multiply by ``factor`` after every ``step`` updates, down to ``stop_factor_lr``."""

    def __init__(self, step, factor=1, stop_factor_lr=1e-8, base_lr=0.01, *warmup, **named):
        super().__init__(base_lr, *warmup, **named)
        _check_step("FactorScheduler", step)
        _check_factor("FactorScheduler", factor)
        self.step, self.factor, self.stop_factor_lr = step, factor, stop_factor_lr
        self.count = 0

    def after_warmup(self, num_update):
        while num_update > self.count + self.step:  # several steps at once after resuming
            self.count += self.step
            self.base_lr = max(self.base_lr * self.factor, self.stop_factor_lr)
            logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class MultiFactorScheduler(LRScheduler):
    """Multiply by ``factor`` after each of the updates listed in ``step``."""

    def __init__(self, step, factor=1, base_lr=0.01, *warmup, **named):
        super().__init__(base_lr, *warmup, **named)
        step = list(step)
        if not step or any(b <= a for a, b in itertools.pairwise(step)):
            raise ParamError(f"MultiFactorScheduler: step must be a rising list of numbers, got {step}")
        for each in step:
            _check_step("MultiFactorScheduler", each)
        _check_factor("MultiFactorScheduler", factor)
        self.step, self.factor = step, factor
        self.cur_step_ind = 0

    def after_warmup(self, num_update):
        while self.cur_step_ind < len(self.step) and num_update > self.step[self.cur_step_ind]:
            self.cur_step_ind += 1
            self.base_lr *= self.factor
            logging.info("Update[%d]: Change learning rate to %0.5e", num_update, self.base_lr)
        return self.base_lr


class _Annealing(LRScheduler):
    """From ``base_lr`` to ``final_lr`` within ``max_update`` updates, along :meth:`remaining`."""

    def __init__(self, max_update, base_lr=0.01, final_lr=0, *warmup, **named):
        super().__init__(base_lr, *warmup, **named)
        name = type(self).__name__
        _whole(name, "max_update", max_update, 1)
        self.max_update, self.final_lr = max_update, final_lr
        self.base_lr_orig = base_lr
        self.max_steps = max_update - self.warmup_steps
        if self.max_steps < 1:
            raise ParamError(
                f"{name}: max_update {max_update} leaves no updates after {self.warmup_steps} of warm-up"
            )

    def remaining(self, progress: float) -> float:
        """The part of the fall that is still to come, 1 at progress 0 and 0 at progress 1."""
        raise NotImplementedError

    def after_warmup(self, num_update):
        if num_update <= self.max_update:
            progress = (num_update - self.warmup_steps) / self.max_steps
            fall = self.base_lr_orig - self.final_lr
            self.base_lr = self.final_lr + fall * self.remaining(progress)
        return self.base_lr


class PolyScheduler(_Annealing):
    """Fall along a polynomial of power ``pwr``."""

    def __init__(self, max_update, base_lr=0.01, pwr=2, final_lr=0, *warmup, **named):
        super().__init__(max_update, base_lr, final_lr, *warmup, **named)
        self.power = pwr

    def remaining(self, progress):
        return (1 - progress) ** self.power


class CosineScheduler(_Annealing):
    """Fall along half a cosine wave."""

    def remaining(self, progress):
        return (1 + math.cos(math.pi * progress)) / 2
