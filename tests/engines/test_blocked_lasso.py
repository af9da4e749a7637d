"""Codes that follow by a penalty where an engine has the signals: the bits of signals in memory."""

import os
import signal

import dask.array as da
import numpy as np
import pytest
import scipy.sparse
from clusters import (
    at_round,
    local_cluster,
    problem_data,
    worker_processes,
)
from pymanopt.optimizers import ConjugateGradient

import manifold_dl as mdl
from manifold_dl.engines import Dask, Threads
from manifold_dl.engines.opening import open_observed
from manifold_dl.problem import penalized_problem
from manifold_dl.schedules import OneAtATime
from manifold_dl.updates import AtomSearch


@pytest.fixture(scope="module")
def client():
    with local_cluster(2) as client:
        yield client


def start(dtype=float):
    return mdl.manifolds.Spheres(16, 32).random_point(np.random.default_rng(0)).astype(dtype)


def descend(problem, dtype=float):
    """Where eight steps of a problem end, and the codes there: more passes than begin at the same codes."""
    optimizer = ConjugateGradient(line_searcher=mdl.WolfeSearch(), max_iterations=8, verbosity=0)
    point = optimizer.run(problem, initial_point=start(dtype)).point
    assert problem.counts.value + problem.counts.probe > 8
    return point, problem.codes(point)


def assert_same_pair(found, expected):
    np.testing.assert_array_equal(found[0], expected[0], strict=True)
    for part in ("data", "indices", "indptr"):
        np.testing.assert_array_equal(getattr(found[1], part), getattr(expected[1], part))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("kind", [None, "signals", "entries"])
def test_lasso_problem_gives_the_bits_of_an_array(client, tmp_path, dtype, kind):
    Y, _ = problem_data(dtype)
    rng, W = np.random.default_rng(1), None
    if kind is not None:
        W = rng.integers(0, 3, Y.shape[1] if kind == "signals" else Y.shape).astype(dtype)
    options = {"alpha": 0.1, "weights": W}
    expected = descend(mdl.lasso_problem(Y, 32, threads=1, **options), dtype)
    columns = da.from_array(Y, chunks=(16, 2500))
    assert_same_pair(descend(mdl.lasso_problem(columns, 32, engine=Dask(client), **options), dtype), expected)
    np.save(tmp_path / "rows.npy", Y.T)
    from_file = mdl.lasso_problem(tmp_path / "rows.npy", 32, engine=Threads(2, memory=0), **options)
    assert_same_pair(descend(from_file, dtype), expected)


def test_arrays_sent_to_a_cluster_and_hessian_products_have_the_same_bits(client):
    Y, D = problem_data()[0], start()
    E = np.random.default_rng(2).standard_normal(D.shape)
    here, there = (
        mdl.lasso_problem(Y, 32, alpha=0.1, mu=0.01, engine=on) for on in (Threads(1), Dask(client))
    )
    np.testing.assert_array_equal(here.euclidean_hessian(D, E), there.euclidean_hessian(D, E))
    assert here.piece(D) == there.piece(D)


class Ridge:
    """Codes in closed form: p(x) = ½‖x‖²."""

    def encode(self, signals, dictionary):
        return np.linalg.solve(
            dictionary.T @ dictionary + np.eye(dictionary.shape[1]), dictionary.T @ signals
        )

    def penalty(self, codes):
        return 0.5 * float((codes * codes).sum())


def test_the_penalty_of_any_coder_runs_from_a_file(tmp_path):
    Y, D = problem_data()[0], start()
    np.save(tmp_path / "rows.npy", Y.T)
    here = penalized_problem(Y, 32, Ridge(), threads=1)
    there = penalized_problem(tmp_path / "rows.npy", 32, Ridge(), engine=Threads(2, memory=0))
    assert here.cost(D) == there.cost(D)
    np.testing.assert_array_equal(here.euclidean_gradient(D), there.euclidean_gradient(D))


def test_a_worker_that_is_killed_changes_no_bit(client, monkeypatch):
    Y, _ = problem_data()
    columns = da.from_array(Y, chunks=(16, 2500))
    expected = descend(mdl.lasso_problem(Y, 32, alpha=0.1, threads=1))
    victim = worker_processes(client)[0]
    seen = at_round(monkeypatch, "fit_block", lambda: os.kill(victim, signal.SIGKILL), 10)
    assert_same_pair(descend(mdl.lasso_problem(columns, 32, alpha=0.1, engine=Dask(client))), expected)
    assert len(seen) >= 10  # the last passes begin with the codes of the ninth


@pytest.mark.parametrize("weighted", [False, True], ids=["", "weights"])
def test_an_update_by_the_lasso_gives_the_bits_of_an_array(client, weighted):
    Y, D = problem_data()[0], start()
    W = np.random.default_rng(1).integers(0, 3, Y.shape[1]).astype(float) if weighted else None
    X = mdl.Lasso(alpha=0.05).encode(Y, D)
    update = mdl.SimCO(codes=mdl.Lasso(alpha=0.05))
    expected = update(Y, D, X, weights=W)
    columns = da.from_array(Y, chunks=(16, 2500))
    assert_same_pair(mdl.SimCO(codes=update.codes, engine=Dask(client))(columns, D, X, weights=W), expected)


def test_learning_by_the_lasso_has_the_same_bits_on_any_engine_with_blocks(client, tmp_path):
    Y, options = problem_data()
    options |= {"coder": None, "update": mdl.SimCO(codes=mdl.Lasso(alpha=0.05))}
    np.save(tmp_path / "rows.npy", Y.T)
    one = mdl.learn_dictionary(tmp_path / "rows.npy", 32, engine=Threads(1, memory=0), **options)
    two = mdl.learn_dictionary(da.from_array(Y, chunks=(16, 2500)), 32, engine=Dask(client), **options)
    np.testing.assert_array_equal(one.dictionary, two.dictionary)
    np.testing.assert_array_equal(one.history.objective, two.history.objective)
    assert (one.codes.compute() != two.codes.compute()).nnz == 0
    # In memory the coder begins with the last codes: within its tolerance, 1e-6, the start decides.
    expected = mdl.learn_dictionary(Y, 32, threads=1, **options)
    np.testing.assert_allclose(one.dictionary, expected.dictionary, atol=1e-6)


@pytest.mark.parametrize(
    "update", [mdl.SimCO(codes=mdl.Lasso(0.1), schedule=OneAtATime()), AtomSearch()], ids=["single", "search"]
)
def test_what_needs_the_signals_in_memory_is_refused(tmp_path, update):
    Y, D = problem_data()[0], start()
    np.save(tmp_path / "rows.npy", Y.T)
    signals, _ = open_observed(tmp_path / "rows.npy", None, engine=Threads(1, memory=0))
    with pytest.raises(ValueError, match=r"moves single atoms|signals in memory"):
        update.begin()(signals, D, scipy.sparse.csc_array((32, Y.shape[1])))
