"""K-SVD: SimCO with |I| = 1, where the minimum over an atom and its codes is a leading singular vector.

With a ridge the vector stays the same and only its codes shrink by 1/(1 + μ), because ‖u‖ = 1.
"""

import os
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_ridge
from manifold_dl.components import by_name
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.opening import is_dask_array
from manifold_dl.engines.threads import as_engine
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import SweepData, SweepState
from manifold_dl.kernels.reduced.minimum_norm import take
from manifold_dl.optimizers import LeadingSingularVector
from manifold_dl.problem.counts import new_counts
from manifold_dl.problem.support import SupportIndex
from manifold_dl.schedules import OneAtATime, sweep
from manifold_dl.updates.current_codes import ArrayCodes
from manifold_dl.updates.simco import SimCO
from manifold_dl.updates.workspace import UpdateWorkspace

NO_SINGULAR_VECTOR = (
    "KSVD was given a weight for every entry: the best atom is then no singular vector. Use "
    "SimCO(schedule=OneAtATime()), which minimises the same function of one atom at a time, SimCO() for all "
    "atoms together, or one weight per signal."
)

ATOMS = 256  # as many are copied at a time, to count those that moved


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
    threads : int, optional
        All processors by default.

    Notes
    -----
    The rule *is* `as_simco()`. A compiled sweep gives the same numbers without a Pymanopt problem for every
    atom, which at 16×32 atoms takes most of the time (the second table of `benchmarks/updates.py`). Where it
    cannot tell the vector, because two singular values agree, the atom goes through the configuration.

    A weight per signal scales the signal, and the vector stays a singular vector. With a weight per entry
    (missing entries, for example) the minimum over an atom and its codes is none any more, so these are
    refused; ``SimCO(schedule=OneAtATime())`` minimises the same function of one atom at a time.

    Examples
    --------
    >>> KSVD(method="power").as_simco().schedule
    OneAtATime(order='natural')
    """

    method: Literal["svd", "power"] = "svd"
    mu: float = 0.0
    schedule: Any = field(default_factory=OneAtATime)
    threads: int | None = None

    def __post_init__(self) -> None:
        if self.method not in ("svd", "power"):
            raise ValueError(
                f"method={self.method!r}: K-SVD updates an atom by 'svd' or by one 'power' step."
            )
        as_ridge(self.mu)
        object.__setattr__(self, "schedule", by_name.component("schedules", self.schedule, "schedule"))

    def as_simco(self) -> SimCO:
        """The configuration of SimCO that this is.

        Returns
        -------
        SimCO
        """
        steps = None if self.method == "svd" else 1
        optimizer = LeadingSingularVector(power_steps=steps)
        return SimCO(optimizer=optimizer, mu=self.mu, schedule=self.schedule, threads=self.threads)

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
        """One sweep over the atoms: (m×n, m×d, sparse d×n) → (dictionary, codes).

        `weights` are one number ≥ 0 per signal. Weights of entries are refused: see the notes.
        """
        if isinstance(signals, BlockedSignals | str | os.PathLike) or is_dask_array(signals):
            raise ValueError(
                "K-SVD goes through the signals once for every atom, and changes their residual as it "
                "goes: it needs them in memory, as an array. Use SimCO() or MOD() for a Dask array and for "
                "files, and where an engine has the signals."
            )
        workspace = UpdateWorkspace(signals, dictionary, codes, as_engine(self.threads), weights)
        if workspace.signals.weights is not None:
            raise ValueError(NO_SINGULAR_VECTOR)
        simco = self.as_simco()
        workspace.require_determined(self.mu)
        workspace.normalize()
        subsets = sweep(self.schedule, workspace.dictionary.shape[1], rng, usage=workspace.usage)
        if any(len(I) > 1 for I in subsets):
            return replace(simco, schedule=subsets)(signals, dictionary, codes, weights=weights)
        order = np.concatenate([np.zeros(0, np.intp), *subsets])  # no atom moves if all subsets are empty
        done, atoms = 0, CompiledSweep(workspace)
        while done < len(order):
            done += atoms.update(order[done:], self.mu, power=self.method == "power")
            if done < len(order):  # the compiled sweep stopped before an atom without a clear leading vector
                simco.begin().move(workspace, order[done : done + 1], float(self.mu))
                atoms.refresh(order[done])
                done += 1
        return workspace.dictionary, workspace.codes()


class CompiledSweep:
    """A sweep over single atoms of a workspace in compiled code, with the residual Y − DX kept up to date."""

    def __init__(self, workspace: UpdateWorkspace) -> None:
        assert isinstance(workspace.current, ArrayCodes)  # the caller has refused anything else
        self.workspace, self.current, support = workspace, workspace.current, workspace.current.support
        self._index = SupportIndex(support.indptr, support.indices, support.n_atoms)
        self._residual = self.residual()
        self._data = SweepData(
            workspace.rows,
            support.indptr,
            support.indices,
            self._index.first,
            self._index.entries,
            self._index.signal_of,
            reduced.large_codes(workspace.rows, support.indptr, self.current.values),
        )

    def update(self, order: np.ndarray, mu: float, power: bool) -> int:
        """Update the atoms `order` one by one, as `LeadingSingularVector` would; how many were done."""
        done = 0
        while done < len(order):
            part = order[done : done + ATOMS]
            n_updated = self._update_some(part, mu, power)
            done += n_updated
            if n_updated < len(part):
                break
        return done

    def _update_some(self, order: np.ndarray, mu: float, power: bool) -> int:
        """The same for so few atoms that a copy of them is small."""
        D = self.workspace.dictionary
        state = SweepState(D.T, self.current.own_values(), self._residual)
        used = order[self.workspace.usage[order] > 0]
        old = D[:, used]
        done = reduced.ksvd_sweep(order, self._data, state, mu, power).n_updated
        n_used = int(np.count_nonzero(self.workspace.usage[order[:done]]))
        # The error falls by the square of the angle: what is below half the digits leaves it as it was.
        half_the_digits = np.sqrt(np.finfo(D.dtype).eps)
        steps = np.linalg.norm(D[:, used[:n_used]] - old[:, :n_used], axis=0)
        improved = int(np.count_nonzero(steps > half_the_digits))
        # Evaluations before and after each atom, as `UpdateWorkspace.accept` would make them.
        new_counts(value=2 * n_used, factorisation=2 * n_used, sets=n_used, improved=improved)
        return done

    def refresh(self, atom: int) -> None:
        """Compute the residual of the users of an atom again, after it was updated in another way."""
        users = self._index.restrict(np.array([atom])).active
        self._residual[users] = self.residual(users)

    def residual(self, signals: np.ndarray | None = None) -> np.ndarray:
        """Y − D X in rows, of all signals or of some."""
        support, values, rows = self.current.support, self.current.values, self.workspace.rows
        indptr, indices = support.indptr, support.indices
        if signals is not None:
            indptr, indices, places = take(indptr, indices, signals)
            rows, values = rows[signals], values[places]
        return reduced.residual(rows, indptr, indices, values, self.workspace.dictionary.T)
