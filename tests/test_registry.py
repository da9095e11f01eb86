"""Names to operators, and the functions, signatures and pages generated from declarations."""

import inspect
import pickle

import pytest

import roiops as mx
from roiops import registry
from roiops.errors import InputError, ParamError, RegistryError
from roiops.operators.base import Operator, OperatorProperty
from roiops.params import Field, Parameter, shape


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    """Forget after each test what it registered."""
    monkeypatch.setattr(registry, "_properties", dict(registry._properties))


class BlurParam(Parameter):
    size = Field(shape(2), range=(1, None), doc="height and width of the window")
    sigma = Field(float, 1.0, above=0, doc="standard deviation. Pixels are its unit")


class BlurOp(Operator):
    """Is never run."""


class BlurProp(OperatorProperty):
    """Blur a picture.

    Borders are mirrored.
    """

    param, op = BlurParam, BlurOp
    arguments = ("data", "mask")
    aux = ("count",)
    argument_docs = {"data": "the picture", "count": "how often it was called"}


def test_fields_of_a_property_make_its_struct():
    class Wide(BlurProp):
        """Blur more."""

        width = Field(int, 3, doc="how far")

    assert list(Wide.param.fields) == ["size", "sigma", "width"]
    assert list(BlurProp.param.fields) == ["size", "sigma"]
    assert not hasattr(Wide, "width")
    given = Wide.create({"size": (3, 3), "width": "5"}).params
    assert (given.width, repr(given)) == (5, "WideParam(size=(3, 3), sigma=1.0, width=5)")
    taken = mx.operators.tensor.slices.SliceAxisProp.create({"axis": 1, "begin": 0, "end": 2}).params
    assert pickle.loads(pickle.dumps(taken)) == taken


def test_a_field_with_the_name_of_something_else_is_refused():
    with pytest.raises(
        RegistryError, match=r"^TakenProp.label: a field of this name needs a Parameter struct$"
    ):
        type("TakenProp", (OperatorProperty,), {"label": Field(str, "")})


def test_names_and_aliases():
    registry.register("blur", "_contrib_blur")(BlurProp)
    registry.alias("blur", "Blur")
    assert BlurProp.name == "blur"
    assert registry.get("blur") is registry.get("_contrib_blur") is registry.find("Blur") is BlurProp
    assert "blur" in registry.list_operators()
    assert "Blur" not in registry.list_operators()
    assert {"blur", "Blur", "_contrib_blur"} <= set(registry.list_operators(aliases=True))
    assert registry.list_operators() == sorted(registry.list_operators())


def test_a_name_is_registered_once():
    registry.register("blur")(BlurProp)
    with pytest.raises(RegistryError, match=r"operator 'blur' is already registered, by .*test_registry"):
        registry.register("blur")(BlurProp)
    with pytest.raises(RegistryError, match=r"operator 'exp' is already registered, by roiops\."):
        registry.alias("blur", "exp")


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("Convoluton", "; did you mean 'Convolution'"),
        ("fullyconnected", "; did you mean 'FullyConnected'"),
        ("BATCHNORM", "; did you mean 'BatchNorm'"),
        ("qqqqqqqq", "$"),
        ("contrib.ROIAling", "; did you mean 'ROIAlign' or 'contrib.ROIAlign'"),
        ("contrib.fourier", "$"),  # that both are in contrib makes no two names alike
        ("image.resizes", "$"),
    ],
)
def test_unknown_name_suggests_near_ones(name, near):
    with pytest.raises(RegistryError, match=f"^operator '{name}' is not registered{near}"):
        registry.get(name)
    assert registry.find(name) is None


def test_unknown_names_are_attribute_errors_too():
    with pytest.raises(AttributeError, match="not registered"):
        registry.get("qqqqqqqq")


def test_public_names():
    assert registry.public_name("_contrib_ROIAlign") == "contrib.ROIAlign"
    assert registry.public_name("_plus_scalar") == "_plus_scalar"


def test_signature():
    signature = registry.signature(BlurProp)
    assert (
        str(signature)
        == "(data=None, mask=None, count=None, size=required, sigma=1.0, *, name=None, out=None)"
    )


def test_signature_of_any_number_of_inputs():
    parameters = registry.signature(registry.get("Concat")).parameters
    assert parameters["data"].kind is inspect.Parameter.VAR_POSITIONAL
    assert parameters["dim"].kind is inspect.Parameter.KEYWORD_ONLY
    assert parameters["dim"].default == 1
    assert "num_args" not in parameters


def test_page():
    registry.register("blur", "_contrib_blur")(BlurProp)
    assert registry.docstring(BlurProp).splitlines() == [
        "Blur a picture.",
        "",
        "Borders are mirrored.",
        "",
        "Parameters",
        "----------",
        "data : Symbol or NDArray",
        "    The picture.",
        "mask : Symbol or NDArray",
        "count : Symbol or NDArray",
        "    How often it was called.",
        "size : tuple of 2 ints, 1 or more, required",
        "    Height and width of the window.",
        "sigma : float above 0, default 1.0",
        "    Standard deviation. Pixels are its unit.",
        "name : str, optional",
        "    Name of the node, when called on symbols.",
        "out : NDArray, optional",
        "    Where the result goes, when called on arrays.",
        "",
        "Returns",
        "-------",
        "output : the kind that the inputs are",
        "",
        "Notes",
        "-----",
        "Also called contrib.blur.",
    ]


FRONT = registry.FrontEnd("Word", "Words", (("times", "int", "how often"),))


def test_generated_function():
    registry.register("_contrib_blur")(BlurProp)
    seen = []
    function = registry.make_function("_contrib_blur", lambda *call: seen.append(call), "some.module", FRONT)
    function(1, size=2)
    assert seen == [(BlurProp, (1,), {"size": 2})]
    assert (function.__name__, function.__module__) == ("blur", "some.module")
    assert function.__doc__ == registry.docstring(BlurProp, FRONT)
    assert inspect.signature(function) == registry.signature(BlurProp, FRONT)


def test_operators_of_a_users_module_are_in_sym_and_nd():
    registry.register("blur")(BlurProp)
    assert "data : Symbol\n    The picture." in mx.sym.blur.__doc__
    assert "data : NDArray or numpy.ndarray\n    The picture." in mx.nd.blur.__doc__
    assert "attr" in inspect.signature(mx.sym.blur).parameters
    assert "out" in inspect.signature(mx.nd.blur).parameters
    node = mx.sym.blur(mx.sym.Variable("data"), size=(3, 3), name="b")
    assert node.list_arguments() == ["data", "b_mask"]
    assert node.list_auxiliary_states() == ["b_count"]


def is_input(value):
    return isinstance(value, complex)  # stands for a tensor in these tests


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((1j, 2j), {}, ([1j, 2j], {}, {})),
        ((1j, None, 3j, (2, 2)), {}, ([1j, None, 3j], {}, {"size": (2, 2)})),
        ((1j, (2, 2), 3.0), {}, ([1j], {}, {"size": (2, 2), "sigma": 3.0})),
        ((1j,), {"mask": 2j, "sigma": 3.0}, ([1j], {"mask": 2j}, {"sigma": 3.0})),
        ((), {"data": None, "size": 2}, ([], {"data": None}, {"size": 2})),
        ((1j, 2j, 3j, None), {}, ([1j, 2j, 3j], {}, {"size": None})),
    ],
)
def test_split_arguments(args, kwargs, expected):
    assert registry.split_arguments(BlurProp, args, kwargs, is_input, "a complex") == expected


@pytest.mark.parametrize(
    ("args", "kwargs", "text"),
    [
        ((1j, 2j, 3j, 4, 5, 6), {}, ": too many positional arguments: 6, it takes 5"),
        (
            (1j, (2, 2)),
            {"size": 3},
            ": mask must be a complex, got tuple; taken as a parameter, it would be size, which is given too",
        ),
        ((1j, 2j, (2, 2)), {"size": 3}, ": parameter size is given twice"),
        ((1j, 2j, 3j, 4j), {"size": 3}, r": takes at most 3 inputs \(data, mask, count\), got 4"),
        ((), {"mask": "x"}, ": mask must be a complex, got str"),
    ],
)
def test_split_arguments_errors(args, kwargs, text):
    with pytest.raises((ParamError, InputError), match=text):
        registry.split_arguments(BlurProp, args, kwargs, is_input, "a complex")


# -- all operators ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.list_operators())
def test_every_operator_has_a_page_and_a_signature(name):
    prop = registry.get(name)
    page = registry.docstring(prop)
    signature = registry.signature(prop)
    assert prop.__doc__, f"{name} has no docstring"
    for parameter in signature.parameters:
        assert f"{parameter} : " in page
    assert prop.variadic or set(prop.argument_docs) == {*prop.arguments, *prop.aux}


@pytest.mark.parametrize("name", registry.list_operators())
def test_every_operator_describes_itself_consistently(name):
    prop = registry.get(name)
    for declared, allowed in (
        (prop.zero_grad, prop.arguments),
        (prop.own_types, prop.arguments),
        (prop.argument_docs, (*prop.arguments, *prop.aux)),
        (prop.devices, ("cpu", "gpu")),
        (prop.backward_needs, ("out_grad", "in_data", "out_data")),
    ):
        if not isinstance(declared, property):  # it depends on the parameters
            assert set(declared) <= set(allowed)
