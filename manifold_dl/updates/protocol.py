"""Update rules at work: what a run of a rule owns, while the rule itself stays as it is.

A rule is a value that any number of loops may share. What goes from one iteration to the next (the optimizer
with the step lengths of its line searcher, a schedule of μ bound to the number of iterations) belongs to the
object that ``rule.begin(max_iter)`` returns, and every loop makes one of its own.
"""

import math
from typing import TYPE_CHECKING, Any, Protocol

from manifold_dl.components.errors import naming, raise_nested
from manifold_dl.engines.threads import as_threads
from manifold_dl.manifolds import feasible_set
from manifold_dl.optimizers import OptimizerRun
from manifold_dl.problem.regularization import require_finite_penalties
from manifold_dl.schedules import sweep
from manifold_dl.updates.workspace import Stage

if TYPE_CHECKING:
    from manifold_dl.updates.simco import SimCO


class DictionaryUpdate(Protocol):
    """Anything that is called with signals, dictionary and codes and returns a better pair.

    Two methods are optional:

    ``begin(max_iter, memory=None)``
        The rule for one run of a loop, an `UpdateRun`. A rule that carries anything from one iteration to the
        next, or wants to know how many iterations there will be, needs it; the rule itself never changes.
        `max_iter` is None for a single update. `memory` is what the `memory` of an interrupted run was, and
        empty at first. `learn_dictionary` calls it once for each restart, `streaming.absorb` for each batch.
    ``mu_at(iteration)``
        The ridge of an iteration, for the history and the test of convergence. A number in the attribute `mu`
        does as well.
    """

    def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
        """One update stage: (m×n, m×d, sparse d×n) → (dictionary, codes)."""


class UpdateRun(Protocol):
    """An update rule at work in one run: called like the rule, and owner of what changes.

    Attributes
    ----------
    memory : dict of str to float or None
        Everything that the next iteration reads besides its arguments. Checkpoints store it, and
        ``rule.begin(max_iter, memory)`` goes on from there with the same bits.
    """

    memory: dict[str, float | None]

    def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
        """One update stage: (m×n, m×d, sparse d×n) → (dictionary, codes)."""


def begin(
    update: DictionaryUpdate,
    max_iter: int | None = None,
    memory: dict[str, float | None] | None = None,
) -> Any:
    """The rule for one run: what its `begin` returns, or the rule itself where it has none.

    Examples
    --------
    >>> from manifold_dl import KSVD, SimCO
    >>> begin(KSVD(), max_iter=50)
    KSVD(method='svd', mu=0.0, schedule=OneAtATime(order='natural'), threads=None)
    >>> run = begin(SimCO(), max_iter=50)
    >>> run.mu_at(29), run.mu_at(30)
    (0.2, 0.0)
    """
    if not hasattr(update, "begin"):
        return update
    with naming(update, "update rule"):
        return update.begin(max_iter, memory or {})


class SimCORun:
    """`SimCO` at work in one run; `SimCO.begin` makes it."""

    def __init__(self, rule: "SimCO", optimizer: OptimizerRun) -> None:
        self.rule = rule
        self.optimizer = optimizer

    @property
    def memory(self) -> dict[str, float | None]:
        """What the line searcher remembers for the next iteration: step lengths, by name."""
        return self.optimizer.memory

    def mu_at(self, iteration: int | None) -> float:
        """The ridge of one outer iteration."""
        return self.rule.mu_at(iteration)

    def __call__(self, signals, dictionary, codes, *, iteration=None, rng=None):
        rule = self.rule
        stage = Stage(signals, dictionary, codes, threads=as_threads(rule.threads), unit_atoms=False)
        mu = rule.mu_at(iteration)
        if rule.codes == "follow":
            stage.require_determined(mu)
        subsets = sweep(rule.schedule, stage.D.shape[1], rng, usage=stage.incidence.usage)
        if all(feasible_set(rule.manifold, len(stage.D), k).unit_atoms for k in {len(I) for I in subsets}):
            stage.normalise()
        for I in subsets:
            self.move(stage, I, mu, rng)
        return stage.D, stage.codes()

    def move(self, stage: Stage, I, mu: float, rng=None) -> None:
        """Move the atoms I of the stage, and their codes, if any signal uses them."""
        try:
            problem = stage.problem(I, mu, self.rule)
            if problem is None:
                return
            start = stage.D[:, I]
            if self.optimizer.searches:
                problem.objective.expect_searches()
            before = problem.cost(start)  # every optimizer begins with it: now the answer is known
            if not math.isfinite(before):
                require_finite_penalties(self.rule.regularizers, stage.D)
            point = self.optimizer.minimize(problem, start, rng)
            stage.accept(I, problem, point, before)
        except Exception as error:
            raise_nested(error)
