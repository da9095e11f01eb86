"""How compiled functions are called: by their entries, by threads that share a loop, again and again."""

import ctypes
import threading
import weakref
from types import SimpleNamespace

import llvmlite.binding as llvm
import llvmlite.ir
import numba
import numpy as np

from .found import INSIDES, CPUDispatcher, callconv, cgutils, intrinsic, types


def entry_of(compiled, args):
    """``compiled`` for arguments of the types of ``args``, at which it does not look again."""
    if not INSIDES or not isinstance(compiled, CPUDispatcher):  # plain Python without the JIT
        return compiled
    known = _entries.setdefault(compiled, {})
    kinds = _kind(compiled, args)
    entry = known.get(kinds)
    if entry is None:
        types = tuple(compiled.typeof_pyval(each) for each in args)
        compiled.compile(types)
        entry = getattr(compiled.overloads.get(types), "entry_point", None)
        entry = known[kinds] = entry if callable(entry) else compiled
    return entry


#: The entries of each compiled function, by the kinds of its arguments.
_entries: weakref.WeakKeyDictionary = weakref.WeakKeyDictionary()
#: The bits of an array's flags that numba's type of it depends on: C and F contiguous, aligned, writeable.
_TYPE_FLAGS = 0x001 | 0x002 | 0x100 | 0x400
#: Types whose values are all of one type in numba.
_OF_ONE_TYPE = {bool, float, type(None), np.bool_, np.int32, np.int64, np.float32, np.float64}


def _kind(compiled, value):
    """What numba's type of an argument follows from; numba itself takes long to tell the type of an array."""
    if type(value) is np.ndarray:
        return value.dtype, value.ndim, value.flags.num & _TYPE_FLAGS
    if isinstance(value, tuple):
        return type(value), *[_kind(compiled, each) for each in value]
    if type(value) is int:
        return int, value >> 63  # one that needs 64 bits is unsigned
    return type(value) if type(value) in _OF_ONE_TYPE else compiled.typeof_pyval(value)


def compiler_lock():
    """The lock that numba holds while it compiles; a lock of nobody's where it is not to be found."""
    try:
        from numba.core.compiler_lock import global_compiler_lock
    except ImportError:
        return threading.Lock()
    return getattr(global_compiler_lock, "_lock", threading.Lock())


def threads_launcher() -> int:
    """The address of the function by which numba's threads, which have been started, share a loop."""
    return llvm.address_of_symbol("numba_parallel_for") or 0


def launcher_by(run, claims):
    """A launcher that does without threads: ``run(part, parts)`` calls ``part(i)`` for each part of a loop.

    ``claims``: whether a part goes on with items of those that come later.

    Hold it as long as anybody may use its address, ``ctypes.cast(launcher, ctypes.c_void_p).value``.
    """
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kind_of_part = ctypes.CFUNCTYPE(None, *[pointer] * 4)

    def launch(function, arrays, _counts, steps, shared, _dimensions, _arrays, parts):
        number.from_address(shared + _CLAIMS).value = claims
        call, numbers, one = kind_of_part(function), pointer.from_address(arrays).value, number(1)

        def part(i):
            place = pointer(numbers + 8 * i)
            call(ctypes.addressof(place), ctypes.addressof(one), steps, shared)

        run(part, parts)

    return ctypes.CFUNCTYPE(None, *[pointer] * 5, *[number] * 3)(launch)


def threads_counter():
    """A function that tells how many of numba's threads, which have been started, a loop is shared among.

    numba's own sees to it first, each time, that they have been started, which takes most of a microsecond.
    """
    try:
        from numba.np.ufunc.parallel import _get_num_threads as count
    except ImportError:
        return numba.get_num_threads
    return count if callable(count) else numba.get_num_threads


#: Where it stands in what the parts of a loop share whether they claim items.
_CLAIMS = 16


#: As a launcher: nothing runs; the call is kept in memory, for :func:`run_kept`.
KEEP = 1


def kept_size(arguments) -> int:
    """How many 64-bit numbers a kept call with these arguments takes at most."""

    def size(value):
        if isinstance(value, tuple):
            return sum(map(size, value))
        return 5 + 2 * getattr(value, "ndim", 0)

    # Before the arguments: the code of a part, how many parts, and where their states and claims are.
    return 4 + size(arguments)


#: 64-bit numbers of a part's state, a cache line: its error code, which is 0 if all went well, where its
#: exception is, and what is claimed of its items (``shares.pieces``).
STATE = 8


def launcher_of(body):
    """What calls ``body``, made by :func:`make_inner`, once for each part of its loop.

    In a compiled function, ``launch(launcher, parts, arguments)`` calls ``body(share, *arguments)`` for each
    part, on a thread each, and raises the error of the first part that failed. A share is the part's number,
    how many there are, and the address of what is claimed of their items (``shares.pieces``), 0 if nothing
    may be. If ``launcher``, which is what :func:`threads_launcher` returns, is 0, there is one part, on the
    calling thread. If it is ``KEEP``, ``parts`` is the address of memory to keep the call in, which holds its
    size in bytes, the number of parts, where there is memory for their states, all 0, and a 1: they claim.
    """

    @intrinsic
    def launch(typing, launcher, parts, arguments):
        share = types.UniTuple(types.int64, 3)
        kinds = (share, *arguments.types)
        body.dispatcher._numba_type_.get_call_type(typing, kinds, {})
        part = body.dispatcher.overloads[kinds]

        def generate(context, builder, signature, values):
            launcher, parts, packed = values
            packed = _borrowed(context, builder, arguments, packed)
            context.add_linking_libs([part.library])

            number = parts.type
            function, shared_type = _part(context, builder, part, share, packed.type)
            keeps = builder.icmp_unsigned("==", launcher, number(KEEP))
            with builder.if_else(keeps) as (kept, run):
                with kept:
                    _keep(context, builder, function, shared_type, parts, packed)
                with run:
                    alone = builder.icmp_unsigned("==", launcher, number(0))
                    parts = builder.select(alone, number(1), parts)
                    shared = cgutils.alloca_once(builder, shared_type)
                    numbers = builder.alloca(number, size=parts)
                    states = builder.alloca(number, size=builder.mul(parts, number(STATE)))
                    for i, value in enumerate((parts, states, number(1), packed)):
                        builder.store(value, cgutils.gep_inbounds(builder, shared, 0, i))
                    with cgutils.for_range(builder, parts) as loop:
                        builder.store(loop.index, builder.gep(numbers, [loop.index]))
                        builder.store(number(0), _state(builder, states, loop.index)[0])
                    _run_parts(context, builder, launcher, function, parts, numbers, shared, states)
            return context.get_dummy_value()

        return types.void(types.int64, types.int64, arguments), generate

    return launch


def _keep(context, builder, function, shared_type, at, packed):
    """Keep a call in the memory at the address ``at``."""
    number = at.type
    memory = builder.inttoptr(at, number.as_pointer())
    needed = 8 + context.get_abi_sizeof(shared_type)
    small = builder.icmp_unsigned("<", builder.load(memory), number(needed))
    with builder.if_then(small, likely=False):
        message = f"a kept call takes {needed} bytes; kept_size() says less"
        context.call_conv.return_user_exc(builder, RuntimeError, (message,))
    builder.store(builder.ptrtoint(function, number), memory)
    shared = builder.bitcast(builder.gep(memory, [number(1)]), shared_type.as_pointer())
    builder.store(packed, cgutils.gep_inbounds(builder, shared, 0, 3))


def _run_kept(typing, launcher, numbers, at):
    """``run_kept(launcher, numbers, at)`` for compiled functions: the kept call at the address ``at``.

    ``numbers`` is the address of the numbers from 0 on, one for each part.
    """

    def generate(context, builder, signature, values):
        launcher, numbers, at = values
        number = at.type
        pointer = number.as_pointer()
        memory, numbers = builder.inttoptr(at, pointer), builder.inttoptr(numbers, pointer)
        function = builder.inttoptr(builder.load(memory), _kind_of_part(number).as_pointer())
        shared, to_states = (builder.gep(memory, [number(i)]) for i in (1, 2))
        states = builder.inttoptr(builder.load(to_states), pointer)
        parts = builder.load(shared)
        _run_parts(context, builder, launcher, function, parts, numbers, shared, states)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


run_kept = intrinsic(_run_kept) if INSIDES else None


def _state(builder, states, part):
    """Where a part's error code is, the address of its exception, and what is claimed of its items."""
    at = builder.mul(part, part.type(STATE))
    return [builder.gep(states, [builder.add(at, at.type(i))]) for i in range(3)]


def _raise_first(context, builder, parts, states):
    """Raise what the first of the parts raised that failed, and forget all failures."""
    with cgutils.for_range(builder, parts) as loop:
        to_code, to_exception, _ = _state(builder, states, loop.index)
        code = builder.load(to_code)
        with builder.if_then(builder.icmp_unsigned("!=", code, code.type(0)), likely=False):
            exception = builder.load(to_exception)
            with cgutils.for_range(builder, parts) as others:
                builder.store(code.type(0), _state(builder, states, others.index)[0])
            raised = SimpleNamespace(
                code=builder.trunc(code, callconv.errcode_t),
                excinfoptr=builder.inttoptr(exception, callconv.excinfo_ptr_t),
            )
            context.call_conv.return_status_propagate(builder, raised)


def _borrowed(context, builder, kind, value):
    """``value`` with its arrays, and those in its tuples, as arrays whose users nobody counts.

    The caller holds them until all parts are done. numba counts the users of an array even in inner loops,
    and threads that add to the same count wait for each other each time.
    """
    if isinstance(kind, types.Array):
        array = context.make_array(kind)(context, builder, value)
        array.meminfo = array.meminfo.type(None)
        return array._getvalue()
    if isinstance(kind, types.BaseTuple):
        members = zip(kind.types, cgutils.unpack_tuple(builder, value), strict=True)
        return context.make_tuple(builder, kind, [_borrowed(context, builder, *each) for each in members])
    return value


def _kind_of_part(number):
    """What a thread calls for some numbers of the first array: ``void(arrays, counts, steps, shared)``."""
    pointer = llvmlite.ir.IntType(8).as_pointer()
    given = [pointer.as_pointer(), number.as_pointer(), number.as_pointer(), pointer]
    return llvmlite.ir.FunctionType(llvmlite.ir.VoidType(), given)


def _part(context, builder, part, share, packed_type):
    """What a thread calls to have ``part`` called for its parts, and the type of what all threads share."""
    number = llvmlite.ir.IntType(64)
    shared_type = llvmlite.ir.LiteralStructType([number, number.as_pointer(), number, packed_type])
    function = llvmlite.ir.Function(
        builder.module,
        _kind_of_part(number),
        builder.module.get_unique_name(f"{part.fndesc.mangled_name}.part"),
    )
    function.linkage = "internal"
    inside = llvmlite.ir.IRBuilder(function.append_basic_block("entry"))
    arrays, counts, _, shared = function.args
    shared = inside.bitcast(shared, shared_type.as_pointer())
    members = (inside.load(cgutils.gep_inbounds(inside, shared, 0, i)) for i in range(4))
    count, states, claims, arguments = members
    claim = inside.and_(
        inside.icmp_unsigned("!=", claims, number(0)), inside.icmp_unsigned("!=", count, number(1))
    )
    first = inside.ptrtoint(_state(inside, states, number(0))[2], number)
    claims = inside.select(claim, first, number(0))
    numbers = inside.bitcast(inside.load(arrays), number.as_pointer())
    with cgutils.for_range(inside, inside.load(counts)) as loop:
        index = inside.load(inside.gep(numbers, [loop.index]))
        values = [
            context.make_tuple(inside, share, (index, count, claims)),
            *cgutils.unpack_tuple(inside, arguments),
        ]
        status, _ = context.call_internal_no_propagate(inside, part.fndesc, part.signature, values)
        with inside.if_then(status.is_error, likely=False):
            to_code, to_exception, _ = _state(inside, states, index)
            inside.store(inside.sext(status.code, number), to_code)
            inside.store(inside.ptrtoint(status.excinfoptr, number), to_exception)
    inside.ret_void()
    return function, shared_type


def _run_parts(context, builder, launcher, function, parts, numbers, shared, states):
    """Call ``function`` for each of its parts, by threads if there are several; each gets ``shared``.

    Raise what the first of the parts raised that failed.
    """
    number, pointer = parts.type, llvmlite.ir.IntType(8).as_pointer()
    array = cgutils.alloca_once_value(builder, builder.bitcast(numbers, pointer))
    count, step = cgutils.alloca_once_value(builder, parts), cgutils.alloca_once_value(builder, number(8))
    given = [builder.bitcast(each, pointer) for each in (function, array, count, step, shared)]
    with builder.if_else(builder.icmp_unsigned("==", parts, number(1))) as (alone, by_threads):
        with alone:
            builder.call(function, [array, count, step, given[-1]])
        with by_threads:
            with cgutils.for_range(builder, parts) as loop:  # nothing is claimed
                builder.store(number(0), _state(builder, states, loop.index)[2])
            # Arrays, counts, steps, and what all share; dimensions of an item; how many arrays, and threads.
            target = llvmlite.ir.FunctionType(llvmlite.ir.VoidType(), [pointer] * 5 + [number] * 3)
            threads = builder.inttoptr(launcher, target.as_pointer())
            builder.call(threads, [*given, number(0), number(1), parts])
    _raise_first(context, builder, parts, states)
