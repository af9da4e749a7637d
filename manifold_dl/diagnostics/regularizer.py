"""The contract of a regularizer: one smooth number, and its derivatives."""

import math
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from manifold_dl.diagnostics.report import CheckFailed, Inspection, Report
from manifold_dl.diagnostics.smoothness import check_smooth
from manifold_dl.diagnostics.taylor import taylor_report
from manifold_dl.regularizers import Scaled, Sum, differentiable
from manifold_dl.regularizers.algebra import Function, as_regularizer
from manifold_dl.regularizers.protocol import has_member

# Derivatives that differ by rounding only agree to this fraction of their size.
_AGREE = 1e-8


def check_regularizer(
    regularizer: Any,
    dictionary: np.ndarray | None = None,
    *,
    m: int = 16,
    n_atoms: int = 12,
    rng: np.random.Generator | int | None = 0,
) -> Report:
    """Check a penalty on the dictionary, and its derivatives, given or supplied by autograd.

    `value` is one finite number, the same at every call, leaves the dictionary alone, and is smooth: it has
    no kinks along random paths, where entries are zero and where atoms are orthogonal. The gradient is m×d,
    finite, and leaves a Taylor remainder of slope 2. The Hessian product is m×d, finite, linear and
    symmetric, and leaves slope 3; it is skipped, with the reason, if neither the regularizer nor autograd has
    one. Both agree with autograd's, if autograd can differentiate `value`.

    Parameters
    ----------
    regularizer : Regularizer, or function of the dictionary
        The penalty to check.
    dictionary : m×d array, optional
        Where to check. By default m×n_atoms unit atoms at random, which suit any regularizer that
        is defined everywhere.
    m, n_atoms : int
        The shape of a random dictionary, for regularizers that suit only some.
    rng : Generator or seed
        For the random dictionary and directions.

    Returns
    -------
    Report
        What holds and what was skipped.

    Raises
    ------
    CheckFailed
        An `AssertionError` that names the first fault found.

    Examples
    --------
    >>> import autograd.numpy as anp
    >>> def peaks(D):
    ...     return anp.sum(D**4)
    >>> check_regularizer(peaks).subject
    'peaks'
    >>> check_regularizer(lambda D: anp.sum(anp.abs(D)))
    Traceback (most recent call last):
    ...
    manifold_dl.diagnostics.report.CheckFailed: <lambda> is not smooth: its slope jumps where an entry of the
    dictionary is zero. Take a smooth function in its place, such as √(x² + ε) for |x|.
    """
    penalty = differentiable(regularizer)
    regularizer = as_regularizer(regularizer)
    combined = isinstance(regularizer, (Scaled, Sum))
    inspection = Inspection(repr(regularizer) if combined else regularizer)
    rng = np.random.default_rng(rng)
    drawn = dictionary is None
    if drawn:
        dictionary = rng.standard_normal((m, n_atoms))
        dictionary /= np.linalg.norm(dictionary, axis=0)
    D = np.array(dictionary, dtype=float)
    U, V = (_unit(rng.standard_normal(D.shape)) for _ in range(2))

    _check_value(inspection, regularizer, D, drawn)
    gradient = _check_gradient(inspection, regularizer, penalty, D)
    check_smooth(inspection, penalty, D, rng)
    slope = np.vdot(gradient, U)
    _check_taylor(inspection, "gradient", penalty, D, U, [slope])
    hessian = _check_hessian(inspection, regularizer, penalty, D, U, V)
    if hessian is not None:
        _check_taylor(inspection, "Hessian", penalty, D, U, [slope, np.vdot(hessian, U)])
    _check_autograd(inspection, regularizer, D, U, gradient, hessian)
    _check_shared_work(inspection, regularizer, D, U, gradient, hessian)
    return inspection.report()


def _check_value(inspection: Inspection, regularizer: Any, D: np.ndarray, drawn: bool) -> None:
    before = D.copy()
    m, d = D.shape
    advice = f"; checked at {m}×{d}: pass m= and n_atoms= if it is made for another size" if drawn else ""
    value = _call(inspection, lambda: _raw_value(regularizer, D), "{} in its value", advice)
    scalar = np.ndim(value) == 0 and np.asarray(value).dtype.kind in "fiub"
    found = f"an array of shape {np.shape(value)}" if np.ndim(value) else repr(value)
    inspection.require(scalar, "the value is one number", f"has a value that is {found}, not one real number")
    inspection.require(
        math.isfinite(value),
        "the value is finite",
        f"is {float(value)} at the dictionary; pass one at which the penalty is finite",
    )
    unchanged = np.array_equal(before, D)
    inspection.require(unchanged, "leaves the dictionary alone", "changed the dictionary it was given")
    again = _raw_value(regularizer, D) == value
    fault = "is not deterministic: a second call gave another value"
    inspection.require(again, "a second call gives the same value", fault)


def _raw_value(regularizer: Any, D: np.ndarray) -> Any:
    """Return the value as it was returned, before it is converted to a float."""
    return regularizer(D) if isinstance(regularizer, Function) else regularizer.value(D)


def _check_gradient(inspection: Inspection, regularizer: Any, penalty: Any, D: np.ndarray) -> np.ndarray:
    own = has_member(regularizer, "gradient") and not isinstance(regularizer, Function)
    before = D.copy()
    missing = "{} in its gradient" if own else "has no gradient: {}"
    gradient = _call(inspection, lambda: penalty.gradient(D), missing)
    return _check_array(inspection, "gradient", gradient, D, before)


def _check_array(
    inspection: Inspection, name: str, array: Any, D: np.ndarray, before: np.ndarray
) -> np.ndarray:
    """Return a derivative that has the shape of D, is finite, and was computed without changing D."""
    unchanged = np.array_equal(before, D)
    inspection.require(unchanged, "leaves the dictionary alone", "changed the dictionary in a derivative")
    shape = np.shape(array) if array is not None else None
    found = "None" if shape is None else f"shape {shape}"
    fault = f"returned a {name} of {found} where m×d = {D.shape}"
    inspection.require(shape == D.shape, f"the {name} is m×d", fault)
    array = np.asarray(array)
    finite = array.dtype.kind in "fiub" and np.isfinite(array).all()
    inspection.require(finite, f"the {name} is finite", f"returned a {name} that is not finite")
    return array


def _check_taylor(
    inspection: Inspection, subject: str, penalty: Any, D: np.ndarray, U: np.ndarray, derivatives: list[float]
) -> None:
    report = taylor_report(subject, lambda t: penalty.value(D + t * U), derivatives, size=np.abs(D).max())
    if not report:
        message = f"{inspection.subject}: {report.verdict[0].lower()}{report.verdict[1:]}"
        raise CheckFailed(message, report)
    slope = "exactly" if report.slope == math.inf else f"with slope {report.slope:.2f}"
    inspection.require(True, f"the {subject} belongs to the value, {slope}", "")


def _check_hessian(
    inspection: Inspection, regularizer: Any, penalty: Any, D: np.ndarray, U: np.ndarray, V: np.ndarray
) -> np.ndarray | None:
    """Return the Hessian product with U, which is linear and symmetric; None if there is none."""
    before = D.copy()
    if has_member(regularizer, "hessian"):
        hessian = _call(inspection, lambda: penalty.hessian(D, U), "{} in its hessian")
    else:
        try:
            hessian = penalty.hessian(D, U)
        except TypeError as error:  # autograd cannot differentiate the value; the gradient was checked
            reason = str(error).rstrip(".")
            inspection.skip(
                f"the Hessian, which second-order optimizers such as TrustRegions need ({reason})"
            )
            return None
    hessian = _check_array(inspection, "Hessian product", hessian, D, before)
    other = np.asarray(penalty.hessian(D, V))
    size = np.linalg.norm(hessian) + np.linalg.norm(other)
    both = np.asarray(penalty.hessian(D, 2 * U - V))
    linear = np.linalg.norm(both - 2 * hessian + other) <= _AGREE * size
    fault = "has a Hessian product that is not linear in the direction"
    inspection.require(linear, "the Hessian product is linear", fault)
    symmetric = abs(np.vdot(hessian, V) - np.vdot(U, other)) <= _AGREE * size
    fault = "has a Hessian that is not symmetric: ⟨H[U], V⟩ and ⟨U, H[V]⟩ differ"
    inspection.require(symmetric, "the Hessian is symmetric", fault)
    return hessian


class _ValueOnly:
    """A regularizer without its derivatives, so that autograd supplies them."""

    def __init__(self, regularizer: Any) -> None:
        self.value = regularizer.value


def _check_autograd(
    inspection: Inspection, regularizer: Any, D: np.ndarray, U: np.ndarray, gradient: np.ndarray, hessian: Any
) -> None:
    automatic = differentiable(_ValueOnly(regularizer))
    derivatives: dict[Literal["gradient", "hessian"], tuple[Any, Callable[[], np.ndarray]]] = {
        "gradient": (gradient, lambda: automatic.gradient(D)),
        "hessian": (hessian, lambda: automatic.hessian(D, U)),
    }
    for name, (ours, supply) in derivatives.items():
        if isinstance(regularizer, Function) or not has_member(regularizer, name):
            inspection.skip(f"the {name} agrees with autograd (which supplies it)")
            continue
        try:
            theirs = supply()
        except TypeError:  # its value is written with NumPy, or in C: the slopes must suffice
            inspection.skip("agrees with autograd (which cannot differentiate its value)")
            return
        close = np.linalg.norm(ours - theirs) <= _AGREE * (np.linalg.norm(theirs) or 1)
        fault = f"has a {name} that differs from autograd's"
        inspection.require(close, f"the {name} agrees with autograd", fault)


def _check_shared_work(
    inspection: Inspection, regularizer: Any, D: np.ndarray, U: np.ndarray, gradient: np.ndarray, hessian: Any
) -> None:
    if not has_member(regularizer, "at"):
        return
    evaluated = regularizer.at(D)
    results = {"value": (evaluated.value, regularizer.value(D)), "gradient": (evaluated.gradient, gradient)}
    if hessian is not None:
        results["hessian"] = (evaluated.hessian(U), hessian)
    for name, (shared, alone) in results.items():
        shared = shared() if callable(shared) else shared
        close = np.linalg.norm(shared - alone) <= _AGREE * (np.linalg.norm(alone) or 1)
        fault = f"has an at(dictionary) whose {name} is not the one that {name}(dictionary) returns"
        inspection.require(close, "at(dictionary) gives the same numbers", fault)


def _call(inspection: Inspection, function: Callable[[], Any], fault: str, advice: str = "") -> Any:
    """Return the result of user code; an exception becomes a fault, with its type and message.

    The advice is for errors due to a dictionary of another size than expected.
    """
    try:
        return function()
    except Exception as error:
        said = str(error).rstrip(".")
        found = said if fault.startswith("has no") else f"raised {type(error).__name__}: {said}"
        advice = advice if isinstance(error, ValueError | IndexError) else ""
        inspection.fail(fault.format(found) + advice, cause=error)


def _unit(array: np.ndarray) -> np.ndarray:
    return array / np.linalg.norm(array)
