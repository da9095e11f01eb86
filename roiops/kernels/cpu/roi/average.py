"""Means over the bins of ROIs, with any samples and any border: ``Y = A_y X A_x'``, and its transpose.

``A_y`` and ``A_x`` are the axis tables of :mod:`tables`. There are several ways to compute the same means, to
the last bit; :func:`forward` and :func:`backward` choose one before they call a kernel, so that only that one
is compiled. A way is a module with ``FORWARD`` and perhaps ``BACKWARD``, each one compiled function: it looks
at the boxes, makes the tables and has threads share the work.

``tests/reference.py`` has the same in plain loops: ``separable``.
"""

from ... import geometry, ways
from ..vector import FIXED_LANES
from . import channels_last, lanes, scalars
from .addresses import prepared, shapes_for
from .chunks import as_rois, channel_chunks, is_dense, threads_for, with_channels_last

_MEANS = "means of ROIs"
SCALARS = ways.declare(
    "scalars",
    _MEANS,
    "all calls",
    "one channel, forward; at most 4 channels of at most 16 boxes: nothing is turned; backward on one thread",
)
LANES = ways.declare(
    "lanes", _MEANS, "all calls", "otherwise: 16 channels at a time, turned into rows once for all boxes"
)
CHANNELS_LAST = ways.declare(
    "channels_last",
    _MEANS,
    "map and output with the channels last in memory, one group of bins; gradients that are written",
    "wherever it applies: nothing is turned",
)

_FORWARD = {
    SCALARS: scalars.FORWARD,
    LANES: lanes.FORWARD,
    CHANNELS_LAST: channels_last.FORWARD,
}
_BACKWARD = {
    SCALARS: scalars.BACKWARD,
    LANES: lanes.BACKWARD,
    CHANNELS_LAST: channels_last.BACKWARD,
}

# An output of at most so many channels and boxes is computed number by number, and one of one channel.
_FEW_CHANNELS, _FEW_ROIS = 4, 16


def _fitting(groups, data, out) -> list[str]:
    """The ways that only maps and outputs with the channels last can go."""
    last = with_channels_last(data), with_channels_last(out)
    fits = groups == (1, 1) and not is_dense(out) and all(each is not None for each in last)
    return [CHANNELS_LAST] if fits else []


def way_of(out_shape, *fitting, gradient=False) -> str:
    """The way of a call with an output of this shape; ``fitting`` are those that not every call can go."""
    forced = ways.forced(*fitting, SCALARS, LANES)
    if forced:
        return forced
    if CHANNELS_LAST in fitting:
        return CHANNELS_LAST
    few = out_shape[0] <= _FEW_ROIS and out_shape[1] <= _FEW_CHANNELS
    return SCALARS if few or (out_shape[1] == 1 and not gradient) else LANES


def forward(data, rois, scale, ratio, groups, rules, out, clear=True):
    """Write the means of all bins to ``out``, and zeros for rows to be ignored unless ``clear`` is false.

    Returns the first row that names no image, and then nothing is written, or -1.
    """
    groups = geometry.channel_groups(rules, groups, *out.shape[2:])
    rois = as_rois(rois, data.dtype)
    setting = geometry.setting_of(rules, scale, ratio, rois.dtype, data.shape, out.shape)
    call = rules, setting, groups, clear, ()
    way = way_of(out.shape, *_fitting(groups, data, out))
    threads, stray = threads_for(out.size), -1
    for chunk, means, _ in channel_chunks([data], [out], keep=not clear, planes_only=groups != (1, 1)):
        stray = _FORWARD[way](threads, call, shapes_for(chunk, rois, means), chunk, rois, means)
        if stray >= 0:
            break
    return stray


def backward(grad_out, rois, scale, ratio, groups, rules, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if not grad_data.size:
        return
    groups = geometry.channel_groups(rules, groups, *grad_out.shape[2:])
    rois = as_rois(rois, grad_data.dtype)
    setting = geometry.setting_of(rules, scale, ratio, rois.dtype, grad_data.shape, grad_out.shape)
    size = grad_out.size + grad_data.size
    # Each thread of that way has channels; and the sums of a few channels are formed as in `scalars`.
    is_wide = grad_out.shape[1] > max(_FEW_CHANNELS, (threads_for(size) - 1) * FIXED_LANES)
    fitting = _fitting(groups, grad_data, grad_out) if is_wide and not accumulate else []
    way = way_of(grad_out.shape, *fitting, gradient=True)
    threads = 1 if way == SCALARS else threads_for(size)
    for heads, grad, add in channel_chunks([grad_out], [grad_data], accumulate, planes_only=groups != (1, 1)):
        call = rules, setting, groups, add, ()
        _BACKWARD[way](threads, call, shapes_for(grad, rois, heads), grad, rois, heads)


def at_addresses(data_shape, rois_shape, out_shape, dtype, scale, ratio, groups, rules, backward_rules):
    """See :func:`addresses.prepared`."""
    kernels = _FORWARD[way_of(out_shape)], _BACKWARD[way_of(out_shape, gradient=True)]
    shapes, rules = (data_shape, rois_shape, out_shape), (rules, backward_rules)
    return prepared(kernels, shapes, dtype, (scale, ratio, groups), rules)
