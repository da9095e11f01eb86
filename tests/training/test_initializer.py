"""Initializers: MXNet's values and spreads, rules by name, attributes, JSON."""

import json

import numpy as np
import pytest
from golden_files import GOLDEN

import roiops as mx
from roiops.errors import FormatError, ParamError, RegistryError, ShapeError

TABLE = json.loads((GOLDEN / "optimizer" / "initializers.json").read_text())


def filled(initializer, name, shape, attrs=None):
    array = mx.nd.full(shape, -77.0)
    initializer(mx.init.InitDesc(name, attrs), array)
    return array.asnumpy()


@pytest.mark.parametrize("row", TABLE["fixed"], ids=lambda row: f"{row['initializer']}{row['shape']}")
def test_fixed_values_are_mxnets(row):
    initializer = getattr(mx.init, row["initializer"])(**row["arguments"])
    value = filled(initializer, row["name"], row["shape"])
    np.testing.assert_allclose(value, np.array(row["value"]).reshape(row["shape"]), rtol=1e-6)


@pytest.mark.parametrize(
    "row", TABLE["random"], ids=lambda r: f"{r['initializer']}{r['arguments']}{r['shape']}"
)
def test_random_values_spread_as_mxnets(row):
    mx.random.seed(1)
    value = filled(getattr(mx.init, row["initializer"])(**row["arguments"]), "a_weight", row["shape"])
    assert value.std() == pytest.approx(row["std"], rel=0.02)
    assert abs(value.mean()) < 4 * row["std"] / np.sqrt(value.size)
    # A uniform draw ends within a thousandth of its bounds; a normal one somewhere near four sigma.
    near = 0.001 if row["max"] < 2 * row["std"] else 0.35
    assert value.max() == pytest.approx(row["max"], rel=near)
    assert value.min() == pytest.approx(row["min"], rel=near)


@pytest.mark.parametrize("row", TABLE["by_name_with_constant_0.25"], ids=lambda row: row["name"])
def test_names_decide_what_is_no_weight(row):
    initializer = mx.init.Constant(0.25)
    if row["value"] is not None:
        assert filled(initializer, row["name"], (2,)).tolist() == row["value"]
    elif "mean" in row["name"] or "var" in row["name"]:
        # MXNet puts these in an attribute of the variable that it makes; here the name is enough.
        assert filled(initializer, row["name"], (2,)).tolist() == [float("var" in row["name"])] * 2
    else:
        with pytest.raises(ParamError, match=f"Constant: cannot tell what {row['name']} is"):
            filled(initializer, row["name"], (2,))


@pytest.mark.parametrize("text", ["[", "{", "[1]", "[]", '["xavier", 3]', '["xavier", {}'])
def test_damaged_json_is_refused(text):
    with pytest.raises(ParamError, match="initializer: JSON must be"):
        mx.init.create(text)


def test_json_is_mxnets_and_comes_back():
    made = {
        "Constant(3)": mx.init.Constant(3),
        "Xavier()": mx.init.Xavier(),
        "Xavier('gaussian', 'in', 2)": mx.init.Xavier("gaussian", "in", 2),
        "MSRAPrelu()": mx.init.MSRAPrelu(),
        "Normal(0.5)": mx.init.Normal(0.5),
        "Uniform(0.5)": mx.init.Uniform(0.5),
        "Bilinear()": mx.init.Bilinear(),
        "Zero()": mx.init.Zero(),
        "One()": mx.init.One(),
    }
    assert {text: each.dumps() for text, each in made.items()} == TABLE["dumps"]
    for each in made.values():
        assert mx.init.create(each.dumps()) == each
    assert mx.init.Constant(np.array([1, 2])).dumps() == '["constant", {"value": [1, 2]}]'


def test_an_attribute_of_the_variable_wins():
    row = TABLE["zero_with_attribute"]
    value = filled(mx.init.Zero(), "fc_weight", (2,), {"__init__": row["attribute"]})
    assert value.tolist() == row["value"]
    variable = mx.sym.Variable("scale", init=mx.init.Constant(2.5))
    assert filled(mx.init.Zero(), "scale", (1,), variable.list_attr()).tolist() == [2.5]


def test_weights_of_bilinear_upsampling_interpolate():
    data, w = mx.sym.Variable("data"), mx.sym.Variable("w")
    for inputs, name in ((data,), "up_weight"), ((data, w), "w"):
        up = mx.sym.UpSampling(*inputs, scale=2, sample_type="bilinear", num_filter=3, name="up")
        module = mx.mod.Module(up, label_names=None)
        module.bind([("data", (1, 3, 4, 4))])
        module.init_params(mx.init.Xavier())
        row = np.array([0.25, 0.75, 0.75, 0.25])
        expected = np.broadcast_to(np.outer(row, row), (3, 1, 4, 4))
        np.testing.assert_array_equal(module.get_params()[0][name].asnumpy(), expected)


def test_orthogonal_rows():
    for shape in ((4, 9), (9, 4), (3, 2, 2, 2)):
        value = filled(mx.init.Orthogonal(scale=2.0), "a_weight", shape).reshape(shape[0], -1)
        gram = value @ value.T if value.shape[0] <= value.shape[1] else value.T @ value
        np.testing.assert_allclose(gram, 4 * np.eye(len(gram)), atol=1e-5)


def test_mixed_takes_the_first_pattern():
    mixed = mx.init.Mixed(["rpn_.*", ".*"], [mx.init.One(), "zero"])
    assert filled(mixed, "rpn_weight", (1,)).tolist() == [1]
    assert filled(mixed, "fc_weight", (1,)).tolist() == [0]
    with pytest.raises(ParamError, match=r"Mixed: no pattern matches fc_weight; add '\.\*'"):
        filled(mx.init.Mixed(["rpn"], [mx.init.One()]), "fc_weight", (1,))
    with pytest.raises(ParamError, match="Mixed: 1 patterns for 0 initializers"):
        mx.init.Mixed(["a"], [])


def test_load(tmp_path):
    file = str(tmp_path / "some.params")
    mx.nd.save(file, {"arg:fc_weight": mx.nd.array([1.0, 2.0]), "aux:bn_mean": mx.nd.array([3.0])})
    load = mx.init.Load(file, default_init=mx.init.Zero())
    assert filled(load, "fc_weight", (2,)).tolist() == [1, 2]
    assert filled(load, "bn_mean", (1,)).tolist() == [3]
    assert filled(load, "new_weight", (2,)).tolist() == [0, 0]
    with pytest.raises(ShapeError, match=r"fc_weight must have shape \(3,\), the loaded one has \(2,\)"):
        filled(load, "fc_weight", (3,))
    with pytest.raises(
        ParamError,
        match=r"Load: fc_weigth was not loaded .*; did you mean 'fc_weight'",
    ):
        filled(mx.init.Load(file), "fc_weigth", (2,))
    with pytest.raises(FormatError, match="Load: needs arrays with names, got list"):
        mx.init.Load([1])


def test_bad_parameters():
    with pytest.raises(ShapeError, match=r"Xavier: fc_weight must have at least 2 dimensions, got shape"):
        filled(mx.init.Xavier(), "fc_weight", (3,))
    with pytest.raises(ShapeError, match=r"Bilinear: up_weight must have 4 dimensions, got shape \(3, 3\)"):
        filled(mx.init.Bilinear(), "up_weight", (3, 3))
    with pytest.raises(ParamError, match="Xavier: rnd_type must be 'uniform' or 'gaussian', got 'normal'"):
        mx.init.Xavier("normal")
    with pytest.raises(ParamError, match="Xavier: factor_type must be 'avg', 'in' or 'out', got 'both'"):
        mx.init.Xavier(factor_type="both")
    with pytest.raises(ParamError, match="Orthogonal: rand_type must be 'uniform' or 'normal', got 'x'"):
        mx.init.Orthogonal(rand_type="x")
    with pytest.raises(RegistryError, match="initializer: 'xaver' is unknown; did you mean 'xavier'"):
        mx.init.create("xaver")


def test_the_seed_decides():
    def draw():
        return filled(mx.init.Normal(1.0), "a_weight", (50,))

    mx.random.seed(7)
    first, state, second = draw(), mx.random.get_state(), draw()
    mx.random.seed(7)
    np.testing.assert_array_equal(draw(), first)
    mx.random.set_state(json.loads(json.dumps(state)))
    np.testing.assert_array_equal(draw(), second)
    assert not np.array_equal(first, second)


def test_verbosity_logs_the_size(caplog):
    caplog.set_level("INFO")
    filled(mx.init.Constant(2.0).set_verbosity(True), "a_weight", (4,))
    assert "Initialized a_weight as weight: 2" in caplog.text
