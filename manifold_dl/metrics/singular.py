"""Singular and stationary points: the two kinds of points where descent stops, Section V of the paper."""

from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

import numpy as np

from manifold_dl.metrics.conditioning import extreme_singular_values, ratios
from manifold_dl.optimizers.protocol import members_of_problem

_NEEDED = ("riemannian_gradient", "manifold", "support", "scale")


class DiagnosableProblem(Protocol):
    """What `is_singular` needs of a problem; those of `update_problem` have it."""

    manifold: Any
    support: Any  # sparse, |I|×n
    scale: float  # ‖Y‖²_F
    # Optional: `weights`, an m×n array of weights of the entries, or None.

    @property
    def riemannian_gradient(self) -> Any:
        """Dictionary → Riemannian gradient, as in Pymanopt."""


class Verdict(Enum):
    """What `is_singular` finds; the value of a member is a sentence."""

    STATIONARY = "stationary: the gradient vanishes."
    SINGULAR = "singular: some support is nearly dependent, and the gradient does not vanish."
    NEITHER = "neither: the gradient does not vanish, and every support is well conditioned."


@dataclass(frozen=True)
class Diagnosis:
    """The result of `is_singular`: true if the point is singular, with the numbers behind the verdict.

    Attributes
    ----------
    verdict : Verdict
        Which kind of point it is.
    gradient_norm : float
        ‖grad f‖/‖Y‖²_F, which is invariant to the scale of the signals.
    smallest_singular_value : float
        The smallest λ_min over all supports: the distance to dependent atoms.
    condition_number : float
        κ(D).
    """

    verdict: Verdict
    gradient_norm: float
    smallest_singular_value: float
    condition_number: float

    def __bool__(self) -> bool:
        return self.verdict is Verdict.SINGULAR

    def __str__(self) -> str:
        return (
            f"{self.verdict.value} Gradient norm {self.gradient_norm:.1e} relative to ‖Y‖², "
            f"smallest singular value {self.smallest_singular_value:.1e}, κ = {self.condition_number:.3g}."
        )


def is_singular(
    problem: DiagnosableProblem,
    dictionary: np.ndarray,
    *,
    gradient_tolerance: float = 1e-6,
    max_condition: float = 20.0,
) -> Diagnosis:
    """Distinguish a singular point from a stationary one, Section V of the paper.

    Near both the objective stops decreasing, so the history of its values does not distinguish them. The
    gradient does: it vanishes at a stationary point and stays large at a singular one, where the atoms of
    some support become dependent and the objective is not smooth. With a ridge μ > 0 descent leaves such a
    point; with μ = 0 it converges to it very slowly, and second-order methods leave it only sometimes.

    Parameters
    ----------
    problem : pymanopt.Problem
        A dictionary-update problem: besides Pymanopt's own names it has `support` (sparse, |I|×n) and
        `scale` (‖Y‖²_F), and `weights` (m×n) if entries have weights.
    dictionary : array (m×|I|)
        The point in question.
    gradient_tolerance : float
        The gradient vanishes when ‖grad f‖ ≤ gradient_tolerance·‖Y‖²_F. In the setting of Section VI-A it
        stays around 1e-2 at singular points, and descent brings it below 1e-7 elsewhere.
    max_condition : float
        A dictionary is nearly singular if κ exceeds this. In the same setting κ stays below 10 at regular
        minima, and is above 25 and increasing after 300 steps towards a singular point.

    Returns
    -------
    Diagnosis
        True if the point is singular. A point with a vanishing gradient is stationary for any κ.

    Examples
    --------
    >>> from manifold_dl import update_problem
    >>> D = np.array([[1.0, 0.6], [0.0, 0.8], [0.0, 0.0]])
    >>> problem = update_problem(D @ [[1.0, 2.0], [3.0, 1.0]], [[0, 1], [0, 1]])
    >>> is_singular(problem, D).verdict.name  # an exact fit
    'STATIONARY'
    """
    missing = [name for name in _NEEDED if name not in dir(problem)]
    if missing:
        raise TypeError(
            f"problem is a {type(problem).__name__} without {', '.join(missing)}; "
            "is_singular needs a dictionary-update problem, as update_problem makes them."
        )
    weights = members_of_problem(problem).weights
    largest, smallest = extreme_singular_values(dictionary, problem.support, weights)
    kappa = float(ratios(largest, smallest).max(initial=1.0))

    gradient_norm = float(problem.manifold.norm(dictionary, problem.riemannian_gradient(dictionary)))
    if problem.scale > 0:  # all-zero signals have a zero gradient
        gradient_norm /= float(problem.scale)

    # The comparison is false for NaN: a gradient that overflowed is not small.
    if gradient_norm <= gradient_tolerance:
        verdict = Verdict.STATIONARY
    elif kappa > max_condition:
        verdict = Verdict.SINGULAR
    else:
        verdict = Verdict.NEITHER
    return Diagnosis(verdict, gradient_norm, float(smallest.min(initial=1.0)), kappa)
