"""Models that take pictures: batches, damaged files, pickling, shared weights, worker processes, results."""

import io
import json
import os
import pickle
import runpy
import signal
from pathlib import Path

import numpy as np
import pytest

import roiops as mx
from roiops import models
from roiops.models.outputs import Settings
from roiops.models.pictures import Preprocessing
from roiops.models.predict import PictureModel, Prediction
from roiops.models.workers import ResultsFile, SharedModel, predict_many

Image = pytest.importorskip("PIL.Image", reason="pictures are read with Pillow")

SIZES = [(8, 6), (8, 6), (5, 7), (8, 6), (5, 7), (9, 9), (8, 6)]


def classifier(batch=2, **options):
    """Means of the three colours as scores: what comes out can be said by hand."""
    net = mx.sym.Pooling(mx.sym.Variable("data"), global_pool=True, kernel=(1, 1), pool_type="avg")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=3, no_bias=True, name="fc")
    params = {"fc_weight": mx.nd.array(np.eye(3))}
    settings = Settings(["red", "green", "blue"], top=2)
    return PictureModel(net, params, batch=batch, settings=settings, **options)


class Deadly(PictureModel):
    """Ends its process over a picture of 13 pixels width."""

    def read(self, key, picture):
        ready = super().read(key, picture)
        if getattr(ready, "image", None) is not None and ready.image.width == 13:
            os.kill(os.getpid(), signal.SIGKILL)
        return ready


@pytest.fixture
def folder(tmp_path):
    """Seven pictures of three sizes, and two files that are none."""
    for i, (width, height) in enumerate(SIZES):
        Image.new("RGB", (width, height), (10 * i, 200 - i, 45)).save(tmp_path / f"{i}.png")
    (tmp_path / "bad.png").write_bytes(b"\x89PNG\r\n\x1a\n and then nothing")
    (tmp_path / "text.jpg").write_text("no picture")
    return tmp_path


def names(folder):
    return sorted(str(path) for path in folder.iterdir())


@pytest.mark.parametrize("batch", [1, 2, 8])
def test_pictures_of_any_size_come_back_in_their_order(folder, batch):
    found = classifier(batch).predict(names(folder))
    assert [each.picture for each in found] == names(folder)
    for i, (width, height) in enumerate(SIZES):
        assert (found[i].width, found[i].height) == (width, height)
        green, second = found[i].reading.scores[0].best
        assert green == (1, pytest.approx(200 - i))
        assert second == ((0, 10 * i) if i > 4 else (2, 45))


def test_a_damaged_picture_is_a_prediction_with_its_error(folder):
    found = classifier().predict(names(folder))
    assert "bad.png: a damaged image" in found[-2].error or "not an image" in found[-2].error
    assert "text.jpg: not an image that Pillow can read" in found[-1].error
    assert set(found[-1].to_dict()) == {"picture", "error"}
    assert classifier().predict([folder / "none.png"])[0].error == "No such file or directory"


def test_the_error_of_bytes_names_the_picture():
    (found,) = classifier().predict([io.BytesIO(b"no picture")])
    assert found.error == "picture 0: not an image that Pillow can read"
    example = Path(__file__).resolve().parents[2] / "examples" / "scale" / "detect_with_ray.py"
    module = runpy.run_path(str(example))
    assert module["error_of"]("photos/7.jpg", found) == "photos/7.jpg: not an image that Pillow can read"
    assert module["error_of"]("photos/8.jpg", Prediction("picture 1")) is None
    assert module["error_of"]("a", Prediction("picture 1", error="no memory")) == "a: no memory"


def test_files_images_arrays_and_open_files(folder):
    path = folder / "2.png"
    given = [path, Image.open(path), np.asarray(Image.open(path)), io.BytesIO(path.read_bytes())]
    found = classifier().predict(given)
    assert [each.picture for each in found] == [str(path), "picture 1", "picture 2", "picture 3"]
    assert len({json.dumps(each.reading.to_dict()) for each in found}) == 1


def test_a_stream_is_read_only_so_far_ahead():
    model, taken = classifier(batch=2), []

    def pictures():
        for i in range(200):
            taken.append(i)
            yield i, np.full((4, 4, 3), i % 250, np.uint8)

    stream = model.stream(pictures())
    first, _ = next(stream)
    assert len(taken) <= 4 * 2 + 8 + 1
    assert sorted([first, *(key for key, _ in stream)]) == list(range(200))


def test_what_comes_after_runs_beside_and_before_the_result(folder):
    drawn = {}

    def draw(image, prediction):
        drawn[prediction.picture] = image.size

    for _, prediction in classifier().stream(((p, p) for p in names(folder)), draw):
        assert prediction.error or drawn[prediction.picture] == (prediction.width, prediction.height)
    assert len(drawn) == len(SIZES)


def test_a_mistake_in_what_comes_after_is_raised(folder):
    def draw(image, prediction):
        raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        list(classifier().stream(((p, p) for p in names(folder)), draw))


def test_the_same_model_after_pickling(folder):
    model = classifier(preprocessing=Preprocessing(mean=(1, 2, 3)))
    model.predict(names(folder))
    again = pickle.loads(pickle.dumps(model))
    assert again.predict(names(folder)) == model.predict(names(folder))
    np.testing.assert_array_equal(again(data=np.ones((1, 3, 2, 2)))[0].asnumpy(), [[1, 1, 1]])


def test_weights_in_memory_that_may_not_be_written(folder):
    """As Ray hands them out. No kernel is compiled for such arrays: they are seen as others are."""
    buffers: list = []
    head = pickle.dumps(classifier(), protocol=5, buffer_callback=buffers.append)
    assert [each.raw().nbytes for each in buffers] == [36]
    again = pickle.loads(head, buffers=[bytes(each.raw()) for each in buffers])
    assert again.params["fc_weight"].data.flags.writeable
    assert again.predict(names(folder)) == classifier().predict(names(folder))


def test_weights_in_a_shared_file(tmp_path):
    weights = np.arange(3_000_000, dtype=np.float32)
    with SharedModel({"w": weights, "none": np.zeros(0), "n": 3}, tmp_path) as shared:
        assert len(pickle.dumps(shared)) < 2000
        one, other = (pickle.loads(pickle.dumps(shared)).open() for _ in range(2))
        np.testing.assert_array_equal(one["w"], weights)
        one["w"][0] = 5  # a copy of the page, for this process alone
        assert (other["w"][0], other["n"]) == (0, 3)
        later = pickle.loads(pickle.dumps(shared))
        later.close()  # only the process that made it removes it
        later.open()
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(OSError, match="No such file"):
        later.open()
    np.testing.assert_array_equal(other["w"], weights)  # memory that is in use stays


def test_workers_give_what_one_process_gives(folder):
    model = classifier(batch=1)
    alone = {each.picture: each for each in model.predict(names(folder))}
    found = list(predict_many(model, ((i, p) for i, p in enumerate(names(folder) * 3)), 2, threads=1))
    assert sorted(key for key, _ in found) == list(range(len(alone) * 3))
    assert all(prediction == alone[prediction.picture] for _, prediction in found)


def test_a_picture_that_ends_its_worker_is_one_error_and_nothing_else_is_lost(folder):
    Image.new("RGB", (13, 4)).save(folder / "deadly.png")
    base = classifier(batch=1)
    model = Deadly(base.symbol, base.params, batch=1, settings=base.settings)
    found = [p for _, p in predict_many(model, ((p, p) for p in names(folder)), 2, threads=1)]
    assert sorted(p.picture for p in found) == names(folder)
    (deadly,) = [p for p in found if p.picture.endswith("deadly.png")]
    assert deadly.error == "a worker died over it 2 times: killed by SIGKILL"
    expected = base.predict(names(folder)[:7])
    assert sorted((p for p in found if not p.error), key=lambda p: p.picture) == expected


def test_workers_without_any_picture_end_in_silence(capfd):
    assert list(predict_many(classifier(), [], 2, threads=1)) == []
    assert capfd.readouterr().err == ""


def test_a_model_that_no_worker_can_open_is_an_error():
    class Local(PictureModel):
        pass

    model = Local(classifier().symbol, classifier().params)
    with pytest.raises((AttributeError, pickle.PicklingError), match="Local"):
        next(predict_many(model, [(0, "a.png")], 1))
    with pytest.raises(mx.MXNetError, match="workers must be at least 1, got 0"):
        next(predict_many(classifier(), [], 0))


def test_a_results_file_goes_on_after_what_was_cut_short(tmp_path):
    path = tmp_path / "found.jsonl"
    with ResultsFile(path) as results:
        results.write(Prediction("a", 3, 4))
        results.write(Prediction("ä\udcff", error="no"))
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"picture": "c", "wid')
    with ResultsFile(path, resume=True) as results:
        assert path.read_bytes() == whole.splitlines(keepends=True)[0]
        assert ("a" in results, "ä\udcff" in results, "c" in results) == (True, False, False)
        assert (results.count, results.errors, results.removed) == (1, 0, 1)
        results.write(Prediction("c"), extra=1)
    assert json.loads(path.read_text("utf-8").splitlines()[-1]) == {
        "picture": "c",
        "extra": 1,
    }
    with pytest.raises(mx.MXNetError, match=r"found.jsonl: is there already; --resume"):
        ResultsFile(path)
    path.write_text("[1]\n")
    with pytest.raises(mx.MXNetError, match=r"found.jsonl, line 1: not a line of results"):
        ResultsFile(path, resume=True)


def two_inputs():
    return mx.sym.Variable("left") + mx.sym.Variable("right")


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: classifier(batch=0), "batch must be at least 1, got 0"),
        (lambda: classifier(input="dat"), "'dat' is not an input of the model; did you mean 'data'"),
        (
            lambda: PictureModel(two_inputs(), {}).predict([]),
            "which input takes the picture.* one of left, right",
        ),
        (
            lambda: PictureModel(two_inputs(), {}, input="left").predict([]),
            r"values are missing for right \(--input right=..., inputs=\)",
        ),
        (
            lambda: models.load(two_inputs(), {}, preset="vgg"),
            "preset must be one of raw",
        ),
        (lambda: models.load(two_inputs(), {}, shortside=3), "shortside"),
    ],
)
def test_errors(make, text):
    with pytest.raises(mx.MXNetError, match=text):
        make()


def test_an_input_that_is_the_same_for_every_picture():
    model = PictureModel(two_inputs(), {}, input="left", inputs={"right": np.full((3, 4, 4), 7)}, batch=4)
    (found,) = model.predict([np.zeros((4, 4, 3), np.uint8)])
    assert found.error is None
    (wrong,) = model.predict([np.zeros((5, 4, 3), np.uint8)])  # its size is not that of the other input
    assert wrong.error


def test_pictures_of_one_channel():
    x = mx.sym.Variable("data")
    graph = mx.sym.Pooling(
        mx.sym.Convolution(x, kernel=(3, 3), num_filter=2, name="c"),
        global_pool=True,
        kernel=(1, 1),
        pool_type="avg",
    )
    weight = np.zeros((2, 1, 3, 3), np.float32)
    weight[0, 0, 1, 1] = 1
    params = {"c_weight": mx.nd.array(weight), "c_bias": mx.nd.zeros(2)}
    picture = np.full((8, 9, 3), (255, 0, 0), np.uint8)
    with pytest.raises(mx.MXNetError, match=r"takes pictures of one channel: --color gray \(color=\)"):
        models.load(graph, params).predict([picture])
    model = models.load(graph, params, color="gray", resize=(6, 6), scale=1 / 255)
    ready = model.read(0, picture)
    assert ready.array.shape == (1, 1, 6, 6)
    np.testing.assert_allclose(ready.array, 0.299, atol=2e-3)
    assert model.predict([picture])[0].error is None
    with pytest.raises(mx.MXNetError, match="with color gray, scale, mean and std must be one number each"):
        models.load(graph, params, preset="imagenet", color="gray")
    with pytest.raises(mx.MXNetError, match="there is no argument 'resiz'; did you mean 'resize'"):
        models.load(graph, params, resiz=(6, 6))


def test_a_path_alone_is_one_picture(tmp_path):
    (found,) = classifier().predict(str(tmp_path / "none.png"))
    assert found.error == "No such file or directory"
