"""What an update must not depend on: order and signs of signals and atoms, the axes, codes that follow.

Each run of an update is compared with a run on transformed data. The transformed run meets other rounding
errors only, so the dictionaries agree once the transformation is undone.
"""

import numpy as np
import pytest
import scipy.sparse

from manifold_dl import KSVD, MOD, FixedSupport, SimCO, update_problem
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import ksvd as compiled_ksvd
from manifold_dl.kernels.reduced import reference_ksvd
from manifold_dl.manifolds import Spheres

M, D_, N = 6, 9, 50


def draw(seed, n_empty=0, n=N):
    """Signals with noise, a start, and codes on supports of one to three atoms; some of them empty."""
    rng = np.random.default_rng(seed)
    X = np.zeros((D_, n))
    for j in range(n_empty, n):
        atoms = rng.choice(D_, rng.integers(1, 4), replace=False)
        X[atoms, j] = rng.standard_normal(len(atoms))
    order = rng.permutation(n)
    X = X[:, order]
    Y = Spheres(M, D_).random_point(rng) @ X + 0.1 * rng.standard_normal((M, n))
    # Not too far from the truth: where two minima are equally near, rounding chooses between them.
    return Y, Spheres(M, D_).random_point(rng), scipy.sparse.csc_array(X)


RULES = {
    "SimCO": lambda order: SimCO(mu=0.1),
    "SimCO without a ridge": lambda order: SimCO(mu=0.0),
    "SimCO in blocks": lambda order: SimCO(mu=0.1, schedule=[order[:4], order[4:]]),
    "SimCO, fixed codes": lambda order: SimCO(codes="fixed"),
    "K-SVD": lambda order: KSVD(schedule=[[i] for i in order]),
    "K-SVD, power": lambda order: KSVD("power", schedule=[[i] for i in order]),
    "MOD": lambda order: MOD(),
}


def transformations(rng):
    """Name, and functions from (Y, D, X) to transformed data and from the new dictionary back."""
    signals, atoms = rng.permutation(N), rng.permutation(D_)
    back = np.argsort(atoms)
    signs, flips = rng.choice([-1.0, 1.0], D_), rng.choice([-1.0, 1.0], N)
    Q = np.linalg.qr(rng.standard_normal((M, M)))[0]
    same = np.arange(D_)
    diagonal = scipy.sparse.diags_array
    yield "order of the signals", lambda Y, D, X: (Y[:, signals], D, X[:, signals]), lambda D: D, same
    yield "order of the atoms", lambda Y, D, X: (Y, D[:, atoms], X[atoms]), lambda D: D[:, back], back
    yield "signs of the atoms", lambda Y, D, X: (Y, D * signs, diagonal(signs) @ X), lambda D: D * signs, same
    yield "signs of the signals", lambda Y, D, X: (Y * flips, D, X @ diagonal(flips)), lambda D: D, same
    yield "axes", lambda Y, D, X: (Q @ Y, Q @ D, X), lambda D: Q.T @ D, same


@pytest.mark.parametrize("rule", RULES)
def test_updates_are_equivariant(rule):
    """Fifteen draws and five transformations, with none, one and many empty supports."""
    for seed in range(15):
        Y, D, X = draw(seed, n_empty=(0, 1, 12)[seed % 3])
        expected, _ = RULES[rule](np.arange(D_))(Y, D, X)
        for name, change, undo, order in transformations(np.random.default_rng([1, seed])):
            found, _ = RULES[rule](order)(*change(Y, D, X))
            # Rounding, magnified by five steps or by nine atoms that each see the one before.
            np.testing.assert_allclose(undo(found), expected, atol=1e-9, err_msg=f"{name}, draw {seed}")


# The codes that follow the dictionary


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n_empty", [0, 1, 12])
def test_with_all_atoms_the_update_does_not_depend_on_the_codes(n_empty, dtype):
    Y, D, X = draw(3, n_empty)
    Y, D = Y.astype(dtype), D.astype(dtype)
    expected_D, expected_X = SimCO(mu=0.1)(Y, D, X)
    rng = np.random.default_rng(0)
    for size in (1e-30, 1.0, 1e9, 1e13, 1e17, 1e30):
        other = X.copy()
        other.data = size * rng.standard_normal(X.nnz)
        found_D, found_X = SimCO(mu=0.1)(Y, D, other)
        np.testing.assert_array_equal(found_D, expected_D)
        np.testing.assert_array_equal(found_X.toarray(), expected_X.toarray())


PARTS = {
    "a block": lambda: SimCO(mu=0.1, schedule=[[0, 3, 7]]),
    "one atom": lambda: SimCO(mu=0.1, schedule=[[0]]),
    "all in another order": lambda: SimCO(mu=0.1, schedule=[np.arange(D_)[::-1]]),
    "K-SVD": lambda: KSVD(schedule=[[0]]),
    "K-SVD, power": lambda: KSVD("power", schedule=[[0]]),
}


@pytest.mark.parametrize("sweep_kernel", [compiled_ksvd, reference_ksvd], ids=["compiled", "reference"])
@pytest.mark.parametrize("part", PARTS)
def test_the_update_does_not_depend_on_codes_of_the_atoms_that_move(part, sweep_kernel, monkeypatch):
    monkeypatch.setattr(reduced, "ksvd_sweep", sweep_kernel.ksvd_sweep)
    monkeypatch.setattr(reduced, "large_codes", sweep_kernel.large_codes)
    Y, D, X = draw(4, n_empty=5)
    rule = PARTS[part]()
    I = np.concatenate(rule.schedule)
    X = FixedSupport(X).encode(Y, D)  # ordinary codes: those on the other atoms stay
    expected, _ = rule(Y, D, X)
    for size in (1e-30, 1e9, 1e13, 1e17, 1e100):
        other = X.copy()
        other.data = np.where(np.isin(X.indices, I), size, X.data)
        found, _ = rule(Y, D, other)
        # Where Y_r is formed from Y the bits are the same; elsewhere from a residual that rounding reached.
        np.testing.assert_allclose(found, expected, atol=1e-13)
        assert not np.array_equal(found, D)


def test_a_problem_does_not_depend_on_the_codes_of_its_atoms():
    Y, D, X = draw(5, n_empty=5)
    for atoms in (None, [0, 3, 7]):
        costs, gradients = [], []
        for size in (1.0, 1e17):
            other = X.copy()
            other.data = np.where(np.isin(X.indices, np.arange(D_) if atoms is None else atoms), size, X.data)
            problem = update_problem(Y, other, mu=0.1, atoms=atoms, dictionary=D)
            point = D if atoms is None else D[:, atoms]
            costs.append(problem.cost(point))
            gradients.append(problem.riemannian_gradient(point))
        assert costs[0] == costs[1]
        np.testing.assert_array_equal(*gradients)


def test_k_svd_with_large_codes_is_the_sweep_from_the_signals_themselves():
    # Computed anew for every atom, in plain NumPy, where the sweep keeps a residual.
    Y, D, X = draw(6, n_empty=3)
    large = X.copy()
    large.data[::7] *= 1e12
    found, _ = KSVD()(Y, D, large)
    A, Z = D.copy(), large.toarray()
    used = large.toarray() != 0
    for i in range(D_):
        users = used[i]
        if users.any():
            others = np.arange(D_) != i
            E = Y[:, users] - A[:, others] @ Z[np.ix_(others, users)]
            u = np.linalg.svd(E)[0][:, 0]
            A[:, i] = u * np.sign(u @ A[:, i])
            Z[i, users] = A[:, i] @ E
    # The later atoms see what is left of codes of 1e12 after the earlier ones were solved for.
    np.testing.assert_allclose(found, A, atol=1e-9)


# Signals with an empty support


@pytest.mark.parametrize("codes", ["follow", "fixed"])
def test_a_signal_without_atoms_adds_its_energy_and_no_gradient(codes):
    Y, D, X = draw(7, n_empty=8)
    used = np.diff(X.indptr) > 0
    whole = update_problem(Y, X, mu=0.1, codes=codes)
    part = update_problem(Y[:, used], X[:, used], mu=0.1, codes=codes)
    direction = whole.manifold.random_tangent_vector(D, rng=0)
    # Sums of a few hundred squares in another order.
    assert whole.cost(D) == pytest.approx(part.cost(D) + np.sum(Y[:, ~used] ** 2), rel=1e-13)
    np.testing.assert_allclose(whole.euclidean_gradient(D), part.euclidean_gradient(D), atol=1e-13)
    np.testing.assert_allclose(
        whole.euclidean_hessian(D, direction), part.euclidean_hessian(D, direction), atol=1e-12
    )
    one, other = whole.restrict(D, direction), part.restrict(D, direction)
    for t in (0.0, 0.1, 1.0):
        assert one(t) - one(0.0) == pytest.approx(other(t) - other(0.0), abs=1e-12)
        assert one.derivative(t) == pytest.approx(other.derivative(t), abs=1e-12)


def test_signals_are_not_copied_for_an_empty_support():
    Y, _, X = draw(8, n_empty=1)
    Y = np.asfortranarray(Y)
    objective = update_problem(Y, X, mu=0.1).objective
    (block,) = objective.engine.states(objective.data)
    assert np.shares_memory(block.signals, Y)


def test_one_atom_alone_ignores_the_signals_that_do_not_use_it():
    # All atoms are one atom here, and the leading singular vector is that of its users.
    rng = np.random.default_rng(9)
    Y, mask = rng.standard_normal((M, N)), np.arange(N) % 3 == 0
    start = Spheres(M, 1).random_point(rng)
    X = scipy.sparse.csc_array(mask[None, :].astype(float))
    for rule in (KSVD(), KSVD().as_simco()):
        D, _ = rule(Y, start, X)
        u = np.linalg.svd(Y[:, mask])[0][:, :1]
        assert abs(np.vdot(u, D)) == pytest.approx(1, abs=1e-12)


def test_no_support_at_all_leaves_the_dictionary():
    Y, D, X = draw(10, n_empty=N)
    for rule in (SimCO(mu=0.1), KSVD(), MOD()):
        np.testing.assert_array_equal(rule(Y, D, X)[0], D)
    assert update_problem(Y, X, mu=0.1).cost(D) == pytest.approx(np.sum(Y**2), rel=1e-14)
