"""Optimizers: MXNet's weights after given gradients, multipliers, states that survive a file."""

import io
import json

import numpy as np
import pytest
from golden_files import load

import roiops as mx
from roiops.errors import FormatError, ParamError, RegistryError
from roiops.ndarray import updates


@pytest.mark.parametrize("case", load("optimizer/updates"), ids=str)
def test_weights_are_mxnets_after_every_update(case):
    dtype = case["weight"].dtype
    optimizer = mx.optimizer.create(case.op, **case.params)
    weight = mx.nd.array(case["weight"], dtype=dtype)
    if dtype == np.float16 and not case.params.get("multi_precision"):
        with pytest.warns(UserWarning, match="float16 weights lose small updates; use multi_precision=True"):
            state = optimizer.create_state_multi_precision(0, weight)
    else:
        state = optimizer.create_state_multi_precision(0, weight)
    # A float16 without a master copy is rounded at each intermediate result, in another order.
    tolerance = {np.float16: 2e-3, np.float32: 1e-6, np.float64: 1e-6}[dtype.type]
    for gradient, after in zip(case["gradients"], case["after"], strict=True):
        before = gradient.copy()
        given = mx.nd.array(gradient, dtype=dtype)
        optimizer.update_multi_precision(0, weight, given, state)
        np.testing.assert_allclose(weight.asnumpy(), after, rtol=tolerance, atol=tolerance)
        np.testing.assert_array_equal(given.asnumpy(), before, err_msg="the gradient was changed")


@pytest.mark.parametrize("case", load("optimizer/rules"), ids=str)
def test_two_weights_are_mxnets_after_every_update(case):
    """Rules that share a schedule among all weights, or look at whole arrays; a gradient that stays zero."""
    dtype = case["weights"].dtype
    update = mx.optimizer.get_updater(mx.optimizer.create(case.op, **case.params))
    weights = [mx.nd.array(weight, dtype=dtype) for weight in case["weights"]]
    tolerance = 1e-3 if dtype == np.float16 else 2e-6
    for gradients, after in zip(case["gradients"], case["after"], strict=True):
        for i, weight in enumerate(weights):
            update(i, mx.nd.array(gradients[i], dtype=dtype), weight)
            np.testing.assert_allclose(weight.asnumpy(), after[i], rtol=tolerance, atol=tolerance)


COMPILED = ["sgd_mom", "sgd", "nag", "adam", "rmsprop", "rmspropalex"]


@pytest.mark.parametrize("settings", [{"clip_gradient": 0.5, "wd": 0.01}, {"rescale_grad": 0.3}], ids=str)
@pytest.mark.parametrize(
    ("name", "dtype"), [("sgd_mom", "float64"), *((name, "float32") for name in COMPILED)]
)
def test_a_large_weight_is_updated_as_its_parts_are(name, dtype, settings, monkeypatch):
    """One that does not stay in a cache is updated in one pass: the bits are those of NumPy's formulas."""
    operator = getattr(mx.nd, f"{name}_mom_update" if name == "nag" else f"{name}_update")
    rng = np.random.default_rng(0)
    arrays = rng.standard_normal((operator.states + 2, 200_000)).astype(dtype)
    arrays[1, :3] = np.nan, np.inf, -np.inf
    arrays[2:] = np.abs(arrays[2:])

    def run():
        weight, grad, *states = (mx.nd.array(each, dtype=dtype) for each in arrays)
        for _ in range(2):
            with np.errstate(invalid="ignore"):
                operator(weight, grad, *states, out=weight, lr=0.1, **settings)
        return [each.asnumpy() for each in (weight, *states)]

    compiled = run()
    monkeypatch.setattr(updates, "_fit_one_pass", lambda *arrays: False)
    for in_one_pass, by_numpy in zip(compiled, run(), strict=True):
        np.testing.assert_array_equal(in_one_pass, by_numpy)


EVERY_RULE = [
    ("sgd", {"momentum": 0.9}),
    ("nag", {"momentum": 0.9}),
    ("signum", {}),
    ("adam", {}),
    ("adagrad", {}),
    ("rmsprop", {}),
    ("rmsprop", {"centered": True}),
    ("adadelta", {}),
    ("adamax", {}),
    ("nadam", {}),
    ("ftml", {}),
    ("ftrl", {}),
    ("lamb", {}),
    ("dcasgd", {}),
    ("dcasgd", {"momentum": 0.9}),
]
#: Each block or slice of an array is updated by itself; a rule that looks at whole arrays is not like that.
OF_SINGLE_ENTRIES = [rule for rule in EVERY_RULE if rule[0] != "lamb"]


@pytest.mark.parametrize(("name", "params"), OF_SINGLE_ENTRIES)
def test_blocks_and_strides_do_not_show(name, params):
    """A weight of several blocks, and one that is not contiguous, get what small ones get."""
    generator = np.random.default_rng(0)
    start, gradient = generator.normal(size=(2, 300000)).astype(np.float32)
    assert start.size > 2 * updates.BLOCK

    def run(weight, grad):
        update = mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, wd=0.1, **params))
        for _ in range(3):
            update(0, grad, weight)
        return weight.asnumpy()

    whole = run(mx.nd.array(start), mx.nd.array(gradient))
    assert np.abs(whole - start).max() > 1e-4
    tail = run(mx.nd.array(start[-100:]), mx.nd.array(gradient[-100:]))
    np.testing.assert_array_equal(whole[-100:], tail)
    strided = np.zeros((100, 2), np.float32)
    strided[:, 0] = start[-100:]
    np.testing.assert_array_equal(run(mx.nd.NDArray(strided[:, 0]), mx.nd.array(gradient[-100:])), tail)


def test_sgd_by_hand():
    update = mx.optimizer.get_updater(
        mx.optimizer.SGD(learning_rate=0.1, momentum=0.5, wd=0.2, rescale_grad=0.5, clip_gradient=1.0)
    )
    weight = mx.nd.array([1.0])
    update(0, mx.nd.array([4.0]), weight)  # 4 / 2, cut to 1, and 0.2 * 1 of decay: step 0.12
    assert weight.asscalar() == pytest.approx(0.88)
    update(0, mx.nd.array([0.0]), weight)  # half the last step, and 0.1 * 0.2 * 0.88
    assert weight.asscalar() == pytest.approx(0.88 - 0.06 - 0.0176)


def test_delay_compensation_with_momentum_by_hand():
    """MXNet fails here; these are its formulas."""
    update = mx.optimizer.get_updater(mx.optimizer.DCASGD(learning_rate=0.1, momentum=0.5, lamda=2.0))
    weight = mx.nd.array([1.0])
    update(0, mx.nd.array([1.0]), weight)  # no delay yet: step -0.1
    assert weight.asscalar() == pytest.approx(0.9)
    update(0, mx.nd.array([1.0]), weight)  # half of that, and -0.1 * (1 + 2 * 1 * (0.9 - 1))
    assert weight.asscalar() == pytest.approx(0.9 - 0.05 - 0.08)


def test_langevin_noise_has_the_learning_rate_as_variance():
    mx.random.seed(3)
    start = np.linspace(-1, 1, 200_000).astype(np.float32)
    weight, gradient = mx.nd.array(start), mx.nd.array(4 * start)
    rule = mx.optimizer.SGLD(learning_rate=0.04, wd=0.5, rescale_grad=0.5, clip_gradient=1.0)
    mx.optimizer.get_updater(rule)(0, gradient, weight)
    noise = weight.asnumpy() - (start - 0.02 * (np.clip(2 * start, -1, 1) + 0.5 * start))
    assert abs(noise.mean()) < 5 * 0.2 / np.sqrt(noise.size)
    assert noise.std() == pytest.approx(0.2, rel=0.01)
    assert abs(np.corrcoef(noise[1:], noise[:-1])[0, 1]) < 0.02
    assert abs(np.corrcoef(noise, start)[0, 1]) < 0.02, "the step is as large as expected"


@pytest.mark.parametrize(("bounds", "times"), [({"lower_bound": 10}, 2), ({"upper_bound": 1}, 0.2)])
def test_lamb_takes_the_norm_of_a_weight_within_its_bounds(bounds, times):
    """It is 5."""

    def step(**bounds):
        weight = mx.nd.array([3, 4])
        mx.optimizer.get_updater(mx.optimizer.LAMB(**bounds))(0, mx.nd.array([1, -2]), weight)
        return weight.asnumpy() - [3, 4]

    np.testing.assert_allclose(step(**bounds), times * step(), rtol=1e-3)


def test_decay_and_multipliers_go_by_name():
    data = mx.sym.Variable("data")
    bias = mx.sym.Variable("fc_bias", lr_mult=2, wd_mult=3)
    net = mx.sym.FullyConnected(data, bias=bias, num_hidden=2, name="fc")
    names = {0: "fc_weight", 1: "fc_bias", 2: "bn_gamma", 3: "bn_beta"}
    optimizer = mx.optimizer.SGD(learning_rate=0.1, wd=0.01, sym=net, param_idx2name=names)
    assert [optimizer._get_lr(i) for i in range(4)] == pytest.approx([0.1, 0.2, 0.1, 0.1])
    assert [optimizer._get_wd(i) for i in range(4)] == pytest.approx([0.01, 0.03, 0.01, 0.0])
    optimizer.set_lr_mult({"fc_weight": 0.5, 3: 4.0})
    optimizer.set_wd_mult({"bn_beta": 1.0})
    assert [optimizer._get_lr(i) for i in range(4)] == pytest.approx([0.05, 0.2, 0.1, 0.4])
    assert optimizer._get_wd(3) == pytest.approx(0.01)


def test_the_scheduler_sees_the_number_of_updates():
    schedule = mx.lr_scheduler.FactorScheduler(step=2, factor=0.1, base_lr=1.0)
    optimizer = mx.optimizer.SGD(lr_scheduler=schedule)
    update = mx.optimizer.get_updater(optimizer)
    weight = mx.nd.array([0.0])
    steps = []
    for _ in range(4):
        before = weight.asscalar()
        update(0, mx.nd.array([1.0]), weight)
        steps.append(before - weight.asscalar())
    np.testing.assert_allclose(steps, [1, 1, 0.1, 0.1], rtol=1e-5)
    assert optimizer.learning_rate == pytest.approx(0.1)
    with pytest.raises(ParamError, match="SGD: the learning rate is up to lr_scheduler; set its base_lr"):
        optimizer.set_learning_rate(0.5)


def test_a_learning_rate_beside_a_scheduler_wins(capsys):
    schedule = mx.lr_scheduler.FactorScheduler(step=2)
    assert mx.optimizer.Adam(lr_scheduler=schedule, learning_rate=0.5).learning_rate == 0.5
    assert "``lr_scheduler`` has been overwritten by ``learning_rate``" in capsys.readouterr().out


@pytest.mark.parametrize(("name", "params"), [*EVERY_RULE, ("sgd", {}), ("adam", {"multi_precision": True})])
def test_states_go_through_a_file_exactly(name, params):
    """Two updates, save, load into a new updater, two more: the bits of four updates."""
    generator = np.random.default_rng(1)
    dtype = np.float16 if params.get("multi_precision") else np.float32
    gradients = [mx.nd.array(generator.normal(size=(3, 4)), dtype=dtype) for _ in range(4)]

    def new():
        return mx.optimizer.get_updater(mx.optimizer.create(name, learning_rate=0.1, wd=0.01, **params))

    straight, first = (mx.nd.array(np.ones((3, 4)), dtype=dtype) for _ in range(2))
    update, before = new(), new()
    for gradient in gradients:
        update("w", gradient, straight)
    for gradient in gradients[:2]:
        before("w", gradient, first)
    after = new()
    after.set_states(before.get_states())
    assert after.optimizer.num_update == 2
    for gradient in gradients[2:]:
        after("w", gradient, first)
    np.testing.assert_array_equal(first.asnumpy(), straight.asnumpy())


def test_damaged_heads_of_states_are_refused():
    nadam = mx.optimizer.get_updater(mx.optimizer.Nadam())
    for change in ({"running": 1.5}, {"running": {}}, {"states": [[0, "x"]]}, {"num_update": 1e400}):
        with np.load(io.BytesIO(nadam.get_states())) as file:
            head = {**json.loads(bytes(file["head"])), **change}
        buffer = io.BytesIO()
        np.savez(buffer, head=np.frombuffer(json.dumps(head).encode(), np.uint8))
        with pytest.raises(FormatError, match="optimizer states: not a file of roiops"):
            nadam.set_states(buffer.getvalue())
    zipped = nadam.get_states().replace(
        b"PK\x01\x02", b"PK\x01\x02\xff\xff\xff\xff"
    )  # another version of zip
    with pytest.raises(FormatError, match="optimizer states: not a file of roiops"):
        nadam.set_states(zipped)


def test_states_of_another_kind_are_refused():
    adam = mx.optimizer.get_updater(mx.optimizer.Adam())
    sgd = mx.optimizer.get_updater(mx.optimizer.SGD())
    with pytest.raises(FormatError, match="optimizer states: made by SGD, but the optimizer is Adam"):
        adam.set_states(sgd.get_states())
    whole = sgd.get_states()
    for damaged in (b"", b"\x80\x03}q\x00.", whole[:100], whole[:-30], b"x" * 500):
        with pytest.raises(FormatError, match="optimizer states: not a file of roiops"):
            adam.set_states(damaged)


def test_names_and_own_rules():
    with pytest.raises(RegistryError, match="optimizer: 'adm' is unknown; did you mean 'adam'"):
        mx.optimizer.create("adm")
    with pytest.raises(RegistryError, match="optimizer: 'LBSGD' is not offered: use LAMB, or SGD with"):
        mx.optimizer.create("LBSGD")
    with pytest.raises(
        ParamError, match=r"SGD: unknown parameter 'momentun'; did you mean 'momentum'\? \(it"
    ):
        mx.optimizer.create("sgd", learning_rate=0.1, momentun=0.9)
    with pytest.raises(ParamError, match="it takes: learning_rate, beta1") as caught:
        mx.optimizer.create("adam", foo=1)
    assert str(caught.value).count("learning_rate") == 1  # its own and its base's are one
    weight = mx.gluon.Parameter("w", shape=(1,))
    weight.initialize()
    with pytest.raises(
        ParamError, match="Adam: unknown parameter 'learn_rate'; did you mean 'learning_rate'"
    ):
        mx.gluon.Trainer([weight], "adam", {"learn_rate": 0.1})
    with pytest.raises(ParamError, match=r"SGD: param_idx2name must be a dict, got \['a'\]"):
        mx.optimizer.SGD(param_idx2name=["a"])

    assert mx.optimizer.create("ccsgd", momentum=0.5).momentum == 0.5  # SGD's name in old scripts

    @mx.optimizer.Optimizer.register
    class Halve(mx.optimizer.Optimizer):
        """Halves the weight, whatever the gradient."""

        def update(self, index, weight, grad, state):
            self._update_count(index)
            weight[:] = weight * 0.5

    weight = mx.nd.array([4.0])
    mx.optimizer.get_updater(mx.optimizer.create("halve"))(0, mx.nd.array([9.0]), weight)
    assert weight.asscalar() == 2.0


def test_an_optimizer_of_ones_own_asks_for_several_weights_at_once():
    optimizer = mx.optimizer.SGD(learning_rate=0.5, wd=0.1, param_idx2name={0: "a_weight", 1: "a_bias"})
    optimizer.set_lr_mult({1: 2})
    optimizer._update_count([0, 1])
    optimizer._update_count(1)
    assert optimizer._index_update_count == {0: 1, 1: 2}
    assert optimizer._get_lrs([0, 1]) == [0.5, 1.0]
    assert optimizer._get_wds([0, 1]) == [0.1, 0.0]
