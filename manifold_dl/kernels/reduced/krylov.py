"""The leading eigenvector of a larger positive semi-definite matrix, for `leading.py`.

Lanczos with full orthogonalisation and two start vectors: one alone never shows that an eigenvalue is double.
The matrix is projected on a space of Krylov of up to 64 dimensions, and the projection is squared.
"""

import numpy as np

from manifold_dl.kernels.backend import internal
from manifold_dl.kernels.reduced.squares import leading_of_square, norm, normalise
from manifold_dl.kernels.status import NOT_UNIQUE, OK


@internal
def krylov(G, E, start, squares, memory, limits):
    """The leading eigenvector of G becomes the first of the basis; NOT_UNIQUE where it is not found."""
    size, width, T = len(G), limits.largest, memory.products
    V = memory.basis[: (width + 2) * size].reshape((width + 2, size))
    _start_vectors(E, start, V)
    for _ in range(limits.spaces):
        filled = _append(V, np.int64(1), limits.rounding, T[:, 0])  # to the first, which is a unit vector
        T[:] = 0
        k, longest = 0, 0.0
        while k < min(filled, width):
            longest = max(longest, _multiply(G, V[k], V[filled]))
            filled = _append(V, filled, limits.rounding * longest, T[:, k])
            k += 1
            if k % 8 == 0 or k == min(filled, width):
                w, is_clear = _leading_of_projection(T, k, squares, limits)
                if is_clear and _is_eigenvector(w, T, k, filled, limits):
                    V[0] = _combination(w, V)
                    return OK
        if k == filled or not is_clear:  # more products would show nothing new
            return NOT_UNIQUE
        w = w.copy()
        best = _combination(w, V)
        V[1] = _combination(_second_of_projection(w, T, k, squares, limits), V)
        V[0] = best
        normalise(V[0])
    return NOT_UNIQUE


@internal
def _start_vectors(E, start, V):
    """The first is near the answer, as a rule; the second is any: multiples of the golden ratio, modulo 1."""
    n, m = E.shape
    for q in range(V.shape[1]):
        V[0, q] = 0 if n < m else start[q]
        V[1, q] = ((q + 1) * 0.6180339887498949) % 1.0 - 0.5
    if n < m:
        for k in range(n):
            for p in range(m):
                V[0, k] += E[k, p] * start[p]
    normalise(V[0])
    normalise(V[1])
    if not norm(V[0]) > 0:
        V[0, 0] = 1


@internal
def _multiply(G, v, product):
    """G v for a symmetric G, and its norm."""
    product[:] = 0
    for q in range(len(v)):
        for p in range(len(v)):
            product[p] += v[q] * G[q, p]
    return norm(product)


@internal
def _append(V, filled, threshold, column):
    """Make the vector after the first ones of V orthogonal to them; how many there are with it.

    Its components along them are added to `column`. What is no longer than the threshold is dropped.
    """
    w = V[filled]
    length = norm(w)
    for _ in range(3):  # again while most of the vector disappears: what is left then is not orthogonal yet
        before = length
        for i in range(filled):
            along = 0.0
            for p in range(len(w)):
                along += V[i, p] * w[p]
            for p in range(len(w)):
                w[p] -= along * V[i, p]
            column[i] += along
        length = norm(w)
        if length > 0.7 * before:
            break
    if not length > threshold:
        return filled
    column[filled] = length
    for p in range(len(w)):
        w[p] /= length
    return filled + 1


@internal
def _leading_of_projection(T, k, squares, limits):
    """The leading eigenvector of the matrix vᵢ·G vⱼ of the first k vectors, and whether it is clear."""
    P, B = squares[0][: k * k].reshape((k, k)), squares[1][: k * k].reshape((k, k))
    for i in range(k):
        for j in range(k):
            P[i, j] = T[min(i, j), max(i, j)]
    return leading_of_square(P, B, limits)


@internal
def _second_of_projection(w, T, k, squares, limits):
    """The next eigenvector, or a mixture of some."""
    P, B = squares[0][: k * k].reshape((k, k)), squares[1][: k * k].reshape((k, k))
    value = _value(w, T)
    for i in range(k):
        for j in range(k):
            P[i, j] = T[min(i, j), max(i, j)] - value * w[i] * w[j]
    return leading_of_square(P, B, limits)[0]


@internal
def _is_eigenvector(w, T, k, filled, limits):
    """Whether G V w is θ V w up to rounding: what leaves the span lies along the vectors after k."""
    rest = 0.0
    for i in range(k, filled):
        along = 0.0
        for j in range(k):
            along += T[i, j] * w[j]
        rest += along * along
    return np.sqrt(rest) <= limits.residual * _value(w, T)


@internal
def _value(w, T):
    """θ = wᵀTw."""
    value = 0.0
    for i in range(len(w)):
        for j in range(len(w)):
            value += w[i] * w[j] * T[min(i, j), max(i, j)]
    return value


@internal
def _combination(w, V):
    """Σ wₖ vₖ."""
    vector = np.zeros(V.shape[1])
    for k in range(len(w)):
        for p in range(len(vector)):
            vector[p] += w[k] * V[k, p]
    return vector
