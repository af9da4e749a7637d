"""Denoising pictures with a dictionary learned from the noisy picture itself.

Every small patch is represented, but for its mean, by as few atoms as it takes to come within the noise;
the patches overlap, and where they do their average is taken, together with a little of the noisy picture
(Elad and Aharon, 2006). The reconstruction works in strips, so its memory does not grow with the picture.
"""

import time
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from typing import Any

import numpy as np
import scipy.special
from pymanopt.optimizers import ConjugateGradient

from manifold_dl._validation import require_unmasked
from manifold_dl.coders import ForwardSelection
from manifold_dl.coders.calling import run_coder
from manifold_dl.components import by_name
from manifold_dl.engines.units import divide, multiply, unit_exponent
from manifold_dl.learning.history import History
from manifold_dl.learning.initialization import initial_dictionary
from manifold_dl.learning.learn import learn_dictionary
from manifold_dl.learning.result import Reason
from manifold_dl.line_search import WolfeSearch
from manifold_dl.regularizers import Tether
from manifold_dl.updates.simco import SimCO

STRIP = 2**15  # patches in memory at a time
TETHER, RIDGE = 6.0, 0.5  # of the default update; the measurements are in docs/denoising.md


@dataclass
class DenoisingResult:
    """A cleaned picture and what it was cleaned with.

    Attributes
    ----------
    image : array like the noisy picture, in its dtype and range
    dictionary : m×d array, a patch in every column (channels one after the other)
    history : History of the learning
    sigma : float, the standard deviation of the noise, given or estimated, in the picture's units
    seconds_learning, seconds_reconstruction : float
    """

    image: np.ndarray
    dictionary: np.ndarray
    history: History
    sigma: float
    seconds_learning: float = 0.0
    seconds_reconstruction: float = 0.0


def denoise(
    image,
    sigma=None,
    *,
    patch_size=8,
    n_atoms=256,
    n_patches=40_000,
    coder=None,
    update=None,
    max_iter=10,
    init="dct",
    stride=1,
    gain=None,
    replace=None,
    rng=0,
    callbacks=(),
    threads=None,
):
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
        a pixel. A coder given by its name, such as ``"omp"``, stops there too, if it has a parameter `tol`.
    update : DictionaryUpdate, optional
        Or its name: ``"ksvd"``.
        By default SimCO with μ = 0.5 and a tether to the start that fades as the patches become more. On
        three pictures at three levels of noise it is 0.29 dB above K-SVD on average with 1,000 patches and
        0.06 dB with 40,000: docs/denoising.md.
    max_iter : int
        Outer iterations of the learning.
    init : "dct", "data", "random" or array
        Where the learning starts.
    stride : int
        Distance of the patches in the reconstruction; 1 is best and slowest.
    gain : float, optional
        How close a patch has to come, in units of the noise. By default what pure noise exceeds in one patch
        of 28: the usual 1.15 for 8×8 pixels, and 1.084 for as many in colour.
    replace, rng, callbacks, threads
        As for `learn_dictionary`. A callback may have the method ``reconstructed(done, total)`` as well,
        which is called with the rows of patches after every strip.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> clean = np.add.outer(np.arange(40), np.arange(40)) % 16 / 16
    >>> noisy = clean + 0.1 * rng.standard_normal(clean.shape)
    >>> result = denoise(noisy, sigma=0.1, n_atoms=64, max_iter=3)
    >>> bool(np.std(result.image - clean) < 0.6 * np.std(noisy - clean))
    True
    """
    picture = Picture.of(image, patch_size, stride)
    exponent = unit_exponent(picture.pixels, "the picture")
    if exponent:
        _require_no_units(coder, update, exponent)
        picture = replace_fields(picture, pixels=divide(picture.pixels, exponent))
    if sigma is None:
        sigma = estimate_sigma(picture.pixels)
    elif not (np.isfinite(sigma) and sigma >= 0):
        raise ValueError(f"sigma={sigma}: the noise has a finite standard deviation of at least 0.")
    else:
        sigma = float(divide(np.float64(sigma), exponent))
    if gain is None:
        gain = usual_gain(picture.length, picture.pixels.shape[2])
    elif not (np.isfinite(gain) and gain > 0):
        raise ValueError(f"gain={gain}: give a positive number; 1.15 is usual.")
    if n_patches < 1:
        raise ValueError(f"n_patches={n_patches}: learning needs at least one patch.")
    rng = np.random.default_rng(rng)
    start = cosines(picture, n_atoms) if isinstance(init, str) and init == "dct" else init
    sparsity = max(1, min(picture.length // 2, n_atoms))
    stop = {"sparsity": sparsity, "tol": (gain * sigma) ** 2 * picture.length}
    coder = ForwardSelection(**stop) if coder is None else by_name.component("coders", coder, "coder", **stop)
    begin = time.perf_counter()
    patches = picture.random_patches(n_patches, rng)
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
    clean = reconstruct(picture, result.dictionary, coder, sigma, threads, callbacks)
    return DenoisingResult(
        picture.restore(multiply(clean, exponent)),
        result.dictionary,
        result.history,
        float(multiply(np.float64(sigma), exponent)),
        seconds_learning=learned - begin,
        seconds_reconstruction=time.perf_counter() - learned,
    )


def _require_no_units(coder, update, exponent):
    """Refuse parts with a parameter in the picture's units, where the picture is given others."""
    own = f"the picture has values of about 2^{exponent}, and is divided by that: "
    if not (coder is None or isinstance(coder, str) or getattr(coder, "scale_equivariant", False)):
        raise ValueError(
            f"{own}coder={coder!r} may have a tolerance or penalty in other units. Divide the picture first."
        )
    if getattr(update, "regularizers", ()):
        raise ValueError(
            f"{own}the regularizers of {update!r} have weights in other units. Divide the picture first."
        )


def tethered(start, noise_energy, n_patches):
    """SimCO with a `Tether` to a given start: six times the energy mσ² of the noise in a patch.

    That is for 1,000 patches, which know less than the start does; the weight falls as 1/n, because 40,000
    do best without. A start that is no dictionary yet ("data", "random") is not worth holding on to.
    """
    weight = TETHER * noise_energy * 1_000 / n_patches
    penalties = [] if isinstance(start, str) else [Tether(weight, start)]
    # What docs/denoising.md was measured with.
    optimizer = ConjugateGradient(line_searcher=WolfeSearch(), max_iterations=6, verbosity=0)
    return SimCO(optimizer, mu=RIDGE, regularizers=penalties)


def usual_gain(length, channels=1):
    """The gain that pure noise exceeds in the same fraction of patches as it does 1.15 with 8×8 pixels.

    Patches are without the mean of each channel, so their noise has `length` − `channels` degrees of freedom,
    and the fraction is one in 28.

    Parameters
    ----------
    length : int
        The numbers in a patch, of all channels together.
    channels : int
        1 for grey pictures, 3 for RGB.

    Examples
    --------
    >>> round(usual_gain(64), 3), round(usual_gain(192, channels=3), 3)
    (1.15, 1.084)
    """
    above = scipy.special.chdtrc(63, 64 * 1.15**2)
    return float(np.sqrt(scipy.special.chdtri(length - channels, above) / length))


def cosines(picture, n_atoms):
    """An overcomplete cosine dictionary; for RGB half of the atoms grey and a quarter for each contrast."""
    patch = np.ones((picture.patch_size**2, 1), picture.pixels.dtype)
    if picture.pixels.shape[2] == 1:
        return initial_dictionary(patch, n_atoms, "dct", rng=0)
    quarter = n_atoms // 4
    atoms = [
        np.kron(np.array(colour)[:, None], initial_dictionary(patch, count, "dct", rng=0))
        for colour, count in (
            ((1, 1, 1), n_atoms - 2 * quarter),
            ((1, 0, -1), quarter),
            ((1, -2, 1), quarter),
        )
        if count > 0
    ]
    atoms = np.hstack(atoms)
    return (atoms / np.linalg.norm(atoms, axis=0)).astype(picture.pixels.dtype)


@dataclass(frozen=True)
class Picture:
    """A picture as float channels, and its patches."""

    pixels: np.ndarray  # rows×columns×channels, float
    patch_size: int
    stride: int
    dtype: Any
    shape: tuple

    @classmethod
    def of(cls, image, patch_size, stride=1):
        require_unmasked(image, "the picture")
        image = np.asarray(image)
        if image.dtype.kind not in "fu" or image.dtype.itemsize > 8 or image.dtype == np.float16:
            raise TypeError(f"a picture of dtype {image.dtype}: give floats, or integers of 8 or 16 bit.")
        if image.ndim not in (2, 3) or (image.ndim == 3 and image.shape[2] not in (1, 3)):
            raise ValueError(f"a picture of shape {image.shape}: give rows×columns, or rows×columns×3.")
        if patch_size < 2 or stride < 1:
            raise ValueError(f"patch_size={patch_size}, stride={stride}: at least 2 and 1 are needed.")
        if min(image.shape[:2]) < patch_size:
            raise ValueError(
                f"a picture of {image.shape[:2]} pixels is smaller than a patch of {patch_size}."
            )
        if not np.isfinite(image).all():
            raise ValueError("the picture holds NaN or infinity: fill those pixels first.")
        working = np.float32 if image.dtype == np.float32 else np.float64
        pixels = np.atleast_3d(image).astype(working)
        return cls(pixels, patch_size, stride, image.dtype, image.shape)

    @property
    def length(self):
        """m: the numbers in a patch."""
        return self.patch_size**2 * self.pixels.shape[2]

    @property
    def windows(self):
        """Every patch as a view: rows×columns×channels×p×p."""
        p = self.patch_size
        return np.lib.stride_tricks.sliding_window_view(self.pixels, (p, p), axis=(0, 1))

    def random_patches(self, count, rng):
        """m×n patches without their means, all of them if there are no more."""
        rows, columns = self.windows.shape[:2]
        if count < rows * columns:
            chosen = np.sort(rng.choice(rows * columns, size=count, replace=False))
        else:
            chosen = np.arange(rows * columns)
        patches, _ = centred(self.windows[chosen // columns, chosen % columns])
        return patches.T

    def restore(self, pixels):
        """The picture's own shape, dtype and, for integers, range."""
        if self.dtype.kind == "u":
            top = np.iinfo(self.dtype).max
            pixels = np.clip(np.rint(pixels), 0, top)
        return pixels.astype(self.dtype).reshape(self.shape)


def reconstruct(picture, dictionary, coder, sigma, threads=None, callbacks=()):
    """The average of all represented patches and, with a small weight, of the noisy picture."""
    pixels, p = picture.pixels, picture.patch_size
    total, weight = np.zeros_like(pixels), np.zeros(pixels.shape[:2], dtype=pixels.dtype)
    columns = _positions(pixels.shape[1], p, picture.stride)
    rows = _positions(pixels.shape[0], p, picture.stride)
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
        for callback in callbacks:
            if hasattr(callback, "reconstructed"):
                callback.reconstructed(first + len(strip), len(rows))
    # Elad and Aharon's 30/σ for 8-bit pictures: the less noise, the more the picture itself counts.
    own = 30 / 255 * _range(picture) / sigma if sigma > 0 else np.inf
    if not np.isfinite(own):
        return pixels.copy()
    return (own * pixels + total) / (own + weight)[:, :, None]


def centred(windows):
    """n×m patches without the mean of each channel, and the means."""
    means = windows.mean(axis=(2, 3))
    patches = windows - means[:, :, None, None]
    return patches.reshape(len(windows), -1), means


def estimate_sigma(pixels):
    """Standard deviation of the noise: the median of the finest diagonal differences (Donoho's rule).

    Examples
    --------
    >>> noise = 3 * np.random.default_rng(0).standard_normal((200, 200, 1))
    >>> bool(abs(estimate_sigma(noise) - 3) < 0.1)
    True
    """
    even = pixels[: pixels.shape[0] // 2 * 2, : pixels.shape[1] // 2 * 2]
    a, b, c, d = even[::2, ::2], even[::2, 1::2], even[1::2, ::2], even[1::2, 1::2]
    details = (a - b - c + d) / 2  # the finest diagonal Haar coefficients: noise of the same variance
    return float(np.median(np.abs(details)) / 0.6744897501960817)  # the third quartile of a Gaussian


def _add(total, weight, clean, rows, columns):
    """Add a strip of patches at their places: one shifted picture for every pixel of a patch."""
    p = clean.shape[-1]
    for i in range(p):
        for j in range(p):
            place = _place(rows + i, columns + j)
            total[place] += clean[:, :, :, i, j]
            weight[place] += 1


def _place(rows, columns):
    """Index of a grid of pixels: slices, which need no copies, where neighbours are one apart."""
    if len(rows) == np.ptp(rows) + 1 and len(columns) == np.ptp(columns) + 1:
        return slice(rows[0], rows[-1] + 1), slice(columns[0], columns[-1] + 1)
    return np.ix_(rows, columns)


def _positions(size, patch_size, stride):
    """Where patches begin along one side; the last one always touches the border."""
    return np.unique(np.append(np.arange(0, size - patch_size + 1, stride), size - patch_size))


def _range(picture):
    """White minus black: by the type for integers, 1 for floats unless the pixels say otherwise."""
    if picture.dtype.kind == "u":
        return float(np.iinfo(picture.dtype).max)
    return 255.0 if picture.pixels.max() > 2 else 1.0
