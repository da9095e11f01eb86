"""Show what each dialect of an ROI operator reads for one box: its frame, its bins and its samples.

For example:
  roiops explain --roi 3.2,2.4,14.6,11.3 --shape 6x8 --scale 0.5
  roiops explain --roi 3.2,2.4,14.6,11.3 --shape 6x8 --scale 0.5 --pooled 2x3 --ratio 2 --out dialects.png
  roiops explain --roi -3,2,8,9 --shape 10x10 --dialect ROIPooling/mxnet --dialect PSROIAlign
  roiops explain --roi 9,7,12,6,30 --shape 7x9 --scale 0.5 --out rotated.png
  roiops explain --roi 0.1,0.1,0.8,0.7 --normalised --shape 7x9
"""

import argparse
import math
from pathlib import Path

from ..errors import MXNetError
from .common import numbers, positive, refuse, size

SUMMARY = "draw the frame, bins and samples of each ROI dialect for a box of yours"


def _roi(text: str) -> tuple[float, ...]:
    values = numbers(text)
    if len(values) not in (4, 5) or not all(map(math.isfinite, values)):
        raise argparse.ArgumentTypeError(f"must be 4 or 5 numbers with commas between, got {text!r}")
    return values


def configure(parser) -> None:
    parser.add_argument(
        "--roi",
        type=_roi,
        required=True,
        metavar="X1,Y1,X2,Y2",
        help="the box, in image pixels; for the dialects that turn boxes also CX,CY,W,H,DEGREES",
    )
    parser.add_argument(
        "--angle", type=float, default=0.0, help="degrees by which a box of four numbers is turned there"
    )
    parser.add_argument(
        "--normalised",
        action="store_true",
        help="the box is Y1,X1,Y2,X2 from 0 to 1, as of CropAndResize",
    )
    parser.add_argument("--shape", type=size, required=True, metavar="HxW", help="size of the feature map")
    parser.add_argument(
        "--scale", type=positive(float), default=1.0, help="feature pixels per image pixel (default 1)"
    )
    parser.add_argument(
        "--pooled", type=size, default=(2, 2), metavar="HxW", help="output grid (default 2x2)"
    )
    parser.add_argument(
        "--ratio", type=int, default=0, help="samples a bin on each axis (default 0: adaptive)"
    )
    parser.add_argument(
        "--dialect",
        action="append",
        metavar="NAME",
        help="only this one, or all of this operator; may be repeated",
    )
    parser.add_argument("--out", metavar="FILE", help="draw to this file (PNG, PDF or SVG by its ending)")


def execute(args) -> None:
    from .. import explain

    if args.out and not Path(args.out).suffix:
        args.parser.error(f"--out must end in .png, .pdf or .svg, got {args.out}")
    if len(args.roi) == 5:
        refuse(args, "is for a box of four numbers; the fifth is its angle", "angle")
    box = args.roi, args.shape, args.scale, args.pooled, args.ratio, args.dialect
    how = {"angle": args.angle, "normalised": args.normalised}
    print(explain.table(*box, **how))
    if args.out:
        figure = explain.draw(*box, **how)
        try:
            figure.savefig(args.out, dpi=110)
        except ValueError as error:  # an ending that matplotlib does not know
            raise MXNetError(f"--out {args.out}: {error}") from None
        print(f"drawn to {args.out}")
