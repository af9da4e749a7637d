"""Sparse coders: from signals Y and a dictionary D to codes X, one column at a time.

A coder is anything with `encode(signals, dictionary)` that returns a `scipy.sparse.csc_array` (d×n). Those
here are frozen dataclasses, one file per family. `diagnostics.check_coder` tests the contract, for your own
coder too.
"""

from manifold_dl.coders.best import BestOf
from manifold_dl.coders.convex import BasisPursuit, Lasso
from manifold_dl.coders.greedy import OMP, ForwardSelection
from manifold_dl.coders.iterative import IHT, GradientPursuit, MatchingPursuit, SubspacePursuit
from manifold_dl.coders.oracle import FixedSupport
from manifold_dl.coders.protocol import FullSparseCoder, SparseCoder
from manifold_dl.coders.reweighted import FOCUSS
from manifold_dl.coders.rms import RmsLasso
from manifold_dl.components.registry import register

__all__ = [
    "FOCUSS",
    "IHT",
    "OMP",
    "BasisPursuit",
    "BestOf",
    "FixedSupport",
    "ForwardSelection",
    "FullSparseCoder",
    "GradientPursuit",
    "Lasso",
    "MatchingPursuit",
    "RmsLasso",
    "SparseCoder",
    "SubspacePursuit",
]

register(
    "coders",
    FOCUSS,
    IHT,
    OMP,
    BasisPursuit,
    BestOf,
    FixedSupport,
    ForwardSelection,
    GradientPursuit,
    Lasso,
    MatchingPursuit,
    RmsLasso,
    SubspacePursuit,
)
