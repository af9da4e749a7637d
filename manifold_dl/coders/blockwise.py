"""The pass of a coder over the signals: one function of a block, run by an engine.

`encode_blocks` prepares the dictionary once and runs `encode_block` on every block of signals. A kernel of
`kernels.coding` sees contiguous rows in units in which no square under- or overflows. The codes of a signal
do not depend on the other signals, so they are the same for any number of threads.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl.engines import BlockMap
from manifold_dl.engines.blocked import BlockedCodes, BlockedSignals, CodesBlock
from manifold_dl.engines.protocol import partition
from manifold_dl.engines.threads import as_engine
from manifold_dl.engines.units import CODABLE, column_norms, divide, multiply, row_exponents
from manifold_dl.kernels import coding as kernels
from manifold_dl.kernels.coding import Codes, PreparedDictionary, StartingCodes
from manifold_dl.kernels.reduced.minimum_norm import take
from manifold_dl.problem.support import Support, narrow


def in_any_units(settings: Any, exponent: int, dtype: np.dtype) -> Any:
    """Settings that do not depend on the units of the signals."""
    return settings


class Coding(NamedTuple):
    """How to code a block: the kernel, its settings, and the units in which it is called.

    All are functions of modules and plain values, so that another process can run it.
    """

    kernel: Callable[..., Codes]  # (dictionary, signals, settings[, start]), of `kernels.coding`
    settings: Any  # the named tuple that the kernel takes
    in_units: Callable[[Any, int, np.dtype], Any] = in_any_units  # settings for signals divided by 2^exponent
    unit_atoms: bool = True  # whether the kernel needs atoms of norm 1
    unit_signals: bool = False  # whether the largest entry of every signal is brought between 1/2 and 1
    weighted: Callable[..., Codes] | None = (
        None  # (dictionary, √w∘signals, √w, settings[, start]), if there is one
    )


class CoderBlock(NamedTuple):
    """Some signals, the codes to start from, where the kernel takes any, and the weights of the entries."""

    signals: np.ndarray  # a signal in every row; in `_encode` multiplied by √w
    start: StartingCodes | None
    weights: np.ndarray | None = None  # like the signals; in `_encode` √w


class CompactCodes(NamedTuple):
    """The codes of a block: the entries of all signals in a row."""

    counts: np.ndarray  # entries per signal
    indices: np.ndarray
    values: np.ndarray


def encode_blocks(
    Y: Any,
    D: np.ndarray,
    coding: Coding,
    threads: int | None = None,
    start: Support | None = None,
    weights: Any = None,
) -> Any:
    """Codes (d×n) of the columns of Y (m×n) over the columns of D (m×d), block by block.

    Parameters
    ----------
    Y, D : arrays
        Checked by `checks.as_problem`. Y may be `BlockedSignals`: then the codes stay with the engine.
    coding : Coding
        The kernel and its settings.
    threads : int, optional
        All processors by default.
    start : Support, optional
        Codes of all signals to start from, for a kernel that takes them.
    weights : m×n array or BlockedWeights, optional
        Of the entries; Y is zero where they are.

    Returns
    -------
    csc_array or BlockedCodes
    """
    norms = _norms(D) if coding.unit_atoms else None
    dictionary = kernels.prepare(np.ascontiguousarray(D.T if norms is None else (D / norms).T))
    if isinstance(Y, BlockedSignals):
        parents = (Y.given, Y.engine.open([None] * Y.n_blocks) if weights is None else weights.blocks)
        codes = BlockMap(encode_codes_block, parents, (dictionary, norms, coding))
        return BlockedCodes(Y.engine, codes, (D.shape[1], Y.shape[1]), Y.dtype)
    engine = as_engine(threads)
    blocks = engine.open([_block(Y, part, start, weights) for part in partition(Y.shape[1])])
    found = engine.states(BlockMap(encode_block, (blocks,), (dictionary, norms, coding)))
    return _joined(found, D.shape[1])


def _joined(blocks: list[CompactCodes], n_atoms: int) -> scipy.sparse.csc_array:
    """The codes of all blocks in one array; the list is emptied, so that not all are in memory twice."""
    sizes = np.concatenate([block.counts for block in blocks])
    indptr = np.concatenate([[0], np.cumsum(sizes, dtype=np.int64)])
    n_entries = int(indptr[-1])
    indices, values = np.empty(n_entries, np.int32), np.empty(n_entries, blocks[0].values.dtype)
    end = n_entries
    while blocks:
        block = blocks.pop()
        begin = end - len(block.values)
        indices[begin:end], values[begin:end] = block.indices, block.values
        end = begin
    shape = (n_atoms, len(sizes))
    return scipy.sparse.csc_array((values, indices, narrow(indptr)), shape=shape)


def encode_block(
    block: CoderBlock, dictionary: PreparedDictionary, norms: np.ndarray | None, coding: Coding
) -> tuple[None, CompactCodes]:
    """The codes of one block of signals, in the units of the signals and for atoms of the norms given."""
    block = block._replace(signals=np.require(block.signals, requirements=["C", "A", "W"]))
    if block.weights is not None:
        roots = np.sqrt(np.ascontiguousarray(block.weights))
        block = block._replace(signals=roots * block.signals, weights=roots)
    if coding.unit_signals:
        codes = _encode_unit_signals(block, dictionary, coding)
    elif _are_ordinary(block.signals) or (exponents := row_exponents(block.signals)) is None:
        codes = _encode(block, dictionary, coding, 0)
    else:
        codes = _encode_by_size(block, dictionary, coding, exponents)
    if norms is not None:
        with np.errstate(over="ignore"):
            codes = codes._replace(values=codes.values / norms[codes.indices])
        if not np.isfinite(codes.values).all():
            raise ValueError(
                f"the dictionary has atoms of norm {norms.min():.1e}: the codes for such short atoms exceed "
                f"the largest number of type {codes.values.dtype}. Multiply the atoms by a large number."
            )
    return None, codes


def encode_codes_block(
    rows: np.ndarray,
    weights: np.ndarray | None,
    dictionary: PreparedDictionary,
    norms: np.ndarray | None,
    coding: Coding,
) -> tuple[None, CodesBlock]:
    """The same for signals that an engine has."""
    _, codes = encode_block(CoderBlock(rows, None, weights), dictionary, norms, coding)
    indptr = np.concatenate([[0], np.cumsum(codes.counts, dtype=np.int64)])
    return None, CodesBlock(indptr, codes.indices, codes.values)


def _norms(D: np.ndarray) -> np.ndarray | None:
    """The norms of the atoms; None if they differ from 1 by rounding alone, so that no atom is changed."""
    norms = column_norms(D)
    return None if np.abs(norms - 1).max() <= 64 * np.finfo(D.dtype).eps else norms


def _block(Y: np.ndarray, part: slice, start: Support | None, weights: np.ndarray | None) -> CoderBlock:
    """Views of the signals of a block, of their starting codes and of their weights."""
    own = None if weights is None else weights[:, part].T
    if start is None:
        return CoderBlock(Y[:, part].T, None, own)
    indptr = start.indptr[part.start : part.stop + 1]
    entries = slice(int(indptr[0]), int(indptr[-1]))
    assert start.values is not None  # the caller has checked it
    codes = StartingCodes(indptr - indptr[0], start.indices[entries], start.values[entries])
    return CoderBlock(Y[:, part].T, codes, own)


def _are_ordinary(rows: np.ndarray) -> bool:
    """Whether squares are surely safe: a quick test that saves `row_exponents`, 3 % of the time of OMP."""
    limit = 4.0 ** (CODABLE[rows.dtype] - 1)
    with np.errstate(over="ignore"):
        squares = np.einsum("nm,nm->n", rows, rows)
    return bool(squares.max() <= limit and squares.min() >= rows.shape[1] / limit)


def _encode_unit_signals(block: CoderBlock, dictionary: PreparedDictionary, coding: Coding) -> CompactCodes:
    """Codes of signals that are each divided by a power of two first."""
    exponents = np.frexp(np.abs(block.signals).max(axis=1))[1]
    scaled = block._replace(signals=divide(block.signals, exponents[:, None]))
    codes = _encode(scaled, dictionary, coding, 0)
    return codes._replace(values=multiply(codes.values, np.repeat(exponents, codes.counts)))


def _encode_by_size(
    block: CoderBlock, dictionary: PreparedDictionary, coding: Coding, exponents: np.ndarray
) -> CompactCodes:
    """The codes of a block whose signals need units of their own: those of about one size together."""
    left, groups, found = np.arange(len(block.signals)), [], []
    while len(left):
        unit = int(exponents[left].max())
        together = exponents[left] > unit - CODABLE[block.signals.dtype]
        group, left = left[together], left[~together]
        codes = _encode(_take_signals(block, group, unit), dictionary, coding, unit)
        groups.append(group)
        found.append(codes._replace(values=multiply(codes.values, unit)))
    order = np.concatenate(groups)
    counts, indices, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
    entries = np.argsort(np.repeat(order, counts), kind="stable")  # back to the order of the signals
    return CompactCodes(counts[np.argsort(order)], indices[entries], values[entries])


def _take_signals(block: CoderBlock, signals: np.ndarray, exponent: int) -> CoderBlock:
    """Some signals of a block with their starting codes, divided by 2^exponent."""
    start = block.start
    if start is not None:
        indptr, indices, places = take(start.indptr, start.indices, signals)
        start = StartingCodes(indptr, indices, divide(start.values[places], exponent))
    roots = None if block.weights is None else block.weights[signals]
    return CoderBlock(divide(block.signals[signals], exponent), start, roots)


def _encode(block: CoderBlock, dictionary: PreparedDictionary, coding: Coding, exponent: int) -> CompactCodes:
    """Call the kernel on signals in units of 2^exponent, and keep the entries that count."""
    settings = coding.in_units(coding.settings, exponent, block.signals.dtype)
    start = () if block.start is None else (block.start,)
    if block.weights is None:
        counts, indices, values = coding.kernel(dictionary, block.signals, settings, *start)
    elif coding.weighted is not None:
        counts, indices, values = coding.weighted(dictionary, block.signals, block.weights, settings, *start)
    else:
        counts, indices, values = kernels.encode_by_pattern(
            coding.kernel,
            kernels.prepare,
            dictionary.atoms,
            block.signals,
            block.weights,
            settings,
            coding.unit_atoms,
            block.start,
        )
    return CompactCodes(counts, *kernels.entries(Codes(counts, indices, values)))
