"""Batches of signals with supports of one size, whose small systems are solved side by side.

One Cholesky factorisation of five atoms is a chain of products and divisions that wait for each other. Those
of 64 signals, one in each element of the vector registers, take hardly longer than one. So the signals of a
block are arranged in batches by the size of their supports, once, and every compiled kernel goes through it
batch by batch. The small systems themselves are in `cholesky.py`.
"""

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from manifold_dl.kernels.backend import compiled, internal

# Signals solved side by side. Measured: half as many take half as long again, because the compiler then
# unrolls the loops over them; twice as many gain nothing.
BATCH_SIZE = 64
MULTIPLE = 8  # a batch that is not full is padded to a multiple of this: a vector register


class Batches(NamedTuple):
    """A support, arranged in batches of up to BATCH_SIZE signals with supports of one size.

    Entry a of signal w of batch p, which is `width` signals wide, stands at place[p] + a·width + w; entry (a,
    b), b ≤ a, of its Cholesky factor at factor_place[p] + (a(a + 1)/2 + b)·width + w. Padding repeats the
    first signal of the batch.
    """

    signals: np.ndarray  # those that use any atom, by size of their support
    indptr: np.ndarray  # where the codes of every signal of the block stand
    first: np.ndarray  # where in `signals` each batch begins
    place: np.ndarray
    factor_place: np.ndarray
    indices: np.ndarray
    ascending: bool  # whether all supports are sorted: then half a Gram matrix is enough

    @property
    def widths(self) -> np.ndarray:
        """The padded size of every batch."""
        return padded_widths(self.first)


def make_batches(indptr: np.ndarray, indices: np.ndarray) -> Any:
    """Arrange the signals of a block; it depends on the support alone."""
    sizes = np.diff(indptr)
    counts = np.bincount(sizes, minlength=1)
    unused, ends = counts[0], np.cumsum(counts)
    # NumPy sorts whole numbers of one or two bytes digit by digit, in a fraction of the time.
    order = np.argsort(sizes.astype(np.min_scalar_type(len(counts))), kind="stable")
    signals = order[unused:].astype(np.int32)
    of_size = [np.arange(begin, end, BATCH_SIZE) for begin, end in pairwise(ends)]
    first = np.concatenate([*of_size, ends[-1:]]) - unused
    widths, s = padded_widths(first), sizes[signals[first[:-1]]]
    place = np.concatenate([[0], np.cumsum(s * widths)])
    factor_place = np.concatenate([[0], np.cumsum(s * (s + 1) // 2 * widths)])
    batched = np.empty(place[-1], dtype=np.int32)
    ascending = _fill(indptr, indices, signals, first, place, batched)
    return Batches(signals, indptr, first, place, factor_place, batched, ascending)


def padded_widths(first: np.ndarray) -> np.ndarray:
    """`padded_size` of every batch, from where the batches begin."""
    return np.minimum(-(-np.diff(first) // MULTIPLE) * MULTIPLE, BATCH_SIZE)


@compiled
def _fill(indptr, indices, signals, first, place, batched):
    ascending = True
    for batch in range(len(first) - 1):
        width = padded_size(first[batch + 1] - first[batch])
        s = (place[batch + 1] - place[batch]) // width
        for w in range(width):
            rank = first[batch] + w
            begin = indptr[signals[rank if rank < first[batch + 1] else first[batch]]]
            for a in range(s):
                batched[place[batch] + a * width + w] = indices[begin + a]
                ascending &= a == 0 or indices[begin + a] > indices[begin + a - 1]
    return ascending


@internal
def padded_size(n):
    """The width of a batch for the next n signals."""
    width = (n + MULTIPLE - 1) // MULTIPLE * MULTIPLE
    return width if width < BATCH_SIZE else np.int64(BATCH_SIZE)


@internal
def matrix(memory, begin, s, width):
    """The s×width numbers from `begin` on. The one `reshape` of the kernels, because it compiles slowly."""
    return memory[begin : begin + s * width].reshape(s, width)


@internal
def longest(places):
    """The longest of the stretches that begin at these places: memory for any of them."""
    found = np.int64(0)
    for batch in range(len(places) - 1):
        length = places[batch + 1] - places[batch]
        found = length if length > found else found
    return found


@internal
def zeros(size):
    """`np.zeros(size)`, which takes three times as long to compile."""
    memory = np.empty(size)
    for i in range(size):
        memory[i] = 0.0
    return memory


@internal
def largest_support(first, place):
    """The most atoms that a signal uses: batches are sorted by size, so it is in the last."""
    last = len(first) - 2
    return (place[last + 1] - place[last]) // padded_size(first[last + 1] - first[last]) if last >= 0 else 0
