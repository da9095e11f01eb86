"""Checkpoints: a symbol's JSON and its parameters beside it."""

import logging
from collections import namedtuple

from .. import ndarray
from ..graph import functions as symbol
from ..ndarray.parameters import with_prefixes, without_prefixes

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
    return split_params(ndarray.load(file), file)


def split_params(arrays, file: str) -> tuple[dict, dict]:
    """``(arg_params, aux_params)`` of what the parameter file ``file`` holds, which may be nothing."""
    if not arrays:
        logging.warning("Params file '%s' is empty", file)
        return {}, {}
    return without_prefixes(arrays, file, strict=True)


def load_checkpoint(prefix, epoch):
    """``(symbol, arg_params, aux_params)`` that :func:`save_checkpoint` or MXNet wrote."""
    return (symbol.load(f"{prefix}-symbol.json"), *load_params(prefix, epoch))
