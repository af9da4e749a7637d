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
                return ((signals, indptr, indices, found[0]), pair[0].entries), found[1]

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
        self._followed = None

    def __call__(self, t):
        return self.objective.constant + self._at(float(t), self._with_slope).value

    def derivative(self, t):
        """φ′(t). Once one has been asked for, φ brings it along: then it is free."""
        self._with_slope = True
        return self._at(float(t), True).slope

    def move(self, t):
        """The atoms at t and their velocities, in rows."""
        return reference.positions(self.way, t)

    def arrive(self, t, point):
        """Let the objective know that `point` is the one at t: value and codes there need no pass over Y."""
        probe = self._at(float(t), self._with_slope)
        if probe.value > TRUSTED * probe.size and abs(self.base - probe.value) > DOUBTFUL * probe.size:
            self.objective.arrive(point, probe.value, partial(self.codes, float(t)))

    def walk(self, whole, with_slopes, f0, df0, t, max_probes, *settings, unit=1.0):
        """A whole search by one call of compiled code, one of `line_search/whole.py`; φ is in units of `unit`.

        Returns every t asked for, the values and slopes there, and which is the lowest; or None where that
        cannot be, and the search has to come for every probe by itself.
        """
        objective = self.objective
        if len(self.products) != 1 or not objective.walks:  # blocks are for threads, and those for Python
            return None
        codes = None
        if with_slopes and objective.believes_searches:
            codes = np.empty(len(objective.indices), objective.dtype)
        (_, indptr, _, products), _ = self.products[0]
        probes = np.empty((5, max_probes + 1))
        probes[:3, 0] = 0.0, f0, df0
        path = kernels.path(indptr, products, objective.mu, self.way, codes)
        n, lowest = whole(path, (objective.constant, self.base, unit), probes, t, *settings)
        objective.counts.probe += abs(n)
        if n < 0:  # a signal without full rank, which is for the reference kernel: more will follow
            objective.walks = False
            return None
        ts, values, slopes, moved, gains = probes[:, : n + 1].tolist()
        if lowest:
            parts = self.base, moved[lowest], gains[lowest]
            slope = slopes[lowest] * unit if with_slopes else None
            self._with_slope = with_slopes
            self._probes[ts[lowest]] = Probe(parts[0] + parts[1] + parts[2], slope, sum(map(abs, parts)))
        if codes is not None:
            self._followed = Followed(ts[n], codes, 0)
        return ts, values, slopes, lowest

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
            size = abs(self.base) + abs(moved.value) + abs(gain)
            probe = self._probes[t] = Probe(self.base + moved.value + gain, slope, size)
        return probe

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
        if not problem.penalties:
            self.walk = partial(phi.walk, unit=problem.unit)

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
