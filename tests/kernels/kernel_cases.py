"""Blocks of signals for the tests of the kernels of the reduced objective, compiled and reference."""

import numpy as np
import pytest

from manifold_dl.kernels import reduced as compiled
from manifold_dl.kernels.reduced import Block, reference

M, K = 6, 15  # the dimension and the number of atoms: supports of up to M + 2 atoms

# The supports drawn below have singular values within a factor of ten of each other, so the normal equations
# lose two of the sixteen (or seven) digits.
TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}

both_dtypes = pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
both_ridges = pytest.mark.parametrize("mu", [0.0, 0.1], ids=["mu=0", "mu=0.1"])
both_kernels = pytest.mark.parametrize("kernels", [reference, compiled], ids=["reference", "compiled"])


class Case:
    """Signals with supports of every size from 0 to M + 2, in no order, and a direction to move in."""

    def __init__(self, dtype=np.float64, seed=0, copies=9):
        rng = np.random.default_rng(seed)
        atoms = unit_rows(rng.standard_normal((K, M)))
        sizes = rng.permutation(np.repeat(np.arange(M + 3), copies))
        supports = [well_conditioned_support(rng, atoms, size) for size in sizes]
        self.indptr = np.concatenate([[0], np.cumsum(sizes)])
        self.indices = np.concatenate(supports).astype(np.int32)
        self.signals = rng.standard_normal((len(sizes), M)).astype(dtype)
        self.atoms = atoms.astype(dtype)
        self.codes = rng.standard_normal(len(self.indices)).astype(dtype)
        tangent = rng.standard_normal((K, M))
        tangent -= atoms * np.sum(atoms * tangent, axis=1, keepdims=True)
        tangent[3] = 0  # an atom at rest
        self.direction = tangent.astype(dtype)
        self.angles = np.linalg.norm(tangent, axis=1)
        self.units = tangent / np.where(self.angles > 0, self.angles, 1)[:, None]

    @property
    def gram(self):
        return gram_of(self.atoms)

    def block(self, kernels):
        """The signals with their supports, arranged for these kernels."""
        return make_block(kernels, self.signals, self.indptr, self.indices)

    def fit(self, kernels, mu, atoms=None):
        atoms = self.atoms if atoms is None else atoms
        return kernels.fit_codes(self.block(kernels), atoms, gram_of(atoms), mu)

    def geodesic(self, kernels, mu):
        """The geodesic along `direction`, the products with it that the kernels keep, and X Xᵀ."""
        fit = self.fit(reference, mu)
        return geodesic_of(kernels, self.block(kernels), self.atoms, self.direction, mu, fit)

    def refit(self, kernels, mu, t, with_slope=True, codes=None):
        """What the codes gain at t."""
        geodesic, products, energy = self.geodesic(kernels, mu)
        point = kernels.geodesic_point(geodesic, energy, t)
        return kernels.refit_codes(self.block(kernels), products, mu, point, with_slope, codes)

    def without_large_supports(self):
        """The case with supports of two atoms in place of those of more than M, which lack full rank."""
        for j in np.flatnonzero(np.diff(self.indptr) > M)[::-1]:
            self.indices = np.delete(self.indices, np.s_[self.indptr[j] + 2 : self.indptr[j + 1]])
            self.indptr[j + 1 :] -= self.indptr[j + 1] - self.indptr[j] - 2
        return self


def make_block(kernels, signals, indptr, indices):
    return Block(signals, indptr, indices, kernels.make_batches(indptr, indices))


def geodesic_of(kernels, block, atoms, direction, mu, fit):
    gram = gram_of(atoms)
    geodesic = kernels.init_geodesic(atoms, direction, fit.gradient, gram)
    U = geodesic.directions.astype(atoms.dtype)
    return geodesic, *kernels.precompute_products(block, atoms, gram, mu, fit.solutions.codes, U)


def dependent_atoms(name, eps=0.0):
    """Three atoms, linearly dependent (up to eps) in the way the name says, and forty signals that use them.

    Returns signals, indptr, indices and atoms.
    """
    rng = np.random.default_rng(7)
    atoms = unit_rows(rng.standard_normal((3, M)))
    if name == "duplicate":
        atoms[2] = atoms[0]
    elif name == "antipodal":
        atoms[2] = -atoms[0]
    elif name == "in a plane":
        atoms[2] = 0.6 * atoms[0] + 0.8 * atoms[1]
    elif name == "nearly collinear":
        atoms[2] = atoms[0] + eps * atoms[2]
    signals = rng.standard_normal((40, M))
    return signals, 3 * np.arange(41), np.tile(np.arange(3, dtype=np.int32), 40), unit_rows(atoms)


def gram_of(atoms):
    return atoms.astype(float) @ atoms.T.astype(float)


def unit_rows(array):
    return array / np.linalg.norm(array, axis=1, keepdims=True)


def well_conditioned_support(rng, atoms, size):
    """Sorted random atoms; larger supports than the dimension are rank-deficient whatever one does."""
    while True:
        support = np.sort(rng.choice(len(atoms), size, replace=False))
        if not 0 < size <= M:
            return support
        sigma = np.linalg.svd(atoms[support], compute_uv=False)
        if sigma[-1] > 0.1 * sigma[0]:
            return support


def least_squares(A, y, mu):
    """The minimum-norm solution of min ‖y − Aᵀx‖² + μ‖x‖² by NumPy, A with an atom in every row."""
    s = len(A)
    stacked = np.vstack([A.T, np.sqrt(mu) * np.eye(s)])
    return np.linalg.lstsq(stacked, np.concatenate([y, np.zeros(s)]), rcond=None)[0]


def assert_close(found, expected, dtype):
    """Equal, relative to the largest entry."""
    assert np.shape(found) == np.shape(expected)
    scale = np.abs(expected).max() if np.size(expected) else 0.0
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE[dtype] * scale)
