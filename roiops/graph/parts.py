"""Values that are computed where a later operator would only copy them to: the inputs of a Concat."""

from collections import Counter

from .plan import Step, bytes_of

__all__ = ["find_parts", "in_wholes"]


def find_parts(forward, specs: dict, bound, keep) -> dict:
    """``{value: (whole, offset)}``: the value is best computed ``offset`` bytes into the memory of ``whole``.

    ``forward`` are the steps of an inference, ``specs`` has ``(shape, dtype)`` of each value, ``bound`` are
    the values that have their memory already, and ``keep`` those that somebody else reads, which keep their
    own.
    """
    made = {value for step in forward for value in step.outputs}
    reads = Counter()
    for step in forward:
        reads.update(step.reads)
    parts: dict = {}
    overwritten = set()  # values in whose memory a later operator works in place

    def may_move(value, read_once):
        if value not in made or value in parts or value in bound or value in keep:
            return False
        return not read_once or reads[value] == 1

    for step in reversed(forward):
        out = step.outputs[0]
        if out is None or out in bound or step.fused:
            continue
        whole, start = parts.get(out, (out, 0))
        places = step.prop.input_places([specs[value][0] for value in step.inputs])
        for value, place in zip(step.inputs, places, strict=False):
            if may_move(value, out in overwritten):
                parts[value] = whole, start + place * specs[out][1].itemsize
                if out in overwritten:
                    overwritten.add(value)
        if out in parts and 0 in step.prop.inplace:
            source = step.inputs[step.prop.inplace[0]]
            if may_move(source, True) and bytes_of(*specs[source]) == bytes_of(*specs[out]):
                parts[source] = parts[out]
                overwritten.add(source)
    return parts


def in_wholes(step: Step, parts: dict) -> Step:
    """The step as the memory plan sees it where parts have their place in the memory of a whole."""

    def wholes(values):
        return [parts[value][0] if value in parts else value for value in values]

    takeover = {
        value: source for value, source in step.takeover.items() if value not in parts and source not in parts
    }
    return Step(wholes(step.reads), wholes(step.writes), takeover)
