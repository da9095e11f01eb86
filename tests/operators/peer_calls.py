"""How a peer's call is made here: the one translator of golden cases, for the tests and for ``verify``."""

import numpy as np
from roi_cases import internal_name

__all__ = ["PEERS", "translate"]


def _size(params):
    """The output grid, under whichever name."""
    for name in ("pooled_size", "output_size", "outsize", "pooled_shape", "crop_size"):
        if name in params:
            return params[name]
    for names in (("outh", "outw"), ("output_height", "output_width"), ("pooled_height", "pooled_width")):
        if names[0] in params:
            return tuple(params[name] for name in names)
    raise KeyError(f"no output size among {sorted(params)}")


def _same(case, given):
    """MXNet's own names and boxes."""
    return {**given, **case.params}, case["rois"]


def _common(case, given):
    """The names that the others share, and boxes with the image in front."""
    params = case.params
    given = {**given, "pooled_size": _size(params)}
    for name in ("spatial_scale", "spatial_scales", "sampling_ratio", "extrapolation_value", "gamma"):
        if name in params:
            given[name] = params[name] or 0
    return given, case["rois"]


def _with_index(name, order=slice(None)):
    """The same for boxes that come without the image, which is in an array of its own."""

    def translate(case, given):
        given, rois = _common(case, given)
        if name in case:
            rois = np.column_stack([case[name], rois[:, order]]).astype(rois.dtype)
        return given, rois

    return translate


#: What to do with the arguments of each peer.
PEERS = {
    "mxnet": _same,
    "torchvision": _common,
    "chainer": _with_index("roi_indices", [1, 0, 3, 2]),  # Chainer has y first
    "onnxruntime": _with_index("batch_indices"),
    "mmcv": _common,
    "paddle": _with_index("batch_indices"),
    "tensorflow": _with_index("box_indices"),
}


def translate(row, case):
    """``(operator, parameters, inputs)`` of the call that ought to give what the peer gave."""
    if case.peer not in PEERS:
        raise ValueError(f"{case}: no translation for peer {case.peer!r} (there are: {', '.join(PEERS)})")
    given, rois = PEERS[case.peer](case, row.parameters)
    if row.operator.startswith("PSROI") and "output_dim" not in given:
        bins = given["pooled_size"][0] * given["pooled_size"][1]
        given["output_dim"] = case["data"].shape[1] // bins
    if "data0" in case:
        given["num_args"] = len(given["spatial_scales"]) + 1
        maps = [case[f"data{k}"] for k in range(given["num_args"] - 1)]
        return internal_name(row.operator), given, [*maps, rois]
    extra = [case[name] for name in ("trans", "offset") if name in case]
    return internal_name(row.operator), given, [case["data"], rois, *extra]
