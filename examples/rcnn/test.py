"""Evaluate a detector on a data set: average precision of each class and their mean.

With ``mpiexec -n 4 python test.py MODEL --kvstore dist_sync`` each process looks at a share of the pictures.
"""

import argparse
import json
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import roiops as mx
from rcnn.config import ConfigError, load
from rcnn.data import DataError, TestLoader, read_dataset
from rcnn.detector import Detector
from rcnn.draw import worth_drawing
from rcnn.evaluate import coco_results, least_score, mean_average_precision
from rcnn.symbol import backbone_of
from rcnn.trainer import OtherRankFailed, agreed


def detect_all(detector: Detector, records, progress=True) -> list:
    """Detections in the picture of every record."""
    loader = TestLoader(records, detector.config, backbone_of(detector.config).stride)
    if progress and sys.stderr.isatty():
        try:
            from tqdm import tqdm

            loader = tqdm(loader, total=len(records), unit="image")
        except ImportError:
            pass
    return [detector.run(batch, factor, (record.height, record.width)) for batch, record, factor in loader]


def detect_together(detector: Detector, records, store) -> list | None:
    """Detections in the picture of every record, each process's share by itself; None but in the first."""
    found = detect_all(detector, records[store.rank :: store.num_workers], progress=store.rank == 0)
    every = store.comm.gather(found, root=0)
    if every is None:
        return None
    detections: list = [None] * len(records)
    for rank, of_rank in enumerate(every):
        detections[rank :: store.num_workers] = of_rank
    return detections


def coco_summary(annotations: Path, results: list) -> dict | None:
    """COCO's own measures, or None where pycocotools is not installed."""
    try:
        from pycocotools.coco import COCO
        from pycocotools.cocoeval import COCOeval
    except ImportError:
        return None
    truth = COCO(str(annotations))
    evaluation = COCOeval(truth, truth.loadRes(results), "bbox")
    evaluation.evaluate()
    evaluation.accumulate()
    evaluation.summarize()
    return dict(zip(("AP", "AP50", "AP75"), map(float, evaluation.stats[:3]), strict=True))


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="a folder that train.py wrote, or the committed one: model")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change the configuration, as in --set data.root=/data/VOC2007; may be repeated",
    )
    parser.add_argument("--iou", type=float, nargs="+", default=[0.5, 0.75], help="default: 0.5 0.75")
    parser.add_argument("--eleven-points", action="store_true", help="average precision as in VOC 2007")
    parser.add_argument("--gpu", type=int, metavar="N", help="run on this GPU rather than on the CPU")
    parser.add_argument(
        "--kvstore",
        default="local",
        metavar="TYPE",
        help="dist_sync to share the pictures among the processes that mpiexec started",
    )
    parser.add_argument("--json", help="write the measures to this file")
    parser.add_argument("--results", help="write the detections to this file, in COCO's result format")
    options = parser.parse_args(arguments)

    def prepare():
        config = load(Path(options.model) / "config.yaml", options.set)
        records = read_dataset(config.data, config.data.test_split)
        context = mx.cpu() if options.gpu is None else mx.gpu(options.gpu)
        return config, records, Detector.load(options.model, context, options.set)

    store = None
    try:
        store = mx.kv.create(options.kvstore) if options.kvstore != "local" else None
        config, records, detector = agreed(store, prepare)
    except (ConfigError, DataError, OSError, OtherRankFailed, mx.MXNetError) as error:
        if store is None or store.rank == 0:
            print(f"test.py: {error}", file=sys.stderr)
        return 1
    detections = detect_together(detector, records, store) if store else detect_all(detector, records)
    if detections is None:  # the first process tells
        return 0
    measures = {"images": len(records)}
    columns = []
    for threshold in options.iou:
        mean, each = mean_average_precision(
            records, detections, config.data.classes, threshold, options.eleven_points
        )
        measures[f"mAP@{threshold:g}"] = mean
        columns.append((f"AP@{threshold:g}", each, mean))
    print(f"{'class':<16}" + "".join(f"{name:>10}" for name, _, _ in columns))
    for label in config.data.classes:
        print(f"{label:<16}" + "".join(f"{each[label]:>10.3f}" for _, each, _ in columns))
    print(f"{'mean':<16}" + "".join(f"{mean:>10.3f}" for _, _, mean in columns))
    # What a picture shows is less than what average precision looks at: one label to a place.
    shown = [worth_drawing(found, 0) for found in detections]
    score, recall = least_score(records, shown, config.data.classes)
    measures.update({"score": min(score, 1.0), "recall": recall})  # JSON knows no infinity
    print(f"95% of the boxes with a score of {score:.2f} or more are right; they find {100 * recall:.0f}%")
    if config.data.format == "coco" or options.results:
        measures.update(_as_coco(config, records, detections, options.results) or {})
    if options.json:
        Path(options.json).write_text(json.dumps(measures, indent=1) + "\n")
    return 0


def _as_coco(config, records, detections, path):
    """Write COCO's result file where asked, and run COCO's evaluation where it can be."""
    annotations = Path(config.data.root) / "annotations" / f"{config.data.test_split}.json"
    numbers = {label: i for i, label in enumerate(config.data.classes, start=1)}
    if config.data.format == "coco":
        listed = json.loads(annotations.read_text())["categories"]
        numbers = {each["name"]: each["id"] for each in listed}
    results = coco_results(records, detections, numbers)
    if path:
        Path(path).write_text(json.dumps(results))
    if config.data.format != "coco" or not results:
        return None
    summary = coco_summary(annotations, results)
    if summary is None:
        print("COCO's measures need pycocotools, which is not installed")
    return summary


if __name__ == "__main__":
    sys.exit(main())
