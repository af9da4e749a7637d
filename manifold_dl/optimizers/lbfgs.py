"""Riemannian limited-memory BFGS: curvature learned from the last few steps, without a Hessian."""

import dataclasses
import functools
import time
from collections import deque
from copy import deepcopy
from typing import Any, NamedTuple

import numpy as np
from pymanopt.optimizers.optimizer import Optimizer
from pymanopt.tools import printer

from manifold_dl.line_search import WolfeSearch


class LBFGS(Optimizer):
    r"""Riemannian limited-memory BFGS.

    The direction is −H grad f, where the inverse Hessian H is built from the pairs of the last steps: s, the
    step, and y, the change of the gradient, all carried to the tangent space of the current point by
    ``manifold.transport``. Before the first pair H is the problem's preconditioner P; later it starts from γP
    with γ = ⟨s, y⟩/⟨y, Py⟩, so that P needs no particular scale and the unit step is the natural one.

    A pair is kept only if ⟨s, y⟩ ≥ 10⁻⁴ ‖grad f‖ ⟨s, s⟩, the cautious update: it keeps H positive definite
    where f is not convex. When −H grad f does not descend, or the line search fails along it, the pairs are
    forgotten and the preconditioned gradient is tried instead.

    Parameters
    ----------
    memory : int
        The number of pairs to keep.
    line_searcher : object, optional
        A Pymanopt line searcher, by default `WolfeSearch(curvature=0.9)`: once the unit step is nearly
        right, a tighter search pays for probes and gains nothing. If the searcher is a dataclass with a field
        `first_step`, as that one is, it is told to try the unit step first as soon as there are pairs.
    max_time, max_iterations, min_gradient_norm, min_step_size, max_cost_evaluations, verbosity, log_verbosity
        As for every Pymanopt optimizer.

    Notes
    -----
    An iteration is a step: ``max_iterations=N`` makes at most N of them, and the log holds the N + 1 points
    from the initial to the final one. `cost_evaluations` counts the calls of the cost, including those of the
    line search; probes of a cheaper restriction of the cost, where a problem offers one, are not among them.

    References
    ----------
    W. Huang, P.-A. Absil and K. A. Gallivan, A Riemannian BFGS method without differentiated retraction for
    nonconvex optimization problems, SIAM Journal on Optimization 28 (2018), 470-495.

    J. Nocedal and S. J. Wright, Numerical Optimization, 2nd edition, Algorithm 7.4.

    Examples
    --------
    The smallest eigenvalue of diag(1, ..., 5) is the minimum of the Rayleigh quotient on the sphere.

    >>> import pymanopt
    >>> sphere = pymanopt.manifolds.Sphere(5)
    >>> A = np.diag(np.arange(1.0, 6.0))
    >>> @pymanopt.function.numpy(sphere)
    ... def cost(x):
    ...     return x @ A @ x
    >>> @pymanopt.function.numpy(sphere)
    ... def gradient(x):
    ...     return 2 * A @ x
    >>> problem = pymanopt.Problem(sphere, cost, euclidean_gradient=gradient)
    >>> result = LBFGS(verbosity=0).run(problem, initial_point=np.ones(5) / np.sqrt(5))
    >>> print(f"{result.cost:.10f}")
    1.0000000000
    """

    def __init__(self, memory=10, line_searcher=None, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if memory < 1:
            raise ValueError(
                f"memory={memory}: L-BFGS needs at least one pair; without any it is SteepestDescent."
            )
        self._memory = memory
        self._line_searcher = WolfeSearch(curvature=0.9) if line_searcher is None else line_searcher
        self.line_searcher = None

    def run(self, problem, *, initial_point=None, reuse_line_searcher=False):
        """Minimise the cost of `problem`.

        Parameters
        ----------
        problem : pymanopt.Problem
        initial_point : optional
            Where to start; a random point of the manifold by default.
        reuse_line_searcher : bool
            Go on with the line searcher of the previous run, and what it remembers.

        Returns
        -------
        pymanopt.optimizers.optimizer.OptimizerResult
            Its point is always one where cost and gradient are finite, if the initial one is.
        """
        if not reuse_line_searcher or self.line_searcher is None:
            self.line_searcher = deepcopy(self._line_searcher)
        self._initialize_log(
            optimizer_parameters={"memory": self._memory, "line_searcher": self.line_searcher}
        )
        columns = self._start_printing()

        manifold, cost = problem.manifold, _Counted(problem.cost)
        start_time = time.time()
        iteration, step_size, pairs = 0, None, deque(maxlen=self._memory)
        here = _Iterate.at(manifold.random_point() if initial_point is None else initial_point, cost, problem)
        while True:
            columns.print_row([iteration, here.cost, here.gradient_norm])
            self._add_log_entry(
                iteration=iteration, point=here.point, cost=here.cost, gradient_norm=here.gradient_norm
            )
            reason = self._reason_to_stop(start_time, iteration, here, step_size, cost.evaluations)
            if reason:
                break

            for direction in _directions(problem, here, pairs):
                length, point = self._search(cost, manifold, here, direction, bool(pairs))
                there = _Iterate.at(point, cost, problem) if length > 0 else here
                if length > 0 and there.is_finite:
                    break
                pairs.clear()
            else:
                what = "cost or gradient not finite" if length > 0 else "no lower cost along the gradient"
                seconds = time.time() - start_time
                reason = f"Terminated - {what} after {iteration} iterations, {seconds:.2f} seconds."
                break

            _remember(pairs, manifold, here, there, direction, length)
            iteration, step_size, here = iteration + 1, length, there

        if self._verbosity >= 1:
            print(reason)
            print("")
        return self._return_result(
            start_time=start_time,
            point=here.point,
            cost=here.cost,
            iterations=iteration,
            stopping_criterion=reason,
            cost_evaluations=cost.evaluations,
            step_size=step_size,
            gradient_norm=here.gradient_norm,
        )

    def _search(self, cost, manifold, here, direction, unit_step_first):
        slope = manifold.inner_product(here.point, here.gradient, direction)
        norm = float(manifold.norm(here.point, direction))
        if not (slope < 0 and norm < np.inf):
            return 0.0, here.point
        searcher = self.line_searcher
        if unit_step_first and dataclasses.is_dataclass(searcher) and hasattr(searcher, "first_step"):
            # A copy, because the original would begin at the t it accepted last, for another kind of d.
            searcher = dataclasses.replace(searcher, first_step=norm)
        return searcher.search(cost, manifold, here.point, direction, here.cost, slope)

    def _reason_to_stop(self, start_time, iteration, here, step_size, cost_evaluations):
        if not here.is_finite:
            return "Terminated - cost or gradient not finite at the initial point."
        return self._check_stopping_criterion(
            start_time=start_time,
            iteration=iteration,
            gradient_norm=here.gradient_norm,
            step_size=np.inf if step_size is None else step_size,
            cost_evaluations=cost_evaluations,
        )

    def _start_printing(self):
        if self._verbosity >= 1:
            print("Optimizing...")
        if self._verbosity < 2:
            return printer.VoidPrinter()
        columns = printer.ColumnPrinter(
            columns=[
                ("Iteration", f"{len(str(self._max_iterations))}d"),
                ("Cost", "+.16e"),
                ("Gradient norm", ".8e"),
            ]
        )
        columns.print_header()
        return columns


class _Counted:
    """A cost that counts its evaluations, and is +∞ where it is NaN: no searcher takes +∞ for a decrease."""

    def __init__(self, cost):
        functools.update_wrapper(self, cost)  # brings along what searchers look for, such as `restrict`
        self.evaluations = 0

    def __call__(self, point):
        self.evaluations += 1
        value = self.__wrapped__(point)
        return np.inf if np.isnan(value) else value


class _Iterate(NamedTuple):
    point: Any
    cost: float
    gradient: Any
    gradient_norm: float

    @classmethod
    def at(cls, point, cost, problem):
        value, gradient = cost(point), problem.riemannian_gradient(point)
        return cls(point, value, gradient, problem.manifold.norm(point, gradient))

    @property
    def is_finite(self):
        return bool(np.isfinite(self.cost) and np.isfinite(self.gradient_norm))


class _Pair(NamedTuple):
    s: Any
    y: Any
    sy: float


def _directions(problem, here, pairs):
    """Where to search, in turn: −H grad f, and the preconditioned and plain gradients if that fails."""
    if pairs:
        yield -_inverse_hessian(problem, here, pairs)
    direction = -problem.preconditioner(here.point, here.gradient)
    if problem.manifold.inner_product(here.point, here.gradient, direction) < 0:
        yield direction
    else:  # P is not positive definite
        yield -here.gradient


def _inverse_hessian(problem, here, pairs):
    """H grad f by the two-loop recursion (Nocedal and Wright, Algorithm 7.4)."""
    inner = functools.partial(problem.manifold.inner_product, here.point)
    q, alphas = here.gradient, []
    for s, y, sy in reversed(pairs):
        alphas.append(float(inner(s, q) / sy))
        q = q - alphas[-1] * y
    _, y, sy = pairs[-1]
    yPy = inner(y, problem.preconditioner(here.point, y))
    r = problem.preconditioner(here.point, q)
    if yPy > 0:
        r = float(sy / yPy) * r
    for s, y, sy in pairs:
        r = r + (alphas.pop() - float(inner(y, r) / sy)) * s
    return r


def _remember(pairs, manifold, here, there, direction, length):
    """Carry the pairs to the new point and add that of the step just made, if it passes the cautious rule."""
    transport = functools.partial(manifold.transport, here.point, there.point)
    inner = functools.partial(manifold.inner_product, there.point)

    s = transport(float(length / manifold.norm(here.point, direction)) * direction)
    y = there.gradient - transport(here.gradient)
    # The transport need not preserve inner products, so those of the old pairs are computed again.
    carried = [_pair(inner, transport(old.s), transport(old.y)) for old in pairs]
    new = _pair(inner, s, y)
    pairs.clear()
    pairs.extend(old for old in carried if old.sy > 0)
    if new.sy > 0 and new.sy >= 1e-4 * here.gradient_norm * inner(s, s):
        pairs.append(new)


def _pair(inner, s, y):
    return _Pair(s, y, inner(s, y))
