"""Signals that are not learned from, coded after every iteration: the argument `validation`."""

import math
from typing import Any

import numpy as np

from manifold_dl._missing import Advice
from manifold_dl._validation import as_matrix
from manifold_dl.coders.calling import run_coder
from manifold_dl.learning.batch_passes import computing_here
from manifold_dl.learning.run_settings import Settings
from manifold_dl.learning.signal_sums import LossScale, squared_error

COMPLETE = Advice(
    "They have no weights: give complete signals.",
    "validation signals have no weights: give complete ones, also where those to learn from have missing "
    "entries",
)


def as_validation(validation: Any, m: int, dtype: np.dtype) -> np.ndarray:
    """The signals, of the length and in the type of those to learn from."""
    V = as_matrix(validation, "validation", advice=COMPLETE)
    if len(V) != m:
        raise ValueError(f"validation has signals of length {len(V)}, but the signals have length {m}.")
    return np.asfortranarray(V.astype(dtype, copy=False))


def validation_loss(settings: Settings, dictionary: np.ndarray, signals: Any) -> float:
    """‖V − DX‖²/v of the v validation signals, with the coder's codes; NaN if there are none.

    `signals` are those of the run: where a cluster has them, the validation signals stay in this process.
    """
    V = settings.validation
    if V is None:
        return math.nan
    with computing_here(signals):
        codes = run_coder(settings.coder, V, dictionary, threads=settings.threads)
        scale = LossScale.of(V)
        return scale.per_signal(squared_error(V, dictionary, codes, scale.exponent))
