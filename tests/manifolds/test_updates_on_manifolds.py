"""Updates on every manifold: where they start, which subsets move, learning, and why norms are fixed."""

from types import SimpleNamespace

import numpy as np
import pytest
from documented_manifolds import MANIFOLDS, manifold_table
from pymanopt.manifolds import Stiefel as PymanoptStiefel
from pymanopt.optimizers import ParticleSwarm, SteepestDescent, TrustRegions

from manifold_dl import LBFGS, OMP, SimCO, WolfeSearch, learn_dictionary, update_problem
from manifold_dl.manifolds import (
    Columns,
    Euclidean,
    Lines,
    NonNegative,
    Orthonormal,
    Spheres,
    Subspace,
    ZeroMean,
)
from manifold_dl.schedules import OneAtATime


class Stay:
    """An optimizer that returns where it began."""

    def run(self, problem, *, initial_point):
        return SimpleNamespace(point=initial_point)


def off_the_manifold(seed=0, d=3):
    rng = np.random.default_rng(seed)
    Y = rng.standard_normal((4, 30))
    X = (np.arange(d)[:, None] != np.arange(30) % d) * rng.standard_normal((d, 30))
    return Y, 3 * rng.standard_normal((4, d)), X


@pytest.mark.parametrize("manifold", [name for name in MANIFOLDS if name != "Columns(Sphere)"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("codes", ["follow", "fixed"])
def test_an_update_of_any_dictionary_ends_on_the_manifold(manifold, dtype, codes):
    Y, D, X = (array.astype(dtype) for array in off_the_manifold())
    D_new, X_new = SimCO(manifold=MANIFOLDS[manifold], mu=0.1, codes=codes)(Y, D, X)
    assert D_new.dtype == X_new.dtype == dtype
    on = MANIFOLDS[manifold](*D.shape)
    np.testing.assert_allclose(on.closest(D_new), D_new, atol=1e-5)


@pytest.mark.parametrize("manifold", ["ZeroMean", "Subspace(basis)", "NonNegative"])
def test_sweep_over_single_atoms_ends_on_the_manifold_with_optimal_codes(manifold):
    """A sweep moves every atom to the manifold when its turn comes; its codes are optimal there."""
    Y, D, X = off_the_manifold()
    optimizer = SteepestDescent(line_searcher=WolfeSearch(), max_iterations=2, verbosity=0)
    update = SimCO(optimizer, manifold=MANIFOLDS[manifold], mu=0.0, schedule=OneAtATime())
    D_new, X_new = update(Y, D, X)
    on = MANIFOLDS[manifold](4, 3)
    np.testing.assert_allclose(on.closest(D_new), D_new, atol=1e-5)
    # The last atom's codes are a least-squares fit to what the others leave: the rest is orthogonal to it.
    users = X_new.toarray()[2] != 0
    np.testing.assert_allclose((D_new[:, 2] @ (Y - D_new @ X_new))[users], 0, atol=1e-12)


def test_start_on_the_manifold_is_unchanged_to_the_last_bit():
    for name, factory in MANIFOLDS.items():
        tiny = manifold_table.tiny_problem(name)
        D, _ = SimCO(Stay(), manifold=factory, mu=0.0)(tiny.signals, tiny.start, tiny.codes)
        np.testing.assert_array_equal(D, tiny.start, err_msg=name)


def test_codes_absorb_signs_and_norms_that_the_start_changes():
    """With fixed codes nothing refits them: a negative atom is turned over, and so are its codes."""
    D = -np.array([[0.6, 0.0], [0.8, 0.6], [0.0, 0.8]]) * [1, 2]
    X = np.array([[1.0, 2.0, 0.0], [0.0, 1.0, -1.0]])
    D_new, X_new = SimCO(Stay(), manifold=NonNegative, codes="fixed")(D @ X, D, X)
    assert D_new.min() > 0
    np.testing.assert_allclose(D_new @ X_new, D @ X, atol=1e-5)  # the floor of 1e-6


def test_zero_entries_of_the_start_can_become_positive():
    """Through the square map an exact zero has no gradient: from there it would stay for ever."""
    rng = np.random.default_rng(0)
    truth = NonNegative(4, 2).closest(np.array([[0.5, 0.1], [0.5, 0.7], [0.5, 0.7], [0.5, 0.1]]))
    X = rng.standard_normal((2, 40))
    start = np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0], [0.0, 0.0]]) / np.sqrt([3, 2])
    update = SimCO(TrustRegions(max_iterations=100, verbosity=0), manifold=NonNegative, mu=0.0)
    D, codes = update(truth @ X, start, X)
    assert np.sum((truth @ X - D @ codes) ** 2) < 1e-8 * np.sum((truth @ X) ** 2)
    stuck = update_problem(truth @ X, X, manifold=NonNegative)
    point = TrustRegions(max_iterations=100, verbosity=0).run(stuck, initial_point=start).point
    np.testing.assert_array_equal(point[3], 0)


def test_non_negative_minimum_may_have_zero_entries():
    """Signals from an atom with a negative entry: the best non-negative atom has a zero there."""
    atom = np.array([[0.8], [0.5], [-0.3]])
    Y = atom @ np.random.default_rng(1).standard_normal((1, 30))
    problem = update_problem(Y, np.ones((1, 30), dtype=bool), manifold=NonNegative)
    start = NonNegative(3, 1).random_point(2)
    expected = np.maximum(atom, 0) / np.linalg.norm(np.maximum(atom, 0))
    for optimizer in (TrustRegions(verbosity=0), LBFGS(verbosity=0, min_gradient_norm=1e-9)):
        point = optimizer.run(problem, initial_point=start).point
        # The entry goes to zero like a square, so its root need only be below 1e-3.
        np.testing.assert_allclose(point, expected, atol=1e-6)


def test_atoms_outside_the_subset_do_not_move():
    Y, D, X = off_the_manifold()
    D = Spheres(4, 3).closest(D)
    new, _ = SimCO(manifold=Spheres, mu=0.1, schedule=[[0, 2]])(Y, D, X)
    np.testing.assert_array_equal(new[:, 1], D[:, 1])
    assert not np.allclose(new[:, [0, 2]], D[:, [0, 2]])


def test_subsets_of_orthonormal_atoms_are_refused():
    Y, D, X = off_the_manifold()
    with pytest.raises(ValueError, match=r"2 of 3 cannot move without the rest.*AllAtoms"):
        SimCO(manifold=Orthonormal, schedule=[[0, 2]])(Y, D, X)
    with pytest.raises(ValueError, match="1 of 3 cannot move without the rest"):
        update_problem(Y, X, manifold=Orthonormal, atoms=[1], dictionary=D)


def test_union_of_orthonormal_bases_is_updated_block_by_block():
    Y, D, X = off_the_manifold(d=6)
    D[:, :3], D[:, 3:] = Orthonormal(4, 3).closest(D[:, :3]), Orthonormal(4, 3).closest(D[:, 3:])
    new, _ = SimCO(manifold=PymanoptStiefel, mu=0.1, schedule=[[0, 1, 2], [3, 4, 5]])(Y, D, X)
    for block in (new[:, :3], new[:, 3:]):
        np.testing.assert_allclose(block.T @ block, np.eye(3), atol=1e-13)


def test_overcomplete_orthonormal_dictionaries_are_refused_by_the_update():
    Y, D, X = off_the_manifold(d=6)
    with pytest.raises(ValueError, match="k=6 atoms cannot be orthonormal in m=4"):
        SimCO(manifold=Orthonormal, mu=0.1)(Y, D, X)  # a ridge, for the supports have more than m atoms


@pytest.mark.parametrize("manifold", MANIFOLDS)
def test_learning_reduces_the_error_on_every_manifold(manifold):
    tiny = manifold_table.tiny_problem(manifold, seed=7)
    result = learn_dictionary(
        tiny.signals,
        n_atoms=3,
        coder=OMP(sparsity=2),
        update=SimCO(manifold=MANIFOLDS[manifold]),
        max_iter=5,
        init=tiny.start,
        rng=0,
    )
    assert np.sum((tiny.signals - result.dictionary @ result.codes) ** 2) < 0.3 * np.sum(tiny.signals**2)
    on = MANIFOLDS[manifold](4, 3)
    if hasattr(on, "closest"):
        np.testing.assert_allclose(on.closest(result.dictionary), result.dictionary, atol=1e-5)


def test_particle_swarm_depends_only_on_its_seeds():
    """Pymanopt's swarm draws from the global generator; the population it begins with is ours."""
    tiny = manifold_table.tiny_problem("ZeroMean")
    results = []
    saved = np.random.get_state()  # noqa: NPY002
    for _ in range(2):
        np.random.seed(1)  # noqa: NPY002
        update = SimCO(ParticleSwarm(max_iterations=3, population_size=5), manifold=ZeroMean, mu=0.0)
        results.append(update(tiny.signals, tiny.start, tiny.codes, rng=3)[0])
    np.random.set_state(saved)  # noqa: NPY002
    np.testing.assert_array_equal(*results)


def test_without_fixed_norms_a_ridge_makes_atoms_grow_and_codes_vanish():
    """The ridge pays for codes, so atoms grow instead. On the spheres the same run comes to rest."""
    rng = np.random.default_rng(0)
    Y, D, X = off_the_manifold()
    D = Spheres(4, 3).closest(D)
    norms, sizes = {}, {}
    for manifold in (Spheres, Euclidean):
        problem = update_problem(Y, X, manifold=manifold, mu=0.1)
        norms[manifold], sizes[manifold] = [], []
        for iterations in (10, 100, 1000):
            optimizer = LBFGS(max_iterations=iterations, min_gradient_norm=1e-12, verbosity=0)
            point = optimizer.run(problem, initial_point=D).point
            norms[manifold].append(np.linalg.norm(point, axis=0).min())
            sizes[manifold].append(np.linalg.norm(problem.codes(point).toarray()))
    np.testing.assert_allclose(norms[Spheres], 1, atol=1e-12)
    assert sizes[Spheres][2] == pytest.approx(sizes[Spheres][1], rel=1e-6)
    growing, shrinking = norms[Euclidean], sizes[Euclidean]
    assert 2 < growing[0] < growing[1] and growing[1] > 10
    assert shrinking[0] > shrinking[1] and shrinking[1] < 0.1 * sizes[Spheres][1]

    # And so the ridge does nothing: every dictionary, made long enough, costs no more than without one.
    free = update_problem(Y, X, manifold=Euclidean)
    ridge = update_problem(Y, X, manifold=Euclidean, mu=0.1)
    point = Spheres(4, 3).random_point(rng)
    excess = [ridge.cost(c * point) - free.cost(point) for c in (1.0, 10.0, 100.0, 1000.0)]
    assert np.all(np.diff(excess) < 0)
    assert excess[-1] < 1e-4 * excess[0]  # like 1/c²: 1e-6, where the ridge is small from the beginning


def test_without_a_ridge_the_norms_are_arbitrary():
    Y, D, X = off_the_manifold()
    problem = update_problem(Y, X, manifold=Euclidean)
    for scales in ([1, 10, 0.1], [1e-3, 1, 1e3]):
        assert problem.cost(D * scales) == pytest.approx(problem.cost(D), rel=1e-10)
        assert np.vdot(problem.riemannian_gradient(D), D * scales) == pytest.approx(0, abs=1e-8)


def test_an_update_on_euclidean_does_not_normalise():
    Y, D, X = off_the_manifold()
    new, codes = SimCO(manifold=Euclidean, mu=0.0)(Y, D, X)
    norms = np.linalg.norm(D, axis=0)
    assert np.all(np.abs(np.linalg.norm(new, axis=0) - 1) > 0.5) and np.all(norms > 2)
    assert np.sum((Y - new @ codes) ** 2) < np.sum((Y - D @ X) ** 2)


def test_all_manifolds_are_public():
    import manifold_dl as mdl

    for name in (Columns, Euclidean, Lines, NonNegative, Orthonormal, Spheres, Subspace, ZeroMean):
        assert getattr(mdl.manifolds, name.__name__) is name
