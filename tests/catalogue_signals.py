"""Bad and odd signals, as m×n matrices: the part of the catalogue that other libraries can be given, too.

NumPy and SciPy only. Each kind is a function of good signals, and says whether it has to be refused, has to
work, or may do either.
"""

import numpy as np
import scipy.sparse

REFUSED, WORKS, EITHER = "refused", "works", "either"


def with_entry(value, dtype=float):
    def change(Y):
        Y = Y.astype(dtype)
        Y[3, 5] = value
        return Y

    return change


def masked(Y):
    Y = np.ma.masked_array(Y.copy(), mask=np.zeros(Y.shape, bool))
    Y[3, 5] = np.ma.masked
    return Y


def read_only(Y):
    Y = Y.copy()
    Y.flags.writeable = False
    return Y


def scaled_columns(Y):
    return Y * 10.0 ** np.linspace(-100, 100, Y.shape[1])


class ArrayLike:
    def __init__(self, array):
        self.array = array

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype=dtype)


SIGNALS = {
    "one NaN": (REFUSED, with_entry(np.nan)),
    "one NaN, float32": (REFUSED, with_entry(np.nan, np.float32)),
    "+infinity": (REFUSED, with_entry(np.inf)),
    "-infinity": (REFUSED, with_entry(-np.inf)),
    "all NaN": (REFUSED, lambda Y: np.full(Y.shape, np.nan)),
    "complex": (REFUSED, lambda Y: Y + 1j),
    "text": (REFUSED, lambda Y: Y.astype(str)),
    "bytes": (REFUSED, lambda Y: Y.astype("S32")),
    "dates": (REFUSED, lambda Y: np.arange(Y.size).reshape(Y.shape).astype("datetime64[s]")),
    "durations": (REFUSED, lambda Y: np.arange(Y.size).reshape(Y.shape).astype("timedelta64[s]")),
    "text in objects": (REFUSED, lambda Y: Y.astype(str).astype(object)),
    "None in objects": (REFUSED, lambda Y: with_entry(None, object)(Y)),
    "records": (REFUSED, lambda Y: np.zeros(Y.shape, dtype=[("a", float), ("b", int)])),
    "masked array": (REFUSED, masked),
    "sparse csc": (REFUSED, scipy.sparse.csc_array),
    "sparse coo matrix": (REFUSED, scipy.sparse.coo_matrix),
    "one axis": (REFUSED, lambda Y: Y[:, 0]),
    "three axes": (REFUSED, lambda Y: Y[None]),
    "a number": (REFUSED, lambda Y: 3.0),
    "None": (REFUSED, lambda Y: None),
    "a word": (REFUSED, lambda Y: "signals"),
    "a dict": (REFUSED, lambda Y: {"signals": Y}),
    "ragged lists": (REFUSED, lambda Y: [[1.0, 2.0], [3.0]]),
    "no signals": (REFUSED, lambda Y: Y[:, :0]),
    "no features": (REFUSED, lambda Y: Y[:0]),
    "denormal numbers": (EITHER, lambda Y: Y * 1e-310),  # a coder loses no more digits than they have lost
    "objects that are numbers": (EITHER, lambda Y: Y.astype(object)),
    "float32": (WORKS, lambda Y: Y.astype(np.float32)),
    "float16": (WORKS, lambda Y: Y.astype(np.float16)),
    "extended precision": (WORKS, lambda Y: Y.astype(np.longdouble)),
    "int8": (WORKS, lambda Y: np.rint(20 * Y).astype(np.int8)),
    "int64": (WORKS, lambda Y: np.rint(1e6 * Y).astype(np.int64)),
    "uint8": (WORKS, lambda Y: np.rint(np.abs(50 * Y)).astype(np.uint8)),
    "booleans": (WORKS, lambda Y: Y > 0),
    "big-endian": (WORKS, lambda Y: Y.astype(">f8")),
    "by columns": (WORKS, np.asfortranarray),
    "every second column": (WORKS, lambda Y: np.repeat(Y, 2, axis=1)[:, ::2]),
    "negative strides": (WORKS, lambda Y: Y[::-1, ::-1].copy()[::-1, ::-1]),
    "read-only": (WORKS, read_only),
    "lists": (WORKS, lambda Y: Y.tolist()),
    "array-like object": (WORKS, ArrayLike),
    "times 1e200": (WORKS, lambda Y: Y * 1e200),
    "times 1e-200": (WORKS, lambda Y: Y * 1e-200),
    "norms from 1e-100 to 1e100": (EITHER, scaled_columns),
    "one huge signal": (WORKS, lambda Y: Y * np.where(np.arange(Y.shape[1]) == 3, 1e8, 1.0)),
    "some zero signals": (WORKS, lambda Y: Y * (np.arange(Y.shape[1]) % 3 > 0)),
    "all zero": (WORKS, lambda Y: np.zeros(Y.shape)),
    "equal signals": (WORKS, lambda Y: np.repeat(Y[:, :1], Y.shape[1], axis=1)),
    "rank one": (WORKS, lambda Y: np.outer(Y[:, 0], Y[0])),
    "constant": (WORKS, lambda Y: np.ones(Y.shape)),
    "a zero feature": (WORKS, lambda Y: Y * (np.arange(len(Y)) != 2)[:, None]),
}
