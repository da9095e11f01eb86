"""Rules that turn gradients into new weights."""

import functools
import io
import json
import math
import warnings
from pathlib import Path

import numpy as np

from ..errors import FormatError, ParamError, without
from ..ndarray import NDArray, array, files, random, sparse, updates, zeros
from .factory import Declared, Factory

__all__ = [
    "DCASGD",
    "FTML",
    "LAMB",
    "NAG",
    "SGD",
    "SGLD",
    "AdaDelta",
    "AdaGrad",
    "Adam",
    "Adamax",
    "Ftrl",
    "Nadam",
    "Optimizer",
    "RMSProp",
    "Signum",
    "Updater",
    "ccSGD",
    "create",
    "get_updater",
    "register",
]


class ScheduledRateError(ParamError, UserWarning):
    """A learning rate was set that a scheduler decides."""


class Optimizer:
    """What all rules share: learning rates, weight decays and the count of updates.

    A rule of your own overrides :meth:`create_state` and :meth:`update`, as in MXNet.

    Parameters
    ----------
    rescale_grad : float
        A factor on every gradient; a module gives 1 / batch size.
    param_idx2name : dict of int to str, optional
        The parameters' names, by the index they are updated under.
    wd : float
        Weight decay. It applies to parameters whose names end in ``_weight`` or ``_gamma``.
    clip_gradient : float, optional
        Gradients are cut to this size, element by element, after rescaling.
    learning_rate : float, optional
        The learning rate; 0.01, or that of the scheduler, unless given.
    lr_scheduler : LRScheduler, optional
        Gives the learning rate by the number of updates.
    sym : Symbol, optional
        The network, for the ``lr_mult`` and ``wd_mult`` of its variables.
    begin_num_update : int
        How many updates were done before.
    multi_precision : bool
        Whether float16 weights are updated as float32 copies.
    param_dict : dict, optional
        Objects with ``lr_mult`` and ``wd_mult``, by index.
    """

    #: Attributes besides the arrays and counts that change from update to update.
    _running: tuple = ()

    def __init__(
        self,
        rescale_grad=1.0,
        param_idx2name=None,
        wd=0.0,
        clip_gradient=None,
        learning_rate=None,
        lr_scheduler=None,
        sym=None,
        begin_num_update=0,
        multi_precision=False,
        param_dict=None,
    ):
        if param_idx2name is not None and not isinstance(param_idx2name, dict):
            raise ParamError(f"{type(self).__name__}: param_idx2name must be a dict, got {param_idx2name!r}")
        if lr_scheduler is not None and learning_rate is not None and lr_scheduler.base_lr != learning_rate:
            # MXNet's words, and like there on standard output, where scripts' logs have them.
            print(
                "learning rate from ``lr_scheduler`` has been overwritten by ``learning_rate`` in optimizer."
            )
            lr_scheduler.base_lr = learning_rate
        self.lr = 0.01 if learning_rate is None and lr_scheduler is None else learning_rate
        self.lr_scheduler = lr_scheduler
        self.rescale_grad, self.wd, self.clip_gradient = rescale_grad, wd, clip_gradient
        self.multi_precision = multi_precision
        self.begin_num_update = self.num_update = begin_num_update
        self._index_update_count: dict = {}
        self.idx2name = dict(param_idx2name or {})
        self.param_dict = param_dict or {}
        arguments = [] if sym is None else sym.list_arguments()
        attributes = {} if sym is None else sym.attr_dict()
        self._attributes = {name: attributes[name] for name in arguments if name in attributes}
        self.set_lr_mult({})
        self.set_wd_mult({})

    def __getstate__(self):
        return {**vars(self), "param_dict": {}}  # parameters are the network's, as in MXNet

    # -- learning rates and weight decays -------------------------------------------------------------

    @property
    def learning_rate(self) -> float:
        """The learning rate now, before ``lr_mult``."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate; an error where a scheduler decides it, and as in MXNet a UserWarning."""
        if self.lr_scheduler is not None:
            raise ScheduledRateError(
                f"{type(self).__name__}: the learning rate is up to lr_scheduler; set its base_lr"
            )
        self.lr = lr

    def set_lr_mult(self, args_lr_mult: dict) -> None:
        """Factors on the learning rate, by name or index; variables' ``lr_mult`` hold beside them."""
        self.lr_mult = {**self._attribute_factors("__lr_mult__"), **args_lr_mult}

    def set_wd_mult(self, args_wd_mult: dict) -> None:
        """Factors on the weight decay, by name or index; variables' ``wd_mult`` hold beside them."""
        decay_free = {n: 0.0 for n in self.idx2name.values() if not n.endswith(("_weight", "_gamma"))}
        self.wd_mult = {**decay_free, **self._attribute_factors("__wd_mult__"), **args_wd_mult}

    def _attribute_factors(self, key: str) -> dict:
        return {name: float(attrs[key]) for name, attrs in self._attributes.items() if key in attrs}

    def _factor(self, index, factors: dict, attribute: str) -> float:
        if index in self.param_dict:
            return getattr(self.param_dict[index], attribute)
        if index in factors:
            return factors[index]
        return factors.get(self.idx2name.get(index), 1.0)

    def _get_lr(self, index) -> float:
        return self.learning_rate * self._factor(index, self.lr_mult, "lr_mult")

    def _get_wd(self, index) -> float:
        return self.wd * self._factor(index, self.wd_mult, "wd_mult")

    def _get_lrs(self, indices) -> list:
        return [self._get_lr(index) for index in indices]

    def _get_wds(self, indices) -> list:
        return [self._get_wd(index) for index in indices]

    def _update_count(self, index) -> None:
        for each in index if isinstance(index, list | tuple) else [index]:
            count = self._index_update_count.get(each, self.begin_num_update) + 1
            self._index_update_count[each] = count
            self.num_update = max(count, self.num_update)

    # -- updating -------------------------------------------------------------------------------------

    #: How many arrays, zeros at first, the rule keeps for each weight.
    _zero_states = 0

    def create_state(self, index, weight: NDArray):
        """What the rule keeps for one weight: None, an array, or a tuple of these."""
        return tuple(_zeros(weight) for _ in range(self._zero_states)) or None

    #: Whether the float32 copy comes after the rule's own state, as MXNet has it for some rules.
    _master_last = False

    def create_state_multi_precision(self, index, weight: NDArray):
        """:meth:`create_state`, with a float32 copy of a float16 weight beside it."""
        if weight.dtype != np.float16:
            return self.create_state(index, weight)
        if self.multi_precision:
            master = weight.astype(np.float32)
            own = self.create_state(index, master)
            return (own, master) if self._master_last else (master, own)
        warnings.warn(
            f"{type(self).__name__}: float16 weights lose small updates; use multi_precision=True",
            stacklevel=2,
        )
        return self.create_state(index, weight)

    def update(self, index, weight: NDArray, grad: NDArray, state) -> None:
        """Change ``weight`` and ``state`` in place."""
        updates.check_shapes(type(self).__name__, weight, {"grad": grad})
        self._update_count(index)
        arrays = weight.data, grad.data, *_raw(state)
        step = functools.partial(self._update_raw, index)
        rows = sparse.rows_of(grad) if self._changes_only_rows(weight) else None
        if rows is None:
            step(*arrays)
        else:
            updates.on_rows(rows, step, *arrays)

    def _changes_only_rows(self, weight: NDArray) -> bool:
        """Whether a row-sparse gradient changes only the rows that it has."""
        return getattr(self, "lazy_update", False)

    def _update_raw(self, index, weight, grad, *state) -> None:
        """Update raw arrays in place; ``grad`` stays as it is."""
        updates.in_blocks(functools.partial(self._step, self._rates(index)), weight, grad, *state)

    def _rates(self, index) -> tuple:
        """Learning rate and weight decay for this update."""
        return self._get_lr(index), self._get_wd(index)

    def _step(self, rates, weight, grad, *state) -> None:
        """One element-wise step on raw arrays: change ``weight`` and ``state`` in place."""
        raise NotImplementedError(f"{type(self).__name__} must override update")

    def _clip(self, values):
        if self.clip_gradient is None:
            return values
        limit = float(np.float32(self.clip_gradient))  # as MXNet's clip has it
        return np.clip(values, -limit, limit, out=values)

    def _scaled(self, grad):
        """The gradient as rules see it: rescaled and clipped."""
        return self._clip(grad * self.rescale_grad)

    def _decayed_then_clipped(self, grad, weight, wd):
        """The gradient of rules that clip it together with the weight decay's part."""
        return self._clip(grad * self.rescale_grad + wd * weight)

    def update_multi_precision(self, index, weight: NDArray, grad: NDArray, state) -> None:
        """:meth:`update`, through the float32 copy where there is one.

        Lists of all four update several weights, one after the other.
        """
        if isinstance(index, list | tuple):
            for each in zip(index, weight, grad, state, strict=True):
                self.update_multi_precision(*each)
            return
        if not (self.multi_precision and weight.dtype == np.float16):
            self.update(index, weight, grad, state)
            return
        own, master = state if self._master_last else reversed(state)
        self.update(index, master, grad.astype(np.float32), own)
        weight[:] = master


_NOT_OFFERED = {
    "GroupAdaGrad": "use AdaGrad",
    "LARS": "use LAMB, or SGD with the warm-up of mx.lr_scheduler",
    "LBSGD": "use LAMB, or SGD with the warm-up of mx.lr_scheduler",
    "Test": "a subclass of Optimizer with create_state and update is a rule of your own",
}
_factory = Factory(Optimizer, "optimizer", _NOT_OFFERED)
register = _factory.register


def create(name, **kwargs) -> Optimizer:
    """An optimizer from its name, or one as it is."""
    return _factory.create(name, **kwargs)


Optimizer.opt_registry = _factory.classes
Optimizer.register = staticmethod(register)
Optimizer.create_optimizer = staticmethod(create)


def _raw(state) -> list:
    """The raw arrays of a state."""
    if state is None:
        return []
    return [each.data for each in (state if isinstance(state, list | tuple) else [state])]


def _zeros(weight: NDArray) -> NDArray:
    return zeros(weight.shape, weight.context, weight.dtype)


class _ByOperator(Optimizer):
    """An optimizer whose rule is an update operator's, whose settings are attributes of the same names."""

    _operator: updates.UpdateOperator

    @property
    def _zero_states(self) -> int:
        return self._operator.states

    def _update_raw(self, index, weight, grad, *state):
        self._operator.in_place(self._all_settings(index), weight, grad, *state)

    def _all_settings(self, index) -> dict:
        """What the operator is called with; as in MXNet, a limit of 0 is none."""
        lr, wd = self._rates(index)
        given = {"lr": lr, "wd": wd, "t": self._index_update_count[index], "clip_grad": self.clip_gradient}
        settings = {n: given[n] if n in given else getattr(self, n) for n in self._operator.settings}
        return {name: value for name, value in settings.items() if value or not name.startswith("clip")}


class _MomentumRule(_ByOperator):
    """A rule that may remember one array, the momentum; without, it is another operator's."""

    _with_momentum: updates.UpdateOperator
    _without_momentum: updates.UpdateOperator

    def create_state(self, index, weight):
        return _zeros(weight) if self.momentum else None

    @property
    def _operator(self):
        return self._with_momentum if self.momentum else self._without_momentum


@register
class SGD(Declared, _MomentumRule, takes={"momentum": 0.0, "lazy_update": True}):
    """Stochastic gradient descent: ``m = momentum * m - lr * g; w += m`` with ``g = grad + wd * w``.

    Parameters
    ----------
    momentum : float
        How much of the last step the next one keeps.
    lazy_update : bool
        Whether a row-sparse gradient changes only the rows that it has.
    **kwargs
        Those of :class:`Optimizer`.
    """

    _master_last = True
    _with_momentum, _without_momentum = updates.sgd_mom_update, updates.sgd_without_momentum


@register
class ccSGD(SGD):
    """:class:`SGD` under the name that old scripts give."""


@register
class NAG(Declared, _MomentumRule, takes={"momentum": 0.0}):
    """Nesterov's accelerated gradient: ``m = momentum * m - lr * g; w += momentum * m - lr * g``.

    As in MXNet, the weight decay in the new ``m`` is that of the new weight.
    """

    _master_last = True
    _with_momentum, _without_momentum = updates.nag_mom_update, updates.sgd_update


@register
class Signum(Declared, _MomentumRule, takes={"learning_rate": 0.01, "momentum": 0.9, "wd_lh": 0.0}):
    """Steps of one size along the sign of the momentum.

    Parameters
    ----------
    wd_lh : float
        Weight decay that is apart from the gradient, as of Loshchilov and Hutter.
    """

    # Without momentum there is neither clipping nor decay of the gradient, as in MXNet.
    _with_momentum, _without_momentum = updates.signum_update, updates.signsgd_update


@register
class Adam(
    Declared,
    _ByOperator,
    takes={"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "lazy_update": True},
):
    """Steps by the running mean of the gradient over the root of that of its square.

    Parameters
    ----------
    beta1, beta2 : float
        How slowly the two means change.
    epsilon : float
        Added to the root.
    lazy_update : bool
        Whether a row-sparse gradient changes only the rows that it has.
    """

    _operator = updates.adam_update

    def _rates(self, index):
        lr, wd = super()._rates(index)
        count = self._index_update_count[index]
        return lr * (math.sqrt(1 - self.beta2**count) / (1 - self.beta1**count)), wd


@register
class AdaGrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients so far.

    A row-sparse gradient changes only the rows that it has, without weight decay.

    Parameters
    ----------
    eps : float
        Added to the sum.
    """

    def __init__(self, eps=1e-7, **kwargs):
        super().__init__(**kwargs)
        self.float_stable_eps = eps

    def create_state(self, index, weight):
        return _zeros(weight)

    def update(self, index, weight, grad, state):
        if grad.stype == "row_sparse" and self._get_wd(index):
            raise ParamError("AdaGrad: wd must be 0 with row-sparse gradients, as in MXNet")
        super().update(index, weight, grad, state)

    def _changes_only_rows(self, weight):
        return True

    def _step(self, rates, weight, grad, history):
        lr, wd = rates
        g = self._scaled(grad)
        history += g * g
        weight += (g / np.sqrt(history + self.float_stable_eps) + weight * wd) * -lr


@register
class RMSProp(
    Declared,
    _ByOperator,
    takes={
        "learning_rate": 0.001,
        "gamma1": 0.9,
        "gamma2": 0.9,
        "epsilon": 1e-8,
        "centered": False,
        "clip_weights": None,
    },
):
    """Steps divided by the root of the running mean of squared gradients.

    Parameters
    ----------
    gamma1 : float
        How slowly the mean changes.
    gamma2 : float
        The momentum of the centered rule.
    epsilon : float
        Added under the root.
    centered : bool
        Whether the mean gradient is taken out of the squares, and the steps have momentum (Graves, 2013).
    clip_weights : float, optional
        Weights are cut to this size.
    """

    @property
    def _operator(self):
        return updates.rmspropalex_update if self.centered else updates.rmsprop_update


@register
class AdaDelta(Declared, Optimizer, takes={"rho": 0.90, "epsilon": 1e-5}):
    """Steps of the size of former steps; it has no learning rate.

    Parameters
    ----------
    rho : float
        How slowly the two running means change.
    epsilon : float
        Added under both roots.
    """

    _zero_states = 2

    def _step(self, rates, weight, grad, square, step_square):
        _, wd = rates
        g = self._scaled(grad)
        square[...] = self.rho * square + (1 - self.rho) * g * g
        step = np.sqrt(step_square + self.epsilon) / np.sqrt(square + self.epsilon) * g
        step_square[...] = self.rho * step_square + (1 - self.rho) * step * step
        weight -= step + wd * weight


@register
class Adamax(Declared, Optimizer, takes={"learning_rate": 0.002, "beta1": 0.9, "beta2": 0.999}):
    """Adam with the largest gradient of late in place of the root of the mean square.

    As in MXNet, a weight whose gradients have all been zero becomes NaN.

    Parameters
    ----------
    beta1, beta2 : float
        How slowly the mean changes and the largest gradient is forgotten.
    """

    _zero_states = 2

    def _rates(self, index):
        lr, wd = super()._rates(index)
        return lr / (1 - self.beta1 ** self._index_update_count[index]), wd

    def _step(self, rates, weight, grad, mean, largest):
        lr, wd = rates
        g = self._decayed_then_clipped(grad, weight, wd)
        mean[...] = self.beta1 * mean + (1 - self.beta1) * g
        largest[...] = np.maximum(self.beta2 * largest, np.abs(g))
        weight -= lr * mean / largest


@register
class Nadam(
    Declared,
    Optimizer,
    takes={"learning_rate": 0.001, "beta1": 0.9, "beta2": 0.999, "epsilon": 1e-8, "schedule_decay": 0.004},
):
    """Adam with Nesterov's momentum, which grows on a schedule.

    As in MXNet, all weights share one running product of the momentum's schedule.

    Parameters
    ----------
    schedule_decay : float
        How fast the momentum grows.

    The others are those of :class:`Adam`.
    """

    _running = ("m_schedule",)
    m_schedule = 1.0
    _zero_states = 2

    def _rates(self, index):
        """Learning rate, decay, the momentum now and in the next step, and what is left of three starts."""
        lr, wd = super()._rates(index)
        count = self._index_update_count[index]
        now, then = (
            self.beta1 * (1 - 0.5 * 0.96 ** (step * self.schedule_decay)) for step in (count, count + 1)
        )
        self.m_schedule *= now
        return lr, wd, now, then, 1 - self.m_schedule, 1 - self.m_schedule * then, 1 - self.beta2**count

    def _step(self, rates, weight, grad, mean, var):
        lr, wd, now, then, grad_left, mean_left, var_left = rates
        g = self._decayed_then_clipped(grad, weight, wd)
        mean[...] = self.beta1 * mean + (1 - self.beta1) * g
        var[...] = self.beta2 * var + (1 - self.beta2) * g * g
        step = (1 - now) * (g / grad_left) + then * (mean / mean_left)
        weight -= lr * step / (np.sqrt(var / var_left) + self.epsilon)


@register
class FTML(Declared, _ByOperator, takes={"beta1": 0.6, "beta2": 0.999, "epsilon": 1e-8}):
    """Follow the moving leader: Adam's steps as the minimum of a running sum of models.

    Its parameters are those of :class:`Adam`.
    """

    _operator = updates.ftml_update


@register
class Ftrl(_ByOperator):
    """Follow the regularized leader: weights that the gradients do not call for become exactly zero.

    Of a row-sparse weight, a row-sparse gradient changes only the rows that it has.

    Parameters
    ----------
    lamda1 : float
        How much a weight costs; MXNet's spelling.
    beta : float
        Added to the root of the sum of squared gradients.
    """

    _operator = updates.ftrl_update

    def __init__(self, lamda1=0.01, learning_rate=0.1, beta=1, **kwargs):
        super().__init__(**kwargs)
        self.lamda1, self.beta, self.lr = lamda1, beta, learning_rate

    def _changes_only_rows(self, weight):
        return weight.stype == "row_sparse"


@register
class LAMB(
    Declared,
    _ByOperator,
    takes={
        "learning_rate": 0.001,
        "beta1": 0.9,
        "beta2": 0.999,
        "epsilon": 1e-6,
        "lower_bound": None,
        "upper_bound": None,
        "bias_correction": True,
    },
):
    """Adam's steps, for each array in proportion to its norm; for large batches.

    Parameters
    ----------
    lower_bound, upper_bound : float, optional
        The array's norm is taken as no less and no more than this.
    bias_correction : bool
        Whether the means' start at zero is made up for.

    The others are those of :class:`Adam`.
    """

    _operator = updates.lamb_update_phase1

    def _update_raw(self, index, weight, grad, *state):
        step, lr = np.empty_like(weight), self._get_lr(index)
        self._operator.on_arrays(self._all_settings(index), step, weight, grad, *state)
        ratio = updates.lamb_ratio(_norm(weight), _norm(step), self.lower_bound or -1, self.upper_bound or -1)
        updates.sgd_update.in_place({"lr": lr * ratio}, weight, step)


def _norm(values) -> float:
    return math.sqrt(float((values * values.astype(np.float64)).sum()))


@register
class DCASGD(Declared, Optimizer, takes={"momentum": 0.0, "lamda": 0.04}):
    """SGD that makes up for gradients of an older weight, as of Zheng and others (2017).

    Parameters
    ----------
    momentum : float
        How much of the last step the next one keeps. (In MXNet 1.9.1 any but 0 is an error.)
    lamda : float
        How much is made up for; MXNet's spelling.
    """

    def create_state(self, index, weight):
        return (weight.copy(), _zeros(weight)) if self.momentum else (weight.copy(),)

    def _step(self, rates, weight, grad, previous, momentum=None):
        lr, wd = rates
        g = self._scaled(grad)
        step = -lr * (g + wd * weight + self.lamda * g * g * (weight - previous))
        if momentum is not None:
            momentum[...] = self.momentum * momentum + step
            step = momentum
        previous[...] = weight
        weight += step


@register
class SGLD(Optimizer):
    """Langevin dynamics: half a step of gradient descent, and noise whose variance is the learning rate."""

    def update(self, index, weight, grad, state):
        self._update_count(index)
        lr, wd = self._rates(index)
        weight.data[...] += (-lr / 2) * (self._scaled(grad.data) + wd * weight.data)
        weight += random.normal(0, math.sqrt(lr), weight.shape, weight.dtype, weight.context)


class Updater:
    """An optimizer together with its states: ``updater(index, grad, weight)``."""

    def __init__(self, optimizer: Optimizer):
        self.optimizer = optimizer
        self.states: dict = {}

    def __call__(self, index, grad, weight) -> None:
        if not isinstance(index, list | tuple):
            index, grad, weight = [index], [grad], [weight]
        for i, g, w in zip(index, grad, weight, strict=True):
            if i not in self.states:
                self.states[i] = self.optimizer.create_state_multi_precision(i, w)
            self.optimizer.update_multi_precision(i, w, g, self.states[i])

    def get_states(self, dump_optimizer: bool = False) -> bytes:
        """The states and the update counts, as the bytes of an npz file.

        Parameters
        ----------
        dump_optimizer : bool
            Whether the learning rate is there, too, which a program may have set. The counts always are;
            other parameters, such as the momentum, are the program's to give.
        """
        arrays: list = []

        def describe(state):
            if state is None:
                return None
            if isinstance(state, list | tuple):
                return [describe(each) for each in state]
            arrays.append(state.asnumpy())
            return len(arrays) - 1

        head = {
            "format": _STATES_FORMAT,
            "optimizer": type(self.optimizer).__name__,
            "num_update": self.optimizer.num_update,
            "counts": list(self.optimizer._index_update_count.items()),
            "running": {name: getattr(self.optimizer, name) for name in self.optimizer._running},
            "states": [[index, describe(state)] for index, state in self.states.items()],
        }
        if dump_optimizer and self.optimizer.lr is not None:  # no scheduler's
            head["lr"] = float(self.optimizer.lr)
        buffer = io.BytesIO()
        named = {f"array{i}": each for i, each in enumerate(arrays)}
        np.savez(buffer, head=np.frombuffer(json.dumps(head).encode(), np.uint8), **named)
        return buffer.getvalue()

    def set_states(self, states: bytes) -> None:
        """Take over what :meth:`get_states` gave."""
        try:
            with np.load(io.BytesIO(states), allow_pickle=False) as file:
                head = json.loads(bytes(file["head"]))
                arrays = {name: file[name] for name in file.files}
            if head["format"] != _STATES_FORMAT:
                raise ValueError(f"format {head['format']!r}")

            def build(state):
                if isinstance(state, list):
                    return tuple(build(each) for each in state)
                return (
                    None
                    if state is None
                    else array(arrays[f"array{state}"], dtype=arrays[f"array{state}"].dtype)
                )

            restored = {index: build(state) for index, state in head["states"]}
            counts = {index: int(count) for index, count in head["counts"]}
            num_update, name = int(head["num_update"]), head["optimizer"]
            own = self.optimizer._running if name == type(self.optimizer).__name__ else ()
            running = {key: float(head["running"][key]) for key in own}
            lr = float(head["lr"]) if "lr" in head else self.optimizer.lr
        except Exception as error:  # NumPy, zipfile and zlib raise errors of many kinds
            raise FormatError(
                f"optimizer states: not a file of roiops ({error}); MXNet's are pickled and are not read"
            ) from None
        if name != type(self.optimizer).__name__:
            raise FormatError(
                f"optimizer states: made by {name}, but the optimizer is {type(self.optimizer).__name__}"
            )
        self.states, self.optimizer.lr = restored, lr
        for key, value in running.items():
            setattr(self.optimizer, key, value)
        self.optimizer._index_update_count, self.optimizer.num_update = counts, num_update

    def save_optimizer_states(self, fname, dump_optimizer: bool = False) -> None:
        """Write what :meth:`get_states` gives to a file, whole or not at all."""
        states = self.get_states(dump_optimizer)
        with files.replacing(fname) as file:
            file.write(states)

    def load_optimizer_states(self, fname) -> None:
        """Take over what a file holds."""
        self.set_states(Path(fname).read_bytes())


_STATES_FORMAT = "roiops optimizer states 1"


def get_updater(optimizer: Optimizer) -> Updater:
    """A function that updates weights and keeps their states."""
    return Updater(optimizer)


__getattr__ = without("optimizer", {**_NOT_OFFERED, "contrib": "use AdaGrad in place of its GroupAdaGrad"})
