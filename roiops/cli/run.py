"""Run a saved model on pictures or arrays, and say what it sees.

  roiops run model cat.jpg --preset gluon --classes imagenet
  roiops run ssd ssd-0000.params street.jpg --preset ssd --classes voc --draw boxes.png
  roiops run final 10 photos/ more/*.jpg --preset rcnn --draw drawings --output found.jsonl
  roiops run final 10 photos/ --preset rcnn --output found.jsonl --workers 4 --resume
  roiops run model --input data=batch.npy --outputs relu5_3_output --output features.npz
  roiops run model --input data=cat.jpg --input 'im_info=[[600,800,1.5]]'
  roiops run networks.py:make_ssd ssd.params street.jpg --with classes=20 --preset gluon-ssd

The model is SYMBOL.json, or what the names of its files begin with: `model` for model-symbol.json and the
last epoch of model-NNNN.params beside it. After it may stand the file of the parameters, or their epoch.
A Gluon model is MODULE:FUNCTION, a function that returns its HybridBlock; --with gives its arguments.

PICTURES are files, folders or patterns. A .npz or .npy file among them gives inputs as they are. An input by
name is NAME=FILE, with a picture, a .npy or .npz array, or NAME=VALUES, with JSON. An input called im_info
that is not given is filled with [height, width, scale] of the picture. Labels are not asked for. Sizes are
written HEIGHTxWIDTH.

Presets are how the published families take pictures; single flags override them:
  raw                 as they are: values 0 to 255, RGB, no resizing (the default)
  gluon               GluonCV's classifiers: values 0 to 1, minus the mean and over the std of ImageNet; short
                      side 256, the middle 224x224
  gluon-ssd, gluon-yolo, gluon-rcnn, gluon-centernet
                      the same values; short side 512, 416, 600 or 512, long side at most 1024 (rcnn: 1000)
  gluon-segmentation  the same values, no resizing
  imagenet            MXNet's classifiers: minus 123.68, 116.779, 103.939, short side 256, the middle 224x224
  rcnn                MXNet's R-CNN: minus the same, short side 600, long side at most 1000
  ssd                 MXNet's SSD: minus 123, 117, 104, resized to 300x300
  mtcnn               (x - 127.5) / 128, BGR

Understood and drawn are detections (rows of class, score and box; GluonCV's classes, scores and boxes,
CenterNet's and Mask R-CNN's among them; an R-CNN's rois, probabilities and deltas), class probabilities and
segmentation. A picture that cannot be read is reported and left out; the exit code is then 1 at the end, and
--resume tries it again. --output and --draw replace what is there, but nothing that the run reads, and no
.jsonl file. What is wrong for every picture, such as class names that do not fit, ends the run.
"""

import collections
import functools
import os
import sys
import time
from pathlib import Path

import numpy as np

from ..errors import FormatError, MXNetError, SettingsError
from ..models.drawing import draw, save
from ..models.labels import class_name
from ..models.outputs import Placement, json_text, read_outputs
from ..models.pictures import ENDINGS, PRESETS, find_pictures, read_image
from ..models.predict import Prediction
from ..ndarray.files import replacing
from .common import (
    ARRAYS,
    add_device,
    add_inputs,
    add_model,
    add_outputs,
    dtype_name,
    find_model,
    given_array,
    note,
    numbers,
    of_numbers,
    positive,
    read_arrays,
    refuse,
    size,
    table,
)

SUMMARY = "run a saved model on pictures or arrays; print and draw what it sees"

#: A run ends when so many pictures that could be read have failed and none has not.
_MOST_FAILURES = 10
_PREPROCESSING = ("resize", "short_side", "max_side", "crop", "color", "scale", "mean", "std", "layout")
#: What :func:`roiops.models.load` takes under the same names.
_LOADING = (
    *_PREPROCESSING,
    *("outputs", "dtype", "preset", "classes", "threshold", "box_stds", "top", "softmax", "batch"),
)
#: Further options that arrays have no use for.
_FOR_PICTURES = ("preset", "batch", "workers", "draw", "threshold", "box_stds")


def configure(parser) -> None:
    add_model(parser)
    parser.add_argument(
        "rest",
        nargs="*",
        metavar="[PARAMS] PICTURES",
        help="parameters or their epoch, then pictures, or .npy or .npz files of the inputs",
    )
    add_inputs(parser, "an input by name: a picture, a .npy or .npz file, or JSON values")
    add_outputs(parser)
    images = parser.add_argument_group("pictures")
    images.add_argument("--preset", choices=PRESETS, default="raw", help="values for the flags below")
    images.add_argument("--resize", type=size, metavar="HxW", help="resize to exactly this")
    images.add_argument(
        "--short-side", type=positive(int), metavar="N", help="resize so that the short side is this"
    )
    images.add_argument(
        "--max-side", type=positive(int), metavar="N", help="but the long side no more than this"
    )
    images.add_argument("--crop", type=size, metavar="HxW", help="then take so much from the middle")
    images.add_argument(
        "--color", choices=("rgb", "bgr", "gray"), help="order of the channels; gray: one channel"
    )
    images.add_argument("--scale", type=numbers, metavar="X", help="multiply the values 0 to 255 with this")
    images.add_argument("--mean", type=numbers, metavar="A,B,C", help="then subtract this from the channels")
    images.add_argument("--std", type=numbers, metavar="A,B,C", help="then divide them by this")
    images.add_argument(
        "--layout", choices=("nchw", "nhwc"), help="where the channels stand (default: found)"
    )
    images.add_argument(
        "--batch", type=positive(int), default=8, metavar="N", help="pictures of one size at once (default 8)"
    )
    images.add_argument(
        "--workers", type=positive(int), metavar="N", help="so many processes, for many pictures"
    )
    results = parser.add_argument_group("results")
    results.add_argument(
        "--output",
        metavar="FILE",
        help=".jsonl: a line of JSON for each picture; .npz or .json: the network's outputs",
    )
    results.add_argument(
        "--resume",
        action="store_true",
        help="go on with a .jsonl file: leave out pictures with a result, try again those with an error",
    )
    results.add_argument(
        "--draw",
        metavar="PICTURE",
        help="draw what is found in this file; for several pictures, in this folder",
    )
    results.add_argument(
        "--threshold", type=float, default=0.5, metavar="X", help="least score (default 0.5)"
    )
    results.add_argument(
        "--classes",
        metavar="NAMES",
        help="names of the classes: imagenet, voc or coco, names with commas between, or a file of lines",
    )
    results.add_argument(
        "--softmax", action="store_true", help="the scores are logits: make probabilities of them"
    )
    results.add_argument(
        "--box-stds",
        type=numbers,
        default=(1.0, 1.0, 1.0, 1.0),
        metavar="A,B,C,D",
        help="what an R-CNN's box deltas are multiplied with (0.1,0.1,0.2,0.2 for weights saved as trained)",
    )
    parser.add_argument(
        "--dtype", type=dtype_name, metavar="TYPE", help="convert the parameters, such as float16 to float32"
    )
    parser.add_argument(
        "--top", type=positive(int), default=5, metavar="N", help="best classes to tell (default 5)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON, a line for each picture")
    add_device(parser)


def execute(args) -> int:
    from .. import models

    ending = Path(args.output or "").suffix
    if args.output and ending not in (".npz", ".json", ".jsonl"):
        args.parser.error(f"--output must end in .npz, .json or .jsonl, got {args.output}")
    if ending != ".jsonl":
        refuse(args, "needs --output FILE.jsonl, the results to go on with", "resume")
    if ending in (".npz", ".json"):
        refuse(args, f"has no effect with {ending}: all pictures go through at once", "batch", "workers")
    folder = os.path.dirname(args.output or "")
    if folder and not os.path.isdir(folder):
        raise MXNetError(f"--output {args.output}: there is no folder {folder}")
    params, names, array_files = _params_pictures_and_arrays(args.rest)
    inputs, named_pictures = _named_inputs(args, names)
    symbol, weights = find_model(args, params)
    try:
        model = models.load(
            symbol,
            weights,
            input=named_pictures,
            ctx=args.device,
            source=args.symbol,
            **{name: value for name in _LOADING if (value := getattr(args, name)) is not None},
        )
    except SettingsError as error:
        args.parser.error(str(error))
    for file in array_files:
        found = _inputs_of_file(file, model.input_names, inputs)
        if twice := [name for name in found if name in inputs]:
            args.parser.error(f"{file}: {twice[0]} is given already")
        inputs |= found
    if not names and not inputs:
        args.parser.error(
            f"nothing to run on: PICTURES, or --input for {', '.join(model.input_names)}, are needed"
        )
    if named_pictures in inputs:
        args.parser.error(f"--input {named_pictures}: pictures and arrays cannot be joined")
    pictures = find_pictures(names)
    read = [each for each in (symbol, weights, args.classes) if isinstance(each, str)]
    read += [value for _, value in args.input] + array_files + pictures
    _keep(args, "output", [args.output] if args.output else [], read)
    if not pictures:
        if ending == ".jsonl":
            args.parser.error("--output FILE.jsonl is for pictures; .npz or .json keep the outputs of arrays")
        refuse(args, "is for pictures; these are arrays", *_PREPROCESSING, *_FOR_PICTURES)
        return _run_at_once(args, model, [], {}, inputs)
    model.inputs = inputs
    model.picture_input()  # raises for a model that cannot be fed
    model.inputs = {name: _of_one_picture(name, value) for name, value in inputs.items()}
    drawings = _drawings(args, pictures)
    _keep(args, "draw", drawings.values(), read)
    _find_layout(args, model, pictures)
    if ending == ".jsonl" or (len(pictures) > 1 and not args.output):
        return _run_pictures(args, model, pictures, drawings)
    return _run_at_once(args, model, pictures, drawings, inputs)


def _keep(args, option: str, written, read) -> None:
    """End where what is written would replace a file that is read."""
    there = {os.path.realpath(file): file for file in written if os.path.exists(file)}
    if lost := next((each for each in there and read if os.path.realpath(each) in there), None):
        given = getattr(args, option)
        args.parser.error(f"--{option} {given}: {lost} is read, and would be replaced; choose another name")


# -- inputs ----------------------------------------------------------------------------------------------


def _params_pictures_and_arrays(rest) -> tuple[str | None, list[str], list[str]]:
    """What follows the model: parameters (named .params) or their epoch (a number), pictures, and arrays."""
    params, names = None, rest
    if rest and (rest[0].endswith(".params") or rest[0].isdecimal() or _no_picture(rest[0])):
        params, names = rest[0], rest[1:]
    arrays = [name for name in names if _ends_in(name, ARRAYS)]
    return params, [name for name in names if name not in arrays], arrays


def _no_picture(name: str) -> bool:
    """Whether a name can only be that of parameters: a file not called as pictures and arrays are."""
    return os.path.isfile(name) and not _ends_in(name, (*ENDINGS, *ARRAYS))


def _ends_in(name: str, endings) -> bool:
    return Path(name).suffix.lower() in endings


def _named_inputs(args, names: list) -> tuple[dict, str | None]:
    """The arrays of ``--input`` by name, and the input that takes pictures; those are added to ``names``."""
    parts: dict[str, list] = {}
    takes_pictures = None
    for name, value in args.input:
        array = given_array(args, name, value)
        if array is not None:
            parts.setdefault(name, []).append(array)
        elif takes_pictures not in (None, name):
            args.parser.error(f"--input: only one input takes pictures, got {takes_pictures} and {name}")
        else:
            takes_pictures = name
            names.append(value)
    for name, arrays in parts.items():
        if len({array.shape[1:] for array in arrays}) > 1:
            shapes = ", ".join(str(array.shape) for array in arrays)
            args.parser.error(f"--input {name}: arrays of different shapes cannot be joined: {shapes}")
    return {name: np.concatenate(a) if len(a) > 1 else a[0] for name, a in parts.items()}, takes_pictures


def _inputs_of_file(path: str, names, given) -> dict:
    """The inputs that a file of arrays holds: those of its names, or a single array for the only input."""
    held = read_arrays(path)
    known = {name: array for name, array in held.items() if name in names}
    missing = [name for name in names if name not in given]
    if not known and len(held) == len(missing) == 1:
        known = {missing[0]: next(iter(held.values()))}
    if not known:
        found = ", ".join(name for name in held if name) or f"{len(held)} arrays without names"
        raise FormatError(
            f"{path}: holds {found}; the model's inputs are {', '.join(names)}; "
            f"--input NAME={path} says which it is"
        )
    return {name: of_numbers(path, array) for name, array in known.items()}


def _of_one_picture(name: str, value: np.ndarray) -> np.ndarray:
    """The value of an input beside the picture, without the axis of the batch."""
    if value.ndim and value.shape[0] == 1:
        return value[0]
    raise MXNetError(
        f"--input {name}: beside pictures it must be one row, the same for each, got {value.shape}"
    )


def _find_layout(args, model, pictures) -> None:
    """Where the channels stand, if only one way fits the graph; say to which size pictures are brought."""
    how = model.preprocessing
    try:
        image = read_image(pictures[0])
        place = how.place(image.height, image.width)
    except (MXNetError, OSError):
        return  # reported when it is read
    if args.layout is None and model.takes(how.channels, place.height, place.width) == "nhwc":
        how.layout = "nhwc"
        note(f"{model.picture_input()} is fed with the channels last, as the graph has it")
    more = "" if len(pictures) == 1 else "; others accordingly"
    note(f"{pictures[0]}: {how.describe(image.height, image.width)} (preset {args.preset}){more}")
    if "im_info" in model.input_names and "im_info" not in model.inputs:
        note(f"im_info is filled with {[float(place.height), float(place.width), place.scale[0]]}{more}")


# -- arrays, and the network's own outputs ---------------------------------------------------------------


def _run_at_once(args, model, pictures, drawings, inputs) -> int:
    """Arrays, one picture, or all pictures at once to keep what the network puts out."""
    if pictures:
        found, predictions = _found_in_pictures(args, model, pictures, drawings)
    else:
        found, predictions = _found_in_arrays(args, model, inputs)
    if args.output:
        _write(args.output, found)
    described = {"outputs": [{"name": n, "shape": a.shape, "dtype": a.dtype.name} for n, a in found.items()]}
    if args.json and not pictures:
        print(json_text({**described, "rows": [each.reading.to_dict() for each in predictions]}))
    elif args.json:
        for each in predictions:
            print(json_text({**_as_json(each), **described}, ensure_ascii=False))
    else:
        _print_outputs(found)
        for each in predictions:
            if pictures or each.reading.scores:
                _print_page(args, each, alone=len(pictures) == 1)
    _conclude(args, len(pictures), 0, sum(map(_can_be_drawn, predictions)), 0.0)
    return 0


def _found_in_pictures(args, model, pictures, drawings) -> tuple[dict, list]:
    """What the network puts out for all pictures at once, and what that says about each."""
    ready = [model.read(number, picture) for number, picture in enumerate(pictures)]
    for each in ready:
        if isinstance(each, tuple):
            raise MXNetError(_failure(each[1]))
    sizes = sorted({each.array.shape[1:] for each in ready})
    if len(sizes) > 1:
        raise MXNetError(
            f"--output {args.output}: pictures of different sizes have outputs that do not fit together "
            f"({', '.join(map(str, sizes))}); --resize brings them to one, a .jsonl file takes them all"
        )
    found: dict = {}
    predictions = [prediction for _, prediction in model.compute_batch(ready, found)]
    if drawings:
        for each, prediction in zip(ready, predictions, strict=True):
            _draw(drawings, model.preprocessing, each.image, prediction)
    return found, predictions


def _found_in_arrays(args, model, inputs) -> tuple[dict, list]:
    """The outputs for arrays, and what those say about each row where there are few. No boxes are read."""
    start = time.perf_counter()
    results = model(ctx=args.device, reuse=True, **inputs)
    found = {name: array.asnumpy() for name, array in zip(model.output_names, results, strict=True)}
    seconds = time.perf_counter() - start
    rows = next(iter(np.shape(next(iter(inputs.values())))), 0)
    tables = {name: array for name, array in found.items() if array.ndim == 2 and len(array) == rows}
    few = tables and 0 < rows <= 16
    readings = read_outputs(tables, [Placement(1, 1)] * rows, model.settings) if few else []
    if not args.output and not any(reading.scores for reading in readings):
        note("boxes and segmentations are read of pictures only: --input NAME=PICTURE, a .jpg or .png file")
    note(f"{_took(1000 * seconds)}, compiling included")
    return found, [Prediction(f"row {n}", reading=reading) for n, reading in enumerate(readings)]


def _write(path: str, found: dict) -> None:
    if Path(path).suffix == ".npz":
        with replacing(path) as file:
            np.savez_compressed(file, **found)
        return
    lists = {
        name: {"shape": a.shape, "dtype": a.dtype.name, "values": a.tolist()} for name, a in found.items()
    }
    with replacing(path) as file:
        file.write(json_text(lists).encode())


def _print_outputs(found) -> None:
    rows = [("output", "shape", "dtype", "min", "mean", "max")]
    for name, array in found.items():
        numbers_of = (array.min(), array.mean(dtype=np.float64), array.max()) if array.size else ()
        rows.append((name, array.shape, array.dtype.name, *(f"{float(v):.6g}" for v in numbers_of)))
    print(table(rows))


# -- pictures --------------------------------------------------------------------------------------------


def _run_pictures(args, model, pictures, drawings) -> int:
    from ..models.workers import ResultsFile, predict_many

    results = ResultsFile(args.output, resume=args.resume) if args.output else None
    wanted = [each for each in pictures if not (results and each in results)]
    if len(wanted) < len(pictures):
        note(f"{len(pictures) - len(wanted)} of {_counted(len(pictures))} are in {args.output} already")
    if results and results.removed:
        note(f"{_counted(results.removed)} with an error in {args.output}: tried again")
    after = functools.partial(_draw, drawings, model.preprocessing) if drawings else None
    start, failed, unfit, drawn = time.perf_counter(), 0, 0, 0
    progress = _Progress(len(wanted))
    how = functools.partial(predict_many, model, workers=args.workers) if args.workers else model.stream
    stream = how(zip(wanted, wanted, strict=True), after=after)
    try:
        for done, (_, prediction) in enumerate(stream, start=1):
            failed += prediction.error is not None
            drawn += _can_be_drawn(prediction)
            progress.clear()
            if results:
                results.write(prediction)
            if not results or prediction.error is not None:
                _show(args, prediction)
            progress.show(done, failed)
            unfit += prediction.error is not None and prediction.width is not None
            if unfit == done == _MOST_FAILURES:
                raise MXNetError(
                    f"the first {done} pictures all failed, the last one, {_failure(prediction)}"
                )
    finally:
        progress.clear()
        if results:
            results.close()
    seconds = time.perf_counter() - start
    _conclude(args, len(wanted), failed, drawn, seconds)
    return 1 if failed else 0


def _took(ms: float) -> str:
    return f"{ms:.1f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def _counted(count: int) -> str:
    return "1 picture" if count == 1 else f"{count} pictures"


def _can_be_drawn(prediction) -> bool:
    """Whether there are boxes (perhaps none that are good enough) or classes of pixels to draw."""
    found = prediction.reading
    return found is not None and (found.detections is not None or found.segmentation is not None)


def _conclude(args, count, failed, drawn, seconds) -> None:
    if args.draw and drawn:
        note(f"{'drawn in' if count == 1 else f'{drawn} drawings in'} {args.draw}")
    elif args.draw and count > failed:
        note("nothing is drawn: the outputs are neither boxes nor classes of pixels")
    if seconds and count:
        note(
            f"{_counted(count)} in {seconds:.1f} s, {1000 * seconds / count:.1f} ms each"
            + (f"; {failed} could not be read or run" if failed else "")
        )


def _drawings(args, pictures) -> dict[str, str]:
    """The file for the drawing of each picture, its own, if there is to be one."""
    if not args.draw:
        return {}
    if len(pictures) == 1 and Path(args.draw).suffix:
        return {pictures[0]: args.draw}
    if _ends_in(args.draw, ENDINGS) or os.path.isfile(args.draw):
        args.parser.error(f"--draw must be a folder here, got {args.draw}")
    common = os.path.commonpath([os.path.dirname(os.path.abspath(each)) for each in pictures])
    names = {each: Path(args.draw, os.path.relpath(each, common)) for each in pictures}
    alike = collections.Counter(name.with_suffix("") for name in names.values())
    return {
        each: str(name.with_suffix(".png")) if alike[name.with_suffix("")] == 1 else f"{name}.png"
        for each, name in names.items()
    }


def _draw(drawings, how, image, prediction) -> None:
    """Draw one prediction, if there is something to draw; run beside the network, or in a worker."""
    if not _can_be_drawn(prediction):
        return
    target = drawings[prediction.picture]
    os.makedirs(os.path.dirname(target) or ".", exist_ok=True)
    save(draw(image, prediction.reading, how.place(image.height, image.width)), target)


def _failure(prediction) -> str:
    """What went wrong with a picture, with its name once."""
    if prediction.error.startswith(str(prediction.picture)):
        return prediction.error
    return f"{prediction.picture}: {prediction.error}"


def _show(args, prediction) -> None:
    """Print what is known of one of many pictures: a line of JSON or of text."""
    if prediction.error is not None:
        note(_failure(prediction))
    if args.json:
        print(json_text(_as_json(prediction), ensure_ascii=False), flush=True)
    elif prediction.error is None:
        _tell_nan(prediction)
        told = _in_a_line(args, prediction.reading)
        print(f"{prediction.picture}: {told}  ({prediction.ms:.1f} ms)", flush=True)


def _tell_nan(prediction) -> None:
    if names := prediction.reading.not_numbers:
        note(
            f"{prediction.picture}: {' and '.join(names)} hold NaN: the parameters, or how the input was "
            "prepared (--preset, --mean, --std of pictures), do not fit the model"
        )


def _as_json(prediction) -> dict:
    told = prediction.to_dict()
    return told if prediction.ms is None else {**told, "ms": round(prediction.ms, 3)}


def _print_page(args, prediction, alone: bool) -> None:
    """What is known of a picture, or of a row of arrays, whose outputs were printed."""
    reading = prediction.reading
    _tell_nan(prediction)
    print()
    if not alone:
        print(f"{prediction.picture}:")
    rows = reading.rows(4)
    if len(rows) > 1:
        print(table(rows))
    elif reading.detections is not None:
        print(_in_a_line(args, reading))
    elif not reading.to_dict():
        print(f"The outputs are {_KINDS}.")
    for each in reading.scores or ():
        print(f"Best of {each.output}:")
        print(table(((class_name(n, each.names), n, f"{s:.6g}") for n, s in each.best), indent="  "))
        if each.remark:
            note(each.remark)
    if prediction.ms is not None:
        note(_took(prediction.ms) + (", compiling included" if alone else ""))


def _in_a_line(args, reading) -> str:
    if reading.detections:
        found = ", ".join(
            f"{class_name(b.class_id, reading.names)} {b.score:.2f}" for b in reading.detections[:8]
        )
        more = len(reading.detections) - 8
        return f"{len(reading.detections)} found: {found}" + (f" and {more} more" if more > 0 else "")
    if reading.detections is not None:
        best = reading.best_below
        if best is None:
            return "nothing found"
        return (
            f"nothing found with a score of {args.threshold:g} or more; the best is "
            f"{class_name(best.class_id, reading.names)} with {best.score:.4f}"
        )
    if reading.segmentation is not None:
        return ", ".join(f"{class_name(n, reading.names)} {100 * p:.0f} %" for n, p in reading.parts()[:5])
    if reading.scores:
        best = ((each.names, each.best[:3]) for each in reading.scores)
        return "; ".join(", ".join(f"{class_name(n, names)} {s:.3g}" for n, s in few) for names, few in best)
    return f"outputs that are {_KINDS}"


_KINDS = "neither detections, nor class scores, nor a segmentation; --output FILE.npz keeps them"


class _Progress:
    """How far it is, on one line of a terminal; nothing elsewhere."""

    def __init__(self, count: int):
        self.count, self.start, self.last = count, time.perf_counter(), 0.0
        self.shown = count > 1 and sys.stderr.isatty()

    def show(self, done: int, failed: int) -> None:
        now = time.perf_counter()
        if not self.shown or (now - self.last < 0.1 and done < self.count):
            return
        self.last = now
        filled = 30 * done // self.count
        failures = f", {failed} failed" if failed else ""
        sys.stderr.write(
            f"[{'#' * filled}{'.' * (30 - filled)}] {done} of {self.count}, "
            f"{done / (now - self.start):.1f} a second{failures}\r"
        )
        sys.stderr.flush()

    def clear(self) -> None:
        if self.shown:
            sys.stderr.write("\x1b[2K\r")
