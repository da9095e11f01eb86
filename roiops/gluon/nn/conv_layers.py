"""Convolutions and pooling of one, two and three dimensions: a row each."""

import inspect
import sys

from ..hybrid import HybridBlock
from .activations import Activation

_LAYOUTS = {1: "NCW", 2: "NCHW", 3: "NCDHW"}


def _tuple(value, count) -> tuple:
    return (value,) * count if isinstance(value, int) else tuple(value)


class _Conv(HybridBlock):
    """Base of convolutions. A block for one number of dimensions is made by :func:`_convolution`."""

    def __init__(
        self,
        channels,
        kernel_size,
        strides,
        padding,
        dilation,
        groups,
        layout,
        in_channels=0,
        activation=None,
        use_bias=True,
        weight_initializer=None,
        bias_initializer="zeros",
        op_name="Convolution",
        adj=None,
        prefix=None,
        params=None,
    ):
        super().__init__(prefix=prefix, params=params)
        count = len(kernel_size)
        self._channels, self._in_channels, self._op_name = channels, in_channels, op_name
        self._kwargs = {
            "kernel": kernel_size,
            "stride": _tuple(strides, count),
            "dilate": _tuple(dilation, count),
            "pad": _tuple(padding, count),
            "num_filter": channels,
            "num_group": groups,
            "no_bias": not use_bias,
            "layout": layout,
        }
        self._transposed = adj is not None
        if self._transposed:
            self._kwargs["adj"] = adj
            shape = [in_channels, channels // groups, *kernel_size]
        else:
            shape = [channels, in_channels // groups, *kernel_size]
        if layout.endswith("C"):  # the channels of the weight lie last, too
            shape.append(shape.pop(1))
        with self.name_scope():
            given = {"shape": tuple(shape), "init": weight_initializer, "allow_deferred_init": True}
            self.weight = self.params.get("weight", **given)
            given = {"shape": (channels,), "init": bias_initializer, "allow_deferred_init": True}
            self.bias = self.params.get("bias", **given) if use_bias else None
            self.act = None if activation is None else Activation(activation, prefix=f"{activation}_")

    def hybrid_forward(self, F, x, weight, bias=None):
        given = [x, weight] if bias is None else [x, weight, bias]
        out = getattr(F, self._op_name)(*given, name="fwd", **self._kwargs)
        return out if self.act is None else self.act(out)

    def _alias(self):
        return "conv"

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
        ends = (0, 1) if self._transposed else (1, 0)
        return f"{type(self).__name__}({shape[ends[0]] or None} -> {shape[ends[1]]}, {', '.join(parts)})"


def _convolution(count: int, transposed: bool):
    """The class of convolutions over ``count`` dimensions."""
    ones, zeros, default = (1,) * count, (0,) * count, _LAYOUTS[count]

    if transposed:

        def __init__(
            self,
            channels,
            kernel_size,
            strides=ones,
            padding=zeros,
            output_padding=zeros,
            dilation=ones,
            groups=1,
            layout=default,
            activation=None,
            use_bias=True,
            weight_initializer=None,
            bias_initializer="zeros",
            in_channels=0,
            **kwargs,
        ):
            adj = _tuple(output_padding, count)
            _Conv.__init__(
                self,
                *(
                    channels,
                    _tuple(kernel_size, count),
                    strides,
                    padding,
                    dilation,
                    groups,
                    layout,
                    in_channels,
                ),
                *(activation, use_bias, weight_initializer, bias_initializer, "Deconvolution", adj),
                **kwargs,
            )
            self.outpad = adj

    else:

        def __init__(
            self,
            channels,
            kernel_size,
            strides=ones,
            padding=zeros,
            dilation=ones,
            groups=1,
            layout=default,
            activation=None,
            use_bias=True,
            weight_initializer=None,
            bias_initializer="zeros",
            in_channels=0,
            **kwargs,
        ):
            _Conv.__init__(
                self,
                *(
                    channels,
                    _tuple(kernel_size, count),
                    strides,
                    padding,
                    dilation,
                    groups,
                    layout,
                    in_channels,
                ),
                *(activation, use_bias, weight_initializer, bias_initializer),
                **kwargs,
            )

    name = f"Conv{count}D{'Transpose' if transposed else ''}"
    kind = "A transposed convolution" if transposed else "A convolution"
    return _layer(name, _Conv, f"{kind} over {count} dimension{'s' if count > 1 else ''}.", __init__)


class _Pooling(HybridBlock):
    """Base of pooling layers. A block for one number of dimensions is made by :func:`_pooling`."""

    def __init__(
        self,
        pool_size,
        strides,
        padding,
        ceil_mode,
        global_pool,
        pool_type,
        layout,
        count_include_pad=None,
        **kwargs,
    ):
        super().__init__(**kwargs)
        count = len(pool_size)
        self._kwargs = {
            "kernel": pool_size,
            "stride": pool_size if strides is None else _tuple(strides, count),
            "pad": _tuple(padding, count),
            "global_pool": global_pool,
            "pool_type": pool_type,
            "layout": layout,
            "pooling_convention": "full" if ceil_mode else "valid",
        }
        if count_include_pad is not None:
            self._kwargs["count_include_pad"] = count_include_pad

    def _alias(self):
        return "pool"

    def hybrid_forward(self, F, x):
        return F.Pooling(x, name="fwd", **self._kwargs)

    def __repr__(self):
        kwargs = self._kwargs
        return (
            f"{type(self).__name__}(size={kwargs['kernel']}, stride={kwargs['stride']}, "
            f"padding={kwargs['pad']}, "
            f"ceil_mode={kwargs['pooling_convention'] == 'full'}, global_pool={kwargs['global_pool']}, "
            f"pool_type={kwargs['pool_type']}, layout={kwargs['layout']})"
        )


def _pooling(count: int, kind: str, everywhere: bool):
    """The class of pooling over ``count`` dimensions."""
    default = _LAYOUTS[count]
    if everywhere:

        def __init__(self, layout=default, **kwargs):
            _Pooling.__init__(self, (1,) * count, None, 0, True, True, kind, layout, **kwargs)

    elif kind == "avg":

        def __init__(
            self,
            pool_size=2,
            strides=None,
            padding=0,
            ceil_mode=False,
            layout=default,
            count_include_pad=True,
            **kwargs,
        ):
            size = _tuple(pool_size, count)
            _Pooling.__init__(
                self, size, strides, padding, ceil_mode, False, kind, layout, count_include_pad, **kwargs
            )

    else:

        def __init__(self, pool_size=2, strides=None, padding=0, layout=default, ceil_mode=False, **kwargs):
            size = _tuple(pool_size, count)
            _Pooling.__init__(self, size, strides, padding, ceil_mode, False, kind, layout, **kwargs)

    name = f"{'Global' * everywhere}{kind.capitalize()}Pool{count}D"
    word = "average" if kind == "avg" else "largest number"
    where = "everything" if everywhere else "windows"
    return _layer(
        name, _Pooling, f"The {word} of {where} over {count} dimension{'s' if count > 1 else ''}.", __init__
    )


def _layer(name, base, text, __init__):
    __init__.__qualname__ = f"{name}.__init__"
    layer = type(name, (base,), {"__init__": __init__, "__doc__": text, "__module__": __name__})
    layer.__signature__ = inspect.Signature(list(inspect.signature(__init__).parameters.values())[1:])
    return layer


class ReflectionPad2D(HybridBlock):
    """Images with their borders mirrored outwards."""

    def __init__(self, padding=0, **kwargs):
        super().__init__(**kwargs)
        if isinstance(padding, int):
            padding = (0, 0, 0, 0, padding, padding, padding, padding)
        if len(padding) != 8:
            raise AssertionError(f"ReflectionPad2D: padding must be a number or 8 of them, got {padding}")
        self._padding = padding

    def hybrid_forward(self, F, x):
        return F.pad(x, mode="reflect", pad_width=self._padding)


_made = [_convolution(count, transposed) for transposed in (False, True) for count in (1, 2, 3)]
_made += [
    _pooling(count, kind, everywhere)
    for everywhere in (False, True)
    for kind in ("max", "avg")
    for count in (1, 2, 3)
]
vars(sys.modules[__name__]).update({layer.__name__: layer for layer in _made})

__all__ = ["ReflectionPad2D", *(layer.__name__ for layer in _made)]
