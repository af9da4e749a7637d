"""The reduced objective: the dictionary alone is the variable, the codes follow in closed form.

    f(D) = Σ_j min_x ‖y_j − D_{Ω_j} x‖² + μ‖x‖²          (5) and (6) of the paper

with its gradient, its exact Hessian product and its restriction to a geodesic. One pass over the
signals serves all of them: the codes, factorisations and gradient of the last points are kept, so an
optimizer that asks for the cost, then the gradient, then twenty Hessian products at one dictionary
factorises once. `problem.py` turns this into a Pymanopt problem.
"""

from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse

from manifold_dl.engines.threads import Total, share_out, split
from manifold_dl.kernels import reduced as kernels
from manifold_dl.kernels.memory import aligned_copy
from manifold_dl.problem.geodesic import Restriction


@dataclass
class Counts:
    """What was really computed; an answer given twice from memory counts once."""

    value: int = 0
    gradient: int = 0
    hessian: int = 0
    probe: int = 0
    factorisation: int = 0  # dictionaries for which the supports were factorised
    deficient: int = 0  # signals, over all those, that needed a singular value decomposition
    sets: int = 0  # sets I of atoms that were handed to an optimizer
    improved: int = 0  # of these, those with a lower objective afterwards
    refused: int = 0  # of these, those that stayed: the point was not finite, or had a higher objective


_tallies = ContextVar("counts of the objectives made inside a with block", default=None)


@contextmanager
def tally():
    """Add up the counts of all objectives made inside the block; the sum is there when it ends."""
    total, made = Counts(), []
    token = _tallies.set(made)
    try:
        yield total
    finally:
        _tallies.reset(token)
        for counts in made:
            for name in vars(total):
                setattr(total, name, getattr(total, name) + getattr(counts, name))


def count(**amounts):
    """Add to the tally what was computed without an `Objective`, by a kernel that does a whole sweep."""
    if _tallies.get() is not None:
        _tallies.get().append(Counts(**amounts))


class Objective:
    """f over m×k dictionaries. A signal with an empty support adds ‖y‖² to it, and nothing to its gradient.

    Parameters
    ----------
    signals : n×m array, a signal in every row
    indptr, indices : the support, signal by signal
    n_atoms : k
    mu : the ridge μ on the codes
    fixed_codes : codes that stay as they are (MOD's objective, with no ridge), or None: codes follow D
    constant : what the signals left out contribute
    threads : how many threads share the blocks of signals
    """

    def __init__(
        self, signals, indptr, indices, n_atoms, mu=0.0, *, fixed_codes=None, constant=0.0, threads=1
    ):
        self.shape = (signals.shape[1], n_atoms)
        self.dtype = signals.dtype
        self.mu = float(mu)
        self.signals = signals
        self.indices = indices
        self.fixed_codes = fixed_codes
        self.constant = float(constant)
        self.threads = threads
        self.counts = Counts()
        if _tallies.get() is not None:
            _tallies.get().append(self.counts)
        self.blocks = split(signals, indptr, indices)
        self._states = []  # the points asked for last, newest first
        # Factors cost more memory than codes, and only Hessian products read them. The first point keeps
        # its own; those after it do so if a Hessian product has been asked for by then.
        self._keep_factors = True
        self.wants_hessian = False
        self.believes_searches = False

    def value(self, point):
        return self.constant + self.at(point).value

    def gradient(self, point):
        """The Euclidean gradient, m×k."""
        return self.differentiated(point).gradient.T

    def differentiated(self, point):
        """The `State` of a point where the gradient is asked for."""
        state = self.at(point, with_gradient=True)
        if not state.gradient_asked:
            state.gradient_asked = True
            self.counts.gradient += 1
        return state

    def hessian(self, point, direction):
        """The Euclidean Hessian applied to an m×k direction."""
        self.counts.hessian += 1
        E = self._rows(direction)
        if self.fixed_codes is not None:
            return 2 * (self.fixed_energy @ E).T
        self.wants_hessian = self._keep_factors = True
        state = self.at(point, with_gradient=True, with_factors=True)
        cross = kernels.inner(state.atoms, E)

        def one(pair):
            block, fit = pair
            return kernels.hessian(*block.data, state.atoms, cross, self.mu, fit, E, block.packs)

        total = Total()
        share_out(one, list(zip(self.blocks, state.fits, strict=True)), total.add, self.threads)
        return total.like(state.atoms).T

    @property
    def users(self):
        """The signals that use any atom, in rows."""
        used = np.concatenate([np.diff(block.indptr) > 0 for block in self.blocks])
        return self.signals if used.all() else self.signals[used]

    def codes(self, point):
        """The optimal codes at the support's entries, in its order."""
        return self._codes(self.at(point)).copy()  # ours stay what they are

    def energies(self, point):
        """‖X_i‖² of every atom: half the diagonal blocks of the Gauss-Newton Hessian."""
        state = self.at(point)
        if state.energies is None:
            state.energies = kernels.energies(self.indices, self._codes(state), self.shape[1])
        return state.energies

    def restrict(self, point, direction):
        """φ(t) = f along the great circles that leave `point` in `direction`, with φ′.

        The direction is read when φ is first asked for.
        """
        state = self.at(point, with_gradient=True)
        if state.has_factors and not self.wants_hessian:
            state.forget_factors()  # an optimizer that searches along lines asks for no Hessian products
        return Restriction(self, state, np.ascontiguousarray(self._checked(direction).T))

    def expect_searches(self):
        """The optimizer to come searches along lines: it needs no factors, and takes φ(t) for the value.

        The end of a search then costs no pass over the signals before somebody asks for the gradient there,
        which nobody does at the last one. Else every value is from the residual, digit by digit: in single
        precision, too, which has none to spare.
        """
        self._keep_factors, self.believes_searches = False, self.dtype == np.float64

    def arrive(self, point, value, codes):
        """A search ended at `point`: the value there (without `constant`), and a function for the codes."""
        if self.believes_searches:
            atoms = self._rows(point)
            state = State(atoms, atoms.tobytes(), value, codes)
            self._states = [state, *self._states[: self.wants_hessian]]

    @cached_property
    def fixed_energy(self):
        """X Xᵀ of fixed codes."""
        n = sum(len(block.signals) for block in self.blocks)
        sizes = [np.diff(block.indptr) for block in self.blocks]
        columns = np.repeat(np.arange(n), np.concatenate(sizes or [np.zeros(0, int)]))
        X = scipy.sparse.coo_array(
            (self.fixed_codes, (self.indices, columns)), shape=(self.shape[1], n)
        ).tocsr()
        return (X @ X.T).toarray().astype(self.dtype)

    def at(self, point, with_gradient=False, with_factors=False):
        """The `State` of a point: the work done there, from memory if it is one of the last points."""
        if type(point) is not np.ndarray or point.shape != self.shape or point.dtype != self.dtype:
            point = self._checked(point)
        # By value, not by identity: a caller may have changed the array in place.
        key, states = point.tobytes("F"), self._states
        for state in states:
            if state.key == key:
                if (with_gradient and state.gradient is None) or (with_factors and not state.has_factors):
                    states.remove(state)  # it knows too little
                    break
                if state is not states[0]:  # a trust region may be refused twice without losing its centre
                    states.remove(state)
                    states.insert(0, state)
                return state
        # A trust region may come back to the point before; a line search does not, and its codes go now.
        del states[self.wants_hessian :]
        state = State(aligned_copy(point.T), key)
        self._compute(state)
        states.insert(0, state)
        return state

    def _compute(self, state):
        self.counts.value += 1
        atoms, gradient = state.atoms, Total()
        if self.fixed_codes is not None:
            one = lambda block: kernels.fit_fixed(*block.data, atoms, self.fixed_codes[block.entries])

            def take(part):
                state.value += part[0]
                gradient.add(part[1])
        else:
            self.counts.factorisation += 1
            mu, gram, keep = self.mu, kernels.inner(atoms, atoms), self._keep_factors
            state.gram, state.has_factors, self._keep_factors = gram, keep, self.wants_hessian
            one = lambda block: kernels.fit(*block.data, atoms, gram, mu, keep, block.packs)
            alone = len(self.blocks) == 1

            def take(fit):
                state.value += fit.value
                gradient.add(fit.gradient)
                state.fits.append(fit if alone else fit._replace(gradient=None))
                self.counts.deficient += len(fit.deficient)

        share_out(one, self.blocks, take, self.threads)
        state.gradient = gradient.like(atoms)

    def _codes(self, state):
        if self.fixed_codes is not None:
            return self.fixed_codes
        if state.codes is not None:
            if callable(state.codes):
                state.codes = state.codes()
            return state.codes
        if len(state.fits) == 1:
            return state.fits[0].codes
        return np.concatenate([fit.codes for fit in state.fits] or [np.zeros(0, self.dtype)])

    def _checked(self, matrix):
        matrix = np.asarray(matrix)
        if matrix.shape != self.shape:  # the kernels do not look, and would read beyond its end
            raise ValueError(f"the atoms form a matrix of shape {self.shape}, but {matrix.shape} was given.")
        return matrix if matrix.dtype == self.dtype else matrix.astype(self.dtype)

    def _rows(self, matrix):
        """An m×k matrix as contiguous rows of atoms: always a copy, so that nobody changes it under us."""
        return aligned_copy(self._checked(matrix).T)


class State:
    """The work done at one dictionary: by a pass over the signals, or by a search that ended there."""

    __slots__ = (
        "atoms", "codes", "energies", "fits", "gradient", "gradient_asked", "gram", "has_factors", "key",
        "value",
    )  # fmt: skip

    def __init__(self, atoms, key, value=0.0, codes=None):
        self.atoms, self.key, self.value = atoms, key, value
        self.codes = (
            codes  # of a search, or a function that gets them; after another pass the `fits` have them
        )
        self.gradient = self.gram = self.energies = None
        self.fits = []
        self.has_factors = self.gradient_asked = False

    @property
    def pieces(self):
        """The codes, block by block, after a pass over the signals."""
        return [fit.codes for fit in self.fits] if self.codes is None else [self.codes]

    def forget_factors(self):
        self.fits = [fit._replace(factors=None) for fit in self.fits]
        self.has_factors = False
