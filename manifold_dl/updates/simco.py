"""SimCO, the framework of the paper's Section II: one update stage over any sets I of atoms.

The schedule yields the sets I, and for each of them an optimizer moves the atoms of I on their manifold while
their codes follow. Primitive, regularized and two-step SimCO, K-SVD (|I| = 1) and MOD on the spheres (fixed
codes) are configurations of `SimCO`. A step reads from here downwards: `workspace.py` builds the problem of
I, an optimizer runs it, `workspace.py` accepts the result.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl.components import by_name
from manifold_dl.components.errors import raise_nested
from manifold_dl.engines import Engine
from manifold_dl.engines.opening import is_distant
from manifold_dl.engines.threads import as_engine
from manifold_dl.manifolds import Spheres, feasible_set
from manifold_dl.manifolds.factories import require_factory
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.optimizers import OptimizerRun
from manifold_dl.optimizers.by_name import optimizer as optimizer_by_name
from manifold_dl.optimizers.shortcuts import default_optimizer
from manifold_dl.problem.solvers import can_follow
from manifold_dl.problem.support_problem import SupportProblem
from manifold_dl.regularizers.by_name import regularizers as regularizers_by_name
from manifold_dl.regularizers.functions import as_regularizers
from manifold_dl.schedules import AllAtoms, sweep
from manifold_dl.updates.distant import run_distant
from manifold_dl.updates.penalized_workspace import PenalizedWorkspace
from manifold_dl.updates.ridge import Ridge, RidgeSchedule, TwoStep, bound, check_ridge, ridge_at
from manifold_dl.updates.workspace import UpdateWorkspace


@dataclass(frozen=True)
class SimCO:
    """Simultaneous codeword optimisation: the atoms of I and their codes, together.

    Parameters
    ----------
    optimizer : Pymanopt optimizer, optional
        What moves D_I. By default `default_optimizer()`, five conjugate-gradient steps (see the notes).
    manifold : factory (m, k) → manifold of m×k arrays
        Where the atoms are not on it, they begin at its closest point (`manifold.closest`, where there is
        such a method), or where the retraction of a zero step leads, with the codes scaled to match.
    mu : float, sequence, function or RidgeSchedule
        The ridge: one number; a sequence, of which outer iteration t takes entry t (the last one holds);
        a function of t; or a schedule that a learning loop binds to its number of iterations, such as the
        default, `TwoStep`: a ridge in the first three fifths of a loop, and none in a single update. Zero is
        primitive SimCO, positive values are regularized SimCO.
    schedule : Schedule or iterable of index arrays
        The sets I of one sweep.
    regularizers : sequence of Regularizer
        Smooth penalties on the whole dictionary; functions of it will do.
    codes : "follow", "fixed" or a coder
        Whether the codes follow the dictionary on their supports (SimCO) or stay (MOD on the manifold). With
        a coder that minimises ½‖y − Dx‖² + p(x), such as `Lasso` or `RmsLasso`, they follow by that penalty,
        and their supports change on the way: the objective is that of `lasso_problem`, in which μ is the
        ridge of an elastic net (0 by default). In a learning loop such an update needs no other coder.
    precondition : bool
        Give the optimizer the energy preconditioner.
    threads : int, optional
        Short for ``engine=Threads(threads)``; all processors by default.
    engine : Engine, optional
        Where the signals are and what runs the computation. By default that of the learning loop, or
        `engines.Threads()`.

    Notes
    -----
    Optimizer, manifold, schedule and regularizers may be given by the names of the command line:
    ``SimCO("trust-region", manifold="zero-mean", regularizers=["coherence:0.01"])``. The fields then hold the
    objects.

    The cost of the optimizer is divided by ‖Y‖²/n, the mean energy of a signal, so its thresholds do not
    depend on the units of Y: multiplying Y by c multiplies X by c and changes nothing else (regularizers do
    not depend on Y: scale their weights by c²). Where an optimizer would raise the objective, the atoms stay
    and only their codes are brought up to date.

    Pymanopt's `SteepestDescent` and `ConjugateGradient`, with either of its line searchers, and
    `TrustRegions` need no options: with `OneAtATime` they end at K-SVD's residual (to 1e-6), and in the
    learning loop (16×32, n = 300, S = 4, 20 dB) at golden section's mean loss over 16 draws, to 13 digits.
    `NelderMead` and `ParticleSwarm`, which use no gradients, do not reach the minimum: for a single atom of
    16 entries the error ends 0.01 to 0.2 % and 0.2 to 0.6 % above it, and that adds up, to 20 % for a sweep
    of the swarm over 32 atoms. An atom takes them about a minute and a second, and the others 10 ms.

    The default is the fastest in ``python benchmarks/updates.py --only race --first-draw 100``: on a known
    support, milliseconds of one processor core until 1 % of the descent to the minimum is left.
    Geometric means over eight draws that no setting was chosen on, and over the three problems:

    ==============================  ===============  ===================  ==================  ====
    optimizer                       16×32, n = 300,  64×256, n = 10,000,  64×256, n = 5,000,  mean
                                    synthetic        synthetic            picture patches
    ==============================  ===============  ===================  ==================  ====
    steepest descent, golden        4.7              87                   191                 42.7
    steepest descent, Wolfe         2.2              52                   100                 22.4
    conjugate gradients, Wolfe      1.5              32                   14.6                8.8
    L-BFGS                          2.5              50                   15.6                12.5
    trust region                    1.8              43                   19.3                11.6
    trust region, kappa = 0.3       1.7              43                   14.2                10.2
    ==============================  ===============  ===================  ==================  ====

    It won each of four such runs, by 7 to 15 %. In the learning loop it is level with the trust region: in 40
    draws of 300 and 500 signals five steps of conjugate gradients between two codings find 32 and 81 % of the
    atoms, three trust-region steps 38 and 83 %, and either scatters by 4 and 2 %
    (``python benchmarks/recovery.py --seeds 40``).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> D, mask = Spheres(4, 6).random_point(rng), np.arange(6)[:, None] % 3 == np.arange(60) % 3
    >>> X = mask * rng.standard_normal((6, 60))
    >>> Y = Spheres(4, 6).random_point(rng) @ X
    >>> D_new, X_new = SimCO(mu=0.01)(Y, D, X)
    >>> bool(np.linalg.norm(Y - D_new @ X_new) < np.linalg.norm(Y - D @ X))
    True
    """

    optimizer: Any = None
    manifold: Callable[[int, int], Any] = Spheres
    mu: Ridge | RidgeSchedule = TwoStep()  # noqa: RUF009 - frozen, so one for all is as good as one each
    schedule: Any = field(default_factory=AllAtoms)
    regularizers: Sequence[Any] = ()
    codes: Any = "follow"
    precondition: bool = True
    threads: int | None = None
    engine: Engine | None = field(default=None, metadata={"stored": False})

    def __post_init__(self) -> None:
        self._check_codes()
        object.__setattr__(self, "optimizer", optimizer_by_name(self.optimizer))
        for name, kind in [("manifold", "manifolds"), ("schedule", "schedules")]:
            object.__setattr__(self, name, by_name.component(kind, getattr(self, name), name))
        if isinstance(self.optimizer, type) or not (self.optimizer is None or hasattr(self.optimizer, "run")):
            raise TypeError(
                f"optimizer={self.optimizer!r}: pass a Pymanopt optimizer, such as TrustRegions()."
            )
        require_factory(self.manifold)
        regularizers = as_regularizers(regularizers_by_name(self.regularizers))
        object.__setattr__(self, "regularizers", regularizers)
        as_engine(self.threads, self.engine)
        if isinstance(self.mu, np.ndarray):  # as a list it compares like every other field
            object.__setattr__(self, "mu", self.mu.tolist())
        check_ridge(self.mu)

    def _check_codes(self) -> None:
        if isinstance(self.codes, str) and self.codes in ("follow", "fixed"):
            return
        if isinstance(self.codes, str) or not can_follow(self.codes):
            raise ValueError(
                f"codes={self.codes!r}: codes 'follow' the dictionary on their supports, stay 'fixed', or "
                "follow by a coder that minimises a penalised error, such as Lasso(alpha=0.1). Other coders "
                "are for the learning loop: learn_dictionary(..., coder=...)."
            )
        if self.mu == TwoStep():  # the default is for codes on a support
            object.__setattr__(self, "mu", 0.0)

    def begin(self, max_iter: int | None = None, memory: dict[str, float | None] | None = None) -> "SimCORun":
        """The rule for one run of `max_iter` iterations, None for a single update.

        The run owns a copy of the optimizer, the step lengths of its line searcher and the schedule of μ,
        bound to the number of iterations: two runs never share anything that changes.

        Parameters
        ----------
        max_iter : int, optional
            The length of the loop.
        memory : dict, optional
            That of an earlier run, to continue where it ended.
        """
        rule, mu = self, bound(self.mu, max_iter)
        if mu is not self.mu:
            rule = replace(self, mu=mu)
        if self.optimizer is None:
            return SimCORun(rule, OptimizerRun(default_optimizer(), memory, is_own=True))
        return SimCORun(rule, OptimizerRun(self.optimizer, memory))

    @property
    def coder(self) -> Any:
        """The coder by which the codes follow the dictionary; None if they follow on supports, or stay."""
        return None if isinstance(self.codes, str) else self.codes

    @property
    def keeps_supports(self) -> bool:
        """Whether codes stay on their supports: not where they follow by a coder."""
        return self.coder is None

    def subsets(self, workspace: Any, rng: Any = None) -> list[np.ndarray]:
        """The sets I of one sweep."""
        n_atoms = workspace.dictionary.shape[1]
        if isinstance(self.schedule, AllAtoms):
            return [np.arange(n_atoms)]
        sets = sweep(self.schedule, n_atoms, rng, usage=workspace.usage)
        if workspace.is_blocked and n_atoms > 1 and any(len(I) == 1 for I in sets):
            raise ValueError(
                f"{self.schedule!r} moves single atoms, which takes {n_atoms} passes over all signals: "
                "where an engine has them, move all atoms at a time, or blocks of many (AllAtoms(), "
                "Blocks(64))."
            )
        return sets

    def mu_at(self, iteration: int | None) -> float:
        """The ridge of a single update, outside of a loop; that of a loop is ``begin(max_iter).mu_at``."""
        return ridge_at(self.mu, iteration)

    def __call__(
        self,
        signals: Any,
        dictionary: Any,
        codes: Any,
        *,
        iteration: int | None = None,
        rng: Any = None,
        weights: Any = None,
    ) -> tuple[np.ndarray, scipy.sparse.csc_array]:
        """One update stage: (m×n, m×d, sparse d×n) → (dictionary, codes).

        `signals` may be a Dask array or a path, as in `learn_dictionary`. `weights` are those of the signals
        (n of them) or of their entries (m×n), as in `update_problem`.
        """
        run = self.begin()
        options: dict[str, Any] = {"iteration": iteration, "rng": rng, "weights": weights}
        if is_distant(signals):
            options |= {"threads": self.threads, "engine": self.engine}
            return run_distant(run, signals, dictionary, codes, **options)
        return run(signals, dictionary, codes, **options)


class SimCORun:
    """`SimCO` in one run of a loop, with what changes between iterations; `SimCO.begin` makes it."""

    def __init__(self, rule: SimCO, optimizer: OptimizerRun) -> None:
        self.rule = rule
        self.optimizer = optimizer
        self._feasible = cache(partial(feasible_set, rule.manifold))  # every manifold is made once per run
        # What Pymanopt inspects of a problem is inspected once per run and manifold, not for every set I.
        self._problems: dict[FeasibleSet, SupportProblem] = {}
        self.objective: float | None = None  # of the last call, where codes follow by a penalty

    @property
    def memory(self) -> dict[str, float | None]:
        """What the line searcher keeps for the next iteration: step lengths, by name."""
        return self.optimizer.memory

    def mu_at(self, iteration: int | None) -> float:
        """The ridge of one outer iteration."""
        return self.rule.mu_at(iteration)

    def __call__(
        self,
        signals: Any,
        dictionary: Any,
        codes: Any,
        *,
        iteration: int | None = None,
        rng: Any = None,
        weights: Any = None,
    ) -> tuple[np.ndarray, scipy.sparse.csc_array]:
        """One update stage: (m×n, m×d, sparse d×n) → (dictionary, codes)."""
        rule, mu = self.rule, self.rule.mu_at(iteration)
        workspace = self._workspace(signals, dictionary, codes, mu, weights)
        m, subsets = len(workspace.dictionary), rule.subsets(workspace, rng)
        if all(self._feasible(m, k).unit_atoms for k in {len(I) for I in subsets}):
            workspace.normalize()
        for atoms in subsets:
            self.move(workspace, atoms, mu, rng)
        if isinstance(workspace, PenalizedWorkspace):
            self.objective = workspace.objective()
        return workspace.dictionary, workspace.codes()

    def _workspace(
        self, signals: Any, dictionary: Any, codes: Any, mu: float, weights: Any
    ) -> UpdateWorkspace | PenalizedWorkspace:
        """The working copy of D and X, or of D alone where codes follow without a support."""
        rule, engine = self.rule, as_engine(self.rule.threads, self.rule.engine)
        if not isinstance(rule.codes, str):
            return PenalizedWorkspace(signals, dictionary, codes, rule.codes, engine, weights)
        workspace = UpdateWorkspace(signals, dictionary, codes, engine, weights)
        if rule.codes == "follow":
            workspace.require_determined(mu)
        return workspace

    def move(self, workspace: Any, atoms: np.ndarray, mu: float, rng: Any = None) -> None:
        """Move the atoms I of the workspace, and their codes, if any signal uses them."""
        feasible = self._feasible(len(workspace.dictionary), len(atoms))
        try:
            options = {"searches": self.optimizer.searches, "ended": self._problems}
            problem = workspace.problem(atoms, feasible, mu, self.rule, **options)
            if problem is None:
                return
            start = workspace.start(atoms, problem, self.rule.regularizers)
            can_move = problem.manifold.dim > 0  # with a single feature, unit atoms cannot
            point = self.optimizer.minimize(problem, start.point, rng) if can_move else start.point
            workspace.accept(problem, point, start)
        except Exception as error:
            raise_nested(error)
