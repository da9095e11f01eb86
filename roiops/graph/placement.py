"""Which device each node of a graph is on: MXNet's ``ctx_group`` and ``group2ctx``."""

from ..context import Context
from ..errors import DeviceError

__all__ = ["place"]


def place(order, device: Context, group2ctx: dict | None) -> dict[int, Context]:
    """The devices of the nodes whose group has one of its own, by ``id(node)``; the others are on ``device``.

    The devices must share their memory, as all ``cpu(i)`` do: nothing is copied between them.
    """
    places = {}
    for node in order:
        asked = (group2ctx or {}).get(node.attrs.get("__ctx_group__"))
        if asked is None:
            continue
        asked = Context(asked)
        if asked != device and (asked.is_gpu or device.is_gpu):
            raise DeviceError(
                f"bind: node {node.name!r} is to go to {asked}, the graph to {device}; a graph is bound to "
                "one GPU, or to CPUs"
            )
        places[id(node)] = asked
    return places
