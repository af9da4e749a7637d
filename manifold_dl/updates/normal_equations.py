"""The normal equations of MOD, (X Xᵀ + ρI) Δᵀ = X (Y − DX)ᵀ, directly or by conjugate gradients.

With few atoms X Xᵀ is a small matrix that is factorised. With so many that the codes touch few of its entries
(`problem/pairs.py`) it is never formed: X (Xᵀ V) costs two products with the sparse codes, and conjugate
gradients need nothing else. Both begin at zero and stay in the range of X, so that what the codes do not
determine does not change.
"""

from collections.abc import Callable

import numpy as np
import scipy.linalg

from manifold_dl.kernels.blas import one_blas_thread

# Right-hand sides that are solved side by side: 64 numbers of each of 4,096 atoms stay in the cache.
COLUMNS = 64


def solve_symmetric(gram: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray:
    """(G + ρI)⁻¹ B for a positive semi-definite G; the minimum-norm solution where G is singular.

    ρ is `ridge` times the mean of the diagonal of G.
    """
    with one_blas_thread(operations=len(gram) ** 3):
        return _solved(gram, right, ridge)


def _solved(gram: np.ndarray, right: np.ndarray, ridge: float) -> np.ndarray:
    n_rows = len(gram)
    if n_rows == 0:
        return right
    G = gram + ridge * np.trace(gram) / n_rows * np.eye(n_rows)
    try:
        factor = scipy.linalg.cho_factor(G)
        pivots = np.diagonal(factor[0]) ** 2
        if pivots.min() > n_rows * np.finfo(float).eps * pivots.max():
            return scipy.linalg.cho_solve(factor, right)
    except np.linalg.LinAlgError:
        pass
    return scipy.linalg.pinvh(G) @ right


def solve_by_products(
    multiply: Callable[[np.ndarray], np.ndarray], right: np.ndarray, tol: float
) -> np.ndarray:
    """G⁺B for a positive semi-definite G that is known by its products alone, a few columns at a time.

    Parameters
    ----------
    multiply : callable
        V → G V, for matrices of any number of columns.
    right : array
        B, with columns in the range of G.
    tol : float
        A column is solved when an iteration lowers its quadratic, xᵀGx − 2bᵀx, by less than `tol` times what
        all iterations have.

    Examples
    --------
    >>> G = np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> print(solve_by_products(lambda V: G @ V, np.array([[3.0], [3.0]]), tol=1e-12).round(9).tolist())
    [[1.0], [1.0]]
    """
    solution = np.empty_like(right)
    for first in range(0, right.shape[1], COLUMNS):
        part = slice(first, first + COLUMNS)
        solution[:, part] = _conjugate_gradients(multiply, np.ascontiguousarray(right[:, part]), tol)
    return solution


def _conjugate_gradients(
    multiply: Callable[[np.ndarray], np.ndarray], right: np.ndarray, tol: float
) -> np.ndarray:
    """Conjugate gradients from zero, with step lengths of its own for every column."""
    V, R, P = np.zeros_like(right), right.copy(), right.copy()
    square, fallen = _squares(R, R), np.zeros(right.shape[1])
    for _ in range(len(right)):
        Q = multiply(P)
        curvature = _squares(P, Q)
        step = np.divide(square, curvature, out=np.zeros_like(square), where=curvature > 0)
        V += step * P
        R -= step * Q
        falls = step * square  # of the quadratic, in this iteration
        fallen += falls
        if (falls <= tol * fallen).all():
            break
        before, square = square, _squares(R, R)
        P *= np.divide(square, before, out=np.zeros_like(square), where=before > 0)
        P += R
    return V


def _squares(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    return np.einsum("ij,ij->j", one, other)
