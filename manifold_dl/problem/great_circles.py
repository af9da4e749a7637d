"""The objective along great circles where codes have no closed form: φ(t) is f at the point itself.

Codes that follow by a penalty change their supports on the way, so every probe of a line search solves for
them. One pass gives value and gradient together, and the end of a search is one of its probes: its evaluation
is put back into the cache, and the optimizer finds cost, gradient and codes there. `Objective.along` makes an
`EvaluatedRestriction`; `geodesic.py` is its counterpart for codes on a fixed support.
"""

from functools import cached_property
from typing import Protocol

import numpy as np

from manifold_dl.kernels import reduced
from manifold_dl.kernels.memory import aligned
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
        self._last: tuple[float, Evaluation] | None = None  # its t: φ′ is evaluated after φ

    def __call__(self, t: float) -> float:
        """φ(t)."""
        return self.objective.constant + self._evaluate(t).value

    def derivative(self, t: float) -> float:
        """φ′(t) = ⟨∇f(D(t)), D′(t)⟩. It costs nothing after φ(t)."""
        gradient = self._evaluate(t).gradient
        assert gradient is not None  # a pass computes both
        D, V = self._atoms, self._direction
        cosine, sine = np.cos(t * self._angles), np.sin(t * self._angles)
        along_directions, along_atoms = np.vecdot(gradient, V), np.vecdot(gradient, D)
        return float(cosine @ along_directions - (self._angles * sine) @ along_atoms)

    def positions(self, t: float) -> Positions:
        """The atoms at t and their velocities, in rows."""
        D, V, angles = self._atoms, self._direction, self._angles[:, None]
        velocity = V * np.cos(t * angles) - D * (angles * np.sin(t * angles))
        return Positions(self._atoms_at(t), velocity)

    def commit(self, t: float, point: np.ndarray) -> None:
        """End a search at `point`: the evaluation there is added to the cache of the objective."""
        found = self._lowest
        if found is not None and found.key == self.objective.key(np.asarray(point)):
            self.objective.cache.release_before(found.key)
            self.objective.cache.add(found)

    @cached_property
    def _angles(self) -> np.ndarray:
        """θ."""
        return np.linalg.norm(self._direction, axis=1)

    def _atoms_at(self, t: float) -> np.ndarray:
        atoms = aligned(self._atoms.shape, self._atoms.dtype)
        # As `Spheres.exp` does: to the last bit.
        reduced.sphere_exp(self._atoms, float(t) * self._direction, atoms)
        return atoms

    def _evaluate(self, t: float) -> Evaluation:
        if self._last is not None and self._last[0] == t:
            return self._last[1]
        self._last = None  # release it before there is another
        found = self.objective.evaluate(self._atoms_at(t).T, with_gradient=True, is_probe=True)
        self._last = t, found
        if self._lowest is None or found.value < self._lowest.value:
            self._lowest = found
        return found
