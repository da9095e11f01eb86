"""What MXNet's unit tests import besides the mxnet that roiops is: a pytest plugin that puts it in place.

``nose`` and ``distutils`` have left Python; what the tests use of them is here. For the parts of MXNet that
roiops does not offer there are names that can be imported, decorate and be derived from, and that fail with
:class:`AbsentFeature` as soon as they are used. ``mxnet.test_utils`` is MXNet's own file from the checkout,
so that nothing is checked by roiops' own tools.
"""

import ast
import ctypes
import functools
import importlib.machinery
import importlib.util
import inspect
import json
import math
import os
import re
import signal
import sys
import tempfile
import types
import unittest
from pathlib import Path

import numpy as np
import pytest

#: Parts of MXNet without a counterpart in roiops.
ABSENT = (
    "gluon",
    "kvstore_server",
    "library",
    "np",
    "npx",
    "numpy",
    "numpy_extension",
    "profiler",
    "recordio",
    "rnn",
    "rtc",
    "subgraph",
    "symbol.numpy",
    "contrib.amp",
    "contrib.autograd",
    "contrib.quantization",
    "contrib.svrg_optimization",
    "contrib.tensorrt",
    "contrib.text",
    "test_utils",
)


class AbsentFeature(NotImplementedError):
    """A test used a part of MXNet that roiops does not offer."""


# -- the parts that are not there ------------------------------------------------------------------------


class _AbsentType(type):
    """Every name of an absent part is a class: importable, a base for others, and an error when called."""

    def __call__(cls, *args, **kwargs):
        # A decorator gets a function or class of the test's own, and gives one that fails when called.
        if len(args) == 1 and not kwargs and isinstance(args[0], types.FunctionType | type):
            return _failing(cls.feature, args[0])
        raise AbsentFeature(cls.feature)

    def __getattr__(cls, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _absent(f"{cls.feature}.{name}")

    def __enter__(cls):
        raise AbsentFeature(cls.feature)

    def __exit__(cls, *error):
        return None

    def __instancecheck__(cls, instance):
        return False


def _absent(feature: str) -> type:
    return _AbsentType(feature.rpartition(".")[2], (), {"feature": feature})


def _failing(feature: str, wrapped):
    def fail(*args, **kwargs):
        raise AbsentFeature(feature)

    fail.__name__ = getattr(wrapped, "__name__", "absent")
    return fail


class _AbsentModule(types.ModuleType):
    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return _absent(f"{self.__name__.removeprefix('mxnet.')}.{name}")


# -- nose and distutils ----------------------------------------------------------------------------------


def _raises(*kinds):
    def decorate(test):
        def wrapped(*args, **kwargs):
            with pytest.raises(kinds):
                test(*args, **kwargs)

        wrapped.__name__ = test.__name__
        return wrapped

    return decorate


def _make_decorator(original):
    def decorate(replacement):
        replacement.__name__, replacement.__doc__ = original.__name__, original.__doc__
        replacement.__dict__.update(original.__dict__)
        return replacement

    return decorate


def _ok(value, message=None):
    assert value, message


def _nose() -> dict[str, types.ModuleType]:
    tools = types.ModuleType("nose.tools")
    case = unittest.TestCase()
    case.maxDiff = None
    for name in dir(case):
        if name.startswith("assert") and name not in ("assertEquals",):
            snake = re.sub(r"(?<=[a-z])([A-Z])", lambda found: "_" + found[1].lower(), name)
            setattr(tools, snake, getattr(case, name))
    tools.raises, tools.make_decorator, tools.ok_ = _raises, _make_decorator, _ok
    tools.eq_ = case.assertEqual
    tools.nottest = lambda test: test
    nose = types.ModuleType("nose")
    nose.tools, nose.SkipTest = tools, unittest.SkipTest
    return {"nose": nose, "nose.tools": tools}


class LooseVersion:
    """Versions of numbers and words, as ``distutils.version`` compared them."""

    def __init__(self, text):
        self.parts = [int(part) if part.isdigit() else part for part in re.findall(r"\d+|[a-z]+", str(text))]

    def _compare(self, other):
        other = other if isinstance(other, LooseVersion) else LooseVersion(other)
        return (self.parts > other.parts) - (self.parts < other.parts)

    def __lt__(self, other):
        return self._compare(other) < 0

    def __le__(self, other):
        return self._compare(other) <= 0

    def __gt__(self, other):
        return self._compare(other) > 0

    def __ge__(self, other):
        return self._compare(other) >= 0

    def __eq__(self, other):
        return self._compare(other) == 0

    __hash__ = None


def _distutils() -> dict[str, types.ModuleType]:
    version = types.ModuleType("distutils.version")
    version.LooseVersion = LooseVersion
    distutils = types.ModuleType("distutils")
    distutils.version = version
    return {"distutils": distutils, "distutils.version": version}


# -- mxnet -----------------------------------------------------------------------------------------------


class _Features(dict):
    """Which optional parts of MXNet's build there are: none."""

    def is_enabled(self, name: str) -> bool:
        return False


def _put(name: str, module) -> None:
    """Make ``module`` what ``import mxnet.<name>`` gives."""
    sys.modules[f"mxnet.{name}"] = module
    above, _, last = name.rpartition(".")
    setattr(importlib.import_module(f"mxnet.{above}".rstrip(".")), last, module)


def _has(name: str) -> bool:
    from roiops.mxnet.absent import Absent

    try:
        module = importlib.import_module(f"mxnet.{name}")
    except ImportError:
        return False
    return not isinstance(module, Absent)  # one that can be imported, but holds nothing


def _lend(module, **names) -> None:
    """Names that MXNet's tools and tests import from a module that is there; real ones are left."""
    for name, value in names.items():
        if not hasattr(module, name):
            setattr(module, name, value)


def install(checkout: Path) -> None:
    """Put roiops and all stand-ins in place of what the tests import."""
    import mxnet_waits

    from roiops.mxnet import as_mxnet

    as_mxnet.install()
    as_mxnet.restore_former_names()
    sys.modules.update({**_nose(), **_distutils()})
    import mxnet

    if not _has("util"):
        util = _AbsentModule("mxnet.util")
        util.getenv = lambda name: os.environ.get(name)
        util.setenv = lambda name, value: os.environ.__setitem__(name, value)
        _put("util", util)
    _lend(mxnet.util, use_np=_absent("numpy interface"), getenv=os.environ.get)
    if not _has("runtime"):
        runtime = _AbsentModule("mxnet.runtime")
        runtime.Features = _Features
        _put("runtime", runtime)
    for name in ABSENT:
        if name == "test_utils" or not _has(name):
            _put(name, _AbsentModule(f"mxnet.{name}"))
    mxnet_waits.install(mxnet)
    codes = {"undefined": -1, "default": 0, "row_sparse": 1, "csr": 2}
    _lend(importlib.import_module("mxnet.ndarray.ndarray"), _STORAGE_TYPE_STR_TO_ID=codes, py_slice=slice)
    absent_base = ("NDArrayHandle", "_LIB", "c_str", "check_call", "_as_list")
    _lend(mxnet.base, **{name: _absent(f"base.{name}") for name in absent_base})
    # MXNet's guess of what NumPy says itself: whether a slice lies in one piece.
    _lend(mxnet.nd.NDArray, _basic_indexing_slice_is_contiguous=_is_contiguous)
    _relax_chisquare()
    vision = mxnet.gluon.model_zoo.vision
    vision.get_model, vision.get_resnet = _made(vision.get_model), _made(vision.get_resnet)
    path = checkout / "python" / "mxnet" / "test_utils.py"
    spec = importlib.util.spec_from_file_location("mxnet.test_utils", path)
    module = importlib.util.module_from_spec(spec)
    _put("test_utils", module)
    spec.loader.exec_module(module)


def _made(maker):
    """What makes networks, with parameters where the tests ask for those that MXNet downloads.

    They are random ones, and the same for networks of the same kind, of which some tests make two.
    """

    @functools.wraps(maker)
    def make(*args, pretrained=False, ctx=None, **kwargs):
        net = maker(*args, **kwargs)
        if pretrained:
            import mxnet

            net.initialize(mxnet.init.Xavier(), ctx=ctx)
            net(mxnet.nd.zeros((1, 3, 224, 224)))
            for number, parameter in enumerate(net.collect_params().values()):
                if parameter.name.endswith("weight"):
                    values = np.random.RandomState(number).normal(size=parameter.shape)
                    parameter.set_data(mxnet.nd.array(values / math.sqrt(values[0].size)))
        return net

    return make


def _is_contiguous(key, shape) -> bool:
    return np.empty(shape, bool)[key].flags.contiguous


def _relax_chisquare() -> None:
    """SciPy of MXNet's time did not ask that the expected counts add up to the observed ones exactly."""
    try:
        from scipy import stats
    except ImportError:
        return
    strict = stats.chisquare
    if "sum_check" in inspect.signature(strict).parameters:
        stats.chisquare = lambda *args, **kwargs: strict(*args, **{"sum_check": False, **kwargs})


# -- NumPy of MXNet's time -------------------------------------------------------------------------------


def _former_index(index):
    """A list with slices or arrays in it, which NumPy took for a tuple until 1.23."""
    if isinstance(index, list) and any(isinstance(each, slice | np.ndarray) for each in index):
        return tuple(index)
    return index


class _FormerIndices(ast.NodeTransformer):
    def visit_Subscript(self, node):
        self.generic_visit(node)
        if isinstance(node.slice, ast.Name):
            former = ast.Name("_former_index", ast.Load())
            node.slice = ast.Call(former, [node.slice], [])
        return node


class _TestFile(importlib.machinery.SourceFileLoader):
    """Loads a test file, with lists for indices as NumPy took them."""

    def get_code(self, fullname):
        tree = _FormerIndices().visit(ast.parse(self.get_data(self.path)))
        return compile(ast.fix_missing_locations(tree), self.path, "exec")

    def exec_module(self, module):
        module._former_index = _former_index
        # What `from mxnet.operator import *` gives, too: that module imports them for itself.
        import mxnet

        module.ctypes, module.NDArray = ctypes, mxnet.nd.NDArray
        module.NDArrayHandle = mxnet.base.NDArrayHandle
        super().exec_module(module)


class _TestFiles:
    """Finds ``test_*`` of the checkout."""

    @staticmethod
    def find_spec(fullname, path=None, target=None):
        file = Path.cwd() / f"{fullname}.py"
        if fullname.startswith("test_") and file.exists():
            return importlib.util.spec_from_loader(fullname, _TestFile(fullname, str(file)))
        return None


_arange = np.arange


@functools.wraps(_arange)  # with its text, of which numpy.ma makes its own
def _former_arange(*args, **kwargs):
    # Unsigned numbers from a negative one, which went round until NumPy 2.0.
    try:
        return _arange(*args, **kwargs)
    except OverflowError:
        return _arange(*args).astype(kwargs["dtype"])


# -- the pytest plugin -----------------------------------------------------------------------------------


def _note(**result) -> None:
    """Write one result at once, so that those before a crash are not lost."""
    with open(os.environ["MXNET_RESULTS"], "a", encoding="utf-8") as file:
        file.write(json.dumps(result) + "\n")


class TookTooLong(Exception):
    """A test was stopped at its time limit."""


def pytest_configure(config):
    install(Path(os.environ["MXNET_CHECKOUT"]))
    np.arange = _former_arange
    sys.meta_path.insert(0, _TestFiles())


def pytest_collection_finish(session):
    """Pictures in place of those that the tests download; as many, so that their counts hold."""
    for item in session.items:
        tests = getattr(item, "cls", None)
        if tests is not None and getattr(tests, "IMAGES", None) == []:
            tests.IMAGES = _make_pictures(16)
        if hasattr(item.module, "get_mnist_ubyte"):
            item.module.get_mnist_ubyte = _make_mnist
        if item.name == "test_datasets":
            _make_datasets()
        if hasattr(item.module, "prepare_record"):
            os.makedirs("data/test_images/test_images", exist_ok=True)
            _make_pictures(16, "data/test_images/test_images")


def _make_datasets() -> None:
    """Files of the size and layout of MNIST and CIFAR, where ``gluon.data.vision`` looks for them."""
    for folder in ("data/mnist", "data/fashion-mnist"):
        _make_mnist(folder)
    batches = [f"data_batch_{i}.bin" for i in range(1, 6)]
    for folder, row, counts in (
        ("data/cifar10", 3073, dict.fromkeys([*batches, "test_batch.bin"], 10000)),
        ("data/cifar100", 3074, {"train.bin": 50000, "test.bin": 10000}),
    ):
        os.makedirs(folder, exist_ok=True)
        for name, count in counts.items():
            with open(f"{folder}/{name}", "wb") as file:
                file.truncate(count * row)


def _make_mnist(folder: str = "data") -> None:
    """Files of MNIST's size and layout with noise in them, where ``get_mnist_ubyte`` puts the real ones."""
    os.makedirs(folder, exist_ok=True)
    rng = np.random.default_rng(0)
    for part, count in (("train", 60000), ("t10k", 10000)):
        pictures = rng.integers(0, 256, (count, 28, 28), np.uint8)
        labels = rng.integers(0, 10, count, np.uint8)
        for name, kind, values in (("images-idx3", 2051, pictures), ("labels-idx1", 2049, labels)):
            head = np.array([kind, *values.shape], ">i4").tobytes()
            Path(f"{folder}/{part}-{name}-ubyte").write_bytes(head + values.tobytes())


def _make_pictures(count: int, folder: str | None = None) -> list[str]:
    from PIL import Image

    rng, folder = np.random.default_rng(0), folder or tempfile.mkdtemp()
    paths = [os.path.join(folder, f"{number}.png") for number in range(count)]
    for path in paths:
        height, width = rng.integers(60, 120, 2)
        pixels = rng.integers(0, 256, (height // 8, width // 8, 3)).repeat(8, 0).repeat(8, 1)
        Image.fromarray(pixels.astype(np.uint8)).save(path)
    return paths


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call(item):
    limit = int(os.environ["MXNET_TEST_SECONDS"])

    def stop(signal_number, frame):
        raise TookTooLong(f"stopped after {limit} s")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(limit)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(item, call):
    report = (yield).get_result()
    if report.when == "call" or report.outcome != "passed":
        _note(
            test=item.name,
            outcome=report.outcome,
            seconds=round(report.duration, 1),
            **_why(call.excinfo, report),
        )


def pytest_collectreport(report):
    if report.failed:
        _note(test="(the file)", outcome="failed", why=str(report.longrepr).strip().splitlines()[-1])


def _why(excinfo, report) -> dict:
    if report.outcome == "passed" or excinfo is None:
        return {}
    error = excinfo.value
    while error is not None:
        if isinstance(error, AbsentFeature):
            return {"absent": str(error)}
        error = error.__cause__ or error.__context__
    lines = str(excinfo.value).strip().splitlines() or [""]
    return {"why": f"{excinfo.typename}: {lines[0]}"[:300], "line": _line_of(excinfo)}


def _line_of(excinfo) -> int:
    """The last line of the test file itself that was at work."""
    lines = [
        entry.lineno + 1 for entry in excinfo.traceback if Path(str(entry.path)).name.startswith("test_")
    ]
    return lines[-1] if lines else 0
