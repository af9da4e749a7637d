"""The signals of a run: synthetic ones, patches of a picture, or a file of the user's.

`load` returns what the settings describe; the same few lines are in the code that the page shows.
"""

import io
from dataclasses import dataclass
from functools import lru_cache
from pathlib import PurePath
from typing import Any

import numpy as np
import scipy.sparse

from manifold_dl._validation import as_matrix
from manifold_dl.datasets import synthetic
from manifold_dl.lab.settings import Refused, Settings

PICTURES = (".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp")
FILES = (".npy", ".csv", *PICTURES)
LARGEST = 64  # the longest signal of a file
MOST = 2000  # the most signals of a file
MOST_PIXELS = 20_000_000
SMALLEST = 1e-100  # of the largest number of a file; signals are squared


@dataclass(frozen=True, eq=False)
class Upload:
    """A file that the user has chosen.

    Attributes
    ----------
    name : str
        Its name, for messages and for the code shown.
    contents : bytes
    """

    name: str
    contents: bytes

    @property
    def suffix(self) -> str:
        """The ending of the name, in lower case."""
        return PurePath(self.name).suffix.lower()

    @property
    def is_picture(self) -> bool:
        """Whether its patches are the signals."""
        return self.suffix in PICTURES


@dataclass(frozen=True, eq=False)
class Data:
    """The signals, and what is known of them.

    Attributes
    ----------
    signals : array (m×n)
        Y.
    support : sparse boolean array (d×n) or None
        Ω, where the truth is known.
    truth : array (m×d) or None
        The dictionary that made them.
    patch : int or None
        The side of a patch, where atoms are pictures.
    """

    signals: np.ndarray
    support: scipy.sparse.csc_array | None = None
    truth: np.ndarray | None = None
    patch: int | None = None


def load(settings: Settings, upload: Upload | None = None) -> Data:
    """The signals that the settings describe.

    Parameters
    ----------
    settings : Settings
    upload : Upload, optional
        The file, for ``settings.data == "file"``.

    Returns
    -------
    Data

    Raises
    ------
    Refused
        With the control that caused it.

    Examples
    --------
    >>> load(Settings(m=3, d=4, n=50, sparsity=1)).signals.shape
    (3, 50)
    """
    if settings.data == "synthetic":
        return _synthetic(*(getattr(settings, name) for name in ("m", "d", "n", "sparsity", "noise", "seed")))
    if settings.data == "picture":
        return _patches(None, settings.patch, settings.n, settings.seed)
    if upload is None:
        raise Refused("file", f"Choose a file: {', '.join(FILES)}.")
    if upload.is_picture:
        return _patches(upload, settings.patch, settings.n, settings.seed)
    return _signals(upload)


def snr_db(noise: float) -> float | None:
    """The ratio of signal to noise in decibel, for noise as a percentage; None without noise.

    Examples
    --------
    >>> snr_db(10)
    20.0
    """
    return None if noise == 0 else round(float(20 * np.log10(100 / noise)), 2)


@lru_cache(maxsize=8)
def _synthetic(m: int, d: int, n: int, sparsity: int, noise: float, seed: int) -> Data:
    try:
        truth, codes, signals = synthetic(m, d, n, sparsity, snr_db=snr_db(noise), rng=seed)
    except ValueError as error:
        raise Refused("sparsity", error) from None
    signals.setflags(write=False)
    return Data(signals, codes != 0, truth)


def read_matrix(upload: Upload) -> np.ndarray:
    """Signals from a .npy or .csv file with a signal in every row.

    Parameters
    ----------
    upload : Upload

    Returns
    -------
    array (m×n)
        A signal in every column.

    Raises
    ------
    Refused
        If it is no such file.
    """
    if upload.suffix not in FILES:
        raise Refused("file", f"{upload.name} is none of {', '.join(FILES)}.")
    try:
        if upload.suffix == ".npy":
            array = np.load(io.BytesIO(upload.contents), allow_pickle=False)
        else:
            array = _read_csv(upload.contents)
        rows = as_matrix(array, upload.name).astype(float)
    except Exception as error:  # NumPy raises many kinds of exceptions for damaged files
        raise Refused("file", f"{upload.name} holds no matrix of finite numbers: {error}") from None
    n, m = rows.shape
    if m > LARGEST or n > MOST:
        most = f"at most {MOST:,} signals of at most {LARGEST} numbers"
        raise Refused("file", f"{upload.name} has {n:,} rows of {m:,} numbers; the lab takes {most}.")
    if not rows.any():
        raise Refused("file", f"{upload.name} holds nothing but zeros.")
    largest = float(np.abs(rows).max())
    if not SMALLEST <= largest <= 1 / SMALLEST:
        raise Refused("file", f"The largest number of {upload.name} is {largest:.0e}, and squares leave the "
                              "range of floating-point numbers: scale the signals first.")  # fmt: skip
    return np.ascontiguousarray(rows.T)


def _read_csv(contents: bytes) -> np.ndarray:
    if not contents.strip():
        raise ValueError("it is empty.")
    try:  # programs that write tables begin a file with a mark of its encoding, which utf-8-sig leaves out
        return np.loadtxt(io.BytesIO(contents), delimiter=",", ndmin=2, encoding="utf-8-sig")
    except ValueError as error:
        found = str(error).partition("; use `usecols`")[0].rstrip(".")
        wanted = "A signal in every row is needed, its numbers separated by commas, without a header"
        raise ValueError(f"{found}. {wanted}.") from None


def read_picture(upload: Upload) -> np.ndarray:
    """A picture as grey values; between 0 and 1, if it has 8 bits.

    Parameters
    ----------
    upload : Upload

    Returns
    -------
    array (rows×columns)

    Raises
    ------
    Refused
        If it cannot be read.
    """
    try:
        from PIL import Image

        opened = Image.open(io.BytesIO(upload.contents))
        if opened.width * opened.height > MOST_PIXELS:  # known before anything is unpacked
            raise ValueError(f"{opened.width}×{opened.height} pixels are more than {MOST_PIXELS:,}.")
        picture = np.asarray(opened.convert("F"), dtype=float) / 255  # "L" would cut 16 bits off at 255
    except Exception as error:  # Pillow raises many kinds of exceptions for damaged files
        raise Refused("file", f"{upload.name} is no picture that can be read: {error}") from None
    return picture


@lru_cache(maxsize=1)
def _camera() -> np.ndarray:
    from skimage import data

    return data.camera() / 255


@lru_cache(maxsize=1)
def _signals(upload: Upload) -> Data:
    return Data(read_matrix(upload))


@lru_cache(maxsize=2)
def _patches(upload: Upload | None, side: int, n: int, seed: int) -> Data:
    from sklearn.feature_extraction.image import extract_patches_2d

    picture = _camera() if upload is None else read_picture(upload)
    rows, columns = picture.shape
    available = (rows - side + 1) * (columns - side + 1)
    if rows < side or columns < side or available < n:
        has = f"a picture of {rows}×{columns} pixels has {max(available, 0):,} patches of {side}×{side}"
        raise Refused("n", f"n={n}: {has}.")
    patches: Any = extract_patches_2d(picture, (side, side), max_patches=n, random_state=seed)
    grey = patches.reshape(n, -1).T
    signals = grey - grey.mean(axis=0)
    if np.abs(signals).max() <= 1e-12 * np.abs(grey).max():  # rounding, of a mean of equal numbers
        raise Refused("file", "All patches of this picture are flat: nothing can be learned from it.")
    return Data(signals, patch=side)
