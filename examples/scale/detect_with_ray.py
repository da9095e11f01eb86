"""Detect objects in many pictures on many machines, with Ray Data: Parquet with boxes, scores and classes.

  python detect_with_ray.py model-symbol.json model-0000.params --pictures photos/ --output found/
  python detect_with_ray.py MODEL PARAMS --pictures photos.parquet --output found/ --address auto --actors 32
  python detect_with_ray.py MODEL PARAMS --pictures photos/ --output found/ --onnx model.onnx

Pictures are the files of a folder, or the rows of Parquet files with a column ``bytes`` (or ``image``) and
one of names, ``path``. Each actor has a model with one processor; the actors of a machine share its weights.
What an actor or a machine was at work on when it died is done again. Each picture is one row of the output; a
picture that cannot be read is a row with its error. With ``--onnx`` the network runs in onnxruntime, in the
same actors, from the file that ``roiops convert`` makes of the model; all else stays as it is.
"""

import argparse
import io
import json
import os
import sys
import time
from pathlib import Path

COLUMNS = ("picture", "width", "height", "boxes", "scores", "class_ids", "classes", "error")


class Detect:
    """What an actor does: batches of pictures to batches of rows.

    Parameters
    ----------
    model : ObjectRef of PictureModel
        The model. Ray keeps one copy of its weights on each machine, which the actors there map.
    """

    def __init__(self, model):
        os.environ["NUMBA_NUM_THREADS"] = "1"  # an actor has one processor; numba is not loaded yet
        import ray

        self.model = ray.get(model)

    def __call__(self, batch):
        names = [str(name) for name in batch["path"]]
        pictures = [io.BytesIO(content) for content in batch["bytes"]]
        return rows(names, self.model.predict(pictures))


def rows(names, predictions):
    """A table of results, of one schema even where a batch has no boxes."""
    import pyarrow

    columns: dict = {name: [] for name in COLUMNS}
    for name, prediction in zip(names, predictions, strict=True):
        found = prediction.to_dict()
        detections = found.get("detections", [])
        columns["picture"].append(name)
        columns["boxes"].append([each["box"] for each in detections])
        columns["scores"].append([each["score"] for each in detections])
        columns["class_ids"].append([each["class_id"] for each in detections])
        columns["classes"].append([each["class"] for each in detections])
        columns["error"].append(error_of(name, prediction))
        for side in ("width", "height"):
            columns[side].append(found.get(side))
    return pyarrow.table(columns, schema())


def error_of(name, prediction):
    """What went wrong with a picture, under its own name: the model was given bytes without one."""
    if prediction.error is None:
        return None
    return f"{name}: {prediction.error.removeprefix(f'{prediction.picture}: ')}"


def schema():
    """The columns of the output and their types."""
    import pyarrow

    number = pyarrow.float64()
    types = {
        "picture": pyarrow.string(),
        "width": pyarrow.int64(),
        "height": pyarrow.int64(),
        "boxes": pyarrow.list_(pyarrow.list_(number)),
        "scores": pyarrow.list_(number),
        "class_ids": pyarrow.list_(pyarrow.int64()),
        "classes": pyarrow.list_(pyarrow.string()),
        "error": pyarrow.string(),
    }
    return pyarrow.schema([(name, types[name]) for name in COLUMNS])


def read(pictures: str):
    """A data set of ``path`` and ``bytes``."""
    import ray

    is_parquet = pictures.endswith(".parquet") or any(Path(pictures).glob("*.parquet"))
    if not is_parquet:
        return ray.data.read_binary_files(pictures, include_paths=True)
    data = ray.data.read_parquet(pictures)
    columns = data.schema().names
    return data.rename_columns({"image": "bytes"}) if "bytes" not in columns else data


def detect(model, pictures: str, output: str, actors: int, batch_rows: int = 64):
    """Run the model over the pictures; the files are in ``output`` when this returns."""
    import ray

    shared = ray.put(model)
    found = read(pictures).map_batches(
        Detect,
        fn_constructor_args=(shared,),
        batch_size=batch_rows,
        compute=ray.data.ActorPoolStrategy(size=actors),
        num_cpus=1,
        # A batch that an actor died over is given to another, however often.
        max_restarts=-1,
        max_task_retries=-1,
    )
    found.write_parquet(output, mode="overwrite")


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("symbol", help="the graph, or what the names of both files begin with")
    parser.add_argument("params", help="its parameters, or their epoch")
    parser.add_argument("--pictures", required=True, help="a folder, or Parquet files")
    parser.add_argument("--output", required=True, help="the folder for the Parquet files of results")
    parser.add_argument("--preset", default="raw", help="how the network is fed: raw, gluon, rcnn, ssd, ...")
    parser.add_argument("--classes", default="", help="names with commas between, or imagenet, voc, coco")
    parser.add_argument("--options", default="{}", help="further arguments of models.load, as JSON")
    parser.add_argument("--batch", type=int, default=8, help="pictures in one pass (default: %(default)s)")
    parser.add_argument("--onnx", metavar="FILE", help="the same network as ONNX, to run in onnxruntime")
    parser.add_argument("--actors", type=int, help="how many; one for each processor unless given")
    parser.add_argument("--address", help="the cluster, such as auto; a cluster of this machine unless given")
    options = parser.parse_args(arguments)
    try:
        import ray
    except ImportError:
        print("detect_with_ray.py: needs Ray: pip install 'ray[data]'", file=sys.stderr)
        return 1
    import roiops

    params = int(options.params) if options.params.isdecimal() else options.params
    try:
        given = {
            "preset": options.preset,
            "classes": options.classes,
            "batch": options.batch,
            "dtype": "float32",
            **json.loads(options.options),
        }
        model = roiops.models.load(options.symbol, params, **given)
        if options.onnx:
            from onnx_model import OnnxModel

            model = OnnxModel(model, options.onnx)
    except (roiops.MXNetError, OSError, ValueError, TypeError) as error:
        print(f"detect_with_ray.py: {error}", file=sys.stderr)
        return 1
    ray.init(address=options.address, log_to_driver=False)
    actors = options.actors or max(1, int(ray.cluster_resources()["CPU"]) - 1)
    start = time.perf_counter()
    detect(model, os.path.abspath(options.pictures), os.path.abspath(options.output), actors)
    print(f"{time.perf_counter() - start:.1f} s with {actors} actors: {options.output}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
