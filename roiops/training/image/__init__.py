"""``mxnet.image``: pictures read, resized, changed at random, and handed out in batches.

An image is an NDArray of shape (height, width, channels), with values from 0 to 255.
"""

import sys

from . import augment, batches, detection, reading, recordio
from . import by_chance as _by_chance  # noqa: F401  (it adds to nd.image)
from .augment import *  # noqa: F403
from .batches import *  # noqa: F403
from .detection import *  # noqa: F403
from .reading import *  # noqa: F403
from .reading import _get_interp_method as _get_interp_method

__all__ = [*augment.__all__, *batches.__all__, *detection.__all__, *reading.__all__, "recordio"]

image = sys.modules[__name__]  # MXNet has the same functions as mxnet.image.image, too
det = detection
