"""Published detection and recognition networks as symbols, for ``verify/check_model_zoo.py``.

Written from the published architectures. ``mx`` is whichever of ``mxnet`` and ``roiops`` is to build them, so
this folder keeps to Python 3.8 and imports neither.
"""
