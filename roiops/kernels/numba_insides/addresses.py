"""Functions that kernels call by their address, each compiled once for all of them."""

import base64
import ctypes
import functools
import hashlib
import pickle

import llvmlite.binding as llvm
import llvmlite.ir

from .. import claims
from .found import CPUDispatcher, cgutils, intrinsic, unliteral


class Dispatcher(CPUDispatcher):
    """What compiles a kernel. Whoever gets to see the kernel finds what it calls by an address there, too."""

    def add_overload(self, result):
        addresses = addresses_in(result.library)
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
        has = getattr(cache, "has", None)
        if not self._memory.value and has and not has(self.kinds):
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


def addresses_in(library) -> list[_Address]:
    """What a kernel calls by its address."""
    if hasattr(library, "addresses"):  # of one that was read from disk
        return library.addresses
    names = [each.name for each in library._final_module.global_variables]
    return [_addresses[name] for name in names if name.startswith(_ADDRESS)]


def address_of(name: str, kinds) -> _Address:
    """The address of the function of this module and name, for arguments of these types."""
    return _separate[name].address(kinds)


def separate_call(function, make_entry, returns):
    """``call(arguments)`` for compiled functions: it calls ``function``, which is compiled by itself.

    ``returns(*kinds)`` is numba's type of what it returns for arguments of these types.
    """
    return _Separate(function, make_entry, returns).call()


def compile_separate(name: str, kinds: str) -> None:
    """Compile what :meth:`_Address.ask_for_help` asked for, whose module has been imported."""
    _separate[name].compiled.compile(pickle.loads(base64.b64decode(kinds)))
