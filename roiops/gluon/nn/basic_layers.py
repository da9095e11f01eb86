"""Containers, dense layers, normalisation, embeddings."""

import copy
import itertools
import warnings

import numpy as np

from ... import ndarray, registry
from ...errors import ParamError
from ...graph import functions as symbol
from ...ndarray.invoke import followed
from ...ndarray.ndarray import wrap
from ...operators import checks
from ...recording import current
from ...training.factory import REQUIRED, Declared
from ..block import Block, described
from ..declare import Layer
from ..hybrid import HybridBlock
from .activations import Activation

__all__ = ["BatchNorm", "BatchNormReLU", "Dense", "Dropout", "Embedding", "Flatten", "GroupNorm"]
__all__ += ["HybridLambda", "HybridSequential", "InstanceNorm", "Lambda", "LayerNorm", "Sequential"]


class _AtOnce:
    """Layers of one operator each that one kernel computes, as in a bound graph, in inference on the CPU."""

    def __init__(self, layers: list, x):
        #: The layers themselves are kept, so that no other array can have the id of one of theirs.
        self._layers, self._key = layers, copy.deepcopy(_key_of(layers, x))
        names, kwargs, arrays = map(list, zip(*layers, strict=True))
        dense = all(a.dtype == np.float32 and a.flags.c_contiguous for some in arrays for a in some)
        arrays[0] = [x.data, *arrays[0]]
        operators = list(zip(map(registry.get, names), kwargs, strict=True))
        self._call = followed(operators, arrays, x.context) if dense else None
        #: How many of the layers; 0 where they are better called one by one.
        self.count = self._call.count if self._call else 0

    def __reduce__(self):
        return type(None), ()  # a block that is copied or pickled makes its own

    def is_of(self, layers: list, x) -> bool:
        """Whether it was made of just these layers, for data of this shape."""
        return self._key == _key_of(layers, x)

    def __call__(self, x):
        out = ndarray.device.empty(*self._call.output, x.context)
        self._call(x.data, out)
        return wrap(out, x.context)


def _key_of(layers: list, x) -> tuple:
    """The operators of layers, their parameters as they are now, the very arrays, and the shape of data."""
    return x.shape, [(name, kwargs, list(map(id, arrays))) for name, kwargs, arrays in layers]


class _Stack:
    """What both kinds of sequences share."""

    _is_container = True

    def __init__(self, prefix=None, params=None):
        super().__init__(prefix, params)
        #: What is done at once, by the number of its first layer.
        self._at_once = {}

    def add(self, *blocks) -> None:
        """Put blocks on top."""
        for block in blocks:
            self.register_child(block)

    def _run(self, x, args):
        blocks, done = list(self._children.values()), 0
        while done < len(blocks):
            found = None if args else self._found_at_once(blocks, done, x)
            if found:
                x = found(x)
                # Only now: until then, another thread makes its own.
                self._at_once[done] = found
            else:
                x, args = blocks[done](x, *args), []
                if isinstance(x, list | tuple):
                    x, args = x[0], x[1:]
            done += found.count if found else 1
        return (x, *args) if args else x

    def _found_at_once(self, blocks, first, x) -> _AtOnce | None:
        """What computes the block of this number and the next ones, for the caller alone."""
        if not isinstance(blocks[first], Layer) or not isinstance(x, ndarray.NDArray) or x.context.is_gpu:
            return None
        if current.training or current.tape is not None or checks.on():
            return None
        if x.data.dtype != np.float32 or not x.data.flags.c_contiguous:
            return None
        some = blocks[first : first + 3]
        layers = [each._as_operator(x.context) if isinstance(each, Layer) else None for each in some]
        layers = list(itertools.takewhile(bool, layers))
        if len(layers) < 2:
            return None
        found = self._at_once.pop(first, None)
        if found is None or not found.is_of(layers, x):
            found = _AtOnce(layers, x)
        if found.count:
            return found
        self._at_once[first] = found
        return None

    def __repr__(self):
        return described(self, self._children)

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


_DENSE = {"units": REQUIRED, "activation": None, "use_bias": True, "flatten": True, "dtype": "float32"}
_INITIALIZERS = {"weight_initializer": None, "bias_initializer": "zeros"}


class Linear(Layer):
    """Base of layers with a ``weight``, and perhaps a ``bias`` and an activation."""

    bias = None

    def _learn_both(self, shape, units, weight_initializer, bias_initializer, use_bias, activation, **more):
        self._learn("weight", shape, weight_initializer, **more)
        if use_bias:
            self._learn("bias", (units,), bias_initializer, **more)
        self._activate(activation)

    def _activate(self, activation):
        with self.name_scope():
            self.act = None if activation is None else Activation(activation, prefix=f"{activation}_")


class Dense(Linear, takes={**_DENSE, **_INITIALIZERS, "in_units": 0}):
    """``activation(x W' + b)``, a fully connected layer: ``units`` numbers of the ``in_units`` of each row.

    With ``flatten``, all axes but the first count as one; else the last one alone is read.
    """

    _op_name = "FullyConnected"

    def _set_up(self, units, flatten, in_units, **given):
        self._units, self._in_units, self._flatten = units, in_units, flatten
        self._kwargs = {"no_bias": not given["use_bias"], "num_hidden": units, "flatten": flatten}
        self._learn_both((units, in_units), units, **given)

    def __repr__(self):
        rows, columns = self.weight.shape
        return f"{type(self).__name__}({columns or None} -> {rows}, {self.act or 'linear'})"


class Dropout(Declared, HybridBlock, takes={"rate": REQUIRED, "axes": ()}):
    """In training, each number is 0 with probability ``rate``; along ``axes``, all together."""

    def hybrid_forward(self, F, x):
        if self._rate > 0:
            return F.Dropout(x, p=self._rate, axes=self._axes, name="fwd", cudnn_off=False)
        return F.identity(x)

    def __repr__(self):
        return f"{type(self).__name__}(p = {self._rate}, axes={self._axes})"


# Arguments of layers that normalise.
_FILLED = {"beta_initializer": "zeros", "gamma_initializer": "ones"}
_NORM = {"epsilon": 1e-5, "center": True, "scale": True, **_FILLED, "in_channels": 0}
_STATES = {"running_mean_initializer": "zeros", "running_variance_initializer": "ones", "in_channels": 0}
_BATCH_NORM = {"momentum": 0.9, "epsilon": 1e-5, "center": True, "scale": True, "use_global_stats": False}
_BATCH_NORM = {**_BATCH_NORM, **_FILLED, **_STATES}


class _Norm(Layer):
    """Base of normalising layers: a scale ``gamma`` and a shift ``beta``."""

    def _set_up(self, epsilon, center, scale, beta_initializer, gamma_initializer, in_channels, **more):
        self._epsilon, self._axis, self.in_channels = epsilon, more.get("axis", 1), in_channels
        self._kwargs = {"eps": epsilon, **more}
        self._shown = {**self._kwargs, "center": center, "scale": scale}
        self._keep("gamma", gamma_initializer, scale)
        self._keep("beta", beta_initializer, center)

    def _keep(self, name, init, learns):
        """One number a channel, which is learned or not."""
        req = "write" if learns else "null"
        self._learn(name, (self.in_channels,), init, grad_req=req, differentiable=learns)

    def __repr__(self):
        shown = ", ".join(f"{key}={value!r}" for key, value in self._shown.items())
        return f"{type(self).__name__}({shown}, in_channels={self.gamma.shape[0] or None})"


class BatchNorm(_Norm, takes={"axis": 1, **_BATCH_NORM}):
    """Normalise each channel over the batch, in inference by the means and variances kept in training."""

    _op_name = "BatchNorm"

    def _set_up(self, running_mean_initializer, running_variance_initializer, scale, **given):
        super()._set_up(scale=scale, **given)
        self._kwargs = self._shown = {
            "axis": self._axis,
            "eps": self._epsilon,
            "momentum": given["momentum"],
            "fix_gamma": not scale,
            "use_global_stats": given["use_global_stats"],
        }
        self._keep("running_mean", running_mean_initializer, False)
        self._keep("running_var", running_variance_initializer, False)

    def cast(self, dtype):
        super().cast("float32" if np.dtype(dtype).name == "float16" else dtype)


class BatchNormReLU(BatchNorm, takes={"axis": 1, **_BATCH_NORM}):
    """:class:`BatchNorm`, and 0 for what is below."""

    def hybrid_forward(self, F, x, *learned, **by_name):
        return F.relu(super().hybrid_forward(F, x, *learned, **by_name))


class InstanceNorm(_Norm, takes={"axis": 1, **_NORM, "scale": False}):
    """Normalise each channel of each image."""

    def hybrid_forward(self, F, x, gamma, beta):
        turned = {"dim1": 1, "dim2": self._axis}
        x = x if self._axis == 1 else F.swapaxes(x, **turned)
        x = F.InstanceNorm(x, gamma, beta, name="fwd", eps=self._epsilon)
        return x if self._axis == 1 else F.swapaxes(x, **turned)


class LayerNorm(_Norm, takes={"axis": -1, **_NORM}):
    """Normalise along one axis."""

    _op_name, _node = "LayerNorm", None


class GroupNorm(_Norm, takes={"num_groups": 1, **_NORM}):
    """Normalise groups of channels of each image."""

    _op_name, _node = "GroupNorm", None


_EMBEDDING = {"input_dim": REQUIRED, "output_dim": REQUIRED, "dtype": "float32", "weight_initializer": None}


class Embedding(Layer, takes={**_EMBEDDING, "sparse_grad": False}):
    """The rows of a matrix that the numbers of the input tell."""

    _op_name = "Embedding"

    def _set_up(self, weight_initializer, **given):
        if given["sparse_grad"]:
            raise ParamError(
                "Embedding: sparse_grad=True is not offered, since gradients are dense here; leave it out"
            )
        self._kwargs, shape = given, (given["input_dim"], given["output_dim"])
        self._learn("weight", shape, weight_initializer, dtype=given["dtype"])

    def __repr__(self):
        rows, columns, dtype, _ = self._kwargs.values()
        return f"{type(self).__name__}({rows} -> {columns}, {dtype})"


class Flatten(Layer):
    """All axes but the first as one."""

    _op_name, _node = "Flatten", None

    def __repr__(self):
        return type(self).__name__


class _OfFunction:
    """What blocks of a function, or of the operator of a name, have in common."""

    _namespaces = (ndarray,)

    def __init__(self, function, prefix=None):
        super().__init__(prefix=prefix)
        named = isinstance(function, str)
        if not (named or callable(function)):
            raise ValueError(
                f"{type(self).__name__}: needs a function or an operator's name, got {function!r}"
            )
        if named and not all(hasattr(each, function) for each in self._namespaces):
            raise AssertionError(f"Function name {function} is not found in symbol/ndarray.")
        self._func, self._func_name = function, function if named else function.__name__

    def __repr__(self):
        return f"{type(self).__name__}({self._func_name})"


class Lambda(_OfFunction, Block):
    """A function on arrays, or the operator of a name, as a block."""

    def forward(self, *args):
        return (getattr(ndarray, self._func) if isinstance(self._func, str) else self._func)(*args)


class HybridLambda(_OfFunction, HybridBlock):
    """A function ``f(F, x, ...)``, or the operator of a name, as a hybrid block."""

    _namespaces = (ndarray, symbol)

    def hybrid_forward(self, F, x, *args):
        return getattr(F, self._func)(x, *args) if isinstance(self._func, str) else self._func(F, x, *args)
