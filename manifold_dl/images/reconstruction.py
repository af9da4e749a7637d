"""A picture from its represented patches: they overlap, and where they do their average is taken.

The reconstruction works in strips, so its memory does not grow with the picture. `denoise` calls it, and
`inpaint` the one with weights.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from manifold_dl._validation import require_count
from manifold_dl.coders.calling import run_coder
from manifold_dl.images.patches import Picture, centred
from manifold_dl.images.progress import Progress
from manifold_dl.learning.adapters import CallbackAdapter
from manifold_dl.learning.protocols import Callback

STRIP = 2**15  # patches in memory at a time


def reconstruct(
    picture: Picture,
    dictionary: np.ndarray,
    coder: Any,
    sigma: float,
    threads: int | None = None,
    progress: Progress | None = None,
) -> np.ndarray:
    """The average of all represented patches and, with a small weight, of the noisy picture.

    Parameters
    ----------
    picture : Picture
    dictionary : m×d array
    coder : SparseCoder
    sigma : float
        The standard deviation of the noise: the smaller it is, the more the noisy picture counts.
    threads : int, optional
    progress : Progress, optional
        It gets a report after every strip; this is its pass 0.

    Returns
    -------
    rows×columns×channels array
    """
    progress = progress or Progress()
    pixels, p = picture.pixels, picture.patch_size
    total, weight = np.zeros_like(pixels), np.zeros(pixels.shape[:2], dtype=pixels.dtype)
    columns = positions(pixels.shape[1], p, picture.stride)
    rows = positions(pixels.shape[0], p, picture.stride)
    per_strip = max(1, STRIP // len(columns))
    for first in range(0, len(rows), per_strip):
        strip = rows[first : first + per_strip]
        patches, means = centred(
            picture.windows[np.ix_(strip, columns)].reshape(-1, *picture.windows.shape[2:])
        )
        codes = run_coder(coder, patches.T, dictionary, threads=threads)
        clean = (codes.T @ dictionary.T).astype(pixels.dtype).reshape(len(strip), len(columns), -1, p, p)
        clean += means.reshape(len(strip), len(columns), -1, 1, 1)
        _add(total, weight, clean, strip, columns)
        progress.report(0, first + len(strip), len(rows))
    # Elad and Aharon's 30/σ for 8-bit pictures: the less noise, the more the picture itself counts.
    own = 30 / 255 * picture.span / sigma if sigma > 0 else np.inf
    if not np.isfinite(own):
        return pixels.copy()
    # In place, row by row: a large picture is not copied more often than it has to be.
    for row, given in zip(total, pixels, strict=True):
        row += own * given
    weight += own
    total /= weight[:, :, None]
    return total


@dataclass(frozen=True)
class WeightedPatches:
    """An estimate of a picture, and the weights of its pixels: 1 where they were observed.

    Attributes
    ----------
    picture : Picture
        Complete: missing pixels are estimates.
    missing : rows×columns×channels boolean array
    estimated : float
        The weight of an estimated pixel.
    """

    picture: Picture
    missing: np.ndarray
    estimated: float

    @property
    def holes(self) -> np.ndarray:
        """Where the pixels of every patch are missing, as a view: rows×columns×channels×p×p."""
        p = self.picture.patch_size
        return np.lib.stride_tricks.sliding_window_view(self.missing, (p, p), axis=(0, 1))

    @cached_property
    def n_missing(self) -> np.ndarray:
        """How many entries of every patch are missing, rows×columns.

        As sums along one side and then along the other: in a strip of patches each pixel would be counted
        once for every patch that it is in.
        """
        p, counts = self.picture.patch_size, self.missing.sum(axis=2, dtype=np.int32)
        for _ in range(2):
            sums = np.cumsum(counts, axis=0, dtype=np.int32)
            sums[p:] -= sums[:-p].copy()
            counts = sums[p - 1 :].T
        return counts

    def at(self, rows: Any, columns: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Patches that begin at these pixels, without their means, the means, and weights of mean 1.

        Parameters
        ----------
        rows, columns : int arrays
            Of one shape.

        Returns
        -------
        patches, means, weights
            n×m, n×channels and n×m arrays.
        """
        patches, means = centred(self.picture.windows[rows, columns])
        holes = self.holes[rows, columns].reshape(len(patches), -1)
        fraction = self.n_missing[rows, columns] / holes.shape[1]
        observed = 1 / (1 - fraction + self.estimated * fraction)  # of mean 1: a tolerance is a mean error
        levels = np.stack([observed, self.estimated * observed]).astype(patches.dtype)[:, :, None]
        return patches, means, np.where(holes, levels[1], levels[0])

    def random(self, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Patches drawn at random among those with an observed pixel, and their weights.

        Parameters
        ----------
        count : int
        rng : Generator

        Returns
        -------
        signals, weights
            m×n arrays.
        """
        require_count("n_patches", count, "learning needs at least one patch")
        known = np.flatnonzero(self.n_missing < self.picture.length)
        chosen = np.sort(rng.choice(known, size=min(count, len(known)), replace=False))
        patches, _, weights = self.at(*np.divmod(chosen, self.holes.shape[1]))
        return patches.T, weights.T


def weighted_reconstruction(
    patches: WeightedPatches,
    dictionary: np.ndarray,
    coder: Any,
    threads: int | None = None,
    callbacks: Sequence[Callback] = (),
    only_missing: bool = True,
) -> np.ndarray:
    """The average of all represented patches, each counted less the more atoms it needs.

    A patch of k atoms counts 1/(k + 1): one that is simple to represent has less room for error. Pixels that
    no patch reaches stay as they are.

    Parameters
    ----------
    patches : WeightedPatches
    dictionary : m×d array
    coder : SparseCoder
        Its `encode` has the keyword `weights`.
    threads : int, optional
    callbacks : sequence of Callback
        Their method `reconstructed` is called after every strip.
    only_missing : bool
        Only the missing pixels are needed: patches without any are not coded.

    Returns
    -------
    rows×columns×channels array
    """
    observers = [CallbackAdapter(callback) for callback in callbacks]
    picture, pixels = patches.picture, patches.picture.pixels
    total, weight = np.zeros_like(pixels), np.zeros(pixels.shape[:2], pixels.dtype)
    rows, columns = (positions(pixels.shape[axis], picture.patch_size, picture.stride) for axis in (0, 1))
    per_strip = max(1, STRIP // len(columns))
    for first in range(0, len(rows), per_strip):
        strip = rows[first : first + per_strip]
        i, j = (index.ravel() for index in np.meshgrid(strip, columns, indexing="ij"))
        needed = patches.n_missing[i, j] > 0 if only_missing else np.ones(len(i), bool)
        if needed.any():
            clean, counts = _represented(patches, i[needed], j[needed], dictionary, coder, threads)
            clean, counts = (_spread(part, needed, len(strip)) for part in (clean, counts))
            _add(total, weight, clean, strip, columns, counts)
        for observer in observers:
            observer.reconstructed(first + len(strip), len(rows))
    reached = weight[:, :, None] > 0
    return np.divide(total, weight[:, :, None], out=pixels.copy(), where=reached)


def _represented(
    patches: WeightedPatches,
    rows: np.ndarray,
    columns: np.ndarray,
    dictionary: np.ndarray,
    coder: Any,
    threads: int | None,
) -> tuple[np.ndarray, np.ndarray]:
    """Patches as the coder represents them, n×channels×p×p, and how much each of them counts."""
    signals, means, weights = patches.at(rows, columns)
    codes = run_coder(coder, signals.T, dictionary, threads=threads, weights=weights.T)
    clean = (codes.T @ dictionary.T).astype(signals.dtype)
    clean = clean.reshape(-1, *patches.picture.windows.shape[2:])
    clean += means[:, :, None, None]
    return clean, (1 / (1 + np.diff(codes.indptr))).astype(signals.dtype)


def _spread(values: np.ndarray, needed: np.ndarray, n_rows: int) -> np.ndarray:
    """The values of some patches of a strip at their places, in rows; zero for the others."""
    if not needed.all():
        some = values
        values = np.zeros((len(needed), *some.shape[1:]), some.dtype)
        values[needed] = some
    return values.reshape(n_rows, -1, *values.shape[1:])


def _add(
    total: np.ndarray,
    weight: np.ndarray,
    clean: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    counts: np.ndarray | None = None,
) -> None:
    """Add a strip of patches at their places: one shifted picture for every pixel of a patch.

    `counts` says how much each patch counts: 1 if it is not given.
    """
    p = clean.shape[-1]
    if counts is not None:
        clean *= counts[:, :, None, None, None]
    for i in range(p):
        for j in range(p):
            place = _place(rows + i, columns + j)
            total[place] += clean[:, :, :, i, j]
            weight[place] += 1 if counts is None else counts


def _place(rows: np.ndarray, columns: np.ndarray) -> Any:
    """Index of a grid of pixels: slices, which need no copies, where neighbours are one apart."""
    if len(rows) == np.ptp(rows) + 1 and len(columns) == np.ptp(columns) + 1:
        return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return np.ix_(rows, columns)


def positions(size: int, patch_size: int, stride: int) -> np.ndarray:
    """Where patches begin along one side; the last one always touches the border.

    Parameters
    ----------
    size, patch_size, stride : int

    Returns
    -------
    int array
        Increasing.
    """
    return np.unique(np.append(np.arange(0, size - patch_size + 1, stride), size - patch_size))
