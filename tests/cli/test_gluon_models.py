"""Gluon models on the command line: ``module:function`` and a file of parameters."""

import json
import subprocess
import sys

import numpy as np
import pytest

from roiops import cli, gluon, nd
from roiops.cli.blocks import _input_count, _value, is_block

# An old network as it was written: MXNet's name, a name that NumPy took away, arguments.
NETWORKS = """
import numpy as np
from mxnet import gluon
from mxnet.gluon import nn


class Scaled(gluon.HybridBlock):
    def __init__(self, classes, scales, **kwargs):
        super().__init__(**kwargs)
        self.scale = np.float(scales[0])
        with self.name_scope():
            self.body = nn.HybridSequential()
            self.body.add(nn.Conv2D(4, 3), nn.BatchNorm(), nn.GlobalAvgPool2D(), nn.Flatten())
            self.head = nn.Dense(classes)

    def hybrid_forward(self, F, x):
        return F.softmax(self.head(self.body(x)) * self.scale)


def make(classes, scales=(1.0,)):
    return Scaled(classes, scales, prefix="scaled_")


def make_with_values(classes):
    net = make(classes, [2.0])
    net.load_parameters("new.params")
    return net


def make_symbol(classes):
    import mxnet as mx

    return mx.sym.var("data")


class OfItsShape(gluon.HybridBlock):
    def hybrid_forward(self, F, x):
        return x.reshape((x.shape[0], -1))


def needs_arrays():
    return OfItsShape()
"""
WITH = ["--with", "classes=3", "--with", "scales=[2.0]"]
SHAPE = ["--shape", "data=1,3,8,8"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The network's Python, its parameters in each layout, an input and what the network makes of it."""
    path = tmp_path_factory.mktemp("gluon")
    (path / "networks.py").write_text(NETWORKS)
    module = {}
    exec(NETWORKS.replace("mxnet", "roiops").replace("np.float(", "float("), module)
    net = module["make"](3, [2.0])
    net.initialize()
    data = np.random.default_rng(0).normal(size=(2, 3, 8, 8)).astype(np.float32)
    expected = net(nd.array(data)).asnumpy()
    np.save(path / "data.npy", data)
    np.save(path / "expected.npy", expected)
    net.save_parameters(str(path / "new.params"))
    net.collect_params().save(str(path / "old.params"), strip_prefix=net.prefix)
    nd.save(str(path / "part.params"), {"head.weight": nd.zeros((3, 4)), "head.bias": nd.zeros(3)})
    return path


def roiops(folder, *arguments):
    """The command in a process of its own: the name mxnet is taken there. Exit code and both outputs."""
    ended = subprocess.run(
        [sys.executable, "-m", "roiops", *map(str, arguments)],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


@pytest.mark.parametrize("params", ["new.params", "old.params"])
def test_run_gives_what_the_network_gives(folder, params):
    code, _, err = roiops(
        folder, "run", "networks:make", params, "--input", "data=data.npy", *WITH, "--output", "out.npz"
    )
    assert code == 0, err
    (found,) = np.load(folder / "out.npz").values()
    np.testing.assert_allclose(found, np.load(folder / "expected.npy"), rtol=1e-6)


def test_inspect_compares_the_parameters(folder):
    code, out, err = roiops(
        folder, "inspect", "networks.py:make", "--params", "new.params", *WITH, *SHAPE, "--json"
    )
    assert code == 0, err
    found = json.loads(out)
    assert found["source"] == "networks.py:make"
    assert [each["name"] for each in found["inputs"]] == ["data"]
    assert found["num_parameters"] == 4 * 3 * 9 + 4 + 4 * 4 + 3 * 4 + 3
    assert found["outputs"][0]["shape"] == [1, 3]


@pytest.mark.parametrize("name", ["networks:make", "./networks.py:make", "{folder}/networks.py:make"])
def test_inspect_needs_no_parameters(folder, name):
    code, out, err = roiops(folder, "inspect", name.format(folder=folder), *WITH, *SHAPE, "--layers")
    assert code == 0, err
    assert "Convolution" in out


def test_convert(folder):
    pytest.importorskip("onnx")
    code, out, err = roiops(
        folder, "convert", "networks:make", "new.params", "net.onnx", *WITH, *SHAPE, "--force"
    )
    assert code == 0, err
    assert out.startswith("net.onnx: ")
    assert (folder / "net.onnx").stat().st_size > 500


@pytest.mark.parametrize("params", [[], ["--params", "new.params"]])
def test_bench(folder, params):
    code, out, err = roiops(folder, "bench", "networks:make", *params, *WITH, *SHAPE, "--seconds", "0.01")
    assert code == 0, err
    assert "forward" in out


def test_values_that_the_function_sets_are_taken(folder):
    code, _, err = roiops(
        folder,
        *("run", "networks:make_with_values", "--with", "classes=3"),
        *("--input", "data=data.npy", "--output", "own.npz"),
    )
    assert code == 0, err
    (found,) = np.load(folder / "own.npz").values()
    np.testing.assert_allclose(found, np.load(folder / "expected.npy"), rtol=1e-6)


@pytest.mark.parametrize(
    ("words", "code", "text"),
    [
        (
            ["absent.nets:make"],
            1,
            "absent.nets:make: there is no module 'absent' in the current folder or among the installed "
            "packages",
        ),
        (
            ["nets/absent.py:make"],
            1,
            "nets/absent.py:make: there is no module 'absent' in nets or among the installed packages",
        ),
        (
            ["networks:mkae"],
            1,
            "networks:mkae: module 'networks' has no function 'mkae'; did you mean 'make'?",
        ),
        (
            ["networks:make_symbol", "--with", "classes=3"],
            1,
            "networks:make_symbol: the function must return a Gluon HybridBlock, got Symbol; only a "
            "HybridBlock has a graph",
        ),
        (
            ["networks:make"],
            1,
            "networks:make: the function failed: TypeError: make() missing 1 required positional argument: "
            "'classes'",
        ),
        (
            ["networks:needs_arrays"],
            1,
            "networks:needs_arrays: the block cannot be called with symbols, so it has no graph: ",
        ),
        (
            ["networks:make", "part.params", *WITH],
            1,
            "networks:make: Parameter 'body.0.weight' is missing in file 'part.params', which contains "
            "parameters: ",
        ),
        (["networks:make", *WITH], 2, "PARAMS is needed: networks:make sets none itself"),
        (["net", "--with", "classes=3"], 2, "--with is for Gluon models, MODULE:FUNCTION, got net"),
    ],
)
def test_errors_say_what_is_needed(folder, words, code, text):
    found, out, err = roiops(folder, "run", *words, "--input", "data=data.npy")
    assert (found, out) == (code, "")
    assert text in err


def test_values_are_literals_or_text():
    texts = ["20", "[0.1, 2]", "true", "None", "ssd_300_vgg16", "'20'", "open('x')", "{[]: 1}"]
    values = [20, [0.1, 2], True, None, "ssd_300_vgg16", "20", "open('x')", "{[]: 1}"]
    assert [_value(text) for text in texts] == values


def test_names_of_files_are_no_gluon_models(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert is_block("a.b:c")
    assert not any(map(is_block, ["a", "a/b:c", "a:b:c", "a:c.json", r"C:\model"]))
    (tmp_path / "a:c").touch()
    assert not is_block("a:c")


def test_inputs_are_counted():
    class Two(gluon.HybridBlock):
        def __init__(self):
            super().__init__()
            self.weight = self.params.get("weight", shape=(1,))

        def hybrid_forward(self, F, x, info, labels=None, *, weight):
            return x * weight + info

    class Forward(gluon.HybridBlock):
        def forward(self, x, more=None):
            return x

    assert [_input_count(each) for each in (Two(), Forward(), gluon.nn.Dense(1))] == [2, 1, 1]


@pytest.mark.parametrize("place", range(4))
def test_options_may_stand_before_among_and_after_file_names(place):
    """argparse itself gives what may be left out its default before it sees names after an option."""
    words = ["net:make", "x.params", "o.onnx"]
    words[place:place] = ["--with", "classes=3", "--force"]
    args = cli._parsed(cli.make_parser(["convert"]), ["convert", *words])
    assert (args.symbol, args.params, args.target) == ("net:make", "x.params", "o.onnx")
    assert vars(args)["with"] == {"classes": "3"}
