"""NDArray on a GPU that numba simulates, in a process of its own, since the simulator is all or nothing."""

import os
import subprocess
import sys

import pytest

from roiops import gpu, nd
from roiops.errors import DeviceError

SCRIPT = """
import copy, pickle
import numpy as np
import roiops as mx
from roiops import nd

here = mx.gpu(0)
x = nd.array([[0, 1, 2], [3, 4, 5]], ctx=here)
assert x.context == here and repr(x).endswith("<NDArray 2x3 @gpu(0)>"), repr(x)
assert nd.zeros((2,), ctx=here).asnumpy().tolist() == [0, 0]
assert nd.ones((2,), ctx=here, dtype="int32").dtype is np.int32
host = x.as_in_context(mx.cpu())
host[:] = -1
assert x.asnumpy().tolist() == [[0, 1, 2], [3, 4, 5]]
x[0] = [7, 8, 9]
x[1, 1:] = host[1, 1:]
assert x.asnumpy().tolist() == [[7, 8, 9], [3, -1, -1]]
assert x[:, 0].asnumpy().tolist() == [7, 3]
assert x[[1, 0], [0, 0]].asnumpy().tolist() == [3, 7]
row = x[1]
row[:] = 2
assert x[1].asnumpy().tolist() == [2, 2, 2]
assert x.copyto(nd.zeros((2, 3), dtype="float64")).asnumpy().sum() == 30
assert x.astype("float16").context == here
for other in (x.copy(), copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
    assert other.context == here
assert x.reshape((-1,)).shape == (6,)
x.wait_to_read()
nd.waitall()
with here:
    assert nd.zeros((1,)).context == here
for wrong, text in (
    (lambda: nd.exp(x), "exp: has no kernel for gpu(0); it runs on cpu"),
    (lambda: nd.broadcast_add(x, host), "broadcast_add: the inputs are on gpu(0) and on cpu(0)"),
    (lambda: nd.zeros((1,), ctx=mx.gpu(5)), "gpu(5): there are 1 CUDA devices, numbered from 0"),
):
    try:
        wrong()
    except mx.errors.DeviceError as error:
        assert text in str(error), error
    else:
        raise AssertionError(text)
print("done")
"""


def test_arrays_live_on_a_simulated_gpu():
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert result.returncode == 0, result.stderr
    assert result.stdout == "done\n"


@pytest.mark.skipif(
    os.environ.get("NUMBA_ENABLE_CUDASIM", "0") not in ("", "0"), reason="there is a simulated GPU"
)
def test_a_gpu_that_is_not_there_is_a_named_error():
    with pytest.raises(DeviceError, match=r"^gpu"):
        nd.zeros((1,), ctx=gpu(63))
