"""Show what a saved model is made of, what it needs, and whether it can be run here.

Nothing is run and nothing is allocated for it. Operators that are not there are listed all at once, and so
are parameters that are missing, left over, or of another shape than the graph needs.

  roiops inspect vgg-symbol.json
  roiops inspect vgg-symbol.json --shape data=1,3,224,224      # or only: roiops inspect vgg ...
  roiops inspect vgg-symbol.json --params vgg-0000.params --shape data=1,3,224,224 --layers
  roiops inspect rcnn-symbol.json --import my_custom_operators --json
  roiops inspect networks.py:make_ssd --params ssd.params --with classes=20 --shape data=1,3,512,512

The last is a Gluon model: a function that returns its HybridBlock, and the function's arguments.

The exit code is 0 where nothing stands in the way of running the model, else 1. The shapes of the inputs
must be given for sizes, arithmetic and memory to be known; leaving them out is no fault.
"""

import json

from .common import add_model, add_shapes, dtype_name, open_model, refuse

SUMMARY = "operators, inputs, outputs, parameters, arithmetic and memory of a saved model"


def configure(parser) -> None:
    add_model(parser)
    parser.add_argument(
        "--params", metavar="FILE", help="its parameters, or their epoch, to be compared with the graph"
    )
    add_shapes(parser)
    parser.add_argument(
        "--dtype", type=dtype_name, metavar="TYPE", help="take the parameters to be converted to this"
    )
    parser.add_argument(
        "--layers", action="store_true", help="also list every layer, with its output's shape"
    )
    parser.add_argument("--json", action="store_true", help="print JSON instead of text")


def execute(args) -> int:
    from ..models.files import read_symbol
    from ..models.inspection import inspect_model
    from ..viz import print_summary

    if args.json:
        refuse(args, "prints a table; without --json", "layers")
    symbol, params = open_model(args, args.symbol, args.params)
    found = inspect_model(symbol, params, args.shape, dtype=args.dtype, source=args.symbol)
    if args.json:
        print(json.dumps(found.to_dict(), indent=2))
    else:
        print(found)
    if args.layers and not found.unsupported:
        if isinstance(symbol, str):
            symbol, _ = read_symbol(symbol)
        print()
        print_summary(symbol, shape=args.shape)
    return 0 if found.runs else 1
