"""Denoising pictures with a dictionary learned from the noisy picture itself.

Every small patch is represented, but for its mean, by as few atoms as it takes to come within the noise;
the patches overlap, and where they do their average is taken, together with a little of the noisy picture
(Elad and Aharon, 2006). That is the guide for a second look, in which similar patches explain each other.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from typing import Any

import numpy as np

from manifold_dl._validation import as_rng, each_warning_once, require_count, require_memory
from manifold_dl.coders import ForwardSelection, SparseCoder
from manifold_dl.coders.protocol import properties_of
from manifold_dl.components import by_name
from manifold_dl.engines.units import divide, multiply, unit_exponent
from manifold_dl.images.defaults import cosines, tethered
from manifold_dl.images.noise import estimate_sigma, usual_gain
from manifold_dl.images.patches import Picture
from manifold_dl.images.progress import Progress
from manifold_dl.images.reconstruction import reconstruct
from manifold_dl.images.similar import SimilarPatches
from manifold_dl.learning.history import History
from manifold_dl.learning.learn import learn_dictionary
from manifold_dl.learning.protocols import Callback, ReplacementPolicy
from manifold_dl.learning.result import Reason
from manifold_dl.updates.protocol import DictionaryUpdate, regularizers_of

REFINE = SimilarPatches()


@dataclass
class DenoisingResult:
    """A cleaned picture and what it was cleaned with.

    Attributes
    ----------
    image : array like the noisy picture
        In its dtype and range.
    dictionary : m×d array
        A patch in every column, channels one after the other.
    history : History
        Of the learning.
    sigma : float
        The standard deviation of the noise, given or estimated, in the picture's units.
    seconds_learning, seconds_reconstruction : float
    """

    image: np.ndarray
    dictionary: np.ndarray
    history: History
    sigma: float
    seconds_learning: float = 0.0
    seconds_reconstruction: float = 0.0


def denoise(
    image: Any,
    sigma: float | None = None,
    *,
    patch_size: int = 8,
    n_atoms: int = 256,
    n_patches: int = 40_000,
    coder: SparseCoder | str | None = None,
    update: DictionaryUpdate | str | None = None,
    max_iter: int = 4,
    init: Any = "dct",
    stride: int = 2,
    refine: SimilarPatches | None = REFINE,
    gain: float | None = None,
    replace: ReplacementPolicy | None = None,
    rng: np.random.Generator | int | None = 0,
    callbacks: Sequence[Callback] = (),
    threads: int | None = None,
) -> DenoisingResult:
    """Remove white Gaussian noise from a grey or RGB picture.

    Parameters
    ----------
    image : rows×columns or rows×columns×3 array
        Float, or integers of 8 or 16 bit; the result has the same type. Floats beyond 2^±100 (2^±20 in single
        precision), whose squares would overflow or vanish, are treated as multiples of a power of two: the
        picture's largest value counts as white, and the losses of the history are in these units.
    sigma : float, optional
        Standard deviation of the noise in the picture's units; estimated if not given.
    patch_size : int
        Side of the square patches.
    n_atoms : int
        Atoms to learn.
    n_patches : int
        Patches to learn from, drawn at random; all of them if the picture has fewer.
    coder : SparseCoder, optional
        By default forward selection that stops as soon as the squared error of a patch is (gain·sigma)²
        per pixel. A coder given by its name, such as ``"omp"``, stops there too, if it has a parameter `tol`.
    update : DictionaryUpdate, optional
        Or its name: ``"ksvd"``. By default SimCO with μ = 0.5 and a tether to the start whose weight falls
        with the number of patches. On three pictures at three levels of noise it is 0.29 dB above K-SVD on
        average with 1,000 patches and 0.06 dB with 40,000: docs/denoising.md.
    max_iter : int
        Outer iterations of the learning.
    init : "dct", "data", "random" or array
        Where the learning starts.
    stride : int
        Distance of the patches in the first result. With `refine` 2 is as good as 1; without, 1 is better.
    refine : SimilarPatches, optional
        The second look, with the average of the represented patches for a guide; None returns that average.
    gain : float, optional
        How close a patch has to come, in units of the noise. By default what pure noise exceeds in one patch
        of 28: the usual 1.15 for 8×8 pixels, and 1.084 for as many in colour.
    replace : ReplacementPolicy, optional
        What to do with useless atoms after every iteration; nothing by default.
    rng : Generator or int, optional
        Draws the patches.
    callbacks : sequence of Callback
        Called with every `Step` of the learning. Their method ``reconstructed(done, total)``, if they have
        it, is called with rows of pixels while the picture is put together.
    threads : int, optional
        All processors by default.

    Returns
    -------
    DenoisingResult
        The cleaned picture, the dictionary and the history of its learning.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.add.outer(np.arange(40), np.arange(40)) % 16 / 16
    >>> noisy = clean + 0.1 * rng.standard_normal(clean.shape)
    >>> result = denoise(noisy, sigma=0.1, n_atoms=64, max_iter=3)
    >>> bool(np.std(result.image - clean) < 0.6 * np.std(noisy - clean))
    True
    """
    picture, exponent = _in_safe_units(Picture.of(image, patch_size, stride), coder, update)
    sigma = _as_sigma(sigma, picture, exponent)
    gain = _as_gain(gain, picture)
    rng = as_rng(rng)
    require_count("n_atoms", n_atoms)
    require_memory(n_atoms, picture.length)
    start = cosines(picture, n_atoms) if isinstance(init, str) and init == "dct" else init
    coder = _as_coder(coder, picture, n_atoms, tol=(gain * sigma) ** 2 * picture.length)
    begin = time.perf_counter()
    patches = picture.random_patches(n_patches, rng)
    with each_warning_once("few signals", "unused atoms"):  # atoms of the start that stay are of use, too
        result = learn_dictionary(
            patches,
            n_atoms,
            coder=coder,
            update=tethered(start, picture.length * sigma**2, patches.shape[1]) if update is None else update,
            max_iter=max_iter,
            init=start,
            replace=replace,
            rng=rng,
            callbacks=callbacks,
            threads=threads,
        )
    if result.reason is Reason.INTERRUPTED:  # half a dictionary is of use, half a picture is not
        raise KeyboardInterrupt
    learned = time.perf_counter()
    progress = Progress(callbacks, len(picture.pixels), passes=1 if refine is None else 1 + refine.rounds)
    clean = reconstruct(picture, result.dictionary, coder, sigma, threads, progress)
    if refine is not None:
        clean = refine(picture, clean, sigma, threads, progress)
    return DenoisingResult(
        picture.restore(multiply(clean, exponent)),
        result.dictionary,
        result.history,
        float(multiply(np.array(sigma), exponent)),
        seconds_learning=learned - begin,
        seconds_reconstruction=time.perf_counter() - learned,
    )


def _in_safe_units(picture: Picture, coder: Any, update: Any) -> tuple[Picture, int]:
    """The picture divided by 2^exponent, where the squares of its values would overflow or vanish."""
    exponent = unit_exponent(picture.pixels, "the picture")
    if exponent == 0:
        return picture, 0
    _require_no_units(coder, update, exponent)
    return replace_fields(picture, pixels=divide(picture.pixels, exponent)), exponent


def _as_sigma(sigma: float | None, picture: Picture, exponent: int) -> float:
    if sigma is None:
        return estimate_sigma(picture.pixels)
    if not (np.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"sigma={sigma}: the noise has a finite standard deviation of at least 0.")
    return float(divide(np.array(sigma, dtype=float), exponent))


def _as_gain(gain: float | None, picture: Picture) -> float:
    if gain is None:
        return usual_gain(picture.length, picture.pixels.shape[2])
    if not (np.isfinite(gain) and gain > 0):
        raise ValueError(f"gain={gain}: give a positive number; 1.15 is usual.")
    return gain


def _as_coder(coder: Any, picture: Picture, n_atoms: int, tol: float) -> Any:
    """The coder; the stopping rule is set here if it is given by name or not at all."""
    sparsity = max(1, min(picture.length // 2, n_atoms))
    if coder is None:
        return ForwardSelection(sparsity=sparsity, tol=tol)
    return by_name.component("coders", coder, "coder", sparsity=sparsity, tol=tol)


def _require_no_units(coder: Any, update: Any, exponent: int) -> None:
    """Refuse components with a parameter in the picture's units, where the picture is given others."""
    own = f"the picture has values of about 2^{exponent}, and is divided by that: "
    if not (coder is None or isinstance(coder, str) or properties_of(coder).scale_equivariant):
        raise ValueError(
            f"{own}coder={coder!r} may have a tolerance or penalty in other units. Divide the picture first."
        )
    if regularizers_of(update):
        raise ValueError(
            f"{own}the regularizers of {update!r} have weights in other units. Divide the picture first."
        )
