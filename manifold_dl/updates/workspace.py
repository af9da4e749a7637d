"""The working copy of one dictionary update: D, the codes and the residual, kept up to date together.

`updates.py` takes one set I after the other through it: cut out the problem of I, hand it to an optimizer,
put the result back. Only what I touches is ever recomputed.
"""

import numpy as np

from manifold_dl._validation import as_dictionary
from manifold_dl.engines.sources import as_signals
from manifold_dl.engines.units import as_units, multiply
from manifold_dl.kernels import reduced as kernels
from manifold_dl.manifolds import feasible_set
from manifold_dl.problem.objective import Objective, count
from manifold_dl.problem.support import Incidence, as_support, require_determined
from manifold_dl.problem.update_problem import DictionaryProblem


class Stage:
    """The working copy of one update: D and the codes, and the residual, kept up to date."""

    def __init__(self, signals, dictionary, codes, threads=1, unit_atoms=True):
        self.rows, self.scale, self.exponent = as_signals(signals, threads)  # Y in units of 2^exponent
        n, m = self.rows.shape
        D = as_dictionary(dictionary, n_rows=m)
        self.support = as_support(codes, n, D.shape[1])
        self.D = np.array(D, dtype=self.rows.dtype, order="F")  # kernels read atoms in rows: those of D.T
        self.threads = threads
        self.incidence = Incidence(self.support)
        if self.support.values is None:
            raise ValueError("codes holds no numbers: an update needs the codes X, not only their support.")
        self.values = as_units(self.support.values.astype(self.rows.dtype), self.exponent)
        self._residual = self._large = None
        if unit_atoms:
            self.normalise()

    def codes(self):
        """The codes, in the units of the signals that were given."""
        return self.support.codes(multiply(self.values, self.exponent))

    def require_determined(self, mu):
        """Refuse supports on which f does not depend on D, for rules whose codes follow the dictionary."""
        require_determined(self.support, len(self.D), mu)

    def residual(self):
        """Y − D X in rows, computed once and then changed only where the codes change."""
        if self._residual is None:
            self._residual = self.rows.copy()
            s = self.support
            kernels.accumulate(self._residual, s.indptr, s.indices, -self.values, self.D.T)
        return self._residual

    def without(self, part):
        """Y_r = Y − D_{I^c} X_{I^c} over the signals that use I, whose codes on I do not enter."""
        if isinstance(part.active, slice):
            return self.rows
        rows, s = self.rows[part.active], self.support
        moves = np.zeros(s.n_atoms, dtype=bool)
        moves[part.atoms] = True
        kernels.without(rows, part.active, s.indptr, s.indices, self.values, moves, self.D.T)
        return rows

    def problem(self, I, mu, settings):
        """The update of I as a Pymanopt problem; None if no signal uses I."""
        part, feasible = self.incidence.part(I), feasible_set(settings.manifold, len(self.D), len(I))
        self._begin_on(feasible, I, part)
        if len(part.indices) == 0:
            return None
        objective = Objective(
            self.without(part),
            part.indptr,
            part.indices,
            len(I),
            mu,
            fixed_codes=self.values[part.entries] if settings.codes == "fixed" else None,
            threads=self.threads,
        )
        return DictionaryProblem(
            objective,
            feasible.manifold,
            self.support,
            part,
            dictionary=self.D,
            regularizers=settings.regularizers,
            precondition=settings.precondition,
            scale=self.scale,
            relative=True,
            exponent=self.exponent,
            feasible=feasible,
        )

    def accept(self, I, problem, point, before):
        """Put the atoms I and their codes in place; the atoms only if the objective does not rise."""
        # Within the rounding of the sums a rise means nothing, and the optimizer may know better.
        rounding = 4 * np.finfo(float).eps * abs(before)
        after = problem.cost(point) if np.isfinite(point).all() else np.nan
        is_taken = after <= before + rounding
        count(sets=1, improved=int(after < before), refused=int(not is_taken))
        if not is_taken:
            point = self.D[:, I]
        part, objective = problem.part, problem.objective
        self.values[part.entries] = objective.codes(point)
        self.D[:, I] = point
        if isinstance(part.active, slice):
            self._residual = None
        elif self._residual is not None:
            rest = objective.signals
            self._add(rest, part, -self.values[part.entries])
            self._residual[part.active] = rest

    def ksvd(self, order, mu, power):
        """Update the atoms `order` one by one, as `LeadingSingularVector` would, without Pymanopt.

        Returns how many were done: the one after them, if any, needs `problem` and an optimizer.
        """
        part, old, s = self.incidence, self.D.copy(), self.support
        if self._large is None:
            self._large = kernels.large_codes(self.rows, s.indptr, self.values)
        done = kernels.ksvd(
            order, part.begin, part.entries, part.signal_of, self.residual(), self.D.T, self.values,
            mu, power, self.rows, s.indptr, s.indices, self._large,
        )  # fmt: skip
        used = order[:done][part.usage[order[:done]] > 0]
        n_used = len(used)
        # The error falls by the square of the angle: what is below half the digits leaves it as it was.
        half_the_digits = np.sqrt(np.finfo(self.D.dtype).eps)
        steps = np.linalg.norm(self.D[:, used] - old[:, used], axis=0)
        improved = int(np.count_nonzero(steps > half_the_digits))
        # Evaluations before and after, as `accept` would ask for them.
        count(value=2 * n_used, factorisation=2 * n_used, sets=n_used, improved=improved)
        return done

    def _begin_on(self, feasible, I, part):
        """Bring the atoms I onto the manifold, to the closest point if it knows, and scale their codes."""
        old = self.D[:, I]
        new = feasible.bring(old)
        if np.array_equal(new, old):
            return
        # c d' is closest to d for c = ⟨d', d⟩/‖d'‖²: that is what the codes have to take over.
        scales = np.vecdot(new, old, axis=0) / np.vecdot(new, new, axis=0)
        codes = self.values[part.entries]
        if self._residual is not None and not isinstance(part.active, slice):
            rows = self._residual[part.active]
            self._add(rows, part, codes)
        self.D[:, I] = new
        self.values[part.entries] = codes * scales[part.indices].astype(codes.dtype)
        if isinstance(part.active, slice):
            self._residual = None
        elif self._residual is not None:
            self._add(rows, part, -self.values[part.entries])
            self._residual[part.active] = rows

    def _add(self, rows, part, codes):
        kernels.accumulate(rows, part.indptr, part.indices, codes, _rows(self.D[:, part.atoms]))

    def normalise(self):
        """Unit atoms; the codes take over the norms, so that D X is unchanged."""
        largest = np.abs(self.D).max(axis=0)  # first, so that the squares neither overflow nor vanish
        norms = largest * np.linalg.norm(self.D / largest, axis=0)
        # Atoms that are unit up to rounding stay as they are, to the last bit.
        norms[np.abs(norms - 1) <= 4 * np.sqrt(len(self.D)) * np.finfo(self.D.dtype).eps] = 1
        if (norms != 1).any():
            self.D /= norms
            self.values *= norms[self.support.indices]


def _rows(dictionary):
    return np.ascontiguousarray(dictionary.T)
