"""Loops on short vectors, written out in LLVM's instructions where numba's loops would not become them.

An :class:`Emitter` builds the body of a numba intrinsic. A vector holds ``MACHINE_LANES`` floats; a product
is computed in tiles of ``ROWS`` by ``VECTORS`` vectors, which fill the registers of the machine at hand.
"""

import functools
from typing import Any, NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from ...checked import CHECKED, check_access, place_of
from ...jit import inner
from ..vector import IS_ARM, MACHINE_LANES, data_of, fused_multiply_add, masked, prefetch_line, repeat
from .machine import HERE

#: Rows of a tile and its vectors, which fill the registers of the machine at hand.
ROWS, VECTORS = HERE.tile
COLUMNS = MACHINE_LANES * VECTORS

#: Whether a multiply-add takes a factor from one element of a vector, as on Arm. Then four terms of a row are
#: loaded at once: there, to load a number into all elements takes a place in the pipe of the multiply-adds.
BY_ELEMENT = IS_ARM and MACHINE_LANES == 4

_F32, _I64, _I32 = ir.FloatType(), ir.IntType(64), ir.IntType(32)


def activation(floor=-np.inf, ceiling=np.inf, slopes=(), dtype=np.float32) -> tuple:
    """What a convolution does to its results: negative ones times the slope of their filter, if there are
    ``slopes``, then all within bounds."""
    number = np.dtype(dtype).type
    return number(floor), number(ceiling), np.array(slopes, dtype).reshape(-1)


#: The activation that changes nothing, and what it is for one filter.
IDENTITY, UNCHANGED = activation(), (np.float32(-np.inf), np.float32(np.inf), np.float32(1))


@inner(makes_arrays=False)
def activation_of(activation, f):
    """The numbers of an :func:`activation` for one filter: floor, ceiling and slope."""
    floor, ceiling, slopes = activation
    return floor, ceiling, slopes[f] if slopes.size > 0 else slopes.dtype.type(1)


@inner
def activated(value, numbers):
    """A number through what :func:`activation_of` gives."""
    floor, ceiling, slope = numbers
    value = value * slope if value < 0 else value
    value = floor if value < floor else value
    return ceiling if value > ceiling else value


def activate(values, activation):
    """Images ``(..., filters, y, x)`` through an :func:`activation`, in place."""
    floor, ceiling, slopes = activation
    if slopes.size:
        np.multiply(values, slopes[: values.shape[-3], None, None], out=values, where=values < 0)
    np.minimum(np.maximum(values, floor, out=values), ceiling, out=values)


class ActivationIn(NamedTuple):
    """An :func:`activation` in a body: its numbers as vectors, and which of them change anything.

    ``slope`` is that of one filter, or where that of the first filter is.
    """

    floor: Any
    ceiling: Any
    slope: Any
    limited: Any
    sloped: Any


class EpilogueAt(NamedTuple):
    """A :class:`~.tiles.Epilogue` in a body: pointers to what the first result takes, and the activation."""

    scale: Any
    shift: Any
    act: ActivationIn
    other: Any
    add_other: Any


class Span(NamedTuple):
    """A place in an array, in a body: what :class:`Emitter` loads from and stores to, and nothing else.

    ``first`` and ``size`` are the array's first element and how many there are; the checked mode compares
    each access with them. Otherwise nobody asks, and they leave no instruction.
    """

    pointer: Any
    first: Any
    size: Any
    name: str


class Argument(NamedTuple):
    """An array or a tuple that a body is given: numba's type of it, and LLVM's value."""

    kind: Any
    value: Any


def _given(kind, value):
    """What a body gets for a value: numbers as they are."""
    return Argument(kind, value) if isinstance(kind, types.Array | types.BaseTuple) else value


def _kind_of(argument):
    """The type that an argument is converted to."""
    if isinstance(argument, types.Integer):
        return types.int64
    return types.float32 if isinstance(argument, types.Float) else argument


def emitted(body):
    """Decorator: ``body(emit, *arguments)`` writes what the intrinsic of the same arguments does.

    It returns nothing. Numbers are 64-bit integers and float32; arrays and tuples come as :class:`Argument`.
    """

    @intrinsic
    @functools.wraps(body)
    def typed(typing, *arguments):
        def generate(context, builder, signature, values, loc=None):
            body(Emitter(context, builder, loc), *map(_given, signature.args, values))
            return context.get_dummy_value()

        return types.void(*map(_kind_of, arguments)), generate

    return typed


class Emitter:
    """Instructions on float32 vectors of ``lanes``. Positions are counted in floats.

    ``loc`` is what numba tells: where the intrinsic is called.
    """

    def __init__(self, context, builder, loc=None, lanes=MACHINE_LANES):
        self.context, self.builder, self.loc = context, builder, loc
        self.lanes, self.vector = lanes, ir.VectorType(_F32, lanes)

    def with_lanes(self, lanes) -> "Emitter":
        """The same on vectors of so many lanes."""
        return Emitter(self.context, self.builder, self.loc, lanes)

    def pointer(self, array: Argument, position, name="array") -> Span:
        """Where ``array[position]`` lies, for a contiguous array; ``name`` is for errors."""
        first = data_of(self.context, self.builder, *array)
        size = self._array(array).nitems if CHECKED else None
        return self.move(Span(first, first, size, name), position)

    def _array(self, array: Argument):
        return self.context.make_array(array.kind)(self.context, self.builder, array.value)

    def fixed(self, numbers, name) -> Span:
        """A place in memory that holds these numbers."""
        kind = ir.ArrayType(_F32, len(numbers))
        held = cgutils.global_constant(self.builder, name, ir.Constant(kind, [float(n) for n in numbers]))
        first = self.builder.bitcast(held, _F32.as_pointer())
        return Span(first, first, self.number(len(numbers)) if CHECKED else None, name)

    def either(self, condition, span: Span, other: Span) -> Span:
        """``span`` where ``condition`` is true, else ``other``."""
        chosen = [
            None if a is None else self.builder.select(condition, a, b)
            for a, b in zip(span[:3], other[:3], strict=True)
        ]
        return Span(*chosen, span.name)

    def elements(self, array: Argument, name):
        """How many elements a contiguous array has, and where the first one lies."""
        count = self.builder.extract_value(self._array(array).shape, 0)
        return count, self.pointer(array, 0, name)

    def check(self, span: Span, count, action: str, alignment=1):
        """In the checked mode: raise unless ``count`` elements from ``span`` on are in its array."""
        if not CHECKED:
            return
        builder, element = self.builder, span.pointer.type.pointee
        bytes_ = self.context.get_abi_sizeof(element)
        address, first = (builder.ptrtoint(each, _I64) for each in (span.pointer, span.first))
        index = builder.sdiv(builder.sub(address, first), _I64(bytes_))
        place = place_of(self.loc, f"{action} of {span.name}")
        aligned = {"pointer": span.pointer, "alignment": alignment}
        check_access(self.context, builder, place, index, count, span.size, **aligned)

    def members(self, values: Argument) -> list:
        """The members of a tuple."""
        return list(map(_given, values.kind, cgutils.unpack_tuple(self.builder, values.value)))

    def rows(self, rows: Argument, name="array"):
        """Where the first of some :class:`~.tiles.Rows` lies, and the step to the next."""
        array, at, step = self.members(rows)
        return self.pointer(array, at, name), step

    def move(self, span: Span, by) -> Span:
        return span._replace(pointer=self.builder.gep(span.pointer, [self.number(by)]))

    def number(self, value):
        return ir.Constant(_I64, value) if isinstance(value, int) else value

    def times(self, step, count: int):
        return self.builder.mul(step, self.number(count))

    def choose(self, condition, make, otherwise):
        """``make()`` where ``condition`` is not 0, else the values ``otherwise``."""
        builder = self.builder
        entry = builder.block
        yes, after = builder.append_basic_block("yes"), builder.append_basic_block("after")
        builder.cbranch(builder.icmp_signed("!=", condition, condition.type(0)), yes, after)
        builder.position_at_end(yes)
        made = make()
        end = builder.block
        builder.branch(after)
        builder.position_at_end(after)
        chosen = [builder.phi(value.type) for value in otherwise]
        for phi, value, other in zip(chosen, made, otherwise, strict=True):
            phi.add_incoming(value, end)
            phi.add_incoming(other, entry)
        return chosen

    def constant(self, value: float):
        return ir.Constant(self.vector, [float(value)] * self.lanes)

    def load(self, span, by=0, vector=None):
        """The vector ``by`` floats beyond ``span``."""
        vector = self.vector if vector is None else vector
        span = self.move(span, by)
        self.check(span, vector.count, "load")
        value = self.builder.load(self.builder.bitcast(span.pointer, vector.as_pointer()))
        value.align = 4
        return value

    def store(self, value, span, by=0):
        span = self.move(span, by)
        self.check(span, value.type.count, "store")
        address = self.builder.bitcast(span.pointer, value.type.as_pointer())
        self.builder.store(value, address).align = 4

    def load_number(self, span, by=0):
        """The one element ``by`` beyond ``span``."""
        span = self.move(span, by)
        self.check(span, 1, "load")
        return self.builder.load(span.pointer)

    def load_masked(self, span, lanes, nothing):
        """The ``lanes`` of a vector that are to be loaded, ``nothing`` in the others; see :meth:`check`."""
        arguments = [self._vector_at(span), _I32(4), lanes, nothing]
        return masked(self.builder, "load", self.vector, arguments, self.vector)

    def store_masked(self, value, span, lanes):
        """Store ``lanes`` of a vector; see :meth:`check`."""
        arguments = [value, self._vector_at(span), _I32(4), lanes]
        masked(self.builder, "store", ir.VoidType(), arguments, self.vector)

    def _vector_at(self, span):
        return self.builder.bitcast(span.pointer, self.vector.as_pointer())

    def prefetch(self, span, by=0, *, write=False, into=1):
        """Ask for the cache line ``by`` beyond ``span``; any address will do."""
        prefetch_line(self.builder, self.move(span, by).pointer, write=write, into=into)

    def splat(self, scalar):
        """A vector with ``scalar`` in every lane."""
        return repeat(self.builder, scalar, MACHINE_LANES)

    def load_splat(self, span, by=0):
        return self.splat(self.load_number(span, by))

    def splat_lane(self, vector, lane: int):
        """A vector with one of the lanes of ``vector`` in every lane."""
        return self.shuffle(vector, vector, [lane] * self.lanes)

    def add_products(self, numbers, right, sums) -> list:
        """``sums``, a list of vectors for each number one after the other, with ``number * right`` added."""
        sums = iter(sums)
        return [self.fma(number, vector, next(sums)) for number in numbers for vector in right]

    def shuffle(self, one, other, indices):
        """The lanes of two vectors, one after the other, in this order."""
        order = ir.Constant(ir.VectorType(_I32, len(indices)), list(indices))
        return self.builder.shuffle_vector(one, other, order)

    def fma(self, a, b, c):
        return fused_multiply_add(self.builder, a, b, c)

    def activation(self, scalars) -> ActivationIn:
        """That of one filter, from what :func:`activation_of` gives."""
        floor, ceiling, slope = self.members(scalars)
        differs = self.builder.fcmp_unordered
        limited, sloped = differs("!=", ceiling, _F32(np.inf)), differs("!=", slope, _F32(1))
        return ActivationIn(self.splat(floor), self.splat(ceiling), self.splat(slope), limited, sloped)

    def activate(self, values, activation: ActivationIn, slopes=None) -> list:
        """``values`` through an activation; NaN stays NaN. ``slopes()``: one for each, where they differ."""
        compare, select = self.builder.fcmp_ordered, self.builder.select

        def sloped():
            pairs = zip(values, slopes() if slopes else [activation.slope] * len(values), strict=True)
            return [select(compare("<", v, self.constant(0)), self.builder.fmul(v, s), v) for v, s in pairs]

        def limited():
            return [select(compare(">", v, activation.ceiling), activation.ceiling, v) for v in raised]

        # Most activations are a floor alone: the rest is jumped over.
        values = self.choose(activation.sloped, sloped, values)
        raised = [select(compare("<", v, activation.floor), activation.floor, v) for v in values]
        return self.choose(activation.limited, limited, raised)

    def epilogue(self, epilogue: Argument, row, at) -> EpilogueAt:
        """A :class:`~.tiles.Epilogue` for results from filter ``row`` on; ``other`` is read from ``at``."""
        scale, shift, act, *_ = self.members(epilogue)
        floor, ceiling, slopes = self.members(act)
        count, first = self.elements(slopes, "slope")
        act = ActivationIn(
            self.splat(floor),
            self.splat(ceiling),
            self.move(first, row),
            self.builder.fcmp_unordered("!=", ceiling, _F32(np.inf)),
            self.builder.icmp_signed(">", count, self.number(0)),
        )
        return EpilogueAt(
            self.pointer(scale, row, "scale"),
            self.pointer(shift, row, "shift"),
            act,
            *self.other(epilogue, at),
        )

    def other(self, epilogue: Argument, at):
        """What is added to results from ``at`` on, and whether it is."""
        *_, other, add_other = self.members(epilogue)
        return self.pointer(other, at, "other"), add_other

    def weighted(self, values, weights):
        """The sum of ``weights[i] * values[i]``; None where all weights are 0."""
        total = None
        # Weights of 1 first: they start the sum without a multiplication.
        for value, weight in sorted(zip(values, weights, strict=True), key=lambda pair: pair[1] != 1):
            if weight == 0:
                continue
            if total is None:
                total = value if weight == 1 else self.builder.fmul(value, self.constant(weight))
            else:
                total = self.fma(value, self.constant(weight), total)
        return total

    def transform(self, matrix, values):
        """``matrix @ values``. Rows that differ in the sign of every other term share their work."""
        results = [None] * len(matrix)
        for i, row in enumerate(matrix):
            if results[i] is not None:
                continue
            mirror = [-w if k % 2 else w for k, w in enumerate(row)]
            twin = next((j for j in range(i + 1, len(matrix)) if list(matrix[j]) == mirror), None)
            even = self.weighted(values, [0 if k % 2 else w for k, w in enumerate(row)])
            odd = self.weighted(values, [w if k % 2 else 0 for k, w in enumerate(row)])
            if twin is None or even is None or odd is None:
                results[i] = self.weighted(values, list(row))
                if twin is not None:
                    results[twin] = self.weighted(values, mirror)
            else:
                results[i] = self.builder.fadd(even, odd)
                results[twin] = self.builder.fsub(even, odd)
        return results

    def deinterleave(self, pointer, step: int):
        """``step`` vectors: the floats at ``pointer + phase + step * lane`` for each phase."""
        return self.split([self.load(pointer, k * MACHINE_LANES) for k in range(step)])

    def split(self, vectors):
        """The same number of vectors: one for each remainder of the lanes, one vector after the other."""
        count = len(vectors)
        return self._reordered(
            vectors, [phase + count * i for phase in range(count) for i in range(MACHINE_LANES)]
        )

    def interleave(self, vectors):
        """The same number of vectors, in which lane i of number p comes at ``len(vectors) * i + p``."""
        count = len(vectors)
        return self._reordered(
            vectors, [i // count + MACHINE_LANES * (i % count) for i in range(count * MACHINE_LANES)]
        )

    def _reordered(self, vectors, places):
        """As many vectors, of what lies at these places in all of them."""
        wide = self.join(vectors)
        return [
            self.shuffle(wide, wide, places[first : first + MACHINE_LANES])
            for first in range(0, len(places), MACHINE_LANES)
        ]

    def plus(self, vectors, pointer):
        """The vectors, with what lies from ``pointer`` on added."""
        return [self.builder.fadd(v, self.load(pointer, k * MACHINE_LANES)) for k, v in enumerate(vectors)]

    def join(self, vectors):
        """One long vector; a number of vectors that is a power of two."""
        while len(vectors) > 1:
            order = range(2 * vectors[0].type.count)
            vectors = [self.shuffle(a, b, order) for a, b in zip(vectors[::2], vectors[1::2], strict=True)]
        return vectors[0]

    def parted(self, vectors, lanes: int):
        """The same numbers in vectors of so many lanes."""
        wide = self.join(vectors)
        firsts = range(0, wide.type.count, lanes)
        return [self.shuffle(wide, wide, range(first, first + lanes)) for first in firsts]

    def loop(self, count, carried):
        """A counted loop with values carried round; see :class:`_Loop`."""
        return _Loop(self, count, carried)


def _value(carried):
    """What a loop carries round: a value, or where a :class:`Span` is."""
    return carried.pointer if isinstance(carried, Span) else carried


def _like(carried, value):
    """``value`` as the same kind of thing."""
    return carried._replace(pointer=value) if isinstance(carried, Span) else value


class _Loop:
    """``with emitter.loop(count, values) as loop``: ``loop.values`` inside, ``loop.advance(new values)`` at
    the end, ``loop.results`` after. ``count`` may be 0."""

    def __init__(self, emitter, count, carried):
        self.builder, self.count, self.carried = emitter.builder, count, carried

    def __enter__(self):
        builder = self.builder
        self.entry = builder.block
        self.body = builder.append_basic_block("body")
        self.after = builder.append_basic_block("after")
        nonempty = builder.icmp_signed(">", self.count, ir.Constant(_I64, 0))
        builder.cbranch(nonempty, self.body, self.after)
        builder.position_at_end(self.body)
        self.index = builder.phi(_I64)
        self.index.add_incoming(ir.Constant(_I64, 0), self.entry)
        self.phis = [builder.phi(_value(each).type) for each in self.carried]
        self.values = [_like(each, phi) for each, phi in zip(self.carried, self.phis, strict=True)]
        for phi, each in zip(self.phis, self.carried, strict=True):
            phi.add_incoming(_value(each), self.entry)
        return self

    def advance(self, values):
        self.next = values

    def __exit__(self, *exc):
        builder = self.builder
        end = builder.block
        index = builder.add(self.index, ir.Constant(_I64, 1))
        self.index.add_incoming(index, end)
        for phi, each in zip(self.phis, self.next, strict=True):
            phi.add_incoming(_value(each), end)
        builder.cbranch(builder.icmp_signed("<", index, self.count), self.body, self.after)
        builder.position_at_end(self.after)
        phis = [builder.phi(_value(each).type) for each in self.carried]
        self.results = [_like(each, phi) for each, phi in zip(self.carried, phis, strict=True)]
        for phi, first, last in zip(phis, self.carried, self.next, strict=True):
            phi.add_incoming(_value(first), self.entry)
            phi.add_incoming(_value(last), end)
