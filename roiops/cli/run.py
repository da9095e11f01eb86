"""Run a saved model on images or arrays.

  roiops run model-symbol.json model-0000.params --input data=cat.jpg --preset gluon --resize 224,224
  roiops run ssd-symbol.json ssd-0000.params --input data=street.jpg --preset gluon --resize 512,512 \\
      --detections boxes.png
  roiops run final-symbol.json final-0010.params --input data=street.jpg --preset rcnn --output all.npz
  roiops run model-symbol.json model-0000.params --input data=batch.npy --outputs relu5_3_output
  roiops run model --input data=cat.jpg        # model-symbol.json, and the last epoch that lies beside it
  roiops run model 12 --input data=cat.jpg     # model-symbol.json and model-0012.params

An input is NAME=FILE, with an image or a .npy array, or NAME=VALUES, with JSON such as [[600,800,1.5]]; given
several times under one name, the arrays are joined into a batch. An input called im_info that is not given
is filled with [height, width, scale] of the image. Labels are not asked for.

Presets are how the published families take images; single flags override them:
  raw    values 0 to 255, RGB              gluon  values 0 to 1, minus mean, over std of ImageNet, RGB
  rcnn   minus pixel means, RGB, resized to a short side of 600, a long one of 1000 at most
  ssd    minus 123, 117, 104, RGB          mtcnn  (x - 127.5) / 128, BGR
"""

import argparse
import json
from pathlib import Path

import numpy as np

from ..errors import FormatError, MXNetError
from ..models.drawing import draw, save
from ..models.labels import class_name
from ..models.outputs import Reading
from ..models.pictures import PRESETS, Preprocessing, read_image
from .common import (
    add_device,
    add_import,
    dtype_name,
    import_modules,
    model_files,
    named,
    note,
    numbers,
    positive,
    table,
)

SUMMARY = "run a saved model on images or arrays; draw the boxes of a detector"

_ARRAYS = {".npy"}


def _two(text: str) -> tuple[int, int]:
    sizes = text.split(",")
    if len(sizes) != 2:
        raise argparse.ArgumentTypeError(f"must be a height and a width such as 480,640, got {text!r}")
    height, width = map(positive(int), sizes)
    return height, width


def _per_channel(text: str) -> tuple[float, ...]:
    values = numbers(text)
    if len(values) not in (1, 3) or not np.isfinite(values).all():
        raise argparse.ArgumentTypeError(f"must be one number, or one for each of 3 channels, got {text!r}")
    return values


def _divisors(text: str) -> tuple[float, ...]:
    values = _per_channel(text)
    if 0 in values:
        raise argparse.ArgumentTypeError(f"must not be 0, got {text!r}")
    return values


def _four(text: str) -> tuple[float, ...]:
    values = numbers(text)
    if len(values) != 4:
        raise argparse.ArgumentTypeError(f"must be 4 numbers with commas between, got {text!r}")
    return values


def configure(parser) -> None:
    parser.add_argument(
        "symbol", metavar="SYMBOL.json", help="the graph, or what the names of both begin with"
    )
    parser.add_argument(
        "params", nargs="?", metavar="FILE.params", help="its parameters, or their epoch; the last by default"
    )
    parser.add_argument(
        "--input",
        dest="inputs",
        action="append",
        required=True,
        type=named,
        metavar="NAME=FILE",
        help="an input: image, .npy file, or JSON values",
    )
    parser.add_argument("--outputs", metavar="NAMES", help="outputs to compute instead, with commas between")
    images = parser.add_argument_group("images")
    images.add_argument("--preset", choices=PRESETS, default="raw", help="values for the flags below")
    images.add_argument("--resize", type=_two, metavar="H,W", help="resize to exactly this")
    images.add_argument(
        "--short-side", type=positive(int), metavar="N", help="resize so that the short side is this"
    )
    images.add_argument(
        "--max-side", type=positive(int), metavar="N", help="but the long side no more than this"
    )
    images.add_argument("--color", choices=("rgb", "bgr"), help="order of the channels")
    images.add_argument("--scale", type=float, metavar="X", help="multiply the values 0 to 255 with this")
    images.add_argument(
        "--mean", type=_per_channel, metavar="A,B,C", help="then subtract this from the channels"
    )
    images.add_argument("--std", type=_divisors, metavar="A,B,C", help="then divide them by this")
    results = parser.add_argument_group("results")
    results.add_argument("--output", metavar="FILE", help="write the outputs to .npz or .json")
    results.add_argument("--detections", metavar="PICTURE", help="draw the boxes found on the image")
    results.add_argument(
        "--threshold", type=float, default=0.5, metavar="X", help="least score (default 0.5)"
    )
    results.add_argument(
        "--classes", metavar="NAMES", help="names of the classes: with commas between, or a file of lines"
    )
    results.add_argument(
        "--box-stds",
        type=_four,
        default=(1.0, 1.0, 1.0, 1.0),
        metavar="A,B,C,D",
        help="what an R-CNN's box deltas are multiplied with (0.1,0.1,0.2,0.2 for weights saved as trained)",
    )
    parser.add_argument(
        "--dtype", type=dtype_name, metavar="TYPE", help="convert the parameters, such as float16 to float32"
    )
    parser.add_argument(
        "--top", type=positive(int), default=5, metavar="N", help="best classes to print (default 5)"
    )
    parser.add_argument("--json", action="store_true", help="print the summary as JSON")
    add_device(parser)
    add_import(parser)


def execute(args) -> int:
    from ..models import archive

    import_modules(args.imports)
    if args.output and Path(args.output).suffix not in (".npz", ".json"):
        args.parser.error(f"--output must end in .npz or .json, got {args.output}")
    outputs = [name.strip() for name in args.outputs.split(",") if name.strip()] if args.outputs else None
    symbol, params = model_files(args.symbol, args.params)
    if params is None:
        args.parser.error(f"FILE.params is needed: none lies beside {symbol}")
    if args.params is None:
        note(f"the parameters are those of {params}")
    model = archive.load(symbol, params, outputs=outputs, dtype=args.dtype)
    inputs, images = _read_inputs(args)
    _fill_im_info(model, inputs, images)
    results = model(ctx=args.device, reuse=True, **inputs)
    found = {name: a.asnumpy() for name, a in zip(model.output_names, results, strict=True)}
    classes = _class_names(args.classes)
    if args.output:
        _write(args.output, found)
    boxes = None
    if args.detections:
        boxes = _draw_detections(args, found, inputs, images, classes)
    if args.json:
        print(json.dumps(_summary(found, boxes, args, classes), indent=2))
    else:
        _print(found, boxes, args, classes)
    return 0


# -- inputs ----------------------------------------------------------------------------------------------


def _read_inputs(args):
    """Arrays by input name, and for the inputs that are images ``(image, fed height, fed width)``."""
    chosen = {
        key: getattr(args, key)
        for key in ("resize", "short_side", "max_side", "color", "scale", "mean", "std")
        if getattr(args, key) is not None
    }
    how = Preprocessing.of(args.preset, **chosen)
    arrays: dict[str, list] = {}
    images: dict[str, list] = {}
    for name, value in args.inputs:
        if value.lstrip().startswith("["):
            try:
                array = np.asarray(json.loads(value), dtype=np.float32)
            except ValueError:
                args.parser.error(f"--input {name}: not JSON values, or not in rows of one length: {value}")
        elif Path(value).suffix in _ARRAYS:
            array = _read_array(value)
        else:
            image = read_image(value)
            array = how.apply(image)
            images.setdefault(name, []).append(image)
        arrays.setdefault(name, []).append(array)
    joined = {}
    for name, parts in arrays.items():
        if len({part.shape[1:] for part in parts}) > 1:
            shapes = ", ".join(str(part.shape) for part in parts)
            args.parser.error(f"--input {name}: arrays of different shapes cannot be joined: {shapes}")
        joined[name] = np.concatenate(parts) if len(parts) > 1 else parts[0]
    return joined, images


def _read_array(path: str) -> np.ndarray:
    try:
        array = np.load(path, allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise FormatError(f"{path}: not an array that NumPy can read without pickle: {error}") from None
    if array.dtype.kind not in "biuf":
        raise FormatError(f"{path}: holds {array.dtype}, which are no numbers that a model takes")
    return array


def _fill_im_info(model, inputs, images) -> None:
    if "im_info" not in model.input_names or "im_info" in inputs or not images:
        return
    name, pictures = next(iter(images.items()))
    height, width = inputs[name].shape[2:4]
    inputs["im_info"] = np.array([[height, width, height / image.height] for image in pictures], np.float32)
    note(f"im_info is filled with {inputs['im_info'].tolist()}")


# -- results ---------------------------------------------------------------------------------------------


def _write(path: str, found: dict) -> None:
    if Path(path).suffix == ".npz":
        np.savez_compressed(path, **found)
        return
    lists = {
        name: {"shape": a.shape, "dtype": a.dtype.name, "values": a.tolist()} for name, a in found.items()
    }
    with open(path, "w", encoding="utf-8") as file:
        json.dump(lists, file)


def _class_names(text: str | None) -> list[str]:
    if not text:
        return []
    if Path(text).is_file() or Path(text).suffix == ".txt":
        return [line.strip() for line in Path(text).read_text(encoding="utf-8").splitlines() if line.strip()]
    return [name.strip() for name in text.split(",")]


def _draw_detections(args, found, inputs, images, classes):
    """The detections, in pixels of the images; the first image gets a picture."""
    from ..models.detections import find_detections

    if not images:
        raise MXNetError("--detections needs an image as input, to draw on")
    name, pictures = next(iter(images.items()))
    height, width = inputs[name].shape[2:4]
    boxes = find_detections(found, height, width, threshold=args.threshold, box_stds=args.box_stds)
    if boxes is None:
        shapes = ", ".join(f"{key} {value.shape}" for key, value in found.items())
        raise MXNetError(
            f"--detections: the outputs are not detections: {shapes}. Known are rows of class, score and "
            "box; classes, scores and boxes; and rois, class probabilities and box deltas"
        )
    for each in boxes:
        if each.image >= len(pictures):
            continue
        picture = pictures[each.image]
        factors = (picture.width / width, picture.height / height)
        each.box = tuple(value * factors[i % 2] for i, value in enumerate(each.box))
    first = Reading(detections=[each for each in boxes if each.image == 0], names=classes)
    save(draw(pictures[0], first), args.detections)
    note(f"{sum(each.image == 0 for each in boxes)} boxes drawn in {args.detections}")
    return boxes


def _best(found, top, classes):
    """For each output that is a table of class scores, the best classes of each row."""
    for name, array in found.items():
        if array.ndim == 2 and array.shape[1] > 5 and array.shape[0] <= 16:
            for row in range(array.shape[0]):
                order = np.argsort(-array[row], kind="stable")[:top]
                yield name, row, [(class_name(int(c), classes), float(array[row, c])) for c in order]


def _summary(found, boxes, args, classes) -> dict:
    result = {
        "outputs": [{"name": name, "shape": a.shape, "dtype": a.dtype.name} for name, a in found.items()],
        "best": [
            {"output": name, "row": row, "classes": best}
            for name, row, best in _best(found, args.top, classes)
        ],
    }
    if boxes is not None:
        result["detections"] = [
            {**each.to_dict(), "class": class_name(each.class_id, classes)} for each in boxes
        ]
    return result


def _print(found, boxes, args, classes) -> None:
    rows = [("output", "shape", "dtype", "min", "mean", "max")]
    for name, array in found.items():
        numbers_of = (array.min(), array.mean(dtype=np.float64), array.max()) if array.size else ()
        rows.append((name, array.shape, array.dtype.name, *(f"{float(v):.6g}" for v in numbers_of)))
    print(table(rows))
    if boxes is not None:
        print()
        print(
            table(
                [("image", "class", "score", "x1", "y1", "x2", "y2")]
                + [
                    (b.image, class_name(b.class_id, classes), f"{b.score:.4f}", *(f"{v:.1f}" for v in b.box))
                    for b in boxes
                ]
            )
        )
        return
    for name, row, best in _best(found, args.top, classes):
        print(f"\nBest of {name}, row {row}:")
        print(table(((label, f"{score:.6g}") for label, score in best), indent="  "))
