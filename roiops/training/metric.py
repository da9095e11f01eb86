"""Measures of how well outputs fit labels, gathered over batches."""

import math

import numpy

from ..errors import DataError, ParamError, ShapeError
from .factory import REQUIRED, Declared, Factory

__all__ = [
    "F1",
    "MAE",
    "MCC",
    "MSE",
    "PCC",
    "RMSE",
    "Accuracy",
    "Caffe",
    "CompositeEvalMetric",
    "CrossEntropy",
    "CustomMetric",
    "EvalMetric",
    "Loss",
    "NegativeLogLikelihood",
    "PearsonCorrelation",
    "Perplexity",
    "TopKAccuracy",
    "Torch",
    "check_label_shapes",
    "create",
    "np",
    "register",
]


class EvalMetric:
    """A sum over samples and their number. A metric of your own overrides :meth:`update`.

    Two sums are kept: the local one, which callbacks such as Speedometer reset, and the global one of the
    whole epoch.

    Parameters
    ----------
    name : str
        What the value is called.
    output_names, label_names : list of str, optional
        Which outputs and labels of a module to look at; all of them unless given.
    has_global_stats : bool
        Whether :meth:`update` keeps the global sum; otherwise the local one stands for it.
    """

    def __init__(self, name, output_names=None, label_names=None, has_global_stats=False, **kwargs):
        self.name = str(name)
        self.output_names, self.label_names = output_names, label_names
        self._has_global_stats = has_global_stats
        self._kwargs = kwargs
        self.reset()

    def __str__(self):
        return f"EvalMetric: {dict(self.get_name_value())}"

    def get_config(self) -> dict:
        """What :func:`create` needs to make this metric again."""
        return {
            **self._kwargs,
            "metric": type(self).__name__,
            "name": self.name,
            "output_names": self.output_names,
            "label_names": self.label_names,
        }

    def update_dict(self, label: dict, pred: dict) -> None:
        """Take in one batch, labels and outputs by name."""
        self.update(_chosen(label, self.label_names, "label"), _chosen(pred, self.output_names, "output"))

    def update(self, labels, preds) -> None:
        """Take in one batch: a list of labels and a list of outputs."""
        raise NotImplementedError(f"{type(self).__name__} must override update")

    def add(self, total, count) -> None:
        """Add to both sums."""
        self.sum_metric += total
        self.num_inst += count
        self.global_sum_metric += total
        self.global_num_inst += count

    def reset(self) -> None:
        """Start anew, for the next epoch."""
        self.global_num_inst, self.global_sum_metric = 0, 0.0
        self.reset_local()

    def reset_local(self) -> None:
        """Start the local sum anew."""
        self.num_inst, self.sum_metric = 0, 0.0

    def value_of(self, total, count) -> float:
        """The metric's value from a sum and a number of samples."""
        return float(total / count) if count else math.nan

    def get(self):
        """Name and value since the last reset, local ones included."""
        return self.name, self.value_of(self.sum_metric, self.num_inst)

    def get_global(self):
        """Name and value of the whole epoch."""
        if not self._has_global_stats:
            return self.get()
        return self.name, self.value_of(self.global_sum_metric, self.global_num_inst)

    def get_name_value(self) -> list:
        """:meth:`get` as a list of pairs."""
        return _pairs(*self.get())

    def get_global_name_value(self) -> list:
        """:meth:`get_global` as a list of pairs."""
        return _pairs(*self.get_global())


def _chosen(arrays: dict, names, what) -> list:
    if names is None:
        return list(arrays.values())
    missing = [name for name in names if name not in arrays]
    if missing:
        raise DataError(f"metric: there is no {what} {missing[0]!r} ({', '.join(arrays)})")
    return [arrays[name] for name in names]


def _pairs(name, value) -> list:
    names = name if isinstance(name, list) else [name]
    values = value if isinstance(value, list) else [value]
    return list(zip(names, values, strict=True))


def check_label_shapes(labels, preds, wrap=False, shape=False):
    """Raise unless there are as many labels as outputs; ``wrap`` makes lists of single arrays.

    Parameters
    ----------
    shape : bool
        Whether to compare the shapes of two arrays instead.
    """
    if wrap:
        labels = labels if isinstance(labels, list | tuple) else [labels]
        preds = preds if isinstance(preds, list | tuple) else [preds]
    have, need = (tuple(labels.shape), tuple(preds.shape)) if shape else (len(labels), len(preds))
    if have != need:
        raise ShapeError(f"Shape of labels {have} does not match shape of predictions {need}")
    return labels, preds


def _pairs_of(labels, preds) -> list:
    """Labels and outputs in pairs, as NumPy arrays."""
    pairs = zip(*check_label_shapes(labels, preds, wrap=True), strict=True)
    return [(numpy.asarray(label), numpy.asarray(pred)) for label, pred in pairs]


_factory = Factory(EvalMetric, "metric")
register, alias = _factory.register, _factory.alias


def create(metric, *args, **kwargs) -> EvalMetric:
    """A metric from its name, a function of (label, prediction), a list of these, or a metric itself."""
    if isinstance(metric, list | tuple):
        return CompositeEvalMetric([create(each, *args, **kwargs) for each in metric])
    if callable(metric):
        return CustomMetric(metric, *args, **kwargs)
    return _factory.create(metric, *args, **kwargs)


#: What every metric takes.
_NAMES = {"output_names": None, "label_names": None}


class _OwnMetric(EvalMetric):
    """A metric of this module: each keeps the global sum, too."""

    def __init__(self, name, output_names=None, label_names=None, **kwargs):
        super().__init__(name, output_names, label_names, **{"has_global_stats": True, **kwargs})


class _PairMetric(_OwnMetric):
    """A metric that takes labels and outputs in pairs."""

    def update(self, labels, preds):
        for label, pred in _pairs_of(labels, preds):
            self.add(*self.measure(label, pred))

    def measure(self, label, pred) -> tuple:
        """Sum and number of samples of one pair of arrays."""
        raise NotImplementedError


def _same_count(metric, label, pred) -> None:
    if label.size != len(pred):
        raise ShapeError(f"{metric}: {label.size} labels for {len(pred)} predictions")


@alias("acc")
@register
class Accuracy(Declared, _PairMetric, takes={"axis": 1, "name": "accuracy", **_NAMES}):
    """The part of samples whose largest output along ``axis`` is at the label."""

    def measure(self, label, pred):
        if pred.shape != label.shape:
            pred = pred.argmax(self.axis)
        _same_count("Accuracy", label, pred.ravel())
        hits = pred.astype(numpy.int32).ravel() == label.astype(numpy.int32).ravel()
        return int(hits.sum()), hits.size


@alias("top_k_accuracy", "top_k_acc")
@register
class TopKAccuracy(Declared, _PairMetric, takes={"top_k": 1, "name": "top_k_accuracy", **_NAMES}):
    """The part of samples whose label is among the ``top_k`` largest outputs."""

    def _set_up(self, top_k):
        if top_k <= 1:
            raise ParamError(f"TopKAccuracy: top_k must be at least 2 (Accuracy is top 1), got {top_k}")
        self.top_k = top_k
        self.name += f"_{top_k}"

    def get_config(self):
        return {**super().get_config(), "name": self.name.removesuffix(f"_{self.top_k}")}

    def measure(self, label, pred):
        if pred.ndim != 2:
            raise ShapeError(f"TopKAccuracy: predictions must have 2 dimensions, got shape {pred.shape}")
        _same_count("TopKAccuracy", label, pred)
        count = min(self.top_k, pred.shape[1])
        best = numpy.argpartition(pred.astype(numpy.float32), -count)[:, -count:]
        return int((best == label.astype(numpy.int32).reshape(-1, 1)).sum()), len(pred)


class _Gathering(_OwnMetric):
    """A metric that gathers more than a sum and a number, since the last reset and in all of the epoch."""

    #: What is gathered at first; it is never changed in place.
    _nothing: object

    def reset(self):
        self._everything = self._nothing
        super().reset()

    def reset_local(self):
        self._since = self._nothing
        super().reset_local()

    def _gather(self, merge, batch) -> None:
        self._since, self._everything = merge(self._since, batch), merge(self._everything, batch)


#: The mean of the updates' scores, or the score of all samples.
_AVERAGES = ["macro", "micro"]


class _BinaryMetric(_Gathering):
    """A score of the counts (true positive, false positive, false negative, true negative)."""

    _nothing = numpy.zeros(4)

    def update(self, labels, preds):
        counts = numpy.zeros(4)
        for label, pred in _pairs_of(labels, preds):
            counts += self._count(label.astype(numpy.int32).ravel(), pred)
        if self.average == "macro":  # the mean of the updates' scores
            self.add(self.score(*counts), 1)
            return
        self._gather(numpy.add, counts)
        self.num_inst, self.global_num_inst = self._since.sum(), self._everything.sum()
        self.sum_metric = self.score(*self._since) * self.num_inst
        self.global_sum_metric = self.score(*self._everything) * self.global_num_inst

    def _count(self, label, pred):
        _same_count(type(self).__name__, label, pred)
        if len(numpy.unique(label)) > 2:
            raise DataError(
                f"{type(self).__name__}: labels must be of two classes, got {numpy.unique(label)}"
            )
        said, true = pred.argmax(1) == 1, label == 1
        cells = (said & true, said & ~true, ~said & true, ~said & ~true)
        return numpy.array([cell.sum() for cell in cells])

    def score(self, hit, wrong, missed, rest) -> float:
        raise NotImplementedError


@register
class F1(Declared, _BinaryMetric, takes={"name": "f1", **_NAMES, "average": _AVERAGES}):
    """Harmonic mean of precision and recall of class 1 of two."""

    def score(self, hit, wrong, missed, rest):
        return 2 * hit / (2 * hit + wrong + missed) if hit else 0.0


@register
class MCC(Declared, _BinaryMetric, takes={"name": "mcc", **_NAMES, "average": _AVERAGES}):
    """Matthews' correlation coefficient of two classes."""

    def score(self, hit, wrong, missed, rest):
        margins = (hit + wrong, hit + missed, rest + wrong, rest + missed)
        scale = math.prod(float(m) for m in margins if m)
        return (hit * rest - wrong * missed) / math.sqrt(scale)


@register
class PCC(Declared, _Gathering, takes={"name": "pcc", **_NAMES, "has_global_stats": True}):
    """The correlation of labels and predicted classes: that of Matthews, for any number of classes."""

    _nothing = numpy.zeros((2, 2))

    def update(self, labels, preds):
        for label, pred in _pairs_of(labels, preds):
            chosen = (pred if pred.shape == label.shape else pred.argmax(axis=1)).ravel()
            _same_count("PCC", label, chosen)
            self._gather(_counted, numpy.stack([chosen, label.ravel()]).astype(numpy.int64))
        self.add(0.0, 1)

    def get(self):
        return self.name, _correlation(self._since)

    def get_global(self):
        return self.name, _correlation(self._everything)


def _counted(counts, pairs):
    """A square table of counts with these pairs of classes taken in, larger where they need it."""
    size = max(len(counts), int(pairs.max(initial=0)) + 1)
    grown = numpy.zeros((size, size))
    grown[: len(counts), : len(counts)] = counts
    numpy.add.at(grown, tuple(pairs), 1)
    return grown


def _correlation(counts) -> float:
    total, rows, columns = counts.sum(), counts.sum(axis=1), counts.sum(axis=0)
    spread = (rows * (total - rows)).sum() * (columns * (total - columns)).sum()
    if spread == 0:
        return math.nan
    return float((counts.diagonal() * total - rows * columns).sum() / math.sqrt(spread))


@register
class Perplexity(
    Declared, _PairMetric, takes={"ignore_label": REQUIRED, "axis": -1, "name": "perplexity", **_NAMES}
):
    """The exponential of the mean of -log p(label).

    Parameters
    ----------
    ignore_label : int or None
        The label of samples to leave out.
    axis : int
        The axis of the classes.
    """

    def measure(self, label, pred):
        label = label.ravel().astype(numpy.int64)
        pred = numpy.moveaxis(pred, self.axis, -1).reshape(-1, pred.shape[self.axis])
        _same_count("Perplexity", label, pred)
        chosen = pred[numpy.arange(label.size), numpy.clip(label, 0, pred.shape[1] - 1)]
        chosen = chosen[label != self.ignore_label]
        return float(-numpy.log(numpy.maximum(chosen, 1e-10)).sum()), chosen.size

    def value_of(self, total, count):
        return math.exp(total / count) if count else math.nan


class _Difference(_PairMetric):
    """A mean over the batch of something of label minus output; each batch counts once."""

    def measure(self, label, pred):
        label = label.reshape(-1, 1) if label.ndim == 1 else label
        pred = pred.reshape(-1, 1) if pred.ndim == 1 else pred
        return float(self.mean(label - pred)), 1

    def mean(self, difference) -> float:
        raise NotImplementedError


@register
class MAE(Declared, _Difference, takes={"name": "mae", **_NAMES}):
    """Mean absolute error."""

    def mean(self, difference):
        return numpy.abs(difference).mean()


@register
class MSE(Declared, _Difference, takes={"name": "mse", **_NAMES}):
    """Mean squared error."""

    def mean(self, difference):
        return numpy.square(difference).mean()


@register
class RMSE(Declared, _Difference, takes={"name": "rmse", **_NAMES}):
    """Root of the mean squared error."""

    def mean(self, difference):
        return math.sqrt(numpy.square(difference).mean())


@alias("ce")
@register
class CrossEntropy(Declared, _PairMetric, takes={"eps": 1e-12, "name": "cross-entropy", **_NAMES}):
    """Mean of -log(p(label) + eps)."""

    def measure(self, label, pred):
        _same_count(type(self).__name__, label, pred)
        label = label.ravel().astype(numpy.int64)
        return float(-numpy.log(pred[numpy.arange(label.size), label] + self.eps).sum()), label.size


@alias("nll_loss")
@register
class NegativeLogLikelihood(CrossEntropy, takes={"eps": 1e-12, "name": "nll-loss", **_NAMES}):
    """The same number as CrossEntropy, under its other name."""


@alias("pearsonr")
@register
class PearsonCorrelation(Declared, _Gathering, takes={"name": "pearsonr", **_NAMES, "average": _AVERAGES}):
    """Pearson's correlation: the mean of the batches' (``macro``) or of all values (``micro``)."""

    #: A number of pairs, their mean and their scatter matrix.
    _nothing = 0, numpy.zeros(2), numpy.zeros((2, 2))

    def update(self, labels, preds):
        for label, pred in _pairs_of(labels, preds):
            check_label_shapes(label, pred, shape=True)
            both = numpy.stack([label.ravel(), pred.ravel()]).astype(numpy.float64)
            if self.average == "macro":
                self.add(float(numpy.corrcoef(both)[0, 1]), 1)
            else:
                self._gather(_merged, both)
                self.num_inst, self.global_num_inst = self._since[0], self._everything[0]

    def get(self):
        return super().get() if self.average == "macro" else (self.name, _of_moments(*self._since))

    def get_global(self):
        return (
            super().get_global() if self.average == "macro" else (self.name, _of_moments(*self._everything))
        )


def _merged(moments, both):
    """The moments with a batch of pairs taken in."""
    count, mean, scatter = moments
    added, shift = both.shape[1], both.mean(1) - mean
    total = count + added
    scatter = (
        scatter + numpy.cov(both, bias=True) * added + numpy.outer(shift, shift) * (count * added / total)
    )
    return total, mean + shift * added / total, scatter


def _of_moments(count, mean, scatter) -> float:
    return float(scatter[0, 1] / math.sqrt(scatter[0, 0] * scatter[1, 1])) if count else math.nan


@register
class Loss(Declared, _OwnMetric, takes={"name": "loss", **_NAMES}):
    """The mean of the outputs themselves, for outputs that are losses."""

    def update(self, labels, preds):
        for pred in preds if isinstance(preds, list | tuple) else [preds]:
            pred = numpy.asarray(pred)
            self.add(float(pred.sum()), pred.size)


@register
class Torch(Loss, takes={"name": "torch", **_NAMES}):
    """:class:`Loss` by another name."""


@register
class Caffe(Loss, takes={"name": "caffe", **_NAMES}):
    """:class:`Loss` by another name."""


@register
class CustomMetric(_OwnMetric):
    """A function of (label, prediction), both NumPy arrays, that gives a value or (sum, number).

    Parameters
    ----------
    feval : callable
        The function.
    name : str, optional
        The function's name unless given.
    allow_extra_outputs : bool
        Whether there may be more outputs than labels.
    """

    def __init__(self, feval, name=None, allow_extra_outputs=False, output_names=None, label_names=None):
        if name is None:
            name = feval.__name__
            name = f"custom({name})" if "<" in name else name
        super().__init__(name, output_names, label_names)
        self._feval, self._allow_extra_outputs = feval, allow_extra_outputs

    def update(self, labels, preds):
        if not self._allow_extra_outputs:
            labels, preds = check_label_shapes(labels, preds, wrap=True)
        for label, pred in zip(labels, preds, strict=False):
            result = self._feval(numpy.array(label), numpy.array(pred))  # copies, which it may change
            self.add(*(result if isinstance(result, tuple) else (result, 1)))

    def get_config(self):
        raise NotImplementedError("CustomMetric: a function cannot be written to a configuration")


@alias("composite")
@register
class CompositeEvalMetric(_OwnMetric):
    """Several metrics as one; its values come as lists."""

    def __init__(self, metrics=None, name="composite", output_names=None, label_names=None):
        self.metrics = [create(each) for each in metrics or ()]
        super().__init__(name, output_names, label_names)

    def add(self, metric) -> None:
        """Take in a further metric."""
        self.metrics.append(create(metric))

    def get_metric(self, index: int) -> EvalMetric:
        """The metric number ``index``."""
        return self.metrics[index]

    def update_dict(self, label, pred):
        if self.label_names is not None:
            label = {name: each for name, each in label.items() if name in self.label_names}
        if self.output_names is not None:
            pred = {name: each for name, each in pred.items() if name in self.output_names}
        for metric in self.metrics:
            metric.update_dict(label, pred)

    def update(self, labels, preds):
        for metric in self.metrics:
            metric.update(labels, preds)

    def reset(self):
        for metric in self.metrics:
            metric.reset()

    def reset_local(self):
        for metric in self.metrics:
            metric.reset_local()

    def get(self):
        return self._lists([metric.get_name_value() for metric in self.metrics])

    def get_global(self):
        return self._lists([metric.get_global_name_value() for metric in self.metrics])

    @staticmethod
    def _lists(each):
        pairs = [pair for pairs in each for pair in pairs]
        return [name for name, _ in pairs], [value for _, value in pairs]

    def get_config(self):
        return {**super().get_config(), "metrics": [metric.get_config() for metric in self.metrics]}


def np(numpy_feval, name=None, allow_extra_outputs=False) -> CustomMetric:
    """A metric from a function of NumPy arrays (label, prediction)."""
    return CustomMetric(numpy_feval, name, allow_extra_outputs)
