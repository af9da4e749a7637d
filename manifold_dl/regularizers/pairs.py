"""Penalties on the angles between atoms: sums over pairs of a function of ⟨d_i, d_j⟩.

`Coherence` and `Decorrelation` are here, `LogBarrierCoherence` in `barrier.py`.

All have the form R(D) = Σ_{i≠j} h(g_ij) with the Gram matrix G = DᵀD and an even h. Every pair counts twice,
as (i, j) and as (j, i), so that with h applied entry by entry and ° for a diagonal set to zero,

    ∇R(D) = 2 D h′(G)°,
    ∇²R(D)[E] = 2 (E h′(G)° + D (h″(G) ∘ (EᵀD + DᵀE))°).
"""

from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np

from manifold_dl.regularizers.algebra import Penalty
from manifold_dl.regularizers.gram import change_of_overlaps, overlaps_of
from manifold_dl.regularizers.weights import require_weight

# float(weight) below, because a NumPy float64 would turn a float32 gradient into a float64 one.


@dataclass(frozen=True)
class Coherence(Penalty):
    """Push atoms apart: R(D) = weight · Σ_{i≠j} |⟨d_i, d_j⟩|^power.

    Use it where supports are hard to find or codes grow large. Incoherent atoms make supports easier to
    identify, and keep the least-squares problem on every support well conditioned: this penalty is large for
    nearly collinear atoms, at which the unregularized objective is singular.

    Parameters
    ----------
    weight : float
        The weight of the penalty, at least 0, in the units of ‖Y‖².
    power : float
        At least 2. A large power penalises the few pairs that are closest, and hardly the rest: it reduces
        the mutual coherence, max |⟨d_i, d_j⟩|. With 2 all pairs contribute, and R is ‖DᵀD − I‖² of unit
        atoms.

    Notes
    -----
    With G = DᵀD, G° = G with its diagonal set to zero, and p the power, entry by entry,

        ∇R(D) = 2p weight · D (|G°|^{p−2} ∘ G),
        ∇²R(D)[E] = 2p weight · (E (|G°|^{p−2} ∘ G) + (p − 1) D (|G°|^{p−2} ∘ (EᵀD + DᵀE))).

    Every pair is counted twice, as (i, j) and as (j, i). Let S be the sum. S^{1/p} lies between the mutual
    coherence and (d(d − 1))^{1/p} times that: with 96 atoms, 95 times for p = 2, 3.1 times for p = 8.

    At the minimum a larger weight never means a larger S, and the fit increases by at most the weight times
    the decrease of S: otherwise another point would be the minimum. `benchmarks/coherence.py` measured this
    table on 2000 8×8 patches of a photograph with mean zero, with 96 atoms, four per patch, and power 8;
    means of five starts. In the update stage the supports are fixed and each weight starts from the result
    of the last; in learning the signals are coded again. The cost is the increase of ‖Y − DX‖².

    =============  ================  ===========  ==================  ==============
    weight / ‖Y‖²  one update stage  cost in fit  learning from       cost in fit
                                                  random starts
    =============  ================  ===========  ==================  ==============
    0              0.849                          0.84
    1e-5           0.847             0.0 %        0.82                −0.1 %
    1e-4           0.835             0.0 %        0.78                −0.3 %
    1e-3           0.760             0.4 %        0.68                0.0 %
    1e-2           0.618             3.5 %        0.52                0.5 %
    1e-1           0.470             11.4 %       0.40                2.8 %
    1              0.351             25.0 %       0.29                8.3 %
    =============  ================  ===========  ==================  ==============

    In the update stage mutual coherence fell at each of the 13 half decades from 1e-6 to 1, in all five
    starts; with power 2 in one of the five. In learning, two starts with the same weight differ by about
    0.03, which is more than a weight below 1e-4 changes. With power 2, a mutual coherence of 0.4 costs 35 %.

    Examples
    --------
    Two atoms at 60 degrees, and the gradient of their penalty:

    >>> D = np.array([[1.0, 0.5], [0.0, np.sqrt(3) / 2]])
    >>> round(Coherence(weight=1.0, power=2).value(D), 12)
    0.5
    >>> Coherence(weight=1.0, power=2).gradient(D).round(3)
    array([[1.   , 2.   ],
           [1.732, 0.   ]])
    >>> Coherence(weight=1.0).value(np.eye(3))
    0.0
    """

    weight: float
    power: float = 8

    def __post_init__(self) -> None:
        require_weight(self.weight)
        if not (isinstance(self.power, Real) and np.isfinite(self.power) and self.power >= 2):
            raise ValueError(
                f"power={self.power!r}: the power of a coherence is a finite number of at least 2; below 2 "
                "there is no second derivative where atoms are orthogonal."
            )

    def value(self, dictionary: np.ndarray) -> float:
        """Return the penalty, a float."""
        overlaps, factors = self._factors(dictionary)
        return float(self.weight) * float(np.vdot(factors * overlaps, overlaps))

    def gradient(self, dictionary: np.ndarray) -> np.ndarray:
        """Return the m×d gradient 2p weight · D (|G°|^{p−2} ∘ G)."""
        overlaps, factors = self._factors(dictionary)
        return 2 * float(self.power) * float(self.weight) * (dictionary @ (factors * overlaps))

    def hessian(self, dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the m×d derivative of the gradient along `direction`."""
        overlaps, factors = self._factors(dictionary)
        p, change = float(self.power), change_of_overlaps(dictionary, direction)
        total = direction @ (factors * overlaps) + (p - 1) * (dictionary @ (factors * change))
        return 2 * p * float(self.weight) * total

    def _factors(self, dictionary: np.ndarray) -> tuple[np.ndarray, Any]:
        """Return G° and |G°|^{p−2}."""
        overlaps = overlaps_of(dictionary)
        return overlaps, 1 if self.power == 2 else np.abs(overlaps) ** float(self.power - 2)


@dataclass(frozen=True, repr=False)
class Decorrelation(Penalty):
    """Separate groups of atoms: R(D) = weight · Σ ⟨d_i, d_j⟩² over all i and j of different groups.

    Use it where groups of atoms represent different components, such as classes of signals, or cartoon and
    texture, and no group should represent another's component; atoms of one group may be similar.

    Parameters
    ----------
    weight : float
        The weight of the penalty, at least 0, in the units of ‖Y‖².
    groups : sequence of d labels
        Atoms of equal labels form a group; labels are numbers or strings. Stored as a tuple.

    Notes
    -----
    With B the d×d matrix that is 1 where groups differ and 0 elsewhere, R = weight · ‖B ∘ G‖²,

        ∇R(D) = 4 weight · D (B ∘ G),
        ∇²R(D)[E] = 4 weight · (E (B ∘ G) + D (B ∘ (EᵀD + DᵀE))).

    If every atom is a group of its own, this is `Coherence` with power 2.

    Examples
    --------
    >>> D = np.array([[1.0, 0.8, 0.0], [0.0, 0.6, 1.0]])
    >>> between = Decorrelation(weight=1.0, groups=["edges", "edges", "texture"])
    >>> round(between.value(D), 12)  # ⟨d_1, d_3⟩ = 0 and ⟨d_2, d_3⟩ = 0.6, each twice
    0.72
    """

    weight: float
    groups: tuple[Any, ...]

    def __post_init__(self) -> None:
        require_weight(self.weight)
        labels = np.asarray(self.groups)
        if labels.ndim != 1 or labels.dtype.kind not in "biuUSf":
            raise ValueError(
                f"groups={self.groups!r}: give a list with the label of every atom, a number or a string."
            )
        object.__setattr__(self, "groups", tuple(labels.tolist()))

    def __repr__(self) -> str:
        labels = [repr(label) for label in self.groups]
        if len(labels) > 12:
            labels[5:-5] = ["..."]
        return f"Decorrelation(weight={self.weight!r}, groups=({', '.join(labels)}))"

    def value(self, dictionary: np.ndarray) -> float:
        """Return the penalty, a float."""
        overlaps = self._between(dictionary, dictionary.T @ dictionary)
        return float(self.weight) * float(np.vdot(overlaps, overlaps))

    def gradient(self, dictionary: np.ndarray) -> np.ndarray:
        """Return the m×d gradient 4 weight · D (B ∘ G)."""
        overlaps = self._between(dictionary, dictionary.T @ dictionary)
        return 4 * float(self.weight) * (dictionary @ overlaps)

    def hessian(self, dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the m×d derivative of the gradient along `direction`."""
        overlaps = self._between(dictionary, dictionary.T @ dictionary)
        change = self._between(dictionary, change_of_overlaps(dictionary, direction))
        return 4 * float(self.weight) * (direction @ overlaps + dictionary @ change)

    def _between(self, dictionary: np.ndarray, gram: np.ndarray) -> np.ndarray:
        """Return B ∘ gram."""
        labels = np.asarray(self.groups)
        if len(labels) != dictionary.shape[1]:
            raise ValueError(
                f"groups has {len(labels)} labels, but the dictionary has {dictionary.shape[1]} atoms: "
                "every atom needs one."
            )
        return gram * (labels[:, None] != labels)
