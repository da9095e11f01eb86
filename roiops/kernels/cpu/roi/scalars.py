"""The means of :mod:`average` number by number: the way for one channel, and for a few of a few boxes.

Turned into rows of lanes they would take longer. Sums are formed in the same order as in :mod:`lanes`, so
that a box's means are the same bits in a small call and in a large one.
"""

import numpy as np

from ... import geometry
from ...jit import inner, shared
from ...shares import within
from ..vector import multiply_add, pointer_to, room
from . import tables
from .addresses import backward_kernel, forward_kernel


@inner
def _planes_of_bins(shapes):
    """Where in an image the plane begins that each bin of the first output channel reads.

    Divisions take longer than the few pixels of a bin, so they are done once.
    """
    starts = room(shapes.pooled_h * shapes.pooled_w, np.int64(0))
    for i in range(shapes.pooled_h):
        group_y = geometry.group_of(i, shapes.pooled_h, shapes.groups_h)
        for j in range(shapes.pooled_w):
            group_x = geometry.group_of(j, shapes.pooled_w, shapes.groups_w)
            channel = geometry.channel_of(0, group_y, group_x, shapes.groups_h, shapes.groups_w)
            starts[i * shapes.pooled_w + j] = channel * shapes.plane_step
    return starts


@inner
def _put_mean(bins, to, pixels, at, steps, y, rows, x, columns):
    """Write the mean over entries ``rows`` of y and ``columns`` of x of the plane that begins at ``at``."""
    row_step, pixel_step = steps
    total = type(y.weight[0])(0)
    for m in range(columns[0], columns[1]):
        mean, column = type(y.weight[0])(0), at + x.pixel[m] * pixel_step
        for k in range(rows[0], rows[1]):
            mean = multiply_add(y.weight[k], pixels[column + y.pixel[k] * row_step], mean)
        total = multiply_add(x.weight[m], mean, total)
    bins[to] = total


@inner
def _spread(bins, to, pixels, at, steps, y, rows, x, columns):
    """Add the gradient of such a mean."""
    row_step, pixel_step = steps
    for k in range(rows[0], rows[1]):
        row = at + y.pixel[k] * row_step
        of_row = y.weight[k] * bins[to]
        for m in range(columns[0], columns[1]):
            pixels[row + x.pixel[m] * pixel_step] += x.weight[m] * of_row


@inner
def _build(launcher, parts, call, rois):
    """The tables, and the boxes of each image in the order of their numbers."""
    images = call[1].images
    _, table = tables.build(launcher, parts, call, rois)
    return tables.in_order(tables.images_of(rois, images), images), table


def _boxes(visit):
    """A function that goes through the bins of a share of ROIs; ``visit`` deals with each of a channel."""

    @inner
    def boxes(share, shapes, plan, table, pixels, bins):
        order, image_at = plan
        image_size = shapes.in_channels * shapes.height * shapes.width
        step = shapes.groups_h * shapes.groups_w * shapes.plane_step
        steps = shapes.width * shapes.pixel_step, shapes.pixel_step
        area = shapes.pooled_h * shapes.pooled_w
        starts = _planes_of_bins(shapes)
        y, x = tables.axes_of(table)
        for number in within(share, order.size - image_at[0]):
            place = image_at[0] + number
            r, image = order[place], tables.image_of_place(place, image_at)
            for b in range(area):
                i, j = r * (shapes.pooled_h + 1) + b // shapes.pooled_w, b % shapes.pooled_w
                j += r * (shapes.pooled_w + 1)
                rows, columns = (y.at[i], y.at[i + 1]), (x.at[j], x.at[j + 1])
                for c in range(shapes.out_channels):
                    at = starts[b] + image * image_size + c * step
                    to = r * shapes.out_channels * area + b * shapes.bin_step + c * shapes.bins_step
                    visit(bins, to, pixels, at, steps, y, rows, x, columns)

    return boxes


_means, _gradients = _boxes(_put_mean), _boxes(_spread)


@shared
def _forward(share, data, shapes, plan, table, out, more):
    _means(share, shapes, plan, table, pointer_to(data), pointer_to(out))


@inner
def _backward(launcher, parts, heads, shapes, plan, table, accumulate, grad_data, more):
    if not accumulate:
        for p in range(grad_data.size):
            grad_data[p] = 0
    _gradients((0, 1, 0), shapes, plan, table, pointer_to(grad_data), pointer_to(heads))


FORWARD = forward_kernel(__name__, _build, _forward)
BACKWARD = backward_kernel(__name__, _build, _backward)
