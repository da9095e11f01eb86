"""Updates by row-sparse gradients in MXNet's optimizers and update operators: tests/golden/sparse.npz."""

import json

import mxnet as mx
import numpy as np

from golden_format import GOLDEN, write_npz

SHAPE = (5, 3)
#: The rows of the gradients of two steps; the second row that is named has zeros only.
ROWS = ((0, 1, 3), (1, 3, 4))
OPTIMIZERS = {
    "SGD": ({}, {"momentum": 0.9}, {"momentum": 0.9, "lazy_update": False}, {"clip_gradient": 0.1}),
    "Adam": ({}, {"lazy_update": False}),
    "AdaGrad": ({"wd": 0.0}, {"wd": 0.0, "clip_gradient": 0.1}),
    "Ftrl": ({},),
    "RMSProp": ({},),
    "Signum": ({},),
}
COMMON = {"learning_rate": 0.1, "wd": 0.05, "rescale_grad": 0.5}


def _states(state):
    if state is None:
        return []
    return list(state) if isinstance(state, (list, tuple)) else [state]


def main():
    random = np.random.RandomState(0)
    values = random.uniform(-1, 1, (2, 3, 3)).astype(np.float32)
    values[:, 1] = 0
    weight = random.uniform(-1, 1, SHAPE).astype(np.float32)
    gradients = [
        mx.nd.sparse.row_sparse_array((mx.nd.array(each), rows), shape=SHAPE)
        for each, rows in zip(values, ROWS)
    ]
    arrays = {"weight": weight, "values": values, "rows": np.array(ROWS)}
    cases = []
    for name, many in OPTIMIZERS.items():
        for options in many:
            for stype in ("default", "row_sparse"):
                given = {**COMMON, **options}
                optimizer = getattr(mx.optimizer, name)(**given)
                array = mx.nd.array(weight).tostype(stype)
                state = optimizer.create_state_multi_precision(0, array)
                try:
                    for gradient in gradients:
                        optimizer.update_multi_precision(0, array, gradient, state)
                except mx.MXNetError as error:
                    print(name, options, stype, "not in MXNet:", str(error).splitlines()[0])
                    continue
                number = len(cases)
                cases.append({"optimizer": name, "options": given, "stype": stype})
                arrays[f"{number}_weight"] = array.asnumpy()
                for i, each in enumerate(_states(state)):
                    arrays[f"{number}_state{i}"] = each.asnumpy()
    operators = []
    for name, states, options in (
        ("sgd_update", 0, {}),
        ("sgd_update", 0, {"lazy_update": False}),
        ("sgd_mom_update", 1, {"momentum": 0.9}),
        ("adam_update", 2, {}),
    ):
        given = {"lr": 0.1, "wd": 0.05, **options}
        array, state = mx.nd.array(weight), [mx.nd.full(SHAPE, 0.25) for _ in range(states)]
        getattr(mx.nd, name)(array, gradients[0], *state, out=array, **given)
        arrays[f"{name}{len(operators)}"] = array.asnumpy()
        operators.append({"name": name, "states": states, "options": given})
    meta = {"peer": "mxnet", "version": mx.__version__, "script": "make_sparse.py"}
    arrays["meta"] = np.array(json.dumps({**meta, "optimizers": cases, "operators": operators}))
    matrix = mx.nd.sparse.csr_matrix(([1, 2, 3], [2, 0, 1], [0, 1, 1, 3]), shape=(3, 4))
    arrays["csr"] = matrix.asnumpy()
    write_npz(GOLDEN / "sparse.npz", arrays)


if __name__ == "__main__":
    main()
