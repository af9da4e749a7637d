"""The lasso and FOCUSS in plain NumPy, as one would write them on a board."""

import numpy as np

from manifold_dl.kernels.coding.interface import (
    Codes,
    FocussSettings,
    LassoSettings,
    PreparedDictionary,
    StartingCodes,
    no_codes,
)
from manifold_dl.kernels.coding.reference_supports import (
    ROUNDINGS,
    independent,
    is_independent,
    largest_entries,
    nnls,
    padded_codes,
    solve,
)


def lasso(
    dictionary: PreparedDictionary,
    signals: np.ndarray,
    settings: LassoSettings,
    start: StartingCodes | None = None,
    factors: np.ndarray | None = None,
) -> Codes:
    """Solve for the current signs, drop the atom that changes sign, add the one that violates most.

    All of it in double precision: in single, codes of many atoms can be far from the minimum.
    """
    path, relative, tol, refit, nonnegative, _ = settings
    indptr, indices, values = no_codes(signals) if start is None else start
    atoms, codes = dictionary.atoms.astype(np.float64), []
    for j, y in enumerate(signals.astype(np.float64)):
        x = np.zeros(len(atoms))
        for i, value in zip(
            indices[indptr[j] : indptr[j + 1]], values[indptr[j] : indptr[j + 1]], strict=True
        ):
            if is_independent(atoms, np.flatnonzero(x), i) and (value > 0 or not nonnegative):
                x[i] = value
        largest = np.max(_violations(atoms @ y, nonnegative))
        factor = 1 if factors is None else factors[j]
        for penalty in np.multiply(path, largest if relative else factor):
            allowed = max(penalty * (1 + tol), ROUNDINGS * np.finfo(atoms.dtype).eps * largest)
            x = _descend(atoms, y, x, penalty, allowed, nonnegative)
        support = np.flatnonzero(x)
        if refit > 0:
            support = np.array(independent(atoms, largest_entries(x, refit)), int)
            x[support] = (nnls if nonnegative else solve)(atoms, y, support)
            support = support[x[support] != 0]
        codes.append((support, x[support]))
    return padded_codes(codes, signals.dtype, min(atoms.shape))


def _violations(correlations: np.ndarray, nonnegative: bool) -> np.ndarray:
    """What may not exceed the penalty: |⟨d, r⟩|, or ⟨d, r⟩ where no code may be negative."""
    return np.maximum(correlations, 0) if nonnegative else np.abs(correlations)


def _descend(
    atoms: np.ndarray, y: np.ndarray, x: np.ndarray, penalty: float, allowed: float, nonnegative: bool
) -> np.ndarray:
    """The lasso solution for one signal, from codes x on independent atoms."""
    signs, support = np.sign(x), np.flatnonzero(x)
    for _ in range(64 + 16 * min(atoms.shape)):
        while len(support):
            A = atoms[support].T
            goal = np.linalg.solve(A.T @ A, A.T @ y - penalty * signs[support])
            wrong = goal * signs[support] <= 0
            if not wrong.any():
                x[support] = goal
                break
            here = x[support]
            steps = np.where(wrong, here / np.where(wrong, here - goal, 1), np.inf)
            out = np.argmin(steps)
            x[support] += steps[out] * (goal - here)
            x[support[out]] = 0
            support = np.delete(support, out)
        correlations = atoms @ (y - x @ atoms)
        violations = _violations(correlations, nonnegative)
        p = np.argmax(violations)
        if violations[p] <= allowed or p in support:
            break
        signs[p] = np.sign(correlations[p])
        if not is_independent(atoms, support, p):
            # d_p = Σ c_l d_l: raise x_p and lower the others by c, until one of them meets zero.
            c = np.linalg.lstsq(atoms[support].T, signs[p] * atoms[p])[0]
            falling = c * signs[support] > 0
            if c @ signs[support] <= 1:
                break  # ‖x‖₁ would not fall: the violation was only rounding
            steps = np.where(falling, x[support] / np.where(falling, c, 1), np.inf)
            out = np.argmin(steps)
            x[support] -= steps[out] * c
            x[p] = steps[out] * signs[p]
            x[support[out]] = 0
            support = np.delete(support, out)
        support = np.append(support, p)
    return x


def focuss(dictionary: PreparedDictionary, signals: np.ndarray, settings: FocussSettings) -> Codes:
    """Minimum-norm solutions, each weighted by the one before."""
    sparsity, p, ridge, max_iter, negligible = settings
    atoms, codes = dictionary.atoms, []
    m = atoms.shape[1]
    for y in signals:
        x, weights = np.zeros(len(atoms), signals.dtype), np.ones(len(atoms), signals.dtype)
        for _ in range(max_iter if y.any() else 0):
            system = (atoms.T * weights**2) @ atoms
            system += ridge * np.trace(system) / m * np.eye(m, dtype=system.dtype)
            before, x = x, weights**2 * (atoms @ np.linalg.solve(system, y))
            largest = np.max(np.abs(x))
            if not largest > 0:
                break
            x[np.abs(x) <= 1e-3 * negligible * largest] = 0
            weights = (np.abs(x) / largest) ** (1 - p / 2)
            if np.max(np.abs(x - before)) <= 1e-3 * negligible * largest:
                break
        support = largest_entries(np.where(np.abs(x) > negligible * np.max(np.abs(x)), x, 0), sparsity)
        codes.append((support, x[support]))
    return padded_codes(codes, signals.dtype, sparsity)
