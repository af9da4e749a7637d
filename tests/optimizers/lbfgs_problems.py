"""Problems with a known minimum on several manifolds, and `LBFGS` without output."""

import autograd.numpy as anp
import numpy as np
import pymanopt
from pymanopt.manifolds import Euclidean, Grassmann, Oblique, Product, Sphere, Stiefel

from manifold_dl.optimizers import LBFGS


def autograd_problem(manifold, cost, **kwargs):
    return pymanopt.Problem(manifold, pymanopt.function.autograd(manifold)(cost), **kwargs)


def symmetric(n, seed):
    A = np.random.default_rng(seed).standard_normal((n, n))
    return (A + A.T) / 2


def rayleigh():
    A = symmetric(50, seed=1)
    return Sphere(50), lambda x: x @ A @ x, np.linalg.eigvalsh(A)[0]


def brockett():
    A, weights = symmetric(30, seed=2), np.array([4.0, 3.0, 2.0, 1.0])
    # The largest weight meets the smallest eigenvalue.
    return Stiefel(30, 4), lambda X: anp.sum(X * (A @ X) * weights), np.linalg.eigvalsh(A)[:4] @ weights


def dominant_subspace():
    A = symmetric(20, seed=3)
    return Grassmann(20, 3), lambda X: -anp.sum(X * (A @ X)), -np.linalg.eigvalsh(A)[-3:].sum()


def rosenbrock():
    # The constant makes a relative error meaningful.
    return Euclidean(10), lambda x: 1 + anp.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2), 1.0


def one_rayleigh_quotient_per_column():
    matrices = [symmetric(12, seed) for seed in range(5)]

    def cost(D):
        return sum(D[:, i] @ A @ D[:, i] for i, A in enumerate(matrices))

    return Oblique(12, 5), cost, sum(np.linalg.eigvalsh(A)[0] for A in matrices)


def leading_singular_pair():
    A = np.random.default_rng(4).standard_normal((20, 15))
    return Product([Sphere(20), Sphere(15)]), lambda u, v: -u @ A @ v, -np.linalg.norm(A, 2)


PROBLEMS = [
    rayleigh,
    brockett,
    dominant_subspace,
    rosenbrock,
    one_rayleigh_quotient_per_column,
    leading_singular_pair,
]


def start(manifold):
    """A point away from every saddle: a normal draw, brought to the manifold by its own retraction."""
    rng = np.random.default_rng(0)

    def one(manifold, shape):
        return manifold.retraction(np.zeros(shape), rng.standard_normal(shape))

    if isinstance(manifold, Product):
        return [one(Sphere(20), 20), one(Sphere(15), 15)]
    if isinstance(manifold, Euclidean):
        return np.zeros(10)
    return one(manifold, {Sphere: 50, Stiefel: (30, 4), Grassmann: (20, 3), Oblique: (12, 5)}[type(manifold)])


def silent(**kwargs):
    return LBFGS(**{"verbosity": 0, "log_verbosity": 1, **kwargs})


def dominant_subspace_on_stiefel():
    A = symmetric(20, seed=5)
    A = A @ A
    return A, lambda X: -anp.sum(X * (A @ X))
