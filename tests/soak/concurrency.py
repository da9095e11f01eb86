"""Python threads, forked and spawned processes: the same numbers as one after another, and no deadlock or abort."""

import multiprocessing
import threading

import numpy as np

import roiops as mx

THREADS = 8


def network():
    """A detector in small: convolution, pooling, both kinds of ROI operators, a dense layer."""
    data, rois = mx.sym.Variable("data"), mx.sym.Variable("rois")
    body = mx.sym.Convolution(data, num_filter=8, kernel=(3, 3), pad=(1, 1), name="conv")
    body = mx.sym.Pooling(mx.sym.Activation(body, act_type="relu"), kernel=(2, 2), stride=(2, 2))
    pooled = mx.sym.ROIPooling(body, rois, pooled_size=(3, 3), spatial_scale=0.5)
    aligned = mx.sym.ROIAlign(body, rois, pooled_size=(3, 3), spatial_scale=0.5, sampling_ratio=2)
    return mx.sym.FullyConnected(mx.sym.Flatten(pooled + aligned), num_hidden=5, name="dense")


def bound(seed: int):
    """An executor of the network with random contents."""
    executor = network().simple_bind(mx.cpu(), data=(2, 3, 32, 48), rois=(16, 5))
    rng = np.random.default_rng(seed)
    for array in executor.arg_arrays:
        array[:] = rng.standard_normal(array.shape) * 0.2
    corners = rng.uniform(-5, 50, (16, 4))
    executor.arg_dict["rois"][:] = np.concatenate([rng.integers(0, 2, (16, 1)), corners], axis=1)
    return executor


def numbers(executor) -> bytes:
    """All results of one step, as bytes: they are to be the same to the last bit."""
    executor.forward(is_train=True)
    executor.backward([mx.nd.ones(executor.outputs[0].shape)])
    return executor.outputs[0].asnumpy().tobytes() + executor.grad_dict["conv_weight"].asnumpy().tobytes()


def _at_once(tasks) -> list:
    """The results of functions that run in threads of their own, begun together."""
    barrier, results = threading.Barrier(len(tasks)), [None] * len(tasks)

    def body(i, task):
        barrier.wait()
        try:
            results[i] = task()
        except Exception as error:
            results[i] = error

    threads = [threading.Thread(target=body, args=pair) for pair in enumerate(tasks)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return results


def threads(seed: int):
    """Python threads, each with an executor of its own, then all with one."""
    own = [bound(seed + i) for i in range(THREADS)]
    want = [numbers(executor) for executor in own]
    shared = bound(seed)

    def step_of_shared():
        with shared_step:  # forward and backward belong together; each alone is safe without it
            return numbers(shared)

    shared_step = threading.Lock()

    def case(number: int) -> str:
        if number % 2 == 0:
            got = _at_once([lambda e=executor: [numbers(e) for _ in range(5)] for executor in own])
            expected = [[w] * 5 for w in want]
        else:
            got = _at_once([shared.forward] * (THREADS - 1) + [step_of_shared])
            outputs = shared.forward()[0].asnumpy().tobytes()
            got, expected = [outputs, *got[:-1]], [want[0][: len(outputs)], *[shared.outputs] * (THREADS - 1)]
        for one, other in zip(got, expected, strict=True):
            if isinstance(one, Exception):
                raise one
            if one is not other and one != other:
                raise AssertionError("threads gave other numbers than one after another")
        return "accepted"

    return case


def _in_child(seed: int, queue) -> None:
    queue.put(numbers(bound(seed)))


def _inherited_in_child(executor, queue) -> None:
    queue.put(numbers(executor))


def processes(seed: int):
    """Workers forked after the parent has used its threads, and spawned ones."""
    executor = bound(seed)
    want = numbers(executor)

    def case(number: int) -> str:
        method = "spawn" if number % 8 == 0 else "fork"
        place = multiprocessing.get_context(method)
        queue = place.SimpleQueue()
        inherits = method == "fork" and number % 2
        target, given = (_inherited_in_child, executor) if inherits else (_in_child, seed)
        workers = [place.Process(target=target, args=(given, queue)) for _ in range(2)]
        for worker in workers:
            worker.start()
        if numbers(executor) != want:
            raise AssertionError("the parent's numbers have changed")
        for worker in workers:
            worker.join(300)
            if worker.exitcode != 0:
                worker.kill()
                raise AssertionError(f"a worker made by {method} ended with {worker.exitcode}")
        for _ in workers:
            if queue.get() != want:
                raise AssertionError(f"a worker made by {method} gave other numbers than its parent")
        return method

    return case
