"""Checks of the parameters of coders, with sentences that say what is allowed."""

from numbers import Real
from typing import Any

import numpy as np

from manifold_dl._validation import as_dictionary, as_observed, require_count
from manifold_dl._weights import JointWeights
from manifold_dl.engines.blocked import BlockedSignals


def as_problem(signals: Any, dictionary: Any, weights: Any = None) -> tuple[Any, np.ndarray, Any]:
    """Signals, a dictionary of the same dtype and m×n weights, finite and of fitting shapes.

    Weights per signal are not returned: each multiplies all that a coder minimises for its signal, so the
    codes are those without it. A signal of weight 0 becomes zero, and so do its codes.
    """
    is_blocked = isinstance(signals, BlockedSignals)  # these were checked when they were opened
    Y, W = (signals, weights) if is_blocked else as_observed(signals, weights)
    D = as_dictionary(dictionary, n_rows=Y.shape[0])
    if isinstance(W, JointWeights):
        W = W.entries
    elif W is not None and W.ndim == 1:
        W = None
    return Y, D.astype(Y.dtype, copy=False), W


def require_array(signals: Any, coder: Any) -> None:
    """Refuse signals that an engine has, for a coder without a function of one block."""
    if isinstance(signals, BlockedSignals):
        raise TypeError(
            f"the coder {coder!r} needs all signals at a time, and {signals.engine!r} has these: use "
            "another one, or signals in memory."
        )


def require_sparsity(sparsity: Any, m: int | None = None, d: int | None = None) -> None:
    """Refuse a number of atoms per signal that is not a whole number between 1 and min(m, d)."""
    require_count("sparsity", sparsity, "a code needs at least one atom", wrong_type=TypeError)
    if m is not None and sparsity > m:
        raise ValueError(
            f"sparsity={sparsity} exceeds the signal dimension m={m}; more atoms are always dependent."
        )
    if d is not None and sparsity > d:
        raise ValueError(f"sparsity={sparsity} exceeds the number of atoms d={d}.")


def require_stopping_rule(coder: Any) -> None:
    """Refuse a pursuit that would not end: it needs a sparsity, a tolerance or both."""
    if coder.sparsity is None and coder.tol is None:
        raise ValueError(
            f"{type(coder).__name__} needs a reason to stop: give sparsity (atoms per signal), "
            "tol (squared residual per signal) or both."
        )
    if coder.sparsity is not None:
        require_sparsity(coder.sparsity)
    if coder.tol is not None:
        require_tolerance(coder.tol)


def require_tolerance(tol: Any) -> None:
    """Refuse a squared residual that is not a finite number, 0 or larger."""
    if not isinstance(tol, Real) or isinstance(tol, bool):
        raise TypeError(f"tol={tol!r}: the squared residual allowed per signal is a number.")
    tol = float(tol)
    if not (np.isfinite(tol) and tol >= 0):
        raise ValueError(
            f"tol={tol}: the squared residual allowed per signal must be finite and not negative."
        )


def require_fraction(name: str, value: Any) -> None:
    """Refuse what is not a number between 0 and 1, both excluded."""
    if not (isinstance(value, Real) and 0 < float(value) < 1):
        raise ValueError(f"{name}={value!r}: a fraction between 0 and 1 is needed.")
