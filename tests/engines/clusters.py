"""Clusters of real processes for tests, and what is learned on them."""

import os
from contextlib import contextmanager

import dask
import numpy as np
from distributed import Client, LocalCluster

import manifold_dl as mdl
from manifold_dl.engines import rounds

LIMIT = 300  # seconds for one test, on a busy machine: a run that hangs fails


@contextmanager
def local_processes(n_workers):
    """A cluster of so many processes on this machine."""
    options = {"threads_per_worker": 1, "dashboard_address": ":0", "silence_logs": 50}
    # After 15 seconds a cluster gives a killed worker up for lost: a busy machine needs longer to start one.
    patient = dask.config.set({"distributed.deploy.lost-worker-timeout": f"{LIMIT}s"})
    with patient, LocalCluster(n_workers=n_workers, **options) as cluster:
        yield cluster


@contextmanager
def local_cluster(n_workers):
    """A client of such a cluster."""
    with local_processes(n_workers) as cluster, Client(cluster) as client:
        yield client


def problem_data(dtype=float, n=9000):
    """Signals in five blocks, and the arguments of a short run."""
    Y = mdl.datasets.synthetic(16, 32, n, sparsity=3, snr_db=20, rng=0).signals.astype(dtype)
    update = mdl.SimCO(mu=0.05)
    options = {"coder": mdl.OMP(sparsity=3), "update": update, "max_iter": 3, "tol": 0, "rng": 0}
    return Y, options


def assert_same_bits(found, expected):
    """Dictionary, codes and history of two results."""
    codes = found.codes if hasattr(found.codes, "indptr") else found.codes.compute()
    np.testing.assert_array_equal(found.dictionary, expected.dictionary, strict=True)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(codes, part), getattr(expected.codes, part))
    assert codes.dtype == expected.codes.dtype
    np.testing.assert_array_equal(found.history.loss, expected.history.loss)
    np.testing.assert_array_equal(found.history.objective, expected.history.objective)
    assert found.explained == expected.explained


def worker_processes(client):
    """The process numbers of two workers that are alive: one that was just killed does not answer."""
    while True:
        client.wait_for_workers(2)
        answers = client.run(os.getpid, on_error="ignore").values()
        if len(found := sorted(pid for pid in answers if pid is not None)) >= 2:
            return found


def at_round(monkeypatch, function, act, number=1, before=False):
    """Call `act()` right after, or before, the tasks of the number-th round that runs a function are sent."""
    submit, seen = rounds.Round._submit, []

    def submit_and_act(self, blocks):
        is_named = self.wanted[0].function.__name__ == function
        seen.extend([function] * is_named)
        is_now = is_named and len(seen) == number
        if is_now and before:
            act()
        bundles = submit(self, blocks)
        if is_now and not before:
            act()
        return bundles

    monkeypatch.setattr(rounds.Round, "_submit", submit_and_act)
    return seen
