"""A second look at a noisy picture, with a first result for a guide: similar patches explain each other.

For patches all over the picture, the most similar patches of the guide are found nearby. Together they are a
small dictionary of their own, and the noisy patches at the same places are coded in it by ridge regression.
With the group's guide patches, less their mean, in the columns of G, and a noisy patch y without that mean,

    x = (GᵀG + Nρσ²I)⁻¹ Gᵀy,

and Gx = C (C + ρσ²I)⁻¹ y with C = GGᵀ/N: the Wiener filter for Gaussian patches of covariance C, as in
non-local Bayes (Lebrun, Buades and Morel, 2013), by a system of N equations instead of m. `denoise` calls it.

Noise whose waves are longer than a patch remains in the guide, because patches are compared and explained as
they are there. In a picture of half the size it has shorter waves and half the strength. So the guide first
gets the low frequencies of what the same method makes of smaller pictures (`scales.py`).
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from itertools import product
from typing import NamedTuple

import numpy as np
import scipy.sparse

from manifold_dl._validation import require_count
from manifold_dl.engines.threads import as_threads, ordered_map_reduce
from manifold_dl.images.guided import Guided, Tile
from manifold_dl.images.patches import Picture
from manifold_dl.images.progress import Progress
from manifold_dl.images.reconstruction import positions
from manifold_dl.images.scales import halved, replace_low_frequencies

TILE = 2**22  # numbers in all patches of what is in memory at a time, about
NEGLIGIBLE = 1e6  # contrast in units of the noise from which there is nothing to remove
SMALLEST = 5  # patches along the shorter side of the smallest picture, at least

Report = Callable[[int, int], None]  # how many tiles are done, of how many
NO_REPORT: Report = partial(Progress().report, 0)


@dataclass(frozen=True)
class SimilarPatches:
    """Represent noisy patches by similar patches of a first result, and average them.

    Parameters
    ----------
    n_similar : int
        N: patches in a group; fewer in pictures that have no more.
    stride : int, optional
        Distance of the patches that groups are formed around; one less than a patch's side by default.
        All patches of a group are represented, so pixels are covered many times all the same.
    radius : int
        Similar patches are looked for up to so many pixels away in both directions.
    ridge : float
        ρ: 1 if the guide's covariances were those of the clean picture.
    rounds : int
        How many times; each result is the guide of the next round.
    halvings : int, optional
        How many smaller pictures there are at most, each with half the sides of the one before. Only those
        with at least five patches along each side are made. 0 for none.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.add.outer(np.arange(40), np.arange(40)) % 16 / 16
    >>> noisy = Picture.of(clean + 0.1 * rng.standard_normal(clean.shape), patch_size=8)
    >>> guide = noisy.pixels.copy()
    >>> refined = SimilarPatches()(noisy, guide, sigma=0.1)
    >>> bool(np.std(refined[:, :, 0] - clean) < 0.7 * 0.1)  # with the noisy picture itself as the guide
    True
    """

    n_similar: int = 32
    stride: int | None = None
    radius: int = 10
    ridge: float = 1.0
    rounds: int = 2
    halvings: int | None = None

    def __post_init__(self) -> None:
        for name in ("n_similar", "radius", "rounds"):
            require_count(name, getattr(self, name))
        if self.stride is not None:
            require_count("stride", self.stride)
        if self.halvings is not None:
            require_count("halvings", self.halvings, minimum=0)
        if not (np.isfinite(self.ridge) and self.ridge > 0):
            raise ValueError(f"ridge={self.ridge}: a factor of the noise's variance is positive; 1 is usual.")

    def __call__(
        self,
        picture: Picture,
        guide: np.ndarray,
        sigma: float,
        threads: int | None = None,
        progress: Progress | None = None,
    ) -> np.ndarray:
        """Return a better picture than the guide.

        Parameters
        ----------
        picture : Picture
            The noisy one.
        guide : rows×columns×channels array
            The first result. It is replaced by the new one, since a large picture should not be there twice.
        sigma : float
            The standard deviation of the noise.
        threads : int, optional
        progress : Progress, optional
            Rounds are reported as its passes 1, 2, and so on.

        Returns
        -------
        rows×columns×channels array
            The guide, replaced.
        """
        halvings = _halvings(picture) if self.halvings is None else min(self.halvings, _halvings(picture))
        for number in range(self.rounds):
            report = partial((progress or Progress()).report, number + 1)
            self._improve(picture, guide, sigma, as_threads(threads), halvings, report)
        return guide

    def _improve(
        self,
        picture: Picture,
        guide: np.ndarray,
        sigma: float,
        threads: int,
        halvings: int,
        report: Report,
    ) -> None:
        """Replace the guide, first its low frequencies and then the whole."""
        if np.ptp(picture.pixels) >= NEGLIGIBLE * sigma:
            return
        if halvings > 0:
            self._improve_low_frequencies(picture, guide, sigma, threads, halvings)
        guide[:] = self._round(Guided.of(picture, guide, sigma), threads, report)

    def _improve_low_frequencies(
        self, picture: Picture, guide: np.ndarray, sigma: float, threads: int, halvings: int
    ) -> None:
        """Replace those of the guide by what the smaller pictures have."""
        low = halved(guide)
        strength = float(np.sqrt(low.size / guide.size))
        small = replace(picture, pixels=halved(picture.pixels))
        self._improve(small, low, strength * sigma, threads, halvings - 1, NO_REPORT)
        del small  # a large picture's memory is needed for a spectrum
        replace_low_frequencies(guide, low)

    def _round(self, guided: Guided, threads: int, report: Report) -> np.ndarray:
        """One round: every tile of groups is computed by itself, and added in a fixed order."""
        picture = guided.picture
        total = np.zeros_like(picture.pixels)
        weight = np.zeros(picture.pixels.shape[:2], dtype=np.float32)
        stride = self._stride(picture.patch_size)
        side = int(np.sqrt(TILE / picture.length)) - 2 * self.radius
        at_once = max(1, side // stride)
        places = (positions(length, picture.patch_size, stride) for length in picture.pixels.shape[:2])
        tiles = list(product(*(_pieces(along, at_once) for along in places)))
        done = 0

        def take(estimate: Estimate) -> None:
            nonlocal done
            height, width = estimate.weight.shape
            place = np.s_[estimate.top : estimate.top + height, estimate.left : estimate.left + width]
            total[place] += estimate.total
            weight[place] += estimate.weight
            done += 1
            report(done, len(tiles))

        ordered_map_reduce(lambda tile: self._estimate(guided, *tile), tiles, take, threads)
        total *= guided.sigma  # back from units of the noise
        total /= weight[:, :, None]
        return total

    def _stride(self, patch_size: int) -> int:
        stride = patch_size - 1 if self.stride is None else self.stride
        if stride > patch_size:
            raise ValueError(f"stride={stride} leaves out pixels between patches of {patch_size}.")
        return stride

    def _estimate(self, guided: Guided, rows: np.ndarray, columns: np.ndarray) -> "Estimate":
        """The represented patches of the groups around some places, added up."""
        tile = guided.tile(rows, columns, self.radius)
        chosen = self._similar(tile, rows - tile.top, columns - tile.left)
        guide, noisy = (np.take(windows, chosen, axis=0) for windows in (tile.guide, tile.noisy))
        mean = guide.mean(axis=1, keepdims=True)
        guide -= mean
        noisy -= mean
        _, size, length = guide.shape
        gram = guide @ guide.swapaxes(1, 2)
        gram[:, np.arange(size), np.arange(size)] += size * self.ridge  # σ = 1 in these units
        codes = np.linalg.solve(gram, guide @ noisy.swapaxes(1, 2))
        clean = codes.swapaxes(1, 2) @ guide
        clean += mean
        return _added(tile, chosen.ravel(), clean.reshape(-1, length))

    def _similar(self, tile: Tile, rows: np.ndarray, columns: np.ndarray) -> np.ndarray:
        """Places in the tile of the patches most similar to those at the given rows and columns, by group."""
        features, radius = tile.features, self.radius
        _, height, width = features.shape
        centres = features[:, rows][:, :, columns]
        side = 2 * radius + 1
        distances = np.full((side, side, len(rows), len(columns)), np.inf, features.dtype)
        for i in range(side):
            down = _inside(rows + (i - radius), height)
            shifted = features[:, rows[down] + (i - radius)]
            for j in range(side):
                right = _inside(columns + (j - radius), width)
                difference = shifted[:, :, columns[right] + (j - radius)]
                difference -= centres[:, down, right]
                np.einsum("kij,kij->ij", difference, difference, out=distances[i, j, down, right])
        distances[radius, radius] = -1  # a patch is in its own group even if many are equal: pixels need it
        by_group = distances.reshape(side * side, -1).T.copy()
        # A corner has the fewest neighbours.
        size = min(self.n_similar, min(radius + 1, height) * min(radius + 1, width))
        nearest = np.argpartition(by_group, size - 1, axis=1)[:, :size]
        down_by, right_by = (steps - radius for steps in np.divmod(nearest, side))
        centre = np.add.outer(rows * width, columns).reshape(-1, 1)
        return centre + down_by * width + right_by


class Estimate(NamedTuple):
    """The sum of represented patches in a part of the picture, and how many there are at every pixel."""

    top: int
    left: int
    total: np.ndarray
    weight: np.ndarray


def _added(tile: Tile, places: np.ndarray, clean: np.ndarray) -> Estimate:
    """Add patches up at their places in the tile; a place may come more than once."""
    _, height, width = tile.features.shape
    channels, p, _ = tile.shape
    ones = np.ones(len(places), dtype=clean.dtype)
    by_place = scipy.sparse.csc_array(
        (ones, places, np.arange(len(places) + 1)), shape=(height * width, len(places))
    )
    patches = (by_place @ clean).reshape(height, width, channels, p, p)
    counts = np.bincount(places, minlength=height * width).reshape(height, width).astype(np.float32)
    total = np.zeros((height + p - 1, width + p - 1, channels), dtype=clean.dtype)
    weight = np.zeros(total.shape[:2], dtype=np.float32)
    for i, j in product(range(p), range(p)):
        total[i : i + height, j : j + width] += patches[:, :, :, i, j]
        weight[i : i + height, j : j + width] += counts
    return Estimate(tile.top, tile.left, total, weight)


def _pieces(places: np.ndarray, most: int) -> list[np.ndarray]:
    """Places along a side in pieces of nearly the same length, at most `most`."""
    return np.array_split(places, -(-len(places) // most))


def _inside(places: np.ndarray, size: int) -> slice:
    """Which of some increasing places lie within 0 ... size − 1: a slice, since they are consecutive."""
    first, last = np.searchsorted(places, [0, size])
    return slice(int(first), int(last))


def _halvings(picture: Picture) -> int:
    """How many times a picture can be halved until it has hardly more than a few patches along a side."""
    shorter = min(picture.pixels.shape[:2])
    return max(0, int(np.log2(shorter / (SMALLEST * picture.patch_size))))
