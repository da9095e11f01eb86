"""Winograd's minimal filtering F(4x4, 3x3): a 3x3 convolution of stride 1 with a quarter of the products.

The image is cut into tiles of 6x6 pixels that overlap by 2. Tiles and filters are transformed to 36 numbers
each; those are multiplied, for each of the 36 as a matrix product over the channels; and the 36 products of
a tile are transformed to its 4x4 results.

The transforms interpolate at 0, +-5/8, +-3/2 and infinity. These points are exact in binary and spread the
weights so evenly that results are within about 2e-6 of the largest one (0, +-1, +-2, the usual choice: 6e-6).
"""

import numpy as np
from numba import types
from numba.extending import intrinsic

from ..jit import njit, num_threads, parallel, prange
from .blas import aligned, copy_vector, prefetch_to_read, prefetch_to_write, product_tile
from .blas_vector import ACTIVATION, COLUMNS, LANES, ROWS, Emitter, activated, activation
from .conv_direct import load_line

__all__ = ["Winograd"]

#: Results, and pixels, of a tile in each direction.
OUT, IN = 4, 6
_POINTS = (0.0, 5 / 8, -5 / 8, 3 / 2, -3 / 2)


def _matrices():
    """``(A, G, B)``: the results of filter g on tile d are A ((G g G^T) * (B d B^T)) A^T."""
    points = np.array(_POINTS)
    others = [np.delete(points, i) for i in range(len(points))]
    scale = np.array([np.prod(p - rest) for p, rest in zip(points, others, strict=True)])
    powers = points[:, None] ** np.arange(OUT)
    results = np.vstack([powers, [0, 0, 0, 1]]).T
    filters = np.vstack([points[:, None] ** np.arange(3) / scale[:, None], [0, 0, 1]])
    tiles = np.zeros((IN, IN))
    for i, rest in enumerate(others):
        tiles[i, : IN - 1] = np.poly(rest)[::-1]
    tiles[IN - 1] = np.poly(points)[::-1]
    return results, filters, tiles


_RESULTS, _FILTERS, _TILES = _matrices()
#: Rows that a panel's 36 parts are set apart, so that they do not compete for the same places in a cache.
_APART = 1
_IDENTITY = activation()
#: Bytes of transformed tiles that workers share at once.
SHARED = 12 << 20


@intrinsic
def _transform_tiles(typing, lines, lines_at, lines_step, buffer, out, out_at, out_step):
    """Transform ``LANES`` neighbouring tiles: 6 lines of pixels from ``lines_at`` on become 36 vectors."""
    integer = types.int64
    signature = types.void(lines, integer, integer, buffer, out, integer, integer)

    def generate(context, builder, signature, args):
        emit = Emitter(context, builder)
        line = emit.pointer(signature.args[0], args[0], args[1])
        buffer = emit.pointer(signature.args[3], args[3], emit.number(0))
        target = emit.pointer(signature.args[4], args[4], args[5])
        for y in range(IN):
            row = emit.move(line, emit.times(args[2], y))
            pixels = emit.deinterleave(row, OUT)
            pixels += emit.deinterleave(emit.move(row, OUT), OUT)[: IN - OUT]
            for x, value in enumerate(emit.transform(_TILES.tolist(), pixels)):
                emit.store(value, buffer, (x * IN + y) * LANES)
        for x in range(IN):
            column = [emit.load(buffer, (x * IN + y) * LANES) for y in range(IN)]
            for y, value in enumerate(emit.transform(_TILES.tolist(), column)):
                emit.store(value, target, emit.times(args[6], y * IN + x))
        return context.get_dummy_value()

    return signature, generate


@intrinsic
def _transform_results(
    typing, products, products_at, products_step, out, out_at, out_step, scale, shift, act, other, add_other
):
    """Transform the 36 products of ``LANES`` tiles to 4 lines of pixels, ``act(scale * x + shift)``.

    With ``add_other`` what lies at the same place of ``other`` is added before the activation.
    """
    integer, real = types.int64, types.float32
    signature = types.void(
        products, integer, integer, out, integer, integer, real, real, ACTIVATION, other, integer
    )

    def generate(context, builder, signature, args):
        emit = Emitter(context, builder)
        source = emit.pointer(signature.args[0], args[0], args[1])
        target = emit.pointer(signature.args[3], args[3], args[4])
        other = emit.pointer(signature.args[9], args[9], args[4])
        scale, shift = (emit.splat(a) for a in args[6:8])
        act = emit.activation(args[8])
        columns = []
        for x in range(IN):
            column = [emit.load(source, emit.times(args[2], y * IN + x)) for y in range(IN)]
            columns.append(emit.transform(_RESULTS.tolist(), column))
        for y in range(OUT):
            row = emit.transform(_RESULTS.tolist(), [column[y] for column in columns])
            row = emit.interleave([emit.fma(scale, value, shift) for value in row])
            line = emit.times(args[5], y)
            beside = emit.move(other, line)
            row = emit.choose(args[10], lambda row=row, beside=beside: emit.plus(row, beside), row)
            for k, value in enumerate(row):
                emit.store(emit.activate(value, act), emit.move(target, line), k * LANES)
        return context.get_dummy_value()

    return signature, generate


@njit
def _transform_run(source, start, step, run, buffer, made, column):
    """Transform ``run`` neighbouring tiles of one channel to 36 rows of ``made``, from ``column`` on.

    Their pixels lie in the flat ``source`` from ``start`` on, rows ``step`` apart. What follows in a row of
    ``made`` is spoiled.
    """
    for block in range(0, run, LANES):
        _transform_tiles(source, start + block * OUT, step, buffer, made, column + block, COLUMNS + LANES)


@njit
def _put_row(made, panel, part, row):
    """Move the 36 rows of ``made`` to ``row`` of each of the panel's parts."""
    for k in range(IN * IN):
        for i in range(0, COLUMNS, LANES):
            copy_vector(made, k * (COLUMNS + LANES) + i, panel, k * part + row + i)


@njit
def _frame(image, y, x, rows, count, frame, step):
    """``rows`` rows of ``count`` pixels from (y, x) on, with zeros around the image, ``step`` apart."""
    for i in range(rows):
        load_line(image, y + i, x, count, frame, i * step)


@njit
def _store_results(products, wide, first, count, lines, scale, shift, act, other, add_other, out):
    """Transform one filter's products to pixels of its plane ``out``."""
    height, width = out.shape
    flat, flat_other = out.reshape(-1), other.reshape(-1)
    column = 0
    while column < count:
        ty, tx = divmod(first + column, wide)
        run = min(wide - tx, count - column)
        rows = min(OUT, height - ty * OUT)
        for block in range(0, run, LANES):
            x = (tx + block) * OUT
            length = min((run - block) * OUT, width - x, LANES * OUT)
            at = ty * OUT * width + x
            if rows == OUT and length >= LANES * OUT:
                _transform_results(
                    products, column + block, ROWS * COLUMNS, flat, at, width, scale, shift, act,
                    flat_other, add_other,
                )  # fmt: skip
                continue
            now = _IDENTITY if add_other else act
            _transform_results(
                products, column + block, ROWS * COLUMNS, lines, 0, OUT * LANES, scale, shift, now, lines, 0
            )
            for y in range(rows):
                source, target = lines[y * OUT * LANES :], flat[at + y * width : at + y * width + length]
                if add_other:
                    beside = flat_other[at + y * width :]
                    for i in range(length):
                        target[i] = activated(source[i] + beside[i], act)
                else:
                    for i in range(length):
                        target[i] = source[i]
        column += run


@njit
def _frame_step(wide):
    """Floats from row to row of a frame: the tiles of a row, and what vectors read beyond them."""
    return (wide + 2 * LANES) * OUT


@njit
def _divide(scratch):
    """A worker's scratch: products of a panel, lines of results, the inside of a transform, its outcome."""
    a, b = IN * IN * ROWS * COLUMNS, OUT * OUT * LANES
    c = a + b + IN * IN * LANES
    return scratch[:a], scratch[a : a + b], scratch[a + b : c], scratch[c:]


@njit
def _prefetch_rows(image, y, x, count):
    """Ask for the pixels of a row of tiles."""
    flat = image.reshape(-1)
    for row in range(max(y, 0), min(y + IN, image.shape[0])):
        prefetch_to_read(flat, row * image.shape[1] + max(x, 0), count)


@njit
def _prefetch_results(wide, first, count, out):
    """Ask for the pixels that a panel's results will be stored to."""
    height, width = out.shape
    flat = out.reshape(-1)
    column = 0
    while column < count:
        ty, tx = divmod(first + column, wide)
        run = min(wide - tx, count - column)
        for y in range(ty * OUT, min(ty * OUT + OUT, height)):
            prefetch_to_write(flat, y * width + tx * OUT, run * OUT)
        column += run


@njit
def _multiply(
    filters, row, count_filters, channels, panel, wide, first, count, products, lines, scale, shift, act,
    other, add_other, out,
):  # fmt: skip
    """``ROWS`` filters from ``row`` on: their products with a panel of tiles, and the results of these."""
    part = (channels + _APART) * COLUMNS
    stop = min(row + ROWS, count_filters)
    for f in range(row, stop):
        _prefetch_results(wide, first, count, out[f])
    for k in range(IN * IN):
        product_tile(
            filters, (row * IN * IN + k * ROWS) * channels, 1, ROWS, panel, k * part, channels,
            products, k * ROWS * COLUMNS, COLUMNS,
        )  # fmt: skip
    for f in range(row, stop):
        mine = products[(f - row) * COLUMNS :]
        _store_results(mine, wide, first, count, lines, scale[f], shift[f], act, other[f], add_other, out[f])


@parallel
def _by_panel(data, filters, pad, scale, shift, act, other, add_other, panels, frames, scratch, out):
    """Each worker takes whole panels of tiles through all steps: for images of many tiles."""
    batch, count_filters, height, width = out.shape
    channels = data.shape[1]
    wide = (width + OUT - 1) // OUT
    tiles = wide * ((height + OUT - 1) // OUT)
    count_panels = (tiles + COLUMNS - 1) // COLUMNS
    part, size = (channels + _APART) * COLUMNS, data.shape[2:]
    workers = panels.shape[0]
    items = batch * count_panels
    for worker in prange(workers):
        w = np.int64(worker)
        products, lines, buffer, made = _divide(scratch[w])
        for item in range(w * items // workers, (w + 1) * items // workers):
            n, p = divmod(item, count_panels)
            first = p * COLUMNS
            count = min(COLUMNS, tiles - first)
            for c in range(channels):
                image = data[n, c]
                flat = image.reshape(-1)
                for k in range(IN * IN):
                    prefetch_to_write(panels[w], k * part + c * COLUMNS, COLUMNS)
                column = 0
                while column < count:
                    ty, tx = divmod(first + column, wide)
                    run = min(wide - tx, count - column)
                    y, x, pixels = ty * OUT - pad[0], tx * OUT - pad[1], run * OUT + IN - OUT
                    _prefetch_rows(data[n, min(c + 1, channels - 1)], y, x, pixels)
                    end = (y + IN - 1) * size[1] + x + (run + 2 * LANES) * OUT
                    if y >= 0 and x >= 0 and x + pixels <= size[1] and end <= flat.shape[0]:
                        source, start, step = flat, y * size[1] + x, size[1]
                    else:
                        source, start, step = frames[w], 0, _frame_step(COLUMNS)
                        _frame(image, y, x, IN, pixels, source, step)
                    _transform_run(source, start, step, run, buffer, made, column)
                    column += run
                _put_row(made, panels[w], part, c * COLUMNS)
            for row in range(0, count_filters, ROWS):
                _multiply(
                    filters, row, count_filters, channels, panels[w], wide, first, count, products, lines,
                    scale, shift, act, other[n], add_other, out[n],
                )  # fmt: skip


@parallel
def _by_filter(data, filters, pad, scale, shift, act, other, add_other, panels, frames, scratch, out):
    """Workers share the transformed tiles and divide the filters: for images of few tiles."""
    batch, count_filters, height, width = out.shape
    channels = data.shape[1]
    wide, tall = (width + OUT - 1) // OUT, (height + OUT - 1) // OUT
    tiles = wide * tall
    count_panels = (tiles + COLUMNS - 1) // COLUMNS
    row_tiles = (count_filters + ROWS - 1) // ROWS
    part, step = (channels + _APART) * COLUMNS, _frame_step(wide)
    workers = scratch.shape[0]
    together = panels.shape[0]
    for n in range(batch):
        for begin in range(0, count_panels, together):
            end = min(begin + together, count_panels)
            top = begin * COLUMNS // wide
            rows = ((min(end * COLUMNS, tiles) - 1) // wide - top + 1) * OUT + IN - OUT
            for worker in prange(workers):
                w = np.int64(worker)
                _, _, buffer, made = _divide(scratch[w])
                for c in range(w * channels // workers, (w + 1) * channels // workers):
                    _frame(
                        data[n, c], top * OUT - pad[0], -pad[1], rows, wide * OUT + IN - OUT, frames[w], step
                    )
                    for p in range(begin, end):
                        panel, column = panels[p - begin], 0
                        count = min(COLUMNS, tiles - p * COLUMNS)
                        for k in range(IN * IN):
                            prefetch_to_write(panel, k * part + c * COLUMNS, COLUMNS)
                        while column < count:
                            ty, tx = divmod(p * COLUMNS + column, wide)
                            run = min(wide - tx, count - column)
                            start = (ty - top) * OUT * step + tx * OUT
                            _transform_run(frames[w], start, step, run, buffer, made, column)
                            column += run
                        _put_row(made, panel, part, c * COLUMNS)
            for worker in prange(workers):
                w = np.int64(worker)
                products, lines, _, _ = _divide(scratch[w])
                for row_tile in range(w * row_tiles // workers, (w + 1) * row_tiles // workers):
                    for p in range(begin, end):
                        first = p * COLUMNS
                        count = min(COLUMNS, tiles - first)
                        _multiply(
                            filters, row_tile * ROWS, count_filters, channels, panels[p - begin], wide, first,
                            count, products, lines, scale, shift, act, other[n], add_other, out[n],
                        )  # fmt: skip


@parallel
def _transform_filters(weight, matrix, filters):
    """``filters[f // ROWS, i, j, c, f % ROWS] = (G g G^T)[i, j]`` for each filter f and channel c."""
    count, channels, _, _ = weight.shape
    for f in prange(count):
        target = filters[f // ROWS, :, :, :, f % ROWS]
        for c in range(channels):
            g = weight[f, c]
            for i in range(IN):
                a = matrix[i, 0] * g[0, 0] + matrix[i, 1] * g[1, 0] + matrix[i, 2] * g[2, 0]
                b = matrix[i, 0] * g[0, 1] + matrix[i, 1] * g[1, 1] + matrix[i, 2] * g[2, 1]
                d = matrix[i, 0] * g[0, 2] + matrix[i, 1] * g[1, 2] + matrix[i, 2] * g[2, 2]
                for j in range(IN):
                    target[i, j, c] = matrix[j, 0] * a + matrix[j, 1] * b + matrix[j, 2] * d


#: Parts that are hashed side by side.
_HASHES = 64


@njit
def _fingerprint(values):
    """A hash of all bits. Any single change alters it, any others with a chance of 1 - 2 ** -64."""
    lanes = np.empty(_HASHES, np.uint64)
    for i in range(_HASHES):
        lanes[i] = np.uint64(0x9E3779B97F4A7C15) * np.uint64(2 * i + 1)
    odd = np.uint64(0xD6E8FEB86659FD93)
    whole = values.shape[0] // _HASHES * _HASHES
    for start in range(0, whole, _HASHES):
        part = values[start : start + _HASHES]
        for i in range(_HASHES):
            h = (lanes[i] ^ part[i]) * odd
            lanes[i] = h ^ (h >> np.uint64(32))
    total = np.uint64(values.shape[0])
    for i in range(whole, values.shape[0]):
        h = (total ^ values[i]) * odd
        total = h ^ (h >> np.uint64(32))
    for i in range(_HASHES):
        h = (total ^ lanes[i]) * odd
        total = h ^ (h >> np.uint64(32))
    return total


class Winograd:
    """A 3x3 convolution of stride 1. Transformed filters are kept while the weight's bits stay the same."""

    def __init__(self, pad):
        self._pad = pad
        self._key = self._print = None

    def __call__(self, data, weight, scale, shift, act, other, out):
        """``out = act(scale * convolution + shift + other)``; ``other`` may be None."""
        self._prepare(data, weight, out)
        self._run(
            data, self._filters, self._pad, scale, shift, act, out if other is None else other,
            int(other is not None), self._panels, self._frames, self._scratch, out,
        )  # fmt: skip

    def _prepare(self, data, weight, out):
        key = data.shape, weight.shape, num_threads()
        if key != self._key:
            self._key = key
            self._allocate(data.shape[1], len(weight), out.shape, key[2])
        flat = weight.reshape(-1)
        seen = _fingerprint(
            flat.view(np.uint64) if flat.size % 2 == 0 else flat.view(np.uint32).astype(np.uint64)
        )
        if seen != self._print:
            self._print = seen
            filters = self._filters.reshape(-1, IN, IN, weight.shape[1], ROWS)
            _transform_filters(weight, _FILTERS, filters)

    def _allocate(self, channels, filters, out_shape, workers):
        wide, tall = -(-out_shape[3] // OUT), -(-out_shape[2] // OUT)
        count = -(-wide * tall // COLUMNS)
        panel = IN * IN * (channels + _APART) * COLUMNS
        many = out_shape[0] * count >= 8 * workers
        self._run = _by_panel if many else _by_filter
        # Shared panels stay in the last cache together.
        together = workers if many else min(count, max(1, SHARED // (panel * 4)))
        self._panels = aligned(together * panel).reshape(together, panel)
        rows = min(tall, -(-together * COLUMNS // wide) + 1) * OUT + IN
        frame = (IN + 1) * _frame_step(COLUMNS) if many else (rows + 1) * _frame_step(wide)
        self._frames = aligned(workers * frame).reshape(workers, frame)
        size = IN * IN * (ROWS * COLUMNS + COLUMNS + 2 * LANES) + OUT * OUT * LANES
        self._scratch = aligned(workers * size).reshape(workers, size)
        self._filters = aligned(IN * IN * -(-filters // ROWS) * ROWS * channels)
        self._print = None
