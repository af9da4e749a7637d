"""What the signals determine: the counting bound, and the atoms that Y = DX fixes for a known support.

Used by the recovery experiment, which compares success rates with both.
"""

from typing import Any

import numpy as np
import scipy.sparse


def counting_bound(m: int, d: int, sparsity: int) -> float:
    """Return the number of signals with as many equations as unknowns, d(m − 1)/(m − S).

    Parameters
    ----------
    m, d : int
        Length and number of the atoms.
    sparsity : int
        S, atoms per signal.

    Returns
    -------
    float
        nm equations against d(m − 1) + nS unknowns.

    Examples
    --------
    >>> counting_bound(16, 32, 4)
    40.0
    """
    return d * (m - 1) / (m - sparsity)


def determined_atoms(D: np.ndarray, X: Any) -> np.ndarray:
    """Return which atoms Y = DX determines for a known support: those that are fixed to first order.

    A change δD leaves signal j without error if the codes can compensate it within the span of the atoms in
    use: Qⱼᵀ δD xⱼ = 0 for a basis Qⱼ of the orthogonal complement. Atoms keep their norms, dᵢᵀδdᵢ = 0. The
    solutions of these linear equations are the directions in which D can change without an error.

    Parameters
    ----------
    D : array (m×d)
        The dictionary, with unit atoms.
    X : array or sparse array (d×n)
        The codes; their non-zeros are the support.

    Returns
    -------
    boolean array of length d

    Examples
    --------
    >>> from manifold_dl.datasets import synthetic
    >>> D, X, _ = synthetic(6, 8, 60, sparsity=2, rng=0)
    >>> bool(determined_atoms(D, X).all())
    True
    >>> X = X.toarray()
    >>> X[0, 1:] = 0  # atom 0 is used by a single signal, which is not enough
    >>> bool(determined_atoms(D, X)[0])
    False
    """
    (m, d), n = D.shape, X.shape[1]
    codes = X.toarray() if scipy.sparse.issparse(X) else np.asarray(X)
    rows = []
    for j in range(n):
        used = np.flatnonzero(codes[:, j])
        rest = np.linalg.qr(D[:, used], mode="complete")[0][:, len(used) :].T
        equations = np.zeros((len(rest), d, m))
        equations[:, used] = rest[:, None, :] * codes[used, j][:, None]
        rows.append(equations.reshape(len(rest), -1))
    norms = np.zeros((d, d, m))
    norms[np.arange(d), np.arange(d)] = D.T
    triangle = np.linalg.qr(np.vstack([*rows, norms.reshape(d, -1)]), mode="r")
    _, values, directions = np.linalg.svd(triangle)
    values = np.append(values, np.zeros(len(directions) - len(values)))
    free = directions[values < 1e-9 * values[0]].reshape(-1, d, m)
    # A direction is a unit vector; a component below 1e-6 of it is rounding.
    determined: np.ndarray = np.sqrt(np.sum(free**2, axis=(0, 2))) < 1e-6
    return determined
