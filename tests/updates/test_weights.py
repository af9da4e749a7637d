"""Weights of signals and of entries in the update rules, and the atoms of incomplete signals found again."""

import warnings

import numpy as np
import pytest
from pymanopt.optimizers import SteepestDescent
from update_cases import M, N, assert_same_pattern, assert_unit, problem_data

import manifold_dl as mdl
from manifold_dl import LBFGS, GoldenSection, Lasso, WolfeSearch, update_problem
from manifold_dl.manifolds import Spheres
from manifold_dl.metrics import recovery
from manifold_dl.optimizers import LeadingSingularVector
from manifold_dl.schedules import Blocks, OneAtATime
from manifold_dl.updates import KSVD, MOD, SimCO


def observed(seed=0, shape=(M, N), missing=0.3):
    """Weights of which a part is zero; every signal has four entries, more than atoms."""
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, shape) * (rng.random(shape) > missing)
    return np.where(np.arange(shape[0])[:, None] < 4, np.maximum(weights, 0.5), weights)


def weighted_error(Y, D, X, weights, mu=0.0):
    return np.sum(weights * (Y - D @ X.toarray()) ** 2) + mu * np.sum(X.data**2)


RULES = {
    "SimCO": SimCO(mu=0.1),
    "golden section": SimCO(
        SteepestDescent(line_searcher=GoldenSection(), max_iterations=2, verbosity=0), mu=0.1
    ),
    "blocks": SimCO(mu=0.1, schedule=Blocks(5)),
    # One step: more of them, atom after atom, let a rounding decide where a line search ends.
    "one atom": SimCO(
        SteepestDescent(line_searcher=WolfeSearch(), max_iterations=1, verbosity=0),
        mu=0.1,
        schedule=OneAtATime(),
    ),
    "fixed codes": SimCO(mu=0.1, codes="fixed"),
    "MOD": MOD(),
    "KSVD": KSVD(mu=0.1),
}
of_signals = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
of_entries = pytest.mark.parametrize(
    "rule", [rule for name, rule in RULES.items() if name != "KSVD"], ids=[n for n in RULES if n != "KSVD"]
)


# Weights of entries


@of_entries
def test_an_update_lowers_the_weighted_error(rule):
    Y, D, X = problem_data()
    W = observed()
    mu = getattr(rule, "mu", 0.0) if getattr(rule, "codes", "fixed") == "follow" else 0.0
    D_new, X_new = rule(Y, D, X, rng=0, weights=W)
    assert weighted_error(Y, D_new, X_new, W, mu) < weighted_error(Y, D, X, W, mu)
    assert_same_pattern(X, X_new)
    assert_unit(D_new)


@of_entries
def test_missing_values_never_matter(rule):
    Y, D, X = problem_data()
    W = observed()
    D_one, X_one = rule(Y, D, X, rng=0, weights=W)
    for value in (np.nan, 1e300):
        D_other, X_other = rule(np.where(W > 0, Y, value), D, X, rng=0, weights=W)
        np.testing.assert_array_equal(D_other, D_one)
        np.testing.assert_array_equal(X_other.data, X_one.data)


@of_entries
def test_signals_without_any_entry_do_not_matter(rule):
    Y, D, X = problem_data()
    W = observed()
    W[:, ::4] = 0
    seen = W.any(axis=0)
    D_one, X_one = rule(Y, D, X, rng=0, weights=W)
    D_other, X_other = rule(Y[:, seen], D, X[:, seen], rng=0, weights=W[:, seen])
    # The same sums in another order, through some steps of an optimizer.
    np.testing.assert_allclose(D_one, D_other, rtol=0, atol=1e-9)
    np.testing.assert_allclose(X_one[:, seen].toarray(), X_other.toarray(), rtol=0, atol=1e-8)


@pytest.mark.parametrize("rule", [SimCO(mu=0.1), MOD()], ids=["SimCO", "MOD"])
def test_single_precision(rule):
    Y, D, X = problem_data(dtype=np.float32)
    D_new, X_new = rule(Y, D, X, weights=observed())
    assert D_new.dtype == X_new.dtype == np.float32
    expected = rule(*problem_data(), weights=observed())
    assert np.abs(D_new - expected[0]).max() < 1e-2  # some steps of an optimizer, each with six digits


def test_mod_solves_weighted_least_squares_row_by_row():
    Y, D, X = problem_data()
    W = observed()
    D_new, X_new = MOD()(Y, D, X, weights=W)
    dense, expected = X.toarray(), np.empty_like(D)
    for p, w in enumerate(W):
        expected[p] = np.linalg.lstsq((np.sqrt(w) * dense).T, np.sqrt(w) * Y[p])[0]
    np.testing.assert_allclose(D_new @ X_new.toarray(), expected @ dense, atol=1e-11)
    np.testing.assert_allclose(D_new, expected / np.linalg.norm(expected, axis=0), atol=1e-11)


def test_mod_leaves_what_no_entry_determines():
    Y, D, X = problem_data()
    W = observed()
    W[5] = 0  # nobody has seen this entry
    D_new, X_new = MOD()(Y, D, X, weights=W)
    scales = np.linalg.norm(X_new.toarray(), axis=1) / np.linalg.norm(X.toarray(), axis=1)
    np.testing.assert_allclose(D_new[5] * scales, D[5], atol=1e-12)


def test_singular_vectors_are_refused_for_weights_of_entries():
    Y, D, X = problem_data()
    with pytest.raises(ValueError, match="no singular vector"):
        KSVD()(Y, D, X, weights=observed())
    with pytest.raises(ValueError, match="no singular vector"):
        SimCO(LeadingSingularVector(), schedule=OneAtATime(), mu=0.0)(Y, D, X, weights=observed())


# Weights of signals


@of_signals
def test_integer_weights_are_repeated_signals(rule):
    Y, D, X = problem_data()
    times = np.random.default_rng(1).integers(0, 4, N)
    repeated = np.repeat(np.arange(N), times)
    D_one, X_one = rule(Y, D, X, rng=0, weights=times)
    D_other, X_other = rule(Y[:, repeated], D, X[:, repeated], rng=0)
    np.testing.assert_allclose(D_one, D_other, rtol=0, atol=1e-10)
    np.testing.assert_allclose(X_one[:, repeated].toarray(), X_other.toarray(), rtol=0, atol=1e-9)


@of_signals
def test_weights_of_one_change_no_bit(rule):
    Y, D, X = problem_data()
    D_one, X_one = rule(Y, D, X, rng=0)
    for ones in (np.ones(N), np.ones((M, N), bool)):
        D_other, X_other = rule(Y, D, X, rng=0, weights=ones)
        np.testing.assert_array_equal(D_other, D_one)
        np.testing.assert_array_equal(X_other.data, X_one.data)


@pytest.mark.parametrize("factor", [1024.0, 1e-8, 1e-25])
@pytest.mark.parametrize(
    "rule",
    [*RULES.values(), SimCO("trust-region", mu=0.1), SimCO(codes=Lasso(alpha=0.1))],
    ids=[*RULES, "trust region", "lasso"],
)
def test_a_common_factor_changes_nothing(rule, factor):
    # Thresholds of optimizers are relative to the objective: small weights must not make it look stationary.
    Y, D, X = problem_data()
    weights = np.random.default_rng(2).uniform(0.5, 2.0, N)
    D_one, X_one = rule(Y, D, X, rng=0, weights=weights)
    D_other, X_other = rule(Y, D, X, rng=0, weights=factor * weights)
    assert np.abs(D_one - D).max() > 1e-2
    # Some steps of an optimizer, each with the roundings of another root; the lasso stops at 1e-10.
    np.testing.assert_allclose(D_other, D_one, rtol=0, atol=1e-9)
    np.testing.assert_allclose(X_other.toarray(), X_one.toarray(), rtol=0, atol=1e-8)


@pytest.mark.parametrize("rule", [SimCO(mu=0.0), SimCO(codes="fixed"), MOD()], ids=["SimCO", "fixed", "MOD"])
def test_a_small_common_factor_of_entries_changes_nothing_without_a_ridge(rule):
    Y, D, X = problem_data()
    D_one, _ = rule(Y, D, X, rng=0, weights=observed())
    D_other, _ = rule(Y, D, X, rng=0, weights=1e-25 * observed())
    assert np.abs(D_one - D).max() > 1e-2
    np.testing.assert_allclose(D_other, D_one, rtol=0, atol=1e-9)


def test_weights_of_all_signals_zero_move_nothing():
    Y, D, X = problem_data()
    D_new, X_new = SimCO(mu=0.1)(Y, D, X, weights=np.zeros(N))
    np.testing.assert_array_equal(D_new, D)
    assert not X_new.data.any()


# Recovery with the support known


def recovered(missing, seed, fill_in=False):
    """The fraction of the atoms that the annealed objective finds; from incomplete signals and supports."""
    rng = np.random.default_rng(seed)
    truth, X, Y = mdl.datasets.synthetic(16, 32, 300, sparsity=4, rng=rng)
    W = rng.random(Y.shape) >= missing
    given = {"signals": np.where(W, Y, np.nan), "weights": W}
    if fill_in:
        given = {"signals": np.where(W, Y, 0.0)}
    D = Spheres(16, 32).random_point(rng)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "[0-9]+ of 300 signals have fewer observed entries than atoms")
        for mu in (1e-1, 1e-2, 1e-3, 1e-4, 1e-6, 0.0):
            problem = update_problem(support=X.astype(bool), mu=mu, **given)
            D = LBFGS(max_iterations=200, verbosity=0).run(problem, initial_point=D).point
    return recovery(D, truth)


@pytest.mark.parametrize("seed", range(10))
def test_all_atoms_are_found_with_a_third_of_the_entries_missing(seed):
    assert recovered(0.3, seed) == 1.0


@pytest.mark.parametrize("seed", range(10))
def test_nearly_all_atoms_are_found_with_half_of_the_entries_missing(seed):
    assert recovered(0.5, seed) >= 0.95


def test_filling_zeros_in_instead_finds_few():
    assert recovered(0.3, 0, fill_in=True) < 0.5
