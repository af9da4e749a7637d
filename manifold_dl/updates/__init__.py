"""One dictionary-update stage: SimCO, K-SVD and MOD, each called as ``D, X = update(Y, D, X)``."""

from manifold_dl.components.registry import register
from manifold_dl.updates.ksvd import KSVD
from manifold_dl.updates.mod import MOD
from manifold_dl.updates.protocol import DictionaryUpdate, UpdateRun, begin
from manifold_dl.updates.ridge import Sawtooth, TwoStep
from manifold_dl.updates.search import AtomSearch
from manifold_dl.updates.simco import SimCO, default_optimizer

__all__ = [
    "KSVD",
    "MOD",
    "AtomSearch",
    "DictionaryUpdate",
    "SimCO",
    "UpdateRun",
    "begin",
    "default_optimizer",
]

register("updates", KSVD, MOD, AtomSearch, SimCO)
register("ridges", Sawtooth, TwoStep)
