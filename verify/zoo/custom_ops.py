"""The Custom operators that the published training and FPN graphs expect a user's module to register.

The same code runs in MXNet and in roiops; ``register(mx)`` registers it in one of them.
"""

import numpy as np


def register(mx):
    """Register ``zoo_proposal_target``, ``zoo_pyramid_proposal`` and ``zoo_fpn_roi_pooling`` with ``mx``."""

    class ProposalTarget(mx.operator.CustomOp):
        """The best ``batch_rois`` proposals with the class and box of the ground truth they overlap most."""

        def __init__(self, num_classes, batch_rois):
            super().__init__()
            self.num_classes, self.batch_rois = num_classes, batch_rois

        def forward(self, is_train, req, in_data, out_data, aux):
            rois = in_data[0].asnumpy()[: self.batch_rois]
            truth = in_data[1].asnumpy().reshape(-1, 5)
            overlap = _overlaps(rois[:, 1:], truth[:, :4])
            best = overlap.argmax(axis=1)
            label = np.where(overlap.max(axis=1) >= 0.5, truth[best, 4], 0)
            target = np.zeros((len(rois), 4 * self.num_classes), np.float32)
            weight = np.zeros_like(target)
            deltas = _deltas(rois[:, 1:], truth[best, :4]) / (0.1, 0.1, 0.2, 0.2)
            for row in np.flatnonzero(label):
                start = 4 * int(label[row])
                target[row, start : start + 4] = deltas[row]
                weight[row, start : start + 4] = 1
            for i, value in enumerate((rois, label, target, weight)):
                self.assign(out_data[i], req[i], mx.nd.array(value))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            for i in range(2):
                self.assign(in_grad[i], req[i], 0)

    @mx.operator.register("zoo_proposal_target")
    class ProposalTargetProp(mx.operator.CustomOpProp):
        def __init__(self, num_classes, batch_rois):
            super().__init__(need_top_grad=False)
            self.num_classes, self.batch_rois = int(num_classes), int(batch_rois)

        def list_arguments(self):
            return ["rois", "gt_boxes"]

        def list_outputs(self):
            return ["rois_output", "label", "bbox_target", "bbox_weight"]

        def infer_shape(self, in_shape):
            count, wide = self.batch_rois, 4 * self.num_classes
            return in_shape, [(count, 5), (count,), (count, wide), (count, wide)]

        def create_operator(self, ctx, shapes, dtypes):
            return ProposalTarget(self.num_classes, self.batch_rois)

        def declare_backward_dependency(self, out_grad, in_data, out_data):
            return []

    class PyramidProposal(mx.operator.CustomOp):
        """Proposals of all levels, the best ``post_nms`` after suppression."""

        def __init__(self, post_nms):
            super().__init__()
            self.post_nms = post_nms

        def forward(self, is_train, req, in_data, out_data, aux):
            height, width, _ = in_data[-1].asnumpy()[0]
            boxes, scores = [], []
            for i, stride in enumerate(_STRIDES):
                probability, deltas = in_data[i].asnumpy(), in_data[len(_STRIDES) + i].asnumpy()
                count = probability.shape[1] // 2
                anchors = _anchors(stride, 8, (0.5, 1, 2), probability.shape[2:])
                deltas = deltas[0].reshape(count, 4, *deltas.shape[2:]).transpose(2, 3, 0, 1).reshape(-1, 4)
                boxes.append(_decode(anchors, deltas, height, width))
                scores.append(probability[0, count:].transpose(1, 2, 0).reshape(-1))
            boxes, scores = np.concatenate(boxes), np.concatenate(scores)
            order = np.argsort(-scores, kind="stable")[:2000]
            kept = order[_suppress(boxes[order], 0.7)][: self.post_nms]
            rows = np.zeros((self.post_nms, 5), np.float32)
            rows[: len(kept), 1:] = boxes[kept]
            if len(kept) < self.post_nms:
                rows[len(kept) :, 1:] = boxes[kept[0]]
            self.assign(out_data[0], req[0], mx.nd.array(rows))

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            for i in range(len(in_grad)):
                self.assign(in_grad[i], req[i], 0)

    @mx.operator.register("zoo_pyramid_proposal")
    class PyramidProposalProp(mx.operator.CustomOpProp):
        def __init__(self, post_nms):
            super().__init__(need_top_grad=False)
            self.post_nms = int(post_nms)

        def list_arguments(self):
            kinds = ("rpn_cls_prob_stride%d", "rpn_bbox_pred_stride%d")
            return [kind % stride for kind in kinds for stride in _STRIDES] + ["im_info"]

        def infer_shape(self, in_shape):
            return in_shape, [(self.post_nms, 5)]

        def create_operator(self, ctx, shapes, dtypes):
            return PyramidProposal(self.post_nms)

        def declare_backward_dependency(self, out_grad, in_data, out_data):
            return []

    class PyramidPooling(mx.operator.CustomOp):
        """Each ROI pooled from the level that fits its size."""

        def __init__(self, deformable):
            super().__init__()
            self.deformable = deformable

        def forward(self, is_train, req, in_data, out_data, aux):
            rois = in_data[0].asnumpy()
            sizes = np.sqrt((rois[:, 3] - rois[:, 1] + 1) * (rois[:, 4] - rois[:, 2] + 1))
            levels = np.clip(np.floor(np.log2(sizes / 224) + 4), 2, 5)
            result = np.zeros(out_data[0].shape, np.float32)
            for i, level in enumerate((2, 3, 4, 5)):
                chosen = np.flatnonzero(levels == level)
                if not len(chosen):
                    continue
                data, boxes = in_data[1 + i], mx.nd.array(rois[chosen])
                if self.deformable:
                    pooled = self._deformable(data, boxes, in_data[5 + i], in_data[9 + i], 2.0**-level)
                else:
                    pooled = mx.nd.ROIPooling(data, boxes, pooled_size=(7, 7), spatial_scale=2.0**-level)
                result[chosen] = pooled.asnumpy()
            self.assign(out_data[0], req[0], mx.nd.array(result))

        @staticmethod
        def _deformable(data, boxes, weight, bias, scale):
            more = {
                "group_size": 1,
                "pooled_size": 7,
                "sample_per_part": 4,
                "part_size": 7,
                "output_dim": 256,
                "spatial_scale": scale,
            }
            pool = mx.nd.contrib.DeformablePSROIPooling
            plain = pool(data, boxes, no_trans=True, **more)[0:]
            trans = mx.nd.FullyConnected(plain, weight, bias, num_hidden=98).reshape((-1, 2, 7, 7))
            return pool(data, boxes, trans, no_trans=False, trans_std=0.1, **more)

        def backward(self, req, out_grad, in_data, out_data, in_grad, aux):
            for i in range(len(in_grad)):
                self.assign(in_grad[i], req[i], 0)

    @mx.operator.register("zoo_fpn_roi_pooling")
    class PyramidPoolingProp(mx.operator.CustomOpProp):
        def __init__(self, with_deformable):
            super().__init__(need_top_grad=False)
            self.deformable = with_deformable == "True"

        def list_arguments(self):
            names = ["rois"] + ["data_p%d" % i for i in (2, 3, 4, 5)]
            for kind in ("weight", "bias") if self.deformable else ():
                names += ["offset_%s_p%d" % (kind, i) for i in (2, 3, 4, 5)]
            return names

        def infer_shape(self, in_shape):
            shapes = list(in_shape[:5])
            if self.deformable:
                shapes += [(98, 256 * 49)] * 4 + [(98,)] * 4
            return shapes, [(in_shape[0][0], in_shape[1][1], 7, 7)]

        def create_operator(self, ctx, shapes, dtypes):
            return PyramidPooling(self.deformable)

        def declare_backward_dependency(self, out_grad, in_data, out_data):
            return []


_STRIDES = (64, 32, 16, 8, 4)


def _areas(boxes):
    return (boxes[:, 2] - boxes[:, 0] + 1) * (boxes[:, 3] - boxes[:, 1] + 1)


def _overlaps(boxes, others):
    low = np.maximum(boxes[:, None, :2], others[None, :, :2])
    high = np.minimum(boxes[:, None, 2:], others[None, :, 2:])
    common = np.prod(np.maximum(high - low + 1, 0), axis=2)
    return common / (_areas(boxes)[:, None] + _areas(others)[None] - common)


def _centres(boxes):
    sizes = boxes[:, 2:] - boxes[:, :2] + 1
    return boxes[:, :2] + 0.5 * (sizes - 1), sizes


def _deltas(boxes, truth):
    (centre, size), (goal, goal_size) = _centres(boxes), _centres(truth)
    return np.concatenate([(goal - centre) / size, np.log(goal_size / size)], 1)


def _anchors(stride, scale, ratios, extent):
    sides = [(round(stride / r**0.5) * scale, round(stride / r**0.5 * r) * scale) for r in ratios]
    base = np.array([[-w / 2, -h / 2, w / 2, h / 2] for w, h in sides], np.float32) + (stride - 1) / 2
    y, x = np.meshgrid(np.arange(extent[0]) * stride, np.arange(extent[1]) * stride, indexing="ij")
    return (np.stack([x, y, x, y], -1).reshape(-1, 1, 4) + base).reshape(-1, 4).astype(np.float32)


def _decode(anchors, deltas, height, width):
    centre, size = _centres(anchors)
    centre = centre + deltas[:, :2] * size
    half = 0.5 * (size * np.exp(np.minimum(deltas[:, 2:], 4)) - 1)
    limits = np.array([width - 1, height - 1] * 2, np.float32)
    return np.clip(np.concatenate([centre - half, centre + half], 1), 0, limits).astype(np.float32)


def _suppress(boxes, threshold):
    kept, left = [], np.arange(len(boxes))
    while len(left):
        kept.append(left[0])
        overlap = _overlaps(boxes[left[:1]], boxes[left[1:]])[0]
        left = left[1:][overlap <= threshold]
    return np.array(kept, np.int64)
