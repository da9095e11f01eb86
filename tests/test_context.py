"""Contexts, and the small names of mxnet.base."""

import numpy as np

import roiops as mx


def test_a_context_may_be_entered_within_itself():
    one = mx.cpu(1)
    with one:
        with one:
            assert mx.current_context() == one
        assert mx.current_context() == one
    assert mx.current_context() == mx.cpu(0)


def test_default_ctx_is_the_current_context_and_can_be_set():
    assert mx.Context.default_ctx == mx.cpu(0)
    with mx.cpu(1):
        mx.Context.default_ctx = mx.cpu(2)  # until the with statement ends
        assert mx.current_context() == mx.Context.default_ctx == mx.cpu(2)
    assert mx.current_context() == mx.cpu(0)
    try:
        mx.Context.default_ctx = mx.cpu(3)
        assert mx.nd.ones(2).context == mx.cpu(3)
    finally:
        mx.Context.default_ctx = mx.cpu(0)


def test_num_gpus_counts_and_never_raises():
    assert mx.context.num_gpus() >= 0


def test_base_has_what_scripts_import_from_there():
    assert mx.base.MXNetError is mx.MXNetError
    assert mx.base.mx_real_t is np.float32
    assert mx.base.py_str(b"conv0_output") == mx.base.py_str("conv0_output") == "conv0_output"
