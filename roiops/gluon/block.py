"""Blocks: models whose graph is Python, with their parameters, children and names."""

import warnings

from ..errors import MXNetError
from ..graph.naming import NameManager, Prefix, Scoped
from ..ndarray import NDArray, load, save
from .parameter import Parameter, ParameterDict, _brief

__all__ = ["Block"]


class _BlockScope(Scoped):
    """Names within a block: what is made in ``with block.name_scope()`` is called after it."""

    _stack = "blocks"

    def __init__(self, block):
        self._block, self._counter, self._names = block, NameManager(), []

    @staticmethod
    def _default():
        return None

    @classmethod
    def create(cls, prefix, params, hint):
        """The prefix and the parameters of a new block."""
        scope = cls.current()
        if prefix is None:
            prefix = (NameManager.current() if scope is None else scope._counter).get(None, hint) + "_"
        full = prefix if scope is None else scope._block.prefix + prefix
        if params is not None:
            return full, ParameterDict(params.prefix, params)
        if scope is None:
            return full, ParameterDict(prefix)
        return full, ParameterDict(scope._block.params.prefix + prefix, scope._block.params._shared)

    def __enter__(self):
        if not self._block._empty_prefix:
            self._names.append(Prefix(self._block.prefix).__enter__())
            super().__enter__()
        return self

    def __exit__(self, *error):
        if not self._block._empty_prefix:
            super().__exit__(*error)
            self._names.pop().__exit__(*error)


def flatten(args, what="input") -> tuple[list, object]:
    """The arrays or symbols of nested lists, and how they were nested: 0 for one, -1 for None."""
    if args is None:
        return [None], -1
    if isinstance(args, list | tuple):
        parts = [flatten(each, what) for each in args]
        return [each for flat, _ in parts for each in flat], [form for _, form in parts]
    if isinstance(args, NDArray):
        return [args], 0
    if hasattr(args, "list_outputs"):
        return [args], len(args) if len(args) > 1 else 0
    raise ValueError(
        f"When hybridized, the {what} of HybridBlock must be (nested) list of Symbol or NDArray, but got "
        f"{args} of type {type(args)}"
    )


def regroup(flat, form):
    """What :func:`flatten` took apart, put together again."""
    flat = list(flat)

    def take(form):
        if isinstance(form, list):
            return [take(each) for each in form]
        if form > 0:
            return [flat.pop(0) for _ in range(form)]
        return flat.pop(0)

    return take(form)


class HookHandle:
    """A hook that :meth:`detach` removes; also as a ``with`` block."""

    def __init__(self, hooks: dict, hook):
        self._hooks = hooks
        hooks[id(self)] = hook

    def detach(self) -> None:
        """Remove the hook."""
        self._hooks.pop(id(self), None)

    def __enter__(self):
        return self

    def __exit__(self, *error):
        self.detach()


def described(block, parts: dict, margin="  ") -> str:
    """A block and its parts, line by line."""
    lines = [f"{margin}({key}): " + repr(each).replace("\n", "\n  ") for key, each in parts.items()]
    return f"{type(block).__name__}(\n" + "\n".join(lines) + "\n)"


class Block:
    """Base of all layers and models: override ``forward``.

    Attributes that are blocks become children, those that are parameters become its own. The names of both
    begin with ``prefix``, made of the class's name unless given; ``params`` lends parameters of the same
    names.
    """

    #: What prefixes are made of, unless it is the class's name.
    _hint = ""
    #: With what the names of attributes begin that arguments become: see :class:`~.factory.Declared`.
    _begins = "_"

    def __init__(self, prefix=None, params=None):
        self._empty_prefix = prefix == ""
        self._prefix, self._params = _BlockScope.create(prefix, params, self._alias())
        self._name = self._prefix.removesuffix("_")
        self._scope = _BlockScope(self)
        self._children, self._reg_params = {}, {}
        self._forward_hooks, self._forward_pre_hooks = {}, {}

    def __repr__(self):
        return described(self, {key: each for key, each in vars(self).items() if isinstance(each, Block)})

    def __setattr__(self, name, value):
        existing = getattr(self, name, None)
        if isinstance(existing, Parameter | Block) and not isinstance(value, type(existing)):
            raise TypeError(
                f"Changing attribute type for {name} from {type(existing)} to {type(value)} is not allowed."
            )
        if isinstance(value, Block):
            self.register_child(value, name)
        elif isinstance(value, Parameter):
            if name in self._reg_params:
                raise AssertionError(
                    f"Overriding Parameter attribute {name} is not allowed. If you want to share parameters "
                    "between blocks, please set 'params' at Block construction instead."
                )
            self._reg_params[name] = value
        super().__setattr__(name, value)

    def _alias(self) -> str:
        return self._hint or type(self).__name__.lower()

    # -- names and parameters ------------------------------------------------------------------------

    @property
    def prefix(self) -> str:
        """What the names of its parameters and children begin with."""
        return self._prefix

    @property
    def name(self) -> str:
        """The prefix without the underscore at its end."""
        return self._name

    def name_scope(self):
        """Names of blocks made within ``with block.name_scope()`` begin with its prefix."""
        return self._scope

    @property
    def params(self) -> ParameterDict:
        """Its own parameters, without those of its children."""
        return self._params

    def _learn(self, name, shape, init, **given):
        """Make a parameter of its own; what is 0 in its shape follows from the first batch."""
        given = {"shape": shape, "init": init, "allow_deferred_init": True, **given}
        setattr(self, name, self.params.get(name, **given))

    def collect_params(self, select: str | None = None) -> ParameterDict:
        """Its parameters and those of all its children; ``select`` is a pattern for their names."""
        self._warn_of_blocks_in_lists()
        found = ParameterDict(self._params.prefix)
        found.update(self.params.select(select) if select else self.params)
        for child in self._children.values():
            found.update(child.collect_params(select))
        return found

    def _warn_of_blocks_in_lists(self) -> None:
        children = {id(child) for child in self._children.values()}

        def holds_other(value):
            if isinstance(value, dict):
                value = list(value.values())
            if isinstance(value, list | tuple):
                return any(map(holds_other, value))
            return isinstance(value, Block) and id(value) not in children

        for key, value in vars(self).items():
            if isinstance(value, list | tuple | dict) and holds_other(value):
                warnings.warn(
                    f'"{type(self).__name__}.{key}" is an unregistered container with '
                    "Blocks. Note that Blocks inside the list, tuple or dict will not be registered "
                    "automatically. Make sure to register them using register_child() or switching to "
                    "nn.Sequential/nn.HybridSequential instead. ",
                    stacklevel=3,
                )

    def _collect_params_with_prefix(self, prefix="") -> dict[str, Parameter]:
        """All parameters by the attributes that lead to them: ``features.0.weight``."""
        start = f"{prefix}." if prefix else ""
        found = {start + key: value for key, value in self._reg_params.items()}
        for name, child in self._children.items():
            found.update(child._collect_params_with_prefix(start + name))
        return found

    def register_child(self, block, name=None) -> None:
        """Make ``block`` a child, under a name or under its number."""
        self._children[str(len(self._children)) if name is None else name] = block

    def initialize(self, init=None, ctx=None, verbose=False, force_reinit=False) -> None:
        """Initialize all parameters, by default with ``Uniform()``, on a device or on several."""
        self.collect_params().initialize(init, ctx, verbose, force_reinit)

    def cast(self, dtype) -> None:
        """Cast all parameters to another dtype."""
        for child in self._children.values():
            child.cast(dtype)
        for parameter in self.params.values():
            parameter.cast(dtype)

    def save(self, prefix):
        """Refused: a file cannot hold the Python that a block is."""
        raise MXNetError(
            f"{type(self).__name__}: save and load are not offered: save_parameters and load_parameters keep "
            "parameters, export of a hybrid block and SymbolBlock.imports its graph, too"
        )

    load = save

    # -- files ---------------------------------------------------------------------------------------

    def save_parameters(self, filename, deduplicate=False) -> None:
        """Write all parameters to a file, by the attributes that lead to them.

        With ``deduplicate``, a shared parameter is written once only.
        """
        params = self._collect_params_with_prefix()
        if deduplicate:
            last = {id(value): (name, value) for name, value in params.items()}
            params = dict(last.values())
        save(filename, {name: each._reduce() for name, each in params.items()})

    def load_parameters(
        self,
        filename,
        ctx=None,
        allow_missing=False,
        ignore_extra=False,
        cast_dtype=False,
        dtype_source="current",
    ) -> None:
        """Read the parameters from a file of :meth:`save_parameters`, ``save_params`` or ``export``.

        They go to ``ctx``, or where they are, or to the CPU. ``allow_missing`` and ``ignore_extra`` say
        whether parameters may lack in the file, and whether it may hold others; ``cast_dtype``, whether
        dtypes may differ, of which ``dtype_source`` says the one kept, ``"current"`` or ``"saved"``.
        """
        loaded, params = load(filename), self._collect_params_with_prefix()
        options = {"cast_dtype": cast_dtype, "dtype_source": dtype_source}
        if not any("." in name for name in loaded):  # prefixed names, those of a graph
            every = self.collect_params()
            prefix = "" if any(name.startswith(("arg:", "aux:")) for name in loaded) else self.prefix
            every.load_dict(loaded, ctx, allow_missing, ignore_extra, prefix, filename, **options)
            return
        found = {id(params[name]) for name in loaded if name in params}
        missing = [name for name, each in params.items() if id(each) not in found]
        if missing and not allow_missing:
            raise AssertionError(
                f"Parameter '{missing[0]}' is missing in file '{filename}', which contains parameters: "
                f"{_brief(loaded)}. Set allow_missing=True to ignore missing parameters."
            )
        for name, value in loaded.items():
            if name in params:
                params[name]._load_init(value, ctx, **options)
            elif not ignore_extra:
                raise ValueError(
                    f"Parameter '{name}' loaded from file '{filename}' is not present in ParameterDict, "
                    f"which contains parameters {_brief(params)}. Set ignore_extra=True to ignore. "
                )

    def save_params(self, filename) -> None:
        """Write all parameters by their full names without the prefix; :meth:`save_parameters` is newer."""
        warnings.warn("save_params is deprecated. Please use save_parameters.", stacklevel=2)
        self.collect_params().save(filename, strip_prefix=self.prefix)

    def load_params(self, filename, ctx=None, allow_missing=False, ignore_extra=False) -> None:
        """The older name of :meth:`load_parameters`."""
        warnings.warn("load_params is deprecated. Please use load_parameters.", stacklevel=2)
        self.load_parameters(filename, ctx, allow_missing, ignore_extra)

    # -- running -------------------------------------------------------------------------------------

    def register_forward_pre_hook(self, hook) -> HookHandle:
        """Call ``hook(block, inputs)`` before each forward."""
        return HookHandle(self._forward_pre_hooks, hook)

    def register_forward_hook(self, hook) -> HookHandle:
        """Call ``hook(block, inputs, outputs)`` after each forward."""
        return HookHandle(self._forward_hooks, hook)

    def register_op_hook(self, callback, monitor_all=False) -> None:
        """Call ``callback(name, operator, array)`` for what operators of hybridised blocks compute."""
        for child in self._children.values():
            child.register_op_hook(callback, monitor_all)

    def apply(self, fn):
        """Call ``fn(block)`` on all children, then on this block, which is returned."""
        for child in self._children.values():
            child.apply(fn)
        fn(self)
        return self

    def hybridize(self, active=True, **kwargs) -> None:
        """Have all hybrid blocks within run as bound graphs; other keywords are accepted for MXNet's sake."""
        for child in self._children.values():
            child.hybridize(active, **kwargs)

    def __call__(self, *args):
        for hook in list(self._forward_pre_hooks.values()):
            hook(self, args)
        out = self.forward(*args)
        for hook in list(self._forward_hooks.values()):
            hook(self, args, out)
        return out

    def forward(self, *args):
        """Compute the outputs; to be overridden."""
        raise NotImplementedError

    def summary(self, *inputs) -> None:
        """Print the layers, the shapes of their outputs and how many numbers they hold, for these inputs."""
        rows, seen, hooks = [("Input", _shapes(inputs), 0)], set(), []
        totals = {"all": 0, "trainable": 0, "shared": 0}

        def note(block, _, outputs):
            count = 0
            for parameter in block.params.values():
                size = parameter.data().size
                count += size
                totals["trainable"] += size if parameter.grad_req != "null" else 0
                totals["shared"] += size if parameter in seen else 0
                seen.add(parameter)
            totals["all"] += count
            rows.append((f"{type(block).__name__}-{len(rows)}", _shapes(outputs), count))

        def watch(block):
            if getattr(block, "_active", False):
                raise AssertionError(f'"{block.name}" must not be hybridized to print summary.')
            if not getattr(block, "_is_container", False):
                hooks.append(block.register_forward_hook(note))

        try:
            self.apply(watch)
            self(*inputs)
        finally:
            for hook in hooks:
                hook.detach()
        line = "{:>20}  {:>42} {:>15}"
        print("-" * 80, line.format("Layer (type)", "Output Shape", "Param #"), "=" * 80, sep="\n")
        for name, shape, count in rows:
            print(line.format(name, shape, count))
        print("=" * 80, "Parameters in forward computation graph, duplicate included", sep="\n")
        print(f"   Total params: {totals['all']}\n   Trainable params: {totals['trainable']}")
        print(f"   Non-trainable params: {totals['all'] - totals['trainable']}")
        print(f"Shared params in forward computation graph: {totals['shared']}")
        print(f"Unique parameters in model: {totals['all'] - totals['shared']}\n" + "-" * 80)


def _shapes(arrays) -> str:
    def shape_of(value):
        if isinstance(value, list | tuple):
            return [shape_of(each) for each in value]
        return getattr(value, "shape", value)

    shapes = shape_of(arrays)
    if isinstance(shapes, list):
        return str(shapes[0]) if len(shapes) == 1 else str(shapes)[1:-1]
    return str(shapes)
