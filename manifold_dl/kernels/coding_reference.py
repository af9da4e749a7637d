"""Sparse coding in plain NumPy, one signal after the other, as one would write it on a board.

The oracle of the tests for the compiled kernels, and what the coders use where Numba does not exist.
Functions have the names, arguments and results of `coding`, which describes them.
"""

import numpy as np

# Below this many units of rounding a number that should be zero is taken to be zero.
ROUNDINGS = 64


def prepare(atoms):
    return atoms


def omp(atoms, signals, sparsity, tol):
    """The next atom is the one most correlated with the residual."""

    def choose(residual, support):
        correlations = np.abs(atoms @ residual)
        correlations[support] = 0
        return np.argmax(correlations)

    return _pursue(atoms, signals, sparsity, tol, choose)


def forward_selection(atoms, signals, sparsity, tol):
    """The next atom is the one that leaves the smallest residual: only its part off the span counts."""

    def choose(residual, support):
        basis = np.linalg.qr(atoms[support].T)[0] if support else np.zeros((atoms.shape[1], 0), atoms.dtype)
        outside = atoms - (atoms @ basis) @ basis.T
        squares = np.sum(outside**2, axis=1)
        allowed = squares > ROUNDINGS * np.finfo(atoms.dtype).eps
        gains = (outside @ residual) ** 2 / np.where(allowed, squares, 1)
        return np.argmax(np.where(allowed, gains, -1))

    return _pursue(atoms, signals, sparsity, tol, choose)


def _pursue(atoms, signals, sparsity, tol, choose):
    """Add the chosen atom and solve least squares on the support, until sparse or close enough."""
    codes = []
    for signal in signals:
        scale = np.max(np.abs(signal)) or 1
        y = signal / scale
        support, x, residual = [], np.zeros(0), y
        threshold = ROUNDINGS * np.finfo(atoms.dtype).eps * np.max(np.abs(atoms @ y))
        while len(support) < sparsity and (tol < 0 or np.linalg.norm(residual) * scale > np.sqrt(tol)):
            p = choose(residual, support)
            if p in support or np.abs(atoms[p] @ residual) <= threshold:
                break
            A = atoms[[*support, p]].T
            solution, _, rank, _ = np.linalg.lstsq(A, y)
            if rank < A.shape[1]:
                break
            support, x, residual = [*support, p], solution, y - A @ solution
        codes.append((support, x * scale))
    return _pack(codes, signals.dtype, sparsity)


def lasso(atoms, signals, path, relative, tol, refit, start):
    """Coordinate descent, as in the textbook, until the duality gap is small."""
    indptr, indices, values = start
    squares, codes = np.sum(atoms**2, axis=1), []
    for j, y in enumerate(signals):
        x = np.zeros(len(atoms), signals.dtype)
        x[indices[indptr[j] : indptr[j + 1]]] = values[indptr[j] : indptr[j + 1]]
        largest = np.max(np.abs(atoms @ y))
        for penalty in np.multiply(path, largest if relative else 1):
            residual = y - x @ atoms
            for _ in range(10_000):
                if _duality_gap(atoms, y, x, residual, penalty) <= tol:
                    break
                for i, atom in enumerate(atoms):
                    before = x[i]
                    pull = atom @ residual + squares[i] * before
                    x[i] = np.sign(pull) * max(abs(pull) - penalty, 0) / squares[i]
                    residual = residual + (before - x[i]) * atom
        support = np.flatnonzero(x)
        if refit > 0:
            support = support[np.argsort(-np.abs(x[support]))[:refit]]
            x[support] = np.linalg.lstsq(atoms[support].T, y)[0] if len(support) else 0
        codes.append((support, x[support]))
    return _pack(codes, signals.dtype, min(atoms.shape))


def _duality_gap(atoms, y, x, residual, penalty):
    """The gap to the dual point c·r, as a fraction of the objective."""
    objective = residual @ residual / 2 + penalty * np.sum(np.abs(x))
    c = min(1, penalty / max(np.max(np.abs(atoms @ residual)), np.finfo(x.dtype).tiny))
    dual = c * (y @ residual) - c**2 * (residual @ residual) / 2
    return (objective - dual) / objective if objective > 0 else 0


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
