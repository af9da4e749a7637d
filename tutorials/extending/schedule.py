"""
A schedule of your own
======================

Which atoms move together: here first those with even numbers, then those with odd ones.
"""
# ruff: noqa: E402 - every part of the page brings the names that it needs

# %%
# The whole of it: one method that yields the index arrays of one sweep. Randomness, if any, comes from `rng`.

# begin: component
import numpy as np


class EvenThenOdd:
    def subsets(self, n_atoms, rng=None):
        for first in range(min(2, n_atoms)):
            yield np.arange(first, n_atoms, 2)


# end: component

# %%
# Every subset in range, no atom twice, the same sweep for the same seed:

# begin: check
from manifold_dl.diagnostics import check_schedule

print(check_schedule(EvenThenOdd(), covers=True))
# end: check

# %%
# Half of the atoms at a time lies between K-SVD, which moves one, and SimCO, which moves all.

# begin: use
import manifold_dl as mdl

_, X, Y = mdl.datasets.synthetic(16, 24, 300, sparsity=3, snr_db=20, rng=0)
D = mdl.manifolds.Spheres(16, 24).random_point(1)
D_new, X_new = mdl.SimCO(schedule=EvenThenOdd())(Y, D, X)
before, after = np.sum((Y - D @ X) ** 2), np.sum((Y - D_new @ X_new) ** 2)
print(f"‖Y − DX‖²: {before:.0f} before, {after:.0f} after one sweep")
# end: use

# %%
# What was shown: a sweep in two halves is a dictionary update.

assert after < before
