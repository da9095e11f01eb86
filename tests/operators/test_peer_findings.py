"""What random comparison with MXNet 1.9.1 found, one small case each. Expected values are MXNet's, or follow by hand."""

import numpy as np
import pytest

import roiops as mx


def test_a_rotated_box_turns_by_the_angle_that_mxnet_rounds():
    """float32 radians, with cosine and sine in double precision: a last bit moves far corners visibly."""
    data = mx.nd.array((np.arange(60 * 60) * 37 % 101 - 50).reshape(1, 1, 60, 60))
    angles = 133.8559, 348.78333, -276.85007, 20.1
    rois = mx.nd.array([[0, 31.7, 28.3, 55.1, 47.3, angle] for angle in angles])
    out = mx.nd.contrib.RROIAlign(data, rois, pooled_size=(2, 2), spatial_scale=1.0, sampling_ratio=1)
    expected = [
        [-14.748931884765625, -2.8392672538757324, 14.439326286315918, -14.05116081237793],
        [-26.97498321533203, 1.4665307998657227, -30.266624450683594, 38.574974060058594],
        [9.615004539489746, 15.862274169921875, -4.262210845947266, -29.975828170776367],
        [-24.67123031616211, 12.250526428222656, -0.6504709720611572, -4.1288604736328125],
    ]
    np.testing.assert_allclose(out.asnumpy().reshape(4, 4), expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize(("pad", "stride"), [(1, 1), (1, 3)])
def test_convolution_of_a_flat_volume_with_padded_depth(pad, stride):
    """Data and kernel of depth 1 are no plane where the depth is padded: the padding has outputs of its own."""
    rng = np.random.default_rng(0)
    data, weight = rng.normal(size=(1, 2, 1, 4, 5)), rng.normal(size=(3, 2, 1, 3, 2))
    data, weight = data.astype(np.float32), weight.astype(np.float32)
    params = {"num_filter": 3, "no_bias": True}
    out = mx.nd.Convolution(
        mx.nd.array(data),
        mx.nd.array(weight),
        kernel=(1, 3, 2),
        pad=(pad, 1, 0),
        stride=(stride, 1, 1),
        **params,
    ).asnumpy()
    plane = mx.nd.Convolution(
        mx.nd.array(data[:, :, 0]), mx.nd.array(weight[:, :, 0]), kernel=(3, 2), pad=(1, 0), **params
    ).asnumpy()
    expected = np.zeros((1, 3, 3, 4, 4), np.float32)
    expected[:, :, 1] = plane
    np.testing.assert_allclose(out, expected[:, :, ::stride], rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("count_include_pad", [True, False])
def test_a_mean_over_a_window_past_the_image_is_zero(count_include_pad):
    data = mx.nd.array(np.ones((1, 1, 6, 5)))
    out = mx.nd.Pooling(
        data, kernel=(1, 3), stride=(2, 3), pool_type="avg", pooling_convention="full",
        count_include_pad=count_include_pad,
    )  # fmt: skip
    assert out.asnumpy()[0, 0].tolist() == [[1, 1], [1, 1], [1, 1], [0, 0]]


def test_global_pooling_takes_stride_and_pad_without_a_kernel():
    data = mx.nd.array([[[1, 5, 3]]])
    assert mx.nd.Pooling(data, global_pool=True, stride=(2,), pad=(1,)).asnumpy().tolist() == [[[5]]]


def test_scalars_among_unsigned_integers_are_cast_as_in_c():
    data = mx.nd.array([0, 1, 255], dtype="uint8")
    assert (data + -1).asnumpy().tolist() == [255, 0, 254]
    assert (data > -3).asnumpy().tolist() == [0, 0, 1]  # -3 is 253
    assert (data + 300).asnumpy().tolist() == [44, 45, 43]


def test_constant_symbols():
    assert mx.sym.eye(2, 3, k=1, dtype="int32").eval()[0].asnumpy().tolist() == [[0, 1, 0], [0, 0, 1]]
    assert mx.sym.linspace(0, 1, 5).eval()[0].asnumpy().tolist() == [0, 0.25, 0.5, 0.75, 1]
    assert mx.sym.linspace(0, 1, 4, endpoint=False).eval()[0].asnumpy().tolist() == [0, 0.25, 0.5, 0.75]


@pytest.mark.parametrize(("begin", "end", "step"), [(-4, 0, -1), (-9, None, -2), (5, 9, 1), (0, 2, -1)])
def test_slices_that_select_nothing(begin, end, step):
    """Before the first entry going down, Python counts from -1, which as an index is the last."""
    data = mx.sym.slice(mx.sym.var("data"), begin=(begin,), end=(end,), step=(step,))
    executor = data.bind(mx.cpu(), {"data": mx.nd.ones((3,))}, {"data": mx.nd.ones((3,))})
    assert executor.forward(is_train=True)[0].shape == (0,)
    executor.backward([mx.nd.empty((0,))])
    assert executor.grad_dict["data"].asnumpy().tolist() == [0, 0, 0]


def test_one_hot_of_unsigned_integers_casts_as_in_c():
    rows = mx.nd.one_hot(mx.nd.array([1]), depth=3, off_value=-1, dtype="uint8")
    assert rows.asnumpy().tolist() == [[255, 1, 255]]


def test_absolute_error_of_equal_entries_pulls_as_mxnet_pulls():
    loss = mx.sym.MAERegressionOutput(mx.sym.var("data"), mx.sym.var("label"))
    arrays = {"data": mx.nd.array([[1, 2, 3]]), "label": mx.nd.array([[2, 2, 2]])}
    executor = loss.bind(mx.cpu(), arrays, {"data": mx.nd.zeros((1, 3))}, {"data": "write", "label": "null"})
    executor.forward(is_train=True)
    executor.backward()
    np.testing.assert_allclose(executor.grad_dict["data"].asnumpy(), np.array([[-1, -1, 1]]) / 3, rtol=1e-6)


def test_the_sign_of_nan_is_zero():
    x = np.array([np.nan, -0.0, 0, -3, np.inf], np.float32)
    np.testing.assert_array_equal(mx.nd.sign(x), [0, 0, 0, -1, 1])
    np.testing.assert_array_equal(mx.nd.contrib.sign_ste(x), [0, 0, 0, -1, 1])
    np.testing.assert_array_equal(mx.nd.sign(np.array([0, 3], np.uint8)), [0, 1])


def test_the_names_of_a_recurrent_layers_states():
    inputs = (mx.sym.Variable(name) for name in ("x", "w", "s", "c"))
    made = mx.sym.RNN(*inputs, state_size=2, num_layers=1, mode="lstm", state_outputs=True, name="rnn")
    assert made.list_outputs() == ["rnn_output", "rnn_state_output", "rnn_statecell_output"]


def gradient_of(operator, *arrays, head=None, request="write", **params):
    """The gradient of the first array; 2 is what it is added to."""
    held = [mx.nd.array(array, dtype=array.dtype) for array in arrays]
    grads = [mx.nd.array(np.full_like(array, 2), dtype=array.dtype) for array in arrays]
    symbol = operator(*map(mx.sym.Variable, "abc"[: len(arrays)]), **params)
    executor = symbol.bind(mx.cpu(), held, args_grad=grads, grad_req=request)
    out = executor.forward(is_train=True)[0]
    head = np.ones(out.shape) if head is None else np.array(head)
    executor.backward([mx.nd.array(head, dtype=out.dtype)])
    return grads[0].asnumpy()


def test_numbers_that_unsigned_integers_do_not_hold_are_cast_as_in_c():
    data = np.array([[1, 2], [3, 4]], np.uint8)
    assert gradient_of(mx.sym.negative, data, head=[[1, 0], [2, 3]]).tolist() == [[255, 0], [254, 253]]
    array = mx.nd.array(data, dtype="uint8")
    assigned = mx.nd._slice_assign_scalar(array, begin=(0,), end=(1,), scalar=300)
    assert assigned.asnumpy().tolist() == [[44, 44], [3, 4]]
    masked = mx.nd.SequenceMask(array, mx.nd.array([1, 2]), use_sequence_length=True, value=-1.5)
    assert masked.asnumpy().tolist() == [[1, 2], [255, 4]]


@pytest.mark.parametrize("request_", ["write", "add"])
def test_a_remainder_of_whole_numbers_has_no_gradient(request_):
    data, other = np.array([7, -7, 5], np.int32), np.array([3, 3, 2], np.int32)
    kept = [2 * (request_ == "add")] * 3
    for scalar in (mx.sym._mod_scalar, mx.sym._rmod_scalar):
        assert gradient_of(scalar, data, request=request_, scalar=300).tolist() == kept
    assert gradient_of(mx.sym._mod, data, other, request=request_).tolist() == kept
    assert gradient_of(mx.sym.broadcast_mod, data, other[:1], request=request_).tolist() == kept


def test_whole_numbers_at_equal_distances_have_a_whole_start_and_step():
    like = mx.nd.array([0, 0, 0, 0], dtype="int32")
    assert mx.nd.contrib.arange_like(like, start=1.5, step=0.5).asnumpy().tolist() == [1, 1, 1, 1]
    assert mx.nd.contrib.arange_like(like, start=1.5, step=-2, repeat=2).asnumpy().tolist() == [1, 1, -1, -1]


def test_the_divisor_of_attention_is_divided_by():
    """A product with its inverse, rounded before, differs in the last bit, and of whole numbers gives 0."""
    whole = mx.nd.array([[7, -7, 5, 9]], dtype="int32")
    assert mx.nd.contrib.div_sqrt_dim(whole).asnumpy().tolist() == [[3, -3, 2, 4]]
    data = np.random.RandomState(0).randn(5, 7).astype("f4")
    divided = mx.nd.contrib.div_sqrt_dim(mx.nd.array(data)).asnumpy()
    assert divided.tobytes() == (data / np.float32(np.sqrt(7))).tobytes()


def test_a_gradient_is_cut_off_before_it_is_added_to_whole_numbers():
    data = np.array([1, 2, 3], np.int64)
    head = [-1.5, -0.5, 2.5]
    assert gradient_of(mx.sym.Cast, data, head=head, request="add", dtype="float32").tolist() == [1, 2, 4]


def test_gradients_at_the_poles_of_gamma_are_infinite():
    poles = np.array([0.0, -1.0, -7.0])
    assert gradient_of(mx.sym.gammaln, poles, head=[1, -1, 2]).tolist() == [np.inf, -np.inf, np.inf]
    assert gradient_of(mx.sym.gamma, poles[:1]).tolist() == [np.inf]


def test_the_gradient_of_softsign_keeps_its_digits_far_from_zero():
    far = np.array([1e4, -1e5, np.inf], np.float32)
    got = gradient_of(mx.sym.Activation, far, act_type="softsign")
    np.testing.assert_allclose(got, 1 / (1 + np.abs(far.astype("f8"))) ** 2, rtol=3e-7)


def test_mixed_precision_leaves_what_is_neither_float16_nor_float32():
    whole, double = mx.nd.array([1, 300], dtype="int32"), mx.nd.array([1, 1e-300], dtype="float64")
    assert mx.nd.amp_cast(whole, dtype="float16").dtype == np.int32
    assert mx.nd.amp_cast(double, dtype="float16").dtype == np.float64
    half, single = mx.nd.array([0.5], dtype="float16"), mx.nd.array([0.5])
    for narrow, expected in ((False, np.float32), (True, np.float16)):
        outs = mx.nd.amp_multicast(half, whole, single, double, num_outputs=4, cast_narrow=narrow)
        assert [out.dtype for out in outs] == [expected, np.int32, expected, np.float64]
    outs = mx.nd.amp_multicast(half, whole, num_outputs=2)
    assert [out.asnumpy().tolist() for out in outs] == [[0.5], [1, 300]]


def test_a_multiplied_gradient_of_unsigned_integers_is_cast_as_in_c():
    data = np.array([1, 2], np.uint8)
    operator = mx.sym.contrib.gradientmultiplier
    assert gradient_of(operator, data, head=[1, 3], scalar=-2).tolist() == [254, 250]


@pytest.mark.parametrize("ends_with", ["BlockGrad", "argmax", "sign"])
def test_moving_statistics_are_updated_where_no_gradient_comes(ends_with):
    """MXNet calls backward of all operators, here with zeros."""
    data = np.arange(8, dtype=np.float32).reshape(4, 2)
    x, mean = mx.nd.array(data), mx.nd.zeros(2)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.BatchNorm(x, mx.nd.ones(2), mx.nd.zeros(2), mean, mx.nd.ones(2), momentum=0.5)
        y = getattr(mx.nd, ends_with)(y)
    y.backward()
    assert mean.asnumpy().tolist() == [1.5, 2]
    assert not x.grad.asnumpy().any()
    net = getattr(mx.sym, ends_with)(mx.sym.BatchNorm(mx.sym.Variable("data"), momentum=0.5, name="bn"))
    executor = net.simple_bind(mx.cpu(), data=data.shape)
    executor.forward(is_train=True, data=data)
    executor.backward()
    assert executor.aux_dict["bn_moving_mean"].asnumpy().tolist() == [1.5, 2]


def test_backward_of_the_users_own_is_called_where_no_gradient_comes():
    class Three(mx.autograd.Function):
        def forward(self, x):
            return x * 1

        def backward(self, dy):
            return mx.nd.ones(dy.shape) * (3 + dy)

    x = mx.nd.ones(2)
    x.attach_grad()
    with mx.autograd.record():
        y = mx.nd.BlockGrad(Three()(x))
    y.backward()
    assert x.grad.asnumpy().tolist() == [3, 3]


def test_limits_that_cross():
    """MXNet looks at the upper limit first."""
    x = mx.nd.array([3, 1, 2, 0.3, -5, 1.7])
    assert mx.nd.clip(x, 2, 1).asnumpy().tolist() == [1, 2, 1, 2, 2, 1]


def test_parameters_as_scripts_write_them():
    x = mx.nd.array([3, 1, 2])
    assert mx.nd.topk(x, k=-1).asnumpy().tolist() == [0, 2, 1]
    assert mx.nd.slice(x, begin=(1,), end=(3,), step=None).asnumpy().tolist() == [1, 2]
    assert mx.nd.Dropout(x, p=0.5, axes=None).shape == (3,)
    pooled = mx.nd.contrib.AdaptiveAvgPooling2D(mx.nd.ones((1, 1, 4, 4)), output_size=None)
    assert pooled.shape == (1, 1, 1, 1)
    assert mx.nd.Cast(x, dtype="double").dtype == np.float64
    assert mx.sym.Cast(mx.sym.Variable("x"), dtype="f4").attr("dtype") == "float32"


@pytest.mark.parametrize(("index", "found"), [((0,), (5,)), ((0, 0), (1, 5)), ((1, 0), (1, 5))])
def test_the_rest_of_an_index_shape_follows(index, found):
    graph = mx.sym.pick(mx.sym.Variable("data"), mx.sym.Variable("index"), axis=0)
    shapes, outputs, _ = graph.infer_shape(data=(4, 5), index=index)
    assert shapes == [(4, 5), found]
    assert outputs == [(5,)]


def test_softmax_over_channels_comes_before_that_over_the_last_axis():
    x = mx.nd.array(np.random.default_rng(0).normal(size=(2, 3, 4)))
    label = mx.nd.array([[0, 1, 2, 1], [2, 2, 0, 1]])
    y = mx.nd.SoftmaxOutput(x, label, multi_output=True, preserve_shape=True).asnumpy()
    np.testing.assert_allclose(y.sum(axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(y, mx.nd.softmax(x, axis=1).asnumpy())


def test_whole_numbers_that_do_not_fit_wrap_around():
    x = mx.nd.zeros((2,), dtype="uint8")
    x[:] = -1
    assert x.asnumpy().tolist() == [255, 255]
    assert mx.nd.full((2,), 300, dtype="uint8").asnumpy().tolist() == [44, 44]
    assert mx.nd.array([-1, 300], dtype="uint8").asnumpy().tolist() == [255, 44]
