"""The dictionary update as a Pymanopt problem, for any Pymanopt optimizer.

`update_problem` checks its input, takes away what the atoms outside I contribute, and hands Pymanopt
the reduced objective (plus the regularizers) with its gradient, its Hessian and a preconditioner. The
problem counts what it evaluates and records every point that an optimizer accepts, because Pymanopt's
own counts and logs are not to be relied on.
"""

import math

import numpy as np
import pymanopt
import scipy.sparse
from pymanopt.manifolds import Oblique

from manifold_dl._validation import as_atoms, as_dictionary, as_ridge
from manifold_dl.engines.sources import as_signals, squared_norm
from manifold_dl.engines.threads import as_threads
from manifold_dl.engines.units import as_units, multiply
from manifold_dl.kernels import reduced as kernels
from manifold_dl.manifolds import Spheres, feasible_set
from manifold_dl.problem.geodesic import ProblemRestriction
from manifold_dl.problem.objective import Objective
from manifold_dl.problem.recorder import Books, Iterate
from manifold_dl.problem.regularization import Penalties, in_units
from manifold_dl.problem.support import Incidence, as_support, require_determined
from manifold_dl.regularizers.functions import as_regularizers


def update_problem(
    signals,
    support,
    *,
    manifold=Spheres,
    mu=0.0,
    atoms=None,
    dictionary=None,
    regularizers=(),
    codes="follow",
    precondition=True,
    threads=None,
):
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
        Divide each atom's gradient by its energy ‖X_i‖², for the optimizers that ask.
    threads : int, optional
        All processors by default. The results have the same bits for any number.

    Returns
    -------
    DictionaryProblem

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
    threads = as_threads(threads)
    rows, scale, exponent = as_signals(signals, threads)
    n, m = rows.shape
    if dictionary is not None:
        dictionary = as_dictionary(dictionary, n_rows=m).astype(rows.dtype, copy=False)
    omega = as_support(support, n, None if dictionary is None else dictionary.shape[1])
    I = as_atoms(atoms, omega.n_atoms)
    mu = as_ridge(mu)
    if codes not in ("follow", "fixed"):
        raise ValueError(f"codes={codes!r}: codes either 'follow' the dictionary or stay 'fixed'.")
    if codes == "follow":
        require_determined(omega, m, mu)
    if codes == "fixed" and omega.values is None:
        raise ValueError(
            "codes='fixed' needs the codes: give them as the support, a sparse d×n array of numbers."
        )
    if len(I) < omega.n_atoms and dictionary is None:
        raise ValueError(
            f"atoms names {len(I)} of {omega.n_atoms} atoms: give the whole dictionary as well, "
            "for what the others contribute."
        )
    if omega.values is not None:
        omega = omega._replace(values=as_units(omega.values.astype(rows.dtype, copy=False), exponent))
    elif len(I) < omega.n_atoms:
        whole = Objective(rows, omega.indptr, omega.indices, omega.n_atoms, mu, threads=threads)
        omega = omega._replace(values=whole.codes(dictionary))
    feasible = feasible_set(manifold, m, len(I))
    part = Incidence(omega).part(I)
    residual, constant = _without(rows, omega, part, dictionary)
    objective = Objective(
        residual,
        part.indptr,
        part.indices,
        len(I),
        mu,
        fixed_codes=omega.values[part.entries] if codes == "fixed" else None,
        constant=constant,
        threads=threads,
    )
    return DictionaryProblem(
        objective,
        feasible.manifold,
        omega,
        part,
        dictionary=dictionary,
        regularizers=regularizers,
        precondition=precondition,
        scale=scale,
        exponent=exponent,
        feasible=feasible,
    )


def _without(rows, omega, part, dictionary):
    """Y_r over the signals that use I, and ‖Y_r‖² over the others: they cost nothing, but they count."""
    if isinstance(part.active, slice):
        return rows, 0.0
    rest = rows
    if len(part.entries) < len(omega.indices):
        rest = rows.copy()
        others = omega.values.copy()
        others[part.entries] = 0
        kernels.accumulate(rest, omega.indptr, omega.indices, -others, np.ascontiguousarray(dictionary.T))
    idle = np.ones(len(rows), dtype=bool)
    idle[part.active] = False
    return rest[part.active], squared_norm(rest[idle])


class DictionaryProblem(pymanopt.Problem):
    """A `pymanopt.Problem` that knows its codes and keeps its own books.

    Attributes
    ----------
    counts : Counts
        Evaluations of the value, the gradient, Hessian products and line-search probes.
    feasible : FeasibleSet or None
        What tells the points of the manifold from other arrays, if it is known.
    penalties : Penalties or None
        The regularizers, if there are any, as functions of the atoms I.
    record : list of Iterate
        Value, gradient norm, seconds since the first evaluation and evaluations, at every accepted point.
    scale : float
        ‖Y‖², against which values and gradients are large or small, in units of the square of `signal_unit`.
    signal_unit : float
        1, unless the largest entry of the signals is beyond 2^±100 (2^±20 in single precision), where squares
        overflow or vanish: then the power of two that the signals are divided by. Cost, gradient and `scale`
        are in units of its square; the codes are in the units of the signals.
    stationary_point : array or None
        Where the gradient was zero, if an optimizer came to such a point.
    """

    stationary_point: np.ndarray | None = None

    def __init__(
        self,
        objective,
        manifold,
        support,
        part,
        *,
        dictionary=None,
        regularizers=(),
        precondition=True,
        scale=1.0,
        relative=False,
        exponent=0,
        feasible=None,
    ):
        if getattr(manifold, "couples_atoms", False) and len(part.atoms) < support.n_atoms:
            raise ValueError(
                f"{manifold} ties all atoms to each other, and {len(part.atoms)} of {support.n_atoms} cannot "
                "move without the rest: update all of them together, with schedule=AllAtoms() or atoms=None."
            )
        self.objective = objective
        self.counts = objective.counts
        self.record = []
        self.scale = scale
        self.signal_unit, self._exponent = math.ldexp(1.0, exponent), exponent
        self.part = part
        self.feasible = feasible
        self._omega, self._whole = support, dictionary
        penalties, regularizers = None, in_units(as_regularizers(regularizers), exponent)
        if regularizers:
            penalties = Penalties(regularizers, self.dictionary, part.atoms, support.n_atoms)
        self.penalties = penalties
        self._books = books = Books()

        # The mean energy of a signal: thresholds then do not depend on the units of Y, and Pymanopt's default
        # for the gradient, 1e-6, is as strict as it is for signals of norm 1.
        self.unit = unit = scale / support.n_signals if relative and scale > 0 else 1.0

        @pymanopt.function.numpy(manifold)
        def cost(point):
            books.begin()
            value = objective.value(point)
            if penalties:
                value += penalties.value(point)
            return value / unit

        @pymanopt.function.numpy(manifold)
        def gradient(point):
            books.begin()
            own = objective.gradient(point)
            total = self._whole_gradient(point, own)
            return own.copy(order="K") if total is own else total  # the objective's own stays what it is

        @pymanopt.function.numpy(manifold)
        def hessian(point, direction):
            total = objective.hessian(point, direction)
            if penalties:
                total = total + penalties.hessian(point, direction)
            return total / unit

        # What a line searcher needs to say that a gradient is zero.
        cost.scale, cost.gradient_norms = scale / unit, self._gradient_norms
        # Only there are geodesics great circles, and a scaled column stays tangent to its own sphere.
        self._by_columns = isinstance(manifold, Oblique)
        if self._by_columns:
            cost.restrict = self._restrict
        super().__init__(
            manifold,
            cost,
            euclidean_gradient=gradient,
            euclidean_hessian=hessian,
            preconditioner=self._divide_by_energy if precondition else None,
        )

    @property
    def riemannian_gradient(self):
        return self._recorded_gradient

    def restrict(self, point, direction):
        """φ(t), with φ.derivative(t), along the geodesic that leaves `point` in `direction`."""
        return self._restrict(point, np.array(direction))  # whatever becomes of the array

    def _restrict(self, point, direction):
        """The same for a line searcher, which uses it at once."""
        phi = self.objective.restrict(point, direction)
        return phi if self.unit == 1.0 and not self.penalties else ProblemRestriction(self, phi)

    def codes(self, point):
        """The whole d×n codes at `point`: those of I are optimal for it, the others are as they were."""
        codes = self.objective.codes(np.asarray(point))
        values = np.zeros(len(self._omega.indices), codes.dtype)
        if self._omega.values is not None:
            values[:] = self._omega.values
        values[self.part.entries] = codes
        return self._omega.codes(multiply(values, self._exponent))

    def dictionary(self, point):
        """The whole m×d dictionary with the atoms I taken from `point`."""
        if self._whole is None:
            whole = np.empty_like(point)
        else:
            whole = self._whole.astype(np.result_type(self._whole, point))
        whole[:, self.part.atoms] = point
        return whole

    @property
    def support(self):
        """Ω restricted to I, a sparse boolean |I|×n array: row i belongs to column i of a point."""
        part, n = self.part, self._omega.n_signals
        indptr = np.zeros(n + 1, dtype=np.int64)
        indptr[1:][part.active] = np.diff(part.indptr)
        ones = np.ones(len(part.indices), dtype=bool)
        return scipy.sparse.csc_array((ones, part.indices, indptr.cumsum()), shape=(len(part.atoms), n))

    def _whole_gradient(self, point, gradient):
        """The Euclidean gradient of the cost from that of the objective, which it is if there is no more."""
        if self.penalties:
            gradient = gradient + self.penalties.gradient(point)
        return gradient if self.unit == 1.0 else gradient / self.unit

    def _recorded_gradient(self, point):
        books = self._books
        books.begin()
        state = self.objective.differentiated(point)
        gradient = state.gradient.T
        if not self._by_columns:  # there a conversion may change nothing, and ours stays what it is
            gradient = gradient.copy(order="K")
        if self.penalties or self.unit != 1.0:
            gradient = self._whole_gradient(point, gradient)
        gradient = self.manifold.euclidean_to_riemannian_gradient(point, gradient)
        # Optimizers ask once at every point they accept; who asks again at the same point adds nothing.
        if books.is_new(state.key):
            value = self.objective.constant + state.value
            if self.penalties:
                value += self.penalties.value(point)
            norm, counts = float(self.manifold.norm(point, gradient)), self.counts
            evaluations = counts.value + counts.gradient + counts.hessian + counts.probe
            self.record.append(Iterate(value / self.unit, norm, books.seconds(), evaluations))
            if norm == 0:
                self.stationary_point = np.array(point)
        return gradient

    def _gradient_norms(self, point):
        """‖ḡ_i‖, the length of the Riemannian gradient, for each of the atoms I."""
        gradient = self._whole_gradient(point, self.objective.gradient(point))
        return np.linalg.norm(self.manifold.euclidean_to_riemannian_gradient(point, gradient), axis=0)

    def _divide_by_energy(self, point, tangent):
        """The diagonal blocks of the Gauss-Newton Hessian are 2‖X_i‖² I; their mean is scaled out.

        Atoms that are hardly used get at most a thousand times the average step, and less where regularizers
        hold them: the curvature of these counts as energy.
        """
        energy = self.objective.energies(point)
        if self.penalties:
            energy = energy + self.penalties.curvatures(point) / 2
        scaled = kernels.balance(tangent.T, energy).T
        return scaled if self._by_columns else self.manifold.projection(point, scaled)
