"""HTML tables, for notebooks."""

import html

import numpy as np

__all__ = ["array_table", "table"]

#: Rows and columns of a table; what is beyond is left out, and said.
_MOST_ROWS, _MOST_COLUMNS = 20, 12


def array_table(values: np.ndarray, caption: str) -> str:
    """The last two axes of an array as a table; of the axes before them, the first entry is shown."""
    shown, place = values, ""
    if values.ndim > 2:
        place = f", [{', '.join('0' for _ in values.shape[:-2])}] of it"
        if not values.size:
            shown = np.empty((0, 0))
        else:
            shown = values[(0,) * (values.ndim - 2)]
    if shown.ndim < 2:
        shown = shown.reshape(1, -1)
    rows = shown[:_MOST_ROWS, :_MOST_COLUMNS]
    cut = "" if rows.shape == shown.shape else f", the first {rows.shape[0]} x {rows.shape[1]} shown"
    several = place if np.prod(values.shape[:-2], dtype=int) != 1 else ""
    return table([map(_number, row) for row in rows], caption=caption + several + cut)


def table(rows, head=(), caption="") -> str:
    """Rows of texts as a table, with a head and a caption where they are given."""
    lines = [f"<caption>{html.escape(caption)}</caption>"] if caption else []
    for tag, each in [("th", head)] * bool(head) + [("td", row) for row in rows]:
        lines.append(f"<tr>{''.join(f'<{tag}>{html.escape(text)}</{tag}>' for text in each)}</tr>")
    return f"<table>{''.join(lines)}</table>"


def _number(value) -> str:
    return f"{value:.5g}" if isinstance(value, np.floating) else str(value)
