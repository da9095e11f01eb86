"""Calls of the ROI operators on the simulated GPU, and the cases that they are compared on."""

import numpy as np
from roi_cases import internal_name, is_separable, other_case, random_rois, with_sizes

from roiops.context import cpu, gpu
from roiops.kernels.rules import TURNED_DEGREES
from roiops.operators.base import OpContext
from roiops.operators.imperative import Invocation
from roiops.operators.roi.dialects import TABLE, named
from roiops.registry import get

__all__ = [
    "ALIKE",
    "SMALL_SIZES",
    "agree",
    "alike",
    "answers_of_the_cpu",
    "bits_of",
    "case_of",
    "channels_last",
    "from_bits",
    "invoke",
    "random_cases",
    "results",
]


#: How kernels cut their work in the simulator: so that small arrays reach every loop.
SMALL_SIZES = {
    "tile_h": 2,
    "tile_w": 3,
    "side": 3,
    "channels": 2,
    "grouped_channels": 2,
    "max_tile": 3,
    "max_channels": 4,
    "max_parts": 2,
    "max_entries": 8,
    "bins": 2,
    "each": 2,
    "table": 24,
    "threads": 5,
    "unit_threads": 5,
    "turns": 2,
    "blocks": 16,
}


def invoke(name, params, arrays, device=None):
    """An operator on the (simulated) GPU, before its forward pass. Its outputs are full of sevens."""
    prop = get(name).create(params)
    context = OpContext(device or gpu(0), prop.label)
    return Invocation(prop, arrays, ctx=context, empty=lambda shape, dtype: np.full(shape, 7, dtype))


def results(invocation, head=None):
    """Outputs, the hidden ones too, and the gradients of inputs that have one, by name."""
    invocation.forward()
    found = {f"out{i}": out for i, out in enumerate(invocation.outputs)}
    if head is not None:
        grads = [np.full_like(a, 7) for a in invocation.in_data]
        invocation.backward([head], in_grad=grads)
        names = invocation.prop.list_arguments()
        found |= {
            f"grad_{n}": g
            for n, g in zip(names, grads, strict=True)
            if n not in invocation.prop.list_zero_gradients()
        }
    return found


def agree(found, expected, what, terms=None):
    """Sums may be in another order; indices, and maxima of pixels, must be equal.

    ``terms`` gives the sums of the absolute values of what was added, if those of the values do not agree.
    """
    if expected.dtype.kind in "iu":
        np.testing.assert_array_equal(found, expected, err_msg=what)
        return
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(found[~finite], expected[~finite], err_msg=what)
    most = max(1.0, float(np.abs(expected[finite]).max(initial=0)))
    tolerance = {2: 2e-3, 4: 2e-6, 8: 1e-12}[expected.dtype.itemsize]
    apart = np.abs(found[finite].astype(np.float64) - expected[finite])
    wrong = ~(apart <= tolerance * most)
    if wrong.any() and terms is not None:
        wrong = ~(apart <= tolerance * np.maximum(most, terms()[finite]))
    assert not wrong.any(), f"{what}: {found[finite][wrong][:5]}, not {expected[finite][wrong][:5]}"


def bits_of(array):
    """The nearest bfloat16s, ties to even, as their bits."""
    bits = array.astype(np.float32).view(np.uint32).astype(np.uint64)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)


def from_bits(bits):
    """The float32s that are those bfloat16s."""
    return (bits.astype(np.uint32) << 16).view(np.float32)


# -- cases of our own, for the CPU to answer -------------------------------------------------------------


def random_cases():
    """``label: (name, params, arrays, head gradient)``: each dialect, with good and with hostile boxes."""
    random = np.random.default_rng(11)
    cases = {}
    for row in TABLE.values():
        if is_separable(row):
            kinds = {
                "small": {"size": (5, 6), "pooled": (2, 3), "scale": 0.5, "ratio": 2},
                "adaptive": {"size": (13, 9), "pooled": (3, 3), "scale": 0.25, "ratio": 0},
                "hostile": {"size": (7, 4), "pooled": (3, 2), "ratio": 2, "hostile": True},
            }
        else:
            kinds = {"small": {"scale": 0.5}, "hostile": {"scale": 0.5, "ratio": 0, "hostile": True}}
            # Turned boxes share their kernels, and huge ones take the simulator long: one row is enough.
            if row.rules.boxes >= TURNED_DEGREES and row.name != "ROIAlignRotated/mmcv/aligned":
                del kinds["hostile"]
        for label, given in kinds.items():
            cases[f"{row.name} {label}"] = case_of(row, random, **given)
    return cases | _moved_and_turned(random) | _more_groups_than_bins(random) | _reversed_corners(random)


def case_of(row, random, size=(8, 7), pooled=(2, 3), scale=1.0, ratio=2, count=6, channels=3, hostile=False):
    """``(name, params, arrays, head gradient)`` of a call in one dialect.

    With a multiple of four ``channels``, bins read all of them alike: if the features are channels last, the
    kernels load them in quads.
    """
    rois = random_rois(random, count, 2, *size, scale)
    if hostile:
        rois = np.concatenate([rois, _hostile()])
    name = internal_name(row.operator)
    if not is_separable(row):
        name, params, arrays = other_case(
            row, random, rois, size, scale, ratio, pooled=pooled, channels=channels
        )
    else:
        groups = 1 if channels % 4 == 0 else pooled[0]
        by_position = "PSROI" in name or row.parameters.get("position_sensitive")
        if by_position and groups == 1:
            pooled = 1, 1
        elif "PSROI" in name and row.name != "PSROIAlign/torchvision":
            pooled = pooled[0], pooled[0]
        if row.name == "PSROIAlign/rfcn":
            ratio = 2
        params, total = with_sizes(name, row.parameters, pooled, scale, ratio, channels, groups)
        arrays = [random.standard_normal((2, total, *size)).astype(np.float32), rois]
    shapes = [array.shape for array in arrays]
    head = random.standard_normal(get(name).create(params).infer_shape(shapes)[1][0])
    return name, params, arrays, head.astype(np.float32)


def _hostile():
    nan, inf = np.nan, np.inf
    return np.array(
        [
            [-1, 0, 0, 3, 3],
            [0, nan, 0, 3, 3],
            [0, 0, inf, 3, 3],
            [0, -1e30, -1e30, 1e30, 1e30],
            [0, 1e30, 1e30, -1e30, -1e30],
            [0, 2, 2, 2, 2],
            [1, -50, -50, -40, -40],
            [0.9, 1, 1, 3, 3],
            [-0.5, 1, 1, 3, 3],
        ],
        np.float32,
    )


def _moved_and_turned(random):
    cases = {}
    for label, parts, classes in (("one class", 2, 1), ("two classes", 3, 2)):
        rois = np.concatenate([random_rois(random, 4, 2, 8, 7, 0.5), _hostile()])
        trans = random.standard_normal((len(rois), 2 * classes, parts, parts)).astype(np.float32)
        data = random.standard_normal((2, 2 * 4, 8, 7)).astype(np.float32)
        params = {
            "spatial_scale": 0.5, "output_dim": 2, "group_size": 2, "pooled_size": 3, "part_size": parts,
            "sample_per_part": 2, "trans_std": 0.2,
        }  # fmt: skip
        head = random.standard_normal((len(rois), 2, 3, 3)).astype(np.float32)
        cases[f"deformable {label}"] = (
            "_contrib_DeformablePSROIPooling", params, [data, rois, trans], head
        )  # fmt: skip
        cases[f"deformable, still, {label}"] = (
            "_contrib_DeformablePSROIPooling", {**params, "no_trans": True}, [data, rois], head
        )  # fmt: skip
    for ratio in (2, 0):
        boxes = np.column_stack(
            [
                random.integers(0, 2, 7),
                random.uniform(-1, 9, (7, 2)),
                random.uniform(0.2, 8, (7, 2)),
                random.uniform(-200, 200, 7),
            ]
        )
        hostile = np.column_stack([_hostile(), np.full(9, 30.0)])
        rois = np.concatenate([boxes, hostile]).astype(np.float32)
        data = random.standard_normal((2, 3, 8, 7)).astype(np.float32)
        head = random.standard_normal((len(rois), 3, 2, 2)).astype(np.float32)
        params = {"pooled_size": (2, 2), "spatial_scale": 1.0, "sampling_ratio": ratio}
        cases[f"rotated {ratio}"] = ("_contrib_RROIAlign", params, [data, rois], head)
    return cases


def _more_groups_than_bins(random):
    """Some groups have no bin."""
    cases = {}
    for label, name, more in (
        ("pooled", "_contrib_PSROIPooling", {}),
        ("aligned", "PSROIAlign", {"sampling_ratio": 2}),
    ):
        rois = np.concatenate([random_rois(random, 4, 2, 8, 7, 0.5), _hostile()])
        data = random.standard_normal((2, 2 * 9, 8, 7)).astype(np.float32)
        params = {"spatial_scale": 0.5, "output_dim": 2, "group_size": 3, "pooled_size": 2, **more}
        head = random.standard_normal((len(rois), 2, 2, 2)).astype(np.float32)
        cases[f"more groups than bins, {label}"] = (name, params, [data, rois], head)
    return cases


def _reversed_corners(random):
    """Boxes whose samples descend, though the corners about each of them ascend."""
    row = named()["ROIAlign/onnx/max/aligned"]
    name, params, arrays, head = case_of(row, random, size=(9, 10), pooled=(2, 2))
    arrays[1] = np.float32([[0, 7.3, 6.2, 1.4, 1.1], [1, 8.1, 1.2, 2.7, 7.9], [1, 1.6, 8.3, 6.1, 0.4]])
    return {"reversed, of corners": (name, params, arrays, head[:3])}


# -- features whose channels are neighbours ---------------------------------------------------------------

#: Operators that read all channels alike, as quads of them must be.
ALIKE = {
    "mean": ("ROIAlign", {"pooled_size": (3, 2), "sampling_ratio": 2}),
    "mean of large bins": ("ROIAlign", {"pooled_size": (1, 1), "sampling_ratio": 0}),
    "maximum of pixels": ("ROIPooling", {"pooled_size": (2, 3)}),
    "maximum of samples": ("ROIAlign", {"pooled_size": (2, 2), "dialect": "mmcv", "mode": "max"}),
    "displaced": (
        "_contrib_DeformablePSROIPooling",
        {"group_size": 1, "pooled_size": 3, "part_size": 3, "trans_std": 0.2},
    ),
    "rotated": ("_contrib_RROIAlign", {"pooled_size": (2, 2)}),
}


def alike(label, channels, dtype, height=30, width=6):
    """``(name, params, arrays)`` of one of :data:`ALIKE`: more rows than tables of the tests have room for."""
    random = np.random.default_rng(3)
    name, params = ALIKE[label]
    params = {"spatial_scale": 0.5, **params}
    data = random.standard_normal((2, channels, height, width)).astype(dtype)
    rois = random_rois(random, 4, 2, height, width, 0.5)
    rois[3] = [0, -3, -5, 2 * width + 2, 2 * height + 4]
    if label == "rotated":
        rois[:, 3:] /= 4
        return name, params, [data, np.column_stack([rois, [0, 30, 45, 90]]).astype(np.float32)]
    if label == "displaced":
        trans = random.standard_normal((4, 4, 3, 3)).astype(np.float32)
        return name, {**params, "output_dim": channels}, [data, rois, trans]
    return name, params, [data, rois]


def channels_last(data, channels=slice(None), room=0):
    """The same features, channels last, ``room`` elements apart from those of the next pixel."""
    images, count, height, width = data.shape
    wide = np.full((images, height, width, count + room), np.nan, data.dtype)
    wide[..., channels] = data.transpose(0, 2, 3, 1)
    return wide[..., channels].transpose(0, 3, 1, 2)


def answers_of_the_cpu() -> dict:
    """``{"label/name": array}`` of all :func:`random_cases`."""
    return {
        f"{label}/{key}": value
        for label, (name, params, arrays, head) in random_cases().items()
        for key, value in results(invoke(name, params, arrays, cpu()), head).items()
    }
