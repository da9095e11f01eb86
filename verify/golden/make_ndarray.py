"""NDArray's slices and arithmetic: small random programs, and what MXNet 1.9.1 had after each step.

`ndarray/indexing.json` holds programs of slicing, assigning and writing through slices, which show what
shares memory. A program is the shape of an array that starts as 0, 1, 2, ... and its steps, each
[action, index, value, shape of the part or null, the array afterwards, flat]. Actions: "write" the value to
the part that the index gives, "add" it to that part, "assign" it to the array at the index. An index is a
list of numbers, of ["slice", start, stop, step], of null (a new axis) and "..."; or ["rows", ...].
"""

import json
import random

import mxnet as mx
import numpy as np

from golden_format import GOLDEN

PROGRAMS = 240


def random_part(rng, extent):
    start = rng.randrange(extent)
    return rng.choice(
        [
            rng.randrange(-extent, extent),
            ["slice", None, None, None],
            ["slice", start, rng.randrange(start + 1, extent + 1), None],
            ["slice", None, None, rng.choice([2, -1])],
            ["slice", rng.choice([0, -1]), None, None],
        ]
    )


def random_index(rng, shape):
    index = [random_part(rng, extent) for extent in shape[: rng.randint(1, len(shape))]]
    if rng.random() < 0.15:
        index.insert(rng.randint(0, len(index)), None)
    if rng.random() < 0.2:
        index.insert(rng.randint(0, len(index)), "...")
    return index


def decoded(index):
    if index[0] == "rows":
        return index[1:]
    parts = tuple(
        slice(*part[1:]) if isinstance(part, list) else Ellipsis if part == "..." else part for part in index
    )
    return parts[0] if len(parts) == 1 else parts


def act(array, action, index, value):
    """Do one step on an NDArray and say what shape the part had."""
    if action == "assign":
        array[decoded(index)] = value
        return None
    part = array[decoded(index)]
    if action == "write":
        part[:] = value
    else:
        part += value
    return list(part.shape)


def main():
    programs = []
    for seed in range(PROGRAMS):
        rng = random.Random(seed)
        shape = [rng.randint(1, 4) for _ in range(rng.randint(1, 3))]
        array = mx.nd.array(np.arange(np.prod(shape)).reshape(shape))
        steps = []
        for value in (100, 200, 300, 400):
            action = rng.choice(["write", "add", "assign"])
            index = random_index(rng, shape)
            if rng.random() < 0.2:
                index = ["rows", rng.randrange(shape[0]), rng.randrange(shape[0])]
            try:
                part = act(array, action, index, value)
            except (mx.MXNetError, IndexError):  # empty slices, which MXNet lacks; out of bounds
                continue
            steps.append([action, index, value, part, [int(each) for each in array.asnumpy().ravel()]])
        programs.append({"shape": shape, "steps": steps})
    path = GOLDEN / "ndarray" / "indexing.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    meta = {"peer": "mxnet", "version": mx.__version__, "script": "make_ndarray.py"}
    lines = ",\n".join(json.dumps(program, separators=(",", ":")) for program in programs)
    path.write_text(f'{{"meta": {json.dumps(meta)},\n"programs": [\n{lines}\n]}}\n')
    print(f"{path.name}: {len(programs)} programs, {path.stat().st_size / 1e3:.0f} kB")


if __name__ == "__main__":
    main()
