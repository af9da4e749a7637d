"""What learning returns, and why it ended."""

import enum
import math
import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from manifold_dl.components.settings import restore
from manifold_dl.engines.threads import split
from manifold_dl.engines.units import as_units, divide
from manifold_dl.kernels import reduced as kernels
from manifold_dl.learning.callbacks import History
from manifold_dl.problem.support import as_support


class Reason(enum.Enum):
    """Why the learning ended."""

    CONVERGED = "The loss stopped falling: converged."
    ITERATION_LIMIT = "The iteration limit was reached."
    STOPPED = "A callback stopped it."
    INTERRUPTED = "It was interrupted; this is the best dictionary until then."
    FAILED = "A part of the run failed; this is the best dictionary until then."

    def __str__(self):
        return self.value


@dataclass(repr=False, eq=False)  # arrays neither print nor compare well
class Result:
    """What was learned.

    Attributes
    ----------
    dictionary : m×d array
        The columns are unit atoms, unless the update's manifold leaves their norms free, as `Euclidean` does
        and Pymanopt's ``Sphere``, on which the whole matrix has norm 1: printing the result tells.
    codes : sparse d×n array, the coder's codes for that dictionary
    history : History
    reason : Reason
    explained : float
        The fraction of the signals' energy that this dictionary with these codes represents,
        1 − ‖Y − DX‖²/‖Y‖². NaN where nobody computed it.
    settings : dict
        The arguments of the run, its seed and the versions of the packages, as JSON (`settings.describe`).
        Empty where nobody recorded them.
    """

    dictionary: np.ndarray
    codes: Any
    history: History
    reason: Reason
    explained: float = math.nan
    settings: dict[str, Any] = field(default_factory=dict)

    def component(self, name: str) -> Any:
        """The coder or the update rule that the dictionary was learned with, made anew from `settings`.

        Raises
        ------
        ValueError
            If it is not known, or was stored as text because no plug-in has its name.

        Examples
        --------
        >>> from manifold_dl import OMP, learn_dictionary
        >>> Y = np.random.default_rng(0).standard_normal((8, 100))
        >>> learn_dictionary(Y, 12, coder=OMP(sparsity=2), max_iter=1, rng=0).component("coder")
        OMP(sparsity=2, tol=None)
        """
        kinds = {"coder": "coders", "update": "updates"}
        if name not in kinds:
            raise ValueError(f"name={name!r}: a result knows its {' and its '.join(kinds)}.")
        if name not in self.settings:
            raise ValueError(f"it is not stored with which {name} this dictionary was learned.")
        return restore(self.settings[name], kinds[name])

    @property
    def n_iter(self):
        return len(self.history)

    def __str__(self):
        (m, d), n = self.dictionary.shape, self.codes.shape[1]
        lines = [
            f"{d} atoms of length {m} learned from {n} signals in {self.n_iter} iterations. {self.reason}"
        ]
        if self.n_iter:
            first, last = self.history.loss[0], self.history.loss[-1]
            lines.append(f"Loss ‖Y − DX‖²/n: {first:.4g} → {last:.4g}, {self.history.seconds[-1]:.1f} s.")
        known = "" if math.isnan(self.explained) else f"; {self.explained:.2%} of the energy explained"
        lines.append(f"Codes: {self.codes.nnz / n:.2f} atoms per signal{known}.")
        norms = np.linalg.norm(self.dictionary, axis=0)
        if np.abs(norms - 1).max() > 1e-3:  # far above the rounding of any dtype
            span = f"{norms.min():.3g} to {norms.max():.3g}"
            lines.append(f"The atoms have norms of {span}: their manifold does not fix them.")
        if never_improved(self.history):
            lines.append(never_improved(self.history))
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax=None):
        """Draw the loss against the iterations."""
        from manifold_dl.plotting import plot_convergence

        return plot_convergence(self.history, ax=ax)


def squared_error(signals: np.ndarray, dictionary: np.ndarray, codes: Any, exponent: int = 0) -> float:
    """‖Y − DX‖², from the residual, in units of 4^exponent (`units.unit_exponent` tells which are safe)."""
    support = as_support(codes, signals.shape[1], dictionary.shape[1])
    rest = np.array(divide(signals.T, exponent), order="C")
    values = as_units(support.values.astype(rest.dtype), exponent)
    atoms = np.ascontiguousarray(dictionary.T)
    kernels.accumulate(rest, support.indptr, support.indices, -values, atoms)
    return float(np.einsum("nm,nm->", rest, rest, dtype=float))


def never_improved(history: History) -> str:
    """A sentence if sets of atoms were handed to an optimizer and not one of them became better; else "".

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> never_improved(SimpleNamespace(sets=[1, 1], improved=[0, 0], refused=[0, 0]))
    'The optimizer improved none of the 2 sets of atoms that it was given.'
    >>> never_improved(SimpleNamespace(sets=[1, 1], improved=[1, 0], refused=[0, 1]))
    ''
    """
    sets, improved, refused = (int(np.nansum(c)) for c in (history.sets, history.improved, history.refused))
    if sets == 0 or improved > 0:
        return ""
    sentence = f"The optimizer improved none of the {sets} sets of atoms that it was given"
    if refused:
        sentence += f"; {refused} of its points were refused, not finite or with a higher objective"
    return sentence + "."


def warn_if_refused(history: History) -> None:
    """Warn where no set of atoms was ever improved because the optimizer's points were refused."""
    sentence = never_improved(history)
    if sentence and np.nansum(history.refused) > 0:
        warnings.warn(sentence, RuntimeWarning, stacklevel=2)


def explained_fraction(signals: np.ndarray, dictionary: np.ndarray, codes: Any) -> float:
    """1 − ‖Y − DX‖²/‖Y‖², from the residual and in double precision; 1 for signals of zero.

    Examples
    --------
    >>> Y, X = np.array([[3.0, 0.0], [0.0, 1.0]]), np.array([[3.0, 0.0], [0.0, 0.0]])
    >>> explained_fraction(Y, np.eye(2), X)
    0.9
    """
    support = as_support(codes, signals.shape[1], dictionary.shape[1])
    largest = max(float(signals.max()), -float(signals.min()))
    if largest == 0:
        return 1.0
    unit = math.ldexp(1.0, math.frexp(largest)[1] - 1)  # a power of two: no square vanishes or overflows
    atoms = np.ascontiguousarray(dictionary.T, dtype=float)
    error = energy = 0.0
    for block in split(signals.T, support.indptr, support.indices):
        rows = np.array(block.signals, dtype=float, order="C") / unit
        energy += float(np.vdot(rows, rows))
        values = support.values[block.entries].astype(float) / unit
        kernels.accumulate(rows, block.indptr, block.indices, -values, atoms)
        error += float(np.vdot(rows, rows))
    return 1 - error / energy
