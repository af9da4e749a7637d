"""The contract of a dictionary update: better atoms and codes on the same support."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse

from manifold_dl.coders.calling import as_codes
from manifold_dl.components.calling import call
from manifold_dl.diagnostics.report import Inspection, Report, require_object
from manifold_dl.diagnostics.update_weights import check_weights
from manifold_dl.problem.solvers import members_of_coder
from manifold_dl.updates.protocol import coder_of, keeps_supports, regularizers_of, ridge_of

# Relative rounding of sums over a few hundred entries, times the condition of a few random atoms.
_ROUNDING = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-4}


def check_update(
    update: Any,
    *,
    m: int = 8,
    n_atoms: int = 12,
    n_signals: int = 60,
    sparsity: int = 3,
    unit_atoms: bool = True,
    objective: Callable[[Any, Any, Any], float] | None = None,
    dtype: npt.DTypeLike = float,
    rng: np.random.Generator | int | None = 0,
) -> Report:
    """Check that ``update(signals, dictionary, codes, iteration=0, rng=...)`` is a dictionary update.

    On random signals, with least-squares codes on a random support, one signal of zeros and one unused atom:
    the result has the right shapes, types and finite numbers; atoms have unit norm; no code appears outside
    the support; the objective does not rise; the arguments are not changed; and the same seed gives the same
    bits. An update with a keyword `weights` is called with a weight per signal and with a weight per entry,
    too: the weighted objective does not rise, and missing entries may be NaN. It may refuse either with a
    `ValueError`.

    Parameters
    ----------
    update : DictionaryUpdate
        Called with signals, dictionary and codes.
    m, n_atoms, n_signals, sparsity : int
        The size of the problem.
    unit_atoms : bool
        False for an update that does not keep atoms at norm one.
    objective : callable (signals, dictionary, codes) → float, optional
        What must not rise. By default ‖Y − DX‖² + μ‖X‖² + Σ R(D), with the ridge and the regularizers that
        the update declares as `mu` (or `mu_at(iteration)`) and `regularizers`, if any.
    dtype : float64 or float32
        The dtype of all arrays.
    rng : Generator or seed
        For the random problem.

    Returns
    -------
    Report
        What holds, what was remarked upon and what was skipped.

    Raises
    ------
    CheckFailed
        An `AssertionError` that names the first fault found.

    Examples
    --------
    >>> from manifold_dl.updates import KSVD
    >>> bool(check_update(KSVD()))
    True
    """
    require_object(update, "__call__", "SimCO()")
    dtype = np.dtype(dtype)
    inspection = Inspection(update)
    Y, D, X = _problem(m, n_atoms, n_signals, sparsity, dtype, np.random.default_rng(rng))
    objective = objective or _declared_objective(update)
    before = Y.copy(), D.copy(), X.copy()
    D_new, X_new = _run(inspection, update, Y, D, X)

    _check_form(inspection, D_new, X_new, D)
    same_input = np.array_equal(before[0], Y) and np.array_equal(before[1], D) and _same(before[2], X)
    inspection.require(same_input, "the arguments are left as they were", "changed an argument it was given")
    _check_norms(inspection, D_new, unit_atoms)
    _check_supports(inspection, update, X, X_new)
    if objective is None:
        inspection.skip("the objective does not rise (it is not known: give it)")
    else:
        old, new = objective(Y, D, X), objective(Y, D_new, X_new)
        inspection.require(
            new <= old + _ROUNDING[dtype] * max(abs(old), float(np.vdot(Y, Y))),
            "the objective does not rise",
            f"raised the objective from {old:.6g} to {new:.6g}",
        )
    D_again, X_again = _run(inspection, update, *before)
    inspection.require(
        np.array_equal(D_new, D_again) and _same(X_new, X_again),
        "the same seed gives the same bits",
        "is not deterministic: a second call with the same rng gave another result",
    )
    check_weights(inspection, update, partial(_run, inspection, update), *before, _ROUNDING[dtype])
    return inspection.report()


def _check_supports(inspection: Inspection, update: Any, X: Any, X_new: Any) -> None:
    if not keeps_supports(update):
        inspection.skip("the support does not grow (the rule finds its own)")
        return
    grown = (X_new.toarray() != 0) & (X.toarray() == 0)
    where = tuple(int(i) for i in np.argwhere(grown)[0]) if grown.any() else ()
    fault = f"put a code outside of the support, at {where}"
    inspection.require(not grown.any(), "the support does not grow", fault)


def _check_norms(inspection: Inspection, D_new: np.ndarray, unit_atoms: bool) -> None:
    if not unit_atoms:
        inspection.skip("atoms have unit norm (not required)")
        return
    norms = np.linalg.norm(D_new.astype(float), axis=0)
    i = np.argmax(np.abs(norms - 1))
    fault = f"returned an atom of norm {norms[i]:.6g}; atom {i} should have norm 1"
    inspection.require(abs(norms[i] - 1) <= _ROUNDING[D_new.dtype], "atoms have unit norm", fault)


def _problem(
    m: int, n_atoms: int, n_signals: int, sparsity: int, dtype: np.dtype, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, scipy.sparse.csc_array]:
    D = rng.standard_normal((m, n_atoms))
    D /= np.linalg.norm(D, axis=0)
    Y = rng.standard_normal((m, n_signals))
    Y[:, 0] = 0
    X = np.zeros((n_atoms, n_signals))
    for j in range(n_signals):
        I = rng.choice(n_atoms - 1, sparsity, replace=False)  # the last atom is not used
        X[I, j] = np.linalg.lstsq(D[:, I], Y[:, j])[0]
    return Y.astype(dtype), D.astype(dtype), scipy.sparse.csc_array(X.astype(dtype))


def _declared_objective(update: Any) -> Callable[..., float] | None:
    """‖Y − DX‖² with the penalties on codes and dictionary that the rule states; None if it does not."""
    coder = coder_of(update)
    if not keeps_supports(update) and members_of_coder(coder).penalty is None:
        return None
    mu, penalties = ridge_of(update, 0), regularizers_of(update)

    def objective(Y: Any, D: Any, X: Any) -> float:
        Y, D, X = Y.astype(float), D.astype(float), X.astype(float)
        fit = np.sum((Y - D @ X) ** 2) + mu * np.sum(X.data**2)
        on_codes = 0.0 if coder is None else 2 * coder.penalty(X)  # of ½‖Y − DX‖²
        return float(fit) + on_codes + sum(float(penalty.value(D)) for penalty in penalties)

    return objective


def _run(
    inspection: Inspection,
    update: Any,
    Y: np.ndarray,
    D: np.ndarray,
    X: scipy.sparse.csc_array,
    weights: np.ndarray | None = None,
) -> tuple[np.ndarray, scipy.sparse.csc_array]:
    """Return the new dictionary and codes, which are m×d and d×n."""
    with inspection.calling():
        options = {"iteration": 0, "rng": np.random.default_rng(0), "weights": weights}
        result = call(update, "update rule", update, Y, D, X, **options)
    pair = isinstance(result, tuple | list) and len(result) == 2
    fault = f"returned {type(result).__name__}, where a pair (dictionary, codes) is expected"
    inspection.require(pair, "returns a dictionary and codes", fault)
    D_new, X_new = result
    fault = f"returned a dictionary of shape {np.shape(D_new)} where m×d = {D.shape}"
    inspection.require(np.shape(D_new) == D.shape, "the dictionary is m×d", fault)
    if not (scipy.sparse.issparse(X_new) and X_new.format == "csc"):
        kind = type(X_new).__name__
        inspection.remark(f"returns codes that are {kind}, and are converted: a csc_array is faster")
    with inspection.calling():
        dtype = X_new.dtype if scipy.sparse.issparse(X_new) else np.asarray(X_new).dtype
        X_new = as_codes(X_new, update, X.shape, dtype)
    return np.asarray(D_new), X_new


def _check_form(
    inspection: Inspection, D_new: np.ndarray, X_new: scipy.sparse.csc_array, D: np.ndarray
) -> None:
    fault = f"returned {D_new.dtype} atoms and {X_new.dtype} codes for {D.dtype} signals"
    inspection.require(D_new.dtype == X_new.dtype == D.dtype, "the dtype is that of the signals", fault)
    fault = "returned numbers that are not finite"
    inspection.require(np.isfinite(D_new).all(), "all numbers are finite", fault)


def _same(A: scipy.sparse.csc_array, B: scipy.sparse.csc_array) -> bool:
    return A.shape == B.shape and np.array_equal(A.toarray(), B.toarray())
