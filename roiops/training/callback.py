"""Functions that a module calls after batches and epochs."""

import functools
import logging
import math
import time

from .checkpoint import save_checkpoint

__all__ = [
    "LogValidationMetricsCallback",
    "ProgressBar",
    "Speedometer",
    "do_checkpoint",
    "log_train_metric",
    "module_checkpoint",
]


def every(period, save):
    """An epoch-end callback that calls ``save(number of the epoch, symbol, parameters, states)`` so often."""
    period = max(1, int(period))

    def callback(epoch, sym=None, arg=None, aux=None):
        if (epoch + 1) % period == 0:
            save(epoch + 1, sym, arg, aux)

    return callback


def module_checkpoint(mod, prefix, period=1, save_optimizer_states=False):
    """After every ``period`` epochs, save the module's symbol and parameters, as an epoch-end callback.

    Parameters
    ----------
    save_optimizer_states : bool
        Whether to save what the optimizer needs to go on exactly, too.
    """
    return every(period, lambda epoch, *_: mod.save_checkpoint(prefix, epoch, save_optimizer_states))


def do_checkpoint(prefix, period=1):
    """After every ``period`` epochs, save symbol and parameters, as an epoch-end callback."""
    return every(period, functools.partial(save_checkpoint, prefix))


def log_train_metric(period, auto_reset=False):
    """Log the metric every ``period`` batches, as a batch-end callback."""

    def callback(param):
        if param.nbatch % period or param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            logging.info("Iter[%d] Batch[%d] Train-%s=%f", param.epoch, param.nbatch, name, value)
        if auto_reset:
            param.eval_metric.reset_local()

    return callback


class Speedometer:
    """Log samples per second and the metric every ``frequent`` batches.

    Parameters
    ----------
    batch_size : int
        Samples in a batch.
    frequent : int
        Batches between two lines.
    auto_reset : bool
        Whether each line shows the metric since the last line rather than since the epoch's start.
    """

    def __init__(self, batch_size, frequent=50, auto_reset=True):
        self.batch_size, self.frequent, self.auto_reset = batch_size, frequent, auto_reset
        self._since = None

    def __call__(self, param):
        count = param.nbatch
        if self._since is None or count < self._last:  # the first batch, or a new epoch
            self._since, self._last = time.perf_counter(), count
            return
        self._last = count
        if count % self.frequent:
            return
        now = time.perf_counter()
        speed = self.frequent * self.batch_size / max(now - self._since, 1e-9)
        self._since = now
        if param.eval_metric is None:
            logging.info("Iter[%d] Batch [%d]\tSpeed: %.2f samples/sec", param.epoch, count, speed)
            return
        values = "".join(f"\t{name}={value:f}" for name, value in param.eval_metric.get_name_value())
        first = count - self.frequent if self.auto_reset else 0
        logging.info(
            "Epoch[%d] Batch [%d-%d]\tSpeed: %.2f samples/sec%s", param.epoch, first, count, speed, values
        )
        if self.auto_reset:
            param.eval_metric.reset_local()


class ProgressBar:
    """Log how far the epoch is, as a bar, after every batch.

    Parameters
    ----------
    total : int
        Batches in an epoch.
    length : int
        Width in characters.
    """

    def __init__(self, total, length=80):
        self.total, self.bar_len = total, length

    def __call__(self, param):
        count = min(param.nbatch + 1, self.total)
        filled = round(self.bar_len * count / self.total)
        bar = "=" * filled + "-" * (self.bar_len - filled)
        logging.info("[%s] %s%%", bar, math.ceil(100 * count / self.total))


class LogValidationMetricsCallback:
    """Log the validation metric, as an eval-end callback."""

    def __call__(self, param):
        if param.eval_metric is None:
            return
        for name, value in param.eval_metric.get_name_value():
            logging.info("Epoch[%d] Validation-%s=%f", param.epoch, name, value)
