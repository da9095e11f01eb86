"""Arrays as HTML tables, for notebooks."""

import html

import numpy as np

__all__ = ["array_table"]

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
    cells = "".join(
        "<tr>" + "".join(f"<td>{html.escape(_number(value))}</td>" for value in row) + "</tr>" for row in rows
    )
    several = place if np.prod(values.shape[:-2], dtype=int) != 1 else ""
    return f"<table><caption>{html.escape(caption + several + cut)}</caption>{cells}</table>"


def _number(value) -> str:
    return f"{value:.5g}" if isinstance(value, np.floating) else str(value)
