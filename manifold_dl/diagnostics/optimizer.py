"""The contract of an optimizer: from a start to a better point of the same manifold, reproducibly."""

import contextlib
import inspect
import io
from typing import Any

import numpy as np

from manifold_dl.components.errors import ComponentError
from manifold_dl.diagnostics.optimizer_problems import KnownProblem, known_problems, solved_problem
from manifold_dl.diagnostics.report import Inspection, Report, require_object
from manifold_dl.manifolds.randomness import global_generator
from manifold_dl.optimizers import OptimizerRun

# The fraction of the descent from the start to the minimum that may be missing. With a gradient of 1e-6,
# where Pymanopt's optimizers stop by default, it is about 1e-12.
_REACHED = 1e-6
# An optimizer for which more than this is missing does not converge.
_NEAR = 1e-2


def check_optimizer(optimizer: Any, *, converges: bool = True, rng: Any = 0) -> Report:
    """Check that ``optimizer.run(problem, initial_point=point)`` does what update rules rely on.

    On small dictionary problems with one atom and with several, on spheres, lines, orthonormal columns and in
    flat space: it returns an object whose `point` is a finite point of the manifold, with a cost that is not
    above that of the start, and reaches the minimum, which is known by the SVD or least squares. It does not
    change its initial point; the same start gives the same bits; a second run is as good as the first; and at
    a start with zero gradient it stays. It is run as `SimCO` runs it, on a copy.

    Parameters
    ----------
    optimizer : Pymanopt optimizer
        Its class needs nothing but `run`. For problems that it does not support it raises
        `NotImplementedError`; they are listed as skipped.
    converges : bool
        False for an optimizer that makes a few steps only, or approximates a minimum: the missing fraction of
        the descent is then a remark.
    rng : Generator or seed
        For the random problems.

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
    >>> from pymanopt.optimizers import TrustRegions
    >>> from manifold_dl.optimizers import LBFGS
    >>> bool(check_optimizer(LBFGS())), bool(check_optimizer(TrustRegions()))
    (True, True)
    """
    require_object(optimizer, "run", "TrustRegions()")
    inspection = Inspection(optimizer)
    _check_signature(inspection, optimizer)
    output = io.StringIO()
    solved = False
    with contextlib.redirect_stdout(output), global_generator(0):
        for problem in known_problems(np.random.default_rng(rng)):
            point = _check_run(inspection, optimizer, problem)
            if point is None:
                continue
            _check_descent(inspection, problem, point, converges)
            if not solved:  # one repetition shows whether a run changes the next
                _check_repetition(inspection, optimizer, problem, point, converges)
            solved = True
        if not solved:
            inspection.fail(f"solved none of the problems: {'; '.join(inspection.skipped)}")
        _check_stationary(inspection, optimizer)
    if output.getvalue():
        inspection.remark("prints during a run, and an update may run it thousands of times")
    return inspection.report()


def _check_signature(inspection: Inspection, optimizer: Any) -> None:
    signature = inspect.signature(optimizer.run)
    try:
        signature.bind(None, initial_point=None)
    except TypeError as error:
        fault = f"cannot be called as run(problem, initial_point=...): run{signature} ({error})"
        inspection.fail(fault, cause=error)


def _run(
    inspection: Inspection, optimizer: Any, problem: KnownProblem, start: np.ndarray
) -> np.ndarray | None:
    """Return the point where it ends; None if it does not support such problems."""
    try:
        return OptimizerRun(optimizer).minimize(problem.make(), start, rng=0)
    except ComponentError as error:
        if not isinstance(error.__cause__, NotImplementedError):
            inspection.fail(f"{error.problem} (for {problem.name})", cause=error)
        reason = str(error.__cause__) or "not implemented"
    except (TypeError, ValueError) as error:  # raised by this package for an unsupported problem
        reason = str(error)
    inspection.skip(f"{problem.name} ({reason.rstrip('.')})")
    return None


def _check_run(inspection: Inspection, optimizer: Any, problem: KnownProblem) -> np.ndarray | None:
    """Return the finite point of the manifold where it ends; None if it does not support such problems."""
    start = problem.start.copy()
    point = _run(inspection, optimizer, problem, start)
    if point is None:
        return None
    inspection.require(True, "returns a point of the manifold", "")
    fault = f"returned numbers that are not finite (for {problem.name})"
    inspection.require(np.isfinite(point).all(), "the point is finite", fault)
    unchanged = np.array_equal(start, problem.start)
    inspection.require(
        unchanged,
        "leaves its initial point alone",
        "changed the array that it was given as its initial point",
    )
    return point


def _check_descent(inspection: Inspection, problem: KnownProblem, point: np.ndarray, converges: bool) -> None:
    cost = problem.make().cost
    before, after = cost(problem.start), cost(point)
    fault = f"raised the cost from {before:.6g} to {after:.6g} (for {problem.name})"
    # Rounding of sums of squares, relative to their size.
    inspection.require(after <= before + 1e-12 * abs(before), "is never for the worse", fault)
    left = (after - problem.minimum) / (before - problem.minimum)
    fault = f"did not move at all (for {problem.name})"
    inspection.require(left < 1 - 1e-9, "moves", fault)
    if left <= _REACHED:
        inspection.require(True, f"reaches the minimum: {problem.name}", "")
    elif not converges or left <= _NEAR:
        inspection.remark(f"leaves {left:.1g} of the descent to the minimum: {problem.name}")
    else:
        inspection.fail(
            f"leaves {left:.2g} of the descent to the minimum (for {problem.name}); converges=False is for "
            "optimizers that make a few steps only"
        )


def _check_repetition(
    inspection: Inspection, optimizer: Any, problem: KnownProblem, point: np.ndarray, converges: bool
) -> None:
    again = OptimizerRun(optimizer).minimize(problem.make(), problem.start.copy(), rng=0)
    same = np.array_equal(point, again)
    if not same:
        seeded = []
        for _ in range(2):
            with global_generator(1):
                seeded.append(OptimizerRun(optimizer).minimize(problem.make(), problem.start.copy(), rng=0))
        same = np.array_equal(seeded[0], seeded[1])
        if same:
            inspection.remark("draws from NumPy's global generator: seed that for a run that can be repeated")
    fault = f"is not deterministic: a second run from the same start gave another point (for {problem.name})"
    inspection.require(same, "the same start gives the same bits", fault)

    run = OptimizerRun(optimizer)
    first, second = (run.minimize(problem.make(), problem.start.copy(), rng=0) for _ in range(2))
    cost = problem.make().cost
    descent = cost(problem.start) - problem.minimum
    worse = (cost(second) - cost(first)) / descent
    # Line searchers may begin with the length of their last step, so the two need not agree to the last bit.
    tolerance = _NEAR if converges else 0.5
    inspection.require(
        worse <= tolerance,
        "a second run is as good as the first",
        f"carries something over: a second run on the same problem ended {worse:.2g} of the descent above "
        f"the first (for {problem.name})",
    )


def _check_stationary(inspection: Inspection, optimizer: Any) -> None:
    problem = solved_problem()
    point = _run(inspection, optimizer, problem, problem.start.copy())
    if point is None:
        return
    value = problem.make().cost(point)
    # Of signals with an energy of 21.
    fault = f"left {problem.name} for a cost of {value:.3g}"
    inspection.require(value <= 1e-12, "stays where the gradient is zero", fault)
