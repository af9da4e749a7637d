"""`LBFGS`: Riemannian limited-memory BFGS, with curvature from the last few steps and without a Hessian.

Log, stopping criteria and result are those of Pymanopt (`pymanopt_private.OwnOptimizer`).
"""

import dataclasses
import time
from collections import deque
from collections.abc import Iterator
from copy import deepcopy
from typing import Any

import numpy as np
import pymanopt
from pymanopt.optimizers.optimizer import OptimizerResult

from manifold_dl._validation import require_count
from manifold_dl.line_search import WolfeSearch
from manifold_dl.optimizers.lbfgs_pairs import (
    CountedCost,
    Iterate,
    Pairs,
    Step,
    inverse_hessian_product,
    update_pairs,
)
from manifold_dl.optimizers.pymanopt_private import OwnOptimizer


class LBFGS(OwnOptimizer):
    r"""Riemannian limited-memory BFGS.

    The direction is −H grad f, where the inverse Hessian H is built from the pairs of the last steps: s, the
    step, and y, the change of the gradient, all transported to the tangent space of the current point by
    ``manifold.transport``. Before the first pair H is the problem's preconditioner P; later it starts from γP
    with γ = ⟨s, y⟩/⟨y, Py⟩, so that P needs no particular scale and the unit step is the natural one.

    A pair is kept only if ⟨s, y⟩ ≥ 10⁻⁴ ‖grad f‖ ⟨s, s⟩, the cautious update: it keeps H positive definite
    where f is not convex. If −H grad f is no descent direction, or the line search fails along it, the pairs
    are deleted and the preconditioned gradient is tried instead.

    Parameters
    ----------
    memory : int
        The number of pairs to keep.
    line_searcher : object, optional
        A Pymanopt line searcher, by default `WolfeSearch(curvature=0.9)`: once the unit step is nearly
        right, a more accurate search costs evaluations and gains nothing. If the searcher is a dataclass with
        a field `first_step`, as that one is, it tries the unit step first as soon as there are pairs.
    *args, **kwargs
        The arguments of every Pymanopt optimizer: `max_time`, `max_iterations`, `min_gradient_norm`,
        `min_step_size`, `max_cost_evaluations`, `verbosity` and `log_verbosity`.

    Notes
    -----
    An iteration is a step: ``max_iterations=N`` makes at most N of them, and the log holds the N + 1 points
    from the initial to the final one. `cost_evaluations` counts the calls of the cost, including those of the
    line search, but without those of a restriction of the cost to a geodesic, if a problem has one.

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

    def __init__(self, memory: int = 10, line_searcher: Any = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        require_count("memory", memory, "L-BFGS needs at least one pair; without any it is SteepestDescent")
        self._memory = memory
        self._line_searcher = WolfeSearch(curvature=0.9) if line_searcher is None else line_searcher
        self.line_searcher: Any = None

    def run(
        self, problem: pymanopt.Problem, *, initial_point: Any = None, reuse_line_searcher: bool = False
    ) -> OptimizerResult:
        """Minimise the cost of `problem`.

        Parameters
        ----------
        problem : pymanopt.Problem
            A cost with a gradient, and with a preconditioner if there is a good one.
        initial_point : optional
            Where to start; a random point of the manifold by default.
        reuse_line_searcher : bool
            Continue with the line searcher of the previous run, and its memory.

        Returns
        -------
        pymanopt.optimizers.optimizer.OptimizerResult
            Its point is always one where cost and gradient are finite, if the initial one is.
        """
        if not reuse_line_searcher or self.line_searcher is None:
            self.line_searcher = deepcopy(self._line_searcher)
        self.start_log({"memory": self._memory, "line_searcher": self.line_searcher})
        columns = self.start_printing()
        cost, start_time = CountedCost(problem.cost), time.time()
        point = problem.manifold.random_point() if initial_point is None else initial_point
        current = Iterate.at(point, cost, problem)
        pairs: Pairs = deque(maxlen=self._memory)
        iteration, step_size = 0, None
        while True:
            columns.print_row([iteration, current.cost, current.gradient_norm])
            self.log_iterate(iteration, current.point, current.cost, current.gradient_norm)
            reason = self._reason_to_stop(start_time, iteration, current, step_size, cost.evaluations)
            if reason:
                break
            step = self._step(cost, problem, current, pairs)
            if isinstance(step, str):
                seconds = time.time() - start_time
                reason = f"Terminated - {step} after {iteration} iterations, {seconds:.2f} seconds."
                break
            update_pairs(pairs, problem.manifold, current, step)
            iteration, step_size, current = iteration + 1, step.length, step.end
        self.print_reason(reason)
        return self.finished(
            start_time,
            point=current.point,
            cost=current.cost,
            iterations=iteration,
            stopping_criterion=reason,
            cost_evaluations=cost.evaluations,
            step_size=step_size,
            gradient_norm=current.gradient_norm,
        )

    def _step(
        self, cost: CountedCost, problem: pymanopt.Problem, current: Iterate, pairs: Pairs
    ) -> Step | str:
        """Return the first step that lowers the cost; in words why there is none."""
        length = 0.0
        for direction in _directions(problem, current, pairs):
            length, point = self._search(cost, problem.manifold, current, direction, bool(pairs))
            if length > 0:
                end = Iterate.at(point, cost, problem)
                if end.is_finite:
                    return Step(direction, length, end)
            pairs.clear()
        return "cost or gradient not finite" if length > 0 else "no lower cost along the gradient"

    def _search(
        self, cost: CountedCost, manifold: Any, current: Iterate, direction: Any, unit_step_first: bool
    ) -> tuple[float, Any]:
        slope = manifold.inner_product(current.point, current.gradient, direction)
        norm = float(manifold.norm(current.point, direction))
        if not (slope < 0 and norm < np.inf):
            return 0.0, current.point
        searcher: Any = self.line_searcher
        if unit_step_first and _has_first_step(searcher):
            # A copy, because the original would start with the t it accepted last, for another direction.
            searcher = dataclasses.replace(searcher, first_step=norm)
        return searcher.search(cost, manifold, current.point, direction, current.cost, slope)

    def _reason_to_stop(
        self,
        start_time: float,
        iteration: int,
        current: Iterate,
        step_size: float | None,
        cost_evaluations: int,
    ) -> str | None:
        if not current.is_finite:
            return "Terminated - cost or gradient not finite at the initial point."
        return self.criterion_met(
            start_time,
            iteration=iteration,
            gradient_norm=current.gradient_norm,
            step_size=np.inf if step_size is None else step_size,
            cost_evaluations=cost_evaluations,
        )


def _directions(problem: pymanopt.Problem, current: Iterate, pairs: Pairs) -> Iterator[Any]:
    """Yield search directions: −H grad f, then the preconditioned or plain gradient if that fails."""
    if pairs:
        yield -inverse_hessian_product(problem, current, pairs)
    direction = -problem.preconditioner(current.point, current.gradient)
    if problem.manifold.inner_product(current.point, current.gradient, direction) < 0:
        yield direction
    else:  # P is not positive definite
        yield -current.gradient


def _has_first_step(searcher: Any) -> bool:
    """Whether a line searcher is a dataclass with the field `first_step`, the length of its first trial."""
    fields = dataclasses.fields(searcher) if dataclasses.is_dataclass(searcher) else ()
    return any(field.name == "first_step" for field in fields)
