"""Random points, random directions and paths on any Pymanopt manifold, repeatable by a seed.

Pymanopt draws from NumPy's global generator. The checks pass their own generator to manifolds that take
one, and for the others set the global one for the length of a call and put it back as it was.
"""

import inspect

import numpy as np
from pymanopt.manifolds.manifold import RetrAsExpMixin

from manifold_dl.manifolds.randomness import global_generator


def random_point(manifold, rng):
    return _draw(manifold.random_point, rng)


def random_direction(manifold, point, rng):
    """A random tangent vector of length one."""
    vector = _draw(manifold.random_tangent_vector, rng, point)
    return vector / manifold.norm(point, vector)


def path(manifold, point, direction):
    """t ↦ the point after a walk of length t: along the geodesic if there is one, else the retraction."""
    move = manifold.exp if has_exp(manifold, point, direction) else manifold.retraction
    return lambda t: move(point, t * direction)


def has_exp(manifold, point, direction):
    """Whether exp is more than nothing at all, and more than another name of the retraction."""
    if type(manifold).exp is RetrAsExpMixin.exp:
        return False
    try:
        manifold.exp(point, 1e-3 * direction)
    except NotImplementedError:  # how a Pymanopt manifold says that it lacks a map
        return False
    return True


def tangent_part(manifold, point, vector):
    """A vector made tangent: itself, if it was.

    By the projection, if tangent vectors are arrays of the space around the manifold. On Lie groups, and
    where an atom is the square of another vector, they are written in coordinates of their own.
    """
    if np.array_equal(manifold.embedding(point, vector), vector):
        return manifold.projection(point, vector)
    return manifold.to_tangent_space(point, vector)


def _draw(draw, rng, *arguments):
    # Points and directions have streams of their own. Otherwise a direction drawn with seed 0, at a point
    # that was drawn with seed 0, would be the same numbers again: normal to a sphere, and no direction.
    seed = int(np.random.SeedSequence([int(rng.integers(2**32)), len(arguments)]).generate_state(1)[0])
    if "rng" in inspect.signature(draw).parameters:
        return draw(*arguments, rng=seed)
    with global_generator(seed):
        return draw(*arguments)
