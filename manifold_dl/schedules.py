"""Which atoms move together: the index sets I of the paper's Section II.

A schedule yields one sweep of index arrays. `AllAtoms` gives SimCO, `OneAtATime` gives K-SVD, and
anything between is a block method. The update rules call `sweep`, which checks the index sets of any
schedule, built-in or not, before the first atom moves.
"""

import inspect
import operator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from manifold_dl.components.errors import ComponentError, is_users, naming
from manifold_dl.components.registry import register


class Schedule(Protocol):
    """Anything with a method `subsets` that yields one sweep of index arrays.

    A schedule that wants to know how much each atom is used adds the keyword `usage=None` to its
    `subsets`; `sweep` passes it to those that have it, as `OneAtATime` does.
    """

    def subsets(self, n_atoms, rng=None):
        """Yield the index arrays I of one sweep over the atoms 0, ..., n_atoms − 1."""


@dataclass(frozen=True)
class AllAtoms:
    """Every atom at once: SimCO, with I = [d].

    Examples
    --------
    >>> list(AllAtoms().subsets(4))
    [array([0, 1, 2, 3])]
    """

    def subsets(self, n_atoms, rng=None):
        yield np.arange(n_atoms)


@dataclass(frozen=True)
class OneAtATime:
    """One atom after the other: K-SVD, with |I| = 1.

    Parameters
    ----------
    order : {"natural", "random", "usage"}
        The order of the atoms: by index, in a fresh random order every sweep, or the most used first.

    Examples
    --------
    >>> [int(i) for (i,) in OneAtATime(order="usage").subsets(4, usage=[2, 7, 0, 2])]
    [1, 0, 3, 2]
    """

    order: str = "natural"

    def __post_init__(self):
        if self.order not in ("natural", "random", "usage"):
            raise ValueError(
                f"order={self.order!r} is unknown; it is one of 'natural', 'random' and 'usage'."
            )

    def subsets(self, n_atoms, rng=None, usage=None):
        """Yield the atoms one by one.

        `usage` (length n_atoms) says how much each atom is used, by the number of signals or by energy;
        only `order="usage"` reads it. Ties keep the order of the indices.
        """
        if self.order == "natural":
            order = np.arange(n_atoms)
        elif self.order == "random":
            order = np.random.default_rng(rng).permutation(n_atoms)
        else:
            order = np.argsort(-_checked_usage(usage, n_atoms), kind="stable")
        yield from order[:, None]


@dataclass(frozen=True)
class Blocks:
    """Disjoint blocks of `size` atoms, in a fresh random order every sweep.

    The last block is smaller when `size` does not divide the number of atoms.

    Examples
    --------
    >>> [len(I) for I in Blocks(size=3).subsets(8, rng=0)]
    [3, 3, 2]
    """

    size: int

    def __post_init__(self):
        _check_count("size", self.size, "a block needs at least one atom")

    def subsets(self, n_atoms, rng=None):
        order = np.random.default_rng(rng).permutation(n_atoms)
        yield from np.split(order, range(self.size, n_atoms, self.size))


@dataclass(frozen=True)
class RandomSubsets:
    """`count` independent draws of `size` different atoms; a sweep may miss some atoms and repeat others.

    Examples
    --------
    >>> [len(I) for I in RandomSubsets(size=3, count=2).subsets(8, rng=0)]
    [3, 3]
    """

    size: int
    count: int

    def __post_init__(self):
        _check_count("size", self.size, "a subset needs at least one atom")
        _check_count("count", self.count, "a sweep needs at least one subset")

    def subsets(self, n_atoms, rng=None):
        _check_fits(self.size, n_atoms)
        rng = np.random.default_rng(rng)
        for _ in range(self.count):
            yield rng.choice(n_atoms, size=self.size, replace=False)


@dataclass(frozen=True)
class Overlapping:
    """Windows of `size` consecutive atoms, one starting every `step` atoms, wrapping past the last atom.

    Neighbouring windows share `size − step` atoms, so that atoms at the edge of one window are moved
    together with both of their neighbourhoods.

    Examples
    --------
    >>> [I.tolist() for I in Overlapping(size=3, step=2).subsets(6)]
    [[0, 1, 2], [2, 3, 4], [4, 5, 0]]
    """

    size: int
    step: int

    def __post_init__(self):
        _check_count("size", self.size, "a window needs at least one atom")
        _check_count("step", self.step, "the windows would never advance")
        if self.step > self.size:
            raise ValueError(
                f"step={self.step} exceeds size={self.size}; the atoms between two windows would never move."
            )

    def subsets(self, n_atoms, rng=None):
        _check_fits(self.size, n_atoms)
        for start in range(0, n_atoms, self.step):
            yield np.arange(start, start + self.size) % n_atoms


def sweep(schedule, n_atoms, rng=None, usage=None):
    """One sweep of `schedule`, checked: the list of index arrays that an update rule works through.

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
        How much each atom is used; passed on to a schedule that asks for it.

    Returns
    -------
    list of ndarray
        The subsets, as arrays of `np.intp`. All of them are checked before the first is returned, so that
        a mistake in the last one is not found hours later.

    Examples
    --------
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
        if not (hasattr(schedule, "subsets") and is_users(schedule)):
            raise  # a sentence about what was given
        fault = f"gave a sweep that cannot be used: {str(error).rstrip('.')}"
        raise ComponentError(schedule, "schedule", fault) from error


def _checked_subsets(schedule, n_atoms, rng, usage):
    subsets = [
        _checked_subset(subset, k, n_atoms)
        for k, subset in enumerate(_subsets(schedule, n_atoms, rng, usage))
    ]
    if not subsets:
        raise ValueError(
            f"The schedule {schedule!r} has no subset; an update would leave every atom in place."
        )
    return subsets


def _subsets(schedule, n_atoms, rng, usage):
    if isinstance(schedule, type):
        raise TypeError(
            f"schedule is the class {schedule.__name__}; pass an object, such as {schedule.__name__}(...)."
        )
    if hasattr(schedule, "subsets"):
        told = {"usage": usage} if "usage" in inspect.signature(schedule.subsets).parameters else {}
        subsets = schedule.subsets(n_atoms, rng, **told)
        if subsets is None:
            raise TypeError("its method subsets returned None; it must yield or return index arrays.")
        return subsets
    try:
        iterator = iter(schedule)
    except TypeError:
        raise TypeError(
            f"schedule is a {type(schedule).__name__}; it must have a method subsets(n_atoms, rng) or be an "
            "iterable of index arrays."
        ) from None
    if iterator is schedule:
        # Every outer iteration asks for a sweep, and the second would find the generator empty.
        raise TypeError(
            f"schedule is a {type(schedule).__name__}, which can be read only once; every outer iteration "
            "reads it again. Pass a list, or an object with a method subsets(n_atoms, rng)."
        )
    return iterator


def _checked_subset(subset, k, n_atoms):
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
        raise ValueError(f"{name} is empty; it must name at least one atom.")
    if indices.dtype.kind not in "iu":
        raise ValueError(
            f"{name} has dtype {indices.dtype}; atom indices are integers, or a mask of booleans."
        )
    if indices.size == 1 and 0 <= indices[0] < n_atoms:
        return indices.astype(np.intp)  # the rest takes long, and K-SVD has as many subsets as atoms
    outside = (indices < 0) | (indices >= n_atoms)
    if outside.any():
        raise ValueError(
            f"{name} contains the index {indices[outside][0]}; the atoms are numbered 0 to {n_atoms - 1}."
        )
    indices = indices.astype(np.intp)
    repeated = np.bincount(indices) > 1
    if repeated.any():
        raise ValueError(
            f"{name} repeats the index {np.argmax(repeated)}; an atom can move only once in a subset."
        )
    return indices


def _checked_usage(usage, n_atoms):
    if usage is None:
        raise ValueError(
            "order='usage' needs to know the usage of each atom; pass usage, an array of length n_atoms."
        )
    usage = np.asarray(usage, dtype=float)
    if usage.shape != (n_atoms,):
        raise ValueError(
            f"usage has shape {usage.shape}; with {n_atoms} atoms it must have shape ({n_atoms},)."
        )
    if np.isnan(usage).any():
        raise ValueError(f"usage of atom {np.argmax(np.isnan(usage))} is NaN; it must be a number.")
    return usage


def _check_count(name, value, why):
    if not isinstance(value, int | np.integer) or isinstance(value, bool):
        raise TypeError(f"{name}={value!r} is a {type(value).__name__}; it must be an integer.")
    if value < 1:
        raise ValueError(f"{name}={value}: {why}.")


def _check_fits(size, n_atoms):
    if size > n_atoms:
        raise ValueError(
            f"size={size} exceeds the number of atoms n_atoms={n_atoms}; a subset cannot repeat an atom."
        )


register("schedules", AllAtoms, OneAtATime, Blocks, RandomSubsets, Overlapping)
