"""Operators of your own in Python, exactly as in MXNet.

    @roiops.operator.register("softmax_loss")
    class SoftmaxLossProp(roiops.operator.CustomOpProp):
        def __init__(self, scale="1"):            # parameters arrive as strings
            super().__init__(need_top_grad=False)
            self.scale = float(scale)

        def list_arguments(self):
            return ["data", "label"]

        def infer_shape(self, in_shape):
            return in_shape, [in_shape[0]], []

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return SoftmaxLoss(self.scale)        # a CustomOp

    net = roiops.sym.Custom(data, label, op_type="softmax_loss", scale=2)

An operator that should run as fast as the built-in ones is better written as a property and a kernel of its
own; ``docs/add_an_operator.md`` shows how.
"""

import warnings
from collections import namedtuple

import numpy as np

from ..errors import MXNetError, ShapeError
from ..graph import functions as sym
from ..graph.naming import NameManager
from ..ndarray import NDArray, array
from ..operators import checks, custom
from ..operators.base import OperatorProperty
from ..registry import get, list_operators

__all__ = [
    "CustomOp",
    "CustomOpProp",
    "NDArrayOp",
    "NumpyOp",
    "OperatorArguments",
    "PythonOp",
    "get_all_registered_operators",
    "get_operator_arguments",
    "register",
]


class CustomOp:
    """Base of the class that computes. Made anew for each node when it is bound.

    Override ``forward``, and ``backward`` where a gradient is wanted; there is none to inherit.
    """

    #: How errors name this operator and the method that runs.
    _label = "CustomOp"

    def forward(self, is_train, req, in_data, out_data, aux):
        """Compute the outputs.

        Parameters
        ----------
        is_train : bool
            Whether a backward may follow.
        req : list of str
            For each output ``"null"``, ``"write"``, ``"inplace"`` or ``"add"``; :meth:`assign` heeds it.
        in_data, out_data, aux : list of NDArray
            Inputs, outputs and auxiliary states.
        """

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        """Compute the gradients of the inputs into ``in_grad``, as ``req`` asks for each."""

    def assign(self, dst, req, src):
        """Store ``src``, a number or an array, in ``dst`` as ``req`` asks.

        As in MXNet, an array of fewer or of single elements is repeated to the shape of ``dst``. Checks
        (``ROIOPS_CHECK=1``, :mod:`roiops.testing`) take that for a mistake.
        """
        shape = np.shape(src)
        if req != "null" and shape not in ((), dst.shape) and (checks.on() or not _repeats(shape, dst.shape)):
            raise ShapeError(
                f"{self._label}: assigns an array of shape {shape} to one of shape {dst.shape}, "
                "which is what infer_shape says"
            )
        if req in ("write", "inplace"):
            dst[:] = src
        elif req == "add":
            dst[:] += array(src, dst.context, dst.dtype) if isinstance(src, np.ndarray) else src


def _repeats(shape, target) -> bool:
    """Whether an array of this shape, its axes of length one repeated, fills one of shape ``target``."""
    more = shape[: max(len(shape) - len(target), 0)]
    return all(n == 1 for n in more) and all(
        n in (1, wanted) for n, wanted in zip(reversed(shape), reversed(target), strict=False)
    )


custom.set_front_end(NDArray, CustomOp)


class CustomOpProp:
    """Base of the class that describes an operator; made with its parameters as strings.

    Parameters
    ----------
    need_top_grad : bool
        Whether backward reads the gradient of the outputs. A loss does not.
    """

    def __init__(self, need_top_grad=True):
        self.need_top_grad_ = need_top_grad

    def list_arguments(self):
        """Names of the inputs."""
        return ["data"]

    def list_outputs(self):
        """Names of the outputs."""
        return ["output"]

    def list_auxiliary_states(self):
        """Names of the auxiliary states."""
        return []

    def infer_shape(self, in_shape):
        """``(in_shapes, out_shapes)`` or ``(in_shapes, out_shapes, aux_shapes)`` from the inputs' shapes.

        By default all outputs have the shape of the first input.
        """
        return in_shape, [in_shape[0]] * len(self.list_outputs()), []

    def infer_type(self, in_type):
        """The same for dtypes. By default everything has the dtype of the first input."""
        first, states = in_type[0], self.list_auxiliary_states()
        return in_type, [first] * len(self.list_outputs()), [first] * len(states)

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        """Which of these numbers stand for arrays that backward reads."""
        deps = list(out_grad) if self.need_top_grad_ else []
        return [*deps, *in_data, *out_data]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        """The :class:`CustomOp` for inputs of these shapes and dtypes."""
        return CustomOp()


def register(reg_name: str):
    """Class decorator: make a :class:`CustomOpProp` known as ``op_type=reg_name``.

    A name may be registered again, which replaces the class, so that a notebook cell can be run twice.
    """

    def do_register(prop_class):
        if not (isinstance(prop_class, type) and issubclass(prop_class, CustomOpProp)):
            raise MXNetError(
                f"operator.register({reg_name!r}): needs a subclass of CustomOpProp, got {prop_class!r}"
            )
        custom.properties[reg_name] = prop_class
        return prop_class

    return do_register


def get_all_registered_operators() -> list[str]:
    """Names of all registered operators, aliases included."""
    return list_operators(aliases=True)


#: What :func:`get_operator_arguments` gives.
OperatorArguments = namedtuple("OperatorArguments", ["narg", "names", "types"])


def get_operator_arguments(op_name: str) -> OperatorArguments:
    """How many arguments an operator takes, inputs and parameters, with their names and types."""
    prop: type[OperatorProperty] = get(op_name)
    names = ["data"] if prop.variadic else [*prop.arguments, *prop.aux]
    types = ["NDArray-or-Symbol" + ("[]" if prop.variadic else "")] * len(names)
    for name, field in prop.param.fields.items():
        names.append(name)
        need = field.need
        if need.startswith("{"):  # MXNet lists choices in alphabetical order
            need = f"{{{', '.join(sorted(need[1:-1].split(', ')))}}}"
        types.append(f"{need}, {'required' if field.required else f'optional, default={field.default!r}'}")
    return OperatorArguments(len(names), names, types)


register("custom_op")(CustomOpProp)


# -- as they were written before CustomOp ----------------------------------------------------------------


class PythonOp(CustomOpProp):
    """Base of :class:`NumpyOp` and :class:`NDArrayOp`, which CustomOp replaced in MXNet 0.8.

    One object is one operator: override what is below and call the object with symbols.

    Parameters
    ----------
    need_top_grad : bool
        Whether backward reads the gradient of the outputs. A loss does not.
    """

    #: The beginning of the names of nodes that are given none.
    _hint = "_python"
    _count = 0

    def __init__(self, need_top_grad=True):
        super().__init__(need_top_grad)
        warnings.warn(f"{type(self).__name__}: CustomOp has taken this class's place", stacklevel=2)

    def __call__(self, *args, **kwargs):
        return self.get_symbol(*args, **kwargs)

    def get_symbol(self, *args, name=None, **kwargs):
        """A node that this object computes; its inputs are symbols, in order or by name."""
        PythonOp._count += 1
        op_type = f"_python_op_{PythonOp._count}"
        custom.properties[op_type] = lambda: self
        name = NameManager.current().get(name, self._hint)
        return sym.Custom(*args, name=name, op_type=op_type, **kwargs)

    def forward(self, in_data, out_data):
        """Compute the outputs; the first input is the first output unless overridden."""
        out_data[0][:] = in_data[0]

    def backward(self, out_grad, in_data, out_data, in_grad):
        """Compute the gradients of the inputs; that of the first is 1 unless overridden."""
        in_grad[0][:] = 1.0

    def infer_shape(self, in_shape):
        """``(in_shapes, out_shapes)``; one output, of the first input's shape, unless overridden."""
        return in_shape, [in_shape[0]]

    def need_top_grad(self):
        """Whether backward reads the gradient of the outputs."""
        return self.need_top_grad_

    def declare_backward_dependency(self, out_grad, in_data, out_data):
        return [*(out_grad if self.need_top_grad() else []), *in_data, *out_data]

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return _RunPythonOp(self)

    def _hand_over(self, array):
        """What the methods of this class get for an NDArray."""
        return array


class NumpyOp(PythonOp):
    """An operator on NumPy arrays, in MXNet's oldest way."""

    _hint = "_native"

    def _hand_over(self, array):
        return array.asnumpy()


class NDArrayOp(PythonOp):
    """An operator on NDArrays, in MXNet's oldest way."""

    _hint = "_ndarray"


class _RunPythonOp(CustomOp):
    def __init__(self, op):
        self.op = op

    def forward(self, is_train, req, in_data, out_data, aux):
        self._run(self.op.forward, req, out_data, in_data=in_data, out_data=out_data)

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        given = {"out_grad": out_grad, "in_data": in_data, "out_data": out_data, "in_grad": in_grad}
        self._run(self.op.backward, req, in_grad, **given)

    def _run(self, method, req, results, **given):
        """Call a method with arrays of its own for the results, and store those as they are asked for."""
        handed = {
            name: [None if each is None else self.op._hand_over(each) for each in arrays]
            for name, arrays in given.items()
        }
        computed = [self.op._hand_over(each.copy()) for each in results]
        name = next(name for name, arrays in given.items() if arrays is results)
        handed[name] = computed
        method(**handed)
        for target, each, value in zip(results, req, computed, strict=True):
            self.assign(target, each, value)
