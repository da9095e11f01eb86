"""Train and run networks: ``mod.Module(symbol).fit(data)``."""

from .base_module import BaseModule
from .bucketing_module import BucketingModule
from .module import Module

__all__ = ["BaseModule", "BucketingModule", "Module"]
