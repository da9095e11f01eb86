"""Parameter structs: reading, errors, equality, printing, and MXNet's strings."""

import copy
import pickle

import numpy as np
import pytest

from roiops import registry
from roiops.errors import ParamError
from roiops.params import Field, Parameter, enum, optional, shape


class PoolParam(Parameter):
    pooled_size = Field(shape(2), range=(1, None), doc="output grid (height, width)")
    spatial_scale = Field(float, range=(0, 1), doc="feature-map pixels per image pixel")
    mode = Field(enum("avg", "max"), "avg", doc="how to combine samples")
    ratio = Field(optional(int), None, aliases=("sample_ratio",), doc="samples a bin")


GOOD = {"pooled_size": (7, 7), "spatial_scale": 0.0625}


def test_values_and_defaults():
    param = PoolParam(pooled_size="(7, 7)", spatial_scale="0.0625")
    assert param.pooled_size == (7, 7)
    assert param.spatial_scale == 0.0625
    assert (param.mode, param.ratio) == ("avg", None)
    assert param.to_dict() == {**GOOD, "mode": "avg", "ratio": None}


def test_strings_go_back_to_mxnet():
    param = PoolParam(**GOOD, mode="max")
    assert param.to_strings() == {"pooled_size": "(7, 7)", "spatial_scale": "0.0625", "mode": "max"}
    assert param.to_strings(defaults=True)["ratio"] == "None"
    assert PoolParam(**param.to_strings()) == param


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({}, r"^Op: parameter pooled_size is required: tuple of 2 ints, 1 or more \(output grid"),
        (
            {**GOOD, "spatial_scal": 1},
            r"^Op: unknown parameter 'spatial_scal'; did you mean 'spatial_scale'\? "
            r"\(it takes: pooled_size, spatial_scale, mode, ratio\)",
        ),
        ({**GOOD, "zzz": 1}, r"^Op: unknown parameter 'zzz' \(it takes"),
        (
            {**GOOD, "pooled_size": (0, 7)},
            r"^Op: pooled_size must be tuple of 2 ints, 1 or more, got \(0, 7\)$",
        ),
        ({**GOOD, "pooled_size": "7x7"}, "^Op: pooled_size must be tuple of 2 ints, 1 or more, got '7x7'$"),
        ({**GOOD, "spatial_scale": 2}, r"^Op: spatial_scale must be float in \[0, 1\], got 2$"),
        ({**GOOD, "mode": "min"}, r"^Op: mode must be {'avg', 'max'}, got 'min'$"),
        (
            {**GOOD, "ratio": 1, "sample_ratio": 2},
            "^Op: sample_ratio is another name of ratio; give one of them$",
        ),
    ],
)
def test_errors_name_operator_field_value_and_need(given, text):
    with pytest.raises(ParamError, match=text):
        PoolParam(operator="Op", **given)


def test_errors_are_value_errors_and_name_the_struct_by_default():
    with pytest.raises(ValueError, match=r"^PoolParam: parameter pooled_size is required"):
        PoolParam()


def test_alias():
    assert PoolParam(**GOOD, sample_ratio=3).ratio == 3


def test_immutable():
    param = PoolParam(**GOOD)
    with pytest.raises(AttributeError, match=r"PoolParam is immutable; use replace\(mode=...\)"):
        param.mode = "max"
    changed = param.replace(mode="max")
    assert (changed.mode, param.mode) == ("max", "avg")
    with pytest.raises(ParamError, match="mode must be"):
        param.replace(mode="min")


def test_unknown_attribute():
    with pytest.raises(AttributeError, match="PoolParam has no parameter 'foo'"):
        _ = PoolParam(**GOOD).foo


def test_equality_and_hash():
    one, same, other = PoolParam(**GOOD), PoolParam(**GOOD), PoolParam(**GOOD, mode="max")
    assert one == same
    assert hash(one) == hash(same)
    assert one != other
    assert len({one, same, other}) == 2

    class Subclass(PoolParam):
        pass

    assert Subclass(**GOOD) != one


def test_printing():
    assert (
        repr(PoolParam(**GOOD))
        == "PoolParam(pooled_size=(7, 7), spatial_scale=0.0625, mode='avg', ratio=None)"
    )
    assert {"mode", "replace"} <= set(dir(PoolParam(**GOOD)))


def test_copies_and_pickles():
    param = PoolParam(**GOOD)
    assert copy.copy(param) == copy.deepcopy(param) == pickle.loads(pickle.dumps(param)) == param


def test_inheritance_adds_and_overrides_fields():
    class More(PoolParam):
        mode = Field(enum("sum"), "sum", doc="another")
        extra = Field(int, 1, doc="one more")

    assert list(More.fields) == ["pooled_size", "spatial_scale", "mode", "ratio", "extra"]
    assert More(**GOOD).mode == "sum"
    assert PoolParam(**GOOD).mode == "avg"


def test_hooks():
    class Hooked(Parameter):
        low = Field(float, 0.0, doc="lower bound")
        high = Field(float, 1.0, doc="upper bound")

        @classmethod
        def translate(cls, given, operator):
            if "bounds" in given:
                low, high = given.pop("bounds")
                given |= {"low": low, "high": high}
            return given

        def validate(self, operator):
            if self.low > self.high:
                raise ParamError(f"{operator}: low must not exceed high, got {self.low} and {self.high}")

    assert Hooked(bounds=(2, 3)).to_dict() == {"low": 2.0, "high": 3.0}
    with pytest.raises(ParamError, match=r"Op: low must not exceed high, got 2\.0 and 1\.0"):
        Hooked(operator="Op", low=2)


# -- all operators ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", registry.list_operators())
def test_parameters_of_operator_are_documented_and_round_trip(name):
    struct = registry.get(name).param
    for field in struct.fields.values():
        assert field.doc, f"{name}: {field.name} has no doc"
        if not field.required:
            again = field.kind.parse(field.format(field.default))
            assert again == field.default or np.isnan(again), f"{name}: {field.name}"
