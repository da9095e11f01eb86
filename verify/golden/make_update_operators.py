"""MXNet's update operators, one step each: tests/golden/optimizer/update_operators.npz.

python verify/golden/make.py update_operators
"""

import mxnet as mx
import numpy as np

from golden_format import CaseFile

COMMON = {"lr": 0.1, "wd": 0.01, "rescale_grad": 0.5}
#: Operator, its states, and settings beside those of all.
CALLS = [
    ("sgd_update", (), {}),
    ("sgd_mom_update", ("mom",), {"momentum": 0.9}),
    ("nag_mom_update", ("mom",), {"momentum": 0.9}),
    ("signsgd_update", (), {}),
    ("signum_update", ("mom",), {"momentum": 0.9, "wd_lh": 0.02}),
    ("adam_update", ("mean", "var"), {"beta1": 0.8}),
    ("rmsprop_update", ("n",), {"gamma1": 0.8}),
    ("rmsprop_update", ("n",), {"clip_weights": 0.4}),
    ("rmspropalex_update", ("n", "g", "delta"), {"gamma1": 0.8, "gamma2": 0.7}),
    ("ftrl_update", ("z", "n"), {"lamda1": 0.3}),
    ("ftml_update", ("d", "v", "z"), {"t": 3}),
]


def main():
    random = np.random.RandomState(0)
    file = CaseFile("optimizer/update_operators", "mxnet", mx.__version__, "make_update_operators.py")
    for name, states, settings in CALLS:
        clip = "clip_grad" if name == "ftml_update" else "clip_gradient"
        for bound in (-1.0, 0.2):
            arrays = {key: random.uniform(-1, 1, (3, 4)).astype(np.float32) for key in ("weight", "grad")}
            arrays.update({key: random.uniform(0.6, 1, (3, 4)).astype(np.float32) for key in states})
            if "g" in arrays:  # below the root of n
                arrays["g"] *= 0.5
            params = {**COMMON, **settings, clip: bound}
            nd = {key: mx.nd.array(value) for key, value in arrays.items()}
            out = getattr(mx.nd, name)(*nd.values(), **params)
            arrays["out"] = out.asnumpy()
            arrays.update({f"{key}_after": nd[key].asnumpy() for key in states})
            file.add(name, f"{clip}={bound}", params, arrays)
    file.save()


if __name__ == "__main__":
    main()
