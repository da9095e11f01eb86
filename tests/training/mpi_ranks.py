"""What every rank does in test_mpi.py: ``mpiexec -n N python mpi_ranks.py CASE ...``.

Not a test file itself. Each case raises on the rank where something is wrong; a rank's results go to
``FOLDER/CASE-RANK.npz``.
"""

import os
import sys

import numpy as np
import pytest

import roiops as mx
from roiops.training import mpi

STEPS = 10
PICTURES = 6


def network():
    """A convolution, normalisation with running means, and a classifier."""
    net = mx.sym.Variable("data")
    net = mx.sym.Convolution(net, num_filter=6, kernel=(3, 3), pad=(1, 1), name="conv")
    net = mx.sym.BatchNorm(net, fix_gamma=False, use_global_stats=True, name="bn")
    net = mx.sym.Activation(net, act_type="relu")
    net = mx.sym.FullyConnected(mx.sym.Flatten(net), num_hidden=4, name="fc")
    return mx.sym.SoftmaxOutput(net, mx.sym.Variable("softmax_label"), name="softmax")


def data():
    generator = np.random.default_rng(3)
    pictures = generator.standard_normal((PICTURES * 2, 3, 8, 8)).astype(np.float32)
    return pictures, generator.integers(0, 4, PICTURES * 2).astype(np.float32)


def train(optimizer, parameters, store, rank, ranks, *, batch=2, grad_req="write", steps=STEPS):
    """Ten steps, in each of which all ranks together look at ``batch`` pictures; the module."""
    share = batch // ranks
    module = mx.mod.Module(network())
    module.bind([("data", (share, 3, 8, 8))], [("softmax_label", (share,))], grad_req=grad_req)
    mx.random.seed(11 + rank)  # rank 0 decides
    module.init_params(mx.init.Xavier())
    module.init_optimizer(kvstore=store, optimizer=optimizer, optimizer_params=parameters)
    pictures, labels = data()
    for step in range(steps):
        first = (step * batch + rank * share) % len(pictures)
        chosen = slice(first, first + share)
        if grad_req == "add":
            for gradient in module._exec_group.execs[0].grad_dict.values():
                if gradient is not None:
                    gradient[:] = 0
        module.forward_backward(mx.io.DataBatch([pictures[chosen]], [labels[chosen]]))
        if grad_req == "add":  # a second backward, whose gradients come on top
            module.forward_backward(mx.io.DataBatch([pictures[chosen]], [labels[chosen]]))
        module.update()
    return module


OPTIMIZERS = {
    "sgd": {"learning_rate": 0.1, "momentum": 0.9, "wd": 1e-3},
    "adam": {"learning_rate": 0.01},
}


def values(module):
    args, aux = module.get_params()
    return {name: array.asnumpy() for name, array in {**args, **aux}.items()}


def case_training(store, save):
    """Training with each optimizer, twice; with gradients that several backwards add up."""
    for name, parameters in OPTIMIZERS.items():
        found = [values(train(name, parameters, store, store.rank, store.num_workers)) for _ in range(2)]
        for key in found[0]:
            np.testing.assert_array_equal(found[0][key], found[1][key])
        save(name, found[0])
    added = train("sgd", OPTIMIZERS["sgd"], store, store.rank, store.num_workers, grad_req="add", steps=3)
    save("add", values(added))


def case_store(store, save):
    """The store by itself."""
    rank, ranks = store.rank, store.num_workers
    store.init("a", mx.nd.ones((3, 5)) * (rank + 1))
    out = mx.nd.zeros((3, 5))
    store.pull("a", out)
    assert (out.asnumpy() == 1).all()  # that of rank 0
    store.pushpull("a", [mx.nd.ones((3, 5)) * (rank + 1)] * 2, out=out)
    assert (out.asnumpy() == ranks * (ranks + 1)).all()
    store.barrier()
    store.set_optimizer(mx.optimizer.SGD(learning_rate=0.5))
    store.push("a", mx.nd.ones((3, 5)))
    store.pull("a", out)
    assert (out.asnumpy() == ranks * (ranks + 1) - 0.5 * ranks).all()
    with pytest.raises(mx.MXNetError, match=r"not initialize the same array: rank 0: \('b', \(2, 3\)"):
        store.init("b", mx.nd.ones((2,) if rank else (2, 3)))
    with pytest.raises(mx.MXNetError, match="row_sparse_pull: a 'dist_"):
        store.row_sparse_pull("a", out, row_ids=mx.nd.array([0]))


def case_exchange(store, save):
    """Sums in the order of the ranks, whatever the sizes, dtypes, buckets and the order of readiness."""
    shapes = [(3, 5), (100, 301), (7,), (), (0, 4), (2, 2)]
    dtypes = ["float32", "float32", "float64", "float16", "float16", "float32"]
    arrays = [(str(i), shape, dtype) for i, (shape, dtype) in enumerate(zip(shapes, dtypes, strict=True))]
    for bucket_bytes in (1000, 40_000, 4 << 20):
        exchange = mpi.GradientExchange(store.comm, arrays, bucket_bytes)
        order = np.random.default_rng(bucket_bytes)  # the same on all ranks
        for _ in range(3):
            mine = np.random.default_rng([store.rank, bucket_bytes])
            given = [mine.standard_normal(shape).astype(dtype) for _, shape, dtype in arrays]
            every = store.comm.allgather(given)
            exchange.start()
            for i in order.permutation(len(arrays)):
                exchange.arrays[str(i)][...] = given[i]
                exchange.ready([str(i)])
            exchange.finish()
            for i, (name, _, dtype) in enumerate(arrays):
                want = every[0][i].astype(np.float32 if dtype == "float16" else dtype)
                for other in every[1:]:
                    want = want + other[i]
                np.testing.assert_array_equal(exchange.arrays[name], want.astype(dtype))


def case_bucketing(store, save):
    """Networks of several lengths that share parameters; the ranks need not have the same length at a time."""

    def of_length(length):
        net = mx.sym.FullyConnected(mx.sym.Variable("data"), num_hidden=4, name="fc")
        weight = mx.sym.Variable("same_weight" if length % 2 else "even_weight")
        for i in range(length):
            net = mx.sym.FullyConnected(mx.sym.tanh(net), weight, num_hidden=4, no_bias=True, name=f"more{i}")
        return mx.sym.SoftmaxOutput(net, name="softmax"), ("data",), ("softmax_label",)

    shapes = [("data", (2, 4))], [("softmax_label", (2,))]
    module = mx.mod.BucketingModule(of_length, default_bucket_key=3)
    module.bind(*shapes)
    module.init_params()
    module.init_optimizer(kvstore=store, optimizer_params={"learning_rate": 0.5})
    generator = np.random.default_rng(store.rank)
    for step in range(6):
        length = 1 if (step + store.rank) % 3 == 0 else 3
        batch = mx.io.DataBatch(
            [generator.standard_normal((2, 4))], [np.arange(2)], 0, None, length, shapes[0], shapes[1]
        )
        module.forward_backward(batch)
        module.update()
    save("weights", values(module))
    with pytest.raises(mx.MXNetError, match="the other network has even_weight, the first has not"):
        module.switch_bucket(2, *shapes)


def case_differ(store, save):
    """A weight that differs on one rank ends the run, with its name."""
    store.check_every = 2
    module = train("sgd", OPTIMIZERS["sgd"], store, store.rank, store.num_workers, steps=1)
    if store.rank == 1:
        module._exec_group.execs[0].arg_dict["fc_weight"].data[0, 0] += 1
    module.forward_backward(mx.io.DataBatch([data()[0][:1]], [data()[1][:1]]))
    module.update()


def case_dies(store, save):
    """An error on one rank while the others wait for it."""
    if store.rank == 1:
        raise RuntimeError("planted")
    store.barrier()


def main():
    os.environ["NUMBA_NUM_THREADS"] = "1"  # nothing has been compiled yet
    folder, *cases = sys.argv[1:]
    store = mx.kv.create("dist_sync")
    for case in cases:

        def save(name, arrays, case=case):
            np.savez(os.path.join(folder, f"{case}-{name}-{store.rank}.npz"), **arrays)

        globals()[f"case_{case}"](store, save)
    if store.rank == 0:
        print("done with", *cases)


if __name__ == "__main__":
    main()
