"""`LogBarrierCoherence`: a bound on the mutual coherence, kept by a logarithmic barrier.

A penalty on pairs of atoms like those of `pairs.py`, with a function that is infinite at a bound.
"""

from dataclasses import dataclass
from numbers import Real

import numpy as np

from manifold_dl.regularizers.algebra import Penalty
from manifold_dl.regularizers.gram import change_of_overlaps, overlaps_of
from manifold_dl.regularizers.weights import require_weight


class OutsideBound(ArithmeticError, ValueError):
    """A derivative was evaluated where the penalty is infinite.

    It is an arithmetic error, so that line searchers reject a trial point there, and a value error for a
    caller that starts there.
    """


@dataclass(frozen=True)
class LogBarrierCoherence(Penalty):
    """Keep |⟨d_i, d_j⟩| below a bound: R(D) = −weight · Σ_{i≠j} log(1 − ⟨d_i, d_j⟩²/bound²).

    Use it where a bound on the mutual coherence has to hold, and `Coherence` where a small one is enough. Far
    from the bound it is `Coherence` with power 2 and the weight `weight`/bound². At the bound and beyond it
    R = +∞: line searches reduce the step and a trust region shrinks, so a run that starts inside stays
    inside.

    Parameters
    ----------
    weight : float
        Above 0, in the units of ‖Y‖². The smaller it is, the closer to the bound atoms may be where that
        improves the fit.
    bound : float
        The coherence that is never reached, above 0 and at most 1. No dictionary of more atoms than
        dimensions has a coherence below √((d − m)/(m(d − 1))), Welch's bound.

    Raises
    ------
    OutsideBound
        If a derivative is evaluated outside, as by every optimizer that starts there. Signals as an initial
        dictionary are often outside: see `metrics.coherence`. In a learning loop a `ReplaceAtoms` needs a
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
    manifold_dl.regularizers.barrier.OutsideBound: atoms 0 and 1 have |⟨d_0, d_1⟩| = 0.5, and
    LogBarrierCoherence(weight=1.0, bound=0.4) is infinite there: begin with a dictionary whose coherence is
    below 0.4, or choose a larger bound.
    """

    weight: float
    bound: float

    def __post_init__(self) -> None:
        require_weight(self.weight, positive=True)
        if not (isinstance(self.bound, Real) and 0 < self.bound <= 1):
            raise ValueError(
                f"bound={self.bound!r}: the coherence of unit atoms lies between 0 and 1, and the bound "
                "must be above 0."
            )

    def value(self, dictionary: np.ndarray) -> float:
        """Return the penalty, a float; +∞ where a pair of atoms is not below the bound."""
        ratios = overlaps_of(dictionary) / float(self.bound)
        if not np.abs(ratios).max(initial=0) < 1:
            return np.inf
        return -float(self.weight) * float(np.log1p(-(ratios**2)).sum())

    def gradient(self, dictionary: np.ndarray) -> np.ndarray:
        """Return the m×d gradient 2 D h′(G)°."""
        overlaps, gaps = self._inside(dictionary)
        return 4 * float(self.weight) * (dictionary @ (overlaps / gaps))

    def hessian(self, dictionary: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """Return the m×d derivative of the gradient along `direction`."""
        overlaps, gaps = self._inside(dictionary)
        curvatures = (float(self.bound) ** 2 + overlaps**2) / gaps**2
        change = curvatures * change_of_overlaps(dictionary, direction)
        return 4 * float(self.weight) * (direction @ (overlaps / gaps) + dictionary @ change)

    def _inside(self, dictionary: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return G° and c² − g², which is positive inside; raise `OutsideBound` outside."""
        overlaps, c = overlaps_of(dictionary), float(self.bound)
        if not np.abs(overlaps).max(initial=0) < c:
            i, j = sorted(np.unravel_index(np.abs(overlaps).argmax(), overlaps.shape))
            raise OutsideBound(
                f"atoms {i} and {j} have |⟨d_{i}, d_{j}⟩| = {abs(overlaps[i, j]):.4g}, and {self!r} is "
                f"infinite there: begin with a dictionary whose coherence is below {c:g}, or choose a larger "
                "bound."
            )
        return overlaps, (c - overlaps) * (c + overlaps)  # c² − g² would lose digits next to the bound
