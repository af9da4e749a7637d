"""Where the signals come from: a matrix in memory, checked and scaled once.

The signals are read as contiguous rows. Those whose squares would overflow or vanish are divided by a power
of two first (`units.py`), so that everything after this sees numbers of ordinary size.
"""

from typing import NamedTuple

import numpy as np

from manifold_dl._validation import as_matrix, require_finite, warn_once
from manifold_dl.engines.threads import LARGEST_BLOCK, gather
from manifold_dl.engines.units import ORDINARY, divide, lone_signal, unit_exponent


class Signals(NamedTuple):
    """Checked signals in units of 2^exponent: Y = 2^exponent · rowsᵀ. Ordinary signals have exponent 0."""

    rows: np.ndarray  # contiguous, a signal in every row
    energy: float  # Σ rows²
    exponent: int


def as_signals(signals, threads=1):
    """The signals in contiguous rows, checked: one pass over ordinary ones tells their energy as well."""
    Y = as_matrix(signals, "signals", finite=False)
    rows = np.ascontiguousarray(Y.T)
    energy, exponent = squared_norm(rows, threads), 0
    safe = 2.0 ** (2 * ORDINARY[rows.dtype])
    if not 1 / safe <= energy <= safe:
        require_finite(Y, "signals", energy)
        exponent = unit_exponent(rows)
    if exponent:
        rows = divide(rows, exponent)
        energy = squared_norm(rows, threads)
        alone = lone_signal(rows)
        if alone is not None:
            warn_once(
                f"signal {alone} has entries of {np.abs(Y[:, alone]).max():.1e}, and the squares of all "
                "others vanish against its own: the dictionary is fitted to that signal alone. Remove it, "
                "or divide each signal by its norm.",
                "one signal outweighs all others",
            )
    return Signals(rows, energy, exponent)


def squared_norm(rows, threads=1):
    """Σ y² in double precision, with the same bits for any number of threads."""
    pieces = [rows[first : first + LARGEST_BLOCK] for first in range(0, len(rows), LARGEST_BLOCK)]
    return float(sum(gather(lambda piece: np.einsum("ij,ij->", piece, piece, dtype=float), pieces, threads)))
