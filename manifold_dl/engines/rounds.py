"""One round on a cluster: a task for every worker, given to others where a worker is lost or does not answer.

Four things go wrong on a cluster, and each has its answer here. A worker dies: tasks pinned to its address
would wait for ever, so its blocks are given to the others and sent again. A worker is new and knows nothing:
it says so, and is told everything. A worker is stopped: the scheduler hears nothing of it for `patience`
seconds, then its blocks are given to the others, and it gets none until it answers. All workers, or the
scheduler, are gone: after `timeout` seconds there is a `ClusterError`.
"""

import asyncio
import concurrent.futures
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import accumulate, count
from typing import Any

from manifold_dl.engines.worker import Message, Run, join, joined_runs, run_group

POLL = 0.5  # seconds between two looks at the workers, while a round is running
REFRESH = 2.0  # seconds between two looks for new workers, between rounds
INLINE = 8 * 2**20  # bytes of one round that are sent inside its tasks; more travel from worker to worker
FEW = 8  # sums of so many workers are fetched one by one; those of more are added on the workers first
ATTEMPTS = 12  # a block whose tasks are lost so often is what kills the workers


class ClusterError(ConnectionError):
    """The cluster cannot go on: no workers, no scheduler, or a block that no worker survives."""


class Cluster:
    """A client with what is known of its workers, from round to round."""

    def __init__(self, client: Any, session: str) -> None:
        self.client, self.session = client, session
        self.workers: dict[str, int] = {}  # address → threads
        self.silent: dict[str, float] = {}  # stopped workers, and what the scheduler heard last of them
        self.owner: dict[int, list[str]] = {}  # of every block, by the number of blocks
        self.told: dict[str, set[Any]] = {}  # what each worker knows: keys of nodes, and of items
        self.dropped_states: list[str] = []
        self.dropped_nodes: list[str] = []
        self.n_rounds = 0
        self._read: dict[str, tuple[int, int]] = {}  # how much of both lists each worker has been told
        self._looked = -math.inf
        self._heard: dict[str, tuple[float, float]] = {}  # (last seen by the scheduler, since when here)
        self._numbers = count()

    def look(self, patience: float) -> None:
        """Which workers are there, and which of them are silent."""
        info = self.client.scheduler_info()["workers"]
        now = time.monotonic()
        for address, worker in info.items():
            seen = worker["last_seen"]
            if address not in self._heard or self._heard[address][0] != seen:
                self._heard[address] = seen, now
                self.silent.pop(address, None)
            elif now - self._heard[address][1] > patience:
                self.silent[address] = seen
        self.workers = {address: w["nthreads"] for address, w in info.items() if address not in self.silent}
        for known in (self.told, self._read, self._heard):
            for address in [address for address in known if address not in info]:
                del known[address]
        self._looked = now

    def is_outdated(self) -> bool:
        """Whether it is time to look for new workers."""
        return time.monotonic() - self._looked > REFRESH

    def assign(self, n_blocks: int) -> list[str]:
        """The worker of every block: as before where it is there, the others evenly."""
        before = self.owner.get(n_blocks, [""] * n_blocks)
        self.owner[n_blocks] = assigned(before, self.workers)
        return self.owner[n_blocks]

    def news(self, address: str) -> tuple[list[str], list[str]]:
        """Nodes and states that were released since this worker was told last."""
        nodes, states = self._read.get(address, (0, 0))
        n_nodes, n_states = len(self.dropped_nodes), len(self.dropped_states)
        self._read[address] = n_nodes, n_states
        return self.dropped_nodes[nodes:n_nodes], self.dropped_states[states:n_states]

    def name(self, what: str) -> str:
        """A new key for a task."""
        return f"manifold_dl-{what}-{self.session}-{next(self._numbers)}"


def assigned(before: Sequence[str], workers: dict[str, int]) -> list[str]:
    """Blocks to workers in proportion to their threads, moving no more of them than it takes.

    Examples
    --------
    >>> assigned([""] * 6, {"a": 1, "b": 1})
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> assigned(["a", "a", "a", "b", "b", "b"], {"b": 1, "c": 1})
    ['c', 'c', 'c', 'b', 'b', 'b']
    """
    threads, n = sum(workers.values()), len(before)
    ends = [round(n * part / threads) for part in _cumulative(workers.values())]
    room = dict(
        zip(workers, (end - start for start, end in zip([0, *ends], ends, strict=False)), strict=True)
    )
    owner = list(before)
    for block, address in enumerate(owner):
        if room.get(address, 0) > 0:
            room[address] -= 1
        else:
            owner[block] = ""
    free = [address for address, places in room.items() for _ in range(places)]
    return [address or free.pop(0) for address in owner]


def _cumulative(numbers: Any) -> list[int]:
    return list(accumulate(numbers))


@dataclass
class Bundle:
    """Some blocks whose sums are fetched together: those of one worker, or of several."""

    blocks: list[int]
    future: Any = None
    groups: dict[str, Any] = field(default_factory=dict)  # worker → its task


class Round:
    """Sums over all blocks of some nodes.

    Parameters
    ----------
    cluster : Cluster
    wanted : sequence of RemoteNode
        Whose sums are returned.
    kept : sequence of RemoteNode
        Whose states are kept on the workers.
    patience, timeout : float
        See `Dask`.
    """

    def __init__(
        self, cluster: Cluster, wanted: Sequence[Any], kept: Sequence[Any], patience: float, timeout: float
    ) -> None:
        self.cluster, self.wanted, self.kept = cluster, wanted, kept
        self.patience, self.timeout = patience, timeout
        self.lineage = {node.key: node for one in wanted for node in one.lineage()}
        self.attempts = 0

    def run(self) -> list[Run]:
        """All sums, in the order of the blocks."""
        n_blocks = self.wanted[0].n_blocks
        self.cluster.n_rounds += 1
        if n_blocks == 0:
            return []
        if self.cluster.is_outdated() or not self.cluster.workers:
            self._wait_for_workers()
        found: list[bytes] = []
        waiting = self._submit(list(range(n_blocks)))
        while waiting:
            bundle = waiting.pop(0)
            result = self._result(bundle)
            if result is None:
                waiting += self._submit(bundle.blocks)
            else:
                found.append(result)
        return joined_runs(found)

    def _result(self, bundle: Bundle) -> bytes | None:
        """The sums of a bundle; None if they have to be computed again."""
        while True:
            try:
                found = bundle.future.result(timeout=POLL)
            except TimeoutError as error:
                error.__traceback__ = None  # Dask keeps the error, which would keep all maps of this round
                if self._is_lost(bundle):
                    return None
                continue
            except UnboundLocalError:  # of Dask, when the time is over just as the result arrives
                if bundle.future.status == "error":
                    raise
                continue
            except (concurrent.futures.CancelledError, asyncio.CancelledError):
                self._wait_for_workers()
                return None
            except Exception as error:
                if type(error).__name__ not in ("KilledWorker", "FutureCancelledError", "CommClosedError"):
                    raise
                self._wait_for_workers()
                return None
            if found is None:  # a worker lacks something: tell it everything
                for address in bundle.groups:
                    self.cluster.told.pop(address, None)
            return found

    def _is_lost(self, bundle: Bundle) -> bool:
        """Whether a worker of the bundle is gone, or silent, before its task was done."""
        self._wait_for_workers()
        return any(address not in self.cluster.workers for address in bundle.groups)

    def _wait_for_workers(self) -> None:
        """Look at the workers; if there are none, wait until there are, or fail."""
        start = time.monotonic()
        while True:
            fault = "it has no workers"
            if self.cluster.client.status == "closed":  # it does not come back
                raise ClusterError("the client of this Dask cluster is closed: give a new one, Dask(client).")
            try:
                if self.cluster.client.status != "running":  # asking the scheduler would take half a minute
                    fault = f"its scheduler does not answer (the client is {self.cluster.client.status})"
                else:
                    self.cluster.look(self.patience)
                    if self.cluster.workers:
                        return
            except (OSError, TimeoutError, RuntimeError) as error:
                fault = f"its scheduler does not answer ({type(error).__name__})"
            if time.monotonic() - start > self.timeout:
                raise ClusterError(
                    f"the Dask cluster cannot go on: {fault}, for {self.timeout:g} seconds. Start workers "
                    "(or the scheduler) again and learn with resume= from a checkpoint."
                )
            time.sleep(POLL / 5)

    def _submit(self, blocks: list[int]) -> list[Bundle]:
        """Tasks for some blocks, in bundles."""
        self.attempts += 1
        if self.attempts > ATTEMPTS * max(1, len(self.cluster.workers)):
            raise ClusterError(
                f"the blocks {blocks[0]} to {blocks[-1]} were lost {self.attempts} times in one round: their "
                "workers die while they compute them, perhaps for lack of memory."
            )
        owner = self.cluster.assign(self.wanted[0].n_blocks)
        groups: dict[str, list[int]] = {}
        for block in blocks:
            groups.setdefault(owner[block], []).append(block)
        submit = _Submission(self, len(groups))
        tasks = [(address, own, submit(address, own)) for address, own in groups.items()]
        if len(tasks) <= FEW:
            return [Bundle(own, task, {address: task}) for address, own, task in tasks]
        size = math.isqrt(len(tasks) - 1) + 1
        bundles = []
        for first in range(0, len(tasks), size):
            part = tasks[first : first + size]
            every = sorted(block for _, own, _ in part for block in own)
            sums = [task for _, _, task in part]
            future = self.cluster.client.submit(join, sums, key=self.cluster.name("join"), pure=False)
            bundles.append(Bundle(every, future, {address: task for address, _, task in part}))
        return bundles


class _Submission:
    """Sends the tasks of one round, each with what its worker has not been told yet."""

    def __init__(self, round_: Round, n_tasks: int) -> None:
        self.round, self.n_tasks = round_, n_tasks
        self._messages: dict[Any, Any] = {}

    def __call__(self, address: str, blocks: list[int]) -> Any:
        import dask

        cluster, round_ = self.round.cluster, self.round
        told = cluster.told.setdefault(address, set())
        new = [node for key, node in round_.lineage.items() if key not in told]
        told.update(node.key for node in new)
        items = {}
        for node in round_.lineage.values():
            if node.items is not None:
                fresh = [block for block in blocks if (node.key, block) not in told]
                items.update({(node.key, block): node.items[block] for block in fresh})
                told.update((node.key, block) for block in fresh)
        message = Message(
            cluster.session,
            [node.message() for node in new],
            *cluster.news(address),
            [node.key for node in round_.wanted],
            [node.key for node in round_.kept],
        )
        # Signals that were given as an array travel inside their tasks once, and Dask would warn of it.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            return cluster.client.submit(
                run_group,
                self._sent(message),
                blocks,
                items,
                cluster.workers[address],
                workers=[address],
                key=cluster.name("round"),
                pure=False,
            )

    def _sent(self, message: Message) -> Any:
        """The message as an argument: itself, or, where all are large, a task that workers read from."""
        import cloudpickle  # functions of a script or notebook have no module that workers could import

        content = cloudpickle.dumps(message, protocol=5)
        if len(content) * self.n_tasks <= INLINE:
            return content
        if content not in self._messages:
            cluster = self.round.cluster
            name, submit = cluster.name("broadcast"), cluster.client.submit
            self._messages[content] = submit(bytes, content, key=name, pure=False)
        return self._messages[content]
