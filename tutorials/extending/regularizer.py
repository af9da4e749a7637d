"""
A regularizer of your own
=========================

A penalty on the atoms: here the sum of fourth powers, which is small for atoms that spread their energy
evenly and large for atoms with a few high peaks.
"""
# ruff: noqa: E402 - every part of the page brings the names that it needs

# %%
# The whole of it. It is a function of the dictionary, written with ``autograd.numpy``; the gradient and the
# product with the Hessian are derived from it.

# begin: component
import autograd.numpy as anp

from manifold_dl.regularizers import regularizer


@regularizer
def peaks(dictionary):
    return anp.sum(dictionary**4)


# end: component

# %%
# Is it right? Taylor remainders say so, and the report prints their slopes.

# begin: check
from manifold_dl.diagnostics import check_regularizer

print(check_regularizer(peaks))
# end: check

# %%
# Regularizers scale and add, and every update takes a list of them. The weight is a fraction of ‖Y‖², because
# that is what the fit is measured in.

# begin: use
import manifold_dl as mdl

_, X, Y = mdl.datasets.synthetic(16, 24, 300, sparsity=3, snr_db=20, rng=0)
D = mdl.manifolds.Spheres(16, 24).random_point(1)

weight = 0.1 * (Y**2).sum()
plain, _ = mdl.SimCO(mu=0.1)(Y, D, X)
spread, _ = mdl.SimCO(mu=0.1, regularizers=[weight * peaks])(Y, D, X)
print(f"fourth powers: {peaks.value(plain):.2f} without, {peaks.value(spread):.2f} with the penalty")
# end: use

# %%
# What was shown: the penalty does what it says.

assert peaks.value(spread) < 0.9 * peaks.value(plain)
