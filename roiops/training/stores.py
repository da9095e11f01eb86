"""The stores of one process, and what a store must have: :mod:`roiops.kvstore` makes them by name.

A store holds one array for each key. ``push`` adds up the values that it is given and puts the sum in the
place of the array, or lets the optimizer change the array by it; ``pull`` reads the array.
"""

import warnings

from ..context import cpu
from ..errors import MXNetError, ParamError, ShapeError, nearest
from ..ndarray import NDArray
from . import optimizer as optimizers

__all__ = ["KVStore", "KVStoreBase", "total_of"]


class KVStoreBase:
    """What a store must have. A store of your own, once registered, is made by ``kvstore.create``."""

    #: The name of the capability to run an optimizer inside the store.
    OPTIMIZER = "optimizer"
    kv_registry: dict = {}

    @staticmethod
    def register(klass: type) -> type:
        """Let ``kvstore.create`` make this class, by its name in lower case. Used as a decorator."""
        name = klass.__name__.lower()
        known = KVStoreBase.kv_registry.get(name)
        if known is not None:
            warnings.warn(
                f"New kvstore {klass.__module__}.{klass.__name__} is overriding existing kvstore "
                f"{known.__module__}.{known.__name__}",
                stacklevel=2,
            )
        KVStoreBase.kv_registry[name] = klass
        return klass

    def broadcast(self, key, value, out, priority=0):
        """Give ``value`` of rank 0 to all ranks, in ``out``."""
        raise NotImplementedError

    def pushpull(self, key, value, out=None, priority=0):
        """Add up ``value`` and read the result into ``out``, or into ``value`` where that is None."""
        raise NotImplementedError

    def is_capable(self, capability):
        """Whether the store can do this; ``"optimizer"`` is the one question."""
        raise NotImplementedError

    def set_optimizer(self, optimizer):
        """Let pushed gradients change the store's arrays by this rule."""
        raise NotImplementedError

    def save_optimizer_states(self, fname, dump_optimizer=False):
        """Write the states of the optimizer."""
        raise NotImplementedError

    def load_optimizer_states(self, fname):
        """Read what :meth:`save_optimizer_states` wrote."""
        raise NotImplementedError

    @property
    def type(self) -> str:
        """The name that it was made by."""
        raise NotImplementedError

    @property
    def rank(self) -> int:
        """The number of this process, from 0 on."""
        raise NotImplementedError

    @property
    def num_workers(self) -> int:
        """How many processes there are."""
        raise NotImplementedError


@KVStoreBase.register
class TestStore(KVStoreBase):
    """A store that holds nothing and has no optimizer; MXNet's tests and examples use it."""

    __test__ = False  # it is no test case of pytest's
    type, rank, num_workers = "teststore", 0, 1

    def broadcast(self, key, value, out, priority=0):
        for each in _as_list(out):
            each[:] = value

    def pushpull(self, key, value, out=None, priority=0):
        values = _as_list(value)
        total = total_of(values, values[0].context)
        for each in values if out is None else _as_list(out):
            each[:] = total

    @staticmethod
    def is_capable(capability):
        return _is_optimizer(capability) and False


class KVStore(KVStoreBase):
    """A store for the devices of one process. Made by ``kvstore.create``.

    Keys are all whole numbers or all strings. One key goes with one array or with a list of arrays, one a
    device; a list of keys goes with a list of these. ``priority`` is accepted for MXNet's sake: all is done
    in the order in which it is asked for.
    """

    #: The number of this process among those that train together, from 0 on, and how many these are.
    rank, num_workers = 0, 1

    def __init__(self, type: str = "local", on_device: bool = False):
        self._type, self._on_device = type, on_device
        self._stored: dict = {}
        self._key_type = None
        self._updater = None

    def __repr__(self):
        return f"<KVStore {self._type}: {len(self._stored)} keys, rank {self.rank} of {self.num_workers}>"

    @property
    def type(self) -> str:
        return self._type

    def is_capable(self, capability: str) -> bool:
        return _is_optimizer(capability)

    def barrier(self) -> None:
        """Wait until all processes are here."""

    def _barrier(self) -> None:
        self.barrier()

    # -- arrays ---------------------------------------------------------------------------------------

    def init(self, key, value) -> None:
        """Put a copy of an array in the store for each key, once. With many processes rank 0's count."""
        for each, values in self._grouped("init", key, value):
            if each in self._stored:
                raise MXNetError(f"KVStore.init: key {each!r} is there already; a key is initialized once")
            if len(values) != 1:
                raise MXNetError(f"KVStore.init: key {each!r} must come with one array, got {len(values)}")
            array = values[0]
            array = array.copyto(array.context if self._on_device else cpu())
            self._share_first_values(each, array)
            self._stored[each] = array

    def push(self, key, value, priority: int = 0) -> None:
        """Add up the arrays of each key, over devices and processes, and take in the sum.

        Without an optimizer the sum takes the array's place; with one, it is the gradient of a step.
        """
        grouped = [
            (each, self._known("push", each), values) for each, values in self._grouped("push", key, value)
        ]
        for each, stored, values in grouped:
            for array in values:
                if array.shape != stored.shape:
                    raise ShapeError(
                        f"KVStore.push: key {each!r} must have shape {stored.shape}, got {array.shape}"
                    )
        for each, stored, values in grouped:
            total = self._summed(values, stored.context)
            if self._updater is None:
                stored[:] = total
            else:
                self._updater(each, total, stored)

    def pull(self, key, out=None, priority: int = 0, ignore_sparse: bool = True) -> None:
        """Read the arrays of the store into ``out``.

        With ``ignore_sparse``, sparse arrays in ``out`` stay as they are; :meth:`row_sparse_pull` reads into
        those.
        """
        if out is None:
            raise MXNetError("KVStore.pull: out must be given")
        for each, targets in self._grouped("pull", key, out):
            stored = self._known("pull", each)
            for target in targets:
                if target.shape != stored.shape:
                    raise ShapeError(
                        f"KVStore.pull: out of key {each!r} must have shape {stored.shape}, "
                        f"got {target.shape}"
                    )
                if target.stype == "default" or not ignore_sparse:
                    stored.copyto(target)

    def pushpull(self, key, value, out=None, priority: int = 0) -> None:
        """:meth:`push`, then :meth:`pull` into ``out``, or into ``value`` where that is None."""
        self.push(key, value, priority)
        self.pull(key, value if out is None else out, priority)

    def broadcast(self, key, value, out, priority: int = 0) -> None:
        """:meth:`init`, then :meth:`pull` into ``out``."""
        self.init(key, value)
        self.pull(key, out, priority)

    def row_sparse_pull(self, key, out=None, priority: int = 0, row_ids=None) -> None:
        """Read rows of row-sparse arrays of the store into ``out``, which are row-sparse, too.

        ``row_ids`` are the numbers of the rows, for each array of ``out``; one array holds for all.
        """
        if out is None or row_ids is None:
            raise MXNetError("KVStore.row_sparse_pull: out and row_ids must be given")
        wanted = dict(self._grouped("row_sparse_pull", key, row_ids))
        for each, targets in self._grouped("row_sparse_pull", key, out):
            stored = self._known("row_sparse_pull", each)
            ids = wanted[each] * (len(targets) if len(wanted[each]) == 1 else 1)
            if len(ids) != len(targets):
                raise MXNetError(
                    f"KVStore.row_sparse_pull: {len(targets)} arrays of key {each!r}, row_ids for {len(ids)}"
                )
            for target, rows in zip(targets, ids, strict=True):
                for what, array in (("the stored array", stored), ("out", target)):
                    if array.stype != "row_sparse":
                        raise MXNetError(
                            f"KVStore.row_sparse_pull: {what} of key {each!r} must be row_sparse, "
                            f"got {array.stype}"
                        )
                target[:] = stored.retain(rows)

    # -- optimizer ------------------------------------------------------------------------------------

    def set_optimizer(self, optimizer) -> None:
        self._set_updater(optimizers.get_updater(optimizer))

    def _set_updater(self, updater) -> None:
        """Call ``updater(key, pushed sum, stored array)`` at every push."""
        self._updater = updater

    def set_gradient_compression(self, compression_params) -> None:
        """Refused: gradients are added up as they are."""
        raise MXNetError(
            f"KVStore.set_gradient_compression: gradients are not compressed here, got {compression_params}"
        )

    def save_optimizer_states(self, fname, dump_optimizer: bool = False) -> None:
        self._optimizer("save_optimizer_states").save_optimizer_states(fname, dump_optimizer)

    def load_optimizer_states(self, fname) -> None:
        self._optimizer("load_optimizer_states").load_optimizer_states(fname)

    def _optimizer(self, what: str) -> optimizers.Updater:
        if not isinstance(self._updater, optimizers.Updater):
            raise MXNetError(f"KVStore.{what}: call set_optimizer() first")
        return self._updater

    # -- keys and sums --------------------------------------------------------------------------------

    def _grouped(self, what: str, key, value) -> list:
        """Pairs (key, list of arrays), each key once, in the order of their first places."""
        if not isinstance(key, list | tuple):
            key, value = [key], [value]
        if not isinstance(value, list | tuple) or len(key) != len(value):
            count = len(value) if isinstance(value, list | tuple) else 1
            raise MXNetError(f"KVStore.{what}: {len(key)} keys, but arrays for {count}")
        groups: dict = {}
        for each, arrays in zip(key, value, strict=True):
            if isinstance(each, bool) or not isinstance(each, int | str):
                raise MXNetError(f"KVStore.{what}: a key is a whole number or a string, got {each!r}")
            kind = str if isinstance(each, str) else int
            self._key_type = self._key_type or kind
            if kind is not self._key_type:
                raise MXNetError(
                    f"KVStore.{what}: Mixed key types are not allowed: the keys of this store are "
                    f"{self._key_type.__name__}, got {each!r}"
                )
            arrays = _as_list(arrays)
            for array in arrays:
                if not isinstance(array, NDArray):
                    raise MXNetError(
                        f"KVStore.{what}: key {each!r} must come with NDArrays, got {type(array).__name__}"
                    )
            groups.setdefault(each, []).extend(arrays)
        return list(groups.items())

    def _known(self, what: str, key) -> NDArray:
        if key not in self._stored:
            hint = nearest(key, self._stored) if isinstance(key, str) else ""
            raise MXNetError(f"KVStore.{what}: key {key!r} has not been initialized; call init() first{hint}")
        return self._stored[key]

    def _summed(self, values, context) -> NDArray:
        """The sum of the arrays, over all processes, on ``context``. It may be the one array itself."""
        return total_of(values, context)

    def _share_first_values(self, key, array: NDArray) -> None:
        """Make ``array`` what rank 0 has."""


def _as_list(value) -> list:
    return list(value) if isinstance(value, list | tuple) else [value]


def total_of(values, context) -> NDArray:
    """The sum of arrays, always in their order; a single one is not copied."""
    if len(values) == 1:
        return values[0].as_in_context(context)
    total = values[0].copyto(context)
    for each in values[1:]:
        total += each.as_in_context(context)
    return total


def _is_optimizer(capability: str) -> bool:
    if capability.lower() != KVStoreBase.OPTIMIZER:
        raise ParamError(f"KVStore.is_capable: unknown capability {capability!r}; known is 'optimizer'")
    return True
