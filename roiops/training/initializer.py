"""How parameters get their first values."""

import json
import logging
import math
import re

import numpy as np

from ..errors import FormatError, ParamError, ShapeError, nearest
from ..ndarray import load as _load_arrays
from ..random import generator
from .factory import Declared, Factory

__all__ = [
    "Bilinear",
    "Constant",
    "InitDesc",
    "Initializer",
    "LSTMBias",
    "Load",
    "MSRAPrelu",
    "Mixed",
    "Normal",
    "One",
    "Orthogonal",
    "Uniform",
    "Xavier",
    "Zero",
    "alias",
    "create",
    "register",
]

#: What a parameter holds that is no weight, by the end of its name.
_BY_NAME = {
    "bias": 0,
    "gamma": 1,
    "beta": 0,
    "moving_mean": 0,
    "running_mean": 0,
    "moving_var": 1,
    "running_var": 1,
    "moving_inv_var": 0,
    "moving_avg": 0,
    "min": 0,
    "max": 1,
}


class InitDesc(str):
    """A parameter's name together with its attributes.

    Parameters
    ----------
    name : str
        The name.
    attrs : dict of str, optional
        The variable's attributes; ``__init__`` among them overrides the initializer.
    global_init : Initializer, optional
        The initializer of the whole network.
    """

    def __new__(cls, name, attrs=None, global_init=None):
        desc = super().__new__(cls, name)
        desc.attrs = attrs or {}
        desc.global_init = global_init
        return desc


class Initializer:
    """Calling it with a name and an array fills the array.

    A weight is filled by :meth:`_init_weight`, which subclasses override; biases, gammas, betas and the
    states of BatchNorm get zeros or ones by their names; an ``__init__`` attribute of the variable wins.
    Keyword arguments of the constructor are kept for :meth:`dumps`.
    """

    def __init__(self, **kwargs):
        self._kwargs = kwargs
        self._verbose, self._print_func = False, None

    def set_verbosity(self, verbose=False, print_func=None):
        """Log what each array was filled with, as ``print_func(array)`` tells it."""
        self._verbose = verbose
        self._print_func = print_func or (lambda x: f"{np.sqrt(np.mean(np.square(x.asnumpy()))):.6g}")
        return self

    def dumps(self) -> str:
        """The initializer as JSON, which :func:`create` reads."""
        return json.dumps([type(self).__name__.lower(), self._kwargs])

    def __call__(self, desc, arr) -> None:
        attrs = getattr(desc, "attrs", {})
        how = attrs.get("__init__")
        if how:
            create(how)._init_weight(desc, arr)
        elif desc.endswith("weight"):
            how = "weight"
            self._init_weight(desc, arr)
        else:
            how = next((end for end in _BY_NAME if desc.endswith(end)), "default")
            if how == "default":
                self._init_default(desc, arr)
            else:
                getattr(self, f"_init_{how}", _fill(_BY_NAME[how]))(desc, arr)
        if self._verbose:
            logging.info("Initialized %s as %s: %s", desc, how, self._print_func(arr))

    def _init_weight(self, name, arr) -> None:
        raise NotImplementedError(f"{type(self).__name__} must override _init_weight")

    def _init_default(self, name, arr) -> None:
        raise ParamError(
            f"{type(self).__name__}: cannot tell what {name} is; names end in weight, {', '.join(_BY_NAME)}, "
            "or the variable says: Variable(name, init=...)"
        )

    def __eq__(self, other):
        if not isinstance(other, Initializer):
            return NotImplemented
        return type(self) is type(other) and self._kwargs == other._kwargs

    __hash__ = object.__hash__


def _fill(value):
    def fill(name, arr):
        arr[:] = value

    return fill


_factory = Factory(Initializer, "initializer")
register, alias, create = _factory.register, _factory.alias, _factory.create


@register
class LSTMBias(Declared, Initializer, takes={"forget_bias": 1.0}):
    """The bias of an LSTM cell: zeros, and ``forget_bias`` for the forget gate, the second of four."""

    def _init_weight(self, name, arr):
        count = arr.shape[0] // 4
        arr[:] = 0
        arr[count : 2 * count] = self.forget_bias


@alias("zeros")
@register
class Zero(Declared, Initializer, takes={}):
    """Zeros."""

    def _init_weight(self, name, arr):
        arr[:] = 0


@alias("ones")
@register
class One(Declared, Initializer, takes={}):
    """Ones."""

    def _init_weight(self, name, arr):
        arr[:] = 1


@register
class Constant(Initializer):
    """One value, or an array of values."""

    def __init__(self, value):
        super().__init__(value=value if np.isscalar(value) else np.asarray(value).tolist())
        self.value = value

    def _init_weight(self, name, arr):
        arr[:] = self.value


def _uniform(shape, scale):
    return (generator().random(shape, np.float32) * 2 - 1) * np.float32(scale)


def _normal(shape, sigma):
    return generator().standard_normal(shape, np.float32) * np.float32(sigma)


@register
class Uniform(Declared, Initializer, takes={"scale": 0.07}):
    """Evenly distributed between ``-scale`` and ``scale``."""

    def _init_weight(self, name, arr):
        arr[:] = _uniform(arr.shape, self.scale)


@register
class Normal(Declared, Initializer, takes={"sigma": 0.01}):
    """Normally distributed with standard deviation ``sigma``."""

    def _init_weight(self, name, arr):
        arr[:] = _normal(arr.shape, self.sigma)


@register
class Orthogonal(Declared, Initializer, takes={"scale": 1.414, "rand_type": ["uniform", "normal"]}):
    """Rows (or columns, whichever are fewer) that are orthogonal and have length ``scale``."""

    def _init_weight(self, name, arr):
        shape = (arr.shape[0], math.prod(arr.shape[1:]))
        draw = _uniform(shape, 1.0) if self.rand_type == "uniform" else _normal(shape, 1.0)
        left, _, right = np.linalg.svd(draw, full_matrices=False)
        arr[:] = self.scale * (left if left.shape == shape else right).reshape(arr.shape)


@register
class Xavier(
    Declared,
    Initializer,
    takes={"rnd_type": ["uniform", "gaussian"], "factor_type": ["avg", "in", "out"], "magnitude": 3},
):
    """Random with a spread that keeps the size of activations, ``sqrt(magnitude / fan)``.

    Parameters
    ----------
    rnd_type : str
        ``"uniform"`` or ``"gaussian"``.
    factor_type : str
        The fan: ``"in"``, ``"out"`` or their ``"avg"``.
    magnitude : float
        3 for uniform numbers of variance 1 / fan; 2 for gaussian numbers before ReLU.
    """

    def _init_weight(self, name, arr):
        shape = arr.shape
        if len(shape) < 2:
            raise ShapeError(f"Xavier: {name} must have at least 2 dimensions, got shape {tuple(shape)}")
        window = math.prod(shape[2:])
        fan_in, fan_out = shape[1] * window, shape[0] * window
        fan = {"avg": (fan_in + fan_out) / 2, "in": fan_in, "out": fan_out}[self.factor_type]
        scale = math.sqrt(float(self.magnitude) / fan)
        arr[:] = _uniform(shape, scale) if self.rnd_type == "uniform" else _normal(shape, scale)


@register
class MSRAPrelu(Xavier):
    """Gaussian, for layers followed by ReLU or PReLU with this initial ``slope``."""

    def __init__(self, factor_type="avg", slope=0.25):
        super().__init__("gaussian", factor_type, 2 / (1 + slope**2))
        self._kwargs = {"factor_type": factor_type, "slope": slope}


@register
class Bilinear(Declared, Initializer, takes={}):
    """The kernel of a Deconvolution that enlarges bilinearly."""

    def _init_weight(self, name, arr):
        if len(arr.shape) != 4:
            raise ShapeError(f"Bilinear: {name} must have 4 dimensions, got shape {tuple(arr.shape)}")
        half = math.ceil(arr.shape[3] / 2)
        centre = (2 * half - 1 - half % 2) / (2 * half)
        tents = [1 - np.abs(np.arange(n) / half - centre) for n in arr.shape[2:]]
        arr[:] = np.broadcast_to(np.outer(*tents).astype(np.float32), arr.shape)


class Load:
    """Take arrays from a ``.params`` file or a dict, and the others from ``default_init``.

    Parameters
    ----------
    param : str or dict of NDArray
        The file or the arrays; the prefixes ``arg:`` and ``aux:`` are dropped.
    default_init : Initializer, optional
        For names that are not there; without it they are an error.
    verbose : bool
        Whether to log where each array came from.
    """

    def __init__(self, param, default_init=None, verbose=False):
        if isinstance(param, str):
            param = _load_arrays(param)
        if not isinstance(param, dict):
            raise FormatError(f"Load: needs arrays with names, got {type(param).__name__}")
        self.param = {re.sub("^(arg|aux):", "", name): array for name, array in param.items()}
        self.default_init, self.verbose = default_init, verbose

    def __call__(self, name, arr):
        if name in self.param:
            have = tuple(self.param[name].shape)
            if have != tuple(arr.shape):
                raise ShapeError(
                    f"Load: {name} must have shape {tuple(arr.shape)}, the loaded one has {have}"
                )
            arr[:] = self.param[name]
        elif self.default_init is None:
            raise ParamError(
                f"Load: {name} was not loaded and default_init is not given{nearest(name, self.param)}"
            )
        else:
            self.default_init(name, arr)
        if self.verbose:
            logging.info("Initialized %s by %s", name, "loading" if name in self.param else "default")


class Mixed:
    """The initializer of the first regular expression that matches the start of the name.

    Parameters
    ----------
    patterns : list of str
        Regular expressions; ``".*"`` last catches the rest.
    initializers : list of Initializer
        One for each pattern.
    """

    def __init__(self, patterns, initializers):
        if len(patterns) != len(initializers):
            raise ParamError(f"Mixed: {len(patterns)} patterns for {len(initializers)} initializers")
        self.map = [
            (re.compile(pattern), create(each) if isinstance(each, str) else each)
            for pattern, each in zip(patterns, initializers, strict=True)
        ]

    def __call__(self, name, arr):
        for pattern, initializer in self.map:
            if pattern.match(name):
                initializer(name, arr)
                return
        raise ParamError(f"Mixed: no pattern matches {name}; add '.*' with a default initializer at the end")
