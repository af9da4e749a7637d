"""The objective along a geodesic, as a function of one variable: what a line search probes.

`Objective.restrict` makes a `Restriction`; a problem with regularizers, or in other units, wraps it. Called
for φ(t), asked for φ′ by `derivative`; `line_search/` does both.
"""

import numpy as np

from manifold_dl import kernels
from manifold_dl.blocks import map_in_order
from manifold_dl.kernels import reference

# OpenBLAS computes a product of at most so many multiplications on the calling thread.
BLAS_STAYS_ALONE = 2**18


class Restriction:
    """φ(t) = f(D cos θt + U sin θt), where the columns of the direction are θ U with unit U.

    Write x₀ for the codes at the start and P(t) = D − D(t). Keeping x₀, the objective is a quadratic
    in P whose coefficients, the gradient and X₀X₀ᵀ, were computed at the start:

        f(0) + ⟨P, P X₀X₀ᵀ⟩ − ⟨∇f, P⟩.

    Letting the codes follow lowers it by gᵀM(t)⁻¹g, summed over the signals, which costs O(S³) for each
    and does not see m. P is computed without cancellation, so φ keeps its digits where the fit is
    nearly exact and ‖y‖² − bᵀx would have lost them all.
    """

    def __init__(self, objective, state, direction):
        self.objective = objective
        atoms, direction = state.atoms.astype(float), direction.astype(float)
        self.angles = np.sqrt(np.einsum("km,km->k", direction, direction))
        scale = np.divide(1.0, self.angles, out=np.zeros_like(self.angles), where=self.angles > 0)
        self.atoms, self.directions = atoms, direction * scale[:, None]
        self.base = objective.constant + state.value
        self.follows = objective.fixed_codes is None
        DD = inner(atoms, atoms) if state.gram is None else state.gram
        DU, UU = inner(atoms, self.directions), inner(self.directions, self.directions)
        self.grams = DD, DU, UU
        if self.follows:
            self.products, energy = [], np.zeros((len(atoms), len(atoms)))
            U = self.directions.astype(objective.dtype, copy=False)

            def products_with(pair):
                block, fit = pair
                return kernels.along(*block.data, state.atoms, state.gram, objective.mu, fit.codes, U)

            pairs = list(zip(objective.blocks, state.fits, strict=True))
            for part in map_in_order(products_with, pairs, objective.threads):
                energy += part.energy
                self.products.append(part._replace(energy=None))
        else:
            energy = objective.fixed_energy.astype(float)
        self._quadratic = energy * DU, energy * UU, np.multiply(energy, DD, out=energy)
        self._linear = tuple(
            np.einsum("km,km->k", state.gradient, rows, dtype=float) for rows in (atoms, self.directions)
        )
        self._with_slope = False
        self._last = (None, None, None)  # t, φ, φ′

    def __call__(self, t):
        return self._at(float(t), self._with_slope)[0]

    def derivative(self, t):
        """φ′(t); free for the t that was probed last, once a derivative has been asked for."""
        self._with_slope = True
        return self._at(float(t), True)[1]

    def move(self, t):
        """The atoms at t and their velocities, in rows."""
        return reference.move(self.atoms, self.directions, self.angles, t, None)

    def _at(self, t, with_slope):
        last_t, value, slope = self._last
        if t == last_t and not (with_slope and slope is None):
            return value, slope
        self.objective.counts.probe += 1
        value, slope = self._keeping_codes(t, with_slope or not self.follows)
        if self.follows:
            gain, gain_slope = self._following(t, with_slope)
            value, slope = value + gain, slope + gain_slope
        self._last = (t, value, slope if with_slope or not self.follows else None)
        return value, slope

    def _keeping_codes(self, t, with_slope=True):
        """Atom by atom P = (1 − cos θt) d − (sin θt) u: quadratic forms in these two vectors of k numbers."""
        angle = self.angles * t
        lag, sine = 2 * np.sin(angle / 2) ** 2, np.sin(angle)
        (B, C, A), (at_atoms, at_directions) = self._quadratic, self._linear
        by_lag, by_sine = A @ lag - B @ sine, C @ sine - lag @ B
        value = self.base + lag @ (by_lag - at_atoms) + sine @ (by_sine + at_directions)
        if not with_slope:  # golden section asks for dozens of values and for no slope
            return float(value), 0.0
        lag_rate, sine_rate = self.angles * sine, self.angles * np.cos(angle)
        slope = lag_rate @ (2 * by_lag - at_atoms) + sine_rate @ (2 * by_sine + at_directions)
        return float(value), float(slope)

    def _following(self, t, with_slope):
        moved = kernels.move(self.atoms, self.directions, self.angles, t, self.grams)
        mu = self.objective.mu

        def one(pair):
            block, products = pair
            return kernels.probe(*block.data, products, mu, moved, with_slope)

        gain = slope = 0.0
        pairs = list(zip(self.objective.blocks, self.products, strict=True))
        for part in map_in_order(one, pairs, self.objective.threads):
            gain, slope = gain + part[0], slope + part[1]
        return gain, slope


class ProblemRestriction:
    """φ of the data plus the regularizers along the same great circles, in the problem's unit."""

    def __init__(self, problem, phi):
        self.problem, self.phi = problem, phi

    def __call__(self, t):
        value = self.phi(t)
        if self.problem.has_penalties:
            value += self.problem.penalty(self.phi.move(t)[0].T)
        return value / self.problem.unit

    def derivative(self, t):
        slope = self.phi.derivative(t)
        if self.problem.has_penalties:
            atoms, velocity = self.phi.move(t)
            slope += float(np.vdot(self.problem.penalty_gradient(atoms.T).T, velocity))
        return slope / self.problem.unit


def inner(atoms, others):
    """Inner products in double precision, whatever the data: there are k² of them, not n.

    A few rows at a time: a larger product would wake the threads of BLAS, which then keep busy for some
    milliseconds on the very processors that our blocks are about to use.
    """
    atoms, others = np.asarray(atoms, dtype=float), np.asarray(others, dtype=float)
    rows = max(1, BLAS_STAYS_ALONE // others.size)
    if rows >= len(atoms):
        return atoms @ others.T
    products = np.empty((len(atoms), len(others)))
    for first in range(0, len(atoms), rows):
        np.matmul(atoms[first : first + rows], others.T, out=products[first : first + rows])
    return products
