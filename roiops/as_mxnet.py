"""Run a script that imports mxnet, with roiops under that name.

    python -m roiops.as_mxnet script.py arguments...
    python -m roiops.as_mxnet -m package.module arguments...

``roiops.as_mxnet.install()`` does the same within a running program, from there on.
"""

import importlib
import importlib.abc
import importlib.machinery
import runpy
import sys
import types
from pathlib import Path

import roiops

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
        try:
            return importlib.import_module(f"roiops.{name}")
        except ModuleNotFoundError:
            raise AttributeError(f"mxnet.{name}: roiops, which stands in for mxnet, has no {name}") from None

    def __dir__(self):
        return dir(roiops)


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds ``mxnet`` and ``mxnet.x.y``; the latter are the very modules ``roiops.x.y``."""

    def find_spec(self, fullname, path=None, target=None):
        if fullname == "mxnet" or fullname.startswith("mxnet."):
            return importlib.machinery.ModuleSpec(fullname, self, is_package=True)
        return None

    def create_module(self, spec):
        if spec.name == "mxnet":
            module = _Package("mxnet", roiops.__doc__)
            module.__version__ = _MXNET_VERSION
            return module
        module = sys.modules["mxnet"]
        for part in spec.name.split(".")[1:]:
            try:
                module = getattr(module, part)
            except AttributeError:
                raise ModuleNotFoundError(
                    f"No module named {spec.name!r}: roiops, which stands in for mxnet, has none",
                    name=spec.name,
                ) from None
        return _Alias(spec.name, module)

    def exec_module(self, module):
        if isinstance(module, _Alias):  # the real module takes the place of the one Python made a spec for
            sys.modules[module.__spec__.name] = module.target


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


def main(argv: list[str] | None = None) -> None:
    """Run a script or module as ``__main__`` with its arguments."""
    argv = sys.argv[1:] if argv is None else list(argv)
    as_module = argv[:1] == ["-m"]
    if as_module:
        del argv[0]
    if not argv or argv[0] in ("-h", "--help"):
        print(__doc__.strip())
        raise SystemExit(0 if argv else 2)
    install()
    if as_module:
        sys.path.insert(0, "")
        sys.argv = argv
        runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
        return
    if not Path(argv[0]).is_file():
        print(f"as_mxnet: {argv[0]}: no such file", file=sys.stderr)
        raise SystemExit(1)
    sys.path.insert(0, str(Path(argv[0]).resolve().parent))
    sys.argv = argv
    runpy.run_path(argv[0], run_name="__main__")


if __name__ == "__main__":
    main()
