"""List the registered operators, or explain one.

Any of an operator's names will do:
  roiops ops
  roiops ops ROIAlign
  roiops ops --match pool
"""

import json

from .. import registry
from ..errors import MXNetError
from .common import add_import, refuse, table

SUMMARY = "the registered operators, or one with its inputs and parameters"


def configure(parser) -> None:
    parser.add_argument("name", nargs="?", metavar="NAME", help="an operator, under any of its names")
    parser.add_argument(
        "--match", metavar="TEXT", help="list only operators with this in a name or in their summary"
    )
    add_import(parser)
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def execute(args) -> None:
    if args.name is not None:
        refuse(args, "lists operators; give it without a NAME", "match")
        prop = registry.get(_registered_name(args.name))
        print(json.dumps(_describe(prop), indent=2) if args.json else _page(prop))
        return
    wanted = _letters_and_digits(args.match or "")
    aliases: dict[str, list[str]] = {}
    for name in registry.list_operators(aliases=True):
        aliases.setdefault(registry.get(name).name, []).append(name)
    ranked = []
    for name, names in aliases.items():
        prop = registry.get(name)
        public = [registry.public_name(n) for n in names]
        if any(_letters_and_digits(n.rpartition(".")[2]).startswith(wanted) for n in public):
            ranked.append((0, name, prop))
        elif any(wanted in _letters_and_digits(n) for n in public):
            ranked.append((1, name, prop))
        elif wanted in _letters_and_digits(_summary(prop)):
            ranked.append((2, name, prop))
    found = [prop for _, _, prop in sorted(ranked, key=lambda entry: entry[:2])]
    if not found:
        raise MXNetError(f"no operator has {args.match!r} in any of its names or in its summary")
    if args.json:
        print(json.dumps([_describe(prop) for prop in found], indent=2))
    else:
        print(table((registry.public_name(prop.name), _summary(prop)) for prop in found))


def _letters_and_digits(text: str) -> str:
    """Letters and digits only, so that ``multi-scale``, ``multi scale`` and ``MultiScale`` are one."""
    return "".join(filter(str.isalnum, text.lower()))


def _registered_name(name: str) -> str:
    space, _, own = name.partition(".")
    return f"_{space}_{own}" if space in registry.NAMESPACES else name


def _summary(prop) -> str:
    return registry.docstring(prop).split("\n", 1)[0]


def _page(prop) -> str:
    call = f"{registry.public_name(prop.name)}{registry.signature(prop)}"
    return f"{call}\n\n{registry.docstring(prop)}\n\nRuns on: {', '.join(prop.devices)}"


def _describe(prop) -> dict:
    return {
        "name": prop.name,
        "public_name": registry.public_name(prop.name),
        "summary": _summary(prop),
        "aliases": registry.aliases_of(prop),
        "inputs": ["*data"] if prop.variadic else [*prop.arguments],
        "auxiliary_states": [*prop.aux],
        "outputs": [*prop.outputs],
        "devices": [*prop.devices],
        "parameters": [
            {
                "name": field.name,
                "takes": field.need,
                "default": None if field.required else field.format(field.default),
                "required": field.required,
                "doc": field.doc,
            }
            for field in prop.param.fields.values()
        ],
    }
