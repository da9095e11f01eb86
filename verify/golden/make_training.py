"""How MXNet trains and what it tells on the way: tests/golden/training.npz."""

import json
import logging

import mxnet as mx
import numpy as np

from golden_format import GOLDEN, write_npz


class ByName(mx.init.Initializer):
    """Weights that follow from the length of a name."""

    def _init_weight(self, desc, arr):
        arr[:] = np.random.RandomState(len(str(desc))).uniform(-0.3, 0.3, arr.shape)


class Lines(logging.Handler):
    """Keeps what is logged, without times."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.lines = []

    def emit(self, record):
        text = record.getMessage()
        if "Time cost" not in text:
            self.lines.append(text)


def data():
    random = np.random.RandomState(0)
    x = random.normal(size=(50, 6)).astype(np.float32)
    return x, (x[:, 0] > x[:, 1]).astype(np.float32) + (x[:, 2] > 0.3)


def network():
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="first")
    x = mx.sym.Activation(mx.sym.BatchNorm(x, fix_gamma=False, name="norm"), act_type="relu", name="relu")
    return mx.sym.SoftmaxOutput(mx.sym.FullyConnected(x, num_hidden=3, name="second"), name="softmax")


def shuffled(last):
    np.random.seed(4)  # noqa: NPY002
    batches = mx.io.NDArrayIter(np.arange(10.0), np.arange(10.0), 4, shuffle=True, last_batch_handle=last)
    rows = []
    for _ in range(3):
        rows += [[*batch.data[0].asnumpy(), batch.pad] for batch in batches]
        batches.reset()
    return np.array(rows)


def feed_forward():
    x, y = data()
    np.random.seed(1)  # noqa: NPY002
    seen = []
    model = mx.model.FeedForward.create(
        network(),
        x,
        y,
        ctx=[mx.cpu(0), mx.cpu(1)],
        num_epoch=3,
        initializer=ByName(),
        eval_data=(x[:20], y[:20]),
        numpy_batch_size=16,
        learning_rate=0.2,
        momentum=0.9,
        batch_end_callback=lambda each: seen.append([each.epoch, each.nbatch, each.eval_metric.get()[1]]),
    )
    return {
        "seen": np.array(seen),
        "predicted": model.predict(x[:21]),
        "score": np.array(model.score(mx.io.NDArrayIter(x, y, 10))),
        **{f"param_{name}": array.asnumpy() for name, array in model.arg_params.items()},
    }


def chain():
    """Two modules and a loss in Python, one after the other."""
    x, y = data()
    first = mx.sym.Activation(
        mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=8, name="first"), act_type="tanh"
    )
    second = mx.sym.softmax(
        mx.sym.FullyConnected(mx.sym.Variable("features"), num_hidden=3, name="second"), name="prob"
    )

    def gradient(scores, labels):
        scores, labels = scores.asnumpy(), labels.asnumpy().astype(int)
        found = np.zeros_like(scores)
        found[np.arange(len(labels)), labels] = -1 / scores[np.arange(len(labels)), labels]
        return found

    modules = mx.mod.SequentialModule()
    modules.add(mx.mod.Module(first, label_names=None))
    modules.add(mx.mod.Module(second, ["features"], None), auto_wiring=True)
    modules.add(mx.mod.PythonLossModule(grad_func=gradient), take_labels=True, auto_wiring=True)
    metric = mx.metric.create("acc")
    modules.fit(
        mx.io.NDArrayIter(x, y, 10),
        eval_metric=metric,
        num_epoch=2,
        initializer=ByName(),
        optimizer_params={"learning_rate": 0.3},
    )
    found = {f"param_{name}": array.asnumpy() for name, array in modules.get_params()[0].items()}
    return {**found, "accuracy": np.array(metric.get()[1]), "outputs": np.array(modules.output_names)}


def two_contexts():
    """After each epoch all devices have the same auxiliary states."""
    x, y = data()
    module = mx.mod.Module(network(), context=[mx.cpu(0), mx.cpu(1)])
    monitor = mx.mon.Monitor(4, pattern="second.*", sort=True)
    module.fit(
        mx.io.NDArrayIter(x, y, 10),
        eval_data=mx.io.NDArrayIter(x[::-1].copy(), y[::-1].copy(), 10),
        eval_metric=["acc", "ce"],
        num_epoch=3,
        initializer=ByName(),
        optimizer_params={"learning_rate": 0.3},
        monitor=monitor,
    )


def main():
    lines = Lines()
    logging.getLogger().addHandler(lines)
    logging.getLogger().setLevel(logging.INFO)
    meta = {"peer": "mxnet", "version": mx.__version__, "script": "make_training.py"}
    arrays = {"meta": np.array(json.dumps(meta)), "debug_str": np.array(network().debug_str())}
    for last in ("pad", "discard", "roll_over"):
        arrays[f"shuffled_{last}"] = shuffled(last)
    for name, run in (("feed_forward", feed_forward), ("chain", chain), ("two_contexts", two_contexts)):
        lines.lines = []
        for key, value in (run() or {}).items():
            arrays[f"{name}_{key}"] = value
        arrays[f"{name}_lines"] = np.array(lines.lines)
    write_npz(GOLDEN / "training.npz", arrays)


if __name__ == "__main__":
    main()
