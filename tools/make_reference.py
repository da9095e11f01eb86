"""Write the reference, docs/reference/: all operators from the registry, and what is called beside them.

python tools/make_reference.py            # write it
python tools/make_reference.py --check    # say whether it is up to date; exit code 1 if not
"""

import argparse
import ast
import inspect
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

import roiops  # noqa: E402
from roiops import registry  # noqa: E402

FOLDER = ROOT / "docs" / "reference"
FAMILIES = {
    "roi": "Regions of interest",
    "detection": "Detection",
    "nn": "Network layers",
    "loss": "Losses",
    "tensor": "Tensors",
}


def family_of(prop) -> str:
    parts = prop.__module__.split(".")
    return parts[2] if len(parts) > 3 else "other"


def entry(prop) -> list[str]:
    """The section of one operator."""
    name = registry.public_name(prop.name)
    text = inspect.cleandoc(vars(prop).get("__doc__") or f"The operator {name}.")
    summary, *details = re.sub(r":\w+:(`[^`]+`)", r"\1", text).split("\n\n")
    docs = prop.argument_docs
    lines = [f"## {name}", "", " ".join(summary.split()), ""]
    for paragraph in details:
        lines += [paragraph, ""]
    if others := registry.aliases_of(prop):
        lines += [f"Also called {', '.join(f'`{registry.public_name(n)}`' for n in others)}.", ""]
    inputs = (
        ["any number of arrays"] if prop.variadic else [f"`{n}`{told(docs.get(n))}" for n in prop.arguments]
    )
    lines += [f"- Inputs: {'; '.join(inputs) or 'none'}"]
    if prop.aux:
        lines += [f"- States: {'; '.join(f'`{n}`{told(docs.get(n))}' for n in prop.aux)}"]
    seen = prop.outputs[: prop.visible_outputs] if prop.visible_outputs else prop.outputs
    lines += [f"- Outputs: {', '.join(f'`{n}`' for n in seen)}", f"- Runs on: {', '.join(prop.devices)}", ""]
    fields = [f for f in prop.param.fields.values() if f.name != prop.variadic]
    if fields:
        lines += ["| parameter | takes | default | |", "|---|---|---|---|"]
        for field in fields:
            default = "required" if field.required else f"`{field.format(field.default) or '(empty)'}`"
            lines.append(f"| `{field.name}` | {cell(field.need)} | {default} | {cell(field.doc)} |")
        lines.append("")
    return lines


def told(text) -> str:
    return f": {' '.join(text.split())}" if text else ""


def cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")


def pages() -> dict[str, str]:
    """File name to text."""
    families: dict[str, list] = {}
    for name in registry.list_operators():
        prop = registry.get(name)
        if prop.__module__.startswith(roiops.__name__ + "."):
            families.setdefault(family_of(prop), []).append(prop)
    index = [
        "# Reference",
        "",
        "Every operator is a function of `roiops.sym` and of `roiops.nd`, with the same inputs and",
        "parameters; `contrib.X` is in `sym.contrib` and `nd.contrib`, and `linalg.X` and `image.X` in",
        "`linalg` and `image` of both. `tools/make_reference.py` writes these pages from the operators'",
        "own declarations; `roiops ops NAME` prints the same.",
        "",
    ]
    made = {}
    for family, title in {**FAMILIES, "other": "Others"}.items():
        by_group = groups(families.get(family, ())).values()
        props = [prop for group in by_group for prop in group]
        if not props:
            continue
        made[f"{family}.md"] = "\n".join([f"# {title}", "", *(line for p in props for line in entry(p))])
        index += [f"## {title}", ""]
        for heading, group in groups(props).items():
            listed = ", ".join(f"[{registry.public_name(p.name)}]({family}.md#{anchor(p)})" for p in group)
            index += [f"- {heading}: {listed}" if heading else listed]
        index.append("")
    index += ["## Beside the operators", ""]
    for name, (title, about, sources) in PYTHON.items():
        made[f"{name}.md"] = python_page(title, about, sources)
        index += [f"- [{title}]({name}.md): {about}"]
    return {"index.md": "\n".join(index), **made}


#: Pages of Python classes and functions: title, what they are, and each file with the names that are told.
PYTHON = {
    "models": (
        "roiops.models",
        "saved models: load, inspect, run on pictures, convert.",
        {
            "models/predict.py": ("load", "PictureModel", "Prediction"),
            "models/archive.py": ("ArchivedModel",),
            "models/pictures.py": ("Preprocessing",),
            "models/inspection.py": ("inspect_model",),
            "models/files.py": ("read_symbol", "read_params"),
            "models/onnx/__init__.py": ("to_onnx",),
        },
    ),
    "module": (
        "roiops.mod.Module",
        "training and inference with one symbol, as in MXNet.",
        {"training/module/base_module.py": ("BaseModule",), "training/module/module.py": ("Module",)},
    ),
    "torch": (
        "roiops.torch",
        "the ROI operators as PyTorch functions and modules.",
        {
            "torch/functions.py": (
                *("roi_align", "roi_pool", "ps_roi_align", "ps_roi_pool", "roi_align_rotated"),
                *("deform_roi_pool", "multi_scale_roi_align"),
            ),
            "torch/modules.py": (
                *("RoIAlign", "RoIPool", "PSRoIAlign", "PSRoIPool", "RoIAlignRotated", "DeformRoIPool"),
                *("MultiScaleRoIAlign", "replace_poolers"),
            ),
            "torch/__init__.py": ("onnx_translation_table",),
        },
    ),
}


def python_page(title: str, about: str, sources: dict) -> str:
    """A page of classes and functions, read from their source: PyTorch need not be there."""
    lines = [f"# {title}", "", about[:1].upper() + about[1:], ""]
    for path, names in sources.items():
        tree = ast.parse((ROOT / "roiops" / path).read_text(encoding="utf-8"))
        found = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        for name in names:
            lines += told_of(found[name], name)
    return "\n".join(lines)


def told_of(node, name: str, depth: int = 2) -> list[str]:
    """The section of a function, or of a class with its public methods."""
    is_class = isinstance(node, ast.ClassDef)
    methods = [each for each in node.body if isinstance(each, ast.FunctionDef)] if is_class else []
    calls = next((each for each in methods if each.name == "__init__"), None) if is_class else node
    signature = name if calls is None else f"{name}({arguments_of(calls)})"
    if any(isinstance(each, ast.Name) and each.id == "property" for each in node.decorator_list):
        signature = name
    lines = [
        f"{'#' * depth} {name}",
        "",
        "```text",
        *textwrap.wrap(signature, 88, subsequent_indent="    "),
        "```",
        "",
    ]
    lines += plain(ast.get_docstring(node) or "")
    for method in methods:
        if not method.name.startswith("_") and ast.get_docstring(method):
            lines += told_of(method, f"{name}.{method.name}", depth + 1)
    return lines


def arguments_of(node) -> str:
    return ast.unparse(node.args).removeprefix("self, ").removeprefix("self")


def plain(docstring: str) -> list[str]:
    """A numpydoc text as Markdown: the entries of a section become a list."""
    text = re.sub(r":\w+:`~?([^`]+)`", r"`\1`", docstring).replace("``", "`")
    lines, in_section = [], False
    for line, following in zip([*text.splitlines(), ""], [*text.splitlines()[1:], "", ""], strict=False):
        if set(following) == {"-"}:
            lines += [f"**{line}**", ""]
            in_section = True
        elif set(line) == {"-"}:
            continue
        elif in_section and line and not line.startswith(" "):
            lines.append(f"- `{line}`")
        else:
            lines.append(f"  {line.strip()}" if in_section and line else line)
    return [*lines, ""]


#: What the operators of a file do, by the end of the file's module name; others are told by that name itself.
JOBS = {
    "roi.align": "Interpolating", "roi.pooling": "Whole pixels",
    "roi.position_sensitive": "Position-sensitive", "roi.max_or_average": "Pooling and aligning",
    "roi.deformable": "Deformable", "roi.rotated": "Rotated", "roi.precise": "Exact integrals",
    "roi.crop": "Crop and resize", "roi.pyramid": "Over the levels of a pyramid",
    "detection.multibox": "SSD", "detection.proposal": "Proposals of an R-CNN",
    "detection.box": "Boxes: encode, decode, overlap, suppress",
    "detection.deform_conv": "Deformable convolution", "detection.mask_target": "Mask R-CNN",
    "tensor.arithmetic": "Arithmetic", "tensor.unary": "Of each element", "tensor.reduce": "Reduce",
    "tensor.views": "Shape and order", "tensor.slices": "Slices and parts", "tensor.join": "Join",
    "tensor.indexing": "Take and put by index", "tensor.ordering": "Sort and choose",
    "tensor.matrix": "Matrices", "tensor.linalg": "Linear algebra", "tensor.create": "Make arrays",
    "tensor.sequence": "Sequences", "tensor.repeats": "Repeat and pad", "tensor.allclose": "Compare",
    "tensor.random": "Random numbers", "tensor.columns": "Windows as columns",
}  # fmt: skip


def groups(props) -> dict[str, list]:
    """Operators by what they do, each group by name; those whose names begin with ``_`` last of all."""
    found: dict[str, list] = {}
    for prop in sorted(props, key=lambda p: registry.public_name(p.name).lower()):
        parts = prop.__module__.split(".")[2:]
        job = JOBS.get(".".join(parts), parts[-1].replace("_", " ").capitalize())
        hidden = registry.public_name(prop.name).startswith("_")
        found.setdefault("Internal: what graphs of MXNet name so" if hidden else job, []).append(prop)
    hidden = found.pop("Internal: what graphs of MXNet name so", None)
    ordered = dict(sorted(found.items()))
    return {**ordered, **({"Internal: what graphs of MXNet name so": hidden} if hidden else {})}


def anchor(prop) -> str:
    return registry.public_name(prop.name).lower().replace(".", "")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    wanted = {name: text.rstrip("\n") + "\n" for name, text in pages().items()}
    if not args.check:
        FOLDER.mkdir(parents=True, exist_ok=True)
        for name, text in wanted.items():
            (FOLDER / name).write_text(text, encoding="utf-8")
        return 0
    stale = [n for n, text in wanted.items() if not (FOLDER / n).exists() or (FOLDER / n).read_text() != text]
    if stale:
        print(f"docs/reference is not up to date ({', '.join(stale)}): run python tools/make_reference.py")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
