"""OMP and orthogonal least squares in plain NumPy, as one would write them on a board."""

from collections.abc import Callable

import numpy as np

from manifold_dl.kernels.coding.interface import Codes, PreparedDictionary, PursuitSettings
from manifold_dl.kernels.coding.reference_supports import ROUNDINGS, is_independent, padded_codes, solve

Gains = Callable[[np.ndarray, list[int]], np.ndarray]


def prepare(atoms: np.ndarray) -> PreparedDictionary:
    """The dictionary as it is: nothing is computed in advance."""
    nothing = np.zeros(0, atoms.dtype)
    return PreparedDictionary(atoms, nothing, nothing, np.finfo(atoms.dtype).eps)


def omp(dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings) -> Codes:
    """The next atom is the one most correlated with the residual."""
    atoms = dictionary.atoms

    def gains(residual: np.ndarray, support: list[int]) -> np.ndarray:
        correlations = np.abs(atoms @ residual)
        correlations[support] = 0
        return correlations

    return _pursue(atoms, signals, settings, gains)


def forward_selection(
    dictionary: PreparedDictionary, signals: np.ndarray, settings: PursuitSettings
) -> Codes:
    """The next atom is the one that leaves the smallest residual: only its part off the span counts."""
    atoms = dictionary.atoms

    def gains(residual: np.ndarray, support: list[int]) -> np.ndarray:
        basis = np.linalg.qr(atoms[support].T)[0] if support else np.zeros((atoms.shape[1], 0), atoms.dtype)
        outside = atoms - (atoms @ basis) @ basis.T
        squares = np.sum(outside**2, axis=1)
        allowed = squares > ROUNDINGS * np.finfo(atoms.dtype).eps
        return np.where(allowed, (outside @ residual) ** 2 / np.where(allowed, squares, 1), 0)

    return _pursue(atoms, signals, settings, gains)


def _pursue(atoms: np.ndarray, signals: np.ndarray, settings: PursuitSettings, gains: Gains) -> Codes:
    """Add the atom of the largest gain and solve least squares on the support, until sparse or close enough.

    An atom that depends on the support is passed over.
    """
    sparsity, tol, _ = settings
    codes = []
    for signal in signals:
        scale = np.max(np.abs(signal)) or 1
        y = signal / scale
        support: list[int] = []
        dependent: list[int] = []
        x, residual = np.zeros(0), y
        threshold = ROUNDINGS * np.finfo(atoms.dtype).eps * np.max(np.abs(atoms @ y))
        while len(support) < sparsity and (tol < 0 or np.linalg.norm(residual) * scale > np.sqrt(tol)):
            gain = gains(residual, support)
            gain[dependent] = 0
            p = int(np.argmax(gain))
            if gain[p] == 0 or np.abs(atoms[p] @ residual) <= threshold:
                break
            if not is_independent(atoms, support, p):
                dependent.append(p)
                continue
            support = [*support, p]
            x = solve(atoms, y, support)
            residual = y - x @ atoms[support]
        codes.append((support, x * scale))
    return padded_codes(codes, signals.dtype, sparsity)
