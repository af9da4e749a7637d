"""The leading eigenvector of a small positive semi-definite matrix, by squaring it; for `leading.py`."""

import numpy as np

from manifold_dl.kernels.backend import compiled, internal


@internal
def leading_of_square(A, B, limits):
    """The leading eigenvector of a small matrix, and whether it is clear; both matrices are written to."""
    energy = trace(A)
    left = np.inf
    for _ in range(limits.squarings):
        scale(A, energy)
        np.dot(A, A, B)
        A, B = B, A
        energy = trace(A)  # Σ λ² of eigenvalues with Σ λ = 1
        left = 1 - energy
        if left <= limits.negligible:
            break
    top = 0
    for k in range(len(A)):
        if A[k, k] > A[top, top]:
            top = k
    v = A[top]  # all rows are multiples of the vector, and this one is the longest
    normalise(v)
    return v, left <= limits.negligible


@internal
def trace(A):
    total = 0.0
    for k in range(len(A)):
        total += A[k, k]
    return total


@compiled
def scale(A, divisor):
    for k in range(len(A)):
        for l in range(len(A)):
            A[k, l] /= divisor


@internal
def normalise(u):
    length = norm(u)
    if length > 0:
        for p in range(len(u)):
            u[p] /= length


@internal
def norm(u):
    total = 0.0
    for p in range(len(u)):
        total += u[p] * u[p]
    return np.sqrt(total)
