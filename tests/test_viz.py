"""Summaries and pictures of graphs."""

import pytest

import roiops as mx


def net():
    x = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=4, name="conv")
    x = mx.sym.Activation(x, act_type="relu", name="relu")
    return mx.sym.FullyConnected(x, num_hidden=2, name="fc")


def test_summary_counts_parameters(capsys):
    mx.viz.print_summary(net(), shape={"data": (1, 3, 8, 8)})
    text = capsys.readouterr().out
    assert "conv (Convolution)" in text
    assert "(1, 4, 6, 6)" in text
    conv, fc = 4 * 3 * 9 + 4, 2 * 144 + 2
    assert f"Total params: {conv + fc}" in text


def test_summary_without_shapes(capsys):
    mx.viz.print_summary(net())
    assert "unknown" in capsys.readouterr().out


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
