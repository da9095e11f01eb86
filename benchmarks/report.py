"""docs/benchmarks.md, its plots, and tables of README and docs/performance.md, from benchmarks/results.

Measures nothing.
"""

import json
from pathlib import Path
from statistics import geometric_mean

import operators
import ways
import zoo
import zoo_engines
from machine import MAIN_RESULTS
from roi_start import table_of_bars
from roi_workloads import WORKLOADS

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
BEGIN, END = "<!-- begin: made by benchmarks/report.py -->", "<!-- end: made by benchmarks/report.py -->"

#: Results of benchmarks/zoo.py, and what is particular in them.
ZOOS = {"zoo": "", "zoo_avx2": " on AVX2"}
#: Folders of results of other processors (``BENCHMARK_RESULTS``), and what these are.
OTHERS = {"zen5": "AMD's Zen 5"}
KINDS = {
    "align": "bilinear",
    "pool": "integer bins",
    "moved": "deformed and rotated",
}
#: The peers: their names and versions, and a colour for each.
VERSIONS = {
    "torchvision": "torchvision 0.24.1",
    "mxnet": "MXNet 1.9.1",
    "onnxruntime": "onnxruntime",
    "mmcv": "mmcv 2.2.0",
    "paddle": "Paddle 3.3.1",
    "tensorflow": "TensorFlow 2.21.0",
}
COLOURS = {
    "torchvision": "#e07b39",
    "mxnet": "#5b8c5a",
    "onnxruntime": "#9467bd",
    "mmcv": "#2a6fbb",
    "paddle": "#c44e8a",
    "tensorflow": "#8c8c2f",
}
#: How a ratio of whole networks was formed.
RATIO_WORDS = (
    "Times as fast is the median over rounds of MXNet's time by ours, in two passes in turn; that of the two "
    "medians in milliseconds may differ where the machine was busy."
)
ZOO_WORDS = zoo.RATIO_WORDS + " Of a group it is the geometric mean; the least is of one model."


def read(name: str) -> dict | None:
    path = MAIN_RESULTS / f"{name}.json"
    return json.loads(path.read_text()) if path.exists() else None


def names_of_peers(rows) -> str:
    """The peers of these rows, with their versions."""
    found = [words for name, words in VERSIONS.items() if any(name in peers_of(row) for row in rows)]
    return ", ".join(found[:-1]) + " and " + found[-1]


def peers_of(row) -> dict[str, float]:
    """The times of the peers that compute the same, which an earlier run did not ask of all."""
    unlike = ("roiops", *row.get("unlike", ()))
    return {name: value for name, value in row["milliseconds"].items() if name not in unlike}


def ratio(row) -> float | None:
    """How many times as fast as the fastest peer."""
    others = peers_of(row)
    return min(others.values()) / row["milliseconds"]["roiops"] if others else None


def operators_of(rows) -> list[str]:
    """Their names, in the order of the rows."""
    return list(dict.fromkeys(row["operator"].split()[0].rstrip(",") for row in rows if ratio(row)))


def roi_summary(rows) -> list[str]:
    lines = [
        "| | direction | threads | geometric mean | least | rows |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for kind, words in KINDS.items():
        for direction in ("forward", "backward"):
            for threads in sorted({row["threads"] for row in rows}):
                found = [
                    r
                    for row in rows
                    if (row["kind"], row["direction"], row["threads"]) == (kind, direction, threads)
                    and (r := ratio(row))
                ]
                if found:
                    names = ", ".join(operators_of(row for row in rows if row["kind"] == kind))
                    numbers = f"{geometric_mean(found):.1f}x | {min(found):.1f}x | {len(found)}"
                    lines.append(f"| {words} ({names}) | {direction} | {threads} | {numbers} |")
    return lines


def rows_of_note(rows) -> list[str]:
    """The rows in which a peer is ahead, and those that memory alone would keep from being much faster."""
    lines = []
    for row in rows:
        found, reached = ratio(row), row["limit"] / row["milliseconds"]["roiops"]
        if found and (found < 1 or reached > 0.5):
            what = f"{row['workload']} | {row['operator']} | {row['direction']} | {row['threads']}"
            lines.append(f"| {what} | {found:.2f}x | {reached:.0%} |")
    head = ["| workload | operator | direction | threads | times as fast | of the limit |"]
    return [*head, "|---|---|---|---:|---:|---:|", *lines] if lines else []


def bars_of_start(start) -> list[str]:
    if "bars" not in start:
        return []
    about = (
        f"`python benchmarks/roi_start.py --bars`, {start['machine of bars']}. First calls in a process of "
        "their own, each beside our goal for it, on a quiet machine:"
    )
    return [about, "\n".join(table_of_bars(start["bars"]))]


def start_tables(start) -> str:
    first = ["| operator | threads | first call, cold | the rest, cold | first call, cached |"]
    first.append("|---|---:|---:|---:|---:|")
    first += [
        f"| {row['operator']} | {row['threads']} | {row['cold']:.1f} s | {row['rest']:.1f} s "
        f"| {row['cached']:.2f} s |"
        for row in start["first calls, seconds"]
    ]
    small = ["| operator | threads | median | least |", "|---|---:|---:|---:|"]
    small += [
        f"| {row['operator']} | {row['threads']} | {row['median']:.0f} us | {row['least']:.0f} us |"
        for row in start["small calls, microseconds"]
    ]
    return "\n".join(
        [*first, "", "One ROI on a 1x256x50x68 map, the call of `roiops.nd` included:", "", *small]
    )


def network_table(rows) -> list[str]:
    lines = [
        "| network | threads | roiops | MXNet 1.9.1 | times as fast |",
        "|---|---:|---:|---:|---:|",
    ]
    lines += [
        f"| {row['network']} | {row['threads']} | {1e3 * row['roiops_s']:.0f} ms "
        f"| {1e3 * row['mxnet_s']:.0f} ms "
        f"| {row['ratio']:.2f} |"
        for row in rows
    ]
    return lines


def draw_bars(rows, direction: str, threads: int, target: Path) -> None:
    """Times as fast as the fastest peer: a bar from 1 for each operator, a panel for each workload."""
    from matplotlib.figure import Figure

    rows = [r for r in rows if r["direction"] == direction and r["threads"] == threads and peers_of(r)]
    workloads = list(dict.fromkeys(row["workload"] for row in rows))
    shown = [ratio(row) for row in rows]
    low, longest = min(1 / 1.1, *(each / 1.3 for each in shown)), max(2, *shown)
    high = longest * (longest / low) ** 0.9  # the text beside the longest bar takes a little less than half
    heights = [sum(row["workload"] == w for row in rows) for w in workloads]
    figure = Figure(figsize=(9, 0.34 * sum(heights) + 0.75 * len(workloads) + 0.5), layout="constrained")
    panels = figure.subplots(len(workloads), 1, squeeze=False, height_ratios=[n + 1.2 for n in heights])
    for panel, workload in zip(panels.flat, workloads, strict=True):
        chosen = [row for row in rows if row["workload"] == workload]
        for i, row in enumerate(chosen):
            found, others = ratio(row), peers_of(row)
            fastest = min(others, key=others.get)
            panel.barh(i, found - 1, left=1, height=0.62, color=COLOURS[fastest])
            times = f"{_ms(row['milliseconds']['roiops'])} against {_ms(others[fastest])} ms"
            text = f"  {found:.1f}x  {VERSIONS[fastest].split()[0]}, {times}"
            panel.text(max(found, 1), i, text, va="center", fontsize=9)
        panel.set_yticks(range(len(chosen)), [row["operator"] for row in chosen], fontsize=9.5)
        panel.invert_yaxis()
        panel.set_xscale("log")
        panel.set_xlim(low, high)
        ticks = [t for t in (0.5, 1, 2, 5, 10, 20, 50, 100, 200, 500) if low <= t <= 2 * longest]
        panel.set_xticks(ticks, [f"{t:g}x" for t in ticks])
        panel.set_xticks([], minor=True)
        panel.axvline(1, color="#333333", lw=1)
        panel.set_title(f"{workload}: {_described(WORKLOADS[workload])}", fontsize=10, loc="left")
        panel.tick_params(axis="x", labelsize=8)
        panel.spines[["top", "right"]].set_visible(False)
    plural = "" if threads == 1 else "s"
    figure.suptitle(
        f"{direction}, {threads} thread{plural}: roiops, times as fast as the fastest peer, which is named",
        fontsize=11,
    )
    figure.savefig(target, dpi=100, metadata={"Software": None})


def _ms(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def _described(work) -> str:
    shape = "x".join(map(str, work.shape))
    small, large = work.sizes
    return f"map {shape}, {work.rois} boxes of {small} to {large} pixels, {work.pooled}x{work.pooled} bins"


def draw_scaling(rows, target: Path) -> None:
    """How the time of a call grows: a line for each operator, a panel for each of ROIs, channels, threads."""
    from matplotlib.figure import Figure

    axes_names = list(dict.fromkeys(row["axis"] for row in rows))
    figure = Figure(figsize=(3.9 * len(axes_names), 3.3), layout="constrained")
    for panel, axis in zip(figure.subplots(1, len(axes_names), squeeze=False).flat, axes_names, strict=True):
        chosen = [row for row in rows if row["axis"] == axis]
        for label in dict.fromkeys(row["operator"] for row in chosen):
            points = sorted((row["value"], row["milliseconds"]) for row in chosen if row["operator"] == label)
            panel.plot(*zip(*points, strict=True), marker="o", markersize=3, label=label)
        panel.set_xscale("log", base=2)
        panel.set_yscale("log")
        panel.set_xlabel(axis, fontsize=9)
        panel.tick_params(labelsize=7)
        panel.spines[["top", "right"]].set_visible(False)
    panel = figure.axes[0]
    panel.set_ylabel("milliseconds", fontsize=9)
    panel.legend(fontsize=7, frameon=False)
    figure.savefig(target, dpi=110, metadata={"Software": None})


def page() -> str:
    roi, start, network, executor, scaling = map(read, ("roi", "roi_start", "network", "executor", "scaling"))
    parts = [
        "# Benchmarks",
        "Made by `python benchmarks/run.py`, which sets up the peers in environments of their own and lets "
        "roiops and them take turns. ROI operators and networks are compared with the peers' outputs before "
        "they are timed. The numbers and more of them are in [benchmarks/results](../benchmarks/results). "
        "Your machine will give others; the command is the "
        "same.",
    ]
    if roi:
        workloads = dict.fromkeys(row["workload"] for row in roi["rows"])
        parts += [
            "## ROI operators",
            f"`python benchmarks/roi.py`. {roi['machine']} {' '.join(roi['notes'])}",
            "How many times as fast as the fastest peer that has the operator, of "
            f"{names_of_peers(roi['rows'])}, over the workloads {', '.join(workloads)}:",
            "\n".join(roi_summary(roi["rows"])),
            f"The table of all {len(roi['rows'])} rows, with the limit that memory sets, is "
            "[benchmarks/results/roi.md](../benchmarks/results/roi.md).",
        ]
        if notable := rows_of_note(roi["rows"]):
            parts += [
                "Rows in which a peer is ahead (below 1x), and rows that take less than twice as long as "
                "reading the inputs and writing the output once, at the bandwidth of a copy (above 50%):",
                "\n".join(notable),
            ]
        for direction in ("forward", "backward"):
            for threads in sorted({row["threads"] for row in roi["rows"]}):
                name = f"bench_roi_{direction}_{threads}.png"
                draw_bars(roi["rows"], direction, threads, DOCS / "images" / name)
                parts.append(f"![{direction}, threads: {threads}](images/{name})")
    if start:
        parts += ["## First calls and small calls", *bars_of_start(start)]
    if start and "machine" in start:
        parts += [
            f"`python benchmarks/roi_start.py`, {start['machine']}. The first call of an operator compiles "
            "it; the rest is its gradient and other kernels. A later process reads all that from disk.",
            start_tables(start),
        ]
    if scaling:
        draw_scaling(scaling["rows"], DOCS / "images" / "bench_scaling.png")
        parts += [
            "## Scaling",
            f"`python benchmarks/scaling.py`, {scaling['date']}, {scaling['machine']}. {scaling['what']}",
            "![scaling over ROIs, channels and threads](images/bench_scaling.png)",
        ]
    if network:
        parts += [
            "## Whole networks",
            f"`python benchmarks/network.py`, {network['date']}, {network['machine']}; medians of rounds "
            f"that take turns; load average {network['load']:.1f}. {RATIO_WORDS}",
            "\n".join(network_table(network["rows"])),
        ]
    for name, title in ZOOS.items():
        if models := read(name):
            parts += [
                f"## The model zoo{title}",
                f"{zoo.words(models)} {ZOO_WORDS} {zoo.words_of_runs(models)}",
                "\n".join(zoo.bars(models)),
                "\n".join(zoo.summary(models)),
                f"Model by model: [benchmarks/results/{name}.md](../benchmarks/results/{name}.md).",
            ]
    if engines := read("zoo_engines"):
        parts += [
            "## The model zoo beside today's engines",
            zoo_engines.words(engines),
            "\n".join(zoo_engines.summary(engines)),
            "Model by model: [benchmarks/results/zoo_engines.md](../benchmarks/results/zoo_engines.md).",
        ]
    parts += other_processors()
    if single := read("operators"):
        parts += [
            "## Single operators",
            f"`python benchmarks/operators.py`, {single['about']} Operators that networks have beside "
            "convolutions and ROI operators, called one by one as a script calls them.",
            "\n".join(operators.summary(single["rows"])),
            f"MXNet is ahead in: {operators.behind(single['rows'])}. All of them: "
            "[benchmarks/results/operators.md](../benchmarks/results/operators.md).",
        ]
    if executor:
        nodes = executor["microseconds_a_node"]
        parts += [
            "## The executor",
            f"`{executor['command']}`, {executor['date']}, {executor['machine']}.",
            f"A graph of {executor['nodes']:,} additions of arrays with one element; microseconds a node:",
            "\n".join(
                ["| | microseconds |", "|---|---:|", *(f"| {k} | {v:.2f} |" for k, v in nodes.items())]
            ),
        ]
    return "\n\n".join(parts) + "\n"


def readme_table() -> str:
    """What people run, beside what they run it with today, with two threads."""
    roi, models, engines = map(read, ("roi", "zoo", "zoo_engines"))
    rows = []
    for direction in ("forward", "backward"):
        chosen = [row for row in roi["rows"] if (row["direction"], row["threads"]) == (direction, 2)]
        found = {f"{row['operator']}, {row['workload']}": r for row in chosen if (r := ratio(row))}
        rows.append((f"ROI operators, {direction}", "the fastest of six libraries", found))
    when = {(roi["notes"][0][:10], roi["machine"].partition("; ")[0])}
    when |= {(each["about"]["date"], each["about"]["machine"]) for each in (models, engines)}
    machines = "; ".join(f"{machine}, {date}" for date, machine in sorted(when))
    means = "Geometric means of the others' time by ours: 2 means half the time, below 1 roiops is slower."
    about = f"{means} Two threads; {machines}. The six: {names_of_peers(roi['rows'])}."
    return "\n\n".join([table_beside([*rows, *networks_beside()]), about])


def networks_beside(folder=".") -> list[tuple]:
    """What networks are beside, and the ratios by name."""
    rows = []
    for name in ZOOS if folder in OTHERS else ["zoo"]:
        models = read(f"{folder}/{name}")
        how = f" (`zoo.py{models['about']['options']}`)" if folder in OTHERS else ""
        for group, threads, found in zoo.groups(models):
            if (group, threads) == ("all", 2):
                found = {name: row["ratio"] for name, row in found.items()}
                rows.append((f"published networks{how}", "MXNet 1.9.1", found))
    engines = read(f"{folder}/zoo_engines")
    for (engine, threads), found in zoo_engines.ratios(engines).items():
        if threads == 2:
            about = engines["about"]
            rows.append((f"published networks, {about['chosen']}", about["versions"][engine], found))
    return rows


def other_processors() -> list[str]:
    """What was measured on them: networks with two threads, and first calls."""
    parts = []
    for folder, name in OTHERS.items():
        models, start = read(f"{folder}/zoo"), read(f"{folder}/roi_start")
        parts += [
            f"## On another processor: {name}",
            f"The same commands with `BENCHMARK_RESULTS={folder}`, {models['about']['date']}, "
            f"{models['about']['machine']}, two threads; model by model in "
            f"[benchmarks/results/{folder}](../benchmarks/results/{folder}).",
            table_beside(networks_beside(folder)),
            *bars_of_start(start),
        ]
    return parts


def table_beside(rows) -> str:
    """Rows of what was run, beside what, and the ratios by name."""
    lines = ["| | beside | times as fast | least | ahead in |", "|---|---|---:|---|---:|"]
    for words, peer, found in rows:
        average, least = geometric_mean(found.values()), min(found, key=found.get)
        ahead = f"{sum(value >= 1 for value in found.values())} of {len(found)}"
        average = f"{average:.{1 if average > 2 else 2}f}"
        lines.append(
            f"| {words} | {peer} | {average} | {found[least]:.2f} ({least.rpartition(':')[2]}) | {ahead} |"
        )
    return "\n".join(lines)


def insert(path: Path, text: str) -> None:
    """Put a table in its place in a page that is written by hand."""
    before, _, rest = path.read_text().partition(BEGIN)
    path.write_text(f"{before}{BEGIN}\n{text}\n{END}{rest.partition(END)[2]}")


def main() -> None:
    (DOCS / "benchmarks.md").write_text(page())
    insert(ROOT / "README.md", readme_table())
    insert(DOCS / "performance.md", ways.report(OTHERS))


if __name__ == "__main__":
    main()
