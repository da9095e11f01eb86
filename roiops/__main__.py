"""``python -m roiops`` is the command ``roiops``, also where the folder of commands is not on the path."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
