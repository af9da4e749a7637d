"""The objective along a geodesic, as a function of one variable: what a line search evaluates.

Write x₀ for the codes at the start and P(t) = D − D(t). Keeping x₀, the objective is a quadratic in P whose
coefficients, the gradient and X₀X₀ᵀ, were computed at the start:

    f(0) + ⟨P, P X₀X₀ᵀ⟩ − ⟨∇f, P⟩.

Letting the codes follow lowers it by gᵀM(t)⁻¹g, summed over the signals, which costs O(S³) for each and does
not depend on m. P is computed without cancellation, so φ keeps its digits where the fit is nearly exact and
‖y‖² − bᵀx would have lost them all. `Objective.along` makes a `GeodesicRestriction`; a problem with
regularizers, or in other units, wraps it in a `ProblemRestriction`. The line searches in `line_search/`
evaluate either.
"""

from typing import NamedTuple, Protocol

import numpy as np

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.kernels import reduced
from manifold_dl.kernels.memory import aligned_copy
from manifold_dl.kernels.reduced import Geodesic, GeodesicPoint, Refit
from manifold_dl.kernels.reduced.reference import Positions
from manifold_dl.problem.counts import Counts
from manifold_dl.problem.evaluation import Evaluation, EvaluationCache, EvaluationPolicy
from manifold_dl.problem.inner import GeodesicSums, InnerProblemOnGeodesic
from manifold_dl.problem.regularization import RegularizationTerm

# φ(t) is taken for the objective itself as long as no more than three digits cancel in it, and it differs
# from φ(0) by more than nearly collinear atoms may cost of the others: a few 1e-7 where there is no ridge.
TRUSTED = 1e-3
DOUBTFUL = 1e-6


# How far an atom at the end of a search may be from the great circle: some roundings.
SAME_POINT = 1e-12
NO_GAIN = Refit(0.0, 0.0, 0)


class RestrictableObjective(Protocol):
    """What a restriction uses of its `Objective`."""

    data: BlockMap
    inner: InnerProblemOnGeodesic
    engine: Engine
    dtype: np.dtype
    constant: float
    policy: EvaluationPolicy
    counts: Counts
    cache: EvaluationCache

    def as_point(self, matrix: np.ndarray) -> np.ndarray:
        """An m×k dictionary of the dtype of the signals."""

    def key(self, point: np.ndarray) -> bytes:
        """What a dictionary is found by in the cache."""


class SearchProducts(NamedTuple):
    """What is computed once per search."""

    geodesic: Geodesic
    products: BlockMap | None  # of the signals with the geodesic, for `InnerProblemOnGeodesic.refit`
    energy: np.ndarray | None  # X₀X₀ᵀ, where signals share products
    is_sorted: bool  # whether all supports are
    codes: BlockMap | None  # those of the start, where they stay


class Probe(NamedTuple):
    """φ and φ′ at one t."""

    value: float
    slope: float | None
    size: float  # of what was added up


class GeodesicRestriction:
    """φ(t) = f(D cos θt + U sin θt), where the columns of the direction are θ U with unit U.

    Parameters
    ----------
    objective : Objective
    start : Evaluation
        That of D, with its gradient.
    direction : k×m array
        A tangent vector in every row; it is read when φ is first evaluated.
    """

    def __init__(self, objective: RestrictableObjective, start: Evaluation, direction: np.ndarray) -> None:
        self.objective, self.base = objective, start.value
        self._start: Evaluation | None = start
        self._direction: np.ndarray | None = direction
        self._computed: SearchProducts | None = None
        self._probes: dict[float, Probe] = {}
        self._point: GeodesicPoint | None = None  # the last one, whose memory the next may use
        self._codes: tuple[float, BlockMap] | None = None  # t, and the codes there: those of the last slope
        self._with_slope = False
        self._trusted = objective.policy.trust_line_search and objective.dtype == np.float64

    def __call__(self, t: float) -> float:
        """φ(t)."""
        return self.objective.constant + self._probe(float(t), self._with_slope).value

    def derivative(self, t: float) -> float:
        """φ′(t). After the first call φ computes it too: then it is free."""
        self._with_slope = True
        slope = self._probe(float(t), True).slope
        assert slope is not None
        return slope

    def positions(self, t: float) -> Positions:
        """The atoms at t and their velocities, in rows."""
        return reduced.positions(self._products().geodesic, t)

    def commit(self, t: float, point: np.ndarray) -> None:
        """End a search at `point`, the one at t: add what is known of it to the cache of the objective.

        Where the policy does not trust line searches, or where too many digits cancelled in φ(t), nothing is
        added, and the objective is evaluated at its next use.
        """
        if not self._trusted:
            return
        probe = self._probe(float(t), self._with_slope)
        falls_visibly = abs(self.base - probe.value) > DOUBTFUL * probe.size
        is_accurate = falls_visibly and probe.value > TRUSTED * probe.size
        point = self.objective.as_point(point)
        # A manifold may have an exponential map of its own, which ends elsewhere than on the great circles.
        atoms_at_t = reduced.atoms_at(self._products().geodesic, t)
        if is_accurate and np.abs(atoms_at_t - point.T).max() <= SAME_POINT:
            key, atoms = self.objective.key(point), aligned_copy(point.T)
            self.objective.cache.add(Evaluation(key, atoms, probe.value, self.codes(float(t))))

    def codes(self, t: float) -> BlockMap:
        """The optimal codes at t, block by block; computed when they are needed."""
        if self._codes is not None and self._codes[0] == t:
            return self._codes[1]
        known, objective = self._products(), self.objective
        # With memory of its own: these codes may be computed after the next probe.
        point = reduced.geodesic_point(known.geodesic, known.energy, t, True, known.is_sorted, None)
        refit = objective.inner.refit(objective.data, known.products, point, True, True)
        if refit is None:
            assert known.codes is not None
            return known.codes
        return refit

    def _products(self) -> SearchProducts:
        """The geodesic and the products of the signals with it, computed at the first probe."""
        if self._computed is None:
            start, objective = self._start, self.objective
            assert start is not None
            geodesic, U = self._geodesic(start)
            products, sums = objective.inner.start_geodesic(objective.engine, objective.data, start, U)
            self._begin(start, geodesic, products, sums)
        assert self._computed is not None
        return self._computed

    def _geodesic(self, start: Evaluation) -> tuple[Geodesic, np.ndarray]:
        """The geodesic, and its unit directions in the dtype of the signals."""
        assert start.gradient is not None and self._direction is not None
        inner, known = self.objective.inner, (start.gradient, start.prepared)
        geodesic = reduced.init_geodesic(start.atoms, self._direction, *known, inner.shares_products)
        return geodesic, geodesic.directions.astype(self.objective.dtype, copy=False)

    def _begin(
        self, start: Evaluation, geodesic: Geodesic, products: BlockMap | None, sums: GeodesicSums
    ) -> None:
        # The products hold the codes of the start, too: where nothing comes back to it, these are released.
        codes = start.codes if products is None else None
        self._computed = SearchProducts(geodesic, products, sums.energy, sums.n_unsorted == 0, codes)
        self._start = self._direction = None  # their memory is not needed any more
        if products is not None and not self.objective.policy.keep_factors:
            self.objective.cache.release_before(start.key)

    def _joined_first_refit(self, t: float, with_slope: bool, keep_codes: bool) -> Refit | None:
        """The products and the first probe in one round, for engines whose rounds take milliseconds.

        What `refit` reads of a point does not depend on X₀X₀ᵀ, which this round adds up, nor on whether the
        supports are sorted.
        """
        start, objective = self._start, self.objective
        if start is None or not objective.engine.is_remote:
            return None
        geodesic, U = self._geodesic(start)
        products = objective.inner.products(objective.data, start, U)
        if products is None:
            return None
        k = len(start.atoms)
        nothing = np.zeros((k, k)) if objective.inner.shares_products else None
        point = reduced.geodesic_point(geodesic, nothing, t, with_slope, False, None)
        refit = objective.inner.refit(objective.data, products, point, with_slope, keep_codes)
        assert refit is not None
        sums, found = objective.engine.total(products, refit)
        self._begin(start, geodesic, products, GeodesicSums(nothing, 0) if sums is None else sums)
        if keep_codes:
            self._codes = t, refit
        return found

    def _probe(self, t: float, with_slope: bool) -> Probe:
        probe = self._probes.get(t)
        if probe is None or (with_slope and probe.slope is None):
            self.objective.counts.probe += 1
            probe = self._probes[t] = self._evaluate(t, with_slope)
        return probe

    def _evaluate(self, t: float, with_slope: bool) -> Probe:
        keep_codes = with_slope and self._trusted  # t may be where the search ends
        found = None if self._computed else self._joined_first_refit(t, with_slope, keep_codes)
        known = self._computed or self._products()
        point = self._at(known, t, with_slope)
        if found is None:
            if keep_codes:
                self._codes = None  # release those of the last slope before there are others
            objective = self.objective
            refit = objective.inner.refit(objective.data, known.products, point, with_slope, keep_codes)
            found = NO_GAIN if refit is None else objective.engine.total(refit)[0] or NO_GAIN
            if keep_codes and refit is not None:
                self._codes = t, refit
        value = self.base + point.value + found.gain
        size = abs(self.base) + abs(point.value) + abs(found.gain)
        return Probe(value, point.slope + found.slope if with_slope else None, size)

    def _at(self, known: SearchProducts, t: float, with_slope: bool) -> GeodesicPoint:
        memory = None if self._point is None else self._point.arrays
        self._point = reduced.geodesic_point(
            known.geodesic, known.energy, t, with_slope, known.is_sorted, memory
        )
        return self._point


class SmoothRestriction(Protocol):
    """φ and φ′ along great circles, however they are computed."""

    def __call__(self, t: float) -> float:
        """φ(t)."""

    def derivative(self, t: float) -> float:
        """φ′(t)."""

    def commit(self, t: float, point: np.ndarray) -> None:
        """End a search at `point`, the one at t."""


class DataRestriction(SmoothRestriction, Protocol):
    """φ of the data alone, with the atoms at t."""

    def positions(self, t: float) -> Positions:
        """The atoms at t and their velocities, in rows."""


class ProblemRestriction:
    """φ of the data plus the regularizers along the same great circles, in the problem's unit."""

    def __init__(self, phi: DataRestriction, regularization: RegularizationTerm | None, unit: float) -> None:
        self.phi, self.regularization, self.unit = phi, regularization, unit

    def commit(self, t: float, point: np.ndarray) -> None:
        """End a search at `point`, the one at t."""
        self.phi.commit(t, point)

    def __call__(self, t: float) -> float:
        """φ(t)."""
        value = self.phi(t)
        if self.regularization is not None:
            value += self.regularization.value(self.phi.positions(t).atoms.T)
        return value / self.unit

    def derivative(self, t: float) -> float:
        """φ′(t)."""
        slope = self.phi.derivative(t)
        if self.regularization is not None:
            atoms, velocity = self.phi.positions(t)
            slope += float(np.vdot(self.regularization.gradient(atoms.T).T, velocity))
        return slope / self.unit
