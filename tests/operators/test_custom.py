"""Operators that users write in Python, as MXNet has them."""

import traceback

import numpy as np
import pytest

import roiops as mx
from roiops.errors import DTypeError, MXNetError, ParamError, RegistryError, ShapeError
from roiops.operators import checks, custom
from roiops.testing import check_numeric_gradient


@pytest.fixture(autouse=True)
def own_operators(monkeypatch):
    """Forget after each test what it registered."""
    monkeypatch.setattr(custom, "properties", dict(custom.properties))


def values(array):
    return array.asnumpy().tolist()


class Sigmoid(mx.operator.CustomOp):
    def forward(self, is_train, req, in_data, out_data, aux):
        self.assign(out_data[0], req[0], 1 / (1 + mx.nd.exp(-in_data[0])))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        y = out_data[0]
        self.assign(in_grad[0], req[0], out_grad[0] * y * (1 - y))


class SigmoidProp(mx.operator.CustomOpProp):
    def create_operator(self, ctx, in_shapes, in_dtypes):
        return Sigmoid()


class SoftmaxLoss(mx.operator.CustomOp):
    def __init__(self, scale):
        self.scale = scale

    def forward(self, is_train, req, in_data, out_data, aux):
        x = in_data[0].asnumpy()
        y = np.exp(x - x.max(axis=1, keepdims=True))
        self.assign(out_data[0], req[0], mx.nd.array(y / y.sum(axis=1, keepdims=True)))

    def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
        label = in_data[1].asnumpy().astype(int)
        grad = out_data[0].asnumpy()
        grad[np.arange(len(label)), label] -= 1
        self.assign(in_grad[0], req[0], mx.nd.array(self.scale * grad))


class SoftmaxLossProp(mx.operator.CustomOpProp):
    def __init__(self, scale="1"):
        super().__init__(need_top_grad=False)
        self.scale = float(scale)

    def list_arguments(self):
        return ["data", "label"]

    def infer_shape(self, in_shape):
        return [in_shape[0], [in_shape[0][0]]], [in_shape[0]], []

    def create_operator(self, ctx, in_shapes, in_dtypes):
        return SoftmaxLoss(self.scale)


# -- calling ---------------------------------------------------------------------------------------------


def test_imperative_call():
    mx.operator.register("sigmoid_py")(SigmoidProp)
    result = mx.nd.Custom(mx.nd.array([0, np.log(3)]), op_type="sigmoid_py")
    np.testing.assert_allclose(result.asnumpy(), [0.5, 0.75], rtol=1e-6)
    out = mx.nd.zeros((1,))
    assert mx.nd.Custom(data=np.zeros(1, np.float32), op_type="sigmoid_py", out=out) is out
    assert values(out) == [0.5]


def test_inputs_by_name_in_any_order():
    mx.operator.register("softmax_py")(SoftmaxLossProp)
    result = mx.nd.Custom(label=mx.nd.zeros((1,)), data=mx.nd.zeros((1, 4)), op_type="softmax_py")
    assert values(result) == [[0.25] * 4]


def test_gradient_in_a_graph():
    mx.operator.register("sigmoid_py")(SigmoidProp)
    x = mx.sym.Variable("x")
    net = mx.sym.Custom(data=x * 2, op_type="sigmoid_py", name="s") + x
    assert net.list_arguments() == ["x"]
    check_numeric_gradient(net, [np.random.default_rng(0).standard_normal((2, 3))])


def test_loss_needs_no_head_gradient_and_its_label_is_inferred():
    mx.operator.register("softmax_py")(SoftmaxLossProp)
    net = mx.sym.Custom(mx.sym.Variable("data"), op_type="softmax_py", scale=2, name="loss")
    assert net.list_arguments() == ["data", "loss_label"]
    assert net.list_outputs() == ["loss_output"]
    assert net.infer_shape(data=(3, 4)) == ([(3, 4), (3,)], [(3, 4)], [])
    executor = net.simple_bind(mx.cpu(), data=(1, 2))
    executor.forward(is_train=True, data=np.zeros((1, 2)), loss_label=np.ones(1))
    executor.backward()
    assert values(executor.grad_dict["data"]) == [[1, -1]]
    assert values(executor.grad_dict["loss_label"]) == [0]


@pytest.mark.parametrize(("req", "expected"), [("write", [[1, -1]]), ("add", [[6, 4]]), ("null", [[5, 5]])])
def test_gradient_request(req, expected):
    mx.operator.register("softmax_py")(SoftmaxLossProp)
    net = mx.sym.Custom(mx.sym.Variable("data"), mx.sym.Variable("label"), op_type="softmax_py", scale=2)
    args = {"data": mx.nd.zeros((1, 2)), "label": mx.nd.ones((1,))}
    grads = {"data": mx.nd.full((1, 2), 5)}
    executor = net.bind(mx.cpu(), args, grads, {"data": req, "label": "null"})
    executor.forward(is_train=True)
    executor.backward()
    assert values(grads["data"]) == expected


def test_a_gradient_nobody_wants_has_memory_for_code_that_ignores_req():
    class Op(Sigmoid):
        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            in_grad[0][:] = 1
            in_grad[1][:] = 2

    class Prop(mx.operator.CustomOpProp):
        def list_arguments(self):
            return ["a", "b"]

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Op()

    mx.operator.register("careless")(Prop)
    net = mx.sym.Custom(mx.sym.Variable("a"), mx.sym.Variable("b"), op_type="careless")
    executor = net.simple_bind(mx.cpu(), grad_req={"b": "write"}, a=(2,), b=(2,))
    executor.forward(is_train=True)
    executor.backward(mx.nd.ones((2,)))
    assert values(executor.grad_dict["b"]) == [2, 2]


def test_graph_with_a_custom_node_is_saved_and_loaded():
    mx.operator.register("softmax_py")(SoftmaxLossProp)
    net = mx.sym.Custom(mx.sym.Variable("data"), op_type="softmax_py", scale=0.5, name="loss")
    again = mx.sym.load_json(net.tojson())
    assert again.tojson() == net.tojson()
    assert again.attr_dict()["loss"] == {"op_type": "softmax_py", "scale": "0.5"}
    assert again.list_arguments() == ["data", "loss_label"]


# -- what user code sees ---------------------------------------------------------------------------------


def test_parameters_arrive_as_strings():
    seen = {}

    class Prop(SigmoidProp):
        def __init__(self, **kwargs):
            super().__init__()
            seen.update(kwargs)

    mx.operator.register("strings")(Prop)
    given = {
        "a": 1,
        "b": True,
        "c": (0.1, 0.2),
        "d": (np.float64(0.1),),
        "e": np.float32(0.5),
        "f": [1, 2],
        "g": "text",
        "h": None,
    }
    mx.nd.Custom(mx.nd.zeros((1,)), op_type="strings", **given)
    assert seen == {
        "a": "1",
        "b": "True",
        "c": "(0.1, 0.2)",
        "d": "(0.1,)",
        "e": "0.5",
        "f": "[1, 2]",
        "g": "text",
        "h": "None",
    }


def test_what_forward_and_backward_receive():
    calls = []

    class Op(mx.operator.CustomOp):
        def forward(self, is_train, req, in_data, out_data, aux):
            calls.append(("forward", is_train, req, [a.shape for a in (*in_data, *out_data, *aux)]))
            assert all(isinstance(a, mx.nd.NDArray) for a in (*in_data, *out_data, *aux))
            aux[0][:] += 1
            for out, r in zip(out_data, req, strict=True):
                self.assign(out, r, in_data[0])

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            calls.append(("backward", req, [a.shape for a in (*out_grad, *in_grad, *aux)]))
            self.assign(in_grad[0], req[0], out_grad[0] + out_grad[1])

    class Prop(mx.operator.CustomOpProp):
        def list_outputs(self):
            return ["one", "two"]

        def list_auxiliary_states(self):
            return ["count"]

        def infer_shape(self, in_shape):
            return in_shape, [in_shape[0], in_shape[0]], [(1,)]

        def create_operator(self, ctx, in_shapes, in_dtypes):
            calls.append(("create", ctx, in_shapes, in_dtypes))
            return Op()

    mx.operator.register("watched")(Prop)
    net = mx.sym.Custom(mx.sym.Variable("data"), op_type="watched", name="w")
    assert net.list_outputs() == ["w_one", "w_two"]
    assert net.list_auxiliary_states() == ["w_count"]
    executor = net.simple_bind(mx.cpu(), data=(2, 3))
    executor.forward(is_train=False)
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones((2, 3)), mx.nd.full((2, 3), 2)])
    made = [call for call in calls if call[0] == "create"]  # for inference, for training
    assert made == [("create", mx.cpu(), [[2, 3]], [np.float32])] * len(made)
    assert [call for call in calls if call[0] != "create"] == [
        ("forward", False, ["write", "write"], [(2, 3), (2, 3), (2, 3), (1,)]),
        ("forward", True, ["write", "write"], [(2, 3), (2, 3), (2, 3), (1,)]),
        ("backward", ["write"], [(2, 3), (2, 3), (2, 3), (1,)]),
    ]
    assert values(executor.aux_dict["w_count"]) == [2]
    assert values(executor.grad_dict["data"]) == [[3] * 3] * 2


def test_dtypes_of_its_own():
    class Prop(SigmoidProp):
        def infer_type(self, in_type):
            return in_type, [np.int32], []

        def create_operator(self, ctx, in_shapes, in_dtypes):
            class Op(mx.operator.CustomOp):
                def forward(self, is_train, req, in_data, out_data, aux):
                    self.assign(out_data[0], req[0], in_data[0].asnumpy())

            return Op()

    mx.operator.register("to_int")(Prop)
    result = mx.nd.Custom(mx.nd.array([1.7]), op_type="to_int")
    assert result.dtype is np.int32
    assert values(result) == [1]


def test_assign():
    op = mx.operator.CustomOp()
    target = mx.nd.ones((2,))
    op.assign(target, "null", 9)
    assert values(target) == [1, 1]
    op.assign(target, "add", np.array([1.0, 2.0]))
    assert values(target) == [2, 3]
    op.assign(target, "add", mx.nd.ones((2,)))
    assert values(target) == [3, 4]
    op.assign(target, "inplace", 5)
    assert values(target) == [5, 5]


@pytest.mark.parametrize("req", ["write", "add"])
@pytest.mark.parametrize(
    ("value", "row"),
    [
        (np.ones(1), [1, 1, 1]),
        (mx.nd.ones((2, 1)), [1, 1, 1]),
        (mx.nd.array([0, 1, 2]), [0, 1, 2]),
        (np.float32(2), [2, 2, 2]),
        (np.ones(()), [1, 1, 1]),
    ],
)
def test_assign_repeats_as_mxnet_does_but_not_in_checks(value, row, req):
    op = mx.operator.CustomOp()
    target = mx.nd.zeros((2, 3))
    op.assign(target, req, value)
    assert values(target) == [row, row]
    with checks.enforced():
        if value.shape == ():
            op.assign(target, req, value)
        else:
            with pytest.raises(mx.MXNetError, match=r"assigns an array of shape .* to one of shape \(2, 3\)"):
                op.assign(target, req, value)


@pytest.mark.parametrize("shape", [(2, 2), (3, 2), (2,), (2, 2, 3)])
def test_assign_refuses_what_no_repeating_makes_fit(shape):
    with pytest.raises(mx.MXNetError, match="which is what infer_shape says"):
        mx.operator.CustomOp().assign(mx.nd.zeros((2, 3)), "write", np.ones(shape))


@pytest.mark.parametrize(
    ("needs", "expected"),
    [
        (lambda g, i, o: [], ()),
        (lambda g, i, o: [g[0], o[0]], ("out_grad", "out_data")),
        (lambda g, i, o: [*i], ("in_data",)),
    ],
)
def test_declared_dependencies_reach_the_memory_plan(needs, expected):
    class Prop(SigmoidProp):
        def declare_backward_dependency(self, out_grad, in_data, out_data):
            return needs(out_grad, in_data, out_data)

    mx.operator.register("needs")(Prop)
    prop = custom.CustomProp.create({"op_type": "needs"})
    assert prop.backward_needs == expected
    assert prop.is_loss == ("out_grad" not in expected)


def test_operator_that_gives_up_its_inputs_in_backward_is_right_in_a_chain():
    """Sigmoid reads only its output in backward, so the memory of its input may be used again."""

    class Prop(SigmoidProp):
        def declare_backward_dependency(self, out_grad, in_data, out_data):
            return [*out_grad, *out_data]

    mx.operator.register("sigmoid_py")(Prop)
    net = mx.sym.Variable("x")
    for _ in range(4):
        net = mx.sym.Custom(net * 1.5, op_type="sigmoid_py")
    check_numeric_gradient(net, [np.random.default_rng(1).standard_normal((3, 2))])


def test_registering_again_replaces():
    mx.operator.register("again")(SigmoidProp)
    assert values(mx.nd.Custom(mx.nd.zeros((1, 2)), op_type="again")) == [[0.5, 0.5]]

    class Prop(SigmoidProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            class Op(mx.operator.CustomOp):
                def forward(self, is_train, req, in_data, out_data, aux):
                    self.assign(out_data[0], req[0], 7)

            return Op()

    mx.operator.register("again")(Prop)
    assert values(mx.nd.Custom(mx.nd.zeros((1, 2)), op_type="again")) == [[7, 7]]


def test_sampling_targets_as_detection_scripts_do():
    """The pattern of MXNet's proposal_target: several outputs, sampled with NumPy, no gradient."""

    class TargetOp(mx.operator.CustomOp):
        def __init__(self, rows, stds):
            self.rows, self.stds = rows, stds

        def forward(self, is_train, req, in_data, out_data, aux):
            rois, boxes = in_data[0].asnumpy(), in_data[1].asnumpy()
            kept = rois[: self.rows]
            centres = (kept[:, 1:3] + kept[:, 3:5]) / 2
            wanted = (boxes[0, 0, :2] + boxes[0, 0, 2:4]) / 2
            self.assign(out_data[0], req[0], kept)
            self.assign(out_data[1], req[1], np.full(self.rows, boxes[0, 0, 4]))
            self.assign(out_data[2], req[2], (wanted - centres) / self.stds)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            self.assign(in_grad[0], req[0], 0)
            self.assign(in_grad[1], req[1], 0)

    @mx.operator.register("targets")
    class TargetProp(mx.operator.CustomOpProp):
        def __init__(self, rows="2", stds="(0.1, 0.2)"):
            super().__init__(need_top_grad=False)
            self.rows = int(rows)
            self.stds = np.array([float(s) for s in stds[1:-1].split(",")])

        def list_arguments(self):
            return ["rois", "gt_boxes"]

        def list_outputs(self):
            return ["rois_output", "label", "target"]

        def infer_shape(self, in_shape):
            return in_shape, [(self.rows, 5), (self.rows,), (self.rows, 2)]

        def create_operator(self, ctx, in_shapes, in_dtypes):
            return TargetOp(self.rows, self.stds)

        def declare_backward_dependency(self, out_grad, in_data, out_data):
            return []

    rois, boxes = mx.sym.Variable("rois"), mx.sym.Variable("gt_boxes")
    group = mx.sym.Custom(
        rois=rois * 1, gt_boxes=boxes, op_type="targets", rows=2, stds=(0.5, 0.25), name="t"
    )
    net = mx.sym.Group([group[0], group[1], group[2]])
    assert net.list_outputs() == ["t_rois_output", "t_label", "t_target"]
    executor = net.simple_bind(mx.cpu(), rois=(3, 5), gt_boxes=(1, 1, 5))
    outputs = executor.forward(
        is_train=True,
        rois=np.array([[0, 0, 0, 2, 2], [0, 2, 2, 4, 4], [0, 9, 9, 9, 9]]),
        gt_boxes=np.array([[[1, 1, 3, 3, 6]]]),
    )
    assert [out.shape for out in outputs] == [(2, 5), (2,), (2, 2)]
    assert values(outputs[1]) == [6, 6]
    assert values(outputs[2]) == [[2, 4], [-2, -4]]
    executor.grad_dict["rois"][:] = 5
    executor.backward()
    assert values(executor.grad_dict["rois"]) == [[0] * 5] * 3


# -- errors ----------------------------------------------------------------------------------------------


def test_errors_in_user_code_arrive_with_their_traceback_and_leave_the_executor_usable():
    class Op(Sigmoid):
        broken = True

        def forward(self, is_train, req, in_data, out_data, aux):
            if Op.broken:
                raise KeyError("from user code")
            super().forward(is_train, req, in_data, out_data, aux)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            raise ZeroDivisionError

    class Prop(SigmoidProp):
        def create_operator(self, ctx, in_shapes, in_dtypes):
            return Op()

    mx.operator.register("broken")(Prop)
    executor = mx.sym.Custom(mx.sym.Variable("x"), op_type="broken").simple_bind(mx.cpu(), x=(1,))
    told = r"Custom\(custom\d+\)\[broken\]: forward of Op raised KeyError: 'from user code'"
    with pytest.raises(MXNetError, match=told) as caught:
        executor.forward()
    frames = traceback.extract_tb(caught.value.__cause__.__traceback__)
    assert frames[-1].filename == __file__
    assert frames[-1].line == 'raise KeyError("from user code")'
    Op.broken = False
    assert values(executor.forward(x=np.zeros(1))[0]) == [0.5]
    with pytest.raises(MXNetError, match="backward of Op raised ZeroDivisionError"):
        executor.backward(np.ones(1))


def prop_with(**methods):
    return type("Prop", (SigmoidProp,), methods)


@pytest.mark.parametrize(
    ("prop", "given", "error", "text"),
    [
        (
            None,
            {"op_type": "sigmoid_pie"},
            RegistryError,
            "no operator is registered with op_type='sigmoid_pie'",
        ),
        (None, {}, ParamError, "Custom: parameter op_type is required"),
        (SigmoidProp, {"foo": 1}, ParamError, r"Custom\[mine\]: .*unexpected keyword argument 'foo'"),
        (
            prop_with(infer_shape=lambda self, s: [s]),
            {},
            MXNetError,
            r"Custom\[mine\]: infer_shape must return 2 or 3 lists, got 1",
        ),
        (
            prop_with(infer_shape=lambda self, s: (s, [])),
            {},
            MXNetError,
            r"Custom\[mine\]: infer_shape must return 1 entries for the outputs \(output\), got 0",
        ),
        (
            prop_with(infer_shape=lambda self, s: (s, [5])),
            {},
            ShapeError,
            r"Custom\[mine\]: infer_shape must return a list of shapes for the outputs, got \[5\]",
        ),
        (
            prop_with(infer_type=lambda self, t: (t, ["nonsense"], [])),
            {},
            DTypeError,
            r"Custom\[mine\]: infer_type must return lists of dtypes",
        ),
        (prop_with(infer_shape=lambda self, s: s[3]), {}, IndexError, "list index out of range"),
        (prop_with(__init__=lambda self: len(5)), {}, TypeError, r"object of type 'int' has no len\(\)"),
    ],
)
def test_mistakes_are_named(prop, given, error, text):
    if prop is not None:
        mx.operator.register("mine")(prop)
        given = {"op_type": "mine", **given}
    with pytest.raises(error, match=text):
        mx.nd.Custom(mx.nd.zeros((1,)), **given)


def op_with(**methods):
    op = type("Mine", (mx.operator.CustomOp,), methods)
    return prop_with(create_operator=lambda self, ctx, shapes, dtypes: op())


def copy_forward(self, is_train, req, in_data, out_data, aux):
    self.assign(out_data[0], req[0], in_data[0])


def write_nothing(self, is_train, req, in_data, out_data, aux):
    pass


def write_a_part(self, is_train, req, in_data, out_data, aux):
    out_data[0][:2] = in_data[0][:2]


def write_another_shape(self, is_train, req, in_data, out_data, aux):
    self.assign(out_data[0], req[0], mx.nd.zeros((2, 2)))


@pytest.mark.parametrize(
    ("prop", "text"),
    [
        (op_with(), r"Custom\(node\)\[mine\]: Mine defines no forward"),
        (
            op_with(forward=copy_forward),
            r"Custom\(node\)\[mine\]: Mine defines no backward, and a gradient is asked for",
        ),
        (
            op_with(forward=write_nothing),
            r"Custom\(node\)\[mine\]: forward of Mine left out_data\[0\] unwritten; assign",
        ),
        (
            op_with(forward=write_a_part),
            r"Custom\(node\)\[mine\]: forward of Mine left 1 of 3 elements of out_data\[0\] unwritten",
        ),
        (
            op_with(forward=write_another_shape),
            r"Custom\(node\)\[mine\]: forward of Mine: assigns an array of shape \(2, 2\) to one of shape \(3,\), "
            "which is what infer_shape says",
        ),
        (
            prop_with(infer_shape=lambda self, s: None),
            r"Custom\(node\)\[mine\]: infer_shape must return 2 or 3 lists, got None",
        ),
        (
            prop_with(infer_shape=lambda self, s: (s, 5)),
            r"Custom\(node\)\[mine\]: infer_shape must return a list for the outputs, got 5",
        ),
        (
            prop_with(infer_shape=lambda self, s: (s, [(-1, 2)])),
            r"Custom\(node\)\[mine\]: infer_shape must return a list of shapes for the outputs, got \[\(-1, 2\)\]",
        ),
        (
            prop_with(infer_shape=lambda self, s: ([(7,)], s)),
            r"Custom\(node\)\[mine\]: infer_shape gives data the shape \(7,\), but it has \(3,\)",
        ),
    ],
)
def test_methods_that_are_absent_or_wrong_are_named(prop, text):
    mx.operator.register("mine")(prop)
    net = mx.sym.Custom(mx.sym.Variable("x"), op_type="mine", name="node")

    def train():
        executor = net.simple_bind(mx.cpu(), x=(3,))
        executor.forward(is_train=True)
        executor.backward([mx.nd.ones((3,))])

    with pytest.raises(MXNetError, match=text):
        train()


def test_an_operator_without_backward_runs_where_no_gradient_is_asked_for():
    mx.operator.register("mine")(op_with(forward=copy_forward))
    executor = mx.sym.Custom(mx.sym.Variable("x"), op_type="mine").simple_bind(mx.cpu(), "null", x=(3,))
    for value in (1, np.nan, 2):
        expected = np.full(3, value, np.float32)
        np.testing.assert_array_equal(executor.forward(x=expected)[0].asnumpy(), expected)


def test_a_gradient_that_backward_does_not_write_is_zero():
    mx.operator.register("softmax_py")(SoftmaxLossProp)
    data, label = mx.sym.Variable("data"), mx.sym.Variable("label")
    executor = mx.sym.Custom(data, label, op_type="softmax_py").simple_bind(mx.cpu(), data=(2, 3))
    executor.grad_dict["label"][:] = 7
    executor.forward(is_train=True)
    executor.backward()
    assert values(executor.grad_dict["label"]) == [0, 0]


def test_missing_and_surplus_inputs():
    mx.operator.register("softmax_py")(SoftmaxLossProp)
    x = mx.nd.zeros((1, 2))
    with pytest.raises(MXNetError, match=r"Custom\[softmax_py\]: .* data, label; label missing"):
        mx.nd.Custom(x, op_type="softmax_py")
    with pytest.raises(MXNetError, match=r"takes at most 2 inputs \(data, label\), got 3"):
        mx.nd.Custom(x, x, x, op_type="softmax_py")
    with pytest.raises(MXNetError, match="input data is given twice"):
        mx.nd.Custom(x, data=x, op_type="softmax_py")


def test_near_names_are_suggested():
    mx.operator.register("proposal_target")(SigmoidProp)
    with pytest.raises(
        RegistryError, match=r"did you mean 'proposal_target'.*import the module that registers it"
    ):
        mx.sym.Custom(mx.sym.Variable("x"), op_type="proposal_targets")


def test_register_takes_property_classes_only():
    with pytest.raises(MXNetError, match=r"operator.register\('x'\): needs a subclass of CustomOpProp"):
        mx.operator.register("x")(Sigmoid)


def test_registered_operators_are_listed():
    assert {"Custom", "Convolution", "elemwise_add"} <= set(mx.operator.get_all_registered_operators())
