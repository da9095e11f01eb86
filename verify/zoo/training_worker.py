"""Runs a training script of GluonCV, under MXNet or under ``roiops.as_mxnet``, with parameters made here.

Where the script would download parameters, or begin with those of a file that is not there, MXNet makes them
at random; roiops, which runs after it, finds them in the folder of the user.
"""

import functools
import os
import re
import runpy
import sys
import warnings
from pathlib import Path

import gluoncv
import mxnet as mx
import numpy as np
from gluoncv.model_zoo import model_store
from gluoncv.model_zoo.ssd.vgg_atrous import vgg16_atrous_300

HOME = Path.home()
HEADS = ("convpredictor", "dense", "rpn0_conv2")
#: The last normalization of a bottleneck, of three.
END_OF_BRANCH = re.compile(r"layers\d_batchnorm(2|5|8|11|14|17)_gamma$")


def _make(net, path, size=224):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a base network has already stays
        net.initialize()
    net(mx.nd.zeros((1, 3, size, size)))
    # Features of size 1 and small predictions, as a trained network's: else rounding errors, and steps of the
    # script's own rate, are multiplied until no two programs agree.
    for name, parameter in net.collect_params().items():
        if name.endswith("weight") and len(parameter.shape) > 1:
            small = any(head in name for head in HEADS)
            deviation = 0.01 if small else (2.0 / np.prod(parameter.shape[1:])) ** 0.5
            parameter.set_data(mx.nd.random.normal(0, deviation, shape=parameter.shape))
        elif END_OF_BRANCH.search(name):
            parameter.set_data(mx.nd.full(parameter.shape, 0.2))
        elif name.endswith("init_scale"):  # which makes pixels 57 times as large
            parameter.set_data(mx.nd.ones(parameter.shape))
    net.save_parameters(str(path))


def get_model_file(name, tag=None, root=None):
    path = HOME / (name + ".params")
    if not path.exists():
        if name == "vgg16_atrous":
            _make(vgg16_atrous_300(pretrained=False), path, 300)
        else:
            _make(gluoncv.model_zoo.get_model(name, pretrained=False), path)
    return str(path)


_load = mx.gluon.Block.load_parameters


def load_parameters(self, filename, *args, **kwargs):
    if not os.path.exists(filename):
        mx.random.seed(7)
        _make(self, filename, 300 if "ssd" in self.name else 128)
    _load(self, filename, *args, **kwargs)
    if hasattr(self, "max_size"):  # Faster R-CNN
        self.short, self.max_size = 160, 256
        for F in (mx.nd, mx.sym):
            F.random.uniform = functools.partial(_same_everywhere, F)


def _same_everywhere(F, low, high, shape):
    """Numbers within 0 and 1 without an order that one sees, the same under both frameworks."""
    return F.abs(F.sin(F.arange(shape[0]) * 12.9898))


model_store.get_model_file = get_model_file
mx.gluon.Block.load_parameters = load_parameters
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
