"""What this package uses of a manifold beyond Pymanopt's interface: three members, all optional.

Manifolds are Pymanopt's, or written by users, and need not inherit anything. `optional_members` is the one
place where the members are looked up and where their defaults stand.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np


class DictionaryManifold(Protocol):
    """The members that a manifold of dictionaries may have besides those of Pymanopt.

    Attributes
    ----------
    couples_atoms : bool
        Whether a subset of the atoms cannot move while the rest stays. False by default.
    exp_keeps_to_manifold : bool
        Whether the rounding errors of `exp` do not accumulate, so that line searches follow it and not the
        retraction. False by default.
    """

    couples_atoms: bool
    exp_keeps_to_manifold: bool

    def closest(self, array: np.ndarray) -> np.ndarray:
        """The point closest to any m×k array: where an update starts if its dictionary is not a point.

        By default an update starts at the retraction of a zero step, if that is a point.

        Parameters
        ----------
        array : m×k array

        Returns
        -------
        m×k array
        """


class OptionalMembers(NamedTuple):
    """The members of `DictionaryManifold` of one manifold; `closest` is None if it has none."""

    closest: Callable[[np.ndarray], np.ndarray] | None
    couples_atoms: bool
    exp_keeps_to_manifold: bool


def optional_members(manifold: Any) -> OptionalMembers:
    """The members of `DictionaryManifold` that a manifold has, and the defaults of the others.

    Parameters
    ----------
    manifold : pymanopt.manifolds.manifold.Manifold

    Returns
    -------
    OptionalMembers

    Examples
    --------
    >>> import pymanopt
    >>> optional_members(pymanopt.manifolds.Oblique(8, 12))
    OptionalMembers(closest=None, couples_atoms=False, exp_keeps_to_manifold=False)
    """
    return OptionalMembers(
        getattr(manifold, "closest", None),
        getattr(manifold, "couples_atoms", False),
        getattr(manifold, "exp_keeps_to_manifold", False),
    )
