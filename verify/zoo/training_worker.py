"""Runs a training script of GluonCV, under MXNet or under ``roiops.as_mxnet``, with parameters made here.

Where the script would download parameters, or begin with those of a file that is not there, MXNet makes them
at random; roiops, which runs after it, finds them in the folder of the user.
"""

import functools
import os
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


def _make(net, path, size=224):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what a base network has already stays
        net.initialize()
    net(mx.nd.zeros((1, 3, size, size)))
    # Weights of He's size: with MXNet's default the network multiplies rounding errors a thousandfold.
    for parameter in net.collect_params().values():
        if parameter.name.endswith("weight") and len(parameter.shape) > 1:
            deviation = (2.0 / np.prod(parameter.shape[1:])) ** 0.5
            parameter.set_data(mx.nd.random.normal(0, deviation, shape=parameter.shape))
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
