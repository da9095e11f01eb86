"""``python -m roiops.cli``."""

import sys

from . import main

sys.exit(main())
