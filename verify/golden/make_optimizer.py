"""MXNet's training: optimizers on a small network and on bare arrays, schedules, initializers, metrics."""

import json
from pathlib import Path

import mxnet as mx
import numpy as np

from golden_format import GOLDEN, CaseFile

STEPS = 20
BATCH = 4
RNG = np.random.RandomState(20)


def network(multipliers=False):
    """Convolution, batch normalisation, pooling, a classifier; with multipliers or without."""
    weight, bias, gamma = {}, {}, {}
    if multipliers:
        weight, bias, gamma = {"lr_mult": 0.5}, {"lr_mult": 2.0, "wd_mult": 1.5}, {"lr_mult": 0.0}
    net = mx.sym.Convolution(
        mx.sym.Variable("data"),
        mx.sym.Variable("conv_weight", **weight),
        kernel=(3, 3),
        pad=(1, 1),
        num_filter=4,
        name="conv",
    )
    net = mx.sym.BatchNorm(net, mx.sym.Variable("bn_gamma", **gamma), fix_gamma=False, name="bn")
    net = mx.sym.Activation(net, act_type="relu", name="relu")
    net = mx.sym.Pooling(net, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    net = mx.sym.FullyConnected(net, bias=mx.sym.Variable("fc_bias", **bias), num_hidden=3, name="fc")
    return mx.sym.SoftmaxOutput(net, name="softmax")


def batches():
    """Three batches that the steps take in turn."""
    data = RNG.normal(size=(3, BATCH, 2, 6, 6)).astype(np.float32)
    return data, RNG.randint(3, size=(3, BATCH)).astype(np.float32)


def train(file, label, optimizer, data, labels, initial, multipliers=False, scheduler=None, **params):
    """Store the weights after 1, 2 and all steps of `mod.Module`."""
    with mx.name.NameManager():
        symbol = network(multipliers)
    module = mx.mod.Module(symbol, context=mx.cpu(), label_names=["softmax_label"])
    module.bind([("data", data.shape[1:])], [("softmax_label", labels.shape[1:])])
    args = {name: mx.nd.array(initial[name]) for name in module._param_names}
    states = {name: mx.nd.array(initial[name]) for name in symbol.list_auxiliary_states()}
    module.init_params(arg_params=args, aux_params=states)
    live = dict(params)
    if scheduler:
        kind, arguments = scheduler
        live["lr_scheduler"] = getattr(mx.lr_scheduler, kind)(**arguments)
        params["lr_scheduler"] = [kind, arguments]
    module.init_optimizer(optimizer=optimizer, optimizer_params=live)
    arrays = {"data": data, "label": labels}
    arrays.update({f"init_{name}": initial[name] for name in [*args, *states]})
    for step in range(1, STEPS + 1):
        turn = (step - 1) % len(data)
        batch = mx.io.DataBatch([mx.nd.array(data[turn])], [mx.nd.array(labels[turn])])
        module.forward_backward(batch)
        module.update()
        if step in (1, 2, STEPS):
            now = {**module.get_params()[0], **module.get_params()[1]}
            arrays.update({f"step{step}_{name}": value.asnumpy() for name, value in now.items()})
    file.add(optimizer, label, params, arrays, symbol=symbol.tojson())


def on_the_network():
    file = CaseFile("optimizer/network", "mxnet", mx.__version__, __file__)
    data, labels = batches()
    shapes = {"data": data.shape[1:], "softmax_label": labels.shape[1:]}
    symbol = network()
    initial = {}
    arg_shapes, _, aux_shapes = symbol.infer_shape(**shapes)
    names = symbol.list_arguments() + symbol.list_auxiliary_states()
    for name, shape in zip(names, arg_shapes + aux_shapes):
        if name not in shapes:
            start = 1.0 if name.endswith(("gamma", "var")) else 0.0
            initial[name] = (start + 0.3 * RNG.normal(size=shape)).astype(np.float32)
            if name.endswith("var"):
                initial[name] = np.abs(initial[name])

    def case(label, optimizer, **params):
        train(file, label, optimizer, data, labels, initial, **params)

    case("plain", "sgd", learning_rate=0.1)
    case("weight decay", "sgd", learning_rate=0.1, wd=0.01)
    case("momentum", "sgd", learning_rate=0.05, momentum=0.9, wd=1e-3)
    case("clipped", "sgd", learning_rate=0.1, momentum=0.5, clip_gradient=0.02, wd=0.01)
    case("rescaled", "sgd", learning_rate=0.1, rescale_grad=0.1)
    case("multipliers", "sgd", multipliers=True, learning_rate=0.1, momentum=0.9, wd=0.01)
    factor = ("FactorScheduler", {"step": 4, "factor": 0.5, "base_lr": 0.2})
    case("factor schedule", "sgd", learning_rate=0.2, momentum=0.9, scheduler=factor)
    cosine = ("CosineScheduler", {"max_update": 15, "base_lr": 0.2, "final_lr": 0.01, "warmup_steps": 4})
    case("cosine schedule with warm-up", "sgd", learning_rate=0.2, scheduler=cosine)
    case("plain", "nag", learning_rate=0.05)
    case("momentum", "nag", learning_rate=0.05, momentum=0.9, wd=0.01)
    case("plain", "adam", learning_rate=0.01)
    case(
        "betas, decay, clipped",
        "adam",
        learning_rate=0.01,
        beta1=0.8,
        beta2=0.99,
        wd=0.01,
        clip_gradient=0.05,
    )
    case("multipliers", "adam", multipliers=True, learning_rate=0.01, wd=0.01)
    case("plain", "rmsprop", learning_rate=0.005)
    case("centered", "rmsprop", learning_rate=0.005, centered=True, gamma1=0.9, gamma2=0.8, wd=0.01)
    case("clipped weights", "rmsprop", learning_rate=0.02, clip_weights=0.4)
    case("plain", "adagrad", learning_rate=0.05)
    case("decay", "adagrad", learning_rate=0.05, wd=0.01, eps=1e-4)
    file.save()


def on_arrays():
    """Five updates of one array with given gradients, half precision with a master copy among them."""
    file = CaseFile("optimizer/updates", "mxnet", mx.__version__, __file__)

    def case(label, name, dtype="float32", **params):
        weight = RNG.normal(size=(3, 4)).astype(dtype)
        gradients = RNG.normal(size=(5, 3, 4)).astype(dtype)
        optimizer = mx.optimizer.create(name, **params)
        live = mx.nd.array(weight, dtype=dtype)
        state = optimizer.create_state_multi_precision(0, live)
        after = []
        for gradient in gradients:
            optimizer.update_multi_precision(0, live, mx.nd.array(gradient, dtype=dtype), state)
            after.append(live.asnumpy())
        file.add(name, label, params, {"weight": weight, "gradients": gradients, "after": np.stack(after)})

    for name in ("sgd", "nag"):
        case("plain", name, learning_rate=0.1)
        case("momentum, decay", name, learning_rate=0.1, momentum=0.9, wd=0.1)
        case(
            "clipped, rescaled",
            name,
            learning_rate=0.1,
            momentum=0.9,
            wd=0.1,
            clip_gradient=0.3,
            rescale_grad=0.5,
        )
        case(
            "half precision, master copy",
            name,
            "float16",
            learning_rate=0.1,
            momentum=0.9,
            multi_precision=True,
        )
        case("float64", name, "float64", learning_rate=0.1, momentum=0.9)
    case("half precision", "sgd", "float16", learning_rate=0.1, momentum=0.9)
    case("lazy_update off", "sgd", learning_rate=0.1, momentum=0.9, lazy_update=False)
    case("plain", "adam", learning_rate=0.1)
    case("decay, clipped, rescaled", "adam", learning_rate=0.1, wd=0.1, clip_gradient=0.3, rescale_grad=0.5)
    case("begin_num_update", "adam", learning_rate=0.1, begin_num_update=10)
    case("plain", "rmsprop", learning_rate=0.1)
    case("centered", "rmsprop", learning_rate=0.1, centered=True)
    params = {"learning_rate": 0.1, "wd": 0.1, "clip_gradient": 0.3, "rescale_grad": 0.5, "clip_weights": 0.8}
    case("decay, clipped, rescaled", "rmsprop", **params)
    case("centered, decay, clipped", "rmsprop", centered=True, gamma1=0.8, gamma2=0.7, epsilon=1e-4, **params)
    case("plain", "adagrad", learning_rate=0.1)
    case(
        "decay, clipped, rescaled", "adagrad", learning_rate=0.1, wd=0.1, clip_gradient=0.3, rescale_grad=0.5
    )
    file.save()


def further_rules():
    """As ``on_arrays``, but two weights at once, as a module gives them.

    Some rules share a count among all weights, and lamb's master copy is right only in this way.
    """
    file = CaseFile("optimizer/rules", "mxnet", mx.__version__, __file__)
    rng = np.random.RandomState(21)

    def case(label, name, dtype="float32", **params):
        weights = rng.normal(size=(2, 3, 4)).astype(dtype)
        gradients = rng.normal(size=(6, 2, 3, 4)).astype(dtype)
        gradients[:, 0, 0, 0] = 0
        optimizer = mx.optimizer.create(name, **params)
        live = [mx.nd.array(weight, dtype=dtype) for weight in weights]
        update = mx.optimizer.get_updater(optimizer)
        after = []
        for pair in gradients:
            update([0, 1], [mx.nd.array(gradient, dtype=dtype) for gradient in pair], live)
            after.append([each.asnumpy() for each in live])
        arrays = {"weights": weights, "gradients": gradients, "after": np.array(after)}
        file.add(name, label, params, arrays)

    every = {"learning_rate": 0.1, "wd": 0.1, "clip_gradient": 0.3, "rescale_grad": 0.5}
    for name in ("signum", "adamax", "nadam", "ftml", "ftrl", "lamb", "dcasgd", "adadelta"):
        case("plain", name, **({} if name == "adadelta" else {"learning_rate": 0.1}))
        case("decay, clipped, rescaled", name, **every)
    case("no momentum", "signum", momentum=0.0, **every)
    case("decay apart", "signum", momentum=0.8, wd_lh=0.05, **every)
    case("betas", "adamax", beta1=0.8, beta2=0.9, **every)
    case("betas, schedule", "nadam", beta1=0.8, beta2=0.9, epsilon=1e-4, schedule_decay=0.5, **every)
    case("betas", "ftml", beta1=0.4, beta2=0.9, epsilon=1e-4, **every)
    case("cost, beta", "ftrl", lamda1=0.4, beta=2, **every)
    case("bounds", "lamb", lower_bound=0.5, upper_bound=2.0, **every)
    case("no correction", "lamb", beta1=0.8, beta2=0.9, epsilon=1e-4, bias_correction=False, **every)
    case("half precision, master copy", "lamb", "float16", learning_rate=0.1, multi_precision=True)
    case("lamda", "dcasgd", lamda=0.5, **every)
    case("rho", "adadelta", rho=0.8, epsilon=1e-3, **every)
    file.save()


def write_json(name, content):
    text = {"peer": "mxnet", "version": mx.__version__, "script": Path(__file__).name, **content}
    path = GOLDEN / "optimizer" / name
    path.write_text(json.dumps(text, indent=1, ensure_ascii=False) + "\n")
    print(f"{path.name}: {path.stat().st_size / 1e3:.0f} kB")


def schedules():
    table = []

    def case(kind, updates=40, **arguments):
        scheduler = getattr(mx.lr_scheduler, kind)(**arguments)
        rates = [float(scheduler(update)) for update in range(updates)]
        table.append({"scheduler": kind, "arguments": arguments, "rates": rates})

    case("FactorScheduler", step=5)
    case("FactorScheduler", step=5, factor=0.5, base_lr=0.4)
    case("FactorScheduler", step=3, factor=0.3, stop_factor_lr=1e-3, base_lr=0.4)
    case("FactorScheduler", step=7, factor=0.5, warmup_steps=6, warmup_begin_lr=0.01, base_lr=0.4)
    case(
        "FactorScheduler",
        step=7,
        factor=0.5,
        warmup_steps=6,
        warmup_begin_lr=0.1,
        warmup_mode="constant",
        base_lr=0.4,
    )
    case("MultiFactorScheduler", step=[4, 9, 20], factor=0.1, base_lr=0.5)
    case("MultiFactorScheduler", step=[8, 16], factor=0.5, base_lr=0.5, warmup_steps=4)
    case("PolyScheduler", max_update=30, base_lr=0.2)
    case("PolyScheduler", max_update=30, base_lr=0.2, pwr=1, final_lr=0.01, warmup_steps=5)
    case("CosineScheduler", max_update=30, base_lr=0.2)
    case("CosineScheduler", max_update=25, base_lr=0.2, final_lr=0.02, warmup_steps=5, warmup_begin_lr=0.05)
    write_json("schedules.json", {"schedules": table})


def initialized(initializer, name, shape, attrs=None):
    array = mx.nd.full(shape, -77.0)
    initializer(mx.init.InitDesc(name, attrs), array)
    return array.asnumpy()


def initializers():
    """Values where they are fixed; mean, deviation and extremes of 100,000 values where they are random."""
    exact, random, by_name = [], [], []

    def fixed(kind, shape, name="a_weight", **arguments):
        value = initialized(getattr(mx.init, kind)(**arguments), name, shape)
        exact.append(
            {
                "initializer": kind,
                "arguments": arguments,
                "name": name,
                "shape": shape,
                "value": value.tolist(),
            }
        )

    def drawn(kind, shape, **arguments):
        value = initialized(getattr(mx.init, kind)(**arguments), "a_weight", shape).astype(np.float64)
        moments = {key: float(getattr(value, key)()) for key in ("mean", "std", "min", "max")}
        random.append({"initializer": kind, "arguments": arguments, "shape": shape, **moments})

    fixed("Zero", (2, 2))
    fixed("One", (2, 2))
    fixed("Constant", (2, 2), value=0.25)
    for size in (2, 3, 4, 5):
        fixed("Bilinear", (1, 1, size, size))
    fixed("Bilinear", (2, 1, 4, 4))
    mx.random.seed(0)
    drawn("Uniform", (400, 250))
    drawn("Uniform", (400, 250), scale=0.3)
    drawn("Normal", (400, 250))
    drawn("Normal", (400, 250), sigma=0.5)
    for shape in ((400, 250), (80, 50, 5, 5)):
        drawn("Xavier", shape)
        for factor in ("avg", "in", "out"):
            drawn("Xavier", shape, rnd_type="gaussian", factor_type=factor, magnitude=2)
            drawn("Xavier", shape, rnd_type="uniform", factor_type=factor, magnitude=2.34)
        drawn("MSRAPrelu", shape)
        drawn("MSRAPrelu", shape, factor_type="in", slope=0)
    names = (
        "fc_weight fc_bias bn_gamma bn_beta bn_moving_mean bn_moving_var bn_running_mean bn_running_var "
        "fc_min fc_max data softmax_label alpha"
    )
    for name in names.split():
        try:
            value = initialized(mx.init.Constant(0.25), name, (2,)).tolist()
        except ValueError:  # no rule for such a name
            value = None
        by_name.append({"name": name, "value": value})
    attribute = mx.init.Constant(3).dumps()
    value = initialized(mx.init.Zero(), "fc_weight", (2,), {"__init__": attribute}).tolist()
    text = {
        "Constant(3)": attribute,
        "Xavier()": mx.init.Xavier().dumps(),
        "Xavier('gaussian', 'in', 2)": mx.init.Xavier("gaussian", "in", 2).dumps(),
        "MSRAPrelu()": mx.init.MSRAPrelu().dumps(),
        "Normal(0.5)": mx.init.Normal(0.5).dumps(),
        "Uniform(0.5)": mx.init.Uniform(0.5).dumps(),
        "Bilinear()": mx.init.Bilinear().dumps(),
        "Zero()": mx.init.Zero().dumps(),
        "One()": mx.init.One().dumps(),
    }
    content = {
        "fixed": exact,
        "random": random,
        "by_name_with_constant_0.25": by_name,
        "zero_with_attribute": {"attribute": attribute, "value": value},
        "dumps": text,
    }
    write_json("initializers.json", content)


def metrics():
    table = []

    def case(kind, updates, **arguments):
        """`updates` is a list of (labels, predictions), each a list of arrays."""
        metric = mx.metric.create(kind, **arguments)
        steps = []
        for labels, predictions in updates:
            metric.update([mx.nd.array(x) for x in labels], [mx.nd.array(x) for x in predictions])
            steps.append(
                {
                    "labels": [np.asarray(x).tolist() for x in labels],
                    "predictions": [np.asarray(x).tolist() for x in predictions],
                    "get": plain(metric.get()),
                }
            )
        table.append({"metric": kind, "arguments": arguments, "updates": steps})

    def plain(got):
        name, value = got
        if isinstance(name, list):
            return [name, [float(item) for item in value]]
        return [name, float(value)]

    def classes(count, size=5):
        scores = np.exp(RNG.normal(size=(size, count))).astype(np.float32)
        return [RNG.randint(count, size=size)], [np.round(scores / scores.sum(axis=1, keepdims=True), 4)]

    def values(*shape):
        return [RNG.normal(size=shape).round(3)], [RNG.normal(size=shape).round(3)]

    for name in ("acc", "accuracy"):
        case(name, [classes(3), classes(3)])
    case("accuracy", [([RNG.randint(3, size=(2, 4))], [RNG.normal(size=(2, 3, 4)).round(3)])], axis=1)
    case("accuracy", [([[0, 1, 2]], [[0, 2, 2]])])
    case("accuracy", [classes(3)], name="mine")
    case("top_k_accuracy", [classes(6), classes(6)], top_k=3)
    case("top_k_acc", [classes(6)], top_k=2)
    for name in ("mse", "rmse", "mae"):
        case(name, [values(4, 2), values(3, 2)])
        case(name, [([RNG.normal(size=4).round(3)], [RNG.normal(size=(4, 1)).round(3)])])
    for name in ("ce", "crossentropy", "nll_loss"):
        case(name, [classes(4), classes(4)])
    case("perplexity", [classes(4), classes(4)], ignore_label=None)
    case("perplexity", [classes(4), classes(4)], ignore_label=1)
    case("f1", [classes(2, 8), classes(2, 8)])
    case("f1", [classes(2, 8), classes(2, 8)], average="micro")
    case("mcc", [classes(2, 8), classes(2, 8)])
    case("pearsonr", [values(5, 1)])
    case("loss", [([[0.0]], [[1.0, 2.5, 3.0]]), ([[0.0]], [[4.0]])])
    case("accuracy", [(classes(3)[0] + classes(3)[0], classes(3)[1] + classes(3)[1])])
    case(["acc", "ce"], [classes(4), classes(4)])
    case("pcc", [classes(2, 8), classes(2, 8)])
    case("pcc", [classes(3, 9), classes(5, 9), classes(2, 9)])
    write_json("metrics.json", {"metrics": table})


def main():
    on_the_network()
    on_arrays()
    further_rules()
    schedules()
    initializers()
    metrics()


if __name__ == "__main__":
    main()
