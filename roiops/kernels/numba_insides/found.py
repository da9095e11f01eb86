"""The names that are taken from numba's insides, and whether all of them are there."""

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
    callconv = cgutils = types = unliteral = intrinsic = None
    BaseContext = CPUCallConv = JITCodeLibrary = Compiler = CPUDispatcher = DefaultOptions = object
    CompileResult = CompileResultCacheImpl = CPUCodegen = FunctionCache = runtime = object

_NEEDED = (
    (FunctionCache, "load_overload _load_overload save_overload disable enable"),
    (
        JITCodeLibrary,
        "_optimize_functions _optimize_final_module _finalize_final_module _finalize_specific _unserialize",
    ),
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
