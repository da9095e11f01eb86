"""The detection operators in ONNX: compositions without loops around ``NonMaxSuppression``.

Boxes have four columns in their last axis; where columns are computed apart, each keeps an axis of length 1.
"""

import numpy as np

from ..lowering import lowers

_LEAST = float(np.finfo(np.float32).min)


def _columns(g, boxes, count=4):
    """The columns of the last axis, which each keep it."""
    return g.split(boxes, -1, [1] * count)


def _stacked(g, *columns):
    return g.Concat(*columns, axis=-1)


def _single(g, x):
    """float32, in which coordinates are computed whatever the data are."""
    return x if x.dtype == np.float64 else g.cast(x, np.float32)


def _rows(g, array, index):
    """The rows (batch, k, ...) of ``array`` (batch, n, ...) that ``index`` (batch, k) tells."""
    return g.GatherND(array, g.unsqueeze(index, 2), batch_dims=1)


def _suppressed(g, boxes, scores, threshold, most):
    """``NonMaxSuppression``: which boxes (batch, n, 4) stay, as rows (image, class, box).

    ``scores`` is (batch, classes, n); what is no higher than the least float32 takes no part. A box whose
    ends are reversed is one without area, not the one between them that ONNX takes.
    """
    low, high = g.split(boxes, -1, (2, 2))
    boxes = g.Concat(low, g.Max(low, high), axis=-1)
    return g.NonMaxSuppression(
        g.cast(boxes, np.float32),
        g.cast(scores, np.float32),
        g.shape_of(most),
        np.array([threshold], np.float32),
        np.array([_LEAST], np.float32),
    )


def _marked(g, found, like):
    """Where (batch, n) the rows (image, class, box) point, as booleans; ``like`` has the shape."""
    places = g.Gather(found, np.array([0, 2], np.int64), axis=1)
    ones = g.full(g.slice(g.Shape(found), 0, 0, 1), 1, np.int64)
    return g.ScatterND(g.full(g.Shape(like), 0, np.int64), places, ones) > 0


def _top(g, scores, count):
    return g.TopK(scores, g.shape_of(count), axis=1, outputs=2)


def _fewer(g, most, length):
    """The smaller of a number and a length, which may be open."""
    if isinstance(length, int):
        return min(most, length)
    return g.Min(length, g.ints(most))


# -- suppression -----------------------------------------------------------------------------------------


def _to_corner(g, boxes):
    x, y, width, height = _columns(g, boxes)
    half_width, half_height = width / 2, height / 2
    return _stacked(g, x - half_width, y - half_height, x + half_width, y + half_height)


def _to_center(g, boxes):
    x1, y1, x2, y2 = _columns(g, boxes)
    return _stacked(g, (x1 + x2) / 2, (y1 + y2) / 2, x2 - x1, y2 - y1)


@lowers("_contrib_box_nms", as_function=True)
def box_nms(g, node, data):
    p = node.params
    if p.topk == 0:
        return data
    if p.overlap_thresh < 0:
        node.cannot(f"overlap_thresh must be 0 or more for ONNX's NonMaxSuppression, got {p.overlap_thresh}")
    rows, width = g.dim(data, data.ndim - 2), node.fixed(data, data.ndim - 1)[0]
    flat = _single(g, data)
    if data.ndim != 3:
        flat = g.reshape(flat, -1, rows, width)
    scores = g.column(flat, p.score_index)
    valid = scores > p.valid_thresh
    if p.id_index >= 0:
        valid = valid & ~g.column(flat, p.id_index).equals(p.background_id)
    none = np.array(-np.inf, flat.dtype)
    count = rows if p.topk < 0 else _fewer(g, p.topk, rows)
    best, order = _top(g, g.Where(valid, scores, none), count)
    chosen = _rows(g, flat, order)
    boxes = g.slice(chosen, 2, p.coord_start, p.coord_start + 4)
    if p.in_format == "center":
        boxes = _to_corner(g, boxes)
    if p.overlap_thresh < 1:
        by_class = g.unsqueeze(best, 1)
        if p.id_index >= 0 and not p.force_suppress:
            by_class = _by_class(g, by_class, g.column(chosen, p.id_index))
        found = _suppressed(g, boxes, by_class, p.overlap_thresh, count)
        best, again = _top(g, g.Where(_marked(g, found, best), best, none), count)
        chosen = _rows(g, chosen, again)
    if p.in_format != p.out_format:
        convert = _to_center if p.out_format == "center" else _to_corner
        before, boxes, after = (
            g.slice(chosen, 2, *bounds)
            for bounds in ((0, p.coord_start), (p.coord_start, p.coord_start + 4), (p.coord_start + 4, width))
        )
        # As in MXNet, boxes whose first coordinate is below 0 are left as they are.
        left_out = g.slice(boxes, 2, 0, 1) < np.array(0, flat.dtype)
        chosen = g.Concat(before, g.Where(left_out, boxes, convert(g, boxes)), after, axis=2)
    kept = g.Where(g.unsqueeze(best > none, 2), chosen, np.array(-1, flat.dtype))
    if p.topk > 0 and not (isinstance(rows, int) and rows == count):
        rest = rows - count if isinstance(rows, int) else rows - g.length(count)
        kept = g.Pad(kept, g.shape_of(0, 0, 0, 0, rest, 0), np.array(-1, flat.dtype))
    if data.ndim != 3:
        kept = node.reshape_like(g, kept, data)
    return g.cast(kept, data.dtype)


def _by_class(g, scores, classes):
    """Scores (batch, 1, n) as (batch, classes, n): each in its class, the others out of the running."""
    group = g.Max(g.cast(classes, np.int64) + np.int64(1), np.int64(0))
    most = g.reshape(g.reduce("Max", group, (0, 1)), 1)
    numbers = g.reshape(g.range(most + np.int64(1)), 1, -1, 1)
    return g.Where(g.unsqueeze(group, 1).equals(numbers), scores, np.array(-np.inf, scores.dtype))


# -- codes of boxes --------------------------------------------------------------------------------------


@lowers("_contrib_box_decode", as_function=True)
def box_decode(g, node, data, anchors):
    p = node.params
    codes, anchor = _columns(g, _single(g, data)), _columns(g, _single(g, anchors))
    ends = []
    for axis in range(2):
        centre, size = anchor[axis], anchor[2 + axis]
        if p.format == "corner":
            size = size - centre
            centre = centre + size * 0.5
        middle = codes[axis] * (p.std0, p.std1)[axis] * size + centre
        log_ratio = codes[2 + axis] * (p.std2, p.std3)[axis]
        if p.clip > 0:
            log_ratio = g.Min(log_ratio, p.clip)
        reach = g.Exp(log_ratio) * size * 0.5
        ends.append((middle - reach, middle + reach))
    (x1, x2), (y1, y2) = ends
    return g.cast(_stacked(g, x1, y1, x2, y2), data.dtype)


@lowers("_contrib_box_encode", as_function=True)
def box_encode(g, node, samples, matches, anchors, refs, means, stds):
    positive = g.unsqueeze(samples > 0.5, 2)
    index = g.Max(g.cast(matches, np.int64), np.int64(0))
    ref, anchor = _columns(g, _rows(g, refs, index)), _columns(g, anchors)
    shifts, log_ratios = [], []
    for axis in range(2):
        ref_size, size = ref[2 + axis] - ref[axis], anchor[2 + axis] - anchor[axis]
        shifts.append((ref[axis] + ref_size * 0.5 - (anchor[axis] + size * 0.5)) / size)
        log_ratios.append(g.Log(ref_size / size))
    targets = (_stacked(g, *shifts, *log_ratios) - means) / stds
    zero = np.array(0, anchors.dtype)
    mask = g.Expand(g.cast(positive, anchors.dtype), g.Shape(anchors))
    return g.Where(positive, targets, zero), mask


@lowers("_contrib_box_iou", as_function=True)
def box_iou(g, node, lhs, rhs):
    zero = np.array(0, lhs.dtype)

    def prepared(boxes, axis):
        corners = _to_corner(g, boxes) if node.params.format == "center" else boxes
        x1, y1, x2, y2 = (g.unsqueeze(g.reshape(c, -1), axis) for c in _columns(g, corners))
        return x1, y1, x2, y2, g.Max(x2 - x1, zero) * g.Max(y2 - y1, zero)

    x1, y1, x2, y2, area = prepared(lhs, 1)
    u1, v1, u2, v2, other = prepared(rhs, 0)
    both = g.Max(g.Min(x2, u2) - g.Max(x1, u1), zero) * g.Max(g.Min(y2, v2) - g.Max(y1, v1), zero)
    overlap = g.Where(both > 0, both / (area + other - both), zero)
    return overlap if lhs.ndim == rhs.ndim == 2 else g.reshape(overlap, *node.lengths(g, 0, lhs, rhs))


# -- proposals -------------------------------------------------------------------------------------------


@lowers("_contrib_MultiProposal", "_contrib_Proposal", as_function=True)
def proposal(g, node, cls_prob, bbox_pred, im_info):
    from ...kernels.cpu.detection.proposal import base_anchors

    p = node.params
    base = base_anchors(p.scales, p.ratios, p.feature_stride)
    scores, deltas, info = (_single(g, x) for x in (cls_prob, bbox_pred, im_info))
    count = len(base)
    height, width = g.dim(cls_prob, 2), g.dim(cls_prob, 3)
    scores = g.slice(scores, 1, count, 2 * count)
    deltas = g.reshape(deltas, 0, count, 4, height, width)
    settings = p.feature_stride, p.rpn_min_size, p.iou_loss
    boxes, scores = proposal_boxes(g, scores, deltas, info, base, height, width, *settings)
    flat = g.reshape(g.Transpose(scores, perm=[0, 2, 3, 1]), 0, -1)
    boxes = g.reshape(g.Transpose(boxes, perm=[0, 3, 4, 1, 2]), 0, -1, 4)
    total = height * width * count if isinstance(height, int) and isinstance(width, int) else None
    if total is None:
        total = g.slice(g.Shape(flat), 0, 1, 2)
    considered = total if p.rpn_pre_nms_top_n <= 0 else _fewer(g, p.rpn_pre_nms_top_n, total)
    best, order = _top(g, flat, considered)
    boxes = _rows(g, boxes, order)
    x1, y1, x2, y2 = _columns(g, boxes)
    # ONNX measures boxes from edge to edge; these include their last pixel.
    found = _suppressed(
        g, _stacked(g, x1, y1, x2 + 1, y2 + 1), g.unsqueeze(best, 1), p.threshold, p.rpn_post_nms_top_n
    )
    places, image = repeated(g, found, g.dim(cls_prob, 0), p.rpn_post_nms_top_n)
    chosen = _rows(g, boxes, places)
    rois = g.reshape(_stacked(g, g.cast(image, boxes.dtype), chosen), -1, 5)
    kept = g.reshape(_rows(g, best, places), -1, 1)
    return g.cast(rois, cls_prob.dtype), g.cast(kept, cls_prob.dtype)


def proposal_boxes(g, scores, deltas, info, base, height, width, stride, least, corners):
    """Boxes (images, anchors, 4, height, width) and scores (images, anchors, height, width).

    Boxes that cannot be used have score -1, as :func:`roiops.kernels.cpu.proposal.decode` marks them.
    """
    kind = scores.dtype

    def cells(count, axis):
        numbers = g.cast(g.range(count), kind)
        return g.reshape(numbers, *(-1 if a == axis else 1 for a in (2, 3))), numbers

    (rows, _), (columns, _) = cells(height, 2), cells(width, 3)
    im_height, im_width, scale = (g.reshape(c, -1, 1, 1, 1) for c in _columns(g, info, 3))
    small = scale * float(least)
    ends = []
    for axis, (cell, size) in enumerate(((columns, im_width), (rows, im_height))):
        low, high = (base[:, a].astype(kind).reshape(-1, 1, 1) for a in (axis, 2 + axis))
        shift = cell * float(stride)
        first, second = (g.column(deltas, a, axis=2) for a in (axis, 2 + axis))
        if corners:
            near, far = shift + low + first, shift + high + second
        else:
            extent = high - low + 1
            centre = first * extent + (shift + (low + (extent - 1) / 2))
            reach = (g.Exp(second) * extent - 1) * 0.5
            near, far = centre - reach, centre + reach
        last = size - 1
        ends.append(tuple(g.Max(g.Min(x, last), np.array(0, kind)) for x in (near, far)))
    (x1, x2), (y1, y2) = ends
    off_image = (rows >= g.Floor(im_height / float(stride))) | (columns >= g.Floor(im_width / float(stride)))
    tiny = ((x2 - x1 + 1) < small) | ((y2 - y1 + 1) < small)
    grow = g.Where(tiny, small * 0.5, np.array(0, kind))
    scores = g.Where(tiny | off_image, np.array(-1, kind), scores)
    boxes = g.Concat(*(g.unsqueeze(x, 2) for x in (x1 - grow, y1 - grow, x2 + grow, y2 + grow)), axis=2)
    return boxes, scores


def repeated(g, found, images, count):
    """``count`` kept boxes for each image, over again where there are fewer, and the image's number.

    ``found`` are the rows (image, class, box) of ``NonMaxSuppression``; the results are (images, count) and
    (images, count, 1).
    """
    image, box = g.column(found, 0, axis=1), g.column(found, 2, axis=1)
    numbers = g.range(images)
    mine = g.cast(g.unsqueeze(image, 0).equals(g.unsqueeze(numbers, 1)), np.int64)
    kept = g.reduce("Sum", mine, [1], keepdims=True)
    start = g.CumSum(kept, np.int64(0), exclusive=1)
    places = g.Gather(box, start + g.Mod(np.arange(count, dtype=np.int64)[None], kept), axis=0)
    return places, g.Expand(g.reshape(numbers, -1, 1, 1), g.ints(1, count, 1))


# -- SSD -------------------------------------------------------------------------------------------------


@lowers("_contrib_MultiBoxPrior", shape_only=("data",))
def multi_box_prior(g, node, data):
    p, kind = node.params, np.float32
    if -1 not in data.shape[2:]:
        return g.constant(
            node.computed(np.broadcast_to(np.zeros((), data.dtype), (1, 1, *data.shape[2:])))[0]
        )
    lengths = [g.dim(data, 2), g.dim(data, 3)]
    height, width = (g.cast(g.shape_of(n), kind) for n in lengths)
    own_steps = p.steps[0] <= 0 or p.steps[1] <= 0
    centres = []
    for axis, (length, size) in enumerate(zip(lengths, (height, width), strict=True)):
        step = g.Reciprocal(size) if own_steps else kind(p.steps[axis])
        centre = (g.cast(g.range(length), kind) + float(p.offsets[axis])) * step
        centres.append(g.reshape(centre, *(-1 if a == axis else 1 for a in range(3))))
    roots = np.sqrt(np.asarray(p.ratios, kind))
    size = np.concatenate([np.asarray(p.sizes, kind), np.full(roots.size - 1, p.sizes[0], kind)])
    root = np.concatenate([np.full(len(p.sizes), roots[0], kind), roots[1:]])
    reach_x = g.Mul(size, height) / width * root / 2
    reach_y = g.constant(size / root / kind(2))
    y, x = centres
    grid = g.shape_of(*lengths, len(size))
    ends = [g.unsqueeze(g.Expand(e, grid), 3) for e in (x - reach_x, y - reach_y, x + reach_x, y + reach_y)]
    boxes = g.reshape(g.Concat(*ends, axis=3), 1, -1, 4)
    return g.cast(g.clip(boxes, 0, 1) if p.clip else boxes, node.dtypes[0])


@lowers("_contrib_MultiBoxDetection", as_function=True)
def multi_box_detection(g, node, cls_prob, loc_pred, anchor):
    p = node.params
    kind = np.dtype(np.float64 if cls_prob.dtype == np.float64 else np.float32)
    scores, codes, anchors = (_single(g, x) for x in (cls_prob, loc_pred, anchor))
    classes = node.fixed(cls_prob, 1)[0] - 1
    total = g.dim(cls_prob, 2)
    foreground = g.slice(scores, 1, 1)
    score = g.reduce("Max", foreground, [1])
    class_id = g.cast(g.ArgMax(foreground, axis=1, keepdims=0), kind)
    valid = score >= float(np.float32(p.threshold))
    boxes = _ssd_boxes(g, g.reshape(codes, 0, -1, 4), anchors, p.variances, p.clip)
    nothing = np.array(-1, kind)
    rows = g.Concat(g.unsqueeze(class_id, 2), g.unsqueeze(score, 2), boxes, axis=2)
    rows = g.Where(g.unsqueeze(valid, 2), rows, nothing)
    # In the order of the anchors, those that are no detections last.
    numbers = g.range(total)
    places = g.Where(valid, numbers, numbers + g.length(total))
    _, order = g.TopK(places, g.shape_of(total), axis=1, largest=0, outputs=2)
    found = _rows(g, rows, order)
    if not 0 < p.nms_threshold <= 1:
        return g.cast(found, cls_prob.dtype)
    considered = total if p.nms_topk <= 0 else _fewer(g, p.nms_topk, total)
    none = np.array(-np.inf, kind)
    best, order = _top(g, g.Where(valid, score, none), considered)
    chosen = _rows(g, rows, order)
    by_class = g.unsqueeze(best, 1)
    if not p.force_suppress and classes > 1:
        group = g.unsqueeze(g.column(chosen, 0), 1)
        by_class = g.Where(group.equals(np.arange(classes, dtype=kind).reshape(1, -1, 1)), by_class, none)
    # A box is dropped at the threshold itself; ONNX drops above its own.
    above = float(np.nextafter(np.float32(p.nms_threshold), np.float32(-1)))
    kept = _marked(g, _suppressed(g, g.slice(chosen, 2, 2, 6), by_class, above, considered), best)
    first = np.array([0], np.int64)
    class_kept = g.Where(g.unsqueeze(kept, 2), g.Gather(chosen, first, axis=2), nothing)
    chosen = g.Concat(class_kept, g.slice(chosen, 2, 1, 6), axis=2)
    if p.nms_topk <= 0:
        return g.cast(chosen, cls_prob.dtype)
    # Boxes that did not take part stay where they were, without a class.
    head = g.slice(found, 1, 0, considered)
    chosen = g.Where(g.unsqueeze(best > none, 2), chosen, head)
    tail = g.slice(found, 1, considered)
    tail = g.Concat(g.Gather(tail, first, axis=2) * 0.0 - 1.0, g.slice(tail, 2, 1, 6), axis=2)
    return g.cast(g.Concat(chosen, tail, axis=1), cls_prob.dtype)


def _ssd_boxes(g, codes, anchors, variances, clip):
    """Boxes (batch, n, 4) from their codes and the anchors."""
    codes, anchor, ends = _columns(g, codes), _columns(g, anchors), []
    for axis in range(2):
        low, high = anchor[axis], anchor[2 + axis]
        size, centre = high - low, (low + high) / 2
        middle = codes[axis] * float(np.float32(variances[axis])) * size + centre
        reach = g.Exp(codes[2 + axis] * float(np.float32(variances[2 + axis]))) * size / 2
        ends.append([g.clip(x, 0, 1) if clip else x for x in (middle - reach, middle + reach)])
    (x1, x2), (y1, y2) = ends
    return _stacked(g, x1, y1, x2, y2)


@lowers("_contrib_MultiBoxTarget", as_function=True)
def multi_box_target(g, node, anchor, label, cls_pred):
    """What a training graph computes. Each object takes an anchor in turn, so their number must be known."""
    p = node.params
    kind = anchor.dtype
    objects = node.fixed(label, 1)[0]
    total = g.dim(anchor, 1)
    zero, minus = np.array(0, kind), np.array(-1, kind)
    label = g.slice(g.cast(label, kind), 2, 0, 5)
    # Objects end at the first row of class -1.
    ended = g.CumSum(g.cast(g.column(label, 0).equals(-1), np.int64), np.int64(1))
    there = ended.equals(0)  # (images, objects)
    any_there = g.reduce("Max", g.cast(there, np.int64), [1], keepdims=True) > 0

    a = [g.squeeze(c, 2) for c in _columns(g, anchor)]  # (1, anchors)
    b = _columns(g, g.slice(label, 2, 1, 5))  # (images, objects, 1)
    a = [g.unsqueeze(c, 1) for c in a]
    width = g.Max(g.Min(a[2], b[2]) - g.Max(a[0], b[0]), zero)
    height = g.Max(g.Min(a[3], b[3]) - g.Max(a[1], b[1]), zero)
    both = width * height
    union = (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - both
    overlap = g.Where(union.equals(0), zero, both / union)
    overlap = g.Where(g.unsqueeze(there, 2), overlap, minus)  # (images, objects, anchors)

    # The best pair of a free object and a free anchor, once for each object; of equals the first anchor.
    least = np.array(1e-6, kind)
    free = g.Transpose(overlap, perm=[0, 2, 1])
    match = g.full(g.slice(g.Shape(free), 0, 0, 2), -1, np.int64)
    anchors = g.reshape(g.range(total), 1, -1, 1)
    numbers = np.arange(objects, dtype=np.int64).reshape(1, 1, -1)
    for _ in range(objects):
        flat = g.reshape(free, 0, -1)
        place = g.ArgMax(flat, axis=1, keepdims=1)
        found = g.reduce("Max", flat, [1], keepdims=True) > least
        row = g.unsqueeze(g.Where(found, place / np.int64(objects), np.int64(-1)), 2)
        column = g.unsqueeze(g.Where(found, g.Mod(place, np.int64(objects)), np.int64(-1)), 2)
        mine, its = anchors.equals(row), column.equals(numbers)
        match = g.Where(g.squeeze(mine, 2), g.squeeze(column, 2), match)
        free = g.Where(mine | its, minus, free)
    best = g.reduce("Max", overlap, [1])
    if p.overlap_threshold > 0:
        of_best = g.ArgMax(overlap, axis=1, keepdims=0)
        near = (best > np.float32(p.overlap_threshold).astype(kind)) & (match < 0)
        match = g.Where(near, of_best, match)
    positive = match >= 0

    if p.negative_mining_ratio > 0:
        chance = g.column(g.Softmax(cls_pred, axis=1), 0, axis=1)
        open_ = ~positive & (best < np.float32(p.negative_mining_thresh).astype(kind))
        count = g.reduce("Sum", g.cast(positive, np.float32), [1], keepdims=True)
        wanted = g.cast(g.Floor(count * np.float32(p.negative_mining_ratio)), np.int64)
        doubt = g.Where(open_, -chance, np.array(-np.inf, chance.dtype))
        doubt, order = _top(g, doubt, total)
        taken = (g.unsqueeze(g.range(total), 0) < wanted) & (doubt > np.array(-np.inf, doubt.dtype))
        none = g.full(g.Shape(match), 0, np.int64)
        negative = g.ScatterElements(none, order, g.cast(taken, np.int64), axis=1) > 0
        classes = g.Where(negative, zero, np.array(p.ignore_label, kind))
    else:
        classes = g.Where(any_there, zero, np.array(p.ignore_label, kind))
    mine = _rows(g, label, g.Max(match, np.int64(0)))  # (images, anchors, 5)
    classes = g.Where(positive, g.column(mine, 0) + 1, classes)
    classes = g.Expand(classes, g.Shape(match))

    ref, anchor_columns = _columns(g, mine, 5)[1:], _columns(g, anchor)
    shifts, log_ratios = [], []
    for axis in range(2):
        low, high = anchor_columns[axis], anchor_columns[2 + axis]
        size, ref_size = high - low, ref[2 + axis] - ref[axis]
        centre, ref_centre = (low + high) * 0.5, (ref[axis] + ref[2 + axis]) * 0.5
        shifts.append((ref_centre - centre) / size / float(np.float32(p.variances[axis])))
        log_ratios.append(g.Log(ref_size / size) / float(np.float32(p.variances[2 + axis])))
    chosen = g.unsqueeze(positive, 2)
    location = g.Where(chosen, _stacked(g, *shifts, *log_ratios), zero)
    mask = g.Expand(g.cast(chosen, kind), g.Shape(location))
    return g.Flatten(location, axis=1), g.Flatten(mask, axis=1), classes


# -- deformable convolution ------------------------------------------------------------------------------


@lowers("_contrib_ModulatedDeformableConvolution", opset=19, oldest=17)
def modulated_deformable_convolution(g, node, data, offset, mask, weight, bias=None):
    return _deform_conv(g, node, data, offset, mask, weight, bias, [g.dim(offset, 2), g.dim(offset, 3)])


@lowers("_contrib_DeformableConvolution", opset=19, oldest=17)
def deformable_convolution(g, node, data, offset, weight, bias=None):
    """Version 1 reads 0 where a tap leaves the map, where ONNX fades out over a pixel; a mask does that."""
    p, kind = node.params, offset.dtype
    out = [g.dim(offset, 2), g.dim(offset, 3)]
    pairs, mask, moved = _offset_pairs(g, p, _single(g, offset), out), None, []
    single = pairs.dtype.type
    for axis in range(2):
        shift = g.column(pairs, axis, axis=3)
        place = shift + _tap_bases(g, p, axis, out[axis], single)
        size = g.length(g.dim(data, 2 + axis), single)
        inside = (place >= 0) & (place < size)
        mask = inside if mask is None else mask & inside
        on_map = g.Max(g.Min(place, size - single(1)), single(0))
        moved.append(g.unsqueeze(shift + (on_map - place), 3))
    channels = p.num_deformable_group * p.kernel[0] * p.kernel[1]
    offset = g.cast(g.reshape(g.Concat(*moved, axis=3), 0, 2 * channels, *out), kind)
    mask = g.reshape(g.cast(mask, kind), 0, channels, *out)
    return _deform_conv(g, node, data, offset, mask, weight, bias, out)


def _offset_pairs(g, p, offset, out):
    """Offsets as (images, groups, taps, 2, rows, columns), y before x."""
    return g.reshape(offset, 0, p.num_deformable_group, p.kernel[0] * p.kernel[1], 2, *out)


def _tap_bases(g, p, axis, length, kind):
    """Where a kernel's taps lie before they are moved, along one axis, as (taps, rows, columns)."""
    tap = np.divmod(np.arange(p.kernel[0] * p.kernel[1]), p.kernel[1])[axis]
    taps = (tap * p.dilations[axis] - p.pads[axis]).astype(kind).reshape(-1, 1, 1)
    cells = g.cast(g.range(length), kind) * float(p.strides[axis])
    return g.reshape(cells, *((-1, 1) if axis == 0 else (1, -1))) + taps


def _deform_conv(g, node, data, offset, mask, weight, bias, out):
    p = node.params
    if g.opset < 19:
        return _sampled_conv(g, node, data, offset, mask, weight, bias, out)
    return g.DeformConv(
        data,
        weight,
        offset,
        bias,
        mask,
        kernel_shape=p.kernel,
        strides=p.strides,
        dilations=p.dilations,
        pads=p.pads * 2,
        group=p.num_group,
        offset_group=p.num_deformable_group,
    )


def _sampled_conv(g, node, data, offset, mask, weight, bias, out):
    """What ``DeformConv`` does: all taps are sampled, and weighed by a convolution of one pixel."""
    p = node.params
    groups, taps = p.num_deformable_group, p.kernel[0] * p.kernel[1]
    (channels,) = node.fixed(data, 1)
    size = [g.dim(data, 2), g.dim(data, 3)]
    pairs, places = _offset_pairs(g, p, _single(g, offset), out), []
    single = pairs.dtype.type
    for axis in range(2):
        # GridSample counts from -1 to 1, from one edge of the map to the other.
        place = g.column(pairs, axis, axis=3) + _tap_bases(g, p, axis, out[axis], single)
        extent = g.length(size[axis], single)
        places.append(g.reshape((place * 2 + 1) / extent - 1, -1, *_flat_taps(taps, out), 1))
    grid = g.Concat(places[1], places[0], axis=3)  # x before y
    maps = g.reshape(_single(g, data), -1, channels // groups, *size)
    read = g.GridSample(maps, grid, align_corners=0, padding_mode="zeros")
    read = g.reshape(read, -1, groups, channels // groups, taps, *out)
    read = read * g.reshape(_single(g, mask), -1, groups, 1, taps, *out)
    columns = g.cast(g.reshape(read, -1, channels * taps, *out), data.dtype)
    filters = g.reshape(weight, weight.shape[0], -1, 1, 1)
    return g.Conv(columns, filters, bias, kernel_shape=(1, 1), group=p.num_group)


def _flat_taps(taps, out):
    """The lengths (taps x rows, columns)."""
    rows, columns = out
    return (rows * taps if isinstance(rows, int) else rows * np.int64(taps)), columns
