"""One round on a cluster: a task for every worker, sent to others where a worker is lost or stopped.

A worker that is lost: tasks pinned to its address would never run, so its blocks are sent to the others. The
same holds for the worker that has the broadcast of a round. A worker that is new has no state: its task
returns None, and it is sent everything. A worker that is stopped: when the scheduler has had no message from
it for `patience` seconds, its blocks are sent to the others, and it gets none until it answers. All workers,
or the scheduler, do not answer: after `timeout` seconds there is a `ClusterError`.
"""

import asyncio
import concurrent.futures
import math
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from manifold_dl.engines.cluster import Cluster, ClusterError
from manifold_dl.engines.worker import Message, Run, join, joined_runs, run_group

POLL = 0.5  # seconds between two requests for the list of workers, while a round is running
INLINE = 8 * 2**20  # bytes of one round that are sent inside its tasks; more go from worker to worker
FEW = 8  # sums of so many workers are fetched one by one; those of more are added on the workers first
ATTEMPTS = 12  # a block whose tasks are lost so often is probably the reason why its workers are


@dataclass
class Bundle:
    """Some blocks whose sums are fetched together: those of one worker, or of several."""

    blocks: list[int]
    future: Any
    tasks: list[Any]  # of its workers, with their sums
    addresses: set[str]  # of all workers that the future needs
    fetching: Any = None

    def result(self, client: Any, timeout: float) -> bytes | None:
        """The sums, if they arrive within `timeout` seconds. They are fetched once, in however many calls.

        The timeout of `Future.result` cancels fetching. Where that happens before the first step of it, on a
        busy machine, Dask waits for what was cancelled whenever this client fetches something again.
        """
        return client.sync(self._fetched, client, callback_timeout=timeout)

    async def _fetched(self, client: Any) -> bytes | None:
        if self.fetching is None:
            self.fetching = asyncio.ensure_future(client.gather(self.future, asynchronous=True))
            # Read the error where nobody waits for it any more: asyncio would report it otherwise.
            self.fetching.add_done_callback(lambda task: task.cancelled() or task.exception())
        return await asyncio.shield(self.fetching)


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
        self.reads_futures = any(
            hasattr(item, "key") and hasattr(item, "client")
            for node in self.lineage.values()
            for item in node.items or ()
        )

    def run(self) -> list[Run]:
        """All sums, in the order of the blocks."""
        n_blocks = self.wanted[0].n_blocks
        self.cluster.n_rounds += 1
        self.cluster.leave_thread_pool()
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
                found = bundle.result(self.cluster.client, POLL)
            except TimeoutError as error:
                error.__traceback__ = None  # Dask keeps the error, which would keep all maps of this round
                if self._is_lost(bundle):
                    return None
                continue
            except (concurrent.futures.CancelledError, asyncio.CancelledError):
                self._wait_for_workers()
                return None
            except Exception as error:
                # Where fetching is cancelled, as by a client that closes, Dask has no result to return.
                is_cancelled = isinstance(error, UnboundLocalError) and bundle.future.status != "error"
                names = ("KilledWorker", "FutureCancelledError", "CommClosedError")
                if not is_cancelled and type(error).__name__ not in names:
                    raise
                self._wait_for_workers()
                return None
            if found is None:  # a worker lacks something: it is sent everything
                for address in bundle.addresses:
                    self.cluster.sent.pop(address, None)
            return found

    def _is_lost(self, bundle: Bundle) -> bool:
        """Whether a worker that the bundle needs is gone, or stopped, before its task was done."""
        self._wait_for_workers()
        if self.reads_futures and self.cluster.stopped:
            with suppress(OSError, TimeoutError):  # what a user has persisted may be on these workers alone
                self.cluster.restart_stopped(self.timeout)
        if bundle.addresses <= set(self.cluster.workers):
            return False
        for address in bundle.addresses:
            self.cluster.send_dropped_again(address)
        return True

    def _wait_for_workers(self) -> None:
        """Update the list of workers; if there are none, wait until there are, or fail."""
        start = time.monotonic()
        while True:
            fault = "it has no workers"
            if self.cluster.client.status == "closed":  # it does not come back
                raise ClusterError("the client of this Dask cluster is closed: give a new one, Dask(client).")
            try:
                if self.cluster.client.status != "running":  # a request would take half a minute to fail
                    fault = f"its scheduler does not answer (the client is {self.cluster.client.status})"
                else:
                    left = self.timeout - (time.monotonic() - start)
                    self.cluster.update(self.patience, limit=max(left, POLL))
                    if self.cluster.workers:
                        return
                    self.cluster.request_worker()
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
                "workers are killed while they compute them, perhaps for lack of memory."
            )
        owner = self.cluster.assign(self.wanted[0].n_blocks)
        groups: dict[str, list[int]] = {}
        for block in blocks:
            groups.setdefault(owner[block], []).append(block)
        submit = _Submission(self, len(groups))
        bundles = [submit(address, own) for address, own in groups.items()]
        if len(bundles) <= FEW:
            return bundles
        size = math.isqrt(len(bundles) - 1) + 1
        return [self._joined(bundles[first : first + size]) for first in range(0, len(bundles), size)]

    def _joined(self, bundles: list[Bundle]) -> Bundle:
        """Several bundles as one, whose sums are added on the worker of the first."""
        address = min(bundles[0].addresses)
        blocks = sorted(block for bundle in bundles for block in bundle.blocks)
        tasks = [bundle.future for bundle in bundles]
        future = self.cluster.client.submit(
            join, tasks, workers=[address], key=self.cluster.name("join"), pure=False
        )
        return Bundle(blocks, future, tasks, {address}.union(*(bundle.addresses for bundle in bundles)))


class _Submission:
    """Sends the tasks of one round, each with what its worker was not sent before."""

    def __init__(self, round_: Round, n_tasks: int) -> None:
        self.round, self.n_tasks = round_, n_tasks
        self._broadcasts: dict[bytes, tuple[Any, str]] = {}  # task and worker of large messages

    def __call__(self, address: str, blocks: list[int]) -> Bundle:
        import dask

        cluster, round_ = self.round.cluster, self.round
        sent = cluster.sent.setdefault(address, set())
        new = [node for key, node in round_.lineage.items() if key not in sent]
        sent.update(node.key for node in new)
        items = {}
        for node in round_.lineage.values():
            if node.items is not None:
                fresh = [block for block in blocks if (node.key, block) not in sent]
                items.update({(node.key, block): node.items[block] for block in fresh})
                sent.update((node.key, block) for block in fresh)
        message = Message(
            cluster.session,
            [node.message() for node in new],
            *cluster.dropped_since(address),
            [node.key for node in round_.wanted],
            [node.key for node in round_.kept],
        )
        # Large dictionaries, and signals that were given as an array, are sent once: Dask would warn of it.
        with dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 TB"}):
            content, holder = self._argument(message, address)
            task = cluster.client.submit(
                run_group,
                content,
                blocks,
                items,
                cluster.workers[address],
                workers=[address],
                key=cluster.name("round"),
                pure=False,
            )
        return Bundle(blocks, task, [task], {address, holder})

    def _argument(self, message: Message, address: str) -> tuple[Any, str]:
        """The message as an argument of the task for a worker, and the worker that has it.

        Small messages are sent as they are. Where all are large, the first worker is sent them in a task of
        their own, from which the others fetch them.
        """
        import cloudpickle  # functions of a script or notebook have no module that workers could import

        content = cloudpickle.dumps(message, protocol=5)
        if len(content) * self.n_tasks <= INLINE:
            return content, address
        if content not in self._broadcasts:
            cluster = self.round.cluster
            name, submit = cluster.name("broadcast"), cluster.client.submit
            task = submit(bytes, content, workers=[address], key=name, pure=False)
            self._broadcasts[content] = task, address
        return self._broadcasts[content]
