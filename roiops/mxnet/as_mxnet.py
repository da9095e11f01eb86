"""Run a script that imports mxnet, with roiops under that name.

    python -m roiops.as_mxnet script.py arguments...
    python -m roiops.as_mxnet -m package.module arguments...
    python -m roiops.as_mxnet --cpu script.py arguments...      # mx.gpu(0) is the CPU, too

The script finds the names that NumPy and Python had in MXNet's time, such as ``np.float`` and
``collections.Iterable``; so do the modules beside it, and GluonCV. Other packages do not.

``roiops.as_mxnet.install()`` gives a running program the mxnet, and GluonCV those names.
"""

import collections
import collections.abc
import functools
import importlib
import importlib.abc
import importlib.machinery
import logging
import re
import runpy
import sys
import sysconfig
import types
from pathlib import Path

import numpy as np

import roiops
from roiops import context
from roiops.errors import DeviceError, NotOfferedError
from roiops.mxnet.absent import ABSENT, OFTEN_IMPORTED, Absent, advice_for
from roiops.ndarray import creation
from roiops.operators.base import OperatorProperty

__all__ = ["install", "main"]

#: Scripts compare versions to decide what they may use; this is the one whose behaviour roiops has.
_MXNET_VERSION = "1.9.1"


class _Package(types.ModuleType):
    """``mxnet``: whatever roiops has, and a plain error for what it has not."""

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return getattr(roiops, name)
        except AttributeError:
            pass
        if name in OFTEN_IMPORTED:
            return Absent(name, ABSENT[name])
        try:
            return importlib.import_module(f"roiops.{name}")
        except ModuleNotFoundError:
            raise AttributeError(advice_for(name)) from None

    def __dir__(self):
        return dir(roiops)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``mxnet`` and ``mxnet.x.y``; the latter are the very modules ``roiops.x.y``."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname == "mxnet" or fullname.startswith("mxnet."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        parent, _, name = fullname.rpartition(".")
        if parent.startswith("roiops.") and parent in sys.modules:  # from mxnet.optimizer import LARS
            try:
                getattr(sys.modules[parent], name)
            except NotOfferedError as error:
                raise ImportError(error, name=fullname) from None
            except AttributeError:
                pass
        return None

    def create_module(self, spec):
        if spec.name == "mxnet":
            module = _Package("mxnet", roiops.__doc__)
            module.__version__, module.__file__ = _MXNET_VERSION, roiops.__file__
            return module
        module, before = sys.modules["mxnet"], None
        for part in spec.name.split(".")[1:]:
            if part == before:  # mxnet.io.io: here it is one module
                continue
            before = part
            try:
                module = getattr(module, part)
            except AttributeError as error:
                known = isinstance(error, NotOfferedError)
                advice = error if known else advice_for(spec.name.removeprefix("mxnet."))
                # A ModuleNotFoundError's text would be lost in `from mxnet import gluon`.
                raise ImportError(advice, name=spec.name) from None
        return _Alias(spec.name, module)

    def exec_module(self, module):
        if isinstance(module, _Alias):  # the real module takes the place of the one Python made a spec for
            sys.modules[module.__spec__.name] = module.target
            if isinstance(module.target, types.ModuleType):  # so that mxnet.symbol.contrib can be imported
                vars(module.target).setdefault("__path__", [])


class _Alias(types.ModuleType):
    def __init__(self, name, target):
        super().__init__(name)
        self.target = target


def install() -> None:
    """Make ``import mxnet`` give roiops. A real mxnet that is already imported is an error."""
    present = sys.modules.get("mxnet")
    if isinstance(present, _Package):
        return
    if present is not None:
        raise ImportError("as_mxnet: mxnet itself is already imported")
    sys.meta_path.insert(0, _Finder())
    sys.meta_path.append(_DistutilsFinder())
    restore_former_names(scripts=False)
    creation.refuses_unknown_shapes = True
    OperatorProperty.passes_over_parameters = True
    for operators in (roiops.nd.contrib, roiops.sym.contrib):  # GluonCV looks for names in their __dict__
        vars(operators).update((name, getattr(operators, name)) for name in dir(operators))


#: What NumPy called these until 1.24 and 2.0.
_FORMER_NUMPY_NAMES = {
    "Inf": np.inf,
    "Infinity": np.inf,
    "NINF": -np.inf,
    "NaN": np.nan,
    "PINF": np.inf,
    "alltrue": np.all,
    "asfarray": lambda a, dtype=np.float64: np.asarray(a, dtype),
    "asscalar": lambda a: np.asarray(a).item(),
    "bool8": np.bool_,
    "complex": complex,
    "complex_": np.complex128,
    "cumproduct": np.cumprod,
    "float": float,
    "float_": np.float64,
    "in1d": lambda a, *others, **named: np.isin(np.ravel(a), *others, **named),
    "infty": np.inf,
    "int": int,
    "int0": np.intp,
    "mat": np.asmatrix,
    "msort": lambda a: np.sort(a, axis=0),
    "object": object,
    "product": np.prod,
    "rank": np.ndim,
    "round_": np.round,
    "row_stack": np.vstack,
    "sometrue": np.any,
    "str": str,
    "string_": np.bytes_,
    "trapz": getattr(np, "trapezoid", None),  # NumPy below 2.0 has it by the former name
    "unicode": str,
    "unicode_": np.str_,
}


#: Installed packages that are written for MXNet.
_PACKAGES = ("gluoncv",)
_INSTALLED = tuple({str(Path(sysconfig.get_path(kind))) for kind in ("stdlib", "purelib", "platlib")})
#: Whether modules that are not installed, such as scripts, find the former names, too.
_scripts_find_them = False


def _is_of_that_time(names: dict) -> bool:
    """Whether a module's code may use the former names: that of scripts, and of packages for MXNet."""
    if names.get("__name__", "").split(".")[0] in _PACKAGES:
        return True
    return _scripts_find_them and not str(names.get("__file__") or "").startswith(_INSTALLED)


def _give_back(module, former: dict) -> None:
    """Let a module have further names, for code that may use them."""
    without = vars(module).get("__getattr__")
    if hasattr(without, "former"):
        return

    def __getattr__(name):
        if name in former and _is_of_that_time(sys._getframe(1).f_globals):
            return former[name]
        if without is not None:
            return without(name)
        raise AttributeError(f"module {module.__name__!r} has no attribute {name!r}")

    __getattr__.former = former
    module.__getattr__ = __getattr__


def restore_former_names(*, scripts: bool = True) -> None:
    """Give GluonCV, and scripts, the names that NumPy and ``collections`` had in MXNet's time."""
    global _scripts_find_them
    _scripts_find_them = _scripts_find_them or scripts
    _give_back(np, _FORMER_NUMPY_NAMES)
    _give_back(np.lib, {"pad": np.pad})
    # Until Python 3.10 these were in both.
    _give_back(collections, {name: getattr(collections.abc, name) for name in collections.abc.__all__})


def _restore_arguments() -> None:
    """Let ``np.reshape`` know ``newshape``, and ``np.fromstring`` read bytes, as until NumPy 2.3 and 2.2."""
    reshape, fromstring = np.reshape, np.fromstring

    @functools.wraps(reshape)
    def with_newshape(a, *args, **named):
        if "newshape" in named:
            args = named.pop("newshape"), *args  # NumPy calls it shape from 2.1 on
        return reshape(a, *args, **named)

    @functools.wraps(fromstring)
    def of_bytes(string, dtype=float, count=-1, sep="", **named):
        if sep:
            return fromstring(string, dtype, count, sep=sep, **named)
        raw = string.encode("latin1") if isinstance(string, str) else string
        return np.frombuffer(raw, dtype, count).copy()

    np.reshape, np.fromstring = with_newshape, of_bytes


@functools.total_ordering
class LooseVersion:
    """Numbers and words of a version, compared in order: GluonCV asks ``distutils``, gone since 3.12."""

    def __init__(self, text):
        self.version = [int(part) if part.isdigit() else part for part in re.findall(r"\d+|[a-z]+", text)]

    def __eq__(self, other):
        return self.version == other.version

    def __lt__(self, other):
        return self.version < other.version

    __hash__ = None


def _strtobool(text: str) -> int:
    """What ``distutils.util.strtobool`` gives."""
    words = ("n", "no", "f", "false", "off", "0"), ("y", "yes", "t", "true", "on", "1")
    for number, known in enumerate(words):
        if text.lower() in known:
            return number
    raise ValueError(f"invalid truth value {text!r}")


class _DistutilsFinder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds what scripts need of ``distutils`` where nobody else does: since Python 3.12."""

    names = {
        "distutils": {},
        "distutils.util": {"strtobool": _strtobool},
        "distutils.version": {"LooseVersion": LooseVersion},
    }

    def find_spec(self, fullname, path=None, target=None):
        if fullname not in self.names:
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=fullname == "distutils")

    def exec_module(self, module):
        vars(module).update(self.names[module.__name__])


def _run(argv, as_module: bool) -> None:
    """Run a script or module as ``__main__`` with its arguments."""
    sys.argv = argv
    if as_module:
        sys.path.insert(0, "")
        runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
    else:
        sys.path.insert(0, str(Path(argv[0]).resolve().parent))
        try:
            runpy.run_path(argv[0], run_name="__main__")
        except SyntaxError as error:
            if not _PYTHON_2.search((error.text or "").strip()):
                raise
            folder = Path(error.filename or argv[0]).parent
            sys.exit(
                f"as_mxnet: {error.filename}, line {error.lineno}: {error.msg}\nThis looks like Python 2. "
                "Have its syntax changed once, in a copy: "
                f"pip install fissix; python -m fissix -w -n {folder}"
            )


#: Lines that only Python 2 takes: print, exec and raise A, B; except A, b (until 3.14); <>; 0777; backquotes.
_PYTHON_2 = re.compile(r"^(print|exec)\b\s*[^\s(=]|^except\s[^()]*,\s*\w+\s*:|^raise\s.*,|<>|\b0[0-7]+\b|`")


def main(argv: list[str] | None = None) -> None:
    """Run what the command line says."""
    argv = sys.argv[1:] if argv is None else list(argv)
    as_module = on_cpu = False
    while argv and argv[0] in ("-m", "--cpu"):
        option = argv.pop(0)
        as_module, on_cpu = as_module or option == "-m", on_cpu or option == "--cpu"
    if not argv or argv[0] in ("-h", "--help"):
        print(__doc__.strip())
        raise SystemExit(0 if argv else 2)
    if argv[0].startswith("-"):
        print(f"as_mxnet: {argv[0]}: unknown option; --help lists them", file=sys.stderr)
        raise SystemExit(2)
    if not as_module and not Path(argv[0]).is_file():
        print(f"as_mxnet: {argv[0]}: no such file", file=sys.stderr)
        raise SystemExit(1)
    install()
    for name in ("numba", "PIL"):  # scripts turn on debugging to see MXNet's lines, not what these write
        logging.getLogger(name).setLevel(logging.WARNING)
    restore_former_names()
    _restore_arguments()
    if int(np.__version__.split(".")[0]) >= 2:
        np.set_printoptions(legacy="1.25")  # a number prints as 0.5, not as np.float64(0.5)
    if on_cpu:
        context.replace_gpus()
    try:
        _run(argv, as_module)
    except DeviceError:
        if not on_cpu:
            advice = "`python -m roiops.as_mxnet --cpu` runs a script that asks for GPUs on the CPU"
            print(f"as_mxnet: {advice}", file=sys.stderr)
        raise
