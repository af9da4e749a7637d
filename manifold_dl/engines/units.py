"""Units in which no square overflows or vanishes: signals of any size, divided by a power of two.

Multiplying Y by c multiplies X by c and the objective by c², and changes nothing else. Double precision holds
numbers up to 1e308, but their squares only up to 1e154, so signals of 1e200 are divided by 2^e on entry and
their codes multiplied by 2^e in the end. A power of two changes no digit: the dictionary has the same bits at
every scale. Ordinary signals have e = 0 and are neither copied nor changed.

`sources.py` and the coders divide, `updates/workspace.py` and `problem/dictionary_problem.py` multiply the
codes back, and `learning/loop.py` and `learning/minibatch.py` keep their sums in these units.
"""

import math
from typing import Any

import numpy as np

from manifold_dl.kernels import reduced

# Signals whose largest entry lies within 2^±limit are ordinary. The objective squares them, sums over up to
# millions of signals, and norms of its gradient square once more: the fourth power, and the square of a
# residual that is a millionth of the signal, stay within the range of the type.
ORDINARY = {np.dtype(np.float64): 100, np.dtype(np.float32): 20}
# A coder takes signals one by one, and squares a signal, and a residual down to rounding, but no more.
CODABLE = {np.dtype(np.float64): 400, np.dtype(np.float32): 36}


def unit_exponent(array: np.ndarray, name: str = "signals") -> int:
    """e such that 2^e is just above the largest entry, or 0 where squares are safe in the units given.

    Examples
    --------
    >>> unit_exponent(np.array([[3.0, -7.0]])), unit_exponent(np.array([[1e200, 3.0]]))
    (0, 665)
    """
    return exponent_of(max(float(array.max()), -float(array.min())), array.dtype, name)


def exponent_of(largest: float, dtype: np.dtype, name: str = "signals") -> int:
    """The same from the largest |entry| of an array of this dtype."""
    smallest_normal = np.finfo(dtype).tiny
    if 0 < largest < smallest_normal:
        raise ValueError(
            f"{name} has no entry above {largest:.1e}, and numbers of type {dtype} below "
            f"{smallest_normal:.1e} lose digits. Multiply the data by a large number first."
        )
    exponent = math.frexp(largest)[1]
    return exponent if abs(exponent) > ORDINARY[dtype] else 0


def row_exponents(rows: np.ndarray) -> np.ndarray | None:
    """The exponent of the largest entry of every row, for a coder; None if no row needs a unit of its own.

    Rows of zeros, which have no size, get the largest exponent of the others.
    """
    largest = np.abs(rows).max(axis=1)
    exponents = np.frexp(largest)[1]
    if (np.abs(exponents) <= CODABLE[rows.dtype]).all():
        return None
    exponents[largest == 0] = exponents[largest > 0].max()
    return exponents


def divide(array: np.ndarray, exponent: Any) -> np.ndarray:
    """The array divided by 2^exponent, without rounding; itself for 0."""
    if _is_zero(exponent):
        return array
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(array, -exponent)


def as_units(codes: np.ndarray, exponent: int) -> np.ndarray:
    """Codes divided by 2^exponent, as the signals are."""
    codes = divide(codes, exponent)
    if exponent and not np.isfinite(codes).all():
        raise ValueError(
            "the codes are too large for these signals: no dictionary of unit atoms has such codes."
        )
    return codes


def multiply(codes: np.ndarray, exponent: Any) -> np.ndarray:
    """Codes times 2^exponent: back in the units of the signals."""
    codes = divide(codes, -exponent)
    if not _is_zero(exponent) and not np.isfinite(codes).all():
        raise ValueError(
            f"signals are so large that their codes exceed the largest number of type {codes.dtype}: "
            "divide the signals by a large number first."
        )
    return codes


def _is_zero(exponent: Any) -> bool:
    return exponent == 0 if isinstance(exponent, int) else not np.any(exponent)


def times_square(value: float, exponent: int) -> float:
    """value · 4^exponent: a sum of squares in the units of the data; inf or 0 where no number can hold it."""
    try:
        return math.ldexp(value, 2 * exponent)
    except OverflowError:
        return math.copysign(math.inf, value)


def dominant_signal(rows: np.ndarray) -> int | None:
    """The signal (row) against which the squares of all others vanish, if there is one."""
    energies = np.einsum("nm,nm->n", rows, rows, dtype=float)
    j = int(energies.argmax())
    others = np.delete(energies, j)
    is_alone = others.sum() <= np.finfo(float).eps * energies[j]
    return j if is_alone and np.delete(rows, j, axis=0).any() else None


def column_norms(matrix: np.ndarray) -> np.ndarray:
    """‖d_i‖ of every column, for entries of any size."""
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(matrix, axis=0)
    if not np.isfinite(norms).all() or norms.min(initial=1.0) < np.finfo(matrix.dtype).tiny ** 0.5:
        exponents = np.frexp(np.abs(matrix).max(axis=0))[1]
        norms = np.ldexp(np.linalg.norm(np.ldexp(matrix, -exponents), axis=0), exponents)
    return norms


def norms_or_one(atoms: np.ndarray) -> np.ndarray:
    """‖d_i‖ of every column, for entries of any size; exactly 1 where it is 1 up to rounding.

    Columns divided by these norms keep their bits where they are unit atoms already.
    """
    rounding = 4 * math.sqrt(len(atoms)) * float(np.finfo(atoms.dtype).eps)
    if reduced.norm_error(np.ascontiguousarray(atoms.T)) <= rounding:  # the usual case
        return np.ones(atoms.shape[1], atoms.dtype)
    largest = np.abs(atoms).max(axis=0)  # first, so that the squares neither overflow nor vanish
    norms = largest * np.linalg.norm(atoms / largest, axis=0)
    norms[np.abs(norms - 1) <= rounding] = 1
    return norms
