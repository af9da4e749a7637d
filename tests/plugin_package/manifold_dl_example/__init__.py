"""One component of every kind, each as small as it can be."""

from dataclasses import dataclass

import autograd.numpy as anp
import numpy as np
from pymanopt.manifolds import Euclidean
from pymanopt.optimizers import SteepestDescent
from scipy.sparse import csc_array


@dataclass(frozen=True)
class Nearest:
    """Code every signal by the one atom that is nearest to its line."""

    optimal_on_support = True

    def encode(self, signals, dictionary):
        correlations = dictionary.T @ signals / np.sum(dictionary**2, axis=0)[:, None]
        fits = np.abs(dictionary.T @ signals) / np.linalg.norm(dictionary, axis=0)[:, None]
        nearest = np.arange(len(fits))[:, None] == np.argmax(fits, axis=0)
        return csc_array(np.where(nearest, correlations, 0).astype(signals.dtype))


@dataclass(frozen=True)
class Resting:
    """An update that leaves everything as it is."""

    def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
        return dictionary.copy(), codes.copy()


def plane(m, k):
    return Euclidean(m, k)


class Patient(SteepestDescent):
    """Steepest descent that takes its time."""


@dataclass(frozen=True)
class Peaks:
    """A penalty without derivatives: autograd supplies them."""

    weight: float = 1.0

    def value(self, dictionary):
        return self.weight * anp.sum(dictionary**4)


@dataclass(frozen=True)
class Halving:
    """Halve the step until the cost falls."""

    def search(self, objective, manifold, x, d, f0, df0):
        t = 1 / max(float(np.linalg.norm(d)), 1e-300)
        for _ in range(60):
            point = manifold.retraction(x, t * d)
            if objective(point) < f0:
                return t * float(manifold.norm(x, d)), point
            t /= 2
        return 0.0, x


@dataclass(frozen=True)
class Halves:
    """The first half of the atoms, then the second."""

    def subsets(self, n_atoms, rng):
        yield from np.array_split(np.arange(n_atoms), 2)
