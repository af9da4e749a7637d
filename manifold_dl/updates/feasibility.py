"""Whole dictionaries on the manifold of an update rule.

`SimCO` moves sets I of atoms on a manifold, and maps each set onto it before the set is updated. A dictionary
that no update returned (a start, one with replaced atoms, one between two others) is mapped there as a whole:
`learning/initialization.py`, `learning/adapters.py` and `learning/minibatch.py` use these functions.
"""

from typing import Any

import numpy as np

from manifold_dl.components.errors import naming
from manifold_dl.manifolds import feasible_set
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.schedules import AllAtoms, sweep
from manifold_dl.schedules.protocol import subsets_of
from manifold_dl.updates.simco import SimCO


def onto_manifold(update: Any, dictionary: np.ndarray) -> np.ndarray:
    """The dictionary with all atoms on the manifold of the update rule, if it has one.

    Atoms that the schedule never names stay as they are. So do all where the sets are drawn anew in every
    sweep and the manifold ties the atoms of a set together: the sets of the next sweep are not known here.

    Examples
    --------
    >>> from manifold_dl import SimCO
    >>> from manifold_dl.manifolds import ZeroMean
    >>> print(onto_manifold(SimCO(manifold=ZeroMean), np.eye(3)[:, :1]).round(3).ravel())
    [ 0.816 -0.408 -0.408]
    """
    D = dictionary.copy()
    for I in feasible_sets(update, *dictionary.shape) or ():
        D[:, I] = _nearest_point(feasible_set(update.manifold, len(D), len(I)), D[:, I])
    return D


def replaced_onto_manifold(update: Any, dictionary: np.ndarray, replaced: np.ndarray) -> np.ndarray:
    """The dictionary on the manifold again after some atoms were replaced, also those that no set names."""
    sets = feasible_sets(update, *dictionary.shape)
    if sets is None or len(replaced) == 0:
        return dictionary
    D = onto_manifold(update, dictionary)
    others = np.setdiff1d(replaced, np.concatenate(sets))
    if len(others) and feasible_set(update.manifold, len(D), len(sets[0])).separate_atoms:
        D[:, others] = _nearest_point(feasible_set(update.manifold, len(D), len(others)), D[:, others])
    return D


def has_unit_atoms(update: Any, m: int, n_atoms: int) -> bool:
    """Whether the manifold of the update rule fixes the norms of the atoms at 1, which is the default."""
    sets = feasible_sets(update, m, n_atoms) or ()
    return all(feasible_set(update.manifold, m, len(I)).unit_atoms for I in sets)


def feasible_sets(update: Any, m: int, n_atoms: int) -> list[np.ndarray] | None:
    """Sets of atoms on each of which the update's manifold is defined, or None if they are not known.

    None also for any rule but `SimCO`: its atoms are unit atoms, whatever it does with them.
    """
    if not isinstance(update, SimCO):
        return None
    manifold, schedule = update.manifold, update.schedule
    if isinstance(schedule, AllAtoms) or subsets_of(schedule) is None:
        return sweep(schedule, n_atoms)
    sets = sweep(schedule, n_atoms, rng=0, usage=np.ones(n_atoms))  # drawn again in every sweep
    if not all(feasible_set(manifold, m, k).separate_atoms for k in {len(I) for I in sets}):
        return None
    largest = max(len(I) for I in sets)
    return np.split(np.arange(n_atoms), range(largest, n_atoms, largest))


def _nearest_point(feasible: FeasibleSet, atoms: np.ndarray) -> np.ndarray:
    with naming(feasible.manifold, "manifold"):
        return feasible.nearest_point(atoms)
