"""The contract of a regularizer: one smooth number, and derivatives that belong to it."""

import math
from typing import Any

import numpy as np

from manifold_dl.diagnostics.report import CheckFailed, Inspection, Report
from manifold_dl.diagnostics.smoothness import find_kink
from manifold_dl.diagnostics.taylor import taylor_report
from manifold_dl.regularizers import Scaled, Sum, differentiable
from manifold_dl.regularizers.functions import Function, as_regularizer

# Derivatives that differ by rounding only agree to this part of their size.
_AGREE = 1e-8


def check_regularizer(
    regularizer: Any,
    dictionary: np.ndarray | None = None,
    *,
    m: int = 16,
    n_atoms: int = 12,
    rng: Any = 0,
) -> Report:
    """Check a penalty on the dictionary, and its derivatives, given or supplied by autograd.

    `value` is one finite number, the same at every call, leaves the dictionary alone, and is smooth: it has
    no kinks along random paths, where entries are zero and where atoms are orthogonal. The gradient is m×d,
    finite, and leaves a Taylor remainder of slope 2. The Hessian product is m×d, finite, linear and
    symmetric, and leaves slope 3; it is skipped, with the reason, if neither the regularizer nor autograd has
    one. Both agree with autograd's, if autograd can see through `value`.

    Parameters
    ----------
    regularizer : Regularizer, or function of the dictionary
    dictionary : m×d array, optional
        Where to check. By default m×n_atoms unit atoms at random, which suit any regularizer that
        is defined everywhere.
    m, n_atoms : int
        The shape of a random dictionary, for regularizers that suit only some.
    rng : Generator or seed

    Returns
    -------
    Report

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
    _check_smooth(inspection, penalty, D, rng)
    slope = np.vdot(gradient, U)
    _check_taylor(inspection, "gradient", penalty, D, U, [slope])
    hessian = _check_hessian(inspection, regularizer, penalty, D, U, V)
    if hessian is not None:
        _check_taylor(inspection, "Hessian", penalty, D, U, [slope, np.vdot(hessian, U)])
    _check_autograd(inspection, regularizer, D, U, gradient, hessian)
    _check_shared_work(inspection, regularizer, D, U, gradient, hessian)
    return inspection.report()


def _check_value(inspection, regularizer, D, drawn):
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


def _raw_value(regularizer, D):
    """What was returned, before it is made a float."""
    return regularizer(D) if isinstance(regularizer, Function) else regularizer.value(D)


def _check_gradient(inspection, regularizer, penalty, D):
    own = hasattr(regularizer, "gradient") and not isinstance(regularizer, Function)
    before = D.copy()
    missing = "{} in its gradient" if own else "has no gradient: {}"
    gradient = _call(inspection, lambda: penalty.gradient(D), missing)
    return _check_array(inspection, "gradient", gradient, D, before)


def _check_array(inspection, name, array, D, before):
    """A derivative with the shape of D, finite, and computed without changing D."""
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


def _check_smooth(inspection, penalty, D, rng):
    """No kink along paths that pass zero entries and orthogonal atoms, and a finite gradient there."""
    norms = np.linalg.norm(D, axis=0)
    aside = rng.standard_normal(D.shape)
    aside *= norms / np.linalg.norm(aside, axis=0)
    zeros = np.where(rng.random(D.shape) < 0.1, 0.0, D)
    zeros[rng.integers(len(D))] = 0
    orthogonal = D.copy()
    k = min(D.shape)
    orthogonal[:, :k] = np.linalg.qr(D[:, :k])[0] * norms[:k]
    places = {"where entries are zero": zeros, "where atoms are orthogonal": orthogonal}
    paths = [("", lambda t: D * np.cos(t) + aside * np.sin(t))]
    paths += [(name, lambda t, start=start: start + 0.3 * t * aside) for name, start in places.items()]
    fact = "smooth: no kink was found"
    with np.errstate(all="ignore"):
        for name, path in paths:
            t = find_kink(lambda t, path=path: penalty.value(path(t)), -np.pi / 2, np.pi / 2)
            if t is not None and math.isnan(t):
                inspection.skip(f"{fact} {name or 'along a path'} (the penalty is not finite everywhere)")
            elif t is not None:
                _fail_at_kink(inspection, path(t))
        inspection.require(True, fact, "")
        for name, start in places.items():
            if not math.isfinite(penalty.value(start)):
                continue
            finite = np.isfinite(penalty.gradient(start)).all()
            fault = f"is not smooth: its gradient is not finite {name}"
            inspection.require(finite, f"the gradient is finite {name}", fault)


def _fail_at_kink(inspection, D):
    # A kink is found to about 1e-6 of a path; a dictionary elsewhere has no entries as small as that.
    where = "where an entry of the dictionary is zero" if np.abs(D).min() < 1e-5 else "along a path"
    remedy = "Take a smooth function in its place, such as √(x² + ε) for |x|"
    inspection.fail(f"is not smooth: its slope jumps {where}. {remedy}")


def _check_taylor(inspection, subject, penalty, D, U, derivatives):
    report = taylor_report(subject, lambda t: penalty.value(D + t * U), derivatives, size=np.abs(D).max())
    if not report:
        message = f"{inspection.subject}: {report.verdict[0].lower()}{report.verdict[1:]}"
        raise CheckFailed(message, report)
    slope = "exactly" if report.slope == math.inf else f"with slope {report.slope:.2f}"
    inspection.require(True, f"the {subject} belongs to the value, {slope}", "")


def _check_hessian(inspection, regularizer, penalty, D, U, V):
    """The Hessian product with U, checked for its form; None if there is none."""
    before = D.copy()
    if hasattr(regularizer, "hessian"):
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
    """A regularizer stripped of its derivatives, so that autograd supplies them."""

    def __init__(self, regularizer):
        self.value = regularizer.value


def _check_autograd(inspection, regularizer, D, U, gradient, hessian):
    automatic = differentiable(_ValueOnly(regularizer))
    derivatives = {
        "gradient": (gradient, lambda: automatic.gradient(D)),
        "hessian": (hessian, lambda: automatic.hessian(D, U)),
    }
    for name, (ours, supply) in derivatives.items():
        if isinstance(regularizer, Function) or not hasattr(regularizer, name):
            inspection.skip(f"the {name} agrees with autograd (which supplies it)")
            continue
        try:
            theirs = supply()
        except TypeError:  # its value is written with NumPy, or in C: the slopes have to do
            inspection.skip("agrees with autograd (which cannot see through its value)")
            return
        close = np.linalg.norm(ours - theirs) <= _AGREE * (np.linalg.norm(theirs) or 1)
        fault = f"has a {name} that differs from autograd's"
        inspection.require(close, f"the {name} agrees with autograd", fault)


def _check_shared_work(inspection, regularizer, D, U, gradient, hessian):
    if not hasattr(regularizer, "at"):
        return
    there = regularizer.at(D)
    results = {"value": (there.value, regularizer.value(D)), "gradient": (there.gradient, gradient)}
    if hessian is not None:
        results["hessian"] = (there.hessian(U), hessian)
    for name, (shared, alone) in results.items():
        shared = shared() if callable(shared) else shared
        close = np.linalg.norm(shared - alone) <= _AGREE * (np.linalg.norm(alone) or 1)
        fault = f"has an at(dictionary) whose {name} is not the one that {name}(dictionary) returns"
        inspection.require(close, "at(dictionary) gives the same numbers", fault)


def _call(inspection, function, fault, advice=""):
    """The result of a call of the user's; an exception becomes a fault, said with its type and message.

    The advice is for errors that come from a dictionary of another size than expected.
    """
    try:
        return function()
    except Exception as error:
        said = str(error).rstrip(".")
        found = said if fault.startswith("has no") else f"raised {type(error).__name__}: {said}"
        advice = advice if isinstance(error, ValueError | IndexError) else ""
        inspection.fail(fault.format(found) + advice, cause=error)


def _unit(array):
    return array / np.linalg.norm(array)
