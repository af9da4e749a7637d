"""Penalties on the angles between atoms: sums over pairs of a function of ⟨d_i, d_j⟩.

All have the form R(D) = Σ_{i≠j} h(g_ij) with the Gram matrix G = DᵀD and an even h. Every pair counts twice,
as (i, j) and as (j, i), so that with h applied entry by entry and ° for a diagonal set to zero,

    ∇R(D) = 2 D h′(G)°,
    ∇²R(D)[E] = 2 (E h′(G)° + D (h″(G) ∘ (EᵀD + DᵀE))°).
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from .algebra import Penalty, require_weight

# float(weight) below, because a NumPy float64 would turn a float32 gradient into a float64 one.


@dataclass(frozen=True)
class Coherence(Penalty):
    """Push atoms apart: R(D) = weight · Σ_{i≠j} |⟨d_i, d_j⟩|^power.

    Use it where supports are hard to find or codes grow large. Incoherent atoms make supports easier to tell
    apart, and keep the least-squares problem on every support well conditioned: this penalty sees the
    near-collinear atoms at which the unregularized objective is singular.

    Parameters
    ----------
    weight : float
        How much it counts, at least 0, in the units of ‖Y‖².
    power : float
        Which pairs count, at least 2. A large power sees the few pairs that are closest, and leaves the rest
        to the data: it brings down the mutual coherence, max |⟨d_i, d_j⟩|. With 2 all pairs count, and R is
        the familiar ‖DᵀD − I‖² of unit atoms.

    Notes
    -----
    With G = DᵀD, G° = G with its diagonal set to zero, and p the power, entry by entry,

        ∇R(D) = 2p weight · D (|G°|^{p−2} ∘ G),
        ∇²R(D)[E] = 2p weight · (E (|G°|^{p−2} ∘ G) + (p − 1) D (|G°|^{p−2} ∘ (EᵀD + DᵀE))).

    Every pair is counted twice, as (i, j) and as (j, i). Let S be the sum. S^{1/p} lies between the mutual
    coherence and (d(d − 1))^{1/p} times that: with 96 atoms, 95 times for p = 2, 3.1 times for p = 8.

    At the minimum a larger weight never means a larger S, and the fit pays at most the weight times what S
    has lost: otherwise another minimum had been the better one. This is what `benchmarks/coherence.py`
    measured on 2000 mean-free 8×8 patches of a photograph, 96 atoms, four to a patch, means of five starts,
    with power 8. In the stage, the supports stay and each weight goes on from the last; learning codes anew.
    The cost is what ‖Y − DX‖² gains.

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

    In the stage mutual coherence fell at each of the 13 half decades from 1e-6 to 1, in all five starts; with
    power 2 in one of the five. In learning, two starts with the same weight differ by about 0.03, which is
    more than a weight below 1e-4 changes. With power 2, mutual coherence comes to 0.4 at a cost of 35 %.

    Examples
    --------
    Two atoms at 60 degrees, and the gradient that tells them to part:

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

    def __post_init__(self):
        require_weight(self.weight)
        if not (isinstance(self.power, Real) and np.isfinite(self.power) and self.power >= 2):
            raise ValueError(
                f"power={self.power!r}: the power of a coherence is a finite number of at least 2; below, "
                "there is no second derivative where atoms are orthogonal."
            )

    def value(self, dictionary):
        """Return the penalty, a float."""
        overlaps, factors = self._factors(dictionary)
        return float(self.weight) * float(np.vdot(factors * overlaps, overlaps))

    def gradient(self, dictionary):
        """Return the m×d gradient 2p weight · D (|G°|^{p−2} ∘ G)."""
        overlaps, factors = self._factors(dictionary)
        return 2 * float(self.power) * float(self.weight) * (dictionary @ (factors * overlaps))

    def hessian(self, dictionary, direction):
        """Return the m×d derivative of the gradient along `direction`."""
        overlaps, factors = self._factors(dictionary)
        p, change = float(self.power), _change(dictionary, direction)
        total = direction @ (factors * overlaps) + (p - 1) * (dictionary @ (factors * change))
        return 2 * p * float(self.weight) * total

    def _factors(self, dictionary):
        """G° and |G°|^{p−2}."""
        overlaps = _overlaps(dictionary)
        return overlaps, 1 if self.power == 2 else np.abs(overlaps) ** float(self.power - 2)


class OutsideBound(ArithmeticError, ValueError):
    """A derivative was asked for where the penalty is infinite.

    It is an arithmetic error, so that line searchers take a probe out there for what it is, and a value error
    for whoever began there.
    """


@dataclass(frozen=True)
class LogBarrierCoherence(Penalty):
    """Keep |⟨d_i, d_j⟩| below a bound: R(D) = −weight · Σ_{i≠j} log(1 − ⟨d_i, d_j⟩²/bound²).

    Use it where a bound on the mutual coherence has to hold, and `Coherence` where small is good enough. Far
    from the bound it is `Coherence` with power 2, at `weight`/bound² there. At the bound and beyond it
    R = +∞: line searches turn around and a trust region shrinks, so a run that begins inside stays inside.

    Parameters
    ----------
    weight : float
        How early the barrier is felt, above 0, in the units of ‖Y‖². The smaller it is, the closer atoms
        come to the bound where the data asks for it.
    bound : float
        The coherence that is never reached, above 0 and at most 1. No dictionary of more atoms than
        dimensions gets below √((d − m)/(m(d − 1))), Welch's bound.

    Raises
    ------
    OutsideBound
        Where a derivative is asked for outside, so by every optimizer that begins there. Data as a starting
        dictionary often is outside: `metrics.coherence` tells. In a learning loop a `ReplaceAtoms` needs a
        `coherence` of at most the bound.

    Notes
    -----
    With h(g) = −weight · log(1 − g²/c²),

        h′(g) = 2 weight · g/(c² − g²),   h″(g) = 2 weight · (c² + g²)/(c² − g²)²,

        ∇R(D) = 2 D h′(G)°,   ∇²R(D)[E] = 2 (E h′(G)° + D (h″(G) ∘ (EᵀD + DᵀE))°).

    On the patches of `Coherence`, at a weight of 1e-7 ‖Y‖², learning:

    =====  ================  =============  ==============
    bound  mutual coherence  rms ⟨dᵢ, dⱼ⟩   ‖Y−DX‖²/‖Y‖²
    =====  ================  =============  ==============
    none   0.84              0.223          0.245
    0.9    0.85              0.222          0.244
    0.8    0.77              0.214          0.244
    0.7    0.68              0.199          0.244
    0.6    0.59              0.181          0.253
    =====  ================  =============  ==============

    References
    ----------
    J. Nocedal and S. J. Wright, Numerical Optimization, 2nd edition, Chapter 19.

    Examples
    --------
    Atoms at 60 degrees have ⟨d₁, d₂⟩ = 1/2:

    >>> D = np.array([[1.0, 0.5], [0.0, np.sqrt(3) / 2]])
    >>> round(LogBarrierCoherence(weight=1.0, bound=0.8).value(D), 6)
    0.990643
    >>> LogBarrierCoherence(weight=1.0, bound=0.4).value(D)
    inf
    >>> LogBarrierCoherence(weight=1.0, bound=0.4).gradient(D)
    Traceback (most recent call last):
    ...
    manifold_dl.regularizers.pairs.OutsideBound: atoms 0 and 1 have |⟨d_0, d_1⟩| = 0.5, and
    LogBarrierCoherence(weight=1.0, bound=0.4) is infinite there: begin with a dictionary whose coherence is
    below 0.4, or choose a larger bound.
    """

    weight: float
    bound: float

    def __post_init__(self):
        require_weight(self.weight, positive=True)
        if not (isinstance(self.bound, Real) and 0 < self.bound <= 1):
            raise ValueError(
                f"bound={self.bound!r}: the coherence of unit atoms lies between 0 and 1, and a bound on it "
                "above 0."
            )

    def value(self, dictionary):
        """Return the penalty, a float; +∞ where a pair of atoms is not below the bound."""
        ratios = _overlaps(dictionary) / float(self.bound)
        if not np.abs(ratios).max(initial=0) < 1:
            return np.inf
        return -float(self.weight) * float(np.log1p(-(ratios**2)).sum())

    def gradient(self, dictionary):
        """Return the m×d gradient 2 D h′(G)°."""
        overlaps, room = self._inside(dictionary)
        return 4 * float(self.weight) * (dictionary @ (overlaps / room))

    def hessian(self, dictionary, direction):
        """Return the m×d derivative of the gradient along `direction`."""
        overlaps, room = self._inside(dictionary)
        curvatures = (float(self.bound) ** 2 + overlaps**2) / room**2
        change = curvatures * _change(dictionary, direction)
        return 4 * float(self.weight) * (direction @ (overlaps / room) + dictionary @ change)

    def _inside(self, dictionary):
        """G° and c² − g², which is positive; or the sentence that says why not."""
        overlaps, c = _overlaps(dictionary), float(self.bound)
        if not np.abs(overlaps).max(initial=0) < c:
            i, j = sorted(np.unravel_index(np.abs(overlaps).argmax(), overlaps.shape))
            raise OutsideBound(
                f"atoms {i} and {j} have |⟨d_{i}, d_{j}⟩| = {abs(overlaps[i, j]):.4g}, and {self!r} is "
                f"infinite there: begin with a dictionary whose coherence is below {c:g}, or choose a larger "
                "bound."
            )
        return overlaps, (c - overlaps) * (c + overlaps)  # c² − g² would lose digits next to the bound


@dataclass(frozen=True, repr=False)
class Decorrelation(Penalty):
    """Separate groups of atoms: R(D) = weight · Σ ⟨d_i, d_j⟩² over all i and j of different groups.

    Use it where groups of atoms stand for different things, such as classes of signals, or cartoon and
    texture, and none should do another's work; inside a group atoms may be as similar as they like.

    Parameters
    ----------
    weight : float
        How much it counts, at least 0, in the units of ‖Y‖².
    groups : sequence of d labels
        Atoms of equal labels form a group; labels are numbers or words. Kept as a tuple.

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
    groups: tuple

    def __post_init__(self):
        require_weight(self.weight)
        labels = np.asarray(self.groups)
        if labels.ndim != 1 or labels.dtype.kind not in "biuUSf":
            raise ValueError(
                f"groups={self.groups!r}: give a list with the label of every atom, a number or a word."
            )
        object.__setattr__(self, "groups", tuple(labels.tolist()))

    def __repr__(self):
        labels = [repr(label) for label in self.groups]
        if len(labels) > 12:
            labels[5:-5] = ["..."]
        return f"Decorrelation(weight={self.weight!r}, groups=({', '.join(labels)}))"

    def value(self, dictionary):
        """Return the penalty, a float."""
        overlaps = self._between(dictionary, dictionary.T @ dictionary)
        return float(self.weight) * float(np.vdot(overlaps, overlaps))

    def gradient(self, dictionary):
        """Return the m×d gradient 4 weight · D (B ∘ G)."""
        overlaps = self._between(dictionary, dictionary.T @ dictionary)
        return 4 * float(self.weight) * (dictionary @ overlaps)

    def hessian(self, dictionary, direction):
        """Return the m×d derivative of the gradient along `direction`."""
        overlaps = self._between(dictionary, dictionary.T @ dictionary)
        change = self._between(dictionary, _change(dictionary, direction))
        return 4 * float(self.weight) * (direction @ overlaps + dictionary @ change)

    def _between(self, dictionary, gram):
        """B ∘ gram."""
        labels = np.asarray(self.groups)
        if len(labels) != dictionary.shape[1]:
            raise ValueError(
                f"groups has {len(labels)} labels, but the dictionary has {dictionary.shape[1]} atoms: "
                "every atom needs one."
            )
        return gram * (labels[:, None] != labels)


def _overlaps(dictionary):
    """G°."""
    return _off_diagonal(dictionary.T @ dictionary)


def _change(dictionary, direction):
    """(EᵀD + DᵀE)°, the change of G° along E."""
    change = direction.T @ dictionary
    return _off_diagonal(change + change.T)


def _off_diagonal(gram):
    np.fill_diagonal(gram, 0)
    return gram
