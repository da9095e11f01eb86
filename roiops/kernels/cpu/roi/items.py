"""The one loop over work that the ROI kernels of the CPU share, forward and backward.

The work is divided in items: an image, a group of bins and a block of ``FIXED_LANES`` channels. An item of
the forward pass reads its channels into a tile with the channels last, only those pixels that some ROI
touches and each once, and goes through the ROIs from top to bottom; two threads may have a part of its ROIs
each. An item of the backward pass writes channels and rows that no other item writes, ROI after ROI in one
order: gradients are the same to the last bit with any number of threads.

What differs from kernel to kernel is given when the module is loaded, as functions that are compiled into the
loop. (Functions as arguments of a compiled one would do the same, but numba then keeps nothing on disk.)
"""

from typing import NamedTuple

import numpy as np

from ...geometry import larger, smaller
from ...jit import inner, shared
from ..vector import FIXED_LANES, pointer_to, room
from .bins import (
    nothing_pending,
    prefetch_bins,
    put_bins,
    stage_bins,
    stream_lines,
    take_bins,
    target_of,
    write_bins,
)
from .tables import image_of_place
from .tiles import (
    Tile,
    bins_at,
    empty_tile,
    has_bins,
    item_of,
    items_of,
    places_of,
    planes_of,
    prefetch_part,
    tile_bands,
    tile_slots,
    touch_nothing,
    write_rows,
)


class Memory(NamedTuple):
    """What one thread has for itself."""

    tile: np.ndarray  # rows of a map, the channels last
    marks: np.ndarray  # what the tile holds
    line: np.ndarray  # a row of a map, the channels last
    bins: np.ndarray  # of one ROI, the channels last
    scratch: np.ndarray  # the same, channel by channel, and a line
    found: np.ndarray  # the argmax of these bins, if they are maxima
    found_scratch: np.ndarray


@inner
def _memory_for(rows, shapes, like, are_maxima, place):
    """Memory for a tile of so many rows of numbers like ``like``, and of places like ``place``.

    The caller holds it until all is done.
    """
    area = shapes.pooled_h * shapes.pooled_w
    found = area + 1 if are_maxima else 0
    return Memory(
        room(rows * shapes.width * FIXED_LANES, like),
        room(rows * (shapes.width // FIXED_LANES + 2), np.int64(0)),
        room(shapes.width * FIXED_LANES, like),
        room(area * FIXED_LANES, like),
        room((area + 1) * FIXED_LANES, like),
        room(found * FIXED_LANES, place),
        room(found * FIXED_LANES, place),
    )


@inner(makes_arrays=False)
def _tile_in(memory, rows, shapes):
    return Tile(pointer_to(memory.tile), pointer_to(memory.marks), rows, shapes.width)


@inner
def _work_of(share, shapes, image_at):
    """The work ``[begin, end)`` of a share, counted in ROIs of items: those of the first item, and so on.

    So threads have equally much also where images have different numbers of ROIs, and where there are fewer
    items than threads. A share may begin and end within an item.
    """
    part, parts, _ = share
    images = shapes.images
    work = items_of(shapes) // larger(1, images) * (image_at[images] - image_at[0])
    return part * work // parts, (part + 1) * work // parts


@inner
def _item_at(begin, end, shapes, image_at):
    """The item that work goes on with at ``begin``, and the places of its ROIs before ``end``."""
    items = items_of(shapes) // shapes.images
    image = image_of_place(image_at[0] + begin // items, image_at)
    first, stop = image_at[image], image_at[image + 1]
    done = begin - items * (first - image_at[0])
    place = first + done % (stop - first)
    return image * items + done // (stop - first), (place, smaller(stop, place + end - begin))


@inner
def first_unit(part, parts, units, shapes, image_at):
    """The first unit of a part, where each image has so many and its ROIs say how long a unit takes.

    It takes as long as some ROIs more, for the pixels that are set without any.
    """
    bins = larger(1, shapes.pooled_h * shapes.pooled_w)
    more = 1 + shapes.height * shapes.width // (4 * bins)
    images, image = shapes.images, 0
    rest = part * units * (image_at[images] - image_at[0] + images * more) // parts
    while image < images:
        weight = image_at[image + 1] - image_at[image] + more
        if rest < units * weight:
            return image * units + (rest + weight - 1) // weight
        rest -= units * weight
        image += 1
    return images * units


def forward_items(view, pool, by_rows=False, in_any_order=False, are_maxima=False):
    """The forward loop, as :func:`jit.shared` makes it of a loop.

    ``view(table)`` makes the tables readable. ``pool(r, item, planes, tile, y, x, line, bins, told)``
    computes the bins of ROI ``r``, with the channels last. It is told where the argmax goes, the limits, and
    what is pending of the ROI before it, which it writes itself if that is done ``by_rows``. ``in_any_order``
    says that it does not read the rows of the map from top to bottom. ``plan`` is ``(order, image_at)``, and
    ``more`` the limits of maxima, and their argmax or an empty array.
    """

    @inner(makes_arrays=False)
    def pool_item(item, places, planes, next_planes, shapes, order, table, memory, tile, out, more):
        limits, argmax = more
        y, x = view(table)
        target = target_of(item, out, memory.scratch)
        if are_maxima:
            target_of_found = target_of(item, argmax, memory.found_scratch)
        line, bins, found = pointer_to(memory.line), pointer_to(memory.bins), pointer_to(memory.found)
        first, stop = places
        pending = nothing_pending(target)
        for place in range(first, stop):
            to = bins_at(item, shapes, order[place])
            prefetch_part(item, next_planes, place - first, stop - first)
            prefetch_bins(item, target, to)
            if are_maxima and argmax.size:
                prefetch_bins(item, target_of_found, to)
            if not by_rows:
                stream_lines(pending, 0, pending.lines)
            pool(order[place], item, planes, tile, y, x, line, bins, (found, limits, pending))
            if are_maxima and argmax.size:
                write_bins(found, item, target_of_found, to)
            if target.past_caches:
                pending = stage_bins(bins, item, target, to)
            else:
                put_bins(bins, item, target.out, to)
        stream_lines(pending, 0, pending.lines)

    @shared
    def share_of_items(share, data, shapes, plan, table, out, more):
        order, image_at = plan
        rows = tile_slots(shapes.height, shapes.width, out.itemsize, in_any_order)
        _, argmax = more
        memory = _memory_for(rows, shapes, out.dtype.type(0), are_maxima, argmax.dtype.type(0))
        begin, end = _work_of(share, shapes, image_at)
        while begin < end:
            number, places = _item_at(begin, end, shapes, image_at)
            begin += places[1] - places[0]
            item = item_of(number, shapes)
            if not has_bins(item):
                continue
            planes = planes_of(item, shapes, pointer_to(data))
            next_item = item_of(number + 1, shapes) if begin < end else item
            next_planes = planes_of(next_item, shapes, pointer_to(data))
            tile = _tile_in(memory, rows, shapes)
            empty_tile(tile)
            pool_item(item, places, planes, next_planes, shapes, order, table, memory, tile, out, more)

    return share_of_items


@inner
def _next_in_band(place, stop, band, rows, first):
    """The first place from ``place`` on whose ROI touches the rows of a band, or ``stop``."""
    top, bottom = band
    lowest, reach = rows
    while place < stop and not (lowest[place - first] < bottom and reach[place - first] > top):
        place += 1
    return place


def backward_items(view, rows_of, spread, by_rows=False, are_maxima=False):
    """The backward loop, as :func:`jit.shared` makes it of a loop; its items are bands of rows of items.

    ``rows_of(r, item, y, x)`` are the rows that ROI ``r`` touches. ``spread(r, item, tile, band, y, x, line,
    bins, told)`` adds the gradient of ROI ``r``, whose head gradient is ``bins``, to the rows of a band; it
    is told what comes next and, if there is one, the argmax. With ``by_rows`` it looks only at the bins that
    touch the band, and has what comes next prefetched row by row.
    """

    @inner(makes_arrays=False)
    def spread_band(item, band, shapes, plan, places, y, x, memory, tile, heads, argmax):
        order, _ = plan
        first, stop, rows = places
        line, bins, found = pointer_to(memory.line), pointer_to(memory.bins), pointer_to(memory.found)
        place = _next_in_band(first, stop, band, rows, first)
        while place < stop:
            r = order[place]
            at = bins_at(item, shapes, r)
            place = _next_in_band(place + 1, stop, band, rows, first)
            following = bins_at(item, shapes, r if place == stop else order[place])
            upcoming = take_bins(pointer_to(heads), at, following, item, bins, by_rows)
            if are_maxima:
                take_bins(pointer_to(argmax), at, following, item, found, False)
            spread(r, item, tile, band, y, x, line, bins, (upcoming, found))

    @shared
    def share_of_bands(share, heads, shapes, plan, table, accumulate, grad_data, argmax):
        part, parts, _ = share
        order, image_at = plan
        items = items_of(shapes)
        bands, rows = tile_bands(shapes.height, shapes.width, grad_data.itemsize, parts, items, by_rows)
        place = argmax.dtype.type(0)
        memory = _memory_for(rows, shapes, grad_data.dtype.type(0), are_maxima, place)
        # The rows [lowest, reach) that each ROI of an image touches: all bands of an item ask for them.
        lowest, reach = room(order.size, np.int64(0)), room(order.size, np.int64(0))
        units = items // larger(1, shapes.images) * bands
        begin = first_unit(part, parts, units, shapes, image_at)
        for number in range(begin, first_unit(part + 1, parts, units, shapes, image_at)):
            item = item_of(number // bands, shapes)
            band = number % bands * shapes.height // bands, (number % bands + 1) * shapes.height // bands
            y, x = view(table)
            first, stop = places_of(item, image_at)
            if number == begin or number % bands == 0:
                for place in range(first, stop):
                    lowest[place - first], reach[place - first] = rows_of(order[place], item, y, x)
            tile = _tile_in(memory, rows, shapes)
            touch_nothing(tile)
            places = first, stop, (pointer_to(lowest), pointer_to(reach))
            spread_band(item, band, shapes, plan, places, y, x, memory, tile, heads, argmax)
            planes = planes_of(item, shapes, pointer_to(grad_data))
            write_rows(tile, band[0], band[1] - band[0], planes, accumulate, pointer_to(memory.line))

    return share_of_bands
