"""
How codes follow the dictionary
===============================

A penalty of your own on the codes: here the group lasso, which takes atoms in pairs, both or neither. A coder
that minimises ½‖y − Dx‖² + p(x), with a method for p, is all that learning needs.
"""
# ruff: noqa: E402 - every part of the page brings the names that it needs

# %%
# p(x) = α Σ_g ‖x_g‖₂ over groups of neighbouring atoms. Proximal gradient steps with momentum minimise it: a
# step along the gradient, then every group is shrunk as a whole.

# begin: component
from dataclasses import dataclass

import numpy as np
from scipy.sparse import csc_array


@dataclass(frozen=True)
class GroupLasso:
    alpha: float
    size: int = 2
    steps: int = 2000

    def encode(self, signals, dictionary):
        length = 1 / np.linalg.norm(dictionary, 2) ** 2
        codes = point = np.zeros((dictionary.shape[1], signals.shape[1]))
        for k in range(self.steps):
            last, z = codes, point + length * dictionary.T @ (signals - dictionary @ point)
            norms = self._norms(z)
            shrink = np.maximum(1 - length * self.alpha / np.maximum(norms, 1e-300), 0)
            codes = z * np.repeat(shrink, self.size, axis=0)
            point = codes + k / (k + 3) * (codes - last)
        return csc_array(codes)

    def penalty(self, codes):
        return self.alpha * self._norms(codes.toarray()).sum()

    def _norms(self, codes):
        return np.linalg.norm(codes.reshape(-1, self.size, codes.shape[1]), axis=1)


# end: component

# %%
# The gradient of the problem is right only where the codes are exact, so the check of the gradient is a check
# of `encode` and `penalty` together.

# begin: check
from manifold_dl import datasets
from manifold_dl.diagnostics import check_gradient
from manifold_dl.problem import penalized_problem

_, _, Y = datasets.synthetic(6, 8, 40, sparsity=2, snr_db=20, rng=0)
report = check_gradient(penalized_problem(Y, 8, GroupLasso(alpha=0.3)))
print(report)
# end: check

# %%
# In `SimCO` the codes follow by it, and learning needs no other coder.

# begin: use
import manifold_dl as mdl

update = mdl.SimCO(codes=GroupLasso(alpha=0.3, steps=200))
result = mdl.learn_dictionary(Y, n_atoms=8, update=update, max_iter=3, rng=0)
used = result.codes.toarray() != 0
print(f"{used.mean():.0%} of the coefficients are not zero, in pairs")
# end: use

# %%
# What was shown: the gradient is right, the loss falls, and both atoms of a pair are used, or neither.

assert report
assert result.history.loss[-1] < np.mean(np.sum(Y**2, axis=0))
assert 0 < used.mean() < 1 and np.array_equal(used[::2], used[1::2])
