"""``roiops.torch``: the operators on regions of interest as PyTorch operators, forward and backward.

Functions and modules that torchvision has go by its names and take its arguments (:func:`roi_align`,
:class:`MultiScaleRoIAlign`, ...). :mod:`roiops.torch.op` has every operator on regions of interest that is
registered, under its own name and with its own parameters.
"""

try:
    import torch as _torch  # noqa: F401
except ImportError as error:
    raise ImportError("roiops.torch needs PyTorch 2.4 or newer: pip install torch") from error

from . import functions, library, modules, op
from .functions import *  # noqa: F403
from .modules import *  # noqa: F403

library.register_all()


def onnx_translation_table() -> dict:
    """The ROI operators for ``torch.onnx.export(..., dynamo=True)``, as its ``custom_translation_table``.

    The older exporter (``dynamo=False``) needs nothing: importing ``roiops.torch`` tells it of them.
    """
    from .onnx import translation_table  # which reads much that only an export needs

    library.register_all()
    return translation_table(library.OPERATORS.values())


__all__ = [*functions.__all__, *modules.__all__, "onnx_translation_table", "op"]
