"""Small published models as MXNet saved them: the graph, loaded and run, gives what MXNet gave.

``verify/check_model_zoo.py`` checks the large ones; it also wrote these files and holds what both need.
"""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import roiops as mx
from roiops.models.archive import ArchivedModel
from roiops.models.inspection import inspect_model

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "tests" / "golden" / "models"
NAMES = sorted(path.stem for path in FOLDER.glob("*.npz"))
TOLERANCE = 1e-4


@pytest.fixture(scope="module", autouse=True)
def _zoo_on_path():
    sys.path.insert(0, str(ROOT / "verify" / "zoo"))
    yield
    sys.path.remove(str(ROOT / "verify" / "zoo"))


class Golden:
    """One file; its weights are made from a seed, times factors that the file holds."""

    def __init__(self, name):
        import inputs

        with np.load(FOLDER / f"{name}.npz") as file:
            self.arrays = {key: file[key] for key in file.files if key not in ("meta", "symbol")}
            self.meta = json.loads(str(file["meta"]))
            self.text = bytes(file["symbol"]).decode()
        shapes = {key: tuple(shape) for key, shape in self.meta["weights"].items()}
        weights = inputs.make_weights(self.text, shapes, self.meta["model"])
        factors = self.group("factor")
        self.params = {key: w * factors[key] if key in factors else w for key, w in weights.items()}
        self.params.update(self.group("array"))
        self.symbol = mx.sym.load_json(self.text)

    def group(self, kind):
        return {key.split("/", 1)[1]: a for key, a in self.arrays.items() if key.startswith(kind + "/")}

    def run(self, symbol):
        inputs = {key: a for key, a in self.group("input").items() if key in symbol.list_arguments()}
        model = ArchivedModel(symbol, {key: mx.nd.array(a) for key, a in self.params.items()})
        return [a.asnumpy() for a in model(**inputs)]


def agrees(got, want, step):
    if step > 1:
        got = got.reshape(-1)[::step]
    assert got.shape == want.shape
    return np.abs(got - want).max() <= TOLERANCE * np.abs(want).max()


def test_the_files_are_there():
    assert len(NAMES) == 9


@pytest.mark.parametrize("name", NAMES)
def test_outputs(name):
    from roiops.models.compare import compare_boxes, split_boxes

    golden = Golden(name)
    names, steps = golden.symbol.list_outputs(), golden.meta["steps"]
    got = dict(zip(names, golden.run(golden.symbol), strict=True))
    want = golden.group("out")
    boxes, rest = split_boxes({key: want[key] for key in names})
    if boxes is not None:
        height, width = golden.group("input")["data"].shape[2:]
        count, wrong, _ = compare_boxes(boxes, split_boxes(got)[0], (height, width))
        assert count > 10, "no boxes to compare"
        assert wrong == 0
    for key, array in rest.items():
        assert agrees(got[key], array, steps[key]), key


@pytest.mark.parametrize("name", [n for n in NAMES if "ssd" in n or "yolo" in n or "center" in n])
def test_raw_heads(name):
    import inputs

    golden = Golden(name)
    internals = golden.symbol.get_internals()
    names = internals.list_outputs()
    heads = golden.meta["heads"]
    assert heads
    got = golden.run(mx.sym.Group(internals[inputs.internal_number(names, head)] for head in heads))
    for i, array in enumerate(got):
        want = golden.arrays[f"out/head/{i}"]
        assert agrees(array, want, golden.meta["steps"][f"head/{i}"]), heads[i]


def test_the_masked_graph_means_the_same_without_negative_batch_indices():
    import inputs

    data, rois = mx.sym.var("data"), mx.sym.var("rois")
    align = mx.sym.contrib.ROIAlign(data, rois, pooled_size=(2, 2), spatial_scale=1, sample_ratio=2)
    graph = mx.sym.Group([align + 1, align])
    masked = mx.sym.load_json(inputs.masked_graph(graph.tojson()))
    assert sorted(masked.list_arguments()) == sorted(graph.list_arguments())
    arrays = {
        "data": np.random.RandomState(0).normal(size=(2, 3, 8, 8)).astype(np.float32),
        "rois": np.array([[1, 0, 0, 5, 5], [-1, 1, 1, 6, 6], [0, 2, 1, 7, 4]], np.float32),
    }
    want, got = (ArchivedModel(symbol, {})(**arrays) for symbol in (graph, masked))
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(b.asnumpy(), a.asnumpy())
    assert not want[1].asnumpy()[1].any()
    assert want[1].asnumpy()[[0, 2]].any(axis=(1, 2, 3)).all()
    aligned = [node for node in json.loads(masked.tojson())["nodes"] if node["op"] == "_contrib_ROIAlign"]
    internals = masked.get_internals()
    names = internals.list_outputs()
    safe = internals[names.index(aligned[0]["name"] + "_mask_rois_output")]
    np.testing.assert_array_equal(ArchivedModel(safe, {})(rois=arrays["rois"])[0].asnumpy()[:, 0], [1, 0, 0])


@pytest.mark.parametrize("name", NAMES)
def test_inspection_finds_everything(name):
    golden = Golden(name)
    found = inspect_model(
        golden.symbol, golden.params, {key: a.shape for key, a in golden.group("input").items()}
    )
    assert found.runs
    assert {v.name for v in found.inputs} == set(golden.group("input"))
    assert found.flops > 0
    assert found.num_parameters == sum(a.size for a in golden.params.values())


def test_only_what_selects_takes_the_given_choices():
    import inputs

    data = mx.sym.var("data")
    scores = data * 2
    best = mx.sym.topk(scores, k=2, ret_typ="both", name="best")
    graph = mx.sym.Group([best[1], scores + 1, best[0] - scores])
    heads = inputs.chosen_from(graph.tojson())
    assert heads == [(scores.name, 0, 0)]
    given = mx.sym.load_json(inputs.given_choices(graph.tojson(), heads))
    assert sorted(given.list_arguments()) == ["choice/0", "data"]
    arrays = {"data": np.array([[1, 3]], np.float32), "choice/0": np.array([[8, 7]], np.float32)}
    ranks, above, gained, own = (a.asnumpy() for a in ArchivedModel(given, {})(**arrays))
    np.testing.assert_array_equal(ranks, [[0, 1]])
    np.testing.assert_array_equal(above, [[3, 7]])
    np.testing.assert_array_equal(gained, [[6, 1]])
    np.testing.assert_array_equal(own, [[2, 6]])


def test_boxes_are_found_among_the_outputs_of_a_training_graph():
    from roiops.models.compare import split_boxes

    rows = np.array([[[3, 0.9, 0, 0, 1, 1], [-1, 0.8, 0, 0, 1, 1]]], np.float32)
    loss, probability = np.zeros((1, 4), np.float32), np.full((1, 2, 6), 0.1, np.float32)
    boxes, rest = split_boxes({"loss": loss, "found": rows, "probability": probability})
    assert boxes is rows
    assert list(rest) == ["loss", "probability"]
    assert split_boxes({"loss": loss, "probability": probability})[0] is None


def test_boxes_change_places_only_where_their_scores_tie():
    from roiops.models.compare import compare_boxes

    def rows(*scores_and_lefts):
        return np.array([[[1, score, left, 0, 1, 1] for score, left in scores_and_lefts]], np.float64)

    want = rows((0.9, 0.1), (0.5, 0.2), (0.3, 0.3))
    assert compare_boxes(want, rows((0.9, 0.1), (0.5, 0.2), (0.3, 0.3)), (1, 1)) == (3, 0, 0)
    tied = rows((0.9, 0.1), (0.5 + 4e-7, 0.3), (0.5, 0.2))
    assert compare_boxes(rows((0.9, 0.1), (0.5, 0.2), (0.5 - 4e-7, 0.3)), tied, (1, 1))[1] == 0
    apart = rows((0.9, 0.1), (0.5 + 4e-6, 0.3), (0.5, 0.2))
    assert compare_boxes(rows((0.9, 0.1), (0.5, 0.2), (0.5 - 4e-6, 0.3)), apart, (1, 1))[1] == 1
    assert compare_boxes(want, want[:, :2], (1, 1))[1] > 0
    moved = want + np.array([0, 0, 2e-4, 0, 0, 0])
    assert compare_boxes(want, moved, (1, 1))[1] == 3
