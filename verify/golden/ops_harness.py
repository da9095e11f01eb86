"""Run a table of MXNet operator calls and store each as a case: inputs, outputs, gradients, states."""

import zlib

import mxnet as mx
import numpy as np

from golden_format import CaseFile
from mxnet_peer import operator

FILES = {}
UNWRITTEN = 7.3


def golden(function):
    """Register a generator of calls; its name is the file's, and it gets a source of random arrays."""
    FILES[function.__name__.strip("_")] = function
    return function


class Draw:
    """Random arrays, float32."""

    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def normal(self, *shape):
        return self.rng.normal(size=shape).astype(np.float32)

    def uniform(self, low, high, *shape):
        return self.rng.uniform(low, high, shape).astype(np.float32)

    def distinct(self, *shape):
        """Values that all differ, for maxima and sorting; small multiples of 1/4, exact in any float type."""
        size = int(np.prod(shape))
        return ((self.rng.permutation(size) - size // 2) / 4).astype(np.float32).reshape(shape)

    def integers(self, high, *shape, low=0):
        return self.rng.randint(low, high, shape).astype(np.float32)

    def boxes(self, *shape, size=1.0):
        """Boxes x1, y1, x2, y2 within [0, size]."""
        corner = self.rng.uniform(0, 0.7, (*shape, 2))
        extent = self.rng.uniform(0.05, 0.5, (*shape, 2))
        return (np.concatenate([corner, np.minimum(corner + extent, 1)], -1) * size).astype(np.float32)


class Call:
    def __init__(self, op, inputs, settings, params):
        self.op, self.inputs, self.params = op, inputs, params
        self.label = settings.pop("label", None)
        self.train = settings.pop("train", True)
        self.backward = settings.pop("backward", True)
        self.hold = settings.pop("hold", ())
        self.aux = settings.pop("aux", {})


SETTINGS = ("label", "train", "backward", "hold", "aux")


def call(op, inputs, **params):
    """One call: arrays by argument name, or a list for an operator with any number of inputs.

    Arguments that are not given get random values of the shape that MXNet infers. Besides the operator's
    parameters: `label`, `train`, `backward`, `hold` (arguments without gradient), `aux` (states).
    """
    settings = {key: params.pop(key) for key in SETTINGS if key in params}
    if isinstance(inputs, list):
        inputs = {f"arg{index}": value for index, value in enumerate(inputs)}
    elif not isinstance(inputs, dict):
        inputs = {"data": inputs}
    return Call(op, inputs, settings, params)


def compose(entry):
    variables = {key: mx.sym.Variable(key) for key in entry.inputs}
    if "arg0" in variables:
        return operator(entry.op)(*variables.values(), name="node", **entry.params)
    return operator(entry.op)(name="node", **variables, **entry.params)


def bare(name):
    """`node_weight` -> `weight`."""
    return name[5:] if name.startswith("node_") else name


def fill(names, shapes, types, given, draw):
    arrays = {}
    for name, shape, dtype in zip(names, shapes, types):
        value = given.get(bare(name))
        arrays[name] = (draw.normal(*shape) if value is None else value).astype(dtype)
    return arrays


def record(file, entry, draw):
    symbol = compose(entry)
    shapes = {key: value.shape for key, value in entry.inputs.items()}
    arg_shapes, _, aux_shapes = symbol.infer_shape(**shapes)
    if arg_shapes is None:  # the output's depends on numbers
        arg_shapes, _, aux_shapes = symbol.infer_shape_partial(**shapes)
    arg_types, _, aux_types = symbol.infer_type(**{key: value.dtype for key, value in entry.inputs.items()})
    arguments = fill(symbol.list_arguments(), arg_shapes, arg_types, entry.inputs, draw)
    states = fill(symbol.list_auxiliary_states(), aux_shapes, aux_types, entry.aux, draw)
    nd = {key: mx.nd.array(value, dtype=value.dtype) for key, value in {**arguments, **states}.items()}
    wanted = [key for key in arguments if entry.backward and bare(key) not in entry.hold]
    gradients = {key: mx.nd.full(nd[key].shape, UNWRITTEN, dtype=nd[key].dtype) for key in wanted}
    executor = symbol.bind(
        mx.cpu(),
        {key: nd[key] for key in arguments},
        args_grad=gradients,
        grad_req={key: "write" if key in gradients else "null" for key in arguments},
        aux_states={key: nd[key] for key in states},
    )
    outputs = [output.asnumpy() for output in executor.forward(is_train=entry.train)]
    suffixes = [""] if len(outputs) == 1 else range(len(outputs))
    arrays = {bare(key): value for key, value in arguments.items()}
    arrays.update({f"aux_{bare(key)}": value for key, value in states.items()})
    arrays.update({f"out{suffix}": value for suffix, value in zip(suffixes, outputs)})
    if entry.backward:
        heads = [(draw.rng.randint(1, 17, o.shape) / 8 - 1.0625).astype(o.dtype) for o in outputs]
        executor.backward([mx.nd.array(head, dtype=head.dtype) for head in heads])
        arrays.update({f"grad_out{suffix}": head for suffix, head in zip(suffixes, heads)})
        for key, gradient in gradients.items():
            value = gradient.asnumpy()
            # A loss head leaves the gradient of its label as it was.
            if not value.size or (value != value.dtype.type(UNWRITTEN)).any():
                arrays[f"grad_{bare(key)}"] = value
    mx.nd.waitall()
    arrays.update({f"aux_{bare(key)}_after": nd[key].asnumpy() for key in states})
    label = entry.label or ", ".join(f"{key}={value}" for key, value in entry.params.items()) or "plain"
    file.add(entry.op, label, entry.params, arrays, is_train=entry.train)


def run(names, script):
    total, failed = 0, []
    for name in names or FILES:
        file = CaseFile("ops/" + name, "mxnet", mx.__version__, script)
        draw = Draw(zlib.crc32(name.encode()) % 2**31)
        for entry in FILES[name](draw):
            try:
                record(file, entry, draw)
            except mx.base.MXNetError as error:
                reason = str(error).strip().splitlines()[-1]
                failed.append(f"{name}: {entry.op} {entry.label or ''} {entry.params}: {reason}")
        file.save(quiet=True)
        total += len(file.meta["cases"])
    if failed:
        raise SystemExit("\n".join(["MXNet refused:", *failed]))
    print(f"ops: {len(names or FILES)} files, {total} cases")
