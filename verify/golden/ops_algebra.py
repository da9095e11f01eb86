"""Calls of linear algebra, densities, correlation, CTC, attention, windows as columns, and pictures."""

import numpy as np

from ops_harness import call, golden


def double(array):
    return array.astype(np.float64)


@golden
def linalg(draw):
    def positive(*shape):
        root = double(draw.normal(*shape))
        return root @ np.swapaxes(root, -1, -2) + 2 * np.eye(shape[-1])

    def root(*shape):
        return np.linalg.cholesky(positive(*shape))

    a, b, c = draw.normal(2, 3, 4), draw.normal(2, 4, 5), draw.normal(2, 3, 5)
    yield call("_linalg_gemm", {"A": a, "B": b, "C": c}, alpha=2.0, beta=0.5)
    turned = {"A": draw.normal(4, 2, 3), "B": draw.normal(5, 2, 4), "C": draw.normal(3, 2, 5)}
    yield call("_linalg_gemm", turned, transpose_a=True, transpose_b=True, axis=0)
    yield call(
        "_linalg_gemm2", {"A": draw.normal(3, 4), "B": draw.normal(5, 4)}, transpose_b=True, alpha=-1.5
    )
    yield call("linalg_gemm2", {"A": double(a), "B": double(b)}, label="float64")
    yield call("_linalg_syrk", {"A": a}, alpha=3.0)
    yield call("_linalg_syrk", {"A": a}, transpose=True)
    for transpose in (False, True):
        for rightside in (False, True):
            for lower in (False, True):
                params = {"transpose": transpose, "rightside": rightside, "lower": lower, "alpha": 1.5}
                other = double(draw.normal(2, 4, 3) if rightside else draw.normal(2, 3, 4))
                pair = {"A": double(draw.normal(2, 3, 3)) + 3 * np.eye(3), "B": other}
                yield call("_linalg_trmm", pair, **params)
                yield call("_linalg_trsm", pair, **params)
    for lower in (True, False):
        yield call("_linalg_potrf", {"A": positive(2, 3, 3)}, lower=lower)
        factor = root(2, 3, 3)
        yield call("_linalg_potri", {"A": factor if lower else np.swapaxes(factor, 1, 2).copy()}, lower=lower)
    yield call("_linalg_sumlogdiag", {"A": positive(2, 3, 3)})
    yield call("_linalg_sumlogdiag", {"A": positive(3, 3)})
    for offset in (-1, 0, 2):
        yield call("_linalg_extractdiag", {"A": draw.normal(2, 4, 4)}, offset=offset)
        yield call("_linalg_makediag", {"A": draw.normal(2, 4)}, offset=offset)
        for lower in (False, True):
            yield call("_linalg_extracttrian", {"A": draw.normal(2, 4, 4)}, offset=offset, lower=lower)
            yield call("_linalg_maketrian", {"A": draw.normal(2, 6)}, offset=offset, lower=lower)
    yield call("_linalg_gelqf", {"A": double(draw.normal(2, 3, 5))})
    yield call("_linalg_gelqf", {"A": double(draw.normal(3, 3))})
    yield call("_linalg_syevd", {"A": positive(2, 4, 4)})
    yield call("_linalg_inverse", {"A": positive(2, 3, 3)})
    yield call("_linalg_det", {"A": double(draw.normal(2, 3, 3))})
    yield call("_linalg_det", {"A": double(draw.normal(3, 3))})
    yield call("_linalg_slogdet", {"A": double(draw.normal(4, 3, 3))})


@golden
def densities(draw):
    shape = (2, 3, 4)

    def positive(*shape):
        return draw.uniform(0.3, 1.5, *shape)

    rows = {
        "uniform": (draw.uniform(0, 1, *shape), {"low": -positive(2, 3), "high": 1 + positive(2, 3)}),
        "normal": (draw.normal(*shape), {"mu": draw.normal(2), "sigma": positive(2)}),
        "gamma": (positive(*shape), {"alpha": 1 + positive(2, 3), "beta": positive(2, 3)}),
        "exponential": (positive(*shape), {"lam": positive(2)}),
        "poisson": (draw.integers(6, *shape), {"lam": 2 * positive(2, 3)}),
        "negative_binomial": (
            draw.integers(6, *shape),
            {"k": 1 + draw.integers(4, 2, 3), "p": draw.uniform(0.2, 0.8, 2, 3)},
        ),
        "generalized_negative_binomial": (
            draw.integers(6, *shape),
            {"mu": positive(2), "alpha": positive(2)},
        ),
    }
    for name, (sample, parameters) in rows.items():
        for is_log in (False, True):
            yield call(f"_random_pdf_{name}", {"sample": sample, **parameters}, is_log=is_log)
    simplex = positive(2, 5, 3)
    simplex /= simplex.sum(-1, keepdims=True)
    for is_log in (False, True):
        inputs = {"sample": simplex, "alpha": 1 + positive(2, 3)}
        yield call("_random_pdf_dirichlet", inputs, is_log=is_log)


@golden
def correlation(draw):
    op = "Correlation"
    pair = {"data1": draw.normal(2, 3, 7, 8), "data2": draw.normal(2, 3, 7, 8)}
    for multiply in (True, False):
        yield call(op, pair, max_displacement=2, pad_size=2, is_multiply=multiply)
        yield call(op, pair, kernel_size=3, max_displacement=2, stride2=2, pad_size=3, is_multiply=multiply)
        yield call(op, pair, kernel_size=3, max_displacement=1, stride1=2, pad_size=1, is_multiply=multiply)
    doubles = {name: double(value) for name, value in pair.items()}
    yield call(op, doubles, max_displacement=3, stride1=1, stride2=2, pad_size=3, label="float64")


@golden
def ctc_loss(draw):
    op = "CTCLoss"
    labels = np.array([[1, 2, 2], [3, 0, 0], [1, 1, 0]], np.float32)
    data = draw.normal(7, 3, 4)
    hold = ("label", "data_lengths", "label_lengths")
    yield call(op, {"data": data, "label": labels}, hold=hold)
    lengths = {
        "data_lengths": np.array([7, 3, 5], np.float32),
        "label_lengths": np.array([3, 1, 1], np.float32),
    }
    both = {"data": data, "label": labels, **lengths}
    yield call(op, both, use_data_lengths=True, use_label_lengths=True, hold=hold)
    steps = {"data": data, "label": labels, "data_lengths": lengths["data_lengths"]}
    yield call(op, steps, use_data_lengths=True, hold=hold)
    last = np.array([[1, 2, 2], [0, -1, -1], [-1, -1, -1]], np.float32)
    yield call("_contrib_ctc_loss", {"data": data, "label": last}, blank_label="last", hold=hold)


@golden
def attention(draw):
    op = "_contrib_interleaved_matmul_"
    own, other = draw.normal(4, 2, 18), draw.normal(5, 2, 12)
    yield call(op + "selfatt_qk", {"queries_keys_values": own}, heads=3)
    weighted = {"queries_keys_values": own, "attention": draw.normal(6, 4, 4)}
    yield call(op + "selfatt_valatt", weighted, heads=3)
    yield call(op + "encdec_qk", {"queries": draw.normal(4, 2, 6), "keys_values": other}, heads=3)
    yield call(op + "encdec_valatt", {"keys_values": other, "attention": draw.normal(6, 4, 5)}, heads=3)


@golden
def columns(draw):
    window = {"kernel": (3, 2), "stride": (2, 1), "dilate": (1, 2), "pad": (1, 0)}
    yield call("im2col", draw.normal(2, 3, 6, 7), **window)
    yield call("im2col", draw.normal(2, 3, 5, 6), kernel=(2, 2))
    yield call("col2im", draw.normal(2, 18, 15), output_size=(6, 7), **window)


@golden
def pictures(draw):
    picture = draw.integers(256, 4, 5, 3).astype(np.uint8)
    yield call("_image_to_tensor", picture, backward=False)
    yield call("_image_to_tensor", np.stack([picture, picture[::-1]]), backward=False)
    image = draw.normal(2, 3, 4, 5)
    yield call("_image_normalize", image, mean=(1.0, 2.0, 3.0), std=(2.0, 3.0, 4.0))
    yield call("_image_normalize", image[0], mean=0.5, std=2.0)
    yield call("_image_crop", draw.normal(2, 5, 6, 3), x=1, y=2, width=3, height=2)
    # MXNet does not write the middle column, or row, of an odd number.
    yield call("_image_flip_left_right", draw.normal(4, 6, 3), backward=False)
    yield call("_image_flip_top_bottom", draw.normal(4, 6, 3), backward=False)


@golden
def histogram(draw):
    data = draw.distinct(3, 4, 5)
    yield call("_histogram", {"data": data}, bin_cnt=5, range=(-4.0, 6.0), backward=False)
    edges = np.array([-5, -1, 0, 2.5, 6], np.float32)
    yield call("_histogram", {"data": data, "bins": edges}, backward=False)


@golden
def quantization(draw):
    data = {
        "data": draw.normal(3, 5) * 2,
        "min_range": draw.uniform(-4, -3, 1),
        "max_range": draw.uniform(3, 4, 1),
    }
    for out_type in ("uint8", "int8"):
        yield call("_contrib_quantize", data, out_type=out_type, backward=False)
    narrow = {**data, "min_range": draw.uniform(-0.5, 0, 1), "max_range": draw.uniform(0.5, 1, 1)}
    yield call("_contrib_quantize", narrow, out_type="int8", label="beyond the range", backward=False)
    for dtype in (np.uint8, np.int8):
        low = 0 if dtype == np.uint8 else -127
        whole = draw.integers(128, 3, 5, low=low).astype(dtype)
        yield call("_contrib_dequantize", {**data, "data": whole}, label=np.dtype(dtype).name, backward=False)
