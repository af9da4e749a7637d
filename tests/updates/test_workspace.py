"""The working copy of one update stage: what a set of atoms leaves behind, and what is accepted."""

import numpy as np
import pytest
from update_cases import D_, SCHEDULES, M, problem_data, unit

from manifold_dl.engines import Threads
from manifold_dl.manifolds import Spheres, feasible_set
from manifold_dl.problem.counts import count_evaluations
from manifold_dl.schedules import sweep
from manifold_dl.updates import SimCO
from manifold_dl.updates.ksvd import CompiledSweep
from manifold_dl.updates.workspace import Start, UpdateWorkspace


@pytest.mark.parametrize("schedule", SCHEDULES, ids=lambda schedule: type(schedule).__name__)
def test_the_residual_is_that_of_the_accepted_atoms_and_codes(schedule):
    Y, D, X = problem_data()
    workspace, settings = UpdateWorkspace(Y, D, X, Threads(1)), SimCO(schedule=schedule)
    rng = np.random.default_rng(1)
    for _ in range(3):
        for I in sweep(schedule, D_, rng, usage=workspace.usage):
            problem = workspace.problem(I, feasible_set(Spheres, M, len(I)), 0.1, settings)
            start = Start(workspace.dictionary[:, I], np.inf)  # any point is better
            workspace.accept(problem, unit(M, len(I), rng), start)
    expected = Y - workspace.dictionary @ workspace.codes()
    # A few dozen additions and subtractions of terms no larger than the signals.
    found = CompiledSweep(workspace).residual().T
    np.testing.assert_allclose(found, expected, atol=1e-13 * np.abs(Y).max())
    some = np.array([3, 4, 41, 80])
    found = CompiledSweep(workspace).residual(some).T
    np.testing.assert_allclose(found, expected[:, some], atol=1e-13 * np.abs(Y).max())


@pytest.mark.parametrize("atoms", [range(D_), [7, 2, 5]], ids=["all atoms", "three atoms"])
def test_a_point_above_the_start_is_refused_and_the_codes_become_optimal(atoms):
    Y, D, X = problem_data()
    workspace, I = UpdateWorkspace(Y, D, X, Threads(1)), np.array(atoms)
    problem = workspace.problem(I, feasible_set(Spheres, M, len(I)), 0.1, SimCO())
    start = workspace.start(I, problem, ())
    higher = next(
        point for point in (unit(M, len(I), seed) for seed in range(100)) if problem.cost(point) > start.cost
    )
    with count_evaluations() as counts:
        workspace.accept(problem, higher, start)
    assert (counts.sets, counts.improved, counts.refused) == (1, 0, 1)
    np.testing.assert_array_equal(workspace.dictionary, D)
    codes = workspace.codes()
    # Normal equations of the ridge problem: D_Iᵀ(Y − D X) = μ X_I on the support.
    gap = (D.T @ (Y - D @ codes) - 0.1 * codes.toarray())[I]
    used = X.astype(bool).toarray()[I]
    assert np.abs(gap[used]).max() < 1e-12 * np.linalg.norm(Y, axis=0).max()


def test_sums_over_codes_are_those_of_dense_matrices():
    Y, D, X = problem_data(n=5000)  # three blocks of signals
    workspace = UpdateWorkspace(Y, D, X, Threads(2))
    (gram, right), rows = workspace.normal_equations(), np.random.default_rng(0).standard_normal((D_, 4))
    dense = X.toarray()
    residual = (Y - D @ dense) @ dense.T
    np.testing.assert_allclose(right, residual.T, atol=1e-13 * np.abs(Y @ dense.T).max())
    # Sums of 5000 products in another order.
    np.testing.assert_allclose(gram, dense @ dense.T, atol=1e-13 * np.abs(gram).max())
    products = workspace.times_code_products(rows)
    np.testing.assert_allclose(products, dense @ dense.T @ rows, atol=1e-13 * np.abs(gram).max())
