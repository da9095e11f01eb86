"""Run published network definitions, unchanged, with MXNet and with roiops: both must save the same graph.

    git clone https://github.com/apache/mxnet && git -C mxnet checkout 1.9.1     # or 0.12.1
    git clone https://github.com/deepinsight/insightface
    python verify/check_published.py mxnet insightface

Looked for in each checkout: example/rcnn, example/ssd, example/image-classification/symbols, and ArcFace
of insightface. The files import mxnet; for roiops they run under ``roiops.as_mxnet``. Graphs are compared as
JSON, without the counts of hidden outputs.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

_RCNN = {
    "anchor_scales": (8, 16, 32),
    "anchor_ratios": (0.5, 1, 2),
    "rpn_feature_stride": 16,
    "rpn_pre_topk": 6000,
    "rpn_post_topk": 300,
    "rpn_nms_thresh": 0.7,
    "rpn_min_size": 16,
    "num_classes": 21,
    "rcnn_feature_stride": 16,
    "rcnn_batch_size": 1,
}
_RCNN_TRAIN = {
    "rpn_batch_rois": 256,
    "rcnn_batch_rois": 128,
    "rcnn_fg_fraction": 0.25,
    "rcnn_fg_overlap": 0.5,
    "rcnn_bbox_stds": (0.1, 0.1, 0.2, 0.2),
}
_RESNET = {"units": (3, 4, 6, 3), "filter_list": (256, 512, 1024, 2048), "rcnn_pooled_size": (14, 14)}
_CLASSIFIERS = {
    "alexnet": {},
    "vgg": {"num_layers": 16},
    "resnet": {"num_layers": 50, "image_shape": "3,224,224"},
    "resnet-v1": {"num_layers": 50, "image_shape": "3,224,224"},
    "resnext": {"num_layers": 50, "image_shape": "3,224,224"},
    "inception-bn": {"image_shape": "3,224,224"},
    "inception-v3": {},
    "inception-v4": {},
    "inception-resnet-v2": {},
    "googlenet": {},
    "mobilenet": {},
    "mobilenetv2": {},
    "lenet": {},
    "mlp": {},
}
_ARCFACE = {
    "fresnet": {"num_layers": 50, "net_output": "E", "net_act": "prelu", "net_unit": 3, "net_se": 0},
    "fmobilefacenet": {"net_output": "GDC", "emb_size": 128},
    "fmobilenet": {"net_output": "GNAP", "net_multiplier": 1.0},
    "vargfacenet": {"net_output": "J", "emb_size": 512, "net_multiplier": 1.25},
}


def cases(checkout: Path):
    """``(name, folders to import from, module, function, arguments)`` for what a checkout holds."""
    example = checkout / "example"
    if (example / "rcnn" / "symnet").is_dir():
        for kind, more in (("vgg", {"rcnn_pooled_size": (7, 7)}), ("resnet", _RESNET)):
            for mode, extra in (("test", {}), ("train", _RCNN_TRAIN)):
                arguments = {**_RCNN, **more, **extra}
                yield (
                    f"rcnn_{kind}_{mode}",
                    [example / "rcnn"],
                    f"symnet.symbol_{kind}",
                    f"get_{kind}_{mode}",
                    arguments,
                )
    if (example / "rcnn" / "rcnn" / "symbol").is_dir():
        folders = [example / "rcnn", example / "rcnn" / "rcnn" / "symbol"]
        for kind in ("vgg", "resnet"):
            for mode in ("test", "train"):
                yield f"rcnn_{kind}_{mode}", folders, f"symbol_{kind}", f"get_{kind}_{mode}", {}
    if (example / "ssd" / "symbol").is_dir():
        folders = [example / "ssd", example / "ssd" / "symbol"]
        for network, size in (
            ("vgg16_reduced", 300),
            ("vgg16_reduced", 512),
            ("resnet50", 512),
            ("inceptionv3", 512),
        ):
            for function in ("get_symbol", "get_symbol_train"):
                arguments = {"network": network, "data_shape": size, "num_classes": 20}
                yield (
                    f"ssd_{network}_{size}_{function}",
                    folders,
                    "symbol.symbol_factory",
                    function,
                    arguments,
                )
    symbols = example / "image-classification" / "symbols"
    if symbols.is_dir():
        for module, arguments in _CLASSIFIERS.items():
            if (symbols / f"{module}.py").exists():
                yield (
                    f"classify_{module}",
                    [symbols],
                    module,
                    "get_symbol",
                    {"num_classes": 1000, **arguments},
                )
    arcface = checkout / "recognition" / "arcface_mxnet"
    if arcface.is_dir():
        for module, settings in _ARCFACE.items():
            yield (
                f"arcface_{module}",
                [arcface, arcface / "symbol"],
                module,
                "get_symbol",
                {"config": settings},
            )


#: Runs in either interpreter: builds one symbol and prints its JSON. Modules that only training needs, or
#: that are written for Python 2, are stood in for.
_BUILD = """
import importlib, json, sys, types, warnings
warnings.simplefilter("ignore")
name, folders, module, function, arguments = json.loads(sys.argv[1])
if sys.argv[2] == "roiops":
    import roiops.as_mxnet
    roiops.as_mxnet.install()
import mxnet as mx

class Settings(dict):
    def __setitem__(self, key, value):
        dict.__setitem__(self, key, Settings(value) if type(value) is dict else value)
    __setattr__ = __setitem__
    def __init__(self, *args, **kwargs):
        for key, value in dict(*args, **kwargs).items():
            self[key] = value
    def __getattr__(self, key):
        try:
            return self[key]
        except KeyError:
            raise AttributeError(key)

def stand_in(name, **contents):
    made = types.ModuleType(name)
    made.__path__ = []
    made.__dict__.update(contents)
    sys.modules[name] = made

stand_in("easydict", EasyDict=Settings)
stand_in("sklearn", preprocessing=None)
stand_in("sklearn.decomposition", PCA=None)
stand_in("sklearn.model_selection", KFold=None)
for each in ("proposal", "proposal_target", "rcnn.symbol.proposal"):
    stand_in(each)
del sys.modules["rcnn.symbol.proposal"]
sys.modules.pop("symbol", None)  # Python 3.9 has a module of this name
sys.path[:0] = folders
tuples = {k: tuple(v) if isinstance(v, list) else v for k, v in arguments.items()}
if "config" in tuples:
    settings = importlib.import_module("sample_config")
    sys.modules["config"] = settings
    settings.config.update(Settings(tuples.pop("config")))
    settings.config.setdefault("memonger", False)
sys.stdout = sys.stderr
symbol = getattr(importlib.import_module(module), function)(**tuples)
sys.__stdout__.write(symbol.tojson())
"""


def build(python, library, case):
    name, folders, module, function, arguments = case
    request = json.dumps([name, [str(f) for f in folders], module, function, arguments])
    with tempfile.TemporaryDirectory() as scratch:
        done = subprocess.run(
            [str(python), "-c", _BUILD, request, library],
            capture_output=True,
            text=True,
            cwd=scratch,
            env={"PATH": "/usr/bin:/bin", "PYTHONPATH": str(ROOT) if library == "roiops" else ""},
        )
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        return None, last
    graph = json.loads(done.stdout)
    graph.pop("node_row_ptr", None)
    return graph, ""


def main() -> int:
    import peers

    if len(sys.argv) < 2 or sys.argv[1] in ("-h", "--help"):
        print(__doc__.strip())
        return 0 if len(sys.argv) > 1 else 2
    count = failed = 0
    for checkout in map(Path, sys.argv[1:]):
        for case in cases(checkout.resolve()):
            theirs, problem = build(peers.interpreter("mxnet"), "mxnet", case)
            if theirs is None:
                print(f"{case[0]}: mxnet itself cannot: {problem}")
                continue
            ours, problem = build(sys.executable, "roiops", case)
            count += 1
            if ours != theirs:
                failed += 1
                print(f"{case[0]}: {problem or 'another graph'}")
            else:
                print(f"{case[0]}: the same graph of {len(ours['nodes'])} nodes")
    print(f"{count - failed} of {count} published definitions give the same graph")
    return 1 if failed or not count else 0


if __name__ == "__main__":
    sys.exit(main())
