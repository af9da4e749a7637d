"""Signals with known sparse codes, for the tests of the coders."""

import numpy as np


def problem(m, d, n, sparsity, noise=0.0, seed=0, dtype=np.float64):
    """Unit-norm Gaussian atoms, exactly `sparsity` Gaussian coefficients per signal, white noise."""
    rng = np.random.default_rng(seed)
    D = rng.standard_normal((m, d))
    D /= np.linalg.norm(D, axis=0)
    X = np.zeros((d, n))
    for x in X.T:
        x[rng.permutation(d)[:sparsity]] = rng.standard_normal(sparsity)
    Y = D @ X + noise * rng.standard_normal((m, n))
    return D.astype(dtype), X.astype(dtype), Y.astype(dtype)


def residuals(Y, D, X):
    """‖y − Dx‖² of every signal."""
    return np.sum((Y - D @ X.toarray()) ** 2, axis=0)
