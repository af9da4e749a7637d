"""Atoms on their spheres, compiled: each row by itself, in one pass where NumPy would make five.

Results go into arrays made by NumPy: to hand out one of its own takes Numba longer than to fill it.
"""

import numpy as np

from manifold_dl.kernels.compiling import compiled


def tangent(atoms, rows):
    result = np.empty_like(rows)
    _tangent(atoms, rows, result)
    return result


def travel(atoms, rows):
    result = np.empty_like(atoms)
    _travel(atoms, rows, result)
    return result


@compiled
def dot(a, b):
    total = 0.0
    for i in range(len(a)):
        total += a[i] * b[i]
    return total


@compiled
def _tangent(atoms, rows, result):
    for i in range(len(rows)):
        along = 0.0
        for p in range(rows.shape[1]):
            along += atoms[i, p] * rows[i, p]
        for p in range(rows.shape[1]):
            result[i, p] = rows[i, p] - along * atoms[i, p]


@compiled
def _travel(atoms, rows, result):
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
