"""Small least-squares problems by singular values: the minimum-norm solution, also where a support lacks full
rank.

`reference.py` solves all signals this way. The compiled kernels do so with the few whose Cholesky pivots
break down.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

# A squared Cholesky pivot this much smaller than the largest sends a signal from the normal equations
# to the singular value decomposition: at 1e-8 the normal equations have lost half of all digits.
PIVOT_RATIO = 1e-8


# Atoms with a larger cosine are replaced by their difference. In the difference of two unit atoms nothing is
# rounded, while what an angle of 1e-9 leaves of them in any projection has an error of 1e-7.
NEARLY_COLLINEAR = 0.9


class Solution(NamedTuple):
    """What `solve` found, for every problem of a stack."""

    x: np.ndarray
    inverse: np.ndarray  # (A Aᵀ + μI)⁺
    pivot_ratio: np.ndarray  # the smallest squared pivot of A Aᵀ + μI relative to the largest
    residual: np.ndarray  # y − Aᵀx, which cannot be computed from x where that is very large


def solve(A: np.ndarray, y: np.ndarray, mu: float) -> Solution:
    """Minimum-norm x of min ‖y − Aᵀx‖² + μ‖x‖², for a stack of problems: A is count×s×m.

    Of [Aᵀ; √μ I] the rank is found by singular values. Without full rank they give the solution, with it a QR
    decomposition after atoms that are nearly collinear have been replaced by their differences. Where A is
    not finite, as after a diverging optimizer, x is NaN: the decomposition would raise.
    """
    count, s, m = A.shape
    if s == 0:
        nothing = np.zeros((count, 0), y.dtype)
        return Solution(nothing, np.zeros((count, 0, 0)), np.ones(count), y)
    B = np.zeros((count, m + s, s))
    B[:, :m] = A.transpose(0, 2, 1)
    B[:, m:] = np.sqrt(mu) * np.eye(s)
    not_finite = ~np.isfinite(B).all(axis=(1, 2))
    B[not_finite] = 0
    U, sigma, Vt = np.linalg.svd(B, full_matrices=False)
    cutoff = (m + s) * np.finfo(A.dtype).eps * sigma[:, :1]  # the rank that NumPy's lstsq would see
    inverse_sigma = np.divide(1.0, sigma, out=np.zeros_like(sigma), where=sigma > cutoff)
    half = Vt.transpose(0, 2, 1) * inverse_sigma[:, None, :]  # B⁺ = half Uᵀ
    full = (sigma > cutoff).all(axis=1)
    U[full], half[full] = _by_differences(B[full])
    projected = np.einsum("cmk,cm->ck", U[:, :m], y)
    x = np.einsum("csk,ck->cs", half, projected)
    x[not_finite] = np.nan
    pivots = np.diagonal(np.linalg.qr(B, mode="r"), axis1=1, axis2=2) ** 2
    smallest, largest = pivots.min(1), pivots.max(1)
    ratio = np.divide(smallest, largest, out=np.zeros(count), where=largest > 0)
    # Directions that the singular values leave out are no part of the projection, and stay in the residual.
    in_rank = np.where(full[:, None], 1.0, inverse_sigma > 0)
    residual = y - np.einsum("cmk,ck->cm", U[:, :m], in_rank * projected)
    residual[not_finite] = np.nan
    return Solution(
        x.astype(y.dtype), half @ half.transpose(0, 2, 1), ratio, residual.astype(y.dtype, copy=False)
    )


def _by_differences(B: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Q and H with B⁺ = H Qᵀ, for matrices B of full rank.

    B T = Q R, where T takes differences of columns that are nearly collinear, so that H = T R⁻¹.
    """
    count, _, s = B.shape
    C, T = B.copy(), np.tile(np.eye(s), (count, 1, 1))
    norms = np.linalg.norm(B, axis=1)
    cosines = np.einsum("cmi,cmj->cij", B, B) / (norms[:, :, None] * norms[:, None, :])
    problems = np.arange(count)
    for i in range(1, s):
        nearest = np.abs(cosines[:, i, :i]).argmax(axis=1)
        cosine = cosines[problems, i, nearest]
        near = np.flatnonzero(np.abs(cosine) > NEARLY_COLLINEAR)
        sign = np.sign(cosine[near])
        C[near, :, i] -= sign[:, None] * B[near, :, nearest[near]]
        T[near, nearest[near], i] = -sign
    lengths = np.linalg.norm(C, axis=1)[:, None, :]
    Q, R = np.linalg.qr(C / lengths)
    return Q, (T / lengths) @ np.linalg.inv(R)


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
        found = solve(A, np.zeros((len(columns), atoms.shape[1]), atoms.dtype), mu)
        padded[columns, : A.shape[1], : A.shape[1]] = found.inverse
    return padded
