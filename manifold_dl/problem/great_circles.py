"""The objective along great circles where codes have no closed form: φ(t) is f at the point itself.

Codes that follow by a penalty change their supports on the way, so every probe of a line search solves for
them. One pass gives value and gradient together, and the end of a search is one of its probes: its evaluation
is put back into the cache, and the optimizer finds cost, gradient and codes there. `Objective.along` makes an
`EvaluatedRestriction`; `geodesic.py` is its counterpart for codes on a fixed support.
"""

from typing import Protocol

import numpy as np

from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced.reference import Positions
from manifold_dl.problem.evaluation import Evaluation, EvaluationCache


class EvaluatedObjective(Protocol):
    """What a restriction uses of its `Objective`."""

    constant: float
    cache: EvaluationCache

    def evaluate(
        self,
        point: np.ndarray,
        with_gradient: bool = False,
        with_factors: bool = False,
        is_probe: bool = False,
    ) -> Evaluation:
        """What is known at a dictionary."""

    def key(self, point: np.ndarray) -> bytes:
        """What a dictionary is found by in the cache."""


class EvaluatedRestriction:
    """φ(t) = f(D cos θt + U sin θt), where the columns of the direction are θ U with unit U.

    Parameters
    ----------
    objective : Objective
    atoms : k×m array
        D, in rows.
    direction : k×m array
        A tangent vector in every row.
    """

    def __init__(self, objective: EvaluatedObjective, atoms: np.ndarray, direction: np.ndarray) -> None:
        self.objective, self._atoms, self._direction = objective, atoms, direction
        self._lowest: Evaluation | None = None  # of all probes: where a search usually ends

    def __call__(self, t: float) -> float:
        """φ(t)."""
        return self.objective.constant + self._evaluate(t).value

    def derivative(self, t: float) -> float:
        """φ′(t) = ⟨∇f(D(t)), D′(t)⟩. It costs nothing after φ(t)."""
        gradient = self._evaluate(t).gradient
        assert gradient is not None  # a pass computes both
        return float(np.vdot(gradient, self.positions(t).velocity))

    def positions(self, t: float) -> Positions:
        """The atoms at t and their velocities, in rows."""
        D, V = self._atoms, self._direction
        atoms = np.empty_like(D)
        reduced.sphere_exp(D, float(t) * V, atoms)  # as `Spheres.exp` does: to the last bit
        angles = np.linalg.norm(V, axis=1, keepdims=True)
        velocity = V * np.cos(t * angles) - D * (angles * np.sin(t * angles))
        return Positions(atoms, velocity)

    def commit(self, t: float, point: np.ndarray) -> None:
        """End a search at `point`: what is known of it goes back to the cache of the objective."""
        found = self._lowest
        if found is not None and found.key == self.objective.key(np.asarray(point)):
            self.objective.cache.release_before(found.key)
            self.objective.cache.add(found)

    def _evaluate(self, t: float) -> Evaluation:
        found = self.objective.evaluate(self.positions(t).atoms.T, with_gradient=True, is_probe=True)
        if self._lowest is None or found.value < self._lowest.value:
            self._lowest = found
        return found
