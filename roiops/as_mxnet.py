"""``python -m roiops.as_mxnet script.py``: see :mod:`roiops.mxnet.as_mxnet`."""

from .mxnet.as_mxnet import install, main

__all__ = ["install", "main"]

if __name__ == "__main__":
    main()
