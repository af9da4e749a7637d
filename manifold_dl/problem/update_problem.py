"""The dictionary update as a Pymanopt problem: what users call.

`update_problem` checks its input, subtracts what the atoms outside I contribute, and hands Pymanopt the
reduced objective (plus the regularizers) with its gradient, its Hessian and a preconditioner.
`updates/workspace.py` builds the same problem for every set I of an update stage.
"""

from collections.abc import Callable, Sequence
from typing import Any, Literal

import numpy as np

from manifold_dl._validation import as_atoms, as_dictionary, as_ridge
from manifold_dl.engines import Engine
from manifold_dl.engines.threads import as_engine
from manifold_dl.engines.units import as_units
from manifold_dl.engines.weights import as_weighted_signals
from manifold_dl.manifolds import Spheres, feasible_set
from manifold_dl.problem.evaluation import EvaluationPolicy
from manifold_dl.problem.fixed import FixedCodes
from manifold_dl.problem.inner import InnerProblem, RidgeCodes
from manifold_dl.problem.objective import Objective
from manifold_dl.problem.pairs import share_products
from manifold_dl.problem.separate import (
    SeparateFixedCodes,
    SeparateRidgeCodes,
    no_weights,
    products_are_small,
)
from manifold_dl.problem.signals import AtomSubset, SupportedSignals, values_of
from manifold_dl.problem.support import Support, as_support, require_determined
from manifold_dl.problem.support_problem import SupportProblem, WholeUpdate


def update_problem(
    signals: Any,
    support: Any,
    *,
    manifold: Callable[[int, int], Any] = Spheres,
    mu: float = 0.0,
    atoms: Sequence[int] | np.ndarray | None = None,
    dictionary: Any = None,
    regularizers: Sequence[Any] = (),
    codes: Literal["follow", "fixed"] = "follow",
    precondition: bool = True,
    threads: int | None = None,
    engine: Engine | None = None,
    weights: Any = None,
) -> SupportProblem:
    """The update of a set I of atoms, and of the codes on them, as a Pymanopt problem.

    Minimises f_I(D_I) + Σ R(D) over the m×|I| dictionaries of `manifold`, where

        f_I(D_I) = Σ_j min_x ‖(Y_r)_j − D_{I∩Ω_j} x‖² + μ‖x‖²,   Y_r = Y − D_{I^c} X_{I^c}.

    Parameters
    ----------
    signals : m×n array
        Y, a signal in every column.
    support : boolean d×n mask, n×S integer array or sparse d×n array
        Ω. A sparse (or dense) array of codes brings its values along: those of the atoms outside I stay
        as they are. Without values they are the optimal ones for `dictionary`.
    manifold : factory (m, k) → Pymanopt manifold of m×k arrays
        `Spheres`, `Lines`, any other of `manifold_dl.manifolds`, or Pymanopt's own `Oblique`, `Stiefel`, ...
    mu : float
        The ridge μ ≥ 0; positive for regularized SimCO.
    atoms : sequence of int, optional
        The set I; all atoms by default.
    dictionary : m×d array, optional
        The whole dictionary; needed where I leaves some atoms out.
    regularizers : sequence of Regularizer
        Smooth penalties on the whole dictionary; functions of it will do.
    codes : "follow" or "fixed"
        Whether the codes of I follow D (SimCO) or keep the values given with the support (MOD).
    precondition : bool
        Divide each atom's gradient by its energy ‖X_i‖², for the optimizers that use a preconditioner.
    threads : int, optional
        Short for ``engine=Threads(threads)``; all processors by default. The results have the same bits for
        any number.
    engine : Engine, optional
        Where the signals are and what runs the computation: `engines.Threads()` by default.
    weights : array of length n, or m×n array, optional
        Numbers ≥ 0. One per signal multiplies its whole term, μ included. One per entry multiplies the
        squared error of that entry; 0 marks a missing entry, whose value (NaN, too) never matters.

    Returns
    -------
    SupportProblem

    Examples
    --------
    >>> import numpy as np
    >>> from pymanopt.optimizers import TrustRegions
    >>> rng = np.random.default_rng(0)
    >>> true = rng.standard_normal((4, 6))
    >>> true /= np.linalg.norm(true, axis=0)
    >>> mask = np.arange(6)[:, None] % 3 == np.arange(60) % 3
    >>> Y = true @ (mask * rng.standard_normal((6, 60)))
    >>> problem = update_problem(Y, mask, mu=1e-3)
    >>> start = problem.manifold.random_point(rng)
    >>> result = TrustRegions(verbosity=0).run(problem, initial_point=start)
    >>> X = problem.codes(result.point)
    >>> bool(np.linalg.norm(Y - result.point @ X) < 0.01 * np.linalg.norm(Y))
    True
    """
    engine = as_engine(threads, engine)
    known = as_weighted_signals(signals, weights, engine)
    n, m = known.rows.shape
    if dictionary is not None:
        dictionary = as_dictionary(dictionary, n_rows=m).astype(known.rows.dtype, copy=False)
    omega = as_support(support, n, None if dictionary is None else dictionary.shape[1])
    I = as_atoms(atoms, omega.n_atoms)
    mu = as_ridge(mu)
    _require_complete(omega, I, codes, dictionary)
    if codes == "follow":
        require_determined(omega, m, mu, known.weights)
    feasible = feasible_set(manifold, m, len(I))
    supported = SupportedSignals.of(known.rows, omega, engine, known.weights)
    if omega.values is not None:
        values = as_units(omega.values.astype(known.rows.dtype, copy=False), known.exponent)
        omega = omega._replace(values=known.scaled(values, omega.indptr))
    elif len(I) < omega.n_atoms:
        everything = supported.subset(np.arange(omega.n_atoms), None, None)
        inner = inner_problem(everything, "follow", mu)
        omega = omega._replace(values=make_objective(everything, inner).codes(dictionary))
    given = None if omega.values is None else engine.open(values_of(omega.values, omega))
    subset = supported.subset(I, dictionary, given, with_rest=True)
    return SupportProblem(
        make_objective(subset, inner_problem(subset, codes, mu)),
        subset,
        WholeUpdate(omega.n_atoms, dictionary, known, omega),
        feasible,
        regularizers=regularizers,
        precondition=precondition,
    )


def _require_complete(omega: Support, atoms: np.ndarray, codes: str, dictionary: np.ndarray | None) -> None:
    """Refuse what leaves the objective undefined: missing codes, or missing atoms."""
    if codes not in ("follow", "fixed"):
        raise ValueError(f"codes={codes!r}: codes either 'follow' the dictionary or stay 'fixed'.")
    if codes == "fixed" and omega.values is None:
        raise ValueError(
            "codes='fixed' needs the codes: give them as the support, a sparse d×n array of numbers."
        )
    if len(atoms) < omega.n_atoms and dictionary is None:
        raise ValueError(
            f"atoms names {len(atoms)} of {omega.n_atoms} atoms: give the whole dictionary as well, "
            "for what the others contribute."
        )


def inner_problem(subset: AtomSubset, codes: str, mu: float) -> InnerProblem:
    """How the codes of a set I of atoms follow: with the ridge μ, or not at all."""
    engine, weights = subset.whole.engine, subset.weights
    if weights is None:
        usage = subset.whole.usage if subset.part is None else None
        shared = share_products(len(subset.atoms), subset.data, engine, usage)
        if shared and codes == "follow":
            return RidgeCodes(mu)
        if shared:
            assert subset.codes is not None  # they were given
            return FixedCodes(subset.codes, subset.data, len(subset.atoms), engine)
        weights = no_weights(subset.data)
    if codes == "follow":
        has_weights = subset.weights is not None
        is_small = products_are_small(subset.whole.largest_support(), subset.whole.m, has_weights)
        return SeparateRidgeCodes(weights, mu, has_closed_form=is_small)
    assert subset.codes is not None
    return SeparateFixedCodes(weights, subset.codes)


def make_objective(
    subset: AtomSubset,
    inner: InnerProblem,
    policy: EvaluationPolicy = EvaluationPolicy(),  # noqa: B008 - frozen
) -> Objective:
    """f_I of a set of atoms."""
    whole = subset.whole
    return Objective(
        subset.data,
        subset.shape,
        whole.dtype,
        inner,
        engine=whole.engine,
        constant=subset.rest,
        policy=policy,
    )
