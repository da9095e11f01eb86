"""What a monitor of everything calls the inputs of each operator: tests/golden/monitor_names.json.

One call of every operator that make_ops.py records, the first that MXNet runs.
"""

import json

import mxnet as mx

import ops_algebra  # noqa: F401  (they register their calls)
import ops_detection  # noqa: F401
import ops_elementwise  # noqa: F401
import ops_layout  # noqa: F401
import ops_network  # noqa: F401
from golden_format import GOLDEN
from ops_harness import FILES, Draw, bare, compose, fill


def names(entry):
    """What the monitor calls the inputs of the node called ``node``: each comes after its variable."""
    symbol = compose(entry)
    shapes = {key: value.shape for key, value in entry.inputs.items()}
    arg_shapes, _, aux_shapes = symbol.infer_shape(**shapes)
    types = {key: value.dtype for key, value in entry.inputs.items()}
    arg_types, _, aux_types = symbol.infer_type(**types)
    draw = Draw(0)
    arguments = fill(symbol.list_arguments(), arg_shapes, arg_types, entry.inputs, draw)
    states = fill(symbol.list_auxiliary_states(), aux_shapes, aux_types, entry.aux, draw)
    arguments, states = (
        {key: mx.nd.array(value, dtype=value.dtype) for key, value in each.items()}
        for each in (arguments, states)
    )
    executor = symbol.bind(mx.cpu(), arguments, grad_req="null", aux_states=states)
    told = []
    executor.set_monitor_callback(
        lambda name, array: told.append(name if isinstance(name, str) else name.decode()), monitor_all=True
    )
    executor.forward()
    mx.nd.waitall()
    return [bare(name) for name in told[1 : 2 * len(symbol.list_inputs()) : 2]]


def main():
    found = {}
    for calls in FILES.values():
        for entry in calls(Draw(0)):
            if entry.op not in found and entry.op != "_contrib_boolean_mask":  # which graphs here cannot have
                try:
                    found[entry.op] = names(entry)
                except mx.base.MXNetError as error:
                    print(f"{entry.op}: {str(error).splitlines()[0]}")
    meta = {"peer": "mxnet", "version": mx.__version__, "script": "make_monitor_names.py"}
    content = {**meta, "operators": dict(sorted(found.items()))}
    (GOLDEN / "monitor_names.json").write_text(json.dumps(content, indent=1) + "\n")


if __name__ == "__main__":
    main()
