"""
A manifold of your own
======================

Where atoms may move: here in *quadrature pairs*. Atoms 0 and 1, 2 and 3, and so on are orthogonal to each
other and of unit length, like the sine and the cosine of one frequency: a pair can represent its frequency
in any phase, which is how cells in the visual cortex are believed to work.
"""
# ruff: noqa: E402 - every part of the page brings the names that it needs

# %%
# The whole of it. A dictionary is cut into k/2 blocks of two columns, and each block lies on a Stiefel
# manifold. A submanifold of Pymanopt needs its projection, a retraction and, for Hessians, the Weingarten
# map; the rest is inherited or one line. The polar factor is the closest pair of orthonormal vectors; it
# retracts to second order.

# begin: component
import numpy as np
from pymanopt.manifolds.manifold import RiemannianSubmanifold


class QuadraturePairs(RiemannianSubmanifold):
    couples_atoms = True  # one atom of a pair cannot move without the other

    def __init__(self, m, k):
        if k % 2:
            raise ValueError(f"k={k}: pairs need an even number of atoms.")
        self.shape = m, k
        super().__init__(f"QuadraturePairs({m}, {k})", k // 2 * (2 * m - 3))

    def inner_product(self, point, tangent_vector_a, tangent_vector_b):
        return float(np.vdot(tangent_vector_a, tangent_vector_b))

    def norm(self, point, tangent_vector):
        return float(np.linalg.norm(tangent_vector))

    def projection(self, point, vector):
        X, V = pairs(point), pairs(vector)
        return atoms(V - X @ symmetric(X.mT @ V))

    to_tangent_space = projection

    def weingarten(self, point, tangent_vector, normal_vector):
        X, V, N = pairs(point), pairs(tangent_vector), pairs(normal_vector)
        return -self.projection(point, atoms(V @ symmetric(X.mT @ N)))

    def closest(self, point):
        U, _, Vt = np.linalg.svd(pairs(point), full_matrices=False)
        return atoms(U @ Vt)

    def retraction(self, point, tangent_vector):
        return self.closest(point + tangent_vector)

    def transport(self, point_a, point_b, tangent_vector_a):
        return self.projection(point_b, tangent_vector_a)

    def random_point(self, rng=None):
        return self.closest(np.random.default_rng(rng).standard_normal(self.shape))

    def random_tangent_vector(self, point, rng=None):
        vector = self.projection(point, np.random.default_rng(rng).standard_normal(self.shape))
        return vector / self.norm(point, vector)

    def zero_vector(self, point):
        return np.zeros_like(point)


def pairs(dictionary):
    return np.stack([dictionary[:, ::2].T, dictionary[:, 1::2].T], axis=-1)  # k/2 matrices of m×2


def atoms(pairs):
    return np.moveaxis(pairs, 1, 0).reshape(pairs.shape[1], -1)


def symmetric(matrices):
    return (matrices + matrices.mT) / 2


# end: component

# %%
# Projection, metric, order of the retraction, and whether Euclidean derivatives turn into Riemannian ones.
# What the manifold leaves out, such as geodesics and distances, is listed as skipped.

# begin: check
from manifold_dl.diagnostics import check_hessian, check_manifold

print(check_manifold(QuadraturePairs(6, 4)))
# end: check

# %%
# The class is a factory (m, k) → manifold, so it is passed as ``manifold=``. The update begins
# at the `closest` point to any dictionary, and trust regions use the Hessian, which is right, too.

# begin: use
from pymanopt.optimizers import TrustRegions

import manifold_dl as mdl

D, X, _ = mdl.datasets.synthetic(16, 24, 300, sparsity=3, rng=0)
Y = QuadraturePairs(16, 24).random_point(1) @ X

problem = mdl.update_problem(Y, X, manifold=QuadraturePairs, mu=0.01)
print(check_hessian(problem))
D_new, X_new = mdl.SimCO(TrustRegions(), manifold=QuadraturePairs)(Y, D, X)
overlaps = np.vecdot(D_new[:, ::2], D_new[:, 1::2], axis=0)
print(f"largest inner product within a pair: {np.abs(overlaps).max():.1e}")
# end: use

# %%
# What was shown: pairs stay pairs, and the dictionary is found.

assert np.abs(overlaps).max() < 1e-12
assert np.linalg.norm(Y - D_new @ X_new) < 0.1 * np.linalg.norm(Y)
