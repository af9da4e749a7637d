"""The objective with ℓ₁ codes, compiled: value, gradient and codes of one block of signals.

    Σ_j min_x ½‖y_j − Dx‖² + α‖x‖₁ + (μ/2)‖x‖²,   gradient −Σ_j r_j x_jᵀ

The functions of `reference_lasso.py`. The codes are those of `coding/lasso.py`, the kernel of the coders,
which begins with the codes of the last dictionary; a second pass over the signals adds up the rest. In the
elastic net μ is on the diagonal of the Gram matrix, and the conditions are |Dᵀr − μx| ≤ α.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_reordering
from manifold_dl.kernels.coding.interface import Codes, LassoSettings, PreparedDictionary, StartingCodes
from manifold_dl.kernels.coding.lasso import lasso, prepare_lasso, weighted_lasso
from manifold_dl.kernels.memory import aligned_zeros
from manifold_dl.kernels.reduced.structures import InnerFit

__all__ = ["fit_lasso", "fit_weighted_lasso", "prepare_lasso"]

# Of the penalty: by how much a correlation may exceed it before its atom joins the support.
TOLERANCE = {np.dtype(np.float64): 1e-9, np.dtype(np.float32): 1e-6}


class LassoArrays(NamedTuple):
    """Where the second pass writes to."""

    gradient: np.ndarray
    energies: np.ndarray
    indices: np.ndarray
    values: np.ndarray


def fit_lasso(
    signals: np.ndarray,
    dictionary: PreparedDictionary,
    alpha: float,
    mu: float,
    start: StartingCodes | None = None,
    roots: np.ndarray | None = None,
    nonnegative: bool = False,
) -> InnerFit:
    """See `reference_lasso.fit_lasso`."""
    factors = np.ones(len(signals), signals.dtype) if roots is None else roots
    codes = lasso(dictionary, signals, _settings(signals, alpha, mu, nonnegative), start, factors)
    return _add_up(signals, None, dictionary.atoms, (alpha, mu), factors, codes)


def fit_weighted_lasso(
    signals: np.ndarray,
    weights: np.ndarray,
    dictionary: PreparedDictionary,
    alpha: float,
    mu: float,
    start: StartingCodes | None = None,
    roots: np.ndarray | None = None,
    nonnegative: bool = False,
) -> InnerFit:
    """See `reference_lasso.fit_weighted_lasso`."""
    own, factors = np.sqrt(weights), np.ones(len(signals), signals.dtype) if roots is None else roots
    codes = weighted_lasso(
        dictionary, own * signals, own, _settings(signals, alpha, mu, nonnegative), start, factors
    )
    return _add_up(signals, weights, dictionary.atoms, (alpha, mu), factors, codes)


def _settings(signals: np.ndarray, alpha: float, mu: float, nonnegative: bool) -> LassoSettings:
    tol = TOLERANCE[signals.dtype]
    return LassoSettings(np.array([alpha]), relative=False, tol=tol, refit=0, nonnegative=nonnegative, mu=mu)


def _add_up(
    signals: np.ndarray,
    weights: np.ndarray | None,
    atoms: np.ndarray,
    penalties: tuple[float, float],
    factors: np.ndarray,
    codes: Codes,
) -> InnerFit:
    """Value, gradient and energies with these codes, and the codes with their entries in a row."""
    indptr = np.concatenate([[0], np.cumsum(codes.counts, dtype=np.int64)])
    size, dtype = int(indptr[-1]), signals.dtype
    out = LassoArrays(
        aligned_zeros(atoms.shape, dtype),
        np.zeros(len(atoms)),
        np.empty(size, np.int32),
        np.empty(size, dtype),
    )
    alpha, mu = penalties
    value = _add_signals(
        signals, weights, atoms, (float(alpha), float(mu)), factors, tuple(codes), tuple(out)
    )
    found = StartingCodes(indptr, out.indices, out.values)
    return InnerFit(value, out.gradient, out.energies, found)


@compiled_reordering
def _add_signals(signals, weights, atoms, penalties, factors, codes, out):
    (counts, indices, values), (alpha, mu) = codes, penalties
    gradient, energies, kept_indices, kept_values = out
    m, r, value, at = signals.shape[1], np.empty_like(signals[0]), 0.0, np.int64(0)
    for j in range(len(signals)):
        support, x, y = indices[j], values[j], signals[j]
        for p in range(m):
            r[p] = y[p]
        for l in range(counts[j]):
            atom, xl = atoms[support[l]], x[l]
            for p in range(m):
                r[p] -= xl * atom[p]
        total, absolute, square, mean = 0.0, 0.0, 0.0, 1.0
        if weights is None:
            for p in range(m):
                total += np.float64(r[p]) * r[p]
        else:
            w, mean = weights[j], 0.0
            for p in range(m):
                mean += np.float64(w[p]) / m
                total += np.float64(w[p]) * r[p] * r[p]
                r[p] *= w[p]
        for l in range(counts[j]):
            i, xl = support[l], x[l]
            absolute += abs(np.float64(xl))
            square += np.float64(xl) * xl
            energies[i] += mean * (np.float64(xl) * xl)
            kept_indices[at], kept_values[at] = i, xl
            at += 1
            row = gradient[i]
            for p in range(m):
                row[p] -= xl * r[p]
        value += 0.5 * total + factors[j] * (alpha * absolute) + 0.5 * mu * square
    return value
