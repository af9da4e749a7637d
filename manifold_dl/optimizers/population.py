"""Initial populations for Nelder-Mead and the particle swarm, which move many points and use no gradient.

`running.py` calls `initial_population`: the start and random neighbours of it, so near to it that one of them
has a lower cost.
"""

from typing import Any

import numpy as np
import pymanopt


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
