"""Is a derivative right? The slope of a Taylor remainder tells, on logarithmic axes.

Along a path x(t) that leaves x in a tangent direction d of length one,

    f(x(t)) = f(x) + t ⟨grad f, d⟩ + ½ t² ⟨Hess f[d], d⟩ + O(t³),

so what remains after the first-order model falls like t², after the second-order one like t³. A wrong
gradient leaves a remainder that falls like t, a wrong Hessian one that falls like t². The first holds along
any retraction; the second along geodesics and second-order retractions only [1]_.

References
----------
.. [1] N. Boumal, An Introduction to Optimization on Smooth Manifolds, 2023, Sections 4.8 and 6.8.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from manifold_dl.diagnostics.paths import path, random_direction, random_point, tangent_part
from manifold_dl.diagnostics.report import CheckFailed


@dataclass(frozen=True, eq=False)
class TaylorReport:
    """The remainders of a Taylor model, and what their slope says. True if the derivative is right.

    Attributes
    ----------
    subject : str
        What was checked.
    t, remainders : ndarray
        Steps along the path, and the absolute remainder at each, the mean of both ways.
    slope : float
        Measured on logarithmic axes where the steps are as small as rounding allows; infinite if the model
        is exact, so that nothing but rounding remains.
    expected : int
        The slope of a right derivative: 2 for a gradient, 3 for a Hessian. More is right, too.
    window : slice
        The steps at which the slope was measured.
    verdict : str
        The same in words.
    """

    subject: str
    t: np.ndarray = field(repr=False)
    remainders: np.ndarray = field(repr=False)
    slope: float
    expected: int
    window: slice
    verdict: str

    def __bool__(self):
        return is_right(self.slope, self.expected)

    def __str__(self):
        return self.verdict

    __repr__ = __str__

    def plot(self, ax=None):
        """Draw the remainders, and the slope they should have, on logarithmic axes; returns the axes."""
        if ax is None:
            import matplotlib.pyplot as plt

            ax = plt.subplots()[1]
        seen = self.remainders > 0
        ax.loglog(self.t[seen], self.remainders[seen], ".-", label=f"remainder, slope {self.slope:.2f}")
        if seen.any():
            # The line of the right slope through the last remainder measured, for comparison.
            t, last = self.t[seen], self.remainders[seen][-1]
            ax.loglog(t, last * (t / t[-1]) ** self.expected, "--", label=f"slope {self.expected}")
            ax.set_ylim(bottom=self.remainders[seen].min() / 10)
        ax.set_xlabel("step t")
        ax.set_ylabel("|Taylor remainder|")
        ax.set_title(self.subject)
        ax.legend()
        return ax


def check_gradient(problem, point=None, direction=None, rng=0):
    """Check the gradient of a Pymanopt problem against its cost.

    Parameters
    ----------
    problem : pymanopt.Problem
        On any manifold, with any backend.
    point : point of the manifold, optional
        Where to check; a random point by default.
    direction : tangent vector at `point`, optional
        Along which to check; random by default. Its length does not matter.
    rng : Generator or seed
        For what is drawn at random.

    Returns
    -------
    TaylorReport
        With the measured slope, 2 or more, and a `plot`.

    Raises
    ------
    CheckFailed
        If the slope is lower, or the gradient not tangent. The exception carries the report.

    Examples
    --------
    >>> import pymanopt
    >>> from manifold_dl.manifolds import Spheres
    >>> spheres, A = Spheres(3, 2), np.arange(6.0).reshape(3, 2)
    >>> cost = pymanopt.function.numpy(spheres)(lambda X: np.sum(A * X**2))
    >>> gradient = pymanopt.function.numpy(spheres)(lambda X: 2 * A * X)
    >>> check_gradient(pymanopt.Problem(spheres, cost, euclidean_gradient=gradient))
    The gradient is right: the first-order remainder falls with slope 2.00, and 2 was expected.
    >>> wrong = pymanopt.function.numpy(spheres)(lambda X: 2.01 * A * X)
    >>> check_gradient(pymanopt.Problem(spheres, cost, euclidean_gradient=wrong))
    Traceback (most recent call last):
    ...
    manifold_dl.diagnostics.report.CheckFailed: The gradient is wrong: the first-order remainder falls with
    slope 1.00, and 2 was expected.
    """
    point, direction = _start(problem.manifold, point, direction, rng)
    gradient = problem.riemannian_gradient(point)
    _require_tangent(problem, point, gradient, "The Riemannian gradient")
    slope = problem.manifold.inner_product(point, gradient, direction)
    return _judge("gradient", problem, point, direction, [slope])


def check_hessian(problem, point=None, direction=None, rng=0):
    """Check the Hessian of a Pymanopt problem against its cost and its gradient.

    The gradient is checked first, for the Hessian cannot be judged without it. Then the Hessian must be
    tangent, symmetric, ⟨Hess[u], v⟩ = ⟨u, Hess[v]⟩, and the second-order remainder must fall with slope 3.

    Parameters and returns are those of `check_gradient`. Where a manifold has no `exp`, the path is that of
    its retraction, and the slope is 3 only if the retraction is of second order; `check_manifold` tells.

    Examples
    --------
    >>> import pymanopt
    >>> from manifold_dl.manifolds import Spheres
    >>> spheres, A = Spheres(3, 2), np.arange(6.0).reshape(3, 2)
    >>> cost = pymanopt.function.numpy(spheres)(lambda X: np.sum(A * X**3))
    >>> gradient = pymanopt.function.numpy(spheres)(lambda X: 3 * A * X**2)
    >>> hessian = pymanopt.function.numpy(spheres)(lambda X, E: 6 * A * X * E)
    >>> problem = pymanopt.Problem(spheres, cost, euclidean_gradient=gradient, euclidean_hessian=hessian)
    >>> check_hessian(problem)
    The Hessian is right: the second-order remainder falls with slope 3.00, and 3 was expected.
    """
    manifold = problem.manifold
    rng = np.random.default_rng(rng)
    point, direction = _start(manifold, point, direction, rng)
    check_gradient(problem, point, direction)
    _require_double(problem, point, direction)
    product = problem.riemannian_hessian(point, direction)
    _require_tangent(problem, point, product, "The Riemannian Hessian product")
    _require_symmetric(problem, point, direction, product, random_direction(manifold, point, rng))
    gradient = problem.riemannian_gradient(point)
    slope = manifold.inner_product(point, gradient, direction)
    curvature = manifold.inner_product(point, product, direction)
    return _judge("Hessian", problem, point, direction, [slope, curvature])


def taylor_report(subject, function, derivatives, *, size=1.0, noise=0.0, eps=None):
    """Measure the remainder of φ(t) ≈ Σ φ⁽ᵏ⁾(0) tᵏ / k!, given φ and the list of its derivatives at 0.

    Rounding bounds the steps from below: of numbers as large as φ, of points with entries as large as `size`,
    and whatever noise φ shows at steps where nothing else moves. The slope is measured just above
    all of them, over one decade of t.
    """
    with np.errstate(all="ignore"):
        value = float(function(0.0))
    if not math.isfinite(value):
        raise CheckFailed(f"The value at the point is {value}: nothing can be measured there.")
    eps = np.finfo(float).eps if eps is None else eps
    # A remainder of order t³ in float64 rises above rounding near t = 1e-5, in float32 near 1e-2.
    t = np.logspace(math.log10(eps) / 2, 0, 1 - round(8 * math.log10(eps) / 2))
    ways = np.array([t, -t])
    derivatives = [float(c) for c in derivatives]
    terms = np.array([c * ways ** (k + 1) / math.factorial(k + 1) for k, c in enumerate(derivatives)])
    with np.errstate(all="ignore"):
        values = np.array([[float(function(s)) for s in way] for way in ways])
        # Both ways together: where the terms t³ and −t⁴ of one cancel, those of the other add.
        remainders = np.abs(values - value - terms.sum(axis=0)).mean(axis=0)
        still = [float(function(s)) - value - s * derivatives[0] for s in eps * np.array([3, 10, 30, 100])]
    noise = np.nanmax(np.abs(still), initial=noise)
    # A derivative is a long sum, and so is a value near a minimum at zero: a few digits of either are lost.
    change = np.maximum(np.abs(values - value).max(axis=0), np.abs(terms).max(axis=(0, 1)))
    # A point is rounded as its entries are, and φ(t) moves with it by as much as change / t.
    floor = 30 * (eps * abs(value) + noise + eps * size * change / t) + 3000 * eps * change

    slope, window = _lowest_slope(t, remainders, remainders > floor)
    order = len(terms)
    expected, model = order + 1, ("first-order", "second-order")[order - 1]
    if not np.isfinite(remainders).any():
        slope, found = math.nan, f"The {subject} cannot be judged: the function is not finite along the path."
    elif slope == math.inf:
        found = f"The {subject} is right: the {model} model is exact, and nothing but rounding remains."
    else:
        word = "right" if is_right(slope, expected) else "wrong"
        if order == 2 and slope < 1.5:  # whatever the Hessian, a remainder of first order is the gradient's
            subject, word = "gradient", "slightly wrong"
        found = (
            f"The {subject} is {word}: the {model} remainder falls with slope {slope:.2f}, "
            f"and {expected} was expected."
        )
    return TaylorReport(subject, t, remainders, slope, expected, window, found)


def is_right(slope, expected):
    """A slope counts from 0.1 below what is expected: rounding and further terms bend it by less."""
    return slope >= expected - 0.1


def _lowest_slope(t, remainders, visible, points=9):
    """The slope over the lowest decade of steps with visible remainders; infinite if there are too few."""
    usable = np.flatnonzero(visible & np.isfinite(remainders))
    runs = np.split(usable, np.flatnonzero(np.diff(usable) > 1) + 1)
    run = next((run for run in runs if len(run) >= points // 2), None)
    if run is None:
        return math.inf, slice(0, 0)
    window = slice(run[0], run[:points][-1] + 1)
    return float(np.polyfit(np.log(t[window]), np.log(remainders[window]), 1)[0]), window


def _judge(subject, problem, point, direction, derivatives):
    move = path(problem.manifold, point, direction)
    function = lambda t: problem.cost(move(t) if t else point)
    size = np.abs(point).max() if isinstance(point, np.ndarray) else 1.0
    report = taylor_report(
        subject, function, derivatives, size=size, noise=_noise(problem, point), eps=_precision(point)
    )
    if not report:
        raise CheckFailed(report.verdict, report)
    return report


def _start(manifold, point, direction, rng):
    rng = np.random.default_rng(rng)
    if point is None:
        if direction is not None:
            raise ValueError("direction is tangent at a point: give the point as well.")
        point = random_point(manifold, rng)
    if direction is None:
        return point, random_direction(manifold, point, rng)
    length = manifold.norm(point, direction)
    if not (math.isfinite(length) and length > 0):
        raise ValueError(f"direction has length {length}: nothing changes along it.")
    return point, direction / length


def _require_double(problem, point, direction):
    value = float(problem.cost(point))
    change = float(problem.cost(path(problem.manifold, point, direction)(0.5))) - value
    noise = _noise(problem, point, along_manifold=True)  # across it, a gradient need not be right
    if _precision(point) > 1e-10 or noise > 1e-10 * (abs(value) + abs(change)):
        raise ValueError(
            "The problem is computed in single precision, where rounding leaves no room for a slope of 3; "
            "check the Hessian on the same data in double precision."
        )


def _precision(point):
    is_float = isinstance(point, np.ndarray) and point.dtype.kind in "fc"
    return float(np.finfo(point.dtype if is_float else float).eps)


def _noise(problem, point, along_manifold=False):
    """What a cost computed in float32 does not see of a point in float64, as its gradient tells.

    A wrong gradient looks like noise, too, but only like that of a step of 1e-8: longer steps unmask it.
    """
    gradient = _euclidean_gradient(problem, point)
    if not isinstance(gradient, np.ndarray):
        return 0.0
    with np.errstate(all="ignore"):
        single = point.astype(np.complex64 if np.iscomplexobj(point) else np.float32)
        step = single.astype(point.dtype) - point
        if along_manifold and np.array_equal(problem.manifold.embedding(point, step), step):
            step = problem.manifold.projection(point, step)
        expected = float(np.real(np.vdot(gradient, step)))
        noise = abs(float(problem.cost(point + step)) - float(problem.cost(point)) - expected)
    return noise if math.isfinite(noise) else 0.0


def _euclidean_gradient(problem, point):
    try:
        return problem.euclidean_gradient(point)
    except Exception:  # a problem may have a Riemannian gradient only; Pymanopt then fails in its own way
        return None


def _require_tangent(problem, point, vector, name):
    if not isinstance(vector, np.ndarray):  # products and factored points have projections of their own kind
        return
    manifold = problem.manifold
    off = float(np.linalg.norm(vector - tangent_part(manifold, point, vector)))
    # Near a minimum the tangent part is small, but rounded as the Euclidean gradient is.
    euclidean = _euclidean_gradient(problem, point)
    scale = float(np.linalg.norm(vector) + (0 if euclidean is None else np.linalg.norm(euclidean)))
    # Sums of a few thousand products, each rounded: half of the digits leaves no doubt.
    if not off <= math.sqrt(_precision(point)) * scale:
        raise CheckFailed(f"{name} is not tangent: {off:.2g} of it points off the manifold.")


def _require_symmetric(problem, point, u, hessian_u, v):
    inner = problem.manifold.inner_product
    hessian_v = problem.riemannian_hessian(point, v)
    left, right = inner(point, hessian_u, v), inner(point, u, hessian_v)
    scale = max(problem.manifold.norm(point, hessian_u), problem.manifold.norm(point, hessian_v))
    if not abs(left - right) <= math.sqrt(_precision(point)) * scale:
        raise CheckFailed(
            f"The Hessian is not symmetric: ⟨Hess[u], v⟩ = {left:.6g}, ⟨u, Hess[v]⟩ = {right:.6g}."
        )
