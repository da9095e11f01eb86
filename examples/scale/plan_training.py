"""How long a training step takes here, and what to expect of it on 1 to 64 ranks and 1 to 100 Gbit/s.

  python plan_training.py ../rcnn/configs/shapes_faster_rcnn.yaml
  python plan_training.py ../rcnn/configs/voc_vgg16.yaml --set network.backbone=resnet50 --steps 4
  python plan_training.py CONFIG --measure 2      # also: two ranks against one, in turns, on this machine

Pictures are generated, and brought to the size that the configuration asks for. A rank has one thread unless
--threads says otherwise. The formula is on the page docs/scale.md.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "examples")]

RANKS = (1, 2, 4, 8, 16, 32, 64)
GBITS = (1, 10, 100)


# -- the model -------------------------------------------------------------------------------------------


def expected_step(profile: dict, ranks: int, bytes_per_second: float, latency: float) -> float:
    """Seconds of a step: each bucket travels when it is ready and the one before it is through.

    Parameters
    ----------
    profile : dict
        ``compute``, the seconds until backward is done; ``update``, those of the optimizer; ``rest``, those
        of reading the batch, its targets and the losses; ``buckets``,
        pairs of the seconds at which a bucket of gradients is ready and its bytes; ``adds``, the bytes that a
        rank adds up in a second.
    latency : float
        Seconds until the first byte of a message arrives.
    """
    network = 0.0
    for ready, size in profile["buckets"] if ranks > 1 else ():
        part = (ranks - 1) / ranks * size
        travel = 2 * (ranks - 1) * latency + 2 * part / bytes_per_second + part / profile["adds"]
        network = max(network, ready) + travel
    return max(profile["compute"], network) + profile["update"] + profile["rest"]


def print_table(profile: dict, batch: int, latency: float) -> None:
    alone = expected_step(profile, 1, 1, latency)
    print(f"\nexpected, each rank on a machine of its own, latency {latency * 1e6:.0f} us:")
    print("ms a step | pictures/s | of N times one")
    print("ranks" + "".join(f"{f'{gbit} Gbit/s':>28}" for gbit in GBITS))
    for ranks in RANKS:
        cells = []
        for gbit in GBITS:
            step = expected_step(profile, ranks, gbit * 1e9 / 8, latency)
            cells.append(f"{1000 * step:9.1f} |{ranks * batch / step:8.4g} |{100 * alone / step:4.0f} %")
        print(f"{ranks:5}" + "".join(f"{cell:>28}" for cell in cells))


# -- what a rank measures --------------------------------------------------------------------------------


def make_trainer(options, store):
    """The example's trainer on generated pictures."""
    from rcnn.config import load
    from rcnn.data import read_dataset
    from rcnn.data.shapes import CLASSES
    from rcnn.trainer import Trainer

    settings = [
        f"data.root={options.data}",
        "data.format=voc",
        "data.train_split=train",
        f"data.classes={json.dumps(list(CLASSES))}",
        "training.pretrained=''",
        "training.warmup_steps=100",
        *options.set,
    ]
    config = load(options.config, settings)
    return Trainer(config, read_dataset(config.data, "train"), options.data, store=store)


def measure_speed(options) -> None:
    """Pictures per second of one rank, of all side by side, and of all in step; printed by rank 0.

    Runs in every rank. The three take turns, a few steps each, in the same processes, so that a processor
    that is slower for a while is so for all three. Side by side, every rank trains for itself and nothing is
    sent: more than that the machine does not give.
    """
    import roiops as mx

    store = mx.kv.create("dist_sync")
    alone, in_step = make_trainer(options, None), make_trainer(options, store)

    def all_here() -> None:
        request = store.comm.Ibarrier()
        while not request.Test():
            time.sleep(0.0005)  # MPI's own wait takes the processor from the rank that works

    def speed(trainer, ranks, steps) -> float:
        all_here()
        start = time.perf_counter()
        if store.rank < ranks:
            for _ in range(steps):
                if trainer.loader.position == len(trainer.loader):
                    trainer.loader.start(trainer.loader.epoch + 1)
                trainer.train_step()
        all_here()
        return steps * trainer.loader.batch_size * ranks / (time.perf_counter() - start)

    cases = {
        "one": (alone, 1),
        "side by side": (alone, store.num_workers),
        "in step": (in_step, store.num_workers),
    }
    for case in cases.values():
        speed(*case, options.warm)
    rounds = [
        {name: speed(*case, options.steps) for name, case in cases.items()} for _ in range(options.rounds)
    ]
    if store.rank == 0:
        print(json.dumps(rounds))


def measure_profile(options) -> None:
    """Where the time of a step goes on one rank, and when its gradients are ready."""
    import numpy as np
    from rcnn.symbol import OUTPUTS
    from rcnn.trainer import losses

    import roiops as mx
    from roiops.training import mpi

    trainer = make_trainer(options, None)
    module, loader = trainer.module, trainer.loader
    steps, weights = [], {name: array.shape for name, array in module.get_params()[0].items()}
    loader.start(0)
    for _ in range(options.warm + options.steps):
        if loader.position == len(loader):
            loader.start(loader.epoch + 1)
        began = time.perf_counter()
        batch = loader.next()
        finished: list = []

        def note(names, finished=finished):
            finished.extend((name, time.perf_counter()) for name in names if name in weights)

        start = time.perf_counter()
        module.forward(batch, is_train=True)
        for executor in module._exec_group.execs:
            executor.set_gradient_callback(note)
        module.backward()
        computed = time.perf_counter()
        module.update()
        updated = time.perf_counter()
        outputs = [each.asnumpy() for each in module.get_outputs()]
        losses(trainer.config, dict(zip(OUTPUTS, outputs, strict=True)), batch.label[0])
        rest = start - began + time.perf_counter() - updated
        times = [(name, at - start) for name, at in finished]
        steps.append((computed - start, updated - computed, times, rest))
    steps = steps[options.warm :]
    compute = statistics.median(step[0] for step in steps)
    ready = {name: statistics.median(dict(step[2])[name] for step in steps) for name, _ in steps[0][2]}
    values = np.ones(1 << 20, np.float32)
    start = time.perf_counter()
    for _ in range(20):
        values += values
    adds = 20 * values.nbytes / (time.perf_counter() - start)
    size = mpi.bucket_bytes_for(sum(4 * int(np.prod(weights[name])) for name in ready))
    buckets, waiting = [], 0
    for name, at in sorted(ready.items(), key=lambda item: item[1]):
        waiting += 4 * int(np.prod(weights[name]))
        while waiting >= size:
            buckets.append((at, size))
            waiting -= size
    if waiting:
        buckets.append((max(ready.values()), waiting))
    profile = {
        "compute": compute,
        "update": statistics.median(step[1] for step in steps),
        "rest": statistics.median(step[3] for step in steps),
        "buckets": buckets,
        "adds": adds,
        "batch": loader.batch_size,
        "version": mx.__version__,
    }
    print(json.dumps(profile))


# -- the command -----------------------------------------------------------------------------------------


def launch(options, folder, kind: str, ranks: int = 1):
    """What a run of this script with so many ranks prints."""
    command = [sys.executable, __file__, options.config, "--role", kind, "--data", folder]
    command += ["--steps", str(options.steps), "--warm", str(options.warm), "--rounds", str(options.rounds)]
    command += [word for each in options.set for word in ("--set", each)]
    if kind == "speed":
        mpiexec = Path(sys.executable).parent / "mpiexec"
        command = [str(mpiexec) if mpiexec.exists() else "mpiexec", "-n", str(ranks), *command]
    environment = {**os.environ, "NUMBA_NUM_THREADS": str(options.threads)}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def print_speeds(rounds: list[dict], ranks: int) -> None:
    print(
        f"\nmeasured here, {len(rounds)} rounds of all three in turns: pictures/s | of one rank, each round"
    )
    for name, words in {
        "one": "one rank",
        "side by side": f"{ranks} ranks, nothing sent",
        "in step": f"{ranks} ranks in step",
    }.items():
        speeds = statistics.median(each[name] for each in rounds)
        ratios = [each[name] / each["one"] for each in rounds]
        each = ", ".join(f"{ratio:.2f}" for ratio in sorted(ratios))
        print(f"{words:24}{speeds:8.4g} | {statistics.median(ratios):.2f} times ({each})")


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("config", help="a configuration of examples/rcnn")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--steps", type=int, default=20, help="timed steps, each time (default: %(default)s)")
    parser.add_argument("--warm", type=int, default=3, help="steps before them (default: %(default)s)")
    parser.add_argument("--threads", type=int, default=1, help="of a rank (default: %(default)s)")
    parser.add_argument(
        "--latency", type=float, default=25, help="of a message, in us (default: %(default)s)"
    )
    parser.add_argument("--measure", type=int, metavar="N", help="also time one rank and N, here")
    parser.add_argument("--rounds", type=int, default=3, help="of --measure (default: %(default)s)")
    parser.add_argument("--role", help=argparse.SUPPRESS)
    parser.add_argument("--data", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.role:
        {"speed": measure_speed, "profile": measure_profile}[options.role](options)
        return 0
    from rcnn.data.shapes import write_dataset

    with tempfile.TemporaryDirectory() as folder:
        write_dataset(folder, {"train": 64}, seed=3)
        profile = launch(options, folder, "profile")
        size = sum(size for _, size in profile["buckets"])
        early = sum(size for ready, size in profile["buckets"] if ready < 0.9 * profile["compute"])
        print(
            f"one rank, {options.threads} thread(s), {profile['batch']} picture(s) a step: "
            f"forward and backward {1000 * profile['compute']:.1f} ms, "
            f"update {1000 * profile['update']:.1f} ms, batch and losses {1000 * profile['rest']:.1f} ms; "
            f"{size / 2**20:.1f} MiB of gradients in {len(profile['buckets'])} buckets, "
            f"{100 * early / size:.0f} % of them ready in the first 90 % of that time"
        )
        print_table(profile, profile["batch"], options.latency * 1e-6)
        if options.measure:
            print_speeds(launch(options, folder, "speed", options.measure), options.measure)
    return 0


if __name__ == "__main__":
    sys.exit(main())
