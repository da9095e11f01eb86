"""Inference does several operators at once: a convolution with what follows, batch norm to activation.

``fuse`` rewrites the forward program; ``bind`` turns a rewritten step into a call. A value that nothing but
the next operator reads is then never stored. Results agree with the single operators' to rounding.
"""

import numpy as np

from .program import ForwardStep, Program

__all__ = ["bind", "fuse"]

_ADDITIONS = ("elemwise_add", "broadcast_add")
_RELU = {"floor": 0}


def fuse(program: Program, specs: dict, arrays: dict, keep: set) -> Program:
    """The forward program with operators merged, for inference only.

    Parameters
    ----------
    specs : dict
        ``(shape, dtype)`` of each value.
    arrays : dict
        The arrays that are bound already; only dense ones take part.
    keep : set
        Values that somebody else reads.
    """
    readers: dict = {}
    for step in program.forward:
        for value in (*step.inputs, *step.aux):
            readers[value] = readers.get(value, 0) + 1
    fusing = _Fusion(specs, arrays, {value for value in readers if readers[value] > 1} | keep)
    for step in program.forward:
        # What training hides for its backward pass is not needed.
        outputs = [
            v if v in readers or v in keep or i < step.prop.num_visible_outputs else None
            for i, v in enumerate(step.outputs)
        ]
        fusing.take(ForwardStep(step.prop, step.name, step.inputs, step.aux, outputs))
    return Program([step for step in fusing.steps if step is not None], [], [], set(), [])


def _activation(prop) -> dict | None:
    """What an activation does, as ``bind_fused`` takes it; None if that is something else."""
    params = prop.params
    if prop.name == "relu" or (prop.name == "Activation" and params.act_type == "relu"):
        return _RELU
    if prop.name == "clip":
        return {"floor": params.a_min, "ceiling": params.a_max}
    if prop.name == "LeakyReLU" and params.act_type == "leaky":
        return {"slope": params.slope}
    return None


class _Fusion:
    """The steps so far, and which of them made each value. A step merged into a later one leaves None."""

    def __init__(self, specs, arrays, shared):
        self.specs, self.arrays, self.shared = specs, arrays, shared
        self.steps: list[ForwardStep | None] = []
        self.maker: dict = {}

    def take(self, step: ForwardStep) -> None:
        merged = self._merge(step) or step
        for value in merged.outputs:
            if value is not None:
                self.maker[value] = len(self.steps)
        self.steps.append(merged)

    def _merge(self, step):
        name = step.prop.name
        if name == "BatchNorm" and self._is_plain_batch_norm(step):
            return self._into(
                step, 0, ("Convolution",), (), ("batch_norm", step.prop, step.inputs[1:] + step.aux)
            )
        if name in _ADDITIONS and self.specs[step.inputs[0]] == self.specs[step.inputs[1]]:
            # Of two convolutions the later one adds: then fewer values are alive at once.
            late = max((0, 1), key=lambda i: self.maker.get(step.inputs[i], -1))
            for i in (late, 1 - late):
                other = step.inputs[1 - i]
                merged = self._into(step, i, ("Convolution",), ("batch_norm",), ("add", step.prop, [other]))
                if merged:
                    return merged
        act = _activation(step.prop)
        if act is not None:
            makers = ("Convolution", "BatchNorm") if act == _RELU else ("Convolution",)
            return self._into(step, 0, makers, ("batch_norm", "add"), ("act", step.prop, []))
        return None

    def _is_plain_batch_norm(self, step):
        shape = self.specs[step.inputs[0]][0]
        axis = step.prop.params.axis % len(shape)
        return (
            axis == 1 and step.outputs[1:] == [None, None] and all(map(self._dense, step.inputs + step.aux))
        )

    def _dense(self, value):
        array = self.arrays.get(value)
        return self.specs[value][1] == np.float32 and (array is None or array.flags.c_contiguous)

    def _into(self, step, index, operators, after, work):
        """``step`` as further work of the maker of its input ``index``, or None.

        That must be one of ``operators``, do nothing but ``after`` so far, and have no other reader.
        """
        value = step.inputs[index]
        at = self.maker.get(value)
        maker = None if at is None else self.steps[at]
        if maker is None or value in self.shared or maker.prop.name not in operators:
            return None
        if any(kind not in after for kind, _, _ in maker.fused) or not self._can(maker, work):
            return None
        self.steps[at] = None
        return ForwardStep(
            maker.prop, maker.name, maker.inputs, maker.aux, [step.outputs[0], *maker.outputs[1:]],
            [*maker.fused, work],
        )  # fmt: skip

    def _can(self, maker, work):
        values = [*maker.inputs, *maker.aux, *(v for _, _, values in maker.fused for v in values), *work[2]]
        if not all(map(self._dense, values)):
            return False
        if maker.prop.name == "BatchNorm":
            return self._is_plain_batch_norm(maker)
        return len(maker.prop.params.kernel) < 3 and not maker.prop.params.channels_last


def bind(op, ctx, step: ForwardStep, arrays: dict):
    """The call of a step that :func:`fuse` made, on these arrays."""
    inputs, out = [arrays[value] for value in step.inputs], arrays[step.outputs[0]]
    work = {kind: (prop, [arrays[value] for value in values]) for kind, prop, values in step.fused}
    if step.prop.name == "BatchNorm":
        return op.bind_relu(ctx, inputs, [arrays[value] for value in step.aux], out)
    batch_norm = None
    if "batch_norm" in work:
        prop, (gamma, *rest) = work["batch_norm"]
        gamma = np.ones_like(gamma) if prop.params.fix_gamma else gamma
        batch_norm = (gamma, *rest, prop.params.eps)
    other = work["add"][1][0] if "add" in work else None
    act = _activation(work["act"][0]) if "act" in work else None
    return op.bind_fused(ctx, inputs, out, batch_norm=batch_norm, other=other, act=act)
