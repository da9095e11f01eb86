"""What each way is there for: in how many rows it is the fastest, and what these lose without it.

``convolution.py`` and ``roi_ways.py`` print it, and keep it with ``--record``; report.py shows it in
docs/performance.md. A row is the speed of each way that applies to one layer, or to one call.
"""

import datetime
import json
import math

from machine import MAIN_RESULTS, RESULTS, processor

PATH = RESULTS / "ways.json"
#: What processors with registers of so many float32 numbers are called.
PROCESSORS = {16: "AVX-512", 8: "AVX2", 4: "128 bits"}


def losses(rows: list) -> dict:
    """For each way: in how many rows it is the fastest, and what these lose without it, mean and largest."""
    found: dict = {}
    for row in rows:
        best = max(row, key=row.get)
        others = [speed for way, speed in row.items() if way != best]
        for way in row:
            found.setdefault(way, [])
        if others:
            found[best].append(row[best] / max(others))
    return {
        way: (len(all_), math.exp(sum(map(math.log, all_)) / len(all_)) - 1, max(all_) - 1) if all_ else (0,)
        for way, all_ in found.items()
    }


def table(columns: dict) -> str:
    """Markdown of the losses in some columns, each of a title and its rows."""
    heads = (f"{title}: fastest in | mean loss without it, there | largest" for title in columns)
    lines = ["| way | " + " | ".join(heads) + " |", "|---|" + "---:|" * (3 * len(columns))]
    found = [losses(rows) for rows in columns.values()]
    for way in dict.fromkeys(way for column in found for way in column):
        cells = []
        for column, rows in zip(found, columns.values(), strict=True):
            count, *lost = column.get(way, (0,))
            rivals = sum(way in row and len(row) > 1 for row in rows)
            cells += [f"{count} of {rivals}", *([f"{each:.0%}" for each in lost] or ["", ""])]
        lines.append(f"| `{way}` | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def record(lanes: int, rows: dict) -> None:
    """Keep the rows of some jobs as those of processors with such registers."""
    kept = json.loads(PATH.read_text()) if PATH.exists() else {}
    about = {"date": datetime.date.today().isoformat(), "machine": processor()}
    for job, each in rows.items():
        kept.setdefault(job, {})[PROCESSORS[lanes]] = {**about, "rows": each}
    PATH.write_text(json.dumps(kept, indent=1) + "\n")


def report(others: dict) -> str:
    """All that is kept, a table for each job. ``others``: folders of results beside these, by processor."""
    parts, kept = [], json.loads((MAIN_RESULTS / PATH.name).read_text())
    for folder, name in others.items():
        path = MAIN_RESULTS / folder / PATH.name
        for job, columns in json.loads(path.read_text()).items() if path.exists() else ():
            kept[job] |= {f"{name}, {lanes}": each for lanes, each in columns.items()}
    for job, columns in kept.items():
        about = "; ".join(f"{name}: {each['date']}, {each['machine']}" for name, each in columns.items())
        parts += [
            f"**{job.capitalize()}** ({about})",
            table({n: each["rows"] for n, each in columns.items()}),
        ]
    return "\n\n".join(parts)
