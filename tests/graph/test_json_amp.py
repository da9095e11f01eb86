"""A saved graph has no casts of mixed precision, unless they are asked for."""

import json

import roiops as mx


def ops(text):
    return [node["op"] for node in json.loads(text)["nodes"] if node["op"] != "null"]


def test_casts_of_mixed_precision_are_left_out_of_files(tmp_path):
    a, b = mx.sym.var("a"), mx.sym.var("b")
    both = mx.sym.amp_multicast(mx.sym.exp(a), b, num_outputs=2)
    difference = mx.sym.elemwise_sub(both[1], both[0], name="difference")
    graph = mx.sym.Group([difference, mx.sym.amp_cast(a, dtype="float32", name="cast")])
    assert ops(graph.tojson()) == ["exp", "elemwise_sub", "amp_cast"]  # MXNet keeps one that is a head, too
    assert mx.sym.load_json(graph.tojson()).list_outputs() == ["difference_output", "cast_output"]
    kept = ["exp", "amp_multicast", "elemwise_sub", "amp_cast"]
    assert ops(graph.tojson(remove_amp_cast=False)) == kept
    graph.save(tmp_path / "a.json", remove_amp_cast=False)
    assert ops((tmp_path / "a.json").read_text()) == kept
