"""THE ONE FILE OF THE PACKAGE THAT USES PRIVATE NAMES OF PYMANOPT.

Pymanopt 2.2.1 has no public way to set the verbosity (`_verbosity`) and the tolerance (`_min_gradient_norm`)
of an optimizer that exists, or to read its line searcher (`_line_searcher`) and population size
(`_population_size`); `running.py` does that with the functions below. And what its `Optimizer` offers to
subclasses (log, stopping criteria, result) has names with underscores; `OwnOptimizer` gives it names that
`LBFGS` and `LeadingSingularVector` use.
"""

from typing import Any

import numpy as np
from pymanopt.manifolds.manifold import Manifold
from pymanopt.optimizers import NelderMead, ParticleSwarm
from pymanopt.optimizers.optimizer import Optimizer, OptimizerResult
from pymanopt.tools import printer


class OwnOptimizer(Optimizer):
    """An optimizer of this package: Pymanopt's class, with public names for what its subclasses need."""

    def start_log(self, parameters: dict[str, Any] | None = None) -> None:
        """Begin the log of a run, with the parameters of the optimizer.

        Parameters
        ----------
        parameters : dict, optional
            By name.
        """
        self._initialize_log(optimizer_parameters=parameters)

    def log_iterate(self, iteration: int, point: Any, cost: float, gradient_norm: float) -> None:
        """Add a point to the log, if one is kept.

        Parameters
        ----------
        iteration : int
        point : array
        cost, gradient_norm : float
            At the point.
        """
        self._add_log_entry(iteration=iteration, point=point, cost=cost, gradient_norm=gradient_norm)

    def criterion_met(self, start_time: float, **state: Any) -> str | None:
        """The stopping criterion that is met, in words; None if there is none.

        Parameters
        ----------
        start_time : float
            When the run began.
        **state
            `iteration`, `gradient_norm`, `step_size`, `cost_evaluations`.

        Returns
        -------
        str or None
        """
        return self._check_stopping_criterion(start_time=start_time, **state)

    def finished(self, start_time: float, **found: Any) -> OptimizerResult:
        """The result of a run, with its log and its seconds.

        Parameters
        ----------
        start_time : float
            When the run began.
        **found
            The other fields of `OptimizerResult`.

        Returns
        -------
        pymanopt.optimizers.optimizer.OptimizerResult
        """
        return self._return_result(start_time=start_time, **found)

    def start_printing(self) -> printer.ColumnPrinter | printer.VoidPrinter:
        """What prints a row per iteration, or nothing, as the verbosity says."""
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

    def print_reason(self, reason: str) -> None:
        """Print why a run ended, unless the optimizer is silent.

        Parameters
        ----------
        reason : str
        """
        if self._verbosity >= 1:
            print(reason)
            print("")


def silence(optimizer: Any) -> None:
    """Let an optimizer of Pymanopt print nothing; by default it prints every step of thousands of runs."""
    if isinstance(optimizer, Optimizer):
        optimizer._verbosity = 0


def stop_before_underflow(optimizer: Any, dtype: np.dtype) -> None:
    """Raise the smallest gradient to one whose square is a number: Pymanopt's line searchers divide by it."""
    if isinstance(optimizer, Optimizer):
        smallest = float(np.sqrt(np.finfo(dtype).tiny))
        optimizer._min_gradient_norm = max(optimizer._min_gradient_norm, smallest)


def line_searcher_of(optimizer: Any) -> Any:
    """The line searcher that an optimizer was made with; None if it has none."""
    return getattr(optimizer, "_line_searcher", None)


def population_size(optimizer: ParticleSwarm | NelderMead, manifold: Manifold) -> int:
    """How many points an optimizer moves."""
    if isinstance(optimizer, ParticleSwarm):
        # The default of its `run`; it prints a message for any other number than it expects.
        return int(optimizer._population_size or min(40, 10 * manifold.dim))
    # A simplex has dim + 1 corners. Pymanopt 2.2.1 refuses just that number, by an inverted comparison.
    return int(manifold.dim) + 2
