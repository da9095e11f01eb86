"""``mxnet.image``: pictures read, resized, changed at random, and handed out in batches.

An image is an NDArray of shape (height, width, channels), with values from 0 to 255.
"""

import sys

from . import detection, recordio
from .augment import *  # noqa: F403
from .augment import __all__ as _augment
from .batches import *  # noqa: F403
from .batches import __all__ as _batches
from .detection import *  # noqa: F403
from .detection import __all__ as _detection
from .reading import *  # noqa: F403
from .reading import __all__ as _reading
from .reading import _get_interp_method as _get_interp_method

__all__ = [*_augment, *_batches, *_detection, *_reading, "recordio"]

image = sys.modules[__name__]  # MXNet has the same functions as mxnet.image.image, too
det = detection
