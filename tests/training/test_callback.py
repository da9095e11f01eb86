"""Callbacks: when they speak and what they write."""

import itertools
from types import SimpleNamespace

import roiops as mx


def param(nbatch, metric=None, epoch=0):
    return SimpleNamespace(epoch=epoch, nbatch=nbatch, eval_metric=metric, locals={})


def counted():
    """A metric that stands at one half."""
    metric = mx.metric.create("acc")
    metric.add(1, 2)
    return metric


def test_speedometer_speaks_every_few_batches(caplog, monkeypatch):
    caplog.set_level("INFO")
    clock = itertools.count(5)  # seconds: it is read at the first batch and for each line
    monkeypatch.setattr("time.perf_counter", lambda: next(clock))
    meter = mx.callback.Speedometer(batch_size=4, frequent=2)
    metric = counted()
    for nbatch in range(5):
        meter(param(nbatch, metric))
        metric.add(1, 1)
    assert caplog.messages == [
        "Epoch[0] Batch [0-2]\tSpeed: 8.00 samples/sec\taccuracy=0.750000",
        "Epoch[0] Batch [2-4]\tSpeed: 8.00 samples/sec\taccuracy=1.000000",  # since the line before
    ]
    caplog.clear()
    meter(param(0, epoch=1))
    meter(param(2, epoch=1))
    assert caplog.records[0].message.startswith("Iter[1] Batch [2]\tSpeed: ")


def test_speedometer_without_reset(caplog):
    caplog.set_level("INFO")
    meter = mx.callback.Speedometer(1, 1, auto_reset=False)
    metric = counted()
    for nbatch in range(3):
        meter(param(nbatch, metric))
    assert "Batch [0-1]" in caplog.text
    assert "Batch [0-2]" in caplog.text
    assert metric.num_inst == 2


def test_log_train_metric(caplog):
    caplog.set_level("INFO")
    callback = mx.callback.log_train_metric(2, auto_reset=True)
    metric = counted()
    callback(param(1, metric))
    assert not caplog.records
    callback(param(2, metric))
    assert caplog.messages == ["Iter[0] Batch[2] Train-accuracy=0.500000"]
    assert metric.num_inst == 0
    callback(param(4))
    assert len(caplog.messages) == 1, "there is no metric"
    metric = counted()
    mx.callback.log_train_metric(2)(param(2, metric))
    assert metric.num_inst == 2


def test_validation_metrics(caplog):
    caplog.set_level("INFO")
    for metric in (None, counted()):
        mx.callback.LogValidationMetricsCallback()(param(0, metric, epoch=3))
    assert caplog.messages == ["Epoch[3] Validation-accuracy=0.500000"]


def test_progress_bar(caplog):
    caplog.set_level("INFO")
    bar = mx.callback.ProgressBar(total=4, length=8)
    bar(param(0))
    bar(param(3))
    assert caplog.messages == ["[==------] 25%", "[========] 100%"]


def test_checkpoints(tmp_path):
    symbol = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=1, name="fc")
    prefix = str(tmp_path / "net")
    callback = mx.callback.do_checkpoint(prefix, period=2)
    for epoch in range(4):
        callback(epoch, symbol, {"fc_weight": mx.nd.array([[epoch]])}, {})
    assert sorted(p.name for p in tmp_path.iterdir()) == [
        "net-0002.params",
        "net-0004.params",
        "net-symbol.json",
    ]
    loaded, args, aux = mx.model.load_checkpoint(prefix, 4)
    assert loaded.list_arguments() == symbol.list_arguments()
    assert args["fc_weight"].asnumpy().tolist() == [[3]]
    assert aux == {}
