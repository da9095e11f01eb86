"""Summaries and pictures of graphs."""

import pytest

import roiops as mx


def net():
    x = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    x = mx.sym.Activation(x, act_type="relu", name="relu")
    return mx.sym.FullyConnected(mx.sym.Flatten(x, name="flat"), num_hidden=2, name="fc")


def test_summary_counts_parameters(capsys):
    mx.viz.print_summary(net(), shape={"data": (1, 3, 8, 8)})
    text = capsys.readouterr().out
    assert "conv(Convolution)" in text
    assert " 4x6x6 " in text
    conv, fc = 4 * 3 * 9 + 4, 2 * 144 + 2
    assert f"Total params: {conv + fc}" in text


def test_summary_is_printed_as_mxnet_prints_it(capsys):
    """The text is MXNet 1.9.1's, of the same network."""
    mx.viz.print_summary(net(), {"data": (1, 3, 8, 8)}, line_length=64)
    assert capsys.readouterr().out.splitlines() == [
        "_" * 64,
        "Layer (type)                Output ShapeParam #Previous Layer   ",
        "=" * 64,
        "data(null)                  3x8x8       0                       ",
        "_" * 64,
        "conv(Convolution)           4x6x6       112    data             ",
        "_" * 64,
        "relu(Activation)            4x6x6       0      conv             ",
        "_" * 64,
        "flat(Flatten)               144         0      relu             ",
        "_" * 64,
        "fc(FullyConnected)          2           290    flat             ",
        "=" * 64,
        "Total params: 402",
        "_" * 64,
    ]


def test_summary_without_shapes(capsys):
    mx.viz.print_summary(net())
    assert "Total params: 0" in capsys.readouterr().out


def test_plot_is_graphviz_source(tmp_path):
    plot = mx.viz.plot_network(net(), shape={"data": (1, 3, 8, 8)}, title='a "title"')
    assert plot.source.startswith('digraph "a \\"title\\"" {')
    assert "conv\\nConvolution\\nkernel=(3, 3), num_filter=4" in plot.source
    assert '[label="(1, 4, 6, 6)"' in plot.source
    assert "conv_weight" not in plot.source
    assert plot.save(str(tmp_path / "net.gv")) == str(tmp_path / "net.gv")
    assert "conv_weight" in mx.viz.plot_network(net(), hide_weights=False).source


def test_rendering_without_graphviz_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "graphviz", None)
    with pytest.raises(mx.MXNetError, match=r"needs the graphviz package"):
        mx.viz.plot_network(net()).render()


@pytest.mark.parametrize("look", [mx.viz.print_summary, mx.viz.plot_network])
def test_what_is_no_graph_or_no_input_of_it_is_refused(look):
    net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=3, name="fc")
    with pytest.raises(TypeError, match="viz: symbol must be a Symbol, got int"):
        look(3)
    with pytest.raises(mx.MXNetError, match="viz: 'dat' is not an input of the graph; did you mean 'data'"):
        look(net, shape={"dat": (1, 4)})
