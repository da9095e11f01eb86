"""The exception family, and the suggestion of near names."""

import pytest

import roiops as mx
from roiops import errors


@pytest.mark.parametrize(
    ("name", "builtin"),
    [
        ("ParamError", ValueError),
        ("ShapeError", ValueError),
        ("DTypeError", TypeError),
        ("DataError", ValueError),
        ("DeviceError", RuntimeError),
        ("RegistryError", AttributeError),
        ("GraphError", ValueError),
        ("FormatError", ValueError),
    ],
)
def test_every_error_is_an_mxnet_error_and_the_built_in_one_expects(name, builtin):
    error = getattr(errors, name)
    assert issubclass(error, errors.MXNetError)
    assert issubclass(error, builtin)
    assert issubclass(error, RuntimeError)
    assert error.__doc__


def test_mxnet_error_is_where_scripts_look_for_it():
    assert mx.MXNetError is mx.base.MXNetError is errors.MXNetError


def test_all_is_complete():
    classes = {
        name
        for name, value in vars(errors).items()
        if isinstance(value, type) and issubclass(value, Exception)
    }
    assert set(errors.__all__) == classes | {"nearest", "without"}


@pytest.mark.parametrize(
    ("name", "known", "text"),
    [
        ("spatial_scal", ["spatial_scale", "size"], "; did you mean 'spatial_scale'?"),
        ("relu", ["Relu", "sum"], "; did you mean 'Relu'?"),
        ("roialign", ["ROIAlign", "x"], "; did you mean 'ROIAlign'?"),
        ("roialine", ["_npx_roi_align", "ROIAlign"], "; did you mean 'ROIAlign'?"),
        ("_npx_roialign", ["_npx_roi_align", "x"], "; did you mean '_npx_roi_align'?"),
        ("slice_assign", ["shape_array", "box_decode"], ""),
        ("qqq", ["a", "b"], ""),
        ("x", [], ""),
    ],
)
def test_nearest(name, known, text):
    assert errors.nearest(name, known) == text


def test_nearest_offers_at_most_three():
    assert errors.nearest("data", ["data1", "data2", "data3", "data4"]).count("'data") == 3
