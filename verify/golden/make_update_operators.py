"""MXNet's optimizers and update operators, sixty steps from states of zeros: optimizer/steps.npz.

python verify/golden/make.py update_operators
"""

import mxnet as mx
import numpy as np

from golden_format import CaseFile

STEPS = 60
#: The steps after which weight and states are kept.
KEPT = (1, 2, 10, STEPS)
ODD = {"wd": 0.03, "clip_gradient": 0.4, "rescale_grad": 0.7}

#: Update operator, its states, and settings beside the learning rate.
OPERATORS = [
    ("sgd_update", 0, {}),
    ("sgd_mom_update", 1, {}),
    ("sgd_mom_update", 1, {"momentum": 0.9}),
    ("nag_mom_update", 1, {}),
    ("nag_mom_update", 1, {"momentum": 0.9}),
    ("signsgd_update", 0, {}),
    ("signum_update", 1, {}),
    ("signum_update", 1, {"momentum": 0.9, "wd_lh": 0.02}),
    ("adam_update", 2, {}),
    ("adam_update", 2, {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4}),
    ("rmsprop_update", 1, {}),
    ("rmsprop_update", 1, {"gamma1": 0.8, "epsilon": 1e-4, "clip_weights": 0.5}),
    ("rmspropalex_update", 3, {}),
    ("rmspropalex_update", 3, {"gamma1": 0.8, "gamma2": 0.7, "epsilon": 1e-4, "clip_weights": 0.5}),
    ("ftrl_update", 2, {}),
    ("ftrl_update", 2, {"lamda1": 0.3, "beta": 0.5}),
    ("ftml_update", 3, {}),
    ("ftml_update", 3, {"beta1": 0.4, "beta2": 0.9, "epsilon": 1e-4}),
]

#: The same on float16 weights with a float32 copy, after the states.
WITH_COPY = [
    ("mp_sgd_update", 0, {}),
    ("mp_sgd_mom_update", 1, {"momentum": 0.9}),
    ("mp_nag_mom_update", 1, {"momentum": 0.9}),
]

#: The same on several weights: name, states, whether each has a float32 copy, settings.
OF_MANY = [
    ("multi_sgd_update", 0, False, {}),
    ("multi_sgd_mom_update", 1, False, {"momentum": 0.9}),
    ("multi_mp_sgd_update", 0, True, {}),
    ("multi_mp_sgd_mom_update", 1, True, {"momentum": 0.9}),
]

#: Optimizer and settings.
OPTIMIZERS = [
    ("sgd", {}),
    ("sgd", {"momentum": 0.9}),
    ("sgd", {"momentum": 0.9, "lazy_update": False}),
    ("nag", {}),
    ("nag", {"momentum": 0.9}),
    ("signum", {}),
    ("signum", {"momentum": 0.0}),
    ("signum", {"momentum": 0.8, "wd_lh": 0.05}),
    ("adam", {}),
    ("adam", {"beta1": 0.8, "beta2": 0.99, "epsilon": 1e-4}),
    ("adagrad", {}),
    ("adagrad", {"eps": 1e-3}),
    ("rmsprop", {}),
    ("rmsprop", {"gamma1": 0.8, "epsilon": 1e-4, "clip_weights": 0.5}),
    ("rmsprop", {"centered": True}),
    ("rmsprop", {"centered": True, "gamma1": 0.8, "gamma2": 0.7, "epsilon": 1e-4, "clip_weights": 0.5}),
    ("adadelta", {}),
    ("adadelta", {"rho": 0.8, "epsilon": 1e-3}),
    ("adamax", {}),
    ("adamax", {"beta1": 0.8, "beta2": 0.9}),
    ("nadam", {}),
    ("nadam", {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-4, "schedule_decay": 0.5}),
    ("ftml", {}),
    ("ftml", {"beta1": 0.4, "beta2": 0.9, "epsilon": 1e-4}),
    ("ftrl", {}),
    ("ftrl", {"lamda1": 0.3, "beta": 0.5}),
    ("lamb", {}),
    ("lamb", {"lower_bound": 0.5, "upper_bound": 1.0}),
    ("lamb", {"beta1": 0.8, "beta2": 0.9, "epsilon": 1e-4, "bias_correction": False}),
    ("dcasgd", {}),
    ("dcasgd", {"lamda": 0.5}),
]
#: MXNet makes the states of these in float32 alone, and refuses weights of another type.
FLOAT32_STATES = ("adagrad", "rmsprop", "adadelta", "ftrl")


def arrays(dtype):
    """A weight, and gradients of many sizes: one stays zero, one is tiny, one is cut by any clipping."""
    random = np.random.RandomState(35)
    sizes = np.array([1, 1, 1, 0.1, 0.01, 1e-4, 10, 0])
    weight = random.normal(size=sizes.size)
    return weight.astype(dtype), (random.normal(size=(STEPS, sizes.size)) * sizes).astype(dtype)


def operator_case(file, name, count, dtype, settings, copy=False):
    weight, gradients = arrays(dtype)
    if name == "ftml_update" and "clip_gradient" in settings:
        settings = {**settings, "clip_grad": settings["clip_gradient"]}
        del settings["clip_gradient"]
    live = mx.nd.array(weight, dtype=dtype)
    states = [mx.nd.zeros(weight.shape, dtype="float32" if copy else dtype) for _ in range(count)]
    states += [mx.nd.array(weight, dtype="float32")] if copy else []
    kept = {"weights": [], **{f"states{i}": [] for i in range(len(states))}}
    for step, gradient in enumerate(gradients, 1):
        more = {"t": step} if name == "ftml_update" else {}
        given = mx.nd.array(gradient, dtype=dtype)
        getattr(mx.nd, name)(live, given, *states, out=live, **settings, **more)
        if step in KEPT:
            for values, array in zip(kept.values(), [live, *states]):
                values.append(array.asnumpy())
    # Once more, into another array, which matters to nag_mom_update.
    kept["apart"] = getattr(mx.nd, name)(live, given, *states, **settings, **more).asnumpy()
    file.add(name, f"{dtype} {settings}", settings, kept)


def many_case(file, name, count, copy, dtype, settings):
    """Two weights, the second the first turned around, with their own rates."""
    weight, gradients = arrays(dtype)
    groups = []
    for values in (weight, weight[::-1]):
        states = [mx.nd.zeros(values.shape, dtype="float32" if copy else dtype) for _ in range(count)]
        states += [mx.nd.array(values, dtype="float32")] if copy else []
        groups.append([mx.nd.array(values, dtype=dtype), None, *states])
    kept = {"weights": []}
    for step, gradient in enumerate(gradients, 1):
        groups[0][1], groups[1][1] = (mx.nd.array(g, dtype=dtype) for g in (gradient, gradient[::-1]))
        out = [group[0] for group in groups]
        getattr(mx.nd, name)(*groups[0], *groups[1], out=out, num_weights=2, **settings)
        if step in KEPT:
            kept["weights"].append([each.asnumpy() for each in out])
    file.add(name, f"{dtype} {settings}", settings, kept)


def lamb_phases(file, dtype, settings, bounds):
    weight, gradients = arrays(dtype)
    live = mx.nd.array(weight, dtype=dtype)
    mean, var = (mx.nd.zeros(weight.shape, dtype=dtype) for _ in range(2))
    kept = {"weights": []}
    for step, gradient in enumerate(gradients, 1):
        given = mx.nd.array(gradient, dtype=dtype)
        g = mx.nd.lamb_update_phase1(live, given, mean, var, t=step, **settings)
        mx.nd.lamb_update_phase2(live, g, live.norm(), g.norm(), lr=0.05, out=live, **bounds)
        if step in KEPT:
            kept["weights"].append(live.asnumpy())
    file.add("lamb_update", f"{dtype} {settings} {bounds}", {**settings, **bounds}, kept)


def optimizer_case(file, name, dtype, settings):
    weight, gradients = arrays(dtype)
    optimizer = mx.optimizer.create(name, **settings)
    live = mx.nd.array(weight, dtype=dtype)
    update = mx.optimizer.get_updater(optimizer)
    weights = []
    for step, gradient in enumerate(gradients, 1):
        # As a module calls it, with a list: lamb's master copy is right only so.
        update([0], [mx.nd.array(gradient, dtype=dtype)], [live])
        if step in KEPT:
            weights.append(live.asnumpy())
    file.add(name, f"{dtype} {settings}", settings, {"weights": weights})


def main():
    file = CaseFile("optimizer/steps", "mxnet", mx.__version__, "make_update_operators.py")
    for dtype in ("float16", "float32", "float64"):
        weight, gradients = arrays(dtype)
        file.add("arrays", dtype, {}, {"weight": weight, "gradients": gradients})
    for odd in ({}, ODD, {"clip_gradient": 0.0, "wd": 0.03}):
        without_wd = {name: value for name, value in odd.items() if name != "wd"}
        for dtype in ("float16", "float32", "float64"):
            for name, count, settings in OPERATORS:
                operator_case(file, name, count, dtype, {"lr": 0.05, **odd, **settings})
            for name, count, copy, settings in OF_MANY:
                if copy == (dtype == "float16"):
                    many_case(
                        file,
                        name,
                        count,
                        copy,
                        dtype,
                        {**without_wd, **settings, "lrs": [0.05, 0.02], "wds": [0.03, 0.01]},
                    )
            for name, settings in OPTIMIZERS:
                if dtype != "float32" and name in FLOAT32_STATES:
                    continue
                rate = {} if name == "adadelta" else {"learning_rate": 0.05}
                optimizer_case(file, name, dtype, {**rate, **odd, **settings})
                if dtype == "float16" and name not in ("dcasgd", "adadelta"):
                    optimizer_case(file, name, dtype, {**rate, **odd, **settings, "multi_precision": True})
        for name, count, settings in WITH_COPY:
            operator_case(file, name, count, "float16", {"lr": 0.05, **odd, **settings}, copy=True)
        lamb_phases(file, "float32", {"wd": 0.0, **odd}, {})
        bounds = {"lower_bound": 0.5, "upper_bound": 1}
        lamb_phases(
            file,
            "float32",
            {"wd": 0.0, **odd, "bias_correction": False},
            bounds,
        )
    file.save()


if __name__ == "__main__":
    main()
