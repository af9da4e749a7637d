"""Measures of a dictionary: recovered atoms, coherence, conditioning, and singular points.

`recovery` compares with a known dictionary (the synthetic experiments of the paper's Section VI-B),
`coherence` measures the dictionary alone, and `condition_number` is the κ(D) of Section VI-A, for a
dictionary and a support Ω. `is_singular` distinguishes the two kinds of points where descent stops, as in
Section V: a stationary point, where the gradient vanishes, and a singular one, where it does not.
"""

from manifold_dl.metrics.atoms import Match, coherence, match, recovery
from manifold_dl.metrics.conditioning import condition_number, condition_numbers
from manifold_dl.metrics.singular import DiagnosableProblem, Diagnosis, Verdict, is_singular

__all__ = [
    "DiagnosableProblem",
    "Diagnosis",
    "Match",
    "Verdict",
    "coherence",
    "condition_number",
    "condition_numbers",
    "is_singular",
    "match",
    "recovery",
]
