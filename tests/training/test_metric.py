"""Metrics against MXNet's values, local and global sums, composition."""

import json
import math

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx
from roiops.errors import DataError, MXNetError, ParamError, RegistryError, ShapeError

TABLE = json.loads((GOLDEN / "optimizer" / "metrics.json").read_text())["metrics"]


def arrays(values):
    return [mx.nd.array(value) for value in values]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row['metric']}{row['arguments']}")
def test_values_are_mxnets(row):
    metric = mx.metric.create(row["metric"], **row["arguments"])
    for update in row["updates"]:
        metric.update(arrays(update["labels"]), arrays(update["predictions"]))
        name, value = metric.get()
        assert name == update["get"][0]
        assert value == pytest.approx(update["get"][1], rel=1e-5)


def test_by_hand():
    label, pred = arrays([[0, 1, 1, 0]]), arrays([[[0.9, 0.1], [0.2, 0.8], [0.6, 0.4], [0.7, 0.3]]])
    for name, value in (
        ("acc", 0.75),
        ("ce", -math.log(0.9 * 0.8 * 0.4 * 0.7) / 4),
        ("f1", 2 / 3),
        ("mcc", 2 / math.sqrt(1 * 2 * 2 * 3)),
        (mx.metric.Perplexity(0), (0.8 * 0.4) ** -0.5),
        (mx.metric.TopKAccuracy(2), 1.0),
    ):
        metric = mx.metric.create(name)
        assert math.isnan(metric.get()[1])
        metric.update(label, pred)
        assert metric.get()[1] == pytest.approx(value), name


@pytest.mark.parametrize(
    ("name", "label", "pred", "value"),
    [
        ("acc", [0, 1], [[0.9, 0.1], [0.8, 0.2]], 0.5),
        ("f1", [0, 0], [[0.9, 0.1], [0.8, 0.2]], 0.0),
        ("mae", [1, 3], [2, 5], 1.5),
        ("mae", [[1], [3]], [2, 5], 1.5),
        ("pcc", [0, 1, 1], [0, 1, 0], 0.5),
    ],
)
def test_arrays_without_a_list_around_them(name, label, pred, value):
    metric = mx.metric.create(name)
    metric.update(mx.nd.array(label), mx.nd.array(pred))
    assert metric.get()[1] == pytest.approx(value)  # MXNet's


def test_local_and_global_sums():
    metric = mx.metric.create("acc")
    metric.update(arrays([[1]]), arrays([[[0, 1]]]))
    metric.reset_local()
    assert math.isnan(metric.get()[1])
    metric.update(arrays([[1]]), arrays([[[1, 0]]]))
    assert metric.get() == ("accuracy", 0.0)
    assert metric.get_global() == ("accuracy", 0.5)
    metric.reset()
    assert math.isnan(metric.get_global()[1])


@pytest.mark.parametrize("name", ["f1", "mcc"])
def test_micro_average_pools_the_counts(name):
    generator = np.random.default_rng(0)
    labels = generator.integers(0, 2, (3, 20))
    preds = generator.random((3, 20, 2))
    pooled = mx.metric.create(name, average="micro")
    for label, pred in zip(labels, preds, strict=True):
        pooled.update(arrays([label]), arrays([pred]))
    whole = mx.metric.create(name)
    whole.update(arrays([labels.ravel()]), arrays([preds.reshape(-1, 2)]))
    assert pooled.get()[1] == pytest.approx(whole.get()[1])
    assert pooled.get_global()[1] == pytest.approx(whole.get()[1])


def test_micro_pearson_is_that_of_all_values():
    generator = np.random.default_rng(1)
    labels = generator.normal(size=(4, 6)) + np.arange(4)[:, None]
    preds = labels + generator.normal(size=(4, 6))
    metric = mx.metric.create("pearsonr", average="micro")
    for label, pred in zip(labels, preds, strict=True):
        metric.update(arrays([label]), arrays([pred]))
    whole = np.corrcoef(labels.ravel(), preds.ravel())[0, 1]
    assert metric.get()[1] == pytest.approx(whole, rel=1e-5)
    metric.reset_local()
    assert np.isnan(metric.get()[1])
    metric.update(arrays([labels[0]]), arrays([preds[0]]))
    assert metric.get()[1] == pytest.approx(np.corrcoef(labels[0], preds[0])[0, 1], rel=1e-5)
    again = np.corrcoef(np.append(labels, labels[0]), np.append(preds, preds[0]))[0, 1]
    assert metric.get_global()[1] == pytest.approx(again, rel=1e-5)


def test_composite():
    metric = mx.metric.create(["acc", mx.metric.CrossEntropy(name="loss")])
    metric.add("mae")
    metric.update(arrays([[1, 0]]), arrays([[[0, 1], [1, 0]]]))
    assert dict(metric.get_name_value()) == pytest.approx(
        {"accuracy": 1.0, "loss": 0.0, "mae": 0.5}, abs=1e-6
    )
    metric.reset_local()
    assert metric.get_global_name_value()[0] == ("accuracy", 1.0)
    assert str(metric.get_metric(0)) == "EvalMetric: {'accuracy': nan}"


def test_own_functions():
    metric = mx.metric.np(lambda label, pred: (np.abs(label - pred).sum(), label.size), name="off")
    metric.update(arrays([[1, 2]]), arrays([[1, 4]]))
    assert metric.get() == ("off", 1.0)
    metric = mx.metric.create(lambda label, pred: 3.0)
    metric.update(arrays([[1]]), arrays([[1]]))
    assert metric.get() == ("custom(<lambda>)", 3.0)

    class Counter(mx.metric.EvalMetric):
        """In the old manner: adds to the local sums only."""

        def update(self, labels, preds):
            self.sum_metric += len(preds)
            self.num_inst += 1

    metric = Counter("count")
    metric.update([], arrays([[1], [2]]))
    assert metric.get_global_name_value() == [("count", 2.0)]


def test_pcc_of_labels_of_several_places_a_sample():
    """That of two classes is Pearson's correlation."""
    rng = np.random.default_rng(0)
    label, pred = rng.integers(0, 2, (4, 5)), rng.random((4, 2, 5))
    metric = mx.metric.PCC()
    metric.update(arrays([label]), arrays([pred]))
    assert metric.get()[1] == pytest.approx(np.corrcoef(label.ravel(), pred.argmax(1).ravel())[0, 1])


def test_losses_of_torch_and_caffe_have_names_of_their_own():
    for metric in (
        mx.metric.create("torch"),
        mx.metric.Torch(),
        mx.metric.create("caffe"),
        mx.metric.Caffe(),
    ):
        metric.update([], arrays([[1.0, 2.0]]))
        assert metric.get() == (type(metric).__name__.lower(), 1.5)


def test_outputs_are_chosen_by_name():
    metric = mx.metric.Accuracy(output_names=["cls_output"], label_names=["cls_label"])
    label = {"box_label": None, "cls_label": mx.nd.array([1])}
    metric.update_dict(label, {"cls_output": mx.nd.array([[0, 1]]), "box_output": None})
    assert metric.get()[1] == 1.0
    with pytest.raises(DataError, match=r"metric: there is no output 'cls_output' \(other\)"):
        metric.update_dict(label, {"other": None})
    several = mx.metric.CompositeEvalMetric(
        ["acc"], output_names=["mask", "cls_output"], label_names=["cls_label"]
    )
    several.update_dict(
        label, {"box_output": None, "cls_output": mx.nd.array([[0, 1]])}
    )  # no mask, as MXNet allows
    assert several.get()[1] == [1.0]


def test_a_configuration_makes_the_metric_again():
    for metric in (
        mx.metric.TopKAccuracy(3, name="top"),
        mx.metric.CrossEntropy(eps=1e-3),
        mx.metric.create(["acc", "f1"]),
        mx.metric.Perplexity(2),
    ):
        again = mx.metric.create(metric.get_config())
        assert again.get_config() == metric.get_config()
        assert [n for n, _ in again.get_name_value()] == [n for n, _ in metric.get_name_value()]


def test_errors():
    with pytest.raises(
        TypeError, match=r"^Accuracy: unknown parameter 'axes'; did you mean 'axis'\? \(it takes: "
    ):
        mx.metric.Accuracy(axes=1)
    with pytest.raises(RegistryError, match="metric: 'accurracy' is unknown; did you mean 'accuracy'"):
        mx.metric.create("accurracy")
    with pytest.raises(ParamError, match="metric: must be a name or a EvalMetric, got 3"):
        mx.metric.create(3)
    with pytest.raises(ShapeError, match="Shape of labels 1 does not match shape of predictions 2"):
        mx.metric.create("acc").update(arrays([[1]]), arrays([[1], [1]]))
    with pytest.raises(ShapeError, match="Accuracy: 3 labels for 2 predictions"):
        mx.metric.create("acc").update(arrays([[1, 1, 1]]), arrays([[[0, 1], [1, 0]]]))
    with pytest.raises(ShapeError, match="CrossEntropy: 1 labels for 2 predictions"):
        mx.metric.create("ce").update(arrays([[1]]), arrays([[[0, 1], [1, 0]]]))
    with pytest.raises(ParamError, match=r"TopKAccuracy: top_k must be at least 2 .*, got 1"):
        mx.metric.TopKAccuracy(1)
    with pytest.raises(DataError, match="F1: labels must be of two classes, got"):
        mx.metric.create("f1").update(arrays([[0, 1, 2]]), arrays([np.zeros((3, 2))]))
    with pytest.raises(ParamError, match="F1: average must be 'macro' or 'micro', got 'mean'"):
        mx.metric.F1(average="mean")
    assert issubclass(RegistryError, MXNetError)


@pytest.mark.parametrize("name", ["f1", "mcc"])
def test_macro_averages_are_over_updates_not_over_arrays(name):
    metric = mx.metric.create(name, average="macro")
    labels = [np.array([1, 0]), np.array([1, 0])]
    outputs = [np.array([[0.1, 0.9], [0.5, 0.5]]), np.array([[0.85, 0.15], [1.0, 0.0]])]
    metric.update(labels, outputs)
    together = mx.metric.create(name, average="micro")
    together.update(labels, outputs)
    assert (metric.num_inst, metric.get()) == (1, together.get())


def test_pearsons_correlation_has_global_figures():
    random = np.random.default_rng(0)
    metric, whole = mx.metric.create("pearsonr"), mx.metric.create("pearsonr")
    for _ in range(3):
        label, output = random.normal(size=(2, 10))
        metric.update([label], [output])
        metric.reset_local()
        whole.update([label], [output])
    assert metric.get_global() == whole.get()
    assert np.isnan(metric.get()[1])
