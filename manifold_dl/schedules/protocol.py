"""What a schedule is: an object that yields one sweep of index arrays."""

from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeAlias

import numpy as np

#: A generator, a seed, or None for fresh random numbers.
RandomLike: TypeAlias = np.random.Generator | int | None


class Schedule(Protocol):
    """Anything with a method `subsets` that yields one sweep of index arrays.

    The method may have the keyword argument `usage=None`, as that of `OneAtATime` has: then `sweep` passes
    how much each atom is used. What a schedule may have besides is `FullSchedule`.
    """

    def subsets(self, n_atoms: int, rng: RandomLike = None) -> Iterable[Any]:
        """The sets of atoms of one sweep.

        Parameters
        ----------
        n_atoms : int
            The atoms are 0, ..., n_atoms − 1.
        rng : Generator or int, optional
            For schedules that draw.

        Returns
        -------
        iterable of index arrays
        """
        ...


class FullSchedule(Schedule, Protocol):
    """A schedule with the attribute that it may have. It is optional.

    Attributes
    ----------
    covers_atoms : bool
        Whether every sweep moves every atom, which `diagnostics.check_schedule` then requires. False by
        default.
    """

    covers_atoms: bool


def covers_atoms(schedule: Any) -> bool:
    """Whether every sweep of a schedule moves every atom, as far as the schedule declares."""
    return bool(getattr(schedule, "covers_atoms", False))


def subsets_of(schedule: Any) -> Callable[..., Any] | None:
    """The method `subsets` of any schedule; None for the subsets themselves, such as a list of them."""
    return getattr(schedule, "subsets", None)
