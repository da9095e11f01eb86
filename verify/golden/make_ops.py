"""Tensor, network, loss and detection operators of MXNet: outputs, gradients and states.

    python verify/golden/make.py ops

The calls stand in ops_elementwise.py, ops_layout.py, ops_network.py, ops_detection.py and ops_algebra.py.
"""

import sys

import ops_algebra  # noqa: F401 (each registers its files)
import ops_detection  # noqa: F401
import ops_elementwise  # noqa: F401
import ops_layout  # noqa: F401
import ops_network  # noqa: F401
from ops_harness import run

if __name__ == "__main__":
    run(sys.argv[1:], __file__)
