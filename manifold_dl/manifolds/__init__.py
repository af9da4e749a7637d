"""Geometries for a dictionary: where its m×k matrix of atoms is allowed to move.

The paper keeps every atom on the unit sphere, which makes a dictionary a point on a product of spheres
(:class:`Spheres`). Since an atom and its negative span the same line, and the codes absorb the sign, one may
as well move on a product of lines, the Grassmannians G(m, 1) of the paper's Section III (:class:`Lines`).
What is known of the atoms beforehand makes other geometries: no DC component (:class:`ZeroMean`), a given
subspace (:class:`Subspace`), entries that are not negative (:class:`NonNegative`), orthonormality
(:class:`Orthonormal`), or nothing at all (:class:`Euclidean`). :class:`Columns` makes a slow one of any
manifold for a single atom.

Every argument ``manifold=`` of this package takes a *factory*: anything that can be called with (m, k) and
returns a Pymanopt manifold whose points are m×k arrays. The classes here are such factories, and so are
``pymanopt.manifolds.Oblique`` and ``pymanopt.manifolds.Stiefel`` as they are.

Beyond Pymanopt's interface a manifold may have three members, all optional: ``closest(array)``,
``couples_atoms`` and ``exp_keeps_to_manifold`` (``protocol.DictionaryManifold``). ``feasible_set`` makes a
manifold from a factory, refuses those that cannot hold a dictionary, and recognises their points.
"""

from pymanopt.manifolds import Oblique, Stiefel

from manifold_dl.components.registry import register
from manifold_dl.manifolds.columns import Columns
from manifold_dl.manifolds.euclidean import Euclidean
from manifold_dl.manifolds.factories import feasible_set
from manifold_dl.manifolds.lines import Lines
from manifold_dl.manifolds.nonnegative import NonNegative
from manifold_dl.manifolds.orthonormal import Orthonormal
from manifold_dl.manifolds.spheres import Spheres
from manifold_dl.manifolds.subspace import SpheresWithin, Subspace, ZeroMean

__all__ = [
    "Columns",
    "Euclidean",
    "Lines",
    "NonNegative",
    "Orthonormal",
    "Spheres",
    "SpheresWithin",
    "Subspace",
    "ZeroMean",
    "feasible_set",
]

register("manifolds", Euclidean, Lines, NonNegative, Orthonormal, Spheres, ZeroMean, Oblique, Stiefel)
register("manifolds", Columns, needs="a manifold for one atom: Columns(factory)")
register("manifolds", SpheresWithin, needs="to be inherited")
register("manifolds", Subspace, needs="a basis: Subspace(basis)")
