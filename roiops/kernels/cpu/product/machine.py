"""What tiles, plans and costs follow from: a machine as plain numbers.

``HERE`` is the machine at hand. Any other can be made, to see what would be chosen there:
``choose(layer, Machine(lanes=8, registers=16, second_cache=512 << 10, last_cache=32 << 20))``.
"""

from typing import NamedTuple

import llvmlite.binding
import numba

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
    #: Multiply-adds of whole vectors in a cycle.
    units: int = 2

    @property
    def block_cache(self) -> int:
        """The second-level cache, as far as blocks may fill it.

        A large one is slower, and often another thread's too: on an Intel Xeon with 2 MiB, VGG-16 was 1.1 to
        1.17 times as fast with blocks for 512 KiB, and the median of nine other runs 1.03.
        """
        return self.second_cache if self.second_cache <= 1 << 20 else 512 << 10

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

        Two loads fit into a cycle.
        """
        return max(products, loads * self.units / 2)


#: Processors that halve vectors of 16 numbers, or have one unit for them, in LLVM's words.
_ONE_UNIT = ("znver4", "icelake-client", "rocketlake", "tigerlake")


def _here() -> Machine:
    """The machine at hand."""
    wide = MACHINE_LANES == 16
    one = wide and (numba.config.CPU_NAME or llvmlite.binding.get_host_cpu_name()) in _ONE_UNIT
    registers = 32 if wide or IS_ARM else 16
    return Machine(MACHINE_LANES, registers, SECOND_CACHE, LAST_CACHE, units=1 if one else 2)


HERE = _here()
