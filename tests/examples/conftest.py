"""The examples are a package beside the library's; here it is made importable."""

import sys
from pathlib import Path

import numba
import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
sys.path.insert(0, str(EXAMPLES))

pytest.importorskip("PIL", reason="the examples read pictures with Pillow")


@pytest.fixture(autouse=True)
def one_thread():
    """Tiny networks spend their time in starting threads, above all beside other test processes."""
    before = numba.get_num_threads()
    numba.set_num_threads(1)
    yield
    numba.set_num_threads(before)


@pytest.fixture(scope="session")
def shapes(tmp_path_factory):
    """A small generated data set."""
    from rcnn.data.shapes import write_dataset

    root = tmp_path_factory.mktemp("shapes")
    write_dataset(root, {"train": 10, "test": 4}, seed=5, size=(96, 64))
    return root


@pytest.fixture
def load_config(shapes):
    """The committed configuration of a detector, cut down so that training takes a second."""
    from rcnn import config

    def load(name="shapes_faster_rcnn", *overrides):
        small = [
            f"data.root={shapes}",
            "data.short_side=64",
            "training.batch_images=2",
            "training.epochs=2",
            "training.warmup_steps=2",
            "proposals.train_after_nms=20",
            "proposals.test_after_nms=20",
            "targets.rois_per_image=8",
        ]
        return config.load(EXAMPLES / "rcnn" / "configs" / f"{name}.yaml", [*small, *overrides])

    return load
