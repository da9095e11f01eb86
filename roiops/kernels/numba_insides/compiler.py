"""How kernels and their parts are compiled: what of numba's compiler they need."""

import contextlib
import functools
import gc

import llvmlite.binding as llvm
import numba

from .. import claims
from ..checked import CHECKED
from ..patience import compiling
from .cache import Library, tells_numbers
from .found import INSIDES, Compiler, CPUCodegen, CPUDispatcher, types, unliteral

#: Whether LLVM's passes can be named one by one, and numba takes them so: numba 0.62 or later.
_HAS_PASSES = hasattr(CPUCodegen, "_pass_builder") and hasattr(
    getattr(llvm, "FunctionPassManager", None), "add_sroa_pass"
)


#: Where a processor has vectors of 512 bits, LLVM makes some of 256 of loops unless it is told otherwise.
_WIDE = '"prefer-vector-width"="512"'


class _KernelLibrary(Library):
    """The code of a kernel.

    numba optimises each function by itself first, as far as LLVM can, and then the whole. That what is on the
    stack comes into registers is enough at first, for a fifth of the time.
    """

    def add_ir_module(self, ir_module):
        for function in ir_module.functions:
            if isinstance(function.attributes, set):
                set.add(function.attributes, _WIDE)  # their own `add` takes none that has a value
        super().add_ir_module(ir_module)

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
            if tells_numbers(result.library):  # numba makes them objects by the environment of each part
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


def make_inner(function, make_entry, **options):
    """``function``, compiled as a part of those that call it; ``make_entry`` compiles it for other calls."""
    if not INSIDES or numba.config.DISABLE_JIT:
        return make_entry(function)
    return Inner(function, make_entry, options)
