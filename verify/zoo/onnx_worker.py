"""The roiops and onnxruntime side of ``verify/check_onnx.py`` and of ``verify/check_engines.py``.

It sees only the files that MXNet left.
"""

import contextlib
import json
import sys
import time
import traceback
from pathlib import Path

import numpy as np
import roiops
from roiops.models import archive
from roiops.models import onnx as roiops_onnx
from roiops.models.onnx.check import compare, session

import custom_onnx
import custom_ops
import inputs

custom_ops.register(roiops)
assert custom_onnx.__doc__  # registers their lowerings


def _run(running, feeds):
    names = [each.name for each in running.get_outputs()]
    wanted = {each.name: np.asarray(feeds[each.name], np.float32) for each in running.get_inputs()}
    return dict(zip(names, running.run(names, wanted), strict=True))


def _read(folder):
    """The model that MXNet left, and the inputs that it asks for."""
    with np.load(folder / "inputs.npz") as file:
        data = dict(file)
    model = archive.load(folder / "model-symbol.json", folder / "model-0000.params")
    return model, {name: array for name, array in data.items() if name in model.input_names}


def _written(model, data, opset=None):
    conversion = roiops_onnx.prepare(model, {name: array.shape for name, array in data.items()}, opset=opset)
    return roiops_onnx.write.proto(conversion), conversion


def _forget_peak():
    with contextlib.suppress(OSError):  # Linux only
        Path("/proc/self/clear_refs").write_text("5")


def _peak():
    """The most memory, in bytes, that this process has held since; None where that is not known."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM"):
                return int(line.split()[1]) * 1024
    return None


def convert(folder, choices, size, threads, target):
    """Convert, write with every check, run in both, and compare; then again with choices given if need be."""
    _forget_peak()
    model, data = _read(folder)
    start = time.perf_counter()
    made, conversion = _written(model, data)
    files = roiops_onnx.write.save(made, target)  # checks with full inference of shapes
    peak = _peak()
    seconds, bytes_ = time.perf_counter() - start, sum(path.stat().st_size for path in files)
    del made
    executor = model.bind(**{name: array.shape for name, array in data.items()})
    outputs = executor.forward(is_train=False, **data)
    wanted = {name: a.asnumpy() for name, a in zip(model.output_names, outputs, strict=True)}
    found = compare(wanted, _run(session(target, threads), data), size)
    answer = {
        **_summary(found),
        "opset": conversion.graph.opset,
        "bytes": bytes_,
        "seconds": seconds,
        "peak": peak,
    }
    if not answer["agrees"] and choices:
        alone = {key: answer[key] for key in ("worst", "boxes", "wrong")}
        answer.update(_given_choices(folder, model, data, choices, wanted, size, threads), own_choices=alone)
    return answer


def write(folder, target, opset):
    """Write the model and, in an ``.npz`` file, its inputs; which operators of ONNX it has."""
    model, data = _read(folder)
    return _write(*_written(model, data, opset), data, target)


def _write(made, conversion, data, target):
    target.write_bytes(made.SerializeToString())
    wanted = {value.name: np.asarray(data[value.name], np.float32) for value in conversion.inputs}
    np.savez(target.with_suffix(".inputs.npz"), **wanted)
    operators = sorted({node.op_type for node in made.graph.node})
    return {"opset": conversion.graph.opset, "operators": operators}


def write_given(folder, choices, target, opset):
    """The same, but the operators that select boxes get what they got in roiops; and roiops's outputs."""
    model, data = _read(folder)
    chosen, given = _chosen(folder, model, data, choices)
    outputs = dict(zip(model.output_names, (a.asnumpy() for a in model(**data)), strict=True))
    np.savez(target.with_suffix(".expected.npz"), **outputs, **chosen)
    return _write(*_written(given, {**data, **chosen}, opset), {**data, **chosen}, target)


def _summary(found):
    return {
        "worst": max((each.worst for each in found), default=0.0),
        "agrees": all(each.agrees for each in found),
        "boxes": next((each.boxes for each in found if each.boxes is not None), None),
        "wrong": sum(each.wrong for each in found),
    }


def _given_choices(folder, model, data, choices, wanted, size, threads):
    """The operators that select boxes get what they got in roiops, all else is the graph's own."""
    chosen, given = _chosen(folder, model, data, choices)
    made, _ = _written(given, {**data, **chosen})
    running = session(made, threads)
    feeds = {
        each.name: np.asarray({**data, **chosen}[each.name], np.float32) for each in running.get_inputs()
    }
    got = dict(zip([*wanted, *chosen], running.run(None, feeds), strict=True))
    outputs = compare(wanted, {name: got[name] for name in wanted}, size)
    heads = compare(chosen, {name: got[name] for name in chosen}, size)
    return _summary([*outputs, *heads])


def _chosen(folder, model, data, choices):
    """What the operators that select boxes get in roiops, and the model that takes that as inputs."""
    internals = model.symbol.get_internals()
    names = internals.list_outputs()
    group = roiops.sym.Group(internals[inputs.internal_number(names, head)] for head in choices.values())
    part = archive.ArchivedModel(group, model.params)
    fed = {name: array for name, array in data.items() if name in part.input_names}
    chosen = {name: a.asnumpy().copy() for name, a in zip(choices, part(**fed), strict=True)}
    text = inputs.given_choices((folder / "model-symbol.json").read_text(), list(choices.values()))
    return chosen, archive.ArchivedModel(roiops.sym.load_json(text), model.params)


def _answer(request):
    do, folder = request["do"], Path(request.get("folder", ""))
    if do == "convert":
        target = Path(request["target"])
        return convert(folder, request["choices"], request["size"], request["threads"], target)
    if do == "write":
        return write(folder, Path(request["target"]), request["opset"])
    assert do == "write_given"
    return write_given(folder, request["choices"], Path(request["target"]), request["opset"])


def main():
    for line in sys.stdin:
        request = json.loads(line)
        try:
            answer = _answer(request)
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
