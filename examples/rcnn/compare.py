"""Train both detectors with both of their pooling operators, over several seeds, and tabulate the results.

It makes the data set where there is none, and leaves out runs that are done, so it can be stopped and
started again; several of them with different ``--seeds`` or ``--pooling`` may work in one folder at a time.
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
VARIANTS = (
    ("shapes_faster_rcnn", "ROIAlign"),
    ("shapes_rfcn", "PSROIAlign"),
    ("shapes_faster_rcnn", "ROIPooling"),
    ("shapes_rfcn", "PSROIPooling"),
)
TITLES = {"shapes_faster_rcnn": "Faster R-CNN", "shapes_rfcn": "R-FCN"}
EVERY_SEED = (0, 1, 2)


def script(name, *arguments) -> None:
    subprocess.run([sys.executable, str(HERE / name), *map(str, arguments)], check=True)


def run(folder: Path, config: str, pooling: str, seed: int) -> Path:
    """The file of a run's measures, made if it is not there."""
    out = folder / f"{config}-{pooling}-{seed}"
    measures = out / "measures.json"
    if measures.exists():
        return measures
    settings = (f"data.root={folder / 'data'}", f"network.pooling={pooling}", f"training.seed={seed}")
    overrides = [word for setting in settings for word in ("--set", setting)]
    resume = ["--resume"] if (out / "checkpoint").exists() else []
    path = HERE / "configs" / f"{config}.yaml"
    script("train.py", path, "--out", out, "--plot", *resume, *overrides)
    script("test.py", out, "--json", measures)
    return measures


def table(folder: Path, before=()) -> list[dict]:
    """The measures of all finished runs: those in the folder, and of others the rows of ``before``."""
    known = {(row["detector"], row["pooling"], row["seed"]): row for row in before}
    rows = []
    for config, pooling in VARIANTS:
        for seed in EVERY_SEED:
            out = folder / f"{config}-{pooling}-{seed}"
            if (out / "measures.json").exists():
                measures = json.loads((out / "measures.json").read_text())
                progress = json.loads((out / "checkpoint" / "progress.json").read_text())
                row = {"detector": TITLES[config], "pooling": pooling, "seed": seed}
                row.update({key: measures[key] for key in ("images", "mAP@0.5", "mAP@0.75")})
                rows.append({**row, "core_minutes": round(progress["cpu_seconds"] / 60, 1)})
            elif (TITLES[config], pooling, seed) in known:
                rows.append(known[TITLES[config], pooling, seed])
    return rows


def markdown(rows: list[dict]) -> str:
    """Mean over the seeds, and the least, for each detector and operator."""
    lines = [
        "| detector | pooling | seeds | mAP@0.5 | worst | mAP@0.75 | worst | minutes of one core |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for config, pooling in VARIANTS:
        some = [row for row in rows if (row["detector"], row["pooling"]) == (TITLES[config], pooling)]
        if some:
            cells = [TITLES[config], pooling, ", ".join(str(row["seed"]) for row in some)]
            for key in ("mAP@0.5", "mAP@0.75"):
                values = [row[key] for row in some]
                cells += [f"{sum(values) / len(values):.3f}", f"{min(values):.3f}"]
            minutes = [row["core_minutes"] for row in some]
            cells.append(f"{min(minutes):.1f} to {max(minutes):.1f}")
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main(arguments=None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--out", default="comparison", help="the folder of the runs (default: %(default)s)")
    parser.add_argument("--seeds", type=int, nargs="*", default=EVERY_SEED, choices=EVERY_SEED)
    poolings = [pooling for _, pooling in VARIANTS]
    parser.add_argument("--pooling", nargs="*", default=poolings, choices=poolings, help="(default: all)")
    parser.add_argument("--results", help="add to results.json and results.md in this folder")
    options = parser.parse_args(arguments)
    folder = Path(options.out)
    if not (folder / "data" / "annotations" / "test.json").exists():
        script("generate.py", "--out", folder / "data")
    for config, pooling in VARIANTS:
        if pooling in options.pooling:
            for seed in options.seeds:
                run(folder, config, pooling, seed)
    results = Path(options.results) if options.results else None
    recorded = results / "results.json" if results else None
    rows = table(folder, json.loads(recorded.read_text()) if recorded and recorded.exists() else ())
    print(markdown(rows))
    if results:
        results.mkdir(parents=True, exist_ok=True)
        recorded.write_text(json.dumps(rows, indent=1) + "\n")
        (results / "results.md").write_text(markdown(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
