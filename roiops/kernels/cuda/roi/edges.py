"""The gradient of boxes, where an operator has one, and what lies outside the map: as on the CPU.

A block sums up the gradient of one edge of one box. Its threads share the bins and channels out among
themselves, and add up in one order.

``tests/reference.py`` has the operators in plain loops: ``precise`` and ``crop_and_resize``.
"""

import functools

import numpy as np

from ... import geometry
from ..number import computing, kind_of
from ..runtime import contiguous, cuda, device, flat_output, flat_view, kernel, launch
from . import tiles
from .average import boxes_and_setting
from .tiles import add_up


@functools.cache
def _derivative(rules, name):
    real, _, read, _ = computing(name)

    @device
    def derivative(data, base, strides, y, i, x, j, edge):
        """The derivative of one mean by an edge: near and far y, near and far x."""
        total = real(0)
        top, bottom = geometry.edge_pixels(rules, y, i)
        left, right = geometry.edge_pixels(rules, x, j)
        for row in range(top, bottom):
            if edge < 2:
                weight_y = geometry.edge_slope(rules, y, i, edge == 1, row)
            else:
                weight_y = geometry.edge_mean(rules, y, i, row)
            for column in range(left, right):
                if edge < 2:
                    weight_x = geometry.edge_mean(rules, x, j, column)
                else:
                    weight_x = geometry.edge_slope(rules, x, j, edge == 3, column)
                place = base + row * strides[2] + column * strides[3]
                total += weight_y * weight_x * read(data[np.uint64(place)])
        return total

    return derivative


@functools.cache
def edges_kernel(rules, name, accumulate, sizes):
    real, shared, read, _ = computing(name)
    derivative, threads = _derivative(rules, name), sizes.threads

    @kernel()
    def box_edges(heads, data, strides, rois, setting, channels, grad):
        sums = cuda.shared.array(threads, shared)
        thread = cuda.threadIdx.x
        area = setting.pooled_h * setting.pooled_w
        for item in range(cuda.blockIdx.x, rois.shape[0] * 5, cuda.gridDim.x):
            r, edge = item // 5, item % 5  # the fifth is the image index
            n = geometry.image_of(rois, r, setting.images)
            mine = real(0)
            if n >= 0 and edge < 4:
                y, x = geometry.box_axes(rules, rois, r, setting)
                for unit in range(thread, area * channels, threads):
                    c, spot = unit // area, unit % area
                    i, j = spot // setting.pooled_w, spot % setting.pooled_w
                    head = read(heads[np.uint64((r * channels + c) * area + spot)])
                    base = n * strides[0] + c * strides[1]
                    mine += head * derivative(data, base, strides, y, i, x, j, edge)
            sums[thread] = mine
            cuda.syncthreads()
            add_up(sums, thread, threads, 1)
            if thread == 0:
                column, scale = 0, real(0)
                if edge < 4:
                    column = geometry.edge_column(rules, edge // 2) + 2 * (edge % 2)
                    extent = setting.height if edge < 2 else setting.width
                    scale = geometry.edge_scale(rules, setting.scale, extent)
                value = sums[0] * scale if edge < 4 else real(0)
                at = np.uint64(r * 5 + column)
                if accumulate:
                    value += real(grad[at])
                grad[at] = value  # which need not be of the data's dtype
            cuda.syncthreads()

    return box_edges


def backward(grad_out, data, rois, how, accumulate, grad_rois):
    """Write, or add, the gradient of the boxes; the image index has none."""
    if grad_rois.size == 0:
        return
    sizes, name = tiles.SIZES, kind_of(data.dtype)
    elements, strides = flat_view(data)
    with flat_output(grad_rois) as target:
        derive = edges_kernel(how.rules, name, bool(accumulate), sizes)
        boxes = boxes_and_setting(how, rois, name, data, grad_out)
        inputs = contiguous(grad_out).reshape(-1), elements, strides, *boxes
        launch(derive, grad_rois.size, sizes.threads, *inputs, grad_out.shape[1], target)


@functools.cache
def outside_kernel(rules, name):
    write = computing(name).write

    @kernel()
    def points_outside(rois, setting, channels, value, out):
        area = setting.pooled_h * setting.pooled_w
        for unit in range(cuda.grid(1), rois.shape[0] * area, cuda.gridsize(1)):
            r, spot = unit // area, unit % area
            if geometry.image_of(rois, r, setting.images) >= 0:
                y, x = geometry.box_axes(rules, rois, r, setting)
                valid_y = geometry.sample(rules, y, spot // setting.pooled_w, 0, 1)[0]
                valid_x = geometry.sample(rules, x, spot % setting.pooled_w, 0, 1)[0]
                if not (valid_y and valid_x):
                    for c in range(channels):
                        out[np.uint64((r * channels + c) * area + spot)] = write(value)

    return points_outside


def fill_outside(value, data, rois, how, out):
    """Set the bins whose point lies outside the maps to ``value``."""
    if out.size == 0:
        return
    name = kind_of(out.dtype)
    units = out.shape[0] * out.shape[2] * out.shape[3]
    with flat_output(out) as target:
        boxes = boxes_and_setting(how, rois, name, data, out)
        inputs = *boxes, out.shape[1], computing(name).real(value)
        tiles.launch_each(outside_kernel(how.rules, name), units, *inputs, target)
