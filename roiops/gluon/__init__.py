"""``mx.gluon``: models whose graph is Python."""

from . import block, contrib, data, loss, model_zoo, nn, rnn, utils
from .block import Block
from .hybrid import HybridBlock, SymbolBlock
from .parameter import Constant, DeferredInitializationError, Parameter, ParameterDict
from .trainer import Trainer

block.HybridBlock, block.SymbolBlock = HybridBlock, SymbolBlock  # MXNet has them in one module

__all__ = ["Block", "Constant", "DeferredInitializationError", "HybridBlock", "Parameter", "ParameterDict"]
__all__ += ["SymbolBlock", "Trainer", "block", "contrib", "data", "loss", "model_zoo", "nn", "rnn", "utils"]
