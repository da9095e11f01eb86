"""The loss of connectionist temporal classification, and its gradient; all in logarithms of float64.

A label is read with a blank before, between and after its classes: place ``p`` of that path is class
``p // 2`` of the label where ``p`` is odd.
"""

import math

import numpy as np

from ...jit import inner, num_threads, parallel
from ...shares import within

#: Vector operations that a logarithm and its exponentials are worth, about.
_WORK = 50


def loss_and_gradient(data, label, steps, counts, blank, loss, grad):
    """Write the loss of each sequence, and its gradient where ``grad`` is not None.

    ``label`` is int64; ``steps`` and ``counts`` say how many entries of the data and of the label there are.
    A loss without a possible path is infinite, and has no gradient.
    """
    time, batch, classes = data.shape
    places = 2 * label.shape[1] + 1
    grad = np.empty((0, 0, 0), data.dtype) if grad is None else grad
    logs, before, after = (
        np.empty((batch, *shape)) for shape in ((time, classes), (time, places), (2, places))
    )
    threads = max(1, min(num_threads(time * batch * (classes + places) * _WORK), batch))
    _sequences.by(threads)(data, label, steps, counts, blank, logs, before, after, loss, grad)


@inner(makes_arrays=False)
def _log_sum(one, two, three):
    """The logarithm of the sum of what these are logarithms of."""
    top = max(one, max(two, three))
    if top == -np.inf:
        return one + two + three  # NaN, where one is
    return top + math.log(math.exp(one - top) + math.exp(two - top) + math.exp(three - top))


@inner(makes_arrays=False)
def _class_at(label, place, blank):
    return label[place // 2] if place % 2 else blank


@inner(makes_arrays=False)
def _may_skip(label, place, blank):
    """Whether a place may follow the last but one before it."""
    here = _class_at(label, place, blank)
    return place > 1 and here != blank and here != _class_at(label, place - 2, blank)


@inner(makes_arrays=False)
def _log_softmax(scores, logs):
    top, total = -np.inf, 0.0
    for k in range(scores.size):
        top = max(top, np.float64(scores[k]))
    for k in range(scores.size):
        total += math.exp(scores[k] - top)
    log_of_total = math.log(total)
    for k in range(scores.size):
        logs[k] = scores[k] - top - log_of_total


@inner(makes_arrays=False)
def _go_forward(logs, label, places, blank, before):
    """The logarithm of the probability of all that leads to each place, with that of the place itself."""
    for t in range(logs.shape[0]):
        for p in range(places):
            reached = 0.0 if t == 0 and p < 2 else -np.inf
            if t > 0:
                one = before[t - 1, p - 1] if p > 0 else -np.inf
                two = before[t - 1, p - 2] if _may_skip(label, p, blank) else -np.inf
                reached = _log_sum(before[t - 1, p], one, two)
            before[t, p] = reached + logs[t, _class_at(label, p, blank)]


@inner(makes_arrays=False)
def _go_back(logs, label, places, blank, before, after, total, grad):
    """Write the gradient, from the last step to the first.

    ``after`` holds the logarithms of what follows the places of a step, of two steps in turn.
    """
    steps = logs.shape[0]
    for i in range(steps):
        t, here, later = steps - 1 - i, after[i % 2], after[(i + 1) % 2]
        for k in range(logs.shape[1]):
            grad[t, k] = math.exp(logs[t, k])
        for p in range(places):
            if i == 0:
                here[p] = 0.0 if p >= places - 2 else -np.inf
            else:
                one = later[p + 1] if p + 1 < places else -np.inf
                skips = p + 2 < places and _may_skip(label, p + 2, blank)
                here[p] = _log_sum(later[p], one, later[p + 2] if skips else -np.inf)
        for p in range(places):
            k = _class_at(label, p, blank)
            grad[t, k] -= math.exp(before[t, p] + here[p] - total)
            here[p] += logs[t, k]


@parallel(makes_arrays=False)
def _sequences(share, data, label, steps, counts, blank, logs, before, after, loss, grad):
    for n in within(share, data.shape[1]):
        places, last = 2 * counts[n] + 1, steps[n] - 1
        for t in range(last + 1):
            _log_softmax(data[t, n], logs[n, t])
        known = logs[n, : last + 1]
        _go_forward(known, label[n], places, blank, before[n])
        other = before[n, last, places - 2] if places > 1 else -np.inf
        total = _log_sum(before[n, last, places - 1], other, -np.inf)
        loss[n] = -total
        if grad.size > 0:
            grad[:, n] = 0
            if math.isfinite(total):
                _go_back(known, label[n], places, blank, before[n], after[n], total, grad[:, n])
