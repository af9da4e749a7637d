"""Bad and odd dictionaries (8×12) and codes (12×60): a part of the catalogue."""

import numpy as np
import scipy.sparse
from catalogue_signals import REFUSED, WORKS


def broken(**parts):
    def change(X):
        X = X.copy()
        for name, (place, number) in parts.items():
            getattr(X, name)[place] = number
        return X

    return change


def relabelled(X):
    X = scipy.sparse.csc_array(X)
    X.indices, X.data = X.indices[::-1].copy(), X.data[::-1].copy()  # not sorted inside a column
    return scipy.sparse.csc_array((X.data, X.indices, X.indptr), shape=X.shape)


DICTIONARIES = {
    "dictionary with NaN": (REFUSED, lambda D: np.where(D > 0.5, np.nan, D)),
    "dictionary with a zero atom": (REFUSED, lambda D: D * (np.arange(12) != 4)),
    "atoms of another length": (REFUSED, lambda D: D[:6]),
    "masked dictionary": (REFUSED, lambda D: np.ma.masked_array(D)),
    "complex dictionary": (REFUSED, lambda D: D + 1j),
    "dictionary of text": (REFUSED, lambda D: D.astype(str)),
    "atoms of norm 1e160": (WORKS, lambda D: 1e160 * D),
    "atoms of norm 1e-160": (WORKS, lambda D: 1e-160 * D),
    "equal atoms": (WORKS, lambda D: D[:, [0, 0, *range(2, 12)]]),
    "whole numbers as atoms": (WORKS, lambda D: np.rint(9 * D).astype(int)),
    "float32 dictionary": (WORKS, lambda D: D.astype(np.float32)),
    "dictionary as lists": (WORKS, lambda D: D.tolist()),
}
CODES = {
    "codes with NaN": (REFUSED, lambda X: scipy.sparse.csc_array(X * np.nan)),
    "indptr beyond the memory": (REFUSED, broken(indptr=(3, 10**6))),
    "indptr that descends": (REFUSED, broken(indptr=(5, 0))),
    "index outside": (REFUSED, broken(indices=(7, 99))),
    "negative index": (REFUSED, broken(indices=(7, -3))),
    "codes of another shape": (REFUSED, lambda X: X[:, :40]),
    "masked codes": (REFUSED, lambda X: np.ma.masked_array(X.toarray())),
    "codes of text": (REFUSED, lambda X: X.toarray().astype(str)),
    "dense codes": (WORKS, lambda X: X.toarray()),
    "csr codes": (WORKS, lambda X: X.tocsr()),
    "unsorted codes": (WORKS, relabelled),
    "no codes at all": (WORKS, lambda X: scipy.sparse.csc_array(X.shape)),
    "codes of 1e17": (WORKS, lambda X: X * 1e17),
}
