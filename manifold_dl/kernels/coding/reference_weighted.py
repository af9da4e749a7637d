"""Weights and non-negative codes in plain NumPy, as one would write them on a board."""

import numpy as np

from manifold_dl.kernels.coding.interface import (
    Codes,
    LassoSettings,
    PreparedDictionary,
    PursuitSettings,
    StartingCodes,
)
from manifold_dl.kernels.coding.patterns import encode_by_pattern
from manifold_dl.kernels.coding.reference_convex import lasso
from manifold_dl.kernels.coding.reference_greedy import forward_selection, omp, prepare
from manifold_dl.kernels.coding.reference_supports import ROUNDINGS, is_independent, nnls, padded_codes


def nonnegative_omp(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """Add the atom with the largest positive correlation, and solve non-negative least squares."""
    sparsity, tol, _ = settings
    atoms, codes = dictionary.atoms, []
    for y in signals:
        support: list[int] = []
        passed: list[int] = []
        x, residual = np.zeros(0, y.dtype), y
        threshold = ROUNDINGS * np.finfo(atoms.dtype).eps * max(np.max(atoms @ y), 0)
        for _ in range(64 + 16 * sparsity):
            if len(support) == sparsity or (tol >= 0 and residual @ residual <= tol):
                break
            correlations = atoms @ residual
            correlations[[*support, *passed]] = 0
            p = int(np.argmax(correlations))
            if not correlations[p] > threshold:
                break
            if not is_independent(atoms, support, p):
                passed.append(p)
                continue
            x = nnls(atoms, y, [*support, p])
            support, x = [i for i, c in zip([*support, p], x, strict=True) if c > 0], x[x > 0]
            residual = y - x @ atoms[support]
            if p not in support:
                break
        codes.append((support, x))
    return padded_codes(codes, signals.dtype, sparsity)


def weighted_omp(
    dictionary: PreparedDictionary, signals: np.ndarray, roots: np.ndarray, settings: PursuitSettings
) -> Codes:
    """OMP over the atoms √w∘d_i, signal by signal."""
    return encode_by_pattern(omp, prepare, dictionary.atoms, signals, roots, settings, unit_atoms=True)


def weighted_forward_selection(
    dictionary: PreparedDictionary, signals: np.ndarray, roots: np.ndarray, settings: PursuitSettings
) -> Codes:
    """Orthogonal least squares over the atoms √w∘d_i, signal by signal."""
    kernel = forward_selection
    return encode_by_pattern(kernel, prepare, dictionary.atoms, signals, roots, settings, unit_atoms=True)


def weighted_nonnegative_omp(
    dictionary: PreparedDictionary, signals: np.ndarray, roots: np.ndarray, settings: PursuitSettings
) -> Codes:
    """Non-negative OMP over the atoms √w∘d_i, signal by signal."""
    kernel = nonnegative_omp
    return encode_by_pattern(kernel, prepare, dictionary.atoms, signals, roots, settings, unit_atoms=True)


def weighted_lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: LassoSettings,
    start: StartingCodes | None = None,
) -> Codes:
    """The lasso over the atoms √w∘d_i, signal by signal."""
    atoms = dictionary.atoms
    return encode_by_pattern(lasso, prepare, atoms, signals, roots, settings, unit_atoms=False, start=start)
