"""Train a detector: losses and speed on the way, a checkpoint after each epoch and on Ctrl-C.

Run it again with ``--resume`` and it goes on as if it had never stopped, to the last bit. Without it, a
folder that holds a run is refused.

Several processes train together with ``mpiexec -n 2 python train.py CONFIG --kvstore dist_sync``: each step
then learns from ``training.batch_images`` images of each of them.
"""

import argparse
import logging
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import roiops as mx
from rcnn.config import ConfigError, load
from rcnn.data import DataError, read_dataset
from rcnn.trainer import LOSSES, OtherRankFailed, Trainer, agreed


class Progress:
    """A tqdm bar on a terminal, a line now and then elsewhere."""

    def __init__(self, trainer: Trainer, every: int):
        self.every, self.started, self.first = every, time.perf_counter(), trainer.step
        self.bar = None
        if sys.stderr.isatty():
            try:
                from tqdm import tqdm
            except ImportError:
                return
            self.bar = tqdm(total=trainer.total_steps, initial=trainer.step, unit="step", dynamic_ncols=True)

    def __call__(self, trainer: Trainer) -> None:
        recent = trainer.history[-50:]
        parts = [sum(column) / len(recent) for column in zip(*recent, strict=True)]
        took = time.perf_counter() - self.started
        images = (trainer.step - self.first) * trainer.config.training.batch_images * trainer.ranks
        speed = images / took
        text = " ".join(f"{name} {value:.3f}" for name, value in zip(LOSSES, parts, strict=True))
        if self.bar is not None:
            self.bar.set_description(f"epoch {(trainer.step - 1) // len(trainer.loader) + 1}")
            self.bar.set_postfix_str(f"{text} | {speed:.1f} images/s", refresh=False)
            self.bar.update(trainer.step - self.bar.n)
        elif trainer.step % self.every == 0 or trainer.step == trainer.total_steps:
            left = (trainer.total_steps - trainer.step) * took / (trainer.step - self.first)
            epoch = f"epoch {(trainer.step - 1) // len(trainer.loader) + 1}/{trainer.config.training.epochs}"
            print(
                f"{epoch} step {trainer.step}/{trainer.total_steps}: {text} | loss {sum(parts):.3f} | "
                f"{speed:.1f} images/s | {left:.0f} s left",
                flush=True,
            )

    def close(self) -> None:
        if self.bar is not None:
            self.bar.close()


def plot(trainer: Trainer, path) -> None:
    """Draw the parts of the loss over the steps, smoothed, to a picture."""
    import matplotlib

    matplotlib.use("Agg")
    import numpy as np
    from matplotlib import pyplot

    history = np.array(trainer.history)
    window = max(1, len(history) // 60)
    kernel = np.ones(window) / window
    figure, axes = pyplot.subplots(figsize=(8, 4.5), layout="constrained")
    names = {
        "rpn_cls": "proposals: object or not",
        "rpn_box": "proposals: boxes",
        "cls": "regions: classes",
        "box": "regions: boxes",
    }
    total = history.sum(axis=1)
    axes.plot(np.arange(1, len(total) + 1), total, color="0.85", linewidth=0.6)
    for values, label, style in [
        (total, "sum", {"color": "black", "linewidth": 2}),
        *((history[:, i], names[name], {"linewidth": 1.5}) for i, name in enumerate(LOSSES)),
    ]:
        smooth = np.convolve(values, kernel, mode="valid")
        axes.plot(np.arange(len(smooth)) + (window + 1) / 2, smooth, label=label, **style)
    for epoch in range(1, trainer.config.training.epochs):
        axes.axvline(epoch * len(trainer.loader), color="0.9", linewidth=0.8, zorder=0)
    network = trainer.config.network
    detector = {"faster_rcnn": "Faster R-CNN", "rfcn": "R-FCN"}[network.detector]
    title = f"{detector}, {network.backbone} backbone, {network.pooling}"
    axes.set(xlabel="step", ylabel="loss", title=title)
    axes.set_xlim(0, len(history))
    axes.set_ylim(0, np.percentile(total, 99) * 1.1)
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", help="a YAML file, such as configs/shapes_faster_rcnn.yaml")
    parser.add_argument("--out", default="output", help="the folder of the run (default: %(default)s)")
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="SECTION.KEY=VALUE",
        help="change the configuration, as in --set training.epochs=3; may be repeated",
    )
    parser.add_argument("--resume", action="store_true", help="go on from the checkpoint in --out")
    parser.add_argument("--gpu", type=int, metavar="N", help="train on this GPU rather than on the CPU")
    parser.add_argument(
        "--kvstore",
        default="local",
        metavar="TYPE",
        help="dist_sync to train in all processes that mpiexec started (default: %(default)s)",
    )
    parser.add_argument("--plot", action="store_true", help="draw the loss to loss.png in --out")
    parser.add_argument("--print-every", type=int, default=50, metavar="N", help="steps between lines")
    options = parser.parse_args(arguments)
    logging.basicConfig(format="%(message)s", level=logging.WARNING)
    try:
        store = mx.kv.create(options.kvstore) if options.kvstore != "local" else None
    except mx.MXNetError as error:
        print(f"train.py: {error}", file=sys.stderr)
        return 1
    is_first = store is None or store.rank == 0
    try:
        finished = train(options, store, is_first)
    except (ConfigError, DataError, OSError, FloatingPointError, OtherRankFailed) as error:
        if is_first:
            print(f"train.py: {error}", file=sys.stderr)
        return 1
    return 0 if finished else 130


def refuse_a_run(folder: Path) -> None:
    """Raise where a folder holds the files of an earlier run, which would be written over."""
    for name in ("checkpoint", "checkpoint.old", "model.params"):
        if (folder / name).exists():
            raise FileExistsError(
                f"{folder / name} is there already: --resume goes on with that run, "
                "--out names another folder"
            )


def train(options, store, is_first: bool) -> bool:
    """Train as the options say; whether it got to the end. The first process does the talking."""

    def read():
        if not options.resume:
            refuse_a_run(Path(options.out))
        config = load(options.config, options.set)
        return config, read_dataset(config.data, config.data.train_split)

    config, records = agreed(store, read)
    context = mx.cpu() if options.gpu is None else mx.gpu(options.gpu)
    trainer = Trainer(config, records, options.out, context, store)
    if options.resume:
        trainer.resume()
        if is_first:
            print(f"resuming after step {trainer.step} of {trainer.total_steps}")
    progress = Progress(trainer, options.print_every) if is_first else None
    try:
        finished = trainer.run(progress or (lambda trainer: None))
    finally:
        if progress is not None:
            progress.close()
    if not is_first:
        return finished
    if options.plot and trainer.history:
        plot(trainer, Path(options.out) / "loss.png")
        print(f"loss curve: {Path(options.out) / 'loss.png'}")
    if finished:
        times = f"{trainer.seconds:.0f} s ({trainer.cpu_seconds:.0f} s of one core)"
        print(f"model: {Path(options.out) / 'model.params'}, trained in {times}")
    else:
        print(f"stopped after step {trainer.step}; --resume goes on from there")
    return finished


if __name__ == "__main__":
    sys.exit(main())
