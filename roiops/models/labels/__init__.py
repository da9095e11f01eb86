"""Names of classes: the sets of ImageNet, PASCAL VOC and COCO, lists, and files with a name a line.

``imagenet.txt`` has the 1000 classes of ILSVRC 2012 in the order of their WordNet numbers, by the first
word of each; ``voc.txt`` and ``coco.txt`` are in the order in which models number the classes.
"""

from pathlib import Path

from ...errors import SettingsError

__all__ = ["BACKGROUND", "SETS", "class_name", "fitting", "read_labels", "suggestion"]

#: Label sets that are built in, and how many classes each has.
SETS = {"imagenet": 1000, "voc": 20, "coco": 80}
#: What a class is called that stands before those that have names.
BACKGROUND = "background"


def read_labels(text) -> list[str]:
    """Names from what a user gives: a built-in set, a file of lines, or names with commas between."""
    if not text:
        return []
    if not isinstance(text, str | Path) and not hasattr(text, "__iter__"):
        raise SettingsError(f"classes must be a list of names, or a file of them, got {text!r}")
    if not isinstance(text, str | Path):
        return [str(name) for name in text]
    path = Path(__file__).parent / f"{text}.txt" if text in SETS else Path(text)
    if path.is_dir():
        raise SettingsError(f"classes: {text} is a folder; give a file with a name in each line")
    if path.suffix == ".txt" or path.is_file():
        try:  # a byte order mark, which some editors write, is no part of a name
            found = path.read_text(encoding="utf-8-sig").splitlines()
        except UnicodeDecodeError as error:
            raise SettingsError(f"classes: {path}: byte {error.start} is not UTF-8 text") from None
    else:
        found = str(text).split(",")
    names = [name.strip() for name in found if name.strip()]
    if not names:
        raise SettingsError(f"classes: {text} holds no names")
    return names


def fitting(names: list[str], count: int, what: str) -> list[str]:
    """The names for ``count`` classes, of which the first may be the background; others are an error."""
    if not names or len(names) == count:
        return names
    if len(names) + 1 == count:
        return [BACKGROUND, *names]
    raise SettingsError(f"classes: {len(names)} names do not fit {what}, which has {count} classes")


def class_name(class_id: int, names: list[str]) -> str:
    """The name of a class, or its number where it has none."""
    return names[class_id] if 0 <= class_id < len(names) else f"class {class_id}"


def suggestion(count: int) -> str | None:
    """The built-in set that has as many classes."""
    return next((name for name, size in SETS.items() if size == count), None)
