"""Nelder-Mead and the particle swarm, which move many points and use no gradient.

`running.py` calls `initial_population`: the start and random neighbours of it, so near to it that one of them
has a lower cost. It gives these methods a `PopulationProblem`, in which a point that is not finite is worse
than any other.
"""

from copy import copy
from typing import Any

import numpy as np
import pymanopt
from pymanopt.manifolds import Oblique

from manifold_dl.manifolds.spheres import Spheres


class PopulationProblem:
    """A problem in which points that are not finite have the cost +∞; all else is as it is.

    The objective does not depend on atoms that no signal uses: NaN there would not be seen in the cost. And
    a cost of NaN is +∞ here: these methods compare costs, and nothing is less than NaN.

    On Pymanopt's `Oblique` the logarithm is that of `Spheres`: its own is NaN at equal atoms whose product
    with themselves is rounded to more than 1, and a swarm takes logarithms at its best point.

    Parameters
    ----------
    problem : pymanopt.Problem
        Its cost and its manifold are used.
    """

    def __init__(self, problem: pymanopt.Problem) -> None:
        self._problem = problem
        self.manifold = problem.manifold
        if type(self.manifold).log is Oblique.log:
            self.manifold = copy(self.manifold)
            self.manifold.log = lambda point_a, point_b: Spheres(*point_a.shape).log(point_a, point_b)

    def cost(self, point: np.ndarray) -> float:
        """The cost at a point, or +∞."""
        value = self._problem.cost(point) if np.isfinite(point).all() else np.inf
        return np.inf if np.isnan(value) else value

    def __getattr__(self, name: str) -> Any:
        return getattr(self._problem, name)


def initial_population(
    problem: pymanopt.Problem, start: np.ndarray, size: int, rng: np.random.Generator
) -> list[np.ndarray]:
    """Return `size` points of the manifold: the start and random neighbours of it.

    With many unknowns the curvature dominates the cost of a distant neighbour: if the start is better than
    all others, these methods hardly ever find a descent and return it. So the neighbours are moved nearer
    until one of them has a lower cost than the start.

    Parameters
    ----------
    problem : pymanopt.Problem
        Its cost and its manifold are used.
    start : ndarray
        A point of the manifold.
    size : int
        The number of points, with the start.
    rng : numpy.random.Generator
        For the directions.

    Returns
    -------
    list of ndarray
        The start first.
    """
    manifold = problem.manifold
    directions = [manifold.projection(start, rng.standard_normal(start.shape)) for _ in range(size - 1)]
    lowest = problem.cost(start)
    for radius in 0.1 * 0.5 ** np.arange(25):
        for i, direction in enumerate(directions[:8]):
            for step in (radius, -radius):
                if problem.cost(manifold.retraction(start, step * direction)) < lowest:
                    directions[i] = np.sign(step) * direction
                    return _neighbours(manifold, start, radius, directions)
    return _neighbours(manifold, start, 0.1, directions)  # the start is a minimum, to rounding


def _neighbours(
    manifold: Any, start: np.ndarray, radius: float, directions: list[np.ndarray]
) -> list[np.ndarray]:
    return [start, *(manifold.retraction(start, radius * direction) for direction in directions)]
