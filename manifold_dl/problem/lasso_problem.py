"""Learning with ℓ₁ codes as one Pymanopt problem: no support, no coder, nothing alternates.

    f_α(D) = Σ_j min_x ½‖y_j − Dx‖² + α‖x‖₁,   gradient −Σ_j r_j x_jᵀ

For every dictionary all codes are the solution of a lasso, so that f_α is a function of D alone and any
Pymanopt optimizer minimises it. `lasso_problem` is what users call; `penalized_problem` does the same for any
coder that states its penalty, and `updates/penalized_workspace.py` builds it for the sets I of an update.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from manifold_dl._validation import (
    as_alpha,
    as_atoms,
    as_dictionary,
    as_ridge,
    require_count,
    require_memory,
)
from manifold_dl.engines import Engine
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.opening import open_distant
from manifold_dl.engines.threads import as_engine
from manifold_dl.engines.weights import WeightedSignals
from manifold_dl.manifolds import Spheres, feasible_set
from manifold_dl.problem.penalized_problem import (
    PenalizedProblem,
    SignalBlocks,
    make_penalized_problem,
    open_signals,
)
from manifold_dl.problem.solvers import InnerSolver, LassoSolver, PenalizedCoder, solver_of
from manifold_dl.problem.whole import WholeDictionary


def lasso_problem(
    signals: Any,
    n_atoms: int,
    *,
    alpha: float,
    manifold: Callable[[int, int], Any] = Spheres,
    mu: float = 0.0,
    nonnegative: bool = False,
    atoms: Sequence[int] | np.ndarray | None = None,
    dictionary: Any = None,
    regularizers: Sequence[Any] = (),
    precondition: bool = True,
    weights: Any = None,
    threads: int | None = None,
    engine: Engine | None = None,
) -> PenalizedProblem:
    """Dictionary learning with ℓ₁ codes as a Pymanopt problem.

    Minimises f(D) + Σ R(D) over the m×d dictionaries of `manifold`, where

        f(D) = Σ_j min_x ½‖y_j − Dx‖² + α‖x‖₁ + (μ/2)‖x‖².

    Parameters
    ----------
    signals : m×n array, Dask array, or path
        Y, a signal in every column; in a file in every row, as in `learn_dictionary`.
    n_atoms : int
        d, the number of atoms.
    alpha : float
        α > 0, in the units of Dᵀy, as in `Lasso`. From max |Dᵀy| on all codes are zero.
    manifold : factory (m, k) → Pymanopt manifold of m×k arrays
        One that bounds the atoms, as the spheres do: otherwise long atoms with small codes cost nothing.
    mu : float
        μ ≥ 0. With μ > 0 the codes are those of the elastic net, and unique for every dictionary.
    nonnegative : bool
        The minimum over x ≥ 0 only, as by `Lasso(alpha, nonnegative=True)`.
    atoms : sequence of int, optional
        A set I of atoms that move while the others stay; all atoms by default. The codes of all follow.
    dictionary : m×d array, optional
        The whole dictionary; needed where I leaves some atoms out.
    regularizers : sequence of Regularizer
        Smooth penalties on the whole dictionary; functions of it will do.
    precondition : bool
        Divide each atom's gradient by its energy ‖X_i‖², for the optimizers that use a preconditioner.
    weights : array of length n, or m×n array, optional
        Numbers ≥ 0. One per entry multiplies its squared error, and neither α nor μ; 0 marks a missing entry,
        whose value may be anything, NaN too. One per signal multiplies its whole term, α and μ included.
    threads : int, optional
        Short for ``engine=Threads(threads)``; all processors by default. The results have the same bits for
        any number.
    engine : Engine, optional
        Where the signals are and what runs the computation: `engines.Threads()` by default.

    Returns
    -------
    PenalizedProblem
        A Pymanopt problem with `codes(point)`, `dictionary(point)`, counts and a record of iterates, as
        `update_problem` returns.

    Notes
    -----
    f is differentiable wherever every lasso has one solution, and its gradient is continuous there. Its
    Hessian is that of the current signs and jumps where a coefficient enters or leaves. A large α shrinks the
    codes and biases the atoms, a small one less so. To reduce it in stages is no remedy for local minima:
    with 300 steps in total, five stages from 0.3 to 0.02 found 48, 85 and 37 % of the atoms (16×32, S = 4;
    150 and 200 signals, and 200 at 20 dB; 16 draws), and 0.02 from the beginning 67, 87 and 47 %, each ± 2 to
    4 %. `SimCO(codes=Lasso(alpha))` does the same in the learning loop; `presets.recover` exchanges atoms as
    well, which does help.

    Examples
    --------
    >>> from pymanopt.optimizers import ConjugateGradient
    >>> from manifold_dl import WolfeSearch
    >>> from manifold_dl.datasets import synthetic
    >>> from manifold_dl.metrics import recovery
    >>> truth, _, Y = synthetic(8, 12, 300, sparsity=2, rng=0)
    >>> D = Spheres(8, 12).random_point(rng=1)
    >>> for alpha in (0.3, 0.1, 0.03):
    ...     problem = lasso_problem(Y, n_atoms=12, alpha=alpha)
    ...     optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=60, verbosity=0)
    ...     D = optimizer.run(problem, initial_point=D).point
    >>> recovery(D, truth)
    1.0
    """
    alpha, mu = as_alpha(alpha), as_ridge(mu)
    return _make_problem(
        _opened(signals, weights, threads, engine),
        n_atoms,
        lambda known: LassoSolver(float(np.ldexp(alpha, -known.exponent)), mu, nonnegative),
        manifold=manifold,
        moving=ChosenAtoms(atoms, dictionary),
        options={"regularizers": regularizers, "precondition": precondition},
    )


def penalized_problem(
    signals: Any,
    n_atoms: int,
    coder: PenalizedCoder,
    *,
    manifold: Callable[[int, int], Any] = Spheres,
    atoms: Sequence[int] | np.ndarray | None = None,
    dictionary: Any = None,
    regularizers: Sequence[Any] = (),
    precondition: bool = True,
    weights: Any = None,
    threads: int | None = None,
    engine: Engine | None = None,
) -> PenalizedProblem:
    """Dictionary learning with the codes of any convex penalty p as a Pymanopt problem, without a Hessian.

    Minimises f(D) + Σ R(D), where f(D) = Σ_j min_x ½‖y_j − Dx‖² + p(x). The gradient is that of the codes.

    Parameters
    ----------
    signals : m×n array, Dask array, or path
        Y, a signal in every column; in a file in every row, as in `learn_dictionary`.
    n_atoms : int
        d, the number of atoms.
    coder : PenalizedCoder
        Its `encode` returns the codes that minimise ½‖y − Dx‖² + p(x), and `penalty(codes)` is Σ p. If the
        codes are not exact, neither is the gradient: `diagnostics.check_gradient` shows it.
    manifold : factory (m, k) → Pymanopt manifold of m×k arrays
        One that bounds the atoms.
    atoms : sequence of int, optional
        A set I of atoms that move while the others stay; all atoms by default.
    dictionary : m×d array, optional
        The whole dictionary; needed where I leaves some atoms out.
    regularizers : sequence of Regularizer
        Smooth penalties on the whole dictionary.
    precondition : bool
        Divide each atom's gradient by its energy.
    weights : array of length n, or m×n array, optional
        As in `lasso_problem`. Weights of entries are passed on to `encode(signals, dictionary, weights=)`.
    threads : int, optional
        Short for ``engine=Threads(threads)``; all processors by default.
    engine : Engine, optional
        What runs the computation.

    Returns
    -------
    PenalizedProblem

    Examples
    --------
    Non-negative codes, by SciPy:

    >>> import scipy.optimize
    >>> class NonNegative:
    ...     def encode(self, signals, dictionary):
    ...         return np.stack([scipy.optimize.nnls(dictionary, y)[0] for y in signals.T], axis=1)
    ...     def penalty(self, codes):
    ...         return 0.0
    >>> Y = np.random.default_rng(0).random((6, 40))
    >>> problem = penalized_problem(Y, 4, NonNegative())
    >>> from manifold_dl.diagnostics import check_gradient
    >>> bool(check_gradient(problem))
    True
    """
    return _make_problem(
        _opened(signals, weights, threads, engine),
        n_atoms,
        lambda known: solver_of(coder, 0.0, known),
        manifold=manifold,
        moving=ChosenAtoms(atoms, dictionary),
        options={"regularizers": regularizers, "precondition": precondition},
    )


class ChosenAtoms(NamedTuple):
    """What a caller says of the atoms that move, before it is checked."""

    atoms: Any
    dictionary: Any


def _opened(signals: Any, weights: Any, threads: int | None, engine: Engine | None) -> SignalBlocks:
    """The signals in blocks; those that are not in memory stay where they are."""
    signals, weights = open_distant(signals, weights, threads, engine)
    is_blocked = isinstance(signals, BlockedSignals)
    return open_signals(signals, weights, signals.engine if is_blocked else as_engine(threads, engine))


def _make_problem(
    data: SignalBlocks,
    n_atoms: int,
    make_solver: Callable[[WeightedSignals], InnerSolver],
    *,
    manifold: Callable[[int, int], Any],
    moving: ChosenAtoms,
    options: dict[str, Any],
) -> PenalizedProblem:
    """Check the atoms, and make the problem."""
    require_count("n_atoms", n_atoms)
    m = data.shape[0]
    require_memory(n_atoms, m, data.dtype.itemsize)
    I, D = as_atoms(moving.atoms, n_atoms), moving.dictionary
    if D is not None:
        D = as_dictionary(D, n_rows=m).astype(data.dtype, copy=False)
        if D.shape[1] != n_atoms:
            raise ValueError(f"dictionary has {D.shape[1]} atoms, but n_atoms={n_atoms}.")
    elif len(I) < n_atoms:
        raise ValueError(
            f"atoms names {len(I)} of {n_atoms} atoms: give the whole dictionary as well, for the others."
        )
    if np.array_equal(I, np.arange(n_atoms)):
        D = None
    elif D is None:  # all atoms, in another order
        D = np.zeros((m, n_atoms), data.dtype)
    return make_penalized_problem(
        data,
        make_solver(data.known),
        WholeDictionary(n_atoms, D, data.known),
        I,
        feasible_set(manifold, m, len(I)),
        **options,
    )
