"""Smooth penalties R(D) on the dictionary, added to the objective of an update.

A regularizer is a function of the dictionary, or any object with a method ``value(dictionary)``; nothing
needs to be inherited. Derivatives are optional: :func:`differentiable` gets the missing ones from autograd.
All of them are plain Euclidean derivatives in the entries of the m×d matrix D; the manifold makes them
Riemannian. In five lines::

    import autograd.numpy as anp

    @mdl.regularizers.regularizer
    def peaks(D):
        return 0.1 * anp.sum(D**4)

    update = mdl.SimCO(regularizers=[2 * peaks + mdl.regularizers.Coherence(0.01)])

Weights are absolute, while the objective they are added to, ‖Y − DX‖², grows with the data: give them as a
fraction of ‖Y‖², to which an update compares them.

The ridge μ on the *codes* is no regularizer in this sense: it changes the inner solve, and so is part of the
objective.
"""

from manifold_dl.components.registry import register
from manifold_dl.regularizers.algebra import Penalty, Scaled, Sum, scaled
from manifold_dl.regularizers.atoms import Smoothness, Sparse, Tether
from manifold_dl.regularizers.barrier import LogBarrierCoherence, OutsideBound
from manifold_dl.regularizers.functions import differentiable, regularizer
from manifold_dl.regularizers.pairs import Coherence, Decorrelation
from manifold_dl.regularizers.protocol import Regularizer

__all__ = [
    "Coherence",
    "Decorrelation",
    "LogBarrierCoherence",
    "OutsideBound",
    "Penalty",
    "Regularizer",
    "Scaled",
    "Smoothness",
    "Sparse",
    "Sum",
    "Tether",
    "differentiable",
    "regularizer",
    "scaled",
]

register("regularizers", Coherence, Decorrelation, LogBarrierCoherence, Smoothness, Sparse, Tether)
register("regularizers", Scaled, needs="a regularizer: 0.5 * regularizer")
register("regularizers", Sum, needs="regularizers: one + another")
