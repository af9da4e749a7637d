"""`LeadingSingularVector`: the closed form for a single atom, K-SVD's singular vector, as an optimizer.

With one unit atom u the objective is ‖Y_r‖² − ‖Y_rᵀu‖²/(1 + μ). `KSVD` and `SimCO` with `OneAtATime` use it.
"""

import time
from typing import Any

import numpy as np
import scipy.linalg
from pymanopt.manifolds import Grassmann, Oblique, Stiefel
from pymanopt.optimizers.optimizer import OptimizerResult

from manifold_dl._validation import require_count
from manifold_dl.manifolds import Lines, Orthonormal, Spheres, SpheresWithin
from manifold_dl.optimizers.protocol import members_of_problem
from manifold_dl.optimizers.pymanopt_private import OwnOptimizer

# With one column all of them are the whole unit sphere, or its lines.
UNIT_SPHERES = (Spheres, Lines, Orthonormal, Oblique, Stiefel, Grassmann)


class LeadingSingularVector(OwnOptimizer):
    """The minimum of the rank-one problem, for dictionary problems with |I| = 1.

    With a single unit atom u the objective is ‖Y_r‖² − ‖Y_rᵀu‖²/(1 + μ), so the minimiser is the leading
    left singular vector of Y_r for every ridge μ; only the codes shrink by 1/(1 + μ). The vector belongs
    to an m×m eigenvalue problem, however many signals there are. For unit atoms in a subspace (`ZeroMean`,
    `Subspace`) it is that of the projected signals.

    Parameters
    ----------
    power_steps : int, optional
        Make that many steps of the power method from the initial point instead of solving exactly.
    *args, **kwargs
        The arguments of every Pymanopt optimizer, which have no effect here; `verbosity` is 0 by default.

    Examples
    --------
    >>> from manifold_dl.problem.update_problem import update_problem
    >>> Y = np.outer([0.6, 0.8], [1.0, -2.0, 3.0])
    >>> problem = update_problem(Y, np.ones((1, 3), dtype=bool))
    >>> result = LeadingSingularVector().run(problem, initial_point=np.array([[1.0], [0.0]]))
    >>> print(np.abs(result.point.T).round(12))
    [[0.6 0.8]]
    """

    def __init__(self, power_steps: int | None = None, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"verbosity": 0, **kwargs})
        if power_steps is not None:
            require_count("power_steps", power_steps, "give at least one step, or None for the exact vector")
        self._power_steps = power_steps

    def run(self, problem: Any, *, initial_point: np.ndarray | None = None) -> OptimizerResult:
        """Solve a dictionary problem in one atom whose codes follow, without regularizers.

        Parameters
        ----------
        problem : DictionaryProblem
            As `update_problem` returns it, for a single atom.
        initial_point : m×1 array, optional
            The current atom: it decides the sign, and is the start of the power method. By default random.

        Returns
        -------
        pymanopt.optimizers.optimizer.OptimizerResult
            With the minimum as its point.
        """
        rows = _signals_of_one_atom(problem)
        start = time.time()
        self.start_log()
        if initial_point is None:
            initial_point = problem.manifold.random_point()
        if self._power_steps is None:
            u = _leading(rows)
        else:
            u = np.asarray(initial_point, dtype=float)
            for _ in range(self._power_steps):
                u = _unit(rows.T @ (rows @ u))
        if not u.any():  # the signals are zero, and all directions equally good: keep that of the start
            u = np.asarray(initial_point)
        if np.vdot(u, initial_point) < 0:
            u = -u  # of the two signs, the one nearer to the current atom
        point = u.astype(problem.objective.dtype)
        return self.finished(
            start,
            point=point,
            cost=problem.cost(point),
            iterations=self._power_steps or 1,
            stopping_criterion="Terminated - closed form.",
            cost_evaluations=1,
        )


def _signals_of_one_atom(problem: Any) -> np.ndarray:
    """Return the signals that use the atom, as rows in float64; raise if there is no closed form."""
    objective = members_of_problem(problem).objective
    if objective is None or objective.shape[1] != 1:
        raise ValueError(
            "LeadingSingularVector updates one atom at a time: use a schedule like OneAtATime()."
        )
    if not objective.inner.follows or problem.regularization is not None:
        raise ValueError("There is no closed form for fixed codes or regularizers: take another optimizer.")
    if not objective.inner.has_closed_form:
        raise ValueError(
            "There is no closed form where codes follow by a penalty: the best atom is no singular vector. "
            "Take another optimizer."
        )
    if problem.subset.weights is not None:
        raise ValueError(
            "There is no closed form where entries have weights: the best atom is no singular vector. Take "
            "another optimizer."
        )
    manifold = problem.manifold
    in_subspace = isinstance(manifold, SpheresWithin)
    if type(manifold) not in UNIT_SPHERES and not in_subspace:
        raise ValueError(
            f"There is no closed form on {manifold}: the singular vector is the best of all unit "
            "vectors, and those are not known to be its points."
        )
    rows = objective.used_signals().astype(float, copy=False)
    return manifold.within(rows.T).T if in_subspace else rows


def _leading(rows: np.ndarray) -> np.ndarray:
    """Return the leading right singular vector of `rows`, as a column; zero if they are zero."""
    m = rows.shape[1]
    gram = rows.T @ rows
    energy = np.trace(gram)
    if energy == 0:
        return np.zeros((m, 1))
    # Divided by the trace, because LAPACK's thresholds are not the same at every scale.
    return scipy.linalg.eigh(gram / energy, subset_by_index=[m - 1, m - 1], check_finite=False)[1]


def _unit(vector: np.ndarray) -> np.ndarray:
    norm = np.linalg.norm(vector)
    return vector / norm if norm > 0 else vector
