"""Settings that measured best, by purpose: keyword arguments for `learn_dictionary`.

A preset is a dictionary: look at it, change an entry, pass it on.
"""

from manifold_dl.annealing import Sawtooth
from manifold_dl.coders import AnnealedLasso
from manifold_dl.replacement import ReplaceAtoms
from manifold_dl.updates import SimCO


def recover(sparsity):
    """To find the dictionary that signals were made of, from as few signals as possible.

    Four rounds of ℓ₁ codes and ridge, both annealed, with atoms replaced that come close to each other;
    OMP and no ridge for the last iterations; the better of two starts. `benchmarks/recovery.py` compares
    it with the others on the paper's synthetic signals.

    Parameters
    ----------
    sparsity : int
        The number of atoms in a signal.

    Examples
    --------
    >>> from manifold_dl import learn_dictionary, metrics
    >>> from manifold_dl.datasets import synthetic
    >>> D, X, Y = synthetic(8, 12, 300, sparsity=2, rng=0)
    >>> result = learn_dictionary(Y, 12, **recover(sparsity=2), rng=1)
    >>> metrics.recovery(result.dictionary, D)
    1.0
    """
    return {
        "coder": AnnealedLasso(sparsity=sparsity, alpha=Sawtooth(0.3, 0.1, period=50, until=190)),
        "update": SimCO(mu=Sawtooth(0.3, 3e-4, period=50, until=190)),
        "replace": ReplaceAtoms(coherence=0.8),
        "max_iter": 200,
        "tol": 0.0,
        "restarts": 2,
    }
