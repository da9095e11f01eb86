"""Make the pictures of docs/dialects.md, by `roiops explain`'s own function.

python tools/make_pictures.py [folder]
"""

import sys
from pathlib import Path

from roiops import explain

ROOT = Path(__file__).resolve().parent.parent

PICTURES = {
    "dialects": {
        "roi": (3.2, 2.4, 14.6, 11.3),
        "shape": (7, 9),
        "spatial_scale": 0.5,
        "angle": 20,
    },
    "three_ways": {
        "roi": (3.2, 2.4, 14.6, 11.3),
        "shape": (7, 9),
        "spatial_scale": 0.5,
        "names": ["ROIPooling/mxnet", "ROIAlign/mmcv", "ROIAlign/mmcv/aligned"],
        "titles": [
            "ROIPooling of Caffe and MXNet:\nwhole pixels",
            "ROIAlign of torchvision:\nbilinear samples",
            "ROIAlign of torchvision, aligned:\nthe same, half a pixel up and left",
        ],
    },
    "border": {
        "roi": (-3.6, 3.0, 7.0, 15.0),
        "shape": (7, 9),
        "spatial_scale": 0.5,
        "sampling_ratio": 2,
        "names": ["ROIPooling/mxnet", "ROIAlign/mmcv/aligned", "ROIAlign/mxnet/max"],
        "titles": [
            "ROIPooling of Caffe and MXNet:\nbins are cut off at the edge of the map",
            "ROIAlign of torchvision, aligned: samples\nmore than a pixel outside (x) are zeros",
            "the early ROIAlign with maxima:\nbins are cut off, then read at every pixel",
        ],
    },
    "tiny": {
        "roi": (4.1, 4.1, 5.2, 5.2),
        "shape": (5, 6),
        "spatial_scale": 0.5,
        "sampling_ratio": 2,
        "names": ["ROIPooling/mxnet", "ROIPooling/mmcv", "ROIAlign/mmcv", "ROIAlign/mmcv/aligned"],
        "columns": 2,
        "titles": [
            "ROIPooling of Caffe and MXNet:\nthe box grows to two whole pixels",
            "ROIPooling of mmcv:\nfour bins of up to four pixels overlap",
            "ROIAlign of torchvision:\nthe box is made one pixel wide",
            "ROIAlign of torchvision, aligned:\nthe box as it is, half a pixel wide",
        ],
    },
}


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "docs" / "images"
    folder.mkdir(parents=True, exist_ok=True)
    for name, options in PICTURES.items():
        # Without the version of matplotlib inside, the same picture is the same file.
        titles = options.pop("titles", ())
        figure = explain.draw(**options)
        for panel, title in zip(figure.axes, titles, strict=False):
            panel.set_title(title, fontsize=10)
        if titles:  # room for titles of two lines in each row of panels
            width, height = figure.get_size_inches()
            figure.set_size_inches(width, height + 0.5 * -(-len(titles) // options.get("columns", 3)))
        figure.savefig(folder / f"{name}.png", dpi=110, metadata={"Software": None})


if __name__ == "__main__":
    main()
