"""Write the notebook, examples/first_hour.ipynb, with what its cells show, and docs/notebook.md from it.

python tools/make_notebook.py            # run the cells and write both
python tools/make_notebook.py --check    # run the cells; exit code 1 if one fails or prints something else

The cells run here one after another as Jupyter runs them: what the last expression of a cell shows (a picture,
a table, else text) is kept below it. No Jupyter is needed for that.
"""

import argparse
import ast
import base64
import contextlib
import io
import json
import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
NOTEBOOK, PAGE = ROOT / "examples" / "first_hour.ipynb", ROOT / "docs" / "notebook.md"
IMAGES = PAGE.parent / "images"

#: The cells, each with its kind: Markdown, or code.
CELLS = [
    (
        "md",
        """\
# The first hour with roiops

A graph, its gradient, one operator in the dialects of several frameworks, and an archived model. To run it in the
checkout, after `make demo`: `.venv/bin/pip install jupyterlab`, then `.venv/bin/jupyter lab`, and open
`examples/first_hour.ipynb`.""",
    ),
    (
        "code",
        """\
import os

import numpy as np

import roiops as mx

if not os.path.isdir("rcnn"):  # the paths below are those of the folder examples/
    os.chdir("examples")""",
    ),
    (
        "md",
        """\
## A first graph

A symbol describes a computation. Shown in a notebook it is a table of its nodes; shapes follow from the inputs'.""",
    ),
    (
        "code",
        """\
data, rois = mx.sym.Variable("data"), mx.sym.Variable("rois")
pooled = mx.sym.ROIAlign(
    data, rois, pooled_size=2, spatial_scale=1.0, sampling_ratio=2, aligned=False, name="pooled"
)
net = mx.sym.FullyConnected(mx.sym.Flatten(pooled, name="flat"), num_hidden=3, name="fc")
net""",
    ),
    (
        "code",
        """\
shapes, outputs, _ = net.infer_shape(data=(1, 1, 4, 4), rois=(1, 5))
dict(zip(net.list_arguments(), shapes))""",
    ),
    (
        "md",
        """\
Bound to arrays it computes. The box is `[image, x1, y1, x2, y2]`; each of the four bins is the mean of four bilinear
samples.""",
    ),
    (
        "code",
        """\
image = np.arange(1, 17, dtype=np.float32).reshape(1, 1, 4, 4)
box = np.array([[0, 0.25, 0.25, 3, 3]], np.float32)
executor = pooled.bind(mx.cpu(), {"data": image, "rois": box}, {"data": mx.nd.zeros((1, 1, 4, 4))})
executor.forward(is_train=True)[0]""",
    ),
    (
        "md",
        """\
## Its gradient

Each bin is a mean, so each hands out its whole gradient, here 1, among the pixels that it reads.""",
    ),
    (
        "code",
        """\
executor.backward(mx.nd.ones((1, 1, 2, 2)))
executor.grad_dict["data"]""",
    ),
    (
        "md",
        "Never believe a gradient that has not been compared with differences:",
    ),
    (
        "code",
        """\
from roiops.testing import check_numeric_gradient

small = np.random.default_rng(0).standard_normal((1, 1, 4, 4))
check_numeric_gradient(pooled, {"data": small, "rois": box.astype(np.float64)}, grad_nodes=["data"])
print("the gradient is right")""",
    ),
    (
        "md",
        """\
## One name, several operators

`ROIAlign` and `ROIPooling` mean other numbers in other frameworks. The same box, as three dialects read it:""",
    ),
    (
        "code",
        """\
import io

from PIL import Image

from roiops import explain

roi = (3.2, 2.4, 14.6, 11.3)
names = ["ROIPooling/mxnet", "ROIAlign/mmcv", "ROIAlign/mmcv/aligned"]
figure = explain.draw(roi, (7, 9), spatial_scale=0.5, names=names)
stream = io.BytesIO()
figure.savefig(stream, dpi=80, metadata={"Software": None})
Image.open(stream)""",
    ),
    (
        "code",
        """\
feature = np.random.default_rng(1).standard_normal((1, 1, 7, 9)).astype(np.float32)
boxes = np.array([[0, *roi]], np.float32)
size = {"pooled_size": 2, "spatial_scale": 0.5}
rows = {
    "Caffe, MXNet ROIPooling": mx.nd.ROIPooling(feature, boxes, **size),
    "torchvision roi_align": mx.nd.ROIAlign(feature, boxes, aligned=False, **size),
    "Detectron2 ROIAlign": mx.nd.ROIAlign(feature, boxes, aligned=True, **size),
    "Chainer roi_average_align_2d": mx.nd.ROIAlign(feature, boxes, dialect="chainer", mode="avg", **size),
}
for name, values in rows.items():
    print(f"{name:30}", np.array2string(values.asnumpy().ravel(), precision=4, floatmode="fixed"))""",
    ),
    (
        "md",
        """\
## An archived model

Two files that MXNet left: the graph, and the parameters. No MXNet is needed, here or anywhere. First what it is:""",
    ),
    (
        "code",
        """\
print(
    mx.models.inspect_model(
        "archived/shapes-symbol.json",
        "rcnn/model/model.params",
        {"data": (1, 3, 128, 128), "im_info": (1, 3)},
        dtype="float32",
    )
)""",
    ),
    (
        "md",
        "Then what it sees. A prediction shows itself as the picture with what was found in it:",
    ),
    (
        "code",
        """\
model = mx.models.load(
    "archived/shapes-symbol.json",
    "rcnn/model/model.params",
    dtype="float32",
    mean=118,
    std=60,
    box_stds=(0.1, 0.1, 0.2, 0.2),
    classes=["disc", "square", "triangle", "star", "cross", "two", "four", "seven"],
)
(found,) = model.predict(["archived/scene.png"])
found""",
    ),
    (
        "code",
        "found.reading",
    ),
    (
        "md",
        """\
From here: [the tutorial](tutorial.md) trains a first detector, [archived models](archived_models.md) has the rest
about models, [dialects](dialects.md) says which dialect is whose, and [own operators](own_operators.md) how to write
one.""",
    ),
]


def run_cells() -> list:
    """What each cell of code puts out: a list of Jupyter's outputs."""
    os.environ.setdefault("MPLBACKEND", "agg")
    names: dict = {"__name__": "__main__"}
    folder = os.getcwd()
    os.chdir(ROOT / "examples")
    try:
        return [_run(source, names) if kind == "code" else [] for kind, source in CELLS]
    finally:
        os.chdir(folder)


def _run(source: str, names: dict) -> list:
    tree, printed, outputs = ast.parse(source), io.StringIO(), []
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "<cell>", "exec"), names)
        value = None if last is None else eval(compile(ast.Expression(last.value), "<cell>", "eval"), names)
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": _lines(printed.getvalue())})
    if value is not None:
        result = {"output_type": "execute_result", "metadata": {}, "data": _shown(value)}
        outputs.append({**result, "execution_count": None})
    return outputs


def _shown(value) -> dict:
    png = getattr(value, "_repr_png_", lambda: None)()
    if png:
        return {"image/png": base64.b64encode(png).decode(), "text/plain": [f"<{type(value).__name__}>"]}
    html = getattr(value, "_repr_html_", lambda: None)()
    text = _lines(repr(value))
    return {"text/html": _lines(html), "text/plain": text} if html else {"text/plain": text}


def _lines(text: str) -> list:
    return text.splitlines(keepends=True)


def notebook(outputs) -> dict:
    """The notebook in Jupyter's format."""
    cells = []
    for number, ((kind, source), put_out) in enumerate(zip(CELLS, outputs, strict=True)):
        cell = {"cell_type": "code" if kind == "code" else "markdown", "id": f"cell-{number}", "metadata": {}}
        if kind == "code":
            cell |= {"execution_count": None, "outputs": put_out}
        else:
            source = _for_notebook(source)
        cells.append({**cell, "source": _lines(source)})
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    return {
        "cells": cells,
        "metadata": {"kernelspec": python, "language_info": {"name": "python"}},
        "nbformat": 4,
        "nbformat_minor": 5,
    }


def _for_notebook(source: str) -> str:
    """Links of the pages, as they are from the folder of the notebook."""
    return source.replace("](", "](../docs/")


def page(outputs) -> str:
    """The notebook as a page of the documentation, its pictures beside; the code runs in examples/ only."""
    parts = []
    for number, ((kind, source), put_out) in enumerate(zip(CELLS, outputs, strict=True)):
        parts.append(f"```py\n{source}\n```" if kind == "code" else source)
        for each in put_out:
            data = each.get("data", {})
            if "image/png" in data:
                name = f"notebook_{number}.png"
                (IMAGES / name).write_bytes(base64.b64decode(data["image/png"]))
                parts.append(f"![what the cell shows](images/{name})")
            elif "text/html" in data:
                parts.append("".join(data["text/html"]))
            else:
                parts.append(f"```text\n{''.join(each.get('text') or data['text/plain']).rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def _texts(outputs) -> list:
    """What must be the same each time: all but pictures, whose bytes depend on the version of a library."""
    return [[o.get("text") or sorted(o["data"]) for o in each] for each in outputs]


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--check", action="store_true", help="write nothing")
    args = parser.parse_args()
    outputs = run_cells()
    if not args.check:
        NOTEBOOK.write_text(json.dumps(notebook(outputs), indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(outputs), encoding="utf-8")
        return 0
    held = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    sources = [_lines(s if kind == "code" else _for_notebook(s)) for kind, s in CELLS]
    if [each["source"] for each in held] != sources:
        print("the notebook is not that of tools/make_notebook.py: run it")
        return 1
    was = _texts([each.get("outputs", []) for each in held])
    for number, (now, then) in enumerate(zip(_texts(outputs), was, strict=True)):
        if now != then:
            print(f"cell {number} shows something else than the notebook:\n{now}\ninstead of\n{then}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
