"""Write the data set of shapes and digits to disk, in both formats."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from rcnn.data.shapes import write_dataset


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", default="data/shapes", help="the folder to make (default: %(default)s)")
    parser.add_argument("--train", type=int, default=1600, help="pictures to train on (default: %(default)s)")
    parser.add_argument("--test", type=int, default=400, help="held-out pictures (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=0, help="decides all pictures (default: %(default)s)")
    options = parser.parse_args(arguments)
    write_dataset(options.out, {"train": options.train, "test": options.test}, options.seed)
    print(f"{options.train} + {options.test} pictures in {options.out}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
