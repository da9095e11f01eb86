"""Containers, dense layers, normalisation, embeddings."""

import warnings

import numpy as np

from ... import ndarray
from ...errors import ParamError
from ...graph import functions as symbol
from ..block import Block, _indented
from ..hybrid import HybridBlock
from .activations import Activation

__all__ = [
    "BatchNorm",
    "Dense",
    "Dropout",
    "Embedding",
    "Flatten",
    "GroupNorm",
    "HybridLambda",
    "HybridSequential",
    "InstanceNorm",
    "Lambda",
    "LayerNorm",
    "Sequential",
]


class _Stack:
    """What both kinds of sequences share."""

    _is_container = True

    def add(self, *blocks) -> None:
        """Put blocks on top."""
        for block in blocks:
            self.register_child(block)

    def _run(self, x, args):
        for block in self._children.values():
            x = block(x, *args)
            args = []
            if isinstance(x, list | tuple):
                x, args = x[0], x[1:]
        return (x, *args) if args else x

    def __repr__(self):
        lines = [f"  ({key}): {_indented(repr(block))}" for key, block in self._children.items()]
        return "\n".join([f"{type(self).__name__}(", *lines, ")"])

    def __getitem__(self, key):
        found = list(self._children.values())[key]
        if not isinstance(found, list):
            return found
        net = type(self)(prefix=self._prefix)
        with net.name_scope():
            net.add(*found)
        return net

    def __len__(self):
        return len(self._children)

    def __iter__(self):
        return iter(self._children.values())


class Sequential(_Stack, Block):
    """Blocks one after the other."""

    def hybridize(self, active=True, **kwargs):
        if self._children and all(isinstance(each, HybridBlock) for each in self):
            warnings.warn(
                f"All children of this Sequential layer '{self.prefix}' are HybridBlocks. Consider using "
                "HybridSequential for the best performance.",
                stacklevel=2,
            )
        super().hybridize(active, **kwargs)

    def forward(self, x, *args):
        return self._run(x, args)


class HybridSequential(_Stack, HybridBlock):
    """Hybrid blocks one after the other."""

    def hybrid_forward(self, F, x, *args):
        return self._run(x, args)


class Dense(HybridBlock):
    """``activation(x W' + b)``, a fully connected layer.

    Parameters
    ----------
    units : int
        How many numbers come out of each row.
    flatten : bool
        Whether all axes but the first count as one; else the last one alone is read.
    in_units : int
        How many go in; found from the first batch unless given.
    """

    def __init__(
        self,
        units,
        activation=None,
        use_bias=True,
        flatten=True,
        dtype="float32",
        weight_initializer=None,
        bias_initializer="zeros",
        in_units=0,
        **kwargs,
    ):
        super().__init__(**kwargs)
        self._units, self._in_units, self._flatten = units, in_units, flatten
        later = {"dtype": dtype, "allow_deferred_init": True}
        with self.name_scope():
            self.weight = self.params.get("weight", shape=(units, in_units), init=weight_initializer, **later)
            self.bias = (
                self.params.get("bias", shape=(units,), init=bias_initializer, **later) if use_bias else None
            )
            self.act = None if activation is None else Activation(activation, prefix=f"{activation}_")

    def hybrid_forward(self, F, x, weight, bias=None):
        given = [x, weight] if bias is None else [x, weight, bias]
        out = F.FullyConnected(
            *given, no_bias=bias is None, num_hidden=self._units, flatten=self._flatten, name="fwd"
        )
        return out if self.act is None else self.act(out)

    def __repr__(self):
        shape, act = self.weight.shape, self.act if self.act else "linear"
        return f"{type(self).__name__}({shape[1] or None} -> {shape[0]}, {act})"


class Dropout(HybridBlock):
    """In training, each number is 0 with probability ``rate``; along ``axes``, all together."""

    def __init__(self, rate, axes=(), **kwargs):
        super().__init__(**kwargs)
        self._rate, self._axes = rate, axes

    def hybrid_forward(self, F, x):
        if self._rate > 0:
            return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False)
        return F.identity(x)

    def __repr__(self):
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


class _Norm(HybridBlock):
    """Base of normalising layers: a scale ``gamma`` and a shift ``beta``."""

    def __init__(self, in_channels, scale, center, gamma, beta, kwargs, shown):
        super().__init__(**kwargs)
        self._kwargs = shown
        with self.name_scope():
            for name, learns, init in (("gamma", scale, gamma), ("beta", center, beta)):
                given = {"shape": (in_channels,), "init": init, "allow_deferred_init": True}
                learned = {"grad_req": "write" if learns else "null", "differentiable": learns}
                setattr(self, name, self.params.get(name, **given, **learned))

    def __repr__(self):
        shown = ", ".join(f"{key}={value!r}" for key, value in self._kwargs.items())
        return f"{type(self).__name__}({shown}, in_channels={self.gamma.shape[0] or None})"


class BatchNorm(_Norm):
    """Normalise each channel over the batch, in inference by the means and variances kept in training."""

    def __init__(
        self,
        axis=1,
        momentum=0.9,
        epsilon=1e-5,
        center=True,
        scale=True,
        use_global_stats=False,
        beta_initializer="zeros",
        gamma_initializer="ones",
        running_mean_initializer="zeros",
        running_variance_initializer="ones",
        in_channels=0,
        **kwargs,
    ):
        shown = {"axis": axis, "eps": epsilon, "momentum": momentum, "fix_gamma": not scale}
        shown["use_global_stats"] = use_global_stats
        super().__init__(in_channels, scale, center, gamma_initializer, beta_initializer, kwargs, shown)
        self._axis, self.in_channels = axis, in_channels
        kept = {
            "grad_req": "null",
            "shape": (in_channels,),
            "allow_deferred_init": True,
            "differentiable": False,
        }
        self.running_mean = self.params.get("running_mean", init=running_mean_initializer, **kept)
        self.running_var = self.params.get("running_var", init=running_variance_initializer, **kept)

    def cast(self, dtype):
        super().cast("float32" if np.dtype(dtype).name == "float16" else dtype)

    def hybrid_forward(self, F, x, gamma, beta, running_mean, running_var):
        return F.BatchNorm(x, gamma, beta, running_mean, running_var, name="fwd", **self._kwargs)


class InstanceNorm(_Norm):
    """Normalise each channel of each image."""

    def __init__(
        self,
        axis=1,
        epsilon=1e-5,
        center=True,
        scale=False,
        beta_initializer="zeros",
        gamma_initializer="ones",
        in_channels=0,
        **kwargs,
    ):
        shown = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        super().__init__(in_channels, scale, center, gamma_initializer, beta_initializer, kwargs, shown)
        self._axis, self._epsilon = axis, epsilon

    def hybrid_forward(self, F, x, gamma, beta):
        if self._axis == 1:
            return F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        x = F.swapaxes(x, dim1=1, dim2=self._axis)
        return F.swapaxes(
            F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon), dim1=1, dim2=self._axis
        )


class LayerNorm(_Norm):
    """Normalise along one axis."""

    def __init__(
        self,
        axis=-1,
        epsilon=1e-5,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        in_channels=0,
        prefix=None,
        params=None,
    ):
        shown = {"eps": epsilon, "axis": axis, "center": center, "scale": scale}
        names = {"prefix": prefix, "params": params}
        super().__init__(in_channels, scale, center, gamma_initializer, beta_initializer, names, shown)
        self._axis, self._epsilon = axis, epsilon

    def hybrid_forward(self, F, data, gamma, beta):
        return F.LayerNorm(data, gamma=gamma, beta=beta, axis=self._axis, eps=self._epsilon)


class GroupNorm(_Norm):
    """Normalise groups of channels of each image."""

    def __init__(
        self,
        num_groups=1,
        epsilon=1e-5,
        center=True,
        scale=True,
        beta_initializer="zeros",
        gamma_initializer="ones",
        prefix=None,
        params=None,
        in_channels=0,
    ):
        shown = {"eps": epsilon, "num_groups": num_groups, "center": center, "scale": scale}
        names = {"prefix": prefix, "params": params}
        super().__init__(in_channels, scale, center, gamma_initializer, beta_initializer, names, shown)
        self._num_groups, self._epsilon = num_groups, epsilon

    def hybrid_forward(self, F, data, gamma, beta):
        return F.GroupNorm(data, gamma=gamma, beta=beta, num_groups=self._num_groups, eps=self._epsilon)


class Embedding(HybridBlock):
    """The rows of a matrix that the numbers of the input tell."""

    def __init__(
        self, input_dim, output_dim, dtype="float32", weight_initializer=None, sparse_grad=False, **kwargs
    ):
        super().__init__(**kwargs)
        if sparse_grad:
            raise ParamError(
                "Embedding: sparse_grad=True is not offered, since gradients are dense here; leave it out"
            )
        self._input_dim, self._output_dim = input_dim, output_dim
        self._kwargs = {
            "input_dim": input_dim,
            "output_dim": output_dim,
            "dtype": dtype,
            "sparse_grad": False,
        }
        given = {"shape": (input_dim, output_dim), "init": weight_initializer, "dtype": dtype}
        self.weight = self.params.get("weight", allow_deferred_init=True, **given)

    def hybrid_forward(self, F, x, weight):
        return F.Embedding(x, weight, name="fwd", **self._kwargs)

    def __repr__(self):
        return f"{type(self).__name__}({self._input_dim} -> {self._output_dim}, {self._kwargs['dtype']})"


class Flatten(HybridBlock):
    """All axes but the first as one."""

    def hybrid_forward(self, F, x):
        return F.Flatten(x)

    def __repr__(self):
        return type(self).__name__


class Lambda(Block):
    """A function on arrays, or the operator of a name, as a block."""

    def __init__(self, function, prefix=None):
        super().__init__(prefix=prefix)
        self._func_impl = getattr(ndarray, function) if isinstance(function, str) else function
        self._func_name = function if isinstance(function, str) else function.__name__

    def forward(self, *args):
        return self._func_impl(*args)

    def __repr__(self):
        return f"{type(self).__name__}({self._func_name})"


class HybridLambda(HybridBlock):
    """A function ``f(F, x, ...)``, or the operator of a name, as a hybrid block."""

    def __init__(self, function, prefix=None):
        super().__init__(prefix=prefix)
        self._func_name = function if isinstance(function, str) else function.__name__
        if isinstance(function, str):
            if not (hasattr(ndarray, function) and hasattr(symbol, function)):
                raise AssertionError(f"Function name {function} is not found in symbol/ndarray.")
            self._func = lambda F, *args: getattr(F, self._func_name)(*args)
        else:
            self._func = function

    def hybrid_forward(self, F, x, *args):
        return self._func(F, x, *args)

    def __repr__(self):
        return f"{type(self).__name__}({self._func_name})"
