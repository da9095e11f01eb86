"""Which buffers may share memory: a plan from the order of steps alone."""

import bisect
import math
from dataclasses import dataclass, field

__all__ = ["Step", "bytes_of", "plan"]


@dataclass
class Step:
    """One step of a program, as the plan sees it.

    ``takeover`` names, for a written value, the read value whose memory it may use if that is the last
    time the read one is needed.
    """

    reads: list = field(default_factory=list)
    writes: list = field(default_factory=list)
    takeover: dict = field(default_factory=dict)


def bytes_of(shape, dtype) -> int:
    """How much memory a value takes."""
    return math.prod(shape) * dtype.itemsize


def plan(steps: list[Step], nbytes: dict, keep=frozenset()):
    """Assign values to as little memory as a greedy walk finds: the slot of each, and the bytes of each slot.

    The steps are in order of execution. Values without a size in ``nbytes`` live elsewhere and are skipped;
    those in ``keep`` must stay valid to the end.
    """
    last_use = {}
    for i, step in enumerate(steps):
        for value in (*step.reads, *step.writes):
            last_use[value] = i
    slots: dict = {}
    sizes: list[int] = []
    free: list[tuple[int, int]] = []  # (size, slot), sorted

    def take(need: int) -> int:
        at = bisect.bisect_left(free, (need, -1))
        if at < len(free):
            return free.pop(at)[1]
        if free:  # nothing is large enough: enlarge the largest rather than add another
            slot = free.pop()[1]
            sizes[slot] = need
            return slot
        sizes.append(need)
        return len(sizes) - 1

    for i, step in enumerate(steps):
        taken_over = set()
        for value in step.writes:
            if value in slots or value not in nbytes:
                continue
            source = step.takeover.get(value)
            if (
                source in slots
                and source not in keep
                and source not in taken_over
                and last_use[source] == i
                and step.reads.count(source) == 1
                and source not in step.writes
                and nbytes[source] == nbytes[value]
            ):
                slots[value] = slots[source]
                taken_over.add(source)
            else:
                slots[value] = take(nbytes[value])
        for value in {*step.reads, *step.writes}:
            if value in slots and last_use[value] == i and value not in keep and value not in taken_over:
                bisect.insort(free, (sizes[slots[value]], slots[value]))
    return slots, sizes
