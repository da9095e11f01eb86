"""The ``roiops`` command: what it prints, its exit codes, and errors without tracebacks."""

import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import roiops as mx
from roiops import cli
from roiops.cli import doctor

PIL = pytest.importorskip("PIL.Image", reason="images need Pillow")
EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.fixture
def roiops(capsys):
    """Runs the command in this process; gives exit code, standard output and standard error."""

    def run(*arguments):
        try:
            code = cli.main([str(a) for a in arguments])
        except SystemExit as stop:  # argparse's way to end
            code = stop.code
        out, err = capsys.readouterr()
        return code, out, err

    return run


@pytest.fixture
def model(tmp_path):
    """A classifier into six classes: the score of class c is c times the mean of the red channel."""
    x = mx.sym.Pooling(mx.sym.Variable("data"), global_pool=True, kernel=(1, 1), pool_type="avg", name="mean")
    x = mx.sym.FullyConnected(mx.sym.Flatten(x), num_hidden=6, name="fc")
    symbol = mx.sym.SoftmaxOutput(x, name="softmax")
    weight = np.zeros((6, 3), np.float32)
    weight[:, 0] = np.arange(6)
    symbol.save(str(tmp_path / "net-symbol.json"))
    mx.nd.save(
        str(tmp_path / "net-0000.params"),
        {"arg:fc_weight": mx.nd.array(weight), "arg:fc_bias": mx.nd.zeros((6,))},
    )
    return tmp_path / "net-symbol.json", tmp_path / "net-0000.params"


@pytest.fixture
def picture(tmp_path):
    """Four red pixels."""
    path = tmp_path / "red.png"
    PIL.new("RGB", (2, 2), (255, 0, 0)).save(path)
    return path


# -- the command as a whole ------------------------------------------------------------------------------


def test_the_installed_command_runs():
    ended = subprocess.run([sys.executable, "-m", "roiops", "--version"], capture_output=True, text=True)
    assert (ended.returncode, ended.stdout) == (0, f"roiops {mx.__version__}\n")


@pytest.mark.parametrize("command", ["", *cli.COMMANDS])
def test_help_teaches(roiops, command):
    code, out, err = roiops(*command.split(), "--help")
    assert (code, err) == (0, "")
    assert "  roiops " in out, "an example to copy"


@pytest.mark.parametrize("arguments", [[], ["nothing"], ["inspect"], ["inspect", "x", "--shape", "data"]])
def test_wrong_usage_ends_with_2(roiops, arguments):
    code, out, err = roiops(*arguments)
    assert (code, out) == (2, "")
    assert "usage: roiops" in err
    assert len(err.splitlines()) == 1 or not arguments


def test_errors_are_one_sentence(roiops, tmp_path):
    code, out, err = roiops("inspect", tmp_path / "missing.json")
    assert (code, out) == (1, "")
    assert err == f"roiops inspect: error: {tmp_path / 'missing.json'}: No such file or directory\n"


def test_a_traceback_on_request(roiops, tmp_path, monkeypatch):
    assert "Traceback" in roiops("inspect", tmp_path / "missing.json", "--traceback")[2]
    monkeypatch.setenv("ROIOPS_TRACEBACK", "1")
    assert "Traceback" in roiops("inspect", tmp_path / "missing.json")[2]


def test_a_bug_says_that_it_is_one(roiops, monkeypatch):
    def broken(args):
        raise KeyError("oops")

    monkeypatch.setattr("roiops.cli.ops.execute", broken)
    code, _, err = roiops("ops")
    assert code == 1
    assert "internal error: KeyError: 'oops'" in err
    assert "Please report it" in err


@pytest.mark.parametrize("dtype", ["i4,(2", "f4,f4", "complex64", "O", "S3"])
def test_a_dtype_that_arrays_do_not_have_is_wrong_usage(roiops, model, dtype):
    code, _, err = roiops("inspect", model[0], "--dtype", dtype)
    assert (code, "--dtype: must be a dtype such as float32, got" in err) == (2, True)


# -- inspect ---------------------------------------------------------------------------------------------


def test_inspect(roiops, model):
    code, out, _ = roiops("inspect", model[0], "--params", model[1], "--shape", "data=1,3,2,2")
    assert code == 0
    assert "saved by MXNet 1.9.1" in out
    assert "FullyConnected  x1" in out
    assert "data (1, 3, 2, 2) float32" in out
    assert "softmax_output (1, 6) float32" in out
    assert "Parameters: 2 arrays, 24 numbers" in out


def test_inspect_as_json(roiops, model):
    code, out, _ = roiops("inspect", model[0], "--json")
    found = json.loads(out)
    assert code == 0
    assert found["operators"]["Pooling"] == 1
    assert found["runs"] is True
    assert found["flops"] is None


def test_inspect_lists_layers(roiops, model):
    out = roiops("inspect", model[0], "--shape", "data=1,3,2,2", "--layers")[1]
    assert "fc(FullyConnected)" in out
    assert "Total params: 24" in out


def test_inspect_of_operators_that_are_not_there(roiops, model):
    text = model[0].read_text().replace('"Pooling"', '"Poling"')
    model[0].write_text(text)
    code, out, _ = roiops("inspect", model[0], "--shape", "data=1,3,2,2")
    assert code == 1
    assert "Operators that cannot be run\n  Poling" in out


def test_inspect_reports_parameters_that_an_operator_does_not_take(roiops, model):
    model[0].write_text(model[0].read_text().replace('"avg"', '"average"'))
    code, out, _ = roiops("inspect", model[0])
    assert code == 1
    assert "Pooling(mean): pool_type must be" in out


# -- run -------------------------------------------------------------------------------------------------


def test_run_on_an_image(roiops, model, picture):
    code, out, _ = roiops(
        "run", *model, "--input", f"data={picture}", "--scale", "0.01", "--classes", "a,b,c,d,e,f"
    )
    assert code == 0
    assert "softmax_output  (1, 6)  float32" in out
    best = np.exp(2.55 * np.arange(6))
    assert f"f  5  {best[5] / best.sum():.6g}" in out


def test_run_on_an_array_and_write_npz(roiops, model, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 3, 2, 2), np.float32))
    code, _, _ = roiops(
        "run", *model, "--input", f"data={tmp_path / 'x.npy'}", "--output", tmp_path / "o.npz"
    )
    assert code == 0
    with np.load(tmp_path / "o.npz") as file:
        assert file["softmax_output"].shape == (2, 6)


def test_run_joins_inputs_and_writes_json(roiops, model, picture, tmp_path):
    PIL.new("RGB", (2, 2), (9, 0, 0)).save(tmp_path / "other.png")
    arguments = ["--input", f"data={picture}", tmp_path / "other.png", "--output", tmp_path / "o.json"]
    assert roiops("run", *model, *arguments)[0] == 0
    assert json.loads((tmp_path / "o.json").read_text())["softmax_output"]["shape"] == [2, 6]


def test_run_gives_other_outputs(roiops, model, picture):
    out = roiops("run", *model, "--input", f"data={picture}", "--outputs", "mean_output,fc_output")[1]
    assert "mean_output  (1, 3, 1, 1)  float32  0    85     255" in out
    assert "fc_output" in out


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([], 2, "nothing to run on: PICTURES, or --input for data, are needed"),
        (["a.png", "--resume"], 2, "--resume needs --output FILE.jsonl"),
        (["--input", "data=none.png"], 1, "none.png: No such file or directory"),
        (["--input", "data=[1,"], 2, "--input data: not JSON values"),
        (["--input", "x=[[1]]"], 1, "'x' is not an input of the model (it takes data)"),
        (["--input", "dta=[[1]]"], 1, "'dta' is not an input of the model; did you mean 'data'?"),
        (["--input", "data=[[1],[2,3]]"], 2, "not JSON values, or not in rows of one length"),
        (
            ["--input", "data=[[1]]", "--dtype", "float99"],
            2,
            "must be a dtype such as float32, got 'float99'",
        ),
        (
            ["--input", "data=[[1]]", "--resize", "5"],
            2,
            "must be HEIGHTxWIDTH, such as 480x640, got '5'",
        ),
        (["--input", "data=[[1]]", "--resize", "5x0"], 2, "must be HEIGHTxWIDTH, such as 480x640, got '5x0'"),
        (["--input", "data=[[1]]", "--short-side", "-1"], 2, "must be a whole number above 0, got '-1'"),
        (["--input", "data=[[1]]", "--mean", "1,2"], 2, "mean must be 1 or 3 finite numbers, got (1.0, 2.0)"),
        (["--input", "data=[[1]]", "--std", "1,0,1"], 2, "std must be above 0, got (1.0, 0.0, 1.0)"),
        (["--input", "data=[[1]]", "--box-stds", "1"], 2, "box_stds must be 4 finite numbers, got (1.0,)"),
        (
            ["--input", "data=[[1]]", "--import", "no_such"],
            1,
            "--import no_such: there is no module 'no_such'",
        ),
        (["--input", "data=[[1]]", "--threshold", "nan"], 2, "threshold must be 1 finite number, got nan"),
        (["--input", "data=[[1]]", "--std", "-1"], 2, "std must be above 0, got (-1.0,)"),
        (["--input", "data=[[1]]", "--color", "gray", "--mean", "1,2,3"], 2, "must be one number each"),
        (["--input", "data=[[1]]", "--preset", "ssd"], 2, "--preset is for pictures; these are arrays"),
        (["--input", "data=[[1]]", "--workers", "2"], 2, "--workers is for pictures; these are arrays"),
        (["a.png", "--output", "o.npz", "--workers", "2"], 2, "--workers has no effect with .npz"),
        (["--input", "data=[[1]]", "--output", ""], 2, "an argument is empty"),
        (["--input", "data"], 2, "must be NAME=VALUE"),
        (["--input", "data=[[1]]", "--output", "o.txt"], 2, "--output must end in .npz, .json or .jsonl"),
        (["--input", "data=[[1]]", "--outputs", "fc_otput"], 1, "did you mean 'fc_output'"),
        (["--input", "data=[[1]]", "--outputs", "?"], 1, "no output '?'; the graph's own are softmax_output"),
        (["--input", "data=[[1]]", "--output", "no/o.npz"], 1, "--output no/o.npz: there is no folder no"),
        (["--input", "data=a.png", "--input", "x=b.png"], 2, "only one input takes pictures, got data and x"),
        (
            ["--input", "data=[[1]]", "--input", "data=[[1,2]]"],
            2,
            "arrays of different shapes cannot be joined: (1, 1), (1, 2)",
        ),
        (["--input", "x=a.png"], 1, "'x' is not an input of the model (it takes data)"),
        (
            ["--input", "data=[[[[1]],[[2]],[[3]]]]", "--draw", "d.png"],
            2,
            "--draw is for pictures; these are arrays",
        ),
    ],
)
def test_run_says_what_is_wrong(roiops, model, arguments, code, message):
    got, _, err = roiops("run", *model, *arguments)
    assert got == code
    assert message in err


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        (b"\x93NUMPY\x01\x00garbage", "not an array that NumPy can read without pickle"),
        (np.array([{}]), "Object arrays cannot be loaded"),
        (b"PK\x03\x04", "not an array that NumPy can read without pickle"),
        (
            b"\x93NUMPY\1\0\x10\0{'descr': '<f4', ",
            "not an array that NumPy can read without pickle",
        ),
        (np.array(["a"]), "holds <U1, which are no numbers that a model takes"),
    ],
)
def test_run_on_files_that_are_no_arrays_of_numbers(roiops, model, tmp_path, contents, message):
    path = tmp_path / "x.npy"
    if isinstance(contents, bytes):
        path.write_bytes(contents)
    else:
        np.save(path, contents)
    code, _, err = roiops("run", *model, "--input", f"data={path}")
    assert code == 1
    assert str(path) in err
    assert message in err


def test_a_model_may_be_named_by_its_prefix(roiops, model, tmp_path):
    prefix, values = str(model[0]).removesuffix("-symbol.json"), "data=[[[[1]],[[2]],[[3]]]]"
    want = roiops("run", *model, "--input", values)
    assert roiops("run", prefix, model[1], "--input", values)[:2] == want[:2]
    assert roiops("run", prefix, "0", "--input", values)[:2] == want[:2]
    code, out, err = roiops("run", prefix, "--input", values)
    assert (code, out) == want[:2]
    assert err.startswith(f"roiops: the parameters are those of {model[1]}\n")
    assert roiops("inspect", prefix) == roiops("inspect", model[0])
    assert roiops("inspect", prefix, "--params", "0") == roiops("inspect", model[0], "--params", model[1])
    code, _, err = roiops("inspect", tmp_path)
    assert code == 1
    assert (
        f"{tmp_path}: is a folder; a model is named by its graph's file, and it holds net-symbol.json" in err
    )
    code, _, err = roiops("inspect", tmp_path / "nets")
    assert f"nets: no such file, and no {tmp_path / 'nets'}-symbol.json; a model is named by" in err
    code, _, err = roiops("run", prefix, "7", "--input", values)
    assert code == 1
    assert err.startswith(f"roiops run: error: {prefix}-0007.params: No such file or directory; did you mean")
    model[1].unlink()
    code, _, err = roiops("run", prefix, "--input", values)
    assert code == 2
    assert f"PARAMS is needed: no parameters lie beside {model[0]}" in err


def test_files_in_the_wrong_order(roiops, model):
    code, _, err = roiops("run", model[1], model[0], "--input", "data=[[1]]")
    assert code == 1
    assert "holds parameters, not a graph, which is a file such as model-symbol.json" in err
    code, _, err = roiops("run", model[0], model[0], "--input", "data=[[1]]")
    assert code == 1
    assert "offset 0: not an NDArray file, but what looks like JSON" in err


def test_run_without_pillow(roiops, model, picture, monkeypatch):
    monkeypatch.setitem(sys.modules, "PIL.Image", None)
    code, _, err = roiops("run", *model, "--input", f"data={picture}")
    assert code == 1
    assert "images need Pillow, which is not installed: pip install pillow" in err


def test_detections_are_drawn(roiops, tmp_path):
    detector(tmp_path)
    PIL.new("RGB", (80, 40)).save(tmp_path / "black.png")
    code, out, err = roiops(
        "run", tmp_path / "d-symbol.json", tmp_path / "d-0000.params",
        "--input", f"data={tmp_path / 'black.png'}", "--resize", "20x20",
        "--draw", tmp_path / "boxes.png", "--classes", "cat,dog", "--json",
    )  # fmt: skip
    assert code == 0
    assert f"drawn in {tmp_path / 'boxes.png'}" in err
    (found,) = json.loads(out)["detections"]
    assert (found["class"], found["class_id"], found["score"]) == ("dog", 1, pytest.approx(0.9))
    assert found["box"] == pytest.approx([20, 10, 60, 30])
    pixels = np.asarray(PIL.open(tmp_path / "boxes.png"))
    assert pixels.shape == (7 * 40, 7 * 80, 3), "small pictures are enlarged"
    assert pixels[7 * 30, 7 * 40].any()
    assert not pixels[7 * 38, 7 * 70].any()


@pytest.fixture
def pictures(tmp_path):
    """A folder of three red pictures of two sizes, one of them deeper, and a damaged one."""
    folder = tmp_path / "photos"
    (folder / "deep").mkdir(parents=True)
    for name, size, red in (("a.png", (4, 2), 255), ("b.png", (3, 3), 0), ("deep/c.png", (4, 2), 128)):
        PIL.new("RGB", size, (red, 0, 0)).save(folder / name)
    (folder / "damaged.jpg").write_bytes(b"\xff\xd8\xff nothing more")
    return folder


def test_run_on_a_folder_tells_every_picture_and_ends_with_1_for_a_damaged_one(roiops, model, pictures):
    code, out, err = roiops("run", *model, pictures, "--scale", "0.01", "--classes", "a,b,c,d,e,f")
    assert code == 1
    lines = sorted(line.partition("  (")[0] for line in out.splitlines())
    assert [line.partition(":")[0] for line in lines] == [
        str(pictures / name) for name in ("a.png", "b.png", "deep/c.png")
    ]
    assert ": f 0.9" in lines[0]
    assert ": a 0.167" in lines[1]
    assert err.count(f"{pictures / 'damaged.jpg'}: ") == 1
    assert re.search(r"4 pictures in [\d.]+ s, [\d.]+ ms each; 1 could not be read or run", err)


def test_run_writes_a_line_of_json_for_each_picture_and_goes_on(roiops, model, pictures, tmp_path):
    results = tmp_path / "found.jsonl"
    arguments = ("run", *model, pictures, "--output", results, "--top", "1")
    code, _, err = roiops(*arguments)
    assert (code, " already" in err) == (1, False)
    lines = [json.loads(line) for line in results.read_text().splitlines()]
    by_name = {Path(line["picture"]).name: line for line in lines}
    assert set(by_name) == {"a.png", "b.png", "c.png", "damaged.jpg"}
    assert by_name["a.png"]["best"] == [{"class_id": 5, "class": "class 5", "score": pytest.approx(1)}]
    assert by_name["b.png"]["best"][0]["score"] == pytest.approx(1 / 6)
    assert "not an image" in by_name["damaged.jpg"]["error"]
    code, _, err = roiops(*arguments)
    assert code == 1
    assert "is there already" in err
    PIL.new("RGB", (5, 5)).save(pictures / "new.png")
    code, _, err = roiops(*arguments, "--resume")
    assert code == 1, "what failed before is tried again"
    assert "3 of 5 pictures are in" in err
    assert f"1 picture with an error in {results}: tried again" in err
    assert len(results.read_text().splitlines()) == 5
    PIL.new("RGB", (5, 5)).save(pictures / "damaged.jpg")
    code, _, err = roiops(*arguments, "--resume")
    assert (code, "1 picture in" in err) == (0, True)
    names = [Path(json.loads(line)["picture"]).name for line in results.read_text().splitlines()]
    assert sorted(names) == ["a.png", "b.png", "c.png", "damaged.jpg", "new.png"]


@pytest.mark.parametrize("workers", [(), ("--workers", "1")])
def test_class_names_that_fit_nothing_end_a_run_at_the_first_picture(
    roiops, model, pictures, tmp_path, workers
):
    results, names = tmp_path / "found.jsonl", tmp_path / "wrong.txt"
    names.write_text("a\nb\n")
    arguments = ("run", *model, pictures, "--output", results, *workers)
    code, _, err = roiops(*arguments, "--classes", names)
    assert code == 1
    assert "roiops run: error: classes: 2 names fit none of the outputs: softmax_output (6)" in err
    assert not [line for line in results.read_text().splitlines() if "classes" in line]
    code, _, err = roiops(*arguments, "--resume")
    assert code == 1
    assert sorted("error" in json.loads(line) for line in results.read_text().splitlines()) == [False] * 3 + [
        True
    ]


def test_a_size_that_all_pictures_have_and_the_graph_refuses_ends_the_run(roiops, model, pictures, tmp_path):
    x = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=6, name="fc")
    x.save(str(tmp_path / "fixed-symbol.json"))
    arrays = {"arg:fc_weight": mx.nd.ones((6, 12)), "arg:fc_bias": mx.nd.zeros((6,))}
    mx.nd.save(str(tmp_path / "fixed-0000.params"), arrays)
    results = tmp_path / "found.jsonl"
    code, _, err = roiops("run", tmp_path / "fixed", pictures, "--output", results, "--resize", "5x5")
    assert code == 1
    assert "fc_weight has shape (6, 12) in the file, the graph needs (6, 75)" in err
    assert "pictures come as 5x5; another size may fit" in err
    assert not [line for line in results.read_text().splitlines() if "fc" in line]
    for number in range(20):
        PIL.new("RGB", (4 + number, 4)).save(pictures / f"{number}.png")
    results.unlink()
    code, _, err = roiops("run", tmp_path / "fixed", pictures / "*.png", "--output", results)
    assert code == 1
    assert re.search(r"the first 10 pictures all failed, the last one, .*png: .*fixed-symbol.json", err)
    assert len(results.read_text().splitlines()) == 10


def test_a_picture_whose_size_does_not_fit_is_told_of_resize(roiops, tmp_path, picture):
    x = mx.sym.Variable("data")
    small = mx.sym.Pooling(x, kernel=(2, 2), stride=(2, 2), pool_type="max", name="pool")
    sum_ = mx.sym.elemwise_add(mx.sym.UpSampling(small, scale=2, sample_type="nearest"), x, name="sum")
    sum_.save(str(tmp_path / "fcn-symbol.json"))
    mx.nd.save(str(tmp_path / "fcn-0000.params"), {})
    PIL.new("RGB", (101, 67)).save(picture)
    code, _, err = roiops("run", tmp_path / "fcn", picture)
    assert code == 1
    assert "pictures come as 67x101; --resize HEIGHTxWIDTH (resize=) gives another size, perhaps 64x96" in err
    assert roiops("run", tmp_path / "fcn", picture, "--resize", "64x96")[0] == 0


HALF = EXAMPLES / "archived" / "shapes-symbol.json", EXAMPLES / "rcnn" / "model" / "model.params"


def test_a_size_that_fits_is_not_blamed_for_another_input(roiops, picture):
    PIL.new("RGB", (128, 128)).save(picture)
    inputs = "--input", f"data={picture}", "--input", "im_info=[[1,2]]"
    code, _, err = roiops("run", *HALF, *inputs, "--dtype", "float32")
    assert code == 1
    assert "im_info must have shape (1, 3), got (1, 2)" in err
    assert "--resize" not in err


def test_half_precision_says_how_to_convert(roiops, picture):
    PIL.new("RGB", (128, 128)).save(picture)
    code, _, err = roiops("run", *HALF, picture)
    assert code == 1
    assert "gamma must have dtype float32, got float16" in err
    assert "--resize" not in err
    assert "another size" not in roiops("run", *HALF, picture, "--resize", "128x128")[2]
    convert = "the parameters are float16: dtype='float32' (--dtype float32) converts them"
    assert convert in err
    shapes = "--shape", "data=1,3,128,128", "--shape", "im_info=1,3"
    assert convert in roiops("inspect", HALF[0], "--params", HALF[1], *shapes)[1]
    options = "--params", HALF[1], *shapes, "--seconds", "0.01"
    assert convert in roiops("bench", HALF[0], *options)[2]
    assert roiops("bench", HALF[0], *options, "--dtype", "float32")[0] == 0


def test_nan_and_surplus_parameters_are_told(roiops, model, picture, pictures):
    params = mx.nd.load(str(model[1]))
    params["arg:fc_weight"][:] = np.nan
    params["arg:old_weight"] = mx.nd.zeros((2,))
    mx.nd.save(str(model[1]), params)
    nan = "softmax_output hold NaN: the parameters, or how the input was prepared"
    with pytest.warns(UserWarning, match="the file has 1 array that the graph does not: old_weight"):
        assert nan in roiops("run", *model, pictures)[2]
    with pytest.warns(UserWarning, match="old_weight"):
        assert f"row 0: {nan}" in roiops("run", *model, "--input", "data=[[[[1]],[[2]],[[3]]]]")[2]
    command = [sys.executable, "-m", "roiops", "run", *model, picture]
    err = subprocess.run(command, capture_output=True, text=True, check=True).stderr.splitlines()
    (warning,) = (line for line in err if line.startswith("roiops: warning: "))
    assert warning.endswith("the file has 1 array that the graph does not: old_weight")
    assert any(nan in line for line in err)


def test_convert_checks_a_model_of_half_precision(roiops, tmp_path):
    pytest.importorskip("onnxruntime")
    shapes = "--shape", "data=1,3,128,128", "--shape", "im_info=1,3", "--dtype", "float32", "--check"
    code, out, err = roiops("convert", *HALF, tmp_path / "shapes.onnx", *shapes)
    assert "gamma must have dtype" not in err
    assert "cls_prob_output" in out
    assert code in (0, 1)  # on noise, scores may tie


def test_what_a_conversion_is_checked_with(roiops, model, picture, tmp_path):
    pytest.importorskip("onnxruntime")
    made = tmp_path / "net.onnx"
    array = tmp_path / "a.npy"
    np.save(array, np.ones((1, 3, 2, 2), np.float32))

    def convert(*arguments):
        return roiops("convert", model[0], made, "--force", *arguments)

    for shape, given in (
        ([], f"data={picture}"),  # of its own size
        (["--shape", "data=1,3,4,5"], f"data={picture}"),  # resized
        (["--shape", "data=N,3,H,W"], f"data={array}"),
        (["--shape", "data=N,3,H,W"], None),
    ):
        code, out, err = convert(*shape, "--check", *(["--input", given] if given else []))
        assert code == 0, err
        assert re.match(rf"{made}: \d\.\d MiB\nopset \d+, nodes: \d\noutput +worst difference", out)
        assert re.search(r"\nsoftmax_output +[\d.e+-]+ *\n", out)
    for arguments, message in (
        (["--input", f"data={picture}"], "--input is for --check"),
        (["--preset", "ssd"], "--preset is for --check"),
        (
            ["--check", "--input", f"data={array}", "--preset", "ssd"],
            "--preset is for pictures: --input NAME=",
        ),
        (["--check", "--input", f"dta={array}"], "--input dta: the model has no such input; it takes data"),
        (
            ["--check", "--input", f"data={array}", "--shape", "data=1,3,4,4"],
            "--input data: its shape is (1, 3, 2, 2), but --shape says 1,3,4,4",
        ),
        (
            ["--check", "--input", f"data={array}", "--shape", "data=1,3,4"],
            "--input data: its shape is (1, 3, 2, 2), but --shape says 1,3,4",
        ),
    ):
        code, _, err = convert(*arguments)
        assert (code, message in err) == (2, True), err


def test_convert_does_not_take_the_parameters_for_the_file_to_write(roiops):
    code, _, err = roiops("convert", *HALF, "--shape", "data=1,3,128,128", "--force")
    assert code == 2
    assert "MODEL.onnx, the file to write, comes last" in err
    assert HALF[1].stat().st_size > 100_000


@pytest.mark.parametrize("shape", ["data=1,3,-5,8", "data=0,3,8,8", "data=1,3,a,8"])
def test_shapes_are_numbers_above_0(roiops, shape):
    code, _, err = roiops("inspect", HALF[0], "--shape", shape)
    assert code == 2
    assert "must be like data=1,3,600,800, each above 0" in err


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--out", "boxes.xyz"], 1, "--out boxes.xyz: Format 'xyz' is not supported"),
        (["--scale", "nan"], 2, "must be a number above 0, got 'nan'"),
        (["--ratio", "99999"], 1, "sampling_ratio must be 32 or less, got 99999"),
        (["--angle", "nan"], 1, "angle must be a finite number of degrees, got nan"),
        (["--scale", "0"], 2, "must be a number above 0, got '0'"),
        (["--dialect", "?"], 1, "unknown dialect '?'; there are those of CropAndResize, "),
    ],
)
def test_explain_says_what_is_wrong(roiops, arguments, code, message):
    pytest.importorskip("matplotlib")
    got, _, err = roiops("explain", "--roi", "1,1,4,4", "--shape", "6x8", *arguments)
    assert (got, "internal error" in err) == (code, False)
    assert message in err


def test_a_drawing_of_one_picture_may_go_to_a_folder(roiops, tmp_path, picture):
    code, _, err = roiops("run", detector(tmp_path), picture, "--draw", tmp_path / "drawings")
    assert (code, "drawn in" in err) == (0, True)
    assert (tmp_path / "drawings" / picture.name).with_suffix(".png").exists()


def test_rows_come_in_the_order_of_the_pictures(roiops, model, pictures):
    (pictures / "damaged.jpg").unlink()
    for number in range(40):
        PIL.new("RGB", (4, 2 + (number % 7 == 0))).save(pictures / f"{number:02}.png")
    for more in ((), ("--workers", "2")):
        code, out, _ = roiops("run", *model, pictures, "--batch", "4", *more)
        names = [line.partition(":")[0] for line in out.splitlines()]
        assert (code, len(names)) == (0, 43)
        assert names == sorted(names)


def test_what_cannot_be_drawn_is_not(roiops, model, picture, tmp_path):
    code, _, err = roiops("run", *model, picture, "--draw", tmp_path / "drawn.png")
    assert code == 0
    assert "nothing is drawn: the outputs are neither boxes nor classes of pixels" in err
    assert "drawn in" not in err
    assert not (tmp_path / "drawn.png").exists()


def test_run_prints_json_with_the_index_of_the_class_and_the_time(roiops, model, picture, pictures):
    (pictures / "damaged.jpg").unlink()
    code, out, _ = roiops("run", *model, pictures / "*.png", picture, "--json", "--classes", "a,b,c,d,e,f")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (code, len(lines)) == (0, 3)
    assert all(line["ms"] > 0 and {"class_id", "class", "score"} == set(line["best"][0]) for line in lines)
    (line,) = [json.loads(line) for line in roiops("run", *model, picture, "--json")[1].splitlines()]
    assert line["outputs"] == [{"name": "softmax_output", "shape": [1, 6], "dtype": "float32"}]


def detector(folder, score=0.9):
    """A detector that finds a thing of class 1 in the middle of each picture."""
    middle = mx.sym.Reshape(0 * mx.sym.mean(mx.sym.Variable("data"), axis=(1, 2, 3)), shape=(-1, 1, 1))
    mx.sym.broadcast_add(mx.sym.Variable("rows"), middle, name="found").save(str(folder / "d-symbol.json"))
    boxes = np.array([[[1, score, 0.25, 0.25, 0.75, 0.75], [-1, -1, 0, 0, 0, 0]]], np.float32)
    mx.nd.save(str(folder / "d-0000.params"), {"arg:rows": mx.nd.array(boxes)})
    return folder / "d"


def test_each_picture_gets_its_drawing(roiops, pictures, tmp_path):
    (pictures / "damaged.jpg").unlink()
    code, out, _ = roiops("run", detector(tmp_path), pictures, "--draw", tmp_path / "drawings")
    assert code == 0
    assert out.count("1 found: class 1 0.90") == 3
    drawn = sorted(str(p.relative_to(tmp_path / "drawings")) for p in (tmp_path / "drawings").rglob("*.*"))
    assert drawn == ["a.png", "b.png", "deep/c.png"]
    with PIL.open(tmp_path / "drawings" / "a.png") as drawing:
        assert drawing.size == (512, 256)
    code, _, err = roiops("run", tmp_path / "d", pictures, "--draw", tmp_path / "one.png")
    assert code == 2
    assert "--draw must be a folder here, got " in err


def test_drawings_replace_neither_pictures_nor_each_other(roiops, pictures, tmp_path):
    (pictures / "damaged.jpg").unlink()
    model, picture = detector(tmp_path), pictures / "a.png"
    before = picture.read_bytes()
    for of, to in ((pictures, pictures), (picture, pictures), (picture, picture)):
        code, _, err = roiops("run", model, of, "--draw", to)
        assert (code, f"{picture} is read, and would be replaced" in err) == (2, True)
    assert picture.read_bytes() == before
    PIL.open(picture).save(pictures / "a.bmp")
    assert roiops("run", model, pictures, "--draw", tmp_path / "drawings")[0] == 0
    drawn = sorted(p.name for p in (tmp_path / "drawings").iterdir())
    assert drawn == ["a.bmp.png", "a.png.png", "b.png", "deep"]


def test_an_empty_result_says_the_best_score(roiops, picture, tmp_path):
    code, out, _ = roiops("run", detector(tmp_path, 0.25), picture, "--classes", "cat,dog")
    assert code == 0
    assert "nothing found with a score of 0.5 or more; the best is dog with 0.25" in out


def test_classes_that_do_not_fit_are_refused(roiops, model, picture):
    code, _, err = roiops("run", *model, picture, "--classes", "a,b")
    assert code == 1
    assert "classes: 2 names fit none of the outputs: softmax_output (6)" in err


def test_a_softmax_is_offered_and_applied(roiops, model, picture):
    arguments = ("run", *model, picture, "--scale", "0.01", "--outputs", "fc_output")
    code, out, err = roiops(*arguments)
    assert (code, "Best of fc_output" in out) == (0, True)
    assert "fc_output is no distribution: logits, which --softmax makes into one" in err
    code, out, err = roiops(*arguments, "--softmax")
    best = np.exp(2.55 * np.arange(6))
    assert f"class 5  5  {best[5] / best.sum():.6g}" in out
    assert "softmax was applied to fc_output" in err


def test_a_graph_that_takes_the_channels_last(roiops, tmp_path, picture):
    """GluonCV's export_block puts the preprocessing into the graph, before a transpose."""
    x = mx.sym.broadcast_minus(mx.sym.Variable("data"), mx.sym.Variable("mean"))
    x = mx.sym.Convolution(mx.sym.transpose(x, axes=(0, 3, 1, 2)), kernel=(1, 1), num_filter=2, name="conv")
    mx.sym.softmax(mx.sym.mean(x, axis=(2, 3)), name="prob").save(str(tmp_path / "e-symbol.json"))
    weight = np.zeros((2, 3, 1, 1), np.float32)
    weight[1, 0] = 0.01
    arrays = {"mean": np.full((1, 1, 1, 3), 155.0), "conv_weight": weight, "conv_bias": np.zeros(2)}
    mx.nd.save(str(tmp_path / "e-0000.params"), {f"arg:{k}": mx.nd.array(v) for k, v in arrays.items()})
    code, out, err = roiops("run", tmp_path / "e", picture)
    assert code == 0
    assert "data is fed with the channels last" in err
    assert f"class 1  1  {np.e / (1 + np.e):.6g}" in out


def test_how_far_it_is_stands_on_a_line_of_its_own_of_a_terminal(roiops, model, pictures, monkeypatch):
    monkeypatch.setattr("sys.stderr.isatty", lambda: True, raising=False)
    err = roiops("run", *model, pictures)[2]
    bar = r"\[#+\] 4 of 4, [\d.]+ a second, 1 failed\r"
    assert re.search(bar + r"\x1b\[2K\rroiops: 4 pictures in ", err)
    assert err.index("\x1b[2K\r") < err.index("damaged.jpg: ")
    assert " of 1, " not in roiops("run", *model, pictures / "a.png", "--output", pictures / "a.jsonl")[2]


def test_rows_of_arrays_are_told_where_there_are_few(roiops, model, tmp_path):
    for rows, told in ((16, 16), (17, 0)):
        np.save(tmp_path / "rows.npy", np.ones((rows, 3, 2, 2), np.float32))
        code, out, err = roiops("run", *model, tmp_path / "rows.npy")
        assert (code, out.count("\nrow "), out.count("Best of softmax_output")) == (0, told, told)
        assert ("boxes and segmentations are read of pictures only" in err) is not told
        assert re.search(r"roiops: [\d.]+ m?s, compiling included", err)


def test_what_is_said_of_a_picture(roiops, model, picture):
    from types import SimpleNamespace

    from roiops.cli.run import _in_a_line, _took

    boxes = [SimpleNamespace(class_id=n, score=0.9) for n in range(10)]
    for count, end in ((8, "class 7 0.90"), (9, "class 7 0.90 and 1 more"), (10, "class 7 0.90 and 2 more")):
        told = _in_a_line(None, SimpleNamespace(detections=boxes[:count], names=[]))
        assert told.startswith(f"{count} found: class 0 0.90, class 1 0.90, ")
        assert told.endswith(end)
    assert [_took(ms) for ms in (0.04, 999.9, 1000, 1549)] == ["0.0 ms", "999.9 ms", "1.0 s", "1.5 s"]
    mx.sym.Reshape(mx.sym.Variable("data"), shape=(0, 0, -1), name="flat").save(
        str(picture.parent / "flat.json")
    )
    mx.nd.save(str(picture.parent / "none.params"), {})
    code, out, _ = roiops("run", picture.parent / "flat.json", picture.parent / "none.params", picture)
    assert code == 0
    assert (
        "The outputs are neither detections, nor class scores, nor a segmentation; --output FILE.npz" in out
    )


def test_parameters_beside_a_graph_are_for_commands_that_say_so(roiops, model):
    model[1].write_bytes(b"damaged")
    assert roiops("inspect", model[0])[0] == 0
    assert roiops("bench", model[0], "--shape", "data=1,3,2,2", "--seconds", "1e-9")[0] == 0
    assert roiops("run", model[0], "--input", "data=[[[[1]],[[2]],[[3]]]]")[0] == 1


def test_arrays_of_an_npz_file(roiops, model, tmp_path):
    rows = np.ones((2, 3, 2, 2), np.float32)
    np.savez(tmp_path / "x.npz", data=rows, other=rows[:1])
    assert "softmax_output  (2, 6)" in roiops("run", *model, "--input", f"data={tmp_path / 'x.npz'}")[1]
    np.savez(tmp_path / "y.npz", a=rows, b=rows)
    code, _, err = roiops("run", *model, "--input", f"data={tmp_path / 'y.npz'}")
    assert code == 1
    assert "y.npz: holds a, b, but no data" in err


def test_files_of_arrays_may_stand_where_pictures_do(roiops, model, tmp_path):
    rows = np.ones((2, 3, 2, 2), np.float32)
    np.savez(tmp_path / "x.npz", data=rows, other=np.array(["not asked for"]))
    np.save(tmp_path / "x.npy", rows)
    want = roiops("run", *model, "--input", f"data={tmp_path / 'x.npy'}")[1]
    assert "softmax_output  (2, 6)" in want
    for file in ("x.npz", "x.npy"):
        assert roiops("run", *model, tmp_path / file)[:2] == (0, want)
    np.savez(tmp_path / "y.npz", a=rows, b=rows)
    code, _, err = roiops("run", *model, tmp_path / "y.npz")
    assert code == 1
    assert "y.npz: holds a, b; the model's inputs are data; --input NAME=" in err


def test_arrays_without_rows_have_outputs_but_no_reading(roiops, model, tmp_path):
    np.save(tmp_path / "none.npy", np.ones((0, 3, 2, 2), np.float32))
    code, out, err = roiops("run", *model, tmp_path / "none.npy")
    assert (code, "softmax_output  (0, 6)" in out, "error" in err) == (0, True, False)


def test_an_input_comes_from_one_place(roiops, model, picture, tmp_path):
    np.savez(tmp_path / "x.npz", data=np.ones((1, 3, 2, 2), np.float32))
    np.save(tmp_path / "y.npy", np.ones((1, 3, 2, 2), np.float32))
    files = tmp_path / "x.npz", tmp_path / "y.npy"
    code, _, err = roiops("run", *model, *files[::-1])
    assert (code, f"{files[0]}: data is given already" in err) == (2, True)
    for file in files:
        code, _, err = roiops("run", *model, file, "--input", f"data={picture}")
        assert (code, "--input data: pictures and arrays cannot be joined" in err) == (2, True)
    pytest.importorskip("onnxruntime")
    twice = [word for file in files for word in ("--input", f"data={file}")]
    code, _, err = roiops("convert", *model, tmp_path / "n.onnx", "--check", *twice)
    assert (code, "--input: data is given twice" in err) == (2, True)
    code, _, err = roiops("convert", *model, tmp_path / "n.onnx", "--check", *twice[:2], "--preset", "ssd")
    assert (code, "--preset is for pictures: --input NAME=PICTURE" in err) == (2, True)
    code, _, err = roiops("convert", *model, tmp_path / "n.onnx", "--check", "--input", "data=1,2")
    assert (code, "values are JSON, in brackets: 'data=[[1,2]]'" in err) == (2, True)
    shape = "--shape", "data=N,3,4,4", "--check"
    code, out, _ = roiops(
        "convert", *model, tmp_path / "n.onnx", *shape, "--outputs", "mean_output,fc_output"
    )
    assert (code, "mean_output" in out, "fc_output" in out, "softmax" in out) == (0, True, True, False)


def test_convert_names_the_file_that_cannot_be_written(roiops, model, tmp_path, monkeypatch):
    pytest.importorskip("onnx")

    def refuse(prefix, dir):
        raise PermissionError(13, "Permission denied", f"{dir}/{prefix}1234")

    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    code, _, err = roiops("convert", *model, tmp_path / "n.onnx", "--shape", "data=1,3,4,4")
    assert (code, f"error: {tmp_path / 'n.onnx'}: Permission denied\n" in err) == (1, True)


def test_outputs_do_not_replace_what_is_read(roiops, model, picture, tmp_path):
    (tmp_path / "names.json").write_text("a\nb\nc\nd\ne\nf\n")
    np.savez(tmp_path / "x.npz", data=np.ones((1, 3, 2, 2), np.float32))
    for name, words in (
        (model[0], [picture]),
        (tmp_path / "x.npz", [tmp_path / "x.npz"]),
        (tmp_path / "x.npz", ["--input", f"data={tmp_path / 'x.npz'}"]),
        (tmp_path / "names.json", [picture, "--classes", tmp_path / "names.json"]),
    ):
        before = name.read_bytes()
        code, _, err = roiops("run", *model, *words, "--output", name)
        assert (code, f"--output {name}: {name} is read, and would be replaced" in err) == (2, True)
        assert name.read_bytes() == before


def test_a_folder_holds_no_lines_of_results(roiops, model, picture, tmp_path):
    (tmp_path / "f.jsonl").mkdir()
    for more in ((), ("--resume",)):
        code, _, err = roiops("run", *model, picture, "--output", tmp_path / "f.jsonl", *more)
        assert (code, "f.jsonl: is no file; give another name" in err) == (1, True)


def test_names_that_the_terminal_cannot_show_end_no_run(model, picture):
    named = picture.rename(picture.with_name("猫.png"))
    command = [sys.executable, "-m", "roiops", "run", *model, named, named.parent / "*.png", "--json"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    ended = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (ended.returncode, "\\u732b.png" in ended.stdout) == (0, True)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("1 / 0", "module 'broken_module' cannot be imported: ZeroDivisionError: division by zero"),
        ("def", "module 'broken_module' cannot be imported: SyntaxError"),
        ("raise SystemExit(0)", "module 'broken_module' cannot be imported: SystemExit: 0"),
        ("import not_there_at_all", "ModuleNotFoundError: No module named 'not_there_at_all'"),
    ],
)
def test_modules_of_the_user_that_fail(roiops, tmp_path, monkeypatch, text, message):
    (tmp_path / "broken_module.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("roiops.mxnet.as_mxnet.install", lambda: None)  # it is for a whole process
    for words in (["ops", "--import", "./broken_module.py"], ["inspect", "broken_module.py:make"]):
        code, _, err = roiops(*words)
        assert (code, message in err, "internal error" in err) == (1, True, False)


def test_the_height_of_a_size_comes_first(roiops, model, picture):
    assert "2x2, resized to 3x5 (" in roiops("run", *model, picture, "--resize", "3x5")[2]
    row = roiops("explain", "--roi", "0,0,4,4", "--shape", "6x9", "--dialect", "ROIAlign/mmcv/aligned")[1]
    assert row.splitlines()[-1].endswith("  2 x 2")  # samples of one bin of 2 x 2, of a box of 4 x 4


def test_how_a_picture_is_brought_to_its_size_is_said(roiops, model, tmp_path):
    PIL.new("RGB", (640, 480)).save(tmp_path / "large.png")
    err = roiops("run", *model, tmp_path / "large.png", "--preset", "gluon")[2]
    assert "480x640, resized to 256x341, cropped to 224x224 (preset gluon)" in err


def test_pictures_of_several_sizes_have_outputs_that_do_not_fit_together(roiops, model, pictures, tmp_path):
    (pictures / "damaged.jpg").unlink()
    code, _, err = roiops("run", *model, pictures, "--output", tmp_path / "o.npz")
    assert code == 1
    assert "--resize brings them to one, a .jsonl file takes them all" in err
    code, out, _ = roiops("run", *model, pictures, "--output", tmp_path / "o.npz", "--resize", "2x2")
    assert (code, re.findall(r"(\w+\.png):\n", out)) == (0, ["a.png", "b.png", "c.png"])
    with np.load(tmp_path / "o.npz") as file:
        assert file["softmax_output"].shape == (3, 6)


def test_im_info_is_filled_from_the_image(roiops, tmp_path, picture):
    info = mx.sym.Variable("im_info")
    symbol = mx.sym.Group(
        [mx.sym.identity(info, name="info"), mx.sym.mean(mx.sym.Variable("data"), name="mean")]
    )
    symbol.save(str(tmp_path / "i-symbol.json"))
    mx.nd.save(str(tmp_path / "i-0000.params"), {"arg:none": mx.nd.zeros((1,))})
    with pytest.warns(UserWarning, match="none"):
        code, _, err = roiops(
            "run", tmp_path / "i-symbol.json", tmp_path / "i-0000.params",
            "--input", f"data={picture}", "--short-side", 8, "--output", tmp_path / "o.npz",
        )  # fmt: skip
    assert code == 0
    assert "im_info is filled with [8.0, 8.0, 4.0]" in err
    with np.load(tmp_path / "o.npz") as file:
        assert file["info_output"].tolist() == [[8, 8, 4]]


def test_custom_operators_of_a_module(roiops, tmp_path, monkeypatch):
    (tmp_path / "cli_custom_module.py").write_text(
        "import roiops as mx\n"
        "class Op(mx.operator.CustomOp):\n"
        "    def forward(self, is_train, req, in_data, out_data, aux):\n"
        "        self.assign(out_data[0], req[0], in_data[0] + 1)\n"
        "@mx.operator.register('cli_increment')\n"
        "class Prop(mx.operator.CustomOpProp):\n"
        "    def create_operator(self, ctx, shapes, dtypes):\n"
        "        return Op()\n"
    )
    nodes = [
        {"op": "null", "name": "data", "inputs": []},
        {"op": "Custom", "name": "c", "attrs": {"op_type": "cli_increment"}, "inputs": [[0, 0, 0]]},
    ]
    path = tmp_path / "c-symbol.json"
    path.write_text(json.dumps({"nodes": nodes, "heads": [[1, 0, 0]], "arg_nodes": [0]}))
    assert "Custom(op_type=cli_increment)  x1" in roiops("inspect", path)[1]
    monkeypatch.chdir(tmp_path)
    code, out, _ = roiops("inspect", path, "--import", "cli_custom_module", "--shape", "data=2,3")
    assert code == 0
    assert "c_output (2, 3)" in out
    code, _, err = roiops("inspect", path, "--import", "no_such_module")
    assert code == 1
    assert "--import no_such_module: there is no module 'no_such_module' in the current folder" in err


# -- ops, doctor, bench ----------------------------------------------------------------------------------


def test_explain_takes_operators_and_negative_coordinates(roiops):
    code, out, _ = roiops("explain", "--roi", "-3,2,8,9", "--shape", "10x10", "--dialect", "PSROIAlign")
    names = [line.split()[0] for line in out.splitlines()[1:]]
    assert code == 0
    assert len(names) >= 3
    assert all(name.startswith("PSROIAlign/") for name in names)
    assert " -3.000" in out
    code, _, err = roiops("explain", "--roi", "0,2,8,9", "--shape", "10x10", "--dialect", "ROIAlgn")
    assert code == 1
    assert "did you mean" in err
    assert "ROIAlign" in err
    assert "must be HEIGHTxWIDTH" in roiops("explain", "--roi", "0,2,8,9", "--shape", "10,10")[2]
    assert "unrecognized arguments: -5" in roiops("inspect", "net", "-5")[2]  # it belongs to no option


def test_the_beginning_of_an_output_s_name_is_understood(roiops, model, picture):
    code, _, err = roiops("run", *model, picture, "--outputs", "mean")
    assert code == 1
    assert "there is no output 'mean'; did you mean 'mean_output'" in err


def test_ops_lists_and_explains(roiops):
    assert "contrib.ROIAlign" in roiops("ops")[1]
    code, out, _ = roiops("ops", "contrib.ROIAlign")
    assert code == 0
    assert "pooled_size : int or tuple of 2 ints" in out
    assert "Runs on: cpu" in out
    assert roiops("ops", "--match", "roipool")[1].startswith("ROIPooling ")
    for words, operator in {
        "rotated": "ROIAlignRotated",
        "oriented": "ROIAlignRotated",
        "roi_align_rotated": "ROIAlignRotated",
        "crop and resize": "CropAndResize",
        "precise": "PrROIPooling",
        "feature pyramid": "MultiScaleROIAlign",
        "multi-scale": "MultiScaleROIAlign",
        "FPN": "MultiScaleROIAlign",
    }.items():
        assert roiops("ops", "--match", words)[1].startswith(f"{operator} "), words
    described = json.loads(roiops("ops", "ROIPooling", "--json")[1])
    assert described["inputs"] == ["data", "rois"]
    assert described["parameters"][0]["name"] == "pooled_size"


def test_ops_suggests_near_names(roiops):
    code, _, err = roiops("ops", "ROIAlin")
    assert code == 1
    assert "operator 'ROIAlin' is not registered; did you mean" in err


def test_nothing_found_is_an_error(roiops):
    assert roiops("ops", "--match", "zzz", "--json")[:2] == (1, "")
    assert roiops("ops", "--match", "zzz") == (
        1,
        "",
        "roiops ops: error: no operator has 'zzz' in any of its names or in its summary\n",
    )
    code, out, err = roiops("bench", "--match", "zzz")
    assert (code, out) == (1, "")
    assert "no ROI operator that is timed has 'zzz' in its name" in err


def test_bench_needs_shapes(roiops, model):
    code, _, err = roiops("bench", model[0])
    assert code == 2
    assert "--shape is needed for data" in err


@pytest.mark.parametrize("command", ["inspect", "bench"])
def test_parameters_in_the_wrong_place(roiops, model, command):
    code, _, err = roiops(command, *model)
    assert code == 2
    assert "the file of the parameters, or their epoch, goes with --params" in err


def test_no_command_is_the_help(roiops):
    code, out, err = roiops()
    assert (code, out) == (2, "")
    assert "A first look at a model nobody remembers" in err


def test_doctor(roiops):
    code, out, _ = roiops("doctor")
    assert code == 0
    for title in ("Python and packages", "Processor", "Threads", "BLAS of NumPy", "GPU", "Settings", "Trial"):
        assert title in out
    assert re.search(r"means of ROIs +scalars, lanes, channels_last\n", out)
    assert out.rstrip().endswith("Everything that was tried works.")


def test_what_doctor_finds(roiops, monkeypatch):
    _, out, _ = roiops("doctor")
    for row in (
        r"  numpy +\d+\.\d+",
        r"  kernels use +\d+, because of ",
        r"  caches +second \d+ KiB of a core, last \d+ KiB, ",
        r"  ROIPooling, second call +[\d.]+ ms",
        r"  matrix product +right",
    ):
        assert re.search(row, out), row
    told = "model name\t: A\nflags\t: fpu avx fma avx2\n"
    monkeypatch.setattr(doctor, "open", lambda *_, **__: io.StringIO(told), raising=False)
    found = dict(doctor._processor())
    assert (found["model"], found["vectors"]) == ("A", "avx, avx2, fma")
    monkeypatch.setattr(doctor, "open", lambda *_, **__: io.StringIO("model name\t: A\n"), raising=False)
    assert "vectors" not in dict(doctor._processor())


def test_what_doctor_says_of_what_fails(roiops, tmp_path, monkeypatch):
    program = tmp_path / "nvidia-smi"
    monkeypatch.setattr("shutil.which", lambda name: str(program))
    for script, found in (
        ("echo 'A, 1.2, 3 MiB, 9.0'", [("gpu(0)", "A, 1.2, 3 MiB, 9.0")]),
        ("echo lost >&2; exit 9", [("driver", "lost")]),
    ):
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        assert [*doctor._gpu()] == found
    program.write_bytes(b"\0")
    assert dict(doctor._gpu())["driver"].startswith("nvidia-smi does not answer: ")
    monkeypatch.setenv("ROIOPS_CACHE", "0")
    assert [*doctor._caches([])] == [("used", "no, ROIOPS_CACHE=0")]
    for wrong, told in (
        (lambda *_, **__: mx.nd.zeros((1,)), "ROIPooling gave 0.0 instead of 63"),
        (lambda *_, **__: 1 / 0, "ROIPooling raised ZeroDivisionError: division by zero"),
    ):
        monkeypatch.setattr(mx.nd, "ROIPooling", wrong)
        code, out, _ = roiops("doctor")
        assert code == 1
        assert told in out


def test_doctor_tells_of_a_cache_folder_that_cannot_be_written(tmp_path, monkeypatch):
    from roiops.cli import doctor
    from roiops.kernels import jit

    monkeypatch.setattr("numba.config.CACHE_DIR", str(tmp_path / "asked"))
    for used, told in ((str(tmp_path / "home"), True), (str(tmp_path / "asked" / "roi"), False)):
        monkeypatch.setattr(jit, "cache_folder", lambda used=used: used)
        rows, failures = [], []
        rows += doctor._caches(failures)
        assert (("", f"NUMBA_CACHE_DIR={tmp_path / 'asked'} cannot be written") in rows) is told
        assert ("new ones go to", used) in rows
        assert not failures
    monkeypatch.setattr(jit, "cache_folder", lambda: None)
    assert ("new ones go to", "nowhere") in [*doctor._caches(failures)]
    assert failures == ["no folder for compiled kernels can be written: every process compiles anew"]


def test_doctor_counts_the_files_of_all_folders(tmp_path, monkeypatch):
    for folder in ("conv", "roi"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "kernel.nbi").write_bytes(b"1234")
    monkeypatch.setattr("numba.config.CACHE_DIR", "")
    monkeypatch.setattr("roiops.kernels.jit.__file__", str(tmp_path / "jit.py"))
    rows = [*doctor._caches([])]
    assert ("holds", "2 files, 0.0 MiB") in rows
    assert [row for row in rows if row[0] == "in"] == [
        ("in", f"{tmp_path / folder}: 1 files") for folder in ("conv", "roi")
    ]


def test_bench_of_a_model(roiops, model):
    arguments = [
        "--params",
        model[1],
        "--shape",
        "data=1,3,2,2",
        "--seconds",
        "1e-9",
        "--operators",
        "--json",
    ]
    code, out, _ = roiops("bench", model[0], *arguments)
    assert code == 0
    names = [row["name"].split()[0] for row in json.loads(out)["results"]]
    assert names[:2] == ["forward", "operators"]
    assert "FullyConnected" in names
    out = roiops("bench", model[0], *arguments[:-1])[1]
    assert re.match(r"threads: \d+\nwhat +median ms +quartiles +calls\nforward +[\d.]+ +[\d.]+ to", out)
    apart = float(re.search(r"\noperators one by one, none merged with the next +([\d.]+) ", out)[1])
    each = re.findall(r"\n  \w+ x1 +([\d.]+) ", out)
    assert abs(apart - sum(map(float, each))) < 0.01
    assert len(each) == 4


def test_bench_has_operators_whose_outputs_have_long_names(roiops, tmp_path):
    targets = mx.sym.contrib.MultiBoxTarget(*map(mx.sym.Variable, "abc"), name="targets")
    targets.save(str(tmp_path / "net-symbol.json"))
    shapes = ["--shape", "a=1,5,4", "--shape", "b=2,3,5", "--shape", "c=2,4,5"]
    code, out, _ = roiops("bench", tmp_path / "net", *shapes, "--operators", "--seconds", "1e-9")
    assert code == 0
    assert "MultiBoxTarget x1 " in out


def test_bench_of_an_operator(roiops):
    code, out, _ = roiops("bench", "--match", "ROIPooling", "--rois", 3, "--seconds", "1e-9")
    assert code == 0
    assert "ROIPooling forward and backward" in out


# -- the commands of the docs ----------------------------------------------------------------------------

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "archived_models.md").read_text(encoding="utf-8")
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = dict.fromkeys(
    tuple(shlex.split(command.replace("\\\n", " "))[1:])
    for page in (PAGE, README)
    for block in re.findall(r"^```sh\n(.*?)^```", page, re.M | re.S)
    for command in re.split(r"(?<!\\)\n", block)
    if command.startswith("roiops ")
)


@pytest.mark.parametrize("command", COMMANDS, ids=lambda c: c[0])
def test_commands_of_readme_and_of_the_page_on_archived_models(roiops, tmp_path, monkeypatch, command):
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    monkeypatch.chdir(tmp_path)
    code, out, err = roiops(*command)
    assert (code, err if "error" in err else "") == (0, "")
    if command[0] == "inspect" and "--params" in command:
        assert out in PAGE, "the page shows what the command prints"
    if command[0] == "run":
        found = re.findall(r"^(?:disc|square|two|four)  +[01][.][0-9]", out, re.M)
        assert len(found) == 5, "five objects, as in the picture"
        assert (tmp_path / "boxes.png").exists()


# -- as mxnet --------------------------------------------------------------------------------------------


def test_a_script_that_imports_mxnet(tmp_path):
    (tmp_path / "helper_of_script.py").write_text("from mxnet import nd\none = nd.ones((1,))\n")
    script = tmp_path / "script.py"
    script.write_text(
        "import os\n"
        "import sys\n"
        "import mxnet as mx\n"
        "import mxnet.ndarray as nd\n"
        "from mxnet.base import MXNetError\n"
        "from helper_of_script import one\n"
        "print(mx.__version__, nd is mx.nd, (one + 1).asscalar(), issubclass(MXNetError, Exception))\n"
        "print(sys.argv, __name__)\n"
        "print(os.path.isdir(os.path.dirname(mx.__file__)))\n"
        "import mxnet.io.io, mxnet.symbol.symbol, mxnet.gluon.contrib.cnn.conv_layers\n"
        "from mxnet.gluon.model_zoo.vision.resnet import resnet18_v1\n"
        "from mxnet.contrib import text, onnx, tensorboard\n"
        "import numpy as np\n"
        "print(np.reshape(np.ones(6), newshape=(2, 3)).shape, mxnet.io.io is mx.io)\n"
        "print(np.fromstring(b'ab', np.uint8), np.lib.pad([1], 1, 'edge'), np.in1d([1, 2], [2]))\n"
        "print(mx.sym.contrib.__all__ == mx.nd.contrib.__all__, 'Nothing' in mx.sym.contrib.__all__)\n"
    )
    ended = subprocess.run(
        [sys.executable, "-m", "roiops.as_mxnet", str(script), "--a", "b"], capture_output=True, text=True
    )
    # NumPy before 2.4, which still has it, says so itself.
    assert [line for line in ended.stderr.splitlines() if "in1d" not in line] == []
    lines = ended.stdout.splitlines()
    assert lines[0] == "1.9.1 True 2.0 True"
    assert lines[1] == f"{[str(script), '--a', 'b']} __main__"
    assert lines[2] == "True"
    assert lines[3:] == ["(2, 3) True", "[97 98] [1 1 1] [False  True]", "True False"]


def as_mxnet(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "roiops.as_mxnet", *map(str, arguments)], capture_output=True, text=True
    )


def test_imports_of_what_is_not_offered_say_what_to_do(tmp_path):
    script = tmp_path / "imports.py"
    script.write_text(
        "for line in ('from mxnet.optimizer import LBSGD', 'from mxnet.gluon.contrib import estimator',\n"
        "        'from mxnet.optimizer.contrib import GroupAdaGrad', 'from mxnet.util import use_np'):\n"
        "    try:\n        exec(line)\n    except ImportError as error:\n        print(error)\n"
    )
    lines = as_mxnet(script).stdout.splitlines()
    starts = "optimizer.LBSGD", "gluon.contrib.estimator", "optimizer.contrib", "util.use_np"
    assert len(lines) == 4
    for line, start in zip(lines, starts, strict=True):
        assert line.startswith(f"mx.{start} is not offered: ")


def test_a_script_with_the_names_of_an_older_numpy_and_python(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "from collections import Iterable, OrderedDict\n"
        "import numpy as np\n"
        "import mxnet as mx\n"
        "assert issubclass(OrderedDict, Iterable)\n"
        "a = np.zeros(2, np.float) + np.product([2, 3])\n"
        "print(a, a.astype(np.int), np.float_, np.sometrue(a), np.bool(1), np.NaN, np.array(['x'], np.object))\n"
        "print([np.asscalar(a[0]), np.asscalar(np.ones((1, 1)))])\n"
    )
    ended = as_mxnet(script)
    assert ended.stderr == ""
    assert ended.stdout == "[6. 6.] [6 6] <class 'numpy.float64'> True True nan ['x']\n[6.0, 1.0]\n"
    # In a program that goes on, NumPy stays what it is.
    program = (
        "import roiops.as_mxnet; roiops.as_mxnet.install(); import numpy; print(hasattr(numpy, 'float'))"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("False\n", "")


def test_former_names_are_for_scripts_and_for_gluoncv_only(tmp_path):
    """A package that asks NumPy what it has is not told otherwise."""
    asking = (
        "import sys, types, numpy\n"
        "def has(**names):\n"
        '    code = \'import numpy, collections; found = hasattr(numpy, "float"), '
        'hasattr(collections, "Iterable")\'\n'
        "    exec(code, names)\n"
        "    return names['found']\n"
        "print(has(__name__='gluoncv.data.base'), has(__name__='pandas', __file__=numpy.__file__), "
        "has(__name__='helper', __file__='helper.py'))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(asking)
    ended = as_mxnet(script)
    assert (ended.stdout, ended.stderr) == ("(True, True) (False, False) (True, True)\n", "")
    program = "import roiops.as_mxnet; roiops.as_mxnet.install()\n" + asking
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (ended.stdout, ended.stderr) == ("(True, True) (False, False) (False, False)\n", "")


def test_versions_compare_as_with_distutils():
    from roiops.mxnet.as_mxnet import LooseVersion

    assert LooseVersion("1.4.0") < LooseVersion("1.9.1") < LooseVersion("1.10") < LooseVersion("2.0.0")
    assert LooseVersion("1.9.1") >= LooseVersion("1.9.1")


def test_a_script_that_asks_for_a_gpu_runs_on_the_cpu_where_it_is_told_to(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import mxnet as mx\n"
        "print(mx.nd.ones((2,), ctx=mx.gpu(1)).context, mx.Context('gpu', 3), mx.cpu(2), mx.cpu_pinned())\n"
        "print(mx.context.num_gpus(), mx.util.get_gpu_count())\n"
    )
    ended = as_mxnet("--cpu", script)
    assert (ended.stdout, ended.stderr) == ("cpu(0) cpu(0) cpu(2) cpu_pinned(0)\n0 0\n", "")
    if not mx.context.num_gpus():
        ended = as_mxnet(script)
        assert ended.returncode == 1
        assert "`python -m roiops.as_mxnet --cpu` runs a script that asks for GPUs on the CPU" in ended.stderr


@pytest.mark.parametrize(
    ("statement", "advice"),
    [
        ("from mxnet import rtc; rtc.CudaModule", "CUDA source is not compiled"),
        ("from mxnet import profiler, runtime; profiler.set_state('run')", "times the operators of a model"),
        ("from mxnet.contrib.text import vocab", "embeddings of words are not offered"),
        ("import mxnet.nothing.at.all", "mxnet.nothing: roiops, which stands in for mxnet, has no"),
    ],
)
def test_parts_of_mxnet_that_are_not_there_say_so(tmp_path, statement, advice):
    script = tmp_path / "script.py"
    script.write_text(statement)
    ended = as_mxnet(script)
    assert ended.returncode == 1
    last = ended.stderr.splitlines()[-1]
    assert last.startswith(("ImportError: mx", "roiops.errors.NotOfferedError: mx", "AttributeError: mx"))
    assert advice in last


def test_as_mxnet_explains_itself():
    ended = as_mxnet("--help")
    assert ended.returncode == 0
    assert "--cpu script.py" in ended.stdout
    assert as_mxnet().returncode == 2
    ended = as_mxnet("--gpu", "script.py")
    assert (ended.returncode, ended.stderr) == (2, "as_mxnet: --gpu: unknown option; --help lists them\n")


def test_as_mxnet_needs_a_script():
    ended = subprocess.run(
        [sys.executable, "-m", "roiops.as_mxnet", "none.py"], capture_output=True, text=True
    )
    assert (ended.returncode, ended.stderr) == (1, "as_mxnet: none.py: no such file\n")


def test_help_loads_no_compiler():
    script = "import sys\nfrom roiops import cli\ncli.make_parser()\nassert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", script], check=True)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (["bench", "--dtype", "float16"], "--dtype is for a model"),
        (["bench", "--shape", "data=1,3,4,4"], "--shape is for a model"),
        (["bench", "a-symbol.json", "--rois", "5"], "--rois is for the ROI operators, without a model"),
        (
            ["warmup", "ROIPooling", "--dtype", "int32"],
            "--dtype must be float16, float32 or float64, got int32",
        ),
        (["warmup", "ROIPooling", "--shape", "data=1,3,4,4"], "--shape is for one model"),
        (["bench", HALF[0], "--dtype", "float32"], "--dtype converts parameters; give them with --params"),
        (["inspect", "a", "--shape", "data=1", "--shape", "data=2"], "--shape: data is given twice"),
        (["inspect", "a", "--with", "a=1", "--with", "a=2"], "--with: a is given twice"),
        (["explain", "--roi", "1,1,4,4,9", "--shape", "6x8", "--angle", "1"], "--angle is for a box of four"),
        (["explain", "--roi", "1,1,4,4", "--shape", "6x8", "--out", "x"], "--out must end in .png, .pdf or"),
        (["ops", "ROIAlign", "--match", "x"], "--match lists operators; give it without a NAME"),
        (["inspect", "a-symbol.json", "--json", "--layers"], "--layers prints a table; without --json"),
    ],
)
def test_options_that_would_be_ignored(roiops, arguments, text):
    code, out, err = roiops(*arguments)
    assert (code, out, text in err) == (2, "", True)
