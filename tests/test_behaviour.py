"""The questions of ``golden/graphs/behaviour.json``, answered by roiops as real MXNet answered them."""

import json
import warnings
from pathlib import Path

import numpy as np
import pytest

import roiops as mx

# Questions that we answer otherwise on purpose, with the reason.
SAME_SIZE = "MXNet infers a shape of another size, and fails when the graph runs"
DIFFERENT: dict[str, str] = {
    "a.squeeze().list_attr()": "MXNet's method writes out one default, its function does not",
    "cat.infer_shape_partial(a=(2, 3))": "MXNet adds up the sizes that are known as if the rest were 0",
    "flat.infer_shape_partial(a=(0, 3, 4))": "the second entry follows although the first is unknown",
    "soft.infer_type(a='float32', softmax_label='int32')": "labels may be integers",
    "reshape((1, -2))": SAME_SIZE,
    "reshape((-3, 0), True)": SAME_SIZE,
    "reshape((8, 0, 5), True)": SAME_SIZE,
}

TABLE = json.loads((Path(__file__).parent / "golden" / "graphs" / "behaviour.json").read_text())


def plain(value):
    """A value in the table's terms: types by name, tuples as lists."""
    if isinstance(value, dict):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, type | np.dtype):
        return np.dtype(value).name
    if isinstance(value, np.generic):
        return value.item()
    if value is None or isinstance(value, str | int | float | bool):
        return value
    raise TypeError(f"no plain form of {value!r}")


def answer(setup, expression):
    with mx.name.NameManager(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = {"mx": mx}
        try:
            exec(setup, names)
            return plain(eval(expression, names))
        except Exception as error:
            return {"raises": f"{type(error).__name__}: {error}"}


@pytest.mark.parametrize("entry", TABLE["questions"], ids=lambda entry: entry["topic"])
def test_answers_are_mxnets(entry):
    wrong = []
    for expression, want in entry["ask"].items():
        if expression in DIFFERENT:
            continue
        got = answer(entry["setup"], expression)
        both_raise = isinstance(want, dict) and isinstance(got, dict) and "raises" in want and "raises" in got
        if got != want and not both_raise:
            wrong.append(f"{expression}\n    MXNet:  {want}\n    roiops: {got}")
    assert not wrong, f"{len(wrong)} of {len(entry['ask'])} differ\n" + "\n".join(wrong)
