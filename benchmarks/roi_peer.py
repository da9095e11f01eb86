"""Times one peer's ROI operators, in the peer's own interpreter; ``roi.py`` starts it and asks.

    python benchmarks/roi_peer.py torchvision 1     # peer, threads

Reads a JSON line ``{"workload": ..., "operator": ...}`` to set up, ``"forward"`` or ``"backward"`` to run and
time that once, ``{"save": path}`` to store the output and gradients of the last; answers each with a line.
"""

import json
import os
import sys
import time

PEER, THREADS = sys.argv[1], int(sys.argv[2])
for variable in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = str(THREADS)

import numpy as np  # noqa: E402  (the thread count must be known first)
from roi_workloads import WORKLOADS, operators  # noqa: E402


class Torchvision:
    def __init__(self, work, operator, inputs, head):
        import torch
        import torchvision.ops as ops

        torch.set_num_threads(THREADS)
        data, rois = inputs["data"], inputs["rois"]
        self.torch = torch
        self.data = torch.from_numpy(data).requires_grad_()
        rois, self.head = torch.from_numpy(rois), torch.from_numpy(head)
        size, scale, ratio = work.pooled, work.scale, operator.sampling() or -1
        self.call = {
            "ROIPooling": lambda x: ops.roi_pool(x, rois, size, scale),
            "ROIAlign": lambda x: ops.roi_align(x, rois, size, scale, ratio),
            "PSROIPooling": lambda x: ops.ps_roi_pool(x, rois, size, scale),
            "PSROIAlign": lambda x: ops.ps_roi_align(x, rois, size, scale, ratio),
        }[operator.name]
        self.recorded = self.call(self.data)
        self.out = self.grad = None

    def forward(self):
        with self.torch.no_grad():
            self.out = self.call(self.data)

    def backward(self):
        (self.grad,) = self.torch.autograd.grad(self.recorded, self.data, self.head, retain_graph=True)

    def results(self):
        return {"out": self.recorded.detach().numpy(), "data": self.grad.numpy()}


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
                "RoiAlign", ["data", "rois", "index"], ["out"], mode=operator.params["mode"],
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
    peer = {"torchvision": Torchvision, "mxnet": MXNet, "onnxruntime": Onnxruntime}[PEER]
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
            operator = operators(work)[request["operator"]]
            channels = work.output_dim or work.shape[1]
            head = np.random.default_rng(1).standard_normal(
                (work.rois, channels, work.pooled, work.pooled), dtype=np.float32
            )
            current = peer(work, operator, operator.inputs(work), head)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
