"""How the positions of a batch of images are dealt out to panels.

Positions are those of a grid, image by image and row by row: pixels of the output, or tiles of them. A panel
takes the next few vectors of them, and goes on from one image to the next: of small images it holds several.
"""

import numpy as np

from ...jit import inner
from ..vector import (
    FIXED_LANES,
    MACHINE_LANES,
    greater,
    load_some,
    multiply_add,
    scaled,
    select,
    splat,
    store_some,
)
from .emitter import COLUMNS
from .tiles import copy_vector, scale_vector

#: Neighbouring positions in one row of one image: in a panel, ``run`` columns from ``column`` on.
SEGMENT = np.dtype([(name, np.int64) for name in ("column", "run", "image", "y", "x")])
#: How many a panel may have.
MOST_SEGMENTS = COLUMNS


@inner(makes_arrays=False)
def panel_range(index, panels, positions):
    """The positions ``[first, stop)`` of one of so many panels, and the vectors that hold them.

    All panels have nearly as many vectors: a last one of few columns would take as long as a full one.
    """
    total = (positions + MACHINE_LANES - 1) // MACHINE_LANES
    start, stop = index * total // panels, (index + 1) * total // panels
    return start * MACHINE_LANES, min(stop * MACHINE_LANES, positions), stop - start


def is_even(count: int, workers: int, most: float = 1.05) -> bool:
    """Whether whole shares of so many come out even: the longest is at most ``most`` times the mean."""
    return -(-count // workers) * workers <= most * count


def deal(blocks, tiles, groups: int, workers: int) -> np.ndarray:
    """The first tile of each worker, and the end, so that all multiply as much.

    Tiles follow one another by group, block and tile in the block. What a tile takes is what its block does,
    of ``blocks``, times what it does in each, of ``tiles``.
    """
    block_ends, ends = np.cumsum(blocks), np.cumsum(tiles)
    of_group, begins = int(block_ends[-1] * ends[-1]), [0]
    for worker in range(1, workers):
        g, rest = divmod(worker * groups * of_group // workers, of_group)
        block = int(np.searchsorted(block_ends, rest // int(ends[-1]), "right"))
        rest -= int(block_ends[block] - blocks[block]) * int(ends[-1])
        inside = int(np.searchsorted(ends, rest // int(blocks[block]), "right"))
        begins.append((g * len(blocks) + block) * len(ends) + inside)
    return np.array([*begins, groups * len(blocks) * len(ends)])


@inner(makes_arrays=False)
def segments(first, stop, height, width, out):
    """Write the segments of the positions ``[first, stop)`` to ``out``; their number."""
    count = 0
    position = first
    while position < stop:
        n, rest = divmod(position, height * width)
        y, x = divmod(rest, width)
        segment = out[count]
        segment.column, segment.run = position - first, min(width - x, stop - position)
        segment.image, segment.y, segment.x = n, y, x
        position += segment.run
        count += 1
    return count


@inner(makes_arrays=False)
def copy_run(source, source_at, target, target_at, count):
    """Copy ``count`` floats, and nothing beyond them."""
    if count < MACHINE_LANES:
        for i in range(count):
            target[target_at + i] = source[source_at + i]
        return
    for i in range(0, count - MACHINE_LANES, MACHINE_LANES):
        copy_vector(source, source_at + i, target, target_at + i)
    copy_vector(source, source_at + count - MACHINE_LANES, target, target_at + count - MACHINE_LANES)


@inner(makes_arrays=False, forceinline=True)
def take_run(source, source_at, target, target_at, count, prologue):
    """:func:`copy_run` of floats as a :class:`Prologue` of one channel makes them."""
    if not prologue.used:
        copy_run(source, source_at, target, target_at, count)
    elif count < MACHINE_LANES:
        for i in range(count):
            value = (source[source_at + i] - prologue.mean) * prologue.scale + prologue.shift
            target[target_at + i] = prologue.floor if value < prologue.floor else value
    else:
        for i in range(0, count - MACHINE_LANES, MACHINE_LANES):
            scale_vector(source, source_at + i, target, target_at + i, prologue)
        last = count - MACHINE_LANES
        scale_vector(source, source_at + last, target, target_at + last, prologue)


@inner(makes_arrays=False)
def add_run(source, source_at, other, activation, target, target_at, count):
    """:func:`copy_run` with what lies at the same place in ``other`` added, through an activation.

    ``other`` may be ``target``.
    """
    floor, ceiling, slope = activation
    zero, low, high = splat(np.float32(0)), splat(floor), splat(ceiling)
    for i in range(0, count, FIXED_LANES):
        left = min(FIXED_LANES, count - i)
        total = load_some(other, target_at + i, left)
        total = multiply_add(np.float32(1), load_some(source, source_at + i, left), total)
        total = select(greater(zero, total), scaled(slope, total), total)
        total = select(greater(low, total), low, total)
        total = select(greater(total, high), high, total)
        store_some(target, target_at + i, total, left)
