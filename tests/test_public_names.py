"""What a user finds by looking: no accidental names, and a docstring on every public one."""

import importlib
import inspect
import pkgutil

import pytest

import roiops

MODULES = sorted(
    module.name
    for module in pkgutil.walk_packages(roiops.__path__, "roiops.")
    if not module.name.startswith(("roiops.kernels", "roiops.cli", "roiops._version"))
)


def test_dir_lists_what_is_public():
    listed = [name for name in dir(roiops) if not name.startswith("__")]
    assert listed == sorted(name for name in roiops.__all__ if name != "__version__")
    assert all(hasattr(roiops, name) for name in listed)


def undocumented(module):
    """Public functions, classes and their public methods and properties that say nothing of themselves."""
    for name in getattr(module, "__all__", ()):
        value = getattr(module, name)
        if getattr(value, "__module__", None) != module.__name__:
            continue
        if callable(value) and not inspect.getdoc(value):
            yield name
        for attribute, member in vars(value).items() if inspect.isclass(value) else ():
            of_base = any(hasattr(base, attribute) for base in value.__mro__[1:])  # documented there
            function = member.fget if isinstance(member, property) else getattr(member, "__func__", member)
            if attribute.startswith("_") or of_base or not inspect.isfunction(function):
                continue
            if not function.__doc__:
                yield f"{name}.{attribute}"


@pytest.mark.parametrize("name", MODULES)
def test_public_names_have_docstrings(name):
    if name.startswith("roiops.torch"):
        pytest.importorskip("torch", reason="PyTorch is not installed")
    module = importlib.import_module(name)
    assert module.__doc__
    assert list(undocumented(module)) == []
