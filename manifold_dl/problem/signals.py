"""Signals with their supports, in blocks on an engine, and the part of them that a set I of atoms touches.

f_I needs Y_r = Y − D_{I^c} X_{I^c} over the signals that use I. `SupportedSignals` forms it block by block;
`update_problem.py` and `updates/workspace.py` build their objectives on what it returns.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.blocked import CodesBlock, CodeUsage
from manifold_dl.engines.protocol import partition
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.problem.support import SubsetSupport, Support, SupportIndex, SupportSize


class SupportedSignals:
    """Signals in rows with their supports, cut into blocks.

    Parameters
    ----------
    blocks : BlockMap
        Its states are blocks of signals with their supports, not arranged yet.
    shape : (m, d)
        The shape of a dictionary.
    dtype : dtype
        That of the signals.
    engine : Engine
        Where the blocks are.
    arranged : BlockMap, optional
        The same blocks, arranged for the kernels.
    weights : BlockMap, optional
        Its states are the weights of the entries of a block, in rows like the signals.
    usage : callable, optional
        Returns how the supports use the atoms, where the codes of an engine keep it.
    """

    def __init__(
        self,
        blocks: BlockMap,
        shape: tuple[int, int],
        dtype: Any,
        engine: Engine,
        arranged: BlockMap | None = None,
        weights: BlockMap | None = None,
        usage: Callable[[], CodeUsage] | None = None,
    ) -> None:
        self.engine, self.dtype, self.usage = engine, np.dtype(dtype), usage
        self.m, self.n_atoms = shape
        self.blocks, self._weights = blocks, weights
        self._all = BlockMap(arrange_block, (blocks,)) if arranged is None else arranged
        self._index = BlockMap(index_block, (blocks,), (self.n_atoms,))

    @classmethod
    def of(
        cls, rows: np.ndarray, support: Support, engine: Engine, weights: np.ndarray | None = None
    ) -> "SupportedSignals":
        """Arrays in memory: signals in rows, which atoms each of them uses, and weights of their entries."""
        blocks, shape = engine.open(blocks_of(rows, support)), (rows.shape[1], support.n_atoms)
        own = None if weights is None else engine.open([weights[part] for part in partition(len(rows))])
        return cls(blocks, shape, rows.dtype, engine, weights=own)

    def largest_support(self) -> int:
        """The number of atoms of the signal that uses most."""
        if self.usage is not None:
            return self.usage().largest
        (largest,) = self.engine.total(BlockMap(largest_support_block, (self.blocks,)))
        return 0 if largest is None else largest.size

    def subset(
        self,
        atoms: np.ndarray,
        dictionary: np.ndarray | None,
        codes: BlockMap | None,
        with_rest: bool = False,
    ) -> "AtomSubset":
        """The part that the atoms I touch, without what the others contribute.

        Parameters
        ----------
        atoms : array of int
            The set I. All atoms in their order are used as they are, without a copy.
        dictionary : m×d array, optional
            Needed where I leaves atoms out.
        codes : BlockMap, optional
            The codes of all atoms, in the order of the support; those of the others are needed.
        with_rest : bool
            Whether to compute ‖Y_r‖² of the signals that do not use I, a constant of the objective.
        """
        d = self.n_atoms
        if len(atoms) == d and np.array_equal(atoms, np.arange(d)):
            return AtomSubset(atoms, self, self._all, None, codes, None, weights=self._weights)
        if len(atoms) == d:  # in another order: no other atom contributes
            dictionary = np.zeros((self.m, d), self.dtype)
            codes = BlockMap(no_codes_block, (self.blocks,)) if codes is None else codes
        assert dictionary is not None and codes is not None  # the callers see to it
        rows = np.ascontiguousarray(dictionary.T)
        parents, common = (self.blocks, self._index, codes), (atoms, rows, with_rest)
        part, own_weights = BlockMap(subset_block, parents, common), None
        if self._weights is not None:
            part = BlockMap(weighted_subset_block, (self._weights, *parents), common)
            own_weights = BlockMap(subset_weights_block, (part, self._weights))
        sums = self.engine.total(part)[0] or SubsetSums(0, 0.0)
        data, own = BlockMap(signals_block, (part,)), BlockMap(subset_codes_block, (part, codes))
        return AtomSubset(atoms, self, data, part, own, sums.n_entries, sums.rest, own_weights)


@dataclass(frozen=True, eq=False)
class AtomSubset:
    """The signals and codes that a set I of atoms touches."""

    atoms: np.ndarray  # I
    whole: SupportedSignals
    data: BlockMap  # its states are blocks of the signals that use I, with positions within I as support
    part: BlockMap | None  # its states are `SubsetBlock`s; None for all atoms
    codes: BlockMap | None  # the codes of I, block by block, where codes were given
    n_entries: int | None  # how many codes there are on I; not counted for all atoms
    rest: float = 0.0
    weights: BlockMap | None = None  # weights of the entries of the same signals

    @property
    def shape(self) -> tuple[int, int]:
        """(m, |I|), the shape of a point."""
        return self.whole.m, len(self.atoms)

    @cached_property
    def entries(self) -> np.ndarray | slice:
        """The places of the codes of I among all codes."""
        if self.part is None:
            return slice(None)
        states = self.whole.engine.states(self.part)
        starts = np.cumsum([0, *(one.n_codes for one in states)])[:-1]
        return _gathered([one.support.entries for one in states], starts)

    @cached_property
    def active(self) -> np.ndarray | slice:
        """The signals that use an atom of I; all signals if I has all atoms."""
        if self.part is None:
            return slice(None)
        states = self.whole.engine.states(self.part)
        starts = np.cumsum([0, *(one.n_signals for one in states)])[:-1]
        return _gathered([one.support.active for one in states], starts)


def _gathered(parts: list[np.ndarray], starts: np.ndarray) -> np.ndarray:
    """Positions within blocks as positions within all."""
    return np.concatenate([part + start for part, start in zip(parts, starts, strict=True)])


def blocks_of(rows: np.ndarray, support: Support) -> list[Block]:
    """The signals with their supports, block by block: views, without a copy.

    Examples
    --------
    >>> from manifold_dl.problem.support import SupportSize, as_support
    >>> blocks = blocks_of(np.ones((5000, 2)), as_support(np.zeros((5000, 1), int), n_signals=5000))
    >>> [len(block.signals) for block in blocks]
    [2048, 2048, 904]
    """
    blocks = []
    for part in partition(len(rows)):
        indptr = support.indptr[part.start : part.stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        blocks.append(Block(rows[part], indptr - indptr[0], support.indices[entries], None))
    return blocks


def values_of(values: np.ndarray, support: Support) -> list[np.ndarray]:
    """The codes of a support, block by block: views, without a copy."""
    parts = partition(support.n_signals)
    return [values[support.indptr[part.start] : support.indptr[part.stop]] for part in parts]


def codes_of(support: Support, values: np.ndarray) -> list[CodesBlock]:
    """Codes on a support, block by block: views, without a copy."""
    blocks = []
    for part in partition(support.n_signals):
        indptr = support.indptr[part.start : part.stop + 1]
        entries = slice(int(indptr[0]), int(indptr[-1]))
        blocks.append(CodesBlock(indptr - indptr[0], support.indices[entries], values[entries]))
    return blocks


def arrange_block(block: Block) -> tuple[None, Block]:
    """A block with its support arranged for the kernels (`kernels.reduced.make_batches`)."""
    return None, block._replace(batches=reduced.make_batches(block.indptr, block.indices))


def largest_support_block(block: Block) -> tuple[SupportSize, None]:
    """The largest support of one block."""
    return SupportSize(int(np.diff(block.indptr).max(initial=0))), None


def no_codes_block(block: Block) -> tuple[None, np.ndarray]:
    """Codes of zero on the support of one block."""
    return None, np.zeros(len(block.indices), block.signals.dtype)


def index_block(block: Block, n_atoms: int) -> tuple[None, SupportIndex]:
    """The support of one block by atoms."""
    return None, SupportIndex(block.indptr, block.indices, n_atoms)


class SubsetBlock(NamedTuple):
    """The signals of one block that use I, without what the other atoms contribute."""

    support: SubsetSupport
    signals: np.ndarray  # Y_r = Y − D_{I^c} X_{I^c}, in rows
    n_codes: int  # of all atoms in this block
    n_signals: int  # in this block, whatever they use


class SubsetSums(NamedTuple):
    """What is added up over the blocks of a subset."""

    n_entries: int  # codes on the atoms I
    rest: float  # Σ w Y_r² over the signals that do not use I, where it was asked for: a constant of f_I


def subset_block(
    block: Block,
    index: SupportIndex,
    codes: np.ndarray,
    atoms: np.ndarray,
    dictionary: np.ndarray,
    with_rest: bool,
) -> tuple[SubsetSums, SubsetBlock]:
    """The part of one block that the atoms I touch; `dictionary` is d×m, `codes` those of the block.

    The codes of I do not enter.
    """
    return weighted_subset_block(None, block, index, codes, atoms, dictionary, with_rest)


def weighted_subset_block(
    weights: np.ndarray | None,
    block: Block,
    index: SupportIndex,
    codes: np.ndarray,
    atoms: np.ndarray,
    dictionary: np.ndarray,
    with_rest: bool,
) -> tuple[SubsetSums, SubsetBlock]:
    """The same where entries have weights: Y_r is as it was, and the rest a weighted sum."""
    support = index.restrict(atoms)
    moves = np.zeros(len(dictionary), dtype=bool)
    moves[atoms] = True
    rows, rest = _without_others(block, support.active, codes, moves, dictionary), 0.0
    if with_rest:
        idle = np.setdiff1d(np.arange(len(block.signals)), support.active)
        others = _without_others(block, idle, codes, moves, dictionary)
        weighted = others if weights is None else weights[idle] * others
        rest = float(np.einsum("nm,nm->", weighted, others, dtype=float))
    part = SubsetBlock(support, rows, len(block.indices), len(block.signals))
    return SubsetSums(len(support.entries), rest), part


def _without_others(
    block: Block, signals: np.ndarray, codes: np.ndarray, moves: np.ndarray, dictionary: np.ndarray
) -> np.ndarray:
    """Some signals of a block without what the atoms that do not move contribute."""
    rows = block.signals[signals]
    reduced.subtract_other_atoms(rows, signals, block.indptr, block.indices, codes, moves, dictionary)
    return rows


def signals_block(subset: SubsetBlock) -> tuple[None, Block]:
    """The restricted signals as a block of their own."""
    support = subset.support
    return None, Block(
        subset.signals,
        support.indptr,
        support.indices,
        reduced.make_batches(support.indptr, support.indices),
    )


def arranged_codes_block(rows: np.ndarray, codes: CodesBlock) -> tuple[None, Block]:
    """The signals of one block with the supports of their codes, arranged for the kernels."""
    return arrange_block(Block(rows, codes.indptr, codes.indices, None))


def coded_block(rows: np.ndarray, codes: CodesBlock) -> tuple[None, Block]:
    """The signals of one block with the supports of their codes."""
    return None, Block(rows, codes.indptr, codes.indices, None)


def subset_codes_block(subset: SubsetBlock, codes: np.ndarray) -> tuple[None, np.ndarray]:
    """The codes of I in one block."""
    return None, codes[subset.support.entries]


def subset_weights_block(subset: SubsetBlock, weights: np.ndarray) -> tuple[None, np.ndarray]:
    """The weights of the signals of one block that use I."""
    return None, weights[subset.support.active]
