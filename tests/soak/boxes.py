"""Hostile boxes for every ROI operator, dialect and dtype: arrays with guarded surroundings, and what must hold."""

import os

import numpy as np
from roi_cases import OTHERS, SEPARABLE, internal_name, with_sizes

from roiops import context, registry
from roiops.errors import DataError
from roiops.operators.base import OpContext
from roiops.operators.imperative import Invocation

DTYPES = ("float32", "float32", "float64", "float16")
NUMBERS = np.array(
    [
        0, -0.0, 0.5, 1, -1, 2.5, 7, 15.999999, 16, 63, 1e3, -1e3, 1e9, -1e9, 2**31, -(2**31), 2**63, 1e18, 1e30,
        -1e30, 3.4e38, -3.4e38, 1e-30, np.inf, -np.inf, np.nan,
    ]
)  # fmt: skip
_GUARD = 256


class Guarded:
    """An array in the middle of a larger one whose ends must not change; as floats they are NaN."""

    def __init__(self, value, strided: bool = False):
        value = np.asarray(value)
        self.block = np.full(value.nbytes * (2 if strided else 1) + 2 * _GUARD, 0xFF, np.uint8)
        inner = self.block[_GUARD : len(self.block) - _GUARD].view(value.dtype)
        self.array = inner[::2].reshape(value.shape) if strided else inner.reshape(value.shape)
        self.array[...] = value
        self.outside = self.block.copy()
        self.before = self.array.copy()

    def check(self, name: str, *, unchanged: bool = False) -> None:
        around = self.block.copy()
        np.ndarray(self.array.shape, self.array.dtype, around, _GUARD, self.array.strides)[...] = self.before
        if not np.array_equal(around, self.outside):
            raise AssertionError(f"{name}: memory around the array has changed")
        if unchanged and self.array.tobytes() != self.before.tobytes():
            raise AssertionError(f"{name}: an input has changed")


def hostile_rois(rng, count: int, images: int, height: int, width: int, scale: float, columns: int):
    """Rows of boxes: reasonable ones, and ones with any number anywhere."""
    corners = rng.uniform(-0.3, 1.3, (count, columns - 1)) * max(height, width) / max(scale, 1e-3)
    rois = np.concatenate([rng.integers(0, max(images, 1), (count, 1)), corners], axis=1)
    for row in rois:
        kind = rng.integers(6)
        if kind == 0:
            row[1:] = rng.choice(NUMBERS, columns - 1)
        elif kind == 1:
            row[rng.integers(1, columns)] = rng.choice(NUMBERS)
        elif kind == 2:
            row[3:5] = row[1:3]
        elif kind == 3:
            row[1:] = np.round(row[1:] * 2) / 2
    if rng.random() < 0.4 and count:
        rois[rng.integers(count), 0] = rng.choice([-1, -0.5, -1e30, 0.9])
    if rng.random() < 0.1 and count:
        rois[rng.integers(count), 0] = rng.choice([images, 1e30, np.inf, -np.inf, np.nan, 2.0**31, 2.0**63])
    return rois


def _deformable(rng, params, channels):
    return {
        **params,
        "output_dim": channels,
        "group_size": 2,
        "pooled_size": int(rng.integers(1, 5)),
        "part_size": int(rng.integers(0, 4)),
        "sample_per_part": int(rng.integers(1, 5)),
        "trans_std": 0.1,
    }


OPERATORS = [
    *SEPARABLE,
    ("contrib.DeformablePSROIPooling", "_contrib_DeformablePSROIPooling", {"no_trans": True}),
    ("contrib.DeformablePSROIPooling/trans", "_contrib_DeformablePSROIPooling", {}),
    *(
        (row.name, internal_name(row.operator), row.parameters)
        for row in OTHERS
        if row.operator != "contrib.DeformablePSROIPooling"
    ),
]


_OTHERS = {internal_name(row.operator) for row in OTHERS}


def _others(name, params, pooled, scale, ratio, channels):
    """The parameters of an operator whose boxes are not pooled axis by axis."""
    params = {**params, "pooled_size": pooled}
    if name == "CropAndResize":
        return params
    params["sampling_ratio"] = ratio
    if name == "MultiScaleROIAlign":
        scale = scale or 1.0
        return {**params, "num_args": 3, "spatial_scales": (scale, scale / 2)}
    if name == "RiROIAlign":
        params["num_orientations"] = channels
    return {**params, "spatial_scale": scale}


def _case(rng, number: int, device, dtypes):
    row, name, params = OPERATORS[number % len(OPERATORS)]
    dtype = np.dtype(dtypes[(number // len(OPERATORS)) % len(dtypes)])
    pooled = tuple(rng.integers(1, 5, 2).tolist())
    channels = int(rng.choice([1, 2, 3, 9]))
    groups = int(rng.integers(1, 5))
    if "Deformable" in name or params.get("dialect") in ("mxnet", "rfcn"):
        pooled = (pooled[0], pooled[0])
    ratio = int(rng.choice([0, 0, 1, 2, 5]))
    if name == "PSROIAlign" and params.get("dialect", "rfcn") == "rfcn":
        ratio = max(ratio, 1)
    scale = float(rng.choice([0.0, 1 / 16, 0.25, 0.3, 1.0]))
    if "Deformable" in name:
        params, inputs = _deformable(rng, {**params, "spatial_scale": scale}, channels), channels * 4
    elif name in _OTHERS:
        params, inputs = _others(name, params, pooled, scale, ratio, channels), channels
    else:
        params, inputs = with_sizes(name, params, pooled, scale, ratio, channels, groups)
    images, height, width = (
        int(rng.choice([0, 1, 1, 2, 2, 3])),
        *rng.choice([0, 1, 1, 2, 5, 13, 38, 130], 2).tolist(),
    )
    prop = registry.get(name).create(params)
    columns = type(prop).roi_columns
    count = int(rng.choice([0, 1, 2, 7, 30]))
    rois = hostile_rois(rng, count, images, height, width, scale, columns)
    data = rng.standard_normal((images, inputs, height, width))
    unclean = rng.random() < 0.1 and data.size
    if unclean:
        data.reshape(-1)[rng.integers(data.size)] = rng.choice([np.nan, np.inf, -np.inf])
    arrays = [data, rois]
    if name == "MultiScaleROIAlign":
        half = rng.standard_normal((images, inputs, height // 2, width // 2))
        arrays = [data, half, rois]
    if name == "DeformROIPooling":
        offset = rng.standard_normal((count, 2, *pooled))
        if rng.random() < 0.3 and offset.size:
            offset.reshape(-1)[rng.integers(offset.size)] = rng.choice(NUMBERS)
        arrays.append(offset)
    if name == "_contrib_DeformablePSROIPooling" and not params.get("no_trans"):
        part = params["part_size"] or params["pooled_size"]
        trans = rng.standard_normal((count, 2, part, part))
        if rng.random() < 0.3 and trans.size:
            trans.reshape(-1)[rng.integers(trans.size)] = rng.choice(NUMBERS)
        arrays.append(trans)
    with np.errstate(all="ignore"):
        arrays = [Guarded(a.astype(dtype), strided=rng.random() < 0.2) for a in arrays]
    return row, prop, arrays, unclean


def _ignored(rois) -> np.ndarray:
    return ~np.isfinite(rois[:, 1:]).all(axis=1) | (np.trunc(rois[:, 0]) < 0)


def _images_named(rois, images: int) -> bool:
    index = rois[:, 0]
    return bool(np.isfinite(index).all() and (np.trunc(index) < images).all())


def run_case(rng, number: int, device, dtypes) -> str:
    """One call with hostile boxes, forward and backward."""
    row, prop, guarded, unclean = _case(rng, number, device, dtypes)
    data, rois = guarded[0].array, guarded[prop.list_arguments().index("rois")].array
    try:
        invocation = Invocation(prop, [g.array for g in guarded], ctx=OpContext(device, prop.label))
        outs = [Guarded(np.full(o.shape, 77, o.dtype)) for o in invocation.outputs]
        invocation.outputs = [g.array for g in outs]
        invocation.forward()
    except DataError as error:
        if _images_named(rois, data.shape[0]) or "rois row" not in str(error):
            raise
        return "refused"
    if not device.is_gpu and not _images_named(rois, data.shape[0]):
        raise AssertionError(f"{row}: a batch index that is no image was accepted")
    ignored = _ignored(rois)
    if device.is_gpu:
        ignored |= ~(np.isfinite(rois[:, 0]) & (np.trunc(rois[:, 0]) < data.shape[0]))
    output = invocation.outputs[0]
    if np.any(output[ignored] != 0):
        raise AssertionError(f"{row}: an ignored row did not give zeros")
    empty = invocation.op.rules.empty if hasattr(invocation.op, "rules") else 0
    finite = output[np.isfinite(output)]
    if not unclean:
        if not np.all(np.isfinite(output) | (output == empty)):
            raise AssertionError(f"{row}: finite data gave numbers that are not")
        maps = guarded[: prop.maps]
        most = max(float(np.abs(each.array).max(initial=0)) for each in maps)
        most *= 1.01 if data.dtype == np.float16 else 1.0001
        # torchvision's and mmcv's maximum starts at the least number there is; nothing pooled must not show it.
        if finite.size and float(np.abs(finite).max()) > most:
            raise AssertionError(f"{row}: {np.abs(finite).max()} out of data no greater than {most}")
    gradient = np.where(np.isfinite(output), rng.standard_normal(output.shape), 0).astype(data.dtype)
    grads = [Guarded(np.full(g.array.shape, 55, data.dtype)) for g in guarded]
    invocation.backward([gradient], "write", [g.array for g in grads])
    for g, name in zip(grads, prop.list_arguments(), strict=True):
        if np.any(g.array == 55) or (not unclean and not np.isfinite(g.array).all()):
            raise AssertionError(f"{row}: the gradient of {name} is not written, or not finite")
    again = [Guarded(np.zeros(g.array.shape, data.dtype)) for g in guarded]
    invocation.backward([gradient], "add", [g.array for g in again])
    if grads[0].array.tobytes() != (again[0].array + 0).tobytes() and not np.array_equal(
        grads[0].array, again[0].array, equal_nan=True
    ):
        raise AssertionError(f"{row}: adding to zero is not writing")
    if ignored.any():
        gradient[~ignored] = 0
        alone = [Guarded(np.full(g.array.shape, 55, data.dtype)) for g in guarded]
        invocation.backward([gradient], "write", [g.array for g in alone])
        if np.any(alone[0].array != 0):
            raise AssertionError(f"{row}: an ignored row has a gradient")
    for g in guarded:
        g.check(row, unchanged=True)
    for g in [*outs, *grads, *again]:
        g.check(row)
    return "accepted"


def on_cpu(seed: int):
    """Every operator, dialect and dtype on the CPU."""
    dtypes = os.environ.get("SOAK_DTYPES", ",".join(DTYPES)).split(",")
    return lambda number: run_case(np.random.default_rng([seed, number]), number, context.cpu(), dtypes)


def on_simulated_gpu(seed: int):
    """The same through the CUDA kernels, in numba's simulator."""

    def case(number: int) -> str:
        return run_case(np.random.default_rng([seed, number]), number, context.gpu(0), ("float32", "float64"))

    return case
