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

That is decided once, by what is there and not by numba's version: ``found.py``, whose ``INSIDES`` says how.
The cache is in ``cache.py``, how parts and kernels are compiled in ``compiler.py``, what is called by its
address in ``addresses.py``, how kernels are called and threads share them in ``launch.py``.
"""
