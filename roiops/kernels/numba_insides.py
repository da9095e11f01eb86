"""What is asked of numba's insides, all of it; numba may change them in any release.

Seven things rest on them. Where any of them is not there, all seven take a plain form that needs nothing but
``numba.njit``:

- a disk cache that notices changes in what a kernel calls into, and outlives damaged files; the plain one is
  numba's own, which looks at the kernel's file alone;
- kernels read back from that cache without what only compiling needs; the plain form gets numba ready to
  compile first, and reads the kernel's bitcode beside its machine code;
- functions that are compiled as parts of kernels only; plain ones are compiled by themselves as well, which
  takes longer and computes the same;
- functions that kernels call by their address, compiled once for all of them; plain ones are compiled into
  each kernel;
- kernels whose loop is divided among threads, compiled once for one thread and for several, and calls of
  them that are kept with their arguments; plain ones are run by threads of Python, which start more slowly;
- calls of a compiled function that do not look at the types of the arguments again; plain ones do;
- the number of threads, asked for without starting them first; the plain form is ``numba.get_num_threads``.

That is decided here, once, by what is there and not by numba's version; ``INSIDES`` says how.
"""

import base64
import contextlib
import ctypes
import functools
import gc
import hashlib
import importlib.util
import os
import pickle
import re
import sys
import threading
import weakref
from types import SimpleNamespace

import llvmlite.binding as llvm
import llvmlite.ir
import numba
import numpy as np

from . import claims
from .checked import CHECKED
from .patience import compiling

try:
    from numba.core import callconv, cgutils, types
    from numba.core.base import BaseContext
    from numba.core.caching import CompileResultCacheImpl, FunctionCache
    from numba.core.callconv import CPUCallConv
    from numba.core.codegen import CPUCodegen, JITCodeLibrary
    from numba.core.compiler import Compiler, CompileResult
    from numba.core.options import DefaultOptions
    from numba.core.registry import CPUDispatcher
    from numba.core.runtime import _nrt_python as runtime
    from numba.core.types import unliteral
    from numba.extending import intrinsic
except ImportError:
    BaseContext = CPUCallConv = JITCodeLibrary = Compiler = CPUDispatcher = DefaultOptions = object
    CompileResult = CompileResultCacheImpl = CPUCodegen = FunctionCache = runtime = object

_NEEDED = (
    (FunctionCache, "load_overload _load_overload save_overload disable enable"),
    (JITCodeLibrary, "_optimize_functions _optimize_final_module _finalize_final_module _unserialize"),
    (JITCodeLibrary, "_get_module_for_linking get_pointer_to_function"),
    (CompileResult, "_rebuild _find_referenced_environments"),
    (CompileResultCacheImpl, "reduce rebuild"),
    (runtime, "c_helpers"),
    (Compiler, "compile_extra define_pipelines"),
    (CPUDispatcher, "get_call_template add_overload compile targetdescr typeof_pyval"),
    (CPUCallConv, "return_user_exc return_status_propagate call_function get_function_type"),
    (BaseContext, "call_internal call_internal_no_propagate add_linking_libs make_tuple"),
    (DefaultOptions, "_nrt"),
)
#: Whether all is there that is asked of numba's insides.
INSIDES = all(hasattr(each, name) for each, names in _NEEDED for name in names.split())

_IMPORT = re.compile(rb"^from (\S+) import (\([^)]*|.*)", re.MULTILINE)


@functools.cache
def _source(name: str) -> bytes:
    """The source of module ``name``."""
    with open(sys.modules[name].__file__, "rb") as source:
        return source.read()


@functools.cache
def _imported_by(name: str) -> list[str]:
    """What module ``name`` imports, and each name that it takes from there, as if all were modules."""
    package, found = sys.modules[name].__package__, []
    for base, names in _IMPORT.findall(_source(name)):
        whole = importlib.util.resolve_name(base.decode(), package)
        found += [whole, *(f"{whole}.{each}" for each in re.findall(r"\w+", names.decode()))]
    return found


@functools.cache
def _used_by(name: str) -> tuple[str, ...]:
    """The kernel modules that module ``name`` imports, directly or not, and itself if it is one."""
    found, waiting = set(), [name]
    while waiting:
        each = waiting.pop()
        if each in found or getattr(sys.modules.get(each), "__file__", None) is None:
            continue
        if each.startswith("roiops.kernels."):
            found.add(each)
        if each == name or each in found:
            waiting += _imported_by(each)
    return tuple(sorted(found))


def _modules_of(function) -> frozenset[str]:
    """The modules of a function, and of those that it holds where one ``def`` makes several of others."""
    found, waiting = {}, [function]
    while waiting:
        each = waiting.pop()
        each = getattr(each, "made_of", getattr(each, "py_func", each))
        module = getattr(each, "__module__", None)
        if id(each) not in found and str(module).startswith("roiops.kernels."):
            found[id(each)] = module
            waiting += [cell.cell_contents for cell in getattr(each, "__closure__", None) or ()]
    return frozenset(found.values()) | {function.__module__}


@functools.cache
def _digest(modules: frozenset[str]) -> bytes:
    digest = hashlib.sha256()
    for each in sorted(set().union(*map(_used_by, modules))):
        digest.update(_source(each))
    return digest.digest()


def _stamp(function) -> bytes:
    """A digest of the sources of the kernel modules that a function uses."""
    return _digest(_modules_of(function))


class _Cache(FunctionCache):
    """numba's cache, but a full disk or a damaged file means to compile, not to fail.

    numba takes what it has compiled for current as long as the function's own file is the same. What the
    function calls is compiled into it too, so that the files of that count here as well.
    """

    def watch(self, function):
        """Let the cache be current only while the kernel modules that ``function`` uses are the same."""
        self._cache_file._source_stamp = (self._cache_file._source_stamp, _stamp(function))

    def _index_key(self, *args):
        # Checked kernels are files of their own, as are those of another width.
        return *super()._index_key(*args), CHECKED, os.environ.get("ROIOPS_LANES")

    def _read(self, signature, *args):
        try:
            with _light(args[0].codegen()):
                found = self._load_overload(signature, *args)
            # Two processes that save at once may give one file's name to two signatures.
            return found if found is None or found.signature.args == tuple(signature) else None
        except Exception:  # reading back what was cut short can fail in any way
            return None

    def has(self, signature) -> bool:
        """Whether a kernel is on disk."""
        try:
            key = self._index_key(signature, CPUDispatcher.targetdescr.target_context.codegen())
            return self._cache_file.load(key) is not None
        except Exception:  # as in reading
            return False

    def _claim(self):
        return self._cache_file._cache_path, self._cache_file._index_path

    def load_overload(self, signature, *args):
        found = self._read(signature, *args)
        if found is not None or not self._enabled:
            return found
        with compiling():  # somebody else compiles it, and the user waits
            waited = claims.take(*self._claim())
        if waited:
            found = self._read(signature, *args)
            if found is not None:
                claims.give_back(*self._claim())
        return found

    def save_overload(self, signature, result):
        if getattr(result.library, "is_saved", False):
            return
        result.library.is_saved = True
        try:
            super().save_overload(signature, result)
        except Exception:
            self.disable()
        finally:
            claims.give_back(*self._claim())


def _tells_numbers(library) -> bool:
    """Whether a kernel raises an error with numbers that are known when it runs."""
    return any("__excinfo_unwrap_args" in each.name for each in library._final_module.functions)


class _Contents(CompileResultCacheImpl):
    """What a cache file holds of a kernel: no list of the parts that the kernel was made of."""

    def reduce(self, result):
        # An environment has the Python objects that a part uses. Most have none, and hundreds take time.
        *contents, environments = super().reduce(result)
        needs_all = _tells_numbers(result.library)
        environments = tuple(each for each in environments if each.consts or needs_all)
        calls = [(each.function.name, each.kinds) for each in _addresses_in(result.library)]
        return (*contents, environments, calls)

    def rebuild(self, context, payload):
        *contents, calls = payload
        # Machine code that is read finds the places of these addresses by name.
        addresses = [_separate[name].address(kinds) for name, kinds in calls]
        result = super().rebuild(context, contents)
        result.library.addresses = addresses
        return result


class _Loaded(JITCodeLibrary):
    """The machine code of a kernel from the cache. Its bitcode is read if another kernel calls into it."""

    @classmethod
    def _unserialize(cls, codegen, state):
        name, kind, (machine_code, bitcode) = state
        if kind != "object":
            raise ValueError(f"a cache file of kind {kind}")
        library = cls(codegen, name)
        library._bitcode = bitcode
        library.enable_object_caching()
        library._set_compiled_object(machine_code)
        library._finalize_final_module()
        return library

    def get_pointer_to_function(self, name):
        return self._codegen._engine.get_function_address(name)

    def _get_module_for_linking(self):
        if self._shared_module is None:
            self._shared_module = llvm.parse_bitcode(self._bitcode)
            self._codegen._engine._load_defined_symbols(self._shared_module)
        return self._shared_module


@functools.cache
def _add_symbols_of_runtime() -> None:
    """Tell LLVM where numba's runtime is, as numba does when it gets ready to compile."""
    for name, address in runtime.c_helpers.items():
        llvm.add_symbol(name if name.startswith("_") else f"NRT_{name}", address)


@contextlib.contextmanager
def _light(codegen):
    """Within the ``with`` statement, what is read from the cache is :class:`_Loaded`.

    numba's own way fills the tables of all that it can compile, imports what is in them and parses the
    kernel's bitcode: half a second for a network. A kernel that runs needs none of it. numba's lock of the
    compiler is held.
    """
    _add_symbols_of_runtime()
    codegen.unserialize_library = functools.partial(_Loaded._unserialize, codegen)
    try:
        yield
    finally:
        del codegen.unserialize_library


def remember_source(function) -> None:
    """Look at the source of a function that is compiled later; what is kept of it is of the source of now."""
    if INSIDES:
        with contextlib.suppress(OSError, ImportError, AttributeError):
            _stamp(function)


def as_kernel(compiled, function):
    """``compiled``, which finds what it calls by an address from now on.

    Its disk cache, if it has one, survives damage and notices changes in what it calls into.
    """
    if INSIDES and type(compiled) is CPUDispatcher:
        compiled.__class__ = _Dispatcher
    if INSIDES and type(getattr(compiled, "_cache", None)) is FunctionCache:
        compiled._cache.__class__, compiled._cache._impl.__class__ = _Cache, _Contents
        with contextlib.suppress(OSError, ImportError, AttributeError):  # no source, or another numba
            compiled._cache.watch(function)
    return compiled


def cache_folders_at_home(folder: str) -> list[str]:
    """Where numba keeps what it compiled of the sources below ``folder``, if it may not write beside them."""
    try:
        from numba.core.caching import _CacheLocator
        from numba.misc.appdirs import AppDirs

        home = AppDirs(appname="numba", appauthor=False).user_cache_dir
        return [
            os.path.join(home, _CacheLocator.get_suitable_cache_subpath(os.path.join(root, "any.py")))
            for root, _, names in os.walk(folder)
            if any(name.endswith(".py") for name in names)
        ]
    except (ImportError, AttributeError):  # another numba
        return []


#: Whether LLVM's passes can be named one by one, and numba takes them so: numba 0.62 or later.
_HAS_PASSES = hasattr(CPUCodegen, "_pass_builder") and hasattr(
    getattr(llvm, "FunctionPassManager", None), "add_sroa_pass"
)


class _KernelLibrary(JITCodeLibrary):
    """The code of a kernel.

    numba optimises each function by itself first, as far as LLVM can, and then the whole. That what is on the
    stack comes into registers is enough at first, for a fifth of the time.
    """

    def _optimize_functions(self, module):
        if not _HAS_PASSES:
            super()._optimize_functions(module)
            return
        module.data_layout = self._codegen._data_layout
        passes = llvm.create_new_function_pass_manager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        builder = self._codegen._pass_builder()
        for function in module.functions:
            if not function.is_declaration:
                passes.run(function, builder)


class _PartLibrary(_KernelLibrary):
    """The code of a part of a kernel; it is optimised and turned into machine code where it is used."""

    def _optimize_final_module(self):
        pass

    def _finalize_final_module(self):
        self._finalized = True


#: Passes of numba's compiler that kernels have no use for: they fuse expressions on arrays, inline functions
#: that are defined in functions, and overloads that ask for it, and so on. They take a tenth of the time.
_NEEDLESS = {
    "NopythonRewrites", "InlineClosureLikes", "InlineOverloads", "InlineInlinables", "WithLifting",
    "MakeFunctionToJitFunction", "FindLiterallyCalls", "LiteralUnroll", "LiteralPropagationSubPipelinePass",
    "AnnotateTypes", "DumpParforDiagnostics",
}  # fmt: skip


class _LeanCompiler(Compiler):
    def define_pipelines(self):
        managers = super().define_pipelines()
        for manager in managers:
            manager.passes = [each for each in manager.passes if each[0].__name__ not in _NEEDLESS]
        return managers


class _InnerCompiler(_LeanCompiler):
    def compile_extra(self, func):
        state = self.state
        state.library = _PartLibrary(state.targetctx.codegen(), func.__qualname__)
        state.flags.no_compile = state.flags.no_cpython_wrapper = state.flags.no_cfunc_wrapper = True
        result = super().compile_extra(func)
        name = object()  # callers look the code up by the function's entry, which this one does not have
        state.targetctx.insert_user_function(name, result.fndesc, [result.library])
        return result._replace(entry_point=name)


@contextlib.contextmanager
def _remembered(typing):
    """Within the ``with`` statement, numba's lock of the compiler being held, some things are found once.

    They are the type of an operator, or of ``bool`` as in each ``if``, for the same types of numbers and
    pointers, for which numba tries one template after the other, and the size of a type, for which LLVM
    parses a module; both again in each part. And it compiles ``min`` and ``max`` anew for each literal number
    that they are called with.
    """
    target = CPUDispatcher.targetdescr.target_context
    if "resolve_function_type" in vars(typing):  # a kernel is compiled for another one
        yield
        return
    find, known, simple = typing.resolve_function_type, {}, (types.Number, types.Boolean, types.CPointer)

    def resolve(function, args, kws):
        kind = getattr(function, "typing_key", None)
        if kind in (min, max):
            return find(function, [*map(unliteral, args)], kws)
        plain = getattr(kind, "__module__", None) in ("_operator", "builtins") and not kws
        if not plain or not all(isinstance(a, simple) for a in args):
            return find(function, args, kws)
        key = function, tuple(args)
        if key not in known:
            known[key] = find(function, args, kws)
        return known[key]

    typing.resolve_function_type = resolve
    target.get_abi_sizeof = functools.cache(target.get_abi_sizeof)
    try:
        yield
    finally:
        del typing.resolve_function_type, target.get_abi_sizeof


class _KernelCompiler(_LeanCompiler):
    def compile_extra(self, func):
        self.state.flags.no_cfunc_wrapper = True  # nothing calls a kernel from C
        self.state.library = _KernelLibrary(self.state.targetctx.codegen(), func.__qualname__)
        self.state.library.enable_object_caching()
        # numba's lock of the compiler is held. What it makes lives until it is done: looking for garbage
        # among it takes a sixth of the time, and finds little.
        collects = gc.isenabled()
        gc.disable()
        try:
            with compiling(), _remembered(self.state.typingctx):
                result = super().compile_extra(func)
            if _tells_numbers(result.library):  # numba makes them objects by the environment of each part
                for each in result._find_referenced_environments():
                    result.library.codegen.set_env(each.env_name, each)
            return result
        except BaseException:  # Ctrl-C too
            claims.give_back_all()
            raise
        finally:
            if collects:
                gc.enable()


#: The options of ``numba.njit`` that kernels are compiled with.
KERNEL = {"pipeline_class": _KernelCompiler} if INSIDES else {}
#: What is added to them for a kernel that makes no arrays, so that the users of arrays are not counted.
#: A checked kernel makes errors, which are counted.
UNCOUNTED = {"_nrt": False} if INSIDES and not CHECKED else {}
#: What parts of kernels are compiled with, if nothing else is said: otherwise a part that returns an array
#: would count or not as the first kernel does that calls it, and the others would free the array too early.
_COUNTED = {"_nrt": True}


class _InnerDispatcher(CPUDispatcher):
    def compile(self, signature):
        # A kernel is being compiled: numba's lock is held, and timers of all parts would tell each other.
        arguments = tuple(signature)
        if arguments not in self.overloads:
            with self._compiling_counter:
                self.add_overload(self._compiler.compile(arguments, None))
        return self.overloads[arguments].entry_point

    def get_call_template(self, args, kws):
        # Once for a type, not again for each literal number that it is called with.
        return super().get_call_template([*map(unliteral, args)], kws)

    def add_overload(self, cres):
        self.overloads[tuple(cres.signature.args)] = cres


class Inner:
    """What :func:`inner` makes. A call from Python compiles an ordinary function for that.

    numba's own form of it is made when a kernel is compiled that has it as a part: kernels that are read from
    the cache need none, and making one for each takes longer than reading them.
    """

    def __init__(self, function, make_entry, options):
        functools.update_wrapper(self, function)
        self.py_func, self._make_entry, self._options = function, make_entry, options

    @functools.cached_property
    def dispatcher(self):
        compiled = numba.njit(pipeline_class=_InnerCompiler, **{**_COUNTED, **self._options})(self.py_func)
        compiled.__class__ = _InnerDispatcher
        return compiled

    @property
    def _numba_type_(self):
        return self.dispatcher._numba_type_

    def __call__(self, *args, **kwargs):
        return self._entry(*args, **kwargs)

    @functools.cached_property
    def _entry(self):
        return self._make_entry(self.py_func)


class _Dispatcher(CPUDispatcher):
    """What compiles a kernel. Whoever gets to see the kernel finds what it calls by an address there, too."""

    def add_overload(self, result):
        addresses = _addresses_in(result.library)
        if addresses:
            # What is called may be another process's turn to compile, which waits for this kernel.
            self._cache.save_overload(result.signature.args, result)
            for each in addresses:
                each.find()
        super().add_overload(result)


class _Address:
    """The address of a function of :func:`separate`, for some types of arguments.

    It is in memory that machine code knows by a name, so that code on disk does without the address itself.
    """

    def __init__(self, function, kinds, returned, name):
        self.function, self.kinds, self.returned, self.name = function, kinds, returned, name
        self._memory = ctypes.c_int64()
        llvm.add_symbol(name, ctypes.addressof(self._memory))

    def find(self) -> None:
        """Have the function compiled, or read from disk."""
        if self._memory.value:
            return
        compiled = self.function.compiled
        compiled.compile(self.kinds)
        found = compiled.overloads[self.kinds]
        if found.signature.return_type != self.returned:
            returned = found.signature.return_type
            raise TypeError(f"{self.function.name} returns {returned}, and said {self.returned}")
        self._memory.value = found.library.get_pointer_to_function(found.fndesc.llvm_func_name)

    def ask_for_help(self) -> None:
        """Let another process compile the function, while this one compiles what calls it."""
        cache = self.function.compiled._cache
        if not self._memory.value and isinstance(cache, _Cache) and not cache.has(self.kinds):
            kinds = base64.b64encode(pickle.dumps(self.kinds)).decode()
            claims.ask_for_help({"function": self.function.name, "kinds": kinds})


class _Separate:
    """What :func:`separate` makes of a function: its addresses, and how it is called."""

    def __init__(self, function, make_entry, returns):
        self.name = f"{function.__module__}.{function.__qualname__}"
        self._function, self._make_entry, self._returns = function, make_entry, returns
        _separate[self.name] = self

    @functools.cached_property
    def compiled(self):
        return self._make_entry(self._function)

    def address(self, kinds) -> _Address:
        returned = self._returns(*kinds)
        told = hashlib.sha256(f"{kinds} {returned}".encode()).hexdigest()
        name = f"{_ADDRESS}{self.name}.{told[:16]}"
        if name not in _addresses:
            _addresses[name] = _Address(self, kinds, returned, name)
        return _addresses[name]

    def call(self):
        """In a compiled function, ``call(arguments)`` calls it with those of a tuple."""

        @intrinsic
        def call(typing, arguments):
            address = self.address(tuple(map(unliteral, arguments.types)))
            address.ask_for_help()

            def generate(context, builder, signature, values):
                returned, kinds, convention = address.returned, address.kinds, context.call_conv
                given = cgutils.unpack_tuple(builder, values[0])
                given = [
                    context.cast(builder, *each) for each in zip(given, arguments.types, kinds, strict=True)
                ]
                place = builder.module.globals.get(address.name)
                if place is None:
                    number = llvmlite.ir.IntType(64)
                    place = llvmlite.ir.GlobalVariable(builder.module, number, address.name)
                pointer = convention.get_function_type(returned, kinds).as_pointer()
                function = builder.inttoptr(builder.load(place), pointer)
                status, value = convention.call_function(builder, function, returned, kinds, given)
                with cgutils.if_unlikely(builder, status.is_error):
                    convention.return_status_propagate(builder, status)
                return value

            return address.returned(arguments), generate

        return call


#: What :func:`separate` has made, by module and name.
_separate: dict[str, _Separate] = {}
#: Addresses by their names. LLVM has one of a name, which a reloaded module, or a copy by pickle, shares.
_addresses: dict[str, _Address] = {}
_ADDRESS = "roiops.address."


def _addresses_in(library) -> list[_Address]:
    """What a kernel calls by its address."""
    if isinstance(library, _Loaded):
        return library.addresses
    names = [each.name for each in library._final_module.global_variables]
    return [_addresses[name] for name in names if name.startswith(_ADDRESS)]


def separate_call(function, make_entry, returns):
    """``call(arguments)`` for compiled functions: it calls ``function``, which is compiled by itself.

    ``returns(*kinds)`` is numba's type of what it returns for arguments of these types.
    """
    return _Separate(function, make_entry, returns).call()


def compile_separate(name: str, kinds: str) -> None:
    """Compile what :meth:`_Address.ask_for_help` asked for, whose module has been imported."""
    _separate[name].compiled.compile(pickle.loads(base64.b64decode(kinds)))


def make_inner(function, make_entry, **options):
    """``function``, compiled as a part of those that call it; ``make_entry`` compiles it for other calls."""
    if not INSIDES or numba.config.DISABLE_JIT:
        return make_entry(function)
    return Inner(function, make_entry, options)


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


def launcher_by(run):
    """A launcher that does without threads: ``run(part, parts)`` calls ``part(i)`` for each part of a loop.

    Hold it as long as anybody may use its address, ``ctypes.cast(launcher, ctypes.c_void_p).value``.
    """
    pointer, number = ctypes.c_void_p, ctypes.c_int64
    kind_of_part = ctypes.CFUNCTYPE(None, *[pointer] * 4)

    def launch(function, arrays, _counts, steps, shared, _dimensions, _arrays, parts):
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


#: As a launcher: nothing runs; the call is kept in memory, for :func:`run_kept`.
KEEP = 1


def kept_size(arguments) -> int:
    """How many 64-bit numbers a kept call with these arguments takes at most."""

    def size(value):
        if isinstance(value, tuple):
            return sum(map(size, value))
        return 5 + 2 * getattr(value, "ndim", 0)

    # Before the arguments: the code of a part, how many parts, and where their failures are.
    return 3 + size(arguments)


#: 64-bit numbers of a failure: a part's error code, which is 0 if all went well, and where its exception is.
FAILURE = 2


def launcher_of(body):
    """What calls ``body``, made by :func:`make_inner`, once for each part of its loop.

    In a compiled function, ``launch(launcher, parts, arguments)`` calls ``body((part, parts), *arguments)``
    for each part, on a thread each, and raises the error of the first part that failed. If ``launcher``,
    which is what :func:`threads_launcher` returns, is 0, there is one part, on the calling thread. If it is
    ``KEEP``, ``parts`` is the address of memory to keep the call in, which holds its size in bytes, the
    number of parts, and where there is memory for their failures, all 0.
    """

    @intrinsic
    def launch(typing, launcher, parts, arguments):
        pair = types.UniTuple(types.int64, 2)
        kinds = (pair, *arguments.types)
        body.dispatcher._numba_type_.get_call_type(typing, kinds, {})
        part = body.dispatcher.overloads[kinds]

        def generate(context, builder, signature, values):
            launcher, parts, packed = values
            packed = _borrowed(context, builder, arguments, packed)
            context.add_linking_libs([part.library])

            number = parts.type
            function, shared_type = _part(context, builder, part, pair, packed.type)
            keeps = builder.icmp_unsigned("==", launcher, number(KEEP))
            with builder.if_else(keeps) as (kept, run):
                with kept:
                    _keep(context, builder, function, shared_type, parts, packed)
                with run:
                    alone = builder.icmp_unsigned("==", launcher, number(0))
                    parts = builder.select(alone, number(1), parts)
                    shared = cgutils.alloca_once(builder, shared_type)
                    numbers = builder.alloca(number, size=parts)
                    failures = builder.alloca(number, size=builder.mul(parts, number(FAILURE)))
                    for i, value in enumerate((parts, failures, packed)):
                        builder.store(value, cgutils.gep_inbounds(builder, shared, 0, i))
                    with cgutils.for_range(builder, parts) as loop:
                        builder.store(loop.index, builder.gep(numbers, [loop.index]))
                        builder.store(number(0), _failure(builder, failures, loop.index)[0])
                    _run_parts(context, builder, launcher, function, parts, numbers, shared, failures)
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
    builder.store(packed, cgutils.gep_inbounds(builder, shared, 0, 2))


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
        shared, to_failures = (builder.gep(memory, [number(i)]) for i in (1, 2))
        failures = builder.inttoptr(builder.load(to_failures), pointer)
        parts = builder.load(shared)
        _run_parts(context, builder, launcher, function, parts, numbers, shared, failures)
        return context.get_dummy_value()

    return types.void(types.int64, types.int64, types.int64), generate


run_kept = intrinsic(_run_kept) if INSIDES else None


def _failure(builder, failures, part):
    """Where a part's error code is, and where the address of its exception."""
    at = builder.mul(part, part.type(FAILURE))
    return builder.gep(failures, [at]), builder.gep(failures, [builder.add(at, at.type(1))])


def _raise_first(context, builder, parts, failures):
    """Raise what the first of the parts raised that failed, and forget all failures."""
    with cgutils.for_range(builder, parts) as loop:
        to_code, to_exception = _failure(builder, failures, loop.index)
        code = builder.load(to_code)
        with builder.if_then(builder.icmp_unsigned("!=", code, code.type(0)), likely=False):
            exception = builder.load(to_exception)
            with cgutils.for_range(builder, parts) as others:
                builder.store(code.type(0), _failure(builder, failures, others.index)[0])
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


def _part(context, builder, part, pair, packed_type):
    """What a thread calls to have ``part`` called for its parts, and the type of what all threads share."""
    number = llvmlite.ir.IntType(64)
    shared_type = llvmlite.ir.LiteralStructType([number, number.as_pointer(), packed_type])
    function = llvmlite.ir.Function(
        builder.module,
        _kind_of_part(number),
        builder.module.get_unique_name(f"{part.fndesc.mangled_name}.part"),
    )
    function.linkage = "internal"
    inside = llvmlite.ir.IRBuilder(function.append_basic_block("entry"))
    arrays, counts, _, shared = function.args
    shared = inside.bitcast(shared, shared_type.as_pointer())
    count, failures, arguments = (inside.load(cgutils.gep_inbounds(inside, shared, 0, i)) for i in range(3))
    numbers = inside.bitcast(inside.load(arrays), number.as_pointer())
    with cgutils.for_range(inside, inside.load(counts)) as loop:
        index = inside.load(inside.gep(numbers, [loop.index]))
        values = [context.make_tuple(inside, pair, (index, count)), *cgutils.unpack_tuple(inside, arguments)]
        status, _ = context.call_internal_no_propagate(inside, part.fndesc, part.signature, values)
        with inside.if_then(status.is_error, likely=False):
            to_code, to_exception = _failure(inside, failures, index)
            inside.store(inside.sext(status.code, number), to_code)
            inside.store(inside.ptrtoint(status.excinfoptr, number), to_exception)
    inside.ret_void()
    return function, shared_type


def _run_parts(context, builder, launcher, function, parts, numbers, shared, failures):
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
            # Arrays, counts, steps, and what all share; dimensions of an item; how many arrays, and threads.
            target = llvmlite.ir.FunctionType(llvmlite.ir.VoidType(), [pointer] * 5 + [number] * 3)
            threads = builder.inttoptr(launcher, target.as_pointer())
            builder.call(threads, [*given, number(0), number(1), parts])
    _raise_first(context, builder, parts, failures)
