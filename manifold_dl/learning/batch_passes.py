"""Passes over mini-batches, with which `learn_dictionary` begins where there are many signals.

A full iteration looks at all signals before the dictionary moves once. A pass over mini-batches looks at all
of them, too, and moves the dictionary after each batch by the step of `partial_fit` (`learn_batch` in
`minibatch.py`). The loop makes such passes first and full iterations last; one pass is one outer iteration.
"""

import math
from collections.abc import Iterator
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl._weights import JointWeights, by_signal
from manifold_dl.engines import Threads
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.protocol import MULTIPLE
from manifold_dl.engines.threads import using_engine
from manifold_dl.learning.batching import MiniBatches
from manifold_dl.learning.minibatch import OnlineState, learn_batch
from manifold_dl.learning.signal_sums import LossScale, code_energies

FETCHED = 65_536  # signals of mini-batches that one round fetches from an engine


def computing_here(signals: Any) -> AbstractContextManager[None]:
    """Inside the block small arrays are computed with in this process, also if a cluster has the signals."""
    is_elsewhere = isinstance(signals, BlockedSignals) and signals.engine.is_remote
    return using_engine(Threads() if is_elsewhere else None)


class PassResult(NamedTuple):
    """What a pass over mini-batches leaves."""

    dictionary: np.ndarray
    state: OnlineState
    codes: scipy.sparse.csc_array | None  # None where an engine has the signals
    error: float  # of every batch before its step, in the units of the run
    energy: float  # ‖X‖² of these codes; a weight per signal multiplies its own


def pass_over_batches(
    minibatches: MiniBatches,
    signals: Any,
    dictionary: np.ndarray,
    state: OnlineState,
    *,
    coder: Any,
    rule: Any,
    scale: LossScale,
    at: tuple[int, int],
    rng: np.random.Generator,
    weights: Any = None,
) -> PassResult:
    """All signals once, batch by batch.

    Parameters
    ----------
    minibatches : MiniBatches
    signals : m×n array or BlockedSignals
    dictionary : m×d array
    state : OnlineState
    coder : SparseCoder
    rule : DictionaryUpdate
        For one mini-batch.
    scale : LossScale
        Of all signals.
    at : tuple of int
        The number of the pass, and that of all outer iterations.
    rng : Generator
        Draws the mini-batches.
    weights : array of length n, m×n array or BlockedWeights, optional

    Returns
    -------
    PassResult
    """
    error = energy = 0.0
    coded: dict[int, scipy.sparse.csc_array] = {}
    for blocks, Y, W in _batches(minibatches.order(signals.shape[1], rng), signals, weights):
        if W is not None and not W.any():
            continue  # nothing is learned from it
        with computing_here(signals):
            found = learn_batch(
                Y,
                dictionary,
                state,
                coder,
                rule,
                iteration=at[0],
                max_iter=at[1],
                rng=rng,
                weights=W,
                forgetting=minibatches.forgetting(at[1]),
            )
        dictionary, state = found.dictionary, found.state
        error += math.ldexp(found.error, 2 * (found.scale.exponent - scale.exponent))
        energy += float(code_energies(found.codes, scale.exponent, weights=by_signal(W)).sum())
        if not isinstance(signals, BlockedSignals):
            _keep(coded, blocks, found.codes)
    codes = None if isinstance(signals, BlockedSignals) else _joined(coded, dictionary, signals)
    return PassResult(dictionary, state, codes, error, energy)


def _batches(
    order: Iterator[np.ndarray], signals: Any, weights: Any
) -> Iterator[tuple[np.ndarray, np.ndarray, Any]]:
    """The mini-batches: their blocks, signals in columns, and weights.

    Where an engine has the signals, a round fetches those of several mini-batches.
    """
    n_signals, is_here = signals.shape[1], isinstance(signals, np.ndarray)
    batches = list(order)
    together = 1 if is_here else max(1, FETCHED // (MULTIPLE * max(len(blocks) for blocks in batches)))
    for first in range(0, len(batches), together):
        # Of one group at a time: the numbers of all signals would be 8 bytes for each of them.
        group = [(blocks, _signals_of(blocks, n_signals)) for blocks in batches[first : first + together]]
        numbers = np.concatenate([numbers for _, numbers in group])
        rows = signals.T[numbers] if is_here else signals.take(numbers)
        row_weights = None if weights is None else _weights_of(weights, numbers)
        begin = 0
        for blocks, own in group:
            part = slice(begin, begin + len(own))
            yield blocks, rows[part].T, _columns(row_weights, part)
            begin = part.stop


def _signals_of(blocks: np.ndarray, n_signals: int) -> np.ndarray:
    """The numbers of the signals of some blocks."""
    numbers = (MULTIPLE * blocks[:, None] + np.arange(MULTIPLE)).ravel()
    return numbers[numbers < n_signals]


def _weights_of(weights: Any, numbers: np.ndarray) -> Any:
    """The weights of some signals: a number, or a row, for each."""
    if isinstance(weights, JointWeights):
        return weights.of(numbers)
    return weights.T[numbers] if isinstance(weights, np.ndarray) else weights.take(numbers)


def _columns(weights: Any, part: slice) -> Any:
    """The weights of some of these signals, as a coder takes them."""
    if weights is None or isinstance(weights, JointWeights):
        return None if weights is None else weights.of(part)
    return weights[part].T


def _keep(coded: dict[int, scipy.sparse.csc_array], blocks: np.ndarray, codes: Any) -> None:
    """Store the codes of a batch, block by block."""
    for place, block in enumerate(blocks.tolist()):
        coded[block] = codes[:, place * MULTIPLE : (place + 1) * MULTIPLE]


def _joined(
    coded: dict[int, scipy.sparse.csc_array], dictionary: np.ndarray, signals: np.ndarray
) -> scipy.sparse.csc_array:
    """The codes of all signals; none for those of batches that have no weight."""
    for first in range(0, signals.shape[1], MULTIPLE):
        shape = dictionary.shape[1], min(MULTIPLE, signals.shape[1] - first)
        coded.setdefault(first // MULTIPLE, scipy.sparse.csc_array(shape, dtype=signals.dtype))
    return scipy.sparse.hstack([coded[block] for block in sorted(coded)], format="csc")
