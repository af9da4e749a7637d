"""Arithmetic column by column, and the door that every geometry's (m, k) passes."""

from numbers import Integral

import numpy as np

from manifold_dl.kernels.reduced import reference

DOUBLE = np.dtype(float)


def as_shape(m, k):
    """The shape of a dictionary as Python integers; a sentence where there is none."""
    if not isinstance(m, Integral) or m < 2:
        raise ValueError(
            f"m={m!r}: an atom needs a whole number of entries, at least 2; "
            "with a single one it can only be +1 or -1 and has nowhere to move."
        )
    if not isinstance(k, Integral) or k < 1:
        raise ValueError(f"k={k!r}: a dictionary needs a whole number of atoms, at least 1.")
    return int(m), int(k)


def dots(a, b):
    """Column by column, the dot product of a and b."""
    if a.size < 2048:  # optimisers live here on small dictionaries: vecdot starts in half the time of einsum,
        return np.vecdot(a, b, axis=0)
    return np.einsum("ij,ij->j", a, b)  # which in turn does not mind the long strides of large ones


def by_rows(kernel, point, vector):
    """What a kernel, which wants atoms in contiguous rows, makes of an m×k point and vector."""
    if vector.shape != point.shape:  # kernels do not look, and would read beyond its end
        vector = np.broadcast_to(vector, point.shape)
    if point.dtype != DOUBLE or vector.dtype != DOUBLE:
        dtype = point.dtype if point.dtype.kind == "f" else DOUBLE
        if dtype not in (np.float64, np.float32):  # half or extended precision: NumPy can
            kernel = getattr(reference, kernel.__name__)
        point, vector = point.astype(dtype, copy=False), vector.astype(dtype, copy=False)
    rows = np.ascontiguousarray(vector.T)
    result = np.empty(rows.shape, rows.dtype)
    kernel(np.ascontiguousarray(point.T), rows, result)
    return result.T


def norms(a):
    return np.sqrt(dots(a, a))


def signs(a, b):
    """+1 where the columns of a and b make an acute angle, −1 where an obtuse one."""
    return np.copysign(1, dots(a, b))


def unit_columns(a):
    return a / norms(a)


def largest_one(a):
    """Columns scaled to a largest entry of 1 (zeros stay): their squares neither overflow nor vanish."""
    largest = np.abs(a).max(axis=0)
    return a / np.where(largest > 0, largest, 1)


def rounding(point):
    """How far from 1 the norm of a unit column may be, in the dtype of `point`."""
    dtype = point.dtype if point.dtype.kind == "f" else float
    return 4 * np.sqrt(len(point)) * float(np.finfo(dtype).eps)


def in_dtype_of(point, array):
    """Cast to the dtype of a float point: step sizes of NumPy's float64 would widen a float32 run."""
    if array.dtype == point.dtype or point.dtype.kind != "f":
        return array
    return array.astype(point.dtype)
