"""Products of matrices; ``tests/reference.py`` has them in plain loops: ``product``."""
