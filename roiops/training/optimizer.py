"""Rules that turn gradients into new weights."""

import io
import json
import logging
import math
import warnings
import zipfile

import numpy as np

from ..errors import FormatError, ParamError
from ..ndarray import NDArray, array, random, zeros
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
            logging.warning(
                "%s: learning_rate %g replaces base_lr %g of lr_scheduler",
                type(self).__name__, learning_rate, lr_scheduler.base_lr,
            )  # fmt: skip
            lr_scheduler.base_lr = learning_rate
        self.lr = 0.01 if learning_rate is None and lr_scheduler is None else learning_rate
        self.lr_scheduler = lr_scheduler
        self.rescale_grad, self.wd, self.clip_gradient = rescale_grad, wd, clip_gradient
        self.multi_precision = multi_precision
        self.begin_num_update = self.num_update = begin_num_update
        self._index_update_count: dict = {}
        self.idx2name = dict(param_idx2name or {})
        self.param_dict = param_dict or {}
        self._attributes = {} if sym is None else sym.attr_dict()
        self._scratch: dict = {}
        self.set_lr_mult({})
        self.set_wd_mult({})

    # -- learning rates and weight decays -------------------------------------------------------------

    @property
    def learning_rate(self) -> float:
        """The learning rate now, before ``lr_mult``."""
        return self.lr if self.lr_scheduler is None else self.lr_scheduler(self.num_update)

    def set_learning_rate(self, lr: float) -> None:
        """Set the learning rate; an error where a scheduler decides it."""
        if self.lr_scheduler is not None:
            raise ParamError(
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

    def create_state(self, index, weight: NDArray):
        """What the rule remembers of one weight: None, an array, or a tuple of these."""
        return

    def create_state_multi_precision(self, index, weight: NDArray):
        """:meth:`create_state`, with a float32 copy of a float16 weight before it."""
        if weight.dtype != np.float16:
            return self.create_state(index, weight)
        if self.multi_precision:
            master = weight.astype(np.float32)
            return master, self.create_state(index, master)
        warnings.warn(
            f"{type(self).__name__}: float16 weights lose small updates; use multi_precision=True",
            stacklevel=2,
        )
        return self.create_state(index, weight)

    def update(self, index, weight: NDArray, grad: NDArray, state) -> None:
        """Change ``weight`` and ``state`` in place."""
        self._update_count(index)
        self._update_raw(index, weight.data, grad.data, _raw(state))

    def _update_raw(self, index, weight, grad, state) -> None:
        """Update arrays block by block, so that temporaries stay in the processor's cache."""
        rates = self._rates(index)
        arrays = [weight, grad, *state]
        if not all(a.flags["C_CONTIGUOUS"] for a in arrays):
            self._step(rates, self._temporaries(weight), *arrays)
            return
        flat = [a.reshape(-1) for a in arrays]
        block = _BLOCK if isinstance(weight, np.ndarray) else max(1, weight.size)
        for start in range(0, weight.size, block):
            part = [a[start : start + block] for a in flat]
            self._step(rates, self._temporaries(part[0]), *part)

    def _rates(self, index) -> tuple:
        """Learning rate and weight decay for this update."""
        return self._get_lr(index), self._get_wd(index)

    def _temporaries(self, like) -> tuple:
        """Two arrays like ``like``; those of blocks are kept from one to the next."""
        if not isinstance(like, np.ndarray) or like.size > _BLOCK:
            return np.empty_like(like), np.empty_like(like)
        key = (like.dtype, like.shape)
        held = self._scratch.get(key)
        if held is None:
            if len(self._scratch) > 64:
                self._scratch.clear()
            held = self._scratch[key] = (np.empty_like(like), np.empty_like(like))
        return held

    def _step(self, rates, temporaries, weight, grad, *state) -> None:
        """One step on raw arrays. ``temporaries`` may be used at will; ``grad`` must stay."""
        raise NotImplementedError(f"{type(self).__name__} must override update")

    def _scaled(self, grad, out):
        """The gradient as rules see it, in ``out``: rescaled and clipped."""
        np.multiply(grad, self.rescale_grad, out=out)
        return self._clipped(out)

    def _decayed_and_clipped(self, grad, weight, wd, temporaries):
        """The gradient of rules that clip it together with the weight decay's part."""
        g, t = temporaries
        np.multiply(grad, self.rescale_grad, out=g)
        if wd:
            np.multiply(weight, wd, out=t)
            g += t
        return self._clipped(g)

    def _clipped(self, values):
        if self.clip_gradient:
            np.clip(values, -self.clip_gradient, self.clip_gradient, out=values)
        return values

    def update_multi_precision(self, index, weight: NDArray, grad: NDArray, state) -> None:
        """:meth:`update`, through the float32 copy where there is one."""
        if not (self.multi_precision and weight.dtype == np.float16):
            self.update(index, weight, grad, state)
            return
        master, own = state
        self.update(index, master, grad.astype(np.float32), own)
        weight[:] = master


#: Elements updated at once: with its temporaries, a block of float32 fits a core's own cache.
_BLOCK = 16384

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

    def _decayed(self, grad, weight, wd, temporaries):
        """The gradient with the weight decay's part."""
        g, t = temporaries
        self._scaled(grad, g)
        if wd:
            np.multiply(weight, wd, out=t)
            g += t
        return g


@register
class SGD(_MomentumRule):
    """Stochastic gradient descent: ``m = momentum * m - lr * g; w += m`` with ``g = grad + wd * w``.

    Parameters
    ----------
    momentum : float
        How much of the last step the next one keeps.
    lazy_update : bool
        Accepted for MXNet's sake; all gradients are dense here.
    **kwargs
        Those of :class:`Optimizer`.
    """

    def __init__(self, momentum=0.0, lazy_update=True, **kwargs):
        super().__init__(**kwargs)
        self.momentum, self.lazy_update = momentum, lazy_update

    def _step(self, rates, temporaries, weight, grad, momentum=None):
        lr, wd = rates
        g = self._decayed(grad, weight, wd, temporaries)
        g *= lr
        if momentum is None:
            weight -= g
            return
        momentum *= self.momentum
        momentum -= g
        weight += momentum


@register
class NAG(_MomentumRule):
    """Nesterov's accelerated gradient: ``m = momentum * m - lr * g; w += momentum * m - lr * g``.

    As in MXNet, the weight decay in the new ``m`` is that of the new weight.
    """

    def __init__(self, momentum=0.0, **kwargs):
        super().__init__(**kwargs)
        self.momentum = momentum

    def _step(self, rates, temporaries, weight, grad, momentum=None):
        lr, wd = rates
        g, t = temporaries
        if momentum is None:
            self._decayed(grad, weight, wd, temporaries)
            g *= lr
            weight -= g
            return
        self._scaled(grad, g)
        g *= lr
        momentum *= self.momentum
        momentum -= g
        np.multiply(weight, lr * wd * (1 + self.momentum), out=t)
        g += t
        np.multiply(momentum, self.momentum, out=t)
        t -= g
        weight += t
        np.multiply(weight, lr * wd, out=t)
        momentum -= t


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

    def _step(self, rates, temporaries, weight, grad, momentum=None):
        lr, wd = rates
        if momentum is None:  # MXNet's rule for this case has neither clipping nor decay of the gradient
            t = temporaries[0]
            np.sign(grad, out=t)
        else:
            t = self._decayed(grad, weight, wd, temporaries)
            t *= 1 - self.momentum
            momentum *= self.momentum
            momentum -= t
            np.sign(momentum, out=t)
            np.negative(t, out=t)
        decay = self.wd_lh if momentum is not None else wd
        weight *= 1 - lr * decay
        t *= lr
        weight -= t


def _blend(mean, values, kept, taken, t) -> None:
    """``mean = kept * mean + taken * values``, through the temporary ``t``."""
    mean *= kept
    np.multiply(values, taken, out=t)
    mean += t


def _blend_squares(mean, values, kept, taken, t) -> None:
    """``mean = kept * mean + taken * values ** 2``, through the temporary ``t``."""
    mean *= kept
    np.multiply(values, values, out=t)
    t *= taken
    mean += t


def _rest(beta: float, count: int = 1) -> float:
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
    """

    def __init__(self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, lazy_update=True, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon, self.lazy_update = beta1, beta2, epsilon, lazy_update

    def create_state(self, index, weight):
        return _zeros(weight), _zeros(weight)

    def _rates(self, index):
        lr, wd = super()._rates(index)
        count = self._index_update_count[index]
        return lr * math.sqrt(1 - self.beta2**count) / (1 - self.beta1**count), wd

    def _step(self, rates, temporaries, weight, grad, mean, var):
        lr, wd = rates
        g, t = self._decayed_and_clipped(grad, weight, wd, temporaries), temporaries[1]
        _blend(mean, g, self.beta1, _rest(self.beta1), t)
        _blend_squares(var, g, self.beta2, _rest(self.beta2), t)
        np.sqrt(var, out=g)
        g += self.epsilon
        np.divide(mean, g, out=t)
        t *= lr
        weight -= t


@register
class AdaGrad(Optimizer):
    """Steps divided by the root of the sum of all squared gradients so far.

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

    def _step(self, rates, temporaries, weight, grad, history):
        lr, wd = rates
        g, t = temporaries
        self._scaled(grad, g)
        np.multiply(g, g, out=t)
        history += t
        np.add(history, self.float_stable_eps, out=t)
        np.sqrt(t, out=t)
        g /= t
        np.multiply(weight, wd, out=t)
        g += t
        g *= lr
        weight -= g


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

    def create_state(self, index, weight):
        return tuple(_zeros(weight) for _ in range(3 if self.centered else 1))

    def _step(self, rates, temporaries, weight, grad, square, mean=None, delta=None):
        lr, wd = rates
        g, t = self._decayed_and_clipped(grad, weight, wd, temporaries), temporaries[1]
        _blend_squares(square, g, self.gamma1, 1 - self.gamma1, t)
        if mean is None:
            np.add(square, self.epsilon, out=t)
        else:
            _blend(mean, g, self.gamma1, 1 - self.gamma1, t)
            np.multiply(mean, mean, out=t)
            np.subtract(square, t, out=t)
            t += self.epsilon
        np.sqrt(t, out=t)
        g /= t
        g *= lr
        if delta is None:
            weight -= g
        else:
            delta *= self.gamma2
            delta -= g
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

    def __init__(self, rho=0.90, epsilon=1e-5, **kwargs):
        super().__init__(**kwargs)
        self.rho, self.epsilon = rho, epsilon

    def create_state(self, index, weight):
        return _zeros(weight), _zeros(weight)

    def _step(self, rates, temporaries, weight, grad, square, step_square):
        _, wd = rates
        g, t = temporaries
        self._scaled(grad, g)
        _blend_squares(square, g, self.rho, 1 - self.rho, t)
        np.add(square, self.epsilon, out=t)
        np.divide(g, np.sqrt(t, out=t), out=g)
        np.add(step_square, self.epsilon, out=t)
        g *= np.sqrt(t, out=t)
        _blend_squares(step_square, g, self.rho, 1 - self.rho, t)
        np.multiply(weight, wd, out=t)
        g += t
        weight -= g


@register
class Adamax(Optimizer):
    """Adam with the largest gradient of late in place of the root of the mean square.

    As in MXNet, a weight whose gradients have all been zero becomes NaN.

    Parameters
    ----------
    beta1, beta2 : float
        How slowly the mean changes and the largest gradient is forgotten.
    """

    def __init__(self, learning_rate=0.002, beta1=0.9, beta2=0.999, **kwargs):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2 = beta1, beta2

    def create_state(self, index, weight):
        return _zeros(weight), _zeros(weight)

    def _rates(self, index):
        lr, wd = super()._rates(index)
        return lr / (1 - self.beta1 ** self._index_update_count[index]), wd

    def _step(self, rates, temporaries, weight, grad, mean, largest):
        lr, wd = rates
        g, t = self._decayed_and_clipped(grad, weight, wd, temporaries), temporaries[1]
        _blend(mean, g, self.beta1, 1 - self.beta1, t)
        largest *= self.beta2
        np.maximum(largest, np.abs(g, out=g), out=largest)
        np.multiply(mean, lr, out=t)
        with np.errstate(invalid="ignore"):
            t /= largest
        weight -= t


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

    def __init__(
        self, learning_rate=0.001, beta1=0.9, beta2=0.999, epsilon=1e-8, schedule_decay=0.004, **kwargs
    ):
        super().__init__(learning_rate=learning_rate, **kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon
        self.schedule_decay, self.m_schedule = schedule_decay, 1.0

    def create_state(self, index, weight):
        return _zeros(weight), _zeros(weight)

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

    def _step(self, rates, temporaries, weight, grad, mean, var):
        lr, wd, of_grad, of_mean, of_var = rates
        g, t = self._decayed_and_clipped(grad, weight, wd, temporaries), temporaries[1]
        _blend(mean, g, self.beta1, 1 - self.beta1, t)
        _blend_squares(var, g, self.beta2, 1 - self.beta2, t)
        g *= of_grad
        np.multiply(mean, of_mean, out=t)
        g += t
        np.multiply(var, of_var, out=t)
        np.sqrt(t, out=t)
        t += self.epsilon
        g /= t
        g *= lr
        weight -= g


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

    def __init__(self, beta1=0.6, beta2=0.999, epsilon=1e-8, **kwargs):
        super().__init__(**kwargs)
        self.beta1, self.beta2, self.epsilon = beta1, beta2, epsilon

    def create_state(self, index, weight):
        return _zeros(weight), _zeros(weight), _zeros(weight)

    def _rates(self, index):
        lr, wd = super()._rates(index)
        count = self._index_update_count[index]
        return _rest(self.beta1, count) / lr, wd, _rest(self.beta2, count)

    def _step(self, rates, temporaries, weight, grad, scale, var, leader):
        over_lr, wd, var_rest = rates
        g, t = self._decayed_and_clipped(grad, weight, wd, temporaries), temporaries[1]
        _blend_squares(var, g, self.beta2, _rest(self.beta2), t)
        _blend(leader, g, self.beta1, _rest(self.beta1), t)
        np.multiply(scale, self.beta1, out=g)
        np.divide(var, var_rest, out=t)
        np.sqrt(t, out=t)
        t += self.epsilon
        np.multiply(t, over_lr, out=scale)
        np.subtract(scale, g, out=g)
        g *= weight
        leader -= g
        np.divide(leader, scale, out=weight)
        np.negative(weight, out=weight)


@register
class Ftrl(Optimizer):
    """Follow the regularized leader: weights that the gradients do not call for become exactly zero.

    Parameters
    ----------
    lamda1 : float
        How much a weight costs; MXNet's spelling.
    beta : float
        Added to the root of the sum of squared gradients.
    """

    def __init__(self, lamda1=0.01, learning_rate=0.1, beta=1, **kwargs):
        super().__init__(**kwargs)
        self.lamda1, self.beta, self.lr = lamda1, beta, learning_rate

    def create_state(self, index, weight):
        return _zeros(weight), _zeros(weight)

    def _step(self, rates, temporaries, weight, grad, leader, square):
        lr, wd = rates
        g, t = self._scaled(grad, temporaries[0]), temporaries[1]
        leader += g
        g *= g
        np.sqrt(square, out=t)
        square += g
        np.sqrt(square, out=g)
        np.subtract(g, t, out=t)
        t *= weight
        t /= lr
        leader -= t
        # The leader drawn towards zero by lamda1, with the sign turned: min(max(z, -l), l) - z.
        np.clip(leader, -self.lamda1, self.lamda1, out=t)
        t -= leader
        g += self.beta
        g /= lr
        g += wd
        np.divide(t, g, out=weight)


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

    def create_state(self, index, weight):
        return _zeros(weight), _zeros(weight)

    def _update_raw(self, index, weight, grad, state) -> None:
        # The norms are of whole arrays, so there is nothing to gain from blocks.
        self._step((*self._rates(index), self._index_update_count[index]), None, weight, grad, *state)

    def _step(self, rates, temporaries, weight, grad, mean, var):
        lr, wd, count = rates
        g, t = self._scaled(grad, np.empty_like(weight)), np.empty_like(weight)
        _blend(mean, g, self.beta1, _rest(self.beta1), t)
        _blend_squares(var, g, self.beta2, _rest(self.beta2), t)
        corrected = self.bias_correction
        np.divide(var, _rest(self.beta2, count) if corrected else 1, out=t)
        np.sqrt(t, out=t)
        t += self.epsilon
        np.divide(mean, _rest(self.beta1, count) if corrected else 1, out=g)
        g /= t
        np.multiply(weight, wd, out=t)
        g += t
        size, step_size = _norm(weight, t), _norm(g, t)
        if self.lower_bound:
            size = max(size, self.lower_bound)
        if self.upper_bound:
            size = min(size, self.upper_bound)
        g *= lr * size / step_size if size and step_size else lr
        weight -= g


def _norm(values, t) -> float:
    """The root of the sum of squares, through the temporary ``t``."""
    return math.sqrt(float(np.multiply(values, values, out=t).sum()))


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

    def _step(self, rates, temporaries, weight, grad, previous, momentum=None):
        lr, wd = rates
        g, t = temporaries
        self._scaled(grad, g)
        np.multiply(g, g, out=t)
        t *= self.lamda
        np.subtract(weight, previous, out=previous)
        t *= previous
        g += t
        np.multiply(weight, wd, out=t)
        g += t
        g *= lr
        previous[...] = weight
        if momentum is None:
            weight -= g
        else:
            momentum *= self.momentum
            momentum -= g
            weight += momentum


@register
class SGLD(Optimizer):
    """Langevin dynamics: half a step of gradient descent, and noise whose variance is the learning rate."""

    def update(self, index, weight, grad, state):
        self._update_count(index)
        lr, wd = self._rates(index)
        g, t = self._scaled(grad.data, np.empty_like(grad.data)), np.empty_like(grad.data)
        np.multiply(weight.data, wd, out=t)
        g += t
        g *= -lr / 2
        weight.data[...] += g
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
