"""Models that MXNet saved, ready for inference in two lines.

    model = roiops.models.load("ssd_300-symbol.json", "ssd_300-0000.params")
    ids, scores, boxes = model(data=image)

What goes wrong with archived models is found at once and said in full: operators that are not there,
parameters that are missing, left over or of another shape. Labels are not asked for.
"""

import threading
import warnings
from pathlib import Path

import numpy as np

from .. import ndarray as nd
from ..context import Context, cpu, current_context
from ..dtypes import number_type
from ..errors import GraphError, InputError, MissingFileError, MXNetError, ShapeError, nearest
from ..graph import json_format
from ..graph import nodes as graph
from ..graph.functions import Group, load_json
from ..graph.memory import drop_oldest
from ..ndarray.ndarray import writable
from .files import all_params, compare, find_files, read_params, read_symbol
from .inspection import free_variables, infer_types, label_variables, runnable_outputs

__all__ = ["ArchivedModel", "load", "read_params"]


def load(
    symbol, params=None, *, outputs=None, dtype=None, allow_missing: bool = False, source: str | None = None
) -> "ArchivedModel":
    """A saved model for inference. The arguments are those of :func:`roiops.models.load`."""
    source = source or str(symbol)
    if isinstance(symbol, str | Path):
        source, params = find_files(symbol, params)
        if params is None:
            raise MissingFileError(f"{source}: no parameters lie beside it; give their file")
        symbol, _ = read_symbol(source)
    elif not hasattr(symbol, "get_internals"):
        raise GraphError(
            f"load: the first argument must be the name of a model or a Symbol, got {type(symbol).__name__}"
        )
    elif params is None or isinstance(params, int):
        raise GraphError(
            "load: an epoch goes with the prefix of a saved model; give the parameters themselves"
        )
    params_source = source
    if not isinstance(params, dict):
        params_source, params = str(params), all_params(params)
    whole = symbol
    if outputs is not None:
        internals = symbol.get_internals()
        wanted, every = [outputs] if isinstance(outputs, str) else list(outputs), internals.list_outputs()
        for name in wanted:
            if name not in every:
                near = nearest(name, every) or f"; the graph's own are {', '.join(symbol.list_outputs())}"
                raise GraphError(f"{source}: there is no output {name!r}{near}")
        symbol = Group(internals[name] for name in wanted)
    order = graph.topological_order(symbol.heads)
    message = json_format.unsupported_message(order, source)
    if message:
        others = ", ".join(repr(name) for name in runnable_outputs(order, symbol.heads))
        hint = (
            f"; outputs that can be computed without them: {others} (choose with outputs=)" if others else ""
        )
        raise GraphError(message + hint)
    _check_names(order, whole.list_inputs(), params, params_source, allow_missing)
    if dtype is not None:
        dtype = number_type(f"{source}: dtype", dtype)
        params = {name: array.astype(dtype, copy=False) for name, array in params.items()}
    return ArchivedModel(symbol, params, source)


def _check_names(order, every, held, source, allow_missing) -> None:
    """Raise for parameters that are missing; name them all, and those left over, at once."""
    found = compare(order, {}, held, free_variables(order), every)
    if found.missing and not allow_missing:
        rest = f"\n{found.surplus_text()}" if found.surplus else ""
        raise GraphError(f"{source}: {found.missing_text()}{rest}")
    if found.surplus:
        warnings.warn(f"{source}: {found.surplus_text()}", stacklevel=3)


class ArchivedModel:
    """A graph with its parameters. Call it with the inputs by name; an only input needs none.

    Attributes
    ----------
    symbol : Symbol
        The graph.
    params : dict of NDArray
        Its parameters and auxiliary states.
    input_names, label_names : list of str
        What has to be given, and what only training needs.
    """

    def __init__(self, symbol, params: dict, source: str = "model"):
        self.symbol = symbol
        self.source = source
        self._order = graph.topological_order(symbol.heads)
        names = {node.name for node in self._order if node.is_variable}
        self.params = {name: array for name, array in params.items() if name in names}
        self.label_names = [
            node.name for node in label_variables(self._order) if node.name not in self.params
        ]
        self.input_names = [
            node.name
            for node in self._order
            if node.is_variable and node.name not in self.params and node.name not in self.label_names
        ]
        self._forget_executors()

    def _forget_executors(self) -> None:
        self._executors: dict = {}
        self._turn = threading.Lock()

    def __getstate__(self):
        made_here = "_order", "_executors", "_turn"
        state = {name: value for name, value in self.__dict__.items() if name not in made_here}
        state["symbol"] = self.symbol.tojson()
        state["params"] = {name: array.as_in_context(cpu()).data for name, array in self.params.items()}
        return state

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.symbol = load_json(state["symbol"])
        self._order = graph.topological_order(self.symbol.heads)
        # Memory shared by processes may be read-only. No kernel writes a parameter, and each would be
        # compiled once more for arrays that may not be written.
        self.params = {name: nd.NDArray(writable(array)) for name, array in state["params"].items()}
        self._forget_executors()

    def __repr__(self):
        inputs, outputs = ", ".join(self.input_names), ", ".join(self.output_names)
        return f"<{type(self).__name__} {self.source}: {inputs} -> {outputs}>"

    @property
    def output_names(self) -> list[str]:
        """Names of the outputs: ``prob_output``; ``_2`` ends that of a block's second call."""
        names = self.symbol.list_outputs()
        counts = [names[: place + 1].count(name) for place, name in enumerate(names)]
        return [f"{name}_{count}" if count > 1 else name for name, count in zip(names, counts, strict=True)]

    def bind(self, ctx=None, **shapes):
        """An :class:`~roiops.executor.Executor` for inputs of these shapes, without gradients.

        Parameters
        ----------
        ctx : Context, optional
            Where it runs; the current context by default.
        **shapes : tuple of int
            Shapes of the inputs. Those of labels, and of whatever else follows, are inferred.
        """
        ctx = current_context() if ctx is None else ctx
        self._check_input_names(shapes, self.label_names)
        given = {name: graph.whole_sizes(f"{self.source}: {name}", shape) for name, shape in shapes.items()}
        inferred = graph.infer_shapes(self._order, given)
        self._check_parameter_shapes(inferred, given)
        given.update({name: tuple(array.shape) for name, array in self.params.items()})
        inferred = graph.infer_shapes(self._order, given)
        held = {name: array.dtype for name, array in self.params.items()}
        types = infer_types(self._order, held, np.float32)
        arrays, unknown = {}, []
        for node in self._order:
            if not node.is_variable:
                continue
            shape = inferred[id(node)][0]
            if node.name in self.params:
                arrays[node.name] = self.params[node.name].as_in_context(ctx)
            elif graph.known(shape):
                arrays[node.name] = nd.zeros(shape, ctx=ctx, dtype=types[id(node)][0])
            else:
                unknown.append(f"{node.name} {graph.format_shape(shape)}")
        if unknown:
            raise ShapeError(f"{self.source}: the shapes of these inputs must be given: {', '.join(unknown)}")
        auxiliary = self.symbol.list_auxiliary_states()
        return self.symbol.bind(
            ctx,
            {name: arrays[name] for name in self.symbol.list_arguments()},
            grad_req="null",
            aux_states={name: arrays[name] for name in auxiliary},
        )

    def _check_input_names(self, given, more=()) -> None:
        every = [*self.input_names, *more]
        for name in given:
            if name not in every:
                raise GraphError(
                    f"{self.source}: {name!r} is not an input of the model{nearest(name, every)} "
                    f"(it takes {', '.join(self.input_names)})"
                )

    def _check_parameter_shapes(self, inferred, given) -> None:
        wrong = compare(self._order, inferred, self.params, self.input_names).shapes_text()
        if wrong:
            shapes = ", ".join(f"{name} {graph.format_shape(shape)}" for name, shape in given.items())
            raise ShapeError(
                f"{self.source}: parameters do not have the shapes that the graph needs for {shapes}:\n"
                + "\n".join(f"  {each}" for each in wrong)
            )

    def __call__(self, *array, ctx=None, reuse: bool = False, **inputs) -> list[nd.NDArray]:
        """The outputs for these inputs, as NDArrays.

        Inputs may be NDArrays or NumPy arrays; they are converted to the dtype that the model needs. The
        bound graph is kept while the shapes stay.

        Parameters
        ----------
        *array
            The input of a model that has one.
        ctx : Context, optional
            Where it runs; the current context by default.
        reuse : bool
            Whether to return the arrays that the model computes into, which the next call overwrites.
            Saves a copy of the outputs.
        **inputs
            The inputs by name.
        """
        if array:
            inputs = self._named(array, inputs)
        self._check_input_names(inputs, self.label_names)
        for name, value in inputs.items():
            if not hasattr(value, "shape") and np.asarray(value).dtype.kind not in "biuf":
                raise InputError(
                    f"{self.source}: {name} must be an array of numbers, got {type(value).__name__}; "
                    "pictures go to predict()"
                )
        missing = [name for name in self.input_names if name not in inputs]
        if missing:
            raise MXNetError(f"{self.source}: lacks the inputs {', '.join(missing)}; each needs a value")
        return self._run(self.bind, ctx, inputs, list if reuse else _copies)

    #: Bound graphs for earlier shapes are kept up to this number.
    _most_executors = 1

    def _run(self, bind, ctx, inputs, take) -> list:
        """``take(outputs)`` of the graph that ``bind`` gives for inputs of these shapes, now or before.

        Threads take turns: the next call overwrites the outputs.
        """
        ctx = current_context() if ctx is None else ctx
        shapes = {name: tuple(np.shape(value)) for name, value in inputs.items()}
        key = ctx, tuple(sorted(shapes.items()))
        with self._turn:
            executor = self._executors.pop(key, None)
            if executor is None:
                drop_oldest(self._executors, lambda each: each.internal_bytes, self._most_executors)
                executor = bind(ctx, **shapes)
            self._executors[key] = executor
            return take(executor.forward(is_train=False, **inputs))

    def _named(self, array, inputs) -> dict:
        """The inputs where one is given without its name."""
        if len(array) == 1 and isinstance(array[0], Context):
            raise MXNetError(f"{self.source}: a device is given by name: model(..., ctx={array[0]})")
        if len(array) > 1 or inputs or len(self.input_names) != 1:
            raise MXNetError(
                f"{self.source}: inputs are given by name ({', '.join(self.input_names)}); "
                "only the input of a model that has one may come without"
            )
        return {self.input_names[0]: array[0]}


def _copies(outputs) -> list:
    return [each.copy() for each in outputs]
