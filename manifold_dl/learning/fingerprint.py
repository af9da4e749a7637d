"""A checksum of the signals, wherever they are: a checkpoint is resumed with the same signals only."""

import zlib
from typing import Any

import numpy as np

from manifold_dl.engines import BlockMap
from manifold_dl.engines.blocked import BlockedSignals
from manifold_dl.engines.blocked_weights import BlockedWeights
from manifold_dl.engines.protocol import partition


def fingerprint(signals: Any, weights: Any = None) -> int:
    """A checksum of the signals and their weights, which differs from one data set to another."""
    shape = np.array(signals.shape, dtype=np.int64).tobytes()
    kind = zlib.crc32(shape + str(signals.dtype).encode())
    checksum = _checksum(signals, kind)
    return checksum if weights is None else _checksum(weights, checksum)


def _checksum(array: Any, start: int) -> int:
    """A checksum of signals or weights, block by block: it does not depend on where they are."""
    if isinstance(array, BlockedSignals | BlockedWeights):
        blocks = array.given if isinstance(array, BlockedSignals) else array.blocks
        (checksums,) = array.engine.total(BlockMap(checksum_block, (blocks,)))
    else:
        checksums = [checksum_block(array.T[part])[0][0] for part in partition(array.shape[-1])]
    return zlib.crc32(np.array(checksums, dtype=np.int64).tobytes(), start)


def checksum_block(rows: np.ndarray) -> tuple[list[int], None]:
    """The checksum of one block of signals."""
    return [zlib.crc32(np.ascontiguousarray(rows).data)], None
