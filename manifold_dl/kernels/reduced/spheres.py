"""Atoms on their unit spheres, compiled: one pass over each row where NumPy would make five.

Results are written to arrays made by NumPy: returning a new array takes Numba longer than filling it.
"""

import numpy as np

from manifold_dl.kernels.backend import compiled


@compiled
def dot(a, b):
    if len(a) != len(b):
        raise ValueError("the two vectors differ in length")
    total = 0.0
    for i in range(len(a)):
        total += np.float64(a[i]) * b[i]  # in double precision, whatever the data
    return total


@compiled
def norm_error(rows):
    largest = 0.0
    for i in range(len(rows)):
        square = 0.0
        for p in range(rows.shape[1]):
            square += np.float64(rows[i, p]) * rows[i, p]
        error = abs(np.sqrt(square) - 1.0)
        if not error < np.inf:  # NaN, too
            return np.inf
        largest = max(largest, error)
    return largest


@compiled
def project_to_tangent(atoms, rows, result):
    for i in range(len(rows)):
        along = 0.0
        for p in range(rows.shape[1]):
            along += atoms[i, p] * rows[i, p]
        for p in range(rows.shape[1]):
            result[i, p] = rows[i, p] - along * atoms[i, p]


@compiled
def sphere_exp(atoms, rows, result):
    for i in range(len(rows)):
        square = 0.0
        for p in range(rows.shape[1]):
            square += rows[i, p] * rows[i, p]
        angle = max(np.sqrt(square), 1e-30)
        cosine, sine = np.cos(angle), np.sin(angle) / angle
        square = 0.0
        for p in range(rows.shape[1]):
            moved = cosine * atoms[i, p] + sine * rows[i, p]
            square += moved * moved
            result[i, p] = moved
        norm = np.sqrt(square)
        for p in range(rows.shape[1]):
            result[i, p] /= norm
