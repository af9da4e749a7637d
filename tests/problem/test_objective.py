"""The reduced objective: shared work, dense formulas, and digits where the fit is nearly exact."""

import numpy as np
import pytest
from pymanopt.optimizers import TrustRegions

from manifold_dl import update_problem
from manifold_dl.kernels import reduced as kernels
from manifold_dl.manifolds import Spheres
from manifold_dl.problem.objective import Objective

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
    """What is handed to kernels.fit and fit_fixed: an independent count."""
    seen = []

    def counting(kernel):
        def counted(signals, indptr, indices, atoms, *rest):
            seen.append((len(signals), atoms.tobytes()))
            return kernel(signals, indptr, indices, atoms, *rest)

        return counted

    monkeypatch.setattr(kernels, "fit", counting(kernels.fit))
    monkeypatch.setattr(kernels, "fit_fixed", counting(kernels.fit_fixed))
    return seen


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


def test_a_line_search_lets_go_of_factors_and_gets_them_back(calls, data):
    # They are more than half as large as Y's codes again, and only Hessian products read them.
    objective = update_problem(data.Y, data.X).objective
    expected = objective.hessian(data.D, data.U)
    objective = update_problem(data.Y, data.X).objective
    objective.restrict(data.D, data.U)
    (state,) = objective._states
    assert all(fit.factors is None for fit in state.fits)
    np.testing.assert_array_equal(objective.hessian(data.D, data.U), expected)
    objective.restrict(data.D, data.U)
    objective.hessian(data.D, data.U)
    assert len(calls) == 3  # from now on they stay


@pytest.mark.parametrize("mu", [0.0, 0.1])
@pytest.mark.parametrize("codes", ["follow", "fixed"])
def test_the_end_of_a_search_is_known_without_another_pass(calls, data, mu, codes):
    objective = update_problem(data.Y, data.X, mu=mu, codes=codes).objective
    objective.expect_searches()
    phi, t = objective.restrict(data.D, data.U), 0.3
    point = data.spheres.exp(data.D, t * data.U)
    phi.arrive(t, point)
    del calls[:]
    value, found = objective.value(point), objective.codes(point)
    assert not calls
    fresh = update_problem(data.Y, data.X, mu=mu, codes=codes).objective
    assert value == pytest.approx(fresh.value(point), rel=1e-13)
    # Normal equations of up to four random atoms, solved once from their residual and once from scratch.
    np.testing.assert_allclose(found, fresh.codes(point), rtol=0, atol=1e-11)
    # Whoever asks for more gets all of it, as if there had been no search.
    del calls[:]
    np.testing.assert_array_equal(objective.gradient(point), fresh.gradient(point))
    assert objective.value(point) == fresh.value(point)
    np.testing.assert_array_equal(objective.codes(point), fresh.codes(point))
    assert len(calls) == 1


def test_a_search_is_believed_only_where_that_was_agreed(calls, data):
    objective = update_problem(data.Y, data.X).objective
    point = data.spheres.exp(data.D, 0.3 * data.U)
    objective.restrict(data.D, data.U).arrive(0.3, point)
    objective.value(point)
    assert len(calls) == 2


def test_a_search_that_fell_by_orders_of_magnitude_is_not_believed(calls):
    data = Data()
    Y = data.D @ data.X
    objective = update_problem(Y, data.mask).objective
    objective.expect_searches()
    start = data.spheres.exp(data.D, 0.1 * data.U)
    direction = data.spheres.log(start, data.D)  # t = 1 is the exact fit
    objective.restrict(start, direction).arrive(1.0, data.D)
    # From ‖Y‖² to nothing: what φ has left is the rounding of ‖Y‖², and the residual is the better judge.
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
    # Nor when somebody scribbles on an answer.
    problem.euclidean_gradient(point)[:] = 0
    problem.codes(point).data[:] = 0
    np.testing.assert_array_equal(problem.euclidean_gradient(point), expected[1])
    assert problem.codes(point).data.any()


# Only what I touches


@pytest.mark.parametrize("codes", ["follow", "fixed"])
def test_signals_that_miss_the_atoms_are_not_looked_at(calls, data, codes):
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


def test_empty_supports_and_no_signals_at_all():
    objective = Objective(np.ones((3, 4)), np.zeros(4, np.int64), np.zeros(0, np.int32), n_atoms=2)
    point = Spheres(4, 2).random_point(0)
    assert objective.value(point) == 12.0
    assert not objective.gradient(point).any() and not objective.hessian(point, point).any()
    nobody = Objective(np.ones((0, 4)), np.zeros(1, np.int64), np.zeros(0, np.int32), n_atoms=2, constant=5.0)
    assert nobody.value(point) == 5.0
    assert not nobody.gradient(point).any() and len(nobody.codes(point)) == 0
    assert nobody.restrict(point, point)(0.3) == 5.0


def test_points_of_another_shape_are_refused(data):
    problem = update_problem(data.Y, data.mask)
    with pytest.raises(ValueError, match="the atoms form a matrix of shape"):
        problem.cost(data.D[:, :2])
    with pytest.raises(ValueError, match="the atoms form a matrix of shape"):
        problem.restrict(data.D, data.D.T)


def test_deficient_signals_are_counted(data):
    D = data.D.copy()
    D[:, 1] = D[:, 0]
    problem = update_problem(data.Y, data.mask)
    problem.cost(D)
    assert problem.counts.deficient == (data.mask[0] & data.mask[1]).sum() > 0
    problem.cost(data.D)
    problem.cost(D)
    assert problem.counts.deficient == 2 * (data.mask[0] & data.mask[1]).sum()


def test_a_probe_that_fails_leaves_no_codes_behind(data, monkeypatch):
    objective = update_problem(data.Y, data.X, mu=0.1).objective
    objective.expect_searches()
    phi = objective.restrict(data.D, data.U)
    phi.derivative(0.1)
    expected = objective.restrict(data.D, data.U).codes(0.1)
    probe = kernels.probe

    def fails(*arguments):
        probe(*arguments)  # and has written codes by then
        raise np.linalg.LinAlgError("no convergence")

    with monkeypatch.context() as broken:
        broken.setattr(kernels, "probe", fails)
        with pytest.raises(np.linalg.LinAlgError):
            phi.derivative(0.2)
    np.testing.assert_array_equal(phi.codes(0.1), expected)


def test_codes_belong_to_who_asked_for_them(data):
    objective = update_problem(data.Y, data.X, mu=0.1).objective
    objective.codes(data.D)[:] = 0
    assert objective.codes(data.D).any()
    fixed = update_problem(data.Y, data.X, codes="fixed").objective
    np.testing.assert_array_equal(fixed.restrict(data.D, data.U).codes(0.1), fixed.codes(data.D))


def test_a_gain_that_might_be_rounding_is_not_believed(calls, data):
    objective = update_problem(data.Y, data.X, mu=0.1).objective
    objective.expect_searches()
    direction = -data.spheres.projection(data.D, objective.gradient(data.D))
    far = 1e-3 / np.linalg.norm(direction)
    for t, looked in ((far, 0), (1e-9 * far, 1)):
        objective.gradient(data.D)
        del calls[:]
        point = data.spheres.exp(data.D, t * direction)
        objective.restrict(data.D, direction).arrive(t, point)
        objective.value(point)
        assert len(calls) == looked


def test_single_precision_believes_no_search(calls, data):
    objective = update_problem(data.Y.astype(np.float32), data.X, mu=0.1).objective
    objective.expect_searches()
    D, U = data.D.astype(np.float32), data.U.astype(np.float32)
    point = data.spheres.exp(D, np.float32(0.3) * U)
    objective.restrict(D, U).arrive(0.3, point)
    del calls[:]
    objective.value(point)
    assert len(calls) == 1
