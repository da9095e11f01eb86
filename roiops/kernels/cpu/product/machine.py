"""What tiles, plans and costs follow from: a machine as plain numbers.

``HERE`` is the machine at hand. Any other can be made, to see what would be chosen there:
``choose(layer, Machine(lanes=8, registers=16, second_cache=512 << 10, last_cache=32 << 20))``.
"""

from typing import NamedTuple

from ..vector import IS_ARM, MACHINE_LANES
from .caches import LAST_CACHE, SECOND_CACHE


class Machine(NamedTuple):
    """A processor. Caches are in bytes."""

    #: float32 numbers of a vector register.
    lanes: int
    #: Vector registers.
    registers: int
    #: The second-level cache of one core.
    second_cache: int
    #: The cache before memory, which cores share.
    last_cache: int
    #: Threads that share the work. No choice of a way depends on it: results would, too.
    workers: int = 1

    @property
    def tile(self) -> tuple[int, int]:
        """Rows and vectors of a product's tile.

        Its sums, a row of vectors and a factor are in registers: 24 of 32 are sums with AVX-512, 12 of 16
        with AVX2.
        """
        if self.lanes == 4:
            return (8, 2) if self.registers == 32 else (4, 2)
        return (8, 3) if self.registers == 32 else (4, 3)

    @property
    def rows(self) -> int:
        return self.tile[0]

    @property
    def vectors(self) -> int:
        return self.tile[1]

    @property
    def few(self) -> int:
        """Vectors of the narrower of the two tiles; fewer take as long."""
        return max(1, self.vectors - 1)

    @property
    def columns(self) -> int:
        """Numbers of a row of a tile."""
        return self.lanes * self.vectors

    @property
    def filter_tile(self) -> tuple[int, int]:
        """Pixels and vectors of the tile whose vectors hold filters (``conv/filters.py``).

        Seven pixels, because the maps of networks for pictures of 224 by 224 are 7, 14, 28 and 56 pixels
        wide.
        """
        return (7, 3) if self.registers == 32 else (6, 2) if self.lanes == 8 else (4, 2)

    @property
    def single(self) -> float:
        """What it takes to move a number by itself, in products."""
        return 56 / self.lanes

    def of_term(self, products: float, loads: float) -> float:
        """What a tile takes for one term of its sums, in products: these, or what it loads if that is more.

        As many loads as products of 8 numbers fit into a cycle; of 16, half as many products.
        """
        return max(products, loads * min(1, 8 / self.lanes))


#: The machine at hand.
HERE = Machine(MACHINE_LANES, 32 if MACHINE_LANES == 16 or IS_ARM else 16, SECOND_CACHE, LAST_CACHE)
