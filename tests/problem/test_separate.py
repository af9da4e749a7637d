"""Large dictionaries: signals that form their own inner products find what they find with shared ones."""

import tracemalloc

import numpy as np
import pytest
import scipy.sparse

from manifold_dl import FixedSupport, SimCO, update_problem
from manifold_dl.manifolds import Spheres
from manifold_dl.problem.fixed import FixedCodes
from manifold_dl.problem.inner import RidgeCodes
from manifold_dl.problem.pairs import FEW_ATOMS
from manifold_dl.problem.separate import SeparateFixedCodes, SeparateRidgeCodes, no_weights
from manifold_dl.problem.update_problem import make_objective


class Data:
    """More atoms than the supports of few signals touch in pairs; some signals use no atom."""

    def __init__(self, m=12, d=FEW_ATOMS + 40, n=150, largest=6, dtype=np.float64, seed=0):
        rng = np.random.default_rng(seed)
        self.spheres = Spheres(m, d)
        self.D = self.spheres.random_point(rng).astype(dtype)
        self.U = self.spheres.random_tangent_vector(self.D, rng).astype(dtype)
        self.Y = rng.standard_normal((m, n)).astype(dtype)
        self.mask = np.zeros((d, n), bool)
        for j, size in enumerate(rng.integers(0, largest + 1, n)):
            self.mask[rng.choice(d, size, replace=False), j] = True
        self.X = scipy.sparse.csc_array((self.mask * rng.standard_normal((d, n))).astype(dtype))

    def dense_codes(self, D, mu):
        """Least squares on every support by NumPy."""
        X = np.zeros(self.mask.shape)
        for j in range(self.Y.shape[1]):
            I = np.flatnonzero(self.mask[:, j])
            A = np.vstack([D[:, I], np.sqrt(mu) * np.eye(len(I))])
            X[I, j] = np.linalg.lstsq(A, np.append(self.Y[:, j], np.zeros(len(I))), rcond=None)[0]
        return X

    def dense_value(self, D, mu):
        X = self.dense_codes(D, mu)
        return np.sum((self.Y - D @ X) ** 2) + mu * np.sum(X**2)


ridges = pytest.mark.parametrize("mu", [0.0, 0.1])


@ridges
def test_value_gradient_codes_and_hessian_are_the_dense_formulas(mu):
    data = Data()
    problem = update_problem(data.Y, data.mask, mu=mu)
    assert isinstance(problem.objective.inner, SeparateRidgeCodes)
    X = data.dense_codes(data.D, mu)
    assert problem.cost(data.D) == pytest.approx(data.dense_value(data.D, mu), rel=1e-12)
    np.testing.assert_allclose(problem.codes(data.D).toarray(), X, rtol=0, atol=1e-11)
    gradient = -2 * (data.Y - data.D @ X) @ X.T  # envelope theorem
    np.testing.assert_allclose(problem.euclidean_gradient(data.D), gradient, rtol=0, atol=1e-10)
    product = problem.euclidean_hessian(data.D, data.U)
    h = 1e-5  # central differences: an error of h² and of 1e-16 / h
    ends = [update_problem(data.Y, data.mask, mu=mu).euclidean_gradient(data.D + s * data.U) for s in (h, -h)]
    np.testing.assert_allclose(product, (ends[0] - ends[1]) / (2 * h), rtol=0, atol=1e-6 * abs(product).max())


@ridges
@pytest.mark.parametrize("closed_form", [True, False])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_separate_products_find_what_shared_ones_find(mu, closed_form, dtype):
    data = Data(dtype=dtype)
    subset = update_problem(data.Y, data.mask, mu=mu).subset
    separate = SeparateRidgeCodes(no_weights(subset.data), mu, has_closed_form=closed_form)
    one, other = make_objective(subset, separate), make_objective(subset, RidgeCodes(mu))
    digits = 1e-10 if dtype == np.float64 else 1e-4  # normal equations of up to six atoms
    assert one.value(data.D) == pytest.approx(other.value(data.D), rel=digits)
    scale = np.abs(other.gradient(data.D)).max()
    np.testing.assert_allclose(one.gradient(data.D), other.gradient(data.D), rtol=0, atol=digits * scale)
    expected = other.hessian(data.D, data.U)
    scale = np.abs(expected).max()
    np.testing.assert_allclose(one.hessian(data.D, data.U), expected, rtol=0, atol=digits * scale)
    phi, psi = one.along(data.D, data.U), other.along(data.D, data.U)
    for t in (0.0, 1e-3, 0.4):
        assert phi(t) == pytest.approx(psi(t), rel=digits)
        assert phi.derivative(t) == pytest.approx(psi.derivative(t), rel=digits, abs=digits * psi(t))


@ridges
def test_restriction_is_the_objective_at_the_points_of_the_geodesic(mu):
    data = Data()
    phi = update_problem(data.Y, data.mask, mu=mu).restrict(data.D, data.U)
    for t in (0.05, 0.7):
        point = data.spheres.exp(data.D, t * data.U)
        assert phi(t) == pytest.approx(data.dense_value(point, mu), rel=1e-11)


def test_fixed_codes_are_a_quadratic_with_and_without_the_matrix_of_all_pairs():
    data = Data()
    problem = update_problem(data.Y, data.X, codes="fixed")
    subset, objective = problem.subset, problem.objective
    assert isinstance(objective.inner, SeparateFixedCodes)
    shared = FixedCodes(subset.codes, subset.data, len(subset.atoms), subset.whole.engine)
    other = make_objective(subset, shared)
    residual = data.Y - data.D @ data.X
    assert objective.value(data.D) == pytest.approx(np.sum(residual**2), rel=1e-12)
    np.testing.assert_allclose(objective.gradient(data.D), -2 * residual @ data.X.T, rtol=0, atol=1e-11)
    product = 2 * data.U @ (data.X @ data.X.T)
    for one in (objective, other):
        np.testing.assert_allclose(one.hessian(data.D, data.U), product, rtol=0, atol=1e-11)
        phi = one.along(data.D, data.U)
        for t in (0.2, 1.1):
            point = data.spheres.exp(data.D, t * data.U)
            assert phi(t) == pytest.approx(np.sum((data.Y - point @ data.X) ** 2), rel=1e-11)


def test_rank_deficient_supports_have_minimum_norm_codes():
    data = Data()
    data.mask[:] = False
    data.mask[[0, 1, 2]] = True
    data.D[:, 1] = data.D[:, 0]
    problem = update_problem(data.Y, data.mask)
    np.testing.assert_allclose(
        problem.codes(data.D).toarray(), data.dense_codes(data.D, 0.0), rtol=0, atol=1e-10
    )
    assert problem.counts.rank_deficient == data.Y.shape[1]


def test_codes_on_a_given_support_are_least_squares():
    data = Data()
    codes = FixedSupport(data.mask).encode(data.Y, data.D)
    np.testing.assert_allclose(codes.toarray(), data.dense_codes(data.D, 0.0), rtol=0, atol=1e-10)


def test_an_update_has_the_same_bits_for_any_number_of_threads():
    data = Data(n=5000, d=600, largest=4)
    results = [SimCO(threads=threads)(data.Y, data.D, data.X) for threads in (1, 2)]
    np.testing.assert_array_equal(results[0][0], results[1][0])
    np.testing.assert_array_equal(results[0][1].data, results[1][1].data)


@pytest.mark.parametrize("codes", ["follow", "fixed"])
def test_memory_of_an_update_does_not_grow_with_the_pairs_of_atoms(codes):
    data = Data(d=2000, n=300, largest=5)
    SimCO(threads=1, codes=codes)(data.Y, data.D, data.X)  # what is made once
    tracemalloc.start()
    SimCO(threads=1, codes=codes)(data.Y, data.D, data.X)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2000**2 * 8 / 4  # a quarter of one d×d matrix; 25 dictionaries are 4.8 MB
