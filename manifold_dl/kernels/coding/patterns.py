"""Any coding kernel for signals with a weight for every entry: one dictionary for each pattern of weights.

With s = √w the problem of a signal is the unweighted one of s∘y over the atoms s∘d_i. Signals with the same
weights, as where a sensor failed, share that dictionary; where all patterns differ, as with entries missing
at random, every signal takes a Gram matrix, about a millisecond for 256 atoms. `weighted.py`,
`checked_lasso.py` and `nonnegative.py` have a faster way for their methods, and are tested against this one.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from manifold_dl.kernels.coding.interface import Codes, PreparedDictionary, StartingCodes, empty_codes

Prepare = Callable[[np.ndarray], PreparedDictionary]


def encode_by_pattern(
    kernel: Callable[..., Codes],
    prepare: Prepare,
    atoms: np.ndarray,
    signals: np.ndarray,
    roots: np.ndarray,
    settings: Any,
    unit_atoms: bool,
    start: StartingCodes | None = None,
) -> Codes:
    """Codes of each row of `signals` = √w∘y with `roots` = √w, by a kernel without weights.

    With `unit_atoms` the kernel is given the atoms divided by their norms on the observed entries. A signal
    gets at most as many atoms as it has observed entries, where the kernel has a sparsity.
    """
    groups: dict[bytes, list[int]] = {}
    for j, row in enumerate(roots):
        groups.setdefault(row.tobytes(), []).append(j)
    found = empty_codes(signals, getattr(settings, "sparsity", min(atoms.shape)))
    for members in groups.values():
        own = atoms * roots[members[0]]
        norms = np.linalg.norm(own, axis=1) if unit_atoms else np.ones(len(own), own.dtype)
        norms[norms == 0] = 1  # no entry of the atom is observed: it stays zero, and is never chosen
        begin = () if start is None else (_starts_of(start, members),)
        limited = _limited(settings, int(np.count_nonzero(roots[members[0]])))
        dictionary = prepare(np.ascontiguousarray(own / norms[:, None]))
        counts, indices, values = kernel(dictionary, np.ascontiguousarray(signals[members]), limited, *begin)
        width = indices.shape[1]
        used = np.arange(width) < counts[:, None]
        found.counts[members] = counts
        found.indices[members, :width] = np.where(used, indices, 0)
        found.values[members, :width] = np.where(used, values / norms[np.where(used, indices, 0)], 0)
    return found


def _limited(settings: Any, count: int) -> Any:
    """The settings for a signal with `count` observed entries."""
    if not hasattr(settings, "sparsity"):
        return settings
    return settings._replace(sparsity=max(1, min(settings.sparsity, count)))


def _starts_of(start: StartingCodes, members: list[int]) -> StartingCodes:
    """The starting codes of some signals."""
    parts = [slice(start.indptr[j], start.indptr[j + 1]) for j in members]
    lengths = [part.stop - part.start for part in parts]
    places = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    indptr = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    return StartingCodes(indptr, start.indices[places], start.values[places])
