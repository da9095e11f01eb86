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
from .addresses import prepared, run_backward, run_forward
from .chunks import is_dense, threads_for, with_channels_last

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


def _fitting(how, data, out) -> list[str]:
    """The ways that only maps and outputs with the channels last can go."""
    has_groups = geometry.channel_groups(how, *out.shape[2:]) != (1, 1)
    last = with_channels_last(data), with_channels_last(out)
    fits = not has_groups and not is_dense(out) and all(each is not None for each in last)
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


def forward(data, rois, how, out, clear=True):
    """Write the means of all bins to ``out``: see :func:`addresses.run_forward`."""
    way = way_of(out.shape, *_fitting(how, data, out))
    return run_forward(_FORWARD[way], data, rois, how, [out], clear)


def backward(grad_out, rois, how, accumulate, grad_data):
    """Write, or add, the gradient of ``data``."""
    if not grad_data.size:
        return
    threads = threads_for(grad_out.size + grad_data.size)
    # Each thread of that way has channels; and the sums of a few channels are formed as in `scalars`.
    is_wide = grad_out.shape[1] > max(_FEW_CHANNELS, (threads - 1) * FIXED_LANES)
    fitting = _fitting(how, grad_data, grad_out) if is_wide and not accumulate else []
    way = way_of(grad_out.shape, *fitting, gradient=True)
    threads = 1 if way == SCALARS else threads
    run_backward(_BACKWARD[way], threads, [grad_out], rois, how, accumulate, grad_data)


def at_addresses(data_shape, rois_shape, out_shape, dtype, *hows):
    """See :func:`addresses.prepared`."""
    kernels = _FORWARD[way_of(out_shape)], _BACKWARD[way_of(out_shape, gradient=True)]
    return prepared(kernels, (data_shape, rois_shape, out_shape), dtype, hows)
