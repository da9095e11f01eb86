"""What a .params file holds: ``arg:name`` is a parameter, ``aux:name`` an auxiliary state, on the CPU."""

from ..context import cpu
from ..errors import FormatError
from .ndarray import NDArray

__all__ = ["mean_of", "with_prefixes", "without_prefixes"]


def mean_of(arrays: list[NDArray]) -> NDArray:
    """One new array on the CPU of those that devices hold of a parameter."""
    copies = [each.copyto(cpu()) for each in arrays]
    return copies[0] if len(copies) == 1 else sum(copies[1:], start=copies[0]) / len(copies)


def with_prefixes(arg_params: dict, aux_params: dict) -> dict:
    """One dict of both kinds, as files hold them, on the CPU."""
    named = {f"arg:{name}": array.as_in_context(cpu()) for name, array in arg_params.items()}
    named.update({f"aux:{name}": array.as_in_context(cpu()) for name, array in aux_params.items()})
    return named


def without_prefixes(arrays, file: str, *, strict: bool = False) -> tuple[dict, dict]:
    """The two dicts that :func:`with_prefixes` merged, from what a file holds.

    With ``strict`` every name must have a prefix; otherwise those without one are parameters.
    """
    if not isinstance(arrays, dict):
        if not arrays:  # the file of a graph that has no parameters
            return {}, {}
        raise FormatError(
            f"{file}: holds {len(arrays)} arrays without names, so they are not parameters of a model"
        )
    found: dict[str, dict] = {"arg": {}, "aux": {}}
    for key, array in arrays.items():
        kind, _, rest = key.partition(":")
        has_prefix = kind in found and rest != ""
        if strict and not has_prefix:
            raise FormatError(f"{file}: names must start with 'arg:' or 'aux:', got {key!r}")
        name, kind = (rest, kind) if has_prefix else (key, "arg")
        if not strict and (name in found["arg"] or name in found["aux"]):
            raise FormatError(f"{file}: holds two arrays that are {name!r}, the later of which is {key!r}")
        found[kind][name] = array
    return found["arg"], found["aux"]
