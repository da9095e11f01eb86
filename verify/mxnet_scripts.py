"""Run scripts that others published for MXNet on roiops and on MXNet, and compare what they print and draw.

    python verify/peers.py mxnet                               # MXNet 1.9.1
    pip install opencv-python-headless                         # what the scripts import, on both sides
    git clone https://github.com/zhreshold/mxnet-ssd           # any of them:
    git clone https://github.com/YYuanAnyVision/mxnet_mtcnn_face_detection
    git clone https://github.com/Seanlinx/mtcnn
    git clone https://github.com/1996scarlet/faster-mobile-retinaface
    git clone https://github.com/miraclewkf/mobilenet-MXNet
    git clone https://github.com/yeyupiaoling/Age-Gender-MXNET
    git clone https://github.com/tornadomeet/mxnet-face
    git clone https://github.com/YonghaoHe/LFFD-A-Light-and-Fast-Face-Detector-for-Edge-Devices
    git clone https://github.com/chinakook/hr101_mxnet
    git clone https://github.com/msracver/Deformable-ConvNets
    python verify/mxnet_scripts.py mxnet-ssd mxnet_mtcnn_face_detection mtcnn faster-mobile-retinaface \\
        mobilenet-MXNet Age-Gender-MXNET mxnet-face hr101_mxnet Deformable-ConvNets \\
        LFFD-A-Light-and-Fast-Face-Detector-for-Edge-Devices --faces mxnet_mtcnn_face_detection/test2.jpg

The scripts are those of the checkouts, in a copy that a run may write to; roiops runs them by
``roiops.as_mxnet``. What is written in Python 2 goes through Python's own 2to3 first, for both sides alike,
and divides and finds its modules as Python 2 did.
Some sort equal scores, which each version of NumPy orders in its own way: both sides sort them stably.
Weights are the repository's own where it has them, else random; pictures are its own, else made here.
A GPU that a script asks for is the CPU, on both sides. What a repository compiles with Cython or CUDA
(overlaps and suppression of boxes) is a few lines of Python in its place.
Windows are not opened: the coordinates of what is drawn are printed in their place, and compared.
"""

import argparse
import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import mxnet_rcnn
import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

#: By how much weights may differ that both sides trained, relative to the largest of their array.
WEIGHTS = 1e-3

#: What scripts of the time import and is not installed, or has changed.
_STAND_INS = """
import sys, types


class EasyDict(dict):
    def __init__(self, items=()):
        for name, value in dict(items).items():
            self[name] = value

    def __setitem__(self, name, value):
        dict.__setitem__(self, name, EasyDict(value) if type(value) is dict else value)

    __getattr__, __setattr__ = dict.__getitem__, __setitem__


sys.modules["easydict"] = types.ModuleType("easydict")
sys.modules["easydict"].EasyDict = EasyDict
try:
    import distutils.util
except ImportError:
    sys.modules.update((name, types.ModuleType(name)) for name in ("distutils", "distutils.util"))
    sys.modules["distutils.util"].strtobool = lambda text: text.lower() in ("yes", "true", "on", "1")
try:
    import yaml
    yaml.load = lambda text, Loader=yaml.SafeLoader, load=yaml.load: load(text, Loader)
except ImportError:
    pass
"""

#: Runs in either interpreter before the script: the same seeds, and prints in the place of windows.
_LAUNCH = (
    _STAND_INS
    + """
import os, random, runpy
import numpy as np

kind, *sys.argv = sys.argv[1:]
folder = os.path.dirname(os.path.abspath(sys.argv[0]))
sys.path.insert(0, folder)
# Python 2 looked in the importing file's folder first.
for place, _, names in os.walk(os.environ.get("implicit_imports", "")):
    if "__init__.py" in names and place != folder:
        sys.path.append(place)
sys.modules.pop("symbol", None)  # Python 3.9 has a module of this name
random.seed(7)
np.random.seed(7)


def told(name, ends=False):
    def tell(*args, **kwargs):
        numbers = [str(x) for arg in args if isinstance(arg, tuple) for x in arg]
        print("DRAWN", name, " ".join(numbers), flush=True)
        if ends:
            os._exit(0)
    return tell


try:
    import cv2
    cv2.rectangle, cv2.circle = told("rectangle"), told("circle")
    cv2.putText = lambda picture, text, *args: print("DRAWN", text)
    cv2.namedWindow = lambda *args: None
    cv2.imshow = lambda name, picture: print("SHOWN", name, picture.shape)
    cv2.waitKey = lambda *args: os._exit(sys.stdout.flush() or 0) if "ends" in os.environ else -1
except ImportError:
    pass


class SimilarityTransform:  # scikit-image's, by Umeyama
    def estimate(self, source, target):
        centres = source.mean(0), target.mean(0)
        a, b = source - centres[0], target - centres[1]
        u, s, v = np.linalg.svd(b.T @ a / len(a))
        signs = np.array([1, np.sign(np.linalg.det(u) * np.linalg.det(v))])
        turn = u @ np.diag(signs) @ v * ((s * signs).sum() / a.var(0).sum())
        self.params = np.eye(3)
        self.params[:2, :2], self.params[:2, 2] = turn, centres[1] - turn @ centres[0]
        return True


sys.modules["skimage"] = types.ModuleType("skimage")
sys.modules["skimage"].transform = types.SimpleNamespace(SimilarityTransform=SimilarityTransform)


class Anything(types.ModuleType):
    def __getattr__(self, name):
        return lambda *args, **kwargs: Anything(name)


if kind == "roiops":
    import roiops as mx
    from roiops.mxnet import as_mxnet
else:
    import mxnet as mx
    mx.gpu = mx.cpu


class EqualWeights(mx.init.Initializer):  # what is random otherwise, and each library's own
    def _init_weight(self, name, array):
        array[:] = np.random.RandomState(7).uniform(-0.05, 0.05, array.shape)


mx.init.Xavier = lambda *args, **kwargs: EqualWeights()

plots = Anything("matplotlib.pyplot")
plots.Rectangle = lambda corner, width, height, **kw: print("DRAWN", *corner, width, height)
plots.imread = lambda path: cv2.imread(path)[:, :, ::-1]
sys.modules["matplotlib"], sys.modules["matplotlib.pyplot"] = Anything("matplotlib"), plots
sys.modules["matplotlib"].pyplot = plots
plots.gca = lambda: types.SimpleNamespace(
    add_patch=lambda patch: None, text=lambda x, y, text, **kw: print("DRAWN", x, y, text)
)
if kind == "roiops":
    as_mxnet.main(["--cpu", *sys.argv])
else:
    runpy.run_path(sys.argv[0], run_name="__main__")
"""
)

#: Makes random weights of a graph that the repository's own code builds, or that it has saved.
_WEIGHTS = (
    _STAND_INS
    + """
import os
import numpy as np
import roiops as mx
from roiops.mxnet import as_mxnet

as_mxnet.install()
as_mxnet.restore_former_names()
sys.path.insert(0, ".")
sys.path += [place for place, _, names in os.walk(".") if "__init__.py" in names and place != "."]
graph, file, build, gamma, heads, *shapes = sys.argv[1:]
found = {"mx": mx, "sys": sys}
exec(build, found)
symbol = found["symbol"]
shapes = {name: tuple(map(int, shape.split(","))) for name, shape in (each.split("=") for each in shapes)}
sizes, _, aux_sizes = symbol.infer_shape(**shapes)
rng = np.random.default_rng(1)
params = {}
for name, size in zip(symbol.list_arguments(), sizes):
    if name in shapes or name.endswith("label"):
        continue
    if name.endswith(("_gamma", "_scale")):
        value = np.full(size, float(gamma))
    elif name.endswith(("_bias", "_beta")):
        value = rng.standard_normal(size) * 0.1
    else:
        value = rng.standard_normal(size) * np.sqrt(2 / max(np.prod(size[1:]), 1))
    for head, scale in (each.split("=") for each in heads.split()):
        if name.startswith(head) or name.endswith(head):
            value = value * float(scale)
    params["arg:" + name] = mx.nd.array(value)
for name, size in zip(symbol.list_auxiliary_states(), aux_sizes):
    params["aux:" + name] = mx.nd.array(np.ones(size) if name.endswith("var") else np.zeros(size))
for path in (graph, file):
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
symbol.save(graph)
mx.nd.save(file, params)
"""
)


@dataclass
class Weights:
    """Random weights of a graph, and the files that they go to."""

    prefix: str
    build: str  # Python that assigns the graph to ``symbol``
    shapes: str  # of the inputs: ``data=1,3,224,224 im_info=1,3``
    gamma: float = 1.0  # of every batch norm: less than 1 keeps deep residual networks within bounds
    heads: str = ""  # factors on arrays whose names begin or end so: ``cls_score=3 bbox_pred=0.1``
    file: str = ""  # of the parameters, if not that of epoch 0

    def make(self, folder: Path) -> None:
        graph, file = self.prefix + "-symbol.json", self.file or self.prefix + "-0000.params"
        arguments = [graph, file, self.build, str(self.gamma), self.heads, *self.shapes.split()]
        subprocess.run(
            [sys.executable, "-c", _WEIGHTS, *arguments], cwd=folder, env=_environment(str(ROOT)), check=True
        )


@dataclass
class Script:
    """One script of a repository and how it is run."""

    repository: str
    arguments: str  # the script's path first
    weights: Weights | None = None
    folder: str = "."  # in which it is started
    relative: bool = False  # modules of its packages import each other by bare names, and relative ones
    python2: bool = False
    sorts_equal_scores: bool = False  # which NumPy's versions put in different orders: here as they come
    prepare: object = None  # makes what else is needed, in the copy
    standard_input: str = ""  # a file
    ends_when_shown: bool = False  # a script for a camera runs on otherwise

    def __str__(self):
        return f"{self.repository}: {self.arguments}"


def _frames(folder: Path) -> None:
    """Raw frames in the size that the script expects, with the picture of the option ``--faces`` in them."""
    import cv2
    import numpy as np

    picture = cv2.resize(cv2.imread(os.environ["FACES"]), (640, 480))
    (folder / "frames.raw").write_bytes(np.repeat(picture[None], 2, 0).tobytes())


def _faces(folder: Path) -> None:
    """The picture that the demonstration reads: that of the option ``--faces``, if one is given."""
    if "FACES" in os.environ:
        shutil.copy(os.environ["FACES"], folder / "test01.jpg")


def _one_face(folder: Path) -> None:
    """A folder with one picture to look for faces in, for a script that goes through folders."""
    (folder / "face_detection/demo/data").mkdir()
    shutil.copy(
        folder / "face_detection/deploy_tensorrt/debug_image/test1.jpg", folder / "face_detection/demo/data"
    )


def _clusters(folder: Path) -> None:
    """Sizes of faces, and the mean of pictures, as hr101's converter writes them."""
    import pickle

    import cv2

    sides = np.geomspace(8, 400, 25)
    clusters = np.stack([-sides / 2, -sides / 2, sides / 2, sides / 2, np.ones(25)], 1)
    mean = np.array([119.0, 111.0, 104.0]).reshape(3, 1, 1)
    # Protocol 2 holds the names of modules as text, and NumPy 1 does not know its module numpy._core.
    pickles = [pickle.dumps(each, 2).replace(b"numpy._core", b"numpy.core") for each in (clusters, mean)]
    (folder / "meta.pkl").write_bytes(b"".join(pickles))
    cv2.imwrite(str(folder / "selfie.jpg"), cv2.resize(cv2.imread(str(folder / "selfie.jpg")), (240, 160)))


#: What Cython and CUDA compile in repositories of the R-CNN family.
_COMPILED = """
import numpy as np


def cpu_nms(dets, thresh, device_id=0):
    x1, y1, x2, y2, scores = dets.T
    areas = (x2 - x1 + 1) * (y2 - y1 + 1)
    order, keep = np.argsort(-scores, kind="stable"), []
    while len(order):
        i, order = order[0], order[1:]
        keep.append(i)
        w = np.maximum(np.minimum(x2[i], x2[order]) - np.maximum(x1[i], x1[order]) + 1, 0)
        h = np.maximum(np.minimum(y2[i], y2[order]) - np.maximum(y1[i], y1[order]) + 1, 0)
        order = order[w * h / (areas[i] + areas[order] - w * h) <= thresh]
    return keep


gpu_nms = cpu_nms
bbox_overlaps_cython = None  # of training only
"""


def _compiled(folder: Path) -> None:
    """Python for what the Deformable-ConvNets compile, and its pictures in the size that it makes room for.

    For others it has MXNet reshape an array into a smaller one, which MXNet 1.9.1 refuses.
    """
    import cv2

    for path in (*folder.glob("demo/COCO*.jpg"), *folder.glob("demo/deform_psroi/*.jpg")):
        cv2.imwrite(str(path), cv2.resize(cv2.imread(str(path)), (1000, 600)))
    for name in ("nms/cpu_nms.py", "nms/gpu_nms.py", "bbox/__init__.py"):
        (folder / "lib" / name).write_text(_COMPILED, encoding="utf-8")


def _pictures(folder: Path) -> None:
    """Eight pictures of two colours, and the lists that name them."""
    import cv2
    import numpy as np

    rng = np.random.default_rng(0)
    lines = []
    for number in range(8):
        picture = rng.integers(0, 100, (240, 260, 3))
        picture[:, :, number % 2] += 120
        cv2.imwrite(str(folder / f"{number}.png"), picture.astype(np.uint8))
        lines.append(f"{number}\t{number % 2}\t{number}.png\n")
    for name in ("train.lst", "val.lst"):
        (folder / name).write_text("".join(lines))


_SSD = """
from symbol.symbol_factory import get_symbol
symbol = get_symbol('{0}', {1}, num_classes=20)
"""
SCRIPTS = (
    *(
        Script(
            "mxnet-ssd",
            f"{script} --network {network} --data-shape {size} --prefix model/ssd_ {more}",
            Weights(f"model/ssd_{network}_{size}", _SSD.format(network, size), f"data=1,3,{size},{size}"),
            python2=True,
        )
        for network, size in (("vgg16_reduced", 300), ("resnet50", 512))
        for script, more in (
            ("demo.py", "--cpu --thresh 0.1 --images data/demo/dog.jpg,data/demo/street.jpg"),
            ("deploy.py", "--num-class 20"),
        )
    ),
    Script("mxnet_mtcnn_face_detection", "main.py", python2=True),
    Script("mtcnn", "demo.py --gpu -1", python2=True, sorts_equal_scores=True, prepare=_faces),
    Script(
        "faster-mobile-retinaface",
        "face_detector.py",
        prepare=_frames,
        standard_input="frames.raw",
        ends_when_shown=True,
    ),
    Script(
        "Age-Gender-MXNET",
        "infer.py --gpu -1 --image test01.jpg --model model/made,0",
        Weights(
            "model/made",
            "symbol = mx.sym.load('model/model-symbol.json').get_internals()['fc1_output']",
            "data=1,3,112,112",
        ),
        sorts_equal_scores=True,
        prepare=_faces,
    ),
    Script(
        "mobilenet-MXNet",
        "train_lst.py --model model/made --epoch 0 --save-result out/ --save-name m --num-classes 2 --gpus= "
        "--data-train train.lst --image-train . --data-val val.lst --image-val . --num-epoch 2 "
        "--num-examples 8 --batch-size 4 --lr 0.00001 --kv-store local",
        Weights("model/made", "symbol = mx.sym.load('model/mobilenet-symbol.json')", "data=1,3,224,224"),
        prepare=_pictures,
    ),
    Script(
        "mxnet-face",
        "detection/detection.py --img test01.jpg --prefix model/made --scale 320 --max-scale 480 "
        "--thresh 0.6",
        Weights(
            "model/made",
            "sys.path.insert(0, 'detection')\nfrom symbol.resnet import *\nsymbol = resnet_50(num_class=2)",
            "data=1,3,320,480 im_info=1,3",
            gamma=0.5,
            heads="rpn_bbox_pred=0.1 bbox_pred=0.1 cls_score=-3",
        ),
        python2=True,
        sorts_equal_scores=True,
        prepare=_faces,
    ),
    Script(
        "LFFD-A-Light-and-Fast-Face-Detector-for-Edge-Devices",
        "demo.py",
        Weights(
            "face_detection/made",
            "symbol = mx.sym.load('face_detection/symbol_farm/symbol_10_320_20L_5scales_v2_deploy.json')",
            "data=1,3,480,640",
            heads="conv=0.6 score_weight=1.4",
            file="face_detection/saved_model/configuration_10_320_20L_5scales_v2/"
            "train_10_320_20L_5scales_v2_iter_1800000.params",
        ),
        folder="face_detection/demo",
        sorts_equal_scores=True,
        prepare=_one_face,
    ),
    Script(
        "hr101_mxnet",
        "tiny_detection_mxnet.py",
        Weights(
            "hr101",
            "exec('\\n'.join(line for line in open('matconvnet_hr101_to_mxnet.py') if 'mx.symbol.' in line "
            "and line[0].isalpha() and not line.startswith('symbol_string')))\nsymbol = fusex",
            "data=1,3,224,224",
            gamma=0.5,
            heads="score=0.03",
        ),
        sorts_equal_scores=True,
        prepare=_clusters,
    ),
    Script(
        "Deformable-ConvNets",
        "rfcn/deform_psroi_demo.py",
        Weights(
            "model/deform_psroi",
            "sys.path[:0] = ['rfcn', 'lib']\nfrom config.config import config, update_config\n"
            "update_config('experiments/rfcn/cfgs/deform_psroi_demo.yaml')\n"
            "from symbols import deform_psroi_demo as file\n"
            "symbol = file.deform_psroi_demo().get_symbol_rfcn(config, is_train=False)",
            "data=1,3,600,1000 rois=1,5",
            gamma=0.5,
            heads="rpn_bbox_pred=0.1 rfcn_bbox=0.1 offset=0.1",
        ),
        python2=True,
        relative=True,
        prepare=_compiled,
    ),
)


def copy_of(checkout: Path, script: Script, folder: Path, peer: str) -> None:
    """What the checkout has, made ready to run."""
    shutil.copytree(checkout, folder, ignore=shutil.ignore_patterns(".git"))
    if script.prepare:
        script.prepare(folder)
    if script.python2:
        files = list(folder.rglob("*.py"))
        beside = {path for path in files if path.parent == (folder / script.arguments.split()[0]).parent}
        command = [peer, "-m", "lib2to3", "--no-diffs", "-w", "-n"]
        for chosen, options in ((beside, ["-x", "import"]), (set(files) - beside, [])):
            if chosen:
                options = options if script.relative else ["-x", "import"]
                subprocess.run([*command, *options, *map(str, chosen)], check=True, capture_output=True)
        for path in files:
            _divide_as_python2(path)
    if script.sorts_equal_scores:
        for path in folder.rglob("*.py"):
            _rewrite(path, _StableOrder())
    if script.weights:
        script.weights.make(folder)


class _Divisions(ast.NodeTransformer):
    def visit_BinOp(self, node):
        self.generic_visit(node)
        if isinstance(node.op, ast.Div):
            return ast.Call(ast.Name("_quotient", ast.Load()), [node.left, node.right], [])
        return node


class _StableOrder(ast.NodeTransformer):
    """``scores.argsort()`` and ``np.argsort(scores)`` leave equal numbers in their order."""

    def visit_Call(self, node):
        self.generic_visit(node)
        sorts = isinstance(node.func, ast.Attribute) and node.func.attr == "argsort"
        by_numpy = sorts and isinstance(node.func.value, ast.Name) and node.func.value.id in ("np", "numpy")
        if sorts and len(node.args) == by_numpy:
            node.keywords = [ast.keyword("kind", ast.Constant("stable"))]
        return node


def _divide_as_python2(path: Path) -> None:
    """Integers divided give an integer, unless the file says otherwise."""
    if "import division" in path.read_text(encoding="utf-8"):
        return
    whole = "isinstance(a, int) and isinstance(b, int)"
    first = f"def _quotient(a, b):\n    return a // b if {whole} else a / b\n\n\n"
    _rewrite(path, _Divisions(), first)


def _rewrite(path: Path, change: ast.NodeTransformer, first: str = "") -> None:
    source = path.read_text(encoding="utf-8")
    path.write_text(first + ast.unparse(change.visit(ast.parse(source))) + "\n", encoding="utf-8")


def _environment(path: str) -> dict:
    # MXNet's other engines let a script read the running means of BatchNorm before backward has written them.
    settings = {"MXNET_ENGINE_TYPE": "NaiveEngine", "MXNET_SUBGRAPH_BACKEND": "NONE"}
    return {**os.environ, **settings, "PYTHONPATH": path, "PYTHONWARNINGS": "ignore"}


def run(kind: str, python: str, path: str, script: Script, folder: Path) -> tuple[list[str], str]:
    """The lines that a script printed, or the error that it ended with."""
    environment = _environment(path)
    if script.python2:
        environment["implicit_imports"] = str((folder / script.arguments.split()[0]).parent)
    if script.ends_when_shown:
        environment["ends"] = "1"
    name, *arguments = script.arguments.split()
    given = (folder / script.standard_input).read_bytes() if script.standard_input else b""
    done = subprocess.run(
        [python, "-c", _LAUNCH, kind, name, *arguments],
        cwd=folder / script.folder, env=environment, input=given, capture_output=True, check=False,
    )  # fmt: skip
    if done.returncode:
        return [], (done.stderr.decode().strip().splitlines() or ["no message"])[-1]
    text = done.stdout.decode() + done.stderr.decode()
    return mxnet_rcnn.comparable([_untimed(line) for line in text.splitlines()]), ""


def _untimed(line: str) -> str:
    """Without when something was logged and how long it took."""
    line = re.sub(r"^\d{4}-\d\d-\d\d [\d:,]+ - ", "", line)
    if line.startswith("<module 'mxnet'"):  # mxnet-ssd says where it found it
        return ""
    if re.search(r"\.cc:\d+: ", line):  # MXNet's engine, also where two processes write into one line
        return ""
    if re.match(r"Using \d+ threads for decoding|Set enviroment variable MXNET_CPU_WORKER_NTHREADS", line):
        return ""  # a setting of MXNet's own
    return "" if "time" in line.lower() and "Time cost" not in line else line


def check(checkout: Path, script: Script, peer: str, path: str) -> tuple[bool, str]:
    """Whether both sides print the same, and in words how much that was."""
    with tempfile.TemporaryDirectory() as scratch:
        lines = {}
        for kind, python, more in (("mxnet", peer, path), ("roiops", sys.executable, str(ROOT))):
            folder = Path(scratch) / kind
            copy_of(checkout, script, folder, peer)
            lines[kind], problem = run(kind, python, more, script, folder)
            if problem:
                return False, f"{kind} ended with: {problem}"
        graphs = [sorted((Path(scratch) / kind).rglob("deploy_*-symbol.json")) for kind in lines]
        if any(_graph(one) != _graph(other) for one, other in zip(*graphs, strict=True)):
            return False, "another graph"
        trained = [sorted((Path(scratch) / kind).glob("out/*.params")) for kind in lines]
        apart = max(map(_apart, *trained), default=None)
    text = mxnet_rcnn.difference(lines["roiops"], lines["mxnet"])
    if apart is not None and apart > WEIGHTS:
        text = f"trained weights differ by {apart:.1e}"
    drawn = sum(line.startswith("DRAWN") for line in lines["roiops"])
    graph = ", the same graph saved" if graphs[0] else ""
    graph += "" if apart is None else f", trained weights to {apart:.1e}"
    return text is None and bool(lines["roiops"]), text or (
        f"{len(lines['roiops'])} lines alike, {drawn} of them of what is drawn{graph}"
    )


def _graph(path: Path) -> dict:
    """A saved graph, without the counts of hidden outputs."""
    graph = json.loads(path.read_text(encoding="utf-8"))
    graph.pop("node_row_ptr", None)
    return graph


def _apart(ours: Path, theirs: Path) -> float:
    """The largest difference between the weights in two files, relative to the largest of their array."""
    import roiops as mx

    one, other = mx.nd.load(str(ours)), mx.nd.load(str(theirs))
    worst = 0.0
    for name in other:
        wanted = other[name].asnumpy()
        scale = np.abs(wanted).max() or 1
        worst = max(worst, float(np.abs(one[name].asnumpy() - wanted).max() / scale))
    return worst


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("checkouts", type=Path, nargs="+", help="checkouts of the repositories above")
    parser.add_argument("--only", default="", help="only scripts whose command holds this text")
    parser.add_argument("--mxnet-python", help="interpreter with MXNet, by default that of verify/peers.py")
    parser.add_argument("--mxnet-path", default="", help="folder with further packages for it (cv2)")
    parser.add_argument("--faces", help="a picture of faces, as test2.jpg of mxnet_mtcnn_face_detection")
    options = parser.parse_args()
    if options.faces:
        os.environ["FACES"] = str(Path(options.faces).resolve())
    peer = options.mxnet_python or mxnet_rcnn._peer()
    failed = count = 0
    for checkout in options.checkouts:
        name = checkout.resolve().name.rpartition("+")[2]
        for script in SCRIPTS:
            if script.repository != name or options.only not in script.arguments:
                continue
            good, words = check(checkout.resolve(), script, peer, options.mxnet_path)
            count, failed = count + 1, failed + (not good)
            print(f"{script}: {'' if good else 'DIFFERS: '}{words}", flush=True)
    print(f"{count - failed} of {count} scripts print and draw the same")
    raise SystemExit(failed > 0 or not count)


if __name__ == "__main__":
    main()
