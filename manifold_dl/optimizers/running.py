"""Run any Pymanopt optimizer in an update rule: on a copy, silently, from the current atoms.

The update rules and `check_optimizer` call `OptimizerRun`. What Pymanopt has no public name for is in
`pymanopt_private.py`.
"""

import inspect
from contextlib import AbstractContextManager, nullcontext
from copy import deepcopy
from functools import lru_cache
from typing import Any

import numpy as np
import pymanopt
from pymanopt.optimizers import NelderMead, ParticleSwarm

from manifold_dl._validation import warn_once
from manifold_dl.components.errors import ComponentError, is_users, naming, raised_in
from manifold_dl.line_search.protocol import keeps_step, memory_of, restore_memory
from manifold_dl.manifolds.randomness import global_generator
from manifold_dl.optimizers.faults import require_sound_components
from manifold_dl.optimizers.population import PopulationProblem, initial_population
from manifold_dl.optimizers.protocol import members_of_problem
from manifold_dl.optimizers.pymanopt_private import (
    line_searcher_of,
    population_size,
    silence,
    stop_before_underflow,
)
from manifold_dl.optimizers.requirements import require_methods
from manifold_dl.optimizers.returned import returned_point


class OptimizerRun:
    """An optimizer during one run of an update rule: a copy, the only one that changes.

    The memory of a line searcher belongs to its problem: Pymanopt's predict the next step from the costs of
    the last one, which mean nothing for another problem. A searcher that declares ``keeps_step = True``
    (`line_search.protocol.FullLineSearcher`), as those of this package do, is kept from one set of atoms, and
    from one outer iteration, to the next.

    Parameters
    ----------
    optimizer : pymanopt.optimizers.optimizer.Optimizer
        It is copied, with its line searcher, and stays unchanged. Any other object with the method
        ``run(problem, initial_point=)`` can be used.
    memory : dict, optional
        The attribute `memory` of an earlier run, to continue as if there had been no interruption.
    is_own : bool
        Whether the optimizer was made for this run and need not be copied.

    Attributes
    ----------
    searches : bool
        Whether the optimizer uses a line searcher.

    Examples
    --------
    >>> from pymanopt.manifolds import Sphere
    >>> from pymanopt.optimizers import SteepestDescent
    >>> sphere, a = Sphere(3), np.array([0.0, 0.6, 0.8])
    >>> cost = pymanopt.function.numpy(sphere)(lambda x: -(a @ x))
    >>> gradient = pymanopt.function.numpy(sphere)(lambda x: -a)
    >>> problem = pymanopt.Problem(sphere, cost, euclidean_gradient=gradient)
    >>> run = OptimizerRun(SteepestDescent(min_gradient_norm=1e-8))
    >>> print(run.minimize(problem, np.array([1.0, 0.0, 0.0])).round(6) + 0.0)
    [0.  0.6 0.8]
    """

    def __init__(
        self, optimizer: Any, memory: dict[str, float | None] | None = None, *, is_own: bool = False
    ) -> None:
        self.optimizer = optimizer
        self._own = own = optimizer if is_own else _copied(optimizer)
        silence(own)
        self.searches = _takes_line_searcher(own.__class__)
        self._searcher = line_searcher_of(optimizer) if self.searches else None
        components = [(optimizer, "optimizer"), (self._searcher, "line searcher")]
        self._users = [(one, role) for one, role in components if one is not None and is_users(one)]
        if self.searches:
            own.line_searcher = None  # it may be that of an earlier run by the user, with its memory
            if memory:
                self._recall(memory)

    @property
    def memory(self) -> dict[str, float | None]:
        """What the line searcher keeps for the next problem."""
        return memory_of(getattr(self._own, "line_searcher", None))

    def minimize(self, problem: pymanopt.Problem, start: np.ndarray, rng: Any = None) -> np.ndarray:
        """Run the optimizer from a point of the problem's manifold, and return the point where it ends.

        Parameters
        ----------
        problem : pymanopt.Problem
            It may have the members of `OptimizedProblem`.
        start : ndarray
            The initial point.
        rng : Generator or seed, optional
            For optimizers that move a population of points at random.

        Returns
        -------
        ndarray
            The final point, in the dtype of the start. It may contain NaN: then there is a warning, and an
            update rule keeps its atoms.
        """
        feasible = members_of_problem(problem).feasible
        if feasible is not None:
            require_methods(self.optimizer, feasible)
        own, options, seen = self._own, {}, problem
        initial: np.ndarray | list[np.ndarray] = start
        draws: AbstractContextManager[None] = nullcontext()
        if self.searches:
            options = {"reuse_line_searcher": keeps_step(own.line_searcher)}
        if isinstance(own, ParticleSwarm | NelderMead):
            own = deepcopy(own)  # they keep limits that they choose for the dimension of their first problem
            rng, seen = np.random.default_rng(rng), PopulationProblem(problem)
            initial = initial_population(seen, start, population_size(own, problem.manifold), rng)
            draws = global_generator(rng)  # they use NumPy's global generator only
        stop_before_underflow(own, start.dtype)
        with (
            naming(self.optimizer, "optimizer"),
            draws,
            np.errstate(divide="ignore", invalid="ignore", over="ignore"),
        ):
            try:
                result = own.run(seen, initial_point=initial, **options)
            except Exception as error:
                # Pymanopt's conjugate gradients divide by the gradient's norm before testing it for zero.
                point = members_of_problem(problem).stationary_point
                if (
                    isinstance(error, ZeroDivisionError)
                    and raised_in(error, "pymanopt")
                    and point is not None
                ):
                    return point
                if not isinstance(error, ComponentError):  # another component may be the cause
                    self._require_sound_components(problem, start)
                raise
            point = returned_point(self.optimizer, result, problem, start, self._searcher)
            self._require_sound_components(problem, start, point)
        if not np.isfinite(point).all():
            text = (
                f"{type(self.optimizer).__name__} ended at a point of {problem.manifold} that is not finite"
            )
            warn_once(f"{text}: it is not used.", "not finite")
        return point

    def _require_sound_components(
        self, problem: pymanopt.Problem, start: np.ndarray, point: np.ndarray | None = None
    ) -> None:
        """Raise a `ComponentError` for the user's component that prevented the optimizer from moving.

        `point` is where it ended; None if it raised an exception.
        """
        users = [*self._users]
        if is_users(problem.manifold):
            users.append((problem.manifold, "manifold"))
        if not users:
            return
        is_finite = point is not None and bool(np.isfinite(point).all())
        if point is not None and is_finite and not np.array_equal(point, start):
            return
        require_sound_components(problem, self._searcher, start)
        if point is not None and not is_finite:
            component, role = users[0]
            raise ComponentError(component, role, "led to a point that is not finite")

    def _recall(self, memory: dict[str, float | None]) -> None:
        own = self._own
        searcher = deepcopy(line_searcher_of(own))
        if keeps_step(searcher):
            own.line_searcher = searcher
            restore_memory(searcher, memory)


@lru_cache  # inspecting a signature takes longer than a step
def _takes_line_searcher(optimizer_type: Any) -> bool:
    return "reuse_line_searcher" in inspect.signature(optimizer_type.run).parameters


def _copied(optimizer: Any) -> Any:
    try:
        return deepcopy(optimizer)
    except Exception as error:
        problem = (
            f"cannot be copied, and every run uses a copy ({type(error).__name__}: {error}); "
            "give its class a method __deepcopy__"
        )
        raise ComponentError(optimizer, "optimizer", problem) from error
