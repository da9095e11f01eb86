"""Convolutions; ``tests/reference.py`` has them in plain loops: ``convolution``."""
