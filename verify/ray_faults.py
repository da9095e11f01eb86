"""Detect on a local Ray cluster of several nodes, end an actor and a node in the middle, and count the rows.

  python verify/ray_faults.py --pictures 20000 --nodes 3

Every picture must have exactly one row, equal to what one process computes. Prints the throughput of one and
of several actors, with roiops and with onnxruntime, and that of ``predict_many`` with as many workers. Needs
``ray[data]`` and Pillow, and for the throughputs onnx and onnxruntime.
"""

import argparse
import importlib.util
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "examples"), str(ROOT / "examples" / "scale")]
os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(ROOT / "examples" / "scale")])

import numpy as np  # noqa: E402
from detect_with_ray import detect, rows  # noqa: E402
from onnx_model import OnnxModel  # noqa: E402

import roiops  # noqa: E402
from roiops.models.onnx import to_onnx  # noqa: E402
from roiops.models.workers import predict_many  # noqa: E402

#: Scenes are drawn, and the rest of the pictures are scenes shifted around, which is quicker.
_SCENES = 400
_DAMAGED = 7
SYMBOL = ROOT / "examples" / "archived" / "shapes-symbol.json"
PARAMS = ROOT / "examples" / "rcnn" / "model" / "model.params"


def make_pictures(folder: Path, count: int) -> list[str]:
    """Pictures of shapes, all different, and a few damaged files."""
    from PIL import Image
    from rcnn.data.shapes import draw_scene

    scenes = [np.asarray(draw_scene(np.random.default_rng([11, i]))[0]) for i in range(min(_SCENES, count))]
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for i in range(count):
        path = folder / f"{i:06d}.jpg"
        shift = i // _SCENES
        paths.append(str(path))
        if path.exists():
            continue
        if i % (count // _DAMAGED + 1) == 1:
            path.write_bytes(b"\xff\xd8\xff\xe0 no picture")
        else:
            Image.fromarray(np.roll(scenes[i % len(scenes)], (shift, 2 * shift), (0, 1))).save(path)
    return paths


def load_model(batch: int):
    from rcnn.data.shapes import CLASSES

    return roiops.models.load(
        SYMBOL,
        PARAMS,
        dtype="float32",
        mean=118,
        std=60,
        box_stds=(0.1, 0.1, 0.2, 0.2),
        classes=list(CLASSES),
        batch=batch,
    )


def one_process(model, paths) -> dict:
    """Rows by picture, computed here."""
    names = list(paths)
    found = dict(model.stream((path, path) for path in names))
    return {row["picture"]: row for row in rows(names, [found[name] for name in names]).to_pylist()}


def read_output(folder) -> list[dict]:
    import pyarrow.parquet

    return [
        row
        for path in sorted(Path(folder).rglob("*.parquet"))
        for row in pyarrow.parquet.read_table(path).to_pylist()
    ]


def differences(expected: dict, found: list[dict]) -> dict:
    """What is not as it should be; the text of an error may name a picture in its own way."""
    seen: dict = {}
    for row in found:
        seen.setdefault(row["picture"], []).append(row)
    wrong = [
        name
        for name, some in seen.items()
        if name in expected
        and any(row[column] != expected[name][column] for row in some for column in row if column != "error")
    ]
    return {
        "rows": len(found),
        "missing": len(set(expected) - set(seen)),
        "twice": sum(len(some) > 1 for some in seen.values()),
        "strangers": len(set(seen) - set(expected)),
        "unequal": len(wrong),
        "errors": sum(row["error"] is not None for row in found),
    }


def end_things(cluster, node, after: float, log: list):
    """An actor, then a whole node, while the work goes on."""
    from ray._private.state import actors  # the public list of actors needs Ray's dashboard

    working: list = []
    while not working:
        time.sleep(after)
        alive = [each for each in actors().values() if each["State"] == "ALIVE" and each.get("Pid")]
        working = [each["Pid"] for each in alive if "Detect" in each["ActorClassName"]]
        log += [] if working else [f"no actor among {sorted({e['ActorClassName'] for e in alive})}"]
    os.kill(working[0], signal.SIGKILL)
    log.append("an actor was killed")
    time.sleep(after)
    cluster.remove_node(node, allow_graceful=False)
    log.append("a node was removed")


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--pictures", type=int, default=20000)
    parser.add_argument(
        "--nodes", type=int, default=3, help="of one processor each, besides the head; one fewer actors"
    )
    parser.add_argument("--after", type=float, default=15, help="seconds until the actor, and then the node")
    parser.add_argument(
        "--speed", type=int, default=2000, help="pictures for the throughputs; 0 leaves them out"
    )
    parser.add_argument("--folder", help="for the pictures; those that are there are taken as they are")
    parser.add_argument("--json", help="write what was found to this file")
    options = parser.parse_args()
    missing = [name for name in ("onnx", "onnxruntime") if importlib.util.find_spec(name) is None]
    if options.speed and missing:
        parser.error(f"the throughputs need {' and '.join(missing)}; --speed 0 leaves them out")
    os.environ["RAY_DATA_DISABLE_PROGRESS_BARS"] = "1"
    import ray
    from ray.cluster_utils import Cluster

    folder = Path(tempfile.mkdtemp(prefix="roiops-ray-"))
    pictures = Path(options.folder or folder / "pictures")
    result: dict = {"pictures": options.pictures, "nodes": options.nodes}
    cluster = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "object_store_memory": 300 << 20})
    try:
        paths = make_pictures(pictures, options.pictures)
        nodes = [cluster.add_node(num_cpus=1, object_store_memory=300 << 20) for _ in range(options.nodes)]
        ray.init(address=cluster.address, log_to_driver=False, logging_level="ERROR")
        ray.data.DataContext.get_current().enable_progress_bars = False
        model = load_model(batch=1)  # results do not depend on the neighbours in a batch
        start = time.perf_counter()
        expected = one_process(model, paths)
        result["one process, pictures/s"] = len(paths) / (time.perf_counter() - start)
        print(f"one process: {result['one process, pictures/s']:.1f} pictures/s", flush=True)
        log: list = []
        killer = threading.Thread(
            target=end_things, args=(cluster, nodes[-1], options.after, log), daemon=True
        )
        killer.start()
        start = time.perf_counter()
        detect(model, str(pictures), str(folder / "found"), options.nodes - 1)
        result["with faults, pictures/s"] = len(paths) / (time.perf_counter() - start)
        result["faults"] = list(log)
        result["differences"] = differences(expected, read_output(folder / "found"))
        print(json.dumps(result, indent=1), flush=True)
        if options.speed:
            measure(load_model(batch=8), paths[: options.speed], folder, result)
    finally:
        ray.shutdown()
        cluster.shutdown()
        shutil.rmtree(folder, ignore_errors=True)
    print(json.dumps(result, indent=1))
    if options.json:
        Path(options.json).write_text(json.dumps(result, indent=1) + "\n")
    clean = {**result["differences"], "rows": 0, "errors": 0}
    return 1 if any(clean.values()) or len(result["faults"]) < 2 else 0


def measure(model, paths, folder, result) -> None:
    """Throughputs without faults: of actors, of actors with onnxruntime, and of worker processes."""
    chosen = folder / "chosen"
    chosen.mkdir()
    for path in paths:
        shutil.copy(path, chosen)
    shapes = {"data": ("N", 3, 128, 128), "im_info": ("N", 3)}
    to_onnx(SYMBOL, PARAMS, shapes=shapes, dtype="float32", path=folder / "shapes.onnx")
    engines = {"": model, " with onnxruntime": OnnxModel(model, folder / "shapes.onnx")}
    for actors in (1, 2):
        for words, engine in engines.items():
            start = time.perf_counter()
            detect(engine, str(chosen), str(folder / f"speed{actors}{words}"), actors)
            speed = len(paths) / (time.perf_counter() - start)
            result[f"{actors} actors{words}, pictures/s"] = speed
    for workers in (1, 2):
        start = time.perf_counter()
        done = list(predict_many(model, zip(paths, paths, strict=True), workers, threads=1))
        assert len(done) == len(paths)
        result[f"{workers} workers, pictures/s"] = len(paths) / (time.perf_counter() - start)


if __name__ == "__main__":
    sys.exit(main())
