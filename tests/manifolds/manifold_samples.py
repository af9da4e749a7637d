"""Every geometry of the package in several shapes, and helpers that compare points and tangent vectors."""

import numpy as np
from pymanopt.manifolds import Grassmann, Sphere

from manifold_dl.manifolds import (
    Columns,
    Euclidean,
    Lines,
    NonNegative,
    Orthonormal,
    Spheres,
    Subspace,
    ZeroMean,
)

SHAPES = [(2, 1), (2, 5), (3, 4), (7, 1), (16, 32), (40, 60)]  # the last is past _dots' switch to einsum


# A handful of roundings in sums of up to 2400 terms of size one.
ROUNDING = 1e-13


def angles(tangent_vector):
    return np.linalg.norm(tangent_vector, axis=0)


def within_reach(manifold, point, rng):
    """A tangent vector with columns shorter than π/2, so that log can find it again on either manifold."""
    vector = manifold.random_tangent_vector(point, rng)
    return vector * (rng.uniform(0.1, 1.5, vector.shape[1]) / angles(vector))


def slope(errors, steps):
    """The order of errors ~ steps**order, by least squares on logarithmic axes."""
    return np.polyfit(np.log(steps), np.log(errors), 1)[0]


def up_to_signs(points, reference):
    return points * np.copysign(1, (points * reference).sum(axis=0))


BASIS = np.random.default_rng(3).standard_normal((6, 3))


# Every geometry in a small, a square (where it can be) and a single-atom shape.
EVERY_MANIFOLD = [
    *(
        factory(m, k)
        for factory in (Spheres, Lines, ZeroMean, NonNegative, Orthonormal, Euclidean)
        for m, k in [(5, 3), (4, 4), (5, 1)]
    ),
    Orthonormal(9, 2),
    Subspace(BASIS)(6, 4),
    Subspace(BASIS)(6, 1),
    Columns(Sphere)(5, 3),
    Columns(lambda m: Grassmann(m, 1))(4, 3),
    Columns(lambda m: NonNegative(m, 1))(4, 3),
]


def reach(point):
    """How long a tangent vector may be for log to invert exp: for non-negative atoms, half way to zero."""
    return 0.5 * np.sqrt(point / point.sum(axis=0)).min() if (point >= 0).all() else 0.5
