"""What an operator of a user's is held to: write every output, read in backward only what it declared."""

import numpy as np
import pytest

import roiops as mx
from roiops import registry, testing
from roiops.errors import MXNetError, ParamError, RegistryError, ShapeError
from roiops.operators import checks
from roiops.operators.base import Operator, OperatorProperty, assign
from roiops.operators.imperative import Invocation
from roiops.params import Field, Parameter, enum, shape

X = np.random.default_rng(0).standard_normal((3, 4))


class Square(Operator):
    def forward(self, ctx, in_data, req, out_data, aux):
        self.kept = in_data[0]
        assign(out_data[0], req[0], in_data[0] ** 2)

    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Forget after each test what it registered, and the functions made of it."""
    monkeypatch.setattr(registry, "_properties", dict(registry._properties))
    yield
    for module in (mx.sym, mx.nd):
        for name in ("squared", "other"):
            vars(module).pop(name, None)


def registered(operator, needs=("out_grad", "in_data"), name="squared"):
    @registry.register(name)
    class SquareProp(OperatorProperty):
        op = operator
        backward_needs = needs

    return SquareProp


def symbol(name="squared"):
    return getattr(mx.sym, name)(mx.sym.var("x"), name="node")


# -- what backward reads ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("needs", "text"),
    [
        (
            ("out_grad", "indata"),
            r"must name some of out_grad, in_data, out_data, got 'indata'; did you mean 'in_data'",
        ),
        (("out_grads",), r"must .*, got 'out_grads'; did you mean 'out_grad'"),
        (("data",), r"must name some of out_grad, in_data, out_data, got 'data'"),
        ("out_grad", r"must be a tuple of names, got 'out_grad'"),
        (None, r"must be a tuple of names, got None"),
    ],
)
def test_unknown_names_are_refused(needs, text):
    with pytest.raises(RegistryError, match=r"register\('squared'\): SquareProp\.backward_needs " + text):
        registered(Square, needs)
    assert registry.find("squared") is None


REFUSED = r"squared(\(node\))?: backward reads in_data\[0\], but backward_needs .* names out_grad"


def test_what_is_not_declared_is_not_handed_over():
    registered(Square, ("out_grad",))
    net = symbol() + 1
    executor = net.simple_bind(mx.cpu(), x=(3, 4))
    executor.forward(is_train=True)
    with pytest.raises(MXNetError, match=REFUSED):
        executor.backward(mx.nd.ones((3, 4)))
    with pytest.raises(MXNetError, match=REFUSED):
        testing.check_operator_gradient("squared", [X])
    with pytest.raises(MXNetError, match=REFUSED):
        testing.check_numeric_gradient(net, {"x": X})


@pytest.mark.parametrize(
    "read",
    [
        lambda a: a + 1, lambda a: 1 + a, lambda a: -a, lambda a: a[0], lambda a: np.exp(a), lambda a: np.asarray(a),
        lambda a: len(a), lambda a: list(a), lambda a: a.sum(), lambda a: a @ a, lambda a: a == 0, lambda a: np.copyto(np.empty(2), a),
        lambda a: np.where(a > 0, 1, 0), lambda a: a.ctypes.data, lambda a: mx.nd.array(a), lambda a: mx.nd.exp(a),
    ],
)  # fmt: skip
def test_every_way_to_read_it_is_refused(read):
    array = checks.declared_only(registered(Square, ()), "node", [], [np.ones(2)], [])[1][0]
    assert (array.shape, array.dtype, array.ndim, array.size) == ((2,), np.float64, 1, 2)
    with pytest.raises(MXNetError, match=r"node: backward reads in_data\[0\].* names nothing"):
        read(array)


def test_a_compiled_kernel_cannot_read_it():
    from roiops.kernels.jit import njit

    @njit
    def first(array):
        return array[0]

    array = checks.declared_only(registered(Square, ()), "node", [], [np.ones(2)], [])[1][0]
    with pytest.raises(MXNetError, match=r"node: backward reads in_data\[0\]"):
        first(array)


class Remembers(Square):
    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        assign(in_grad[0], req[0], 2 * self.kept * out_grad[0])


def test_an_array_that_was_remembered_is_nan_to_the_checks():
    registered(Remembers, ("out_grad",))
    for check in (
        lambda: testing.check_operator_gradient("squared", [X]),
        lambda: testing.check_numeric_gradient(symbol(), {"x": X}),
        lambda: testing.check_symbolic_backward(symbol(), [X], [np.ones_like(X)], [2 * X]),
    ):
        with pytest.raises(AssertionError, match="nan"):
            check()


def test_what_is_declared_passes():
    registered(Square)
    testing.check_operator_gradient("squared", [X])
    testing.check_numeric_gradient(mx.sym.exp(symbol()) * 2, {"x": X / 2})
    registered(Remembers, name="other")
    testing.check_operator_gradient("other", [X])


def test_a_custom_operator_gets_what_it_declared_only():
    class Custom(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            self.assign(out_data[0], req[0], in_data[0] ** 2)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], 2 * in_data[0] * out_grad[0])

    @mx.operator.register("declares_too_little")
    class Prop(mx.operator.CustomOpProp):
        def declare_backward_dependency(self, out_grad, in_data, out_data):
            return out_grad

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Custom()

    net = mx.sym.Custom(mx.sym.var("x"), op_type="declares_too_little", name="node")
    executor = net.simple_bind(mx.cpu(), x=(3, 4))
    executor.forward(is_train=True)
    with pytest.raises(
        MXNetError, match=r"Custom\(node\)\[declares_too_little\]: backward reads in_data\[0\]"
    ):
        executor.backward(mx.nd.ones((3, 4)))


# -- what forward writes ---------------------------------------------------------------------------------


class Forgets(Square):
    def forward(self, ctx, in_data, req, out_data, aux):
        in_data[0] ** 2


class ForgetsOne(Square):
    def forward(self, ctx, in_data, req, out_data, aux):
        out_data[0][1:] = in_data[0][1:] ** 2


@pytest.mark.parametrize(("operator", "part"), [(Forgets, ""), (ForgetsOne, "4 of 12 elements of ")])
def test_an_output_left_unwritten_is_an_error_where_it_is_checked(operator, part):
    registered(operator)
    text = rf"squared(\(node\))?: forward left {part}out_data\[0\] unwritten; assign\(out_data\[0\], req\[0\], value\)"
    for check in (
        lambda: testing.check_symbolic_forward(symbol(), [X], [X**2]),
        lambda: testing.check_symbolic_backward(symbol(), [X], [X], [X]),
        lambda: testing.check_numeric_gradient(symbol(), {"x": X}),
        lambda: testing.check_operator_gradient("squared", [X]),
    ):
        with pytest.raises(MXNetError, match=text):
            check()
    with checks.enforced(), pytest.raises(MXNetError, match=text):
        mx.nd.squared(X)
    with checks.enforced(), pytest.raises(MXNetError, match=text):
        symbol().eval(x=X)


def test_the_environment_asks_for_it(monkeypatch):
    registered(Forgets)
    monkeypatch.setattr(checks, "_asked", True)
    with pytest.raises(MXNetError, match="left out_data"):
        symbol().eval(x=X)


class Broadcasts(Square):
    def forward(self, ctx, in_data, req, out_data, aux):
        assign(out_data[0], req[0], in_data[0][:1] ** 2)


class BroadcastsBack(Square):
    def backward(self, ctx, out_grad, in_data, out_data, req, in_grad, aux):
        assign(in_grad[0], req[0], out_grad[0][0])


def test_a_result_of_another_shape_is_always_an_error():
    registered(Broadcasts)
    text = r": forward: a result has shape \(1, 4\), the array for it, by infer_shape, has shape \(3, 4\)"
    with pytest.raises(ShapeError, match=r"^squared" + text):
        mx.nd.squared(X)
    with pytest.raises(ShapeError, match=r"^squared\(node\)" + text):
        symbol().eval(x=X)
    registered(BroadcastsBack, name="other")
    text = r": backward: a result has shape \(4,\), the array for it, by infer_shape, has shape \(3, 4\)"
    executor = symbol("other").simple_bind(mx.cpu(), x=(3, 4))
    executor.forward(is_train=True)
    with pytest.raises(ShapeError, match=r"^other\(node\)" + text):
        executor.backward(mx.nd.ones((3, 4)))
    call = Invocation(registry.get("other").create({}), [X])
    call.forward()
    with pytest.raises(ShapeError, match="^other" + text):
        call.backward([X])


def test_a_number_is_assigned_to_every_element():
    target = np.ones((2, 3))
    assign(target, "write", 0)
    assign(target, "add", np.float32(2))
    assert (target == 2).all()


# -- what is missing -------------------------------------------------------------------------------------


def test_a_property_without_an_operator():
    with pytest.raises(
        RegistryError,
        match=r"register\('squared'\): SquareProp\.op must be a subclass of Operator, which computes, got .*Operator'>"
        "; or override create_operator",
    ):
        registered(Operator)
    with pytest.raises(RegistryError, match=r"SquareProp\.op must be a subclass of Operator, .* got None"):
        registered(None)


def test_an_operator_without_a_method():
    class NoForward(Operator):
        pass

    class NoBackward(Operator):
        def forward(self, ctx, in_data, req, out_data, aux):
            assign(out_data[0], req[0], in_data[0])

    registered(NoForward)
    with pytest.raises(MXNetError, match=r"squared\(node\): NoForward defines no forward"):
        symbol().eval(x=X)
    registered(NoBackward, name="other")
    executor = symbol("other").simple_bind(mx.cpu(), x=(3, 4))
    executor.forward(is_train=True)
    text = (
        r"other\(node\): NoBackward defines no backward, and a gradient is asked for; write one, derive from "
    )
    with pytest.raises(
        MXNetError, match=text + "GradientFree where all gradients are zero, or set differentiable"
    ):
        executor.backward(mx.nd.ones((3, 4)))


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (
            3,
            r"infer_shape must return \(in_shapes, out_shapes\) or \(in_shapes, out_shapes, aux_shapes\), got 3",
        ),
        (None, r"infer_shape must return .*, got None"),
        (([(3, 4)],), r"infer_shape must return .*, got 1 values"),
        (([(3, 4)], (3, 4)), r"out_shapes of infer_shape must be 1 shapes \(output\), got \(3, 4\)"),
        (([(3, 4)], []), r"out_shapes of infer_shape must be 1 shapes \(output\), got \[\]"),
        (([], [(3, 4)]), r"in_shapes of infer_shape must be 1 shapes \(data\), got \[\]"),
        (([(3, 4)], [12]), r"infer_shape must return a tuple of sizes for output, got 12"),
    ],
)
def test_an_infer_shape_that_returns_something_else(answer, text):
    registered(Square).infer_shape = lambda self, in_shapes: answer
    with pytest.raises(ShapeError, match=r"^squared\(node\): " + text):
        symbol().infer_shape(x=(3, 4))
    with pytest.raises(ShapeError, match=r"^squared: " + text):
        mx.nd.squared(X)


@pytest.mark.parametrize(
    ("declare", "text"),
    [
        (
            lambda: Field(("none", "mean"), "none"),
            r"the kind must be int, float, bool, str or one of roiops.params, such as enum, shape and optional, "
            r"got \('none', 'mean'\); enum\('none', 'mean'\) is a choice of words",
        ),
        (lambda: Field(list), r"the kind must be int, .* got <class 'list'>$"),
        (lambda: Field(float, 2, range=(0, 1)), r"the default must be float in \[0, 1\], got 2"),
        (lambda: Field(int, "many"), r"the default must be int, got 'many'"),
        (lambda: Field(enum("a", "b"), "c"), r"the default must be \{'a', 'b'\}, got 'c'"),
        (lambda: Field(shape(2), (0, 1), nonzero=True), r"the default must be .*, not 0, got \(0, 1\)"),
    ],
)
def test_a_field_that_contradicts_itself(declare, text):
    with pytest.raises(ParamError, match=r"^WrongParam\.mode: " + text):
        type("WrongParam", (Parameter,), {"mode": declare()})
