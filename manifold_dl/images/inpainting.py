"""Filling in missing pixels with a dictionary learned from the picture itself.

The picture is completed smoothly first. Then, in a few rounds, every patch is represented by a few atoms,
where an observed pixel has the weight 1 and an estimated one a small weight: enough that a patch with few
observed pixels does not get a code that fits them and nothing else. The averages of the patches are the next
estimate. From round to round the error that is allowed shrinks, and after the first round the dictionary is
learned, from patches with the same weights.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from numbers import Real
from typing import Any

import numpy as np

from manifold_dl._missing import FILL
from manifold_dl._validation import each_warning_once, require_count, require_memory, require_unmasked
from manifold_dl.coders import ForwardSelection
from manifold_dl.images.defaults import cosines, tethered
from manifold_dl.images.filling import smooth_fill
from manifold_dl.images.noise import usual_gain
from manifold_dl.images.patches import Picture
from manifold_dl.images.reconstruction import WeightedPatches, weighted_reconstruction
from manifold_dl.learning.history import History
from manifold_dl.learning.learn import learn_dictionary
from manifold_dl.learning.protocols import Callback
from manifold_dl.learning.result import Reason, Result
from manifold_dl.updates.protocol import DictionaryUpdate

# The error allowed per pixel in each round, in levels of 255, and the weight of an estimated pixel. Measured
# on coins, gravel and a crop of the camera picture: docs/inpainting.md.
ERRORS, ESTIMATED = (12.0, 8.0, 5.0, 3.0), 0.2
MASK = FILL._replace(masked="Give its `.data` as the picture, and its mask as `mask`.")


@dataclass
class InpaintingResult:
    """A completed picture and what it was completed with.

    Attributes
    ----------
    image : array like the picture that was given
        In its dtype and range. Without sigma the observed pixels are unchanged.
    dictionary : m×d array
        A patch in every column, channels one after the other.
    history : History
        Of the learning.
    missing : float
        The fraction of the pixels that were missing.
    seconds_learning, seconds_reconstruction : float
    """

    image: np.ndarray
    dictionary: np.ndarray
    history: History
    missing: float
    seconds_learning: float = 0.0
    seconds_reconstruction: float = 0.0


def inpaint(
    image: Any,
    mask: Any,
    *,
    sigma: float | None = None,
    patch_size: int = 8,
    n_atoms: int = 256,
    n_patches: int = 40_000,
    update: DictionaryUpdate | str | None = None,
    max_iter: int = 10,
    init: Any = "dct",
    stride: int = 1,
    rng: np.random.Generator | int | None = 0,
    callbacks: Sequence[Callback] = (),
    threads: int | None = None,
) -> InpaintingResult:
    """Fill in missing pixels of a grey or RGB picture.

    Parameters
    ----------
    image : rows×columns or rows×columns×3 array
        Float, or integers of 8 or 16 bit; the result has the same type. Of floats white is 1, or 255 where a
        pixel exceeds 2: the errors that are allowed are relative to it. The values of missing pixels do
        not matter, and may be NaN.
    mask : rows×columns boolean array, or of the shape of the picture
        True where a pixel is missing.
    sigma : float, optional
        Standard deviation of the noise of the observed pixels, in the picture's units: they are denoised
        too. By default they are kept as they are.
    patch_size : int
        Side of the square patches.
    n_atoms : int
        Atoms to learn.
    n_patches : int
        Patches to learn from, drawn at random; all of them if the picture has fewer.
    update : DictionaryUpdate, optional
        Or its name; it has to take weights. By default SimCO with a tether to the start, as in `denoise`.
    max_iter : int
        Outer iterations of the learning.
    init : "dct", "random" or array
        Where the learning starts.
    stride : int
        Distance of the patches in the reconstruction; 1 is best and slowest.
    rng : Generator or int, optional
        Draws the patches.
    callbacks : sequence of Callback
        Called with every `Step` of the learning. Their method ``reconstructed(done, total)``, if they have
        it, is called with rows of patches after every strip of every round.
    threads : int, optional
        All processors by default.

    Returns
    -------
    InpaintingResult
        The completed picture, the dictionary and the history of its learning.

    Notes
    -----
    A hole wider than a patch is filled from its border inwards: with every round the patches carry structure
    half a patch further, and beyond that the smooth fill remains. Patches cannot invent what is nowhere near.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.add.outer(np.arange(40), np.arange(40)) % 16 / 16
    >>> mask = rng.random(clean.shape) < 0.3
    >>> result = inpaint(np.where(mask, np.nan, clean), mask, n_atoms=64, max_iter=3)
    >>> bool(np.abs(result.image - clean)[mask].mean() < 0.05), bool((result.image == clean)[~mask].all())
    (True, True)
    """
    picture, missing = _as_incomplete(image, mask, patch_size, stride)
    noise = _as_noise(sigma)
    require_count("n_atoms", n_atoms)
    require_memory(n_atoms, picture.length)
    rng = np.random.default_rng(rng)
    working = _in_single(picture)
    start = cosines(working, n_atoms) if isinstance(init, str) and init == "dct" else init
    dictionary: Any = cosines(working, n_atoms) if isinstance(start, str) else start
    errors = _errors(picture, noise)
    estimate, history, learned = smooth_fill(working.pixels, missing), History(), 0.0
    begin = time.perf_counter()
    for number, error in enumerate(errors):
        patches = WeightedPatches(replace_fields(working, pixels=estimate), missing, ESTIMATED)
        tol = error**2 * picture.length
        if number == 1:  # the first estimate is already better than the smooth fill
            started = time.perf_counter()
            signals, weights = patches.random(n_patches, rng)
            rule = tethered(start, tol, signals.shape[1]) if update is None else update
            parts: dict[str, Any] = {"coder": _coder(picture, n_atoms, tol), "update": rule, "init": start}
            options = {"max_iter": max_iter, "rng": rng, "callbacks": callbacks, "threads": threads}
            result = _learned(signals, n_atoms, weights=weights, **parts, **options)
            dictionary, history = result.dictionary, result.history
            learned = time.perf_counter() - started
        coder = _coder(picture, n_atoms, tol)
        only_missing = noise == 0 or number < len(errors) - 1
        average = weighted_reconstruction(patches, dictionary, coder, threads, callbacks, only_missing)
        estimate = np.where(missing, average, working.pixels)
    if noise == 0:
        clean = np.where(missing, average, picture.pixels)
    else:
        clean = _denoised(picture, average, missing, noise)
    return InpaintingResult(
        picture.restore(clean),
        np.asarray(dictionary, picture.pixels.dtype),
        history,
        float(missing.mean()),
        seconds_learning=learned,
        seconds_reconstruction=time.perf_counter() - begin - learned,
    )


def _learned(signals: np.ndarray, n_atoms: int, **settings: Any) -> Result:
    """The result of `learn_dictionary`, unless it was interrupted."""
    with each_warning_once("few signals", "unused atoms"):  # atoms of the start are of use, too
        result = learn_dictionary(signals, n_atoms, replace=None, **settings)
    if result.reason is Reason.INTERRUPTED:  # half a dictionary is of use, half a picture is not
        raise KeyboardInterrupt
    return result


def _as_incomplete(image: Any, mask: Any, patch_size: int, stride: int) -> tuple[Picture, np.ndarray]:
    """The picture with finite numbers everywhere, and where its pixels are missing, channel by channel."""
    for array, name in ((image, "the picture"), (mask, "the mask")):
        require_unmasked(array, name, MASK)
    image, mask = np.asarray(image), np.asarray(mask)
    if mask.dtype != bool:
        raise TypeError(f"a mask of dtype {mask.dtype}: give booleans, True where a pixel is missing.")
    if mask.shape not in (image.shape, image.shape[:2]):
        raise ValueError(f"a mask of shape {mask.shape} does not fit a picture of shape {image.shape}.")
    if mask.size and mask.all():
        raise ValueError("all pixels are missing: there is nothing to learn from.")
    missing = np.broadcast_to(mask[..., None] if mask.ndim < image.ndim else mask, image.shape)
    # Any number serves at missing pixels: they never matter.
    observed = np.where(missing, image[~missing].flat[0], image) if image.size else image
    picture = Picture.of(observed, patch_size, stride)
    missing = missing.reshape(picture.pixels.shape)
    if (empty := missing.all(axis=(0, 1))).any():
        raise ValueError(
            f"channel {empty.argmax()} has no observed pixel: nothing says how bright it is. "
            "Fill in the other channels alone."
        )
    largest, limit = float(np.abs(picture.pixels).max()), float(np.finfo(picture.pixels.dtype).max) ** 0.25
    if largest > limit:
        raise ValueError(
            f"the picture holds numbers up to {largest:.1e}, and sums of squares of squares overflow beyond "
            f"{limit:.1e}: divide it by a constant."
        )
    return picture, missing


def _as_noise(sigma: float | None) -> float:
    if sigma is None:
        return 0.0
    if isinstance(sigma, bool) or not isinstance(sigma, Real):
        raise TypeError(f"sigma={sigma!r}: the standard deviation of the noise is one number.")
    if not (np.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"sigma={sigma}: the noise has a finite standard deviation of at least 0.")
    return float(sigma)


def _in_single(picture: Picture) -> Picture:
    """The picture in single precision, where that is far finer than the errors allowed: half of the time."""
    finest = float(np.abs(picture.pixels).max()) * float(np.finfo(np.float32).eps)
    if finest > 1e-3 * picture.span / 255:
        return picture
    return replace_fields(picture, pixels=picture.pixels.astype(np.float32))


def _errors(picture: Picture, noise: float) -> list[float]:
    """The root mean square error allowed in each round, in the picture's units: never below the noise."""
    floor = usual_gain(picture.length, picture.pixels.shape[2]) * noise
    return [max(error * picture.span / 255, floor) for error in ERRORS]


def _coder(picture: Picture, n_atoms: int, tol: float) -> ForwardSelection:
    return ForwardSelection(sparsity=max(1, min(picture.length // 2, n_atoms)), tol=tol)


def _denoised(picture: Picture, average: np.ndarray, missing: np.ndarray, noise: float) -> np.ndarray:
    """Averages of the patches, and with them at observed pixels a little of the picture, as in `denoise`."""
    own = 30 / 255 * picture.span / noise
    covered = (picture.patch_size / picture.stride) ** 2
    return np.where(missing, average, (own * picture.pixels + covered * average) / (own + covered))
