"""How many digits are right where two atoms are nearly collinear, against exact rational arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse

import manifold_dl as mdl

ANGLES = [10.0**-k for k in range(1, 10)]
STEPS = (1e-12, 1e-9, 1e-6, 1e-3, 1e-1, 1.0)


def nearly_collinear(angle, seed, m=8):
    """Two unit atoms at this angle, and some signals."""
    rng = np.random.default_rng(seed)
    a, u = rng.standard_normal((2, m))
    a /= np.linalg.norm(a)
    u -= a * (a @ u)
    D = np.column_stack([a, np.cos(angle) * a + np.sin(angle) * u / np.linalg.norm(u)])
    return D / np.linalg.norm(D, axis=0), rng.standard_normal((m, 3 + seed % 5))


def problem_of(signals, mu=0.0):
    return mdl.update_problem(signals, np.ones((2, signals.shape[1]), bool), mu=mu)


def exact(D, Y, mu=0.0):
    """Value and gradient of Σ min_x ‖y − Dx‖² + μ‖x‖², without any rounding before the end."""
    a, b = ([Fraction(entry) for entry in column] for column in D.T.tolist())
    inner = lambda p, q: sum(x * y for x, y in zip(p, q, strict=True))
    mu = Fraction(mu)
    aa, ab, bb = inner(a, a) + mu, inner(a, b), inner(b, b) + mu
    value, gradient = Fraction(0), np.zeros_like(D)
    total = [[Fraction(0)] * len(D) for _ in range(2)]
    for column in Y.T.tolist():
        y = [Fraction(entry) for entry in column]
        ya, yb = inner(a, y), inner(b, y)
        determinant = aa * bb - ab * ab
        x = (bb * ya - ab * yb) / determinant, (aa * yb - ab * ya) / determinant
        r = [yi - x[0] * ai - x[1] * bi for yi, ai, bi in zip(y, a, b, strict=True)]
        value += inner(r, r) + mu * inner(x, x)
        for k in range(2):
            total[k] = [before - 2 * ri * x[k] for before, ri in zip(total[k], r, strict=True)]
    gradient = np.array([[float(entry) for entry in row] for row in total]).T
    return float(value), gradient


@pytest.mark.parametrize("angle", ANGLES)
@pytest.mark.parametrize(("mu", "value_error", "gradient_error"), [(0.0, 1e-8, 1e-6), (1e-4, 1e-12, 1e-8)])
def test_two_atoms_at_a_small_angle(angle, mu, value_error, gradient_error):
    # Down to 1e-4 normal equations are solved, at a cost of 1/angle² roundings; from there on differences.
    for seed in range(5):
        D, Y = nearly_collinear(angle, seed)
        value, gradient = exact(D, Y, mu)
        problem = problem_of(Y, mu)
        assert problem.cost(D) == pytest.approx(value, rel=value_error)
        error = np.linalg.norm(problem.euclidean_gradient(D) - gradient)
        assert error <= gradient_error * np.linalg.norm(gradient)


@pytest.mark.parametrize("angle", ANGLES)
def test_phi_along_a_geodesic_has_six_digits(angle):
    for seed in range(5):
        D, Y = nearly_collinear(angle, seed)
        V = np.random.default_rng(seed).standard_normal(D.shape)
        V -= D * np.sum(D * V, axis=0)
        angles = np.linalg.norm(V, axis=0)
        phi = problem_of(Y).restrict(D, V)
        for t in STEPS:
            at_t = D * np.cos(t * angles) + V / angles * np.sin(t * angles)
            # The angle of the atoms at t has roundings of 1e-16 of its own: 1e-7 of an angle of 1e-9.
            assert phi(t) == pytest.approx(exact(at_t, Y)[0], rel=1e-6)


@pytest.mark.parametrize("angle", [1e-7, 1e-8, 1e-9])
def test_an_update_improves_nearly_collinear_atoms(angle):
    for seed in range(40):
        D, Y = nearly_collinear(angle, seed)
        moved, _ = mdl.SimCO(mu=0.0)(Y, D, scipy.sparse.csc_array(np.ones((2, Y.shape[1]))))
        assert exact(moved, Y)[0] < exact(D, Y)[0]


def test_equal_and_opposite_atoms_share_a_code():
    # Of all codes with the smallest error those of the smallest norm: x₁ = ±x₂.
    a = np.array([0.6, 0.8, 0.0])
    for sign in (1, -1):
        problem = problem_of(np.array([[1.0], [2.0], [3.0]]))
        X = problem.codes(np.column_stack([a, sign * a])).toarray().ravel()
        np.testing.assert_allclose(X, [1.1, sign * 1.1], rtol=1e-14)  # half of aᵀy = 2.2 each
