"""One dictionary-update stage: SimCO, K-SVD and MOD.

Each rule is called as ``D, X = update(Y, D, X)``. `SimCO` is the framework of the paper's Section II: the
schedule names the sets I, and for each of them the atoms of I move on their manifold while the codes on
them follow. K-SVD is the configuration with |I| = 1, MOD on the spheres the one with fixed codes; classic
MOD, which ignores the norms and restores them afterwards, is a rule of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.linalg

from manifold_dl._validation import as_ridge
from manifold_dl.components import by_name
from manifold_dl.engines.threads import as_threads
from manifold_dl.manifolds import Spheres
from manifold_dl.manifolds.factories import require_factory
from manifold_dl.optimizers import LeadingSingularVector, OptimizerRun
from manifold_dl.optimizers.by_name import optimizer as optimizer_by_name
from manifold_dl.optimizers.shortcuts import default_optimizer
from manifold_dl.regularizers.by_name import regularizers as regularizers_by_name
from manifold_dl.regularizers.functions import as_regularizers
from manifold_dl.schedules import AllAtoms, OneAtATime, sweep
from manifold_dl.updates.protocol import DictionaryUpdate, SimCORun, UpdateRun, begin
from manifold_dl.updates.ridge import Ridge, RidgeSchedule, TwoStep, bound, check_ridge, ridge_at
from manifold_dl.updates.workspace import Stage

__all__ = ["KSVD", "MOD", "DictionaryUpdate", "SimCO", "UpdateRun", "begin", "default_optimizer"]


@dataclass(frozen=True)
class SimCO:
    """Simultaneous codeword optimisation: the atoms of I and their codes, together.

    Parameters
    ----------
    optimizer : Pymanopt optimizer, optional
        What moves D_I. By default `default_optimizer()`, five conjugate-gradient steps (see the notes).
    manifold : factory (m, k) → manifold of m×k arrays
        Where the atoms are not on it, they begin at the closest point of it, if it knows that
        (`manifold.closest`), or where the retraction of a zero step leads, with the codes scaled to match.
    mu : float, sequence, function or RidgeSchedule
        The ridge: one number; a sequence, of which outer iteration t takes entry t (the last one holds);
        a function of t; or a schedule that a learning loop binds to its number of iterations, such as the
        default, `TwoStep`: a ridge in the first three fifths of a loop, and none in a single update. Zero is
        primitive SimCO, positive values are regularized SimCO.
    schedule : Schedule or iterable of index arrays
        The sets I of one sweep.
    regularizers : sequence of Regularizer
        Smooth penalties on the whole dictionary; functions of it will do.
    codes : "follow" or "fixed"
        Whether the codes follow the dictionary (SimCO) or stay (MOD on the manifold).
    precondition : bool
        Offer the optimizer the energy preconditioner.
    threads : int, optional
        All processors by default.

    Notes
    -----
    Optimizer, manifold, schedule and regularizers may be given by the names that the command line knows:
    ``SimCO("trust-region", manifold="zero-mean", regularizers=["coherence:0.01"])``. The fields then hold the
    objects.

    What the optimizer sees is divided by ‖Y‖²/n, the mean energy of a signal, so its thresholds do not depend
    on the units of Y: multiplying Y by c multiplies X by c and changes nothing else (regularizers do not know
    of Y: scale their weights by c²). Where an optimizer would raise the objective, the atoms stay and only
    their codes are brought up to date.

    Pymanopt's `SteepestDescent` and `ConjugateGradient`, with either of its line searchers, and
    `TrustRegions` need no options: with `OneAtATime` they end at K-SVD's residual (to 1e-6), and in the
    learning loop (16×32, n = 300, S = 4, 20 dB) at golden section's mean loss over 16 draws, to 13 digits.
    `NelderMead` and `ParticleSwarm`, which use no gradients, do not reach the minimum: for a single atom of
    16 entries the error ends 0.01 to 0.2 % and 0.2 to 0.6 % above it, and that adds up, to 20 % for a sweep
    of the swarm over 32 atoms. An atom takes them about a minute and a second, and the others 10 ms.

    The default is the winner of a race, ``python benchmarks/updates.py --only race --first-draw 100``: on a
    known support, milliseconds of one processor core until 1 % of the descent to the minimum is left.
    Geometric means over eight draws that no setting was chosen on, and over the three problems:

    ==============================  ===============  ===================  ==================  ====
    optimizer                       16×32, n = 300,  64×256, n = 10,000,  64×256, n = 5,000,  mean
                                    synthetic        synthetic            picture patches
    ==============================  ===============  ===================  ==================  ====
    steepest descent, golden        4.7              87                   191                 42.7
    steepest descent, geodesic      2.2              52                   100                 22.4
    conjugate gradients, geodesic   1.5              32                   14.6                8.8
    L-BFGS                          2.5              50                   15.6                12.5
    trust region                    1.8              43                   19.3                11.6
    trust region, kappa = 0.3       1.7              43                   14.2                10.2
    ==============================  ===============  ===================  ==================  ====

    It won each of four such runs, by 7 to 15 %. In the learning loop it is level with the trust region: in 40
    draws of 300 and 500 signals five steps of conjugate gradients between two codings find 32 and 81 % of the
    atoms, three trust-region steps 38 and 83 %, and either scatters by 4 and 2 %
    (``recovery.py --optimizers --seeds 40``).

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
    manifold: Callable = Spheres
    mu: Ridge | RidgeSchedule = TwoStep()  # noqa: RUF009 - frozen, so one for all is as good as one each
    schedule: Any = field(default_factory=AllAtoms)
    regularizers: Sequence = ()
    codes: str = "follow"
    precondition: bool = True
    threads: int | None = None

    def __post_init__(self):
        if self.codes not in ("follow", "fixed"):
            raise ValueError(f"codes={self.codes!r}: codes either 'follow' the dictionary or stay 'fixed'.")
        object.__setattr__(self, "optimizer", optimizer_by_name(self.optimizer))
        for name, kind in [("manifold", "manifolds"), ("schedule", "schedules")]:
            object.__setattr__(self, name, by_name.component(kind, getattr(self, name), name))
        if isinstance(self.optimizer, type) or not (self.optimizer is None or hasattr(self.optimizer, "run")):
            raise TypeError(
                f"optimizer={self.optimizer!r}: pass a Pymanopt optimizer, such as TrustRegions()."
            )
        require_factory(self.manifold)
        object.__setattr__(self, "regularizers", as_regularizers(regularizers_by_name(self.regularizers)))
        as_threads(self.threads)
        if isinstance(self.mu, np.ndarray):  # as a list it compares like every other field
            object.__setattr__(self, "mu", self.mu.tolist())
        check_ridge(self.mu)

    def begin(self, max_iter: int | None = None, memory: dict[str, float | None] | None = None) -> SimCORun:
        """The rule for one run of `max_iter` iterations, None for a single update.

        The run owns a copy of the optimizer, the step lengths of its line searcher and the schedule of μ,
        bound to the number of iterations: two runs never share anything that changes. `memory` is that of
        an earlier run, to go on where it ended.
        """
        rule, mu = self, bound(self.mu, max_iter)
        if mu is not self.mu:
            rule = replace(self, mu=mu)
        if self.optimizer is None:
            return SimCORun(rule, OptimizerRun(default_optimizer(), memory, is_own=True))
        return SimCORun(rule, OptimizerRun(self.optimizer, memory))

    def mu_at(self, iteration: int | None) -> float:
        """The ridge of a single update, outside of a loop; that of a loop is ``begin(max_iter).mu_at``."""
        return ridge_at(self.mu, iteration)

    def __call__(self, signals, dictionary, codes, *, iteration=None, rng=None):
        return self.begin()(signals, dictionary, codes, iteration=iteration, rng=rng)


@dataclass(frozen=True)
class KSVD:
    """K-SVD: SimCO with one atom at a time and the leading singular vector as optimizer.

    Parameters
    ----------
    method : "svd" or "power"
        The exact singular vector of every atom, or one step of the power method towards it.
    mu : float
        A ridge on the codes. It leaves the vector and divides its codes by 1 + μ.
    schedule : Schedule
        The order of the atoms.

    Notes
    -----
    The rule *is* `as_simco()`. A compiled sweep gives the same numbers without a Pymanopt problem for every
    atom, which at 16×32 atoms takes most of the time (the second table of `benchmarks/updates.py`). Where it
    cannot tell the vector, because two singular values agree, the atom goes through the configuration.

    Examples
    --------
    >>> KSVD(method="power").as_simco().schedule
    OneAtATime(order='natural')
    """

    method: str = "svd"
    mu: float = 0.0
    schedule: Any = field(default_factory=OneAtATime)
    threads: int | None = None

    def __post_init__(self):
        if self.method not in ("svd", "power"):
            raise ValueError(
                f"method={self.method!r}: K-SVD updates an atom by 'svd' or by one 'power' step."
            )
        as_ridge(self.mu)
        object.__setattr__(self, "schedule", by_name.component("schedules", self.schedule, "schedule"))

    def as_simco(self):
        """The configuration of SimCO that this is."""
        steps = None if self.method == "svd" else 1
        optimizer = LeadingSingularVector(power_steps=steps)
        return SimCO(optimizer=optimizer, mu=self.mu, schedule=self.schedule, threads=self.threads)

    def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
        stage, simco = Stage(signals, dictionary, codes, threads=as_threads(self.threads)), self.as_simco()
        stage.require_determined(self.mu)
        subsets = sweep(self.schedule, stage.D.shape[1], rng, usage=stage.incidence.usage)
        if any(len(I) > 1 for I in subsets):
            return replace(simco, schedule=subsets)(signals, dictionary, codes)
        order, done = np.concatenate(subsets), 0
        while done < len(order):
            done += stage.ksvd(order[done:], self.mu, power=self.method == "power")
            if done < len(order):  # the compiled sweep stopped before an atom that is not for it
                simco.begin().move(stage, order[done : done + 1], float(self.mu))
                done += 1
        return stage.D, stage.codes()


@dataclass(frozen=True)
class MOD:
    """The method of optimal directions: least squares for D with X fixed, then unit norms.

    The codes are rescaled so that D X stays what least squares made it. Atoms without users, and
    directions that the codes leave undetermined, stay as they were.

    Parameters
    ----------
    ridge : float
        Pulls D towards the old dictionary, in units of the mean energy of a row of X. It is what keeps
        the update stable where codes are nearly collinear; 0 is the classic rule.

    Examples
    --------
    >>> X = np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]])
    >>> Y = np.array([[0.6, 0.0], [0.8, 1.0]]) @ X
    >>> D, _ = MOD()(Y, np.eye(2), X)
    >>> print(np.abs(D).round(12))
    [[0.6 0. ]
     [0.8 1. ]]
    """

    ridge: float = 0.0

    def __post_init__(self):
        if not (np.isfinite(self.ridge) and self.ridge >= 0):
            raise ValueError(f"ridge={self.ridge}: the ridge must be finite and not negative.")

    def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
        stage = Stage(signals, dictionary, codes)
        X = stage.support.codes(stage.values.astype(float))
        gram, right = (X @ X.T).toarray(), X @ stage.residual()
        used = np.diagonal(gram) > 0
        if not used.any():
            return stage.D, stage.codes()
        # D + (Y − D X) Xᵀ (X Xᵀ)⁺: among all least-squares solutions the one nearest to the old D.
        D = stage.D[:, used] + _solve_symmetric(gram[np.ix_(used, used)], right[used], self.ridge).T
        norms = np.linalg.norm(D, axis=0)
        # Least squares wants no atom at all, and rounding has no direction: the old one, with codes of zero.
        lost = norms <= 4 * np.sqrt(len(D)) * np.finfo(stage.D.dtype).eps
        D[:, lost], norms[lost] = stage.D[:, used][:, lost], 0
        stage.D[:, used] = D / np.where(lost, 1, norms)
        scales = np.ones(len(gram))
        scales[used] = norms
        stage.values = (stage.values * scales[stage.support.indices]).astype(stage.values.dtype)
        return stage.D, stage.codes()


def _solve_symmetric(gram, right, ridge):
    """(G + ρI)⁻¹ B for a positive semi-definite G; the minimum-norm solution where G is singular."""
    n_rows = len(gram)
    G = gram + ridge * np.trace(gram) / n_rows * np.eye(n_rows)
    try:
        factor = scipy.linalg.cho_factor(G)
        pivots = np.diagonal(factor[0]) ** 2
        if pivots.min() > n_rows * np.finfo(float).eps * pivots.max():
            return scipy.linalg.cho_solve(factor, right)
    except np.linalg.LinAlgError:
        pass
    return scipy.linalg.pinvh(G) @ right
