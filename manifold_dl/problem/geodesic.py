"""The objective along a geodesic, as a function of one variable: what a line search probes.

`Objective.restrict` makes a `Restriction`; a problem with regularizers, or in other units, wraps it. Called
for φ(t), asked for φ′ by `derivative`, told by `arrive` where a search has ended; `line_search/` does so.
"""

from functools import partial
from typing import NamedTuple

import numpy as np

from manifold_dl.engines.threads import Total, gather, share_out
from manifold_dl.kernels import reduced as kernels
from manifold_dl.kernels.reduced import reference

# φ(t) stands for the objective itself as long as no more than three digits cancel in it, and it differs from
# φ(0) by more than nearly collinear atoms may cost of the others: a few 1e-7 where there is no ridge.
TRUSTED = 1e-3
DOUBTFUL = 1e-6


class Probe(NamedTuple):
    """φ and φ′ at one t."""

    value: float
    slope: float | None
    size: float  # of what was added up


class Followed(NamedTuple):
    """The codes at one t."""

    t: float
    codes: np.ndarray
    n_deficient: int


class Restriction:
    """φ(t) = f(D cos θt + U sin θt), where the columns of the direction are θ U with unit U.

    Write x₀ for the codes at the start and P(t) = D − D(t). Keeping x₀, the objective is a quadratic
    in P whose coefficients, the gradient and X₀X₀ᵀ, were computed at the start:

        f(0) + ⟨P, P X₀X₀ᵀ⟩ − ⟨∇f, P⟩.

    Letting the codes follow lowers it by gᵀM(t)⁻¹g, summed over the signals, which costs O(S³) for each
    and does not see m. P is computed without cancellation, so φ keeps its digits where the fit is
    nearly exact and ‖y‖² − bᵀx would have lost them all.
    """

    way = _room = _followed = None
    _with_slope = False

    def __init__(self, objective, state, direction):
        self.objective, self.state, self.direction = objective, state, direction
        self.base = state.value
        self.products, self._probes = [], {}

    def _set_out(self):
        """What every probe needs."""
        objective, state = self.objective, self.state
        atoms, units, angles, grams, rates = kernels.depart(
            state.atoms, self.direction, state.gradient, state.gram
        )
        if objective.fixed_codes is None:
            U = units.astype(objective.dtype, copy=False)
            energy = Total()

            def products_with(pair):
                (signals, indptr, indices), packs, codes = pair[0].data, pair[0].packs, pair[1]
                found = kernels.along(
                    signals, indptr, indices, state.atoms, state.gram, objective.mu, codes, U, packs
                )
                return ((signals, indptr, indices, found[0]), pair[0].entries), found[1]

            def take(found):
                self.products.append(found[0])
                energy.add(found[1])

            pairs = list(zip(objective.blocks, state.pieces, strict=True))
            share_out(products_with, pairs, take, objective.threads)
            energy = energy.like(grams[0])
        else:
            energy = objective.fixed_energy.astype(float)
        ascending = all(getattr(block.packs, "ascending", False) for block in objective.blocks)
        self.way = kernels.Way(atoms, units, angles, grams, energy, rates, ascending)
        self.state = self.direction = None  # they have served

    def __call__(self, t):
        return self.objective.constant + self._at(float(t), self._with_slope).value

    def derivative(self, t):
        """φ′(t). Once one has been asked for, φ brings it along: then it is free."""
        self._with_slope = True
        return self._at(float(t), True).slope

    def move(self, t):
        """The atoms at t and their velocities, in rows."""
        if self.way is None:
            self._set_out()
        return reference.positions(self.way, t)

    def arrive(self, t, point):
        """Let the objective know that `point` is the one at t: value and codes there need no pass over Y."""
        probe = self._at(float(t), self._with_slope)
        if probe.value > TRUSTED * probe.size and abs(self.base - probe.value) > DOUBTFUL * probe.size:
            self.objective.arrive(point, probe.value, partial(self.codes, float(t)))

    def codes(self, t):
        """The optimal codes at t, in the order of the support. Those of the last slope are there already."""
        if self.objective.fixed_codes is not None:
            return self.objective.fixed_codes
        if self._followed is None or self._followed.t != t:
            self._follow(t, self._moved(t, True))
        followed, self._followed = self._followed, None  # handed out: the next probe may not write to it
        self.objective.counts.deficient += followed.n_deficient
        return followed.codes

    def _at(self, t, with_slope):
        probe = self._probes.get(t)
        if probe is None or (with_slope and probe.slope is None):
            self.objective.counts.probe += 1
            moved = self._moved(t, with_slope)
            if with_slope and self.products and self.objective.believes_searches:  # t may be where it ends
                gain, gain_slope = self._follow(t, moved)
            else:
                gain, gain_slope, _ = self._probe(moved, with_slope)
            slope = moved.slope + gain_slope if with_slope else None
            probe = self._probes[t] = self._sum(moved.value, gain, slope)
        return probe

    def _sum(self, moved, gain, slope=None):
        return Probe(self.base + moved + gain, slope, abs(self.base) + abs(moved) + abs(gain))

    def _follow(self, t, moved):
        """A probe that keeps the codes it finds."""
        followed, self._followed = self._followed, None  # a probe that fails leaves none behind
        if followed is None:
            codes = np.empty(len(self.objective.indices), self.objective.dtype)
        else:
            codes = followed.codes
        gain, slope, n_deficient = self._probe(moved, True, codes)
        self._followed = Followed(t, codes, n_deficient)
        return gain, slope

    def _moved(self, t, with_slope):
        if self.way is None:
            self._set_out()
        moved = kernels.move(self.way, t, with_slope, self._room)
        self._room = moved.room
        return moved

    def _probe(self, moved, with_slope, codes=None):
        """What it brings that the codes follow, its slope, and how many signals are rank-deficient."""
        mu = self.objective.mu
        if codes is None:
            one = lambda part: kernels.probe(*part[0], mu, moved, with_slope)
        else:
            one = lambda part: kernels.probe(*part[0], mu, moved, with_slope, codes[part[1]])
        gain, slope, n_deficient = 0.0, 0.0, 0
        for part in gather(one, self.products, self.objective.threads):
            gain, slope, n_deficient = gain + part[0], slope + part[1], n_deficient + part[2]
        return gain, slope, n_deficient


class ProblemRestriction:
    """φ of the data plus the regularizers along the same great circles, in the problem's unit."""

    def __init__(self, problem, phi):
        self.problem, self.phi = problem, phi
        self.arrive = phi.arrive

    def __call__(self, t):
        value = self.phi(t)
        if self.problem.penalties:
            value += self.problem.penalties.value(self.phi.move(t)[0].T)
        return value / self.problem.unit

    def derivative(self, t):
        slope = self.phi.derivative(t)
        if self.problem.penalties:
            atoms, velocity = self.phi.move(t)
            slope += float(np.vdot(self.problem.penalties.gradient(atoms.T).T, velocity))
        return slope / self.problem.unit
