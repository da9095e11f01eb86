"""``mx.log``: a logger of ``logging``, made in one call."""

import logging
from logging import CRITICAL, DEBUG, ERROR, INFO, NOTSET, WARNING

__all__ = ["CRITICAL", "DEBUG", "ERROR", "INFO", "NOTSET", "WARNING", "getLogger", "get_logger"]


def get_logger(name=None, filename=None, filemode=None, level=WARNING):
    """The logger of a name, which writes to a file, or to the terminal's errors."""
    logger = logging.getLogger(name)
    if name is not None and not getattr(logger, "_init_done", False):
        logger._init_done = True
        handler = logging.FileHandler(filename, filemode or "a") if filename else logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(levelname).1s%(asctime)s %(message)s", "%m%d %H:%M:%S"))
        logger.addHandler(handler)
        logger.setLevel(level)
    return logger


getLogger = get_logger
