"""One sweep of any schedule, validated before the first atom moves. The update rules call `sweep`."""

import inspect
import operator
from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any

import numpy as np

from manifold_dl.components.errors import ComponentError, is_users, naming
from manifold_dl.schedules.protocol import RandomLike, subsets_of


def sweep(schedule: Any, n_atoms: int, rng: RandomLike = None, usage: Any = None) -> list[np.ndarray]:
    """Return one sweep of `schedule`, validated: the index arrays that an update rule processes in turn.

    Parameters
    ----------
    schedule : Schedule or iterable
        An object with `subsets(n_atoms, rng)`, or the subsets themselves: a list of index lists, of index
        arrays, or of boolean masks of length `n_atoms`.
    n_atoms : int
        The number of atoms d.
    rng : Generator or int, optional
        Passed on to the schedule. A seed gives the same sweep every time, a Generator a fresh one.
    usage : array of length n_atoms, optional
        How much each atom is used; passed on to a schedule that has this argument.

    Returns
    -------
    list of ndarray
        The subsets, as arrays of `np.intp`, without empty ones, which move no atom. All of them are checked
        before the first is returned, so that a mistake in the last one is not found hours later.

    Examples
    --------
    >>> from manifold_dl.schedules import AllAtoms
    >>> sweep(AllAtoms(), 3)
    [array([0, 1, 2])]
    >>> sweep([[0, 2], [True, True, False]], 3)
    [array([0, 2]), array([0, 1])]
    >>> sweep([[0, 3]], 3)
    Traceback (most recent call last):
    ...
    ValueError: subset 0 of the schedule contains the index 3; the atoms are numbered 0 to 2.
    """
    if operator.index(n_atoms) < 1:
        raise ValueError(f"n_atoms={n_atoms}: a sweep needs at least one atom.")
    try:
        with naming(schedule, "schedule"):
            return _checked_subsets(schedule, n_atoms, rng, usage)
    except (TypeError, ValueError) as error:
        if subsets_of(schedule) is None or not is_users(schedule):
            raise  # the message is about the argument
        fault = f"gave a sweep that cannot be used: {str(error).rstrip('.')}"
        raise ComponentError(schedule, "schedule", fault) from error


def _checked_subsets(schedule: Any, n_atoms: int, rng: RandomLike, usage: Any) -> list[np.ndarray]:
    subsets = [
        _checked_subset(subset, k, n_atoms)
        for k, subset in enumerate(_subsets(schedule, n_atoms, rng, usage))
    ]
    if not subsets:
        raise ValueError(
            f"The schedule {schedule!r} has no subset; an update would leave every atom in place."
        )
    return [subset for subset in subsets if subset.size]


def _subsets(schedule: Any, n_atoms: int, rng: RandomLike, usage: Any) -> Iterable[Any]:
    if isinstance(schedule, type):
        raise TypeError(
            f"schedule is the class {schedule.__name__}; pass an object, such as {schedule.__name__}(...)."
        )
    draw = subsets_of(schedule)
    if draw is not None:
        options = {"usage": usage} if _takes_usage(draw) else {}
        subsets = draw(n_atoms, rng, **options)
        if not isinstance(subsets, Iterable):
            raise TypeError(
                f"its method subsets returned {subsets!r}; it must yield or return index arrays, and that is "
                "not iterable."
            )
        return subsets
    try:
        iterator = iter(schedule)
    except TypeError:
        raise TypeError(
            f"schedule is a {type(schedule).__name__}; it must have a method subsets(n_atoms, rng) or be an "
            "iterable of index arrays."
        ) from None
    if iterator is schedule:
        # Every outer iteration needs a sweep, and in the second the generator would be empty.
        raise TypeError(
            f"schedule is a {type(schedule).__name__}, which can be read only once; every outer iteration "
            "reads it again. Pass a list, or an object with a method subsets(n_atoms, rng)."
        )
    return iterator


def _takes_usage(subsets: Callable) -> bool:
    try:
        return _names_usage(getattr(subsets, "__func__", subsets))
    except TypeError:  # a callable that cannot be hashed
        return _names_usage.__wrapped__(subsets)


@lru_cache  # inspecting a signature takes longer than a sweep
def _names_usage(subsets: Callable) -> bool:
    return "usage" in inspect.signature(subsets).parameters


def _checked_subset(subset: Any, k: int, n_atoms: int) -> np.ndarray:
    name = f"subset {k} of the schedule"
    indices = np.asarray(subset)
    if indices.ndim != 1:
        raise ValueError(
            f"{name} has {indices.ndim} dimensions; it must be a one-dimensional array of atom indices."
        )
    if indices.dtype == bool:
        if len(indices) != n_atoms:
            raise ValueError(f"{name} is a mask of length {len(indices)}; there are {n_atoms} atoms.")
        indices = np.flatnonzero(indices)
    if indices.size == 0:
        return indices.astype(np.intp)
    if indices.dtype.kind not in "iu":
        raise ValueError(
            f"{name} has dtype {indices.dtype}; atom indices are integers, or a mask of booleans."
        )
    if indices.size == 1 and 0 <= indices[0] < n_atoms:
        return indices.astype(np.intp)  # the other checks are slow, and K-SVD has as many subsets as atoms
    if indices.min() < 0 or indices.max() >= n_atoms:
        outside = indices[(indices < 0) | (indices >= n_atoms)]
        raise ValueError(
            f"{name} contains the index {outside[0]}; the atoms are numbered 0 to {n_atoms - 1}."
        )
    indices = indices.astype(np.intp)
    uses = np.bincount(indices)
    if uses.max() > 1:
        raise ValueError(
            f"{name} repeats the index {np.argmax(uses > 1)}; an atom can move only once in a subset."
        )
    return indices
