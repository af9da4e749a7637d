"""What update rules, replacement policies and callbacks return, checked before it is used.

`adapters.py` and the learning loop call the components through these functions. A component that fails, or
returns what cannot be right, is named by a `ComponentError`. What the components of this package return is
checked by their tests, so only those of the user are checked here.
"""

from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_dictionary
from manifold_dl._weights import plain
from manifold_dl.coders.calling import as_codes
from manifold_dl.components.calling import call, require_weights
from manifold_dl.components.errors import ComponentError, is_users, naming
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.units import norms_or_one
from manifold_dl.updates import SimCO

Pair = tuple[np.ndarray, scipy.sparse.csc_array]


def run_update(
    update: Any,
    run: Any,
    signals: np.ndarray,
    dictionary: np.ndarray,
    codes: Any,
    *,
    iteration: int,
    rng: np.random.Generator | int | None,
    weights: np.ndarray | None = None,
) -> Pair:
    """One stage of an update rule, at work as `run` (see `updates.begin`): the new dictionary and codes.

    A rule of the user gets those of `iteration`, `rng` and `weights` that its signature names; where there
    are weights, it has to name them. It may return atoms of any norm: they are made unit atoms, and the codes
    are scaled so that D X is unchanged.
    """
    options: dict[str, Any] = {"iteration": iteration, "rng": rng}
    if weights is not None:
        require_weights(update, "update rule", run)
        options["weights"] = plain(weights) if is_users(update) else weights
    _require_block_form(update, "update rule", signals)
    with naming(update, "update rule"):
        if not is_users(update):
            return run(signals, dictionary, codes, **options)
        # A copy: the rule may change its dictionary in place, and this one may be the best so far.
        outcome = call(update, "update rule", run, signals, dictionary.copy(), codes, **options)
    if not (isinstance(outcome, tuple | list) and len(outcome) == 2):
        fault = f"returned {_kind(outcome)}, where a pair (dictionary, codes) is expected"
        raise ComponentError(update, "update rule", fault)
    D = _as_atoms(outcome[0], dictionary.shape, signals.dtype, update, "update rule")
    shape = dictionary.shape[1], signals.shape[1]
    X = as_codes(outcome[1], update, shape, signals.dtype, role="update rule")
    # Only SimCO's manifolds may have atoms of other norms.
    return (D, X) if isinstance(update, SimCO) else _with_unit_atoms(D, X)


def run_replacement(
    replace: Any, signals: np.ndarray, dictionary: np.ndarray, codes: Any, weights: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The dictionary after a replacement policy, and the indices of the atoms that it replaced."""
    options = {}
    if weights is not None:
        require_weights(replace, "replacement policy", replace)
        options = {"weights": plain(weights) if is_users(replace) else weights}
    _require_block_form(replace, "replacement policy", signals)
    with naming(replace, "replacement policy"):
        outcome = replace(signals, dictionary, codes, **options)
    if not is_users(replace):
        return outcome
    if not (isinstance(outcome, tuple | list) and len(outcome) == 2):
        fault = f"returned {_kind(outcome)}, where a pair (dictionary, replaced atoms) is expected"
        raise ComponentError(replace, "replacement policy", fault)
    D = _as_atoms(outcome[0], dictionary.shape, signals.dtype, replace, "replacement policy")
    replaced, d = np.asarray(outcome[1]), dictionary.shape[1]
    if replaced.size == 0:
        replaced = replaced.astype(np.intp)
    if replaced.ndim != 1 or replaced.dtype.kind not in "iu" or ((replaced < 0) | (replaced >= d)).any():
        fault = (
            f"returned {outcome[1]!r} as the atoms it replaced, where indices from 0 to {d - 1} are expected"
        )
        raise ComponentError(replace, "replacement policy", fault)
    return D, replaced


def _require_block_form(part: Any, role: str, signals: Any) -> None:
    """Refuse a part of the user's where an engine has the signals: it takes arrays."""
    if isinstance(signals, BlockedSignals) and is_users(part):
        raise TypeError(
            f"the {role} {part!r} takes arrays, and these signals are with {signals.engine!r}: use one of "
            "this package, or signals in memory."
        )


def requests_stop(callback: Any, step: Any) -> bool:
    """Call a callback; whether it returned True."""
    with naming(callback, "callback"):
        answer = callback(step)
    if answer is None or isinstance(answer, bool | np.bool_):
        return bool(answer)
    fault = (
        f"returned {_kind(answer)}; a callback returns True to stop the learning, and False or None to go on"
    )
    raise ComponentError(callback, "callback", fault)


def _as_atoms(array: Any, shape: tuple, dtype: np.dtype, part: Any, role: str) -> np.ndarray:
    """The dictionary that a part returned: a copy, which later iterations of the part cannot change."""
    array = np.asarray(array)
    if array.shape != shape:
        fault = f"returned a dictionary of shape {array.shape}, where m×d = {shape}"
        raise ComponentError(part, role, fault)
    try:
        return np.array(as_dictionary(array, name="the dictionary"), dtype=dtype)
    except (TypeError, ValueError) as error:
        fault = f"returned a dictionary that cannot be used: {str(error).rstrip('.')}"
        raise ComponentError(part, role, fault) from error


def _with_unit_atoms(D: np.ndarray, X: scipy.sparse.csc_array) -> Pair:
    norms = norms_or_one(D)
    if (norms == 1).all():
        return D, X
    X = X.copy()
    X.data *= norms[X.indices]
    return D / norms, X


def _kind(value: Any) -> str:
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)} items"
    shown = repr(value)
    return shown if value is None or len(shown) <= 30 else f"a {type(value).__name__}"
