"""The reduced objective: shared work, dense formulas, and digits where the fit is nearly exact."""

import numpy as np
import pytest
from pymanopt.optimizers import TrustRegions

from manifold_dl import update_problem
from manifold_dl.engines import Threads
from manifold_dl.kernels import reduced
from manifold_dl.manifolds import Spheres
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.inner import RidgeCodes
from manifold_dl.problem.objective import Objective
from manifold_dl.problem.signals import SupportedSignals
from manifold_dl.problem.support import as_support
from manifold_dl.problem.update_problem import make_objective

EPS = np.finfo(float).eps


class Data:
    """Random signals, codes with supports of 0 to 4 atoms, and a dictionary, all dense."""

    def __init__(self, m=8, d=12, n=80, seed=0):
        rng = np.random.default_rng(seed)
        self.spheres = Spheres(m, d)
        self.D = self.spheres.random_point(rng)
        self.U = self.spheres.random_tangent_vector(self.D, rng)
        self.mask = np.zeros((d, n), bool)
        for j, size in enumerate(rng.integers(0, 5, n)):
            self.mask[rng.choice(d, size, replace=False), j] = True
        self.X = self.mask * rng.standard_normal((d, n))
        self.Y = rng.standard_normal((m, n))
        self.rng = rng


@pytest.fixture
def data():
    return Data()


@pytest.fixture
def calls(monkeypatch):
    """What is passed to fit_codes and evaluate_fixed: an independent count."""
    seen = []

    def counting(kernel):
        def counted(block, atoms, *rest):
            seen.append((len(block.signals), atoms.tobytes()))
            return kernel(block, atoms, *rest)

        return counted

    monkeypatch.setattr(reduced, "fit_codes", counting(reduced.fit_codes))
    monkeypatch.setattr(reduced, "evaluate_fixed", counting(reduced.evaluate_fixed))
    return seen


def searching_objective(Y, codes, inner="follow", **options):
    """The objective of all atoms for an optimizer that moves along lines, whose searches are trusted."""
    problem = update_problem(Y, codes, codes=inner, **options)
    policy = EvaluationPolicy(trust_line_search=True, keep_factors=False)
    return make_objective(problem.subset, problem.objective.inner, policy)


# One factorisation serves all


@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("seed", range(4))
def test_a_trust_region_run_factors_no_point_twice(calls, mu, seed):
    data = Data(seed=seed)
    problem = update_problem(data.Y, data.X, mu=mu)
    # A first radius of the whole sphere, so that many steps are refused, some of them in a row.
    TrustRegions(verbosity=0, max_iterations=25).run(
        problem, initial_point=data.D, Delta0=7.0, Delta_bar=11.0
    )
    points = [atoms for _, atoms in calls]
    assert problem.counts.factorisation == problem.counts.value == len(points) == len(set(points))
    assert problem.counts.hessian > len(points)
    assert problem.counts.gradient == len(problem.record) < len(points)  # some steps were refused


def test_two_refusals_in_a_row_do_not_cost_the_centre_of_the_trust_region(calls, data):
    objective = update_problem(data.Y, data.X).objective
    centre, trials = data.D, [data.spheres.exp(data.D, t * data.U) for t in (3.0, 1.5, 0.7)]
    objective.value(centre)
    for trial in trials:
        objective.hessian(centre, data.U)
        objective.value(trial)
    objective.gradient(centre)
    assert len(calls) == 4


def test_everything_at_one_point_shares_one_factorisation(calls, data):
    problem = update_problem(data.Y, data.X, mu=0.1)
    problem.cost(data.D)
    problem.riemannian_gradient(data.D)
    problem.riemannian_hessian(data.D, data.U)
    problem.preconditioner(data.D, data.U)
    problem.restrict(data.D, data.U)(0.1)
    problem.codes(data.D)
    problem.cost(data.D.copy())  # equal, if not the same
    assert len(calls) == problem.counts.factorisation == 1
    counts = problem.counts
    assert (counts.value, counts.gradient, counts.hessian, counts.probe) == (1, 1, 1, 1)


def test_a_line_search_does_not_factor_at_its_probes(calls, data):
    phi = update_problem(data.Y, data.X).restrict(data.D, data.U)
    for t in np.linspace(0, 1, 20):
        phi(t)
    assert len(calls) == 1


def test_factors_are_kept_only_where_the_policy_says_so(calls, data):
    # They are more than half as large as Y's codes again, and only Hessian products read them.
    expected = update_problem(data.Y, data.X).objective.hessian(data.D, data.U)
    objective = searching_objective(data.Y, data.X)
    evaluation = objective.evaluate(data.D)
    assert all(solutions.factors is None for solutions in objective.engine.states(evaluation.fit))
    del calls[:]
    np.testing.assert_array_equal(objective.hessian(data.D, data.U), expected)
    assert len(calls) == 1  # factors cost a second pass there
    objective.hessian(data.D, data.U)
    assert len(calls) == 1  # and are shared from then on


@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("codes", ["follow", "fixed"])
def test_the_end_of_a_trusted_search_needs_no_pass_over_the_signals(calls, data, mu, codes):
    objective = searching_objective(data.Y, data.X, codes, mu=mu)
    phi, t = objective.along(data.D, data.U), 0.3
    point = data.spheres.exp(data.D, t * data.U)
    phi.commit(t, point)
    del calls[:]
    value, found = objective.value(point), objective.codes(point)
    assert not calls
    fresh = update_problem(data.Y, data.X, mu=mu, codes=codes).objective
    assert value == pytest.approx(fresh.value(point), rel=1e-13)
    # Normal equations of up to four random atoms, solved once from their residual and once from scratch.
    np.testing.assert_allclose(found, fresh.codes(point), rtol=0, atol=1e-11)
    # The gradient is that of a new pass, as if there had been no search.
    del calls[:]
    np.testing.assert_array_equal(objective.gradient(point), fresh.gradient(point))
    assert objective.value(point) == fresh.value(point)
    np.testing.assert_array_equal(objective.codes(point), fresh.codes(point))
    assert len(calls) == 1


def test_a_search_is_trusted_only_where_the_policy_says_so(calls, data):
    objective = update_problem(data.Y, data.X).objective
    point = data.spheres.exp(data.D, 0.3 * data.U)
    objective.along(data.D, data.U).commit(0.3, point)
    objective.value(point)
    assert len(calls) == 2


def test_a_search_that_fell_by_orders_of_magnitude_is_not_trusted(calls):
    data = Data()
    Y = data.D @ data.X
    objective = searching_objective(Y, data.mask)
    start = data.spheres.exp(data.D, 0.1 * data.U)
    direction = data.spheres.log(start, data.D)  # t = 1 is the exact fit
    objective.along(start, direction).commit(1.0, data.D)
    # From ‖Y‖² to nothing: what φ has left is the rounding of ‖Y‖², and the residual is more accurate.
    assert 0 <= objective.value(data.D) < 1e-28 * np.sum(Y**2)
    assert len(calls) == 2


def test_slope_of_the_last_probe_is_free(data):
    problem = update_problem(data.Y, data.X)
    phi = problem.restrict(data.D, data.U)
    phi.derivative(0.0)
    for t in (0.1, 0.2, 0.3):
        phi(t), phi.derivative(t), phi(t)
    assert problem.counts.probe == 4


def test_nothing_is_confused_when_arrays_change_in_place(data):
    problem = update_problem(data.Y, data.X, mu=0.1)
    other = data.spheres.random_point(1)
    fresh = update_problem(data.Y, data.X, mu=0.1)
    expected = fresh.cost(other), fresh.euclidean_gradient(other), fresh.euclidean_hessian(other, data.U)
    point = data.D.copy()
    phi = problem.restrict(point, data.U)
    before = phi(0.2)
    problem.cost(point), problem.euclidean_gradient(point), problem.euclidean_hessian(point, data.U)
    point[:] = other
    assert problem.cost(point) == expected[0]
    np.testing.assert_array_equal(problem.euclidean_gradient(point), expected[1])
    np.testing.assert_array_equal(problem.euclidean_hessian(point, data.U), expected[2])
    phi(0.1)
    assert phi(0.2) == before  # the search still begins where it began
    # Nor when the caller changes a result.
    problem.euclidean_gradient(point)[:] = 0
    problem.codes(point).data[:] = 0
    np.testing.assert_array_equal(problem.euclidean_gradient(point), expected[1])
    assert problem.codes(point).data.any()


# Only what I touches


@pytest.mark.parametrize("codes", ["follow", "fixed"])
def test_signals_that_do_not_use_the_atoms_are_not_read(calls, data, codes):
    I = [2, 7]
    problem = update_problem(data.Y, data.X, atoms=I, dictionary=data.D, codes=codes)
    del calls[:]
    problem.cost(data.D[:, I])
    touched = data.mask[I].any(axis=0).sum()
    assert [n for n, _ in calls] == [touched]
    assert touched < data.mask.shape[1] / 2


def dense_value(data, D, X, mu, I):
    return np.sum((data.Y - D @ X) ** 2) + mu * np.sum(X[I] ** 2)


SETS = {"one": [3], "three": [5, 0, 9], "all": None}


@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("name", SETS)
def test_the_value_is_the_dense_formula(data, mu, name):
    I = SETS[name] or list(range(data.D.shape[1]))
    problem = update_problem(data.Y, data.X, atoms=SETS[name], dictionary=data.D, mu=mu)
    point = data.spheres.exp(data.D, 0.3 * data.U)[:, I]
    D, X = problem.dictionary(point), problem.codes(point).toarray()
    # a few hundred roundings
    assert problem.cost(point) == pytest.approx(dense_value(data, D, X, mu, I), rel=1e-13)
    outside = np.setdiff1d(np.arange(data.D.shape[1]), I)
    np.testing.assert_array_equal(D[:, I], point)
    np.testing.assert_array_equal(D[:, outside], data.D[:, outside])
    np.testing.assert_array_equal(X[outside], data.X[outside])
    assert not X[~data.mask].any()
    # Optimal codes are stationary: the derivative of the dense formula in X vanishes on the support of I.
    stationary = (D.T @ (data.Y - D @ X) - mu * X)[I]
    assert np.abs(stationary[data.mask[I]]).max() < 1e-13 * np.abs(data.Y).max() * data.Y.shape[0]


def test_codes_outside_are_optimal_where_none_were_given(data):
    problem = update_problem(data.Y, data.mask, atoms=[3], dictionary=data.D, mu=0.1)
    everything = update_problem(data.Y, data.mask, mu=0.1)
    # The optimal codes of all atoms at D are, for each atom, optimal given the others. Solved once together
    # and once after a subtraction: roundings of the normal equations.
    np.testing.assert_allclose(
        problem.codes(data.D[:, [3]]).toarray(), everything.codes(data.D).toarray(), rtol=0, atol=1e-12
    )


# Codes that stay


@pytest.mark.parametrize("name", SETS)
def test_fixed_codes_against_the_direct_formula(data, name):
    I = SETS[name] or list(range(data.D.shape[1]))
    problem = update_problem(data.Y, data.X, atoms=SETS[name], dictionary=data.D, codes="fixed", mu=0.1)
    point, U = data.D[:, I], data.U[:, I]
    residual = data.Y - data.D @ data.X
    # Sums of a thousand products, each rounded.
    assert problem.cost(point) == pytest.approx(np.sum(residual**2), rel=1e-13)
    gradient = -2 * residual @ data.X[I].T
    np.testing.assert_allclose(
        problem.euclidean_gradient(point), gradient, atol=1e-13 * np.abs(gradient).max()
    )
    hessian = 2 * U @ data.X[I] @ data.X[I].T
    np.testing.assert_allclose(
        problem.euclidean_hessian(point, U), hessian, atol=1e-13 * np.abs(hessian).max()
    )
    np.testing.assert_array_equal(problem.codes(point).toarray(), data.X)
    phi = problem.restrict(point, U)
    for t in (-0.5, 0.0, 1.0):
        moved = problem.dictionary(problem.manifold.exp(point, t * U))
        assert phi(t) == pytest.approx(np.sum((data.Y - moved @ data.X) ** 2), rel=1e-13)
    assert problem.counts.factorisation == 0


# Scale


@pytest.mark.parametrize("mu", [0.0, 0.1])
def test_powers_of_two_change_no_bit(data, mu):
    # Scaling Y by 2^k shifts exponents only: everything follows exactly, so there is no absolute threshold.
    one = update_problem(data.Y, data.mask, mu=mu)
    phi = one.restrict(data.D, data.U)
    for k in (-150, -20, 20, 150):
        c = 2.0**k
        scaled = update_problem(c * data.Y, data.mask, mu=mu)
        square = (c / scaled.signal_unit) ** 2  # beyond 2^±100 values are in other units, also a power of two
        assert scaled.cost(data.D) == square * one.cost(data.D)
        for name in ("euclidean_gradient", "riemannian_gradient"):
            expected = square * getattr(one, name)(data.D)
            np.testing.assert_array_equal(getattr(scaled, name)(data.D), expected)
        expected = square * one.riemannian_hessian(data.D, data.U)
        np.testing.assert_array_equal(scaled.riemannian_hessian(data.D, data.U), expected)
        np.testing.assert_array_equal(scaled.codes(data.D).data, c * one.codes(data.D).data)
        # The mean energy is scaled out.
        expected = one.preconditioner(data.D, data.U)
        np.testing.assert_array_equal(scaled.preconditioner(data.D, data.U), expected)
        other = scaled.restrict(data.D, data.U)
        assert other(0.3) == square * phi(0.3)
        assert other.derivative(0.3) == square * phi.derivative(0.3)


@pytest.mark.parametrize("c", [1e-100, 3.7, 1e5, 1e100])
def test_any_other_scale_costs_a_rounding(data, c):
    one, scaled = update_problem(data.Y, data.mask), update_problem(c * data.Y, data.mask)
    square = (c / scaled.signal_unit) ** 2
    assert scaled.cost(data.D) == pytest.approx(square * one.cost(data.D), rel=1e-13)


# Digits where the fit is nearly exact


@pytest.mark.parametrize("mu", [0.0, 1e-6])
@pytest.mark.parametrize("distance", [1e-3, 1e-6, 1e-9])
def test_phi_keeps_its_digits_near_an_exact_fit(mu, distance):
    data = Data()
    data.mask[0] = True
    Y = data.D @ (data.mask * data.rng.standard_normal(data.mask.shape))
    problem = update_problem(Y, data.mask, mu=mu)
    start = data.spheres.exp(data.D, distance * data.U)
    direction = data.spheres.log(start, data.D)  # t = 1 is the exact fit
    phi = problem.restrict(start, direction)
    f0, norm = problem.cost(start), np.linalg.norm(Y)
    assert f0 < 10 * (distance**2 + mu) * norm**2
    # Residuals of norm √f carry roundings of a few eps‖Y‖ each. The shortcut ‖y‖² − bᵀx would be wrong by
    # eps‖Y‖², which is more than all of f at the smallest distance.
    tolerance = 50 * EPS * norm * np.sqrt(f0)
    assert tolerance < 1e-4 * f0
    for t in (0.0, 0.1, 0.5, 0.9, 1.0, 1.7):
        point = data.spheres.exp(start, t * direction)
        X = problem.codes(point).toarray()
        direct = np.sum((Y - point @ X) ** 2) + mu * np.sum(X**2)
        assert problem.cost(point) == pytest.approx(direct, rel=1e-13, abs=tolerance)
        assert phi(t) == pytest.approx(direct, abs=tolerance)


def test_values_near_an_exact_fit_are_the_residual_itself():
    data = Data()
    Y = data.D @ data.X
    value = update_problem(Y, data.mask).cost(data.D)
    assert 0 <= value < 1e-28 * np.sum(Y**2)


# The class on its own


def objective_of(rows, **options):
    """f of signals (rows) whose supports are empty, for dictionaries of two atoms."""
    support = as_support(np.zeros((2, len(rows)), bool), len(rows)) if len(rows) else None
    engine = Threads(1)
    data = engine.open([]) if support is None else SupportedSignals.of(rows, support, engine)._all
    return Objective(data, (rows.shape[1], 2), rows.dtype, RidgeCodes(0.0), engine=engine, **options)


def test_empty_supports_and_no_signals_at_all():
    objective = objective_of(np.ones((3, 4)))
    point = Spheres(4, 2).random_point(0)
    assert objective.value(point) == 12.0
    assert not objective.gradient(point).any() and not objective.hessian(point, point).any()
    empty = objective_of(np.ones((0, 4)), constant=5.0)
    assert empty.value(point) == 5.0
    assert not empty.gradient(point).any() and len(empty.codes(point)) == 0
    assert not empty.hessian(point, point).any()
    assert empty.along(point, point)(0.3) == 5.0


def test_points_of_another_shape_are_refused(data):
    problem = update_problem(data.Y, data.mask)
    with pytest.raises(ValueError, match="the atoms form a matrix of shape"):
        problem.cost(data.D[:, :2])
    with pytest.raises(ValueError, match="the atoms form a matrix of shape"):
        problem.restrict(data.D, data.D.T)


def test_rank_deficient_signals_are_counted(data):
    D = data.D.copy()
    D[:, 1] = D[:, 0]
    problem = update_problem(data.Y, data.mask)
    problem.cost(D)
    assert problem.counts.rank_deficient == (data.mask[0] & data.mask[1]).sum() > 0
    for other in (data.D, data.spheres.random_point(1), D):  # two others: the first is not in the cache then
        problem.cost(other)
    assert problem.counts.rank_deficient == (data.mask[0] & data.mask[1]).sum()


def test_a_probe_that_fails_leaves_no_codes_behind(data, monkeypatch):
    objective = searching_objective(data.Y, data.X, mu=0.1)
    phi = objective.along(data.D, data.U)
    phi.derivative(0.1)
    expected = objective.engine.states(objective.along(data.D, data.U).codes(0.1))
    refit = reduced.refit_codes

    def fails(*arguments):
        refit(*arguments)  # and has written codes by then
        raise np.linalg.LinAlgError("no convergence")

    with monkeypatch.context() as broken:
        broken.setattr(reduced, "refit_codes", fails)
        with pytest.raises(np.linalg.LinAlgError):
            phi.derivative(0.2)
    np.testing.assert_array_equal(objective.engine.states(phi.codes(0.1)), expected)


def test_codes_belong_to_the_caller(data):
    objective = update_problem(data.Y, data.X, mu=0.1).objective
    objective.codes(data.D)[:] = 0
    assert objective.codes(data.D).any()
    fixed = update_problem(data.Y, data.X, codes="fixed").objective
    fixed.codes(data.D)[:] = 0
    codes = fixed.engine.states(fixed.along(data.D, data.U).codes(0.1))
    np.testing.assert_array_equal(np.concatenate(codes), fixed.codes(data.D))
    assert fixed.codes(data.D).any()


def test_a_gain_that_might_be_rounding_is_not_trusted(calls, data):
    objective = searching_objective(data.Y, data.X, mu=0.1)
    direction = -data.spheres.projection(data.D, objective.gradient(data.D))
    far = 1e-3 / np.linalg.norm(direction)
    for t, passes in ((far, 0), (1e-9 * far, 1)):
        objective.gradient(data.D)
        del calls[:]
        point = data.spheres.exp(data.D, t * direction)
        objective.along(data.D, direction).commit(t, point)
        objective.value(point)
        assert len(calls) == passes


def test_single_precision_trusts_no_search(calls, data):
    objective = searching_objective(data.Y.astype(np.float32), data.X, mu=0.1)
    D, U = data.D.astype(np.float32), data.U.astype(np.float32)
    point = data.spheres.exp(D, np.float32(0.3) * U)
    objective.along(D, U).commit(0.3, point)
    del calls[:]
    objective.value(point)
    assert len(calls) == 1
