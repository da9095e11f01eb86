"""Times one peer's ROI operators, in the peer's own interpreter; ``roi.py`` starts it and asks.

    python benchmarks/roi_peer.py torchvision 1     # peer, threads

Reads a JSON line ``{"workload": ..., "operator": ...}`` to set up, ``"forward"`` or ``"backward"`` to run and
time that once, ``{"save": path}`` to store the output and gradients of the last; answers each with a line.
"""

import json
import os
import sys
import time
from pathlib import Path

PEER, THREADS = sys.argv[1], int(sys.argv[2])
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(THREADS)

import numpy as np  # noqa: E402  (the thread count must be known first)
from roi_workloads import WORKLOADS, head_of, operators  # noqa: E402

sys.path.append(str(Path(__file__).resolve().parent.parent / "verify"))


class Torchvision:
    def __init__(self, work, operator, inputs, head):
        import torch
        import torchvision.ops as ops

        torch.set_num_threads(THREADS)
        self.torch, self.head = torch, torch.from_numpy(head)
        rois = torch.from_numpy(inputs["rois"])
        self.maps = {
            name: torch.from_numpy(array).requires_grad_()
            for name, array in inputs.items()
            if name.startswith("data")
        }
        size, scale, ratio = work.pooled, work.scale, operator.sampling() or -1
        if operator.name == "MultiScaleROIAlign":
            # The scale of each map is found from its size and that of the image.
            pooler = ops.MultiScaleRoIAlign(list(self.maps), size, operator.sampling())
            image = [round(side / work.scale) for side in work.shape[2:]]
            boxes = [rois[:, 1:]]
        self.call = {
            "ROIPooling": lambda data: ops.roi_pool(data, rois, size, scale),
            "ROIAlign": lambda data: ops.roi_align(data, rois, size, scale, ratio),
            "PSROIPooling": lambda data: ops.ps_roi_pool(data, rois, size, scale),
            "PSROIAlign": lambda data: ops.ps_roi_align(data, rois, size, scale, ratio),
            "MultiScaleROIAlign": lambda **maps: pooler(maps, boxes, [image]),
        }[operator.name]
        self.recorded = self.call(**self.maps)
        self.out = self.grads = None

    def forward(self):
        with self.torch.no_grad():
            self.out = self.call(**self.maps)

    def backward(self):
        leaves = list(self.maps.values())
        self.grads = self.torch.autograd.grad(self.recorded, leaves, self.head, retain_graph=True)

    def results(self):
        grads = {name: grad.numpy() for name, grad in zip(self.maps, self.grads, strict=True)}
        return {"out": self.recorded.detach().numpy(), **grads}


class Mmcv:
    """mmcv's own CPU sources, compiled without the package; they use one thread."""

    def __init__(self, work, operator, inputs, head):
        import mmcv_source
        import torch

        torch.set_num_threads(THREADS)
        ext = mmcv_source.compiled()
        data, rois, self.head = (torch.from_numpy(array) for array in (inputs["data"], inputs["rois"], head))
        self.out, self.grad = torch.zeros(head.shape), torch.zeros(data.shape)
        numbers = (work.pooled, work.pooled, work.scale, operator.sampling())
        if operator.name == "ROIAlign":
            places = [torch.zeros(head.shape) for _ in range(2)]
            numbers = (*numbers, {"max": 0, "avg": 1}[operator.mode()], operator.params["aligned"])
            self.run_forward, run_backward = ext.roi_align_forward, ext.roi_align_backward
        else:
            places = []
            numbers = (*numbers, operator.params["aligned"], False)
            self.run_forward, run_backward = ext.roi_align_rotated_forward, ext.roi_align_rotated_backward
        self.forward = lambda: self.run_forward(data, rois, self.out, *places, *numbers)
        self.add_gradient = lambda: run_backward(self.head, rois, *places, self.grad, *numbers)

    def backward(self):
        self.grad.zero_()  # as mmcv's Python function does: its sources add
        self.add_gradient()

    def results(self):
        return {"out": self.out.numpy(), "data": self.grad.numpy()}


class Paddle:
    def __init__(self, work, operator, inputs, head):
        import paddle

        paddle.set_device("cpu")
        self.paddle = paddle
        # The boxes of one image after another, and how many each has.
        rois = inputs["rois"]
        self.order = np.argsort(rois[:, 0], kind="stable")
        counts = np.bincount(rois[:, 0].astype(np.int64), minlength=work.shape[0]).astype(np.int32)
        counts, boxes = map(paddle.to_tensor, (counts, np.ascontiguousarray(rois[self.order, 1:])))
        self.data = paddle.to_tensor(inputs["data"], stop_gradient=False)
        self.head = paddle.to_tensor(np.ascontiguousarray(head[self.order]))
        size, scale, ratio = work.pooled, work.scale, operator.sampling() or -1
        ops = paddle.vision.ops
        self.call = {
            "ROIPooling": lambda: ops.roi_pool(self.data, boxes, counts, size, scale),
            "ROIAlign": lambda: ops.roi_align(self.data, boxes, counts, size, scale, ratio, aligned=False),
            "PSROIPooling": lambda: ops.psroi_pool(self.data, boxes, counts, size, scale),
        }[operator.name]
        self.recorded = self.call()

    def forward(self):
        with self.paddle.no_grad():
            self.out = self.call()

    def backward(self):
        (self.grad,) = self.paddle.grad([self.recorded], [self.data], [self.head], retain_graph=True)

    def results(self):
        out = np.empty(self.recorded.shape, np.float32)
        out[self.order] = self.recorded.numpy()
        return {"out": out, "data": self.grad.numpy()}


class TensorFlow:
    """With the channels last, as TensorFlow has them.

    Its gradient of the image loses sums where two threads add to one pixel, unless it is told to be
    deterministic, which makes it use one thread: so it is timed as it usually runs, and compared once more.
    """

    def __init__(self, work, operator, inputs, head):
        import tensorflow as tf

        tf.config.threading.set_intra_op_parallelism_threads(THREADS)
        self.tf, self.method, self.size = tf, operator.mode(), (work.pooled, work.pooled)
        rois = inputs["rois"]
        self.data, self.head = (tf.constant(np.moveaxis(array, 1, -1)) for array in (inputs["data"], head))
        self.boxes, self.images = tf.constant(rois[:, 1:]), tf.constant(rois[:, 0].astype(np.int32))

    def forward(self):
        self.out = self.tf.image.crop_and_resize(self.data, self.boxes, self.images, self.size, self.method)

    def backward(self):
        ops = self.tf.raw_ops
        boxes = {"grads": self.head, "boxes": self.boxes, "box_ind": self.images}
        self.grad = ops.CropAndResizeGradImage(
            image_size=self.data.shape, T=self.tf.float32, method=self.method, **boxes
        )
        # The boxes get the gradient of the bilinear crop, whatever the method.
        self.grad_boxes = ops.CropAndResizeGradBoxes(image=self.data, method="bilinear", **boxes)

    def results(self):
        from tensorflow.python.framework import config

        config.enable_op_determinism()
        self.backward()
        config.disable_op_determinism()
        grad_boxes = self.grad_boxes.numpy()
        return {
            "out": np.moveaxis(self.out.numpy(), -1, 1),
            "data": np.moveaxis(self.grad.numpy(), -1, 1),
            "rois": np.concatenate([np.zeros((len(grad_boxes), 1), np.float32), grad_boxes], axis=1),
        }


class MXNet:
    def __init__(self, work, operator, inputs, head):
        import mxnet as mx

        size = (work.pooled, work.pooled)
        x, boxes, moves = (mx.sym.Variable(name) for name in ("data", "rois", "trans"))
        symbol = {
            "ROIPooling": lambda: mx.sym.ROIPooling(x, boxes, pooled_size=size, spatial_scale=work.scale),
            "ROIAlign": lambda: mx.sym.contrib.ROIAlign(
                x, boxes, pooled_size=size, spatial_scale=work.scale, sample_ratio=operator.sampling() or -1
            ),
            "PSROIPooling": lambda: mx.sym.contrib.PSROIPooling(
                x, boxes, spatial_scale=work.scale, output_dim=work.output_dim, pooled_size=work.pooled
            ),
            "_contrib_DeformablePSROIPooling": lambda: mx.sym.contrib.DeformablePSROIPooling(
                x, boxes, moves, **operator.arguments(work)
            ),
            "_contrib_RROIAlign": lambda: mx.sym.contrib.RROIAlign(x, boxes, **operator.arguments(work)),
        }[operator.name]()
        self.head = mx.nd.array(head)
        arrays = {name: mx.nd.array(array) for name, array in inputs.items()}
        self.has_gradient = "mxnet" not in operator.forward_only
        wanted = [name for name in arrays if name != "rois"] if self.has_gradient else []
        self.grads = {name: mx.nd.zeros(arrays[name].shape) for name in wanted}
        self.executor = symbol.bind(
            mx.cpu(),
            arrays,
            args_grad=self.grads,
            grad_req={name: "write" if name in self.grads else "null" for name in arrays},
        )

    def forward(self):
        self.executor.forward(is_train=self.has_gradient)
        self.executor.outputs[0].wait_to_read()

    def backward(self):
        self.executor.backward(self.head)
        for grad in self.grads.values():
            grad.wait_to_read()

    def results(self):
        grads = {name: grad.asnumpy() for name, grad in self.grads.items()}
        return {"out": self.executor.outputs[0].asnumpy(), **grads}


class Onnxruntime:
    def __init__(self, work, operator, inputs, head):
        import onnx
        import onnxruntime
        from onnx import TensorProto, helper

        def value(name, kind, array):
            return helper.make_tensor_value_info(name, kind, array.shape)

        size = work.pooled
        data, rois = inputs["data"], inputs["rois"]
        self.feed = {"data": data}
        if operator.name == "ROIPooling":
            node = helper.make_node(
                "MaxRoiPool", ["data", "rois"], ["out"], pooled_shape=[size, size], spatial_scale=work.scale
            )
            self.feed["rois"] = rois
            inputs = [value("data", TensorProto.FLOAT, data), value("rois", TensorProto.FLOAT, rois)]
        else:
            node = helper.make_node(
                "RoiAlign", ["data", "rois", "index"], ["out"], mode=operator.mode(),
                output_height=size, output_width=size, sampling_ratio=operator.sampling(),
                spatial_scale=work.scale, coordinate_transformation_mode="output_half_pixel",
            )  # fmt: skip
            self.feed["rois"] = np.ascontiguousarray(rois[:, 1:])
            self.feed["index"] = rois[:, 0].astype(np.int64)
            inputs = [
                value("data", TensorProto.FLOAT, data),
                value("rois", TensorProto.FLOAT, self.feed["rois"]),
                value("index", TensorProto.INT64, self.feed["index"]),
            ]
        graph = helper.make_graph([node], "roi", inputs, [value("out", TensorProto.FLOAT, head)])
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
        onnx.checker.check_model(model)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = THREADS
        options.inter_op_num_threads = 1
        self.session = onnxruntime.InferenceSession(
            model.SerializeToString(), options, providers=["CPUExecutionProvider"]
        )

    def forward(self):
        (self.out,) = self.session.run(["out"], self.feed)

    def results(self):
        return {"out": self.out}


def main():
    peer = {
        "torchvision": Torchvision,
        "mxnet": MXNet,
        "onnxruntime": Onnxruntime,
        "mmcv": Mmcv,
        "paddle": Paddle,
        "tensorflow": TensorFlow,
    }[PEER]
    current = None
    for line in sys.stdin:
        request = json.loads(line)
        answer = {"done": True}
        if request in ("forward", "backward"):
            run = getattr(current, request)
            start = time.perf_counter()
            run()
            answer = {"seconds": time.perf_counter() - start}
        elif "save" in request:
            np.savez(request["save"], **current.results())
        else:
            current = None  # frees the last before the next is made
            work = WORKLOADS[request["workload"]]
            operator = operators(request["workload"])[request["operator"]]
            current = peer(work, operator, operator.inputs(work), head_of(work))
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
