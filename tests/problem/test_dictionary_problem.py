"""The Pymanopt problem of a dictionary: preconditioner, scale, precision, arrays that callers change."""

import numpy as np
import pytest
import scipy.sparse
from problem_cases import MANIFOLDS, OPTIMIZERS, SETS, M, N, draw, every_penalty, make
from pymanopt.optimizers import ConjugateGradient

from manifold_dl import manifolds, update_problem
from manifold_dl.line_search import WolfeSearch
from manifold_dl.manifolds import Spheres


def test_scale_is_the_energy_of_the_signals(rng):
    Y, X, _ = draw(rng)
    problem = update_problem(Y, X)
    assert problem.scale == problem.cost.scale == pytest.approx(np.sum(Y**2), rel=1e-14)


@pytest.mark.parametrize("manifold", MANIFOLDS.values(), ids=MANIFOLDS)
@pytest.mark.usefixtures("seeded")
def test_the_preconditioner_is_symmetric_positive_definite_on_tangent_vectors(rng, manifold):
    Y, X, _ = draw(rng, m=6, d=4)
    problem = update_problem(Y * 100, X, manifold=manifold, mu=0.1)
    geometry, point = problem.manifold, problem.manifold.random_point()
    basis = [geometry.random_tangent_vector(point) for _ in range(geometry.dim)]
    images = [problem.preconditioner(point, U) for U in basis]
    for image in images:  # they are tangent
        np.testing.assert_allclose(geometry.projection(point, image), image, atol=1e-14)
    matrix = np.array([[geometry.inner_product(point, U, PV) for PV in images] for U in basis])
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-14)
    gram = np.array([[geometry.inner_product(point, U, V) for V in basis] for U in basis])
    # In an orthonormal basis, which is what the square root of the Gram matrix makes of this one.
    eigenvalues = np.linalg.eigvals(np.linalg.solve(gram, matrix)).real
    assert eigenvalues.min() > 1e-3


def test_the_preconditioner_takes_tangents_of_the_shape_of_a_point(rng):
    problem, point, U = make(rng, None, mu=0.1)
    for other in (U[:, :1], U[:, :2], np.hstack([U, U])):  # compiled code would read beyond its end
        with pytest.raises(ValueError, match="rows"):
            problem.preconditioner(point, other)


def test_changing_a_returned_gradient_does_not_change_the_next(rng):
    for manifold in (manifolds.Euclidean, Spheres):
        problem, point, _ = make(rng, None, mu=0.1, manifold=manifold)
        expected = problem.riemannian_gradient(point).copy()
        problem.riemannian_gradient(point)[:] = 0
        problem.euclidean_gradient(point)[:] = 0
        np.testing.assert_array_equal(problem.riemannian_gradient(point), expected)


def test_the_preconditioner_divides_by_the_energies(rng):
    Y, X, D = draw(rng)
    problem = update_problem(Y, X)
    U = problem.manifold.random_tangent_vector(D, rng)
    energies = np.sum(problem.codes(D).toarray() ** 2, axis=1)
    assert energies.min() > 1e-3 * energies.mean()  # no floor in sight
    np.testing.assert_allclose(problem.preconditioner(D, U), U * energies.mean() / energies, rtol=1e-12)


def test_hardly_used_atoms_do_not_run_away(rng):
    Y, X, D = draw(rng)
    X[5] = 0  # not used at all
    problem = update_problem(Y, X, mu=0.1)
    U = problem.manifold.random_tangent_vector(D, rng)
    ratio = np.linalg.norm(problem.preconditioner(D, U), axis=0) / np.linalg.norm(U, axis=0)
    assert ratio[5] == pytest.approx(1000) == ratio.max()


def test_without_preconditioner(rng):
    problem, point, U = make(rng, SETS["three"], precondition=False)
    assert problem.preconditioner(point, U) is U


def test_nothing_to_divide_by(rng):
    problem = update_problem(np.zeros((M, N)), np.ones((3, N), bool))
    point = problem.manifold.random_point(rng)
    U = problem.manifold.random_tangent_vector(point, rng)
    np.testing.assert_array_equal(problem.preconditioner(point, U), U)
    assert problem.cost(point) == 0 and not problem.riemannian_gradient(point).any()


def test_atoms_that_no_signal_uses(rng):
    # The update of an atom without signals is a constant, not an accident.
    Y, X, D = draw(rng)
    X[5] = 0
    problem = update_problem(Y, X, atoms=[5], dictionary=D)
    residual = np.sum((Y - D @ X) ** 2)
    assert problem.cost(D[:, [5]]) == pytest.approx(residual, rel=1e-13)
    assert not problem.riemannian_gradient(D[:, [5]]).any()
    result = ConjugateGradient(line_searcher=WolfeSearch(), verbosity=0).run(problem, initial_point=D[:, [5]])
    np.testing.assert_array_equal(result.point, D[:, [5]])
    np.testing.assert_array_equal(problem.codes(result.point).toarray(), X)


@every_penalty
@pytest.mark.parametrize("codes", ["follow", "fixed"])
def test_float32_in_float32_out(rng, penalties, codes):
    Y, X, D = draw(rng)
    double = update_problem(Y, X, mu=0.1, regularizers=penalties[:1], codes=codes)
    single = update_problem(
        Y.astype(np.float32), scipy.sparse.csc_array(X), mu=0.1, regularizers=penalties[:1], codes=codes
    )
    D32 = D.astype(np.float32)
    U = double.manifold.random_tangent_vector(D, rng)
    gradient, hessian = single.riemannian_gradient(D32), single.riemannian_hessian(D32, U.astype(np.float32))
    assert single.euclidean_gradient(D32).dtype == gradient.dtype == hessian.dtype == np.float32
    assert single.codes(D32).dtype == np.float32
    assert single.preconditioner(D32, gradient).dtype == np.float32
    # Seven digits, two of which the normal equations may lose.
    assert single.cost(D32) == pytest.approx(double.cost(D), rel=1e-5)
    expected = double.riemannian_gradient(D)
    np.testing.assert_allclose(gradient, expected, rtol=0, atol=1e-5 * np.abs(expected).max())
    expected = double.riemannian_hessian(D, U)
    np.testing.assert_allclose(hessian, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("name", ["steepest descent", "conjugate, Wolfe search", "descent, golden section"])
def test_float32_stays_float32_through_a_run(rng, name):
    Y, X, D = draw(rng)
    problem = update_problem(Y.astype(np.float32), X.astype(np.float32), mu=0.1)
    result = OPTIMIZERS[name].run(problem, initial_point=D.astype(np.float32))
    assert result.point.dtype == problem.codes(result.point).dtype == np.float32
    assert problem.record[-1].value < problem.record[0].value
