"""Vectors for CPU kernels: their widths, the instructions on them, alignment and prefetch.

There are two widths. ``FIXED_LANES`` are 16 numbers on every machine: a feature map stored channel by channel
is turned, a piece at a time, into rows of that many channels of one pixel. All channels of a pixel get the
same weights, so the arithmetic on such rows needs no shuffling, and a row is a cache line. ``Lanes`` values
hold a row in registers; LLVM splits them where the machine's are shorter. ``MACHINE_LANES`` are the float32
numbers of one register of the machine at hand: the tiles of matrix products are made of those, by
``product/emitter.py``.

The functions for kernels do not look at the bounds of an array, unless the checked mode is on
(``NUMBA_BOUNDSCHECK=1``, see ``kernels/checked.py``). Without the JIT they work on NumPy arrays, with the
same results.
"""

import os
import platform

import llvmlite.binding as llvm
import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.errors import TypingError
from numba.core.imputils import impl_ret_borrowed, impl_ret_new_ref
from numba.extending import intrinsic, models, register_model
from numba.np.arrayobj import populate_array

from ...errors import ParamError
from ..checked import CHECKED, check_access, place_of
from ..jit import inner


def _features() -> set[str]:
    """What the processor can do that kernels are compiled for."""
    told = numba.config.CPU_FEATURES  # what NUMBA_CPU_NAME and NUMBA_CPU_FEATURES ask for, or None
    if told is None:
        return {name for name, there in llvm.get_host_cpu_features().items() if there}
    return {name[1:] for name in told.split(",") if name.startswith("+")}


def _machine_lanes() -> int:
    if os.environ.get("ROIOPS_LANES"):  # tests run the tiles of machines that are not at hand
        lanes = os.environ["ROIOPS_LANES"]
        if lanes not in ("4", "8", "16"):
            raise ParamError(f"ROIOPS_LANES must be 4, 8 or 16, got {lanes!r}")
        return int(lanes)
    return 16 if "avx512f" in _FEATURES else 8 if "avx2" in _FEATURES else 4


_FEATURES = _features()
FIXED_LANES = 16
MACHINE_LANES = _machine_lanes()
#: Whether the machine has the 32 registers of ARM's 64-bit processors.
IS_ARM = platform.machine() in ("aarch64", "arm64")
#: Side of the square that :func:`transpose_block` turns: pixels or bins, and as many channels.
BLOCK = FIXED_LANES
#: float32 numbers of a cache line.
LINE = 16

# -- instructions ------------------------------------------------------------------------------------------


def data_of(context, builder, array_type, array):
    """The address of the first element of an array or pointer."""
    if isinstance(array_type, types.CPointer):
        return array
    return context.make_array(array_type)(context, builder, array).data


def repeat(builder, scalar, lanes: int):
    """A vector with ``scalar`` in every lane."""
    empty = ir.Constant(ir.VectorType(scalar.type, lanes), ir.Undefined)
    first = builder.insert_element(empty, scalar, ir.IntType(32)(0))
    zeros = ir.Constant(ir.VectorType(ir.IntType(32), lanes), [0] * lanes)
    return builder.shuffle_vector(first, empty, zeros)


def fused_multiply_add(builder, a, b, c):
    """``a * b + c`` of vectors or of numbers; a machine without fused operations multiplies and adds."""
    count = f"v{a.type.count}" if isinstance(a.type, ir.VectorType) else ""
    element = a.type.element if count else a.type
    bits = 32 if isinstance(element, ir.FloatType) else 64
    kind = ir.FunctionType(a.type, [a.type] * 3)
    name = f"llvm.fmuladd.{count}f{bits}"
    return builder.call(cgutils.get_or_insert_function(builder.module, kind, name), [a, b, c])


def prefetch_line(builder, pointer, *, write: bool, into: int = 1):
    """Ask for the cache line at ``pointer``, ``into`` the first cache or the second; any address will do."""
    word, byte = ir.IntType(32), ir.IntType(8).as_pointer()
    kind = ir.FunctionType(ir.VoidType(), [byte, word, word, word])
    call = cgutils.get_or_insert_function(builder.module, kind, "llvm.prefetch.p0")
    locality, is_data = word(4 - into), word(1)
    builder.call(call, [builder.bitcast(pointer, byte), word(int(write)), locality, is_data])


# -- vectors of FIXED_LANES numbers ------------------------------------------------------------------------


def _or_plain(plain, checked=False):
    """A decorator: what is beneath becomes an intrinsic, and ``plain`` takes its place without the JIT.

    With ``checked`` it does so in the checked mode, too.
    """
    if numba.config.DISABLE_JIT:
        return lambda typing: plain
    return (lambda typing: inner(plain)) if checked and CHECKED else intrinsic


def _plain_store(array, at, lanes):
    array[at : at + len(lanes)] = lanes


def _plain_load_some(array, at, count):
    lanes = np.zeros(FIXED_LANES, array.dtype)
    lanes[: max(0, count)] = array[at : at + min(max(0, count), FIXED_LANES)]
    return lanes


def _plain_sum(lanes):
    while lanes.size > 1:
        lanes = lanes[: lanes.size // 2] + lanes[lanes.size // 2 :]
    return lanes[0]


def _plain_transpose(source, at, stride, rows, target, to, target_stride):
    for i in range(BLOCK):
        row = at + min(i, rows - 1) * stride
        target[to + i : to + BLOCK * target_stride : target_stride] = source[row : row + BLOCK]


class Lanes(types.Type):
    """``FIXED_LANES`` numbers of one scalar type."""

    def __init__(self, dtype):
        self.dtype = dtype
        super().__init__(name=f"Lanes({dtype})")


@register_model(Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, dmm, fe_type):
        scalar = (
            ir.IntType(1) if fe_type.dtype == types.boolean else dmm.lookup(fe_type.dtype).get_value_type()
        )
        super().__init__(dmm, fe_type, ir.VectorType(scalar, FIXED_LANES))


class _Access:
    """What one of the functions below does to an array. ``loc`` is where it is called, as numba tells it."""

    def __init__(self, context, builder, loc, action):
        self._context, self._builder = context, builder
        self._place = place_of(loc, action) if CHECKED else None

    def pointer(self, kind, array, at, vector, count=FIXED_LANES, alignment=1):
        """Where ``array[at]`` lies, as the address of a vector; ``array[at : at + count]`` must be there."""
        builder = self._builder
        pointer = builder.gep(data_of(self._context, builder, kind, array), [at])
        if CHECKED:
            lanes = ir.IntType(64)(FIXED_LANES)
            count = lanes if count is FIXED_LANES else _at_most(builder, count, lanes)
            self.check(kind, array, at, count, pointer=pointer, alignment=alignment)
        return builder.bitcast(pointer, vector.as_pointer())

    def check(self, kind, array, at, count, **alignment):
        size = self._context.make_array(kind)(self._context, self._builder, array).nitems
        check_access(self._context, self._builder, self._place, at, count, size, **alignment)


def _vector(context, scalar_type, length=FIXED_LANES):
    return ir.VectorType(context.get_value_type(scalar_type), length)


@_or_plain(lambda array: array, checked=True)
def pointer_to(typing_context, array):
    """The elements of a contiguous array, without a count of its users

    Counting costs more than the arithmetic of an inner loop. But numba frees an array after its last use:
    call this where the elements are used, within any loop, not before it, and never in a function that makes
    the array and returns the pointer.
    """

    def generate(context, builder, signature, args):
        return data_of(context, builder, array, args[0])

    return types.CPointer(array.dtype)(array), generate


@_or_plain(lambda arrays: arrays, checked=True)
def pointers_to(typing_context, arrays):
    """:func:`pointer_to` of each array of a tuple"""
    made = types.BaseTuple.from_types([types.CPointer(array.dtype) for array in arrays])

    def generate(context, builder, signature, args):
        each = (builder.extract_value(args[0], i) for i in range(len(arrays)))
        pointers = [data_of(context, builder, *pair) for pair in zip(arrays, each, strict=True)]
        return context.make_tuple(builder, made, pointers)

    return made(arrays), generate


@_or_plain(lambda array: array.reshape(-1))
def flat_of(typing_context, array):
    """The elements of a C-contiguous array as a vector

    numba's ``reshape`` calls a function each time, which takes as long as a row of pixels.
    """
    if array.layout != "C":
        raise TypingError(f"{array} is not contiguous")
    made = types.Array(array.dtype, 1, "C", readonly=not array.mutable)

    def generate(context, builder, signature, args):
        source = context.make_array(array)(context, builder, args[0])
        vector = context.make_array(made)(context, builder)
        size = source.itemsize
        populate_array(vector, source.data, [source.nitems], [size], size, source.meminfo, source.parent)
        return impl_ret_borrowed(context, builder, made, vector._getvalue())

    return made(array), generate


@_or_plain(lambda array, at: array[at : at + FIXED_LANES].copy())
def load(typing_context, array, at):
    """``array[at : at + FIXED_LANES]``"""
    signature = Lanes(array.dtype)(array, types.intp)

    def generate(context, builder, signature, args, loc=None):
        vector = _vector(context, array.dtype)
        pointer = _Access(context, builder, loc, "load").pointer(array, *args, vector)
        return builder.load(pointer, align=array.dtype.bitwidth // 8)

    return signature, generate


@_or_plain(_plain_store)
def store(typing_context, array, at, lanes):
    """``array[at : at + FIXED_LANES] = lanes``"""
    signature = types.void(array, types.intp, lanes)

    def generate(context, builder, signature, args, loc=None):
        pointer = _Access(context, builder, loc, "store").pointer(array, *args[:2], args[2].type)
        builder.store(args[2], pointer, align=array.dtype.bitwidth // 8)

    return signature, generate


@_or_plain(_plain_store)
def stream(typing_context, array, at, lanes):
    """``array[at : at + FIXED_LANES] = lanes`` past the caches

    ``array[at]`` begins a cache line, or half of one where a number has two bytes.
    """
    signature = types.void(array, types.intp, lanes)

    def generate(context, builder, signature, args, loc=None):
        align = min(64, FIXED_LANES * array.dtype.bitwidth // 8)
        access = _Access(context, builder, loc, "stream")
        pointer = access.pointer(array, *args[:2], args[2].type, alignment=align)
        stored = builder.store(args[2], pointer, align=align)
        stored.set_metadata("nontemporal", builder.module.add_metadata([ir.Constant(ir.IntType(32), 1)]))

    return signature, generate


def _at_most(builder, count, limit):
    return builder.select(builder.icmp_signed("<", count, limit), count, limit)


def _first_lanes(builder, count):
    """A mask that is true in the first ``count`` lanes."""
    numbers = ir.Constant(ir.VectorType(count.type, FIXED_LANES), list(range(FIXED_LANES)))
    return builder.icmp_signed("<", numbers, repeat(builder, count, FIXED_LANES))


def masked(builder, action, result, arguments, vector):
    """Call LLVM's ``masked.load`` or ``masked.store`` of a vector type."""
    bits = 32 if isinstance(vector.element, ir.FloatType) else 64
    name = f"llvm.masked.{action}.v{vector.count}f{bits}.p0"
    declared = ir.FunctionType(result, [argument.type for argument in arguments])
    return builder.call(cgutils.get_or_insert_function(builder.module, declared, name), arguments)


@_or_plain(_plain_load_some)
def load_some(typing_context, array, at, count):
    """``array[at : at + count]``, at most ``FIXED_LANES``; the lanes beyond are zero"""
    signature = Lanes(array.dtype)(array, types.intp, types.intp)

    def generate(context, builder, signature, args, loc=None):
        vector = _vector(context, array.dtype)
        access = _Access(context, builder, loc, "load_some")
        pointer = access.pointer(array, *args[:2], vector, args[2])
        align = ir.IntType(32)(array.dtype.bitwidth // 8)
        zeros = ir.Constant(vector, [0] * FIXED_LANES)
        arguments = [pointer, align, _first_lanes(builder, args[2]), zeros]
        return masked(builder, "load", vector, arguments, vector)

    return signature, generate


@_or_plain(lambda array, at, lanes, count: _plain_store(array, at, lanes[: max(0, count)]))
def store_some(typing_context, array, at, lanes, count):
    """``array[at : at + count] = lanes[:count]``"""
    signature = types.void(array, types.intp, lanes, types.intp)

    def generate(context, builder, signature, args, loc=None):
        data, at, lanes, count = args
        access = _Access(context, builder, loc, "store_some")
        pointer = access.pointer(array, data, at, lanes.type, count)
        align = ir.IntType(32)(array.dtype.bitwidth // 8)
        arguments = [lanes, pointer, align, _first_lanes(builder, count)]
        masked(builder, "store", ir.VoidType(), arguments, lanes.type)

    return signature, generate


@_or_plain(lambda number: np.full(FIXED_LANES, number))
def splat(typing_context, number):
    """``number`` in every lane"""

    def generate(context, builder, signature, args):
        return repeat(builder, args[0], FIXED_LANES)

    return Lanes(number)(number), generate


@_or_plain(lambda factor, lanes: factor * lanes)
def scaled(typing_context, factor, lanes):
    """``factor * lanes``"""

    def generate(context, builder, signature, args):
        return builder.fmul(repeat(builder, args[0], FIXED_LANES), args[1])

    return lanes(lanes.dtype, lanes), generate


@_or_plain(lambda factor, lanes, total: factor * lanes + total)
def multiply_add(typing_context, factor, lanes, total):
    """``factor * lanes + total``, rounded once where the machine can; the factor is a number or lanes

    All three may be numbers: that is one lane of the same.
    """
    as_it_is = isinstance(factor, Lanes) or not isinstance(total, Lanes)

    def generate(context, builder, signature, args):
        by = args[0] if as_it_is else repeat(builder, args[0], FIXED_LANES)
        return fused_multiply_add(builder, by, *args[1:])

    if not isinstance(total, Lanes):
        return total(total, total, total), generate
    return total(factor if isinstance(factor, Lanes) else lanes.dtype, lanes, total), generate


@_or_plain(lambda one, other: one > other)
def greater(typing_context, one, other):
    """``one > other``, lane by lane; false for NaN"""

    def generate(context, builder, signature, args):
        return builder.fcmp_ordered(">", *args)

    return Lanes(types.boolean)(one, other), generate


@_or_plain(lambda one, other: one == other)
def equal(typing_context, one, other):
    """``one == other``, lane by lane, of integers"""

    def generate(context, builder, signature, args):
        return builder.icmp_signed("==", *args)

    return Lanes(types.boolean)(one, other), generate


@_or_plain(np.where)
def select(typing_context, mask, one, other):
    """``one`` where ``mask`` is true, ``other`` elsewhere"""

    def generate(context, builder, signature, args):
        return builder.select(*args)

    return one(mask, one, other), generate


@_or_plain(_plain_sum)
def sum_lanes(typing_context, lanes):
    """The sum of the lanes: of two halves, of the halves of those, and so on."""

    def generate(context, builder, signature, args):
        value, half = args[0], FIXED_LANES // 2
        while half:
            order = ir.Constant(ir.VectorType(ir.IntType(32), half), list(range(half)))
            rest = ir.Constant(order.type, list(range(half, 2 * half)))
            one, other = (builder.shuffle_vector(value, value, part) for part in (order, rest))
            value, half = builder.fadd(one, other), half // 2
        return builder.extract_element(value, ir.IntType(32)(0))

    return lanes.dtype(lanes), generate


def _prefetch(write, into=1):
    """What has the cache lines of ``array[at : at + count]`` come from memory while other work is done."""

    @_or_plain(lambda array, at, count: None)
    def prefetch(typing_context, array, at, count):
        line = LINE * 4 * 8 // array.dtype.bitwidth

        def generate(context, builder, signature, args):
            data, at, count = args
            start = builder.gep(data_of(context, builder, array, data), [at])
            with cgutils.for_range_slice(builder, count.type(0), count, count.type(line)) as (index, _):
                prefetch_line(builder, builder.gep(start, [index]), write=write, into=into)

        return types.void(array, types.intp, types.intp), generate

    return prefetch


prefetch_to_read = _prefetch(write=False)
#: For what is needed after thousands of other numbers: into the second cache only.
prefetch_far_ahead = _prefetch(write=False, into=2)
#: For lines that will be written to, which must come from memory as well.
prefetch_to_write = _prefetch(write=True)


_SIDE = min(BLOCK, MACHINE_LANES)


def _transpose_square(builder, pointer, size, rows, at, targets, to):
    """Numbers from ``at`` on of some rows, as columns: from ``to`` on of as many targets."""
    side = len(rows)

    def place(start, offset):
        return builder.bitcast(builder.gep(start, [ir.IntType(64)(offset)]), pointer)

    block = [builder.load(place(row, at), align=size) for row in rows]
    # Swap the off-diagonal quarters of the whole, then of each quarter, and so on.
    half, numbers = side // 2, ir.VectorType(ir.IntType(32), side)
    while half:
        near = ir.Constant(numbers, [side + j - half if j & half else j for j in range(side)])
        far = ir.Constant(numbers, [side + j if j & half else j + half for j in range(side)])
        for i in range(side):
            if not i & half:
                one, other = block[i], block[i + half]
                block[i] = builder.shuffle_vector(one, other, near)
                block[i + half] = builder.shuffle_vector(one, other, far)
        half //= 2
    for target, column in zip(targets, block, strict=True):
        builder.store(column, place(target, to), align=size)


@_or_plain(_plain_transpose)
def transpose_block(typing_context, source, at, stride, rows, target, to, target_stride):
    """``target[to + j * target_stride + i] = source[at + i * stride + j]`` for i, j < ``BLOCK``

    The source has ``rows`` rows; those beyond repeat the last. Targets less than ``BLOCK`` apart overlap: the
    first numbers of each are there in the end.
    """
    signature = types.void(source, types.intp, types.intp, types.intp, target, types.intp, types.intp)

    def generate(context, builder, signature, args, loc=None):
        source_data, at, stride, rows, target_data, to, target_stride = args
        if CHECKED:
            access, number = _Access(context, builder, loc, "transpose_block"), ir.IntType(64)
            final = builder.sub(rows, number(1))
            first, final = (_at_most(builder, final, number(limit)) for limit in (0, BLOCK - 1))
            begin = builder.add(at, builder.mul(first, stride))
            reach = builder.mul(builder.sub(final, first), stride)
            access.check(source, source_data, begin, builder.add(reach, number(BLOCK)))
            reach = builder.mul(number(BLOCK - 1), target_stride)
            access.check(target, target_data, to, builder.add(reach, number(BLOCK)))
        source_data = data_of(context, builder, source, source_data)
        target_data = data_of(context, builder, target, target_data)
        pointer = _vector(context, source.dtype, _SIDE).as_pointer()
        last = builder.sub(rows, ir.IntType(64)(1))
        starts = []
        for i in range(BLOCK):
            row = ir.IntType(64)(i)
            row = builder.select(builder.icmp_signed("<", row, last), row, last)
            starts.append(builder.gep(source_data, [builder.add(at, builder.mul(row, stride))]))
        ends = []
        for i in range(BLOCK):
            row = builder.mul(ir.IntType(64)(i), target_stride)
            ends.append(builder.gep(target_data, [builder.add(to, row)]))
        # As many rows at a time as there are numbers in a register: a square of them stays in registers. The
        # first numbers of a target come last: its others may lie where those of the next are.
        for i in reversed(range(0, BLOCK, _SIDE)):
            for j in range(0, BLOCK, _SIDE):
                lines, targets = starts[i : i + _SIDE], ends[j : j + _SIDE]
                _transpose_square(builder, pointer, source.dtype.bitwidth // 8, lines, j, targets, i)

    return signature, generate


def by_known_step(body):
    """A decorator for ``body(step, ...)``: steps of 1 and 2 are known when it is compiled.

    Then loops over every ``step``-th number become vectors.
    """
    part = inner(body, forceinline=True)

    @inner(forceinline=True)
    def by_step(step, *arguments):
        if step == 1:
            part(1, *arguments)
        elif step == 2:
            part(2, *arguments)
        else:
            part(step, *arguments)

    return by_step


@by_known_step
def pick(step, source, target):
    """``target[i] = source[i * step]``"""
    for i in range(target.shape[0]):
        target[i] = source[i * step]


# -- memory ------------------------------------------------------------------------------------------------


@_or_plain(lambda count, number: np.empty(count, np.asarray(number).dtype))
def room(typing_context, count, number):
    """``count`` uninitialised numbers of the type of ``number``, from a cache line on

    ``np.empty`` would be compiled as four functions of its own, which takes longer than many a kernel's part.
    """
    made = types.Array(number, 1, "C")

    def generate(context, builder, signature, args):
        count, size = args[0], args[0].type(number.bitwidth // 8)
        array = context.make_array(made)(context, builder)
        info = context.nrt.meminfo_alloc_aligned(builder, builder.mul(count, size), ir.IntType(32)(64))
        data = builder.bitcast(context.nrt.meminfo_data(builder, info), array.data.type)
        populate_array(array, data, [count], [size], size, meminfo=info)
        return impl_ret_new_ref(context, builder, made, array._getvalue())

    return made(types.intp, number), generate


def aligned_zeros(count: int):
    """A float32 array that starts at a cache line, for scratch that outlives a call.

    It is zeroed, because kernels also multiply what lies beyond the last column. The results do not depend on
    that, but the time does: leftover memory may hold numbers below the least normal one, and each of these
    takes as long as a hundred others.
    """
    array = np.zeros(count + LINE, np.float32)
    start = (-array.ctypes.data // 4) % LINE
    return array[start : start + count]
