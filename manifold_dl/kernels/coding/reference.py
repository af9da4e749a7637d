"""The coding kernels in plain NumPy, as one would write them on a board.

The compiled kernels are tested against these, and the coders use them where Numba does not exist. Functions
have the names, arguments and results of the compiled ones (`interface.py`).
"""

import numpy as np

from manifold_dl.kernels.coding.interface import Codes, PreparedDictionary, PursuitSettings
from manifold_dl.kernels.coding.reference_convex import focuss, lasso
from manifold_dl.kernels.coding.reference_greedy import forward_selection, omp, prepare
from manifold_dl.kernels.coding.reference_supports import (
    ROUNDINGS,
    independent,
    largest_entries,
    padded_codes,
    solve,
)
from manifold_dl.kernels.coding.reference_weighted import (
    nonnegative_omp,
    weighted_forward_selection,
    weighted_lasso,
    weighted_nonnegative_omp,
    weighted_omp,
)

__all__ = [
    "focuss",
    "forward_selection",
    "gradient_pursuit",
    "iht",
    "lasso",
    "matching_pursuit",
    "nonnegative_omp",
    "omp",
    "prepare",
    "subspace_pursuit",
    "weighted_forward_selection",
    "weighted_lasso",
    "weighted_nonnegative_omp",
    "weighted_omp",
]


def matching_pursuit(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """Take the residual's product with the atom most correlated, and nothing else, out of the residual."""
    sparsity, tol, max_iter = settings
    atoms, codes = dictionary.atoms, []
    for signal in signals:
        scale = np.max(np.abs(signal)) or 1
        y = signal / scale
        x, residual = np.zeros(len(atoms), signals.dtype), y
        threshold = ROUNDINGS * np.finfo(atoms.dtype).eps * np.max(np.abs(atoms @ y))
        for _ in range(max_iter):
            correlations = atoms @ residual
            p = np.argmax(np.abs(correlations))
            full = x[p] == 0 and np.count_nonzero(x) == sparsity
            if full or np.abs(correlations[p]) <= threshold:
                break
            if tol >= 0 and np.linalg.norm(residual) * scale <= np.sqrt(tol):
                break
            x[p] += correlations[p]
            residual = y - x @ atoms
        codes.append((np.flatnonzero(x), x[x != 0] * scale))
    return padded_codes(codes, signals.dtype, sparsity)


def gradient_pursuit(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """Add the atom most correlated, then go to the minimum along the gradient on the support."""
    sparsity, _, max_iter = settings
    atoms, codes = dictionary.atoms, []
    for y in signals:
        x = np.zeros(len(atoms), signals.dtype)
        support: list[int] = []
        threshold = ROUNDINGS * np.finfo(atoms.dtype).eps * np.max(np.abs(atoms @ y))
        for _ in range(max_iter):
            correlations = atoms @ (y - x @ atoms)
            p = int(np.argmax(np.abs(correlations)))
            if (p not in support and len(support) == sparsity) or np.abs(correlations[p]) <= threshold:
                break
            support = sorted({*support, p})
            gradient = correlations[support]
            move = gradient @ atoms[support]
            x[support] += (gradient @ gradient) / (move @ move) * gradient
        codes.append((support, x[support]))
    return padded_codes(codes, signals.dtype, sparsity)


def subspace_pursuit(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """Merge the support with the atoms best correlated, solve, keep the largest, solve, while it helps."""
    sparsity, _, max_iter = settings
    atoms, codes = dictionary.atoms, []
    for y in signals:
        support = independent(atoms, largest_entries(atoms @ y, sparsity))
        x = solve(atoms, y, support)
        for _ in range(max_iter):
            residual = y - x @ atoms[support]
            if np.linalg.norm(residual) <= ROUNDINGS * np.finfo(atoms.dtype).eps * np.linalg.norm(y):
                break
            correlations = atoms @ residual
            correlations[support] = 0
            merged = independent(atoms, [*support, *largest_entries(correlations, sparsity)])
            largest = largest_entries(solve(atoms, y, merged), sparsity)
            trial = independent(atoms, [merged[l] for l in largest])
            solution = solve(atoms, y, trial)
            if np.linalg.norm(y - solution @ atoms[trial]) >= np.linalg.norm(residual):
                break
            support, x = trial, solution
        codes.append((support, x))
    return padded_codes(codes, signals.dtype, sparsity)


def iht(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """A gradient step, the largest entries, and least squares on the last support."""
    sparsity, _, max_iter = settings
    atoms, codes = dictionary.atoms, []
    eps = np.finfo(atoms.dtype).eps
    for y in signals:
        x, support = np.zeros(len(atoms), signals.dtype), largest_entries(atoms @ y, sparsity)
        for _ in range(max_iter if len(support) else 0):
            gradient = atoms @ (y - x @ atoms)
            move = gradient[support] @ atoms[support]
            if not move @ move > 0:
                break
            step = gradient[support] @ gradient[support] / (move @ move)
            while True:
                proposal, kept = np.zeros_like(x), largest_entries(x + step * gradient, sparsity)
                proposal[kept] = (x + step * gradient)[kept]
                change = proposal - x
                length, image = change @ change, change @ atoms
                if np.isin(kept, support).all() or step <= 0.99 * length / (image @ image):
                    break
                step = min(step / 2, 0.99 * length / (image @ image))
            x, support = proposal, kept
            if length <= ROUNDINGS * eps * (x @ x):
                break
        final = independent(atoms, support)
        codes.append((final, solve(atoms, y, final)))
    return padded_codes(codes, signals.dtype, sparsity)
