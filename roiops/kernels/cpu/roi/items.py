"""The one loop over work that the ROI kernels of the CPU share, forward and backward.

The work is divided in items: an image, a group of bins and a block of ``FIXED_LANES`` channels. An item of
the forward pass reads its channels into a tile with the channels last, only those pixels that some ROI
touches and each once, and goes through the ROIs from top to bottom. An item of the backward pass writes
channels and rows that no other item writes, ROI after ROI in one order: gradients are the same to the last
bit with any number of threads.

What differs from kernel to kernel is handed over when the module is loaded: ``view`` makes the tables
readable, ``pool`` and ``spread`` deal with one ROI. They are compiled into the loop, and what deals with
``argmax`` only where there is one. (Functions as arguments of a compiled one would do the same, but numba
then keeps nothing on disk.)
"""

import numpy as np

from roiops.kernels.cpu.roi.points import (
    has_few_channels,
    may_be_narrow,
    narrow_in,
    pool_narrow,
    pool_points,
    room_for_narrow,
    room_for_runs,
    runs_in,
)
from roiops.kernels.cpu.roi.tiles import (
    Ahead,
    Planes,
    Tile,
    channel_blocks,
    comes_by_rows,
    copy_bins,
    empty_tile,
    item_of,
    nothing_behind,
    places_of,
    prefetch_ends,
    prefetch_planes,
    prefetch_put,
    prefetch_take,
    put_behind,
    put_bins,
    stream_behind,
    streams,
    take_bins,
    tile_bands,
    tile_slots,
    touch_nothing,
    write_rows,
)
from roiops.kernels.cpu.vector import FIXED_LANES, aligned, pointer_to
from roiops.kernels.jit import inner


@inner
def planes_of(item, data, pixels):
    """The channels of ``data`` that an item reads; ``pixels`` are its elements."""
    _, channels, height, width = data.shape
    at = (item.image * channels + item.in_channel) * height * width
    return Planes(pointer_to(pixels), at, item.step * height * width, item.channels, height, width)


def forward_items(view, pool, with_argmax=False, in_any_order=False, with_points=False, by_rows=False):
    """The forward loop of one thread.

    ``pool(r, item, planes, tile, y, x, line, bins[, where, limits])`` computes the bins of ROI ``r``, with
    the channels last. ``in_any_order`` says that it does not read the rows of the map from top to bottom,
    ``with_points`` that bins of at most two pixels on either axis are means of them. With ``by_rows`` its
    last argument is what the ROI before has left (:class:`tiles.Behind`), to be written row by row.
    """

    @inner
    def items_of_a_thread(part, parts, data, plan, table, groups, limits, out, argmax):
        """``plan`` is ``(order, image_at)``, ``limits`` what bins of nothing give."""
        order, image_at = plan
        images, _, height, width = data.shape
        out_channels = out.shape[1]
        pixels, results = data.reshape(-1), out.reshape(-1)
        area = out.shape[2] * out.shape[3]
        slots = tile_slots(height, width, out.itemsize, in_any_order)
        tile_memory = aligned(slots * width * FIXED_LANES, out)
        marks = np.empty(slots * (width // FIXED_LANES + 1), np.int64)
        line = aligned(width * FIXED_LANES, out)
        bins = aligned(area * FIXED_LANES, out)
        scratch, address = aligned((area + 1) * FIXED_LANES, out), out.ctypes.data // out.itemsize
        if with_points:
            run_memory = room_for_runs(out.shape[3], out)
            narrow_memory = room_for_narrow(out.shape[2], out.shape[3], out)
        if with_argmax:
            places, keep = argmax.reshape(-1), argmax.size > 0
            where = aligned(area * FIXED_LANES, argmax)
            where_scratch = aligned((area + 1) * FIXED_LANES, argmax)
            where_address = argmax.ctypes.data // argmax.itemsize
        items = images * channel_blocks(out_channels) * groups[0] * groups[1]
        last = (part + 1) * items // parts - 1
        for number in range(part * items // parts, last + 1):
            item = item_of(number, out.shape, groups)
            planes = planes_of(item, data, pixels)
            ahead = planes_of(item_of(min(number + 1, last), out.shape, groups), data, pixels)
            tile = Tile(pointer_to(tile_memory), pointer_to(marks), slots, width)
            y, x = view(table)
            empty_tile(tile)
            past_caches = streams(out, item)
            along_rows = False
            if with_points:
                along_rows = has_few_channels(item, out.itemsize)
                runs = runs_in(run_memory)
                narrow = narrow_in(runs, narrow_memory)
                may_skip_lanes = past_caches and may_be_narrow(item, out.itemsize)
            if with_argmax:
                places_past_caches = streams(argmax, item)
            first, stop = places_of(item, image_at)
            behind = nothing_behind(pointer_to(scratch), pointer_to(results))
            for place in range(first, stop):
                r = order[place]
                to = (r * out_channels + item.out_channel) * area
                prefetch_planes(ahead, place - first, stop - first, (stop - first) * area)
                if past_caches:
                    prefetch_ends(item, pointer_to(results), to)
                else:
                    prefetch_put(item, pointer_to(results), to)
                if with_argmax:
                    if keep and not places_past_caches:
                        prefetch_put(item, pointer_to(places), to)
                    pool(
                        r,
                        item,
                        planes,
                        tile,
                        y,
                        x,
                        pointer_to(line),
                        pointer_to(bins),
                        pointer_to(where),
                        limits,
                    )
                    if places_past_caches:
                        stream_behind(
                            put_behind(
                                pointer_to(where),
                                item,
                                pointer_to(where_scratch),
                                pointer_to(places),
                                where_address,
                                to,
                            )
                        )
                    elif keep:
                        put_bins(pointer_to(where), item, pointer_to(places), to)
                elif (
                    with_points
                    and along_rows
                    and pool_points(r, item, planes, y, x, runs, pointer_to(scratch))
                ):
                    count = item.channels * area
                    copy_bins(count, pointer_to(scratch), pointer_to(results), address, to, past_caches)
                    continue
                elif (
                    with_points
                    and may_skip_lanes
                    and pool_narrow(r, item, planes, y, x, narrow, pointer_to(results), address, to)
                ):
                    continue
                elif by_rows:
                    pool(r, item, planes, tile, y, x, pointer_to(line), pointer_to(bins), behind)
                else:
                    pool(r, item, planes, tile, y, x, pointer_to(line), pointer_to(bins))
                if not past_caches:
                    put_bins(pointer_to(bins), item, pointer_to(results), to)
                    continue
                to_write = put_behind(
                    pointer_to(bins), item, pointer_to(scratch), pointer_to(results), address, to
                )
                # What is behind stays in the scratch, which pool_points uses as well.
                if by_rows and not along_rows:
                    behind = to_write
                else:
                    stream_behind(to_write)
            if by_rows:
                stream_behind(behind)

    return items_of_a_thread


@inner
def _next_in_band(place, stop, band, lowest, reach, first):
    """The first place from ``place`` on whose ROI touches the band's rows, or ``stop``."""
    top, bottom = band
    while place < stop and not (lowest[place - first] < bottom and reach[place - first] > top):
        place += 1
    return place


def backward_items(view, rows_of, spread, with_argmax=False, by_rows=False):
    """The backward loop of one thread; an item is a band of rows of an item of the forward pass.

    ``rows_of(r, item, y, x)`` are the rows that ROI ``r`` touches. ``spread(r, item, tile, band, y, x, line,
    bins[, where])`` adds its gradient, whose head gradient is ``bins``, to the band's rows. With ``by_rows``
    it goes through the rows of bins, and its last argument is what the next ROI will need
    (:class:`tiles.Ahead`), to be prefetched row by row.
    """

    @inner
    def items_of_a_thread(part, parts, grad_out, argmax, plan, table, groups, accumulate, grad_data):
        order, image_at = plan
        images, in_channels, height, width = grad_data.shape
        out_channels = grad_out.shape[1]
        pixels, heads = grad_data.reshape(-1), grad_out.reshape(-1)
        plane, area = height * width, grad_out.shape[2] * grad_out.shape[3]
        items = images * channel_blocks(out_channels) * groups[0] * groups[1]
        bands, rows = tile_bands(height, width, grad_data.itemsize, parts, items, by_rows)
        tile_memory = aligned(rows * width * FIXED_LANES, grad_data)
        marks = np.empty(rows * 2, np.int64)
        line = aligned(width * FIXED_LANES, grad_data)
        bins = aligned(area * FIXED_LANES, grad_data)
        if with_argmax:
            places = argmax.reshape(-1)
            where = aligned(area * FIXED_LANES, argmax)
        # The rows [lowest, reach) that each ROI of an image touches: all its bands ask for them.
        lowest, reach = np.empty(order.size, np.int32), np.empty(order.size, np.int32)
        begin = part * items * bands // parts
        for number in range(begin, (part + 1) * items * bands // parts):
            item = item_of(number // bands, grad_out.shape, groups)
            top, bottom = number % bands * height // bands, (number % bands + 1) * height // bands
            at = (item.image * in_channels + item.in_channel) * plane
            planes = Planes(pointer_to(pixels), at, item.step * plane, item.channels, height, width)
            tile = Tile(pointer_to(tile_memory), pointer_to(marks), rows, width)
            y, x = view(table)
            touch_nothing(tile)
            first, stop = places_of(item, image_at)
            if number == begin or number % bands == 0:
                for place in range(first, stop):
                    lowest[place - first], reach[place - first] = rows_of(order[place], item, y, x)
            band = top, bottom
            place = _next_in_band(first, stop, band, pointer_to(lowest), pointer_to(reach), first)
            while place < stop:
                r = order[place]
                at = (r * out_channels + item.out_channel) * area
                place = _next_in_band(place + 1, stop, band, pointer_to(lowest), pointer_to(reach), first)
                ahead = at if place == stop else (order[place] * out_channels + item.out_channel) * area
                if not (by_rows and comes_by_rows(item)):
                    prefetch_take(item, pointer_to(heads), ahead)
                take_bins(pointer_to(heads), at, item, pointer_to(bins))
                if with_argmax:
                    prefetch_take(item, pointer_to(places), ahead)
                    take_bins(pointer_to(places), at, item, pointer_to(where))
                    spread(r, item, tile, band, y, x, pointer_to(line), pointer_to(bins), pointer_to(where))
                elif by_rows:
                    next_bins = Ahead(pointer_to(heads), ahead)
                    spread(r, item, tile, band, y, x, pointer_to(line), pointer_to(bins), next_bins)
                else:
                    spread(r, item, tile, band, y, x, pointer_to(line), pointer_to(bins))
            write_rows(tile, top, bottom - top, planes, accumulate, pointer_to(line))

    return items_of_a_thread
