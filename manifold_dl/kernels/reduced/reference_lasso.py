"""The objective with ℓ₁ codes in plain NumPy: written to be read, not to be fast.

    f(D) = Σ_j min_x ½‖y_j − Dx‖² + α‖x‖₁ + (μ/2)‖x‖²

`problem/solvers.py` calls these through `kernels.reduced`; `lasso.py` holds the same functions compiled.
"""

import numpy as np

from manifold_dl.kernels.coding import reference as coding
from manifold_dl.kernels.coding.interface import LassoSettings, PreparedDictionary, StartingCodes
from manifold_dl.kernels.reduced.structures import InnerFit

TOLERANCE = 1e-9


def prepare_lasso(atoms: np.ndarray, mu: float) -> PreparedDictionary:
    """What a pass needs of the atoms (k×m) alone, computed once per dictionary."""
    return coding.prepare(atoms)


def fit_lasso(
    signals: np.ndarray,
    dictionary: PreparedDictionary,
    alpha: float,
    mu: float,
    start: StartingCodes | None = None,
    roots: np.ndarray | None = None,
    nonnegative: bool = False,
) -> InnerFit:
    """Solve for the codes; value and gradient of f, where the codes follow by the envelope theorem.

    `start` holds the codes of the last dictionary, from which the compiled kernel begins. With a weight w per
    signal the signals are √w y and `roots` is √w: √w x then minimises ½‖√w y − Dx‖² + √w α‖x‖₁ + (μ/2)‖x‖².
    With `nonnegative` the minimum is over x ≥ 0.
    """
    weights, factors = np.ones_like(signals), np.ones(len(signals)) if roots is None else roots
    return _fit(signals, weights, dictionary.atoms, alpha, mu, factors, nonnegative)


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
    """The same with a weight for every entry, n×m like the signals: Σ ½w(y − Dx)² in place of ½‖y − Dx‖²."""
    factors = np.ones(len(signals)) if roots is None else roots
    return _fit(signals, weights, dictionary.atoms, alpha, mu, factors, nonnegative)


def _fit(
    signals: np.ndarray,
    weights: np.ndarray,
    atoms: np.ndarray,
    alpha: float,
    mu: float,
    factors: np.ndarray,
    nonnegative: bool,
) -> InnerFit:
    """Signal by signal, with α times its factor.

    The elastic net is a lasso: ½‖y − Dx‖² + (μ/2)‖x‖² = ½‖(y, 0) − (D, √μ I)x‖².
    """
    n, k = len(signals), len(atoms)
    ridge = np.sqrt(mu) * np.eye(k, dtype=atoms.dtype) if mu > 0 else np.zeros((k, 0), atoms.dtype)
    settings = LassoSettings(
        np.array([alpha]), relative=False, tol=TOLERANCE, refit=0, nonnegative=nonnegative
    )
    X = np.zeros((n, k), signals.dtype)  # the codes in rows
    for j, (y, root) in enumerate(zip(signals, np.sqrt(weights), strict=True)):
        longer = np.concatenate([root * y, np.zeros(ridge.shape[1], y.dtype)])
        own = coding.prepare(np.hstack([atoms * root, ridge]))
        counts, indices, values = coding.lasso(own, longer[None], settings, factors=factors[j : j + 1])
        X[j, indices[0, : counts[0]]] = values[0, : counts[0]]
    R = signals - X @ atoms
    value = np.sum(weights * R**2, dtype=float) / 2 + alpha * np.sum(factors @ np.abs(X), dtype=float)
    value += mu / 2 * np.sum(X**2, dtype=float)
    energies = weights.mean(axis=1, dtype=float) @ X.astype(float) ** 2
    rows, columns = np.nonzero(X)
    indptr = np.concatenate([[0], np.cumsum(np.count_nonzero(X, axis=1), dtype=np.int64)])
    codes = StartingCodes(indptr, columns.astype(np.int32), X[rows, columns])
    return InnerFit(float(value), -X.T @ (weights * R), energies, codes)
