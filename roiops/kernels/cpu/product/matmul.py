"""Matrix products of float32 on the threads of all other kernels.

BLAS has threads of its own, which go on spinning after a product on the cores that the next kernel wants. So
float32 does not go there. ``multiply`` packs the right factor into panels, block by block of the terms, and
reads the left one in place; ``bind_few_rows`` is for products that do little more than read a weight once.
"""

import functools

import numpy as np

from ...jit import Calls, inner, num_threads, parallel
from ...shares import within
from ..scratch import Repeated, Scratch
from ..vector import BLOCK, LINE, MACHINE_LANES, flat_of, prefetch_to_read, transpose_block
from .caches import SECOND_CACHE
from .emitter import COLUMNS, ROWS, emitted
from .panels import copy_run, deal, is_even, panel_range
from .tiles import Rows, add_product_tile

#: Bytes of panels that are used again and again at once: they stay in the second-level cache.
PANELS = SECOND_CACHE * 11 // 16
#: How much more rows than the mean a worker may have; beyond that, panels are dealt out.
MOST_ROWS = 1.25
#: Products of fewer multiplications are left to NumPy: OpenBLAS does not ask for threads for them.
SMALL = 1 << 18


def flat_memory(matrix):
    """The memory that matrices lie in, from the first entry on, and their steps in floats."""
    steps = [step // 4 for step in matrix.strides]
    size = 1 + sum((n - 1) * step for n, step in zip(matrix.shape, steps, strict=True))
    return np.lib.stride_tricks.as_strided(matrix, (size,), (4,)), *steps


@inner(makes_arrays=False)
def _pack(right, at, term_step, column_step, start, stop, first, last, panel):
    """Columns ``[first, last)`` of the terms ``[start, stop)`` of the matrix at ``at`` as a panel."""
    count, first = last - first, first * column_step + at
    if column_step == 1:
        for k in range(stop - start):
            copy_run(right, first + (start + k) * term_step, panel, k * COLUMNS, count)
        return
    for block in range(start, stop, LINE):  # a cache line of each column at a time
        length = min(LINE, stop - block)
        if length == BLOCK and term_step == 1 and COLUMNS % BLOCK == 0:
            for column in range(0, count, BLOCK):
                source, target = first + column * column_step + block, (block - start) * COLUMNS + column
                transpose_block(
                    right, source, column_step, min(BLOCK, count - column), panel, target, COLUMNS
                )
            continue
        for column in range(count):
            source = first + column * column_step + block * term_step
            to = (block - start) * COLUMNS + column
            for k in range(length):
                panel[to + k * COLUMNS] = right[source + k * term_step]


@inner(makes_arrays=False, forceinline=True)
def _add_edge(spare, count, first, after, out, at, step):
    """Add ``count`` rows of a tile to the columns ``[first, after)``."""
    for i in range(count):
        for j in range(first, after):
            out[at + i * step + j] += spare[i * COLUMNS + j - first]


@parallel(makes_arrays=False)
def _multiply(share, left, starts, last, right, sizes, blocks, begins, scratch, out):
    """Stacks of matrices come as :func:`flat_memory` gives them; ``sizes`` are ``(rows, terms, columns)``.

    ``starts``: where the rows of each tile begin in the left factor. ``last``: those of a tile that is not
    full, filled up, of each matrix. ``blocks``: the terms and the panels that are packed at once. ``begins``:
    the first tile of each worker, and the end. Tiles follow one another by matrix, block of panels, rows and
    panel.
    """
    left, left_apart, left_step, term_step = left
    right, right_apart, right_step, column_step = right
    out, out_apart, out_step, _ = out
    (rows, terms, columns), (at_once, together) = sizes, blocks
    row_tiles, panels = (rows + ROWS - 1) // ROWS, (columns + COLUMNS - 1) // COLUMNS
    size = at_once * COLUMNS
    for w in within(share, scratch.shape[0]):
        spare, packed = scratch[w, : ROWS * COLUMNS], scratch[w, ROWS * COLUMNS :]
        for start in range(0, terms, at_once):
            stop, there = min(start + at_once, terms), np.int64(-1)
            for item in range(begins[w], begins[w + 1]):
                block, inside = divmod(item, row_tiles * together)
                n, panel = divmod(block * together, panels)
                r, q = divmod(inside, together)
                for p in range(together if block != there else 0):
                    first, after, _ = panel_range(panel + p, panels, columns)
                    into, at = packed[p * size :], n * right_apart
                    _pack(right, at, right_step, column_step, start, stop, first, after, into)
                there = block
                first, after, vectors = panel_range(panel + q, panels, columns)
                # With several panels, the next rows come meanwhile, from memory: a part with each.
                ahead, behind = (stop - start + together - 1) // together, min((r + 2) * ROWS, rows)
                for row in range((r + 1) * ROWS, behind if together > 1 else 0):
                    prefetch_to_read(left, row * left_step + start + q * ahead, ahead)
                count, at = min(ROWS, rows - r * ROWS), n * out_apart + r * ROWS * out_step
                whole = count == ROWS and after - first == vectors * MACHINE_LANES
                to = Rows(out, at + first, out_step) if whole else Rows(spare, 0, COLUMNS)
                if not whole:
                    spare[:] = 0
                factor, apart = (
                    Rows(left, n * left_apart + starts[r] + start * term_step, left_step),
                    term_step,
                )
                if count < ROWS:
                    factor, apart = Rows(last, n * ROWS * terms + start, terms), np.int64(1)
                add_product_tile(vectors, factor, apart, packed, q * size, stop - start, to)
                if not whole:
                    _add_edge(spare, count, first, after, out, at, out_step)


def multiply(left, right, out, *, add=False):
    """``out = left @ right`` for float32 matrices of any strides, or stacks of them.

    The rows of ``out`` are dense. With ``add`` the product is added to it.
    """
    if 4 not in right.strides[-2:]:
        right = np.ascontiguousarray(right)
    if not add:
        out[...] = 0
    rows, terms = left.shape[-2:]
    if min(*left.shape, out.shape[-1]) == 0:
        return
    # The left factor's rows of one block stay in the second-level cache, as does the panel.
    blocks = max(192, min(terms, PANELS // (8 * rows), PANELS // (8 * COLUMNS))), 1
    _in_blocks(left, right, out, blocks)


def times_transposed(data, weight, bias, out):
    """``out = data @ weight.T + bias`` for float32 matrices, of a large C-contiguous weight.

    The weight comes from memory once: all panels of the data are packed, for some of the terms.
    """
    batch, terms = data.shape
    panels, turned = -(-batch // COLUMNS), np.zeros(out.shape[::-1], np.float32)
    blocks = max(1, min(terms, max(256, PANELS // (panels * COLUMNS * 4)))), panels
    _in_blocks(weight, data.T, turned, blocks)
    np.add(turned.T, bias, out=out)


def multiply_at(left, starts, right, out, at_once, scratch):
    """Add ``tile @ right`` to the next ``ROWS`` rows of ``out``, for each tile of the left factor.

    A tile is ``ROWS`` rows of ``left`` from one of the places ``starts`` on, which may overlap and go on from
    row to row, as the taps of a convolution see an image. ``at_once``: the terms whose panels are packed, in
    the array that :func:`scratch_shape` is for.
    """
    _in_blocks(left, right, out, (at_once, 1), starts, scratch)


def scratch_shape(workers: int, at_once: int, panels: int = 1) -> tuple[int, int]:
    """A tile, and so many terms of panels, for each worker."""
    return workers, (ROWS + at_once * panels + 1) * COLUMNS


def _in_blocks(left, right, out, blocks, starts=None, scratch=None):
    """Add the product to ``out``; ``blocks``: terms and panels that are packed at once.

    ``starts``: where tiles of ``ROWS`` rows begin in ``left``, if they do not follow one another.
    """
    left, right, out = (array.reshape(-1, *array.shape[-2:]) for array in (left, right, out))
    (count, rows, columns), terms = out.shape, right.shape[1]
    row_tiles = -(-rows // ROWS)
    if scratch is None:
        workers = num_threads(out.size * terms / MACHINE_LANES)
        if not is_even(row_tiles, workers, MOST_ROWS):
            blocks = blocks[0], 1  # workers take panels of their own
        (scratch,) = Scratch(scratch_shape(workers, *blocks))()
    if starts is None:
        starts = np.arange(0, rows, ROWS) * (left.strides[1] // 4)
    rest = rows % ROWS
    last = np.zeros((count, ROWS, terms if rest else 0), np.float32)
    if rest:
        last[:, :rest] = left[:, rows - rest :]
    workers, vectors = len(scratch), -(-columns // MACHINE_LANES)
    panels = -(-columns // COLUMNS)
    if blocks[1] == 1:
        begins = _by_panel(workers, count, panels, vectors, row_tiles)
    else:
        begins = np.arange(workers + 1) * row_tiles // workers * panels
    factors = flat_memory(left), starts, last.reshape(-1), flat_memory(right)
    _multiply.by(workers)(*factors, (rows, terms, columns), blocks, begins, scratch, flat_memory(out))


@functools.lru_cache(256)
def _by_panel(workers: int, count: int, panels: int, vectors: int, row_tiles: int) -> np.ndarray:
    """The first tile of each worker, panel by panel of so many matrices, and the end."""
    panels = np.diff(np.arange(panels + 1) * vectors // panels)
    return deal(panels, np.ones(row_tiles, int), count, workers)


def matmul(a, b, out, *, add=False):
    """``np.matmul(a, b, out=out)``, or ``out += a @ b``; large float32 products on our own threads."""
    plain = {a.dtype, b.dtype, out.dtype} == {np.dtype(np.float32)} and a.ndim == b.ndim == out.ndim
    plain = plain and min(*a.strides, *b.strides) > 0 and out.strides[-1] == 4
    if not plain or a.ndim > 3 or a.shape[-2] * a.shape[-1] * b.shape[-1] < SMALL:
        if add:
            out += np.matmul(a, b)
        else:
            np.matmul(a, b, out=out)
    elif a.ndim == 3 and a.shape[1] < _DATA:
        for left, right, result in zip(a, b, out, strict=True):
            matmul(left, right, result, add=add)
    elif a.ndim == 2 and (len(a) < _DATA or (b.strides[0] == 4 and b.size > a.size + 2 * out.size)):
        # b is better read in place than packed
        turned = np.empty(out.shape[::-1], np.float32)
        if len(a) < _DATA and a.flags.c_contiguous and b.T.flags.c_contiguous:
            turned = turned.reshape(out.shape).T
            bind_few_rows(a, b.T, np.zeros(b.shape[1], np.float32), turned.T, Calls())()
        else:
            multiply(b.T, a.T, turned)
        if add:
            out += turned.T
        else:
            out[...] = turned.T
    else:
        multiply(a, b, out, add=add)


#: Rows of the weight, and of the data, whose products are summed side by side.
_WEIGHTS, _DATA = 4, 4
#: Products that a lane sums before the sum is added to those before, and so many of all lanes.
_PART = 1 << 12
_TOGETHER = MACHINE_LANES * _PART
#: What it costs to fetch a vector of the weight, in products of vectors.
FETCH = 3


def _dot(count):
    @emitted
    def dot(emit, weight, weight_at, weight_step, data, data_at, data_step, terms, sums):
        first, image = emit.pointer(weight, weight_at, "weight"), emit.pointer(data, data_at, "data")
        zeros = [emit.constant(0)] * (_WEIGHTS * count)
        with emit.loop(emit.builder.sdiv(terms, emit.number(MACHINE_LANES)), [first, image, *zeros]) as loop:
            rows, columns, *totals = loop.values
            right = [emit.load(columns, emit.times(data_step, n)) for n in range(count)]
            for f in range(_WEIGHTS):
                row = emit.move(rows, emit.times(weight_step, f))
                # The rows that come next: into the second cache, the first may have few places for them.
                soon = emit.move(row, emit.times(weight_step, _WEIGHTS))
                emit.prefetch(soon, into=2)
                left = emit.load(row)
                for n in range(count):
                    totals[f * count + n] = emit.fma(left, right[n], totals[f * count + n])
            loop.advance([emit.move(rows, MACHINE_LANES), emit.move(columns, MACHINE_LANES), *totals])
        target = emit.pointer(sums, 0, "sums")
        for k, total in enumerate(loop.results[2:]):
            emit.store(total, target, k * MACHINE_LANES)

    return dot


_dot_one, _dot_more = _dot(1), _dot(_DATA)


@inner(makes_arrays=False)
def _sum_up(sums, at, weight, data, first, stop):
    """The lanes of a sum one after the other, and then the terms from ``first`` on."""
    total = np.float32(0)
    for lane in range(MACHINE_LANES):
        total += sums[at + lane]
    for k in range(first, stop):
        total += weight[k] * data[k]
    return total


@inner(makes_arrays=False, fastmath={"reassoc", "contract"})
def _part(weight, data, start, stop):
    total = np.float32(0)
    for k in range(start, stop):
        total += weight[k] * data[k]
    return total


@inner(makes_arrays=False)
def _in_parts(weight, data):
    """The sum of products of two rows, part by part: millions of them lose no more digits than few."""
    total = 0.0
    for start in range(0, data.shape[0], _PART):
        total += _part(weight, data, start, min(start + _PART, data.shape[0]))
    return total


@inner(makes_arrays=False)
def _put_products(data, weight, bias, f, n, count, sums, out):
    """The results of ``count`` rows of the data with ``_WEIGHTS`` rows of the weight, or all there are.

    ``sums`` is a worker's memory.
    """
    terms, totals = data.shape[1], sums[_WEIGHTS * _DATA * MACHINE_LANES :]
    flat_data, flat_weight = flat_of(data), flat_of(weight)
    if weight.shape[0] < _WEIGHTS:
        for i in range(weight.shape[0]):
            for j in range(count):
                out[n + j, f + i] = _in_parts(weight[f + i], data[n + j]) + bias[f + i]
        return
    totals[:] = 0
    for start in range(0, max(1, terms), _TOGETHER):  # without terms the sums are 0
        stop = min(start + _TOGETHER, terms)
        whole = (stop - start) // MACHINE_LANES * MACHINE_LANES
        at, to = f * terms + start, n * terms + start
        if count == 1:
            _dot_one(flat_weight, at, terms, flat_data, to, terms, whole, sums)
        else:
            _dot_more(flat_weight, at, terms, flat_data, to, terms, whole, sums)
        for i in range(_WEIGHTS):
            for j in range(count):
                k = i * count + j
                total = _sum_up(sums, k * MACHINE_LANES, weight[f + i], data[n + j], start + whole, stop)
                totals[k] += total
                out[n + j, f + i] = totals[k] + bias[f + i]


@parallel
def _few_rows(share, data, weight, bias, workers, out):
    """A row's products are summed lane by lane, the lanes one after the other, what is left over last."""
    batch, features = data.shape[0], weight.shape[0]
    groups = (features + _WEIGHTS - 1) // _WEIGHTS
    for w in within(share, workers):
        sums = np.empty(_WEIGHTS * _DATA * (MACHINE_LANES + 1), np.float32)
        for group in range(w * groups // workers, (w + 1) * groups // workers):
            # The last rows are computed again rather than fewer of them.
            f, n = max(0, min(group * _WEIGHTS, features - _WEIGHTS)), 0
            while n < batch:
                count = _DATA if n + _DATA <= batch else 1
                _put_products(data, weight, bias, f, n, count, sums, out)
                n += count


def bind_few_rows(data, weight, bias, out, calls, after=()):
    """A call of ``out = data @ weight.T + bias``, and of the kernels ``after`` it, again and again.

    The matrices are C-contiguous float32, ``data`` of a few rows.
    """

    def prepare(threads):
        return [(_few_rows, threads, data, weight, bias, threads, out), *after]

    # Each vector of the weight comes from a distant cache, which takes longer than the products.
    return Repeated(calls, (len(data) + FETCH) * weight.size / MACHINE_LANES, prepare)
