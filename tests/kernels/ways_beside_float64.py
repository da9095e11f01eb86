"""Every way of a convolution beside float64: ``ways_beside_float64.py THREADS...``, numbers of threads.

Results must be the same to the last bit with each of them. With ``ROIOPS_WAY`` it is that way alone, with
``ROIOPS_LANES`` vectors have so many numbers. Run by ``test_ways.py``, in checked mode too.
"""

import sys

import numpy as np

from roiops.kernels import ways
from roiops.kernels.cpu.conv import convolution
from roiops.kernels.cpu.conv.way import ROOM, Arrays, Layer
from roiops.kernels.cpu.product.emitter import activation
from roiops.kernels.cpu.product.machine import HERE
from roiops.kernels.jit import use_threads

RNG = np.random.default_rng(7)


def layer(batch, channels, filters, groups, size, kernel, stride=(1, 1), dilate=(1, 1), pad=(0, 0)):
    sides = zip(size, kernel, stride, dilate, pad, strict=True)
    out = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, s, d, p in sides)
    return Layer(batch, channels, filters, groups, size, out, kernel, stride, dilate, pad)


#: Full tiles and rests of filters and pixels, several images, groups, steps, dilations, zeros around.
LAYERS = [
    layer(1, 16, 24, 1, (30, 33), (3, 3), pad=(1, 1)),
    layer(2, 20, 27, 1, (9, 7), (3, 3), pad=(1, 1)),
    layer(1, 12, 20, 2, (13, 22), (3, 3), (2, 2), pad=(1, 1)),
    layer(2, 33, 19, 1, (7, 7), (1, 1)),
    layer(1, 24, 40, 1, (14, 29), (1, 1), (2, 2)),
    layer(1, 9, 11, 1, (15, 16), (3, 3), dilate=(4, 3), pad=(4, 3)),
    layer(2, 18, 18, 18, (11, 21), (3, 3), (2, 2), pad=(1, 1)),
    layer(3, 7, 13, 1, (4, 5), (4, 5)),
    # A large weight: workers take filters, and read one padded image.
    layer(1, 260, 96, 1, (12, 12), (3, 3), pad=(1, 1)),
]


def in_float64(of, data, weight, scale, shift, other, slopes):
    """``scale * convolution + shift + other``, below 0 times ``slopes``, at least -1; tap by tap."""
    batch, per_group, in_group = of.batch, of.channels // of.groups, of.in_group
    padded = np.pad(np.float64(data), ((0, 0), (0, 0), *((p, p) for p in of.pad)))
    sums = np.zeros((batch, of.filters, *of.out_size))
    for g in range(of.groups):
        taps = np.float64(weight[g * in_group : (g + 1) * in_group])
        for ky in range(of.kernel[0]):
            for kx in range(of.kernel[1]):
                ys, xs = (
                    slice(k * d, k * d + (n - 1) * s + 1, s)
                    for k, d, n, s in zip((ky, kx), of.dilate, of.out_size, of.stride, strict=True)
                )
                seen = padded[:, g * per_group : (g + 1) * per_group, ys, xs]
                sums[:, g * in_group : (g + 1) * in_group] += np.einsum(
                    "fc,nchw->nfhw", taps[..., ky, kx], seen
                )
    scale, shift, slopes = (np.float64(each[: of.filters, None, None]) for each in (scale, shift, slopes))
    sums = sums * scale + shift + other
    return np.maximum(np.where(sums < 0, slopes * sums, sums), -1)


def main():
    threads_to_try = [int(each) for each in sys.argv[1:]]
    forced, tried = ways.asked(), set()
    for of in LAYERS:
        data = RNG.normal(size=(of.batch, of.channels, *of.in_size)).astype(np.float32)
        shape = of.filters, of.channels // of.groups, *of.kernel
        weight = RNG.normal(size=shape).astype(np.float32)
        scale, shift = RNG.normal(size=(2, of.filters + ROOM)).astype(np.float32)
        other = RNG.normal(size=(of.batch, of.filters, *of.out_size)).astype(np.float32)
        slopes = RNG.normal(size=of.filters + ROOM).astype(np.float32)
        right = in_float64(of, data, weight, scale, shift, other, slopes)
        for way in convolution.WAYS:
            if not way.suits(of, HERE) or (forced and way.name not in forced):
                continue
            tried.add(way.name)
            results = []
            for threads in threads_to_try:
                out = np.full(right.shape, np.nan, np.float32)
                with use_threads(threads):
                    way(of).bind(
                        Arrays(data, weight, scale, shift, activation(-1, slopes=slopes), other, out)
                    )()
                results.append(out)
            where = f"{way.name}, {HERE.lanes} lanes, {of}"
            limit = (2e-5 if way.name in ("winograd", "dilated") else 3e-6) * np.abs(right).max()
            np.testing.assert_allclose(results[0], right, rtol=0, atol=limit, err_msg=where)
            for each in results[1:]:
                np.testing.assert_array_equal(results[0], each, err_msg=where)
    print(f"{HERE.lanes} lanes:", *sorted(tried))


if __name__ == "__main__":
    main()
