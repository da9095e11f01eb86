"""Rules that turn gradients into new weights."""

import io
import json
import math
import warnings
import zipfile

import numpy as np

from ..errors import FormatError, ParamError
from ..ndarray import NDArray, array, random, sparse, updates, zeros
from .factory import Factory

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

    def _update_count(self, index) -> None:
        count = self._index_update_count.get(index, self.begin_num_update) + 1
        self._index_update_count[index] = count
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
        self._update_count(index)
        arrays = [weight.data, grad.data, *_raw(state)]
        rows = sparse.rows_of(grad) if self._changes_only_rows(weight) else None
        if rows is None:
            self._update_raw(index, *arrays[:2], arrays[2:])
            return
        parts = [each[rows] for each in arrays]
        self._update_raw(index, *parts[:2], parts[2:])
        for i in (0, *range(2, len(arrays))):
            arrays[i][rows] = parts[i]

    def _changes_only_rows(self, weight: NDArray) -> bool:
        """Whether a row-sparse gradient changes only the rows that it has."""
        return getattr(self, "lazy_update", False)

    def _update_raw(self, index, weight, grad, state) -> None:
        """Update arrays block by block, so that a formula's temporaries stay in the processor's cache."""
        rates = self._rates(index)
        arrays = [weight, grad, *state]
        if not all(a.flags["C_CONTIGUOUS"] for a in arrays):
            self._step(rates, *arrays)
            return
        flat = [a.reshape(-1) for a in arrays]
        block = _BLOCK if isinstance(weight, np.ndarray) else max(1, weight.size)
        for start in range(0, weight.size, block):
            self._step(rates, *(a[start : start + block] for a in flat))

    def _rates(self, index) -> tuple:
        """Learning rate and weight decay for this update."""
        return self._get_lr(index), self._get_wd(index)

    def _step(self, rates, weight, grad, *state) -> None:
        """One step on raw arrays: change ``weight`` and ``state`` in place, leave ``grad`` as it is."""
        raise NotImplementedError(f"{type(self).__name__} must override update")

    def _clip(self, values):
        limit = self.clip_gradient
        return np.clip(values, -limit, limit, out=values) if limit else values

    def _scaled(self, grad):
        """The gradient as rules see it: rescaled and clipped."""
        return self._clip(grad * self.rescale_grad)

    def _decayed(self, grad, weight, wd):
        """The rescaled and clipped gradient, and then the weight decay's part."""
        g = self._scaled(grad)
        return g + wd * weight if wd else g

    def _decayed_then_clipped(self, grad, weight, wd):
        """The gradient of rules that clip it together with the weight decay's part."""
        g = grad * self.rescale_grad
        return self._clip(g + wd * weight if wd else g)

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


#: Elements updated at once: a formula's temporaries stay in a cache, and are few calls of NumPy.
_BLOCK = 131072

_factory = Factory(Optimizer, "optimizer")
register, create = _factory.register, _factory.create
Optimizer.register = staticmethod(register)
Optimizer.create_optimizer = staticmethod(create)


def _raw(state) -> list:
    """The raw arrays of a state."""
    if state is None:
        return []
    return [each.data for each in (state if isinstance(state, list | tuple) else [state])]


def _zeros(weight: NDArray) -> NDArray:
    return zeros(weight.shape, weight.context, weight.dtype)


class _MomentumRule(Optimizer):
    """A rule that may remember one array, the momentum."""

    def create_state(self, index, weight):
        return _zeros(weight) if self.momentum else None


@register
class SGD(_MomentumRule):
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

    def __init__(self, momentum=0.0, lazy_update=True, **kwargs):
        super().__init__(**kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    def _update_raw(self, index, weight, grad, state):
        # One pass is worth its compiling where the arrays do not stay in a cache.
        if state and weight.size > _BLOCK and updates.takes_one_pass(weight, grad, *state):
            rates, limit = self._rates(index), self.clip_gradient or None
            updates.momentum_step(weight, grad, *state, *rates, self.momentum, self.rescale_grad, limit)
        else:
            super()._update_raw(index, weight, grad, state)

    def _step(self, rates, weight, grad, momentum=None):
        lr, wd = rates
        step = lr * self._decayed(grad, weight, wd)
        if momentum is None:
            weight -= step
            return
        momentum[...] = self.momentum * momentum - step
        weight += momentum


@register
class NAG(_MomentumRule):
    """Nesterov's accelerated gradient: ``m = momentum * m - lr * g; w += momentum * m - lr * g``.

    As in MXNet, the weight decay in the new ``m`` is that of the new weight.
    """

    _master_last = True

    def __init__(self, momentum=0.0, **kwargs):
        super().__init__(**kwargs)
        self.momentum = momentum

    def _step(self, rates, weight, grad, momentum=None):
        lr, wd = rates
        if momentum is None:
            weight -= lr * self._decayed(grad, weight, wd)
            return
        step = lr * self._scaled(grad)
        momentum[...] = self.momentum * momentum - step
        weight += self.momentum * momentum - (step + lr * wd * (1 + self.momentum) * weight)
        momentum -= lr * wd * weight


@register
class Signum(_MomentumRule):
    """Steps of one size along the sign of the momentum.

    Parameters
    ----------
    wd_lh : float
        Weight decay that is apart from the gradient, as of Loshchilov and Hutter.
    """

    def __init__(self, learning_rate=0.01, momentum=0.9, wd_lh=0.0, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.momentum, self.wd_lh = momentum, wd_lh

    def _step(self, rates, weight, grad, momentum=None):
        lr, wd = rates
        if momentum is None:  # MXNet's rule for this case has neither clipping nor decay of the gradient
            weight[...] = (1 - lr * wd) * weight - lr * np.sign(grad)
            return
        momentum[...] = self.momentum * momentum - (1 - self.momentum) * self._decayed(grad, weight, wd)
        weight[...] = (1 - lr * self.wd_lh) * weight + lr * np.sign(momentum)


def _one_minus_power(beta: float, count: int = 1) -> float:
    """1 - beta ** count as MXNet has it, in float32: for 0.999 the two differ in the fifth digit."""
    return float(np.float32(1) - np.float32(float(np.float32(beta)) ** count))


@register
class Adam(Optimizer):
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

    _zero_states = 2

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_update=True, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.lazy_update = beta1, beta2, epsilon, lazy_update

    def _rates(self, index):
        lr, wd = super()._rates(index)
        count = self._index_update_count[index]
        return lr * math.sqrt(1 - self.beta2**count) / (1 - self.beta1**count), wd

    def _step(self, rates, weight, grad, mean, var):
        lr, wd = rates
        g = self._decayed_then_clipped(grad, weight, wd)
        mean[...] = self.beta1 * mean + _one_minus_power(self.beta1) * g
        var[...] = self.beta2 * var + _one_minus_power(self.beta2) * (g * g)
        weight -= lr * (mean / (np.sqrt(var) + self.epsilon))


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
        weight -= lr * (g / np.sqrt(history + self.float_stable_eps) + wd * weight)


@register
class RMSProp(Optimizer):
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

    def __init__(
        self,
        learning_rate=0.001,
        gamma1=0.9,
        gamma2=0.9,
        epsilon=1e-8,
        centered=False,
        clip_weights=None,
        **kwargs,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.gamma1, self.gamma2, self.epsilon = gamma1, gamma2, epsilon
        self.centered, self.clip_weights = centered, clip_weights

    @property
    def _zero_states(self) -> int:
        return 3 if self.centered else 1

    def _step(self, rates, weight, grad, square, mean=None, delta=None):
        lr, wd = rates
        g = self._decayed_then_clipped(grad, weight, wd)
        square[...] = self.gamma1 * square + (1 - self.gamma1) * (g * g)
        if mean is None:
            weight -= lr * (g / np.sqrt(square + self.epsilon))
        else:
            mean[...] = self.gamma1 * mean + (1 - self.gamma1) * g
            delta[...] = self.gamma2 * delta - lr * (g / np.sqrt(square - mean * mean + self.epsilon))
            weight += delta
        if self.clip_weights:
            np.clip(weight, -self.clip_weights, self.clip_weights, out=weight)


@register
class AdaDelta(Optimizer):
    """Steps of the size of former steps; it has no learning rate.

    Parameters
    ----------
    rho : float
        How slowly the two running means change.
    epsilon : float
        Added under both roots.
    """

    _zero_states = 2

    def __init__(self, rho=0.90, epsilon=1e-5, **kwargs):
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def _step(self, rates, weight, grad, square, step_square):
        _, wd = rates
        g = self._scaled(grad)
        square[...] = self.rho * square + (1 - self.rho) * (g * g)
        step = g / np.sqrt(square + self.epsilon) * np.sqrt(step_square + self.epsilon)
        step_square[...] = self.rho * step_square + (1 - self.rho) * (step * step)
        weight -= step + wd * weight


@register
class Adamax(Optimizer):
    """Adam with the largest gradient of late in place of the root of the mean square.

    As in MXNet, a weight whose gradients have all been zero becomes NaN.

    Parameters
    ----------
    beta1, beta2 : float
        How slowly the mean changes and the largest gradient is forgotten.
    """

    _zero_states = 2

    def __init__(self, learning_rate=0.002, beta1=0.9, beta2=0.999, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2 = beta1, beta2

    def _rates(self, index):
        lr, wd = super()._rates(index)
        return lr / (1 - self.beta1 ** self._index_update_count[index]), wd

    def _step(self, rates, weight, grad, mean, largest):
        lr, wd = rates
        g = self._decayed_then_clipped(grad, weight, wd)
        mean[...] = self.beta1 * mean + (1 - self.beta1) * g
        largest[...] = np.maximum(self.beta2 * largest, np.abs(g))
        with np.errstate(invalid="ignore"):
            weight -= lr * mean / largest


@register
class Nadam(Optimizer):
    """Adam with Nesterov's momentum, which grows on a schedule.

    As in MXNet, all weights share one running product of the momentum's schedule.

    Parameters
    ----------
    beta1, beta2 : float
        How slowly the two means change.
    epsilon : float
        Added to the root.
    schedule_decay : float
        How fast the momentum grows.
    """

    _running = ("m_schedule",)
    _zero_states = 2

    def __init__(
        self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, schedule_decay=0.004, **kwargs
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.schedule_decay, self.m_schedule = schedule_decay, 1.0

    def _rates(self, index):
        """Learning rate, decay, and the factors of the gradient, of its mean and of the mean square."""
        lr, wd = super()._rates(index)
        count = self._index_update_count[index]
        now, then = (
            self.beta1 * (1 - 0.5 * 0.96 ** (step * self.schedule_decay)) for step in (count, count + 1)
        )
        self.m_schedule *= now
        of_grad = (1 - now) / (1 - self.m_schedule)
        of_mean = then / (1 - self.m_schedule * then)
        return lr, wd, of_grad, of_mean, 1 / (1 - self.beta2**count)

    def _step(self, rates, weight, grad, mean, var):
        lr, wd, of_grad, of_mean, of_var = rates
        g = self._decayed_then_clipped(grad, weight, wd)
        mean[...] = self.beta1 * mean + (1 - self.beta1) * g
        var[...] = self.beta2 * var + (1 - self.beta2) * (g * g)
        weight -= lr * ((of_grad * g + of_mean * mean) / (np.sqrt(of_var * var) + self.epsilon))


@register
class FTML(Optimizer):
    """Follow the moving leader: Adam's steps as the minimum of a running sum of models.

    Parameters
    ----------
    beta1, beta2 : float
        How slowly the two means change.
    epsilon : float
        Added to the root.
    """

    _zero_states = 3

    def __init__(self, beta1=0.6, beta2=0.999, epsilon=1e-8, **kwargs):
        super().__init__(**kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def _rates(self, index):
        lr, wd = super()._rates(index)
        count = self._index_update_count[index]
        return _one_minus_power(self.beta1, count) / lr, wd, _one_minus_power(self.beta2, count)

    def _step(self, rates, weight, grad, scale, var, leader):
        beta1_over_lr, wd, beta2_left = rates
        g = self._decayed_then_clipped(grad, weight, wd)
        var[...] = self.beta2 * var + _one_minus_power(self.beta2) * (g * g)
        leader[...] = self.beta1 * leader + _one_minus_power(self.beta1) * g
        before = self.beta1 * scale
        scale[...] = (np.sqrt(var / beta2_left) + self.epsilon) * beta1_over_lr
        leader -= (scale - before) * weight
        weight[...] = -(leader / scale)


@register
class Ftrl(Optimizer):
    """Follow the regularized leader: weights that the gradients do not call for become exactly zero.

    Of a row-sparse weight, a row-sparse gradient changes only the rows that it has.

    Parameters
    ----------
    lamda1 : float
        How much a weight costs; MXNet's spelling.
    beta : float
        Added to the root of the sum of squared gradients.
    """

    _zero_states = 2

    def __init__(self, lamda1=0.01, learning_rate=0.1, beta=1, **kwargs):
        super().__init__(**kwargs)
        self.lamda1, self.beta, self.lr = lamda1, beta, learning_rate

    def _changes_only_rows(self, weight):
        return weight.stype == "row_sparse"

    def _step(self, rates, weight, grad, leader, square):
        lr, wd = rates
        g = self._scaled(grad)
        root = np.sqrt(square)
        square += g * g
        new_root = np.sqrt(square)
        leader += g
        leader -= (new_root - root) * weight / lr
        # The leader drawn towards zero by lamda1, with the sign turned: min(max(z, -l), l) - z.
        drawn = np.clip(leader, -self.lamda1, self.lamda1) - leader
        weight[...] = drawn / ((new_root + self.beta) / lr + wd)


@register
class LAMB(Optimizer):
    """Adam's steps, for each array in proportion to its norm; for large batches.

    Parameters
    ----------
    beta1, beta2 : float
        How slowly the two means change.
    epsilon : float
        Added to the root.
    lower_bound, upper_bound : float, optional
        The array's norm is taken as no less and no more than this.
    bias_correction : bool
        Whether the means' start at zero is made up for.
    """

    _zero_states = 2

    def __init__(
        self,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-6,
        lower_bound=None,
        upper_bound=None,
        bias_correction=True,
        **kwargs,
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.lower_bound, self.upper_bound = lower_bound, upper_bound
        self.bias_correction = bias_correction

    def _rates(self, index):
        """Weight decay, and what is left of the means' start at zero."""
        count = self._index_update_count[index] if self.bias_correction else math.inf
        return self._get_wd(index), _one_minus_power(self.beta1, count), _one_minus_power(self.beta2, count)

    def _update_raw(self, index, weight, grad, state) -> None:
        step = np.empty_like(weight)
        super()._update_raw(index, weight, grad, [*state, step])
        size, step_size = _norm(weight), _norm(step)
        if self.lower_bound:
            size = max(size, self.lower_bound)
        if self.upper_bound:
            size = min(size, self.upper_bound)
        lr = self._get_lr(index)
        step *= lr * size / step_size if size and step_size else lr
        weight -= step

    def _step(self, rates, weight, grad, mean, var, step):
        wd, mean_left, var_left = rates
        g = self._scaled(grad)
        mean[...] = self.beta1 * mean + _one_minus_power(self.beta1) * g
        var[...] = self.beta2 * var + _one_minus_power(self.beta2) * (g * g)
        step[...] = (mean / mean_left) / (np.sqrt(var / var_left) + self.epsilon) + wd * weight


def _norm(values) -> float:
    return math.sqrt(float((values * values).sum()))


@register
class DCASGD(_MomentumRule):
    """SGD that makes up for gradients of an older weight, as of Zheng and others (2017).

    Parameters
    ----------
    momentum : float
        How much of the last step the next one keeps. (In MXNet 1.9.1 any but 0 is an error.)
    lamda : float
        How much is made up for; MXNet's spelling.
    """

    def __init__(self, momentum=0.0, lamda=0.04, **kwargs):
        super().__init__(**kwargs)
        self.momentum, self.lamda = momentum, lamda

    def create_state(self, index, weight):
        return (weight.copy(), _zeros(weight)) if self.momentum else (weight.copy(),)

    def _step(self, rates, weight, grad, previous, momentum=None):
        lr, wd = rates
        g = self._scaled(grad)
        step = lr * (g + self.lamda * (g * g) * (weight - previous) + wd * weight)
        previous[...] = weight
        if momentum is None:
            weight -= step
        else:
            momentum[...] = self.momentum * momentum - step
            weight += momentum


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
            Accepted for MXNet's sake. The counts are always there; parameters such as the momentum are the
            program's to give.
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
            running = {key: float(value) for key, value in head.get("running", {}).items()}
        except (ValueError, KeyError, TypeError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise FormatError(
                f"optimizer states: not a file of roiops ({error}); MXNet's are pickled and are not read"
            ) from None
        if name != type(self.optimizer).__name__:
            raise FormatError(
                f"optimizer states: made by {name}, but the optimizer is {type(self.optimizer).__name__}"
            )
        self.states = restored
        for key in self.optimizer._running:
            setattr(self.optimizer, key, running[key])
        self.optimizer._index_update_count, self.optimizer.num_update = counts, num_update


_STATES_FORMAT = "roiops optimizer states 1"


def get_updater(optimizer: Optimizer) -> Updater:
    """A function that updates weights and keeps their states."""
    return Updater(optimizer)
