"""MXNet's side of ``benchmarks/convolution.py``: the speed of one convolution. Must run on Python 3.8, too.

Each line of input is a layer as written there; the answer is GFLOP/s of the fastest of several runs.
"""

import json
import os
import sys
import time

os.environ["MXNET_SUBGRAPH_BACKEND"] = "MKLDNN"

import mxnet as mx

ROUNDS = 12


def speed(channels, size, filters, kernel, stride, dilate=1, groups=1):
    convolution = mx.sym.Convolution(
        mx.sym.Variable("data"),
        kernel=(kernel, kernel),
        stride=(stride, stride),
        dilate=(dilate, dilate),
        pad=(dilate * (kernel // 2),) * 2,
        num_filter=filters,
        num_group=groups,
        no_bias=True,
    )
    executor = convolution.simple_bind(mx.cpu(), grad_req="null", data=(1, channels, size, size))
    for array in executor.arg_arrays:
        array[:] = mx.nd.random.normal(shape=array.shape)
    seconds = []
    for _ in range(ROUNDS):
        mx.nd.waitall()
        start = time.perf_counter()
        out = executor.forward(is_train=False)[0]
        out.wait_to_read()
        seconds.append(time.perf_counter() - start)
    return 2 * out.size * (channels // groups) * kernel * kernel / min(seconds) / 1e9


for line in sys.stdin:
    print(speed(*json.loads(line)), flush=True)
