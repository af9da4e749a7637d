"""The Pymanopt adapter: objective and regularizers as a `pymanopt.Problem`, with a record of iterates.

Pymanopt's optimizers evaluate the cost, the gradient, Hessian products and the preconditioner of this
problem; our line searchers find φ by the attribute `restrict` of the cost. What was evaluated is counted, and
every accepted point is recorded, because Pymanopt's own counts and logs are not to be relied on.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pymanopt
import scipy.sparse
from pymanopt.manifolds import Oblique

from manifold_dl.kernels import reduced
from manifold_dl.manifolds.feasible import FeasibleSet
from manifold_dl.manifolds.protocol import optional_members
from manifold_dl.problem.counts import Counts
from manifold_dl.problem.geodesic import ProblemRestriction, SmoothRestriction
from manifold_dl.problem.objective import Objective
from manifold_dl.problem.recorder import Iterate, IterationRecorder
from manifold_dl.problem.regularization import RegularizationTerm, in_units
from manifold_dl.problem.whole import WholeDictionary
from manifold_dl.regularizers.functions import as_regularizers

# Pymanopt inspects the signature of every function that it is given, which takes longer than a small step. So
# it is given this one, once, and a problem has its functions as properties instead.
_INSPECTED = pymanopt.function.numpy(Oblique(2, 1))(lambda point: np.nan)


class DictionaryProblem(pymanopt.Problem):
    """A problem in the atoms of a set I: a `pymanopt.Problem` with codes, counts and a record of iterates.

    Subclasses say what the codes at a point are: `SupportProblem` and `PenalizedProblem`.

    Parameters
    ----------
    objective : Objective
        f_I.
    atoms : array of int
        I.
    whole : WholeDictionary
        The dictionary that I is part of.
    feasible : FeasibleSet
        The manifold, with a test for its points.
    regularizers : sequence of Regularizer
        Smooth penalties on the whole dictionary.
    precondition : bool
        Divide each atom's gradient by its energy, for the optimizers that use a preconditioner.
    relative : bool
        Divide the cost by ‖Y‖²/n, the mean energy of a signal: thresholds then do not depend on the units of
        Y, and Pymanopt's default for the gradient, 1e-6, is as strict as it is for signals of norm 1.

    Attributes
    ----------
    atoms : array of int
        I: column i of a point is atom atoms[i].
    counts : Counts
        Evaluations of the value, the gradient, Hessian products and line-search probes.
    regularization : RegularizationTerm or None
        The regularizers, if there are any, as a function of the atoms I.
    record : list of Iterate
        Value, gradient norm, seconds since the first evaluation and evaluations, at every accepted point.
    scale : float
        ‖Y‖², with weights Σ w y², against which values and gradients are large or small, in units of the
        square of `signal_unit`.
    signal_unit : float
        1, unless the largest entry of the signals is beyond 2^±100 (2^±20 in single precision), where squares
        overflow or vanish: then the power of two that the signals are divided by. Cost, gradient and `scale`
        are in units of its square; the codes are in the units of the signals.
    stationary_point : array or None
        Where the gradient was zero, if an optimizer came to such a point.
    unit : float
        What the cost is divided by: 1, or the mean energy of a signal.
    """

    objective: Objective
    atoms: np.ndarray
    whole: WholeDictionary
    counts: Counts
    scale: float
    signal_unit: float
    unit: float
    record: list[Iterate]
    stationary_point: np.ndarray | None
    regularization: RegularizationTerm | None
    _recorder: IterationRecorder

    def __init__(
        self,
        objective: Objective,
        atoms: np.ndarray,
        whole: WholeDictionary,
        feasible: FeasibleSet,
        *,
        regularizers: Any = (),
        precondition: bool = True,
        relative: bool = False,
    ) -> None:
        self.feasible, self._relative = feasible, relative
        self._regularizers = as_regularizers(regularizers)
        # Only there are geodesics great circles, and a scaled column stays tangent to its own sphere.
        self._by_columns = isinstance(feasible.manifold, Oblique)
        self._own_cost = self._make_cost()
        preconditioner = self._divide_by_energy if precondition else None
        super().__init__(feasible.manifold, _INSPECTED, preconditioner=preconditioner)
        self.begin(objective, atoms, whole)

    def begin(self, objective: Objective, atoms: np.ndarray, whole: WholeDictionary) -> None:
        """Become the problem of another set I on the same manifold: what was counted and recorded is gone.

        An update stage of a small problem takes less time than Pymanopt's constructor and what it inspects.

        Parameters
        ----------
        objective : Objective
            f_I.
        atoms : array of int
            I.
        whole : WholeDictionary
            The dictionary that I is part of.
        """
        if optional_members(self.manifold).couples_atoms and len(atoms) < whole.n_atoms:
            raise ValueError(
                f"{self.manifold} ties all atoms to each other, and {len(atoms)} of "
                f"{whole.n_atoms} cannot move without the rest: update all of them together, with "
                "schedule=AllAtoms() or atoms=None."
            )
        # All at once, because Pymanopt looks every name up before it is set.
        self.__dict__.update(
            objective=objective,
            atoms=atoms,
            whole=whole,
            counts=objective.counts,
            scale=whole.scale,
            signal_unit=math.ldexp(1.0, whole.exponent),
            unit=whole.mean_energy if self._relative and whole.scale > 0 else 1.0,
            record=[],
            stationary_point=None,
            regularization=None,
            _recorder=IterationRecorder(),
        )
        regularizers = in_units(self._regularizers, whole.exponent)
        if regularizers:
            self.regularization = RegularizationTerm(regularizers, self.dictionary, atoms, whole.n_atoms)
        self._own_cost.scale = self.scale / self.unit

    @property
    def cost(self) -> Callable[[np.ndarray], float]:
        """The cost, with the members of `line_search.protocol.SearchedCost`."""
        return self._own_cost

    @property
    def euclidean_gradient(self) -> Callable[[np.ndarray], np.ndarray]:
        """The Euclidean gradient of the cost."""
        return self._gradient

    @property
    def euclidean_hessian(self) -> Callable[[np.ndarray, np.ndarray], np.ndarray]:
        """The Euclidean Hessian product of the cost, for a tangent vector."""
        return self._hessian

    @property
    def riemannian_gradient(self) -> Callable[[np.ndarray], np.ndarray]:
        """The Riemannian gradient, which records every new point."""
        return self._recorded_gradient

    def restrict(self, point: np.ndarray, direction: np.ndarray) -> SmoothRestriction:
        """φ(t), with φ.derivative(t), along the great circles that leave `point` in `direction`.

        Raises
        ------
        ValueError
            If geodesics of the manifold are no great circles.
        """
        if not self._by_columns:
            raise ValueError(
                f"geodesics of {self.manifold} are no great circles: evaluate "
                "cost(manifold.exp(point, t * direction)) instead."
            )
        return self._restrict(np.array(point), np.array(direction))  # the caller may change both

    def release(self) -> None:
        """Release the signals and the codes when an update has ended: until `begin` it cannot be used.

        The functions that Pymanopt holds refer to the problem, and the problem to them. Python frees such a
        cycle when its garbage collector runs, which may be several iterations later.
        """
        for name in ("objective", "whole", "subset", "update"):
            self.__dict__.pop(name, None)

    def codes(self, point: np.ndarray) -> scipy.sparse.csc_array:
        """The whole d×n codes at a point.

        Parameters
        ----------
        point : m×k array

        Returns
        -------
        csc_array
        """
        raise NotImplementedError

    def dictionary(self, point: np.ndarray) -> np.ndarray:
        """The whole m×d dictionary with the atoms I taken from a point.

        Parameters
        ----------
        point : m×k array

        Returns
        -------
        array
        """
        return self.whole.dictionary_with(self.atoms, point)

    def _make_cost(self) -> Any:
        def value(point: np.ndarray) -> float:
            self._recorder.begin()
            return self._value(point)

        # What decides whether a gradient is zero (with the `scale` of `begin`), and φ.
        cost: Any = value
        cost.gradient_norms = self._gradient_norms
        if self._by_columns:
            cost.restrict = self._restrict
        return cost

    def _value(self, point: np.ndarray) -> float:
        value = self.objective.value(point)
        if self.regularization is not None:
            value += self.regularization.value(point)
        return value / self.unit

    def _gradient(self, point: np.ndarray) -> np.ndarray:
        self._recorder.begin()
        return self._whole_gradient(point, self.objective.gradient(point).copy(order="K"))

    def _hessian(self, point: np.ndarray, tangent: np.ndarray) -> np.ndarray:
        direction = self.manifold.embedding(point, tangent)
        product = self.objective.hessian(point, direction)
        if self.regularization is not None:
            product = product + self.regularization.hessian(point, direction)
        return product / self.unit

    def _whole_gradient(self, point: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        """The Euclidean gradient of the cost from that of the objective."""
        if self.regularization is not None:
            gradient = gradient + self.regularization.gradient(point)
        return gradient if self.unit == 1.0 else gradient / self.unit

    def _restrict(self, point: np.ndarray, direction: np.ndarray) -> SmoothRestriction:
        """φ for a line searcher, which uses it at once: point and direction are not copied."""
        phi = self.objective.along(point, direction)
        if self.unit == 1.0 and self.regularization is None:
            return phi
        return ProblemRestriction(phi, self.regularization, self.unit)

    def _recorded_gradient(self, point: np.ndarray) -> np.ndarray:
        self._recorder.begin()
        evaluation = self.objective.differentiate(point)
        assert evaluation.gradient is not None
        # A copy: a conversion may return the same array, and that of the cache must stay what it is.
        gradient = self._whole_gradient(point, evaluation.gradient.T.copy(order="K"))
        gradient = self.manifold.euclidean_to_riemannian_gradient(point, gradient)
        # Optimizers evaluate it once at every point they accept; a second time at the same point adds
        # nothing.
        if self._recorder.is_new(evaluation.key):
            self._append(point, self.objective.constant + evaluation.value, gradient)
        return gradient

    def _append(self, point: np.ndarray, value: float, gradient: np.ndarray) -> None:
        """Record a point, with the value of the objective there."""
        if self.regularization is not None:
            value += self.regularization.value(point)
        norm, counts = float(self.manifold.norm(point, gradient)), self.counts
        evaluations = counts.value + counts.gradient + counts.hessian + counts.probe
        self.record.append(Iterate(value / self.unit, norm, self._recorder.seconds(), evaluations))
        if norm == 0:
            self.stationary_point = np.array(point)

    def _gradient_norms(self, point: np.ndarray) -> np.ndarray:
        """‖ḡ_i‖, the length of the Riemannian gradient, for each of the atoms I."""
        gradient = self._whole_gradient(point, self.objective.gradient(point))
        return np.linalg.norm(self.manifold.euclidean_to_riemannian_gradient(point, gradient), axis=0)

    def _divide_by_energy(self, point: np.ndarray, tangent: np.ndarray) -> np.ndarray:
        """The diagonal blocks of the Gauss-Newton Hessian are 2‖X_i‖² I; their mean is divided out.

        Atoms that are hardly used get at most a thousand times the average step, and less where regularizers
        act on them: their curvature counts as energy.
        """
        energy = self.objective.energies(point)
        if self.regularization is not None:
            energy = energy + self.regularization.curvatures(point) / 2
        scaled = reduced.precondition(tangent.T, energy).T
        return scaled if self._by_columns else self.manifold.projection(point, scaled)
