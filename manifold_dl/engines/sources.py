"""Where the signals come from: a matrix in memory, checked and scaled once.

The signals are read as contiguous rows. Those whose squares would overflow or vanish are divided by a power
of two first (`units.py`), so that everything after this sees numbers of ordinary size.
"""

from typing import Any, NamedTuple

import numpy as np

from manifold_dl._missing import WEIGHTS
from manifold_dl._validation import as_matrix, require_finite, warn_once
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.protocol import SMALLEST_BLOCK, BlockMap, Engine, partition
from manifold_dl.engines.threads import Threads
from manifold_dl.engines.units import ORDINARY, divide, dominant_signal, unit_exponent


class Signals(NamedTuple):
    """Checked signals in units of 2^exponent: Y = 2^exponent · rowsᵀ. Ordinary signals have exponent 0."""

    rows: Any  # contiguous, a signal in every row: an array, or a BlockMap with such states
    energy: float  # Σ rows²
    exponent: int


def as_signals(signals: Any, engine: Engine = Threads(1)) -> Signals:  # noqa: B008 - frozen
    """The signals in contiguous rows, checked: one pass over ordinary ones computes their energy as well."""
    if isinstance(signals, BlockedSignals):  # they were checked when they were opened
        return Signals(signals.rows, signals.energy, signals.exponent)
    Y = as_matrix(signals, "signals", finite=False, advice=WEIGHTS)
    rows = np.ascontiguousarray(Y.T)
    energy, exponent = squared_norm(rows, engine), 0
    safe = 2.0 ** (2 * ORDINARY[rows.dtype])
    if not 1 / safe <= energy <= safe:
        require_finite(Y, "signals", energy, WEIGHTS)
        exponent = unit_exponent(rows)
    if exponent:
        rows = divide(rows, exponent)
        energy = squared_norm(rows, engine)
        dominant = dominant_signal(rows)
        if dominant is not None:
            warn_once(
                f"signal {dominant} has entries of {np.abs(Y[:, dominant]).max():.1e}, and the squares of "
                "all others vanish against its own: the dictionary is fitted to that signal alone. Remove "
                "it, or divide each signal by its norm.",
                "one signal outweighs all others",
            )
    return Signals(rows, energy, exponent)


def squared_norm(rows: np.ndarray, engine: Engine = Threads(1)) -> float:  # noqa: B008 - frozen
    """Σ y² in double precision, with the same bits for any engine."""
    if len(rows) <= SMALLEST_BLOCK:  # one block: there is nothing to share or to add
        return squared_norm_block(rows)[0]
    blocks = engine.open([rows[part] for part in partition(len(rows))])
    (total,) = engine.total(BlockMap(squared_norm_block, (blocks,)))
    return 0.0 if total is None else total


def squared_norm_block(rows: np.ndarray) -> tuple[float, None]:
    """Σ y² of one block."""
    return float(np.einsum("ij,ij->", rows, rows, dtype=float)), None
