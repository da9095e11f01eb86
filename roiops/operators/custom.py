"""The operator ``Custom``: an operator that a user wrote in Python, in MXNet's way.

``roiops.operator`` holds what users see of it. User code wants NDArrays, which stand above the operators, so
that module hands over how to wrap an array when it is imported.
"""

import contextlib

import numpy as np

from ..errors import DTypeError, MXNetError, ParamError, RegistryError, nearest
from ..params import Field, Parameter
from ..recording import Mode
from ..registry import register
from . import checks
from .base import OpContext, Operator, OperatorProperty

#: op_type to the user's property class.
properties: dict[str, type] = {}

_wrap = _base = None


def set_front_end(wrap, base) -> None:
    """Say how user code gets an array, ``wrap(array, device)``, and from which class its operators derive."""
    global _wrap, _base
    _wrap, _base = wrap, base


def _text(value) -> str:
    """The string that a user's property gets for a parameter."""
    if isinstance(value, np.generic):
        value = value.item()  # NumPy 2 prints np.float64(0.1)
    if isinstance(value, tuple | list):
        items = ", ".join(_text(item) for item in value)
        if isinstance(value, list):
            return f"[{items}]"
        return f"({items},)" if len(value) == 1 else f"({items})"
    return str(value)


class CustomParam(Parameter):
    op_type = Field(str, doc="name under which the operator was registered with roiops.operator.register")

    def __init__(self, *, operator: str = "Custom", op_type: str | None = None, **given):
        super().__init__(operator=operator, **({} if op_type is None else {"op_type": op_type}))
        # Whatever else is given goes to the user's property, as strings, so that a saved graph says the same.
        self._values.update((name, _text(value)) for name, value in given.items())

    @property
    def given(self) -> dict[str, str]:
        """What the user's property is made with."""
        return {name: value for name, value in self._values.items() if name != "op_type"}

    def to_strings(self, *, defaults: bool = False) -> dict[str, str]:
        return dict(self._values)


def _agree(old, new) -> bool:
    """Whether a shape that user code returned is the one that is there, as far as either is known."""
    return len(old) == len(new) and all(n == 0 or o in (-1, n) for o, n in zip(old, new, strict=True))


class CustomOp(Operator):
    def __init__(self, params, user_op):
        super().__init__(params)
        self.user_op = user_op
        self._unwanted = {}
        self._checked = False

    def forward(self, ctx: OpContext, in_data, req, out_data, aux):
        self._check_defined("forward", ctx)
        lists = [self._wrapped(ctx, arrays) for arrays in (in_data, out_data, aux)]

        def call():
            with ctx.device, Mode(tape=None, training=ctx.is_train), self._errors_named():
                self.user_op.forward(ctx.is_train, list(req), *lists)

        if not self._checked:  # what a first call writes, later ones write as well
            label = f"{ctx.label}: forward of {type(self.user_op).__name__}"
            call = checks.writing_all(call, label, req, in_data, out_data)
        call()
        self._checked = True

    def _check_defined(self, method: str, ctx: OpContext) -> None:
        """An operator whose method was never written would leave whatever its memory holds."""
        self.user_op._label = f"{ctx.label}: {method} of {type(self.user_op).__name__}"
        own = getattr(type(self.user_op), method, None)
        if own is None or own is getattr(_base, method, None):
            raise MXNetError(
                f"{ctx.label}: {type(self.user_op).__name__} defines no {method}"
                + (", and a gradient is asked for" if method == "backward" else "")
            )

    def backward(self, ctx: OpContext, out_grad, in_data, out_data, req, in_grad, aux):
        self._check_defined("backward", ctx)
        for array, each in zip(in_grad, req, strict=True):
            if each == "write" and isinstance(array, np.ndarray):
                array.fill(0)  # a gradient that user code does not write, as that of a label, is zero
        # A gradient that nobody wants has memory, too, for user code that does not look at req.
        for i, array in enumerate(in_grad):
            if array is None and i not in self._unwanted:
                like = in_data[i]
                is_there = not isinstance(like, checks.Undeclared)
                self._unwanted[i] = np.empty_like(like) if is_there else np.empty(like.shape, like.dtype)
        in_grad = [self._unwanted[i] if array is None else array for i, array in enumerate(in_grad)]
        lists = [self._wrapped(ctx, arrays) for arrays in (out_grad, in_data, out_data, in_grad, aux)]
        with ctx.device, Mode(tape=None, training=ctx.is_train), self._errors_named():
            self.user_op.backward(list(req), *lists)

    @contextlib.contextmanager
    def _errors_named(self):
        """Raise what user code raises as MXNetError, as MXNet does, with the first error as its cause."""
        try:
            yield
        except MXNetError:
            raise
        except Exception as error:
            raise MXNetError(f"{self.user_op._label} raised {type(error).__name__}: {error}") from error

    @staticmethod
    def _wrapped(ctx, arrays):
        as_it_is = (type(None), checks.Undeclared)
        return [each if isinstance(each, as_it_is) else _wrap(each, ctx.device) for each in arrays]


@register("Custom")
class CustomProp(OperatorProperty):
    """An operator written in Python by the user; see :mod:`roiops.operator`.

    Inputs are those that the user's property lists; all parameters beside ``op_type`` go to it as strings.
    """

    param = CustomParam
    arguments = ()
    reusable = False  # user code may keep state, and a name may be registered again
    devices = ("cpu", "gpu")
    monitored_as_data = True
    backward_always = True

    def __init__(self, params, label=None):
        super().__init__(params, label)
        op_type = params.op_type
        if op_type not in properties:
            raise RegistryError(
                f"{self.label}: no operator is registered with op_type={op_type!r}"
                f"{nearest(op_type, properties)}; import the module that registers it"
            )
        self.label = f"{self.label}[{op_type}]"
        try:
            self.user = properties[op_type](**params.given)
        except TypeError as error:
            if error.__traceback__.tb_next is not None:  # raised inside the user's code
                raise
            raise ParamError(f"{self.label}: {error}") from None
        self.backward_needs = self._backward_needs()
        self.is_loss = "out_grad" not in self.backward_needs

    @property
    def lowered_as(self):
        return self.name, self.params.op_type

    def _backward_needs(self) -> tuple[str, ...]:
        """The kinds of arrays that the user's ``declare_backward_dependency`` asks for."""
        num_in, num_out = len(self.list_arguments()), len(self.list_outputs())
        kinds = ["out_grad"] * num_out + ["in_data"] * num_in + ["out_data"] * num_out
        numbers = [
            [i for i, kind in enumerate(kinds) if kind == each]
            for each in ("out_grad", "in_data", "out_data")
        ]
        wanted = self.user.declare_backward_dependency(*numbers)
        return tuple(dict.fromkeys(kinds[number] for number in wanted))

    def list_arguments(self):
        return tuple(self.user.list_arguments())

    def list_outputs(self):
        return tuple(self.user.list_outputs())

    def list_auxiliary_states(self):
        return tuple(self.user.list_auxiliary_states())

    def infer_shape(self, in_shapes):
        # What is unknown is [] or 0 to user code, as in MXNet.
        given = [[] if shape is None else [max(n, 0) for n in shape] for shape in in_shapes]
        lists = self._three("infer_shape", self.user.infer_shape(given))
        shapes = [
            [self._shape(what, each, shape) for shape in each]
            for what, each in zip(("input", "output", "auxiliary state"), lists, strict=True)
        ]
        for name, old, new in zip(self.list_arguments(), in_shapes, shapes[0], strict=True):
            if new and old is not None and not _agree(old, new):
                raise self.shape_error(f"infer_shape gives {name} the shape {new}, but it has {tuple(old)}")
        inputs = [s or old for s, old in zip(shapes[0], in_shapes, strict=True)]
        return inputs, shapes[1], shapes[2]

    def _shape(self, what: str, every, shape) -> tuple[int, ...]:
        try:
            sizes = tuple(shape)
            if all(int(n) == n and n >= 0 for n in sizes):
                return tuple(int(n) for n in sizes)
        except (TypeError, ValueError):
            pass
        raise self.shape_error(f"infer_shape must return a list of shapes for the {what}s, got {every!r}")

    def infer_type(self, in_types):
        if any(t is None for t in in_types):
            known = [t for t in in_types if t is not None]
            if not known:
                return in_types, [None] * len(self.list_outputs()), [None] * len(self.list_auxiliary_states())
            in_types = [known[0] if t is None else t for t in in_types]
        lists = self._three("infer_type", self.user.infer_type([t.type for t in in_types]))
        try:
            return [[np.dtype(t) for t in each] for each in lists]
        except TypeError as error:
            raise DTypeError(f"{self.label}: infer_type must return lists of dtypes: {error}") from None

    def _three(self, method: str, result):
        """The lists for inputs, outputs and states that a user's method returned, their lengths checked."""
        if not isinstance(result, list | tuple) or len(result) not in (2, 3):
            got = len(result) if isinstance(result, list | tuple) else repr(result)
            raise MXNetError(f"{self.label}: {method} must return 2 or 3 lists, got {got}")
        for what, each in zip(("inputs", "outputs", "auxiliary states"), result, strict=False):
            if not isinstance(each, list | tuple):
                raise MXNetError(f"{self.label}: {method} must return a list for the {what}, got {each!r}")
        lists = [list(each) for each in result] + [[]] * (3 - len(result))
        names = self.list_arguments(), self.list_outputs(), self.list_auxiliary_states()
        for what, each, need in zip(("inputs", "outputs", "auxiliary states"), lists, names, strict=True):
            if len(each) != len(need):
                raise MXNetError(
                    f"{self.label}: {method} must return {len(need)} entries for the {what} "
                    f"({', '.join(need)}), got {len(each)}"
                )
        return lists

    def create_operator(self, ctx, in_shapes, in_types):
        user_op = self.user.create_operator(ctx.device, [list(s) for s in in_shapes], list(in_types))
        return CustomOp(self.params, user_op)
