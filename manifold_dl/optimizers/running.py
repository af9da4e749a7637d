"""How an update rule runs any Pymanopt optimizer: a copy of it, silently, from where the atoms are.

Whatever this package has to know of Pymanopt's private attributes is in this file.
"""

import inspect
from contextlib import nullcontext
from copy import deepcopy
from functools import lru_cache
from numbers import Real
from typing import Any

import numpy as np
import pymanopt
from pymanopt.optimizers import NelderMead, ParticleSwarm
from pymanopt.optimizers.optimizer import Optimizer

from manifold_dl.components.errors import ComponentError, is_users, naming, raised_in
from manifold_dl.manifolds.randomness import global_generator
from manifold_dl.optimizers.faults import require_sound_parts
from manifold_dl.optimizers.requirements import require_methods
from manifold_dl.optimizers.returned import returned_point


class OptimizerRun:
    """An optimizer at work in one run of an update rule: a copy, which alone changes.

    The memory of a line searcher belongs to its problem: Pymanopt's guess the next step from the costs of the
    last one, which mean nothing for another problem. A searcher with the attribute ``keeps_step = True``, as
    ours have it, says that what it remembers is good for the next problem too, and keeps it from one set
    of atoms, and from one iteration, to the next.

    Parameters
    ----------
    optimizer : Pymanopt optimizer
        It is copied, with its line searcher, and stays as it is.
    memory : dict, optional
        What `memory` of an earlier run was, to go on as if there had been no break.
    is_own : bool
        The optimizer was made for this run and need not be copied.

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
        if isinstance(own, Optimizer):
            own._verbosity = 0  # its default prints every step, for thousands of problems
        #: Whether it moves along lines, as those optimizers do that take a line searcher.
        self.searches = _takes_line_searcher(type(own))
        self._searcher = getattr(optimizer, "_line_searcher", None) if self.searches else None
        parts = [(optimizer, "optimizer"), (self._searcher, "line searcher")]
        self._users = [(part, role) for part, role in parts if part is not None and is_users(part)]
        if self.searches:
            own.line_searcher = None  # that of an earlier run of the user's, with its memory
            if memory:
                self._recall(memory)

    @property
    def memory(self) -> dict[str, float | None]:
        """What the line searcher takes to the next problem: its private numbers, by name."""
        searcher = getattr(self._own, "line_searcher", None)
        if not getattr(searcher, "keeps_step", False):
            return {}
        return {
            name: None if value is None else float(value)
            for name, value in vars(searcher).items()
            if name.startswith("_") and (value is None or isinstance(value, Real))
        }

    def minimize(self, problem: pymanopt.Problem, start: np.ndarray, rng: Any = None) -> np.ndarray:
        """The point where the optimizer ends that begins at the point `start` of the problem's manifold.

        `rng` is for the optimizers that move a whole population of points at random.
        """
        if getattr(problem, "feasible", None) is not None:
            require_methods(self.optimizer, problem.feasible)
        own, options, beginning, draws = self._own, {}, start, nullcontext()
        if self.searches:
            keeps_step = getattr(own.line_searcher, "keeps_step", False)
            options = {"reuse_line_searcher": keeps_step}
        if isinstance(own, ParticleSwarm | NelderMead):
            own = deepcopy(own)  # they keep limits that they choose for the dimension of their first problem
            rng = np.random.default_rng(rng)
            beginning = _population(own, problem, start, rng)
            draws = global_generator(rng)  # they draw from NumPy's global generator, and know no other
        if isinstance(own, Optimizer):
            # Pymanopt's line searchers divide by the norm of the gradient and by its square.
            smallest = float(np.sqrt(np.finfo(start.dtype).tiny))
            own._min_gradient_norm = max(own._min_gradient_norm, smallest)
        with (
            naming(self.optimizer, "optimizer"),
            draws,
            np.errstate(divide="ignore", invalid="ignore", over="ignore"),
        ):
            try:
                result = own.run(problem, initial_point=beginning, **options)
            except Exception as error:
                # Its conjugate gradients divide by the gradient's norm before they look whether it is zero.
                point = getattr(problem, "stationary_point", None)
                if (
                    isinstance(error, ZeroDivisionError)
                    and raised_in(error, "pymanopt")
                    and point is not None
                ):
                    return point
                if not isinstance(error, ComponentError):  # it may have been given what it cannot use
                    self._require_sound_parts(problem, start)
                raise
            point = returned_point(self.optimizer, result, problem, start)
            self._require_sound_parts(problem, start, point)
        return point

    def _require_sound_parts(
        self, problem: pymanopt.Problem, start: np.ndarray, point: np.ndarray | None = None
    ) -> None:
        """Name the user's part that kept the optimizer from moving, or led it to what is no point.

        `point` is where it ended; None if it failed.
        """
        users = [*self._users]
        if is_users(problem.manifold):
            users.append((problem.manifold, "manifold"))
        if not users:
            return
        is_finite = point is not None and bool(np.isfinite(point).all())
        if is_finite and not np.array_equal(point, start):
            return
        require_sound_parts(problem, self._searcher, start)
        if point is not None and not is_finite:
            part, role = users[0]
            raise ComponentError(part, role, "led to a point that is not finite")

    def _recall(self, memory: dict[str, float | None]) -> None:
        own = self._own
        searcher = deepcopy(own._line_searcher)
        if getattr(searcher, "keeps_step", False):
            own.line_searcher = searcher
            for name, value in memory.items():
                if hasattr(searcher, name):
                    setattr(searcher, name, value)


@lru_cache  # a signature takes longer than a step
def _takes_line_searcher(optimizer_type: type) -> bool:
    return "reuse_line_searcher" in inspect.signature(optimizer_type.run).parameters


def _copied(optimizer: Any) -> Any:
    try:
        return deepcopy(optimizer)
    except Exception as error:
        problem = (
            f"cannot be copied, and every run works on a copy of its own ({type(error).__name__}: {error}); "
            "give its class a method __deepcopy__"
        )
        raise ComponentError(optimizer, "optimizer", problem) from error


def _population(
    optimizer: ParticleSwarm | NelderMead,
    problem: pymanopt.Problem,
    start: np.ndarray,
    rng: np.random.Generator,
) -> list[np.ndarray]:
    """The start and random neighbours of it, so near that one of them has a lower cost.

    Among many unknowns the curvature decides the cost of a far neighbour: from a start that is better than
    all the rest such methods hardly ever find down, and would hand it back.
    """
    manifold = problem.manifold
    if isinstance(optimizer, ParticleSwarm):
        # The default of its `run`; another number than it expects would make it print.
        size = optimizer._population_size or min(40, 10 * manifold.dim)
    else:
        # A simplex has dim + 1 corners. Pymanopt 2.2.1 refuses just that number, by an inverted comparison.
        size = manifold.dim + 2
    directions = [manifold.projection(start, rng.standard_normal(start.shape)) for _ in range(int(size) - 1)]
    lowest = problem.cost(start)
    for radius in 0.1 * 0.5 ** np.arange(25):
        for i, direction in enumerate(directions[:8]):
            for step in (radius, -radius):
                if problem.cost(manifold.retraction(start, step * direction)) < lowest:
                    directions[i] = np.sign(step) * direction
                    return _neighbours(manifold, start, radius, directions)
    return _neighbours(manifold, start, 0.1, directions)  # the start is a minimum, to rounding


def _neighbours(manifold: Any, start: np.ndarray, radius: float, directions: list) -> list[np.ndarray]:
    return [start, *(manifold.retraction(start, radius * direction) for direction in directions)]
