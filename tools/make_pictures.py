"""Make the pictures of docs/dialects.md, by `roiops explain`'s own function.

python tools/make_pictures.py [folder]
"""

import sys
from pathlib import Path

from roiops import explain

ROOT = Path(__file__).resolve().parent.parent

PICTURES = {
    "dialects": {"roi": (3.2, 2.4, 14.6, 11.3), "shape": (7, 9), "spatial_scale": 0.5, "columns": 4},
    "three_ways": {
        "roi": (3.2, 2.4, 14.6, 11.3),
        "shape": (7, 9),
        "spatial_scale": 0.5,
        "names": ["ROIPooling/mxnet", "ROIAlign/mmcv", "ROIAlign/mmcv/aligned"],
    },
    "border": {
        "roi": (-3.6, 3.0, 7.0, 15.0),
        "shape": (7, 9),
        "spatial_scale": 0.5,
        "sampling_ratio": 2,
        "names": ["ROIPooling/mxnet", "ROIAlign/mmcv/aligned", "ROIAlign/mxnet/max"],
    },
    "tiny": {
        "roi": (4.1, 4.1, 5.2, 5.2),
        "shape": (5, 6),
        "spatial_scale": 0.5,
        "sampling_ratio": 2,
        "names": ["ROIPooling/mxnet", "ROIPooling/mmcv", "ROIAlign/mmcv", "ROIAlign/mmcv/aligned"],
        "columns": 4,
    },
}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    for name, options in PICTURES.items():
        # Without the version of matplotlib inside, the same picture is the same file.
        explain.draw(**options).savefig(folder / f"{name}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
