"""MOD in a few lines of NumPy with dense matrices, as it stands in a textbook; codes by our OMP."""

import numpy as np

from manifold_dl import OMP

DISTRIBUTION = "numpy"


def update(Y, D, X, iteration=0):
    codes = X.toarray() if hasattr(X, "toarray") else X
    moved = np.linalg.lstsq(codes @ codes.T, codes @ Y.T, rcond=None)[0].T
    norms = np.linalg.norm(moved, axis=0)
    moved = np.where(norms > 0, moved / np.where(norms > 0, norms, 1), D)
    return moved, norms[:, None] * codes


def learn(problem):
    Y, D = problem.signals, problem.start
    for _ in range(problem.passes):
        X = OMP(sparsity=problem.sparsity).encode(Y, D, threads=1)
        D, _ = update(Y, D, X)
    return D


RECOVERY = PATCHES = {"dense MOD (NumPy)": learn}
UPDATES = {"dense MOD (NumPy)": lambda: update}
