"""torchvision's MultiScaleRoIAlign: outputs and gradients of all maps."""

from collections import OrderedDict

import numpy as np
import torch
import torchvision

from golden_format import CaseFile

IMAGE = 128


def record(file, label, rng, levels, pooled, ratio):
    maps = [
        rng.normal(size=(2, 3, IMAGE >> (k + 2), IMAGE >> (k + 2))).astype(np.float32) for k in range(levels)
    ]
    count = 9
    corner = rng.uniform(-10, IMAGE * 0.8, (count, 2))
    size = np.exp(rng.uniform(np.log(2), np.log(1000), (count, 1))) * np.exp(
        rng.uniform(-0.7, 0.7, (count, 2))
    )
    boxes = np.concatenate([corner, corner + size], axis=1).astype(np.float32)
    index = np.sort(rng.randint(0, 2, count))
    leaves = [torch.from_numpy(each).requires_grad_() for each in maps]
    pool = torchvision.ops.MultiScaleRoIAlign([str(k) for k in range(levels)], pooled, ratio)
    lists = [torch.from_numpy(boxes[index == n]) for n in range(2)]
    out = pool(OrderedDict((str(k), leaf) for k, leaf in enumerate(leaves)), lists, [(IMAGE, IMAGE)] * 2)
    grad_out = rng.normal(size=tuple(out.shape)).astype(np.float32)
    out.backward(torch.from_numpy(grad_out))
    params = {"output_size": pooled, "sampling_ratio": ratio, "num_levels": levels}
    params["spatial_scales"] = [0.5 ** (k + 2) for k in range(levels)]
    rois = np.concatenate([index[:, None], boxes], axis=1).astype(np.float32)
    arrays = {"rois": rois, "out": out.detach().numpy(), "grad_out": grad_out}
    for k, (each, leaf) in enumerate(zip(maps, leaves)):
        arrays[f"data{k}"] = each
        arrays[f"grad_data{k}"] = np.zeros_like(each) if leaf.grad is None else leaf.grad.numpy()
    file.add("MultiScaleRoIAlign", label, params, arrays)


def main():
    torch.set_num_threads(1)
    file = CaseFile("roi/torchvision_MultiScaleRoIAlign", "torchvision", torchvision.__version__, __file__)
    rng = np.random.RandomState(81)
    for k in range(12):
        levels, ratio = (4, 1, 3, 2)[k % 4], (2, 0, 1)[k % 3]
        record(file, f"{levels} maps", rng, levels, [(2, 2), (3, 2), (1, 4)][k % 3], ratio)
    file.save()


if __name__ == "__main__":
    main()
