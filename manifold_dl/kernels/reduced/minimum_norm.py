"""Small least-squares problems by singular values: the minimum-norm solution, also where a support lacks full
rank.

`reference.py` solves all signals this way. The compiled kernels do so with the few whose Cholesky pivots
break down.
"""

from collections.abc import Iterator

import numpy as np

# A squared Cholesky pivot this much smaller than the largest sends a signal from the normal equations
# to the singular value decomposition: at 1e-8 the normal equations have lost half of all digits.
PIVOT_RATIO = 1e-8


def solve(A: np.ndarray, y: np.ndarray, mu: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Minimum-norm x of min ‖y − Aᵀx‖² + μ‖x‖², for a stack of problems, by the SVD of [Aᵀ; √μ I].

    Returns x, (A Aᵀ + μI)⁺ and the smallest squared pivot of that matrix relative to the largest. Where
    A is not finite, as after a diverging optimizer, x is NaN: the decomposition would raise.
    """
    count, s, m = A.shape
    if s == 0:
        return np.zeros((count, 0), y.dtype), np.zeros((count, 0, 0)), np.ones(count)
    B = np.zeros((count, m + s, s))
    B[:, :m] = A.transpose(0, 2, 1)
    B[:, m:] = np.sqrt(mu) * np.eye(s)
    not_finite = ~np.isfinite(B).all(axis=(1, 2))
    B[not_finite] = 0
    U, sigma, Vt = np.linalg.svd(B, full_matrices=False)
    cutoff = (m + s) * np.finfo(A.dtype).eps * sigma[:, :1]  # the rank that NumPy's lstsq would see
    inverse_sigma = np.divide(1.0, sigma, out=np.zeros_like(sigma), where=sigma > cutoff)
    half = Vt.transpose(0, 2, 1) * inverse_sigma[:, None, :]
    x = np.einsum("csk,cmk,cm->cs", half, U[:, :m], y, optimize=True)
    x[not_finite] = np.nan
    pivots = np.diagonal(np.linalg.qr(B, mode="r"), axis1=1, axis2=2) ** 2
    smallest, largest = pivots.min(1), pivots.max(1)
    ratio = np.divide(smallest, largest, out=np.zeros(count), where=largest > 0)
    return x.astype(y.dtype), half @ half.transpose(0, 2, 1), ratio


def groups(indptr: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(signals, places of their entries) for every support size that occurs, empty supports included."""
    sizes = np.diff(indptr)
    for size in np.unique(sizes):
        columns = np.flatnonzero(sizes == size)
        yield columns, indptr[columns][:, None] + np.arange(size)


def take(
    indptr: np.ndarray, indices: np.ndarray, columns: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The support of some of the signals, and where their entries were."""
    sizes = np.diff(indptr)[columns]
    new_indptr = np.concatenate([[0], np.cumsum(sizes)])
    places = np.repeat(indptr[columns] - new_indptr[:-1], sizes) + np.arange(new_indptr[-1])
    return new_indptr, indices[places], places


def padded_inverses(
    atoms: np.ndarray, indptr: np.ndarray, indices: np.ndarray, mu: float, roots: np.ndarray | None = None
) -> np.ndarray:
    """(A Aᵀ + μI)⁺ of every support, padded with zeros to one size; with weights w of entries of (√w∘A).

    `roots` holds √w, one row per support.
    """
    largest = int(np.diff(indptr).max(initial=0))
    padded = np.zeros((len(indptr) - 1, largest, largest))
    for columns, places in groups(indptr):
        A = atoms[indices[places]]
        if roots is not None:
            A = A * roots[columns][:, None, :]
        _, inverse, _ = solve(A, np.zeros((len(columns), atoms.shape[1]), atoms.dtype), mu)
        padded[columns, : A.shape[1], : A.shape[1]] = inverse
    return padded
