"""Signals with weights, prepared for the objective: checked, in rows, and in ordinary units.

One weight per signal multiplies its whole term: y times √w has the term of y times w, and codes times √w, so
the signals are scaled on entry and their codes scaled back in the end, and nothing else changes. With
weights of entries every squared error has a factor of its own; the weights stand in rows beside the signals.

`update_problem` and `updates/workspace.py` read signals through this; `WeightedSignals` without weights is
what `sources.py` makes of them.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from manifold_dl._validation import as_observed
from manifold_dl._weights import JointWeights, by_signal
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.blocked_weights import BlockedWeights, range_block, root_block, rooted_block
from manifold_dl.engines.protocol import BlockMap, Engine, partition
from manifold_dl.engines.sources import as_signals


@dataclass(frozen=True, eq=False)
class WeightedSignals:
    """Checked signals with their weights.

    Attributes
    ----------
    rows : n×m array or BlockMap
        A signal in every row, in units of 2^exponent; with a weight per signal multiplied by its root. Where
        an engine has the signals, rows, weights and roots are maps whose states are those of a block.
    energy : float
        Σ w y², in units of 4^exponent.
    exponent : int
        0 for ordinary signals (`units.py`).
    weights : n×m array, BlockMap or None
        Weights of the entries.
    roots : array of length n, BlockMap or None
        √w of one weight per signal; beside weights of entries, too (`JointWeights`).
    total_weight : float
        The number of signals; with weights the sum of the mean weights of the signals.
    largest_weight : float
        1 without weights.
    """

    rows: Any
    energy: float
    exponent: int
    weights: Any
    roots: Any
    total_weight: float
    largest_weight: float = 1.0

    @property
    def mean_energy(self) -> float:
        """The mean energy of a signal, Σ w y²/Σ w, times the largest weight where that is below 1.

        Thresholds of optimizers are relative to it, so that no common factor of the weights makes the
        objective look stationary. Weights of 1 and above count signals, and the number of them is no unit.
        """
        return self.energy / self.total_weight * min(1.0, self.largest_weight)

    def scaled(self, codes: np.ndarray, indptr: np.ndarray) -> np.ndarray:
        """Codes for the rows, from those of the signals that were given."""
        return codes if self.roots is None else codes * np.repeat(self.roots, np.diff(indptr))

    def unscaled(self, codes: np.ndarray, indptr: np.ndarray) -> np.ndarray:
        """Codes of the signals that were given, from those of the rows; zero where a signal has no weight."""
        if self.roots is None:
            return codes
        roots = np.repeat(self.roots, np.diff(indptr))
        return np.divide(codes, roots, out=np.zeros_like(codes), where=roots > 0)


def as_weighted_signals(signals: Any, weights: Any, engine: Engine) -> WeightedSignals:
    """The signals in contiguous rows with their weights, checked.

    Examples
    --------
    >>> from manifold_dl.engines import Threads
    >>> known = as_weighted_signals([[3.0, np.nan], [4.0, 1.0]], [[1, 0], [1, 2]], Threads(1))
    >>> known.rows.tolist(), known.energy, known.total_weight
    ([[3.0, 4.0], [0.0, 1.0]], 27.0, 2.0)
    """
    if isinstance(signals, BlockedSignals):
        return _blocked(signals, weights)
    if weights is None:
        rows, energy, exponent = as_signals(signals, engine)
        return WeightedSignals(rows, energy, exponent, None, None, len(rows))
    Y, W = as_observed(signals, weights, finite=False)  # `as_signals` tests it in its own pass
    if W is None:
        return as_weighted_signals(Y, None, engine)
    own, roots = by_signal(W), None
    if own is not None:
        roots = np.sqrt(own)
        Y = np.multiply(Y.T, roots[:, None], order="C").T  # a copy, and the only one
    rows, energy, exponent = as_signals(Y, engine)
    if W.ndim == 1:
        blocks = engine.open([W[part] for part in partition(len(W))])
        (found,) = engine.total(BlockMap(range_block, (blocks,)))
        return WeightedSignals(rows, energy, exponent, None, roots, found.total, found.largest)
    entries = np.ascontiguousarray((W.entries if isinstance(W, JointWeights) else W).T)
    energy, total = weighted_sums(rows, entries, engine)
    total = total if own is None else float(W.products.sum(dtype=float))
    largest = float((W.products if isinstance(W, JointWeights) else W).max())
    return WeightedSignals(rows, energy, exponent, entries, roots, total / rows.shape[1], largest)


def _blocked(signals: BlockedSignals, weights: BlockedWeights | None) -> WeightedSignals:
    """The same where an engine has signals and weights; computed once."""
    n = signals.shape[1]
    if weights is None:
        return WeightedSignals(signals.rows, signals.energy, signals.exponent, None, None, n)
    if signals not in weights.signals:
        if weights.ndim == 1:
            items = BlockMap(rooted_block, (signals.given, weights.blocks))
            rooted = BlockedSignals(signals.engine, items, signals.shape, signals.dtype).check()
            roots = BlockMap(root_block, (weights.blocks,))
            known = WeightedSignals(
                rooted.rows, rooted.energy, rooted.exponent, None, roots, weights.total, weights.largest
            )
        else:
            sums = BlockMap(weighted_sums_block, (signals.rows, weights.blocks))
            ((energy, total),) = signals.engine.total(sums)
            mean, largest = total / len(signals), weights.largest
            known = WeightedSignals(
                signals.rows, energy, signals.exponent, weights.blocks, None, mean, largest
            )
        weights.signals[signals] = known
    return weights.signals[signals]


def weighted_sums(rows: np.ndarray, weights: np.ndarray, engine: Engine) -> tuple[float, float]:
    """Σ w y² and Σ w in double precision, with the same bits for any engine."""
    parts = partition(len(rows))
    blocks, weight_blocks = (engine.open([array[part] for part in parts]) for array in (rows, weights))
    (sums,) = engine.total(BlockMap(weighted_sums_block, (blocks, weight_blocks)))
    return sums


def weighted_sums_block(rows: np.ndarray, weights: np.ndarray) -> tuple[tuple[float, float], None]:
    """Σ w y² and Σ w of one block."""
    energy = float(np.einsum("ij,ij,ij->", weights, rows, rows, dtype=float))
    return (energy, float(weights.sum(dtype=float))), None
