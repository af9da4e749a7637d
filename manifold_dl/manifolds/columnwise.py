"""Arithmetic column by column, and the validation of a shape (m, k), for all manifolds of this package."""

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Any

import numpy as np

from manifold_dl._validation import require_count
from manifold_dl.kernels import reduced as kernels
from manifold_dl.kernels.reduced import reference

DOUBLE, SINGLE = np.dtype(float), np.dtype(np.float32)


def as_shape(m: Any, k: Any, least: int = 2) -> tuple[int, int]:
    """Return the shape of a dictionary as Python integers; raise if it is none."""
    single = "; with a single one it can only be +1 or -1 and has nowhere to move" if least == 2 else ""
    require_count("m", m, f"an atom needs a whole number of entries{single}", least)
    require_count("k", k, "a dictionary needs a whole number of atoms")
    return int(m), int(k)


def dots(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return the dot products of corresponding columns of a and b."""
    if a.size < 2048:  # vecdot has half the overhead of einsum, but is slower for the strides of large arrays
        return np.vecdot(a, b, axis=0)  # type: ignore[call-overload]  # missing in NumPy's stubs
    return np.einsum("ij,ij->j", a, b)


def by_rows(kernel: Callable[..., None], point: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """Apply a kernel, which takes atoms in contiguous rows, to an m×k point and vector."""
    if vector.shape != point.shape:  # kernels do not check, and would read beyond its end
        vector = np.broadcast_to(vector, point.shape)
    if point.dtype != DOUBLE or vector.dtype != DOUBLE:
        dtype = point.dtype if point.dtype.kind == "f" else DOUBLE
        if dtype not in (np.float64, np.float32):  # half or extended precision: NumPy only
            kernel = getattr(reference, kernel.__name__)
        point, vector = point.astype(dtype, copy=False), vector.astype(dtype, copy=False)
    rows = np.ascontiguousarray(vector.T)
    result = np.empty(rows.shape, rows.dtype)
    kernel(np.ascontiguousarray(point.T), rows, result)
    return result.T


def norms(a: np.ndarray) -> np.ndarray:
    """Return the Euclidean norms of the columns."""
    return np.sqrt(dots(a, a))


def norm_error(a: np.ndarray) -> float:
    """Return how far the norm of any column is from 1; infinite where a column is not finite."""
    if a.dtype not in (DOUBLE, SINGLE):
        return reference.norm_error(a.T.astype(float, copy=False))
    return kernels.norm_error(np.ascontiguousarray(a.T))


def signs(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return +1 for columns of a and b at an acute angle and −1 at an obtuse one."""
    return np.copysign(1, dots(a, b))


def unit_columns(a: np.ndarray) -> np.ndarray:
    """Return the columns divided by their norms."""
    return a / norms(a)


def largest_one(a: np.ndarray) -> np.ndarray:
    """Scale columns to a largest entry of 1, so that squares neither overflow nor vanish; zeros stay."""
    largest = np.abs(a).max(axis=0)
    return a / np.where(largest > 0, largest, 1)


def rounding(point: np.ndarray) -> float:
    """Return how far from 1 the norm of a unit column may be, in the dtype of `point`."""
    return _rounding(len(point), point.dtype)


@lru_cache(maxsize=64)
def _rounding(m: int, dtype: np.dtype) -> float:
    return 4 * math.sqrt(m) * float(np.finfo(dtype if dtype.kind == "f" else float).eps)


def in_dtype_of(point: np.ndarray, array: np.ndarray) -> np.ndarray:
    """Cast to the dtype of a float point: step sizes of NumPy's float64 would widen a float32 run."""
    if array.dtype == point.dtype or point.dtype.kind != "f":
        return array
    return array.astype(point.dtype)
