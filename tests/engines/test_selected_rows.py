"""Signals by their numbers, from files: the right ones, and no more is read than they need."""

import os
import tracemalloc

import numpy as np
import pytest
from clusters import problem_data

import manifold_dl as mdl
from manifold_dl.engines import Dask, Threads
from manifold_dl.engines.opening import open_observed, open_signals
from manifold_dl.learning import batch_passes, initialization


def test_a_pass_over_mini_batches_announces_the_bytes_that_it_reads(tmp_path, monkeypatch):
    rows = np.random.default_rng(0).standard_normal((65_536, 8)).astype(np.float32)
    np.save(tmp_path / "rows.npy", rows)
    signals = open_signals(tmp_path / "rows.npy", engine=Threads(2, memory=0))
    announced = []
    monkeypatch.setattr(os, "posix_fadvise", lambda file, start, size, advice: announced.append(size))
    monkeypatch.setattr(batch_passes, "FETCHED", 4096)  # sixteen rounds
    order = order_of(len(rows))
    for blocks, Y, _ in batch_passes._batches(order, signals, None):
        np.testing.assert_array_equal(Y[:, :1024].T, rows[1024 * blocks[0] :][:1024])
    assert 0 < sum(announced) <= 2 * rows.nbytes


@pytest.mark.parametrize("weighted", [False, True], ids=["mapped", "computed from them"])
def test_signals_are_taken_by_their_numbers_from_files(tmp_path, weighted):
    Y, numbers = problem_data()[0], np.array([8999, 3, 5000, 4, 4095, 2048])
    np.save(tmp_path / "rows.npy", np.ascontiguousarray(Y.T))
    weights = np.random.default_rng(0).integers(0, 2, Y.shape) if weighted else None
    engine = Threads(1, memory=0)
    signals, found = open_observed(tmp_path / "rows.npy", weights, engine=engine)
    expected = Y if weights is None else Y * weights
    np.testing.assert_array_equal(signals.take(numbers), expected.T[numbers])
    if weighted:
        np.testing.assert_array_equal(found.take(numbers), weights.T[numbers])
    assert signals.take(np.zeros(0, int)).shape == (0, 16)


def test_the_numbers_of_mini_batches_are_those_of_one_group():
    class Counted:
        shape = 1, 2**21

        def take(self, numbers):
            return np.zeros((len(numbers), 1), np.float32)

    tracemalloc.start()
    try:
        n = sum(Y.shape[1] for _, Y, _ in batch_passes._batches(order_of(2**21), Counted(), None))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert n == 2**21
    # A group has 65,536 numbers of 8 bytes, and a few copies of them; all numbers would be 16 MiB.
    assert peak < 8 * 2**20


def order_of(n_signals):
    return mdl.MiniBatches().order(n_signals, 0)


def test_of_many_signals_the_first_atoms_are_drawn_by_number(client, tmp_path, monkeypatch):
    monkeypatch.setattr(initialization, "PERMUTED", 256)
    Y = problem_data()[0]
    np.save(tmp_path / "rows.npy", np.ascontiguousarray(Y.T))
    on_disk = open_signals(tmp_path / "rows.npy", engine=Threads(1, memory=0))
    D, again, other = (initialization.initial_dictionary(Y, 32, "data", rng=seed) for seed in (0, 0, 1))
    cosines = (Y / np.linalg.norm(Y, axis=0)).T @ D
    # Every atom is a signal, divided by its norm with an error of some roundings; no two are the same.
    np.testing.assert_allclose(cosines.max(axis=0), 1, rtol=1e-14)
    assert len(set(cosines.argmax(axis=0).tolist())) == 32
    np.testing.assert_array_equal(D, again)
    assert not np.array_equal(D, other)
    for signals in (on_disk, open_signals(Y, engine=Dask(client))):
        np.testing.assert_array_equal(initialization.initial_dictionary(signals, 32, "data", rng=0), D)


def test_drawn_numbers_are_distinct_and_end(monkeypatch):
    monkeypatch.setattr(initialization, "PERMUTED", 256)
    numbers = list(initialization._distinct_numbers(300, np.random.default_rng(0)))
    assert len(numbers) == len(set(numbers)) == 256 and min(numbers) >= 0 and max(numbers) < 300
