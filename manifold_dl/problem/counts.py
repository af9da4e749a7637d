"""Counts of what was really computed, per problem and over a whole stretch of a program.

Pymanopt's own counts are not to be relied on: `result.cost_evaluations` is its number of iterations.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass
class Counts:
    """What was computed; a result that comes from the cache is not counted again.

    Attributes
    ----------
    value, gradient, hessian, probe : int
        Values of the objective, gradients, Hessian products, and values φ(t) along a geodesic.
    factorisation : int
        Dictionaries for which the supports were factorised.
    rank_deficient : int
        Signals whose atoms were linearly dependent or nearly so, which took a singular value decomposition:
        at the dictionary where they were most, and added over the sets of atoms.
    sets, improved, refused : int
        Sets I of atoms that were handed to an optimizer; those with a lower objective afterwards; those that
        stayed, because the point was not finite or had a higher objective.
    """

    value: int = 0
    gradient: int = 0
    hessian: int = 0
    probe: int = 0
    factorisation: int = 0
    rank_deficient: int = 0
    sets: int = 0
    improved: int = 0
    refused: int = 0


_collected: ContextVar[list[Counts] | None] = ContextVar("counts made inside a with block", default=None)


@contextmanager
def count_evaluations() -> Iterator[Counts]:
    """Add up the counts of all objectives made inside the block; the sum is there when it ends."""
    total = Counts()
    made: list[Counts] = []
    token = _collected.set(made)
    try:
        yield total
    finally:
        _collected.reset(token)
        for counts in made:
            for name in vars(total):
                setattr(total, name, getattr(total, name) + getattr(counts, name))
        outer = _collected.get()
        if outer is not None:  # what was counted here is part of an enclosing block, too
            outer.append(total)


def new_counts(**amounts: int) -> Counts:
    """Counts of an objective, or of a kernel that does without one; part of `count_evaluations`."""
    counts = Counts(**amounts)
    collected = _collected.get()
    if collected is not None:
        collected.append(counts)
    return counts
