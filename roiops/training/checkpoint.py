"""Checkpoints: a symbol's JSON and its parameters beside it."""

import logging
from collections import namedtuple

from .. import ndarray
from ..context import cpu
from ..errors import FormatError
from ..graph import functions as symbol

__all__ = ["BatchEndParam", "load_checkpoint", "load_params", "save_checkpoint"]

#: What batch-end and eval-end callbacks receive.
BatchEndParam = namedtuple("BatchEndParams", ["epoch", "nbatch", "eval_metric", "locals"])


def save_checkpoint(prefix, epoch, symbol, arg_params, aux_params, remove_amp_cast=True) -> None:
    """Write ``<prefix>-symbol.json`` and ``<prefix>-<epoch>.params``, as MXNet reads them.

    Parameters
    ----------
    symbol : Symbol or None
        The network; None writes the parameters only.
    arg_params, aux_params : dict of NDArray
        Parameters and auxiliary states by name.
    """
    if symbol is not None:
        symbol.save(f"{prefix}-symbol.json", remove_amp_cast=remove_amp_cast)
    file = f"{prefix}-{epoch:04d}.params"
    ndarray.save(file, with_prefixes(arg_params, aux_params))
    logging.info('Saved checkpoint to "%s"', file)


def load_params(prefix, epoch):
    """``(arg_params, aux_params)`` from ``<prefix>-<epoch>.params``."""
    file = f"{prefix}-{epoch:04d}.params"
    return without_prefixes(ndarray.load(file), file)


def load_checkpoint(prefix, epoch):
    """``(symbol, arg_params, aux_params)`` that :func:`save_checkpoint` or MXNet wrote."""
    return (symbol.load(f"{prefix}-symbol.json"), *load_params(prefix, epoch))


def with_prefixes(arg_params: dict, aux_params: dict) -> dict:
    """One dict of both kinds, as parameter files hold them: ``arg:name`` and ``aux:name``."""
    named = {f"arg:{name}": array.as_in_context(cpu()) for name, array in arg_params.items()}
    named.update({f"aux:{name}": array.as_in_context(cpu()) for name, array in aux_params.items()})
    return named


def without_prefixes(arrays, file: str) -> tuple[dict, dict]:
    """The two dicts that :func:`with_prefixes` merged; ``file`` is for the error."""
    found = {"arg": {}, "aux": {}}
    if not arrays:
        logging.warning("Params file '%s' is empty", file)
        return found["arg"], found["aux"]
    if not isinstance(arrays, dict):
        raise FormatError(
            f"{file}: holds {len(arrays)} arrays without names, not the parameters of a network"
        )
    for key, array in arrays.items():
        kind, _, name = key.partition(":")
        if kind not in found or not name:
            raise FormatError(f"{file}: names must start with 'arg:' or 'aux:', got {key!r}")
        found[kind][name] = array
    return found["arg"], found["aux"]
