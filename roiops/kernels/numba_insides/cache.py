"""The disk cache of kernels: when what it holds is current, and how it is read."""

import contextlib
import functools
import hashlib
import importlib.util
import os
import re
import signal
import sys
import threading

import llvmlite.binding as llvm

from .. import claims
from ..checked import CHECKED
from ..patience import compiling
from .addresses import Dispatcher, address_of, addresses_in
from .found import INSIDES, CompileResultCacheImpl, CPUDispatcher, FunctionCache, JITCodeLibrary, runtime

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


def tells_numbers(library) -> bool:
    """Whether a kernel raises an error with numbers that are known when it runs."""
    return any("__excinfo_unwrap_args" in each.name for each in library._final_module.functions)


class _Contents(CompileResultCacheImpl):
    """What a cache file holds of a kernel: no list of the parts that the kernel was made of."""

    def reduce(self, result):
        # An environment has the Python objects that a part uses. Most have none, and hundreds take time.
        *contents, environments = super().reduce(result)
        needs_all = tells_numbers(result.library)
        environments = tuple(each for each in environments if each.consts or needs_all)
        calls = [(each.function.name, each.kinds) for each in addresses_in(result.library)]
        return (*contents, environments, calls)

    def rebuild(self, context, payload):
        *contents, calls = payload
        # Machine code that is read finds the places of these addresses by name.
        addresses = [address_of(name, kinds) for name, kinds in calls]
        result = super().rebuild(context, contents)
        result.library.addresses = addresses
        return result


@contextlib.contextmanager
def _interrupted_afterwards():
    """Ctrl-C within the ``with`` statement is heard at its end."""
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(usual):
        yield
        return
    heard = []
    signal.signal(signal.SIGINT, lambda *told: heard.append(told))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, usual)
        if heard:
            usual(*heard[0])


class Library(JITCodeLibrary):
    """Code of ours."""

    def _finalize_specific(self):
        with _interrupted_afterwards():  # LLVM calls Python here, and what is raised there is lost
            super()._finalize_specific()


class _Loaded(Library):
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
        compiled.__class__ = Dispatcher
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
