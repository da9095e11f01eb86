"""Write a saved model as ONNX, in standard operators only.

  roiops convert model-symbol.json model-0000.params model.onnx --shape data=1,3,224,224
  roiops convert ssd model.onnx --shape data=N,3,512,512         # any number of pictures at once
  roiops convert faster_rcnn 10 detector.onnx --shape data=1,3,H,W --shape im_info=1,3 --check
  roiops convert arcface-symbol.json arcface-0000.params arcface.onnx --shape data=N,3,112,112 --fold
  roiops convert networks.py:make_ssd ssd.params ssd.onnx --with classes=20 --shape data=1,3,512,512

The last is a Gluon model: a function that returns its HybridBlock, the file that save_parameters wrote, and
the function's arguments.

A name in place of a length leaves it open; where the graph does not allow that, the message says which node.
Dropout is gone, losses become what they compute in inference, and labels are no inputs. Names of inputs,
outputs and weights stay.

What cannot be written is listed, node by node, and nothing is written. The file appears whole or not at all.
With --check it is run in onnxruntime beside the original, on noise or on the inputs given, and each output's
largest difference is printed; the exit code is 1 where they differ. Boxes are compared one by one. A picture
goes through the preset, as for `roiops run`, and is resized to the shape given.
"""

import numpy as np

from ..models.pictures import PRESETS, Preprocessing, read_image
from .common import (
    add_inputs,
    add_model,
    add_outputs,
    add_shapes,
    dtype_name,
    find_model,
    given_array,
    note,
    refuse,
    table,
)

SUMMARY = "write a saved model as ONNX; compare the two in onnxruntime"

#: Lengths that the check takes for open ones.
_CHECKED_BATCH, _CHECKED_SIDE = 1, 256


def configure(parser) -> None:
    add_model(parser)
    parser.add_argument(
        "params", nargs="?", metavar="PARAMS", help="its parameters, or their epoch; the last by default"
    )
    parser.add_argument("target", metavar="MODEL.onnx", help="the file to write")
    add_shapes(parser, names=True)
    add_outputs(parser)
    parser.add_argument(
        "--opset", type=int, metavar="N", help="version of ONNX's operators, 17 to 22 (default: the least)"
    )
    parser.add_argument(
        "--dtype", type=dtype_name, metavar="TYPE", help="convert parameters and inputs, such as to float16"
    )
    parser.add_argument("--fold", action="store_true", help="merge BatchNorm into the layer before it")
    parser.add_argument(
        "--functions",
        action="store_true",
        help="write compositions as functions of the model, one node each, which not every runtime reads",
    )
    parser.add_argument("--force", action="store_true", help="overwrite an existing file")
    checks = parser.add_argument_group("check")
    checks.add_argument(
        "--check", action="store_true", help="run the result in onnxruntime beside the original"
    )
    add_inputs(
        checks,
        "an input of the check: a picture, a .npy or .npz file, or JSON values; noise by default",
        once=True,
    )
    checks.add_argument("--preset", choices=PRESETS, default="raw", help="how pictures become arrays")


def execute(args) -> int:
    from ..models import archive, onnx

    onnx.write.import_onnx()
    if not args.target.endswith(".onnx"):
        args.parser.error(f"MODEL.onnx, the file to write, comes last, got {args.target}")
    if not args.check:
        refuse(args, "is for --check", "input", "preset")
    symbol, params = find_model(args, args.params)
    model = archive.load(symbol, params, outputs=args.outputs, source=args.symbol)
    inputs = {name: given_array(args, name, value) for name, value in args.input.items()}
    if all(array is not None for array in inputs.values()):
        refuse(args, "is for pictures: --input NAME=PICTURE", "preset")
    inputs = {name: _fitting(args, model, name, array) for name, array in inputs.items()}
    if "im_info" in model.input_names and "data" in inputs:
        size = (*inputs["data"].shape[2:4], 1.0)
        inputs.setdefault("im_info", np.array([size] * len(inputs["data"]), np.float32))
    shapes = {**{name: array.shape for name, array in inputs.items()}, **args.shape}
    conversion = onnx.prepare(
        model, shapes, opset=args.opset, dtype=args.dtype, fold=args.fold, functions=args.functions
    )
    made = onnx.write.proto(conversion)
    files = onnx.write.save(made, args.target, force=args.force)
    for line in conversion.notes:
        note(line)
    for path in files:
        print(f"{path}: {path.stat().st_size / 2**20:.1f} MiB")
    nodes, functions = len(made.graph.node), len(made.functions)
    called = f", functions: {functions}" if args.functions else ""
    print(f"opset {conversion.graph.opset}, nodes: {nodes}{called}")
    if not args.check:
        return 0
    if args.dtype in ("float16", "float32"):  # not every operator computes in half precision
        model = archive.load(symbol, params, outputs=args.outputs, source=args.symbol, dtype="float32")
    return _check(files[0], model, shapes, inputs)


def _fitting(args, model, name, array) -> np.ndarray:
    """One input of the check, None for a picture. It must have the shape that --shape gives, if it does."""
    if name not in model.input_names:
        args.parser.error(
            f"--input {name}: the model has no such input; it takes {', '.join(model.input_names)}"
        )
    shape = args.shape.get(name)
    if array is None:
        size = (shape or ())[2:4]
        chosen = {"resize": size} if len(size) == 2 and all(isinstance(n, int) for n in size) else {}
        array = Preprocessing.of(args.preset, **chosen).apply(read_image(args.input[name]))
    if shape is not None and (
        len(shape) != array.ndim
        or any(isinstance(d, int) and d != n for d, n in zip(shape, array.shape, strict=True))
    ):
        asked = ",".join(map(str, shape))
        args.parser.error(f"--input {name}: its shape is {array.shape}, but --shape says {asked}")
    return array


def _check(path, model, shapes, inputs) -> int:
    from ..models.onnx.check import check, random_inputs

    lengths = {
        item: _CHECKED_BATCH if axis == 0 else _CHECKED_SIDE
        for shape in shapes.values()
        for axis, item in enumerate(shape)
        if isinstance(item, str)
    }
    fixed = {name: tuple(lengths.get(item, item) for item in shape) for name, shape in shapes.items()}
    feeds = {**random_inputs(model, fixed), **inputs}
    found = check(path, model, feeds)
    rows = [("output", "worst difference", "boxes", "")]
    for each in found:
        boxes = "" if each.boxes is None else f"{each.boxes}, {each.wrong} differ"
        verdict = "" if each.agrees else "differs: scores tie" if each.tied else "differs"
        rows.append((each.name, f"{each.worst:.1e}", boxes, verdict))
    print(table(rows))
    if any(each.tied for each in found):
        print(
            "Where scores tie, the original alone gives as different an output once its input changes by "
            "1e-6. Noise gives such scores; check with a picture: --input data=picture.jpg"
        )
    return 0 if all(each.agrees for each in found) else 1
