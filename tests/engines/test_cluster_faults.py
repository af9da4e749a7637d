"""Workers that are killed, stopped or started again while they compute: the same bits, or an error."""

import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack, suppress

import dask.array as da
import numpy as np
import pytest
from clusters import (
    assert_same_bits,
    at_round,
    local_cluster,
    problem_data,
    worker_processes,
)
from distributed import Client, wait

import manifold_dl as mdl
from manifold_dl.engines import ClusterError, Dask, rounds
from manifold_dl.learning.result import Reason


@pytest.fixture(scope="module")
def opened():
    with ExitStack() as stack:
        yield stack, []


@pytest.fixture
def client(opened):
    """Two workers: of a new cluster where a nanny, on a busy machine, did not start its worker again."""
    stack, clients = opened
    if clients:
        try:
            clients[-1].wait_for_workers(2, timeout=20)
        except TimeoutError:
            clients.clear()
    if not clients:
        clients.append(stack.enter_context(local_cluster(2)))
    return clients[-1]


@pytest.fixture(scope="module")
def expected():
    Y, options = problem_data()
    return mdl.learn_dictionary(Y, 32, threads=1, **options)


def learn(client, patience=20.0):
    Y, options = problem_data()
    return mdl.learn_dictionary(Y, 32, engine=Dask(client, patience=patience), **options)


@pytest.mark.parametrize(
    "function, number",
    [("statistics_block", 1), ("fit_block", 1), ("fit_block", 3), ("refit_block", 2)],
    ids=["loading", "coding", "fit", "probe"],
)
def test_a_worker_that_is_killed_changes_no_bit(client, expected, monkeypatch, function, number):
    victim = worker_processes(client)[0]
    seen = at_round(monkeypatch, function, lambda: os.kill(victim, signal.SIGKILL), number)
    found = learn(client)
    assert len(seen) >= number
    assert_same_bits(found, expected)


def test_a_worker_that_is_killed_before_its_sums_are_fetched_changes_no_bit(client, expected, monkeypatch):
    worker_processes(client)  # both have been started
    processes, fetch, killed = client.run(os.getpid), rounds.Round._result, []

    def kill_and_fetch(self, bundle):
        if self.wanted[0].function.__name__ == "fit_block" and not killed:
            wait(bundle.future)
            (address,) = bundle.addresses
            killed.append(os.kill(processes[address], signal.SIGKILL))
        return fetch(self, bundle)

    monkeypatch.setattr(rounds.Round, "_result", kill_and_fetch)
    assert_same_bits(learn(client), expected)
    assert killed


@pytest.mark.parametrize("victim", [0, 1])
def test_a_worker_that_is_killed_with_a_broadcast_changes_no_bit(client, expected, monkeypatch, victim):
    monkeypatch.setattr(rounds, "INLINE", 0)  # the first worker is sent every message, the others fetch it
    pid = worker_processes(client)[victim]
    seen = at_round(monkeypatch, "fit_block", lambda: os.kill(pid, signal.SIGKILL), 2)
    assert_same_bits(learn(client), expected)
    assert len(seen) >= 2


def test_a_worker_that_is_killed_while_codes_are_collected_changes_no_bit(client, expected, monkeypatch):
    victim = worker_processes(client)[0]
    seen = at_round(monkeypatch, "state_block", lambda: os.kill(victim, signal.SIGKILL))
    assert_same_bits(learn(client), expected)
    assert seen


MINI_BATCHES = {"minibatches": mdl.MiniBatches(size=1024, full=0.4)}
WEIGHTS = {"weights": np.linspace(0.0, 2.0, 9000)}


@pytest.mark.parametrize(
    "change, function",
    [(MINI_BATCHES, "take_block"), (MINI_BATCHES, "fit_block"), (WEIGHTS, "fit_block")],
    ids=["mini-batches", "full iterations after mini-batches", "weights"],
)
def test_a_kill_under_mini_batches_or_weights_changes_no_bit(client, monkeypatch, change, function):
    Y, options = problem_data()
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options | change)
    victim = worker_processes(client)[0]
    # The second: the first signals that are taken are the initial dictionary.
    seen = at_round(monkeypatch, function, lambda: os.kill(victim, signal.SIGKILL), 2)
    assert_same_bits(mdl.learn_dictionary(Y, 32, engine=Dask(client), **options | change), expected)
    assert len(seen) >= 2


def test_three_kills_in_a_row_change_no_bit(client, expected, monkeypatch):
    killed = []

    def kill_another():
        victim = next(pid for pid in worker_processes(client) if pid not in killed)
        killed.append(victim)
        os.kill(victim, signal.SIGKILL)

    for function in ("fit_block", "products_block", "refit_block"):
        at_round(monkeypatch, function, kill_another, 2)
    assert_same_bits(learn(client), expected)
    assert len(killed) == 3


def test_all_workers_killed_at_once_change_no_bit(client, expected, monkeypatch):
    victims = worker_processes(client)
    at_round(monkeypatch, "fit_block", lambda: [os.kill(pid, signal.SIGKILL) for pid in victims], 2)
    assert_same_bits(learn(client), expected)


@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize(
    "settings",
    [{}, {"INLINE": 0}, {"FEW": 1}],
    ids=["small messages", "large messages", "sums added on workers"],
)
def test_the_blocks_of_a_stopped_worker_are_sent_to_others(client, expected, monkeypatch, settings, victim):
    pid = worker_processes(client)[victim]
    for name, value in settings.items():
        monkeypatch.setattr(rounds, name, value)
    # Before the tasks of a round are sent: none of them, no broadcast and no join can be done by this worker.
    seen = at_round(monkeypatch, "fit_block", lambda: os.kill(pid, signal.SIGSTOP), 2, before=True)
    try:
        assert_same_bits(learn(client, patience=2.0), expected)
    finally:
        os.kill(pid, signal.SIGCONT)
    assert len(seen) >= 2


def test_chunks_on_a_stopped_worker_are_computed_again(client, expected, monkeypatch):
    Y, options = problem_data()
    pid = worker_processes(client)[0]
    persisted = client.persist(da.from_array(Y, chunks=(16, 2048)))
    wait(persisted)
    at_round(monkeypatch, "statistics_block", lambda: os.kill(pid, signal.SIGSTOP), before=True)
    try:
        found = mdl.learn_dictionary(persisted, 32, engine=Dask(client, patience=2.0), **options)
        assert_same_bits(found, expected)
    finally:
        with suppress(ProcessLookupError):  # the process was replaced
            os.kill(pid, signal.SIGCONT)


@pytest.fixture
def mortal_cluster(tmp_path):
    """A scheduler and two workers that nothing starts again: (client, scheduler, workers)."""
    file, quiet = tmp_path / "scheduler.json", {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    dask = [sys.executable, "-m", "dask"]
    common = ["--scheduler-file", str(file), "--no-dashboard"]
    processes = [subprocess.Popen([*dask, "scheduler", "--port", "0", *common], **quiet)]
    for _ in range(2):
        processes.append(
            subprocess.Popen([*dask, "worker", "--no-nanny", "--nthreads", "1", *common], **quiet)
        )
    client = Client(scheduler_file=str(file))
    try:
        client.wait_for_workers(2)
        yield client, processes[0], processes[1:]
    finally:
        for process in processes:
            process.kill()
            process.wait()
        client.close(timeout=1)


@pytest.mark.parametrize(
    "gone, kind",
    [("workers", signal.SIGKILL), ("scheduler", signal.SIGKILL), ("scheduler", signal.SIGSTOP)],
    ids=["workers killed", "scheduler killed", "scheduler stopped"],
)
def test_a_cluster_that_is_gone_is_an_error_with_the_result_until_then(
    mortal_cluster, monkeypatch, gone, kind
):
    client, scheduler, workers = mortal_cluster
    Y, options = problem_data()
    victims, times = workers if gone == "workers" else [scheduler], []

    def end():
        times.append(time.monotonic())
        for process in victims:
            process.send_signal(kind)

    at_round(monkeypatch, "fit_block", end, 8)  # iteration 1
    with pytest.raises(ClusterError, match=r"no workers|scheduler does not answer") as caught:
        mdl.learn_dictionary(Y, 32, engine=Dask(client, timeout=3.0), **options)
    # Promised after `timeout`. The rest is for a busy machine: the round before, and the codes of the result.
    assert time.monotonic() - times[0] < 3.0 + 30.0
    partial = caught.value.partial
    assert partial.reason is Reason.FAILED and len(partial.history) == 1
    first = mdl.learn_dictionary(
        Y, 32, threads=1, **options | {"max_iter": 3, "callbacks": [lambda step: True]}
    )
    np.testing.assert_array_equal(partial.dictionary, first.dictionary)
    assert (partial.codes != first.codes).nnz == 0


def test_a_client_that_is_closed_is_an_error_at_once():
    Y, options = problem_data()
    with local_cluster(1) as client:
        engine = Dask(client, timeout=200.0)
    with pytest.raises(ClusterError, match="closed"):
        mdl.learn_dictionary(Y, 32, engine=engine, **options)


def test_a_file_that_is_gone_leaves_the_result_until_then(client, tmp_path):
    Y, options = problem_data()
    np.save(tmp_path / "rows.npy", np.ascontiguousarray(Y.T))

    def remove_and_kill(step):
        if step.iteration == 0:
            (tmp_path / "rows.npy").unlink()
            os.kill(worker_processes(client)[0], signal.SIGKILL)

    options |= {"callbacks": [remove_and_kill]}
    with pytest.raises(Exception, match=r"rows\.npy") as caught:
        mdl.learn_dictionary(tmp_path / "rows.npy", 32, engine=Dask(client), **options)
    assert len(caught.value.partial.history) == 1
