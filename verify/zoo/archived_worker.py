"""The MXNet side of ``verify/check_archived.py``: what a saved model gives, with its parameters or others.

Called with the symbol's file, the parameters' file or ``-``, shapes as JSON, a folder for the results, and,
where not all outputs are to be computed, those that are.
"""

import json
import sys
import warnings
from pathlib import Path

warnings.filterwarnings("ignore")

import mxnet as mx  # noqa: E402
import numpy as np  # noqa: E402

import inputs  # noqa: E402


def main(symbol_file, params_file, shapes, folder, *outputs):
    folder, shapes = Path(folder), {key: tuple(shape) for key, shape in json.loads(shapes).items()}
    symbol = mx.sym.load(symbol_file)
    if outputs:
        symbol = mx.sym.Group([symbol.get_internals()[name] for name in outputs])
    names, states = symbol.list_arguments(), symbol.list_auxiliary_states()
    held = {}
    if params_file != "-":
        for key, value in mx.nd.load(params_file).items():
            held[key.split(":", 1)[-1]] = value.asnumpy()
    known = {key: shape for key, shape in shapes.items() if key in names}
    arg_shapes, _, aux_shapes = symbol.infer_shape(**known)
    if arg_shapes is None or aux_shapes is None:
        raise ValueError("the shapes of its parameters do not follow from those of its inputs")
    every = dict(zip(names + states, arg_shapes + aux_shapes))
    given = {key: every[key] for key in known}
    wanted = {key: shape for key, shape in every.items() if key not in held and key not in given}
    values = inputs.make_weights(symbol.tojson(), wanted, Path(symbol_file).name)
    values.update({key: held[key] for key in every if key in held})
    for key, shape in given.items():
        random = inputs.generator(key)
        drawn = random.randint(1, 10, shape) if key == "label" else random.uniform(-1, 1, shape)
        values[key] = drawn.astype(np.float32)
    arrays = {key: mx.nd.array(value, dtype=value.dtype) for key, value in values.items()}
    executor = symbol.bind(
        mx.cpu(),
        {key: arrays[key] for key in names},
        grad_req="null",
        aux_states={key: arrays[key] for key in states},
    )
    outputs = executor.forward(is_train=False)
    np.savez(folder / "values.npz", **values)
    np.savez(folder / "expected.npz", **{k: v.asnumpy() for k, v in zip(symbol.list_outputs(), outputs)})


if __name__ == "__main__":
    main(*sys.argv[1:])
