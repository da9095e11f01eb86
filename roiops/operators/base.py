"""What an operator is: a property class (names, shapes, types) and an Op (numbers).

The graph and the imperative front end know operators only through these two classes, so an operator of a
user's own module is as good as a built-in one. ``docs/add_an_operator.md`` walks through a whole one.
"""

import functools
import importlib
import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from ..context import Context, cpu
from ..errors import DeviceError, DTypeError, MXNetError, RegistryError, ShapeError, nearest
from ..params import Field, Parameter
from ..shapes import known as known
from ..shapes import merge_shapes
from .checks import SOURCES


class Following(NamedTuple):
    """What an operator does to the result of another one, which that one may do as well; in inference only.

    ``kind`` is ``"batch_norm"`` (then ``eps`` and ``fix_gamma`` are in ``details``; the other arrays are the
    operator's further inputs and its states), ``"add"`` (of the other input), ``"act"`` (negative numbers
    times ``slopes``, which is one number, then all within ``floor`` and ``ceiling``, as ``details`` has
    them), ``"prelu"`` (negative numbers times those of the other input, by channel), ``"sigmoid"``, or
    ``"arithmetic"``: ``function``, a ufunc, of the result and the other input, or ``number``; the other way
    round where ``reflected`` says so.
    """

    kind: str
    #: Which inputs may be the result in question.
    inputs: tuple[int, ...]
    details: dict


class OpContext:
    """What an Op may know of its surroundings: the device, the node's label, training or not."""

    __slots__ = ("device", "is_train", "label")

    def __init__(self, device: Context | None = None, label: str = "", is_train: bool = False):
        self.device = device or cpu()
        self.label = label
        self.is_train = is_train


def kernels(stem: str, device: Context):
    """The kernel module for a device: ``roi.average`` is ``kernels/cpu/roi/average.py``, or ``cuda``'s."""
    return _kernels("cuda" if device.is_gpu else "cpu", stem)


@functools.cache
def _kernels(folder: str, stem: str):
    return importlib.import_module(f"..kernels.{folder}.{stem}", __package__)


class ResultShapeError(ShapeError):
    """A result of another shape than the array that it was to be stored in."""

    def __init__(self, got, need, label: str = "assign"):
        self.got, self.need = tuple(got), tuple(need)
        super().__init__(
            f"{label}: a result has shape {self.got}, the array for it, by infer_shape, has shape {self.need}"
        )

    def named(self, label: str) -> "ResultShapeError":
        """The same error with the operator's name, which :func:`assign` does not know."""
        return ResultShapeError(self.got, self.need, label)


def assign(target, req: str, value) -> None:
    """Store ``value`` in ``target`` as ``req`` asks: ``write``, ``inplace``, ``add`` or ``null``.

    ``value`` is a number or an array of the shape of ``target``.
    """
    if req != "null" and np.shape(value) not in ((), tuple(target.shape)):
        raise ResultShapeError(np.shape(value), target.shape)
    if req == "add":
        target += value
    elif req != "null" and value is not target:
        target[...] = value


class Operator:
    """Computes. One is made for each node when it is bound, with the node's parameter struct.

    ``in_data``, ``out_data``, ``aux``, ``out_grad`` and ``in_grad`` are lists of arrays (NumPy on the CPU,
    device arrays on a GPU) in the order of the property's names; ``req`` says for each result whether to
    ``"write"``, write ``"inplace"``, ``"add"`` to what is there, or leave it (``"null"``; the array may
    then be None). ``forward`` must write every element of every output that is not ``"null"``. At least one
    result is wanted in every call of either. Both are called under ``numpy.errstate(all="ignore")``: NaN and
    infinity pass through without a warning.
    """

    #: Whether forward leaves nothing behind that another call could see, on any thread. Imperative calls of
    #: equal parameters, shapes and types then share one Op, and otherwise each makes its own, which holds no
    #: scratch memory when the call is over.
    shareable = False
    #: Whether it keeps what it makes of its second input, a weight, and looks in each call whether that is
    #: still right. Imperative calls with the same array, in inference, then have one Op as long as the array
    #: is there.
    keeps_weight = False

    def __init__(self, params: Parameter, **worked_out):
        """``worked_out``: what the property made of the inputs' shapes, kept under these names."""
        self.params = params
        vars(self).update(worked_out)

    def forget(self) -> None:
        """Let go of memory that is of use within a call only."""

    def forward(self, ctx: OpContext, in_data, req, out_data, aux) -> None:
        """Compute the outputs into ``out_data``; override this or :meth:`bind_forward`."""
        if type(self).bind_forward is Operator.bind_forward:
            raise MXNetError(f"{ctx.label}: {type(self).__name__} defines no forward")
        self.bind_forward(ctx, in_data, req, out_data, aux)()

    def backward(self, ctx: OpContext, out_grad, in_data, out_data, req, in_grad, aux) -> None:
        """Compute the gradients of the inputs into ``in_grad``, from those of the outputs."""
        raise MXNetError(
            f"{ctx.label}: {type(self).__name__} defines no backward, and a gradient is asked for; write "
            "one, derive from GradientFree where all gradients are zero, or set differentiable = False in "
            "the property"
        )

    def bind_forward(self, ctx: OpContext, in_data, req, out_data, aux):
        """A call without arguments that does ``forward`` on these very arrays, again and again.

        The executor asks once, at bind time. Override it to decide there what need not be decided anew
        in every call.
        """
        return functools.partial(self.forward, ctx, in_data, req, out_data, aux)

    def bind_followed(self, ctx: OpContext, in_data, aux, out, work: list, before: list):
        """A call without arguments for this and the ``work`` that :meth:`OperatorProperty.takes_over` took.

        ``work`` holds pairs of a :class:`Following` and its further arrays, and so does ``before``, which
        :meth:`OperatorProperty.takes_before` took. All arrays are dense and float32, and stay the same ones
        from call to call.
        """
        raise NotImplementedError


class GradientFree(Operator):
    """An operator whose inputs all have a gradient of zero, which the caller fills in."""

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        """Nothing to do."""


def variant(*bases: type[Operator], **attributes) -> type[Operator]:
    """What the last of these classes computes, but for these attributes and what the others override."""
    return type(bases[-1].__name__, bases, {"__module__": bases[-1].__module__, **attributes})


class OperatorProperty:
    """Describes an operator: parameters, names, shapes, types. A subclass is registered under its name.

    What it declares are class attributes: those below, and fields of parameters.
    """

    name = ""
    #: How errors name this operator: ``contrib.ROIAlign``, or ``contrib.ROIAlign(roi5)`` for a node.
    label = ""
    #: The parameter struct, of which ``self.params`` is an instance. Fields that a property declares itself
    #: make one, which adds them to that of its base.
    param: type[Parameter] = Parameter
    #: The class that computes.
    op: type[Operator] = Operator
    #: Names of the inputs, the auxiliary states and the outputs. Where they depend on the parameters,
    #: override :meth:`list_arguments`, :meth:`list_auxiliary_states`, :meth:`list_outputs`; ``arguments``
    #: then holds all possible ones, for the signature. A class may declare ``arguments`` and ``aux`` with
    #: what each of them is, as dict of str to str, which then makes ``argument_docs``.
    arguments: tuple[str, ...] = ("data",)
    aux: tuple[str, ...] = ()
    outputs: tuple[str, ...] = ("output",)
    #: Inputs that are there only where a function of the parameters says so.
    present_if: dict[str, Callable[[Parameter], object]] = {}
    #: What each input and auxiliary state is, for the generated documentation.
    argument_docs: dict[str, str] = {}
    #: What to do for each input of which a list was given.
    list_advice: dict[str, str] = {}
    #: How many of the outputs a user sees; the rest are for backward. An unseen output that nothing will read
    #: is not computed: its ``req`` is ``"null"``.
    visible_outputs: int | None = None
    #: The name of a parameter unless which is true only the first output is visible.
    more_visible_with: str | None = None
    #: The name of the parameter that counts the inputs (``"num_args"``) of an operator that takes any number.
    variadic: str | None = None
    #: Arguments whose gradient is always zero; of a :class:`GradientFree` Op it is that of all. The executor
    #: fills zeros; backward gets ``"null"``.
    zero_grad: tuple[str, ...] = ()
    #: Arguments whose dtype is their own, such as labels and indices. Unknown, it is that of the others.
    own_types: tuple[str, ...] = ()
    #: The dtype of arguments where nobody says it.
    usual_types: dict[str, np.dtype] = {}
    #: Whether the inputs, but for those of ``own_types``, must be of a floating-point dtype.
    floating = False
    #: What the dtype of each output is, where inputs may have any: a dtype, the number of the input that has
    #: it, or the name of the parameter that says it (the first input's, where that is None).
    out_types: tuple | None = None
    #: Whether the dtype of the first output is that of the first input, too, of an operator that has an
    #: ``infer_type`` of its own.
    typed_by_output = False
    #: Whether backward starts here and ignores the gradient of the outputs.
    is_loss = False
    #: Whether backward is called, with zeros, also where no gradient comes to the outputs: it changes states,
    #: or gives gradients of its own.
    backward_always = False
    #: Which of ``"out_grad"``, ``"in_data"``, ``"out_data"`` backward reads. What no backward reads may be
    #: overwritten once the forward pass is done with it.
    backward_needs: tuple[str, ...] = ("out_grad", "in_data", "out_data")
    #: Forward: output number to the input number whose memory it may take over.
    inplace: dict[int, int] = {}
    #: Backward: input-gradient number to the output-gradient number whose memory it may take over.
    inplace_grad: dict[int, int] = {}
    #: Whether :meth:`infer_shape` copes with inputs that are unknown (None) or hold unknown entries (-1).
    #: Without it, it is called only with the first input (all inputs, if variadic) known entirely. With it,
    #: too, an operator is not asked about a single input of which nothing is known.
    partial_shapes = False
    #: With ``partial_shapes``: of so many inputs, the first ones, something is known whenever
    #: :meth:`infer_shape` is called.
    needed_shapes = 0
    #: Whether equal inputs give equal outputs in every call, so that a graph computes equal nodes once. Never
    #: so for operators that draw random numbers or keep something from call to call.
    repeatable = False
    #: Whether a gradient may be asked for; where not, binding a graph that needs one is an error.
    differentiable = True
    #: Whether the first output has the shape of the first input, so that either tells the other.
    keeps_shape = False
    #: Whether it only puts numbers elsewhere, and computes none.
    moves_data = False
    #: Whether its single input is called ``data`` to a monitor, too; MXNet calls that of most operators
    #: ``input0`` there.
    monitored_as_data = False
    #: Whether one property may serve all imperative calls of equal parameters, shapes and types.
    reusable = True
    #: Attributes of the variables that are inputs, by input name, where they have none of their own: how
    #: MXNet says that a moving average starts at zero.
    variable_attributes: dict[str, dict[str, str]] = {}
    #: Where it runs: ``("cpu",)`` or ``("cpu", "gpu")``.
    devices: tuple[str, ...] = ("cpu",)
    #: Parameters of a small call that reaches all its kernels, beside the required ones, for which any value
    #: will do.
    example_params: dict[str, object] = {}
    #: Whether operators that take no parameters pass over those given, as MXNet's do: scripts written for it
    #: say ``zeros_like(x, dtype="int64")``, which changes nothing.
    passes_over_parameters = False

    def __init_subclass__(cls):
        fields = {name: value for name, value in vars(cls).items() if isinstance(value, Field)}
        for name in fields:
            delattr(cls, name)
            if hasattr(cls, name):
                raise RegistryError(f"{cls.__name__}.{name}: a field of this name needs a Parameter struct")
        if fields:
            place = {"__module__": cls.__module__, "__qualname__": f"{cls.__qualname__}.param"}
            cls.param = type(f"{cls.__name__.removesuffix('Prop')}Param", (cls.param,), fields | place)
        described = {n: docs for n in ("arguments", "aux") if isinstance(docs := vars(cls).get(n), dict)}
        for name, docs in described.items():
            setattr(cls, name, tuple(docs))
        if described:
            cls.argument_docs = {name: text for docs in described.values() for name, text in docs.items()}

    def __init__(self, params: Parameter, label: str | None = None):
        self.params = params
        self.label = label or self.label

    @classmethod
    def create(cls, given: dict, label: str | None = None) -> "OperatorProperty":
        """A property from parameters given as Python values or MXNet's strings."""
        if OperatorProperty.passes_over_parameters and not cls.param.fields:
            given = {}
        return cls(cls.param(operator=label or cls.label, **given), label)

    @classmethod
    def check_declaration(cls) -> None:
        """Raise unless what the class declares can be used; called when it is registered."""
        what = f"register({cls.name!r}): {cls.__name__}"
        computes = isinstance(cls.op, type) and issubclass(cls.op, Operator) and cls.op is not Operator
        if not computes and cls.create_operator is OperatorProperty.create_operator:
            raise RegistryError(
                f"{what}.op must be a subclass of Operator, which computes, got {cls.op!r}; "
                "or override create_operator"
            )
        needs = cls.backward_needs
        if isinstance(needs, property | functools.cached_property):
            return  # it follows from the parameters
        if not isinstance(needs, tuple | list):
            raise RegistryError(f"{what}.backward_needs must be a tuple of names, got {needs!r}")
        for name in needs:
            if name not in SOURCES:
                raise RegistryError(
                    f"{what}.backward_needs must name some of {', '.join(SOURCES)}, "
                    f"got {name!r}{nearest(name, SOURCES)}"
                )

    # -- names ---------------------------------------------------------------------------------------

    def list_arguments(self) -> tuple[str, ...]:
        """Names of the inputs, with these parameters."""
        if self.variadic:
            return tuple(f"arg{i}" for i in range(getattr(self.params, self.variadic)))
        left_out = [name for name, is_there in self.present_if.items() if not is_there(self.params)]
        return tuple(name for name in self.arguments if name not in left_out) if left_out else self.arguments

    def list_outputs(self) -> tuple[str, ...]:
        """Names of the outputs, hidden ones last."""
        return self.outputs

    def list_zero_gradients(self) -> tuple[str, ...]:
        """Names of the inputs whose gradient is always zero."""
        return self.list_arguments() if issubclass(self.op, GradientFree) else self.zero_grad

    def list_auxiliary_states(self) -> tuple[str, ...]:
        """Names of the auxiliary states: arrays that an operator keeps from call to call."""
        return self.aux

    def list_monitored_inputs(self) -> list[str]:
        """Names of the inputs and states as a monitor sees them: MXNet gives few single inputs their name."""
        names = [*self.list_arguments(), *self.list_auxiliary_states()]
        return ["input0"] if names == ["data"] and not self.monitored_as_data else names

    @property
    def lowered_as(self) -> tuple[str, str | None]:
        """What its lowering is registered under: its name, and the type of an operator of a user's."""
        return self.name, None

    @property
    def num_visible_outputs(self) -> int:
        """How many of the outputs a user sees."""
        if self.more_visible_with is not None and not getattr(self.params, self.more_visible_with):
            return 1
        return len(self.list_outputs()) if self.visible_outputs is None else self.visible_outputs

    # -- shapes and types ----------------------------------------------------------------------------

    def data_shape_of(self, weight_shape: tuple) -> tuple | None:
        """The shape of the first input as far as that of the second, a weight, tells it, or None."""
        return None

    def may_infer(self, in_shapes: list) -> bool:
        """Whether enough is known for :meth:`infer_shape`."""
        if self.partial_shapes:
            return in_shapes != [None] and None not in in_shapes[: self.needed_shapes]
        return all(map(known, in_shapes if self.variadic else in_shapes[:1]))

    def infer_shape(self, in_shapes: list):
        """``(in_shapes, out_shapes)`` or ``(in_shapes, out_shapes, aux_shapes)``.

        A shape is a tuple of ints, -1 for an unknown entry, or None when nothing is known. Fill in what
        follows from what is there; raise :class:`ShapeError` for what cannot be.
        """
        return in_shapes, self.out_shapes(in_shapes[0])

    def out_shapes(self, shape) -> list:
        """The shapes of the outputs for that of the first input, where this alone is all to infer.

        Override it or :meth:`infer_shape`.
        """
        return [shape] * len(self.list_outputs())

    def inferred(self, in_shapes: list) -> tuple[list, list, list]:
        """What :meth:`infer_shape` says, as three lists, an error where it is no such thing."""
        answer = self.infer_shape(list(in_shapes))
        if not isinstance(answer, tuple | list) or len(answer) not in (2, 3):
            got = f"{len(answer)} values" if isinstance(answer, tuple | list) else repr(answer)
            raise self.shape_error(
                f"infer_shape must return (in_shapes, out_shapes) or (in_shapes, out_shapes, "
                f"aux_shapes), got {got}"
            )
        counts = self.list_arguments(), self.list_outputs(), self.list_auxiliary_states()
        for what, names, shapes in zip(
            ("in_shapes", "out_shapes", "aux_shapes"), counts, answer, strict=False
        ):
            if not isinstance(shapes, tuple | list) or len(shapes) != len(names):
                raise self.shape_error(
                    f"{what} of infer_shape must be {len(names)} shapes ({', '.join(names)}), got {shapes!r}"
                )
            for name, shape in zip(names, shapes, strict=True):
                if shape is not None and not isinstance(shape, tuple | list):
                    raise self.shape_error(
                        f"infer_shape must return a tuple of sizes for {name}, got {shape!r}"
                    )
        return (*map(list, answer), *([[None] * len(counts[2])] if len(answer) == 2 else []))

    def output_shapes(self, in_data: list) -> list | None:
        """The shapes of the outputs where they follow from the numbers only, for calls without a graph."""
        return None

    @property
    def counts_numbers(self) -> bool:
        """Whether :meth:`output_shapes` says what no graph can know before it runs."""
        return type(self).output_shapes is not OperatorProperty.output_shapes

    def infer_shape_from_outputs(self, in_shapes: list, out_shapes: list) -> list:
        """Input shapes, completed from the outputs', of one of which something is known, where possible."""
        if not self.keeps_shape:
            return in_shapes
        return [merge_shapes(in_shapes[0], out_shapes[0]) or in_shapes[0], *in_shapes[1:]]

    def infer_type(self, in_types: list):
        """``(in_types, out_types)`` or ``(in_types, out_types, aux_types)``, None for unknown.

        By default everything but ``own_types`` has the type of the first input whose type is known.
        """
        names = self.list_arguments()
        in_types = [t or self.usual_types.get(name) for name, t in zip(names, in_types, strict=True)]
        if self.out_types is not None:
            if self.floating:
                self.check_float(in_types[0])
            return in_types, [self._out_type(each, in_types) for each in self.out_types]
        own = [t if name in self.own_types else None for name, t in zip(names, in_types, strict=True)]
        dtype = self.common_type([None if o else t for o, t in zip(own, in_types, strict=True)], names)
        if self.floating:
            self.check_float(dtype)
        return (
            [o or dtype for o in own],
            [dtype] * len(self.list_outputs()),
            [dtype] * len(self.list_auxiliary_states()),
        )

    def infer_type_from_outputs(self, in_types: list, out_types: list) -> list:
        """Input types, completed from the outputs' where everything, or the first of both, has one type."""
        own_rule = type(self).infer_type is not OperatorProperty.infer_type
        if own_rule or self.out_types is not None:
            first = self.typed_by_output if own_rule else self._out_type(self.out_types[0], [self]) is self
            return [in_types[0] or out_types[0], *in_types[1:]] if first and in_types else in_types
        dtype = next((t for t in out_types if t is not None), None)
        own = (name in self.own_types for name in self.list_arguments())
        return [t if o else t or dtype for t, o in zip(in_types, own, strict=True)]

    def _out_type(self, which, in_types):
        if isinstance(which, str):
            return getattr(self.params, which) or in_types[0]
        return in_types[which] if isinstance(which, int) else which

    def check_float(self, dtype, name: str | None = None) -> None:
        """Raise unless a dtype, by default that of the first argument, is unknown or a floating-point one."""
        if dtype is not None and dtype not in (np.float16, np.float32, np.float64):
            name = name or self.list_arguments()[0]
            raise DTypeError(f"{self.label}: {name} must be float16, float32 or float64, got {dtype}")

    def common_type(self, in_types: list, names: tuple[str, ...] | None = None):
        """The one dtype of these inputs, None while none is known; an error where they differ."""
        names = names or self.list_arguments()
        found = [(n, t) for n, t in zip(names, in_types, strict=False) if t is not None]
        for name, dtype in found[1:]:
            if dtype != found[0][1]:
                raise DTypeError(
                    f"{self.label}: {name} must have the dtype of {found[0][0]}, {found[0][1]}, got {dtype}"
                )
        return found[0][1] if found else None

    def example_shapes(self, data: tuple, count: int) -> list:
        """Shapes of inputs for a small call, None for those that :meth:`infer_shape` finds from the others.

        ``data`` is a shape for the first one, and ``count`` a number of boxes, for operators that take any.
        """
        inputs = len(self.list_arguments())
        given = inputs if self.variadic else min(inputs, max(1, self.needed_shapes))
        return [data] * given + [None] * (inputs - given)

    # -- checks for subclasses -----------------------------------------------------------------------

    def shape_error(self, text: str) -> ShapeError:
        """An error on shapes, to be raised, that begins with the operator's name."""
        return ShapeError(f"{self.label}: {text}")

    def check_ndim(self, name: str, shape, *ndims: int, least: int | None = None, why: str = "") -> None:
        """Raise unless a shape is unknown, has one of these numbers of dimensions, or ``least`` or more."""
        if shape is None or len(shape) in ndims or (least is not None and len(shape) >= least):
            return
        need = [*map(str, ndims), *([] if least is None else [f"{least} or more"])]
        word = "dimension" if need == ["1"] else "dimensions"
        raise self.shape_error(f"{name} must have {' or '.join(need)} {word}{why}, got shape {shape}")

    def check_axis(self, name: str, axis: int, ndim: int) -> int:
        """``axis`` counted from the front; raise where there is no such axis among ``ndim``."""
        if not ndim:
            raise self.shape_error(f"{name} {axis} is none of an array without dimensions")
        if not -ndim <= axis < ndim:
            raise self.shape_error(
                f"{name} must be in [{-ndim}, {ndim - 1}] for {ndim} dimensions, got {axis}"
            )
        return axis % ndim

    def check_shape(self, name: str, shape, need: tuple) -> tuple:
        """``shape``, possibly unknown, completed from ``need``; raise where they disagree.

        Entries of ``need`` are numbers, or words or -1 for entries of any size:
        ``self.check_shape("rois", shape, ("num_rois", 5))``.
        """
        wanted = tuple(n if isinstance(n, int | np.integer) else -1 for n in need)
        merged = merge_shapes(shape, wanted)
        if merged is None:
            words = ", ".join("any" if n == -1 else str(n) for n in need)
            words = f"({words},)" if len(need) == 1 else f"({words})"
            raise self.shape_error(f"{name} must have shape {words}, got {shape}")
        return merged

    def check_one_of(self, name: str, shape, forms: list[tuple], more: str = "") -> tuple:
        """``shape``, possibly unknown, completed from the first of some shapes that it agrees with."""
        for form in forms:
            merged = merge_shapes(shape, form)
            if merged is not None:
                return merged
        need = " or ".join(map(str, dict.fromkeys(forms)))
        raise self.shape_error(f"{name} must have shape {need}{more}, got {tuple(shape)}")

    def check_device(self, device: Context) -> None:
        """Raise unless the operator runs on a device."""
        if ("gpu" if device.is_gpu else "cpu") not in self.devices:
            raise DeviceError(
                f"{self.label}: has no kernel for {device}; it runs on {' and '.join(self.devices)}"
            )

    # -- what it costs -------------------------------------------------------------------------------

    def count_operations(self, in_shapes: list, out_shapes: list) -> int:
        """Floating-point operations of a forward pass; a multiplication and an addition count as two.

        One for each number that comes out, unless a subclass knows better; none with ``moves_data``.
        """
        return 0 if self.moves_data else sum(map(math.prod, out_shapes))

    def input_places(self, in_shapes: list) -> list[int]:
        """The entry of the first output from which on each input's entries lie as they are; none by default.

        In inference, inputs are then computed there where that is possible. ``bind_forward`` gets them so and
        has nothing to copy.
        """
        return []

    # -- doing what follows, in inference ------------------------------------------------------------

    #: Whether this operator's Op can do the ReLU after it as well, in training: its ``with_relu`` says so.
    trains_with_relu = False

    def follows(self, in_shapes: list) -> Following | None:
        """What this does, where that is something that the operator before may do as well."""
        return None

    def takes_over(self, work: Following, done: list[str], in_shapes: list) -> bool:
        """Whether this operator's Op can do ``work`` after itself and after the kinds of work in ``done``."""
        return False

    def takes_before(self, before: list[Following], in_shapes: list) -> bool:
        """Whether this operator's Op does what earlier ones did to its first input better as it reads it."""
        return False

    # -- making the operator -------------------------------------------------------------------------

    def create_operator(self, ctx: OpContext, in_shapes, in_types) -> Operator:
        """The operator for inputs of these shapes and types, all of them known."""
        return self.op(self.params)
