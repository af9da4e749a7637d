"""
A sparse coder of your own
==========================

From signals and a dictionary to sparse codes: here by thresholding, the simplest coder there is. It takes the
atoms that are most correlated with a signal, all at once, and solves least squares on them.
"""
# ruff: noqa: E402 - every part of the page brings the names that it needs

# %%
# The whole of it: one method, (m×n, m×d) → sparse d×n. The class attribute is a promise that the check will
# hold it to.

# begin: component
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array


@dataclass(frozen=True)
class Thresholding:
    sparsity: int
    optimal_on_support = True

    def encode(self, signals, dictionary):
        codes = np.zeros((dictionary.shape[1], signals.shape[1]), signals.dtype)
        best = np.argsort(-np.abs(dictionary.T @ signals), axis=0)[: self.sparsity]
        for code, signal, I in zip(codes.T, signals.T, best.T, strict=True):
            code[I] = np.linalg.lstsq(dictionary[:, I], signal)[0]
        return csc_array(codes)


# end: component

# %%
# Form, symmetries, zeros, tiny and huge signals:

# begin: check
from manifold_dl.diagnostics import check_coder

print(check_coder(Thresholding(sparsity=3)))
# end: check

# %%
# It learns a dictionary like any other coder. OMP, which looks at the residual before it takes another atom,
# picks better supports.

# begin: use
import manifold_dl as mdl

_, _, Y = mdl.datasets.synthetic(16, 24, 300, sparsity=3, snr_db=20, rng=0)
losses = {}
for coder in (Thresholding(sparsity=3), mdl.OMP(sparsity=3)):
    result = mdl.learn_dictionary(Y, n_atoms=24, coder=coder, update=mdl.SimCO(), max_iter=10, rng=0)
    losses[type(coder).__name__] = float(result.history.loss[-1])
print(losses)
# end: use

# %%
# What was shown: the new coder works in the loop, and the comparison is fair.

assert losses["OMP"] < losses["Thresholding"] < np.mean(np.sum(Y**2, axis=0))
