"""Greedy pursuits, compiled: orthogonal matching pursuit and orthogonal least squares.

Both grow a support one atom at a time and differ in one line, the choice of the next atom. Both run on
the Gram matrix G = DᵀD, and keep, for every signal, the correlations a = Dᵀr of all atoms with the
residual. Choosing atom p adds one row to the Cholesky factor of G_II and one row q to Q, the products of
all atoms with the new direction of an orthonormal basis of the support:

    q = (G_p − Σ_l Q_l[p] Q_l) / √w,    w = G_pp − Σ_l Q_l[p]²,    a ← a − z q,    z = a_p / √w.

The factor is read off Q (L_kl = Q_l[p]), and the codes solve Lᵀx = z once, at the end. Rubinstein,
Zibulevsky and Elad's Batch-OMP computes a = a₀ − G_I x_I instead: as many operations, but it reads k rows
of G per step from the second-level cache, where this reads one.

`coding_reference` has the same functions in plain NumPy. The coders call whichever exists.
"""

from typing import NamedTuple

import numpy as np
from numba import njit

# Products DᵀY are formed for a few signals at a time, small enough to stay in the cache and, at 2^18
# multiplications, small enough that OpenBLAS runs them on the calling thread: the threads are ours, one per
# block of signals.
ROWS = 16
MULTIPLICATIONS = 2**18

# The search for the largest entry folds an array in four, twice, so the number of atoms is padded to a
# multiple.
PAD = 16

# Below this many units of rounding a number that should be zero is taken to be zero.
ROUNDINGS = 64

# Division follows IEEE rules, and a·b + c may be one instruction; nothing else is left to the compiler.
compiled = njit(nogil=True, cache=True, error_model="numpy", fastmath={"contract"})


class Prepared(NamedTuple):
    """A dictionary, laid out for the kernels: computed once, used for every block of signals."""

    atoms: np.ndarray  # d×m, an atom per row
    tiles: np.ndarray  # tiles×m×width: the dictionary, in groups of atoms padded with zeros
    gram: np.ndarray  # padded×padded, padded = tiles·width


def prepare(atoms):
    d, m = atoms.shape
    widest = max(64, MULTIPLICATIONS // (ROWS * m))
    n_tiles = -(-d // widest)
    width = -(-d // (n_tiles * PAD)) * PAD
    padded = np.zeros((n_tiles * width, m), atoms.dtype)
    padded[:d] = atoms
    tiles = _on_cache_lines((n_tiles, m, width), atoms.dtype)
    tiles[:] = padded.reshape(n_tiles, width, m).transpose(0, 2, 1)
    # Not padded @ padded.T: after a product in threads OpenBLAS keeps its own busy for some 30 ms, waiting
    # for the next, and those are the processors our blocks are about to run on.
    gram = np.empty((len(padded), len(padded)), atoms.dtype)
    _multiply(padded, tiles, gram)
    return Prepared(atoms, tiles, gram)


def omp(dictionary, signals, sparsity, tol):
    """Orthogonal matching pursuit of each row of `signals`.

    Returns the number of atoms of each signal, their indices (increasing) and coefficients, n×sparsity, of
    which the first `counts[j]` of row j are meaningful. A negative `tol` asks for no stop at a residual.
    """
    counts, indices, values = empty_codes(signals, sparsity)
    _omp(*dictionary, signals, tol, np.finfo(signals.dtype).eps, counts, indices, values)
    return counts, indices, values


def forward_selection(dictionary, signals, sparsity, tol):
    """Orthogonal least squares of each row of `signals`; arguments and results as `omp`."""
    counts, indices, values = empty_codes(signals, sparsity)
    _forward_selection(*dictionary, signals, tol, np.finfo(signals.dtype).eps, counts, indices, values)
    return counts, indices, values


def _on_cache_lines(shape, dtype):
    """An empty array that starts on a cache line: BLAS reads small matrices in place, a tenth faster so."""
    size = int(np.prod(shape)) * dtype.itemsize
    memory = np.empty(size + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + size].view(dtype).reshape(shape)


def empty_codes(signals, sparsity):
    n = len(signals)
    return (
        np.empty(n, np.int32),
        np.empty((n, sparsity), np.int32),
        np.empty((n, sparsity), signals.dtype),
    )


@compiled
def _omp(atoms, tiles, gram, signals, tol, eps, counts, indices, values):
    n, sparsity = values.shape
    padded = len(gram)
    correlations = np.empty((ROWS, padded), gram.dtype)
    product = np.empty((ROWS, tiles.shape[2]), gram.dtype)
    quarter, sixteenth = np.empty(padded // 4, gram.dtype), np.empty(padded // 16, gram.dtype)
    Q, L = np.empty((sparsity, padded), gram.dtype), np.empty((sparsity, sparsity), gram.dtype)
    z, residual = np.empty(sparsity, gram.dtype), np.empty(atoms.shape[1], gram.dtype)
    for j in range(n):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], tiles, product, correlations)
        a, support, x = correlations[j % ROWS], indices[j], values[j]
        norm, limit, left = residual_budget(signals[j], tol)
        largest_ever = 0.0
        k = 0
        while k < sparsity and left > limit:
            p = argmax_abs(a, quarter, sixteenth)
            largest_ever = max(largest_ever, abs(a[p]))
            if abs(a[p]) <= ROUNDINGS * eps * largest_ever or contains(support, k, p):
                break  # the residual is orthogonal to every atom, as far as this arithmetic can tell
            if not extend_factor(L, Q, gram, k, p, eps):
                break  # atom p depends on the support
            z[k] = a[p] * L[k, k]
            support[k] = p
            k += 1
            if k < sparsity:
                update(a, gram[p], Q, k - 1, p, L[k - 1, k - 1], z[k - 1])
            if tol >= 0:
                left -= (z[k - 1] / norm) ** 2
                if left <= limit + ROUNDINGS * eps:
                    solve_upper(L, z, x, k)
                    left = relative_error(signals[j], norm, atoms, support, x, k, residual)
        solve_upper(L, z, x, k)
        sort_by_index(support, x, k)
        counts[j] = k


@compiled
def _forward_selection(atoms, tiles, gram, signals, tol, eps, counts, indices, values):
    n, sparsity = values.shape
    padded = len(gram)
    correlations = np.empty((ROWS, padded), gram.dtype)
    product = np.empty((ROWS, tiles.shape[2]), gram.dtype)
    quarter, sixteenth = np.empty(padded // 4, gram.dtype), np.empty(padded // 16, gram.dtype)
    Q, L = np.empty((sparsity, padded), gram.dtype), np.empty((sparsity, sparsity), gram.dtype)
    z, residual = np.empty(sparsity, gram.dtype), np.empty(atoms.shape[1], gram.dtype)
    gains, remaining = np.empty(padded, gram.dtype), np.empty(padded, gram.dtype)
    squares = np.empty(padded, gram.dtype)
    floor = np.empty(1, gram.dtype)
    floor[0] = ROUNDINGS * eps
    for i in range(padded):
        squares[i] = gram[i, i]
    for j in range(n):
        if j % ROWS == 0:
            correlate(signals[j : j + ROWS], tiles, product, correlations)
        a, support, x = correlations[j % ROWS], indices[j], values[j]
        norm, limit, left = residual_budget(signals[j], tol)
        # The atoms have norm 1, so the first choice is that of OMP. Later ones square the correlations,
        # which are therefore brought to 1 first: no signal is too small or too large.
        p = argmax_abs(a, quarter, sixteenth)
        scale = abs(a[p])
        if scale > 0:
            divide(a, scale)
        remaining[:] = squares
        k = 0
        while k < sparsity and left > limit and scale > 0:
            if abs(a[p]) <= ROUNDINGS * eps or contains(support, k, p):
                break
            if not extend_factor(L, Q, gram, k, p, eps):
                break
            z[k] = a[p] * L[k, k]
            support[k] = p
            k += 1
            if k < sparsity:
                update(a, gram[p], Q, k - 1, p, L[k - 1, k - 1], z[k - 1])
                rate(a, Q[k - 1], remaining, squares, floor[0], gains)
                p = argmax_abs(gains, quarter, sixteenth)
            if tol >= 0:
                left -= (z[k - 1] * scale / norm) ** 2
                if left <= limit + ROUNDINGS * eps:
                    solve_upper(L, z, x, k)
                    multiply(x, scale, k)
                    left = relative_error(signals[j], norm, atoms, support, x, k, residual)
        solve_upper(L, z, x, k)
        multiply(x, scale, k)
        sort_by_index(support, x, k)
        counts[j] = k


@compiled
def _multiply(rows, tiles, out):
    product = np.empty((ROWS, tiles.shape[2]), out.dtype)
    for j in range(0, len(rows), ROWS):
        correlate(rows[j : j + ROWS], tiles, product, out[j : j + ROWS])


@compiled
def correlate(signals, tiles, product, correlations):
    """The products of a few signals with every atom."""
    n, width = len(signals), tiles.shape[2]
    for t in range(len(tiles)):
        np.dot(signals, tiles[t], product[:n])
        for j in range(n):
            correlations[j, t * width : (t + 1) * width] = product[j]


@compiled
def argmax_abs(a, quarter, sixteenth):
    """Index of the entry largest in magnitude, by two foldings that compile to vector instructions."""
    fold(a, quarter)
    fold(quarter, sixteenth)
    p, largest = 0, sixteenth[0]
    for i in range(1, len(sixteenth)):
        p = i if sixteenth[i] > largest else p
        largest = sixteenth[i] if sixteenth[i] > largest else largest
    return unfold(a, unfold(quarter, p, len(sixteenth), largest), len(quarter), largest)


@compiled
def fold(a, quarter):
    q = len(quarter)
    first, second, third, fourth = a[:q], a[q : 2 * q], a[2 * q : 3 * q], a[3 * q : 4 * q]
    for i in range(q):
        left = abs(first[i]) if abs(first[i]) > abs(second[i]) else abs(second[i])
        right = abs(third[i]) if abs(third[i]) > abs(fourth[i]) else abs(fourth[i])
        quarter[i] = left if left > right else right


@compiled
def unfold(a, p, q, largest):
    """Which of the four entries folded onto p was the largest. No branch: it could not be predicted."""
    found = p
    for i in range(1, 4):
        found = p + i * q if abs(a[p + i * q]) == largest else found
    return found


@compiled
def contains(support, k, p):
    return p in support[:k]


@compiled
def extend_factor(L, Q, gram, k, p, eps):
    """Row k of the Cholesky factor of G_II when atom p joins; its diagonal is stored inverted.

    False where p depends on the support: w, the squared distance of the atom from its span, is only rounding.
    """
    w = gram[p, p]
    for l in range(k):
        L[k, l] = Q[l, p]
        w -= Q[l, p] * Q[l, p]
    if not w > ROUNDINGS * eps * gram[p, p]:
        return False
    L[k, k] = 1 / np.sqrt(w)
    return True


@compiled
def update(a, gram_row, Q, k, p, inverse, z):
    """Row k of Q, and the correlations with the new residual, in as few passes over memory as can be."""
    q, source, l = Q[k], gram_row, 0
    while k - l > 3:
        q0, q1, q2, q3 = Q[l], Q[l + 1], Q[l + 2], Q[l + 3]
        c0, c1, c2, c3 = q0[p], q1[p], q2[p], q3[p]
        for i in range(len(a)):
            q[i] = source[i] - c0 * q0[i] - c1 * q1[i] - c2 * q2[i] - c3 * q3[i]
        source = q
        l += 4
    if k - l == 3:
        q0, q1, q2 = Q[l], Q[l + 1], Q[l + 2]
        c0, c1, c2 = q0[p], q1[p], q2[p]
        for i in range(len(a)):
            t = (source[i] - c0 * q0[i] - c1 * q1[i] - c2 * q2[i]) * inverse
            q[i] = t
            a[i] -= z * t
    elif k - l == 2:
        q0, q1 = Q[l], Q[l + 1]
        c0, c1 = q0[p], q1[p]
        for i in range(len(a)):
            t = (source[i] - c0 * q0[i] - c1 * q1[i]) * inverse
            q[i] = t
            a[i] -= z * t
    elif k - l == 1:
        q0 = Q[l]
        c0 = q0[p]
        for i in range(len(a)):
            t = (source[i] - c0 * q0[i]) * inverse
            q[i] = t
            a[i] -= z * t
    else:
        for i in range(len(a)):
            t = source[i] * inverse
            q[i] = t
            a[i] -= z * t


@compiled
def rate(a, q, remaining, squares, floor, gains):
    """By how much each atom would lower the squared residual: a²/w, and nothing where w is only rounding."""
    for i in range(len(a)):
        w = remaining[i] - q[i] * q[i]
        remaining[i] = w
        gain = a[i] * a[i] / w
        gains[i] = gain if w > floor * squares[i] else 0


@compiled
def divide(a, scale):
    for i in range(len(a)):
        a[i] /= scale


@compiled
def multiply(x, scale, k):
    for l in range(k):
        x[l] *= scale


@compiled
def solve_upper(L, z, x, k):
    """Lᵀx = z, with the inverse of the diagonal stored."""
    for i in range(k - 1, -1, -1):
        t = z[i]
        for l in range(i + 1, k):
            t -= L[l, i] * x[l]
        x[i] = t * L[i, i]


@compiled
def residual_budget(signal, tol):
    """The norm of a signal, and the squared residual allowed and left, as fractions of its square."""
    if tol < 0:
        return 1.0, -1.0, 1.0
    norm = euclidean_norm(signal)
    if norm <= np.sqrt(tol):  # a signal of zeros too
        return norm, 0.0, 0.0
    return norm, (np.sqrt(tol) / norm) ** 2, 1.0


@compiled
def euclidean_norm(y):
    """The norm, with the largest entry brought to 1 so that no square under- or overflows."""
    largest = 0.0
    for i in range(len(y)):
        largest = max(largest, abs(y[i]))
    if largest == 0:
        return 0.0
    total = 0.0
    for i in range(len(y)):
        total += (y[i] / largest) ** 2
    return largest * np.sqrt(total)


@compiled
def relative_error(signal, norm, atoms, support, x, k, residual):
    """‖y − Dx‖²/‖y‖² from the residual itself: 1 − Σz² has lost every digit once the fit is nearly exact."""
    residual[:] = signal
    for l in range(k):
        atom = atoms[support[l]]
        for i in range(len(residual)):
            residual[i] -= x[l] * atom[i]
    return (euclidean_norm(residual) / norm) ** 2


@compiled
def sort_by_index(support, x, k):
    for i in range(1, k):
        p, v, l = support[i], x[i], i - 1
        while l >= 0 and support[l] > p:
            support[l + 1], x[l + 1] = support[l], x[l]
            l -= 1
        support[l + 1], x[l + 1] = p, v
