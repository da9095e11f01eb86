"""Which ways there are to compute one thing, and which of them a user forces.

A way is chosen in Python, before a kernel is called, so that a call compiles that way and no other.
``ROIOPS_WAY`` names ways, separated by commas, that are taken wherever they apply, whatever they cost: to
find out which one computes a wrong number, or takes long. ``roiops doctor`` lists them.
"""

import importlib
import os
from typing import NamedTuple

from ..errors import ParamError

#: The modules that declare ways.
_MODULES = ("roiops.kernels.cpu.conv.convolution", "roiops.kernels.cpu.roi.average")


class Way(NamedTuple):
    """A way to compute what others compute, too, to the last bit or nearly."""

    name: str
    computes: str  # what the ways of one family compute
    applies: str  # to which calls
    taken: str  # when it is the cheapest, and why


_declared: dict[str, Way] = {}


def declare(name: str, computes: str, applies: str, taken: str) -> str:
    """Make a way known; returns its name. A name may stand for the same idea in several families."""
    _declared[f"{computes}: {name}"] = Way(name, computes, applies, taken)
    return name


def declared() -> list[Way]:
    """All ways."""
    for module in _MODULES:
        importlib.import_module(module)
    return list(_declared.values())


def asked() -> list[str]:
    """The names in ``ROIOPS_WAY``, each of which must be one that is declared."""
    names = [each.strip() for each in os.environ.get("ROIOPS_WAY", "").split(",") if each.strip()]
    for name in names:
        known = sorted({way.name for way in declared()})
        if name not in known:
            raise ParamError(f"ROIOPS_WAY must be one of {', '.join(known)}, got {name!r}")
    return names


def forced(*names: str) -> str | None:
    """The first way that ``ROIOPS_WAY`` asks for of those that apply to a call, or None."""
    if not os.environ.get("ROIOPS_WAY"):
        return None
    return next((name for name in asked() if name in names), None)
