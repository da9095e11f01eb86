"""Make examples/archived: a small detector in files as MXNet 1.9.1 saves them, and a picture for it.

    python verify/peers.py mxnet
    python tools/make_archived_example.py

The graph is that of examples/rcnn, with MXNet's own ROIAlign in place of ours, which means the same here.
MXNet loads it, saves it again, and runs it with the trained parameters; what it gives goes to
tests/golden/archived.npz.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import peers

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

from rcnn.config import load  # noqa: E402
from rcnn.data.image import prepare, stack  # noqa: E402
from rcnn.data.shapes import draw_scene  # noqa: E402
from rcnn.symbol import test_symbol  # noqa: E402

MODEL = ROOT / "examples" / "rcnn" / "model"
FOLDER = ROOT / "examples" / "archived"

#: What MXNet does: load, save, run in single precision.
IN_MXNET = """
import sys
import mxnet as mx
import numpy as np
graph, params, inputs, saved, outputs = sys.argv[1:]
symbol = mx.sym.load(graph)
symbol.save(saved)
arrays = {n.split(":", 1)[1]: a.astype("float32") for n, a in mx.nd.load(params).items()}
arrays.update((n, mx.nd.array(a)) for n, a in np.load(inputs).items())
states = {n: arrays[n] for n in symbol.list_auxiliary_states()}
executor = symbol.bind(mx.cpu(), {n: arrays[n] for n in symbol.list_arguments()}, aux_states=states)
results = dict(zip(symbol.list_outputs(), executor.forward()))
np.savez_compressed(outputs, **{n: a.asnumpy() for n, a in results.items()})
"""


def main() -> None:
    config = load(MODEL / "config.yaml")
    graph = json.loads(test_symbol(config).tojson())
    for node in graph["nodes"]:
        if node["op"] == "ROIAlign":
            node["op"] = "_contrib_ROIAlign"
            kept = {key: node["attrs"][key] for key in ("pooled_size", "spatial_scale", "aligned")}
            node["attrs"] = {**kept, "sample_ratio": node["attrs"]["sampling_ratio"]}
    FOLDER.mkdir(exist_ok=True)
    image, _ = draw_scene(np.random.default_rng([2024, 7]))
    image.save(FOLDER / "scene.png")
    pixels, factor = prepare(image, config.data)
    data = stack([pixels], 1)
    info = np.array([[*pixels.shape[1:], factor]], np.float32)
    with tempfile.TemporaryDirectory() as scratch:
        scratch = Path(scratch)
        (scratch / "graph.json").write_text(json.dumps(graph))
        np.savez(scratch / "inputs.npz", data=data, im_info=info)
        subprocess.run(
            [
                str(peers.interpreter("mxnet")), "-W", "ignore", "-c", IN_MXNET,
                str(scratch / "graph.json"), str(MODEL / "model.params"), str(scratch / "inputs.npz"),
                str(FOLDER / "shapes-symbol.json"), str(scratch / "outputs.npz"),
            ],
            check=True,
        )  # fmt: skip
        with np.load(scratch / "outputs.npz") as file:
            outputs = dict(file)
    meta = {"peer": "mxnet", "version": "1.9.1", "script": "tools/make_archived_example.py"}
    np.savez_compressed(
        ROOT / "tests" / "golden" / "archived.npz", meta=json.dumps(meta), data=data, im_info=info, **outputs
    )


if __name__ == "__main__":
    main()
