"""What the sparse coding kernels share: products with the dictionary, searches, residuals.

A signal's products with all atoms stand in a row a = Dᵀy of padded length; a support is an array of which the
first k entries count. Nothing here allocates memory per signal.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled_in_order, compiled_reordering

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


@compiled_in_order
def _multiply(rows, tiles, out):
    product = np.empty((ROWS, tiles.shape[2]), out.dtype)
    for j in range(0, len(rows), ROWS):
        correlate(rows[j : j + ROWS], tiles, product, out[j : j + ROWS])


@compiled_in_order
def correlate(signals, tiles, product, correlations):
    """The products of a few signals with every atom."""
    n, width = len(signals), tiles.shape[2]
    for t in range(len(tiles)):
        np.dot(signals, tiles[t], product[:n])
        for j in range(n):
            copy(product[j], correlations[j, t * width : (t + 1) * width])


@compiled_in_order
def copy(source, target):
    """target[:] = source, which compiles in a fraction of the time."""
    for i in range(len(source)):
        target[i] = source[i]


@compiled_in_order
def argmax_abs(a, quarter, sixteenth):
    """Index of the entry largest in magnitude, by two foldings that compile to vector instructions."""
    fold(a, quarter)
    fold(quarter, sixteenth)
    p, largest = 0, sixteenth[0]
    for i in range(1, len(sixteenth)):
        p = i if sixteenth[i] > largest else p
        largest = sixteenth[i] if sixteenth[i] > largest else largest
    return unfold(a, unfold(quarter, p, len(sixteenth), largest), len(quarter), largest)


@compiled_in_order
def fold(a, quarter):
    q = len(quarter)
    first, second, third, fourth = a[:q], a[q : 2 * q], a[2 * q : 3 * q], a[3 * q : 4 * q]
    for i in range(q):
        left = abs(first[i]) if abs(first[i]) > abs(second[i]) else abs(second[i])
        right = abs(third[i]) if abs(third[i]) > abs(fourth[i]) else abs(fourth[i])
        quarter[i] = left if left > right else right


@compiled_in_order
def unfold(a, p, q, largest):
    """Which of the four entries folded onto p was the largest. No branch: it could not be predicted."""
    found = p
    for i in range(1, 4):
        found = p + i * q if abs(a[p + i * q]) == largest else found
    return found


@compiled_in_order
def contains(support, k, p):
    return p in support[:k]


@compiled_in_order
def sort_by_index(support, x, k):
    for i in range(1, k):
        p, v, l = support[i], x[i], i - 1
        while l >= 0 and support[l] > p:
            support[l + 1], x[l + 1] = support[l], x[l]
            l -= 1
        support[l + 1], x[l + 1] = p, v


@compiled_in_order
def keep_largest(active, x, k, size):
    """Move the `size` coefficients largest in magnitude to the front."""
    for i in range(min(size, k)):
        best = i
        for l in range(i + 1, k):
            if abs(x[l]) > abs(x[best]):
                best = l
        active[i], active[best] = active[best], active[i]
        x[i], x[best] = x[best], x[i]
    return min(size, k)


@compiled_in_order
def residual_budget(signal, tol):
    """The norm of a signal, and the squared residual allowed and left, as fractions of its square."""
    if tol < 0:
        return 1.0, -1.0, 1.0
    norm = euclidean_norm(signal)
    if norm <= np.sqrt(tol):  # a signal of zeros too
        return norm, 0.0, 0.0
    return norm, (np.sqrt(tol) / norm) ** 2, 1.0


@compiled_in_order
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


@compiled_in_order
def relative_error(signal, norm, atoms, support, x, k, residual):
    """‖y − Dx‖²/‖y‖² from the residual itself: 1 − Σz² has lost every digit once the fit is nearly exact."""
    subtract_fit(signal, atoms, support, x, k, residual)
    return (euclidean_norm(residual) / norm) ** 2


@compiled_in_order
def subtract_fit(signal, atoms, support, x, k, residual):
    """residual = y − Dx."""
    copy(signal, residual)
    for l in range(k):
        atom = atoms[support[l]]
        for i in range(len(residual)):
            residual[i] -= x[l] * atom[i]


@compiled_reordering
def residual_correlations(a, gram, active, x, k, h):
    """h = a − G_A x_A: the products of all atoms with the residual, four rows of G at a time."""
    copy(a, h)
    for l in range(0, k - 3, 4):
        g0, g1, g2, g3 = gram[active[l]], gram[active[l + 1]], gram[active[l + 2]], gram[active[l + 3]]
        x0, x1, x2, x3 = x[l], x[l + 1], x[l + 2], x[l + 3]
        for i in range(len(h)):
            h[i] -= x0 * g0[i] + x1 * g1[i] + x2 * g2[i] + x3 * g3[i]
    for l in range(k - k % 4, k):
        g0, x0 = gram[active[l]], x[l]
        for i in range(len(h)):
            h[i] -= x0 * g0[i]


@compiled_reordering
def product(a, b):
    total = a.dtype.type(0)
    for i in range(len(a)):
        total += a[i] * b[i]
    return total
