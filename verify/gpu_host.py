"""A GPU made of this machine's processor: what numba-cuda compiled for a device is executed here.

numba-cuda turns a kernel into LLVM's language with the widths, the memory and the barriers of a GPU. Here
that text, with what it uses of CUDA's own ``libdevice``, is made into code for the host:

- All functions are inlined. Every thread is one of LLVM's coroutines, which is suspended at each barrier, so
  that a block's threads go on from there in any order. Which thread runs is read from memory.
- Before each load, store and atomic operation, ``_touch`` is asked. It compares the access with the extent of
  the array that the pointer was made from, and with what other threads did to that place: see there.
- Shared and local memory hold NaN, or integers far outside of everything, until they are written.
- Products and sums are rounded one by one, as on the CPU. With ``CONTRACT`` they are contracted wherever LLVM
  can; where NVIDIA's compiler does is known to it only.

What this cannot show: the memory model beyond barriers, NVIDIA's own compiler from here on, and time.
"""

import contextlib
import ctypes
import functools
import gc
import os
import re
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple

os.environ["LLVMLITE_ENABLE_IR_LAYER_TYPED_POINTERS"] = "0"

import llvmlite.binding as llvm
import numba
import numba.cuda
import numpy as np
from numba import types
from ptx_check import lowered

from roiops.dtypes import BFLOAT16

# Lines of the source in what is compiled from here on, for the reports.
numba.cuda.jit = functools.partial(numba.cuda.jit, lineinfo=True)

LOAD, STORE, ATOMIC = 0, 1, 2
KINDS = "loads", "stores", "updates"
# What may be wrong with an access.
OUTSIDE, MISALIGNED, RACE, BARRIER = 1, 2, 3, 4

MOST_REGIONS, MOST_SITES = 128, 4096
CONTRACT = False
# Elements of all arrays of a launch of which accesses are remembered.
MOST_SHADOW = 1 << 25
# With a log, launches of more blocks than this run only so many of them, drawn at random.
MOST_LOGGED, SAMPLED = 64, 8


class Fault(Exception):
    """A kernel did what no kernel may do."""


# -- memory: what the compiled code and Python share ----------------------------------------------------

# Of the one launch that runs at a time: who runs, where, since when, and the first fault.
STATE = np.zeros(
    1,
    [
        (name, np.int64)
        for name in (
            "thread", "block", "threads", "blocks", "barrier",
            "stamp", "block_stamp", "launch_stamp", "fault", "site", "region", "offset", "other", "anywhere",
            "logged",
        )
    ],
)  # fmt: skip
REGIONS = np.zeros(
    MOST_REGIONS,
    [(name, np.int64) for name in ("base", "extent", "element", "shadow", "shared")],
)
SITES = np.zeros(MOST_SITES, [(name, np.int64) for name in ("region", "size", "alignment", "kind", "visits")])
# Of each element: when and by which thread it was written, and read. Pages are used with their elements only.
SHADOW = np.zeros(
    MOST_SHADOW,
    [(name, np.int32) for name in ("written", "writer", "read", "reader")],
)
# Where an access goes that was refused: NaN.
NOWHERE = np.full(32, 0xFF, np.uint8)

_STATE, _REGIONS, _SITES, _SHADOW = map(numba.from_dtype, (x.dtype for x in (STATE, REGIONS, SITES, SHADOW)))
_NOWHERE = NOWHERE.ctypes.data
# Threads of a record: several of this block, and some of another one. Atomic writers have a bit more.
SEVERAL, OTHERS, ATOMICALLY = 1 << 16, 1 << 17, 1 << 18


@numba.njit
def _fault(state, kind, site, region, offset, other):
    if state.fault == 0:
        state.fault, state.site, state.region, state.offset, state.other = kind, site, region, offset, other
        state.anywhere = state.thread


@numba.njit
def _note(state, record, kind, floor):
    """Record an access of an element. Returns a thread that is in conflict with it, or -1.

    Accesses since the last barrier, whose stamps are equal, are in no order. Accesses of other blocks, whose
    stamps are lower than those of this block, are never in any. A stamp below ``floor`` is of no account.
    """
    me, conflict = state.thread, -1
    atomic = kind == ATOMIC
    writer, of_others = record.writer & ~ATOMICALLY, record.written < state.block_stamp
    unordered = of_others or writer == OTHERS or (record.written == state.stamp and writer != me)
    if record.written >= floor and unordered and not (atomic and record.writer & ATOMICALLY):
        conflict = OTHERS if of_others else writer
    read_by_others = record.read < state.block_stamp or record.reader == OTHERS
    if kind == LOAD:
        if record.read >= floor and read_by_others:
            record.reader = OTHERS
        elif record.read == state.stamp and record.reader != me:
            record.reader = SEVERAL
        else:
            record.reader = me
        record.read = state.stamp
        return conflict
    if record.read >= floor and (read_by_others or (record.read == state.stamp and record.reader != me)):
        conflict = OTHERS if read_by_others else record.reader
    if atomic and record.written >= floor and (of_others or writer == OTHERS):
        me = OTHERS
    elif atomic and record.written == state.stamp and writer != me:
        me = SEVERAL
    record.written, record.writer = state.stamp, me | (ATOMICALLY if atomic else 0)
    return conflict


_POINTERS = tuple(map(types.CPointer, (_STATE, _REGIONS, _SITES, _SHADOW)))


@numba.cfunc(types.int64(types.int64, types.int64, types.int64, *_POINTERS), error_model="numpy")
def _touch(address, base, site, state_at, regions_at, sites_at, shadow_at):
    """Where the access ``site`` to ``address`` may go: there, or nowhere if it is not allowed.

    ``base`` is where local memory begins, 0 for an array that the launch was given or the block shares.
    """
    state = numba.carray(state_at, 1)[0]
    told = numba.carray(sites_at, MOST_SITES)[site]
    told.visits += 1
    region = numba.carray(regions_at, MOST_REGIONS)[told.region]
    offset = address - (base if base else region.base)
    if offset < 0 or offset + told.size > region.extent:
        _fault(state, OUTSIDE, site, told.region, offset, 0)
        return _NOWHERE
    if address % told.alignment:
        _fault(state, MISALIGNED, site, told.region, offset, 0)
    if region.shadow >= 0:
        floor = state.block_stamp if region.shared else state.launch_stamp
        shadow = numba.carray(shadow_at, MOST_SHADOW)
        first = offset // region.element
        for element in range(first, first + told.size // region.element):
            other = _note(state, shadow[region.shadow + element], told.kind, floor)
            if other >= 0:
                _fault(state, RACE, site, told.region, offset, other)
    return address


@numba.cfunc(types.int64(types.int64, types.int64, types.int64, *_POINTERS), error_model="numpy")
def _log(address, base, site, state_at, regions_at, sites_at, shadow_at):
    """In place of :func:`_touch`: note an access of an array or of shared memory, which goes where it likes.

    The memory of the shadow holds the notes: the site, the thread, since which barrier, and the place.
    """
    state = numba.carray(state_at, 1)[0]
    if base == 0 and state.logged < MOST_SHADOW:
        region = numba.carray(regions_at, MOST_REGIONS)[numba.carray(sites_at, MOST_SITES)[site].region]
        note = numba.carray(shadow_at, MOST_SHADOW)[state.logged]
        note.written, note.writer, note.read, note.reader = (
            site,
            state.thread,
            state.stamp,
            address - region.base,
        )
        state.logged += 1
    return address


# -- threads --------------------------------------------------------------------------------------------

_HELPERS = """
declare void @llvm.coro.resume(ptr)
declare void @llvm.coro.destroy(ptr)
define i64 @begin(i64 %entry, i64 %arguments) {
  %code = inttoptr i64 %entry to ptr
  %handle = call i64 %code(i64 %arguments)
  ret i64 %handle
}
define i64 @resume(i64 %handle) {
  %thread = inttoptr i64 %handle to ptr
  call void @llvm.coro.resume(ptr %thread)
  %next = load i64, ptr %thread  ; 0 when it has ended
  ret i64 %next
}
define i64 @destroy(i64 %handle) {
  %thread = inttoptr i64 %handle to ptr
  call void @llvm.coro.destroy(ptr %thread)
  ret i64 0
}
"""


@functools.cache
def _machine():
    """What compiles for the host, and what holds the code."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_triple(llvm.get_process_triple()).create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=llvm.get_host_cpu_features().flatten(), opt=1, jit=True
    )
    return target, llvm.create_mcjit_compiler(llvm.parse_assembly(""), target)


def _to_code(module, *names):
    """Optimise a module, and the addresses of some of its symbols."""
    target, engine = _machine()
    builder = llvm.create_pass_builder(target, llvm.create_pipeline_tuning_options(speed_level=1))
    builder.getModulePassManager().run(module, builder)
    engine.add_module(module)
    engine.finalize_object()
    return [engine.get_global_value_address(name) or engine.get_function_address(name) for name in names]


@functools.cache
def _scheduler():
    """``run_block(entry, arguments, threads, random order, handles, state)``; True if all went well."""
    addresses = _to_code(_for_host(_HELPERS), "begin", "resume", "destroy")
    one, two = (ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_int64] * n) for n in (1, 2))
    begin, resume, destroy = two(addresses[0]), one(addresses[1]), one(addresses[2])

    @numba.njit
    def run_block(entry, arguments, threads, seed, state):
        np.random.seed(seed)  # noqa: NPY002 - numba knows no Generator that is made here
        alive = np.ones(threads, np.bool_)
        handles = np.empty(threads, np.int64)
        for thread in range(threads):
            handles[thread] = begin(entry, arguments)
        going = True
        while going:
            state.stamp += 1
            going, site = False, -2
            for thread in np.random.permutation(threads):  # noqa: NPY002
                if alive[thread]:
                    state.thread, state.barrier = thread, -1
                    alive[thread] = resume(handles[thread]) != 0
                    going = going or alive[thread]
                # -1: it has ended, now or before. All must be at one barrier, or none.
                at = state.barrier if alive[thread] else -1
                if site == -2:
                    site, first = at, thread
                elif at != site and state.fault == 0:
                    state.fault, state.site, state.region = 4, site, at  # BARRIER
                    state.anywhere, state.other = first, thread
            going = going and state.fault == 0
        for thread in range(threads):
            destroy(handles[thread])

    return run_block


# -- LLVM's language for a GPU into that for the host ---------------------------------------------------

_SIZES = {"i1": 1, "i8": 1, "i16": 2, "half": 2, "i32": 4, "float": 4, "i64": 8, "double": 8, "ptr": 8}
# What memory holds that nothing was written to: NaN, or what is far outside of everything.
_ABSENT = {
    "half": "0xH7E00", "float": "0x7FF8000000000000", "double": "0x7FF8000000000000",
    "i8": "63", "i16": "16383", "i32": "1073741823", "i64": "4611686018427387903",
}  # fmt: skip
_DTYPES = {"half": "f2", "float": "f4", "double": "f8", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8"}
_POSITIONS = {"tid.x": "thread", "ctaid.x": "block", "ntid.x": "threads", "nctaid.x": "blocks"}
# What libdevice asks of the compiler, and its functions of a GPU as LLVM has them for any machine.
_REFLECTED = {"__CUDA_FTZ": 0, "__CUDA_ARCH": 900, "__CUDA_PREC_SQRT": 1}
_ANYWHERE = {
    "fma.rn.f": "fma.f32", "fma.rn.d": "fma.f64", "fabs.f32": "fabs.f32", "fabs.f64": "fabs.f64",
    "floor.f": "floor.f32", "floor.d": "floor.f64", "ceil.f": "ceil.f32", "ceil.d": "ceil.f64",
    "sqrt.rn.f": "sqrt.f32", "sqrt.rn.d": "sqrt.f64",
}  # fmt: skip
_ROUNDED = """
define i32 @llvm_nvvm_{0}2i_rn({1} %x) alwaysinline {{
  %whole = call {1} @llvm.rint.{2}({1} %x)
  %result = call i32 @llvm.fptosi.sat.i32.{2}({1} %whole)
  ret i32 %result
}}
declare {1} @llvm.rint.{2}({1})
declare i32 @llvm.fptosi.sat.i32.{2}({1})
"""
_HALVES = """
define i32 @llvm_nvvm_d2i_hi(double %x) alwaysinline {
  %bits = bitcast double %x to i64
  %above = lshr i64 %bits, 32
  %high = trunc i64 %above to i32
  ret i32 %high
}
define i32 @llvm_nvvm_d2i_lo(double %x) alwaysinline {
  %bits = bitcast double %x to i64
  %low = trunc i64 %bits to i32
  ret i32 %low
}
define double @llvm_nvvm_lohi_i2d(i32 %low, i32 %high) alwaysinline {
  %below = zext i32 %low to i64
  %wide = zext i32 %high to i64
  %above = shl i64 %wide, 32
  %bits = or i64 %above, %below
  %x = bitcast i64 %bits to double
  ret double %x
}
define double @llvm_nvvm_rcp_approx(double %x) alwaysinline {
  %bits = bitcast double %x to i64
  %above = and i64 %bits, -4294967296
  %high = bitcast i64 %above to double
  %exact = fdiv double 1.0, %high
  %whole = bitcast double %exact to i64
  %kept = and i64 %whole, -4294967296
  %result = bitcast i64 %kept to double
  ret double %result
}
"""
# What is written in the GPU's own assembler in the cosine and sine of large angles: numbers of two words.
_TWO_WORDS = """
define {{ i{0}, i{0} }} @words_{2}_i{0}({3}) alwaysinline {{
  {4}
  %low = trunc i{1} %sum to i{0}
  %above = lshr i{1} %sum, {0}
  %high = trunc i{1} %above to i{0}
  %some = insertvalue {{ i{0}, i{0} }} poison, i{0} %low, 0
  %both = insertvalue {{ i{0}, i{0} }} %some, i{0} %high, 1
  ret {{ i{0}, i{0} }} %both
}}
"""


def _two_words(bits, name, words, operations):
    """A function of some words, as whole numbers of twice their bits."""
    given = ", ".join(f"i{bits} %{word}.word" for word in words)
    wide = [f"%{word} = zext i{bits} %{word}.word to i{2 * bits}" for word in words]
    return _TWO_WORDS.format(bits, 2 * bits, name, given, "\n  ".join(wide + operations))


def _sum_of_two(operation):
    shifted = [f"%{n}.up = shl i128 %{n}.high, 64" for n in "ab"]
    whole = [f"%{n} = or i128 %{n}.up, %{n}.low" for n in "ab"]
    operations = [*shifted, *whole, f"%sum = {operation} i128 %a, %b"]
    return _two_words(64, operation, ["a.low", "a.high", "b.low", "b.high"], operations)


def _product_and_sum(bits):
    operations = [f"%product = mul i{2 * bits} %a, %b", f"%sum = add i{2 * bits} %product, %c"]
    return _two_words(bits, "mad", "abc", operations)


_MORE = "".join(
    [
        _HALVES,
        _ROUNDED.format("f", "float", "f32"),
        _ROUNDED.format("d", "double", "f64"),
        _product_and_sum(32),
        _product_and_sum(64),
        _sum_of_two("add"),
        _sum_of_two("sub"),
    ]
)


def _for_host(text: str):
    """A module of LLVM's language as one for this machine."""
    target, _ = _machine()
    text = re.sub(r"(?m)^target \w+ = .*\n", "", text)
    head = f'target triple = "{target.triple}"\ntarget datalayout = "{target.target_data}"\n'
    return llvm.parse_assembly(head + text)


@functools.cache
def _libdevice() -> bytes:
    """CUDA's mathematical functions, for the host."""
    import nvidia

    (path,) = Path(nvidia.__path__[0]).glob("*/nvvm/libdevice/libdevice.10.bc")
    text = str(llvm.parse_bitcode(path.read_bytes()))
    for name, question in re.findall(r'(?m)^(@[\w.]+) = .* c"(\w+)\\00"', text):
        asked = rf"call i32 @__nvvm_reflect\(ptr {re.escape(name)}\).*"
        text = re.sub(asked, f"add i32 0, {_REFLECTED.get(question, 0)}", text)
    for ours, theirs in _ANYWHERE.items():
        text = text.replace(f"@llvm.nvvm.{ours}(", f"@llvm.{theirs}(")
    # A product that may not be contracted; the flag, which says nothing here, marks it as one.
    text = re.sub(
        r"call (\w+) @llvm\.nvvm\.(mul|add)\.rn\.[fd]\(\w+ (\S+), \w+ (\S+)\)(?: #\d+)?",
        r"f\2 arcp \1 \3, \4",
        text,
    )
    text = re.sub(r"(?m)^declare i32 @llvm\.nvvm\.[fd]2i\.rn\(.*\n", "", text)
    text = re.sub(r"@llvm\.nvvm\.([fd])2i\.rn\(", r"@llvm_nvvm_\g<1>2i_rn(", text)
    text = re.sub(r"(?m)^declare \w+ @llvm\.nvvm\.(?:d2i\.(?:hi|lo)|lohi\.i2d)\(.*\n", "", text)
    text = re.sub(r"@llvm\.nvvm\.(d2i|lohi)\.(hi|lo|i2d)\(", r"@llvm_nvvm_\1_\2(", text)
    text = re.sub(r"(?m)^declare double @llvm\.nvvm\.rcp\.approx\.ftz\.d\(.*\n", "", text)
    text = text.replace("@llvm.nvvm.rcp.approx.ftz.d(", "@llvm_nvvm_rcp_approx(")
    text = re.sub(r'call (\{ i(?:32|64), i\d+ \}) asm "(.*?)", "[^"]*"\((.*?)\).*', _of_two_words, text)
    # So that of all functions those come into a module that it calls.
    text = re.sub(r"(?m)^define (?:internal )?", "define linkonce_odr ", text + _MORE)
    return _for_host(text).as_bitcode()


def _of_two_words(match):
    pair, assembler, operands = match.groups()
    # Without a third operand it is a product alone.
    operation = re.search(r"(mad|add|sub)\.(?:lo\.)?cc", assembler)[1]
    operands += ", i64 0" if operands.count(",") == 1 else ""
    return f"call {pair} @words_{operation}_{pair.split()[-2]}({operands})"


_OF_HALVES = re.compile(
    r'(?m)^ *(%\S+) = call (\w+) asm "cvt\.(?:rn\.)?(\w+)\.\w+ \$0, \$1;", "[^"]*"\((\w+) (\S+)\).*$'
)


def _of_half(match):
    """float16 from or to a wider float, which numba-cuda writes in the GPU's assembler."""
    result, to, name, given, operand = match.groups()
    half = f"%half.{match.start()}"
    if name == "f16":
        steps = f"{half} = fptrunc {given} {operand} to half", f"{result} = bitcast half {half} to i16"
    else:
        steps = f"{half} = bitcast i16 {operand} to half", f"{result} = fpext half {half} to {to}"
    return "\n".join(f"  {step}" for step in steps)


def _inlined(text: str) -> str:
    """The kernel of a module as one function, whose variables are registers but for arrays."""
    module, *others = [_for_host(part) for part in re.split(r"(?m)^(?=; ModuleID)", text) if "define" in part]
    for other in others:
        module.link_in(other)
    if "__nv_" in text:
        module.link_in(llvm.parse_bitcode(_libdevice()))
    text = re.sub(r"(?m)^@llvm\.used = .*\n", "", str(module))
    text = re.sub(
        r"(?m)^define (?!ptx_kernel)(?:linkonce_odr |internal |weak )*(.*?\))(?: (?:local_)?unnamed_addr)?(?: #\d+)?( !dbg !\d+)? \{$",  # noqa: E501
        r"define internal \1 alwaysinline\2 {",
        text,
    )
    text = _OF_HALVES.sub(_of_half, text)
    if CONTRACT:
        text = re.sub(r"(?m)^( *%\S+ = f(?:mul|add|sub)) (?!arcp)", r"\1 contract ", text)
    text = re.sub(r"(?m)^( *store) \[(\d+) x (\w+)\] zeroinitializer, (ptr %\S*_cudapy_lmem)", _absent, text)
    module = _for_host(text.replace("define ptx_kernel void", "define void"))
    passes = llvm.create_new_module_pass_manager()
    passes.add_global_dead_code_eliminate_pass()
    for _ in range(2):  # before functions are copied into others they are made small: far sooner done
        passes.add_sroa_pass()
        passes.add_instruction_combine_pass()
        passes.add_simplify_cfg_pass()
        passes.add_always_inliner_pass()
    passes.add_aggressive_dce_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_instruction_namer_pass()
    options = llvm.create_pipeline_tuning_options(speed_level=0)
    passes.run(module, llvm.create_pass_builder(_machine()[0], options))
    return str(module)


def _absent(match):
    store, count, element, pointer = match.groups()
    each = f"{element} {_ABSENT[element]}"
    return f"{store} [{count} x {element}] [{', '.join([each] * int(count))}], {pointer}"


class _Site(NamedTuple):
    """An access of memory in the source of a kernel, or a barrier (of no array)."""

    array: str | None
    element: str
    count: int
    kind: int
    alignment: int
    line: str

    @property
    def size(self):
        return self.count * _SIZES[self.element]


class _Rewritten(NamedTuple):
    text: str
    arguments: list  # (name, type) of each
    arrays: dict  # name -> (type of the elements, how many), of shared and local memory
    sites: list


_ACCESS = re.compile(
    r"(?P<result>%\S+ = )?(?:"
    r"load (?P<loads>.+?), ptr (?P<source>.+), align (?P<load_align>\d+)"
    r"|store (?P<stores>.+?) (?P<value>\S+), ptr (?P<target>.+), align (?P<store_align>\d+)"
    r"|atomicrmw (?P<operation>\w+) ptr (?P<place>.+), (?P<updates>\w+) (?P<by>\S+) monotonic, align (?P<align>\d+)"  # noqa: E501
    r")(?P<rest>.*)$"
)
_BARRIER = re.compile(r"call void @llvm\.nvvm\.barrier")
_POSITION = re.compile(r"(%\S+) = call .*@llvm\.nvvm\.read\.ptx\.sreg\.([\w.]+)\(\)")
_NAME = re.compile(r'@_cudapy_smem_\d+|%"[^"]+"|%[\w.$-]+')


def _rewritten(text: str, touch) -> _Rewritten:
    """One kernel as a coroutine that asks ``touch`` before each access of memory."""
    lines = _Lines(text)
    arguments, body = re.search(r"(?ms)^define void @\S+?\((.*?)\)[^\n]*\{\n(.*?)^\}", text).groups()
    arguments = [tuple(each.replace(" noundef", "").rsplit(" ", 1)) for each in arguments.split(", ")]
    arrays = {
        shared: (element, int(count))
        for shared, count, element in re.findall(
            r"(?m)^(@_cudapy_smem_\d+) = addrspace\(3\) global \[(\d+) x (\w+)\]", text
        )
    }
    arrays |= {
        local: (element or alone, int(count or 1))
        for local, count, element, alone in re.findall(
            r"(?m)^ *(%\S+) = alloca (?:\[(\d+) x (\w+)\]|(\w+))", body
        )
    }
    # The fifth member of an array is where its elements are; the first two are pointers that are not used.
    pointers = {*arrays, *(each for kind, each in arguments if kind == "ptr" and re.search(r'\.4"?$', each))}
    begins = {*arrays, *(each for _, each in arguments)}
    # What each pointer is made from: of the operands of these instructions, those that are pointers.
    makers = "getelementptr|phi|select|extractvalue|insertvalue|ptrtoint|inttoptr|add|sub"
    made = dict(re.findall(rf"(?m)^ *(%\S+) = (?:{makers}) (.*)", body))
    sites, out, blocks = [], [], {}
    address = {field: STATE.ctypes.data + STATE.dtype.fields[field][1] for field in STATE.dtype.names}

    @functools.cache
    def roots_of(pointer):
        """The arrays that a pointer, or the expression for it, may point into."""
        found, asked = set(), [pointer]
        seen = set()
        while asked:
            for each in _NAME.findall(asked.pop()):
                if each in begins:
                    found.add(each)
                elif each in made and each not in seen:
                    seen.add(each)
                    asked.append(made[each])
        return found & pointers

    def add_site(array, element, count, kind, alignment, line):
        sites.append(_Site(array, element, count, kind, alignment, lines.of(line)))
        return len(sites) - 1

    block = None
    for line in body.splitlines():
        bare = line.strip()
        if not bare or bare.startswith(";"):
            continue
        if label := re.match(r'([\w.$"-]+):', line):
            block = label[1]
        if re.match(r"call void @llvm\.(lifetime|dbg|assume)", bare) or bare.startswith("#dbg_"):
            continue
        if _BARRIER.match(bare):
            site = add_site(None, "i8", 0, 0, 1, line)
            after = f"after.barrier.{site}"
            out += [
                f"  store i64 {site}, ptr inttoptr (i64 {address['barrier']} to ptr)",
                f"  %barrier.{site} = call i8 @llvm.coro.suspend(token none, i1 false)",
                f"  switch i8 %barrier.{site}, label %leave [i8 0, label %{after} i8 1, label %clean]",
                f"{after}:",
            ]
            blocks[block] = after
            continue
        if position := _POSITION.match(bare):
            register, which = position.groups()
            if which in _POSITIONS:
                out.append(
                    f"  {register}.wide = load i64, ptr inttoptr (i64 {address[_POSITIONS[which]]} to ptr)"
                )
                out.append(f"  {register} = trunc i64 {register}.wide to i32")
            elif which[-1] in "yz":
                out.append(f"  {register} = add i32 0, {int(which.startswith('n'))}")
            else:
                raise NotImplementedError(f"gpu_host: {which}")
            continue
        if re.match(r"(?:%\S+ = )?(?:load|store|atomicrmw) ", bare):
            access = _ACCESS.match(bare)
            kind = LOAD if access["loads"] else STORE if access["stores"] else ATOMIC
            pointer = access["source"] or access["target"] or access["place"]
            of_type = access["loads"] or access["stores"] or access["updates"]
            alignment = int(access["load_align"] or access["store_align"] or access["align"])
            # Whole arrays are stored by :func:`_absent` only; constants of libdevice are read as they are.
            if not of_type.startswith("[") and "ptr addrspace(1)" not in line and "@__cudart" not in pointer:
                # Of two loads, one of each array, LLVM may have made one of either: the array is the one
                # that the place lies in, or else the last.
                *either, root = sorted(roots_of(pointer)) or [None]
                if root is None or any(not each.startswith("@") for each in either):
                    raise NotImplementedError(f"gpu_host: memory of one of {roots_of(pointer)}: {bare}")
                vector = re.match(r"<(\d+) x (\w+)>", of_type)
                count, element = (int(vector[1]), vector[2]) if vector else (1, of_type)
                site = add_site(root, element, count, kind, alignment, line)
                local = root.startswith("%") and root in arrays
                out += [
                    f"  %at.{site} = ptrtoint ptr {pointer} to i64",
                    f"  %base.{site} = " + (f"ptrtoint ptr {root} to i64" if local else "add i64 0, 0"),
                    f"  %site.{site} = add i64 0, {site}",
                ]
                which = f"%site.{site}"
                for other in either:
                    k = add_site(other, element, count, kind, alignment, line)
                    length = arrays[other][1] * _SIZES[arrays[other][0]]
                    out += [
                        f"  %from.{k} = sub i64 %at.{site}, ptrtoint (ptr {other} to i64)",
                        f"  %in.{k} = icmp ult i64 %from.{k}, {length}",
                        f"  %site.{k} = select i1 %in.{k}, i64 {k}, i64 {which}",
                    ]
                    which = f"%site.{k}"
                tables = ", ".join(f"i64 {each.ctypes.data}" for each in (STATE, REGIONS, SITES, SHADOW))
                out += [
                    f"  %to.{site} = call i64 inttoptr (i64 {touch.address} to ptr)"
                    f"(i64 %at.{site}, i64 %base.{site}, i64 {which}, {tables})",
                    f"  %there.{site} = inttoptr i64 %to.{site} to ptr",
                ]
                before, _, after = line.partition(f"ptr {pointer}, ")
                line = f"{before}ptr %there.{site}, {after}"
        elif " call " in f" {bare}" and ("@llvm.nvvm" in bare or " asm " in bare):
            raise NotImplementedError(f"gpu_host: {bare}")
        elif bare.startswith("ret void"):
            line = "  br label %end"
        out.append(line)
    for k, line in enumerate(out):
        if " = phi " in line:
            out[k] = re.sub(
                r"(\[ [^\]]*, )%([^\s\]]+) \]", lambda m: f"{m[1]}%{blocks.get(m[2], m[2])} ]", line
            )
    first = re.match(r'([\w.$"-]+):', out[0])[1]
    taken = []
    for k, (kind, argument) in enumerate(arguments):
        slot = f"%slot.{k}"
        taken += [
            f"  {slot} = getelementptr i64, ptr %arguments, i64 {k}",
            f"  {argument} = load {kind}, ptr {slot}",
        ]
    text = _COROUTINE.format(taken="\n".join(taken), first=first, body="\n".join(out))
    # Tables of libdevice, some of which are variables by their declaration.
    constants = "\n".join(
        re.findall(r"(?m)^@(?!_cudapy)\S+ = internal .*(?:constant|global) .*$", lines.text)
    )
    shared = "\n".join(
        f"{name} = global [{count} x {element}] zeroinitializer, align 16"
        for name, (element, count) in arrays.items()
        if name.startswith("@")
    )
    text = re.sub(r", !\w+(\.\w+)* !\d+|, !\w+ !\d+", "", f"{constants}\n{shared}\n{text}").replace(
        " addrspace(1)", ""
    )
    text = re.sub(r"addrspacecast \(ptr addrspace\(3\) (@_cudapy_smem_\d+) to ptr\)", r"\1", text)
    return _Rewritten(text, arguments, arrays, sites)


_COROUTINE = """
declare ptr @malloc(i64)
declare void @free(ptr)
declare token @llvm.coro.id(i32, ptr, ptr, ptr)
declare i64 @llvm.coro.size.i64()
declare ptr @llvm.coro.begin(token, ptr)
declare i8 @llvm.coro.suspend(token, i1)
declare ptr @llvm.coro.free(token, ptr)
declare void @llvm.coro.end(ptr, i1, token)

define ptr @kernel(ptr %arguments) presplitcoroutine {{
begin:
  %id = call token @llvm.coro.id(i32 16, ptr null, ptr null, ptr null)
  %frame.size = call i64 @llvm.coro.size.i64()
  %memory = call ptr @malloc(i64 %frame.size)
  %handle = call ptr @llvm.coro.begin(token %id, ptr %memory)
{taken}
  %started = call i8 @llvm.coro.suspend(token none, i1 false)
  switch i8 %started, label %leave [i8 0, label %{first} i8 1, label %clean]
{body}
end:
  %ended = call i8 @llvm.coro.suspend(token none, i1 true)
  switch i8 %ended, label %leave [i8 0, label %never i8 1, label %clean]
never:
  unreachable
clean:
  %freed = call ptr @llvm.coro.free(token %id, ptr %handle)
  call void @free(ptr %freed)
  br label %leave
leave:
  call void @llvm.coro.end(ptr %handle, i1 false, token none)
  ret ptr %handle
}}
"""


class _Lines:
    """Which line of the source an instruction comes from."""

    def __init__(self, text):
        self.text = text
        self._nodes = dict(
            re.findall(
                r"(?m)^(!\d+) = (?:distinct )?(!DI(?:Location|Subprogram|LexicalBlock|File)\(.*\))$", text
            )
        )

    def of(self, line) -> str:
        node = self._nodes.get((re.search(r"!dbg (!\d+)", line) or [None, None])[1], "")
        number, scope = re.search(r"line: (\d+)", node), re.search(r"scope: (!\d+)", node)
        while scope and "file:" not in node:
            node = self._nodes.get(scope[1], "")
            scope = re.search(r"scope: (!\d+)", node)
        file = self._nodes.get((re.search(r"file: (!\d+)", node) or [None, None])[1], "")
        file = re.search(r'filename: "([^"]+)"', file)
        return f"{file[1] if file else '?'}:{number[1] if number else '?'}"


# -- kernels and launches -------------------------------------------------------------------------------


class HostKernel:
    """A kernel for arguments of some types, as code for this machine.

    With ``log``, accesses are not checked, but given to ``log(kernel, notes, weight)`` after each block: see
    :func:`_log`. Of a launch of many blocks then run :data:`SAMPLED`, each of which stands for ``weight``.
    """

    def __init__(self, kernel, signature, capability=(9, 0), log=None):
        self.name, self.signature = kernel.py_func.__name__, signature
        gc.disable()  # the compiler makes much that lives until it is done
        #: The kernel, and what numba-cuda made of it.
        self.dispatcher = kernel
        self.library = lowered(kernel, signature, capability, lineinfo=log is None)
        text = _inlined(self.library.get_llvm_str())
        gc.enable()
        self._log, self._code = log, _rewritten(text, _log if log else _touch)
        self.sites = self._code.sites
        shared = [name for name in self._code.arrays if name.startswith("@")]
        module = _for_host(self._code.text)
        self._entry, *addresses = _to_code(module, "kernel", *(name[1:] for name in shared))
        self._shared = {
            name: np.ctypeslib.as_array((ctypes.c_uint8 * (count * _SIZES[element])).from_address(address)).view(_DTYPES[element])  # noqa: E501
            for name, address in zip(shared, addresses, strict=True)
            for element, count in [self._code.arrays[name]]
        }  # fmt: skip
        given = [name for _, name in self._code.arguments]
        self._regions = {name: k for k, name in enumerate([*given, *self._code.arrays])}
        self._visits = np.zeros(len(self.sites), np.int64)
        if len(self._regions) > MOST_REGIONS or len(self.sites) > MOST_SITES:
            raise NotImplementedError(f"gpu_host: {self.name}: too many arguments or accesses")

    def __call__(self, blocks, threads, *arguments, seed=0):
        """Run a grid: blocks, and the threads of each between barriers, in an order of ``seed``."""
        values, arrays = _flattened(self.signature, arguments)
        state = STATE[0]
        STATE["fault"], STATE["threads"], STATE["blocks"] = 0, threads, blocks
        self._lay_out(arrays)
        STATE["launch_stamp"] = state["stamp"] + 1
        order = np.random.default_rng(seed)
        sampled = SAMPLED if self._log and blocks > MOST_LOGGED else blocks
        for block in order.permutation(blocks)[:sampled]:
            STATE["block"], STATE["block_stamp"] = block, state["stamp"] + 1
            for array in self._shared.values():
                array.fill(absent(array.dtype))
            _scheduler()(self._entry, values.ctypes.data, threads, order.integers(1 << 31), STATE[0])
            if state["fault"]:
                raise Fault(self._told(state))
            if self._log:
                self._log(self, SHADOW[: state["logged"]], blocks / sampled)
                STATE["logged"] = 0
        self._visits += SITES["visits"][: self._visits.size]

    def never_reached(self) -> list:
        """The lines with an access of memory that no launch has come to."""
        sites = zip(self.sites, self._visits, strict=True)
        return sorted({site.line for site, visits in sites if site.array is not None and not visits})

    def _lay_out(self, arrays):
        """Tell :func:`_touch` of the arrays of a launch."""
        for site, told in enumerate(self.sites):
            if told.array is not None:
                SITES[site] = self._regions[told.array], told.size, told.alignment, told.kind, 0
        shadow = 0
        regions = [(self._code.arguments[slot][1], array, False) for slot, array in arrays.items()]
        regions += [(name, array, True) for name, array in self._shared.items()]
        for name, array, shared in regions:
            low, high = np.lib.array_utils.byte_bounds(array) if array.size else (array.ctypes.data,) * 2
            elements = (high - low) // array.itemsize
            # What is too large for it is read, and its bounds are watched.
            watched = shadow + elements <= MOST_SHADOW
            REGIONS[self._regions[name]] = low, high - low, array.itemsize, shadow if watched else -1, shared
            shadow += elements if watched else 0
        for name, (element, count) in self._code.arrays.items():
            if name.startswith("%"):
                REGIONS[self._regions[name]] = 0, count * _SIZES[element], _SIZES[element], -1, False

    def _told(self, state) -> str:
        sites, thread, other = self.sites, state["anywhere"], state["other"]
        where = f"{self.name}, block {state['block']}"
        if state["fault"] == BARRIER:
            lines = [sites[k].line if k >= 0 else "its end" for k in (state["site"], state["region"])]
            return (
                f"{where}: thread {thread} is at the barrier at {lines[0]}, and thread {other} at {lines[1]}"
            )
        site = sites[state["site"]]
        index, size = divmod(state["offset"], _SIZES[site.element])[0], REGIONS[state["region"]]["extent"]
        what = f"{where}: thread {thread} {KINDS[site.kind]} element {index} of {site.array.strip('@%')}, "
        what += f"which has {size // _SIZES[site.element]}, at {site.line}"
        if state["fault"] == OUTSIDE:
            return what + ": out of the array"
        if state["fault"] == MISALIGNED:
            return what + f": not aligned to {site.alignment} bytes"
        of = (
            "a thread of another block"
            if other == OTHERS
            else "several"
            if other == SEVERAL
            else f"thread {other}"
        )
        return what + f": a race with {of}"


def absent(dtype):
    """What memory of a dtype holds before anything is written to it."""
    return np.nan if dtype.kind == "f" else np.iinfo(dtype).max // 2


def _flattened(signature, arguments):
    """The arguments of a launch as the 64-bit slots of a kernel, and which of them begin arrays."""
    slots, arrays = [], {}

    def add(kind, value):
        if isinstance(kind, types.Array):
            arrays[len(slots) + 4] = np.asarray(value)
            slots.extend([0, 0, value.size, value.itemsize, value.ctypes.data, *value.shape, *value.strides])
        elif isinstance(kind, types.BaseTuple):
            for each, part in zip(kind, value, strict=True):
                add(each, part)
        elif kind == types.float32:
            slots.append(int(np.float32(value).view(np.uint32)))
        elif kind == types.float64:
            slots.append(int(np.float64(value).view(np.int64)))
        elif isinstance(kind, types.Integer | types.Boolean):
            slots.append(int(value))
        else:
            raise NotImplementedError(f"gpu_host: an argument of type {kind}")

    for kind, value in zip(signature, arguments, strict=True):
        add(kind, value)
    return np.array(slots, np.int64), arrays


# -- the device that roiops sees ------------------------------------------------------------------------


class DeviceArray(np.ndarray):
    """Memory of the device, which is the host's, with what CuPy's arrays have."""

    device = SimpleNamespace(id=0)

    @property
    def __cuda_array_interface__(self):
        return {**self.__array_interface__, "version": 3}

    def get(self):
        return np.array(self)

    def set(self, source):
        np.copyto(self, source)


class _Module:
    """As much of CuPy as the runtime asks for."""

    cuda = SimpleNamespace(
        get_current_stream=lambda: SimpleNamespace(ptr=0),
        ExternalStream=contextlib.nullcontext,
        Stream=SimpleNamespace(null=contextlib.nullcontext()),
    )

    @staticmethod
    def empty(shape, dtype):
        array = np.empty(shape, dtype).view(DeviceArray)
        array.fill(absent(array.dtype) if array.dtype.kind in "fiu" else 0)
        return array

    @staticmethod
    def zeros(shape, dtype):
        return np.zeros(shape, dtype).view(DeviceArray)

    @staticmethod
    def asarray(source):
        if isinstance(source, np.ndarray):
            return np.array(source, copy=True, order="C").view(DeviceArray)
        return _Module.over(source.__cuda_array_interface__, source)

    @staticmethod
    def over(interface, owner):
        holder = SimpleNamespace(__array_interface__={**interface, "version": 3}, owner=owner)
        return np.asarray(holder).view(DeviceArray)


def _as_the_backend_takes(argument):
    """NumPy's arrays, also in a named tuple; bfloat16 as its bits."""
    if hasattr(argument, "_fields"):
        return argument._make(map(_as_the_backend_takes, argument))
    if not isinstance(argument, np.ndarray):
        return argument
    array = argument.view(np.ndarray)
    return array.view(np.uint16) if array.dtype == BFLOAT16 else array


class Device:
    """What runs the launches of roiops. ``seed`` changes the order of blocks and threads.

    ``streams`` are the addresses of those that something was launched on; ``log`` is that of the kernels.
    While ``recorded`` is a list, launches are added to it, and not run.
    """

    def __init__(self, log=None):
        self.seed, self.kernels, self.streams, self.log, self.recorded = 0, {}, set(), log, None

    def install(self):
        """Have roiops take this for the machine's GPU 0."""
        from roiops.kernels.cuda import runtime

        runtime.on = lambda device_id: contextlib.nullcontext()
        runtime._cupy = lambda: _Module
        runtime._count = lambda: 1
        runtime._argument = lambda value: value
        runtime._core_launch = lambda: None
        runtime._over = _Module.over
        runtime._configured = self.configured
        runtime.synchronize = lambda: None
        return self

    def configured(self, kernel, blocks, threads, stream):
        """A kernel as it is launched."""
        self.streams.add(stream)
        if self.recorded is None:
            return functools.partial(self.launch, kernel, blocks, threads)
        return lambda *arguments: self.recorded.append(
            functools.partial(self.launch, kernel, blocks, threads, *arguments)
        )

    def launch(self, kernel, blocks, threads, *arguments):
        arguments = [_as_the_backend_takes(each) for each in arguments]
        signature = tuple(map(numba.typeof, arguments))
        if (kernel, signature) not in self.kernels:
            self.kernels[kernel, signature] = HostKernel(kernel, signature, log=self.log)
        self.seed += 1
        self.kernels[kernel, signature](blocks, threads, *arguments, seed=self.seed)
