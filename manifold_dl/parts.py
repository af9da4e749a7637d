"""Which signals and which codes a set I of atoms touches: I ∩ Ω(:, j) of the paper's Section IV.

An update of one atom out of 256 must not look at all the codes to find its own. `Incidence` lists the
entries of the support by atom, once, and cuts out the part that belongs to any I in time that grows
with that part alone. `problem.py` and `updates.py` are its callers.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from manifold_dl.inputs import Support


@dataclass(frozen=True)
class Part:
    """The support restricted to the atoms I and to the signals that use them."""

    atoms: np.ndarray  # I
    entries: np.ndarray | slice  # where its codes stand among all codes
    active: np.ndarray | slice  # the signals that use an atom of I; all signals if I has all atoms
    indptr: np.ndarray
    indices: np.ndarray  # positions within I


@dataclass(frozen=True, eq=False)
class Incidence:
    """A support that can be read by atoms as well as by signals.

    Examples
    --------
    >>> support = Support(np.array([0, 2, 3]), np.array([0, 2, 1], np.int32), n_atoms=3, values=None)
    >>> part = Incidence(support).part(np.array([2, 1]))
    >>> part.active.tolist(), part.entries.tolist(), part.indices.tolist()
    ([0, 1], [1, 2], [0, 1])
    """

    support: Support

    def part(self, atoms):
        """Everything that the atoms I touch.

        All atoms at once are taken as they stand, without a copy, signals with an empty support included.
        """
        support, n_atoms = self.support, self.support.n_atoms
        if len(atoms) == n_atoms and np.array_equal(atoms, np.arange(n_atoms)):
            return Part(atoms, slice(None), slice(None), support.indptr, support.indices)
        entries = np.concatenate([self.entries[self.begin[i] : self.begin[i + 1]] for i in atoms])
        position = np.zeros(n_atoms, dtype=np.int32)
        position[atoms] = np.arange(len(atoms), dtype=np.int32)
        if len(atoms) > 1:
            entries.sort()
        signals = self.signal_of[entries]
        first = np.flatnonzero(np.diff(signals, prepend=-1))
        indptr = np.append(first, len(entries)).astype(np.int64)
        return Part(atoms, entries, signals[first], indptr, position[support.indices[entries]])

    @cached_property
    def usage(self):
        """How many signals use each atom."""
        return np.bincount(self.support.indices, minlength=self.support.n_atoms)

    @cached_property
    def signal_of(self):
        """The signal of every entry."""
        sizes = np.diff(self.support.indptr)
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    @cached_property
    def entries(self):
        """All entries in the order of their atoms, each atom's in the order of the signals."""
        return np.argsort(self.support.indices, kind="stable")

    @cached_property
    def begin(self):
        """Those of atom i are entries[begin[i]:begin[i + 1]]."""
        return np.concatenate([[0], np.cumsum(self.usage)])
