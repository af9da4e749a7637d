"""Signals with their supports, in blocks on an engine, and the part of them that a set I of atoms touches.

f_I needs Y_r = Y − D_{I^c} X_{I^c} over the signals that use I. `SupportedSignals` forms it block by block;
`update_problem.py` and `updates/workspace.py` build their objectives on what it returns.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from manifold_dl.engines import BlockMap, Engine
from manifold_dl.engines.protocol import partition
from manifold_dl.kernels import reduced
from manifold_dl.kernels.reduced import Block
from manifold_dl.problem.support import SubsetSupport, Support, SupportIndex


class SupportedSignals:
    """Signals in rows with their supports, cut into blocks.

    Parameters
    ----------
    rows : n×m array
        A signal in every row.
    support : Support
        Which atoms each of them uses.
    engine : Engine
        Where the blocks are.
    weights : n×m array, optional
        Weights of the entries, in rows like the signals.
    """

    def __init__(
        self, rows: np.ndarray, support: Support, engine: Engine, weights: np.ndarray | None = None
    ) -> None:
        self.support, self.engine, self.dtype, self.m = support, engine, rows.dtype, rows.shape[1]
        self._blocks = engine.open(blocks_of(rows, support))
        self._all = BlockMap(arrange_block, (self._blocks,))
        self._index = BlockMap(index_block, (self._blocks,), (support.n_atoms,))
        parts = partition(len(rows))
        self._weights = None if weights is None else engine.open([weights[part] for part in parts])

    def subset(
        self,
        atoms: np.ndarray,
        dictionary: np.ndarray | None,
        values: np.ndarray | None,
        with_rest: bool = False,
    ) -> "AtomSubset":
        """The part that the atoms I touch, without what the others contribute.

        Parameters
        ----------
        atoms : array of int
            The set I. All atoms in their order are taken as they stand, without a copy.
        dictionary : m×d array, optional
            Needed where I leaves atoms out.
        values : array, optional
            The codes of all atoms, in the order of the support; those of the others are needed.
        with_rest : bool
            Whether to compute ‖Y_r‖² of the signals that do not use I, a constant of the objective.
        """
        d = self.support.n_atoms
        codes = None if values is None else self.engine.open(values_of(values, self.support))
        if len(atoms) == d and np.array_equal(atoms, np.arange(d)):
            n_entries = len(self.support.indices)
            return AtomSubset(atoms, self, self._all, None, codes, n_entries, weights=self._weights)
        if len(atoms) == d:  # in another order: no other atom contributes
            dictionary = np.zeros((self.m, d), self.dtype)
            values = np.zeros(len(self.support.indices), self.dtype) if values is None else values
            codes = self.engine.open(values_of(values, self.support))
        assert dictionary is not None and codes is not None  # the callers see to it
        rows = np.ascontiguousarray(dictionary.T)
        parents, common = (self._blocks, self._index, codes), (atoms, rows, with_rest)
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
    n_entries: int  # how many codes there are on I
    rest: float = 0.0
    weights: BlockMap | None = None  # weights of the entries of the same signals

    @property
    def shape(self) -> tuple[int, int]:
        """(m, |I|), the shape of a point."""
        return self.whole.m, len(self.atoms)

    @cached_property
    def entries(self) -> np.ndarray | slice:
        """Where the codes of I stand among all codes."""
        starts = [self.whole.support.indptr[one.start] for one in self._partition()]
        return self._gathered([one.support.entries for one in self._states()], starts)

    @cached_property
    def active(self) -> np.ndarray | slice:
        """The signals that use an atom of I; all signals if I has all atoms."""
        starts = [one.start for one in self._partition()]
        return self._gathered([one.support.active for one in self._states()], starts)

    def _states(self) -> list["SubsetBlock"]:
        return [] if self.part is None else self.whole.engine.states(self.part)

    def _partition(self) -> list[slice]:
        return partition(self.whole.support.n_signals)

    def _gathered(self, parts: list[np.ndarray], starts: list[int]) -> np.ndarray | slice:
        if self.part is None:
            return slice(None)
        return np.concatenate([part + start for part, start in zip(parts, starts, strict=True)])


def blocks_of(rows: np.ndarray, support: Support) -> list[Block]:
    """The signals with their supports, block by block: views, without a copy.

    Examples
    --------
    >>> from manifold_dl.problem.support import as_support
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


def arrange_block(block: Block) -> tuple[None, Block]:
    """A block with its support arranged for the kernels (`kernels.reduced.make_batches`)."""
    return None, block._replace(batches=reduced.make_batches(block.indptr, block.indices))


def index_block(block: Block, n_atoms: int) -> tuple[None, SupportIndex]:
    """The support of one block by atoms."""
    return None, SupportIndex(block.indptr, block.indices, n_atoms)


class SubsetBlock(NamedTuple):
    """The signals of one block that use I, without what the other atoms contribute."""

    support: SubsetSupport
    signals: np.ndarray  # Y_r = Y − D_{I^c} X_{I^c}, in rows


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
    return SubsetSums(len(support.entries), rest), SubsetBlock(support, rows)


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


def subset_codes_block(subset: SubsetBlock, codes: np.ndarray) -> tuple[None, np.ndarray]:
    """The codes of I in one block."""
    return None, codes[subset.support.entries]


def subset_weights_block(subset: SubsetBlock, weights: np.ndarray) -> tuple[None, np.ndarray]:
    """The weights of the signals of one block that use I."""
    return None, weights[subset.support.active]
