"""A converted model run in onnxruntime beside the original in roiops."""

import contextlib
import dataclasses
import os

import numpy as np

from ...errors import MXNetError
from ..compare import compare_boxes, relative_difference, split_boxes

__all__ = ["Agreement", "check", "random_inputs", "session"]

#: How far outputs may be apart, relative to the largest magnitude in them.
TOLERANCE = {np.dtype(np.float16): 2e-2, np.dtype(np.float32): 2e-5, np.dtype(np.float64): 1e-9}


@dataclasses.dataclass
class Agreement:
    """How far one output, or the boxes of a detector, are apart."""

    name: str
    worst: float
    tolerance: float
    #: For boxes: how many there are, and how many have no counterpart.
    boxes: int | None = None
    wrong: int = 0
    #: Whether scores tie: the original itself gives something else once its input changes by rounding.
    tied: bool = False

    @property
    def agrees(self) -> bool:
        """Whether the difference is within the tolerance, and every box has its counterpart."""
        return self.worst <= self.tolerance and not self.wrong


def session(model, threads: int | None = None):
    """An onnxruntime session of a ``ModelProto``, its bytes or a file, on the CPU."""
    try:
        import onnxruntime
    except ImportError:
        raise MXNetError("running ONNX needs onnxruntime: pip install onnx onnxruntime") from None
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    if threads:
        options.intra_op_num_threads = threads
    if isinstance(model, str | os.PathLike):
        model = str(model)
    elif not isinstance(model, bytes):
        model = model.SerializeToString()
    with _plain_errors():
        return onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])


@contextlib.contextmanager
def _plain_errors():
    """What onnxruntime has no kernel for, or will not run, as an error of one line."""
    try:
        yield
    except Exception as error:  # its errors share no class of their own
        raise MXNetError(f"onnxruntime cannot run the model: {' '.join(str(error).split())}") from error


def random_inputs(model, shapes: dict, seed: int = 0) -> dict:
    """Noise for each input; ``im_info`` is the size of ``data`` and a scale of 1, ``rois`` lie in image 0."""
    generator, made = np.random.default_rng(seed), {}
    for name in model.input_names:
        if name == "im_info" and name not in shapes:
            shapes = {**shapes, name: (shapes["data"][0], 3)}
        if name not in shapes:
            raise MXNetError(f"{model.source}: the check needs the shape of {name}")
        made[name] = generator.standard_normal(shapes[name]).astype(np.float32)
        if name == "im_info" and "data" in shapes:
            made[name][...] = (*shapes["data"][2:4], 1)
        if name == "rois" and "data" in shapes and shapes[name][-1] == 5:
            height, width = shapes["data"][2:4]
            corners = np.sort(generator.random((*shapes[name][:-1], 2, 2)), axis=-2) * (width, height)
            made[name][..., 0], made[name][..., 1:] = 0, corners.reshape(*shapes[name][:-1], 4)
    return made


def check(proto, model, inputs: dict) -> list[Agreement]:
    """Run both on ``inputs`` and compare every output; the rows of a detector box by box.

    Where they differ, the original runs again on inputs that differ by rounding, to tell ties from errors.

    ``proto`` is a ``ModelProto`` or a file, ``model`` the :class:`~roiops.models.archive.ArchivedModel` that
    it was made from.
    """
    running = session(proto)
    kinds = {"tensor(float16)": np.float16, "tensor(float)": np.float32, "tensor(double)": np.float64}
    feeds = {each.name: np.asarray(inputs[each.name], kinds.get(each.type)) for each in running.get_inputs()}
    with _plain_errors():  # an output that is an input has another name in the file
        got = dict(zip(model.output_names, running.run(None, feeds), strict=True))
    size = np.shape(inputs.get("data", np.empty((1, 1, 1, 1))))[2:4]
    wanted = _run(model, inputs)
    found = compare(wanted, got, size)
    if not all(each.agrees for each in found):
        moved = compare(wanted, _run(model, _rounded_otherwise(inputs)), size)
        for each, alone in zip(found, moved, strict=True):
            each.tied = not each.agrees and not alone.agrees
    return found


def _run(model, inputs) -> dict:
    return {name: array.asnumpy() for name, array in zip(model.output_names, model(**inputs), strict=True)}


def _rounded_otherwise(inputs) -> dict:
    """The inputs, each number of a picture a little larger or smaller; ``im_info`` and the like stay."""
    generator = np.random.default_rng(0)
    pictures = {name for name, a in inputs.items() if np.ndim(a) == 4} or set(inputs)
    return {
        name: a * (1 + 1e-6 * generator.choice([-1, 1], np.shape(a))).astype(np.float32)
        if name in pictures
        else a
        for name, a in inputs.items()
    }


def compare(wanted: dict, got: dict, size) -> list[Agreement]:
    """The outputs of both, compared; ``size`` is what the boxes' coordinates are relative to."""
    found = []
    tolerance = max(TOLERANCE.get(np.asarray(a).dtype, 0) for a in got.values())
    wanted = {name: np.asarray(a, np.float32) if a.dtype == np.float16 else a for name, a in wanted.items()}
    boxes, rest = split_boxes(wanted)
    if boxes is not None:
        names = [name for name in wanted if name not in rest]
        rows = np.concatenate([np.asarray(got[name], np.float32) for name in names], axis=-1)
        count, wrong, worst = compare_boxes(boxes, rows, size)
        found.append(Agreement(" ".join(names), worst, tolerance, count, wrong))
    found += [Agreement(name, relative_difference(a, got[name]), tolerance) for name, a in rest.items()]
    return found
