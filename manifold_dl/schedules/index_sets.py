"""The schedules of this package: all atoms, one at a time, blocks, random subsets and windows."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from manifold_dl._validation import require_count
from manifold_dl.schedules.protocol import RandomLike


@dataclass(frozen=True)
class AllAtoms:
    """Every atom at once: SimCO, with I = [d].

    Examples
    --------
    >>> list(AllAtoms().subsets(4))
    [array([0, 1, 2, 3])]
    """

    def subsets(self, n_atoms: int, rng: RandomLike = None) -> Iterator[np.ndarray]:
        """Yield all atoms as one subset."""
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

    def __post_init__(self) -> None:
        if self.order not in ("natural", "random", "usage"):
            raise ValueError(
                f"order={self.order!r} is unknown; it is one of 'natural', 'random' and 'usage'."
            )

    def subsets(self, n_atoms: int, rng: RandomLike = None, usage: Any = None) -> Iterator[np.ndarray]:
        """Yield the atoms one by one.

        Parameters
        ----------
        n_atoms : int
            The number of atoms.
        rng : Generator or int, optional
            For ``order="random"``.
        usage : array of length n_atoms, optional
            How much each atom is used, by the number of signals or by energy; for ``order="usage"``. Ties
            keep the order of the indices.

        Yields
        ------
        ndarray
            The index of one atom.
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

    Parameters
    ----------
    size : int
        The number of atoms in a block, at least 1.

    Examples
    --------
    >>> [len(I) for I in Blocks(size=3).subsets(8, rng=0)]
    [3, 3, 2]
    """

    size: int

    def __post_init__(self) -> None:
        require_count("size", self.size, "a block needs at least one atom", wrong_type=TypeError)

    def subsets(self, n_atoms: int, rng: RandomLike = None) -> Iterator[np.ndarray]:
        """Yield the blocks of one sweep."""
        order = np.random.default_rng(rng).permutation(n_atoms)
        yield from np.split(order, range(self.size, n_atoms, self.size))


@dataclass(frozen=True)
class RandomSubsets:
    """`count` independent draws of `size` different atoms; a sweep may omit some atoms and repeat others.

    Parameters
    ----------
    size : int
        The number of atoms in a subset, at least 1.
    count : int
        The number of subsets in a sweep, at least 1.

    Examples
    --------
    >>> [len(I) for I in RandomSubsets(size=3, count=2).subsets(8, rng=0)]
    [3, 3]
    """

    size: int
    count: int

    def __post_init__(self) -> None:
        require_count("size", self.size, "a subset needs at least one atom", wrong_type=TypeError)
        require_count("count", self.count, "a sweep needs at least one subset", wrong_type=TypeError)

    def subsets(self, n_atoms: int, rng: RandomLike = None) -> Iterator[np.ndarray]:
        """Yield the subsets of one sweep."""
        _check_fits(self.size, n_atoms)
        rng = np.random.default_rng(rng)
        for _ in range(self.count):
            yield rng.choice(n_atoms, size=self.size, replace=False)


@dataclass(frozen=True)
class Overlapping:
    """Windows of `size` consecutive atoms, one starting every `step` atoms, wrapping past the last atom.

    Neighbouring windows have `size − step` atoms in common, so that an atom at the edge of one window moves
    with the atoms on either side of it.

    Parameters
    ----------
    size : int
        The number of atoms in a window, at least 1.
    step : int
        The distance between the first atoms of neighbouring windows, from 1 to `size`.

    Examples
    --------
    >>> [I.tolist() for I in Overlapping(size=3, step=2).subsets(6)]
    [[0, 1, 2], [2, 3, 4], [4, 5, 0]]
    """

    size: int
    step: int

    def __post_init__(self) -> None:
        require_count("size", self.size, "a window needs at least one atom", wrong_type=TypeError)
        require_count("step", self.step, "the windows would never advance", wrong_type=TypeError)
        if self.step > self.size:
            raise ValueError(
                f"step={self.step} exceeds size={self.size}; the atoms between two windows would never move."
            )

    def subsets(self, n_atoms: int, rng: RandomLike = None) -> Iterator[np.ndarray]:
        """Yield the windows of one sweep."""
        _check_fits(self.size, n_atoms)
        for start in range(0, n_atoms, self.step):
            yield np.arange(start, start + self.size) % n_atoms


def _checked_usage(usage: Any, n_atoms: int) -> np.ndarray:
    if usage is None:
        raise ValueError(
            "order='usage' needs the usage of each atom; pass usage, an array of length n_atoms."
        )
    usage = np.asarray(usage, dtype=float)
    if usage.shape != (n_atoms,):
        raise ValueError(
            f"usage has shape {usage.shape}; with {n_atoms} atoms it must have shape ({n_atoms},)."
        )
    if np.isnan(usage).any():
        raise ValueError(f"usage of atom {np.argmax(np.isnan(usage))} is NaN; it must be a number.")
    return usage


def _check_fits(size: int, n_atoms: int) -> None:
    if size > n_atoms:
        raise ValueError(
            f"size={size} exceeds the number of atoms n_atoms={n_atoms}; a subset cannot repeat an atom."
        )
