"""The pass with ℓ₁ codes: the compiled kernel against plain NumPy, optimality, and codes free of history."""

import numpy as np
import pytest

from manifold_dl.kernels.coding import StartingCodes
from manifold_dl.kernels.reduced import lasso as compiled
from manifold_dl.kernels.reduced import reference_lasso as reference

M, D, N = 8, 14, 90
both_ridges = pytest.mark.parametrize("mu", [0.0, 0.2])


def draw(seed, dtype=float, scale=1.0):
    """Signals and two unit dictionaries close to each other, in rows."""
    rng = np.random.default_rng(seed)
    atoms = rng.standard_normal((D, M))
    near = atoms + 0.1 * rng.standard_normal((D, M))
    unit = [(a / np.linalg.norm(a, axis=1)[:, None]).astype(dtype) for a in (atoms, near)]
    signals = (scale * rng.standard_normal((N, M))).astype(dtype)
    signals[3] = 0
    return signals, *unit


def fit(module, signals, atoms, alpha, mu, start=None):
    return module.fit_lasso(signals, module.prepare_lasso(atoms, mu), alpha, mu, start)


def dense(codes, n=N, d=D):
    indptr, indices, values = codes
    X = np.zeros((n, d))
    X[np.repeat(np.arange(n), np.diff(indptr)), indices] = values
    return X


@both_ridges
@pytest.mark.parametrize("alpha", [0.02, 0.3, 3.0, 100.0])
def test_compiled_pass_agrees_with_the_reference(alpha, mu):
    signals, atoms, _ = draw(0)
    left, right = fit(compiled, signals, atoms, alpha, mu), fit(reference, signals, atoms, alpha, mu)
    # Both end at the exact solution; sums of a hundred terms are rounded in another order.
    np.testing.assert_allclose(left.value, right.value, rtol=1e-13)
    np.testing.assert_allclose(left.gradient, right.gradient, atol=1e-11)
    np.testing.assert_allclose(left.energies, right.energies, atol=1e-11)
    np.testing.assert_allclose(dense(left.codes), dense(right.codes), atol=1e-11)


@both_ridges
@pytest.mark.parametrize("alpha", [0.02, 0.3])
def test_codes_satisfy_the_optimality_conditions(alpha, mu):
    signals, atoms, _ = draw(1)
    X = dense(fit(compiled, signals, atoms, alpha, mu).codes)
    h = (signals - X @ atoms) @ atoms.T - mu * X
    assert np.abs(h).max() <= alpha * (1 + 1e-8)
    np.testing.assert_allclose(h[X != 0], alpha * np.sign(X[X != 0]), rtol=1e-8)


@both_ridges
def test_codes_do_not_depend_on_the_start(mu):
    signals, atoms, near = draw(2)
    cold = fit(compiled, signals, atoms, 0.1, mu)
    warm = fit(compiled, signals, atoms, 0.1, mu, fit(compiled, signals, near, 0.05, mu).codes)
    wrong = StartingCodes(
        np.arange(0, 2 * N + 1, 2), np.tile([D - 1, 2], N).astype(np.int32), np.full(2 * N, -7.0)
    )
    absurd = fit(compiled, signals, atoms, 0.1, mu, wrong)
    for other in (warm, absurd):
        assert other.value == cold.value
        for left, right in zip(other.codes, cold.codes, strict=True):
            np.testing.assert_array_equal(left, right)
        np.testing.assert_array_equal(other.gradient, cold.gradient)


def test_single_precision_agrees_with_double():
    signals, atoms, _ = draw(3, np.float32)
    single = fit(compiled, signals, atoms, 0.1, 0.0)
    double = fit(compiled, signals.astype(float), atoms.astype(float), 0.1, 0.0)
    assert single.gradient.dtype == single.codes.values.dtype == np.float32
    np.testing.assert_allclose(single.value, double.value, rtol=1e-5)
    np.testing.assert_allclose(single.gradient, double.gradient, atol=1e-3)


def test_single_precision_repeats_in_double_what_rounding_spoils():
    # 40 nearly dependent atoms and a small penalty: the Gram matrix in single precision has no digits left.
    rng = np.random.default_rng(4)
    base = rng.standard_normal((5, 40))
    atoms = base[rng.integers(0, 5, 60)] + 3e-3 * rng.standard_normal((60, 40))
    atoms = (atoms / np.linalg.norm(atoms, axis=1)[:, None]).astype(np.float32)
    signals = rng.standard_normal((50, 40)).astype(np.float32)
    found = fit(compiled, signals, atoms, 1e-3, 0.0)
    expected = fit(compiled, signals.astype(float), atoms.astype(float), 1e-3, 0.0)
    np.testing.assert_allclose(found.value, expected.value, rtol=1e-4)


def test_equal_atoms_do_not_stop_the_elastic_net():
    signals, atoms, _ = draw(5)
    atoms[4] = atoms[7]
    found = fit(compiled, signals, atoms, 0.1, 0.2)
    X = dense(found.codes)
    np.testing.assert_allclose(X[:, 4], X[:, 7], atol=1e-10)  # the ridge shares a coefficient equally
    np.testing.assert_allclose(found.value, fit(reference, signals, atoms, 0.1, 0.2).value, rtol=1e-10)
