"""How kernels are compiled: once for any number of threads, their cache files, threads after a fork."""

import ctypes
import gc
import os
import signal
import subprocess
import sys
import textwrap

import numba
import numpy as np
import pytest

from roiops.kernels import jit
from roiops.kernels.jit import Calls, Direct, inner, njit, num_threads, parallel, separate
from roiops.kernels.numba_insides import addresses, cache, compiler, found, launch
from roiops.kernels.shares import within


@njit
def plain(x):
    return x + 1


@parallel
def add_place(share, values, out):
    for i in within(share, values.size):
        out[i] = values[i] + i


def test_a_divided_loop_is_compiled_once_for_any_number_of_threads():
    values, call = np.arange(7.0), Calls()
    for threads in 1, 2:
        for run_it in add_place.by(threads), lambda *args, n=threads: call(add_place, n, *args):
            out = np.zeros(7)
            run_it(values, out)
            assert out.tolist() == [0, 2, 4, 6, 8, 10, 12]
    if not numba.config.DISABLE_JIT:
        assert len(add_place.compiled.overloads) == 1


@pytest.mark.skipif(not jit._INSIDES or sys.platform == "win32", reason="numba compiles as ever")
def test_an_interrupt_while_llvm_calls_python_is_heard(monkeypatch):
    """What is raised in a function that C calls is printed and lost."""
    monkeypatch.setenv("ROIOPS_CACHE", "0")
    compiled, finalize = [], found.JITCodeLibrary._finalize_specific
    interrupt = ctypes.CFUNCTYPE(None)(lambda: signal.raise_signal(signal.SIGINT))
    usual = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it

    def interrupted(library):
        if isinstance(library, cache.Library):  # not what numba compiles of its own
            interrupt()
            compiled.append(library)
        finalize(library)

    monkeypatch.setattr(found.JITCodeLibrary, "_finalize_specific", interrupted)
    try:
        with pytest.raises(KeyboardInterrupt):
            njit(lambda x: x + 12345)(1)
    finally:
        signal.signal(signal.SIGINT, usual)
    assert len(compiled) == 1
    monkeypatch.undo()
    assert njit(lambda x: x + 12346)(1) == 12347


@pytest.mark.parametrize(("threads", "started"), [(1, True), (2, True), (2, False)])
def test_a_repeated_call_runs_its_kernels_one_after_the_other(threads, started, monkeypatch):
    """It holds their arguments, and sees what has become of the arrays meanwhile."""
    num_threads()  # starts the threads, where there is more than one processor
    if not started:
        monkeypatch.setattr(jit, "_launcher", 0)
    values, middle, out = np.arange(7.0), np.zeros(7), np.zeros(7)
    copies = np.zeros((4, 6))
    sources = np.ones((4, 6)), (np.full((4, 6), 2.0),)
    kernels = [
        (add_place, threads, values, middle),
        (add_place, 1, middle, out),
        (copy_by_views, threads, sources, copies),
    ]
    call = Calls().repeated(kernels)
    del sources, kernels, middle
    for first in (0, 5):
        values[:], out[:], copies[:] = first, 0, 0
        call()
        assert out.tolist() == [first + 2 * i for i in range(7)]
        np.testing.assert_array_equal(copies, np.where(np.arange(4)[:, None] % 2, np.ones(6), 2))


class Odd(Exception):
    """An error that no library knows."""


@parallel
def fail(share, how, where, out):
    for i in within(share, out.size):
        out[i] = i
        if i >= where:
            if how == 0:
                raise IndexError("a row that is not there")
            if how == 1:
                raise ValueError("row", i)
            if how == 2:
                out[i] = np.ones(1 << 55)[-1]
            if how == 3:
                raise Odd("neither", i, "nor", 0.5)


FAILURES = [
    (IndexError, r"^a row that is not there$", lambda i: ("a row that is not there",)),
    (ValueError, r"^\('row', \d+\)$", lambda i: ("row", i)),
    (MemoryError, r"^Allocation failed", None),
    (Odd, "neither", lambda i: ("neither", i, "nor", 0.5)),
]


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="threads are Python's")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("how", range(4))
def test_an_error_of_a_shared_kernel_comes_out_as_itself(how, threads):
    """The first of several parts is heard, as on one thread; whatever failed works when it is called again."""
    num_threads()  # starts the threads
    kind, words, arguments = FAILURES[how]
    out = np.zeros(100)
    for first in (3, 60, 99):
        for call in (
            lambda first=first: fail.by(threads)(how, first, out),
            Calls().repeated([(fail, threads, 9, 0, out), (fail, threads, how, first, out)]),
        ):
            for _ in range(2):
                with pytest.raises(kind, match=words) as caught:
                    call()
                assert arguments is None or caught.value.args == arguments(first)
            out[:] = 0
            Calls().repeated([(fail, threads, how, 100, out)])()
            assert out.tolist() == [*range(100)]


@parallel
def copy_by_views(share, sources, out):
    """Each part takes views of arrays that lie in tuples, and keeps one until its end."""
    (first, (second,)), kept = sources, out
    for i in within(share, out.shape[0]):
        kept = first[i] if i % 2 else second[i]
        for j in range(kept.size):
            out[i, j] = kept[j]


@pytest.mark.parametrize("threads", [1, 2])
def test_parts_of_a_kernel_borrow_its_arrays(threads):
    """What they do with them leaves the callers' counts alone; arrays that nobody else holds last long enough."""
    first, second = np.arange(24.0).reshape(4, 6), -np.arange(24.0).reshape(4, 6)
    out = np.zeros((4, 6))
    before = [sys.getrefcount(array) for array in (first, second, out)]
    num_threads()  # starts them
    for _ in range(100):
        copy_by_views.by(threads)((first, (second,)), out)
    assert [sys.getrefcount(array) for array in (first, second, out)] == before
    np.testing.assert_array_equal(out, np.where(np.arange(4)[:, None] % 2, first, second))
    copy_by_views.by(threads)((first + 1, (second.copy(),)), out)
    np.testing.assert_array_equal(out, np.where(np.arange(4)[:, None] % 2, first + 1, second))


@inner
def half(x):
    if x < 0:
        raise ValueError("below zero")
    return x / 2


@inner
def quarter(x):
    return half(half(x))


@numba.njit  # without a cache, which would spare the inner functions
def quarters(values):
    total = values[0] - values[0]
    for x in values:
        total += quarter(x)
    return total


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_an_inner_function_is_compiled_into_its_callers():
    for dtype in (np.float32, np.float64):
        assert quarters(np.array([4, 8], dtype)) == 3
    with pytest.raises(ValueError, match="below zero"):
        quarters(np.array([4.0, -8.0]))
    made = half.dispatcher
    assert len(made.overloads) == len(quarter.dispatcher.overloads) == 2
    assert not any(callable(compiled.entry_point) for compiled in made.overloads.values())
    assert made._cache.cache_path is None


def test_an_inner_function_is_an_ordinary_one_when_called_from_python():
    assert quarter(6.0) == 1.5
    assert quarter(np.float32(6)) == 1.5
    with pytest.raises(ValueError, match="below zero"):
        quarter(-1.0)


def _two_arrays(values, scale):
    return numba.types.UniTuple(values.dtype[::1], 2)


@separate(_two_arrays)
def halves_and_doubles(values, scale):
    if scale < 0:
        raise ValueError("a scale below zero")
    return values / scale, values * scale


@njit
def sum_of_halves(values, scale):
    return halves_and_doubles(values, scale)[0].sum()


@njit
def sum_of_all(values, scale):
    halves, doubles = halves_and_doubles(values, 2)
    return halves.sum() + halves_and_doubles(doubles, scale)[1].sum()


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_separate_function_is_compiled_once_for_all_that_call_it():
    for dtype in (np.float32, np.float64):
        values = np.array([2, 6], dtype)
        for scale in (2, np.int64(2)):
            assert sum_of_halves(values, scale) == 4
            assert sum_of_all(values, scale) == 4 + 32
    with pytest.raises(ValueError, match="a scale below zero"):
        sum_of_all(np.ones(2), -1)
    assert halves_and_doubles(np.ones(1), 4)[1].tolist() == [4]  # from Python, too
    compiled = addresses._separate[f"{__name__}.halves_and_doubles"].compiled
    assert len(compiled.overloads) == 2
    for kernel in (sum_of_halves, sum_of_all):
        for result in kernel.overloads.values():
            (address,) = addresses.addresses_in(result.library)
            assert address.function.compiled is compiled


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_separate_function_must_return_what_it_said(monkeypatch):
    monkeypatch.setenv("ROIOPS_CACHE", "0")

    @separate(lambda x: numba.types.float32)
    def liar(x):
        return x * 2.0

    @njit
    def trusting(x):
        return liar(x)

    with pytest.raises(TypeError, match="liar returns float64, and said float32"):
        trusting(1.0)


@pytest.mark.skipif(numba.config.DISABLE_JIT, reason="nothing is compiled")
def test_a_parallel_kernel_is_turned_into_machine_code_once(monkeypatch):
    """Not its loop first, by itself."""
    from numba.core.codegen import JITCodeLibrary

    finished = []
    finish = JITCodeLibrary._finalize_final_module

    def recorded(library):
        finished.append(library.name)
        finish(library)

    monkeypatch.setattr(JITCodeLibrary, "_finalize_final_module", recorded)
    monkeypatch.setenv("ROIOPS_CACHE", "0")

    @parallel
    def add_one(share, values):
        for i in within(share, values.size):
            values[i] += 1

    values = np.arange(4.0)
    add_one(values)
    assert values.tolist() == [1, 2, 3, 4]
    assert len([name for name in finished if "add_one" in name]) == 1


@pytest.mark.parametrize("collects", [True, False])
@pytest.mark.parametrize("source", ["x + 1", "x.no_such_thing"])
def test_a_compilation_leaves_python_and_numba_as_they_were(collects, source, monkeypatch):
    """Whether garbage is collected, and how operators are looked up, also after an error."""
    from numba.core.registry import cpu_target

    monkeypatch.setenv("ROIOPS_CACHE", "0")
    kernel = njit(eval(f"lambda x: {source}"))
    if not collects:
        gc.disable()
    try:
        if "no_such" in source:
            with pytest.raises((numba.TypingError, AttributeError)):
                kernel(1)
        else:
            assert kernel(1) == 2
        assert gc.isenabled() == collects
    finally:
        gc.enable()
    assert "resolve_function_type" not in vars(cpu_target.typing_context)


def run(code: str, **environment) -> str:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", textwrap.dedent(code)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


FORK = """
    import os
    import numba
    from roiops.kernels import jit

    before = jit.num_threads()
    child = os.fork()
    if child == 0:
        os._exit(jit.num_threads())
    print(before, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), jit.num_threads())
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
@pytest.mark.parametrize("layer", ["default", "workqueue"])
def test_a_child_of_a_process_with_threads_uses_one(layer):
    assert run(FORK, NUMBA_NUM_THREADS="3", NUMBA_THREADING_LAYER=layer).split() == ["3", "1", "3"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system does not fork")
def test_a_child_of_a_process_without_threads_may_start_its_own():
    code = FORK.replace("before = jit.num_threads()", "before = 0")
    assert run(code, NUMBA_NUM_THREADS="3").split() == ["0", "3", "3"]


def test_threads_that_begin_at_once_start_one_layer():
    code = """
        import sys
        import threading
        from roiops.kernels import jit

        sys.setswitchinterval(1e-6)
        found, gate = [], threading.Barrier(8)

        def ask():
            gate.wait()
            found.append((jit.num_threads(), jit._launcher != 0))

        threads = [threading.Thread(target=ask) for _ in range(8)]
        [each.start() for each in threads]
        [each.join() for each in threads]
        print(found == [(3, True)] * 8)
    """
    assert run(code, NUMBA_NUM_THREADS="3").split() == ["True"]


def test_one_thread_touches_no_threading_layer():
    code = """
        import numba
        from roiops.kernels import jit

        assert jit.num_threads() == 1
        try:
            print(numba.threading_layer())
        except ValueError:
            print("none")
    """
    assert run(code, NUMBA_NUM_THREADS="1").split() == ["none"]


CALL = """
    import numpy as np
    from roiops.kernels.cpu.roi.images import find_stray

    print(find_stray(np.array([[0, 1, 2, 3, 4], [5, 1, 2, 3, 4]], np.float32), 2))
"""


def test_truncated_cache_files_are_compiled_anew(tmp_path):
    assert run(CALL, NUMBA_CACHE_DIR=str(tmp_path)).strip() == "1"
    files = [*tmp_path.rglob("*.nbi"), *tmp_path.rglob("*.nbc")]
    assert files
    for path in files:
        path.write_bytes(path.read_bytes()[:50])
    assert run(CALL, NUMBA_CACHE_DIR=str(tmp_path)).strip() == "1"


TWO_TYPES = """
    import roiops.kernels
    roiops.kernels.__path__.append({folder!r})
    from roiops.kernels.made_twice import twice
    print(twice(1), twice(0.5))
"""


def test_cache_files_that_changed_places_are_compiled_anew(tmp_path):
    """What is left when two processes that save at once give two signatures one file's name."""
    (tmp_path / "made_twice.py").write_text(
        "from roiops.kernels.jit import njit\n\n@njit\ndef twice(x):\n    return 2 * x\n"
    )
    code, cache = TWO_TYPES.format(folder=str(tmp_path)), tmp_path / "cache"
    assert run(code, NUMBA_CACHE_DIR=str(cache)).split() == ["2", "1.0"]
    one, other = sorted(cache.rglob("*twice*.nbc"))
    contents = one.read_bytes(), other.read_bytes()
    other.write_bytes(contents[0])
    one.write_bytes(contents[1])
    assert run(code, NUMBA_CACHE_DIR=str(cache)).split() == ["2", "1.0"]


def test_full_disk_means_no_cache(tmp_path):
    limit = """
    import resource, signal
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    """
    assert run(limit + CALL, NUMBA_CACHE_DIR=str(tmp_path)).strip() == "1"


CALLED = """
from roiops.kernels.jit import njit
from roiops.kernels.made_inner import WIDTH

@njit
def wide(x):
    return x * WIDTH
"""
CALLER = """
from roiops.kernels.jit import njit
from roiops.kernels.made_called import (
    wide,
)

@njit
def twice(x):
    return 2 * wide(x)
"""
MADE = """
    import roiops.kernels
    roiops.kernels.__path__.append({folder!r})
    from roiops.kernels.made_caller import twice
    print(twice(1), sum(twice.stats.cache_hits.values()))
"""


def test_kernels_compile_anew_when_a_file_they_call_into_changes(tmp_path):
    """numba looks at the caller's own file alone, which an upgrade may leave as it was."""
    cache = str(tmp_path / "cache")
    call = MADE.format(folder=str(tmp_path))
    inner = tmp_path / "made_inner.py"
    (tmp_path / "made_called.py").write_text(CALLED)
    (tmp_path / "made_caller.py").write_text(CALLER)
    inner.write_text("WIDTH = 3\n")
    assert run(call, NUMBA_CACHE_DIR=cache).split() == ["6", "0"]
    assert run(call, NUMBA_CACHE_DIR=cache).split() == ["6", "1"]
    inner.write_text("WIDTH = 50\n")
    assert run(call, NUMBA_CACHE_DIR=cache).split() == ["100", "0"]


FACTORY = """
from roiops.kernels.jit import parallel
from roiops.kernels.shares import within

def filled(value, factors):
    @parallel
    def fill(share, out):
        for i in within(share, len(out)):
            out[i] = value(i) * factors[i]

    return fill
"""
VALUE = """
import numpy as np
from roiops.kernels.jit import inner
from roiops.kernels.made_factory import filled

@inner
def value(i):
    return 3

fill = filled(value, np.ones(2))
"""
FILLED = """
    import numpy as np
    import roiops.kernels
    roiops.kernels.__path__.append({folder!r})
    from roiops.kernels.made_value import fill
    out = np.zeros(1)
    fill.by(1)(out)
    print(out[0], sum(fill.compiled.stats.cache_hits.values()))
"""


def test_kernels_compile_anew_when_a_function_changes_that_they_were_made_with(tmp_path):
    """It is of another file, which that of the kernel does not import."""
    cache, code = str(tmp_path / "cache"), FILLED.format(folder=str(tmp_path))
    (tmp_path / "made_factory.py").write_text(FACTORY)
    (tmp_path / "made_value.py").write_text(VALUE)
    assert run(code, NUMBA_CACHE_DIR=cache).split() == ["3.0", "0"]
    assert run(code, NUMBA_CACHE_DIR=cache).split() == ["3.0", "1"]
    (tmp_path / "made_value.py").write_text(VALUE.replace("return 3", "return 50"))
    assert run(code, NUMBA_CACHE_DIR=cache).split() == ["50.0", "0"]


EDITED = """
    import pathlib, sys
    import numpy as np
    import roiops.kernels
    roiops.kernels.__path__.append({folder!r})
    from roiops.kernels.made_parallel import fill
    source = pathlib.Path({folder!r}, "made_parallel.py")
    source.write_text(source.read_text().replace("= 1", "= 2"))
    out = np.zeros(1)
    fill.by(1)(out)
    print(out[0])
"""
PARALLEL = """
from roiops.kernels.jit import parallel
from roiops.kernels.shares import within

@parallel
def fill(share, out):
    for i in within(share, len(out)):
        out[i] = 1
"""


def test_what_is_compiled_after_an_edit_is_kept_as_of_the_source_before_it(tmp_path):
    """A kernel's function is made on its first call, from code that was read when its module was imported."""
    cache, code = str(tmp_path / "cache"), EDITED.format(folder=str(tmp_path))
    (tmp_path / "made_parallel.py").write_text(PARALLEL)
    assert run(code, NUMBA_CACHE_DIR=cache).split() == ["1.0"]
    assert run(code, NUMBA_CACHE_DIR=cache).split() == ["2.0"]


POOL = """
    import numpy as np
    import roiops as mx

    data = np.arange(2 * 6 * 7, dtype=np.float32).reshape(1, 2, 6, 7) % 11
    print(mx.nd.Pooling(data, kernel=(2, 3), stride=(2, 2), pool_type="max").asnumpy().tolist())
"""


def test_threads_are_counted_as_numba_counts_them(monkeypatch):
    before = numba.get_num_threads()
    try:
        for threads in {1, before}:
            numba.set_num_threads(threads)
            assert launch.threads_counter()() == threads
    finally:
        numba.set_num_threads(before)
    monkeypatch.delattr("numba.np.ufunc.parallel._get_num_threads")
    assert launch.threads_counter() is numba.get_num_threads


def test_kernels_run_without_the_insides_of_numba(tmp_path):
    """As with a numba that has them elsewhere: what is imported from them is taken away first."""
    elsewhere = """
    from numba.core import caching, codegen

    cache, library = caching.FunctionCache, codegen.JITCodeLibrary
    del caching.FunctionCache, codegen.JITCodeLibrary
    from roiops.kernels.numba_insides.found import INSIDES

    caching.FunctionCache, codegen.JITCodeLibrary = cache, library  # numba itself imports them later on
    assert not INSIDES
    """
    in_parts = """
    import numba
    from roiops.kernels.jit import parallel
    from roiops.kernels.shares import taken

    @parallel
    def double(share, values):
        for i in taken(share, values.size):
            values[i] *= 2

    values = np.arange(5.0)
    double.by(2)(values)
    assert values.tolist() == [0, 2, 4, 6, 8]
    """
    plain = run(
        textwrap.dedent(elsewhere) + textwrap.dedent(POOL) + textwrap.dedent(in_parts),
        NUMBA_CACHE_DIR=str(tmp_path),
        NUMBA_NUM_THREADS="1",
    )
    assert plain == run(POOL, NUMBA_NUM_THREADS="1")


@pytest.mark.skipif(not compiler._HAS_PASSES, reason="this numba is an older one")
def test_an_older_numba_optimises_functions_its_own_way(tmp_path):
    """LLVM has passes by those names there, too, but numba takes them otherwise."""
    older = """
    from numba.core.codegen import CPUCodegen

    build = CPUCodegen._pass_builder
    del CPUCodegen._pass_builder
    from roiops.kernels.numba_insides import compiler, found

    CPUCodegen._pass_builder = build  # as numba itself needs it
    assert found.INSIDES and not compiler._HAS_PASSES
    """
    assert run(textwrap.dedent(older) + textwrap.dedent(CALL), NUMBA_CACHE_DIR=str(tmp_path)).strip() == "1"


LOADED = """
    import roiops.kernels
    roiops.kernels.__path__.append({folder!r})
    from numba.core.runtime import rtsys
    from roiops.kernels.made_parts import once, thrice
    print(once(2), sum(once.stats.cache_hits.values()), rtsys._init)
    print({more})
"""


def test_a_kernel_from_the_cache_runs_before_numba_is_ready_to_compile_and_is_a_part_of_others(tmp_path):
    (tmp_path / "made_parts.py").write_text(
        "from .jit import njit\n\n@njit\ndef once(x):\n    return x * 5\n\n"
        "@njit\ndef thrice(x):\n    return 3 * once(x)\n"
    )
    cache = str(tmp_path / "cache")
    first = LOADED.format(folder=str(tmp_path), more="''")
    assert run(first, NUMBA_CACHE_DIR=cache).split() == ["10", "0", "True"]
    assert run(first, NUMBA_CACHE_DIR=cache).split() == ["10", "1", "False"]
    both = LOADED.format(folder=str(tmp_path), more="thrice(2), sum(thrice.stats.cache_misses.values())")
    assert run(both, NUMBA_CACHE_DIR=cache).split() == ["10", "1", "False", "30", "1"]


NETWORK = """
    import numpy as np
    import roiops as mx
    from numba.core import event
    from numba.core.runtime import rtsys

    class Heard(event.Listener):
        count = 0

        def on_start(self, event):
            self.count += 1

        def on_end(self, event):
            pass

    net = mx.sym.Convolution(mx.sym.Variable("data"), kernel=(3, 3), num_filter=8, name="layer")
    net = mx.sym.FullyConnected(mx.sym.Pooling(net, kernel=(2, 2), pool_type="max"), num_hidden=3, name="last")
    executor = net.simple_bind(mx.cpu(), data=(1, 4, 40, 40), grad_req="null")
    heard = Heard()
    with event.install_listener("numba:compile", heard):
        executor.forward()[0].asnumpy()
    print(heard.count > 0, rtsys._init)
"""


def test_a_network_whose_kernels_are_on_disk_compiles_nothing(tmp_path):
    """What differs from process to process must not be in a cached function: it would be compiled each time."""
    found = []
    for _ in range(2):
        ends = run(NETWORK, NUMBA_CACHE_DIR=str(tmp_path)).split()
        found.append((ends, sorted(path.name for path in tmp_path.rglob("*") if path.is_file())))
    assert found[0][0] == ["True", "True"]
    assert found[1] == (["False", "False"], found[0][1])


def test_the_insides_are_those_of_this_numba():
    assert found.INSIDES


def test_an_entry_is_that_for_the_types_of_the_arguments():
    @njit
    def compiled(values):
        return values[-1] / 2

    row, table = np.arange(4.0) + 3, np.arange(8.0).reshape(4, 2) + 5
    read_only = row.copy()
    read_only.setflags(write=False)
    unaligned = np.zeros(33, np.uint8)[1:].view(np.float64)
    unaligned[:] = 7
    given = [row, row.astype(np.float32), row.astype(np.int32), row[::2], read_only, unaligned]
    given += [(row[0],), (9,), (True,), (1 << 63,), (np.int32(9),), (np.uint8(200),), (4.5, 1)]
    given += [table[:, 1]]
    entries = [launch.entry_of(compiled, (each,)) for each in given]
    halves = [entry(each) for entry, each in zip(entries, given, strict=True)]
    assert halves == [each[-1] / 2 for each in given]
    assert [launch.entry_of(compiled, (each,)) for each in given] == entries


BY_ADDRESS = """
import numba
from roiops.kernels.jit import separate

@separate(lambda x: numba.types.float64)
def half(x):
    return x / 2
"""
CALLS_BY_ADDRESS = """
from roiops.kernels.jit import njit
from roiops.kernels.made_half import half

@njit
def caller(x):
    return half(x) + 1
"""
COPIES = """
    import importlib, pathlib, pickle
    import roiops.kernels
    roiops.kernels.__path__.append({folder!r})
    from roiops.kernels import made_caller, made_half
    pickled, caller = pathlib.Path({folder!r}, "caller"), made_caller.caller
    {then}
"""


@pytest.mark.parametrize(
    "steps",
    [
        ["importlib.reload(made_half); print(caller(6.0), importlib.reload(made_caller).caller(6.0))"] * 2,
        [
            "print(caller(6.0), 4.0); pickled.write_bytes(pickle.dumps(caller))",
            "print(pickle.loads(pickled.read_bytes())(6.0), caller(6.0))",
        ],
    ],
    ids=["reloaded", "pickled"],
)
def test_copies_of_a_kernel_find_what_it_calls_by_an_address(steps, tmp_path):
    """LLVM has one place by the name of the address; whoever comes second would call 0."""
    (tmp_path / "made_half.py").write_text(BY_ADDRESS)
    (tmp_path / "made_caller.py").write_text(CALLS_BY_ADDRESS)
    for then in steps:
        code = COPIES.format(folder=str(tmp_path), then=then)
        assert run(code, NUMBA_CACHE_DIR=str(tmp_path / "cache")).split() == ["4.0", "4.0"]


_FIRST_CALLS = """
import numpy as np, roiops as mx
data, rois = mx.nd.array(np.ones((1, 32, 9, 9))), mx.nd.array([[0.0, 1, 1, 6, 6]] * 40)
out = mx.nd.ROIAlign(data, rois, pooled_size=(2, 2), spatial_scale=1.0, sampling_ratio=2)
"""
_MANY_FIRST_CALLS = (
    _FIRST_CALLS
    + """
data.attach_grad()
small = data[:, :1, :4, :4]
with mx.autograd.record():
    outs = [
        mx.nd.ROIPooling(data, rois, pooled_size=(2, 2), spatial_scale=1),
        mx.nd.ROIAlign(data, rois, pooled_size=(2, 2), spatial_scale=1.0, sampling_ratio=2),
        mx.nd.ROIAlign(data, rois, pooled_size=(2, 2), spatial_scale=1.0, sampling_ratio=2, mode="max"),
        mx.nd.ROIAlign(small, rois[:1], pooled_size=(2, 2), spatial_scale=1.0, sampling_ratio=2),
        mx.nd.Convolution(data, mx.nd.ones((8, 32, 3, 3)), no_bias=True, kernel=(3, 3), num_filter=8),
        mx.nd.Pooling(data, kernel=(2, 2), pool_type="max"),
    ]
    total = sum(out.sum() for out in outs)
total.backward()
"""
)


@pytest.mark.parametrize(
    ("calls", "kernels"), [(_FIRST_CALLS, 1), pytest.param(_MANY_FIRST_CALLS, 9, marks=pytest.mark.slow)]
)
def test_what_one_process_compiled_the_next_one_reads(calls, kernels, tmp_path):
    """A kernel that is never found on disk again is compiled and written in every process, without a word."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path), "ROIOPS_CACHE": "1"}
    written = []
    for _ in range(2):
        subprocess.run([sys.executable, "-c", calls], env=environment, check=True, timeout=300)
        written.append({path.name for path in tmp_path.rglob("*.nbc")})
    assert len(written[0]) >= kernels
    assert written[1] == written[0]


def test_a_kernel_that_could_not_be_found_on_disk_again_is_refused():
    def made(step):
        return lambda x: x + step

    with pytest.raises(TypeError, match="a kernel must be a function of a module"):
        Direct(made(1))
