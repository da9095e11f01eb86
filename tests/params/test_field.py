"""Each kind of parameter: what it takes, in Python and in strings of every MXNet era, and what it refuses."""

import re

import numpy as np
import pytest

from roiops.errors import ParamError
from roiops.params import REQUIRED, Field, Parameter, dtype, enum, floats, optional, shape

RATIO = enum("a", "b", codes={"0": "a", 1: "b"})

ACCEPTED = [
    # ints
    (int, 3, 3),
    (int, "3", 3),
    (int, " -3 ", -3),
    (int, "3L", 3),
    (int, True, 1),
    (int, "True", 1),
    (int, "False", 0),
    (int, np.int16(5), 5),
    (int, 4.0, 4),
    (int, np.float32(4), 4),
    # floats
    (float, 0.5, 0.5),
    (float, 1, 1.0),
    (float, "1e-05", 1e-5),
    (float, "0.0625", 0.0625),
    (float, "0.5f", 0.5),
    (float, "inf", np.inf),
    (float, "-inf", -np.inf),
    (float, np.float64(0.1), 0.1),
    # bools
    (bool, True, True),
    (bool, "True", True),
    (bool, "true", True),
    (bool, "1", True),
    (bool, "0", False),
    (bool, "False", False),
    (bool, 0, False),
    (bool, np.True_, True),
    # words
    (str, "avg", "avg"),
    (RATIO, "a", "a"),
    (RATIO, "0", "a"),
    (RATIO, 1, "b"),
    # tuples
    (shape(), (7, 7), (7, 7)),
    (shape(), [7, 7], (7, 7)),
    (shape(), "(7, 7)", (7, 7)),
    (shape(), "[7,7]", (7, 7)),
    (shape(), "(7L, 7L)", (7, 7)),
    (shape(), "(7,)", (7,)),
    (shape(), "( 7 , 7 )", (7, 7)),
    (shape(), "()", ()),
    (shape(), "[]", ()),
    (shape(), "(0, -1, -2)", (0, -1, -2)),
    (shape(), 7, (7,)),
    (shape(), "7", (7,)),
    (shape(), np.array([1, 2]), (1, 2)),
    (shape(), (np.int64(1), 2.0), (1, 2)),
    (shape(2), (1, 2), (1, 2)),
    (shape(2, repeat=True), 3, (3, 3)),
    (shape(2, repeat=True), "3", (3, 3)),
    (shape((1, 2)), (3,), (3,)),
    (shape(none_items=True), (None, 2), (None, 2)),
    (shape(none_items=True), "(None, 2, None)", (None, 2, None)),
    (floats(), (0.5, 1), (0.5, 1.0)),
    (floats(), "(0.5, 1, 2)", (0.5, 1.0, 2.0)),
    (floats(), "[0.1,0.1]", (0.1, 0.1)),
    (floats(), 8, (8.0,)),
    (floats(4), "(0.1, 0.1, 0.2, 0.2)", (0.1, 0.1, 0.2, 0.2)),
    # dtypes
    (dtype, "float32", np.dtype("float32")),
    (dtype, np.float16, np.dtype("float16")),
    (dtype, np.dtype("int64"), np.dtype("int64")),
    (dtype, "0", np.dtype("float32")),
    (dtype, "4", np.dtype("int32")),
    (dtype, "5", np.dtype("int8")),
    (dtype, np.dtype(">f4"), np.dtype("float32")),
    (dtype, "bool", np.dtype("bool")),
    (dtype, "double", np.dtype("float64")),  # MXNet's functions take NumPy's other names, too
    (dtype, ">f4", np.dtype("float32")),
    # optional
    (optional(int), None, None),
    (optional(int), "None", None),
    (optional(int), "3", 3),
    (optional(shape()), "None", None),
    (optional(shape()), "(1,)", (1,)),
    (optional(dtype), None, None),
]

REFUSED = [
    (int, "x", "int"),
    (int, "3.5", "int"),
    (int, 3.5, "int"),
    (int, None, "int"),
    (int, np.nan, "int"),
    (int, np.inf, "int"),
    (int, "", "int"),
    (int, (1,), "int"),
    (float, "x", "float"),
    (float, None, "float"),
    (float, 1j, "float"),
    (float, [1.0], "float"),
    (bool, "yes", "bool"),
    (bool, 2, "bool"),
    (bool, 0.5, "bool"),
    (bool, None, "bool"),
    (str, 3, "str"),
    (str, None, "str"),
    (RATIO, "c", "{'a', 'b'}"),
    (RATIO, None, "{'a', 'b'}"),
    (RATIO, ["a"], "{'a', 'b'}"),
    (shape(), None, "tuple of int"),
    (shape(), "(1, x)", "tuple of int"),
    (shape(), "", "tuple of int"),
    (shape(), "(1, 2", "tuple of int"),
    (shape(), (1.5,), "tuple of int"),
    (shape(), "None", "tuple of int"),
    (shape(2), (1, 2, 3), "tuple of 2 ints"),
    (shape(2), 3, "tuple of 2 ints"),
    (shape((2, 4)), (1,), "tuple of 2 or 4 ints"),
    (floats(4), (1, 2), "tuple of 4 floats"),
    (floats(), "(a,)", "tuple of float"),
    (dtype, "float8", "dtype"),
    (dtype, "complex64", "dtype"),
    (dtype, "99", "dtype"),
    (dtype, "float33", "dtype"),
    (dtype, "f4,f4", "dtype"),
    (dtype, "i4,(2", "dtype"),
    (dtype, None, "dtype"),
    (optional(int), "x", "int or None"),
]


@pytest.mark.parametrize(("kind", "value", "expected"), ACCEPTED)
def test_accepted(kind, value, expected):
    parsed = Field(kind).parse(value)
    assert parsed == expected
    assert type(parsed) is type(expected)
    if isinstance(expected, tuple):
        assert [type(item) for item in parsed] == [type(item) for item in expected]


def refuse(field, value, need):
    """Check that a struct with this field refuses a value and says what is needed."""
    struct = type("OpParam", (Parameter,), {"size": field})
    names = "; it is one of float32, float64, float16, uint8, int32, int8, int64, bool, int16, uint16, uint32, uint64"
    more = names if need == "dtype" else ""
    with pytest.raises(ParamError, match=re.escape(f"Op: size must be {need}, got {value!r}{more}") + "$"):
        struct(operator="Op", size=value)


@pytest.mark.parametrize(("kind", "value", "need"), REFUSED)
def test_refused(kind, value, need):
    refuse(Field(kind), value, need)


@pytest.mark.parametrize(("kind", "value", "expected"), ACCEPTED)
def test_strings_come_back_as_the_same_value(kind, value, expected):
    field = Field(kind)
    assert field.parse(field.format(field.parse(value))) == expected


@pytest.mark.parametrize(
    ("kind", "value", "text"),
    [
        (int, 3, "3"),
        (float, 0.0625, "0.0625"),
        (float, 1e-5, "1e-05"),
        (bool, True, "True"),
        (str, "avg", "avg"),
        (shape(), (7, 7), "(7, 7)"),
        (shape(), (7,), "(7,)"),
        (shape(), (), "()"),
        (shape(none_items=True), (None, 1), "(None, 1)"),
        (floats(), (0.5, 1), "(0.5, 1.0)"),
        (dtype, np.float32, "float32"),
        (optional(int), None, "None"),
        (optional(shape()), (1, 2), "(1, 2)"),
    ],
)
def test_strings_are_mxnets(kind, value, text):
    field = Field(kind)
    assert field.format(field.parse(value)) == text


@pytest.mark.parametrize(
    ("options", "good", "bad", "need"),
    [
        ({"range": (0, 1)}, [0, 1, 0.5], [-0.1, 1.1, np.nan], "float in [0, 1]"),
        ({"range": (0, None)}, [0, 1e9], [-1e-9], "float, 0 or more"),
        ({"range": (None, 5)}, [-9, 5], [5.1], "float, at most 5"),
        ({"above": 0}, [1e-9], [0, -1], "float above 0"),
        ({"above": 0, "below": 1}, [0.5], [0, 1], "float above 0 below 1"),
        ({"nonzero": True}, [-1, 1], [0], "float, not 0"),
    ],
)
def test_bounds(options, good, bad, need):
    field = Field(float, **options)
    assert field.need == need
    for value in good:
        assert field.parse(value) == value
    for value in bad:
        refuse(field, value, need)


def test_bounds_hold_for_each_entry_of_a_tuple():
    field = Field(shape(2), range=(1, None))
    assert field.parse("(1, 2)") == (1, 2)
    refuse(field, (1, 0), "tuple of 2 ints, 1 or more")
    assert Field(shape(none_items=True), range=(0, None)).parse((None, 1)) == (None, 1)


def test_defaults_are_parsed_and_required_fields_have_none():
    assert Field(shape(2), "(3, 3)").default == (3, 3)
    assert Field(dtype, "float32").default == np.dtype("float32")
    assert Field(int).required
    assert Field(int).default is REQUIRED
    assert repr(REQUIRED) == "required"
    assert not Field(optional(int), None).required
    assert Field(int, "x").fault == "the default must be int, got 'x'"
