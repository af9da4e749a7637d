"""One dictionary-update stage: SimCO, K-SVD and MOD.

Each rule is called as ``D, X = update(Y, D, X)``. `SimCO` is the framework of the paper's Section II: the
schedule names the sets I, and for each of them the atoms of I move on their manifold while the codes on
them follow. K-SVD is the configuration with |I| = 1, MOD on the spheres the one with fixed codes; classic
MOD, which ignores the norms and restores them afterwards, is a rule of its own.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.linalg
from pymanopt.optimizers import ConjugateGradient

from manifold_dl.blocks import as_threads
from manifold_dl.inputs import as_ridge
from manifold_dl.line_search import GeodesicSearch
from manifold_dl.manifolds import Spheres, feasible_set
from manifold_dl.manifolds.factories import require_factory
from manifold_dl.optimizers import (
    LeadingSingularVector,
    recall_steps,
    run_quietly,
    step_memory,
)
from manifold_dl.optimizers.running import has_line_searcher
from manifold_dl.regularizers.functions import as_regularizers
from manifold_dl.schedules import AllAtoms, OneAtATime, sweep
from manifold_dl.stage import Stage


class DictionaryUpdate(Protocol):
    """Anything that is called with signals, dictionary and codes and returns a better pair."""

    def __call__(self, signals, dictionary, codes, *, iteration=0, rng=None):
        """One update stage: (m×n, m×d, sparse d×n) → (dictionary, codes)."""


def default_optimizer(steps=5):
    """So many conjugate-gradient steps along geodesics: see the measurements in `SimCO`.

    Polak and Ribière's β forgets a direction that did not help, so a laxer search will do. Its first probe
    grows with the number of atoms: the first step from a random dictionary turns each by about a radian.
    """
    searcher = GeodesicSearch(curvature=0.3, first_step=None)
    # Pymanopt makes one step less than it is allowed.
    return ConjugateGradient("PolakRibiere", line_searcher=searcher, max_iterations=steps + 1, verbosity=0)


def two_step(iteration, iterations=50):
    """The paper's two-step procedure: a ridge for the first three fifths of the outer iterations, then none.

    `benchmarks/recovery.py` prints what it finds on the paper's synthetic signals.
    """
    return 0.2 if iteration < 3 * iterations // 5 else 0.0


@dataclass(frozen=True)
class SimCO:
    """Simultaneous codeword optimisation: the atoms of I and their codes, together.

    Parameters
    ----------
    optimizer : Pymanopt optimizer, optional
        What moves D_I. By default `default_optimizer()`, five conjugate-gradient steps (see the notes).
    manifold : factory (m, k) → manifold of m×k arrays
        Where the atoms are not on it, they begin at the closest point of it, if it knows that
        (`manifold.closest`), with the codes scaled to match.
    mu : float, sequence or callable, optional
        The ridge: one number; a sequence, of which outer iteration t takes entry t (the last one holds);
        or a function of t. Zero is primitive SimCO, positive values are regularized SimCO. By default a
        single update is primitive, and a learning loop, which passes its `iteration`, gets `two_step`.
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
    What the optimizer sees is divided by ‖Y‖²/n, the mean energy of a signal, so its thresholds do not depend
    on the units of Y: multiplying Y by c multiplies X by c and changes nothing else (regularizers do not know
    of Y: scale their weights by c²). Where an optimizer would raise the objective, the atoms stay and only
    their codes are brought up to date.

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
    mu: float | Sequence[float] | Callable[[int], float] | None = None
    schedule: Any = field(default_factory=AllAtoms)
    regularizers: Sequence = ()
    codes: str = "follow"
    precondition: bool = True
    threads: int | None = None

    def __post_init__(self):
        if self.codes not in ("follow", "fixed"):
            raise ValueError(f"codes={self.codes!r}: codes either 'follow' the dictionary or stay 'fixed'.")
        if isinstance(self.optimizer, type) or not (self.optimizer is None or hasattr(self.optimizer, "run")):
            raise TypeError(
                f"optimizer={self.optimizer!r}: pass a Pymanopt optimizer, such as TrustRegions()."
            )
        require_factory(self.manifold)
        object.__setattr__(self, "regularizers", as_regularizers(self.regularizers))
        as_threads(self.threads)
        if isinstance(self.mu, np.ndarray):  # as a list it compares like every other field
            object.__setattr__(self, "mu", self.mu.tolist())
        if not (self.mu is None or callable(self.mu)):
            if not self._ridges:
                raise ValueError("mu is an empty sequence: name at least one ridge.")
            for value in self._ridges:
                as_ridge(value)

    @property
    def _ridges(self):
        return self.mu if isinstance(self.mu, Sequence) and not isinstance(self.mu, str) else (self.mu,)

    @cached_property
    def _optimizer(self):
        # Not in the field: Pymanopt's optimizers do not compare, and two default rules are equal.
        return default_optimizer() if self.optimizer is None else self.optimizer

    @property
    def memory(self):
        """What the line searcher remembers for the next stage: step lengths, by name."""
        return step_memory(self._optimizer)

    def recall(self, memory):
        """Go on with what was remembered earlier, where a run is resumed."""
        recall_steps(self._optimizer, memory)

    def mu_at(self, iteration):
        """The ridge of one outer iteration, None standing for a single update outside of a loop."""
        if self.mu is None:
            return 0.0 if iteration is None else two_step(iteration)
        iteration = iteration or 0
        if callable(self.mu):
            return as_ridge(self.mu(iteration))
        return float(self._ridges[min(iteration, len(self._ridges) - 1)])

    def __call__(self, signals, dictionary, codes, *, iteration=None, rng=None):
        stage = Stage(signals, dictionary, codes, threads=as_threads(self.threads), unit_atoms=False)
        mu = self.mu_at(iteration)
        if self.codes == "follow":
            stage.require_determined(mu)
        subsets = sweep(self.schedule, stage.D.shape[1], rng, usage=stage.incidence.usage)
        if all(feasible_set(self.manifold, len(stage.D), k).unit_atoms for k in {len(I) for I in subsets}):
            stage.normalise()
        keep_steps = bool(iteration)  # a run begins with fresh step lengths and goes on with those it finds
        for I in subsets:
            keep_steps |= self._move(stage, I, mu, keep_steps, rng)
        return stage.D, stage.support.codes(stage.values)

    def _move(self, stage, I, mu, keep_steps=False, rng=None):
        """Move the atoms I of the stage, and their codes; False if no signal uses them."""
        problem = stage.problem(I, mu, self)
        if problem is None:
            return False
        start = stage.D[:, I]
        if has_line_searcher(self._optimizer):
            problem.objective.expect_searches()
        before = problem.cost(start)  # every optimizer begins with it: now the answer is known
        point = run_quietly(self._optimizer, problem, start, keep_steps=keep_steps, rng=rng)
        stage.accept(I, problem, point, before)
        return True


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
                simco._move(stage, order[done : done + 1], float(self.mu))
                done += 1
        return stage.D, stage.support.codes(stage.values)


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
            return stage.D, stage.support.codes(stage.values)
        # D + (Y − D X) Xᵀ (X Xᵀ)⁺: among all least-squares solutions the one nearest to the old D.
        D = stage.D[:, used] + _solve_symmetric(gram[np.ix_(used, used)], right[used], self.ridge).T
        norms = np.linalg.norm(D, axis=0)
        # Least squares wants no atom at all, and rounding has no direction: the old one, with codes of zero.
        lost = norms <= 4 * np.sqrt(len(D)) * np.finfo(stage.D.dtype).eps
        D[:, lost], norms[lost] = stage.D[:, used][:, lost], 0
        stage.D[:, used] = D / np.where(lost, 1, norms)
        scales = np.ones(len(gram))
        scales[used] = norms
        values = stage.values * scales[stage.support.indices]
        return stage.D, stage.support.codes(values.astype(stage.values.dtype))


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
