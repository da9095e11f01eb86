"""Damaged symbol JSON and .params files: each is read, or refused with an error of the library's own."""

import copy
import json
import re
import tempfile
import warnings
from pathlib import Path

import numpy as np

import roiops as mx
from roiops.errors import DTypeError, MXNetError
from roiops.models import inspection

GOLDEN = Path(__file__).resolve().parent.parent / "golden"

# fmt: off
WORDS = [
    "null", "true", "NaN", "Infinity", "-1", "0", "1e999", "2147483648", "9223372036854775808", '""',
    "[]", "{}", "[[", "}}", ",", ":", '"', "\\", "\\u0000", "\\ud800", '"attrs"', '"inputs"', '"heads"',
    "\x00", "\xff", "[" * 2000, "9" * 5000,
]

VALUES = [
    None, True, False, -1, 0, 1, 2, 31, 1000, 2**31 - 1, 2**31, 2**32, 2**63, 2**64, -(2**63), 10**400,
    0.5, 1e308, float("nan"), float("inf"), "", "0", "-1", "nan", "x" * 5000, "\x00", "\ud800",
    [], {}, [[]], [0], [0, 0], [0, 0, 0], [0, 0, 0, 0], [-1, 0, 0], [0, 99, 0], [10**9, 0, 0], ["0", "0"],
    {"op": "null", "name": "v"},
]

ATTRIBUTES = [
    "", " ", "()", "(,)", "(0,)", "(0, 0)", "(-1, -1)", "(1, 1)", "(3, 3)", "(7,7)", "[7,7]", "(7L, 7L)",
    "(1,)", "(2147483648, 2147483648)", "(99999999999999999999, 1)", "(1, 2, 3, 4, 5, 6, 7, 8, 9)", "((((",
    "(1.5, 2)", "None", "True", "False", "true", "0", "1", "-1", "2", "64", "1000000000", "-5", "1e400",
    "9223372036854775807", "18446744073709551616", "nan", "inf", "-inf", "0.5", "1e-320", "float32", "int8",
    "float16", "complex128", "O", "avg", "max", "full", "write", "(" * 3000, "9" * 5000, "\x00",
    "__import__('os')", "(None, None)",
]

WORD_VALUES = np.array([
    0, 1, 2, 3, 4, 5, 8, 12, 13, 32, 33, 255, 256, 0x112, 0xF993FAC8, 0xF993FAC9, 0xF993FACA, 2**20, 2**28,
    2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40, 2**48, 2**62, -1, -2, -(2**31), -(2**62),
], dtype=np.int64)
# fmt: on


def _graph_texts() -> list[str]:
    paths = [*(GOLDEN / "graphs").glob("*.json"), *(GOLDEN / "legacy").glob("*.json")]
    return [path.read_text() for path in sorted(paths) if path.stem != "behaviour"]


def _places(value, found: list, depth=0) -> list:
    """Every (container, key) inside a JSON document."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found.append((value, key))
        if depth < 6:
            _places(inner, found, depth + 1)
    return found


def damage_document(document, rng, operators: list[str]) -> None:
    """Change a parsed graph here and there, in place."""
    for _ in range(rng.integers(1, 3)):
        places = _places(document, [])
        if not places:
            return
        container, key = places[rng.integers(len(places))]
        nodes = document.get("nodes")
        kind = rng.integers(8)
        if kind == 0:
            container[key] = copy.deepcopy(VALUES[rng.integers(len(VALUES))])
        elif kind == 1:
            del container[key]
        elif kind == 2:
            other, name = places[rng.integers(len(places))]
            container[key] = copy.deepcopy(other[name])
        elif kind == 3 and isinstance(container, list):
            container.insert(int(rng.integers(len(container) + 1)), copy.deepcopy(container[key]))
        elif kind == 4 and isinstance(container[key], int):
            container[key] = int(container[key]) + int(rng.choice([-1, 1, 1000, 2**31]))
        elif isinstance(nodes, list) and nodes and isinstance(node := nodes[rng.integers(len(nodes))], dict):
            block = next((node[k] for k in ("attrs", "attr", "param") if isinstance(node.get(k), dict)), None)
            if kind == 5:
                node["op"] = operators[rng.integers(len(operators))]
            elif kind == 6 and block:
                name = list(block)[rng.integers(len(block))]
                block[name] = ATTRIBUTES[rng.integers(len(ATTRIBUTES))]
            elif isinstance(node.get("inputs"), list):
                entry = [int(rng.integers(-1, len(nodes) + 1)), int(rng.integers(-1, 3)), 0]
                node["inputs"].insert(int(rng.integers(len(node["inputs"]) + 1)), entry)


def damage_text(text: str, rng) -> str:
    """Change a few places of a text."""
    for _ in range(rng.integers(1, 4)):
        place, end = sorted(rng.integers(0, len(text) + 1, 2).tolist())
        end = min(end, place + int(rng.integers(1, 60)))
        kind = rng.integers(6)
        if kind == 0:
            text = text[:place] + WORDS[rng.integers(len(WORDS))] + text[place:]
        elif kind == 1:
            text = text[:place] + text[end:]
        elif kind == 2:
            text = text[:place] + text[place:end] * 3 + text[end:]
        elif kind == 3:
            text = text[:place]
        elif kind == 4:
            text = text[:place] + chr(int(rng.integers(1, 300))) + text[place + 1 :]
        elif numbers := list(re.finditer(r"\d+", text)):
            spot = numbers[rng.integers(len(numbers))]
            text = text[: spot.start()] + str(rng.choice([0, 1, 7, 2**31, 2**62])) + text[spot.end() :]
        if not text:
            return text
    return text


def damaged_graph(rng, texts, operators) -> str:
    text = texts[rng.integers(len(texts))]
    if rng.random() < 0.35:
        return damage_text(text, rng)
    document = json.loads(text)
    damage_document(document, rng, operators)
    return json.dumps(document)


def symbol_files(seed: int):
    """A damaged graph is loaded, inferred, inspected, written and read again, or refused."""
    texts, operators = _graph_texts(), mx.registry.list_operators(aliases=True)

    def case(number: int) -> str:
        rng = np.random.default_rng([seed, number])
        text = damaged_graph(rng, texts, operators)
        try:
            symbol = mx.sym.load_json(text)
        except MXNetError:
            return "refused"
        symbol.list_outputs()
        names = symbol.list_arguments()
        again = symbol.tojson()
        if mx.sym.load_json(again).tojson() != again:
            raise AssertionError("written and read again, the graph is another one")
        sizes = {name: tuple(rng.integers(0, 9, rng.integers(1, 5)).tolist()) for name in set(names[:3])}
        try:
            symbol.infer_shape_partial(**sizes)
            symbol.infer_type()
            symbol.infer_shape(**sizes)
        except MXNetError as error:
            if "failed with" in str(error):  # an operator's inference did not expect what it was given
                raise
            return "accepted, shapes refused"
        finally:
            if number % 8 == 0:
                str(inspection.inspect_model(symbol))
        return "accepted"

    def quiet(number: int) -> str:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # shapes that are not known yet: MXNet warns, too
            return case(number)

    return quiet


def damage_bytes(data: bytes, rng, sources: list[bytes]) -> bytes:
    """Change a few places of a binary file, most of all its numbers."""
    edited = bytearray(data)
    for _ in range(rng.integers(1, 5)):
        if not edited:
            break
        place = int(rng.integers(len(edited)))
        kind = rng.integers(8)
        if kind == 0:
            edited[place] = rng.integers(256)
        elif kind == 1:
            edited[place] ^= 1 << int(rng.integers(8))
        elif kind == 2:
            del edited[place:]
        elif kind == 3:
            del edited[place : place + int(rng.integers(1, 17))]
        elif kind == 4:
            edited[place:place] = edited[place : place + int(rng.integers(1, 65))]
        elif kind == 5:
            other = sources[rng.integers(len(sources))]
            start = int(rng.integers(len(other)))
            edited[place : place + 32] = other[start : start + 32]
        else:
            word = int(rng.choice(WORD_VALUES))
            size = int(rng.choice([4, 8]))
            place -= place % 4
            edited[place : place + size] = (word & (2 ** (8 * size) - 1)).to_bytes(size, "little")
    return bytes(edited)


def params_files(seed: int):
    """A damaged .params file is loaded, and then holds its arrays through a round trip, or is refused."""
    sources = [path.read_bytes() for path in sorted((GOLDEN / "params").glob("*.params"))]
    folder = tempfile.TemporaryDirectory()

    def case(number: int) -> str:
        rng = np.random.default_rng([seed, number])
        data = damage_bytes(sources[rng.integers(len(sources))], rng, sources)
        try:
            loaded = mx.nd.load_frombuffer(data)
        except MXNetError:
            return "refused"
        if number % 16 == 0:
            path = Path(folder.name) / "again.params"
            try:
                mx.nd.save(path, loaded)
            except DTypeError:  # int16 and such: in files that something newer than MXNet 1.9 wrote
                return "accepted"
            again = mx.nd.load(path)
            pairs = zip(again, loaded, strict=True) if isinstance(loaded, list) else None
            pairs = pairs or [(again[name], loaded[name]) for name in loaded]
            for one, other in pairs:
                shape = other.shape or (1,)  # the format's own rule: an array without dimensions gets one
                if one.asnumpy().tobytes() != other.asnumpy().tobytes() or one.shape != shape:
                    raise AssertionError("written and read again, an array is another one")
        return "accepted"

    case.folder = folder  # lives as long as the case
    return case
