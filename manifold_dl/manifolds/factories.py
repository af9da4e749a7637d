"""Factories of manifolds: the validation of an argument ``manifold=`` where a problem is made.

A factory is called with (m, k) and returns a Pymanopt manifold of m×k arrays. Not every manifold will do for
a dictionary: its points have to be real matrices of that shape, and the objective has to be a function on it.
The results for a factory and a shape are cached, so that a sweep over single atoms computes them once.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from pymanopt.manifolds import Stiefel
from pymanopt.manifolds.manifold import Manifold

from manifold_dl.components.errors import raise_named
from manifold_dl.manifolds.columnwise import norms
from manifold_dl.manifolds.feasible import FeasibleSet, leads, projects
from manifold_dl.manifolds.randomness import global_generator
from manifold_dl.manifolds.spheres import Spheres

Factory = Callable[[int, int], Manifold]

# Far above rounding, and far below what any two different geometries differ by.
_SMALL = 1e-6

# Our own spheres treat every atom by itself: what holds for some atoms holds for thousands, at the memory of
# some.
FEW = 64


def require_factory(factory: Any) -> None:
    """Refuse what cannot be called with (m, k), such as a manifold in place of its class."""
    if isinstance(factory, Manifold):
        raise TypeError(
            f"manifold={factory} is one manifold, and sets of atoms of several sizes k need one each: pass "
            f"the class {type(factory).__name__}, or a function (m, k) → manifold."
        )
    if not callable(factory):
        raise TypeError(f"manifold={factory!r}: pass a factory (m, k) → manifold, such as the class Spheres.")


def feasible_set(factory: Factory, m: int, k: int) -> FeasibleSet:
    """Return the manifold of m×k dictionaries that the factory makes, with a test for its points.

    Parameters
    ----------
    factory : callable (m, k) → pymanopt.manifolds.manifold.Manifold
        Such as `Spheres` or ``pymanopt.manifolds.Oblique``.
    m : int
        Length of an atom.
    k : int
        Number of atoms.

    Returns
    -------
    FeasibleSet
        The manifold, an example point, and functions that recognise points and find near ones.

    Raises
    ------
    TypeError, ValueError
        If what the factory makes cannot hold a dictionary, with the reason and a remedy.

    Examples
    --------
    >>> from pymanopt.manifolds import Grassmann, Oblique
    >>> feasible_set(Oblique, 4, 6).unit_atoms
    True
    >>> feasible_set(Grassmann, 4, 2)
    Traceback (most recent call last):
    ...
    ValueError: manifold=Grassmann identifies the dictionary D with D Q, where Q rotates atoms into each
    other, but the objective differs: it is no function on this manifold. Use Lines for atoms up to
    their signs, Orthonormal for orthonormal ones, or Spheres.
    """
    try:
        few = min(k, FEW) if _is_spheres(factory) else k
        example, relations, unit_atoms, separate_atoms = _facts(factory, m, few)
        if few < k:
            example = np.broadcast_to(example[:, :1], (m, k))
        missing_methods = partial(_missing_methods, factory, m, few)
        return FeasibleSet(factory(m, k), example, relations, unit_atoms, separate_atoms, missing_methods)
    except Exception as error:
        raise_named(error, factory, "manifold")


def is_rotation_quotient(manifold: Manifold, point: np.ndarray) -> bool:
    """Whether D and D Q are one point of the manifold, where Q rotates atoms into each other.

    The tangent vector D A with A skew leads to D Q. On a quotient it is vertical, and the projection removes
    it. A single atom has no rotation, only a sign, which the codes absorb.
    """
    if point.shape[1] == 1:
        return False
    turn = _rotation_of_two_atoms(point)
    return bool(np.linalg.norm(manifold.projection(point, turn)) <= _SMALL * np.linalg.norm(turn))


def _cached(function: Callable) -> Callable:
    """Cache the last results by factory and shape, except for factories that cannot be hashed."""
    cached = lru_cache(maxsize=16)(function)

    def result(factory: Factory, m: int, k: int) -> Any:
        try:
            hash(factory)
        except TypeError:
            return function(factory, m, k)
        return cached(factory, m, k)

    return result


@_cached
def _facts(factory: Factory, m: int, k: int) -> tuple[np.ndarray, frozenset[str], bool, bool]:
    """Return the fields of a `FeasibleSet` after its manifold."""
    name = _label(factory)
    manifold = _made(factory, m, k)
    example, other, mixed = (_example(manifold, name, m, k, seed) for seed in (0, 1, 2))
    if m == 1 and manifold.dim == 0:  # atoms are +1 or −1: there is nothing to find out, and nothing moves
        return example, frozenset(), bool((np.abs(example) == 1).all()), True
    _require_function(manifold, name, example)
    if manifold.dim < 1:
        raise ValueError(f"manifold={name}: {manifold} has dimension {manifold.dim}, so no atom can move.")
    with np.errstate(all="ignore"):
        relations = frozenset(name for name in ("dist", "log") if _relates(manifold, name, example, other))
        moved = manifold.retraction(example, manifold.projection(example, other - 2 * example))
        is_unit = bool(max(np.abs(norms(x) - 1).max() for x in (example, np.asarray(moved))) < _SMALL)
        whole = FeasibleSet(manifold, example, relations, is_unit, separate_atoms=True)
        mixed[:, 0] = other[:, 0]
        return example, relations, is_unit, bool(whole.contains(mixed))


@_cached
def _missing_methods(factory: Factory, m: int, k: int) -> frozenset[str]:
    """Return the methods of Pymanopt's manifolds that optimizers call and this one does not have."""
    manifold = _made(factory, m, k)
    x, y = (_example(manifold, _label(factory), m, k, seed) for seed in (0, 1))
    v = manifold.projection(x, y)
    calls = {
        "dist": (x, y),
        "log": (x, y),
        "pair_mean": (x, y),
        "transport": (x, y, v),
        "retraction": (x, v),
        "to_tangent_space": (x, v),
        "euclidean_to_riemannian_gradient": (x, y),
        "euclidean_to_riemannian_hessian": (x, y, y, v),
    }
    lacking = set()
    with np.errstate(all="ignore"):
        for name, arguments in calls.items():
            try:
                getattr(manifold, name)(*arguments)
            except NotImplementedError:
                lacking.add(name)
            except (np.linalg.LinAlgError, ArithmeticError):
                pass  # the method exists; these two points may be too far from each other
    return frozenset(lacking)


def _made(factory: Factory, m: int, k: int) -> Manifold:
    require_factory(factory)
    name = _label(factory)
    try:
        manifold = factory(m, k)
    except Exception as error:
        if _is_ours(factory) and isinstance(error, ValueError | TypeError):
            raise  # the message is a sentence already
        if factory is Stiefel and k > m:
            raise ValueError(
                f"manifold=Stiefel: k={k} atoms cannot be orthonormal in m={m} dimensions; for an "
                f"overcomplete dictionary use Spheres or sets of at most m={m} atoms."
            ) from None
        fewer = f" For k > m, use Spheres or sets of at most m={m} atoms." if k > m else ""
        raise ValueError(
            f"manifold={name} raised {type(error).__name__} when called with (m, k) = ({m}, {k}): {error}. "
            "A factory (m, k) → manifold of m×k arrays is needed, such as Spheres or pymanopt's Oblique, or "
            f"a function that makes one; for manifolds of single atoms, Columns(factory).{fewer}"
        ) from error
    if not isinstance(manifold, Manifold):
        raise TypeError(
            f"manifold={name} returned a {type(manifold).__name__} when called with (m, k) = ({m}, {k}): a "
            "subclass of pymanopt.manifolds.manifold.Manifold is needed."
        )
    return manifold


def _example(manifold: Manifold, name: str, m: int, k: int, seed: int) -> np.ndarray:
    """Return a random point; raise if it is not a real m×k array."""
    with global_generator(seed):
        point = manifold.random_point()
    if not isinstance(point, np.ndarray):
        raise ValueError(
            f"manifold={name}: the points of {manifold} consist of several arrays, and a dictionary is one "
            "m×k array: use Columns(factory) for the product of a manifold of single atoms."
        )
    if point.shape != (m, k):
        raise ValueError(
            f"manifold={name}: the points of {manifold} have shape {point.shape}, and a dictionary of {k} "
            f"atoms of length {m} has shape ({m}, {k}): pass a function (m, k) → manifold of such arrays, or "
            "Columns(factory) for a manifold of single atoms."
        )
    if point.dtype.kind != "f" or not np.isfinite(point).all():
        raise ValueError(
            f"manifold={name}: the points of {manifold} have dtype {point.dtype}, and dictionaries are "
            "matrices of finite real numbers: use a real manifold, such as Spheres."
        )
    return point


def _require_function(manifold: Manifold, name: str, point: np.ndarray) -> None:
    """Refuse quotients by rotations of the atoms, and projections that do not project."""
    if point.shape[1] == 1:
        return
    if is_rotation_quotient(manifold, point):
        raise ValueError(
            f"manifold={name} identifies the dictionary D with D Q, where Q rotates atoms into each "
            "other, but the objective differs: it is no function on this manifold. Use Lines for atoms up to "
            "their signs, Orthonormal for orthonormal ones, or Spheres."
        )
    if not projects(manifold, point, _rotation_of_two_atoms(point)):
        raise ValueError(
            f"manifold={name}: the method projection of {manifold} does not project, since doing it twice "
            "gives another vector than doing it once; optimizers cannot work with that. Correct it with the "
            "help of manifold_dl.diagnostics.check_manifold, or use another manifold, such as Spheres."
        )


def _rotation_of_two_atoms(point: np.ndarray) -> np.ndarray:
    """D A, where A is the skew matrix that rotates the first two atoms into each other."""
    turn = np.zeros_like(point)
    turn[:, 0], turn[:, 1] = -point[:, 1], point[:, 0]
    return turn


def _relates(manifold: Manifold, method: str, point_a: np.ndarray, point_b: np.ndarray) -> bool:
    """Whether the method exists, and is right for two points."""
    try:
        return (
            leads(manifold, point_a, point_b)
            if method == "log"
            else bool(np.isfinite(manifold.dist(point_a, point_b)))
        )
    except (NotImplementedError, np.linalg.LinAlgError, ArithmeticError):
        return False


def _is_spheres(factory: Any) -> bool:
    """Whether the factory is one of this package's classes of unit atoms that move by themselves."""
    return isinstance(factory, type) and issubclass(factory, Spheres) and _is_ours(factory)


def _label(factory: Any) -> str:
    return getattr(factory, "__name__", None) or repr(factory)


def _is_ours(factory: Any) -> bool:
    cls = factory if isinstance(factory, type) else type(factory)
    return cls.__module__.partition(".")[0] == "manifold_dl"
