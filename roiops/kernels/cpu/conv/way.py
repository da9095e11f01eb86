"""What a way to compute a convolution of float32 images is, and what it is asked about.

A :class:`Layer` and a :class:`~..product.machine.Machine` are plain numbers, so that a choice can be
computed, printed and tested for layers and machines that are not at hand: ``convolution.choose(layer,
machine)``.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, NamedTuple

import numpy as np

from ...jit import Calls
from ..product.emitter import IDENTITY
from ..product.machine import HERE, Machine
from ..product.tiles import AS_THEY_ARE, Epilogue, Prologue
from ..vector import FIXED_LANES

#: ``scale`` and ``shift`` of an :class:`~..product.tiles.Epilogue` are longer than the filters by so many:
#: the last tile reads whole vectors of them.
ROOM = FIXED_LANES


class Layer(NamedTuple):
    """A convolution on two axes, as numbers: all that the choice of a way follows from."""

    batch: int
    channels: int
    filters: int
    groups: int
    in_size: tuple[int, int]
    out_size: tuple[int, int]
    kernel: tuple[int, int]
    stride: tuple[int, int]
    dilate: tuple[int, int]
    pad: tuple[int, int]

    @property
    def terms(self) -> int:
        """The products that a result is the sum of."""
        return self.group_channels * math.prod(self.kernel)

    @property
    def group_channels(self) -> int:
        """The channels that a filter sees: those of its group."""
        return self.channels // self.groups

    @property
    def in_group(self) -> int:
        """The filters of a group."""
        return self.filters // self.groups


class Arrays(NamedTuple):
    """What a convolution reads and writes: ``out = act(scale * convolution(data) + shift + other)``.

    Arrays are C-contiguous float32, ``data`` and ``out`` on two axes; ``other``, which may be ``out``, and
    ``prologue``, a :class:`~..product.tiles.Prologue` as a plain tuple, may be None. ``scale`` and ``shift``
    are longer than the filters by ``ROOM``.
    """

    data: np.ndarray
    weight: np.ndarray
    scale: np.ndarray
    shift: np.ndarray
    act: tuple
    other: np.ndarray | None
    out: np.ndarray
    prologue: tuple | None = None

    @property
    def epilogue(self) -> Epilogue:
        """What becomes of the sums."""
        added = self.out if self.other is None else self.other
        return Epilogue(self.scale, self.shift, self.act, added, int(self.other is not None))

    @property
    def of_data(self) -> Prologue:
        """The prologue, or one that is not used."""
        return Prologue(*self.prologue) if self.prologue else AS_THEY_ARE


class Way(ABC):
    """One way to compute a convolution. An object is for one layer, and keeps its plan and workspace."""

    #: What ``ROIOPS_WAY`` and ``roiops doctor`` call it.
    name: ClassVar[str]

    def __init__(self, layer: Layer, machine: Machine = HERE):
        self.layer, self.machine = layer, machine
        #: What its kernels are called by: their arguments are of the same types in all calls.
        self.calls = Calls()

    @staticmethod
    @abstractmethod
    def suits(layer: Layer, machine: Machine) -> bool:
        """Whether the way can compute the layer."""

    @staticmethod
    @abstractmethod
    def cost(layer: Layer, machine: Machine) -> float:
        """What it takes, in products of vectors.

        The counts of products, of results and of packed numbers follow from the shapes and the machine's
        registers; what a result or a packed number costs was fitted to measured shapes
        (``benchmarks/convolution.py``). No timing of this process takes part, so that results are the same
        from run to run.
        """

    @staticmethod
    def takes_prologue(layer: Layer) -> bool:
        """Whether data can be normalised on their way in."""
        return False

    @abstractmethod
    def bind(self, arrays: Arrays) -> Callable[[], None]:
        """A call that computes the layer on these arrays, again and again.

        It plans for the threads at hand, packs what the way wants packed, and runs its kernels.
        """


def epilogue_of_part(part, parts, epilogue: Epilogue, out) -> Epilogue:
    """What becomes of the sums of a part of the channels: the output has those of the parts before."""
    if part != parts[-1]:
        epilogue = epilogue._replace(act=IDENTITY)
    if part != parts[0]:
        epilogue = epilogue._replace(shift=np.zeros_like(epilogue.shift), other=out, add_other=1)
    return epilogue


def ceil_div(count: int, step: int) -> int:
    """How many times ``step`` covers ``count``."""
    return -(-count // step)
