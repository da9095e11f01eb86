"""What newcomers get wrong first, and what they are told: the operator, the argument, what came, what is needed."""

import re

import numpy as np
import pytest

import roiops as mx

SIZE = {"pooled_size": (2, 2), "spatial_scale": 1}
DATA, ROIS = np.zeros((1, 3, 8, 8), np.float32), np.zeros((2, 5), np.float32)


def net():
    return mx.sym.ROIPooling(mx.sym.Variable("data"), mx.sym.Variable("rois"), name="pool", **SIZE)


MISTAKES = {
    "an image without its batch axis": (
        lambda: mx.nd.ROIPooling(DATA[0], ROIS, **SIZE),
        "ROIPooling: data must have 4 dimensions, got shape (3, 8, 8)",
    ),
    "boxes without the image index": (
        lambda: mx.nd.ROIPooling(DATA, ROIS[:, 1:], **SIZE),
        "ROIPooling: rois must have shape (num_rois, 5), got (2, 4)",
    ),
    "boxes without the image index, in a graph": (
        lambda: net().infer_shape(data=DATA.shape, rois=(2, 4)),
        "ROIPooling(pool): rois must have shape (num_rois, 5), got (2, 4)",
    ),
    "the index of an image that is not there": (
        lambda: mx.nd.ROIPooling(DATA, ROIS + 1, **SIZE),
        "ROIPooling: rois row 0 has batch index 1.0, but data has 1 image;",
    ),
    "a misspelt parameter": (
        lambda: mx.nd.ROIPooling(DATA, ROIS, pooled_sizes=(2, 2), spatial_scale=1),
        "ROIPooling: unknown parameter 'pooled_sizes'; did you mean 'pooled_size'?",
    ),
    "a parameter left out": (
        lambda: mx.nd.ROIPooling(DATA, ROIS, spatial_scale=1),
        "ROIPooling: parameter pooled_size is required: int or tuple of 2 ints, 1 or more",
    ),
    "the stride as the scale": (
        lambda: mx.nd.ROIPooling(DATA, ROIS, pooled_size=(2, 2), spatial_scale=16),
        "ROIPooling: spatial_scale must be float in [0, 1] under dialect 'mxnet', got 16",
    ),
    "an image of bytes": (
        lambda: mx.nd.ROIPooling(DATA.astype(np.uint8), ROIS, **SIZE),
        "ROIPooling: data must be float16, float32 or float64, got uint8",
    ),
    "an input left out": (
        lambda: mx.nd.ROIPooling(DATA, **SIZE),
        "ROIPooling: the inputs with these parameters are data, rois; rois missing",
    ),
    "a list in place of an array": (
        lambda: mx.nd.ROIPooling(DATA, ROIS.tolist(), **SIZE),
        "ROIPooling: rois must be an NDArray or a NumPy array, got list; it is one array of rows [image index, "
        "x1, y1, x2, y2], which np.array(rois) makes of a list of such rows; the boxes of each image in a list "
        "become one by np.concatenate(",
    ),
    "torchvision's list of boxes": (
        lambda: mx.nd.ROIAlign(DATA, [ROIS[:, 1:], ROIS[:, 1:]], 7, 1.0),
        "ROIAlign: rois must be an NDArray or a NumPy array, got list; it is one array of rows [image index,",
    ),
    "a list of boxes in a graph": (
        lambda: mx.sym.ROIAlign(mx.sym.Variable("data"), ROIS.tolist(), pooled_size=7, spatial_scale=1.0),
        "ROIAlign: rois must be a Symbol, got list; it is one array of rows [image index, x1,",
    ),
    "a list in place of an array, by name": (
        lambda: mx.nd.ROIPooling(DATA, rois=ROIS.tolist(), **SIZE),
        "ROIPooling: rois must be an NDArray or a NumPy array, got list",
    ),
    "a library whose numbers another dialect gives": (
        lambda: mx.nd.ROIAlign(DATA, ROIS, 7, 1.0, dialect="torchvision"),
        "got 'torchvision'; torchvision roi_align is ROIAlign(..., aligned=False or True, dialect='mmcv', mode='avg')",
    ),
    "a library whose numbers another operator gives": (
        lambda: mx.nd.ROIAlign(DATA, ROIS, 7, 1.0, dialect="tensorflow"),
        "got 'tensorflow'; TensorFlow crop_and_resize is CropAndResize(..., mode='bilinear' or 'nearest')",
    ),
    "an array in place of a symbol": (
        lambda: mx.sym.ROIPooling(DATA, ROIS, **SIZE),
        "ROIPooling: data must be a Symbol, got ndarray",
    ),
    "a symbol in place of an array": (
        lambda: mx.nd.ROIPooling(mx.sym.Variable("data"), ROIS, **SIZE),
        "ROIPooling: data must be an NDArray or a NumPy array, got Symbol",
    ),
    "an operator under another's name": (
        lambda: mx.nd.RoiAlign(DATA, ROIS, **SIZE),
        "operator 'RoiAlign' is not registered; did you mean 'ROIAlign'",
    ),
    "a bind without all arrays": (
        lambda: net().bind(mx.cpu(), {"data": mx.nd.array(DATA)}),
        "bind: args lacks rois",
    ),
    "a simple_bind without all shapes": (
        lambda: net().simple_bind(mx.cpu(), data=DATA.shape),
        "simple_bind: give the shapes of these too, or more of the others: rois: (?, 5)",
    ),
    "a forward that was never bound": (
        lambda: net().forward(),
        "Symbol has no attribute 'forward': it holds no values; simple_bind, bind or eval give what does",
    ),
    "a forward of another size": (
        lambda: net().simple_bind(mx.cpu(), data=DATA.shape, rois=(2, 5)).forward(rois=ROIS[:1]),
        "forward: rois must have shape (2, 5), got (1, 5); use reshape() for inputs of another size",
    ),
    "a backward without gradients": (
        lambda: net().simple_bind(mx.cpu(), data=DATA.shape, rois=(2, 5)).backward(),
        "backward: output pool_output is not a loss, so its gradient must be given in out_grads",
    ),
    "a device of another library": (
        lambda: mx.nd.zeros((2,), ctx=mx.Context("cuda")),
        "Context: device_type must be one of ['cpu', 'cpu_pinned', 'cpu_shared', 'gpu'], got 'cuda'",
    ),
    "a misspelt method": (
        lambda: net().list_argument(),
        "no attribute 'list_argument'; did you mean 'list_arguments'",
    ),
    "a misspelt method of an array": (lambda: mx.nd.zeros((2,)).asnumppy(), "; did you mean 'asnumpy'"),
    "a symbol and an array": (
        lambda: net() * DATA,
        "a Symbol goes with a Symbol or a number, got ndarray; an array is given to a Variable when the graph is",
    ),
    "an array and a symbol": (lambda: DATA + net(), "a Symbol goes with a Symbol or a number, got ndarray"),
    "a function of a symbol and an array": (
        lambda: mx.sym.maximum(net(), DATA),
        "a Symbol goes with a Symbol or a number, got ndarray",
    ),
    "one number for a kernel of two axes": (
        lambda: mx.nd.Convolution(
            DATA, np.zeros((2, 3, 3, 3), np.float32), kernel=3, num_filter=2, no_bias=True
        ),
        "Convolution: data must have 3 dimensions for kernel (3,), got shape (1, 3, 8, 8)",
    ),
    "one number for a window of two axes": (
        lambda: mx.nd.Pooling(DATA, kernel=2, pool_type="max"),
        "Pooling: data must have 3 dimensions for kernel (2,), got shape (1, 3, 8, 8)",
    ),
    "a shape that is a number": (
        lambda: net().infer_shape(data=8),
        "infer_shape: data must be a tuple of whole numbers, got 8",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_the_message_says_what_to_do(mistake):
    make, text = MISTAKES[mistake]
    with pytest.raises((mx.MXNetError, TypeError, AttributeError), match=re.escape(text)):
        make()


def test_the_advice_for_a_list_of_boxes_is_right():
    rois = [np.array([[1.0, 2, 3, 4]]), np.array([[5.0, 6, 7, 8], [9, 10, 11, 12]])]
    joined = np.concatenate([np.insert(boxes, 0, i, axis=1) for i, boxes in enumerate(rois)])
    assert joined.tolist() == [[0, 1, 2, 3, 4], [1, 5, 6, 7, 8], [1, 9, 10, 11, 12]]


@pytest.mark.parametrize("name", ["ROIPooling", "ROIAlign", "_contrib_ROIAlign", "_contrib_RROIAlign"])
def test_one_number_is_a_size(name):
    rois = np.array([[0, 4, 4, 3, 3, 10]], np.float32)[:, : 6 if "RROI" in name else 5]
    call = (
        getattr(mx.nd.contrib, name.removeprefix("_contrib_")) if "contrib" in name else getattr(mx.nd, name)
    )
    one, two = (call(DATA, rois, pooled_size=size, spatial_scale=1.0) for size in (2, (2, 2)))
    assert one.shape == two.shape == (1, 3, 2, 2)
    net = getattr(mx.sym.contrib if "contrib" in name else mx.sym, name.removeprefix("_contrib_"))
    saved = net(mx.sym.Variable("data"), mx.sym.Variable("rois"), pooled_size=2, spatial_scale=1.0).tojson()
    assert '"pooled_size": "(2, 2)"' in saved, "as MXNet reads it"


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("profiler", "times the operators of a model"),
        ("symbl", "did you mean 'Symbol' or 'symbol'"),
        (
            "io.LibSVMIter",
            "io.LibSVMIter is not here: .* mx.image.ImageIter, .* mx.io.NDArrayIter; or write a subclass",
        ),
    ],
)
def test_what_is_not_there_says_what_to_do_instead(name, advice):
    owner = mx.io if name.startswith("io.") else mx
    with pytest.raises(
        AttributeError, match=re.escape(advice).replace(r"\.\*", ".*").replace("in\\ place", "[Ii]n place")
    ):
        getattr(owner, name.removeprefix("io."))


def test_a_library_that_is_no_dialect_says_which_call_gives_its_numbers():
    with pytest.raises(
        mx.MXNetError,
        match=r"got 'torchvision'; torchvision roi_align.* is ROIAlign\(\.\.\., .*dialect='mmcv'",
    ):
        mx.nd.ROIAlign(DATA, ROIS, dialect="torchvision", **SIZE)
