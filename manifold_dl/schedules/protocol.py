"""What a schedule is: an object that yields one sweep of index arrays."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

import numpy as np

#: A generator, a seed, or None for fresh random numbers.
RandomLike: TypeAlias = np.random.Generator | int | None


class Schedule(Protocol):
    """Anything with a method `subsets` that yields one sweep of index arrays.

    The method may have the keyword argument `usage=None`, as that of `OneAtATime` has: then `sweep` passes
    how much each atom is used. A schedule may have the attribute `covers_atoms`, False by default: whether
    every sweep moves every atom, which `diagnostics.check_schedule` then requires.
    """

    def subsets(self, n_atoms: int, rng: RandomLike = None) -> Iterable[Any]:
        """Yield the index arrays I of one sweep over the atoms 0, ..., n_atoms − 1."""
        ...


def subsets_of(schedule: Any) -> Callable[..., Any] | None:
    """The method `subsets` of any schedule; None for the subsets themselves, such as a list of them."""
    return getattr(schedule, "subsets", None)
