"""Inference does several operators at once: a convolution with what follows, batch norm to activation.

``fuse`` rewrites the forward program; ``bind`` turns a rewritten step into a call. A value that nothing but
the next operator reads is then never stored, nor is a batch norm whose readers all do it as they read:
convolutions, while they copy their pixels. Element-wise operators are a chain, with the bits of each alone;
other results agree with the single operators' to rounding.
"""

import numpy as np

from .program import ForwardStep, Program

__all__ = ["bind", "fuse"]


def fuse(program: Program, specs: dict, arrays: dict, keep: set) -> Program:
    """The forward program with operators merged, for inference only.

    ``specs`` has ``(shape, dtype)`` of each value, ``arrays`` those that are bound already, of which only
    dense ones take part, and ``keep`` the values that somebody else reads.
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
    fusing.give_to_readers(keep)
    return Program([step for step in fusing.steps if step is not None], [], [], set(), [])


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
        """``step`` as further work of the step that made one of its inputs, or None."""
        work = step.prop.follows(self._shapes(step))
        if work is None or any(value is not None for value in step.outputs[1:]):
            return None
        for i in sorted(work.inputs, key=lambda i: self._rank(step.inputs[i])):
            others = [*step.inputs[:i], *step.inputs[i + 1 :], *step.aux]
            merged = self._into(step.inputs[i], work, others, step.outputs[0])
            if merged:
                return merged
        return None

    def _rank(self, value):
        """The least takes it: one that computes more, then the later one, so that fewer values are alive."""
        at = self.maker.get(value, -1)
        maker = self.steps[at] if at >= 0 else None
        return maker is not None and maker.prop.follows(self._shapes(maker)) is not None, -at

    def _into(self, value, work, others, output):
        """The maker of ``value``, doing ``work`` as well; None where it cannot, or others read the value."""
        at = self.maker.get(value)
        maker = None if at is None else self.steps[at]
        if maker is None or value in self.shared or any(v is not None for v in maker.outputs[1:]):
            return None
        if not maker.prop.takes_over(work, [each.kind for each, _ in maker.fused], self._shapes(maker)):
            return None
        before = [v for _, values in maker.fused for v in values]
        if not all(map(self._dense, (*maker.inputs, *maker.aux, *before, *others))):
            return None
        self.steps[at] = None
        outputs = [output, *maker.outputs[1:]]
        fused = [*maker.fused, (work, others)]
        return ForwardStep(maker.prop, maker.name, maker.inputs, maker.aux, outputs, fused)

    def give_to_readers(self, keep) -> None:
        """Let operators do work of others to their input where all who read that work's result can."""
        readers: dict = {}
        for step in self.steps:
            for value in step.reads if step else []:
                readers.setdefault(value, []).append(step)
        for at, step in enumerate(self.steps):
            work = step and step.prop.follows(self._shapes(step))
            if not work or work.inputs != (0,) or any(value is not None for value in step.outputs[1:]):
                continue
            value, values = step.outputs[0], [*step.inputs[1:], *step.aux]
            before = [(work, values), *step.fused]
            takers = readers.get(value, [])
            if value in keep or not takers or not all(map(self._dense, (value, *step.reads))):
                continue
            if all(self._takes_before(taker, before, value) for taker in takers):
                self.steps[at] = None
                for taker in takers:
                    taker.inputs, taker.before = [step.inputs[0], *taker.inputs[1:]], before

    def _takes_before(self, step, before, value) -> bool:
        if step.before or step.inputs[0] != value or step.reads.count(value) > 1:
            return False
        return step.prop.takes_before([work for work, _ in before], self._shapes(step)) and all(
            map(self._dense, step.reads)
        )

    def _shapes(self, step):
        return [self.specs[value][0] for value in step.inputs]

    def _dense(self, value):
        array = self.arrays.get(value)
        return self.specs[value][1] == np.float32 and (array is None or array.flags.c_contiguous)


def bind(op, ctx, step: ForwardStep, arrays: dict):
    """The call of a step that :func:`fuse` made, on these arrays."""
    inputs, aux = [arrays[value] for value in step.inputs], [arrays[value] for value in step.aux]
    work, before = (
        [(each, [arrays[value] for value in values]) for each, values in some]
        for some in (step.fused, step.before)
    )
    return op.bind_followed(ctx, inputs, aux, arrays[step.outputs[0]], work, before)
