"""Parameters of blocks: their arrays on each device, first values, gradients, names and files."""

import re
import warnings

import numpy as np

from .. import autograd
from ..context import Context, cpu, current_context
from ..errors import ParamError
from ..graph import functions as symbol
from ..ndarray import NDArray, array, load, save, zeros
from ..ndarray.parameters import mean_of
from ..recording import Mode
from ..training import initializer
from .utils import shape_is_known

__all__ = ["Constant", "DeferredInitializationError", "Parameter", "ParameterDict"]


class DeferredInitializationError(RuntimeError):
    """A parameter was asked for before its shape is known."""


def _fits(shape, known) -> bool:
    """Whether a shape is one that is known so far, where 0 and -1 stand for any length."""
    same = len(shape) == len(known)
    return same and all(k in (-1, 0, n) for n, k in zip(shape, known, strict=True))


def _as_contexts(ctx) -> list[Context]:
    if ctx is None:
        return [current_context()]
    return [ctx] if isinstance(ctx, Context) else list(ctx)


class _OnDevices(dict):
    """Arrays by device, in order. A number is the device at that place; scripts know MXNet's lists."""

    def __missing__(self, key):
        if not isinstance(key, int):
            raise KeyError(key)
        return self[list(self)[key]]

    def __setitem__(self, key, value):
        super().__setitem__(list(self)[key] if isinstance(key, int) else key, value)


class Parameter:
    """An array that a block learns, on one device or on several.

    The arguments are MXNet's. Entries of ``shape`` that are 0 follow from the first batch; ``stype`` and
    ``grad_stype`` are ``"default"``, since arrays are dense here.
    """

    def __init__(
        self,
        name,
        grad_req="write",
        shape=None,
        dtype=np.float32,
        lr_mult=1.0,
        wd_mult=1.0,
        init=None,
        allow_deferred_init=False,
        differentiable=True,
        stype="default",
        grad_stype="default",
    ):
        for what, value in (("stype", stype), ("grad_stype", grad_stype)):
            if value not in ("default", "row_sparse", "csr"):
                raise AssertionError(
                    f"{what} for Parameter '{name}' must be one of 'default', 'row_sparse', or 'csr', "
                    f"but got {value!r}"
                )
            if value != "default":
                raise ParamError(
                    f"Parameter '{name}': {what}={value!r} is not offered, since parameters and gradients "
                    "are dense here; leave it out (sparse_grad=False of an Embedding)"
                )
        self.name, self.lr_mult, self.wd_mult, self.init = name, lr_mult, wd_mult, init
        self._shape = (shape,) if isinstance(shape, int) else shape
        self._dtype, self._differentiable = dtype, differentiable
        self._allow_deferred_init = allow_deferred_init
        self._var = self._data = self._grad = self._trainer = None
        #: What fills it, where, and the network's initializer, once that has been asked for; then a value.
        self._deferred_init = ()
        self._grad_req = None
        self.grad_req = grad_req

    def __repr__(self):
        return f"{type(self).__name__} {self.name} (shape={self.shape}, dtype={self.dtype})"

    # -- what it is ----------------------------------------------------------------------------------

    @property
    def grad_req(self) -> str:
        """What backward does with its gradient."""
        return self._grad_req

    @grad_req.setter
    def grad_req(self, req):
        if req not in ("write", "add", "null"):
            raise AssertionError(f"grad_req must be one of 'write', 'add', or 'null', but got {req!r}")
        req = req if self._differentiable else "null"
        if self._grad_req == req:
            return
        self._grad_req = req
        if self._data is not None:
            self._mark()

    @property
    def dtype(self):
        """Its dtype; setting it casts the arrays."""
        return self._dtype

    @dtype.setter
    def dtype(self, dtype):
        self.cast(dtype)

    @property
    def shape(self):
        """Its shape, with 0 for entries that are not known yet, or None."""
        return self._shape

    @shape.setter
    def shape(self, shape):
        old = self._shape
        if old is not None and not _fits(shape, old):
            raise AssertionError(
                f"Expected shape {shape} is incompatible with given shape {old} of {self.name}."
            )
        self._shape = shape

    stype = grad_stype = "default"

    def var(self):
        """The symbol that stands for it."""
        if self._var is None:
            factors = {"lr_mult": self.lr_mult, "wd_mult": self.wd_mult}
            self._var = symbol.var(self.name, shape=self.shape, dtype=self.dtype, init=self.init, **factors)
        return self._var

    # -- its arrays ----------------------------------------------------------------------------------

    def initialize(self, init=None, ctx=None, default_init=None, force_reinit=False) -> None:
        """Make the arrays and fill them, now or as soon as the shape is known.

        They are filled by ``init``, or by the parameter's own, or by ``default_init``. Arrays that are there
        already stay unless ``force_reinit`` is set.
        """
        if self._data is not None and not force_reinit:
            warnings.warn(
                f"Parameter '{self.name}' is already initialized, ignoring. Set force_reinit=True to "
                "re-initialize.",
                stacklevel=2,
            )
            return
        self._data = self._grad = None
        default_init = initializer.Uniform() if default_init is None else default_init
        if init is None:
            init = default_init if self.init is None else self.init
        self._deferred_init = (init, _as_contexts(ctx), default_init, None)
        if shape_is_known(self.shape):
            self._finish_deferred_init()
        elif not self._allow_deferred_init:
            self._deferred_init = ()
            raise ValueError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}."
            )

    def _finish_deferred_init(self) -> None:
        if not self._deferred_init:
            return
        if not shape_is_known(self.shape):
            raise AssertionError(
                f"Cannot initialize Parameter '{self.name}' because it has invalid shape: {self.shape}. "
                "Please specify in_units, in_channels, etc for `Block`s."
            )
        init, contexts, default_init, data = self._deferred_init
        self._deferred_init = ()
        with Mode(tape=None):
            self._place(self._first_values(init, default_init) if data is None else data, contexts)

    def _first_values(self, init, default_init) -> NDArray:
        values = zeros(self.shape, cpu(), self.dtype)
        initializer.create(default_init)(initializer.InitDesc(self.name, {"__init__": init}), values)
        return values

    def _place(self, values: NDArray, contexts) -> None:
        self._data = _OnDevices({ctx: values.copyto(ctx) for ctx in contexts})
        self._mark()

    def _mark(self) -> None:
        """Give the arrays gradients, or take them away."""
        if self.grad_req == "null":
            self._grad = None
            self._data = _OnDevices({ctx: each.detach() for ctx, each in self._data.items()})
            return
        self._grad = _OnDevices({ctx: zeros(a.shape, ctx, a.dtype) for ctx, a in self._data.items()})
        autograd.mark_variables(list(self._data.values()), list(self._grad.values()), self.grad_req)

    def _held(self, ctx, *, gradient=False):
        """The array of a device or its gradient, or those of all devices."""
        if self._data is None and self._deferred_init:
            raise DeferredInitializationError(
                f"Parameter '{self.name}' has not been initialized yet because initialization was "
                "deferred. Actual initialization happens during the first forward pass. Please pass one "
                "batch of data through the network before accessing Parameters. You can also avoid "
                "deferred initialization by specifying in_units, num_features, etc., for network layers."
            )
        if self._data is None:
            raise RuntimeError(
                f"Parameter '{self.name}' has not been initialized. Note that you should initialize "
                "parameters and create Trainer with Block.collect_params() instead of Block.params because "
                "the later does not include Parameters of nested child Blocks"
            )
        arrays = self._grad if gradient else self._data
        if arrays is None:
            raise RuntimeError(
                f"Cannot get gradient array for Parameter '{self.name}' because grad_req='null'"
            )
        if ctx is list:
            return list(arrays.values())
        if ctx is None and len(arrays) == 1:
            return next(iter(arrays.values()))
        found = arrays.get(current_context() if ctx is None else ctx)
        if found is None:
            raise RuntimeError(
                f"Parameter '{self.name}' was not initialized on context {ctx or current_context()}. "
                f"It was only initialized on {list(arrays)}."
            )
        return found

    def data(self, ctx=None) -> NDArray:
        """The array on a device."""
        found = None if self._data is None else self._data.get(ctx)
        return self._held(ctx) if found is None else found

    def list_data(self) -> list[NDArray]:
        """The arrays on all devices."""
        return self._held(list)

    def row_sparse_data(self, row_id):
        """Refused: parameters are dense."""
        raise ParamError(f"Parameter {self.name!r}: it is dense, as all are here; call data()")

    list_row_sparse_data = row_sparse_data

    def grad(self, ctx=None) -> NDArray:
        """The gradient on a device."""
        return self._held(ctx, gradient=True)

    def list_grad(self) -> list[NDArray]:
        """The gradients on all devices."""
        return self._held(list, gradient=True)

    def list_ctx(self) -> list[Context]:
        """The devices that it is on."""
        if self._data is not None:
            return list(self._data)
        if self._deferred_init:
            return self._deferred_init[1]
        raise RuntimeError(f"Parameter '{self.name}' has not been initialized")

    @property
    def _ctx_map(self) -> tuple[list, list]:
        """MXNet's tables, for GPUs and for CPUs: which of ``_data`` lies on the device of a number."""
        gpus, cpus = [], []
        for place, ctx in enumerate(self.list_ctx()):
            table = gpus if ctx.is_gpu else cpus
            table.extend([None] * (ctx.device_id + 1 - len(table)))
            table[ctx.device_id] = place
        return gpus, cpus

    def zero_grad(self) -> None:
        """Set the gradients to zero."""
        with Mode(tape=None):
            for gradient in (self._grad or {}).values():
                gradient[:] = 0

    def set_data(self, data) -> None:
        """Set the arrays on all devices to ``data``."""
        self.shape = data.shape
        if self._data is None:
            if not self._deferred_init:
                raise AssertionError(f"Parameter '{self.name}' has not been initialized")
            self._deferred_init = (*self._deferred_init[:3], data)
            return
        if self._trainer is not None:
            self._trainer._forget_store_of(self)
        with Mode(tape=None):
            for each in self._data.values():
                each[:] = data

    def reset_ctx(self, ctx) -> None:
        """Move it to other devices."""
        if self._data is not None:
            with Mode(tape=None):
                self._place(self._reduce(), _as_contexts(ctx))
        elif self._deferred_init:
            init, _, default_init, data = self._deferred_init
            self._deferred_init = (init, _as_contexts(ctx), default_init, data)
        else:
            raise ValueError(
                f"Cannot reset context for Parameter '{self.name}' because it has not been initialized."
            )

    def cast(self, dtype) -> None:
        """Cast the arrays to another dtype."""
        self._dtype, self._var = dtype, None
        if self._data is not None:
            with Mode(tape=None):
                self._data = _OnDevices({ctx: each.astype(dtype) for ctx, each in self._data.items()})
                self._mark()

    def _reduce(self) -> NDArray:
        """The mean over the devices, as files have it."""
        return mean_of(self.list_data())

    def _load_init(self, data, ctx, cast_dtype=False, dtype_source="current") -> None:
        """Take the values of a file."""
        if cast_dtype and dtype_source not in ("current", "saved"):
            raise AssertionError(f"dtype_source must be 'current' or 'saved', got {dtype_source!r}")
        if self.shape and not _fits(data.shape, self.shape):
            raise AssertionError(
                f"Failed loading Parameter '{self.name}' from saved params: shape incompatible "
                f"expected {self.shape} vs saved {data.shape}"
            )
        if self.dtype and np.dtype(self.dtype) != data.dtype:
            if not cast_dtype:
                raise AssertionError(
                    f"Failed loading Parameter '{self.name}' from saved params: dtype incompatible expected "
                    f"{np.dtype(self.dtype)} vs saved {np.dtype(data.dtype)}. "
                    "Set cast_dtype=True to cast the dtype of saved params."
                )
            if dtype_source == "current":
                data = data.astype(self.dtype)
            else:
                self.cast(data.dtype)
        self._shape = tuple(data.shape)
        contexts = [ctx] if isinstance(ctx, Context) else ctx
        have = self.list_ctx() if self._data is not None or self._deferred_init else None
        if have and contexts is not None and set(contexts) != set(have):
            raise AssertionError(
                f"Failed to load Parameter '{self.name}' on {ctx} because it was previous "
                f"initialized on {have}."
            )
        self._deferred_init = ()
        if self._data is not None:
            self.set_data(data)
        else:
            with Mode(tape=None):
                self._place(data, have or contexts or [cpu()])


class Constant(Parameter):
    """An array of a block that does not change."""

    def __init__(self, name, value):
        self.value = value if isinstance(value, NDArray) else array(value)
        super().__init__(name, "null", self.value.shape, self.value.dtype, differentiable=False)

    def _first_values(self, init, default_init):
        return self.value.astype(self.dtype)

    @Parameter.grad_req.setter
    def grad_req(self, req):
        self._grad_req = "null"
        if req != "null":
            warnings.warn(
                f'Constant parameter "{self.name}" does not support grad_req other than "null", and new '
                f'value "{req}" is ignored.',
                stacklevel=2,
            )


def _brief(names) -> str:
    names = [f"'{name}'" for name in names]
    return ", ".join([*names[:5], "...", *names[-5:]] if len(names) > 10 else names)


_HOW_TO_NAME = (
    "For more info on naming, please see "
    "https://mxnet.io/api/python/docs/tutorials/packages/gluon/blocks/naming.html"
)


class ParameterDict(dict):
    """Parameters by their full names; ``shared`` lends parameters of the same names."""

    def __init__(self, prefix="", shared=None):
        super().__init__()
        self._prefix, self._shared = prefix, shared

    __hash__ = object.__hash__

    def __repr__(self):
        name = f"{self._prefix} " if self._prefix else ""
        return f"{name}(\n" + "\n".join(f"  {each}" for each in self.values()) + "\n)"

    @property
    def prefix(self) -> str:
        """What the names begin with."""
        return self._prefix

    def _find(self, name):
        if name not in self and self._shared is not None and name in self._shared:
            self[name] = self._shared[name]
        return super().get(name)

    def get(self, name, **kwargs) -> Parameter:
        """The parameter ``<prefix><name>``, made with ``kwargs`` where there is none."""
        name = self.prefix + name
        parameter = self._find(name)
        if parameter is None:
            parameter = self[name] = Parameter(name, **kwargs)
            return parameter
        for key, value in kwargs.items():
            existing = getattr(parameter, key, None)
            if existing is None:
                setattr(parameter, key, value)
                continue
            if key == "shape" and value is not None and len(value) == len(existing):
                pairs = list(zip(value, existing, strict=True))
                if all(new == old or new <= 0 or old <= 0 for new, old in pairs):
                    parameter._shape = tuple(old if new in (0, -1) else new for new, old in pairs)
                    continue
            if key == "dtype" and np.dtype(value) == np.dtype(existing):
                continue
            if value is not None and value != existing:
                raise AssertionError(
                    f"Cannot retrieve Parameter '{name}' because desired attribute does not match with "
                    f"stored for attribute '{key}': desired '{value}' vs stored '{existing}'."
                )
        return parameter

    def get_constant(self, name, value=None) -> Constant:
        """The constant ``<prefix><name>``, made of ``value`` where there is none."""
        name = self.prefix + name
        parameter = self._find(name)
        if parameter is None:
            if value is None:
                raise KeyError(
                    f"No constant named '{name}'. Please specify value if you want to create a new constant."
                )
            parameter = self[name] = Constant(name, value)
        elif value is not None:
            if not isinstance(parameter, Constant):
                raise AssertionError(f"Parameter '{name}' already exists but it is not a constant.")
            if not np.array_equal(np.asarray(value), parameter.value.asnumpy()):
                raise AssertionError(
                    f"Constant '{name}' already exists but it's value doesn't match new value"
                )
        return parameter

    def update(self, other) -> None:
        """Take in all parameters of another dict."""
        for name, parameter in other.items():
            if name in self and self[name] is not parameter:
                raise AssertionError(
                    "Cannot update self with other because they have different Parameters with the same "
                    f"name '{name}'"
                )
        super().update(other)

    def initialize(self, init=None, ctx=None, verbose=False, force_reinit=False) -> None:
        """Initialize all parameters; ``init`` is for those that have none of their own."""
        init = initializer.Uniform() if init is None else init
        if verbose:
            init.set_verbosity(verbose=verbose)
        for parameter in self.values():
            parameter.initialize(None, ctx, init, force_reinit=force_reinit)

    def zero_grad(self) -> None:
        """Set all gradients to zero."""
        for parameter in self.values():
            parameter.zero_grad()

    def reset_ctx(self, ctx) -> None:
        """Move all parameters to other devices."""
        for parameter in self.values():
            parameter.reset_ctx(ctx)

    def list_ctx(self) -> list[Context]:
        """All devices that parameters are on."""
        return list(dict.fromkeys(ctx for parameter in self.values() for ctx in parameter.list_ctx()))

    def setattr(self, name, value) -> None:
        """Set an attribute of all parameters: ``setattr("grad_req", "null")``."""
        for parameter in self.values():
            setattr(parameter, name, value)

    def select(self, pattern: str) -> dict:
        """The parameters whose names begin as the regular expression says."""
        compiled = re.compile(pattern)
        return {name: each for name, each in self.items() if compiled.match(name)}

    def save(self, filename, strip_prefix="") -> None:
        """Write the parameters to a file, by their names without ``strip_prefix``."""
        for name in self.keys():
            if not name.startswith(strip_prefix):
                raise ValueError(
                    f"Prefix '{strip_prefix}' is to be striped before saving, but Parameter's name '{name}' "
                    f"does not start with '{strip_prefix}'. this may be due to your Block shares parameters "
                    "from other Blocks or you forgot to use 'with name_scope()' when creating child blocks. "
                    f"{_HOW_TO_NAME}"
                )
        save(filename, {name[len(strip_prefix) :]: each._reduce() for name, each in self.items()})

    def load(
        self,
        filename,
        ctx=None,
        allow_missing=False,
        ignore_extra=False,
        restore_prefix="",
        cast_dtype=False,
        dtype_source="current",
    ) -> None:
        """Read the parameters from a file, where their names lack ``restore_prefix``.

        The other arguments are those of :meth:`Block.load_parameters`.
        """
        options = {"cast_dtype": cast_dtype, "dtype_source": dtype_source}
        self.load_dict(load(filename), ctx, allow_missing, ignore_extra, restore_prefix, filename, **options)

    def load_dict(
        self,
        param_dict,
        ctx=None,
        allow_missing=False,
        ignore_extra=False,
        restore_prefix="",
        filename=None,
        cast_dtype=False,
        dtype_source="current",
    ) -> None:
        """The same of arrays by name."""
        for name in self.keys():
            if not name.startswith(restore_prefix):
                raise AssertionError(
                    f"restore_prefix is '{restore_prefix}' but Parameters name '{name}' does not start with "
                    f"'{restore_prefix}'. {_HOW_TO_NAME}"
                )
        source = f"file: {filename}" if filename else "param_dict"
        pairs = param_dict.items() if isinstance(param_dict, dict) else param_dict
        given = {restore_prefix + re.sub("^(arg|aux):", "", name): value for name, value in pairs}
        missing = [name for name in self.keys() if name not in given]
        if missing and not allow_missing:
            raise AssertionError(
                f"Parameter '{missing[0][len(restore_prefix) :]}' is missing in {source}, which contains "
                f"parameters: {_brief(given)}. Please make sure source and target networks have the same "
                f"prefix. {_HOW_TO_NAME}"
            )
        extra = [name for name in given if name not in self]
        if extra and not ignore_extra:
            raise AssertionError(
                f"Parameter '{extra[0][len(restore_prefix) :]}' loaded from {source} is not present in "
                f"ParameterDict, choices are: {_brief(self)}. Set ignore_extra to True to ignore. "
                f"Please make sure source and target networks have the same prefix. {_HOW_TO_NAME}"
            )
        for name, value in given.items():
            if name in self:
                self[name]._load_init(value, ctx, cast_dtype=cast_dtype, dtype_source=dtype_source)
