"""The part of the contract of a dictionary update that concerns weights: `check_update` calls it.

A rule with a keyword `weights` must lower the weighted objective, and must not look at missing entries. It
may refuse weights with a `ValueError`, as `KSVD` refuses those of entries.
"""

from collections.abc import Callable
from numbers import Real
from typing import Any

import numpy as np

from manifold_dl.components.calling import takes
from manifold_dl.diagnostics.report import CheckFailed, Inspection

Run = Callable[..., tuple[np.ndarray, Any]]


def check_weights(
    inspection: Inspection, update: Any, run: Run, Y: np.ndarray, D: np.ndarray, X: Any, rounding: float
) -> None:
    """Check an update with a weight per signal, and with a weight per entry of which some are zero.

    Parameters
    ----------
    inspection : Inspection
        Where the facts are recorded.
    update : DictionaryUpdate
        The rule.
    run : callable (signals, dictionary, codes, weights) → (dictionary, codes)
        Calls the rule, and raises `CheckFailed` if it fails.
    Y, D, X : m×n, m×d and sparse d×n arrays
        Signals, dictionary and codes on supports of at most m − 2 atoms.
    rounding : float
        By which fraction of ‖Y‖² the objective may seem to rise.
    """
    if not takes(update, "weights"):
        inspection.skip("weights (there is no keyword `weights`)")
        return
    for kind, weights in _weights(Y).items():
        missing = np.broadcast_to(weights == 0, Y.shape)
        try:
            D_new, X_new = run(np.where(missing, 0, Y), D, X, weights)
        except CheckFailed as fault:
            if not isinstance(fault.__cause__, ValueError):
                raise
            inspection.skip(f"a weight per {kind} (refused: {fault.__cause__})")
            continue
        if getattr(update, "keeps_supports", True):
            old, new = (_objective(update, Y, *pair, weights) for pair in ((D, X), (D_new, X_new)))
            inspection.require(
                new <= old + rounding * max(abs(old), float(np.vdot(Y, Y))),
                f"with a weight per {kind} the objective does not rise",
                f"raised the objective with a weight per {kind} from {old:.6g} to {new:.6g}",
            )
        D_nan, X_nan = run(np.where(missing, np.nan, Y), D, X, weights)
        inspection.require(
            np.array_equal(D_new, D_nan) and np.array_equal(X_new.toarray(), X_nan.toarray()),
            f"with a weight per {kind} missing values do not matter",
            "gave another result when entries of weight zero were NaN",
        )


def _weights(Y: np.ndarray) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(0)
    per_signal, per_entry = np.ones(Y.shape[1], Y.dtype), np.ones_like(Y)
    for weights in (per_signal, per_entry):
        weights *= rng.uniform(0.5, 2.0, weights.shape).astype(Y.dtype)
    per_entry[-2:][rng.random((2, Y.shape[1])) > 0.5] = 0  # enough entries for every support are left
    return {"signal": per_signal, "entry": per_entry}


def _objective(update: Any, Y: Any, D: Any, X: Any, weights: np.ndarray) -> float:
    """Σ w (Y − DX)² + μ‖X‖² + Σ R(D), where a weight per signal multiplies μ, too."""
    mu = update.mu_at(0) if hasattr(update, "mu_at") else getattr(update, "mu", 0.0)
    mu = float(mu) if isinstance(mu, Real) else 0.0
    Y, D, X = Y.astype(float), D.astype(float), X.toarray().astype(float)
    of_signals = weights if weights.ndim == 1 else 1.0
    fit = np.sum(weights * (Y - D @ X) ** 2) + mu * np.sum(of_signals * X**2)
    return float(fit) + sum(float(penalty.value(D)) for penalty in getattr(update, "regularizers", ()))
