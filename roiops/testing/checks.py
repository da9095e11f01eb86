"""Forward and backward of graphs and operators beside other numbers.

``location`` are the arguments of a graph, ``aux_states`` its auxiliary states: arrays in a list, in order, or
by name. Tolerances are those of the dtypes unless given.
"""

import copy
import warnings

import numpy as np

from .. import random, registry
from ..context import Context
from ..graph.program import parse_grad_req
from ..ndarray import NDArray, array
from ..operators.base import OpContext, OperatorProperty
from ..operators.checks import enforced
from ..operators.imperative import Invocation
from .comparing import assert_almost_equal, default_context, get_atol, get_rtol, tolerance_for

__all__ = [
    "check_consistency",
    "check_numeric_gradient",
    "check_operator_gradient",
    "check_symbolic_backward",
    "check_symbolic_forward",
    "simple_forward",
]

#: For each dtype: step and tolerances of a numeric gradient. A step is a power of two, so that adding it to
#: an input loses no bits.
_NUMERIC = {
    np.dtype(np.float16): (2.0**-4, 1e-1, 1e-1),
    np.dtype(np.float32): (2.0**-9, 1e-2, 1e-2),
    np.dtype(np.float64): (2.0**-14, 1e-5, 1e-7),
}


# -- running graphs --------------------------------------------------------------------------------------


def simple_forward(sym, ctx: Context | None = None, is_train: bool = False, **inputs):
    """The outputs of a graph as NumPy arrays, a list where there are several, from inputs by name."""
    arrays = {name: array(value, ctx) for name, value in inputs.items()}
    executor = sym.bind(ctx or default_context(), args=arrays)
    outputs = [out.asnumpy() for out in executor.forward(is_train=is_train)]
    return outputs[0] if len(outputs) == 1 else outputs


def _by_name(what: str, names, given, ctx, dtype) -> dict[str, NDArray]:
    """Fresh NDArrays by name, from arrays in a list or dict."""
    if given is None:
        given = {}
    if not isinstance(given, dict):
        if len(given) != len(names):
            raise ValueError(f"{what} has {len(given)} arrays for {len(names)} names: {', '.join(names)}")
        given = dict(zip(names, given, strict=True))
    if set(given) != set(names):
        raise ValueError(
            f"{what} must name {', '.join(names) or 'nothing'}, got {', '.join(given) or 'nothing'}"
        )
    kept = isinstance(dtype, str) and dtype == "asnumpy"
    return {n: array(given[n], ctx, np.asarray(given[n]).dtype if kept else dtype) for n in names}


@enforced()
def check_symbolic_forward(
    sym,
    location,
    expected,
    rtol=None,
    atol=None,
    aux_states=None,
    ctx: Context | None = None,
    equal_nan: bool = False,
    dtype=np.float32,
) -> list[NDArray]:
    """Raise ``AssertionError`` unless the outputs of a graph are ``expected``. Returns the outputs.

    ``dtype`` is that of the arguments; ``"asnumpy"`` keeps that of the arrays given.
    """
    ctx = ctx or default_context()
    args = _by_name("location", sym.list_arguments(), location, ctx, dtype)
    aux = _by_name("aux_states", sym.list_auxiliary_states(), aux_states, ctx, dtype)
    executor = sym.bind(ctx, args=args, args_grad=None, grad_req="null", aux_states=aux)
    outputs = executor.forward(is_train=False)
    names = sym.list_outputs()
    wanted = expected if isinstance(expected, dict) else dict(zip(names, expected, strict=True))
    for name, value in wanted.items():
        assert_almost_equal(
            value, outputs[names.index(name)], rtol, atol, (f"EXPECTED_{name}", f"FORWARD_{name}"), equal_nan
        )
    return outputs


@enforced()
def check_symbolic_backward(
    sym,
    location,
    out_grads,
    expected,
    rtol=None,
    atol=None,
    aux_states=None,
    grad_req="write",
    ctx: Context | None = None,
    grad_stypes=None,
    equal_nan: bool = False,
    dtype=np.float32,
) -> dict[str, NDArray]:
    """Raise ``AssertionError`` unless the gradients of a graph are ``expected``. Returns the buffers.

    The buffers hold noise before: ``grad_req="add"`` must have added to it, ``"null"`` must have left it.
    ``out_grads`` are the gradients of the outputs, None where these are losses; a dict of ``expected`` ones
    may leave some out.
    """
    ctx = ctx or default_context()
    names = sym.list_arguments()
    args = _by_name("location", names, location, ctx, dtype)
    aux = _by_name("aux_states", sym.list_auxiliary_states(), aux_states, ctx, dtype)
    wanted = expected if isinstance(expected, dict) else dict(zip(names, expected, strict=False))
    reqs = parse_grad_req(grad_req, names)
    rng = np.random.default_rng(0)
    noise = {name: rng.standard_normal(args[name].shape).astype(args[name].dtype) for name in wanted}
    grads = {name: array(value, ctx, args[name].dtype) for name, value in noise.items()}
    requests = {name: reqs[name] if name in grads else "null" for name in names}
    executor = sym.bind(ctx, args=args, args_grad=grads, grad_req=requests, aux_states=aux)
    executor.forward(is_train=True)
    executor.spoil_undeclared()
    executor.backward(out_grads)
    for name, value in wanted.items():
        _check_grad(
            name, reqs[name], value, grads[name].asnumpy(), noise[name], rtol, atol, equal_nan, "EXPECTED"
        )
    return grads


def _check_grad(name, req, wanted, grad, noise, rtol, atol, equal_nan, source) -> None:
    """Compare what backward left in a buffer that held ``noise`` with what ``req`` asks for."""
    names = (f"{source}_{name}", f"BACKWARD_{name}")
    if req == "null":
        assert_almost_equal(noise, grad, 0, 0, (f"UNTOUCHED_{name}", f"BACKWARD_{name}"), equal_nan)
    elif req == "add":
        assert_almost_equal(wanted, grad - noise, rtol, atol, (names[0], names[1] + "_ADDED"), equal_nan)
    else:
        assert_almost_equal(wanted, grad, rtol, atol, names, equal_nan)


# -- numeric gradients -----------------------------------------------------------------------------------


class _Function:
    """What a gradient check needs to know of a graph or operator.

    ``values`` and ``aux`` are NumPy arrays by name. ``outputs(values)`` computes; ``gradients(values, heads,
    reqs, noise)`` gives what is in the gradient buffers after backward, which held ``noise`` before.
    """

    def __init__(self, label, is_train):
        self.label = label
        self.is_train = is_train
        self._random_state = copy.deepcopy(random.generator().bit_generator.state)

    def _same_randomness(self):
        """Let operators such as Dropout draw the same numbers in every pass."""
        random.generator().bit_generator.state = copy.deepcopy(self._random_state)


class _Graph(_Function):
    def __init__(self, sym, ctx, values, aux, is_train):
        super().__init__(sym.name or "graph", is_train)
        self.sym, self.ctx, self.aux = sym, ctx, aux
        self.executor = self._bind(values, None, "null")

    def _bind(self, values, grads, reqs):
        args = {name: array(value, self.ctx, value.dtype) for name, value in values.items()}
        aux = {name: array(value, self.ctx, value.dtype) for name, value in self.aux.items()}
        return self.sym.bind(self.ctx, args=args, args_grad=grads, grad_req=reqs, aux_states=aux)

    def outputs(self, values):
        self._same_randomness()
        for name, value in values.items():
            self.executor.arg_dict[name][:] = value
        for name, value in self.aux.items():
            self.executor.aux_dict[name][:] = value
        return [out.asnumpy() for out in self.executor.forward(is_train=self.is_train)]

    def gradients(self, values, heads, reqs, noise):
        self._same_randomness()
        grads = {name: array(value, self.ctx, value.dtype) for name, value in noise.items()}
        executor = self._bind(values, grads, {name: reqs.get(name, "null") for name in values})
        executor.forward(is_train=True)
        executor.spoil_undeclared()
        executor.backward([array(head, self.ctx, head.dtype) for head in heads])
        return {name: grad.asnumpy() for name, grad in grads.items()}


class _Single(_Function):
    def __init__(self, prop, values, aux, is_train):
        super().__init__(prop.label, is_train)
        self.prop, self.aux = prop, aux

    def _run(self, values, is_train):
        self._same_randomness()
        ctx = OpContext(label=self.prop.label, is_train=is_train)
        aux = [value.copy() for value in self.aux.values()]
        call = Invocation(self.prop, [value.copy() for value in values.values()], aux, ctx=ctx)
        return call, call.forward()

    def outputs(self, values):
        return self._run(values, self.is_train)[1]

    def gradients(self, values, heads, reqs, noise):
        call, _ = self._run(values, True)
        call.spoil_undeclared()
        names = list(values)
        grads = [noise[name].copy() if name in noise else None for name in names]
        call.backward(heads, [reqs.get(name, "null") for name in names], grads)
        return {name: grad for name, grad in zip(names, grads, strict=True) if grad is not None}


class _Slopes:
    """Finite differences of a projection of a function's outputs, one element at a time."""

    def __init__(self, function, values, heads):
        self.function, self.heads = function, heads
        self.values = {name: value.copy() for name, value in values.items()}
        self.middle = self._value()

    def _value(self) -> float:
        outputs = self.function.outputs(self.values)
        return sum(
            float(np.vdot(head.astype(np.float64), np.asarray(out, np.float64)))
            for head, out in zip(self.heads, outputs, strict=True)
        )

    def at(self, name, index, step) -> tuple[float, float]:
        """The slopes to the left and to the right of an element."""
        value = self.values[name]
        origin = value[index]
        value[index] = origin + step
        right_step, right = float(value[index]) - float(origin), self._value()
        value[index] = origin - step
        left_step, left = float(origin) - float(value[index]), self._value()
        value[index] = origin
        return (self.middle - left) / left_step, (right - self.middle) / right_step


def _numeric(slopes: _Slopes, name, analytic, step, rtol, atol):
    """The numeric gradient of one argument, and the elements where there is none.

    Where it disagrees with ``analytic``, smaller steps are tried, for a kink may lie within the first one.
    If the slopes left and right still differ, the function has a kink or jump there, and any gradient
    between the two slopes is right; that element gets ``analytic`` itself.
    """
    numeric = np.zeros(analytic.shape)
    kinks = []
    smaller = (1, 1 / 16, 1 / 256) if analytic.dtype == np.float64 else (1, 1 / 4)
    for index in np.ndindex(analytic.shape):
        wanted = float(analytic[index])
        for scale in smaller:
            left, right = slopes.at(name, index, step * scale)
            middle = (left + right) / 2
            if scale == 1:
                numeric[index] = middle
            allowed = atol + rtol * max(abs(middle), abs(wanted))
            if abs(middle - wanted) <= allowed:
                numeric[index] = middle
                break
        else:
            low, high = min(left, right), max(left, right)
            if high - low > 4 * allowed and low - allowed <= wanted <= high + allowed:
                numeric[index] = wanted
                kinks.append(index)
    return numeric, kinks


def _check_gradients(function, values, grad_reqs, eps, rtol, atol, seed=0) -> None:
    """Compare backward with finite differences for each of several choices of ``grad_req``."""
    names = list(dict.fromkeys(name for reqs in grad_reqs for name in reqs))
    for name in names:
        if values[name].dtype.kind != "f":
            raise ValueError(f"{function.label}: {name} is {values[name].dtype}, which has no gradient")
    rng = np.random.default_rng(seed)
    outputs = function.outputs(values)
    # Not too small, for those would lose precision in the projection.
    heads = [(rng.random(np.shape(out)) + 0.1).astype(np.asarray(out).dtype) for out in outputs]
    noise = {name: rng.standard_normal(values[name].shape).astype(values[name].dtype) for name in names}
    found = [function.gradients(values, heads, reqs, noise) for reqs in grad_reqs]
    slopes = _Slopes(function, values, heads)
    for name in names:
        default_step, default_rtol, default_atol = _NUMERIC[values[name].dtype]
        step = default_step if eps is None else eps
        tolerances = (default_rtol if rtol is None else rtol, default_atol if atol is None else atol)
        numeric = None
        for reqs, grads in zip(grad_reqs, found, strict=True):
            req = reqs.get(name, "null")
            if numeric is None and req != "null":
                analytic = grads[name] - noise[name] if req == "add" else grads[name]
                numeric, kinks = _numeric(slopes, name, analytic, step, *tolerances)
                if len(kinks) > max(1, analytic.size // 4):
                    raise AssertionError(
                        f"{function.label}: not differentiable in {name} at {len(kinks)} of {analytic.size} "
                        f"elements, first at {kinks[0]}; choose another location"
                    )
            try:
                _check_grad(name, req, numeric, grads[name], noise[name], *tolerances, False, "NUMERICAL")
            except AssertionError as error:
                raise AssertionError(
                    f"{function.label}: gradient of {name} with grad_req={req!r} is wrong: {error}"
                ) from None


def _grad_reqs(names, grad_nodes) -> list[dict[str, str]]:
    """The choices of ``grad_req`` to check: a dict's, or all ``write``, all ``add``, and each ``null``."""
    if isinstance(grad_nodes, dict):
        return [dict(grad_nodes)]
    chosen = names if grad_nodes is None else grad_nodes
    written, added = (dict.fromkeys(chosen, req) for req in ("write", "add"))
    return [written, added, *({**written, name: "null"} for name in written)]


@enforced()
def check_numeric_gradient(
    sym,
    location,
    aux_states=None,
    numeric_eps=None,
    rtol=None,
    atol=None,
    grad_nodes=None,
    use_forward_train: bool = True,
    ctx: Context | None = None,
    grad_stype_dict=None,
    dtype=np.float64,
) -> None:
    """Raise ``AssertionError`` unless backward agrees with finite differences of forward.

    The outputs, weighted at random, are differentiated with respect to each argument, for ``"write"``,
    ``"add"`` and ``"null"``, over gradient buffers that hold noise. An element at which the function has a
    kink or jump is passed over if the gradient lies between the slopes to its left and right; where that
    happens at a quarter of the elements, it is an error.

    Parameters
    ----------
    sym : Symbol
        The graph. An operator that ignores its head gradient, as losses do, cannot be checked so.
    numeric_eps : float, optional
        The step of the finite differences.
    grad_nodes : list of str, or dict of str to str, optional
        The arguments to differentiate, all by default; a dict says which ``grad_req`` each is checked with.
    use_forward_train : bool
        Whether the finite differences are taken in training mode.
    dtype : dtype
        The dtype to compute in. float64 finds much smaller errors than float32.
    """
    ctx = ctx or default_context()
    args = _by_name("location", sym.list_arguments(), location, ctx, dtype)
    aux = _by_name("aux_states", sym.list_auxiliary_states(), aux_states, ctx, dtype)
    values = {name: value.asnumpy() for name, value in args.items()}
    states = {name: value.asnumpy() for name, value in aux.items()}
    function = _Graph(sym, ctx, values, states, use_forward_train)
    _check_gradients(function, values, _grad_reqs(values, grad_nodes), numeric_eps, rtol, atol)


@enforced()
def check_operator_gradient(
    operator,
    location,
    params: dict | None = None,
    aux_states=(),
    numeric_eps=None,
    rtol=None,
    atol=None,
    grad_nodes=None,
    use_forward_train: bool = True,
) -> None:
    """As :func:`check_numeric_gradient`, for one operator on the CPU, without a graph.

    Parameters
    ----------
    operator : str or OperatorProperty
        A registered name, or a property with its parameters.
    location : list of numpy.ndarray
        The inputs, in order; their dtypes are kept.
    params : dict, optional
        The operator's parameters, if it is given by name.
    aux_states : list of numpy.ndarray
        The auxiliary states.
    grad_nodes : list of str, or dict of str to str, optional
        The inputs to differentiate; by default all floating-point ones that have a gradient.
    """
    prop = operator if isinstance(operator, OperatorProperty) else registry.get(operator).create(params or {})
    names = prop.list_arguments()
    values = dict(zip(names, (np.array(value) for value in location), strict=True))
    states = dict(zip(prop.list_auxiliary_states(), (np.array(value) for value in aux_states), strict=True))
    if grad_nodes is None:
        grad_nodes = [n for n in names if n not in prop.list_zero_gradients() and values[n].dtype.kind == "f"]
    function = _Single(prop, values, states, use_forward_train)
    _check_gradients(function, values, _grad_reqs(names, grad_nodes), numeric_eps, rtol, atol)


# -- devices and dtypes against one another --------------------------------------------------------------


@enforced()
def check_consistency(
    sym,
    ctx_list,
    scale: float = 1.0,
    grad_req="write",
    arg_params: dict | None = None,
    aux_params: dict | None = None,
    rtol=None,
    atol=None,
    raise_on_err: bool = True,
    ground_truth: dict | None = None,
    equal_nan: bool = False,
    use_uniform: bool = False,
    rand_type=np.float64,
) -> dict[str, NDArray]:
    """Raise ``AssertionError`` unless a graph gives the same numbers on all devices and in all dtypes listed.

    Outputs and gradients of each run are compared with those of the run of the most exact dtype, within the
    tolerances of the less exact dtype of the two. Returns the outputs and gradients that were compared with.

    Parameters
    ----------
    sym : Symbol or list of Symbol
        The graph, or one for each run, with the same names.
    ctx_list : list of dict
        What each run passes to ``simple_bind``:
        ``{"ctx": cpu(), "data": (2, 3), "type_dict": {"data": numpy.float64}}``.
    scale : float
        Standard deviation of the random arguments.
    grad_req : str, list or dict of str
        As for ``simple_bind``; ``"null"`` compares the outputs only.
    arg_params, aux_params : dict of str to array, optional
        Arguments and states that are not random (states: zeros).
    raise_on_err : bool
        Whether to raise; else a disagreement is a warning.
    ground_truth : dict of str to array, optional
        What to compare with in place of one of the runs.
    """
    symbols = list(sym) if isinstance(sym, list | tuple) else [sym] * len(ctx_list)
    if len(ctx_list) < 2 or len(symbols) != len(ctx_list):
        raise ValueError("check_consistency: needs two or more entries in ctx_list, and one symbol for each")
    executors = [s.simple_bind(grad_req=grad_req, **each) for s, each in zip(symbols, ctx_list, strict=True)]
    rng = random.generator()
    args, aux = dict(arg_params or {}), dict(aux_params or {})
    for name, value in sorted(executors[0].arg_dict.items()):
        if name not in args:
            draw = rng.uniform(-0.92, 0.92, value.shape) if use_uniform else rng.standard_normal(value.shape)
            args[name] = (draw * scale).astype(rand_type)
    heads = [
        rng.standard_normal(out.shape).astype(_coarsest(e.outputs[i].dtype for e in executors))
        for i, out in enumerate(executors[0].outputs)
    ]
    runs = [_run(executor, args, aux, heads if grad_req != "null" else None) for executor in executors]
    exactness = [np.dtype(executor.outputs[0].dtype) for executor in executors]
    best = max(range(len(runs)), key=lambda n: exactness[n].itemsize)
    truth = runs[best] if ground_truth is None else [ground_truth, ground_truth]
    for number, run in enumerate(runs):
        if number == best and ground_truth is None:
            continue
        against = "ground truth" if ground_truth else f"run {best}"
        dtypes = (exactness[number], exactness[best])
        for error in _disagreements(run, truth, dtypes, (f"run {number}", against), rtol, atol, equal_nan):
            if raise_on_err:
                raise error
            warnings.warn(str(error), RuntimeWarning, stacklevel=2)
    return {name: array(value, dtype=value.dtype) for each in runs[best] for name, value in each.items()}


def _disagreements(run, truth, dtypes, labels, rtol, atol, equal_nan):
    """For each array of a run that is not the one of its name, the error that says where.

    Tolerances are those of the least exact of all dtypes involved.
    """
    for mode, found, wanted in zip(("", " (training)"), run, truth, strict=True):
        for name, value in found.items():
            if wanted.get(name) is None:
                continue
            reference = np.asarray(wanted[name])
            coarse = _coarsest((*dtypes, value.dtype, reference.dtype))
            tolerances = tolerance_for(rtol, coarse, get_rtol), tolerance_for(atol, coarse, get_atol)
            names = (f"{name}{mode} of {labels[0]}", labels[1])
            try:
                assert_almost_equal(value, reference, *tolerances, names, equal_nan)
            except AssertionError as error:
                yield error


def _coarsest(dtypes) -> np.dtype:
    return min(map(np.dtype, dtypes), key=lambda dtype: dtype.itemsize)


def _run(executor, args, aux, heads) -> list[dict[str, np.ndarray]]:
    """Outputs in inference, then outputs and gradients in training (nothing where ``heads`` is None)."""
    for arrays, given in ((executor.arg_dict, args), (executor.aux_dict, aux)):
        for name, target in arrays.items():
            target[:] = given.get(name, 0)
    grads = {name: grad for name, grad in executor.grad_dict.items() if grad is not None}
    for grad in grads.values():
        grad[:] = 0
    names = list(executor.output_dict)
    inference = dict(zip(names, (out.asnumpy() for out in executor.forward(is_train=False)), strict=True))
    if heads is None:
        return [inference, {}]
    training = dict(zip(names, (out.asnumpy() for out in executor.forward(is_train=True)), strict=True))
    executor.backward(
        [array(h, out.context, out.dtype) for h, out in zip(heads, executor.outputs, strict=True)]
    )
    training |= {name: grad.asnumpy() for name, grad in grads.items()}
    return [inference, training]
