"""MXNet's symbol JSON: writing it as MXNet 1.9 does, reading every era of it.

What changed over the years: operator parameters stood under ``param`` with other attributes under
``attr`` (to 0.8), then all under ``attr`` (0.9 to 0.12), then under ``attrs``; auxiliary states were not
listed as inputs (to 0.8); entries had two numbers, then three; annotations such as ``lr_mult`` lost their
bare names, and ``weight_lr_mult`` on an operator became ``__lr_mult__`` of its weight.
"""

import json
import re

from .. import registry
from ..errors import FormatError, MXNetError, RegistryError
from ..shapes import is_np_shape, np_shape
from .naming import HIDDEN_KEYS
from .nodes import Node, operator_params, parse_shape, topological_order

__all__ = ["dump", "parse", "saved_by", "unsupported", "unsupported_message"]

_VERSION = 10901
#: Parameters that a file by MXNet leaves out because it knows one choice only.
_IMPLIED = {"ROIAlign": {"dialect": "mxnet"}}


# -- writing ---------------------------------------------------------------------------------------------


def dump(heads) -> str:
    """The JSON text of the graph below ``heads``."""
    order = topological_order(heads)
    number = {id(node): i for i, node in enumerate(order)}
    versions: dict[int, int] = {}
    nodes, rows = [], [0]
    for node in order:
        rows.append(rows[-1] + node.num_outputs)
        aux = len(node.prop.list_auxiliary_states()) if node.prop else 0
        inputs = []
        for position, (child, index) in enumerate(node.inputs):
            version = 0
            if position >= len(node.inputs) - aux:  # MXNet counts the writers of an auxiliary state
                version = versions[id(child)] = versions.get(id(child), 0) + 1
            inputs.append([number[id(child)], index, version])
        nodes.append((node, inputs))
    heads_list = [[number[id(node)], index, versions.get(id(node), 0)] for node, index in heads]
    variables = [i for i, node in enumerate(order) if node.is_variable]
    return (
        '{\n  "nodes": [\n'
        + ", \n".join(_node_text(node, inputs) for node, inputs in nodes)
        + '\n  ], \n  "arg_nodes": '
        + _numbers_text(variables)
        + ', \n  "node_row_ptr": '
        + _numbers_text(rows)
        + ', \n  "heads": '
        + json.dumps(heads_list)
        + f', \n  "attrs": {_graph_attributes()}\n}}'
    )


def _graph_attributes() -> str:
    version = f'"mxnet_version": ["int", {_VERSION}]'
    if not is_np_shape():
        return f"{{{version}}}"
    return f'{{\n    "is_np_shape": ["int", 1], \n    {version}\n  }}'


def _numbers_text(numbers) -> str:
    """A list of numbers, broken into lines where it is long, as MXNet does."""
    if len(numbers) <= 10:
        return json.dumps(numbers)
    return "[\n    " + ", \n    ".join(str(n) for n in numbers) + "\n  ]"


def _quoted(text: str) -> str:
    """Text as MXNet reads it, which knows no numbers of characters."""
    parts = re.split(r"([\x00-\x1f])", text)
    parts[1::2] = (_ESCAPES.get(each, each) for each in parts[1::2])
    parts[::2] = (json.dumps(each, ensure_ascii=False)[1:-1] for each in parts[::2])
    return f'"{"".join(parts)}"'


_ESCAPES = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def _node_text(node: Node, inputs) -> str:
    lines = [f'      "op": {_quoted(node.op or "null")}', f'      "name": {_quoted(node.name)}']
    if node.attrs:
        items = [f"{_quoted(k)}: {_quoted(v)}" for k, v in sorted(node.attrs.items())]
        if len(items) == 1:
            lines.append(f'      "attrs": {{{items[0]}}}')
        else:
            lines.append('      "attrs": {\n        ' + ", \n        ".join(items) + "\n      }")
    lines.append(f'      "inputs": {json.dumps(inputs)}')
    if node.subgraphs:
        lines.append(f'      "subgraphs": {json.dumps(node.subgraphs)}')
    return "    {\n" + ", \n".join(lines) + "\n    }"


# -- reading ---------------------------------------------------------------------------------------------


def parse(text: str, source: str = "symbol JSON", problems: list[str] | None = None) -> list:
    """The heads of the graph in ``text``. ``source`` names it in errors.

    A node whose operator is not registered is kept, so that the graph can be inspected; using it raises.
    With a list for ``problems``, so is a node whose parameters the operator does not take; the reason is
    appended to the list.
    """
    try:
        document = json.loads(text, strict=False)  # MXNet writes control characters as they are
    except (ValueError, RecursionError) as error:
        raise FormatError(f"{source}: not JSON: {error}") from None
    if not isinstance(document, dict) or not isinstance(document.get("nodes"), list):
        raise FormatError(f"{source}: has no list of nodes, so it is not a saved symbol")
    nodes: list[Node] = []
    version = _version_number(document) or 800
    try:
        for position, raw in enumerate(document["nodes"]):
            nodes.append(_read_node(raw, nodes, position, version, problems))
        heads = _entries(document.get("heads"), nodes, "heads")
    except MXNetError as error:
        raise type(error)(f"{source}: {error}") from None
    if is_np_shape() and not _has_np_shape(document):
        _translate_shapes(nodes)
    if not heads:
        if not nodes:
            raise FormatError(f"{source}: holds no nodes")
        heads = [(nodes[-1], 0)]
    return heads


def saved_by(text: str) -> str | None:
    """Which MXNet saved this JSON, as ``"MXNet 1.9.1"``; None where the file does not say."""
    number = _version_number(json.loads(text, strict=False))
    return number and f"MXNet {number // 10000}.{number // 100 % 100}.{number % 100}"


def _version_number(document) -> int | None:
    """The version in a file as one number, 10901 for 1.9.1; files before 0.9 have none."""
    attributes = document.get("attrs")
    kind_and_value = attributes.get("mxnet_version") if isinstance(attributes, dict) else None
    if not isinstance(kind_and_value, list) or len(kind_and_value) != 2 or type(kind_and_value[1]) is not int:
        return None
    return kind_and_value[1]


def _has_np_shape(document) -> bool:
    """Whether the file was written in NumPy's convention of shapes."""
    attributes = document.get("attrs")
    return isinstance(attributes, dict) and attributes.get("is_np_shape") == ["int", 1]


def _translate_shapes(nodes) -> None:
    """Say in NumPy's convention what variables say of their shapes in the older one."""
    for node in nodes:
        if node.is_variable and "__shape__" in node.attrs:
            with np_shape(False):
                shape = parse_shape(node.attrs["__shape__"], node.name)
            node.attrs["__shape__"] = str(shape)


def _read_node(raw, nodes, position, version, problems) -> Node:
    if not isinstance(raw, dict) or not isinstance(raw.get("op"), str) or not raw["op"]:
        raise FormatError(f"node {position}: has no operator name")
    name = raw.get("name")
    if not isinstance(name, str):
        raise FormatError(f"node {position}: has no name")
    attrs = _attributes(raw, name)
    inputs = _entries(raw.get("inputs"), nodes, f"node {name!r}")
    if raw["op"] == "null":
        return Node(None, name, attrs)
    node = Node(raw["op"], name, attrs, inputs)
    node.subgraphs = raw.get("subgraphs") or None
    found = registry.find(raw["op"])
    if found is None or node.subgraphs:
        return node
    if found.variadic and found.variadic not in attrs:
        attrs[found.variadic] = str(len(inputs))
    for key, value in _IMPLIED.get(raw["op"], {}).items():
        attrs.setdefault(key, value)
    if version < 905 and raw["op"] in ("argmax", "argmin") and attrs.get("axis") == "-1":
        del attrs["axis"]  # -1 used to mean all axes
    hand_down = _take_input_annotations(attrs, found)
    try:
        # MXNet passes over attributes of operators that have no parameters: zeros_like(x, dtype=...).
        given = operator_params(attrs) if found.param.fields else {}
        node.prop = found.create(given, registry.node_label(raw["op"], name))
    except RegistryError:  # a Custom operator whose op_type a user's module has yet to register
        return node
    except MXNetError as error:
        if problems is None:
            raise
        problems.append(str(error))
        return node
    node.op = found.name
    _check_inputs(node, version)
    if version < 904:
        node.annotate_inputs()
    for argument, key, value in hand_down:
        names = node.input_names()
        if argument in names and (child := node.inputs[names.index(argument)][0]).is_variable:
            child.attrs.setdefault(key, value)
    return node


def _attributes(raw, name) -> dict[str, str]:
    """All attributes of a node, whatever the era's key, annotations under their hidden names."""
    merged: dict[str, str] = {}
    for key in ("attr", "param", "attrs"):
        block = raw.get(key)
        if block is None:
            continue
        if not isinstance(block, dict) or not all(isinstance(v, str) for v in block.values()):
            raise FormatError(f"node {name!r}: {key} must hold strings by name")
        foreign = key == "attr" and "param" in raw and raw["op"] != "null"
        for k, v in block.items():
            hidden = k if k.startswith("__") else f"__{k}__"
            merged[hidden if k in HIDDEN_KEYS or (foreign and not _names_input_annotation(k)) else k] = v
    return merged


def _names_input_annotation(key: str) -> bool:
    return any(key.endswith("_" + hidden) for hidden in HIDDEN_KEYS)


def _take_input_annotations(attrs, prop) -> list[tuple[str, str, str]]:
    """Remove attributes like ``weight_lr_mult``; gives (argument, hidden key, value) for each."""
    taken = []
    for key in list(attrs):
        for hidden in HIDDEN_KEYS:
            if key.endswith("_" + hidden) and key not in prop.param.fields and not key.startswith("__"):
                taken.append((key[: -len(hidden) - 1], f"__{hidden}__", attrs.pop(key)))
                break
    return taken


def _check_inputs(node: Node, version: int) -> None:
    """Raise where there are too many or too few inputs; files before 0.9 leave out auxiliary states."""
    names = node.input_names()
    if len(node.inputs) > len(names) or (len(node.inputs) < len(names) and version >= 900):
        raise FormatError(
            f"node {node.name!r}: operator {node.op} takes {len(names)} inputs ({', '.join(names)}), "
            f"the file gives {len(node.inputs)}"
        )
    for name in names[len(node.inputs) :]:
        node.inputs.append((Node(None, f"{node.name}_{name}", dict(node.attrs)), 0))


def _entries(raw, nodes, where) -> list[tuple[Node, int]]:
    if raw is not None and not isinstance(raw, list):
        raise FormatError(f"{where}: must be a list of entries, got {raw!r}")
    return [_entry(entry, nodes, where) for entry in raw or []]


def _entry(raw, nodes, where) -> tuple[Node, int]:
    if not isinstance(raw, list) or len(raw) not in (2, 3) or not all(type(i) is int for i in raw):
        raise FormatError(f"{where}: an entry must be [node, output] or [node, output, version], got {raw!r}")
    number, index = raw[:2]
    if not 0 <= number < len(nodes):
        raise FormatError(f"{where}: refers to node {number}, but only {len(nodes)} come before it")
    node = nodes[number]
    # How many outputs an operator has that is not registered, nobody knows.
    if index < 0 or (index >= node.num_outputs and (node.prop or node.is_variable)):
        raise FormatError(f"{where}: reads output {index} of {node.name!r}, which has {node.num_outputs}")
    return node, index


def unsupported(order) -> dict[str, int]:
    """Operators of a graph that cannot be run, with how often each occurs.

    A ``Custom`` operator of a type that nobody registered counts under ``Custom(op_type=...)``.
    """
    counts: dict[str, int] = {}
    for node in order:
        if not node.is_variable and node.prop is None:
            kind = node.attrs.get("op_type")
            name = node.op if kind is None else f"{node.op}(op_type={kind})"
            counts[name] = counts.get(name, 0) + 1
    return counts


def unsupported_message(order, source: str) -> str | None:
    """One sentence that lists them all with near names, or None."""
    counts = unsupported(order)
    if not counts:
        return None
    listed = ", ".join(
        f"{op} x{count}{'' if registry.find(op) else registry.advice_for(op)}"
        for op, count in sorted(counts.items())
    )
    return f"{source}: operators that cannot be run: {listed}"
