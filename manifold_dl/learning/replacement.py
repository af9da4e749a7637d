"""What to do with atoms that nobody uses, or that two columns share.

An update stage never replaces an atom: that would break its monotone descent. The learning loop applies
a policy between outer iterations, and records what it did. `ReplaceAtoms` is the usual one; any callable
with its signature will do.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np

from manifold_dl._validation import as_dictionary, as_matrix
from manifold_dl.engines.units import divide
from manifold_dl.kernels import reduced as kernels
from manifold_dl.problem.support import as_support


class ReplacementPolicy(Protocol):
    """Anything that is called with signals, dictionary and codes and says which atoms it changed."""

    def __call__(self, signals, dictionary, codes):
        """(m×n, m×d, sparse d×n) → (dictionary, indices of the replaced atoms)."""


@dataclass(frozen=True)
class ReplaceAtoms:
    """Replace unused, little used and duplicated atoms by the worst represented signals.

    Parameters
    ----------
    coherence : float
        Of two atoms with |⟨dᵢ, dⱼ⟩| above this, the one that is used less goes. The absolute value
        matters: an antipodal pair is a duplicate too.
    min_users : int
        An atom that fewer signals use goes.

    Notes
    -----
    The worst represented signals are those with the largest share ‖y − Dx‖²/‖y‖² left over, ties in
    favour of the lower index; each is used once, and none that resembles an atom already there. Where
    every signal is represented exactly, nothing is replaced.

    Examples
    --------
    >>> D = np.array([[1.0, -1.0], [0.0, 0.0]])
    >>> Y = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    >>> D_new, replaced = ReplaceAtoms(min_users=1)(Y, D, np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.1]]))
    >>> replaced.tolist(), D_new[:, 1].tolist()
    ([1], [0.0, 1.0])
    """

    coherence: float = 0.99
    min_users: int = 4

    def __post_init__(self):
        if not 0 < self.coherence <= 1:
            raise ValueError(f"coherence={self.coherence}: the bound on |⟨dᵢ, dⱼ⟩| lies in (0, 1].")
        if self.min_users < 0:
            raise ValueError(f"min_users={self.min_users}: a number of signals is not negative.")

    def __call__(self, signals, dictionary, codes):
        Y = as_matrix(signals, "signals")
        D = as_dictionary(dictionary, n_rows=len(Y)).astype(Y.dtype)
        support = as_support(codes, Y.shape[1], D.shape[1])
        bad = self._bad_atoms(D, support)
        if len(bad) == 0:
            return D, bad
        return self._fill(D, bad, *_worst_represented(Y, D, support))

    def _bad_atoms(self, D, support):
        nonzero = support.indices if support.values is None else support.indices[support.values != 0]
        users = np.bincount(nonzero, minlength=D.shape[1])
        bad = users < self.min_users
        unit = D / np.linalg.norm(D, axis=0)
        close = np.triu(np.abs(unit.T @ unit) > self.coherence, k=1)
        for i, j in np.argwhere(close):
            if not (bad[i] or bad[j]):
                bad[j if users[j] <= users[i] else i] = True
        return np.flatnonzero(bad)

    def _fill(self, D, bad, candidates, order):
        D, kept = D.copy(), np.ones(D.shape[1], dtype=bool)
        kept[bad] = False
        replaced, queue = [], iter(order)
        for i in bad:
            for j in queue:
                atom = candidates[:, j] / np.linalg.norm(candidates[:, j])
                if np.abs(atom @ D[:, kept]).max(initial=0.0) <= self.coherence:
                    D[:, i], kept[i] = atom, True
                    replaced.append(i)
                    break
        return D, np.array(replaced, dtype=np.intp)


def _worst_represented(Y, D, support):
    """The signals, and their order by the share of energy that D X leaves over; exact fits left out."""
    # In double precision, each signal in a unit of its own, so that no square vanishes or overflows.
    exponents = np.frexp(np.abs(Y).max(axis=0))[1]
    Y, values = divide(Y.astype(float), exponents), np.zeros(len(support.indices))
    if support.values is not None:
        values = divide(support.values.astype(float), np.repeat(exponents, np.diff(support.indptr)))
    rest = np.array(Y.T, order="C")
    kernels.accumulate(rest, support.indptr, support.indices, -values, np.ascontiguousarray(D.T, dtype=float))
    energy = np.einsum("mn,mn->n", Y, Y)
    left = np.einsum("nm,nm->n", rest, rest)
    share = np.divide(left, energy, out=np.zeros_like(left), where=energy > 0)
    order = np.argsort(-share, kind="stable")
    # Coders solve normal equations, so of an exact fit about half the digits of the residual are left over:
    # ‖y − Dx‖ ≤ √ε ‖y‖ is no reason to call a signal badly represented.
    return Y, order[share[order] > np.finfo(D.dtype).eps]
