"""Random points, random directions and paths on any Pymanopt manifold, repeatable by a seed.

Pymanopt draws from NumPy's global generator. The checks pass their own generator to manifolds that accept
one; for the others they seed the global one for the duration of a call and restore its state afterwards.
`taylor.py` and `manifold_sample.py` call these functions.
"""

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from pymanopt.manifolds.manifold import Manifold, RetrAsExpMixin

from manifold_dl.manifolds.randomness import global_generator


def random_point(manifold: Manifold, rng: np.random.Generator) -> Any:
    """Draw a random point of the manifold."""
    return _draw(manifold.random_point, rng)


def random_direction(manifold: Manifold, point: Any, rng: np.random.Generator) -> Any:
    """Draw a random tangent vector of length one."""
    vector = random_tangent(manifold, point, rng)
    return vector / manifold.norm(point, vector)


def random_tangent(manifold: Manifold, point: Any, rng: np.random.Generator) -> Any:
    """Draw a tangent vector as the manifold does, of the length that it gives."""
    return _draw(manifold.random_tangent_vector, rng, point)


def accepts_generator(draw: Callable[..., Any]) -> bool:
    """Whether a method that draws at random takes a generator as its argument `rng`."""
    return "rng" in inspect.signature(draw).parameters


def path(manifold: Manifold, point: Any, direction: Any) -> Callable[[float], Any]:
    """Return t ↦ the point at distance t: along the geodesic if there is an exp, else by the retraction."""
    move = manifold.exp if has_exp(manifold, point, direction) else manifold.retraction
    return lambda t: move(point, t * direction)


def has_exp(manifold: Manifold, point: Any, direction: Any) -> bool:
    """Whether the manifold has an exp that is not its retraction under another name."""
    if type(manifold).exp is RetrAsExpMixin.exp:
        return False
    return has_map(manifold.exp, point, 1e-3 * direction)


def has_map(method: Callable[..., Any], *arguments: Any) -> bool:
    """Whether a manifold has a method: Pymanopt's manifolds raise `NotImplementedError` if they do not."""
    try:
        method(*arguments)
    except NotImplementedError:
        return False
    return True


def tangent_part(manifold: Manifold, point: Any, vector: Any) -> Any:
    """Make a vector tangent; a tangent vector stays as it is.

    The projection does it if tangent vectors are arrays of the space around the manifold. On Lie groups, and
    where an atom is the square of another vector, tangent vectors have coordinates of their own.
    """
    if np.array_equal(manifold.embedding(point, vector), vector):
        return manifold.projection(point, vector)
    return manifold.to_tangent_space(point, vector)


def _draw(draw: Callable[..., Any], rng: np.random.Generator, *arguments: Any) -> Any:
    # Points and directions have separate streams. Otherwise a direction drawn with seed 0, at a point drawn
    # with seed 0, would consist of the same numbers: normal to a sphere, so that nothing of it is tangent.
    seed = int(np.random.SeedSequence([int(rng.integers(2**32)), len(arguments)]).generate_state(1)[0])
    if accepts_generator(draw):
        return draw(*arguments, rng=seed)
    with global_generator(seed):
        return draw(*arguments)
