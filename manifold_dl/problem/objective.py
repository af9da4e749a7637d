"""The reduced objective: the dictionary alone is the variable, the codes follow.

    f(D) = Σ_j min_x ‖y_j − D_{Ω_j} x‖² + μ‖x‖²          (5) and (6) of the paper

with its gradient, its exact Hessian product and its restriction to a geodesic. This is mathematics only: how
codes follow is `inner.py`, what runs the computation is an engine, what is remembered is `evaluation.py`.
`dictionary_problem.py` makes a Pymanopt problem of it.
"""

from typing import Any

import numpy as np

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.kernels.digest import digest
from manifold_dl.kernels.memory import aligned_copy
from manifold_dl.problem.counts import new_counts
from manifold_dl.problem.evaluation import Evaluation, EvaluationCache, EvaluationPolicy
from manifold_dl.problem.geodesic import GeodesicRestriction
from manifold_dl.problem.great_circles import EvaluatedRestriction
from manifold_dl.problem.inner import InnerProblem, Sums


class Objective:
    """f over m×k dictionaries. A signal with an empty support adds ‖y‖² to it, and nothing to its gradient.

    Parameters
    ----------
    data : BlockMap
        Its states are blocks of signals with their supports (`kernels.reduced.Block`).
    shape : (m, k)
        The shape of a dictionary.
    dtype : dtype
        That of the signals.
    inner : InnerProblem
        How the codes follow the dictionary.
    engine : Engine
        What runs the functions of a block.
    constant : float
        What the signals left out contribute.
    policy : EvaluationPolicy
        What is kept and what is trusted.
    """

    def __init__(
        self,
        data: BlockMap,
        shape: tuple[int, int],
        dtype: Any,
        inner: InnerProblem,
        *,
        engine: Engine,
        constant: float = 0.0,
        policy: EvaluationPolicy = EvaluationPolicy(),  # noqa: B008 - frozen
    ) -> None:
        self.data, self.shape, self.dtype = data, shape, np.dtype(dtype)
        self.inner, self.engine = inner, engine
        self.constant, self.policy = float(constant), policy
        self.counts = new_counts()
        self.cache = EvaluationCache(2 if policy.keep_factors else 1)

    def value(self, point: np.ndarray) -> float:
        """f at an m×k dictionary."""
        return self.constant + self.evaluate(point).value

    def gradient(self, point: np.ndarray) -> np.ndarray:
        """The Euclidean gradient, m×k: −2 r xᵀ summed over the signals (envelope theorem)."""
        return self.differentiate(point).gradient.T  # type: ignore[union-attr]  # differentiate fills it

    def differentiate(self, point: np.ndarray) -> Evaluation:
        """The evaluation of a dictionary, with its gradient, which is counted."""
        evaluation = self.evaluate(point, with_gradient=True)
        if self.cache.is_first_gradient(evaluation.key):
            self.counts.gradient += 1
        return evaluation

    def hessian(self, point: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """The Euclidean Hessian applied to an m×k direction."""
        self.counts.hessian += 1
        at = self.evaluate(point, with_gradient=True, with_factors=self.inner.follows)
        E = aligned_copy(self.as_point(direction).T)
        assert at.fit is not None  # there is a gradient
        product = self.inner.hessian_product(self.engine, self.data, at.fit, at.atoms, E)
        return np.zeros(self.shape, self.dtype) if product is None else product.T

    def codes(self, point: np.ndarray) -> np.ndarray:
        """The optimal codes at the support's entries, in its order."""
        states = self.code_blocks(point)
        return np.concatenate(states) if states else np.zeros(0, self.dtype)

    def code_blocks(self, point: np.ndarray) -> list[Any]:
        """The optimal codes, block by block, as the inner problem holds them."""
        return self.engine.states(self.evaluate(point).codes)

    def energies(self, point: np.ndarray) -> np.ndarray:
        """‖X_i‖² of every atom: half the diagonal blocks of the Gauss-Newton Hessian."""
        energies = self.evaluate(point, with_gradient=True).energies
        assert energies is not None  # it comes with the gradient
        return energies

    def used_signals(self) -> np.ndarray:
        """The signals that use any atom, in rows."""
        blocks = self.engine.states(self.data)
        return np.concatenate([block.signals[np.diff(block.indptr) > 0] for block in blocks])

    def along(self, point: np.ndarray, direction: np.ndarray) -> GeodesicRestriction | EvaluatedRestriction:
        """φ(t) = f along the great circles that leave `point` in `direction`, with φ′.

        Both are read when φ is evaluated.
        """
        at = self.evaluate(point, with_gradient=True)
        if at.has_factors and self.counts.hessian == 0:  # a search needs none, and they are large
            at = self._without_factors(at)
        rows = np.ascontiguousarray(self.as_point(direction).T)
        # Codes of nearly collinear atoms are huge, and their squares would cancel in the closed form of φ.
        if not self.inner.has_closed_form or at.n_rank_deficient:
            # Its own atoms, not those of the evaluation: the first probe releases them with their gradient.
            return EvaluatedRestriction(self, np.ascontiguousarray(self.as_point(point).T), rows)
        return GeodesicRestriction(self, at, rows)  # type: ignore[arg-type]  # the inner problem says so

    def evaluate(
        self,
        point: np.ndarray,
        with_gradient: bool = False,
        with_factors: bool = False,
        is_probe: bool = False,
    ) -> Evaluation:
        """One pass over the signals: codes, value and gradient; from the cache if it is one of the last.

        It counts as a value, or with `is_probe` as a probe of a line search, whose array is then kept.
        """
        if type(point) is not np.ndarray or point.shape != self.shape or point.dtype != self.dtype:
            point = self.as_point(point)
        key = self.key(point)
        found = self.cache.find(key)
        if found is not None:
            lacks_gradient = with_gradient and found.gradient is None
            if not lacks_gradient and (found.has_factors or not with_factors):
                return found
        self.cache.release_before(key)
        found = None  # its memory, too
        # An optimizer that has searched along lines, and used no Hessian product, will not use any.
        only_searches = self.counts.probe > 0 and self.counts.hessian == 0
        kept_by_policy = self.policy.keep_factors and not only_searches
        keep_factors = self.inner.follows and (with_factors or kept_by_policy)
        if is_probe:
            self.counts.probe += 1
        else:
            self.counts.value += 1
        atoms = point.T if is_probe else aligned_copy(point.T)
        return self.cache.add(self._pass_over_signals(key, atoms, keep_factors))

    def key(self, point: np.ndarray) -> bytes:
        """What a dictionary is found by in the cache: its numbers, because a caller may change the array."""
        return digest(np.ascontiguousarray(point.T))

    def _pass_over_signals(self, key: bytes, atoms: np.ndarray, keep_factors: bool) -> Evaluation:
        prepared = self.inner.prepare(atoms)
        fit = self.inner.fit(self.data, atoms, prepared, keep_factors)
        (sums,) = self.engine.total(fit)
        if sums is None:  # there are no signals
            sums = Sums(0.0, np.zeros_like(atoms), np.zeros(len(atoms)), 0)
        self.counts.factorisation += int(self.inner.follows)
        self.counts.rank_deficient = max(self.counts.rank_deficient, sums.n_rank_deficient)
        codes = self.inner.codes(fit)
        known = (sums.gradient, sums.energies, prepared, fit, keep_factors, sums.n_rank_deficient)
        return Evaluation(key, atoms, sums.value, codes, *known)

    def _without_factors(self, evaluation: Evaluation) -> Evaluation:
        """The evaluation without its factorisations, in the cache too."""
        assert evaluation.fit is not None
        fit = self.inner.without_factors(evaluation.fit)
        self.engine.states(fit)
        self.cache.release_before(evaluation.key)
        codes = self.inner.codes(fit)
        return self.cache.add(evaluation._replace(fit=fit, codes=codes, has_factors=False))

    def as_point(self, matrix: np.ndarray) -> np.ndarray:
        """An m×k dictionary (or direction) of the dtype of the signals, checked."""
        matrix = np.asarray(matrix)
        if matrix.shape != self.shape:  # the kernels do not check, and would read beyond its end
            raise ValueError(f"the atoms form a matrix of shape {self.shape}, but {matrix.shape} was given.")
        return matrix if matrix.dtype == self.dtype else matrix.astype(self.dtype)
