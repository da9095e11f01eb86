"""Damaged graphs that still bind are run, forward and backward, on any numbers."""

import json
import warnings

import numpy as np

import roiops as mx
from roiops.errors import MXNetError

from . import files

NUMBERS = np.array([0, -1, 1, 2.5, 1e9, -1e9, 2**31, 2**63, 1e30, -1e30, np.inf, -np.inf, np.nan], np.float64)
_MOST = 1 << 20


def _sources() -> list[tuple[str, dict[str, tuple]]]:
    """Each golden graph with the shapes of its inputs."""
    found = []
    for folder in ("graphs", "legacy"):
        for path in sorted((files.GOLDEN / folder).glob("*.json")):
            arrays = path.with_suffix(".npz")
            if not arrays.exists():
                continue
            with np.load(arrays) as held:
                names = [name for name in held.files if name.startswith("arg/")]
                found.append((path.read_text(), {name[4:]: held[name].shape for name in names}))
    return found


def _fill(executor, rng) -> None:
    wild = rng.random() < 0.5
    for array in [*executor.arg_arrays, *executor.aux_arrays]:
        values = rng.standard_normal(array.shape) * 2
        if wild and values.size:
            places = rng.integers(values.size, size=max(1, values.size // 8))
            values.reshape(-1)[places] = rng.choice(NUMBERS, places.size)
        array.data[...] = values.astype(array.dtype)


def executions(seed: int):
    """A graph with other attributes, operators or inputs, bound to the shapes of the original."""
    sources, operators = _sources(), mx.registry.list_operators(aliases=True)

    def case(number: int) -> str:
        rng = np.random.default_rng([seed, number])
        text, shapes = sources[rng.integers(len(sources))]
        document = json.loads(text)
        files.damage_document(document, rng, operators)
        try:
            symbol = mx.sym.load_json(json.dumps(document))
            names = symbol.list_arguments()
            given = {name: shape for name, shape in shapes.items() if name in names}
            inner = symbol.get_internals().infer_shape_partial(**given)
            if sum(int(np.prod(shape)) for each in inner for shape in each) > _MOST:
                return "too large"
            executor = symbol.simple_bind(mx.cpu(), **given)
        except MXNetError:
            return "refused"
        with np.errstate(all="ignore"):
            _fill(executor, rng)
        try:
            outputs = executor.forward(is_train=True)
            executor.backward([mx.nd.ones(out.shape, dtype=out.dtype) for out in outputs])
        except MXNetError:
            return "refused when run"
        return "run"

    def quiet(number: int) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # shapes that are not known, casts of NaN: MXNet warns, too
            return case(number)

    return quiet
