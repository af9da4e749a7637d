"""The objective along a geodesic, as a function of one variable: what a line search probes.

`Objective.restrict` makes a `Restriction`; a problem with regularizers, or in other units, wraps it. Called
for φ(t), asked for φ′ by `derivative`, told by `arrive` where a search has ended; `line_search/` does so.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from manifold_dl import kernels
from manifold_dl.blocks import Total, gather, share_out
from manifold_dl.kernels import reference

# φ(t) stands for the objective itself as long as no more than three digits cancel in it.
TRUSTED = 1e-3


class Probe(NamedTuple):
    """φ and φ′ at one t."""

    value: float
    slope: float | None
    size: float  # of what was added up: the value is known to a rounding of that


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
        self.base = state.value
        atoms, units, angles, grams, rates = kernels.depart(
            state.atoms, direction, state.gradient, state.gram
        )
        self.products = []
        if objective.fixed_codes is None:
            U = units.astype(objective.dtype, copy=False)
            energy = Total()

            def products_with(pair):
                (signals, indptr, indices), packs, codes = pair[0].data, pair[0].packs, pair[1].codes
                found = kernels.along(
                    signals, indptr, indices, state.atoms, state.gram, objective.mu, codes, U, packs
                )
                return (signals, indptr, indices, found[0]), found[1]

            def take(found):
                self.products.append(found[0])
                energy.add(found[1])

            pairs = list(zip(objective.blocks, state.fits, strict=True))
            share_out(products_with, pairs, take, objective.threads)
            energy = energy.like(grams[0])
        else:
            energy = objective.fixed_energy.astype(float)
        self.way = kernels.Way(atoms, units, angles, grams, energy, rates)
        self._room = None
        self._with_slope = False
        self._probes = {}

    def __call__(self, t):
        return self.objective.constant + self._at(float(t), self._with_slope).value

    def derivative(self, t):
        """φ′(t); free for the t that was probed last, once a derivative has been asked for."""
        self._with_slope = True
        return self._at(float(t), True).slope

    def move(self, t):
        """The atoms at t and their velocities, in rows."""
        moved = reference.move(self.way, t)
        return moved.atoms, moved.velocity

    def arrive(self, t, point):
        """Let the objective know that `point` is the one at t: value and codes there need no pass over Y."""
        probe = self._at(float(t), self._with_slope)
        if probe.value > TRUSTED * probe.size:
            self.objective.arrive(point, probe.value, partial(self.codes, float(t)))

    def codes(self, t):
        """The optimal codes at t, in the order of the support."""
        codes = np.empty(len(self.objective.indices), self.objective.dtype)
        moved = self._moved(t, True)
        tasks = [
            (*data, codes[block.entries])
            for data, block in zip(self.products, self.objective.blocks, strict=True)
        ]
        mu = self.objective.mu
        one = lambda task: kernels.probe(*task[:4], mu, moved, True, task[4])
        for *_, n_deficient in gather(one, tasks, self.objective.threads):
            self.objective.counts.deficient += n_deficient
        return codes

    def _at(self, t, with_slope):
        probe = self._probes.get(t)
        if probe is None or (with_slope and probe.slope is None):
            self.objective.counts.probe += 1
            moved = self._moved(t, with_slope)
            gain, gain_slope = self._gain(moved, with_slope)
            slope = moved.slope + gain_slope if with_slope else None
            size = abs(self.base) + abs(moved.value) + abs(gain)
            probe = self._probes[t] = Probe(self.base + moved.value + gain, slope, size)
        return probe

    def _moved(self, t, with_slope):
        moved = kernels.move(self.way, t, with_slope, self._room)
        self._room = moved.room
        return moved

    def _gain(self, moved, with_slope):
        """What it brings that the codes follow, and its slope."""
        mu, products = self.objective.mu, self.products
        gain = slope = 0.0
        one = lambda data: kernels.probe(*data, mu, moved, with_slope)
        for part in gather(one, products, self.objective.threads):
            gain, slope = gain + part[0], slope + part[1]
        return gain, slope


class ProblemRestriction:
    """φ of the data plus the regularizers along the same great circles, in the problem's unit."""

    def __init__(self, problem, phi):
        self.problem, self.phi = problem, phi
        self.arrive = phi.arrive

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
