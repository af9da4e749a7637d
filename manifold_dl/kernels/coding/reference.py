"""Sparse coding in plain NumPy, one signal after the other, as one would write it on a board.

The oracle of the tests for the compiled kernels, and what the coders use where Numba does not exist.
Functions have the names, arguments and results of `coding`, which describes them.
"""

from typing import NamedTuple

import numpy as np

# Below this many units of rounding a number that should be zero is taken to be zero.
ROUNDINGS = 64


class Prepared(NamedTuple):
    """A dictionary as the kernels take it; here nothing is computed in advance."""

    atoms: np.ndarray  # d×m, an atom per row


def prepare(atoms):
    return Prepared(atoms)


def omp(dictionary, signals, sparsity, tol):
    """The next atom is the one most correlated with the residual."""
    atoms = dictionary.atoms

    def gains(residual, support):
        correlations = np.abs(atoms @ residual)
        correlations[support] = 0
        return correlations

    return _pursue(atoms, signals, sparsity, tol, gains)


def forward_selection(dictionary, signals, sparsity, tol):
    """The next atom is the one that leaves the smallest residual: only its part off the span counts."""
    atoms = dictionary.atoms

    def gains(residual, support):
        basis = np.linalg.qr(atoms[support].T)[0] if support else np.zeros((atoms.shape[1], 0), atoms.dtype)
        outside = atoms - (atoms @ basis) @ basis.T
        squares = np.sum(outside**2, axis=1)
        allowed = squares > ROUNDINGS * np.finfo(atoms.dtype).eps
        return np.where(allowed, (outside @ residual) ** 2 / np.where(allowed, squares, 1), 0)

    return _pursue(atoms, signals, sparsity, tol, gains)


def _pursue(atoms, signals, sparsity, tol, gains):
    """Add the atom of the largest gain and solve least squares on the support, until sparse or close enough.

    An atom that depends on the support is passed over.
    """
    codes = []
    for signal in signals:
        scale = np.max(np.abs(signal)) or 1
        y = signal / scale
        support, x, residual, dependent = [], np.zeros(0), y, []
        threshold = ROUNDINGS * np.finfo(atoms.dtype).eps * np.max(np.abs(atoms @ y))
        while len(support) < sparsity and (tol < 0 or np.linalg.norm(residual) * scale > np.sqrt(tol)):
            gain = gains(residual, support)
            gain[dependent] = 0
            p = np.argmax(gain)
            if gain[p] == 0 or np.abs(atoms[p] @ residual) <= threshold:
                break
            if not _is_independent(atoms, support, p):
                dependent.append(p)
                continue
            support = [*support, p]
            x = _solve(atoms, y, support)
            residual = y - x @ atoms[support]
        codes.append((support, x * scale))
    return _pack(codes, signals.dtype, sparsity)


def lasso(dictionary, signals, path, relative, tol, refit, start):
    """Solve for the signs at hand, drop the atom that changes sign, let in the one that violates most."""
    atoms, codes = dictionary.atoms, []
    indptr, indices, values = start
    for j, y in enumerate(signals):
        x = np.zeros(len(atoms), signals.dtype)
        for i, value in zip(
            indices[indptr[j] : indptr[j + 1]], values[indptr[j] : indptr[j + 1]], strict=True
        ):
            support = np.flatnonzero(x)
            if _is_independent(atoms, support, i):
                x[i] = value
        largest = np.max(np.abs(atoms @ y))
        for penalty in np.multiply(path, largest if relative else 1):
            allowed = max(penalty * (1 + tol), ROUNDINGS * np.finfo(atoms.dtype).eps * largest)
            x = _descend(atoms, y, x, penalty, allowed)
        support = np.flatnonzero(x)
        if refit > 0:
            support = _independent(atoms, _largest(x, refit))
            x[support] = _solve(atoms, y, support)
        codes.append((support, x[support]))
    return _pack(codes, signals.dtype, min(atoms.shape))


def _descend(atoms, y, x, penalty, allowed):
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
        p = np.argmax(np.abs(correlations))
        if np.abs(correlations[p]) <= allowed or p in support:
            break
        signs[p] = np.sign(correlations[p])
        if not _is_independent(atoms, support, p):
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


def matching_pursuit(dictionary, signals, sparsity, tol, max_iter):
    """Take the residual's product with the atom most correlated, and nothing else, out of the residual."""
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
    return _pack(codes, signals.dtype, sparsity)


def gradient_pursuit(dictionary, signals, sparsity, max_iter):
    """Let the atom most correlated in, then go to the minimum along the gradient on the support."""
    atoms, codes = dictionary.atoms, []
    for y in signals:
        x, support = np.zeros(len(atoms), signals.dtype), []
        threshold = ROUNDINGS * np.finfo(atoms.dtype).eps * np.max(np.abs(atoms @ y))
        for _ in range(max_iter):
            correlations = atoms @ (y - x @ atoms)
            p = np.argmax(np.abs(correlations))
            if (p not in support and len(support) == sparsity) or np.abs(correlations[p]) <= threshold:
                break
            support = sorted({*support, p})
            gradient = correlations[support]
            move = gradient @ atoms[support]
            x[support] += (gradient @ gradient) / (move @ move) * gradient
        codes.append((support, x[support]))
    return _pack(codes, signals.dtype, sparsity)


def subspace_pursuit(dictionary, signals, sparsity, max_iter):
    """Merge the support with the atoms best correlated, solve, keep the largest, solve, while it helps."""
    atoms, codes = dictionary.atoms, []
    for y in signals:
        support = _independent(atoms, _largest(atoms @ y, sparsity))
        x = _solve(atoms, y, support)
        for _ in range(max_iter):
            residual = y - x @ atoms[support]
            if np.linalg.norm(residual) <= ROUNDINGS * np.finfo(atoms.dtype).eps * np.linalg.norm(y):
                break
            correlations = atoms @ residual
            correlations[support] = 0
            merged = _independent(atoms, [*support, *_largest(correlations, sparsity)])
            largest = _largest(_solve(atoms, y, merged), sparsity)
            trial = _independent(atoms, [merged[l] for l in largest])
            solution = _solve(atoms, y, trial)
            if np.linalg.norm(y - solution @ atoms[trial]) >= np.linalg.norm(residual):
                break
            support, x = trial, solution
        codes.append((support, x))
    return _pack(codes, signals.dtype, sparsity)


def iht(dictionary, signals, sparsity, max_iter):
    """A gradient step, the largest entries, and least squares on the last support."""
    atoms, codes = dictionary.atoms, []
    eps = np.finfo(atoms.dtype).eps
    for y in signals:
        x, support = np.zeros(len(atoms), signals.dtype), _largest(atoms @ y, sparsity)
        for _ in range(max_iter if len(support) else 0):
            gradient = atoms @ (y - x @ atoms)
            move = gradient[support] @ atoms[support]
            if not move @ move > 0:
                break
            step = gradient[support] @ gradient[support] / (move @ move)
            while True:
                proposal, kept = np.zeros_like(x), _largest(x + step * gradient, sparsity)
                proposal[kept] = (x + step * gradient)[kept]
                change = proposal - x
                length, image = change @ change, change @ atoms
                if np.isin(kept, support).all() or step <= 0.99 * length / (image @ image):
                    break
                step = min(step / 2, 0.99 * length / (image @ image))
            x, support = proposal, kept
            if length <= ROUNDINGS * eps * (x @ x):
                break
        support = _independent(atoms, support)
        codes.append((support, _solve(atoms, y, support)))
    return _pack(codes, signals.dtype, sparsity)


def focuss(dictionary, signals, sparsity, p, ridge, max_iter, negligible):
    """Minimum-norm solutions, each weighted by the one before."""
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
        support = _largest(np.where(np.abs(x) > negligible * np.max(np.abs(x)), x, 0), sparsity)
        codes.append((support, x[support]))
    return _pack(codes, signals.dtype, sparsity)


def _largest(values, size):
    """Indices of the entries largest in magnitude, leaving out zeros."""
    order = np.argsort(-np.abs(values), kind="stable")[:size]
    return order[values[order] != 0]


def _is_independent(atoms, support, p):
    """Whether atom p is farther from the span of the support than rounding of its fit there could make it."""
    c = _solve(atoms, atoms[p], support)
    rest = atoms[p] - c @ atoms[support]
    size = atoms[p] @ atoms[p] + c**2 @ np.sum(atoms[support] ** 2, axis=1)
    return rest @ rest > ROUNDINGS * np.finfo(atoms.dtype).eps * size


def _independent(atoms, support):
    """The support without the atoms that depend on those before them."""
    kept = []
    for p in support:
        if _is_independent(atoms, kept, p):
            kept.append(p)
    return kept


def _solve(atoms, y, support):
    return np.linalg.lstsq(atoms[support].T, y)[0] if len(support) else np.zeros(0, y.dtype)


def _pack(codes, dtype, width):
    """A list of (support, coefficients), as counts, indices and values with the indices increasing."""
    counts = np.array([len(support) for support, _ in codes], np.int32)
    indices, values = np.zeros((len(codes), width), np.int32), np.zeros((len(codes), width), dtype)
    for j, (support, x) in enumerate(codes):
        order = np.argsort(support)
        indices[j, : len(order)], values[j, : len(order)] = (
            np.asarray(support, int)[order],
            np.asarray(x)[order],
        )
    return counts, indices, values
