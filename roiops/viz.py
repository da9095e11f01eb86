"""Look at a graph: a table of its layers, or a picture through graphviz."""

import math
import warnings
from collections import Counter

from .errors import GraphError, InputError, MXNetError, nearest
from .graph import nodes as graph

__all__ = ["plot_network", "print_summary"]

_COLOURS = {
    "Convolution": "#fb8072",
    "Deconvolution": "#fb8072",
    "FullyConnected": "#fb8072",
    "BatchNorm": "#bebada",
    "Activation": "#ffffb3",
    "LeakyReLU": "#ffffb3",
    "Pooling": "#80b1d3",
    "Concat": "#fdb462",
    "Flatten": "#fdb462",
    "Reshape": "#fdb462",
    "SoftmaxOutput": "#b3de69",
}
_ROI_COLOUR, _OTHER_COLOUR, _VARIABLE_COLOUR = "#8dd3c7", "#d9d9d9", "#ffffff"


def _shapes(symbol, shape):
    if not hasattr(symbol, "heads"):
        raise InputError(f"viz: symbol must be a Symbol, got {type(symbol).__name__}")
    inputs = symbol.list_inputs()
    for name in shape or ():
        if name not in inputs:
            raise GraphError(f"viz: {name!r} is not an input of the graph{nearest(name, inputs)}")
    order = graph.topological_order(symbol.heads)
    given = {name: graph.whole_sizes(name, s) for name, s in (shape or {}).items()}
    return order, graph.infer_shapes(order, given)


def _is_input(node, given) -> bool:
    suffixes = ("_weight", "_bias", "_gamma", "_beta", "_moving_mean", "_moving_var", "_moving_inv_var")
    return node.is_variable and (node.name in given or not node.name.endswith(suffixes))


def print_summary(symbol, shape=None, line_length: int = 120, positions=(0.44, 0.64, 0.74, 1.0)) -> None:
    """Print MXNet's table of layers: name and operator, shape without the batch, parameters, inputs.

    Of the variables only the first has a row. Parameters are counted for every operator, where MXNet counts
    those of convolutions, dense layers, embeddings and batch normalizations only.

    Parameters
    ----------
    symbol : Symbol
        The network.
    shape : dict of str to tuple, optional
        Shapes of the inputs; without them shapes and parameter counts stay open.
    line_length : int
        Width of the table.
    positions : sequence of float
        Where the columns end, as fractions of the width.
    """
    order, shapes = _shapes(symbol, shape)
    ends = [int(line_length * p) if positions[-1] <= 1 else int(p) for p in positions]

    def row(*fields):
        line = ""
        for field, end in zip(fields, ends, strict=True):
            line = (line + str(field))[:end].ljust(end)
        print(line)

    print("_" * line_length)
    row("Layer (type)", "Output Shape", "Param #", "Previous Layer")
    print("=" * line_length)
    total, counted = 0, set()
    for node in order:
        if node.is_variable and node is not order[0]:
            continue
        parameters, previous = 0, []
        arguments = len(node.prop.list_arguments()) if node.prop else 0
        for child, _ in node.inputs[:arguments]:
            if not child.is_variable or child is order[0]:
                previous.append(child.name)
            elif not _is_input(child, shape or {}) and id(child) not in counted:
                counted.add(id(child))
                size = shapes[id(child)][0]
                parameters += math.prod(size) if graph.known(size) else 0
        total += parameters
        known = [s for s in shapes[id(node)][: node.num_visible] if graph.known(s)]
        size = ", ".join("x".join(map(str, s[1:])) for s in known) if shape else ""
        first, *others = previous or [""]
        row(f"{node.name}({node.op or 'null'})", size, parameters, first)
        for other in others:
            row("", "", "", other)
        print(("=" if node is order[-1] else "_") * line_length)
    print(f"Total params: {total}")
    print("_" * line_length)


def _quote(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


class Dot:
    """Graphviz source. Shows itself in a notebook, and renders, where graphviz is installed."""

    def __init__(self, source: str, name: str, form: str):
        self.source, self.name, self.format = source, name, form

    def save(self, filename: str | None = None) -> str:
        """Write the source to a file and return its name."""
        filename = filename or f"{self.name}.gv"
        with open(filename, "w", encoding="utf-8") as file:
            file.write(self.source)
        return filename

    def render(self, filename: str | None = None) -> str:
        """Draw the picture with the ``graphviz`` package and its ``dot`` program; returns the file's name."""
        try:
            import graphviz
        except ImportError:
            raise MXNetError(
                "plot_network: rendering needs the graphviz package (pip install graphviz) and the dot "
                "program; save() writes the source without them"
            ) from None
        source = graphviz.Source(self.source, filename=filename or self.name, format=self.format)
        return source.render(cleanup=True)

    def _repr_svg_(self):
        try:
            import graphviz

            return graphviz.Source(self.source).pipe(format="svg").decode("utf-8")
        except Exception:
            return None  # the notebook then shows the source

    def __str__(self):
        return self.source


def plot_network(
    symbol,
    title: str = "plot",
    save_format: str = "pdf",
    shape=None,
    dtype=None,
    node_attrs=None,
    hide_weights: bool = True,
) -> Dot:
    """The graph as graphviz source, with the shapes of what flows where ``shape`` tells them.

    Parameters
    ----------
    symbol : Symbol
        The network.
    title, save_format : str
        Name and format of the picture.
    shape : dict of str to tuple, optional
        Shapes of the inputs.
    dtype : optional
        Accepted for MXNet's sake.
    node_attrs : dict of str, optional
        Further graphviz attributes of every node.
    hide_weights : bool
        Whether weights and other parameters are left out.
    """
    order, shapes = _shapes(symbol, shape)
    _warn_of_equal_names(order)
    common = {"shape": "box", "style": "filled", "fontsize": "11", **(node_attrs or {})}
    attributes = ", ".join(f"{k}={_quote(str(v))}" for k, v in common.items())
    lines = [f"digraph {_quote(title)} {{", "  rankdir=BT;", f"  node [{attributes}];"]
    shown = {
        id(node): f"n{i}"
        for i, node in enumerate(order)
        if not (hide_weights and node.is_variable and not _is_input(node, shape or {}))
    }
    for node in order:
        if id(node) not in shown:
            continue
        colour = _VARIABLE_COLOUR if node.is_variable else _COLOURS.get(node.op, _OTHER_COLOUR)
        if node.op and "ROI" in node.op:
            colour = _ROI_COLOUR
        words = [node.name] if node.is_variable else [node.name, node.op, *_details(node)]
        text = "\\n".join(_quote(line)[1:-1] for line in words)
        lines.append(f'  {shown[id(node)]} [label="{text}", fillcolor="{colour}"];')
        for child, index in node.inputs:
            if id(child) in shown:
                flowing = shapes[id(child)][index]
                label = f' [label="{graph.format_shape(flowing)}", fontsize=9]'
                text = label if graph.known(flowing) else ""
                lines.append(f"  {shown[id(child)]} -> {shown[id(node)]}{text};")
    return Dot("\n".join([*lines, "}"]), title, save_format)


def _warn_of_equal_names(order) -> None:
    counts = Counter(node.name for node in order)
    if repeated := [name for name, count in counts.items() if count > 1]:
        warnings.warn(
            "There are multiple variables with the same name in your graph, this may result in cyclic "
            f"graph. Repeated names: {','.join(repeated)}",
            RuntimeWarning,
            stacklevel=3,
        )


def _details(node) -> list[str]:
    wanted = (
        "kernel",
        "stride",
        "num_filter",
        "num_hidden",
        "act_type",
        "pool_type",
        "pooled_size",
        "dialect",
    )
    found = [f"{key}={node.attrs[key]}" for key in wanted if key in node.attrs]
    return [", ".join(found)] if found else []
