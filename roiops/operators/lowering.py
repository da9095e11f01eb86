"""How an operator says what it is in ONNX: a function, declared beside it, that writes standard operators.

    @lowers("FullyConnected")
    def fully_connected(g, node, data, weight, bias=None):
        return g.Gemm(g.Flatten(data, axis=1), weight, bias, transB=1)

``g`` is a :class:`roiops.models.onnx.graph.Graph`, whose methods are ONNX's operators; ``node`` tells the
parameters (``node.params``) and what is known of the outputs; the inputs are values of the graph, the
auxiliary states last. The function returns the operator's outputs, as many of them as it can. It raises
:class:`CannotLower` with a reason where there is no way. Nothing here needs the onnx package.
"""

from typing import NamedTuple

from ..errors import MXNetError, RegistryError

#: The oldest of ONNX's opsets that is written.
OLDEST = 17


class CannotLower(MXNetError):
    """Why a node cannot be written as ONNX."""


class Lowering(NamedTuple):
    """A registered function, and what the converter has to know of it: :func:`lowers` says what that is."""

    function: object
    unused: tuple[str, ...]
    shape_only: tuple[str, ...]
    as_function: bool
    opset: int
    oldest: int


_lowerings: dict[tuple[str, str | None], Lowering] = {}


def lowers(
    *names: str,
    op_type: str | None = None,
    unused=(),
    shape_only=(),
    as_function=False,
    opset: int = OLDEST,
    oldest: int | None = None,
):
    """Decorator: the function writes the operators of these names, the first of each's own and aliases alike.

    Parameters
    ----------
    *names : str
        Names of registered operators; leave them out for a Custom operator.
    op_type : str, optional
        The name of a Custom operator, as given to ``roiops.operator.register``.
    unused : tuple of str
        Inputs that inference does not read: what only they need is left out of the model.
    shape_only : tuple of str
        Inputs of which only the shape matters.
    as_function : bool
        Where functions are asked for, put what is written into a function of the model, so that a reader
        sees one node.
    opset : int
        The first of ONNX's opsets that has the operators it writes: the oldest that a graph may be in.
    oldest : int, optional
        The first opset in which it can do with others, should that be asked for: ``g.opset`` tells.
    """
    keys = [("Custom", op_type)] if op_type else [(name, None) for name in names]

    def decorate(function):
        for key in keys:
            if key in _lowerings:
                raise RegistryError(f"operator {key[1] or key[0]!r} has a lowering to ONNX already")
            _lowerings[key] = Lowering(
                function, tuple(unused), tuple(shape_only), as_function, opset, oldest or opset
            )
        return function

    return decorate


def find(name: str, op_type: str | None = None) -> Lowering | None:
    """The lowering of the operator whose own name this is, or None."""
    return _lowerings.get((name, op_type))
