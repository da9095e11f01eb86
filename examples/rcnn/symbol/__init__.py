"""The detectors' graphs."""

from .detectors import OUTPUTS, backbone_of, test_symbol, train_symbol

__all__ = ["OUTPUTS", "backbone_of", "test_symbol", "train_symbol"]
