"""The built-in operators. Importing a family registers its operators; nothing is compiled by that."""

from . import custom, detection, loss, nn, roi, tensor
