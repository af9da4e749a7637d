"""What learning returns, and why it ended.

`learn_dictionary` returns a `Result`; `storage.py` writes one to a file and reads it again.
"""

import enum
import math
import warnings
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse

from manifold_dl.components.settings import restore
from manifold_dl.learning.history import History

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Reason(enum.Enum):
    """Why the learning ended."""

    CONVERGED = "The loss stopped falling: converged."
    ITERATION_LIMIT = "The iteration limit was reached."
    STOPPED = "A callback stopped it."
    INTERRUPTED = "It was interrupted; this is the best dictionary until then."
    FAILED = "A part of the run failed; this is the best dictionary until then."

    def __str__(self) -> str:
        return self.value


@dataclass(repr=False, eq=False)  # arrays neither print nor compare well
class Result:
    """What was learned.

    Attributes
    ----------
    dictionary : m×d array
        The columns are unit atoms, unless the update's manifold leaves their norms free, as `Euclidean` does
        and Pymanopt's ``Sphere``, on which the whole matrix has norm 1: the printed result says so.
    codes : sparse d×n array, Dask array, LazyCodes or None
        The coder's codes for that dictionary. Those of a Dask array and of files are computed when they are
        asked for, and are not stored with the result (`learning.distant_codes`).
    history : History
        Loss, objective, time and evaluations of every iteration.
    reason : Reason
        Why the learning ended.
    explained : float
        The fraction of the signals' energy that this dictionary with these codes represents,
        1 − ‖Y − DX‖²/‖Y‖². NaN where it was not computed.
    settings : dict
        The arguments of the run, its seed and the versions of the packages, as JSON (`settings.describe`).
        Empty where they were not recorded.
    """

    dictionary: np.ndarray
    codes: Any
    history: History
    reason: Reason
    explained: float = math.nan
    settings: dict[str, Any] = field(default_factory=dict)

    def component(self, name: str) -> Any:
        """The coder or the update rule that the dictionary was learned with, made anew from `settings`.

        Parameters
        ----------
        name : "coder" or "update"

        Returns
        -------
        SparseCoder or DictionaryUpdate

        Raises
        ------
        ValueError
            If it is not known, or was stored as text because no plug-in has its name.

        Examples
        --------
        >>> from manifold_dl import OMP, learn_dictionary
        >>> Y = np.random.default_rng(0).standard_normal((8, 100))
        >>> learn_dictionary(Y, 12, coder=OMP(sparsity=2), max_iter=1, rng=0).component("coder")
        OMP(sparsity=2, tol=None, nonnegative=False)
        """
        kinds = {"coder": "coders", "update": "updates"}
        if name not in kinds:
            raise ValueError(f"name={name!r}: a result stores its {' and its '.join(kinds)}.")
        if name not in self.settings:
            raise ValueError(f"it is not stored with which {name} this dictionary was learned.")
        return restore(self.settings[name], kinds[name])

    @property
    def n_iter(self) -> int:
        """The number of outer iterations."""
        return len(self.history)

    def __str__(self) -> str:
        m, d = self.dictionary.shape
        source = "" if self.codes is None else f" from {self.codes.shape[1]} signals"
        lines = [f"{d} atoms of length {m} learned{source} in {self.n_iter} iterations. {self.reason}"]
        if self.n_iter:
            first, last = self.history.loss[0], self.history.loss[-1]
            lines.append(f"Loss ‖Y − DX‖²/n: {first:.4g} → {last:.4g}, {self.history.seconds[-1]:.1f} s.")
        known = "" if math.isnan(self.explained) else f"; {self.explained:.2%} of the energy explained"
        average = "computed when they are asked for"
        if scipy.sparse.issparse(self.codes):
            average = f"{self.codes.nnz / self.codes.shape[1]:.2f} atoms per signal"
        lines.append(f"Codes: {average}{known}.")
        norms = np.linalg.norm(self.dictionary, axis=0)
        if np.abs(norms - 1).max() > 1e-3:  # far above the rounding of any dtype
            span = f"{norms.min():.3g} to {norms.max():.3g}"
            lines.append(f"The atoms have norms of {span}: their manifold does not fix them.")
        if never_improved(self.history):
            lines.append(never_improved(self.history))
        return "\n".join(lines)

    __repr__ = __str__

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the loss against the iterations.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        matplotlib Axes
        """
        from manifold_dl.plotting import plot_convergence

        return plot_convergence(self.history, ax=ax)


def never_improved(history: History) -> str:
    """A sentence if an optimizer was given sets of atoms and improved none of them; else "".

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
