"""The workers of a cluster, from round to round: which there are, what each was sent, which blocks it has.

`rounds.py` updates a `Cluster` before it sends tasks, and while it waits for their results.
"""

import math
import time
from collections.abc import Sequence
from contextlib import suppress
from itertools import accumulate, count
from typing import Any

REFRESH = 2.0  # seconds between two requests for the list of workers, between rounds


class ClusterError(ConnectionError):
    """The cluster cannot go on: no workers, no scheduler, or a block whose workers are lost each time."""


class Cluster:
    """A client with the state of its workers."""

    def __init__(self, client: Any, session: str) -> None:
        self.client, self.session = client, session
        self.workers: dict[str, int] = {}  # address → threads, of those that answer
        self.stopped: set[str] = set()  # workers without a message to the scheduler for `patience`
        self.owner: dict[int, list[str]] = {}  # of every block, by the number of blocks
        self.sent: dict[str, set[Any]] = {}  # what each worker was sent: keys of nodes, and of items
        self.dropped_states: list[str] = []
        self.dropped_nodes: list[str] = []
        self.n_rounds = 0
        self._n_dropped_sent: dict[str, tuple[int, int]] = {}  # how much of both lists each worker was sent
        self._updated = -math.inf
        self._last_seen: dict[str, tuple[float, float]] = {}  # (by the scheduler, since when here)
        self._restarted: set[str] = set()
        self._request: Any = None
        self._numbers = count()

    def update(self, patience: float, limit: float) -> None:
        """Request the list of workers, within `limit` seconds, and see which of them are stopped."""
        info = self.client.sync(self.client.scheduler.identity, callback_timeout=limit)["workers"]
        now = time.monotonic()
        for address, worker in info.items():
            seen = worker["last_seen"]
            if address not in self._last_seen or self._last_seen[address][0] != seen:
                self._last_seen[address] = seen, now
                self.stopped.discard(address)
            elif now - self._last_seen[address][1] > patience:
                self.stopped.add(address)
        self.stopped &= set(info)
        self.workers = {address: w["nthreads"] for address, w in info.items() if address not in self.stopped}
        if self.workers:
            self._request = None
        for known in (self.sent, self._n_dropped_sent, self._last_seen):
            for address in [address for address in known if address not in info]:
                del known[address]
        self._updated = now

    def is_outdated(self) -> bool:
        """Whether it is time to request the list of workers again."""
        return time.monotonic() - self._updated > REFRESH

    def request_worker(self) -> None:
        """Leave a task waiting until there is a worker: an adaptive cluster starts none without."""
        if self._request is None:
            self._request = self.client.submit(abs, -1, key=self.name("request"), pure=False)

    def leave_thread_pool(self) -> None:
        """Give the thread free on which a task of this cluster runs: its rounds are tasks for all workers."""
        from distributed import secede

        # No task (ValueError), one that has left already (KeyError), or an asynchronous one (AttributeError).
        with suppress(ValueError, KeyError, AttributeError):
            secede()

    def restart_stopped(self, limit: float) -> None:
        """Have the scheduler restart workers that are stopped: it then computes again what only they hold.

        Dask itself does so after `distributed.scheduler.worker-ttl`, five minutes.
        """
        addresses = sorted(self.stopped - self._restarted)
        if addresses:
            self._restarted.update(addresses)
            self.client.sync(
                self.client.scheduler.restart_workers,
                workers=addresses,
                timeout=limit,
                wait_for_workers=False,
                on_error="return",
                stimulus_id=self.name("restart"),
                callback_timeout=limit,
            )

    def assign(self, n_blocks: int) -> list[str]:
        """The worker of every block: as before where it answers, the others evenly."""
        before = self.owner.get(n_blocks, [""] * n_blocks)
        self.owner[n_blocks] = assigned(before, self.workers)
        return self.owner[n_blocks]

    def dropped_since(self, address: str) -> tuple[list[str], list[str]]:
        """Nodes and states that were released since the last message to this worker."""
        nodes, states = self._n_dropped_sent.get(address, (0, 0))
        n_nodes, n_states = len(self.dropped_nodes), len(self.dropped_states)
        self._n_dropped_sent[address] = n_nodes, n_states
        return self.dropped_nodes[nodes:n_nodes], self.dropped_states[states:n_states]

    def send_dropped_again(self, address: str) -> None:
        """The last message to this worker may be lost: the next one lists all that was released."""
        self._n_dropped_sent.pop(address, None)

    def name(self, what: str) -> str:
        """A new key for a task."""
        return f"manifold_dl-{what}-{self.session}-{next(self._numbers)}"


def assigned(before: Sequence[str], workers: dict[str, int]) -> list[str]:
    """Blocks to workers in proportion to their threads, moving no more of them than necessary.

    Examples
    --------
    >>> assigned([""] * 6, {"a": 1, "b": 1})
    ['a', 'a', 'a', 'b', 'b', 'b']
    >>> assigned(["a", "a", "a", "b", "b", "b"], {"b": 1, "c": 1})
    ['c', 'c', 'c', 'b', 'b', 'b']
    """
    threads, n = sum(workers.values()), len(before)
    ends = [round(n * part / threads) for part in accumulate(workers.values())]
    places = {address: end - start for address, start, end in zip(workers, [0, *ends], ends, strict=False)}
    owner = list(before)
    for block, address in enumerate(owner):
        if places.get(address, 0) > 0:
            places[address] -= 1
        else:
            owner[block] = ""
    free = [address for address, n_places in places.items() for _ in range(n_places)]
    return [address or free.pop(0) for address in owner]
