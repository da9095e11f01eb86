"""Training step by step, with checkpoints from which it goes on exactly."""

import json
import os
import re
import shutil
import signal
import time
from pathlib import Path

import numpy as np

import roiops as mx

from .config import Config, save
from .data import TrainLoader
from .symbol import OUTPUTS, backbone_of, train_symbol

__all__ = ["LOSSES", "OtherRankFailed", "Trainer", "agreed", "losses"]

#: The parts of the loss, in the order of the columns of ``Trainer.history``.
LOSSES = ("rpn_cls", "rpn_box", "cls", "box")


def losses(config: Config, outputs: dict, rpn_label) -> list[float]:
    """The four parts of the loss, from the outputs of the training graph."""
    images = config.training.batch_images
    prob = outputs["rpn_cls_prob"].reshape(images, 2, -1)
    label = np.asarray(rpn_label, np.int64).reshape(images, -1)
    image, place = np.nonzero(label >= 0)
    rpn = -np.log(np.maximum(prob[image, label[image, place], place], 1e-10)).mean()
    chosen = outputs["cls_prob"][np.arange(len(outputs["label"])), outputs["label"].astype(np.int64)]
    box_scales = (config.targets.anchors_per_image * images, config.targets.rois_per_image * images)
    boxes = (
        outputs[name].sum() / count
        for name, count in zip(("rpn_bbox_loss", "bbox_loss"), box_scales, strict=True)
    )
    rpn_box, box = boxes
    return [float(v) for v in (rpn, rpn_box, -np.log(np.maximum(chosen, 1e-10)).mean(), box)]


class OtherRankFailed(RuntimeError):
    """Another process of the training cannot go on, and has said why."""


def agreed(store, work):
    """What ``work`` returns, once it has done so in every process; else an error in all of them."""
    value, error = None, None
    try:
        value = work()
    except (OSError, ValueError, mx.MXNetError) as raised:
        error = raised
    every = store.comm.allgather(None if error is None else str(error)) if store else [error]
    if error is not None:
        raise error
    for rank, text in enumerate(every):
        if text is not None:
            raise OtherRankFailed(f"rank {rank}: {text}")
    return value


class _ShiftedSchedule(mx.lr_scheduler.LRScheduler):
    """A schedule in which the step now is not the number of updates so far."""

    offset = 0

    def __init__(self, schedule):
        super().__init__(schedule.base_lr)
        self._schedule = schedule

    def __call__(self, num_update):
        return self._schedule(num_update + self.offset)


class Trainer:
    """A training run in a folder.

    Several processes that ``mpiexec`` started train together when each has a ``store``. Every one of them
    looks at its share of each step's images; they all keep the same weights. The first one writes the files,
    which all must be able to read.

    Parameters
    ----------
    config : Config
        The detector and how it learns.
    records : list of Record
        What it learns from.
    folder : str or Path
        Where checkpoints and the model go.
    context : Context, optional
        Where it runs.
    store : KVStore, optional
        ``mx.kv.create("dist_sync")``, to train in several processes.

    Attributes
    ----------
    history : list of lists of float
        The parts of the loss at each step, the mean of all processes.
    step : int
        How many steps have been done.
    """

    def __init__(self, config: Config, records, folder, context=None, store=None):
        self.config, self.folder = config, Path(folder)
        self.store = store
        self.rank, self.ranks = (store.rank, store.num_workers) if store else (0, 1)
        self.history: list[list[float]] = []
        self.step = 0
        #: Time spent in steps: by the clock, and of all processor cores together.
        self.seconds = self.cpu_seconds = 0.0
        symbol = train_symbol(config)
        stride = backbone_of(config).stride
        self.loader = TrainLoader(records, config, stride, _map_size(config), self.rank, self.ranks)
        fixed = [
            name
            for name in symbol.list_arguments()
            if any(re.match(pattern, name) for pattern in config.network.fixed)
        ]
        names = (TrainLoader.data_names, TrainLoader.label_names)
        self.module = mx.mod.Module(symbol, *names, context=context, fixed_param_names=fixed)
        self.module.bind(self.loader.provide_data, self.loader.provide_label)
        self._seed()
        self._init_params()
        self.module.init_optimizer(
            kvstore=store or "local",
            optimizer=config.training.optimizer,
            optimizer_params=self._optimizer_params(),
        )

    @property
    def total_steps(self) -> int:
        return self.config.training.epochs * len(self.loader)

    def _seed(self) -> None:
        """Random numbers that differ from process to process."""
        mx.random.seed(self.config.training.seed + 1_000_003 * self.rank)

    def _init_params(self) -> None:
        heads = mx.init.Mixed(
            [".*bbox.*", "rpn_.*|cls_score.*|rfcn_.*", ".*"],
            [mx.init.Normal(0.001), mx.init.Normal(0.01), mx.init.Xavier("gaussian", "in", 2)],
        )
        path = self.config.training.pretrained
        if not path:
            self.module.init_params(heads)
            return
        known = mx.nd.load(path)
        self.module.init_params(mx.init.Load(known, default_init=heads))

    def _optimizer_params(self) -> dict:
        training, steps = self.config.training, len(self.loader)
        rate, warmup = training.learning_rate, {"warmup_steps": training.warmup_steps}
        if training.schedule == "cosine":
            total = max(self.total_steps, training.warmup_steps + 1)
            schedule = mx.lr_scheduler.CosineScheduler(total, rate, rate / 100, **warmup)
        else:
            # Without decay, one fall that is never reached.
            falls = [epoch * steps for epoch in training.decay_epochs] or [self.total_steps + 1]
            schedule = mx.lr_scheduler.MultiFactorScheduler(falls, 0.1, rate, **warmup)
        self._schedule = _ShiftedSchedule(schedule)
        params = {
            "learning_rate": rate,
            "lr_scheduler": self._schedule,
            "wd": training.weight_decay,
            "rescale_grad": 1 / self.ranks,  # the losses are means already
            "clip_gradient": training.clip_gradient or None,
        }
        if training.optimizer == "sgd":
            params["momentum"] = 0.9
        return params

    # -- running --------------------------------------------------------------------------------------

    def run(self, report=lambda trainer: None, save_every=1) -> bool:
        """Train to the end; True if it got there, False if Ctrl-C stopped it.

        Parameters
        ----------
        report : callable
            Called with the trainer after every step.
        save_every : int
            Epochs between checkpoints.
        """
        with _StopRequest() as stop:
            while self.step < self.total_steps:
                epoch, position = divmod(self.step, len(self.loader))
                if position == 0 or position != self.loader.position or epoch != self.loader.epoch:
                    self.loader.start(epoch, position)
                stopping = self.train_step(lambda: stop.wanted)
                report(self)
                if self.ranks == 1:  # nobody else has to hear of it first
                    stopping = stop.wanted
                if self.step % (save_every * len(self.loader)) == 0 or stopping:
                    self.save_checkpoint()
                if stopping and self.step < self.total_steps:
                    return False
        self.save_checkpoint()
        self.save_model()
        return True

    def train_step(self, stop_wanted=lambda: False) -> bool:
        """Learn from the loader's next batch. True if ``stop_wanted`` is so in any process."""
        start, cpu_start = time.perf_counter(), time.process_time()
        batch = self.loader.next()
        self.module.forward_backward(batch)
        outputs = [each.asnumpy() for each in self.module.get_outputs()]
        parts = losses(self.config, dict(zip(OUTPUTS, outputs, strict=True)), batch.label[0])
        # These numbers travel beside the gradients, for which `update` waits: nobody waits twice in a step.
        every = self._numbers_from_all([*parts, stop_wanted()])
        self.module.update()
        *columns, stops = zip(*every(), strict=True)
        parts = [sum(column) / self.ranks for column in columns]
        if not np.all(np.isfinite(parts)):
            raise FloatingPointError(
                f"step {self.step}: the loss is {dict(zip(LOSSES, parts, strict=True))}; "
                "a lower learning rate or a longer warm-up may help"
            )
        self.history.append(parts)
        self.step += 1
        self.seconds += time.perf_counter() - start
        self.cpu_seconds += time.process_time() - cpu_start
        return any(stops)

    # -- other processes ------------------------------------------------------------------------------

    def _from_all(self, value) -> list:
        """What each process gives here, by rank."""
        return self.store.comm.allgather(value) if self.ranks > 1 else [value]

    def _numbers_from_all(self, numbers: list):
        """Send numbers to all processes. Returns at once, with a function that gives those of each rank."""
        if self.ranks == 1:
            return lambda: [numbers]
        own = np.array(numbers, np.float64)
        found = np.empty((self.ranks, len(own)))
        request = self.store.comm.Iallgather(own, found)

        def wait():
            request.Wait()
            return found.tolist()

        return wait

    def _on_first(self, work) -> None:
        """Let the first process do this; if it fails there, all end."""
        if self.ranks == 1:
            work()
            return
        error = None
        if self.rank == 0:
            try:
                work()
            except Exception as raised:  # the others must hear of whatever it is
                error = raised
        if self.store.comm.bcast(error is not None, root=0):
            raise error or OtherRankFailed("the first process could not write its files")

    # -- files ----------------------------------------------------------------------------------------

    def save_checkpoint(self) -> None:
        """Write all that :meth:`resume` needs to ``checkpoint/``, whose old files stay until then."""
        # Random states differ from process to process, everything else is the same in all.
        state = {name: getattr(self, name) for name in ("history", "seconds", "cpu_seconds")}
        epoch, position = divmod(self.step, len(self.loader))
        images = position * self.loader.batch_size * self.ranks
        state.update(epoch=epoch, images=images, updates=self.step - self._schedule.offset)
        state["random"] = self._from_all(mx.random.get_state())
        self._on_first(lambda: self._write_checkpoint(state))

    def _write_checkpoint(self, state) -> None:
        new, old, current = (self.folder / f"checkpoint{end}" for end in (".new", ".old", ""))
        for stale in (new, old):
            shutil.rmtree(stale, ignore_errors=True)
        new.mkdir(parents=True)
        self.module.save_params(str(new / "parameters.params"))
        self.module.save_optimizer_states(str(new / "optimizer.states"))
        save(self.config, new / "config.yaml")
        (new / "progress.json").write_text(json.dumps(state))
        if current.exists():
            os.replace(current, old)
        os.replace(new, current)
        shutil.rmtree(old, ignore_errors=True)

    def resume(self) -> None:
        """Go on from ``checkpoint/``: with as many processes, with the very numbers of an uninterrupted run.

        With another number of processes it goes on at the same image, or up to a step's images before it.
        """
        folder, state = agreed(self.store, self._read_progress)
        self.module.load_params(str(folder / "parameters.params"))
        self.module.load_optimizer_states(str(folder / "optimizer.states"))
        for name in ("history", "seconds", "cpu_seconds"):
            setattr(self, name, state[name])
        position = state["images"] // (self.loader.batch_size * self.ranks)
        self.step = min(state["epoch"] * len(self.loader) + position, self.total_steps)
        self._schedule.offset = self.step - state["updates"]
        if len(state["random"]) == self.ranks:
            mx.random.set_state(state["random"][self.rank])

    def _read_progress(self):
        folder = self.folder / "checkpoint"
        if not folder.exists() and (self.folder / "checkpoint.old").exists():
            folder = self.folder / "checkpoint.old"
        try:
            return folder, json.loads((folder / "progress.json").read_text())
        except OSError as error:
            raise OSError(f"nothing to resume in {self.folder}: {error}") from None

    def save_model(self) -> None:
        """Write what detection needs: ``model.params`` in half precision, and ``config.yaml``."""
        self._on_first(self._write_model)

    def _write_model(self) -> None:
        args, aux = self.module.get_params()
        arrays = {f"arg:{name}": each.astype(np.float16) for name, each in args.items()}
        arrays.update({f"aux:{name}": each.astype(np.float16) for name, each in aux.items()})
        self.folder.mkdir(parents=True, exist_ok=True)
        mx.nd.save(str(self.folder / "model.params"), arrays)
        save(self.config, self.folder / "config.yaml")


def _map_size(config):
    """From height and width of an image to those of its feature map."""
    features = backbone_of(config).features(mx.sym.Variable("data"))
    known = {}

    def size(height, width):
        if (height, width) not in known:
            shape = features.infer_shape(data=(1, 3, height, width))[1][0]
            known[height, width] = shape[2:]
        return known[height, width]

    return size


class _StopRequest:
    """Ctrl-C asks for a stop after the step; a second one stops at once."""

    wanted = False

    def __enter__(self):
        try:
            self._before = signal.signal(signal.SIGINT, self._ask)
        except ValueError:  # not the main thread, which alone may listen
            self._before = None
        return self

    def _ask(self, number, frame):
        self.wanted = True
        signal.signal(signal.SIGINT, self._before)

    def __exit__(self, *exc):
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
