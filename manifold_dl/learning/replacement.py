"""What to do with atoms that no signal uses, or that occur twice.

An update stage never replaces an atom: that would break its monotone descent. The learning loop applies
a policy (`protocols.ReplacementPolicy`) between outer iterations, and records what it did. `ReplaceAtoms` is
the usual one; any callable with its signature will do.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from manifold_dl._validation import as_dictionary, as_observed
from manifold_dl._weights import by_signal
from manifold_dl.engines import Engine, Threads
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals, repetitions
from manifold_dl.engines.protocol import partition
from manifold_dl.engines.units import column_norms, divide
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.kernels.reduced.minimum_norm import take
from manifold_dl.learning.coded_signals import coded_map, weighted_squares
from manifold_dl.metrics.atoms import cosine_rows
from manifold_dl.problem.support import Support, as_support


@dataclass(frozen=True)
class ReplaceAtoms:
    """Replace unused, little used and duplicated atoms by the worst represented signals.

    Parameters
    ----------
    coherence : float
        Of two atoms with |⟨dᵢ, dⱼ⟩| above this, the one that is used less is replaced. The absolute value
        matters: an antipodal pair is a duplicate too.
    min_users : int
        An atom that fewer signals use is replaced. A signal of weight w counts as w signals, rounded and at
        least one, and as none if it has no weight: integer weights are repetitions, and small ones do not
        empty a dictionary.

    Notes
    -----
    The worst represented signals are those with the largest fraction ‖y − Dx‖²/‖y‖² left over, ties in
    favour of the lower index; each is used once, and none that resembles an atom already there. Where
    every signal is represented exactly, nothing is replaced. With weights both norms are weighted, a signal
    without any weight counts for nothing, and missing entries of a signal are those of its Dx.

    Examples
    --------
    >>> D = np.array([[1.0, -1.0], [0.0, 0.0]])
    >>> Y = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 3.0]])
    >>> D_new, replaced = ReplaceAtoms(min_users=1)(Y, D, np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 0.1]]))
    >>> replaced.tolist(), D_new[:, 1].tolist()
    ([1], [0.0, 1.0])
    """

    coherence: float = 0.99
    min_users: int = 4

    def __post_init__(self) -> None:
        if not 0 < self.coherence <= 1:
            raise ValueError(f"coherence={self.coherence}: the bound on |⟨dᵢ, dⱼ⟩| lies in (0, 1].")
        if self.min_users < 0:
            raise ValueError(f"min_users={self.min_users}: a number of signals is not negative.")

    def __call__(
        self, signals: Any, dictionary: np.ndarray, codes: Any, weights: Any = None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Replace useless atoms.

        Parameters
        ----------
        signals, dictionary, codes : m×n, m×d and sparse d×n arrays
        weights : array of length n or m×n array, optional
            Of the signals, or of their entries.

        Returns
        -------
        dictionary, replaced
            The new dictionary, and the indices of the atoms that were replaced.
        """
        is_blocked = isinstance(signals, BlockedSignals)  # these were checked when they were opened
        Y, W = (signals, weights) if is_blocked else as_observed(signals, weights)
        D = as_dictionary(dictionary, n_rows=len(Y)).astype(Y.dtype)
        if not isinstance(codes, BlockedCodes):
            codes = as_support(codes, Y.shape[1], D.shape[1])
        useless = self._useless_atoms(D, _users(codes, W))
        if len(useless) == 0:
            return D, useless
        candidates = worst_represented(Y, D, codes, count=2 * len(useless), weights=W)
        return self._fill(D, useless, candidates)

    def _useless_atoms(self, D: np.ndarray, users: np.ndarray) -> np.ndarray:
        useless = users < self.min_users
        unit = D / column_norms(D)
        for first, cosines in cosine_rows(unit):
            for row, j in np.argwhere(cosines > self.coherence):
                i = first + row
                if i < j and not (useless[i] or useless[j]):
                    useless[j if users[j] <= users[i] else i] = True
        return np.flatnonzero(useless)

    def _fill(
        self, D: np.ndarray, useless: np.ndarray, candidates: Iterator[np.ndarray]
    ) -> tuple[np.ndarray, np.ndarray]:
        D, kept = D.copy(), np.ones(D.shape[1], dtype=bool)
        kept[useless] = False
        replaced = []
        for i in useless:
            for signal in candidates:
                atom = signal / np.linalg.norm(signal)
                if np.abs(atom @ D)[kept].max(initial=0.0) <= self.coherence:
                    D[:, i], kept[i] = atom, True
                    replaced.append(i)
                    break
        return D, np.array(replaced, dtype=np.intp)


def _users(codes: Support | BlockedCodes, weights: Any) -> np.ndarray:
    """How many signals have a code other than zero on each atom, each counted as its weight says."""
    if isinstance(codes, BlockedCodes):
        return codes.usage(weights).nonzero
    uses = np.ones(len(codes.indices), np.int64) if codes.values is None else (codes.values != 0).astype(int)
    if weights is not None:
        own: Any = by_signal(weights)
        own = np.asarray(weights).any(axis=0) if own is None else own
        uses *= np.repeat(repetitions(own), np.diff(codes.indptr))
    return np.bincount(codes.indices, weights=uses, minlength=codes.n_atoms)


@dataclass(frozen=True)
class WorstSignals:
    """Some signals of which the largest fraction of their energy is left over, the worst first.

    Attributes
    ----------
    fractions : array
        ‖y − Dx‖²/‖y‖², descending.
    numbers : array of int
        Which signals they are; of equal fractions the lower number comes first.
    rows : array
        The signals, each in a unit of its own.
    count : int
        How many are kept when two blocks are merged.
    """

    fractions: np.ndarray
    numbers: np.ndarray
    rows: np.ndarray
    count: int

    def __add__(self, other: "WorstSignals") -> "WorstSignals":
        """The worst of both."""
        fractions = np.concatenate([self.fractions, other.fractions])
        numbers = np.concatenate([self.numbers, other.numbers])
        order = np.lexsort((numbers, -fractions))[: self.count]
        rows = np.concatenate([self.rows, other.rows])
        return WorstSignals(fractions[order], numbers[order], rows[order], self.count)


def worst_represented(
    signals: Any,
    dictionary: np.ndarray,
    codes: Support | BlockedCodes,
    count: int,
    engine: Engine = Threads(),  # noqa: B008 - frozen
    weights: Any = None,
) -> Iterator[np.ndarray]:
    """The signals by the fraction of their energy that D X leaves over, the worst first.

    Signals that are represented exactly are left out. The next `count` signals are selected when they are
    needed, so that no list of all signals is made.

    Parameters
    ----------
    signals, dictionary : m×n and m×d arrays
    codes : Support or BlockedCodes
        A support has the codes as its values.
    count : int
    engine : Engine
        What runs the functions of a block.
    weights : array of length n or m×n array, optional
        Of the signals, or of their entries.

    Yields
    ------
    array of length m
        A signal, in a unit of its own, with the entries of Dx where its own are missing.
    """
    # Coders solve normal equations, so of an exact fit about half the digits of the residual are left over:
    # ‖y − Dx‖ ≤ √ε ‖y‖ is no reason to call a signal badly represented.
    exact = float(np.finfo(dictionary.dtype).eps)
    atoms = np.ascontiguousarray(dictionary.T, dtype=float)
    engine = codes.engine if isinstance(codes, BlockedCodes) else engine
    firsts = engine.open([part.start for part in partition(signals.shape[1])])
    left = coded_map(fractions_left_block, signals, codes, weights, (atoms,), engine)
    after = (np.inf, -1)
    while True:
        common = (atoms, WantedSignals(exact, after, count))
        worst = coded_map(worst_block, signals, codes, weights, common, engine, beside=(left, firsts))
        (found,) = engine.total(worst)
        if len(found.numbers) == 0:
            return
        yield from found.rows
        after = (float(found.fractions[-1]), int(found.numbers[-1]))


def fractions_left_block(
    block: Block, codes: np.ndarray, weights: np.ndarray | None, atoms: np.ndarray
) -> tuple[None, np.ndarray]:
    """‖y − Dx‖²/‖y‖² of every signal of a block, 0 for signals of zero; it stays beside the block."""
    rows, rest = _with_residual(block, codes, atoms)
    if weights is None:
        energy, left = np.einsum("nm,nm->n", rows, rows), np.einsum("nm,nm->n", rest, rest)
    else:
        energy, left = weighted_squares(rows, weights), weighted_squares(rest, weights)
    return None, np.divide(left, energy, out=np.zeros_like(left), where=energy > 0)


class WantedSignals(NamedTuple):
    """Which signals `worst_block` looks for."""

    exact: float  # signals of which no more than this fraction is left are represented well
    after: tuple[float, int]  # fraction and number of a signal: those wanted come after it
    n_signals: int  # how many


def worst_block(
    block: Block,
    codes: np.ndarray,
    weights: np.ndarray | None,
    fractions: np.ndarray,
    first: int,
    atoms: np.ndarray,
    wanted: WantedSignals,
) -> tuple[WorstSignals, None]:
    """The worst signals of a block among those that are wanted."""
    exact, after, n_signals = wanted
    numbers = first + np.arange(len(fractions))
    is_next = (fractions < after[0]) | ((fractions == after[0]) & (numbers > after[1]))
    chosen = np.flatnonzero(is_next & (fractions > exact))
    chosen = chosen[np.argsort(-fractions[chosen], kind="stable")[:n_signals]]
    rows, _ = _in_own_units(block.signals[chosen])
    if weights is not None and weights.ndim == 2:
        indptr, indices, places = take(block.indptr, block.indices, chosen)
        part = Block(block.signals[chosen], indptr, indices, None)
        rows, rest = _with_residual(part, codes[places], atoms)
        rows = np.where(weights[chosen] > 0, rows, rows - rest)
    return WorstSignals(fractions[chosen], numbers[chosen], rows, n_signals), None


def _with_residual(block: Block, codes: np.ndarray, atoms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The signals of a block and their residuals, each in a unit of its own."""
    rows, exponents = _in_own_units(block.signals)
    values = divide(codes.astype(float), np.repeat(exponents, np.diff(block.indptr)))
    return rows, reduced.residual(rows, block.indptr, block.indices, values, atoms)


def _in_own_units(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The signals in double precision, divided by powers of two so that no square vanishes or overflows."""
    exponents = np.frexp(np.abs(rows).max(axis=1))[1]
    return divide(rows.astype(float, order="C"), exponents[:, None]), exponents
