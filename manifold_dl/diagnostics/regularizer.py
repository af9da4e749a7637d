"""The contract of a regularizer: one smooth number, and derivatives that belong to it."""

import math

import numpy as np

from manifold_dl.diagnostics.report import CheckFailed, Inspection
from manifold_dl.diagnostics.taylor import taylor_report
from manifold_dl.regularizers import differentiable

# Derivatives that differ by rounding only agree to this part of their size.
_AGREE = 1e-8


def check_regularizer(regularizer, dictionary=None, *, m=16, n_atoms=12, rng=0):
    """Check a penalty on the dictionary, and its derivatives, given or supplied by autograd.

    `value` is one finite number, the same at every call, and leaves the dictionary alone; the gradient and
    the Hessian product are m×d, leave Taylor remainders of slope 2 and 3, and agree with autograd's, if
    autograd can see through `value`; the Hessian is linear and symmetric.

    Parameters
    ----------
    regularizer : Regularizer
    dictionary : m×d array, optional
        Where to check. By default m×n_atoms unit atoms at random, which suit any regularizer that
        is defined everywhere.
    m, n_atoms : int
        The shape of a random dictionary, for regularizers that suit only some.
    rng : Generator or seed

    Returns
    -------
    Report

    Examples
    --------
    >>> from manifold_dl.regularizers import Coherence
    >>> bool(check_regularizer(Coherence(weight=0.1)))
    True
    """
    rng = np.random.default_rng(rng)
    inspection = Inspection(regularizer)
    if dictionary is None:
        dictionary = rng.standard_normal((m, n_atoms))
        dictionary /= np.linalg.norm(dictionary, axis=0)
    D = np.array(dictionary, dtype=float)
    U, V = (_unit(rng.standard_normal(D.shape)) for _ in range(2))
    penalty = differentiable(regularizer)

    _check_value(inspection, regularizer, D)
    before = D.copy()
    gradient = np.asarray(penalty.gradient(D))
    hessian = np.asarray(penalty.hessian(D, U))
    unchanged = np.array_equal(before, D)
    inspection.require(unchanged, "leaves the dictionary alone", "changed the dictionary in a derivative")
    for name, array in (("gradient", gradient), ("Hessian product", hessian)):
        fault = f"returned a {name} of shape {array.shape} where m×d = {D.shape}"
        inspection.require(array.shape == D.shape, f"the {name} is m×d", fault)
        fault = f"returned a {name} that is not finite"
        inspection.require(np.isfinite(array).all(), f"the {name} is finite", fault)

    slope, curvature = np.vdot(gradient, U), np.vdot(hessian, U)
    _check_taylor(inspection, "gradient", penalty, D, U, [slope])
    _check_hessian_form(inspection, penalty, D, U, V, hessian)
    _check_taylor(inspection, "Hessian", penalty, D, U, [slope, curvature])
    _check_autograd(inspection, regularizer, D, U, gradient, hessian)
    _check_shared_work(inspection, regularizer, D, U, gradient, hessian)
    return inspection.report()


def _check_value(inspection, regularizer, D):
    before = D.copy()
    value = regularizer.value(D)
    scalar = value is not None and np.ndim(value) == 0 and np.isrealobj(value)
    found = "None" if value is None else f"an array of shape {np.shape(value)}"
    inspection.require(scalar, "the value is one number", f"has a value that is {found}, not one real number")
    inspection.require(
        math.isfinite(value),
        "the value is finite",
        f"is {float(value)} at the dictionary; pass one at which the penalty is finite",
    )
    unchanged = np.array_equal(before, D)
    inspection.require(unchanged, "leaves the dictionary alone", "changed the dictionary it was given")
    again = regularizer.value(D) == value
    fault = "is not deterministic: a second call gave another value"
    inspection.require(again, "a second call gives the same value", fault)


def _check_taylor(inspection, subject, penalty, D, U, derivatives):
    report = taylor_report(subject, lambda t: penalty.value(D + t * U), derivatives, size=np.abs(D).max())
    if not report:
        message = f"{inspection.subject}: {report.verdict[0].lower()}{report.verdict[1:]}"
        raise CheckFailed(message, report)
    slope = "exactly" if report.slope == math.inf else f"with slope {report.slope:.2f}"
    inspection.require(True, f"the {subject} belongs to the value, {slope}", "")


def _check_hessian_form(inspection, penalty, D, U, V, hessian):
    other = np.asarray(penalty.hessian(D, V))
    size = np.linalg.norm(hessian) + np.linalg.norm(other)
    both = np.asarray(penalty.hessian(D, 2 * U - V))
    linear = np.linalg.norm(both - 2 * hessian + other) <= _AGREE * size
    fault = "has a Hessian product that is not linear in the direction"
    inspection.require(linear, "the Hessian product is linear", fault)
    symmetric = abs(np.vdot(hessian, V) - np.vdot(U, other)) <= _AGREE * size
    fault = "has a Hessian that is not symmetric: ⟨H[U], V⟩ and ⟨U, H[V]⟩ differ"
    inspection.require(symmetric, "the Hessian is symmetric", fault)


class _ValueOnly:
    """A regularizer stripped of its derivatives, so that autograd supplies them."""

    def __init__(self, regularizer):
        self.value = getattr(regularizer, "function", regularizer.value)  # a function of D, if it was one


def _check_autograd(inspection, regularizer, D, U, gradient, hessian):
    automatic = differentiable(_ValueOnly(regularizer))
    try:
        expected = automatic.gradient(D), automatic.hessian(D, U)
    except TypeError:  # its value is written with NumPy, or in C: the slopes have to do
        inspection.skip("agrees with autograd (which cannot see through its value)")
        return
    for name, ours, theirs in zip(("gradient", "hessian"), (gradient, hessian), expected, strict=True):
        if not hasattr(regularizer, name):
            inspection.skip(f"the {name} agrees with autograd (which supplies it)")
            continue
        close = np.linalg.norm(ours - theirs) <= _AGREE * (np.linalg.norm(theirs) or 1)
        fault = f"has a {name} that differs from autograd's"
        inspection.require(close, f"the {name} agrees with autograd", fault)


def _check_shared_work(inspection, regularizer, D, U, gradient, hessian):
    if not hasattr(regularizer, "at"):
        return
    there = regularizer.at(D)
    results = {
        "value": (there.value, regularizer.value(D)),
        "gradient": (there.gradient, gradient),
        "hessian": (there.hessian(U), hessian),
    }
    for name, (shared, alone) in results.items():
        shared = shared() if callable(shared) else shared
        close = np.linalg.norm(shared - alone) <= _AGREE * (np.linalg.norm(alone) or 1)
        fault = f"has an at(dictionary) whose {name} is not the one that {name}(dictionary) returns"
        inspection.require(close, "at(dictionary) gives the same numbers", fault)


def _unit(array):
    return array / np.linalg.norm(array)
