"""The codes of an update stage, while one set I of atoms after the other moves.

`ArrayCodes` hold those that were given as an array, and change them in place. `EngineCodes` hold those that
an engine has: a change is a function of one block, which runs with the next round. `workspace.py` uses
either.
"""

from functools import cached_property
from typing import Any, Protocol

import numpy as np
import scipy.sparse

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals, CodesBlock
from manifold_dl.engines.units import as_units, multiply
from manifold_dl.engines.weights import WeightedSignals
from manifold_dl.problem.signals import (
    AtomSubset,
    SubsetBlock,
    SupportedSignals,
    arranged_codes_block,
    coded_block,
    codes_of,
    values_of,
)
from manifold_dl.problem.support import (
    Support,
    as_support,
    few_entries,
    require_determined,
    require_size_below,
    warn_of_few_entries,
)


class CurrentCodes(Protocol):
    """What an update stage needs of its codes, wherever they are."""

    support: Any  # with n_atoms and n_signals

    @property
    def usage(self) -> np.ndarray:
        """How many signals have each atom in their support."""

    @property
    def is_empty(self) -> bool:
        """Whether it is known that no signal uses any atom."""

    def signals(self, m: int) -> SupportedSignals:
        """The signals, of length m, with the supports of these codes and the weights of entries."""

    def opened(self) -> BlockMap:
        """The codes as they are now, block by block and in units of 2^exponent."""

    def require_determined(self, m: int, mu: float) -> None:
        """Refuse supports on which f does not depend on D."""

    def scale(self, factors: np.ndarray) -> None:
        """Multiply the codes of every atom by its factor."""

    def put(self, subset: AtomSubset, codes: BlockMap) -> None:
        """Put the codes of the atoms I in place."""

    def result(self) -> Any:
        """The codes, in the units of the signals that were given."""


class ArrayCodes:
    """Codes that were given as an array.

    Parameters
    ----------
    codes : sparse or dense d×n array
        It is copied before it is changed.
    known : WeightedSignals
        The signals.
    n_atoms : int
    engine : Engine
    """

    def __init__(self, codes: Any, known: WeightedSignals, n_atoms: int, engine: Engine) -> None:
        self.support: Support = as_support(codes, len(known.rows), n_atoms)
        self.known, self.engine = known, engine
        if self.support.values is None:
            raise ValueError("codes holds no numbers: an update needs the codes X, not only their support.")
        given = self.support.values.astype(known.rows.dtype, copy=False)
        given = as_units(given, known.exponent)  # those of the caller, until `own_values` copies them
        self.values = known.scaled(given, self.support.indptr)
        self._owns_values = False

    def own_values(self) -> np.ndarray:
        """The codes as an array that may be changed in place."""
        if not self._owns_values:
            self.values, self._owns_values = self.values.copy(), True
        return self.values

    @cached_property
    def usage(self) -> np.ndarray:
        return np.bincount(self.support.indices, minlength=self.support.n_atoms)

    @property
    def is_empty(self) -> bool:
        return len(self.support.indices) == 0

    def signals(self, m: int) -> SupportedSignals:
        return SupportedSignals.of(self.known.rows, self.support, self.engine, self.known.weights)

    def opened(self) -> BlockMap:
        return self.engine.open(values_of(self.values, self.support))

    def require_determined(self, m: int, mu: float) -> None:
        require_determined(self.support, m, mu, self.known.weights)

    def scale(self, factors: np.ndarray) -> None:
        self.own_values()[:] *= factors[self.support.indices]

    def put(self, subset: AtomSubset, codes: BlockMap) -> None:
        states = self.engine.states(codes)
        values = np.concatenate(states) if states else np.zeros(0, self.values.dtype)
        if subset.part is None:  # of all atoms: no copy of the old ones is needed
            self.values, self._owns_values = values, True
        else:
            self.own_values()[subset.entries] = values

    def result(self) -> scipy.sparse.csc_array:
        values = self.known.unscaled(self.own_values(), self.support.indptr)
        return self.support.codes(multiply(values, self.known.exponent))


class EngineCodes:
    """Codes that an engine has.

    Parameters
    ----------
    codes : BlockedCodes
    known : WeightedSignals
        The signals.
    dtype : dtype
        That of the signals.
    """

    is_empty = False

    def __init__(self, codes: BlockedCodes, known: WeightedSignals, dtype: Any) -> None:
        self.support, self.engine, self.known, self.dtype = codes, codes.engine, known, np.dtype(dtype)
        self._values = BlockMap(values_block, (codes.blocks,), (known.exponent,))
        if known.roots is not None:
            self._values = BlockMap(rooted_values_block, (codes.blocks, known.roots), (known.exponent,))

    @property
    def usage(self) -> np.ndarray:
        return self.support.usage().stored

    def signals(self, m: int) -> SupportedSignals:
        parents, shape = (self.known.rows, self.support.blocks), (m, self.support.n_atoms)
        blocks, arranged = BlockMap(coded_block, parents), BlockMap(arranged_codes_block, parents)
        more = {"arranged": arranged, "weights": self.known.weights, "usage": self.support.usage}
        return SupportedSignals(blocks, shape, self.dtype, self.engine, **more)

    def opened(self) -> BlockMap:
        return self._values

    def require_determined(self, m: int, mu: float) -> None:
        if mu == 0 and self.known.weights is not None:
            few = BlockMap(few_entries_block, (self.support.blocks, self.known.weights))
            warn_of_few_entries(self.engine.total(few)[0], self.support.n_signals)
        if mu == 0:
            require_size_below(m, self.support.usage().largest, "a signal")

    def scale(self, factors: np.ndarray) -> None:
        self._values = BlockMap(scaled_block, (self._values, self.support.blocks), (factors,))

    def put(self, subset: AtomSubset, codes: BlockMap) -> None:
        if subset.part is not None:
            codes = BlockMap(replaced_block, (self._values, subset.part, codes))
        self._values = codes

    def result(self) -> BlockedCodes:
        parents, common = (self.support.blocks, self._values), (self.known.exponent,)
        if self.known.roots is None:
            blocks = BlockMap(codes_block, parents, common)
        else:
            blocks = BlockMap(unrooted_codes_block, (*parents, self.known.roots), common)
        return BlockedCodes(self.engine, blocks, self.support.shape, self.dtype)


def as_blocked_codes(codes: Any, signals: BlockedSignals, n_atoms: int) -> BlockedCodes:
    """Codes of blocked signals: as they are, or an array of them, cut into blocks."""
    if isinstance(codes, BlockedCodes):
        return codes
    support, engine = as_support(codes, signals.shape[1], n_atoms), signals.engine
    if support.values is None:
        raise ValueError("codes holds no numbers: an update needs the codes X, not only their support.")
    values = support.values.astype(signals.dtype, copy=False)
    return BlockedCodes(
        engine, engine.open(codes_of(support, values)), (support.n_atoms, support.n_signals), signals.dtype
    )


def values_block(codes: CodesBlock, exponent: int) -> tuple[None, np.ndarray]:
    """The codes of one block in units of 2^exponent."""
    return None, as_units(codes.values, exponent)


def scaled_block(values: np.ndarray, codes: CodesBlock, factors: np.ndarray) -> tuple[None, np.ndarray]:
    """The codes of one block, each times the factor of its atom."""
    return None, values * factors[codes.indices]


def replaced_block(values: np.ndarray, subset: SubsetBlock, new: np.ndarray) -> tuple[None, np.ndarray]:
    """The codes of one block with those of the atoms I replaced."""
    values = values.copy()
    values[subset.support.entries] = new
    return None, values


def codes_block(codes: CodesBlock, values: np.ndarray, exponent: int) -> tuple[None, CodesBlock]:
    """Codes of one block with other values, in the units of the signals that were given."""
    return None, codes._replace(values=multiply(values, exponent))


def rooted_values_block(codes: CodesBlock, roots: np.ndarray, exponent: int) -> tuple[None, np.ndarray]:
    """The codes of one block in units of 2^exponent, for signals that were multiplied by `roots`."""
    return None, as_units(codes.values, exponent) * np.repeat(roots, np.diff(codes.indptr))


def unrooted_codes_block(
    codes: CodesBlock, values: np.ndarray, roots: np.ndarray, exponent: int
) -> tuple[None, CodesBlock]:
    """Codes of one block for the signals that were given; zero where a signal has no weight."""
    factors = np.repeat(roots, np.diff(codes.indptr))
    values = np.divide(values, factors, out=np.zeros_like(values), where=factors > 0)
    return None, codes._replace(values=multiply(values, exponent))


def few_entries_block(codes: CodesBlock, weights: np.ndarray) -> tuple[int, None]:
    """How many signals of one block have more atoms than observed entries."""
    return few_entries(np.diff(codes.indptr), weights), None
