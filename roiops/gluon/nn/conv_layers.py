"""Convolutions and pooling of one, two and three dimensions: a row each."""

from ...training.factory import REQUIRED
from ..declare import Layer, block_class
from .basic_layers import Linear

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _tuple(value, count) -> tuple:
    return (value,) * count if isinstance(value, int) else tuple(value)


def window_of(given: dict, count: int) -> dict:
    """The window of a convolution and how it moves, taken from its arguments, as operators name them."""
    names = {"kernel": "kernel_size", "stride": "strides", "dilate": "dilation", "pad": "padding"}
    return {key: _tuple(given.pop(name), count) for key, name in names.items()}


class _Conv(Linear):
    """Base of convolutions; that of a transposed one has an ``output_padding``."""

    _hint, _count = "conv", 2

    def _set_up(self, channels, groups, layout, in_channels, output_padding=None, **given):
        self._channels, self._in_channels = channels, in_channels
        self._kwargs = {**window_of(given, self._count), "num_filter": channels, "num_group": groups}
        self._kwargs |= {"no_bias": not given["use_bias"], "layout": layout}
        window = self._kwargs["kernel"]
        self._op_name, shape = "Convolution", [channels, in_channels // groups, *window]
        if output_padding is not None:
            self._op_name, shape = "Deconvolution", [in_channels, channels // groups, *window]
            self._kwargs["adj"] = self.outpad = _tuple(output_padding, self._count)
        if layout.endswith("C"):  # the channels of the weight lie last, too
            shape.append(shape.pop(1))
        self._learn_both(tuple(shape), channels, **given)

    def __repr__(self):
        shape, kwargs = self.weight.shape, self._kwargs
        count = len(kwargs["kernel"])
        parts = [f"kernel_size={kwargs['kernel']}", f"stride={kwargs['stride']}"]
        for word, key, default in (
            ("padding", "pad", 0),
            ("dilation", "dilate", 1),
            ("output_padding", "adj", 0),
        ):
            if kwargs.get(key, (default,) * count) != (default,) * count:
                parts.append(f"{word}={kwargs[key]}")
        if kwargs["num_group"] != 1:
            parts.append(f"groups={kwargs['num_group']}")
        if self.bias is None:
            parts.append("bias=False")
        if self.act:
            parts.append(str(self.act))
        ends = (0, 1) if "adj" in kwargs else (1, 0)
        return f"{type(self).__name__}({shape[ends[0]] or None} -> {shape[ends[1]]}, {', '.join(parts)})"


class _Pooling(Layer):
    """Base of pooling layers, over windows or over everything."""

    _hint, _op_name = "pool", "Pooling"
    _count, _kind, _everywhere = 2, "max", False

    def _set_up(self, layout, pool_size=1, strides=None, padding=0, ceil_mode=True, count_include_pad=None):
        size = _tuple(pool_size, self._count)
        self._kwargs = {
            "kernel": size,
            "stride": size if strides is None else _tuple(strides, self._count),
            "pad": _tuple(padding, self._count),
            "global_pool": self._everywhere,
            "pool_type": self._kind,
            "layout": layout,
            "pooling_convention": "full" if ceil_mode else "valid",
        }
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def __repr__(self):
        kwargs = self._kwargs
        return (
            f"{type(self).__name__}(size={kwargs['kernel']}, stride={kwargs['stride']}, "
            f"padding={kwargs['pad']}, ceil_mode={kwargs['pooling_convention'] == 'full'}, "
            f"global_pool={kwargs['global_pool']}, pool_type={kwargs['pool_type']}, "
            f"layout={kwargs['layout']})"
        )


class ReflectionPad2D(Layer, takes={"padding": 0}):
    """Images with their borders mirrored outwards."""

    _op_name, _node = "pad", None

    def _set_up(self, padding):
        if isinstance(padding, int):
            padding = (0, 0, 0, 0, padding, padding, padding, padding)
        if len(padding) != 8:
            raise AssertionError(f"ReflectionPad2D: padding must be a number or 8 of them, got {padding}")
        self._kwargs = {"mode": "reflect", "pad_width": padding}


def _convolution(count: int, transposed: bool) -> type:
    kind = "A transposed convolution" if transposed else "A convolution"
    ones, zeros = (1,) * count, (0,) * count
    takes = {"channels": REQUIRED, "kernel_size": REQUIRED, "strides": ones, "padding": zeros}
    takes |= {"output_padding": zeros} if transposed else {}
    takes |= {"dilation": ones, "groups": 1, "layout": _LAYOUTS[count], "activation": None, "use_bias": True}
    takes |= {"weight_initializer": None, "bias_initializer": "zeros", "in_channels": 0}
    name, text = f"Conv{count}D{'Transpose' * transposed}", f"{kind} over {_dimensions(count)}."
    return block_class(__name__, name, _Conv, text, takes, _count=count)


def _pooling(count: int, kind: str, everywhere: bool) -> type:
    window, layout = {"pool_size": 2, "strides": None, "padding": 0}, {"layout": _LAYOUTS[count]}
    takes = {**window, **layout, "ceil_mode": False}
    if kind == "avg":  # MXNet's order is another one here
        takes = {**window, "ceil_mode": False, **layout, "count_include_pad": True}
    word = "average" if kind == "avg" else "largest number"
    text = f"The {word} of {'everything' if everywhere else 'windows'} over {_dimensions(count)}."
    name = f"{'Global' * everywhere}{kind.capitalize()}Pool{count}D"
    members = {"_count": count, "_kind": kind, "_everywhere": everywhere}
    return block_class(__name__, name, _Pooling, text, layout if everywhere else takes, **members)


def _dimensions(count: int) -> str:
    return f"{count} dimension{'s' if count > 1 else ''}"


_LAYERS = [_convolution(count, transposed) for transposed in (False, True) for count in (1, 2, 3)]
_LAYERS += [
    _pooling(count, kind, everywhere)
    for everywhere in (False, True)
    for kind in ("max", "avg")
    for count in (1, 2, 3)
]
globals().update({layer.__name__: layer for layer in _LAYERS})

__all__ = ["ReflectionPad2D", *(layer.__name__ for layer in _LAYERS)]
