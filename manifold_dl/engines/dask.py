"""The engine of a cluster: workers of Dask keep the blocks of signals, and a round is one task for each.

`Dask` runs the same functions of one block as `Threads` does, and adds their sums over the same tree, so it
gives the same bits for any number of workers. States stay in the memory of the workers; those of a lost
worker are computed again on another one, from the signals. `rounds.py` sends the tasks, and sends them again
where workers are lost; `cluster.py` holds the list of workers; `worker.py` is what they run.
"""

import uuid
import weakref
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from manifold_dl.engines.cluster import Cluster, ClusterError
from manifold_dl.engines.protocol import (
    BlockFunction,
    BlockMap,
    SharedArgument,
    TreeSum,
    in_order,
    tuple_like,
)
from manifold_dl.engines.rounds import Round
from manifold_dl.engines.worker import Node, Reference

__all__ = ["ClusterError", "Dask"]


@dataclass(frozen=True)
class Dask:
    """Blocks of signals on the workers of a Dask cluster.

    Parameters
    ----------
    client : distributed.Client or str, optional
        The cluster, or its address. By default the client that was made last in this process; in a task of a
        cluster that of its worker.
    patience : float
        Seconds without a message from a worker after which its blocks are sent to others. It gets new ones
        when it answers again.
    timeout : float
        Seconds without any worker, or without the scheduler, after which a round fails.

    Examples
    --------
    >>> from distributed import Client, LocalCluster  # doctest: +SKIP
    >>> client = Client(LocalCluster(n_workers=4, threads_per_worker=1))  # doctest: +SKIP
    >>> learn_dictionary(dask_array, 256, coder=OMP(sparsity=5), engine=Dask(client))  # doctest: +SKIP
    """

    client: Any = None
    patience: float = 30.0
    timeout: float = 60.0

    is_remote = True

    def __post_init__(self) -> None:
        for name in ("patience", "timeout"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name}={getattr(self, name)!r}: a positive number of seconds is needed.")

    def __deepcopy__(self, memo: dict[int, Any]) -> "Dask":
        """Itself: a client cannot be copied, and `sklearn.base.clone` copies all parameters."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """The address in the place of the client, which cannot be stored."""
        state = dict(vars(self))
        if hasattr(self.client, "scheduler"):
            state["client"] = self.client.scheduler.address
        return state

    def open(self, source: Sequence[Any]) -> BlockMap:
        """The items of `source`, one per block, as states of a map; workers load those that are `Lazy`."""
        blocks = BlockMap(no_function)
        blocks.states = RemoteStates(self._driver(), RemoteNode(None, (), (), list(source)))
        return blocks

    def total(self, *maps: BlockMap) -> list[Any]:
        """The sum of the partials of each map over all blocks, in one round."""
        for one in maps:
            if one.states is not None:
                raise ValueError(
                    "this map has been run, and its sums were returned then: make a new BlockMap."
                )
        return self._driver().total(maps, self.patience, self.timeout)

    def states(self, block_map: BlockMap) -> list[Any]:
        """The states of all blocks, brought to this process."""
        return self.total(BlockMap(state_block, (block_map,)))[0] or []

    def workers(self) -> dict[str, int]:
        """The workers there are, and their numbers of threads.

        Returns
        -------
        dict of str to int
        """
        return self._driver().cluster.client.nthreads()

    def rounds(self) -> int:
        """How many rounds there have been.

        Returns
        -------
        int
        """
        return self._driver().cluster.n_rounds

    def _driver(self) -> "Driver":
        client = as_client(self.client)
        if client not in _drivers:
            _drivers[client] = Driver(client)
        return _drivers[client]


def as_client(client: Any) -> Any:
    """The client of a cluster, from itself, an address, or the one that was made last."""
    try:
        import distributed
    except ImportError:
        raise ImportError(
            "engines.Dask needs the packages dask and distributed: pip install 'manifold-dl[distributed]'."
        ) from None
    if isinstance(client, distributed.Client):
        if client.asynchronous:
            raise TypeError(
                f"client={client!r} is asynchronous: give one that waits, distributed.Client(...)."
            )
        return client
    if isinstance(client, str):
        if client not in _connected or _connected[client].status != "running":
            _connected[client] = distributed.Client(client)
        return _connected[client]
    if client is not None:
        raise TypeError(f"client={client!r}: give a distributed.Client, the address of a scheduler, or None.")
    try:
        return distributed.get_client()
    except ValueError:
        raise ValueError(
            "engines.Dask() found no client: make one first, client = distributed.Client(), or give the "
            "address of a scheduler, Dask('tcp://...')."
        ) from None


_connected: dict[str, Any] = {}
_drivers: "weakref.WeakKeyDictionary[Any, Driver]" = weakref.WeakKeyDictionary()


def no_function(*arguments: Any) -> tuple[None, None]:
    """The function of a map whose states are given."""
    return None, None


def state_block(state: Any) -> tuple[list[Any], None]:
    """The state of one block as a sum: lists are joined in the order of the blocks."""
    return [state], None


class RemoteNode:
    """A function of one block, its parents and what is broadcast: how a lost state is computed again."""

    _numbers = count()

    def __init__(
        self,
        function: BlockFunction | None,
        parents: "tuple[RemoteNode, ...]",
        common: tuple[Any, ...],
        items: list[Any] | None = None,
        shared: "tuple[SharedNode, ...]" = (),
    ) -> None:
        self.key = f"{next(self._numbers)}"
        self.function, self.parents, self.common, self.shared = function, parents, common, shared
        self.items = items
        self.n_blocks: int = parents[0].n_blocks if items is None else len(items)

    def message(self) -> Node:
        """The node as it is sent to workers."""
        return Node(self.key, self.function, tuple(parent.key for parent in self.parents), self.common)

    def lineage(self) -> "list[RemoteNode | SharedNode]":
        """The node and all that it is computed from, parents first."""
        found: dict[str, RemoteNode | SharedNode] = {}
        waiting: list[Any] = [self]
        while waiting:
            node = waiting.pop()
            if node.key not in found:
                found[node.key] = node
                waiting.extend([*node.parents, *node.shared])
        return sorted(found.values(), key=lambda node: int(node.key))


class SharedNode:
    """An argument of several nodes."""

    parents = shared = ()
    items = None

    def __init__(self, argument: SharedArgument, cluster: Cluster) -> None:
        self.key = f"{next(RemoteNode._numbers)}"
        self.argument = argument
        weakref.finalize(self, cluster.dropped_nodes.append, self.key).atexit = False

    def message(self) -> Node:
        """The argument as it is sent to workers."""
        return Node(self.key, None, (), (self.argument.for_blocks(),))


class RemoteStates:
    """The states of a map, on the workers; released there when nothing in this process refers to them."""

    def __init__(self, driver: "Driver", node: RemoteNode) -> None:
        self.node = node
        weakref.finalize(self, driver.cluster.dropped_states.append, node.key).atexit = False
        if not hasattr(node, "finalizer"):
            node.finalizer = weakref.finalize(node, driver.cluster.dropped_nodes.append, node.key)  # type: ignore[attr-defined]
            node.finalizer.atexit = False  # type: ignore[attr-defined]


class Driver:
    """Runs maps on one cluster."""

    def __init__(self, client: Any) -> None:
        self.cluster = Cluster(client, uuid.uuid4().hex)
        self._shared: deque[SharedNode] = deque(maxlen=4)  # the last ones: others are sent again

    def total(self, maps: Sequence[BlockMap], patience: float, timeout: float) -> list[Any]:
        """See `Dask.total`."""
        order = in_order(maps)
        nodes: dict[int, RemoteNode] = {}
        for one in order:
            parents = tuple(nodes.get(id(parent)) or parent.states.node for parent in one.parents)
            shared: list[SharedNode] = []
            common = self._with_references(one.common, shared)
            nodes[id(one)] = RemoteNode(one.function, parents, common, shared=tuple(shared))
        handles = [RemoteStates(self, nodes[id(one)]) for one in order]
        wanted = [nodes[id(one)] for one in maps]
        runs = Round(self.cluster, wanted, [handle.node for handle in handles], patience, timeout).run()
        for one, handle in zip(order, handles, strict=True):
            one.states = handle
            one.parents = one.common = ()
        sums = [TreeSum() for _ in maps]
        for run in runs:
            for total, subtrees in zip(sums, run.subtrees, strict=True):
                for leaves, partial in subtrees:
                    total.add(partial, leaves)
        return [total.result() for total in sums]

    def _with_references(self, value: Any, shared: list[SharedNode]) -> Any:
        """The value with references in the places of shared arguments, whose nodes are added to `shared`."""
        if isinstance(value, SharedArgument):
            node = next((node for node in tuple(self._shared) if node.argument is value), None)
            if node is None:
                node = SharedNode(value, self.cluster)
                self._shared.append(node)
            shared.append(node)
            return Reference(node.key)
        if isinstance(value, tuple):
            return tuple_like(value, (self._with_references(item, shared) for item in value))
        return value
