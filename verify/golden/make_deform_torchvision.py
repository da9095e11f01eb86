"""torchvision's deformable convolution with a mask: MXNet's ModulatedDeformableConvolution runs on GPUs only.

Arguments have MXNet's names and order (offsets are y, x for each tap of each deformable group).
"""

import numpy as np
import torch
import torchvision

from golden_format import CaseFile

RNG = np.random.RandomState(30)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def record(
    file,
    kernel,
    out,
    stride=(1, 1),
    pad=(0, 0),
    dilate=(1, 1),
    filters=2,
    groups=1,
    offset_groups=1,
    images=1,
):
    taps = kernel[0] * kernel[1] * offset_groups
    inputs = {
        "data": normal(images, 4, 6, 7),
        "offset": normal(images, 2 * taps, *out) * np.float32(1.5),
        "mask": RNG.uniform(0, 1, (images, taps, *out)).astype(np.float32),
        "weight": normal(filters, 4 // groups, *kernel),
        "bias": normal(filters),
    }
    leaves = {name: torch.from_numpy(value).requires_grad_() for name, value in inputs.items()}
    result = torchvision.ops.deform_conv2d(
        leaves["data"],
        leaves["offset"],
        leaves["weight"],
        leaves["bias"],
        stride=stride,
        padding=pad,
        dilation=dilate,
        mask=leaves["mask"],
    )
    grad_out = normal(*result.shape)
    result.backward(torch.from_numpy(grad_out))
    params = {"kernel": kernel, "stride": stride, "pad": pad, "dilate": dilate, "num_filter": filters}
    params.update(num_group=groups, num_deformable_group=offset_groups)
    arrays = dict(inputs, out=result.detach().numpy(), grad_out=grad_out)
    arrays.update({f"grad_{name}": leaf.grad.numpy() for name, leaf in leaves.items()})
    label = ", ".join(f"{key}={value}" for key, value in params.items())
    file.add("_contrib_ModulatedDeformableConvolution", label, params, arrays)


def main():
    torch.set_num_threads(1)
    name = "ops/modulated_deformable_convolution"
    file = CaseFile(name, "torchvision", torchvision.__version__, __file__)
    record(file, (3, 3), (6, 7), pad=(1, 1))
    record(file, (3, 3), (4, 5), images=2)
    record(file, (3, 2), (3, 3), stride=(2, 2), pad=(1, 0))
    record(file, (3, 3), (6, 7), pad=(2, 2), dilate=(2, 2), filters=4, offset_groups=2)
    record(file, (3, 3), (6, 7), pad=(1, 1), filters=4, groups=2, offset_groups=4)
    record(file, (1, 1), (6, 7), filters=3)
    file.save()


if __name__ == "__main__":
    main()
